"""Minimax probability machines without a solver: worst cases, the exact method, and the classifier."""

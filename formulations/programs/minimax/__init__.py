"""Minimax probability machines: the hyperplane whose greater worst-case error is least, from moments."""

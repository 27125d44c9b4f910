"""MOSEK."""

"""Gurobi."""

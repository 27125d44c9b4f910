"""Conic solvers: the form they take, its certificate, Clarabel and SCS."""

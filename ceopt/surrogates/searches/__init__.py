"""Searches for recourse on a linear surrogate given as plain arrays."""

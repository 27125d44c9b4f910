"""Diversity: in what a further answer differs from those before it."""

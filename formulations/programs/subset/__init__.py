"""Diverse subsets of a pool, as programs."""

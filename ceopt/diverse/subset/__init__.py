"""Diverse subsets of a pool of points."""

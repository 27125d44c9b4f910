"""Bounds on the probability of validity, as programs."""

"""Bounds on the probability that a plan is valid."""

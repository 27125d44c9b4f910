"""Plausible answers: within a radius of the hull of people who have the decision wanted."""

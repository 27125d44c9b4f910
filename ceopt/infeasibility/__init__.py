"""Queries without an answer: the rules in conflict, and how far each would have to give way."""

"""Shifts of training data that turn explanations invalid, as programs over the retrained classifier."""

"""Checks that use nothing of a program: the user's own model, and the rules of a space in plain numbers."""

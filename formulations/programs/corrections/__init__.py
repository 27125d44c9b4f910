"""Corrections of a plan, as programs."""

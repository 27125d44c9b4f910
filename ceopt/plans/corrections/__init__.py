"""Corrections of a plan: the nearest one that meets a requirement."""

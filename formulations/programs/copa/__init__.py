"""The COPA problem, as programs."""

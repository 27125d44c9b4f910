"""Many people: their results, and what a fit was made from."""

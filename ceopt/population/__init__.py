"""Many people: tasks side by side, and what a fit was made from."""

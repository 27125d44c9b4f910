"""Trees in a program: split values, reachable leaves, and three formulations."""

"""Trees in a program: split values, reachable leaves, and three formulations on one base.

``ordered.py`` is the default; ``misic.py`` and ``leaf.py`` are there to compare and to read.
"""

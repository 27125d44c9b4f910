"""Outer approximation: convex quadratics and second-order cones by linear cuts, with HiGHS."""

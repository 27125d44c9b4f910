"""Guards: what a solver says is held against its own point and the points in hand.

A false "infeasible" meets, in this order: a second run of the solver itself (``highs/session.py``, ``_confirmed``), the
points in hand (``contradictions.py``), and in :mod:`ceopt.search.solve_check_repair` a start that passes the check.
"""

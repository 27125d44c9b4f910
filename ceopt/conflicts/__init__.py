"""Why there is no answer: the rules in conflict, and the least by which they would have to give way.

That there is none, "infeasible", is proved before: by the solver and `ceopt/search/solve_check_repair.py`.
"""

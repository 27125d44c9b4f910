"""Published programs, whole: each function returns an ordinary ConcreteModel to read, change, export and solve.

One program, one function, in a file named for what it decides; a name joins ``__all__`` and the battery of
``tests/formulations/test_programs.py`` asks for an example of it.
"""

from ceopt.formulations.programs.apart_subset import cheapest_subset, largest_subset
from ceopt.formulations.programs.compact_subset import max_sum_compact
from ceopt.formulations.programs.diverse_subset import max_min_subset, max_sum_subset

__all__ = ["cheapest_subset", "largest_subset", "max_min_subset", "max_sum_compact", "max_sum_subset"]

"""Published programs, whole: each function returns an ordinary ConcreteModel to read, change, export and solve.

One program, one function, in a file named for what it decides; a name joins ``__all__`` and the battery of
``tests/formulations/programs/test_programs.py`` asks for an example of it.
"""

from ceopt.formulations.programs.copa import copa_plan, copa_plan_alike
from ceopt.formulations.programs.corrections import mahalanobis_correction, requirement_correction, robust_improvement
from ceopt.formulations.programs.data_shift import data_shift
from ceopt.formulations.programs.linear_recourse import roar, robust_projection, wachter
from ceopt.formulations.programs.minimax import minimax_machine
from ceopt.formulations.programs.moments import gelbrich_distance
from ceopt.formulations.programs.subset import (
    cheapest_subset,
    largest_subset,
    max_min_subset,
    max_sum_compact,
    max_sum_subset,
)
from ceopt.formulations.programs.validity_lower import (
    validity_lower,
    validity_lower_arrow,
    validity_lower_coupled,
    validity_lower_dual,
    validity_lower_nonlinear,
)
from ceopt.formulations.programs.validity_upper import (
    validity_upper,
    validity_upper_coupled,
    validity_upper_moment,
    validity_upper_scalar,
)

__all__ = [
    "cheapest_subset",
    "copa_plan",
    "copa_plan_alike",
    "data_shift",
    "gelbrich_distance",
    "largest_subset",
    "mahalanobis_correction",
    "max_min_subset",
    "max_sum_compact",
    "max_sum_subset",
    "minimax_machine",
    "requirement_correction",
    "roar",
    "robust_improvement",
    "robust_projection",
    "validity_lower",
    "validity_lower_arrow",
    "validity_lower_coupled",
    "validity_lower_dual",
    "validity_lower_nonlinear",
    "validity_upper",
    "validity_upper_coupled",
    "validity_upper_moment",
    "validity_upper_scalar",
    "wachter",
]

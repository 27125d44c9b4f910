"""Published programs, whole: each function returns an ordinary ConcreteModel to read, change, export and solve.

One program, one function, in a file named for what it decides; a name joins ``__all__`` and the battery of
``tests/formulations/programs/test_programs.py`` asks for an example of it.
"""

from ceopt.formulations.programs.copa.nearest_valid import copa_plan_alike
from ceopt.formulations.programs.copa.plan import copa_plan
from ceopt.formulations.programs.corrections.improvement import robust_improvement
from ceopt.formulations.programs.corrections.mahalanobis import mahalanobis_correction
from ceopt.formulations.programs.corrections.requirement import requirement_correction
from ceopt.formulations.programs.data_shift.program import data_shift
from ceopt.formulations.programs.gelbrich import gelbrich_distance
from ceopt.formulations.programs.linear_recourse.projection import robust_projection
from ceopt.formulations.programs.linear_recourse.roar import roar
from ceopt.formulations.programs.minimax.machine import minimax_machine
from ceopt.formulations.programs.subset.apart import cheapest_subset, largest_subset
from ceopt.formulations.programs.subset.compact import max_sum_compact
from ceopt.formulations.programs.subset.diverse import max_min_subset, max_sum_subset
from ceopt.formulations.programs.validity.lower_arrow import validity_lower_arrow
from ceopt.formulations.programs.validity.lower_coupled import validity_lower_coupled
from ceopt.formulations.programs.validity.lower_dual import validity_lower_dual
from ceopt.formulations.programs.validity.lower_nonlinear import validity_lower_nonlinear
from ceopt.formulations.programs.validity.lower_theorem import validity_lower
from ceopt.formulations.programs.validity.upper_coupled import validity_upper_coupled
from ceopt.formulations.programs.validity.upper_moment import validity_upper_moment
from ceopt.formulations.programs.validity.upper_scalar import validity_upper_scalar
from ceopt.formulations.programs.validity.upper_theorem import validity_upper
from ceopt.formulations.programs.wachter import wachter

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

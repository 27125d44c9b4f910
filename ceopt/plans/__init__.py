"""Plans of recourse that are to survive retraining: how likely they do, at worst and at best, and better plans.

The parameters of a linear classifier are uncertain: only their mean and covariance are known, and those up to a
Gelbrich distance of ``radius``. A plan is valid if all its counterfactuals are favourable. With an intercept, the last
column of plan and factual is 1 and ``fixed=[-1]`` holds it.

The programs are stated in `ceopt/formulations/programs`; here they are called, and answered without a solver where
that is possible.
"""

from ceopt.plans.copa.objective import PlanObjective, copa_objective
from ceopt.plans.copa.plan import CopaPlan, copa_plan
from ceopt.plans.copa.validity_value import validity_value
from ceopt.plans.corrections.improvement import RobustImprovement, robust_improvement
from ceopt.plans.corrections.mahalanobis import MahalanobisCorrection, mahalanobis_correction
from ceopt.plans.corrections.requirement import RequirementCorrection, requirement_correction
from ceopt.plans.moments.bootstrap import bootstrap_moments
from ceopt.plans.moments.gelbrich_distance import gelbrich_distance
from ceopt.plans.moments.local import local_moments
from ceopt.plans.validity.bounds import ValidityBounds, validity_bounds
from ceopt.plans.validity.extremal import ExtremalDistribution, extremal_distribution
from ceopt.plans.validity.picture import plot_validity

__all__ = [
    "CopaPlan",
    "ExtremalDistribution",
    "MahalanobisCorrection",
    "PlanObjective",
    "RequirementCorrection",
    "RobustImprovement",
    "ValidityBounds",
    "bootstrap_moments",
    "copa_objective",
    "copa_plan",
    "extremal_distribution",
    "gelbrich_distance",
    "local_moments",
    "mahalanobis_correction",
    "plot_validity",
    "requirement_correction",
    "robust_improvement",
    "validity_bounds",
    "validity_value",
]

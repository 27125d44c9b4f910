"""Plans of recourse that are to survive retraining: how likely they do, at worst and at best, and better plans.

The parameters of a linear classifier are uncertain: only their mean and covariance are known, and those up to a
Gelbrich distance of ``radius``. A plan is valid if all its counterfactuals are favourable. With an intercept, the last
column of plan and factual is 1 and ``fixed=[-1]`` holds it.

The programs are stated in `ceopt/formulations/programs`; here they are called, and answered without a solver where
that is possible.
"""

from ceopt.plans.copa import CopaPlan, PlanObjective, copa_objective, copa_plan, validity_value
from ceopt.plans.corrections import (
    MahalanobisCorrection,
    RequirementCorrection,
    RobustImprovement,
    mahalanobis_correction,
    requirement_correction,
    robust_improvement,
)
from ceopt.plans.moments import bootstrap_moments, gelbrich_distance, local_moments
from ceopt.plans.validity import (
    ExtremalDistribution,
    ValidityBounds,
    extremal_distribution,
    plot_validity,
    validity_bounds,
)

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

"""What would have to be different for this decision to change, as a program that one can read, change and check.

>>> import ceopt
>>> sorted(name for name in ceopt.__all__ if name[0].islower())[:4]
['datasets', 'explain', 'formulations', 'metrics']
"""

from __future__ import annotations

from importlib.metadata import version

from ceopt import datasets, formulations, metrics, solvers
from ceopt.cohort import Cohort
from ceopt.explain import explain
from ceopt.formulations.constraints import (
    AllowedRows,
    AllowedTransitions,
    AllowedValues,
    Causal,
    Hull,
    IfThen,
    Linear,
    MaxChanges,
    RobustValidity,
)
from ceopt.formulations.constraints.causal import LinearEquation
from ceopt.formulations.constraints.diversity.apart import Apart
from ceopt.formulations.costs import L0, L1, L2, Changes, L1Mahalanobis, Linf, Mahalanobis, Percentile
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.targets import AtLeast, AtMost, Between, Disagreement, OtherThan, Probability
from ceopt.recourse import Recourse
from ceopt.solution.solution_set import Counterfactual, SolutionSet
from ceopt.solvers import model_summary, write
from ceopt.solvers.errors import CeoptError
from ceopt.status import Status
from ceopt.verify import verify

__version__ = version("ceopt")

__all__ = [
    "L0",
    "L1",
    "L2",
    "AllowedRows",
    "AllowedTransitions",
    "AllowedValues",
    "Apart",
    "AtLeast",
    "AtMost",
    "Between",
    "Causal",
    "CeoptError",
    "Changes",
    "Cohort",
    "Counterfactual",
    "Disagreement",
    "Feature",
    "FeatureSpace",
    "Hull",
    "IfThen",
    "L1Mahalanobis",
    "Linear",
    "LinearEquation",
    "Linf",
    "Mahalanobis",
    "MaxChanges",
    "OtherThan",
    "Percentile",
    "Probability",
    "Recourse",
    "RobustValidity",
    "SolutionSet",
    "Status",
    "__version__",
    "datasets",
    "explain",
    "formulations",
    "metrics",
    "model_summary",
    "solvers",
    "verify",
    "write",
]

"""What would have to be different for this decision to change, as a program that one can read, change and check.

>>> import ceopt
>>> sorted(name for name in ceopt.__all__ if name[0].islower())[:4]
['datasets', 'dice', 'diverse', 'explain']
"""

from __future__ import annotations

import importlib
from importlib.metadata import version
from types import ModuleType

from ceopt import datasets, formulations, metrics, solvers
from ceopt.formulations.constraints import (
    AllowedRows,
    AllowedTransitions,
    AllowedValues,
    Causal,
    ExactlyOne,
    Hull,
    IfThen,
    Linear,
    MaxChanges,
    RobustValidity,
)
from ceopt.formulations.constraints.causal_structure import LinearEquation
from ceopt.formulations.constraints.diversity.apart import Apart
from ceopt.formulations.costs import L0, L1, L2, Changes, L1Mahalanobis, Linf, Mahalanobis, Percentile
from ceopt.formulations.space import Feature, FeatureSpace, RuleWarning, SpaceWarning
from ceopt.formulations.targets import AtLeast, AtMost, Between, Disagreement, OtherThan, Probability
from ceopt.recourse import Recourse, explain
from ceopt.result.cohort import Cohort
from ceopt.result.counterfactual import Counterfactual
from ceopt.result.solution_set import SolutionSet
from ceopt.result.verify import verify
from ceopt.solvers import model_summary, write
from ceopt.solvers.errors import CeoptError
from ceopt.status import Status

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
    "ExactlyOne",
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
    "RuleWarning",
    "SolutionSet",
    "SpaceWarning",
    "Status",
    "__version__",
    "datasets",
    "dice",
    "diverse",
    "explain",
    "formulations",
    "metrics",
    "model_summary",
    "plans",
    "solvers",
    "surrogates",
    "training",
    "verify",
    "write",
]

#: Modules that are imported when they are asked for.
_ON_USE = {"dice", "diverse", "plans", "surrogates", "training"}


def __getattr__(name: str) -> ModuleType:
    if name not in _ON_USE:
        raise AttributeError(f"module 'ceopt' has no attribute {name!r}")
    return importlib.import_module(f"ceopt.{name}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""What would have to be different for this decision to change, as a program that one can read, change and check.

>>> import ceopt
>>> sorted(name for name in ceopt.__all__ if name[0].islower())[:4]
['datasets', 'dice', 'diverse', 'explain']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ceopt import datasets, dice, diverse, formulations, metrics, plans, solvers, surrogates, training
    from ceopt.base.results import Status
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
        MaxMove,
        NotAnOutlier,
        Product,
        Ratio,
        Region,
        RobustToShift,
        RobustValidity,
    )
    from ceopt.formulations.constraints.causal_structure import LinearEquation
    from ceopt.formulations.constraints.diversity.apart import Apart
    from ceopt.formulations.costs import L0, L1, L2, Changes, L1Mahalanobis, Linf, Mahalanobis, Percentile
    from ceopt.formulations.space import Feature, FeatureSpace, RuleWarning, SpaceWarning
    from ceopt.formulations.targets import AtLeast, AtMost, Between, Disagreement, OtherThan, Probability
    from ceopt.people import solve_people
    from ceopt.recourse import Recourse, explain
    from ceopt.result.cohort import Cohort
    from ceopt.result.counterfactual import Counterfactual
    from ceopt.result.solution_set import SolutionSet
    from ceopt.result.verify import verify
    from ceopt.search.model_start import start
    from ceopt.solvers import model_summary, write
    from ceopt.solvers.errors import CeoptError

    __version__: str

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
    "MaxMove",
    "NotAnOutlier",
    "OtherThan",
    "Percentile",
    "Probability",
    "Product",
    "Ratio",
    "Recourse",
    "Region",
    "RobustToShift",
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
    "solve_people",
    "solvers",
    "start",
    "surrogates",
    "training",
    "verify",
    "write",
]

#: Parts of the package, imported when they are asked for.
_PARTS: Final = frozenset("datasets dice diverse formulations metrics plans solvers surrogates training".split())
#: Modules by the public names that they define. They are imported when one of these is first asked for: whoever imports
#: ceopt does not wait for Pyomo, pandas and scikit-learn.
_DEFINED: Final = {
    "ceopt.formulations.constraints": (
        "AllowedRows AllowedTransitions AllowedValues Causal ExactlyOne Hull IfThen Linear MaxChanges MaxMove "
        "NotAnOutlier Product Ratio Region RobustToShift RobustValidity"
    ),
    "ceopt.formulations.constraints.causal": "LinearEquation",
    "ceopt.formulations.constraints.diversity.apart": "Apart",
    "ceopt.formulations.costs": "L0 L1 L2 Changes L1Mahalanobis Linf Mahalanobis Percentile",
    "ceopt.formulations.space": "Feature FeatureSpace RuleWarning SpaceWarning",
    "ceopt.formulations.targets": "AtLeast AtMost Between Disagreement OtherThan Probability",
    "ceopt.people": "solve_people",
    "ceopt.recourse": "Recourse explain",
    "ceopt.search.model_start": "start",
    "ceopt.result.cohort": "Cohort",
    "ceopt.result.counterfactual": "Counterfactual",
    "ceopt.result.solution_set": "SolutionSet",
    "ceopt.result.verify": "verify",
    "ceopt.solvers": "model_summary write",
    "ceopt.solvers.errors": "CeoptError",
    "ceopt.base.results": "Status",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # who presses TAB does not wait for it

        return version("ceopt")
    if name in _PARTS:
        return importlib.import_module(f"ceopt.{name}")
    for module, names in _DEFINED.items():
        if name in names.split():
            value = getattr(importlib.import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'ceopt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""Rules, a family a file, listed in ``RULES``: the battery of tests runs on every one, and files of rules name them."""

from __future__ import annotations

from collections.abc import Mapping

from ceopt.formulations.constraints.allowed import AllowedRows, AllowedTransitions, AllowedValues
from ceopt.formulations.constraints.causal import Causal
from ceopt.formulations.constraints.exactly_one import ExactlyOne
from ceopt.formulations.constraints.hull import Hull
from ceopt.formulations.constraints.if_then import IfThen
from ceopt.formulations.constraints.linear import Linear
from ceopt.formulations.constraints.max_changes import MaxChanges
from ceopt.formulations.constraints.max_move import MaxMove
from ceopt.formulations.constraints.not_an_outlier import NotAnOutlier
from ceopt.formulations.constraints.products import Product, Ratio
from ceopt.formulations.constraints.region import Region
from ceopt.formulations.constraints.robust_to_shift import RobustToShift
from ceopt.formulations.constraints.robust_validity import RobustValidity
from ceopt.formulations.constraints.rule import AbstractElastic, AbstractRule, impose, parse_rules, rule_name

__all__ = [
    "RULES",
    "AbstractElastic",
    "AbstractRule",
    "AllowedRows",
    "AllowedTransitions",
    "AllowedValues",
    "Causal",
    "ExactlyOne",
    "Hull",
    "IfThen",
    "Linear",
    "MaxChanges",
    "MaxMove",
    "NotAnOutlier",
    "Product",
    "Ratio",
    "Region",
    "RobustToShift",
    "RobustValidity",
    "impose",
    "parse_rules",
    "rule_name",
]

#: Every rule by the name of its class.
RULES: Mapping[str, type[AbstractRule]] = {
    rule.__name__: rule
    for rule in (
        MaxChanges,
        Linear,
        AllowedValues,
        AllowedTransitions,
        AllowedRows,
        ExactlyOne,
        IfThen,
        Causal,
        Hull,
        RobustValidity,
        Ratio,
        Product,
        MaxMove,
        NotAnOutlier,
        RobustToShift,
        Region,
    )
}

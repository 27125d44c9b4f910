"""Rules: one file each, listed here so that the battery of tests for rules runs on every one."""

from __future__ import annotations

from collections.abc import Mapping

from ceopt.formulations.constraints.linear import Linear
from ceopt.formulations.constraints.rule import AbstractRule, impose, parse_rules, rule_name
from ceopt.formulations.constraints.sparsity import MaxChanges

__all__ = ["RULES", "AbstractRule", "Linear", "MaxChanges", "impose", "parse_rules", "rule_name"]

#: Every rule by the name of its class.
RULES: Mapping[str, type[AbstractRule]] = {"MaxChanges": MaxChanges, "Linear": Linear}

"""The table of formulations: every one has a line, and its class is the one that the compiler finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from sources import ROOT

import ceopt
from ceopt.formulations import Factual, Reaches, costs, embed, impose, programs
from ceopt.formulations.constraints import RULES
from ceopt.formulations.constraints.diversity import DIVERSITIES
from ceopt.formulations.costs import COSTS
from ceopt.formulations.predictors import Affine
from ceopt.formulations.predictors.embed import FORMULATIONS
from ceopt.solvers import compile_model

PAGE = ROOT / "docs" / "reference" / "formulations.md"
#: Three numbers without steps, so that whatever is whole in a program comes from what is asked about.
SPACE = ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous", lower=0, upper=9, mad=1.0) for name in "abc"])
ROW = {"a": 1.0, "b": 1.0, "c": 1.0}
MODEL = Affine([1.0, 1.0, 1.0], -6.0, labels=("no", "yes"))
COVARIANCE = np.eye(3) + 0.3
#: What stands in the page -> the same as an object; without data a cost by name is that of its class.
COST_EXAMPLES: dict[str, Any] = {
    '"l0"': costs.L0(),
    '"l1"': costs.L1(),
    '"l2"': costs.L2(),
    '"l2_squared"': costs.L2(squared=True),
    '"linf"': costs.Linf(),
    '"mahalanobis"': costs.Mahalanobis(covariance=COVARIANCE),
    '"few_changes"': COSTS["few_changes"](),
    "L1Mahalanobis()": costs.L1Mahalanobis(covariance=COVARIANCE),
    "Changes()": costs.Changes(),
}
RULE_EXAMPLES: dict[str, Any] = {
    "MaxChanges": ceopt.MaxChanges(2),
    "Linear": ceopt.Linear({"a": 1.0}, "<=", 8.0),
    "AllowedValues": ceopt.AllowedValues({"a": [2.0, 5.0]}),
    "AllowedRows": ceopt.AllowedRows(["a"], pd.DataFrame({"a": [2.0, 3.0]})),
    "IfThen": ceopt.IfThen(("a", ">=", 3.0), ("b", ">=", 2.0)),
    "Causal": ceopt.Causal({"b": ceopt.LinearEquation({"a": 1.0})}, intervention="soft"),
    "Hull": ceopt.Hull(pd.DataFrame(np.random.default_rng(0).uniform(0, 9, (20, 3)), columns=list("abc")), radius=0.1),
    "Region": ceopt.Region(0.1, scale={"a": 1.0, "b": 1.0, "c": 1.0}, target="yes", model=MODEL),
    "RobustToShift": ceopt.RobustToShift(0.01, target="yes", model=MODEL),
    "RobustValidity": ceopt.RobustValidity([1.0, 1.0, 1.0, -6.0], np.eye(4) * 0.01, 0.0, 0.6, model=MODEL),
}

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="The documentation is not beside the tests.")


def lines() -> list[list[str]]:
    """The cells of every line of every table."""
    text = PAGE.read_text(encoding="utf-8")
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]


def line_of(name: str) -> list[str]:
    """The one line whose first or second cell has the name."""
    found = [cells for cells in lines() if any(f"`{name}" in cell for cell in cells[:2])]
    assert found, f"{name} has no line in {PAGE.name}"
    return found[0]


def class_of(*, cost: Any = None, rule: Any = None) -> str:
    """The problem class of a program over three numbers, as the compiler finds it."""
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, ROW)
    m.predictor = embed(MODEL, m.x)
    m.valid = Reaches(m.predictor, "yes", margin=1e-4)
    if rule is not None:
        m.rule = impose(rule, m.x)
    m.cost = pyo.Objective(expr=cost.build(m.x) if cost is not None else sum(m.x.raw[name] for name in ROW))
    return str(compile_model(m).problem_class)


def names() -> list[str]:
    """Everything that is listed in the code."""
    quoted = [*(name for kind in FORMULATIONS.values() for name in kind), *COSTS, *DIVERSITIES]
    objects = [name for name in costs.__all__ if isinstance(getattr(costs, name), type)]
    called = [f"{name}(" for name in objects if name not in {"AbstractCost", "Sum"}]
    return [*(f'"{name}"' for name in quoted), *called, *RULES, *programs.__all__]


@pytest.mark.parametrize("name", names())
def test_every_formulation_has_a_line_that_says_all(name):
    assert all(line_of(name)[1:])


@pytest.mark.parametrize("name", COST_EXAMPLES)
def test_the_class_of_a_cost_is_the_one_of_its_program(name):
    class_on_page = line_of(name)[2]

    assert class_on_page.split(";")[0] == class_of(cost=COST_EXAMPLES[name])


@pytest.mark.parametrize("name", RULE_EXAMPLES)
def test_the_class_of_a_rule_is_the_one_of_its_program(name):
    class_on_page = line_of(name)[1]

    assert class_on_page.split(";")[0] == class_of(rule=RULE_EXAMPLES[name])

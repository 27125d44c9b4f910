"""A number that moves by less than a solver sees, but across a cut: it has moved, and in that direction."""

from __future__ import annotations

import math
from typing import Any

import pyomo.environ as pyo
import pytest

import ceopt
from ceopt.formulations import Factual, Reaches, embed, impose
from ceopt.formulations.constraints import IfThen
from ceopt.formulations.costs import L0
from ceopt.formulations.predictors import TreeEnsemble
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.solvers import solve

#: More than 1, and less than 1: the next numbers.
ABOVE = {"feature": 0, "threshold": 1.0, "left": {"value": 0.0}, "right": {"value": 1.0}}
BELOW = {"feature": 0, "threshold": math.nextafter(1.0, 0.0), "left": {"value": 1.0}, "right": {"value": 0.0}}


@pytest.mark.parametrize("formulation", ["ordered", "misic", "leaf"])
@pytest.mark.parametrize("order", [("tree", "raw", "cost"), ("tree", "cost", "raw"), ("raw", "cost", "tree")])
@pytest.mark.parametrize(("tree", "price"), [(ABOVE, 3.0), (BELOW, 1.0)])
def test_a_short_move_is_charged_by_its_direction(formulation: str, order: Any, tree: Any, price: float) -> None:
    m = pyo.ConcreteModel()
    m.x = Factual(FeatureSpace([Feature("a", kind="continuous", lower=-2, upper=3, weight=(1.0, 3.0))]), {"a": 1.0})
    for part in order:
        match part:
            case "tree":
                m.p = embed(TreeEnsemble([tree], n_inputs=1), m.x, formulation=formulation)
                m.valid = Reaches(m.p, ceopt.AtLeast(0.5))
            case "raw":
                m.asked = pyo.Expression(expr=m.x.raw["a"])
            case _:
                m.cost = pyo.Objective(expr=L0().build(m.x))
    m.near = pyo.Constraint(expr=(0.999999, m.x.raw["a"], 1.000001))
    assert solve(m).objective == pytest.approx(price)
    assert (m.x.decoded()["a"] - 1.0 > 0) == (price == 3.0)


@pytest.mark.parametrize("formulation", ["misic", "leaf"])
@pytest.mark.parametrize("first", ["tree", "rule"])
def test_cells_and_another_forms_binaries_take_one_side(formulation: str, first: str) -> None:
    """The rule cuts where the tree splits: the coordinate alone would let each have its own way."""
    m = pyo.ConcreteModel()
    columns = [Feature("a", kind="continuous", lower=-2, upper=3), Feature("b", kind="binary", levels=(0, 1))]
    m.x = Factual(FeatureSpace(columns), {"a": 0.0, "b": 0})
    for part in ("tree", "rule") if first == "tree" else ("rule", "tree"):
        if part == "tree":
            m.p = embed(TreeEnsemble([ABOVE], n_inputs=2), m.x, formulation=formulation)
            m.valid = Reaches(m.p, ceopt.AtLeast(0.5))
        else:
            m.r = impose(IfThen(("a", "!=", 1.0), ("b", "==", 1)), m.x)
    m.cost = pyo.Objective(expr=ceopt.formulations.l1(m.x, scale="none"))
    assert solve(m).objective == pytest.approx(2.0, abs=1e-6)
    point = m.x.decoded()
    assert point["a"] == math.nextafter(1.0, 2.0)
    assert point["b"] == 1.0

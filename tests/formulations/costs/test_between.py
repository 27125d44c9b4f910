"""Costs between two blocks against the costs from a person's own row, and against enumeration."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest

import ceopt
from ceopt.formulations import Columns, Factual, Reaches, embed, l0, l1, l2, l2_squared, linf
from ceopt.formulations.costs import L0, L1, L2, Linf
from ceopt.formulations.predictors import Affine
from ceopt.solvers import solve
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnboundedFeatureError

SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("income", kind="continuous", lower=0.0, upper=9.0, weight=(2.0, 1.0)),
        ceopt.Feature("rooms", kind="integer", lower=1, upper=4),
        ceopt.Feature("grade", kind="ordinal", levels=("low", "mid", "top"), weight=(0.5, 1.5)),
        ceopt.Feature("owner", kind="binary", levels=(0, 1)),
        ceopt.Feature("job", kind="categorical", levels=("a", "b", "c"), weight=0.7),
    ]
)
SCALE = {"income": 2.0, "rooms": 1.0}
COSTS = {
    "l0": (l0, L0(), {}),
    "l1": (l1, L1(scale=SCALE), {"scale": SCALE}),
    "l1 of columns": (l1, L1(scale=SCALE, count="columns"), {"scale": SCALE, "count": "columns"}),
    "l2": (l2, L2(scale=SCALE), {"scale": SCALE}),
    "l2_squared": (l2_squared, L2(scale=SCALE, squared=True), {"scale": SCALE}),
    "linf": (linf, Linf(scale=SCALE), {"scale": SCALE}),
}
ROWS = [
    {"income": income, "rooms": rooms, "grade": grade, "owner": owner, "job": job}
    for income, rooms, grade, owner, job in [
        (2.0, 2, "mid", 0, "a"), (2.0, 2, "mid", 0, "b"), (5.5, 1, "low", 1, "c"), (0.0, 4, "top", 0, "a"),
        (2.0, 3, "top", 1, "b"), (8.0, 2, "mid", 1, "a"),
    ]
]  # fmt: skip


def held(m: Any, block: Any, row: dict[str, Any]) -> None:
    rows = pyo.ConstraintList()
    m.add_component(f"held_{block.name}", rows)
    rows.add(block.raw["income"] == row["income"])
    rows.add(block.raw["rooms"] == row["rooms"])
    for name in ("grade", "owner", "job"):
        rows.add(block.is_level[name, row[name]] == 1)


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize(("start", "end"), list(itertools.product(range(3), range(len(ROWS)))))
def test_the_distance_of_two_answers_is_the_cost_of_one_from_the_other(name: str, start: int, end: int) -> None:
    make, cost, options = COSTS[name]
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, ROWS[0])
    m.o = Factual(SPACE, ROWS[1])
    held(m, m.x, ROWS[end])
    held(m, m.o, ROWS[start])
    m.least = pyo.Objective(expr=make(m.x, origin=m.o, **options))
    result = solve(m)
    true = cost.value(SPACE, SPACE.row(ROWS[start]), SPACE.row(ROWS[end]))
    assert result.status == "optimal"
    assert result.objective == pytest.approx(true, rel=1e-5, abs=1e-6)
    m.x.place(SPACE.row(ROWS[end]))
    m.o.place(SPACE.row(ROWS[start]))
    m.x.place(SPACE.row(ROWS[end]))
    assert pyo.value(m.least) == pytest.approx(true, rel=1e-9, abs=1e-9)


def test_two_steps_cost_what_enumeration_says() -> None:
    """Two steps, each at most 2 of rooms and grade away; the second reaches the target."""
    space = SPACE.only("rooms", "grade", "job")
    model = Affine([0.0, 1.0, 2.0, 0.0], -6.5, labels=("no", "yes"), columns=["income", "rooms", "grade", "owner"])
    row = ROWS[0] | {"rooms": 1, "grade": "low"}
    m = pyo.ConcreteModel()
    m.first = Factual(space, row)
    m.second = Factual(space, row)
    m.p = embed(model, m.second)
    m.valid = Reaches(m.p, "yes")
    m.steps = pyo.ConstraintList()
    m.steps.add(l0(m.first) <= 1.6)
    m.steps.add(l1(m.second, origin=m.first, scale=SCALE) <= 1.8)
    m.least = pyo.Objective(expr=l1(m.first, scale=SCALE) + 3.0 * l1(m.second, origin=m.first, scale=SCALE))
    result = solve(m)
    cost, count = L1(scale=SCALE), L0()
    points = [
        space.row(row | {"rooms": rooms, "grade": grade, "job": job})
        for rooms, grade, job in itertools.product(range(1, 5), ("low", "mid", "top"), ("a", "b", "c"))
    ]
    home = space.row(row)
    best = min(
        (
            cost.value(space, home, one) + 3.0 * cost.value(space, one, two)
            for one, two in itertools.product(points, points)
            if count.value(space, home, one) <= 1.6
            and cost.value(space, one, two) <= 1.8
            and two["rooms"] + 2 * two["grade"] - 6.5 > 0
        ),
        default=None,
    )
    assert (result.status == "optimal") == (best is not None)
    if best is not None:
        assert result.objective == pytest.approx(best, rel=1e-6)


def test_own_variables_are_a_block_too() -> None:
    space = ceopt.FeatureSpace([SPACE["income"]])
    m = pyo.ConcreteModel()
    m.income = pyo.Var(bounds=(4, 9))
    m.o = Columns(space, {"income": m.income})
    m.x = Factual(space, {"income": 1.0})
    m.low = pyo.Constraint(expr=m.x.raw["income"] <= 3)
    m.least = pyo.Objective(expr=l1(m.x, origin=m.o, scale="none"))
    assert solve(m).objective == pytest.approx(2.0)  # down costs 2


def test_what_are_not_two_blocks_over_one_space_is_refused() -> None:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, ROWS[0])
    other = ceopt.FeatureSpace([ceopt.Feature("wage", kind="continuous")])
    m.o = Factual(other, {"wage": 1.0})
    m.q = Factual(other, {"wage": 2.0})
    with pytest.raises(InvalidValueError, match="both are 'x'"):
        l1(m.x, origin=m.x, scale=SCALE)
    with pytest.raises(InvalidValueError, match="those of 'o' are others"):
        l1(m.x, origin=m.o, scale=SCALE)
    with pytest.raises(InvalidTypeError, match="origin is dict"):
        l1(m.x, origin=ROWS[0], scale=SCALE)
    with pytest.raises(UnboundedFeatureError, match="'wage'"):
        l0(m.o, origin=m.q)


def test_a_cell_that_may_be_missing_has_no_distance() -> None:
    space = ceopt.FeatureSpace([ceopt.Feature("wage", kind="continuous", lower=0, upper=9, missing=True)])
    m = pyo.ConcreteModel()
    m.x = Factual(space, pd.Series({"wage": np.nan}))
    m.o = Factual(space, {"wage": 2.0})
    with pytest.raises(InvalidValueError, match="column 'wage' may be missing"):
        l1(m.x, origin=m.o, scale="none")

"""Costs of cells that are filled in, that go missing and that hold codes: by hand, and program against enumeration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from with_gaps import PEOPLE, SPACE, block, by_hand, points, raw, wanted, weights_of

from ceopt.formulations import Factual
from ceopt.formulations.costs import L0, L1, L2, Changes, L1Mahalanobis, Linf, Mahalanobis, Percentile
from ceopt.formulations.costs.base import AbstractCost, CostCutoff
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.reachable import reach_of
from ceopt.formulations.space.space import point_row
from ceopt.solvers import Status, solve
from ceopt.solvers.errors import InvalidValueError

SCALES: list[Any] = ["mad", "std", "range", "none", {"wage": 4.0, "score": 0.25, "size": 2.0}]
COSTS: list[AbstractCost] = [
    L0(),
    Changes(),
    Changes("columns"),
    *(L1(scale=scale) for scale in SCALES),
    L1(count="columns"),
    L2(),
    L2(squared=True),
    L2(scale="none", count="columns"),
    Linf(),
    Linf(scale="std"),
    L1() + 0.1 * Changes(),
    2.0 * L1(scale="none") + 0.5 * L0() + Linf(),
    L2(squared=True) + 3.0 * Changes(),
    L2().in_units(0.125),
    (0.5 * L1() + 0.5 * L2(squared=True)).in_units(4.0),
]


@pytest.mark.parametrize("cost", COSTS, ids=repr)
@pytest.mark.parametrize("person", range(len(PEOPLE)))
def test_a_cost_counts_a_fill_wherever_it_lands(cost: AbstractCost, person: int) -> None:
    x = Factual(SPACE, PEOPLE[person])
    every = points(x)[:: 1 if person == 0 else 3]
    table = np.array([[point[name] for name in SPACE.names] for point in every])
    objectives = cost.objectives(SPACE, x.point, table)
    for point, objective in zip(every, objectives.tolist(), strict=True):
        expected = by_hand(cost, raw(x.point), raw(point))
        assert cost.value(SPACE, x.point, point) == pytest.approx(expected), raw(point)
        assert cost.from_objective(objective) == pytest.approx(expected), raw(point)


@draws(120)
@given(
    person=st.integers(0, len(PEOPLE) - 1),
    place=st.integers(0, len(COSTS) - 1),
    seed=st.integers(0, 10_000),
    read=st.booleans(),
)
def test_the_cheapest_point_is_that_of_enumeration(person: int, place: int, seed: int, read: bool) -> None:
    cost = COSTS[place]
    model, x = block(PEOPLE[person], read=read)
    weights = weights_of(x, np.random.default_rng(seed))
    model.cost = pyo.Objective(expr=cost.build(x) + wanted(x, weights))
    every = points(x)
    table = np.array([[point[name] for name in SPACE.names] for point in every])
    prices = cost.objectives(SPACE, x.point, table)
    prices += [sum(weights[pair] for pair in point.items()) for point in every]

    result = solve(model)

    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(prices.min(), abs=1e-5)
    found = x.decoded()
    assert found in every
    assert prices[every.index(found)] == pytest.approx(prices.min(), abs=1e-5)


@pytest.mark.parametrize("person", range(len(PEOPLE)))
def test_a_placed_point_costs_what_it_is_worth(person: int) -> None:
    for cost in COSTS:
        model, x = block(PEOPLE[person], read=True)
        model.cost = pyo.Objective(expr=cost.build(x))
        for point in points(x)[::17]:
            x.place(point)
            expected = cost.objectives(SPACE, x.point, point_row(SPACE, point))[0]
            assert pyo.value(model.cost) == pytest.approx(expected, abs=1e-9), (cost, raw(point))


# ---- a cut-off -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("person", range(len(PEOPLE)))
@pytest.mark.parametrize("budget", [0.0, 0.2, 1.5, 2.0, 6.0])
def test_a_cutoff_keeps_every_affordable_value(person: int, budget: float) -> None:
    x = Factual(SPACE, PEOPLE[person])
    for cost in COSTS:
        cutoff = CostCutoff(SPACE, x.point, cost, cost.to_objective(budget))
        kept = cutoff.narrowed(x.reach)
        for point in points(x)[::7]:
            if cost.value(SPACE, x.point, point) <= budget:
                assert all(kept[name].holds(value) for name, value in point.items()), (cost, raw(point))


@pytest.mark.parametrize("person", range(len(PEOPLE)))
def test_a_bound_of_the_gain_does_not_fail_beside_labels(person: int) -> None:
    x = Factual(SPACE, PEOPLE[person])
    cutoff = CostCutoff(SPACE, x.point, L1(), 1.0)
    numbers = {feature.name: np.array([1.0, 0.0]) for feature in SPACE if not feature.is_finite}
    tables = {
        f.name: np.array([range(len(f.levels)), [0.0] * len(f.levels)], dtype=float) for f in SPACE if f.is_finite
    }
    gains = cutoff.greatest_gain(numbers, tables, x.reach)
    assert gains[0] == math.inf
    assert not np.isnan(gains).any()


def test_a_missing_cell_that_stays_gains_nothing() -> None:
    space = FeatureSpace(
        [
            Feature("wage", kind="integer", lower=0, upper=3, missing="stays"),
            Feature("size", kind="ordinal", levels=("S", "M"), missing="stays"),
            Feature("hours", kind="integer", lower=0, upper=3),
        ]
    )
    home = space.row({"wage": None, "size": None, "hours": 1})
    cutoff = CostCutoff(space, home, L1(scale="none"), 1.0)
    slopes = {"wage": np.array([5.0]), "hours": np.array([2.0])}
    gains = cutoff.greatest_gain(slopes, {"size": np.array([[0.0, 9.0]])}, reach_of(space, home))
    assert gains == pytest.approx([2.0])


# ---- costs that have no place for a fill -----------------------------------------------------------------------------
NUMBERS = FeatureSpace(
    [
        Feature("wage", kind="integer", lower=0, upper=9, missing=True),
        Feature("hours", kind="integer", lower=0, upper=9, codes=(-1,)),
        Feature("size", kind="ordinal", levels=("S", "M"), missing=True),
    ]
)
ROWS = pd.DataFrame({"wage": [1, 2, 5, 3], "hours": [4, 1, 2, 2], "size": ["S", "M", "M", "S"]})
PLACELESS = [
    Mahalanobis([[1.0, 0.5], [0.5, 1.0]]),
    L1() + Mahalanobis([[1.0, 0.5], [0.5, 1.0]]),
    L1Mahalanobis([[1.0, 0.5], [0.5, 1.0]]),
    Percentile("max", ROWS),
    Percentile("total_log", ROWS),
]
WHOLE = {"wage": 3, "hours": 4, "size": "S"}


@pytest.mark.parametrize("cost", PLACELESS, ids=repr)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"wage": None}, "column 'wage' may be missing for this person. Use L1"),
        ({"hours": -1}, "column 'hours' may hold the code -1 for this person. Use L1"),
        ({"size": None}, "column 'size' may be missing for this person. Use L1"),
    ],
)
def test_a_fill_is_refused_by_name(cost: AbstractCost, change: dict[str, Any], words: str) -> None:
    who = type(cost).__name__.replace("Sum", "Mahalanobis")
    model = pyo.ConcreteModel()
    model.x = Factual(NUMBERS, WHOLE | change)
    with pytest.raises(InvalidValueError, match=f"{who} needs columns that hold amounts, but {words}"):
        cost.build(model.x)


@pytest.mark.parametrize("cost", PLACELESS, ids=repr)
def test_a_label_that_stays_costs_nothing(cost: AbstractCost) -> None:
    """Somebody whose column stays on a label is charged for the others as they would be with an amount there."""
    stays = NUMBERS.update("wage", missing="stays")
    home = stays.row({"wage": None, "hours": 4, "size": "S"})
    other = home | {"hours": 6.0, "size": 1.0}
    whole = NUMBERS.row(WHOLE)
    costs = cost.value(stays, home, other), cost.value(NUMBERS, whole, whole | {"hours": 6.0, "size": 1.0})
    assert costs[0] == pytest.approx(costs[1])
    model = pyo.ConcreteModel()
    model.x = Factual(stays, {"wage": None, "hours": 4, "size": "S"})
    model.x.numeric("hours").amount()
    if isinstance(cost, Percentile):
        model.x.numeric("hours").cut_around([1.0, 2.0, 4.0])
    model.cost = pyo.Objective(expr=cost.build(model.x))
    model.x.place(other)
    assert cost.from_objective(pyo.value(model.cost)) == pytest.approx(costs[0])


@pytest.mark.parametrize("cost", PLACELESS, ids=repr)
def test_a_fill_has_no_price_and_never_one_that_is_no_number(cost: AbstractCost) -> None:
    home = NUMBERS.row(WHOLE | {"wage": None, "hours": -1})
    table = np.array([[math.inf, -1.0, 0.0], [3.0, -1.0, 0.0], [math.inf, 2.0, 1.0]])
    assert cost.objectives(NUMBERS, home, table).tolist() == [0.0, math.inf, math.inf]

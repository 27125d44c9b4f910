"""Answers that differ, beside cells that may be missing or hold codes: rows against the words, by enumeration."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from rowtext import rows
from with_gaps import PEOPLE, SPACE, block, by_hand, is_label, points, raw, wanted, weights_of

from ceopt.formulations.columns import Price
from ceopt.formulations.constraints.diversity.apart import Apart
from ceopt.formulations.constraints.diversity.distinct import Distinct
from ceopt.formulations.constraints.diversity.diversity import (
    AbstractDiversity,
    OtherDecisions,
    OtherSupport,
    SomeStay,
    is_moved,
)
from ceopt.formulations.costs import L0, L1, Changes, Linf
from ceopt.formulations.linear_form import LinearForm
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.solvers import Status, solve

Row = dict[str, Any]
#: Whether an answer b is another one than a, for a person at home.
Other = Callable[[Row, Row, Row], bool]


def changed(home: Row, row: Row) -> set[str]:
    return {name for name in home if home[name] != row[name]}


def way(name: str, home: Any, value: Any) -> Any:
    """Return how a column moves, as "distinct" tells ways apart."""
    feature = SPACE[name]
    if is_label(name, value):
        return ("label", value)
    if feature.kind == "categorical":
        return value
    if is_label(name, home):
        return "filled"
    if feature.is_finite:
        return feature.levels.index(value) > feature.levels.index(home)
    return value > home


def distinct(home: Row, a: Row, b: Row) -> bool:
    before, after = changed(home, a), changed(home, b)
    if not before <= after:
        return True
    return before == after and any(way(name, home[name], a[name]) != way(name, home[name], b[name]) for name in before)


def at_least(cost: Any, least: float) -> Other:
    return lambda _home, a, b: by_hand(cost, a, b) >= least - 1e-9


WAYS: list[tuple[AbstractDiversity, Other]] = [
    (Distinct(), distinct),
    (OtherSupport(), lambda home, a, b: changed(home, a) != changed(home, b)),
    (OtherDecisions(), lambda _home, a, b: a != b),
    (SomeStay(), lambda home, a, b: not changed(home, a) <= changed(home, b)),
    (Apart(2.0, cost=L1(scale="none")), at_least(L1(scale="none"), 2.0)),
    (Apart(4.0, cost=L1(scale="none", count="columns")), at_least(L1(scale="none", count="columns"), 4.0)),
    (Apart(3.0, cost="l0"), at_least(L0(), 3.0)),
    (Apart(2.0, cost=Changes()), at_least(Changes(), 2.0)),
    (Apart(1.5, cost=Linf(scale="none")), at_least(Linf(scale="none"), 1.5)),
    (Apart(3.0, cost=Linf(scale="none")), at_least(Linf(scale="none"), 3.0)),
]


def program_of(person: int, *, read: bool) -> Any:
    """Return what a diversity takes of a program, without a model."""
    model, x = block(PEOPLE[person], read=read)
    predictor = SimpleNamespace(forests=())
    embedded = SimpleNamespace(make_cells=lambda: None, differs=LinearForm, predictor=predictor)
    return SimpleNamespace(model=model, x=x, embedded=embedded)


@draws(240)
@given(
    place=st.integers(0, len(WAYS) - 1),
    person=st.integers(0, len(PEOPLE) - 1),
    seed=st.integers(0, 10_000),
    count=st.integers(1, 2),
    read=st.booleans(),
)
def test_the_next_answer_is_the_cheapest_other_one(place: int, person: int, seed: int, count: int, read: bool) -> None:
    diversity, is_other = WAYS[place]
    program = program_of(person, read=read)
    draw = np.random.default_rng(seed)
    every = points(program.x)
    earlier = [every[k] for k in draw.integers(0, len(every), count)]
    earlier = [point for point in earlier if point != program.x.point] or [every[0]]
    for point in earlier:
        diversity.exclude(program, point)
    weights = weights_of(program.x, draw)
    cost = L1(scale="none")
    program.model.cost = pyo.Objective(expr=cost.build(program.x) + wanted(program.x, weights))
    home = raw(program.x.point)
    prices = []
    for point in every:
        if all(is_other(home, raw(one), raw(point)) for one in earlier):
            prices.append(cost.value(SPACE, program.x.point, point) + sum(weights[pair] for pair in point.items()))

    result = solve(program.model)

    if not prices:
        assert result.status is Status.INFEASIBLE
        return
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(min(prices), abs=1e-5)
    found = program.x.decoded()
    assert all(is_other(home, raw(one), raw(found)) for one in earlier)


@pytest.mark.parametrize("person", range(len(PEOPLE)))
@pytest.mark.parametrize("place", range(len(WAYS)), ids=lambda place: WAYS[place][0].text)
def test_points_differ_as_the_words_say(place: int, person: int) -> None:
    diversity, is_other = WAYS[place]
    program = program_of(person, read=False)
    every = points(program.x)
    draw = np.random.default_rng(person)
    home = program.x.point
    for first, second in zip(draw.permutation(len(every))[:60], draw.permutation(len(every))[:60], strict=True):
        a, b = every[first], every[second]
        expected = is_other(raw(home), raw(a), raw(b))
        assert diversity.differ(SPACE, home, a, b) == expected, (raw(home), raw(a), raw(b))
        assert not diversity.surely(SPACE, home, a, b) or expected


@pytest.mark.parametrize("person", range(len(PEOPLE)))
def test_leaving_a_point_counts_each_column_once(person: int) -> None:
    """What is refused by the user's model is left out: some column has another value, be it a label."""
    each = Price("fixed", 1.0, 1.0, 1.0)
    program = program_of(person, read=True)
    x = program.x
    every = points(x)
    point = every[len(every) // 2]
    forms = [is_moved(x, name, point[name], each) for name in SPACE.names]
    for other in every[::11]:
        x.place(other)
        assert [round(form.value(), 9) for form in forms] == [float(point[name] != other[name]) for name in SPACE.names]


def test_two_filled_answers_are_apart_by_their_amounts() -> None:
    wage = Feature("wage", kind="integer", lower=0, upper=9, missing=True, fill=1.5)
    space = FeatureSpace([wage, Feature("hours", kind="integer", lower=0, upper=9)])
    home, five, seven = ({"wage": value, "hours": 3.0} for value in (math.inf, 5.0, 7.0))
    apart = Apart(2.0, cost=L1(scale="none"))
    assert apart.between(space, five, seven) == 2.0
    assert apart.between(space, home, five) == apart.between(space, five, home) == 1.5
    assert apart.differ(space, home, five, seven)
    assert not apart.differ(space, home, home, seven)
    assert not Distinct().differ(space, home, five, seven)  # filled in is one way
    assert Distinct().differ(space, five, home, seven)  # it goes, or rises


def test_a_cell_that_is_filled_in_moves_one_way() -> None:
    model, x = block(PEOPLE[1])
    program = SimpleNamespace(model=model, x=x)
    Distinct().exclude(program, x.point | {"wage": 2.0, "size": 1.0, "job": 0.0})
    assert rows(model.distinct[1], "otherwise") == ["+1 level[job,cook] -1 missing[size] -1 missing[wage] <= 0"]
    model, x = block(PEOPLE[2])
    program = SimpleNamespace(model=model, x=x)
    Distinct().exclude(program, x.point | {"score": 1.0})
    Distinct().exclude(program, x.point | {"score": 0.5, "wage": math.inf})
    assert rows(model.distinct[1], "otherwise") == ["-1 code[score,-9.0] -1 code[score,0.5] <= -1"]
    assert rows(model.distinct[2], "otherwise") == ["+1 code[score,0.5] +1 missing[wage] <= 1"]


def test_the_row_of_a_distance_from_a_label_reads_no_number() -> None:
    model, x = block(PEOPLE[1])
    program = SimpleNamespace(model=model, x=x)
    Apart(2.0, cost=L1(scale="none")).exclude(program, x.point)
    assert model.apart[1].component("up") is None or ("wage" not in list(model.apart[1].up))
    assert x.numeric("wage").variable is None

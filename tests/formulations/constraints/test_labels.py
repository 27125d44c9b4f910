"""Rules beside cells that may be missing or hold codes: rows, check and the rule's own words admit the same points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from rowtext import rows
from scipy.optimize import linprog
from with_gaps import PEOPLE, SPACE, block, is_label, points, raw, wanted, weights_of

from ceopt.formulations import Factual, impose
from ceopt.formulations.constraints import (
    AbstractRule,
    AllowedRows,
    AllowedTransitions,
    AllowedValues,
    Causal,
    ExactlyOne,
    Hull,
    IfThen,
    Linear,
    MaxChanges,
)
from ceopt.formulations.constraints.causal import LinearEquation
from ceopt.formulations.costs import L1
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.solvers import Status, compile_model, solve
from ceopt.solvers.errors import InvalidValueError
from ceopt.solvers.registry import choose

Row = dict[str, Any]
#: Whether a row after is kept, for a person before.
Keeps = Callable[[Row, Row], bool]


# ---- each rule, and what it says in plain words ----------------------------------------------------------------------
def changes(before: Row, after: Row, *, double: bool = False) -> int:
    return sum(1 + (double and name == "job") for name in before if before[name] != after[name])


def listed(values: dict[str, list[Any]]) -> tuple[AbstractRule, Keeps]:
    def keeps(before: Row, after: Row) -> bool:
        del before
        return all(is_label(name, after[name]) or after[name] in some for name, some in values.items())

    return AllowedValues(values), keeps


def transitions(column: str, ways: dict[Any, list[Any]]) -> tuple[AbstractRule, Keeps]:
    def keeps(before: Row, after: Row) -> bool:
        return before[column] == after[column] or after[column] in ways.get(before[column], [])

    return AllowedTransitions(column, ways), keeps


def table(frame: dict[str, list[Any]], beyond: Any = "meet") -> tuple[AbstractRule, Keeps]:
    allowed = list(zip(*frame.values(), strict=True))

    def keeps(before: Row, after: Row) -> bool:
        own = tuple(before[name] for name in frame)
        row = tuple(after[name] for name in frame)
        return row in allowed or (beyond == "no_further" and row == own)

    return AllowedRows(list(frame), pd.DataFrame(frame, dtype=object), beyond=beyond), keeps


def holds(condition: tuple[Any, ...], before: Row, after: Row) -> bool:
    """Whether a condition holds, by the text of IfThen."""
    name, op, value = condition
    own = after[name]
    if op == "changed":
        return (before[name] != own) == value
    if op in {"==", "in"}:
        return own in (value if op == "in" else [value])
    if op == "!=":
        return own != value and (is_label(name, value) or not is_label(name, own))
    if is_label(name, own):
        return False
    if SPACE[name].is_finite:
        own, value = SPACE[name].levels.index(own), SPACE[name].levels.index(value)
    return bool(own <= value if op == "<=" else own >= value)


def no_further(condition: tuple[Any, ...], before: Row, after: Row, *, toward: bool) -> bool:
    name, op, _ = condition
    one, other = before[name], after[name]
    if one == other:
        return True
    if op not in {"<=", ">="} or is_label(name, one) or is_label(name, other):
        return False
    if SPACE[name].is_finite:
        one, other = SPACE[name].levels.index(one), SPACE[name].levels.index(other)
    return bool((other > one) == ((op == ">=") == toward))


def implication(condition: Any, conclusion: Any, beyond: Any = "meet") -> tuple[AbstractRule, Keeps]:
    def is_broken(before: Row, after: Row) -> bool:
        return holds(condition, before, after) and not holds(conclusion, before, after)

    def keeps(before: Row, after: Row) -> bool:
        if not is_broken(before, after):
            return True
        if beyond == "meet" or not is_broken(before, before):
            return False
        return no_further(condition, before, after, toward=False) and no_further(conclusion, before, after, toward=True)

    return IfThen(condition, conclusion, beyond=beyond), keeps


DATA = pd.DataFrame(
    {
        "wage": [0, 3, 2, 1, 1, 2],
        "score": [0.0, 1.0, 1.5, 1.5, 0.5, -9],
        "size": ["S", "M", "L", "?", "L", "L"],
        "job": ["cook", "nurse", "nurse", "cook", "cook", "cook"],
        "owner": [False, True, True, False, True, True],
    }
)


def near(norm: str, radius: float) -> tuple[AbstractRule, Keeps]:
    """A hull of the first three rows of DATA, which alone lack nothing."""
    sizes = {"wage": 2.0, "score": 0.5, "size": 2.0, "owner": 1.0}
    whole = DATA.iloc[:3]

    def keeps(before: Row, after: Row) -> bool:
        del before
        ends: list[tuple[np.ndarray[Any, Any], float]] = []
        for name, size in sizes.items():
            if not is_label(name, after[name]):
                known = [SPACE[name].to_coordinate(value) / size for value in whole[name]]
                ends.append((np.array(known), SPACE[name].to_coordinate(after[name]) / size))
        if not is_label("job", after["job"]):
            for level in ("cook", "nurse"):
                ends.append(((whole["job"] == level).to_numpy(dtype=float), float(after["job"] == level)))
        return not ends or distance(ends, norm) <= radius + 1e-7

    mapping = {"wage": 2.0, "score": 0.5, "size": 2.0}
    return Hull(DATA, radius=radius, norm=norm, scale=mapping), keeps  # type: ignore[arg-type]


def distance(ends: list[tuple[np.ndarray[Any, Any], float]], norm: str) -> float:
    """Return how far a point is from three others' hull, (values of the three, own value) by column."""
    d = len(ends)
    points, own = np.array([known for known, _ in ends]), np.array([value for _, value in ends])
    width = d if norm == "l1" else 1
    sizes = np.eye(d) if norm == "l1" else np.ones((d, 1))
    above = np.hstack([points, -sizes])
    below = np.hstack([-points, -sizes])
    result = linprog(
        np.repeat([0.0, 1.0], [3, width]),
        A_ub=np.vstack([above, below]),
        b_ub=np.concatenate([own, -own]),
        A_eq=[[1.0] * 3 + [0.0] * width],
        b_eq=[1.0],
    )
    return float(result.fun)


RULES: list[tuple[AbstractRule, Keeps]] = [
    (MaxChanges(2), lambda before, after: changes(before, after) <= 2),
    (MaxChanges(3, count="columns"), lambda before, after: changes(before, after, double=True) <= 3),
    listed({"wage": [0, 3], "score": [1.5, -9], "size": ["L"], "job": ["nurse"]}),
    listed({"wage": [2], "owner": [True]}),
    listed({"score": [7.0]}),
    listed({"score": [-9]}),
    transitions("size", {"S": ["M"], "M": ["L", None], None: ["S"]}),
    transitions("job", {"cook": ["nurse", None], None: ["cook", "none"], "none": ["nurse"]}),
    transitions("owner", {None: [True]}),
    table({"wage": [None, 1, 2, None], "size": ["M", "S", "?", None]}),
    table({"score": [-9, 0.5, 1.5, 0.0], "job": ["none", "cook", None, "nurse"]}),
    table({"score": [-9, 1.5], "owner": [True, None]}, "no_further"),
    table({"wage": [3, 2], "job": ["nurse", "nurse"]}, "no_further"),
    implication(("wage", "<=", 2), ("size", ">=", "M")),
    implication(("size", ">=", "M"), ("wage", ">=", 2), "no_further"),
    implication(("wage", "changed", True), ("score", "changed", False)),
    implication(("size", "changed", False), ("wage", "changed", True)),
    implication(("wage", "==", None), ("job", "!=", "cook")),
    implication(("wage", "!=", None), ("score", "!=", 1.0)),
    implication(("score", "in", [-9, 1.5]), ("owner", "==", True)),
    implication(("job", "in", ["none", None]), ("score", "!=", -9), "no_further"),
    near("l1", 0.0),
    near("l1", 0.4),
    near("linf", 0.2),
]
_CONDITIONS = [
    ("wage", "<=", 1), ("wage", ">=", 1), ("wage", "==", 1), ("wage", "!=", 1), ("wage", "in", [0, None]),
    ("wage", "==", None), ("wage", "changed", True), ("score", ">=", 1.0), ("score", "<=", 0.0), ("score", "==", 0.5),
    ("score", "!=", 0.5), ("score", "in", [1.0, -9]), ("score", "changed", False), ("size", "<=", "M"),
    ("size", ">=", "M"), ("size", "!=", "?"), ("size", "in", ["L", None]), ("size", "changed", True),
    ("job", "!=", None), ("job", "==", "none"), ("job", "changed", True), ("owner", "==", True), ("owner", "!=", None),
]  # fmt: skip


# ---- rows, check and words -------------------------------------------------------------------------------------------
#: So many points are looked at; of those that keep a rule, and of those that break it, so many by its rows.
_LOOKED_AT, _SOLVED = 200, 6


def check_points(rule: AbstractRule, keeps: Keeps, person: int, *, read: bool) -> None:
    """Each of some points keeps the rule's rows, its own check and its words, or none of them."""
    model, x = block(PEOPLE[person], read=read)
    model.rule = impose(rule, x)
    every = points(x)
    pairs = list(dict.fromkeys(pair for point in every for pair in point.items()))
    taken = {pair: x.coordinate(pair[0]).equals(pair[1]).expression() for pair in pairs}
    moving = [pair for pair in pairs if not isinstance(taken[pair], float)]
    model.held = pyo.Var(moving, initialize=0.0)
    model.pin = pyo.Constraint(moving, rule=lambda m, *pair: taken[pair] == m.held[pair])
    compiled = compile_model(model, data=[model.held])
    session = choose("auto", compiled).session(compiled.problem_class)(compiled)
    home = x.point
    draw = np.random.default_rng(person)
    kept, broken = [], []
    looked_at = draw.permutation(len(every))[:_LOOKED_AT].tolist()
    for place in looked_at:
        point = every[place]
        is_kept = keeps(raw(home), raw(point))
        (kept if is_kept else broken).append(place)
        assert (rule.violation(SPACE, home, point) <= 0.0) == is_kept, (rule, raw(home), raw(point))
        assert (rule.missed(SPACE, home, point) <= 0.0) == is_kept
    rows = np.array([[every[place][name] for name in SPACE.names] for place in looked_at])
    assert rule.keeps(SPACE, home, rows).tolist() == [place in kept for place in looked_at]
    for places, status in ((kept, Status.OPTIMAL), (broken, Status.INFEASIBLE)):
        for place in places[:_SOLVED]:
            compiled.set_data(model.held, {pair: float(every[place][pair[0]] == pair[1]) for pair in moving})
            assert session.solve().status is status, (rule, raw(home), raw(every[place]))


@pytest.mark.parametrize("person", range(len(PEOPLE)))
@pytest.mark.parametrize("place", range(len(RULES)), ids=lambda place: f"{place}-{type(RULES[place][0]).__name__}")
def test_rows_and_check_say_what_the_rule_says(place: int, person: int) -> None:
    rule, keeps = RULES[place]
    rule.check(SPACE)
    check_points(rule, keeps, person, read=(place + person) % 2 == 0)


@draws(60)
@given(
    first=st.sampled_from(_CONDITIONS),
    then=st.sampled_from(_CONDITIONS),
    beyond=st.sampled_from(["meet", "no_further"]),
    person=st.integers(0, len(PEOPLE) - 1),
    read=st.booleans(),
)
def test_any_condition_beside_any_other(first: Any, then: Any, beyond: Any, person: int, read: bool) -> None:
    check_points(*implication(first, then, beyond), person, read=read)


@draws(100)
@given(
    chosen=st.lists(st.integers(0, len(RULES) - 1), min_size=1, max_size=3, unique=True),
    person=st.integers(0, len(PEOPLE) - 1),
    seed=st.integers(0, 10_000),
    read=st.booleans(),
)
def test_the_cheapest_point_under_rules_is_that_of_enumeration(
    chosen: list[int], person: int, seed: int, read: bool
) -> None:
    model, x = block(PEOPLE[person], read=read)
    pairs = [RULES[place] for place in chosen]
    for place, (rule, _) in enumerate(pairs):
        model.add_component(f"rule_{place}", impose(rule, x))
    weights = weights_of(x, np.random.default_rng(seed))
    cost = L1(scale="none")
    model.cost = pyo.Objective(expr=cost.build(x) + wanted(x, weights))
    home = raw(x.point)
    pairs.sort(key=lambda pair: isinstance(pair[0], Hull))  # which takes longest to tell
    prices = []
    for point in points(x):
        if all(keeps(home, raw(point)) for _, keeps in pairs):
            prices.append(cost.value(SPACE, x.point, point) + sum(weights[pair] for pair in point.items()))

    result = solve(model)

    if not prices:
        assert result.status is Status.INFEASIBLE
        return
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(min(prices), abs=1e-5)
    found = raw(x.decoded())
    assert all(keeps(home, found) for _, keeps in pairs), found


@pytest.mark.parametrize("rule", [rule for rule, _ in RULES if rule.mends], ids=repr)
@pytest.mark.parametrize("person", range(len(PEOPLE)))
def test_mending_keeps_labels(rule: AbstractRule, person: int) -> None:
    x = Factual(SPACE, PEOPLE[person])
    every = points(x)
    given = np.array([list(point.values()) for point in every])
    mended = rule.mended(SPACE, x.point, given)
    for j, feature in enumerate(SPACE):
        is_off = feature.are_labels(given[:, j])
        assert (mended[is_off, j] == given[is_off, j]).all()
    assert not np.isnan(mended).any()


# ---- the rows themselves ---------------------------------------------------------------------------------------------
def small(**options: Any) -> FeatureSpace:
    return FeatureSpace([Feature("term", kind="integer", lower=1, upper=60, **options)])


def test_listed_values_leave_a_missing_cell_alone() -> None:
    model = pyo.ConcreteModel()
    model.x = Factual(small(missing=True), {"term": None})
    model.offer = impose(AllowedValues({"term": [12, 24]}), model.x)
    assert rows(model.offer) == [
        "+1 cut[term,'11'] +1 missing[term] = 1",
        "-1 cut[term,'12'] +1 cut[term,'23'] = 0",
        "-1 cut[term,'24'] = 0",
    ]


def test_a_table_has_a_row_for_a_missing_cell() -> None:
    model = pyo.ConcreteModel()
    model.x = Factual(small(missing=True), {"term": None})
    model.real = impose(AllowedRows(["term"], pd.DataFrame({"term": [12.0, np.nan]})), model.x)
    assert rows(model.real, "agree") == [
        "+1 cut[term,'11'] -1 cut[term,'12'] -1 row[0] = 0",
        "+1 missing[term] -1 row[1] = 0",
    ]


def test_a_hull_bridges_the_row_of_a_column_that_may_be_missing() -> None:
    model = pyo.ConcreteModel()
    model.x = Factual(small(missing=True), {"term": None})
    model.near = impose(Hull(pd.DataFrame({"term": [11, 31]}), scale={"term": 10.0}), model.x)
    # at 1, where the amount rests, it is 1 to 3 away from the points
    assert rows(model.near, "point", "least_unknown", "most_unknown") == [
        "+1 unknown[term] -2 weight[1] +0.1 x[term] = 1.1",
        "-1 missing[term] +1 unknown[term] >= 0",
        "-3 missing[term] +1 unknown[term] <= 0",
    ]


def test_a_hull_has_no_row_of_a_column_that_stays_missing() -> None:
    space = FeatureSpace([*small(missing="stays"), Feature("wage", kind="continuous", lower=0, upper=9)])
    model = pyo.ConcreteModel()
    model.x = Factual(space, {"term": None, "wage": 1.0})
    model.near = impose(Hull(pd.DataFrame({"term": [11, 31], "wage": [2.0, 4.0]})), model.x)
    assert list(model.near.point) == ["wage"]
    rule = Hull(pd.DataFrame({"term": [11, 31], "wage": [2.0, 4.0]}))
    assert rule.violation(space, None, {"term": math.inf, "wage": 3.0}) == 0.0
    assert rule.violation(space, None, {"term": math.inf, "wage": 5.0}) > 0.0


def test_rows_with_gaps_are_no_points_of_a_hull() -> None:
    rule = Hull(pd.DataFrame({"term": [5.0, np.nan, 40.0]}))
    with pytest.warns(UserWarning, match="Hull leaves out 1 of 3 rows of data"):
        rule.check(small(missing=True))
    gaps = rule.fitted(small(missing=True), lambda: np.array([[5.0]]))
    assert gaps.violation(small(missing=True), None, {"term": 41.0}) > 0.0
    learned = Hull().fitted(small(missing=True), lambda: np.array([[5.0], [math.inf], [7.0]]))
    assert learned.violation(small(missing=True), None, {"term": 6.0}) == 0.0
    assert learned.violation(small(missing=True), None, {"term": 8.0}) > 0.0


def test_a_hull_of_no_whole_row_is_refused() -> None:
    rule = Hull(pd.DataFrame({"term": [-1, -1]}))
    with pytest.raises(InvalidValueError, match="Hull needs a row of amounts, but each of its 2 rows lacks a cell or"):
        rule.check(small(codes=(-1,)))


def test_clusters_of_rows_with_codes_keep_their_labels() -> None:
    rule = Hull(pd.DataFrame({"term": [-1, 5, 40]}), clusters=["off", "few", "many"])
    space = small(codes=(-1,))
    assert rule.distances(space, {"term": 5.0})["few"] == 0.0
    assert "off" not in rule.distances(space, {"term": 5.0})
    assert set(rule.distances(space, {"term": -1.0}).values()) == {0.0}


def test_an_order_beside_a_missing_value_is_refused() -> None:
    rule = IfThen(("wage", "<=", None), ("owner", "==", True))
    with pytest.raises(InvalidValueError, match="IfThen needs a value for op '<=', but that on column 'wage' is miss"):
        rule.check(SPACE)


# ---- rules of amounts ------------------------------------------------------------------------------------------------
PLAIN = FeatureSpace(
    [
        Feature("wage", kind="integer", lower=0, upper=9, missing=True),
        Feature("debt", kind="integer", lower=0, upper=9, codes=(-1,)),
        Feature("rank", kind="ordinal", levels=("A", "B", "?"), codes=("?",), codes_in_reach=True),
        Feature("red", kind="binary", levels=(0, 1), missing="may_vanish"),
        Feature("blue", kind="binary", levels=(0, 1)),
    ]
)
WHOLE = {"wage": 3, "debt": 4, "rank": "A", "red": 1, "blue": 0}
OF_AMOUNTS = [
    (Linear({"wage": 1.0}, "<=", 3.0), {"wage": None}, "column 'wage' may be missing"),
    (Linear({"wage": 1.0}, "==", 3.0, beyond="no_further"), {"wage": None}, "column 'wage' may be missing"),
    (Linear({"wage": 1.0, "debt": -1.0}, ">=", 0.0), {"debt": -1}, "column 'debt' may hold the code -1"),
    (Linear({"rank": 1.0}, "<=", 1.0), {}, r"column 'rank' may hold the code '\?'"),
    (ExactlyOne(["red", "blue"]), {}, "column 'red' may be missing"),
    (Causal({"debt": LinearEquation({"wage": 1.0})}), {"wage": None}, "column 'wage' may be missing"),
    (Causal({"debt": LinearEquation({"wage": 1.0})}, intervention="hard"), {"debt": -1}, "column 'debt' may hold"),
]


@pytest.mark.parametrize(("rule", "change", "words"), OF_AMOUNTS, ids=lambda part: type(part).__name__)
def test_a_column_that_may_hold_no_amount_is_refused_by_name(rule: AbstractRule, change: Row, words: str) -> None:
    rule.check(PLAIN)  # others are asked
    model = pyo.ConcreteModel()
    model.x = Factual(PLAIN, WHOLE | change)
    who = type(rule).__name__
    with pytest.raises(
        InvalidValueError, match=f"{who} needs columns that hold amounts, but {words}.* for this person"
    ):
        impose(rule, model.x)


@pytest.mark.parametrize(("rule", "change", "words"), OF_AMOUNTS, ids=lambda part: type(part).__name__)
def test_such_a_rule_is_broken_where_there_is_no_amount(rule: AbstractRule, change: Row, words: str) -> None:
    del words
    labels = {"wage": None, "debt": -1, "rank": "?", "red": None}
    home = PLAIN.row(WHOLE | change)
    other = PLAIN.row({**WHOLE, **labels})
    assert rule.violation(PLAIN, home, other) > 0.0
    assert rule.missed(PLAIN, home, other) > 0.0
    if not rule.needs_factual:
        assert rule.violation(PLAIN, None, other) > 0.0
    every = np.array([list(other.values()), list(home.values())])
    assert not np.isnan(rule.mended(PLAIN, home, every)).any()
    assert not np.isnan(rule.charged(PLAIN, home, every)).any()


@pytest.mark.parametrize("rule", [rule for rule, change, _ in OF_AMOUNTS if change], ids=repr)
def test_who_holds_amounts_is_asked(rule: AbstractRule) -> None:
    model = pyo.ConcreteModel()
    model.x = Factual(PLAIN, WHOLE)
    model.rule = impose(rule, model.x)
    assert rows(model.rule)


def test_a_column_that_may_not_be_acted_on_stays_on_its_label() -> None:
    rule = Causal({"debt": LinearEquation({"blue": 1.0})}, actionable=["blue", "debt"])
    model = pyo.ConcreteModel()
    model.x = Factual(PLAIN, WHOLE | {"wage": None})
    model.rule = impose(rule, model.x)
    assert rows(model.rule, "stays") == [
        "+1 level[red,1.0] = 1",
        "+1 missing[wage] = 1",
        "-1 at_least[rank,B] = 0",
    ]
    home = model.x.point
    assert rule.violation(PLAIN, home, home) == 0.0
    assert rule.violation(PLAIN, home, home | {"wage": 2.0}) > 0.0
    assert rule.violation(PLAIN, home, home | {"red": math.inf}) > 0.0
    free = Causal({"debt": LinearEquation({"blue": 1.0})}, intervention="soft", slack=1.0)
    assert free.actions(PLAIN, home, home | {"wage": 2.0}) == {"wage": 2}
    assert free.actions(PLAIN, home, home) == {}


def test_a_code_of_a_category_is_a_level_of_a_fitted_equation() -> None:
    data = pd.DataFrame({"job": ["cook", "?", "vet", "cook"], "pay": [1.0, 2.0, 3.0, 1.0]})
    jobs = Feature("job", kind="categorical", levels=("cook", "vet", "?"), codes=("?",))
    space = FeatureSpace([jobs, Feature("pay", kind="continuous", lower=0, upper=9)])
    rule = Causal.learn({"pay": ["job"]}, data, space=space)
    model = pyo.ConcreteModel()
    model.x = Factual(space, {"job": "?", "pay": 2.0})
    model.rule = impose(rule, model.x)
    home = model.x.point
    assert rule.violation(space, home, home | {"job": 1.0, "pay": 3.0}) == 0.0


def test_names_of_rules_and_levels_are_shown_with_gaps() -> None:
    for rule, _ in RULES:
        assert "nan" not in rule.sentence().lower()
    for first, second in itertools.pairwise(rule.sentence() for rule, _ in RULES):
        assert first != second

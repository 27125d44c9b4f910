"""Each way to differ, against trying everything: the next answer is the best of those that differ from all before."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st

import ceopt
from ceopt import Apart
from ceopt.formulations.constraints import AbstractRule, Linear, MaxChanges
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.oracle.model import ModelOracle
from ceopt.search.solve_program import ProgramSolver
from ceopt.solvers.problem import Outcome, Stop

SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("hours", kind="integer", lower=0, upper=4, weight=(1.0, 2.0)),
        ceopt.Feature("rate", kind="continuous", lower=0, upper=2, step=0.5, range=4.0),
        ceopt.Feature("job", kind="categorical", levels=(1, 3, 2), weight=2.0),
        ceopt.Feature("size", kind="ordinal", levels=(0, 1, 5), direction="increasing"),
        ceopt.Feature("owner", kind="binary", levels=(0, 1)),
    ]
)
NAMES = SPACE.names
COST = ceopt.L1(scale="none")
RANGES: dict[str, list[Any]] = {
    "hours": [0, 1, 2, 3, 4], "rate": [0.0, 0.5, 1.0, 1.5, 2.0], "job": [1, 3, 2], "size": [0, 1, 5], "owner": [0, 1]
}  # fmt: skip
#: Every row there is: all answers are among them.
ROWS = [dict(zip(NAMES, values, strict=True)) for values in itertools.product(*RANGES.values())]


def moves(a: dict[str, Any], b: dict[str, Any], *, ordinal: float) -> list[float]:
    """What each column's way from a to b costs by its weights; a rank counts ``ordinal``."""
    up = {"hours": 2.0, "rate": 1.0, "job": 2.0, "size": ordinal, "owner": 1.0}
    down = up | {"hours": 1.0}
    places = {name: (RANGES["size"].index(a[name]), RANGES["size"].index(b[name])) for name in ("size",)}
    places["job"] = (0, int(a["job"] != b["job"]))
    gaps = [np.subtract(*reversed(places.get(name, (a[name], b[name])))) for name in NAMES]
    return [float(up[n] * max(gap, 0) + down[n] * max(-gap, 0)) for n, gap in zip(NAMES, gaps, strict=True)]


def cost(a: dict[str, Any], b: dict[str, Any]) -> float:
    return sum(moves(a, b, ordinal=0.5))  # levels less one, whatever the scale


def count(a: dict[str, Any], b: dict[str, Any]) -> float:
    weights = {"hours": 2.0 if b["hours"] > a["hours"] else 1.0, "rate": 1.0, "job": 2.0, "size": 1.0, "owner": 1.0}
    return sum(weights[name] for name in NAMES if a[name] != b[name])


def greatest(a: dict[str, Any], b: dict[str, Any]) -> float:
    return max(moves(a, b, ordinal=0.5))


def changed(row: dict[str, Any], point: dict[str, Any]) -> tuple[bool, ...]:
    return tuple(point[name] != row[name] for name in NAMES)


def decisions(row: dict[str, Any], point: dict[str, Any]) -> tuple[Any, ...]:
    """Levels, and of numbers that nothing cuts whether they change."""
    numbers = [point[name] != row[name] for name in ("hours", "rate")]
    return (*numbers, *(point[name] for name in ("job", "size", "owner")))


def is_distinct(row: dict[str, Any], a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Tell whether b leaves a column that a changes, or changes the same ones and one of them otherwise."""
    before, after = changed(row, a), changed(row, b)
    if any(was and not now for was, now in zip(before, after, strict=True)):
        return True
    others = [name for name, was in zip(NAMES, before, strict=True) if was and name != "job"]
    places = [[RANGES[name].index(point[name]) for name in others] for point in (row, a, b)]
    turns = [(one > home) != (other > home) for home, one, other in zip(*places, strict=True)]
    return before == after and (any(turns) or (a["job"] != row["job"] and a["job"] != b["job"]))


#: Diversity -> whether b is another answer than a, for a person at a row.
WAYS: dict[Any, Callable[..., bool]] = {
    "pool": lambda row, a, b: decisions(row, a) != decisions(row, b),
    "support": lambda row, a, b: changed(row, a) != changed(row, b),
    "distinct": is_distinct,
    Apart(2.0, cost=COST): lambda _, a, b: cost(a, b) >= 2.0,
    Apart(2.5, cost="l0"): lambda _, a, b: count(a, b) >= 2.5,
    Apart(1.5, cost=ceopt.Linf(scale="none")): lambda _, a, b: greatest(a, b) >= 1.5,
}


@st.composite
def models(draw: Any) -> Any:
    """Draw a linear model or a small network, with whole numbers in it."""
    numbers = st.integers(-2, 2).map(float)
    if draw(st.booleans()):
        return Affine([draw(numbers) for _ in NAMES], draw(numbers))
    first = [[draw(numbers) for _ in NAMES] for _ in range(2)]
    return ReluNetwork([first, [[draw(numbers), draw(numbers)]]], [[draw(numbers), draw(numbers)], [draw(numbers)]])


@st.composite
def some_rules(draw: Any) -> tuple[AbstractRule, ...]:
    few = [MaxChanges(draw(st.integers(1, 3)))] if draw(st.booleans()) else []
    rows = [Linear({"hours": 1.0, "owner": -2.0}, "<=", draw(st.integers(0, 3)))] if draw(st.booleans()) else []
    return (*few, *rows)


#: Keeps every row, and reads both numbers: by set of changes, one that nothing reads stays where it is.
READ = Linear({"hours": 1.0, "rate": 1.0}, ">=", 0.0, name="read")


def keeps(rules: tuple[AbstractRule, ...], row: dict[str, Any], point: dict[str, Any]) -> bool:
    for rule in rules:
        if isinstance(rule, MaxChanges) and sum(changed(row, point)) > rule.k:
            return False
        if isinstance(rule, Linear) and rule is not READ and point["hours"] - 2.0 * point["owner"] > rule.rhs:
            return False
    return RANGES["size"].index(point["size"]) >= RANGES["size"].index(row["size"])


def allowed(model: Any, row: dict[str, Any], rules: tuple[AbstractRule, ...], wanted: float) -> list[dict[str, Any]]:
    scores = model.score([[point[name] for name in NAMES] for point in ROWS])
    return [p for p, s in zip(ROWS, scores, strict=True) if s >= wanted + 0.125 and keeps(rules, row, p)]


def is_optimal_rank_by_rank(
    result: ceopt.SolutionSet, row: dict[str, Any], n: int, good: list[dict[str, Any]], other: Callable[..., bool]
) -> None:
    found: list[dict[str, Any]] = []
    for answer in result:
        left = [p for p in good if all(other(row, earlier, p) for earlier in found)]
        assert answer.cost == pytest.approx(min(cost(row, p) for p in left))
        assert answer.bound == pytest.approx(answer.cost)
        point = {name: answer.values[name] for name in NAMES}
        assert any(point == p for p in left), "not an answer, or no other than one before"
        found.append(point)
    assert result.complete
    if len(result) < n:
        assert not [p for p in good if all(other(row, earlier, p) for earlier in found)]
        assert not found or "Proved: there are no more" in result.reason
    assert all(b.cost >= a.cost - 1e-9 for a, b in itertools.pairwise(result))


@pytest.mark.long(every=2)
@pytest.mark.parametrize("how", WAYS, ids=str)
@draws(25)
@given(model=models(), row=st.sampled_from(ROWS), rules=some_rules(), n=st.integers(2, 5), data=st.data())
def test_linear_models_and_networks(how: Any, model: Any, row: Any, rules: Any, n: int, data: Any) -> None:
    scores = model.score([[point[name] for name in NAMES] for point in ROWS])
    wanted = data.draw(st.sampled_from(sorted(set(scores.tolist())))) - 0.25
    good = allowed(model, row, rules, wanted)
    if row in good:
        return
    read = (READ,) if how in ("pool", "support") else ()

    result = ceopt.explain(
        model, row, SPACE, target=ceopt.AtLeast(wanted), n=n, cost=COST, diversity=how, margin=0.125,
        constraints=(*rules, *read),
    )  # fmt: skip

    is_optimal_rank_by_rank(result, row, n, good, WAYS[how])
    if how == "distinct":
        assert [answer.cost for answer in result] == pytest.approx(distinct_costs(row, good, n))


def distinct_costs(row: dict[str, Any], good: list[dict[str, Any]], n: int) -> list[float]:
    """Return the costs of the ranks, which no tie changes: of one cost that with the fewest changes comes first."""
    found: list[dict[str, Any]] = []
    while len(found) < n:
        left = [p for p in good if all(is_distinct(row, earlier, p) for earlier in found)]
        if not left:
            break
        found.append(min(left, key=lambda p: (round(cost(row, p), 9), sum(changed(row, p)))))
    return [cost(row, p) for p in found]


def leaf() -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda value: {"value": float(value)}, st.integers(-2, 2))


def tree() -> st.SearchStrategy[dict[str, Any]]:
    def grow(child: Any) -> st.SearchStrategy[dict[str, Any]]:
        split = {"feature": st.integers(0, 4), "threshold": st.integers(0, 5).map(lambda k: k / 2 + 0.25)}
        return st.fixed_dictionaries({**split, "left": child, "right": child})

    return st.recursive(leaf(), grow, max_leaves=6)


@pytest.mark.parametrize("how", [way for way in WAYS if way not in ("pool", "support")], ids=str)
@draws(25)
@given(
    trees=st.lists(tree(), min_size=1, max_size=2), row=st.sampled_from(ROWS), rules=some_rules(), n=st.integers(2, 4)
)
def test_trees_at_a_distance_and_distinct(how: Any, trees: Any, row: Any, rules: Any, n: int) -> None:
    """To be far enough a column may move inside a cell, or one that no tree splits; to be distinct none does."""
    model = TreeEnsemble(trees, n_inputs=5)
    good = allowed(model, row, rules, 0.5)
    if row in good:
        return

    result = ceopt.explain(
        model, row, SPACE, target=ceopt.AtLeast(0.5), n=n, cost=COST, diversity=how, margin=0.125, constraints=rules
    )

    is_optimal_rank_by_rank(result, row, n, good, WAYS[how])
    if how == "distinct":
        assert [answer.cost for answer in result] == pytest.approx(distinct_costs(row, good, n))


# ---- what is claimed ------------------------------------------------------------------------------------------------
ROW = {"hours": 0, "rate": 0.0, "job": 1, "size": 0, "owner": 0}
MODEL = Affine([1.0, 1.0, 0.0, 1.0, 1.0], -2.5, labels=("no", "yes"))
WORDS: dict[str, Any] = {"target": "yes", "cost": COST, "n": 4}


@pytest.mark.long(every=2)
@pytest.mark.parametrize("how", WAYS, ids=str)
def test_out_of_time_is_not_complete(how: Any, monkeypatch: Any) -> None:
    """Answers in hand stay, and the reason says why there are no more."""
    run = ProgramSolver.run

    def late(self: Any, ask: Any, seconds: float) -> Any:
        attempt = run(self, ask, seconds)
        if len(ask.barred) < 2:
            return attempt
        return replace(attempt, point=None, outcome=Outcome(status=Stop.TIME_LIMIT, message="Too late."))

    monkeypatch.setattr(ProgramSolver, "run", late)
    result = ceopt.explain(MODEL, ROW, SPACE, diversity=how, **WORDS)

    assert (result.status, len(result), result.complete) == ("optimal", 2, False)
    assert "No more, as: Too late." in result.reason


def test_an_answer_that_is_not_proved_says_so_itself(monkeypatch: Any) -> None:
    """Its bound is at least that of the answer before it, as what is left to choose from shrinks."""
    run = ProgramSolver.run

    def vague(self: Any, ask: Any, seconds: float) -> Any:
        attempt = run(self, ask, seconds)
        if not ask.barred:
            return attempt
        return replace(attempt, outcome=replace(attempt.outcome, status=Stop.TIME_LIMIT, bound=0.0, message="Late."))

    monkeypatch.setattr(ProgramSolver, "run", vague)
    result = ceopt.explain(MODEL, ROW, SPACE, diversity=Apart(3.0, cost=COST), **WORDS | {"n": 2})

    assert result.status == "optimal"
    assert result[0].gap == 0.0
    assert result[1].bound == result[0].cost < result[1].cost
    assert result[1].gap == pytest.approx((result[1].cost - result[0].cost) / result[1].cost)


def test_without_bounds_the_answers_in_hand_stay() -> None:
    wages = ceopt.FeatureSpace([ceopt.Feature("wage", kind="continuous", mad=1.0), SPACE["owner"]])
    result = ceopt.explain(
        Affine([1.0, 0.0], -3.0, labels=("no", "yes")), {"wage": 1.0, "owner": 0}, wages, target="yes", n=3,
        diversity=Apart(0.5),
    )  # fmt: skip
    assert (result.status, len(result), result.complete) == ("optimal", 1, False)
    assert "Apart needs finite bounds, but column 'wage'" in result.reason


@pytest.mark.usefixtures("by_program")
def test_what_the_solver_takes_for_far_enough_is_asked_for_again(monkeypatch: Any) -> None:
    """Rows that are right to a tolerance only: first the solver is to be exact, then the rows ask for a trace more."""
    pay = ceopt.FeatureSpace([ceopt.Feature("pay", kind="continuous", lower=0.0, upper=9.0)])
    words = {"target": "yes", "n": 2, "diversity": Apart(2.0, cost=COST), "cost": COST}
    model = Affine([1.0], -3.0, labels=("no", "yes"))
    run, seen = ProgramSolver.run, []

    def sloppy(self: Any, ask: Any, seconds: float) -> Any:
        attempt = run(self, ask, seconds)
        if ask.is_hard_limit:  # what the margin left out: nothing
            return attempt
        seen.append((ask.exact, *(how.extra for _, how in ask.barred)))
        short = 1.5e-5 if ask.barred else 0.0
        return replace(attempt, point={"pay": attempt.point["pay"] - short})

    monkeypatch.setattr(ProgramSolver, "run", sloppy)
    result = ceopt.explain(model, {"pay": 1.0}, pay, **words)

    assert seen == [(False,), (False, 0.0), (True, 0.0), (True, 1e-6), (True, pytest.approx(1e-5))]
    assert len(result) == 2
    assert result[1].values["pay"] - result[0].values["pay"] >= 2.0 * (1.0 - 1e-6)
    assert result[1].bound == pytest.approx(result[0].cost + 2.0, abs=1e-7)  # of the first rows, not the firmer
    assert result.complete


def test_a_point_that_stays_too_near_is_never_an_answer(monkeypatch: Any) -> None:
    pay = ceopt.FeatureSpace([ceopt.Feature("pay", kind="continuous", lower=0.0, upper=9.0)])
    run = ProgramSolver.run

    def stuck(self: Any, ask: Any, seconds: float) -> Any:
        attempt = run(self, ask, seconds)
        return replace(attempt, point=dict(ask.barred[0][0])) if ask.barred else attempt

    monkeypatch.setattr(ProgramSolver, "run", stuck)
    result = ceopt.explain(
        Affine([1.0], -3.0, labels=("no", "yes")), {"pay": 1.0}, pay, target="yes", n=2, diversity=Apart(2.0)
    )
    assert (result.status, len(result), result.complete) == ("optimal", 1, False)
    assert "it breaks diversity: Apart(2.0, cost='l1')" in result.reason


def test_a_point_that_the_model_refuses_is_left_out(monkeypatch: Any) -> None:
    """A tree's answer that fails the check is barred by its cell, and the distance kept."""
    tree = {"feature": 0, "threshold": 2.5, "left": {"value": 0.0}, "right": {"value": 1.0}}
    model, judge = TreeEnsemble([tree], n_inputs=5), ModelOracle.judge

    def stricter(self: Any, frame: pd.DataFrame, target: Any) -> Any:
        predicted, met = judge(self, frame, target)
        return predicted, met & ~((frame["hours"] == 3) & (frame["job"] == 3)).to_numpy()

    monkeypatch.setattr(ModelOracle, "judge", stricter)
    how = Apart(2.0, cost="l0")
    result = ceopt.explain(model, ROW, SPACE, target=ceopt.AtLeast(0.5), n=4, cost=COST, diversity=how)

    rows = [answer.values.to_dict() for answer in result]
    assert len(result) == 4
    assert all(count(a, b) >= 2.0 for a, b in itertools.combinations(rows, 2))
    assert not any(row["hours"] == 3 and row["job"] == 3 for row in rows)


@dataclass(frozen=True)
class Spread:
    """A way to differ that is not one of ours."""


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match=r"a word or ceopt.Apart\(least\).*Spread\(\)"):
        ceopt.explain(MODEL, ROW, SPACE, diversity=Spread(), **WORDS)


# ---- many people ----------------------------------------------------------------------------------------------------
@pytest.mark.long
def test_a_cohort_is_the_same_side_by_side_resumed_and_read_back() -> None:
    frame = SPACE.frame([{"hours": k % 3, "rate": 0.0, "job": 0, "size": 0, "owner": k % 2} for k in range(4)])
    how = Apart(1.5, cost=ceopt.L1(scale="range"))
    recourse = ceopt.Recourse(MODEL, SPACE, diversity=how, **WORDS | {"n": 2}).fit(frame)

    alone, together = recourse.explain(frame), recourse.explain(frame, n_jobs=2)
    again = recourse.explain(frame, resume=alone)

    pd.testing.assert_frame_equal(alone.to_frame(), together.to_frame())
    pd.testing.assert_frame_equal(alone.to_frame(), again.to_frame())
    assert alone.options["diversity"] == "Apart(1.5, cost=L1(scale='range', count='features'))"
    with pytest.raises(ValueError, match='the same diversity to resume.*was "Apart'):
        ceopt.Recourse(MODEL, SPACE, diversity="pool", **WORDS | {"n": 2}).fit(frame).explain(frame, resume=alone)
    result = alone[0]
    back = ceopt.SolutionSet.from_json(result.to_json())
    assert back.options == result.options
    assert [a.cost for a in back] == [a.cost for a in result]


@pytest.mark.parametrize(
    "rules", [[], [ceopt.IfThen(("owner", "==", True), ("age", ">=", 1))]], ids=["no rule", "a rule that cuts a column"]
)
def test_a_rule_that_rules_nothing_out_costs_no_answer(rules: list[Any]) -> None:
    """A cut that a rule makes in a number does not hide that the number may change inside its cell."""
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("age", kind="integer", lower=0, upper=3),
            ceopt.Feature("owner", kind="binary", levels=(False, True)),
        ]
    )
    model = Affine([1.0, 1.0], -2.5, labels=("no", "yes"))
    row, cost = {"age": 2, "owner": False}, ceopt.L1(scale="none")
    result = ceopt.explain(model, row, space, target="yes", n=3, cost=cost, constraints=rules, diversity="pool")
    assert [answer.cost for answer in result] == [1.0, 1.0, 2.0]
    assert result.complete

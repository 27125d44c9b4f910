"""The search for a conflict has a budget of its own, and what it found by then is in the result."""

from __future__ import annotations

import time
from typing import Any

import pandas as pd
import pytest

import ceopt
from ceopt import Feature, FeatureSpace, Linear, MaxChanges
from ceopt.formulations.predictors import Affine
from ceopt.formulations.space.reachable import reach_of
from ceopt.search.prepare import prepare
from ceopt.search.relaxation import LATE, Relaxer
from ceopt.search.solve_program import Person
from ceopt.settings import Settings

SPACE = FeatureSpace(
    [
        Feature("income", kind="continuous", lower=0, upper=50, mad=1.0),
        Feature("age", kind="integer", lower=18, upper=90, direction="increasing"),
    ]
)
ROW = {"income": 10.0, "age": 30}
LABELS = ("bad", "good")
#: Good iff income + age / 2 >= 40; the row has 25.
MODEL = Affine([1.0, 0.5], -40.0, labels=LABELS)
CAP = Linear({"income": 1.0}, "<=", 12.0, name="cap")
YOUNG = Linear({"age": 1.0}, "<=", 40.0, name="young")
FEW = MaxChanges(2, name="few")
ALL = [FEW, CAP, YOUNG]


def ask(**options: Any) -> ceopt.SolutionSet:
    return ceopt.explain(MODEL, ROW, SPACE, target="good", constraints=ALL, **options)


class Ticking:
    """The clock goes on by some seconds with each program of the search for a conflict; ``given`` is its time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.now, self.given = 0.0, list[float]()
        inner = Relaxer._solved

        def solved(relaxer: Any, *args: Any, **words: Any) -> Any:
            self.given.append(next(arg for arg in args if isinstance(arg, float)))
            found = inner(relaxer, *args, **words)
            self.now += seconds
            return found

        monkeypatch.setattr(Relaxer, "_solved", solved)
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    ("why", "limit", "seconds"),
    [(True, 60.0, 5.0), (True, 10.0, 2.0), (False, 60.0, 0.0), (3.0, 60.0, 3.0), (0, 60.0, 0.0), (90, 60.0, 60.0)],
)
def test_the_budget_is_what_was_asked_for(
    why: Any, limit: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Ticking(monkeypatch, 0.0)
    result = ask(why=why, time_limit_s=limit)

    assert result.status == "infeasible"
    assert result.options["why"] == why
    assert clock.given == [seconds] * len(clock.given)
    assert bool(clock.given) == bool(seconds) == bool(result.conflict)


def test_without_it_the_proof_says_how_to_ask() -> None:
    result = ask(why=False)

    assert (str(result.status), result.conflict, result.complete) == ("infeasible", (), True)
    assert result.reason == (
        "Proved: nothing in reach meets the target and every rule. With why=True the rules in conflict are looked for."
    )


@pytest.mark.long
def test_what_is_known_when_it_ends_early_is_in_the_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one second a solve, each budget gives at least as much as a smaller one: more rules let go, then widths."""
    told = []
    for budget in range(1, 9):
        with monkeypatch.context() as patch:
            clock = Ticking(patch, 1.0)
            result = ask(why=budget, time_limit_s=1e6)
            assert len(clock.given) <= budget
        assert result.status == "infeasible"
        assert result.complete
        told.append({name: width for name, _, width in result.conflict})
        assert {"cap", "young"} <= told[-1].keys()
        rules = [rule for rule in ALL if rule.name in told[-1]]
        without = ceopt.explain(MODEL, ROW, SPACE, target="good", constraints=rules, why=False)
        assert without.status == "infeasible", "the rules that are named leave no answer"
        for name, sentence, _ in result.conflict:
            assert name in result.reason
            assert sentence == next(rule for rule in ALL if rule.name == name).sentence()
    assert told[0] == {"few": None, "cap": None, "young": None}
    assert told[-1] == {"cap": pytest.approx(8.0, abs=1e-4), "young": 17.0}
    assert {"cap": pytest.approx(8.0, abs=1e-4), "young": None} in told
    assert {"cap": None, "young": None} in told


def test_a_cohort_asks_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    people = pd.DataFrame([ROW])
    clock = Ticking(monkeypatch, 0.0)
    asks = ceopt.Recourse(MODEL, SPACE, target="good", constraints=ALL).fit(people)
    assert asks.why is True
    (result,) = asks.explain(people)
    assert {name for name, _, _ in result.conflict} == {"cap", "young"}
    assert clock.given == pytest.approx([3.0] * len(clock.given), abs=0.2)  # a twentieth of a minute

    clock.given.clear()
    (result,) = asks.set_params(why=False).fit(people).explain(people)
    assert (str(result.status), result.conflict, clock.given) == ("infeasible", (), [])

    (result,) = asks.set_params(why=2.0).fit(people).explain(people)
    assert {name for name, _, _ in result.conflict} == {"cap", "young"}
    assert clock.given == pytest.approx([2.0] * len(clock.given), abs=0.2)


def test_explain_asks_unless_told() -> None:
    assert Settings(target="good").check(SPACE, LABELS).why is True
    assert {name for name, _, _ in ask().conflict} == {"cap", "young"}


@pytest.mark.parametrize("left", [-1.0, 0.0, 5.0])
def test_a_program_has_the_time_that_is_left_until_the_deadline(left: float, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepare(MODEL, SPACE, Settings(target="good"))
    row = SPACE.row(ROW)
    clock = Ticking(monkeypatch, 0.0)
    clock.now = 100.0
    relaxer = Relaxer(prepared, 100.0 + left)
    found = relaxer.least(Person(row, reach_of(SPACE, row), SPACE), [CAP])
    assert clock.given == [left] * (left > 0.0)
    assert (found.point is not None) == (left > 0.0)
    assert (found.reason == LATE) == (left <= 0.0)

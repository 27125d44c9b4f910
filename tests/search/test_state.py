"""The loop of a search: each step gives another state and leaves the one that it was given as it was."""

from __future__ import annotations

import time
from dataclasses import fields, replace
from typing import Any

import pytest

import ceopt
from ceopt.formulations.predictors import Affine
from ceopt.formulations.space.reachable import Interval
from ceopt.search.prepare import prepare
from ceopt.search.search import done, init, search, step
from ceopt.search.solve_check_repair import MOST_REPAIRS, solve
from ceopt.search.state import Phase, State, Stopwatch
from ceopt.settings import Settings

SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("income", kind="integer", lower=0, upper=9),
        ceopt.Feature("loans", kind="integer", lower=0, upper=5),
    ]
)
MODEL = Affine([1.0, -1.0], -2.5, labels=("bad", "good"))
ROW = {"income": 2, "loans": 1}


def states(**settings: Any) -> list[State]:
    prepared = prepare(MODEL, SPACE, Settings(target="good", **settings))
    state = init(prepared, ROW, keep_on_interrupt=True, within=None, began=None)
    passed = [state]
    while not done(state):
        before = {field.name: getattr(state, field.name) for field in fields(state)}
        state = step(state)
        assert state is not passed[-1]
        assert before == {field.name: getattr(passed[-1], field.name) for field in fields(state)}
        passed.append(state)
    return passed


@pytest.mark.usefixtures("by_program")
def test_a_search_goes_through_its_phases() -> None:
    passed = states()
    phases = [state.phase for state in passed]
    assert phases[:4] == [Phase.START, Phase.LEAST, Phase.BOUND, Phase.PROGRAM]
    assert phases[-6:] == [
        Phase.MARGIN, Phase.WIDER_RULES, Phase.CONFLICT, Phase.FEWER, Phase.NEXT, Phase.END
    ]  # fmt: skip
    assert [len(state.answers) for state in passed][-1] == 1


@pytest.mark.usefixtures("by_program")
def test_each_further_answer_is_a_round_of_its_own() -> None:
    passed = states(n=3, diversity="pool")
    assert [state.phase for state in passed].count(Phase.LIMIT) == 2
    counts = [len(state.answers) for state in passed]
    assert counts == sorted(counts)
    assert counts[-1] == 2  # income alone, or income and loans; loans alone are not enough
    assert passed[-1].last is not None
    assert passed[-1].last.proved


def test_a_row_that_needs_no_change_has_ended_at_once() -> None:
    prepared = prepare(MODEL, SPACE, Settings(target="good"))
    state = init(prepared, {"income": 9, "loans": 0}, keep_on_interrupt=True, within=None, began=None)
    assert done(state)
    assert state.last is not None
    assert state.last.status == "already_favourable"


@pytest.mark.usefixtures("by_program")
def test_an_interrupt_between_two_answers_keeps_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepare(MODEL, SPACE, Settings(target="good", n=3, diversity="pool"))
    rounds = []

    def looked(state: State) -> State:
        rounds.append(state.phase)
        raise KeyboardInterrupt

    monkeypatch.setitem(ceopt.search.search._STEPS, Phase.LIMIT, looked)
    result = search(prepared, ROW)
    assert rounds == [Phase.LIMIT]
    assert result.status == "optimal"
    assert len(result) == 2
    assert result.reason.endswith("No more, as: The search was interrupted.")
    with pytest.raises(KeyboardInterrupt):
        search(prepared, ROW, keep_on_interrupt=False)


def test_the_stopwatch_counts_from_when_the_limit_began() -> None:
    prepared = prepare(MODEL, SPACE, Settings(target="good"))
    began = time.perf_counter() - 100.0
    timings = search(prepared, ROW, began=began).timings
    assert timings["total"] > 100.0
    assert timings["read"] > 100.0
    assert set(timings) == {"read", "start", "build", "lower", "solve", "check", "predict", "total"}


def test_the_longest_call_is_one_call_of_the_model_and_not_all_of_them() -> None:
    """A block of quick calls, however many, leaves the grace after the limit to a quick model."""
    prepared = prepare(MODEL, SPACE, Settings(target="good"))
    question = init(prepared, ROW, keep_on_interrupt=True, within=None, began=None).question
    points = [{"income": float(income), "loans": 0.0} for income in range(10)] * 10
    stopwatch = Stopwatch()
    assert replace(question, stopwatch=stopwatch).accepts(points).count(True) == 70
    assert 0.0 < stopwatch.longest_call_s < stopwatch.seconds["predict"]  # four, eight points and so on at a time


def test_the_phases_take_no_more_than_all() -> None:
    began = time.perf_counter()
    timings = search(prepare(MODEL, SPACE, Settings(target="good")), ROW).timings
    phases = [seconds for phase, seconds in timings.items() if phase != "total"]
    assert min(phases) >= 0.0
    assert 0.0 < sum(phases) <= timings["total"] <= time.perf_counter() - began


def test_after_too_many_failed_checks_the_last_one_is_told() -> None:
    prepared = prepare(MODEL, SPACE, Settings(target="good"))
    state = init(prepared, ROW, keep_on_interrupt=True, within=None, began=None).looking_for_next()
    failures = ("the first", "the second", "the third", "the last")
    tries = replace(state.tries, failures=failures, repairs=MOST_REPAIRS + 1, bound=0.5)
    # Where no start is in hand, as in a reach that leaves none.
    alone = replace(state.question.person, reach=dict.fromkeys(SPACE.names, Interval(2.0, 2.0, 1.0)))
    last = solve(replace(state, question=replace(state.question, person=alone), tries=tries)).last
    assert last is not None
    assert (last.status, last.answer, last.bound) == ("rejected", None, 0.5)
    assert last.reason == f"{MOST_REPAIRS + 1} points of the solver failed the check; the last: the last."

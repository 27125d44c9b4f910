"""The loop of a search: each step gives another state and leaves the one that it was given as it was."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import Any

import pytest

import ceopt
from ceopt.formulations.predictors import Affine
from ceopt.query.prepare import prepare
from ceopt.search.search import done, init, search, step
from ceopt.search.state import Phase, State
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


def test_a_search_goes_through_its_phases() -> None:
    passed = states()
    phases = [state.phase for state in passed]
    assert phases[:2] == [Phase.START, Phase.PROGRAM]
    assert phases[-6:] == [
        Phase.MARGIN, Phase.WIDER_RULES, Phase.CONFLICT, Phase.FEWER, Phase.NEXT, Phase.END
    ]  # fmt: skip
    assert [len(state.answers) for state in passed][-1] == 1


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
    assert timings["read"] == prepared.read_s
    assert set(timings) == {"read", "start", "build", "lower", "solve", "check", "predict", "total"}

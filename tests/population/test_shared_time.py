"""Seconds that rows share: early rows are served, no row takes all, and what is late is marked and not begun.

The clock is the test's own; a row moves it on by what it needs or by what it is given, whichever is less.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Sequence
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest

import ceopt
from ceopt import population as batch
from ceopt.base.results import Status
from ceopt.formulations.predictors import Affine
from ceopt.population import SharedTime

PEOPLE = pd.DataFrame({"income": np.arange(300) % 3})
SPACE = ceopt.FeatureSpace([ceopt.Feature("income", kind="integer", lower=0, upper=9)])
MODEL = Affine([1.0], -3.5, labels=("no", "yes"))


class Clock:
    """A clock that only the rows move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        # The wall clock is set back all the time: nobody may look at it.
        monkeypatch.setattr(time, "time", lambda: -self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def shared(clock: Clock, needs: Sequence[float], total_s: float, most: float = 60.0) -> tuple[list[float], list[bool]]:
    """Return what each row was given until the time was used up, and whether it was enough."""
    end = clock.now + total_s
    time_of_all = SharedTime(total_s)
    given: list[float] = []
    taken: list[float] = []
    for place, need in enumerate(needs):
        left = end - clock.now
        part = time_of_all.part(rows_left=len(needs) - place, most=most)
        if part is None:
            assert left < 0.01
            break
        if place < len(needs) - 1:
            assert part <= 0.505 * left
        if taken:
            assert part >= 0.995 * min(statistics.median(taken), left / 2.0, most)
        given.append(part)
        taken.append(min(need, part))
        clock.now += taken[-1]
        time_of_all.note(taken[-1])
    return given, [need <= part for need, part in zip(needs, given, strict=False)]


@pytest.mark.parametrize("total_s", [0.1, 0.5, 1.0, 5.0])
def test_early_rows_are_served_where_equal_parts_serve_nobody(total_s: float, clock: Clock) -> None:
    """300 rows of 20 to 60 ms: an equal part of half a second is 1.7 ms."""
    needs = np.random.default_rng(0).uniform(0.02, 0.06, 300).tolist()
    given, served = shared(clock, needs, total_s)

    assert clock.now - 1000.0 <= 1.001 * total_s
    assert len(given) < 300
    enough = int(np.searchsorted(np.cumsum(needs), total_s))
    assert sum(served) >= max(0.8 * enough - 2, 1)
    assert all(served[: enough // 2])


@pytest.mark.parametrize("place", [0, 1, 10, 150])
def test_one_hard_row_does_not_take_all(place: int, clock: Clock) -> None:
    needs = [0.01] * 300
    needs[place] = 1e6
    given, served = shared(clock, needs, 10.0)

    assert len(given) == 300
    assert [k for k in range(300) if not served[k]] == [place]
    if place:
        assert given[place] < 0.5


def test_hard_rows_take_what_easy_ones_leave(clock: Clock) -> None:
    needs = [0.01] * 20 + [3.0] * 5
    _, served = shared(clock, needs, 20.0)
    assert all(served)


def test_the_last_row_has_all_that_is_left_and_none_more_than_its_own_limit(clock: Clock) -> None:
    assert shared(clock, [8.0], 10.0) == ([10.0], [True])
    assert max(shared(clock, [1.0] * 5, 1e4, most=7.0)[0]) == 7.0


def test_rows_side_by_side_have_larger_parts(clock: Clock) -> None:
    four = SharedTime(80.0, at_once=4)
    four.note(0.1)
    assert four.part(rows_left=100, most=1e9) == 3.2
    assert four.part(rows_left=3, most=1e9) == 40.0  # an equal part would be all that is left


def rows_of(frame: pd.DataFrame) -> list[pd.DataFrame]:
    return [frame.iloc[[place]] for place in range(len(frame))]


# ---- a cohort --------------------------------------------------------------------------------------------------------
def cohort_of(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, need_s: float, total_s: float, n_jobs: int = 1
) -> tuple[ceopt.Cohort, list[float]]:
    """Return the cohort of 300 people of whom each needs some seconds, and what each that was begun was given."""
    recourse = ceopt.Recourse(MODEL, SPACE, target="yes").fit(PEOPLE)
    given: list[float] = []
    known = {row["income"].item(): batch.answered(recourse.prepared_, row) for row in rows_of(PEOPLE.head(3))}

    def slow(prepared: Any, row: pd.DataFrame) -> Any:
        part = prepared.settings.time_limit_s
        given.append(part)
        result = dataclasses.replace(known[row["income"].item()], query_id=row.index[0])
        clock.now += min(need_s, part)
        if need_s > part:
            result = dataclasses.replace(result, status=Status.TIME_LIMIT, counterfactuals=())
        return result

    monkeypatch.setattr(batch, "answered", slow)
    with joblib.parallel_config(backend="threading"):
        cohort = recourse.explain(PEOPLE, total_time_limit_s=total_s, n_jobs=n_jobs)
    return cohort, given


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_after_the_end_are_marked_and_not_begun(
    n_jobs: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort, given = cohort_of(clock, monkeypatch, need_s=0.02, total_s=0.5, n_jobs=n_jobs)

    assert 15 <= len(given) <= 30
    assert clock.now - 1000.0 <= 0.5 + 0.02 * n_jobs
    assert len(cohort) == 300
    assert sum(cohort.finished) == len(given)
    assert cohort.counts()["optimal"] >= 0.6 * len(given)
    assert cohort.counts()["time_limit"] >= 270
    marked = [result for result, is_done in zip(cohort, cohort.finished, strict=True) if not is_done]
    assert {str(result.status) for result in marked} == {"time_limit"}
    assert all("before this one was begun" in result.reason for result in marked)
    assert cohort.finished[:10] == (True,) * 10


def test_with_time_enough_all_are_served(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    cohort, given = cohort_of(clock, monkeypatch, need_s=0.02, total_s=7.0)
    assert cohort.counts() == {"optimal": 300}
    assert max(given[1:]) <= 3.5

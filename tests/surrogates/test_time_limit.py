"""The limit holds for a black box: no call begins after it, many rows go in short calls, and what is in hand is kept.

No test asks how long something takes. The clock is the test's own, and only the model moves it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ceopt
from ceopt import MaxChanges, SolutionSet
from ceopt.formulations.space import FeatureSpace
from ceopt.oracle.black_box import BlackBox
from ceopt.solvers.deadline import OutOfTimeError, until
from ceopt.surrogates import BoundarySampler, LimeSurrogate, LocalSurrogateRecourse, SvmSurrogate
from ceopt.surrogates.boundary_way import BoundaryWay

PEOPLE = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["a", "b", "c"])
SPACE = FeatureSpace.infer(PEOPLE)
BAD = {"a": -1.0, "b": -1.0, "c": -0.2}
BEGAN = 1000.0


class SlowModel:
    """A function of rows whose calls take seconds of the test's clock, each and for each row."""

    def __init__(self, call_s: float, row_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = BEGAN
        self.call_s = call_s
        self.row_s = row_s
        self.calls: list[tuple[float, int]] = []  # when each began, since the beginning, and its rows
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def __call__(self, rows: pd.DataFrame) -> Any:
        self.calls.append((self.now - BEGAN, len(rows)))
        self.now += self.seconds_of(len(rows))
        return decided(rows)

    def seconds_of(self, rows: int) -> float:
        return self.call_s + self.row_s * rows

    @property
    def longest_s(self) -> float:
        return max(self.seconds_of(rows) for _, rows in self.calls)

    @property
    def total_s(self) -> float:
        return self.now - BEGAN


def decided(rows: pd.DataFrame) -> Any:
    return rows["a"] + rows["b"] * rows["c"] > 0.6


Slow = Callable[[float, float], SlowModel]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    return lambda call_s, row_s: SlowModel(call_s, row_s, monkeypatch)


def asked(model: Any, limit_s: float, surrogate: Any = None, **options: Any) -> SolutionSet:
    options.setdefault("surrogate", LocalSurrogateRecourse(BoundarySampler(n_samples=300), surrogate))
    return ceopt.explain(model, BAD, SPACE, target=True, data=PEOPLE, time_limit_s=limit_s, **options)


# ---- no call begins after the limit ----------------------------------------------------------------------------------
SURROGATES = {"minimax": None, "lime": LimeSurrogate(n_samples=200), "svm": SvmSurrogate()}


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("limit_s", [0.1, 1.0, 5.0, 12.5])
@pytest.mark.parametrize(("call_s", "row_s"), [(0.05, 0.0), (1.0, 0.0), (3.0, 0.0), (0.0, 0.02), (0.4, 0.3)])
def test_at_most_the_call_under_way_is_finished(
    call_s: float, row_s: float, limit_s: float, surrogate: str, slow: Slow
) -> None:
    model = slow(call_s, row_s)
    result = asked(model, limit_s, SURROGATES[surrogate])

    assert model.calls
    assert all(began < limit_s for began, _ in model.calls)
    assert model.total_s < limit_s + model.longest_s
    assert result.status in {"feasible", "time_limit"}
    assert bool(len(result)) == (result.status == "feasible")
    assert result.options["time_limit_s"] == limit_s
    if len(result):
        assert decided(result.to_frame()).all()
        assert result[0].prediction is True
    assert SolutionSet.from_json(result.to_json()).reason == result.reason


def test_what_is_in_hand_when_the_time_ends_is_returned(slow: Slow) -> None:
    """With each second more a call more is made; from the first point in hand on there is an answer, never dearer."""
    costs: list[float] = []
    for calls in (1, 3, 5, 7, 8, 9, 10, 12, 15, 20, 40):
        model = slow(1.0, 0.0)
        result = asked(model, calls - 0.5)
        assert len(model.calls) <= calls
        if len(result):
            assert decided(result.to_frame()).all()
            costs.append(result[0].cost)
        else:
            assert not costs, f"nothing within {calls} calls, and something within fewer"
            assert "time" in result.reason

    assert len(costs) >= 5
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0]


@pytest.mark.parametrize("limit_s", [6.5, 9.5, 14.5, 60.0])
def test_rules_are_kept_by_what_is_in_hand(limit_s: float, slow: Slow) -> None:
    """The sampler's point moves all columns, so that the way is led to rows of data."""
    model = slow(1.0, 0.0)
    result = asked(model, limit_s, constraints=MaxChanges(1))

    assert all(began < limit_s for began, _ in model.calls)
    for answer in result:
        assert sum(answer.values[name] != BAD[name] for name in BAD) == 1
        assert decided(answer.frame).all()
    assert len(result) or limit_s < 60.0


def test_a_model_that_knows_probabilities_is_asked_no_later(slow: Slow) -> None:
    class Slower:
        classes_ = np.array([False, True])

        def __init__(self) -> None:
            self.asked = slow(1.0, 0.0)

        def predict(self, rows: Any) -> Any:
            return self.asked(pd.DataFrame(rows, columns=list(PEOPLE)))

        def predict_proba(self, rows: Any) -> Any:
            score = pd.DataFrame(rows, columns=list(PEOPLE)) @ [1.0, 0.5, 0.2] - 0.6
            good = 1.0 / (1.0 + np.exp(-np.asarray(score)))
            return np.column_stack([1.0 - good, good])

    model = Slower()
    result = ceopt.explain(
        model, BAD, SPACE, target=ceopt.Probability(True, 0.6), data=PEOPLE, time_limit_s=9.5,
        surrogate=LocalSurrogateRecourse(BoundarySampler(n_samples=300)),
    )  # fmt: skip

    assert all(began < 9.5 for began, _ in model.asked.calls)
    assert result.status == "feasible"
    assert isinstance(result[0].prediction, bool)


def test_a_cohort_gives_each_person_the_limit(slow: Slow) -> None:
    model = slow(0.0, 0.0)
    surrogate = LocalSurrogateRecourse(BoundarySampler(n_samples=300))
    recourse = ceopt.Recourse(model, SPACE, target=True, surrogate=surrogate, time_limit_s=3.5).fit(PEOPLE)
    model.call_s = 1.0
    people = PEOPLE[~decided(PEOPLE)].head(4)
    cohort = recourse.explain(people)
    model.call_s = 0.0
    whole = recourse.explain(people)

    # Fit asked about the data; one call looks whether the model is still the same.
    assert model.total_s <= 1.0 + 4 * 4.5
    assert set(cohort.counts()) <= {"time_limit", "feasible"}
    assert whole.counts() == {"feasible": 4}


# ---- many rows in short calls ----------------------------------------------------------------------------------------
def box_of(model: Any, **options: Any) -> BlackBox:
    return BlackBox(model, True, columns=list(PEOPLE), dtypes=PEOPLE.dtypes, **options)


MANY = pd.DataFrame(np.random.default_rng(1).normal(size=(1200, 3)), columns=["a", "b", "c"])


@pytest.mark.parametrize(("call_s", "row_s"), [(0.0, 0.005), (0.01, 0.02), (0.0, 0.5), (0.5, 0.05), (2.0, 0.0001)])
def test_calls_are_short_once_the_cost_of_a_row_is_known(call_s: float, row_s: float, slow: Slow) -> None:
    model = slow(call_s, row_s)
    box = box_of(model)
    with until(BEGAN + 1e9):
        found = box.favourable(MANY.iloc[:200])
        later = len(model.calls)
        box.favourable(MANY.iloc[200:])

    np.testing.assert_array_equal(found, decided(MANY.iloc[:200]))
    # A call takes a tenth of a second, or what a call of one row takes twice, and one row more.
    assert model.longest_s <= max(0.1, 2.0 * (call_s + row_s)) + row_s
    sizes = [rows for _, rows in model.calls]
    assert sizes[0] == 1
    assert sum(sizes) == box.n_queries == 1200 + 32
    assert max(sizes[later:]) >= min(900, 0.8 * max(0.1, call_s) / row_s, 32 * max(sizes[:later])) or row_s >= 0.1


def test_a_call_that_takes_long_whatever_its_rows_is_not_made_often(slow: Slow) -> None:
    model = slow(1.0, 0.0)
    box = box_of(model)
    with until(BEGAN + 1e9):
        box.favourable(PEOPLE)
        assert len(model.calls) <= 5
        box.favourable(MANY.iloc[:1000])

    assert len(model.calls) <= 7
    assert model.calls[-1][1] > 900


def test_without_a_deadline_there_is_one_call(slow: Slow) -> None:
    model = slow(1.0, 1.0)
    box_of(model).favourable(MANY)
    assert [rows for _, rows in model.calls] == [1200, 32]


def test_what_was_not_sent_is_not_counted(slow: Slow) -> None:
    model = slow(1.0, 0.0)
    box = box_of(model)
    with until(BEGAN + 1.5), pytest.raises(OutOfTimeError, match="asking the model"):
        box.favourable(MANY)

    assert box.n_queries == sum(rows for _, rows in model.calls) < 1200
    assert len(model.calls) == 2


@pytest.mark.parametrize("kind", ["text", "number", "flag"])
def test_labels_are_the_same_in_many_calls(kind: str, slow: Slow) -> None:
    model = slow(0.0, 0.03)
    words = {"text": ["no", "certainly"], "number": [0, 1], "flag": [False, True]}[kind]

    def labelled(rows: pd.DataFrame) -> Any:
        return np.array([words[int(is_good)] for is_good in model(rows)])

    box = BlackBox(labelled, words[1], columns=list(PEOPLE), dtypes=PEOPLE.dtypes)
    with until(BEGAN + 1e9):
        labels = box.labels(PEOPLE)
    assert len(model.calls) > 10
    assert labels.tolist() == [words[int(is_good)] for is_good in decided(PEOPLE)]


def test_the_label_of_an_answer_is_not_asked_for_again(slow: Slow) -> None:
    model = slow(0.0, 0.0)
    box = box_of(model)
    good = PEOPLE[decided(PEOPLE)]
    box.favourable(PEOPLE)
    before = len(model.calls)

    assert box.label_of(good.iloc[[3]]) is True
    assert len(model.calls) == before
    assert box.label_of(PEOPLE[~decided(PEOPLE)].iloc[[0]]) is False
    assert len(model.calls) == before + 1
    assert box.again().label_of(good.iloc[[3]]) is True  # a box for another person begins with nothing
    assert len(model.calls) == before + 2


# ---- work of the search itself ---------------------------------------------------------------------------------------
def test_rules_are_not_checked_for_ever(slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that take long to check end the way in time, as calls of the model do."""
    model = slow(0.0, 0.0)
    inner = BoundaryWay.keeps_rules
    begun = []

    def keeps_rules(self: BoundaryWay, point: Any) -> bool:
        kept = inner(self, point)
        begun.append(model.total_s)
        model.now += 0.1
        return kept

    monkeypatch.setattr(BoundaryWay, "keeps_rules", keeps_rules)
    result = asked(model, 5.0, constraints=MaxChanges(1))

    assert model.total_s < 5.2
    assert len(begun) > 40
    assert result.status in {"time_limit", "feasible"}

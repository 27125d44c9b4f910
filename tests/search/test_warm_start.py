"""The search for a start: which way it goes, what it may cost, and what it looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ceopt
from ceopt import Feature, FeatureSpace
from ceopt.formulations.constraints import AbstractRule
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.formulations.space.reachable import reach_of
from ceopt.search.near_values import NearValues
from ceopt.search.prepare import Prepared, prepare
from ceopt.settings import Settings

STUMP = {"feature": 0, "threshold": 4.5, "left": {"value": -1.0}, "right": {"value": 1.0}}
DIGITS = FeatureSpace([Feature(name, kind="integer", lower=0, upper=9) for name in "ab"])


def met(prepared: Prepared, home: dict[str, float]) -> list[list[float]]:
    """Return the points that the search meets near a person."""
    (found,) = NearValues(prepared).run([(home, reach_of(prepared.space, home))])
    points: list[list[float]] = found.points.tolist()
    return points


def test_a_climb_takes_the_moves_that_gain_most_for_their_price() -> None:
    """Forty columns gain the same at forty prices, and 36 of them are enough."""
    names = [f"x{place}" for place in range(40)]
    prices = [1.0 + place / 40 for place in range(40)]
    space = FeatureSpace([Feature(name, kind="integer", lower=0, upper=1) for name in names])
    cost = ceopt.L1(scale={name: 1.0 / price for name, price in zip(names, prices, strict=True)})
    prepared = prepare(Affine([1.0] * 40, -35.5, labels=("no", "yes")), space, Settings(target="yes", cost=cost))
    assert met(prepared, dict.fromkeys(names, 0.0))[0] == [1.0] * 36 + [0.0] * 4


def test_of_much_data_a_sample_is_looked_at_that_has_no_row_twice() -> None:
    data = pd.DataFrame({"a": np.arange(2500) / 100.0})
    space = FeatureSpace.infer(data, continuous=["a"])
    model = TreeEnsemble([STUMP], labels=("bad", "good"))
    rows = NearValues(prepare(model, space, Settings(target="good"), data=data)).rows
    assert len(np.unique(rows)) == len(rows) == 500
    assert rows.min() > 4.5


@dataclass(frozen=True)
class MuchOf(AbstractRule):
    """A column is at least 5, which a model of its own may say."""

    column: str
    model: Any = None
    is_large = True

    def check(self, space: Any) -> None: ...

    def build(self, block: Any, x: Any) -> None: ...

    def stand_ins(self, reach: Any) -> Any:  # noqa: ARG002
        return () if self.model is None else (self.model,)

    def violation(self, space: Any, factual: Any, point: Any) -> float:  # noqa: ARG002
        return max(0.0, 5.0 - point[self.column])


def test_the_splits_of_a_rules_own_model_are_looked_at() -> None:
    """The model that decides splits a, the rule's own b, of which nothing else has a value in between."""
    ruling = prepare(TreeEnsemble([STUMP | {"feature": 1}], labels=(False, True)), DIGITS, Settings(target=True))
    model = TreeEnsemble([STUMP], labels=("bad", "good"))
    for own, points in ((None, []), (ruling.predictor, [[5.0, 5.0]])):
        prepared = prepare(model, DIGITS, Settings(target="good", constraints=[MuchOf("b", own)]))
        assert met(prepared, dict.fromkeys("ab", 0.0)) == points


@dataclass(frozen=True)
class Twice(AbstractRule):
    """b is twice a, and follows from it."""

    mends = True

    def check(self, space: Any) -> None: ...

    def build(self, block: Any, x: Any) -> None: ...

    def mended(self, space: Any, factual: Any, points: Any) -> Any:  # noqa: ARG002
        points = points.copy()
        points[:, 1] = 2.0 * points[:, 0]
        return points

    def violation(self, space: Any, factual: Any, point: Any) -> float:  # noqa: ARG002
        return abs(point["b"] - 2.0 * point["a"])


@pytest.mark.parametrize(("threshold", "points"), [(4.5, [[3.0, 6.0]]), (8.5, [])])
def test_what_follows_from_a_change_is_decided_and_paid_for_and_stays_in_reach(
    threshold: float, points: list[list[float]]
) -> None:
    """What lies right of the split in b is reached by a alone; b beyond 9 is out of reach."""
    model = TreeEnsemble([STUMP | {"feature": 1, "threshold": threshold}], labels=("bad", "good"))
    rules = [Twice()]
    space = FeatureSpace([Feature(name, kind="integer", lower=0, upper=9) for name in "ab"])
    data = pd.DataFrame({"a": [3, 4, 5], "b": [9, 9, 9]})
    prepared = prepare(model, space, Settings(target="good", cost=ceopt.L1(scale="none"), constraints=rules), data=data)
    assert met(prepared, {"a": 0.0, "b": 0.0})[:1] == points


def test_a_change_that_costs_nothing_is_a_start() -> None:
    model = TreeEnsemble([STUMP], labels=("bad", "good"))
    cost = 0.0 * ceopt.L1(scale="none")
    prepared = prepare(model, DIGITS, Settings(target="good", cost=cost))
    assert met(prepared, dict.fromkeys("ab", 0.0)) == [[5.0, 0.0]]

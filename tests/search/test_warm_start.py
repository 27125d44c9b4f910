"""The search for a start: what it may spend, which way it goes, and what it looks at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ceopt
from ceopt import Feature, FeatureSpace
from ceopt.formulations.constraints import AbstractRule
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.formulations.predictors.reaches import slack
from ceopt.formulations.space.reachable import reach_of
from ceopt.search import warm_start
from ceopt.search.prepare import prepare
from ceopt.search.warm_start import StartSearch, ValueGrid
from ceopt.settings import Settings

STUMP = {"feature": 0, "threshold": 4.5, "left": {"value": -1.0}, "right": {"value": 1.0}}


def test_a_climb_takes_the_moves_that_gain_most_for_their_price() -> None:
    """Forty columns gain the same at forty prices, and 36 of them are enough, which no random point has."""
    names = [f"x{place}" for place in range(40)]
    prices = [1.0 + place / 40 for place in range(40)]
    space = FeatureSpace([Feature(name, kind="integer", lower=0, upper=1) for name in names])
    cost = ceopt.L1(scale={name: 1.0 / price for name, price in zip(names, prices, strict=True)})
    prepared = prepare(Affine([1.0] * 40, -35.5, labels=("no", "yes")), space, Settings(target="yes", cost=cost))
    home = dict.fromkeys(names, 0.0)
    search = StartSearch(
        prepared.predictor, lambda points: slack(prepared.predictor, points, prepared.settings.target), cost, ()
    )
    # The time is up as soon as there is a point: what is found is as the climb found it.
    ((least, point), *_) = search.run(home, reach_of(space, home), None, seed=0, deadlines=(0.0, math.inf))
    assert list(point.values()) == [1.0] * 36 + [0.0] * 4
    assert least == pytest.approx(sum(prices[:36]))


def test_a_point_of_a_grid_is_found_by_its_coordinates_and_no_other() -> None:
    columns = (np.array([0.0, 2.0, 5.0]), np.array([1.0, 3.0]))
    grid = ValueGrid(("a", "b"), columns, (columns[0], columns[1]), np.array([1, 0]))
    for point in ([0, 0], [2, 1], [1, 0]):
        found = grid.at(grid.coordinates(np.array(point))[0])
        assert found is not None
        assert found.tolist() == point
    assert grid.at(np.array([2.5, 1.0])) is None


def test_of_much_data_a_sample_is_looked_at_that_has_no_row_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(StartSearch, "run", lambda _self, _factual, _reach, rows, **_: seen.append(rows) or [])
    data = pd.DataFrame({"a": np.arange(2500) / 100.0})
    space = FeatureSpace.infer(data, continuous=["a"])
    model = TreeEnsemble([STUMP], labels=("bad", "good"))
    result = ceopt.explain(model, data.iloc[0], space, target="good", data=data, cost="linf")
    assert result.status == "optimal"
    (rows,) = seen
    assert len(np.unique(rows)) == len(rows) == 2000
    assert rows.min() > 4.5


@dataclass(frozen=True)
class MuchOf(AbstractRule):
    """A column is at least 5."""

    column: str

    def check(self, space: Any) -> None: ...

    def build(self, block: Any, x: Any) -> None: ...

    def violation(self, space: Any, factual: Any, point: Any) -> float:  # noqa: ARG002
        return max(0.0, 5.0 - point[self.column])


@pytest.mark.parametrize(("most", "cheapest"), [(0, (5.0, 5.0, 0.0)), (150, (9.0, 8.0, 0.0))])
def test_the_splits_of_a_rules_own_model_are_looked_at_once_it_has_refused_much(
    most: int, cheapest: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model splits a and the rule b, of which the data alone has values: dear ones."""
    monkeypatch.setattr(warm_start, "_BROKEN", most)
    space = FeatureSpace([Feature(name, kind="integer", lower=0, upper=9) for name in "abc"])
    deciding = prepare(TreeEnsemble([STUMP], labels=("bad", "good")), space, Settings(target="good"))
    ruling = prepare(TreeEnsemble([STUMP | {"feature": 1}], labels=(False, True)), space, Settings(target=True))
    search = StartSearch(
        deciding.predictor, deciding.slacks, ceopt.L1(), (MuchOf("b"),), ((ruling.predictor, ruling.slacks),)
    )
    home = dict.fromkeys("abc", 0.0)
    rows = np.array([[9.0, 9.0, 9.0], [9.0, 8.0, 9.0], [9.0, 0.0, 0.0], [8.0, 0.0, 0.0]])
    ((_, point), *_) = search.run(home, reach_of(space, home), rows, seed=0, deadlines=(math.inf, math.inf))
    assert tuple(point.values()) == cheapest


def test_the_splits_of_a_rules_own_model_are_looked_at_where_nothing_else_is_found() -> None:
    space = FeatureSpace([Feature(name, kind="integer", lower=0, upper=9) for name in "ab"])
    deciding = prepare(TreeEnsemble([STUMP], labels=("bad", "good")), space, Settings(target="good"))
    ruling = prepare(TreeEnsemble([STUMP | {"feature": 1}], labels=(False, True)), space, Settings(target=True))
    home = dict.fromkeys("ab", 0.0)
    for beside, points in (((), []), (((ruling.predictor, ruling.slacks),), [{"a": 5.0, "b": 5.0}])):
        search = StartSearch(deciding.predictor, deciding.slacks, ceopt.L1(), (MuchOf("b"),), beside)
        found = search.run(home, reach_of(space, home), None, seed=0, deadlines=(math.inf, math.inf))
        assert [point for _, point in found] == points

"""Leaves as arrays, held against the model's own scores at every point of a small grid."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier

from ceopt.formulations.costs import L1
from ceopt.formulations.costs.base import CostCutoff
from ceopt.formulations.predictors.leaf_boxes import GridLeaves, leaf_boxes, values_of_cells
from ceopt.formulations.predictors.pruned_leaves import pruned_trees
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.predictors.ties import accepted
from ceopt.formulations.predictors.tree_bounds import TreeNeed, least_budget, probed
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.reachable import reach_of
from ceopt.formulations.targets import parse_target

NUMBERS = FeatureSpace(
    [
        Feature("a", kind="continuous", lower=0.0, upper=9.0),
        Feature("b", kind="integer", lower=-4, upper=4),
        Feature("c", kind="continuous", lower=-1.0, upper=1.0, direction="increasing"),
        Feature("d", kind="integer", lower=0, upper=3),
    ]
)
GAPS = FeatureSpace(
    [
        Feature("a", kind="continuous", lower=0.0, upper=9.0, missing=True),
        Feature("b", kind="integer", lower=-4, upper=4),
        Feature("c", kind="continuous", lower=-1.0, upper=1.0),
        Feature("d", kind="integer", lower=0, upper=3, missing=True),
    ]
)


def rows(count: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return rows of the columns."""
    return pd.DataFrame(
        {
            "a": rng.uniform(0.0, 9.0, count).round(1),
            "b": rng.integers(-4, 5, count),
            "c": rng.uniform(-1.0, 1.0, count).round(1),
            "d": rng.integers(0, 4, count).astype(float),
        }
    )


def fitted(seed: int, make: Any, *, with_gaps: bool = False) -> tuple[Any, Any, pd.DataFrame]:
    """Return a model as read, its data, and a model."""
    rng = np.random.default_rng(seed)
    data = rows(150, rng)
    y = (data["a"] - data["b"] * data["c"] + data["d"] + rng.normal(0.0, 2.0, len(data)) > 5.0).astype(int)
    if with_gaps:
        data.loc[rng.uniform(size=len(data)) < 0.2, "a"] = np.nan
        data.loc[rng.uniform(size=len(data)) < 0.2, "d"] = np.nan
    model = make(seed).fit(data, y)
    return read(model, GAPS if with_gaps else NUMBERS), data, model


MODELS = {
    "forest": (lambda seed: RandomForestClassifier(5, max_depth=4, random_state=seed), False),
    "forest of ties": (lambda seed: RandomForestClassifier(6, max_depth=6, random_state=seed), False),
    "boosting": (lambda seed: GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=seed), False),
    "gaps": (lambda seed: HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=6, random_state=seed), True),
    "a forest of gaps": (lambda seed: RandomForestClassifier(4, max_depth=3, random_state=seed), True),
}


class CellGrid(NamedTuple):
    """Of each column the values nearest to a person in the cells in reach, and what a move to each costs."""

    names: list[str]
    columns: list[np.ndarray]
    prices: list[np.ndarray]

    def coordinates(self, points: np.ndarray) -> np.ndarray:
        return np.stack([values[points[:, j]] for j, values in enumerate(self.columns)], axis=1)


def grid_of(predictor: Any, data: pd.DataFrame, person: int) -> tuple[CellGrid, dict[str, float], Any]:
    """Return the grid of one of the rows."""
    space = predictor.space
    factual = space.row(data.iloc[[person]])
    reach = reach_of(space, factual)
    cutoff = CostCutoff(space, factual, L1().fitted(space, data), np.inf)
    boxes = [leaf_boxes(predictor)]
    columns = [values_of_cells(boxes, one, factual[one.name], reach[one.name]) for one in space]
    prices = [cutoff.own_prices(name, own) for name, own in zip(space.names, columns, strict=True)]
    return CellGrid(list(space.names), columns, prices), factual, reach


@pytest.mark.parametrize("kind", MODELS)
def test_bounds_and_cells_are_those_of_all_points(kind: str) -> None:
    make, with_gaps = MODELS[kind]
    proved = 0
    for seed, person in itertools.product(range(4), range(4)):
        predictor, data, _ = fitted(seed, make, with_gaps=with_gaps)
        target = parse_target(1, predictor.labels)
        need = TreeNeed.of(predictor, target)
        assert need is not None
        grid, _, _ = grid_of(predictor, data, person)
        points = np.array(list(itertools.product(*(range(len(values)) for values in grid.columns))))
        prices = sum(own[points[:, j]] for j, own in enumerate(grid.prices))
        met = accepted(predictor, grid.coordinates(points), target)
        best = prices[met].min() if met.any() else np.inf
        leaves, need = need.among(GridLeaves.of(leaf_boxes(predictor), grid.names, grid.columns, need.values))
        assert least_budget(leaves, leaves.least_prices(grid.prices), need) <= best * (1.0 + 1e-9)
        if not np.isfinite(best) or best == 0.0:
            continue
        for budget in best * np.array([0.9, 1.0 - 1e-7, 1.0 + 1e-7, 1.3]):
            cells = probed(leaves, grid.prices, need, budget)
            proved += cells.is_empty
            near = points[met & (prices <= budget)]
            assert not (cells.is_empty and len(near))
            for j, kept in enumerate(cells.kept):
                assert kept[near[:, j]].all()
    assert proved > 0


@pytest.mark.parametrize("kind", MODELS)
def test_the_leaves_of_pruned_trees_are_those_in_which_points_end(kind: str) -> None:
    make, with_gaps = MODELS[kind]
    predictor, data, _ = fitted(1, make, with_gaps=with_gaps)
    for person in range(3):
        grid, _, reach = grid_of(predictor, data, person)
        points = np.array(list(itertools.product(*(range(len(values)) for values in grid.columns))))
        nodes = predictor.core.apply(predictor.encoding.matrix(grid.coordinates(points)))
        for tree, pruned, ends in zip(predictor.core.trees, pruned_trees(predictor, reach), nodes.T, strict=True):
            met = set(ends.tolist())
            if len(pruned.leaves) > 1:
                assert {leaf.node for leaf in pruned.leaves} == met
            assert {leaf.value for leaf in pruned.leaves} == set(map(tuple, tree.value[sorted(met)].tolist()))
            for cut in pruned.cuts:
                lefts, rights = pruned.sides.of(cut)
                assert lefts
                assert rights

"""The worst case of trees over a noise, held against the scores of all points around."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ceopt.formulations.predictors.readers import read
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.predictors.worst_case import Noise, moved, worst_trees
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.reachable import reach_of

SPACE = FeatureSpace([Feature(name, kind="integer", lower=0, upper=9) for name in "uvw"])
POINTS = np.array(list(itertools.product(range(10), repeat=3)), dtype=np.float64)


def _tree(rng: np.random.Generator, depth: int) -> dict[str, object]:
    if depth == 0 or rng.random() < 0.15:
        return {"value": float(rng.integers(-9, 10))}
    sides = {"left": _tree(rng, depth - 1), "right": _tree(rng, depth - 1)}
    return {"feature": int(rng.integers(3)), "threshold": float(rng.integers(0, 9)) + 0.5, **sides}


@pytest.mark.parametrize("seed", range(6))
def test_the_worst_case_is_the_least_score_of_each_tree_around(seed: int) -> None:
    rng = np.random.default_rng(seed)
    predictor = read(TreeEnsemble([_tree(rng, 4)], 0.0), SPACE)
    reach = reach_of(SPACE, dict.fromkeys("uvw", 4.0))
    noises = {"u": Noise(2.0, 1.0), "w": Noise(1.0, 1.0)}
    worst = worst_trees(predictor, noises, reach)
    assert worst is not None
    least = np.full(len(POINTS), np.inf)
    for u, w in itertools.product((-2.0, -1.0, 0.0, 1.0, 2.0), (-1.0, 0.0, 1.0)):
        least = np.minimum(least, predictor.score(POINTS + np.array([u, 0.0, w])))

    assert worst.score(POINTS).tolist() == least.tolist()
    ahead = moved(predictor, {"u": 2.0, "w": -1.0}, reach)
    assert ahead.score(POINTS).tolist() == predictor.score(POINTS + np.array([2.0, 0.0, -1.0])).tolist()

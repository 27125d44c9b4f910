"""Which models decide at the points of a lattice, over what a person can become."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ceopt
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.predictors.ties import columns_read, is_on_lattice
from ceopt.formulations.space.reachable import Interval, Levels

SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("x", kind="continuous", lower=0, upper=1e9),
        ceopt.Feature("y", kind="continuous", lower=0, upper=9),
        ceopt.Feature("k", kind="binary", levels=(0, 1)),
    ]
)
READS_X = read(Affine([1.0, 0.0, 2.0], -3.0, labels=("no", "yes")), SPACE)
NETWORK = read(
    ReluNetwork([np.array([[1.0, 0.0, 2.0]] * 2), np.ones((1, 2))], [np.zeros(2), np.zeros(1)], labels=("no", "yes")),
    SPACE,
)


@pytest.mark.parametrize("predictor", [READS_X, NETWORK], ids=["linear", "network"])
@pytest.mark.parametrize(
    ("part", "is_lattice"),
    [
        (Interval(0.0, 9.0, 1.0), True),
        (Interval(0.0, 1e5, 1.0), True),
        (Interval(0.0, 1e5 + 1, 1.0), False),
        (Interval(0.0, 9.0), False),
        (Interval(3.0, 3.0), True),
        (Interval(0.0, 1e9, 1e6), True),
    ],
)
def test_few_steps_of_what_is_read_are_a_lattice(predictor: Any, part: Any, is_lattice: bool) -> None:
    assert columns_read(predictor) == {"x", "k"}
    reach = {"x": part, "y": Interval(0.0, 9.0), "k": Levels((0, 1))}  # y is not read, whatever it may be
    assert is_on_lattice(predictor, reach) is is_lattice
    assert is_on_lattice(predictor, reach, steps=8.0) is (is_lattice and part.is_point)
    assert is_on_lattice(predictor, reach, steps=np.inf) is (part.step is not None or part.is_point)


def test_trees_are_not_asked_so() -> None:
    stump = {"feature": 0, "threshold": 0.5, "left": {"value": 0.0}, "right": {"value": 1.0}}
    trees = read(TreeEnsemble([stump], n_inputs=3), SPACE)
    assert not is_on_lattice(trees, {"x": Interval(0.0, 9.0, 1.0), "y": Interval(0.0, 9.0), "k": Levels((0, 1))})

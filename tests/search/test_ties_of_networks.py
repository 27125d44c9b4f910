"""What a default margin leaves out of a network that hardly rises at its decision, or that a level may lift over it."""

from __future__ import annotations

from typing import Any

import pytest
from faulty import faulty

import ceopt
from ceopt.formulations.predictors import ReluNetwork

X = ceopt.Feature("x", kind="continuous", lower=0, upper=4)


def bent(slope: float) -> ReluNetwork:
    """Return a network of x that rises as x does, from a tenth before the decision at 1 on by ``slope`` alone."""
    start = 0.9
    constant = -start - slope * (1.0 - start)
    return ReluNetwork([[[1.0], [1.0]], [[1.0, slope - 1.0]]], [[0.0, -start], [constant]], labels=("no", "yes"))


def asked(model: Any, space: ceopt.FeatureSpace, **more: Any) -> tuple[ceopt.SolutionSet, int]:
    """Return the result, and how many programs were solved for it."""
    runs = []

    def counted(told: Any, _compiled: Any) -> Any:
        runs.append(told)
        return told

    home = dict.fromkeys(space.names, 0)
    with faulty(counted) as solver:
        result = ceopt.explain(model, home, space, target="yes", cost=ceopt.L1(scale="none"), solver=solver, **more)
    return result, len(runs)


@pytest.mark.parametrize("slope", [0.1, 0.01, 1e-3])
def test_a_margin_that_is_dear_where_a_network_hardly_rises_is_not_paid(slope: float) -> None:
    """The margin is 2.25e-6 of the score, and 2.25e-6 / slope of the way: of the last, 200 times what it may cost."""
    result, _ = asked(bent(slope), ceopt.FeatureSpace([X]))
    assert bent(slope).predict([[1.0 + 1e-9]])[0] == "yes"
    assert result.status == "optimal"
    assert 1.0 < result[0].cost <= 1.0 + 1e-5


def test_where_it_is_cheap_nothing_else_is_solved() -> None:
    result, runs = asked(bent(1.0), ceopt.FeatureSpace([X]))
    assert result.status == "optimal"
    assert (result[0].cost, runs) == (pytest.approx(1.0 + result.margin), 1)


def test_a_level_that_reaches_the_target_by_less_than_the_margin_is_an_answer() -> None:
    """With the margin x has to move beside it, by 1.5e-4."""
    space = ceopt.FeatureSpace([ceopt.Feature("k", kind="binary", levels=(0, 1)), X])
    model = ReluNetwork([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.01]]], [[0.0, 0.0], [1e-6 - 1.0]], labels=("no", "yes"))
    assert model.predict([[1.0, 0.0]])[0] == "yes"
    result, _ = asked(model, space)
    assert result.status == "optimal"
    assert (result[0].changed, result[0].cost) == (("k",), 1.0)
    assert result.bound == pytest.approx(1.0, rel=1e-6)

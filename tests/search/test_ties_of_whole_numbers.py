"""Linear models and networks on a lattice: what predict accepts is an answer, ties as the model decides them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from licences import skip_without

import ceopt
from ceopt import AtLeast, AtMost, Between, Feature, FeatureSpace, Probability
from ceopt.formulations.predictors import Affine, ReluNetwork

MOST = 4
WEIGHTS = st.lists(st.integers(-2, 2), min_size=3, max_size=3)
TARGETS = st.sampled_from([AtLeast(2), AtMost(-1), AtLeast(4), Between(1, 1), Between(-2, 0)])


def space(kinds: str = "iii", upper: int = MOST) -> FeatureSpace:
    whole = {"i": "integer", "c": "continuous"}
    features = [Feature(n, kind=whole[k], lower=0, upper=upper, mad=1.0) for n, k in zip("abc", kinds, strict=False)]
    return FeatureSpace(features)


def cheapest(model: Any, row: list[int], wanted: Any, width: int = 3) -> float | None:
    """The least l1 distance of a lattice point that the model itself puts in the target."""
    points = np.array(list(itertools.product(range(MOST + 1), repeat=width)), dtype=float)
    met = [wanted(value) for value in model.predict(points)]
    costs = np.abs(points - np.array(row)).sum(axis=1)[met]
    return float(costs.min()) if len(costs) else None


def asked(model: Any, row: list[int], target: Any, **options: Any) -> Any:
    return ceopt.explain(model, dict(zip("abc", row, strict=True)), space(), target=target, why=False, **options)


def agrees(result: Any, expected: float | None) -> None:
    if expected is None:
        assert result.status == "infeasible"
    elif expected == 0.0:
        assert result.status == "already_favourable"
    else:
        assert result.status == "optimal", result.reason
        assert result[0].cost == pytest.approx(expected)


def in_target(target: Any) -> Any:
    low, high = getattr(target, "low", -np.inf), getattr(target, "high", np.inf)
    if isinstance(target, AtLeast):
        low = target.value
    elif isinstance(target, AtMost):
        high = target.value
    return lambda value: low <= value <= high


@draws(40)
@given(weights=WEIGHTS, row=st.lists(st.integers(0, MOST), min_size=3, max_size=3), target=TARGETS)
def test_values_of_a_regressor_are_reached_where_it_reaches_them(weights: Any, row: Any, target: Any) -> None:
    model = Affine([float(w) for w in weights], -1.0)
    agrees(asked(model, row, target), cheapest(model, row, in_target(target)))


@draws(40)
@given(rows=st.lists(WEIGHTS, min_size=2, max_size=3), row=st.lists(st.integers(0, MOST), min_size=3, max_size=3))
def test_ties_of_classes_go_to_the_class_that_predict_says(rows: Any, row: Any) -> None:
    labels = ("x", "y", "z")[: len(rows)]
    model = Affine(np.array(rows, dtype=float), np.zeros(len(rows)), labels=labels)
    for label in labels:
        agrees(asked(model, row, label), cheapest(model, row, lambda said, label=label: said == label))


@draws(25)
@given(first=st.lists(WEIGHTS, min_size=2, max_size=2), row=st.lists(st.integers(0, MOST), min_size=3, max_size=3))
def test_networks_on_whole_numbers_have_ties_too(first: Any, row: Any) -> None:
    model = ReluNetwork([np.array(first, dtype=float), np.array([[1.0, -1.0]])], [np.zeros(2), np.zeros(1)])
    for target in (AtLeast(1), AtMost(-2)):
        agrees(asked(model, row, target), cheapest(model, row, in_target(target)))


@pytest.mark.parametrize("solver", ["highs", "scip", "gurobi"])
def test_a_tie_that_loses_is_left_out_and_the_next_is_optimal(solver: str) -> None:
    skip_without(solver)
    model = Affine([1.0, 1.0, 0.0], -5.0, labels=("no", "yes"))
    result = asked(model, [2, 1, 0], "yes", solver=solver, n=2, diversity="pool")
    assert [answer.cost for answer in result] == [3.0, 3.0]
    assert result.bound == pytest.approx(3.0)
    assert asked(model, [4, 4, 0], "no", solver=solver)[0].cost == 3.0


@pytest.mark.parametrize("kind", ["i", "c"])
def test_the_end_of_a_reach_may_be_the_only_answer(kind: str) -> None:
    result = ceopt.explain(Affine([1.0], 0.0), {"a": 2}, space(kind), target=AtLeast(MOST))
    assert (result.status, result[0].cost) == ("optimal", 2.0)


def test_a_column_beside_the_lattice_does_not_bring_the_margin_back() -> None:
    mixed = FeatureSpace([space()["a"], Feature("b", kind="continuous", lower=0, upper=1e-6, mad=1.0)])
    for target, cost in ((AtLeast(3), 1.0), (AtLeast(4), 2.0), (AtMost(0), 2.0)):
        result = ceopt.explain(Affine([1.0, 1.0], 0.0), {"a": 2, "b": 0.0}, mixed, target=target)
        assert (result.status, result[0].cost) == ("optimal", cost)


def test_a_probability_that_is_attained_counts() -> None:
    model = Affine([1.0], -2.0, labels=("no", "yes"), probability="logistic")
    result = ceopt.explain(model, {"a": 0}, space("i"), target=Probability("yes", at_least=0.5))
    assert (result.status, result[0].cost) == ("optimal", 2.0)


def test_a_margin_that_was_asked_for_is_kept() -> None:
    result = asked(Affine([1.0, 0.0, 0.0], 0.0), [1, 0, 0], AtLeast(2), margin=0.5)
    assert (result[0].cost, result.margin) == (2.0, 0.5)

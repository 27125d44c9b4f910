"""A rule binds alike in every unit: what a solver may leave of a column is a trace of that column, not of the row."""

from __future__ import annotations

import pandas as pd
import pytest

import ceopt
from ceopt import Causal, Feature, FeatureSpace, Hull, Linear
from ceopt.formulations.constraints.causal_structure import LinearEquation
from ceopt.formulations.predictors import Affine

#: Wide whole numbers: favourable from 500 above it.
BILLION = 10**9


@pytest.mark.parametrize("unit", [1e3, 1.0, 1e-3, 1e-6])
@pytest.mark.parametrize(("intervention", "cost"), [("none", None), ("soft", 0.4), ("hard", 0.4)])
def test_a_column_off_its_equation_is_acted_on_in_every_unit(
    intervention: str, cost: float | None, unit: float
) -> None:
    space = FeatureSpace(
        [
            Feature("parent", kind="binary", levels=(0, 1)),
            Feature("x", kind="continuous", lower=0, upper=unit, mad=unit / 4),
        ]
    )
    rule = Causal({"x": LinearEquation({"parent": unit / 10})}, intervention=intervention)

    found = ceopt.explain(
        Affine([0.0, 1 / unit], -0.6, labels=(0, 1)), {"parent": 1, "x": unit / 2}, space, target=1, constraints=[rule]
    )

    if cost is None:
        assert found.status == "infeasible"
    else:
        assert (found.status, found[0].cost) == ("optimal", pytest.approx(cost, rel=2e-5))
        assert list(dict(found[0].actions)) == ["x"]


@pytest.mark.long(every=6)
@pytest.mark.parametrize("unit", [1e3, 1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("kind", ["linear", "hull"])
@pytest.mark.parametrize(("x", "cost"), [(0.5, 2.0), (0.61, 2.04)])
def test_a_limit_holds_in_every_unit(x: float, cost: float, kind: str, unit: float) -> None:
    space = FeatureSpace([Feature(name, kind="continuous", lower=0, upper=unit, mad=unit / 4) for name in "yx"])
    model = Affine([0.1 / unit, 1 / unit], -0.62, labels=(0, 1))
    corners = pd.DataFrame({"y": [0.0, unit, unit, 0.0], "x": [0.0, 0.0, 0.55 * unit, 0.55 * unit]})
    rule = Linear({"x": 1.0}, "<=", 0.55 * unit) if kind == "linear" else Hull(corners, radius=0.0, scale="none")

    found = ceopt.explain(model, {"y": unit / 4, "x": x * unit}, space, target=1, constraints=[rule])

    assert found.status == "optimal"
    assert found[0].values["x"] <= 0.55 * unit * (1 + 1e-5)
    assert found[0].cost == pytest.approx(cost, rel=2e-5)


@pytest.mark.parametrize("at", [BILLION - 7, BILLION + 600])
@pytest.mark.parametrize("sense", ["<=", "=="])
def test_a_limit_of_wide_whole_numbers_holds_to_the_last_one(sense: str, at: int) -> None:
    space = FeatureSpace([Feature("a", kind="integer", lower=0, upper=2 * BILLION, mad=1e8)])
    model = Affine([1e-3], -(BILLION + 500) * 1e-3, labels=(0, 1))

    found = ceopt.explain(
        model, {"a": at}, space, target=1, constraints=[Linear({"a": 1.0}, sense, BILLION)], why=False
    )

    assert found.status == "infeasible"


@pytest.mark.parametrize("coefficient", [1 / 3, 0.3333333])
def test_a_coefficient_as_a_person_writes_it_is_kept(coefficient: float) -> None:
    space = FeatureSpace([Feature("a", kind="integer", lower=0, upper=9, mad=1.0)])

    found = ceopt.explain(
        Affine([-1.0], 4.5, labels=(0, 1)), {"a": 8}, space, target=1, constraints=[Linear({"a": coefficient}, ">=", 1)]
    )

    assert (found.status, found[0].values["a"]) == ("optimal", 4)
    assert Linear({"a": coefficient}, ">=", 1).violation(space, None, {"a": 3.0}) == 0.0

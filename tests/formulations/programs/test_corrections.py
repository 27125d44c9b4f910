"""The programs that correct a plan: rows, side conditions, and optima by closed forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from rowtext import rows, text, variables

from ceopt import CeoptError
from ceopt.formulations import programs
from ceopt.plans import requirement_correction
from ceopt.solvers import ProblemClass, Status, compile_model, solve

EYE = [[1.0, 0.0], [0.0, 1.0]]
BOX = ([-np.inf, -2.0], [3.0, np.inf])


def cones(model: Any) -> list[str]:
    """The cones of a model by name, their entries affine text."""
    return [
        f"{row.local_name}: " + " | ".join(text(entry) for entry in row.body.args)
        for row in model.component_data_objects(pyo.Constraint)
        if hasattr(row.body, "cone")
    ]


def linear(model: Any, *names: str) -> list[str]:
    return rows(model, *names)


# ---- requirement correction ------------------------------------------------------------------------------------------
def test_rows_of_the_requirement_correction() -> None:
    model = programs.requirement_correction([[-2, 1, 5], [1, 3, 1]], [2, 1, -1], 0.5, fixed=[2])
    assert rows(model) == sorted(
        ["+2 move[0,0] +1 move[0,1] >= 8.5", "+2 move[1,0] +1 move[1,1] >= -3.5"]  # 0.5 - (-8), 0.5 - 4
    )
    assert set(variables(model)) == {f"move[{j},{k}]" for j in (0, 1) for k in (0, 1)}
    assert str(model.total.expr) == "move[0,0]**2 + move[0,1]**2 + move[1,0]**2 + move[1,1]**2"
    assert model.total.sense == pyo.minimize
    assert [text(model.x[0, k]) for k in range(2)] == ["+1 move[0,0] -2", "+1 move[0,1] +1"]
    assert pyo.value(model.x[1, 2]) == 1.0


def test_without_free_columns_the_plan_stays_or_there_is_none() -> None:
    for margin, status in ((2.0, Status.OPTIMAL), (2.5, Status.INFEASIBLE)):
        assert solve(programs.requirement_correction([[1, 1]], [1, 1], margin, fixed=[0, 1])).status is status


@draws(25)
@given(data=st.data(), n=st.integers(1, 3), d=st.integers(1, 4), margin=st.sampled_from([0.0, 0.25, 2.0]))
def test_the_program_has_the_optimum_of_the_closed_form(data: st.DataObject, n: int, d: int, margin: float) -> None:
    number = st.integers(-8, 8).map(lambda k: k / 4)
    plan = np.array(data.draw(st.lists(st.lists(number, min_size=d, max_size=d), min_size=n, max_size=n)))
    mean = data.draw(st.lists(number, min_size=d, max_size=d))
    fixed = data.draw(st.lists(st.integers(0, d - 1), max_size=d - 1))
    closed = requirement_correction(plan, mean, margin, fixed=fixed)
    model = programs.requirement_correction(plan, mean, margin, fixed=fixed)
    result = solve(model)
    assert str(result.status) == str(closed.status)
    if closed.plan is not None:
        assert result.objective == pytest.approx(((closed.plan - plan) ** 2).sum(), abs=1e-6)
        found = [[pyo.value(model.x[j, k]) for k in range(d)] for j in range(n)]
        np.testing.assert_allclose(found, closed.plan, atol=1e-4)


# ---- Mahalanobis correction ------------------------------------------------------------------------------------------
def test_rows_of_the_mahalanobis_correction() -> None:
    model = programs.mahalanobis_correction(
        [3, -1, 1], [2, 0, -1], np.diag([4.0, 0.0, 9.0]), perturbation=0.5, fixed=[2],
        inequalities=([[1, 1, 0], [0, 0, 2]], [4, 5]), bounds=([-np.inf, -2, 0], [3, np.inf, 1]),
    )  # fmt: skip
    assert rows(model, "unit", "held", "side", "low", "high") == sorted([
        "+2 v[0] -1 v[2] = 1",
        "-1 t +1 v[2] = 0",
        "-4 t +1 v[0] +1 v[1] <= 0",
        "-5 t +2 v[2] <= 0",
        "-2 t -1 v[1] <= 0",
        "-1 v[2] <= 0",
        "-3 t +1 v[0] <= 0",
        "-1 t +1 v[2] <= 0",
    ])  # fmt: skip
    spread, near = sorted(cones(model), reverse=True)
    assert spread.startswith("spread: +1 s | ")
    assert sorted(entry.lstrip("+-") for entry in spread.split(" | ")[1:]) == ["2 v[0]", "3 v[2]"]
    assert near == "near: +0.5 t | -3 t +1 v[0] | +1 t +1 v[1]"
    assert text(model.inverse_ratio.expr) == "+1 s"
    assert variables(model)["t"] == variables(model)["s"] == "NonNegativeReals [0, inf]"
    assert compile_model(model).problem_class is ProblemClass.SOCP


def test_without_covariance_or_reach_the_cones_are_left_out() -> None:
    still = programs.mahalanobis_correction([1, 1], [1, 0], EYE, perturbation=0)
    assert [name.partition(":")[0] for name in cones(still)] == ["spread"]
    assert linear(still, "held") == ["-1 t +1 v[0] = 0", "-1 t +1 v[1] = 0"]
    assert solve(still).objective == pytest.approx(math.sqrt(2), abs=1e-6)
    certain = programs.mahalanobis_correction([1, 1], [1, 0], np.zeros((2, 2)), perturbation=1)
    assert [name.partition(":")[0] for name in cones(certain)] == ["near"]
    assert solve(certain).objective == pytest.approx(0.0, abs=1e-6)


def test_the_mahalanobis_correction_is_infeasible_where_no_point_is_favourable() -> None:
    assert solve(programs.mahalanobis_correction([-2, 0], [1, 0], EYE, perturbation=1)).status is Status.INFEASIBLE
    model = programs.mahalanobis_correction([-0.5, 0], [1, 0], EYE, perturbation=1, inequalities=([[1, 0]], [-0.25]))
    assert solve(model).status is Status.INFEASIBLE


def test_side_conditions_hold_for_the_point_itself() -> None:
    """Of the ball of radius 1 around (1, 1) at mean (0, 1): the nearer the second axis, the greater the ratio."""
    model = programs.mahalanobis_correction([1, 1], [0, 1], EYE, perturbation=1, bounds=([0.5, -np.inf], [9, 1.5]))
    assert solve(model).status is Status.OPTIMAL
    x = [model.v[k].value / model.t.value for k in range(2)]
    assert x == pytest.approx([0.5, 1.5], abs=1e-5)


# ---- robust improvement ----------------------------------------------------------------------------------------------
def test_rows_of_the_robust_improvement() -> None:
    model = programs.robust_improvement(
        [3, -1, 1], [2, 0, -1], np.diag([4.0, 0.0, 9.0]), kappa=0.75, perturbation=0.5, radius=2.0, fixed=[2],
        inequalities=([[1, 1, 0]], [4]), bounds=([-np.inf, -2, 0], [3, np.inf, np.inf]),
    )  # fmt: skip
    assert rows(model, "held", "side", "low", "high") == sorted(
        ["+1 x[2] = 1", "+1 x[0] +1 x[1] <= 4", "-1 x[1] <= 2", "-1 x[2] <= 0", "+1 x[0] <= 3"]
    )
    named = dict(name.split(": ") for name in cones(model))
    assert set(named) == {"spread", "length", "near"}
    assert sorted(entry.lstrip("+-") for entry in named["spread"].split(" | ")) == ["1 s", "2 x[0]", "3 x[2]"]
    assert named["length"] == "+1 n | +1 x[0] | +1 x[1] | +1 x[2]"
    assert named["near"].split(" | ")[1:] == ["+1 x[0] -3", "+1 x[1] +1"]
    assert text(model.slack.expr) == "-2.5 n -0.75 s +2 x[0] -1 x[2]"  # 2 sqrt(1 + 0.75^2)
    assert model.slack.sense == pyo.maximize


def test_terms_that_cost_nothing_are_left_out() -> None:
    model = programs.robust_improvement([1, 1], [1, 0], EYE, kappa=0, perturbation=0)
    assert cones(model) == []
    assert compile_model(model).problem_class is ProblemClass.LP
    assert solve(model).objective == pytest.approx(1.0)


# ---- bad input -------------------------------------------------------------------------------------------------------
def mahalanobis(**changed: Any) -> Any:
    given = {"x": [1, 1], "mean": [0, 1], "covariance": EYE, "perturbation": 1} | changed
    return programs.mahalanobis_correction(given.pop("x"), given.pop("mean"), given.pop("covariance"), **given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: programs.requirement_correction([], [1]), "plan of shape n by n"),
        (lambda: programs.requirement_correction(np.zeros((0, 1)), [1]), "plan has no rows"),
        (lambda: programs.requirement_correction([[1, 2]], [1]), "mean of shape 2"),
        (lambda: programs.requirement_correction([[1, np.nan]], [1, 1]), r"plan\[0, 1\] is nan"),
        (lambda: programs.requirement_correction([[1]], [1], -0.1), "margin to be a number at least 0"),
        (lambda: programs.requirement_correction([[1]], [1], np.inf), "margin is inf"),
        (
            lambda: programs.requirement_correction([[1]], [1], fixed=[1]),
            "columns from 0 to 0 in fixed, but fixed has 1",
        ),
        (lambda: programs.requirement_correction([[1]], [1], fixed=[-2]), "fixed has -2"),
        (lambda: programs.requirement_correction([[1, 1]], [1, 1], fixed=[True]), "fixed has True"),
        (lambda: programs.requirement_correction([[1]], [1], fixed="0"), "a list of columns as fixed"),
        (lambda: programs.requirement_correction([[1]], [1], fixed=0), "fixed is 0"),
        (lambda: mahalanobis(x=[1, 1, 1]), "x of shape 2"),
        (lambda: mahalanobis(covariance=[[1, 0], [0, -1]]), "least eigenvalue of covariance is -1"),
        (lambda: mahalanobis(perturbation=-1), "perturbation is -1"),
        (lambda: mahalanobis(perturbation=np.inf), "perturbation is inf"),
        (lambda: mahalanobis(perturbation=np.nan), "perturbation is nan"),
        (lambda: mahalanobis(inequalities=[[1, 1]]), "a pair (A, b)"),
        (lambda: mahalanobis(inequalities=([[1, 1, 1]], [1])), "A of inequalities of shape n by 2"),
        (lambda: mahalanobis(inequalities=([[1, 1]], [1, 2])), "b of inequalities of shape 1"),
        (lambda: mahalanobis(bounds=[0, 1, 2]), "a pair of bounds for 2 columns"),
        (lambda: mahalanobis(bounds=([0, 0, 0], [1, 1])), "bounds has [3, 2] numbers"),
        (lambda: mahalanobis(bounds=([0, 0], [1, np.nan])), "column 1 has bounds 0 and nan"),
        (lambda: mahalanobis(bounds=([0, 2], [1, 1])), "column 1 has bounds 2 and 1"),
        (lambda: programs.robust_improvement([1], [1], [[1]], kappa=-1, perturbation=1), "kappa is -1"),
        (lambda: programs.robust_improvement([1], [1], [[1]], kappa=np.inf, perturbation=1), "kappa is inf"),
        (lambda: programs.robust_improvement([1], [1], [[1]], kappa=1, perturbation=1, radius=-1), "radius is -1"),
    ],
)
def test_what_makes_no_program_is_refused(call: Any, message: str) -> None:
    import re

    with pytest.raises(CeoptError, match=re.escape(message) if "\\" not in message else message):
        call()

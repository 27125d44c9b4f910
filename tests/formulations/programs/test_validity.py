"""The programs of the validity bounds: rows as in their docstrings, sizes, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rowtext import rows, variables

from ceopt import CeoptError
from ceopt.formulations import programs
from ceopt.solvers import ProblemClass, compile_model, read, solve, write

X, MEAN, COVARIANCE = [[1, 2], [3, -1]], [4, 1], [[4, 0], [0, 1]]
LOWER = {
    "validity_lower": programs.validity_lower,
    "validity_lower_arrow": programs.validity_lower_arrow,
    "validity_lower_coupled": programs.validity_lower_coupled,
    "validity_lower_dual": programs.validity_lower_dual,
}
UPPER = {
    "validity_upper": programs.validity_upper,
    "validity_upper_coupled": programs.validity_upper_coupled,
    "validity_upper_moment": programs.validity_upper_moment,
}
ALL = LOWER | UPPER | {
    "validity_lower_nonlinear": programs.validity_lower_nonlinear,
    "validity_upper_scalar": programs.validity_upper_scalar,
}  # fmt: skip


def sides(model: Any) -> list[int]:
    """Return the sides of the semidefinite blocks."""
    cones = [cone for cone in compile_model(model).cones if cone.cone == "semidefinite"]
    return sorted(int((np.sqrt(8 * cone.constant.size + 1) - 1) / 2) for cone in cones)


# ---- rows ------------------------------------------------------------------------------------------------------------
def test_rows_of_the_theorems_lower_bound() -> None:
    model = programs.validity_lower(X, MEAN, COVARIANCE, 0.5)
    assert rows(model, "fails") == ["+1 z[0,0] +2 z[0,1] <= 0", "+3 z[1,0] -1 z[1,1] <= 0"]
    # |mu|^2 = 17, Tr S = 5: -2 mu'mean + Tr M - 2 Tr C <= 1/4 - 22
    assert rows(model, "near") == ["-2 K[0,0] -2 K[1,1] +1 M[0,0] +1 M[1,1] -8 mean[0] -2 mean[1] <= -21.75"]
    assert sides(model) == [3, 3, 3, 3, 4]
    entries = [str(e) for e in model.rest.body.args]
    assert entries[0] == "M[0,0] - Z[0,0,0] - Z[1,0,0]"
    assert entries[3] == "mean[0] - z[0,0] - z[1,0]"
    assert entries[5] == "1.0 - weight[0] - weight[1]"
    assert [str(e) for e in model.ball.cone.body.args] == [
        "Sigma[0,0]", "Sigma[0,1]", "Sigma[1,1]", "ball.K[0,0]", "ball.K[1,0]", "4.0", "ball.K[0,1]", "ball.K[1,1]",
        "0.0", "1.0",
    ]  # fmt: skip


def test_rows_of_the_arrow_form() -> None:
    model = programs.validity_lower_arrow(X, MEAN, COVARIANCE, 0.5)
    assert rows(model, "fails") == ["+1 z[1,0] +2 z[1,1] <= 0", "+3 z[2,0] -1 z[2,1] <= 0"]
    assert rows(model, "whole") == ["+1 weight[0] +1 weight[1] +1 weight[2] = 1"]
    near = rows(model, "near")[0]
    assert "-8 z[0,0] -2 z[0,1] -8 z[1,0]" in near
    assert near.endswith("<= -21.75")
    assert sides(model) == [5, 5]
    fixed = programs.validity_lower_arrow(X, MEAN, COVARIANCE)
    assert sides(fixed) == [5]
    assert rows(fixed, "fails") == ["+11 weight[2] +6 z[2,0] -1 z[2,1] <= 0", "+6 weight[1] +2 z[1,0] +2 z[1,1] <= 0"]
    assert rows(fixed, "centred") == ["+1 z[0,0] +1 z[1,0] +1 z[2,0] = 0", "+1 z[0,1] +1 z[1,1] +1 z[2,1] = 0"]


def test_rows_of_the_coupled_forms() -> None:
    model = programs.validity_lower_coupled(X, MEAN, COVARIANCE, 0.5)
    assert rows(model, "fails") == [
        "+2 u[1,0] +2 u[1,1] +0.5 v[1,0] +1 v[1,1] +6 weight[1] <= 0",
        "+6 u[2,0] -1 u[2,1] +1.5 v[2,0] -0.5 v[2,1] +11 weight[2] <= 0",
    ]
    assert rows(model, "near") == ["+1 t[1] +1 t[2] <= 0.5"]
    assert [str(e) for e in model.moved[2].body.args] == ["t[2]", "weight[2]", "v[2,0]", "v[2,1]"]
    assert sides(model) == [5]
    model = programs.validity_upper_coupled(X, MEAN, COVARIANCE, 0.5)
    assert rows(model, "holds") == [
        "+2 u[0] +2 u[1] +0.5 v[0] +1 v[1] +6 weight[1] >= 0",
        "+6 u[0] -1 u[1] +1.5 v[0] -0.5 v[1] +11 weight[1] >= 0",
    ]
    assert compile_model(model).problem_class is ProblemClass.SOCP


def test_rows_of_the_dual_forms() -> None:
    model = programs.validity_lower_dual(X, MEAN, COVARIANCE, 0.5)
    assert [str(e) for e in model.failing[1].body.args] == [
        "P[0,0]", "P[0,1]", "P[1,1]", "q[0] + 1.5*tau[1]", "q[1] - 0.5*tau[1]", "-1.0 + r",
    ]  # fmt: skip
    assert variables(model)["tau[0]"] == "Reals [0, inf]"
    assert sides(model) == [3, 3, 3, 3, 4]
    model = programs.validity_upper(X, MEAN, COVARIANCE, 0.5)
    assert str(model.valid.body.args[3]) == "z[0] - 0.5*prices[0] - 1.5*prices[1]"
    assert str(model.price.worth.expr).startswith("-21.75*price.g + price.q")
    assert sides(model) == [3, 3, 3, 4]


def test_rows_of_the_moment_and_the_scalar_form() -> None:
    model = programs.validity_upper_moment(X, MEAN, COVARIANCE, 0.5)
    assert rows(model, "holds") == ["+1 z[1,0] +2 z[1,1] >= 0", "+3 z[1,0] -1 z[1,1] >= 0"]
    assert sides(model) == [4, 5]
    model = programs.validity_upper_scalar(X, MEAN, COVARIANCE, 0.5, kappa=2.0)
    assert rows(model, "normal") == ["-1 a[0] -3 a[1] +1 w[0] = 0", "-2 a[0] +1 a[1] +1 w[1] = 0"]
    assert rows(model, "scale") == ["-4 w[0] -1 w[1] = 1"]
    assert str(model.test.expr) == f"2.0*t + {0.5 * np.sqrt(5.0)}*n"


def test_the_nonlinear_form_is_quadratic_and_bounded() -> None:
    for radius in (0.0, 0.5):
        model = programs.validity_lower_nonlinear(X, MEAN, COVARIANCE, radius)
        compiled = compile_model(model)
        assert compiled.problem_class is ProblemClass.NONCONVEX
        assert not compiled.cones
        assert np.isfinite(compiled.lb).all()
        assert np.isfinite(compiled.ub).all()
    assert str(model.first[1].expr) == "s[0]*w[0,1] + s[1]*w[1,1] + s[2]*w[2,1]  ==  mean[1]"


# ---- degenerate moments ----------------------------------------------------------------------------------------------
def test_a_singular_covariance_shrinks_the_blocks() -> None:
    thin = [[4, 0], [0, 0]]
    assert sides(programs.validity_lower(X, MEAN, thin, 0.5)) == [3, 3, 3, 3, 3]
    assert sides(programs.validity_lower_arrow(X, MEAN, thin, 0.5)) == [4, 5]
    assert sides(programs.validity_lower_arrow(X, MEAN, thin)) == [4]
    assert sides(programs.validity_lower_arrow(X, MEAN, np.zeros((2, 2)), 0.5)) == [3, 5]
    assert sides(programs.validity_lower(X, MEAN, np.zeros((2, 2)))) == [1, 1, 1]


@pytest.mark.parametrize("radius", [0.0, 0.5])
@pytest.mark.parametrize("covariance", [COVARIANCE, [[4, 2], [2, 1]], np.zeros((2, 2))])
def test_all_have_the_same_optimum(covariance: Any, radius: float) -> None:
    lower = [solve(program(X, MEAN, covariance, radius)).objective for program in LOWER.values()]
    assert lower == pytest.approx([lower[2]] * len(lower), abs=2e-6)
    upper = [solve(program(X, [-1, -2], covariance, radius)).objective for program in UPPER.values()]
    assert upper == pytest.approx([upper[1]] * len(upper), abs=2e-6)


@pytest.mark.parametrize("name", [*LOWER, *UPPER])
def test_the_file_holds_the_program(name: str, tmp_path: Path) -> None:
    program = ALL[name]
    given = (X, MEAN if name in LOWER else [-1, -2], COVARIANCE, 0.5)
    write(program(*given), tmp_path / "bound.cbf")
    assert solve(read(tmp_path / "bound.cbf")).objective == pytest.approx(solve(program(*given)).objective, abs=1e-6)


# ---- bad input -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("program", ALL.values(), ids=list(ALL))
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"plan": [[1, 2, 3]]}, "plan of shape n by 2"),
        ({"plan": np.zeros((0, 2))}, "plan has no rows"),
        ({"mean": [1, np.nan]}, r"mean\[1\] is nan"),
        ({"covariance": [[1, 2], [2, 1]]}, "semidefinite"),
        ({"radius": -1}, "radius is -1"),
        ({"radius": np.inf}, "radius is inf"),
    ],
)
def test_what_is_no_case_is_refused(program: Callable[..., Any], change: Any, message: str) -> None:
    with pytest.raises(CeoptError, match=message):
        program(**({"plan": X, "mean": MEAN, "covariance": COVARIANCE, "radius": 0.1} | change))


def test_what_is_no_kappa_is_refused() -> None:
    with pytest.raises(CeoptError, match="kappa is -1"):
        programs.validity_upper_scalar(X, MEAN, COVARIANCE, kappa=-1)
    with pytest.raises(CeoptError, match="kappa is inf"):
        programs.validity_upper_scalar(X, MEAN, COVARIANCE, kappa=np.inf)

"""The worst shift of training data as a program: its rows, its classes, what its solutions satisfy, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.repn import generate_standard_repn
from rowtext import rows, text, variables

from ceopt import CeoptError
from ceopt.formulations import programs
from ceopt.formulations.programs.data_shift import add_switched
from ceopt.solvers import ProblemClass, Status, compile_model, solve
from ceopt.solvers.errors import UnsupportedProblemError
from ceopt.solvers.registry import SOLVERS

X = [[1.0], [-2.0]]
Y = [1, -1]


def stated(**more: Any) -> Any:
    arguments = {"radius": 0.5, "regularization": 0.25} | more
    return programs.data_shift(X, Y, arguments.pop("counterfactuals", [3.0]), **arguments)


def products(row: Any) -> tuple[str, dict[str, float]]:
    """The linear part of a row as text, and its products of two variables by name."""
    repn = generate_standard_repn(row.body)
    found = {}
    for (a, b), value in zip(repn.quadratic_vars, repn.quadratic_coefs, strict=True):
        found["*".join(sorted([a.name, b.name]))] = value
    left = " ".join(f"{c:+g} {v.name}" for v, c in zip(repn.linear_vars, repn.linear_coefs, strict=True))
    return f"{left} {repn.constant:+g}", found


# ---- rows ------------------------------------------------------------------------------------------------------------
def test_rows_of_a_continuous_shift() -> None:
    model = stated()
    assert rows(model, "residual") == ["+1 pull[0] -1 score[0] = -1", "+1 pull[1] -1 score[1] = 1"]
    assert rows(model, "balanced") == ["-1 pull[0] -1 pull[1] = 0"]
    assert rows(model, "explains") == ["+1 b -1 explained[0] +3 w[0] = 0"]
    assert products(model.scores[1]) == ("-1 score[1] -2 w[0] +1 b +0", {"shift[1,0]*w[0]": 1.0})
    linear, squares = products(model.stationary[0])
    assert linear == "-1 pull[0] +2 pull[1] -0.5 w[0] +0"  # N lambda = 2 * 0.25
    assert squares == {"pull[0]*shift[0,0]": -1.0, "pull[1]*shift[1,0]": -1.0}
    assert (text(model.worst.expr), model.worst.sense) == ("+1 explained[0]", 1)
    bounds = variables(model)
    assert bounds["w[0]"] == "Reals [-2, 2]"  # the root of 1 / 0.25
    assert bounds["pull[0]"] == "Reals [-1.41421, 1.41421]"
    assert bounds["b"] == "Reals [-2, 2]"  # 0 + 2 * (|-0.5| + 0.5)
    assert bounds["score[1]"] == "Reals [-7, 7]"  # 2 * 2.5 + 2
    assert bounds["shift[1,0]"] == "Reals [-0.5, 0.5]"
    assert bounds["explained[0]"] == "Reals [-8, 8]"


def test_rows_of_a_shift_on_a_grid() -> None:
    model = stated(shift="grid")
    assert rows(model, "either")[0] == "+1 step[0,0,0] +1 step[0,0,1] <= 1"
    assert rows(model, "scores")[1] == ("+1 b -1 score[1] -2 w[0] +0.5 weight_step[1,0,0] -0.5 weight_step[1,0,1] = 0")
    (stationary,) = rows(model, "stationary")
    assert stationary == (
        "-1 pull[0] +2 pull[1] -0.5 pull_step[0,0,0] +0.5 pull_step[0,0,1]"
        " -0.5 pull_step[1,0,0] +0.5 pull_step[1,0,1] -0.5 w[0] = 0"
    )
    assert rows(model, "weight_step_low")[0] == "+2 step[0,0,0] +1 weight_step[0,0,0] >= 0"
    assert rows(model, "weight_step_high")[0] == "-2 step[0,0,0] +1 weight_step[0,0,0] <= 0"
    assert rows(model, "weight_step_rest_high")[0] == (
        "+2 step[0,0,0] +2 step[0,0,1] +1 w[0] -1 weight_step[0,0,0] -1 weight_step[0,0,1] <= 2"
    )
    assert rows(model, "weight_step_rest_low")[0] == (
        "-2 step[0,0,0] -2 step[0,0,1] +1 w[0] -1 weight_step[0,0,0] -1 weight_step[0,0,1] >= -2"
    )
    root = f"{math.sqrt(2.0):.10g}"
    assert rows(model, "pull_step_low")[0] == f"+1 pull_step[0,0,0] +{root} step[0,0,0] >= 0"
    assert variables(model)["pull_step[0,0,0]"] == "Reals [-1.41421, 1.41421]"


def test_rows_of_shifted_labels() -> None:
    model = stated(shift="label")
    assert rows(model, "residual")[1] == "+1 pull[1] -1 score[1] +1 shift[1] = 1"
    assert rows(model, "scores")[1] == "+1 b -1 score[1] -2 w[0] = 0"
    assert variables(model)["w[0]"] == "Reals [-3, 3]"  # labels about 0 by 1.5 at most: the root of 2.25 / 0.25
    model = stated(shift="flip", radius=1)
    assert rows(model, "residual")[0] == "+2 flip[1] +1 pull[1] -1 score[1] = 1"
    assert rows(model, "few") == ["+1 flip[0] +1 flip[1] <= 1"]
    assert rows(model, "both") == []


def test_rows_of_the_hinge_loss() -> None:
    model = stated(loss="hinge", regularization=2.0, radius=0.0)
    bounds = variables(model)
    assert bounds["w[0]"] == "Reals [-1, 1]"  # the lesser of the root of 2 / 2, and 2 / 2
    assert bounds["b"] == "Reals [-3, 3]"
    assert bounds["pull[0]"] == "Reals [0, 1]"
    assert bounds["slack[0]"] == "Reals [0, 6]"
    assert rows(model, "outside") == ["+1 score[0] +1 slack[0] >= 1", "-1 score[1] +1 slack[1] >= 1"]
    assert rows(model, "tight")[1] == "+4 met[1] -1 score[1] +1 slack[1] <= 5"
    assert rows(model, "paid")[0] == "-6 short[0] +1 slack[0] <= 0"
    assert rows(model, "pulled")[0] == "-1 met[0] +1 pull[0] <= 0"
    assert rows(model, "whole")[0] == "-1 pull[0] +1 short[0] <= 0"
    assert rows(model, "balanced") == ["+1 pull[0] -1 pull[1] = 0"]


def test_rows_of_flips_under_the_hinge_loss() -> None:
    model = stated(loss="hinge", regularization=2.0, radius=1, shift="flip")
    assert rows(model, "both") == ["-1 flip[0] +1 flip[1] = 0"]  # one row of each class is left
    assert rows(model, "outside")[1] == "-2 flipped_score[0,0] +1 score[0] +1 slack[0] >= 1"
    assert rows(model, "balanced") == ["-2 flipped_pull[0,0] +2 flipped_pull[1,0] +1 pull[0] -1 pull[1] = 0"]
    assert rows(model, "flipped_pull_rest_low")[0] == "-1 flipped_pull[0,0] +1 pull[0] >= 0"


def test_rows_of_the_logistic_loss() -> None:
    model = stated(loss="logistic", regularization=2.0, radius=0.0)
    bounds = variables(model)
    weight = math.sqrt(math.log(2.0))
    assert bounds["w[0]"] == f"Reals [{-weight:g}, {weight:g}]"  # the root of 2 log 2 / 2; less than 2 / 2
    assert bounds["b"] == f"Reals [{-2.0 * weight:g}, {2.0 * weight:g}]"  # even odds
    assert bounds["pull[0]"] == f"Reals [{1 / (1 + math.exp(4 * weight)):g}, {1 / (1 + math.exp(-4 * weight)):g}]"
    assert bounds["above[0]"] == "Reals [0, inf]"
    assert [text(entry) for entry in model.rises[1].body.args] == ["-1 score[1]", " +1", "+1 above[1]"]
    assert [text(entry) for entry in model.falls[1].body.args] == ["+1 score[1]", " +1", "+1 below[1]"]
    assert products(model.most[0]) == ("+1 pull[0] +0", {"above[0]*pull[0]": 1.0})
    assert (model.most[0].lower, model.most[0].upper) == (None, 1.0)
    assert products(model.least[0]) == ("+1 below[0] -1 pull[0] +0", {"below[0]*pull[0]": -1.0})
    assert (model.least[0].lower, model.least[0].upper) == (None, 0.0)
    assert rows(model, "balanced") == ["+1 pull[0] -1 pull[1] = 0"]


def test_the_intercept_of_the_logistic_loss_is_about_the_odds() -> None:
    arguments = {"radius": 1, "regularization": 100.0, "loss": "logistic"}
    model = programs.data_shift([[1.0]] * 5, [1, 1, 1, 1, -1], [1.0], shift="grid", **arguments)
    weight = 2.0 / 100.0
    assert model.b.bounds == pytest.approx((math.log(4.0) - 2.0 * weight, math.log(4.0) + 2.0 * weight))
    model = programs.data_shift([[1.0]] * 5, [1, 1, 1, 1, -1], [1.0], shift="flip", **arguments)
    assert model.b.bounds == pytest.approx((math.log(1.5) - 0.01, math.log(4.0) + 0.01))  # 3 of 5, or 4: one is left
    model = programs.data_shift([[1.0]] * 5, [1] * 5, [1.0], shift="flip", intercept=False, **arguments)
    assert model.component("b") is None


def test_rows_of_objectives_over_several_explanations() -> None:
    model = stated(counterfactuals=[[3.0], [0.0]], objective="invalid")
    assert rows(model, "nonpositive") == ["+1 explained[0] +8 invalid[0] <= 8", "+1 explained[1] +2 invalid[1] <= 2"]
    assert (text(model.worst.expr), model.worst.sense) == ("+1 invalid[0] +1 invalid[1]", -1)
    model = stated(counterfactuals=[[3.0], [0.0]], objective="hinge")
    assert rows(model, "at_most") == [
        "+1 explained[0] +1 loss[0] +7 pays[0] <= 8",
        "+1 explained[1] +1 loss[1] +1 pays[1] <= 2",
    ]
    assert rows(model, "if_pays") == ["+1 loss[0] -9 pays[0] <= 0", "+1 loss[1] -3 pays[1] <= 0"]
    assert (text(model.worst.expr), model.worst.sense) == ("+1 loss[0] +1 loss[1]", -1)


def test_without_an_intercept_no_row_has_one() -> None:
    model = stated(intercept=False, shift="grid")
    assert model.component("b") is None
    assert rows(model, "balanced") == []
    assert variables(model)["w[0]"] == "Reals [-2, 2]"
    for loss in ("hinge", "logistic"):
        assert rows(stated(intercept=False, loss=loss, shift="flip", radius=2), "both") == []
        assert len(rows(stated(loss=loss, shift="flip", radius=2), "both")) == 1


@pytest.mark.parametrize("bounds", [(-2.0, 3.0), (0.0, 1.0), (-1.0, 0.0), (1.0, 4.0)])
@pytest.mark.parametrize("one", [None, 0, 1])
def test_switched_products_are_exact(bounds: tuple[float, float], one: int | None) -> None:
    for value in (bounds[0], 0.3 * bounds[0] + 0.7 * bounds[1], bounds[1]):
        for sense in (pyo.minimize, pyo.maximize):
            model = pyo.ConcreteModel()
            model.v = pyo.Var(bounds=(value, value))
            model.p = pyo.Var(range(2), domain=pyo.Binary)
            model.either = pyo.Constraint(expr=model.p[0] + model.p[1] <= 1)
            for k in range(2):
                model.p[k].fix(float(k == one))
            t = add_switched(model, "t", {0: (model.v, [model.p[0], model.p[1]], bounds)})
            model.sum = pyo.Objective(expr=t[0, 0] + 3 * t[0, 1], sense=sense)
            wanted = {None: 0.0, 0: value, 1: 3.0 * value}[one]
            assert solve(model).objective == pytest.approx(wanted, abs=1e-9)


# ---- classes: who solves what ----------------------------------------------------------------------------------------
CLASSES = {
    ("squared", "continuous"): ProblemClass.NONCONVEX,
    ("squared", "grid"): ProblemClass.MILP,
    ("squared", "label"): ProblemClass.LP,
    ("squared", "flip"): ProblemClass.MILP,
    ("hinge", "continuous"): ProblemClass.NONCONVEX,
    ("hinge", "grid"): ProblemClass.MILP,
    ("hinge", "flip"): ProblemClass.MILP,
    ("logistic", "continuous"): ProblemClass.NONCONVEX_EXP,
    ("logistic", "grid"): ProblemClass.NONCONVEX_EXP,
    ("logistic", "flip"): ProblemClass.NONCONVEX_EXP,
}
#: Some of those who do; whoever joins the registry says so itself.
WHO = {
    ProblemClass.LP: {"highs", "clarabel", "scip", "gurobi", "scs", "mosek"},
    ProblemClass.MILP: {"highs", "scip", "gurobi", "mosek"},
    ProblemClass.NONCONVEX: {"scip", "gurobi"},
    ProblemClass.NONCONVEX_EXP: {"scip", "gurobi"},
}


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("loss", "shift"), CLASSES)
def test_each_question_has_its_class_and_its_solvers(loss: str, shift: str) -> None:
    model = stated(loss=loss, shift=shift, radius=1)
    needed = CLASSES[loss, shift]
    assert compile_model(model).problem_class is needed
    assert {name for name in SOLVERS if needed in SOLVERS[name].classes} >= WHO[needed]
    found = []
    for name, data in SOLVERS.items():
        if needed not in data.classes:
            with pytest.raises(UnsupportedProblemError, match=f"Solver '{name}' needs a model of class .* but this"):
                solve(model, name)
        elif data.is_installed and data.is_licensed:
            result = solve(model, name)
            assert result.status is Status.OPTIMAL
            found.append(result.objective)
    assert found == pytest.approx([found[0]] * len(found), abs=1e-5)


@pytest.mark.parametrize("objective", ["invalid", "hinge"])
def test_counting_explanations_takes_binaries(objective: str) -> None:
    assert compile_model(stated(shift="label", objective=objective)).problem_class is ProblemClass.MILP


# ---- solutions -------------------------------------------------------------------------------------------------------
POINTS = np.array([[0.5, 1.0], [1.0, -1.0], [-1.0, 0.5], [-0.5, -1.5]])
LABELS = np.array([1.0, 1.0, -1.0, -1.0])


@pytest.mark.parametrize(("loss", "shift"), CLASSES)
@pytest.mark.long(every=6)
@pytest.mark.parametrize("intercept", [True, False])
def test_a_solution_is_stationary(loss: str, shift: str, intercept: bool) -> None:
    """In plain numbers: the shifted data, the classifier, and what each row pulls with."""
    lam = 0.4
    limit = None
    if (loss, shift) == ("logistic", "grid"):
        limit = 2.0  # the proof takes minutes
    model = programs.data_shift(
        POINTS, LABELS, [1.0, 0.2], radius=1 if shift == "flip" else 0.25, regularization=lam, loss=loss, shift=shift,
        intercept=intercept,
    )  # fmt: skip
    assert solve(model, time_limit_s=limit).status in {Status.OPTIMAL, Status.FEASIBLE}
    z, y = POINTS.copy(), LABELS.copy()
    if shift == "continuous":
        z += np.array([[model.shift[i, j].value for j in range(2)] for i in range(4)])
    elif shift == "grid":
        steps = [[model.step[i, j, 0].value - model.step[i, j, 1].value for j in range(2)] for i in range(4)]
        z += 0.25 * np.array(steps)
    elif shift == "label":
        y += np.array([model.shift[i].value for i in range(4)])
    else:
        y *= 1.0 - 2.0 * np.array([model.flip[i].value for i in range(4)])
    w = np.array([one.value for one in model.w.values()])
    pull = np.array([one.value for one in model.pull.values()])
    s = z @ w + (model.b.value if intercept else 0.0)
    if loss == "squared":
        assert pull == pytest.approx(s - y, abs=1e-6)
        g = -pull
    elif loss == "logistic":
        assert pull == pytest.approx(1.0 / (1.0 + np.exp(y * s)), abs=2e-6)
        g = y * pull
    else:
        g = y * pull
        assert (np.where(y * s > 1.0 + 1e-5, pull, 0.0) <= 1e-6).all()
        assert (np.where(y * s < 1.0 - 1e-5, pull, 1.0) >= 1.0 - 1e-6).all()
        assert ((pull >= -1e-6) & (pull <= 1.0 + 1e-6)).all()
    assert 4 * lam * w == pytest.approx(z.T @ g, abs=2e-6)
    if intercept:
        assert g.sum() == pytest.approx(0.0, abs=1e-6)
    assert np.linalg.norm(w) <= model.w_bound + 1e-6
    assert (np.abs(pull) <= max(model.pull_bounds) + 1e-6).all()
    assert model.explained[0].value == pytest.approx(np.array([1.0, 0.2]) @ w + intercept * s[0] - intercept * z[0] @ w)


# ---- bad input -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"radius": -0.1}, "radius to be a number at least 0 and finite, but radius is -0.1"),
        ({"radius": math.nan}, "radius is nan"),
        ({"radius": math.inf}, "radius is inf"),
        ({"radius": 1.5, "shift": "flip"}, 'a number of labels as radius of shift="flip", but radius is 1.5'),
        ({"regularization": 0.0}, "regularization to be a number above 0"),
        ({"loss": "hinge", "shift": "label"}, 'loss="squared" for shift="label", but loss is "hinge"'),
        ({"loss": "logistic", "shift": "label"}, 'loss="squared" for shift="label", but loss is "logistic"'),
        ({"loss": "absolute"}, "a known loss, but loss is 'absolute'"),
        ({"shift": "gird"}, "a known shift, but shift is 'gird'"),
        ({"objective": "loss"}, "a known objective, but objective is 'loss'"),
        ({"intercept": None}, "True or False as intercept"),
        ({"counterfactuals": [1.0, 2.0]}, "counterfactuals of shape 1, but its shape is"),
        ({"counterfactuals": [[1.0, 2.0]]}, "counterfactuals of shape n by 1"),
        ({"counterfactuals": np.zeros((0, 1)), "objective": "hinge"}, "at least one explanation"),
        ({"counterfactuals": [math.nan]}, r"counterfactuals\[0\] is nan"),
        ({"counterfactuals": [1e200]}, "numbers of at most"),
        ({"counterfactuals": [[1.0], [2.0]]}, 'one explanation for objective="score", but counterfactuals has 2 rows'),
    ],
)
def test_what_asks_for_no_shift_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CeoptError, match=message):
        stated(**change)


@pytest.mark.parametrize(
    ("points", "labels", "message"),
    [
        (X, [0, 1], r"data_shift needs the classes -1 and 1 as y, but y\[0\] is 0"),
        (X, ["no", "yes"], "numbers as y"),
        (X, [1, 1], "rows of both classes, but y is 1 in all rows"),
        (X, [1, -1, 1], "y of shape 2"),
        ([[math.nan], [1.0]], Y, r"X\[0, 0\] is nan"),
    ],
)
def test_what_is_no_training_data_is_refused(points: Any, labels: Any, message: str) -> None:
    with pytest.raises(CeoptError, match=message):
        programs.data_shift(points, labels, [1.0], radius=0.1, regularization=1.0)

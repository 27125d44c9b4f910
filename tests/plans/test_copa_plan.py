"""COPA plans: published optima, brute force, feasibility always, and the ways in which a plan may degenerate."""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st
from published import instances

from ceopt import CeoptError
from ceopt.plans import copa as plan_module
from ceopt.plans import copa_objective, copa_plan, validity_value
from ceopt.plans import copa_search as categories
from ceopt.plans import copa_search as global_search
from ceopt.plans import copa_search as refinement
from ceopt.plans.copa_space import project
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.solvers.registry import SOLVERS

EYE = np.eye(2)
needs_scip = pytest.mark.skipif(not SOLVERS["scip"].is_installed, reason="pyscipopt is not installed")


def asked(instance: Any, **options: Any) -> Any:
    given_ = instance["inputs"]
    return copa_plan(
        given_["x0"],
        given_["mu"],
        given_["Sigma"],
        n=given_["J"],
        validity_weight=given_["lambda1"],
        diversity_weight=given_["lambda2"],
        margin=given_["eps"],
        cost=given_["cost"],
        **options,
    )


def plan(factual: Any, mean: Any, covariance: Any = EYE, **changed: Any) -> Any:
    options = {"n": 2, "validity_weight": 1.0, "diversity_weight": 1.0} | changed
    return copa_plan(factual, mean, covariance, **options)


# ---- published -------------------------------------------------------------------------------------------------------
@pytest.mark.long(every=2)
@pytest.mark.parametrize("instance", instances("copa_plan", "l2"))
def test_published_plans_by_gradients(instance: Any) -> None:
    found, expected = asked(instance), instance["expected"]
    assert (found.status, found.certificate) == ("feasible", "best_known")
    assert found.objective <= expected["objective"] + instance["tol"]["objective"]
    if expected["kind"] == "global":
        assert found.objective == pytest.approx(expected["objective"], abs=instance["tol"]["objective"])


@pytest.mark.long(every=3)
@pytest.mark.parametrize("instance", instances("copa_plan", "l2")[:3])
def test_published_plans_globally(instance: Any) -> None:
    found, expected, tolerance = asked(instance, method="global"), instance["expected"], instance["tol"]
    assert (found.status, found.certificate) == ("optimal", "global")
    assert found.objective == pytest.approx(expected["objective"], abs=tolerance["objective"])
    assert found.plan[0] == pytest.approx(np.array(expected["x"]), abs=tolerance["x"])
    assert found.bound <= expected["objective"] + tolerance["objective"]
    assert found.objective - found.bound <= 0.01 * (1 + abs(found.objective))


@needs_scip
@pytest.mark.parametrize("instance", instances("copa_plan", "l2")[:1])
def test_published_plans_are_proved(instance: Any) -> None:
    found, expected = asked(instance, method="nonlinear"), instance["expected"]
    assert (found.status, found.certificate) == ("optimal", "global")
    assert found.objective == pytest.approx(expected["objective"], abs=1e-4)
    assert found.bound <= found.objective


@pytest.mark.long
@needs_scip
def test_two_counterfactuals_are_proved() -> None:
    """One column: 1 and 2 are optimal (by hand, see the program's docstring)."""
    found = plan([-1.0], [1.0], [[1.0]], validity_weight=0.25, diversity_weight=2.0, margin=1.0, method="nonlinear")
    assert (found.status, found.certificate) == ("optimal", "global")
    assert sorted(found.plan[:, 0]) == pytest.approx([1.0, 2.0], abs=1e-6)
    assert found.objective == pytest.approx(0.75, abs=1e-9)
    assert found.bound == pytest.approx(0.75, abs=1e-5)


@needs_scip
@pytest.mark.long
def test_three_counterfactuals_are_proved() -> None:
    """One column, of which no plan of a grid is better; the ratio is 1 wherever the score is positive."""
    arguments = {"n": 3, "validity_weight": 0.25, "diversity_weight": 10.0, "margin": 1.0, "bounds": (-3, 2.5)}
    found = plan([-1.0], [1.0], [[1.0]], **arguments, method="nonlinear")
    x = np.array(list(itertools.combinations(np.linspace(1.0, 2.5, 151), 3)))
    near = 1 / (1 + np.abs(x[:, [0, 0, 1]] - x[:, [1, 2, 2]]))
    diversity = 1 + 2 * near.prod(axis=1) - (near**2).sum(axis=1)
    best = float(((x + 1).mean(axis=1) - 0.25 - 10 * diversity).min())
    assert (found.status, found.certificate) == ("optimal", "global")
    assert best - 1e-3 < found.objective <= best + 1e-9
    assert found.objective - 1e-5 <= found.bound <= found.objective


@needs_scip
@pytest.mark.parametrize("factual", [[-1.0, 0.0], [-1e3, 0.0]])
def test_the_search_is_no_narrower_than_the_best_plan(factual: Any) -> None:
    """Without validity and diversity the best plan is as far as the bound on the distance lets it be."""
    found = plan(factual, [1.0, 1.0], n=1, validity_weight=0.0, diversity_weight=0.0, margin=1.0, method="nonlinear")
    assert (found.status, found.certificate) == ("optimal", "global")
    assert found.objective == pytest.approx((1 - factual[0]) / math.sqrt(2), rel=1e-6)
    assert found.bound == pytest.approx(found.objective, rel=1e-5)


@pytest.mark.long
@needs_scip
def test_the_search_begins_at_the_plan_of_the_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """All variables but the determinant have a value, within bounds and rows; 1 and 4 is more than the mean away."""
    begun: list[Any] = []
    original = refinement.solve

    def noted(model: Any, *solver: Any, **options: Any) -> Any:
        if model.component("det") is None:  # a program of the global search, which calls the same function
            return original(model, *solver, **options)
        known = [v for v in model.component_data_objects(pyo.Var) if v is not model.det]
        assert all((v.lb or 0.0) - 1e-9 <= v.value <= (v.ub or math.inf) + 1e-9 for v in known)
        rows = [row for row in model.component_data_objects(pyo.Constraint) if row is not model.determinant]
        assert min(row.slack() for row in rows) >= -1e-9
        begun.extend(x.value for x in model.x.values())
        return original(model, *solver, **options)

    monkeypatch.setattr(refinement, "solve", noted)
    arguments = {"validity_weight": 0.25, "diversity_weight": 16.0, "margin": 1.0}
    plan([1.0], [1.0], [[1.0]], **arguments, method="nonlinear")
    assert begun == plan([1.0], [1.0], [[1.0]], **arguments).plan.ravel().tolist()
    assert sorted(begun) == pytest.approx([1.0, 4.0], abs=1e-4)


@needs_scip
def test_without_time_for_scip_the_plan_of_the_gradients_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_late(*_: Any, **__: Any) -> Any:
        raise OutOfTimeError("handing the program to SCIP")

    monkeypatch.setattr(plan_module, "searched", too_late)
    instance = instances("copa_plan", "l2")[3].values[0]
    found = asked(instance, method="nonlinear")
    assert (found.status, found.certificate) == ("feasible", "best_known")
    assert found.reason == "The time limit is used up while handing the program to SCIP."
    assert found.objective == pytest.approx(instance["expected"]["objective"], abs=1e-6)


# ---- brute force -----------------------------------------------------------------------------------------------------
@pytest.mark.long
@draws(3)
@given(seed=st.integers(0, 1000))
def test_no_two_points_of_a_grid_are_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mean, factual = rng.normal(size=2), rng.normal(size=2)
    root = rng.normal(size=(2, 2))
    covariance = root @ root.T + 0.1 * np.eye(2)
    side = np.linspace(-2, 2, 21)
    points = np.array([(x, y) for x in side for y in side if mean @ (x, y) >= 0.2])
    near = np.linalg.norm(points - factual, axis=1)
    ratio = points @ mean / np.sqrt(np.einsum("ij,jk,ik->i", points, covariance, points))
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    values = (near[:, None] + near) / 2 - 0.5 * np.minimum(ratio[:, None], ratio) - 2 * (1 - 1 / (1 + apart) ** 2)
    found = plan(factual, mean, covariance, validity_weight=0.5, diversity_weight=2.0, margin=0.2, bounds=(-2, 2))
    assert found.objective <= values.min() + 1e-9
    both = found.plan
    far = np.linalg.norm(both - factual, axis=1).mean()
    least = (both @ mean / np.sqrt(np.einsum("ij,jk,ik->i", both, covariance, both))).min()
    alike = 1 / (1 + np.linalg.norm(both[0] - both[1]))
    assert found.objective == pytest.approx(far - 0.5 * least - 2 * (1 - alike**2), abs=1e-9)


@pytest.mark.long
@draws(3)
@given(seed=st.integers(0, 10**6), d=st.integers(2, 4), weight=st.floats(0.1, 2.0))
def test_gradients_come_to_what_the_global_search_finds(seed: int, d: int, weight: float) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d))
    arguments = {"validity_weight": weight, "diversity_weight": 0.0, "margin": 0.1, "fixed": [d - 1], "bounds": (-4, 4)}
    problem = (np.append(rng.normal(size=d - 1), 1.0), rng.normal(size=d), root @ root.T + 0.1 * np.eye(d))
    global_, gradient = (plan(*problem, **arguments, method=method) for method in ("global", "gradient"))
    if global_.status == "infeasible":
        assert gradient.status == "infeasible"
        return
    assert gradient.objective == pytest.approx(global_.objective, abs=1e-4)
    assert global_.bound <= gradient.objective + 1e-6
    assert (global_.plan[0] == global_.plan[1]).all()


@pytest.mark.parametrize("cost", ["l1", "l2", "linf"])
def test_without_weights_the_plan_is_the_projection(cost: str) -> None:
    found = plan([-1.0, 0.0], [1.0, 1.0], validity_weight=0, diversity_weight=0, margin=1, cost=cost, method="global")
    expected = {"l1": 2.0, "l2": math.sqrt(2.0), "linf": 1.0}[cost]
    assert found.objective == pytest.approx(expected, abs=1e-6)
    assert found.bound == pytest.approx(expected, abs=1e-6)


@draws(30)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 6))
def test_the_projection_is_the_nearest_point(seed: int, d: int) -> None:
    """By the variational inequality: no feasible point lies on the point's side of the projection."""
    rng = np.random.default_rng(seed)
    lower = np.where(rng.random(d) < 0.3, -3.0, rng.normal(size=d) - 1)
    upper = lower + rng.random(d) * 3 * (rng.random(d) < 0.8)
    groups = ((0, 1, 2),) if d >= 4 else ()
    for group in groups:
        lower[list(group)], upper[list(group)] = 0.0, 1.0
    mean, points = rng.normal(size=d), 3 * rng.normal(size=(4, d))
    others = rng.uniform(lower, upper, size=(500, d))
    for group in groups:
        others[:, list(group)] = rng.dirichlet(np.ones(len(group)), size=500)
    least = float(np.quantile(others @ mean, rng.random()))
    found = project(points, lower, upper, groups=groups, normal=mean, least=least)
    assert (found >= lower).all()
    assert (found <= upper).all()
    assert (found @ mean >= least - 1e-12 * (1 + abs(least))).all()
    for group in groups:
        assert found[:, list(group)].sum(axis=1) == pytest.approx(np.ones(4), abs=1e-12)
    inside = others[others @ mean >= least]
    for point, nearest in zip(points, found, strict=True):
        assert ((inside - nearest) @ (point - nearest)).max(initial=-1.0) <= 1e-9 * (1 + np.abs(points).max()) ** 2


# ---- always ----------------------------------------------------------------------------------------------------------
@pytest.mark.long
@draws(3)
@example(seed=3, n=3, cost="l1", singular=False)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 4), cost=st.sampled_from(["l1", "l2"]), singular=st.booleans())
def test_a_plan_keeps_all_rules(seed: int, n: int, cost: str, singular: bool) -> None:
    rng = np.random.default_rng(seed)
    mean, margin = rng.normal(size=7), float(rng.choice([0.0, 0.1, 1.0]))
    root = rng.normal(size=(7, 2 if singular else 7))
    factual = np.concatenate([rng.uniform(0, 1, 2), [float(rng.integers(2))], [0.0, 1.0, 0.0], [1.0]])
    found = plan(
        factual,
        mean,
        root @ root.T,
        n=n,
        margin=margin,
        cost=cost,
        fixed=[0, 6],
        bounds=(0.0, 1.0),
        groups=[[3, 4, 5], [2]],
        random_state=seed % 7,
    )
    reach = np.maximum(mean[1:3], 0).sum() + mean[3:6].max() + mean[[0, 6]] @ factual[[0, 6]]
    assert (found.status == "infeasible") == (reach < margin)
    if found.status == "infeasible":
        assert found.plan is None
        assert "margin" in found.reason
        return
    assert found.plan.shape == (n, 7)
    assert (found.plan @ mean >= margin - 1e-12).all()
    assert (found.plan >= 0).all()
    assert (found.plan <= 1).all()
    assert (found.plan[:, [0, 6]] == factual[[0, 6]]).all()
    assert (found.plan[:, 3:6].sum(axis=1) == 1).all()
    assert set(found.plan[:, 2:6].ravel()) <= {0.0, 1.0}
    worth = copa_objective(factual, found.plan, mean, root @ root.T, validity_weight=1, diversity_weight=1, cost=cost)
    for name in ("objective", "proximity", "diversity", "validity"):
        assert getattr(found, name) == getattr(worth, name)
    assert found.validity == validity_value(found.plan, mean, root @ root.T)


@pytest.mark.parametrize(
    "method", ["gradient", *(pytest.param(name, marks=pytest.mark.long) for name in ("global", "nonlinear"))]
)
def test_a_group_of_one_column_is_a_yes_or_no(method: str) -> None:
    """Between 0 and 1 the plan would be better; the answer is the better of the two plans with the column held."""
    if method == "nonlinear":
        pytest.importorskip("pyscipopt")
    factual, mean = [0.0, 0.0, 1.0], [1.0, 2.0, -2.0]
    arguments = {"margin": 0.1, "fixed": [2], "n": 1, "validity_weight": 0.3, "diversity_weight": 0.0}
    between = copa_plan(factual, mean, 0.3 * np.eye(3), **arguments, bounds=(-3, 3))
    assert 0.0 < between.plan[0, 1] < 1.0
    found = copa_plan(factual, mean, 0.3 * np.eye(3), **arguments, bounds=(-3, 3), groups=[[1]], method=method)
    sides = [([-3, v, -3], [3, v, 3]) for v in (0.0, 1.0)]
    held = [copa_plan(factual, mean, 0.3 * np.eye(3), **arguments, bounds=side) for side in sides]
    assert found.plan[0, 1] in {0.0, 1.0}
    assert found.objective == pytest.approx(min(one.objective for one in held), abs=1e-6)
    assert found.objective > between.objective + 1e-3


def test_a_yes_or_no_out_of_its_bounds_is_none() -> None:
    found = plan([0.0, 0.0], [1, 1], groups=[[1]], bounds=([-1, 0.2], [1, 0.8]))
    assert found.status == "infeasible"
    assert "column 1 may be neither 0 nor 1" in found.reason
    assert plan([0.0, 0.0], [1, 1], groups=[[1]], bounds=([-1, 0.2], [1, 1.8])).plan[:, 1].tolist() == [1.0, 1.0]


@pytest.mark.long
def test_the_best_category_is_found() -> None:
    """Gradients and binaries agree, and no category that is held in their place is better."""
    factual, mean = [-1, 1, 0, 0, 1.0], [1, -1, 0.5, 0.7, 0.2]
    arguments = {"margin": 0.1, "fixed": [4], "diversity_weight": 0.0, "groups": [[1, 2, 3]]}
    found = plan(factual, mean, 0.3 * np.eye(5), **arguments, bounds=(-3, 3))
    exact = plan(factual, mean, 0.3 * np.eye(5), **arguments, bounds=(-3, 3), method="global")
    assert found.objective == pytest.approx(exact.objective, abs=1e-6)
    values = []
    for k in range(1, 4):
        high = [3, *(float(c == k) * 3 for c in range(1, 4)), 3]  # bounds that leave one category
        values.append(plan(factual, mean, 0.3 * np.eye(5), **arguments, bounds=(-3, high)).objective)
    assert found.objective == pytest.approx(min(values), abs=1e-6)


def test_a_coincident_start_is_escaped() -> None:
    """All counterfactuals of the best plan without diversity coincide, and so does each gradient from there."""
    found = plan([-4.5, 0.0], [1.0, 0.3], [[0.4, 0.1], [0.1, 0.3]], n=4, diversity_weight=5.0, margin=0.1)
    assert found.diversity > 0.3
    assert found.reason == ""


def test_a_collapsed_plan_says_so() -> None:
    found = plan([-4.5, 0.0], [1.0, 0.3], [[0.4, 0.1], [0.1, 0.3]], diversity_weight=1.0, margin=0.1, fixed=[0, 1])
    assert found.status == "infeasible"
    found = plan([4.5, 0.0], [1.0, 0.3], [[0.4, 0.1], [0.1, 0.3]], diversity_weight=1.0, margin=0.1, fixed=[0, 1])
    assert found.plan.tolist() == [[4.5, 0.0]] * 2
    assert found.diversity == pytest.approx(0.0, abs=1e-12)
    assert "coincide" in found.reason


@pytest.mark.long
def test_the_same_state_is_the_same_plan() -> None:
    problem = ([-1.0, 0.5, 0.2], [1.0, -0.4, 0.3], np.diag([0.3, 0.2, 0.5]))
    one, again = (plan(*problem, n=3, margin=0.1, random_state=5) for _ in range(2))
    assert (one.plan == again.plan).all()
    with pytest.raises(ValueError, match="read-only"):
        one.plan[0, 0] = 1.0


# ---- degenerate ------------------------------------------------------------------------------------------------------
def test_mean_zero() -> None:
    found = plan([-1, 0], [0, 0])
    assert (found.status, found.validity) == ("feasible", 0.0)
    assert found.diversity > 0.1
    assert plan([-1, 0], [0, 0], margin=0.1).status == "infeasible"


@pytest.mark.parametrize("method", ["gradient", "global"])
def test_covariance_zero(method: str) -> None:
    found = plan([-1, 0], [1, 0], 0 * EYE, margin=0.5, diversity_weight=float(method == "gradient"), method=method)
    assert (found.validity, found.objective) == (math.inf, -math.inf)
    assert found.plan[:, 0] == pytest.approx([0.5, 0.5], abs=1e-6)
    assert (found.diversity > 0.1) == (method == "gradient")
    assert "infinite" in found.reason


def test_unbounded_validity() -> None:
    """The score of (a, 0) does not vary: the objective has no least value but minus infinity."""
    found = plan([-1, 1], [1, 0], np.diag([0.0, 1.0]), margin=0.5)
    assert (found.status, found.objective, found.validity) == ("optimal", -math.inf, math.inf)
    assert found.plan == pytest.approx(np.array([[0.5, 0.0]] * 2), abs=1e-6)
    assert "does not vary" in found.reason


def test_a_singular_covariance_whose_score_must_vary() -> None:
    """x = (a, 1): the ratio is a, at most the bound 3, and as dear as the proximity."""
    arguments = {"diversity_weight": 0.0, "fixed": [1], "bounds": (-3, 3), "validity_weight": 2.0}
    for method in ("gradient", "global"):
        found = plan([-1, 1], [1, 0], np.diag([0.0, 1.0]), **arguments, method=method)
        assert found.plan == pytest.approx(np.array([[3.0, 1.0]] * 2), abs=1e-5)
        assert found.objective == pytest.approx(4.0 - 6.0, abs=1e-5)


def test_a_margin_may_be_the_greatest_score_but_for_rounding() -> None:
    """1 and 1 is the only counterfactual with a score of 3e6."""
    arguments = {"validity_weight": 0.0, "diversity_weight": 0.0, "bounds": (0, 1), "method": "global"}
    found = plan([0.5, 0.0], [1e6, 2e6], **arguments, margin=3e6 * (1 + 3e-13))
    assert found.status == "optimal"
    assert found.plan == pytest.approx(np.ones((2, 2)), abs=1e-9)
    assert plan([0.5, 0.0], [1e6, 2e6], **arguments, margin=3e6 * (1 + 3e-12)).status == "infeasible"


def test_the_bounds_may_leave_nothing() -> None:
    found = plan([2.0, 0.0], [1, 0], fixed=[0], bounds=(0, 1))
    assert (found.status, found.plan, found.objective) == ("infeasible", None, None)
    assert "column 0" in found.reason
    assert "category" in plan([0.0, 0.0], [1, 0], groups=[[0, 1]], bounds=(0, 0.5)).reason


# ---- feature maps ----------------------------------------------------------------------------------------------------
SQUARES = (lambda x: np.array([x[0], x[1] ** 2, 1.0]), lambda x: np.array([[1.0, 0.0], [0.0, 2 * x[1]], [0.0, 0.0]]))


def test_a_feature_map_carries_validity_and_margin() -> None:
    found = plan([-1, 0.1], [1, 0.5, -1], 0.1 * np.eye(3), feature_map=SQUARES, margin=0.1)
    seen = np.array([SQUARES[0](x) for x in found.plan])
    assert (seen @ [1, 0.5, -1] >= 0.1 - 1e-8).all()
    assert found.validity == pytest.approx(validity_value(seen, [1, 0.5, -1], 0.1 * np.eye(3)))
    assert found.diversity > 0.5


@pytest.mark.long
def test_the_identity_map_is_no_map() -> None:
    problem = ([-1.0, 0.5], [1.0, 0.3], np.diag([0.4, 0.3]))
    identity = (lambda x: x, lambda _: np.eye(2))
    mapped = plan(*problem, margin=0.1, feature_map=identity)
    assert mapped.objective == pytest.approx(plan(*problem, margin=0.1).objective, abs=1e-3)


def test_a_margin_out_of_reach_of_a_map_is_not_called_infeasible() -> None:
    found = plan([-1, 0.1], [1, 0.5, -1], 0.1 * np.eye(3), feature_map=SQUARES, margin=0.1, bounds=(-0.5, 0.5))
    assert (found.status, found.plan) == ("rejected", None)
    assert "not proved" in found.reason


# ---- misuse ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n": 0}, "n to be a whole number from 1"),
        ({"margin": -0.1}, "margin is -0.1"),
        ({"validity_weight": math.nan}, "validity_weight is nan"),
        ({"diversity_weight": -1}, "diversity_weight is -1"),
        ({"method": "newton"}, "Choose from: gradient, descent, nonlinear, global"),
        ({"method": "global"}, "Use method 'nonlinear', which can prove, or 'gradient'"),
        ({"cost": "linf"}, "positive semidefinite, but cost is 'linf'"),
        ({"cost": "cosine"}, "cost is 'cosine'"),
        ({"fixed": [2]}, "columns from 0 to 1 in fixed, but fixed has 2"),
        ({"fixed": [0.5]}, "fixed has 0.5"),
        ({"bounds": ([0, 0, 0], 1)}, "a pair of bounds for 2 columns"),
        ({"bounds": (1, 0)}, "column 0 has bounds 1 and 0"),
        ({"bounds": (math.nan, 0)}, "column 0 has bounds nan and 0"),
        ({"groups": [[0, 1], [1]]}, "column 1 is in groups twice"),
        ({"groups": [[]]}, r"a column or more in each group, but groups\[0\] is \[\]"),
        ({"groups": [0, 1]}, r"a list of columns as groups\[0\], but groups\[0\] is 0"),
        ({"groups": [[0, 1]]}, r"0 or 1 in groups\[0\], but factual\[0\] is -1. Leave such columns as they are"),
        ({"groups": iter([[0, 1]])}, "a list of lists of columns as groups"),
        ({"groups": 5}, "a list of lists of columns as groups"),
        ({"fixed": (k for k in [0])}, "a list of columns as fixed"),
        ({"bounds": iter([0, 1])}, "a list of lower and upper as bounds"),
        ({"bounds": (np.inf, np.inf)}, "column 0 has bounds inf and inf"),
        ({"margin": 10**400}, "margin is 1000"),
        ({"margin": np.timedelta64(1, "D")}, "margin to be a number"),
        ({"feature_map": SQUARES}, "function with values of shape"),
        ({"feature_map": (1, 2)}, "a pair \\(function, jacobian\\)"),
        ({"feature_map": SQUARES, "method": "nonlinear"}, "method 'gradient' for a feature_map"),
        ({"time_limit_s": 0}, "time_limit_s is 0"),
        ({"random_state": -1}, "random_state is -1"),
    ],
)
def test_what_makes_no_plan_is_refused(changed: Any, message: str) -> None:
    with pytest.raises(CeoptError, match=message):
        plan([-1, 0], [1, 0], **changed)


def test_shapes_must_agree() -> None:
    with pytest.raises(
        CeoptError, match="factual of shape 3, but its shape is .2,.. Give one column for each parameter"
    ):
        plan([-1, 0], [1, 0, 0], np.eye(3))
    with pytest.raises(CeoptError, match="least eigenvalue"):
        plan([-1, 0], [1, 0], [[1, 2], [2, 1]])


def test_a_cell_that_is_missing_is_refused_with_what_to_do() -> None:
    with pytest.raises(CeoptError, match=r"factual\[1\] is nan. A plan counts with every number: fill the cell in, or"):
        plan([-1, math.nan], [1, 0])


@pytest.mark.long
def test_the_global_search_ends_where_the_margin_is_zero() -> None:
    """Near x = 0 the ratio of a solver's point is noise: the halving of angles came to two neighbouring floats."""
    asked_for = {"n": 1, "validity_weight": 0.5, "diversity_weight": 0.0}
    found = copa_plan([-1, 0], [1, 0.3], np.eye(2), method="global", **asked_for)
    assert (found.status, found.certificate) == ("optimal", "global")
    assert found.objective == pytest.approx(copa_plan([-1, 0], [1, 0.3], np.eye(2), **asked_for).objective, abs=1e-6)


@pytest.mark.long
def test_groups_may_be_an_array() -> None:
    asked_for = {"n": 1, "validity_weight": 0.5, "diversity_weight": 0.0, "margin": 0.1}
    found = copa_plan([-1.0, 1.0, 0.0], [1, 0.3, 0.2], np.eye(3), groups=np.array([[1, 2]]), **asked_for)
    assert sorted(found.plan[0, 1:].tolist()) == [0.0, 1.0]


# ---- categories ------------------------------------------------------------------------------------------------------
@pytest.mark.long
def test_coincident_counterfactuals_are_among_the_candidates() -> None:
    """All starts are apart, and ended at -5.144 where three equal counterfactuals have -6.042."""
    covariance = [[0.15, -0.02, -0.057], [-0.02, 0.0214, 0.0213], [-0.057, 0.0213, 0.0683]]
    given = {"validity_weight": 1.0, "diversity_weight": 3.0, "margin": 0.05, "groups": [[0], [1], [2]], "fixed": [2]}
    found = copa_plan([1, 1, 0], [1.34, 0.85, 0.23], covariance, n=3, **given)
    assert found.objective == pytest.approx(-6.0415, abs=1e-3)
    near = {"validity_weight": 0.0, "diversity_weight": 1.0, "margin": 0.1, "bounds": ([-3.6, -0.6], [0.5, 0.79])}
    covariance, metric = [[2.55, -0.894], [-0.894, 0.374]], [[2.56, 2.06], [2.06, 2.17]]
    found = copa_plan([-0.756, -0.182], [-0.686, 1.031], covariance, n=3, cost=metric, **near)
    assert found.objective <= 1e-9


MEAN = np.array([0.96, -1.16, 0.13, -1.04, 0.61, 0.44, -0.16, 0.44, -0.19])
SPREAD = np.diag(np.square([0.083, 0.089, 0.062, 0.127, 0.086, 0.134, 0.109, 0.122, 0.071]))
SCORECARD: dict[str, Any] = {
    "validity_weight": 0.1,
    "diversity_weight": 1.0,
    "margin": 0.1,
    "fixed": [-1, 2],
    "bounds": ([-1.8, -1.4, -1.7, 0, 0, 0, 0, 0, 1], [5, 4.5, 1.7, 1, 1, 1, 1, 1, 1]),
    "groups": [[3, 4, 5, 6], [7]],
}


@pytest.mark.parametrize("few", [pytest.param(True, marks=pytest.mark.long), False])
def test_no_combination_of_few_categories_is_better(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """0.9315 was answered, where the exchange of one category of one counterfactual gives 0.8414."""
    if not few:
        monkeypatch.setattr(categories, "_ALL", 0)
    found = copa_plan([-0.62, 1.85, 0.95, 0, 0, 1, 0, 0, 1], MEAN, SPREAD, n=2, **SCORECARD)
    assert found.objective < 0.842
    assert set(found.plan[:, 3:8].ravel()) == {0.0, 1.0}


@pytest.mark.long
@pytest.mark.parametrize("few", [True, False])
def test_no_exchange_of_a_category_is_better(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether all combinations are tried or exchanges alone; each exchange is held by bounds and answered again."""
    if not few:
        monkeypatch.setattr(categories, "_ALL", 0)
    factual = np.array([-0.4, 0.3, -1.4, 1, 0, 0, 0, 0, 1])
    found = copa_plan(factual, MEAN, SPREAD, n=1, **SCORECARD)
    low, high = (np.array(side, dtype=float) for side in SCORECARD["bounds"])
    for category, owner in itertools.product(range(4), (0.0, 1.0)):
        chosen = np.append(np.eye(4)[category], owner)
        low[3:8], high[3:8] = chosen, np.where(chosen == 0.0, 0.0, 1.0)
        held = copa_plan(factual, MEAN, SPREAD, n=1, **(SCORECARD | {"bounds": (low, high), "groups": None}))
        assert held.status == "infeasible" or found.objective <= held.objective + 1e-6


def test_the_global_search_ends_at_its_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cone program takes a second of the test's own clock."""
    now = [1000.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    inner = global_search.nearest

    def nearest(*arguments: Any) -> Any:
        now[0] += 1.0
        return inner(*arguments)

    monkeypatch.setattr(global_search, "nearest", nearest)
    given = {"n": 1, "validity_weight": 1.0, "diversity_weight": 0.0, "method": "global", "time_limit_s": 1.5}
    found = copa_plan(np.linspace(-2, -1, 5), np.linspace(0.5, 1, 5), np.diag(np.linspace(0.1, 1, 5)), **given)
    assert found.status == "feasible"
    assert found.bound < found.objective
    assert "left a gap" in found.reason
    assert now[0] == 1002.0  # the one that began before the limit


@pytest.mark.long
def test_global_is_said_of_the_objective_itself() -> None:
    """The gap was measured against the objective and the diversity's weight together."""
    given = {"n": 1, "validity_weight": 30.0, "diversity_weight": 59.5, "fixed": [2], "margin": 0.1, "method": "global"}
    found = copa_plan([-100, 3, 1], [1, 0.3, -0.2], [[0.4, 0.1, 0], [0.1, 0.3, 0.05], [0, 0.05, 0.2]], **given)
    gap = found.objective - found.bound
    assert (found.certificate == "global") == (gap <= 1e-3 * (1.0 + abs(found.objective)))


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("factual", "covariance"), [([0, 0], 0.5 * np.eye(2)), ([-1, 5], np.diag([1, 0]))])
def test_no_bound_is_above_the_objective(factual: Any, covariance: Any) -> None:
    """Zeros, and counterfactuals without variance, have an infinite validity value."""
    given = {"n": 1, "validity_weight": 1.0, "diversity_weight": 0.0, "method": "global"}
    found = copa_plan(factual, [1, 0], covariance, **given)
    assert found.bound <= found.objective == -math.inf


@pytest.mark.skipif(not SOLVERS["scip"].is_installed, reason="SCIP is not installed.")
def test_zeros_may_be_a_plan_of_the_explicit_program() -> None:
    """Its ratio was bounded by 0, and SCIP said that there is no plan."""
    given = {"n": 2, "validity_weight": 1.0, "diversity_weight": 1.0, "method": "nonlinear", "groups": [[0], [1]]}
    found = copa_plan([1, 1], [-2, -1], 0.5 * np.eye(2), **given)
    assert found.plan.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert "infeasible" not in found.reason


def test_large_points_are_put_on_the_simplex() -> None:
    """Their parts added up to 2, and the descent at the limit of reach was of such points."""
    normal = np.array([0.6262, 1.4916, 1.0678, 0.0547, 1.0627])
    groups = ((0, 2, 4), (1, 3))
    points = np.array([[0.3, 0.2, 0.4, 0.1, 0.2], [6e15, 0.5, 1.06e16, 0.5, 1.067e16]])
    found = project(points, np.zeros(5), np.ones(5), groups=groups, normal=normal, least=1.0678 + 1.4916)
    for group in groups:
        assert found[:, list(group)].sum(axis=1) == pytest.approx([1.0, 1.0], abs=1e-9)

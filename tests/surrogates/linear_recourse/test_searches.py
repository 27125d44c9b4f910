"""Searches on a linear surrogate: golden values, brute force, each other, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from published import golden
from scipy.optimize import minimize_scalar
from scipy.special import expit

from ceopt import CeoptError
from ceopt.formulations import programs
from ceopt.formulations.predictors import ReluNetwork
from ceopt.formulations.programs.linear_recourse import require_ball
from ceopt.solvers import solve
from ceopt.surrogates import project, project_l1, roar, wachter
from ceopt.surrogates.rivals import Scored

NORMS = {1: "linf", 2: "l2", "inf": "l1"}
COSTS = ("l1", "l2", "linf")
number = st.integers(-8, 8).map(lambda k: k / 4.0)


def vector(d: int) -> Any:
    return st.lists(number, min_size=d, max_size=d).map(np.array)


# ---- golden ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("instance", golden("linear_projection"), ids=lambda one: one["id"])
def test_projection_is_the_published_one(instance: Any) -> None:
    inputs, expected = instance["inputs"], instance["expected"]
    cost = inputs["cost"]
    if cost not in {*COSTS, "mad"}:
        pytest.skip("no cost of the plain search")
    found = project(
        inputs["x0"],
        inputs["w"],
        inputs["intercept"],
        cost="l1" if cost == "mad" else cost,
        scale=inputs["mad"] if cost == "mad" else None,
        lower=inputs.get("lower"),
        upper=inputs.get("upper"),
    )
    assert found.status == expected["status"]
    if expected["status"] == "optimal":
        assert found.cost == pytest.approx(expected["cost"], abs=instance["tol"]["cost"])
        if instance["unique"].get("x") and "x" in instance["tol"]:
            assert found.point == pytest.approx(np.array(expected["x"]), abs=instance["tol"]["x"])


@pytest.mark.parametrize("instance", golden("robust_projection"), ids=lambda one: one["id"])
def test_robust_projection_is_the_published_one(instance: Any) -> None:
    inputs, expected = instance["inputs"], instance["expected"]
    found = project(
        inputs["x0"],
        inputs["w"],
        inputs["intercept"],
        cost=inputs["cost"],
        radius=inputs["delta"],
        norm=NORMS[inputs["dual_norm"]],  # type: ignore[arg-type]
    )
    assert found.status == expected["status"]
    for name, tolerance in instance["tol"].items():
        value = {"cost": found.cost, "nominal_cost": found.nominal_cost, "x": found.point}[name]
        assert value == pytest.approx(np.array(expected[name]), abs=tolerance)


@pytest.mark.parametrize("instance", golden("roar"), ids=lambda one: one["id"])
def test_roar_is_the_published_one(instance: Any) -> None:
    inputs, expected = instance["inputs"], instance["expected"]
    norm = {"inf": "linf", "2": "l2", "1": "l1"}[str(inputs["p"])]
    found = roar(
        inputs["x0"],
        inputs["w"],
        inputs["intercept"],
        radius=inputs["delta"],
        norm=norm,  # type: ignore[arg-type]
        perturb_intercept=inputs["perturb_intercept"],
        mode=inputs["mode"],
        weight=inputs.get("lam", 0.1),
    )
    assert found.status == "optimal"
    for name, tolerance in instance["tol"].items():
        assert getattr(found, name) == pytest.approx(expected[name], abs=tolerance)


@pytest.mark.parametrize("instance", golden("wachter"), ids=lambda one: one["id"])
def test_wachter_is_the_published_one(instance: Any) -> None:
    inputs, expected = instance["inputs"], instance["expected"]
    found = wachter(
        inputs["x0"],
        inputs["w"],
        inputs["intercept"],
        weight=inputs["lam"],
        target=inputs["target"],
        scale=inputs["mad"],
    )
    for name, tolerance in instance["tol"].items():
        assert getattr(found, name) == pytest.approx(expected[name], abs=tolerance)


# ---- projection ------------------------------------------------------------------------------------------------------
@draws(200)
@given(st.data(), st.integers(1, 4), st.sampled_from(COSTS), st.booleans())
def test_the_closed_form_is_the_program(data: st.DataObject, d: int, cost: Any, is_bounded: bool) -> None:
    factual, coef = data.draw(vector(d)), data.draw(vector(d))
    scale = np.abs(data.draw(vector(d))) + 0.25
    bounds = np.sort([data.draw(vector(d)), data.draw(vector(d))], axis=0) if is_bounded else (None, None)
    options = {"cost": cost, "scale": scale, "lower": bounds[0], "upper": bounds[1]}
    intercept = data.draw(number)
    found = project(factual, coef, intercept, **options)
    result = solve(programs.robust_projection(factual, coef, intercept, **options))
    assert found.status == str(result.status)
    if found.point is not None:
        assert found.cost == pytest.approx(result.objective, abs=1e-5)
        assert coef @ found.point + intercept >= -1e-9
        if is_bounded:
            assert (found.point >= bounds[0]).all()
            assert (found.point <= bounds[1]).all()


@draws(60)
@given(st.data(), st.integers(1, 3), st.sampled_from(COSTS), st.sampled_from(("l1", "l2", "linf")), st.booleans())
def test_a_robust_point_holds_and_none_of_a_lattice_is_nearer(
    data: st.DataObject, d: int, cost: Any, norm: Any, is_perturbed: bool
) -> None:
    factual, coef, intercept = data.draw(vector(d)), data.draw(vector(d)), data.draw(number)
    radius = 0.3
    found = project(
        factual, coef, intercept, cost=cost, radius=radius, norm=norm, perturb_intercept=is_perturbed, lower=-3, upper=3
    )
    order = {"l1": np.inf, "l2": 2, "linf": 1}[norm]
    lattice = np.stack(np.meshgrid(*[np.linspace(-3, 3, 25)] * d), axis=-1).reshape(-1, d)

    def at_worst(points: np.ndarray) -> np.ndarray:
        entries = np.column_stack([points, np.ones(len(points))]) if is_perturbed else points
        return np.asarray(points @ coef + intercept - radius * np.linalg.norm(entries, ord=order, axis=1))

    holding = lattice[at_worst(lattice) >= 0.0]
    if found.point is None:
        assert not len(holding)
        return
    assert at_worst(found.point[None])[0] >= -1e-6
    if len(holding):
        dearest = {"l1": 1, "l2": 2, "linf": np.inf}[cost]
        assert found.cost <= np.linalg.norm(holding - factual, ord=dearest, axis=1).min() + 1e-6


def test_what_a_projection_is_where_there_is_little_to_choose() -> None:
    assert project([1.0], [1.0], 0.0).cost == 0.0
    assert project([1.0], [0.0], -1.0).status == "infeasible"
    assert project([1.0], [0.0], -1.0).cost == np.inf
    assert project([1.0], [0.0], 1.0).point.tolist() == [1.0]
    assert project([0.0, 0.0], [1.0, 1.0], -3.0, upper=1.0).status == "infeasible"
    assert project([5.0], [1.0], 0.0, upper=1.0).cost == 4.0
    assert project_l1([0.0, 0.0], [1.0, -2.0], -3.0, margin=1.0).point.tolist() == [0.0, -2.0]
    assert project([0.0], [1.0], -1.0, radius=1.0).status == "infeasible"


# ---- ROAR ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("is_perturbed", [False, True])
def test_no_parameters_in_the_ball_score_less(norm: Any, is_perturbed: bool) -> None:
    rng = np.random.default_rng(0)
    factual, coef = rng.normal(size=4), rng.normal(size=4)
    found = roar(factual, coef, -2.0, radius=0.2, norm=norm, perturb_intercept=is_perturbed)
    moves = rng.normal(size=(5000, 5))
    if not is_perturbed:
        moves[:, 4] = 0.0
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    moves *= 0.2 / np.linalg.norm(moves, ord=order, axis=1, keepdims=True)
    scores = (coef + moves[:, :4]) @ found.point - 2.0 + moves[:, 4]
    assert scores.min() >= found.robust_score - 1e-9
    assert found.robust_score == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_soft_form_is_a_scalar_search_in_one_column(loss: Any, norm: Any) -> None:
    found = roar([0.0], [2.0], -1.0, radius=0.3, norm=norm, mode="soft", loss=loss, weight=0.2)

    def objective(x: float) -> float:
        entries = np.array([x, 1.0])
        order = {"l1": np.inf, "l2": 2, "linf": 1}[norm]
        score = 2.0 * x - 1.0 - 0.3 * np.linalg.norm(entries, ord=order)
        paid = max(0.0, 1.0 - score) if loss == "hinge" else np.logaddexp(0.0, -score)
        return float(paid + 0.2 * abs(x))

    best = minimize_scalar(objective, bounds=(-5.0, 20.0), method="bounded", options={"xatol": 1e-10})
    assert found.objective == pytest.approx(best.fun, abs=1e-6)
    assert found.point[0] == pytest.approx(best.x, abs=1e-3)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_gradient_holds_too_and_costs_no_less(norm: Any) -> None:
    factual, coef = np.array([0.2, -0.4, 0.1]), np.array([0.5, 0.7, -0.2])
    exact = roar(factual, coef, -1.0, radius=0.1, norm=norm)
    walked = roar(factual, coef, -1.0, radius=0.1, norm=norm, method="gradient")
    assert walked.status == "feasible"
    assert walked.robust_score >= 0.0
    assert exact.cost - 1e-6 <= walked.cost <= 2.0 * exact.cost


def test_the_gradient_says_so_where_it_meets_nothing() -> None:
    found = roar([0.0], [0.0], -1.0, method="gradient")
    assert (found.status, found.point, found.cost) == ("infeasible", None, np.inf)


def test_bounds_are_kept_by_both_methods() -> None:
    for method in ("program", "gradient"):
        found = roar([0.0, 0.0], [2.0, 1.0], -1.0, radius=0.1, upper=[0.2, 5.0], method=method)
        assert found.point[0] <= 0.2 + 1e-9
        assert found.robust_score >= -1e-6


# ---- Wachter ---------------------------------------------------------------------------------------------------------
@draws(200)
@given(st.data(), st.integers(1, 3), st.floats(0.01, 200.0), st.floats(0.0, 1.0))
def test_no_score_has_a_lower_penalty(data: st.DataObject, d: int, weight: float, target: float) -> None:
    factual, coef, intercept = data.draw(vector(d)), data.draw(vector(d)), data.draw(number)
    scale = np.abs(data.draw(vector(d))) + 0.25
    found = wachter(factual, coef, intercept, weight=weight, target=target, scale=scale)
    best = int((np.abs(coef) * scale).argmax())
    rate = abs(coef[best]) * scale[best]
    home = coef @ factual + intercept
    shifts = np.linspace(-30.0, 30.0, 20001)
    if rate == 0.0:
        shifts = np.zeros(1)
    penalties = weight * (expit(home + shifts) - target) ** 2 + np.abs(shifts) / (rate or 1.0)
    assert found.objective <= penalties.min() + 1e-9
    again = weight * (expit(coef @ found.point + intercept) - target) ** 2
    assert found.objective == pytest.approx(again + (np.abs(found.point - factual) / scale).sum(), abs=1e-9)


def test_wachter_by_gradient_and_in_its_hard_form() -> None:
    walked = wachter([0.0, 0.0], [1.0, 2.0], -1.0, method="gradient")
    assert walked.status == "feasible"
    assert walked.score >= 0.0
    hard = wachter([0.0, 0.0], [1.0, 2.0], -1.0, mode="hard", target=0.5)
    assert hard.point.tolist() == [0.0, 0.75]
    assert wachter([0.0], [0.0], -1.0, method="gradient").point is None
    assert wachter([0.0], [0.0], -1.0, mode="hard").status == "infeasible"


@draws(60)
@given(st.data(), st.integers(1, 3), st.floats(0.01, 50.0), st.floats(0.0, 1.0))
def test_the_penalty_within_bounds_is_that_of_a_lattice_at_most(
    data: st.DataObject, d: int, weight: float, target: float
) -> None:
    factual, coef, intercept = data.draw(vector(d)), data.draw(vector(d)), data.draw(number)
    lower, upper = np.sort([data.draw(vector(d)), data.draw(vector(d))], axis=0)
    found = wachter(factual, coef, intercept, weight=weight, target=target, lower=lower, upper=upper)
    grids = [np.linspace(low, high, 31) for low, high in zip(lower, upper, strict=True)]
    lattice = np.stack(np.meshgrid(*grids), axis=-1).reshape(-1, d)
    penalties = weight * (expit(lattice @ coef + intercept) - target) ** 2 + np.abs(lattice - factual).sum(axis=1)
    assert found.objective <= penalties.min() + 1e-9
    assert (found.point >= lower).all()
    assert (found.point <= upper).all()


def network(d: int, seed: int) -> ReluNetwork:
    rng = np.random.default_rng(seed)
    weights = [rng.normal(size=(5, d)), rng.normal(size=(4, 5)), rng.normal(size=(1, 4))]
    return ReluNetwork(weights, [rng.normal(size=5), rng.normal(size=4), rng.normal(size=1)])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("mode", ["hard", "penalty"])
def test_a_network_is_brought_to_its_global_optimum(seed: int, mode: Any) -> None:
    net = network(2, seed)
    factual = np.random.default_rng(100 + seed).uniform(-1.0, 1.0, 2)
    across = np.linspace(-2.0, 2.0, 401)
    lattice = np.stack(np.meshgrid(across, across), axis=-1).reshape(-1, 2)
    scores, costs = net.score(lattice), np.abs(lattice - factual).sum(axis=1)
    target = float(np.quantile(scores, 0.9)) if mode == "hard" else 1.0
    found = wachter(factual, net, weight=3.0, target=target, mode=mode, lower=-2.0, upper=2.0)
    assert found.status == "optimal"
    if mode == "hard":
        least = costs[scores >= target].min()
        assert found.score >= target - 1e-6
    else:
        least = (3.0 * (expit(scores) - target) ** 2 + costs).min()
    assert found.objective <= least + 1e-6
    assert found.objective >= least - 0.1  # the lattice is 0.01 wide
    assert found.score == pytest.approx(float(net.score(found.point[None])[0]))


def test_the_gradient_of_a_network_is_that_of_differences() -> None:
    net = network(3, 1)
    scored = Scored(net.weights, net.biases, (True, True))
    point = np.array([0.3, -0.2, 0.9])
    (score,), (slope,) = scored.with_slope(point[None])
    assert score == pytest.approx(float(net.score(point[None])[0]))
    for k in range(3):
        moved = point + 1e-6 * np.eye(3)[k]
        assert (scored.value(moved) - score) / 1e-6 == pytest.approx(slope[k], abs=1e-4)
    walked = wachter([-0.4, 0.1, 0.0], net, method="gradient")
    assert walked.point is None or walked.score >= 0.0


# ---- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: project([0.0], [1.0, 2.0], 0.0), "coef of shape"),
        (lambda: project([np.nan], [1.0], 0.0), "finite factual"),
        (lambda: project([0.0], [1.0], np.inf), "intercept|finite"),
        (lambda: project([0.0], [1.0], 0.0, scale=[0.0]), r"scale\[0\] is 0"),
        (lambda: project([0.0], [1.0], 0.0, lower=2.0, upper=1.0), "bounds"),
        (lambda: project([0.0], [1.0], 0.0, radius=-1.0), "radius is -1.0"),
        (lambda: project([0.0], [1.0], 0.0, cost="l3"), "'l3'"),
        (lambda: project([0.0], [1.0], 0.0, norm="l7", radius=1.0), "'l7'"),
        (lambda: roar([0.0], [1.0], 0.0, mode="medium"), "'medium'"),
        (lambda: roar([0.0], [1.0], 0.0, weight=-0.1), "weight is -0.1"),
        (lambda: roar([0.0], [1.0], 0.0, loss="squared"), "'squared'"),
        (lambda: wachter([0.0], [1.0], 0.0, target=np.nan), "target is nan"),
        (lambda: wachter([0.0], [1.0], 0.0, method="newton"), "'newton'"),
        (lambda: wachter([0.0, 1.0], network(3, 0), lower=-1, upper=1), "shape"),
        (lambda: wachter([0.0], network(1, 0), mode="hard"), "bound"),
        (lambda: programs.wachter([0.0], "net"), "model is of type str"),  # type: ignore[arg-type]
        (lambda: programs.wachter([0.0], ReluNetwork([[[1], [2]]], [[0, 1]], labels=(0, 1))), "model has 2"),
    ],
)
def test_what_is_wrong_is_named(call: Any, match: str) -> None:
    with pytest.raises(CeoptError, match=match):
        call()


def test_wachters_gradient_stops_at_its_level() -> None:
    scores = []
    for level in (0.5, 0.75, 0.9):
        found = wachter([0.0], [1.0], -2.0, method="gradient", level=level)
        scores.append(found.score)
        assert 0.0 <= found.score - np.log(level / (1.0 - level)) <= 0.02  # two steps of 0.01
    assert scores == sorted(scores)
    with pytest.raises(CeoptError, match="level"):
        wachter([0.0], [1.0], -2.0, level=1.0)


@pytest.mark.parametrize("weight", [1e2, 1e10, 1e13, 1e16, 1e20])
def test_a_heavy_weight_of_wachters_penalty_is_optimal_where_the_probability_is_nearly_one(weight):
    """With target 1 the optimum is near q = 1 - p = (2 weight)^(-1/2), which is nothing beside p = 1."""
    found = wachter([0.0], [1.0], -3.0, weight=weight)
    scores = np.linspace(-3.0, 60.0, 200_001)
    penalties = weight * expit(-scores) ** 2 + scores + 3.0

    assert found.objective == pytest.approx(penalties.min(), rel=1e-6)
    assert found.score == pytest.approx(scores[penalties.argmin()], abs=1e-3)


def test_a_heavy_weight_within_bounds_goes_on_to_the_next_column():
    """The first column ends at its bound; at 3.7e13 the root of the second was lost in rounding."""
    found = wachter(
        [-0.3, 0.8],
        [-70.0, -170.0],
        -4.8,
        weight=36997527024522.414,
        scale=[0.31, 0.72],
        lower=[-0.4, -0.3],
        upper=[-0.4, 1.2],
    )

    assert found.objective == pytest.approx(1.3983249, abs=1e-6)


# ---- margins in plain numbers ----------------------------------------------------------------------------------------
def drawn_questions(count, radius):
    """Random questions in all norms and units, with and without bounds, of which some point keeps the margin."""
    rng = np.random.default_rng(11)
    for k in range(count):
        d = int(rng.integers(1, 6))
        coef = rng.normal(size=d) * 10.0 ** rng.uniform(-2, 2)
        factual = rng.normal(size=d) * 10.0 ** rng.uniform(-2, 2)
        intercept = -abs(rng.normal()) * 10.0 ** rng.uniform(-1, 2) - float(coef @ factual)
        options = {
            "cost": ["l1", "l2", "linf"][k % 3],
            "norm": ["l2", "l1", "linf"][k // 3 % 3],
            "perturb_intercept": k % 2 == 0,
            "margin": [0.0, 0.1, 1.0][k % 3],
            "radius": radius * float(np.abs(coef).max()) * rng.uniform(0.1, 1.0),
            "scale": 10.0 ** rng.uniform(-1, 1, size=d),
        }
        if k % 4 == 0:
            options["lower"] = factual - 100.0
            options["upper"] = factual + 100.0 * rng.random(d)
        yield factual, coef, intercept, options


@pytest.mark.parametrize("radius", [0.0, 0.3])
def test_a_projection_keeps_bounds_and_margin_to_the_last_bit(radius):
    """What a solver's tolerance leaves short is made up for, at a cost that is the optimum's to eight digits."""
    tried = 0
    for factual, coef, intercept, options in drawn_questions(60, radius):
        found = project(factual, coef, intercept, **options)
        if found.point is None:
            continue
        tried += 1
        ball = {word: options[word] for word in ("radius", "norm", "perturb_intercept")}
        loss = require_ball("test", **ball).loss(found.point)
        assert float(coef @ found.point) + intercept - loss >= options["margin"], (found, options)
        assert (found.point >= options.get("lower", -np.inf)).all()
        assert (found.point <= options.get("upper", np.inf)).all()
        program = programs.robust_projection(factual, coef, intercept, **options)
        assert found.cost == pytest.approx(solve(program).objective, rel=1e-6, abs=1e-7)
        assert found.status == "optimal"
    assert tried > 40


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_robust_recourse_scores_at_worst_what_it_is_asked(norm):
    for factual, coef, intercept, options in drawn_questions(12, 0.2):
        found = roar(factual, coef, intercept, radius=options["radius"], norm=norm, margin=options["margin"])
        if found.point is not None:
            assert found.robust_score >= options["margin"]


def test_a_hard_search_reaches_its_level_in_plain_numbers():
    rng = np.random.default_rng(4)
    network = ReluNetwork([rng.normal(size=(4, 3)), rng.normal(size=(1, 4))], [rng.normal(size=4), [-1.0]])
    reached = 0
    for level in (0.1, 0.37, 1.3):
        for factual in rng.normal(size=(3, 3)):
            found = wachter(factual, network, mode="hard", target=level, lower=-5.0, upper=5.0)
            if found.point is not None:
                assert found.score >= level
                reached += 1
    assert reached > 4


def test_a_margin_that_is_the_greatest_in_reach_has_its_point():
    """Nothing can be asked on top of it: the point is as near as the solver's tolerance."""
    found = project([0.0, 0.0], [1.0, 1.0], 0.0, upper=1.0, lower=0.0, radius=0.1, norm="linf", margin=1.8)
    assert found.status == "optimal"
    assert found.point == pytest.approx([1.0, 1.0], abs=1e-8)

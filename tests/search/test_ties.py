"""What a default margin leaves out: where it is dear, at a level that is enough by less, at the end of a reach."""

from __future__ import annotations

import math
from typing import Any

import pytest
from faulty import faulty

import ceopt
from ceopt.formulations.predictors import Affine, ReluNetwork
from ceopt.formulations.space.reachable import Interval, Levels
from ceopt.oracle.model import ModelOracle
from ceopt.search.phases import _snapped
from ceopt.solvers import Outcome
from ceopt.solvers.problem import Stop

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


@pytest.mark.parametrize("slope", [1e-3, 1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_what_is_claimed_of_a_network_that_hardly_rises_holds(slope: float, solver: str) -> None:
    """Of these "optimal, gap 0" was said at 8.8e-6, 8.8e-5, 8.8e-4 and 2.25 beyond the infimum."""
    model = bent(slope)
    space = ceopt.FeatureSpace([X])
    result = ceopt.explain(model, {"x": 0}, space, target="yes", cost=ceopt.L1(scale="none"), solver=solver)
    assert model.predict([[1.0 + 1e-9 / slope * 1e-3]])[0] == "yes"
    assert result.bound <= 1.0 + 1e-5
    assert result[0].cost <= (1.0 + 1e-5 if result.status == "optimal" else 4.0)
    assert solver == "scip" or result.status == "optimal"


@pytest.mark.usefixtures("by_program")
def test_where_it_is_cheap_nothing_else_is_solved() -> None:
    result, runs = asked(bent(1.0), ceopt.FeatureSpace([X]))
    assert result.status == "optimal"
    assert (result[0].cost, runs) == (pytest.approx(1.0 + result.margin), 1)


@pytest.mark.usefixtures("by_program")
def test_where_nothing_is_cheaper_without_a_margin_no_smaller_one_is_tried() -> None:
    result, runs = asked(Affine([1.0], -1.0, labels=("no", "yes")), ceopt.FeatureSpace([X]))
    assert result.status == "optimal"
    assert (result[0].cost, runs) == (pytest.approx(1.0, abs=1e-5), 2)


def test_a_level_that_reaches_the_target_by_less_than_the_margin_is_an_answer() -> None:
    """With the margin x has to move beside it, by 1.5e-4."""
    space = ceopt.FeatureSpace([ceopt.Feature("k", kind="binary", levels=(0, 1)), X])
    model = ReluNetwork([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.01]]], [[0.0, 0.0], [1e-6 - 1.0]], labels=("no", "yes"))
    assert model.predict([[1.0, 0.0]])[0] == "yes"
    result, _ = asked(model, space)
    assert result.status == "optimal"
    assert (result[0].changed, result[0].cost) == (("k",), 1.0)
    assert result.bound == pytest.approx(1.0, rel=1e-6)


def test_a_cheaper_point_that_the_model_refuses_at_every_margin_takes_the_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model accepts k only with x beside it; every program with less margin gives k alone, for 1.5e-4 less."""
    space = ceopt.FeatureSpace([ceopt.Feature("k", kind="binary", levels=(0, 1)), X])
    model = Affine([1.0, 0.01], 1e-6 - 1.0, labels=("no", "yes"))
    judge = ModelOracle.judge

    def stricter(self: Any, frame: Any, target: Any) -> Any:
        predicted, met = judge(self, frame, target)
        score = frame["k"].to_numpy() + 0.01 * frame["x"].to_numpy() + (1e-6 - 1.0)
        return predicted, met & (score >= 0.9999 * 2.5e-6)

    monkeypatch.setattr(ModelOracle, "judge", stricter)
    result, runs = asked(model, space)
    assert runs > 1
    assert (result.status, result[0].changed) == ("feasible", ("k", "x"))
    assert result[0].cost == pytest.approx(1.0 + 1.5e-4, abs=1e-7)
    assert result.bound == pytest.approx(1.0, abs=1e-7)
    assert "Nearer to the decision the model refuses the solver's points" in result.reason


def test_what_the_model_refuses_at_the_best_of_every_column_is_proved() -> None:
    """By a float it misses the level: HiGHS finds it there, and b is a trace of what a may add in the whole space."""
    a = ceopt.Feature("a", kind="integer", lower=0, upper=10**9, direction="decreasing")
    space = ceopt.FeatureSpace([a, ceopt.Feature("b", kind="continuous", lower=0, upper=1)])
    model = Affine([1.0, 9e-4], 0.0)
    best = float(model.predict([[5.0, 1.0]])[0])
    question = {"cost": ceopt.L1(scale="none"), "solver": "highs", "why": False}
    beyond = ceopt.AtLeast(math.nextafter(best, math.inf))
    assert ceopt.explain(model, {"a": 5, "b": 0.0}, space, target=ceopt.AtLeast(best), **question)[0].cost == 1.0
    result = ceopt.explain(model, {"a": 5, "b": 0.0}, space, target=beyond, **question)
    assert (result.status, result.complete) == ("infeasible", True)


# ---- a program without a margin that ends early ----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("stop", "status"), [(Stop.ERROR, "error"), (Stop.UNBOUNDED, "error"), (Stop.INTERRUPTED, "time_limit")]
)
def test_what_a_margin_leaves_out_is_no_proof_where_the_solver_does_not_settle_it(stop: Stop, status: str) -> None:
    """Two columns of at most 0.9 in all do not reach 1; that they do not tie either only a second program shows."""
    runs: list[Outcome] = []

    def later(told: Outcome, _compiled: Any) -> Outcome:
        runs.append(told)
        return told if len(runs) == 1 else Outcome(status=stop)

    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous", lower=0, upper=1) for name in ("a", "b")])
    question = {
        "target": "yes", "why": False, "constraints": [ceopt.Linear({"a": 1.0, "b": 1.0}, "<=", 0.9)],
    }  # fmt: skip
    model, home = Affine([1.0, 1.0], -1.0, labels=("no", "yes")), {"a": 0.0, "b": 0.0}
    assert ceopt.explain(model, home, space, **question).status == "infeasible"
    with faulty(later) as solver:
        result = ceopt.explain(model, home, space, solver=solver, **question)
    assert len(runs) > 1
    assert result.status == status
    assert "Whether a tie does is not settled" in result.reason
    assert not result.complete


@pytest.mark.usefixtures("by_program")
def test_ctrl_c_in_a_program_without_a_margin_ends_the_search_and_not_that_program_alone() -> None:
    """The answer within the margin stays, and no further one is looked for."""
    runs: list[Outcome] = []

    def second(told: Outcome, _compiled: Any) -> Outcome:
        runs.append(told)
        return Outcome(status=Stop.INTERRUPTED) if len(runs) == 2 else told

    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous", lower=0, upper=1) for name in ("a", "b")])
    model, home = Affine([1.0, 1.0], -0.5, labels=("no", "yes")), {"a": 0.0, "b": 0.0}
    question = {"target": "yes", "n": 2, "diversity": "support"}
    assert len(ceopt.explain(model, home, space, **question)) == 2
    with faulty(second) as solver:
        result = ceopt.explain(model, home, space, solver=solver, **question)
    assert (len(result), len(runs)) == (1, 2)
    assert not result.complete


# ---- numbers that a solver left beside an end ------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("part", "value", "home", "there"),
    [
        (Interval(-5.0, 7.0), 6.99999, 2.0, 7.0),
        (Interval(-5.0, 7.0), 7.00001, 2.0, 7.0),
        (Interval(-5.0, 7.0), -4.99999, 2.0, -5.0),
        (Interval(-5.0, 7.0), 2.00001, 2.0, 2.0),
        (Interval(-5.0, 7.0), 6.9999, 2.0, 6.9999),
        (Interval(-5.0, 7.0), 5.0, 2.0, 5.0),  # the lower end's mirror image is no end
        (Interval(-5.0, 7.0), 6.999997, 6.999991, 7.0),  # the nearer of two
        (Interval(-5.0, 7.0), 6.999993, 6.999991, 6.999991),
        (Interval(-math.inf, math.inf), 1000.0005, 1000.0, 1000.0),
        (Interval(-math.inf, math.inf), 1000.002, 1000.0, 1000.002),
        (Interval(-math.inf, 4.0), 0.9999995, 1.0, 1.0),
        (Interval(3.0, 3.0), 3.0000001, 3.0, 3.0000001),
        (Interval(0.0, 9.0, 1.0), 9.0000001, 2.0, 9.0000001),  # whole numbers are read as such
        (Interval(0.0, 2.0**24, 1.0), 2.0**24 - 3.0, 2.0, 2.0**24),  # but for very many
        (Levels((0, 1)), 1.0000001, 0.0, 1.0000001),
    ],
)
def test_a_number_beside_an_end_or_the_persons_own_is_put_there(
    part: Interval | Levels, value: float, home: float, there: float
) -> None:
    rest = {"other": Interval(0.0, 1.0)}
    snapped = _snapped({"x": value, "other": 0.5}, {"x": home, "other": 0.25}, {"x": part, **rest})
    assert snapped == {"x": there, "other": 0.5}

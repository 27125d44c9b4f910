"""The limit holds for plans and their bounds: what is in hand by then is legal and comes back.

No test asks how long something takes. The clock is the test's own and is moved by a chosen function, or the limit is so
short that it is over at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from ceopt.plans import copa_plan, validity_bounds
from ceopt.plans.copa_space import PlanSearch
from ceopt.solvers import solve
from ceopt.solvers.cones import psd
from ceopt.solvers.registry import SOLVERS

D = 8
RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(D, D))
COVARIANCE = 0.05 * ROOT @ ROOT.T / D
GROUPS = [[5, 6, 7]]
FACTUAL = np.r_[-np.ones(5), 1.0, 0.0, 0.0]
METHODS = ["gradient", "descent", "global", pytest.param("nonlinear", marks=pytest.mark.skipif(
    not SOLVERS["scip"].is_licensed, reason="SCIP is not installed"))]  # fmt: skip


def planned(method: Any, limit_s: float, **further: Any) -> Any:
    given: dict[str, Any] = {
        "n": 1 if method == "global" else 3, "margin": 0.1, "validity_weight": 0.5, "diversity_weight": 2.0,
        "groups": GROUPS, "bounds": (-3.0, 3.0), "method": method, "time_limit_s": limit_s,
    }  # fmt: skip
    return copa_plan(FACTUAL, np.ones(D), COVARIANCE, **(given | further))


def require_legal(plan: Any) -> None:
    assert (plan @ np.ones(D) >= 0.1 - 1e-9).all()
    assert (np.abs(plan) <= 3.0 + 1e-9).all()
    chosen = plan[:, GROUPS[0]]
    assert set(chosen.ravel().tolist()) <= {0.0, 1.0}
    assert (chosen.sum(axis=1) == 1.0).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_plan_is_legal_however_early_the_time_ends(method: str, capfd: pytest.CaptureFixture[str]) -> None:
    found = planned(method, 1e-9)

    assert capfd.readouterr() == ("", "")  # Pyomo is silent about it
    assert found.status == "feasible"
    assert found.certificate == "best_known"
    assert "time" in found.reason
    require_legal(found.plan)


@pytest.mark.parametrize("method", METHODS)
def test_the_search_ends_at_the_limit(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each projection takes a second: after the limit come only those that make what is in hand legal."""
    now = [1000.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    inner = PlanSearch.rows_onto

    def rows_onto(self: PlanSearch, *arguments: Any) -> Any:
        now[0] += 1.0
        return inner(self, *arguments)

    monkeypatch.setattr(PlanSearch, "rows_onto", rows_onto)
    limit_s = 2.0 if method == "nonlinear" else 60.0  # SCIP has a clock of its own
    found = planned(method, limit_s)

    assert found.status in {"feasible", "optimal"}
    assert now[0] - 1000.0 <= limit_s + 40.0  # without a limit 400 of a descent, several times
    require_legal(found.plan)


def test_more_time_gives_no_worse_a_plan() -> None:
    early = planned("gradient", 1e-9, groups=None)
    late = planned("gradient", 60.0, groups=None)
    assert late.objective < early.objective
    assert not late.reason


@pytest.mark.parametrize("calls", [3, 40, 400])
def test_a_feature_map_is_not_asked_after_the_limit(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    asked: list[float] = []

    def slow(x: Any) -> Any:
        asked.append(now[0] - 1000.0)
        now[0] += 1.0
        return x

    def jacobian(x: Any) -> Any:
        slow(x)
        return np.eye(len(x))

    found = planned("gradient", calls + 2.5, groups=None, feature_map=(slow, jacobian))

    # Before the limit is set, the map is asked for the shapes of what it returns; after it, for the value of the plan.
    late = [second for second in asked if second > calls + 2.5 + 2.0]
    assert len(late) <= 3 * 3
    assert found.status in {"feasible", "time_limit", "rejected"}
    assert (found.plan is None) == (found.status != "feasible")
    assert found.status == "feasible" or calls < 400


# ---- bounds ----------------------------------------------------------------------------------------------------------
PLAN = np.abs(RNG.normal(size=(3, D))) + 0.2
FORMS = ["auto", "theorem", "arrow", "moment", "scalar", "dual"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_bounds_that_time_leaves_are_trivial_and_say_so(
    form: Any, sign: float, capfd: pytest.CaptureFixture[str]
) -> None:
    mean = np.ones(D)
    mean[0] = sign
    plan = PLAN * np.r_[6.0 if sign < 0 else 1.0, np.ones(D - 1)]
    known = validity_bounds(plan, mean, COVARIANCE, 0.05, form=form)
    late = validity_bounds(plan, mean, COVARIANCE, 0.05, form=form, time_limit_s=1e-9)

    assert late.status == "time_limit"
    assert late.lower <= known.lower
    assert late.upper >= known.upper
    assert "time limit is used up" in late.reason
    assert "the trivial one" in late.reason
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("form", FORMS)
def test_the_limit_is_that_of_the_call_not_of_each_program(form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stating a program takes longer than the limit, so that no solver is asked."""
    now = [1000.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    from ceopt.plans import validity as forms

    began = []

    def late(*arguments: Any, **options: Any) -> Any:
        began.append(now[0])
        return solve(*arguments, **options)

    monkeypatch.setattr(forms, "solve", late)
    reduction = forms.reduced
    scaled = forms.scaled

    def slow(inner: Any) -> Any:
        def slower(*arguments: Any) -> Any:
            now[0] += 10.0
            return inner(*arguments)

        return slower

    monkeypatch.setattr(forms, "reduced", slow(reduction))
    monkeypatch.setattr(forms, "scaled", slow(scaled))
    found = validity_bounds(PLAN, np.ones(D), COVARIANCE, 0.05, form=form, time_limit_s=5.0)

    assert found.status == "time_limit"
    assert not began


# ---- a step of a solver that takes long ------------------------------------------------------------------------------
@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Clarabel's set-up waits until the test lets it go on."""
    import clarabel

    go_on = threading.Event()
    inner = clarabel.DefaultSolver

    def slow(*arguments: Any) -> Any:
        go_on.wait(60.0)
        return inner(*arguments)

    monkeypatch.setattr(clarabel, "DefaultSolver", slow)
    yield go_on
    go_on.set()


def test_what_would_take_longer_to_set_up_than_there_is_time_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other thread runs while Clarabel is set up, so that nobody could stop waiting."""
    import clarabel

    begun = []
    inner = clarabel.DefaultSolver
    monkeypatch.setattr(clarabel, "DefaultSolver", lambda *arguments: begun.append(1) or inner(*arguments))
    monkeypatch.setattr(time, "perf_counter", lambda: 1000.0)  # the limit is not over
    k = 40  # 820 rows, and 336,200 numbers in their block
    model = pyo.ConcreteModel()
    model.x = pyo.Var()
    model.cone = pyo.Constraint(expr=psd([[model.x - 1.0 if i == j else 0.0 for j in range(k)] for i in range(k)]) >= 0)
    model.least = pyo.Objective(expr=model.x)

    late = solve(model, "clarabel", time_limit_s=0.1)
    assert late.status == "time_limit"
    assert not begun
    assert solve(model, "clarabel", time_limit_s=10.0).status == "optimal"
    assert begun


def test_a_step_of_a_large_cone_program_is_not_waited_for(stuck: threading.Event) -> None:
    d = 20
    root = np.random.default_rng(1).normal(size=(d, d))
    plan = np.abs(np.random.default_rng(2).normal(size=(5, d))) + 0.2
    found = validity_bounds(
        plan, np.ones(d), 0.05 * root @ root.T / d, 0.05, form="theorem", solver="clarabel", time_limit_s=1.0
    )

    assert not stuck.is_set()  # it came back while the solver was still setting up
    assert found.status == "time_limit"
    assert (found.lower, found.upper) == (0.0, 1.0)
    assert "time limit" in found.reason

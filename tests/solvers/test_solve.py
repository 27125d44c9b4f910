"""One call: statuses, loading, the table of solvers, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
import pytest

from ceopt.solvers import ProblemClass, Status, available, registry, solve
from ceopt.solvers.errors import InvalidTypeError, MissingLibraryError, UnknownNameError, UnsupportedProblemError
from ceopt.solvers.problem import relative_gap_of


def test_the_best_is_loaded(make_knapsack: Callable[..., Any]) -> None:
    model = make_knapsack(12, 3)
    result = solve(model, "highs")
    assert (result.status, result.solver, str(result.status)) == (Status.OPTIMAL, "highs", "optimal")
    assert pyo.value(model.value) == pytest.approx(result.objective)
    assert all(type(v.value) is int for v in model.y.values())
    best = result.solutions[0]
    assert dict(best) == {v.name: v.value for v in model.y.values()}
    assert len(best) == 12
    assert best["y[3]"] == model.y[3].value
    model.y[3].set_value(7)
    best.load()
    assert model.y[3].value == best["y[3]"]
    assert set(result.timings) == {"lower", "solve"}
    assert result.version
    assert result.incumbents[-1][1] == result.objective
    assert result.gap is not None
    assert result.gap <= 1e-6


def test_nothing_is_loaded_where_nothing_is_found() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 1), initialize=0.25)
    m.c = pyo.Constraint(expr=m.x >= 2)
    result = solve(m)
    assert (result.status, result.objective, result.solutions, result.gap) == (Status.INFEASIBLE, None, (), None)
    assert m.x.value == 0.25


@pytest.mark.parametrize("build", ["nothing", "variable", "false"])
def test_degenerate_models(build: str) -> None:
    m = pyo.ConcreteModel()
    if build == "variable":
        m.x = pyo.Var(bounds=(2, None), domain=pyo.Integers)
    if build == "false":
        m.c = pyo.Constraint(expr=pyo.Constraint.Infeasible)
    result = solve(m)
    assert result.status is (Status.INFEASIBLE if build == "false" else Status.OPTIMAL)
    if build == "variable":
        assert m.x.value == 2
    if build != "false":
        assert (result.objective, result.bound, result.gap) == (0, 0, 0)


def test_unknown_solver_and_class() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(domain=pyo.Integers, bounds=(0, 3))
    m.o = pyo.Objective(expr=(m.x - 1) ** 2)
    with pytest.raises(UnknownNameError, match="Did you mean 'highs'"):
        solve(m, "higs")
    for name in ("auto", "highs"):
        with pytest.raises(UnsupportedProblemError, match="MIQP"):
            solve(m, name)
    with pytest.raises(InvalidTypeError, match="dict"):
        solve({})


def test_available_lists_every_solver() -> None:
    frame = available()
    assert frame.columns.tolist() == ["solver", "installed", "version", "licensed", "supports", "why_not"]
    assert frame["solver"].tolist() == list(registry.SOLVERS)
    row = frame.set_index("solver").loc["highs"]
    assert bool(row["installed"])
    assert row["supports"] == "LP, MILP, QP"
    assert row["why_not"] == ""


def test_a_missing_library_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(MissingLibraryError, match="pip install highspy"):
        registry.choose("auto", ProblemClass.LP)
    assert "not installed" in available()["why_not"][0]


@pytest.mark.parametrize(
    ("objective", "bound", "gap"), [(2.0, 1.5, 0.25), (0.0, 0.0, 0.0), (-2.0, -3.0, 0.5), (1.0, None, None)]
)
def test_gap(objective: float, bound: float | None, gap: float | None) -> None:
    assert relative_gap_of(objective, bound) == gap

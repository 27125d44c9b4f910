"""One call: statuses, loading, starts, incumbents, refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest

from ceopt.solvers import Status, compile_model, count, solve, write
from ceopt.solvers.cones import soc
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.highs import HighsSession
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
    assert result.complete
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


def test_misuse_is_named() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(domain=pyo.Integers, bounds=(0, 3))
    m.o = pyo.Objective(expr=m.x)
    with pytest.raises(UnknownNameError, match="Did you mean 'highs'"):
        solve(m, "higs")
    with pytest.raises(InvalidTypeError, match="dict"):
        solve({})
    for limit in (0.0, -1.0, float("nan"), "soon"):
        with pytest.raises(InvalidValueError, match="time_limit_s"):
            solve(m, time_limit_s=limit)  # type: ignore[arg-type]


def test_a_start_is_what_the_vars_hold(make_knapsack: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Vars without a value are left out; without ``start`` none is given."""
    starts: list[Any] = []
    solve_highs = HighsSession.solve

    def noted(self: Any, **words: Any) -> Any:
        starts.append(words["start"])
        return solve_highs(self, **words)

    monkeypatch.setattr(HighsSession, "solve", noted)
    model = make_knapsack(4, 1)
    model.y[1].set_value(1)
    model.y[3].set_value(0)
    columns = {v.name: k for k, v in enumerate(compile_model(model).columns)}
    solve(model, "highs", start=True)
    solve(model, "highs")
    assert starts == [{columns["y[1]"]: 1.0, columns["y[3]"]: 0.0}, None]


@pytest.mark.long
def test_a_start_is_used(hard: Any) -> None:
    """With no time to search, what comes back is at least what was there."""
    found = solve(hard, "highs", time_limit_s=2.0)
    again = solve(hard, "highs", start=True, time_limit_s=0.2)
    assert again.objective is not None
    assert again.objective >= found.objective - 1e-9


def test_incumbents_are_told_as_they_come(make_knapsack: Callable[..., Any]) -> None:
    model, told = make_knapsack(20, 4), []
    result = solve(model, "highs", on_incumbent=lambda seconds, objective: told.append((seconds, objective)))
    assert told
    assert list(result.incumbents)[: len(told)] == told
    assert [objective for _, objective in told] == sorted(objective for _, objective in told)

    def fails(_seconds: float, _objective: float) -> None:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        solve(model, "highs", on_incumbent=fails)


def test_the_certificate_of_a_cone_solver_is_handed_on() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2], bounds=(-2, 2))
    m.disc = pyo.Constraint(expr=soc(1.0, [m.x[1], m.x[2]]) >= 0)
    m.o = pyo.Objective(expr=m.x[1] + m.x[2])
    result = solve(m, "clarabel")
    assert result.objective == pytest.approx(-(2**0.5))
    assert result.certificate is not None
    assert result.certificate.worst <= 1e-6
    assert solve(m, "clarabel", pool=3).message.endswith("free integer.")


@pytest.mark.parametrize(
    ("objective", "bound", "gap"), [(2.0, 1.5, 0.25), (0.0, 0.0, 0.0), (-2.0, -3.0, 0.5), (1.0, None, None)]
)
def test_gap(objective: float, bound: float | None, gap: float | None) -> None:
    assert relative_gap_of(objective, bound) == gap


def test_an_abstract_model_is_refused_by_all(tmp_path: Path) -> None:
    m = pyo.AbstractModel()
    m.x = pyo.Var(bounds=(2, 5))
    m.cost = pyo.Objective(expr=m.x)
    for ask in (solve, count, lambda model: write(model, tmp_path / "a.lp")):
        with pytest.raises(InvalidTypeError, match="create_instance"):
            ask(m)
    assert solve(m.create_instance()).objective == 2


@pytest.mark.parametrize(
    ("name", "value"), [("options", ["a"]), ("on_incumbent", 5), ("start", "yes"), ("callback", 3), ("tee", 1)]
)
def test_what_is_of_the_wrong_type_is_refused_by_name(name: str, value: Any) -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 1))
    m.cost = pyo.Objective(expr=m.x)
    with pytest.raises(InvalidTypeError, match=name):
        solve(m, **{name: value})


def test_a_result_is_one_line() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2], domain=pyo.Binary)
    m.cost = pyo.Objective(expr=m.x[1] + 2 * m.x[2] + 1)
    assert str(solve(m, "highs", pool=2)).startswith("optimal, objective 1, gap 0.0e+00, 2 solutions, highs ")
    m.never = pyo.Constraint(expr=m.x[1] + m.x[2] >= 3)
    assert str(solve(m, "highs")).startswith("infeasible, highs ")

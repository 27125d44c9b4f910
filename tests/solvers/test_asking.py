"""What a caller may ask of a search: where it begins, when it ends, what it tells on its way."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
from typing import Any

import pyomo.environ as pyo
import pytest

from ceopt.solvers import Status, compile_model, solve
from ceopt.solvers.cones import soc
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnsupportedProblemError
from ceopt.solvers.registry import SOLVERS
from ceopt.solvers.start import start_of

SEARCHERS = ("highs", "scip", "gurobi")


def needs(solver: str) -> None:
    if not SOLVERS[solver].is_licensed:
        pytest.skip(f"{solver} is not here")


def packing(n: int, rows: int, sense: Any = pyo.maximize, seed: int = 1) -> Any:
    """Binaries of values 30 to 70 in rows of weights 20 to 60, and 7 on top; the sign of all with the sense."""
    draw = random.Random(seed)
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(n), domain=pyo.Binary)
    m.rows = pyo.ConstraintList()
    for _ in range(rows):
        m.rows.add(sum(draw.randint(20, 60) * m.y[i] for i in range(n)) <= n * 40 / 3)
    sign = 1 if sense == pyo.maximize else -1
    m.worth = pyo.Objective(expr=sign * (sum(draw.randint(30, 70) * m.y[i] for i in range(n)) + 7), sense=sense)
    return m


# ---- where it begins -------------------------------------------------------------------------------------------------
def small() -> Any:
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2, 3], bounds=(0, 4), domain=pyo.Integers)
    m.t = pyo.Var(bounds=(0, 9))
    m.free = pyo.Var(bounds=(0, 1))
    m.held = pyo.Var(initialize=2)
    m.held.fix()
    m.row = pyo.Constraint(expr=m.x[1] + m.x[2] <= 5)
    m.other = pyo.Constraint(expr=m.x[3] + m.t + m.held >= 6)
    m.cost = pyo.Objective(expr=m.x[1] + m.x[2] + 2 * m.x[3] + m.t)
    return m


def at(*pairs: tuple[Any, float]) -> Any:
    return pyo.ComponentMap(pairs)


def by_name(m: Any, start: Any) -> dict[str, float] | None:
    compiled = compile_model(m)
    found = start_of(start, m, compiled)
    return found and {compiled.columns[k].name: value for k, value in found.items()}


def test_a_start_names_some_vars_and_the_others_keep_what_they_hold():
    m = small()
    m.x[3].set_value(4)
    assert by_name(m, at((m.x[1], 1), (m.held, 2), (m.free, 1))) == {"x[1]": 1.0, "x[3]": 4.0}
    assert by_name(m, True) == {"x[3]": 4.0}
    assert by_name(m, None) is by_name(m, False) is None


@pytest.mark.parametrize(("name", "value"), [("x[2]", 4), ("t", 0), ("t", 20)])
def test_what_the_vars_hold_is_left_out_where_it_would_break_the_start(name: str, value: float):
    m = small()
    m.find_component(name).set_value(value, skip_validation=True)
    named = at((m.x[1], 3), (m.x[3], 2))
    assert by_name(m, named) == {"x[1]": 3.0, "x[3]": 2.0}


#: Another model, which is kept: a variable whose model is gone has no name.
OTHER = small()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (lambda _: {}, InvalidValueError, "it names none"),
        (lambda _: {"x": 1}, InvalidTypeError, "one is 'x'"),
        (lambda m: at((m.x, 1)), InvalidTypeError, "'x', which is indexed"),
        (lambda _: at((OTHER.x[1], 1)), InvalidValueError, r"'x\[1\]' is none of it"),
        (lambda m: at((m.x[1], 5)), InvalidValueError, r"'x\[1\]' gets 5 and has bounds \[0, 4\]"),
        (lambda m: at((m.x[1], 1.5)), InvalidValueError, r"whole numbers for integers, but 'x\[1\]' gets 1.5"),
        (lambda m: at((m.t, float("nan"))), InvalidValueError, "'t' gets nan"),
        (lambda m: at((m.held, 3)), InvalidValueError, "'held' gets 3, not 2"),
        (lambda m: at((m.x[1], 4), (m.x[2], 2)), InvalidValueError, "break constraint 'row' by 1"),
        (lambda m: at((m.x[3], 2), (m.t, 1.5)), InvalidValueError, "break constraint 'other' by 0.5"),
        (lambda _: [1, 2], InvalidTypeError, "a mapping from Vars to values"),
    ],
)
def test_a_start_that_is_none_is_refused_by_name(given: Any, error: type[Exception], message: str):
    m = small()
    with pytest.raises(error, match=message):
        solve(m, "highs", start=given(m))


def test_a_start_is_held_against_curved_rows_and_cones_too():
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2], bounds=(-3, 3))
    m.disc = pyo.Constraint(expr=m.x[1] ** 2 + m.x[2] ** 2 <= 4)
    m.cost = pyo.Objective(expr=m.x[1])
    assert by_name(m, at((m.x[1], 2), (m.x[2], 0))) == {"x[1]": 2.0, "x[2]": 0.0}
    with pytest.raises(InvalidValueError, match="'disc' by 4"):
        start_of(at((m.x[1], 2), (m.x[2], 2)), m, compile_model(m))
    m.disc.deactivate()
    m.cone = pyo.Constraint(expr=soc(2, [m.x[1], m.x[2]]) >= 0)
    with pytest.raises(InvalidValueError, match="'cone'"):
        start_of(at((m.x[1], 2), (m.x[2], 2)), m, compile_model(m))


@pytest.mark.parametrize("solver", SEARCHERS)
def test_a_start_is_the_worst_that_comes_back(solver: str):
    """With hardly any time, the answer is at least as good as the start."""
    needs(solver)
    m = packing(150, 25)
    good = solve(m, "gurobi" if SOLVERS["gurobi"].is_licensed else "highs", time_limit_s=2.0)
    start = at(*((var, var.value) for var in m.y.values()))
    again = solve(packing(150, 25), solver, time_limit_s=0.05)
    for var in m.y.values():
        var.set_value(None)
    begun = solve(m, solver, start=start, time_limit_s=0.05)
    assert begun.objective is not None
    assert begun.objective >= good.objective - 1e-6 >= (again.objective or 0.0) - 1e-6


# ---- when it ends ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sense", [pyo.maximize, pyo.minimize])
@pytest.mark.parametrize("solver", SEARCHERS)
def test_an_absolute_gap_ends_the_search_in_the_objectives_own_unit(solver: str, sense: Any):
    needs(solver)
    best = solve(packing(30, 5, sense), solver).objective
    near = solve(packing(30, 5, sense), solver, absolute_gap=25.0)
    assert near.status is Status.OPTIMAL
    assert near.objective is not None
    assert near.bound is not None
    assert 0.5 < abs(near.objective - near.bound) <= 25.0
    factor = 1 if sense == pyo.minimize else -1
    assert factor * near.bound <= factor * best + 1e-6 <= factor * near.objective + 2e-6


@pytest.mark.parametrize("solver", SEARCHERS)
def test_an_absolute_gap_holds_where_the_objective_is_zero(solver: str):
    """No relative gap closes at 0: the optimum is 0, and a bound of -0.4 is near enough."""
    needs(solver)
    m = packing(30, 5)
    best = solve(m, solver).objective
    m.worth.set_value(m.worth.expr - best)
    found = solve(m, solver, absolute_gap=20.0)
    assert found.status is Status.OPTIMAL
    assert found.bound is not None
    assert -20.0 <= found.objective <= 1e-6
    assert found.bound >= -1e-6


def test_an_absolute_gap_ends_tangent_cuts_and_is_ignored_by_cones():
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(12), domain=pyo.Integers, bounds=(0, 9))
    m.t = pyo.Var(bounds=(0, None))
    m.cone = pyo.Constraint(expr=soc(m.t, [m.y[i] - 2.3 - 0.37 * i for i in range(12)]) >= 0)
    m.row = pyo.Constraint(expr=sum((i + 3) * m.y[i] for i in range(12)) <= 301)
    m.cost = pyo.Objective(expr=10 * m.t - sum(m.y.values()))
    near = solve(m, "highs", absolute_gap=5.0)
    best = solve(m, "highs").objective
    assert near.status is Status.OPTIMAL
    assert near.bound - 1e-6 <= best <= near.objective + 1e-6 <= near.bound + 5.0 + 2e-6
    for var in m.y.values():
        var.domain = pyo.Reals
    exact = solve(m, "clarabel", absolute_gap=5.0)
    assert exact.gap <= 1e-6


@pytest.mark.parametrize("solver", SEARCHERS)
def test_a_callback_is_told_what_holds_and_ends_the_search(solver: str):
    needs(solver)
    best = 0.0
    told: list[tuple[float | None, float | None, float]] = []

    def until_known(incumbent: float | None, bound: float | None, seconds: float) -> bool:
        told.append((incumbent, bound, seconds))
        return incumbent is not None and bound is not None and len(told) > 2

    m = packing(150, 25)
    result = solve(m, solver, callback=until_known, time_limit_s=20.0)
    assert result.status is Status.FEASIBLE
    assert result.message.startswith("The callback ended the search.")
    assert result.timings["solve"] < 15.0
    incumbent, bound, _ = told[-1]
    assert result.objective >= incumbent - 1e-6 > best
    assert bound >= result.objective - 1e-6
    assert [seconds for *_, seconds in told] == sorted(seconds for *_, seconds in told)


@pytest.mark.parametrize("solver", SEARCHERS)
def test_a_callback_that_ends_nothing_changes_nothing(solver: str):
    needs(solver)
    for sense, sign in ((pyo.maximize, 1), (pyo.minimize, -1)):
        told: list[tuple[float | None, float | None]] = []
        found = solve(packing(60, 5, sense), solver, callback=lambda i, b, _s, told=told: told.append((i, b)))
        assert found.status is Status.OPTIMAL
        assert told
        for incumbent, bound in told:
            assert incumbent is None or sign * incumbent <= sign * found.objective + 1e-6
            assert bound is None or sign * bound >= sign * found.objective - 1e-6


@pytest.mark.parametrize("solver", SEARCHERS)
def test_what_a_callback_raises_reaches_the_caller(solver: str):
    needs(solver)

    def fails(*_: Any) -> bool:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        solve(packing(150, 25), solver, callback=fails, time_limit_s=20.0)


def test_a_callback_is_asked_while_tangent_cuts_are_added():
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(12), domain=pyo.Integers, bounds=(0, 9))
    m.disc = pyo.Constraint(expr=sum((m.y[i] - 2.3 - 0.37 * i) ** 2 for i in range(12)) <= 9)
    m.cost = pyo.Objective(expr=sum((-1) ** i * m.y[i] for i in range(12)))
    told: list[Any] = []
    assert solve(m, "highs", callback=lambda *words: told.append(words)).status is Status.OPTIMAL
    assert told
    ended = solve(m, "highs", callback=lambda *_: True)
    assert ended.status in {Status.FEASIBLE, Status.INTERRUPTED}
    assert "callback ended" in ended.message


def test_who_takes_no_callback_says_so():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 1))
    m.cost = pyo.Objective(expr=m.x)
    with pytest.raises(UnsupportedProblemError, match=r"calls it, but the solver is 'clarabel'. Use solver 'highs'"):
        solve(m, "clarabel", callback=lambda *_: False)


# ---- what it shows ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("solver", [*SEARCHERS, "clarabel", "scs"])
def test_the_log_is_shown_where_it_is_asked_for(solver: str):
    """The solvers write on the process's own output, past Python's."""
    needs(solver)
    program = textwrap.dedent("""
        import pyomo.environ as pyo
        from ceopt.solvers import solve
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(9), bounds=(0, 3), domain=pyo.Reals if {solver!r} in ("clarabel", "scs") else pyo.Integers)
        m.row = pyo.Constraint(expr=sum((i + 2) * m.x[i] for i in range(9)) >= 17.5)
        m.cost = pyo.Objective(expr=sum((i % 4 + 2) * m.x[i] for i in range(9)))
        for tee in {shown}:
            solve(m, {solver!r}, tee=tee)
    """)
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program.format(solver=solver, shown=shown)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for shown in ((False,), (True, False))
    ]
    assert outputs[0] == ""
    assert len(outputs[1].splitlines()) > 5

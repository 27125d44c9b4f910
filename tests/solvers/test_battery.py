"""Every solver on every model of its classes: answers, proofs, limits, interruption, starts, changes, threads.

Nothing here names a solver but :data:`APPROXIMATE`: whoever is in the registry, installed and licensed is tested.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from battery import MODELS, Case

from ceopt.solvers import CompiledModel, Outcome, ProblemClass, Status, read, solve
from ceopt.solvers.cones import Cone
from ceopt.solvers.errors import CeoptError, UnsupportedProblemError
from ceopt.solvers.registry import SOLVERS, choose

#: Solvers of first order: where they cannot prove an optimum they may say so, but never prove anything wrong.
APPROXIMATE = {"scs"}
UNPROVED = {Status.FEASIBLE, Status.TIME_LIMIT, Status.ERROR}

TOLERANCE = 1e-6
RUN = [name for name, solver in SOLVERS.items() if solver.is_licensed]
PAIRS = [(name, model) for name in RUN for model, case in MODELS.items() if case.kind in SOLVERS[name].classes]
BEYOND = [(name, model) for name in SOLVERS for model, case in MODELS.items() if case.kind not in SOLVERS[name].classes]
#: Solvers that write the program in their own words.
WRITERS = [name for name, s in SOLVERS.items() if s.is_installed and hasattr(s.session(next(iter(s.classes))), "write")]
WRITTEN = [(name, model) for name in WRITERS for model, case in MODELS.items() if case.kind in SOLVERS[name].classes]

battery = pytest.mark.parametrize(("name", "model"), PAIRS, ids=lambda part: part)


# ---- what is checked of every answer ---------------------------------------------------------------------------------
def set_point(compiled: CompiledModel, x: Any) -> None:
    """The point as it is, without the rounding of ``load``."""
    for var, value in zip(compiled.columns, x.tolist(), strict=True):
        var.set_value(value, skip_validation=True)


def size_of(row: Any, x: Any, compiled: CompiledModel) -> float:
    """Of the numbers that a constraint adds up at x."""
    at = np.abs(x)
    for k, constraint in enumerate(compiled.rows):
        if constraint is row:
            return float((abs(compiled.A[[k]]) @ at)[0])
    for quadratic in compiled.quadratics:
        if quadratic.constraint is row:
            return float((abs(quadratic.a) @ at)[0] + at @ (abs(quadratic.Q) @ at))
    for cone in compiled.cones:
        if cone.constraint is row:
            size = float((np.abs(cone.constant) + abs(cone.matrix) @ at).max())
            return size**2 if cone.cone is Cone.ROTATED else size
    return 0.0


def relative_violation(model: Any, compiled: CompiledModel, x: Any) -> float:
    """Of the Pyomo model's own expressions at x: rows and cones, bounds, integers."""
    set_point(compiled, x)
    for var in model.component_data_objects(pyo.Var, active=True):
        if var.value is None:  # weighed by zero alone, which makes it a column from Pyomo 6.10.1 on
            var.set_value(0)
    worst = 0.0
    for row in model.component_data_objects(pyo.Constraint, active=True):
        body, sides = pyo.value(row.body), [pyo.value(side) for side in (row.lower, row.upper) if side is not None]
        size = max([1.0, size_of(row, x, compiled), *map(abs, sides)])
        outside = (
            pyo.value(row.lower) - body if row.has_lb() else 0,
            body - pyo.value(row.upper) if row.has_ub() else 0,
        )
        worst = max(worst, *(off / size for off in outside))
    for sign, bound in ((1, compiled.lb - x), (-1, x - compiled.ub)):
        size = np.maximum(1.0, np.abs(np.where(np.isfinite(bound), bound + sign * x, 0.0)))
        worst = max([worst, *(bound / size).tolist()])
    whole = x[compiled.integer]
    return max([worst, *np.abs(whole - np.round(whole)).tolist()])


def is_close(value: float | None, optimum: float, slack: float = TOLERANCE) -> bool:
    return value is not None and abs(value - optimum) <= slack * (abs(optimum) or 1.0)


def check(outcome: Outcome, model: Any, compiled: CompiledModel, optimum: float | None) -> None:
    """Whatever a solver says, it is true: the point, its objective, the bound, what is proved."""
    if outcome.x is None:
        assert outcome.objective is None
    else:
        assert relative_violation(model, compiled, outcome.x) <= TOLERANCE
        objectives = list(model.component_data_objects(pyo.Objective, active=True))
        value = pyo.value(objectives[0]) if objectives else 0.0
        assert outcome.objective == pytest.approx(value, rel=1e-9, abs=1e-9)
        assert optimum is not None or outcome.status in UNPROVED | {Status.INTERRUPTED}
    if optimum is not None:
        assert outcome.status not in {Status.INFEASIBLE, Status.UNBOUNDED}
        if outcome.bound is not None:
            assert compiled.sense * (outcome.bound - optimum) <= TOLERANCE * (abs(optimum) or 1.0)
        if outcome.objective is not None:
            # A point of a limit misses its rows by a tolerance, and may gain as much again by it (SCS 3.3).
            share = TOLERANCE if outcome.status is Status.OPTIMAL else 2 * TOLERANCE
            assert compiled.sense * (optimum - outcome.objective) <= share * (abs(optimum) or 1.0)
    if outcome.status is Status.OPTIMAL:
        assert optimum is not None
        assert is_close(outcome.objective, optimum)
        assert outcome.bound is not None
        assert is_close(outcome.bound, optimum, 2 * TOLERANCE)
        assert not outcome.message or outcome.violation > 1e-5, "only of great numbers, absolutely"
    else:
        assert outcome.message
    if outcome.certificate is not None and outcome.status is Status.OPTIMAL:
        assert outcome.certificate.worst <= TOLERANCE


def check_answer(name: str, status: Status, outcome: Outcome, model: Any, compiled: Any, optimum: Any) -> None:
    """The expected status with all that must then be true; or an approximate solver's honest "not proved"."""
    allowed = {status} | (UNPROVED if name in APPROXIMATE else set())
    assert outcome.status in allowed, f"{outcome.status} instead of {status}: {outcome.message}"
    check(outcome, model, compiled, optimum)


def opened(name: str, case: Case, **words: Any) -> tuple[Any, CompiledModel, Any]:
    """A new model of the case, its arrays and a live session."""
    model, compiled = case.compile()
    solver = choose(name, compiled)
    assert solver is SOLVERS[name]
    return model, compiled, solver.session(case.kind)(compiled, **words)


@pytest.fixture
def counted(request: pytest.FixtureRequest, record_property: Callable[[str, Any], None]) -> list[str]:
    """What is asked of a solver on a model; tests/conftest.py counts it at the end."""
    asked: list[str] = []
    pair = request.node.callspec.params
    record_property("battery", (pair["name"], pair["model"], asked))
    return asked


# ---- the battery -----------------------------------------------------------------------------------------------------
def test_the_battery_is_complete():
    assert len(MODELS) >= 40
    assert {case.kind for case in MODELS.values()} == set(ProblemClass)
    solvable = {kind for solver in SOLVERS.values() for kind in solver.classes if kind in set(ProblemClass)}
    for kind in solvable - {ProblemClass.MIEXP}:
        assert {case.status for case in MODELS.values() if case.kind is kind} >= {Status.OPTIMAL, Status.INFEASIBLE}
    assert all(case.builder.__doc__ for case in MODELS.values()), "the docstring derives the answer"


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_runs_or_says_why_not(name):
    solver = SOLVERS[name]
    claimed = [model for model, case in MODELS.items() if case.kind in solver.classes]
    assert claimed, "a solver of no class"
    assert {MODELS[model].kind for model in claimed} == solver.classes
    if name in RUN:
        assert [pair for pair in PAIRS if pair[0] == name] == [(name, model) for model in claimed]
    else:
        assert solver.why_not
        pytest.skip(solver.why_not)


@pytest.mark.parametrize("model", MODELS)
def test_a_model_is_of_its_class(model):
    case = MODELS[model]
    built, compiled = case.compile()
    assert compiled.problem_class is case.kind
    assert built.name == model


@pytest.mark.long(every=10)
@battery
def test_the_answer_twice(name, model, counted):
    case = MODELS[model]
    built, compiled, session = opened(name, case)
    first = session.solve()
    counted.append("answer")
    check_answer(name, case.status, first, built, compiled, case.optimum)
    if SOLVERS[name].certifies and first.status is Status.OPTIMAL and compiled.columns:
        assert first.certificate is not None
    second = session.solve()
    counted.append("again")
    check_answer(name, case.status, second, built, compiled, case.optimum)
    assert second.status is first.status
    if first.x is not None:
        assert second.x == pytest.approx(first.x, abs=1e-9)
        compiled.load(first.x)
        assert [var.value for var in compiled.columns] == pytest.approx(first.x, abs=1e-5, rel=1e-6)
        counted.append("loaded")


@pytest.mark.long(every=14)
@battery
def test_a_limit_is_a_status(name, model, counted):
    case = MODELS[model]
    built, compiled, session = opened(name, case)
    for limit in (1e-9, 1e-3, 60.0):
        outcome = session.solve(time_limit_s=limit)
        counted.append("limit")
        assert outcome.status in {case.status, Status.FEASIBLE, Status.TIME_LIMIT} | (
            UNPROVED if name in APPROXIMATE else set()
        ), f"{outcome.status}: {outcome.message}"
        assert (outcome.x is not None) is (outcome.status in {Status.OPTIMAL, Status.FEASIBLE})
        check(outcome, built, compiled, case.optimum)
    check_answer(name, case.status, outcome, built, compiled, case.optimum)


@pytest.mark.long(every=14)
@battery
def test_an_interruption_is_a_status(name, model, counted):
    case = MODELS[model]
    built, compiled, session = opened(name, case)
    asked: list[bool] = []

    def stop() -> bool:
        asked.append(True)
        return True

    outcome = session.solve(should_stop=stop)
    counted.append("interrupted")
    if outcome.status is not Status.INTERRUPTED:
        assert not asked, "it was asked to stop"
        check_answer(name, case.status, outcome, built, compiled, case.optimum)
    check(outcome, built, compiled, case.optimum)
    check_answer(name, case.status, session.solve(), built, compiled, case.optimum)
    counted.append("afterwards")


@pytest.mark.long(every=14)
@battery
def test_a_start_changes_nothing(name, model, counted):
    case = MODELS[model]
    built, compiled, session = opened(name, case)
    best = session.solve().x
    n = len(compiled.columns)
    starts: list[Any] = [np.full(n, 1e3), dict.fromkeys(range(0, n, 2), -0.5)]
    for start in starts if best is None else [best, *starts]:
        counted.append("start")
        check_answer(name, case.status, session.solve(start=start), built, compiled, case.optimum)


@pytest.mark.long(every=14)
@battery
def test_two_threads_and_another_seed(name, model, counted):
    case = MODELS[model]
    built, compiled, session = opened(name, case, threads=2, random_state=7)
    check_answer(name, case.status, session.solve(pool=3), built, compiled, case.optimum)
    counted.append("threads")


@pytest.mark.long(every=6)
@pytest.mark.parametrize(("name", "model"), [pair for pair in PAIRS if MODELS[pair[1]].data], ids=lambda part: part)
def test_data_move(name, model, counted):
    case = MODELS[model]
    built, compiled, session = opened(name, case)
    for value, optimum in itertools.chain(case.data, case.data[:1]):
        compiled.set_data(built.x0, value)
        check_answer(name, case.status, session.solve(), built, compiled, optimum)
        counted.append("data")


@pytest.mark.long(every=14)
@pytest.mark.parametrize(
    ("name", "model"),
    [pair for pair in PAIRS if MODELS[pair[1]].status is Status.OPTIMAL and pair[1] not in {"empty", "all_fixed"}],
    ids=lambda part: part,
)
def test_rows_are_appended(name, model, counted):
    """A row that the optimum satisfies changes nothing; one that contradicts it leaves no point."""
    case = MODELS[model]
    built, compiled, session = opened(name, case)
    x = session.solve().x
    if x is None:
        assert name in APPROXIMATE
        return
    var, at = compiled.columns[-1], round(float(x[-1]))
    built.loose = pyo.Constraint(expr=var <= at + 2)
    compiled.append(built.loose)
    check_answer(name, case.status, session.solve(), built, compiled, case.optimum)
    counted.append("appended")
    built.false = pyo.Constraint(expr=2 * var >= 2 * at + 6)
    compiled.append(built.false)
    check_answer(name, Status.INFEASIBLE, session.solve(), built, compiled, None)
    counted.append("contradicted")


@pytest.mark.long(every=5)
@pytest.mark.parametrize(("name", "model"), WRITTEN, ids=lambda part: part)
def test_the_program_as_the_solver_has_it_is_solved_by_another(name, model, counted, tmp_path):
    """A solver that writes what it was handed is tested without its licence: a file, read and solved elsewhere."""
    case = MODELS[model]
    built, compiled = case.compile()
    session = SOLVERS[name].session(case.kind)(compiled)
    if compiled.contradiction or not compiled.columns:
        return  # answered without the solver
    path = tmp_path / "task.cbf"
    for value, optimum in case.data or [(None, case.optimum)]:
        if value is not None:
            compiled.set_data(built.x0, value)
        session.write(path)
        counted.append("written")
        if not any(case.kind in SOLVERS[other].classes for other in RUN if other not in APPROXIMATE):
            assert path.stat().st_size
            continue
        result = solve(read(path))
        assert result.status is case.status
        assert optimum is None or is_close(result.objective, optimum)


@pytest.mark.long(every=5)
@pytest.mark.parametrize(("name", "model"), BEYOND, ids=lambda part: part)
def test_other_classes_are_refused_naming_who_could(name, model, counted):
    case = MODELS[model]
    _, compiled = case.compile()
    with pytest.raises(UnsupportedProblemError) as refused:
        choose(name, compiled)
    counted.append("refused")
    sentence = str(refused.value)
    assert sentence.startswith(f"Solver {name!r} needs a model of class ")
    assert f"but this one is {case.kind}. " in sentence
    ready = [s.name for s in SOLVERS.values() if case.kind in s.classes and s.is_licensed]
    able = [s.name for s in SOLVERS.values() if case.kind in s.classes]
    for other in ready or able:
        assert other in sentence.partition(f"but this one is {case.kind}. ")[2]
    assert sentence.endswith(".")


@pytest.mark.long(every=5)
@pytest.mark.parametrize("model", MODELS)
def test_auto_finds_the_answer(model):
    """Without a name, whoever is chosen gives the same answer; nobody who could is a sentence."""
    case = MODELS[model]
    built, compiled = case.compile()
    able = [name for name, solver in SOLVERS.items() if case.kind in solver.classes]
    if set(able).isdisjoint(RUN):
        with pytest.raises(CeoptError, match="|".join(able or [case.kind])):
            choose("auto", compiled)
        return
    solver = choose("auto", compiled)
    outcome = solver.session(case.kind)(compiled).solve()
    check_answer(solver.name, case.status, outcome, built, compiled, case.optimum)

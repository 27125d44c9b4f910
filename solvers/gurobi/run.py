"""One run of Gurobi, watched from its call backs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ceopt.solvers.gurobi.model import GurobiModel
from ceopt.solvers.gurobi.precision import misses
from ceopt.solvers.gurobi.tables import BOUNDLESS, IMPRECISE, name_of
from ceopt.solvers.problem import Vector
from ceopt.solvers.session import SolveRun
from ceopt.solvers.tolerances import BARRIER_COARSEST, CUT_SHORT_VIOLATION

__all__ = ["Run", "Units", "run_again", "run_once"]


_SHARE = 0.01  # of the relative gap: the barrier's tolerance at a second attempt
_ATTEMPTS: tuple[dict[str, float], ...] = ({}, {"ScaleFlag": 0}, {"NumericFocus": 3}, {"BarHomogeneous": 1})
_CAUTIOUS = {"DualReductions": 0, "Aggregate": 0}
_RAW = {"Presolve": 0, "NodeLimit": 1000.0}


@final
@dataclass(frozen=True, slots=True)
class Units:
    """What the objective and each quadratic row are multiplied by; an objective times 0 is none."""

    objective: float
    rows: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run came to, in the model's own units.

    Parameters
    ----------
    stop
        Name of Gurobi's status.
    x
        Best point over all columns of the program that was handed over.
    bound
        What Gurobi says is proved.
    barrier
        Whether a barrier method found it: a convex quadratic program without integers.
    """

    stop: str
    x: Vector | None
    bound: float | None
    barrier: bool


def run_once(
    handed: GurobiModel, search: SolveRun, units: Units, start: Mapping[int, float], *, listen: bool = True
) -> Run:
    """Run afresh, forgetting the runs before.

    Parameters
    ----------
    handed
        The program; ``units`` are handed over if they changed.
    start
        Column of the program -> value; may be empty or partial.
    listen
        Whether incumbents and a pool are wanted.
    """
    inner = handed.inner
    handed.set_objective(units.objective)
    handed.set_units(units.rows)
    inner.reset(1)  # starts too
    limits = inner.Params
    limits.TimeLimit = search.seconds_left
    limits.MIPGap = search.relative_gap if units.objective else math.inf
    limits.PoolSearchMode = 0
    limits.PoolSolutions = 10
    if listen and search.pool > 1 and handed.has_pool:
        limits.PoolSearchMode = 2
        limits.PoolSolutions = search.pool
    if inner.IsMIP:
        handed.set_start(start)
    with ExitStack() as stack:
        stack.enter_context(search.switch.listening())
        inner.optimize(_watch(handed, search, stack, listen=listen))
    return _read(handed, search, units.objective)


def run_again(handed: GurobiModel, search: SolveRun, units: Units, start: Mapping[int, float]) -> Run:
    """Run, and in other ways where Gurobi gave up or may be wrong; the first answer stands if none is better."""
    if not handed.program.integer.any():
        return _precise(handed, search, units)
    if not handed.program.quadratics:
        return run_once(handed, search, units, start)
    settings: Mapping[str, int] = {}
    doubtful_stops = BOUNDLESS
    if handed.is_presolve_doubtful:
        settings = _CAUTIOUS
        doubtful_stops = BOUNDLESS | {"OPTIMAL", "INFEASIBLE"}
    with handed.tuned(settings):
        run = run_once(handed, search, units, start)
    if "Presolve" in handed.chosen or run.stop not in doubtful_stops:
        return run
    return _confirmed(handed, search, units, run)


def _confirmed(handed: GurobiModel, search: SolveRun, units: Units, run: Run) -> Run:
    """Return the run, unless one without presolve refutes it: whole proofs without presolve take too long for some."""
    if _is_over(search):
        return run
    start = {}
    if run.x is not None:
        start = dict(enumerate(run.x.tolist()))
    with handed.tuned(_RAW):
        raw = run_once(handed, search, units, start)
    if raw.x is None:
        return run
    if raw.stop == "OPTIMAL" or run.stop == "INFEASIBLE":
        return raw
    if run.x is None or run.stop in BOUNDLESS:
        return run
    compiled = search.compiled
    n = len(search.compiled.columns)
    before = compiled.evaluate(run.x[:n])
    after = compiled.evaluate(raw.x[:n])
    if compiled.sense * (before - after) > search.relative_gap * abs(after):
        return raw
    return run


def _precise(handed: GurobiModel, search: SolveRun, units: Units) -> Run:
    """Run; where the barrier gives up, run at a tolerance that is still far below the relative gap.

    It gives up on easy cones where 1e-10 is finer than rounding allows. An optimum that Gurobi gives no bound of is
    believed if two attempts agree: one that was 0.05 % off was called optimal.
    """
    run = run_once(handed, search, units, {})
    if run.stop not in IMPRECISE or run.x is None:
        return run
    coarse = min(_SHARE * search.relative_gap, BARRIER_COARSEST)
    tolerances = {name: max(coarse, getattr(handed.inner.Params, name)) for name in ("BarConvTol", "BarQCPConvTol")}
    compiled = search.compiled
    n = len(search.compiled.columns)
    values: list[float] = []
    for other in _ATTEMPTS:
        if _is_over(search):
            break
        with handed.tuned(tolerances | other):
            again = run_once(handed, search, units, {})
        if again.stop == "OPTIMAL" and again.x is not None:
            value = compiled.evaluate(again.x[:n])
            if again.bound is not None or any(
                math.isclose(value, v, rel_tol=0.1 * search.relative_gap) for v in values
            ):
                return again
            values.append(value)
    return run


def _is_over(search: SolveRun) -> bool:
    return search.switch.pressed or search.seconds_left <= 0.0


def _watch(handed: GurobiModel, search: SolveRun, stack: ExitStack, *, listen: bool) -> Callable[[Any, int], None]:
    """Return what Gurobi calls: it reports incumbents, and stops the run when the switch is pressed."""
    from gurobipy import GRB

    n = len(search.compiled.columns)
    switch = search.switch
    rows = handed.program.quadratics
    improved = GRB.Callback.MIPSOL
    called_before = False

    def called(model: Any, where: int) -> None:
        nonlocal called_before
        if not called_before:
            # Gurobi has put a handler of Ctrl-C over ours, which prints; ours goes over that.
            called_before = True
            stack.enter_context(switch.listening())
        if listen and where == improved:
            point = np.array(model.cbGetSolution(handed.x), dtype=np.float64)
            if not any(misses(row, point, search.relative_gap) for row in rows):
                search.improved(point[:n])
        switch.poll()

    def watch(model: Any, where: int) -> None:
        switch.guard(called, model, where)  # an exception would only be printed by Gurobi
        if switch.pressed:
            model.terminate()

    return watch


def _read(handed: GurobiModel, search: SolveRun, scale: float) -> Run:
    inner = handed.inner
    compiled = search.compiled
    stop = name_of(inner.Status)
    x = None
    bound = None
    is_certain = bool(inner.IsMIP) or stop == "OPTIMAL"
    if inner.SolCount:
        point = np.array(handed.x.X, dtype=np.float64)
        if not np.isfinite(point).all():
            stop = "UNBOUNDED"  # seen with a pool: "user obj limit" at minus infinity
        elif is_certain or compiled.violation(point[: len(compiled.columns)]) <= CUT_SHORT_VIOLATION:
            x = point
    if scale and (inner.IsMIP or x is not None):
        found = getattr(inner, "ObjBound", math.nan)  # absent after some stops
        bound = None
        if abs(found) < 1e100:  # 1e100 is Gurobi's infinity
            bound = found / scale
    return Run(stop=stop, x=x, bound=bound, barrier=bool(inner.IsQP or inner.IsQCP) and not inner.IsMIP)

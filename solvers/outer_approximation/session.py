"""Convex MIQP, SOCP and MISOCP with HiGHS: a linear relaxation that grows by cuts until it proves the best point.

HiGHS takes linear programs, with integers or without, and convex quadratic ones without. What it needs beside, where no
solver of cones with integers is installed, is a linear relaxation of squares and second-order cones (``cuts``), grown
where its optimum is outside (``relaxation``, over linear programs that keep their basis), and a search for integers
whose continuous part is then settled: the loop of this file.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, final

import numpy as np
import scipy.sparse as sp

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.errors import UnsupportedProblemError
from ceopt.solvers.highs.session import HighsSession, set_options, silent_highs
from ceopt.solvers.outer_approximation.cuts import Cuts
from ceopt.solvers.outer_approximation.linear_program import GrowingLP
from ceopt.solvers.outer_approximation.relaxation import GrowingRelaxation
from ceopt.solvers.problem import Outcome, ProblemClass, Stop, Vector
from ceopt.solvers.session import AbstractSession, RunResult, SolveRun
from ceopt.solvers.tolerances import INCUMBENT_SLACK, INTEGER_SEARCH_TOLERANCES, LEAST_TANGENT_GAP, TANGENT_ROUNDING

__all__ = ["TangentSession", "bounded_integers", "unbounded_integers"]

_SOLVES = frozenset(
    {ProblemClass.LP, ProblemClass.MILP, ProblemClass.QP, ProblemClass.MIQP, ProblemClass.SOCP, ProblemClass.MISOCP}
)
_FIRST_GAP = 1e-2  # of the first search for integers; later ones end at a tenth of the gap that is open
_PATIENCE_S = 2.0  # how long a search may go on before its best integers are tried, while no point is in hand

_EMPTY = frozenset({Stop.INFEASIBLE, Stop.UNBOUNDED, Stop.ERROR})


@final
class TangentSession(AbstractSession):
    """One convex program with integers, quadratics and second-order cones, solved by HiGHS through linear programs.

    1. The relaxation without cones and integers is solved; the cuts of :mod:`~ceopt.solvers.outer_approximation.cuts`
       that its vertex breaks are added, and so on until it is in the cones. Without integers this is the optimum.
    2. HiGHS solves the mixed-integer linear program of all cuts so far. Its bound holds, for every cut does.
    3. With its integers held, 1 is done again. The end is the best point with these integers, or the proof that there
       is none, and either way the cuts that keep HiGHS from choosing them again. Back to 2, until point and bound meet.

    A vertex is a point of the program up to ``CONE_TOLERANCE`` only. Where the cones that it is outside have a column
    of their own as head, a cost say, this is raised: the point is then feasible, and its objective its own. No relative
    gap below ``LEAST_TANGENT_GAP`` is promised.
    """

    who = "HiGHS with tangent cuts"

    def _open(self) -> None:
        needed = self._compiled.problem_class
        if needed not in _SOLVES:
            raise UnsupportedProblemError(
                self.who,
                "a convex program of linear rows, quadratics and second-order cones",
                f"the model is of class {needed}",
                "Call solve(model), which finds a solver for it.",
            )
        highs = silent_highs()
        set_options(highs, self._options)
        self._version = str(highs.version())

    @property
    def version(self) -> str:
        """Version of HiGHS."""
        return self._version

    def _run(self, search: SolveRun) -> RunResult:
        settings = {"threads": self._threads, "random_state": self._random_state, "options": self._options}
        with search.switch.listening():
            return _solved(self._compiled, search, settings)


def _solved(compiled: CompiledModel, search: SolveRun, settings: Mapping[str, Any]) -> RunResult:
    growth = GrowingRelaxation(compiled, search, settings)
    word = growth.relax()
    if word not in {"infeasible", "unbounded"}:
        _begin(growth)
    if word in {"done", "stalled"} and compiled.integer.any():
        word = _Choice(growth, settings).until_closed()
    if word == "unbounded":
        return _unbounded(compiled, search, settings)
    return _verdict(growth, word)


def _begin(growth: GrowingRelaxation) -> None:
    """Try the start: as it is, and as the best point with its integers."""
    start = growth.search.start
    whole = np.flatnonzero(growth.compiled.integer).tolist()
    if len(start) == len(growth.compiled.c):
        growth.offer(np.array([start[k] for k in range(len(start))]))
    if whole and all(k in start for k in whole):
        growth.settle(np.array([start[k] for k in whole]))


def _magnitude(compiled: CompiledModel, x: Vector) -> float:
    """Return the sum of the absolute values of the objective's terms: its rounding is relative to this."""
    size = np.abs(x)
    linear = abs(compiled.c0) + float(np.abs(compiled.c) @ size)
    if compiled.Q is None:
        return linear
    lower = abs(compiled.Q)
    return linear + float(size @ (lower @ size)) - 0.5 * float(lower.diagonal() @ size**2)


def _verdict(growth: GrowingRelaxation, word: str) -> RunResult:
    """Return what the growth came to."""
    x = growth.best
    pool = tuple(growth.pool.values())
    bound = growth.bound if math.isfinite(growth.bound) else None
    slack = 0.0
    if word == "stalled" and x is not None:
        # without finer cuts, rounding is what is left between them: it shows where the objective's terms cancel
        slack = TANGENT_ROUNDING * _magnitude(growth.compiled, x)
    if growth.is_closed(slack):
        return RunResult(status=Stop.OPTIMAL, x=x, bound=bound, pool=pool)
    if word == "infeasible" and x is None:
        return RunResult(status=Stop.INFEASIBLE, message=f"{TangentSession.who} proved that the program is infeasible.")
    message = f"{TangentSession.who} stopped: {_WHY.get(word, word)}."
    if growth.search.switch.pressed:
        status = Stop.INTERRUPTED
        message = f"{TangentSession.who} stopped: interrupt."
    elif x is not None:
        status = Stop.FEASIBLE
    else:
        status = Stop.TIME_LIMIT if word == "stopped" else Stop.ERROR
    return RunResult(status=status, x=x, bound=bound, message=message, pool=pool)


_WHY = {
    "stopped": "time limit",
    "stalled": "its tolerance allows no finer cuts here",
    "infeasible": "HiGHS finds the cuts infeasible though a point is in hand",
    "unknown": "no tangents were found that bound the objective",
}


def _unbounded(compiled: CompiledModel, search: SolveRun, settings: Mapping[str, Any]) -> RunResult:
    """Tell unbounded from infeasible: there is a direction that improves for ever, if there is a point at all."""
    program = compiled.extended()
    program.c = np.zeros(len(program.c))
    program.c0 = 0.0
    program.Q = None
    any_point = SolveRun(
        compiled=program,
        began=search.began,
        deadline=search.deadline,
        relative_gap=search.relative_gap,
        start=search.start,
        pool=1,
        switch=search.switch,
    )
    found = _solved(program, any_point, settings)
    if found.x is None:
        return RunResult(status=found.status, message=found.message)
    return RunResult(status=Stop.UNBOUNDED, message=f"{TangentSession.who} proved that the program is unbounded.")


class _Chosen(NamedTuple):
    """HiGHS's answer to the program of all cuts, points to try, and whether it ended for want of patience or time."""

    outcome: Outcome
    points: list[Vector]
    was_hurried: bool
    was_late: bool


@final
class _Choice:
    """The search for integers: HiGHS chooses them for the cuts so far, the growth settles what they are worth."""

    def __init__(self, growth: GrowingRelaxation, settings: Mapping[str, Any]) -> None:
        self._growth = growth
        self._settings = settings
        self._box: tuple[Vector, Vector] | None = None

    def until_closed(self) -> str:
        """Choose and settle until point and bound meet; return done, stalled, stopped, infeasible or an error."""
        growth = self._growth
        whole = growth.compiled.integer
        least = 0.2 * max(growth.search.relative_gap, LEAST_TANGENT_GAP)
        gap = max(_FIRST_GAP, least)
        patience = _PATIENCE_S
        tolerances = list(INTEGER_SEARCH_TOLERANCES)
        while not growth.is_closed():
            if growth.is_stopped():
                return "stopped"
            blind = growth.best is None and unbounded_integers(growth.compiled)
            outcome, points, was_hurried, was_late = self._choose(gap, patience, tolerances[0])
            if outcome.status in _EMPTY and len(tolerances) > 1:
                tolerances.pop(0)
                continue
            if outcome.status is Stop.UNBOUNDED:  # of the cuts, which is no proof for the program
                growth.bound = -growth.compiled.sense * math.inf  # and the relaxation's bound was out of HiGHS's sight
                return "unknown"
            if outcome.status in _EMPTY:
                if outcome.status is Stop.INFEASIBLE:
                    return "infeasible"
                return outcome.message.rstrip(".")
            new = [growth.settle(y[: len(whole)][whole]) for y in points]
            if not blind or growth.best is None:  # else the next search, within bounds, is the one to believe
                growth.prove(outcome.bound)
            if was_late:
                return "stopped"
            if was_hurried:
                patience *= 2.0
            elif outcome.status is Stop.INTERRUPTED:
                growth.search.switch.pressed = True
            elif not any(new) and gap <= least:
                return "stalled"
            else:
                gap = self._next_gap(gap, least, proof=not any(new))
        return "done"

    def _next_gap(self, gap: float, least: float, *, proof: bool) -> float:
        """Return to what gap HiGHS is to search: the least if the best integers are known and what is left is proof."""
        growth = self._growth
        if proof or growth.best is None:
            if proof:
                return least
            return gap
        return min(gap, max(least, 0.1 * abs(growth.value - growth.bound) / max(abs(growth.value), 1e-12)))

    def _choose(self, gap: float, patience: float, tolerance: float) -> _Chosen:
        """Solve the program of all cuts, integers and all."""
        growth = self._growth
        search = growth.search
        n = len(growth.compiled.c)
        matrix, least = growth.master.rows(Cuts.joined(growth.cuts))
        program = growth.master.program.extended(A=matrix, row_lb=least, row_ub=np.full(len(least), np.inf))
        start: Any = search.start
        if growth.best is not None:
            start = growth.master.completed(growth.best)
            if self._box is None and unbounded_integers(program):
                self._box = bounded_integers(program, program.evaluate(start), search, growth.new_lp)
            if self._box is not None:
                program.lb, program.ub = self._box
        own = {"mip_feasibility_tolerance": tolerance, "primal_feasibility_tolerance": tolerance}
        session = HighsSession(program, **{**self._settings, "options": {**own, **self._settings["options"]}})
        left = search.seconds_left
        left -= min(0.5, 0.1 * left)  # that much is for its last integers
        began = time.perf_counter()
        hurried = False
        late = False
        met: list[Vector] = []

        def note(_seconds: float, _objective: float, y: Vector) -> None:
            met.append(y)
            growth.offer(y[:n])

        def is_enough() -> bool:
            nonlocal hurried, late
            spent = time.perf_counter() - began
            hurried = growth.best is None and bool(met) and spent > patience
            late = spent > left
            return hurried or late or search.switch.poll()

        outcome = session.solve(
            time_limit_s=left if math.isfinite(left) else None,
            relative_gap=gap,
            start=None if unbounded_integers(program) else start,
            on_incumbent=note,
            should_stop=is_enough,  # also for the time: HiGHS 1.15.1 was seen to take a third more
        )
        points = []
        if outcome.x is not None:
            points = [outcome.x, *met[-2::-1][:2]]
        late = late or time.perf_counter() - began > left
        return _Chosen(outcome, points, hurried and not late, late)


# ---- finite bounds for integers that have none, from what a point in hand proves about better ones -------------------
# HiGHS 1.15.1, given a start, passes over better points where an integer column has an infinite bound: one of 440 small
# random programs came back "optimal" at 0.335 where 0.118 is feasible, with presolve, restarts, symmetry and heuristics
# on or off; with bounds of any size up to 1e6 it did not.


def unbounded_integers(program: CompiledModel) -> bool:
    """Whether an integer column lacks a bound."""
    return bool((program.integer & ~(np.isfinite(program.lb) & np.isfinite(program.ub))).any())


def bounded_integers(
    program: CompiledModel, objective: float, search: SolveRun, lp: Callable[[CompiledModel], GrowingLP]
) -> tuple[Vector, Vector]:
    """Return the program's column bounds, finite for integers where all points at least as good as ``objective`` are.

    Parameters
    ----------
    program
        Linear; its integers are relaxed.
    objective
        Of a point in hand.
    search
        For its limits.
    lp
        Makes a growing LP of a program.
    """
    limit = objective - program.c0 + program.sense * INCUMBENT_SLACK * max(1.0, abs(objective))
    least, greatest = (-np.inf, limit) if program.sense > 0 else (limit, np.inf)
    better = program.extended(A=sp.csr_array(program.c[None, :]), row_lb=[least], row_ub=[greatest])
    better.sense = 1
    better.c = np.zeros(len(program.c))
    better.c0 = 0.0
    growing = lp(better)
    lower = program.lb.copy()
    upper = program.ub.copy()
    for bounds, sign in ((lower, 1.0), (upper, -1.0)):
        for column in np.flatnonzero(program.integer & ~np.isfinite(bounds)).tolist():
            growing.aim(column, sign)
            vertex = growing.solve(search)
            if vertex.word == "optimal":
                bounds[column] = np.round(vertex.x[column]) - sign
            growing.aim(column, 0.0)
    return lower, upper

"""SCIP over a compiled model: linear, quadratic and second-order programs, with integers, convex or not.

Exponential cones are taken beside quadratics that are not convex, where nobody else takes them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, final

import numpy as np
from pyomo.common.gc_manager import PauseGC

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.errors import UnsupportedProblemError
from ceopt.solvers.guard.contradictions import missed
from ceopt.solvers.problem import ProblemClass, Stop, Vector
from ceopt.solvers.scip.count import count_solutions
from ceopt.solvers.scip.model import Program
from ceopt.solvers.scip.proof import OptimalityProof, first_scale
from ceopt.solvers.scip.tables import STOP, new_model, refuse_huge, set_options, words_of
from ceopt.solvers.session import PROVED_EMPTY, AbstractSession, RunResult, SolveRun, status_of
from ceopt.solvers.tolerances import LEAST_GAIN, SCIP_FINE_TOLERANCE, SCIP_MISSED, SCIP_MISSED_ROW, SCIP_ROUNDED_ROW

__all__ = ["ScipSession", "attach", "count_solutions", "heard"]

_SOLVES = frozenset(
    {
        ProblemClass.LP,
        ProblemClass.MILP,
        ProblemClass.QP,
        ProblemClass.MIQP,
        ProblemClass.SOCP,
        ProblemClass.MISOCP,
        ProblemClass.NONCONVEX,
        ProblemClass.NONCONVEX_EXP,
    }
)
_INFINITE = 1e20  # SCIP's infinity
_MUCH = 1e-2  # of the scaled objective: what a second search is to gain
_FAR = 1e7  # an optimum of a curved program so far out, in a column without a bound there, is not believed


@final
class ScipSession(AbstractSession):
    """One compiled program inside SCIP, without semidefinite cones, and with exponential ones if nothing is convex.

    SCIP compares objectives and checks rows with absolute tolerances. The objective is therefore handed over scaled by
    a power of two, raised until those tolerances are below the relative gap, and "optimal" is said only if the
    objective, recomputed at the point, is within the gap of what SCIP proved. SCIP runs in one thread, whatever
    ``threads``.
    """

    who = "SCIP"

    def _open(self) -> None:
        compiled = self._compiled
        if compiled.problem_class not in _SOLVES:
            raise UnsupportedProblemError(
                "SCIP",
                "a model without semidefinite cones, and without exponential ones in a convex model",
                f"the model is of class {compiled.problem_class}",
                "Call solve(model), which finds a solver for it.",
            )
        refuse_huge(compiled)
        self._program: Program | None = self._built(first_scale(compiled))

    @property
    def version(self) -> str:
        """Version of SCIP."""
        from pyscipopt import Model

        model = Model(createscip=False)
        return f"{model.getMajorVersion()}.{model.getMinorVersion()}.{model.getTechVersion()}"

    def _run(self, search: SolveRun) -> RunResult:
        found = self._best(search)
        if search.switch.pressed:
            return replace(found, status=Stop.INTERRUPTED, message="SCIP stopped: interrupted.")
        if found.status is not Stop.UNBOUNDED:
            return found
        # SCIP says so also of programs where it knows no point
        without = self._once(self._built(0.0), search, points=False)
        status = Stop.UNBOUNDED if without.x is not None else without.status
        said = without.message
        if status in PROVED_EMPTY:
            said = f"SCIP proved that the program is {status}."
        return RunResult(status=status, message=said)

    def _best(self, search: SolveRun) -> RunResult:
        """Run at the first scale, and again from the best point at a finer one if the proof needs it."""
        compiled = self._compiled
        gap = search.relative_gap
        scale = first_scale(compiled)
        start = search.start
        best = None
        is_fine = False
        coarse: RunResult | None = None
        while True:
            program = self._ready(scale, start)
            if is_fine:
                program.model.setParam(
                    "numerics/feastol", min(SCIP_FINE_TOLERANCE, program.model.getParam("numerics/feastol"))
                )
                self._program = None  # the next solve begins at the usual tolerance
            found = self._once(program, search)
            if best is not None:
                found = _better(compiled, best, found)
            if found.x is None and coarse is not None:
                return coarse
            if found.x is None or found.status is not Stop.OPTIMAL or search.switch.pressed:
                return found
            outside = _missed_cone(compiled, found.x) or _missed_row(compiled, found.x, is_fine=is_fine)
            if outside:
                coarse = replace(found, status=Stop.FEASIBLE, bound=None, message=outside)
                if is_fine:
                    return coarse
                # a point outside is no start
                is_fine = True
                best = None
                start = search.start
                search.incumbents.clear()  # nor is one that led to it a solution
                continue
            proof = OptimalityProof(compiled, found.x, found.bound, gap, scale, cost=program.cost)
            if proof.holds:
                far = _far_column(compiled, found.x)
                if far is not None:
                    return _perhaps_unbounded(found, far)
                proved = replace(found, bound=proof.bound)
                if _endless_integers(compiled):
                    return self._doubted(proved, scale, search)
                return proved
            if proof.finer_scale is None:
                return replace(found, status=Stop.FEASIBLE, bound=proof.bound, message=proof.sentence)
            best = found
            start = dict(enumerate(found.x.tolist()))
            scale = proof.finer_scale

    def _doubted(self, found: RunResult, scale: float, search: SolveRun) -> RunResult:
        """Search for a much better point from scratch: SCIP passes over some where integers have no bounds."""
        compiled = self._compiled
        assert found.x is not None  # noqa: S101 - an optimum has one
        best = compiled.sense * compiled.evaluate(found.x) * scale
        program = self._built(scale)
        program.model.setObjlimit(best - _MUCH * abs(best) - LEAST_GAIN)
        second = self._once(program, search)
        if second.status is Stop.INFEASIBLE:
            return found
        better = found
        if second.x is not None:
            better = _better(compiled, found, second)
        message = "SCIP stopped: a second search does not confirm the optimum. Bound all integers."
        return replace(better, status=Stop.FEASIBLE, bound=None, message=message)

    # -- one run -------------------------------------------------------------------------------------------------------
    def _once(self, program: Program, search: SolveRun, *, points: bool = True) -> RunResult:
        """Solve, and return what came of it in the model's own units, without looking at the proof."""
        model = program.model
        kept = len(search.incumbents)
        model.setParam("limits/time", min(search.seconds_left, _INFINITE))
        model.setParam("limits/gap", min(search.relative_gap, _INFINITE))
        model.setParam("limits/maxsol", max(search.pool, model.getParam("limits/maxsol")))
        try:
            with heard(program.listener, program, search, points=points), search.switch.listening():
                model.optimizeNogil()
        except Exception as error:  # noqa: BLE001  (pyscipopt's own choice of class for each return code of SCIP)
            self._program = None
            x = None
            if len(search.incumbents) > kept:
                x = search.incumbents[-1][2]
            return RunResult(status=Stop.ERROR, x=x, message=f"SCIP failed: {str(error).rstrip('.!')}.")
        name = model.getStatus()
        bound = None
        stored = [program.point(solution) for solution in model.getSols()[: search.pool]]
        x = None
        if stored:
            x = stored[0]
        if program.scale and abs(model.getDualbound()) < _INFINITE:
            bound = self._compiled.sense * model.getDualbound() / program.scale
        model.freeTransform()
        status = status_of(STOP, name, has_point=x is not None)
        message = ""
        if status is not Stop.OPTIMAL:
            message = f"SCIP stopped: {words_of(name)}."
        return RunResult(status=status, x=x, bound=bound, message=message, pool=tuple(stored))

    # -- model into SCIP -----------------------------------------------------------------------------------------------
    def _ready(self, scale: float, start: Mapping[int, float]) -> Program:
        """Return the program as it is now, at this scale and with this start."""
        program = self._program
        if program is None or program.scale != scale or not program.updated():
            refuse_huge(self._compiled)
            program = self._built(scale)
        is_forgotten = not start or program.begin_at(start)
        self._program = program if is_forgotten else None  # the next solve must not have this one's start
        return program

    def _built(self, scale: float) -> Program:
        model = new_model(self._compiled)
        model.setParam("randomization/randomseedshift", self._random_state)
        set_options(model, self._options)
        with PauseGC():  # thousands of small objects that live as long as the session
            return Program(model, self._compiled, scale, attach(model))


def _missed_cone(compiled: CompiledModel, x: Vector) -> str | None:
    """Return a sentence about a cone that x is too far outside of: near an apex, SCIP takes roots of its tolerance."""
    for cone in compiled.cones:
        missed = cone.violation(x)
        size = float(np.abs(cone.entries(x)).max(initial=1.0))
        if missed > SCIP_MISSED * size:
            return f"SCIP stopped: by its tolerances the point is outside {cone.constraint.name!r} by {missed:.3g}."
    return None


def _missed_row(compiled: CompiledModel, x: Vector, *, is_fine: bool) -> str:
    """Return a sentence about rows that x misses; empty if it keeps them, as well as a finer run can.

    SCIP's tolerance grows with the side of a row, and what presolve has put into others is not seen there at all: an
    optimum of a network was 8e-5 too cheap.
    """
    violation = compiled.violation(x)
    if violation <= SCIP_MISSED_ROW or missed(compiled, x) <= (SCIP_MISSED if is_fine else SCIP_ROUNDED_ROW):
        return ""
    return f"SCIP stopped: by its tolerances the point misses the program by {violation:.3g}."


def _endless_integers(compiled: CompiledModel) -> bool:
    """Whether there are curved rows, and integers without a bound."""
    endless = compiled.integer & ~(np.isfinite(compiled.lb) & np.isfinite(compiled.ub))
    return bool(endless.any() and (compiled.quadratics or compiled.cones))


def _far_column(compiled: CompiledModel, x: Vector) -> str | None:
    """Return a column that is far out towards a side without a bound, where a curve may grow for ever."""
    if compiled.Q is None and not compiled.quadratics and not compiled.cones:
        return None
    side = np.where(x > 0, compiled.ub, compiled.lb)
    far = np.flatnonzero((np.abs(x) >= _FAR) & ~np.isfinite(side))
    if far.size:
        return str(compiled.columns[far[0]].name)
    return None


def _perhaps_unbounded(found: RunResult, name: str) -> RunResult:
    """SCIP ends at 1e10 or so on programs that curve to infinity, and calls that optimal."""
    message = f"SCIP stopped: {name!r} runs off to {_FAR:g} and beyond, so the program may be unbounded. Bound it."
    return replace(found, status=Stop.FEASIBLE, bound=None, message=message)


def _better(compiled: CompiledModel, best: RunResult, found: RunResult) -> RunResult:
    """Return the later of two runs, with the better point; a run that loses the point proves nothing."""
    assert best.x is not None  # noqa: S101 - only a run with a point is repeated
    if found.x is None or found.status is Stop.ERROR:
        status = found.status if found.status is Stop.INTERRUPTED else Stop.FEASIBLE
        return replace(best, status=status, message=found.message)
    worse = compiled.sense * (compiled.evaluate(found.x) - compiled.evaluate(best.x)) > 0
    if worse:
        return replace(found, x=best.x, pool=(best.x, *found.pool))
    return found


# ---- events while SCIP searches: better points, and moments at which it can be stopped -------------------------------
def attach(model: Any) -> Any:
    """Give a ``pyscipopt.Model`` a listener, which it keeps, and return it."""
    listener = _listener_class()()
    model.includeEventhdlr(listener, "ceopt", "better points, and polls of the switch")
    listener.model = None  # pyscipopt sets it: a cycle that would keep SCIP's memory until the next collection
    return listener


@contextmanager
def heard(listener: Any, program: Program, search: SolveRun, *, points: bool) -> Iterator[None]:
    """Let the listener report to ``search``, and forget both at the end."""
    listener.model = program.model
    listener.program = program
    listener.search = search
    listener.points = points
    try:
        yield
    finally:
        listener.model = listener.program = listener.search = None


@functools.cache
def _listener_class() -> Any:
    from pyscipopt import SCIP_EVENTTYPE, Eventhdlr  # type: ignore[attr-defined]

    better = SCIP_EVENTTYPE.BESTSOLFOUND
    moments = (
        SCIP_EVENTTYPE.PRESOLVEROUND,
        SCIP_EVENTTYPE.NODEFOCUSED,
        SCIP_EVENTTYPE.FIRSTLPSOLVED,
        SCIP_EVENTTYPE.LPSOLVED,
    )

    class Listener(Eventhdlr):
        """Hears better points, rounds of presolve, nodes and linear programs."""

        program: Program | None = None
        search: SolveRun | None = None
        points = True

        def eventinit(self) -> None:
            for kind in (better, *moments) if self.model is not None else ():
                self.model.catchEvent(kind, self)

        def eventexec(self, event: Any) -> None:
            program = self.program
            search = self.search
            if program is None or search is None:
                return
            if self.points and event.getType() == better:
                search.improved(program.point(self.model.getBestSol()))
            if search.switch.poll():
                self.model.interruptSolve()

    return Listener

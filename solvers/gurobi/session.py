"""Gurobi over a compiled model: linear and quadratic programs, convex or not, second-order cones, integers."""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np

from ceopt.solvers.compile.cone_to_quadratic import cones_as_quadratics
from ceopt.solvers.cones import Cone
from ceopt.solvers.errors import InvalidValueError, UnsupportedProblemError
from ceopt.solvers.gurobi.licence import environment, licence, refuse
from ceopt.solvers.gurobi.model import GurobiModel
from ceopt.solvers.gurobi.precision import (
    finer_scale,
    finer_units,
    is_missed_for_good,
    is_nothing,
    misses,
    settled_bound,
)
from ceopt.solvers.gurobi.run import Run, Units, run_again, run_once
from ceopt.solvers.gurobi.tables import IMPRECISE, STOP, set_options
from ceopt.solvers.highs.session import first_scale
from ceopt.solvers.problem import Stop, Vector
from ceopt.solvers.session import PROVED_EMPTY, AbstractSession, RunResult, SolveRun, status_of
from ceopt.solvers.tolerances import GUROBI_TOLERANCE, NOTABLE_VIOLATION

__all__ = ["GurobiSession", "licence"]

_GREATEST_SEED = 2_000_000_000
_GREATEST_COEFFICIENT = 1e15
_PARAMETERS = {
    "MIPGapAbs": 0.0,
    # With the 1e-6 of Gurobi's own, 58 of 60 knapsacks with values near 1e-7 ended in a wrong "optimum"; the finest
    # tolerances took no more time on recourse models.
    "OptimalityTol": GUROBI_TOLERANCE,
    "FeasibilityTol": GUROBI_TOLERANCE,
    "IntFeasTol": GUROBI_TOLERANCE,
    "BarConvTol": 1e-10,
    "BarQCPConvTol": 1e-10,
}


@final
class GurobiSession(AbstractSession):
    r"""One compiled model of any class up to MISOCP, or with nonconvex quadratics, inside Gurobi.

    Cones are handed over as quadratic rows. Gurobi's tolerances are absolute, so the objective is scaled by a power of
    two, and a row :math:`t^2 \ge v^\top v` multiplied by one, raised until they are below the relative gap.

    With ``pool`` above 1, ``Outcome.pool`` has the best points, best first, the best itself included; they differ in
    their integers. Where it has as many as were asked for, status optimal says that no others are better. Where the
    program has quadratic rows, or no integers, it has the best alone.

    Raises
    ------
    MissingLicenceError
        There is no licence, or the model is too large for it.
    """

    who = "Gurobi"

    def _open(self) -> None:
        self._require()
        self._build()

    @property
    def version(self) -> str:
        """Version of Gurobi."""
        import gurobipy

        return ".".join(str(part) for part in gurobipy.gurobi.version())

    def _run(self, search: SolveRun) -> RunResult:
        import gurobipy

        self._pass_changes()
        contradiction = self._handed.program.contradiction
        if contradiction is not None:
            message = f"The program is infeasible: {contradiction} cannot hold."
            return RunResult(status=Stop.INFEASIBLE, message=message)
        try:
            return self._found(search)
        except gurobipy.GurobiError as error:
            known = gurobipy.GRB.Error
            if error.errno in {known.SIZE_LIMIT_EXCEEDED, known.NO_LICENSE}:
                raise refuse(self._compiled, str(error)) from error
            return RunResult(status=Stop.ERROR, message=f"Gurobi failed: {error}.")

    # -- the answer ----------------------------------------------------------------------------------------------------
    def _found(self, search: SolveRun) -> RunResult:
        run = self._best(search)
        gap = search.relative_gap
        point = run.x
        rows = self._handed.program.quadratics
        status = Stop.INTERRUPTED
        if not search.switch.pressed:
            status = status_of(STOP, run.stop, has_point=point is not None)
        message = ""
        if status is not Stop.OPTIMAL:
            message = f"Gurobi stopped: {run.stop.replace('_', ' ').lower()}."
        if status is Stop.UNBOUNDED:
            status = self._status_without_objective(search)
            if status in PROVED_EMPTY:
                message = f"Gurobi proved that the program is {status}."
            return RunResult(status=status, message=message)
        if point is None:
            return RunResult(status=status, bound=run.bound, message=message)
        x = self._own(point)
        bound = run.bound
        if run.stop in IMPRECISE:
            off = self._compiled.violation(x)
            if off > NOTABLE_VIOLATION or any(misses(row, point, gap) for row in rows):
                return RunResult(
                    status=Stop.ERROR, message=f"{message} Its last point violates the program by {off:.3g}."
                )
        pool = self._pool(search, x)
        if pool:
            x = pool[0]
        if status is Stop.OPTIMAL:
            settled = settled_bound(self._compiled, x, bound, gap, barrier=run.barrier)
            if any(is_missed_for_good(row, point, gap) for row in rows):
                status = Stop.FEASIBLE
                message = "Gurobi stopped: it misses a quadratic row by what matters here."
            elif settled is None:
                status = Stop.FEASIBLE
                message = "Gurobi stopped: its proof is not within the relative gap."
            else:
                bound = settled
        return RunResult(status=status, x=x, bound=bound, message=message, pool=pool)

    def _best(self, search: SolveRun) -> Run:
        """Run, and again in finer units where a tolerance hides something; start from the best point so far."""
        compiled = self._compiled
        handed = self._handed
        gap = search.relative_gap
        rows = handed.program.quadratics
        tolerance = handed.inner.Params.OptimalityTol
        units = self._units(first_scale(compiled))
        run = run_again(handed, search, units, search.start)
        while run.stop == "OPTIMAL" and run.x is not None and not search.switch.pressed:
            scale = finer_scale(
                compiled, self._own(run.x), gap, units.objective, tolerance=tolerance, barrier=run.barrier
            )
            finer = finer_units(rows, run.x, units.rows, gap)
            if (scale, finer) == (units.objective, units.rows):
                break
            units = Units(scale, finer)
            run = self._better(run, run_again(handed, search, units, dict(enumerate(run.x.tolist()))), gap)
        return run

    def _better(self, run: Run, again: Run, gap: float) -> Run:
        """Return what two runs of one program came to, the second in finer units."""
        compiled = self._compiled
        rows = self._handed.program.quadratics
        if run.x is None or again.x is None:
            return replace(again, x=run.x)
        before = compiled.evaluate(self._own(run.x))
        after = compiled.evaluate(self._own(again.x))
        is_worse = compiled.sense * (after - before) > 0 and not any(misses(row, run.x, gap) for row in rows)
        x, objective = (run.x, before) if is_worse else (again.x, after)
        if not run.barrier:
            return replace(again, x=x)
        # The optimum is as precise as the finer run made it, but the bound of either may be the better.
        bounds = [bound for bound in (run.bound, again.bound) if bound is not None]
        bound = min(bounds, key=lambda bound: abs(bound - objective), default=None)
        is_final = again.stop == "OPTIMAL" or is_nothing(compiled, self._own(x))
        return replace(again, stop="OPTIMAL" if is_final else again.stop, x=x, bound=bound)

    def _pool(self, search: SolveRun, x: Vector) -> tuple[Vector, ...]:
        """Return the best points, best first."""
        compiled = self._compiled
        whole = self._compiled.integer
        if search.pool == 1:
            return ()
        points = [self._own(point) for point in self._handed.stored(search.pool)]
        points = [x, *(point for point in points if np.abs(point[whole] - x[whole]).max() > 0.5)]
        return tuple(sorted(points, key=lambda point: compiled.sense * compiled.evaluate(point))[: search.pool])

    def _status_without_objective(self, search: SolveRun) -> Stop:
        """Tell unbounded from infeasible: Gurobi says "unbounded" of programs where it knows no point."""
        run = run_once(self._handed, search, self._units(0.0), {}, listen=False)
        if run.x is not None:
            return Stop.UNBOUNDED
        if search.switch.pressed:
            return Stop.INTERRUPTED
        return status_of(STOP, run.stop, has_point=False)

    def _own(self, x: Vector) -> Vector:
        """Return the compiled model's columns of a point of the program that was handed over."""
        return x[: len(self._compiled.columns)]

    def _units(self, scale: float) -> Units:
        return Units(scale, (1.0,) * len(self._handed.program.quadratics))

    # -- model into Gurobi ---------------------------------------------------------------------------------------------
    def _require(self) -> None:
        """Refuse a program that Gurobi, with the licence at hand, does not solve."""
        compiled = self._compiled
        foreign = next((cone for cone in compiled.cones if cone.cone not in {Cone.SECOND_ORDER, Cone.ROTATED}), None)
        if foreign is not None:
            raise UnsupportedProblemError(
                "Gurobi",
                "linear and quadratic rows and second-order cones",
                f"the model has a cone of kind {foreign.cone}",
                "Call solve(model), which finds a solver for it.",
            )
        found = licence()
        why = found.why_not or found.refusal(compiled)
        if why:
            raise refuse(compiled, why)
        parts = [compiled.A.data, compiled.c, *(part.data for row in compiled.quadratics for part in (row.a, row.Q))]
        greatest = max((float(np.abs(part).max()) for part in parts if part.size), default=0.0)
        if greatest >= _GREATEST_COEFFICIENT:
            raise InvalidValueError(
                "Gurobi",
                "coefficients below 1e15",
                f"the greatest is {greatest:.3g}",
                "Choose units that are nearer to 1.",
            )

    def _build(self) -> None:
        import gurobipy

        compiled = self._compiled
        try:
            self._handed = GurobiModel(cones_as_quadratics(compiled), environment())
        except gurobipy.GurobiError as error:
            raise refuse(compiled, str(error)) from error
        inner = self._handed.inner
        for name, value in _PARAMETERS.items():
            inner.setParam(name, value)
        inner.Params.Threads = self._threads
        inner.Params.Seed = self._random_state % (_GREATEST_SEED + 1)
        set_options(inner, self._options)
        self._handed.focus = inner.Params.NumericFocus
        self._handed.chosen = frozenset(self._options)
        self._passed = compiled.shape

    def _pass_changes(self) -> None:
        """Take over data and rows that changed since the last solve."""
        compiled = self._compiled
        if compiled.shape != self._passed:
            self._require()
            if compiled.shape[1:] == self._passed[1:] and not compiled.cones:
                self._handed.add_rows(self._passed[0])
                self._passed = compiled.shape
            else:
                self._handed.inner.dispose()
                self._build()
        self._handed.move_data(compiled.lb)

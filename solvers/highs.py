"""HiGHS over a compiled model: linear, mixed-integer linear and convex quadratic programs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np

from ceopt.solvers.arguments import Start, require_count, require_data, require_number, sparse_start
from ceopt.solvers.compiled import CompiledModel
from ceopt.solvers.convexity import is_convex
from ceopt.solvers.errors import InvalidValueError, UnsupportedProblemError
from ceopt.solvers.highs_options import set_options
from ceopt.solvers.highs_status import status_of
from ceopt.solvers.interrupt import StopSwitch
from ceopt.solvers.problem import Outcome, ProblemClass, Status, Vector
from ceopt.solvers.rays import improves_for_ever
from ceopt.solvers.scaling import IMPROVEMENT, finer_scale, first_scale, is_blind

__all__ = ["HighsSession"]

_NOTABLE_VIOLATION = 1e-5
_SECOND_OPINION_S = 5.0  # for a program that presolve alone calls infeasible
_FAR = 1e5  # a QP's point beyond may lie on an unbounded ray
_PROVED_EMPTY = {Status.INFEASIBLE, Status.UNBOUNDED}


@final
class HighsSession:
    """One compiled model inside HiGHS, to be solved many times.

    Each solve starts afresh, so that results do not depend on what was solved before. Changes by
    :meth:`CompiledModel.set_data` and :meth:`CompiledModel.append` are taken over at the next solve.

    HiGHS ends its search when no solution better by 1e-6 *absolutely* is left, whatever the gaps asked for. The
    objective is therefore handed over scaled by a power of two, raised until 1e-6 is below the relative gap.

    Parameters
    ----------
    compiled
        An LP, MILP or convex QP.
    threads
        Threads of this session, at least 1.
    random_state
        Seed of HiGHS, at least 0.
    options
        HiGHS options by their own names.

    Raises
    ------
    UnsupportedProblemError
        An MIQP or a QP that is not convex.
    UnknownNameError, InvalidValueError
        An option or argument that HiGHS does not take, or a coefficient beyond its range.
    """

    def __init__(
        self,
        compiled: CompiledModel,
        *,
        threads: int = 1,
        random_state: int = 0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        import highspy

        if compiled.problem_class is ProblemClass.MIQP:
            raise UnsupportedProblemError(
                "HiGHS",
                "an LP, MILP or convex QP",
                "the model is an MIQP",
                "State a linear cost instead; solvers for MIQP are SCIP and Gurobi.",
            )
        if not is_convex(compiled.Q, compiled.sense):
            raise UnsupportedProblemError(
                "HiGHS",
                "a convex quadratic objective",
                "this one is not convex",
                "State a convex or a linear cost instead.",
            )
        require_count("HiGHS", "threads", threads, 1)
        require_count("HiGHS", "random_state", random_state, 0)
        self._compiled = compiled
        self._library = highspy
        highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._highs = highs
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", int(threads))
        highs.setOptionValue("random_seed", int(random_state))
        highs.setOptionValue("mip_abs_gap", 0.0)
        # HiGHS 1.15.1 loses solutions when it restarts: 18 of 120 small Misic programs "proved" a wrong optimum, none
        # without restarts. With a good start one also costs 1.2 to 2.4 times the time (forests of 100 trees).
        highs.setOptionValue("mip_allow_restart", False)
        highs.setOptionValue("qp_regularization_value", 1e-11)  # with its 1e-7, a quarter of small random QPs fail
        if compiled.A.nnz and np.abs(compiled.A.data).min() <= 1e-9:
            highs.setOptionValue("small_matrix_value", 1e-12)  # HiGHS would drop such coefficients silently
        self._options = dict(options or {})
        set_options(highs, self._options)
        self._scale = first_scale(compiled)
        self._pass_model()

    @property
    def version(self) -> str:
        """Version of HiGHS."""
        return str(self._highs.version())

    def solve(
        self,
        *,
        time_limit_s: float | None = None,
        relative_gap: float = 1e-6,
        start: Start | None = None,
        on_incumbent: Callable[[float, float, Vector], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Outcome:
        """Solve the program as it is now.

        Parameters
        ----------
        time_limit_s
            Seconds for this call; None for no limit.
        relative_gap
            Stop when the gap is at most this, relative to the objective.
        start
            A point to start from: all columns, or column -> value; HiGHS completes it, and ignores it if it cannot.
        on_incumbent
            Called with (seconds, objective, x) for each improving solution of an integer program.
        should_stop
            Polled during the search; True stops it, as Ctrl-C does, with status ``interrupted``.

        Raises
        ------
        InvalidValueError
            A limit, gap or start that makes no sense, or data columns without a value.
        """
        limit = math.inf if time_limit_s is None else time_limit_s
        require_number("HiGHS", "time_limit_s", limit, above=0.0)
        require_number("HiGHS", "relative_gap", relative_gap, least=0.0)
        compiled, began = self._compiled, time.perf_counter()
        require_data("HiGHS", compiled)
        begin, gap = sparse_start(start, len(compiled.columns)), float(relative_gap)
        if compiled.contradiction is not None:
            return Outcome(
                status=Status.INFEASIBLE, message=f"The program is infeasible: {compiled.contradiction} cannot hold."
            )
        if not compiled.columns:
            return self._held(np.zeros(0), compiled.c0, Status.OPTIMAL, (), 0.0, "", gap)
        switch = StopSwitch(should_stop)
        self._pass_changes()
        incumbents: list[tuple[float, float, Vector]] = []

        def improved(point: Vector) -> None:
            found = (time.perf_counter() - began, compiled.evaluate(point), point)
            if not incumbents or compiled.sense * (found[1] - incumbents[-1][1]) < 0:
                incumbents.append(found)
                if on_incumbent is not None:
                    switch.guard(on_incumbent, *found)

        name, x, bound = self._search(began + limit, gap, begin, switch, improved)
        if switch.error is not None:
            raise switch.error
        status = Status.INTERRUPTED if switch.pressed else status_of(name, has_point=x is not None)
        message = "" if status is Status.OPTIMAL else f"HiGHS stopped: {_words(name)}."
        if status is Status.UNBOUNDED or (not switch.pressed and self._is_runaway(x)):
            status = self._status_without_objective(began + limit, switch)
            message = f"HiGHS proved that the program is {status}." if status in _PROVED_EMPTY else message
        seconds = time.perf_counter() - began
        if status in _PROVED_EMPTY:
            return Outcome(status=status, run_time=seconds, message=message)
        if x is None:
            return Outcome(status=status, bound=bound, run_time=seconds, message=message)
        if not incumbents or compiled.sense * (compiled.evaluate(x) - incumbents[-1][1]) < 0:
            incumbents.append((seconds, compiled.evaluate(x), x))
        return self._held(x, bound, status, tuple(incumbents), seconds, message, gap)

    def _search(
        self,
        deadline: float,
        gap: float,
        start: Mapping[int, float],
        switch: StopSwitch,
        improved: Callable[[Vector], None],
    ) -> tuple[str, Vector | None, float | None]:
        """Run at the first scale, and again from the best point at a finer one if the proof needs it."""
        compiled, best = self._compiled, None
        self._rescale(first_scale(compiled))
        while True:
            name, x, bound = self._run(deadline, gap, start, switch, improved)
            if best is not None and (
                x is None or compiled.sense * (compiled.evaluate(x) - compiled.evaluate(best)) > 0
            ):
                x = best
            if x is None or name != "kOptimal" or switch.pressed:
                return name, x, bound
            scale = finer_scale(compiled, compiled.evaluate(x), gap, self._scale)
            if scale is None:
                return name, x, bound
            best, start = x, dict(enumerate(x.tolist()))
            self._rescale(scale)

    def _is_runaway(self, x: Vector | None) -> bool:
        """Whether a QP that HiGHS failed on, or has a far point of, is unbounded if feasible."""
        if self._compiled.Q is None or (x is not None and np.abs(x).max() < _FAR):
            return False
        return improves_for_ever(self._compiled)

    def _rescale(self, scale: float) -> None:
        if scale != self._scale:
            self._scale = scale
            self._pass_model()

    # -- one run -------------------------------------------------------------------------------------------------------
    def _run(
        self,
        deadline: float,
        gap: float,
        start: Mapping[int, float],
        switch: StopSwitch,
        improved: Callable[[Vector], None],
    ) -> tuple[str, Vector | None, float | None]:
        """Return HiGHS's status, the best point and the proved bound, in the model's own units."""
        highs, library = self._highs, self._library
        highs.clearSolver()
        # HiGHS counts its limit from the start of the run for a MIP, but over all runs so far for an LP or a QP
        spent = 0.0 if self._compiled.integer.any() else highs.getRunTime()
        highs.setOptionValue("time_limit", spent + max(deadline - time.perf_counter(), 1e-3))
        highs.setOptionValue("mip_rel_gap", gap)
        if start:
            at = np.array(list(start), dtype=np.int32)
            highs.setSolution(len(start), at, np.array(list(start.values()), dtype=np.float64))
        kinds = library.cb.HighsCallbackType
        solution = kinds.kCallbackMipImprovingSolution

        def called(kind: Any, _message: str, out: Any, into: Any, _data: Any) -> None:
            if kind == solution:
                improved(np.array(out.mip_solution, dtype=np.float64))
            elif switch.poll():
                into.user_interrupt = True

        highs.setCallback(called, None)
        for kind in (
            solution,
            kinds.kCallbackMipInterrupt,
            kinds.kCallbackSimplexInterrupt,
            kinds.kCallbackIpmInterrupt,
        ):
            highs.startCallback(kind)
        library.Highs.resetGlobalScheduler(True)  # another session of this thread may have had other threads
        try:
            with switch.listening():
                highs.run()
                status = self._confirmed(highs.getModelStatus(), deadline)
        finally:
            highs.setCallback(None, None)  # else the caller's functions would live as long as the session
        info = highs.getInfo()
        has_point = info.primal_solution_status == library.SolutionStatus.kSolutionStatusFeasible
        x = np.array(highs.getSolution().col_value, dtype=np.float64) if has_point else None
        bound = None
        if self._compiled.integer.any():
            bound = info.mip_dual_bound / self._scale if math.isfinite(info.mip_dual_bound) else None
        elif status == library.HighsModelStatus.kOptimal and x is not None:
            bound = self._compiled.evaluate(x)
        return status.name, x, bound

    def _confirmed(self, status: Any, deadline: float) -> Any:
        """Run again without presolve where that alone says that there is no solution, or no better one.

        HiGHS 1.15.1 was seen to presolve feasible programs away; given a start, it then calls it optimal without any
        bound. A few seconds are spent on a second opinion; if they end without a point, the first one stands.
        """
        highs, known = self._highs, self._library.HighsModelStatus
        if not self._compiled.integer.any() or "presolve" in self._options:
            return status
        info = highs.getInfo()
        empty = status == known.kInfeasible and info.mip_node_count <= 0
        unproved = status == known.kOptimal and not math.isfinite(info.mip_dual_bound)
        left = deadline - time.perf_counter()
        if not (empty or unproved) or left <= 0:
            return status
        highs.setOptionValue("presolve", "off")
        highs.setOptionValue("time_limit", min(left, _SECOND_OPINION_S) if empty else left)
        highs.run()
        highs.setOptionValue("presolve", "choose")
        found = highs.getInfo().primal_solution_status == self._library.SolutionStatus.kSolutionStatusFeasible
        return highs.getModelStatus() if found or unproved else status

    def _held(  # noqa: PLR0917  (what one run found, field by field)
        self,
        x: Vector,
        bound: float | None,
        status: Status,
        incumbents: tuple[tuple[float, float, Vector], ...],
        seconds: float,
        message: str,
        gap: float,
    ) -> Outcome:
        compiled = self._compiled
        objective, violation = compiled.evaluate(x), compiled.violation(x)
        if bound is not None and compiled.sense * (bound - objective) > 0:
            bound = objective  # a bound is never worse than a point in hand
        if violation > _NOTABLE_VIOLATION:
            message = f"{message} The point violates the program by {violation:.3g}.".strip()
        outcome = Outcome(
            status=status,
            x=x,
            objective=objective,
            bound=bound,
            incumbents=incumbents,
            run_time=seconds,
            violation=violation,
            message=message,
        )
        slack = IMPROVEMENT / self._scale
        if status is Status.OPTIMAL and is_blind(compiled, objective, gap, self._scale):
            message = f"HiGHS stopped: it looks for no solution that is better by less than {slack:.3g}."
            return replace(outcome, status=Status.FEASIBLE, bound=objective - compiled.sense * slack, message=message)
        return outcome

    # -- model into HiGHS ----------------------------------------------------------------------------------------------
    def _pass_model(self, scale: float | None = None) -> None:
        """Hand the whole program over; a scale of 0 leaves out the objective."""
        compiled, library = self._compiled, self._library
        scale = self._scale if scale is None else scale
        lp = library.HighsLp()
        lp.num_row_, lp.num_col_ = compiled.A.shape
        lp.col_cost_, lp.offset_ = compiled.c * scale, compiled.c0 * scale
        lp.col_lower_, lp.col_upper_ = _no_nan(compiled.lb), _no_nan(compiled.ub)
        lp.row_lower_, lp.row_upper_ = compiled.row_lb, compiled.row_ub
        lp.sense_ = library.ObjSense.kMinimize if compiled.sense > 0 else library.ObjSense.kMaximize
        lp.a_matrix_.format_ = library.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = compiled.A.indptr, compiled.A.indices
        lp.a_matrix_.value_ = compiled.A.data
        kind = library.HighsVarType
        lp.integrality_ = [kind.kInteger if whole else kind.kContinuous for whole in compiled.integer.tolist()]
        status = self._highs.passModel(lp)
        if compiled.Q is not None and scale:
            lower = compiled.Q.tocsc()
            lower.sort_indices()
            triangle, n = library.HessianFormat.kTriangular, len(compiled.c)
            status = self._highs.passHessian(n, lower.nnz, triangle, lower.indptr, lower.indices, lower.data * scale)
        if status == library.HighsStatus.kError:
            greatest = max((float(np.abs(a).max()) for a in (compiled.A.data, compiled.c) if a.size), default=0.0)
            raise InvalidValueError(
                "HiGHS",
                "coefficients below 1e15",
                f"the greatest is {greatest:.3g}",
                "Choose units that are nearer to 1.",
            )
        self._passed = compiled.A.shape

    def _pass_changes(self) -> None:
        """Take over data and rows that changed since the last solve."""
        compiled, data = self._compiled, self._compiled.data
        if compiled.A.shape != self._passed:
            self._pass_model()
        elif data.size:
            self._highs.changeColsBounds(len(data), data, compiled.lb[data], compiled.ub[data])

    def _status_without_objective(self, deadline: float, switch: StopSwitch) -> Status:
        """Tell unbounded from infeasible: HiGHS says "unbounded" also of programs where it knows no point."""
        self._pass_model(scale=0.0)
        try:
            name, x, _ = self._run(deadline, 0.0, {}, switch, lambda _point: None)
        finally:
            self._pass_model()
        status = status_of(name, has_point=x is not None)
        return Status.UNBOUNDED if x is not None else Status.INTERRUPTED if switch.pressed else status


def _words(name: str) -> str:
    """Return ``kTimeLimit`` as "time limit"."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name[1:]).strip()


def _no_nan(bounds: Vector) -> Vector:
    """Hand data without a value over as 0 until they have one."""
    return np.where(np.isnan(bounds), 0.0, bounds)

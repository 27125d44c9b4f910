"""HiGHS over a compiled model: linear, mixed-integer linear and convex quadratic programs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from ceopt.solvers.compiled import CompiledModel
from ceopt.solvers.convexity import is_convex
from ceopt.solvers.errors import InvalidValueError, UnsupportedProblemError
from ceopt.solvers.highs_options import set_options
from ceopt.solvers.highs_status import status_of
from ceopt.solvers.interrupt import StopSwitch
from ceopt.solvers.problem import Outcome, ProblemClass, Status, Vector

__all__ = ["HighsSession"]

_IMPROVEMENT = 1e-6  # HiGHS looks for no solution that is better by less (its MIP feasibility tolerance, absolute)
_LEAST_GAP = 1e-9  # and no relative gap below this is promised
_GREATEST_COST = 2.0**30  # scaled costs stay below it, for the simplex method's sake
_NOTABLE_VIOLATION = 1e-5
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
        self, compiled: CompiledModel, *, threads: int = 1, random_state: int = 0, options: Mapping[str, Any] | None = None
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
                "HiGHS", "a convex quadratic objective", "this one is not convex", "State a convex or a linear cost instead."
            )
        _require_count("threads", threads, 1)
        _require_count("random_state", random_state, 0)
        self._compiled = compiled
        self._library = highspy
        self._highs = highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", int(threads))
        highs.setOptionValue("random_seed", int(random_state))
        highs.setOptionValue("mip_abs_gap", 0.0)
        highs.setOptionValue("qp_regularization_value", 1e-11)  # with its 1e-7, a quarter of small random QPs fail
        if compiled.A.nnz and np.abs(compiled.A.data).min() <= 1e-9:
            highs.setOptionValue("small_matrix_value", 1e-12)  # HiGHS would drop such coefficients silently
        set_options(highs, options or {})
        self._scale = _first_scale(compiled)
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
        start: Mapping[int, float] | Sequence[float] | Vector | None = None,
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
        _require_number("time_limit_s", limit, above=0.0)
        _require_number("relative_gap", relative_gap, least=0.0)
        compiled, began = self._compiled, time.perf_counter()
        self._require_data()
        start = self._sparse_start(start)
        if compiled.contradiction is not None:
            return Outcome(status=Status.INFEASIBLE, message=f"The program is infeasible: {compiled.contradiction} cannot hold.")
        if not compiled.columns:
            return self._held(np.zeros(0), compiled.c0, Status.OPTIMAL, (), 0.0, "")
        switch = StopSwitch(should_stop)
        self._pass_changes()
        gap, x = max(relative_gap, 0.0), None
        incumbents: list[tuple[float, float, Vector]] = []

        def improved(point: Vector) -> None:
            found = (time.perf_counter() - began, compiled.evaluate(point), point)
            if not incumbents or compiled.sense * (found[1] - incumbents[-1][1]) < 0:
                incumbents.append(found)
                if on_incumbent is not None:
                    switch.guard(on_incumbent, *found)

        while True:
            left = limit - (time.perf_counter() - began)
            name, x, bound = self._run(max(left, 1e-3), gap, start, switch, improved)
            status = Status.INTERRUPTED if switch.pressed else status_of(name, has_point=x is not None)
            scale = self._finer_scale(x, gap) if status is Status.OPTIMAL and compiled.integer.any() else None
            if scale is None or x is None or left <= 0:
                break
            start = dict(enumerate(x.tolist()))
            self._rescale(scale)
        if switch.error is not None:
            raise switch.error
        message = "" if status is Status.OPTIMAL else f"HiGHS stopped: {_words(name)}."
        if status is Status.UNBOUNDED:
            status = self._status_without_objective(limit - (time.perf_counter() - began), switch)
            message = f"HiGHS proved that the program is {status}." if status in _PROVED_EMPTY else message
        seconds = time.perf_counter() - began
        if status in _PROVED_EMPTY:
            bound = None
        if x is None or status in _PROVED_EMPTY:
            return Outcome(status=status, bound=bound, incumbents=tuple(incumbents), run_time=seconds, message=message)
        if not incumbents or compiled.sense * (compiled.evaluate(x) - incumbents[-1][1]) < 0:
            incumbents.append((seconds, compiled.evaluate(x), x))
        return self._held(x, bound, status, tuple(incumbents), seconds, message, gap)

    # -- one run -------------------------------------------------------------------------------------------------------
    def _run(
        self,
        seconds: float,
        gap: float,
        start: Mapping[int, float] | None,
        switch: StopSwitch,
        improved: Callable[[Vector], None],
    ) -> tuple[str, Vector | None, float | None]:
        """Return HiGHS's status, the best point and the proved bound, in the model's own units."""
        highs, library = self._highs, self._library
        highs.clearSolver()
        highs.setOptionValue("time_limit", seconds)
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
        for kind in (solution, kinds.kCallbackMipInterrupt, kinds.kCallbackSimplexInterrupt, kinds.kCallbackIpmInterrupt):
            highs.startCallback(kind)
        library.Highs.resetGlobalScheduler(True)  # another session of this thread may have had other threads
        try:
            with switch.listening():
                highs.run()
        finally:
            highs.setCallback(None, None)  # else a cycle through C++ would keep the session alive
        status, info = highs.getModelStatus(), highs.getInfo()
        has_point = info.primal_solution_status == library.SolutionStatus.kSolutionStatusFeasible
        x = np.array(highs.getSolution().col_value, dtype=np.float64) if has_point else None
        bound = None
        if self._compiled.integer.any():
            bound = info.mip_dual_bound / self._scale if math.isfinite(info.mip_dual_bound) else None
        elif status == library.HighsModelStatus.kOptimal and x is not None:
            bound = self._compiled.evaluate(x)
        return status.name, x, bound

    def _held(
        self,
        x: Vector,
        bound: float | None,
        status: Status,
        incumbents: tuple[tuple[float, float, Vector], ...],
        seconds: float,
        message: str,
        gap: float = 0.0,
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
        slack = _IMPROVEMENT / self._scale
        if status is Status.OPTIMAL and compiled.integer.any() and self._is_blind(objective, gap):
            message = f"HiGHS stopped: it looks for no solution that is better by less than {slack:.3g}."
            return replace(outcome, status=Status.FEASIBLE, bound=objective - compiled.sense * slack, message=message)
        return outcome

    # -- scaling of the objective --------------------------------------------------------------------------------------
    def _finer_scale(self, x: Vector | None, gap: float) -> float | None:
        """Return a scale at which HiGHS's absolute tolerance is below the gap at ``x``; None if this one will do."""
        if x is None or not self._is_blind(objective := self._compiled.evaluate(x), gap):
            return None
        needed = _power_of_two(4 * _IMPROVEMENT / (max(gap, _LEAST_GAP) * abs(objective)))
        scale = min(needed, _power_of_two(_GREATEST_COST / _cost_size(self._compiled)))
        return scale if scale > self._scale else None

    def _is_blind(self, objective: float, gap: float) -> bool:
        """Whether HiGHS may have passed over a solution that is better by more than the gap."""
        better_exists = self._compiled.sense * (objective - self._ideal()) > 0
        return better_exists and _IMPROVEMENT / self._scale > max(gap, _LEAST_GAP) * abs(objective) > 0

    def _ideal(self) -> float:
        """Return the objective with every column at its better bound: no point does better."""
        compiled = self._compiled
        used = compiled.c != 0
        ends = [compiled.c[used] * bound[used] for bound in (compiled.lb, compiled.ub)]
        best = np.minimum(*ends) if compiled.sense > 0 else np.maximum(*ends)
        return compiled.c0 + float(best.sum())

    def _rescale(self, scale: float) -> None:
        self._scale = scale
        n = len(self._compiled.columns)
        self._highs.changeColsCost(n, np.arange(n, dtype=np.int32), self._compiled.c * scale)
        self._highs.changeObjectiveOffset(self._compiled.c0 * scale)

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
                "HiGHS", "coefficients below 1e15", f"the greatest is {greatest:.3g}", "Choose units that are nearer to 1."
            )
        self._passed = compiled.A.shape

    def _pass_changes(self) -> None:
        """Take over data and rows that changed since the last solve."""
        compiled, data = self._compiled, self._compiled.data
        if compiled.A.shape != self._passed:
            self._pass_model()
        elif data.size:
            self._highs.changeColsBounds(len(data), data, compiled.lb[data], compiled.ub[data])

    def _status_without_objective(self, seconds: float, switch: StopSwitch) -> Status:
        """Tell unbounded from infeasible: HiGHS says "unbounded" also of programs where it knows no point."""
        self._pass_model(scale=0.0)
        try:
            name, x, _ = self._run(max(seconds, 1e-3), 0.0, None, switch, lambda _point: None)
        finally:
            self._pass_model()
        status = status_of(name, has_point=x is not None)
        return Status.UNBOUNDED if x is not None else Status.INTERRUPTED if switch.pressed else status

    # -- arguments -----------------------------------------------------------------------------------------------------
    def _require_data(self) -> None:
        unset = np.flatnonzero(np.isnan(self._compiled.lb))
        if unset.size:
            raise InvalidValueError(
                "HiGHS", "a value for all data", f"{self._compiled.columns[unset[0]].name!r} has none", "Call set_data first."
            )

    def _sparse_start(self, start: Mapping[int, float] | Sequence[float] | Vector | None) -> dict[int, float]:
        if start is None:
            return {}
        n = len(self._compiled.columns)
        if not isinstance(start, Mapping) and len(start) != n:
            raise InvalidValueError("start", f"one value for each of the {n} columns", f"it has {len(start)}", "Give all.")
        pairs = dict(start) if isinstance(start, Mapping) else dict(enumerate(start))
        for column, value in pairs.items():
            if not 0 <= column < n or not math.isfinite(value):
                raise InvalidValueError(
                    "start", f"finite values for columns 0 to {n - 1}", f"column {column} is {value}", "Leave it out."
                )
        return {int(column): float(value) for column, value in pairs.items()}


def _words(name: str) -> str:
    """Return ``kTimeLimit`` as "time limit"."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name[1:]).strip()


def _no_nan(bounds: Vector) -> Vector:
    """Data without a value are handed over as 0 until they have one."""
    return np.where(np.isnan(bounds), 0.0, bounds)


def _cost_size(compiled: CompiledModel) -> float:
    values = np.abs(compiled.c) if compiled.Q is None else np.abs(np.concatenate([compiled.c, compiled.Q.data]))
    return float(values.max(initial=0.0))


def _power_of_two(value: float) -> float:
    return 2.0 ** math.ceil(math.log2(value))


def _first_scale(compiled: CompiledModel) -> float:
    """Return the power of two, at least 1, that brings the greatest cost near 1024 (1 for a quadratic cost)."""
    size = _cost_size(compiled)
    return max(1.0, _power_of_two((1.0 if compiled.Q is not None else 1024.0) / size)) if size else 1.0


def _require_count(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value < 2**31:
        raise InvalidValueError("HiGHS", f"{name} to be a whole number from {least}", f"{name} is {value!r}", "Change it.")


def _require_number(name: str, value: Any, *, above: float = -math.inf, least: float = -math.inf) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not (value > above and value >= least):
        what = f"above {above:g}" if above > -math.inf else f"at least {least:g}"
        raise InvalidValueError("HiGHS", f"{name} to be a number {what}", f"{name} is {value!r}", "Change it.")

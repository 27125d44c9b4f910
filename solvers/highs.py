r"""HiGHS over a compiled model: linear, mixed-integer linear and convex quadratic programs.

``HighsSession._once`` calls ``highs.run()``; ``_confirmed`` calls it again, without presolve, if presolve may have
erred. The result passes ``_with_dual_proof`` (LP), ``_qp_with_dual_proof`` or ``_not_blind`` (MILP). HiGHS also runs in
``solvers/outer_approximation.py`` (tangent cuts) and, through SciPy, in ``improves_for_ever``. The rest of the file:
HiGHS's options, its silent class, the scaling of a program, and the table from HiGHS's status to ours.

The bound of an LP or convex QP is recomputed from HiGHS's dual solution, because HiGHS has returned "optimal" for
points that were not. For a minimisation of f with rows :math:`b^- \le A w \le b^+` and bounds :math:`l \le w \le u`,
any y and :math:`z = g - A^\top y`, with g the gradient at x, give for every feasible w

.. math:: f(w) \ge f(x) - g^\top x + \sum_i \min_{b^-_i \le a \le b^+_i} y_i a + \sum_j \min_{l_j \le v \le u_j} z_j v.

A feasible convex QP is unbounded if some recession direction improves its objective (``improves_for_ever``).
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.sparse import diags_array

from ceopt.solvers.adapter import (
    AbstractSession,
    Option,
    RunResult,
    SolveRun,
    apply_options,
    require_class,
    split_words,
    status_of,
    why_stopped,
    without_a_best,
)
from ceopt.solvers.compile.compiled_model import (
    CompiledModel,
    greatest_by_row,
    greatest_cost,
    power_of_two,
    refuse_huge,
    rows_of_entries,
)
from ceopt.solvers.conic.clarabel import ClarabelSession
from ceopt.solvers.errors import InvalidValueError, UnknownNameError
from ceopt.solvers.problem import Stop, StopTable, Vector
from ceopt.solvers.tolerances import (
    DROPPED_COEFFICIENT,
    HIGHS_BOUND_ROUNDING,
    HIGHS_IMPROVEMENT,
    HIGHS_NO_REDUCED_COST,
    HIGHS_RAY_TOLERANCE,
    HIGHS_ROUNDING,
    LEAST_GAP,
    LEAST_QP_GAP,
    ZERO_SHARE,
)
from ceopt.solvers.trust import contradicts, leaves_open

# ==== The bound that a dual solution of an LP or convex QP proves =====================================================


def bound_from_duals(
    compiled: CompiledModel, x: Vector, y: Vector, *, A: Any = None, bounds: tuple[Vector, Vector] | None = None
) -> tuple[float, float]:
    """Return the bound that row multipliers y prove, in the model's own sense, and the rounding of the sums behind it.

    A reduced cost that is tiny beside its terms counts as 0 towards an infinite bound; it is evaluated at ``x``.
    ``A`` are the rows in another form, and ``bounds`` those of the columns, where they are not the program's own.
    """
    sense = compiled.sense
    A = compiled.A if A is None else A
    side = np.where(y > 0, compiled.row_lb, compiled.row_ub)
    y = np.where(np.isfinite(side), y, 0.0)  # nothing follows from an infinite side
    side = np.where(y != 0.0, side, 0.0)
    gradient = compiled.c
    sizes = np.abs(compiled.c) + abs(A).T @ np.abs(y)
    if compiled.Q is not None:
        hessian = _full(compiled.Q)
        gradient = compiled.c + hessian @ x
        sizes += abs(hessian) @ np.abs(x)
    gradient = sense * gradient
    reduced = gradient - A.T @ y
    end = np.where(reduced > 0, *(bounds or (compiled.lb, compiled.ub)))
    is_infinite = ~np.isfinite(end)
    if np.any(is_infinite & (np.abs(reduced) > HIGHS_NO_REDUCED_COST * sizes)):
        return -sense * np.inf, 0.0
    rows = y * side
    columns = reduced * np.where(is_infinite, x, end)
    value = sense * compiled.evaluate(x) - float(gradient @ x)
    terms = float(np.abs(rows).sum() + np.abs(columns).sum() + np.abs(gradient * x).sum()) + abs(compiled.evaluate(x))
    return sense * (value + float(rows.sum()) + float(columns.sum())), HIGHS_BOUND_ROUNDING * terms


def improves_for_ever(compiled: CompiledModel) -> bool:
    r"""Return whether a feasible convex QP is unbounded.

    It is if and only if some d in the recession cone of its rows and bounds is flat and improves the objective:

    .. math:: A d \text{ and } d \text{ in the recession cone},\quad Q d = 0,\quad c^\top d < 0,\quad |d| \le 1.

    HiGHS regularises a QP, and then returns a far point of an unbounded one as optimal.
    """
    has_lower = np.isfinite(compiled.row_lb)
    has_upper = np.isfinite(compiled.row_ub)
    rows: Any = sp.vstack([-compiled.A[np.flatnonzero(has_lower)], compiled.A[np.flatnonzero(has_upper)]]).tocsr()
    limits = {}
    if rows.shape[0]:
        limits = {"A_ub": rows, "b_ub": np.zeros(rows.shape[0])}
    hessian: Any = sp.csr_array(_full(compiled.Q))
    solve: Any = linprog  # SciPy's stubs take no sparse matrix
    answer = solve(
        compiled.sense * compiled.c,
        **limits,
        A_eq=hessian,
        b_eq=np.zeros(hessian.shape[0]),
        bounds=np.column_stack([-1.0 * ~np.isfinite(compiled.lb), 1.0 * ~np.isfinite(compiled.ub)]),
        method="highs",
    )
    return bool(answer.status == 0 and answer.fun < -HIGHS_RAY_TOLERANCE * np.abs(compiled.c).max(initial=0.0))


def _full(lower: Any) -> Any:
    """Return the symmetric matrix of a lower triangle."""
    return lower + sp.tril(lower, -1).T


# ==== HiGHS over a compiled model: linear, mixed-integer linear and convex quadratic programs =========================

_SECOND_OPINION_S = 5.0  # for a run without presolve, if presolve alone found the program infeasible
_MANY_COLUMNS = 50  # for each row: above, presolve took two seconds for 100,000 coefficients
_PRESOLVE_S = 2e-5  # for each coefficient of such a program
_KEPT = 50  # candidates kept at most for each point of the pool: many differ in continuous columns only
_UNPROVED = "HiGHS stopped at a point that its duals do not prove."
_QP_STATUSES_TO_PROVE = frozenset({Stop.OPTIMAL, Stop.ERROR, Stop.UNBOUNDED})
_FAR = 1e5  # an optimum of a QP with greater entries may lie on an unbounded ray
_INFINITE = 1e20  # HiGHS treats numbers from here on as infinite
_FAR_SIDE = 1e19  # replaces an infinite side that no row can reach whose activity stays below _NEAR_SIDE
_NEAR_SIDE = 1e17


@final
class HighsSession(AbstractSession):
    """One compiled LP, MILP or convex QP inside HiGHS.

    HiGHS stops when no solution is better by more than 1e-6 *absolute*, whatever the gap. The objective is therefore
    scaled by a power of two, so that 1e-6 is below the relative gap; scaled costs stay below 2**30, and where that is
    not enough, "optimal" becomes "feasible". The columns of a QP are scaled too: HiGHS's QP solver does not do it, and
    misses columns of large values.
    """

    who = "HiGHS"

    def _open(self) -> None:
        import highspy

        compiled = self._compiled
        require_class(self.who, "highs", "an LP, MILP or convex QP", compiled)
        self._library = highspy
        highs = silent_highs()
        self._highs = highs
        highs.setOptionValue("threads", self._threads)
        highs.setOptionValue("random_seed", self._random_state)
        # HiGHS 1.15.1 loses solutions when it restarts: 18 of 120 small Misic programs "proved" a wrong optimum, none
        # without restarts. With a good start, a restart makes it 1.2 to 2.4 times slower (forests of 100 trees).
        highs.setOptionValue("mip_allow_restart", False)
        highs.setOptionValue("qp_regularization_value", 1e-11)  # with its 1e-7, a quarter of small random QPs fail
        if compiled.A.nnz and np.abs(compiled.A.data).min() <= DROPPED_COEFFICIENT:
            highs.setOptionValue("small_matrix_value", 1e-12)  # HiGHS would drop such coefficients silently
        set_options(highs, self._options)
        self._scale = first_scale(compiled)
        self._pass_model()

    @property
    def version(self) -> str:
        """Version of HiGHS."""
        return str(self._highs.version())

    def _run(self, search: SolveRun) -> RunResult:
        self._pass_changes()
        switch = search.switch
        self._pool: list[Vector] = []
        word, x, bound = self._best(search)
        status = search.or_interrupted(status_of(STOP, word, has_point=x is not None))
        message = why_stopped(self.who, status, split_words(word))
        result = RunResult(status=status, x=x, bound=bound, message=message, pool=tuple(self._pool))
        if switch.pressed:
            return result
        if self._compiled.Q is not None and status in _QP_STATUSES_TO_PROVE:
            return self._qp_with_dual_proof(result, search)
        if status is Stop.UNBOUNDED:
            return self._without_objective(search)
        if status is Stop.OPTIMAL and not self._compiled.integer.any():
            return self._with_dual_proof(result, search)
        return self._not_blind(result, search)

    def _proof(self, result: RunResult, gap: float) -> tuple[bool, float | None]:
        """Return whether the duals prove the point optimal within the gap, and the bound that they prove."""
        compiled = self._compiled
        x = result.x
        assert x is not None  # noqa: S101 - asked only of a point
        y = np.array(self._highs.getSolution().row_dual, dtype=np.float64) / (self._scale * self._row_units)
        objective = compiled.evaluate(x)
        best = -compiled.sense * math.inf
        for multipliers in {compiled.sense: compiled.sense * y, 1: y}.values():  # any multipliers prove a bound
            bound, rounding = bound_from_duals(compiled, x, multipliers)
            if compiled.sense * (bound - best) > 0:
                best = bound
            missing = abs(objective - bound)
            if missing <= HIGHS_ROUNDING * abs(objective) + rounding:
                return True, objective
            if missing <= max(gap, LEAST_QP_GAP) * abs(objective) + rounding:
                return True, bound
        if math.isinf(best):
            return False, None
        return False, best

    def _with_dual_proof(self, result: RunResult, search: SolveRun) -> RunResult:
        """Return an LP's "optimal" if its duals prove it, here or after another run; else "feasible".

        The first other run has a smaller dual tolerance: HiGHS treats reduced costs below 1e-7 as 0, which over a
        column with a range of 1e5 is 1e-2 of the objective. The second is without presolve.
        """
        proved, bound = self._proof(result, search.relative_gap)
        for option, value, default in (("dual_feasibility_tolerance", 1e-10, 1e-7), ("presolve", "off", "choose")):
            if proved or option in self._options or search.switch.pressed:
                break
            search.warm = False  # from the same basis it would end where it ended
            self._highs.setOptionValue(option, value)
            word, x, _ = self._once(search, search.relative_gap, {}, keeps_presolve=option == "presolve")
            self._highs.setOptionValue(option, default)
            if x is None or word != "kOptimal":
                break
            result = replace(result, x=x)
            proved, bound = self._proof(result, search.relative_gap)
        if proved:
            return replace(result, bound=bound)
        return replace(result, status=Stop.FEASIBLE, bound=bound, message=_UNPROVED)

    def _qp_with_dual_proof(self, result: RunResult, search: SolveRun) -> RunResult:
        """Return a QP's "optimal" if its duals prove it; else what Clarabel returns.

        HiGHS 1.15.1 returned "optimal" with errors of up to 3 % for 7 of 40 badly scaled convex QPs, and "unbounded"
        for one bounded QP in thirty.
        """
        best = None
        if result.x is not None and result.status is Stop.OPTIMAL and np.abs(result.x).max() < _FAR:
            proved, best = self._proof(result, search.relative_gap)
            if proved:
                return replace(result, bound=best)
        compiled = self._compiled
        if improves_for_ever(compiled):
            return self._without_objective(search)
        second = ClarabelSession(compiled, random_state=self._random_state).solve(
            time_limit_s=search.seconds_left, relative_gap=search.relative_gap, should_stop=search.switch.poll
        )
        has_point = result.x is not None and result.status is not Stop.UNBOUNDED
        if has_point and second.status is not Stop.OPTIMAL:
            status = search.or_interrupted(Stop.FEASIBLE)
            return replace(result, status=status, bound=best, message=_UNPROVED)
        if second.x is None:
            status = search.or_interrupted(second.status)
            return replace(result, status=status, x=None, bound=best, message=second.message)
        return RunResult(
            status=second.status,
            x=second.x,
            bound=second.bound,
            message=second.message,
            certificate=second.certificate,
        )

    def _best(self, search: SolveRun) -> tuple[str, Vector | None, float | None]:
        """Run at the first scale, and again from the best point at finer ones until the relative gap is proved."""
        compiled = self._compiled
        best = None
        start = search.start
        self._rescale(first_scale(compiled))
        while True:
            word, x, bound = self._from_start(search, start)
            if x is None or (best is not None and self._is_worse(x, best)):
                x = best
            if x is None or word != "kOptimal" or search.switch.pressed:
                return word, x, bound
            scale = finer_scale(compiled, compiled.evaluate(x), search.relative_gap, self._scale, search.absolute_gap)
            if scale is None:
                return word, x, bound
            best = x
            start = dict(enumerate(x.tolist()))
            self._rescale(scale)

    def _from_start(self, search: SolveRun, start: Mapping[int, float]) -> tuple[str, Vector | None, float | None]:
        """Run from a start; run again without it if the bound does not match the "optimal" point.

        HiGHS 1.16.0 may map a start, in presolve, to a better point that is infeasible, and prove that one optimal.
        """
        gap = search.relative_gap
        word, x, bound = self._once(search, gap, start)
        if not start or word != "kOptimal" or x is None or bound is None or search.switch.pressed:
            return word, x, bound
        compiled = self._compiled
        if not leaves_open(bound, compiled.evaluate(x), compiled, x, gap, absolute_gap=search.absolute_gap):
            return word, x, bound
        word, other, bound = self._once(search, gap, {})
        if other is None or self._is_worse(other, x):
            other = x
        return word, other, bound

    def _is_worse(self, x: Vector, other: Vector) -> bool:
        compiled = self._compiled
        return compiled.sense * (compiled.evaluate(x) - compiled.evaluate(other)) > 0

    def _has_unbounded_integer(self) -> bool:
        """Return whether an integer column lacks a bound; given a start, HiGHS 1.15.1 then misses better points."""
        whole = self._compiled.integer
        return not np.isfinite([self._compiled.lb[whole], self._compiled.ub[whole]]).all()

    def _rescale(self, scale: float) -> None:
        if scale != self._scale:
            self._scale = scale
            self._pass_model()

    # -- one run -------------------------------------------------------------------------------------------------------
    def _once(
        self,
        search: SolveRun,
        gap: float,
        start: Mapping[int, float],
        *,
        reports: bool = True,
        keeps_presolve: bool = False,
    ) -> tuple[str, Vector | None, float | None]:
        """Return HiGHS's status, the best point and the proved bound, in the model's own units."""
        highs = self._highs
        library = self._library
        if not search.warm or self._compiled.integer.any() or self._compiled.Q is not None:
            highs.clearSolver()
        self._limit_time(search.seconds_left)
        highs.setOptionValue("mip_rel_gap", gap)
        highs.setOptionValue("mip_abs_gap", search.absolute_gap * self._scale)
        highs.setOptionValue("output_flag", search.tee or bool(self._options.get("output_flag", False)))
        if not keeps_presolve:
            self._choose_presolve(search)
        if start and not self._has_unbounded_integer():
            at = np.array(list(start), dtype=np.int32)
            values = np.array(list(start.values()), dtype=np.float64) / self._column_units[at]
            highs.setSolution(len(start), at, values)
        self._set_callbacks(search, reports=reports)
        library.Highs.resetGlobalScheduler(True)  # an earlier session in this thread may have had another thread count
        try:
            with search.switch.listening():
                highs.run()
                status = self._confirmed(highs.getModelStatus(), search.deadline)
        finally:
            highs.setCallback(None, None)  # releases the caller's functions
        x = None
        if self._has_point():
            x = np.array(highs.getSolution().col_value, dtype=np.float64) * self._column_units
        bound = None
        if self._compiled.integer.any():
            proved = highs.getInfo().mip_dual_bound
            if math.isfinite(proved):
                bound = proved / self._scale
        elif status == library.HighsModelStatus.kOptimal and x is not None:
            bound = self._compiled.evaluate(x)
        return status.name, x, bound

    def _set_callbacks(self, search: SolveRun, *, reports: bool) -> None:
        """Let HiGHS ask the switch whether to stop and, with ``reports``, hand over the points that it meets."""
        kinds = self._library.cb.HighsCallbackType
        improving = kinds.kCallbackMipImprovingSolution
        any_point = kinds.kCallbackMipSolution
        pool = self._pool
        reported = improving
        if reports and search.pool > 1:
            reported = any_point

        def called(kind: Any, _message: str, out: Any, into: Any, _data: Any) -> None:
            if kind not in {improving, any_point}:
                if reports:
                    search.report(out.mip_dual_bound / self._scale if kind == kinds.kCallbackMipInterrupt else None)
                if search.switch.poll():
                    into.user_interrupt = True
                return
            if reports:
                point = np.array(out.mip_solution, dtype=np.float64)
                search.improved(point)
                if kind == any_point:
                    pool.append(point)
                    _keep_best(pool, search)

        self._highs.setCallback(called, None)
        interrupts = (kinds.kCallbackMipInterrupt, kinds.kCallbackSimplexInterrupt, kinds.kCallbackIpmInterrupt)
        for kind in (reported, *interrupts):
            self._highs.startCallback(kind)

    def _limit_time(self, seconds: float) -> None:
        """Set HiGHS's limit, which counts from the start of the run for a MIP, but over all runs for an LP or a QP."""
        spent = 0.0
        if not self._compiled.integer.any():
            spent = self._highs.getRunTime()
        self._highs.setOptionValue("time_limit", spent + seconds)

    def _has_point(self) -> bool:
        feasible = self._library.SolutionStatus.kSolutionStatusFeasible
        return bool(self._highs.getInfo().primal_solution_status == feasible)

    def _choose_presolve(self, search: SolveRun) -> None:
        """Switch presolve off if it would exceed the time limit, which it ignores for few rows over many columns."""
        if "presolve" in self._options:
            return
        rows, columns = self._compiled.A.shape
        is_long = columns >= _MANY_COLUMNS * rows and search.seconds_left < _PRESOLVE_S * self._compiled.A.nnz
        word = "choose"
        if is_long:
            word = "off"
        self._highs.setOptionValue("presolve", word)

    def _confirmed(self, status: Any, deadline: float) -> Any:
        """Return the status; solve again without presolve if presolve alone proved that there is no point, or failed.

        HiGHS 1.15.1 has presolved feasible programs away, LPs of three rows too. Given a start, it has called the start
        optimal without a bound. The second run then takes a few seconds at most; if it finds no point, the first status
        stands. Presolve also leads to "solve error" on programs that HiGHS solves without it, and to "optimal" at
        points that break a row.
        """
        highs = self._highs
        known = self._library.HighsModelStatus
        if self._compiled.Q is not None or "presolve" in self._options or highs.getOptionValue("presolve")[1] == "off":
            return status
        is_whole = self._compiled.integer.any()
        info = highs.getInfo()
        is_empty = status == known.kInfeasible and info.mip_node_count <= 0
        is_proved = self._has_point() and math.isfinite(info.mip_dual_bound)
        is_unproved = is_whole and status == known.kOptimal and not is_proved
        has_failed = is_whole and status == known.kSolveError
        left = deadline - time.perf_counter()
        if not (is_empty or is_unproved or has_failed) or left <= 0:
            return status
        if is_empty:
            left = min(left, _SECOND_OPINION_S)
        highs.setOptionValue("presolve", "off")
        self._limit_time(left)
        highs.run()
        highs.setOptionValue("presolve", "choose")
        if is_empty and not self._has_point():
            return status
        return highs.getModelStatus()

    def _not_blind(self, result: RunResult, search: SolveRun) -> RunResult:
        """Return "feasible" instead of "optimal" if HiGHS's absolute 1e-6 may have hidden a better solution."""
        if result.x is None or result.status is not Stop.OPTIMAL:
            return result
        compiled = self._compiled
        slack = HIGHS_IMPROVEMENT / self._scale
        objective = compiled.evaluate(result.x)
        if not is_blind(compiled, objective, search.relative_gap, self._scale, search.absolute_gap):
            return result
        message = f"HiGHS stopped: it looks for no solution that is better by less than {slack:.3g}."
        bound = result.bound
        if bound is None or not contradicts(bound, objective, compiled, result.x):  # which solvers/trust.py refuses
            bound = objective - compiled.sense * slack
        return replace(result, status=Stop.FEASIBLE, bound=bound, message=message)

    # -- model into HiGHS ----------------------------------------------------------------------------------------------
    def _pass_model(self, scale: float | None = None) -> None:
        """Hand the whole program over; a scale of 0 leaves out the objective."""
        compiled = self._compiled
        library = self._library
        if scale is None:
            scale = self._scale
        columns, rows = units_of(compiled)
        self._column_units = columns
        self._row_units = rows
        lp = library.HighsLp()
        lp.num_row_, lp.num_col_ = compiled.A.shape
        lp.col_cost_ = compiled.c * columns * scale
        lp.offset_ = compiled.c0 * scale
        lp.col_lower_ = _no_nan(compiled.lb) / columns
        lp.col_upper_ = _no_nan(compiled.ub) / columns
        low, high = sides_within(compiled)
        lp.row_lower_ = low / rows
        lp.row_upper_ = high / rows
        lp.sense_ = library.ObjSense.kMinimize if compiled.sense > 0 else library.ObjSense.kMaximize
        lp.a_matrix_.format_ = library.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = compiled.A.indptr
        lp.a_matrix_.index_ = compiled.A.indices
        per_row = np.repeat(rows, np.diff(compiled.A.indptr))
        lp.a_matrix_.value_ = compiled.A.data * columns[compiled.A.indices] / per_row
        kind = library.HighsVarType
        lp.integrality_ = [kind.kInteger if whole else kind.kContinuous for whole in compiled.integer.tolist()]
        statuses = [self._highs.passModel(lp)]
        if compiled.Q is not None and scale:
            hessian = (diags_array(columns) @ compiled.Q @ diags_array(columns)).tocsc()
            hessian.sort_indices()
            entries = (hessian.nnz, library.HessianFormat.kTriangular, hessian.indptr, hessian.indices)
            statuses.append(self._highs.passHessian(len(columns), *entries, hessian.data * scale))
        if library.HighsStatus.kError in statuses:
            raise not_taken("HiGHS", compiled)
        self._passed = compiled.shape

    def _pass_changes(self) -> None:
        """Hand over the bounds of data columns and the rows that changed since the last solve."""
        compiled = self._compiled
        data = compiled.data
        if compiled.shape != self._passed:
            if compiled.Q is not None or compiled.shape[1:] != self._passed[1:] or self._passed[0] > compiled.shape[0]:
                self._pass_model()
                return
            self._add_rows(self._passed[0])
        if data.size:
            units = self._column_units[data]
            self._highs.changeColsBounds(len(data), data, compiled.lb[data] / units, compiled.ub[data] / units)

    def _add_rows(self, first: int) -> None:
        """Hand over the rows from ``first`` on of an LP or MILP, whose columns and rows have units of 1."""
        compiled = self._compiled
        rows = compiled.A[first:]
        low, high = sides_within(compiled)
        if rows.nnz and np.abs(rows.data).min() <= DROPPED_COEFFICIENT:
            self._highs.setOptionValue("small_matrix_value", 1e-12)
        entries = (rows.nnz, rows.indptr[:-1], rows.indices, rows.data)
        status = self._highs.addRows(rows.shape[0], low[first:], high[first:], *entries)
        if status == self._library.HighsStatus.kError:
            raise not_taken("HiGHS", compiled)
        self._row_units = np.ones(compiled.A.shape[0])
        self._passed = compiled.shape

    def _without_objective(self, search: SolveRun) -> RunResult:
        """Return unbounded or infeasible: HiGHS says "unbounded" also where there is no point, so look for one."""
        self._pass_model(scale=0.0)
        try:
            word, x, _ = self._once(search, 0.0, {}, reports=False)
        finally:
            self._pass_model()
        status = search.or_interrupted(status_of(STOP, word, has_point=False))
        if x is not None:
            status = Stop.UNBOUNDED
        return without_a_best(self.who, status, otherwise=f"HiGHS stopped: {status}.")


def _keep_best(pool: list[Vector], search: SolveRun) -> None:
    """Drop the worse half of the pool once it has many more points than are wanted."""
    if len(pool) > _KEPT * search.pool:
        pool.sort(key=lambda point: search.compiled.sense * search.compiled.evaluate(point))
        del pool[len(pool) // 2 :]


def _no_nan(bounds: Vector) -> Vector:
    """Return the bounds with 0 instead of NaN, which a data column has before its first value."""
    return np.where(np.isnan(bounds), 0.0, bounds)


# ---- options by HiGHS's own names, refused before work starts if unknown or out of range -----------------------------
_OPTION_ARGUMENTS = {
    "time_limit": "time_limit_s",
    "mip_rel_gap": "relative_gap",
    "mip_abs_gap": "absolute_gap",
    "threads": "threads",
    "random_seed": "random_state",
}
_OPTION_TYPES: dict[str, type[bool | int | float | str]] = {
    "kBool": bool,
    "kInt": int,
    "kDouble": float,
    "kString": str,
}


def set_options(highs: Any, options: Mapping[str, Any]) -> None:
    """Set each option on a ``highspy.Highs``.

    Raises
    ------
    UnknownNameError
        HiGHS has no option of that name.
    InvalidValueError
        HiGHS does not take the value, or the option has an argument of its own.
    """
    import highspy

    def described(name: str) -> Option:
        status, kind = highs.getOptionType(name)
        if status != highspy.HighsStatus.kOk:
            raise UnknownNameError.among("HiGHS", "option", name, _option_names(highs))
        return Option(
            types=(_OPTION_TYPES[kind.name],),
            takes=f"a value of type {kind.name[1:].lower()} that option {name!r} takes",
            then=f"Its present value is {highs.getOptionValue(name)[1]!r}.",
        )

    def put(name: str, value: Any) -> None:
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise ValueError(name)

    apply_options("HiGHS", options, arguments=_OPTION_ARGUMENTS, describe=described, put=put)


def _option_names(highs: Any) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "options.txt"
        highs.writeOptions(str(path))
        lines = path.read_text(encoding="utf-8").splitlines()
    return sorted(line.split("=")[0].strip() for line in lines if "=" in line and not line.startswith("#"))


# ---- HiGHS without a word on standard output -------------------------------------------------------------------------
def silent_highs() -> Any:
    """Return a new ``highspy.Highs`` that prints nothing, not even its licence notice.

    HiGHS 1.16 prints it when the constructor enables callbacks, before options can be set.
    """
    return _silent_class()()


@cache
def _silent_class() -> Any:
    import highspy

    class SilentHighs(highspy.Highs):
        """HiGHS with ``output_flag`` off before its constructor can print."""

        def enableCallbacks(self) -> None:  # noqa: N802 - its name in highspy
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()  # type: ignore[no-untyped-call]

    return SilentHighs


# ---- the scale of a program before HiGHS, whose tolerances are absolute, sees it -------------------------------------
_GREATEST_SQUARE = 2.0**26  # greatest diagonal entry of Q after the columns are scaled
_GREATEST_COST = 2.0**30  # scaled costs stay below, for the simplex method's sake


def first_scale(compiled: CompiledModel) -> float:
    """Return the power of two, at least 1, that brings the greatest cost near 1024 (1 for a quadratic cost)."""
    size = greatest_cost(compiled)
    wanted = 1024.0
    if compiled.Q is not None:
        wanted = 1.0
    if not size:
        return 1.0
    return max(1.0, power_of_two(wanted / size, math.ceil))


def finer_scale(
    compiled: CompiledModel, objective: float, gap: float, scale: float, absolute_gap: float = 0.0
) -> float | None:
    """Return a greater scale, at which 1e-6 is below the gap; None if ``scale`` is enough, or the greatest."""
    if not is_blind(compiled, objective, gap, scale, absolute_gap):
        return None
    wanted = max(max(gap, LEAST_GAP) * abs(objective), absolute_gap)
    needed = power_of_two(4 * HIGHS_IMPROVEMENT / wanted, math.ceil)
    finer = min(needed, power_of_two(_GREATEST_COST / greatest_cost(compiled), math.ceil))
    if finer > scale:
        return finer
    return None


def is_blind(compiled: CompiledModel, objective: float, gap: float, scale: float, absolute_gap: float = 0.0) -> bool:
    """Return whether HiGHS's 1e-6, at this scale, may hide a solution that is better by more than the gap."""
    if not compiled.integer.any():
        return False
    room = compiled.sense * (objective - best_conceivable(compiled))
    if room <= ZERO_SHARE * greatest_cost(compiled):
        return False
    return 0 < max(max(gap, LEAST_GAP) * abs(objective), absolute_gap) < HIGHS_IMPROVEMENT / scale


def best_conceivable(compiled: CompiledModel) -> float:
    """Return a bound of a linear objective: each column at its better end."""
    used = compiled.c != 0
    cost = compiled.c[used]
    end = np.where(compiled.sense * cost > 0, compiled.lb[used], compiled.ub[used])
    return compiled.c0 + float((cost * end).sum())


def sides_within(compiled: CompiledModel) -> tuple[Vector, Vector]:
    """Return the sides of the rows, with 1e19 instead of 1e20 and more where no point comes near.

    HiGHS refuses a lower side of 1e20 or more, and an upper side of -1e20 or less. If the bounds of the columns keep
    the row below 1e17, a side of 1e19 is as infeasible.
    """
    low = compiled.row_lb
    high = compiled.row_ub
    far = np.flatnonzero((low >= _INFINITE) | (high <= -_INFINITE))
    if not len(far):
        return low, high
    low = low.copy()
    high = high.copy()
    for row in far.tolist():
        entries = slice(compiled.A.indptr[row], compiled.A.indptr[row + 1])
        values = compiled.A.data[entries]
        columns = compiled.A.indices[entries]
        ends = np.abs(np.stack((values * compiled.lb[columns], values * compiled.ub[columns])))
        if ends.max(axis=0, initial=0.0).sum() < _NEAR_SIDE:
            low[row] = min(low[row], _FAR_SIDE)
            high[row] = max(high[row], -_FAR_SIDE)
    return low, high


def not_taken(who: str, compiled: CompiledModel) -> InvalidValueError:
    """Return the error for a program that HiGHS refuses, with the number that it refuses.

    Raises
    ------
    InvalidValueError
        That number is a coefficient.
    """
    refuse_huge(who, [compiled.A.data])
    then = "Choose units that are nearer to 1."
    sides = (
        ("column", compiled.columns, compiled.lb, compiled.ub),
        ("row", compiled.rows, compiled.row_lb, compiled.row_ub),
    )
    for kind, members, low, high in sides:
        for place in np.flatnonzero((low >= _INFINITE) | (high <= -_INFINITE)).tolist():
            name = getattr(members[place], "name", f"number {place + 1}")
            but = f"{kind} {name!r} is to be at most {high[place]:.3g}"
            if low[place] >= _INFINITE:
                but = f"{kind} {name!r} is to be at least {low[place]:.3g}"
            return InvalidValueError(who, "bounds and sides of rows that are numbers to it, below 1e20", but, then)
    then = "Choose another solver: solver='scip' or 'clarabel'."
    return InvalidValueError(who, "a program that it takes", "it calls this one an error and does not say why", then)


def units_of(compiled: CompiledModel) -> tuple[Vector, Vector]:
    """Return the units, powers of two, in which HiGHS sees the columns and the rows: 1 except in a QP.

    Columns are scaled so that each has, in some row, at least half of the row's greatest coefficient; rows then so that
    their greatest is near 1. HiGHS 1.15.1 scales an LP by itself, but not a QP.
    """
    columns = np.ones(len(compiled.columns))
    rows = np.ones(compiled.A.shape[0])
    if compiled.Q is None or not compiled.A.nnz:
        return columns, rows
    A = compiled.A
    size = np.abs(A.data)
    row = rows_of_entries(A)
    share = np.zeros(A.shape[1])
    greatest = greatest_by_row(size, row, len(rows))
    np.maximum.at(share, A.indices, size / greatest[row])
    columns = np.exp2(-np.round(np.log2(np.where(share > 0.0, share, 1.0))))
    # The square of a column may not dominate the objective.
    square = np.abs(compiled.Q.diagonal()) * first_scale(compiled)
    most = np.exp2(np.floor(0.5 * np.log2(_GREATEST_SQUARE / np.where(square > 0.0, square, 1.0))))
    columns = np.where(square > 0.0, np.minimum(columns, np.maximum(most, 1.0)), columns)
    return columns, np.exp2(np.round(np.log2(greatest_by_row(size * columns[A.indices], row, len(rows)))))


# ---- HiGHS's stop statuses, each mapped to one of ours ---------------------------------------------------------------
# a name of highspy.HighsModelStatus -> our status with a point, and without one
STOP: StopTable = {
    "kNotset": (Stop.ERROR, Stop.ERROR),
    "kLoadError": (Stop.ERROR, Stop.ERROR),
    "kModelError": (Stop.ERROR, Stop.ERROR),
    "kPresolveError": (Stop.ERROR, Stop.ERROR),
    "kSolveError": (Stop.ERROR, Stop.ERROR),
    "kPostsolveError": (Stop.ERROR, Stop.ERROR),
    "kModelEmpty": (Stop.OPTIMAL, Stop.OPTIMAL),
    "kOptimal": (Stop.OPTIMAL, Stop.ERROR),
    "kInfeasible": (Stop.INFEASIBLE, Stop.INFEASIBLE),
    "kUnboundedOrInfeasible": (Stop.UNBOUNDED, Stop.UNBOUNDED),  # the session tells the two apart
    "kUnbounded": (Stop.UNBOUNDED, Stop.UNBOUNDED),
    "kObjectiveBound": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "kObjectiveTarget": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "kTimeLimit": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "kIterationLimit": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "kUnknown": (Stop.FEASIBLE, Stop.ERROR),
    "kSolutionLimit": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "kInterrupt": (Stop.INTERRUPTED, Stop.INTERRUPTED),
    "kMemoryLimit": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "kHighsInterrupt": (Stop.INTERRUPTED, Stop.INTERRUPTED),
}

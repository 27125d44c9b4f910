r"""HiGHS over a compiled model: linear, mixed-integer linear and convex quadratic programs.

``HighsSession._once`` is where ``highs.run()`` is called, and ``_confirmed`` calls it again where presolve may have
erred. What comes back passes ``_with_dual_proof`` (LP), ``_qp_with_dual_proof`` or ``_not_blind`` (MILP). Below the
session stand the options that HiGHS takes, how it is kept silent, the scale at which it sees a program, and its stop
statuses beside ours.

The bound of an LP or convex QP is recomputed from HiGHS's dual solution: its own "optimal" was seen to be wrong. With
the gradient g at a point, any row multipliers y and :math:`z = g - A^\top y`, every feasible w of a program to
minimise f has

.. math:: f(w) \ge f(x) - g^\top x + \sum_i \min_{b^-_i \le a \le b^+_i} y_i a + \sum_j \min_{l_j \le v \le u_j} z_j v.

A direction along which a program improves for ever proves that it has no optimum at all.
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

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.compile.sizes import greatest_by_row, greatest_cost, power_of_two, refuse_huge, rows_of_entries
from ceopt.solvers.conic.clarabel import ClarabelSession
from ceopt.solvers.errors import InvalidValueError, UnknownNameError
from ceopt.solvers.options import Option, apply_options
from ceopt.solvers.problem import Stop, StopTable, Vector
from ceopt.solvers.session import (
    AbstractSession,
    RunResult,
    SolveRun,
    require_class,
    split_words,
    status_of,
    why_stopped,
    without_a_best,
)
from ceopt.solvers.tolerances import (
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

# ==== The proof of HiGHS's dual solution of an LP or convex QP, recomputed: its own "optimal" was seen to be wrong ====


def bound_from_duals(compiled: CompiledModel, x: Vector, y: Vector) -> tuple[float, float]:
    """Return the bound that the multipliers prove, in the model's own sense, and the rounding of its sums."""
    sense = compiled.sense
    A = compiled.A
    hessian = None
    if compiled.Q is not None:
        hessian = compiled.Q + sp.tril(compiled.Q, -1).T
    gradient = sense * (compiled.c if hessian is None else compiled.c + hessian @ x)
    y = np.where(np.isfinite(np.where(y > 0, compiled.row_lb, compiled.row_ub)), y, 0.0)
    reduced = gradient - A.T @ y
    side = np.where(reduced > 0, compiled.lb, compiled.ub)
    open_ended = ~np.isfinite(side)
    if np.any(open_ended & (reduced != 0.0)):
        sizes = np.abs(compiled.c) + abs(A).T @ np.abs(y) + (0.0 if hessian is None else abs(hessian) @ np.abs(x))
        if np.any(open_ended & (np.abs(reduced) > HIGHS_NO_REDUCED_COST * sizes)):
            return -sense * np.inf, 0.0
    rows = _terms(y, compiled)
    columns = reduced * np.where(open_ended, x, side)
    value = sense * compiled.evaluate(x) - float(gradient @ x)
    terms = float(np.abs(rows).sum() + np.abs(columns).sum() + np.abs(gradient * x).sum()) + abs(compiled.evaluate(x))
    return sense * (value + float(rows.sum()) + float(columns.sum())), HIGHS_BOUND_ROUNDING * terms


def _terms(y: Vector, compiled: CompiledModel) -> Vector:
    """Return the least of each multiplier times its row; 0 for a multiplier of 0, whatever the sides."""
    side = np.where(y > 0, compiled.row_lb, compiled.row_ub)
    return np.asarray(y * np.where(y != 0.0, side, 0.0), dtype=np.float64)


def improves_for_ever(compiled: CompiledModel) -> bool:
    r"""Whether a feasible QP is unbounded.

    It is exactly if some direction keeps every row and bound, leaves the quadratic part alone, improves the linear one:

    .. math:: A d \text{ and } d \text{ in the recession cone},\quad Q d = 0,\quad c^\top d < 0,\quad |d| \le 1.

    HiGHS needs this: it regularises a QP, and then takes a far point of an unbounded one for optimal.
    """
    lower = np.where(np.isfinite(compiled.lb), 0.0, -1.0)
    upper = np.where(np.isfinite(compiled.ub), 0.0, 1.0)
    least = np.isfinite(compiled.row_lb)
    greatest = np.isfinite(compiled.row_ub)
    rows: Any = sp.vstack([-compiled.A[np.flatnonzero(least)], compiled.A[np.flatnonzero(greatest)]]).tocsr()
    hessian: Any = sp.csr_array(compiled.Q + sp.tril(compiled.Q, -1).T)
    solve: Any = linprog  # its stubs know no sparse rows
    answer = solve(
        compiled.sense * compiled.c,
        A_ub=rows if rows.shape[0] else None,
        b_ub=np.zeros(rows.shape[0]) if rows.shape[0] else None,
        A_eq=hessian,
        b_eq=np.zeros(hessian.shape[0]),
        bounds=np.column_stack([lower, upper]),
        method="highs",
    )
    return bool(answer.status == 0 and answer.fun < -HIGHS_RAY_TOLERANCE * np.abs(compiled.c).max(initial=0.0))


# ==== HiGHS over a compiled model: linear, mixed-integer linear and convex quadratic programs =========================

_SECOND_OPINION_S = 5.0  # for a program that presolve alone calls infeasible
_MANY_COLUMNS = 50  # for each row: from there on presolve was seen to take two seconds for 100,000 coefficients
_PRESOLVE_S = 2e-5  # for each coefficient of such a program
_KEPT = 50  # points met that are kept at most, per point wanted: some of them differ in continuous columns only
_UNPROVED = "HiGHS stopped at a point that its duals do not prove."
_ASKED_OF_A_QP = frozenset({Stop.OPTIMAL, Stop.ERROR, Stop.UNBOUNDED})  # without its duals none of them is believed
_FAR = 1e5  # a QP's point beyond may lie on an unbounded ray
_INFINITE = 1e20  # and takes these for infinite
_FAR_SIDE = 1e19  # a side that is a number, and that no row of at most _NEAR_SIDE reaches
_NEAR_SIDE = 1e17


@final
class HighsSession(AbstractSession):
    """One compiled LP, MILP or convex QP inside HiGHS.

    HiGHS ends its search when no solution better by 1e-6 *absolutely* is left, whatever the gaps asked for. The
    objective is therefore handed over scaled by a power of two, raised until 1e-6 is below the relative gap, as far as
    scaled costs stay below 2**30; beyond, nothing is called optimal. A QP's columns are scaled too: the QP solver does
    not do it, and would overlook a column of large values.
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
        highs.setOptionValue("mip_abs_gap", 0.0)
        # HiGHS 1.15.1 loses solutions when it restarts: 18 of 120 small Misic programs "proved" a wrong optimum, none
        # without restarts. With a good start one also costs 1.2 to 2.4 times the time (forests of 100 trees).
        highs.setOptionValue("mip_allow_restart", False)
        highs.setOptionValue("qp_regularization_value", 1e-11)  # with its 1e-7, a quarter of small random QPs fail
        if compiled.A.nnz and np.abs(compiled.A.data).min() <= 1e-9:
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
        name, x, bound = self._best(search)
        status = search.or_interrupted(status_of(STOP, name, has_point=x is not None))
        message = why_stopped(self.who, status, split_words(name))
        result = RunResult(status=status, x=x, bound=bound, message=message, pool=tuple(self._pool))
        if switch.pressed:
            return result
        if self._compiled.Q is not None and status in _ASKED_OF_A_QP:
            return self._qp_with_dual_proof(result, search)
        if status is Stop.UNBOUNDED:
            return self._without_objective(search)
        if status is Stop.OPTIMAL and not self._compiled.integer.any():
            return self._with_dual_proof(result, search)
        return self._not_blind(result, search.relative_gap)

    def _proof(self, result: RunResult, gap: float) -> tuple[bool, float]:
        """Return whether the duals prove the point, and the bound that they prove."""
        compiled = self._compiled
        x = result.x
        assert x is not None  # noqa: S101 - asked only of a point
        y = np.array(self._highs.getSolution().row_dual, dtype=np.float64) / (self._scale * self._heights)
        objective = compiled.evaluate(x)
        best = -compiled.sense * math.inf
        for multipliers in (compiled.sense * y, y):
            bound, rounding = bound_from_duals(compiled, x, multipliers)
            if compiled.sense * (bound - best) > 0:
                best = bound
            missing = abs(objective - bound)
            if missing <= HIGHS_ROUNDING * abs(objective) + rounding:
                return True, objective
            if missing <= max(gap, LEAST_QP_GAP) * abs(objective) + rounding:
                return True, bound
        return False, best

    def _with_dual_proof(self, result: RunResult, search: SolveRun) -> RunResult:
        """Take an LP's "optimal" only with a proof from its duals; where there is none, ask for smaller residuals.

        A reduced cost of 1e-7 is 0 to HiGHS, which is much in a column with a range of 1e5.
        """
        user = self._options
        for option, value, usual in (("dual_feasibility_tolerance", 1e-10, 1e-7), ("presolve", "off", "choose")):
            proved, bound = self._proof(result, search.relative_gap)
            if proved:
                return replace(result, bound=bound)
            if option in user or search.switch.pressed:
                break
            self._highs.setOptionValue(option, value)
            name, x, _ = self._once(search, search.relative_gap, {})
            self._highs.setOptionValue(option, usual)
            if x is None or name != "kOptimal":
                break
            result = replace(result, x=x)
        proved, bound = self._proof(result, search.relative_gap)
        if proved:
            return replace(result, bound=bound)
        if not math.isfinite(bound):
            return replace(result, status=Stop.FEASIBLE, bound=None, message=_UNPROVED)
        return replace(result, status=Stop.FEASIBLE, bound=bound, message=_UNPROVED)

    def _qp_with_dual_proof(self, result: RunResult, search: SolveRun) -> RunResult:
        """Take a QP's "optimal" only with a proof from its duals; without one, ask Clarabel.

        HiGHS 1.15.1 ended 7 of 40 badly scaled convex QPs "optimal" at points that were up to 3 % off, and calls one
        bounded QP in thirty unbounded.
        """
        best = None
        if result.x is not None and result.status is Stop.OPTIMAL and np.abs(result.x).max() < _FAR:
            proved, best = self._proof(result, search.relative_gap)
            if proved:
                return replace(result, bound=best)
        compiled = self._compiled
        if improves_for_ever(compiled):
            return self._without_objective(search)
        if best is not None and not math.isfinite(best):
            best = None
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
        """Run at the first scale, and again from the best point at a finer one if the proof needs it."""
        compiled = self._compiled
        best = None
        start = search.start
        self._pool: list[Vector] = []
        self._rescale(first_scale(compiled))
        while True:
            name, x, bound = self._from_start(search, start)
            if x is None or (best is not None and self._is_worse(x, best)):
                x = best
            if x is None or name != "kOptimal" or search.switch.pressed:
                return name, x, bound
            scale = finer_scale(compiled, compiled.evaluate(x), search.relative_gap, self._scale)
            if scale is None:
                return name, x, bound
            best = x
            start = dict(enumerate(x.tolist()))
            self._rescale(scale)

    def _from_start(self, search: SolveRun, start: Mapping[int, float]) -> tuple[str, Vector | None, float | None]:
        """Run from a start, and again without it where the bound is not that of the "optimal" point.

        HiGHS 1.16.0 may presolve a start into a better point that the program does not have, and "prove" that one.
        """
        gap = search.relative_gap
        name, x, bound = self._once(search, gap, start)
        if not start or name != "kOptimal" or x is None or bound is None or search.switch.pressed:
            return name, x, bound
        compiled = self._compiled
        if not leaves_open(bound, compiled.evaluate(x), compiled, x, gap):
            return name, x, bound
        again, other, its_bound = self._once(search, gap, {})
        if other is None or self._is_worse(other, x):
            other = x
        return again, other, its_bound

    def _is_worse(self, x: Vector, other: Vector) -> bool:
        compiled = self._compiled
        return compiled.sense * (compiled.evaluate(x) - compiled.evaluate(other)) > 0

    def _is_open_ended(self) -> bool:
        """Whether an integer column lacks a bound: given a start, HiGHS 1.15.1 then passes over better points."""
        whole = self._compiled.integer
        return not np.isfinite([self._compiled.lb[whole], self._compiled.ub[whole]]).all()

    def _rescale(self, scale: float) -> None:
        if scale != self._scale:
            self._scale = scale
            self._pass_model()

    # -- one run -------------------------------------------------------------------------------------------------------
    def _once(
        self, search: SolveRun, gap: float, start: Mapping[int, float], *, listen: bool = True
    ) -> tuple[str, Vector | None, float | None]:
        """Return HiGHS's status, the best point and the proved bound, in the model's own units."""
        highs = self._highs
        library = self._library
        highs.clearSolver()
        # HiGHS counts its limit from the start of the run for a MIP, but over all runs so far for an LP or a QP
        spent = 0.0 if self._compiled.integer.any() else highs.getRunTime()
        highs.setOptionValue("time_limit", spent + search.seconds_left)
        highs.setOptionValue("mip_rel_gap", gap)
        self._choose_presolve(search)
        if start and not self._is_open_ended():
            at = np.array(list(start), dtype=np.int32)
            highs.setSolution(len(start), at, np.array(list(start.values()), dtype=np.float64) / self._widths[at])
        kinds = library.cb.HighsCallbackType
        improving = kinds.kCallbackMipImprovingSolution
        met = kinds.kCallbackMipSolution
        switch = search.switch
        pool = self._pool
        every = met if listen and search.pool > 1 else improving

        def called(kind: Any, _message: str, out: Any, into: Any, _data: Any) -> None:
            if kind in {improving, met}:
                point = np.array(out.mip_solution, dtype=np.float64)
                if listen:
                    search.improved(point)
                    if kind == met:
                        pool.append(point)
                        _keep_best(pool, search)
            elif switch.poll():
                into.user_interrupt = True

        highs.setCallback(called, None)
        for kind in (every, kinds.kCallbackMipInterrupt, kinds.kCallbackSimplexInterrupt, kinds.kCallbackIpmInterrupt):
            highs.startCallback(kind)
        library.Highs.resetGlobalScheduler(True)  # another session of this thread may have had other threads
        try:
            with switch.listening():
                highs.run()
                status = self._confirmed(highs.getModelStatus(), search.deadline)
        finally:
            highs.setCallback(None, None)  # else the caller's functions would live as long as the session
        info = highs.getInfo()
        has_point = info.primal_solution_status == library.SolutionStatus.kSolutionStatusFeasible
        x = None
        if has_point:
            x = np.array(highs.getSolution().col_value, dtype=np.float64) * self._widths
        bound = None
        if self._compiled.integer.any():
            if math.isfinite(info.mip_dual_bound):
                bound = info.mip_dual_bound / self._scale
        elif status == library.HighsModelStatus.kOptimal and x is not None:
            bound = self._compiled.evaluate(x)
        return status.name, x, bound

    def _choose_presolve(self, search: SolveRun) -> None:
        """Leave presolve out where it would outlast the limit: of few rows over many columns it does not look at it."""
        if "presolve" in self._options:
            return
        rows, columns = self._compiled.A.shape
        is_long = columns >= _MANY_COLUMNS * rows and search.seconds_left < _PRESOLVE_S * self._compiled.A.nnz
        self._highs.setOptionValue("presolve", "off" if is_long else "choose")

    def _confirmed(self, status: Any, deadline: float) -> Any:
        """Run again without presolve where presolve alone says that there is no solution or no better one, or it fails.

        HiGHS 1.15.1 was seen to presolve feasible programs away, LPs of three rows too; given a start, it then calls it
        optimal without any bound. A few seconds are spent on a second opinion; if they end without a point, the first
        one stands. After presolve it also ends in a "solve error" where it settles the program as it is, or "optimal"
        at a point that breaks a row.
        """
        highs = self._highs
        known = self._library.HighsModelStatus
        if self._compiled.Q is not None or "presolve" in self._options:
            return status
        is_whole = self._compiled.integer.any()
        info = highs.getInfo()
        empty = status == known.kInfeasible and info.mip_node_count <= 0
        has_point = info.primal_solution_status == self._library.SolutionStatus.kSolutionStatusFeasible
        unproved = is_whole and status == known.kOptimal and not (has_point and math.isfinite(info.mip_dual_bound))
        failed = is_whole and status == known.kSolveError
        left = deadline - time.perf_counter()
        if not (empty or unproved or failed) or left <= 0:
            return status
        spent = 0.0 if is_whole else highs.getRunTime()
        if empty:
            left = min(left, _SECOND_OPINION_S)
        highs.setOptionValue("presolve", "off")
        highs.setOptionValue("time_limit", spent + left)
        highs.run()
        highs.setOptionValue("presolve", "choose")
        has_point = highs.getInfo().primal_solution_status == self._library.SolutionStatus.kSolutionStatusFeasible
        if empty and not has_point:
            return status
        return highs.getModelStatus()

    def _not_blind(self, result: RunResult, gap: float) -> RunResult:
        """Take "optimal" back where HiGHS may have passed over a better solution."""
        if result.x is None or result.status is not Stop.OPTIMAL:
            return result
        compiled = self._compiled
        slack = HIGHS_IMPROVEMENT / self._scale
        objective = compiled.evaluate(result.x)
        if not is_blind(compiled, objective, gap, self._scale):
            return result
        message = f"HiGHS stopped: it looks for no solution that is better by less than {slack:.3g}."
        bound = result.bound
        if bound is None or not contradicts(bound, objective, compiled, result.x):  # which the guard is to see
            bound = objective - compiled.sense * slack
        return replace(result, status=Stop.FEASIBLE, bound=bound, message=message)

    # -- model into HiGHS ----------------------------------------------------------------------------------------------
    def _pass_model(self, scale: float | None = None) -> None:
        """Hand the whole program over; a scale of 0 leaves out the objective."""
        compiled = self._compiled
        library = self._library
        if scale is None:
            scale = self._scale
        self._widths, self._heights = units_of(compiled)
        lp = library.HighsLp()
        lp.num_row_, lp.num_col_ = compiled.A.shape
        widths = self._widths
        heights = self._heights
        lp.col_cost_ = compiled.c * widths * scale
        lp.offset_ = compiled.c0 * scale
        lp.col_lower_ = _no_nan(compiled.lb) / widths
        lp.col_upper_ = _no_nan(compiled.ub) / widths
        low, high = sides_within(compiled)
        lp.row_lower_ = low / heights
        lp.row_upper_ = high / heights
        lp.sense_ = library.ObjSense.kMinimize if compiled.sense > 0 else library.ObjSense.kMaximize
        lp.a_matrix_.format_ = library.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = compiled.A.indptr
        lp.a_matrix_.index_ = compiled.A.indices
        per_row = np.repeat(heights, np.diff(compiled.A.indptr))
        lp.a_matrix_.value_ = compiled.A.data * widths[compiled.A.indices] / per_row
        kind = library.HighsVarType
        lp.integrality_ = [kind.kInteger if whole else kind.kContinuous for whole in compiled.integer.tolist()]
        status = self._highs.passModel(lp)
        if compiled.Q is not None and scale:
            lower = (diags_array(widths) @ compiled.Q @ diags_array(widths)).tocsc()
            lower.sort_indices()
            triangle = library.HessianFormat.kTriangular
            n = len(compiled.c)
            status = self._highs.passHessian(n, lower.nnz, triangle, lower.indptr, lower.indices, lower.data * scale)
        if status == library.HighsStatus.kError:
            raise not_taken("HiGHS", compiled)
        self._passed = compiled.shape

    def _pass_changes(self) -> None:
        """Take over data and rows that changed since the last solve."""
        compiled = self._compiled
        data = self._compiled.data
        if compiled.shape != self._passed:
            self._pass_model()
        elif data.size:
            widths = self._widths[data]
            self._highs.changeColsBounds(len(data), data, compiled.lb[data] / widths, compiled.ub[data] / widths)

    def _without_objective(self, search: SolveRun) -> RunResult:
        """Tell unbounded from infeasible: HiGHS says "unbounded" also of programs where it knows no point."""
        self._pass_model(scale=0.0)
        try:
            name, x, _ = self._once(search, 0.0, {}, listen=False)
        finally:
            self._pass_model()
        status = search.or_interrupted(status_of(STOP, name, has_point=False))
        if x is not None:
            status = Stop.UNBOUNDED
        return without_a_best(self.who, status, otherwise=f"HiGHS stopped: {status}.")


def _keep_best(pool: list[Vector], search: SolveRun) -> None:
    """Let go of the worse half once there are many more than wanted: a long search meets thousands."""
    if len(pool) > _KEPT * search.pool:
        pool.sort(key=lambda point: search.compiled.sense * search.compiled.evaluate(point))
        del pool[len(pool) // 2 :]


def _no_nan(bounds: Vector) -> Vector:
    """Hand data without a value over as 0 until they have one."""
    return np.where(np.isnan(bounds), 0.0, bounds)


# ---- options by HiGHS's own names, refused before work starts if unknown or out of range -----------------------------
_OPTION_ARGUMENTS = {
    "time_limit": "time_limit_s",
    "mip_rel_gap": "relative_gap",
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
    """Return a new ``highspy.Highs`` that prints nothing, its licence notice neither.

    HiGHS 1.16 prints that notice when its constructor enables the callbacks, which is before an option can be set.
    """
    return _silent_class()()


@cache
def _silent_class() -> Any:
    import highspy

    class SilentHighs(highspy.Highs):
        """HiGHS, told to be silent before it may speak."""

        def enableCallbacks(self) -> None:  # noqa: N802 - its name in highspy
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()  # type: ignore[no-untyped-call]

    return SilentHighs


# ---- the scale of a program before HiGHS, whose tolerances are absolute, sees it -------------------------------------
_GREATEST_SQUARE = 2.0**26  # coefficient of a column's square once the column is scaled
_GREATEST_COST = 2.0**30  # scaled costs stay below, for the simplex method's sake


def first_scale(compiled: CompiledModel) -> float:
    """Return the power of two, at least 1, that brings the greatest cost near 1024 (1 for a quadratic cost)."""
    size = greatest_cost(compiled)
    if size:
        return max(1.0, power_of_two((1.0 if compiled.Q is not None else 1024.0) / size, math.ceil))
    return 1.0


def finer_scale(compiled: CompiledModel, objective: float, gap: float, scale: float) -> float | None:
    """Return a greater scale, at which 1e-6 is below the relative gap at ``objective``; None if ``scale`` will do."""
    if not is_blind(compiled, objective, gap, scale):
        return None
    needed = power_of_two(4 * HIGHS_IMPROVEMENT / (max(gap, LEAST_GAP) * abs(objective)), math.ceil)
    finer = min(needed, power_of_two(_GREATEST_COST / greatest_cost(compiled), math.ceil))
    if finer > scale:
        return finer
    return None


def is_blind(compiled: CompiledModel, objective: float, gap: float, scale: float) -> bool:
    """Whether HiGHS, at this scale, may pass over a solution better than ``objective`` by more than the gap."""
    if not compiled.integer.any():
        return False
    missing = compiled.sense * (objective - best_conceivable(compiled))
    if missing <= ZERO_SHARE * greatest_cost(compiled):
        return False
    return HIGHS_IMPROVEMENT / scale > max(gap, LEAST_GAP) * abs(objective) > 0


def best_conceivable(compiled: CompiledModel) -> float:
    """Return the linear objective with each column at its better bound: no point does better."""
    used = compiled.c != 0
    ends = [compiled.c[used] * bound[used] for bound in (compiled.lb, compiled.ub)]
    best = np.minimum(*ends) if compiled.sense > 0 else np.maximum(*ends)
    return compiled.c0 + float(best.sum())


def sides_within(compiled: CompiledModel) -> tuple[Vector, Vector]:
    """Return the sides of the rows, those that no point comes near to brought to where HiGHS takes them for numbers.

    HiGHS refuses a program with a row that is to be at least 1e20, or at most -1e20. Where the bounds of the columns
    keep the row far below, 1e19 says the same: there is no such point.
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
    """Return the error for a program that HiGHS refuses, naming the number that it refuses."""
    refuse_huge(who, [compiled.A.data])
    then = "Choose units that are nearer to 1."
    sides = (
        ("column", compiled.columns, compiled.lb, compiled.ub),
        ("row", compiled.rows, compiled.row_lb, compiled.row_ub),
    )
    for kind, members, low, high in sides:
        for place in np.flatnonzero((low >= _INFINITE) | (high <= -_INFINITE)).tolist():
            name = getattr(members[place], "name", f"number {place + 1}")
            most = low[place] if low[place] >= _INFINITE else high[place]
            return InvalidValueError(
                who, "bounds and sides of rows that are numbers to it, below 1e20",
                f"{kind} {name!r} is to be {'at least' if most > 0 else 'at most'} {most:.3g}", then,
            )  # fmt: skip
    then = "Choose another solver: solver='scip' or 'clarabel'."
    return InvalidValueError(who, "a program that it takes", "it calls this one an error and does not say why", then)


def units_of(compiled: CompiledModel) -> tuple[Vector, Vector]:
    """Return, per column and per row, the power of two that HiGHS is to count as 1: not 1 in a QP only.

    Each column gets, in some row, at least half of that row's greatest coefficient; then the greatest coefficient of
    each row is brought near 1. HiGHS 1.15.1 scales an LP by itself, but not a QP.
    """
    columns = np.ones(len(compiled.columns))
    rows = np.ones(compiled.A.shape[0])
    if compiled.Q is None or not compiled.A.nnz:
        return columns, rows
    A = compiled.A
    size = np.abs(compiled.A.data)
    row = rows_of_entries(A)
    share = np.zeros(A.shape[1])
    greatest = greatest_by_row(size, row, len(rows))
    np.maximum.at(share, A.indices, size / greatest[row])
    columns = np.exp2(-np.round(np.log2(np.where(share > 0.0, share, 1.0))))
    # A square may not become too large for HiGHS beside the rest of the objective.
    square = np.abs(compiled.Q.diagonal()) * first_scale(compiled)
    most = np.exp2(np.floor(0.5 * np.log2(_GREATEST_SQUARE / np.where(square > 0.0, square, 1.0))))
    columns = np.where(square > 0.0, np.minimum(columns, np.maximum(most, 1.0)), columns)
    return columns, np.exp2(np.round(np.log2(greatest_by_row(size * columns[A.indices], row, len(rows)))))


# ---- HiGHS's stop statuses, each mapped to one of ours ---------------------------------------------------------------
# by the names of highspy.HighsModelStatus
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

"""A linear program inside HiGHS that grows by rows and is solved again from its last basis."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.highs.session import not_taken, set_options, sides_within, silent_highs
from ceopt.solvers.problem import Vector
from ceopt.solvers.session import SolveRun
from ceopt.solvers.tolerances import LINEAR_PROGRAM_TOLERANCES

__all__ = ["GrowingLP", "Vertex"]

_WORDS = {
    "kOptimal": "optimal",
    "kInfeasible": "infeasible",
    "kUnbounded": "unbounded",
    "kTimeLimit": "stopped",
    "kIterationLimit": "stopped",
    "kInterrupt": "stopped",
    "kHighsInterrupt": "stopped",
}


class Vertex(NamedTuple):
    """How one run ended: optimal, infeasible, unbounded, stopped, or HiGHS's own word; the point and its objective."""

    word: str
    x: Vector
    objective: float


@final
class GrowingLP:
    """The linear part of a compiled program, its integers relaxed.

    Parameters
    ----------
    program
        Its linear parts are taken over as they are now.
    threads, random_state, options
        Of HiGHS.
    """

    def __init__(self, program: CompiledModel, *, threads: int, random_state: int, options: Mapping[str, Any]) -> None:
        import highspy

        self._library = highspy
        self._highs = silent_highs()
        self._whole = np.flatnonzero(program.integer).astype(np.int32)
        size = float(np.abs(program.c).max(initial=0.0)) or 1.0
        self._scale = program.sense * 2.0 ** -round(math.log2(size))
        self._c0 = program.c0
        self._rows = program.A.shape[0]
        common = {"threads": threads, "random_seed": random_state, "small_matrix_value": 1e-12}
        for name, value in common.items():
            self._highs.setOptionValue(name, value)
        self._set_tolerance(LINEAR_PROGRAM_TOLERANCES[0])
        set_options(self._highs, options)
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = program.A.shape
        lp.col_cost_ = program.c * self._scale
        lp.col_lower_ = program.lb
        lp.col_upper_ = program.ub
        lp.row_lower_, lp.row_upper_ = sides_within(program)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = program.A.indptr
        lp.a_matrix_.index_ = program.A.indices
        lp.a_matrix_.value_ = program.A.data
        if self._highs.passModel(lp) == highspy.HighsStatus.kError:
            raise not_taken("HiGHS with tangent cuts", program)

    def add(self, matrix: sp.csr_array, least: Vector) -> None:
        """Add rows ``matrix @ x >= least``."""
        above = np.full(len(least), np.inf)
        self._highs.addRows(len(least), least, above, matrix.nnz, matrix.indptr[:-1], matrix.indices, matrix.data)
        self._rows += len(least)

    def keep_tight(self, count: int) -> NDArray[np.bool_]:
        """Drop those of the last ``count`` rows that are not tight at the last vertex; return which are kept."""
        basic = self._library.HighsBasisStatus.kBasic
        status = self._highs.getBasis().row_status[self._rows - count : self._rows]
        tight = np.array([s != basic for s in status], dtype=np.bool_)
        loose = (self._rows - count + np.flatnonzero(~tight)).astype(np.int32)
        if loose.size:
            self._highs.deleteRows(loose.size, loose)
        self._rows -= loose.size
        return tight

    def aim(self, column: int, cost: float) -> None:
        """Change the cost of a column."""
        self._highs.changeColCost(column, cost)

    def hold(self, integers: Vector) -> None:
        """Fix the integer columns at these values."""
        self._highs.changeColsBounds(len(self._whole), self._whole, integers, integers)

    def solve(self, search: SolveRun) -> Vertex:
        """Solve it from the last basis, within the search's limits."""
        highs = self._highs
        name = ""
        for tolerance in LINEAR_PROGRAM_TOLERANCES:
            self._set_tolerance(tolerance)
            name = self._once(search)
            if name == "kUnboundedOrInfeasible":  # presolve does not tell
                highs.setOptionValue("presolve", "off")
                name = self._once(search)
                highs.setOptionValue("presolve", "choose")
            if _WORDS.get(name) in {"optimal", "stopped"}:
                break
            if name not in _WORDS:
                highs.clearSolver()
        x = np.array(highs.getSolution().col_value, dtype=np.float64)
        return Vertex(_WORDS.get(name, name), x, self._c0 + highs.getInfo().objective_function_value / self._scale)

    def _set_tolerance(self, tolerance: float) -> None:
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self._highs.setOptionValue(name, tolerance)

    def _once(self, search: SolveRun) -> str:
        highs = self._highs
        kinds = self._library.cb.HighsCallbackType
        highs.setOptionValue("time_limit", highs.getRunTime() + search.seconds_left)  # it adds up over the runs

        def called(_kind: Any, _message: str, _out: Any, into: Any, _data: Any) -> None:
            if search.switch.poll():
                into.user_interrupt = True

        highs.setCallback(called, None)
        for kind in (kinds.kCallbackSimplexInterrupt, kinds.kCallbackIpmInterrupt):
            highs.startCallback(kind)
        self._library.Highs.resetGlobalScheduler(True)  # another session of this thread may have had other threads
        try:
            highs.run()
        finally:
            highs.setCallback(None, None)
        return str(highs.getModelStatus().name)

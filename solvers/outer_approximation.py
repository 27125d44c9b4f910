"""Convex MIQP, SOCP and MISOCP with HiGHS: a linear relaxation that grows by cuts until it proves the best point.

HiGHS takes linear programs, with integers or without, and convex quadratic ones without. What it needs beside, where no
solver of cones with integers is installed, is a linear relaxation of squares and second-order cones
(``tangent_cuts.py``), grown where its optimum is outside (:class:`GrowingRelaxation`, over linear programs that keep
their basis), and a search for integers whose continuous part is then settled.

The linear relaxation of one solve as it grows by cuts: the best point in hand and the bound that is proved.

HiGHS calls a relaxation unbounded for want of cuts, or because the program is. A direction d of the relaxation's
recession cone that improves the objective either leaves a cone of the program, and there is a tangent that says so, or
is a direction of the program itself, which is then unbounded if it is feasible: x + kd is feasible for every feasible x
and k >= 0 (with integers, for infinitely many k, as d is rational). Not every unbounded program has one: t^2 <= h
bounds t along no direction, and yet t grows for ever: its tangents get steeper without end, and the answer is
"unknown".
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ceopt.solvers.adapter import AbstractSession, RunResult, SolveRun
from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.errors import UnsupportedProblemError
from ceopt.solvers.highs import HighsSession, not_taken, set_options, sides_within, silent_highs
from ceopt.solvers.problem import Outcome, ProblemClass, Stop, Vector
from ceopt.solvers.tangent_cuts import Blocks, Cuts, Master
from ceopt.solvers.tolerances import (
    CONE_TOLERANCE,
    IMPROVING_RAY,
    INCUMBENT_SLACK,
    INTEGER_SEARCH_TOLERANCES,
    LEAST_TANGENT_GAP,
    LINEAR_PROGRAM_TOLERANCES,
    ROUGH_CONES,
    ROW_TOLERANCE,
    TANGENT_ROUNDING,
    USELESS_RAY,
)

# ==== A linear program inside HiGHS that grows by rows and is solved again from its last basis ========================

_PRIMAL = 4  # the primal simplex method, as HiGHS numbers its strategies
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
            if name not in _WORDS:  # the dual simplex method may end "unknown" where the primal one knows
                highs.clearSolver()
                strategy = highs.getOptionValue("simplex_strategy")[1]
                highs.setOptionValue("simplex_strategy", _PRIMAL)
                name = self._once(search)
                highs.setOptionValue("simplex_strategy", strategy)
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
        highs.setOptionValue("output_flag", search.tee)

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


# ==== The linear relaxation of one solve as it grows by cuts: the best point in hand and the bound that is proved =====

_ROUNDS = 300  # of cuts; about 15 are common
_REFITS = 8  # of the units; 1 to 3 are common


@final
class GrowingRelaxation:
    """One solve of one program by linear programs that grow.

    Parameters
    ----------
    compiled
        The program.
    search
        What is asked; it is told of each better point.
    settings
        Keyword arguments of every HiGHS: threads, random_state, options.

    Attributes
    ----------
    best, value, bound
        The best point, its objective, and what is proved; None and infinite at first.
    cuts
        Those that were tight where a relaxation ended, and those that proved one infeasible. All hold for the program.
    """

    def __init__(self, compiled: CompiledModel, search: SolveRun, settings: Mapping[str, Any]) -> None:
        self.compiled = compiled
        self.search = search
        self._settings = settings
        self._blocks = Blocks.of(compiled)
        self.best: Vector | None = None
        self.value = compiled.sense * math.inf
        self.bound = -compiled.sense * math.inf
        self.pool: dict[bytes, Vector] = {}
        self._settled: set[bytes] = set()
        self._fine = max(LEAST_TANGENT_GAP, min(0.1 * search.relative_gap, 1e-7))
        self._build(None)

    def _build(self, near: Vector | None) -> None:
        """Begin with the first cuts, in units that are measured at a point."""
        self.master = Master(self.compiled, self._blocks, near)
        self._lp = self.new_lp(self.master.program)
        self.cuts = [self.master.first_cuts()]
        if near is not None:
            self.cuts.append(self.master.cuts_at(np.concatenate([near, np.zeros(len(self._blocks.block))])))
        self._lp.add(*self.master.rows(Cuts.joined(self.cuts)))

    def new_lp(self, program: CompiledModel) -> GrowingLP:
        """Return a linear program inside HiGHS."""
        return GrowingLP(program, **self._settings)

    # -- what is known -------------------------------------------------------------------------------------------------
    def offer(self, x: Vector, tolerance: float = 0.1 * CONE_TOLERANCE) -> float | None:
        """Keep a point if it is feasible and the best so far; return its objective, None if it is not feasible."""
        compiled = self.compiled
        whole = self.compiled.integer
        x = np.clip(np.where(whole, np.round(x), x), compiled.lb, compiled.ub)
        off = self._off_rows(x)
        point = self._blocks.lifted(x, compiled)
        if self._off_rows(point) > off + 0.1 * CONE_TOLERANCE:
            point = x  # other rows hold a head down
        if off > ROW_TOLERANCE or self.master.violation(point) > tolerance:
            return None
        value = compiled.evaluate(point)
        if self.search.pool > 1:
            self.pool[point[whole].tobytes()] = point
        if compiled.sense * (value - self.value) < 0:
            self.best = point
            self.value = value
            self.search.improved(point)
        return value

    def _off_rows(self, x: Vector) -> float:
        """Return the greatest violation of a linear row."""
        activity = self.compiled.A @ x
        compiled = self.compiled
        return float(np.maximum(compiled.row_lb - activity, activity - compiled.row_ub).max(initial=0.0))

    def prove(self, bound: float | None) -> None:
        """Take over a bound on the relaxation's objective."""
        if bound is not None and self.compiled.sense * (bound - self.bound) > 0:
            self.bound = bound

    def is_closed(self, slack: float = 0.0) -> bool:
        """Whether point and bound meet, within the relative gap or an absolute slack."""
        if self.best is None:
            return False
        allowed = max(self.search.relative_gap, LEAST_TANGENT_GAP) * abs(self.value)
        return self.compiled.sense * (self.value - self.bound) <= max(allowed, slack, self.search.absolute_gap)

    def is_stopped(self) -> bool:
        """Whether the search is to end; the callback is asked too."""
        self.search.report(self.bound)
        return self.search.switch.poll() or time.perf_counter() >= self.search.deadline

    # -- linear programs -----------------------------------------------------------------------------------------------
    def relax(self) -> str:
        """Grow the relaxation with free integers, in units that fit where it ends; return :meth:`_grow`'s word."""
        integers = bool(self.compiled.integer.any())
        fine = ROUGH_CONES if integers else self._fine
        word = "stalled"
        for trial in range(_REFITS):
            word, vertex = self._grow(fine, whole=not integers, refit=trial < _REFITS - 1)
            if word == "unbounded":
                found = improving_direction(self.master, self.cuts, self.search, self.new_lp)
                if found.word != "bounded":
                    if self.is_stopped():
                        return "stopped"
                    return found.word
                self.cuts += found.cuts
                for cuts in found.cuts:
                    self._lp.add(*self.master.rows(cuts))
            elif word == "refit":
                self._build(vertex.x[: len(self.compiled.c)])
            else:
                break
        return word

    def settle(self, integers: Vector) -> bool:
        """Find the best point with these integers, or the cuts that exclude them; False if that was done before."""
        whole = self.compiled.integer
        lower = np.ceil(self.compiled.lb[whole] - 1e-6)
        upper = np.floor(self.compiled.ub[whole] + 1e-6)
        integers = np.clip(np.round(integers), lower, upper) + 0.0  # no -0, which would be other bytes
        if integers.tobytes() in self._settled:
            return False
        self._lp.hold(integers)
        word, _ = self._grow(self._fine, whole=True)
        if word != "stopped":
            self._settled.add(integers.tobytes())
        return True

    def _grow(self, fine: float, *, whole: bool, refit: bool = False) -> tuple[str, Vertex]:
        """Add cuts until the vertex of the relaxation is in the cones.

        Parameters
        ----------
        fine
            How near its objective is to be to that of a feasible point, relative.
        whole
            Whether its integers, if any, are held: a point in the cones is then one of the program.
        refit
            Whether to end where the units no longer fit.

        Returns
        -------
        str, Vertex
            Done, stalled (HiGHS's tolerance allows no finer cuts), worse (than the point in hand), refit, infeasible,
            unbounded, stopped or HiGHS's own word; and the last vertex.
        """
        n = len(self.compiled.c)
        held = whole and bool(self.compiled.integer.any())
        added: list[Cuts] = []
        for k in range(_ROUNDS):
            vertex = self._lp.solve(self.search)
            word = vertex.word
            if word != "optimal":
                break
            if not held:
                self.prove(vertex.objective)
            bound = vertex.objective
            if refit and k and not self.master.fits(vertex.x[:n]):
                word = "refit"
            elif self._is_near(vertex.x[:n], bound, fine, whole=whole):
                word = "done"
            elif held and self.compiled.sense * (bound - self.value) > 0:
                word = "worse"
            elif self.is_stopped():
                word = "stopped"
            cuts = self.master.cuts_at(vertex.x)
            if word != "optimal" or not cuts.entry.size:
                break
            added.append(cuts)
            self._lp.add(*self.master.rows(cuts))
        if word == "optimal" and whole:
            self.offer(vertex.x[:n], CONE_TOLERANCE)
        if added:
            self._keep(Cuts.joined(added), at_optimum=vertex.word == "optimal")
        if word == "optimal":
            word = "stalled"
        return word, vertex

    def _keep(self, grown: Cuts, *, at_optimum: bool) -> None:
        """Keep the cuts of one growth: those that are tight at its optimum, or all that made it infeasible."""
        if at_optimum:
            grown = grown.only(self._lp.keep_tight(len(grown.entry)))
        self.cuts.append(grown)

    def _is_near(self, x: Vector, bound: float, fine: float, *, whole: bool) -> bool:
        """Whether a vertex is as good as feasible; if its integers are whole, it is offered."""
        if whole:
            value = self.offer(x)
            if value is None:
                return False
        else:
            raised = self._blocks.lifted(np.clip(x, self.compiled.lb, self.compiled.ub), self.compiled)
            value = self.compiled.evaluate(raised)
            if self.master.violation(raised) > fine:
                return False
        return self.compiled.sense * (value - bound) <= fine * abs(value)


# ---- directions in which a relaxation is unbounded -------------------------------------------------------------------
_ROUNDS = 200


class Direction(NamedTuple):
    """What was found: ``bounded`` (given these cuts), ``unbounded`` (if feasible), or ``unknown``."""

    word: str
    cuts: list[Cuts]


def improving_direction(
    master: Master, cuts: list[Cuts], search: SolveRun, lp: Callable[[CompiledModel], GrowingLP]
) -> Direction:
    """Look for a direction, of entries at most 1, along which the program improves for ever.

    Parameters
    ----------
    master, cuts
        The relaxation.
    search
        For its limits.
    lp
        Makes a growing LP of a program.
    """
    program = master.program.extended()
    program.lb, program.ub = (
        np.where(np.isfinite(side), 0.0, far) for side, far in ((program.lb, -1.0), (program.ub, 1.0))
    )
    program.row_lb = np.where(np.isfinite(program.row_lb), 0.0, -np.inf)
    program.row_ub = np.where(np.isfinite(program.row_ub), 0.0, np.inf)
    program.c0 = 0.0
    growing = lp(program)
    found: list[Cuts] = []
    for known in cuts:
        growing.add(master.rows(known)[0], np.zeros(len(known.entry)))
    greatest = float(np.abs(program.c).max(initial=0.0))
    for _ in range(_ROUNDS):
        vertex = growing.solve(search)
        if vertex.word != "optimal":
            break
        gain = -program.sense * vertex.objective
        if gain <= USELESS_RAY * greatest:
            return Direction("bounded", found)
        more = master.cuts_along(vertex.x)
        if not len(more.entry):
            return Direction("unbounded" if gain > IMPROVING_RAY * greatest else "unknown", found)
        growing.add(master.rows(more)[0], np.zeros(len(more.entry)))
        found.append(more)
    return Direction("unknown", found)


# ==== Convex MIQP, SOCP and MISOCP with HiGHS: a linear relaxation that grows by cuts until it proves the best point ==

_SOLVES = frozenset(
    {ProblemClass.LP, ProblemClass.MILP, ProblemClass.QP, ProblemClass.MIQP, ProblemClass.SOCP, ProblemClass.MISOCP}
)
_FIRST_GAP = 1e-2  # of the first search for integers; later ones end at a tenth of the gap that is open
_PATIENCE_S = 2.0  # how long a search may go on before its best integers are tried, while no point is in hand

_EMPTY = frozenset({Stop.INFEASIBLE, Stop.UNBOUNDED, Stop.ERROR})


@final
class TangentSession(AbstractSession):
    """One convex program with integers, quadratics and second-order cones, solved by HiGHS through linear programs.

    1. The relaxation without cones and integers is solved; the cuts of :mod:`~ceopt.solvers.tangent_cuts`
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
        tee=search.tee,
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
            search.report(growth.bound)
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
            tee=search.tee,
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

r"""The linear relaxation of one solve as it grows by cuts: the best point in hand and the bound that is proved.

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

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.outer_approximation.blocks import Blocks
from ceopt.solvers.outer_approximation.cuts import Cuts, Master
from ceopt.solvers.outer_approximation.linear_program import GrowingLP, Vertex
from ceopt.solvers.problem import Vector
from ceopt.solvers.session import SolveRun
from ceopt.solvers.tolerances import (
    CONE_TOLERANCE,
    IMPROVING_RAY,
    LEAST_TANGENT_GAP,
    ROUGH_CONES,
    ROW_TOLERANCE,
    USELESS_RAY,
)

__all__ = ["Direction", "GrowingRelaxation", "improving_direction"]

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
        return self.compiled.sense * (self.value - self.bound) <= max(allowed, slack)

    def is_stopped(self) -> bool:
        """Whether the search is to end."""
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

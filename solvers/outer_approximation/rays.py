r"""Rays of a relaxation that HiGHS calls unbounded: for want of cuts, or because the program is.

A direction d of the relaxation's recession cone that improves the objective either leaves a cone of the program, and
there is a tangent that says so, or is a direction of the program itself, which is then unbounded if it is feasible:
x + kd is feasible for every feasible x and k >= 0 (with integers, for infinitely many k, as d is rational). Not every
unbounded program has one: t^2 <= h bounds t along no direction, and yet t grows for ever. Its tangents get steeper
without end, and the answer is "unknown".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.outer_approximation.cuts import Cuts, Master
from ceopt.solvers.outer_approximation.linear_program import GrowingLP
from ceopt.solvers.session import SolveRun
from ceopt.solvers.tolerances import IMPROVING_RAY, USELESS_RAY

__all__ = ["Direction", "improving_direction"]

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

"""Answers that were met on the way to the best one: by the solver, and by the search for its start.

Nothing is claimed of their order. A solver that begins at a good start meets few points (one to four on forests of 50
to 100 trees), while the search for the start ends with one for each set of changed columns that it came across.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ceopt.query.solve_program import Point, Start

__all__ = ["are_same", "cheapest_first", "room"]

Coordinates: TypeAlias = dict[str, float]
#: Values this close, relatively, are told apart by a solver's tolerance only.
_SAME = 1e-6


def room(starts: Sequence[Start], n: int) -> float | None:
    """Return a cost within which ``n`` points are known, or as many as there are; None if there are none.

    The cost of the cheapest start would leave the solver next to nothing to meet; none at all, ten times the work.
    """
    return starts[min(n, len(starts)) - 1][0] if starts else None


def cheapest_first(
    met: Sequence[Coordinates], starts: Sequence[Start], cost: Callable[[Point], float]
) -> list[Coordinates]:
    """Return what was met, the cheapest first."""
    return sorted([*met, *(point for _, point in starts)], key=cost)


def are_same(a: Point, b: Point) -> bool:
    """Whether two points differ by no more than a solver's tolerance."""
    return all(math.isclose(value, b[name], rel_tol=_SAME, abs_tol=_SAME * _SAME) for name, value in a.items())

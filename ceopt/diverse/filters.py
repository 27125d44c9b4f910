"""Filters of the nearest candidates: close enough to the row, and diverse among themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from ceopt.diverse.distance import Floats, RowDistance, cosines
from ceopt.tolerances import LIMIT_ROUNDING

__all__ = ["Diversity", "greedy", "within"]


def within(alpha: float, nearest: float) -> float:
    """Return the greatest distance that is within (1 + alpha) times the nearest one, rounding included."""
    return (1.0 + alpha) * nearest * (1.0 + LIMIT_ROUNDING)


@final
@dataclass(frozen=True, slots=True)
class Diversity:
    r"""What two explanations must have apart.

    ======== ==================================================== =======================================
    kind     rule                                                 meaning
    ======== ==================================================== =======================================
    angle    :math:`1 - \cos(c - x, c' - x) \ge \beta`            another direction from the row x
    distance :math:`d(c', c) \ge (1 + \beta)\, m`                 m is the distance of the nearest one
    ======== ==================================================== =======================================

    Parameters
    ----------
    kind, beta
        The rule and its limit.
    absolute
        Take the cosine without its sign, as the published code does: opposite directions then count as one.
    """

    kind: Literal["angle", "distance"]
    beta: float
    absolute: bool = False

    def kept(self, distance: RowDistance, home: Floats, points: Floats, nearest: float, most: int | None) -> list[int]:
        """Return the places of the points (k, d) that the greedy filter keeps, at most ``most`` of them.

        Each is held against those that are kept already, never against the row itself.
        """
        if self.kind == "distance":
            least = (1.0 + self.beta) * nearest * (1.0 - LIMIT_ROUNDING)
            return greedy(len(points), lambda i, rest: distance.between(points[i], points[rest]) >= least, most)
        moves = distance.directions(home, points)

        def differs(i: int, rest: NDArray[np.intp]) -> NDArray[np.bool_]:
            cosine = cosines(moves[i], moves[rest])
            return np.asarray(1.0 - (np.abs(cosine) if self.absolute else cosine) >= self.beta - LIMIT_ROUNDING)

        return greedy(len(points), differs, most)


def greedy(
    count: int, differs: Callable[[int, NDArray[np.intp]], NDArray[np.bool_]], most: int | None = None
) -> list[int]:
    """Keep the first of 0, ..., count - 1, then each that differs from all that were kept before it.

    Parameters
    ----------
    count
        How many there are, best first.
    differs
        Which of some later places differ from a place that is kept.
    most
        Stop after so many.
    """
    left = np.arange(count)
    kept: list[int] = []
    while len(left) and (most is None or len(kept) < most):
        one = int(left[0])
        left = left[1:]
        kept.append(one)
        left = left[differs(one, left)]
    return kept

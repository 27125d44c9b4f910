"""The way from a candidate back towards the row: whole columns first, then numbers along the segment by bisection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
from numpy.typing import NDArray

from ceopt.diverse.projection import RowDistance
from ceopt.formulations.space.reachable import decimal_grids
from ceopt.solvers.checks import Floats

if TYPE_CHECKING:
    from ceopt.diverse.candidates import Keeper

#: Columns that one call tries to put back at most: so many points a point most models predict in hardly more time.
_COLUMNS_AHEAD: Final = 16


def nearer(
    keeper: Keeper,
    distance: RowDistance,
    points: Floats,
    *,
    columns: bool = False,
    tolerance: float | None = None,
    halvings: int | None = None,
) -> Floats:
    """Return answers (k, d) on the way from the origin to each of some answers ``points`` (k, d), near where it ends.

    A category or a truth value has nothing in between. Each is decided *before* the segment, while the numbers are
    those of the candidate and the decision is at its surest: the longest move first, each goes back to the row's level
    if the point stays an answer. What cannot go back keeps the candidate's level on the whole segment, which runs from
    the origin with those levels; if that point is an answer itself, it is taken. Along the segment continuous columns
    move in proportion, whole numbers, steps and ranks to the nearest one.

    Parameters
    ----------
    keeper
        Says which points are answers, and where the origin is: the row, or another point of its categories that is no
        answer.
    distance
        In what the segments are long.
    points
        Answers.
    columns
        Whether numbers too go back to the origin's, whole columns at a time, before the segment.
    tolerance, halvings
        As for :func:`~ceopt.diverse.line_search.shortened`.
    """
    projection = keeper.projection
    origin = keeper.origin
    switch = projection.switch
    points = _put_back(keeper, distance, points, switch | columns)
    starts = projection.mended(np.where(switch, points, origin))
    there = np.zeros(len(points), dtype=bool)
    other = np.flatnonzero((starts != origin).any(axis=1))  # the origin itself is no answer
    there[other] = keeper.accepts(starts[other])
    left = np.flatnonzero(~there)
    segments = Segments(starts[left], points[left], projection.home, projection.step * ~switch, projection.mended)
    lengths = distance.between(starts[left], points[left])
    found = np.where(there[:, None], starts, points)
    found[left] = shortened(segments, lengths, keeper.accepts, tolerance=tolerance, halvings=halvings)[0]
    return found


def _put_back(keeper: Keeper, distance: RowDistance, points: Floats, columns: Bools) -> Floats:
    """Return points (k, d) with each of some columns (d,) that can go back to the origin's value there.

    The longest move goes back first; each only if the point stays an answer and comes no farther. One call tries the
    next few columns together: as many go back as can until the first that cannot, which stays.
    """
    origin = keeper.origin
    points = points.copy()
    moved = (points != origin) & columns
    order = np.argsort(np.where(moved, -distance.lengths(origin, points), np.inf), axis=1, kind="stable")
    turn = np.argsort(order, axis=1)  # of each column
    place = np.zeros(len(points), dtype=np.intp)
    count = moved.sum(axis=1)
    while len(which := np.flatnonzero(place < count)):
        ahead = np.minimum(count[which] - place[which], _COLUMNS_AHEAD)
        owner = np.repeat(which, ahead)
        last = place[owner] + np.concatenate(list(map(np.arange, ahead)))
        goes = (turn[owner] >= place[owner, None]) & (turn[owner] <= last[:, None])
        trials = keeper.projection.mended(np.where(goes, origin, points[owner]))
        good = distance.between(origin, trials) <= distance.between(origin, points)[owner]
        good[good] = keeper.accepts(trials[good])
        ends = np.cumsum(ahead)
        for k, first, end in zip(which, ends - ahead, ends, strict=True):
            back = int(np.argmin(np.append(good[first:end], False)))  # how many go back
            if back:
                points[k] = trials[first + back - 1]
            place[k] += min(back + 1, end - first)
    return points


Bools = NDArray[np.bool_]

#: Halvings that one call decides: 15 points of a segment, which most models predict in hardly more time than one.
_HALVINGS_AHEAD: Final = 4


@final
@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    r"""The points :math:`x(t) = a + t\,(c - a)`, on the grid of each column that has one; :math:`x(1) = c` exactly.

    ====== ====== =============================================================================
    symbol shape  meaning
    ====== ====== =============================================================================
    a, c   (k, d) where each segment starts, and its candidate; equal in the columns that switch
    step   (d,)   width of a column's grid, counted from ``anchor``; 0 where it has none
    ====== ====== =============================================================================

    Parameters
    ----------
    starts, ends
        a and c.
    anchor, step
        The grid, (d,) each.
    mend
        What rules make of points (k, d) afterwards, such as columns that follow from others.
    """

    starts: Floats
    ends: Floats
    anchor: Floats
    step: Floats
    mend: Callable[[Floats], Floats]

    def at(self, t: Floats, which: NDArray[np.intp]) -> Floats:
        """Return the points at ``t`` (k,) of the segments ``which`` (k,)."""
        a = self.starts[which]
        c = self.ends[which]
        stays = np.isinf(a)  # a cell that is missing
        points = np.where(stays, a, 0.0) + np.where(stays, 0.0, a)
        points += t[:, None] * (np.where(stays, 0.0, c) - np.where(stays, 0.0, a))
        grid = self.step > 0.0
        if grid.any():
            points[:, grid] = decimal_grids(self.anchor[grid], self.step[grid]).nearest(points[:, grid])
        points = np.clip(points, np.minimum(a, c), np.maximum(a, c))  # a rounding may not leave the segment
        points = self.mend(points)
        return np.where((t == 1.0)[:, None], c, points)


def shortened(
    segments: Segments,
    lengths: Floats,
    accepts: Callable[[Floats], Bools],
    *,
    tolerance: float | None = None,
    halvings: int | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Bisect each segment: the far end stays accepted, the near end is not, until what lies between is short.

    All segments are asked about together, and several halvings in one call of ``accepts``: every point that one of them
    may come to is asked about before it is known which, so that the result is that of one halving a call.

    Parameters
    ----------
    segments
        From where to where; every far end is accepted, no near one.
    lengths
        Of the segments, (k,).
    accepts
        Which points (k, d) are answers.
    tolerance
        Halve for as long as the bracket is longer (Algorithm 1 of the paper).
    halvings
        Instead a fixed number of halvings for all (the published code).

    Returns
    -------
    tuple
        Points (k, d) at the accepted ends, and where on their segments the near and the far ends are, (k,) each.
    """
    low = np.zeros(len(lengths))
    high = np.ones(len(lengths))

    def wanted() -> Bools:
        middle = 0.5 * (low + high)
        # Floats end too: between two neighbours there is no third.
        parts = (low < middle) & (middle < high)
        if halvings is not None:
            return parts & (done < halvings)
        assert tolerance is not None  # noqa: S101 - one of the two is given
        return np.asarray(parts & (lengths * (high - low) > tolerance))

    done = 0
    while len(which := np.flatnonzero(wanted())):
        middles = _middles(low[which], high[which])
        asked = np.concatenate([np.repeat(which, middle.shape[1]) for middle in middles])
        good = accepts(segments.at(np.concatenate(middles, axis=None), asked))
        place = np.zeros(len(low), dtype=np.intp)
        for middle in middles:
            still = np.flatnonzero(wanted())
            at = np.searchsorted(which, still), place[still]
            said = middle[at]
            nearer = good[: middle.size].reshape(middle.shape)[at]
            good = good[middle.size :]
            high[still[nearer]], low[still[~nearer]] = said[nearer], said[~nearer]
            place[still] = 2 * place[still] + ~nearer
            done += 1
    return segments.at(high, np.arange(len(high))), low, high


def _middles(low: Floats, high: Floats) -> list[Floats]:
    """Return the middles (k, 1), (k, 2), (k, 4), ... of the brackets (k,), of their halves, and so on."""
    lows = low[:, None]
    highs = high[:, None]
    found = []
    for _ in range(_HALVINGS_AHEAD):
        middle = 0.5 * (lows + highs)
        found.append(middle)
        lows = np.stack([lows, middle], axis=2).reshape(len(low), -1)
        highs = np.stack([middle, highs], axis=2).reshape(len(low), -1)
    return found

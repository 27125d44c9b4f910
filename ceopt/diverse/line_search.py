"""Step 4 for rows of mixed columns: whole columns go back one by one, then numbers along the segment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ceopt.diverse.distance import Floats, RowDistance
from ceopt.diverse.segment_search import Bools, Segments, shortened

if TYPE_CHECKING:
    from ceopt.diverse.candidates import Keeper

__all__ = ["nearer"]

#: Columns that one call tries to put back at most: so many points a point most models predict in hardly more time.
_AHEAD: Final = 16


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
        As for :func:`~ceopt.diverse.segment_search.shortened`.
    """
    projection, origin = keeper.projection, keeper.origin
    switch = projection.switch
    points = _put_back(keeper, distance, points, np.ones_like(switch) if columns else switch)
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
    origin, points = keeper.origin, points.copy()
    moved = (points != origin) & columns
    order = np.argsort(np.where(moved, -distance.lengths(origin, points), np.inf), axis=1, kind="stable")
    turn = np.argsort(order, axis=1)  # of each column
    place, count = np.zeros(len(points), dtype=np.intp), moved.sum(axis=1)
    while len(which := np.flatnonzero(place < count)):
        ahead = np.minimum(count[which] - place[which], _AHEAD)
        owner = np.repeat(which, ahead)
        last = place[owner] + np.concatenate([np.arange(n) for n in ahead])
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

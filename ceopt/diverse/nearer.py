"""Step 4 for rows of mixed columns: categories go back one by one, then numbers along the segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ceopt.diverse.bisection import Segments, shortened
from ceopt.diverse.distance import Floats, RowDistance

if TYPE_CHECKING:
    from ceopt.diverse.candidates import Keeper

__all__ = ["nearer"]

_SWITCHES = ("categorical", "binary")


def nearer(
    keeper: Keeper,
    distance: RowDistance,
    points: Floats,
    *,
    tolerance: float | None = None,
    halvings: int | None = None,
) -> Floats:
    """Return answers (k, d) on the way from the row to each of some answers ``points`` (k, d), near where it ends.

    A category or a truth value has nothing in between. Each is decided *before* the segment, while the numbers are
    those of the candidate and the decision is at its surest: the dearest first, each goes back to the row's level if
    the point stays an answer. What cannot go back keeps the candidate's level on the whole segment, which runs from the
    row with those levels; if that point is an answer itself, it is taken. Along the segment continuous columns move in
    proportion, whole numbers, steps and ranks to the nearest one.

    Parameters
    ----------
    keeper
        Says which points are answers.
    distance
        In what the segments are long.
    points
        Answers.
    tolerance, halvings
        As for :func:`~ceopt.diverse.bisection.shortened`.
    """
    projection = keeper.projection
    home = projection.home
    switch = np.array([feature.kind in _SWITCHES for feature in projection.space])
    points = _switched_back(keeper, distance, points, np.flatnonzero(switch))
    starts = projection.mended(np.where(switch, points, home))
    there = np.zeros(len(points), dtype=bool)
    other = np.flatnonzero((starts != home).any(axis=1))  # the row itself is no answer
    there[other] = keeper.accepts(starts[other])
    left = np.flatnonzero(~there)
    segments = Segments(starts[left], points[left], home, projection.step * ~switch, projection.mended)
    lengths = distance.between(starts[left], points[left])
    found = np.where(there[:, None], starts, points)
    found[left] = shortened(segments, lengths, keeper.accepts, tolerance=tolerance, halvings=halvings)[0]
    return found


def _switched_back(keeper: Keeper, distance: RowDistance, points: Floats, columns: np.ndarray) -> Floats:
    """Return the points with each level that can go back to the row's there, the dearest column first."""
    home = keeper.projection.home
    dearest = np.argsort(-np.maximum(distance.down, distance.up)[columns], kind="stable")
    points = points.copy()
    for j in columns[dearest]:
        which = np.flatnonzero(points[:, j] != home[j])
        trials = points[which]
        trials[:, j] = home[j]
        trials = keeper.projection.mended(trials)
        better = distance.between(home, trials) <= distance.between(home, points[which])
        better[better] = keeper.accepts(trials[better])
        points[which[better]] = trials[better]
    return points

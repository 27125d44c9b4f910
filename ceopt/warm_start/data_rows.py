"""Rows of the data as they are, as starts: under rules about rows (a hull, allowed rows) others rarely pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ceopt.formulations.space.reachable import Reach

__all__ = ["from_rows"]

Points = NDArray[np.float64]

#: Rows that are held against the rules, and of those that keep them, how many are brought nearer to the factual.
_TRIED, _NEARER = 60, 2


def from_rows(
    names: tuple[str, ...],
    factual: Mapping[str, float],
    reach: Reach,
    rows: Points,
    *,
    mend: Callable[[Points], Points],
    slack: Callable[[Points], Points],
    price: Callable[[Points], Points],
    keeps: Callable[[Points], bool],
) -> list[Points]:
    """Return rows (n, d) that reach the target and keep every rule once what cannot move is put back, then cheapened.

    A column that may not take a row's value keeps the factual's. Of the cheapest rows that pass, columns go back to
    the factual one by one, the dearest first, as long as the point passes.
    """
    home = np.array([factual[name] for name in names])
    points = rows.copy()
    for j, name in enumerate(names):
        values, place = np.unique(points[:, j], return_inverse=True)
        held = np.array([reach[name].holds(value) for value in values.tolist()])
        points[:, j] = np.where(held[place], points[:, j], home[j])
    points = np.unique(mend(points), axis=0)
    points = points[slack(points) >= 0]
    points = points[np.argsort(price(points), kind="stable")][:_TRIED] if len(points) else points
    found: list[Points] = []
    for point in points:
        if len(found) < _NEARER and keeps(point):
            found.append(_nearer(point, home, mend=mend, slack=slack, price=price, keeps=keeps))
    return found


def _nearer(
    point: Points,
    home: Points,
    *,
    mend: Callable[[Points], Points],
    slack: Callable[[Points], Points],
    price: Callable[[Points], Points],
    keeps: Callable[[Points], bool],
) -> Points:
    changed = np.flatnonzero(point != home)
    alone = np.tile(home, (len(changed), 1))
    alone[np.arange(len(changed)), changed] = point[changed]
    for j in changed[np.argsort(-price(alone), kind="stable")] if len(changed) else changed:
        trial = point.copy()
        trial[j] = home[j]
        trial = mend(trial[None, :])
        if price(trial)[0] < price(point[None, :])[0] and slack(trial)[0] >= 0 and keeps(trial[0]):
            point = trial[0]
    return point

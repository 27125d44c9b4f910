"""The nearest point of a box with one-hot columns that meets a least score: exact, for many points at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ceopt.formulations.programs.parts import Floats
from ceopt.tolerances import PROJECTION_ROUNDING

__all__ = ["project"]

_STEPS = 100


def project(
    points: Floats,
    lower: Floats,
    upper: Floats,
    *,
    groups: tuple[tuple[int, ...], ...] = (),
    normal: Floats | None = None,
    least: Floats | float = 0.0,
) -> Floats:
    r"""Return the nearest points of a box, with groups that add up to 1, and with ``normal @ x >= least``.

    A point that misses the score moves by :math:`\nu \hat\mu` before it is put into the box and the simplices, for the
    least :math:`\nu \ge 0` that meets it (the multiplier of the half-space). The score is piecewise linear and does not
    fall in :math:`\nu`, so that Newton's steps within a bracket end on it. To clip after a projection onto the
    half-space, as is often done, may leave it again.

    Parameters
    ----------
    points
        Shape (R, d).
    lower, upper
        Of shape (d,) or (R, d); columns of groups are in [0, 1].
    groups
        Columns that are at least 0 and add up to 1.
    normal
        Shape (d,) or (R, d); None for no half-space. Some point of the box must meet the score.
    least
        The score, one number or shape (R,).
    """
    box = _Box(np.broadcast_to(lower, points.shape), np.broadcast_to(upper, points.shape), groups)
    moved = box.onto(points)
    if normal is None:
        return moved
    normal = np.broadcast_to(normal, points.shape)
    least = np.broadcast_to(np.asarray(least, dtype=np.float64), len(points))
    rows = np.flatnonzero((moved * normal).sum(axis=1) < least)
    if rows.size:
        some = _Box(box.lower[rows], box.upper[rows], groups)
        moved[rows] = _raised(points[rows], some, normal[rows], least[rows])
    return moved


class _Box(NamedTuple):
    """A box for each point, with groups that add up to 1."""

    lower: Floats
    upper: Floats
    groups: tuple[tuple[int, ...], ...]

    def onto(self, points: Floats) -> Floats:
        """Return the nearest points."""
        found = np.clip(points, self.lower, self.upper)
        for group in self.groups:
            columns = list(group)
            found[:, columns] = _simplex(points[:, columns])
        return found

    def rise(self, found: Floats, points: Floats, normal: Floats) -> Floats:
        """Return how fast the scores of the nearest points ``found`` rise as ``points`` move along ``normal``."""
        interior = (points > self.lower) & (points < self.upper)
        for group in self.groups:
            interior[:, list(group)] = False
        total = (normal**2 * interior).sum(axis=1)
        for group in self.groups:
            columns = list(group)
            active = found[:, columns] > 0.0
            inside = normal[:, columns] * active
            total = total + (inside**2).sum(axis=1) - inside.sum(axis=1) ** 2 / np.maximum(active.sum(axis=1), 1)
        return np.asarray(total)


def _raised(points: Floats, box: _Box, normal: Floats, least: Floats) -> Floats:
    """Return the projections of points that miss their score; beyond it by rounding, so that they do not miss it."""
    free = (box.upper > box.lower).astype(np.float64)
    unit = 1.0 / np.maximum((normal**2 * free).sum(axis=1), 1e-300)
    low = np.zeros(len(points))
    high = np.full(len(points), np.inf)
    nu = np.zeros(len(points))
    found = points
    for step in range(_STEPS):
        moved = points + nu[:, None] * normal
        found = box.onto(moved)
        parts = found * normal
        rounding = PROJECTION_ROUNDING * (np.abs(least) + np.abs(parts).sum(axis=1))
        missing = least + rounding - parts.sum(axis=1)
        is_met = np.abs(missing) <= rounding / 2.0
        if is_met.all() or (step > _STEPS // 2 and (missing <= 2.0 * rounding).all()):
            break
        low = np.where(missing > 0, nu, low)
        high = np.where(missing > 0, high, nu)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = nu + missing / box.rise(found, moved, normal)
            between = np.where(np.isfinite(high), (low + high) / 2.0, 2.0 * low + unit * np.abs(missing))
        nu = np.where(is_met, nu, np.where((newton > low) & (newton < high), newton, between))
    return found


def _simplex(points: Floats) -> Floats:
    """Return the nearest points with entries that are at least 0 and add up to 1."""
    points = points - points.max(axis=1, keepdims=True)  # so that large ones lose no digits
    ordered = -np.sort(-points, axis=1)
    over = (ordered.cumsum(axis=1) - 1.0) / np.arange(1, points.shape[1] + 1)
    count = (ordered > over).sum(axis=1)
    shift = over[np.arange(len(points)), count - 1]
    return np.asarray(np.clip(points - shift[:, None], 0.0, 1.0))

"""Distances between rows of mixed columns, and the direction from one row to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.costs.base import SCALE, slopes_of
from ceopt.solvers.checks import Floats

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

Norm = Literal["l1", "l2"]

#: A category is a corner of a simplex: corners are 1 apart if each 0/1 coordinate is multiplied by this.
_CORNER: Final = {"l1": 0.5, "l2": np.sqrt(0.5)}


@final
@dataclass(frozen=True, slots=True, eq=False)
class RowDistance:
    r"""The distance that :class:`~ceopt.formulations.costs.L1` or ``L2`` charges, for many rows at once.

    .. math:: d(x, x') = \sum_j t_j \ \text{(l1)} \quad\text{or}\quad \sqrt{\sum_j t_j^2} \ \text{(l2)}, \qquad
        t_j = \omega_j |x'_j - x_j| / s_j, \quad \text{of a category } \omega_j [x'_j \ne x_j] / s_j

    ======== ===== ===========================================================================
    symbol   shape meaning
    ======== ===== ===========================================================================
    down, up (d,)  weight over scale of a move down and up, counted from the first row
    levels   (d,)  how many levels a category has; 0 for every other column
    ======== ===== ===========================================================================

    As a direction a category is an axis for each level, so that moves to two different levels lie 60 degrees apart: the
    angle at which their end points are as far from each other as from the start.
    """

    norm: Norm
    down: Floats
    up: Floats
    levels: NDArray[np.intp]

    @property
    def is_symmetric(self) -> bool:
        """Whether there and back are equally far."""
        return bool((self.down == self.up).all())

    def lengths(self, home: Floats, points: Floats) -> Floats:
        """Return what each column adds on the way from ``home`` (d,) to each of ``points`` (n, d), shape (n, d)."""
        moves = points - home
        switch = self.levels > 0
        if switch.any():
            moves[:, switch] = moves[:, switch] != 0.0
        slopes = self.up if self.is_symmetric else np.where(moves > 0.0, self.up, self.down)
        return np.asarray(np.abs(moves, out=moves) * slopes)

    def between(self, home: Floats, points: Floats) -> Floats:
        """Return the distances from ``home`` (d,) to each of ``points`` (n, d), shape (n,)."""
        lengths = self.lengths(home, points)
        if self.norm == "l1":
            return np.asarray(lengths.sum(axis=1))
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", lengths, lengths)))

    def directions(self, home: Floats, points: Floats) -> Floats:
        """Return the moves from ``home`` (d,) to each of ``points`` (n, d) as vectors, shape (n, D)."""
        moves = points - home
        parts = [(moves * np.where(moves > 0.0, self.up, self.down))[:, self.levels == 0]]
        for j in np.flatnonzero(self.levels):
            corners = _corners(points[:, j], self.levels[j]) - _corners(home[[j]], self.levels[j])
            parts.append(self.up[j] * _CORNER["l2"] * corners)
        return np.hstack(parts)

    def embedded(self, points: Floats) -> Floats:
        """Return points (n, d) as vectors (n, D) whose own l1 or l2 distances are these, up to rounding.

        Only where :attr:`is_symmetric`.
        """
        parts = [(points * self.up)[:, self.levels == 0]]
        for j in np.flatnonzero(self.levels):
            parts.append(self.up[j] * _CORNER[self.norm] * _corners(points[:, j], self.levels[j]))
        return np.hstack(parts)


def distance_of(who: str, norm: Norm, scale: str | Mapping[str, float], space: FeatureSpace) -> RowDistance:
    """Return the distance over a space's columns, or refuse the scale in the name of ``who``."""
    SCALE.require(who, "scale", scale)
    prices = slopes_of(who, "linear", scale, space)
    down = np.zeros(len(space))
    up = np.zeros(len(space))
    levels = np.zeros(len(space), dtype=np.intp)
    for j, feature in enumerate(space):
        (price,) = prices[feature.name]
        down[j] = price.down
        up[j] = price.up
        if feature.kind == "categorical":
            levels[j] = len(feature.levels)
    return RowDistance(norm, down, up, levels)


def cosines(one: Floats, others: Floats) -> Floats:
    """Return the cosine between a direction (D,) and each of others (k, D), in [-1, 1].

    A direction of length 0 is none: it counts as at right angles to every other.
    """
    sizes = np.abs(others).max(axis=1, initial=0.0)
    size = np.abs(one).max(initial=0.0)
    one = one / (size or 1.0)  # squares of very short directions would be 0
    others = others / np.where(sizes > 0.0, sizes, 1.0)[:, None]
    norms = np.sqrt(np.einsum("ij,ij->i", others, others)) * np.sqrt(one @ one)
    return np.asarray(np.clip(others @ one / np.where(norms > 0.0, norms, 1.0), -1.0, 1.0))


def _corners(ranks: Floats, count: np.intp) -> Floats:
    return np.asarray(ranks[:, None] == np.arange(count), dtype=np.float64)

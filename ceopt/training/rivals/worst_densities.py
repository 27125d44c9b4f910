"""The least and the greatest Gaussian density at a point, over moments in a ball about those of a kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from ceopt.training.scaled_frame import Floats

__all__ = ["WorstDensities"]

_KNOTS: Final = 257
#: Angles and shares of the radius that are compared first, and in each of the rounds about the best of them.
_COARSE: Final = 33
_FINE: Final = 9
_ROUNDS: Final = 6
_SHRINK: Final = 0.4


@final
@dataclass(frozen=True, slots=True, eq=False)
class WorstDensities:
    r"""Logarithms of Gaussian densities at distance c from a kernel's centre, at the worst moments of a ball.

    .. math::
        \mathcal M = \{(\mu, \Sigma) : \lVert \mu - x_i \rVert^2 + \lVert \Sigma^{1/2} - \sigma I \rVert_F^2 \le
        \varepsilon^2,\ \Sigma^{1/2} \succeq \sigma I\}

    The greatest density brings the mean :math:`v_0` nearer and widens the one direction that counts by :math:`v_1`;
    the least takes the mean :math:`u_0` away and widens that direction by :math:`u_1`, all p - 1 others by the same f:

    .. math::
        A(c) &= \max_{v_0^2 + v_1^2 \le \varepsilon^2} -\log(\sigma + v_1) - (p - 1) \log \sigma
            - \tfrac{(c - v_0)^2}{2 (\sigma + v_1)^2}, \quad v_0 \le c \\
        B(c) &= \min_{u_0^2 + u_1^2 + (p - 1) f^2 \le \varepsilon^2} -\log(\sigma + u_1) - (p - 1) \log(\sigma + f)
            - \tfrac{(c + u_0)^2}{2 (\sigma + u_1)^2}

    less :math:`\tfrac p2 \log 2\pi`. Why no other moments do more: with the roots :math:`s_k` of the eigenvalues and
    :math:`r = \lVert x - \mu \rVert`, the quadratic form is between :math:`r^2 / \max s_k^2` and :math:`r^2 / \min
    s_k^2`, both attained, and :math:`\log(\sigma + \sqrt t)` is concave in the :math:`t = f_k^2` that share what is
    left of the radius. The moments are found on a table of distances up to the cube's diameter twice, and interpolated
    in between, which stays within the ball. At a deviation of 1 values are right to 1e-4; at a tenth, of which few
    knots see the bend, to 1e-2. Beyond the table the last moments are kept.

    Parameters
    ----------
    p
        Number of columns.
    sigma
        Standard deviation of the kernel, above 0.
    knots
        Distances (k,) of the table.
    nearer, wider
        :math:`v_0, v_1` at the knots.
    away, along, across
        :math:`u_0, u_1` and f at the knots.

    References
    ----------
    Nguyen, Bui & Nguyen (2022), Robust Bayesian recourse; the two worst cases are derived from the moment sets here.
    """

    p: int
    sigma: float
    knots: Floats
    nearer: Floats
    wider: Floats
    away: Floats
    along: Floats
    across: Floats

    @classmethod
    def of(cls, p: int, sigma: float, unfavourable: float, favourable: float) -> WorstDensities:
        """Return the table: the greatest density of a ball of the first radius, the least of one of the second."""
        knots = np.linspace(0.0, 2.0 * math.sqrt(p), _KNOTS)
        c = knots[:, None]

        def toward(share: Floats, angle: Floats) -> Floats:
            nearer = np.minimum(c, unfavourable * share * np.cos(angle))
            wide = sigma + unfavourable * share * np.sin(angle)
            return np.asarray(-np.log(wide) - 0.5 * ((c - nearer) / wide) ** 2)

        def from_it(share: Floats, angle: Floats) -> Floats:
            wide = sigma + favourable * share * np.sin(angle)
            far = c + favourable * share * np.cos(angle)
            rest = (p - 1) * np.log(sigma + _rest(p, favourable, share))
            return np.asarray(np.log(wide) + rest + 0.5 * (far / wide) ** 2)

        share, angle = _best(toward, len(knots))
        nearer = np.minimum(knots, unfavourable * share * np.cos(angle))
        wider = unfavourable * share * np.sin(angle)
        share, angle = _best(from_it, len(knots))
        away = favourable * share * np.cos(angle)
        along = favourable * share * np.sin(angle)
        return cls(p, sigma, knots, nearer, wider, away, along, _rest(p, favourable, share))

    def greatest(self, c: Floats) -> tuple[Floats, Floats]:
        """Return A and its slope in c at distances (k,)."""
        nearer = np.minimum(c, np.interp(c, self.knots, self.nearer))
        wide = self.sigma + np.interp(c, self.knots, self.wider)
        value = -np.log(wide) - (self.p - 1) * math.log(self.sigma) - 0.5 * ((c - nearer) / wide) ** 2
        return np.asarray(value), np.asarray(-(c - nearer) / wide**2)

    def least(self, c: Floats) -> tuple[Floats, Floats]:
        """Return B and its slope in c at distances (k,)."""
        far = c + np.interp(c, self.knots, self.away)
        wide = self.sigma + np.interp(c, self.knots, self.along)
        across = self.sigma + np.interp(c, self.knots, self.across)
        value = -np.log(wide) - (self.p - 1) * np.log(across) - 0.5 * (far / wide) ** 2
        return np.asarray(value), np.asarray(-far / wide**2)


def _rest(p: int, radius: float, share: Floats) -> Floats:
    """Return by how much each of the other directions is widened by what is left of the radius."""
    return np.asarray(radius * np.sqrt(np.maximum(0.0, 1.0 - share**2) / max(p - 1, 1)))


def _best(value: Callable[[Floats, Floats], Floats], n: int) -> tuple[Floats, Floats]:
    """Return the share of the radius and the angle, (n,) each, where a value (n, k) is greatest: a grid, and finer."""
    share = np.full(n, 0.5)
    angle = np.full(n, np.pi / 4.0)
    half = 1.0
    count = _COARSE
    for _ in range(_ROUNDS + 1):
        steps = 0.5 * half * np.linspace(-1.0, 1.0, count)
        first, second = (part.ravel() for part in np.meshgrid(steps, steps, indexing="ij"))
        shares = np.clip(share[:, None] + first, 0.0, 1.0)
        angles = np.clip(angle[:, None] + 0.5 * np.pi * second, 0.0, 0.5 * np.pi)
        place = value(shares, angles).argmax(axis=1)
        share = shares[np.arange(n), place]
        angle = angles[np.arange(n), place]
        half *= _SHRINK
        if count == _COARSE:
            half = 4.0 / (count - 1.0)  # a cell to either side
        count = _FINE
    return share, angle

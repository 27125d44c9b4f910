r"""The case of a validity bound: the events, in coordinates in which the moments have an interior.

For a radius above 0 the coordinates are the parameters themselves. For radius 0 mean and covariance are data, and every
distribution that has them is that of :math:`\theta = \hat\mu + F \xi` with :math:`\mathbb{E}\,\xi = 0` and
:math:`\operatorname{Cov} \xi = I_r`, where :math:`\hat\Sigma = F F^\top` and F has shape (d, r). Written in
:math:`\xi`, the fixed-moment programs (spec 2.4) keep their accuracy whatever the rank of the covariance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.moments import Moments, require_moments, require_plan
from ceopt.formulations.programs.subset.pairs import Floats, sum_of
from ceopt.solvers.checks import LENGTH
from ceopt.solvers.cones import psd

__all__ = ["ValidityCase", "bordered", "case_of", "mirrored", "require_case", "require_radius", "symmetric"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ValidityCase:
    r"""A plan, moments, a radius; and the plan's events in the program's coordinates.

    Parameters
    ----------
    plan
        Shape (J, d).
    radius
        At least 0.
    normals, offsets
        Shapes (J, k) and (J,): counterfactual j is favourable where normals[j]' y + offsets[j] >= 0. They are the plan
        and 0 for a radius above 0, where y is :math:`\theta` and k is d; :math:`X F` and :math:`X \hat\mu` for radius
        0, where y is :math:`\xi` and k is r.
    """

    plan: Floats
    moments: Moments
    radius: float
    normals: Floats
    offsets: Floats

    @property
    def is_fixed(self) -> bool:
        """Whether mean and covariance are data: the radius is 0."""
        return self.radius == 0.0

    def at(self, j: int, z: Any, weight: Any) -> Any:
        r"""Return :math:`\mathbb{E}[x_j^\top \theta; E]` for an event E with ``z`` = E[y; E] and ``weight`` = P(E)."""
        return self.with_offset([*z], self.normals[j], weight, self.offsets[j])

    def with_offset(
        self, names: list[Any], coefficients: Any, weight: Any, offset: float, constant: float = 0.0
    ) -> Any:
        """Return a sum, with the offset's term only where there are offsets: for a radius of 0."""
        if self.is_fixed:
            names = [*names, weight]
            coefficients = [*coefficients, offset]
        return sum_of(names, coefficients, constant)


def require_radius(who: str, radius: Any) -> float:
    """Return a finite radius that is at least 0, or refuse it in the name of ``who``."""
    return LENGTH.require(who, "radius", radius)


def require_case(
    who: str, plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike, radius: Any
) -> tuple[Floats, Moments, float]:
    """Return plan, moments and radius, or refuse what is none in the name of ``who``."""
    moments = require_moments(who, mean, covariance)
    return require_plan(who, plan, d=len(moments.mean)), moments, require_radius(who, radius)


def case_of(who: str, plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike, radius: Any) -> ValidityCase:
    """Return the case of a program, or refuse what is none in the name of ``who``."""
    x, moments, distance = require_case(who, plan, mean, covariance, radius)
    if distance:
        return ValidityCase(x, moments, distance, x, np.zeros(len(x)))
    return ValidityCase(x, moments, distance, x @ moments.factor, x @ moments.mean)


def symmetric(k: int) -> Any:
    """Return a Var for the upper triangle of a symmetric matrix of side k; see :func:`mirrored`."""
    return pyo.Var([(a, b) for a in range(k) for b in range(a, k)])


def mirrored(k: int, entry: Callable[[int, int], Any]) -> list[list[Any]]:
    """Return the symmetric matrix of side k with these entries at (a, b), a <= b."""
    upper = {}
    for a in range(k):
        for b in range(a, k):
            upper[(a, b)] = entry(a, b)
    return [[upper[min(a, b), max(a, b)] for b in range(k)] for a in range(k)]


def bordered(
    inside: Callable[[int, int], Any],
    k: int,
    edge: Callable[[int, int], Any],
    n: int,
    corner: Callable[[int, int], Any],
) -> Any:
    r"""Return the margin of :math:`\begin{pmatrix} A & B \\ B^\top & C \end{pmatrix}`, of sides k and n, by entries."""

    def entry(a: int, b: int) -> Any:
        if b < k:
            return inside(a, b)
        if a < k:
            return edge(a, b - k)
        return corner(a - k, b - k)

    return psd(mirrored(k + n, entry))

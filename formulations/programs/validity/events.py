r"""The events of a validity bound, each a half-space, in coordinates in which the moments have an interior.

For a radius above 0 the coordinates are the parameters themselves. For radius 0 mean and covariance are data, and every
distribution that has them is that of :math:`\theta = \hat\mu + F \xi` with :math:`\mathbb{E}\,\xi = 0` and
:math:`\operatorname{Cov} \xi = I_r`, where :math:`\hat\Sigma = F F^\top` and F has shape (d, r). Written in
:math:`\xi`, the programs of radius 0 keep their accuracy whatever the rank of the covariance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from ceopt.formulations.programs.expressions import Floats, sum_of
from ceopt.formulations.programs.moments import Moments, require_moments, require_plan
from ceopt.solvers.checks import LENGTH

__all__ = ["ValidityEvents", "events_of", "require_bound_arguments", "require_radius"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ValidityEvents:
    r"""The events that a plan's counterfactuals are favourable, in a program's coordinates; their moments and radius.

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


def require_bound_arguments(
    who: str, plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike, radius: Any
) -> tuple[Floats, Moments, float]:
    """Return plan, moments and radius, the arguments of every bound, or refuse one in the name of ``who``."""
    moments = require_moments(who, mean, covariance)
    return require_plan(who, plan, d=len(moments.mean)), moments, require_radius(who, radius)


def events_of(who: str, plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike, radius: Any) -> ValidityEvents:
    """Return the events of a program from its arguments, or refuse what does not fit in the name of ``who``."""
    x, moments, distance = require_bound_arguments(who, plan, mean, covariance, radius)
    if distance:
        return ValidityEvents(x, moments, distance, x, np.zeros(len(x)))
    return ValidityEvents(x, moments, distance, x @ moments.factor, x @ moments.mean)

r"""The events of a validity bound, each a half-space, in coordinates in which the moments have an interior.

For a radius above 0 the coordinates are the parameters themselves. For radius 0 mean and covariance are data, and every
distribution that has them is that of :math:`\theta = \hat\mu + F \xi` with :math:`\mathbb{E}\,\xi = 0` and
:math:`\operatorname{Cov} \xi = I_r`, where :math:`\hat\Sigma = F F^\top` and F has shape (d, r). Written in
:math:`\xi`, the programs of radius 0 keep their accuracy whatever the rank of the covariance.

The least probability of a positive score, in closed form, where its mean and deviation are known up to a distance.

For one counterfactual x, :math:`m = x^\top \hat\mu`, :math:`s = \sqrt{x^\top \hat\Sigma x}` and
:math:`r = \rho \lVert x \rVert`: mean and standard deviation of the score range over the half disc of radius r around
(m, s), and the worst of them is where a line through 0 touches it. Without uncertainty (r = 0) this is
Cantelli's inequality, :math:`m^2 / (m^2 + s^2)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.moments import Moments, add_ball, require_moments, require_plan
from ceopt.formulations.programs.parts import bordered, sum_of, symmetric
from ceopt.solvers.checks import LENGTH, Floats

# ==== The events of a validity bound, each a half-space, in coordinates in which the moments have an interior =========


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


# ==== A mixture: a distribution in parts, whose joint moments are within the ball =====================================


def add_mixture_moments(model: Any, events: ValidityEvents) -> None:
    r"""Join the parts of ``model``: ``weight[j]`` of the mass, with ``z[j]`` its part of the mean.

    .. math::
        \begin{pmatrix} M & z_0 \dots z_n \\ \cdot & \operatorname{Diag}(\lambda) \end{pmatrix} \succeq 0, \quad
        (\mu, M) \in \text{ball}, \quad \mu = \sum_j z_j

    as ``M``, ``mean``, ``ball`` and the cone ``parts``; for radius 0, ``centred`` rows and M = I.
    """
    count = len(model.weight)
    k = events.normals.shape[1]
    total = [sum_of([model.z[j, a] for j in range(count)]) for a in range(k)]
    if events.is_fixed:
        model.centred = pyo.Constraint(range(k), rule=lambda _m, a: total[a] == 0.0)
    else:
        model.M = symmetric(k)
        model.mean = pyo.Expression(range(k), rule=lambda _m, a: total[a])
        model.ball = pyo.Block()
        add_ball(model.ball, events.moments, events.radius, lambda a: model.mean[a], model.M)

    def second(a: int, b: int) -> Any:
        return float(a == b) if events.is_fixed else model.M[a, b]

    def masses(i: int, j: int) -> Any:
        return model.weight[i] if i == j else 0.0

    parts = bordered(second, k, lambda a, j: model.z[j, a], count, masses)
    model.parts = pyo.Constraint(expr=parts >= 0)


# ==== The least probability of a positive score =======================================================================


def least_of_score(m: float, s: float, r: float) -> tuple[float, float]:
    """Return (p, 1 - p), p being the least probability of a positive score, each to its own last digits.

    Parameters
    ----------
    m, s
        Mean and standard deviation of the score.
    r
        How far the two are uncertain.
    """
    if m <= r:
        return 0.0, 1.0
    s, r = s / m, r / m  # no square of large or small numbers
    touch = math.sqrt((1.0 - r) * (1.0 + r) + s * s)
    size = math.hypot(1.0, s)
    sine = (s * touch + r) / (size * size)
    cosine = (1.0 - r) * (1.0 + r) / (touch + s * r)
    return min(cosine * cosine, 1.0), min(sine * sine, 1.0)

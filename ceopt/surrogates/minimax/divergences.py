r"""The worst covariance of a score over an ambiguity set, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ceopt.formulations.programs.minimax import (
    DIVERGENCE,
    Ambiguity,
    ClassMoments,
    logdet_factor,
    require_one_radius,
    worst_spread,
)
from ceopt.formulations.programs.moments import require_covariance
from ceopt.formulations.programs.parts import Floats
from ceopt.solvers.checks import Matrix
from ceopt.solvers.errors import InvalidValueError
from ceopt.tolerances import SCORE_VARIANCE_ROUNDING

__all__ = ["WorstCovariance", "logdet_factor", "score_variance", "worst_covariance", "worst_covariances"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class WorstCovariance:
    """What :func:`worst_covariance` returns.

    Parameters
    ----------
    tau
        The greatest standard deviation of the score.
    covariance
        Shape (d, d): one that attains it, on the sphere of the radius unless the weights are 0.
    """

    tau: float
    covariance: Floats


def worst_covariance(weights: ArrayLike, covariance: ArrayLike, *, divergence: str, radius: float) -> WorstCovariance:
    r"""Return the covariance within a divergence of a given one for which a linear score spreads most.

    .. math::
        \tau(w) = \max_\Sigma \{\sqrt{w^\top \Sigma w} : \varphi(\Sigma \Vert \hat\Sigma) \le \rho\}.

    ========== ================================= ==================================================================
    divergence :math:`\tau(w)`                   maximiser
    ========== ================================= ==================================================================
    nominal    :math:`\sqrt{v}`                  :math:`\hat\Sigma`
    quadratic  :math:`\sqrt{v + \sqrt\rho n^2}`  :math:`\hat\Sigma + \sqrt\rho\, w w^\top / n^2`
    bures      :math:`\sqrt{v} + \sqrt\rho\, n`  :math:`A \hat\Sigma A`, :math:`A = I + \sqrt{\rho / v}\, w w^\top / n`
    fisher_rao :math:`e^{\rho / 2} \sqrt{v}`     :math:`\hat\Sigma + (e^\rho - 1)\, \hat\Sigma w w^\top \hat\Sigma / v`
    logdet     :math:`\sqrt{c v}`                :math:`\hat\Sigma + (c - 1)\, \hat\Sigma w w^\top \hat\Sigma / v`
    ========== ================================= ==================================================================

    with :math:`v = w^\top \hat\Sigma w`, :math:`n = \lVert w \rVert` and c of :func:`logdet_factor`.
    Exact. Where the score has no variance, the Bures maximiser is :math:`\hat\Sigma + \rho w w^\top / \lVert w
    \rVert^2`, and those of Fisher-Rao and log-det, whose sets then hold covariances of the same range, the given one.

    Parameters
    ----------
    weights
        Shape (d,).
    covariance
        Shape (d, d), symmetric and positive semidefinite.
    divergence
        "nominal" (the radius is not read), "quadratic", "bures", "fisher_rao" or "logdet".
    radius
        At least 0 and finite: squared for "quadratic" and "bures", a distance for "fisher_rao", twice a
        Kullback-Leibler divergence for "logdet".

    Raises
    ------
    InvalidValueError, UnknownNameError
        Shapes that disagree, NaN or an infinity, a covariance that is none, a negative radius, an unknown divergence.

    References
    ----------
    "Coverage-Validity-Aware Algorithmic Recourse", theorems 3.3, 4.2, 5.2 and C.2.

    Examples
    --------
    >>> from ceopt.surrogates import worst_covariance
    >>> found = worst_covariance([1, 0], [[4, 0], [0, 1]], divergence="bures", radius=1)
    >>> found.tau, found.covariance.tolist()
    (3.0, [[9.0, 0.0], [0.0, 1.0]])
    """
    who = "worst_covariance"
    w = Matrix((None,)).require(who, "weights", weights)
    if not len(w):
        raise InvalidValueError(who, "at least one weight", "weights is empty", "Give one weight a column.")
    given = require_covariance(who, "covariance", covariance, len(w))
    DIVERGENCE.require(who, "divergence", divergence)
    rho = require_one_radius(who, "radius", radius, divergence)
    return _worst_of(w, given, divergence, rho)


def _worst_of(w: Floats, covariance: Floats, divergence: str, radius: float) -> WorstCovariance:
    """Return the same of arguments that are checked."""
    spread = worst_spread(divergence, radius)
    length = float(np.linalg.norm(w))
    variance = score_variance(w, covariance)
    tau = spread.factor * math.sqrt(variance + spread.ridge * length**2) + spread.length * length
    if length == 0.0:
        return WorstCovariance(tau, covariance)
    unit = w / length
    worst = covariance.copy()
    if divergence == "quadratic":
        worst += spread.ridge * np.outer(unit, unit)
    elif divergence == "bures" and variance == 0.0:
        worst += spread.length**2 * np.outer(unit, unit)
    elif divergence == "bures":
        along = covariance @ unit
        ratio = spread.length / (math.sqrt(variance) / length)
        across = np.outer(along, unit)
        worst += ratio * (across + across.T) + spread.length**2 * np.outer(unit, unit)
    elif variance > 0.0:
        along = covariance @ w / math.sqrt(variance)
        worst += (_more_variance(divergence, spread.factor, radius)) * np.outer(along, along)
    return WorstCovariance(tau, worst)


def worst_covariances(w: Floats, classes: ClassMoments, ambiguity: Ambiguity) -> Floats:
    """Return the worst covariances of both classes, shape (2, d, d); infinite where a radius is."""
    found = []
    for covariance, radius in zip((classes.cov_neg, classes.cov_pos), ambiguity.radii, strict=True):
        rho = radius
        if ambiguity.divergence == "bures" and ambiguity.bures == "paper":
            rho = radius**2
        if ambiguity.divergence == "nominal" or math.isfinite(rho):
            found.append(_worst_of(w, covariance, ambiguity.divergence, rho).covariance)
        else:
            found.append(_worst_in_the_limit(w, covariance, ambiguity.divergence))
    return np.array(found)


def _worst_in_the_limit(w: Floats, covariance: Floats, divergence: str) -> Floats:
    """Return the limit of the worst covariance as the radius grows."""
    grows = w
    if divergence in {"fisher_rao", "logdet"}:
        grows = covariance @ w
        if score_variance(w, covariance) == 0.0:
            return covariance
    signs = np.sign(np.outer(grows, grows))
    worst = covariance.copy()
    worst[signs != 0.0] = np.inf * signs[signs != 0.0]
    return worst


def _more_variance(divergence: str, factor: float, radius: float) -> float:
    """Return factor**2 - 1 without its rounding at small radii."""
    if divergence == "fisher_rao":
        return math.expm1(radius)
    return factor**2 - 1.0


def score_variance(w: Floats, covariance: Floats) -> float:
    """Return w'Sw, 0 where it is no more than rounding leaves of what it is added up from."""
    variance = float(w @ covariance @ w)
    most = float(np.abs(w) @ np.sqrt(np.maximum(covariance.diagonal(), 0.0))) ** 2
    if variance <= SCORE_VARIANCE_ROUNDING * most:
        return 0.0
    return variance

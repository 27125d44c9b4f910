r"""The exact reduction of plan and moments to as many parameters as the plan has independent rows.

The events depend on the parameters only through their projection on the span of the counterfactuals, and the image of
a Gelbrich ball under a projection is the ball of the same radius around the projected moments. So both bounds are those
of the projected plan and moments, whose size depends on the plan alone.

For the ball: a projection contracts the Gelbrich distance, and :func:`lifted` attains every point of the image.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.programs.moments import Moments
from ceopt.formulations.programs.parts import Floats
from ceopt.tolerances import DIRECTION_RANK, SAME_DIRECTION

__all__ = ["Directions", "Reduction", "directions", "lifted", "reduced"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """The different directions of a plan, of unit length: a positive multiple of a counterfactual is the same event.

    Parameters
    ----------
    rows
        Shape (n, d).
    first
        Shape (n,): the first counterfactual of each direction.
    zero
        Positions of counterfactuals that are 0.
    """

    rows: Floats
    first: NDArray[np.intp]
    zero: NDArray[np.intp]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """Plan and moments in the coordinates of an orthonormal basis, in units in which the moments are of size 1.

    Parameters
    ----------
    rows
        Shape (n, r): the directions.
    moments, radius
        Of the projected parameters divided by ``unit``.
    basis
        Shape (r, d), orthonormal rows.
    unit
        Parameters per unit.
    """

    rows: Floats
    moments: Moments
    radius: float
    basis: Floats
    unit: float


def directions(plan: Floats) -> Directions:
    """Return the different directions of a plan of shape (J, d)."""
    sizes = np.abs(plan).max(axis=1)  # first the greatest entry, as squares of large or small numbers are none
    is_zero = sizes == 0.0
    scaled = plan / np.where(is_zero, 1.0, sizes)[:, None]
    rows = scaled / np.where(is_zero, 1.0, np.linalg.norm(scaled, axis=1))[:, None]
    first: list[int] = []
    for j in np.flatnonzero(~is_zero).tolist():
        if not first or np.abs(rows[first] - rows[j]).max(axis=1).min() > SAME_DIRECTION:
            first.append(j)
    return Directions(rows[first], np.array(first, dtype=np.intp), np.flatnonzero(is_zero))


def reduced(rows: Floats, moments: Moments, radius: float) -> Reduction:
    """Return what the span of unit rows, shape (n, d), sees of the moments."""
    _, sizes, right = np.linalg.svd(rows, full_matrices=False)
    basis = right[sizes > DIRECTION_RANK * sizes[0]]
    return scaled(rows @ basis.T, moments.seen_by(basis), radius, basis)


def scaled(rows: Floats, moments: Moments, radius: float, basis: Floats) -> Reduction:
    """Return rows and moments in units in which the second moment has trace 1."""
    unit = float(np.hypot(np.linalg.norm(moments.mean), np.sqrt(max(np.trace(moments.covariance), 0.0)))) or 1.0
    return Reduction(rows, Moments(moments.mean / unit, moments.covariance / unit**2), radius / unit, basis, unit)


def lifted(given: Moments, reduction: Reduction, found: Moments) -> Moments:
    r"""Return moments of all parameters as near to the given ones as ``found`` to the reduced ones, and seen as those.

    With :math:`\eta = Q \theta` and a factor F of its covariance, :math:`\eta - \hat\eta = F \zeta`; the best coupling
    moves :math:`\eta` to :math:`\tilde\mu + K \zeta + \varepsilon`, where the noise has covariance
    :math:`\tilde\Sigma - K K^\top`, and leaves what is orthogonal to the basis alone:

    .. math::
        \mu^* = \hat\mu + Q^\top (\tilde\mu - Q \hat\mu), \qquad \Sigma^* = A \hat\Sigma A^\top
        + Q^\top (\tilde\Sigma - K K^\top) Q, \qquad A = I + Q^\top (K F^+ - I) Q.

    For a covariance of full rank it is :math:`A \hat\Sigma A^\top` with the optimal map of the projected normal
    distributions in A.

    Parameters
    ----------
    given
        Of all d parameters.
    found
        Moments in the coordinates and units of ``reduction``.
    """
    q = reduction.basis
    unit = reduction.unit
    factor = reduction.moments.factor
    other = found.root
    left, _, right = np.linalg.svd(other @ factor, full_matrices=False)
    coupling = other @ (left @ right)  # K, shape (r, k)
    change = coupling @ np.linalg.pinv(factor) - np.eye(len(q))
    noise = found.covariance - coupling @ coupling.T
    seen = q @ given.covariance  # the covariance of the projected parameters with all
    cross = q.T @ (change @ seen)
    covariance = given.covariance + cross + cross.T + q.T @ (change @ (seen @ q.T) @ change.T + unit**2 * noise) @ q
    mean = given.mean + q.T @ (unit * (found.mean - reduction.moments.mean))
    return Moments(mean, (covariance + covariance.T) / 2.0)

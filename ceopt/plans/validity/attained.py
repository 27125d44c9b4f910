"""A distribution at which a bound is attained, as parts of mass, and where its moments lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ceopt.formulations.programs.moments import Moments
from ceopt.formulations.programs.parts import Floats
from ceopt.plans.validity.reduction import Reduction
from ceopt.tolerances import FAINT

__all__ = ["Attained", "numbers_of", "of_coupling", "of_parts"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Attained:
    """A distribution at which a bound is attained, in the coordinates of a reduction.

    Parameters
    ----------
    masses
        Shape (k,): probabilities of the parts, that of the rest first.
    means
        Shape (k, r): mean on each part, times its probability.
    moments
        Of the whole.
    """

    reduction: Reduction
    masses: Floats
    means: Floats
    moments: Moments


def of_parts(reduction: Reduction, masses: Floats, means: Floats, second: Any) -> Attained:
    """Return the distribution of a program's parts; ``second`` is its Var M, None where the moments are fixed.

    The means are then those of the whitened parameters.
    """
    if second is None:
        if reduction.radius == 0.0:
            means = means @ reduction.moments.factor.T + np.outer(masses, reduction.moments.mean)
        return Attained(reduction, masses, means, reduction.moments)
    mean = means.sum(axis=0)
    return Attained(reduction, masses, means, Moments(mean, square_of(second, len(mean)) - np.outer(mean, mean)))


def of_coupling(reduction: Reduction, masses: Floats, u: Floats, v: Floats) -> Attained:
    r"""Return the distribution of a coupled program, :math:`\theta = \hat\mu + F \zeta + \rho \eta`.

    Parameters
    ----------
    masses, u, v
        Shapes (k,), (k, r) and (k, d); :math:`\eta` is the same for all of a part.
    """
    centre = reduction.moments
    factor = reduction.moments.factor
    radius = reduction.radius
    there = masses > FAINT
    shift = radius * v[there] / masses[there, None]
    moved = np.zeros(v.shape)
    moved[there] = masses[there, None] * shift
    total = moved.sum(axis=0)
    cross = factor @ u[there].T @ shift
    covariance = centre.covariance + cross + cross.T + moved[there].T @ shift - np.outer(total, total)
    means = np.outer(masses, centre.mean) + u @ factor.T + moved
    return Attained(reduction, masses, means, Moments(centre.mean + total, covariance))


def square_of(var: Any, d: int) -> Floats:
    """Return the symmetric matrix of a Var over its upper triangle."""
    matrix = np.empty((d, d))
    for (a, b), member in var.items():
        matrix[a, b] = matrix[b, a] = member.value
    return matrix


def numbers_of(var: Any) -> Floats:
    """Return the values of a Var in its own order."""
    return np.array([member.value for member in var.values()], dtype=np.float64)

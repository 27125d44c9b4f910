r"""Uncertain parameters: a plan, and the mean and covariance of the parameters, for every program over them.

A linear classifier :math:`\theta \in \mathbb{R}^d` calls x favourable where :math:`\theta^\top x \ge 0`. Its intercept,
if it has one, is one more parameter, whose column of x is 1. A plan is a matrix of J counterfactuals, one a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpotrf

from ceopt.formulations.programs.expressions import Floats
from ceopt.formulations.tolerances import (
    COVARIANCE_INDEFINITE,
    COVARIANCE_RANK,
    COVARIANCE_SYMMETRIC,
    VARIANCE_ROUNDING,
)
from ceopt.solvers.checks import Matrix
from ceopt.solvers.errors import InvalidValueError

__all__ = ["Moments", "require_covariance", "require_mean", "require_moments", "require_plan", "require_point"]

_COLUMNS = "Give one column for each parameter, one of ones for the intercept."


@final
@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Mean and covariance of d parameters.

    Parameters
    ----------
    mean
        Shape (d,).
    covariance
        Shape (d, d), symmetric and positive semidefinite.
    """

    mean: Floats
    covariance: Floats

    @property
    def factor(self) -> Floats:
        """F of shape (d, r) with covariance = F F', r being the rank."""
        sizes = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        units = np.where(sizes > 0.0, sizes, 1.0)  # of each parameter its own, so that no small one is taken for 0
        alike = self.covariance / np.outer(units, units)
        np.fill_diagonal(alike, sizes > 0.0)
        values, vectors = np.linalg.eigh(alike)
        kept = values > COVARIANCE_RANK * max(values[-1], 0.0)
        return np.asarray(sizes[:, None] * vectors[:, kept] * np.sqrt(values[kept]))

    @property
    def root(self) -> Floats:
        """The symmetric root of the covariance."""
        values, vectors = np.linalg.eigh(self.covariance)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)

    @property
    def second(self) -> Floats:
        """The second moment: covariance + mean mean'."""
        return self.covariance + np.outer(self.mean, self.mean)

    def seen_by(self, basis: Floats) -> Moments:
        """Return the moments of ``basis @ theta``, for a basis of shape (r, d).

        What is seen at right angles to the covariance is 0, not what rounding leaves of it.
        """
        seen = _even(basis @ self.covariance @ basis.T)
        terms = np.einsum("ik,kl,il->i", np.abs(basis), np.abs(self.covariance), np.abs(basis), optimize=True)
        is_seen = np.diag(seen) > VARIANCE_ROUNDING * terms
        seen = np.where(np.outer(is_seen, is_seen), seen, 0.0)
        factor = Moments(basis @ self.mean, seen).factor
        return Moments(basis @ self.mean, factor @ factor.T)


def require_moments(who: str, mean: ArrayLike, covariance: ArrayLike, *, d: int | None = None) -> Moments:
    """Return mean and covariance of parameters, d of them if given, or refuse what is none in the name of ``who``."""
    m = require_mean(who, mean, d=d)
    even = require_covariance(who, "covariance", covariance, len(m))
    return Moments(m, even)


def require_covariance(who: str, name: str, covariance: ArrayLike, d: int) -> Floats:
    """Return a covariance of d numbers, equal to its transpose, or refuse what is none in the name of ``who``."""
    s = Matrix((d, d)).require(who, name, covariance)
    size = float(np.abs(s).max(initial=0.0))
    apart = np.abs(s - s.T)
    if (apart > COVARIANCE_SYMMETRIC * size).any():
        i, j = np.unravel_index(int(apart.argmax()), s.shape)
        but = f"{name}[{i}, {j}] is {s[i, j]} and {name}[{j}, {i}] is {s[j, i]}"
        raise InvalidValueError(who, "a symmetric covariance", but, "Give (S + S.T) / 2 if they are meant to be equal.")
    even = _even(s)
    if _is_definite(even):
        return even
    values = np.linalg.eigvalsh(even)
    if len(values) and values[0] < -COVARIANCE_INDEFINITE * max(abs(float(values[-1])), abs(float(values[0]))):
        but = f"the least eigenvalue of {name} is {values[0]:.6g}"
        raise InvalidValueError(who, "a positive semidefinite covariance", but, "Nothing has this covariance.")
    return even


def _is_definite(matrix: Floats) -> bool:
    """Whether a Cholesky factor exists, which takes a tenth of the time of a spectrum; False says nothing."""
    return not dpotrf(matrix.T, lower=1, clean=0)[1]


def require_point(who: str, name: str, values: ArrayLike, moments: Moments | None) -> Floats:
    """Return a point of a column for each parameter, or of any number, or refuse it in the name of ``who``."""
    d = None if moments is None else len(moments.mean)
    return Matrix((d,), _COLUMNS).require(who, name, values)


def require_mean(who: str, mean: ArrayLike, *, d: int | None = None) -> Floats:
    """Return the mean of parameters, d of them if given, or refuse it in the name of ``who``."""
    m = Matrix((d,), _COLUMNS).require(who, "mean", mean)
    if not len(m):
        raise InvalidValueError(who, "at least one parameter", "mean is empty", "Give the mean of the parameters.")
    return m


def require_plan(who: str, plan: ArrayLike, *, d: int | None = None) -> Floats:
    """Return a plan of shape (J, d), J at least 1, or refuse what is none in the name of ``who``."""
    if np.ndim(plan) == 1:
        then = "Give one counterfactual a row: [[...]] for one."
    else:
        then = _COLUMNS
    found = Matrix((None, d), then).require(who, "plan", plan)
    if not len(found):
        raise InvalidValueError(who, "a plan", "plan has no rows", "Give one counterfactual a row.")
    return found


def _even(matrix: Floats) -> Floats:
    return np.asarray((matrix + matrix.T) / 2.0)

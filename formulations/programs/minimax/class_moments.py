"""Moments of two classes: what every minimax probability machine is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from ceopt.formulations.programs.expressions import Floats
from ceopt.formulations.programs.moments import Moments, require_covariance
from ceopt.formulations.tolerances import COVARIANCE_RANK, SAME_MEANS
from ceopt.solvers.checks import LENGTH, Matrix
from ceopt.solvers.errors import InvalidValueError

__all__ = ["ClassMoments", "factor_of", "require_class_moments"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClassMoments:
    """Means, shape (d,), and covariances, shape (d, d), of the unfavourable and the favourable class."""

    mean_neg: Floats
    cov_neg: Floats
    mean_pos: Floats
    cov_pos: Floats

    @property
    def difference(self) -> Floats:
        """Mean of the favourable class less that of the unfavourable one."""
        return self.mean_pos - self.mean_neg


def require_class_moments(
    who: str,
    unfavourable: tuple[ArrayLike, ArrayLike],
    favourable: tuple[ArrayLike, ArrayLike],
    *,
    regularization: Any = 0.0,
) -> ClassMoments:
    """Return the moments of two classes, each a mean and a covariance, or refuse them in the name of ``who``.

    ``regularization`` is added to the diagonals of both covariances.
    """
    more = LENGTH.require(who, "regularization", regularization)
    mean_neg = Matrix((None,)).require(who, "mean_neg", unfavourable[0])
    d = len(mean_neg)
    if not d:
        raise InvalidValueError(who, "at least one column", "mean_neg is empty", "Give the mean of the class.")
    mean_pos = Matrix((d,), "Give both means of the same columns.").require(who, "mean_pos", favourable[0])
    cov_neg = require_covariance(who, "cov_neg", unfavourable[1], d)
    cov_pos = require_covariance(who, "cov_pos", favourable[1], d)
    if more:
        cov_neg[np.diag_indices(d)] += more
        cov_pos[np.diag_indices(d)] += more
    if (np.abs(mean_pos - mean_neg) <= SAME_MEANS * np.maximum(np.abs(mean_pos), np.abs(mean_neg))).all():
        but = "the means of both classes are equal"
        raise InvalidValueError(who, "two different means", but, "No hyperplane tells such classes apart.")
    return ClassMoments(mean_neg, cov_neg, mean_pos, cov_pos)


def factor_of(covariance: Floats) -> Floats:
    """Return F with covariance = F F', lower triangular where the covariance is definite, of shape (d, rank) if not."""
    try:
        lower = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        lower = None
    if lower is not None and (np.diag(lower) ** 2 > COVARIANCE_RANK * np.diag(covariance)).all():
        return np.asarray(lower)
    return Moments(np.zeros(len(covariance)), covariance).factor

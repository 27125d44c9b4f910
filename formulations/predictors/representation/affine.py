"""A linear model as plain arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from ceopt.formulations.predictors.representation.decision_rule import (
    WIDTHS,
    AbstractRepresentation,
    Decision,
    Floats,
    Head,
    Probability,
    as_numbers,
    matrix_of,
    one_of,
    set_frozen,
)
from ceopt.solvers.errors import InvalidValueError

__all__ = ["Affine"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Affine(AbstractRepresentation):
    r"""Scores that are affine in the columns: ``s = W x + b``.

    Parameters
    ----------
    weights
        ``(d,)`` for one score or ``(K, d)``; kept as (K, d) float64.
    intercept
        A number, or one per score; kept as (K,).
    labels
        None for a regressor. Two labels for one score (favourable score, second label), else K labels.
    decision, probability, level
        See ``decision_rule.py``. By default "value", "positive" or "argmax", no probability, and 0.
    dtype
        Float width in which the library adds up (float64 unless both its weights and its input are float32).

    Raises
    ------
    InvalidValueError
        A weight is NaN or infinite, or shapes or the number of labels do not fit.

    Examples
    --------
    >>> model = Affine([1.0, -2.0], 0.5, labels=("no", "yes"))
    >>> model.predict([[2.0, 1.0], [0.0, 1.0]]).tolist()
    ['yes', 'no']
    """

    weights: Floats
    intercept: Floats
    dtype: str
    head: Head

    def __init__(
        self,
        weights: ArrayLike,
        intercept: ArrayLike,
        *,
        labels: Iterable[Any] | None = None,
        decision: Decision | None = None,
        probability: Probability | None = None,
        level: float = 0.0,
        dtype: str = "float64",
    ) -> None:
        w = np.atleast_2d(as_numbers("Affine", "weights", weights))
        b = np.atleast_1d(as_numbers("Affine", "intercept", intercept))
        if w.ndim != 2 or w.shape[0] == 0 or b.ndim != 1 or len(b) not in (1, len(w)):
            raise InvalidValueError(
                "Affine", "weights (d,) or (K, d) and one intercept per score",
                f"weights are {w.shape} and intercept {b.shape}", "Give one row of weights per score.",
            )  # fmt: skip
        set_frozen(self, weights=w, intercept=np.broadcast_to(b, len(w)).copy())
        set_frozen(self, dtype=one_of("Affine", "dtype", dtype, WIDTHS))
        set_frozen(self, head=Head.checked("Affine", len(w), labels, decision, probability, level))

    @property
    def n_inputs(self) -> int:
        """Columns of the matrix."""
        return int(self.weights.shape[1])

    @property
    def n_scores(self) -> int:
        """Number K of scores."""
        return int(self.weights.shape[0])

    def score(self, x: ArrayLike) -> Floats:
        """Return the scores, (n,) if there is one and (n, K) else."""
        given = matrix_of("Affine.score", x, self.n_inputs, exactly=True)
        matrix = given.astype(self.dtype)
        scores = (matrix @ self.weights.T.astype(self.dtype) + self.intercept.astype(self.dtype)).astype(np.float64)
        return np.asarray(scores[:, 0] if self.n_scores == 1 else scores)

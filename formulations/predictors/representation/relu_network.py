r"""Feed-forward networks with ReLU layers, as plain arrays.

.. math::
    h_0 = x, \qquad h_i = \max(0, W_i h_{i-1} + b_i) \quad (i < L), \qquad s = W_L h_{L-1} + b_L .
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias, final

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

__all__ = ["Activation", "ReluNetwork"]

Activation: TypeAlias = Literal["relu", "identity"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ReluNetwork(AbstractRepresentation):
    r"""Scores of a network: ``h <- W h + b``, with ReLU after every layer but the last.

    Parameters
    ----------
    weights
        One (out, in) matrix per layer; kept as float64.
    biases
        One (out,) vector per layer.
    labels
        None for a regressor. Two labels for one score, else K labels.
    activations
        "relu" or "identity" after each layer but the last; by default "relu" everywhere.
    decision, probability, level
        See ``decision_rule.py``. The score is that of the last layer, before its link.
    dtype
        Float width in which the library computes.

    Raises
    ------
    InvalidValueError
        No layer, a weight that is NaN or infinite, shapes that do not follow one another, or labels that do not fit.

    Examples
    --------
    >>> net = ReluNetwork([[[1.0], [-1.0]], [[1.0, 1.0]]], [[0.0, 0.0], [0.5]])  # |x| + 0.5
    >>> net.score([[2.0], [-3.0]]).tolist()
    [2.5, 3.5]
    """

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    activations: tuple[Activation, ...]
    dtype: str
    head: Head

    def __init__(
        self,
        weights: Sequence[ArrayLike],
        biases: Sequence[ArrayLike],
        *,
        labels: Iterable[Any] | None = None,
        activations: Sequence[Activation] | None = None,
        decision: Decision | None = None,
        probability: Probability | None = None,
        level: float = 0.0,
        dtype: str = "float64",
    ) -> None:
        who = "ReluNetwork"
        w = tuple(as_numbers(who, f"weights[{i}]", layer) for i, layer in enumerate(weights))
        b = tuple(np.atleast_1d(as_numbers(who, f"biases[{i}]", layer)) for i, layer in enumerate(biases))
        shapes = [layer.shape for layer in w]
        needed = [layer.shape for layer in b]
        fits = (
            len(w) == len(b) > 0
            and all(len(shape) == 2 and min(shape) > 0 for shape in shapes)
            and all(shape[:1] == bias for shape, bias in zip(shapes, needed, strict=True))
            and all(after[1] == before[0] for before, after in pairwise(shapes))
        )
        if not fits:
            raise InvalidValueError(
                who, "a (out, in) matrix and a (out,) bias per layer, each layer reading the one before",
                f"weights are {shapes} and biases {needed}", "Check them; scikit-learn's coefs_ are transposed.",
            )  # fmt: skip
        if activations is None:
            after = ("relu",) * (len(w) - 1)
        else:
            after = tuple(activations)
        if len(after) != len(w) - 1:
            raise InvalidValueError(
                who, f"{len(w) - 1} activations, one per layer but the last", f"activations is {after!r}", "Match them."
            )
        for activation in after:
            one_of(who, "activation", activation, ("relu", "identity"))
        for array in (*w, *b):
            array.setflags(write=False)
        set_frozen(self, weights=w, biases=b, activations=after)
        set_frozen(self, dtype=one_of(who, "dtype", str(np.dtype(dtype)), WIDTHS))
        set_frozen(self, head=Head.checked(who, len(b[-1]), labels, decision, probability, level))

    @property
    def n_inputs(self) -> int:
        """Columns of the matrix."""
        return int(self.weights[0].shape[1])

    @property
    def n_scores(self) -> int:
        """Number K of scores."""
        return len(self.biases[-1])

    def score(self, x: ArrayLike) -> Floats:
        """Return the scores, (n,) if there is one and (n, K) else, layer by layer in the library's width."""
        h = matrix_of("ReluNetwork.score", x, self.n_inputs, exactly=True).astype(self.dtype)
        for w, b, activation in zip(self.weights, self.biases, (*self.activations, "identity"), strict=True):
            h = h @ w.T.astype(self.dtype) + b.astype(self.dtype)
            if activation == "relu":
                np.maximum(h, 0.0, out=h)
        scores = h.astype(np.float64)
        return np.asarray(scores[:, 0] if self.n_scores == 1 else scores)

r"""Representations: what a fitted model computes, in the library's own arithmetic, as plain arrays.

A representation maps a matrix ``X`` (n, m) to ``K`` scores per row and the scores to a label or value. Here are the
linear one and that of trees (networks are in ``relu_network.py``, models of models in ``predictor.py``):

.. math::
    s(x) = W x + b \qquad\text{and}\qquad s(x) = \bigl(b + \textstyle\sum_t v_t(\mathrm{leaf}_t(x))\bigr) / D .

How scores become a prediction and a probability is their head's matter (``decision_rule.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ceopt.formulations.predictors.embed.trees.stacked import StackedTrees
from ceopt.formulations.predictors.representation.decision_rule import (
    AbstractRepresentation,
    Decision,
    Head,
    Probability,
    matrix_of,
    one_of,
    set_frozen,
)
from ceopt.formulations.predictors.representation.tree import Floats, Tree, as_numbers
from ceopt.solvers.errors import InvalidValueError

__all__ = ["WIDTHS", "Affine", "Tree", "TreeEnsemble"]

#: Float widths in which libraries compute.
WIDTHS: Final = ("float32", "float64")


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


@final
@dataclass(frozen=True, slots=True, eq=False)
class TreeEnsemble(AbstractRepresentation):
    r"""Scores that add up one leaf per tree: ``s = (base + sum of the leaves' values, trees in order) / divisor``.

    Parameters
    ----------
    trees
        :class:`Tree` objects or nested mappings ``{feature, threshold, left, right}`` / ``{value: number or list}``.
    base
        Start of the sum: a number, or one per score; kept as (K,).
    right_gap
        Only for published instances: their programs state the right branch as ``x >= threshold + right_gap``. The
        scores here do not depend on it, and readers never set it.
    labels
        None for a regressor. Two labels for one score, else K labels.
    divisor
        Number of trees of a forest, whose score is a mean.
    input_dtype
        Float width to which the library casts its input before it compares with the float64 thresholds.
    sum_dtype
        Float width in which the library adds up base and leaves.
    decision, probability, level
        See ``decision_rule.py``. By default "value", "positive" or "argmax", no probability, and 0.
    n_inputs
        Columns of the matrix; by default up to the last one that a tree compares.

    Raises
    ------
    InvalidValueError
        No tree, a tree that is not one, NaN or infinite numbers, or numbers of scores, columns or labels that differ.

    Examples
    --------
    >>> stump = {"feature": 0, "threshold": 0.5, "left": {"value": -1.0}, "right": {"value": 2.0}}
    >>> TreeEnsemble([stump, stump], base=1.0).score([[0.5], [0.6]]).tolist()
    [-1.0, 5.0]
    """

    trees: tuple[Tree, ...]
    base: Floats
    right_gap: float | None
    divisor: float
    input_dtype: str
    sum_dtype: str
    head: Head
    width: int
    _stacked: StackedTrees = field(repr=False)

    def __init__(
        self,
        trees: Iterable[Tree | Mapping[str, Any]],
        base: ArrayLike = 0.0,
        *,
        right_gap: float | None = None,
        labels: Iterable[Any] | None = None,
        divisor: float = 1,
        input_dtype: str = "float64",
        sum_dtype: str = "float64",
        decision: Decision | None = None,
        probability: Probability | None = None,
        level: float = 0.0,
        n_inputs: int | None = None,
    ) -> None:
        who = "TreeEnsemble"
        read = tuple(tree if isinstance(tree, Tree) else Tree.from_mapping(tree) for tree in trees)
        widths = sorted({tree.n_scores for tree in read})
        if len(widths) != 1:
            raise InvalidValueError(
                who, "trees with as many values at each leaf", f"they have {widths}", "Give at least one tree."
            )
        used = 1 + max(int(tree.feature.max()) for tree in read)
        if n_inputs is not None and n_inputs < used:
            raise InvalidValueError(
                who, f"features below n_inputs {n_inputs}", f"a split has feature {used - 1}", "Count columns from 0."
            )
        b = np.atleast_1d(as_numbers(who, "base", base))
        if b.ndim != 1 or len(b) not in (1, widths[0]):
            raise InvalidValueError(
                who, f"one base or {widths[0]}, one per score", f"base has shape {b.shape}", "Match the leaves."
            )
        for name, number in (("right_gap", right_gap), ("divisor", divisor)):
            if number is not None and not 0 < number < np.inf:
                raise InvalidValueError(who, f"a positive {name}", f"{name} is {number}", "Give one above 0.")
        set_frozen(self, trees=read, base=np.broadcast_to(b, widths[0]).copy(), right_gap=right_gap, divisor=divisor)
        set_frozen(self, input_dtype=one_of(who, "input_dtype", str(np.dtype(input_dtype)), WIDTHS))
        set_frozen(self, sum_dtype=one_of(who, "sum_dtype", str(np.dtype(sum_dtype)), WIDTHS))
        set_frozen(self, width=used if n_inputs is None else n_inputs, _stacked=StackedTrees(read))
        set_frozen(self, head=Head.checked(who, widths[0], labels, decision, probability, level))

    @property
    def n_inputs(self) -> int:
        """Columns of the matrix."""
        return self.width

    @property
    def n_scores(self) -> int:
        """Number K of scores."""
        return len(self.base)

    def seen(self, x: ArrayLike) -> Floats:
        """Return the matrix as the splits see it: rounded to ``input_dtype``, held in float64 for the comparison."""
        matrix = matrix_of("TreeEnsemble", x, self.n_inputs, exactly=False)
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(matrix.astype(self.input_dtype).astype(np.float64))

    def apply(self, x: ArrayLike) -> NDArray[np.intp]:
        """Return the node of the leaf reached in each tree, (n, trees)."""
        return self._stacked.apply(self.seen(x))

    def score(self, x: ArrayLike) -> Floats:
        """Return the scores, (n,) if there is one and (n, K) else, added up in the library's order."""
        total = self._stacked.sums(self.seen(x), self.base, self.sum_dtype) / self.divisor
        return total[:, 0] if self.n_scores == 1 else total

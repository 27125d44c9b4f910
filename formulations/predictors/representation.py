r"""What a fitted model computes, in the library's own arithmetic, as plain arrays.

A representation maps a matrix ``X`` (n, m) to ``K`` scores per row and the scores to a label or value. Two exist:

.. math::
    s(x) = W x + b \qquad\text{and}\qquad s(x) = \bigl(b + \textstyle\sum_t v_t(\mathrm{leaf}_t(x))\bigr) / D .

=========== ======== =========================================================================
decision    K        prediction
=========== ======== =========================================================================
value       1        the score itself (a regressor)
positive    1        ``labels[1]`` if the score is > 0, else ``labels[0]``
nonnegative 1        ``labels[1]`` if the score is >= 0, else ``labels[0]``
argmax      >= 2     the label of the largest score, the first of them on ties
=========== ======== =========================================================================

``probability`` is None, ``"logistic"`` (one score; ``labels[1]`` has probability ``1 / (1 + exp(-s))``) or ``"share"``
(the K scores are the probabilities of the K labels).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ceopt.formulations.predictors.stacked import StackedTrees
from ceopt.formulations.predictors.tree import Floats, Tree, as_numbers
from ceopt.solvers.errors import InvalidValueError, UnknownNameError

__all__ = ["Affine", "Decision", "Probability", "Representation", "Tree", "TreeEnsemble"]

Decision: TypeAlias = Literal["value", "positive", "nonnegative", "argmax"]
Probability: TypeAlias = Literal["logistic", "share"]
_DECISIONS = ("value", "positive", "nonnegative", "argmax")
_WIDTHS = ("float32", "float64")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    r"""Scores that are affine in the columns: ``s = W x + b``.

    Parameters
    ----------
    weights
        ``(d,)`` for one score or ``(K, d)``; kept as (K, d) float64.
    intercept
        A number, or one per score; kept as (K,).
    labels
        None for a regressor. Two labels for one score (favourable score, second label), else K labels.
    decision, probability
        See the module. By default "value", "positive" or "argmax", and no probability.
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
    labels: tuple[Any, ...] | None
    decision: Decision
    probability: Probability | None
    dtype: str

    def __init__(
        self,
        weights: ArrayLike,
        intercept: ArrayLike,
        *,
        labels: Iterable[Any] | None = None,
        decision: Decision | None = None,
        probability: Probability | None = None,
        dtype: str = "float64",
    ) -> None:
        w = np.atleast_2d(as_numbers("Affine", "weights", weights))
        b = np.atleast_1d(as_numbers("Affine", "intercept", intercept))
        if w.ndim != 2 or w.shape[0] == 0 or b.ndim != 1 or len(b) not in (1, len(w)):
            raise InvalidValueError(
                "Affine", "weights (d,) or (K, d) and one intercept per score",
                f"weights are {w.shape} and intercept {b.shape}", "Give one row of weights per score.",
            )  # fmt: skip
        _set(self, weights=w, intercept=np.broadcast_to(b, len(w)).copy())
        _set(self, dtype=_one_of("Affine", "dtype", dtype, _WIDTHS))
        _head(self, "Affine", len(w), labels, decision, probability)

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
        matrix = _matrix("Affine.score", x, self.n_inputs, exactly=True).astype(self.dtype)
        scores = (matrix @ self.weights.T.astype(self.dtype) + self.intercept.astype(self.dtype)).astype(np.float64)
        return np.asarray(scores[:, 0] if self.n_scores == 1 else scores)

    def predict(self, x: ArrayLike) -> NDArray[Any]:
        """Return the labels, or the values of a regressor, (n,)."""
        return _decide(self, self.score(x))


@final
@dataclass(frozen=True, slots=True, eq=False)
class TreeEnsemble:
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
    decision, probability
        See the module. By default "value", "positive" or "argmax", and no probability.
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
    labels: tuple[Any, ...] | None
    divisor: float
    input_dtype: str
    decision: Decision
    probability: Probability | None
    n_inputs: int
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
        decision: Decision | None = None,
        probability: Probability | None = None,
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
        _set(self, trees=read, base=np.broadcast_to(b, widths[0]).copy(), right_gap=right_gap, divisor=divisor)
        _set(self, input_dtype=_one_of(who, "input_dtype", str(np.dtype(input_dtype)), _WIDTHS))
        _set(self, n_inputs=used if n_inputs is None else n_inputs, _stacked=StackedTrees(read))
        _head(self, who, widths[0], labels, decision, probability)

    @property
    def n_scores(self) -> int:
        """Number K of scores."""
        return len(self.base)

    def seen(self, x: ArrayLike) -> Floats:
        """Return the matrix as the splits see it: rounded to ``input_dtype``, held in float64 for the comparison."""
        matrix = _matrix("TreeEnsemble", x, self.n_inputs, exactly=False)
        with np.errstate(over="ignore", under="ignore"):
            return matrix.astype(self.input_dtype).astype(np.float64)

    def apply(self, x: ArrayLike) -> NDArray[np.intp]:
        """Return the node of the leaf reached in each tree, (n, trees)."""
        return self._stacked.apply(self.seen(x))

    def score(self, x: ArrayLike) -> Floats:
        """Return the scores, (n,) if there is one and (n, K) else, added up in the library's order."""
        total = self._stacked.sums(self.seen(x), self.base) / self.divisor
        return total[:, 0] if self.n_scores == 1 else total

    def predict(self, x: ArrayLike) -> NDArray[Any]:
        """Return the labels, or the values of a regressor, (n,)."""
        return _decide(self, self.score(x))


Representation: TypeAlias = Affine | TreeEnsemble


def _decide(model: Representation, score: Floats) -> NDArray[Any]:
    if model.labels is None:
        return score
    match model.decision:
        case "positive":
            winner = (score > 0).astype(np.intp)
        case "nonnegative":
            winner = (score >= 0).astype(np.intp)
        case _:
            winner = np.argmax(score, axis=1)
    return label_array(model.labels)[winner]


def label_array(labels: Sequence[Any]) -> NDArray[Any]:
    """Return labels as an array of their own common type, or of objects where they have none."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _head(  # noqa: PLR0917
    model: Representation,
    who: str,
    n_scores: int,
    labels: Iterable[Any] | None,
    decision: Decision | None,
    probability: Probability | None,
) -> None:
    """Check and set what turns scores into labels."""
    named = None if labels is None else tuple(labels)
    needed = 2 if n_scores == 1 else n_scores
    if named is None and n_scores > 1:
        raise InvalidValueError(
            who, "labels for several scores", f"labels is None with {n_scores} scores", "Name one label per score."
        )
    if named is not None and (len(named) != needed or len(set(named)) != needed):
        raise InvalidValueError(
            who, f"{needed} different labels for {n_scores} score(s)", f"labels is {named!r}",
            "Give two labels for one score, else one label per score.",
        )  # fmt: skip
    fitting = ("value",) if named is None else ("positive", "nonnegative") if n_scores == 1 else ("argmax",)
    chosen = fitting[0] if decision is None else decision
    fits = (None,) if named is None else (None, "logistic") if n_scores == 1 else (None, "share")
    _set(model, labels=named, decision=_one_of(who, "decision", chosen, fitting))
    if probability not in fits:
        raise InvalidValueError(
            who, f"a probability among {fits}", f"probability is {probability!r}", "See the table of decisions."
        )
    _set(model, probability=probability)


def _set(model: Representation, **fields: Any) -> None:
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(model, name, value)


def _one_of(who: str, what: str, name: str, choices: Sequence[str]) -> str:
    if name not in choices:
        raise UnknownNameError.among(who, what, name, choices)
    return name


def _matrix(who: str, x: ArrayLike, n_inputs: int, *, exactly: bool) -> Floats:
    matrix = as_numbers(who, "X", x)
    wide = matrix.shape[1] if matrix.ndim == 2 else -1
    if wide < n_inputs or (exactly and wide != n_inputs):
        raise InvalidValueError(
            who, f"a matrix with {n_inputs} columns", f"X has shape {matrix.shape}", "Give one row per person."
        )
    return matrix

r"""What a fitted model computes: scores of the rows of a matrix, and the decision rule that ends every representation.

Linear models and feed-forward networks with ReLU layers stand here as plain arrays; a linear model has one layer:

.. math::
    h_0 = x, \qquad h_i = \max(0, W_i h_{i-1} + b_i) \quad (i < L), \qquad s = W_L h_{L-1} + b_L .
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, Literal, Protocol, TypeAlias, final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from ceopt.formulations.space.encoding import last_true
from ceopt.solvers.checks import Floats
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

# ==== The decision rule: scores become a prediction and a probability, the last step of every representation ==========

Decision: TypeAlias = Literal["value", "positive", "nonnegative", "argmax", "argmax_last"]
#: A level of this size, the largest float64, belongs to a label that no score has.
NEVER: Final = float(np.finfo(np.float64).max)
#: Float widths in which libraries compute.
WIDTHS: Final = ("float32", "float64")


class Link(Protocol):
    """A probability as a function of one score: non-decreasing, elementwise, in the library's own arithmetic."""

    def __call__(self, scores: Floats) -> Floats:
        """Return the probability of the second label at each score."""
        ...


Probability: TypeAlias = Literal["logistic", "identity", "share"] | Link
_LINKS: Final = {"logistic": expit, "identity": np.asarray}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """The decision rule that ends a representation: labels, decision and probability of K scores.

    ============ ======== =========================================================================
    decision     K        prediction
    ============ ======== =========================================================================
    value        1        the score itself (a regressor)
    positive     1        ``labels[1]`` if the score is > ``level``, else ``labels[0]``
    nonnegative  1        ``labels[1]`` if the score is >= ``level``, else ``labels[0]``
    argmax       >= 2     the label of the largest score, the first of them on ties
    argmax_last  >= 2     the label of the largest score, the last of them on ties
    ============ ======== =========================================================================

    ============ ======== =========================================================================
    probability  K        meaning
    ============ ======== =========================================================================
    None                  the scores give no probability
    logistic     1        ``labels[1]`` has probability ``1 / (1 + exp(-s))``
    identity     1        the score is the probability of ``labels[1]``
    a `Link`     1        ``labels[1]`` has probability ``link(s)``, non-decreasing in the score
    share        >= 2     the K scores are the probabilities of the K labels
    ============ ======== =========================================================================

    Raises
    ------
    InvalidValueError
        The number of labels does not fit that of the scores, or decision or probability does not fit both.
    """

    labels: tuple[Any, ...] | None
    decision: Decision
    probability: Probability | None
    level: float

    @classmethod
    def checked(  # noqa: PLR0917 - called with all of them, in this order
        cls,
        who: str,
        n_scores: int,
        labels: Iterable[Any] | None,
        decision: Decision | None = None,
        probability: Probability | None = None,
        level: float = 0.0,
    ) -> Head:
        """Return the head of a representation ``who``; decision None is "value", "positive" or "argmax"."""
        named = None if labels is None else tuple(labels)
        needed = max(n_scores, 2)
        if named is None and n_scores > 1:
            raise InvalidValueError(
                who, "labels for several scores", f"labels is None with {n_scores} scores", "Name one label per score."
            )
        if named is not None and (len(named) != needed or len(set(named)) != needed):
            raise InvalidValueError(
                who, f"{needed} different labels for {n_scores} score(s)", f"labels is {named!r}",
                "Give two labels for one score, else one label per score.",
            )  # fmt: skip
        one = named is not None and n_scores == 1
        fitting: tuple[str, ...] = ("value",)
        fits: tuple[str | None, ...] = (None,)
        if one:
            fitting = ("positive", "nonnegative")
            fits = (None, "logistic", "identity")
        elif named is not None:
            fitting = ("argmax", "argmax_last")
            fits = (None, "share")
        chosen: Any = one_of(who, "decision", fitting[0] if decision is None else decision, fitting)
        if probability not in fits and not (one and callable(probability)):
            raise InvalidValueError(
                who, f"a probability among {fits}", f"probability is {probability!r}", "See the table of decisions."
            )
        if not math.isfinite(level) or (level != 0.0 and not one):
            raise InvalidValueError(
                who, "a finite level, 0 unless two labels share one score", f"level is {level!r}", "Give level=0."
            )
        return cls(named, chosen, probability, float(level))

    def decide(self, score: Floats) -> NDArray[Any]:
        """Return the label, or a regressor's value, of each row's scores (n,) or (n, K)."""
        if self.labels is None:
            return score
        return label_array(self.labels)[self.positions(score)]

    def positions(self, score: Floats) -> NDArray[np.intp]:
        """Return the position of the label that each row's scores give, (n,)."""
        match self.decision:
            case "positive":
                return (score > self.level).astype(np.intp)
            case "nonnegative":
                return (score >= self.level).astype(np.intp)
            case "argmax_last":
                return np.asarray(score.shape[1] - 1 - np.argmax(score[:, ::-1], axis=1))
            case _:
                return np.asarray(np.argmax(score, axis=1))

    def wins_ties(self, label: int, rival: int) -> bool:
        """Return whether a label wins over another where neither has the larger score, by their positions."""
        match self.decision:
            case "positive" | "argmax":
                return label < rival
            case _:
                return label > rival

    def of_position(self, score: Floats, position: int) -> Floats:
        """Return the probability of the label at ``position`` for each row's scores; of two, the first has the rest."""
        link: Any = self.probability
        if link == "share":
            return np.asarray(score[:, position])
        assert link is not None  # noqa: S101 - the caller has checked
        if not callable(link):
            link = _LINKS[link]
        return _share_of(link, position, score)


class AbstractRepresentation(ABC):
    """What a fitted model computes: scores of the rows of a matrix, and a head that turns them into predictions."""

    __slots__ = ()

    head: Head
    #: Names of the raw columns that it reads, where it says so.
    columns: tuple[str, ...] | None

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """Columns of the matrix."""

    @property
    @abstractmethod
    def n_scores(self) -> int:
        """Number K of scores."""

    @abstractmethod
    def score(self, x: ArrayLike) -> Floats:
        """Return the scores of the rows of a matrix, (n,) if there is one and (n, K) else."""

    def predict(self, x: ArrayLike) -> NDArray[Any]:
        """Return the labels, or the values of a regressor, (n,)."""
        return self.head.decide(self.score(x))

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """Class labels in the model's own order; None for a regressor."""
        return self.head.labels

    @property
    def decision(self) -> Decision:
        """How scores become a label."""
        return self.head.decision

    @property
    def probability(self) -> Probability | None:
        """How scores become a probability."""
        return self.head.probability

    @property
    def level(self) -> float:
        """The score at which one of two labels gives way to the other."""
        return self.head.level

    def against(self, label: int, rival: int) -> tuple[list[float], float]:
        """Return the weights of the scores, and the level that their sum has to reach for a label to beat a rival."""
        if self.n_scores == 1:
            sign = sign_of(label)
            return [sign], sign * self.level
        weights = [0.0] * self.n_scores
        weights[rival] = -1.0
        weights[label] = 1.0
        return weights, 0.0


def sign_of(position: int) -> float:
    """Return 1 for the second of two labels that share a score, which rises with it, and -1 for the first."""
    return 1.0 if position == 1 else -1.0


def score_needed(probability: Probability | None, position: int, at_least: float) -> float:
    """Return the least signed score (the score for position 1, its negative for 0) with probability ``at_least``.

    inf where no score has it, -inf where all have.
    """
    if callable(probability):
        link: Any = probability  # mypy does not know that objects which are callable can be keys
        return _score_of_link(link, position, at_least)
    match probability:
        case "logistic":
            return math.log(at_least / (1.0 - at_least))
        case "identity":
            return at_least - (1.0 - position)
        case _:
            raise AssertionError  # one score with a probability, as the caller has checked


@lru_cache(maxsize=64)  # it takes a hundred calls of the library, and searches ask for it all the time
def _score_of_link(link: Any, position: int, at_least: float) -> float:
    if position == 1:
        last = float(last_true(lambda scores: _share_of(link, 1, scores) < at_least))
        return last if math.isinf(last) else math.nextafter(last, math.inf)
    return -float(last_true(lambda scores: _share_of(link, 0, scores) >= at_least))


def _share_of(link: Any, position: int, scores: Floats) -> Floats:
    """Return the probability of a label in the float width in which its link computes: 1 - p is rounded as well."""
    share = link(scores)
    if position != 1:
        share = 1.0 - share
    return np.asarray(share, dtype=np.float64)


def label_array(labels: Sequence[Any]) -> NDArray[Any]:
    """Return labels as an array of their own common type, or of objects where they have none."""
    kinds = set(map(type, labels))
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def one_of(who: str, what: str, name: str, choices: Sequence[str]) -> str:
    """Return a name that is among the choices, or refuse it."""
    if name not in choices:
        raise UnknownNameError.among(who, what, name, choices)
    return name


def matrix_of(
    who: str, x: Any, n_inputs: int, *, exactly: bool, gaps: bool = False, columns: tuple[str, ...] | None = None
) -> Any:
    """Return a matrix of finite numbers with ``n_inputs`` columns (or more unless ``exactly``), or refuse it.

    A sparse one stays sparse. With ``gaps`` it may hold NaN. Of a frame the ``columns`` count, where they are named.
    """
    matrix: Any = x
    if columns is not None and isinstance(x, pd.DataFrame):
        for name in columns:
            if name not in x.columns:
                raise UnknownNameError.among(who, "column", name, tuple(x.columns))
        x = x[list(columns)]
    if not sp.issparse(x):  # a sparse one was made by an encoding, whose numbers are finite
        matrix = as_numbers(who, "X", x, gaps=gaps)
    wide = matrix.shape[1] if matrix.ndim == 2 else -1
    if wide < n_inputs or (exactly and wide != n_inputs):
        raise InvalidValueError(
            who, f"a matrix with {n_inputs} columns", f"X has shape {matrix.shape}", "Give one row per person."
        )
    return matrix


def named_columns(who: str, names: Iterable[str] | None, n_inputs: int) -> tuple[str, ...] | None:
    """Return the names of the columns that a representation reads, as many as it has inputs, or refuse them."""
    if names is None:
        return None
    named = tuple(names)
    if isinstance(names, str) or len(named) != n_inputs or len(set(named)) != n_inputs:
        raise InvalidValueError(
            who, f"{n_inputs} different column names, one per input", f"columns is {names!r}", "Name one per input."
        )
    return named


def of_one(scores: Floats) -> Floats:
    """Return scores (n, K) as they are, and one score per row as (n,)."""
    if scores.shape[1] == 1:
        scores = scores[:, 0]
    return np.asarray(scores)


def set_frozen(representation: AbstractRepresentation, **fields: Any) -> None:
    """Set fields of a frozen representation in its constructor; arrays become read-only."""
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(representation, name, value)


def with_head(representation: AbstractRepresentation, head: Head) -> AbstractRepresentation:
    """Return a representation of the same scores with another head for as many."""
    same = copy.copy(representation)
    set_frozen(same, head=head)
    return same


def as_numbers(who: str, what: str, given: ArrayLike, *, gaps: bool = False) -> Floats:
    """Return finite numbers, and with ``gaps`` NaN, as float64, or refuse them in the name of ``who``."""
    try:
        numbers = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTypeError(who, f"numbers as {what}", f"{what} is {given!r}", "Give an array of numbers.") from None
    refuse_infinite(who, what, numbers, gaps=gaps)
    return numbers


def refuse_infinite(who: str, what: str, numbers: Floats, *, gaps: bool = False) -> None:
    """Raise if a number is infinite or, unless ``gaps`` are a value like others, NaN."""
    bad = numbers[np.isinf(numbers) if gaps else ~np.isfinite(numbers)]
    if bad.size:
        raise InvalidValueError(who, f"finite {what}", f"{what} has {bad.flat[0]}", "Remove NaN and infinity.")


# ==== Linear models and feed-forward networks with ReLU layers, as plain arrays =======================================

Activation: TypeAlias = Literal["relu", "identity"]
#: Weights (n, m) and constants (n,).
Layer: TypeAlias = tuple[Floats, Floats]


class AbstractLayers(AbstractRepresentation):
    """Scores of affine layers, one after the other; a linear model has one.

    Attributes
    ----------
    dtype
        Float width in which the library computes.
    """

    __slots__ = ()

    dtype: str

    @property
    @abstractmethod
    def layers(self) -> tuple[Layer, ...]:
        """Weights (out, in) and constants (out,) of each layer."""

    @property
    def between(self) -> tuple[Activation, ...]:
        """What follows each layer but the last."""
        return ()

    @property
    def n_inputs(self) -> int:
        """Columns of the matrix."""
        return int(self.layers[0][0].shape[1])

    @property
    def n_scores(self) -> int:
        """Number K of scores."""
        return len(self.layers[-1][1])

    @property
    def reads(self) -> NDArray[np.bool_]:
        """Which columns of the matrix have a weight, (m,)."""
        return np.asarray((self.layers[0][0] != 0.0).any(axis=0))

    def score(self, x: ArrayLike) -> Floats:
        """Return the scores, (n,) if there is one and (n, K) else, layer by layer in the library's width."""
        h = matrix_of(f"{type(self).__name__}.score", x, self.n_inputs, exactly=True, columns=self.columns)
        h = h.astype(self.dtype)
        for (w, b), activation in zip(self.layers, (*self.between, "identity"), strict=True):
            h = h @ w.T.astype(self.dtype) + b.astype(self.dtype)
            if activation == "relu":
                np.maximum(h, 0.0, out=h)
        return of_one(h.astype(np.float64))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Affine(AbstractLayers):
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
        See :class:`Head`. By default "value", "positive" or "argmax", no probability, and 0.
    dtype
        Float width in which the library adds up (float64 unless both its weights and its input are float32).
    columns
        Names of the raw columns that it reads, in the order of its inputs; by default all of a space, in its order.

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
    columns: tuple[str, ...] | None

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
        columns: Iterable[str] | None = None,
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
        set_frozen(self, columns=named_columns("Affine", columns, w.shape[1]))

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Its weights and intercepts."""
        return ((self.weights, self.intercept),)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ReluNetwork(AbstractLayers):
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
        See :class:`Head`. The score is that of the last layer, before its link.
    dtype
        Float width in which the library computes.
    columns
        Names of the raw columns that it reads, in the order of its inputs; by default all of a space, in its order.

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
    columns: tuple[str, ...] | None

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
        columns: Iterable[str] | None = None,
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
        set_frozen(self, columns=named_columns(who, columns, w[0].shape[1]))

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The weights and biases of each layer."""
        return tuple(zip(self.weights, self.biases, strict=True))

    @property
    def between(self) -> tuple[Activation, ...]:
        """Its activations."""
        return self.activations

r"""The decision rule: scores become a prediction and a probability, the last step of every representation.

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
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, Protocol, TypeAlias, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from ceopt.formulations.space.encoding import last_true
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

__all__ = [
    "NEVER",
    "WIDTHS",
    "AbstractRepresentation",
    "Decision",
    "Floats",
    "Head",
    "Link",
    "Probability",
    "as_numbers",
    "label_array",
    "matrix_of",
    "one_of",
    "refuse_infinite",
    "score_needed",
    "set_frozen",
    "with_head",
]

Decision: TypeAlias = Literal["value", "positive", "nonnegative", "argmax", "argmax_last"]
#: A level of this size, the largest float64, belongs to a label that no score has.
NEVER: Final = float(np.finfo(np.float64).max)
Floats: TypeAlias = NDArray[np.float64]
#: Float widths in which libraries compute.
WIDTHS: Final = ("float32", "float64")


class Link(Protocol):
    """A probability as a function of one score: non-decreasing, elementwise, in the library's own arithmetic."""

    def __call__(self, scores: Floats) -> Floats:
        """Return the probability of the second label at each score."""
        ...


Probability: TypeAlias = Literal["logistic", "identity", "share"] | Link


@final
@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """Labels, decision and probability of K scores; see the module.

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
        return score if self.labels is None else label_array(self.labels)[self.positions(score)]

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
        """Whether a label wins over another where neither has the larger score, by their positions."""
        match self.decision:
            case "positive" | "argmax":
                return label < rival
            case _:
                return label > rival

    def of_position(self, score: Floats, position: int) -> Floats:
        """Return the probability of the label at ``position`` for each row's scores; of two, the first has the rest."""
        probability = self.probability
        if probability == "share":
            return np.asarray(score[:, position])
        assert probability is not None  # noqa: S101 - the caller has checked
        if callable(probability):
            return _share_of(probability, position, score)
        return _share_of(expit if probability == "logistic" else np.asarray, position, score)


class AbstractRepresentation(ABC):
    """What a fitted model computes: scores of the rows of a matrix, and a head that turns them into predictions."""

    __slots__ = ()

    head: Head

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
            return at_least if position == 1 else at_least - 1.0
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
    second = link(scores)
    return np.asarray(second if position == 1 else 1.0 - second, dtype=np.float64)


def label_array(labels: Sequence[Any]) -> NDArray[Any]:
    """Return labels as an array of their own common type, or of objects where they have none."""
    kinds = {type(label) for label in labels}
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


def matrix_of(who: str, x: Any, n_inputs: int, *, exactly: bool) -> Any:
    """Return a matrix of finite numbers with ``n_inputs`` columns (or more unless ``exactly``), or refuse it.

    A sparse one stays sparse.
    """
    if sp.issparse(x):  # made by an encoding, whose numbers are finite
        matrix: Any = x
    else:
        matrix = as_numbers(who, "X", x)
    wide = matrix.shape[1] if matrix.ndim == 2 else -1
    if wide < n_inputs or (exactly and wide != n_inputs):
        raise InvalidValueError(
            who, f"a matrix with {n_inputs} columns", f"X has shape {matrix.shape}", "Give one row per person."
        )
    return matrix


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


def as_numbers(who: str, what: str, given: ArrayLike) -> Floats:
    """Return finite numbers as float64, or refuse them in the name of ``who``."""
    try:
        numbers = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTypeError(who, f"numbers as {what}", f"{what} is {given!r}", "Give an array of numbers.") from None
    refuse_infinite(who, what, numbers)
    return numbers


def refuse_infinite(who: str, what: str, numbers: Floats) -> None:
    """Raise if a number is NaN or infinite."""
    bad = numbers[~np.isfinite(numbers)]
    if bad.size:
        raise InvalidValueError(who, f"finite {what}", f"{what} has {bad.flat[0]}", "Remove NaN and infinity.")

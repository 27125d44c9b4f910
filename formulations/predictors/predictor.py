r"""Fitted models as ceopt holds them: raw columns, through an encoding, into a representation; and models of models.

.. math::
    s = \Bigl(b + \textstyle\sum_i W_i\, o_i(x)\Bigr) / D, \qquad
    o_i = \text{scores of member } i \quad\text{or, with votes,}\quad o_{ij} = [\text{member } i \text{ decides } j].

Members of a combination read the raw columns each through an encoding of its own, so the matrix of a combination is
that of the raw coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ceopt.formulations.predictors.representation import (
    AbstractLayers,
    AbstractRepresentation,
    Affine,
    Decision,
    Head,
    Probability,
    ReluNetwork,
    as_numbers,
    matrix_of,
    of_one,
    set_frozen,
)
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.encoding import Column, Encoding, levels_without_a_value
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.checks import Floats
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import InvalidValueError, UnsupportedModelError

#: Entries of a wide matrix that are held at once.
_ENTRIES = 2**22
_UNSEEN: WeakKeyDictionary[Predictor, dict[str, frozenset[int]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Predictor:
    r"""``s(\phi(x))``: the score of a representation ``s`` on the matrix that an encoding ``phi`` makes of raw rows.

    Parameters
    ----------
    core
        What the estimator computes.
    encoding
        What the estimator sees of the raw columns.
    model
        The user's own object. Nothing here predicts with it; verification does.
    space
        The raw columns.

    Raises
    ------
    UnsupportedModelError
        The encoding makes another number of columns than the representation reads, or clips a column that an affine
        score reads (the score would not be affine in the raw column).
    """

    core: AbstractRepresentation
    encoding: Encoding
    model: Any
    space: FeatureSpace

    def __post_init__(self) -> None:
        columns = self.encoding.columns
        needed = self.core.n_inputs
        self._check_gaps()
        if len(columns) < needed or (len(columns) != needed and not isinstance(self.core, TreeEnsemble)):
            raise UnsupportedModelError(
                "The model", f"{needed} columns", f"the space gives {len(columns)}",
                f"Describe every column that the model was fitted on; the space has: {', '.join(self.space.names)}.",
            )  # fmt: skip
        if isinstance(self.core, AbstractLayers):
            for column, used in zip(columns, self.core.reads.tolist(), strict=True):
                if used and not column.is_affine:
                    raise UnsupportedModelError(
                        "A model that is linear in its columns", "columns that are not clipped",
                        f"MinMaxScaler or MaxAbsScaler clips {column.feature!r}",
                        "Fit the scaler with clip=False and bound the column in the space instead.",
                    )  # fmt: skip

    def _check_gaps(self) -> None:
        """Refuse a column that may be missing, that nothing fills in and that the representation takes no NaN of."""
        if isinstance(self.core, TreeEnsemble) and self.core.takes_missing:
            return
        may_be_missing = {feature.name for feature in self.space if feature.missing is not False}
        for column in self.encoding.columns:
            if column.passes_gaps and column.feature in may_be_missing:
                raise gap_error(name_of(self.model), column.feature)

    @property
    def parts(self) -> tuple[Predictor, ...]:
        """The models that it is made of: itself, or the parts of a combination's members."""
        if isinstance(self.core, Combination):
            return tuple(part for member in self.core.members for part in member.parts)
        return (self,)

    @property
    def forests(self) -> tuple[Predictor, ...]:
        """Those of its parts that are trees."""
        return tuple(part for part in self.parts if isinstance(part.core, TreeEnsemble))

    @property
    def is_linear(self) -> bool:
        """Whether its scores are affine in the columns."""
        return isinstance(self.core, Affine)

    @property
    def is_trees(self) -> bool:
        """Whether its scores are constant on cells of the space: trees, or combinations of nothing but trees."""
        return len(self.forests) == len(self.parts)

    @property
    def has_ties(self) -> bool:
        """Whether equal scores are an outcome like any other: votes are counted, or trees' shares are compared."""
        core = self.core
        return isinstance(core, Combination) and (core.votes or (core.n_scores > 1 and self.is_trees))

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """Class labels in the model's own order; None for a regressor."""
        return self.core.labels

    @property
    def unseen(self) -> dict[str, frozenset[int]]:
        """Per column, the ranks of levels that the pipeline was not fitted on and fails on: no answer can hold them.

        Kept as long as the predictor lives.
        """
        if self not in _UNSEEN:
            _UNSEEN[self] = self._unseen()
        return _UNSEEN[self]

    def _unseen(self) -> dict[str, frozenset[int]]:
        ranks_of: dict[str, frozenset[int]] = {}
        for part in self.parts:
            for name, _, tables in part.encoding.tables:
                ranks = levels_without_a_value(tables)
                if len(ranks):
                    ranks_of[name] = ranks_of.get(name, frozenset()) | frozenset(ranks.tolist())
        return ranks_of

    def _check_levels(self, coordinates: ArrayLike) -> None:
        if not (isinstance(self.core, TreeEnsemble) and self.core.takes_missing):
            return  # which refuses NaN itself
        rows = np.asarray(coordinates, dtype=np.float64)
        for name, ranks in self.unseen.items():
            if np.isin(rows[:, self.space.names.index(name)], list(ranks)).any():
                raise InvalidValueError(
                    "TreeEnsemble", "levels that the model was fitted on", f"column {name!r} holds another",
                    "Remove the row.",
                )  # fmt: skip

    def score(self, coordinates: ArrayLike) -> NDArray[np.float64]:
        """Return the scores of rows given as coordinates (n, d) in the order of the space: (n,) or (n, K).

        A level that the pipeline fails on is refused, as the matrix holds NaN there, which may be no missing cell.
        """
        self._check_levels(coordinates)
        if not self.encoding.is_wide:
            return self.core.score(self.encoding.matrix(coordinates))
        if isinstance(self.core, AbstractLayers):
            return self.core.score(self.encoding.sparse_matrix(coordinates))
        rows = np.asarray(coordinates, dtype=np.float64)
        parts = np.array_split(rows, max(1, math.ceil(len(rows) * len(self.encoding.columns) / _ENTRIES)))
        scores = []
        for part in parts:
            checkpoint("scoring the data")
            scores.append(self.core.score(self.encoding.matrix(part)))
        return np.concatenate(scores)


def numbers_in(model: Predictor) -> int:
    """Return how many weights or nodes a model has."""
    count = 0
    for part in model.parts:
        core = part.core
        if isinstance(core, TreeEnsemble):
            count += sum(len(tree.feature) for tree in core.trees)
        elif isinstance(core, ReluNetwork):
            count += sum(weights.size for weights in core.weights)
        else:
            count += core.n_inputs * core.n_scores
    return count


def name_of(model: Any) -> str:
    """Return the class name of the estimator in a model: the last step of pipelines, the best of searches."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif type(model).__name__ == "Pipeline" and model.steps:
            model = model.steps[-1][1]
        else:
            return type(model).__name__


@final
class MissingCellsError(UnsupportedModelError):
    """A column may be missing, and the model, or a step before it, takes no missing cells."""


def gap_error(who: str, name: str) -> MissingCellsError:
    """Return the refusal of a column that may be missing, in the name of what takes no missing cells."""
    fill = "Put a SimpleImputer before it and fit it again"
    if who == "SimpleImputer":  # one that fills in another value than NaN
        fill = "Fit it again with missing_values=np.nan, on data that have NaN there"
    return MissingCellsError(
        who, "a value in every cell", f"column {name!r} may be missing and nothing fills it in",
        f"{fill}, or ask about whole rows alone: space.update({name!r}, missing=False).",
    )  # fmt: skip


@final
@dataclass(frozen=True, slots=True, eq=False)
class Combination(AbstractRepresentation):
    """Scores that add up what several models over the same space say.

    Parameters
    ----------
    members
        Models as they were read, over the same space.
    weights
        One (K, K_i) matrix per member: how its K_i scores (or, with votes, its decisions for each of its labels) enter
        the K scores.
    offset
        Start of the sum: a number, or one per score.
    votes
        Whether members' decisions count instead of their scores. All members are then classifiers.
    divisor
        What the sum is divided by, as in a mean.
    labels, decision, probability, level
        See ``representation.py``.
    """

    members: tuple[Predictor, ...]
    weights: tuple[Floats, ...]
    offset: Floats
    votes: bool
    divisor: float
    head: Head
    columns: tuple[str, ...] | None

    def __init__(
        self,
        members: Iterable[Predictor],
        weights: Sequence[ArrayLike],
        offset: ArrayLike = 0.0,
        *,
        votes: bool = False,
        divisor: float = 1.0,
        labels: Iterable[Any] | None = None,
        decision: Decision | None = None,
        probability: Probability | None = None,
        level: float = 0.0,
    ) -> None:
        who = "Combination"
        read = tuple(members)
        w = tuple(np.atleast_2d(as_numbers(who, "weights", part)) for part in weights)
        widths = [member.core.n_scores for member in read]
        if votes:
            widths = [len(member.core.labels or ()) for member in read]
        rows = {part.shape[0] for part in w}
        if not read or len(rows) != 1 or [part.shape[1] for part in w] != widths:
            raise InvalidValueError(
                who, f"weights (K, n) per member, n as in {widths}", f"they are {[part.shape for part in w]}",
                "Give a matrix per member.",
            )  # fmt: skip
        n_scores = rows.pop()
        b = np.broadcast_to(as_numbers(who, "offset", offset), n_scores).copy()
        for part in w:
            part.setflags(write=False)
        set_frozen(self, members=read, weights=w, offset=b, votes=votes, divisor=float(divisor), columns=None)
        set_frozen(self, head=Head.checked(who, n_scores, labels, decision, probability, level))

    @property
    def n_inputs(self) -> int:
        """Columns of the matrix: the raw ones."""
        return len(self.members[0].space)

    @property
    def n_scores(self) -> int:
        """Number K of scores."""
        return len(self.offset)

    def score(self, x: ArrayLike) -> Floats:
        """Return the scores of rows of coordinates, (n,) if there is one and (n, K) else, members in order."""
        coordinates = np.array(x, dtype=np.float64)
        matrix_of("Combination.score", np.where(coordinates == MISSING, 0.0, coordinates), self.n_inputs, exactly=True)
        total = np.tile(self.offset, (len(coordinates), 1))
        for member, weights in zip(self.members, self.weights, strict=True):
            scores = member.score(coordinates)
            if self.votes:
                scores = np.eye(weights.shape[1])[member.core.head.positions(scores)]
            elif scores.ndim == 1:
                scores = scores[:, None]
            total += scores @ weights.T
        total /= self.divisor
        return of_one(total)


def coordinate_encoding(space: FeatureSpace) -> Encoding:
    """Return the encoding whose matrix is the coordinates themselves: numbers, ranks of levels, and missing cells."""
    columns = []
    for f in space:
        if f.is_finite:
            columns.append(Column(f.name, table=tuple(map(float, range(len(f.levels)))), missing=MISSING))
        else:
            columns.append(Column(f.name, missing=MISSING))
    return Encoding(tuple(columns), tuple(space.names))

r"""Models of models: a weighted sum of members' scores, or of their votes.

.. math::
    s = \Bigl(b + \textstyle\sum_i W_i\, o_i(x)\Bigr) / D, \qquad
    o_i = \text{scores of member } i \quad\text{or, with votes,}\quad o_{ij} = [\text{member } i \text{ decides } j].

Members read the raw columns each through an encoding of its own, so the matrix of a combination is that of the raw
coordinates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike

from ceopt.formulations.predictors.representation.decision_rule import (
    AbstractRepresentation,
    Decision,
    Head,
    Probability,
    matrix_of,
    set_frozen,
)
from ceopt.formulations.predictors.representation.tree import Floats, as_numbers
from ceopt.formulations.space.encoding import Column, Encoding
from ceopt.solvers.errors import InvalidValueError

if TYPE_CHECKING:
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["Combination", "coordinate_encoding"]


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
        See ``head.py``.
    """

    members: tuple[Predictor, ...]
    weights: tuple[Floats, ...]
    offset: Floats
    votes: bool
    divisor: float
    head: Head

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
        read, w = tuple(members), tuple(np.atleast_2d(as_numbers(who, "weights", part)) for part in weights)
        widths = [len(m.core.labels or ()) if votes else m.core.n_scores for m in read]
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
        set_frozen(self, members=read, weights=w, offset=b, votes=votes, divisor=float(divisor))
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
        coordinates = matrix_of("Combination.score", x, self.n_inputs, exactly=True)
        total = np.tile(self.offset, (len(coordinates), 1))
        for member, weights in zip(self.members, self.weights, strict=True):
            scores = member.score(coordinates)
            if self.votes:
                said = np.eye(weights.shape[1])[member.core.head.positions(scores)]
            else:
                said = scores[:, None] if scores.ndim == 1 else scores
            total += said @ weights.T
        total /= self.divisor
        return np.asarray(total[:, 0] if self.n_scores == 1 else total)


def coordinate_encoding(space: FeatureSpace) -> Encoding:
    """Return the encoding whose matrix is the coordinates themselves: numbers, and ranks of levels."""
    columns = [
        Column(f.name, table=tuple(map(float, range(len(f.levels))))) if f.is_finite else Column(f.name) for f in space
    ]
    return Encoding(tuple(columns), tuple(space.names))

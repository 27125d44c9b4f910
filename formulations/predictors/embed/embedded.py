"""An embedded model: a Pyomo block whose scores are linear forms over a person's coordinates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyomo.environ as pyo
from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.linear_form import LinearForm
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns
    from ceopt.formulations.predictors.representation.predictor import Predictor

__all__ = ["AbstractEmbedded"]


class AbstractEmbedded(ScalarBlock):  # type: ignore[misc]  # Pyomo is untyped
    """A fitted model inside a program.

    Attributes
    ----------
    predictor
        What was embedded: representation, encoding and the user's own model.
    x
        The person's coordinates.
    score
        ``score[label]`` for a classifier (one score: that of the second label, and its negative for the first);
        ``score`` for a regressor. In the model's own units.
    """

    def __init__(self, predictor: Predictor, x: AbstractColumns, manifest: Manifest) -> None:
        super().__init__(concrete=True)
        # Held in tuples: Pyomo would otherwise adopt the block x as a child of this one.
        self._held = (predictor, x)
        describe(self, manifest)

    @property
    def predictor(self) -> Predictor:
        """What was embedded."""
        return self._held[0]

    @property
    def x(self) -> AbstractColumns:
        """The person's coordinates."""
        return self._held[1]

    @abstractmethod
    def combine(self, weights: Sequence[float]) -> LinearForm:
        """Return ``sum_k weights[k] * score_k`` over the representation's K scores."""

    @abstractmethod
    def range_of(self, weights: Sequence[float]) -> tuple[float, float]:
        """Return bounds of that combination over the reach; infinite where a column has no bound."""

    def place(self, point: Mapping[str, float]) -> None:
        """Set the block's own variables to those of a point (coordinates by column); most blocks have none."""

    def differs(self) -> LinearForm:
        """Return a form that is at least 1 where this block's own integer decisions differ from what they are now."""
        return LinearForm()

    def make_cells(self) -> None:
        """Put on the columns what is needed to tell all cells apart, where :meth:`differs` alone does not."""

    def other_leaves(self, point: Mapping[str, float]) -> LinearForm:
        """Return the number of trees whose leaf has other values than at a point; for models of trees alone."""
        del point
        raise AssertionError

    def publish_scores(self) -> None:
        """Name the scores once the block's variables exist."""
        core = self.predictor.core
        if core.labels is None:
            self.score = pyo.Expression(expr=self.combine((1.0,)).expression())
            return
        self.score = pyo.Expression(list(core.labels))
        if core.n_scores == 1:
            self.score[core.labels[0]] = self.combine((-1.0,)).expression()
            self.score[core.labels[1]] = self.combine((1.0,)).expression()
            return
        for k, label in enumerate(core.labels):
            self.score[label] = self.combine([1.0 if j == k else 0.0 for j in range(core.n_scores)]).expression()

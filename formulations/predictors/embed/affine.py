"""A linear model on the person's coordinates: no variables of its own, its scores are rows' bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import numpy as np

from ceopt.formulations.linear_form import LinearForm, total
from ceopt.formulations.predictors.embed.embedded import AbstractEmbedded
from ceopt.formulations.predictors.embed.inputs import Inputs
from ceopt.formulations.predictors.representation.affine import Affine
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns
    from ceopt.formulations.predictors.representation.predictor import Predictor

__all__ = ["EmbeddedAffine"]

_MANIFEST = Manifest(
    title="linear model",
    formula="score_k = sum_j w_kj * column_j(x) + b_k",
    reference="standard",
)


@final
class EmbeddedAffine(AbstractEmbedded):
    r"""Scores of a linear, logistic or linear support vector model.

    .. math::
        s_k = b_k + \sum_j w_{kj}\, \phi_j(x), \qquad \phi_j(x) = \alpha_j x + \beta_j \ \text{(number)}, \quad
        \phi_j = \sum_c \text{table}_{jc} u_c\ \text{(levels)}.

    Adds no variables but a coordinate for each number with a nonzero weight; no rows. Exact up to rounding: the scaled
    columns are the real functions behind the library's rounded steps, and verification asks the library itself.
    """

    def __init__(self, predictor: Predictor, x: AbstractColumns) -> None:
        super().__init__(predictor, x, _MANIFEST)
        core = predictor.core
        assert isinstance(core, Affine)  # noqa: S101 - chosen by embed
        self._core = core
        self._inputs = Inputs(predictor, x, (core.weights != 0.0).any(axis=0))
        weights = core.weights @ self._inputs.matrix
        offset = core.weights @ self._inputs.offset + core.intercept
        self._scores = self._inputs.forms(weights, offset)
        self.publish_scores()

    def combine(self, weights: Sequence[float]) -> LinearForm:
        """Return the weighted sum of the scores."""
        return total(form.scaled(weight) for form, weight in zip(self._scores, weights, strict=True))

    def range_of(self, weights: Sequence[float]) -> tuple[float, float]:
        """Return the least and greatest value over the reach, column by column."""
        row = np.array([list(weights)])
        low, high = self._inputs.extremes(row @ self._core.weights, row @ self._core.intercept)
        return float(low[0]), float(high[0])

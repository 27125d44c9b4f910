"""A linear model on the person's coordinates: no variables of its own, its scores are rows' bodies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, final

from ceopt.formulations.coordinates import Category, Ranked
from ceopt.formulations.linear import LinearForm, total
from ceopt.formulations.predictors.embedded import AbstractEmbedded
from ceopt.formulations.predictors.representation import Affine
from ceopt.formulations.space.reach import Interval, Levels
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.factual import Factual
    from ceopt.formulations.predictors.predictor import Predictor

__all__ = ["EmbeddedAffine"]

_MANIFEST = Manifest(
    title="linear model",
    formula="score_k = sum_j w_kj * column_j(x) + b_k",
    reference="standard; spec 8.1",
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

    def __init__(self, predictor: Predictor, x: Factual) -> None:
        super().__init__(predictor, x, _MANIFEST)
        core = predictor.core
        assert isinstance(core, Affine)  # noqa: S101 - chosen by embed
        weights = core.weights.tolist()
        self._scores = [self._score(row, offset) for row, offset in zip(weights, core.intercept.tolist(), strict=True)]
        self.publish_scores()

    def _score(self, weights: list[float], intercept: float) -> LinearForm:
        x, encoding = self.x, self.predictor.encoding
        forms = [LinearForm(intercept)]
        for weight, column in zip(weights, encoding.columns, strict=True):
            if weight == 0.0:
                continue
            if column.feature is None:
                forms.append(LinearForm(weight * column.constant))
                continue
            coordinate = x.coordinate(column.feature)
            if column.table is not None:
                assert isinstance(coordinate, Category | Ranked)  # noqa: S101 - tables exist for levels only
                table = column.table
                # A level that the pipeline fails on is NaN here, and a row of embed() keeps it off.
                values = {k: 0.0 if math.isnan(table[k]) else weight * table[k] for k in coordinate.ranks}
                forms.append(coordinate.tabulate(values))
            elif coordinate.is_point:
                value = float(column.evaluate([x.numeric(column.feature).interval.lower])[0])
                forms.append(LinearForm(weight * value))
            else:
                slope, offset = column.affine()
                forms.append(coordinate.raw().scaled(weight * slope) + LinearForm(weight * offset))
        return total(forms)

    def combine(self, weights: Sequence[float]) -> LinearForm:
        """Return the weighted sum of the scores."""
        return total(form.scaled(weight) for form, weight in zip(self._scores, weights, strict=True))

    def range_of(self, weights: Sequence[float]) -> tuple[float, float]:
        """Return the least and greatest value over the reach, column by column."""
        x, core, encoding = self.x, self.predictor.core, self.predictor.encoding
        assert isinstance(core, Affine)  # noqa: S101 - chosen by embed
        low = high = float(core.intercept @ list(weights))
        slopes: dict[str, float] = {}
        tables: dict[str, dict[int, float]] = {}
        for weight, column in zip((list(weights) @ core.weights).tolist(), encoding.columns, strict=True):
            if column.feature is None:
                low, high = low + weight * column.constant, high + weight * column.constant
            elif column.table is not None:
                table = tables.setdefault(column.feature, {})
                for k, value in enumerate(column.table):
                    if not math.isnan(value):
                        table[k] = table.get(k, 0.0) + weight * value
            elif weight != 0.0:
                slope, offset = column.affine()
                slopes[column.feature] = slopes.get(column.feature, 0.0) + weight * slope
                low, high = low + weight * offset, high + weight * offset
        for name, slope in slopes.items():
            part = x.reach[name]
            assert isinstance(part, Interval)  # noqa: S101 - slopes exist for numbers only
            ends = (slope * part.lower, slope * part.upper) if slope != 0.0 else (0.0, 0.0)
            low, high = low + min(ends), high + max(ends)
        for name, table in tables.items():
            levels = x.reach[name]
            assert isinstance(levels, Levels)  # noqa: S101 - tables exist for levels only
            values = [table[k] for k in levels.ranks if k in table]
            low, high = low + min(values), high + max(values)
        return (low, high) if not math.isnan(low + high) else (-math.inf, math.inf)

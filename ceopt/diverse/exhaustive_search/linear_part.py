"""Bounds on the linear part of a model: what columns add, and how much more the rest of a budget can add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.representation.affine import Affine
from ceopt.tolerances import LINEAR_PART_ROUNDING, NEXT_STEP

if TYPE_CHECKING:
    from ceopt.diverse.exhaustive_search.cells import Allowance, CellColumn
    from ceopt.formulations.predictors.representation.predictor import Predictor

__all__ = ["Line"]

Floats: TypeAlias = NDArray[np.float64]

#: Steps of the grid on which the knapsack is solved.
_GRID: Final = 512


@final
class Line:
    r"""A weighted sum of one linear part's matrix columns, over cells each of which has one value.

    .. math::
        \max \Bigl\{ \sum_{j \ge d} g_{j k_j} : \sum_{j \ge d} \lfloor G c_{j k_j} / U \rfloor \le
        \lceil G r / U \rceil \Bigr\}

    bounds what the columns from depth d on add, g the gain and c the price of a cell, r what is left of the budget U,
    G the steps of the grid. At least the truth, as prices are rounded down.

    Parameters
    ----------
    part, weights
        A linear model as read, and the weights of its matrix columns.
    columns
        The columns in the order in which they take their cells.
    budget
        U; where it is no sum, each column may spend all.
    """

    def __init__(self, part: Predictor, weights: Floats, columns: Sequence[CellColumn], budget: Allowance) -> None:
        assert isinstance(part.core, Affine)  # noqa: S101 - demands hold such
        place = {column.name: k for k, column in enumerate(columns)}
        #: What does not move, and what each cell of each column adds.
        self.constant = 0.0
        self.gains: list[Floats] = [np.zeros(len(column)) for column in columns]
        size = 0.0
        for weight, column in zip(weights.tolist(), part.encoding.columns, strict=True):
            if weight == 0.0:
                continue
            if column.feature is None:
                self.constant += weight * column.constant
                size += abs(weight * column.constant)
                continue
            k = place[column.feature]
            if column.table is not None:
                added = weight * np.array(column.table)[columns[k].values.astype(np.intp)]
                size += float(np.abs(added).max())
            else:
                slope, offset = column.affine()
                added = weight * (slope * columns[k].values + offset)
                size += abs(weight) * float(np.abs(slope * columns[k].values).max() + abs(offset))
            self.gains[k] = self.gains[k] + added
        #: By how much the library's own sum may be larger.
        self.rounding = size * max(LINEAR_PART_ROUNDING, (len(weights) + 10) * float(np.finfo(part.core.dtype).eps))
        self._unit = budget.most / _GRID if budget.additive and budget.most > 0.0 else np.inf
        self._most = self._knapsacks(columns)

    def most(self, depth: int, left: Floats) -> Floats:
        """Return what the columns from ``depth`` on add at most with what is left, (n,)."""
        steps = np.ceil(np.clip(left / self._unit, 0.0, _GRID) - NEXT_STEP).astype(np.intp)
        return np.asarray(self._most[depth][steps])

    def _knapsacks(self, columns: Sequence[CellColumn]) -> list[Floats]:
        best = np.zeros(_GRID + 1)
        found = [best]
        for column, gains in zip(reversed(columns), reversed(self.gains), strict=True):
            spent = np.floor(np.minimum(column.prices / self._unit, _GRID) + NEXT_STEP).astype(np.intp)
            most = np.full(_GRID + 1, -np.inf)
            np.maximum.at(most, spent, gains)
            new = np.full(_GRID + 1, -np.inf)
            for step in np.flatnonzero(most > -np.inf).tolist():
                new[step:] = np.maximum(new[step:], best[: len(best) - step] + most[step])
            best = new
            found.append(best)
        return found[::-1]

"""The values that a column of the estimator's matrix takes at the levels of a category, where most of them are 0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final, overload

import numpy as np
from numpy.typing import NDArray

__all__ = ["WIDE", "LevelTable", "SparseTable", "entries", "span"]

#: Columns from which a matrix is looked at without its zeros: a category of so many levels is one-hot columns mostly.
WIDE = 512


@final
@dataclass(frozen=True, slots=True)
class SparseTable(Sequence[float]):
    """A table without its zeros: one of the one-hot columns of a category takes the same room for any number of levels.

    Parameters
    ----------
    size
        Levels.
    ranks, values
        Where the table is not 0, ascending, and what it is there.
    """

    size: int
    ranks: tuple[int, ...]
    values: tuple[float, ...]

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, rank: int) -> float: ...

    @overload
    def __getitem__(self, rank: slice) -> Sequence[float]: ...

    def __getitem__(self, rank: int | slice) -> float | Sequence[float]:
        if isinstance(rank, slice):
            return tuple(np.asarray(self)[rank].tolist())
        place = range(self.size)[rank]
        return self.values[self.ranks.index(place)] if place in self.ranks else 0.0

    def __iter__(self) -> Iterator[float]:
        return iter(np.asarray(self).tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        del copy
        dense = np.zeros(self.size, dtype=np.float64 if dtype is None else dtype)
        dense[list(self.ranks)] = self.values
        return dense


#: A value for each level, in the order of the levels.
LevelTable: TypeAlias = tuple[float, ...] | SparseTable


def entries(table: LevelTable) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the ranks, ascending, at which a table is not 0 (NaN included), and its values there."""
    if isinstance(table, SparseTable):
        return np.array(table.ranks, dtype=np.intp), np.array(table.values, dtype=np.float64)
    dense = np.array(table, dtype=np.float64)
    ranks = np.flatnonzero(dense != 0.0)
    return ranks, dense[ranks]


def span(table: LevelTable) -> float:
    """Return by how much the greatest value is above the least, those that are NaN left out."""
    ranks, values = entries(table)
    ends = values[~np.isnan(values)].tolist()
    if len(ranks) < len(table):  # some level has the value 0
        ends.append(0.0)
    return float(max(ends) - min(ends))

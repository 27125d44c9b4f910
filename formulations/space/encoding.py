r"""The encoding: each column of an estimator's matrix as a function of one raw column.

A pipeline of scalers and encoders turns a row in raw units into the row of numbers that the estimator reads. Column
``i`` of that matrix depends on one raw column only, through

.. math:: \phi_i(x) = (o_m \circ \dots \circ o_1)(x)

for a number, where each ``o`` is one rounded elementary operation of the library (``x - mean``, then ``/ scale``), done
in its order and float width, or through a table with one entry per level for a category. Rounding is monotone, so
``phi_i`` is non-decreasing in floating point as well, and the raw values that a split ``phi_i(x) <= theta`` sends left
are exactly those up to :meth:`Column.largest_left`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, final, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ceopt.formulations.space.feature import Floats, Step
from ceopt.formulations.tolerances import SUM_ROUNDING, TRACE
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

# ==== The encoding ====================================================================================================


@final
@dataclass(frozen=True, slots=True)
class Column:
    """One column of the estimator's matrix, as a function of one raw column.

    Parameters
    ----------
    feature
        Name of the raw column; None for a column that is always ``constant``.
    steps
        A number's way to the estimator, first step first. Empty if the estimator sees it as it is.
    table
        A category's way: the value at each level, in the order of the levels, without zeros where they are many.
        None for numbers.
    constant
        The value of a column without feature.
    dtype
        Float width of the matrix that the estimator is given.
    """

    feature: str | None
    steps: tuple[Step, ...] = ()
    table: LevelTable | None = None
    constant: float = 0.0
    dtype: str = "float64"

    @property
    def is_affine(self) -> bool:
        """Whether the column is an affine function of its raw column in real numbers (nothing clips)."""
        return not any(step.clips for step in self.steps)

    def evaluate(self, coordinates: ArrayLike) -> Floats:
        """Return what the library computes at coordinates (numbers, or ranks of levels), in its float width."""
        x: Floats = np.asarray(coordinates, dtype=np.float64)
        with np.errstate(over="ignore", under="ignore"):  # beyond the width lies infinity, in the library as well
            if self.feature is None:
                x = np.full(x.shape, self.constant)
            elif self.table is not None:
                x = np.asarray(self.table, dtype=np.float64)[x.astype(np.intp)]
            else:
                for step in self.steps:
                    x = step.apply(x)
            return x.astype(self.dtype, copy=False)

    def affine(self) -> tuple[float, float]:
        """Return ``(slope, offset)`` of the real function behind a number's steps, each rounded once.

        Raises
        ------
        InvalidTypeError
            The column reads levels, is constant or clips, so it has no slope.
        """
        if self.feature is None or self.table is not None or not self.is_affine:
            raise InvalidTypeError(
                "Column.affine", "a numeric column that is not clipped", f"the column reads {self.feature!r}",
                "Use .table, .constant or .largest_left.",
            )  # fmt: skip
        slope = Fraction(1)
        offset = Fraction(0)
        for step in self.steps:
            slope, offset = step.compose(slope, offset)
        return float(slope), float(offset)

    def seen(self, coordinates: ArrayLike, input_dtype: DTypeLike) -> Floats:
        """Return what a split sees at coordinates: the value rounded to ``input_dtype``, held in float64."""
        with np.errstate(over="ignore", under="ignore"):
            return self.evaluate(coordinates).astype(input_dtype, copy=False).astype(np.float64, copy=False)

    def goes_left(
        self, coordinates: ArrayLike, thresholds: ArrayLike, input_dtype: DTypeLike, *, inclusive: bool = True
    ) -> NDArray[np.bool_]:
        """Answer ``phi(x) <= theta`` (``<`` unless inclusive) as the library does, elementwise with broadcasting.

        The value is cast to ``input_dtype``, then compared in float64: NumPy 2 would round a Python threshold to
        float32 before comparing it with one.
        """
        seen = self.seen(coordinates, input_dtype)
        theta = np.asarray(thresholds, dtype=np.float64)
        return np.asarray(seen <= theta if inclusive else seen < theta)

    def largest_left(
        self, thresholds: ArrayLike, input_dtype: DTypeLike, *, inclusive: bool = True
    ) -> NDArray[np.float64]:
        """Return, per threshold, the largest float64 raw value that a split sends left.

        Everything up to the answer ``v`` goes left and ``np.nextafter(v, inf)`` upwards goes right, with no number
        between. The answer is found by bisection over the bit patterns of float64, so it is exact whatever the
        steps round. It is -inf where no finite number goes left and inf where all do.

        Parameters
        ----------
        thresholds
            Any shape; in the estimator's units.
        input_dtype
            Width to which the estimator casts its input (float32 for trees of scikit-learn).
        inclusive
            True for ``<=``, False for ``<``.

        Raises
        ------
        InvalidTypeError
            The column reads levels or is constant; use :meth:`goes_left` on the ranks.
        """
        if self.feature is None or self.table is not None:
            raise InvalidTypeError(
                "Column.largest_left", "a numeric column", f"the column reads {self.feature!r}", "Use goes_left."
            )
        given = np.asarray(thresholds, dtype=np.float64)
        theta, back = np.unique(given, return_inverse=True)
        found = last_true(lambda x: self.goes_left(x, theta, input_dtype, inclusive=inclusive), theta.shape)
        return np.asarray(found[back].reshape(given.shape))


@final
@dataclass(frozen=True, slots=True)
class Encoding:
    """All columns of the estimator's matrix as functions of the raw columns.

    Parameters
    ----------
    columns
        One per column of the matrix, in its order.
    names
        Raw columns in the order in which :meth:`matrix` is given coordinates.
    sparse
        Whether the estimator is given a sparse matrix, which does not store zeros; to some, those are missing.
    """

    columns: tuple[Column, ...]
    names: tuple[str, ...]
    sparse: bool = False
    #: Per raw column (the first, for constants): its place, the columns that read it, and their tables side by side,
    #: sparse where they are many.
    _plan: tuple[tuple[int, list[int], Any], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        place: dict[str | None, int] = {None: 0, **dict(zip(self.names, range(len(self.names)), strict=True))}
        reading: dict[tuple[str | None, bool], list[int]] = {}
        for i, column in enumerate(self.columns):
            reading.setdefault((column.feature, column.table is not None), []).append(i)
        plan = []
        for (name, has_table), targets in reading.items():
            tables = self._side_by_side(targets) if has_table else None
            plan.append((place[name], targets, tables))
        object.__setattr__(self, "_plan", tuple(plan))

    def _side_by_side(self, targets: list[int]) -> Any:
        """Return the tables of some columns, (levels, columns): an array, or sparse rows where they are many."""
        columns = [self.columns[i] for i in targets]
        n_levels = len(columns[0].table or ())
        if len(columns) <= WIDE:
            tables = [column.evaluate(range(n_levels)).astype(np.float64) for column in columns]
            return np.stack(tables, axis=1)
        values, ranks, places = [], [], []
        for place, column in enumerate(columns):
            own_ranks, own_values = entries(column.table or ())
            values.append(own_values.astype(column.dtype).astype(np.float64))
            ranks.append(own_ranks)
            places.append(np.full(len(own_ranks), place))
        indices = (np.concatenate(ranks), np.concatenate(places))
        return sp.csr_array((np.concatenate(values), indices), shape=(n_levels, len(columns)))

    @classmethod
    def identity(cls, space: FeatureSpace) -> Self:
        """Return the encoding of a representation made from plain arrays: raw columns in the space's order.

        Numbers stay as they are. Levels that are numbers stay numbers. Other ordinal levels become ranks, and two
        levels become 0 and 1 (so do False and True).

        Raises
        ------
        InvalidTypeError
            A categorical column has levels that are not numbers.
        """
        columns = []
        for feature in space:
            if not feature.is_finite:
                columns.append(Column(feature.name))
                continue
            numeric = all(isinstance(level, int | float) for level in feature.levels)
            if feature.kind == "categorical" and not numeric:
                raise InvalidTypeError(
                    "A representation from plain arrays", "columns that are numbers",
                    f"{feature.name!r} is categorical with level {feature.levels[0]!r}",
                    "Code the levels as numbers, or one 0/1 column per level.",
                )  # fmt: skip
            table = feature.levels if numeric else range(len(feature.levels))
            columns.append(Column(feature.name, table=tuple(map(float, table))))
        return cls(tuple(columns), tuple(space.names))

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        """Float width of the matrix."""
        return np.result_type(np.float32, *(column.dtype for column in self.columns))

    def matrix(self, coordinates: ArrayLike) -> Floats:
        """Return what the estimator is given, ``(n, m)``, for coordinates ``(n, d)`` in the order of ``names``."""
        x = np.asarray(coordinates, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != len(self.names):
            raise InvalidValueError(
                "Encoding.matrix", f"one coordinate for each of {len(self.names)} columns",
                f"the array has shape {x.shape}", "Give one row per person, columns in the order of .names.",
            )  # fmt: skip
        matrix = np.empty((len(x), len(self.columns)), dtype=self.dtype)
        for source, targets, table in self._plan:
            values = x[:, source]
            if table is not None:  # all columns that read one category at once: one-hot columns are many
                taken = table[values.astype(np.intp)]
                matrix[:, targets] = taken if isinstance(table, np.ndarray) else taken.toarray()
                continue
            for target in targets:
                matrix[:, target] = self.columns[target].evaluate(values)
        return matrix

    @property
    def is_wide(self) -> bool:
        """Whether the matrix has so many columns that its zeros are better left out."""
        return len(self.columns) > WIDE

    def sparse_matrix(self, coordinates: ArrayLike) -> Any:
        """Return :meth:`matrix` without its zeros: in a row, one-hot columns of a category take the room of one."""
        x = np.asarray(coordinates, dtype=np.float64)
        parts, order = [], []
        for source, targets, table in self._plan:
            if table is None:
                own = np.column_stack([self.columns[target].evaluate(x[:, source]) for target in targets])
                parts.append(sp.csr_array(own))
            else:
                parts.append(sp.csr_array(table)[x[:, source].astype(np.intp)])
            order += targets
        back = np.empty(len(order), dtype=np.intp)
        back[order] = np.arange(len(order))
        return sp.csr_array(sp.csc_array(sp.hstack(parts))[:, back]).astype(self.dtype)


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
        return dict(zip(self.ranks, self.values, strict=True)).get(place, 0.0)

    def __iter__(self) -> Iterator[float]:
        return iter(np.asarray(self).tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        del copy
        dense = np.zeros(self.size, dtype=dtype)
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


# ---- bisection over all floats ---------------------------------------------------------------------------------------
#: Place of the greatest finite float64 among all of them, counted from 0.0.
_GREATEST: Final = np.finfo(np.float64).max.view(np.int64)


def last_true(
    test: Callable[[NDArray[np.float64]], NDArray[np.bool_]], shape: tuple[int, ...] = ()
) -> NDArray[np.float64]:
    """Return the largest finite float64 for which each of many tests holds, in ``shape``.

    Parameters
    ----------
    test
        Numbers (in ``shape``) -> whether each passes its own test. Each test holds up to some number and not beyond.
    shape
        Of the numbers that the test is given.

    Returns
    -------
    NDArray
        -inf where no finite number passes, inf where all do.

    Examples
    --------
    >>> float(last_true(lambda x: x * 3.0 <= 1.0))
    0.33333333333333337
    """
    low = np.full(shape, -_GREATEST, dtype=np.int64)
    high = np.full(shape, _GREATEST, dtype=np.int64)
    with np.errstate(all="ignore"):  # the ends of float64 overflow in most tests
        none = ~test(_number(low))
        every = test(_number(high))
        for _ in range(64):  # the ends are 2**64 numbers apart at most; low passes, high does not
            middle = (low >> 1) + (high >> 1) + (low & high & 1)
            passes = test(_number(middle))
            low = np.where(passes, middle, low)
            high = np.where(passes, high, middle)
    return np.asarray(np.where(none, -np.inf, np.where(every, np.inf, _number(low))))


def _number(order: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the float64 whose place among all float64 is ``order``, counted from 0.0 = 0."""
    bits = np.where(order >= 0, order, np.int64(-(2**63)) - order)
    return np.asarray(bits).view(np.float64)


# ==== The trace that a solver may leave between a column and the place where it means to put it =======================


def beyond_rounding(off: float, rounding: float) -> float:
    """Return how far something is off, or 0 where that is no more than rounding."""
    return off if off > rounding else 0.0


def trace_of(feature: Feature, number: float) -> float:
    """Return the trace that a solver may leave of a column at a number: of a step, where it moves by steps."""
    if feature.is_finite:
        return TRACE
    if feature.spacing is None:
        return float(trace_within(feature, number))
    return TRACE * min(feature.spacing, 1.0)


def trace_within(feature: Feature, size: Any) -> Any:
    """Return the trace of sums of some sizes that are compared with a column: no more than its width allows."""
    if feature.is_finite:
        low, high = feature.coordinate_limits
    else:
        low, high = feature.lower, feature.upper
    return TRACE * np.minimum(np.maximum(1.0, np.abs(size)), high - low) + SUM_ROUNDING * np.abs(size)

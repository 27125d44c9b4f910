r"""The encoding: each column of an estimator's matrix as a function of one raw column.

A pipeline of scalers and encoders turns a row in raw units into the row of numbers that the estimator reads. Column
``i`` of that matrix depends on one raw column only. For a number it is a composition

.. math:: \phi_i(x) = (o_m \circ \dots \circ o_1)(x)

of the library's elementary operations (``x - mean``, then ``/ scale``), each rounded, in the library's order and float
width. For a category it is a table with one entry per level.

Each operation is non-decreasing and rounding is monotone, so ``phi_i`` is non-decreasing in floating point: a split
``phi_i(x) <= theta`` sends left exactly the raw values up to :meth:`Column.largest_left`.

A missing cell becomes a number of its own (``Column.missing``): what an imputer fills in, a level's code, 1 in an
indicator. Where nothing fills it in, the estimator is given NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, final, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ceopt.formulations.space.feature import MISSING, Floats, Step
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

# ==== The encoding ====================================================================================================

#: Matrices with more columns than this are handled as sparse.
WIDE = 512


@final
@dataclass(frozen=True, slots=True)
class Column:
    """One column of the estimator's matrix, as a function of one raw column.

    Parameters
    ----------
    feature
        Name of the raw column; None for a column that is always ``constant``.
    steps
        Operations applied to a number, in order; empty if it is passed unchanged.
    table
        For a category, the value of each level, in order: a tuple or a :class:`SparseTable`. None for numbers.
    constant
        The value if ``feature`` is None; of an indicator, the value at every number.
    dtype
        Float width of the matrix passed to the estimator.
    missing
        The value of a missing cell; None where the estimator is given NaN.
    is_indicator
        Whether the column tells a missing number from all others, which become ``constant``.
    """

    feature: str | None
    steps: tuple[Step, ...] = ()
    table: LevelTable | None = None
    constant: float = 0.0
    dtype: str = "float64"
    missing: float | None = None
    is_indicator: bool = False

    @property
    def computation(self) -> tuple[Any, ...]:
        """What two columns of numbers have in common that are computed by the same operations of the same widths."""
        steps = [(step.operation, np.asarray(step.operand).dtype.char, step.dtype) for step in self.steps]
        return (self.is_indicator, self.dtype, *steps)

    @property
    def is_affine(self) -> bool:
        """Whether no step clips; a number is then passed through an affine function, up to rounding."""
        return not any(step.clips for step in self.steps)

    @property
    def passes_gaps(self) -> bool:
        """Whether the estimator sees that a cell is missing: nothing fills it in."""
        return self.feature is not None and self.missing is None

    @property
    def at_gap(self) -> float:
        """What the estimator is given of a missing cell."""
        return math.nan if self.missing is None else self.missing

    def evaluate(self, coordinates: ArrayLike) -> Floats:
        """Return what the library computes at coordinates (numbers, or ranks of levels, or missing), in ``dtype``."""
        x = np.asarray(coordinates, dtype=np.float64)
        gap = np.float64(self.constant if self.feature is None else self.at_gap)
        return _computed(x, self._of_known, gap, self.dtype)

    def _of_known(self, x: Floats) -> Floats:
        """Return what becomes of cells that are not missing, not yet in ``dtype``."""
        if self.feature is None or self.is_indicator:
            return np.full(x.shape, self.constant)
        if self.table is not None:
            return np.asarray(self.table, dtype=np.float64)[x.astype(np.intp)]
        for step in self.steps:
            x = step.apply(x)
        return x

    def affine(self) -> tuple[float, float]:
        """Return ``(slope, offset)`` of the steps in exact arithmetic, each rounded once to a float; of amounts.

        Raises
        ------
        InvalidTypeError
            The column reads levels, is constant or clips, so it has no slope.
        """
        needs = "a numeric column that is not clipped"
        then = "Use .table, .constant or .largest_left."
        self._require_number("Column.affine", needs, then)
        if not self.is_affine:
            raise InvalidTypeError("Column.affine", needs, f"it clips {self.feature!r}", then)
        if self.is_indicator:
            return 0.0, self.constant
        return _composed(self.steps)

    def _require_number(self, who: str, needs: str, then: str) -> None:
        """Raise if the column is constant or reads levels."""
        if self.feature is None:
            raise InvalidTypeError(who, needs, "it is constant", then)
        if self.table is not None:
            raise InvalidTypeError(who, needs, f"it reads the levels of {self.feature!r}", then)

    def seen(self, coordinates: ArrayLike, input_dtype: DTypeLike) -> Floats:
        """Return the values that a split compares: rounded to ``input_dtype``, then cast to float64."""
        with np.errstate(over="ignore", under="ignore"):
            return self.evaluate(coordinates).astype(input_dtype, copy=False).astype(np.float64, copy=False)

    def goes_left(
        self, coordinates: ArrayLike, thresholds: ArrayLike, input_dtype: DTypeLike, *, inclusive: bool = True
    ) -> NDArray[np.bool_]:
        """Return ``phi(x) <= theta`` (``<`` unless inclusive) as the library computes it; arrays broadcast.

        The value is cast to ``input_dtype``, then compared in float64: NumPy 2 would round a Python threshold to
        float32 before comparing it with one. All numbers are at most the largest float64, also those that the cast
        makes infinite.
        """
        seen = self.seen(coordinates, input_dtype)
        theta = np.asarray(thresholds, dtype=np.float64)
        theta = np.where(theta == np.finfo(np.float64).max, np.inf, theta)
        return np.asarray(seen <= theta if inclusive else seen < theta)

    def largest_left(
        self, thresholds: ArrayLike, input_dtype: DTypeLike, *, inclusive: bool = True
    ) -> NDArray[np.float64]:
        """Return, per threshold, the largest float64 raw value that a split sends left.

        Every float up to the result ``v`` goes left; every float above ``v`` goes right. It is found by bisection over
        the bit patterns of float64, so it is exact despite rounding in the steps. It is -inf if no finite number goes
        left, and inf if all do.

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
        self._require_number("Column.largest_left", "a numeric column", "Use goes_left.")
        given = np.asarray(thresholds, dtype=np.float64)
        theta, inverse = np.unique(given, return_inverse=True)
        last = last_true(lambda x: self.goes_left(x, theta, input_dtype, inclusive=inclusive), theta.shape)
        return np.asarray(last[inverse].reshape(given.shape))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _AlikeNumbers:
    """Columns of numbers that a library computes by the same operations: one pass over arrays does for all of them.

    Parameters
    ----------
    targets, sources
        Columns of the matrix, and the raw column that each reads.
    steps
        Their operations in order: (one column's step, the operands of all).
    constants
        Of indicators, the value at every number; None of others.
    gaps
        What the estimator is given of a missing cell.
    dtype
        Float width of the matrix.
    """

    targets: list[int]
    sources: NDArray[np.intp]
    steps: tuple[tuple[Step, Floats], ...]
    constants: Floats | None
    gaps: Floats
    dtype: str

    @classmethod
    def of(cls, columns: Sequence[Column], targets: list[int], sources: NDArray[np.intp]) -> Self:
        """Put columns of one :attr:`Column.computation` side by side."""
        members = [columns[i] for i in targets]
        steps = [(own[0], np.array([s.operand for s in own])) for own in zip(*(m.steps for m in members), strict=True)]
        constants = None
        if members[0].is_indicator:
            constants = np.array([member.constant for member in members])
        gaps = np.array([member.at_gap for member in members])
        return cls(targets, sources, tuple(steps), constants, gaps, members[0].dtype)

    def evaluate(self, values: Floats) -> Floats:
        """Return what :meth:`Column.evaluate` does of each column: values and result are (n, k)."""
        return _computed(values, self._of_known, self.gaps, self.dtype)

    def _of_known(self, x: Floats) -> Floats:
        if self.constants is not None:
            return np.broadcast_to(self.constants, x.shape)
        for step, operands in self.steps:
            x = step.apply(x, operands)
        return x


def _computed(x: Floats, of_known: Callable[[Floats], Floats], gaps: Floats | np.float64, dtype: str) -> Floats:
    """Return ``of_known(x)`` with ``gaps`` where a cell is missing, in ``dtype``."""
    is_missing = x == MISSING
    has_gaps = bool(is_missing.any())
    with np.errstate(over="ignore", under="ignore"):  # overflow gives infinity, in the library as well
        values = of_known(np.where(is_missing, 0.0, x) if has_gaps else x)
        if has_gaps:
            values = np.where(is_missing, gaps, values)
        return values.astype(dtype, copy=False)


@final
@dataclass(frozen=True, slots=True)
class Encoding:
    """All columns of the estimator's matrix as functions of the raw columns.

    Parameters
    ----------
    columns
        One per column of the matrix, in its order.
    names
        Raw columns, in the order of the columns of ``coordinates`` in :meth:`matrix`.
    sparse
        Whether the estimator receives a sparse matrix. Some estimators treat entries that are not stored as missing.
    """

    columns: tuple[Column, ...]
    names: tuple[str, ...]
    sparse: bool = False
    #: Float width of the matrix.
    dtype: np.dtype[np.floating[Any]] = field(init=False, repr=False, compare=False)
    #: Index of the raw column that each column of the matrix reads; -1 where it is always the same.
    sources: NDArray[np.intp] = field(init=False, repr=False, compare=False)
    _constants: tuple[list[int], Floats] = field(init=False, repr=False, compare=False)
    _numbers: tuple[_AlikeNumbers, ...] = field(init=False, repr=False, compare=False)
    #: Per raw column of levels: its index, the matrix columns that read it, and their stacked tables.
    _levels: tuple[tuple[int, list[int], Any], ...] = field(init=False, repr=False, compare=False)
    #: What :attr:`slopes` found.
    _slopes: list[tuple[Floats, Floats]] = field(init=False, repr=False, compare=False, default_factory=list)
    #: The one row that was computed last: a person is asked about again and again.
    _last: dict[bytes, Floats] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        place = dict(zip(self.names, range(len(self.names)), strict=True))
        constants: list[int] = []
        alike: dict[Any, list[int]] = {}
        levels: dict[int, list[int]] = {}
        sources = np.full(len(self.columns), -1, dtype=np.intp)
        for i, column in enumerate(self.columns):
            if column.feature is None:
                constants.append(i)
                continue
            sources[i] = place[column.feature]
            if column.table is not None:
                levels.setdefault(place[column.feature], []).append(i)
            else:
                alike.setdefault(column.computation, []).append(i)
        dtype = np.result_type(np.float32, *{column.dtype for column in self.columns})
        object.__setattr__(self, "dtype", dtype)
        values = np.array([self.columns[i].evaluate(0.0) for i in constants], dtype=np.float64)
        numbers = [_AlikeNumbers.of(self.columns, targets, sources[targets]) for targets in alike.values()]
        tables = [(source, targets, self._stacked(targets)) for source, targets in levels.items()]
        object.__setattr__(self, "sources", sources)
        object.__setattr__(self, "_constants", (constants, values))
        object.__setattr__(self, "_numbers", tuple(numbers))
        object.__setattr__(self, "_levels", tuple(tables))

    def _stacked(self, targets: list[int]) -> Any:
        """Return the tables of these columns stacked, (levels, columns); sparse if there are more than ``WIDE``."""
        columns = [self.columns[i] for i in targets]
        n_levels = len(columns[0].table or ())
        if len(columns) <= WIDE:
            tables = [column.evaluate(range(n_levels)).astype(np.float64) for column in columns]
            return np.stack(tables, axis=1)
        values, ranks, places = [], [], []
        for place, column in enumerate(columns):
            own_ranks, own_values = nonzero_entries(column.table or ())
            values.append(own_values.astype(column.dtype).astype(np.float64))
            ranks.append(own_ranks)
            places.append(np.full(len(own_ranks), place))
        indices = (np.concatenate(ranks), np.concatenate(places))
        return sp.csr_array((np.concatenate(values), indices), shape=(n_levels, len(columns)))

    def at_gaps(self, targets: list[int]) -> NDArray[np.float64]:
        """Return what these columns are where the cell is missing, (columns,)."""
        columns = [self.columns[i] for i in targets]
        return np.array([np.dtype(column.dtype).type(column.at_gap) for column in columns], dtype=np.float64)

    @classmethod
    def identity(cls, space: FeatureSpace, names: Sequence[str] | None = None) -> Self:
        """Return the encoding that passes the raw columns through, or some of them, in the order of ``names``.

        By default in the space's order.

        Numbers and numeric levels are unchanged (False and True as 0 and 1). Other ordinal or binary levels become
        ranks from 0.

        Raises
        ------
        InvalidTypeError
            A categorical column has levels that are not numbers.
        """
        columns = []
        for name in names or space.names:
            feature = space[name]
            if not feature.is_finite:
                columns.append(Column(feature.name))
                continue
            numeric = all(isinstance(level, int | float) for level in feature.levels)
            if feature.kind == "categorical" and not numeric:
                raise InvalidTypeError(
                    "A representation from plain arrays", "columns that are numbers",
                    f"{feature.name!r} is categorical with level {feature.levels[0]!r}",
                    "Code the levels as numbers, or one 0/1 column per level, or name the others: columns=[...].",
                )  # fmt: skip
            table = feature.levels if numeric else range(len(feature.levels))
            columns.append(Column(feature.name, table=tuple(map(float, table))))
        return cls(tuple(columns), tuple(space.names))

    @property
    def tables(self) -> Iterator[tuple[str, list[int], Any]]:
        """Each raw column of levels, the matrix columns that read it, and their tables side by side, (levels, k)."""
        for source, targets, tables in self._levels:
            yield self.names[source], targets, tables

    @property
    def slopes(self) -> tuple[Floats, Floats]:
        """Slope and offset of each matrix column of a number, as :meth:`Column.affine` has them: (m,) each.

        NaN where a number is clipped, and 0 for levels and constants.
        """
        if not self._slopes:
            slopes, offsets = np.zeros(len(self.columns)), np.zeros(len(self.columns))
            for numbers in self._numbers:
                for i in numbers.targets:
                    column = self.columns[i]
                    slopes[i], offsets[i] = column.affine() if column.is_affine else (math.nan, math.nan)
            self._slopes.append((slopes, offsets))
        return self._slopes[0]

    def matrix(self, coordinates: ArrayLike) -> Floats:
        """Return the estimator's input matrix ``(n, m)`` for coordinates ``(n, d)`` in the order of ``names``."""
        x = np.asarray(coordinates, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != len(self.names):
            raise InvalidValueError(
                "Encoding.matrix", f"one coordinate for each of {len(self.names)} columns",
                f"the array has shape {x.shape}", "Give one row per person, columns in the order of .names.",
            )  # fmt: skip
        if len(x) != 1 or self.is_wide:
            return self._matrix(x)
        row = x.tobytes()
        matrix = self._last.get(row)
        if matrix is None:
            matrix = self._matrix(x)
            self._last.clear()
            self._last[row] = matrix
        return matrix.copy()

    def _matrix(self, x: Floats) -> Floats:
        matrix = np.empty((len(x), len(self.columns)), dtype=self.dtype)
        targets, constants = self._constants
        matrix[:, targets] = constants
        for numbers in self._numbers:
            matrix[:, numbers.targets] = numbers.evaluate(x[:, numbers.sources])
        is_missing = x == MISSING
        has_gaps = is_missing.any(axis=0).tolist()
        for source, targets, tables in self._levels:
            # One look-up for all columns of a category, as there may be many one-hot columns.
            values = x[:, source]
            if has_gaps[source]:
                values = np.where(is_missing[:, source], 0.0, values)
            rows = tables[values.astype(np.intp)]
            if not isinstance(tables, np.ndarray):
                rows = rows.toarray()
            if has_gaps[source]:
                rows[is_missing[:, source]] = self.at_gaps(targets)
            matrix[:, targets] = rows
        return matrix

    @property
    def is_wide(self) -> bool:
        """Whether the matrix has so many columns that it is handled as sparse."""
        return len(self.columns) > WIDE

    def sparse_matrix(self, coordinates: ArrayLike) -> Any:
        """Return :meth:`matrix` as a sparse matrix; the one-hot columns of a category store one entry per row."""
        x = np.asarray(coordinates, dtype=np.float64)
        order, constants = self._constants
        parts = [sp.csr_array(np.tile(constants, (len(x), 1)))]
        for numbers in self._numbers:
            parts.append(sp.csr_array(numbers.evaluate(x[:, numbers.sources])))
            order = order + numbers.targets
        for source, targets, tables in self._levels:
            ranks = x[:, source]
            rows = sp.csr_array(tables)
            if (ranks == MISSING).any():  # the missing cell is one more level
                rows = sp.csr_array(sp.vstack([rows, sp.csr_array(self.at_gaps(targets)[None, :])]))
                ranks = np.where(ranks == MISSING, tables.shape[0], ranks)
            parts.append(rows[ranks.astype(np.intp)])
            order = order + targets
        inverse = np.argsort(order)
        return sp.csr_array(sp.csc_array(sp.hstack(parts))[:, inverse]).astype(self.dtype)


@final
@dataclass(frozen=True, slots=True)
class SparseTable(Sequence[float]):
    """A level table stored without zeros, so that a one-hot column needs one entry for any number of levels.

    Parameters
    ----------
    size
        Number of levels.
    ranks, values
        Ranks of the nonzero entries, ascending, and the entries.
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


#: A value for each level, in order.
LevelTable: TypeAlias = tuple[float, ...] | SparseTable


def nonzero_entries(table: LevelTable) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the ranks of a table's nonzero entries (NaN included), ascending, and the entries."""
    if isinstance(table, SparseTable):
        return np.array(table.ranks, dtype=np.intp), np.array(table.values, dtype=np.float64)
    dense = np.array(table, dtype=np.float64)
    ranks = np.flatnonzero(dense != 0.0)
    return ranks, dense[ranks]


def entries_of(tables: Any) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Return the rows, columns and values of the nonzero entries (NaN included) of :attr:`Encoding.tables`."""
    if isinstance(tables, np.ndarray):
        rows, columns = np.nonzero(tables)
        return rows, columns, tables[rows, columns]
    entries = tables.tocoo()
    return entries.row, entries.col, entries.data


def levels_without_a_value(tables: Any) -> NDArray[np.intp]:
    """Return the ranks of levels that some column of :attr:`Encoding.tables` gives NaN, ascending."""
    rows, _, values = entries_of(tables)
    return np.unique(rows[np.isnan(values)])


def without_nan(tables: Any) -> Any:
    """Return these :attr:`Encoding.tables` with 0 for NaN."""
    if isinstance(tables, np.ndarray):
        return np.nan_to_num(tables)
    numbers = tables.copy()
    numbers.data = np.nan_to_num(numbers.data)
    return numbers


def table_range(table: LevelTable) -> float:
    """Return the greatest value minus the least, NaN left out; 0 for a table of NaN alone."""
    ranks, values = nonzero_entries(table)
    numbers = values[~np.isnan(values)].tolist()
    if len(ranks) < len(table):  # some level has the value 0
        numbers.append(0.0)
    return float(max(numbers, default=0.0) - min(numbers, default=0.0))


# ---- bisection over all floats ---------------------------------------------------------------------------------------
#: Index of the greatest finite float64 when floats are numbered in order, 0.0 being 0.
_GREATEST: Final = np.finfo(np.float64).max.view(np.int64)


@lru_cache(1 << 14)
def _composed(steps: tuple[Step, ...]) -> tuple[float, float]:
    """Return slope and offset of steps in exact arithmetic, each rounded once."""
    slope = Fraction(1)
    offset = Fraction(0)
    for step in steps:
        slope, offset = step.compose(slope, offset)
    return float(slope), float(offset)


def last_true(
    test: Callable[[NDArray[np.float64]], NDArray[np.bool_]], shape: tuple[int, ...] = ()
) -> NDArray[np.float64]:
    """Return, for each of many tests, the largest finite float64 that passes it; an array of ``shape``.

    Parameters
    ----------
    test
        Takes an array of ``shape`` and returns whether each number passes its own test. Each test holds up to some
        number and not beyond.
    shape
        Shape of the array of tests.

    Returns
    -------
    NDArray
        -inf for a test that no finite number passes, inf for one that all pass.

    Examples
    --------
    >>> float(last_true(lambda x: x * 3.0 <= 1.0))
    0.33333333333333337
    """
    low = np.full(shape, -_GREATEST, dtype=np.int64)
    high = np.full(shape, _GREATEST, dtype=np.int64)
    with np.errstate(all="ignore"):  # the ends of float64 overflow in most tests
        none_pass = ~test(_number(low))
        all_pass = test(_number(high))
        for _ in range(64):  # invariant: low passes, high fails; they start fewer than 2**64 floats apart
            middle = (low >> 1) + (high >> 1) + (low & high & 1)
            passes = test(_number(middle))
            low = np.where(passes, middle, low)
            high = np.where(passes, high, middle)
    last = np.where(all_pass, np.inf, _number(low))
    return np.asarray(np.where(none_pass, -np.inf, last))


def _number(order: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the float64 with this index among all float64 in order (0.0 has index 0)."""
    bits = np.where(order >= 0, order, np.int64(-(2**63)) - order)
    return np.asarray(bits).view(np.float64)

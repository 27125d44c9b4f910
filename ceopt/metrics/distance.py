"""Distances between rows and between sets of them, in l1, l2 or l-infinity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.space.space import FeatureSpace
from ceopt.oracle.rows import TableRows, fill_of, read
from ceopt.solvers.checks import Choice, Floats, OrNone, Real, Refusal, check_arguments
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

# ==== By what a column's differences are divided, so that euros and years can be added ================================

_NO_ZERO = Refusal("a positive number in place of a scale of zero", "Give 1.0.")
_ZERO = OrNone(Real(above=0.0, finite=True, otherwise=_NO_ZERO))

#: Statistics of a column, each of numbers (n, d) or (n,).
SCALES = {
    "mad": lambda numbers: np.median(np.abs(numbers - np.median(numbers, axis=0)), axis=0),
    "std": lambda numbers: np.std(numbers, axis=0),
    "range": lambda numbers: np.ptp(numbers, axis=0),
}


def read_beside(who: str, space: FeatureSpace | None, data: Any, **given: Any) -> list[TableRows]:
    """Return tables read together, and behind them ``data`` if it is given."""
    if data is not None:
        given["data"] = data
    return read(who, space, **given)


def scales_of(
    who: str, tables: Sequence[TableRows], scale: Any, *, data: TableRows | None = None, zero: float | None = None
) -> Floats:
    r"""Return a positive divisor for each numeric column, (d_num,).

    ========= ===========================================================================
    ``scale`` divisor of column j, from the rows :math:`d_{ij}` of ``data``
    ========= ===========================================================================
    "none"    1: raw units
    "mad"     :math:`\mathrm{median}_i |d_{ij} - \mathrm{median}_i d_{ij}|`, without a factor
    "std"     standard deviation, divided by n
    "range"   greatest less least value
    mapping   as given, column -> number
    array     as given, in the order of the numeric columns
    ========= ===========================================================================

    Missing cells and codes of the space do not count. Without data, the statistics are those that the space has of its
    own. A zero is replaced by ``zero`` if that is given. Otherwise it is refused, unless the column has one value in
    all tables, so that its divisor does not matter.

    Parameters
    ----------
    who
        The metric.
    tables
        The tables that are compared, read together.
    scale, data, zero
        As above.

    Raises
    ------
    UnknownNameError
        Another statistic, or a column that there is not.
    InvalidValueError
        No data, a column without a divisor, a divisor of zero where the column varies, one that is not positive.
    """
    names = tables[0].numeric
    if isinstance(scale, str):
        found = _statistics(who, tables[0], scale, data)
    elif isinstance(scale, Mapping):
        for name in scale:
            if name not in names:
                raise UnknownNameError.among(who, "numeric column in scale", name, names)
        absent = [name for name in names if name not in scale]
        if absent:
            raise InvalidValueError(who, "a scale for every numeric column", f"{absent[0]!r} has none", "Add it.")
        found = np.array([scale[name] for name in names], dtype=np.float64)
    else:
        found = np.asarray(scale, dtype=np.float64)
        if found.shape != (len(names),):
            but = f"its shape is {found.shape}"
            raise InvalidValueError(who, f"a scale for each of {len(names)} numeric columns", but, "Correct it.")
    return _positive(who, tables, found.copy(), zero)


def _statistics(who: str, rows: TableRows, scale: str, data: TableRows | None) -> Floats:
    if scale == "none":
        return np.ones(len(rows.numeric))
    Choice(("none", *SCALES)).require(who, "scale", scale)
    if data is not None:
        with np.errstate(invalid="ignore"):
            found = np.asarray(SCALES[scale](data.numbers), dtype=np.float64)
        has_labels = data.hold_no_amount(data.numbers).any(axis=0)
        for j in np.flatnonzero(has_labels).tolist():
            found[j] = _of_amounts(who, scale, data, j)
        return found
    known = [None] * len(rows.numeric)
    if rows.space is not None:
        known = [getattr(rows.space[name], scale) for name in rows.numeric]
    for name, value in zip(rows.numeric, known, strict=True):
        if value is None:
            then = "Pass data=X_train, or scale='none' for raw units."
            raise InvalidValueError(who, f"data for scale={scale!r}", f"there is none for column {name!r}", then)
    return np.array(known, dtype=np.float64)


def _of_amounts(who: str, scale: str, data: TableRows, j: int) -> float:
    """Return a statistic of the amounts of one numeric column of data."""
    amounts = data.numbers[~data.hold_no_amount(data.numbers)[:, j], j]
    if not len(amounts):
        but = f"each row of data is missing or holds a code in column {data.numeric[j]!r}"
        raise InvalidValueError(who, f"an amount for scale={scale!r}", but, "Give other rows.")
    return float(SCALES[scale](amounts))


def _positive(who: str, tables: Sequence[TableRows], found: Floats, zero: float | None) -> Floats:
    _ZERO.require(who, "zero", zero)
    for j, name in enumerate(tables[0].numeric):
        if not 0.0 <= found[j] < np.inf:
            raise InvalidValueError(who, "positive scales", f"that of column {name!r} is {found[j]}", "Correct it.")
        if found[j] == 0.0:
            values = np.concatenate([_amounts(table, j) for table in tables])
            if zero is None and len(values) and np.ptp(values) > 0.0:
                then = "Pass zero=1.0 to divide by 1 there, as DiCE's code does, or another scale."
                raise InvalidValueError(who, "a scale that is not zero", f"that of column {name!r} is 0", then)
            found[j] = 1.0 if zero is None else zero
    return found


def _amounts(rows: TableRows, j: int) -> Floats:
    """Return the numbers of a column that are no codes and not missing."""
    amounts: Floats = rows.numbers[~rows.hold_no_amount(rows.numbers)[:, j], j]
    return amounts


def apart(rows: TableRows, one: Floats, other: Floats, scales: Floats | float = 1.0) -> Floats:
    """Return how far numbers of the columns of ``rows`` are from others, over their scales; both broadcast.

    Between an amount and what is none, a missing cell or a code, it is the column's fill, whatever the scale.
    """
    is_filled = rows.hold_no_amount(one) | rows.hold_no_amount(other)
    with np.errstate(invalid="ignore"):
        moves = np.abs(one / scales - other / scales)
    return np.where(is_filled, np.where(one == other, 0.0, rows.fills), moves)


# ==== Distances between rows and between sets of them, in l1, l2 or l-infinity ========================================

Norm: TypeAlias = Literal["l1", "l2", "linf"]

#: Names of the norms in scipy.
NORMS = {"l1": "cityblock", "l2": "euclidean", "linf": "chebyshev"}
#: What an argument that names a norm may be.
NORM = Choice(NORMS)
#: A category is a corner of a simplex: corners are 1 apart if each 0/1 coordinate is multiplied by this.
_CORNER = {"l1": 0.5, "l2": np.sqrt(0.5), "linf": 1.0}


def distance(
    x: Any,
    S: Any,
    norm: Norm = "l1",
    *,
    space: FeatureSpace | None = None,
    scale: Any = "none",
    data: Any = None,
    zero: float | None = None,
) -> Floats:
    r"""Distance of each row of S from x, shape (n,).

    .. math:: d(x, c) = \lVert t \rVert_p, \qquad t_j = (c_j - x_j) / s_j

    in raw units (:math:`s_j = 1`) unless ``scale`` says otherwise. With a space, columns may be mixed: a changed
    category or binary column has :math:`|t_j| = 1`, an ordinal one the difference of ranks over (levels - 1), as the
    costs of :func:`ceopt.explain` have it; weights do not count. Without one all columns must be numbers.

    A missing cell equals a missing cell, and a code itself. Between what is no amount and anything else :math:`|t_j|`
    is the column's ``fill``, at scale 1 as in costs; without a space, and where that is infinite, 1.

    Parameters
    ----------
    x
        The factual: a Series, a dict, an array (d,) or a table of one row.
    S
        The counterfactuals: a frame, an array (n, d), a list of rows or a :class:`~ceopt.SolutionSet`.
    norm
        "l1", "l2" or "linf". l2 is the root of the sum of squares (CARLA's L2 is without the root).
    space
        What the columns are.
    scale
        "none", "mad", "std", "range", a mapping or an array: see :func:`ceopt.metrics.distance.scales_of`.
    data
        Rows that the scale is taken from; those with missing cells are left out with a warning.
    zero
        In place of a scale of zero, which is refused otherwise.

    Raises
    ------
    UnknownNameError
        Another norm or scale.
    InvalidTypeError
        A category without a space.
    InvalidValueError
        An empty table, other columns, a missing value where the space has none, a scale of zero.

    Examples
    --------
    >>> distance([0, 0], [[3, 4], [1, 0]], "l1").tolist(), distance([0, 0], [[3, 4], [1, 0]], "l2").tolist()
    ([7.0, 1.0], [5.0, 1.0])
    """
    from_x, of_s = embedded("distance", norm, space=space, scale=scale, data=data, zero=zero, x=x, S=S)
    return np.asarray(pairwise(from_x, of_s, norm)[0])


@final
@dataclass(frozen=True, slots=True, eq=False)
class MixedColumn:
    """The cells of one column of a table.

    ======== ====== =====================================================================
    symbol   shape  meaning
    ======== ====== =====================================================================
    values   (n, c) coordinates of amounts and levels; 0 of other cells
    cells    (n,)   numbers that are equal where the cells are
    is_label (n,)   whether a cell holds no amount and no level: it is missing, or a code
    fill     ()     distance between such a cell and another
    ======== ====== =====================================================================
    """

    name: Any
    values: Floats
    cells: Floats
    is_label: NDArray[np.bool_]
    fill: float

    def fills_between(self, other: MixedColumn) -> tuple[NDArray[np.bool_], Floats]:
        """Return for each pair of cells whether one of them holds no amount, and the distance if so; (n, m)."""
        is_either = self.is_label[:, None] | other.is_label[None, :]
        return is_either, self.fill * (self.cells[:, None] != other.cells[None, :])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """The rows of a table as points whose distances in a norm are those of the rows.

    Parameters
    ----------
    word
        What the caller calls the table.
    values
        Coordinates (n, p) of the columns that hold amounts and levels in all tables read together.
    mixed
        The other columns.
    """

    word: str
    values: Floats
    mixed: tuple[MixedColumn, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    def moves_from(self, one: Points) -> Floats:
        """Return by how much each coordinate differs from those of one row, (n, p); a fill is one coordinate's."""
        moves = [self.values - one.values]
        for column, own in zip(self.mixed, one.mixed, strict=True):
            is_either, fills = column.fills_between(own)
            part = np.where(is_either, 0.0, column.values - own.values)
            part[:, 0] += np.where(is_either, fills, 0.0)[:, 0]
            moves.append(part)
        return np.hstack(moves)


def only_amounts(who: str, tables: Sequence[Points]) -> list[Floats]:
    """Return the coordinates (n, p) of each table, or refuse cells that hold no amount."""
    for points in tables:
        for column in points.mixed:
            for place in np.flatnonzero(column.is_label).tolist():
                but = f"column {column.name!r} of {points.word} has none in row {place}"
                then = "Leave out such rows or the column: what is missing or a code is nowhere among amounts."
                raise InvalidValueError(who, "an amount or a level in each cell", but, then)
    return [points.values for points in tables]


def pairwise(A: Points, B: Points, norm: Norm) -> Floats:
    """Return the distances of all rows of A (n) from all rows of B (m), shape (n, m)."""
    total = _distances(A.values, B.values, norm)
    for column, other in zip(A.mixed, B.mixed, strict=True):
        is_either, fills = column.fills_between(other)
        part = np.where(is_either, fills, _distances(column.values, other.values, norm))
        total = _JOINED[norm](total, part)
    return total


def _distances(A: Floats, B: Floats, norm: Norm) -> Floats:
    from scipy.spatial.distance import cdist

    if A.shape[1] == 0:
        return np.zeros((len(A), len(B)))
    return np.asarray(cdist(A, B, NORMS[norm]))  # type: ignore[call-overload]


#: The norm of two parts, from those of each.
_JOINED: Final[Mapping[str, Callable[[Floats, Floats], Floats]]] = {"l1": np.add, "l2": np.hypot, "linf": np.maximum}


def embedded(
    who: str,
    norm: Norm,
    *,
    space: FeatureSpace | None,
    scale: Any,
    data: Any = None,
    zero: float | None = None,
    corner: float | None = None,
    include_data: bool = False,
    **given: Any,
) -> list[Points]:
    """Return the tables as points whose distances in a norm are those of the rows, in the order given.

    ``data`` is where scales come from; with ``include_data`` its own points follow the others. ``corner`` is what each
    0/1 coordinate of a category is multiplied by; by default such that two categories are 1 apart.
    """
    NORM.require(who, "norm", norm)
    if include_data and data is None:
        raise InvalidTypeError(who, "data", "data is None", "Pass data=X_train.")
    tables = read_beside(who, space, data, **given)
    data_rows = None if data is None else tables[-1]
    if not include_data:
        tables = tables[: len(given)]
    _require_space(who, tables[0])
    scales = scales_of(who, tables, scale, data=data_rows, zero=zero)
    if corner is None:
        corner = _CORNER[norm]
    columns = [*_number_columns(tables, scales), *_category_columns(who, tables, space, corner)]
    points = []
    for place, rows in enumerate(tables):
        plain = [np.empty((len(rows), 0))]
        mixed = []
        for of_tables in columns:
            column = of_tables[place]
            if any(one.is_label.any() for one in of_tables):
                mixed.append(column)
            else:
                plain.append(column.values)
        points.append(Points(rows.word, np.hstack(plain), tuple(mixed)))
    return points


def _number_columns(tables: Sequence[TableRows], scales: Floats) -> Iterator[list[MixedColumn]]:
    """Give each numeric column, of all tables."""
    labels = [rows.hold_no_amount(rows.numbers) for rows in tables]
    for j, name in enumerate(tables[0].numeric):
        column = []
        for rows, is_label in zip(tables, labels, strict=True):
            cells = rows.numbers[:, j]
            values = np.where(is_label[:, j], 0.0, cells / scales[j])
            column.append(MixedColumn(name, values[:, None], cells, is_label[:, j], float(rows.fills[j])))
        yield column


def _category_columns(
    who: str, tables: Sequence[TableRows], space: FeatureSpace | None, corner: float
) -> Iterator[list[MixedColumn]]:
    """Give each column of levels, of all tables."""
    for j, name in enumerate(tables[0].categorical):
        assert space is not None  # noqa: S101 - refused before
        labels = [-1, *(rank for rank, level in enumerate(space[name].levels) if level in space[name].codes)]
        codes = [rows.codes[:, j] for rows in tables]
        column = []
        for own, coordinates in zip(codes, _category(who, name, codes, space), strict=True):
            is_label = np.isin(own, labels)
            values = coordinates if coordinates.shape[1] == 1 else corner * coordinates
            values = np.where(is_label[:, None], 0.0, values)
            column.append(MixedColumn(name, values, own.astype(np.float64), is_label, fill_of(space, name)))
        yield column


def _require_space(who: str, rows: TableRows) -> None:
    if rows.space is None and rows.categorical:
        but = f"column {rows.categorical[0]!r} holds categories"
        then = "Pass space=FeatureSpace.infer(X_train), or encode the column."
        raise InvalidTypeError(who, "numbers, or a space that says what a column is", but, then)


def _category(who: str, name: Any, codes: list[Any], space: FeatureSpace | None) -> list[Floats]:
    """Return an ordinal or binary column as one number, and a categorical one as 0/1 columns, any of a missing cell."""
    assert space is not None  # noqa: S101 - refused before
    feature = space[name]
    most = max(len(feature.levels), 1 + max(int(own.max()) for own in codes))
    if feature.kind == "categorical":
        return [np.eye(most)[own] for own in codes]
    if most > len(feature.levels):
        choices = ", ".join(map(repr, feature.levels))
        but = "a table has another value there"
        raise InvalidValueError(who, f"levels of column {name!r}", but, f"Choose from: {choices}.")
    steps = feature.scale("range")
    return [own[:, None] / steps for own in codes]


def k_distance(
    x: Any,
    S: Any,
    norm: Norm = "l1",
    *,
    space: FeatureSpace | None = None,
    scale: Any = "none",
    data: Any = None,
    zero: float | None = None,
) -> float:
    r"""Mean distance of the counterfactuals from the factual; lower is cheaper.

    .. math:: \text{k-distance}(x, S) = \frac{1}{|S|} \sum_{c \in S} d(x, c)

    In raw units; columns of different units are added as they are unless ``scale`` divides them. The published code
    calls its l1 normalised, but divides by the number of rows of one point, which is 1: it is this plain sum.

    Parameters
    ----------
    x, S, norm, space, scale, data, zero
        As for :func:`~ceopt.metrics.distance.distance`.

    Raises
    ------
    UnknownNameError, InvalidTypeError, InvalidValueError
        As there; an empty set is refused.

    References
    ----------
    Leofante & Potyka (2024), eq. (12), after Mohammadi et al. (2021).

    Examples
    --------
    The distances are 3 + 4 = 7 and 1.

    >>> k_distance([0, 0], [[3, 4], [1, 0]], "l1")
    4.0
    """
    factual, points = embedded("k_distance", norm, space=space, scale=scale, data=data, zero=zero, x=x, S=S)
    return float(pairwise(factual, points, norm).mean())


_CHECKS = {"kind": Choice(("sum", "max")), "norm": NORM}


def set_distance(
    A: Any,
    B: Any,
    kind: Literal["sum", "max"] = "sum",
    norm: Norm = "l1",
    *,
    space: FeatureSpace | None = None,
    scale: Any = "none",
    data: Any = None,
    zero: float | None = None,
) -> float:
    r"""Distance between two sets by each one's nearest in the other; lower is more robust.

    .. math::
        D_\Sigma &= \frac{1}{2|A|} \sum_{a \in A} \min_{b \in B} d(a, b)
                  + \frac{1}{2|B|} \sum_{b \in B} \min_{a \in A} d(b, a) \\
        D_{\max} &= \tfrac12 \Big( \max_{a \in A} \min_{b \in B} d(a, b) + \max_{b \in B} \min_{a \in A} d(b, a) \Big)

    :math:`D_\Sigma \le D_{\max}`; for two single points both are their distance. Symmetric and 0 for equal sets, but no
    metric: the triangle inequality can fail. The greater of the two maxima, not their mean, would be the Hausdorff
    distance.

    Parameters
    ----------
    A, B
        Sets of counterfactuals, such as those of a person and of one with nearly the same values.
    kind
        "sum" or "max".
    norm, space, scale, data, zero
        As for :func:`~ceopt.metrics.distance.distance`; raw units by default.

    Raises
    ------
    UnknownNameError
        Another kind or norm.
    InvalidTypeError, InvalidValueError
        As for ``distance``; an empty set has no distance and is refused.

    References
    ----------
    Leofante & Potyka (2024), eq. (4) and (5), Lemma 1.

    Examples
    --------
    From A, the nearest are 1 and 3 away, from B 1: sums 4/4 + 1/2, maxima (3 + 1)/2.

    >>> A, B = [[0.0], [4.0]], [[1.0]]
    >>> set_distance(A, B, "sum"), set_distance(A, B, "max")
    (1.5, 2.0)
    """
    check_arguments("set_distance", _CHECKS, locals())
    a, b = embedded("set_distance", norm, space=space, scale=scale, data=data, zero=zero, A=A, B=B)
    return between_sets(pairwise(a, b, norm), kind)


def between_sets(distances: Floats, kind: Literal["sum", "max"]) -> float:
    """Return the distance between two sets from those of their members, (n, m)."""
    from_a = distances.min(axis=1)
    from_b = distances.min(axis=0)
    if kind == "max":
        return float(0.5 * (from_a.max() + from_b.max()))
    return float(0.5 * (from_a.mean() + from_b.mean()))

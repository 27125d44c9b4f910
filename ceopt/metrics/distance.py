"""Distances between rows and between sets of them, in l1, l2 or l-infinity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.oracle.rows import TableRows, read
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

    Codes of the space do not count. Without data, the statistics are those that the space has of its own. A zero is
    replaced by ``zero`` if that is given. Otherwise it is refused, unless the column has one value in all tables,
    so that its divisor does not matter.

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
        found = np.asarray(SCALES[scale](data.numbers), dtype=np.float64)
        for j, name in enumerate(data.numeric):
            if data.space is not None and data.space[name].codes:
                found[j] = _of_amounts(who, scale, data, j, data.space[name])
        return found
    known = [None] * len(rows.numeric)
    if rows.space is not None:
        known = [getattr(rows.space[name], scale) for name in rows.numeric]
    for name, value in zip(rows.numeric, known, strict=True):
        if value is None:
            then = "Pass data=X_train, or scale='none' for raw units."
            raise InvalidValueError(who, f"data for scale={scale!r}", f"there is none for column {name!r}", then)
    return np.array(known, dtype=np.float64)


def _of_amounts(who: str, scale: str, data: TableRows, j: int, feature: Feature) -> float:
    """Return a statistic of the amounts of one numeric column of data."""
    numbers = data.numbers[:, j]
    amounts = numbers[~feature.are_codes(numbers)]
    if not len(amounts):
        but = f"each row of data holds a code in column {feature.name!r}"
        raise InvalidValueError(who, f"an amount for scale={scale!r}", but, "Give other rows.")
    return float(SCALES[scale](amounts))


def _positive(who: str, tables: Sequence[TableRows], found: Floats, zero: float | None) -> Floats:
    _ZERO.require(who, "zero", zero)
    for j, name in enumerate(tables[0].numeric):
        if not 0.0 <= found[j] < np.inf:
            raise InvalidValueError(who, "positive scales", f"that of column {name!r} is {found[j]}", "Correct it.")
        if found[j] == 0.0:
            values = np.concatenate([table.numbers[:, j] for table in tables])
            if zero is None and np.ptp(values) > 0.0:
                then = "Pass zero=1.0 to divide by 1 there, as DiCE's code does, or another scale."
                raise InvalidValueError(who, "a scale that is not zero", f"that of column {name!r} is 0", then)
            found[j] = 1.0 if zero is None else zero
    return found


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
        An empty table, other columns, a missing value, a scale of zero.

    Examples
    --------
    >>> distance([0, 0], [[3, 4], [1, 0]], "l1").tolist(), distance([0, 0], [[3, 4], [1, 0]], "l2").tolist()
    ([7.0, 1.0], [5.0, 1.0])
    """
    from_x, of_s = embedded("distance", norm, space=space, scale=scale, data=data, zero=zero, x=x, S=S)
    return np.asarray(pairwise(from_x, of_s, norm)[0])


def pairwise(A: Floats, B: Floats, norm: Norm) -> Floats:
    """Return the distances of all rows of A (n, d) from all rows of B (m, d), shape (n, m)."""
    from scipy.spatial.distance import cdist

    if A.shape[1] == 0:
        return np.zeros((len(A), len(B)))
    return np.asarray(cdist(A, B, NORMS[norm]))  # type: ignore[call-overload]


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
) -> list[Floats]:
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
    parts: list[list[Floats]] = [[rows.numbers / scales] for rows in tables]
    for j, name in enumerate(tables[0].categorical):
        for own, columns in zip(parts, _category(who, name, [rows.codes[:, j] for rows in tables], space), strict=True):
            own.append(columns if columns.shape[1] == 1 else corner * columns)
    return list(map(np.hstack, parts))


def _require_space(who: str, rows: TableRows) -> None:
    if rows.space is None and rows.categorical:
        but = f"column {rows.categorical[0]!r} holds categories"
        then = "Pass space=FeatureSpace.infer(X_train), or encode the column."
        raise InvalidTypeError(who, "numbers, or a space that says what a column is", but, then)


def _category(who: str, name: Any, codes: list[Any], space: FeatureSpace | None) -> list[Floats]:
    """Return an ordinal or binary column as one number, and a categorical one as 0/1 columns."""
    assert space is not None  # noqa: S101 - refused before
    feature = space[name]
    most = max(len(feature.levels), 1 + max(int(own.max()) for own in codes))
    if feature.kind == "categorical":
        return [np.eye(most)[own] for own in codes]
    if most > len(feature.levels):
        choices = ", ".join(map(repr, feature.levels))
        but = "a table has another value there"
        raise InvalidValueError(who, f"levels of column {name!r}", but, f"Choose from: {choices}.")
    steps = max(len(feature.levels) - 1, 1)
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
    apart = pairwise(a, b, norm)
    from_a = apart.min(axis=1)
    from_b = apart.min(axis=0)
    if kind == "max":
        return float(0.5 * (from_a.max() + from_b.max()))
    return float(0.5 * (from_a.mean() + from_b.mean()))

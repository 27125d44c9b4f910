"""By what a column's differences are divided, so that euros and years can be added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ceopt.formulations.space.feature import Feature
from ceopt.metrics.rows import Floats, TableRows
from ceopt.solvers.checks import Choice, OrNone, Real, Refusal
from ceopt.solvers.errors import InvalidValueError, UnknownNameError

__all__ = ["SCALES", "scales_of"]

_NO_ZERO = Refusal("a positive number in place of a scale of zero", "Give 1.0.")
_ZERO = OrNone(Real(above=0.0, finite=True, otherwise=_NO_ZERO))

#: Statistics of a column, each of numbers (n, d) or (n,).
SCALES = {
    "mad": lambda numbers: np.median(np.abs(numbers - np.median(numbers, axis=0)), axis=0),
    "std": lambda numbers: np.std(numbers, axis=0),
    "range": lambda numbers: np.ptp(numbers, axis=0),
}


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
            raise InvalidValueError(
                who, f"a scale for each of {len(names)} numeric columns", f"its shape is {found.shape}", "Correct it."
            )
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
    known = [None if rows.space is None else getattr(rows.space[name], scale) for name in rows.numeric]
    for name, value in zip(rows.numeric, known, strict=True):
        if value is None:
            raise InvalidValueError(
                who, f"data for scale={scale!r}", f"there is none for column {name!r}",
                "Pass data=X_train, or scale='none' for raw units.",
            )  # fmt: skip
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
                raise InvalidValueError(
                    who, "a scale that is not zero", f"that of column {name!r} is 0",
                    "Pass zero=1.0 to divide by 1 there, as DiCE's code does, or another scale.",
                )  # fmt: skip
            found[j] = 1.0 if zero is None else zero
    return found

"""A pool of points as numbers: an array, a frame or the answers for one person, and how far any two are apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ceopt.solution.solution_set import SolutionSet
from ceopt.solvers.checks import MappingOf, Real, Refusal
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

__all__ = ["NORMS", "Norm", "pool_distances"]

_NO_SCALES = Refusal("a scale by column", "Give for example {'income': 1000}.", "{name} is {type}", InvalidTypeError)
_NO_SCALE = Refusal("a scale above 0", "Change it.")
_SCALES = MappingOf(_NO_SCALES, Real(above=0.0, finite=True, otherwise=_NO_SCALE), entry="that of {key}")

Floats = NDArray[np.float64]
Norm = Literal["l1", "l2", "linf", "cosine"]

#: How each distance is called by SciPy; an angle is half the square of the distance of unit vectors.
NORMS: Final[dict[Norm, Literal["cityblock", "euclidean", "chebyshev", "sqeuclidean"]]] = {
    "l1": "cityblock",
    "l2": "euclidean",
    "linf": "chebyshev",
    "cosine": "sqeuclidean",
}
#: Corners of a simplex, a category each, are 1 apart if each 0/1 coordinate is multiplied by this.
_CORNER: Final = {"l1": 0.5, "l2": np.sqrt(0.5), "linf": 1.0, "cosine": np.sqrt(0.5)}


def pool_distances(points: Any, norm: Norm, origin: Any = None, scale: Mapping[str, float] | None = None) -> Floats:
    r"""Return the distances of all pairs of a pool, shape (n, n), symmetric and at least 0.

    ======== ==============================================================================
    norm     distance of p and q
    ======== ==============================================================================
    l1       :math:`\sum_j |p_j - q_j|`
    l2       :math:`\sqrt{\sum_j (p_j - q_j)^2}`
    linf     :math:`\max_j |p_j - q_j|`
    cosine   :math:`1 - \cos(p - o, q - o)` with the sign of the cosine, o the ``origin``
    ======== ==============================================================================

    Numbers and truth values count as they are, or divided by the ``scale`` of their column. In a frame an ordered
    category is its rank over the greatest one, and of any other two different categories, or texts, are 1 apart (where
    there is no other difference).

    Raises
    ------
    InvalidTypeError, InvalidValueError
        What is no pool, is empty, has a missing or infinite number, or a column that is neither number nor category;
        an ``origin`` that is missing, not used, or where a point is; a scale that is no number above 0.
    UnknownNameError
        A scale for a column that there is not.
    """
    if isinstance(points, SolutionSet):
        if not len(points):
            but = f"the solution set has none: {points.status}"
            raise InvalidValueError("select", "at least one answer", but, "Ask for answers first.")
        origin = points.factual if origin is None and norm == "cosine" else origin
        points = points.to_frame()
    if origin is None and norm == "cosine":
        raise InvalidValueError(
            "select", "the row that directions are seen from", "origin is None", "Give origin= with norm='cosine'."
        )
    if origin is not None and norm != "cosine":
        raise InvalidValueError("select", "no origin", f"it is given with norm {norm!r}", "Only norm='cosine' has one.")
    if isinstance(points, pd.DataFrame):
        vectors = _vectors(points, None if origin is None else _row(origin), norm, _scales(scale, points))
    elif scale is not None:
        raise InvalidTypeError("select", "points with named columns for a scale", "points is no frame", "Name them.")
    else:
        vectors = _array("points", points, 2)
        if origin is not None:
            vectors = np.vstack([vectors, _origin(origin, vectors.shape[1])])
    if len(vectors) == (origin is not None) or not vectors.shape[1]:
        raise InvalidValueError("select", "at least one point with a column", "the pool is empty", "Give a pool.")
    if norm != "cosine":
        return np.asarray(cdist(vectors, vectors, NORMS[norm]))
    units = _units(vectors[:-1] - vectors[-1])
    return np.asarray(0.5 * cdist(units, units, NORMS[norm]))


def _array(name: str, values: Any, dimensions: int) -> Floats:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        but = f"{name} is {type(values).__name__} with something else in it"
        raise InvalidTypeError("select", f"numbers as {name}", but, "Give text and categories in a frame.") from error
    if found.ndim != dimensions:
        want = "a row for each point" if dimensions == 2 else "one row"
        but = f"its shape is {found.shape}"
        raise InvalidValueError("select", f"{name} with {want}", but, "Reshape it.")
    bad = np.argwhere(~np.isfinite(found))
    if len(bad):
        at = ", ".join(map(str, bad[0]))
        but = f"{name}[{at}] is {found[tuple(bad[0])]}"
        raise InvalidValueError("select", f"finite {name}", but, "Leave the point out, or fill it.")
    return found


def _origin(origin: Any, width: int) -> Floats:
    found = _array("origin", origin, 1)
    if len(found) != width:
        but = f"it has {len(found)}"
        raise InvalidValueError("select", f"an origin with the {width} columns of points", but, "Give such a row.")
    return found


def _units(moves: Floats) -> Floats:
    sizes = np.abs(moves).max(axis=1, keepdims=True)
    if (sizes == 0.0).any():
        but = f"point {int(sizes.argmin())} is the origin itself"
        raise InvalidValueError("select", "points that lie in a direction", but, "Leave it out.")
    moves = moves / sizes  # squares of very short directions would be 0
    return np.asarray(moves / np.linalg.norm(moves, axis=1, keepdims=True))


def _row(origin: Any) -> dict[Any, Any]:
    if isinstance(origin, pd.DataFrame) and len(origin) == 1:
        origin = origin.iloc[0]
    if not isinstance(origin, pd.Series | Mapping):
        but = f"origin is {type(origin).__name__}"
        raise InvalidTypeError("select", "a Series, a dict or a one-row frame", but, "Name its columns, as in points.")
    return dict(origin)


def _scales(scale: Any, frame: pd.DataFrame) -> dict[Any, float]:
    """Return the scale of some columns by name, or refuse it."""
    if scale is None:
        return {}
    scales: dict[Any, float] = _SCALES.require("select", "scale", scale)
    for name in scales:
        if name not in frame.columns:
            raise UnknownNameError.among("select", "column of scale", name, list(frame.columns))
    return scales


def _vectors(frame: pd.DataFrame, origin: dict[Any, Any] | None, norm: Norm, scales: dict[Any, float]) -> Floats:
    """Return the rows, and the origin as the last one, as vectors."""
    if not frame.columns.is_unique:
        raise InvalidValueError("select", "each column once", "two have the same name", "Rename one.")
    parts = [np.empty((len(frame) + (origin is not None), 0))]
    for name, column in frame.items():
        values = column.tolist()
        if origin is not None:
            if name not in origin:
                raise UnknownNameError.among("select", "column of origin", name, list(origin))
            values.append(origin[name])
        cells = pd.Series(values, dtype=object)
        bad = cells.isna() | cells.isin([np.inf, -np.inf])
        if bad.any():
            place = int(bad.to_numpy().argmax())
            where = f"row {column.index[place]!r}" if place < len(frame) else "origin"
            but = f"column {name!r} has {values[place]} in {where}"
            raise InvalidValueError("select", "a finite value in every cell", but, "Leave the point out, or fill it.")
        parts.append(_coordinates(column, values, norm) / scales.get(name, 1.0))
    return np.hstack(parts)


def _coordinates(column: pd.Series[Any], values: list[Any], norm: Norm) -> Floats:
    """Return the coordinates of one column, shape (n, 1) of numbers or (n, levels) of categories."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        levels = dtype.categories.tolist()
        if unknown := [value for value in values if value not in levels]:
            raise UnknownNameError.among("select", f"level of column {column.name!r}", unknown[0], levels)
        return np.array([levels.index(value) / max(len(levels) - 1, 1) for value in values])[:, None]
    numbers = [isinstance(value, int | float | np.number | np.bool_) for value in values]
    if all(numbers) and not isinstance(dtype, pd.CategoricalDtype):
        return np.array(values, dtype=np.float64)[:, None]
    strange = [v for v, is_number in zip(values, numbers, strict=True) if not is_number and not isinstance(v, str)]
    if strange and not isinstance(dtype, pd.CategoricalDtype):
        but = f"column {column.name!r} holds {strange[0]!r}"
        raise InvalidTypeError("select", "columns of numbers, texts or categories", but, "Convert it, or drop it.")
    codes, found = pd.factorize(pd.Series(values, dtype=object))
    return np.asarray(_CORNER[norm] * (codes[:, None] == np.arange(len(found))))

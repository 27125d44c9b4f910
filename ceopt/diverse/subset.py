"""Diverse subsets of a pool of points."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from ceopt.base.results import Status
from ceopt.formulations.digits import digits
from ceopt.formulations.programs.subset import cheapest_subset, largest_subset, least_distance_bound, max_sum_compact
from ceopt.result.solution_set import SolutionSet
from ceopt.solvers.checks import Choice, Floats, MappingOf, Matrix, Real, Refusal, Whole, check_arguments
from ceopt.solvers.deadline import OutOfTimeError, checkpoint, seconds_left, until
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.problem import Result, Stop, relative_gap_of
from ceopt.solvers.registry import SOLVER_NAME
from ceopt.solvers.run import solve
from ceopt.tolerances import LEAST_SWAP_GAIN, LIMIT_ROUNDING, SUBSET_GAP_ASKED, SUBSET_GAP_PROVED, SUBSET_ROUNDING

# ==== The best subset: greedy choice and swaps, then programs for a better one or the proof ===========================

#: Sets of the same size, a row each, shape (m, j).
Subsets = NDArray[np.intp]
#: Values of the sets, shape (m,); more is better.
Value = Callable[[Subsets], Floats]

#: Numbers that are looked up at once: some 16 MB.
_AT_ONCE: Final = 2_000_000


def in_parts(value: Value, sets: Subsets) -> Floats:
    """Return the values of many sets without looking all of them up at once; a deadline may end it."""
    step = max(1, _AT_ONCE // max(1, sets.shape[1] ** 2))
    parts = []
    for at in range(0, len(sets), step):
        checkpoint("comparing sets of points")
        parts.append(value(sets[at : at + step]))
    return np.concatenate(parts)


def greedy_subset(n: int, k: int, value: Value) -> list[int]:
    """Return the best pair of 0, ..., n - 1, with the point that is best beside them added until there are k."""
    if k == 1:
        return [int(value(np.arange(n)[:, None]).argmax())]
    pairs = np.column_stack(np.triu_indices(n, 1))
    chosen: list[int] = pairs[in_parts(value, pairs).argmax()].tolist()
    while len(chosen) < k:
        others = np.setdiff1d(np.arange(n), chosen)
        sets = np.column_stack([np.tile(chosen, (len(others), 1)), others])
        chosen.append(int(others[in_parts(value, sets).argmax()]))
    return sorted(chosen)


def improved(chosen: list[int], n: int, value: Value) -> list[int]:
    """Return a set that no swap of one point improves, from ``chosen`` on; or the set at the deadline."""
    chosen = list(chosen)
    now = float(value(np.array([chosen]))[0])
    while len(chosen) < n and seconds_left() > 0.0:
        others = np.setdiff1d(np.arange(n), chosen)
        sets = np.tile(chosen, (len(chosen), len(others), 1))
        for place in range(len(chosen)):
            sets[place, :, place] = others
        sets = sets.reshape(-1, len(chosen))
        try:
            values = in_parts(value, sets)
        except OutOfTimeError:
            break
        best = int(values.argmax())
        if not values[best] > now + LEAST_SWAP_GAIN * abs(now):
            break
        chosen = sets[best].tolist()
        now = float(values[best])
    return sorted(chosen)


def sum_of_distances(distances: Floats) -> Value:
    """Return the value of a set as the sum over its pairs."""
    return lambda sets: np.asarray(0.5 * _tables(distances, sets).sum(axis=(1, 2)))


def least_distance(distances: Floats) -> Value:
    """Return the value of a set as its least distance; infinite of one point."""
    apart = distances.copy()
    np.fill_diagonal(apart, np.inf)
    return lambda sets: np.asarray(_tables(apart, sets).min(axis=(1, 2)))


def _tables(matrix: Floats, sets: Subsets) -> Any:
    return matrix[sets[:, :, None], sets[:, None, :]]


#: Eigenvalues of a matrix of n rows take at most n^3 over so many seconds: measured 4e9, on one slow core.
_EIGENVALUES_A_SECOND: Final = 2e9
#: Determinants of so many sets or fewer are all looked at.
_FEW_SETS: Final = 20_000
_STOPS: Final = {
    Stop.TIME_LIMIT: Status.TIME_LIMIT,
    Stop.INTERRUPTED: Status.TIME_LIMIT,
    Stop.FEASIBLE: Status.FEASIBLE,
}
_OUT_OF_TIME: Final = "The time ended before the best set was proved."


@final
@dataclass(frozen=True, slots=True)
class FoundSubset:
    """A subset as places in the pool, its value and the proved bound; ``chosen`` is None without one."""

    status: Status
    chosen: list[int] | None = None
    value: float | None = None
    bound: float | None = None
    reason: str = ""


@final
@dataclass(frozen=True, slots=True)
class SubsetSearch:
    """One pool and one solver; each search ends at the deadline that is set around it.

    Parameters
    ----------
    distances
        Of all pairs, shape (n, n).
    solver
        As for :func:`ceopt.solvers.solve`.
    """

    distances: Floats
    solver: str

    def max_sum(self, k: int) -> FoundSubset:
        """Return the k points with the greatest sum of distances: Glover's program, from a local optimum on."""
        value = sum_of_distances(self.distances)
        start = self._local(k, value)
        unit = float(self.distances.max()) or 1.0  # a solver's tolerances are absolute
        result, chosen = self._solve(lambda: max_sum_compact(self.distances / unit, k), start)
        return self._best(result, [start, chosen], value, unit)

    def max_min(self, k: int) -> FoundSubset:
        """Return the k points with the greatest least distance.

        It is the distance of some pair. Between what a local search has and what no k points can have, those distances
        are halved: a set with at least the middle one either is there, or is proved not to be.
        """
        value = least_distance(self.distances)
        chosen = self._local(k, value)
        best = float(value(np.array([chosen]))[0])
        sizes = np.unique(self.distances[np.triu_indices(len(self.distances), 1)])
        sizes = sizes[(sizes > best) & (sizes <= least_distance_bound(self.distances, k))]
        while len(sizes):
            middle = len(sizes) // 2
            found = self.cheapest(np.zeros(len(self.distances)), k, float(sizes[middle]))
            if found.status is Status.INFEASIBLE:
                sizes = sizes[:middle]
            elif found.chosen is None:
                status = Status.FEASIBLE if found.status is Status.TIME_LIMIT else found.status
                return FoundSubset(status, chosen, best, float(sizes[-1]), found.reason or _OUT_OF_TIME)
            else:
                chosen = found.chosen
                best = float(value(np.array([chosen]))[0])
                sizes = sizes[sizes > best]
        return FoundSubset(Status.OPTIMAL, chosen, best, best)

    def largest(self, beta: float) -> FoundSubset:
        """Return the most points that are pairwise at least beta apart."""
        start = self._apart(beta)
        result, chosen = self._solve(lambda: largest_subset(self.distances, beta, cliques=True), start)
        found = self._best(result, [start, chosen], lambda sets: np.full(len(sets), float(sets.shape[1])), 1.0)
        if found.bound is None or found.value is None:
            return found
        bound = max(found.value, math.floor(found.bound + SUBSET_GAP_PROVED))
        if bound == found.value:
            return FoundSubset(Status.OPTIMAL, found.chosen, found.value, bound)
        return replace(found, bound=bound)

    def cheapest(self, costs: Floats, k: int, beta: float) -> FoundSubset:
        """Return the k points that are pairwise at least beta apart and cost least together."""
        unit = float(np.abs(costs).max()) or 1.0
        result, chosen = self._solve(lambda: cheapest_subset(self.distances, costs / unit, k, beta, cliques=True), None)
        return self._best(result, [chosen], lambda sets: -costs[sets].sum(axis=1), -unit)

    def determinant(self, k: int) -> FoundSubset:
        r"""Return k points with a large determinant of :math:`1 / (1 + D_{pq})`: all sets of a few, else local search.

        The bound is the product of the k greatest eigenvalues of the whole matrix where none is negative (interlacing).
        """
        n = len(self.distances)
        kernel = 1.0 / (1.0 + self.distances)

        def value(sets: Any) -> Floats:
            return np.asarray(np.linalg.det(kernel[sets[:, :, None], sets[:, None, :]]))

        if math.comb(n, k) <= _FEW_SETS:
            sets = np.array(list(itertools.combinations(range(n), k)))
            with suppress(OutOfTimeError):
                values = in_parts(value, sets)
                best = int(values.argmax())
                worth = float(values[best])
                return FoundSubset(Status.OPTIMAL, sets[best].tolist(), worth, worth)
        chosen = self._local(k, value)
        is_late = seconds_left() <= 0.0
        worth = float(value(np.array([chosen]))[0])
        bound = None
        if n**3 / _EIGENVALUES_A_SECOND < seconds_left():
            eigenvalues = np.linalg.eigvalsh(kernel)
            if eigenvalues[0] >= -1e-12 * n:
                bound = float(np.prod(eigenvalues[n - k :]))
        reason = "Found by greedy choice and swaps: no single swap is better, and more is not proved."
        if is_late:
            reason = "Found by greedy choice; the time ended before all swaps were tried."
        if bound is not None:
            bound = max(worth, min(bound, 1.0))
        return FoundSubset(Status.FEASIBLE, chosen, worth, bound, reason)

    def _local(self, k: int, value: Value) -> list[int]:
        """Return k points that no swap makes better; any k where the time ends before there are better ones."""
        n = len(self.distances)
        try:
            first = greedy_subset(n, k, value)
        except OutOfTimeError:
            return list(range(k))
        return improved(first, n, value)

    def _apart(self, beta: float) -> list[int]:
        """Return points that are pairwise at least beta apart: each is the one that bars fewest of those left.

        They are fewer where the time ends.
        """
        close = self.distances < beta
        np.fill_diagonal(close, val=True)
        left = np.ones(len(close), dtype=bool)
        chosen: list[int] = []
        while left.any() and (seconds_left() > 0.0 or not chosen):
            crowd = np.where(left, close[:, left].sum(axis=1), len(close) + 1)
            one = int(crowd.argmin())
            chosen.append(one)
            left &= ~close[one]
        return sorted(chosen)

    def _solve(self, program: Callable[[], Any], start: list[int] | None) -> tuple[Result | None, list[int] | None]:
        """Return how the solver ended and the points it chose; None where there is no time left."""
        try:
            checkpoint("choosing points")
            model = program()
            checkpoint("choosing points")
        except OutOfTimeError:
            return None, None
        if start is not None:
            _begin(model, start)
        result = solve(model, self.solver, start=start is not None, relative_gap=SUBSET_GAP_ASKED)
        if not result.solutions:
            return result, None
        return result, [p for p in model.y if model.y[p].value > 0.5]

    def _best(self, result: Result | None, sets: list[list[int] | None], value: Value, unit: float) -> FoundSubset:
        """Return the best set in hand with its recomputed value, "optimal" only where the bound proves it.

        More of ``value`` is better; the program's objective is ``value / unit``.
        """
        if result is not None and result.status is Stop.INFEASIBLE:
            return FoundSubset(Status.INFEASIBLE)
        worths = [(float(value(np.array([chosen]))[0]), chosen) for chosen in sets if chosen]
        stop = Stop.TIME_LIMIT
        reason = _OUT_OF_TIME
        if result is not None:
            stop = result.status
            reason = result.message or _OUT_OF_TIME
        if not worths:
            return FoundSubset(_STOPS.get(stop, Status.ERROR), reason=reason)
        worth, chosen = max(worths, key=lambda pair: pair[0])
        sign = math.copysign(1.0, unit)
        bound = None
        if result is not None and result.bound is not None and math.isfinite(result.bound):
            bound = max(worth, unit * result.bound)
            if bound - worth <= SUBSET_GAP_PROVED * abs(worth) + SUBSET_ROUNDING * abs(unit):
                return FoundSubset(Status.OPTIMAL, chosen, sign * worth + 0.0, sign * bound + 0.0)
            bound = sign * bound + 0.0
        return FoundSubset(Status.FEASIBLE, chosen, sign * worth + 0.0, bound, reason)


def _begin(model: Any, chosen: list[int]) -> None:
    for p in model.y:
        model.y[p].value = float(p in chosen)


# ==== A pool of points as numbers =====================================================================================

_NO_SCALES = Refusal("a scale by column", "Give for example {'income': 1000}.", "{name} is {type}", InvalidTypeError)
_NO_SCALE = Refusal("a scale above 0", "Change it.")
_SCALES = MappingOf(_NO_SCALES, Real(above=0.0, finite=True, otherwise=_NO_SCALE), entry="that of {key}")

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
    there is no other difference). A column of a frame that is missing in every row counts nothing.

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
        if origin is None and norm == "cosine":
            origin = points.factual
        points = points.to_frame()
    if origin is None and norm == "cosine":
        then = "Give origin= with norm='cosine'."
        raise InvalidValueError("select", "the row that directions are seen from", "origin is None", then)
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
        if cells.isna().all():  # a cell that has stayed missing tells nobody apart
            continue
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


# ==== select: one call for five objectives ============================================================================

Objective = Literal["max_sum", "max_min", "cheapest", "largest", "determinant"]

#: Objective -> which arguments it has beside the points: those it needs, and those it can do without.
_TAKES: Final = {
    "max_sum": (("k",), ()),
    "max_min": (("k",), ()),
    "cheapest": (("beta", "costs"), ("k",)),
    "largest": (("beta",), ()),
    "determinant": (("k",), ()),
}
_CHECKS = {
    "objective": Choice(list(_TAKES)),
    "norm": Choice(list(NORMS)),
    "solver": SOLVER_NAME,
    "time_limit_s": Real(above=0.0),
}
_NO_BETA = Refusal("a number as beta", "Give for example 0.5.", error=InvalidTypeError)
_BETA = Real(
    at_least=0.0,
    finite=True,
    otherwise=Refusal("a finite beta of at least 0", "Give such a number."),
    wrong_type=_NO_BETA,
)
_BETA_OF_COSINE = Real(
    at_least=0.0,
    at_most=2.0,
    otherwise=Refusal("beta from 0 to 2, as 1 - cosine is", "Give such a number."),
    wrong_type=_NO_BETA,
)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection:
    """What :func:`select` returns.

    Parameters
    ----------
    indices
        Places of the chosen points in the pool, ascending; empty where there is no such set.
    value
        What they are worth by the objective, recomputed from the points; None without a set, nan for the least distance
        of one point.
    status
        "optimal" (proved), "feasible" (a set, not proved to be the best), "infeasible" (proved: there is no such set),
        "time_limit" (nothing in hand) or "error".
    bound
        What is proved: no set has more, or costs less. None where nothing is.
    reason
        One sentence, or empty.
    """

    indices: NDArray[np.intp]
    value: float | None
    status: Status
    bound: float | None = None
    reason: str = ""
    gap: float | None = field(init=False)

    def __post_init__(self) -> None:
        indices = np.array(self.indices, dtype=np.intp)
        indices.setflags(write=False)
        object.__setattr__(self, "indices", indices)
        object.__setattr__(self, "gap", relative_gap_of(self.value, self.bound))

    def __len__(self) -> int:
        return len(self.indices)


def select(
    points: Any,
    k: int | None = None,
    *,
    objective: Objective = "max_sum",
    norm: Norm = "l2",
    beta: float | None = None,
    costs: ArrayLike | None = None,
    origin: Any = None,
    scale: Mapping[str, float] | None = None,
    solver: str = "auto",
    time_limit_s: float = 60.0,
) -> Selection:
    r"""Choose points of a pool that are far from each other.

    ============= ============================================================ ======================= ==============
    objective     what is chosen                                               solved as               optimal
    ============= ============================================================ ======================= ==============
    max_sum       k points, :math:`\max \sum_{p<q} D_{pq}`                     ``max_sum_compact``     proved
    max_min       k points, :math:`\max \min_{p<q} D_{pq}`                     ``cheapest_subset`` for proved
                                                                               a few distances
    cheapest      k points with all :math:`D_{pq} \ge \beta`,                  ``cheapest_subset``     proved
                  :math:`\min \sum_p c_p`; without k as many as can be
    largest       as many as can be with all :math:`D_{pq} \ge \beta`          ``largest_subset``      proved
    determinant   k points, :math:`\max \det [1 / (1 + D_{pq})]`               all sets of 20,000, or  of few sets
                                                                               else greedy and swaps
    ============= ============================================================ ======================= ==============

    The programs are functions of :mod:`ceopt.formulations.programs`, to read, change and export; beside them stand
    those that the objectives are published as, ``max_sum_subset`` and ``max_min_subset``, whose proofs take far longer.
    Which of several best sets comes back is up to the solver, and the same each time.

    Parameters
    ----------
    points
        An array (n, d), a frame with a row for each point, or a :class:`~ceopt.SolutionSet`, of which ``indices`` then
        number the answers. Numbers count as they are, or as ``scale`` says. In a frame an ordered category counts as
        its rank over the greatest one, and two different texts or other categories are 1 apart.
    k
        How many points are wanted, 1 to n. None asks "cheapest" for as many as can be, and of these sets the cheapest;
        "largest" has none.
    objective
        One of the table.
    norm
        D: "l1", "l2", "linf", or "cosine" for :math:`1 - \cos` of the directions from ``origin``: 0 for the same, 1 at
        right angles, 2 for opposite ones.
    beta
        Least distance of any two for "cheapest" and "largest", at least 0 and with "cosine" at most 2. A distance may
        miss it by rounding, 1e-12 of it.
    costs
        Of each point, for "cheapest"; of a SolutionSet None means the answers' own.
    origin
        The row that directions are seen from, for "cosine": a sequence of d numbers for an array, a Series, dict or
        one-row frame for a frame; of a SolutionSet None means its factual.
    scale
        By what columns of a frame are divided, by name; columns that are not named count as they are.
    solver
        As for :func:`ceopt.solvers.solve`. The determinant asks none.
    time_limit_s
        Of the whole call. What is in hand then comes back as "feasible", with what is proved as its ``.bound``.

    Returns
    -------
    Selection
        ``.indices``, ``.value`` and ``.status``; ``.bound``, ``.gap`` and ``.reason``.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        An empty pool; a missing, infinite or unusable cell; ``k`` or ``beta`` out of range; an argument that the
        objective needs and lacks, or has no use for; costs that are not one finite number a point.
    UnknownNameError
        An objective, norm, solver or column of the origin that does not exist.

    References
    ----------
    Sum: Kuo, Glover & Dhir (1993), Analyzing and modeling the maximum diversity problem. Least distance: Kuby (1987),
    Programming models for facility dispersion. Determinant: Kulesza & Taskar (2012), Determinantal point processes for
    machine learning; as a measure of diversity Mothilal, Sharma & Tan (2020).

    Examples
    --------
    >>> from ceopt.diverse import select
    >>> points = [[0, 0], [1, 0], [0, 1], [4, 0], [4, 3]]
    >>> chosen = select(points, 3, objective="max_min")
    >>> chosen.indices.tolist(), chosen.value, str(chosen.status)
    ([0, 3, 4], 3.0, 'optimal')
    >>> select(points, objective="largest", beta=1.2).indices.tolist()
    [1, 2, 3, 4]
    >>> nobody = select(points, 3, objective="cheapest", beta=4.5, costs=[1, 1, 1, 1, 1])
    >>> str(nobody.status), nobody.indices.tolist(), nobody.reason
    ('infeasible', [], 'No 3 of the 5 points are pairwise at least 4.5 apart (l2).')
    """
    began = time.perf_counter()
    if isinstance(points, SolutionSet) and objective == "cheapest" and costs is None:
        costs = [answer.cost for answer in points]
    check_arguments("select", _CHECKS, locals())
    _check_use(objective, {"k": k, "beta": beta, "costs": costs})
    distances = pool_distances(points, norm, origin, scale)
    n = len(distances)
    if k is not None:
        Whole(1, n).require("select", "k", k)
    price = np.zeros(n) if costs is None else Matrix((n,)).require("select", "costs", costs)
    least = None if beta is None else _least(beta, norm)
    with until(began + time_limit_s):
        found = _found(SubsetSearch(distances, solver), objective, k, least, price)
    reason = found.reason
    if found.status is Status.INFEASIBLE:
        reason = f"No {k} of the {n} points are pairwise at least {digits(beta or 0.0)} apart ({norm})."
    elif not reason and k is not None and k > 1 and found.value == 0.0 and objective in {"max_min", "determinant"}:
        reason = f"Any {k} of the {n} points have two that are at distance 0."
    return Selection(
        indices=np.array(found.chosen or (), dtype=np.intp),
        value=found.value,
        status=found.status,
        bound=found.bound,
        reason=reason,
    )


def _found(
    search: SubsetSearch, objective: str, k: int | None, beta: float | None, costs: NDArray[np.float64]
) -> FoundSubset:
    if beta is not None:
        if objective == "largest":
            return search.largest(beta)
        if k is None:
            return _cheapest_of_largest(search, beta, costs)
        return search.cheapest(costs, k, beta)
    assert k is not None  # noqa: S101 - the objectives that have no beta need it
    if objective == "max_min" and k == 1:
        return FoundSubset(Status.OPTIMAL, [0], math.nan, None, "One point has no distance to another.")
    by_objective = {"max_sum": search.max_sum, "max_min": search.max_min, "determinant": search.determinant}
    return by_objective[objective](k)


def _cheapest_of_largest(search: SubsetSearch, beta: float, costs: NDArray[np.float64]) -> FoundSubset:
    most = search.largest(beta)
    if most.chosen is None:
        return most
    found = search.cheapest(costs, len(most.chosen), beta)
    if found.chosen is None:  # out of time: the largest set is one
        return FoundSubset(Status.FEASIBLE, most.chosen, float(costs[most.chosen].sum()), None, found.reason)
    if most.status is Status.OPTIMAL:
        return found
    reason = f"That no more than {len(most.chosen)} points are so far apart was not proved."
    return FoundSubset(Status.FEASIBLE, found.chosen, found.value, None, reason)


def _check_use(objective: str, given: dict[str, Any]) -> None:
    """Refuse arguments that the objective lacks, and those that it would ignore."""
    needs, may = _TAKES[objective]
    for name, value in given.items():
        if value is None and name in needs:
            but = f"{name} is None"
            raise InvalidValueError("select", f"{name} for objective {objective!r}", but, f"Give {name}=.")
        if value is not None and name not in (*needs, *may):
            other = " and ".join(repr(o) for o, (need, can) in _TAKES.items() if name in (*need, *can))
            but = f"{name} is given"
            raise InvalidValueError("select", f"no {name} for objective {objective!r}", but, f"It belongs to {other}.")


def _least(beta: Any, norm: str) -> float:
    """Return the least distance with room for rounding, or refuse it."""
    if norm == "cosine":
        return max(0.0, _BETA_OF_COSINE.require("select", "beta", beta) - LIMIT_ROUNDING)
    least = _BETA.require("select", "beta", beta)
    return max(0.0, least - LIMIT_ROUNDING * least)

"""The best subset of a pool: greedy choice and swaps find a good one, programs a better one or the proof of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.programs.subset import cheapest_subset, largest_subset, least_distance_bound, max_sum_compact
from ceopt.solvers.deadline import OutOfTimeError, checkpoint, seconds_left
from ceopt.solvers.problem import Result, Stop
from ceopt.solvers.run import solve
from ceopt.status import Status
from ceopt.tolerances import LEAST_SWAP_GAIN, SUBSET_GAP_ASKED, SUBSET_GAP_PROVED, SUBSET_ROUNDING

__all__ = [
    "FoundSubset",
    "SubsetSearch",
    "Subsets",
    "Value",
    "greedy_subset",
    "improved",
    "in_parts",
    "least_distance",
    "sum_of_distances",
]

Floats = NDArray[np.float64]
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
    chosen: list[int] = [int(p) for p in pairs[in_parts(value, pairs).argmax()]]
    while len(chosen) < k:
        others = np.setdiff1d(np.arange(n), chosen)
        sets = np.column_stack([np.tile(chosen, (len(others), 1)), others])
        chosen.append(int(others[in_parts(value, sets).argmax()]))
    return sorted(chosen)


def improved(chosen: list[int], n: int, value: Value) -> list[int]:
    """Return a set that no swap of one point makes better, from ``chosen`` on; or what is there at the deadline."""
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
        chosen = [int(p) for p in sets[best]]
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
    """A subset as places in the pool, what it is worth and what is proved; without one ``chosen`` is None."""

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
        status = Status.OPTIMAL if bound == found.value else found.status
        return FoundSubset(status, found.chosen, found.value, bound, "" if status is Status.OPTIMAL else found.reason)

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
                return FoundSubset(Status.OPTIMAL, [int(p) for p in sets[best]], worth, worth)
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
        return FoundSubset(
            Status.FEASIBLE, chosen, worth, None if bound is None else max(worth, min(bound, 1.0)), reason
        )

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
        chosen = [p for p in model.y if model.y[p].value > 0.5] if result.solutions else None
        return result, chosen

    def _best(self, result: Result | None, sets: list[list[int] | None], value: Value, unit: float) -> FoundSubset:
        """Return the best set in hand, its value counted anew, and "optimal" only where the bound says so.

        More of ``value`` is better; the program's objective is ``value / unit``.
        """
        if result is not None and result.status is Stop.INFEASIBLE:
            return FoundSubset(Status.INFEASIBLE)
        worths = [(float(value(np.array([chosen]))[0]), chosen) for chosen in sets if chosen]
        stop = Stop.TIME_LIMIT if result is None else result.status
        reason = (result.message if result is not None else "") or _OUT_OF_TIME
        if not worths:
            return FoundSubset(_STOPS.get(stop, Status.ERROR), reason=reason)
        worth, chosen = max(worths, key=lambda pair: pair[0])
        sign = math.copysign(1.0, unit)
        bound = None
        if result is not None and result.bound is not None and math.isfinite(result.bound):
            bound = max(worth, unit * result.bound)
            if bound - worth <= SUBSET_GAP_PROVED * abs(worth) + SUBSET_ROUNDING * abs(unit):
                return FoundSubset(Status.OPTIMAL, chosen, sign * worth + 0.0, sign * bound + 0.0)
        return FoundSubset(
            Status.FEASIBLE, chosen, sign * worth + 0.0, None if bound is None else sign * bound + 0.0, reason
        )


def _begin(model: Any, chosen: list[int]) -> None:
    for p in model.y:
        model.y[p].value = float(p in chosen)

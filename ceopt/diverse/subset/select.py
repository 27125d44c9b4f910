"""A few points of a pool that are far from each other, exactly: one call for five objectives."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ceopt.diverse.subset.exact_search import FoundSubset, SubsetSearch
from ceopt.diverse.subset.pool import NORMS, Norm, pool_distances
from ceopt.formulations.digits import digits
from ceopt.solution.solution_set import SolutionSet
from ceopt.solvers.checks import Choice, Matrix, Real, Refusal, Whole, check_arguments
from ceopt.solvers.deadline import until
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError
from ceopt.solvers.problem import relative_gap_of
from ceopt.solvers.registry import SOLVER_NAME
from ceopt.status import Status
from ceopt.tolerances import LIMIT_ROUNDING

__all__ = ["Selection", "select"]

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
        return search.cheapest(costs, k, beta) if k is not None else _cheapest_of_largest(search, beta, costs)
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
    """Refuse what the objective needs and lacks, and what it would ignore."""
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

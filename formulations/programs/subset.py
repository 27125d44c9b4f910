"""Diverse subsets of a pool, as programs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.parts import described, sum_of
from ceopt.solvers.checks import Floats, Matrix, Real, Whole
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import InvalidValueError

# ==== Pairs of a pool of points: their distances, and those that are too close ========================================

Pair = tuple[int, int]


def require_pairs(who: str, distances: ArrayLike) -> Floats:
    """Return the distances of all pairs of n points, shape (n, n), with a diagonal of 0, or refuse them."""
    found = Matrix((None, None)).require(who, "distances", distances)
    n = len(found)
    if not n:
        raise InvalidValueError(who, "at least one point", "distances is empty", "Give the distances of a pool.")
    if found.shape[1] != n:
        raise InvalidValueError(
            who, "a square matrix of distances", f"its shape is {found.shape}", "Give the distance of each pair."
        )
    np.fill_diagonal(found, 0.0)
    for wrong, is_so in ((found != found.T, "differ by direction"), (found < 0.0, "are negative")):
        if wrong.any():
            p, q = np.argwhere(wrong)[0]
            but = f"{found[p, q]} and {found[q, p]} of points {p} and {q} {is_so}"
            raise InvalidValueError(who, "distances", but, "A distance is the same there and back, and at least 0.")
    return found


def pairs_of(n: int) -> list[Pair]:
    """Return the pairs p < q of n points."""
    return [(p, q) for p in range(n) for q in range(p + 1, n)]


def close_pairs(who: str, distances: Floats, beta: float) -> list[Pair]:
    """Return the pairs p < q that are less than ``beta`` apart."""
    Real(at_least=0.0).require(who, "beta", beta)
    first, second = np.nonzero(np.triu(distances < beta, 1))
    return list(zip(first.tolist(), second.tolist(), strict=True))


def choice_of(who: str, n: int, k: int | None = None) -> pyo.ConcreteModel:
    r"""Return a program with ``y``, a binary a point, and with ``k`` the row ``count``: :math:`\sum_p y_p = k`."""
    model = pyo.ConcreteModel(name=who)
    model.y = pyo.Var(range(n), domain=pyo.Binary)
    if k is not None:
        Whole(1, n).require(who, "k", k)
        model.count = pyo.Constraint(expr=sum_of(model.y.values()) == int(k))
    return model


def clique_cover(n: int, pairs: list[Pair]) -> Iterator[tuple[int, ...]]:
    """Yield sets of points, any two of a set being one of the pairs, until each pair is in a set.

    Greedy: each set starts at a pair that is in none yet and grows by the point that brings most
    such pairs.
    """
    near = np.zeros((n, n), dtype=bool)
    for p, q in pairs:
        near[p, q] = near[q, p] = True
    left = near.copy()
    for p, q in pairs:
        if not left[p, q]:
            continue
        checkpoint("stating the program")
        clique = [p, q]
        fits = near[p] & near[q]
        while fits.any():
            checkpoint("stating the program")
            gain = np.where(fits, left[clique].sum(axis=0), -1)
            best = int(gain.argmax())
            clique.append(best)
            fits &= near[best]
        left[np.ix_(clique, clique)] = False
        yield tuple(sorted(clique))


# ==== Points of a pool that keep a least distance from each other: as many as can be, or some few at the least cost ===


def largest_subset(distances: ArrayLike, beta: float, *, cliques: bool = False) -> pyo.ConcreteModel:
    r"""State the largest set of points that are pairwise at least ``beta`` apart.

    .. math::
        \max_y\ \sum_p y_p \quad\text{s.t.}\quad y_p + y_q \le 1 \ \text{ where } D_{pq} < \beta, \quad
        y \in \{0, 1\}^n; \qquad \text{with cliques: } \sum_{p \in C} y_p \le 1 \ \text{ for } C \in \mathcal{C}.

    ====== ========= ====== ========================================================================================
    symbol component shape  meaning
    ====== ========= ====== ========================================================================================
    D                (n, n) ``distances``; symmetric, the diagonal is not read. 1 - cosine makes it a set of angles
    y      ``y``     (n,)   1 if the point is chosen
    C                       sets of points that are all closer than beta, which together hold each such pair; greedy
    ====== ========= ====== ========================================================================================

    n binaries and a row ``close`` for each pair that is too close, n(n-1)/2 at most, or a row ``clique`` for each C,
    which are fewer (MILP). Exact either way. Half of every point meets all rows of pairs, so that their relaxation is
    at least n/2; rows of cliques do not allow it, and :func:`ceopt.diverse.select` has those.

    Parameters
    ----------
    distances
        Of each pair of n points.
    beta
        The least distance, compared as the floats are; at least 0.
    cliques
        Rows of cliques in place of those of pairs.

    Raises
    ------
    InvalidValueError
        ``distances`` is not a matrix of distances, or ``beta`` below 0.

    References
    ----------
    The largest stable set of the graph of close points. Clique rows: Padberg (1973), On the facial structure of set
    packing polyhedra.

    Examples
    --------
    Four points on a line, at 0, 1, 2 and 4:

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> d = [[0, 1, 2, 4], [1, 0, 1, 3], [2, 1, 0, 2], [4, 3, 2, 0]]
    >>> m = programs.largest_subset(d, beta=2.5)
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.expr)
    y[0] + y[1]  <=  1.0
    y[0] + y[2]  <=  1.0
    y[1] + y[2]  <=  1.0
    y[2] + y[3]  <=  1.0
    >>> solve(m).objective
    2.0
    >>> for row in programs.largest_subset(d, beta=2.5, cliques=True).component_data_objects(pyo.Constraint):
    ...     print(row.expr)
    y[0] + y[1] + y[2]  <=  1.0
    y[2] + y[3]  <=  1.0
    """
    d = require_pairs("largest_subset", distances)
    model = choice_of("largest_subset", len(d))
    _keep_apart(model, "largest_subset", d, beta, cliques=cliques)
    model.size = pyo.Objective(expr=sum_of(model.y.values()), sense=pyo.maximize)
    return described(
        model,
        title="largest set at least beta apart",
        formula="max sum y, y_p + y_q <= 1 where D_pq < beta",
        reference="clique rows: Padberg (1973)",
    )


def cheapest_subset(
    distances: ArrayLike, costs: ArrayLike, k: int, beta: float, *, cliques: bool = False
) -> pyo.ConcreteModel:
    r"""State the k points that are pairwise at least ``beta`` apart and cost least together.

    .. math::
        \min_y\ \sum_p c_p y_p \quad\text{s.t.}\quad y_p + y_q \le 1 \ \text{ where } D_{pq} < \beta, \quad
        \sum_p y_p = k, \quad y \in \{0, 1\}^n; \qquad
        \text{with cliques: } \sum_{p \in C} y_p \le 1 \ \text{ for } C \in \mathcal{C}.

    ====== ========= ====== ========================================================================================
    symbol component shape  meaning
    ====== ========= ====== ========================================================================================
    D                (n, n) ``distances``; symmetric, the diagonal is not read
    c                (n,)   ``costs``; all 0 asks only whether there are such points
    y      ``y``     (n,)   1 if the point is chosen
    C                       as in :func:`largest_subset`
    ====== ========= ====== ========================================================================================

    n binaries, one row, and the rows of :func:`largest_subset` (MILP). Exact; infeasible where no k points are so far
    apart.

    Parameters
    ----------
    distances
        Of each pair of n points.
    costs
        Of each point; finite.
    k
        How many points are wanted, 1 to n.
    beta
        The least distance, compared as the floats are; at least 0.
    cliques
        Rows of cliques in place of those of pairs.

    Raises
    ------
    InvalidValueError
        ``distances`` is not a matrix of distances, ``costs`` not a number for each point, ``k`` no count of the points,
        or ``beta`` below 0.

    References
    ----------
    As :func:`largest_subset`, with the cost of the points in place of their number.

    Examples
    --------
    Three points on a line, at 0, 1 and 3; the last is dear:

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.cheapest_subset([[0, 1, 3], [1, 0, 2], [3, 2, 0]], costs=[1, 2, 5], k=2, beta=2)
    >>> print(m.cost.expr)
    y[0] + 2.0*y[1] + 5.0*y[2]
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.expr)
    y[0] + y[1] + y[2]  ==  2
    y[0] + y[1]  <=  1.0
    >>> solve(m).objective
    6.0
    """
    d = require_pairs("cheapest_subset", distances)
    price = Matrix((len(d),)).require("cheapest_subset", "costs", costs)
    model = choice_of("cheapest_subset", len(d), k)
    _keep_apart(model, "cheapest_subset", d, beta, cliques=cliques)
    model.cost = pyo.Objective(expr=sum_of(model.y.values(), price))
    return described(
        model,
        title="cheapest k points at least beta apart",
        formula="min sum c_p y_p, y_p + y_q <= 1 where D_pq < beta, sum y = k",
        reference="clique rows: Padberg (1973)",
    )


def _keep_apart(model: pyo.ConcreteModel, who: str, d: Floats, beta: float, *, cliques: bool) -> None:
    """Add the rows that bar pairs closer than beta."""
    pairs = close_pairs(who, d, beta)
    if not cliques:
        model.close = pyo.Constraint(pairs, rule=lambda m, p, q: sum_of((m.y[p], m.y[q])) <= 1.0)
        return
    sets = list(clique_cover(len(d), pairs))
    model.clique = pyo.Constraint(range(len(sets)), rule=lambda m, c: sum_of(m.y[p] for p in sets[c]) <= 1.0)


# ==== The k points of a pool whose distances add up to most, with one number a point instead of one a pair ============


def max_sum_compact(distances: ArrayLike, k: int) -> pyo.ConcreteModel:
    r"""State the k points whose distances add up to most (max-sum dispersion), point by point.

    .. math::
        \max_{y, w}\ \tfrac12 \sum_p w_p \quad\text{s.t.}\quad w_p \le U_p y_p, \quad
        w_p \le \sum_{q \ne p} D_{pq} y_q - L_p (1 - y_p), \quad \sum_p y_p = k, \quad y \in \{0, 1\}^n, \quad w \ge 0.

    ====== ========= ====== ========================================================================================
    symbol component shape  meaning
    ====== ========= ====== ========================================================================================
    D                (n, n) ``distances``; symmetric, the diagonal is not read
    y      ``y``     (n,)   1 if the point is chosen
    w      ``w``     (n,)   what a chosen point has to the other chosen ones; 0 of another point
    U, L             (n,)   most that k - 1 other points give, least that k other points give (or all, where k = n)
    ====== ========= ====== ========================================================================================

    n binaries, n numbers, 2n + 1 rows with n^2 + 3n entries (MILP). Exact: :func:`max_sum_subset` has the same optimum.
    Of 30 random points in space and k = 5 HiGHS proved it in a second; of that one it had a gap of 180 % after 30.

    Parameters
    ----------
    distances, k
        As for :func:`max_sum_subset`.

    Raises
    ------
    InvalidValueError
        As for :func:`max_sum_subset`.

    References
    ----------
    The problem: Kuo, Glover & Dhir (1993), Analyzing and modeling the maximum diversity problem. The linearisation,
    with the bounds at the number of points wanted: Glover (1975), Improved linear integer programming formulations of
    nonlinear integer problems.

    Examples
    --------
    Three points on a line, at 0, 1 and 3:

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.max_sum_compact([[0, 1, 3], [1, 0, 2], [3, 2, 0]], k=2)
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.expr)
    y[0] + y[1] + y[2]  ==  2
    w[0] - 3.0*y[0]  <=  0.0
    w[1] - 2.0*y[1]  <=  0.0
    w[2] - 3.0*y[2]  <=  0.0
    w[0] - 4.0*y[0] - y[1] - 3.0*y[2]  <=  -4.0
    w[1] - 3.0*y[1] - y[0] - 2.0*y[2]  <=  -3.0
    w[2] - 5.0*y[2] - 3.0*y[0] - 2.0*y[1]  <=  -5.0
    >>> solve(m).objective
    3.0
    """
    d = require_pairs("max_sum_compact", distances)
    points = range(len(d))
    model = choice_of("max_sum_compact", len(d), k)
    others = np.sort(d[~np.eye(len(d), dtype=bool)].reshape(len(d), -1), axis=1)
    most = others[:, len(d) - k :].sum(axis=1)
    least = others[:, :k].sum(axis=1)
    model.w = pyo.Var(points, domain=pyo.NonNegativeReals)

    def sum_to_chosen(m: pyo.ConcreteModel, p: int) -> object:
        rest = [q for q in points if q != p and d[p, q]]
        terms = (m.w[p], m.y[p], *(m.y[q] for q in rest))
        return sum_of(terms, (1.0, -least[p], *-d[p, rest])) <= float(-least[p])

    model.if_chosen = pyo.Constraint(points, rule=lambda m, p: sum_of((m.w[p], m.y[p]), (1.0, -most[p])) <= 0.0)
    model.to_chosen = pyo.Constraint(points, rule=sum_to_chosen)
    model.total = pyo.Objective(expr=sum_of(model.w.values(), [0.5] * len(d)), sense=pyo.maximize)
    return described(
        model,
        title="max-sum dispersion, a number for each point",
        formula="max sum w_p / 2, w_p <= U_p y_p, w_p <= sum_q D_pq y_q - L_p (1 - y_p), sum y = k",
        reference="Kuo, Glover & Dhir (1993); Glover (1975)",
    )


# ==== The k points of a pool that are farthest from each other: as a sum, or by the least distance ====================


def max_sum_subset(distances: ArrayLike, k: int) -> pyo.ConcreteModel:
    r"""State the k points whose distances add up to most (max-sum dispersion), pair by pair.

    .. math::
        \max_{y, z}\ \sum_{p < q} D_{pq} z_{pq} \quad\text{s.t.}\quad z_{pq} \le y_p, \quad z_{pq} \le y_q, \quad
        \sum_p y_p = k, \quad y \in \{0, 1\}^n, \quad 0 \le z \le 1.

    ====== ========= ============== ===================================================================
    symbol component shape          meaning
    ====== ========= ============== ===================================================================
    D                (n, n)         ``distances``; symmetric, the diagonal is not read
    y      ``y``     (n,)           1 if the point is chosen
    z      ``z``     (n(n-1)/2,)    1 if both points of the pair are; whole by itself, as D is at least 0
    ====== ========= ============== ===================================================================

    n binaries, n(n-1)/2 numbers, n(n-1) + 1 rows (MILP). Exact. The relaxation is weak, as half of each of 2k points
    makes half of all their pairs: :func:`~ceopt.formulations.programs.max_sum_compact` has the same optimum and is
    what :func:`ceopt.diverse.select` solves.

    Parameters
    ----------
    distances
        Of each pair of n points.
    k
        How many points are wanted, 1 to n.

    Raises
    ------
    InvalidValueError
        ``distances`` is not a matrix of distances, or ``k`` no count of its points.

    References
    ----------
    Kuo, Glover & Dhir (1993), Analyzing and modeling the maximum diversity problem.

    Examples
    --------
    Three points on a line, at 0, 1 and 3:

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.max_sum_subset([[0, 1, 3], [1, 0, 2], [3, 2, 0]], k=2)
    >>> print(m.total.expr)
    z[0,1] + 3.0*z[0,2] + 2.0*z[1,2]
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.expr)
    y[0] + y[1] + y[2]  ==  2
    z[0,1] - y[0]  <=  0.0
    z[0,2] - y[0]  <=  0.0
    z[1,2] - y[1]  <=  0.0
    z[0,1] - y[1]  <=  0.0
    z[0,2] - y[2]  <=  0.0
    z[1,2] - y[2]  <=  0.0
    >>> solve(m).objective
    3.0
    """
    d = require_pairs("max_sum_subset", distances)
    pairs = pairs_of(len(d))
    model = choice_of("max_sum_subset", len(d), k)
    model.z = pyo.Var(pairs, bounds=(0.0, 1.0))
    model.first = pyo.Constraint(pairs, rule=lambda m, p, q: sum_of((m.z[p, q], m.y[p]), (1, -1)) <= 0.0)
    model.second = pyo.Constraint(pairs, rule=lambda m, p, q: sum_of((m.z[p, q], m.y[q]), (1, -1)) <= 0.0)
    model.total = pyo.Objective(expr=sum_of(model.z.values(), [d[pair] for pair in pairs]), sense=pyo.maximize)
    return described(
        model,
        title="max-sum dispersion",
        formula="max sum D_pq z_pq, z_pq <= y_p, z_pq <= y_q, sum y = k",
        reference="Kuo, Glover & Dhir (1993)",
    )


def max_min_subset(distances: ArrayLike, k: int) -> pyo.ConcreteModel:
    r"""State the k points whose least distance is greatest (max-min dispersion).

    .. math::
        \max_{y, r}\ r \quad\text{s.t.}\quad r \le D_{pq} + M_{pq} (2 - y_p - y_q), \quad \sum_p y_p = k, \quad
        y \in \{0, 1\}^n, \quad 0 \le r \le \bar r, \qquad M_{pq} = \bar r - D_{pq}.

    ====== ========= ============== ======================================================================
    symbol component shape          meaning
    ====== ========= ============== ======================================================================
    D                (n, n)         ``distances``; symmetric, the diagonal is not read
    y      ``y``     (n,)           1 if the point is chosen
    r      ``r``     ()             the least distance of two chosen points
    r-bar                           no k points can have more: in the order of distance from itself, each has
                                    k - 1 others at least r away, so r-bar is the k-th greatest over the
                                    points of the (k-1)-th greatest distance from the point
    ====== ========= ============== ======================================================================

    n binaries, one number, 1 + n(n-1)/2 rows at most: pairs at least r-bar apart bind nothing and have none (MILP).
    Exact. The relaxation is weak, as for k at most n/2 it is r-bar itself: :func:`ceopt.diverse.select` searches the
    sorted distances with :func:`~ceopt.formulations.programs.cheapest_subset` instead, which has no M.

    Parameters
    ----------
    distances
        Of each pair of n points.
    k
        How many points are wanted, 2 to n: one point has no distance.

    Raises
    ------
    InvalidValueError
        ``distances`` is not a matrix of distances, or ``k`` no count of its points from 2.

    References
    ----------
    Kuby (1987), Programming models for facility dispersion.

    Examples
    --------
    Three points on a line, at 0, 1 and 3. Two of them are at most 3 apart:

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.max_min_subset([[0, 1, 3], [1, 0, 2], [3, 2, 0]], k=2)
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.expr)
    y[0] + y[1] + y[2]  ==  2
    r + 2.0*y[0] + 2.0*y[1]  <=  5.0
    r + y[1] + y[2]  <=  4.0
    >>> m.r.ub, solve(m).objective
    (3.0, 3.0)
    """
    d = require_pairs("max_min_subset", distances)
    Whole(2, len(d)).require("max_min_subset", "k", k)
    most = least_distance_bound(d, k)
    pairs = [pair for pair in pairs_of(len(d)) if d[pair] < most]
    model = choice_of("max_min_subset", len(d), k)
    model.r = pyo.Var(bounds=(0.0, most))

    def apart(m: pyo.ConcreteModel, p: int, q: int) -> object:
        big = most - d[p, q]
        return sum_of((m.r, m.y[p], m.y[q]), (1.0, big, big)) <= float(d[p, q] + 2.0 * big)

    model.apart = pyo.Constraint(pairs, rule=apart)
    model.least = pyo.Objective(expr=model.r, sense=pyo.maximize)
    return described(
        model,
        title="max-min dispersion",
        formula="max r, r <= D_pq + M (2 - y_p - y_q), sum y = k",
        reference="Kuby (1987)",
    )


def least_distance_bound(d: Floats, k: int) -> float:
    """Return a least distance that no k points, at least 2, exceed: ``r-bar`` of :func:`max_min_subset`."""
    others = np.where(np.eye(len(d), dtype=bool), -np.inf, d)
    reach = -np.sort(-others, axis=1)[:, k - 2]
    return float(-np.sort(-reach)[k - 1])

"""The k points of a pool that are farthest from each other: as a sum, or by the least distance."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.expressions import Floats, sum_of
from ceopt.formulations.programs.subset.pairs import add_choice, pairs_of, require_pairs
from ceopt.solvers.checks import Whole
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["least_distance_bound", "max_min_subset", "max_sum_subset"]


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
    model = pyo.ConcreteModel(name="max_sum_subset")
    add_choice(model, "max_sum_subset", len(d), k)
    model.z = pyo.Var(pairs, bounds=(0.0, 1.0))
    model.first = pyo.Constraint(pairs, rule=lambda m, p, q: sum_of((m.z[p, q], m.y[p]), (1, -1)) <= 0.0)
    model.second = pyo.Constraint(pairs, rule=lambda m, p, q: sum_of((m.z[p, q], m.y[q]), (1, -1)) <= 0.0)
    model.total = pyo.Objective(expr=sum_of(model.z.values(), [d[pair] for pair in pairs]), sense=pyo.maximize)
    describe(
        model,
        Manifest(
            title="max-sum dispersion",
            formula="max sum D_pq z_pq, z_pq <= y_p, z_pq <= y_q, sum y = k",
            reference="Kuo, Glover & Dhir (1993)",
        ),
    )
    return model


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
    model = pyo.ConcreteModel(name="max_min_subset")
    add_choice(model, "max_min_subset", len(d), k)
    model.r = pyo.Var(bounds=(0.0, most))

    def apart(m: pyo.ConcreteModel, p: int, q: int) -> object:
        big = most - d[p, q]
        return sum_of((m.r, m.y[p], m.y[q]), (1.0, big, big)) <= float(d[p, q] + 2.0 * big)

    model.apart = pyo.Constraint(pairs, rule=apart)
    model.least = pyo.Objective(expr=model.r, sense=pyo.maximize)
    describe(
        model,
        Manifest(
            title="max-min dispersion",
            formula="max r, r <= D_pq + M (2 - y_p - y_q), sum y = k",
            reference="Kuby (1987)",
        ),
    )
    return model


def least_distance_bound(d: Floats, k: int) -> float:
    """Return a least distance that no k points, at least 2, exceed: ``r-bar`` of :func:`max_min_subset`."""
    others = np.where(np.eye(len(d), dtype=bool), -np.inf, d)
    reach = -np.sort(-others, axis=1)[:, k - 2]
    return float(-np.sort(-reach)[k - 1])

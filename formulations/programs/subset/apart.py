"""Points of a pool that keep a least distance from each other: as many as can be, or some few at the least cost."""

from __future__ import annotations

import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.expressions import Floats, sum_of
from ceopt.formulations.programs.subset.pairs import add_choice, clique_cover, close_pairs, require_pairs
from ceopt.solvers.checks import Matrix
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["cheapest_subset", "largest_subset"]


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
    model = pyo.ConcreteModel(name="largest_subset")
    add_choice(model, "largest_subset", len(d))
    _keep_apart(model, "largest_subset", d, beta, cliques=cliques)
    model.size = pyo.Objective(expr=sum_of(model.y.values()), sense=pyo.maximize)
    describe(
        model,
        Manifest(
            title="largest set at least beta apart",
            formula="max sum y, y_p + y_q <= 1 where D_pq < beta",
            reference="clique rows: Padberg (1973)",
        ),
    )
    return model


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
    model = pyo.ConcreteModel(name="cheapest_subset")
    add_choice(model, "cheapest_subset", len(d), k)
    _keep_apart(model, "cheapest_subset", d, beta, cliques=cliques)
    model.cost = pyo.Objective(expr=sum_of(model.y.values(), price))
    describe(
        model,
        Manifest(
            title="cheapest k points at least beta apart",
            formula="min sum c_p y_p, y_p + y_q <= 1 where D_pq < beta, sum y = k",
            reference="clique rows: Padberg (1973)",
        ),
    )
    return model


def _keep_apart(model: pyo.ConcreteModel, who: str, d: Floats, beta: float, *, cliques: bool) -> None:
    """Add the rows that bar pairs closer than beta."""
    pairs = close_pairs(who, d, beta)
    if not cliques:
        model.close = pyo.Constraint(pairs, rule=lambda m, p, q: sum_of((m.y[p], m.y[q])) <= 1.0)
        return
    sets = list(clique_cover(len(d), pairs))
    model.clique = pyo.Constraint(range(len(sets)), rule=lambda m, c: sum_of(m.y[p] for p in sets[c]) <= 1.0)

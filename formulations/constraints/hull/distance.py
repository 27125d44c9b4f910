"""The distance from a hull: the check of the rule, by least squares, small linear programs and a cone."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls

from ceopt.formulations.tolerances import HULL_DISTANCE_FOUND
from ceopt.solvers.deadline import checkpoint

__all__ = ["Norm", "hull_distance", "least_sum"]

Floats = NDArray[np.float64]
Norm: TypeAlias = Literal["l1", "l2", "linf"]

_ORDER = {"l1": 1, "l2": 2, "linf": np.inf}
#: Rounds after which the best distance found is returned as it is; a dozen is much.
_MOST = 200


def hull_distance(
    points: Floats, x: Floats, norm: Norm, *, enough: float = 0.0, beyond: float = np.inf
) -> tuple[float, Floats]:
    r"""Return the distance of a point to a hull, and the way there: x + s is in the hull and has that norm.

    .. math::
        \min_{\lambda \ge 0,\, 1^\top\lambda = 1} \Big\lVert \sum_i \lambda_i (p_i - x) \Big\rVert_p
        \;=\; \max_{\lVert z \rVert_q \le 1} \min_i z^\top (p_i - x).

    The left side is solved over a few points, those nearest to x; its multipliers z bound the distance from below by
    the right side, and the points at which that is least join the few. It ends where both sides agree, so the result is
    the distance to all points, at the price of a few small programs.

    Parameters
    ----------
    points
        (n, D).
    x
        (D,).
    norm
        "l1", "l2" or "linf".
    enough
        A distance that need not be improved on: the first one found that is at most this is returned.
    beyond
        A distance that is of no interest: once it is known to be at least this, what is found by then is returned.
    """
    distance, slack, _ = _nearest(points, x, norm, enough=enough, beyond=beyond)
    return distance, slack


def _nearest(
    points: Floats, x: Floats, norm: Norm, *, enough: float = 0.0, beyond: float = np.inf
) -> tuple[float, Floats, NDArray[np.intp]]:
    """Return distance and way, and the places of a few points whose hull is as near."""
    moves = points - x
    order = _ORDER[norm]
    away = np.linalg.norm(moves, order, axis=1)
    best = float(away.min())
    slack = moves[away.argmin()]
    step = moves.shape[1] + 1
    few = np.argsort(away, kind="stable")[: 2 * step]
    for _ in range(_MOST):
        if best <= enough:
            break
        checkpoint("measuring the distance from a hull")
        found, multipliers = _NEAREST[norm](moves[few])
        length = float(np.linalg.norm(found, order))
        if length < best:
            best = length
            slack = found
        if best <= enough or best <= 1e-12:
            break
        along = moves @ multipliers
        if best - along.min() <= HULL_DISTANCE_FOUND * max(1.0, best) or along.min() >= beyond:
            break
        joining = np.setdiff1d(np.argsort(along, kind="stable")[:step], few)
        if not joining.size:
            break
        few = np.concatenate([few, joining])
    return best, slack, few


def _by_sum(moves: Floats) -> tuple[Floats, Floats]:
    """Return s of least l1 norm in a hull, and multipliers."""
    k, d = moves.shape
    equations = np.block([[moves.T, -np.eye(d), np.eye(d)], [np.ones((1, k)), np.zeros((1, 2 * d))]])
    result = _solved(np.repeat([0.0, 1.0], [k, 2 * d]), A_eq=equations, b_eq=np.repeat([0.0, 1.0], [d, 1]))
    return _weights(result.x[:k]) @ moves, -result.eqlin.marginals[:d]


def _by_greatest(moves: Floats) -> tuple[Floats, Floats]:
    """Return s of least greatest entry in a hull, and multipliers."""
    k, d = moves.shape
    sides = np.block([[moves.T, -np.ones((d, 1))], [-moves.T, -np.ones((d, 1))]])
    total = np.repeat([[1.0, 0.0]], [k, 1], axis=1)
    result = _solved(np.repeat([0.0, 1.0], [k, 1]), A_ub=sides, b_ub=np.zeros(2 * d), A_eq=total, b_eq=[1.0])
    above = result.ineqlin.marginals[:d]
    below = result.ineqlin.marginals[d:]
    return _weights(result.x[:k]) @ moves, below - above


def _by_squares(moves: Floats) -> tuple[Floats, Floats]:
    r"""Return the shortest s in a hull, and its direction.

    For weights :math:`l = t \lambda` with :math:`1^\top \lambda = 1`, the least of :math:`\lVert A l \rVert^2 +
    (1^\top l - 1)^2` over t is :math:`r / (1 + r)` with :math:`r = \lVert A \lambda \rVert^2`: what is best for one is
    best for the other.
    """
    size = max(float(np.abs(moves).max()), 1e-300)
    k, d = moves.shape
    weights, _ = nnls(np.vstack([moves.T / size, np.ones((1, k))]), np.repeat([0.0, 1.0], [d, 1]))
    found = _weights(weights) @ moves
    return found, found / max(float(np.linalg.norm(found)), 1e-300)


_NEAREST = {"l1": _by_sum, "l2": _by_squares, "linf": _by_greatest}


def least_sum(points: Floats, x: Floats, norm: Norm, limit: float | None) -> float:
    """Return the least l1 norm of an s with x + s in a hull and the norm of s at most a limit (None: any s).

    It is infinite where the hull is farther than the limit, up to a solver's tolerance.
    """
    least, slack, few = _nearest(points, x, "l1")
    if limit is None or np.linalg.norm(slack, _ORDER[norm]) <= limit * (1.0 + 1e-9):
        return least
    nearest, inner, others = _nearest(points, x, norm)
    if nearest >= limit:
        return float(np.abs(inner).sum()) if nearest <= limit + 1e-6 * max(1.0, limit) else np.inf
    return _limited(points - x, np.union1d(few, others), float(np.abs(inner).sum()), norm, limit)


def _limited(moves: Floats, few: NDArray[np.intp], high: float, norm: Norm, limit: float) -> float:
    """Return the least l1 norm of an s of at most some norm, from a few points whose hull has one; it is at most high.

    As in :func:`hull_distance`, the multipliers tell how much less it could be over all points, and which should join.
    """
    d = moves.shape[1]
    for _ in range(_MOST):
        k = len(few)
        equations = np.block([[moves[few].T, -np.eye(d), np.eye(d)], [np.ones((1, k)), np.zeros((1, 2 * d))]])
        length, multipliers = (_boxed if norm == "linf" else _balled)(equations, limit)
        if not np.isfinite(length):  # a hull that only touches the ball may be too much for the cone's solver
            break
        gains = moves @ multipliers[:d] + multipliers[d]
        high = min(high, length)
        if gains.max() <= HULL_DISTANCE_FOUND * max(1.0, high):
            break
        joining = np.setdiff1d(np.argsort(-gains, kind="stable")[: d + 1], few)
        if not joining.size:
            break
        few = np.concatenate([few, joining])
    return high


def _boxed(equations: Floats, limit: float) -> tuple[float, Floats]:
    """Return the least sum of both parts of an s, none above a limit, and the multipliers of the equations."""
    d = len(equations) - 1
    k = equations.shape[1] - 2 * d
    result = _solved(
        np.repeat([0.0, 1.0], [k, 2 * d]), A_eq=equations, b_eq=np.repeat([0.0, 1.0], [d, 1]),
        bounds=[(0.0, None)] * k + [(0.0, limit)] * (2 * d),
    )  # fmt: skip
    return float(result.fun), result.eqlin.marginals


def _balled(equations: Floats, limit: float) -> tuple[float, Floats]:
    """Return the same for an s no longer than a limit, by an interior-point method for cones."""
    import clarabel

    d = len(equations) - 1
    k = equations.shape[1] - 2 * d
    signs = np.vstack([np.zeros((1, k + 2 * d)), np.hstack([np.zeros((d, k)), -np.eye(d), np.eye(d)])])
    rows = sp.csc_matrix(np.vstack([equations, -np.eye(k + 2 * d), signs]))
    sides = np.concatenate([np.zeros(d), [1.0], np.zeros(k + 2 * d), [limit], np.zeros(d)])
    cones = [clarabel.ZeroConeT(d + 1), clarabel.NonnegativeConeT(k + 2 * d), clarabel.SecondOrderConeT(d + 1)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = HULL_DISTANCE_FOUND
    nothing = sp.csc_matrix((k + 2 * d, k + 2 * d))
    price = np.repeat([0.0, 1.0], [k, 2 * d])
    solution = clarabel.DefaultSolver(nothing, price, rows, sides, cones, settings).solve()
    return float(solution.obj_val), -np.array(solution.z)[: d + 1]


def _weights(found: Floats) -> Floats:
    """Return weights as they should be: none negative, 1 in all."""
    positive = np.maximum(found, 0.0)
    return np.asarray(positive / positive.sum())


def _solved(objective: Floats, **program: Any) -> Any:
    result = linprog(objective, **program, method="highs")
    assert result.status == 0, result.message  # noqa: S101 - feasible and bounded by how it is stated
    return result

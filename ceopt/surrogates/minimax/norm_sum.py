r"""The least sum of Euclidean norms on a hyperplane, exactly and without a solver.

.. math::
    f^\star = \min_w \Big\{ f(w) = \sum_{i=1}^m \sqrt{w^\top P_i w} : a^\top w = 1 \Big\}, \qquad P_i \succeq 0.

1. By Cauchy's inequality :math:`f(w)^2 = \min_\alpha \sum_i w^\top P_i w / \alpha_i` over the simplex, so that

   .. math::
       1 / f^{\star 2} = \max_\alpha\ h(\alpha), \qquad h(\alpha) = a^\top M^{-1} a, \quad M = \sum_i P_i / \alpha_i,

   which is concave in m - 1 numbers, and w = z / h with :math:`z = M^{-1} a`. At the maximum all
   :math:`u_i = \lVert P_i^{1/2} z \rVert / \alpha_i` are equal. Newton's method in :math:`\log \alpha` makes them
   so; for covariances that are multiples of each other its first step is exact.
2. Every :math:`\alpha` proves a bound: the :math:`P_i^{1/2} z / \alpha_i` are feasible for the dual, so
   :math:`f^\star \ge 1 / \max_i u_i`. Nothing is returned as least whose distance from its bound is not closed.
3. Where matrices are singular, norms may be 0 at the optimum, at which f has an edge. The common null space is taken
   out; then each singular :math:`P_i` is held at 0 in turn, which leaves a sum of fewer norms on its null space. That
   is the optimum if what the other norms leave of a, :math:`r = a - \sum_j P_j w / (f \lVert P_j^{1/2} w \rVert)`, is
   within reach of those at 0: :math:`1 / \min \{\sum_{i} \lVert P_i^{1/2} y \rVert : r^\top y = 1\} \le 1 / f^\star`,
   again such a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from scipy.linalg.lapack import dgesv, dposv, dpotrs

from ceopt.formulations.programs.parts import Floats
from ceopt.surrogates.minimax.null_space import range_and_null, shortest_in_null_space, units_of, within
from ceopt.tolerances import (
    NORM_SUM_CLOSED,
    NORM_SUM_EXACT,
    NORM_SUM_NOISE,
    NORM_SUM_NULL,
    NORM_SUM_PIVOT,
    SAME_VALUE,
)

__all__ = ["LeastNormSum", "least_norm_sum", "least_spread_then", "norms_of", "polished", "separating_weights"]

#: Newton steps that are tried, and the greatest of one, in the logarithm of a weight.
_STEPS: Final = 60
_LONGEST_STEP: Final = 5.0

#: Identity matrices of as many norms as there are.
_IDENTITIES: Final = [np.eye(m) for m in range(4)]


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeastNormSum:
    """What was found.

    Parameters
    ----------
    weights
        w, shape (d,); of several the shortest that the common null space leaves.
    norms
        The norms at w, shape (m,); exactly 0 where w is held in a null space.
    gap
        The sum is proved least up to this share.
    """

    weights: Floats
    norms: Floats
    gap: float

    @property
    def value(self) -> float:
        """The sum of the norms."""
        return float(self.norms.sum())

    @property
    def is_proved(self) -> bool:
        """Whether the distance from the bound is closed."""
        return self.gap <= NORM_SUM_CLOSED


def least_norm_sum(a: Floats, matrices: Sequence[Floats]) -> LeastNormSum:
    """Return the least sum of the norms of w in these matrices, a'w being 1; the best found where none is proved.

    Parameters
    ----------
    a
        Shape (d,), not 0.
    matrices
        One or more of shape (d, d), symmetric and positive semidefinite.
    """
    found = _by_newton(a, matrices, _first_norms(a, matrices), least_pivot=NORM_SUM_PIVOT)
    if found is not None and found.gap <= NORM_SUM_EXACT:
        return found
    return _with_null_spaces(a, matrices, found)


def polished(a: Floats, matrices: Sequence[Floats], found: LeastNormSum) -> LeastNormSum:
    """Return the optimum next to a solver's point, or the point itself where a norm is 0 or the two disagree.

    The sum is flat at its optimum: where a solver has it to 1e-9, the weights are right to 1e-5.
    """
    if not found.norms.all():
        return found
    near = _by_newton(a, matrices, found.norms, least_pivot=NORM_SUM_PIVOT)
    if near is None or not near.is_proved or abs(near.value - found.value) > SAME_VALUE * found.value:
        return found
    return near


# ---- all norms above 0 -----------------------------------------------------------------------------------------------
def _by_newton(
    a: Floats,
    matrices: Sequence[Floats],
    norms: Floats,
    *,
    least_pivot: float,
    variances: Sequence[Floats] | None = None,
) -> LeastNormSum | None:
    """Return the best that Newton's method finds before M is singular up to ``least_pivot`` or a norm is rounding.

    It begins at these norms. ``variances`` are what the entries of each matrix are rounded by, of each column; None:
    its diagonal.
    """
    alpha = _normalised(norms)
    if variances is None:
        variances = [matrix.diagonal() for matrix in matrices]
    deviations = np.sqrt(np.maximum(variances, 0.0))
    best: LeastNormSum | None = None
    highest = -np.inf
    step = np.zeros(len(matrices))
    for _ in range(_STEPS):
        moment = matrices[0] / alpha[0]
        for matrix, weight in zip(matrices[1:], alpha[1:], strict=True):
            moment += matrix / weight
        own = moment.diagonal().copy()
        factor, z, failed = dposv(moment.T, a, lower=1, overwrite_a=1)  # in place, as LAPACK has its columns
        if failed or (factor.diagonal() ** 2 < least_pivot * own).any():
            return best
        images = np.array([matrix @ z for matrix in matrices])
        squares = images @ z
        if squares.min() <= 0.0:
            return best
        h = float(a @ z)
        if h < highest * (1.0 - NORM_SUM_EXACT):  # too far: h is concave and the step ascends, so that less of it gains
            step /= 4.0
            alpha = _normalised(alpha * np.exp(-3.0 * step))
            continue
        highest = h
        norms = np.sqrt(squares)
        u = norms / alpha
        gap = float(norms.sum() / h * u.max() - 1.0)
        if gap <= NORM_SUM_CLOSED and (squares <= NORM_SUM_NOISE * (deviations @ np.abs(z)) ** 2).any():
            return best
        is_better = best is None or gap < best.gap
        if is_better:
            best = LeastNormSum(z / h, norms / h, max(gap, 0.0))
        if gap <= NORM_SUM_EXACT or (best is not None and best.is_proved and not is_better):
            return best
        step = _newton_step(alpha, squares, u, images, dpotrs(factor, images.T, lower=1)[0])
        alpha = _normalised(alpha * np.exp(step))
    return best


def _first_norms(a: Floats, matrices: Sequence[Floats]) -> Floats:
    """Return the norms at the w that would be best if the columns were uncorrelated, or about what they are there."""
    variances = sum(matrix.diagonal() for matrix in matrices)
    norms = norms_of(a / np.where(variances > 0.0, variances, np.inf), matrices)
    if not norms.any():
        return np.ones(len(matrices))
    return np.asarray(np.maximum(norms, NORM_SUM_NULL * norms.max()))


def _normalised(alpha: Floats) -> Floats:
    return np.asarray(alpha / alpha.sum())


def _newton_step(alpha: Floats, squares: Floats, u: Floats, images: Floats, solved: Floats) -> Floats:
    r"""Return the change of :math:`\log \alpha` at which all :math:`\log u` would be equal, were they linear.

    Their slopes are :math:`z^\top P_i M^{-1} P_j z / (\lVert P_i^{1/2} z \rVert^2 \alpha_j)`, less 1 on the diagonal.
    """
    m = len(alpha)
    system = np.zeros((m + 1, m + 1))
    scales = squares[:, np.newaxis] * alpha
    if scales.min() <= 0.0:  # a norm so small beside the others that the product of its square and weight underflows
        return np.log(u)
    system[:m, :m] = images @ solved / scales - _IDENTITIES[m]
    system[:m, m] = -1.0  # their common value
    system[m, :m] = alpha  # the weights go on adding up to 1
    right = np.zeros(m + 1)
    right[:m] = -np.log(u)
    _, _, solution, singular = dgesv(system, right)
    if singular:
        return np.log(u)
    step = solution[:m]
    longest = float(np.abs(step).max())
    if not longest <= _LONGEST_STEP:
        step *= _LONGEST_STEP / longest
    return np.asarray(step)


# ---- norms that may be 0 ---------------------------------------------------------------------------------------------
def _with_null_spaces(a: Floats, matrices: Sequence[Floats], found: LeastNormSum | None) -> LeastNormSum:
    """Return the best of all that hold some norms at 0, without the common null space (step 3), and of ``found``."""
    units = units_of(matrices)
    scaled = [matrix / np.outer(units, units) for matrix in matrices]
    kept, lost = range_and_null(scaled)
    null = np.linalg.qr(lost / units[:, None])[0]
    apart = shortest_in_null_space(a, null)
    if apart is not None:
        return LeastNormSum(apart, np.zeros(len(matrices)), 0.0)
    inside = kept.T @ (a / units)
    seen = within(scaled, kept)
    candidates = [_held_at_zero(inside, seen, k) for k in range(len(seen))]
    sums = [np.full(len(inside), np.trace(matrix)) for matrix in seen]
    candidates.append(_by_newton(inside, seen, _first_norms(inside, seen), variances=sums, least_pivot=0.0))
    best = min(filter(None, candidates), key=lambda found: (not found.is_proved, found.value), default=None)
    if best is None:
        best = _unproved(inside, seen)
    weights = kept @ best.weights / units
    weights -= null @ (null.T @ weights)
    size = float(a @ weights)  # 1 but for rounding
    held = LeastNormSum(weights / size, best.norms / size, best.gap)
    if found is not None and (not found.is_proved, found.value) < (not held.is_proved, held.value):
        return found
    return held


def _held_at_zero(a: Floats, matrices: Sequence[Floats], k: int) -> LeastNormSum | None:
    """Return the least sum of the other norms where norm k is 0, with its gap for the whole sum; None if it cannot."""
    others = [j for j in range(len(matrices)) if j != k]
    null = range_and_null([matrices[k]])[1]
    part = null.T @ a
    if not others or float(np.linalg.norm(part)) <= NORM_SUM_NULL * float(np.linalg.norm(a)):
        return None
    found = least_norm_sum(part, within([matrices[j] for j in others], null))
    norms = np.insert(found.norms, k, 0.0)
    weights = null @ found.weights
    value = float(norms.sum())
    if value == 0.0 or not found.is_proved:
        return LeastNormSum(weights, norms, found.gap)
    at_zero = []
    left = a.copy()
    for matrix, norm in zip(matrices, norms, strict=True):
        if norm > NORM_SUM_CLOSED * value:
            left -= matrix @ weights / (value * norm)
        else:
            at_zero.append(matrix)
    needed = _least_dual(left, at_zero, a)
    return LeastNormSum(weights, norms, max(found.gap, needed * value - 1.0))


def _least_dual(left: Floats, matrices: Sequence[Floats], a: Floats) -> float:
    """Return the least t such that ``left`` is a sum of P_i^1/2 u_i with all norms of u_i at most t."""
    rounding = NORM_SUM_NULL * float(np.linalg.norm(a))
    kept, null = range_and_null(matrices)
    if float(np.linalg.norm(null.T @ left)) > rounding:
        return np.inf
    reachable = kept.T @ left
    if float(np.linalg.norm(reachable)) <= rounding:
        return 0.0
    value = least_norm_sum(reachable, within(matrices, kept)).value
    if value == 0.0:
        return np.inf
    return 1.0 / value


def norms_of(weights: Floats, matrices: Sequence[Floats]) -> Floats:
    """Return the norms of w in each matrix."""
    return np.sqrt([max(float(weights @ matrix @ weights), 0.0) for matrix in matrices])


def _unproved(a: Floats, matrices: Sequence[Floats]) -> LeastNormSum:
    """Return a point on the hyperplane, of which nothing is proved."""
    weights = a / (a @ a)
    return LeastNormSum(weights, norms_of(weights, matrices), np.inf)


# ---- what else null spaces tell --------------------------------------------------------------------------------------
def separating_weights(a: Floats, matrices: Sequence[Floats]) -> Floats | None:
    """Return the shortest w with a'w = 1 whose norms are all 0, or None where there is none."""
    units = units_of(matrices)
    lost = range_and_null([matrix / np.outer(units, units) for matrix in matrices])[1]
    return shortest_in_null_space(a, np.linalg.qr(lost / units[:, None])[0])


def least_spread_then(a: Floats, first: Floats, second: Floats) -> Floats:
    """Return the w with a'w = 1 of the least norm in the first matrix and, of these, in the second."""
    units = units_of([first, second])
    scaled = [matrix / np.outer(units, units) for matrix in (first, second)]
    null = range_and_null(scaled[:1])[1]
    direction = a / units
    apart = shortest_in_null_space(direction, null)
    if apart is not None:
        return null @ least_norm_sum(null.T @ direction, within(scaled[1:], null)).weights / units
    weights = least_norm_sum(direction, scaled[:1]).weights
    if null.shape[1]:
        across = null.T @ scaled[1]
        weights -= null @ (np.linalg.pinv(across @ null, hermitian=True) @ (across @ weights))
    return np.asarray(weights / (direction @ weights) / units)

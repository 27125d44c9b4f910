r"""Minimax probability machines: worst covariances, the least sum of norms behind the hyperplane, and the classifier.

**The least sum of norms** on a hyperplane is found exactly and without a solver:

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

**The hyperplane.** With the optimal slope w and the greatest standard deviations :math:`\tau_y(w)` of both classes,

.. math::
    \kappa = \frac{1}{\tau_- + \tau_+}, \qquad b = \mu_-^\top w + \kappa \tau_- = \mu_+^\top w - \kappa \tau_+,

where :math:`\kappa \tau_-` is the share of :math:`\tau_-` in both, which is a number where the two overflow.

**The limit** as the radius of one class grows without bound is in closed form:

========================== =================================================================================
divergence                 slope
========================== =================================================================================
quadratic, bures           :math:`a / \lVert a \rVert^2`
fisher_rao, logdet         :math:`\hat\Sigma_y^{-1} a / (a^\top \hat\Sigma_y^{-1} a)` of the growing class y
========================== =================================================================================

The hyperplane goes through the mean of the other class: all of the width between the means is the growing class's.
Where :math:`\hat\Sigma_y` is singular, Fisher-Rao and log-det leave its null space as it is, so that slopes of the
least spread in y come first and, of these, that of the least spread in the other class.

References
----------
"Coverage-Validity-Aware Algorithmic Recourse", propositions 4.4 and 5.4, remark 4.5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dgesv, dposv, dpotrs
from scipy.special import ndtr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ceopt.formulations.programs.minimax import (
    BURES,
    DIVERGENCE,
    Ambiguity,
    ClassMoments,
    minimax_machine,
    require_class_moments,
    require_one_radius,
    require_radius,
    worst_spread,
)
from ceopt.formulations.programs.moments import require_covariance
from ceopt.solvers import solve
from ceopt.solvers.checks import LARGEST, LENGTH, Floats, Matrix, OrNone, check_fields
from ceopt.solvers.errors import InvalidValueError, counted
from ceopt.solvers.registry import SOLVER_NAME
from ceopt.surrogates.rivals import with_sample
from ceopt.tolerances import (
    NORM_SUM_CLOSED,
    NORM_SUM_EXACT,
    NORM_SUM_NOISE,
    NORM_SUM_NULL,
    NORM_SUM_PIVOT,
    NORM_SUM_RANK,
    SAME_VALUE,
    SCORE_VARIANCE_ROUNDING,
)

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.surrogates.sampler import BoundarySample

# ==== The worst covariance of a score over an ambiguity set, in closed form ===========================================


@final
@dataclass(frozen=True, slots=True, eq=False)
class WorstCovariance:
    """What :func:`worst_covariance` returns.

    Parameters
    ----------
    tau
        The greatest standard deviation of the score.
    covariance
        Shape (d, d): one that attains it, on the sphere of the radius unless the weights are 0.
    """

    tau: float
    covariance: Floats


def worst_covariance(weights: ArrayLike, covariance: ArrayLike, *, divergence: str, radius: float) -> WorstCovariance:
    r"""Return the covariance within a divergence of a given one for which a linear score spreads most.

    .. math::
        \tau(w) = \max_\Sigma \{\sqrt{w^\top \Sigma w} : \varphi(\Sigma \Vert \hat\Sigma) \le \rho\}.

    ========== ================================= ==================================================================
    divergence :math:`\tau(w)`                   maximiser
    ========== ================================= ==================================================================
    nominal    :math:`\sqrt{v}`                  :math:`\hat\Sigma`
    quadratic  :math:`\sqrt{v + \sqrt\rho n^2}`  :math:`\hat\Sigma + \sqrt\rho\, w w^\top / n^2`
    bures      :math:`\sqrt{v} + \sqrt\rho\, n`  :math:`A \hat\Sigma A`, :math:`A = I + \sqrt{\rho / v}\, w w^\top / n`
    fisher_rao :math:`e^{\rho / 2} \sqrt{v}`     :math:`\hat\Sigma + (e^\rho - 1)\, \hat\Sigma w w^\top \hat\Sigma / v`
    logdet     :math:`\sqrt{c v}`                :math:`\hat\Sigma + (c - 1)\, \hat\Sigma w w^\top \hat\Sigma / v`
    ========== ================================= ==================================================================

    with :math:`v = w^\top \hat\Sigma w`, :math:`n = \lVert w \rVert` and c of :func:`logdet_factor`.
    Exact. Where the score has no variance, the Bures maximiser is :math:`\hat\Sigma + \rho w w^\top / \lVert w
    \rVert^2`, and those of Fisher-Rao and log-det, whose sets then hold covariances of the same range, the given one.

    Parameters
    ----------
    weights
        Shape (d,).
    covariance
        Shape (d, d), symmetric and positive semidefinite.
    divergence
        "nominal" (the radius is not read), "quadratic", "bures", "fisher_rao" or "logdet".
    radius
        At least 0 and finite: squared for "quadratic" and "bures", a distance for "fisher_rao", twice a
        Kullback-Leibler divergence for "logdet".

    Raises
    ------
    InvalidValueError, UnknownNameError
        Shapes that disagree, NaN or an infinity, a covariance that is none, a negative radius, an unknown divergence.

    References
    ----------
    "Coverage-Validity-Aware Algorithmic Recourse", theorems 3.3, 4.2, 5.2 and C.2.

    Examples
    --------
    >>> from ceopt.surrogates import worst_covariance
    >>> found = worst_covariance([1, 0], [[4, 0], [0, 1]], divergence="bures", radius=1)
    >>> found.tau, found.covariance.tolist()
    (3.0, [[9.0, 0.0], [0.0, 1.0]])
    """
    who = "worst_covariance"
    w = Matrix((None,)).require(who, "weights", weights)
    if not len(w):
        raise InvalidValueError(who, "at least one weight", "weights is empty", "Give one weight a column.")
    given = require_covariance(who, "covariance", covariance, len(w))
    DIVERGENCE.require(who, "divergence", divergence)
    return _worst_of(w, given, divergence, require_one_radius(who, "radius", radius, divergence))


def _worst_of(w: Floats, covariance: Floats, divergence: str, radius: float) -> WorstCovariance:
    """Return the same of arguments that are checked."""
    spread = worst_spread(divergence, radius)
    length = float(np.linalg.norm(w))
    variance = score_variance(w, covariance)
    tau = spread.factor * math.sqrt(variance + spread.ridge * length**2) + spread.length * length
    if length == 0.0:
        return WorstCovariance(tau, covariance)
    unit = w / length
    worst = covariance.copy()
    if divergence == "quadratic":
        worst += spread.ridge * np.outer(unit, unit)
    elif divergence == "bures" and variance == 0.0:
        worst += spread.length**2 * np.outer(unit, unit)
    elif divergence == "bures":
        along = covariance @ unit
        ratio = spread.length / (math.sqrt(variance) / length)
        across = np.outer(along, unit)
        worst += ratio * (across + across.T) + spread.length**2 * np.outer(unit, unit)
    elif variance > 0.0:
        along = covariance @ w / math.sqrt(variance)
        worst += (_more_variance(divergence, spread.factor, radius)) * np.outer(along, along)
    return WorstCovariance(tau, worst)


def worst_covariances(w: Floats, classes: ClassMoments, ambiguity: Ambiguity) -> Floats:
    """Return the worst covariances of both classes, shape (2, d, d); infinite where a radius is."""
    found = []
    for covariance, radius in zip((classes.cov_neg, classes.cov_pos), ambiguity.radii, strict=True):
        rho = radius
        if ambiguity.divergence == "bures" and ambiguity.bures == "paper":
            rho = radius**2
        if ambiguity.divergence == "nominal" or math.isfinite(rho):
            found.append(_worst_of(w, covariance, ambiguity.divergence, rho).covariance)
        else:
            found.append(_worst_in_the_limit(w, covariance, ambiguity.divergence))
    return np.array(found)


def _worst_in_the_limit(w: Floats, covariance: Floats, divergence: str) -> Floats:
    """Return the limit of the worst covariance as the radius grows."""
    grows = w
    if divergence in {"fisher_rao", "logdet"}:
        grows = covariance @ w
        if score_variance(w, covariance) == 0.0:
            return covariance
    signs = np.sign(np.outer(grows, grows))
    worst = covariance.copy()
    worst[signs != 0.0] = np.inf * signs[signs != 0.0]
    return worst


def _more_variance(divergence: str, factor: float, radius: float) -> float:
    """Return factor**2 - 1 without its rounding at small radii."""
    if divergence == "fisher_rao":
        return math.expm1(radius)
    return factor**2 - 1.0


def score_variance(w: Floats, covariance: Floats) -> float:
    """Return w'Sw, 0 where it is within the rounding of its sum."""
    variance = float(w @ covariance @ w)
    most = float(np.abs(w) @ np.sqrt(np.maximum(covariance.diagonal(), 0.0))) ** 2
    if variance <= SCORE_VARIANCE_ROUNDING * most:
        return 0.0
    return variance


# ==== Null spaces of semidefinite matrices, up to rounding ============================================================


def units_of(matrices: Sequence[Floats]) -> Floats:
    """Return of each column a unit of its own, so that no small one is taken for 0."""
    sizes = np.sqrt(np.maximum(sum(matrix.diagonal() for matrix in matrices), 0.0))
    return np.where(sizes > 0.0, sizes, 1.0)


def shortest_in_null_space(a: Floats, null: Floats) -> Floats | None:
    """Return the shortest w in a null space with a'w = 1, or None where a has no part in it but rounding."""
    part = null.T @ a
    if float(np.linalg.norm(part)) <= NORM_SUM_NULL * float(np.linalg.norm(np.abs(null).T @ np.abs(a))):
        return None
    return np.asarray(null @ part / (part @ part))


def range_and_null(matrices: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return orthonormal bases of the range and of the null space of a sum of semidefinite matrices, each as large."""
    alike = [matrix / (float(np.trace(matrix)) or 1.0) for matrix in matrices]
    values, vectors = np.linalg.eigh(sum(alike[1:], start=alike[0]))
    kept = values > NORM_SUM_RANK * max(float(values[-1]), 0.0)
    return vectors[:, kept], vectors[:, ~kept]


def within(matrices: Sequence[Floats], basis: Floats) -> list[Floats]:
    """Return the matrices as a subspace sees them, with 0 for what rounding leaves of their eigenvalues."""
    seen = []
    for matrix in matrices:
        values, vectors = np.linalg.eigh(basis.T @ matrix @ basis)
        values[values <= NORM_SUM_RANK * float(np.trace(matrix))] = 0.0
        seen.append((vectors * values) @ vectors.T)
    return seen


# ==== The least sum of Euclidean norms on a hyperplane, exactly and without a solver ==================================

#: Newton steps that are tried, and the greatest of one, in the logarithm of a weight.
_STEPS: Final = 60
_LONGEST_STEP: Final = 5.0

#: Identity matrices of as many norms as there are.
_IDENTITIES: Final = list(map(np.eye, range(4)))


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
    """Return the least sum of the norms of w in these matrices, a'w being 1, or the best found without a proof.

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
    return LeastNormSum(weights, norms, max(found.gap, _least_dual(left, at_zero, a) * value - 1.0))


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
    """Return a point on the hyperplane, without a bound."""
    weights = a / (a @ a)
    return LeastNormSum(weights, norms_of(weights, matrices), np.inf)


# ---- what else null spaces tell --------------------------------------------------------------------------------------
def separating_weights(a: Floats, matrices: Sequence[Floats]) -> Floats | None:
    """Return the shortest w with a'w = 1 whose norms are all 0, or None."""
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


# ==== The slope of a minimax probability machine by a solver of cone programs =========================================


def by_program(classes: ClassMoments, ambiguity: Ambiguity, matrices: list[Floats], solver: str) -> LeastNormSum:
    """Return the slope of :func:`~ceopt.formulations.programs.minimax_machine`, with its norms in ``matrices``.

    The program is stated in units in which the columns spread by about 1, and the solver's point is polished. Radii are
    finite.
    """
    a = classes.difference
    apart = separating_weights(a, matrices)
    if apart is not None:  # the optimum is 0, which a solver cannot tell from its tolerance
        return LeastNormSum(apart, np.zeros(len(matrices)), 0.0)
    units, radii = _units(classes, ambiguity)
    squares = np.outer(units, units)
    model = minimax_machine(
        np.zeros(len(a)),
        classes.cov_neg / squares,
        a / units,
        classes.cov_pos / squares,
        divergence=ambiguity.divergence,
        radius=radii,
        bures=ambiguity.bures,
    )
    result = solve(model, solver, relative_gap=1e-9)
    if result.status.value != "optimal" or result.gap is None:
        but = f"{result.solver} ended with {result.status.value!r}"
        who = "MinimaxProbabilityMachine"
        raise InvalidValueError(who, "a solver that finds the optimum", but, "Choose another, or solver=None.")
    weights = np.array([variable.value for variable in model.w.values()]) / units
    weights /= a @ weights
    return polished(a, matrices, LeastNormSum(weights, norms_of(weights, matrices), float(result.gap)))


def _units(classes: ClassMoments, ambiguity: Ambiguity) -> tuple[Floats, tuple[float, float]]:
    """Return a unit of each column, and the radii in these units; one unit for all where lengths are compared."""
    sizes = np.sqrt(np.maximum(classes.cov_neg.diagonal() + classes.cov_pos.diagonal(), 0.0))
    if ambiguity.divergence not in {"quadratic", "bures"}:
        return np.where(sizes > 0.0, sizes, 1.0), ambiguity.radii
    unit = float(sizes.max()) or float(np.abs(classes.difference).max())
    power = 2.0
    if ambiguity.divergence == "quadratic":
        power = 4.0
    elif ambiguity.bures == "paper":
        power = 1.0
    if max(ambiguity.radii) > LARGEST * unit**power:
        but = f"radius is {ambiguity.radii} and the columns spread by {unit:.3g}"
        then = "Give inf, whose limit it is, or the columns in greater units."
        raise InvalidValueError("MinimaxProbabilityMachine", "a radius in the units of the columns", but, then)
    neg, pos = (rho / unit**power for rho in ambiguity.radii)
    return np.full(len(sizes), unit), (neg, pos)


# ==== The hyperplane of a minimax probability machine: its slope, and all that follows from it ========================


@final
@dataclass(frozen=True, slots=True, eq=False)
class Hyperplane:
    """A slope w with (mean_pos - mean_neg)'w = 1, and the worst-case errors that it guarantees.

    Parameters
    ----------
    weights
        w, shape (d,).
    threshold
        b; favourable where w'x >= b.
    taus
        Greatest standard deviations of the score, unfavourable and favourable.
    kappa
        1 / their sum; infinite where they are 0, 0 in the limit.
    status
        "optimal", or "separable" where the sum is 0.
    gap
        The sum is proved least up to this share.
    """

    weights: Floats
    threshold: float
    taus: tuple[float, float]
    kappa: float
    status: Literal["optimal", "separable"]
    gap: float


def matrices_of(classes: ClassMoments, ambiguity: Ambiguity) -> tuple[float, list[Floats]]:
    """Return the greater factor of both classes, and the matrices of the norms divided by it."""
    spreads = ambiguity.spreads
    unit = max(spread.factor for spread in spreads)
    matrices = []
    for spread, covariance in zip(spreads, (classes.cov_neg, classes.cov_pos), strict=True):
        matrix = covariance
        if spread.ridge:
            matrix = matrix + spread.ridge * np.eye(len(matrix))
        if spread.factor != unit:
            matrix = matrix * (spread.factor / unit) ** 2
        matrices.append(matrix)
    length = sum(spread.length for spread in spreads)
    if length:
        matrices.append(length**2 * np.eye(len(classes.difference)))
    return unit, matrices


def hyperplane_of(classes: ClassMoments, ambiguity: Ambiguity, found: LeastNormSum, unit: float) -> Hyperplane:
    """Return the hyperplane of a slope, from the norms that it is least for."""
    w = found.weights
    spreads = ambiguity.spreads
    both = sum(spread.length for spread in spreads)
    parts = []
    for norm, spread in zip(found.norms[:2], spreads, strict=True):
        part = float(norm)
        if spread.length:
            part += float(found.norms[2]) * spread.length / both  # the third norm is the length of w times both
        parts.append(part)
    total = parts[0] + parts[1]
    if total == 0.0:
        return Hyperplane(w, float(classes.mean_neg @ w) + 0.5, (0.0, 0.0), math.inf, "separable", 0.0)
    threshold = float(classes.mean_neg @ w) + parts[0] / total
    taus = (unit * parts[0], unit * parts[1])
    return Hyperplane(w, threshold, taus, 1.0 / (unit * total), "optimal", found.gap)


# ==== The hyperplane in the limit as the radius of one class grows without bound, in closed form ======================


def limit_of(classes: ClassMoments, ambiguity: Ambiguity) -> Hyperplane:
    """Return the limit where one radius is infinite."""
    if ambiguity.divergence == "nominal":
        found = least_norm_sum(classes.difference, [classes.cov_neg, classes.cov_pos])
        return hyperplane_of(classes, Ambiguity("nominal", (0.0, 0.0)), found, 1.0)
    neg_grows = math.isinf(ambiguity.radii[0])
    growing, other = (classes.cov_neg, classes.cov_pos)
    if not neg_grows:
        growing, other = other, growing
    w = _slope(classes.difference, growing, other, ambiguity.divergence)
    spread = worst_spread(ambiguity.divergence, min(ambiguity.radii), ambiguity.bures)
    length = float(np.linalg.norm(w))
    tau = spread.factor * math.sqrt(score_variance(w, other) + spread.ridge * length**2) + spread.length * length
    if ambiguity.divergence in {"fisher_rao", "logdet"} and score_variance(w, growing) == 0.0:
        norms = np.array([0.0, tau]) if neg_grows else np.array([tau, 0.0])
        return hyperplane_of(classes, Ambiguity("nominal", (0.0, 0.0)), LeastNormSum(w, norms, 0.0), 1.0)
    if neg_grows:
        return Hyperplane(w, float(classes.mean_pos @ w), (math.inf, tau), 0.0, "optimal", 0.0)
    return Hyperplane(w, float(classes.mean_neg @ w), (tau, math.inf), 0.0, "optimal", 0.0)


def _slope(a: Floats, growing: Floats, other: Floats, divergence: str) -> Floats:
    if divergence in {"quadratic", "bures"}:
        return np.asarray(a / (a @ a))
    return least_spread_then(a, growing, other)


# ==== The hyperplane of a minimax probability machine without a solver ================================================


def hyperplane(classes: ClassMoments, ambiguity: Ambiguity, solver: str | None) -> Hyperplane:
    """Return the least hyperplane: exactly where ``solver`` is None, else by the cone program.

    One infinite radius is answered in closed form. Where the exact method does not prove its answer, the better of it
    and the cone program's is returned.
    """
    if not all(map(math.isfinite, ambiguity.radii)):
        return limit_of(classes, ambiguity)
    unit, matrices = matrices_of(classes, ambiguity)
    if solver is not None:
        return hyperplane_of(classes, ambiguity, by_program(classes, ambiguity, matrices, solver), unit)
    found = least_norm_sum(classes.difference, matrices)
    if not found.is_proved:
        found = min(found, by_program(classes, ambiguity, matrices, "auto"), key=lambda one: one.value)
    return hyperplane_of(classes, ambiguity, found, unit)


# ==== Minimax probability machine: the classifier =====================================================================

_CHECKS: Final = {
    "divergence": DIVERGENCE,
    "bures": BURES,
    "regularization": LENGTH,
    "solver": OrNone(SOLVER_NAME),
}


class MinimaxProbabilityMachine(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    r"""The hyperplane whose greater worst-case error is least, whatever distributions the two classes have.

    Of each class y only the mean :math:`\mu_y` and the covariance :math:`\hat\Sigma_y` are used, and of the covariance
    only that the true one is within a divergence :math:`\rho_y` of it:

    .. math::
        \min_{w, b}\ \max_{y \in \{-, +\}}\ \max_{P \sim (\mu_y, \Sigma),\ \varphi(\Sigma \Vert \hat\Sigma_y) \le
        \rho_y} P(\text{misclassified})
        = \frac{1}{1 + \kappa^2}, \qquad
        \frac{1}{\kappa} = \min_w \{\tau_-(w) + \tau_+(w) : (\mu_+ - \mu_-)^\top w = 1\},

    with the greatest standard deviations :math:`\tau_y` of :func:`worst_covariance`. A greater radius of the
    unfavourable class moves the hyperplane into the favourable one, where recourse lasts. Among Gaussians the same
    hyperplane is best, its error :math:`1 - \Phi(\kappa)`.

    The optimum is found without a solver, proved to a share of 1e-9 by the dual, also where covariances are singular
    and the sum of norms has edges; or as the cone program that ``formulations.programs`` states,
    where a solver is named.

    Parameters
    ----------
    divergence
        "nominal" (the covariances are known; the radius is not read), "quadratic", "bures", "fisher_rao" or "logdet".
    radius
        (unfavourable, favourable), at least 0: squared for "quadratic" and "bures", a distance for "fisher_rao", twice
        a Kullback-Leibler divergence for "logdet". One of them may be infinite: the limit, in which the hyperplane
        goes through the mean of the other class, kappa is 0 and so the worst-case error 1.
    bures
        "divergence": the radius bounds the squared Bures distance. "paper": its square does, as in the published text,
        where the length is the radius times the norm.
    regularization
        Added to the diagonals of both covariances.
    solver
        None: the exact method. A name: the cone program by this solver ("auto" is Clarabel), to its tolerance.

    Attributes
    ----------
    classes_
        The two labels, shape (2,); the second is the favourable one.
    coef_, intercept_
        Shapes (1, d) and (1,); the score is ``X @ coef_.T + intercept_``, favourable at 0 and above, and scaled so that
        the means' scores differ by 1. Of several best slopes the shortest beside the common null space.
    kappa_
        Standard deviations, at worst, between each mean and the hyperplane.
    worst_case_error_, gaussian_error_
        1 / (1 + kappa^2), and 1 - Phi(kappa).
    tau_, worst_covariances_
        Shapes (2,) and (2, d, d), unfavourable and favourable: the greatest standard deviations of the score, and the
        covariances that attain them. Infinite in the limit.
    status_
        "optimal", or "separable": some slope has no variance at all but tells the means apart, so that kappa is
        infinite, the error 0 and the hyperplane half way between the means.
    gap_
        Share up to which 1 / kappa is proved least; 0 of closed forms.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    "Coverage-Validity-Aware Algorithmic Recourse", propositions 3.4, 3.5, 4.4 and 5.4; Lanckriet et al. (2001).

    Examples
    --------
    Standard deviations 1 and 3, means 0 and 4: both classes are one deviation away from the hyperplane at 1.

    >>> from ceopt.surrogates import MinimaxProbabilityMachine
    >>> machine = MinimaxProbabilityMachine().fit_moments([0], [[1]], [4], [[9]])
    >>> float(-machine.intercept_[0] / machine.coef_[0, 0]), machine.kappa_, machine.worst_case_error_
    (1.0, 1.0, 0.5)

    Robust to a change of the unfavourable class's covariance, it stands farther inside:

    >>> robust = MinimaxProbabilityMachine("fisher_rao", radius=(2.0, 0.0)).fit_moments([0], [[1]], [4], [[9]])
    >>> round(float(-robust.intercept_[0] / robust.coef_[0, 0]), 4), round(robust.worst_case_error_, 4)
    (1.9015, 0.6714)
    """

    def __init__(
        self,
        divergence: str = "nominal",
        radius: Sequence[float] = (0.0, 0.0),
        *,
        bures: str = "divergence",
        regularization: float = 0.0,
        solver: str | None = None,
    ) -> None:
        self.divergence = divergence
        self.radius = radius
        self.bures = bures
        self.regularization = regularization
        self.solver = solver

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to the means and covariances (by 1 / (n - 1), of one row 0) of two classes.

        Parameters
        ----------
        X
            Shape (n, d), finite numbers.
        y
            Shape (n,), two different labels; the greater one is the favourable.

        Raises
        ------
        InvalidValueError, UnknownNameError
            One label or more than two, equal means, an argument of the constructor that makes no sense.
        """
        self._require_settings()
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        return self._fit_rows(rows, labels)

    def fit_local(
        self,
        predict: Any,
        factual: Any,
        X: pd.DataFrame,
        *,
        target: Any,
        space: FeatureSpace | None = None,
        sample: BoundarySample | None = None,
    ) -> Self:
        """Fit to a black box near a row, in scaled columns, on a boundary sample; None: that of ``BoundarySampler()``.

        Shapes are those of :meth:`fit`, and the labels False and True, the target; ``columns_`` are the scaled columns
        and ``n_queries_`` the rows that were sent to the model.

        Parameters
        ----------
        predict
            A model, or a function of a frame with the columns of X to labels.
        factual
            The row: a mapping, a Series or a frame of one row.
        X
            Rows of data; those with missing cells are left out with a warning.
        target
            The favourable label.
        space
            The columns; None: inferred from X.
        sample
            A sample that :meth:`BoundarySampler.sample` returned.

        Raises
        ------
        CeoptError
            An argument of the constructor that makes no sense, what :meth:`BoundarySampler.sample` refuses, and a
            sample of equal means.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from ceopt.surrogates import MinimaxProbabilityMachine
        >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["income", "age"])
        >>> machine = MinimaxProbabilityMachine("fisher_rao", radius=(1.0, 0.0))
        >>> row = {"income": -1.0, "age": 0.0}
        >>> machine = machine.fit_local(lambda rows: rows["income"] > 0, row, people, target=True)
        >>> where = -machine.intercept_ / machine.coef_[:, 0] * people["income"].std(ddof=0)  # above 0: robust
        >>> bool(0 < where[0] < 0.2)
        True
        """
        self._require_settings()
        who = type(self).__name__
        asked, drawn = with_sample(who, predict, factual, X, target=target, space=space, sample=sample)
        self._fit_rows(np.asarray(drawn.encoded, dtype=np.float64), drawn.favourable)
        self.n_features_in_ = drawn.encoded.shape[1]
        self._forget_names()
        self.columns_ = drawn.columns
        self.n_queries_ = asked.n_queries
        return self

    def _fit_rows(self, rows: Floats, labels: NDArray[Any]) -> Self:
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) != 2:
            who = type(self).__name__
            count = counted(len(classes), "class", things="classes")
            then = "Only binary classification is supported. Give rows of two labels."
            raise InvalidValueError(who, "two classes", f"y has {count}", then)
        neg, pos = (_moments_of(rows[codes == code]) for code in (0, 1))
        found = self._hyperplane(neg, pos)
        self.classes_ = classes
        return self._with(found)

    def fit_moments(self, mean_neg: ArrayLike, cov_neg: ArrayLike, mean_pos: ArrayLike, cov_pos: ArrayLike) -> Self:
        """Fit to given moments, of the unfavourable and of the favourable class; the labels are then 0 and 1.

        Parameters
        ----------
        mean_neg, mean_pos
            Shape (d,).
        cov_neg, cov_pos
            Shape (d, d), symmetric and positive semidefinite.

        Raises
        ------
        InvalidValueError, UnknownNameError
            Shapes that disagree, NaN or an infinity, a covariance that is none, equal means, an argument of the
            constructor that makes no sense.
        """
        self._require_settings()
        found = self._hyperplane((mean_neg, cov_neg), (mean_pos, cov_pos))
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = found.weights.size
        self._forget_names()
        return self._with(found)

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the scores of rows, shape (n,), favourable at 0 and above."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(rows @ self.coef_[0] + self.intercept_[0])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the label of each row, shape (n,)."""
        favourable = self.decision_function(X) >= 0.0
        return np.asarray(self.classes_[favourable.astype(np.intp)])

    @property
    def worst_covariances_(self) -> Floats:
        """Covariances of the unfavourable and the favourable class that attain ``tau_``, shape (2, d, d)."""
        check_is_fitted(self)
        return worst_covariances(self.coef_[0], self._moments, self._ambiguity)

    def _forget_names(self) -> None:
        """Forget the columns of an earlier frame."""
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _require_settings(self) -> None:
        check_fields(self, _CHECKS)
        radii = require_radius(type(self).__name__, self.radius, self.divergence, limit=True)
        self._ambiguity = Ambiguity(self.divergence, radii, self.bures)

    def _hyperplane(
        self, unfavourable: tuple[ArrayLike, ArrayLike], favourable: tuple[ArrayLike, ArrayLike]
    ) -> Hyperplane:
        """Return the hyperplane of moments, which are checked and kept."""
        who = type(self).__name__
        self._moments = require_class_moments(who, unfavourable, favourable, regularization=self.regularization)
        return hyperplane(self._moments, self._ambiguity, self.solver)

    def _with(self, found: Hyperplane) -> Self:
        """Set the fitted attributes of a hyperplane."""
        self.coef_ = found.weights[np.newaxis]
        self.intercept_ = np.array([-found.threshold])
        self.kappa_ = found.kappa
        self.worst_case_error_ = 1.0 / (1.0 + found.kappa**2)
        self.gaussian_error_ = float(ndtr(-found.kappa))
        self.tau_ = np.array(found.taus)
        self.status_ = found.status
        self.gap_ = found.gap
        return self


def _moments_of(rows: Floats) -> tuple[Floats, Floats]:
    """Return mean and covariance of the rows of a class; a constant column has a covariance of exactly 0."""
    mean = rows.mean(axis=0)
    constant = (rows == rows[0]).all(axis=0)
    mean[constant] = rows[0, constant]
    if len(rows) == 1:
        return mean, np.zeros((rows.shape[1], rows.shape[1]))
    apart = rows - mean
    return mean, np.asarray(apart.T @ apart / (len(rows) - 1))

r"""Minimax probability machines: the hyperplane whose greater worst-case error is least, from moments.

References
----------
Theorems 3.3, 4.2, 5.2 and C.2 of "Coverage-Validity-Aware Algorithmic Recourse".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.corrections import combination
from ceopt.formulations.programs.moments import Moments, require_covariance
from ceopt.formulations.programs.parts import described, sum_of
from ceopt.formulations.tolerances import COVARIANCE_RANK, LOGDET_SERIES, LOGDET_STEP, SAME_MEANS
from ceopt.solvers.checks import LARGEST, LENGTH, Choice, Floats, Matrix, Real, Refusal, check_arguments, is_number
from ceopt.solvers.cones import soc, soc_affine
from ceopt.solvers.errors import InvalidValueError

# ==== Moments of two classes: what every minimax probability machine is made from =====================================


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClassMoments:
    """Means, shape (d,), and covariances, shape (d, d), of the unfavourable and the favourable class."""

    mean_neg: Floats
    cov_neg: Floats
    mean_pos: Floats
    cov_pos: Floats

    @property
    def difference(self) -> Floats:
        """Mean of the favourable class less that of the unfavourable one."""
        return self.mean_pos - self.mean_neg


def require_class_moments(
    who: str,
    unfavourable: tuple[ArrayLike, ArrayLike],
    favourable: tuple[ArrayLike, ArrayLike],
    *,
    regularization: Any = 0.0,
) -> ClassMoments:
    """Return the moments of two classes, each a mean and a covariance, or refuse them in the name of ``who``.

    ``regularization`` is added to the diagonals of both covariances.
    """
    more = LENGTH.require(who, "regularization", regularization)
    mean_neg = Matrix((None,)).require(who, "mean_neg", unfavourable[0])
    d = len(mean_neg)
    if not d:
        raise InvalidValueError(who, "at least one column", "mean_neg is empty", "Give the mean of the class.")
    mean_pos = Matrix((d,), "Give both means of the same columns.").require(who, "mean_pos", favourable[0])
    cov_neg = require_covariance(who, "cov_neg", unfavourable[1], d)
    cov_pos = require_covariance(who, "cov_pos", favourable[1], d)
    if more:
        cov_neg[np.diag_indices(d)] += more
        cov_pos[np.diag_indices(d)] += more
    if (np.abs(mean_pos - mean_neg) <= SAME_MEANS * np.maximum(np.abs(mean_pos), np.abs(mean_neg))).all():
        but = "the means of both classes are equal"
        raise InvalidValueError(who, "two different means", but, "No hyperplane tells such classes apart.")
    return ClassMoments(mean_neg, cov_neg, mean_pos, cov_pos)


def factor_of(covariance: Floats) -> Floats:
    """Return F with covariance = F F', lower triangular where the covariance is definite, of shape (d, rank) if not."""
    try:
        lower = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        lower = None
    if lower is not None and (np.diag(lower) ** 2 > COVARIANCE_RANK * np.diag(covariance)).all():
        return np.asarray(lower)
    return Moments(np.zeros(len(covariance)), covariance).factor


# ==== The greatest standard deviation of a score over an ambiguity set of covariances =================================

DIVERGENCE: Final = Choice(("nominal", "quadratic", "bures", "fisher_rao", "logdet"))
BURES: Final = Choice(("divergence", "paper"))

#: Beyond this Fisher-Rao radius e^rho is no longer a number.
_GREATEST_FISHER_RAO: Final = 700.0

_RADIUS: Final = Real(at_least=0.0, at_most=LARGEST)
_PAIR: Final = Refusal("a pair (unfavourable, favourable) as {name}", "Give a radius for each class.")


@final
@dataclass(frozen=True, slots=True)
class WorstSpread:
    """k, r and l of the greatest standard deviation, ``factor * |(S + ridge I)^1/2 w| + length * |w|``."""

    factor: float = 1.0
    ridge: float = 0.0
    length: float = 0.0


def worst_spread(divergence: str, radius: float, bures: str = "divergence") -> WorstSpread:
    r"""Return the greatest standard deviation of a score over an ambiguity set of covariances: a sum of two norms.

    Over :math:`\{\Sigma \succeq 0 : \varphi(\Sigma \Vert \hat\Sigma) \le \rho\}` it is, with a factor k, a ridge r and
    a length l that depend on the radius alone,

    .. math::
        \tau(w) = \max \sqrt{w^\top \Sigma w} = k \sqrt{w^\top (\hat\Sigma + r I) w} + l \lVert w \rVert.

    =========== ======================================================================= ========= ============
    divergence  :math:`\varphi(\Sigma \Vert \hat\Sigma)`                                radius    else than
                                                                                                  k=1, r=l=0
    =========== ======================================================================= ========= ============
    nominal     (none)                                                                  not read
    quadratic   :math:`\lVert \Sigma - \hat\Sigma \rVert_F^2`                           squared   r = sqrt(rho)
    bures       squared Bures distance, Tr S + Tr S-hat - 2 Tr (S^1/2 S-hat S^1/2)^1/2  squared   l = sqrt(rho)
    fisher_rao  :math:`\lVert \log \hat\Sigma^{-1/2} \Sigma \hat\Sigma^{-1/2} \rVert_F` distance  k = e^(rho/2)
    logdet      :math:`\operatorname{Tr} \Sigma \hat\Sigma^{-1} - \log\det              2 KL      k = sqrt(c)
                \Sigma \hat\Sigma^{-1} - d`
    =========== ======================================================================= ========= ============

    c is :func:`logdet_factor` of the radius. The published text writes the Bures length as rho itself, without the
    root; ``bures="paper"`` does the same.
    """
    if divergence == "quadratic":
        return WorstSpread(ridge=math.sqrt(radius))
    if divergence == "bures" and bures == "paper":
        return WorstSpread(length=radius)
    if divergence == "bures":
        return WorstSpread(length=math.sqrt(radius))
    if divergence == "fisher_rao":
        return WorstSpread(factor=math.exp(radius / 2.0))
    if divergence == "logdet":
        return WorstSpread(factor=math.sqrt(logdet_factor(radius)))
    return WorstSpread()


@final
@dataclass(frozen=True, slots=True)
class Ambiguity:
    """Divergence, radii of the unfavourable and the favourable class, and what a Bures radius means."""

    divergence: str
    radii: tuple[float, float]
    bures: str = "divergence"

    @property
    def spreads(self) -> tuple[WorstSpread, WorstSpread]:
        """The greatest standard deviations as norms; radii are finite."""
        neg, pos = (worst_spread(self.divergence, rho, self.bures) for rho in self.radii)
        return neg, pos


def logdet_factor(radius: float) -> float:
    r"""Return c of the log-det ambiguity set: the greatest variance is c times the nominal one.

    c >= 1 is the root of :math:`c - \log c = 1 + \rho`, which is :math:`-W_{-1}(-e^{-\rho-1})`. Found by Newton's
    method on :math:`x - \log(1 + x) = \rho` from :math:`x = \rho + \sqrt{2 \rho}`, which lies above the root of a
    convex function, so that every step goes down to it; near 0 by its series. To the last digits at any radius, where
    library functions of Lambert lose half of theirs near 0 and underflow near 745.

    Parameters
    ----------
    radius
        At least 0 and finite; twice a Kullback-Leibler divergence.

    Raises
    ------
    InvalidValueError
        The radius is negative, infinite or no number.

    References
    ----------
    Proposition C.3 of "Coverage-Validity-Aware Algorithmic Recourse".

    Examples
    --------
    >>> from ceopt.formulations.programs.minimax import logdet_factor
    >>> round(logdet_factor(1.0), 6), logdet_factor(0.0)
    (3.146193, 1.0)
    """
    rho = _RADIUS.require("logdet_factor", "radius", radius)
    if rho < LOGDET_SERIES:
        return 1.0 + math.sqrt(2.0 * rho) + 2.0 * rho / 3.0
    x = rho + math.sqrt(2.0 * rho)
    while True:
        step = (x - math.log1p(x) - rho) * (1.0 + x) / x
        if step <= LOGDET_STEP * x:  # only rounding takes it up
            break
        x -= step
    return 1.0 + x


def require_radius(who: str, radius: Any, divergence: str, *, limit: bool = False) -> tuple[float, float]:
    """Return the radii of the unfavourable and the favourable class, or refuse them in the name of ``who``.

    With ``limit`` one of them may be infinite. Those of "nominal" may be any radii: they are not read.
    """
    is_read = divergence != "nominal"
    if isinstance(radius, str) or not isinstance(radius, Sequence | np.ndarray) or len(radius) != 2:
        raise _PAIR.of(who, "radius", radius)
    pair = []
    for k, side in enumerate(radius):
        pair.append(require_one_radius(who, f"radius[{k}]", side, divergence, limit=limit or not is_read))
    if not is_read:
        return 0.0, 0.0
    if math.isinf(pair[0]) and math.isinf(pair[1]):
        then = "Let one of them be finite: where both grow, the limit depends on how."
        raise InvalidValueError(who, "one infinite radius at most", f"radius is {radius!r}", then)
    return pair[0], pair[1]


def require_one_radius(who: str, name: str, radius: Any, divergence: str, *, limit: bool = False) -> float:
    """Return the radius of one class, or refuse it in the name of ``who``; infinite only with ``limit``."""
    if limit and is_number(radius) and radius == math.inf:
        return math.inf
    at_most = LARGEST
    if divergence == "fisher_rao":
        at_most = _GREATEST_FISHER_RAO
    then = "Give such a number; MinimaxProbabilityMachine knows the limit."
    if limit:
        then = "Give such a number, or inf for the limit."
    refusal = Refusal(f"{{name}} to be a number from 0 to {at_most:g}", then)
    return Real(at_least=0.0, at_most=at_most, otherwise=refusal).require(who, name, radius)


# ==== The covariance-robust minimax probability machine as a second-order cone program ================================

_CHECKS: Final = {"divergence": DIVERGENCE, "bures": BURES}


def minimax_machine(
    mean_neg: ArrayLike,
    cov_neg: ArrayLike,
    mean_pos: ArrayLike,
    cov_pos: ArrayLike,
    *,
    divergence: str = "nominal",
    radius: Sequence[float] = (0.0, 0.0),
    bures: str = "divergence",
    regularization: float = 0.0,
) -> pyo.ConcreteModel:
    r"""State the slope of the hyperplane whose greater worst-case error is least, whatever the classes' distributions.

    Of each class y only the moments are known, and the covariance up to a divergence of :math:`\rho_y`. The greatest
    standard deviation of the score is a sum of norms (:func:`worst_spread`), and the sum of both classes' is least:

    .. math::
        \min_{w, s, u}\ \tfrac{1}{K} (k_- s_- + k_+ s_+ + l u) \quad\text{s.t.}\quad
        \lVert F_y^\top w \rVert \le s_y, \quad \lVert w \rVert \le u, \quad (\mu_+ - \mu_-)^\top w = 1.

    ================ ================ ====== ====================================================================
    symbol           component        shape  meaning
    ================ ================ ====== ====================================================================
    :math:`\mu_y`                     (d,)   ``mean_neg``, ``mean_pos``
    :math:`F_y`                       (d, r) factor of the covariance + r_y I; r_y > 0 only of "quadratic"
    :math:`k_y`                       ()     1, or more of "fisher_rao" and "logdet"; K is the greater of both
    l                                 ()     :math:`l_- + l_+`, above 0 only of "bures"
    w                ``w``            (d,)   slope of the score w'x - b, favourable at 0 and above
    s                ``spread_neg``,  ()     at least the norms of the two classes; rows ``near_neg``, ``near_pos``
                     ``spread_pos``
    u                ``length``       ()     at least the norm of w, row ``size``; only where l > 0
    1 / kappa        ``worst``        ()     the objective, times K (which is ``model.unit_of_worst``)
    ================ ================ ====== ====================================================================

    d + 2 numbers (d + 3 where l > 0), one row ``apart``, two cones of 1 + r entries (none of rank 0) and one of 1 + d
    (SOCP). Exact: with the optimal w, :math:`\tau_y(w) = k_y s_y + l_y u` and :math:`\kappa = 1 / (\tau_- + \tau_+)`,
    the intercept is :math:`b = \mu_-^\top w + \kappa \tau_-` and the worst-case error of each class
    :math:`1 / (1 + \kappa^2)`. An optimum of 0 separates the classes whatever their distributions. The objective is
    divided by K, since e to the half of a great Fisher-Rao radius is no number for a solver. Factors are kept as
    arrays, which are stated and lowered in a moment at any d: ``compile_model(model).cones`` shows them.

    Parameters
    ----------
    mean_neg, mean_pos
        Of the unfavourable and the favourable class, shape (d,).
    cov_neg, cov_pos
        Shape (d, d), symmetric and positive semidefinite.
    divergence
        "nominal" (the covariances are known; the radius is not read), "quadratic", "bures", "fisher_rao" or "logdet".
    radius
        (unfavourable, favourable), in the units of :func:`worst_spread`; finite and at least 0.
    bures
        "divergence": l_y is the root of the radius. "paper": it is the radius itself, as in the published text.
    regularization
        Added to the diagonals of both covariances.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        Shapes that disagree, NaN or an infinity, a covariance that is none, equal means, a negative radius.
    UnknownNameError
        There is no such divergence.

    References
    ----------
    "Coverage-Validity-Aware Algorithmic Recourse", proposition 3.4; Lanckriet et al. (2001), Minimax probability
    machine, for known covariances. :class:`ceopt.surrogates.MinimaxProbabilityMachine` finds the same without a solver.

    Examples
    --------
    Means 0 and 4, standard deviations 1 and 1: the slope is 1 / 4, where each score spreads by 1 / 4.

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.minimax_machine([0], [[1]], [4], [[1]], divergence="bures", radius=(0.25, 0))
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.name, row.expr)
    apart 4.0*w[0]  ==  1.0
    near_neg 0  <=  second_order_margin(spread_neg, w[0])
    near_pos 0  <=  second_order_margin(spread_pos, w[0])
    size 0  <=  second_order_margin(length, w[0])
    >>> print(m.worst.expr)
    spread_neg + spread_pos + 0.5*length
    >>> round(solve(m).objective, 6)
    0.625
    """
    who = "minimax_machine"
    check_arguments(who, _CHECKS, locals())
    radii = require_radius(who, radius, divergence)
    classes = require_class_moments(who, (mean_neg, cov_neg), (mean_pos, cov_pos), regularization=regularization)
    neg, pos = (worst_spread(divergence, rho, bures) for rho in radii)
    d = len(classes.mean_neg)
    unit = max(neg.factor, pos.factor)

    model = pyo.ConcreteModel(name=who)
    model.w = pyo.Var(range(d))
    model.spread_neg = pyo.Var(domain=pyo.NonNegativeReals)
    model.spread_pos = pyo.Var(domain=pyo.NonNegativeReals)
    slopes = list(model.w.values())
    model.apart = pyo.Constraint(expr=combination(slopes, classes.difference) == 1.0)
    for side, covariance, ridge in (("neg", classes.cov_neg, neg.ridge), ("pos", classes.cov_pos, pos.ridge)):
        spread = model.component(f"spread_{side}")
        factor = factor_of(covariance + ridge * np.eye(d))
        if factor.shape[1]:
            model.add_component(f"near_{side}", pyo.Constraint(expr=soc_affine(spread, factor.T, slopes) >= 0))
    parts = [model.spread_neg, model.spread_pos]
    weights = [neg.factor / unit, pos.factor / unit]
    if neg.length + pos.length:
        model.length = pyo.Var(domain=pyo.NonNegativeReals)
        model.size = pyo.Constraint(expr=soc(model.length, slopes) >= 0)
        parts.append(model.length)
        weights.append((neg.length + pos.length) / unit)
    model.unit_of_worst = unit
    model.worst = pyo.Objective(expr=sum_of(parts, weights))
    return described(
        model,
        title="Minimax probability machine, covariance-robust",
        formula="min k_- |F_-'w| + k_+ |F_+'w| + l |w|, (mean_+ - mean_-)'w = 1",
        reference="Coverage-Validity-Aware Algorithmic Recourse, proposition 3.4",
    )

"""The covariance-robust minimax probability machine as a second-order cone program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.corrections.side_conditions import combination
from ceopt.formulations.programs.expressions import sum_of
from ceopt.formulations.programs.minimax.class_moments import factor_of, require_class_moments
from ceopt.formulations.programs.minimax.worst_spread import BURES, DIVERGENCE, require_radius, worst_spread
from ceopt.solvers.checks import check_arguments
from ceopt.solvers.cones import soc, soc_affine
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["minimax_machine"]

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
    standard deviation of the score is a sum of norms (``worst_spread.py``), and the sum of both classes' is least:

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
        (unfavourable, favourable), in the units of ``worst_spread.py``; finite and at least 0.
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
    describe(
        model,
        Manifest(
            title="Minimax probability machine, covariance-robust",
            formula="min k_- |F_-'w| + k_+ |F_+'w| + l |w|, (mean_+ - mean_-)'w = 1",
            reference="Coverage-Validity-Aware Algorithmic Recourse, proposition 3.4",
        ),
    )
    return model

r"""The hyperplane in the limit as the radius of one class grows without bound, in closed form.

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

import numpy as np

from ceopt.formulations.programs.minimax import Ambiguity, ClassMoments, worst_spread
from ceopt.formulations.programs.parts import Floats
from ceopt.surrogates.minimax.divergences import score_variance
from ceopt.surrogates.minimax.hyperplane import Hyperplane, hyperplane_of
from ceopt.surrogates.minimax.norm_sum import LeastNormSum, least_norm_sum, least_spread_then

__all__ = ["limit_of"]


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
    rho = min(ambiguity.radii)
    spread = worst_spread(ambiguity.divergence, rho, ambiguity.bures)
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

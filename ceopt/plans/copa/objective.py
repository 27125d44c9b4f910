"""The COPA objective of a plan: near, valid in a large ellipsoid of parameters, and diverse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ceopt.formulations.programs.moments import require_moments, require_plan, require_point
from ceopt.formulations.programs.parts import Cost, Floats, require_distance
from ceopt.plans.copa.terms import Terms
from ceopt.plans.copa.validity_value import margins, spreads
from ceopt.plans.results import Readable
from ceopt.solvers.checks import LENGTH, check_arguments
from ceopt.status import Status

__all__ = ["PlanObjective", "copa_objective", "objective_of"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanObjective(Readable):
    r"""What :func:`copa_objective` returns.

    Parameters
    ----------
    status
        "optimal": the numbers are those of the plan; "infeasible": the mean is outside the favourable set.
    objective
        proximity - validity_weight * validity - diversity_weight * diversity; nan where infeasible.
    proximity
        Mean distance from the factual.
    diversity
        :math:`\det [1 / (1 + c(x_i, x_j))]`, 1 for one counterfactual and 0 where two coincide.
    validity
        The validity value; nan where infeasible, infinite where no counterfactual has variance.
    reason
        One sentence, or empty.
    """

    status: Status
    objective: float
    proximity: float
    diversity: float
    validity: float
    reason: str = ""


def copa_objective(
    factual: ArrayLike,
    plan: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    validity_weight: float,
    diversity_weight: float,
    cost: Cost | ArrayLike = "l2",
) -> PlanObjective:
    r"""Return the COPA objective of a plan and its three terms.

    .. math::
        \frac{1}{J} \sum_j c(x_j, x^0) - \lambda_1 \min_j \frac{\hat\mu^\top x_j}{\sqrt{x_j^\top \hat\Sigma x_j}}
        - \lambda_2 \det \Big[ \frac{1}{1 + c(x_i, x_j)} \Big]_{ij}

    Conventions of the validity value: a counterfactual without variance is inactive, and if all are, the value is
    infinite (the objective is then minus infinity, unless ``validity_weight`` is 0); where the mean finds some
    counterfactual unfavourable, there is no value, and the status is "infeasible".

    Parameters
    ----------
    factual
        Shape (d,).
    plan
        Shape (J, d), one counterfactual a row.
    mean, covariance
        Of the parameters, shapes (d,) and (d, d).
    validity_weight, diversity_weight
        :math:`\lambda_1` and :math:`\lambda_2`, at least 0.
    cost
        "l1", "l2", "linf", or a positive definite M for :math:`\sqrt{(x - y)^\top M (x - y)}`. With "linf" the
        diversity may be negative.

    Raises
    ------
    InvalidValueError, UnknownNameError
        Shapes that disagree, NaN or infinity, no covariance, a negative weight, an unknown cost.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, (4) to (6)
    and lemma 4.1.

    Examples
    --------
    >>> from ceopt.plans import copa_objective
    >>> found = copa_objective([-1, 0], [[1, 0], [1, 1]], [1, 0], [[1, 0], [0, 1]],
    ...                        validity_weight=1.0, diversity_weight=4.0)
    >>> round(found.diversity, 4), round(found.validity, 4)
    (0.75, 0.7071)
    """
    who = "copa_objective"
    moments = require_moments(who, mean, covariance)
    x0 = require_point(who, "factual", factual, moments)
    found = require_plan(who, plan, d=len(x0))
    check_arguments(who, {"validity_weight": LENGTH, "diversity_weight": LENGTH}, locals())
    distance = require_distance(who, cost, len(x0))
    return objective_of(Terms(x0, moments, distance, float(validity_weight), float(diversity_weight)), found)


def objective_of(terms: Terms, plan: Floats) -> PlanObjective:
    """Return the objective of one plan, by the conventions of :func:`copa_objective`."""
    proximity = float(terms.proximity(plan))
    diversity = float(terms.diversity(plan))
    seen = terms.features(plan)
    scores = margins(seen, terms.moments)
    sizes = spreads(seen, terms.moments)
    if (scores < 0.0).any():
        j = int(scores.argmin())
        return PlanObjective(
            status=Status.INFEASIBLE,
            objective=np.nan,
            proximity=proximity,
            diversity=diversity,
            validity=np.nan,
            reason=f"Under the mean, counterfactual {j} is unfavourable: its score is {scores[j]:.6g}.",
        )
    varies = sizes > 0.0
    validity = float((scores[varies] / sizes[varies]).min(initial=np.inf))
    return PlanObjective(
        status=Status.OPTIMAL,
        objective=proximity
        - (terms.validity_weight * validity if terms.validity_weight else 0.0)
        - (terms.diversity_weight * diversity if terms.diversity_weight else 0.0),
        proximity=proximity,
        diversity=diversity,
        validity=validity,
    )

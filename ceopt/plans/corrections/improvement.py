"""The exact improvement of one counterfactual: the point near it that most likely survives retraining, at worst."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from numpy.typing import ArrayLike

from ceopt.formulations.digits import digits
from ceopt.formulations.programs.corrections import free_columns
from ceopt.formulations.programs.moments import require_moments, require_point
from ceopt.formulations.programs.parts import Floats
from ceopt.plans.corrections.ball import BestInReach
from ceopt.plans.results import Readable, frozen, moved_intercept
from ceopt.plans.threads import one_thread
from ceopt.plans.validity.closed_form_cases import lower_bound_of_one
from ceopt.solvers.checks import LENGTH, check_arguments
from ceopt.status import Status

__all__ = ["RobustImprovement", "robust_improvement"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RobustImprovement(Readable):
    """What :func:`robust_improvement` returns.

    Parameters
    ----------
    point
        Shape (d,); None where there is none.
    kappa
        The lower bound of the point is kappa^2 / (1 + kappa^2); infinite for a lower bound of 1. None without a point.
    lower_before, lower_after
        Lower validity bounds of x and of the point; the latter None without a point.
    status
        "optimal", or "infeasible": no point in reach has a lower bound above 0.
    reason
        One sentence, or empty.
    """

    point: Floats | None
    kappa: float | None
    lower_before: float
    lower_after: float | None
    status: Status
    reason: str = ""

    def __post_init__(self) -> None:
        frozen(self, "point")


@one_thread
def robust_improvement(
    x: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    perturbation: float,
    radius: float = 0.0,
    fixed: Iterable[int] | None = None,
) -> RobustImprovement:
    r"""Find the point within ``perturbation`` of x whose lower bound on its validity is the greatest.

    .. math::
        \max_{x'}\ L^*(\{x'\}) \quad\text{s.t.}\quad \lVert x' - x \rVert \le \Delta, \quad
        x'_k = x_k \text{ for fixed } k.

    The bound is :math:`\kappa^2 / (1 + \kappa^2)` for the greatest :math:`\kappa` at which the optimum of
    ``programs.robust_improvement`` is at least 0. It is found without a solver, to about 1e-9 of itself, from one
    equation of one unknown where ``radius`` is 0 and one within another otherwise. Of the multiples
    of a best point it is the one next to x. Unlike :func:`mahalanobis_correction` it never lowers the bound.

    Parameters
    ----------
    x
        A counterfactual, shape (d,). With an intercept, the last column is 1.
    mean, covariance
        Of the parameters, shapes (d,) and (d, d).
    perturbation
        Greatest Euclidean distance from x, in units of the columns; at least 0.
    radius
        Gelbrich distance, not squared, up to which the moments are uncertain; at least 0.
    fixed
        Places of columns that may not move; with an intercept, ``[-1]``.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        Shapes that disagree, NaN or an infinity, a covariance that is none, a negative perturbation or radius, a place
        that is no column.

    References
    ----------
    Own: ``ceopt/plans/corrections/ball.py`` derives it. The bound is theorem 2.2 of Bui, Nguyen & Nguyen (2022),
    Counterfactual plans under distributional ambiguity, for one counterfactual.

    Examples
    --------
    >>> from ceopt.plans import robust_improvement
    >>> found = robust_improvement([1, 1], [1, 0], [[1, 0], [0, 0]], perturbation=1, radius=0.1, fixed=[1])
    >>> found.point.round(6).tolist(), round(found.lower_before, 4), round(found.lower_after, 4)
    ([2.0, 1.0], 0.4005, 0.4212)
    """
    who = "robust_improvement"
    moments = require_moments(who, mean, covariance)
    point = require_point(who, "x", x, moments)
    check_arguments(who, {"perturbation": LENGTH, "radius": LENGTH}, locals())
    free = free_columns(who, fixed, len(point))
    before = lower_bound_of_one(point, moments, float(radius))
    found = BestInReach(moments, float(radius), free).best(point, float(perturbation))
    if found is None:
        beyond = "positive score at the mean" if not radius else "score at the mean above radius times its norm"
        reason = f"No point within {digits(perturbation)} of x has a {beyond}, so all of them have a lower bound of 0."
        return RobustImprovement(
            point=None, kappa=None, lower_before=before, lower_after=None, status=Status.INFEASIBLE, reason=reason
        )
    best, kappa = found
    return RobustImprovement(
        point=best,
        kappa=kappa,
        lower_before=before,
        lower_after=lower_bound_of_one(best, moments, float(radius)),
        status=Status.OPTIMAL,
        reason=moved_intercept(point, best),
    )

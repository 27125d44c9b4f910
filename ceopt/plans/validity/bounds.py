"""Bounds on the probability that a plan is valid for uncertain parameters, over all distributions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, final, get_args

from numpy.typing import ArrayLike

from ceopt.formulations.programs.moments import Moments
from ceopt.formulations.programs.parts import Floats
from ceopt.formulations.programs.validity_parts import require_bound_arguments
from ceopt.plans.results import Readable, frozen
from ceopt.plans.validity.closed_form_cases import Bound, SolvedForm, Solver, lower_bound, upper_bound
from ceopt.plans.validity.forms import LOWER, UPPER
from ceopt.solvers import Status
from ceopt.solvers.checks import Choice, OrNone, Real, check_arguments
from ceopt.solvers.deadline import OutOfTimeError, until
from ceopt.solvers.registry import SOLVER_NAME

__all__ = ["Form", "ValidityBounds", "validity_bounds"]

Form = Literal["auto", "theorem", "arrow", "moment", "scalar", "dual", "nonlinear"]
_FORMS: Final = get_args(Form)
_CHECKS: Final = {
    "form": Choice(_FORMS),
    "solver": SOLVER_NAME,
    "time_limit_s": OrNone(Real(above=0.0)),
}
_NONLINEAR_S: Final = 60.0


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ValidityBounds(Readable):
    """What :func:`validity_bounds` returns.

    Parameters
    ----------
    lower, upper
        No distribution within the radius makes all counterfactuals favourable with less, or more, probability.
    lower_status, upper_status
        "optimal": no number is closer. Anything else: the solver did not prove its optimum, and the number is what
        branch and bound did prove ("nonlinear"), or 0 or 1.
    weights
        Shape (J,): how much probability the worst distribution puts on the failure of each counterfactual; the sum is
        1 - lower. Where several are optimal, as for repeated counterfactuals or a lower bound of 0, one of them: the
        first of a repeated direction has all its weight. Zeros where the solver found no such distribution.
    form
        Which program was asked for.
    reason
        A sentence on each bound that is no solver's optimum, or empty.
    """

    lower: float
    upper: float
    lower_status: Status
    upper_status: Status
    weights: Floats
    form: Form
    reason: str
    given: Moments = field(repr=False)
    lower_side: Bound = field(repr=False)

    def __post_init__(self) -> None:
        frozen(self, "weights")

    @property
    def status(self) -> Status:
        """That of the bound that is not optimal, or "optimal"."""
        return self.upper_status if self.lower_status is Status.OPTIMAL else self.lower_status

    @property
    def worst(self) -> tuple[Floats, Floats]:
        """Mean (d,) and covariance (d, d) within the radius at which the lower bound is attained; computed here."""
        found = self.lower_side.moments(self.given)
        return found.mean, found.covariance


def validity_bounds(
    plan: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    radius: float,
    *,
    form: Form = "auto",
    solver: str = "auto",
    time_limit_s: float | None = None,
) -> ValidityBounds:
    r"""Return the least and the greatest probability that all counterfactuals of a plan are favourable.

    .. math::
        L = \inf_Q\ Q(X \theta > 0), \qquad U = \sup_Q\ Q(X \theta \ge 0)

    over all distributions Q whose mean and covariance are within the Gelbrich distance ``radius`` of the given ones.
    At least one of the two is known at once: a plan that is favourable at the mean has U = 1, any other L = 0. The
    other is a semidefinite program, unless the plan has one direction only (closed form) or is degenerate, or U is
    asked for at radius 0 (the point of the plan's cone nearest to the mean, exactly).

    =============== =========================================== ============================================
    form            lower bound                                 upper bound
    =============== =========================================== ============================================
    ``"auto"``      ``programs.validity_lower_coupled``         ``programs.validity_upper_coupled``
    ``"theorem"``   ``programs.validity_lower``                 ``programs.validity_upper``
    ``"arrow"``     ``programs.validity_lower_arrow``           as ``"auto"``
    ``"moment"``    as ``"auto"``                               ``programs.validity_upper_moment``
    ``"scalar"``    as ``"auto"``                               ``programs.validity_upper_scalar``
    ``"dual"``      ``programs.validity_lower_dual``            as ``"auto"``
    ``"nonlinear"`` ``programs.validity_lower_nonlinear``       as ``"auto"``
    =============== =========================================== ============================================

    All forms have the same optimum. "auto" is solved in at most J dimensions, those of the span of the plan, so that
    its time hardly depends on d; the others in d dimensions, which takes minutes where d is 50. Small radii cost digits
    and then the status "optimal": the theorem's form and the dual below 1e-3 of the mean, the arrow and the moment form
    below 1e-4, "auto" and "scalar" not. The nonlinear form needs a global solver and seldom ends beyond d = 2. Where a
    form states one bound only, or no distribution that attains it (the dual), the rest is that of "auto", by the solver
    that "auto" means.

    Parameters
    ----------
    plan
        Shape (J, d): one counterfactual a row, favourable where its product with the parameters is at least 0. With
        an intercept, the last column is 1.
    mean, covariance
        Of the parameters, shapes (d,) and (d, d). Singular or zero covariance, rows of zeros, repeated and opposed
        rows are answered exactly.
    radius
        Gelbrich distance, not squared, up to which they are uncertain; at least 0.
    form
        See above.
    solver
        A name of :func:`ceopt.solvers.available` that solves the form's class, or "auto".
    time_limit_s
        Of the whole call; a bound that is not there by then is 0 or 1. None: 60 for "nonlinear", none for the others.

    Raises
    ------
    InvalidValueError
        Shapes disagree, a number is not finite, the covariance is none, or the radius is negative.
    UnknownNameError
        There is no such form or solver.
    UnsupportedProblemError
        The solver does not take the form's cones; the message names who does.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, theorems 2.2 and 2.3.

    Examples
    --------
    >>> from ceopt.plans import validity_bounds
    >>> found = validity_bounds([[1, 0], [1, 1]], mean=[2, 1], covariance=[[0.5, 0], [0, 0.5]], radius=0.1)
    >>> round(found.lower, 4), found.upper, found.weights.round(4).tolist()
    (0.7867, 1.0, [0.1163, 0.0969])
    """
    who = "validity_bounds"
    began = time.perf_counter()
    check_arguments(who, _CHECKS, locals())
    x, given, distance = require_bound_arguments(who, plan, mean, covariance, radius)
    limit = math.inf if time_limit_s is None else float(time_limit_s)
    if time_limit_s is None and form == "nonlinear":
        limit = _NONLINEAR_S
    with until(began + limit):
        lower = lower_bound(x, given, distance, _solve_by(LOWER, form, solver, trivial=0.0))
        upper = upper_bound(x, given, distance, _solve_by(UPPER, form, solver, trivial=1.0))
    return ValidityBounds(
        lower=lower.value,
        upper=upper.value,
        lower_status=lower.status,
        upper_status=upper.status,
        weights=lower.weights,
        form=form,
        reason=" ".join(side.reason for side in (lower, upper) if side.reason),
        given=given,
        lower_side=lower,
    )


def _solve_by(programs: Mapping[str, Callable[..., SolvedForm]], form: Form, solver: str, *, trivial: float) -> Solver:
    """Return what solves by this form, or, where it states the other bound, by the default one."""
    if form not in programs:
        form = "auto"
        solver = "auto"

    def solved(rows: Floats, given: Moments, radius: float) -> SolvedForm:
        try:
            return programs[form](rows, given, radius, solver=solver)
        except OutOfTimeError as error:
            reason = f"The time limit is used up while {error.stage}. The bound is the trivial one."
            return SolvedForm(trivial, Status.TIME_LIMIT, reason)

    return solved

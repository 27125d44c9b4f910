"""COPA plans: several counterfactuals that are near, robust and diverse."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike

from ceopt.base.parallel import one_thread
from ceopt.base.results import Readable, Status, frozen, moved_intercept
from ceopt.formulations.digits import digits
from ceopt.formulations.programs.moments import Moments, require_moments, require_plan, require_point
from ceopt.formulations.programs.parts import Cost, require_distance, require_region
from ceopt.plans.copa_search import CLOSE, alike_plan, best_plan, descended, nearest, searched, top_ratio
from ceopt.plans.copa_space import FeatureMap, PlanSearch, Terms
from ceopt.solvers.checks import LENGTH, Choice, Floats, Real, Whole, check_arguments
from ceopt.solvers.deadline import OutOfTimeError, seconds_left, until
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError
from ceopt.solvers.problem import Stop
from ceopt.tolerances import COINCIDING, MARGIN_MISSED, MARGIN_ROUNDING

# ==== The validity value ==============================================================================================

_ROUNDING = 4 * float(np.finfo(float).eps)  # times d: what the sum of d products may be off, relative to their sizes


def validity_value(plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike) -> float:
    r"""Return the greatest r for which a plan is valid for all parameters within r standard deviations of the mean.

    .. math::
        v = \max \{ r : X (\hat\mu + F u) \ge 0 \text{ for all } \lVert u \rVert \le r \}
        = \min_j \frac{\hat\mu^\top x_j}{\lVert F^\top x_j \rVert}, \qquad \hat\Sigma = F F^\top.

    A counterfactual whose score does not vary, :math:`F^\top x_j = 0`, holds the plan back only if it fails at the
    mean. The value is inf if no score varies, and nan where the plan fails at the mean: there is no such r. What is
    0 up to the rounding of its own sum counts as 0.

    Parameters
    ----------
    plan
        Shape (J, d): one counterfactual a row, favourable where its product with the parameters is at least 0.
    mean, covariance
        Of the parameters, shapes (d,) and (d, d).

    Raises
    ------
    InvalidValueError
        Shapes disagree, a number is not finite, or the covariance is none.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, lemma 4.1.

    Examples
    --------
    >>> from ceopt.plans import validity_value
    >>> validity_value([[1, 0], [0, 1]], mean=[3, 1], covariance=[[1, 0], [0, 0.25]])
    2.0
    >>> validity_value([[1, 0], [0, -1]], mean=[3, 1], covariance=[[1, 0], [0, 0.25]])
    nan
    """
    moments = require_moments("validity_value", mean, covariance)
    x = require_plan("validity_value", plan, d=len(moments.mean))
    m = margins(x, moments)
    s = spreads(x, moments)
    if (m < 0.0).any():
        return math.nan
    varies = s > 0.0
    return float((m[varies] / s[varies]).min(initial=math.inf))


def margins(plan: Floats, moments: Moments) -> Floats:
    """Return the scores at the mean, shape (J,); 0 where no more than the rounding of the sum."""
    found = plan @ moments.mean
    noise = _ROUNDING * plan.shape[1] * (np.abs(plan) @ np.abs(moments.mean))
    return np.where(np.abs(found) <= noise, 0.0, found)


def spreads(plan: Floats, moments: Moments) -> Floats:
    """Return the standard deviations of the scores, shape (J,); 0 where no more than the rounding of the sum."""
    found = np.einsum("ja,ja->j", plan @ moments.covariance, plan)
    size = np.abs(plan)
    noise = _ROUNDING * plan.shape[1] * np.einsum("ja,ja->j", size @ np.abs(moments.covariance), size)
    return np.sqrt(np.where(found <= noise, 0.0, found))


# ==== The COPA objective of a plan: near, valid in a large ellipsoid of parameters, and diverse =======================


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


# ==== COPA: a plan of several counterfactuals that are near, survive a large ellipsoid of parameters, and differ ======

Method = Literal["gradient", "descent", "nonlinear", "global"]
_CHECKS: Final = {
    "n": Whole(at_least=1),
    "validity_weight": LENGTH,
    "diversity_weight": LENGTH,
    "margin": LENGTH,
    "time_limit_s": Real(above=0.0),
    "random_state": Whole(at_least=0),
    "method": Choice(get_args(Method)),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CopaPlan(Readable):
    """What :func:`copa_plan` returns.

    Parameters
    ----------
    status
        "optimal": the plan is the best one (see ``certificate``); "feasible": it meets all conditions, and better ones
        may exist; "infeasible": proved, no counterfactual meets them; "rejected": none was found, nothing is proved;
        "time_limit": the time ended before any was found.
    plan
        Shape (J, d), one counterfactual a row; None without one.
    objective, proximity, diversity, validity
        As in :func:`copa_objective`, recomputed from the plan; None without one.
    certificate
        "global": proved up to 1e-3 of 1 + abs(objective); "best_known": a better plan may have been missed; None
        without a plan.
    bound
        What is proved: no plan has a lower objective. None where nothing is.
    reason
        One sentence, or empty.
    method
        The one that was asked for.
    timings
        Seconds: "search".
    """

    status: Status
    plan: Floats | None = None
    objective: float | None = None
    proximity: float | None = None
    diversity: float | None = None
    validity: float | None = None
    certificate: Literal["global", "best_known"] | None = None
    bound: float | None = None
    reason: str = ""
    method: Method = "gradient"
    timings: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        frozen(self, "plan")


@one_thread
def copa_plan(
    factual: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    n: int,
    validity_weight: float,
    diversity_weight: float,
    margin: float = 0.0,
    cost: Cost | ArrayLike = "l2",
    fixed: Sequence[int] | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    groups: Sequence[Sequence[int]] | None = None,
    feature_map: FeatureMap | None = None,
    method: Method = "gradient",
    time_limit_s: float = 60.0,
    random_state: int = 0,
) -> CopaPlan:
    r"""Return a plan of J counterfactuals that is near, likely to survive retraining, and diverse.

    .. math::
        \min_{x_1, \dots, x_J}\ \frac{1}{J} \sum_j c(x_j, x^0)
        - \lambda_1 \min_j \frac{\hat\mu^\top x_j}{\sqrt{x_j^\top \hat\Sigma x_j}}
        - \lambda_2 \det \Big[ \frac{1}{1 + c(x_i, x_j)} \Big]
        \quad\text{s.t.}\quad \hat\mu^\top x_j \ge \varepsilon

    =========== ================================================================ ============ =========================
    method      how                                                              certificate  for
    =========== ================================================================ ============ =========================
    gradient    projected gradients with Adam from many starts, then SLSQP       best_known   all
    descent     the published descent: one noisy start, Adam, 1,000 steps        best_known   columns in [0, 1];
                                                                                              no feature map
    nonlinear   ``programs.copa_plan`` on SCIP, from the plan of the gradients   global if    n to 3, d to 5 or so;
                                                                                 SCIP proves  no feature map
    global      cone programs ``programs.copa_plan_alike`` along one number      global if    no diversity, or n = 1;
                                                                                 they prove   no feature map
    =========== ================================================================ ============ =========================

    **Gradients.** The problem is not convex, and coincident counterfactuals are a stationary point of the diversity:
    all starts are apart, by noise of several sizes around the factual and around the best single counterfactual, which
    is a candidate too, J times. Each step ends with the exact projection onto the half-space, the box and the simplices
    at once, where the published code clips last and may leave the half-space. Look at ``.diversity``: near 0
    counterfactuals coincide, as they should if its weight is small; ``.reason`` says so.

    **The published descent.** "descent" does what the authors' code does, for who repeats the paper: a start at the
    factual with noise of standard deviation 1, a unit for columns in [0, 1]; steps of Adam of length 0.005, at most
    1,000; after each the projection along the mean onto the half-space of the margin, and then a clamp to the bounds,
    which may leave it again; 1e-4 on the diagonal of the determinant's matrix, in the search alone. Where it ends short
    of the margin, ``reason`` says by how much, and the plan is put on it by the exact projection, so that what is
    returned meets all conditions, as with any method. Categories descend as numbers and are settled at the end.
    "gradient" finds better plans by its own objective, which need not be plans that survive more futures.

    **One-hot groups.** The gradient method lets a group be any point of its simplex (a yes or no, any share), then
    settles one group after the other at the category that makes the plan best, among those that leave the margin within
    reach, and improves the other columns again. Then it tries all combinations of categories where they are few, and
    elsewhere the exchange of one category of one counterfactual for another, as long as that helps. "nonlinear" and
    "global" have the columns as binaries. Whole numbers are not kept.

    **Models that are not linear.** With a feature map, validity and margin are those of :math:`\phi(x_j)`, and moments
    are of its parameters. Without one, a local linear model stands for the true one: see the second example, which
    reports the true validity beside it.

    **Degenerate moments.** Where a covariance of rank below d leaves the validity value unbounded, a plan without
    variance has the objective minus infinity, and so have all of its kind; the nearest is returned, J times. With a
    covariance of 0 all plans have it, and the returned one is the best by the two other terms. In search,
    the validity value counts at most :math:`\sqrt{\hat\mu^\top \hat\Sigma^{-1} \hat\mu}`, which only
    counterfactuals without variance exceed: zeros, and without a margin such as have a score of 0.

    Parameters
    ----------
    factual
        Shape (d,), a number in every cell; with an intercept its last entry is 1 and ``fixed`` holds it.
    mean, covariance
        Of the parameters, shapes (d,) and (d, d).
    n
        J, at least 1.
    validity_weight, diversity_weight
        :math:`\lambda_1` and :math:`\lambda_2`, at least 0.
    margin
        :math:`\varepsilon`, least score of each counterfactual under the mean, at least 0.
    cost
        "l1", "l2", or a positive definite M for :math:`\sqrt{(x - y)^\top M (x - y)}`; without diversity also "linf",
        whose kernel may be indefinite.
    fixed
        Columns that are held at the factual.
    bounds
        ``(lower, upper)``, each one number or one a column; infinite for none.
    groups
        Columns of each one-hot group: one of them is 1 and the others 0. A group of one column is a yes or no, 1 or 0.
        The factual has a category in each, or none; leave such columns as they are where others are scaled.
    feature_map
        ``(function, jacobian)`` of one counterfactual, of shapes (D,) and (D, d); mean and covariance are then of D
        parameters.
    method
        See the table.
    time_limit_s
        Of the whole call. The best plan by then is returned, and ``reason`` says that the time ended. Of "nonlinear"
        the gradients have half of it at most.
    random_state
        Of the starts, and of the noise of "descent". The plan is the same for the same one.

    Raises
    ------
    InvalidValueError, InvalidTypeError, UnknownNameError
        Shapes that disagree, no covariance, negative weights or margin, columns that are none, an unknown cost or
        method, or a method that cannot solve what it is asked.
    MissingLibraryError
        "nonlinear" without SCIP.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, section 4, appendix C.1 and C.2.

    Examples
    --------
    >>> from ceopt.plans import copa_plan
    >>> found = copa_plan([-4.5, 0.0], [1.0, 0.3], [[0.4, 0.1], [0.1, 0.3]], n=2, margin=0.1,
    ...                   validity_weight=0.5, diversity_weight=2.0)
    >>> str(found.status), found.certificate, found.plan.shape, round(found.diversity, 1)
    ('feasible', 'best_known', (2, 2), 0.9)

    Any model, by a local linear one around the factual, and how much of the plan the model itself accepts:

    >>> import numpy as np
    >>> from ceopt.plans import local_moments
    >>> def predict(X):
    ...     return 1 / (1 + np.exp(2 - X[:, 0] ** 2 - X[:, 1]))
    >>> factual = np.array([0.5, 0.5])
    >>> moments = local_moments(predict, factual)
    >>> found = copa_plan([*factual, 1.0], *moments, n=3, margin=0.1, fixed=[2], validity_weight=0.1,
    ...                   diversity_weight=1.0)
    >>> true_validity = np.mean(predict(found.plan[:, :2]) >= 0.5)
    """
    who = "copa_plan"
    check_arguments(who, _CHECKS, locals())
    moments = require_moments(who, mean, covariance)
    x0 = require_point(who, "factual", factual, moments if feature_map is None else None)
    distance = require_distance(who, cost, len(x0))
    region = require_region(who, x0, fixed=fixed, bounds=bounds, groups=groups)
    terms = Terms(x0, moments, distance, float(validity_weight), float(diversity_weight), feature_map)
    search = PlanSearch(terms, region, float(margin), int(n))
    _refuse(who, search, method)
    began = time.perf_counter()
    arguments = {"cost": cost, "fixed": fixed, "bounds": bounds, "groups": groups}
    with until(began + float(time_limit_s)):
        found = _found_in_time(search, method, arguments, int(random_state))
        is_late = seconds_left() <= 0.0
    if is_late and method in {"gradient", "descent"} and found.status is Status.FEASIBLE:
        found = replace(
            found, reason=f"The time limit of {digits(time_limit_s)} s ended the search. {found.reason}".strip()
        )
    seconds = {"search": time.perf_counter() - began}
    if found.plan is None:
        return CopaPlan(status=found.status, reason=found.reason, method=method, timings=seconds)
    recomputed = objective_of(terms, found.plan)
    remarks = (found.reason or _coincident(search, found.plan), moved_intercept(x0, found.plan))
    return CopaPlan(
        status=found.status,
        plan=found.plan,
        objective=recomputed.objective,
        proximity=recomputed.proximity,
        diversity=recomputed.diversity,
        validity=recomputed.validity,
        certificate="global" if found.status is Status.OPTIMAL else "best_known",
        bound=None if found.bound is None else min(found.bound, recomputed.objective),
        reason=" ".join(filter(None, remarks)),
        method=method,
        timings=seconds,
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _FoundPlan:
    status: Status
    plan: Floats | None = None
    bound: float | None = None
    reason: str = ""


def _found_in_time(search: PlanSearch, method: Method, arguments: dict[str, Any], random_state: int) -> _FoundPlan:
    """Return the plan of a method; where the time ends before it has one, a start of the gradients, legal as it is."""
    try:
        return _found(search, method, arguments, random_state)
    except OutOfTimeError as error:
        reason = f"The time limit is used up while {error.stage}."
    try:
        return replace(_found(search, "gradient", arguments, random_state), reason=reason)
    except OutOfTimeError:
        return _FoundPlan(status=Status.TIME_LIMIT, reason=reason)


def _found(search: PlanSearch, method: Method, arguments: dict[str, Any], random_state: int) -> _FoundPlan:
    """Return the plan of a method; degenerate moments and regions first."""
    terms = search.terms
    region = search.region
    if region.empty:
        return _FoundPlan(status=Status.INFEASIBLE, reason=f"There is no such counterfactual: {region.empty}")
    if terms.feature_map is None:
        reach = region.reach(terms.moments.mean)
        if reach < search.margin - MARGIN_ROUNDING * (1.0 + search.margin):
            reason = f"The margin is {digits(search.margin)}, and the greatest score under the mean is {digits(reach)}."
            return _FoundPlan(status=Status.INFEASIBLE, reason=reason)
        search = PlanSearch(terms, region, min(search.margin, reach), search.n)
        if terms.validity_weight and not np.isfinite(terms.cap):
            return _unbounded(search, method, arguments, random_state)
    return _solved(search, method, arguments, random_state)


def _solved(search: PlanSearch, method: Method, arguments: dict[str, Any], random_state: int) -> _FoundPlan:
    """Return the plan of a method where there may be one; without diversity it repeats a single counterfactual."""
    terms = search.terms
    n = search.n
    if n > 1 and not terms.diversity_weight:
        found = _solved(PlanSearch(terms, search.region, search.margin, 1), method, arguments, random_state)
        if found.plan is None:
            return found
        return replace(found, plan=np.repeat(found.plan, n, axis=0))
    top = 0.0
    if method in {"nonlinear", "global"} and terms.validity_weight:
        # Without a margin zeros, or counterfactuals without variance, may have any value: the cap alone bounds it.
        is_open = not search.margin and nearest(search, arguments, np.inf)[1] is not None
        top = terms.cap
        if not is_open:
            top = min(top, top_ratio(search))
        if not np.isfinite(top):
            return _FoundPlan(status=Status.ERROR, reason="No number bounds the validity value: bound the columns.")
    if method == "global":
        alike = alike_plan(search, arguments, top)
        if alike.point is not None:
            status = Status.OPTIMAL if alike.status is Stop.OPTIMAL else Status.FEASIBLE
            return _FoundPlan(status=status, plan=alike.point[None], bound=alike.bound, reason=alike.reason)
        status = Status.INFEASIBLE if alike.status is Stop.INFEASIBLE else Status.ERROR
        return _FoundPlan(status=status, reason=alike.reason or "No counterfactual meets the margin.")
    if method == "descent":
        end = descended(search, random_state)
        remarks = filter(None, [_put_back(search, end.missed), _coincident(search, end.plan)])
        return _FoundPlan(status=Status.FEASIBLE, plan=end.plan, reason=" ".join(remarks))
    gradients_s = seconds_left() / 2.0 if method == "nonlinear" else math.inf
    with until(time.perf_counter() + gradients_s):
        best = best_plan(search, random_state)
    if best is None:
        return _FoundPlan(status=Status.REJECTED, reason="No start reached the margin; that none can is not proved.")
    if method == "gradient":
        return _FoundPlan(status=Status.FEASIBLE, plan=best)
    try:
        result, best = searched(search, best, arguments, top=top, random_state=random_state)
    except OutOfTimeError as error:
        return _FoundPlan(status=Status.FEASIBLE, plan=best, reason=f"The time limit is used up while {error.stage}.")
    value = float(terms.value(best))
    bound = None if result.bound is None else min(result.bound, value)
    is_close = bound is not None and value - bound <= CLOSE * (1.0 + abs(value))
    status = Status.OPTIMAL if result.status is Stop.OPTIMAL and is_close else Status.FEASIBLE
    return _FoundPlan(status=status, plan=best, bound=bound, reason=result.message)


def _unbounded(search: PlanSearch, method: Method, arguments: dict[str, Any], random_state: int) -> _FoundPlan:
    """Return a plan without variance, if one may be; else the plan of a validity value that the region bounds."""
    terms = search.terms
    if not terms.factor.shape[1]:
        rest = Terms(terms.factual, terms.moments, terms.distance, 0.0, terms.diversity_weight, terms.feature_map)
        found = _found(PlanSearch(rest, search.region, search.margin, search.n), method, arguments, random_state)
        reason = "The covariance is 0, so that all plans have an infinite validity value; this one is best by the rest."
        if found.plan is None:
            return found
        return _FoundPlan(status=found.status, plan=found.plan, reason=reason)
    point = None
    with suppress(OutOfTimeError):
        _, point = nearest(search, arguments, np.inf)
    if point is not None:
        plan = np.repeat(point[None], search.n, axis=0)
        reason = "The validity value is unbounded: this is the nearest counterfactual whose score does not vary."
        return _FoundPlan(status=Status.OPTIMAL, plan=plan, reason=reason, bound=-np.inf)
    return _solved(search, method, arguments, random_state)


def _put_back(search: PlanSearch, missed: float) -> str:
    """Return a sentence where the published descent ended outside of the half-space."""
    if missed <= MARGIN_MISSED * (1.0 + search.margin):
        return ""
    return f"The descent ended up to {missed:.3g} short of the margin; its plan was put back on it."


def _coincident(search: PlanSearch, plan: Floats) -> str:
    """Return a sentence where counterfactuals coincide although diversity has a weight."""
    if search.n == 1 or not search.terms.diversity_weight:
        return ""
    apart = search.terms.distance.of(plan[:, None] - plan[None])[np.triu_indices(search.n, 1)]
    if apart.min() > COINCIDING * (1.0 + float(search.terms.proximity(plan))):
        return ""
    return "Some counterfactuals coincide, so that the diversity is 0: give it more weight."


def _refuse(who: str, search: PlanSearch, method: Method) -> None:
    """Refuse what a method cannot solve, and what no method can."""
    terms = search.terms
    n = search.n
    is_diverse = bool(terms.diversity_weight) and n > 1
    if is_diverse and terms.distance.kind == "linf":
        then = "Use 'l1', 'l2' or a matrix, or no diversity."
        raise InvalidValueError(who, "a cost whose kernel is positive semidefinite", "cost is 'linf'", then)
    if method == "global" and is_diverse:
        but = f"diversity_weight is {digits(terms.diversity_weight)} with n = {n}"
        then = "Use method 'nonlinear', which can prove, or 'gradient'."
        raise InvalidValueError(who, "diversity_weight 0 or n 1 for method 'global'", but, then)
    if terms.feature_map is None:
        return
    if method != "gradient":
        but = f"method is {method!r} with a feature_map"
        raise InvalidValueError(who, "method 'gradient' for a feature_map", but, "Use it.")
    is_pair = isinstance(terms.feature_map, tuple | list) and len(terms.feature_map) == 2
    if not is_pair or not all(map(callable, terms.feature_map)):
        then = "Give both as functions of one counterfactual."
        raise InvalidTypeError(who, "a pair (function, jacobian) as feature_map", f"it is {terms.feature_map!r}", then)
    want = (len(terms.moments.mean), len(terms.factual))
    for name, part, shape in zip(("function", "jacobian"), terms.feature_map, (want[:1], want), strict=True):
        found = np.shape(part(terms.factual))
        if found != shape:
            then = "Give one feature for each parameter."
            raise InvalidValueError(who, f"a {name} with values of shape {shape}", f"its shape is {found}", then)

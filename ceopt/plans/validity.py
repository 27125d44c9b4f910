r"""Bounds on the probability that a plan is valid: which case needs which program, and what distribution attains them.

**Known moments.** The upper bound is how near the plan's cone comes to the mean,

.. math:: U = \frac{1}{1 + \min \{ \lVert z \rVert^2 : X (\hat\mu + F z) \ge 0 \}}, \qquad \hat\Sigma = F F^\top,

and 0 where there is no such z: the probability of a convex set is greatest with one atom at its point nearest to the
mean, in standard deviations (Vandenberghe, Boyd & Comanor 2007, for a convex set; Marshall & Olkin 1960).

**Reduction.** Plan and moments have as many parameters as the plan has independent rows: the events depend on the
parameters only through their projection on the span of the counterfactuals, and the image of a Gelbrich ball under a
projection is the ball of the same radius around the projected moments. So both bounds are those of the projected plan
and moments, whose size depends on the plan alone.

For the ball: a projection contracts the Gelbrich distance, and :func:`lifted` attains every point of the image.

**One counterfactual.** Its bounds are in closed form for every radius. With :math:`m = x^\top \hat\mu`,
:math:`s = \sqrt{x^\top \hat\Sigma x}`, :math:`r = \rho \lVert x \rVert` and :math:`R^2 = m^2 + s^2`, mean and standard
deviation of the score range over the half disc of radius r around (m, s). The worst of them is where a line through 0
touches it:

.. math::
    L = \Big( \frac{m \sqrt{R^2 - r^2} - s r}{R^2} \Big)^2 \text{ if } m > r, \text{ else } 0; \qquad
    U = \Big( \frac{s \sqrt{R^2 - r^2} + |m| r}{R^2} \Big)^2 \text{ if } m < -r, \text{ else } 1.

Both are computed without differences of near numbers, in ``formulations/programs/validity_lower.py``. All others are
answered by a form of the program, for which ``how`` is what :func:`ceopt.solvers.solve` is asked beside it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from ceopt.base.results import Readable, frozen
from ceopt.formulations.programs.moments import Moments
from ceopt.formulations.programs.validity_lower import (
    least_of_score,
    require_bound_arguments,
    validity_lower,
    validity_lower_arrow,
    validity_lower_coupled,
    validity_lower_dual,
    validity_lower_nonlinear,
)
from ceopt.formulations.programs.validity_upper import (
    validity_upper,
    validity_upper_coupled,
    validity_upper_moment,
    validity_upper_scalar,
)
from ceopt.plans.copa import margins, spreads
from ceopt.solvers import Result, Status, solve
from ceopt.solvers.checks import Choice, Floats, Matrix, OrNone, Real, Whole, check_arguments
from ceopt.solvers.deadline import OutOfTimeError, until
from ceopt.solvers.errors import InvalidValueError
from ceopt.solvers.registry import SOLVER_NAME
from ceopt.tolerances import (
    BESIDE_HYPERPLANE,
    DIRECTION_RANK,
    FAINT,
    LEAST_MASS,
    PREDICTING_RANK,
    SAME_DIRECTION,
    SCALAR_GAP,
    SCORE_ROUNDING,
    SYSTEM_ROUNDING,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# ==== The upper bound on validity where mean and covariance are known: how near the plan's cone comes to the mean =====


def greatest_at(rows: Floats, given: Moments) -> tuple[float, Floats]:
    """Return the bound, and the point of its atom; of a bound of 0 the mean.

    By Lawson & Hanson's least distance programming: the residual of the nearest point of a cone to a unit vector holds
    both z and the bound, and is 0 exactly where there is no z. It needs no solver.

    Parameters
    ----------
    rows
        Shape (n, d), each of a score that varies.
    given
        Moments of d parameters.
    """
    factor = given.factor
    system = np.column_stack([rows @ factor, -rows @ given.mean])
    system /= np.linalg.norm(system, axis=1)[:, None]
    unit = np.zeros(system.shape[1])
    unit[-1] = 1.0
    prices, _ = nnls(system.T, unit)
    left = unit - system.T @ prices
    size = float(np.linalg.norm(left))
    if size <= SYSTEM_ROUNDING:
        return 0.0, given.mean
    return min(size * size, 1.0), np.asarray(given.mean - factor @ (left[:-1] / (size * size)))


# ==== The exact reduction of plan and moments to as many parameters as the plan has independent rows ==================


@final
@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """The different directions of a plan, of unit length: a positive multiple of a counterfactual is the same event.

    Parameters
    ----------
    rows
        Shape (n, d).
    first
        Shape (n,): the first counterfactual of each direction.
    zero
        Positions of counterfactuals that are 0.
    """

    rows: Floats
    first: NDArray[np.intp]
    zero: NDArray[np.intp]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """Plan and moments in the coordinates of an orthonormal basis, in units in which the moments are of size 1.

    Parameters
    ----------
    rows
        Shape (n, r): the directions.
    moments, radius
        Of the projected parameters divided by ``unit``.
    basis
        Shape (r, d), orthonormal rows.
    unit
        Parameters per unit.
    """

    rows: Floats
    moments: Moments
    radius: float
    basis: Floats
    unit: float


def directions(plan: Floats) -> Directions:
    """Return the different directions of a plan of shape (J, d)."""
    sizes = np.abs(plan).max(axis=1)  # first the greatest entry, as squares of large or small numbers are none
    is_zero = sizes == 0.0
    scaled = plan / np.where(is_zero, 1.0, sizes)[:, None]
    rows = scaled / np.where(is_zero, 1.0, np.linalg.norm(scaled, axis=1))[:, None]
    first: list[int] = []
    for j in np.flatnonzero(~is_zero).tolist():
        if not first or np.abs(rows[first] - rows[j]).max(axis=1).min() > SAME_DIRECTION:
            first.append(j)
    return Directions(rows[first], np.array(first, dtype=np.intp), np.flatnonzero(is_zero))


def reduced(rows: Floats, moments: Moments, radius: float) -> Reduction:
    """Return what the span of unit rows, shape (n, d), sees of the moments."""
    _, sizes, right = np.linalg.svd(rows, full_matrices=False)
    basis = right[sizes > DIRECTION_RANK * sizes[0]]
    return scaled(rows @ basis.T, moments.seen_by(basis), radius, basis)


def scaled(rows: Floats, moments: Moments, radius: float, basis: Floats) -> Reduction:
    """Return rows and moments in units in which the second moment has trace 1."""
    unit = float(np.hypot(np.linalg.norm(moments.mean), np.sqrt(max(np.trace(moments.covariance), 0.0)))) or 1.0
    return Reduction(rows, Moments(moments.mean / unit, moments.covariance / unit**2), radius / unit, basis, unit)


def lifted(given: Moments, reduction: Reduction, found: Moments) -> Moments:
    r"""Return moments of all parameters as near to the given ones as ``found`` to the reduced ones, and seen as those.

    With :math:`\eta = Q \theta` and a factor F of its covariance, :math:`\eta - \hat\eta = F \zeta`; the best coupling
    moves :math:`\eta` to :math:`\tilde\mu + K \zeta + \varepsilon`, where the noise has covariance
    :math:`\tilde\Sigma - K K^\top`, and leaves what is orthogonal to the basis alone:

    .. math::
        \mu^* = \hat\mu + Q^\top (\tilde\mu - Q \hat\mu), \qquad \Sigma^* = A \hat\Sigma A^\top
        + Q^\top (\tilde\Sigma - K K^\top) Q, \qquad A = I + Q^\top (K F^+ - I) Q.

    For a covariance of full rank it is :math:`A \hat\Sigma A^\top` with the optimal map of the projected normal
    distributions in A.

    Parameters
    ----------
    given
        Of all d parameters.
    found
        Moments in the coordinates and units of ``reduction``.
    """
    q = reduction.basis
    unit = reduction.unit
    factor = reduction.moments.factor
    other = found.root
    left, _, right = np.linalg.svd(other @ factor, full_matrices=False)
    coupling = other @ (left @ right)  # K, shape (r, k)
    change = coupling @ np.linalg.pinv(factor) - np.eye(len(q))
    noise = found.covariance - coupling @ coupling.T
    seen = q @ given.covariance  # the covariance of the projected parameters with all
    cross = q.T @ (change @ seen)
    covariance = given.covariance + cross + cross.T + q.T @ (change @ (seen @ q.T) @ change.T + unit**2 * noise) @ q
    mean = given.mean + q.T @ (unit * (found.mean - reduction.moments.mean))
    return Moments(mean, (covariance + covariance.T) / 2.0)


# ==== A distribution at which a bound is attained, as parts of mass, and where its moments lie ========================


@final
@dataclass(frozen=True, slots=True, eq=False)
class Attained:
    """A distribution at which a bound is attained, in the coordinates of a reduction.

    Parameters
    ----------
    masses
        Shape (k,): probabilities of the parts, that of the rest first.
    means
        Shape (k, r): mean on each part, times its probability.
    moments
        Of the whole.
    """

    reduction: Reduction
    masses: Floats
    means: Floats
    moments: Moments


def of_parts(reduction: Reduction, masses: Floats, means: Floats, second: Any) -> Attained:
    """Return the distribution of a program's parts; ``second`` is its Var M, None where the moments are fixed.

    The means are then those of the whitened parameters.
    """
    if second is None:
        if reduction.radius == 0.0:
            means = means @ reduction.moments.factor.T + np.outer(masses, reduction.moments.mean)
        return Attained(reduction, masses, means, reduction.moments)
    mean = means.sum(axis=0)
    return Attained(reduction, masses, means, Moments(mean, square_of(second, len(mean)) - np.outer(mean, mean)))


def of_model(reduction: Reduction, model: Any) -> Attained:
    """Return the distribution of a solved program whose Vars ``weight``, ``z`` and ``M`` are its parts and moment."""
    masses = numbers_of(model.weight)
    means = numbers_of(model.z).reshape(len(masses), -1)
    return of_parts(reduction, masses, means, None if reduction.radius == 0.0 else model.M)


def of_coupling(reduction: Reduction, masses: Floats, u: Floats, v: Floats) -> Attained:
    r"""Return the distribution of a coupled program, :math:`\theta = \hat\mu + F \zeta + \rho \eta`.

    Parameters
    ----------
    masses, u, v
        Shapes (k,), (k, r) and (k, d); :math:`\eta` is the same for all of a part.
    """
    centre = reduction.moments
    factor = reduction.moments.factor
    radius = reduction.radius
    kept = masses > FAINT
    shift = radius * v[kept] / masses[kept, None]
    moved = np.zeros(v.shape)
    moved[kept] = masses[kept, None] * shift
    total = moved.sum(axis=0)
    cross = factor @ u[kept].T @ shift
    covariance = centre.covariance + cross + cross.T + moved[kept].T @ shift - np.outer(total, total)
    means = np.outer(masses, centre.mean) + u @ factor.T + moved
    return Attained(reduction, masses, means, Moments(centre.mean + total, covariance))


def square_of(var: Any, d: int) -> Floats:
    """Return the symmetric matrix of a Var over its upper triangle."""
    matrix = np.empty((d, d))
    for (a, b), member in var.items():
        matrix[a, b] = matrix[b, a] = member.value
    return matrix


def numbers_of(var: Any) -> Floats:
    """Return the values of a Var in its own order."""
    return np.array([member.value for member in var.values()], dtype=np.float64)


# ==== The two validity bounds: which cases need no solver, and what attains them ======================================


def lower_bound_of_one(x: Floats, moments: Moments, radius: float) -> float:
    """Return the least probability that x is favourable.

    Parameters
    ----------
    x
        Shape (d,).
    moments
        Of the parameters.
    radius
        Gelbrich distance up to which they are uncertain, at least 0.
    """
    return least_of_score(*_score(x, moments, radius))[0]


def upper_bound_of_one(x: Floats, moments: Moments, radius: float) -> float:
    """Return the greatest probability that x is favourable; the arguments are those of :func:`lower_bound_of_one`."""
    if not np.any(x):
        return 1.0
    m, s, r = _score(x, moments, radius)
    if m < 0.0:
        return least_of_score(-m, s, r)[1]
    return 1.0


def _score(x: Floats, moments: Moments, radius: float) -> tuple[float, float, float]:
    row = np.asarray(x, dtype=np.float64)[None]
    return float(margins(row, moments)[0]), float(spreads(row, moments)[0]), radius * float(np.linalg.norm(x))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """One bound: its value and status, a sentence, and what attains it.

    Parameters
    ----------
    weights
        Shape (J,), of the lower bound: the probability that it puts on each counterfactual's failure; their sum is
        1 - value.
    attained
        None where the bound is 0 or 1 for the mean alone.
    mean
        Where it is None: a mean within the radius for which it is.
    """

    value: float
    status: Status
    reason: str
    weights: Floats
    mean: Floats
    attained: Attained | None = None

    def moments(self, given: Moments) -> Moments:
        """Return mean and covariance of all parameters within the ball, at which the bound is attained."""
        if self.attained is None:
            return Moments(self.mean, given.covariance)
        return lifted(given, self.attained.reduction, self.attained.moments)


@final
@dataclass(frozen=True, slots=True, eq=False)
class SolvedForm:
    """What one form of the bound came to: its value and status, a sentence, and what attains it, if it says that."""

    value: float
    status: Status = Status.OPTIMAL
    reason: str = ""
    attained: Attained | None = None


#: Answers for rows, moments and radius.
Solver = Callable[[Floats, Moments, float], SolvedForm]


def lower_bound(plan: Floats, given: Moments, radius: float, solve_rest: Solver) -> Bound:
    """Return the lower bound; ``solve_rest`` is asked for two or more different directions with an interior mean."""
    found = directions(plan)
    weights = np.zeros(len(plan))
    if found.zero.size:
        weights[found.zero[0]] = 1.0
        reason = f"Counterfactual {found.zero[0]} is 0, whose score is never above 0."
        return Bound(0.0, Status.OPTIMAL, reason, weights, given.mean)
    m = margins(found.rows, given)
    worst = int(m.argmin())
    if m[worst] <= radius:
        weights[found.first[worst]] = 1.0
        mean = given.mean - max(m[worst], 0.0) * found.rows[worst]
        where = "the mean" if m[worst] <= 0.0 else "a mean within the radius"
        reason = f"Counterfactual {found.first[worst]} is not favourable at {where}."
        return Bound(0.0, Status.OPTIMAL, reason, weights, mean)
    rows, first = _uncertain(found, given, radius)
    if not len(rows):
        reason = "All counterfactuals are favourable for certain."
        return Bound(1.0, Status.OPTIMAL, reason, weights, given.mean)
    if len(rows) == 1:
        solve_rest = _one_lower
    solved = solve_rest(rows, given, radius)
    if solved.attained is not None:
        # The probability that the plan fails, 1 - value, is shared out as its parts have it.
        share = np.maximum(solved.attained.masses[1:], 0.0)
        weights[first] = share * ((1.0 - solved.value) / (share.sum() or 1.0))
    return Bound(solved.value, solved.status, solved.reason, weights, given.mean, solved.attained)


def upper_bound(plan: Floats, given: Moments, radius: float, solve_rest: Solver) -> Bound:
    """Return the upper bound; ``solve_rest`` is asked for two or more directions without a common point near."""
    found = directions(plan)
    weights = np.zeros(len(plan))
    m = margins(found.rows, given)
    if (m >= 0.0).all():
        return Bound(1.0, Status.OPTIMAL, "", weights, given.mean)
    if radius == 0.0:
        hopeless = (m < 0.0) & (spreads(found.rows, given) == 0.0)
        if hopeless.any():
            reason = f"Counterfactual {found.first[hopeless.argmax()]} is unfavourable for certain."
            return Bound(0.0, Status.OPTIMAL, reason, weights, given.mean)
    else:
        nearest = nearest_valid(found.rows, given.mean)
        if float(np.linalg.norm(nearest - given.mean)) <= radius:
            reason = "All counterfactuals are favourable at a mean within the radius."
            return Bound(1.0, Status.OPTIMAL, reason, weights, nearest)
    rows, _ = _uncertain(found, given, radius)
    if radius == 0.0 and greatest_at(rows, given)[0] == 0.0:
        reason = "No parameters that these moments allow make all counterfactuals favourable."
        return Bound(0.0, Status.OPTIMAL, reason, weights, given.mean)
    if len(rows) == 1:
        solve_rest = _one_upper
    solved = solve_rest(rows, given, radius)
    return Bound(solved.value, solved.status, solved.reason, weights, given.mean, solved.attained)


# ---- inside ----------------------------------------------------------------------------------------------------------
def _uncertain(found: Directions, given: Moments, radius: float) -> tuple[Floats, Any]:
    """Return the directions whose score varies; with a radius, all do."""
    kept = (spreads(found.rows, given) > 0.0) | (radius > 0.0)
    return found.rows[kept], found.first[kept]


def nearest_valid(rows: Floats, mean: Floats) -> Floats:
    """Return the point nearest to the mean for which all scores are at least 0, by Moreau's decomposition."""
    if (rows @ mean >= -SCORE_ROUNDING * (np.abs(rows) @ np.abs(mean))).all():
        return np.array(mean)  # of such a point scipy's nnls was seen to return one that is far off
    prices, _ = nnls(rows.T, -mean)
    return np.asarray(mean + prices @ rows)


def _one_lower(rows: Floats, given: Moments, radius: float) -> SolvedForm:
    """Return the bound of one direction in closed form."""
    reduction = reduced(rows, given, radius)
    sign = reduction.rows[0, 0]
    m = float(sign * reduction.moments.mean[0])
    s = float(np.sqrt(max(reduction.moments.covariance[0, 0], 0.0)))
    value, rest = least_of_score(m, s, reduction.radius)
    length = np.hypot(m, s) ** 2 - reduction.radius**2  # of the line that touches the disc, squared
    touched = Moments(np.array([sign * np.sqrt(length * value)]), np.array([[length * rest]]))
    masses = np.array([value, rest])
    means = np.array([touched.mean, np.zeros(1)])
    return SolvedForm(value, attained=Attained(reduction, masses, means, touched))


def _one_upper(rows: Floats, given: Moments, radius: float) -> SolvedForm:
    """Return the bound of one direction: the mirrored lower one, whose complement stays at a score of 0."""
    mirrored = _one_lower(-rows, given, radius)
    assert mirrored.attained is not None  # noqa: S101 - a closed form
    return SolvedForm(float(mirrored.attained.masses[1]), attained=mirrored.attained)


# ==== The forms of the validity bounds: which program answers for which, and how its answer is read ===================

_STEPS: Final = 50


def lower_auto(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Solve the coupled form in the dimensions of the plan."""
    reduction = reduced(rows, given, radius)
    n, d = reduction.rows.shape

    def attained(model: Any) -> Attained:
        moved = np.zeros((n + 1, d))
        if reduction.radius:
            moved[1:] = numbers_of(model.v).reshape(n, d)
        return of_coupling(reduction, numbers_of(model.weight), numbers_of(model.u).reshape(n + 1, -1), moved)

    return _answer(validity_lower_coupled, reduction, how, attained)


def lower_arrow(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Solve the arrow form in all dimensions."""
    reduction = _whole(rows, given, radius)
    return _answer(validity_lower_arrow, reduction, how, lambda model: of_model(reduction, model))


def lower_theorem(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Solve the theorem's form, whose rest is the mass outside its parts."""
    reduction = _whole(rows, given, radius)

    def attained(model: Any) -> Attained:
        masses = numbers_of(model.weight)
        means = numbers_of(model.z).reshape(len(masses), -1)
        whole = np.zeros(means.shape[1]) if reduction.radius == 0.0 else numbers_of(model.mean)
        masses = np.append(1.0 - masses.sum(), masses)
        means = np.vstack([whole - means.sum(axis=0), means])
        return of_parts(reduction, masses, means, None if reduction.radius == 0.0 else model.M)

    return _answer(validity_lower, reduction, how, attained)


def lower_dual(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Solve the dual; what attains the bound is that of the default form, as the dual holds no distribution."""
    answer = _answer(validity_lower_dual, _whole(rows, given, radius), how)
    return replace(answer, attained=lower_auto(rows, given, radius).attained)


def lower_nonlinear(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Solve the form without cones."""
    reduction = _whole(rows, given, radius)

    def attained(model: Any) -> Attained:
        roots = numbers_of(model.s)
        atoms = numbers_of(model.w).reshape(len(roots), -1)
        parts = of_parts(reduction, roots**2, roots[:, None] * atoms, None)
        if not reduction.radius:
            return parts
        factor = numbers_of(model.G).reshape(len(rows[0]), -1)
        return replace(parts, moments=Moments(numbers_of(model.mean), factor @ factor.T))

    return _answer(validity_lower_nonlinear, reduction, how, attained, branches=True)


def upper_auto(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Solve the coupled form in the dimensions of the plan; where the moments are known, a closed form does it."""
    reduction = reduced(rows, given, radius)
    if radius == 0.0:
        value, point = greatest_at(rows, given)
        atom = value * (reduction.basis @ point) / reduction.unit
        mean = reduction.moments.mean
        found = Attained(reduction, np.array([1.0 - value, value]), np.array([mean - atom, atom]), reduction.moments)
        return SolvedForm(value, attained=found)

    def attained(model: Any) -> Attained:
        u = numbers_of(model.u)
        none = np.zeros(len(reduction.basis))
        moved = np.vstack([none, numbers_of(model.v) if reduction.radius else none])
        return of_coupling(reduction, numbers_of(model.weight), np.vstack([-u, u]), moved)

    return _answer(validity_upper_coupled, reduction, how, attained, is_lower=False)


def upper_moment(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Solve the moment form in all dimensions."""
    reduction = _whole(rows, given, radius)
    return _answer(validity_upper_moment, reduction, how, lambda model: of_model(reduction, model), is_lower=False)


def upper_theorem(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Solve the theorem's form."""
    return _answer(validity_upper, _whole(rows, given, radius), how, is_lower=False)


def upper_scalar(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Search for the greatest kappa of the scalar form.

    Each w found has a bound of its own, that of one counterfactual, which is never below the bound sought; the kappa of
    that bound is tried next. It rises, as bisection's does not, and ends where w keeps it.
    """
    reduction = _whole(rows, given, radius)
    # At radius 0 every kappa has the same w. Otherwise 0 has one that says something; that of 1 may have the bound 1.
    kappa = 0.0 if reduction.radius else 1.0
    value = 1.0
    for _ in range(_STEPS):
        model, result = _solved(validity_upper_scalar, reduction, how, kappa=kappa)
        if not result.solutions or result.status not in {Status.OPTIMAL, Status.FEASIBLE}:
            reason = f"{result.message} The bound is that of the last half-space.".strip()
            return SolvedForm(value, result.status, reason)
        w = np.maximum(numbers_of(model.a), 0.0) @ reduction.rows
        m = float(w @ reduction.moments.mean)
        s = math.sqrt(max(float(w @ reduction.moments.covariance @ w), 0.0))
        below, found = least_of_score(-m, s, reduction.radius * float(np.linalg.norm(w)))
        better = value - found
        value = min(value, found)
        kappa = math.sqrt(below / found) if found else math.inf
        if better <= SCALAR_GAP * value or not found:
            return SolvedForm(value)
    return SolvedForm(value, Status.FEASIBLE, f"The scalar form's search ended after {_STEPS} steps.")


LOWER: Final = {
    "auto": lower_auto,
    "theorem": lower_theorem,
    "arrow": lower_arrow,
    "dual": lower_dual,
    "nonlinear": lower_nonlinear,
}
UPPER: Final = {"auto": upper_auto, "theorem": upper_theorem, "moment": upper_moment, "scalar": upper_scalar}


# ---- inside ----------------------------------------------------------------------------------------------------------
def _whole(rows: Floats, given: Moments, radius: float) -> Reduction:
    """Return plan and moments in all dimensions, in units in which the moments are of size 1."""
    return scaled(rows, given, radius, np.eye(rows.shape[1]))


def _solved(program: Any, reduction: Reduction, how: dict[str, Any], **options: Any) -> tuple[Any, Result]:
    model = program(reduction.rows, reduction.moments.mean, reduction.moments.covariance, reduction.radius, **options)
    return model, solve(model, **how)


def _answer(
    program: Any,
    reduction: Reduction,
    how: dict[str, Any],
    attained: Callable[[Any], Attained] | None = None,
    *,
    is_lower: bool = True,
    branches: bool = False,
) -> SolvedForm:
    """Return a bound that holds: the optimum, or else what branch and bound proved, or else 0 or 1.

    Short of its optimum an interior point's dual value holds up to residuals alone, which is not to hold. ``attained``
    reads the distribution that attains the bound off the solved model.
    """
    model, result = _solved(program, reduction, how)
    value = result.objective
    reason = ""
    if result.status is not Status.OPTIMAL:
        value = result.bound if branches else None
        kind = "the trivial one" if value is None else "what it proved"
        reason = f"{result.message} The bound is {kind}.".strip()
    if value is None:
        value = 0.0 if is_lower else 1.0
    distribution = None
    if attained is not None and result.solutions:
        distribution = attained(model)
    return SolvedForm(min(max(float(value), 0.0), 1.0), result.status, reason, distribution)


# ==== Bounds on the probability that a plan is valid for uncertain parameters, over all distributions =================

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
        if self.lower_status is Status.OPTIMAL:
            return self.upper_status
        return self.lower_status

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
    limit = math.inf
    if time_limit_s is not None:
        limit = float(time_limit_s)
    elif form == "nonlinear":
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


# ==== Distributions of the parameters for which a plan is valid with the least ========================================


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExtremalDistribution(Readable):
    """Atoms, and a Gaussian for what they leave of the mass.

    Parameters
    ----------
    atoms, weights
        Shapes (k, d) and (k,).
    rest_weight, rest_mean, rest_covariance
        Of the Gaussian.
    bound
        The bound that it attains, up to 1e-7.
    status, reason
        Of that bound; see :class:`ceopt.plans.ValidityBounds`. Where there are no atoms, the reason says why.
    """

    atoms: Floats
    weights: Floats
    rest_weight: float
    rest_mean: Floats
    rest_covariance: Floats
    bound: float
    status: Status
    reason: str

    def __post_init__(self) -> None:
        frozen(self, "atoms", "weights", "rest_mean", "rest_covariance")

    @property
    def mean(self) -> Floats:
        """Mean of the whole, shape (d,)."""
        return np.asarray(self.weights @ self.atoms + self.rest_weight * self.rest_mean)

    @property
    def covariance(self) -> Floats:
        """Covariance of the whole, shape (d, d)."""
        centred = self.atoms - self.mean
        rest = self.rest_mean - self.mean
        spread = self.rest_covariance + np.outer(rest, rest)
        return np.asarray((centred.T * self.weights) @ centred + self.rest_weight * spread)

    def sample(self, n: int, random_state: int = 0) -> Floats:
        """Return n draws of the parameters, shape (n, d)."""
        Whole(at_least=1).require("sample", "n", n)
        rng = np.random.default_rng(random_state)
        shares = np.append(self.weights, self.rest_weight)
        part = rng.choice(len(shares), size=n, p=shares / shares.sum())
        drawn = np.vstack([self.atoms, self.rest_mean])[part]
        rest = part == len(self.weights)
        factor = Moments(self.rest_mean, self.rest_covariance).factor
        drawn[rest] += rng.normal(size=(int(rest.sum()), factor.shape[1])) @ factor.T
        return np.asarray(drawn)


def extremal_distribution(
    plan: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    radius: float,
    *,
    bound: Literal["lower", "upper"] = "lower",
    solver: str = "auto",
) -> ExtremalDistribution:
    r"""Return a distribution within the radius for which a bound of :func:`validity_bounds` is attained.

    For the lower bound there is one atom for each counterfactual that matters, on the hyperplane where it fails (a
    trace beyond it, so that rounding does not decide), and the rest is where none does. For the upper bound the
    favourable mass is at one atom, whose least score is 0 up to rounding. The moments of what the atoms leave are
    those of a Gaussian. Where a bound is only approached, as a lower bound of 0 with the mean on a hyperplane, the
    distribution misses it by 1e-8.

    Parameters
    ----------
    plan, mean, covariance, radius, solver
        See :func:`validity_bounds`.
    bound
        Which one is to be attained.

    Raises
    ------
    InvalidValueError, UnknownNameError, UnsupportedProblemError
        See :func:`validity_bounds`.

    References
    ----------
    Vandenberghe, Boyd & Comanor (2007), Generalized Chebyshev bounds via semidefinite programming.

    Examples
    --------
    A score of mean 2 and variance 1 is 0 with probability 1 / 5 and 5 / 2 otherwise:

    >>> from ceopt.plans import extremal_distribution
    >>> found = extremal_distribution([[1]], [2], [[1]], radius=0)
    >>> found.atoms.round(6).tolist(), found.weights.round(6).tolist(), found.rest_mean.round(6).tolist()
    ([[-0.0]], [0.2], [2.5])
    >>> float((found.sample(100000) > 0).mean().round(2))
    0.8
    """
    who = "extremal_distribution"
    check_arguments(who, {"bound": Choice(("lower", "upper")), "solver": SOLVER_NAME}, locals())
    x, given, distance = require_bound_arguments(who, plan, mean, covariance, radius)
    if bound == "lower":
        side = lower_bound(x, given, distance, partial(LOWER["auto"], solver=solver))
    else:
        side = upper_bound(x, given, distance, partial(UPPER["auto"], solver=solver))
    found = directions(x)
    rows = found.rows
    whole = side.moments(given)
    if side.attained is None:
        atoms = side.mean[None].copy()
        weights = np.ones(1)
    else:
        atoms, weights = _atoms(side.attained, whole)
    unit = float(np.sqrt(np.trace(given.second))) or 1.0
    if bound == "upper" and side.value > 0.0 and len(rows):
        atoms = np.array([nearest_valid(rows, atom) for atom in atoms]).reshape(atoms.shape)
    elif bound == "lower" and side.value < 1.0 and not found.zero.size:
        atoms = np.array([_failing(rows, atom, BESIDE_HYPERPLANE * unit) for atom in atoms]).reshape(atoms.shape)
    if not len(atoms):
        faint = f"No atom has a mass above {FAINT:g}: the distribution misses the bound by no more than that."
        side = replace(side, reason=f"{side.reason} {faint}".strip())
    return _with_rest(atoms, weights, whole, side)


def _atoms(attained: Attained, whole: Moments) -> tuple[Floats, Floats]:
    """Return the atoms of all parameters: the projection's, extended by linear prediction."""
    reduction = attained.reduction
    kept = np.flatnonzero(attained.masses[1:] > FAINT) + 1
    weights = attained.masses[kept]
    seen = reduction.unit * attained.means[kept] / weights[:, None]
    q = reduction.basis
    cross = whole.covariance @ q.T
    beyond = (cross - q.T @ (q @ cross)) @ np.linalg.pinv(q @ cross, rcond=PREDICTING_RANK, hermitian=True)
    return whole.mean + (seen - q @ whole.mean) @ (q.T + beyond).T, weights


def _failing(rows: Floats, atom: Floats, beside: float) -> Floats:
    """Return the atom, moved to where its least score is surely below 0."""
    scores = rows @ atom
    worst = int(scores.argmin())
    return np.asarray(atom - max(scores[worst] + beside, 0.0) * rows[worst])


def _with_rest(atoms: Floats, weights: Floats, whole: Moments, side: Bound) -> ExtremalDistribution:
    """Return the distribution whose Gaussian has what the atoms leave of mass, mean and second moment."""
    total = float(weights.sum())
    if total > 1.0 - LEAST_MASS:
        weights = weights * ((1.0 - LEAST_MASS) / total)
    rest = 1.0 - float(weights.sum())
    left = (whole.mean - weights @ atoms) / rest
    from_mean = atoms - whole.mean
    from_left = left - whole.mean
    spread = (whole.covariance - (from_mean.T * weights) @ from_mean) / rest - np.outer(from_left, from_left)
    values, vectors = np.linalg.eigh((spread + spread.T) / 2.0)
    return ExtremalDistribution(
        atoms=atoms,
        weights=weights,
        rest_weight=rest,
        rest_mean=left,
        rest_covariance=(vectors * np.maximum(values, 0.0)) @ vectors.T,
        bound=side.value,
        status=side.status,
        reason=side.reason,
    )


# ==== The bounds on a plan's validity over a range of radii, as a picture =============================================

_WHO: Final = "plot_validity"
_RADII: Final = Matrix((None,), "Give a list of radii, such as [0.0, 0.1, 0.2].")


def plot_validity(
    plan: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    radii: ArrayLike,
    *,
    ax: Axes | None = None,
    dark: bool = False,
    solver: str = "auto",
) -> Axes:
    """Draw the bounds on the probability that a plan is valid against the radius; matplotlib is the extra ``plot``.

    They are those of :func:`ceopt.plans.validity_bounds`, radius by radius. Where one is not proved to be the closest
    the marks are hollow.

    Parameters
    ----------
    plan, mean, covariance
        As for :func:`ceopt.plans.validity_bounds`.
    radii
        Shape (k,), each at least 0, in any order.
    ax
        Axes to draw on. By default a figure of its own, which pyplot does not know.
    dark
        Colours for a dark ground, which the figure gets.
    solver
        As for :func:`ceopt.plans.validity_bounds`.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on: its first two lines are the upper and the lower bound.

    Raises
    ------
    CeoptError
        What :func:`ceopt.plans.validity_bounds` refuses; no radii.
    MissingLibraryError
        matplotlib is not installed.

    Examples
    --------
    >>> from ceopt.plans import plot_validity
    >>> ax = plot_validity([[1, 0], [1, 1]], [2, 1], [[0.5, 0], [0, 0.5]], [0.0, 0.1])
    >>> ax.lines[1].get_xdata(), ax.lines[1].get_ydata().round(4)
    (array([0. , 0.1]), array([0.8238, 0.7867]))
    """
    from ceopt.base.libraries import require_library
    from ceopt.pictures.charts import draw_validity

    require_library(_WHO, "matplotlib")
    given = np.unique(_RADII.require(_WHO, "radii", radii))
    if not len(given):
        raise InvalidValueError(_WHO, "some radius", "radii is empty", "Give a list, such as [0.0, 0.1, 0.2].")
    found = [validity_bounds(plan, mean, covariance, float(radius), solver=solver) for radius in given]
    lower = np.array([bounds.lower for bounds in found])
    upper = np.array([bounds.upper for bounds in found])
    unproved = np.array([bounds.status is not Status.OPTIMAL for bounds in found])
    return draw_validity(_WHO, given, lower, upper, unproved, ax=ax, dark=dark)

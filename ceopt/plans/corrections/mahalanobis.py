"""The Mahalanobis correction: the counterfactuals that fail most, each moved to where it fails less."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ceopt.formulations import programs
from ceopt.formulations.digits import digits
from ceopt.formulations.programs.corrections import free_columns, require_inequalities
from ceopt.formulations.programs.moments import Moments, require_moments, require_plan
from ceopt.formulations.programs.parts import Floats
from ceopt.plans.corrections.ball import BestInReach
from ceopt.plans.results import Readable, frozen, moved_intercept
from ceopt.plans.threads import one_thread
from ceopt.plans.validity.bounds import validity_bounds
from ceopt.plans.validity.reduction import directions
from ceopt.solvers import solve
from ceopt.solvers.checks import LENGTH, Choice, Whole, check_arguments
from ceopt.solvers.registry import SOLVER_NAME
from ceopt.status import Status
from ceopt.tolerances import CORRECTION_MISSED, EQUAL_WEIGHTS, INEQUALITY_ROUNDING

__all__ = ["MahalanobisCorrection", "mahalanobis_correction"]

_CHECKS: Final = {
    "perturbation": LENGTH,
    "radius": LENGTH,
    "moments": Choice(("nominal", "worst")),
    "solver": SOLVER_NAME,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MahalanobisCorrection(Readable):
    """What :func:`mahalanobis_correction` returns.

    Parameters
    ----------
    plan
        Shape (J, d); None where there is none.
    selected
        Positions of the counterfactuals that were to be corrected, ascending.
    weights
        Shape (J,): of the lower bound of the given plan, by which they were selected.
    lower_before, lower_after
        Lower validity bounds of the given and the corrected plan; the latter None without a plan.
    selection_unique
        Whether the weights alone decide the selection. If not, ``reason`` says why.
    status
        "optimal" (each selected counterfactual is the best in its reach), "infeasible" (one of them has no point in
        reach that is favourable at the mean), or what a solver ended with.
    reason
        Sentences, or empty.
    """

    plan: Floats | None
    selected: NDArray[np.intp]
    weights: Floats
    lower_before: float
    lower_after: float | None
    selection_unique: bool
    status: Status
    reason: str = ""

    def __post_init__(self) -> None:
        frozen(self, "plan", "selected", "weights")


@one_thread
def mahalanobis_correction(
    plan: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    perturbation: float,
    n_corrected: int,
    radius: float = 0.0,
    moments: Literal["nominal", "worst"] = "nominal",
    fixed: Iterable[int] | None = None,
    inequalities: Sequence[ArrayLike] | None = None,
    solver: str = "auto",
) -> MahalanobisCorrection:
    r"""Move the counterfactuals that fail most in the worst case away from their decision boundaries.

    Those with the ``n_corrected`` greatest weights in :func:`validity_bounds` (of equal ones the first) are selected,
    the others stay. Each becomes the point within ``perturbation`` that is the most standard deviations inside:

    .. math::
        x_j' \in \operatorname{argmax} \Big\{ \frac{\mu^\top x}{\sqrt{x^\top \Sigma x}} : \lVert x - x_j \rVert \le
        \Delta,\ x_k = x_{jk} \text{ for fixed } k,\ A x \le b \Big\}.

    .. warning::
        This is the published heuristic, reported as it is: the lower bound of the plan **may fall**. It provably rises
        only for one counterfactual, radius 0 and nominal moments; compare ``lower_before`` and ``lower_after``. For
        one counterfactual :func:`robust_improvement` maximises the bound itself.

    The optimum is found without a solver where the best point in the ball satisfies the inequalities, to about 1e-9,
    and otherwise, or where a solver is named, as that of ``programs.mahalanobis_correction``, to its tolerance. Of the
    multiples of a best point it is the one next to where the counterfactual was.

    Parameters
    ----------
    plan
        Shape (J, d): one counterfactual a row. With an intercept, the last column is 1.
    mean, covariance
        Of the parameters, shapes (d,) and (d, d).
    perturbation
        Greatest Euclidean distance of each from where it was, in units of the columns; at least 0.
    n_corrected
        How many may move, 0 to J.
    radius
        Gelbrich distance, not squared, of the bounds that weigh and judge; at least 0.
    moments
        Which :math:`\mu, \Sigma` the moves are made for: the given ones, or the worst ones of the lower bound.
    fixed
        Places of columns that may not move; with an intercept, ``[-1]``.
    inequalities
        A pair (A, b) of shapes (k, d) and (k,): every selected counterfactual shall have A x <= b.
    solver
        Of the second-order cone programs; a name has all corrections solved by it. The bounds are left to "auto".

    Raises
    ------
    InvalidValueError, InvalidTypeError
        Shapes that disagree, NaN or an infinity, a covariance that is none, a plan without rows, a negative
        perturbation or radius, a count out of range, a place that is no column.
    UnknownNameError
        There are no such moments, or no such solver.
    UnsupportedProblemError
        The solver does not take the cones.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, theorem 3.1.

    Examples
    --------
    >>> from ceopt.plans import mahalanobis_correction
    >>> found = mahalanobis_correction(
    ...     [[1, 0], [1, 1]], [2, 1], [[0.5, 0], [0, 0.5]], perturbation=0.5, n_corrected=1, radius=0.1
    ... )
    >>> found.selected.tolist(), found.plan.round(4).tolist()
    ([0], [[0.8, 0.4], [1.0, 1.0]])
    >>> round(found.lower_before, 4), round(found.lower_after, 4)
    (0.7867, 0.8452)
    """
    who = "mahalanobis_correction"
    given = require_moments(who, mean, covariance)
    d = len(given.mean)
    x = require_plan(who, plan, d=d)
    check_arguments(who, _CHECKS, locals())
    Whole(0, len(x)).require(who, "n_corrected", n_corrected)
    free = free_columns(who, fixed, d)
    sides = require_inequalities(who, inequalities, d)

    before = validity_bounds(x, given.mean, given.covariance, radius)
    selected, arbitrary = _selected(x, before.lower, before.weights, int(n_corrected))
    used = given if moments == "nominal" else Moments(*before.worst)
    search = _PointSearch(used, BestInReach(used, 0.0, free), float(perturbation), free, sides, solver)
    corrected = x.copy()
    status = Status.OPTIMAL
    reason = arbitrary
    for j in selected.tolist():
        found, status, problem = search.best(x[j])
        if found is None:
            reason = f"Counterfactual {j}: {problem}" + (f" {arbitrary}" if arbitrary else "")
            break
        corrected[j] = found
    is_whole = status is Status.OPTIMAL
    after = validity_bounds(corrected, given.mean, given.covariance, radius).lower if is_whole else None
    return MahalanobisCorrection(
        plan=corrected if is_whole else None,
        selected=selected,
        weights=before.weights,
        lower_before=before.lower,
        lower_after=after,
        selection_unique=not arbitrary,
        status=status,
        reason=" ".join(filter(None, (reason, moved_intercept(x, corrected) if is_whole else ""))),
    )


def _selected(x: Floats, lower: float, weights: Floats, k: int) -> tuple[NDArray[np.intp], str]:
    """Return the positions of the k greatest weights, of equal ones the first, and why they are arbitrary, if so."""
    order = sorted(range(len(x)), key=lambda j: (-round(float(weights[j]) / EQUAL_WEIGHTS), j))
    selected = np.array(sorted(order[:k]), dtype=np.intp)
    if k in {0, len(x)}:
        return selected, ""
    if lower <= 0.0:
        return selected, "The lower bound is 0, where the weights are not unique, so the selection is arbitrary."
    first = directions(x)
    if len(first.rows) < len(x):
        return selected, "Counterfactuals repeat a direction and share its weight, so the selection is arbitrary."
    if weights[order[k - 1]] - weights[order[k]] <= EQUAL_WEIGHTS:
        but = f"Counterfactuals {order[k - 1]} and {order[k]} have equal weights, so the selection is arbitrary."
        return selected, but
    return selected, ""


@final
@dataclass(frozen=True, slots=True, eq=False)
class _PointSearch:
    """The best point in reach of one counterfactual: without a solver if it can be."""

    moments: Moments
    ball: BestInReach
    reach: float
    free: NDArray[np.bool_]
    sides: tuple[Floats, Floats]
    solver: str

    def best(self, x: Floats) -> tuple[Floats | None, Status, str]:
        """Return the point, the status, and why there is none."""
        found = self.ball.best(x, self.reach)
        if found is None:
            return None, Status.INFEASIBLE, f"no point within {digits(self.reach)} has a positive score at the mean."
        if self.solver == "auto" and self._is_inside(found[0]):
            return found[0], Status.OPTIMAL, ""
        return self._solved(x)

    def _is_inside(self, x: Floats, tolerance: float = INEQUALITY_ROUNDING) -> bool:
        matrix, right = self.sides
        return bool((matrix @ x - right <= tolerance * (np.abs(matrix) @ np.abs(x) + np.abs(right))).all())

    def _solved(self, x: Floats) -> tuple[Floats | None, Status, str]:
        unit = float(np.abs(self.moments.mean).max()) or 1.0  # the point is the same in any unit of the parameters
        model = programs.mahalanobis_correction(
            x,
            self.moments.mean / unit,
            self.moments.covariance / unit**2,
            perturbation=self.reach,
            fixed=np.flatnonzero(~self.free).tolist(),
            inequalities=self.sides,
        )
        result = solve(model, self.solver, relative_gap=1e-9)
        if result.status.value == "infeasible":
            within = f"no point within {digits(self.reach)} that satisfies the inequalities"
            return None, Status.INFEASIBLE, f"{within} has a positive score at the mean."
        if result.status.value != "optimal":
            status = Status.TIME_LIMIT if result.status.value == "time_limit" else Status.ERROR
            return None, status, f"the solver ended with {result.status.value!r}. {result.message}".strip()
        point = np.array([model.v[k].value for k in range(len(x))]) / model.t.value
        point = np.where(self.free, point, x)
        allowed = self.reach + CORRECTION_MISSED * max(self.reach, float(np.linalg.norm(x)))
        if float(np.linalg.norm(point - x)) > allowed or not self._is_inside(point, CORRECTION_MISSED):
            return None, Status.REJECTED, "the solver's point is out of reach or breaks an inequality."
        return point, Status.OPTIMAL, ""

"""The requirement correction: the nearest plan that is favourable at the mean parameters, in closed form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ceopt.formulations.programs.corrections import free_columns
from ceopt.formulations.programs.moments import require_mean, require_plan
from ceopt.formulations.programs.parts import Floats
from ceopt.plans.results import Readable, frozen, moved_intercept
from ceopt.solvers.checks import LENGTH
from ceopt.status import Status
from ceopt.tolerances import ENTRY_NOISE

__all__ = ["RequirementCorrection", "requirement_correction"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RequirementCorrection(Readable):
    """What :func:`requirement_correction` returns.

    Parameters
    ----------
    plan
        Shape (J, d); None where there is none.
    changed
        Shape (J,): which counterfactuals were below the margin and moved; none where there is no plan.
    status
        "optimal", or "infeasible": no move of the free columns reaches the margin.
    reason
        One sentence, or empty.
    """

    plan: Floats | None
    changed: NDArray[np.bool_]
    status: Status
    reason: str = ""

    def __post_init__(self) -> None:
        frozen(self, "plan", "changed")


def requirement_correction(
    plan: ArrayLike, mean: ArrayLike, margin: float = 0.0, *, fixed: Iterable[int] | None = None
) -> RequirementCorrection:
    r"""Move each counterfactual as little as possible to where its score at the mean parameters is at least ``margin``.

    .. math::
        x_j' = \operatorname{argmin} \{ \lVert x - x_j \rVert : \hat\mu^\top x \ge \varepsilon,\ x_k = x_{jk}
        \text{ for fixed } k \} = x_j + \max(0, \varepsilon - \hat\mu^\top x_j)\,
        \hat\mu_f / \lVert \hat\mu_f \rVert^2,

    where f are the free columns. It is the optimum of ``programs.requirement_correction`` up to rounding. Afterwards
    the upper validity bound is 1; with a margin above 0 the mean is inside, yet the lower bound may still be 0.

    Parameters
    ----------
    plan
        Shape (J, d): one counterfactual a row. With an intercept, the last column is 1.
    mean
        Of the parameters, shape (d,).
    margin
        In units of the score, at least 0.
    fixed
        Places of columns that may not move; with an intercept, ``[-1]``.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        Shapes that disagree, NaN or an infinity, a plan without rows, a negative margin, a place that is no column.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, section 3.1.

    Examples
    --------
    >>> from ceopt.plans import requirement_correction
    >>> corrected = requirement_correction([[-2, 1], [1, 3]], mean=[2, 1], margin=1)
    >>> corrected.plan.tolist(), corrected.changed.tolist()
    ([[-0.3999999999999999, 1.8], [1.0, 3.0]], [True, False])
    >>> requirement_correction([[-2, 1]], mean=[1, 0], fixed=[0]).reason
    'Counterfactual 0 is below the margin, and the mean is 0 in all columns that may move.'
    """
    who = "requirement_correction"
    given = require_plan(who, plan)
    m = require_mean(who, mean, d=given.shape[1])
    LENGTH.require(who, "margin", margin)
    free = free_columns(who, fixed, len(m))
    missing = margin - given @ m
    below = missing > 0.0
    if not below.any():
        return RequirementCorrection(plan=given.copy(), changed=below, status=Status.OPTIMAL)
    normal = np.where(free, m, 0.0)
    size = float(np.abs(normal).max(initial=0.0))
    if not size:
        where = "and the mean is 0 in all columns that may move" if free.any() else "and no column may move"
        reason = f"Counterfactual {int(below.argmax())} is below the margin, {where}."
        return RequirementCorrection(plan=None, changed=np.zeros_like(below), status=Status.INFEASIBLE, reason=reason)
    unit = normal / size  # the squares of very small numbers would be 0
    moves = np.where(below, missing, 0.0)[:, None] / size * (unit / (unit @ unit))
    plan = given + moves
    plan[(moves != 0.0) & (np.abs(plan) <= ENTRY_NOISE * np.abs(given))] = 0.0
    return RequirementCorrection(plan=plan, changed=below, status=Status.OPTIMAL, reason=moved_intercept(given, plan))

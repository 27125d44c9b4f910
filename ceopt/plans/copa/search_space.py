"""The search space of a COPA plan: an objective, a region and a margin, and the projection onto the latter two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from ceopt.formulations.programs.parts import Floats, Region
from ceopt.plans.copa.terms import Terms
from ceopt.plans.projection import project
from ceopt.tolerances import MARGIN_MISSED

__all__ = ["PlanSearch", "reach_of"]

_TANGENTS: Final = 10  # projections onto the tangent of a curved margin


@final
@dataclass(frozen=True, slots=True, eq=False)
class PlanSearch:
    """What is searched.

    Parameters
    ----------
    terms
        The objective.
    region
        Where each counterfactual may lie.
    margin
        Least score of each under the mean.
    n
        How many counterfactuals the plan has.
    """

    terms: Terms
    region: Region
    margin: float
    n: int

    def onto(self, plans: Floats, lower: Floats | None = None, upper: Floats | None = None) -> Floats:
        """Return the nearest plans that may be, of shape (S, J, d); ``lower``, ``upper`` of plans with categories."""
        groups = self.region.groups if lower is None else ()
        low = np.broadcast_to(self.region.lower if lower is None else lower, plans.shape).reshape(-1, plans.shape[-1])
        high = np.broadcast_to(self.region.upper if upper is None else upper, plans.shape).reshape(low.shape)
        return self.rows_onto(plans.reshape(low.shape), low, high, groups).reshape(plans.shape)

    def rows_onto(self, rows: Floats, low: Floats, high: Floats, groups: tuple[tuple[int, ...], ...]) -> Floats:
        """Return the nearest counterfactuals in boxes that meet the margin, shape (R, d).

        A feature map makes the margin curved: it is met by a few projections onto its tangent.
        """
        mean = self.terms.moments.mean
        if self.terms.feature_map is None:
            return project(rows, low, high, groups=groups, normal=mean, least=self.margin)
        found = project(rows, low, high, groups=groups)
        for _ in range(_TANGENTS):
            score = self.terms.features(found[:, None])[:, 0] @ mean
            missed = np.flatnonzero(score < self.margin)
            if not missed.size:
                break
            some = found[missed]
            normal = self.terms.pulled_back(some, np.broadcast_to(mean, (len(some), len(mean))))
            least = self.margin - score[missed] + (normal * some).sum(axis=1)
            reach = reach_of(low[missed], high[missed], groups, normal)
            found[missed] = project(
                some, low[missed], high[missed], groups=groups, normal=normal, least=np.minimum(least, reach)
            )
        return found

    def held(self, plan: Floats) -> tuple[Floats, Floats]:
        """Return bounds, shape (J, d), of plans with the categories of this one."""
        lower, upper = (np.array(np.broadcast_to(side, plan.shape)) for side in (self.region.lower, self.region.upper))
        columns = self.region.binary
        lower[:, columns] = upper[:, columns] = np.round(plan[:, columns])
        return lower, upper

    def met(self, plans: Floats) -> Any:
        """Return whether each plan meets the margin, shape (S,)."""
        if self.terms.feature_map is None:
            return np.ones(len(plans), dtype=bool)
        scores = self.terms.features(plans) @ self.terms.moments.mean
        return (scores >= self.margin - MARGIN_MISSED * (1.0 + self.margin)).all(axis=-1)


def reach_of(low: Floats, high: Floats, groups: tuple[tuple[int, ...], ...], normal: Floats) -> Floats:
    """Return the greatest score of each box, shape (R,)."""
    at = np.where(normal > 0, high, low)
    with np.errstate(invalid="ignore"):
        each = np.where(normal == 0.0, 0.0, normal * at)
    for group in groups:
        each[:, list(group)] = 0.0
    total = each.sum(axis=1)
    for group in groups:
        total = total + normal[:, list(group)].max(axis=1)
    return np.asarray(total)

"""Where a COPA plan is searched: its terms with their slopes, and the projection onto region and margin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np

from ceopt.formulations.programs.copa import greatest_ratio
from ceopt.formulations.programs.moments import Moments
from ceopt.formulations.programs.parts import Distance, PointRegion
from ceopt.solvers.checks import Floats
from ceopt.solvers.deadline import checkpoint
from ceopt.tolerances import MARGIN_MISSED, PROJECTION_ROUNDING, STILL_SCORE

# ==== The three terms of the COPA problem and their slopes, for many plans at once ====================================

FeatureMap: TypeAlias = tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    r"""Proximity, validity value and diversity of plans, arrays of shape (..., J, d).

    Parameters
    ----------
    factual
        Shape (d,).
    moments
        Of the parameters, one for each column, or for each feature of the map.
    distance
        Within the plan and to the factual.
    validity_weight, diversity_weight
        :math:`\lambda_1` and :math:`\lambda_2`.
    feature_map
        What the classifier sees of a counterfactual, and its Jacobian; None: the counterfactual itself.
    """

    factual: Floats
    moments: Moments
    distance: Distance
    validity_weight: float
    diversity_weight: float
    feature_map: FeatureMap | None = None
    factor: Floats = field(init=False)
    cap: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", self.moments.factor)
        object.__setattr__(self, "cap", greatest_ratio(self.moments))

    def features(self, plans: Floats) -> Floats:
        """Return what the classifier sees, shape (..., J, D)."""
        if self.feature_map is None:
            return plans
        rows = plans.reshape(-1, plans.shape[-1])
        seen = []
        for row in rows:
            checkpoint("asking the feature map")
            seen.append(self.feature_map[0](row))
        return np.array(seen, dtype=np.float64).reshape(*plans.shape[:-1], len(self.moments.mean))

    def pulled_back(self, plans: Floats, slopes: Floats) -> Floats:
        """Return slopes in the features as slopes in the plans."""
        if self.feature_map is None:
            return slopes
        rows = plans.reshape(-1, plans.shape[-1])
        along = slopes.reshape(-1, slopes.shape[-1])
        pulled = []
        for row, slope in zip(rows, along, strict=True):
            checkpoint("asking the feature map")
            pulled.append(np.asarray(self.feature_map[1](row)).T @ slope)
        return np.array(pulled, dtype=np.float64).reshape(plans.shape)

    # -- the terms -----------------------------------------------------------------------------------------------------
    def proximity(self, plans: Floats) -> Floats:
        """Return the mean distance from the factual, shape (...)."""
        return np.asarray(self.distance.of(plans - self.factual).mean(axis=-1))

    def ratios(self, plans: Floats) -> Floats:
        """Return the validity value of each single counterfactual, shape (..., J): infinite without variance."""
        return self._ratios(self.features(plans))[0]

    def kernel(self, plans: Floats) -> Floats:
        """Return ``1 / (1 + distance)`` of each pair, shape (..., J, J)."""
        return 1.0 / (1.0 + self.distance.of(plans[..., :, None, :] - plans[..., None, :, :]))

    def diversity(self, plans: Floats) -> Floats:
        """Return the determinant of the kernel, shape (...)."""
        return np.asarray(np.linalg.det(self.kernel(plans)))

    def value(self, plans: Floats) -> Floats:
        """Return the objective, the validity value at most what it can be of counterfactuals with variance."""
        total: Floats = self.proximity(plans)
        if self.validity_weight:
            total = total - self.validity_weight * np.minimum(self.ratios(plans).min(axis=-1), self.cap)
        if self.diversity_weight:
            total = total - self.diversity_weight * self.diversity(plans)
        return total

    # -- slopes --------------------------------------------------------------------------------------------------------
    def slope(self, plans: Floats, softness: float = 0.0) -> Floats:
        r"""Return the gradient of the objective, shape (..., J, d); a subgradient where it has none.

        With a softness :math:`\tau` the least ratio is :math:`-\tau \log \sum_j e^{-r_j / \tau}` instead, so that
        several counterfactuals move where one alone would overtake another at each step.
        """
        moved = plans - self.factual
        total: Floats = self.distance.slope(moved, self.distance.of(moved)) / plans.shape[-2]
        if self.validity_weight:
            total = total - self.validity_weight * self._validity_slope(plans, softness)
        if self.diversity_weight and plans.shape[-2] > 1:
            total = total - self.diversity_weight * self._diversity_slope(plans)
        return total

    def _ratios(self, seen: Floats) -> tuple[Floats, Floats, Floats]:
        """Return ratios, standard deviations (infinite where there is none), and ``features @ F``."""
        spread = seen @ self.factor
        size = np.linalg.norm(spread, axis=-1)
        score = seen @ self.moments.mean
        is_still = size <= STILL_SCORE * np.linalg.norm(self.factor) * np.linalg.norm(seen, axis=-1)
        size = np.where(is_still, np.inf, size)
        return np.where(is_still, np.where(score >= 0.0, np.inf, -np.inf), score / size), size, spread

    def _validity_slope(self, plans: Floats, softness: float) -> Floats:
        ratio, size, spread = self._ratios(self.features(plans))
        each = self.moments.mean - (np.where(np.isfinite(ratio), ratio, 0.0) / size)[..., None] * (
            spread @ self.factor.T
        )
        each = each / size[..., None]
        return self.pulled_back(plans, each * _weights(ratio, softness)[..., None])

    def _diversity_slope(self, plans: Floats) -> Floats:
        moved = plans[..., :, None, :] - plans[..., None, :, :]
        distance = self.distance.of(moved)
        kernel = 1.0 / (1.0 + distance)
        along = -2.0 * _adjugate(kernel) * kernel**2
        return np.asarray(np.einsum("...ij,...ijk->...ik", along, self.distance.slope(moved, distance)))


def _weights(ratio: Floats, softness: float) -> Floats:
    """Return how much each counterfactual counts in the least ratio: 1 for the first least one, if not softened."""
    if softness <= 0.0:
        return np.asarray(np.arange(ratio.shape[-1]) == ratio.argmin(axis=-1)[..., None], dtype=np.float64)
    least = ratio.min(axis=-1, keepdims=True)
    apart = np.where(np.isfinite(least), ratio - np.where(np.isfinite(least), least, 0.0), 0.0)
    weights = np.exp(-apart / softness)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _adjugate(kernel: Floats) -> Floats:
    """Return the adjugates of symmetric matrices, singular ones too: by eigenvalues, each left out of the product."""
    values, vectors = np.linalg.eigh(kernel)
    n = values.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1.0, values[..., None, :]).prod(axis=-1)
    return np.asarray((vectors * others[..., None, :]) @ np.swapaxes(vectors, -1, -2))


# ==== The nearest point of a box with one-hot columns that meets a least score: exact, for many points at once ========

_STEPS = 100


def project(
    points: Floats,
    lower: Floats,
    upper: Floats,
    *,
    groups: tuple[tuple[int, ...], ...] = (),
    normal: Floats | None = None,
    least: Floats | float = 0.0,
) -> Floats:
    r"""Return the nearest points of a box, with groups that add up to 1, and with ``normal @ x >= least``.

    A point that misses the score moves by :math:`\nu \hat\mu` before it is put into the box and the simplices, for the
    least :math:`\nu \ge 0` that meets it (the multiplier of the half-space). The score is piecewise linear and does not
    fall in :math:`\nu`, so that Newton's steps within a bracket end on it. To clip after a projection onto the
    half-space, as is often done, may leave it again.

    Parameters
    ----------
    points
        Shape (R, d).
    lower, upper
        Of shape (d,) or (R, d); columns of groups are in [0, 1].
    groups
        Columns that are at least 0 and add up to 1.
    normal
        Shape (d,) or (R, d); None for no half-space. Some point of the box must meet the score.
    least
        The score, one number or shape (R,).
    """
    box = _Box(np.broadcast_to(lower, points.shape), np.broadcast_to(upper, points.shape), groups)
    moved = box.onto(points)
    if normal is None:
        return moved
    normal = np.broadcast_to(normal, points.shape)
    least = np.broadcast_to(np.asarray(least, dtype=np.float64), len(points))
    rows = np.flatnonzero((moved * normal).sum(axis=1) < least)
    if rows.size:
        some = _Box(box.lower[rows], box.upper[rows], groups)
        moved[rows] = _raised(points[rows], some, normal[rows], least[rows])
    return moved


class _Box(NamedTuple):
    """A box for each point, with groups that add up to 1."""

    lower: Floats
    upper: Floats
    groups: tuple[tuple[int, ...], ...]

    def onto(self, points: Floats) -> Floats:
        """Return the nearest points."""
        found = np.clip(points, self.lower, self.upper)
        for group in self.groups:
            columns = list(group)
            found[:, columns] = _simplex(points[:, columns])
        return found

    def rise(self, found: Floats, points: Floats, normal: Floats) -> Floats:
        """Return how fast the scores of the nearest points ``found`` rise as ``points`` move along ``normal``."""
        interior = (points > self.lower) & (points < self.upper)
        for group in self.groups:
            interior[:, list(group)] = False
        total = (normal**2 * interior).sum(axis=1)
        for group in self.groups:
            columns = list(group)
            active = found[:, columns] > 0.0
            inside = normal[:, columns] * active
            total = total + (inside**2).sum(axis=1) - inside.sum(axis=1) ** 2 / np.maximum(active.sum(axis=1), 1)
        return np.asarray(total)


def _raised(points: Floats, box: _Box, normal: Floats, least: Floats) -> Floats:
    """Return the projections of points that miss their score; beyond it by rounding, so that they do not miss it."""
    free = (box.upper > box.lower).astype(np.float64)
    unit = 1.0 / np.maximum((normal**2 * free).sum(axis=1), 1e-300)
    low = np.zeros(len(points))
    high = np.full(len(points), np.inf)
    nu = np.zeros(len(points))
    found = points
    for step in range(_STEPS):
        moved = points + nu[:, None] * normal
        found = box.onto(moved)
        parts = found * normal
        rounding = PROJECTION_ROUNDING * (np.abs(least) + np.abs(parts).sum(axis=1))
        missing = least + rounding - parts.sum(axis=1)
        is_met = np.abs(missing) <= rounding / 2.0
        if is_met.all() or (step > _STEPS // 2 and (missing <= 2.0 * rounding).all()):
            break
        low = np.where(missing > 0, nu, low)
        high = np.where(missing > 0, high, nu)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = nu + missing / box.rise(found, moved, normal)
            between = np.where(np.isfinite(high), (low + high) / 2.0, 2.0 * low + unit * np.abs(missing))
        nu = np.where(is_met, nu, np.where((newton > low) & (newton < high), newton, between))
    return found


def _simplex(points: Floats) -> Floats:
    """Return the nearest points with entries that are at least 0 and add up to 1."""
    points = points - points.max(axis=1, keepdims=True)  # so that large ones lose no digits
    ordered = -np.sort(-points, axis=1)
    over = (ordered.cumsum(axis=1) - 1.0) / np.arange(1, points.shape[1] + 1)
    count = (ordered > over).sum(axis=1)
    shift = over[np.arange(len(points)), count - 1]
    return np.asarray(np.clip(points - shift[:, None], 0.0, 1.0))


# ==== The search space of a COPA plan: an objective, a region and a margin, and the projection onto the latter two ====

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
    region: PointRegion
    margin: float
    n: int

    def onto(self, plans: Floats, lower: Floats | None = None, upper: Floats | None = None) -> Floats:
        """Return the nearest plans that may be, of shape (S, J, d); ``lower``, ``upper`` of plans with categories."""
        groups: tuple[tuple[int, ...], ...] = ()
        if lower is None or upper is None:
            groups = self.region.groups
            lower = self.region.lower
            upper = self.region.upper
        low = np.broadcast_to(lower, plans.shape).reshape(-1, plans.shape[-1])
        high = np.broadcast_to(upper, plans.shape).reshape(low.shape)
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

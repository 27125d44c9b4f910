"""The three terms of the COPA problem and their slopes, for many plans at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, final

import numpy as np

from ceopt.formulations.programs.copa import greatest_ratio
from ceopt.formulations.programs.moments import Moments
from ceopt.formulations.programs.parts import Distance, Floats
from ceopt.solvers.deadline import checkpoint
from ceopt.tolerances import STILL_SCORE

__all__ = ["FeatureMap", "Terms"]

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
        back = []
        for row, slope in zip(rows, along, strict=True):
            checkpoint("asking the feature map")
            back.append(np.asarray(self.feature_map[1](row)).T @ slope)
        return np.array(back, dtype=np.float64).reshape(plans.shape)

    # -- the terms -----------------------------------------------------------------------------------------------------
    def proximity(self, plans: Floats) -> Floats:
        """Return the mean distance from the factual, shape (...)."""
        return np.asarray(self.distance.of(plans - self.factual).mean(axis=-1))

    def ratios(self, plans: Floats) -> Floats:
        """Return the validity value of each counterfactual alone, shape (..., J): infinite without variance."""
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
        seen = self.features(plans)
        ratio, size, spread = self._ratios(seen)
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

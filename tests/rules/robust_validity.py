"""RobustValidity: the closed form as an angle, phi = atan2(s, m) + asin(r / R) and L = cos(phi)^2 where phi < pi / 2.

The rule of the examples is about a linear model of its own, so that it goes with every other model.
"""

from __future__ import annotations

from typing import Any

import enumeration as by_hand
import numpy as np
from hypothesis import assume, currently_in_test_context
from hypothesis import strategies as st

from ceopt.formulations.constraints import RobustValidity
from ceopt.formulations.predictors import Affine

#: Over the columns as numbers: text by its rank, a category as the number it is.
MODEL = Affine([1.0, 2.0, 0.5, -0.1, 1.5, 0.25], -1.0, labels=("no", "yes"))
MEAN = np.array([1.03, 2.11, 0.47, -0.09, 1.57, 0.23, -1.07])
SPREAD = np.array([0.21, 0.43, 0.17, 0.013, 0.51, 0.11, 0.31])
COVARIANCE = np.diag(SPREAD**2) + 0.019 * np.outer(SPREAD, SPREAD[::-1]) + 0.019 * np.outer(SPREAD[::-1], SPREAD)


def examples() -> list[Any]:
    return [
        RobustValidity(MEAN, COVARIANCE, 0.0, 0.8, model=MODEL),
        RobustValidity(MEAN, COVARIANCE, 0.0173, 0.55, model=MODEL, name="robust"),
        RobustValidity(MEAN, 0.0 * COVARIANCE, 0.0419, 0.61, model=MODEL),
        RobustValidity(MEAN - [0, 0, 0, 0, 0, 0, 1.1313], 0.0 * COVARIANCE, 0, 1, model=MODEL),
    ]


@st.composite
def drawn(draw: Any, space: Any, factual: Any) -> Any:
    ways = [draw(st.sampled_from([1.0, 1.0, -0.57, 0.0])) for _ in range(6)]
    turned = np.append(MEAN[:6] * ways, draw(st.sampled_from([-1.07, 0.53, 1.91])))
    radius = draw(st.sampled_from([0.0, 0.0, 0.0113, 0.0371]))
    return RobustValidity(
        turned, draw(st.sampled_from([0.0, 0.31, 1.0])) * COVARIANCE, radius,
        draw(st.sampled_from([0.0, 0.37, 0.62, 0.83])), model=MODEL,
    )  # fmt: skip


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    x = np.column_stack([by_hand.identity(space, np.asarray(points)), np.ones(len(points))])
    mean, covariance = np.asarray(rule.mean, dtype=float), np.asarray(rule.covariance, dtype=float)
    m, s = x @ mean, np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", x, covariance, x), 0.0))
    share = rule.radius * np.linalg.norm(x, axis=1) / np.maximum(np.hypot(m, s), 1e-300)
    angle = np.arctan2(s, m) + np.arcsin(np.minimum(share, 1.0))
    bound = np.where((m > 0.0) & (share < 1.0) & (angle < np.pi / 2), np.cos(angle) ** 2, 0.0)
    near = np.abs(m) if rule.level == 1.0 else np.abs(bound - rule.level)
    is_clear = rule.level == 0.0 or near.min(initial=1.0) > 1e-6
    if currently_in_test_context():
        assume(is_clear)
    assert is_clear, "a point at the level itself, where rounding decides"
    return bound >= rule.level - 1e-9

"""RobustToShift: interval arithmetic over the box, each product by its four corners.

The rule of the examples is about a model of its own, so that it goes with every other model.
"""

from __future__ import annotations

from typing import Any

import enumeration as by_hand
import numpy as np
from hypothesis import assume, currently_in_test_context
from hypothesis import strategies as st

from ceopt.formulations.constraints import RobustToShift
from ceopt.formulations.predictors import Affine, ReluNetwork
from ceopt.formulations.targets import AtLeast, AtMost, Between, OtherThan, Probability

#: Over the columns as numbers: text by its rank, a category as the number it is.
LINEAR = Affine([1.0, 2.0, 0.5, -0.1, 1.5, 0.25], -1.013, labels=("no", "yes"), probability="logistic")
FIRST = [[1.0, 1.0, 0.5, 0.0, 1.0, 0.5], [-1.0, 2.0, 0.0, 0.05, -0.5, 0.0], [0.5, -1.0, 2.0, -0.1, 0.0, 0.0]]
ONE = ReluNetwork([FIRST, [[1.0, 1.5, -0.5]]], [[-1.0, 0.5, 1.5], [-1.713]], labels=("no", "yes"))
TWO = ReluNetwork(
    [FIRST, [[1.0, 0.25, -1.0], [-1.0, 1.5, 1.0]], [[1.0, 1.5]]], [[-1.0, 0.5, -1.5], [-0.5, 0.25], [0.0]]
)
CLASSES = ReluNetwork(
    [FIRST, [[1.0, -1.0, 0.0], [0.0, 1.0, -0.5], [-0.5, 0.5, 1.0]]], [[-1.0, 0.5, 1.5], [-1.117, 0.313, 0.0]],
    labels=("low", "mid", "high"),
)  # fmt: skip
ASKED: list[tuple[Any, Any]] = [
    (LINEAR, "yes"), (LINEAR, Probability("yes", 0.613)), (LINEAR, "no"), (ONE, "yes"), (ONE, {"no"}),
    (TWO, AtLeast(1.713)), (TWO, AtMost(5.171)), (TWO, Between(1.139, 7.119)),
    (CLASSES, "high"), (CLASSES, OtherThan("low")),
]  # fmt: skip


def examples() -> list[Any]:
    return [
        RobustToShift(0.0213, model=LINEAR, target="yes"),
        RobustToShift(0.0117, "both layers move", model=ONE, target="yes"),
        RobustToShift(0.0061, model=TWO, target=Between(1.139, 7.119)),
        RobustToShift(0.0093, model=CLASSES, target=OtherThan("low")),
        RobustToShift(0, model=TWO, target=AtLeast(2.713)),
    ]


@st.composite
def drawn(draw: Any, space: Any, factual: Any) -> Any:
    model, target = draw(st.sampled_from(ASKED))
    return RobustToShift(draw(st.sampled_from([0.0, 0.0031, 0.0117, 0.0371])), model=model, target=target)


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    slack = least_slack(rule.model, rule.target, rule.delta, by_hand.identity(space, np.asarray(points)))
    is_clear = np.abs(slack).min(initial=1.0) > 1e-4
    if currently_in_test_context():
        assume(is_clear)
    assert is_clear, "a point at the level itself, where the margin decides"
    return slack > 0.0


def least_slack(model: Any, target: Any, delta: float, seen: Any) -> Any:
    """Return by how much every network of the box meets the target at rows (n, m), by interval arithmetic."""
    low = high = np.asarray(seen, dtype=float)
    *hidden, (weights, biases) = model.layers
    for w, b in hidden:
        low, high = ends(w - delta, w + delta, low, high)
        low, high = np.maximum(low + b - delta, 0.0), np.maximum(high + b + delta, 0.0)

    def least(by: Any) -> Any:
        """The least of a sum of the scores."""
        by, moves = np.asarray(by, dtype=float), delta * np.abs(by).sum()
        return (
            ends((by @ weights - moves)[None], (by @ weights + moves)[None], low, high)[0][:, 0] + by @ biases - moves
        )

    match target:
        case AtLeast():
            return least([1.0]) - target.value
        case AtMost():
            return least([-1.0]) + target.value
        case Between():
            return np.minimum(least([1.0]) - target.low, least([-1.0]) + target.high)
        case Probability():
            return least([1.0]) - np.log(target.at_least / (1.0 - target.at_least))
    labels = list(model.labels)
    wanted = {target} if isinstance(target, str) else target
    if isinstance(target, OtherThan):
        wanted = set(labels) - {target.label}
    if len(biases) == 1:
        return least([1.0 if "yes" in wanted else -1.0])
    unit = np.eye(len(labels))
    others = [k for k, label in enumerate(labels) if label not in wanted]
    each = [np.min([least(unit[labels.index(t)] - unit[k]) for k in others], axis=0) for t in sorted(wanted)]
    return np.max(each, axis=0)


def ends(least: Any, greatest: Any, low: Any, high: Any) -> Any:
    """Return the least and greatest of ``w @ h`` for w (k, m) and h (n, m) between their ends, (n, k) each."""
    corners = np.stack([w[None] * h[:, None] for w in (least, greatest) for h in (low, high)])
    return corners.min(axis=0).sum(axis=2), corners.max(axis=0).sum(axis=2)

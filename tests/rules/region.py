"""Region: every legal point near another is asked of the model, one after the other.

The rule of the examples is about a model of its own, so that it goes with every other model. Of a linear model the
worst point of a column without steps is an end, of trees an end or beside a threshold.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import enumeration as by_hand
import numpy as np
from hypothesis import strategies as st

from ceopt.formulations.constraints import Region
from ceopt.formulations.predictors import Affine, TreeEnsemble

#: Over the columns as numbers: text by its rank, a category as the number it is.
LINEAR = Affine([1.0, 2.0, 0.5, -0.1, 1.5, 0.25], -1.13, labels=("no", "yes"))
THRESHOLDS = {"age": (1.5, 2.5), "wage": (0.25, 0.75)}
TREE = TreeEnsemble(
    [
        {
            "feature": 0,
            "threshold": 1.5,
            "left": {"feature": 1, "threshold": 0.25, "left": {"value": -1.0}, "right": {"value": 0.5}},
            "right": {
                "feature": 3,
                "threshold": 15.0,
                "left": {"feature": 1, "threshold": 0.75, "left": {"value": 0.7}, "right": {"value": -0.3}},
                "right": {"feature": 0, "threshold": 2.5, "left": {"value": 1.0}, "right": {"value": 0.2}},
            },
        }
    ],
    n_inputs=6,
    labels=("no", "yes"),
)
WIDTHS = {"age": 1.0, "wage": 0.5}


def examples() -> list[Any]:
    return [
        Region(1.0, scale=WIDTHS, model=LINEAR, target="yes"),
        Region(1.0, scale={"age": 0.4, "wage": 0.5}, columns=("wage",), model=TREE, target="yes", name="near"),
        Region(1.2, norm="l2", scale=WIDTHS, model=LINEAR, target="yes"),
        Region(1.0, scale=WIDTHS, model=TREE, target="yes"),
        Region(0.0, scale=WIDTHS, model=TREE, target="no", exact=True),
    ]


@st.composite
def drawn(draw: Any, space: Any, factual: Any) -> Any:
    widths = {"age": draw(st.sampled_from([1.0, 1.3])), "wage": draw(st.sampled_from([0.5, 0.61]))}
    model = draw(st.sampled_from([LINEAR, TREE]))
    return Region(
        draw(st.sampled_from([1.0, 0.0])), scale=widths, model=model, target=draw(st.sampled_from(["yes", "no"]))
    )


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    points = np.asarray(points, dtype=float)
    place = {name: k for k, name in enumerate(space.names)}
    names = [name for name in rule.columns or rule.scale if space[name].mutable]
    found = np.ones(len(points), dtype=bool)
    for i, point in enumerate(points):
        values = [near(space[name], rule.radius * rule.scale[name], point[place[name]]) for name in names]
        rows = []
        for chosen in itertools.product(*values):
            far = [(v - point[place[n]]) / rule.scale[n] for v, n in zip(chosen, names, strict=True)]
            if rule.norm == "l2" and sum(x * x for x in far) > rule.radius**2 + 1e-9:
                continue
            row = point.copy()
            row[[place[name] for name in names]] = chosen
            rows.append(row)
        found[i] = all(rule.model.predict(by_hand.identity(space, np.array(rows))) == rule.target)
    return found


def near(feature: Any, width: float, value: float) -> list[float]:
    """Return the amounts of a column within a width of one: all of those with steps, else ends and sides of splits."""
    step = 1.0 if feature.kind == "integer" and feature.step is None else feature.step
    if step is not None:
        count = math.floor(width / step + 1e-9)
        return [value + k * step for k in range(-count, count + 1)]
    sides = [value - width, value, value + width]
    for threshold in THRESHOLDS[feature.name]:
        sides += [side for side in (threshold, threshold + 1e-9) if abs(side - value) <= width]
    return sides

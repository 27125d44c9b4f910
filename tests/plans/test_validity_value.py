"""The validity value: golden numbers, its meaning, and its degenerate cases."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st

from ceopt import CeoptError
from ceopt.formulations.programs.moments import Moments
from ceopt.plans import validity_value
from ceopt.plans.copa import margins, spreads

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "validity_value.json").read_text())["instances"]


@pytest.mark.parametrize("instance", [pytest.param(i, id=i["id"]) for i in GOLDEN])
def test_golden_numbers(instance: Any) -> None:
    p, expected = instance["inputs"], instance["expected"]
    found = validity_value(p["plan"], p["mu"], p["Sigma"])
    if expected["status"] == "infeasible":
        assert math.isnan(found)
        return
    assert found == pytest.approx(expected["value"], abs=instance["tol"]["value"])
    each = [validity_value([x], p["mu"], p["Sigma"]) for x in p["plan"]]
    assert each == pytest.approx(expected["per_counterfactual"], abs=instance["tol"]["per_counterfactual"])
    assert int(np.argmin(each)) == expected["argmin"]


@draws(40)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 5), n=st.integers(1, 4), c=st.floats(0.01, 100.0))
def test_it_is_how_far_the_ellipsoid_may_grow(seed: int, d: int, n: int, c: float) -> None:
    rng = np.random.default_rng(seed)
    mean, factor = rng.normal(size=d), rng.normal(size=(d, d))
    plan = rng.normal(size=(n, d))
    plan *= np.where(plan @ mean < 0, -1.0, 1.0)[:, None]
    value = validity_value(plan, mean, factor @ factor.T)
    inward = -plan @ factor  # u that lowers each score most
    touch = mean + value * (inward / np.linalg.norm(inward, axis=1)[:, None]) @ factor.T
    scores = np.einsum("ja,ja->j", plan, touch)
    assert scores.min() == pytest.approx(0.0, abs=1e-9 * (1.0 + np.abs(plan).max() * np.abs(touch).max()))
    assert value <= np.sqrt(mean @ np.linalg.solve(factor @ factor.T, mean)) * (1 + 1e-6)
    assert validity_value(c * plan, mean, factor @ factor.T) == pytest.approx(value, rel=1e-9)


def test_degenerate_cases() -> None:
    flat = [[1, 0], [0, 0]]
    assert validity_value([[0, 1]], [1, 2], flat) == math.inf  # the score does not vary
    assert validity_value([[0, 1], [1, 0]], [3, 2], flat) == 3.0
    assert validity_value([[0, 0], [1, 0]], [3, 2], flat) == 3.0  # a row of zeros holds nothing back
    assert validity_value([[1, 0]], [0, 2], flat) == 0.0
    assert math.isnan(validity_value([[0, 1]], [1, -2], flat))
    assert validity_value([[1, 1]], [0, 0], np.zeros((2, 2))) == math.inf
    assert validity_value([[0.1, 0.2, -0.3]], [1, 1, 1], np.eye(3)) == 0.0  # 5.6e-17 in floats


def test_what_is_rounding_is_zero() -> None:
    x = np.array([[1.0, -1.0], [1.0, 1.0]])
    thin = Moments(np.array([0.1, 0.1]), np.full((2, 2), 0.1))
    assert margins(x, thin).tolist() == [0.0, 0.2]
    assert spreads(x, thin)[0] == 0.0
    assert spreads(x, thin)[1] == pytest.approx(np.sqrt(0.4))


@pytest.mark.parametrize(
    ("plan", "message"),
    [(np.zeros((0, 2)), "plan has no rows"), ([[1, 2, 3]], "plan of shape n by 2"), ([[1, np.nan]], "nan")],
)
def test_what_is_no_plan_is_refused(plan: Any, message: str) -> None:
    with pytest.raises(CeoptError, match=message):
        validity_value(plan, [1, 1], np.eye(2))

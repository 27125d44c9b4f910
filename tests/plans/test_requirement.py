"""The requirement correction against its golden family and its definition."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceopt import CeoptError, Status
from ceopt.plans import requirement_correction, validity_bounds

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "requirement_correction.json").read_text())["instances"]


@pytest.mark.parametrize("instance", GOLDEN, ids=[i["id"] for i in GOLDEN])
def test_golden(instance: Any) -> None:
    inputs, expected, tol = instance["inputs"], instance["expected"], instance["tol"]
    found = requirement_correction(inputs["plan"], inputs["mu"], inputs["eps"], fixed=inputs.get("fixed"))
    assert found.status == expected["status"]
    if found.plan is None:
        assert not found.changed.any()
        assert found.reason
        return
    np.testing.assert_allclose(found.plan, expected["plan"], rtol=0, atol=tol["plan"])
    square = ((found.plan - inputs["plan"]) ** 2).sum()
    assert square == pytest.approx(expected["sq_change"], abs=tol["sq_change"])
    assert np.flatnonzero(found.changed).tolist() == expected["changed"]


NUMBERS = st.floats(-4, 4, allow_subnormal=False)


@given(
    plan=st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=4),
    mean=st.tuples(NUMBERS, NUMBERS, NUMBERS),
    margin=st.sampled_from([0.0, 0.1, 3.0]),
    fixed=st.sets(st.integers(0, 2)),
)
def test_it_is_the_nearest_point_of_the_half_space(plan: Any, mean: Any, margin: float, fixed: set[int]) -> None:
    """Feasible, only along the free part of the mean, and no farther than the boundary."""
    given_plan, m = np.array(plan), np.array(mean)
    normal = m.copy()
    normal[list(fixed)] = 0.0
    found = requirement_correction(plan, mean, margin, fixed=fixed)
    below = given_plan @ m < margin
    if found.plan is None:
        assert found.status is Status.INFEASIBLE
        assert below.any()
        assert not normal.any()
        return
    move = found.plan - given_plan
    assert (found.changed == below).all()
    assert (move[~below] == 0).all()
    assert (move[:, list(fixed)] == 0).all()
    size = 1.0 + np.abs(found.plan).max()
    assert found.plan[below] @ m == pytest.approx(margin, abs=1e-9 * size)
    unit = normal / (np.abs(normal).max() or 1.0)
    along = np.outer(move @ unit, unit) / max(unit @ unit, 1e-300)
    np.testing.assert_allclose(move, along, atol=1e-9 * size)


def test_a_tiny_mean_still_has_a_direction() -> None:
    found = requirement_correction([[-1.0, 0.0]], [1e-200, 0.0])
    assert found.plan is not None
    assert found.plan.tolist() == [[0.0, 0.0]]


def test_the_given_plan_is_not_touched_and_not_shared() -> None:
    plan = np.array([[1.0, 1.0]])
    found = requirement_correction(plan, [1.0, 0.0])
    assert found.plan is not plan
    assert found.plan is not None
    assert not np.shares_memory(found.plan, plan)
    assert not found.plan.flags.writeable
    assert plan.flags.writeable


def test_afterwards_the_upper_bound_is_1_and_the_lower_may_stay_0() -> None:
    found = requirement_correction([[-1.0, 0.0], [0.0, -1.0]], [1.0, 1.0], 0.5)
    bounds = validity_bounds(found.plan, [1.0, 1.0], [[9.0, -8.0], [-8.0, 9.0]], 0.0)
    assert bounds.upper == 1.0
    assert bounds.lower == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: requirement_correction([[1, 2]], [1]), "mean of shape 2, but its shape is (1,)"),
        (lambda: requirement_correction(np.zeros((0, 2)), [1, 1]), "plan has no rows"),
        (lambda: requirement_correction([[1, np.inf]], [1, 1]), "plan[0, 1] is inf"),
        (lambda: requirement_correction([[1, 1]], [1, np.nan]), "mean[1] is nan"),
        (lambda: requirement_correction([[1, 1]], [1, 1], -1), "margin is -1"),
        (lambda: requirement_correction([[1, 1]], [1, 1], np.inf), "margin is inf"),
        (lambda: requirement_correction([[1, 1]], [1, 1], fixed=[2]), "fixed has 2"),
    ],
)
def test_misuse_is_refused(call: Any, message: str) -> None:
    with pytest.raises(CeoptError, match=re.escape(message)):
        call()


def test_the_intercept_is_held_from_the_end_or_missed() -> None:
    plan, mean = [[-2.0, 1.0], [3.0, 1.0]], [1.0, 0.5]
    held, free = requirement_correction(plan, mean, fixed=[-1]), requirement_correction(plan, mean)
    assert (held.plan[:, -1].tolist(), held.reason) == ([1.0, 1.0], "")
    assert "The last column was 1 and moved" in free.reason
    by_mask = requirement_correction(plan, mean, fixed=[False, True])
    assert by_mask.plan.tolist() == held.plan.tolist()


def test_a_row_against_the_mean_ends_at_zero_itself() -> None:
    found = requirement_correction([[-0.56, -0.21, 0.21]], [0.8, 0.3, -0.3])
    assert found.plan is not None
    assert found.plan.tolist() == [[0.0, 0.0, 0.0]]

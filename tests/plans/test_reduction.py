"""The reduction to the span of a plan: its moments lifted to all parameters are as far, and seen as those."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st

from ceopt.formulations.programs.moments import Moments
from ceopt.plans import gelbrich_distance, validity_bounds
from ceopt.plans.validity import directions, lifted, reduced

UNITS = [1e-3, 1.0, 1e3]  # of the parameters: nothing may depend on them


def moments(rng: Any, d: int, rank: int, unit: float = 1.0) -> Moments:
    factor = rng.normal(size=(d, rank))
    return Moments(unit * rng.normal(size=d), unit**2 * factor @ factor.T)


def apart(one: Moments, other: Moments) -> float:
    return gelbrich_distance(one.mean, one.covariance, other.mean, other.covariance)


@draws(40)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(2, 6),
    n=st.integers(1, 4),
    ranks=st.tuples(st.integers(0, 4), st.integers(1, 4)),
    unit=st.sampled_from(UNITS),
)
def test_lifted_moments_are_as_far_as_the_reduced_ones_and_seen_as_those(
    seed: int, d: int, n: int, ranks: Any, unit: float
) -> None:
    """A found covariance of greater rank than the given one has noise, which no map of the given one makes."""
    rng = np.random.default_rng(seed)
    whole = moments(rng, d, min(ranks[0], d), unit)
    case = reduced(directions(rng.normal(size=(n, d))).rows, whole, 0.1)
    r = len(case.basis)
    found = moments(rng, r, min(ranks[1], r))
    all_ = lifted(whole, case, found)
    seen = all_.seen_by(case.basis)
    assert seen.mean / case.unit == pytest.approx(found.mean, abs=1e-9)
    assert seen.covariance / case.unit**2 == pytest.approx(found.covariance, abs=1e-8)
    assert np.linalg.eigvalsh(all_.covariance)[0] >= -1e-9 * case.unit**2
    assert apart(all_, whole) / case.unit == pytest.approx(apart(found, case.moments), abs=1e-6)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("rank", [0, 1])
def test_worst_moments_are_in_the_ball_in_any_unit(rank: int, unit: float) -> None:
    """The worst parameters vary where the given ones are certain: all of that is noise."""
    rng = np.random.default_rng(5)
    plan, given_ = np.array([[1.0, 0.2, 0.0, 0.3], [0.1, 1.0, 0.4, 0.0]]), moments(rng, 4, rank, 0.2 * unit)
    mean, radius = unit * np.ones(4), 0.3 * unit
    found = validity_bounds(plan, mean, given_.covariance, radius)
    moved, spread = found.worst
    assert found.lower < 0.98
    assert gelbrich_distance(moved, spread, mean, given_.covariance) == pytest.approx(radius, rel=1e-4)
    assert validity_bounds(plan, moved, spread, 0.0).lower == pytest.approx(found.lower, abs=1e-4)

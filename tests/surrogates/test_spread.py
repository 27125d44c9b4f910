"""The largest distance of two points."""

from __future__ import annotations

import numpy as np
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from ceopt.surrogates.scaled_columns import largest_distance


@draws(60)
@given(st.integers(1, 200), st.integers(1, 6), st.integers(0, 1000), st.booleans())
def test_it_is_that_of_all_pairs(n: int, p: int, seed: int, is_coarse: bool) -> None:
    points = np.random.default_rng(seed).normal(size=(n, p))
    points = np.round(points) if is_coarse else points
    points[: n // 2] /= 3.0  # some lie far inside

    assert largest_distance(points) == pytest.approx(max(pdist(points), default=0.0))


def test_all_are_gone_through_that_could_be_the_farthest() -> None:
    """Sixty-five points on one side come before the one on the other side that the farthest pair needs."""
    angle = np.linspace(-0.2, 0.2, 130)
    points = np.vstack([np.column_stack([10 * np.cos(angle), 10 * np.sin(angle)]), [[-9.0, 0.0]]])

    assert largest_distance(points) == pytest.approx(max(pdist(points)))

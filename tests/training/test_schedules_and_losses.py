"""The radius of each epoch, and the losses in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from ceopt.training.training import (  # noqa: E402 - JAX may be missing  # noqa: E402
    SCHEDULES,
    proximity_loss,
    radius_at,
    smoothed,
    squared_error,
)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("epochs", [1, 2, 37])
def test_the_radius_never_falls_and_ends_full(schedule, epochs):
    radii = [radius_at(schedule, epoch, epochs, 0.3) for epoch in range(epochs)]

    assert radii[-1] == 0.3
    assert (np.diff(radii) >= 0.0).all()
    assert radii[0] > 0.0
    if schedule != "constant":
        assert [radius for radius in radii if radius >= 0.3] == [0.3]


def test_schedules_are_those_of_the_docstring():
    assert radius_at("linear", 1, 4, 0.1) == pytest.approx(0.05)
    assert radius_at("log", 1, 4, 0.1) == pytest.approx(0.1 * np.log(3) / np.log(5))
    assert radius_at("constant", 0, 4, 0.1) == 0.1


def test_the_losses_are_those_of_the_docstring():
    rng = np.random.default_rng(0)
    made, x = rng.normal(size=(2, 5, 4)).astype(np.float32)
    second = rng.uniform(size=5).astype(np.float32)
    shares = np.stack([1.0 - second, second], axis=1)
    wanted = np.eye(2, dtype=np.float32)[[0, 1, 1, 0, 1]]

    total = 0.0
    for row in range(5):
        total += sum((made[row, k] - x[row, k]) ** 2 for k in range(4))
    assert float(proximity_loss(x, made)) == pytest.approx(total / 20, rel=1e-5)
    assert float(squared_error(shares, wanted)) == pytest.approx(np.mean((second - wanted[:, 1]) ** 2), rel=1e-5)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_smoothed_class_has_most_and_shares_the_rest(n_classes):
    wanted = np.eye(n_classes, dtype=np.float32)[np.arange(200) % n_classes]
    found = np.asarray(smoothed(wanted, jax.random.key(0)))

    own = found[wanted == 1.0]
    assert 0.8 <= own.min() < 0.82
    assert 0.93 < own.max() <= 0.95
    assert found.sum(axis=1) == pytest.approx(np.ones(200), abs=1e-6)
    assert np.ptp(found[0][wanted[0] == 0.0]) == pytest.approx(0.0, abs=1e-6)

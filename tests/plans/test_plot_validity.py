"""The picture of a plan's validity: its lines are the bounds."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from drawn import offsets
from matplotlib import pyplot as plt

from ceopt import CeoptError
from ceopt.pictures.charts import draw_validity
from ceopt.plans import plot_validity, validity_bounds

PLAN = [[1.0, 2.0, 1.0], [3.0, 0.5, 1.0]]
MEAN, COVARIANCE = [0.8, 0.6, -0.5], [[0.04, 0.01, 0], [0.01, 0.05, 0], [0, 0, 0.02]]


def test_both_bounds_are_drawn_over_the_radii_in_their_order():
    radii = [0.2, 0.0, 0.1]

    ax = plot_validity(PLAN, MEAN, COVARIANCE, radii)

    found = [validity_bounds(PLAN, MEAN, COVARIANCE, radius) for radius in sorted(radii)]
    upper, lower = ax.lines
    assert upper.get_xdata().tolist() == lower.get_xdata().tolist() == sorted(radii)
    assert upper.get_ydata().tolist() == [bounds.upper for bounds in found]
    assert lower.get_ydata().tolist() == [bounds.lower for bounds in found]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["at best", "at worst"]


def test_what_is_not_proved_to_be_the_closest_bound_is_hollow():
    radii, lower, upper = np.array([0.0, 1.0]), np.array([0.5, 0.2]), np.array([1.0, 1.0])

    ax = draw_validity("test", radii, lower, upper, np.array([False, True]), ax=None, dark=True)

    assert offsets([ax.lines[1], ax.lines[3]]).tolist() == [[1.0, 1.0], [1.0, 0.2]]
    assert "hollow" in ax.get_xlabel()


def test_given_axes_are_drawn_on():
    figure, given = plt.subplots()

    assert plot_validity(PLAN, MEAN, COVARIANCE, [0.1], ax=given) is given
    assert plt.get_fignums() == [figure.number]
    plt.close(figure)


@pytest.mark.parametrize(
    ("radii", "sentence"),
    [
        ([], "plot_validity needs some radius, but radii is empty"),
        (0.1, "radii of shape n"),
        ([0.1, float("nan")], "finite radii"),
        ([-0.1], "radius"),
        (["x"], "numbers as radii"),
    ],
)
def test_radii_that_are_none_are_refused(radii, sentence):
    with pytest.raises(CeoptError, match=sentence):
        plot_validity(PLAN, MEAN, COVARIANCE, radii)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(ImportError, match=r"^plot_validity needs matplotlib.*pip install 'ceopt\[plot\]'"):
        plot_validity(PLAN, MEAN, COVARIANCE, [0.1])

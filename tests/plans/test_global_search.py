"""The greatest validity value of a region: exact where its relaxation is, and none where no counterfactual is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ceopt.formulations.programs.moments import Moments
from ceopt.formulations.programs.parts import Distance, require_region
from ceopt.plans import validity_value
from ceopt.plans.copa_search import top_ratio
from ceopt.plans.copa_space import PlanSearch, Terms


def top(factual: Any, mean: Any, covariance: Any, margin: float, **rules: Any) -> float:
    x0, moments = (
        np.array(factual, dtype=float),
        Moments(np.array(mean, dtype=float), np.array(covariance, dtype=float)),
    )
    terms = Terms(x0, moments, Distance("l2"), 1.0, 0.0)
    return top_ratio(PlanSearch(terms, require_region("test", x0, **rules), margin, 1))


@pytest.mark.parametrize(("margin", "at"), [(0.0, 2.0), (4.0, 3.5), (5.4, 4.9)])
def test_the_margin_bounds_the_validity_value(margin: float, at: float) -> None:
    """x = (a, 1): the ratio rises up to a = 2 and falls beyond."""
    mean, line = [1.0, 0.5], np.arange(-50, 51) / 10
    values = {a: validity_value([[a, 1.0]], mean, np.eye(2)) for a in line if a + 0.5 >= margin}
    assert max(values, key=lambda a: values[a]) == at
    assert top([0, 1], mean, np.eye(2), margin, fixed=[1], bounds=(-5, 5)) == pytest.approx(values[at], rel=1e-6)
    assert top([0, 1], mean, np.eye(2), 5.6, fixed=[1], bounds=(-5, 5)) == 0.0


def test_one_category_at_a_time_bounds_the_validity_value() -> None:
    """Both at once would have the ratio 2 / sqrt(5), and a mixture spreads as one alone does."""
    mean, covariance = [1.0, 0.9, 0.1], [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    best = max(validity_value([[*one, 1.0]], mean, covariance) for one in np.eye(2))
    assert best == pytest.approx(1.1 / np.sqrt(2))
    assert top([1, 0, 1], mean, covariance, 0.1, fixed=[2], groups=[[0, 1]]) == pytest.approx(best, rel=1e-6)

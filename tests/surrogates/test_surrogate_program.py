"""The program over a surrogate: robust searches beside the robust projection of the same coefficients."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.settings import Settings
from ceopt.surrogates import project
from ceopt.surrogates.scaled_columns import ScaledColumns
from ceopt.surrogates.surrogate_program import LinearFit, SurrogateProgram

DATA = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 3)) * [1.0, 3.0, 0.5], columns=list("abc"))
NUMBERS = [Feature(name, kind="continuous", lower=-50.0, upper=50.0, std=1.0, mad=1.0) for name in "abc"]
SPACE = FeatureSpace(NUMBERS)
COLUMNS = ScaledColumns.of(SPACE, DATA, "none")


def program(kind: str, home: dict[str, float], n: int = 1) -> SurrogateProgram:
    settings = Settings(target=True, cost="l1", n=n, diversity="support")
    favourable = np.ones(len(DATA), dtype=bool)
    return SurrogateProgram(
        kind, settings, SPACE, home, DATA, favourable, COLUMNS.about(home), time.perf_counter() + 60.0
    )


def fit(coef: Any, intercept: float) -> LinearFit:
    sample: Any = None  # none is asked of
    return LinearFit(np.array(coef), intercept, math.nan, math.nan, sample)


CASES = [
    ([1.0, 0.4, -0.2], -3.0, [0.0, 0.0, 0.0], 0.0),
    ([1.0, 0.9, 0.8], -1.0, [-5.0, -0.2, 4.0], 0.0),  # signs change on the way
    ([0.3, -1.0, 0.95], -2.0, [-1.0, 2.0, -0.1], 0.5),
    ([0.02, -1.0, 0.0], -4.0, [30.0, 1.0, -8.0], 0.0),
]


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("coef", "intercept", "home", "margin"), CASES)
@pytest.mark.parametrize(("kind", "norm"), [("robust", "l2"), ("roar", "linf")])
def test_a_robust_search_is_the_robust_projection(
    kind: str, norm: Any, coef: list[float], intercept: float, home: list[float], margin: float
) -> None:
    own = fit(coef, intercept)
    row = dict(zip("abc", home, strict=True))
    found = program(kind, row).solve(own, margin)
    is_roar = kind == "roar"
    radius = 0.1 * np.linalg.norm(coef)
    if is_roar:
        radius /= math.sqrt(3.0)
    best = project(
        home, coef, intercept, radius=radius, norm=norm, perturb_intercept=is_roar, margin=margin, lower=-50.0,
        upper=50.0,
    )  # fmt: skip
    nominal = program("projection", row).solve(own, margin)

    assert found.status == "optimal"
    assert found[0].cost == pytest.approx(best.cost, rel=1e-3, abs=1e-3)
    assert found[0].cost > nominal[0].cost + 0.01


def test_each_of_several_answers_is_robust() -> None:
    coef = np.array([1.0, 0.9, 0.8])
    row = {"a": -3.0, "b": -2.0, "c": -1.0}
    found = program("roar", row, n=3).solve(fit(coef, -2.0), 0.0)
    off = 0.1 * np.linalg.norm(coef) / math.sqrt(3.0)
    points = found.to_frame()[list("abc")].to_numpy(dtype=float)

    assert len(found) == 3
    assert (points @ coef - 2.0 - off * (np.abs(points).sum(axis=1) + 1.0) >= -1e-6).all()
    assert len({answer.changed for answer in found}) == 3


def test_no_point_holds_for_the_whole_ball() -> None:
    assert program("roar", {"a": 0.0, "b": 0.0, "c": 0.0}).solve(fit([1e-3, 0.0, 0.0], -1.0), 0.0).status == (
        "infeasible"
    )

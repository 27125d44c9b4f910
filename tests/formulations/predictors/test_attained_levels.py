"""What sums of leaves are within reach of floats, and where a row between two of them stands."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from licences import skip_without

import ceopt
from ceopt.formulations import Factual, Reaches, embed
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.formulations.predictors.predictor import Combination
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.predictors.ties import (
    default_margin,
    link_rounding,
    right_side_of,
    sums_of,
    tie_width,
    vectors_of,
)
from ceopt.formulations.targets import parse_target
from ceopt.formulations.tolerances import CLEAR_DISTANCE
from ceopt.solvers import solve

SPACE = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=9) for name in ("a", "b", "c")])
FLOATS = [0.1, 0.3, 0.7, -0.4, 0.2, 0.9]
HALVES = [0.5, 1.5, -2.0, 0.25, 3.0, 8.0]


def stump(feature: int, left: Any, right: Any) -> dict[str, Any]:
    return {"feature": feature, "threshold": 4.5, "left": {"value": left}, "right": {"value": right}}


def ensemble(values: list[float], **words: Any) -> Any:
    """Return three stumps, as they are read."""
    trees = [stump(k, *values[2 * k : 2 * k + 2]) for k in range(3)]
    return read(TreeEnsemble(trees, n_inputs=3, **words), SPACE)


def forest(**words: Any) -> Any:
    """Return four stumps that share two labels out, as a mean."""
    trees = [stump(k % 3, [1.0, 0.0], [0.25, 0.75]) for k in range(4)]
    model = TreeEnsemble(trees, n_inputs=3, divisor=4, labels=("no", "yes"), probability="share", **words)
    return read(model, SPACE)


# ---- sums ------------------------------------------------------------------------------------------------------------
def test_sums_of_short_numbers_are_exact_and_others_are_not() -> None:
    exact, rounded = (sums_of(ensemble(values), [1.0]) for values in (HALVES, FLOATS))
    assert exact.is_exact
    assert not rounded.is_exact
    assert exact.undecided_within(0.0) < rounded.undecided_within(0.0) < 1e-11
    assert not sums_of(ensemble([2.0**60, 1.0, 0.5, 0.5, 1.0, 1.0]), [1.0]).is_exact
    assert not sums_of(ensemble([2.0**30, 1.0, 0.5, 0.5, 1.0, 1.0], sum_dtype="float32"), [1.0]).is_exact
    assert sums_of(ensemble([2.0**30, 1.0, 0.5, 0.5, 1.0, 1.0]), [1.0]).is_exact


@pytest.mark.parametrize("values", [FLOATS, HALVES])
def test_all_sums_are_listed(values: list[float]) -> None:
    sums = sums_of(ensemble(values, divisor=3.0), [1.0])
    pairs = [values[2 * k : 2 * k + 2] for k in range(3)]
    expected = sorted({a + b + c for a in pairs[0] for b in pairs[1] for c in pairs[2]})
    assert sums.candidates == pytest.approx(expected)
    assert sums.spread == pytest.approx((max(expected) - min(expected)) / 3.0)


def test_floats_of_32_bits_decide_within_a_wider_distance() -> None:
    narrow, wide = (sums_of(ensemble(FLOATS, sum_dtype=dtype), [1.0]) for dtype in ("float64", "float32"))
    greatest = 0.3 + 0.7 + 0.9
    assert 2.0**-53 * greatest < narrow.undecided_within(0.0) < 1e-11
    # In order: at most the sum of the partial sums, and once more the numbers themselves.
    assert 2.0**-24 * greatest < wide.undecided_within(0.0) < 2.0**-24 * 6 * greatest
    several = [[0.1, 0.3], [0.7, 0.2]]
    labelled = TreeEnsemble(
        [stump(k, *several) for k in range(3)], n_inputs=3, sum_dtype="float32", labels=("no", "yes")
    )
    assert sums_of(read(labelled, SPACE), [1.0, -1.0]).undecided_within(0.0) > 2.0**-24


@pytest.mark.parametrize(("level", "units"), [(0.0, 1 + 3 + 0 + 7), (2.0, 1 + 3 + 2 + 7), (100.0, 1 + 3 + 7 + 7)])
def test_sums_in_order_are_off_by_what_is_added_before_a_term_or_is_left_after_it(level: float, units: int) -> None:
    """Terms of 1, 2 and 4 in 32 bits: 1, 3 and 7 up to each, 6, 4 and none after it; and each may be cast."""
    sums = sums_of(ensemble([1.0, 0.0, 2.0, 0.1, 4.0, 0.0], sum_dtype="float32"), [1.0])
    assert not sums.is_exact
    assert sums.undecided_within(level) == pytest.approx(2.0**-24 * units, rel=0.02, abs=0.0)


def test_the_rounding_of_a_level_is_added() -> None:
    sums = sums_of(ensemble(HALVES), [1.0])
    assert sums.undecided_within(1.0, 0.5) == pytest.approx(0.5 + sums.undecided_within(1.0))
    assert sums.undecided_within(1.0) < 1e-12


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_distance_grows_with_the_leaves(dtype: str) -> None:
    def width(factor: float) -> float:
        parts = [ensemble([factor * value for value in values], sum_dtype=dtype) for values in (FLOATS, FLOATS[::-1])]
        mean = Combination(parts, [[[1.0]], [[1.0]]], divisor=2.0)
        return sums_of(read(mean, SPACE), [1.0]).undecided_within(0.0)

    assert width(1024.0) == pytest.approx(1024.0 * width(1.0), rel=1e-9, abs=0.0)  # which keeps every mantissa


# ---- places ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("unit", [1.0, 2.0**-10, 2.0**-20, 2.0**20])
def test_a_row_stands_below_what_is_accepted_as_clearly_as_what_is_not_is_refused(unit: float) -> None:
    """A ten-thousandth of the scores' size below it, which is tighter than half way; half way where they are nearer."""
    predictor = ensemble([unit * value for value in HALVES])
    scores = np.asarray(sums_of(predictor, [1.0]).candidates)
    assert len(scores) == 8
    clear = CLEAR_DISTANCE * max(float(scores[-1] - scores[0]), 1.0)
    for first in range(1, len(scores)):
        level = float(scores[first])
        tied = right_side_of(predictor, [1.0], level, lambda s, level=level: s >= level)
        above = right_side_of(predictor, [1.0], level, lambda s, level=level: s > level)
        assert scores[first - 1] < tied.least < scores[first] < above.least
        distance = min(clear, (scores[first] - scores[first - 1]) / 2)
        assert level - tied.least == pytest.approx(distance, rel=1e-6, abs=0.0)
        assert tied.clearance == level - tied.least
        assert (tied.refused, tied.accepted) == (scores[first - 1], level)
        refused = right_side_of(predictor, [1.0], level, lambda s, level=level: s >= level, clear=True)
        assert refused.least == above.least


def test_beyond_the_ends_a_row_is_clear_of_every_score() -> None:
    predictor = ensemble(HALVES)
    scores = np.asarray(sums_of(predictor, [1.0]).candidates)
    size = float(scores[-1] - scores[0])
    low = right_side_of(predictor, [1.0], -100.0, lambda s: s >= -100.0)
    high = right_side_of(predictor, [1.0], 100.0, lambda s: s >= 100.0)
    assert low.least < scores[0] - 0.5 * CLEAR_DISTANCE * size
    assert high.least >= scores[-1] + size / 2
    alone = ensemble([1.0] * 6)
    assert right_side_of(alone, [1.0], 2.0, lambda s: s >= 2.0).least < 3.0 - 0.5 * CLEAR_DISTANCE
    assert right_side_of(alone, [1.0], 4.0, lambda s: s >= 4.0).least > 3.0 + 0.1


def test_what_floats_may_round_to_the_level_is_not_cut_off() -> None:
    """.1 + .3 + .2 is .6000000000000001 in one order and .6 in another."""
    predictor = ensemble([0.1, 5.0, 0.3, 5.0, 0.2, 5.0])
    assert 0.1 + 0.3 + 0.2 != 0.2 + 0.3 + 0.1
    for level in (0.6, math.nextafter(0.6, 1.0)):
        place = right_side_of(predictor, [1.0], level, lambda s, level=level: s >= level)
        assert place.least < 0.6 - 0.5 * CLEAR_DISTANCE


def test_sums_that_are_listed_as_one_are_all_kept() -> None:
    """Each of ten stumps adds less than what tells two sums apart, and all of them almost ten times as much."""
    step = 0.9e-13
    model = TreeEnsemble([stump(k % 3, 0.0, step) for k in range(10)], n_inputs=3, base=1.0)
    predictor = read(model, SPACE)
    greatest = float(predictor.score(np.array([[9.0, 9.0, 9.0]]))[0])
    level = greatest - step / 2
    assert len(np.asarray(sums_of(predictor, [1.0]).candidates)) < 10
    assert right_side_of(predictor, [1.0], level, lambda s: s >= level).least < greatest


@pytest.mark.parametrize("level", [10.0, -10.0])
def test_where_sums_are_too_many_to_list_a_row_is_lowered_by_little(level: float) -> None:
    rng = np.random.default_rng(0)
    predictor = read(TreeEnsemble([stump(k % 3, *rng.normal(size=2)) for k in range(20)], n_inputs=3), SPACE)
    sums = sums_of(predictor, [1.0])
    assert sums.candidates is None
    place = right_side_of(predictor, [1.0], level, lambda s: s >= level)
    assert sums.undecided_within(level) <= level - place.least <= 1e-9 * sums.spread
    assert place.clearance == 0.0


# ---- ties ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", ["yes", "no", ceopt.Probability("yes", 0.3), ceopt.Probability("no", 0.6)], ids=str)
def test_a_mean_of_few_shares_ties_within_rounding_alone(target: Any) -> None:
    predictor = forest()
    width = tie_width(predictor, parse_target(target, predictor.core.labels))
    assert 0.0 <= width < 1e-11
    thirds = TreeEnsemble(
        [stump(k, [1 / 3, 2 / 3], [0.9, 0.1]) for k in range(3)],
        n_inputs=3, divisor=3, labels=("no", "yes"), probability="share",
    )  # fmt: skip
    assert 1e-17 < tie_width(read(thirds, SPACE), parse_target(target, ("no", "yes"))) < 1e-11


def test_a_decision_between_two_scores_has_the_rounding_of_both() -> None:
    pairs = [(0.1, -0.3), (0.7, 0.2), (-0.4, 0.9)]
    one = TreeEnsemble([stump(k, *pair) for k, pair in enumerate(pairs)], n_inputs=3)
    both = TreeEnsemble(
        [stump(k, [left, -left], [right, -right]) for k, (left, right) in enumerate(pairs)],
        n_inputs=3, labels=("no", "yes"),
    )  # fmt: skip
    alone = tie_width(read(one, SPACE), parse_target(ceopt.AtLeast(0.0), None))
    assert tie_width(read(both, SPACE), parse_target("yes", ("no", "yes"))) == pytest.approx(
        2.0 * alone, rel=1e-9, abs=0.0
    )


@pytest.mark.parametrize("level", [0.0, 1e6])
def test_a_score_that_decides_alone_ties_about_the_level_of_its_labels(level: float) -> None:
    rivals = ensemble(FLOATS, labels=("no", "yes"), level=level)
    for label in ("no", "yes"):
        width = tie_width(rivals, parse_target(label, ("no", "yes")))
        assert width == tie_width(ensemble(FLOATS), parse_target(ceopt.AtLeast(level), None))


@pytest.mark.parametrize("target", [ceopt.AtLeast(1.0), ceopt.AtMost(1.0), ceopt.Between(-1.0, 2.0)], ids=str)
def test_a_value_ties_within_rounding_alone(target: Any) -> None:
    assert 1e-17 < tie_width(ensemble(FLOATS), parse_target(target, None)) < 1e-11


def test_the_rounding_of_a_probability_is_some_units_in_the_last_place_of_its_score() -> None:
    model = Affine([1.0, 1.0, 1.0], -3.0, labels=("no", "yes"), probability="logistic")
    predictor = read(model, SPACE)
    for p in (1e-6, 0.3, 0.5, 0.9, 1.0 - 1e-6):
        target = parse_target(ceopt.Probability("yes", p), model.labels)
        assert 2.0**-53 / (p * (1.0 - p)) <= link_rounding(predictor, target) <= 2.0**-49 / (p * (1.0 - p))
    scored = read(Affine([1.0, 1.0, 1.0], -3.0, labels=("no", "yes"), probability="identity"), SPACE)
    for p in (0.2, 0.7):
        target = parse_target(ceopt.Probability("yes", p), model.labels)
        assert 2.0**-51 * (1.0 + p) <= link_rounding(scored, target) <= 2.0**-49 * (1.0 + p)


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("step", [1e-3, 1e-6, 1e-8])
def test_a_row_between_two_close_scores_keeps_a_distance_that_solvers_see(solver: str, step: float) -> None:
    """Scores closer than a solver's tolerance, in plain Pyomo, where nobody asks the model again."""
    skip_without(solver)
    values = [0.0, step, 0.0, 2 * step, 0.0, 4 * step]
    model = TreeEnsemble([stump(k, *values[2 * k : 2 * k + 2]) for k in range(3)], n_inputs=3)
    for least in range(1, 8):
        m = pyo.ConcreteModel()
        m.x = Factual(SPACE, {"a": 0, "b": 0, "c": 0})
        m.predictor = embed(model, m.x)
        m.reaches = Reaches(m.predictor, ceopt.AtLeast(least * step))
        m.cost = pyo.Objective(expr=ceopt.L1(scale="none").build(m.x))
        result = solve(m, solver)
        assert result.status == "optimal"
        point = m.x.decoded()
        assert model.score([[point[name] for name in SPACE.names]])[0] >= least * step
        # Each stump that has to change takes five steps of its column; the last alone is worth four.
        changed = 1 + (least > 4) + (least > 6)
        assert result.objective == pytest.approx(5.0 * changed)


# ---- vectors, and margins --------------------------------------------------------------------------------------------
def test_all_vectors_of_a_soft_vote_are_listed_in_the_librarys_own_floats() -> None:
    """Shares of 0.25, 0.5 and 1 are exact, and those of thirds are not."""
    members = [
        forest(),
        read(TreeEnsemble([stump(0, [1.0, 0.0], [0.5, 0.5])], n_inputs=3, labels=("no", "yes")), SPACE),
    ]
    model = Combination(members, [np.eye(2), 3.0 * np.eye(2)], divisor=4.0, labels=("no", "yes"), probability="share")
    first = {sum(values) / 4 for values in itertools.product((0.0, 0.75), repeat=4)}
    second = (0.0, 0.5)
    expected = sorted({(p + 3.0 * q) / 4.0 for p in first for q in second})
    found = vectors_of(read(model, SPACE))
    assert found is not None
    assert sorted(found[:, 1].tolist()) == expected
    assert (found.sum(axis=1) == 1.0).all()
    thirds = TreeEnsemble([stump(k, [1 / 3, 2 / 3], [0.9, 0.1]) for k in range(2)], n_inputs=3, labels=("no", "yes"))
    assert vectors_of(read(thirds, SPACE)) is None


@pytest.mark.parametrize(("size", "margin"), [(0.5, 1e-5), (1e3, 1e-2), (1e6, 10.0)])
def test_where_nobody_is_asked_about_leaves_are_told_apart_by_what_a_binary_may_be_off(
    size: float, margin: float
) -> None:
    values = [size, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert margin / 2 <= default_margin(ensemble(values)) <= 2 * margin

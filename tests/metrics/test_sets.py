"""Distances between rows and between sets, by hand, from the golden family, and by their laws."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ceopt import Feature, FeatureSpace
from ceopt.metrics import distance, dpp_determinant, k_distance, k_diversity, set_distance
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

FILE = Path(__file__).parents[1] / "golden" / "set_metrics.json"
INSTANCES = [pytest.param(i, id=i["id"]) for i in json.loads(FILE.read_text())["instances"]]

numbers = st.floats(-100, 100, allow_nan=False).map(lambda value: round(value, 3))
norms = st.sampled_from(["l1", "l2", "linf"])
ORDER = {"l1": 1, "l2": 2, "linf": np.inf}


def sets(rows: int = 4) -> st.SearchStrategy[Any]:
    return st.integers(1, rows).flatmap(lambda n: arrays(float, (n, 2), elements=numbers))


@pytest.mark.parametrize("instance", INSTANCES)
def test_golden(instance):
    given, tol = instance["inputs"], instance["tol"]
    x, A, B, norm = given["x"], given["S1"], given["S2"], given["distance"]
    found = {
        "set_distance_sum": set_distance(A, B, "sum", norm),
        "set_distance_max": set_distance(A, B, "max", norm),
        "k_distance": k_distance(x, A, norm),
        "k_diversity": k_diversity(A, norm),
    }

    assert tol.keys() <= found.keys()
    for name, value in instance["expected"].items():
        expected = math.nan if value is None else value
        assert found[name] == pytest.approx(expected, abs=tol.get(name, 1e-9), rel=0, nan_ok=True), name


# ---- by hand ---------------------------------------------------------------------------------------------------------
def test_distances_by_hand():
    x, S = [1, 1, 1], [[4, 5, 1], [1, 1, 1]]  # moves (3, 4, 0) and none

    assert distance(x, S, "l1").tolist() == [7, 0]
    assert distance(x, S, "l2").tolist() == [5, 0]
    assert distance(x, S, "linf").tolist() == [4, 0]
    assert (k_distance(x, S, "l1"), k_distance(x, S, "l2"), k_distance(x, S, "linf")) == (3.5, 2.5, 2.0)


def test_set_distance_by_hand():
    # from 0, 4, 10 the nearest of {1, 6} are 1, 2, 4 away; from 1 and 6 the nearest of {0, 4, 10} are 1 and 2 away
    A, B = [[0], [4], [10]], [[1], [6]]

    assert set_distance(A, B, "sum") == pytest.approx(7 / 6 + 3 / 4)
    assert set_distance(A, B, "max") == (4 + 2) / 2
    assert set_distance(A, B) == set_distance(A, B, kind="sum", norm="l1")


def test_set_distance_weighs_either_side_alike_whatever_the_sizes():
    # 99 points at 0, one at 10, against {0}: mean nearest 10/100 and 0, halved
    A = [[0.0]] * 99 + [[10.0]]

    assert set_distance(A, [[0.0]], "sum") == pytest.approx(0.05)


def test_k_diversity_by_hand():
    # sides of the 3-4-5 triangle: 3, 4 and 5 in l2; 3, 4, 7 in l1; 3, 4, 4 in linf
    S = [[0, 0], [3, 0], [3, 4]]

    assert k_diversity(S, "l2") == 4
    assert k_diversity(S, "l1") == pytest.approx(14 / 3)
    assert k_diversity(S, "linf") == pytest.approx(11 / 3)
    assert math.isnan(k_diversity([[1, 2]]))
    assert k_diversity([[1, 2], [1, 2]]) == 0


def test_mixed_columns_by_hand():
    """A euro is a euro, a category 1, an ordinal level 1 / (levels - 1), as costs have it."""
    space = FeatureSpace(
        [
            Feature("pay", kind="continuous"),
            Feature("job", kind="categorical", levels=("cook", "baker", "none")),
            Feature("size", kind="ordinal", levels=("S", "M", "L")),
            Feature("own", kind="binary", levels=(False, True)),
        ]
    )
    x = {"pay": 2.0, "job": "cook", "size": "S", "own": False}
    S = pd.DataFrame({"pay": [5.0, 2.0], "job": ["none", "cook"], "size": ["M", "L"], "own": [True, False]})

    # first row: 3, 1, 1/2, 1; second: 0, 0, 1, 0
    assert distance(x, S, "l1", space=space).tolist() == pytest.approx([5.5, 1])
    assert distance(x, S, "l2", space=space).tolist() == pytest.approx([math.sqrt(9 + 1 + 0.25 + 1), 1])
    assert distance(x, S, "linf", space=space).tolist() == pytest.approx([3, 1])
    assert distance(x, S, "l1", space=space, scale={"pay": 6.0}).tolist() == pytest.approx([3, 1])


def test_the_determinant_by_hand():
    # distances 1 and 3 on a line at 0, 1, 4: K = [[1, 1/2, 1/5], [1/2, 1, 1/4], [1/5, 1/4, 1]]
    # det = 1 + 2/2/4/5 - 1/4 - 1/25 - 1/16 = 1 + 0.05 - 0.25 - 0.04 - 0.0625
    assert dpp_determinant([[0], [1], [4]]) == pytest.approx(0.6975)
    assert dpp_determinant([[0], [0]]) == 0
    assert dpp_determinant([[0], [0]], jitter=1e-4) == pytest.approx(1.0001**2 - 1)
    assert dpp_determinant([[0], [math.log(2)]], kernel="exponential") == pytest.approx(1 - 0.25)
    # l1 distance 7, l2 distance 5
    assert dpp_determinant([[0, 0], [3, 4]], "l1") == pytest.approx(1 - 1 / 64)
    assert dpp_determinant([[0, 0], [3, 4]]) == pytest.approx(1 - 1 / 36)
    assert dpp_determinant([[5, 5]]) == 1


# ---- laws ------------------------------------------------------------------------------------------------------------
@given(A=sets(), B=sets(), norm=norms)
def test_the_sum_is_at_most_the_maximum_and_both_are_symmetric(A, B, norm):
    total, greatest = (set_distance(A, B, kind, norm) for kind in ("sum", "max"))

    assert 0 <= total <= greatest * (1 + 1e-12)
    assert set_distance(B, A, "sum", norm) == pytest.approx(total)
    assert set_distance(B, A, "max", norm) == pytest.approx(greatest)
    assert (total == 0) == ({*map(tuple, A)} == {*map(tuple, B)}) == (greatest == 0)


@given(a=arrays(float, 2, elements=numbers), b=arrays(float, 2, elements=numbers), norm=norms)
def test_of_single_points_all_are_their_distance(a, b, norm):
    far = np.linalg.norm(a - b, ORDER[norm])

    assert set_distance([a], [b], "sum", norm) == pytest.approx(far)
    assert set_distance([a], [b], "max", norm) == pytest.approx(far)
    assert k_distance(a, [b], norm) == pytest.approx(far)
    assert k_diversity([a, b], norm) == pytest.approx(far)
    assert dpp_determinant([a, b], norm) == pytest.approx(1 - 1 / (1 + far) ** 2)


@given(A=sets(), B=sets(), norm=norms, order=st.randoms())
def test_the_order_of_rows_does_not_matter(A, B, norm, order):
    turned = list(A)
    order.shuffle(turned)

    for kind in ("sum", "max"):
        assert set_distance(turned, B, kind, norm) == pytest.approx(set_distance(A, B, kind, norm))
    assert k_distance(B[0], turned, norm) == pytest.approx(k_distance(B[0], A, norm))
    assert k_diversity(turned, norm) == pytest.approx(k_diversity(A, norm), nan_ok=True)
    assert dpp_determinant(turned, norm) == pytest.approx(dpp_determinant(A, norm), abs=1e-9)


@given(A=sets(), B=sets(), C=sets(), norm=norms)
def test_the_greater_of_the_two_maxima_is_a_metric_so_twice_the_mean_obeys_a_relaxed_triangle(A, B, C, norm):
    """D_max is between half the Hausdorff distance and all of it, and that has the triangle inequality."""
    d = {
        pair: set_distance(*pair_sets, "max", norm)
        for pair, pair_sets in {"AC": (A, C), "AB": (A, B), "BC": (B, C)}.items()
    }

    assert d["AC"] <= 2 * (d["AB"] + d["BC"]) + 1e-9


def test_the_triangle_inequality_fails_for_the_sum():
    # A = {0}, C = {1}, B = both: sum(A, B) = sum(B, C) = (0 + 1/2)/2 = 1/4, but sum(A, C) = 1
    A, B, C = [[0]], [[0], [1]], [[1]]

    assert set_distance(A, C) > set_distance(A, B) + set_distance(B, C)


@given(S=sets(), x=arrays(float, 2, elements=numbers), y=arrays(float, 2, elements=numbers), norm=norms)
def test_k_distance_moves_no_more_than_the_person(S, x, y, norm):
    moved = np.linalg.norm(x - y, ORDER[norm])

    assert abs(k_distance(x, S, norm) - k_distance(y, S, norm)) <= moved + 1e-9


@given(S=sets(), x=arrays(float, 2, elements=numbers), norm=norms)
def test_members_are_no_farther_from_each_other_than_by_way_of_the_person(S, x, norm):
    assume(len(S) > 1)

    assert k_diversity(S, norm) <= 2 * k_distance(x, S, norm) + 1e-9


@given(S=sets(), factor=st.floats(0.1, 10), norm=norms)
def test_units_scale_distances_and_a_scale_takes_them_out(S, factor, norm):
    assert k_diversity(factor * S, norm) == pytest.approx(factor * k_diversity(S, norm), nan_ok=True)
    assert k_diversity(factor * S, norm, scale=[factor, factor]) == pytest.approx(k_diversity(S, norm), nan_ok=True)


# ---- bad input -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("empty", [[], np.empty((0, 2)), pd.DataFrame({"a": [], "b": []})])
def test_an_empty_set_is_refused(empty):
    with pytest.raises(InvalidValueError, match="set_distance needs a row in B, but B is empty"):
        set_distance([[1, 2]], empty)
    with pytest.raises(InvalidValueError, match="k_distance needs a row in S, but S is empty"):
        k_distance([1, 2], empty)
    with pytest.raises(InvalidValueError, match="k_diversity needs a row in S, but S is empty"):
        k_diversity(empty)
    with pytest.raises(InvalidValueError, match="dpp_determinant needs a row in S"):
        dpp_determinant(empty)


def test_another_norm_or_kind_or_kernel_is_refused_with_the_choices():
    with pytest.raises(UnknownNameError, match="norm is 'L1'. Choose from: l1, l2, linf"):
        k_distance([1], [[2]], "L1")
    with pytest.raises(UnknownNameError, match="norm is 2"):
        k_diversity([[2]], 2)
    with pytest.raises(UnknownNameError, match="set_distance needs a known kind.*Choose from: sum, max"):
        set_distance([[1]], [[2]], "mean")
    with pytest.raises(UnknownNameError, match="norm is None"):
        set_distance([[1]], [[2]], "sum", None)
    with pytest.raises(UnknownNameError, match="kernel is 'rbf'. Choose from: inverse, exponential"):
        dpp_determinant([[1]], kernel="rbf")
    with pytest.raises(InvalidValueError, match="jitter is -1"):
        dpp_determinant([[1]], jitter=-1)
    with pytest.raises(UnknownNameError, match="distance needs a known norm"):
        distance([1], [[1]], "l0")


def test_a_category_needs_a_space():
    S = pd.DataFrame({"pay": [1.0], "job": ["cook"]})

    with pytest.raises(InvalidTypeError, match="k_diversity needs numbers, or a space.*column 'job' holds categories"):
        k_diversity(S)


def test_a_level_that_an_ordinal_column_does_not_have_is_refused():
    space = FeatureSpace([Feature("size", kind="ordinal", levels=("S", "M"))])

    with pytest.raises(InvalidValueError, match="levels of column 'size'.*Choose from: 'S', 'M'"):
        distance({"size": "S"}, [{"size": "XL"}], space=space)


def test_arrays_of_truth_values_are_zeros_and_ones():
    assert k_distance(np.array([True, False]), np.array([[False, False], [True, True]])) == 1.0

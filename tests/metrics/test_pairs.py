"""Sparsity, proximity and diversity by hand, and against loops that follow the formulas word by word."""

from __future__ import annotations

import itertools
import math
from statistics import mean

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceopt import Feature, FeatureSpace
from ceopt.metrics import (
    categorical_diversity,
    categorical_proximity,
    changed_count,
    continuous_diversity,
    continuous_proximity,
    count_diversity,
    gower,
    heom,
    sparsity,
    unique_fraction,
)
from ceopt.solvers.errors import InvalidValueError, UnknownNameError

SPACE = FeatureSpace(
    [
        Feature("pay", kind="continuous"),
        Feature("age", kind="integer"),
        Feature("job", kind="categorical", levels=("a", "b", "c")),
        Feature("size", kind="ordinal", levels=("S", "M", "L")),
        Feature("own", kind="binary", levels=(False, True)),
    ]
)
X = {"pay": 10.0, "age": 30, "job": "a", "size": "S", "own": False}
S = pd.DataFrame(
    {
        "pay": [14.0, 10.0, 10.0],
        "age": [30, 33, 30],
        "job": ["a", "b", "a"],
        "size": ["L", "S", "S"],
        "own": [False, True, False],
    }
)
SCALE = {"pay": 2.0, "age": 6.0}


def test_sparsity_by_hand():
    # rows change 2 (pay, size), 3 (age, job, own) and 0 of 5 columns
    assert changed_count(X, S, space=SPACE).tolist() == [2, 3, 0]
    assert sparsity(X, S, space=SPACE) == pytest.approx(1 - 5 / 15)


def test_proximity_by_hand():
    # numbers: 4/2 = 2, then 3/6 = 1/2, then 0; halved over two columns; mean of 1, 1/4, 0
    assert continuous_proximity(X, S, space=SPACE, scale=SCALE) == pytest.approx(-1.25 / 3)
    assert continuous_proximity(X, S, space=SPACE, scale="none", over="sum") == pytest.approx(-(4 + 3 + 0) / 3)
    # categories: one of three, then two of three, then none
    assert categorical_proximity(X, S, space=SPACE) == pytest.approx(1 - 3 / 9)


def test_diversity_by_hand():
    # pairs 1-2: pay 4/2, age 3/6; 1-3: pay 4/2; 2-3: age 3/6. Halved over two columns, mean of three
    assert continuous_diversity(S, space=SPACE, scale=SCALE) == pytest.approx((2.5 + 2 + 0.5) / 2 / 3)
    assert continuous_diversity(S, space=SPACE, scale="none", over="sum") == pytest.approx((7 + 4 + 3) / 3)
    # categories: 1-2 all three, 1-3 size, 2-3 job and own
    assert categorical_diversity(S, space=SPACE) == pytest.approx((3 + 1 + 2) / 9)
    # all: 5, 2 and 3 of five
    assert count_diversity(S, space=SPACE) == pytest.approx((5 + 2 + 3) / 15)
    assert unique_fraction(S, space=SPACE) == 1
    assert unique_fraction(pd.concat([S, S.iloc[:1]]), space=SPACE) == 3 / 4


def test_what_is_not_there_is_nan():
    one, numbers = S.iloc[:1], S[["pay", "age"]]

    assert all(
        math.isnan(value)
        for value in (
            categorical_diversity(one, space=SPACE), continuous_diversity(one, space=SPACE, scale="none"),
            count_diversity(one, space=SPACE), categorical_proximity([10, 30], numbers), categorical_diversity(numbers),
            continuous_proximity({"job": "a"}, S[["job"]], scale="none"),
            continuous_diversity(S[["job"]], scale="none"),
        )
    )  # fmt: skip


def test_gower_and_heom_by_hand():
    # ranges 8 and 12: t = (1/2, 0; 0 1 0), (0, 1/4; 1 0 1), 0
    people = pd.DataFrame({**S.to_dict("list"), "pay": [8.0, 16.0, 9.0], "age": [24, 36, 30]})

    assert gower(X, S, space=SPACE, data=people).tolist() == pytest.approx([1.5 / 5, 2.25 / 5, 0])
    assert heom(X, S, space=SPACE, data=people, form="sum").tolist() == pytest.approx([1.5, 2.25, 0])
    expected = [math.sqrt(0.25 + 1), math.sqrt(1 / 16 + 2), 0]
    assert heom(X, S, space=SPACE, data=people).tolist() == pytest.approx(expected)
    with pytest.raises(UnknownNameError, match="form is 'l1'. Choose from: euclidean, sum"):
        heom(X, S, space=SPACE, data=people, form="l1")
    with pytest.raises(InvalidValueError, match="gower needs data for scale='range'"):
        gower(X, S, space=SPACE)


levels = st.sampled_from(["a", "b", "c"])
values = st.integers(-3, 3)
rows = st.lists(st.tuples(values, values, levels), min_size=1, max_size=4)


@given(x=st.tuples(values, values, levels), S=rows)
def test_loops_over_the_formulas_agree(x, S):
    space = FeatureSpace([SPACE["pay"], SPACE["age"], SPACE["job"]])
    scale = {"pay": 2.0, "age": 5.0}
    frame, home = pd.DataFrame(S, columns=space.names), dict(zip(space.names, x, strict=True))

    def far(a, b):
        return abs(a[0] - b[0]) / 2 + abs(a[1] - b[1]) / 5

    def unequal(a, b):
        return sum(p != q for p, q in zip(a, b, strict=True))

    assert sparsity(home, frame, space=space) == pytest.approx(1 - mean(unequal(x, c) for c in S) / 3)
    found = continuous_proximity(home, frame, space=space, scale=scale)
    assert found == pytest.approx(-mean(far(x, c) / 2 for c in S))
    assert categorical_proximity(home, frame, space=space) == pytest.approx(1 - mean(x[2] != c[2] for c in S))
    assert unique_fraction(frame, space=space) == len(set(S)) / len(S)
    pairs = list(itertools.combinations(S, 2))
    if pairs:
        found = continuous_diversity(frame, space=space, scale=scale, over="sum")
        assert found == pytest.approx(mean(far(a, b) for a, b in pairs))
        assert categorical_diversity(frame, space=space) == pytest.approx(mean(a[2] != b[2] for a, b in pairs))
        assert count_diversity(frame, space=space) == pytest.approx(mean(unequal(a, b) for a, b in pairs) / 3)


@given(S=rows.filter(lambda S: len(S) > 1), order=st.randoms())
def test_the_order_of_rows_does_not_matter(S, order):
    space, turned = FeatureSpace([SPACE["pay"], SPACE["age"], SPACE["job"]]), list(S)
    order.shuffle(turned)
    first, second = (pd.DataFrame(rows, columns=space.names) for rows in (S, turned))

    for metric in (count_diversity, categorical_diversity, unique_fraction):
        assert metric(first, space=space) == pytest.approx(metric(second, space=space))


def test_without_a_space_columns_that_are_no_numbers_are_categories():
    # pay and age numeric, job, size and own not: as with the space
    assert categorical_proximity(X, S) == categorical_proximity(X, S, space=SPACE)
    assert continuous_proximity(X, S, scale="none") == continuous_proximity(X, S, space=SPACE, scale="none")


def test_another_way_to_put_columns_together_is_refused():
    with pytest.raises(UnknownNameError, match="over is 'max'. Choose from: mean, sum"):
        continuous_proximity(X, S, over="max")
    with pytest.raises(UnknownNameError, match="continuous_diversity needs a known over"):
        continuous_diversity(S, over=None)


def test_empty_sets_are_refused():
    for metric in (sparsity, categorical_proximity, continuous_proximity, changed_count):
        with pytest.raises(InvalidValueError, match=f"{metric.__name__} needs a row in S"):
            metric(X, S.iloc[:0])
    for metric in (count_diversity, categorical_diversity, continuous_diversity, unique_fraction):
        with pytest.raises(InvalidValueError, match=f"{metric.__name__} needs a row in S"):
            metric(np.empty((0, 3)))

"""Tables of any origin mean the same, and what cannot be read is refused by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ceopt
from ceopt import Feature, FeatureSpace
from ceopt.formulations.predictors import Affine
from ceopt.metrics import continuous_proximity, k_distance, sparsity
from ceopt.metrics.distance import scales_of
from ceopt.oracle.rows import read
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

SPACE = FeatureSpace(
    [
        Feature("pay", kind="continuous"),
        Feature("age", kind="integer"),
        Feature("job", kind="categorical", levels=("a", "b")),
    ]
)
FRAME = pd.DataFrame({"pay": [1.0, 2.0], "age": [30, 40], "job": ["a", "b"]})


@pytest.mark.parametrize(
    "table",
    [
        FRAME,
        FRAME[["job", "age", "pay"]],
        FRAME.astype({"age": "Int64", "job": "category"}),
        FRAME.astype(object),
        FRAME.to_numpy(),
        FRAME.to_numpy().tolist(),
        FRAME.to_dict("records"),
        [row for _, row in FRAME.iterrows()],
    ],
)
def test_any_form_reads_as_the_same_rows(table):
    (rows,) = read("test", SPACE, S=table)

    assert (rows.numeric, rows.categorical) == (("pay", "age"), ("job",))
    assert rows.numbers.tolist() == [[1, 30], [2, 40]]
    assert rows.codes.tolist() == [[0], [1]]


@pytest.mark.parametrize(
    "x",
    [
        {"age": 30, "job": "a", "pay": 1.0},
        FRAME.iloc[0],
        FRAME.iloc[[0]],
        [1.0, 30, "a"],
        np.array([1.0, 30, "a"], object),
    ],
)
def test_one_row_in_any_form(x):
    home, rows = read("test", SPACE, x=x, S=FRAME)

    assert home.numbers.tolist() == [[1, 30]]
    assert home.codes.tolist() == [[0]]
    assert len(rows) == 2


def test_a_solution_set_is_read_as_its_answers():
    space = FeatureSpace([Feature("pay", kind="integer", lower=0, upper=9)])
    result = ceopt.explain(Affine([1.0], -3.5, labels=("no", "yes")), {"pay": 2}, space, target="yes")

    assert k_distance(result.factual, result) == 2


def test_without_a_space_number_dtypes_are_numbers_and_arrays_all_are():
    (rows,) = read("test", S=FRAME.assign(own=[True, False]))
    (plain,) = read("test", S=[[1, True], [2, False]])

    assert (rows.numeric, rows.categorical) == (("pay", "age"), ("job", "own"))
    assert plain.numeric == (0, 1)


def test_columns_may_be_called_like_the_parts_of_a_result():
    S = pd.DataFrame({"counterfactuals": [1.0], "factual": [2.0], "results": [3.0], "queries": [4.0]})

    assert k_distance([1, 2, 3, 0], S) == 4
    assert ceopt.metrics.suite("copa2022", S, factual=[1, 2, 3, 0], missing="nan")["proximity"] == 4


def test_values_that_are_equal_are_one_category_across_tables():
    space = FeatureSpace([Feature("own", kind="binary", levels=(0, 1))])
    first, second = read("test", space, A=pd.DataFrame({"own": [True, False]}), B=pd.DataFrame({"own": [1.0, 0.0]}))

    assert first.codes.tolist() == second.codes.tolist() == [[1], [0]]


def test_a_value_outside_the_levels_or_not_whole_is_still_measured():
    """Other libraries return such, and how far they are is a question too."""
    S = pd.DataFrame({"pay": [1.0], "age": [30.5], "job": ["unheard of"]})

    assert sparsity(FRAME.iloc[0], S, space=SPACE) == pytest.approx(1 / 3)
    assert continuous_proximity(FRAME.iloc[0], S, space=SPACE, scale="none", over="sum") == -0.5
    assert k_distance(FRAME.iloc[0], S, space=SPACE) == 1.5


@pytest.mark.parametrize(
    ("tables", "error", "message"),
    [
        ({"S": [[1.0], [np.inf]]}, InvalidValueError, "column 0 of S has inf in row 1"),
        ({"S": [["x"]]}, InvalidTypeError, "numbers in column 0, but S has 'x' there"),
        ({"S": [[1, 2], [3]]}, InvalidValueError, "rows of one length in S"),
        ({"S": [1, 2, 3]}, InvalidValueError, "two dimensions as S, but its shape is"),
        ({"S": np.zeros((1, 1, 1))}, InvalidValueError, "two dimensions as S"),
        ({"S": 7}, InvalidTypeError, "rows as S, but S is int"),
        ({"S": "text"}, InvalidTypeError, "rows as S, but S is str"),
        ({"A": [[1, 2]], "B": [[1]]}, InvalidValueError, "2 columns in B, but it has 1"),
        ({"x": [[1], [2]], "S": [[1]]}, InvalidValueError, "one row as x, but x has 2 rows"),
        ({"x": [1, 2], "S": [[1]]}, InvalidValueError, "columns in S, but it has 1"),
        ({"x": [], "S": [[1]]}, InvalidValueError, "x has 0 rows"),
        ({"x": {"a": 1}, "S": pd.DataFrame({"a": [1], "b": [2]})}, InvalidValueError, "'b' of x is missing"),
        ({"x": {"a": 1, "c": 0}, "S": pd.DataFrame({"a": [1]})}, InvalidValueError, "'c' of x is too much"),
        ({"S": pd.DataFrame([[1, 2]], columns=["a", "a"])}, InvalidValueError, "'a' is there twice"),
        ({"S": pd.DataFrame({"a": [[1, 2]]})}, InvalidTypeError, "plain values as categories, but column 'a' of S"),
        (
            {"x": {"a": "3"}, "S": pd.DataFrame({"a": [1]})},
            InvalidTypeError,
            "numbers in column 'a', but x has '3' there",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(tables, error, message):
    with pytest.raises(error, match=message):
        read("test", **tables)


def test_a_space_wants_its_own_columns():
    with pytest.raises(InvalidValueError, match="'job' is missing"):
        read("test", SPACE, S=FRAME.drop(columns="job"))
    with pytest.raises(UnknownNameError, match="test \\(S\\) needs a known column, but column is 'target'"):
        read("test", SPACE, S=FRAME.assign(target=1))
    with pytest.raises(InvalidValueError, match="3 columns in S, but it has 2"):
        read("test", SPACE, S=[[1, 2]])
    with pytest.raises(InvalidTypeError, match="numbers in column 'age', but S has 'old' there"):
        read("test", SPACE, S=FRAME.assign(age="old"))
    with pytest.raises(InvalidTypeError, match="numbers in column 'age', but S has True there"):
        read("test", SPACE, S=FRAME.assign(age=True))


# ---- scales ----------------------------------------------------------------------------------------------------------
PEOPLE = [[1, 10], [2, 10], [4, 10], [9, 30]]


def test_scales_by_hand():
    (data,) = read("test", data=PEOPLE)
    tables = [data]

    # column 0: median 3, deviations 2, 1, 1, 6, of which the median is 1.5; mean 4, squares 9 + 4 + 0 + 25 over 4
    assert scales_of("test", tables, "mad", data=data, zero=1.0).tolist() == [1.5, 1]
    assert scales_of("test", tables, "std", data=data)[0] == pytest.approx(np.sqrt(38 / 4))
    assert scales_of("test", tables, "range", data=data).tolist() == [8, 20]
    assert scales_of("test", tables, "none").tolist() == [1, 1]
    assert scales_of("test", tables, {0: 2.0, 1: 3.0}).tolist() == [2, 3]
    assert scales_of("test", tables, [2.0, 3.0]).tolist() == [2, 3]


def test_a_space_gives_its_own_scales():
    space = FeatureSpace.infer(pd.DataFrame(PEOPLE, columns=["a", "b"]))
    (rows,) = read("test", space, S=[[1, 2]])

    assert scales_of("test", [rows], "mad", zero=7.0).tolist() == [1.5, 7]
    assert scales_of("test", [rows], "range").tolist() == [8, 20]


def test_a_scale_of_zero_is_refused_where_it_matters_and_only_there():
    with pytest.raises(InvalidValueError, match="a scale that is not zero, but that of column 1 is 0. Pass zero=1.0"):
        continuous_proximity([1, 10], [[1, 20]], data=PEOPLE)
    # the column stays, so it adds nothing whatever divides it; the other moves by 3 / 1.5
    assert continuous_proximity([1, 10], [[4, 10]], data=PEOPLE) == -1
    # divided by 1 instead: (0 + 10) / 2
    assert continuous_proximity([1, 10], [[1, 20]], data=PEOPLE, zero=1.0) == -5


@pytest.mark.parametrize(
    ("scale", "error", "message"),
    [
        ("MAD", UnknownNameError, "scale is 'MAD'. Choose from: none, mad, std, range"),
        ("mad", InvalidValueError, "data for scale='mad', but there is none for column 0"),
        ({0: 1.0}, InvalidValueError, "a scale for every numeric column, but 1 has none"),
        ({0: 1.0, 1: 1.0, 7: 1.0}, UnknownNameError, "numeric column in scale is 7"),
        ([1.0], InvalidValueError, "a scale for each of 2 numeric columns, but its shape is"),
        ([1.0, -1.0], InvalidValueError, "positive scales, but that of column 1 is -1"),
        ([1.0, np.nan], InvalidValueError, "positive scales, but that of column 1 is nan"),
    ],
)
def test_bad_scales(scale, error, message):
    with pytest.raises(error, match=message):
        k_distance([0, 0], [[1, 1]], scale=scale)


def test_what_replaces_zero_is_positive():
    with pytest.raises(InvalidValueError, match="zero is 0"):
        k_distance([0], [[1]], zero=0.0)

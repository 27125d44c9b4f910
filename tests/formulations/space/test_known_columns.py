"""Columns that a space does not have: left out, named by one warning a call, shown where the call stands."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pandas as pd
import pytest

import ceopt
from ceopt.formulations.predictors import Affine
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.surrogates import LocalSurrogateRecourse

PEOPLE = pd.DataFrame({"income": [1.0, 2.5, 4.0, 9.0], "debt": [2, 1, 0, 1]})
LABELLED = PEOPLE.assign(decision=["no", "no", "yes", "yes"], branch="north")
SPACE = ceopt.FeatureSpace.infer(PEOPLE)
MODEL = Affine([1.0, -0.5], -3.0, labels=("no", "yes"))


def heard(call: Any) -> tuple[Any, list[warnings.WarningMessage]]:
    """What a call returns, and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return call(), caught


@pytest.mark.parametrize(
    "row",
    [
        LABELLED.iloc[[0]],
        LABELLED.iloc[0],
        LABELLED.iloc[0].to_dict(),
        LABELLED[["branch", "debt", "income"]].iloc[[0]],
    ],
    ids=["frame", "series", "dict", "another order"],
)
def test_explain_leaves_them_out_of_a_row(row):
    result, caught = heard(lambda: ceopt.explain(MODEL, row, SPACE, target="yes"))
    (warning,) = caught
    assert warning.category is ceopt.SpaceWarning
    assert "'branch' of row, which the space does not know" in str(warning.message)
    assert str(warning.message).startswith("explain leaves out ")
    assert result.status == "optimal"
    assert result.factual.columns.tolist() == ["income", "debt"]
    assert result[0].cost == ceopt.explain(MODEL, PEOPLE.iloc[[0]], SPACE, target="yes")[0].cost


def test_one_warning_a_call_names_the_columns_of_all_frames():
    def ask() -> Any:
        starts = LABELLED[["income", "debt", "decision"]]
        line = inspect.currentframe().f_lineno + 1
        ceopt.explain(
            MODEL, PEOPLE.iloc[0], SPACE, target="yes", data=LABELLED, starts=starts, constraints=ceopt.Hull()
        )
        return line

    line, caught = heard(ask)
    (warning,) = caught
    assert "'decision', 'branch' of data and starts" in str(warning.message)
    assert warning.filename == __file__
    assert warning.lineno == line


def test_a_surrogate_is_given_the_known_columns_too():
    asked = {"target": True, "data": LABELLED, "surrogate": LocalSurrogateRecourse()}
    result, caught = heard(lambda: ceopt.explain(lambda rows: rows["income"] > 3.0, LABELLED.iloc[[0]], SPACE, **asked))
    assert result.status == "feasible"
    assert [str(warning.message).partition(", which")[0] for warning in caught] == [
        "explain leaves out 'decision', 'branch' of row and data"
    ]


@pytest.mark.long
@pytest.mark.parametrize("surrogate", [None, LocalSurrogateRecourse()], ids=["exact", "surrogate"])
def test_recourse_names_them_once_for_fit_and_once_for_explain(surrogate):
    recourse = ceopt.Recourse(MODEL, SPACE, target="yes", data=LABELLED, surrogate=surrogate)
    fitted, at_fit = heard(lambda: recourse.fit(LABELLED))
    assert [str(warning.message).partition(", which")[0] for warning in at_fit] == [
        "Recourse.fit leaves out 'decision', 'branch' of X and data"
    ]
    assert at_fit[0].filename == __file__
    assert fitted.data_.columns.tolist() == ["income", "debt"]
    cohort, at_explain = heard(lambda: fitted.explain(LABELLED))
    (warning,) = at_explain
    assert str(warning.message).startswith("Recourse.explain leaves out 'decision', 'branch' of frame")
    plain = ceopt.Recourse(MODEL, SPACE, target="yes", surrogate=surrogate).fit(PEOPLE).explain(PEOPLE)
    pd.testing.assert_frame_equal(cohort.to_frame(), plain.to_frame())


def test_starts_of_a_recourse_may_hold_them():
    recourse = ceopt.Recourse(MODEL, SPACE, target="yes", starts=LABELLED)
    _, caught = heard(lambda: recourse.fit(PEOPLE).explain(PEOPLE))
    (warning,) = caught
    assert "of starts" in str(warning.message)


@pytest.mark.parametrize(
    "answers",
    [
        LABELLED.iloc[2:],
        [LABELLED.iloc[2], PEOPLE.iloc[3].to_dict()],
        LABELLED.iloc[2].to_dict(),
    ],
    ids=["frame", "list", "dict"],
)
def test_verify_checks_what_the_space_knows(answers):
    report, caught = heard(
        lambda: ceopt.verify(answers, MODEL, SPACE, target="yes", factual=LABELLED.iloc[[0]], data=LABELLED)
    )
    assert report.ok
    (warning,) = caught
    assert str(warning.message).startswith("verify leaves out 'decision', 'branch' of answers and factual and data")
    assert warning.filename == __file__


def test_a_missing_column_is_refused_in_the_name_of_the_call():
    misspelt = PEOPLE.rename(columns={"debt": "dept"}).iloc[[0]]
    with pytest.raises(
        InvalidValueError, match="^explain needs every column of the space, but 'debt' is missing"
    ) as caught:
        ceopt.explain(MODEL, misspelt, SPACE, target="yes")
    assert "leave out 'dept'" in str(caught.value)
    with pytest.raises(InvalidValueError, match="^verify needs every column of the space, but 'debt' is missing"):
        ceopt.verify([PEOPLE.iloc[3]], MODEL, SPACE, target="yes", factual=misspelt)
    with pytest.raises(UnknownNameError, match="'dept'. Did you mean 'debt'"):
        ceopt.Recourse(MODEL, SPACE, target="yes").fit(PEOPLE.rename(columns={"debt": "dept"}))
    report = ceopt.verify(misspelt, MODEL, SPACE, target="yes", factual=PEOPLE.iloc[0])
    assert report.to_frame()["broken"][0] == ("debt: missing from the row", "dept: not a column of the space")


@pytest.mark.parametrize(
    ("row", "error", "match"),
    [
        (PEOPLE, InvalidValueError, "^explain needs a frame of one row, but it has 4 rows"),
        (PEOPLE.iloc[:0], InvalidValueError, "^explain needs a frame of one row, but it has 0 rows"),
        ([1.0, 2], InvalidTypeError, "^explain needs a Series, a dict or a one-row frame, but it got list"),
        (
            PEOPLE.iloc[[0]][["income", "debt", "debt"]],
            InvalidValueError,
            "^explain needs each column once, but 'debt'",
        ),
        (
            pd.concat([PEOPLE.iloc[0], PEOPLE.iloc[0]]),
            InvalidValueError,
            "^explain needs each column once, but 'income'",
        ),
        ({}, InvalidValueError, "^explain needs every column of the space, but 'income', 'debt' is missing"),
        (PEOPLE.assign(income=None).iloc[0], InvalidValueError, "^Column 'income' needs a value"),
    ],
)
def test_no_row_is_refused_in_the_name_of_explain(row, error, match):
    with pytest.raises(error, match=match):
        ceopt.explain(MODEL, row, SPACE, target="yes")


def test_no_warning_where_nothing_is_left_out():
    _, caught = heard(lambda: ceopt.explain(MODEL, PEOPLE.iloc[[0]], SPACE, target="yes", data=PEOPLE))
    assert caught == []


def test_it_is_silenced_by_its_category():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ceopt.SpaceWarning)
        assert ceopt.explain(MODEL, LABELLED.iloc[0], SPACE, target="yes").status == "optimal"


@pytest.mark.parametrize("word", ["data", "starts"])
def test_a_mapping_is_no_frame_and_is_named(word: str) -> None:
    whole = {"income": [1.0], "debt": [2], "other": [1]}
    warnings.simplefilter("ignore", ceopt.SpaceWarning)
    with pytest.raises(ceopt.solvers.errors.CeoptError, match=f"explain needs a DataFrame as {word}"):
        ceopt.explain(MODEL, PEOPLE.iloc[0], SPACE, target="yes", **{word: whole})

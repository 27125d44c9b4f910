"""Black boxes: what they answer, what is refused at once, and what is counted."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import SVC

from ceopt import AtLeast, CeoptError, FeatureSpace, OtherThan, Probability
from ceopt.formulations.predictors import Affine
from ceopt.surrogates import BlackBox, QueryLimitError

X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
y = np.where(X["a"] + X["b"] > 0, "good", "bad")
SPACE = FeatureSpace.infer(X)


def box(model: Any, target: Any = "good", **options: Any) -> BlackBox:
    return BlackBox(model, target, **{"columns": list(X), "dtypes": X.dtypes} | options)


def test_a_function_is_asked_with_the_frame_that_it_knows() -> None:
    seen: list[pd.DataFrame] = []

    def predict(rows: pd.DataFrame) -> Any:
        seen.append(rows)
        return (rows["kids"] > 1).to_numpy()

    frame = pd.DataFrame({"kids": np.array([1, 2], dtype=np.int32), "job": pd.Categorical(["cook", "nurse"])})
    asked = BlackBox(predict, True, columns=list(frame), dtypes=frame.dtypes)
    given = pd.DataFrame({"job": ["nurse", "cook"], "kids": np.array([3, 0], dtype=np.int64)})

    assert asked.favourable(given).tolist() == [True, False]
    assert all(rows.dtypes.equals(frame.dtypes) for rows in seen)
    assert asked.favourable(given.assign(kids=[0.5, 1.5])).tolist() == [False, True]  # not cut to whole numbers


@pytest.mark.parametrize(
    ("target", "label"),
    [("good", "good"), ({"good"}, "good"), (["good"], "good"), (OtherThan("bad"), "good"), ("bad", "bad")],
)
def test_targets(target: Any, label: str) -> None:
    model = LogisticRegression().fit(X, y)
    function = functools.partial(model.predict)  # no method of the model, but a function
    for asked in (box(model.predict, target), box(model, target, space=SPACE), box(function, target)):
        assert asked.favourable(X).tolist() == (model.predict(X) == label).tolist()
        assert asked.labels(X.head(3)).tolist() == model.predict(X.head(3)).tolist()


def test_values_and_probabilities() -> None:
    values = LinearRegression().fit(X, X["a"])
    assert box(values, AtLeast(0.5), space=SPACE).favourable(X).tolist() == (values.predict(X) >= 0.5).tolist()
    assert box(lambda rows: rows["a"], AtLeast(0.5)).favourable(X).tolist() == (X["a"] >= 0.5).tolist()
    model = LogisticRegression().fit(X, y)
    sure = box(model, Probability("good", at_least=0.9), space=SPACE)
    assert sure.favourable(X).tolist() == (model.predict_proba(X)[:, 1] >= 0.9).tolist()
    np.testing.assert_allclose(sure.leaning(X), model.predict_proba(X)[:, 1] - 0.9)
    np.testing.assert_allclose(box(model, "bad", space=SPACE).leaning(X), model.predict_proba(X)[:, 0] - 0.5)
    by_label = box(lambda rows: np.where(rows["a"] > 0, "good", "bad")).leaning(X)
    assert by_label.tolist() == np.where(X["a"] > 0, 0.5, -0.5).tolist()
    affine = Affine([1.0, 1.0], 0.0, labels=("bad", "good"))
    assert box(affine, space=SPACE).favourable(X).tolist() == (X["a"] + X["b"] > 0).tolist()


def test_a_model_fitted_on_an_array_is_given_one() -> None:
    """No warning of scikit-learn about names, which --strict-warnings would make an error."""
    model = SVC().fit(X.to_numpy(), y)
    for asked in (model, model.predict):
        found = box(asked, space=SPACE).favourable(X[["b", "a"]])
        assert found.tolist() == (model.predict(X.to_numpy()) == "good").tolist()


def test_rows_are_counted_and_limited() -> None:
    sent: list[int] = []

    def predict(rows: pd.DataFrame) -> Any:
        sent.append(len(rows))
        return np.where(rows["a"] > 0, "good", "bad")

    asked = box(predict, max_queries=110)
    asked.favourable(X.head(10))
    assert asked.n_queries == sum(sent) == 20  # the first rows twice
    asked.of_data(X)
    asked.of_data(X)
    assert asked.n_queries == sum(sent) == 80
    with pytest.raises(QueryLimitError, match=re.escape("it was sent 80 rows and max_queries is 110. Raise")):
        asked.favourable(X.head(31))
    assert sum(sent) == 80
    other = asked.again(max_queries=5)
    other.of_data(X)
    assert (other.n_queries, asked.n_queries) == (0, 80)
    with pytest.raises(QueryLimitError, match="max_queries is 5"):
        other.favourable(X)


def _fails(rows: pd.DataFrame) -> Any:
    raise KeyError("colour")


def _coin() -> Callable[[Any], Any]:
    rng = np.random.default_rng(0)
    return lambda rows: rng.choice(["good", "bad"], size=len(rows))


def _by_place(rows: pd.DataFrame) -> Any:
    """Answers by the place of a row in the batch."""
    return np.where(np.arange(len(rows)) < len(rows) / 2, "good", "bad")


@pytest.mark.parametrize(
    ("predict", "target", "message"),
    [
        (lambda rows: 1 / (1 + np.exp(-rows["a"])), 1, "labels, of which 1 is one, but predict returned 0."),
        (lambda rows: np.ones((len(rows), 2)) / 2, 1, "one label for each of 60 rows, but predict returned shape (60,"),
        (lambda rows: np.ones(len(rows) - 1), 1, "predict returned shape (59,)"),
        (lambda _: "good", "good", "predict returned one str"),
        (lambda rows: np.repeat("good", len(rows)), 1, "labels of the kind of 1, which is the target, but predict"),
        (lambda rows: np.ones(len(rows)), "good", "labels of the kind of 'good', which is the target"),
        (lambda rows: np.repeat("good", len(rows)), AtLeast(1.0), "numbers to hold against AtLeast(value=1.0)"),
        (lambda rows: np.full(len(rows), np.nan), 1, "a label for every row"),
        (lambda rows: [None] * len(rows), "good", "a label for every row"),
        (_fails, "good", "an answer for 60 rows, but predict raised KeyError: 'colour'"),
        (_coin(), "good", "the same answer when asked again, but row"),
        (_by_place, "good", "the same answer when asked again, but row"),
    ],
)  # fmt: skip
def test_answers_that_are_none_are_refused_at_once(predict: Any, target: Any, message: str) -> None:
    with pytest.raises(CeoptError, match=re.escape(message)):
        box(predict, target).favourable(X)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("model.pkl", {}, "a fitted model or a function of rows, but it is 'model.pkl'"),
        (LogisticRegression, {}, "a fitted model or a function of rows"),
        (5, {}, "but it is int"),
        (LogisticRegression(), {"space": SPACE}, "LogisticRegression is not fitted"),
        (LogisticRegression().fit(X, y), {"space": SPACE, "target": "god"}, "Did you mean 'good'?"),
        (len, {"target": None}, "target is None"),
        (len, {"target": Probability("good", at_least=0.7)}, "a fitted model and its space"),
        (len, {"max_queries": 0}, "max_queries is 0"),
    ],
)
def test_what_is_no_black_box_is_refused(model: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(CeoptError, match=re.escape(message)):
        box(model, **options)


def test_an_empty_frame_asks_nothing() -> None:
    assert box(_fails).favourable(X.head(0)).tolist() == []


def test_one_row_is_told_as_one() -> None:
    asked = BlackBox(lambda rows: rows / 0, True, columns=["a"], dtypes={"a": np.dtype(float)}, max_queries=1)
    one = pd.DataFrame({"a": [1.0]})

    with pytest.raises(CeoptError, match="needs an answer for 1 row, but predict raised"):
        asked.favourable(one.assign(a="x"))
    with pytest.raises(QueryLimitError, match="needs room for 1 more row, but it was sent 1 row and"):
        asked.favourable(one)

"""Validity under retrained models."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ceopt import AtLeast, CeoptError, FeatureSpace, metrics
from ceopt.metrics import future_validity

X = np.random.default_rng(0).normal(size=(120, 2))
y = np.where(X[:, 0] + 0.5 * np.random.default_rng(1).normal(size=120) > 0.4, "good", "bad")
S = np.column_stack([np.linspace(0.2, 0.6, 9), np.zeros(9)])


class Kept(LogisticRegression):
    """Keeps the models that were fitted."""

    models: ClassVar[list[Any]] = []

    def fit(self, X: Any, y: Any) -> Any:
        found = super().fit(X, y)
        self.models.append((found, len(y), (y == "good").sum()))
        return found


def test_it_is_robustness_under_models_of_stratified_parts() -> None:
    Kept.models.clear()
    shares = future_validity(S, Kept(), X, y, "good", n_models=15, fraction=0.3)
    models, sizes, goods = zip(*Kept.models, strict=True)

    assert set(sizes) == {round(0.3 * (y == "good").sum()) + round(0.3 * (y == "bad").sum())}
    assert set(goods) == {round(0.3 * (y == "good").sum())}
    assert shares.tolist() == metrics.robustness(S, models, "good").tolist()
    assert (np.diff(shares) >= 0).all()
    assert len(set(shares)) > 2


@pytest.mark.parametrize("estimator", [LogisticRegression(), SGDClassifier(max_iter=2000)], ids=["fixed", "random"])
def test_the_same_whatever_the_number_of_processes(estimator: Any) -> None:
    one = future_validity(S, estimator, X, y, "good", n_models=6)
    with joblib.parallel_config(backend="threading"):
        two = future_validity(S, estimator, X, y, "good", n_models=6, n_jobs=2)

    assert one.tolist() == two.tolist()
    assert not hasattr(estimator, "coef_")


@pytest.mark.long  # processes take seconds to start; those of bootstrap_moments start in every run
def test_other_processes_give_the_same() -> None:
    here = future_validity(S, LogisticRegression(), X, y, {"good"}, n_models=4)
    there = future_validity(S, LogisticRegression(), X, y, {"good"}, n_models=4, n_jobs=2)

    assert here.tolist() == there.tolist()


def test_mixed_frames_pipelines_and_a_space() -> None:
    frame = pd.DataFrame({"income": X[:, 0], "job": np.where(X[:, 1] > 0, "cook", "nurse")})
    pipeline = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    people = frame.head(3)
    shares = future_validity(people, pipeline, frame, y, "good", n_models=3, space=FeatureSpace.infer(frame))

    assert shares.shape == (3,)
    plain = make_pipeline(StandardScaler(), LogisticRegression())
    assert future_validity(pd.DataFrame(S), plain, pd.DataFrame(X), pd.Series(y), "good", n_models=3).shape == (9,)


def test_regressors_are_retrained_on_parts_of_all_rows() -> None:
    shares = future_validity([[1.0, 0.0], [-1.0, 0.0]], LinearRegression(), X, 2 * X[:, 0], AtLeast(1.5), n_models=4)

    assert shares.tolist() == [1.0, 0.0]


def test_a_class_that_is_rare_is_in_every_part() -> None:
    labels = np.array(["bad"] * 119 + ["good"])
    shares = future_validity(S, DummyClassifier(strategy="constant", constant="good"), X, labels, "good", n_models=5)

    assert shares.tolist() == [1.0] * 9  # the dummy refuses a constant that it has not seen


def test_progress_and_warnings(capfd: Any) -> None:
    future_validity(S, LogisticRegression(), X, y, "good", n_models=3)
    assert capfd.readouterr() == ("", "")
    future_validity(S, LogisticRegression(), X, y, "good", n_models=3, progress=True)
    assert "3/3" in capfd.readouterr().err
    with pytest.warns(UserWarning, match="2 of 2 fits did not converge: raise max_iter") as caught:
        future_validity(S, MLPClassifier((3,), max_iter=1), X, y, "good", n_models=2)
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_models": 0}, "n_models is 0"),
        ({"estimator": LogisticRegression}, "it is the class LogisticRegression"),
        ({"fraction": 1.2}, "fraction is 1.2"),
        ({"fraction": 0.0}, "fraction is 0.0"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"random_state": None}, "random_state is None"),
        ({"progress": 2}, "True or False as progress"),
        ({"estimator": "logistic"}, "a scikit-learn estimator, but it is str"),
        ({"y": y[:5]}, "X has 120 rows and y 5"),
        ({"y": np.array([None, *y[1:]], dtype=object)}, "y has none in row 0"),
        ({"S": []}, "S is empty"),
        ({"target": "great"}, "Choose from: 'bad', 'good'"),
        ({"target": None}, "target is None"),
    ],
)
def test_misuse_is_refused(changes: dict[str, Any], message: str) -> None:
    given = {"S": S, "estimator": LogisticRegression(), "X": X, "y": y, "target": "good", "n_models": 2} | changes
    with pytest.raises(CeoptError, match=re.escape(message)):
        future_validity(**given)

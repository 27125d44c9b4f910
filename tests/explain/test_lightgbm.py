"""LightGBM through explain: verified, as cheap as brute force, and the same from an object and from its file."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import lattice
import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import ceopt

JOBS = list("abcdef")
LATTICE = pd.DataFrame(
    list(itertools.product(range(6), JOBS, range(4), (False, True))), columns=["years", "job", "code", "owner"]
)
LATTICE["job"] = pd.Categorical(LATTICE["job"], list("fedcba"))
SPACE = (
    ceopt.FeatureSpace.infer(LATTICE, integer=["code"])
    .update("years", lower=0, upper=5)
    .update("code", kind="categorical", levels=[0, 1, 2, 3])
)
VALUE = (
    LATTICE["years"]
    + 3.0 * LATTICE["job"].isin(["a", "c", "d"])
    - 2.0 * (LATTICE["code"] == 2)
    + LATTICE["owner"]
    + np.random.default_rng(5).normal(0, 0.7, len(LATTICE))
)
CUTS = np.quantile(VALUE, [0.4, 0.85])
RARE = np.where(np.digitize(VALUE, CUTS) == 2, "yes", "no")
THREE = np.array(["low", "mid", "top"])[np.digitize(VALUE, CUTS)]

OPTIONS = {
    "n_estimators": 12, "num_leaves": 6, "min_child_samples": 3, "min_data_per_group": 1, "cat_smooth": 1.0,
    "max_cat_to_onehot": 2, "verbose": -1, "random_state": 0, "n_jobs": 1,
}  # fmt: skip
NATIVE = {"categorical_feature": ["job", "code"]}
BINARY: dict[str, dict[str, Any]] = {
    "plain": {},
    "sigmoid": {"sigmoid": 2.0},
    "rf": {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.7},
    "dart": {"boosting_type": "dart"},
    "zero as missing": {"zero_as_missing": True},
}
L1 = ceopt.L1(scale="none")


def steps_from(row: pd.DataFrame) -> Any:
    """The l1 cost of each lattice point."""
    move = np.abs(LATTICE["years"] - row["years"].item()).astype(float)
    for name in ("job", "code", "owner"):
        move += LATTICE[name].astype(object) != row[name].item()
    return move.to_numpy()


agree = partial(lattice.agree, lattice=LATTICE, space=SPACE, rows=5, cost=L1, steps=lambda row, _: steps_from(row))


@pytest.mark.long(every=5)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("target", ["yes", "no"])
def test_two_classes(name: str, target: str) -> None:
    model = lightgbm.LGBMClassifier(**{**OPTIONS, **BINARY[name]}).fit(LATTICE, RARE, **NATIVE)
    agree(model, model.predict(LATTICE) == target, target)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("objective", ["multiclass", "multiclassova"])
@pytest.mark.parametrize("target", ["top", "mid", {"low", "mid"}])
def test_several_classes(objective: str, target: Any) -> None:
    model = lightgbm.LGBMClassifier(objective=objective, **OPTIONS).fit(LATTICE, THREE, **NATIVE)
    wanted = target if isinstance(target, set) else {target}
    agree(model, np.isin(model.predict(LATTICE), list(wanted)), target, rows=4)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("objective", ["regression", "regression_l1", "quantile"])
def test_regressors(objective: str) -> None:
    model = lightgbm.LGBMRegressor(objective=objective, **OPTIONS).fit(LATTICE, VALUE, **NATIVE)
    level = float(np.quantile(model.predict(LATTICE), 0.8)) + 1e-3
    agree(model, model.predict(LATTICE) >= level, ceopt.AtLeast(level))


@pytest.mark.long(every=8)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(("label", "at_least"), [("yes", 0.35), ("yes", 0.5), ("no", 0.9)])
def test_probabilities(name: str, label: str, at_least: float) -> None:
    model = lightgbm.LGBMClassifier(**{**OPTIONS, **BINARY[name]}).fit(LATTICE, RARE, **NATIVE)
    share = model.predict_proba(LATTICE)[:, model.classes_.tolist().index(label)]
    agree(model, share >= at_least, ceopt.Probability(label, at_least), rows=3)


@pytest.mark.long
def test_a_pipeline() -> None:
    columns = make_column_transformer((OneHotEncoder(), ["job", "code"]), remainder="passthrough")
    model = make_pipeline(columns, lightgbm.LGBMClassifier(**OPTIONS)).fit(LATTICE, RARE)
    agree(model, model.predict(LATTICE) == "yes", "yes")


def test_an_object_and_its_file_give_the_same_answers(tmp_path: Any) -> None:
    data = lightgbm.Dataset(LATTICE, np.digitize(VALUE, CUTS), **NATIVE)
    options = {**OPTIONS, "objective": "multiclass", "num_class": 3}
    rounds = options.pop("n_estimators")
    booster = lightgbm.train(options, data, rounds)
    path = tmp_path / "model.txt"
    booster.save_model(path)
    agree(path, booster.predict(LATTICE).argmax(axis=1) == 2, 2, rows=3)
    for start in (0, 30):
        answers = [
            ceopt.explain(model, LATTICE.iloc[[start]], SPACE, target=2, cost=L1, n=2).to_frame()
            for model in (booster, path, str(path))
        ]
        for other in answers[1:]:
            pd.testing.assert_frame_equal(answers[0], other)


@pytest.mark.long
def test_many_people_at_once_with_a_file(tmp_path: Any) -> None:
    model = lightgbm.LGBMClassifier(**OPTIONS).fit(LATTICE, RARE == "yes", **NATIVE)
    model.booster_.save_model(tmp_path / "model.txt")
    people = LATTICE[~model.predict(LATTICE)].iloc[::40]
    frames = [
        ceopt.Recourse(each, SPACE, target=target, cost=L1).fit(LATTICE).explain(people, n_jobs=n_jobs).to_frame()
        for each, target, n_jobs in ((model, True, 1), (tmp_path / "model.txt", 1, 2), (model.booster_, 1, 1))
    ]
    assert (frames[0]["status"] == "optimal").all()
    for other in frames[1:]:
        pd.testing.assert_frame_equal(frames[0], other)


def test_the_answer_is_the_next_float_after_a_threshold() -> None:
    """D9: 2.0500000000000003 is the threshold; kept as float32, the answer would be on the wrong side of it."""
    x = np.repeat([[2.0], [2.1]], 30, axis=0)
    model = lightgbm.LGBMRegressor(n_estimators=1, learning_rate=1.0, min_child_samples=1, verbose=-1)
    model.fit(x, x[:, 0] > 2.05)
    space = ceopt.FeatureSpace([ceopt.Feature("x", kind="continuous", lower=0.0, upper=9.0)])

    up = ceopt.explain(model, {"x": 2.0}, space, target=ceopt.AtLeast(0.5))
    down = ceopt.explain(model, {"x": 2.1}, space, target=ceopt.AtMost(0.5))

    assert up[0].values["x"] == np.nextafter(2.0500000000000003, 3.0)
    assert down[0].values["x"] == 2.0500000000000003
    assert up[0].verified
    assert down[0].verified
    assert model.predict([[up[0].values["x"]], [down[0].values["x"]]]).round().tolist() == [1.0, 0.0]


@pytest.mark.long(every=10)
@pytest.mark.parametrize("name", BINARY)
def test_a_person_who_cannot_move_keeps_the_class_that_predict_gives(name: str) -> None:
    model = lightgbm.LGBMClassifier(**{**OPTIONS, **BINARY[name]}).fit(LATTICE, RARE, **NATIVE)
    fixed = SPACE
    for column in SPACE.names:
        fixed = fixed.update(column, mutable=False)
    for start in range(0, len(LATTICE), 23):
        row = LATTICE.iloc[[start]]
        own = model.predict(row)[0]
        for label in ("yes", "no"):
            status = ceopt.explain(model, row, fixed, target=label).status
            assert status == ("already_favourable" if label == own else "infeasible")


@pytest.mark.parametrize("outer", [CalibratedClassifierCV(cv=2, ensemble=False), OneVsRestClassifier(None)])
def test_inside_models_of_scikit_learn(outer: Any) -> None:
    """A search, in a model of models; names with blanks pass through."""
    frame = LATTICE[["years", "owner"]].rename(columns={"years": "years of work"})
    search = GridSearchCV(lightgbm.LGBMClassifier(**OPTIONS), {"num_leaves": [5]}, cv=2)
    model = outer.set_params(estimator=search).fit(frame, np.where(frame.sum(axis=1) > 3, "yes", "no"))
    space, says = ceopt.FeatureSpace.infer(frame, moves={"years of work": "any"}), model.predict(frame)
    row = frame[says == "no"].iloc[[0]]

    result = ceopt.explain(model, row, space, target="yes", cost=L1)

    moves = np.abs(frame["years of work"] - row["years of work"].item()) + (frame["owner"] != row["owner"].item())
    assert result.status == "optimal"
    assert result[0].verified
    assert result[0].cost == pytest.approx(moves[says == "yes"].min())

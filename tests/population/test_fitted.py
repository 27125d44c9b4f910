"""After fit: what explain alone uses counts when it is called; what fit has used and has changed is refused."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt import Causal, Hull, IfThen, LinearEquation, MaxChanges, Recourse
from ceopt.formulations.predictors import Affine
from ceopt.solvers.errors import CeoptError

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.integers(0, 9, size=(150, 3)), columns=["a", "b", "c"])
Y = (X["a"] + 2 * X["b"] - X["c"] > 7).astype(int).to_numpy()
OTHER = (2 * X["a"] - X["b"] + X["c"] > 9).astype(int).to_numpy()
SPACE = ceopt.FeatureSpace.infer(X)
AGAIN = r"the model as fit has read it, but this .* was changed or fitted again since\. Call fit again"


def logistic(y: Any = Y) -> Any:
    return LogisticRegression(max_iter=1000).fit(X, y)


def rejected(model: Any, count: int = 3) -> pd.DataFrame:
    return X[model.predict(X) == 0].head(count)


# ---- parameters ------------------------------------------------------------------------------------------------------
def fresh(recourse: Recourse, people: pd.DataFrame) -> pd.DataFrame:
    """Return what a Recourse of the same parameters says that is fitted now."""
    return clone(recourse).fit(X).explain(people).to_frame()


@pytest.mark.long(every=6)
@pytest.mark.parametrize(
    "change",
    [
        {"constraints": [MaxChanges(1)]},
        {"constraints": MaxChanges(1)},
        {"constraints": [IfThen(("b", "changed"), ("a", "changed"))]},
        {"constraints": [Causal({"b": LinearEquation({"a": 1.0})}, intervention="soft")]},
        {"constraints": [Hull(X.head(60))]},
        {"cost": "l0"},
        {"cost": ceopt.Linf(scale="none") + 0.5 * ceopt.Changes()},
        {"cost": ceopt.Mahalanobis(np.eye(3))},
        {"n": 3},
        {"n": 2, "diversity": "support"},
        {"margin": 0.7},
        {"solver": "scip", "relative_gap": 1e-4, "time_limit_s": 30.0, "random_state": 3, "why": True},
    ],
)
def test_what_only_explain_uses_counts_when_it_is_called(change: dict[str, Any]) -> None:
    model = logistic()
    recourse, people = Recourse(model, SPACE, target=1, constraints=[MaxChanges(2)]).fit(X), rejected(model)
    recourse.explain(people)
    recourse.set_params(**change)
    cohort = recourse.explain(people)
    pd.testing.assert_frame_equal(cohort.to_frame(), fresh(recourse, people))
    assert all(result.status.is_settled for result in cohort)
    for name, value in change.items():
        assert recourse.get_params()[name] is value


def test_a_list_of_rules_that_grows_counts_too() -> None:
    model, rules = logistic(), [MaxChanges(3)]
    recourse, people = Recourse(model, SPACE, target=1, constraints=rules).fit(X), rejected(model)
    rules.append(ceopt.AllowedValues({"b": X["b"].unique().tolist()[:3]}))
    pd.testing.assert_frame_equal(recourse.explain(people).to_frame(), fresh(recourse, people))


def test_a_rule_that_has_learned_stays_while_others_come_and_go() -> None:
    model, hull = logistic(), Hull(radius=0.1)
    recourse, people = Recourse(model, SPACE, target=1, constraints=[hull, MaxChanges(2)]).fit(X, Y), rejected(model)
    both = recourse.explain(people).to_frame()
    recourse.set_params(constraints=[Hull(radius=0.1)])  # equal to the one that has learned
    alone = recourse.explain(people).to_frame()
    assert (alone["cost"] <= both["cost"] + 1e-9).all()
    recourse.set_params(constraints=[])
    assert (recourse.explain(people).to_frame()["cost"] <= alone["cost"] + 1e-9).all()
    recourse.set_params(constraints=[hull, MaxChanges(2)])
    pd.testing.assert_frame_equal(recourse.explain(people).to_frame(), both)


@pytest.mark.long(every=6)
@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"target": 0}, "the target that it was fitted with, but target was changed since. Call fit again"),
        ({"space": SPACE.update("a", mutable=False)}, "the space .* space was changed"),
        ({"data": X.head(50)}, "the data .* data was changed"),
        ({"constraints": [Hull()]}, "the constraints .* changed since, and Hull learns from the data. Call fit again"),
        ({"constraints": [MaxChanges(2), Hull(radius=0.5)]}, "Hull learns"),
        ({"cost": "mahalanobis"}, "the cost .* learned from the data. Call fit again"),
        ({"cost": ceopt.L1() + ceopt.Percentile("max")}, "the cost .* learned from the data"),
        ({"model": logistic(OTHER)}, "the model as fit has read it.* Call fit again"),
        ({"target": 7}, "class"),
        ({"cost": "l7"}, "'l7'"),
        ({"n": 0}, "n to be at least 1"),
        ({"solver": "cplex"}, "'cplex'"),
    ],
)
def test_what_fit_used_and_has_changed_is_refused(change: dict[str, Any], match: str) -> None:
    model = logistic()
    recourse = Recourse(model, SPACE, target=1).fit(X)
    recourse.set_params(**change)
    with pytest.raises(CeoptError, match=match):
        recourse.explain(rejected(model))
    recourse.set_params(**{name: clone(Recourse(model, SPACE, target=1)).get_params()[name] for name in change})
    recourse.set_params(model=model)
    assert len(recourse.explain(rejected(model))) == 3


def test_fit_again_takes_everything_as_it_is_now() -> None:
    model = logistic()
    recourse = Recourse(model, SPACE, target=1, cost="mahalanobis").fit(X)
    model.fit(X, OTHER)
    recourse.set_params(constraints=[Hull()], target=0, data=X.head(100))
    people = X[model.predict(X) == 1].head(2)
    cohort = recourse.fit(X).explain(people)
    for place, result in enumerate(cohort):
        alone = ceopt.explain(
            model, people.iloc[[place]], SPACE, target=0, cost="mahalanobis", constraints=[Hull()], data=X.head(100)
        )
        pd.testing.assert_frame_equal(result.to_frame(), alone.to_frame())


def test_frames_that_change_after_fit_do_not_matter() -> None:
    """What was learned is learned: fit keeps copies."""
    model = logistic()
    for cost in ("mahalanobis", ceopt.Percentile("total_log")):
        frame, data = X.copy(), X.copy()
        recourse = Recourse(model, SPACE, target=1, cost=cost, data=data, constraints=[Hull(radius=0.1)])
        recourse.fit(frame, Y)
        before = recourse.explain(rejected(model)).to_frame()
        frame.iloc[:, :] = 0
        data.iloc[:, :] = 0
        pd.testing.assert_frame_equal(recourse.explain(rejected(model)).to_frame(), before)
        assert recourse.data_["a"].max() == X["a"].max()


# ---- the model -------------------------------------------------------------------------------------------------------
def boosted(y: Any) -> Any:
    return xgboost.train({"objective": "binary:logistic", "max_depth": 2}, xgboost.DMatrix(X, y), 5)


MAKE: dict[str, Any] = {
    "logistic": logistic,
    "pipeline": lambda y=Y: make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y),
    "search": lambda y=Y: GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [2, 3]}, cv=2).fit(X, y),
    "forest": lambda y=Y: RandomForestClassifier(8, max_depth=3).fit(X, y),
    "boosting": lambda y=Y: GradientBoostingClassifier(n_estimators=5).fit(X, y),
    "network": lambda y=Y: MLPClassifier((4,), max_iter=2000, random_state=0).fit(X, y),
    "xgboost": lambda y=Y: xgboost.XGBClassifier(n_estimators=5, max_depth=2).fit(X, y),
    "lightgbm": lambda y=Y: lightgbm.LGBMClassifier(n_estimators=5, max_depth=2, verbose=-1).fit(X, y),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", MAKE)
def test_a_model_that_is_fitted_again_is_refused_and_one_that_is_used_is_not(kind: str) -> None:
    model = MAKE[kind]()
    recourse = Recourse(model, SPACE, target=1, time_limit_s=20).fit(X)
    people = X.head(1)
    recourse.explain(people)
    model.predict(X)
    model.predict_proba(X)
    np.random.random(7)  # noqa: NPY002 - models without a random_state hold the generator of the process
    recourse.explain(people)
    if kind == "search":
        model.param_grid = {"max_depth": [1]}
    model.fit(X, OTHER)
    with pytest.raises(CeoptError, match=AGAIN):
        recourse.explain(people)
    recourse.fit(X).explain(people)


def test_numbers_that_are_changed_in_place_are_noticed() -> None:
    model = logistic()
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, Y)
    plain = Affine([1.0, 2.0, -1.0], -7.5, labels=(0, 1))
    changes = {
        "coef_": (model, lambda: model.coef_.__setitem__((0, 1), 3.5)),
        "threshold": (tree, lambda: tree.tree_.threshold.__setitem__(0, 1.25)),
        "value": (tree, lambda: tree.tree_.value.__setitem__((slice(None), 0, 0), 0.75)),
        "classes_": (model, lambda: model.classes_.__setitem__(slice(None), [1, 0])),
    }
    for given, change in changes.values():
        recourse = Recourse(given, SPACE, target=1).fit(X)
        recourse.explain(X.head(1))
        change()
        with pytest.raises(CeoptError, match=AGAIN):
            recourse.explain(X.head(1))
    assert Recourse(plain, SPACE, target=1).fit(X).explain(X.head(1))


def test_native_boosters_that_learn_on_are_refused() -> None:
    booster = boosted(Y)
    recourse = Recourse(booster, SPACE, target=1).fit(X)
    recourse.explain(X.head(1))
    booster.update(xgboost.DMatrix(X, OTHER), 6)
    with pytest.raises(CeoptError, match=AGAIN):
        recourse.explain(X.head(1))
    data = lightgbm.Dataset(X, Y, free_raw_data=False)
    light = lightgbm.train({"objective": "binary", "verbose": -1}, data, 4, keep_training_booster=True)
    recourse = Recourse(light, SPACE, target=1).fit(X)
    recourse.explain(X.head(1))
    light.update()
    with pytest.raises(CeoptError, match=AGAIN):
        recourse.explain(X.head(1))


def test_a_file_that_changed_is_refused_and_one_that_is_gone_is_not(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    boosted(Y).save_model(path)
    recourse = Recourse(path, SPACE, target=1).fit(X)
    before = recourse.explain(X.head(2)).to_frame()
    kept = path.read_bytes()
    boosted(OTHER).save_model(path)
    with pytest.raises(CeoptError, match=r"this file '.*model\.json' was changed"):
        recourse.explain(X.head(2))
    path.write_bytes(kept)
    pd.testing.assert_frame_equal(recourse.explain(X.head(2)).to_frame(), before)
    path.unlink()
    pd.testing.assert_frame_equal(recourse.explain(X.head(2)).to_frame(), before)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_model_that_cannot_be_pickled_is_known_by_its_scores(wrapped: bool) -> None:
    model = LogisticRegression(max_iter=1000).fit(X, Y)
    model.watch = lambda: None
    given = make_pipeline(StandardScaler(), model).fit(X, Y) if wrapped else model
    recourse, people = Recourse(given, SPACE, target=1).fit(X), X.head(2)
    recourse.explain(people)
    model.coef_ *= 1.25
    with pytest.raises(CeoptError, match=AGAIN):
        recourse.explain(people)


def test_another_object_with_the_same_content_is_the_same_model() -> None:
    model = MAKE["forest"]()
    recourse, people = Recourse(model, SPACE, target=1).fit(X), rejected(model)
    before = recourse.explain(people).to_frame()
    recourse.set_params(model=pickle.loads(pickle.dumps(model)))
    pd.testing.assert_frame_equal(recourse.explain(people).to_frame(), before)


# ---- the conventions of scikit-learn ---------------------------------------------------------------------------------
def test_clone_keeps_the_fitted_model_and_is_not_fitted() -> None:
    model = logistic()
    recourse = Recourse(model, SPACE, target=1, constraints=[MaxChanges(2)]).fit(X)
    copy = clone(recourse)
    assert copy.get_params() == recourse.get_params()
    assert copy.model is model
    with pytest.raises(CeoptError, match="fit was not called"):
        copy.explain(X.head(1))
    copy.set_params(n=2).fit(X)
    assert len(copy.explain(rejected(model, 1))[0]) == 2
    assert len(recourse.explain(rejected(model, 1))[0]) == 1


@pytest.mark.long
def test_a_recourse_that_was_saved_goes_on_in_another_process(tmp_path: Path) -> None:
    expected = []
    files = []
    for kind in ("pipeline", "forest", "xgboost", "lightgbm", "network"):
        recourse = Recourse(MAKE[kind](), SPACE, target=1, constraints=[Hull(radius=0.2)], time_limit_s=20).fit(X, Y)
        files.append(str(tmp_path / f"{kind}.joblib"))
        joblib.dump((recourse, X.head(1)), files[-1])
        expected.append(str(recourse.explain(X.head(1))[0].status))
    code = (
        "import joblib, sys\n"
        "for file in sys.argv[1:]:\n"
        "    recourse, people = joblib.load(file)\n"
        "    print(recourse.explain(people)[0].status)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *files], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout.split()) == (0, expected), done.stderr


@pytest.mark.long
def test_workers_answer_under_the_parameters_of_now() -> None:
    model = logistic()
    recourse, people = Recourse(model, SPACE, target=1).fit(X), rejected(model, 4)
    recourse.set_params(constraints=[MaxChanges(1)], cost="linf")
    two, one = (recourse.explain(people, n_jobs=jobs).to_frame() for jobs in (2, 1))
    pd.testing.assert_frame_equal(two, one)
    pd.testing.assert_frame_equal(two, fresh(recourse, people))
    model.coef_[0, 0] += 1.0
    with pytest.raises(CeoptError, match=AGAIN):
        recourse.explain(people, n_jobs=2)


def test_resume_refuses_a_cohort_of_another_model_or_of_rules_that_learned_otherwise() -> None:
    model = logistic()
    recourse, people = Recourse(model, SPACE, target=1, constraints=[Hull(radius=0.2)]).fit(X, Y), rejected(model)
    cohort = recourse.explain(people)
    pd.testing.assert_frame_equal(recourse.explain(people, resume=cohort).to_frame(), cohort.to_frame())
    with pytest.raises(CeoptError, match="the same data to resume"):
        clone(recourse).fit(X.assign(c=X["c"].to_numpy()[::-1]), Y).explain(people, resume=cohort)
    with pytest.raises(CeoptError, match="the same constraints to resume"):
        recourse.set_params(constraints=[]).explain(people, resume=cohort)
    other = Recourse(logistic(OTHER), SPACE, target=1, constraints=[Hull(radius=0.2)]).fit(X, Y)
    with pytest.raises(CeoptError, match="the same model to resume"):
        other.explain(people, resume=cohort)
    same = Recourse(pickle.loads(pickle.dumps(model)), SPACE, target=1, constraints=[Hull(radius=0.2)]).fit(X, Y)
    pd.testing.assert_frame_equal(same.explain(people, resume=cohort).to_frame(), cohort.to_frame())


def test_a_rule_whose_regressor_is_fitted_again_counts_as_it_is_now() -> None:
    """In explain and under a Recourse: equations are read again where their regressor has changed."""
    model = Affine([1.0, 1.0, 0.0], -11.5, labels=(0, 1))
    regressor = LinearRegression().fit(X[["a"]], 2.0 * X["a"])
    rule = Causal({"b": regressor}, intervention="soft", slack=0.5)
    space, row = SPACE.update("b", mutable=True), {"a": 2, "b": 2, "c": 1}
    recourse = Recourse(model, space, target=1, constraints=[rule], cost=ceopt.L1(scale="none")).fit(X)
    people = pd.DataFrame([row])
    first = ceopt.explain(model, row, space, target=1, constraints=[rule], cost=ceopt.L1(scale="none"))
    assert recourse.explain(people)[0][0].cost == first[0].cost
    regressor.fit(X[["a"]], 0.0 * X["a"])
    now = ceopt.explain(model, row, space, target=1, constraints=[rule], cost=ceopt.L1(scale="none"))
    new = Causal({"b": regressor}, intervention="soft", slack=0.5)
    want = ceopt.explain(model, row, space, target=1, constraints=[new], cost=ceopt.L1(scale="none"))
    assert now.status == want.status == "optimal"
    assert now[0].cost == want[0].cost == recourse.explain(people)[0][0].cost > first[0].cost


def test_answers_know_model_and_data_through_whichever_door_they_come() -> None:
    people = pd.DataFrame({"income": [1, 2, 9], "age": [30, 40, 50]})
    space = ceopt.FeatureSpace(
        [ceopt.Feature("income", kind="integer", lower=0, upper=9), ceopt.Feature("age", kind="integer", mutable=False)]
    )
    model = DecisionTreeClassifier(random_state=0).fit(people, ["no", "no", "yes"])
    alone = ceopt.explain(model, people.iloc[[0]], space, target="yes", data=people)
    recourse = Recourse(model, space, target="yes").fit(people)
    batch = recourse.explain(people)
    wider = recourse.set_params(n=2).explain(people)
    cells = ceopt.diverse.exhaustive(model, people.iloc[[0]], space, target="yes", epsilon=0.1)

    assert set(alone.fingerprints) == {"model", "data"}
    for result in (*batch, *wider):
        assert result.fingerprints == alone.fingerprints
    assert cells.fingerprints == {"model": alone.fingerprints["model"]}
    assert batch.options["model"] == alone.fingerprints["model"]

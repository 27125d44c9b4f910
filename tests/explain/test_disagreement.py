"""A limit on disagreement from the question to the verified answer, judged by the user's own estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import ceopt
from ceopt.formulations.predictors import TreeEnsemble
from ceopt.oracle.model import ModelOracle


def people(n: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "income": rng.uniform(0, 9, n),
            "cards": rng.integers(0, 6, n),
            "job": rng.choice(["cook", "nurse", "clerk"], n),
        }
    )


X = people()
NUMBER = X["income"] - X["cards"] + 2.0 * (X["job"] == "nurse") + np.random.default_rng(3).normal(size=len(X))
GRADE = np.array(["bad", "fair", "good"])[np.digitize(NUMBER, [1.0, 4.0])]
SPACE = ceopt.FeatureSpace.infer(X)


def encoded(estimator: Any) -> Any:
    columns = make_column_transformer((StandardScaler(), ["income", "cards"]), (OneHotEncoder(), ["job"]))
    return make_pipeline(columns, estimator)


def own_trees(model: Any, frame: pd.DataFrame) -> np.ndarray:
    """What each member of a pipeline's forest says, asked by hand: (trees, n)."""
    forest, matrix = model[-1], model[:-1].transform(frame)
    seen = getattr(forest, "estimators_features_", [np.arange(matrix.shape[1])] * len(forest.estimators_))
    said = np.array([tree.predict(matrix[:, columns]) for tree, columns in zip(forest.estimators_, seen, strict=True)])
    return forest.classes_[said.astype(int)] if hasattr(forest, "classes_") else said


CLASSIFIERS = [
    RandomForestClassifier(9, max_depth=3, random_state=0),
    ExtraTreesClassifier(9, max_depth=4, random_state=0),
    BaggingClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=9, max_features=0.6, random_state=0),
]


@pytest.mark.long(every=3)
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("at_most", [0.0, 0.25, 0.6])
def test_few_enough_of_the_users_own_trees_disagree(estimator: Any, at_most: float) -> None:
    model = encoded(estimator).fit(X, GRADE)
    target = ceopt.Disagreement({"good", "fair"}, at_most=at_most)
    for place in np.flatnonzero(model.predict(X) == "bad")[:4]:
        result = ceopt.explain(model, X.iloc[[place]], SPACE, target=target, data=X)
        if result.status == ceopt.Status.ALREADY_FAVOURABLE:
            answer = X.iloc[[place]]
        else:
            assert result.status == ceopt.Status.OPTIMAL
            answer = result[0].frame
            assert 0.0 < result[0].slack <= 1.0
        wrong = ~np.isin(own_trees(model, answer)[:, 0], ["good", "fair"])
        assert wrong.mean() <= at_most
        assert ceopt.verify(answer, model, SPACE, target=target, factual=X.iloc[[place]]).ok


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestRegressor(7, max_depth=3, random_state=0),
        BaggingRegressor(DecisionTreeRegressor(max_depth=3), n_estimators=7, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_no_cheaper_person_of_the_data_meets_the_limit(estimator: Any) -> None:
    model = encoded(estimator).fit(X, NUMBER)
    row, space = X.iloc[[int(NUMBER.argmin())]], SPACE
    result = ceopt.explain(model, row, space, target=ceopt.Disagreement(ceopt.AtLeast(4.0), at_most=0.2))
    assert result.status == ceopt.Status.OPTIMAL
    agree = (own_trees(model, X) >= 4.0).sum(axis=0)
    assert (own_trees(model, result[0].frame) >= 4.0).sum() >= 6
    cost, factual = ceopt.L1(), space.row(row)
    costs = [cost.value(space, factual, space.row(X.iloc[[k]])) for k in np.flatnonzero(agree >= 6)]
    assert result[0].cost <= min(costs)


def test_a_single_tree_a_search_and_plain_arrays_count_as_forests() -> None:
    tree = encoded(DecisionTreeClassifier(max_depth=3, random_state=0)).fit(X, GRADE)
    grid = {"randomforestclassifier__n_estimators": [4]}
    search = GridSearchCV(encoded(RandomForestClassifier(max_depth=2, random_state=0)), grid, cv=2).fit(X, GRADE)
    frame = X.head(30)
    limit = ceopt.formulations.targets.parse_target(ceopt.Disagreement("good", 0.3), ("bad", "fair", "good"))
    assert (ModelOracle(tree, SPACE).meets(frame, limit) == (tree.predict(frame) == "good")).all()
    agree = (own_trees(search.best_estimator_, frame) == "good").sum(axis=0)
    assert (ModelOracle(search, SPACE).meets(frame, limit) == (agree >= 3)).all()
    assert 0 < (agree >= 3).sum() < 30
    stumps = [
        {"feature": 0, "threshold": at, "left": {"value": [0.9, 0.1]}, "right": {"value": [0.3, 0.7]}}
        for at in (3.0, 6.0)
    ]
    plain = TreeEnsemble(stumps, labels=("bad", "good"), probability="share", divisor=2, n_inputs=1)
    line = ceopt.FeatureSpace([ceopt.Feature("income", kind="continuous", lower=0, upper=9)])
    both = ceopt.explain(plain, {"income": 2.0}, line, target=ceopt.Disagreement("good", at_most=0.0), cost="linf")
    one = ceopt.explain(plain, {"income": 2.0}, line, target=ceopt.Disagreement("good", at_most=0.5))
    assert (both[0].values["income"], one[0].values["income"]) == pytest.approx((6.0, 3.0))


def test_several_answers_and_a_limit_that_no_row_meets() -> None:
    model = encoded(RandomForestClassifier(5, max_depth=2, random_state=0)).fit(X, GRADE)
    row = X.iloc[[int(np.flatnonzero(model.predict(X) == "bad")[0])]]
    target = ceopt.Disagreement("good", at_most=0.2)
    result = ceopt.explain(model, row, SPACE, target=target, n=3, diversity="support")
    assert len(result) >= 2
    assert ceopt.verify(result, model, SPACE, target=target).ok
    kept = SPACE.update("income", mutable=False).update("cards", mutable=False).update("job", mutable=False)
    assert ceopt.explain(model, row, kept, target=target).status == ceopt.Status.INFEASIBLE
    report = ceopt.verify(row, model, SPACE, target=target, factual=row)
    assert report.checks[0].broken == (
        "target: good by all but 20% of the trees does not hold (the model predicts bad)",
    )


def test_a_cohort_takes_a_limit() -> None:
    model = encoded(RandomForestClassifier(5, max_depth=2, random_state=0)).fit(X, GRADE)
    recourse = ceopt.Recourse(model, SPACE, target=ceopt.Disagreement("good", at_most=0.2)).fit(X, GRADE)
    table = recourse.explain(X[model.predict(X) == "bad"].head(3)).to_frame()
    assert table["verified"].all()
    with pytest.raises(ceopt.CeoptError, match="class 'good' never occurs"):
        recourse.fit(X, np.full(len(X), "bad"))


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (GradientBoostingClassifier(n_estimators=3), "a sum of trees that correct each other"),
        (LogisticRegression(), "not an average of single trees"),
    ],
)
def test_models_whose_trees_decide_nothing_alone_are_refused(estimator: Any, match: str) -> None:
    model = encoded(estimator).fit(X, GRADE)
    with pytest.raises(ceopt.CeoptError, match=match):
        ceopt.explain(model, X.iloc[[0]], SPACE, target=ceopt.Disagreement("good", at_most=0.1))
    with pytest.raises(ceopt.CeoptError, match=f"the model is a {type(estimator).__name__}"):
        ceopt.verify(X.head(1), model, SPACE, target=ceopt.Disagreement("good", at_most=0.1))


def test_a_margin_is_refused_as_trees_are_counted() -> None:
    model = encoded(RandomForestClassifier(3, max_depth=2, random_state=0)).fit(X, GRADE)
    with pytest.raises(ceopt.CeoptError, match="no margin, as trees are counted"):
        ceopt.explain(model, X.iloc[[0]], SPACE, target=ceopt.Disagreement("good", at_most=0.1), margin=0.1)

"""Models of models through explain: verified, and as cheap as the cheapest point of a lattice that they favour."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lattice import CUTS, LATTICE, SPACE, THREE, VALUE, agree
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import ceopt

TWO = np.where(CUTS[0] < VALUE, "yes", "no")
FOLDS = StratifiedKFold(2, shuffle=True, random_state=0)


def tree(depth: int = 3) -> Any:
    return DecisionTreeClassifier(max_depth=depth, random_state=0)


def forest() -> Any:
    return RandomForestClassifier(6, max_depth=4, random_state=0)


def linear() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression())


def network() -> Any:
    return make_pipeline(StandardScaler(), MLPClassifier((4,), tol=1.0, n_iter_no_change=30, random_state=0))


ANY = {
    "hard": VotingClassifier([("a", linear()), ("b", tree()), ("c", forest())]),
    "hard, even": VotingClassifier([("a", linear()), ("b", tree()), ("c", forest()), ("d", tree(1))]),
    "hard, weighted": VotingClassifier([("a", tree()), ("b", forest()), ("c", LinearSVC())], weights=[2, 1, 1]),
    "hard, network": VotingClassifier([("a", tree()), ("b", forest()), ("c", network())]),
    "soft": VotingClassifier([("a", tree()), ("b", forest())], voting="soft", weights=[1, 3]),
    "bagged trees": BaggingClassifier(tree(), 6, max_features=2, random_state=0),
    "bagged votes": BaggingClassifier(LinearSVC(), 4, max_features=2, random_state=0),
    "boosted": AdaBoostClassifier(tree(2), n_estimators=6, random_state=0),
    "boosted linear": AdaBoostClassifier(LogisticRegression(), n_estimators=4, random_state=0),
    "rest of trees": OneVsRestClassifier(tree()),
    "rest of forests": OneVsRestClassifier(forest()),
    "rest of linear": OneVsRestClassifier(linear()),
    "calibrated trees": CalibratedClassifierCV(tree(), cv=FOLDS, method="temperature"),
    "calibrated": CalibratedClassifierCV(forest(), cv=FOLDS, method="temperature", ensemble=False),
    "nested": GridSearchCV(
        VotingClassifier(
            [
                ("a", BaggingClassifier(LinearSVC(), 3, random_state=0)),
                ("b", OneVsRestClassifier(tree())),
                ("c", CalibratedClassifierCV(tree(2), cv=FOLDS)),
            ]
        ),
        {"b__estimator__max_depth": [2, 4]},
        cv=2,
    ),
}
TWO_CLASSES = {
    "sigmoid": CalibratedClassifierCV(linear(), cv=FOLDS, ensemble=False),
    "steps": CalibratedClassifierCV(linear(), cv=FOLDS, ensemble=False, method="isotonic"),
    "steps of shares": CalibratedClassifierCV(forest(), cv=FOLDS, ensemble=False, method="isotonic"),
    "sigmoid of boosted": CalibratedClassifierCV(GradientBoostingClassifier(n_estimators=5), cv=FOLDS, ensemble=False),
    "at least 0.7": FixedThresholdClassifier(linear(), threshold=0.7),
    "at least 0.35 of the first": FixedThresholdClassifier(forest(), threshold=0.35, pos_label="no"),
    "at least 3 of 5 votes": FixedThresholdClassifier(
        BaggingClassifier(LinearSVC(), 5, max_features=2, random_state=1), threshold=0.6
    ),
    "calibrated vote": VotingClassifier(
        [("a", CalibratedClassifierCV(tree(), cv=FOLDS, ensemble=False)), ("b", forest())], voting="soft"
    ),
}
REGRESSORS = {
    "vote": VotingRegressor([("a", DecisionTreeRegressor(max_depth=3)), ("b", LinearRegression())], weights=[1, 2]),
    "bagged trees": BaggingRegressor(DecisionTreeRegressor(max_depth=3), 5, max_features=2, random_state=0),
    "bagged linear": BaggingRegressor(LinearRegression(), 5, max_features=2, random_state=0),
    "scaled target": TransformedTargetRegressor(DecisionTreeRegressor(max_depth=4), transformer=StandardScaler()),
}
L1 = ceopt.L1(scale="none")


@pytest.mark.long(every=11)
@pytest.mark.parametrize("name", ANY)
@pytest.mark.parametrize("target", ["yes", "no"])
def test_two_labels(name: str, target: str) -> None:
    model = clone(ANY[name]).fit(LATTICE, TWO)
    agree(model, model.predict(LATTICE) == target, target)


@pytest.mark.long(every=22)
@pytest.mark.parametrize("name", ANY)
@pytest.mark.parametrize("target", ["mid", {"low", "top"}], ids=["mid", "low or top"])
def test_three_labels(name: str, target: Any) -> None:
    model = clone(ANY[name]).fit(LATTICE, THREE)
    wanted = target if isinstance(target, set) else {target}
    agree(model, np.isin(model.predict(LATTICE), list(wanted)), target)


@pytest.mark.long(every=7)
@pytest.mark.parametrize("name", TWO_CLASSES)
@pytest.mark.parametrize("target", ["yes", "no"])
def test_changed_decisions(name: str, target: str) -> None:
    model = clone(TWO_CLASSES[name]).fit(LATTICE, TWO)
    agree(model, model.predict(LATTICE) == target, target)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("name", TWO_CLASSES)
@pytest.mark.parametrize(("label", "at_least"), [("yes", 0.65), ("no", 0.45)])
def test_a_probability_is_the_changed_one(name: str, label: str, at_least: float) -> None:
    model = clone(TWO_CLASSES[name]).fit(LATTICE, TWO)
    share = model.predict_proba(LATTICE)[:, model.classes_.tolist().index(label)]
    agree(model, share >= at_least, ceopt.Probability(label, at_least), rows=3)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name: str) -> None:
    model = clone(REGRESSORS[name]).fit(LATTICE, VALUE)
    level = float(np.quantile(model.predict(LATTICE), 0.8)) + 1e-3
    agree(model, model.predict(LATTICE) >= level, ceopt.AtLeast(level))


# ---- ties ------------------------------------------------------------------------------------------------------------
LINE = pd.DataFrame({"x": np.arange(12)})
LINE_SPACE = ceopt.FeatureSpace([ceopt.Feature("x", kind="integer", lower=0, upper=11)])


def steps(*turns: int) -> Any:
    """A tree that says 1 from each odd turn up to the next, else 0."""
    label = sum((LINE["x"] >= turn).astype(int) for turn in turns) % 2
    return DecisionTreeClassifier().fit(LINE, label)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("start", range(12))
@pytest.mark.parametrize("target", ["a", "b"])
def test_equal_votes_count_for_the_label_that_the_library_takes(start: int, target: str) -> None:
    """Even votes go to "a": moving to a tie is an answer for it, and none for "b"."""
    model = VotingClassifier([("m", tree()), ("n", tree())]).fit(LINE, ["a"] * 6 + ["b"] * 6)
    model.estimators_ = [steps(4), steps(7)]
    model.named_estimators_.update(m=model.estimators_[0], n=model.estimators_[1])
    reached = model.predict(LINE) == target
    assert reached.tolist() == [(x < 7) == (target == "a") for x in range(12)]

    result = ceopt.explain(model, LINE.iloc[[start]], LINE_SPACE, target=target, cost=L1)

    assert result.status == ("already_favourable" if reached[start] else "optimal")
    assert [answer.cost for answer in result] == [np.abs(LINE["x"] - start)[reached].min()] * (not reached[start])


def test_a_forest_that_is_undecided_votes_as_its_library_decides() -> None:
    """Half of the trees each: the first label. Without that, a member's tie is a place where no one can be."""
    halves = RandomForestClassifier(2, bootstrap=False).fit(LINE, [0] * 6 + [1] * 6)
    halves.estimators_ = [steps(4), steps(8)]
    model = VotingClassifier([("f", tree()), ("l", tree())], weights=[2, 1]).fit(LINE, ["a"] * 6 + ["b"] * 6)
    model.estimators_ = [halves, steps(2)]
    model.named_estimators_.update(f=halves, l=model.estimators_[1])
    assert model.predict(LINE).tolist() == ["a"] * 8 + ["b"] * 4

    result = ceopt.explain(model, LINE.iloc[[11]], LINE_SPACE, target="a", cost=L1)

    assert (result.status, result[0].cost) == ("optimal", 4.0)


def test_shares_of_votes_may_equal_the_probability_that_is_asked() -> None:
    model = BaggingClassifier(LinearSVC(), 5, max_features=2, random_state=1).fit(LATTICE, TWO)
    share = model.predict_proba(LATTICE)[:, 1]
    assert (share == 0.6).any()
    agree(model, share >= 0.6, ceopt.Probability("yes", 0.6))


@pytest.mark.parametrize("label", ["yes", "no"])
def test_a_probability_that_a_whole_stretch_of_scores_has_is_reached_where_it_begins(label: str) -> None:
    """Isotonic steps between which nothing changes: the model's own probability on a line says where each begins."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": np.repeat(np.arange(6.0), 20)})
    is_second = rng.random(120) < np.repeat([0.1, 0.1, 0.5, 0.5, 0.9, 0.9], 20)
    steps = CalibratedClassifierCV(LinearSVC(), method="isotonic", ensemble=False, cv=3)
    model = steps.fit(rows, np.where(is_second, "yes", "no"))
    line = pd.DataFrame({"a": np.linspace(0.0, 5.0, 2001)})
    shares = model.predict_proba(line)[:, list(model.classes_).index(label)]
    values, counts = np.unique(shares, return_counts=True)
    flat = values[counts > 200]
    assert len(flat) == 2
    start = 0.0 if label == "yes" else 5.0
    space = ceopt.FeatureSpace([ceopt.Feature("a", kind="continuous", lower=0.0, upper=5.0)])
    for share in flat.tolist():
        nearest = np.abs(line["a"][shares >= share] - start).min()
        result = ceopt.explain(model, {"a": start}, space, target=ceopt.Probability(label, share), cost=L1)
        if nearest == 0.0:
            assert result.status == "already_favourable"
        else:
            assert result.status == "optimal"
            assert nearest - 5.0 / 2000 <= result[0].cost <= nearest + 1e-3


@pytest.mark.parametrize("target", ["yes", ceopt.Probability("yes", 0.9)], ids=str)
def test_a_label_that_no_score_has_is_proved_out_of_reach(target: Any) -> None:
    rare = np.where(np.random.default_rng(0).random(len(LATTICE)) < 0.1, "yes", "no")
    model = CalibratedClassifierCV(LogisticRegression(), ensemble=False, method="isotonic").fit(LATTICE, rare)
    assert set(model.predict(LATTICE)) == {"no"}

    assert ceopt.explain(model, LATTICE.iloc[[0]], SPACE, target=target).status == "infeasible"
    moved = ceopt.explain(
        model, LATTICE.iloc[[0]], SPACE, target="no", cost=L1, constraints=[ceopt.Linear({"a": 1.0}, ">=", 3.0)]
    )
    assert (moved.status, moved[0].cost) == ("optimal", 3.0)


@pytest.mark.long
def test_a_member_that_always_says_the_same_takes_part_in_the_vote() -> None:
    rare = (np.random.default_rng(0).random(len(LATTICE)) < 0.1).astype(int)
    always = CalibratedClassifierCV(LogisticRegression(), ensemble=False, method="isotonic").fit(LATTICE, rare)
    model = VotingClassifier([("a", linear()), ("b", linear()), ("c", linear())]).fit(LATTICE, TWO)
    model.estimators_[0] = always
    model.estimators_[1] = LogisticRegression().fit(LATTICE, (LATTICE["a"] >= 4).astype(int))
    model.named_estimators_.update(a=always, b=model.estimators_[1])
    for target in ("yes", "no"):
        agree(model, model.predict(LATTICE) == target, target)


# ---- several answers, columns of all kinds, limits -------------------------------------------------------------------
def people() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"x": rng.normal(size=200), "k": rng.integers(0, 9, 200), "job": rng.choice(["clerk", "cook", "nurse"], 200)}
    )
    score = frame["x"] + frame["k"] / 5 + (frame["job"] == "nurse") + rng.normal(0, 0.3, 200)
    return frame, np.where(score > 1.5, "good", "bad")


def coded(estimator: Any) -> Any:
    return make_pipeline(make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough"), estimator)


MIXED = {
    "hard": VotingClassifier([("a", coded(LogisticRegression())), ("b", coded(tree())), ("c", coded(forest()))]),
    "soft": VotingClassifier([("a", coded(tree())), ("b", coded(forest()))], voting="soft"),
    "calibrated": CalibratedClassifierCV(coded(forest()), ensemble=False),
    "threshold": FixedThresholdClassifier(coded(LogisticRegression()), threshold=0.7),
    "bagged": coded(BaggingClassifier(LinearSVC(), 5, max_features=3, random_state=0)),
    "boosted": coded(AdaBoostClassifier(n_estimators=8)),
}
POET = ceopt.FeatureSpace(
    [
        ceopt.Feature("x", kind="continuous", lower=-3.0, upper=3.0),
        ceopt.Feature("k", kind="integer", lower=0, upper=8),
        ceopt.Feature("job", kind="categorical", levels=("poet", "clerk", "cook", "nurse")),
    ]
)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("diversity", ["pool", "support"])
def test_three_answers_with_a_level_that_no_member_has_seen(name: str, diversity: str) -> None:
    frame, label = people()
    model = clone(MIXED[name]).fit(frame, label)
    row = frame[model.predict(frame) == "bad"].iloc[[0]]

    result = ceopt.explain(model, row, POET, target="good", n=3, diversity=diversity)
    from_data = ceopt.explain(model, row, POET, target="good", data=frame)

    costs = [answer.cost for answer in result]
    assert result.status == "optimal"
    assert len(costs) == 3 or (len(costs) == 2 and result.complete)
    assert costs == sorted(costs)
    assert from_data[0].cost == pytest.approx(costs[0], rel=1e-6)
    assert all(answer.verified and answer.values["job"] != "poet" for answer in result)
    assert len({answer.changed for answer in result}) == len(result) or diversity == "pool"
    assert ceopt.verify(result, model, POET, target="good", factual=row).ok


@pytest.mark.long
def test_a_time_limit_holds_for_votes_as_well() -> None:
    frame, label = people()
    model = VotingClassifier([(f"m{k}", coded(RandomForestClassifier(60, random_state=k))) for k in range(4)])
    model.fit(frame, label)
    row = frame[model.predict(frame) == "bad"].iloc[[0]]
    began = time.perf_counter()

    result = ceopt.explain(model, row, POET, target="good", time_limit_s=2.0)

    assert time.perf_counter() - began < 12.0
    assert result.status in {"optimal", "feasible", "time_limit"}
    assert all(answer.verified for answer in result)


def test_a_frozen_model_inside_is_the_model_itself() -> None:
    inner = linear().fit(LATTICE, TWO)
    model = FixedThresholdClassifier(FrozenEstimator(inner), threshold=0.4).fit(LATTICE, TWO)
    agree(model, model.predict(LATTICE) == "yes", "yes", rows=3)

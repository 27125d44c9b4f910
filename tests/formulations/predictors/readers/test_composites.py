"""Models of models against their library: labels, ties, shares and values on all rows of the battery, and refusals."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from library_rows import check_composite
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ceopt.formulations.predictors.predictor import Combination
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.predictors.representation import NEVER, Affine
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import UnsupportedModelError

FOLDS = StratifiedKFold(2, shuffle=True, random_state=0)


def tree(depth=3):
    return DecisionTreeClassifier(max_depth=depth, random_state=0)


def forest():
    return RandomForestClassifier(6, max_depth=3, random_state=0)


def network():
    return MLPClassifier((4,), tol=1.0, n_iter_no_change=30, learning_rate_init=0.01, random_state=0)


def scaled(estimator):
    return make_pipeline(StandardScaler(), estimator)


def values(depth):
    return DecisionTreeRegressor(max_depth=depth, random_state=0)


def one(estimator, method="sigmoid"):
    return CalibratedClassifierCV(estimator, method=method, cv=FOLDS, ensemble=False)


SOFT = {"voting": "soft"}
#: Models of two or three classes whose shares are the library's to the bit.
EXACT = {
    "soft": (VotingClassifier([("a", tree()), ("b", forest()), ("c", scaled(tree(2)))], **SOFT), Combination),
    "soft, weighted trees": (
        VotingClassifier([("a", tree()), ("b", scaled(tree())), ("c", tree(1))], weights=[0.3, 0.2, 0.7], **SOFT),
        TreeEnsemble,
    ),
    "soft, one left": (VotingClassifier([("a", "drop"), ("b", forest())], weights=[1, 3], **SOFT), Combination),
    "bagged trees": (BaggingClassifier(tree(), 7, max_features=3, random_state=0), TreeEnsemble),
    "bagged trees, columns twice": (
        BaggingClassifier(tree(), 7, bootstrap_features=True, random_state=0), TreeEnsemble,
    ),
    "bagged forests": (BaggingClassifier(forest(), 3, max_features=0.5, random_state=0), Combination),
    "bagged votes": (BaggingClassifier(scaled(LinearSVC()), 5, max_features=2, random_state=0), Combination),
    "bagged pipelines": (BaggingClassifier(make_pipeline(MinMaxScaler(), tree()), 4, random_state=0), TreeEnsemble),
    "calibrated trees": (CalibratedClassifierCV(tree(), cv=3), TreeEnsemble),
    "calibrated trees, steps": (CalibratedClassifierCV(tree(), cv=3, method="isotonic"), TreeEnsemble),
    "calibrated trees, temperature": (CalibratedClassifierCV(tree(), cv=3, method="temperature"), TreeEnsemble),
    "searched": (
        GridSearchCV(BaggingClassifier(tree(), 3, random_state=0), {"n_estimators": [2, 4]}, cv=2), TreeEnsemble,
    ),
}  # fmt: skip
#: Models of two or three classes that decide by counts or decision values.
DECIDED = {
    "hard": VotingClassifier([("a", scaled(LogisticRegression())), ("b", tree()), ("c", forest())]),
    "hard, even": VotingClassifier([("a", tree()), ("b", forest()), ("c", tree(1)), ("d", scaled(LinearSVC()))]),
    "hard, weighted": VotingClassifier([("a", tree()), ("b", tree(1)), ("c", forest())], weights=[0.1, 0.2, 0.3]),
    "hard, one left": VotingClassifier([("a", tree()), ("b", "drop"), ("c", tree(1))], weights=[1, 5, 1]),
    "boosted stumps": AdaBoostClassifier(n_estimators=9, random_state=0),
    "boosted trees": AdaBoostClassifier(tree(), n_estimators=6, learning_rate=0.3, random_state=0),
    "boosted forests": AdaBoostClassifier(forest(), n_estimators=3, random_state=0),
    "boosted linear": AdaBoostClassifier(scaled(LinearSVC()).steps[1][1], n_estimators=1, random_state=0),
    "rest of trees": OneVsRestClassifier(tree()),
    "rest of forests": OneVsRestClassifier(forest()),
    "rest of linear": OneVsRestClassifier(scaled(LogisticRegression())),
    "rest of supports": OneVsRestClassifier(scaled(SVC(kernel="linear"))),
    "rest of boosted": OneVsRestClassifier(GradientBoostingClassifier(loss="exponential", n_estimators=4)),
    "rest of AdaBoost": OneVsRestClassifier(AdaBoostClassifier(n_estimators=4)),
    "rest of networks": OneVsRestClassifier(scaled(network())),
    "votes of votes": VotingClassifier(
        [
            ("a", AdaBoostClassifier(n_estimators=4)),
            ("b", OneVsRestClassifier(tree())),
            ("c", RandomizedSearchCV(scaled(LogisticRegression()), {"logisticregression__C": [0.1, 1]}, n_iter=1)),
            ("d", VotingClassifier([("x", tree()), ("y", scaled(LinearSVC()))])),
            ("e", BaggingClassifier(forest(), 2, random_state=0)),
        ]
    ),
}
#: Models of two classes that change what one model says.
WRAPPED = {
    "sigmoid of linear": one(scaled(LogisticRegression())),
    "steps of linear": one(scaled(LinearSVC()), "isotonic"),
    "temperature of linear": one(scaled(LogisticRegression()), "temperature"),
    "sigmoid of shares": one(forest()),
    "steps of shares": one(forest(), "isotonic"),
    "temperature of shares": one(forest(), "temperature"),
    "sigmoid of boosted": one(GradientBoostingClassifier(loss="exponential", n_estimators=5)),
    "steps of a network": one(scaled(network()), "isotonic"),
    "soft vote of one": VotingClassifier([("a", scaled(LogisticRegression()))], **SOFT),
    "soft vote of calibrated trees": VotingClassifier([("a", one(tree())), ("b", tree()), ("c", tree(1))], **SOFT),
    "soft vote of thresholds": VotingClassifier(
        [("a", FixedThresholdClassifier(forest(), threshold=0.3)), ("b", tree())], **SOFT
    ),
    "rest of one": OneVsRestClassifier(one(forest())),
    "at least 0.3": FixedThresholdClassifier(scaled(LogisticRegression()), threshold=0.3),
    "at least 0.3 of the first": FixedThresholdClassifier(
        scaled(LogisticRegression()), threshold=0.3, pos_label="bad"
    ),
    "decision of the first": FixedThresholdClassifier(
        scaled(LinearSVC()), threshold=0.4, pos_label="bad", response_method="decision_function"
    ),
    "decision as it is": FixedThresholdClassifier(scaled(LinearSVC())),
    "decision of boosted": FixedThresholdClassifier(
        GradientBoostingClassifier(loss="exponential", n_estimators=4),
        threshold=0.1, response_method="decision_function",
    ),
    "share of a forest": FixedThresholdClassifier(forest(), threshold=0.35),
    "share of the first": FixedThresholdClassifier(forest(), threshold=0.35, pos_label="bad"),
    "share of votes": FixedThresholdClassifier(
        BaggingClassifier(scaled(LinearSVC()), 5, max_features=2, random_state=1), threshold=0.6
    ),
    "tuned": TunedThresholdClassifierCV(scaled(LogisticRegression()), cv=FOLDS),
    "tuned forest": TunedThresholdClassifierCV(forest(), cv=FOLDS),
    "tuned histogram": TunedThresholdClassifierCV(HistGradientBoostingClassifier(max_iter=4), cv=FOLDS),
    "threshold of calibrated": FixedThresholdClassifier(one(forest()), threshold=0.6),
    "calibrated threshold": one(FixedThresholdClassifier(forest(), threshold=0.3)),
}  # fmt: skip


@pytest.mark.long(every=10)
@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("name", EXACT)
def test_shares_are_those_of_the_library_to_the_bit(numbers, name, several, array):
    model, kind = EXACT[name]
    given = numbers.frame.to_numpy(float) if array else numbers.frame
    model = clone(model).fit(given, numbers.three if several else numbers.two)

    predictor = check_composite(model, numbers, array=array)

    assert isinstance(predictor.core, kind)
    assert predictor.core.probability == "share"


@pytest.mark.long(every=14)
@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("name", DECIDED)
def test_labels_are_those_of_the_library_ties_included(numbers, name, several, array):
    given = numbers.frame.to_numpy(float) if array else numbers.frame
    model = clone(DECIDED[name]).fit(given, numbers.three if several else numbers.two)

    check_composite(model, numbers, array=array, exact=False)


@pytest.mark.long(every=10)
@pytest.mark.parametrize("name", WRAPPED)
def test_two_classes_turn_over_where_the_library_says(numbers, name):
    model = clone(WRAPPED[name]).fit(numbers.frame, numbers.two)

    check_composite(model, numbers, array=False, exact=False)


@pytest.mark.parametrize("several", [False, True])
def test_categories_pass_through_the_pipelines_of_members(data, several):
    coded = make_column_transformer((OneHotEncoder(), ["job", "home", "size"]), remainder=StandardScaler())
    members = [("a", make_pipeline(coded, LogisticRegression())), ("b", make_pipeline(clone(coded), forest()))]
    target = data.three if several else data.two
    outer = make_pipeline(clone(coded), AdaBoostClassifier(n_estimators=5))

    check_composite(VotingClassifier(members).fit(data.frame, target), data, array=False)
    check_composite(outer.fit(data.frame, target), data, array=False, exact=False)
    inner = make_pipeline(clone(coded), BaggingClassifier(tree(), 5, max_features=0.5, random_state=0))
    assert isinstance(check_composite(inner.fit(data.frame, target), data, array=False).core, TreeEnsemble)


def test_levels_that_a_members_encoder_has_not_seen_are_known(data):
    few = data.only("job", "home")
    job = Feature("job", kind="categorical", levels=(*few.space["job"].levels, "poet"))
    coded = make_pipeline(OneHotEncoder(), tree())
    model = VotingClassifier([("a", coded), ("b", make_pipeline(OneHotEncoder(), LogisticRegression()))])

    predictor = read(model.fit(few.frame, data.two), FeatureSpace([job, few.space["home"]]))

    assert predictor.unseen == {"job": frozenset({len(job.levels) - 1})}


@pytest.mark.parametrize(
    ("model", "kind", "exact"),
    [
        (VotingRegressor([("a", values(3)), ("b", LinearRegression())]), Combination, False),
        (VotingRegressor([("a", values(3)), ("b", values(2))], weights=[0.3, 0.9]), TreeEnsemble, True),
        (BaggingRegressor(values(3), 12, max_features=2, random_state=0), TreeEnsemble, True),
        (BaggingRegressor(Ridge(), 5, max_features=2, random_state=0), Combination, False),
        (TransformedTargetRegressor(Ridge(), transformer=StandardScaler()), Combination, False),
        (TransformedTargetRegressor(values(3), transformer=StandardScaler(with_mean=False)), Combination, True),
        (TransformedTargetRegressor(values(3)), TreeEnsemble, True),
    ],
)
def test_regressors(numbers, model, kind, exact):
    model.fit(numbers.frame, numbers.value)

    assert isinstance(check_composite(model, numbers, array=False, exact=exact).core, kind)


# ---- ties, signs and ends --------------------------------------------------------------------------------------------
LINE = pd.DataFrame({"x": np.arange(60.0)})
SPACE = FeatureSpace([Feature("x", kind="continuous", lower=0.0, upper=59.0)])


def says(label, labels):
    """A tree that says a label everywhere, though it knows all labels."""
    weight = [1.0 if one == label else 1e-9 for one in labels]
    frame = pd.DataFrame({"x": np.zeros(len(labels))})
    return DecisionTreeClassifier().fit(frame, labels, sample_weight=weight)


@pytest.mark.parametrize(("members", "weights"), [((2, 1), None), ((0, 2, 1), None), ((2, 1, 1), [2, 1, 1])])
def test_equal_votes_go_to_the_first(members, weights):
    model = VotingClassifier([(f"m{k}", tree()) for k in range(len(members))], weights=weights)
    model.fit(LINE, np.array(["a", "b", "c"])[np.arange(60) // 20])
    model.estimators_ = [says(k, [0, 1, 2]) for k in members]
    model.named_estimators_.update({f"m{k}": one for k, one in enumerate(model.estimators_)})

    (label,) = set(model.predict(LINE))

    assert label == {2: "b", 3: "a"}[len(members)] if weights is None else label == "b"
    assert set(read(model, SPACE).core.predict(LINE.to_numpy())) == {label}


def test_one_against_the_rest_breaks_ties_as_the_installed_version_does():
    model = OneVsRestClassifier(tree()).fit(LINE, np.array(["a", "b", "c"])[np.arange(60) // 20])
    nobody = copy.copy(model)
    nobody.estimators_ = [says(0, [0, 1])] * 3

    (label,) = set(nobody.predict(LINE))

    assert label in {"a", "c"}
    assert set(read(nobody, SPACE).core.predict(LINE.to_numpy())) == {label}


def test_a_decreasing_calibration_turns_the_score_around():
    upwards = LogisticRegression().fit(LINE, LINE["x"] > 30)
    downwards = LINE["x"] < 30 + 5 * np.sin(LINE["x"])
    for inner in (upwards, RandomForestClassifier(5, random_state=0).fit(LINE, LINE["x"] > 30)):
        model = CalibratedClassifierCV(FrozenEstimator(inner)).fit(LINE, downwards)
        assert model.calibrated_classifiers_[0].calibrators[0].a_ > 0

        predictor = read(model, SPACE)

        scores = predictor.score(LINE.to_numpy())
        np.testing.assert_array_equal(predictor.core.head.decide(scores), model.predict(LINE))
        np.testing.assert_allclose(predictor.core.head.of_position(scores, 1), model.predict_proba(LINE)[:, 1])
        assert (np.diff(scores) <= 0).all()


def test_a_label_that_a_calibrated_model_never_gives_has_no_level():
    rare = np.arange(60) % 10 == 0
    model = CalibratedClassifierCV(LogisticRegression(), method="isotonic", ensemble=False).fit(LINE, rare)

    assert set(model.predict(LINE)) == {False}
    assert read(model, SPACE).core.level == NEVER


def test_a_stretch_of_equal_calibrated_probabilities_is_one_side_of_the_level():
    """Isotonic steps: the level stands at the end of a step, not within."""
    label = np.repeat([0, 1, 0, 1, 1, 1], 10)
    inner = DecisionTreeClassifier(max_leaf_nodes=6, random_state=0).fit(LINE, label)
    ramp = LinearSVC().fit(LINE, LINE["x"] > 29.5)
    for base in (inner, ramp):
        model = CalibratedClassifierCV(FrozenEstimator(base), method="isotonic").fit(LINE, label)
        predictor = read(model, SPACE)
        dense = np.linspace(0.0, 59.0, 5000)[:, None]

        said = predictor.core.head.decide(predictor.score(dense))

        np.testing.assert_array_equal(said, model.predict(pd.DataFrame(dense, columns=["x"])))


def test_a_threshold_that_is_a_share_of_the_forest_is_reached_by_it(numbers):
    model = RandomForestClassifier(10, random_state=0).fit(numbers.frame, numbers.two)
    for positive in ("good", "bad"):
        at = FixedThresholdClassifier(FrozenEstimator(model), threshold=0.3, pos_label=positive)
        at.fit(numbers.frame, numbers.two)
        share = model.predict_proba(numbers.frame)[:, model.classes_.tolist().index(positive)]
        assert (share == 0.3).any()
        head = check_composite(at, numbers, array=False, exact=False).core.head
        assert (head.decision, head.level) == (("nonnegative", 0.3) if positive == "good" else ("positive", -0.3))


def test_members_that_do_not_know_all_labels_add_to_those_that_they_know():
    label = np.array(["a", "b", "c"])[np.arange(60) // 25]
    model = BaggingClassifier(make_pipeline(DecisionTreeClassifier()), 12, max_samples=5, random_state=3)
    model.fit(LINE, label)
    assert {len(member.classes_) for member in model.estimators_} == {2, 3}

    core = read(model, SPACE).core

    np.testing.assert_array_equal(core.score(LINE.to_numpy()), model.predict_proba(LINE))


# ---- refusals --------------------------------------------------------------------------------------------------------
LOGISTIC = scaled(LogisticRegression())
REFUSED = {
    "soft": (
        VotingClassifier([("log", LOGISTIC), ("t", tree())], **SOFT), "two",
        r"those of member 'log' of VotingClassifier \(LogisticRegression\) are not. Fit it with voting='hard'",
    ),
    "soft, boosted": (
        VotingClassifier([("gb", GradientBoostingClassifier(n_estimators=2)), ("t", tree())], **SOFT), "three",
        r"member 'gb' of VotingClassifier \(GradientBoostingClassifier\) are not",
    ),
    "soft, rest": (
        VotingClassifier([("o", OneVsRestClassifier(forest()))], **SOFT), "three", r"'o' .*OneVsRestClassifier\) are",
    ),
    "hard": (
        VotingClassifier([("svm", scaled(SVC())), ("t", tree())]), "two",
        r"SVC has kernel='rbf'.* This is member 'svm' of VotingClassifier \(SVC\)\.",
    ),
    "deep": (
        VotingClassifier([("out", VotingClassifier([("in", KNeighborsClassifier())]))]), "two",
        r"KNeighborsClassifier.*member 'in' of VotingClassifier .*member 'out' of VotingClassifier",
    ),
    "weights": (VotingClassifier([("a", tree()), ("b", tree())], weights=[1, -1]), "two", r"has weights=\[1, -1\]"),
    "no weights": (VotingClassifier([("a", tree()), ("b", tree())], weights=[0, 0]), "two", r"has weights=\[0, 0\]"),
    "bagged": (
        BaggingClassifier(LOGISTIC, 2), "two", r"member 0 of BaggingClassifier \(LogisticRegression\) are not. Bag t",
    ),
    "bagged kernel": (BaggingClassifier(SVC(), 2), "two", r"kernel='rbf'.* This is member 0 of BaggingClassifier"),
    "boosted": (AdaBoostClassifier(SVC(), n_estimators=2), "two", r"rbf.* member 0 of AdaBoostClassifier \(SVC\)"),
    "median": (AdaBoostRegressor(n_estimators=2), "value", r"AdaBoostRegressor. It predicts the weighted median"),
    "calibrated": (
        CalibratedClassifierCV(LOGISTIC, cv=3), "two", r"averages 3 calibrated Pipeline. Fit it with ensemble=False",
    ),
    "calibrated, three": (one(LOGISTIC), "three", r"calibrates Pipeline apart for each of 3 labels. Fit it with meth"),
    "calibrated dummy": (
        one(DummyClassifier()), "two", r"DummyClassifier.* This is the classifier under CalibratedClassifierCV",
    ),
    "calibrated bagging": (
        one(BaggingClassifier(LinearSVC(), 2)), "two", r"adds up decision values of BaggingClassifier, which decides",
    ),
    "threshold": (
        FixedThresholdClassifier(CalibratedClassifierCV(LOGISTIC, cv=2)), "two",
        r"ensemble=False. This is the classifier under FixedThresholdClassifier \(CalibratedClassifierCV\)",
    ),
    "rest": (OneVsRestClassifier(SVC()), "three", r"rbf.* This is the member of OneVsRestClassifier for 'low' \(SVC"),
    "rest, calibrated": (OneVsRestClassifier(one(forest())), "three", r"CalibratedClassifierCV, has its own function"),
    "rest, regressor": (OneVsRestClassifier(LinearRegression()), "two", r"\(LinearRegression\) is a regressor"),
    "target": (
        TransformedTargetRegressor(Ridge(), func=np.sinh, inverse_func=np.arcsinh), "value",
        r"func=sinh. Give its regressor_",
    ),
    "scaled target": (
        TransformedTargetRegressor(Ridge(), transformer=MinMaxScaler()), "value", r"TransformedTargetRegressor has Min",
    ),
}  # fmt: skip


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", REFUSED)
def test_what_no_rows_can_state_is_refused_with_the_members_name(numbers, name):
    model, target, match = REFUSED[name]
    model = clone(model).fit(numbers.frame, getattr(numbers, target))

    with pytest.raises(UnsupportedModelError, match=match):
        read(model, numbers.space)


def test_unfitted_models_one_class_and_several_outputs_are_refused(numbers):
    several = np.column_stack([numbers.value, -numbers.value])
    same = ["a"] * len(numbers.frame)
    for model, match in (
        (VotingClassifier([("a", tree())]), "VotingClassifier is not fitted"),
        (CalibratedClassifierCV(tree()), "CalibratedClassifierCV is not fitted"),
        (BaggingClassifier(tree()).fit(numbers.frame, same), "BaggingClassifier knows only 'a'"),
        (VotingClassifier([("a", tree())]).fit(numbers.frame, same), "VotingClassifier knows only 'a'"),
        (BaggingRegressor().fit(numbers.frame, several), r"one output, but DecisionTreeRegressor was fitted on 2"),
        (
            OneVsRestClassifier(tree()).fit(numbers.frame, (several > 0).astype(int)),
            "one label per row, but OneVsRestClassifier was fitted on several",
        ),
    ):
        with pytest.raises(UnsupportedModelError, match=match):
            read(model, numbers.space)


def test_a_threshold_leaves_a_linear_model_linear(numbers):
    fixed = FixedThresholdClassifier(scaled(LogisticRegression()), threshold=0.3).fit(numbers.frame, numbers.two)

    assert isinstance(read(fixed, numbers.space).core, Affine)
    assert read(fixed, numbers.space).core.probability == "logistic"

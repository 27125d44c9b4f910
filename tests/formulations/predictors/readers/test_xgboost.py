"""What is read of XGBoost is what XGBoost computes: margins bit for bit, labels on every row, at every threshold."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from library_rows import as_given, frame_of, trial_rows
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder
from xgboost import XGBClassifier, XGBRegressor, XGBRFClassifier, XGBRFRegressor

from ceopt.formulations.predictors.readers import open_model, read
from ceopt.formulations.predictors.readers.xgboost import drop_weights, read_estimator, sigmoid, trees_of
from ceopt.formulations.predictors.representation import Affine
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import MissingLibraryError, UnreadableFileError, UnsupportedModelError

#: Names such as age are no matter here.
pytestmark = pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")

FEW: dict[str, Any] = {"n_estimators": 8, "max_depth": 3, "n_jobs": 1}
DART = {"booster": "dart", "rate_drop": 0.4, "one_drop": 1}
NAMES_CATEGORIES = tuple(map(int, xgboost.__version__.split(".")[:2])) >= (3, 1)
named_categories = pytest.mark.skipif(not NAMES_CATEGORIES, reason="xgboost before 3.1 does not name categories")

BINARY = {
    "plain": XGBClassifier(**FEW),
    "base score": XGBClassifier(base_score=0.3, **FEW),
    "weighted": XGBClassifier(scale_pos_weight=3.0, min_child_weight=5.0, **FEW),
    "pruned": XGBClassifier(tree_method="exact", gamma=8.0, n_estimators=8, max_depth=6),
    "leaves": XGBClassifier(grow_policy="lossguide", max_leaves=9, max_depth=0, n_estimators=8),
    "forest": XGBRFClassifier(**FEW),
    "boosted forest": XGBClassifier(num_parallel_tree=3, subsample=0.7, **FEW),
    "dart": XGBClassifier(**FEW, **DART),
    "dart base": XGBClassifier(base_score=0.9, **FEW, **DART),
    "logitraw": XGBClassifier(objective="binary:logitraw", **FEW),
    "hinge": XGBClassifier(objective="binary:hinge", **FEW),
    "regression": XGBClassifier(objective="reg:logistic", **FEW),
}
SEVERAL = {
    "plain": XGBClassifier(**FEW),
    "softmax": XGBClassifier(objective="multi:softmax", base_score=0.3, **FEW),
    "forest": XGBRFClassifier(**FEW),
    "dart": XGBClassifier(**FEW, **DART),
}
REGRESSORS = {
    "plain": XGBRegressor(**FEW),
    "base score": XGBRegressor(base_score=7.25, **FEW),
    "absolute": XGBRegressor(objective="reg:absoluteerror", **FEW),
    "huber": XGBRegressor(objective="reg:pseudohubererror", **FEW),
    "quantile": XGBRegressor(objective="reg:quantileerror", quantile_alpha=0.2, **FEW),
    "logarithm": XGBRegressor(objective="reg:squaredlogerror", **FEW),
    "logitraw": XGBRegressor(objective="binary:logitraw", **FEW),
    "forest": XGBRFRegressor(**FEW),
    "dart": XGBRegressor(**FEW, **DART),
}


def document(model: Any) -> dict[str, Any]:
    booster = model if isinstance(model, xgboost.Booster) else model.get_booster()
    return json.loads(booster.save_raw("json"))


def check(model: Any, data: Any, *, array: bool = False, steps: Any = None) -> TreeEnsemble:
    """Margins are equal bit for bit, and labels and values are, on random rows and around every threshold."""
    predictor = read(model, data.space)
    rows = trial_rows(predictor, data.space.coordinates(data.frame))
    opened = open_model(model)
    estimator = opened[-1] if steps is not None else opened
    frame = frame_of(data.space, rows)
    given = as_given(frame[list(getattr(opened, "feature_names_in_", frame.columns))], array=array)
    seen = given if steps is None else steps.transform(given)
    core, matrix = predictor.core, predictor.encoding.matrix(rows)

    assert isinstance(core, TreeEnsemble)
    np.testing.assert_array_equal(core.score(matrix), estimator.predict(seen, output_margin=True))
    np.testing.assert_array_equal(core.predict(matrix), opened.predict(given))
    assert core.labels == (None if not hasattr(estimator, "classes_") else tuple(estimator.classes_.tolist()))
    if callable(core.probability):
        assert core.probability is sigmoid
        np.testing.assert_allclose(sigmoid(core.score(matrix)), opened.predict_proba(given)[:, 1], rtol=2e-7)
    return core


# ---- trees over numbers ---------------------------------------------------------------------------------------------
@pytest.mark.long(every=3)
@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize("name", BINARY)
def test_two_classes(numbers, name, array):
    rare = (numbers.value > np.quantile(numbers.value, 0.8)).astype(int)

    core = check(BINARY[name].fit(as_given(numbers.frame, array=array), rare), numbers, array=array)

    assert (core.probability is sigmoid) == (name not in {"logitraw", "hinge"})
    assert core.level == pytest.approx({"logitraw": 0.5, "hinge": 0.0}.get(name, 8.94e-8), rel=1e-3)


@pytest.mark.parametrize("name", SEVERAL)
def test_several_classes(numbers, name):
    three = np.digitize(numbers.value, np.quantile(numbers.value, [0.2, 0.7]))

    core = check(SEVERAL[name].fit(numbers.frame, three), numbers)

    assert core.labels == (0, 1, 2)
    assert core.probability is None


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(numbers, name):
    positive = np.exp(numbers.value / 10)
    target = numbers.value > 0 if name == "logitraw" else positive

    check(REGRESSORS[name].fit(numbers.frame, target), numbers)


def test_a_pruned_tree_leaves_its_deleted_nodes_out(numbers):
    model = BINARY["pruned"].fit(numbers.frame, numbers.value > 0)
    saved = document(model)["learner"]["gradient_booster"]["model"]["trees"]
    deleted = [int(tree["tree_param"]["num_deleted"]) for tree in saved]
    assert max(deleted) > 0

    trees = read(model, numbers.space).core.trees

    assert [len(tree.feature) for tree in trees] == [
        len(tree["left_children"]) - gone for tree, gone in zip(saved, deleted, strict=True)
    ]


@pytest.mark.parametrize("objective", ["binary:logistic", "reg:squarederror"])
@pytest.mark.parametrize("as_array", [False, True])
def test_the_base_score_is_read_as_a_number_and_as_an_array(numbers, tmp_path, objective, as_array):
    """Until 3.0 the library writes 3E-1, since 3.1 [3E-1]; it reads both, and so do we."""
    native = xgboost.train({"objective": objective}, xgboost.DMatrix(numbers.frame, numbers.value > 0), 3)
    saved = document(native)
    saved["learner"]["learner_model_param"]["base_score"] = "[3.25E-1]" if as_array and NAMES_CATEGORIES else "3.25E-1"
    path = tmp_path / "model.json"
    path.write_text(json.dumps(saved))

    core = check(path, numbers)

    assert core.base[0] == pytest.approx(np.log(0.325 / 0.675) if objective == "binary:logistic" else 0.325)


def test_classes_start_each_from_their_own_score(numbers):
    three = np.digitize(numbers.value, np.quantile(numbers.value, [0.1, 0.3]))

    core = check(XGBClassifier(**FEW).fit(numbers.frame, three), numbers)

    assert (len(set(core.base.tolist())) == 3) == NAMES_CATEGORIES


def test_a_positive_sum_up_to_9e_8_is_the_first_class_still(numbers):
    """In float32 its probability is 0.5, which is not above 0.5."""
    flat = XGBClassifier(n_estimators=1, learning_rate=0.0, base_score=0.5).fit(numbers.frame, numbers.value > 0)
    core = read(flat, numbers.space).core
    even = np.float32(core.level)
    near = [even]
    for _ in range(300):
        near = [np.nextafter(near[0], np.float32(-1)), *near, np.nextafter(near[-1], np.float32(1))]
    margins = np.concatenate([near, np.float32([0.0, 1e-9, 5e-8, 1e-7, 2e-7, -1e-7, 1.0, -1.0, 95.0, -95.0])])
    rows = numbers.frame.iloc[np.zeros(len(margins), dtype=int)]

    library = flat.predict(rows, base_margin=margins)

    assert 0 < library.sum() < len(library)
    assert flat.predict(rows[:1], base_margin=np.float32([8e-8])) == 0
    np.testing.assert_array_equal(core.head.decide(margins.astype(float)), library)
    shares = flat.predict_proba(rows, base_margin=margins)[:, 1]
    np.testing.assert_allclose(sigmoid(margins.astype(float)), shares, rtol=1.2e-7)


def test_splits_are_strict_and_both_sides_of_the_comparison_are_float32():
    """D8: near a threshold of 150 a difference of 1e-6 is none."""
    frame = pd.DataFrame({"x": [100.0] * 30 + [200.0] * 30})
    model = XGBClassifier(n_estimators=1, max_depth=1, tree_method="exact").fit(frame, frame["x"] > 150)
    space = FeatureSpace([Feature("x", kind="continuous", lower=0.0, upper=300.0)])
    below = float(np.nextafter(np.float32(150), np.float32(0)))
    near = pd.DataFrame({"x": [below, (below + 150) / 2 - 1e-9, (below + 150) / 2 + 1e-9, 150 - 1e-6, 150.0, 151.0]})

    predictor = read(model, space)

    assert model.predict(near).tolist() == [0, 0, 1, 1, 1, 1]
    assert predictor.core.predict(near).tolist() == [0, 0, 1, 1, 1, 1]
    last = predictor.encoding.columns[0].largest_left(predictor.core.trees[0].threshold[:1], "float32")[0]
    assert (below + 150) / 2 - 1e-12 < last <= (below + 150) / 2


# ---- early stopping, native boosters, files -------------------------------------------------------------------------
def stopped(numbers, **options: Any) -> Any:
    noise = np.random.default_rng(3).integers(0, 2, len(numbers.frame))
    model = XGBClassifier(n_estimators=40, max_depth=3, early_stopping_rounds=4, **options)
    return model.fit(numbers.frame, numbers.value > 0, eval_set=[(numbers.frame, noise)], verbose=False)


@pytest.mark.parametrize("options", [{}, {"booster": "dart"}, {"num_parallel_tree": 2}])
def test_trees_after_the_best_round_count_for_a_booster_only(numbers, options, tmp_path):
    model = stopped(numbers, **options)
    native, per_round = model.get_booster(), options.get("num_parallel_tree", 1)
    assert model.best_iteration + 1 < native.num_boosted_rounds()

    own, all_of_them = check(model, numbers), check(native, numbers)

    assert len(own.trees) == per_round * (model.best_iteration + 1)
    assert len(all_of_them.trees) == per_round * native.num_boosted_rounds()
    if NAMES_CATEGORIES:  # 3.0 cannot save its estimators beside scikit-learn 1.9
        model.save_model(tmp_path / "model.json")
        assert len(check(tmp_path / "model.json", numbers).trees) == len(own.trees)
    whole = native.predict(xgboost.DMatrix(numbers.frame), output_margin=True)
    matrix = numbers.frame.to_numpy(float)
    np.testing.assert_allclose(all_of_them.score(matrix), whole, atol=0 if "booster" not in options else 1e-6)


@pytest.mark.long(every=5)
@pytest.mark.parametrize(
    ("objective", "kind", "more"),
    [
        ("binary:logistic", "XGBClassifier", {}),
        ("binary:hinge", "XGBClassifier", {}),
        ("binary:logitraw", "XGBRegressor", {}),
        ("multi:softmax", "XGBClassifier", {"num_class": 3}),
        ("multi:softprob", "XGBClassifier", {"num_class": 3}),
        ("reg:squarederror", "XGBRegressor", {}),
    ],
)
@pytest.mark.parametrize("suffix", [None, ".json", ".ubj"])
@pytest.mark.parametrize("array", [False, True])
def test_boosters_and_files_say_what_the_booster_predicts(numbers, tmp_path, objective, kind, more, suffix, array):
    target = np.digitize(numbers.value, [-1.0, 1.0]) if more else numbers.value > 0
    given = as_given(numbers.frame, array=array)
    native = xgboost.train({"objective": objective, "max_depth": 3} | more, xgboost.DMatrix(given, target), 4)
    path = tmp_path / f"model{suffix}"
    if suffix is not None:
        native.save_model(path)

    core = check(native if suffix is None else str(path), numbers, array=array)

    matrix = numbers.frame.to_numpy(float)
    predicted = native.predict(xgboost.DMatrix(given))
    if objective == "multi:softprob":
        predicted = predicted.argmax(axis=1)
    elif kind == "XGBClassifier":
        predicted = np.where(predicted > 0.5, np.round(predicted), 0)
    assert type(open_model(native)).__name__ == kind
    np.testing.assert_array_equal(core.predict(matrix), predicted)


@pytest.mark.parametrize("suffix", [None, "json", "ubj"])
@pytest.mark.parametrize("objective", ["binary:logistic", "multi:softmax", "reg:squarederror"])
def test_the_weights_of_darts_trees_count_wherever_a_version_writes_them(numbers, tmp_path, objective, suffix):
    """Beside the model up to 3.3, in it since 3.4, where the booster is called gbtree like any other."""
    more = {"num_class": 3} if objective == "multi:softmax" else {}
    target = np.digitize(numbers.value, [-1.0, 1.0]) if more else numbers.value > 0
    matrix = xgboost.DMatrix(numbers.frame, target)
    native = xgboost.train({"objective": objective, "max_depth": 3, "rate_drop": 0.6} | DART | more, matrix, 6)
    path = tmp_path / f"model.{suffix}"
    if suffix is not None:
        native.save_model(path)

    core = check(native if suffix is None else path, numbers)

    weights = drop_weights(document(native)["learner"]["gradient_booster"])
    assert len(weights) == len(core.trees)
    assert min(weights) < 0.9
    plain = [tree["split_conditions"] for tree in trees_of(document(native)["learner"]["gradient_booster"])["trees"]]
    for tree, own, weight in zip(core.trees, plain, weights, strict=True):
        assert np.abs(tree.value).max() < (np.abs(np.float32(own)).max() if weight < 0.99 else np.inf)


@pytest.mark.parametrize("suffix", ["json", "ubj"])
@pytest.mark.parametrize("objective", ["binary:logistic", "reg:squarederror"])
def test_linear_boosters_are_read_from_files(numbers, tmp_path, objective, suffix):
    two = numbers.value > 0
    native = xgboost.train({"objective": objective, "booster": "gblinear"}, xgboost.DMatrix(numbers.frame, two), 4)
    path = tmp_path / f"model.{suffix}"
    native.save_model(path)

    core = read(path, numbers.space).core

    assert isinstance(core, Affine)
    margins = native.predict(xgboost.DMatrix(numbers.frame), output_margin=True)
    np.testing.assert_allclose(core.score(numbers.frame.to_numpy(float)), margins, rtol=1e-5)


def test_a_file_whose_weights_the_installed_library_drops_is_refused(numbers, tmp_path, monkeypatch):
    """As 3.2 does with a dart model of 3.4: it would be another model."""
    native = xgboost.train({"max_depth": 3} | DART, xgboost.DMatrix(numbers.frame, numbers.value), 4)
    native.save_model(tmp_path / "dart.json")
    changed = document(native)
    kept = {**trees_of(changed["learner"]["gradient_booster"])}
    kept.pop("weight_drop", None)
    changed["learner"]["gradient_booster"] = {"name": "gbtree", "model": kept}
    load, without = XGBRegressor.load_model, bytearray(json.dumps(changed).encode())
    monkeypatch.setattr(XGBRegressor, "load_model", lambda self, _: load(self, without))

    with pytest.raises(UnsupportedModelError, match=r"dart.json' is a dart model of .* and xgboost .* drops them"):
        open_model(tmp_path / "dart.json")


def test_a_booster_is_left_as_it_was(numbers):
    native = stopped(numbers).get_booster()
    before = native.save_raw("json")

    open_model(native)

    assert native.save_raw("json") == before


@pytest.mark.skipif(not NAMES_CATEGORIES, reason="xgboost 3.0 cannot save its estimators beside scikit-learn 1.9")
@pytest.mark.parametrize("suffix", [".json", ".ubj"])
@pytest.mark.parametrize("model", [XGBClassifier(**FEW), XGBRegressor(**FEW), XGBRFClassifier(**FEW)])
def test_a_saved_estimator_is_the_estimator(numbers, tmp_path, model, suffix):
    model.fit(numbers.frame, numbers.value > 0)
    path = tmp_path / f"m{suffix}"
    model.save_model(path)

    saved, own = check(path, numbers), check(model, numbers)

    assert saved.labels == own.labels
    for a, b in zip(saved.trees, own.trees, strict=True):
        np.testing.assert_array_equal(a.threshold, b.threshold)
        np.testing.assert_array_equal(a.value, b.value)


# ---- pipelines, sparse matrices, missing numbers --------------------------------------------------------------------
@pytest.mark.parametrize("sparse", [False, True])
def test_zeros_that_a_sparse_matrix_does_not_store_are_missing(data, sparse):
    """One-hot columns of a sparse matrix hold 1 or nothing, and nothing goes the default way."""
    few = data.only("job", "home", "age")
    frame = few.frame.assign(age=few.frame["age"] % 3 - 1)
    space = FeatureSpace.infer(frame).update("age", kind="integer", lower=-2, upper=3)
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=sparse), ["job", "home"]), ("passthrough", ["age"]), sparse_threshold=1.0
    )
    model = make_pipeline(columns, XGBClassifier(n_estimators=6, max_depth=4))
    model.fit(frame, (data.value > 0) ^ (frame["age"] == 0))
    matrix = columns.transform(frame)
    assert hasattr(matrix, "tocsr") == sparse
    if sparse:
        dense = model[-1].predict(matrix.toarray(), output_margin=True)
        assert (dense != model[-1].predict(matrix, output_margin=True)).mean() > 0.5

    core = check(model, type(data)(frame, space, data.two, data.three, data.value), steps=columns)

    assert any(tree.sets for tree in core.trees) == sparse


@pytest.mark.parametrize("missing", [0, 2, -1.5, 0.1, np.nan, None])
def test_a_number_that_stands_for_missing_goes_the_default_way(data, missing):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.integers(-2, 5, 240), "b": rng.choice([-1.5, 0.1, 0.0, 2.0, 3.0], 240)})
    label = (frame["a"] == (missing or 0)) ^ (frame["b"] > 0) ^ (rng.random(240) < 0.1)
    options = {} if missing is None else {"missing": missing}
    model = XGBClassifier(n_estimators=8, max_depth=4, **options).fit(frame, label)
    space = FeatureSpace.infer(frame)

    core = check(model, type(data)(frame, space, data.two, data.three, data.value))

    assert any(tree.sets for tree in core.trees) == (missing is not None and missing == missing)  # noqa: PLR0124


def test_pipelines_and_searches(data):
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["job"]), (OrdinalEncoder(), ["home", "size"]),
        (MinMaxScaler(), ["income"]), remainder="passthrough",
    )  # fmt: skip
    model = make_pipeline(columns, XGBClassifier(**FEW)).fit(data.frame, data.value > 0)
    check(model, data, steps=columns)

    search = GridSearchCV(XGBClassifier(**FEW), {"max_depth": [2, 4]}, cv=2)
    few = data.only("age", "income", "debt", "flag")
    predictor = read(search.fit(few.frame, data.value > 0), few.space)
    rows = trial_rows(predictor, few.space.coordinates(few.frame))
    labels = predictor.core.predict(predictor.encoding.matrix(rows))
    np.testing.assert_array_equal(labels, search.predict(frame_of(few.space, rows)))


def test_columns_are_matched_by_name(numbers):
    turned = FeatureSpace([numbers.space[name] for name in reversed(numbers.space.names)])
    model = XGBClassifier(**FEW).fit(numbers.frame, numbers.value > 0)

    check(model, type(numbers)(numbers.frame, turned, numbers.two, numbers.three, numbers.value))

    with pytest.raises(UnsupportedModelError, match=r"column 'tiny' is missing. Add it"):
        read(model, numbers.only("age", "income", "debt").space)


# ---- native categories ----------------------------------------------------------------------------------------------
def categorical(data: Any, *, numbers: bool = False) -> Any:
    """Give columns of categories, one with a level that no person has and an order of its own."""
    frame = data.frame[["age", "job", "income", "home", "flag"]].copy()
    frame["job"] = pd.Categorical(frame["job"], ["nurse", "clerk", "miner", "cook"])
    frame["home"] = frame["home"].map({"own": 20, "rent": 7}).astype("category") if numbers else frame["home"].astype(
        "category"
    )  # fmt: skip
    return type(data)(frame, FeatureSpace.infer(frame), data.two, data.three, data.value)


@pytest.mark.long(every=3)
@named_categories
@pytest.mark.parametrize("one_hot", [1, 100])
@pytest.mark.parametrize("classes", [2, 3, None])
@pytest.mark.parametrize("numbers", [False, True])
def test_categories_at_every_level(data, one_hot, classes, numbers):
    few = categorical(data, numbers=numbers)
    value = data.value + 2 * (few.frame["job"] == "cook") - (few.frame["home"] == few.frame["home"].cat.categories[0])
    options = {"enable_categorical": True, "max_cat_to_onehot": one_hot} | FEW
    if classes is None:
        model = XGBRegressor(**options).fit(few.frame, value)
    else:
        cuts = np.quantile(value, [0.5] if classes == 2 else [0.3, 0.7])
        model = XGBClassifier(**options).fit(few.frame, np.digitize(value, cuts))

    core = check(model, few)

    assert any(tree.sets for tree in core.trees)
    held = {frozenset(part) for tree in core.trees for part in tree.sets}
    assert (max(map(len, held)) > 1) == (one_hot == 1)


@named_categories
def test_categories_are_matched_by_name_whatever_their_order_in_the_space(data):
    few = categorical(data)
    model = XGBClassifier(enable_categorical=True, **FEW).fit(
        few.frame, data.value + 2 * (few.frame["job"] == "cook") > 1
    )
    other = few.frame.copy()
    other["job"] = pd.Categorical(other["job"].astype(str), ["cook", "miner", "clerk", "nurse"])

    check(model, type(data)(other, FeatureSpace.infer(other), data.two, data.three, data.value))


@named_categories
@pytest.mark.parametrize("suffix", [None, ".json", ".ubj"])
def test_boosters_and_files_hold_the_names_of_categories(data, tmp_path, suffix):
    few = categorical(data, numbers=True)
    matrix = xgboost.DMatrix(few.frame, data.value + 2 * (few.frame["job"] == "cook") > 1, enable_categorical=True)
    native = xgboost.train({"objective": "binary:logistic", "max_cat_to_onehot": 1}, matrix, 5)
    if suffix is not None:
        native.save_model(tmp_path / f"m{suffix}")

    core = check(native if suffix is None else tmp_path / f"m{suffix}", few)

    rows = read(native, few.space).encoding.matrix(few.space.coordinates(few.frame))
    np.testing.assert_array_equal(core.predict(rows), native.predict(matrix) > 0.5)


@named_categories
def test_a_level_that_the_model_has_not_seen_is_out_of_reach(data):
    few = categorical(data)
    model = XGBClassifier(enable_categorical=True, **FEW).fit(few.frame, data.value > 0)
    more = few.frame["job"].cat.add_categories(["poet"])
    space = FeatureSpace.infer(few.frame.assign(job=more))
    levels = (*few.space["job"].levels, "poet")
    space = space.update("job", levels=levels)

    assert read(model, space).unseen == {"job": frozenset({levels.index("poet")})}


@named_categories
def test_categories_that_frame_and_model_would_code_differently_are_refused(data):
    few = categorical(data, numbers=True)
    model = XGBClassifier(enable_categorical=True, **FEW).fit(few.frame, data.value > 0)
    plain = FeatureSpace.infer(few.frame.astype({"job": str}))
    codes = FeatureSpace.infer(few.frame.astype({"home": int})).update("home", kind="categorical", levels=(7, 20))

    with pytest.raises(UnsupportedModelError, match=r"'job' has dtype \S+ and the model names its categories. Give"):
        read(model, plain)
    with pytest.raises(UnsupportedModelError, match=r"'home' has dtype int64 and the model names its categories"):
        read(model, codes)
    number = few.frame.assign(home=pd.Categorical(few.frame["home"].astype(int), [20, 7]))
    with pytest.raises(UnsupportedModelError, match=r"column 4 of the model has 20, 7. Sort the categories"):
        read(model.fit(number, data.value > 0), few.space)


def coded(data: Any, **more: Any) -> tuple[pd.DataFrame, Any]:
    codes = data.frame["job"].astype("category").cat.codes.astype(float)
    frame = pd.DataFrame({"job": codes, "income": data.frame["income"]})
    model = XGBClassifier(enable_categorical=True, feature_types=["c", "q"], max_cat_to_onehot=1, **more, **FEW)
    return frame, model.fit(frame.to_numpy(), data.value + 2 * (codes == 1) > 1)


@pytest.mark.parametrize("missing", [np.nan, 0, 1, 2, 3])
def test_codes_in_an_array_are_codes(data, missing):
    """One of them may stand for a missing value, and goes the default way whatever set it is in."""
    frame, model = coded(data, missing=missing)
    levels = Feature("job", kind="categorical", levels=(0.0, 1.0, 2.0, 3.0, 9.0))
    space = FeatureSpace([levels, FeatureSpace.infer(frame)["income"]])

    core = check(model, type(data)(frame, space, data.two, data.three, data.value), array=True)

    assert any(tree.sets for tree in core.trees)


@pytest.mark.parametrize(
    ("feature", "match"),
    [
        (Feature("job", kind="continuous"), r"column 'job' is continuous in the space. Declare it with space.update"),
        (Feature("job", kind="categorical", levels=(0.0, 1.5)), r"column 'job' holds 1.5. Code its levels by whole"),
        (Feature("job", kind="categorical", levels=(-1.0, 1.0)), r"column 'job' holds -1.0. Code its levels"),
        (
            Feature("job", kind="categorical", levels=(0, 1), dtype="category[int64]", categories=(0, 1)),
            r"and the model does not name its categories. Fit the model with xgboost 3.1",
        ),
    ],
)
def test_codes_that_are_none_are_refused(data, feature, match):
    frame, model = coded(data)

    with pytest.raises(UnsupportedModelError, match=match):
        read(model, FeatureSpace([feature, FeatureSpace.infer(frame)["income"]]))


@pytest.mark.skipif(NAMES_CATEGORIES, reason="xgboost from 3.1 on names categories")
def test_before_3_1_categories_of_frames_are_refused(data):
    few = categorical(data)
    model = XGBClassifier(enable_categorical=True, **FEW).fit(few.frame, data.value > 0)

    with pytest.raises(UnsupportedModelError, match="a column is still text"):
        read(model, few.space)
    few = few.only("age")
    codes = few.frame.assign(age=(few.frame["age"] % 3).astype("category"))
    model.fit(codes, data.value > 0)
    with pytest.raises(UnsupportedModelError, match="does not name its categories. Fit the model with xgboost 3.1"):
        read(model, FeatureSpace.infer(codes))


# ---- linear boosters ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("classes", [2, 3, None])
def test_linear_boosters(numbers, classes):
    frame = (numbers.frame - numbers.frame.mean()) / numbers.frame.std()
    space = FeatureSpace.infer(frame)
    options = {"booster": "gblinear", "n_estimators": 12}
    model = XGBRegressor(**options).fit(frame, numbers.value + 9.0)
    if classes is not None:
        cuts = np.quantile(numbers.value, [0.7] if classes == 2 else [0.1, 0.4])
        model = XGBClassifier(**options).fit(frame, np.digitize(numbers.value, cuts))

    core = read(model, space).core

    margins, scores = model.predict(frame, output_margin=True), core.score(frame)
    assert isinstance(core, Affine)
    assert core.dtype == "float32"
    np.testing.assert_allclose(scores, margins, atol=1e-5)
    if classes is not None:
        assert core.labels == tuple(range(classes))
        np.testing.assert_array_equal(core.predict(frame), model.predict(frame))


# ---- refusals -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("model", "match"),
    [
        (XGBRegressor(objective="count:poisson"), r"XGBRegressor has objective='count:poisson'. Fit it with objective"),
        (XGBRegressor(objective="reg:gamma"), r"objective='reg:gamma'. Fit it with objective='reg:squarederror' on"),
        (XGBRegressor(objective="reg:tweedie"), r"objective='reg:tweedie'. Fit it .* on the logarithm of the target"),
        (XGBRegressor(objective="survival:cox"), r"objective='survival:cox'"),
        (XGBRegressor(objective="rank:pairwise"), r"objective='rank:pairwise'. Choose another. Objectives that are"),
        (XGBRegressor(objective="binary:logistic"), r"XGBRegressor has objective='binary:logistic'. Fit XGBClassifier"),
        (XGBClassifier(objective="reg:squarederror"), r"XGBClassifier has objective='reg:squarederror'"),
        (XGBRegressor(objective=lambda y, p: (p - y, y * 0 + 1)), r"XGBRegressor has a function as objective"),
        (XGBRegressor(objective="reg:quantileerror", quantile_alpha=[0.2, 0.8]), r"one output, but .* fitted on 2"),
        (XGBClassifier(booster="gblinear", missing=3), r"gblinear takes categories or missing numbers. Encode"),
        (XGBClassifier(objective="multi:softprob", num_class=2), r"with multi:softprob, but XGBClassifier has two"),
        (xgboost.XGBRanker(), r"the estimator is XGBRanker. Models of XGBoost that are read: Booster, XGBC"),
    ],
)
def test_what_is_no_sum_is_refused_by_name(numbers, model, match):
    gamma = model.objective == "reg:gamma"  # whose targets are positive
    target = (numbers.value > 0).astype(int) + gamma
    more = {"qid": np.zeros(len(target), dtype=int)} if isinstance(model, xgboost.XGBRanker) else {}
    model.set_params(n_estimators=2).fit(numbers.frame, target, **more)

    with pytest.raises(UnsupportedModelError, match=match):
        read(model, numbers.space)


def test_several_outputs_and_one_class_are_refused(numbers):
    two = np.column_stack([numbers.value, -numbers.value])
    with pytest.raises(UnsupportedModelError, match=r"one output, but XGBRegressor was fitted on 2"):
        read(XGBRegressor(n_estimators=2).fit(numbers.frame, two), numbers.space)
    three = np.digitize(numbers.value, [-1.0, 1.0])
    joint = XGBClassifier(n_estimators=2, multi_strategy="multi_output_tree").fit(numbers.frame, three)
    with pytest.raises(UnsupportedModelError, match=r"one value per leaf, but .* multi_strategy='multi_output_tree'"):
        read(joint, numbers.space)
    if not NAMES_CATEGORIES:
        return  # fails to fit on one class
    with pytest.raises(UnsupportedModelError, match=r"at least two classes, but XGBClassifier knows only \[0\]"):
        read(XGBClassifier(n_estimators=2).fit(numbers.frame, np.zeros(len(three))), numbers.space)


def test_an_unfitted_model_is_refused(numbers):
    with pytest.raises(UnsupportedModelError, match=r"a fitted model, but XGBClassifier is not fitted. Call fit first"):
        read(XGBClassifier(), numbers.space)


def test_an_array_model_needs_as_many_columns(numbers):
    model = XGBClassifier(n_estimators=2).fit(numbers.frame.to_numpy(), numbers.value > 0)
    with pytest.raises(UnsupportedModelError, match=r"was fitted on, 4, but"):
        read(model, numbers.only("age", "income").space)


def test_a_library_that_is_missing_or_too_old_is_named(numbers, monkeypatch, tmp_path):
    model = XGBClassifier(n_estimators=2).fit(numbers.frame, numbers.value > 0)
    with monkeypatch.context() as patched:
        patched.setattr(xgboost, "__version__", "2.1.4")
        with pytest.raises(UnsupportedModelError, match=r"xgboost 3 or later, but version 2.1.4 is installed"):
            read(model, numbers.space)
    monkeypatch.setitem(__import__("sys").modules, "xgboost", None)
    with pytest.raises(MissingLibraryError, match=r'pip install "ceopt\[xgboost\]"'):
        open_model(tmp_path / "model.json")


# ---- broken files ---------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def saved_model() -> xgboost.Booster:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200), "c": pd.Categorical(rng.choice(list("xyz"), 200))})
    matrix = xgboost.DMatrix(frame, (frame["a"] > 0) ^ (frame["c"] == "y"), enable_categorical=True)
    return xgboost.train({"objective": "binary:logistic", "max_cat_to_onehot": 1}, matrix, 3)


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b"null", b"hello", b"\0" * 64, b'{"a": [1, 2]}', b"[" * 200_000, b'{"a":' * 200_000,
     b'{"version": [3, 0, 0], "learner": {}}', b'{"learner": 3, "version": [3, 0, 0]}', b"{L\x7f" + b"\xff" * 7,
     b"[$d#L\x0f" + b"\xff" * 7, b'{"version": 3, "version": 4}'],
)  # fmt: skip
def test_files_of_other_programs_are_refused(tmp_path, suffix, content):
    path = tmp_path / f"other{suffix}"
    path.write_bytes(content)

    with pytest.raises(
        UnreadableFileError, match=rf"XGBoost saved as .json or .ubj, but '.*other{suffix}' is none: it "
    ):
        open_model(path)


@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_truncated_files_are_refused_wherever_they_end(saved_model, tmp_path, suffix):
    raw = bytes(saved_model.save_raw(suffix))
    path = tmp_path / f"cut.{suffix}"
    for end in [*range(0, len(raw), 97), len(raw) - 1]:
        path.write_bytes(raw[:end])
        with pytest.raises(UnreadableFileError, match=r"cut.* is none"):
            open_model(path)
    path.write_bytes(raw + b"x")
    with pytest.raises(UnreadableFileError, match=r"cut.* is none"):
        open_model(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UnreadableFileError, match=r"absent.ubj' is none: No such file"):
        open_model(tmp_path / "absent.ubj")


TREE = ("gradient_booster", "model", "trees", 0)
BROKEN: list[tuple[tuple[Any, ...], Any]] = [
    ((*TREE, "left_children", 0), 10**6),
    ((*TREE, "left_children", 0), -5),
    ((*TREE, "right_children", 0), 0),
    ((*TREE, "right_children"), []),
    ((*TREE, "split_indices", 0), 10**6),
    ((*TREE, "parents", 2), 47872),
    ((*TREE, "parents", 0), 0),
    ((*TREE, "split_conditions"), [1.0]),
    ((*TREE, "default_left"), []),
    ((*TREE, "categories_segments", 0), 10**6),
    ((*TREE, "categories_sizes", 0), 2**40),
    ((*TREE, "categories_sizes", 0), -1),
    ((*TREE, "categories_nodes", 0), 10**6),
    ((*TREE, "categories_nodes"), []),
    ((*TREE, "categories", 0), -1),
    ((*TREE, "categories", 0), 2**40),
    ((*TREE, "id"), 7),
    ((*TREE, "tree_param", "num_nodes"), "1000000000000"),
    ((*TREE, "tree_param", "size_leaf_vector"), "1000000"),
    (("gradient_booster", "model", "tree_info", 0), 1000),
    (("gradient_booster", "model", "tree_info", 0), -1),
    (("gradient_booster", "model", "iteration_indptr"), [0, 10**6]),
    (("gradient_booster", "model", "iteration_indptr"), []),
    (("gradient_booster", "model", "iteration_indptr"), [0, 2, 1, 3]),
    (("gradient_booster", "model", "gbtree_model_param", "num_trees"), "1000000000"),
    (("gradient_booster", "name"), "nope"),
    (("learner_model_param", "num_class"), "1000000000"),
    (("learner_model_param", "num_target"), "1000000000"),
    (("learner_model_param", "num_feature"), "4000000000"),
    (("learner_model_param", "num_feature"), "1"),
    (("learner_model_param", "base_score"), "[nan]"),
    (("learner_model_param", "base_score"), "2"),
    (("objective", "name"), "nope"),
    (("gradient_booster", "weight_drop"), [1.0]),
    (("gradient_booster", "model", "weight_drop"), [1.0] * 99),
    (("feature_names",), ["a"] * 99),
]


@pytest.mark.parametrize(("place", "value"), BROKEN)
def test_indices_that_lead_nowhere_are_refused_before_the_library_follows_them(saved_model, tmp_path, place, value):
    changed = document(saved_model)
    inner = changed["learner"]
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(changed))

    with pytest.raises((UnreadableFileError, UnsupportedModelError)):
        open_model(path)


@named_categories
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("enc", []), ("feature_segments", [0, 10**9, 5]), ("sorted_idx", [0, 1, 99999]), ("sorted_idx", [0, 1, 2, 3]),
        ("enc", [{"offsets": [], "values": []}, {"offsets": [0, 1, 2, 10**9], "values": [120, 121, 122]}]),
    ],
)  # fmt: skip
def test_tables_of_categories_that_lead_nowhere_are_refused(saved_model, tmp_path, key, value):
    changed = document(saved_model)
    changed["learner"]["gradient_booster"]["model"]["cats"][key] = value
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(changed))

    with pytest.raises(UnreadableFileError, match="broken.json' is none"):
        open_model(path)


def test_a_file_of_an_old_version_is_refused(saved_model, tmp_path):
    path = tmp_path / "old.json"
    path.write_text(json.dumps(document(saved_model) | {"version": [0, 90, 0]}))

    with pytest.raises(UnsupportedModelError, match=r"a model of xgboost 1 or later, but .* saved by 0.90.0"):
        open_model(path)


def test_flipped_bytes_are_refused_or_read_but_never_crash(saved_model, tmp_path):
    raw, rng = bytes(saved_model.save_raw("ubj")), np.random.default_rng(0)
    path, refused = tmp_path / "flipped.ubj", 0
    for _ in range(200):
        flipped = bytearray(raw)
        for place in rng.integers(len(raw), size=rng.integers(1, 4)):
            flipped[place] = rng.integers(256)
        path.write_bytes(flipped)
        try:
            open_model(path)
        except (UnreadableFileError, UnsupportedModelError):
            refused += 1

    assert 100 < refused < 200


def test_read_estimator_reads_a_dense_matrix(numbers):
    model = XGBClassifier(missing=0, **FEW).fit(numbers.frame, numbers.value > 0)

    core = read_estimator(model, "float64")

    assert isinstance(core, TreeEnsemble)
    assert not any(tree.sets for tree in core.trees)

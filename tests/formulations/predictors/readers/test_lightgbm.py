"""LightGBM, bit by bit: leaves, raw scores and labels on random rows, on every threshold and next to it."""

from __future__ import annotations

import math
import pickle
import re
import sys
from types import SimpleNamespace
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
from library_rows import frame_of, trial_rows
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from ceopt.formulations.predictors.readers import lightgbm as trees
from ceopt.formulations.predictors.readers import open_model, read
from ceopt.formulations.predictors.readers.model_input import given
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics import validity
from ceopt.oracle.model import ModelOracle
from ceopt.solvers.errors import MissingLibraryError, UnreadableFileError, UnsupportedModelError

#: Names such as age are no matter here.
pytestmark = pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")

FEW = {"n_estimators": 8, "num_leaves": 7, "min_child_samples": 3, "verbose": -1, "random_state": 0, "n_jobs": 1}
BAGGED = {"bagging_freq": 1, "bagging_fraction": 0.6}
ZERO = float(np.float32(1e-35))
CLASSIFIERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "dart": {"boosting_type": "dart", "drop_rate": 0.5},
    "goss": {"data_sample_strategy": "goss"},
    "rf": {"boosting_type": "rf", **BAGGED},
    "sigmoid": {"sigmoid": 0.7},
    "balanced": {"class_weight": "balanced"},
    "no average": {"boost_from_average": False},
    "cross entropy": {"objective": "cross_entropy"},
    "rising": {"monotone_constraints": [1, 0, 0, 0], "extra_trees": True},
    "zero as missing": {"zero_as_missing": True},
}
SEVERAL: dict[str, dict[str, Any]] = {
    "plain": {},
    "one against all": {"objective": "multiclassova"},
    "rf": {"boosting_type": "rf", **BAGGED},
}
REGRESSORS: dict[str, dict[str, Any]] = {
    "plain": {},
    "dart": {"boosting_type": "dart"},
    "rf": {"boosting_type": "rf", **BAGGED},
    **{name: {"objective": name} for name in ("regression_l1", "huber", "fair", "quantile")},
    "custom": {"objective": lambda y, score: (score - y, np.ones_like(y))},
}


def agree(model: Any, space: FeatureSpace, coordinates: Any, *more: Any, booster: Any = None) -> Any:
    """Everything that was read is what the library says, on all rows; the predictor is returned."""
    predictor = read(model, space)
    core, opened = predictor.core, open_model(model)
    rows = np.concatenate([trial_rows(predictor, np.asarray(coordinates)), *more])
    data = given(opened, space, frame_of(space, rows))
    booster = booster or (model if isinstance(model, lightgbm.Booster) else model.booster_)

    matrix = predictor.encoding.matrix(rows)
    raw = booster.predict(data, raw_score=True)
    np.testing.assert_array_equal(core.score(matrix), raw / core.divisor)
    np.testing.assert_array_equal(core.predict(matrix), opened.predict(data))
    if core.labels is not None:
        assert list(core.labels) == opened.classes_.tolist()
    if core.probability is not None:
        np.testing.assert_allclose(
            core.head.of_position(core.score(matrix), 1), opened.predict_proba(data)[:, 1], rtol=1e-12
        )
    return predictor


def leaves_agree(model: Any, predictor: Any, coordinates: Any) -> None:
    """Each tree's leaf is the library's."""
    core, rows = predictor.core, trial_rows(predictor, coordinates)
    ours = core.apply(predictor.encoding.matrix(rows)) - [tree.inner.sum() for tree in core.trees]
    theirs = model.predict(given(model, predictor.space, frame_of(predictor.space, rows)), pred_leaf=True)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_two_classes(numbers: Any, name: str) -> None:
    rare = np.where(numbers.value > np.quantile(numbers.value, 0.8), "yes", "no")
    model = lightgbm.LGBMClassifier(**{**FEW, **CLASSIFIERS[name]}).fit(numbers.frame, rare)
    rows = numbers.space.coordinates(numbers.frame)

    predictor = agree(model, numbers.space, rows)

    assert 0.02 < (model.predict(numbers.frame) == "yes").mean() < 0.98 or name == "rising"
    assert predictor.core.divisor == (8 if name == "rf" else 1)
    assert (predictor.core.probability == "logistic") == (name != "sigmoid")
    if name != "zero as missing":
        leaves_agree(model, predictor, rows)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("array", [False, True])
def test_several_classes(numbers: Any, name: str, array: bool) -> None:
    data = numbers.frame.to_numpy(dtype=float) if array else numbers.frame
    model = lightgbm.LGBMClassifier(**{**FEW, **SEVERAL[name]}).fit(data, numbers.three)
    rows = numbers.space.coordinates(numbers.frame)

    predictor = agree(model, numbers.space, rows)

    assert predictor.core.labels == ("low", "mid", "top")
    leaves_agree(model, predictor, rows)


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(numbers: Any, name: str) -> None:
    model = lightgbm.LGBMRegressor(**{**FEW, **REGRESSORS[name]}).fit(numbers.frame, numbers.value)
    predictor = agree(model, numbers.space, numbers.space.coordinates(numbers.frame))
    assert predictor.labels is None


def test_mape_and_a_ranker(numbers: Any) -> None:
    rows = numbers.space.coordinates(numbers.frame)
    mape = lightgbm.LGBMRegressor(objective="mape", **FEW).fit(numbers.frame, 5 + np.abs(numbers.value))
    ranker = lightgbm.LGBMRanker(**FEW).fit(numbers.frame, np.arange(240) % 4, group=[60] * 4)
    agree(mape, numbers.space, rows)
    agree(ranker, numbers.space, rows)


def test_two_classes_with_a_tree_each(numbers: Any) -> None:
    model = lightgbm.LGBMClassifier(objective="multiclass", num_class=2, **FEW).fit(numbers.frame, numbers.two)
    predictor = agree(model, numbers.space, numbers.space.coordinates(numbers.frame))
    assert predictor.core.n_scores == 2


def test_trees_after_the_best_iteration_do_not_count(numbers: Any) -> None:
    frame, space = numbers.frame, numbers.space
    options = {key: value for key, value in FEW.items() if key not in {"n_estimators", "n_jobs"}}
    data = lightgbm.Dataset(frame, (numbers.value > 0).astype(float))
    noise = data.create_valid(frame[::-1], np.arange(240) % 2)
    booster = lightgbm.train(
        {**options, "objective": "binary"}, data, 30, valid_sets=[noise], keep_training_booster=True,
        callbacks=[lightgbm.early_stopping(2, verbose=False)],
    )  # fmt: skip
    assert 0 < booster.best_iteration < booster.current_iteration()
    predictor = agree(booster, space, space.coordinates(frame))
    assert len(predictor.core.trees) == booster.best_iteration

    model = lightgbm.LGBMClassifier(boosting_type="rf", **BAGGED, **FEW).fit(frame, numbers.two)
    model.booster_.best_iteration = 3
    predictor = agree(model, space, space.coordinates(frame))
    assert len(predictor.core.trees) == predictor.core.divisor == 3


@pytest.mark.parametrize("options", [{}, {"zero_as_missing": True}, {"use_missing": False}])
def test_missing_values_in_the_training_frame(folk: Any, options: Any) -> None:
    rng = np.random.default_rng(0)
    gaps = folk.frame.assign(kids=folk.frame["kids"].astype(float))
    for name in ("income", "kids", "job", "grade"):
        gaps[name] = gaps[name].mask(rng.random(len(gaps)) < 0.3)
    value = folk.value + 3.0 * gaps["income"].isna() + 2.0 * gaps["job"].isna()
    model = lightgbm.LGBMRegressor(**CODED, **options).fit(gaps, value)
    space = FeatureSpace.infer(folk.frame.assign(kids=folk.frame["kids"].astype(float)))
    rows = space.coordinates(folk.frame)
    if not options:
        assert "inf" in model.booster_.model_to_string().split("end of trees")[0]  # a split of missing from the rest

    agree(model, space, rows, every_level(space, rows[:40]))


def test_trees_without_a_split(numbers: Any) -> None:
    model = lightgbm.LGBMRegressor(**FEW).fit(numbers.frame, np.full(240, 2.5))
    predictor = agree(model, numbers.space, numbers.space.coordinates(numbers.frame))
    assert set(predictor.core.score(numbers.frame)) == {2.5}


# ---- thresholds -----------------------------------------------------------------------------------------------------
def stump(low: float, high: float, **options: Any) -> Any:
    """A model with one split between two values."""
    options = {"n_estimators": 1, "learning_rate": 1.0, "min_child_samples": 1, "verbose": -1, **options}
    return lightgbm.LGBMRegressor(**options).fit(np.repeat([[low], [high]], 30, axis=0), np.repeat([0.0, 1.0], 30))


def test_a_threshold_is_kept_in_float64() -> None:
    """D9: as float32 2.0500000000000003 would be 2.049999952..., and numbers between the two on the wrong side."""
    model = stump(2.0, 2.1)
    space = FeatureSpace([Feature("x", kind="continuous", lower=0.0, upper=9.0)])
    (tree,) = read(model, space).core.trees

    assert tree.threshold[0] == 2.0500000000000003 != float(np.float32(tree.threshold[0]))
    x = np.array([2.04999996, 2.05, 2.0500000000000003, 2.050000000000001, 2.0500001])[:, None]
    assert model.predict(x).round().tolist() == [0, 0, 0, 1, 1]
    np.testing.assert_array_equal(read(model, space).core.predict(x), model.predict(x))
    agree(model, space, [[2.0], [3.0]], x)


NEAR_ZERO = np.array(
    [v for z in (-ZERO, -1e-35, -5e-324, -0.0, 0.0, 5e-324, 1e-36, 1e-35, ZERO, -2.0, -0.5, 0.5, 2.0)
     for v in (math.nextafter(z, -math.inf), z, math.nextafter(z, math.inf))]
)[:, None]  # fmt: skip


def test_numbers_that_the_library_takes_for_zero_are_on_the_side_of_zero() -> None:
    """-1.0000000180025095e-35 is not above the threshold that it equals."""
    model = lightgbm.LGBMRegressor(n_estimators=1, learning_rate=1, min_child_samples=1, verbose=-1)
    model.fit(np.repeat([[-1.0], [0.0], [1.0]], 30, axis=0), np.repeat([0.0, 5.0, 1.0], 30))
    space = FeatureSpace([Feature("x", kind="continuous")])
    assert "threshold=-1.0000000180025095e-35 1.0000000180025095e-35" in model.booster_.model_to_string()

    agree(model, space, [[-1.0], [1.0]], NEAR_ZERO)
    assert model.predict([[-ZERO], [0.0], [math.nextafter(-ZERO, -1)]]).tolist() == [5.0, 5.0, 0.0]


@pytest.mark.long(every=7)
@pytest.mark.parametrize("threshold", [-0.75, -ZERO, -1e-36, 0.0, 1e-36, ZERO, 0.75])
@pytest.mark.parametrize("missing", ["None", "Zero", "NaN"])
@pytest.mark.parametrize("default_left", [False, True])
def test_every_meaning_of_missing_at_every_place_of_the_threshold(
    threshold: float, missing: str, default_left: bool
) -> None:
    """Two splits below each other on one column, so that what is known of it matters."""
    kind = 2 * default_left + 4 * ["None", "Zero", "NaN"].index(missing)
    model = stump(-1.0, 2.0, num_leaves=2)
    text = model.booster_.model_to_string()
    changes = {
        "num_leaves=2": "num_leaves=4",
        "split_feature=0": "split_feature=0 0 0",
        r"threshold=[^\n]*": f"threshold={threshold!r} {-threshold!r} 0.25",
        r"decision_type=\d+": f"decision_type={kind} {kind ^ 2} 6",
        r"left_child=[^\n]*": "left_child=1 -1 -3",
        r"right_child=[^\n]*": "right_child=2 -2 -4",
        r"leaf_value=[^\n]*": "leaf_value=1 2 4 8",
        **{rf"\n{name}=[^\n]*": f"\n{name}={values}" for name, values in {
            "split_gain": "1 1 1", "leaf_weight": "1 1 1 1", "leaf_count": "1 1 1 1", "internal_value": "0 0 0",
            "internal_weight": "1 1 1", "internal_count": "3 2 1"}.items()},
    }  # fmt: skip
    booster = lightgbm.Booster(model_str=changed(text, changes))
    space = FeatureSpace([Feature("x", kind="continuous")])

    agree(booster, space, [[-3.0], [3.0]], NEAR_ZERO, [[threshold], [-threshold], [0.25], [-0.75]])


def changed(text: str, changes: dict[str, str]) -> str:
    """Change the text of a one-tree model, and state the tree's new size."""
    for before, after in changes.items():
        text, count = re.subn(before, after, text, count=1)
        assert count == 1, before
    size = len(text[text.index("Tree=0\n") : text.index("end of trees")])
    return re.sub(r"tree_sizes=\d+", f"tree_sizes={size}", text)


@pytest.mark.parametrize("seed", range(4))
def test_zero_as_missing_on_sparse_counts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(-3, 4, (400, 3)) * (rng.random((400, 3)) < 0.7)
    score = np.where(counts == 0, rng.choice([-3.0, 3.0], 3), np.abs(counts) - 1.5).sum(axis=1)
    model = lightgbm.LGBMClassifier(zero_as_missing=True, **FEW).fit(counts.astype(float), score > 0)
    space = FeatureSpace([Feature(name, kind="continuous") for name in "abc"])
    rows = np.concatenate([counts, *[np.where(counts == 0, tiny, counts) for tiny in (ZERO, -ZERO, 2e-35, -2e-35)]])

    predictor = agree(model, space, rows.astype(float))

    parsed = trees.parse(model.booster_.model_to_string())
    plain = sum(len(block.split()) for block in re.findall(r"split_feature=(.*)", model.booster_.model_to_string()))
    assert sum(int(tree.inner.sum()) for tree in parsed.trees) > plain  # some split is several
    assert predictor.core.n_inputs == 3


def test_a_tree_that_zero_as_missing_makes_too_large_is_refused(numbers: Any, monkeypatch: Any) -> None:
    frame = numbers.frame * 0 + np.random.default_rng(0).integers(-2, 3, numbers.frame.shape)
    model = lightgbm.LGBMClassifier(zero_as_missing=True, **FEW).fit(frame, np.abs(frame).sum(axis=1) > 4)
    read(model, numbers.space)
    monkeypatch.setattr(trees, "_MOST_NODES", 8)
    with pytest.raises(UnsupportedModelError, match=r"trees of at most 8 nodes, but .* Fit it with zero_as_missing=Fa"):
        read(model, numbers.space)


@pytest.mark.parametrize("slope", [1.0, 0.7, 3.0])
def test_the_label_changes_where_the_probability_that_the_library_rounds_does(slope: float) -> None:
    """Not at score 0: a probability that rounds to 1/2 is the first label's."""
    frame = np.repeat([[0.0], [1.0]], 30, axis=0)
    model = lightgbm.LGBMClassifier(**{**FEW, "n_estimators": 1, "sigmoid": slope}).fit(frame, frame[:, 0])
    text = model.booster_.model_to_string()
    level = read(model, FeatureSpace([Feature("x", kind="continuous")])).core.level
    assert 0 < level < 1e-15

    for score, label in ((0.0, 0), (level, 0), (math.nextafter(level, 1), 1)):
        leaves = changed(text, {r"leaf_value=[^\n]*": f"leaf_value={score!r} {score!r}"})
        booster = lightgbm.Booster(model_str=leaves)
        share = booster.predict(frame[:1])[0]
        assert (share > 1.0 - share) == label
        assert open_model(booster).predict(frame[:1]).tolist() == [label]
        assert read(booster, FeatureSpace([Feature("x", kind="continuous")])).core.predict([[0.0]]).tolist() == [label]


# ---- categories -----------------------------------------------------------------------------------------------------
CODED = {**FEW, "min_data_per_group": 1, "cat_smooth": 1.0, "max_cat_to_onehot": 2}


def people(n: int = 500) -> SimpleNamespace:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "job": pd.Categorical(rng.choice(list("abcdefg"), n), list("gfedcbaz")),
            "income": rng.normal(2.0, 1.0, n),
            "grade": pd.Categorical(rng.choice([3, 1, 2, 9], n), [3, 1, 2, 9]),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True),
            "flag": rng.random(n) < 0.5,
            "kids": rng.integers(-1, 5, n),
        }
    )
    score = frame["income"] + frame["job"].isin(list("ace")) - 2.0 * frame["grade"].isin([1, 9])
    score += (frame["size"] == "L") + frame["kids"].isin([0, 3]) + rng.normal(0, 0.3, n)
    return SimpleNamespace(
        frame=frame, label=np.where(score > score.median(), "good", "bad"), value=score.to_numpy(),
        space=FeatureSpace.infer(frame),
    )  # fmt: skip


@pytest.fixture(scope="module", name="folk")
def _folk() -> SimpleNamespace:
    return people()


def every_level(space: FeatureSpace, start: Any) -> np.ndarray[Any, Any]:
    """A row with each level of each column in turn."""
    rows = []
    for row in start:
        for j, feature in enumerate(space):
            for rank in range(len(feature.levels)):
                rows.append(np.array(row))
                rows[-1][j] = rank
    return np.array(rows)


@pytest.mark.parametrize("options", [{}, {"categorical_feature": ["job", "size", "kids", "flag"]}])
def test_native_categories_at_every_level(folk: Any, options: Any) -> None:
    model = lightgbm.LGBMClassifier(**CODED).fit(folk.frame, folk.label, **options)
    rows = folk.space.coordinates(folk.frame)
    by_set = trees.parse(model.booster_.model_to_string()).by_set
    assert {0, 2} <= by_set or options
    assert (5 in by_set) == bool(options)

    predictor = agree(model, folk.space, rows, every_level(folk.space, rows[:40]))
    leaves_agree(model, predictor, rows)


def test_a_level_that_the_model_never_saw_goes_right_as_in_the_library(folk: Any) -> None:
    model = lightgbm.LGBMRegressor(**CODED).fit(folk.frame, folk.value)
    more = folk.frame.assign(job=folk.frame["job"].cat.set_categories(["new", *"abcdefg"]))
    more.loc[:9, "job"] = "new"
    space = FeatureSpace.infer(more)  # other categories in another order
    assert space["job"].levels[0] == "new" or "new" in space["job"].levels

    rows = space.coordinates(more)
    predictor = agree(model, space, rows, every_level(space, rows[:40]))
    new = space["job"].levels.index("new")
    assert predictor.encoding.columns[0].table[new] == -1.0
    assert predictor.unseen == {}


def test_a_new_level_of_ordered_categories_has_no_code_and_is_refused(folk: Any) -> None:
    model = lightgbm.LGBMRegressor(**{**CODED, "n_estimators": 30}).fit(folk.frame, folk.value)
    assert 3 in trees.parse(model.booster_.model_to_string()).by_number
    more = folk.frame.assign(size=folk.frame["size"].cat.add_categories(["XL"]))
    more.loc[0, "size"] = "XL"
    space = FeatureSpace.infer(more)
    with pytest.raises(UnsupportedModelError, match=r"column 'size' level 'XL' is encoded as nan. Remove the level"):
        read(model, space)


def test_columns_of_another_dtype_are_refused(folk: Any) -> None:
    model = lightgbm.LGBMClassifier(**CODED).fit(folk.frame, folk.label)
    text = folk.frame.assign(job=folk.frame["job"].astype(str))
    with pytest.raises(UnsupportedModelError, match=r"column 'job' is text in the space. Infer the space from the"):
        read(model, FeatureSpace.infer(text))
    codes = folk.frame.assign(job=folk.frame["job"].cat.codes)
    with pytest.raises(UnsupportedModelError, match=r"was fitted on, 3, but the space has 'grade', 'size'. Infer"):
        read(model, FeatureSpace.infer(codes))
    plain = lightgbm.LGBMClassifier(**CODED).fit(folk.frame[["income", "flag"]], folk.label)
    ordered = folk.frame[["income"]].assign(flag=folk.frame["size"])
    with pytest.raises(UnsupportedModelError, match=r"was fitted on, 0, but the space has 'flag'"):
        read(plain, FeatureSpace.infer(ordered))


@pytest.mark.parametrize("kind", ["integer", "categorical"])
def test_codes_in_an_array(kind: str) -> None:
    """Bits of a set beyond the first word, and negative codes, which are in no set."""
    rng = np.random.default_rng(0)
    codes, x = rng.integers(-2, 70, 900), rng.normal(size=900)
    array = np.column_stack([x, codes])
    value = x + 3.0 * np.isin(codes, [-1, 0, 7, 33, 40, 64, 69])
    model = lightgbm.LGBMRegressor(**CODED).fit(array, value, categorical_feature=[1])
    levels = tuple(range(-2, 75))
    level_column = Feature("c", kind="categorical", levels=levels)
    column = Feature("c", kind="integer", lower=-2, upper=75) if kind == "integer" else level_column
    space = FeatureSpace([Feature("x", kind="continuous"), column])
    rows = np.array([[0.5, space["c"].to_coordinate(level)] for level in levels])

    predictor = agree(model, space, rows)

    held = {code for tree in predictor.core.trees for members in tree.sets for code in members}
    assert max(held) > 63
    assert min(held) >= 0


def test_numbers_that_are_taken_for_codes_are_refused() -> None:
    rng = np.random.default_rng(0)
    array = np.column_stack([rng.normal(size=300), rng.integers(0, 9, 300)])
    model = lightgbm.LGBMRegressor(**CODED).fit(array, array[:, 1] % 3, categorical_feature=[1])
    space = FeatureSpace([Feature("x", kind="continuous"), Feature("c", kind="continuous", lower=0.0, upper=8.0)])
    with pytest.raises(
        UnsupportedModelError, match=r"takes column 'Column_1' as such and it has others. Make it integ"
    ):
        read(model, space)


# ---- where the model stands -----------------------------------------------------------------------------------------
def test_names_with_blanks_and_columns_in_another_order(numbers: Any) -> None:
    frame = numbers.frame.rename(columns={"income": "yearly income", "debt": "all_the debt"})
    space = FeatureSpace.infer(frame[["tiny", "all_the debt", "age", "yearly income"]])
    model = lightgbm.LGBMClassifier(**FEW).fit(frame, numbers.two)
    assert model.feature_names_in_.tolist() == ["age", "yearly_income", "all_the_debt", "tiny"]

    for each in (model, model.booster_):
        agree(each, space, space.coordinates(frame), booster=model.booster_)
        with pytest.raises(UnsupportedModelError, match="'all_the_debt' is"):
            read(each, FeatureSpace.infer(frame.rename(columns={"all_the debt": "debts"})))
        with pytest.raises(UnsupportedModelError, match="column 'all_the_debt' is not in the space"):
            ModelOracle(open_model(each), FeatureSpace.infer(frame.rename(columns={"all_the debt": "debts"})))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_columns_of_an_array_are_matched_by_place_in_every_version(numbers: Any, monkeypatch: Any) -> None:
    array = numbers.frame.to_numpy(dtype=float)
    model = lightgbm.LGBMClassifier(**FEW).fit(array, numbers.two)
    rows = numbers.space.coordinates(numbers.frame)
    agree(model, numbers.space, rows)
    names = property(lambda self: np.array(self.feature_name_))  # as in lightgbm 4.5
    monkeypatch.setattr(lightgbm.LGBMModel, "feature_names_in_", names)
    agree(model, numbers.space, rows)
    with pytest.raises(UnsupportedModelError, match="as the model was fitted on, 4, but the space has 3"):
        read(model, FeatureSpace([numbers.space[name] for name in ("age", "income", "debt")]))


def test_whole_numbers_in_an_array_are_rounded_to_float32() -> None:
    """A pipeline that hands an integer matrix to LightGBM: it has no 64-bit integers."""
    frame = pd.DataFrame({"id": [2**26 + k for k in range(40)], "job": ["a", "b"] * 20})
    columns = make_column_transformer((OrdinalEncoder(dtype=np.int64), ["job"]), remainder="passthrough")
    options = {**FEW, "min_child_samples": 1, "min_data_in_bin": 1, "n_estimators": 1, "learning_rate": 1.0}
    model = make_pipeline(columns, lightgbm.LGBMRegressor(**options)).fit(frame, frame["id"] % 16 > 6)
    space = FeatureSpace.infer(frame, integer=["id"])
    matrix = columns.fit_transform(frame)
    assert matrix.dtype == np.int64

    predictor = read(model, space)
    ours = predictor.score(space.coordinates(frame))

    np.testing.assert_array_equal(ours, model.predict(frame))
    assert (ours != model[-1].booster_.predict(matrix.astype(float))).any()


def test_pipelines_and_searches(folk: Any) -> None:
    columns = make_column_transformer(
        (StandardScaler(), ["income"]), remainder="passthrough", verbose_feature_names_out=False
    )
    columns.set_output(transform="pandas")
    model = make_pipeline(columns, lightgbm.LGBMClassifier(**CODED)).fit(folk.frame, folk.label)
    search = GridSearchCV(model, {"lgbmclassifier__num_leaves": [5]}, cv=2).fit(folk.frame, folk.label)
    rows = folk.space.coordinates(folk.frame)
    rows = np.concatenate([rows, every_level(folk.space, rows[:20])])
    frame = frame_of(folk.space, rows)

    for each in (model, search):
        predictor = read(each, folk.space)
        assert predictor.core.predict(predictor.encoding.matrix(rows)).tolist() == each.predict(frame).tolist()
        pipeline = getattr(each, "best_estimator_", each)
        raw = pipeline[-1].predict(columns.transform(frame), raw_score=True)
        np.testing.assert_array_equal(predictor.score(rows), raw)
        assert trees.parse(pipeline[-1].booster_.model_to_string()).by_set == {1, 2}


# ---- boosters and files ---------------------------------------------------------------------------------------------
@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("objective", "labels"),
    [("binary", (0, 1)), ("cross_entropy", (0, 1)), ("multiclass", (0, 1, 2)), ("regression", None), ("none", None)],
)
def test_a_booster_its_pickle_and_its_file(folk: Any, tmp_path: Any, objective: str, labels: Any) -> None:
    ranks = np.digitize(folk.value, np.quantile(folk.value, [0.4, 0.7]))
    target = {"regression": folk.value, "none": folk.value, "multiclass": ranks}.get(objective, folk.label == "good")
    options = {key: value for key, value in CODED.items() if key not in {"n_estimators", "n_jobs"}}
    options |= {"objective": objective, "num_class": 3 if objective == "multiclass" else 1}
    if objective == "none":
        options["objective"] = lambda score, data: (score - data.get_label(), np.ones_like(score))
    booster = lightgbm.train(options, lightgbm.Dataset(folk.frame, np.asarray(target, float)), 6)
    path = tmp_path / "model.txt"
    booster.save_model(path)
    rows = folk.space.coordinates(folk.frame)
    expected = read(booster, folk.space)

    assert expected.labels == labels
    for model in (booster, pickle.loads(pickle.dumps(booster)), path, str(path)):
        predictor = agree(model, folk.space, rows, every_level(folk.space, rows[:20]), booster=booster)
        np.testing.assert_array_equal(predictor.score(rows), expected.score(rows))
    oracle = ModelOracle(path, folk.space)
    raw = booster.predict(folk.frame)
    said = raw.argmax(axis=1) if objective == "multiclass" else raw > 0.5 if labels else raw
    np.testing.assert_array_equal(oracle.predict(folk.frame), said)
    if labels:
        np.testing.assert_array_equal(oracle.probability(folk.frame, 1), raw[:, 1] if raw.ndim == 2 else raw)
    else:
        assert not hasattr(open_model(booster), "predict_proba")


def test_a_file_is_matched_by_name_or_by_place(numbers: Any, tmp_path: Any) -> None:
    frame, space = numbers.frame, FeatureSpace([numbers.space[name] for name in ("tiny", "age", "income", "debt")])
    for data, names in ((frame, list(frame)), (frame[list(space.names)].to_numpy(float), None)):
        lightgbm.LGBMRegressor(**FEW).fit(data, numbers.value).booster_.save_model(tmp_path / "m.txt")
        opened = open_model(tmp_path / "m.txt")
        assert getattr(opened, "feature_names_in_", np.array(None)).tolist() == names
        agree(tmp_path / "m.txt", space, space.coordinates(frame), booster=opened.booster)
    assert open_model(opened) is opened


@pytest.fixture(scope="module", name="saved")
def _saved(folk: Any) -> str:
    options = {**CODED, "n_estimators": 3, "zero_as_missing": True}
    return str(lightgbm.LGBMClassifier(**options).fit(folk.frame, folk.label).booster_.model_to_string())


def test_a_file_that_is_cut_anywhere_is_refused(saved: str, tmp_path: Any) -> None:
    path = tmp_path / "cut.txt"
    whole = saved.index("end of trees\n") + len("end of trees\n")
    for end in [*range(0, whole, 97), whole - 1]:
        path.write_text(saved[:end], encoding="utf-8")
        with pytest.raises(
            UnreadableFileError, match=r"The file '.*cut\.txt' needs a .*, but .*\. Save the model agai"
        ):
            open_model(path)


@pytest.mark.parametrize(
    ("before", "after", "match"),
    [
        ("tree\n", "\x7fELF\n", "its first line is not 'tree'"),
        ("version=v4", "version=v2", "a version among v3, v4, but its version is v2"),
        (r"left_child=\d+", "left_child=99", "left and right say otherwise"),
        (r"right_child=\S+", "right_child=-77", "left and right say otherwise"),
        (r"split_feature=\d+", "split_feature=6", "a split on a column that does not exist"),
        (r"split_feature=\d+", "split_feature=-1", "a split on a column that does not exist"),
        (r"num_leaves=\d+", "num_leaves=999999999999", "of 999999999999 numbers in leaf_value"),
        (r"num_leaves=\d+", "num_leaves=x", "the line 'num_leaves=x'"),
        (r"num_leaves=\d+\n", "", "num_leaves is missing"),
        (r"max_feature_idx=\d+", "max_feature_idx=999999999", "1000000000 columns, 6 names"),
        (r"num_tree_per_iteration=1", "num_tree_per_iteration=2", "3 trees for 2 scores"),
        (r"num_tree_per_iteration=1", "num_tree_per_iteration=0", "3 trees for 0 scores"),
        (r"tree_sizes=\d+", "tree_sizes=5", "trees of other sizes than tree_sizes"),
        (r"leaf_value=\S+", "leaf_value=nan", "value has nan"),
        (r"leaf_value=\S+", "leaf_value=inf", "value has inf"),
        (r"cat_boundaries=0 1", "cat_boundaries=0 9", "do not fit cat_boundaries"),
        (r"cat_boundaries=0 1", "cat_boundaries=1 1", "do not fit cat_boundaries"),
        (r"cat_threshold=\d+", "cat_threshold=0", "contradicts itself"),
        (r"num_cat=\d+", "num_cat=0", "a split on a set of categories that does not exist"),
        (r"objective=binary", "objective=unheard_of", "the library refuses it"),
        (r"pandas_categorical:\[\[", "pandas_categorical:[", "the library refuses it"),
        (r"pandas_categorical:.*", "pandas_categorical:[1]", r"pandas_categorical is \[1\]"),
        (r"num_class=1", "num_class=7", "another number of classes than of scores, 1"),
        (r"objective=binary", "objective=multiclass num_class:7", "another number of classes than of scores, 1"),
        (r"leaf_weight=", "leaf_weight=1 ", "numbers in leaf_weight"),
        (r"split_gain=(\d)", r"split_gain=\1=", "the line 'split_gain"),
        (r"leaf_count=", "\nleaf_count=", "the line ''"),
    ],
)  # fmt: skip
def test_a_file_that_contradicts_itself_is_refused_before_the_library_reads_it(
    saved: str, tmp_path: Any, before: str, after: str, match: str
) -> None:
    text, count = re.subn(before, after, saved, count=1)
    assert count == 1
    if "sizes" not in match:
        sizes = [len(block) for block in re.findall(r"Tree=\d+\n.*?\n\n\n", text, flags=re.DOTALL)]
        text = re.sub(r"tree_sizes=.*", f"tree_sizes={' '.join(map(str, sizes))}", text)
    path = tmp_path / "odd.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableFileError, match=f"odd.txt' needs .*{match}.*"):
        open_model(path)


def test_training_parameters_of_a_file_do_not_reach_the_library(saved: str, tmp_path: Any) -> None:
    """It would read beyond its text."""
    path = tmp_path / "odd.txt"
    path.write_text(saved.replace("[machines: ]", "[machines\n ]"), encoding="utf-8")
    assert open_model(path).booster.pandas_categorical[1] == [3, 1, 2, 9]


def test_files_that_are_none(tmp_path: Any, monkeypatch: Any, saved: str) -> None:
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00tree")
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("dear diary\n", encoding="utf-8")
    (tmp_path / "good.txt").write_text(saved, encoding="utf-8")
    for name in ("missing.txt", "bytes.txt", "empty.txt", "notes.txt", ""):
        path = tmp_path / name if name else tmp_path.rename(tmp_path.with_suffix(".txt"))
        with pytest.raises(UnreadableFileError, match=rf"The file '.*{name}' needs a model that LightGBM saved, but"):
            open_model(path)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingLibraryError, match=r"not installed. Run: pip install 'ceopt\[lightgbm\]'"):
        open_model(tmp_path.with_suffix(".txt") / "good.txt")


# ---- refusals -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("model", "match"),
    [
        (lightgbm.LGBMRegressor(objective="poisson"), r"has objective='poisson'. .* on the logarithm of the target"),
        (lightgbm.LGBMRegressor(objective="gamma"), r"has objective='gamma'. Fit it with objective='regression' on th"),
        (lightgbm.LGBMRegressor(objective="tweedie"), r"LGBMRegressor has objective='tweedie'"),
        (lightgbm.LGBMRegressor(objective="cross_entropy_lambda"), r"has objective='cross_entropy_lambda'"),
        (lightgbm.LGBMRegressor(objective="binary"), r"has objective='binary'. Fit LGBMClassifier, and ask for a ceop"),
        (lightgbm.LGBMRegressor(reg_sqrt=True), r"has reg_sqrt=True. .* on the square root of the target"),
        (lightgbm.LGBMRegressor(linear_tree=True), r"fitted with linear_tree=True. Fit it with linear_tree=False"),
        (lightgbm.LGBMClassifier(objective="regression"), r"has objective='regression'. Objectives that are read: bin"),
        (lightgbm.LGBMClassifier(objective=lambda y, s: (s - y, 1 + 0 * y)), r"Classifier has objective='custom'"),
        (lightgbm.LGBMClassifier(pred_early_stop=True), r"LGBMClassifier has pred_early_stop=True. Set it to False"),
        (lightgbm.LGBMClassifier(sigmoid=1.23456789), r"has sigmoid=1.23456789. Fit it with sigmoid=1.23457"),
        (lightgbm.LGBMModel(objective="binary"), r"the estimator is LGBMModel. Give LGBMClassifier, LGBMRegressor"),
    ],
)  # fmt: skip
def test_what_is_no_sum_of_leaves_is_refused(numbers: Any, model: Any, match: str) -> None:
    model.set_params(**FEW).fit(numbers.frame, (numbers.value > 0) + (1 if model.objective == "gamma" else 0))
    with pytest.raises(UnsupportedModelError, match=match):
        read(model, numbers.space)


def test_saturated_votes_one_class_and_no_fit_are_refused(numbers: Any) -> None:
    frame = pd.DataFrame({"x": np.arange(90.0), "y": np.arange(90.0)})
    options = {**FEW, "n_estimators": 60, "learning_rate": 0.5, "min_sum_hessian_in_leaf": 1e-9}
    model = lightgbm.LGBMClassifier(objective="multiclassova", **options).fit(frame, np.arange(90) // 30)
    space = FeatureSpace.infer(frame)
    with pytest.raises(UnsupportedModelError, match=r"'multiclassova' reach .*. Fit it with objective='multiclass'"):
        read(model, space)
    with pytest.raises(UnsupportedModelError, match="LGBMClassifier knows only 'a'"):
        read(lightgbm.LGBMClassifier(**FEW).fit(frame, ["a"] * 90), space)
    with pytest.raises(UnsupportedModelError, match="LGBMClassifier is not fitted. Call fit first"):
        read(lightgbm.LGBMClassifier(), space)


def test_other_objects_of_the_library_are_refused(numbers: Any) -> None:
    data = lightgbm.Dataset(numbers.frame, (numbers.value > 0).astype(float))
    options = {"objective": "binary", "verbose": -1, "num_leaves": 3}
    folds = lightgbm.cv(options, data, 2, nfold=2, return_cvbooster=True)["cvbooster"]
    for model, name in ((data, "Dataset"), (folds, "CVBooster"), (lightgbm.DaskLGBMRegressor(), "DaskLGBMRegressor")):
        with pytest.raises(UnsupportedModelError, match=f"the estimator is {name}. Give LGBMClassifier, LGBMRegressor"):
            open_model(model)
    scores = {"objective": lambda score, _: (score.ravel(), np.ones(score.size)), "num_class": 2, "verbose": -1}
    with pytest.raises(UnsupportedModelError, match="model has 2 and no classes. Fit it with objective='multiclass"):
        read(lightgbm.train(scores, data, 2), numbers.space)


@pytest.mark.parametrize("columns", [["my income", "age"], ["age", "my income"]])
def test_a_metric_without_a_space_gives_columns_by_the_names_that_lightgbm_writes(columns):
    """LightGBM writes "my income" as "my_income", which no column of the user's table is called."""
    frame = pd.DataFrame({"my income": np.arange(40.0), "age": np.arange(40.0)[::-1]})
    labels = (frame["my income"] > 29.5).astype(int)
    model = lightgbm.LGBMClassifier(**FEW).fit(frame, labels)

    assert validity(frame[columns], model, 1) == np.mean(model.predict(frame)) > 0.0

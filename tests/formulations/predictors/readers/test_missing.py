"""What models make of missing cells and codes: predictions and scores equal the library's own, bit for bit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - lets the next line import it
from sklearn.impute import IterativeImputer, KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt.formulations.predictors import Affine
from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.raw_trees import raw_trees
from ceopt.formulations.predictors.readers import open_model, read
from ceopt.formulations.predictors.readers.model_input import given as as_given
from ceopt.formulations.predictors.trees import Tree, TreeEnsemble
from ceopt.formulations.space.encoding import Column, Encoding
from ceopt.formulations.space.feature import MISSING, Feature
from ceopt.formulations.space.space import FeatureSpace, frame_of
from ceopt.solvers.errors import InvalidValueError, UnsupportedModelError

ROWS: Final = 400
NUMBERS: Final = ["a", "b", "d"]


def _space(dtype: str = "object", *, missing: Any = True) -> FeatureSpace:
    return FeatureSpace([
        Feature("a", kind="continuous", lower=-3.0, upper=3.0, missing=missing),
        Feature("b", kind="integer", lower=0.0, upper=30.0, codes=(-9, -8), missing=missing),
        Feature("c", kind="categorical", levels=("u", "v", "w"), missing=missing, dtype=dtype),
        Feature("d", kind="continuous", lower=0.0, upper=5.0, step=0.1, missing=missing),
    ])  # fmt: skip


def _frame(*, gaps: float, dtype: str = "object") -> pd.DataFrame:
    """Return rows to fit on."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "a": rng.normal(size=ROWS),
        "b": np.where(rng.random(ROWS) < 0.1, -9.0, rng.integers(0, 30, size=ROWS)),
        "c": pd.Series(rng.choice(["u", "v", "w"], size=ROWS), dtype="object"),
        "d": np.round(rng.random(ROWS) * 5.0, 1),
    })  # fmt: skip
    for name in frame:
        frame.loc[rng.random(ROWS) < gaps, name] = np.nan
    return frame.astype({"c": dtype})


def _labels(frame: pd.DataFrame) -> np.ndarray:
    score = frame["a"].fillna(0.7) + 0.1 * frame["b"].fillna(-2.0) + (frame["c"] == "u") - 0.2 * frame["d"].fillna(9.0)
    return np.asarray(score > score.median(), dtype=np.int64)


def _rows(predictor: Predictor | None = None) -> np.ndarray:
    """Return rows as coordinates: random ones, missing cells, codes, beside the trees' splits, all of them missing."""
    rng = np.random.default_rng(3)
    rows = np.column_stack([
        rng.normal(size=ROWS), rng.integers(0, 31, size=ROWS), rng.integers(0, 3, size=ROWS),
        np.round(rng.random(ROWS) * 5.0, 1),
    ])  # fmt: skip
    for part in () if predictor is None else predictor.forests:
        raw = raw_trees(part)
        splits = [(name, k) for name, lefts in raw.lefts.items() for k in range(len(lefts))]
        for k, (name, cut) in enumerate(splits[: ROWS // 2]):
            place = predictor.space.names.index(name)
            value = (raw.lefts if k % 2 == 0 else raw.rights)[name][cut]
            if place != 1 and 1e-30 < abs(value) < 1e30:  # others round to 0 or infinity in float32
                rows[k, place] = value
    rows[::7, 0] = 0.0
    rows[rng.random(ROWS) < 0.1, 1] = -9.0
    rows[rng.random(ROWS) < 0.05, 1] = -8.0
    rows[rng.random(rows.shape) < 0.2] = MISSING
    rows[0] = MISSING
    return rows


def _before(numbers: Any, levels: Any) -> Any:
    return make_column_transformer((numbers, NUMBERS), (levels, ["c"]))


def _one_hot(**options: Any) -> OneHotEncoder:
    return OneHotEncoder(handle_unknown="ignore", **options)


def _filled_levels() -> Any:
    return make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())


def _indicators() -> Any:
    numbers = make_union(SimpleImputer(), MissingIndicator())
    levels = make_union(_filled_levels(), MissingIndicator())
    return make_column_transformer((numbers, NUMBERS), (levels, ["c"]))


def _xgb(**options: Any) -> Any:
    return xgboost.XGBClassifier(n_estimators=8, max_depth=4, enable_categorical=True, **options)


def _lgb(**options: Any) -> Any:
    return lightgbm.LGBMClassifier(n_estimators=8, num_leaves=8, min_child_samples=5, verbose=-1, **options)


def _forest() -> Any:
    return RandomForestClassifier(6, max_depth=5, random_state=0)


#: Models by name: how each is made, and the dtype of its column of levels.
NAMES_CATEGORIES: Final = tuple(map(int, xgboost.__version__.split(".")[:2])) >= (3, 1)
MODELS: Final[Mapping[str, tuple[Callable[[], Any], str]]] = {
    "forest": (lambda: make_pipeline(_before("passthrough", _one_hot()), _forest()), "object"),
    "extra trees, scaled": (
        lambda: make_pipeline(
            _before(StandardScaler(), OrdinalEncoder()), ExtraTreesClassifier(6, max_depth=5, random_state=0)
        ),
        "object",
    ),
    "tree, gap as a level": (
        lambda: make_pipeline(
            _before(MinMaxScaler(), OrdinalEncoder(encoded_missing_value=-1)), DecisionTreeClassifier(max_depth=5)
        ),
        "object",
    ),
    "histogram": (
        lambda: make_pipeline(
            _before("passthrough", OrdinalEncoder()), HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=8)
        ),
        "object",
    ),
    "histogram by category": (
        lambda: HistGradientBoostingClassifier(max_iter=8, categorical_features="from_dtype"), "category"
    ),
    "histogram value": (
        lambda: make_pipeline(_before("passthrough", OrdinalEncoder()), HistGradientBoostingRegressor(max_iter=8)),
        "object",
    ),
    "bagging": (
        lambda: make_pipeline(
            _before("passthrough", _one_hot()),
            BaggingClassifier(DecisionTreeClassifier(max_depth=3), 4, max_features=0.7, random_state=0),
        ),
        "object",
    ),
    "voting": (
        lambda: make_pipeline(
            _before("passthrough", _one_hot()),
            VotingClassifier([("one", _forest()), ("two", ExtraTreesClassifier(3, max_depth=3))], voting="soft"),
        ),
        "object",
    ),
    "forest value": (
        lambda: make_pipeline(_before("passthrough", _one_hot()), RandomForestRegressor(4, max_depth=5)), "object"
    ),
    "mean, logistic": (
        lambda: make_pipeline(
            _before(make_pipeline(SimpleImputer(), StandardScaler()), _filled_levels()), LogisticRegression()
        ),
        "object",
    ),
    "median with indicator, ridge": (
        lambda: make_pipeline(
            _before(make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler()), _one_hot()),
            Ridge(),
        ),
        "object",
    ),
    "most frequent, forest": (
        lambda: make_pipeline(_before(SimpleImputer(strategy="most_frequent"), _filled_levels()), _forest()), "object"
    ),
    "constant with indicator, network": (
        lambda: make_pipeline(
            _before(
                make_pipeline(SimpleImputer(strategy="constant", fill_value=-1.5, add_indicator=True), MinMaxScaler()),
                make_pipeline(SimpleImputer(strategy="constant", fill_value="none", add_indicator=False), _one_hot()),
            ),
            MLPClassifier((4,), max_iter=60, random_state=0),
        ),
        "object",
    ),
    "MissingIndicator, scaled, logistic": (
        lambda: make_pipeline(_indicators(), StandardScaler(), LogisticRegression()), "object"
    ),
    "gradient behind an imputer": (
        lambda: make_pipeline(
            _before(SimpleImputer(), _filled_levels()), GradientBoostingClassifier(n_estimators=5, random_state=0)
        ),
        "object",
    ),
    "xgboost": (_xgb, "category"),
    "xgboost, a number is missing": (lambda: _xgb(missing=-9.0), "category"),
    "xgboost, dart": (lambda: _xgb(booster="dart", rate_drop=0.3), "category"),
    "xgboost, one category apart": (lambda: _xgb(max_cat_to_onehot=1), "category"),
    "xgboost, linear": (
        lambda: make_pipeline(_before("passthrough", _one_hot(sparse_output=False)), _xgb(booster="gblinear")), "object"
    ),
    "xgboost, sparse": (
        lambda: make_pipeline(
            make_column_transformer(("passthrough", NUMBERS), (_one_hot(), ["c"]), sparse_threshold=1.0), _xgb()
        ),
        "object",
    ),
    "lightgbm": (_lgb, "category"),
    "lightgbm, zero is missing": (lambda: _lgb(zero_as_missing=True), "category"),
    "lightgbm, nothing is missing": (lambda: _lgb(use_missing=False), "category"),
    "lightgbm, forest": (lambda: _lgb(boosting_type="rf", bagging_freq=1, bagging_fraction=0.5), "category"),
}  # fmt: skip


def _refuses_new_gaps(model: Any) -> bool:
    """Whether a step says so of cells that had a value in each row of the fit: encoders, and indicators."""
    if not hasattr(model, "steps"):
        return False
    steps = [*model[0].named_transformers_.values()] if hasattr(model[0], "named_transformers_") else []
    flat = [part for step in steps for part in getattr(step, "transformer_list", [("", step)])]
    return any(type(part).__name__ in {"MissingIndicator", "OrdinalEncoder"} for _, part in flat)


@pytest.mark.parametrize("gaps", [0.2, 0.0], ids=["fitted with gaps", "fitted on complete rows"])
@pytest.mark.parametrize("name", MODELS)
def test_scores_are_the_librarys_own(name: str, gaps: float) -> None:
    make, dtype = MODELS[name]
    if name.startswith("xgboost") and dtype == "category" and not NAMES_CATEGORIES:
        pytest.skip("xgboost before 3.1 does not name categories")
    frame = _frame(gaps=gaps, dtype=dtype)
    space = _space(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(frame, _labels(frame))
        if gaps == 0.0 and _refuses_new_gaps(model):
            with pytest.raises(UnsupportedModelError, match="a value in every cell, but column"):
                read(model, space)
            return
        predictor = read(model, space)
        rows = _rows(predictor)
        asked = as_given(model, space, frame_of(space, rows))
        theirs = np.asarray(model.predict(asked)).reshape(-1)
        scores = predictor.score(rows)

        if predictor.labels is None:
            np.testing.assert_allclose(scores, theirs, rtol=1e-12)
        else:
            np.testing.assert_array_equal(predictor.core.head.decide(scores), theirs)
        if name.startswith("xgboost") and dtype == "category":
            np.testing.assert_array_equal(scores, model.predict(asked, output_margin=True))
        elif name.startswith("lightgbm"):
            divisor = 8 if "forest" in name else 1
            np.testing.assert_array_equal(scores, model.predict(asked, raw_score=True) / divisor)
        elif hasattr(model, "decision_function"):
            np.testing.assert_allclose(scores, model.decision_function(asked), rtol=1e-12, atol=1e-12)
        elif predictor.core.probability == "share":
            np.testing.assert_array_equal(scores, model.predict_proba(asked))


@pytest.mark.parametrize(
    ("model", "who"),
    [
        (make_pipeline(_before("passthrough", _one_hot()), LogisticRegression()), "LogisticRegression"),
        (make_pipeline(_before("passthrough", _one_hot()), SVC(kernel="linear")), "SVC"),
        (make_pipeline(_before("passthrough", _one_hot()), MLPClassifier((2,), max_iter=5)), "MLPClassifier"),
        (make_pipeline(_before("passthrough", _one_hot()), GradientBoostingClassifier()), "GradientBoostingClassifier"),
        (make_pipeline(_before("passthrough", _one_hot()), AdaBoostClassifier(n_estimators=2)), "AdaBoostClassifier"),
        (make_pipeline(_before(SimpleImputer(), OneHotEncoder()), LogisticRegression()), "OneHotEncoder"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_what_takes_no_missing_cell_is_refused_with_the_imputer_to_add(model, who):
    frame = _frame(gaps=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame, _labels(frame))
    column = "c" if who == "OneHotEncoder" else "a"
    message = (
        f"{who} needs a value in every cell, but column '{column}' may be missing and nothing fills it in. "
        "Put a SimpleImputer before it"
    )

    with pytest.raises(UnsupportedModelError, match=message):
        read(model, _space())
    assert read(model, _space(missing=False)).labels == (0, 1)


def test_an_imputer_of_another_number_that_meets_a_gap_is_not_told_to_put_one_before():
    frame = pd.DataFrame({"a": [-9.0, 1.0, 2.0, 3.0]})
    model = make_pipeline(SimpleImputer(missing_values=-9), LogisticRegression()).fit(frame, [0, 0, 1, 1])
    space = FeatureSpace([Feature("a", kind="integer", lower=-9, upper=9, missing=True)])
    with pytest.raises(UnsupportedModelError, match=r"Fit it again with missing_values=np\.nan, on data that have NaN"):
        read(model, space)


@pytest.mark.parametrize("imputer", [KNNImputer(n_neighbors=3), IterativeImputer(max_iter=2)], ids=["knn", "iterative"])
@pytest.mark.parametrize("indicator", [False, True])
def test_imputers_that_read_other_columns_keep_complete_rows_and_refuse_gaps(imputer, indicator):
    frame = _frame(gaps=0.1)
    model = make_pipeline(_before(imputer.set_params(add_indicator=indicator), _one_hot()), _forest())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame, _labels(frame))
    rows = np.nan_to_num(_rows(), posinf=1.0)
    complete = _space(missing=False)

    predictor = read(model, complete)

    np.testing.assert_array_equal(predictor.score(rows), model.predict_proba(frame_of(complete, rows)))
    needs = f"column 'a' may be missing and {type(imputer).__name__} fills it in from the other columns. Put a SimpleI"
    with pytest.raises(UnsupportedModelError, match=needs):
        read(model, _space())


def test_a_column_without_any_value_at_fitting_is_dropped_or_kept_as_the_library_does():
    frame = _frame(gaps=0.1).assign(d=np.nan)
    for keep in (False, True):
        imputer = SimpleImputer(keep_empty_features=keep)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make_pipeline(_before(imputer, _one_hot()), _forest()).fit(frame, _labels(frame))
            predictor = read(model, _space())
            rows = _rows(predictor)
            theirs = model.predict_proba(frame_of(_space(), rows))

        np.testing.assert_array_equal(predictor.score(rows), theirs)


def test_an_encoder_that_was_fitted_on_none_is_refused():
    frame = _frame(gaps=0.0)
    frame.loc[:20, "c"] = None
    model = make_pipeline(_before("passthrough", OneHotEncoder(handle_unknown="ignore")), _forest())
    model.fit(frame.astype({"c": object}).where(frame.notna(), None), _labels(frame))
    if None not in model[0].named_transformers_["onehotencoder"].categories_[0].tolist():
        pytest.skip("this pandas makes None NaN")

    with pytest.raises(UnsupportedModelError, match="fitted on None in column 'c', and a frame of the space holds NaN"):
        read(model, _space())


def test_a_representation_from_arrays_takes_no_missing_cell():
    space = FeatureSpace([Feature("x", kind="continuous", missing=True)])

    with pytest.raises(
        UnsupportedModelError, match="Affine needs a value in every cell, but column 'x' may be missing"
    ):
        read(Affine([1.0], 0.0), space)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=4, random_state=0),
        make_pipeline(SimpleImputer(strategy="median"), _forest()),
        make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()),
    ],
    ids=["tree", "forest behind an imputer", "linear model behind an imputer"],
)
def test_onnx_graphs_send_missing_cells_where_their_runtime_does(model):
    to_onnx = pytest.importorskip("skl2onnx").to_onnx
    frame = _frame(gaps=0.1)
    matrix = frame[NUMBERS].to_numpy(dtype=np.float32)
    model.fit(matrix, _labels(frame))
    graph = to_onnx(model, matrix[:1], options={"zipmap": False})
    space = FeatureSpace([feature for feature in _space() if feature.name in NUMBERS])

    predictor = read(graph, space)

    rows = _rows()[:, [0, 1, 3]]
    opened = open_model(graph)
    predicted = opened.predict(as_given(opened, space, frame_of(space, rows)))
    np.testing.assert_array_equal(predictor.core.head.decide(predictor.score(rows)), predicted)


# ---- trees -----------------------------------------------------------------------------------------------------------
def _random_tree(rng: np.random.Generator, columns: int) -> Tree:
    """Return a tree of depth at most four whose nodes compare with thresholds or sets."""
    nodes: list[list[Any]] = []
    sets: list[frozenset[float]] = []

    def grow(depth: int) -> int:
        number = len(nodes)
        nodes.append([-1, 0.0, -1, -1, float(rng.integers(-5, 6)), -1, bool(rng.random() < 0.5)])
        if depth < 4 and rng.random() < 0.8:
            nodes[number][0] = int(rng.integers(columns))
            nodes[number][1] = float(rng.integers(-2, 3))
            if rng.random() < 0.3:
                sets.append(frozenset(rng.integers(-2, 3, size=2).astype(float).tolist()))
                nodes[number][5] = len(sets) - 1
            nodes[number][2] = grow(depth + 1)
            nodes[number][3] = grow(depth + 1)
        return number

    grow(0)
    feature, threshold, left, right, value, subset, gaps = map(np.array, zip(*nodes, strict=True))
    return Tree(feature, threshold, left, right, value, subset, tuple(sets), gaps)


def _walked(tree: Tree, row: np.ndarray) -> float:
    node = 0
    while tree.feature[node] >= 0:
        value = row[tree.feature[node]]
        if np.isnan(value):
            left = tree.missing_left[node]
        elif tree.subset[node] >= 0:
            left = value in tree.sets[tree.subset[node]]
        else:
            left = value <= tree.threshold[node]
        node = tree.left[node] if left else tree.right[node]
    return float(tree.value[node, 0])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_stacked_trees_walk_as_one_tree_does(seed):
    rng = np.random.default_rng(seed)
    trees = [_random_tree(rng, 3) for _ in range(4)]
    rows = np.where(rng.random((30, 3)) < 0.3, np.nan, rng.integers(-3, 4, size=(30, 3)).astype(float))
    ensemble = TreeEnsemble(trees, n_inputs=3)

    assert ensemble.takes_missing
    assert ensemble.score(rows).tolist() == [sum(_walked(tree, row) for tree in trees) for row in rows]
    with pytest.raises(InvalidValueError, match=r"finite X, but X has nan"):
        ensemble.without_gaps().score(np.full((1, 3), np.nan))


def test_a_column_says_what_it_makes_of_a_missing_cell():
    space = FeatureSpace([
        Feature("x", kind="continuous", missing=True), Feature("k", kind="categorical", levels=("p", "q"), missing=True)
    ])  # fmt: skip
    columns = (
        Column("x"), Column("x", missing=2.5), Column("x", is_indicator=True, missing=1.0),
        Column("k", table=(3.0, 4.0), missing=-1.0), Column("k", table=(0.0, 1.0)),
    )  # fmt: skip
    encoding = Encoding(columns, tuple(space.names))
    rows = np.array([[1.0, 1.0], [MISSING, MISSING]])
    expected = [[1.0, 1.0, 0.0, 4.0, 1.0], [np.nan, 2.5, 1.0, -1.0, np.nan]]

    np.testing.assert_array_equal(encoding.matrix(rows), expected)
    np.testing.assert_array_equal(encoding.sparse_matrix(rows).toarray(), expected)
    assert [column.passes_gaps for column in columns] == [True, False, False, False, True]
    assert columns[2].affine() == (0.0, 0.0)
    assert columns[2].largest_left([-0.5, 0.5], "float64").tolist() == [-np.inf, np.inf]


def test_an_imputer_of_a_code_is_refused_with_what_would_do():
    """It said "Replace that number in the data" and not by what, nor what the space has to say then."""
    data = pd.DataFrame({"a": [1.0, 2.0, 3.0, -9.0, 5.0, 6.0, 7.0, 8.0]})
    labels = [0, 0, 0, 0, 1, 1, 1, 1]
    space = ceopt.FeatureSpace([ceopt.Feature("a", kind="integer", lower=1, upper=8, codes=[-9])])
    person = {"a": -9}
    model = make_pipeline(SimpleImputer(missing_values=-9.0), LogisticRegression()).fit(data, labels)

    with pytest.raises(UnsupportedModelError) as refused:
        ceopt.explain(model, person, space, target=1)

    assert "X['a'].replace(-9.0, np.nan)" in str(refused.value)
    assert "space.update('a', codes=None, missing=True)" in str(refused.value)
    gaps = pd.DataFrame({"a": data["a"].replace(-9.0, np.nan)})
    again = make_pipeline(SimpleImputer(), LogisticRegression()).fit(gaps, labels)
    result = ceopt.explain(again, {"a": np.nan}, space.update("a", codes=None, missing=True), target=1)
    assert result.status == "optimal"

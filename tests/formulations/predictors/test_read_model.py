"""``predictors.read``: what was read of a model in raw units, a target as one score, and what is remembered."""

from __future__ import annotations

import copy
import gc
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from pyomo.core.expr.visitor import identify_variables
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import ceopt
from ceopt.formulations import Factual, Reaches, embed, l1, predictors
from ceopt.formulations.predictors import Affine, ReadModel, ReluNetwork, TreeEnsemble, readers
from ceopt.formulations.predictors import read_model as module
from ceopt.solvers import solve
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, UnsupportedModelError

RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "income": RNG.uniform(0, 9, 200),
        "job": RNG.choice(["clerk", "nurse", "none"], 200),
        "age": RNG.integers(18, 60, 200),
    }
)
Y = np.where(np.sin(X["income"]) + (X["job"] == "nurse") + X["age"] / 60 > 1.2, "good", "bad")
SPACE = ceopt.FeatureSpace.infer(X, moves={"age": "any"})
#: A classifier of each kind of representation.
CLASSIFIERS = [
    LogisticRegression(),
    MLPClassifier((4,), solver="lbfgs", max_iter=4000, alpha=0.1, random_state=0),
    GradientBoostingClassifier(n_estimators=5, random_state=0),
    RandomForestClassifier(5, max_depth=3, random_state=0),
    VotingClassifier([("a", DecisionTreeClassifier(max_depth=2)), ("b", LogisticRegression())]),
]


def pipeline(estimator: Any) -> Any:
    encoder = make_column_transformer((OneHotEncoder(), ["job"]), remainder=StandardScaler())
    return make_pipeline(encoder, estimator).fit(X, Y)


def reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    asked: list[Any] = []
    original = readers.read

    def counted(model: Any, space: Any) -> Any:
        asked.append(model)
        return original(model, space)

    monkeypatch.setattr(module, "read", counted)
    module._MEMORY.clear()
    return asked


# ---- what is remembered ----------------------------------------------------------------------------------------------
def test_a_second_embed_of_a_model_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = reads(monkeypatch)
    model = pipeline(LogisticRegression())
    m = pyo.ConcreteModel()
    for place in range(4):
        m.add_component(f"x{place}", Factual(SPACE, X.iloc[place]))
        m.add_component(f"p{place}", embed(model, m.component(f"x{place}")))
    assert len(asked) == 1
    assert predictors.read(model, SPACE) is m.p0.predictor
    assert len(asked) == 1


def test_nothing_is_looked_at_again_while_a_model_is_embedded() -> None:
    forest = RandomForestClassifier(20, max_depth=6, random_state=0).fit(X[["income", "age"]], Y)
    m = pyo.ConcreteModel()
    m.x = Factual(ceopt.FeatureSpace([SPACE["income"], SPACE["age"]]), X[["income", "age"]].iloc[0])
    predictors.read(forest, m.x.space)
    collections: list[str] = []

    def note(phase: str, _: Any) -> None:
        collections.append(phase)

    gc.callbacks.append(note)
    try:
        embed(forest, m.x)
    finally:
        gc.callbacks.remove(note)
    assert collections.count("start") <= 2  # before and after
    assert gc.isenabled()


def test_hundreds_of_small_models_are_remembered_beside_the_last_eight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = reads(monkeypatch)
    small = [Affine([float(k), 1.0, 1.0], 0.0, columns=["a", "b", "c"]) for k in range(120)]
    for _ in range(2):
        for model in small:
            predictors.read(model)
    assert len(asked) == len(small)
    monkeypatch.setattr(module, "_MOST_NUMBERS", 9 * 3)
    predictors.read(Affine([9.0, 1.0, 1.0], 1.0, columns=["a", "b", "c"]))
    for model in small[-8:]:  # with the new one nine, as many as their weights allow
        predictors.read(model)
    assert len(asked) == len(small) + 1
    predictors.read(small[-9])
    assert len(asked) == len(small) + 2


def test_a_model_that_was_fitted_again_is_read_again_and_a_copy_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = reads(monkeypatch)
    model = pipeline(DecisionTreeClassifier(max_depth=2))
    first = predictors.read(model, SPACE)
    twin = predictors.read(copy.deepcopy(model), SPACE)
    assert len(asked) == 1
    assert twin.model is not model
    model.fit(X, Y[::-1])
    again = predictors.read(model, SPACE)
    assert len(asked) == 2
    assert again is not first
    assert predictors.read(model, SPACE.update("age", upper=99)) is not again


def test_levels_are_shown_as_the_space_has_them_though_0_equals_false() -> None:
    tree = DecisionTreeClassifier(max_depth=1).fit(pd.DataFrame({"home": [0, 1, 0, 1]}), [0, 1, 0, 1])
    for levels in ((0, 1), (False, True)):
        space = ceopt.FeatureSpace([ceopt.Feature("home", kind="binary", levels=levels)])
        (pair,) = predictors.read(tree, space).splits["home"]
        assert [type(level) for level in pair] == [type(level) for level in levels]


def test_a_file_that_was_written_again_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    xgboost = pytest.importorskip("xgboost")
    asked = reads(monkeypatch)
    numbers = X[["income", "age"]]
    space = ceopt.FeatureSpace.infer(numbers, moves={"age": "any"})
    path = tmp_path / "model.json"
    for depth in (1, 2):
        model = xgboost.XGBClassifier(n_estimators=2, max_depth=depth).fit(numbers, Y == "good")
        model.get_booster().save_model(path)
        predictors.read(path, space)
        predictors.read(path, space)
        assert len(asked) == depth


# ---- splits and leaves -----------------------------------------------------------------------------------------------
def test_leaves_hold_the_rows_that_the_library_sends_there() -> None:
    forest = pipeline(RandomForestClassifier(4, max_depth=4, random_state=0))
    read = predictors.read(forest, SPACE)
    nodes = forest[-1].apply(forest[0].transform(X))
    for tree in range(4):
        leaves = read.leaves(tree)
        for place in range(0, 200, 3):
            row = X.iloc[place]
            inside = [
                leaf
                for leaf, box in leaves.iterrows()
                if all(
                    (row[name] in box[name]) if name == "job" else box[name][0] <= row[name] <= box[name][1]
                    for name in X.columns
                    if name in leaves.columns
                )
            ]
            assert len(inside) == 1
            shares = forest[-1].estimators_[tree].tree_.value[nodes[place, tree]][0]
            np.testing.assert_allclose(leaves.loc[inside[0], ["bad", "good"]].astype(float), shares)


def test_a_column_that_is_called_as_a_leafs_value_keeps_its_reach() -> None:
    rows = pd.DataFrame({"value": [1.0, 2.0, 3.0, 4.0], "bad": [4.0, 1.0, 3.0, 2.0]})
    space = ceopt.FeatureSpace.infer(rows, moves={"value": "any", "bad": "any"})
    regressor = DecisionTreeRegressor(max_depth=1).fit(rows, [0.0, 0.0, 5.0, 5.0])
    leaves = predictors.read(regressor, space).leaves(0)
    assert (leaves["value"][1][0], leaves["value"][2][1]) == (-math.inf, math.inf)
    assert list(leaves["value_of_leaf"]) == [0.0, 5.0]
    classifier = DecisionTreeClassifier(max_depth=1).fit(rows[["bad"]], ["bad", "good", "bad", "good"])
    leaves = predictors.read(classifier, ceopt.FeatureSpace([space["bad"]])).leaves(0)
    assert list(leaves) == ["bad", "bad_of_leaf", "good"]


def test_splits_are_pairs_of_neighbours_or_sets_of_levels() -> None:
    read = predictors.read(pipeline(GradientBoostingClassifier(n_estimators=8, random_state=0)), SPACE)
    assert all(np.nextafter(left, np.inf) == right for left, right in read.splits["income"])
    assert list(read.splits["income"]) == sorted(read.splits["income"])
    assert all(set(left) | set(right) == {"clerk", "nurse", "none"} for left, right in read.splits["job"])


def test_ordered_levels_are_split_between_neighbours() -> None:
    frame = pd.DataFrame({"rooms": [1, 2, 4, 8] * 10})
    space = ceopt.FeatureSpace([ceopt.Feature("rooms", kind="ordinal", levels=(1, 2, 4, 8))])
    tree = DecisionTreeClassifier().fit(frame, frame["rooms"] > 3)
    read = predictors.read(tree, space)
    assert read.splits == {"rooms": ((2, 4),)}
    assert read.leaves(0)["rooms"].tolist() == [(1, 2), (4, 8)]


def test_where_a_missing_cell_goes_is_said() -> None:
    frame = X[["income", "age"]].copy()
    frame.loc[::3, "income"] = np.nan
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(frame, Y)
    space = ceopt.FeatureSpace.infer(frame, moves={"age": "any"})
    leaves = predictors.read(tree, space).leaves(0)
    missing = leaves[["income" in names for names in leaves["missing"]]]
    gaps = frame[frame["income"].isna()]
    for place in range(len(gaps)):
        age = gaps["age"].iloc[place]
        boxes = missing
        if "age" in leaves.columns:
            boxes = missing[[low <= age <= high for low, high in missing["age"]]]
        assert len(boxes) == 1
        assert boxes["good"].iloc[0] == pytest.approx(tree.predict_proba(gaps.iloc[[place]])[0, 1])


def test_what_has_no_trees_and_no_such_tree_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="has none"):
        _ = predictors.read(pipeline(LogisticRegression()), SPACE).splits
    with pytest.raises(InvalidValueError, match="tree from 0 to 1"):
        predictors.read(pipeline(RandomForestClassifier(2)), SPACE).leaves(2)


def test_a_column_that_nothing_splits_has_no_splits_and_an_unknown_one_is_named() -> None:
    tree = DecisionTreeClassifier(max_depth=1).fit(X[["income", "age"]], X["income"] > 5)
    read = predictors.read(tree, ceopt.FeatureSpace([SPACE["income"], SPACE["age"]]))
    assert (len(read.splits["income"]), read.splits["age"], list(read.splits)) == (1, (), ["income"])
    with pytest.raises(UnknownNameError, match="Did you mean 'income'"):
        _ = read.splits["incomes"]


def test_models_of_some_columns_each_stand_in_one_program() -> None:
    narrow = pipeline(LogisticRegression()).fit(X[["job", "income"]], Y)
    wide = pipeline(RandomForestClassifier(5, max_depth=3, random_state=0)).fit(X, Y)
    person = X[(narrow.predict(X[["job", "income"]]) == "bad") & (wide.predict(X) == "bad")].iloc[0]
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, person)
    with pytest.raises(UnsupportedModelError, match=r"embed\(predictors.read\(model, space of its columns\), m.x\)"):
        m.narrow = embed(narrow, m.x)
    m.narrow = embed(predictors.read(narrow, ceopt.FeatureSpace([SPACE["income"], SPACE["job"]])), m.x)
    m.wide = embed(wide, m.x)
    m.valid, m.too = Reaches(m.narrow, "good"), Reaches(m.wide, "good")
    m.cost = pyo.Objective(expr=l1(m.x))
    answer = m.x.decode(solve(m).solutions[0]).to_frame().T.astype(X.dtypes.to_dict())
    assert (narrow.predict(answer[["job", "income"]])[0], wide.predict(answer)[0]) == ("good", "good")


# ---- a target as one score -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("estimator", CLASSIFIERS)
@pytest.mark.parametrize("target", ["good", "bad"])
def test_the_signed_score_says_what_the_model_says(estimator: Any, target: str) -> None:
    model = pipeline(estimator)
    signed = predictors.read(model, SPACE).signed(target)
    assert isinstance(signed, ReadModel)
    coordinates = np.array([list(SPACE.row(X.iloc[place]).values()) for place in range(len(X))])
    scores = signed.score(coordinates)
    assert scores.shape == (len(X),)
    reached = model.predict(X) == target
    np.testing.assert_array_equal(signed.core.head.decide(scores), reached)
    row = X[~reached].iloc[0]
    space = SPACE.update("job", mutable=False)
    first = ceopt.explain(model, row, space, target=target)
    second = ceopt.explain(signed, row, space, target=True)
    assert (first.status, second.status) == ("optimal", "optimal")
    assert second[0].cost == pytest.approx(first[0].cost, rel=1e-4, abs=1e-6)


def test_the_signed_score_has_the_arrays_of_the_model() -> None:
    model = LogisticRegression().fit(X[["income", "age"]], Y)
    read = predictors.read(model, ceopt.FeatureSpace.infer(X[["income", "age"]], moves={"age": "any"}))
    core: Any = read.signed("bad").core
    np.testing.assert_allclose(core.weights, -model.coef_)
    np.testing.assert_allclose(core.intercept, -model.intercept_)
    likely: Any = read.signed(ceopt.Probability("good", 0.8)).core
    np.testing.assert_allclose(likely.intercept, model.intercept_ - np.log(4))


def test_several_rivals_have_no_one_score() -> None:
    model = LogisticRegression().fit(X[["income", "age"]], X["job"])
    read = predictors.read(model, ceopt.FeatureSpace.infer(X[["income", "age"]], moves={"age": "any"}))
    with pytest.raises(InvalidValueError, match=r"block\.margin"):
        read.signed("nurse")


# ---- the scores of a block -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_scores_are_made_when_asked_for_of_a_clone_and_after_solving_too(estimator: Any) -> None:
    model = pipeline(estimator)
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, X[model.predict(X) == "bad"].iloc[0])
    m.p = embed(model, m.x)
    m.good = Reaches(m.p, "good")
    m.cost = pyo.Objective(expr=l1(m.x))
    other = m.clone()
    solve(m)
    solve(other)
    assert m.p.component("score") is None

    row = m.x.decode()
    coordinates = [list(SPACE.row(row).values())]
    said = np.ravel(m.p.predictor.score(coordinates))[-1]
    for program in (m, other, other.clone()):
        assert pyo.value(program.p.score["good"]) == pytest.approx(said, abs=1e-6)
        assert program.p.component("score") is program.p.score
        assert list(program.p.score) == ["bad", "good"]
    assert all(v.model() is other for v in identify_variables(other.p.score["good"]))
    with pytest.raises(AttributeError, match="no attribute 'scores'"):
        m.p.scores  # noqa: B018 - reading it is the test


# ---- some columns of a space -----------------------------------------------------------------------------------------
def test_plain_arrays_read_the_columns_that_they_name() -> None:
    stump = {"feature": 1, "threshold": 5.0, "left": {"value": -1.0}, "right": {"value": 1.0}}
    models = [
        Affine([0.1, 1.0], -8.0, labels=("bad", "good"), columns=["age", "income"]),
        TreeEnsemble([stump], labels=("bad", "good"), columns=["age", "income"]),
        ReluNetwork([[[0.0, 1.0]], [[1.0]]], [[0.0], [-5.0]], labels=("bad", "good"), columns=["age", "income"]),
    ]
    row = X.iloc[0] if Y[0] == "bad" else X.iloc[1]
    row = row.copy()
    row["income"], row["age"], row["job"] = 1.0, 30, "clerk"
    for model, least in zip(models, (5.0, 5.0, 5.0), strict=True):
        answer = ceopt.explain(model, row, SPACE.only("income"), target="good", cost=ceopt.L1(scale="none"))
        assert answer.status == "optimal"
        assert answer[0].values["income"] == pytest.approx(least, rel=1e-4)
        m = pyo.ConcreteModel()
        m.x = Factual(SPACE.only("income"), row)
        m.p = embed(model, m.x)
        m.valid = Reaches(m.p, "good")
        m.least = pyo.Objective(expr=m.x.raw["income"])
        assert solve(m).status == "optimal"


def test_columns_that_are_not_there_are_named() -> None:
    with pytest.raises(InvalidValueError, match="2 different column names"):
        Affine([1.0, 2.0], 0.0, columns=["income"])
    with pytest.raises(ceopt.CeoptError, match="wage"):
        predictors.read(Affine([1.0], 0.0, columns=["wage"]), SPACE)
    with pytest.raises(ceopt.CeoptError, match="'job' is categorical"):
        predictors.read(Affine([1.0], 0.0, columns=["job"]), SPACE)


def test_without_a_space_columns_are_numbers_by_the_models_own_names() -> None:
    model = LinearRegression().fit(X[["income", "age"]], X["age"])
    read = predictors.read(model)
    assert (read.space.names, read.space["age"].kind) == (("income", "age"), "continuous")
    with pytest.raises(InvalidTypeError, match="does not name its columns"):
        predictors.read(LinearRegression().fit(X[["income", "age"]].to_numpy(), X["age"]))


# ---- several outputs, and many rows ----------------------------------------------------------------------------------
NUMBERS = pd.DataFrame(RNG.normal(size=(80, 3)), columns=list("abc"))
SEVERAL = pd.DataFrame(
    {"p": NUMBERS["a"] - 2.0 * NUMBERS["b"], "q": NUMBERS["c"] ** 2, "r": NUMBERS["a"] * NUMBERS["b"]}
)
BOXED = ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous", lower=-2, upper=2, mad=1.0) for name in "abc"])
OUTPUTS = [
    LinearRegression(),
    Ridge(fit_intercept=False),
    make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(4,), solver="lbfgs", random_state=0)),
    DecisionTreeRegressor(max_depth=4, random_state=0),
    RandomForestRegressor(4, max_depth=4, random_state=0),
    ExtraTreesRegressor(3, max_depth=4, random_state=0),
    MultiOutputRegressor(Ridge()),
    GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 1.0]}),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", OUTPUTS, ids=lambda one: type(one).__name__)
def test_one_of_several_outputs(estimator):
    """What the library says of that column, as numbers and in a program; the model given is left as it was."""
    model = estimator.fit(NUMBERS, SEVERAL)
    before = model.predict(NUMBERS)
    for output in range(3):
        found = predictors.read(model, BOXED, output=output)
        assert found.labels is None
        np.testing.assert_allclose(found.predict(NUMBERS), before[:, output], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.model.predict(NUMBERS), before[:, output], rtol=1e-9, atol=1e-9)
        m = pyo.ConcreteModel()
        m.x = Factual(BOXED, NUMBERS.iloc[0].clip(-2, 2))
        m.value = embed(found, m.x)
        m.most = pyo.Objective(expr=m.value.score, sense=pyo.maximize)
        result = solve(m)
        row = m.x.decode(result.solutions[0]).to_frame().T.astype(float)
        assert result.status == "optimal"
        assert result.objective == pytest.approx(model.predict(row)[0, output], abs=1e-5)
        assert result.objective >= model.predict(NUMBERS.clip(-2, 2))[:, output].max() - 1e-5
    np.testing.assert_array_equal(model.predict(NUMBERS), before)


def test_an_output_is_refused_by_name():
    model = LinearRegression().fit(NUMBERS, SEVERAL)
    for output in ("q", True, 1.0):
        with pytest.raises(InvalidTypeError, match="the number of an output, but output is"):
            predictors.read(model, BOXED, output=output)
    for output in (3, -1):
        with pytest.raises(InvalidValueError, match="needs an output from 0 to 2, but output is"):
            predictors.read(model, BOXED, output=output)
    for other in (
        LogisticRegression().fit(NUMBERS, NUMBERS["a"] > 0),
        BaggingRegressor(n_estimators=2).fit(NUMBERS, SEVERAL),
    ):
        with pytest.raises(UnsupportedModelError, match="a regressor whose outputs can be told apart"):
            predictors.read(other, BOXED, output=0)
    with pytest.raises(UnsupportedModelError, match="several outputs, but it is Affine"):
        predictors.read(Affine([1.0, 0.0, 0.0], 0.0), BOXED, output=0)
    with pytest.raises(UnsupportedModelError, match=r"or read one: predictors.read\(model, space, output=0\)"):
        predictors.read(model, BOXED)
    alone = LinearRegression().fit(NUMBERS, SEVERAL["p"])
    assert predictors.read(alone, BOXED, output=0).predict(NUMBERS) == pytest.approx(alone.predict(NUMBERS))


def test_many_rows_are_predicted_by_name_and_in_order():
    model = pipeline(GradientBoostingClassifier(n_estimators=5, random_state=0))
    found = predictors.read(model, SPACE)
    expected = model.predict(X)
    assert (found.predict(X) == expected).all()
    assert (found.predict(X[["age", "income", "job"]].assign(more=1.0)) == expected).all()
    assert (found.predict(X[list(SPACE.names)].to_numpy()) == expected).all()
    with pytest.raises(InvalidValueError, match=r"a matrix of 3 columns, but rows has shape \(200, 2\)"):
        found.predict(X.to_numpy()[:, :2])
    with pytest.raises(ceopt.CeoptError, match="age"):
        found.predict(X[["income", "job"]])


@pytest.mark.parametrize(
    "core",
    [
        Affine([1.0, -2.0], 0.5, columns=("a", "c")),
        ReluNetwork([[[1.0, -2.0]], [[1.0]]], [[0.5], [0.0]], columns=("a", "c")),
        TreeEnsemble(
            [{"feature": 1, "threshold": 0.1, "left": {"value": -1.0}, "right": {"value": 1.0}}],
            n_inputs=2,
            columns=("a", "c"),
        ),
    ],
    ids=lambda core: type(core).__name__,
)
def test_a_representation_with_names_takes_the_columns_of_a_frame_by_them(core):
    by_place = core.predict(NUMBERS[["a", "c"]].to_numpy())
    assert (core.predict(NUMBERS) == by_place).all()
    assert (core.predict(NUMBERS[["c", "b", "a"]]) == by_place).all()
    with pytest.raises(ceopt.CeoptError, match="column"):
        core.predict(NUMBERS[["a", "b"]])

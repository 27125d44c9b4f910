"""Whatever a reader gets wrong is refused as it is read: by the library's own predictions, naming its version."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
import pytest
from model_examples import fitted
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import ceopt
from ceopt.formulations.predictors.predictor import Combination, Predictor
from ceopt.formulations.predictors.readers import Behind, open_model, read, supported
from ceopt.formulations.predictors.readers.agreement import DISTRIBUTIONS as READ_FROM
from ceopt.formulations.predictors.representation import Affine, ReluNetwork, set_frozen
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.solvers.errors import UnsupportedModelError

NAMES = [(row.library, name) for row in supported().itertuples() for name in row.names]
DISTRIBUTIONS = {**READ_FROM, "onnx": "onnxruntime"}
COLUMNS = ["a", "b", "c", "d"]
PEOPLE = pd.DataFrame(np.random.default_rng(3).normal(0.5, 1.5, size=(160, 4)).round(3), columns=COLUMNS)
SPACE = ceopt.FeatureSpace.infer(PEOPLE)


# ---- what a reader might get wrong ----------------------------------------------------------------------------------
def changed(core: Any, **fields: Any) -> Any:
    """A copy of a representation with other fields."""
    if isinstance(core, TreeEnsemble):
        head = {name: getattr(core.head, name) for name in ("labels", "decision", "probability", "level")}
        kept = {name: getattr(core, name) for name in ("base", "divisor", "input_dtype", "sum_dtype", "n_inputs")}
        return TreeEnsemble(fields.pop("trees", core.trees), **(kept | head | fields))
    other = copy.copy(core)
    set_frozen(other, **fields)
    return other


def lost_tree(core: Any) -> Any:
    """The last tree that adds something adds nothing, as without its weight."""
    if not isinstance(core, TreeEnsemble):
        return None
    trees = list(core.trees)
    place = max(k for k, tree in enumerate(trees) if np.ptp(tree.value[tree.feature < 0], axis=0).any())
    trees[place] = dataclasses.replace(trees[place], value=0.0 * trees[place].value)
    return changed(core, trees=trees)


def halved_tree(core: Any) -> Any:
    """The first tree has another weight."""
    if not isinstance(core, TreeEnsemble) or not core.trees[0].value.any():
        return None
    return changed(core, trees=[dataclasses.replace(core.trees[0], value=0.5 * core.trees[0].value), *core.trees[1:]])


def moved_thresholds(core: Any) -> Any:
    """What is equal to a threshold, or the last float before it, goes to the other side."""
    if not isinstance(core, TreeEnsemble):
        return None
    width = np.dtype(core.input_dtype).type
    trees = []
    for tree in core.trees:
        near = tree.threshold.astype(width)
        last = np.where(near.astype(float) <= tree.threshold, near, np.nextafter(near, width(-np.inf)))
        below = np.nextafter(last.astype(width), width(-np.inf)).astype(float)
        trees.append(dataclasses.replace(tree, threshold=np.where(tree.feature < 0, tree.threshold, below)))
    return changed(core, trees=trees)


def lost_start(core: Any) -> Any:
    """The sum starts at 0."""
    match core:
        case TreeEnsemble():
            return changed(core, base=0.0 * core.base) if core.base.any() else None
        case Affine():
            return changed(core, intercept=0.0 * core.intercept) if core.intercept.any() else None
        case ReluNetwork():
            return changed(core, biases=(*core.biases[:-1], 0.0 * core.biases[-1])) if core.biases[-1].any() else None
        case Combination():
            return changed(core, offset=0.0 * core.offset) if core.offset.any() else None
    raise AssertionError


def lost_weight(core: Any) -> Any:
    """The column that counts most, or a member, does not count; a vote counts against what it is for."""

    def without(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        other = array.copy()
        other[:, np.abs(array).sum(axis=0).argmax()] = 0.0
        return other

    match core:
        case Affine():
            return changed(core, weights=without(core.weights))
        case ReluNetwork():
            return changed(core, weights=(without(core.weights[0]), *core.weights[1:]))
        case Combination():
            return changed(core, weights=(*core.weights[:-1], (-1.0 if core.votes else 0.0) * core.weights[-1]))
    return None


def lost_in_a_member(core: Any) -> Any:
    """The first member is read wrongly."""
    if not isinstance(core, Combination):
        return None
    member = core.members[0]
    wrong = lost_tree(member.core) or lost_weight(member.core)
    return changed(core, members=(dataclasses.replace(member, core=wrong), *core.members[1:]))


def other_order(core: Any) -> Any:
    """Labels in another order."""
    if core.labels is None:
        return None
    head = dataclasses.replace(core.head, labels=core.labels[1:] + core.labels[:1])
    return changed(core, labels=head.labels) if isinstance(core, TreeEnsemble) else changed(core, head=head)


MISTAKES: list[Callable[[Any], Any]] = [
    lost_tree, halved_tree, moved_thresholds, lost_start, lost_weight, lost_in_a_member, other_order,
]  # fmt: skip


def reading_wrongly(monkeypatch: pytest.MonkeyPatch, mistake: Callable[[Any], Any], model: Any, space: Any) -> bool:
    """Let a reader make a mistake with a model, and say whether it can make it there."""
    right = Behind.member
    applied = []

    def member(self: Behind, asked: Any, *steps: Any) -> Predictor:
        found = right(self, asked, *steps)
        if asked is not model:
            return found
        wrong = mistake(found.core)
        applied.append(wrong is not None)
        return found if wrong is None else dataclasses.replace(found, core=wrong)

    monkeypatch.setattr(Behind, "member", member)
    try:
        read(model, space)
    except UnsupportedModelError:
        return True
    return any(applied)


# ---- every reader ---------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module", params=NAMES, ids="-".join)
def example(request: pytest.FixtureRequest) -> Any:
    value = (PEOPLE["a"] + PEOPLE["b"] * PEOPLE["c"]).to_numpy()
    return request.param[0], open_model(fitted(*request.param, PEOPLE, value))


@pytest.mark.long(every=22)
@pytest.mark.parametrize("with_data", [False, True])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_a_reader_gets_wrong_is_refused(example, mistake, with_data, monkeypatch):
    library, model = example
    if not reading_wrongly(monkeypatch, mistake, model, SPACE):
        return  # the model has no such part
    named = DISTRIBUTIONS.get(library, library)
    with pytest.raises(
        UnsupportedModelError, match=rf"what the library does, but {named} {version(named)} says .*as read"
    ):
        read(model, SPACE, data=PEOPLE if with_data else None)


@pytest.mark.long
def test_each_mistake_can_be_made_somewhere():
    value = (PEOPLE["a"] + PEOPLE["b"] * PEOPLE["c"]).to_numpy()
    made = {mistake.__name__: 0 for mistake in MISTAKES}
    for library, name in NAMES:
        core = read(open_model(fitted(library, name, PEOPLE, value)), SPACE).core
        for mistake in MISTAKES:
            made[mistake.__name__] += mistake(core) is not None

    assert made.pop("lost_in_a_member") >= 1
    assert min(made.values()) > 20, made


# ---- what stands before an estimator, and what is right --------------------------------------------------------------
BOOK = ceopt.datasets.loans()
ENCODED = make_column_transformer(
    (StandardScaler(), ["age", "income", "savings", "duration"]), (OneHotEncoder(), ["employment", "education"])
)
BEHIND = {
    "logistic": make_pipeline(ENCODED, LogisticRegression()),
    "votes of margins": make_pipeline(ENCODED, LinearSVC()),
    "forest": make_pipeline(ENCODED, RandomForestClassifier(20, max_depth=4, random_state=0)),
    "forest in jobs": make_pipeline(ENCODED, RandomForestClassifier(20, max_depth=4, random_state=0, n_jobs=2)),
    "boosting": make_pipeline(ENCODED, XGBClassifier(n_estimators=9, max_depth=3)),
    "histogram": make_pipeline(ENCODED, HistGradientBoostingClassifier(max_iter=9)),
    "search": GridSearchCV(make_pipeline(ENCODED, DecisionTreeClassifier(max_depth=4)), {}, cv=2),
}


@pytest.mark.long(every=10)
@pytest.mark.parametrize("name", BEHIND)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_reader_behind_scalers_and_encoders_is_checked_as_well(name, mistake, monkeypatch):
    model = BEHIND[name].fit(BOOK.data, (BOOK.target == "good").astype(int))
    if not reading_wrongly(monkeypatch, mistake, model, BOOK.space):
        return
    with pytest.raises(UnsupportedModelError, match="to predict what the library does, but .* says"):
        read(model, BOOK.space)


def test_a_level_that_moved_is_refused_behind_every_row_of_data(monkeypatch):
    """One wrong threshold that one row of the data reaches: rows of the data are asked about where there are some."""
    frame = pd.DataFrame({"x": np.arange(40.0)})
    model = DecisionTreeClassifier(max_depth=1).fit(frame, frame["x"] > 10)
    space = ceopt.FeatureSpace([ceopt.Feature("x", kind="continuous")])
    right = Behind.member

    def member(self: Behind, asked: Any, *steps: Any) -> Predictor:
        found = right(self, asked, *steps)
        (tree,) = found.core.trees
        wrong = dataclasses.replace(tree, threshold=np.where(tree.feature < 0, 0.0, 11.5))
        return dataclasses.replace(found, core=changed(found.core, trees=[wrong]))

    monkeypatch.setattr(Behind, "member", member)
    with pytest.raises(
        UnsupportedModelError, match=r"scikit-learn \S+ says True where the model as read says False, at x=1"
    ):
        read(model, space, data=frame)
    with pytest.raises(UnsupportedModelError, match=r"says True where the model as read says False, at x=11"):
        ceopt.explain(model, frame.iloc[[0]], space, target=True, data=frame)


@pytest.mark.long
def test_a_forest_that_adds_up_in_jobs_may_break_ties_its_own_way():
    """Values of leaves that add up to a tie: the order of jobs is not fixed, so a label there says nothing."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(60, 4)).astype(float)
    model = RandomForestClassifier(30, max_depth=2, random_state=0, n_jobs=3).fit(X, rng.integers(0, 3, 60))
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=2) for name in COLUMNS])
    for _ in range(20):
        assert read(model, space).labels == (0, 1, 2)


def test_columns_of_every_size_are_no_disagreement():
    """Scores are compared up to the rounding of their own terms, whatever the columns' units."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"w": rng.normal(size=200) * 1e12, "x": rng.normal(size=200) * 1e-12, "y": rng.normal(size=200)}
    )
    value = (frame["w"] / 1e12 + frame["x"] * 1e12 + frame["y"]).to_numpy()
    for model in (
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(StandardScaler(), LinearSVC()),
        RandomForestRegressor(10, random_state=0),
        XGBClassifier(n_estimators=9, max_depth=3),
        HistGradientBoostingClassifier(max_iter=9),
    ):
        model.fit(frame, value if isinstance(model, RandomForestRegressor) else value > 0)
        wide = ceopt.FeatureSpace.infer(frame).update("w", lower=-1e30, upper=1e30)
        for space in (ceopt.FeatureSpace.infer(frame), wide):
            assert read(model, space).space is space

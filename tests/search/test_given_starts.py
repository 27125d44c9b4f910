"""Points that the user gives: put in reach, checked, tried first, and no more than that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import ceopt
from ceopt import CeoptError, Feature, FeatureSpace, Hull, Linear, MaxChanges
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.search.prepare import prepare, put_in_reach, starts_of
from ceopt.search.search import init
from ceopt.search.solve_check_repair import find_starts
from ceopt.settings import Settings

rng = np.random.default_rng(0)
X = pd.DataFrame({"a": rng.normal(size=150), "b": rng.normal(size=150), "k": rng.integers(0, 6, 150)})
Y = np.where(X["a"] + X["b"] + 0.3 * X["k"] > 1.0, "yes", "no")
SPACE = FeatureSpace.infer(X)
MODELS = {
    "linear": LogisticRegression().fit(X, Y),
    "forest": RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, Y),
    "network": MLPClassifier((6,), max_iter=600, random_state=0, tol=1e-2).fit(X, Y),
}
ROW = X[MODELS["forest"].predict(X) == "no"].iloc[[5]]
FAR = pd.DataFrame({"a": [2.0], "b": [2.0], "k": [5]})
#: A space in which each column has a rule of its own.
OWN = FeatureSpace(
    [
        Feature("size", kind="continuous", lower=0.0, upper=9.0),
        Feature("steps", kind="continuous", lower=0.0, upper=9.0, step=0.5),
        Feature("up", kind="integer", lower=0, upper=9, direction="increasing"),
        Feature("job", kind="categorical", levels=("x", "y", "z")),
        Feature("fixed", kind="binary", levels=("n", "m"), mutable=False),
    ]
)
HERE = {"size": 2.0, "steps": 1.25, "up": 4, "job": "x", "fixed": "n"}


def kept(model: Any, starts: pd.DataFrame, **given_: Any) -> list[dict[str, float]]:
    """Return which of the starts a search begins with, without those that it finds itself."""
    settings = Settings(target="yes", **given_)
    prepared = prepare(model, SPACE, settings, data=X, starts=starts)
    alone = prepare(model, SPACE, settings, data=X)

    def known(ready: Any) -> list[Any]:
        state = init(ready, ROW, keep_on_interrupt=True, within=None, began=None)
        return list(find_starts(state).starts)

    own = known(alone)
    return [point for cost, point in known(prepared) if (cost, point) not in own]


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", MODELS)
def test_a_good_start_is_in_hand_and_changes_no_optimum(name: str) -> None:
    model = MODELS[name]
    alone = ceopt.explain(model, ROW, SPACE, target="yes", data=X)
    given_ = ceopt.explain(model, ROW, SPACE, target="yes", data=X, starts=FAR)
    begun = ceopt.explain(model, ROW, SPACE, target="yes", data=X, starts=alone.to_frame())

    assert kept(model, FAR) == [{"a": 2.0, "b": 2.0, "k": 5.0}]
    assert alone.status == given_.status == begun.status == "optimal"
    assert given_[0].cost == pytest.approx(alone[0].cost, rel=2e-5)
    assert begun[0].cost == pytest.approx(alone[0].cost, rel=2e-5)


@pytest.mark.parametrize("name", MODELS)
def test_where_the_time_ends_at_once_the_cheapest_start_is_the_answer(name: str) -> None:
    starts = pd.concat([FAR, FAR.assign(a=1.9, b=4.0)], ignore_index=True)
    recourse = ceopt.Recourse(MODELS[name], SPACE, target="yes", time_limit_s=1e-6, starts=starts).fit(X)
    (result,) = recourse.explain(ROW)
    (without,) = recourse.set_params(starts=None).explain(ROW)

    assert result.status == "feasible"
    assert "time limit" in result.reason
    assert result[0].values.tolist() == [2.0, 2.0, 5]
    assert result[0].verified
    assert not len(without) or without[0].values.tolist() != [2.0, 2.0, 5]


@pytest.mark.long
def test_what_fails_the_check_is_left_out() -> None:
    forest = MODELS["forest"]
    starts = pd.concat([FAR, FAR.assign(k=4), ROW, FAR.assign(a=-3.0, b=-3.0)], ignore_index=True)

    assert len(kept(forest, starts)) == 2
    assert kept(forest, starts, constraints=[Linear({"k": 1.0}, "<=", 4.0)]) == [{"a": 2.0, "b": 2.0, "k": 4.0}]
    assert kept(forest, starts, constraints=[MaxChanges(2)]) == []
    assert kept(forest, FAR, constraints=[Hull(X.head(3))]) == []
    assert kept(forest, FAR.iloc[:0]) == []


def test_a_start_within_the_margin_is_none() -> None:
    linear = MODELS["linear"]
    score = float(linear.decision_function(FAR)[0])

    assert len(kept(linear, FAR, margin=score - 0.01)) == 1
    assert kept(linear, FAR, margin=score + 0.01) == []


def test_a_model_that_says_otherwise_than_it_was_read_is_believed() -> None:
    """What the user's own model refuses is no start, whatever the program's slack says."""
    prepared = prepare(MODELS["linear"], SPACE, Settings(target="yes"), starts=FAR)
    state = init(prepared, ROW, keep_on_interrupt=True, within=None, began=None)
    assert len(find_starts(state).starts) == 1

    prepared.oracle.model = _Refusing()
    assert find_starts(state).starts == ()


class _Refusing:
    feature_names_in_ = np.array(["a", "b", "k"])

    def predict(self, rows: Any) -> Any:
        return np.full(len(rows), "no")


def test_points_are_put_where_the_person_can_be() -> None:
    from ceopt.formulations.space.reachable import reach_of

    factual = OWN.row(HERE)
    far = pd.DataFrame([{"size": 99.0, "steps": 3.1, "up": 1, "job": "z", "fixed": "m"}, HERE, HERE])
    points = starts_of(far[["job", "fixed", "up", "steps", "size"]], OWN)
    assert points is not None
    found = put_in_reach(points, OWN, factual, reach_of(OWN, factual), ())

    assert found.tolist() == [[2.0, 1.25, 4.0, 0.0, 0.0], [9.0, 3.25, 4.0, 2.0, 0.0]]


@draws(60)
@given(
    st.lists(st.tuples(*[st.floats(-20, 20)] * 2, st.integers(-3, 12), st.sampled_from("xyz"), st.sampled_from("nm")))
)
def test_every_point_that_was_put_in_reach_keeps_the_rules_of_the_space(rows: list[Any]) -> None:
    from ceopt.formulations.space.reachable import reach_of
    from ceopt.oracle.model import broken_moves

    factual = OWN.row(HERE)
    frame = pd.DataFrame(rows, columns=list(OWN.names)).astype({"size": float, "steps": float, "up": int})
    points = starts_of(frame, OWN)
    assert points is not None
    for point in put_in_reach(points, OWN, factual, reach_of(OWN, factual), ()).tolist():
        assert broken_moves(OWN, factual, dict(zip(OWN.names, point, strict=True))) == ()


@pytest.mark.parametrize(
    ("starts", "match"),
    [
        (FAR.to_numpy(), "a DataFrame as starts, but starts is ndarray"),
        (FAR.iloc[0], "starts is Series"),
        ([], "starts is list"),
        (FAR.drop(columns="b"), "column 'b' once"),
        (FAR.rename(columns={"b": "bb"}), "column is 'bb'"),
        (pd.concat([FAR, FAR[["a"]]], axis=1), "column 'a' once, but it is there 2 times"),
        (FAR.assign(a=np.nan), "starts without missing cells.*'a'"),
        (FAR.assign(a=np.inf), "In starts: .*'a'"),
        (FAR.assign(a="much"), "In starts: .*'a'"),
        (FAR.assign(k=1.5), "In starts: .*'k'"),
        (FAR.assign(k=None), "starts without missing cells.*'k'"),
    ],
)
def test_frames_that_hold_no_points_are_refused_by_name(starts: Any, match: str) -> None:
    with pytest.raises(CeoptError, match=match) as raised:
        ceopt.explain(MODELS["forest"], ROW, SPACE, target="yes", starts=starts)
    assert str(raised.value).rstrip().endswith(".")
    with pytest.raises(CeoptError, match=match):
        ceopt.Recourse(MODELS["forest"], SPACE, target="yes", starts=starts).fit(X)


def test_a_level_that_the_space_does_not_have_is_refused() -> None:
    with pytest.raises(CeoptError, match="In starts: .*'job'"):
        starts_of(pd.DataFrame([HERE | {"job": "w"}]), OWN)


def test_starts_count_when_a_recourse_is_asked_and_the_answers_are_the_same() -> None:
    recourse = ceopt.Recourse(MODELS["forest"], SPACE, target="yes").fit(X)
    people = X[MODELS["forest"].predict(X) == "no"].head(3)
    before = recourse.explain(people)
    after = recourse.set_params(starts=FAR).explain(people, resume=before)
    anew = recourse.explain(people)

    assert after.results == before.results
    assert anew.to_frame()["cost"].tolist() == pytest.approx(before.to_frame()["cost"].tolist())
    with pytest.raises(CeoptError, match="starts is int"):
        recourse.set_params(starts=5).explain(people)


@pytest.mark.parametrize("diversity", ["pool", "support"])
@pytest.mark.parametrize("kind", ["linear", "trees"])
def test_a_start_that_differs_by_what_no_row_reads_is_no_further_answer(kind: str, diversity: str) -> None:
    """The model reads steps alone, so that its programs know of one answer; another size beside makes no other."""
    space = FeatureSpace([Feature(name, kind="integer", lower=0, upper=9) for name in ("steps", "size")])
    stump = {"feature": 0, "threshold": 4.5, "left": {"value": 0.0}, "right": {"value": 1.0}}
    model = Affine([1.0, 0.0], -4.5) if kind == "linear" else TreeEnsemble([stump], n_inputs=2)
    starts = pd.DataFrame({"steps": [5, 5, 5], "size": [0, 1, 7]})
    words = {"target": ceopt.AtLeast(0.25), "n": 2, "diversity": diversity, "cost": ceopt.L1(scale="none")}
    result = ceopt.explain(model, {"steps": 0, "size": 0}, space, starts=starts, **words)
    assert [answer.changed for answer in result] == [("steps",)]
    assert (result.status, result.complete) == ("optimal", True)
    assert "Proved: there are no more." in result.reason

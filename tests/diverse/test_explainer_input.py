"""What the explainer takes and refuses, and what it says where there is nothing to return."""

from __future__ import annotations

import dataclasses
import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import ceopt
from ceopt.diverse import DiverseRobustExplainer
from ceopt.diverse.decisions import Memory, content_of, decisions_of
from ceopt.formulations.predictors import Affine, ReluNetwork

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3)).round(3)
Y = (X[:, 0] + X[:, 1] > 0.2).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
ROW = np.array([-1.0, -0.5, 0.0])


def predict(data: Any) -> np.ndarray:
    values = np.asarray(data)
    return (values[:, 0] + values[:, 1] > 0.2).astype(int)


def explain(given: Any = predict, row: Any = ROW, *, fit: Any = X, target: Any = 1, **asked: Any) -> ceopt.SolutionSet:
    words = {word: asked.pop(word) for word in list(asked) if word in DiverseRobustExplainer().get_params()}
    return DiverseRobustExplainer(**{"beta": 0.2} | words).fit(fit).explain(given, row, target=target, **asked)


# ---- conventions -----------------------------------------------------------------------------------------------------
def test_the_names_and_defaults_are_those_of_the_contract():
    assert DiverseRobustExplainer().get_params() == {
        "distance": "l1", "scale": "none", "keep": "nearest", "alpha": 50, "diversity": "angle", "beta": 0.5,
        "tolerance": 0.1, "put_back": "categories", "minimise": "chosen", "origin": "row", "space": None,
            "variant": "paper",
    }  # fmt: skip


def test_clone_set_params_and_pickle():
    space = ceopt.FeatureSpace.infer(FRAME)
    made = DiverseRobustExplainer(scale={"a": 1.0, "b": 2.0, "c": 3.0}, space=space).set_params(beta=1.0).fit(FRAME, Y)
    copy = clone(made)

    assert copy.get_params() == made.get_params()
    assert not hasattr(copy, "fitted_")
    assert (made.n_features_in_, made.n_candidates_, made.feature_names_in_.tolist()) == (3, 120, ["a", "b", "c"])
    again = pickle.loads(pickle.dumps(made))
    row = dict(zip("abc", ROW, strict=True))
    assert again.explain(predict, row, target=1).to_frame().equals(made.explain(predict, row, target=1).to_frame())
    assert not hasattr(made.fit(X), "feature_names_in_")


def test_settings_that_the_rows_do_not_depend_on_may_change_without_a_fit_and_others_not():
    made = DiverseRobustExplainer().fit(X)
    few = made.set_params(alpha=3, beta=0.0, tolerance=None).explain(predict, ROW, target=1)

    assert len(few) == 3
    with pytest.raises(ceopt.CeoptError, match="the distance .* distance was changed since. Call fit again"):
        made.set_params(distance="l2").explain(predict, ROW, target=1)
    with pytest.raises(ceopt.CeoptError, match="alpha is 0"):
        made.set_params(distance="l1", alpha=0).explain(predict, ROW, target=1)


def test_a_mapping_of_scales_that_changes_after_fit_is_refused():
    scale = {"x0": 1.0, "x1": 1.0, "x2": 1.0}
    made = DiverseRobustExplainer(scale=scale).fit(X)
    before = made.explain(predict, ROW, target=1).to_frame()
    scale["x0"] = 9.0
    with pytest.raises(ceopt.CeoptError, match="the scale .* scale was changed since. Call fit again"):
        made.explain(predict, ROW, target=1)
    scale["x0"] = 1.0
    assert made.explain(predict, ROW, target=1).to_frame().equals(before)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"distance": "L1"}, "distance is 'L1'. Choose from: l1, l2"),
        ({"distance": None}, "distance is None"),
        ({"scale": "iqr"}, "scale is 'iqr'"),
        ({"scale": {"x0": 0.0, "x1": 1.0, "x2": 1.0}}, r"scale\['x0'\] is 0.0"),
        ({"scale": {"x0": 1.0, "x1": 1.0}}, "column 'x2' has none"),
        ({"scale": {"x0": 1.0, "x1": 1.0, "y": 1.0}}, "column is 'y'"),
        ({"keep": "all"}, "keep is 'all'"),
        ({"alpha": 0}, "alpha is 0"),
        ({"alpha": 2.5}, "alpha is 2.5"),
        ({"alpha": True}, "alpha is True"),
        ({"keep": "within", "alpha": -0.1}, "alpha is -0.1"),
        ({"keep": "within", "alpha": float("inf")}, "alpha is inf"),
        ({"diversity": "cosine"}, "diversity is 'cosine'"),
        ({"beta": 2.1}, "1 less a cosine, from 0 to 2 as beta, but beta is 2.1"),
        ({"beta": -0.1}, "beta is -0.1"),
        ({"beta": float("nan")}, "beta is nan"),
        ({"beta": "0.5"}, "beta is '0.5'"),
        ({"diversity": "distance", "beta": -1}, "beta is -1"),
        ({"tolerance": 0}, "tolerance is 0. None switches"),
        ({"tolerance": -1.0}, "tolerance is -1.0"),
        ({"tolerance": "no"}, "tolerance is 'no'"),
        ({"space": FRAME}, "space is DataFrame"),
        ({"variant": "code"}, "variant is 'code'"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(given, message):
    with pytest.raises(ceopt.CeoptError, match=message):
        DiverseRobustExplainer(**given).fit(X)


def test_a_distance_may_have_any_beta_of_at_least_0():
    assert len(explain(diversity="distance", beta=5.0)) == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (X[:, 0], r"of shape \(120,\)"),
        (X[:0], r"X has shape \(0, 3\)"),
        (FRAME.iloc[:0], r"X has shape \(0, 3\)"),
        (np.where(X > 1, np.inf, X), "Column 'x0'"),
        (FRAME.assign(b=np.inf), "'b'"),
        (np.array([["a", "b"]], dtype=object), "X holds something else"),
        ([[1.0, 2.0], [1.0]], "X is no array"),
        ("rows.csv", "of shape"),
    ],
)
def test_rows_that_cannot_be_used_are_refused(data, message):
    with pytest.raises(ceopt.CeoptError, match=message):
        DiverseRobustExplainer().fit(data)


def test_rows_are_held_against_the_space():
    space = ceopt.FeatureSpace.infer(FRAME)
    with pytest.raises(ceopt.CeoptError, match="X has 2"):
        DiverseRobustExplainer(space=space).fit(X[:, :2])
    with pytest.raises(ceopt.CeoptError, match="'c' is missing"):
        DiverseRobustExplainer(space=space).fit(FRAME[["a", "b"]])
    with pytest.raises(ceopt.CeoptError, match="column is 'label'"):
        DiverseRobustExplainer(space=space).fit(FRAME.assign(label=Y))
    by_name = DiverseRobustExplainer(space=space).fit(X).explain(predict, dict(zip("abc", ROW, strict=True)), target=1)
    assert by_name.to_frame().columns.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("labels", "message"),
    [(Y[:5], r"y has shape \(5,\)"), (Y[:, None], "y has shape"), ([None, *Y[1:]], "row 0 is missing")],
)
def test_labels_are_checked_and_not_used(labels, message):
    with pytest.raises(ceopt.CeoptError, match=message):
        DiverseRobustExplainer().fit(X, labels)
    one, other = (DiverseRobustExplainer().fit(X, y).explain(predict, ROW, target=1) for y in (Y, 1 - Y))
    assert one.to_frame().equals(other.to_frame())


def test_it_must_be_fitted():
    with pytest.raises(ceopt.CeoptError, match="fit was not called"):
        DiverseRobustExplainer().explain(predict, ROW, target=1)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1.0, 2.0], r"row has shape \(2,\)"),
        (X[:2], r"row has shape \(2, 3\)"),
        ([1.0, float("nan"), 2.0], "'x1'"),
        ({"x0": 1.0, "x1": 2.0}, "'x2' is missing"),
        ({"x0": 1.0, "x1": 2.0, "x2": 3.0, "z": 1.0}, "column is 'z'"),
        ({"x0": 1.0, "x1": "two", "x2": 3.0}, "Column 'x1'"),
        (None, "a Series, a dict"),
    ],
)
def test_rows_to_explain_are_refused_by_name(row, message):
    with pytest.raises(ceopt.CeoptError, match=message):
        explain(row=row)


def test_a_row_may_be_an_array_a_list_a_series_a_dict_or_a_frame():
    named = dict(zip(["x0", "x1", "x2"], ROW, strict=True))
    kinds = [ROW, ROW[None, :], ROW.tolist(), named, pd.Series(named), pd.Series(ROW), pd.DataFrame([named])]
    frames = [explain(row=row).to_frame() for row in kinds]

    assert len(frames[0]) == 5
    assert all(frame.equals(frames[0]) for frame in frames)
    with pytest.raises(ceopt.CeoptError, match="a Series, a dict"):
        explain(row=ROW, fit=FRAME)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "all"])
def test_n_is_a_whole_number_or_none(n):
    with pytest.raises(ceopt.CeoptError, match=f"n is {n!r}"):
        explain(n=n)


@pytest.mark.parametrize("constraints", ["MaxChanges", 3, {"a": 1}, [3], None])
def test_constraints_are_rules(constraints):
    with pytest.raises(ceopt.CeoptError, match="rules"):
        explain(constraints=constraints)


# ---- models and functions --------------------------------------------------------------------------------------------
def test_fitted_models_representations_and_functions_give_the_same():
    fitted = LogisticRegression(C=1e6).fit(X, Y)
    plain = Affine(fitted.coef_[0], fitted.intercept_[0], labels=(0, 1))
    results = [explain(given) for given in (fitted, fitted.predict, plain, lambda A: fitted.predict(A).tolist())]

    assert all(result.to_frame().equals(results[0].to_frame()) for result in results)
    assert all(answer.prediction == 1 for result in results for answer in result)
    scores = [plain.score(answer.values.to_numpy(dtype=float)[None, :])[0] for answer in results[2]]
    assert [answer.score for answer in results[2]] == [answer.slack for answer in results[2]] == pytest.approx(scores)
    assert results[0][0].score is None


def test_a_model_that_no_reader_reads_is_asked_all_the_same():
    model = KNeighborsClassifier(3).fit(FRAME, Y)
    row = dict(zip("abc", ROW, strict=True))
    result = explain(model, row, fit=FRAME)

    assert len(result) >= 3
    assert (model.predict(result.to_frame()) == 1).all()


def test_targets_of_every_kind():
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    forest = RandomForestClassifier(20, random_state=0).fit(X, three)
    value = RandomForestRegressor(10, random_state=0).fit(X, X[:, 0])
    network = ReluNetwork([np.eye(3)], [np.zeros(3)], labels=("p", "q", "r"))
    met = {
        "1": (forest, 1, lambda S: forest.predict(S) == 1),
        "1 or 2": (forest, {1, 2}, lambda S: forest.predict(S) != 0),
        "not 0": (forest, ceopt.OtherThan(0), lambda S: forest.predict(S) != 0),
        "trees": (forest, ceopt.Disagreement(2, 0.1), lambda S: forest.predict_proba(S)[:, 2] > 0.6),
        "low": (value, ceopt.AtLeast(0.3), lambda S: value.predict(S) >= 0.3),
        "between": (value, ceopt.Between(0.0, 0.5), lambda S: (value.predict(S) >= 0) & (value.predict(S) <= 0.5)),
        "value": (lambda A: A[:, 0], ceopt.AtLeast(0.3), lambda S: S[:, 0] >= 0.3),
        "set": (lambda A: np.digitize(A[:, 0], [-0.5, 0.5]), [1, 2], lambda S: S[:, 0] >= -0.5),
        "other": (lambda A: np.where(A[:, 0] > 0, "up", "down"), ceopt.OtherThan("down"), lambda S: S[:, 0] > 0),
        "network": (network, "q", lambda S: S.argmax(axis=1) == 1),
    }
    for name, (given, target, holds) in met.items():
        result = explain(given, target=target)
        assert result.status == "feasible", name
        assert holds(result.to_frame().to_numpy()).all(), name
    sure = explain(forest, target=2)
    two = LogisticRegression().fit(X, Y)
    likely = explain(two, target=ceopt.Probability(1, 0.8)).to_frame().to_numpy()
    assert len(sure) == 5
    assert (two.predict_proba(likely)[:, 1] >= 0.8).all()
    assert likely[:, :2].sum(axis=1).min() > 0.3


@pytest.mark.parametrize(
    ("given", "target", "message"),
    [
        (lambda A: LogisticRegression().fit(X, Y).predict_proba(A), 1, r"shape \(1, 2\). One column per class"),
        (lambda A: LogisticRegression().fit(X, Y).predict_proba(A)[:, 1], 1, "as probabilities and scores are"),
        (lambda A: predict(A)[:, None], 1, r"shape \(1, 1\). Return its column: .ravel()"),
        (predict, "1", "target is '1' and predict returned 0. Write the label as it is returned"),
        (lambda A: np.full(len(A), "no"), 1, "target is 1 and predict returned 'no'"),
        (lambda A: np.where((A == ROW).all(axis=1), 1.0, 0.3), 1, "predict returned 0.3, as probabilities"),
        (lambda A: predict(A)[:-1], 1, r"shape \(1,\), but predict returned an array of shape \(0,\)"),
        (lambda _: 1, 1, r"an array of shape \(\)"),
        (lambda _: None, 1, r"an array of shape \(\)"),
        (lambda A: predict(A) > 0, 1, "target is 1 and predict returned False. Write the label as it is returned"),
        (predict, True, "target is True and predict returned 0"),
        (lambda A: np.full(len(A), np.nan), 1, "predict returned nan"),
        (lambda A: np.full(len(A), np.nan), ceopt.AtLeast(1), "predict returned nan or an infinite"),
        (lambda A: np.full(len(A), "no"), ceopt.AtLeast(1), "predict returned 'no'"),
        (lambda A: A @ np.ones(7), 1, "on 1 of them it fails"),
        (predict, ceopt.Probability(1, 0.5), "a bare predict"),
        (predict, ceopt.Disagreement(1, 0.5), "a bare predict"),
        (predict, None, "target is None"),
        (predict, set(), "the set is empty"),
        (predict, float("nan"), "target is nan"),
        (Affine([1.0, 0.0, 0.0], 0.0), 1, "the model is a regressor"),
        (Affine([1.0, 0.0, 0.0], 0.0, labels=("no", "yes")), "yse", "Did you mean 'yes'. Choose from: 'no', 'yes'"),
        (LogisticRegression(), 1, "is not fitted"),
        (LogisticRegression, 1, "is a class"),
        (3, 1, "it got int"),
        (None, 1, "it got NoneType"),
        ("model.pkl", 1, "model.pkl"),
    ],
)
def test_what_decides_nothing_is_refused(given, target, message):
    with pytest.raises(ceopt.CeoptError, match=message):
        explain(given, target=target)


def test_a_function_that_fails_on_a_point_of_the_segment_is_named():
    def fragile(A):
        if ((A[:, 0] > -1.0) & (A[:, 0] < -0.5)).any() and len(A) < 10:
            raise ZeroDivisionError("half way")
        return predict(A)

    with pytest.raises(ceopt.CeoptError, match="ZeroDivisionError: half way"):
        explain(fragile)


def test_a_value_at_its_limit_is_within_it():
    rows = np.array([[2.0, 0.0], [3.0, 0.0], [-2.0, 0.0]])
    asked = {"fit": rows, "row": [0.0, 0.0], "n": None, "tolerance": None, "beta": 0.0}
    found = [
        explain(lambda A: A[:, 0], target=target, **asked).after_distance_filter
        for target in (ceopt.AtLeast(2.0), ceopt.AtMost(-2.0), ceopt.Between(2.0, 3.0))
    ]

    assert found == [(0, 1), (2,), (0, 1)]


def test_an_answer_that_the_model_takes_back_is_not_given():
    calls = []

    def fickle(A):
        calls.append(len(A))
        return predict(A) if len(calls) < 3 else np.zeros(len(A), dtype=int)

    result = explain(fickle, tolerance=None, n=3)

    assert result.status == "rejected"
    assert not len(result)
    assert result.reason.startswith("0 of 3: 3 of the ")
    assert result.reason.endswith("3 failed the last check.")


def test_a_function_gets_frames_where_fit_did_and_arrays_else():
    seen: list[Any] = []

    def spy(data):
        seen.append(data)
        return predict(data)

    frame = FRAME.assign(c=np.arange(120))
    result = explain(spy, {"a": -1.0, "b": -0.5, "c": 3}, fit=frame)
    assert {type(data) for data in seen} == {pd.DataFrame}
    assert all((data.dtypes == frame.dtypes).all() for data in seen)
    assert (result.to_frame().dtypes == frame.dtypes).all()
    seen.clear()
    explain(spy)
    assert {(type(data), data.dtype.name) for data in seen} == {(np.ndarray, "float64")}


def test_few_rows_are_asked_about_where_favourable_ones_are_common():
    asked: list[int] = []

    def spy(data):
        asked.append(len(data))
        return predict(data)

    many = np.random.default_rng(3).normal(size=(5000, 3))
    explain(spy, fit=many)
    assert sum(asked) < 2000
    assert len(asked) < 15


def test_a_model_that_was_fitted_anew_is_asked_anew():
    model = LogisticRegression().fit(X, Y)
    made = DiverseRobustExplainer().fit(X)
    before = made.explain(model, ROW, target=1)
    model.fit(X, X[:, 2] > 0.5)
    after = made.explain(model, ROW, target=True)

    assert (before.to_frame()["x0"] > -1).any()
    assert (after.to_frame()["x2"] > 0.2).all()


# ---- nothing, or less than was asked for -----------------------------------------------------------------------------
def test_no_favourable_row_is_a_status_and_says_what_is_predicted():
    result = explain(target=7)
    fitted = explain(LogisticRegression().fit(X, Y), fit=X[Y == 0])

    assert result.status == "rejected"
    assert not result.complete
    assert not len(result)
    assert "None of the 120 rows of the data is predicted to be 7; what is predicted: 0, 1." in result.reason
    assert fitted.status in {"rejected", "feasible"}
    assert ceopt.SolutionSet.from_json(result.to_json()).reason == result.reason


def test_more_than_there_are():
    two = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [-3.0, 0.0, 0.0]])
    result = explain(fit=two, n=5)
    cut = explain(alpha=2, beta=0.0, n=5)
    near = explain(keep="within", alpha=0.0, n=5)

    assert len(result) == 2
    assert not result.complete
    assert result.reason == "2 of 5: 2 of the 2 candidates that the data has are diverse enough."
    assert cut.reason == "2 of 5: 2 of the 2 nearest candidates are diverse enough. For more, raise alpha."
    assert near.reason == "1 of 5: 1 of the 1 candidates within the distance is diverse enough. For more, raise alpha."
    everything = explain(fit=two, n=None)
    assert (len(everything), everything.complete, everything.reason) == (2, True, "")


def test_repeated_rows_count_as_candidates_and_give_one_answer():
    rows = np.array([[2.0, 0.0, 0.0], [-3.0, 0.0, 0.0], [2.0, 0.0, 0.0], [2.0, 0.0, -0.0], [0.0, 2.0, 0.0]])
    made = DiverseRobustExplainer(beta=0.0).fit(rows)
    result = made.explain(predict, ROW, target=1, n=2)

    assert made.n_candidates_ == 5
    assert result.after_distance_filter == result.after_diversity_filter == (0, 2, 3, 4)
    assert (len(result), result.complete) == (2, True)


def test_of_repeated_rows_all_are_among_the_nearest_and_one_is_diverse():
    rows = [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]
    result = explain(lambda A: A.sum(axis=1) >= 1, fit=np.array(rows), row=[0.0, 0.0], target=True, n=None, alpha=2)

    assert (result.after_distance_filter, result.after_diversity_filter) == ((0, 1), (0,))


def test_a_row_that_is_favourable_already():
    result = explain(row=[1.0, 1.0, 1.0])

    assert result.status == "already_favourable"
    assert (len(result), result.bound, result.gap, result.complete) == (0, 0.0, 0.0, True)
    assert (result.min_distance, result.after_distance_filter) == (None, ())


def test_other_than_a_label_that_is_never_predicted_is_a_mistake_and_not_a_favour():
    with pytest.raises(ceopt.CeoptError, match="class is 7. Choose from: 0, 1"):
        explain(target=ceopt.OtherThan(7))
    assert explain(row=[1.0, 1.0, 1.0], target=ceopt.OtherThan(0)).status == "already_favourable"


def test_columns_that_cost_nothing_leave_candidates_without_distance_or_direction():
    space = ceopt.FeatureSpace([ceopt.Feature(f"x{j}", kind="continuous", weight=float(j > 1)) for j in range(3)])
    rows = np.array([[5.0, 0.0, 0.0], [0.0, 5.0, 0.0], [5.0, 0.0, 1.0]])
    result = explain(fit=rows, space=space, n=None)

    assert result.min_distance == 0.0
    assert result.after_diversity_filter == (0, 1, 2)
    assert [answer.cost for answer in result][:2] == [0.0, 0.0]


def test_the_person_is_a_row_of_the_data():
    result = explain(row=X[Y == 0][0])

    assert result.status == "feasible"
    assert result.min_distance > 0


def test_opposite_directions_are_kept_at_the_widest_angle():
    rows = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 3.0]])
    made = DiverseRobustExplainer(beta=2.0, tolerance=None).fit(rows)
    result = made.explain(lambda A: np.abs(A).sum(axis=1) > 1, [0.0, 0.0], target=True, n=None)

    assert result.after_diversity_filter == (0, 1)


def test_what_is_said_of_the_outcome():
    result = explain()

    assert result.solver.startswith("none")
    assert set(result.timings) == {"candidates", "filters", "minimise", "check", "total"}
    assert result.options["alpha"] == 50
    assert result.options["variant"] == "paper"
    assert result.target == "1"
    assert result.safety == ()
    assert result.bound is result.gap is None
    assert "feasible, 5 answers, target 1" in repr(result)


def test_json_keeps_the_four_fields_of_sets_and_reads_text_that_was_written_before_them():
    result = dataclasses.replace(explain(), safety=(0.25, float("inf")))
    again = ceopt.SolutionSet.from_json(result.to_json())
    document = json.loads(result.to_json())
    for field in ("min_distance", "after_distance_filter", "after_diversity_filter", "safety"):
        assert getattr(again, field) == getattr(result, field)
        del document[field]
    old = ceopt.SolutionSet.from_json(json.dumps(document))

    assert (old.min_distance, old.after_distance_filter, old.after_diversity_filter, old.safety) == (None, (), (), ())
    assert old.to_frame().equals(result.to_frame())
    plain = dataclasses.replace(result, min_distance=np.float64(1.5), after_distance_filter=np.array([3, 1]))
    assert (type(plain.min_distance), plain.after_distance_filter) == (float, (3, 1))
    assert {type(place) for place in plain.after_distance_filter} == {int}


# ---- the published code ----------------------------------------------------------------------------------------------
def test_the_released_variant_searches_in_euclidean_distance_and_takes_opposite_directions_as_one():
    rows = np.array([[1.9, 1.9], [3.0, 0.0], [3.0, 0.0], [-3.2, 0.0]])
    asked = {"fit": rows, "row": [0.0, 0.0], "target": True, "n": None, "beta": 0.5}
    big = lambda A: np.abs(A).sum(axis=1) > 2  # noqa: E731
    paper, released = (explain(big, variant=word, **asked) for word in ("paper", "released"))

    assert paper.after_distance_filter == (1, 2, 3, 0)
    assert released.after_distance_filter == (0, 1, 2, 3)
    assert paper.after_diversity_filter == (1, 3)
    assert released.after_diversity_filter == (0,)
    assert (paper.min_distance, released.min_distance) == (3.0, 3.0)


def test_the_released_variant_halves_every_segment_as_often_as_the_farthest_needs():
    rows = np.array([[2.0, 0.0], [0.0, 13.0]])
    asked = {"fit": rows, "row": [0.0, 0.0], "target": True, "n": None, "tolerance": 1.0, "distance": "l2"}
    big = lambda A: np.abs(A).sum(axis=1) > 1.01  # noqa: E731
    paper, released = (explain(big, variant=word, **asked).to_frame().to_numpy() for word in ("paper", "released"))

    assert paper.tolist() == [[2.0, 0.0], [0.0, 1.625]]  # from 1 to 2 is short enough
    assert released.tolist() == [[1.125, 0.0], [0.0, 1.625]]  # four halvings each, as 13 is more than 8


@pytest.mark.parametrize(
    ("norm", "released_too"),
    [
        pytest.param("l1", (0, 1), id="m is 2 in l1, and 1 as the longest move of a column"),
        pytest.param("l2", (0,), id="in l2 both take 1.41"),
    ],
)
def test_the_released_variant_takes_the_longest_move_of_a_column_for_the_nearest_distance_in_l1(norm, released_too):
    rows = np.array([[1.0, 1.0], [2.6, 1.2]])
    asked = {"fit": rows, "row": [0.0, 0.0], "target": True, "tolerance": None, "diversity": "distance", "beta": 0.5}
    far = lambda A: np.abs(A).sum(axis=1) > 1  # noqa: E731
    paper, released = (explain(far, variant=word, distance=norm, **asked) for word in ("paper", "released"))

    assert paper.after_diversity_filter == (0,)
    assert released.after_diversity_filter == released_too
    assert paper.min_distance == released.min_distance


def test_the_released_variant_does_not_halve_where_the_farthest_is_near():
    rows = np.array([[2.0, 0.0], [0.0, 2.5]])
    asked = {"fit": rows, "row": [0.0, 0.0], "target": True, "n": None, "tolerance": 9.0, "variant": "released"}

    assert explain(lambda A: np.abs(A).sum(axis=1) > 1, **asked).to_frame().to_numpy().tolist() == rows.tolist()


# ---- what is remembered ----------------------------------------------------------------------------------------------
class Counting(LogisticRegression):
    """A model that counts what it is asked; it is of scikit-learn's module, so that it is remembered."""

    __module__ = "sklearn.linear_model"
    asked: list[int] = []  # noqa: RUF012 - of the class, so that it is no part of a model's content

    def predict(self, X):
        self.asked.append(len(X))
        return super().predict(X)


MANY = np.random.default_rng(5).normal(size=(6000, 3))


@pytest.fixture
def rare() -> Any:
    """Give a model that favours few of many rows, with nothing asked of it yet."""
    model = Counting()
    model.coef_, model.intercept_, model.classes_ = np.array([[1.0, 1.0, 1.0]]), np.array([-5.0]), np.array([0, 1])
    Counting.asked.clear()
    return model


def test_where_favourable_rows_are_rare_the_second_query_asks_about_none_of_them(rare, monkeypatch):
    monkeypatch.setattr("ceopt.diverse.decisions.content_hash", lambda held: repr((held[0].coef_, held[1])))
    made = DiverseRobustExplainer(beta=0.0).fit(MANY)
    first = made.explain(rare, ROW, target=1, n=4)
    assert sum(Counting.asked) > len(MANY)
    Counting.asked.clear()
    second = made.explain(rare, ROW, target=1, n=4)

    assert sum(Counting.asked) < len(MANY) / 10
    assert second.to_frame().equals(first.to_frame())
    assert second.after_distance_filter == first.after_distance_filter
    scores = MANY.sum(axis=1) - 5.0
    assert set(first.after_distance_filter) <= set(np.flatnonzero(scores > 0).tolist())


def test_another_model_or_target_is_not_mistaken_for_one_that_is_remembered():
    model = Affine([1.0, 1.0, 1.0], -5.0, labels=(0, 1))
    made = DiverseRobustExplainer(beta=0.0, tolerance=None).fit(MANY)
    for given, target, row in (
        (model, 1, ROW),
        (Affine([1.0, 1.0, 1.0], -5.5, labels=(0, 1)), 1, ROW),
        (Affine([-1.0, -1.0, -1.0], -5.0, labels=(0, 1)), 1, ROW),
        (Affine([-1.0, -1.0, -1.0], 5.0, labels=(0, 1)), 0, ROW),
        (model, 0, ROW + 9.0),
        (model, 1, ROW),
    ):
        result = made.explain(given, row, target=target, n=None)
        alone = DiverseRobustExplainer(beta=0.0, tolerance=None).fit(MANY).explain(given, row, target=target, n=None)
        assert result.after_distance_filter == alone.after_distance_filter
        assert (given.predict(MANY[list(result.after_distance_filter)]) == target).all()


def test_a_model_that_is_changed_in_place_is_asked_anew():
    model = LogisticRegression().fit(X, Y)
    made = DiverseRobustExplainer(beta=0.0, tolerance=None).fit(MANY)
    model.coef_, model.intercept_ = np.array([[1.0, 1.0, 1.0]]), np.array([-5.0])
    before = made.explain(model, ROW, target=1, n=None)
    model.coef_[0, 0] = -1.0
    after = made.explain(model, ROW, target=1, n=None)

    assert (MANY[list(before.after_distance_filter)].sum(axis=1) > 5.0).all()
    assert (MANY[list(after.after_distance_filter)] @ [-1.0, 1.0, 1.0] > 5.0).all()
    assert made.explain(model.predict, ROW, target=1, n=None).after_distance_filter == after.after_distance_filter


def test_only_models_that_are_all_in_their_content_are_remembered():
    fitted = LogisticRegression().fit(X, Y)

    class Own:
        def predict(self, data):
            return predict(data)

    known = [content_of(model, "1") for model in (fitted, fitted.predict, Affine([1.0], 0.0))]
    assert len(set(known)) == 3
    assert None not in known
    assert content_of(fitted, "1") != content_of(fitted, "0")
    space = DiverseRobustExplainer().fit(X).space_
    close = [ceopt.Probability(1, level) for level in (0.8, 0.8 + 1e-12)]
    assert len({decisions_of(fitted, space, target, is_frame=False).content() for target in close}) == 2
    few = [ceopt.AtLeast(1.0), ceopt.AtMost(1.0), 1, ceopt.OtherThan(1), {1, 2}]
    assert len({decisions_of(fitted.predict, space, target, is_frame=False).content() for target in few}) == 5
    assert content_of(predict, "1") is content_of(Own(), "1") is content_of(Own().predict, "1") is None
    fitted.hook = lambda: None  # cannot be pickled
    assert content_of(fitted, "1") is None


def test_few_models_are_remembered():
    memory, rows = Memory(), np.zeros((2, 1))
    space = ceopt.FeatureSpace([ceopt.Feature("x0", kind="continuous")])
    asked = [decisions_of(Affine([1.0], float(k), labels=(0, 1)), space, 1, is_frame=False) for k in range(12)]
    for one in asked:
        assert memory.recall(one) is None
        memory.learn(one, rows)
        assert memory.recall(asked[0]) is not None  # asked for all the time, so that it is not the one to be forgotten

    assert [memory.recall(one) is not None for one in asked] == [True] + [False] * 4 + [True] * 7


def test_the_released_variant_keeps_rows_that_become_equal_too():
    space = ceopt.FeatureSpace([ceopt.Feature(f"x{j}", kind="continuous", mutable=j > 0) for j in range(2)])
    rows = np.array([[1.0, 3.0], [2.0, 3.0]])
    asked = {"fit": rows, "row": [0.0, 0.0], "target": True, "n": None, "space": space}
    big = lambda A: np.abs(A).sum(axis=1) > 2  # noqa: E731
    found = [explain(big, variant=word, **asked).after_distance_filter for word in ("paper", "released")]

    assert found == [(0,), (0, 1)]

"""NotAnOutlier: read as scikit-learn computes, optima by enumeration, ties, missing cells, and what is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt
from ceopt import Feature, FeatureSpace, Status
from ceopt.formulations import Factual, impose, predictors
from ceopt.formulations.constraints import NotAnOutlier
from ceopt.formulations.predictors.readers.sklearn.isolation import read_isolation_forest
from ceopt.solvers import model_summary, solve
from tests.draws import draws

SPACE = FeatureSpace([Feature("a", kind="integer", lower=0, upper=9), Feature("b", kind="integer", lower=0, upper=9)])
GRID = pd.DataFrame(list(itertools.product(range(10), range(10))), columns=["a", "b"])
MODEL = predictors.Affine([1.0, 0.5], -7.25, labels=("no", "yes"))


def people(rng, count=80):
    """Rows along a diagonal: high values of one column come with high values of the other."""
    a = rng.integers(0, 10, count)
    return pd.DataFrame({"a": a, "b": np.clip(a + rng.integers(-1, 2, count), 0, 9)})


def forest_of(seed, **options):
    return IsolationForest(**{"random_state": seed, "n_estimators": 30, **options}).fit(
        people(np.random.default_rng(seed))
    )


# ---- read ------------------------------------------------------------------------------------------------------------
def path_lengths(forest, rows):
    """The sum of path lengths behind scikit-learn's own score."""
    n = forest.max_samples_
    c = 2.0 * (math.log(n - 1) + np.euler_gamma) - 2.0 * (n - 1) / n
    return -np.log2(-forest.score_samples(rows)) * c * len(forest.estimators_)


@draws(20)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_what_is_read_is_what_the_library_says(seed, data):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3)).round(data.draw(st.sampled_from([0, 1, 9])))
    forest = IsolationForest(
        n_estimators=data.draw(st.integers(1, 12)), random_state=seed,
        max_samples=data.draw(st.sampled_from(["auto", 3, 17, 0.5])),
        max_features=data.draw(st.sampled_from([1.0, 0.4])), bootstrap=data.draw(st.booleans()),
        contamination=data.draw(st.sampled_from(["auto", 0.05, 0.25, 0.5])),
    ).fit(X)  # fmt: skip
    predictor = read_isolation_forest(forest, FeatureSpace([Feature(name, kind="continuous") for name in "xyz"]))
    cuts = np.concatenate([tree.tree_.threshold[tree.tree_.feature >= 0] for tree in forest.estimators_])
    near = np.concatenate([cuts, np.nextafter(cuts, -np.inf), np.nextafter(cuts, np.inf)])
    rows = np.concatenate([X, rng.choice(near, size=(200, 3))])

    assert np.allclose(predictor.score(rows), path_lengths(forest, rows), rtol=1e-11, atol=0)
    assert predictor.core.predict(rows).tolist() == forest.predict(rows).tolist()


def test_a_row_whose_score_is_the_offset_itself_is_no_outlier():
    X = np.random.default_rng(2).normal(size=(101, 2))
    space = FeatureSpace([Feature(name, kind="continuous", lower=-9, upper=9) for name in "xy"])
    seen = 0
    for seed in range(8):
        forest = IsolationForest(n_estimators=9, random_state=seed, contamination=0.1).fit(X)  # the tenth row of 100
        at = X[forest.decision_function(X) == 0.0]
        predictor = read_isolation_forest(forest, space)
        seen += len(at)
        assert (predictor.core.predict(at) == 1).all()
        for row in at:
            m = pyo.ConcreteModel()
            m.x = Factual(space, {"x": row[0], "y": row[1]})
            m.usual = impose(NotAnOutlier(forest), m.x)
            m.cost = pyo.Objective(expr=0.0)
            m.stay = pyo.Constraint(expr=m.x.changed["x"] + m.x.changed["y"] <= 0.0)
            assert str(solve(m).status) == "optimal"
    assert seen >= 8


# ---- checked ---------------------------------------------------------------------------------------------------------
@draws(20)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_the_violation_is_what_the_decision_function_lacks(seed, data):
    rng = np.random.default_rng(seed)
    rows = people(rng).assign(job=rng.choice(["cook", "nurse"], 80))
    space = FeatureSpace([*SPACE, Feature("job", kind="categorical", levels=("cook", "nurse"))])
    encoder = make_column_transformer((OneHotEncoder(), ["job"]), (StandardScaler(), ["a", "b"]))
    forest = IsolationForest(
        n_estimators=data.draw(st.integers(1, 12)),
        random_state=seed,
        contamination=data.draw(st.sampled_from([0.1, 0.4])),
    )
    if data.draw(st.booleans()):
        whole, names = make_pipeline(encoder, forest).fit(rows), list(space.names)
    else:
        names = ["b", "a"]
        whole = forest.fit(rows[names])
    rule = NotAnOutlier(whole)
    rule.check(space)
    expected = np.maximum(-whole.decision_function(rows[names]), 0.0)
    found = [rule.violation(space, None, space.row(row)) for row in rows.to_dict("records")]

    assert np.allclose(found, expected, rtol=1e-9, atol=0)
    assert ((np.array(found) > 0) == (whole.predict(rows[names]) == -1)).all()


def test_the_library_is_asked_at_its_level_alone_and_once_a_point(monkeypatch):
    X = pd.DataFrame(np.random.default_rng(2).normal(size=(101, 2)), columns=["x", "y"])
    space = FeatureSpace([Feature(name, kind="continuous", lower=-9, upper=9) for name in "xy"])
    forest = IsolationForest(n_estimators=9, random_state=0, contamination=0.1).fit(X)
    is_level = forest.decision_function(X) == 0.0
    rule = NotAnOutlier(forest)
    rule.check(space)
    asked, real = [], IsolationForest.decision_function
    monkeypatch.setattr(IsolationForest, "decision_function", lambda self, rows: asked.append(rows) or real(self, rows))
    for _ in range(3):
        off = [rule.violation(space, None, row) for row in X.to_dict("records")]

    assert len(asked) == is_level.sum() >= 1
    assert (np.array(off)[is_level] == 0.0).all()


def test_a_level_on_which_the_encoder_fails_is_no_answer():
    rows = people(np.random.default_rng(0)).assign(job=lambda own: np.where(own["a"] > 5, "nurse", "cook"))
    space = FeatureSpace([*SPACE, Feature("job", kind="categorical", levels=("clerk", "cook", "nurse"))])
    encoder = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    forest = make_pipeline(encoder, IsolationForest(n_estimators=5, random_state=0, contamination=0.1)).fit(rows)
    clerk = predictors.TreeEnsemble(
        [{"feature": 2, "threshold": 0.5, "left": {"value": 1.0}, "right": {"value": -1.0}}], labels=("no", "yes"),
        n_inputs=3,
    )  # fmt: skip
    coded = FeatureSpace([*SPACE, Feature("job", kind="ordinal", levels=("clerk", "cook", "nurse"))])
    rule = NotAnOutlier(forest, name="usual")
    result = ceopt.explain(clerk, {"a": 5, "b": 5, "job": "cook"}, coded, target="yes", constraints=[rule])
    rule.check(space)

    assert rule.violation(space, None, space.row({"a": 5, "b": 5, "job": "clerk"})) == math.inf
    assert [name for name, *_ in result.conflict] == ["usual"]
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"a": 5, "b": 5, "job": "cook"})
    m.usual = impose(rule, m.x)
    assert str(m.usual.never_seen["job"].expr) == "x.level[job,clerk]  <=  0.0"


@pytest.mark.parametrize("n", [1, 3])
def test_what_is_solved_without_the_rule_first_is_the_optimum_with_it(n):
    forest = forest_of(3, n_estimators=10, contamination=0.3)
    has_target = MODEL.predict(GRID) == "yes"
    is_wanted = has_target & (forest.predict(GRID) == 1)
    somebody = GRID[~has_target].iloc[::6]
    is_kept = []
    for row in somebody.to_dict("records"):
        question = {"target": "yes", "cost": ceopt.L1(scale="none"), "n": n}
        result = ceopt.explain(MODEL, row, SPACE, constraints=[NotAnOutlier(forest)], **question)
        costs = np.abs(GRID.to_numpy() - [row["a"], row["b"]]).sum(axis=1)

        assert result.status is Status.OPTIMAL
        assert result[0].cost == pytest.approx(costs[is_wanted].min(), abs=1e-9)
        assert (forest.predict(result.to_frame()[["a", "b"]]) == 1).all()
        is_kept.append(costs[has_target].min() == costs[is_wanted].min())
    assert 0 < sum(is_kept) < len(somebody)


# ---- answers ---------------------------------------------------------------------------------------------------------
def least(forest, factual, is_wanted):
    """The least l1 cost by enumeration, of rows that the forest calls ordinary; None without any."""
    known = forest.predict(GRID) == 1
    costs = np.abs(GRID.to_numpy() - [factual["a"], factual["b"]]).sum(axis=1)
    allowed = known & is_wanted
    return float(costs[allowed].min()) if allowed.any() else None


@draws(20)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_the_answer_is_that_of_enumeration(seed, data):
    contamination = data.draw(st.sampled_from(["auto", 0.1, 0.3, 0.5]))
    forest = forest_of(seed, n_estimators=data.draw(st.integers(1, 15)), contamination=contamination)
    if data.draw(st.booleans()):
        rows = people(np.random.default_rng(seed), 200)
        model = RandomForestClassifier(7, max_depth=3, random_state=seed, n_jobs=1)
        model.fit(rows, np.where(rows["a"] + 0.5 * rows["b"] > 7, "yes", "no"))
        is_wanted = model.predict(GRID) == "yes"
    else:
        model = MODEL
        is_wanted = model.predict(GRID) == "yes"
    factual = data.draw(st.sampled_from(GRID[~is_wanted].to_dict("records")))
    best = least(forest, factual, is_wanted)

    result = ceopt.explain(
        model, factual, SPACE, target="yes", cost=ceopt.L1(scale="none"), constraints=[NotAnOutlier(forest)]
    )

    if best is None:
        assert result.status is Status.INFEASIBLE
        return
    assert result.status is Status.OPTIMAL
    assert result[0].cost == pytest.approx(best, abs=1e-9)
    assert forest.predict(result.to_frame()[["a", "b"]]).tolist() == [1]


def test_it_goes_with_several_answers_limits_and_a_cohort():
    forest = forest_of(3, contamination=0.2)
    rule = NotAnOutlier(forest, name="usual")
    asked = {"cost": ceopt.L1(scale="none"), "constraints": [rule, ceopt.MaxChanges(2)]}
    several = ceopt.explain(MODEL, {"a": 3, "b": 3}, SPACE, target="yes", n=3, diversity="pool", **asked)
    cohort = ceopt.Recourse(MODEL, SPACE, target="yes", **asked).fit(GRID).explain(GRID.iloc[:12], n_jobs=2)

    assert len(several) == 3
    assert (forest.predict(several.to_frame()[["a", "b"]]) == 1).all()
    frame = cohort.to_frame()
    assert set(cohort.to_frame()["status"]) <= {"optimal", "infeasible"}
    assert (forest.predict(frame.dropna(subset=["cost"])[["a", "b"]]) == 1).all()


def test_the_conflict_names_it():
    forest = forest_of(0, contamination=0.3)
    far = ceopt.AllowedValues({"b": [0]}, name="no b")
    result = ceopt.explain(
        MODEL, {"a": 1, "b": 0}, SPACE, target="yes", constraints=[NotAnOutlier(forest, name="usual"), far]
    )

    assert result.status is Status.INFEASIBLE
    assert {name for name, *_ in result.conflict} == {"usual", "no b"}
    assert any(str(sentence) == "no outlier to IsolationForest" for _, sentence, _ in result.conflict)


def test_a_forest_that_is_fitted_again_is_read_again():
    rng = np.random.default_rng(0)
    factual = {"a": 4, "b": 5}
    is_wanted = MODEL.predict(GRID) == "yes"
    forest = IsolationForest(n_estimators=30, random_state=0, contamination=0.5).fit(people(rng))
    question = {"target": "yes", "cost": ceopt.L1(scale="none"), "constraints": [NotAnOutlier(forest)]}
    first = ceopt.explain(MODEL, factual, SPACE, **question)
    before = least(forest, factual, is_wanted)
    forest.fit(people(rng).assign(b=lambda rows: 9 - rows["b"]))
    second = ceopt.explain(MODEL, factual, SPACE, **question)

    assert first[0].cost == before
    assert second[0].cost == least(forest, factual, is_wanted) > before


def test_numbers_alone_and_any_encoder_beside_words():
    rng = np.random.default_rng(1)
    rows = people(rng).assign(job=lambda own: np.where(own["a"] > 4, "cook", rng.choice(["nurse", "clerk"], len(own))))
    space = FeatureSpace([*SPACE, Feature("job", kind="categorical", levels=("clerk", "cook", "nurse"))])
    encoder = make_column_transformer((OneHotEncoder(sparse_output=False), ["job"]), (StandardScaler(), ["a", "b"]))
    model = make_pipeline(encoder, LogisticRegression()).fit(rows, np.where(rows["a"] + rows["b"] > 9, "yes", "no"))
    some = IsolationForest(n_estimators=30, random_state=0, contamination=0.1).fit(rows[["b", "a"]])
    whole = make_pipeline(encoder, IsolationForest(n_estimators=30, random_state=0, contamination=0.1)).fit(rows)
    factual = {"a": 2, "b": 2, "job": "clerk"}
    result = ceopt.explain(
        model, factual, space, target="yes", constraints=[NotAnOutlier(some, name="some"), NotAnOutlier(whole)]
    )

    assert result.status is Status.OPTIMAL
    answer = result.to_frame()[list(rows)]
    assert some.predict(answer[["b", "a"]]).tolist() == [1]
    assert whole.predict(answer).tolist() == [1]


@pytest.mark.parametrize("imputed", [False, True])
def test_a_missing_cell_goes_where_the_forest_sends_it(imputed):
    rng = np.random.default_rng(4)
    rows = people(rng, 120).astype(float)
    rows.loc[rng.random(120) < 0.2, "b"] = np.nan
    forest = IsolationForest(n_estimators=30, random_state=0, contamination=0.2)
    if imputed:
        forest = make_pipeline(SimpleImputer(), forest)
    forest.fit(rows)
    space = SPACE.update("b", missing=True)
    model = make_pipeline(SimpleImputer(), LogisticRegression()).fit(rows, np.where(rows["a"] > 6, "yes", "no"))
    result = ceopt.explain(
        model, {"a": 3, "b": np.nan}, space, target="yes", cost=ceopt.L1(scale="none"),
        constraints=[NotAnOutlier(forest)],
    )  # fmt: skip
    filled = pd.concat([GRID.astype(float), pd.DataFrame({"a": np.arange(10.0), "b": np.nan})], ignore_index=True)
    allowed = (forest.predict(filled) == 1) & (model.predict(filled) == "yes")
    costs = np.abs(filled["a"] - 3) + filled["b"].notna()

    assert result[0].cost == pytest.approx(costs[allowed].min(), abs=1e-9)


# ---- refused ---------------------------------------------------------------------------------------------------------
def refusal(forest, space=SPACE):
    with pytest.raises(ceopt.CeoptError) as caught:
        ceopt.explain(MODEL, {"a": 1, "b": 1}, space, target="yes", constraints=[NotAnOutlier(forest)])
    return str(caught.value)


def test_what_is_no_isolation_forest_over_the_space_is_refused_by_name():
    rows = people(np.random.default_rng(0))
    assert "an IsolationForest" in refusal(RandomForestClassifier(3).fit(rows, rows["a"] > 4))
    assert "is not fitted" in refusal(IsolationForest())
    assert "'age'" in refusal(IsolationForest().fit(rows.rename(columns={"a": "age"})))
    assert "fitted on an array of 3 and the space has 2. Fit it on a frame" in refusal(
        IsolationForest().fit(np.zeros((9, 3)))
    )
    assert "an array of 1 and" in refusal(
        make_pipeline(StandardScaler(), IsolationForest()).fit(rows[["a"]].to_numpy())
    )
    assert "an IsolationForest" in refusal(
        make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, rows["a"] > 4)
    )


def test_one_that_flags_every_row_is_refused():
    forest = forest_of(0)
    forest.offset_ = -0.01
    assert "flags not every row" in refusal(forest)


@pytest.mark.parametrize("count", [1, 7, 50])
def test_one_that_flags_no_row_allows_every_row(count):
    one = IsolationForest(n_estimators=count, max_samples=1, random_state=0).fit(people(np.random.default_rng(0)))
    alike = IsolationForest(n_estimators=count, contamination=0.1, random_state=0).fit(GRID.iloc[[0] * 20])
    for forest in (one, alike):
        assert (forest.predict(GRID) == 1).all()
        rules = [NotAnOutlier(forest)]
        result = ceopt.explain(
            MODEL, {"a": 4, "b": 5}, SPACE, target="yes", cost=ceopt.L1(scale="none"), constraints=rules
        )
        assert result[0].cost == pytest.approx(1.0, abs=1e-9)


def test_as_the_model_itself_it_is_pointed_to_the_rule():
    with pytest.raises(ceopt.CeoptError, match=r"NotAnOutlier\(forest\)"):
        ceopt.explain(forest_of(0), {"a": 1, "b": 1}, SPACE, target=1)


def test_a_name_is_text():
    with pytest.raises(ceopt.CeoptError, match="name"):
        NotAnOutlier(forest_of(0), name=3)


def test_the_summary_names_it_and_its_rows():
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, {"a": 1, "b": 1})
    m.usual = impose(NotAnOutlier(forest_of(0, n_estimators=5)), m.x)

    assert "NotAnOutlier" in model_summary(m)["rule"].tolist()
    assert [row.local_name for row in m.usual.ordinary.component_data_objects(pyo.Constraint)] == [
        "valid[1]",
        "not_tied[1]",
    ]

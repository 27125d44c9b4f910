"""One pinned case for each fault that somebody found in a call."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.solvers.errors import CeoptError


@pytest.mark.parametrize("unit", [1e9, 1e6, 1.0, 1e-2, 1e-4, 1e-6, 1e-9])
def test_the_unit_of_a_column_changes_neither_cost_nor_status(unit):
    """The default margin once grew with the weight: "no recourse" for rates, a tenth too dear for per mille."""
    space = ceopt.FeatureSpace([ceopt.Feature("rate", kind="continuous", lower=0, upper=5 * unit, mad=unit)])

    result = ceopt.explain(Affine([1 / unit], -3.0, labels=("no", "yes")), {"rate": 2 * unit}, space, target="yes")

    assert result.status == "optimal"
    assert result[0].cost == pytest.approx(1.0, rel=2e-5)


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0, 1e6, 1e9])
def test_the_unit_of_a_regressor_changes_neither_cost_nor_status(size):
    split = {"feature": 0, "threshold": 4.5, "left": {"value": 0.0}, "right": {"value": size}}
    space = ceopt.FeatureSpace([ceopt.Feature("age", kind="integer", lower=0, upper=9)])
    row = {"age": 2}

    for model in (TreeEnsemble([split]), Affine([size / 4.0], -size / 4.0)):
        result = ceopt.explain(model, row, space, target=ceopt.AtLeast(0.45 * size), cost=ceopt.L1(scale="none"))
        assert result.status == "optimal"
        assert result[0].cost == pytest.approx(3.0 if isinstance(model, TreeEnsemble) else 1.0)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("seed", range(4))
def test_columns_of_very_different_scales(seed):
    """In raw units, big-M rows of 1e9 beside coefficients of 1e-10 made HiGHS prove what was not so."""
    rng = np.random.default_rng(seed)
    scales = np.array([1e9, 1e-4])
    data = pd.DataFrame(rng.normal(size=(150, 2)) * scales, columns=["a", "b"])
    score = (data / scales).to_numpy() @ rng.normal(size=2) + rng.normal(size=150) * 0.5
    labels = np.array(["A", "B", "C"])[np.digitize(score, np.quantile(score, [0.3, 0.7]))]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(data, labels)
    space = ceopt.FeatureSpace.infer(data)
    row = data.iloc[[int(np.flatnonzero(model.predict(data) == "A")[0])]]

    def cost(target, space=space, **options):
        result = ceopt.explain(model, row, space, target=target, **options)
        return result[0].cost if len(result) else np.inf

    assert cost({"B", "C"}) == pytest.approx(min(cost("B"), cost("C")), rel=1e-4)
    held = cost("C", space.update("b", mutable=False))
    assert cost("C", constraints=[ceopt.MaxChanges(1)]) <= held * (1 + 1e-4)


def test_trees_of_the_leaf_form_take_one_side_of_a_threshold():
    """To a solver's tolerance x lies on both sides: one tree went left and the other right of 0."""
    left = {"feature": 0, "threshold": 0.0, "left": {"value": 0.0}, "right": {"value": 1.0}}
    right = {"feature": 0, "threshold": 0.0, "left": {"value": 1.0}, "right": {"value": 0.0}}
    space = ceopt.FeatureSpace([ceopt.Feature("a", kind="continuous", lower=-2, upper=3)])
    model = TreeEnsemble([left, right], input_dtype="float32")

    for formulation in ("ordered", "misic", "leaf"):
        result = ceopt.explain(model, {"a": 0.0}, space, target=ceopt.AtLeast(1.5), formulation=formulation)
        assert result.status == "infeasible"


def stump(feature, threshold, left, right):
    return {"feature": feature, "threshold": threshold, "left": {"value": left}, "right": {"value": right}}


TEN = ceopt.FeatureSpace([ceopt.Feature(c, kind="continuous", lower=0.0, upper=10.0, mad=1.0) for c in "ab"])


@pytest.mark.parametrize("formulation", ["ordered", "misic", "leaf"])
@pytest.mark.parametrize("rules", [[], [ceopt.Linear({"a": 1.0, "b": 1.0}, "<=", 20.0)]])
def test_crossing_a_cut_is_a_change_however_near_it_is(formulation, rules):
    """Columns with a coordinate once had to move a thousandth of their range; what crossed a cut at less was lost."""
    model = TreeEnsemble(
        [stump(0, 5.001, -1.0, 1.0), stump(1, 5.002, -1.0, 1.0)], base=0.5, labels=("no", "yes"), n_inputs=2
    )
    result = ceopt.explain(
        model, {"a": 5.0, "b": 5.0}, TEN, target="yes", n=3, diversity="support", formulation=formulation,
        constraints=rules,
    )  # fmt: skip
    assert [answer.cost for answer in result] == pytest.approx([0.001, 0.002, 0.003], abs=1e-6)


@pytest.mark.parametrize("sense", ["==", ">="])
def test_the_least_move_binds_only_answers_that_differ_by_it(sense):
    split = {"feature": 1, "threshold": 6.0, "left": {"value": -1.0}, "right": stump(1, 8.0, 1.0, 2.0)}
    model = TreeEnsemble([split], labels=("no", "yes"), n_inputs=2)
    result = ceopt.explain(
        model, {"a": 5.0, "b": 5.0}, TEN, target="yes", n=2, diversity="pool",
        constraints=[ceopt.Linear({"a": 1.0}, sense, 5.001)],
    )  # fmt: skip
    assert [answer.cost for answer in result] == pytest.approx([1.001, 3.001], abs=1e-5)


@pytest.mark.parametrize("unit", [1e12, 1.0, 1e-2, 1e-3, 1e-6, 1e-9, 1e-12])
def test_answers_do_not_repeat_in_any_unit(unit):
    space = ceopt.FeatureSpace(
        [ceopt.Feature(c, kind="continuous", lower=0.0, upper=unit, mad=0.1 * unit) for c in "ab"]
    )
    model = Affine([1 / unit, 2 / unit], -1.6, labels=("no", "yes"))
    result = ceopt.explain(model, {"a": 0.5 * unit, "b": 0.5 * unit}, space, target="yes", n=2, diversity="pool")
    assert [answer.changed for answer in result] == [("b",), ("a", "b")]
    assert [answer.cost for answer in result] == pytest.approx([0.50005, 0.50505], rel=1e-4)


def test_a_level_that_the_pipeline_never_saw_is_no_answer():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"job": rng.choice(["cook", "nurse", "clerk"], 200), "age": rng.integers(20, 60, 200)})
    labels = ((data["job"] == "nurse") | (data["age"] > 50)).astype(int)
    space = ceopt.FeatureSpace.infer(data, moves={"age": "any"})
    levels = ("poet", *space["job"].levels)
    wider = ceopt.FeatureSpace([ceopt.Feature("job", kind="categorical", levels=levels), space["age"]])
    row = data[labels == 0].iloc[[0]]
    encode = make_pipeline(OneHotEncoder(), RandomForestClassifier(5, random_state=0))
    linear = make_pipeline(OneHotEncoder(), LogisticRegression())

    for model in (encode, linear):
        only_job = ceopt.FeatureSpace([wider["job"]])
        fitted = model.fit(data[["job"]], labels)
        result = ceopt.explain(fitted, row[["job"]], only_job, target=1)
        assert result.status == "optimal"
        assert result[0].values["job"] != "poet"
        with pytest.raises(CeoptError, match=r"column 'job' is 'poet'|on this one it fails"):
            ceopt.explain(fitted, {"job": "poet"}, only_job, target=1)


def test_what_once_left_as_a_bare_error_is_one_sentence(credit):
    model, space, row = credit.model, credit.space, credit.rejected.iloc[[0]]
    with pytest.raises(CeoptError, match="a FeatureSpace, but space is NoneType"):
        ceopt.explain(model, row, None, target="good")
    with pytest.raises(CeoptError, match="a FeatureSpace, but space is DataFrame"):
        ceopt.explain(model, row, row, target="good")
    with pytest.raises(CeoptError, match="target is Series"):
        ceopt.explain(model, row, space, target=pd.Series(["good"]))
    with pytest.raises(CeoptError, match="random_state to be at most"):
        ceopt.explain(model, row, space, target="good", random_state=2**40)


def test_a_number_beyond_float64_is_a_bad_point_and_no_crash():
    space = ceopt.FeatureSpace([ceopt.Feature("rate", kind="continuous")])
    report = ceopt.verify([{"rate": 10**400}], Affine([1.0], -3.0, labels=("no", "yes")), space, target="yes")
    assert report.ok is False


def test_numbers_of_numpy_are_numbers():
    assert ceopt.MaxChanges(np.int64(2)).k == 2
    assert ceopt.Probability("good", np.float32(0.5)).at_least == 0.5
    assert ceopt.explain(
        Affine([1.0], -3.5, labels=("no", "yes")),
        {"income": np.int64(2)},
        ceopt.FeatureSpace([ceopt.Feature("income", kind="integer", lower=0, upper=9)]),
        target="yes",
        relative_gap=0,
    ).status in {"optimal", "feasible"}

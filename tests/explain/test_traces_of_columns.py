"""Columns that a score reads by a trace of what others give it: they may still decide, and never stop a proof."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from licences import skip_without
from sklearn.linear_model import LogisticRegression, RidgeClassifier

import ceopt
from ceopt.formulations.predictors import Affine

pytestmark = pytest.mark.filterwarnings("ignore::ceopt.RuleWarning")

DATA = pd.DataFrame({"a": np.linspace(-3.0, 3.0, 61), "b": np.tile([-3.0, 4.0, 1.0], 21)[:61]})
SPACE = ceopt.FeatureSpace.infer(DATA)
PERSON = pd.DataFrame({"a": [-1.0], "b": [-2.0]})


def model_of(weights: Sequence[float], level: float = 0.0, kind: type = LogisticRegression) -> LogisticRegression:
    """Return a model that says 1 where ``weights @ x`` lies above the level."""
    model = kind().fit(DATA, (DATA["a"] > 0.0).astype(int))
    model.coef_ = np.array([weights])
    model.intercept_ = np.array([-level])
    return model


@pytest.mark.parametrize("kind", [LogisticRegression, RidgeClassifier])
@pytest.mark.parametrize("trace", [1e-13, 1e-14])
@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_a_trace_beside_the_other_column_keeps_neither_an_answer_nor_a_proof_back(kind, trace, solver):
    """Fits on symmetric data leave such coefficients: "Coefficients of one row span 4e+14: nothing is proved"."""
    model = model_of([1.0, trace], kind=kind)

    free = ceopt.explain(model, PERSON, SPACE, target=1, solver=solver)
    barred = ceopt.explain(
        model, PERSON, SPACE, target=1, constraints=[ceopt.Linear({"a": 1.0}, "<=", -0.5)], solver=solver
    )

    assert free.status == "optimal"
    assert free[0].cost == pytest.approx(1.0 / SPACE["a"].scale("mad"), rel=1e-5)
    assert barred.status == "infeasible"
    assert barred.reason.startswith("Proved")


@pytest.mark.parametrize("trace", [1e-9, 1e-10, 1e-11, 1e-12])
@pytest.mark.parametrize("sense", ["<=", "=="])
@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_what_a_rule_leaves_to_a_small_coefficient_is_decided_by_it(trace, sense, solver):
    """With a at 0, any b above 0 turns the decision: "infeasible, proved" since 0.1.0."""
    model = model_of([1.0, trace])
    assert model.predict(pd.DataFrame({"a": [0.0], "b": [1.0]})).tolist() == [1]

    result = ceopt.explain(
        model, PERSON, SPACE, target=1, constraints=[ceopt.Linear({"a": 1.0}, sense, 0.0)], solver=solver
    )

    assert result.status == "optimal"
    assert model.predict(result[0].frame[["a", "b"]]).tolist() == [1]


@pytest.mark.parametrize(("weight", "end"), [(1.0, 0.0), (1.0, 0.5), (0.7, 0.3), (-2.0, -0.1)])
def test_a_reach_that_ends_where_the_decision_does_is_proved_empty(weight, end):
    """The model refuses the very end, where its score is the level itself."""
    model = model_of([weight, 0.0], level=weight * end)
    ends = {"upper": end} if weight > 0.0 else {"lower": end}
    person = PERSON.assign(a=end - np.sign(weight))
    assert model.predict(person.assign(a=end)).tolist() == [0]

    result = ceopt.explain(model, person, SPACE.update("a", **ends), target=1)

    assert result.status == "infeasible"
    assert result.reason.startswith("Proved")


@pytest.mark.parametrize("solver", ["highs", "scip", "gurobi"])
@pytest.mark.parametrize("diversity", ["pool", "support", "distinct"])
def test_a_column_that_no_row_tells_makes_another_answer_all_the_same(solver: str, diversity: str) -> None:
    """Steps of 710 beside a reach of 3e17: the second answer was denied, as no row had the column."""
    skip_without(solver)
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("b", kind="integer", lower=2, upper=5, direction="decreasing"),
            ceopt.Feature("c", kind="integer", lower=-362_525_700, upper=0, direction="increasing"),
        ]
    )
    model = Affine([710.0, 1.8e9], 469.0, labels=("no", "yes"))
    person = {"b": 5, "c": -186_368_439}
    result = ceopt.explain(model, person, space, target="yes", n=2, diversity=diversity, solver=solver)
    costs = [answer.cost for answer in result]
    if diversity == "distinct":  # what an earlier answer changes, and more, is none
        assert (len(costs), result.complete) == (1, True)
        return
    assert [tuple(answer.changed) for answer in result] == [("c",), ("b", "c")]
    assert costs[1] == pytest.approx(costs[0] + 1.0 / 3.0)

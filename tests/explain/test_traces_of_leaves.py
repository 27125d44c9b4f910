"""Leaves whose values differ by rounding alone: they stop no proof, and where they decide, they are asked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, VotingClassifier
from sklearn.tree import DecisionTreeRegressor

import ceopt
from ceopt.formulations.linear_form import LinearForm

SPACE = ceopt.FeatureSpace(
    [ceopt.Feature(name, kind="continuous", lower=0.0, upper=7.0) for name in ("a", "b")],
)
PERSON = {"a": 0.0, "b": 1.0}


def boosted(trace: float) -> HistGradientBoostingClassifier:
    """Return a model whose second lowest leaf lies a trace above the lowest, in each of its trees."""
    rng = np.random.default_rng(6)
    data = pd.DataFrame(rng.integers(0, 8, (200, 2)).astype(float), columns=["a", "b"])
    labels = (data["a"] + data["b"] + rng.normal(0.0, 1.0, 200) > 8.0).astype(int)
    model = HistGradientBoostingClassifier(max_iter=10, max_leaf_nodes=6, min_samples_leaf=5).fit(data, labels)
    for (tree,) in model._predictors:
        leaves = np.flatnonzero(tree.nodes["is_leaf"])
        lowest, second = leaves[np.argsort(tree.nodes["value"][leaves])[:2]]
        tree.nodes["value"][second] = tree.nodes["value"][lowest] + trace
    return model


def voting(model: HistGradientBoostingClassifier) -> VotingClassifier:
    """Return a model that has one vote."""
    votes = VotingClassifier([("only", model)])
    votes.estimators_ = [model]
    votes.named_estimators_ = {"only": model}
    votes.classes_ = model.classes_
    votes.le_ = model._label_encoder
    votes.feature_names_in_ = model.feature_names_in_
    return votes


@pytest.mark.parametrize("trace", [1e-12, 4e-14, 1e-15, 1e-17])
@pytest.mark.parametrize("kind", [lambda model: model, voting])
@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_a_trace_between_two_leaves_keeps_neither_an_answer_nor_a_proof_back(kind, trace, solver):
    """With 4e-14: "Coefficients of one row span 2e+12: nothing is proved"."""
    model = kind(boosted(trace))
    narrow = SPACE.update("a", upper=3.0).update("b", upper=3.0)

    free = ceopt.explain(model, PERSON, SPACE, target=1, solver=solver)
    barred = ceopt.explain(model, PERSON, narrow, target=1, solver=solver)

    assert free.status == "optimal"
    assert free[0].cost == pytest.approx(ceopt.explain(boosted(0.0), PERSON, SPACE, target=1)[0].cost)
    assert barred.status == "infeasible"
    assert barred.reason.startswith("Proved")


@pytest.mark.parametrize("trace", [1e-9, 1e-12, 1e-14])
@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_a_trace_that_decides_is_asked(trace, solver):
    """The highest leaf is out of reach, and of the other two only the upper one is enough."""
    data = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": 0.0})
    model = DecisionTreeRegressor().fit(data, [0.0, 1.0, 5.0])
    model.tree_.value[model.tree_.value[:, 0, 0] == 1.0] = trace
    space = SPACE.update("a", upper=1.2)

    enough = ceopt.explain(model, PERSON, space, target=ceopt.AtLeast(trace), solver=solver)
    too_much = ceopt.explain(model, PERSON, space, target=ceopt.AtLeast(2.0 * trace), solver=solver)

    assert enough.status == "optimal"
    assert enough[0].frame["a"].item() == pytest.approx(0.5)
    assert too_much.status == "infeasible"


def test_what_is_left_out_of_a_form_stays_within_the_room():
    form = LinearForm(3.0, ((1.0, "x"), (-1e-13, "y"), (2e-13, "z"), (5e-13, "v")))

    kept, least, most = form.without_traces(1e-12, 3.5e-13)

    assert kept == LinearForm(3.0, ((1.0, "x"), (5e-13, "v")))
    assert (least, most) == (-1e-13, 2e-13)

"""A cutoff of one's own in ``embed``, and the cell of an answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.neural_network import MLPClassifier

import ceopt
from ceopt.formulations import Cutoff, Factual, Reaches, embed, l1
from ceopt.solvers import solve
from ceopt.solvers.errors import InvalidValueError

RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {"income": RNG.uniform(0, 9, 150), "rooms": RNG.integers(1, 6, 150), "job": RNG.choice(["a", "b"], 150)}
)
Y = (np.sin(X["income"]) + X["rooms"] / 3 > 1.0).astype(int)
NUMBERS = ["income", "rooms"]
SPACE = ceopt.FeatureSpace.infer(X[NUMBERS])
MODELS = {
    "boosting": GradientBoostingClassifier(n_estimators=15, random_state=0).fit(X[NUMBERS], Y),
    "network": MLPClassifier((5,), solver="lbfgs", alpha=0.1, max_iter=5000, random_state=0).fit(X[NUMBERS], Y),
}


def stated(model: Any, row: Any, cutoff: Any = None) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, row)
    m.p = embed(model, m.x, cutoff=cutoff)
    m.valid = Reaches(m.p, 1)
    m.least = pyo.Objective(expr=l1(m.x, scale="range"))
    return m


@pytest.mark.parametrize("name", MODELS)
def test_a_cutoff_leaves_the_optimum_and_makes_the_program_smaller(name: str) -> None:
    model = MODELS[name]
    rows = X[NUMBERS][model.predict(X[NUMBERS]) == 0].head(5)
    smaller = 0
    for _, row in rows.iterrows():
        whole = stated(model, row)
        best = solve(whole).objective
        cutoff = Cutoff(SPACE, row, ceopt.L1(scale="range"), best)
        near = stated(model, row, cutoff)
        assert solve(near).objective == pytest.approx(best, rel=1e-6)
        counts = [len(list(m.component_data_objects(pyo.Var))) for m in (near, whole)]
        assert counts[0] <= counts[1]
        smaller += counts[0] < counts[1]
        too_near = stated(model, row, Cutoff(SPACE, row, ceopt.L1(scale="range"), 0.0))
        assert solve(too_near).status == "infeasible" or best <= 1e-6 or name == "network"
    assert smaller or name == "network"


def test_a_cutoff_of_another_row_or_no_limit_is_refused() -> None:
    model = MODELS["boosting"]
    with pytest.raises(InvalidValueError, match="that of cutoff is another row"):
        stated(model, X[NUMBERS].iloc[0], Cutoff(SPACE, X[NUMBERS].iloc[1], "l1", 1.0))
    for limit in (-1.0, math.inf, math.nan):
        with pytest.raises(InvalidValueError, match="limit is"):
            Cutoff(SPACE, X[NUMBERS].iloc[0], "l1", limit)


def test_the_cell_of_an_answer_is_where_the_model_says_the_same() -> None:
    model = MODELS["boosting"]
    row = X[NUMBERS][model.predict(X[NUMBERS]) == 0].iloc[0]
    m = stated(model, row)
    result = solve(m)
    answer = m.x.decode(result.solutions[0])
    cell = m.x.decode(result.solutions[0], cell=True)
    assert list(cell.index) == NUMBERS
    for name in NUMBERS:
        assert cell.loc[name, "lower"] <= answer[name] <= cell.loc[name, "upper"]
    corners = pd.DataFrame(
        [[income, rooms] for income in cell.loc["income"] for rooms in cell.loc["rooms"]], columns=NUMBERS
    )
    scores = model.decision_function(corners)
    np.testing.assert_allclose(scores, scores[0])
    assert (model.predict(corners) == 1).all()


def test_levels_missing_cells_and_codes_are_cells_of_their_own() -> None:
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("job", kind="categorical", levels=("a", "b")),
            ceopt.Feature("debt", kind="continuous", lower=0.0, upper=5.0, missing=True),
            ceopt.Feature("delay", kind="integer", lower=0, upper=9, codes=[-9]),
            ceopt.Feature("wage", kind="continuous", lower=0.0, upper=5.0),
        ]
    )
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"job": "b", "debt": math.nan, "delay": -9, "wage": 2.0})
    m.x.place(m.x.point)
    cell = m.x.decode(cell=True)
    assert cell.loc["job"].tolist() == ["b", "b"]
    assert cell.loc["delay"].tolist() == [-9, -9]
    assert cell.loc["debt"].isna().all()
    assert cell.loc["wage"].tolist() == [0.0, 5.0]

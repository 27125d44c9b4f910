"""Decoded answers keep dtypes, stay in reach, and are exact where a fitted tree decides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ceopt.formulations import Factual, Reaches, embed, l1
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.solvers import Status, solve
from ceopt.solvers.errors import InvalidValueError


def frame(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype("int16"),
            "children": pd.array(rng.integers(0, 4, n), dtype="Int64"),
            "wage": rng.normal(30.0, 9.0, n),
            "debt": rng.normal(0.0, 1e-3, n).astype("float32"),
            "job": pd.Categorical(rng.choice(["cook", "nurse", "miner"], n)),
            "home": rng.choice(["own", "rent"], n),
            "flag": rng.random(n) < 0.5,
        }
    )


def test_a_decoded_row_keeps_each_columns_type() -> None:
    data = frame()
    space = FeatureSpace.infer(data, moves={"age": "any"})
    for k in range(len(data)):
        m = pyo.ConcreteModel()
        m.x = Factual(space, data.iloc[[k]])
        m.x.place(m.x.point)
        assert {n: type(v) for n, v in m.x.decode().items()} == {
            "age": int, "children": int, "wage": float, "debt": float, "job": str, "home": str, "flag": bool
        }  # fmt: skip
        assert m.x.decode().to_dict() == data.iloc[k].to_dict()
        assert space.row(m.x.decode()) == m.x.point


def test_a_decoded_row_of_one_type_has_that_dtype() -> None:
    space = FeatureSpace.infer(pd.DataFrame({"a": [0.5, 1.5], "b": [1.0, 2.5]}))
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"a": 0.5, "b": 1.0})
    assert m.x.decode().dtype == np.float64


def test_decode_takes_one_of_the_results_solutions() -> None:
    space = FeatureSpace([Feature("a", kind="integer", lower=0, upper=9)])
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"a": 2})
    m.row = pyo.Constraint(expr=m.x.raw["a"] >= 6.5)
    m.cost = pyo.Objective(expr=l1(m.x))
    result = solve(m)
    m.x.x["a"].set_value(0)
    assert m.x.decode(result.solutions[0]).to_dict() == {"a": 7}


# ---- exact at thresholds --------------------------------------------------------------------------------------------
@draws(60)
@given(
    threshold=st.floats(-1e6, 1e6, width=32),
    right=st.booleans(),
    formulation=st.sampled_from(["ordered", "misic", "leaf"]),
)
def test_the_answer_is_the_last_float_of_its_side(threshold: float, right: bool, formulation: str) -> None:
    """The tree sees float32; the answer is the nearest float64 that passes."""
    low, high = (float(np.float32(threshold + side)) for side in (-1.0, 1.0))
    tree = DecisionTreeClassifier().fit(np.array([[low], [high]], dtype=np.float32), [0, 1])
    here, wanted = (low - 1.0, 1) if right else (high + 1.0, 0)
    space = FeatureSpace([Feature("a", kind="continuous", lower=min(low, here) - 1.0, upper=max(high, here) + 1.0)])
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"a": here})
    m.p = embed(tree, m.x, formulation=formulation)
    m.v = Reaches(m.p, wanted)
    m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    assert solve(m).status is Status.OPTIMAL
    value = float(m.x.decode()["a"])
    assert tree.predict([[value]])[0] == wanted
    if formulation == "ordered":
        before = math.nextafter(value, -math.inf if right else math.inf)
        assert tree.predict([[before]])[0] != wanted


@pytest.mark.long
@pytest.mark.parametrize("formulation", ["ordered", "misic", "leaf"])
def test_answers_of_a_pipeline_are_predicted_as_asked(formulation: str) -> None:
    data = frame(300)
    y = np.where(data["wage"] + 6 * (data["job"] == "nurse") - 0.2 * data["age"] > 24, "good", "bad")
    numbers = ["age", "wage", "debt"]
    encode = ColumnTransformer(
        [("n", StandardScaler(), numbers), ("c", OneHotEncoder(), ["job", "home"])], remainder="drop"
    )
    model = make_pipeline(encode, RandomForestClassifier(8, max_depth=4, random_state=0)).fit(data, y)
    space = FeatureSpace.infer(data, moves={"age": "up", "home": "fixed"})
    poor = data[model.predict(data) == "bad"].iloc[:4]
    assert len(poor) == 4
    for k in range(len(poor)):
        m = pyo.ConcreteModel()
        m.x = Factual(space, poor.iloc[[k]])
        m.p = embed(model, m.x, formulation=formulation)
        m.v = Reaches(m.p, "good")
        m.cost = pyo.Objective(expr=l1(m.x))
        assert solve(m).status is Status.OPTIMAL
        found = space.frame([m.x.decoded()])
        assert model.predict(found)[0] == "good"
        assert pyo.value(m.p.score["good"]) == pytest.approx(model.predict_proba(found)[0, 1])
        assert found["age"].iloc[0] >= poor["age"].iloc[k]
        assert found["home"].iloc[0] == poor["home"].iloc[k]


# ---- what a solver's tolerance may not do ---------------------------------------------------------------------------
def value_of(feature: Feature, x0: float, raw: float) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(FeatureSpace([feature]), {feature.name: x0})
    assert m.x.raw[feature.name] is not None
    m.x.x[feature.name].set_value(raw / m.x.coordinates[feature.name].unit, skip_validation=True)
    return m.x.decode()[feature.name]


def test_noise_of_the_solver_is_not_a_move() -> None:
    free = Feature("a", kind="continuous", lower=0, upper=9)
    assert value_of(free, 0.1, 0.1 + 4e-10) == 0.1
    assert value_of(free, 0.1, 0.1 + 4e-9) == 0.1 + 4e-9
    assert value_of(free, 0.1, -1e-7) == 0.0
    assert value_of(free, 0.1, 9 + 1e-7) == 9.0


def test_a_small_move_of_a_large_number_is_a_move() -> None:
    whole = Feature("cents", kind="integer", lower=0, upper=4e12)
    for x0 in (2_000_000_000, 2_000_000_000_000):
        assert value_of(whole, x0, x0 + 1.0) == x0 + 1
    assert value_of(Feature("cents", kind="continuous", lower=0, upper=4e9), 2e9, 2e9 + 0.5) == 2e9 + 0.5


def test_a_step_is_rounded_to_the_grid() -> None:
    grid = Feature("a", kind="continuous", lower=0, upper=1, step=0.1)
    assert value_of(grid, 0.25, 0.4500001) == 0.25 + 2 * 0.1
    assert value_of(grid, 0.25, 0.0) == 0.05  # 0.25 - 2 * 0.1 is 0.04999999999999999
    assert value_of(grid, 0.25, 1.0) == 0.95  # 0.25 + 7 * 0.1 is 0.9500000000000001
    assert value_of(Feature("a", kind="integer", lower=-3, upper=8, step=3), 1, 8.0) == 7


def test_a_large_integer_moves_by_one_in_a_linear_model() -> None:
    space = FeatureSpace([Feature("cents", kind="integer", lower=0, upper=4e9)])
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"cents": 2_000_000_000})
    m.p = embed(Affine([1.0], -2_000_000_000.5, labels=(0, 1)), m.x)
    m.v = Reaches(m.p, 1, margin=0.25)
    m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    assert solve(m).objective == pytest.approx(1)
    assert m.x.decode()["cents"] == 2_000_000_001


def test_values_lie_in_the_cell_that_the_integers_select() -> None:
    """The coordinate is right to a tolerance; on the wrong side of a cut it is moved to the right one."""
    space = FeatureSpace([Feature("a", kind="continuous", lower=0, upper=9)])
    stump = {"feature": 0, "threshold": 4.0, "left": {"value": 0.0}, "right": {"value": 1.0}}
    for formulation in ("ordered", "misic", "leaf"):
        m = pyo.ConcreteModel()
        m.x = Factual(space, {"a": 1.0})
        m.p = embed(TreeEnsemble([stump]), m.x, formulation=formulation)
        assert m.x.raw["a"] is not None
        for wanted, off in ((4.0, 4.0000001), (math.nextafter(4.0, 9.0), 3.9999999)):
            m.x.place({"a": wanted})
            m.p.place({"a": wanted})
            assert m.x.decoded() == {"a": wanted}
            m.x.x["a"].set_value(off)
            assert m.x.decoded() == {"a": wanted}


@pytest.mark.parametrize("cell", [False, True])
def test_a_model_that_was_never_solved_decodes_to_nothing(cell: bool) -> None:
    space = FeatureSpace(
        [Feature("age", kind="integer", lower=18, upper=90), Feature("job", kind="categorical", levels=("a", "b"))]
    )
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"age": 30, "job": "b"})
    m.p = embed(Affine([1.0], -40.0, labels=("no", "yes"), columns=["age"]), m.x)
    m.valid = Reaches(m.p, "yes")
    with pytest.raises(InvalidValueError, match="decode of x needs a solution"):
        m.x.decode(cell=cell)
    m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    solve(m)
    assert m.x.decode()["job"] == "b"
    m.stays = Factual(space.fix("age", "job"), {"age": 30, "job": "b"})
    assert dict(m.stays.decode()) == {"age": 30, "job": "b"}

"""A solution of a written file, found by a library that knows nothing of us, goes back into the model that wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pyscipopt
import pytest
from licences import skip_without
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

import ceopt
from ceopt.formulations import Factual, Reaches, embed, l1
from ceopt.solvers import load, solve, write
from ceopt.solvers.cones import soc
from ceopt.solvers.errors import CeoptError

SIZES = ["no size", "small one", "big one"]


def by_highs(path: Path) -> dict[str, float]:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(path))
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return dict(zip(highs.getLp().col_names_, highs.getSolution().col_value, strict=True))


def by_scip(path: Path) -> dict[str, float]:
    scip = pyscipopt.Model()
    scip.hideOutput()
    scip.readProblem(str(path))
    scip.optimize()
    assert scip.getStatus() == "optimal"
    return {var.name: scip.getVal(var) for var in scip.getVars()}


def by_gurobi(path: Path) -> dict[str, float]:
    skip_without("gurobi")
    import gurobipy

    with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.read(str(path), env) as program:
        program.optimize()
        return {var.VarName: var.X for var in program.getVars()}


LIBRARIES = {"highspy": by_highs, "pyscipopt": by_scip, "gurobipy": by_gurobi}


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """A column of every kind, with levels that are text with blanks, truth values and numbers."""
    rng, n = np.random.default_rng(5), 240
    frame = pd.DataFrame({"income": rng.normal(30, 8, n).round(1), "loans": rng.integers(0, 6, n)})
    frame["owner of it"] = rng.random(n) < 0.4
    frame["sex"] = rng.choice(["f f", "m"], n)
    frame["job"] = rng.choice(["a clerk", "a clerk's aid", "cook"], n)
    frame["guarantor"] = rng.choice(np.array([True, False, "not known"], dtype=object), n)
    frame["zone"] = rng.choice([1, 2, 30], n)
    frame["size"] = rng.choice(SIZES, n)
    return frame


@pytest.fixture(scope="module", params=["logistic", "forest"])
def question(request: Any, people: pd.DataFrame) -> tuple[Any, ceopt.FeatureSpace, Any]:
    score = people["income"] / 8 - people["loans"] + people["owner of it"] + (people["job"] == "cook")
    score += people["size"].map(SIZES.index) + (people["guarantor"] == True) + (people["zone"] == 30)  # noqa: E712
    label = np.where(score > score.median(), "good", "bad")
    text = people.assign(guarantor=people["guarantor"].astype(str))
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["sex", "job", "zone", "guarantor"]),
        (OrdinalEncoder(categories=[SIZES]), ["size"]),
        remainder="passthrough",
    )
    core = LogisticRegression(max_iter=4000) if request.param == "logistic" else RandomForestClassifier(5, max_depth=4)
    core.set_params(random_state=0)
    model = make_pipeline(columns, core).fit(text, label)
    given = {"categorical": ["job", "zone", "guarantor"], "ordinal": {"size": SIZES}}
    space = ceopt.FeatureSpace.infer(text, moves={"sex": "any"}, **given)
    return model, space, text[model.predict(text) == "bad"].iloc[0]


def program(question: Any) -> Any:
    model, space, row = question
    m = pyo.ConcreteModel()
    m.x = Factual(space, row)
    m.predictor = embed(model, m.x)
    m.reaches = Reaches(m.predictor, "good")
    m.cost = pyo.Objective(expr=l1(m.x) + 1.5)  # a constant: a column of the file's own
    return m


@pytest.mark.long(every=6)
@pytest.mark.parametrize("suffix", [".lp", ".mps"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_kind_of_column_comes_back(question: Any, library: str, suffix: str, tmp_path: Path) -> None:
    model, space, row = question
    m = program(question)
    expected = solve(m).objective
    for var in m.component_data_objects(pyo.Var):
        if not var.fixed:
            var.set_value(None)
    held = {var.name: var.value for var in m.component_data_objects(pyo.Var) if var.fixed}
    n_vars = len(list(m.component_data_objects(pyo.Var)))
    write(m, tmp_path / f"m{suffix}")
    found = LIBRARIES[library](tmp_path / f"m{suffix}")
    assert "ONE_VAR_CONSTANT" in found

    load(m, found)

    assert pyo.value(m.cost) == pytest.approx(expected, abs=1e-6)
    assert {var.name: var.value for var in m.component_data_objects(pyo.Var) if var.fixed} == held
    assert len(list(m.component_data_objects(pyo.Var))) == n_vars
    assert not any(var.value is None for var in m.component_data_objects(pyo.Var))
    assert all(
        type(var.value) is int for var in m.component_data_objects(pyo.Var) if var.is_integer() and not var.fixed
    )
    answer = m.x.decode()
    assert ceopt.verify([answer], model, space, target="good", factual=row).ok
    assert ceopt.explain(model, row, space, target="good")[0].cost == pytest.approx(expected - 1.5, rel=1e-5)


def small() -> Any:
    m = pyo.ConcreteModel()
    m.level = pyo.Var([("guarantor", True), ("guarantor", "not known")], domain=pyo.Binary)
    m.x = pyo.Var(bounds=(0, 9))
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0, 10**9))
    m.held = pyo.Var(initialize=2.5)
    m.held.fix()
    m.idle = pyo.Var(bounds=(3, 4))
    m.one = pyo.Constraint(expr=sum(m.level.values()) == 1)
    m.row = pyo.Constraint(expr=m.x + m.n + m.held >= 4)
    m.cost = pyo.Objective(expr=m.x + m.n + m.level["guarantor", "not known"])
    return m


GOOD = {"level(guarantor_True)": 1 - 1e-7, "level(guarantor_not_known)": 0.0, "x": 0.5, "n": 1.0000001}


def test_integers_are_rounded_idle_vars_get_a_value_and_fixed_ones_stay() -> None:
    m = small()
    load(m, GOOD)
    assert [m.level["guarantor", True].value, m.level["guarantor", "not known"].value] == [1, 0]
    assert (m.x.value, m.n.value, m.held.value, m.idle.value) == (0.5, 1, 2.5, 3.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"level[guarantor,True]": 1.0},
            r"known column of the file, but column of the file is 'level\[guarantor,True\]'",
        ),
        ({"x": None}, "'x' is missing"),
        ({"x": float("nan")}, "finite values, but 'x' is nan"),
        ({"x": float("inf")}, "finite values, but 'x' is inf"),
        ({"n": 1.5}, "whole numbers for integers, but 'n' is 1.5"),
        ({"x": "1"}, "numbers, but 'x' is '1'"),
        ({"x": True}, "numbers, but 'x' is True"),
        ({3: 1.0}, "names as text, but one is 3"),
    ],
)
def test_what_does_not_fit_is_refused_by_name_and_nothing_is_set(change: Any, message: str) -> None:
    m = small()
    given = {name: value for name, value in (GOOD | change).items() if value is not None}
    with pytest.raises(CeoptError, match=message):
        load(m, given)
    assert m.x.value is None
    assert m.n.value is None


def test_what_is_no_mapping_is_refused() -> None:
    with pytest.raises(CeoptError, match="a mapping from names to values, but values is list"):
        load(small(), [1.0])  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", [".lp", ".cbf"])
def test_the_columns_of_cones_are_passed_over(suffix: str, tmp_path: Path) -> None:
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(bounds=(-5, 5)), pyo.Var(bounds=(-5, 5))
    m.t = pyo.Var(bounds=(0, 20))
    m.cone = pyo.Constraint(expr=soc(m.t, [m.x - 3, 2 * m.y + 1]) >= 0)
    m.cost = pyo.Objective(expr=m.t + 0.1 * m.x**2 if suffix == ".cbf" else m.t + m.x)
    expected = solve(m).objective
    write(m, tmp_path / f"m{suffix}")
    elsewhere = ceopt.solvers.read(tmp_path / f"m{suffix}")  # with Vars of the file's own names
    solve(elsewhere)
    found = {var.local_name.strip("'"): var.value for var in elsewhere.component_data_objects(pyo.Var)}
    assert len(found) > 3
    m.x.value = m.y.value = m.t.value = None
    load(m, found)
    assert pyo.value(m.cost) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_that_a_solver_adds_for_a_quadratic_cost_are_passed_over(
    library: str, suffix: str, tmp_path: Path
) -> None:
    """Also where the model has Vars of the names that SCIP gives its own: theirs are others in the file."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 9))
    m.quadobjvar = pyo.Var(bounds=(0, 9))
    m.qmatrixvar = pyo.Var(bounds=(0, 9))
    m.row = pyo.Constraint(expr=m.x + m.quadobjvar + 2 * m.qmatrixvar >= 6)
    m.cost = pyo.Objective(expr=m.x**2 + 2 * m.quadobjvar**2 + 4 * m.qmatrixvar**2 - m.x)
    write(m, tmp_path / f"m{suffix}")
    found = LIBRARIES[library](tmp_path / f"m{suffix}")
    assert len(found) >= 3
    load(m, found)
    loaded = {name: m.component(name).value for name in ("x", "quadobjvar", "qmatrixvar")}
    # x = 1/2 + t, quadobjvar = t / 2, qmatrixvar = t / 2, and so 1/2 + 5 t / 2 = 6 for the row's multiplier 2 t.
    assert loaded == pytest.approx({"x": 2.7, "quadobjvar": 1.1, "qmatrixvar": 1.1}, abs=1e-3)
    with pytest.raises(CeoptError, match="nobody"):
        load(m, found | {"nobody": 1.0})


def test_a_linear_program_has_no_column_of_a_quadratic_cost() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 9))
    m.row = pyo.Constraint(expr=m.x >= 1)
    m.cost = pyo.Objective(expr=m.x)
    with pytest.raises(CeoptError, match="quadobjvar"):
        load(m, {"x": 1.0, "quadobjvar": 1.0})

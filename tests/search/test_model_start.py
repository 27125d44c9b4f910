"""Starts of a caller's own program: what they hold, whether they keep the program's rows, what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import ceopt
from ceopt import Feature, FeatureSpace, MaxChanges
from ceopt.formulations import Factual, Reaches, embed, impose, l1
from ceopt.formulations.predictors import Affine
from ceopt.solvers import solve
from ceopt.solvers.compile.compiled_model import compile_model
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

SPACE = FeatureSpace(
    [
        Feature("a", kind="integer", lower=0, upper=6),
        Feature("b", kind="integer", lower=0, upper=6, direction="increasing"),
    ]
)
NUMBERS = pd.DataFrame(list(itertools.product(range(7), range(7))), columns=["a", "b"])
WANTED = np.where(NUMBERS["a"] + 2 * NUMBERS["b"] > 9, "yes", "no")
WANTED_TOO = np.where(NUMBERS["a"] > 3, "yes", "no")
MODELS = {
    "forest": RandomForestClassifier(9, max_depth=3, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=8, random_state=0),
    "network": MLPClassifier((4,), random_state=0, max_iter=3000),
    "logistic": LogisticRegression(),
}


@pytest.fixture(params=MODELS)
def fitted(request):
    return MODELS[request.param].fit(NUMBERS, WANTED)


def program(model, *, by_margin=False, rows=({"a": 1, "b": 1},)):
    m = pyo.ConcreteModel()
    m.person = pyo.Block(range(len(rows)))
    for one, row in zip(m.person.values(), rows, strict=True):
        one.x = Factual(SPACE, row)
        one.bank = embed(model, one.x)
        if by_margin:
            one.reached = pyo.Constraint(expr=one.bank.margin("yes") >= 0)
        else:
            one.reached = Reaches(one.bank, "yes")
    m.cost = pyo.Objective(expr=sum(l1(one.x, scale="none") for one in m.person.values()))
    return m


def is_kept(m, values):
    """Whether the values, completed by the solver with all of them fixed, are a solution of the program."""
    for var, value in values.items():
        var.fix(value)
    status = solve(m).status
    for var in values:
        var.unfix()
    return status == "optimal"


@pytest.mark.parametrize("by_margin", [False, True])
def test_a_searched_start_keeps_every_row_and_the_vars_keep_their_values(fitted, by_margin):
    m = program(fitted, by_margin=by_margin)
    before = [var.value for var in m.component_data_objects(pyo.Var)]
    values = ceopt.start(m)
    assert [var.value for var in m.component_data_objects(pyo.Var)] == before
    assert is_kept(m, values)
    compiled = compile_model(m)
    assert set(map(id, compiled.columns)) <= {id(var) for var in values}  # nothing is left to the solver
    alone = solve(m)
    assert solve(m, start=values).objective == pytest.approx(alone.objective, abs=1e-6)
    listed = NUMBERS[(fitted.predict(NUMBERS) == "yes") & (NUMBERS["b"] >= 1)]
    least = (abs(listed - [1, 1])).sum(axis=1).min()
    assert alone.objective == pytest.approx(least, abs=1e-6)


def test_a_start_from_a_row_decodes_to_that_row_or_of_trees_to_its_cell(fitted):
    m = program(fitted)
    row = {"a": 6, "b": 6}
    for var, value in ceopt.start(m, row).items():
        var.set_value(value)
    cell = m.person[0].x.decode(cell=True)
    for name, value in row.items():
        assert cell.loc[name, "lower"] <= value <= cell.loc[name, "upper"]
    if not hasattr(fitted, "estimators_"):
        assert m.person[0].x.decode().to_dict() == row
    assert solve(m, start=ceopt.start(m, row)).status == "optimal"


def test_a_row_that_misses_the_target_is_refused_by_the_solver_naming_the_row():
    m = program(MODELS["logistic"].fit(NUMBERS, WANTED))
    with pytest.raises(InvalidValueError, match=r"they break constraint 'person\[0\]\.reached"):
        solve(m, start=ceopt.start(m, {"a": 0, "b": 1}))


def test_several_people_get_a_row_each():
    model = MODELS["network"].fit(NUMBERS, WANTED)
    m = program(model, rows=({"a": 1, "b": 1}, {"a": 0, "b": 2}))
    assert is_kept(m, ceopt.start(m))
    rows = pd.DataFrame({"a": [6, 5], "b": [6, 6]})
    for var, value in ceopt.start(m, rows).items():
        var.set_value(value)
    assert [one.x.decode().to_list() for one in m.person.values()] == [[6, 6], [5, 6]]
    with pytest.raises(InvalidValueError, match="start needs 2 rows, one for each Factual block, but it got 1"):
        ceopt.start(m, {"a": 6, "b": 6})


def test_rules_and_own_rows_are_kept(fitted):
    m = program(fitted)
    m.few = impose(MaxChanges(1), m.person[0].x)
    m.least = pyo.Constraint(expr=m.person[0].x.raw["a"] <= 1)
    values = ceopt.start(m)
    allowed = NUMBERS[(NUMBERS["a"] <= 1) & (NUMBERS["b"] >= 1)]
    few = ((allowed != [1, 1]).sum(axis=1) <= 1) & (fitted.predict(allowed) == "yes")
    assert (values is not None) == few.any()
    assert values is None or is_kept(m, values)


def test_no_row_that_keeps_the_program_is_none():
    m = program(MODELS["forest"].fit(NUMBERS, WANTED))
    m.never = pyo.Constraint(expr=m.person[0].x.raw["b"] + m.person[0].x.raw["a"] <= 0)
    assert ceopt.start(m) is None


def test_a_person_who_is_served_today_may_stay():
    m = program(MODELS["logistic"].fit(NUMBERS, WANTED), rows=({"a": 6, "b": 6},))
    values = ceopt.start(m)
    for var, value in values.items():
        var.set_value(value)
    assert m.person[0].x.decode().to_dict() == {"a": 6, "b": 6}


@pytest.mark.parametrize("row", [None, {"income": 5}])
def test_a_person_who_cannot_move_begins_nowhere(row):
    space = FeatureSpace([Feature("income", kind="integer", lower=0, upper=9, mutable=False)])
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"income": 5})
    m.predictor = embed(Affine([1.0], -3.5, labels=("no", "yes")), m.x)
    m.valid = Reaches(m.predictor, "yes")
    m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    start = ceopt.start(m, row)
    assert start is None
    assert solve(m, start=start).objective == 0.0


def test_two_models_on_one_row_are_reached_together():
    m = program(MODELS["forest"].fit(NUMBERS, WANTED))
    m.other = embed(MODELS["boosting"].fit(NUMBERS, WANTED_TOO), m.person[0].x)
    m.both = Reaches(m.other, "yes")
    listed = NUMBERS[(NUMBERS["b"] >= 1) & (MODELS["forest"].predict(NUMBERS) == "yes")]
    assert (MODELS["boosting"].predict(listed) == "yes").any()
    assert is_kept(m, ceopt.start(m))


def test_what_is_no_program_of_a_person_is_refused():
    with pytest.raises(InvalidTypeError, match="start needs a Pyomo model, but it got int"):
        ceopt.start(3)
    with pytest.raises(InvalidTypeError, match="start needs a model with a Factual block, but 'unknown' has none"):
        ceopt.start(pyo.ConcreteModel())
    m = program(MODELS["logistic"].fit(NUMBERS, WANTED))
    with pytest.raises(InvalidValueError, match=r"a row that person\[0\]\.x can become, but column 'b' gets 0"):
        ceopt.start(m, {"a": 1, "b": 0})
    with pytest.raises(InvalidValueError, match="seconds above zero, but time_limit_s is 0"):
        ceopt.start(m, time_limit_s=0)

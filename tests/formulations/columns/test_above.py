"""``x.above[name, value]``: strictly above, for numbers, levels, missing cells and codes, exact at float neighbours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt.formulations import Columns, Factual, embed, l1, predictors
from ceopt.solvers import solve
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError
from ceopt.solvers.registry import SOLVERS

SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("income", kind="continuous", lower=0.0, upper=9.0),
        ceopt.Feature("age", kind="integer", lower=18, upper=30),
        ceopt.Feature("grade", kind="ordinal", levels=("low", "mid", "top")),
        ceopt.Feature("rooms", kind="ordinal", levels=(1, 2, 4)),
        ceopt.Feature("owner", kind="binary", levels=("no", "yes")),
        ceopt.Feature("job", kind="categorical", levels=("a", "b")),
        ceopt.Feature("debt", kind="continuous", lower=0.0, upper=5.0, missing=True),
        ceopt.Feature("delay", kind="integer", lower=0, upper=9, codes={-9: "no record", 7: "other"}),
    ]
)
PERSON = {
    "income": 2.0, "age": 20, "grade": "mid", "rooms": 2, "owner": "no", "job": "a", "debt": math.nan, "delay": -9,
}  # fmt: skip


def block(**row: Any) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, PERSON | row)
    return m


def at(m: Any, expression: Any, **values: Any) -> float:
    m.x.place(SPACE.row(PERSON | values))
    return float(pyo.value(expression))


@pytest.mark.parametrize(
    ("name", "value", "values"),
    [
        ("income", 3.3, [0.0, math.nextafter(3.3, 0), 3.3, math.nextafter(3.3, 9), 9.0]),
        ("income", -1.0, [0.0, 9.0]),
        ("income", 9.0, [0.0, 9.0]),
        ("age", 21, [18, 20, 21, 22, 30]),
        ("age", 21.5, [18, 21, 22, 30]),
        ("rooms", 2, [1, 2, 4]),
        ("rooms", 2.5, [1, 2, 4]),
        ("rooms", 0, [1, 2, 4]),
        ("debt", 2.0, [0.0, 2.0, 2.5, 5.0]),
        ("delay", 4, [0, 4, 5, 6, 8, 9]),
    ],
)
@pytest.mark.parametrize("person", [{}, {"debt": 1.0, "delay": 3}, {"debt": 4.0, "delay": 8}])
def test_numbers_lie_strictly_above(name: str, value: float, values: list[float], person: dict[str, Any]) -> None:
    m = block(**person)
    above = m.x.above[name, value]
    for candidate in values:
        assert at(m, above, **{name: candidate}) == float(candidate > value)


@pytest.mark.parametrize("debt", [math.nan, 1.0, 4.0])
def test_a_missing_cell_and_a_code_lie_above_nothing(debt: float) -> None:
    m = block(debt=debt)
    above = m.x.above["debt", 2.0]
    if math.isnan(debt):
        assert at(m, above, debt=math.nan) == 0.0
    code = m.x.above["delay", -20]
    assert at(m, code, delay=-9) == 0.0
    assert at(m, code, delay=0) == 1.0


def test_levels_lie_above_by_their_order() -> None:
    m = block()
    for name, levels in (("grade", ("low", "mid", "top")), ("owner", ("no", "yes"))):
        for rank, level in enumerate(levels):
            above = m.x.above[name, level]
            assert [at(m, above, **{name: word}) for word in levels] == [float(k > rank) for k in range(len(levels))]


def test_the_program_takes_it_as_a_binary() -> None:
    m = block()
    m.rich = pyo.Constraint(expr=m.x.above["income", 3.3] == 1)
    m.least = pyo.Objective(expr=m.x.raw["income"])
    assert solve(m).status == "optimal"
    assert m.x.decode()["income"] == math.nextafter(3.3, 9.0)


def test_it_is_the_cut_of_the_tree_that_splits_there() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.uniform(0, 9, 80), "age": rng.integers(18, 31, 80)})
    space = ceopt.FeatureSpace.infer(frame, moves={"age": "any"})
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(
        frame, (np.sin(frame["income"]) + frame["age"] / 20 > 1.2).astype(int)
    )
    m = pyo.ConcreteModel()
    m.x = Factual(space, frame.iloc[0])
    m.p = embed(model, m.x)
    before = len(m.x.cut)
    read = predictors.read(model, space)
    pairs = [(name, left, right) for name, found in read.splits.items() for left, right in found]
    assert pairs
    for name, left, right in pairs:
        assert right == math.nextafter(left, math.inf)
        assert m.x.above[name, left] is not None
    assert len(m.x.cut) == before


def test_own_columns_have_it_too() -> None:
    m = pyo.ConcreteModel()
    m.income = pyo.Var(bounds=(0, 9))
    space = ceopt.FeatureSpace([SPACE["income"]])
    m.x = Columns(space, {"income": m.income})
    m.rich = pyo.Constraint(expr=m.x.above["income", 3.0] == 1)
    m.least = pyo.Objective(expr=m.income)
    assert solve(m).objective == pytest.approx(3.0, abs=1e-3)
    assert m.income.value > 3.0


def test_what_has_no_order_or_no_number_is_refused() -> None:
    m = block()
    with pytest.raises(InvalidTypeError, match="'job' is categorical"):
        m.x.above["job", "a"]
    with pytest.raises(InvalidTypeError, match="'income' is 'high'"):
        m.x.above["income", "high"]
    with pytest.raises(InvalidValueError, match="above"):
        m.x.above["income"]
    with pytest.raises(ceopt.CeoptError, match="grade"):
        m.x.above["grade", "none"]


@pytest.mark.parametrize("solver", ["highs", "scip", "gurobi"])
@pytest.mark.parametrize(
    ("row", "holds"),
    [
        (lambda x: x.above["income", 9.0] == 1, False),
        (lambda x: x.above["income", -1.0] == 1, True),
        (lambda x: x.raw["age"] >= 21, False),
        (lambda x: x.raw["age"] <= 20, True),
        (lambda x: x.is_level["job", "b"] == 1, False),
        (lambda x: x.above["age", 19] + x.is_level["job", "a"] == 2, True),
    ],
)
def test_a_column_that_cannot_move_makes_rows_like_any_other(solver: str, row: Any, holds: bool):
    if not SOLVERS[solver].is_licensed:
        pytest.skip(f"{solver} is not here")
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE.fix("age", "job"), PERSON)
    m.row = pyo.Constraint(expr=row(m.x))
    m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    result = solve(m, solver)
    assert result.status == ("optimal" if holds else "infeasible")

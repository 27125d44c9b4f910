"""Rows of a column are written once for a whole program, and again only when more is asked of the column later."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd
import pyomo.environ as pyo
import pytest
from rowtext import rows, text

from ceopt.formulations import Factual, embed, impose
from ceopt.formulations.columns import Numeric
from ceopt.formulations.constraints import AbstractRule, AllowedValues, IfThen, Linear, MaxChanges
from ceopt.formulations.costs import L0, L1, L2, Percentile
from ceopt.formulations.predictors import TreeEnsemble
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.recourse_program import recourse_program
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.solvers.errors import UnboundedFeatureError, UnknownNameError
from ceopt.solvers.manifest import Manifest

SPACE = FeatureSpace(
    [
        Feature("age", kind="integer", lower=18, upper=90),
        Feature("wage", kind="continuous", lower=0, upper=9),
        Feature("size", kind="ordinal", levels=("S", "M", "L")),
        Feature("job", kind="categorical", levels=(1, 2, 3)),
    ]
)
ROW = {"age": 35, "wage": 4.0, "size": "M", "job": 1}
TREES = [
    {"feature": 0, "threshold": 40.5, "left": {"value": -1.0}, "right": {"value": 1.0}},
    {"feature": 1, "threshold": 5.5, "left": {"value": -1.0}, "right": {"value": 1.0}},
]
RULES = [
    MaxChanges(2),
    Linear({"age": 1.0, "wage": 5.0}, "<=", 90.0),
    IfThen(("age", "changed"), ("wage", "changed")),
    AllowedValues({"wage": [1.0, 4.0, 6.0, 7.0]}),
]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the rows of each number were written."""
    count: Counter[str] = Counter()
    write = Numeric.write

    def counted(self: Numeric) -> None:
        count[self.name] += 1
        write(self)

    monkeypatch.setattr(Numeric, "write", counted)
    return count


@pytest.mark.parametrize("formulation", ["ordered", "misic", "leaf"])
@pytest.mark.parametrize("cost", [L0(), L1(), L0() + L1() + L2(squared=True)])
def test_a_program_writes_each_column_once(written: Counter[str], formulation: str, cost: Any) -> None:
    model = read(TreeEnsemble(TREES, n_inputs=4, labels=("no", "yes")), SPACE)
    recourse_program(model, ROW, target="yes", cost=cost, rules=RULES, formulation=formulation)
    assert written == {"age": 1, "wage": 1}


def test_nothing_new_writes_nothing(written: Counter[str]) -> None:
    model = read(TreeEnsemble(TREES, n_inputs=4, labels=("no", "yes")), SPACE)
    x = recourse_program(model, ROW, target="yes", cost=L0(), rules=RULES).x
    before = rows(x)
    with x.collecting():
        assert x.raw["age"] is not None
        assert x.changed["age"] is not None
        assert x.coordinate("wage").at_most(4.0).terms
        x.coordinate("wage").moves()
    assert written == {"age": 1, "wage": 1}
    assert rows(x) == before


def test_what_is_asked_later_joins_the_rows(written: Counter[str]) -> None:
    """A program that is built in one go has the rows of one that grows, whichever was asked first."""
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, ROW)
    m.p = embed(TreeEnsemble(TREES, n_inputs=4), m.x)
    m.cost = pyo.Objective(expr=L0().build(m.x))
    assert text(m.x.changed["age"]) == "+1 cut[age,'40']"
    m.rule = impose(RULES[1], m.x)
    assert text(m.x.changed["age"]) == "+1 moved[age]"
    assert written["age"] > 1

    other = pyo.ConcreteModel()
    other.x = Factual(SPACE, ROW)
    with other.x.collecting():
        other.rule = impose(RULES[1], other.x)
        assert other.x.changed["age"] is not None
        other.cost = pyo.Objective(expr=L0().build(other.x))
        other.p = embed(TreeEnsemble(TREES, n_inputs=4), other.x)
        assert rows(other.x) == rows(Factual(SPACE, ROW))
    assert rows(other) == rows(m)
    assert text(other.cost.expr) == text(m.cost.expr)


def test_a_jump_is_cut_where_another_part_reads_the_value() -> None:
    """The cost asks for its cuts when it is known that the value is read, not when it is built."""
    data = pd.DataFrame([{"age": age, "wage": 4.0, "size": "M", "job": 1} for age in (20, 30, 40, 50)])
    cost = Percentile("total_log", data)
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, ROW)
    with m.x.collecting():
        m.cost = pyo.Objective(expr=cost.build(m.x))
        assert m.x.raw["age"] is not None
        assert not m.x.numeric("age").cells.keys
    assert [right for _, right in m.x.numeric("age").cells.keys] == [20.0, 30.0, 40.0, 50.0]
    assert rows(m.x, "left_end") == [
        "-2 cut[age,'19'] -10 cut[age,'29'] -10 cut[age,'39'] -10 cut[age,'49'] +1 x[age] >= 18"
    ]


def test_bounds_may_come_after_what_needs_them() -> None:
    """Within one program the order of statements does not count; alone, a missing bound is refused where it is met."""
    space = FeatureSpace([Feature("a", kind="continuous")])
    tree = {"feature": 0, "threshold": 3.5, "left": {"value": -1.0}, "right": {"value": 1.0}}
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"a": 2.0})
    with m.x.collecting():
        m.p = embed(TreeEnsemble([tree], n_inputs=1), m.x)
        assert m.x.raw["a"] is not None
        m.rule = impose(AllowedValues({"a": [1.0, 2.0, 5.0]}), m.x)
    assert (m.x.x["a"].lb, m.x.x["a"].ub) == (1.0, 5.0)

    alone = pyo.ConcreteModel()
    alone.x = Factual(space, {"a": 2.0})
    alone.p = embed(TreeEnsemble([tree], n_inputs=1), alone.x)
    with pytest.raises(UnboundedFeatureError, match="a link between cuts and a coordinate needs finite bounds"):
        alone.x.raw["a"]


class AsksAndFails(AbstractRule):
    """A rule that asks for one column, and then for one that there is not."""

    manifest = Manifest(title="fails", formula="")

    def check(self, space: FeatureSpace) -> None:
        del space

    def build(self, block: Any, x: Factual) -> None:
        del block
        assert x.raw["age"] is not None
        x.coordinate("height")

    def violation(self, space: Any, factual: Any, point: Any) -> float:
        del space, factual, point
        return 0.0

    def sentence(self) -> str:
        return "fails"


def test_what_was_asked_before_an_error_is_not_lost() -> None:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, ROW)
    m.p = embed(TreeEnsemble(TREES, n_inputs=4), m.x)
    with pytest.raises(UnknownNameError, match="column"):
        impose(AsksAndFails(), m.x)
    assert m.x.raw["wage"] is not None
    assert len(rows(m.x, "left_end")) == 2

"""What only some rules can do: each ability is found by its members, and half of one is refused."""

from __future__ import annotations

from typing import Any, ClassVar

import pyomo.environ as pyo
import pytest

import ceopt
from ceopt.formulations.constraints import RULES, AbstractRule
from ceopt.formulations.constraints.rule import (
    AddsToCost,
    ChangesCharges,
    CountsChanges,
    HasClusters,
    JoinsChanges,
    LearnsFromModel,
    LearnsFromRows,
    MendsPoints,
    NamesActions,
    NeedsRows,
    WidensItself,
)
from ceopt.formulations.predictors import Affine
from ceopt.solvers.manifest import Manifest

#: The abilities of ceopt's own rules; all others have none.
ABILITIES = {
    "AllowedValues": {MendsPoints},
    "Causal": {ChangesCharges, MendsPoints, NamesActions},
    "ExactlyOne": {ChangesCharges, JoinsChanges, MendsPoints},
    "MaxChanges": {CountsChanges},
    "Hull": {LearnsFromRows, NeedsRows, AddsToCost, HasClusters, WidensItself},
    "RobustValidity": {LearnsFromModel},
}
EVERY = (
    AddsToCost, ChangesCharges, CountsChanges, HasClusters, JoinsChanges, LearnsFromModel, LearnsFromRows, MendsPoints,
    NamesActions, NeedsRows, WidensItself,
)  # fmt: skip
SPACE = ceopt.FeatureSpace([ceopt.Feature("a", kind="integer", lower=0, upper=9)])
MODEL = Affine([1.0], -3.5, labels=("no", "yes"))


def members(ability: Any) -> set[str]:
    found: set[str] = set()
    for base in ability.__mro__:
        if getattr(base, "_is_protocol", False):
            found |= {name for name in (*vars(base), *vars(base).get("__annotations__", {})) if name[0] != "_"}
    return found


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_the_abilities_that_are_known_of_it(name):
    rule = RULES[name]
    fields = {field for base in rule.__mro__ for field in vars(base).get("__annotations__", {})}
    has = {ability for ability in EVERY if all(hasattr(rule, m) or m in fields for m in members(ability))}
    assert has == ABILITIES.get(name, set())


class AtLeastFour(AbstractRule):
    """a is at least 4."""

    manifest: ClassVar[Manifest] = Manifest(title="at least four", formula="a >= 4", rule="AtLeastFour")

    def check(self, space: Any) -> None:
        pass

    def build(self, block: Any, x: Any) -> None:
        block.low = pyo.Constraint(expr=x.raw["a"] >= 4)

    def violation(self, space: Any, factual: Any, point: Any) -> float:
        del space, factual
        return max(4.0 - point["a"], 0.0)

    def sentence(self) -> str:
        return "a is at least 4"


@pytest.mark.parametrize(
    ("has", "lacks"),
    [("lacks_rows", "fitted"), ("surcharge", "charges_more"), ("charged", "unpriced"), ("mended", "mends"),
     ("cluster_in", "clusters")],
)  # fmt: skip
def test_half_an_ability_is_refused_by_name(has, lacks):
    half = type("Half", (AtLeastFour,), {has: lambda *_: None})
    with pytest.raises(ceopt.CeoptError, match=f"A rule needs {lacks} beside {has}, but Half has {has} alone"):
        ceopt.explain(MODEL, {"a": 0}, SPACE, target="yes", constraints=[half()])


def test_a_rule_may_learn_from_rows_and_lack_none():
    learned = []

    class Learner(AtLeastFour):
        def fitted(self, space: Any, rows: Any) -> Any:
            del space
            learned.append(rows().tolist())
            return self

    people = SPACE.frame([{"a": 2.0}, {"a": 7.0}])
    result = ceopt.explain(MODEL, {"a": 0}, SPACE, target="yes", constraints=[Learner()], data=people)
    assert result[0].values["a"] == 4
    assert learned == [[[7.0]]]

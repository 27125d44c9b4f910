"""What only some rules do is a method that they override, and half of an ability is refused by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import pyomo.environ as pyo
import pytest

import ceopt
from ceopt.formulations import Factual, impose
from ceopt.formulations.constraints import RULES, AbstractElastic, AbstractRule
from ceopt.formulations.constraints.rule import overrides
from ceopt.formulations.predictors import Affine
from ceopt.solvers import model_summary
from ceopt.solvers.manifest import Manifest

#: What ceopt's own rules do beside what all do.
OWN = {
    "AllowedRows": {"reads"},
    "AllowedTransitions": {"reads"},
    "IfThen": {"reads"},
    "Linear": {"reads", "needs_amount"},
    "AllowedValues": {"reads", "keeps", "mends", "mended"},
    "Causal": {"needs_amount", "unpriced", "charged", "mends", "mended", "actions"},
    "ExactlyOne": {"reads", "needs_amount", "unpriced", "charged", "changes_together", "mends", "mended"},
    "MaxChanges": {"keeps", "counting"},
    "NotAnOutlier": {"stand_ins"},
    "MaxMove": {"reads", "keeps", "mends", "mended"},
    "Product": {"reads", "needs_amount", "off_today", "mends", "mended"},
    "Ratio": {"reads", "needs_amount", "off_today", "mends", "mended"},
    "Hull": {
        "judge", "first_points", "with_points",
        "fitted", "lacks_rows", "charges_more", "surcharge", "clusters", "cluster_in", "distances",
    },
    "RobustToShift": {"about", "aimed"},
    "RobustValidity": {"about"},
    "Region": {
        "about", "aimed", "stated", "counterexample", "values_beside", "is_met", "with_cuts", "stand_ins",
        "implies_target",
    },
}  # fmt: skip
WIDEN_THEMSELVES = {"Hull"}
EVERY = (
    "reads", "needs_amount", "keeps", "judge",
    "off_today", "lacks_rows", "fitted", "about", "aimed", "stated", "counterexample", "values_beside", "is_met",
    "with_cuts", "first_points", "with_points", "stand_ins", "implies_target", "charges_more", "surcharge", "unpriced",
    "charged", "actions",
    "changes_together", "counting", "mends", "mended", "clusters", "cluster_in", "distances",
)  # fmt: skip
SPACE = ceopt.FeatureSpace([ceopt.Feature("a", kind="integer", lower=0, upper=9)])
MODEL = Affine([1.0], -3.5, labels=("no", "yes"))


@pytest.mark.parametrize("name", OWN)
def test_a_rule_has_the_abilities_that_are_known_of_it(name):
    kind = RULES[name]
    rule = object.__new__(kind)
    assert {member for member in EVERY if overrides(rule, member)} == OWN[name]
    widens = issubclass(kind, AbstractElastic) and hasattr(kind, "enlarge") and hasattr(kind, "radius")
    assert widens == (name in WIDEN_THEMSELVES)


def test_every_member_that_a_rule_may_override_is_looked_at():
    needed = {"manifest", "check", "build", "violation", "missed", "sentence"}
    flags = {name for name, kind in AbstractRule.__annotations__.items() if "ClassVar[bool]" in kind}
    members = {*vars(AbstractRule), *AbstractRule.__annotations__}
    assert {name for name in members if name[0] != "_"} - needed - flags == set(EVERY)


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


@pytest.mark.parametrize("member", ["lacks_rows", "charges_more", "mends", "clusters"])
def test_an_error_inside_a_property_of_a_rule_is_raised(member):
    """It does not become the default, by which the rule would need no rows, cost nothing and repair nothing."""
    broken = type("Broken", (AtLeastFour,), {member: property(lambda rule: rule.misspelt)})
    with pytest.raises(AttributeError, match="'Broken' object has no attribute 'misspelt'"):
        getattr(broken(), member)
    assert not getattr(AtLeastFour(), member)


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


class Least(AbstractRule):
    """The a is at least 4."""

    def check(self, space: Any) -> None:
        pass

    def build(self, block: Any, x: Any) -> None:
        block.low = pyo.Constraint(expr=x.raw["a"] >= 4)

    def violation(self, space: Any, factual: Any, point: Any) -> float:
        del space, factual
        return max(4.0 - point["a"], 0.0)


@dataclass(frozen=True)
class AtLeast(Least):
    """A number is at least so much."""

    least: float
    name: str | None = None


def test_a_rule_of_three_methods_is_a_rule():
    result = ceopt.explain(MODEL, {"a": 0}, SPACE, target="yes", constraints=[Least()])
    assert dict(result[0].values) == {"a": 4}
    assert Least().sentence() == "The a is at least 4"
    assert AtLeast(4.0).sentence() == "A number is at least so much (least=4.0)"
    model = pyo.ConcreteModel()
    model.x = Factual(SPACE, {"a": 0})
    model.rule = impose(Least(), model.x)
    assert "The a is at least 4" in model_summary(model).to_string()
    assert Least.manifest == Least().manifest == Manifest(title="The a is at least 4", formula="", rule="Least")


def test_every_answer_is_held_against_the_rules_own_numbers():
    """Rows that let too much through are found: nothing stands in for ``violation``."""

    class Wrong(Least):
        def build(self, block: Any, x: Any) -> None:
            block.low = pyo.Constraint(expr=x.raw["a"] >= 1)

    result = ceopt.explain(MODEL, {"a": 0}, SPACE, target="yes", constraints=[Wrong()])
    assert all(answer.values["a"] >= 4 for answer in result)

    without = {"check": Least.check, "build": Least.build}
    with pytest.raises(TypeError, match="violation"):
        type("Unchecked", (AbstractRule,), without)()


def test_a_manifest_that_is_none_is_refused():
    wrong = type("Wrong", (Least,), {"manifest": "at least four"})
    with pytest.raises(ceopt.CeoptError, match=re.escape("A rule needs a manifest, which says what it states")):
        ceopt.explain(MODEL, {"a": 0}, SPACE, target="yes", constraints=[wrong()])


def test_a_rule_may_have_fields_of_the_names_that_others_use():
    @dataclass(frozen=True)
    class Own(Least):
        clusters: tuple[str, ...]
        mends: bool
        lacks_rows: bool
        charges_more: bool
        columns: tuple[str, ...]
        radius: float

        def fitted(self, space: Any, rows: Any) -> Any:
            del space, rows
            return self

        def mended(self, space: Any, factual: Any, points: Any) -> Any:
            del space, factual
            return points

        def surcharge(self, space: Any, factual: Any, point: Any) -> float:
            del space, factual, point
            return 0.0

    with pytest.raises(TypeError, match="charges_more"):
        Own(("b",), False, False)
    rule = Own(("b",), False, False, False, ("a",), 1.0)
    fitted = Own.fitted
    del Own.fitted
    with pytest.raises(ceopt.CeoptError, match="A rule needs fitted beside lacks_rows"):
        ceopt.explain(MODEL, {"a": 0}, SPACE, target="yes", constraints=[rule])
    Own.fitted = fitted
    result = ceopt.explain(MODEL, {"a": 0}, SPACE, target="yes", constraints=[rule])
    assert (result[0].values["a"], result[0].cluster) == (4, None)

"""A rule from nothing: once it is listed, the battery finds its faults (docs/how_to/adding_a_rule.md)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, final

import numpy as np
import pyomo.environ as pyo
import pytest
from rules import battery, found, objects
from rules.found import column
from rules.small import SPACE

from ceopt.formulations.constraints import RULES, AbstractRule
from ceopt.solvers.errors import UnknownNameError
from ceopt.solvers.manifest import Manifest


@final
@dataclass(frozen=True, slots=True)
class Together(AbstractRule):
    """Two columns change together, or neither does: levels a and b, z_a = z_b.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from rules.small import ROW, SPACE
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(SPACE, ROW)
    >>> m.rule = impose(Together("job", "owner"), m.x)
    >>> print(m.rule.both.expr)
    (1.0 - x.level[job,30])  ==  (x.level[owner,True])
    """

    one: str
    other: str
    #: A fault to put in, for the battery to find.
    fault: str = ""
    name: str | None = None
    manifest: ClassVar[Manifest] = Manifest(title="two columns together", formula="z_a = z_b", rule="Together")

    def check(self, space: Any) -> None:
        for name in (self.one, self.other):
            if name not in space:
                raise UnknownNameError.among("Together", "column", name, space.names)

    def build(self, block: Any, x: Any) -> None:
        one, other = x.changed[self.one], x.changed[self.other]
        match self.fault:
            case "row is missing":
                block.both = pyo.Constraint(pyo.Any)
            case "wrong sense":
                block.both = pyo.Constraint(expr=one <= other)
            case "wrong sign":
                block.both = pyo.Constraint(expr=one + other == 0.0)
            case "touches another block":
                x.extra = pyo.Constraint(expr=one == other)
            case _:
                block.both = pyo.Constraint(expr=one == other)

    def violation(self, space: Any, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        assert factual is not None
        assert factual.keys() == point.keys() == {*space.names}
        moved = [point[name] != factual[name] for name in (self.one, self.other)]
        if self.fault == "check is too strict":
            return float(any(moved))
        return float(moved[0] != moved[1])

    def sentence(self) -> str:
        return "" if self.fault == "says nothing" else f"{self.one} and {self.other} change together"


def examples() -> list[Any]:
    return [Together("job", "owner"), Together("owner", "size")]


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    moved = [column(space, points, n) != column(space, factual[None, :], n)[0] for n in (rule.one, rule.other)]
    return moved[0] == moved[1]


@pytest.fixture
def listed(monkeypatch: Any) -> None:
    monkeypatch.setitem(RULES, "Together", Together)
    monkeypatch.setitem(found.MADE_UP, "Together", SimpleNamespace(examples=examples, keeps=keeps))


def test_a_rule_without_its_independent_half_is_told_what_to_add(monkeypatch: Any) -> None:
    monkeypatch.setitem(RULES, "Together", Together)
    with pytest.raises(pytest.fail.Exception, match=r"add tests/rules/together\.py with examples\(\) and keeps\("):
        found.half_of("Together")
    assert "Together" not in {name for name, _ in found.halves()}


def test_the_battery_runs_on_a_new_rule(listed: None, tmp_path: Any) -> None:
    rules = [rule for name, rule in found.halves() if name == "Together"]
    assert rules == examples()
    for rule in rules:
        battery.check_points(rule)
        for name in battery.MODELS:
            battery.check_optimum([rule], name)
        for formulation in ("leaf", "misic"):
            battery.check_optimum([rule], "trees", formulation)
        battery.check_files(rule, "trees", tmp_path)
        battery.check_own_model(rule)
        objects.check_object(rule)
        battery.check_answers(rule, "trees")
    objects.check_documentation(Together)


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("fault", "check", "says"),
    [
        ("row is missing", battery.check_points, "rows of Together"),
        ("wrong sense", battery.check_points, "rows of Together"),
        ("wrong sign", battery.check_points, "rows of Together"),
        ("check is too strict", battery.check_points, "violation of Together"),
        ("touches another block", battery.check_own_model, "extra"),
        ("wrong sense", lambda rule: battery.check_optimum([rule], "linear"), "enumeration says"),
        ("row is missing", battery.check_own_model, "enumeration says"),
        ("wrong sign", lambda rule: battery.check_answers(rule, "trees"), "enumeration says"),
        ("says nothing", objects.check_object, "no sentence"),
    ],
)
def test_the_battery_finds_what_is_wrong_with_a_rule(listed: None, fault: str, check: Any, says: str) -> None:
    rule = dataclasses.replace(examples()[0], fault=fault)
    with pytest.raises(AssertionError, match=says):
        check(rule)


def test_the_new_rule_refuses_an_unknown_column() -> None:
    with pytest.raises(UnknownNameError, match="jop"):
        Together("jop", "owner").check(SPACE)


@pytest.mark.long
def test_the_half_is_one_point_at_a_time_the_same_as_many(listed: None) -> None:
    for name, rule in found.halves():
        every = found.half_of(name).keeps(rule, SPACE, battery.FACTUAL, battery.POINTS)
        some = [
            found.half_of(name).keeps(rule, SPACE, battery.FACTUAL, battery.POINTS[k : k + 1])[0]
            for k in range(0, 162, 23)
        ]
        assert every[::23].tolist() == np.array(some).tolist()

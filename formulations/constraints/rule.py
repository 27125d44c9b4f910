"""Rules: rows over a person's block, a check in plain numbers apart from them, and a sentence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.columns.factual import Factual, require_factual
from ceopt.formulations.constraints.abilities import DataRows, Floats, Point, half_ability
from ceopt.solvers.checks import ListOf, OrNone, Refusal, Text
from ceopt.solvers.errors import InvalidTypeError
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["AbstractElastic", "AbstractRule", "DataRows", "Floats", "Point", "impose", "parse_rules", "rule_name"]

#: What a rule's name may be: the user's, in exports and reports, or None.
RULE_NAME = OrNone(Text(Refusal("text as {name}", "Write it as text, or leave it out.", error=InvalidTypeError)))
_RULES = ListOf(Refusal("a list of rules", "Correct it.", error=InvalidTypeError))


class AbstractRule(ABC):
    """A rule that every answer must keep.

    A new rule is one file: a frozen dataclass with the abstract methods, listed in ``formulations.constraints.RULES``.
    What only some rules can do (learn from data, add to the cost, mend a point, have clusters, widen themselves) stands
    in the protocols of ``abilities.py``: a rule has an ability if it has its members.
    """

    __slots__ = ()

    #: The program and its source, as ``model_summary`` shows them.
    manifest: ClassVar[Manifest]
    #: Whether the check needs the factual.
    needs_factual: ClassVar[bool] = True
    #: Whether the check takes milliseconds: the search for a start then asks for few.
    slow: ClassVar[bool] = False
    #: Whether the rows leave a finite part of columns without bounds, which then serve the big-M of the rules after it.
    gives_bounds: ClassVar[bool] = False

    @abstractmethod
    def check(self, space: FeatureSpace) -> None:
        """Refuse a rule that does not fit the space, before any work starts."""

    @abstractmethod
    def build(self, block: Any, x: Factual) -> None:
        """Fill the empty ``block`` with the rule's rows over ``x``."""

    @abstractmethod
    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return by how much a point (coordinates by column) breaks the rule, in its own unit; 0 if it is kept."""

    @abstractmethod
    def sentence(self) -> str:
        """Return the rule in words and numbers."""


class AbstractElastic(AbstractRule):
    """A rule that can be widened by an amount, in the unit in which :meth:`violation` counts."""

    __slots__ = ()

    @abstractmethod
    def relax(self, block: Any, x: Factual) -> Any:
        """Fill the empty ``block`` with the rows of the widened rule; return the amount, at least 0, as expression."""

    @abstractmethod
    def widened(self, by: float) -> Self:
        """Return the rule that is wider by an amount."""


def rule_name(rule: AbstractRule, position: int) -> str:
    """Return the name that the rule bears in exports and reports: the user's, or its class and place."""
    given: str | None = getattr(rule, "name", None)
    return given or f"{type(rule).__name__}_{position + 1}"


def impose(rule: AbstractRule, x: Factual) -> Any:
    """Return a block that imposes a rule on a person's block: ``m.few = impose(MaxChanges(3), m.x)``."""
    parse_rules((rule,), x.space)
    block = ScalarBlock(concrete=True)
    describe(block, rule.manifest)
    rule.build(block, require_factual(type(rule).__name__, x))
    return block


def parse_rules(rules: Any, space: FeatureSpace) -> tuple[AbstractRule, ...]:
    """Check a sequence of rules against the space; a single rule may stand for itself."""
    given = (rules,) if isinstance(rules, AbstractRule) else _RULES.require("constraints", "constraints", rules)
    names: set[str] = set()
    for position, rule in enumerate(given):
        if not isinstance(rule, AbstractRule):
            raise InvalidTypeError(
                "constraints",
                "rules",
                f"one is {rule!r}",
                "Pass objects such as MaxChanges(3) or Linear({...}, '<=', 1).",
            )
        if not isinstance(getattr(rule, "manifest", None), Manifest):
            raise InvalidTypeError(
                "A rule", "a manifest, which says what it states", f"{type(rule).__name__} has none",
                "Give the class one: manifest: ClassVar[Manifest] = Manifest(title=..., formula=...).",
            )  # fmt: skip
        half = half_ability(rule)
        if half is not None:
            has, lacks = half
            raise InvalidTypeError(
                "A rule", f"{lacks} beside {has}", f"{type(rule).__name__} has {has} alone", f"Give it {lacks} as well."
            )
        RULE_NAME.require(type(rule).__name__, "name", getattr(rule, "name", None))
        rule.check(space)
        name = rule_name(rule, position)
        if name in names:
            raise InvalidTypeError("constraints", "names that differ", f"two rules are {name!r}", "Rename one of them.")
        names.add(name)
    return given

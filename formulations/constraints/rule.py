"""What a rule is: rows over a person's block, a check in plain numbers apart from them, and a sentence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.factual import Factual, require_factual
from ceopt.solvers.errors import InvalidTypeError
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["AbstractRule", "impose", "parse_rules", "rule_name"]


class AbstractRule(ABC):
    """A rule that every answer must keep.

    A new rule is one file: a frozen dataclass with these methods, listed in ``formulations.constraints.RULES``.
    """

    __slots__ = ()

    #: The program and its source, as ``model_summary`` shows them.
    manifest: ClassVar[Manifest]
    #: Whether the check needs the factual.
    needs_factual: ClassVar[bool] = True

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
    listed = (rules,) if isinstance(rules, AbstractRule) else tuple(rules)
    names: set[str] = set()
    for position, rule in enumerate(listed):
        if not isinstance(rule, AbstractRule):
            raise InvalidTypeError(
                "constraints",
                "rules",
                f"one is {rule!r}",
                "Pass objects such as MaxChanges(3) or Linear({...}, '<=', 1).",
            )
        rule.check(space)
        name = rule_name(rule, position)
        if name in names:
            raise InvalidTypeError("constraints", "names that differ", f"two rules are {name!r}", "Rename one of them.")
        names.add(name)
    return listed

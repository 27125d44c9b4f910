"""From which level a column may go to which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from ceopt.formulations.constraints.condition import ValueList
from ceopt.formulations.constraints.rule import RULE_NAME, AbstractRule
from ceopt.formulations.linear_form import Rows
from ceopt.solvers.checks import MappingOf, Refusal, check_fields
from ceopt.solvers.errors import InvalidTypeError, UnknownNameError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["AllowedTransitions"]

_NO_MAPPING = Refusal("a mapping from levels to levels", 'Write {"rent": ["own"]}.', error=InvalidTypeError)
_NO_TRANSITION = Refusal(
    "a transition",
    "Name one, or make the column immutable: space.update(name, mutable=False).",
    "{name} is empty",
)
_CHECKS = {
    "name": RULE_NAME,
    "transitions": MappingOf(_NO_MAPPING, ValueList(), empty=_NO_TRANSITION, entry="level {key}"),
}


@final
@dataclass(frozen=True, slots=True)
class AllowedTransitions(AbstractRule):
    r"""A column of levels stays where it is, or goes to a level that is listed for the factual's.

    .. math:: \sum_{c \notin T(c^0) \cup \{c^0\}} u_c = 0

    ====== ========================= ===================================================
    symbol component                 meaning
    ====== ========================= ===================================================
    c^0    ``x.point``               the factual's level
    T      ``transitions``           level -> levels that it may become
    u      ``x.level, x.at_least``   1 where the column takes level c
    ====== ========================= ===================================================

    One row. Exact. A level that is no key, or has an empty list, may only stay.

    Parameters
    ----------
    column
        A categorical, ordinal or binary column.
    transitions
        Level -> levels.
    name
        Name in exports and reports.

    Raises
    ------
    UnknownNameError
        A column that does not exist.
    InvalidTypeError
        A column of numbers; no mapping, or no list.
    InvalidValueError
        No transition, or one from or to a level that the column does not have.

    References
    ----------
    Maragno, Roeber & Birbil (2022), (6): actionability.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.constraints import AllowedTransitions
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("home", kind="categorical", levels=("rent", "own", "free", "none"))])
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"home": "rent"})
    >>> m.move = impose(AllowedTransitions("home", {"rent": ["own"], "none": ["rent", "free"]}), m.x)
    >>> print(m.move.barred["home"].expr)
    x.level[home,free] + x.level[home,none]  ==  0.0
    """

    column: str
    transitions: Mapping[Any, Any]
    name: str | None = None
    manifest: ClassVar[Manifest] = Manifest(
        title="transitions between levels",
        formula="sum of the levels not listed for the factual's = 0",
        reference="Maragno, Roeber & Birbil 2022, (6)",
        rule="AllowedTransitions",
        features={"barred": 0},
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "transitions", check_fields(self, _CHECKS)["transitions"])

    def check(self, space: FeatureSpace) -> None:
        """Refuse an unknown column or level, and a column of numbers."""
        if self.column not in space:
            raise UnknownNameError.among("AllowedTransitions", "column", self.column, space.names)
        feature = space[self.column]
        if not feature.is_finite:
            raise InvalidTypeError(
                "AllowedTransitions", "a column with levels", f"column {self.column!r} is {feature.kind}",
                "Use AllowedValues, a direction or bounds.",
            )  # fmt: skip
        for level, to in self.transitions.items():
            for each in (level, *to):
                feature.rank(each)

    def build(self, block: Any, x: Factual) -> None:
        """Add the row ``barred``."""
        at = x.coordinate(self.column)
        rank = {}
        for levels in self.transitions.items():
            for level in (levels[0], *levels[1]):
                rank[level] = at.feature.rank(level)
        reached = set()
        for level, to in self.transitions.items():
            if rank[level] == at.x0:
                for c in to:
                    reached.add(rank[c])
        barred = set(range(len(at.feature.levels))) - reached - {int(at.x0)}
        Rows(block, "barred").add(self.column, at.indicator(barred), lower=0.0, upper=0.0)

    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return 1 where the column takes a level that is not listed."""
        assert factual is not None  # noqa: S101 - needs_factual
        levels = space[self.column].levels
        before = levels[int(factual[self.column])]
        after = levels[int(point[self.column])]
        return 0.0 if before == after or after in self.transitions.get(before, ()) else 1.0

    def sentence(self) -> str:
        """Return the rule in words."""
        ways = (f"{level!r} to {' or '.join(map(repr, to))}" for level, to in self.transitions.items() if to)
        if any(self.transitions.values()):
            return f"{self.column} stays, or goes from {', '.join(ways)}"
        return f"{self.column} stays"

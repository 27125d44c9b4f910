"""Rules: rows over a person's block, a check in plain numbers apart from them, and a sentence.

What only some rules can do (learn from data, add to the cost, mend a point, have clusters, widen themselves) stands in
small protocols, its *abilities*: a rule has one if it defines that protocol's members. The functions beside each
protocol ask any rule, and give what holds for a rule without the ability.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    Protocol,
    Self,
    TypeAlias,
    TypeGuard,
    TypeVar,
    cast,
    final,
    runtime_checkable,
)

import numpy as np
from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.columns import Price
from ceopt.formulations.columns.columns_block import AbstractColumns, Factual, require_factual
from ceopt.formulations.costs.base import AbstractCost, Floats, Sum
from ceopt.formulations.digits import digits
from ceopt.solvers.checks import Choice, ListOf, OrNone, Refusal, Text
from ceopt.solvers.errors import InvalidTypeError
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.space import FeatureSpace

__all__ = [
    "BEYOND",
    "AbstractElastic",
    "AbstractRule",
    "AddsToCost",
    "Beyond",
    "ChangesCharges",
    "CountsChanges",
    "DataRows",
    "Floats",
    "HasClusters",
    "JoinsChanges",
    "LearnsFromModel",
    "LearnsFromRows",
    "MendsPoints",
    "NamesActions",
    "NeedsRows",
    "Point",
    "RuleCharges",
    "WidensItself",
    "about_model",
    "actions_under",
    "adds_to_cost",
    "charged_by",
    "charged_points",
    "cluster_of",
    "component_name",
    "fitted_to",
    "given_up",
    "half_ability",
    "has_clusters",
    "has_say_in_cost",
    "impose",
    "is_learned",
    "lacks_rows",
    "mended_points",
    "mends_points",
    "nearest_cluster",
    "no_further_words",
    "parse_rules",
    "rule_name",
    "surcharge_of",
    "together_by",
    "unpriced_columns",
    "widens_itself",
]

# ==== Rules: rows over a person's block, a check in plain numbers apart from them, and a sentence =====================

#: Coordinates by column.
Point: TypeAlias = Mapping[str, float]
#: Gives the rows of the data that are in the target, as coordinates (n, d), or refuses where there is no data.
DataRows: TypeAlias = Callable[[], Floats]
Rule = TypeVar("Rule")
Ability = TypeVar("Ability")
#: Whether the rules of a class have an ability: Python takes ten microseconds to see that an object lacks a protocol.
_KNOWN: Final[dict[tuple[type, Any], bool]] = {}

# ---- what every rule says, and how rules become rows -----------------------------------------------------------------
#: What a rule's name may be: the user's, in exports and reports, or None.
RULE_NAME = OrNone(Text(Refusal("text as {name}", "Write it as text, or leave it out.", error=InvalidTypeError)))
#: What a rule asks of a person who breaks it today: to meet it, or not to go further than they are.
Beyond: TypeAlias = Literal["meet", "no_further"]
BEYOND = Choice(("meet", "no_further"))
_RULES = ListOf(Refusal("a list of rules", "Correct it.", error=InvalidTypeError))


class AbstractRule(ABC):
    """A rule that every answer must keep.

    A rule of your own is a frozen dataclass with a ``manifest`` and the abstract methods. One of ceopt's is a file, and
    is listed in ``formulations.constraints.RULES``, exported by ``ceopt`` and said in ``ceopt/words/sentences.py``.
    What only some rules can do stands in the protocols below: a rule has an ability if it defines that protocol's
    members.
    """

    __slots__ = ()

    #: The program and its source, as ``model_summary`` shows them.
    manifest: ClassVar[Manifest]
    #: Whether :meth:`violation` needs the factual.
    needs_factual: ClassVar[bool] = True
    #: Whether :meth:`build` takes the caller's own variables (``Columns``) as well as a person's block.
    takes_columns: ClassVar[bool] = False
    #: Whether :meth:`violation` takes milliseconds: the search for a start then asks for few.
    slow: ClassVar[bool] = False
    #: Whether its rows keep columns without bounds within finite ones, which rules after it may use as big-M.
    gives_bounds: ClassVar[bool] = False

    @abstractmethod
    def check(self, space: FeatureSpace) -> None:
        """Refuse arguments of the rule that do not fit the space, before any work starts; no point is checked here."""

    @abstractmethod
    def build(self, block: Any, x: Factual) -> None:
        """Fill the empty ``block`` with the rule's rows over ``x``."""

    @abstractmethod
    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return by how much a point (coordinates by column) breaks the rule, in its own unit; 0 if it is kept."""

    def missed(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return by how much a point misses the rule where what a solver leaves is not passed over."""
        return self.violation(space, factual, point)

    @abstractmethod
    def sentence(self) -> str:
        """Return the rule in words and numbers."""


class AbstractElastic(AbstractRule):
    """A rule that can be widened by an amount, in the unit in which ``violation`` counts."""

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


def component_name(block: Any, name: str) -> str:
    """Return the name that a rule's rows bear in a block: its own, with ``_`` behind it where Pyomo has that name.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> component_name(pyo.Block(concrete=True), "income"), component_name(pyo.Block(concrete=True), "values")
    ('income', 'values_')
    """
    while hasattr(block, name):
        name += "_"
    return name


def no_further_words(further: float = 0.0) -> str:
    """Return what the sentence of a rule with ``beyond="no_further"`` ends with."""
    if further:
        return f", or at most {digits(further)} further from it than today"
    return ", or no further from it than today"


def impose(rule: AbstractRule, x: AbstractColumns) -> Any:
    """Return a block that imposes a rule on a person's block: ``m.few = impose(MaxChanges(3), m.x)``.

    A rule about the answer alone (``Hull``, ``Linear``, ``AllowedValues``, ``AllowedRows``) holds on the caller's own
    variables too: ``m.near = impose(Hull(X), m.sales.columns)`` beside ``m.sales = embed(...)``.
    """
    if not isinstance(x, AbstractColumns):
        raise InvalidTypeError(
            "impose", "a Factual or a Columns block", f"x is {type(x).__name__}",
            "Pass m.x = Factual(space, row), or m.sales.columns of m.sales = embed(model, {column: Var}).",
        )  # fmt: skip
    parse_rules((rule,), x.space)
    block = ScalarBlock(concrete=True)
    describe(block, rule.manifest)
    columns: Any = x if rule.takes_columns else require_factual(type(rule).__name__, x)
    with columns.collecting():
        rule.build(block, columns)
    return block


def parse_rules(rules: Any, space: FeatureSpace) -> tuple[AbstractRule, ...]:
    """Check a sequence of rules against the space; a single rule may stand for itself.

    A rule that counts changes comes back as one that knows which columns change together by the others.
    """
    if isinstance(rules, AbstractRule):
        given = (rules,)
    else:
        given = _RULES.require("constraints", "constraints", rules)
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
    return _knowing_each_other(tuple(given), space)


def _has(rule: object, ability: Callable[..., Ability]) -> TypeGuard[Ability]:
    """Tell whether a rule has the members of a protocol."""
    key = type(rule), ability
    if key not in _KNOWN:
        _KNOWN[key] = isinstance(rule, ability)  # type: ignore[arg-type]  # each is a protocol
    return _KNOWN[key]


# ---- learning --------------------------------------------------------------------------------------------------------
@runtime_checkable
class LearnsFromRows(Protocol):
    """A rule that takes something from the rows of the target class."""

    def fitted(self, space: FeatureSpace, rows: DataRows) -> Self:
        """Return the rule with what it takes from the rows filled in."""


@runtime_checkable
class NeedsRows(LearnsFromRows, Protocol):
    """A rule of which nothing can be checked before it has the rows."""

    @property
    def lacks_rows(self) -> bool:
        """Whether it has yet to be given them."""


def lacks_rows(rule: object) -> bool:
    """Tell whether a rule has yet to be given the rows of the target class."""
    return _has(rule, NeedsRows) and rule.lacks_rows


def fitted_to(rule: Rule, space: FeatureSpace, rows: DataRows) -> Rule:
    """Return a rule with what it takes from the rows of the target class; itself if nothing."""
    return cast("Rule", rule.fitted(space, rows)) if _has(rule, LearnsFromRows) else rule


@runtime_checkable
class LearnsFromModel(Protocol):
    """A rule that takes something from the model that is explained."""

    def about(self, predictor: Callable[[], Predictor]) -> Self:
        """Return the rule with what it takes from the model filled in."""


def about_model(rule: Rule, predictor: Callable[[], Predictor]) -> Rule:
    """Return a rule with what it takes from the model that is explained; itself if nothing."""
    return cast("Rule", rule.about(predictor)) if _has(rule, LearnsFromModel) else rule


def is_learned(rule: object) -> bool:
    """Tell whether a rule is about people of the data or about the model: who needs an answer breaks it by nature."""
    return _has(rule, LearnsFromRows) or _has(rule, LearnsFromModel)


# ---- what a rule has to do with costs and actions --------------------------------------------------------------------
@runtime_checkable
class AddsToCost(Protocol):
    """A rule whose slack costs something: ``build`` adds it to ``x.surcharges``."""

    @property
    def charges_more(self) -> bool:
        """Whether the rule, as it is set, adds to the cost."""

    def surcharge(self, space: FeatureSpace, factual: Point, point: Point) -> float:
        """Return what the point's standing with the rule adds to its cost."""


def adds_to_cost(rule: object) -> bool:
    """Tell whether a rule adds to the cost."""
    return _has(rule, AddsToCost) and rule.charges_more


def surcharge_of(rule: object, space: FeatureSpace, factual: Point, point: Point) -> float:
    """Return what a point's standing with a rule adds to its cost."""
    return rule.surcharge(space, factual, point) if _has(rule, AddsToCost) else 0.0


@runtime_checkable
class ChangesCharges(Protocol):
    """A rule under which some moves are consequences: ``build`` enters what is charged into ``x.charges``."""

    def unpriced(self, space: FeatureSpace) -> frozenset[str]:
        """Return the columns whose moves the cost does not see as they are."""

    def charged(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return points (n, d) as the cost sees them."""


def unpriced_columns(rule: object, space: FeatureSpace) -> frozenset[str]:
    """Return the columns whose moves the cost does not see as they are, because of a rule."""
    return rule.unpriced(space) if _has(rule, ChangesCharges) else frozenset()


def has_say_in_cost(rule: object, space: FeatureSpace) -> bool:
    """Tell whether a rule adds to the cost or changes what is charged."""
    return adds_to_cost(rule) or bool(unpriced_columns(rule, space))


def charged_points(rules: Iterable[object], space: FeatureSpace, factual: Point, points: Floats) -> Floats:
    """Return points (n, d) as the cost sees them under some rules, each of which sees the points as they are."""
    charged = points
    for rule in rules:
        if _has(rule, ChangesCharges):
            own = rule.charged(space, factual, points)
            charged = np.where(own != points, own, charged)
    return charged


# ---- what counts as one change ---------------------------------------------------------------------------------------
@runtime_checkable
class JoinsChanges(Protocol):
    """A rule by which some columns change together, as one change."""

    columns: Any

    def given_up(self, factual: Point) -> tuple[str, ...]:
        """Return the columns that are no changes of their own when they leave the factual."""


@runtime_checkable
class CountsChanges(Protocol):
    """A rule that counts changes, and has to know which columns count together."""

    def counting(self, together: tuple[tuple[str, ...], ...]) -> Self:
        """Return the rule that counts a move between two columns of a group as one change."""


def together_by(rules: Sequence[AbstractRule]) -> tuple[tuple[str, ...], ...]:
    """Return the columns that change together, as one change, by each rule that says so."""
    return tuple(tuple(rule.columns) for rule in rules if _has(rule, JoinsChanges))


def given_up(together: Sequence[Sequence[str]], point: Point) -> set[str]:
    """Return the 1 of each group that has one 1 in a point, and else 0: its leaving is no change."""
    found = set()
    for group in together:
        ones = [name for name in group if point[name] == 1.0]
        zeros = [name for name in group if point[name] == 0.0]
        if len(ones) == 1 and len(zeros) == len(group) - 1:
            found.add(ones[0])
    return found


def _knowing_each_other(rules: tuple[AbstractRule, ...], space: FeatureSpace) -> tuple[AbstractRule, ...]:
    """Return the rules, those that count changes with the columns that count together by the others."""
    together = together_by(rules)
    if not together:
        return rules
    known = []
    for rule in rules:
        if not _has(rule, JoinsChanges):
            _refuse_charged(unpriced_columns(rule, space), together)
        known.append(cast("AbstractRule", rule.counting(together)) if _has(rule, CountsChanges) else rule)
    return tuple(known)


def _refuse_charged(charged: frozenset[str], together: tuple[tuple[str, ...], ...]) -> None:
    """Refuse columns of which two rules say what their moves cost."""
    for group in together:
        for name in group:
            if name in charged:
                raise InvalidTypeError(
                    "constraints", "one rule that says what a column's move costs",
                    f"column {name!r} has an equation, and is one of several of which exactly one is 1",
                    "Leave its equation out, or the other rule.",
                )  # fmt: skip


@runtime_checkable
class NamesActions(Protocol):
    """A rule that tells what is to be done from what follows."""

    def actions(self, space: FeatureSpace, factual: Point, point: Point) -> dict[str, Any] | None:
        """Return what is to be done by column, in raw units, or None where nothing else follows from it."""


def actions_under(rules: Iterable[object], space: FeatureSpace, factual: Point, point: Point) -> dict[str, Any] | None:
    """Return what is to be done by column, in raw units, by the first rule that tells it from what follows; or None."""
    for rule in rules:
        if _has(rule, NamesActions):
            actions = rule.actions(space, factual, point)
        else:
            actions = None
        if actions is not None:
            return actions
    return None


# ---- points that a rule can mend -------------------------------------------------------------------------------------
@runtime_checkable
class MendsPoints(Protocol):
    """A rule that says where a point that breaks it is to be put."""

    @property
    def mends(self) -> bool:
        """Whether :meth:`mended` changes anything."""

    def mended(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return points (n, d) with the columns set that follow from others, or that may take few values."""


def mends_points(rule: object) -> bool:
    """Tell whether a rule says where points are to be put."""
    return _has(rule, MendsPoints) and rule.mends


def mended_points(rules: Iterable[object], space: FeatureSpace, factual: Point, points: Floats) -> Floats:
    """Return points (n, d) put where some rules say, one after the other."""
    for rule in rules:
        if _has(rule, MendsPoints):
            points = rule.mended(space, factual, points)
    return points


# ---- clusters --------------------------------------------------------------------------------------------------------
@runtime_checkable
class HasClusters(Protocol):
    """A rule that holds in one of several clusters, with a binary ``block.in_cluster[label]`` for each."""

    clusters: Any

    def cluster_in(self, block: Any) -> Any:
        """Return the label of the cluster in which the solution loaded into the rule's ``block`` lies."""

    def distances(self, space: FeatureSpace, point: Point) -> Mapping[Any, float]:
        """Return how far a point is from each cluster, by label."""


def has_clusters(rule: object) -> bool:
    """Tell whether a rule has clusters; a hull may have them or not."""
    return _has(rule, HasClusters) and rule.clusters is not None


def cluster_of(rule: object, block: Any) -> Any:
    """Return the cluster in which the solution loaded into a rule's block lies; None without clusters."""
    return rule.cluster_in(block) if _has(rule, HasClusters) else None


def nearest_cluster(rules: Iterable[object], space: FeatureSpace, point: Point) -> Any:
    """Return the cluster nearest to a point, in plain numbers, of the rule that has clusters; None without one."""
    for rule in rules:
        if _has(rule, HasClusters) and has_clusters(rule):
            distances = rule.distances(space, point)
            return min(distances, key=distances.__getitem__)
    return None


# ---- widening --------------------------------------------------------------------------------------------------------
@runtime_checkable
class WidensItself(Protocol):
    """A rule that, where nothing keeps it, is widened by the least amount that helps, if ``enlarge`` says so."""

    enlarge: bool
    radius: float

    def relax(self, block: Any, x: Factual) -> Any:
        """Fill the empty ``block`` with the rows of the widened rule; return the amount, at least 0."""

    def widened(self, by: float) -> Self:
        """Return the rule with a radius greater by an amount."""


def widens_itself(rule: object) -> bool:
    """Tell whether a rule is to be widened where nothing keeps it."""
    return _has(rule, WidensItself) and rule.enlarge


#: Members that an ability needs beside one of its own: alone, that one would be passed over in silence.
_BESIDE: Mapping[str, tuple[str, ...]] = {
    "lacks_rows": ("fitted",),
    "charges_more": ("surcharge",),
    "surcharge": ("charges_more",),
    "unpriced": ("charged",),
    "charged": ("unpriced",),
    "mends": ("mended",),
    "mended": ("mends",),
    "cluster_in": ("clusters", "distances"),
    "given_up": ("columns",),
}


def half_ability(rule: object) -> tuple[str, str] | None:
    """Return a member that a rule has of an ability and one that it lacks of it; None where all are whole."""
    for has, needed in _BESIDE.items():
        lacks = [member for member in needed if not hasattr(rule, member)]
        if lacks and hasattr(rule, has):
            return has, lacks[0]
    return None


# ==== A cost as rules have it: what they charge instead of a move, and what they add ==================================


def charged_by(cost: AbstractCost, rules: Sequence[AbstractRule], space: FeatureSpace) -> AbstractCost:
    """Return the cost as the rules have it; the cost itself where none of them has a say."""
    charging = tuple(rule for rule in rules if has_say_in_cost(rule, space))
    return RuleCharges(cost, charging) if charging else cost


@final
@dataclass(frozen=True, slots=True)
class RuleCharges(AbstractCost):
    r"""A cost under rules: :math:`\text{cost}(a(x), x^0) + \sum_r \text{penalty}_r(x)`.

    a(x) is what a causal model charges in the place of x, the penalties are those of soft rules. Where there are
    penalties, a distance is stated as itself (see :class:`Sum`), as a square and a penalty do not add up.

    Parameters
    ----------
    cost
        What a change costs.
    rules
        Those that have a say.
    """

    cost: AbstractCost
    rules: tuple[AbstractRule, ...]

    @property
    def additive(self) -> bool:  # type: ignore[override]
        """Whether the objective is at least the sum of the columns' prices."""
        return self._stated.additive

    @property
    def is_joint(self) -> bool:
        """Always: what is charged for a column may depend on others."""
        return True

    @property
    def curved(self) -> bool:  # type: ignore[override]
        """As the cost itself."""
        return self.cost.curved

    @property
    def power(self) -> int:  # type: ignore[override]
        """As the cost is stated."""
        return self._stated.power

    @property
    def _stated(self) -> AbstractCost:
        penalised = any(map(adds_to_cost, self.rules))
        return Sum(((1.0, self.cost),)) if penalised and not isinstance(self.cost, Sum) else self.cost

    def fitted(self, space: FeatureSpace, data: Any) -> AbstractCost:
        """Return the cost with what it takes from data filled in."""
        return RuleCharges(self.cost.fitted(space, data), self.rules)

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return the cost's own prices, and none for columns that may move as a consequence."""
        free = frozenset[str]().union(*(unpriced_columns(rule, space) for rule in self.rules))
        own = self._stated.prices(space)
        return {name: () if name in free else prices for name, prices in own.items()}

    def build(self, x: Factual) -> Any:
        """Return the cost of what is charged plus the surcharges of the rules that are imposed on the block."""
        return self.stated(x, 1.0)

    def stated(self, x: Factual, unit: float) -> Any:
        """Return the same divided by ``unit ** power``."""
        stated = self._stated
        return stated.stated(x, unit) + sum((unit**-stated.power) * extra for extra in x.surcharges)

    def value(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the cost of what is charged plus the penalties, in plain Python arithmetic."""
        extra = sum(surcharge_of(rule, space, factual, point) for rule in self.rules)
        return self.cost.value(space, factual, self._charged_point(space, factual, point)) + extra

    def size(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return that of the cost of what is charged: penalties are linear."""
        return self.cost.size(space, factual, self._charged_point(space, factual, point))

    def objectives(self, space: FeatureSpace, factual: Mapping[str, float], points: Floats) -> Floats:
        """Return the objective at many points, penalties left out: they are never negative, and slow to find."""
        return self._stated.objectives(space, factual, charged_points(self.rules, space, factual, points))

    def from_objective(self, objective: float) -> float:
        """Return the cost that an objective stands for."""
        return self._stated.from_objective(objective)

    def to_objective(self, cost: float) -> float:
        """Return the objective that a cost stands for."""
        return self._stated.to_objective(cost)

    def _charged_point(
        self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]
    ) -> dict[str, float]:
        row = charged_points(self.rules, space, factual, np.array([[point[name] for name in space.names]]))[0]
        return dict(zip(space.names, row.tolist(), strict=True))

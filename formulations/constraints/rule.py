"""Rules: rows over a person's block, a check in plain numbers apart from them, and what more some rules do.

Whatever only some rules do (learn from data, add to the cost, mend a point, have clusters) is a method of
:class:`AbstractRule` with a default that does nothing, which such a rule overrides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeAlias, final

import numpy as np
from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.columns import Price
from ceopt.formulations.columns.columns_block import AbstractColumns, Factual, require_factual
from ceopt.formulations.costs.base import AbstractCost, Sum
from ceopt.formulations.digits import digits
from ceopt.formulations.space.space import FeatureSpace, point_row
from ceopt.solvers.checks import Choice, Floats, ListOf, OrNone, Refusal, Text
from ceopt.solvers.errors import InvalidTypeError
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor

#: Coordinates by column.
Point: TypeAlias = Mapping[str, float]
#: Gives the rows of the data that are in the target, as coordinates (n, d), or refuses where there is no data.
DataRows: TypeAlias = Callable[[], Floats]
#: What a rule's name may be: the user's, in exports and reports, or None.
RULE_NAME = OrNone(Text(Refusal("text as {name}", "Write it as text, or leave it out.", error=InvalidTypeError)))
#: What a rule asks of a person who breaks it today: to meet it, or not to go further than they are.
Beyond: TypeAlias = Literal["meet", "no_further"]
BEYOND = Choice(("meet", "no_further"))
_RULES = ListOf(Refusal("a list of rules", "Correct it.", error=InvalidTypeError))


#: Attributes that a rule may have, and what holds of a rule without. They are none of the class: a dataclass would take
#: them for the defaults of fields of these names.
_UNLESS_SAID: Final[Mapping[str, Any]] = {"lacks_rows": False, "charges_more": False, "mends": False, "clusters": None}


@final
class _FromDocstring:
    """The manifest of a class of rules that has none of its own: its name, and the first line of its docstring."""

    def __get__(self, rule: AbstractRule | None, kind: type) -> Manifest:
        text = (kind.__doc__ or "").strip()
        if not text or text.startswith(f"{kind.__name__}("):  # a dataclass without a docstring has its signature there
            text = kind.__name__
        return Manifest(title=text.splitlines()[0].rstrip("."), formula="", rule=kind.__name__)


class AbstractRule(ABC):
    """A rule that every answer must keep.

    A rule of your own is a frozen dataclass with :meth:`check`, :meth:`build` and :meth:`violation`; all else has a
    default. Nothing can stand in for ``violation``: every answer is held against it, and what followed from the rows
    would repeat their mistakes.
    """

    __slots__ = ()

    #: The program and its source, as ``model_summary`` shows them.
    manifest: ClassVar[Manifest] = _FromDocstring()  # type: ignore[assignment]
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

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _UNLESS_SAID:
                return _UNLESS_SAID[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def missed(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return by how much a point misses the rule where what a solver leaves is not passed over."""
        return self.violation(space, factual, point)

    def sentence(self) -> str:
        """Return the rule in words and numbers; by default the manifest's title and the fields of a dataclass."""
        title = self.manifest.title
        if not is_dataclass(self):
            return title
        given = []
        for field in fields(self):
            if field.init and field.repr and field.name != "name":
                given.append(f"{field.name}={getattr(self, field.name)!r}")
        if not given:
            return title
        return " ".join(f"{title} ({', '.join(given)})".split())

    # ---- learning ----------------------------------------------------------------------------------------------------
    #: Whether nothing can be checked before the rule is :meth:`fitted`.
    lacks_rows: bool

    def fitted(self, space: FeatureSpace, rows: DataRows) -> Self:
        """Return the rule with what it takes from the rows of the target class filled in."""
        del space, rows
        return self

    def about(self, predictor: Callable[[], Predictor]) -> Self:
        """Return the rule with what it takes from the model that is explained filled in."""
        del predictor
        return self

    # ---- costs and actions -------------------------------------------------------------------------------------------
    #: Whether the rule, as it is set, adds to the cost: :meth:`build` then appends to ``x.surcharges``.
    charges_more: bool

    def surcharge(self, space: FeatureSpace, factual: Point, point: Point) -> float:
        """Return what the point's standing with the rule adds to its cost."""
        del space, factual, point
        return 0.0

    def unpriced(self, space: FeatureSpace) -> frozenset[str]:
        """Return the columns whose moves the cost does not see as they are; :meth:`build` fills ``x.charges``."""
        del space
        return frozenset()

    def charged(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return points (n, d) as the cost sees them."""
        del space, factual
        return points

    def actions(self, space: FeatureSpace, factual: Point, point: Point) -> dict[str, Any] | None:
        """Return what is to be done by column, in raw units, or None where nothing else follows from it."""
        del space, factual, point
        return None

    # ---- what counts as one change -----------------------------------------------------------------------------------
    def changes_together(self) -> tuple[str, ...]:
        """Return the columns of which a move between two is one change."""
        return ()

    def counting(self, together: tuple[tuple[str, ...], ...]) -> Self:
        """Return the rule that counts a move between two columns of a group as one change."""
        del together
        return self

    # ---- points that break the rule ----------------------------------------------------------------------------------
    #: Whether :meth:`mended` changes anything.
    mends: bool

    def mended(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return points (n, d) with the columns set that follow from others, or that may take few values."""
        del space, factual
        return points

    # ---- clusters: the rule holds in one of several, with a binary ``block.in_cluster[label]`` for each --------------
    #: The clusters as they were given; None without any.
    clusters: Any

    def cluster_in(self, block: Any) -> Any:
        """Return the label of the cluster in which the solution loaded into the rule's ``block`` lies."""
        del block
        return None

    def distances(self, space: FeatureSpace, point: Point) -> Mapping[Any, float]:
        """Return how far a point is from each cluster, by label."""
        del space, point
        return {}


class AbstractElastic(AbstractRule):
    """A rule that can be widened by an amount, in the unit in which ``violation`` counts.

    One with the fields ``enlarge`` and ``radius`` is widened by the least amount that helps where nothing keeps it, if
    ``enlarge`` says so.
    """

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
        if not isinstance(rule.manifest, Manifest):
            raise InvalidTypeError(
                "A rule", "a manifest, which says what it states", f"{type(rule).__name__} has none",
                "Give the class one: manifest: ClassVar[Manifest] = Manifest(title=..., formula=...).",
            )  # fmt: skip
        _refuse_one_without_the_other(rule)
        RULE_NAME.require(type(rule).__name__, "name", getattr(rule, "name", None))
        rule.check(space)
        name = rule_name(rule, position)
        if name in names:
            raise InvalidTypeError("constraints", "names that differ", f"two rules are {name!r}", "Rename one of them.")
        names.add(name)
    return _knowing_each_other(tuple(given), space)


#: Members that a rule needs beside one of its own: alone, that one would be passed over in silence.
_BESIDE: Mapping[str, tuple[str, ...]] = {
    "lacks_rows": ("fitted",),
    "charges_more": ("surcharge",),
    "surcharge": ("charges_more",),
    "unpriced": ("charged",),
    "charged": ("unpriced",),
    "mends": ("mended",),
    "mended": ("mends",),
    "cluster_in": ("clusters", "distances"),
}


def overrides(rule: AbstractRule, *members: str) -> bool:
    """Return whether a rule has one of these members of its own, and not the default of :class:`AbstractRule` alone."""
    kinds = type(rule).__mro__
    own = kinds[: kinds.index(AbstractRule)]
    for member in members:
        if member in getattr(rule, "__dict__", ()) or any(member in vars(kind) for kind in own):
            return True
    return False


def _refuse_one_without_the_other(rule: AbstractRule) -> None:
    for member, needed in _BESIDE.items():
        if not overrides(rule, member):
            continue
        for other in needed:
            if not overrides(rule, other):
                raise InvalidTypeError(
                    "A rule", f"{other} beside {member}", f"{type(rule).__name__} has {member} alone",
                    f"Give it {other} as well.",
                )  # fmt: skip


def widens_itself(rule: AbstractRule) -> bool:
    """Return whether a rule is to be widened where nothing keeps it."""
    return isinstance(rule, AbstractElastic) and hasattr(rule, "radius") and getattr(rule, "enlarge", False)


# ==== What several rules say together =================================================================================


def has_say_in_cost(rule: AbstractRule, space: FeatureSpace) -> bool:
    """Return whether a rule adds to the cost or changes what is charged."""
    return rule.charges_more or bool(rule.unpriced(space))


def together_by(rules: Sequence[AbstractRule]) -> tuple[tuple[str, ...], ...]:
    """Return the groups of columns that change together, as one change, one for each rule that has some."""
    return tuple(filter(None, (rule.changes_together() for rule in rules)))


def given_up(together: Sequence[Sequence[str]], point: Point) -> set[str]:
    """Return the 1 of each group that has one 1 in a point, and else 0: its leaving is no change."""
    ones = set()
    for group in together:
        values = [point[name] for name in group]
        if values.count(1.0) == 1 and values.count(0.0) == len(values) - 1:
            ones.add(group[values.index(1.0)])
    return ones


def _knowing_each_other(rules: tuple[AbstractRule, ...], space: FeatureSpace) -> tuple[AbstractRule, ...]:
    """Return the rules, those that count changes with the columns that count together by the others."""
    together = together_by(rules)
    if not together:
        return rules
    for rule in rules:
        if not rule.changes_together():
            _refuse_charged(rule.unpriced(space), together)
    return tuple(rule.counting(together) for rule in rules)


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


def actions_under(
    rules: Iterable[AbstractRule], space: FeatureSpace, factual: Point, point: Point
) -> dict[str, Any] | None:
    """Return what is to be done by column, in raw units, by the first rule that tells it from what follows; or None."""
    for rule in rules:
        actions = rule.actions(space, factual, point)
        if actions is not None:
            return actions
    return None


def mended_points(rules: Iterable[AbstractRule], space: FeatureSpace, factual: Point, points: Floats) -> Floats:
    """Return points (n, d) put where some rules say, one after the other."""
    for rule in rules:
        points = rule.mended(space, factual, points)
    return points


def has_clusters(rule: AbstractRule) -> bool:
    """Return whether a rule has clusters; a hull may have them or not."""
    return rule.clusters is not None and overrides(rule, "cluster_in")


def nearest_cluster(rules: Iterable[AbstractRule], space: FeatureSpace, point: Point) -> Any:
    """Return the cluster nearest to a point, in plain numbers, of the rule that has clusters; None without one."""
    for rule in rules:
        if has_clusters(rule):
            distances = rule.distances(space, point)
            return min(distances, key=distances.__getitem__)
    return None


# ==== A cost as rules have it: what they charge instead of a move, and what they add ==================================


def charged_by(cost: AbstractCost, rules: Sequence[AbstractRule], space: FeatureSpace) -> AbstractCost:
    """Return the cost as the rules have it; the cost itself where none of them has a say."""
    charging = tuple(rule for rule in rules if has_say_in_cost(rule, space))
    if not charging:
        return cost
    return RuleCharges(cost, charging)


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
        if isinstance(self.cost, Sum) or not any(rule.charges_more for rule in self.rules):
            return self.cost
        return Sum(((1.0, self.cost),))

    def fitted(self, space: FeatureSpace, data: Any) -> AbstractCost:
        """Return the cost with what it takes from data filled in."""
        return RuleCharges(self.cost.fitted(space, data), self.rules)

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return the cost's own prices, and none for columns that may move as a consequence."""
        free = frozenset[str]().union(*(rule.unpriced(space) for rule in self.rules))
        prices = self._stated.prices(space)
        return prices | dict.fromkeys(free.intersection(prices), ())

    def build(self, x: Factual) -> Any:
        """Return the cost of what is charged plus the surcharges of the rules that are imposed on the block."""
        return self.stated(x, 1.0)

    def stated(self, x: Factual, unit: float) -> Any:
        """Return the same divided by ``unit ** power``."""
        stated = self._stated
        return stated.stated(x, unit) + sum((unit**-stated.power) * extra for extra in x.surcharges)

    def value(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the cost of what is charged plus the penalties, in plain Python arithmetic."""
        extra = sum(rule.surcharge(space, factual, point) for rule in self.rules)
        return self.cost.value(space, factual, self._charged_point(space, factual, point)) + extra

    def size(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return that of the cost of what is charged: penalties are linear."""
        return self.cost.size(space, factual, self._charged_point(space, factual, point))

    def objectives(self, space: FeatureSpace, factual: Mapping[str, float], points: Floats) -> Floats:
        """Return the objective at many points, penalties left out: they are never negative, and slow to find."""
        return self._stated.objectives(space, factual, self._charged(space, factual, points))

    def from_objective(self, objective: float) -> float:
        """Return the cost that an objective stands for."""
        return self._stated.from_objective(objective)

    def to_objective(self, cost: float) -> float:
        """Return the objective that a cost stands for."""
        return self._stated.to_objective(cost)

    def _charged(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return points (n, d) as the cost sees them under the rules, each of which sees the points as they are."""
        charged = points
        for rule in self.rules:
            own = rule.charged(space, factual, points)
            charged = np.where(own != points, own, charged)
        return charged

    def _charged_point(self, space: FeatureSpace, factual: Point, point: Point) -> dict[str, float]:
        row = self._charged(space, factual, point_row(space, point))[0]
        return dict(zip(space.names, row.tolist(), strict=True))

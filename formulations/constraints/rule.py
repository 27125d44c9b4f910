"""Base classes of rules, which restrict the answer: Pyomo rows, an independent numeric check, and optional hooks.

Optional behaviour (learning from data, costs, repairing points, clusters) is a method of :class:`AbstractRule` that
does nothing unless overridden. A new rule is a file of this folder, listed in ``RULES`` of ``constraints/__init__.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeAlias, final

import numpy as np
from pyomo.common.gc_manager import PauseGC
from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.columns import Price
from ceopt.formulations.columns.columns_block import AbstractColumns, Factual, require_factual
from ceopt.formulations.columns.coordinate import no_amount
from ceopt.formulations.costs.base import AbstractCost
from ceopt.formulations.digits import digits
from ceopt.formulations.predictors.read_model import read_model
from ceopt.formulations.space.space import FeatureSpace, point_row
from ceopt.solvers.checks import Choice, Floats, ListOf, OrNone, Refusal, Text
from ceopt.solvers.errors import InvalidTypeError, UnsupportedModelError
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.reachable import Reach

#: Coordinates by column.
Point: TypeAlias = Mapping[str, float]
#: A function that returns the data rows in the target class, as coordinates (n, d), and raises without data.
DataRows: TypeAlias = Callable[[], Floats]
#: Valid ``name`` of a rule: text, shown in exports and reports, or None.
RULE_NAME = OrNone(Text(Refusal("text as {name}", "Write it as text, or leave it out.", error=InvalidTypeError)))
#: What a rule requires if the factual violates it: to satisfy it, or to violate it no more than today.
Beyond: TypeAlias = Literal["meet", "no_further"]
BEYOND = Choice(("meet", "no_further"))
#: How a rule's rows state it: they admit just the points that keep it; of those only some, so that an optimum is one
#: that was found and no more; some at first, after which rows are added until an optimum is proved; or none are known
#: but those that follow from points that break it.
Stated: TypeAlias = Literal["exactly", "stricter", "proved", "by_cuts"]
_RULES = ListOf(Refusal("a list of rules", "Correct it.", error=InvalidTypeError))
#: Points of which it takes longer to tell which agree than to ask about each.
_FEW: Final = 4
#: Defaults of optional attributes. They are not class attributes, because a dataclass would use those as defaults of
#: fields with the same names.
_DEFAULTS: Final[Mapping[str, Any]] = {
    "lacks_rows": False,
    "charges_more": False,
    "mends": False,
    "clusters": None,
    "stated": "exactly",
    "implies_target": False,
    "reads": None,
}


@final
class _FromDocstring:
    """Default manifest of a class of rules: its name, and the first line of its docstring."""

    def __get__(self, rule: AbstractRule | None, kind: type) -> Manifest:
        text = (kind.__doc__ or "").strip()
        if not text or text.startswith(f"{kind.__name__}("):  # dataclass() puts the signature into a missing docstring
            text = kind.__name__
        return Manifest(title=text.splitlines()[0].rstrip("."), formula="", rule=kind.__name__)


@dataclass(frozen=True, slots=True)
class PointJudge:
    """Tells which points of one person keep a rule; it may remember what it has seen, of this person alone."""

    rule: AbstractRule
    space: FeatureSpace
    factual: Point

    def may_keep(self, points: Floats) -> NDArray[np.bool_]:
        """Return which of the points (n, d) nothing that was seen shows to break the rule; it takes no time."""
        return np.ones(len(points), dtype=bool)

    def keeps(self, points: Floats) -> NDArray[np.bool_]:
        """Return which of the points (n, d) keep the rule."""
        return self.rule.keeps(self.space, self.factual, points)


class AbstractRule(ABC):
    """A rule that every answer must keep.

    A rule of your own is a frozen dataclass with :meth:`check`, :meth:`build` and :meth:`violation`; everything else
    has a default. ``violation`` has none on purpose: it must be written independently of ``build``, so that a mistake
    in the rows is caught. A rule that joins the package is also listed in ``RULES`` of ``constraints/__init__.py``.
    """

    __slots__ = ()

    #: The program and its source, as ``model_summary`` shows them.
    manifest: ClassVar[Manifest] = _FromDocstring()  # type: ignore[assignment]
    #: Whether :meth:`violation` needs the factual.
    needs_factual: ClassVar[bool] = True
    #: Whether :meth:`build` takes the caller's own variables (``Columns``) as well as a person's block.
    takes_columns: ClassVar[bool] = False
    #: Whether :meth:`violation` is slow (milliseconds); the search for a start then checks few points.
    slow: ClassVar[bool] = False
    #: Whether its rows make a program several times larger; it is then solved without them first, and its optimum
    #: stands if it keeps the rule.
    is_large: ClassVar[bool] = False
    #: Whether its rows may imply finite bounds of unbounded columns; such rules are built first, so that others can use
    #: the bounds as big-M.
    gives_bounds: ClassVar[bool] = False

    @abstractmethod
    def check(self, space: FeatureSpace) -> None:
        """Raise an error if the rule's arguments do not fit the space; do not check any point."""

    @abstractmethod
    def build(self, block: Any, x: Factual) -> None:
        """Fill the empty ``block`` with the rule's rows over ``x``."""

    @abstractmethod
    def violation(self, space: FeatureSpace, factual: Point | None, point: Point) -> float:
        """Return by how much a point (coordinates by column) breaks the rule, in its own unit; 0 if it is kept."""

    #: Columns on which :meth:`violation` depends; None, the default, for all.
    reads: tuple[str, ...] | None

    def needs_amount(self, space: FeatureSpace, name: str, label: float) -> bool:
        """Whether nobody may hold a label, a code or the missing cell, in a column: who may is refused by its name."""
        del space, name, label
        return False

    def keeps(self, space: FeatureSpace, factual: Point | None, points: Floats) -> NDArray[np.bool_]:
        """Return which of the points (n, d) keep the rule, (n,): those whose violation is 0.

        By default ``violation`` is asked once for all points that agree in the columns that the rule ``reads``.
        """
        if len(points) < _FEW:
            each = (dict(zip(space.names, row, strict=True)) for row in points.tolist())
            return np.array([self.violation(space, factual, point) <= 0.0 for point in each], dtype=bool)
        columns = points
        if self.reads is not None:
            columns = points[:, [space.names.index(name) for name in self.reads]]
        _, first, group = np.unique(columns, axis=0, return_index=True, return_inverse=True)
        named = (dict(zip(space.names, row, strict=True)) for row in points[first].tolist())
        kept = np.array([self.violation(space, factual, point) <= 0.0 for point in named], dtype=bool)
        return kept[group.ravel()]

    def judge(self, space: FeatureSpace, factual: Point) -> PointJudge:
        """Return who is asked which points of one person keep the rule, one after the other."""
        return PointJudge(self, space, factual)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _DEFAULTS and not hasattr(type(self), name):
                return _DEFAULTS[name]
            return object.__getattribute__(self, name)  # raises again, with the error of a property of the rule's own

    def missed(self, space: FeatureSpace, factual: Point | None, point: Point) -> float:
        """Return the violation without allowance for a solver's tolerance; by default the same as ``violation``."""
        return self.violation(space, factual, point)

    def off_today(self, space: FeatureSpace, factual: Point) -> float:
        """Return by how much the person's own row misses the rule; by default its violation, which must go."""
        return self.violation(space, factual, factual)

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
        text = ", ".join(given)
        return " ".join(f"{title} ({text})".split())  # on one line: a repr may hold line breaks

    # ---- learning ----------------------------------------------------------------------------------------------------
    #: Whether the rule has yet to be :meth:`fitted` to data before it can be checked.
    lacks_rows: bool

    def fitted(self, space: FeatureSpace, rows: DataRows) -> Self:
        """Return the rule fitted to the data rows of the target class; itself by default."""
        del space, rows
        return self

    def about(self, predictor: Callable[[], Predictor]) -> Self:
        """Return the rule with what it needs of the model, which ``predictor()`` returns; itself by default."""
        del predictor
        return self

    def aimed(self, target: Any) -> Self:
        """Return the rule with what it needs of the target that is asked for, checked or not; itself by default."""
        del target
        return self

    # ---- rows that are found while solving ---------------------------------------------------------------------------
    #: How :meth:`build` states the rule; "exactly" by default.
    stated: Stated
    #: Whether the explained model decides as asked wherever the rule is kept.
    implies_target: bool

    def counterexample(self, space: FeatureSpace, point: Point) -> tuple[Any, ...]:
        """Return what follows from a point that breaks the rule, for :meth:`with_cuts`; nothing where it is kept."""
        del space, point
        return ()

    def stand_ins(self, reach: Reach) -> tuple[Predictor, ...]:
        """Return models that all decide True at a point only if the rule is kept there, for the search for a start.

        None by default. Of a rule that few points keep near where the model turns, whose own splits are of no use then;
        of one that :attr:`is_large` the search looks at the splits of both, once many points have broken it.
        """
        del reach
        return ()

    def values_beside(self, reach: Reach) -> Mapping[str, Sequence[float]] | None:
        """Return by column of numbers the values in reach beside which counterexamples end, each of which is a box.

        None by default: what follows from a counterexample is no box, and no search is made among their ends.
        """
        del reach
        return None

    def is_met(self, cut: Any, reach: Reach, values: Mapping[str, Floats]) -> Mapping[str, NDArray[np.bool_]]:
        """Return by column which of its values (n,) lie within a counterexample, (n,); all do of a column left out."""
        del cut, reach, values
        return {}

    def with_cuts(self, cuts: Sequence[Any]) -> Self:
        """Return the rule whose rows say what follows from some counterexamples, and no more."""
        del cuts
        return self

    # ---- columns that are generated ----------------------------------------------------------------------------------
    def first_points(self, space: FeatureSpace) -> Any:
        """Return places of points, of the many whose weights a rule has, with which a program may begin; or None."""
        del space
        return None

    def with_points(self, only: Any) -> Self:
        """Return the rule with the weights of some points alone; ``left_out`` of its block has the others, by row."""
        del only
        return self

    # ---- costs and actions -------------------------------------------------------------------------------------------
    #: Whether this instance adds a penalty to the cost; :meth:`build` must then append it to ``x.surcharges``.
    charges_more: bool

    def surcharge(self, space: FeatureSpace, factual: Point, point: Point) -> float:
        """Return the penalty, at least 0, that the rule adds to the cost of a point."""
        del space, factual, point
        return 0.0

    def unpriced(self, space: FeatureSpace) -> frozenset[str]:
        """Return the columns charged through this rule, not by their own move; ``build`` sets ``x.charges[name]``."""
        del space
        return frozenset()

    def charged(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return the points (n, d) at which the cost is evaluated, with what is charged for ``unpriced`` columns."""
        del space, factual
        return points

    def actions(self, space: FeatureSpace, factual: Point, point: Point) -> dict[str, Any] | None:
        """Return the actions by column, in raw units; None if the rule does not tell actions from consequences."""
        del space, factual, point
        return None

    # ---- what counts as one change -----------------------------------------------------------------------------------
    def changes_together(self) -> tuple[str, ...]:
        """Return 0/1 columns of which exactly one is 1, where moving the 1 to another counts as one change."""
        return ()

    def counting(self, together: tuple[tuple[str, ...], ...]) -> Self:
        """Return the rule that counts moving the 1 within each of these groups as one change; itself by default."""
        del together
        return self

    # ---- points that break the rule ----------------------------------------------------------------------------------
    #: Whether :meth:`mended` changes anything.
    mends: bool

    def mended(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return the points (n, d) repaired: determined columns computed, others moved to admitted values."""
        del space, factual
        return points

    # ---- clusters: the rule is a union of sets; the binary ``block.in_cluster[label]`` is 1 for the one that holds ---
    #: The clusters as they were given; None without any.
    clusters: Any

    def cluster_in(self, block: Any) -> Any:
        """Return the label of the cluster that is active in the solution loaded into the rule's ``block``."""
        del block
        return None

    def distances(self, space: FeatureSpace, point: Point) -> Mapping[Any, float]:
        """Return the distance of a point from each cluster, by label."""
        del space, point
        return {}


class AbstractElastic(AbstractRule):
    """A rule that can be widened by an amount, in the unit of ``violation``.

    If it has the fields ``radius`` and ``enlarge``, and ``enlarge`` is true, then a question without an answer is
    solved again with the least widening that admits one.
    """

    __slots__ = ()

    @abstractmethod
    def relax(self, block: Any, x: Factual) -> Any:
        """Fill the empty ``block`` with the rows of the widened rule; return the amount, at least 0, as expression."""

    @abstractmethod
    def widened(self, by: float) -> Self:
        """Return the rule that is wider by an amount."""


def is_off_amounts(space: FeatureSpace, names: Iterable[str], *points: Point) -> bool:
    """Return whether some of these columns holds no amount at some of the points, but a code or nothing."""
    return any(space[name].is_label(point[name]) for name in names for point in points)


def rule_name(rule: AbstractRule, position: int) -> str:
    """Return the name that the rule bears in exports and reports: the user's, or its class and place."""
    given: str | None = getattr(rule, "name", None)
    return given or f"{type(rule).__name__}_{position + 1}"


def component_name(block: Any, name: str) -> str:
    """Return the name of a rule's block: the rule's, with ``_`` appended until the parent has no such attribute.

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
    """Return the end of the sentence of a rule with ``beyond="no_further"``."""
    if further:
        return f", or at most {digits(further)} further from it than today"
    return ", or no further from it than today"


def impose(rule: AbstractRule, x: AbstractColumns, *, model: Any = None, target: Any = None) -> Any:
    """Return a block that imposes a rule on a person's block: ``m.few = impose(MaxChanges(3), m.x)``.

    ``model`` and ``target``: the fitted model, or what was read of it, and the decision that is asked of it, for rules
    that need them (:meth:`AbstractRule.about`, :meth:`AbstractRule.aimed`).

    A rule about the answer alone (``Hull``, ``Linear``, ``AllowedValues``, ``AllowedRows``) holds on the caller's own
    variables too: ``m.near = impose(Hull(X), m.sales.columns)`` beside ``m.sales = embed(...)``.
    """
    if not isinstance(x, AbstractColumns):
        raise InvalidTypeError(
            "impose", "a Factual or a Columns block", f"x is {type(x).__name__}",
            "Pass m.x = Factual(space, row), or m.sales.columns of m.sales = embed(model, {column: Var}).",
        )  # fmt: skip
    parse_rules((rule,), x.space)
    refuse_labels(rule, x.space, lambda name: x.coordinate(name).labels_here)
    if model is not None:
        rule = rule.about(lambda: read_model(model, x.space))
    if target is not None:
        rule = rule.aimed(target)
    block = ScalarBlock(concrete=True)
    describe(block, rule.manifest)
    block.imposed = (rule, x)
    columns: Any = x if rule.takes_columns else require_factual(type(rule).__name__, x)
    with PauseGC(), columns.collecting():
        rule.build(block, columns)
    return block


def refuse_labels(rule: AbstractRule, space: FeatureSpace, labels: Callable[[str], tuple[float, ...]]) -> None:
    """Refuse a column that may hold one of its ``labels`` where a rule needs an amount, naming it."""
    if not overrides(rule, "needs_amount"):
        return
    for name in space.names if rule.reads is None else rule.reads:
        for label in labels(name):
            if rule.needs_amount(space, name, label):
                raise no_amount(type(rule).__name__, space[name], label)


def parse_rules(rules: Any, space: FeatureSpace) -> tuple[AbstractRule, ...]:
    """Return the rules (or the single rule) given, checked against the space.

    Rules that count changes are told in which groups of columns, by other rules, moving a 1 is one change.
    """
    if isinstance(rules, AbstractRule):
        given = (rules,)
    else:
        given = _RULES.require("constraints", "constraints", rules)
    names: set[str] = set()
    for position, rule in enumerate(given):
        if not isinstance(rule, AbstractRule):
            then = "Pass objects such as MaxChanges(3) or Linear({...}, '<=', 1)."
            raise InvalidTypeError("constraints", "rules", f"one is {rule!r}", then)
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
    return _with_shared_groups(tuple(given), space)


#: Members that a rule must override beside one that it overrides, which alone would have no effect or a wrong default.
#: ``fitted`` needs no ``lacks_rows``: a rule may learn, and yet be checked before.
_BESIDE: Mapping[str, tuple[str, ...]] = {
    "lacks_rows": ("fitted",),
    "charges_more": ("surcharge",),
    "surcharge": ("charges_more",),
    "unpriced": ("charged",),
    "charged": ("unpriced",),
    "mends": ("mended",),
    "mended": ("mends",),
    "stated": ("counterexample", "with_cuts"),
    "counterexample": ("stated", "with_cuts"),
    "with_cuts": ("stated", "counterexample"),
    "values_beside": ("is_met", "counterexample"),
    "is_met": ("values_beside", "counterexample"),
    "first_points": ("with_points",),
    "with_points": ("first_points",),
    "cluster_in": ("clusters", "distances"),
}


def overrides(rule: AbstractRule, *members: str) -> bool:
    """Return whether the rule overrides any of these members of :class:`AbstractRule`."""
    kinds = type(rule).__mro__
    own = kinds[: kinds.index(AbstractRule)]
    for member in members:
        if member in getattr(rule, "__dict__", ()):
            return True
        if any(member in vars(kind) for kind in own):
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


def require_exact_rows(who: str, rules: Iterable[AbstractRule]) -> None:
    """Refuse, in the name of ``who``, rules whose rows exclude points that keep them, or are found while solving."""
    for rule in rules:
        if rule.stated != "exactly":
            raise UnsupportedModelError(
                who, "rules that their rows state exactly", f"{type(rule).__name__} is stated otherwise for this model",
                "Ask ceopt.explain, one person at a time.",
            )  # fmt: skip


def widens_itself(rule: AbstractRule) -> bool:
    """Return whether the rule is to be widened if no point keeps all rules (see :class:`AbstractElastic`)."""
    return isinstance(rule, AbstractElastic) and hasattr(rule, "radius") and getattr(rule, "enlarge", False)


# ==== Several rules together ==========================================================================================


def one_change_groups(rules: Iterable[AbstractRule]) -> tuple[tuple[str, ...], ...]:
    """Return the columns of each rule that has :meth:`~AbstractRule.changes_together`."""
    groups = [rule.changes_together() for rule in rules]
    return tuple(filter(None, groups))


def active_ones(groups: Sequence[Sequence[str]], point: Point) -> set[str]:
    """Return the column that is 1 of each group that is one-hot at the point; that it drops to 0 is no change."""
    ones = set()
    for group in groups:
        values = [point[name] for name in group]
        if values.count(1.0) == 1 and values.count(0.0) == len(values) - 1:
            ones.add(group[values.index(1.0)])
    return ones


def _with_shared_groups(rules: tuple[AbstractRule, ...], space: FeatureSpace) -> tuple[AbstractRule, ...]:
    """Return the rules, each told all one-change groups; raise if a column of one is priced by another rule."""
    groups = one_change_groups(rules)
    if not groups:
        return rules
    for rule in rules:
        if not rule.changes_together():
            _refuse_priced(rule.unpriced(space), groups)
    return tuple(rule.counting(groups) for rule in rules)


def _refuse_priced(priced: frozenset[str], groups: tuple[tuple[str, ...], ...]) -> None:
    """Raise if two rules set the price of the same column: one prices it, another has it in a one-change group."""
    for group in groups:
        for name in group:
            if name in priced:
                raise InvalidTypeError(
                    "constraints", "one rule that says what a column's move costs",
                    f"column {name!r} has an equation, and is one of several of which exactly one is 1",
                    "Leave its equation out, or the other rule.",
                )  # fmt: skip


def actions_under(
    rules: Iterable[AbstractRule], space: FeatureSpace, factual: Point, point: Point
) -> dict[str, Any] | None:
    """Return the actions of the first rule that defines them, by column in raw units; None if no rule does."""
    for rule in rules:
        actions = rule.actions(space, factual, point)
        if actions is not None:
            return actions
    return None


def mended_points(rules: Iterable[AbstractRule], space: FeatureSpace, factual: Point, points: Floats) -> Floats:
    """Return the points (n, d) repaired by each rule in turn."""
    for rule in rules:
        points = rule.mended(space, factual, points)
    return points


def has_clusters(rule: AbstractRule) -> bool:
    """Return whether the rule has clusters; only some hulls do."""
    return rule.clusters is not None and overrides(rule, "cluster_in")


def nearest_cluster(rules: Iterable[AbstractRule], space: FeatureSpace, point: Point) -> Any:
    """Return the label of the cluster nearest to a point, of the first rule with clusters; None if no rule has any."""
    for rule in rules:
        if has_clusters(rule):
            distances = rule.distances(space, point)
            return min(distances, key=distances.__getitem__)
    return None


# ==== A cost under rules: what they charge instead of a move, and the penalties that they add =========================


def charged_by(cost: AbstractCost, rules: Sequence[AbstractRule], space: FeatureSpace) -> AbstractCost:
    """Return the cost with the rules' penalties and prices; the cost itself if no rule changes it."""
    charging = tuple(rule for rule in rules if rule.charges_more or rule.unpriced(space))
    if not charging:
        return cost
    return RuleCharges(cost, charging)


@final
@dataclass(frozen=True, slots=True)
class RuleCharges(AbstractCost):
    r"""A cost under rules: :math:`\text{cost}(a(x), x^0) + \sum_r \text{penalty}_r(x)`.

    a(x) is the point at which rules such as a causal model have the cost evaluated; penalties come from soft rules.
    With penalties, a distance enters as itself (as in :class:`Sum`) and not as its square, because a penalty adds to a
    distance, not to its square.

    Parameters
    ----------
    cost
        The cost of a change, without the rules.
    rules
        Those that change it.
    """

    cost: AbstractCost
    rules: tuple[AbstractRule, ...]

    @property
    def additive(self) -> bool:  # type: ignore[override]
        """Whether the objective is at least the sum of the columns' prices."""
        return self._program_cost.additive

    @property
    def is_joint(self) -> bool:
        """True: what is charged for a column may depend on others."""
        return True

    @property
    def curved(self) -> bool:  # type: ignore[override]
        """Whether ``cost`` is curved."""
        return self.cost.curved

    @property
    def needs_amounts(self) -> str:  # type: ignore[override]
        """Who has no cost for codes and missing cells."""
        return self.cost.needs_amounts

    @property
    def power(self) -> int:  # type: ignore[override]
        """Degree of the objective in the unit of length: 1 with penalties, else that of ``cost``."""
        return self._program_cost.power

    @property
    def _program_cost(self) -> AbstractCost:
        """The cost as the program states it: with penalties as a sum, so that a distance enters as itself."""
        if any(rule.charges_more for rule in self.rules):
            return 1.0 * self.cost
        return self.cost

    def fitted(self, space: FeatureSpace, data: Any) -> AbstractCost:
        """Return the cost fitted to data, under the same rules."""
        return RuleCharges(self.cost.fitted(space, data), self.rules)

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return the cost's prices, with none for columns priced through a rule (``unpriced``)."""
        unpriced = frozenset[str]().union(*(rule.unpriced(space) for rule in self.rules))
        prices = self._program_cost.prices(space)
        return prices | dict.fromkeys(unpriced.intersection(prices), ())

    def build(self, x: Factual) -> Any:
        """Return the cost of the charged point plus the penalties of the rules that are imposed on the block."""
        return self.stated(x, 1.0)

    def stated(self, x: Factual, unit: float) -> Any:
        """Return the objective divided by ``unit ** power``."""
        cost = self._program_cost
        share = unit**-cost.power
        penalties = [share * penalty for penalty in x.surcharges]
        return cost.stated(x, unit) + sum(penalties)

    def value(self, space: FeatureSpace, factual: Point, point: Point) -> float:
        """Return the cost of the charged point plus the penalties, in plain Python arithmetic."""
        penalty = sum(rule.surcharge(space, factual, point) for rule in self.rules)
        return self.cost.value(space, factual, self._charged_point(space, factual, point)) + penalty

    def size(self, space: FeatureSpace, factual: Point, point: Point) -> float:
        """Return the length scale of the charged cost; penalties are linear and need none."""
        return self.cost.size(space, factual, self._charged_point(space, factual, point))

    def objectives(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return the objective at points (n, d) without penalties, which are >= 0 and slow to find: a lower bound."""
        return self._program_cost.objectives(space, factual, self._charged(space, factual, points))

    def from_objective(self, objective: float) -> float:
        """Return the cost for an objective value of the program."""
        return self._program_cost.from_objective(objective)

    def to_objective(self, cost: float) -> float:
        """Return the objective value of the program for a cost."""
        return self._program_cost.to_objective(cost)

    def _charged(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return the charged points (n, d). Each rule sees the original points; the last to change a column wins."""
        charged = points
        for rule in self.rules:
            own = rule.charged(space, factual, points)
            charged = np.where(own != points, own, charged)
        return charged

    def _charged_point(self, space: FeatureSpace, factual: Point, point: Point) -> dict[str, float]:
        row = self._charged(space, factual, point_row(space, point))[0]
        return dict(zip(space.names, row.tolist(), strict=True))

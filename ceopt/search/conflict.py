"""The rules in conflict: an irreducible infeasible set of the user's rules, and the least relaxation of each.

Infeasibility is proved before: by the solver and `ceopt/search/solve_check_repair.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, final

import numpy as np

from ceopt.base.said import Phrase, Said, said, together
from ceopt.formulations.constraints import AbstractRule, Linear, rule_name
from ceopt.formulations.constraints.rule import AbstractElastic, no_further_words, widens_itself
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, limits_of, reach_of
from ceopt.formulations.space.space import FeatureSpace
from ceopt.search.relaxation import LATE, Relaxer
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.solvers.errors import counted
from ceopt.words.sentences import limit_said, rule_said, value_phrase

if TYPE_CHECKING:
    from ceopt.formulations.constraints.rule import Point
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.limits import Limit
    from ceopt.formulations.space.reachable import Reach
    from ceopt.search.prepare import Prepared
    from ceopt.search.solve_program import Person
    from ceopt.solvers.checks import Floats

# ==== The settings of a space as rules that can be dropped one by one: fixed, one-way, bounds, steps ==================

#: Where the program needs a bound and the user's is dropped, it lies this many times the column's spread further out.
WIDE = 10.0


@final
@dataclass(frozen=True, slots=True)
class SpaceRule:
    """One thing that the user has set about one column, or the step that was seen in its data.

    Parameters
    ----------
    feature
        The column as it is described.
    word, sentence
        The rule in short ("at most 9"), and as a sentence about the column.
    dropped
        Fields of the feature without the rule.
    elastic
        The same as a rule that can be widened; None for steps and for fixed levels.
    """

    feature: Feature
    word: str
    sentence: str
    dropped: Mapping[str, Any]
    elastic: AbstractElastic | None

    @property
    def name(self) -> str:
        """The rule as results name it: "age: fixed"."""
        return f"{self.feature.name}: {self.word}"

    def keeps(self, factual: Point, point: Point, others: Sequence[SpaceRule]) -> bool:
        """Whether a point keeps this rule, whatever it does to the column's other ones."""
        alone = without(FeatureSpace([self.feature]), [rule for rule in others if rule is not self])
        name = self.feature.name
        return reach_of(alone, {name: factual[name]})[name].holds(point[name])


def space_rules(space: FeatureSpace, factual: Point) -> tuple[SpaceRule, ...]:
    """Return all that the user has set, and steps seen in the data; bounds seen there, and levels, are no rules."""
    return tuple(rule for feature in space for rule in _rules_of(feature, factual[feature.name]))


def without(space: FeatureSpace, dropped: Collection[SpaceRule]) -> FeatureSpace:
    """Return the space without some of its rules.

    What is measured by a column's range is so still where a bound is dropped, so that the user's own rules mean the
    same.
    """
    fields: dict[str, dict[str, Any]] = {}
    for rule in dropped:
        feature = rule.feature
        had = {} if feature.is_finite else {"range": feature.scale("range")}
        fields.setdefault(feature.name, had).update(rule.dropped)
    return FeatureSpace(
        [replace(feature, **fields[feature.name]) if feature.name in fields else feature for feature in space]
    )


def wide_interval(feature: Feature, x0: float, had: Interval, got: Interval, data: Floats | None) -> Interval:
    """Return the interval ``got`` with bounds far out where it lacks some that the narrower one ``had``.

    They lie ten spreads beyond what is known of the column, its data included, as many models need finite bounds.
    """
    known = [x0, had.lower, had.upper, got.lower, got.upper, feature.lower, feature.upper]
    if data is not None and len(data):
        known += [float(data.min()), float(data.max())]
    known = list(filter(math.isfinite, known))
    spread = max(max(known) - min(known), feature.range or 0.0) or max(map(abs, known), default=1.0) or 1.0
    least, most = feature.coordinate_limits
    lower = got.lower
    upper = got.upper
    if math.isfinite(had.lower) and not math.isfinite(lower):
        lower = max(min(known) - WIDE * spread, least)
    if math.isfinite(had.upper) and not math.isfinite(upper):
        upper = min(max(known) + WIDE * spread, most)
    if (lower, upper) == (got.lower, got.upper):
        return got
    return got.narrowed(lower, upper)


def _stays(name: str, current: str, phrase: Phrase, x0: float) -> Said:
    """Return that a column stays as it is, in words."""
    if x0 == MISSING:
        return said(f"{name} must stay missing", "stays_missing", column=name)
    return said(f"{name} must stay {current}", "must_stay", column=name, value=phrase)


def _rules_of(feature: Feature, x0: float) -> Iterator[SpaceRule]:
    name = feature.name
    is_number = not feature.is_finite
    current = repr(feature.from_coordinate(x0))
    if x0 == MISSING:
        current = "missing"
    elif is_number:
        current = _text(x0)
    phrase = value_phrase(feature, feature.from_coordinate(x0))
    is_label = feature.is_label(x0)
    may_be_label = is_label or bool(reach_of(FeatureSpace([feature]), {name: x0})[name].labels)
    if is_label and (math.isinf(feature.fill) or (x0 == MISSING and feature.missing == "stays")):
        sentence = _stays(name, current, phrase, x0)
        free: dict[str, Any] = {"fill": 1.0}
        if feature.missing == "stays":
            free["missing"] = True
        yield SpaceRule(feature, "stays missing" if x0 == MISSING else "on a code", sentence, free, None)
    if not feature.mutable:
        row = Linear({name: 1.0}, "==", x0) if is_number and not is_label else None
        sentence = _stays(name, current, phrase, x0)
        yield SpaceRule(feature, "fixed", sentence, {"mutable": True}, row)
    if feature.direction != "any" and not is_label:
        if feature.direction == "increasing":
            word = "increase"
            sense = ">="
            template = "may_only_rise"
        else:
            word = "decrease"
            sense = "<="
            template = "may_only_fall"
        row = None if may_be_label else Linear({name: 1.0}, sense, x0)  # type: ignore[arg-type]  # of the two above
        sentence = said(f"{name} may only {word} from {current}", template, column=name, value=phrase)
        yield SpaceRule(feature, f"may only {word}", sentence, {"direction": "any"}, row)
    if not is_label:
        yield from _limits_of(feature, x0, may_be_label=may_be_label)
    yield from _bounds_of(feature, x0, may_be_label=may_be_label)
    if feature.step is not None and not is_label and not (feature.codes and feature.kind == "continuous"):
        word = f"steps of {_text(feature.step)}"
        step = value_phrase(feature, feature.step)
        sentence = said(
            f"{name} moves in {word} from {current}", "moves_in_steps", column=name, step=step, value=phrase
        )
        if feature.step_inferred:
            text = f"{name} moves in {word} from {current}, as its data do"
            sentence = said(text, "moves_in_steps_of_data", column=name, step=step, value=phrase)
        yield SpaceRule(feature, word, sentence, {"step": None}, None)


def _limits_of(feature: Feature, x0: float, *, may_be_label: bool) -> Iterator[SpaceRule]:
    """Give the limits about the person."""
    lowest, highest = limits_of(feature, x0)
    if feature.max_down is not None:
        row = None if may_be_label else Linear({feature.name: 1.0}, ">=", lowest)
        word = f"max_down {_limit(feature.max_down)}"
        yield SpaceRule(feature, word, limit_said(feature, "down", x0), {"max_down": None}, row)
    if feature.max_up is not None:
        row = None if may_be_label else Linear({feature.name: 1.0}, "<=", highest)
        word = f"max_up {_limit(feature.max_up)}"
        yield SpaceRule(feature, word, limit_said(feature, "up", x0), {"max_up": None}, row)


def _limit(limit: Limit) -> str:
    if isinstance(limit, str):
        return limit
    return _text(limit)


def _bounds_of(feature: Feature, x0: float, *, may_be_label: bool) -> Iterator[SpaceRule]:
    """Give the bounds that the user has set; who stands outside may stay or come nearer."""
    name = feature.name
    has_amount = not feature.is_label(x0)
    if math.isfinite(feature.lower) and not feature.lower_inferred:
        word = f"at least {_text(feature.lower)}"
        text = f"{name} must be {word}"
        template = "at_least"
        if has_amount and x0 < feature.lower:
            text += no_further_words()
            template = "at_least_or_as_today"
        row = None if may_be_label else Linear({name: 1.0}, ">=", feature.lower, beyond="no_further")
        sentence = said(text, template, column=name, value=value_phrase(feature, feature.lower))
        yield SpaceRule(feature, word, sentence, {"lower": -math.inf}, row)
    if math.isfinite(feature.upper) and not feature.upper_inferred:
        word = f"at most {_text(feature.upper)}"
        text = f"{name} must be {word}"
        template = "at_most"
        if has_amount and x0 > feature.upper:
            text += no_further_words()
            template = "at_most_or_as_today"
        row = None if may_be_label else Linear({name: 1.0}, "<=", feature.upper, beyond="no_further")
        sentence = said(text, template, column=name, value=value_phrase(feature, feature.upper))
        yield SpaceRule(feature, word, sentence, {"upper": math.inf}, row)


def _text(value: float) -> str:
    return str(np.format_float_positional(value, trim="-"))


# ==== The rules in conflict ===========================================================================================

#: Rule name, sentence, how much wider it would have to be.
Entry: TypeAlias = tuple[str, str, float | None]
Chosen: TypeAlias = frozenset[int]
_INTERRUPTED: Final = said("it was interrupted", "was_interrupted")


@final
@dataclass(frozen=True, slots=True)
class Conflict:
    """What was found out.

    Parameters
    ----------
    entries
        The rules in conflict; none where no rule of the user's is to blame. Where the search ended early these are the
        fewest that are known to leave no answer, with the space as it is.
    reason
        One sentence or two, for the result.
    """

    entries: tuple[Entry, ...]
    reason: str


def conflict_of(
    relaxer: Relaxer, person: Person, *, reach_of: Callable[[FeatureSpace], Reach], keep_on_interrupt: bool = True
) -> Conflict:
    """Find the user's rules in conflict, for a question proved infeasible.

    The space (bounds, directions, fixed columns, steps) and the target are the background. Where they alone leave no
    answer, it is the rules of the space, column by column, that are looked into.

    Parameters
    ----------
    relaxer
        Model, rules and deadline.
    person
        Who is asked about.
    reach_of
        What each column may become, for a space.
    keep_on_interrupt
        Whether Ctrl-C ends the search and keeps what is known, or goes on as KeyboardInterrupt.
    """
    rules = _Rules(relaxer.prepared.settings.rules, person)
    search = _Filter(relaxer, rules)
    try:
        if not rules.names or search.is_empty(frozenset()):
            listed = _OfSpace(relaxer.prepared, person, reach_of)
            search = _Filter(relaxer, listed)
            if not listed.names or search.is_empty(frozenset()):
                return Conflict((), _nothing(listed))
        elif rules.growing:
            search.is_empty(search.all - rules.growing)  # where growing did not help, what grows is not to blame
        core = search.core()
    except _UnknownError as error:
        return _unfinished(search, error.why)
    except OutOfTimeError:
        return _unfinished(search, LATE)
    except KeyboardInterrupt:
        if not keep_on_interrupt:
            raise
        return _unfinished(search, _INTERRUPTED)
    return _with_widths(search, core, keep_on_interrupt=keep_on_interrupt)


def _with_widths(search: _Filter, core: Sequence[int], *, keep_on_interrupt: bool) -> Conflict:
    """Give each rule in conflict the least amount by which relaxing this rule restores feasibility."""
    widths = _Widths(search, keep_on_interrupt=keep_on_interrupt)
    entries: list[Entry] = []
    words: list[str] = []
    for k in core:
        entries.append((search.rules.names[k], search.rules.sentences[k], widths.of(k)))
        words.append(widths.words(k, entries[-1]))
    whatever = ""
    if isinstance(search.rules, _OfSpace):
        whatever = ", whatever other rules there are"
    names = tuple(name for name, _, _ in entries)
    reason = said(f"In conflict{whatever}: {', '.join(words)}.", "in_conflict", rules=names)
    if not widths.why:
        return Conflict(tuple(entries), reason)
    early = f"The search for what would do ended early, as {widths.why}."
    return Conflict(tuple(entries), together(reason, said(early, "widths_unfinished", why=widths.why)))


# ---- what may be dropped ---------------------------------------------------------------------------------------------
class _Listed(Protocol):
    """Rules that can be dropped: of the user, or of the space."""

    names: tuple[str, ...]
    sentences: tuple[str, ...]
    elastic: tuple[AbstractElastic | None, ...]

    def under(self, chosen: Chosen) -> tuple[Person, Sequence[AbstractRule]]:
        """Return who is asked, and the rules to build, where only those chosen hold."""

    def others(self, k: int) -> tuple[Person, Sequence[AbstractRule]]:
        """Return the same where all of the user's rules hold but one, and those that widen themselves as they may."""

    def kept(self, point: Point) -> Chosen:
        """Return which a point keeps."""


@final
class _Rules:
    """The rules that were passed as constraints."""

    def __init__(self, rules: Sequence[AbstractRule], person: Person) -> None:
        self.rules = tuple(rules)
        self.person = person
        self.names = tuple(rule_name(rule, place) for place, rule in enumerate(rules))
        self.sentences = tuple(rule_said(rule, person.space) for rule in rules)
        self.elastic = tuple(rule if isinstance(rule, AbstractElastic) else None for rule in rules)
        self.growing = frozenset(k for k, rule in enumerate(rules) if widens_itself(rule))

    def under(self, chosen: Chosen) -> tuple[Person, Sequence[AbstractRule]]:
        return self.person, [rule for k, rule in enumerate(self.rules) if k in chosen]

    def others(self, k: int) -> tuple[Person, Sequence[AbstractRule]]:
        return self.under(frozenset(range(len(self.rules))) - {k})

    def kept(self, point: Point) -> Chosen:
        space = self.person.space
        factual = self.person.factual
        return frozenset(k for k, rule in enumerate(self.rules) if not rule.violation(space, factual, point) > 0)


@final
class _OfSpace:
    """The rules that the user has set in the space."""

    def __init__(self, prepared: Prepared, person: Person, reach_of: Callable[[FeatureSpace], Reach]) -> None:
        self.prepared = prepared
        self.person = person
        self.reach_of = reach_of
        self.rules = space_rules(person.space, person.factual)
        self.names = tuple(rule.name for rule in self.rules)
        self.sentences = tuple(rule.sentence for rule in self.rules)
        self.elastic = tuple(rule.elastic for rule in self.rules)

    def under(self, chosen: Chosen) -> tuple[Person, Sequence[AbstractRule]]:
        dropped = [rule for k, rule in enumerate(self.rules) if k not in chosen]
        space = without(self.person.space, dropped)
        reach = dict(self.reach_of(space))
        data = self.prepared.target_rows
        for place, feature in enumerate(self.person.space):
            name = feature.name
            before = self.person.reach[name]
            after = reach[name]
            if isinstance(before, Interval) and isinstance(after, Interval):
                column = None if data is None else data[:, place]
                reach[name] = wide_interval(feature, self.person.factual[name], before, after, column)
        return replace(self.person, space=space, reach=reach), ()

    def others(self, k: int) -> tuple[Person, Sequence[AbstractRule]]:
        person, _ = self.under(frozenset(range(len(self.rules))) - {k})
        return person, [rule for rule in self.prepared.settings.rules if not widens_itself(rule)]

    def kept(self, point: Point) -> Chosen:
        return frozenset(k for k, rule in enumerate(self.rules) if rule.keeps(self.person.factual, point, self.rules))


# ---- which of them are in conflict -----------------------------------------------------------------------------------
class _UnknownError(Exception):
    """A program was neither solved nor proved empty."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@final
@dataclass(slots=True)
class _Filter:
    """Finds an irreducible infeasible subset of rules that are together infeasible.

    What a solve tells is remembered: a point serves every set of rules that it keeps, a proof every larger set.

    Attributes
    ----------
    empty
        Sets that are known to leave no answer.
    kept
        Of each point met, the rules that it keeps.
    """

    relaxer: Relaxer
    rules: _Listed
    empty: list[Chosen] = field(init=False)
    kept: list[Chosen] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.empty = [self.all]

    @property
    def all(self) -> Chosen:
        """Every rule."""
        return frozenset(range(len(self.rules.names)))

    def is_known_empty(self, chosen: Chosen) -> bool:
        """Whether some rules are known to leave no answer."""
        return any(core <= chosen for core in self.empty)

    def is_empty(self, chosen: Chosen) -> bool:
        """Whether some rules are infeasible, by earlier results or by a program.

        Raises
        ------
        _UnknownError
            The program was neither solved nor proved empty.
        """
        if self.is_known_empty(chosen):
            return True
        if any(chosen <= kept for kept in self.kept):
            return False
        found = self.relaxer.least(*self.rules.under(chosen))
        if found.is_empty:
            self.empty.append(chosen)
            return True
        if found.point is None:
            raise _UnknownError(found.reason)
        kept = chosen | self.rules.kept(found.point)
        if self.is_known_empty(kept):  # a point may keep more to the solver's tolerance than a proof says is possible
            kept = chosen
        self.kept.append(kept)
        return False

    def core(self) -> tuple[int, ...]:
        """Return an irreducible set that leaves no answer, in the user's order.

        First a set grows until it leaves none: a point is found, and a rule that it breaks is added. Points are quick
        to find; the one proof comes last. Then each rule is left out in turn, but for those that some point breaks
        alone, which are known to be needed.
        """
        untested = sorted(self._grown(min(self.empty, key=len)))
        needed = set[int]()
        while untested:
            candidates = needed.union(untested)
            for kept in self.kept:
                broken = candidates - kept
                if len(broken) == 1:  # some point breaks this rule alone
                    needed |= broken
            untested = [k for k in untested if k not in needed]
            if untested and not self.is_empty(frozenset(candidates - {untested[0]})):
                needed.add(untested[0])
            untested = untested[1:]
        return tuple(sorted(needed))

    def _grown(self, known: Chosen) -> Chosen:
        """Return an infeasible subset of an infeasible set of rules, smaller where one is quickly found."""
        grown: Chosen = frozenset()
        while not self.is_empty(grown):
            broken = Counter[int]()
            for kept in self.kept:
                if grown <= kept:
                    broken.update(sorted(known - kept))
            if not broken:  # a point that keeps them all, to the solver's tolerance
                return known
            grown |= {broken.most_common(1)[0][0]}
        return grown


# ---- how much wider each would have to be ----------------------------------------------------------------------------
@final
class _Widths:
    """Least relaxation of each rule with all of the user's other rules kept."""

    def __init__(self, search: _Filter, *, keep_on_interrupt: bool) -> None:
        self.search = search
        self.keep_on_interrupt = keep_on_interrupt
        self.why = ""
        self.hopeless = set[int]()

    def of(self, k: int) -> float | None:
        """Return the least relaxation; None where no amount helps, the rule has no amount, or time ran out."""
        search = self.search
        rule = self.search.rules.elastic[k]
        if rule is None or self.why == _INTERRUPTED:
            return None
        is_of_user = isinstance(search.rules, _Rules)
        if is_of_user and search.is_known_empty(search.all - {k}):
            self.hopeless.add(k)
            return None
        try:
            found = search.relaxer.least(*search.rules.others(k), [rule])
        except KeyboardInterrupt:
            if not self.keep_on_interrupt:
                raise
            self.why = _INTERRUPTED
            return None
        if found.is_empty:
            self.hopeless.add(k)
        elif found.point is None or not found.is_least:
            self.why = self.why or found.reason or LATE
        if found.point is None:
            return None
        return found.widths[0]

    def words(self, k: int, entry: Entry) -> str:
        """Return a rule in conflict as the reason names it."""
        name, sentence, width = entry
        remarks = []
        if isinstance(self.search.rules, _Rules):
            remarks.append(sentence)
        if width is not None:
            remarks.append(f"{np.format_float_positional(width, trim='-')} wider would do")
        if k in self.hopeless:
            remarks.append("no width of it alone would do")
        if not remarks:
            return name
        return f"{name} ({'; '.join(remarks)})"


# ---- in words --------------------------------------------------------------------------------------------------------
def _nothing(listed: _OfSpace) -> str:
    moved = any({"lower", "upper"} & rule.dropped.keys() for rule in listed.rules)
    text = "No rule is to blame: nothing within the data's range reaches the target"
    if not moved:
        return said(f"{text}.", "none_to_blame")
    even = f"even with its bounds moved outwards by {WIDE:g} times its spread"
    return said(f"{text}, {even}.", "none_to_blame_even_wider", times=WIDE)


def _unfinished(search: _Filter, why: str) -> Conflict:
    """Return how far the search for the rules in conflict got: the fewest that are known to leave no answer."""
    rules = search.rules
    smallest: Chosen = min(search.empty, key=len)
    fewest = sorted(smallest)
    names = tuple(rules.names[k] for k in fewest)
    ended = f"the search for them ended after {counted(search.relaxer.solves, 'solve')}, as {why}."
    if fewest:
        text = f"The rules in conflict are among {', '.join(names)}; {ended}"
        reason = said(text, "conflict_unfinished", rules=names, why=why)
    else:
        reason = said(f"No rule is needed for that; {ended}", "none_needed", why=why)
    return Conflict(tuple((rules.names[k], rules.sentences[k], None) for k in fewest), reason)

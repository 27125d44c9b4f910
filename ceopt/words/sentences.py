"""Sentences of results: what to change, how a search ended and why, rules in conflict; rules and targets as phrases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from ceopt.base.said import Phrase, Said, phrases_of, said
from ceopt.formulations.constraints import (
    RULES,
    AllowedRows,
    AllowedTransitions,
    AllowedValues,
    Causal,
    ExactlyOne,
    Hull,
    IfThen,
    Linear,
    MaxChanges,
    MaxMove,
    NotAnOutlier,
    Product,
    Ratio,
    Region,
    RobustToShift,
    RobustValidity,
    rule_name,
)
from ceopt.formulations.constraints.causal_structure import parse_equations
from ceopt.formulations.space.feature import MISSING, is_gap
from ceopt.formulations.space.limits import allowance
from ceopt.formulations.space.reachable import Levels, limit_words, limits_that_bind, removed_by, stepped
from ceopt.formulations.space.space import RuleWarning, warn
from ceopt.formulations.targets import (
    AtLeast,
    AtMost,
    Between,
    DisagreementOf,
    Labels,
    OtherThan,
    Probability,
    ProbabilityOf,
    Target,
    parse_target,
)
from ceopt.solvers.checks import plain
from ceopt.solvers.errors import CeoptError, printable
from ceopt.tolerances import DIGIT_NOISE
from ceopt.words.language import (
    ALL_OF,
    AMOUNT,
    ANY_OF,
    FIELDS,
    LEVEL,
    TERMS,
    Language,
    exact,
    is_number,
    language_of,
    tidied,
    told_move,
)

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.base.results import Status
    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.limits import Limit, Side
    from ceopt.formulations.space.reachable import Interval, Reach
    from ceopt.formulations.space.space import FeatureSpace

# ==== The sentences of one answer: what to change, from what to what, and what follows from it ========================

#: Texts of two levels that mean no and yes.
_TRUTHS: Final = (("no", "yes"), ("n", "y"), ("false", "true"), ("0", "1"))


class ToldAnswer(Protocol):
    """What the sentences say of a :class:`~ceopt.Counterfactual`."""

    @property
    def values(self) -> pd.Series[Any]:
        """The answer."""

    @property
    def factual(self) -> pd.Series[Any] | None:
        """The person's row."""

    @property
    def space(self) -> FeatureSpace | None:
        """The columns."""

    @property
    def changed(self) -> tuple[str, ...]:
        """Names of the columns that change."""

    @property
    def actions(self) -> pd.Series[Any] | None:
        """Interventions by column."""

    @property
    def asked_by(self) -> Mapping[str, tuple[str, ...]]:
        """Rules that alone ask for a column's change."""

    @property
    def printed(self) -> Mapping[str, tuple[float, float]]:
        """What sentences and tables print for a column's value, where it is not that value."""

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:
        """Between which amounts a number that is filled in would do as well."""

    @property
    def rules(self) -> Mapping[str, str]:
        """The sentence of each rule by name."""

    def why(self, name: str) -> str:
        """Return "action" or "consequence"."""


def sentences_of(
    answer: ToldAnswer, names: Sequence[str], language: Language, today: Mapping[str, Decimal] | None = None
) -> list[str]:
    """Return one sentence for each of some columns; ``today`` has the digits of the person's own numbers, if given."""
    own = today or {}
    before = answer.factual
    after = answer.values
    assert before is not None  # noqa: S101 - the caller has seen to it
    sentences = []
    for name in names:
        is_action = answer.why(name) == "action"
        done = None
        if answer.actions is not None and is_action:
            done = answer.actions[name]
        feature = feature_of(answer.space, name)
        printed = answer.printed.get(name, (None,))[0]
        sentence = change_sentence(
            name, before[name], after[name], feature, language, done=done, is_action=is_action, printed=printed,
            span=answer.ranges.get(name), today=own.get(name),
        )  # fmt: skip
        asking = answer.asked_by.get(name, ())
        if asking:
            rules = tuple(_rule_named(rule, answer.rules, language) for rule in asking)
            sentence = language.put("for_rule", change=sentence, rules=language.field(rules))
        sentences.append(sentence)
    return sentences


def today_in_digits(answers: Iterable[ToldAnswer]) -> dict[str, Decimal]:
    """Return the digits of a person's own numbers that do for each of some answers."""
    today: dict[str, Decimal] = {}
    for answer in answers:
        before = answer.factual
        assert before is not None  # noqa: S101 - the caller has seen to it
        for name in answer.changed:
            feature = feature_of(answer.space, name)
            if _kind(feature, before[name], answer.values[name]) != "number":
                continue
            printed = answer.printed.get(name, (None,))[0]
            first, _ = told_move(before[name], answer.values[name], feature, printed)
            today[name] = min(first, today.get(name, first), key=lambda number: number.as_tuple().exponent)
    return today


def _rule_named(name: str, rules: Mapping[str, str], language: Language) -> str:
    """Return a rule by the name that its user gave it, or else by what it says."""
    rule = name
    if not has_given_name(name) and name in rules:
        rule = language.say(rules[name])
    return language.put("the_rule", rule=language.put("quoted", value=rule))


def has_given_name(name: str) -> bool:
    """Whether a rule's name in a result is its user's, rather than its class and place."""
    kind, _, place = name.rpartition("_")
    return not (place.isdigit() and kind in RULES)


def feature_of(space: FeatureSpace | None, name: str) -> Feature | None:
    """Return the description of a column, if there is one."""
    if space is None or name not in space:
        return None
    return space[name]


def change_sentence(
    name: str, before: Any, after: Any, feature: Feature | None, language: Language, *, done: Any = None,
    is_action: bool = True, printed: float | None = None, span: tuple[float, float] | None = None,
    today: Decimal | None = None,
) -> str:  # fmt: skip
    """Return what happens to one column in a sentence.

    Parameters
    ----------
    name
        The column.
    before, after
        Its values.
    feature
        What the column is; None where nobody knows: then the values have to tell.
    language
        Says it.
    done
        What a causal model has the person do: the value to set, or the amount to shift by.
    is_action
        False for what follows by a causal model.
    printed
        What a number is printed as; None: digit for digit.
    span
        The least and the greatest amount that would do as well as one that is filled in; None where nobody knows.
    today
        The digits of the number of today; None: as few as do for this move.
    """
    kind = _kind(feature, before, after)
    unit = unit_of(feature)
    if kind == "number":
        first, second = told_move(before, after, feature, printed)
        if today is not None:
            first = today
        template, fields = _of_numbers((before, first), (after, second), unit, language, done)
    elif kind == "label":
        amount = after if printed is None else printed
        template, fields = _of_labels(before, amount, feature, span, language)
    else:
        template, fields = _of_levels(kind, before, after, feature, language)
    fields["unit"] = printable(unit or "")
    fields.setdefault("start", fields["before"])
    if not is_action:
        template = "follows"
    elif _is_same(before, after):
        template = "hold_missing" if is_gap(after) else "hold"
    return language.put(template, column=language.column(name), **fields)


def unit_of(feature: Feature | None) -> str | None:
    """Return the unit of a column; None without one."""
    if feature is None or not feature.unit:
        return None
    return feature.unit


def name_with_unit(feature: Feature) -> str:
    """Return a column's name, and its unit in brackets if it has one."""
    if not feature.unit:
        return feature.name
    return f"{feature.name} ({feature.unit})"


def truths(levels: Sequence[Any]) -> Mapping[Any, bool] | None:
    """Return which of two levels means yes and which no; None where they mean something else."""
    if len(levels) != 2:
        return None
    texts = [str(level).strip().casefold() for level in levels]
    for no, yes in _TRUTHS:
        if sorted(texts) == sorted((no, yes)):
            return {level: text == yes for level, text in zip(levels, texts, strict=True)}
    return None


# ---- kinds of columns ------------------------------------------------------------------------------------------------
def _kind(feature: Feature | None, before: Any, after: Any) -> str:
    """Return "label", "number", "truth", "order" or "choice": how a column's change is told."""
    if is_no_amount(feature, before) or is_no_amount(feature, after):
        return "label"
    if feature is None or not feature.is_finite:
        if is_number(before) and is_number(after):
            return "number"
        if feature is None and isinstance(before, bool) and isinstance(after, bool):
            return "truth"
        return "choice"
    if not _is_level(feature, before) or not _is_level(feature, after):
        return "choice"
    if feature.kind == "ordinal":
        return "order"
    if feature.kind == "binary" and truths(feature.levels) is not None:
        return "truth"
    return "choice"


def _is_level(feature: Feature, value: Any) -> bool:
    try:
        feature.rank(value)
    except CeoptError:
        return False
    return True


def _is_same(before: Any, after: Any) -> bool:
    if is_gap(before) or is_gap(after):
        return is_gap(before) and is_gap(after)
    try:
        return bool(before == after)
    except (TypeError, ValueError):  # pd.NA is neither equal to anything nor different
        return before is after


def _of_numbers(
    start: tuple[float, Decimal], end: tuple[float, Decimal], unit: str | None, language: Language, done: Any
) -> tuple[str, dict[str, str]]:
    """Return the template of a number that moves, each with its digits, and its fields."""
    before, first = start
    after, second = end
    start_digits = first
    if abs(float(first) - before) > DIGIT_NOISE * abs(before):  # what is added to the person's own number is all of it
        start_digits = exact(before)
    fields = {
        "before": language.first_amount(first, unit),
        "start": language.amount(first, unit),
        "after": language.amount(second, unit),
        "by": language.amount(abs(second - start_digits), unit),
    }
    if before == after:
        fields["before"] = fields["start"]
    if _is_part(done, before, after):
        fields["done"] = language.amount(abs(tidied(float(done))), unit)
        return _upwards("raise_part", "lower_part", done > 0), fields
    return _upwards("raise", "lower", after > before), fields


def _upwards(up: str, down: str, is_up: bool) -> str:
    """Return the template of a way up or down."""
    if is_up:
        return up
    return down


def _is_part(done: Any, before: float, after: float) -> bool:
    """Whether what is done is another amount than the whole move, and no value that is set."""
    if not is_number(done) or done in {0, after} or before == after:
        return False
    return not math.isclose(done, after - before)


def _of_levels(
    kind: str, before: Any, after: Any, feature: Feature | None, language: Language
) -> tuple[str, dict[str, str]]:
    """Return the template of a level that becomes another, and its fields."""
    if kind == "truth":
        means: Mapping[Any, bool] = {False: False, True: True}
        if feature is not None:
            means = truths(feature.levels) or means
        fields = {"before": language.truth(means[before]), "after": language.truth(means[after])}
        return _upwards("switch_on", "switch_off", means[after]), fields
    fields = {"before": language.level(before), "after": language.level(after)}
    if kind == "order" and feature is not None:
        return _upwards("raise_level", "lower_level", feature.rank(after) > feature.rank(before)), fields
    return "change", fields


def is_no_amount(feature: Feature | None, value: Any) -> bool:
    """Whether a value is missing, or a code of its column."""
    if feature is None:
        return is_gap(value)
    return feature.is_label_value(value)


def _of_labels(
    before: Any, after: Any, feature: Feature | None, span: tuple[float, float] | None, language: Language
) -> tuple[str, dict[str, str]]:
    """Return the template of a cell that is filled in, goes, or becomes a code, and its fields."""
    fields = {"before": _said(feature, before, language), "after": _said(feature, after, language)}
    if is_gap(after):
        return "leave_blank", fields
    if is_no_amount(feature, after):
        return "change", fields
    template = "fill" if is_gap(before) else "fill_code"
    if feature is None or span is None:
        return template, fields
    is_all_below, is_all_above = _goes_all_the_way(feature, span)
    if is_all_below and is_all_above and span[0] != span[1]:
        return f"{template}_any", {**fields, "after": language.put("any_amount", value=fields["after"])}
    fields["after"] = _span(feature, fields["after"], span, language)
    return template, fields


def _said(feature: Feature | None, value: Any, language: Language) -> str:
    return language.phrase(value_phrase(feature, value))


def _span(feature: Feature, amount: str, span: tuple[float, float], language: Language) -> str:
    """Return the amounts that would do as well; an end that is as far as the column goes needs no number."""
    low, high = span
    if low == high:
        return amount
    is_all_below, is_all_above = _goes_all_the_way(feature, span)
    if is_all_above:
        return language.put("or_more", value=_said(feature, low, language))
    if is_all_below:
        return language.put("or_less", value=_said(feature, high, language))
    first = language.first_amount(low, feature.unit)
    return language.put("any_between", low=first, high=_said(feature, high, language))


def _goes_all_the_way(feature: Feature, span: tuple[float, float]) -> tuple[bool, bool]:
    """Return whether a span goes as far down, and as far up, as its column."""
    low, high = span
    spacing = feature.spacing or 0.0
    is_all_below = low == feature.lower or low - spacing < feature.lower
    is_all_above = high == feature.upper or high + spacing > feature.upper
    return is_all_below, is_all_above


# ==== A whole result in words: how it ended, why, which rules are in conflict, and each way out =======================

#: Phrases that list the rules in conflict, which have lines of their own.
_LISTED: Final = {"in_conflict": "conflict_found", "conflict_unfinished": "conflict_among"}


class ToldResult(Protocol):
    """What the sentences say of a :class:`~ceopt.SolutionSet`."""

    @property
    def status(self) -> Status:
        """Why the search ended."""

    @property
    def target(self) -> str:
        """The target in words."""

    @property
    def reason(self) -> str:
        """Why."""

    @property
    def conflict(self) -> tuple[tuple[str, str, float | None], ...]:
        """(rule, sentence, width) of each rule in conflict."""

    @property
    def removed(self) -> Mapping[str, str]:
        """What was out of reach, by column."""

    @property
    def rules(self) -> Mapping[str, str]:
        """The sentence of each rule by name."""

    @property
    def beyond(self) -> Mapping[str, str]:
        """What to write in the place of each rule that the row breaks, by name."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ResultInWords:
    """A result in sentences of one language.

    Parameters
    ----------
    status
        How the search ended.
    reasons
        Why, in sentences; without the rules in conflict.
    conflict_head, conflict
        What is said before the rules in conflict, or empty; and one line a rule.
    answers
        Of each answer in the order of ranks, one sentence a column that changes or is held.
    ways
        Each answer as one line.
    rules
        One line a rule that was imposed.
    beyond
        One line a rule that the person breaks today.
    out_of_reach
        One line a column of what the person could not do from the start.
    """

    status: str
    reasons: tuple[str, ...]
    conflict_head: str
    conflict: tuple[str, ...]
    answers: tuple[tuple[str, ...], ...]
    ways: tuple[str, ...]
    rules: tuple[str, ...]
    beyond: tuple[str, ...]
    out_of_reach: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return how it ended, why, and the ways out or the rules in conflict, a line each."""
        lines = (self.status, *self.reasons, self.conflict_head, *self.conflict, *self.ways)
        return list(filter(None, lines))


def in_words(
    result: ToldResult, language: str | Language = "en", templates: Mapping[str, str] | None = None
) -> ResultInWords:
    """Return a result in sentences of a language, part by part.

    Parameters
    ----------
    result
        A :class:`~ceopt.SolutionSet`, also one that was read from JSON.
    language
        "en" or "de"; where many results are told, a language as ``language_of`` gives it.
    templates
        Templates that replace some of the language's; :func:`ceopt.words.templates` has their names.

    Raises
    ------
    UnknownNameError
        A language, a template or a field of one that does not exist.

    Examples
    --------
    >>> import ceopt
    >>> from ceopt.formulations.predictors import Affine
    >>> space = ceopt.FeatureSpace([ceopt.Feature("income", kind="integer", lower=0, upper=9000, unit="euros")])
    >>> model = Affine([1.0], -3500.0, labels=("no", "yes"))
    >>> result = ceopt.explain(model, {"income": 1500}, space, target="yes")
    >>> in_words(result, "de").answers
    (('income von 1.500 auf 3.501 euros erhöhen',),)
    """
    spoken = language_of("in_words", language, templates)
    reasons = []
    head = "conflict_found"
    for phrase in phrases_of(result.reason):
        if phrase.name in _LISTED and result.conflict:
            head = _LISTED[phrase.name]
        else:
            in_place = str(phrase.fields.get("text", result.reason))  # of a phrase that this version cannot say
            reasons.append(spoken.say(Said(in_place, (phrase,))))
    answers = []
    ways = []
    for answer in result:
        sentences = tuple(sentences_of(answer, answer.listed, spoken))
        answers.append(sentences)
        changes = spoken.templates["next_change"].join(sentences)
        ways.append(spoken.put("way", rank=spoken.number(answer.rank), changes=changes))
    if not result.conflict:
        head = ""
    return ResultInWords(
        status=_status(result, spoken),
        reasons=tuple(filter(None, reasons)),
        conflict_head=spoken.templates.get(head, ""),
        conflict=tuple(_conflict_line(entry, spoken) for entry in result.conflict),
        answers=tuple(answers),
        ways=tuple(ways),
        rules=tuple(_rule_lines(result.rules, spoken)),
        beyond=tuple(beyond_lines([result], spoken)),
        out_of_reach=tuple(_removed_lines(result.removed, spoken)),
    )


def _status(result: ToldResult, language: Language) -> str:
    target = language.say(result.target)
    name = str(result.status)
    if not result.status.has_answers:
        return language.put(name, target=target)
    if len(result) == 1:
        return language.put(f"{name}_one", target=target)
    return language.put(f"{name}_many", target=target, count=language.number(len(result)))


def _conflict_line(entry: tuple[str, str, float | None], language: Language) -> str:
    name, sentence, width = entry
    line = _named_rule(name, sentence, language)
    if width is None:
        return line
    unit = _unit_in(sentence)
    wider = language.amount(width, unit)
    for phrase in phrases_of(sentence):
        limit = _limit_in(phrase)
        if limit is not None:
            enough = language.amount(exact(float(limit + exact(width))), unit)
            return language.put("conflict_wider_to", rule=line, width=wider, limit=enough)
    return language.put("conflict_wider", rule=line, width=wider)


def _limit_in(phrase: Phrase) -> Decimal | None:
    """Return the amount of a limit about the person, before it was rounded to steps; None of anything else."""
    fields = phrase.fields
    if phrase.name in {"may_rise_by_share", "may_fall_by_share"}:
        return exact(fields["share"]) / 100 * exact(fields["own"].fields["value"])
    if phrase.name in {"may_rise_by", "may_fall_by"}:
        return exact(fields.get("limit", fields["value"].fields["value"]))
    return None


def _named_rule(name: str, sentence: str, language: Language) -> str:
    line = language.say(sentence)
    is_of_space = any(name.startswith(f"{phrase.fields.get('column')}: ") for phrase in phrases_of(sentence))
    if has_given_name(name) and not is_of_space:  # what the space says ("age: fixed") names its column
        return language.put("conflict_named", name=printable(name), rule=line)
    return line


def shared_rule_said(entries: Sequence[tuple[str, str, float | None]], language: Language) -> str:
    """Return one rule that is in conflict for several people, and by how much wider it would do for how many of them.

    Where it says something else to each ("age stays at 30"), it is told as it holds of all ("age stays as it is"), or
    else called by its name ("debt: steps of 5").
    """
    name, sentence, width = entries[0]
    widths = [width for _, _, width in entries if width is not None]
    is_same = all(entry[1] == sentence for entry in entries)
    if is_same and all(entry[2] == width for entry in entries):
        return _conflict_line(entries[0], language)
    line = _named_rule(name, sentence, language) if is_same else printable(name)
    of_all = _of_all([phrases_of(entry[1]) for entry in entries])
    if not is_same and of_all is not None:
        line = language.phrase(of_all)
    if not widths:
        return line
    unit = _unit_in(sentence)
    amount = language.amount(max(widths), unit)
    if min(widths) < max(widths):
        amount = language.put("widths", least=language.first_amount(min(widths), unit), most=amount)
    return language.put("conflict_wider_for", rule=line, count=language.number(len(widths)), widths=amount)


#: What a limit says to one person -> what it says to all.
_GENERAL: Final[Mapping[str, str]] = {
    "must_stay": "stays",
    "stays_missing": "stays",
    "may_only_rise": "may_only_rise_from_today",
    "may_only_fall": "may_only_fall_from_today",
    "may_rise_by_share": "may_rise_by_share_of_today",
    "may_fall_by_share": "may_fall_by_share_of_today",
    "at_least": "at_least_or_as_today",
    "at_least_or_as_today": "at_least_or_as_today",
    "at_most": "at_most_or_as_today",
    "at_most_or_as_today": "at_most_or_as_today",
}


def _of_all(told: Sequence[Sequence[Phrase]]) -> Phrase | None:
    """Return what a limit says to all, of what it says to each; None where that is not known."""
    found: Phrase | None = None
    for phrases in told:
        if len(phrases) != 1 or phrases[0].name not in _GENERAL:
            return None
        name = _GENERAL[phrases[0].name]
        general = Phrase(name, {field: phrases[0].fields.get(field) for field in FIELDS[name]})
        if found is not None and general != found:
            return None
        found = general
    return found


def _unit_in(sentence: str) -> str:
    """Return the unit of the one number that a rule is about, or nothing."""
    for phrase in phrases_of(sentence):
        value = phrase.fields.get("value")
        if isinstance(value, Phrase) and value.name == AMOUNT:
            return str(value.fields.get("unit") or "")
    return ""


def _rule_lines(rules: Mapping[str, str], language: Language) -> Iterator[str]:
    for name, sentence in rules.items():
        line = language.say(sentence)
        if has_given_name(name):
            line = language.put("conflict_named", name=printable(name), rule=line)
        yield line


def beyond_lines(results: Sequence[ToldResult], language: Language) -> Iterator[str]:
    """Give one line for each rule that some rows break today: how many, and what to write if they may stay."""
    breaking: dict[str, list[ToldResult]] = {}
    for result in results:
        for name in result.beyond:
            breaking.setdefault(name, []).append(result)
    for name, broken in breaking.items():
        sentence = broken[-1].rules.get(name, "")
        rule = name
        if not has_given_name(name) and sentence:
            rule = language.say(sentence)
        is_moved = any(map(len, broken))
        fields = {"name": language.put("quoted", value=rule)}
        if _keeps_residual(sentence):
            yield _residual_line(fields, len(broken), len(results), language)
            continue
        if is_moved and len(results) == 1:
            text = language.put("beyond_one", **fields)
        else:
            fields |= {"count": language.number(len(broken)), "people": language.number(len(results))}
            text = language.put("beyond_many" if is_moved else "beyond_unmoved", **fields)
        yield f"{text} {_beyond_advice(broken[-1].beyond[name], sentence, language)}"


def _keeps_residual(sentence: str) -> bool:
    """Whether who misses a rule today may stay as far off: by a formula, which a row of data misses by its rounding."""
    return any(phrase.name in {"ratio", "product"} for phrase in phrases_of(sentence))


def _residual_line(fields: Mapping[str, str], count: int, people: int, language: Language) -> str:
    if people == 1:
        return language.put("residual_one", **fields)
    return language.put("residual_many", count=language.number(count), people=language.number(people), **fields)


#: Rules that cannot be made wider.
_WITHOUT_WIDTH: Final = {
    "exactly_one", "no_outlier", "region_std", "region_std_of", "region_widths", "region_widths_of", "robust_to_shift",
}  # fmt: skip


def _beyond_advice(line: str, sentence: str, language: Language) -> str:
    """Say what to do where people who are beyond a rule may stay."""
    if line:
        return language.put("beyond_line", line=line)
    if any(phrase.name in _WITHOUT_WIDTH for phrase in phrases_of(sentence)):
        return language.put("beyond_leave_out")
    return language.put("beyond_no_line")


def _removed_lines(removed: Mapping[str, str], language: Language) -> Iterator[str]:
    for name, text in removed.items():
        if isinstance(text, Said):
            yield language.say(text)
        else:
            yield printable(f"{name}: {text}")


def warn_of_rules(results: Sequence[ToldResult]) -> None:
    """Warn once of each rule that some rows break today."""
    for line in beyond_lines(results, language_of("explain", "en", {"quoted": "'{value}'"})):
        warn(f"r{line[1:]}", RuleWarning)


# ==== Rules, and what a space says of a column, as phrases: a rule's own English sentence, and what it says ===========


def rule_said(rule: AbstractRule, space: FeatureSpace) -> str:
    """Return the sentence of a rule; of one that ceopt knows, with what it says."""
    phrase_of = _PHRASES.get(type(rule))
    sentence = printable(rule.sentence())
    if phrase_of is None:
        return sentence
    return Said(sentence, (phrase_of(rule, space),))


def rules_said(rules: Iterable[AbstractRule], space: FeatureSpace) -> dict[str, str]:
    """Return the sentences of rules by the names that they bear in results."""
    return {rule_name(rule, place): rule_said(rule, space) for place, rule in enumerate(rules)}


def value_phrase(feature: Feature | None, value: Any) -> Phrase:
    """Return a value of a column: a number with its unit, yes or no, a level, or what a code means."""
    value = plain(value)
    if is_no_amount(feature, value):
        meaning = None if feature is None else feature.meaning_of(value)
        return Phrase(LEVEL, {"value": None if is_gap(value) else meaning or value})
    if feature is None or not feature.is_finite:
        if is_number(value):
            return Phrase(AMOUNT, {"value": value, "unit": unit_of(feature) or ""})
        return Phrase(LEVEL, {"value": value})
    if feature.kind == "binary":
        means = truths(feature.levels) or {}
        value = means.get(value, value)
    return Phrase(LEVEL, {"value": value})


def any_of(options: Sequence[Any]) -> Phrase:
    """Return a choice of some."""
    return Phrase(ANY_OF, {"options": tuple(options)})


# ---- one function a rule ---------------------------------------------------------------------------------------------
def _max_changes(rule: MaxChanges, _space: FeatureSpace) -> Phrase:
    one = "max_feature"
    more = "max_features"
    if rule.count == "columns":
        one = "max_column"
        more = "max_columns"
    if rule.k == 1:
        return Phrase(one, {})
    return Phrase(more, {"k": rule.k})


#: Templates of comparisons.
_COMPARISONS: Final = {"==": "equals", "!=": "is_not", "<=": "at_most", ">=": "at_least"}


def _linear(rule: Linear, space: FeatureSpace) -> Phrase:
    (column, coefficient), *others = rule.coefficients.items()
    if not others and coefficient == 1 and not space[column].is_finite:
        phrase = Phrase(_COMPARISONS[rule.sense], {"column": column, "value": value_phrase(space[column], rule.rhs)})
    else:
        terms = tuple((float(a), name) for name, a in rule.coefficients.items())
        fields = {"terms": Phrase(TERMS, {"terms": terms}), "value": float(rule.rhs)}
        phrase = Phrase(f"linear_{_COMPARISONS[rule.sense]}", fields)
    if rule.within:
        phrase = Phrase("within", {"rule": phrase, "width": float(rule.within)})
    if rule.further:
        return Phrase("or_little_further", {"rule": phrase, "width": float(rule.further)})
    return _beyond(rule, phrase)


def _beyond(rule: Linear | IfThen | AllowedRows, phrase: Phrase) -> Phrase:
    """Return a rule as it asks it of who breaks it today."""
    if rule.beyond == "meet":
        return phrase
    return Phrase("or_no_further", {"rule": phrase})


def _condition(condition: tuple[str, str, Any], space: FeatureSpace) -> Phrase:
    column, op, value = condition
    if op == "changed":
        return Phrase("changes" if value else "stays", {"column": column})
    if op == "in":
        return _one_of(column, value, space)
    return Phrase(_COMPARISONS[op], {"column": column, "value": value_phrase(space[column], value)})


def _one_of(column: str, values: Sequence[Any], space: FeatureSpace) -> Phrase:
    if len(values) == 1:
        return Phrase("equals", {"column": column, "value": value_phrase(space[column], values[0])})
    listed = tuple(value_phrase(space[column], value) for value in values)
    return Phrase("is_one_of", {"column": column, "values": listed})


def _if_then(rule: IfThen, space: FeatureSpace) -> Phrase:
    condition = _condition(rule.condition, space)
    phrase = Phrase("if_then", {"condition": condition, "result": _condition(rule.conclusion, space)})
    return _beyond(rule, phrase)


def _allowed_values(rule: AllowedValues, space: FeatureSpace) -> Phrase:
    rules = tuple(_one_of(column, tuple(values), space) for column, values in rule.values.items())
    return Phrase(ALL_OF, {"rules": rules})


def _allowed_transitions(rule: AllowedTransitions, space: FeatureSpace) -> Phrase:
    ways = []
    for level, after in rule.transitions.items():
        if after:
            before = value_phrase(space[rule.column], level)
            options = any_of([value_phrase(space[rule.column], value) for value in after])
            ways.append(Phrase("transition", {"before": before, "after": options}))
    if not ways:
        return Phrase("stays", {"column": rule.column})
    return Phrase("transitions", {"column": rule.column, "ways": tuple(ways)})


def _allowed_rows(rule: AllowedRows, _space: FeatureSpace) -> Phrase:
    phrase = Phrase("allowed_rows", {"columns": tuple(rule.columns), "count": len(rule.frame)})
    return _beyond(rule, phrase)


def _exactly_one(rule: ExactlyOne, _space: FeatureSpace) -> Phrase:
    return Phrase("exactly_one", {"columns": tuple(rule.columns)})


def _hull(rule: Hull, _space: FeatureSpace) -> Phrase:
    rows = Phrase("people_of_target", {})
    if rule.data is not None:
        rows = Phrase("people_of_data", {"count": len(rule.data)})
    if rule.columns is not None:
        rows = Phrase("people_in_columns", {"rows": rows, "columns": tuple(rule.columns)})
    if math.isinf(rule.radius) or (rule.penalty is not None and rule.radius == 0.0):
        return Phrase("hull_anywhere", {"rows": rows})
    if rule.radius == 0.0:
        return Phrase("hull_inside", {"rows": rows})
    return Phrase("hull_near", {"rows": rows, "radius": float(rule.radius)})


def _causal(rule: Causal, _space: FeatureSpace) -> Phrase:
    rules = []
    for column, equation in parse_equations(rule.equations).items():
        rules.append(Phrase("follows_from", {"column": column, "causes": tuple(equation.parents)}))
    return Phrase(ALL_OF, {"rules": tuple(rules)})


def _ratio(rule: Ratio, _space: FeatureSpace) -> Phrase:
    fields = {"column": rule.column, "numerator": rule.numerator, "denominator": rule.denominator}
    return Phrase("ratio", fields)


def _product(rule: Product, _space: FeatureSpace) -> Phrase:
    return Phrase("product", {"column": rule.column, "factors": tuple(rule.factors)})


def _robust_validity(rule: RobustValidity, _space: FeatureSpace) -> Phrase:
    if rule.radius == 0.0:
        return Phrase("robust", {"level": float(rule.level)})
    return Phrase("robust_near", {"level": float(rule.level), "radius": float(rule.radius)})


def _region(rule: Region, _space: FeatureSpace) -> Phrase:
    name = "region_std" if isinstance(rule.scale, str) else "region_widths"
    if rule.columns is None:
        return Phrase(name, {"radius": float(rule.radius)})
    return Phrase(f"{name}_of", {"radius": float(rule.radius), "columns": tuple(rule.columns)})


#: Templates of limits about a person's own value: so much, a share, one level, several levels.
_LIMITS: Final[Mapping[Side, tuple[str, str, str, str]]] = {
    "down": ("may_fall_by", "may_fall_by_share", "may_fall_by_level", "may_fall_by_levels"),
    "up": ("may_rise_by", "may_rise_by_share", "may_rise_by_level", "may_rise_by_levels"),
}


def _max_move(rule: MaxMove, space: FeatureSpace) -> Phrase:
    rules = []
    for column in rule.columns:
        if rule.up is not None:
            rules.append(_longest_move(space[column], "up", rule.up))
        if rule.down is not None:
            rules.append(_longest_move(space[column], "down", rule.down))
    phrase = Phrase(ALL_OF, {"rules": tuple(rules)})
    if rule.further:
        return Phrase("and_so_much_more", {"rule": phrase, "width": float(rule.further)})
    return phrase


def _longest_move(feature: Feature, side: Side, limit: Limit) -> Phrase:
    """Return a limit that is nobody's in particular."""
    amount, _, level, levels = _LIMITS[side]
    column = feature.name
    if isinstance(limit, str):
        share = "may_rise_by_share_of_today" if side == "up" else "may_fall_by_share_of_today"
        return Phrase(share, {"column": column, "share": float(limit.removesuffix("%"))})
    if feature.kind != "ordinal":
        return Phrase(amount, {"column": column, "value": value_phrase(feature, limit)})
    if limit == 1:
        return Phrase(level, {"column": column})
    return Phrase(levels, {"column": column, "count": limit})


#: What a rule of a class says. Of any other its own sentence stands.
_PHRASES: Final[Mapping[type, Callable[[Any, Any], Phrase]]] = {
    MaxChanges: _max_changes,
    MaxMove: _max_move,
    Linear: _linear,
    IfThen: _if_then,
    AllowedValues: _allowed_values,
    AllowedTransitions: _allowed_transitions,
    AllowedRows: _allowed_rows,
    ExactlyOne: _exactly_one,
    Hull: _hull,
    Causal: _causal,
    RobustValidity: _robust_validity,
    Ratio: _ratio,
    Product: _product,
    NotAnOutlier: lambda _rule, _space: Phrase("no_outlier", {}),
    RobustToShift: lambda rule, _space: Phrase("robust_to_shift", {"delta": float(rule.delta)}),
    Region: _region,
}


# ==== Targets, and what the space takes from a person, as phrases beside their English text ===========================


def target_said(target: Target) -> Said:
    """Return a checked target in words."""
    return Said(target.text(), (_target(target),))


def wanted_said(text: str, target: Any) -> str:
    """Return a target as a user gives it, a label, several, or an object, beside the text that says it."""
    match target:
        case OtherThan():
            return Said(text, (Phrase("target_other", {"label": _level(target.label)}),))
        case Probability():
            fields = {"label": _level(target.label), "level": float(target.at_least)}
            return Said(text, (Phrase("target_probability", fields),))
        case AtLeast() | AtMost() | Between():
            return Said(text, (_target(parse_target(target, None)),))
        case list() | set() | frozenset():
            return Said(text, (Phrase("target_labels", {"labels": any_of(list(map(_level, target)))}),))
        case str() | bool() | int() | float():
            return Said(text, (Phrase("target_labels", {"labels": _level(target)}),))
    return text


def removed_said(space: FeatureSpace, reach: Reach, factual: Mapping[str, float]) -> dict[str, str]:
    """Return, per column that lost something, what the person cannot do, and which limit about the person says so."""
    removed: dict[str, str] = {}
    for name, text in removed_by(space, reach, factual).items():
        feature = space[name]
        phrase = _removed(feature, reach[name])
        limits = [limit_said(feature, side, factual[name]) for side in limits_that_bind(feature, factual[name])]
        if limits:
            phrase = Phrase(ALL_OF, {"rules": (phrase, *chain.from_iterable(map(phrases_of, limits)))})
        removed[name] = Said(text, (phrase,))
    return removed


def limit_said(feature: Feature, side: Side, x0: float) -> str:
    """Return the sentence of a limit as it binds someone who stands at a coordinate."""
    limit = feature.max_up if side == "up" else feature.max_down
    assert limit is not None  # noqa: S101 - who asks has seen to it
    share = _LIMITS[side][1]
    words = limit_words(feature, side, x0)
    text = f"{feature.name} may {'rise' if side == 'up' else 'fall'} by no more than {words}"
    if not isinstance(limit, str):
        most = limit if feature.is_finite else float(stepped(feature, allowance(limit, x0)))
        phrase = _longest_move(feature, side, most)
        if most != limit:
            phrase = Phrase(phrase.name, {**phrase.fields, "limit": float(limit)})
        return Said(text, (phrase,))
    width = value_phrase(feature, float(stepped(feature, allowance(limit, x0))))
    own = value_phrase(feature, abs(x0))
    return said(text, share, column=feature.name, value=width, share=float(limit.removesuffix("%")), own=own)


def _target(target: Target) -> Phrase:
    match target:
        case Labels():
            labels = [_level(target.labels[place]) for place in target.wanted]
            return Phrase("target_labels", {"labels": any_of(labels)})
        case ProbabilityOf():
            label = _level(target.labels[target.position])
            return Phrase("target_probability", {"label": label, "level": float(target.at_least)})
        case DisagreementOf():
            wanted = _target(target.wanted)
            if not target.at_most:
                return Phrase("target_every_tree", {"target": wanted})
            return Phrase("target_trees", {"target": wanted, "share": float(f"{100.0 * target.at_most:.12g}")})
    if math.isinf(target.high):
        return Phrase("target_at_least", {"value": float(target.low)})
    if math.isinf(target.low):
        return Phrase("target_at_most", {"value": float(target.high)})
    return Phrase("target_between", {"low": float(target.low), "high": float(target.high)})


def _removed(feature: Feature, part: Interval | Levels) -> Phrase:
    column = feature.name

    def value(coordinate: float) -> Phrase:
        raw: Any = coordinate
        if feature.is_finite:
            raw = feature.levels[int(coordinate)]
        return value_phrase(feature, raw)

    if part.is_point and part.only == MISSING:
        return Phrase("stays_missing", {"column": column})
    if part.is_point:
        return Phrase("must_stay", {"column": column, "value": value(part.only)})
    if isinstance(part, Levels):
        lost = [value(rank) for rank in range(len(feature.levels)) if not part.holds(rank)]
        return Phrase("cannot_become", {"column": column, "values": any_of(lost)})
    if math.isinf(part.upper):
        return Phrase("at_least", {"column": column, "value": value(part.lower)})
    if math.isinf(part.lower):
        return Phrase("at_most", {"column": column, "value": value(part.upper)})
    low = value(part.lower)
    first = Phrase(low.name, {**low.fields, "first": True})
    return Phrase("stays_between", {"column": column, "low": first, "high": value(part.upper)})


def _level(label: Any) -> Phrase:
    return Phrase(LEVEL, {"value": plain(label)})

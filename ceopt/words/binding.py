"""Which rules and limits bound: what an answer just keeps, read off the answer and off what each rule says.

A rule binds where one step more of what the answer does would break it; a limit of a column, where the answer goes to
its end. A rule that alone asks for a change kept a cheaper answer out. Of a rule that no sentence says as numbers, such
as a hull, it is not known.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from ceopt.base.said import Phrase, phrases_of
from ceopt.formulations.space.reachable import Levels, limits_that_bind, reach_of
from ceopt.solvers.checks import plain
from ceopt.solvers.errors import CeoptError, printable
from ceopt.tolerances import NEAR_AN_END, SAME_VALUE
from ceopt.words.language import AMOUNT, LEVEL, TERMS, Language, is_number
from ceopt.words.sentences import ToldResult, has_given_name, limit_said, value_phrase

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.limits import Side
    from ceopt.formulations.space.space import FeatureSpace


class BoundResult(ToldResult, Protocol):
    """What is asked of a :class:`~ceopt.SolutionSet` to find what bound it."""

    @property
    def factual(self) -> pd.DataFrame:
        """The person's row."""

    @property
    def space(self) -> FeatureSpace | None:
        """What each column is."""


@final
@dataclass(frozen=True, slots=True)
class Binding:
    """One thing that bound an answer.

    Parameters
    ----------
    rank
        Of the answer.
    template
        How it is said: "bound_rule", "bound_asks", "bound_column", "bound_limit" (about the person) or "bound_seen".
    name
        Of the rule, or of the column whose limit it is.
    columns
        What a rule alone asks for.
    """

    rank: int
    template: str
    name: str
    columns: tuple[str, ...] = ()


# ==== What bound, as data =============================================================================================


def bindings_of(result: BoundResult) -> list[Binding]:
    """Return what bound each answer: rules, then limits of columns."""
    space = result.space
    if space is None:
        return []
    found = []
    for answer in result:
        asked: dict[str, list[str]] = {}
        for column, names in answer.asked_by.items():
            for name in names:
                asked.setdefault(name, []).append(column)
        for name, sentence in result.rules.items():
            if name in asked:
                found.append(Binding(answer.rank, "bound_asks", name, tuple(asked[name])))
            elif any(_is_tight(phrase, _Row(answer, space, result.rules)) for phrase in phrases_of(sentence)):
                found.append(Binding(answer.rank, "bound_rule", name))
        for column, template in _limits_reached(answer, space):
            found.append(Binding(answer.rank, template, column))
    return found


def unknown_rules(result: BoundResult) -> list[str]:
    """Return the names of rules of which nobody can tell from an answer whether they bound."""
    space = result.space
    answers = list(result)
    if space is None or not answers:
        return []
    row = _Row(answers[0], space, result.rules)
    return [
        name
        for name, sentence in result.rules.items()
        if all(_is_tight(phrase, row) is None for phrase in phrases_of(sentence))
    ]


def _limits_reached(answer: Any, space: FeatureSpace) -> Iterator[tuple[str, str]]:
    """Give the columns that an answer takes to the end of what they may become, and whether only the data end there."""
    try:
        factual = space.row(dict(answer.factual))
        reach = reach_of(space, factual)
    except CeoptError:  # a row of which no program could be made
        return
    for column in answer.changed:
        feature = space[column]
        part = reach[column]
        here = feature.to_coordinate(answer.values[column])
        is_up = here > factual[column]
        template = "bound_column"
        if ("up" if is_up else "down") in limits_that_bind(feature, factual[column]):
            template = "bound_limit"
        if isinstance(part, Levels):
            if feature.kind == "ordinal" and here == (part.ranks[-1] if is_up else part.ranks[0]):
                yield column, template
        elif _are_near(here, part.upper if is_up else part.lower):
            is_seen = feature.upper_inferred if is_up else feature.lower_inferred
            end = feature.upper if is_up else feature.lower
            is_last = _are_near(here, end) or abs(end - here) < (feature.spacing or 0.0)
            yield column, "bound_seen" if is_seen and is_last else template


def _are_near(one: float, other: float) -> bool:
    return math.isfinite(other) and abs(one - other) <= NEAR_AN_END * max(abs(other), 1.0)


# ==== Whether a rule is tight at an answer, by what it says ===========================================================

#: Comparisons of one column, or of a sum, with a number: the sign with which more of it comes nearer to the limit.
_LIMITS: Final[Mapping[str, float]] = {
    "at_most": 1.0, "at_least": -1.0, "linear_at_most": 1.0, "linear_at_least": -1.0,
}  # fmt: skip
#: Rules that say what a column is where it changes: then they bind.
_SETTLING: Final = frozenset({"equals", "is_one_of", "transitions", "ratio", "product", "follows_from"})
_COUNTS: Final = frozenset({"max_feature", "max_features"})


@final
@dataclass(frozen=True, slots=True)
class _Row:
    """An answer, its columns and the rules beside."""

    answer: Any
    space: FeatureSpace
    rules: Mapping[str, str]

    def has_changed(self, column: str) -> bool:
        return column in self.answer.changed

    def coordinate(self, column: str) -> float:
        return self.space[column].to_coordinate(self.answer.values[column])


def _is_tight(phrase: Phrase, row: _Row) -> bool | None:
    """Whether one step more would break what a phrase says; None where nobody can tell."""
    fields = phrase.fields
    try:
        if phrase.name in _COUNTS:
            return bool(_changes(row) >= fields.get("k", 1))
        if phrase.name in _LIMITS:
            return _slack(phrase, row) < _step(phrase, row)
        if phrase.name.startswith(("may_rise_by", "may_fall_by")):
            return _room(phrase, row) < _step(phrase, row)
        if phrase.name == "and_so_much_more":
            return any(_room(part, row) + fields["width"] < _step(part, row) for part in fields["rule"].fields["rules"])
        if phrase.name == "linear_equals":
            return any(map(row.has_changed, _columns(phrase)))
        if phrase.name in _SETTLING:
            return row.has_changed(fields["column"])
        if phrase.name == "exactly_one":
            return any(map(row.has_changed, fields["columns"]))
        if phrase.name in {"stays", "or_no_further"}:
            return phrase.name == "stays" or _is_tight(fields["rule"], row)
        if phrase.name == "if_then":
            return _holds(fields["condition"], row) and _is_tight(fields["result"], row)
        if phrase.name == "all_of":
            parts = [_is_tight(part, row) for part in fields["rules"]]
            return None if set(parts) <= {None} else any(parts)
    except (LookupError, TypeError, ValueError, AttributeError, CeoptError):  # of another version, or a missing cell
        return None
    return None


def _changes(row: _Row) -> int:
    """Return how many changes there are; a move within a group of which one is 1 is one."""
    changed = set(row.answer.changed)
    count = len(changed)
    for sentence in row.rules.values():
        for phrase in phrases_of(sentence):
            if phrase.name == "exactly_one":
                count -= max(len(changed & set(phrase.fields["columns"])) - 1, 0)
    return count


def _columns(phrase: Phrase) -> list[str]:
    return [column for _, column in _terms(phrase)]


def _terms(phrase: Phrase) -> Sequence[tuple[float, str]]:
    if "column" in phrase.fields:
        return [(1.0, phrase.fields["column"])]
    terms: Sequence[tuple[float, str]] = phrase.fields[TERMS].fields[TERMS]
    return terms


def _slack(phrase: Phrase, row: _Row) -> float:
    """Return by how much a comparison is kept; negative where it is not."""
    limit = phrase.fields["value"]
    if isinstance(limit, Phrase):
        limit = limit.fields["value"]
    (_, first), *others = _terms(phrase)
    if not others and not is_number(limit):  # a level of an ordinal column
        limit = row.space[first].to_coordinate(limit)
    total = math.fsum(factor * row.coordinate(column) for factor, column in _terms(phrase))
    return _LIMITS[phrase.name] * (float(limit) - total)


def _room(phrase: Phrase, row: _Row) -> float:
    """Return how much further a column may move in the direction that a limit of moves is about."""
    fields = phrase.fields
    column = fields["column"]
    before = row.space[column].to_coordinate(row.answer.factual[column])
    move = row.coordinate(column) - before
    if phrase.name.startswith("may_fall_by"):
        move = -move
    if move <= 0.0:
        return math.inf
    if "share" in fields:
        return float(fields["share"] / 100.0 * abs(before) - move)
    if "value" in fields:
        return float(fields["value"].fields["value"] - move)
    return float(fields.get("count", 1) - move)


def _step(phrase: Phrase, row: _Row) -> float:
    """Return the least step of the sum that a changed column can make; a trace where one takes any number."""
    steps = []
    for factor, column in _terms(phrase):
        if row.has_changed(column):
            feature = row.space[column]
            step = 1.0 if feature.is_finite else feature.spacing
            steps.append(abs(factor) * (step or SAME_VALUE * max(abs(row.coordinate(column)), 1.0)))
    return min(steps, default=-math.inf)


def _holds(phrase: Phrase, row: _Row) -> bool:
    """Whether a condition is met."""
    fields = phrase.fields
    column = fields["column"]
    if phrase.name in {"changes", "stays"}:
        return row.has_changed(column) == (phrase.name == "changes")
    if phrase.name in _LIMITS:
        return _slack(phrase, row) >= 0.0
    values = fields["values"] if phrase.name == "is_one_of" else (fields["value"],)
    own = value_phrase(row.space[column], row.answer.values[column])
    is_met = any(_is_same(own, value) for value in values)
    return is_met != (phrase.name == "is_not")


def _is_same(one: Phrase, other: Phrase) -> bool:
    if one.name not in {AMOUNT, LEVEL}:
        return False
    return bool(one.fields["value"] == other.fields["value"])


# ==== What bound, in sentences ========================================================================================


def binding_lines(result: BoundResult, language: Language) -> Iterator[str]:
    """Give a line for all that bound an answer, and one for each rule of which nobody can tell."""
    answers = {answer.rank: answer for answer in result}
    for one in bindings_of(result):
        rank = language.number(one.rank)
        if one.template in {"bound_rule", "bound_asks"}:
            columns = language.field(one.columns)
            rule = _rule(one.name, result.rules[one.name], language)
            yield language.put(one.template, rank=rank, rule=rule, columns=columns)
            continue
        assert result.space is not None  # noqa: S101 - without a space nothing bound
        feature: Feature = result.space[one.name]
        after = answers[one.rank].values[one.name]
        value = language.phrase(value_phrase(feature, plain(after)))
        limit = ""
        if one.template == "bound_limit":
            before = feature.to_coordinate(answers[one.rank].factual[one.name])
            side: Side = "up" if feature.to_coordinate(after) > before else "down"
            limit = language.say(limit_said(feature, side, before))
        yield language.put(one.template, rank=rank, column=printable(one.name), value=value, limit=limit)
    for name in unknown_rules(result):
        yield language.put("bound_unknown", rule=_rule(name, result.rules[name], language))


def people_bound(results: Sequence[BoundResult], language: Language) -> Iterator[str]:
    """Give a line for all that bound the first answers of people, and how many of these; what bound most first."""
    counts: Counter[tuple[str, str]] = Counter()
    sentences: dict[str, str] = {}
    unknown: dict[str, None] = {}
    people = 0
    for result in results:
        people += len(result) > 0
        sentences |= result.rules
        unknown |= dict.fromkeys(unknown_rules(result))
        counts.update((one.template, one.name) for one in bindings_of(result) if one.rank == 1)
    for (template, name), count in counts.most_common():
        what = printable(name)
        if template in {"bound_rule", "bound_asks"}:
            what = _rule(name, sentences[name], language)
        yield language.put(
            f"{template}_people", count=language.number(count), people=language.number(people), what=what
        )
    for name in unknown:
        yield language.put("bound_unknown", rule=_rule(name, sentences[name], language))


def _rule(name: str, sentence: str, language: Language) -> str:
    line = language.say(sentence)
    if not has_given_name(name):
        return line
    return language.put("conflict_named", name=printable(name), rule=line)

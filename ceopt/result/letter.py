"""The letter to a person: the ways out in their own words, and nothing that is not theirs to know.

It is written from a copy of the result that holds only what may be told: no column that is fixed or hidden, no answer
that needs one of these, no cost, no rule's name, and labels in place of names.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

import pandas as pd

from ceopt.base.said import Phrase, phrases_of
from ceopt.formulations.space.space import FeatureSpace
from ceopt.report import require_report, write_page
from ceopt.result.counterfactual import scalars
from ceopt.result.shown import ShownResult
from ceopt.solvers.checks import AbstractCheck, Choice, ListOf, Refusal, Text, check_arguments
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.words.language import ALL_OF, AMOUNT, LEVEL, Language
from ceopt.words.letters import LETTERS, happening, letter_language
from ceopt.words.sentences import feature_of, limit_said, sentences_of, today_in_digits, value_phrase

if TYPE_CHECKING:
    from decimal import Decimal

    from ceopt.formulations.space.feature import Feature
    from ceopt.result.counterfactual import Counterfactual

Result = TypeVar("Result", bound=ShownResult)

AUDIENCES: Final = ("auditor", "customer")
_NO_NAMES: Final = Refusal("a list of column names as hide", 'Write hide=["sex"].', error=InvalidTypeError)
_CHECKS: Final[dict[str, AbstractCheck]] = {"hide": ListOf(_NO_NAMES, texts=True), "contact": Text()}


def require_audience(who: str, audience: str, hide: Any, contact: Any) -> None:
    """Refuse what only a letter takes where an auditor's report is asked for."""
    if Choice(AUDIENCES).require(who, "audience", audience) == "customer":
        return
    for name, given in {"hide": hide, "contact": contact}.items():
        if given:
            but = f"audience is {audience!r}"
            raise InvalidValueError(who, f'audience="customer" beside {name}', but, f"Leave {name} out, or change it.")


# ==== What may be told: a copy of a result without columns that are fixed or hidden, in which labels stand for names ==


@final
@dataclass(frozen=True, slots=True)
class Told:
    """What of a result may be told.

    Parameters
    ----------
    result
        With the answers that need nothing else, ranked anew, over the columns that may be told, by their labels.
    untold
        How many answers were left out, as they need a column that is hidden.
    space
        The columns as the result has them; None where nobody said.
    names
        Those that may be told, by their own names.
    """

    result: Any
    untold: int
    space: FeatureSpace | None
    names: tuple[str, ...]


def labelled_space(space: FeatureSpace, hide: Sequence[str]) -> FeatureSpace | None:
    """Return the columns that may be told, by their labels; None where there is none."""
    labelled = [_labelled(feature) for feature in space if feature.mutable and feature.name not in hide]
    return FeatureSpace(labelled) if labelled else None


def told_of(
    result: ShownResult, space: FeatureSpace | None, hide: Sequence[str], labelled: FeatureSpace | None = None
) -> Told:
    """Return what of a result may be told; ``labelled`` is its :func:`labelled_space`, where somebody has made it.

    An answer that needs a hidden column is left out: without that column it would be advice that does not help.
    """
    names = _may_be_told(result, space, hide)
    if labelled is None and space is not None:
        labelled = labelled_space(space, hide)
    answers: list[Counterfactual] = []
    for answer in result:
        if set(_needed(answer, space)) <= set(names):
            answers.append(_labelled_answer(answer, space, names, rank=len(answers) + 1))
    row = _labelled_values(scalars(result.factual), space, names)
    told = replace(
        result,  # type: ignore[type-var]  # a solution set
        counterfactuals=tuple(answers),
        factual=pd.DataFrame({name: [value] for name, value in row.items()}),
        space=labelled,
        query_id=None,
        conflict=(),
        removed={},
        rules={},
        beyond={},
    )
    return Told(told, len(result) - len(answers), space, names)


def _may_be_told(result: ShownResult, space: FeatureSpace | None, hide: Sequence[str]) -> tuple[str, ...]:
    names = [str(name) for name in result.factual.columns]
    if space is not None:
        names = [feature.name for feature in space if feature.mutable]
    return tuple(name for name in names if name not in hide)


def _needed(answer: Counterfactual, space: FeatureSpace | None) -> list[str]:
    """Return the columns that an answer speaks of; a fixed one that is held where it is takes nobody's doing."""
    return [name for name in answer.listed if name in answer.changed or space is None or space[name].mutable]


def _labelled(feature: Feature) -> Feature:
    """Return a column that bears its label as its name, and those of its levels as levels."""
    if not feature.is_finite or not feature.level_labels:
        return replace(feature, name=feature.called, label=None)
    levels = tuple(str(feature.level_called(level)) for level in feature.levels)
    codes = tuple(str(feature.level_called(code)) for code in feature.codes)
    return replace(
        feature, name=feature.called, label=None, levels=levels, codes=codes, level_labels=(), dtype=None,
        categories=None,
    )  # fmt: skip


def _labelled_values(values: Any, space: FeatureSpace | None, names: Sequence[str]) -> dict[str, Any]:
    """Return the values of the columns that may be told, by label."""
    labelled = {}
    for name in names:
        if name not in values.index:
            continue
        if space is None:
            labelled[name] = values[name]
        else:
            labelled[space[name].called] = _labelled_value(space[name], values[name])
    return labelled


def _labelled_value(feature: Feature, value: Any) -> Any:
    """Return a level by its label, as text where the column has labels; anything else as it is."""
    if feature.is_finite and feature.level_labels and value in feature.levels:
        return str(feature.level_called(value))
    return value


def _labelled_answer(
    answer: Counterfactual, space: FeatureSpace | None, names: Sequence[str], *, rank: int
) -> Counterfactual:
    def called(name: str) -> str:
        return name if space is None else space[name].called

    actions = None
    if answer.actions is not None:
        actions = pd.Series(_labelled_values(answer.actions, space, names), dtype=object)
    return replace(
        answer,
        rank=rank,
        values=pd.Series(_labelled_values(answer.values, space, names), dtype=object),
        changed=tuple(map(called, answer.changed)),
        actions=actions,
        asked_by={},
        printed={called(name): digits for name, digits in answer.printed.items() if name in names},
        ranges={called(name): ends for name, ends in answer.ranges.items() if name in names},
    )


# ==== What was not asked: columns that are fixed, by label, and limits that concern nothing else than what may be told

#: Rules that only who knows the model can read, and texts that somebody wrote to whom names mean something.
_TECHNICAL: Final = frozenset(
    {"verbatim", "together", "hull_inside", "hull_near", "hull_anywhere", "robust", "robust_near", "follows_from",
     "allowed_rows", "exactly_one", "no_outlier", "region_std", "region_widths"}
)  # fmt: skip
#: Rules of the space that are told as what was not asked, or that nobody needs to be told.
_NOT_ASKED: Final = frozenset({"must_stay", "stays_missing", "may_only_rise", "may_only_fall"})


def _not_asked(told: Told, result: ShownResult, hide: Sequence[str], language: Language) -> Iterator[str]:
    """Give a line for what is fixed."""
    fixed = []
    for feature in told.space or ():
        if feature.name in hide:
            continue
        if not feature.mutable or _stays(result.removed.get(feature.name, "")):
            fixed.append(feature.called)
    if fixed:
        yield language.put("fixed", columns=_any_of(list(map(language.column, fixed)), language))


def _any_of(names: Sequence[str], language: Language) -> str:
    """Return "your sex, your home or your age"."""
    *others, last = names
    listed = language.templates["list_separator"].join(others)
    return language.templates["or_separator"].join(filter(None, [listed, last]))


def _limits(told: Told, result: ShownResult, language: Language) -> Iterator[str]:
    """Give a line for each limit that may be told: of those that leave no way, where these are known, else of all.

    Limits about the person come after rules, and then, where no way is, bounds that somebody has set. Where rules leave
    no way, it is within the limits about the person, and these are told too.
    """
    space = told.space
    if space is None:
        return
    row = scalars(result.factual)
    sentences = list(result.rules.values())
    if result.conflict:
        sentences = [sentence for _, sentence, _ in result.conflict]
    if not any(_is_of_space(name, space) for name, _, _ in result.conflict):
        for name in told.names:
            if not _stays(result.removed.get(name, "")):
                sentences += _about_the_person(space[name], row[name])
    lines: dict[str, None] = {}
    for phrase in chain.from_iterable(map(_parts, sentences)):
        if phrase.name in _NOT_ASKED or _says_nothing(phrase, space):
            continue
        labelled = _labelled_phrase(_as_it_is_met(phrase, space, row), space, told.names)
        if labelled is not None:
            lines[language.phrase(labelled)] = None
    yield from lines
    if len(result) or result.conflict:
        return
    for name in told.names:
        for bound in _bounds(space[name], row[name]):
            yield language.phrase(bound)


def _is_of_space(name: str, space: FeatureSpace) -> bool:
    """Whether a rule in conflict is one of the space, such as "age: fixed"."""
    return any(name.startswith(f"{column}: ") for column in space.names)


def _about_the_person(feature: Feature, value: Any) -> Iterator[str]:
    """Give the limits that depend on the person's own value, on the sides to which the column may move."""
    if feature.is_label_value(value):
        return
    here = feature.to_coordinate(value)
    if feature.max_up is not None and feature.direction != "decreasing":
        yield limit_said(feature, "up", here)
    if feature.max_down is not None and feature.direction != "increasing":
        yield limit_said(feature, "down", here)


def _as_it_is_met(phrase: Phrase, space: FeatureSpace, row: Any) -> Phrase:
    """Return a bound without what it says to those who are beyond it, where the person is not."""
    if phrase.name != "or_no_further" or phrase.fields["rule"].name not in {"at_most", "at_least"}:
        return phrase
    bound: Phrase = phrase.fields["rule"]
    feature = space[bound.fields["column"]]
    own = row[feature.name]
    if feature.is_finite or feature.is_label_value(own):
        return phrase
    limit = bound.fields["value"].fields["value"]
    is_met = own <= limit if bound.name == "at_most" else own >= limit
    return bound if is_met else phrase


def _says_nothing(phrase: Phrase, space: FeatureSpace) -> bool:
    """Whether a phrase is a bound at 0, below which there is nothing."""
    if phrase.name != "at_least":
        return False
    value = phrase.fields["value"].fields["value"]
    return bool(value == 0 and space[phrase.fields["column"]].lower == 0)


def _parts(text: str) -> Iterator[Phrase]:
    """Give what a text says, one by one where it says several things at once."""
    for phrase in phrases_of(text):
        if phrase.name == ALL_OF:
            yield from phrase.fields["rules"]
        else:
            yield phrase


def _stays(text: str) -> bool:
    """Whether what was out of reach from the start left one value."""
    return any(phrase.name in {"must_stay", "stays_missing"} for phrase in _parts(text))


def _bounds(feature: Feature, value: Any) -> Iterator[Phrase]:
    """Give the bounds that somebody has set, but for one at 0, below which there is nothing."""
    if feature.is_finite:
        return
    if feature.is_label_value(value):
        value = math.nan
    lower, upper = feature.lower, feature.upper
    if math.isfinite(lower) and lower != 0 and not feature.lower_inferred and feature.direction != "increasing":
        name = "at_least_or_as_today" if value < lower else "at_least"
        yield Phrase(name, {"column": feature.called, "value": value_phrase(feature, lower)})
    if math.isfinite(upper) and not feature.upper_inferred and feature.direction != "decreasing":
        name = "at_most_or_as_today" if value > upper else "at_most"
        yield Phrase(name, {"column": feature.called, "value": value_phrase(feature, upper)})


def _labelled_phrase(
    phrase: Phrase, space: FeatureSpace, names: Sequence[str], column: str | None = None
) -> Phrase | None:
    """Return what a rule says with labels for names; None where it is not for the person, or not for them to know."""
    if phrase.name in _TECHNICAL:
        return None
    if phrase.name == AMOUNT:
        return phrase
    if phrase.name == LEVEL:
        return None if column is None else _level(phrase, space[column])
    own = phrase.fields.get("column")
    if isinstance(own, str) and own in space:
        column = own
    fields = {}
    for word, value in phrase.fields.items():
        new = _labelled_field(value, space, names, column)
        if new is None:
            return None
        fields[word] = new
    return Phrase(phrase.name, fields)


def _labelled_field(value: Any, space: FeatureSpace, names: Sequence[str], column: str | None) -> Any:
    """Return a field of a phrase, in which text is the name of a column; None where it may not be told."""
    if isinstance(value, str):
        return space[value].called if value in names else None
    if isinstance(value, Phrase):
        return _labelled_phrase(value, space, names, column)
    if isinstance(value, tuple):
        parts = [_labelled_field(part, space, names, column) for part in value]
        return None if None in parts else tuple(parts)
    return value


def _level(phrase: Phrase, feature: Feature) -> Phrase:
    """Return a level of a column by its label."""
    value = phrase.fields["value"]
    for level in feature.levels:
        same = value_phrase(feature, level).fields["value"]
        if same == value and isinstance(same, bool) == isinstance(value, bool):
            label = feature.level_called(level)
            return phrase if label == level else Phrase(LEVEL, {"value": label})
    return phrase


# ==== The letter as plain texts, and its page =========================================================================

#: Templates of what becomes of a column.
_CHANGES: Final = (
    "raise", "lower", "raise_part", "lower_part", "raise_level", "lower_level", "change", "switch_on", "switch_off",
    "fill", "fill_code", "fill_any", "fill_code_any", "leave_blank", "follows", "hold", "hold_missing",
)  # fmt: skip
#: Lines of the table that fit a page beside three ways.
_MOST_LINES: Final = 5
_IN_NAMES: Final = re.compile(r"[^\w.-]+")


def write_letter(
    who: str, result: ShownResult, path: Any, *, title: Any, language: Any, hide: Any, contact: Any
) -> None:
    """Write one person's letter, a page that prints."""
    require_report(who, title=title, language=language)
    hidden = _hidden(who, result.space, [result], hide, contact)
    letter = _letter(who, result, result.space, hidden, None, title=title, language=language, contact=contact)
    _write(who, path, [letter], language)


def write_letters(
    who: str, results: Sequence[ShownResult], space: FeatureSpace, path: Any, *, title: Any, language: Any, hide: Any,
    contact: Any,
) -> None:  # fmt: skip
    """Write a letter for each person: a file each in a folder that is there, else one file of a page each."""
    require_report(who, title=title, language=language)
    hidden = _hidden(who, space, results, hide, contact)
    labelled = labelled_space(space, hidden)
    letters = []
    for result in results:
        letters.append(_letter(who, result, space, hidden, labelled, title=title, language=language, contact=contact))
    if not isinstance(path, str | os.PathLike) or not Path(path).is_dir():
        _write(who, path, letters, language)
        return
    for name, letter in zip(_file_names(results), letters, strict=True):
        _write(who, Path(path) / name, [letter], language)


def _write(who: str, path: Any, letters: Sequence[Mapping[str, Any]], language: str) -> None:
    title = LETTERS[language]["title"]
    if letters:
        title = letters[0]["title"]
    write_page(who, path, "letter.html", title=title, language=language, letters=letters)


def _file_names(results: Iterable[ShownResult]) -> list[str]:
    """Return a name for each person's file: the person's label as far as a file can have it, each once."""
    stems: dict[str, str] = {}  # as they are to a disk that does not tell small letters from capitals
    for place, result in enumerate(results, start=1):
        stem = _IN_NAMES.sub("_", str(result.query_id)).strip("._") or str(place)
        while stem.casefold() in stems:
            stem += f"_{place}"
        stems[stem.casefold()] = stem
    return [f"{stem}.html" for stem in stems.values()]


def _hidden(
    who: str, space: FeatureSpace | None, results: Sequence[ShownResult], hide: Any, contact: Any
) -> tuple[str, ...]:
    """Return the columns that are hidden, or refuse one that does not exist."""
    hidden: tuple[str, ...] = check_arguments(who, _CHECKS, {"hide": hide, "contact": contact})["hide"]
    known: Sequence[Any] = ()
    if space is not None:
        known = space.names
    elif results:
        known = list(map(str, results[0].factual.columns))
    for name in hidden:
        if name not in known:
            raise UnknownNameError.among(who, "column in hide", name, known)
    return hidden


def _letter(
    who: str, result: ShownResult, space: FeatureSpace | None, hidden: Sequence[str], labelled: FeatureSpace | None, *,
    title: Any, language: str, contact: str,
) -> dict[str, Any]:  # fmt: skip
    """Return the texts of one letter."""
    spoken = letter_language(who, language)
    told = told_of(result, space, hidden, labelled)
    own = today_in_digits(told.result)
    ways = []
    for answer in told.result:
        sentences = [_begun(line) for line in _sentences(answer, spoken, own)]
        ways.append({"name": spoken.put("way", rank=spoken.number(answer.rank)), "sentences": sentences})
    reference = ""
    if result.query_id is not None:
        reference = spoken.put("reference", reference=str(result.query_id))
    lists = []
    for head, lines in (
        ("not_asked", _not_asked(told, result, hidden, spoken)),
        ("limits", _limits(told, result, spoken)),
    ):
        lists.append({"head": spoken.put(head), "lines": [_begun(line) for line in lines]})
    needs_nothing = str(result.status) == "already_favourable"
    return {
        "title": spoken.put("title") if title is None else title,
        "reference": reference,
        "status": _status(told, spoken),
        "ways": ways,
        "together": spoken.put("all_of_it") if any(len(way["sentences"]) > 1 for way in ways) else "",
        "untold": _untold(told, spoken) if ways else "",
        "table": _side_by_side(told, spoken, own),
        "lists": [] if needs_nothing else lists,
        "contact_head": spoken.put("contact"),
        "contact": contact.strip().splitlines(),
        "holds": spoken.put("holds") if ways else "",
    }


def _sentences(answer: Counterfactual, language: Language, own: Mapping[str, Decimal]) -> Iterator[str]:
    """Give a sentence for each column; a number that moves in one direction alone is nothing that anybody does."""
    of_itself = happening(language)
    for name in answer.listed:
        feature = feature_of(answer.space, name)
        is_one_way = feature is not None and not feature.is_finite and feature.direction != "any"
        yield from sentences_of(answer, [name], of_itself if is_one_way else language, own)


def _begun(line: str) -> str:
    """Return a line that begins with a capital letter."""
    return line[:1].upper() + line[1:]


def _status(told: Told, language: Language) -> str:
    count = len(told.result)
    if count > 1:
        return language.put("ways_many", count=language.number(count))
    if count:
        return language.put("ways_one")
    if told.untold:
        return language.put("untold_alone" if told.untold == 1 else "untold_alone_many")
    return language.put(str(told.result.status))


def _untold(told: Told, language: Language) -> str:
    if told.untold > 1:
        return language.put("untold_many", count=language.number(told.untold))
    return language.put("untold_one") if told.untold else ""


def _side_by_side(told: Told, language: Language, own: Mapping[str, Decimal]) -> list[list[str]]:
    """Return the ways as a table, where there are several: a line a column, its value today, and in each way.

    One of many lines would not leave the letter on its page, and is left out.
    """
    if len(told.result) < 2:
        return []
    today = Language({**language.templates, **dict.fromkeys(_CHANGES, "{start}")})
    then = Language({**language.templates, **dict.fromkeys(_CHANGES, "{after}")})
    lines: dict[str, list[str]] = {}
    for place, answer in enumerate(told.result):
        for name, before, after in zip(
            answer.listed,
            sentences_of(answer, answer.listed, today, own),
            sentences_of(answer, answer.listed, then, own),
            strict=True,
        ):
            line = lines.setdefault(name, [_begun(name), before, *[language.put("as_today")] * len(told.result)])
            line[place + 2] = after
    if len(lines) > _MOST_LINES:
        return []
    ways = [language.put("way", rank=language.number(answer.rank)) for answer in told.result]
    return [["", language.put("today"), *ways], *lines.values()]

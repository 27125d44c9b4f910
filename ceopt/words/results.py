"""A whole result in words: how it ended, why, which rules are in conflict, and each way out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from ceopt.formulations.space.space import RuleWarning, warn
from ceopt.solvers.errors import printable
from ceopt.words.changes import ToldAnswer, has_given_name, sentences_of
from ceopt.words.language import AMOUNT, Language, language_of
from ceopt.words.said import Phrase, Said, phrases_of

if TYPE_CHECKING:
    from ceopt.status import Status

__all__ = ["ResultInWords", "beyond_lines", "in_words", "shared_rule_said", "warn_of_rules"]

#: Phrases that list the rules in conflict, which have lines of their own.
_LISTED: Final = {"in_conflict": "conflict_found", "conflict_unfinished": "conflict_among"}


class RankedAnswer(ToldAnswer, Protocol):
    """One of several answers."""

    @property
    def rank(self) -> int:
        """1 for the best."""

    @property
    def listed(self) -> tuple[str, ...]:
        """The columns that change, and those that are held where they are."""


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
        return [line for line in lines if line]


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
            reasons.append(spoken.say(Said(_text_of(phrase, result.reason), (phrase,))))
    answers = tuple(tuple(sentences_of(answer, answer.listed, spoken)) for answer in result)
    if not result.conflict:
        head = ""
    return ResultInWords(
        status=_status(result, spoken),
        reasons=tuple(reason for reason in reasons if reason),
        conflict_head=spoken.templates.get(head, ""),
        conflict=tuple(_conflict_line(entry, spoken) for entry in result.conflict),
        answers=answers,
        ways=tuple(_ways(result, answers, spoken)),
        rules=tuple(_rule_lines(result.rules, spoken)),
        beyond=tuple(beyond_lines([result], spoken)),
        out_of_reach=tuple(_removed_lines(result.removed, spoken)),
    )


def _text_of(phrase: Phrase, reason: str) -> str:
    """Return what stands for a phrase that this version cannot say: all of the reason."""
    text = phrase.fields.get("text", reason)
    return str(text)


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
    return language.put("conflict_wider", rule=line, width=language.amount(width, _unit_in(sentence)))


def _named_rule(name: str, sentence: str, language: Language) -> str:
    line = language.say(sentence)
    if has_given_name(name) and not _is_of_space(name, sentence):
        return language.put("conflict_named", name=printable(name), rule=line)
    return line


def shared_rule_said(entries: Sequence[tuple[str, str, float | None]], language: Language) -> str:
    """Return one rule that is in conflict for several people, and by how much wider it would do for how many of them.

    Where it says something else to each ("age stays at 30"), it is called by its name ("age: fixed").
    """
    name, sentence, width = entries[0]
    widths = [width for _, _, width in entries if width is not None]
    is_same = all(entry[1] == sentence for entry in entries)
    if is_same and all(entry[2] == width for entry in entries):
        return _conflict_line(entries[0], language)
    line = _named_rule(name, sentence, language) if is_same else printable(name)
    if not widths:
        return line
    unit = _unit_in(sentence)
    amount = language.amount(max(widths), unit)
    if min(widths) < max(widths):
        amount = language.put("widths", least=language.first_amount(min(widths), unit), most=amount)
    return language.put("conflict_wider_for", rule=line, count=language.number(len(widths)), widths=amount)


def _is_of_space(name: str, sentence: str) -> bool:
    """Whether a rule is what the space says of a column ("age: fixed"), which its sentence names."""
    return any(name.startswith(f"{phrase.fields.get('column')}: ") for phrase in phrases_of(sentence))


def _unit_in(sentence: str) -> str:
    """Return the unit of the one number that a rule is about, or nothing."""
    for phrase in phrases_of(sentence):
        value = phrase.fields.get("value")
        if isinstance(value, Phrase) and value.name == AMOUNT:
            return str(value.fields.get("unit") or "")
    return ""


def _ways(result: Iterable[Any], answers: tuple[tuple[str, ...], ...], language: Language) -> Iterator[str]:
    for answer, sentences in zip(result, answers, strict=True):
        changes = language.templates["next_change"].join(sentences)
        yield language.put("way", rank=language.number(answer.rank), changes=changes)


def _rule_lines(rules: Mapping[str, str], language: Language) -> Iterator[str]:
    for name, sentence in rules.items():
        line = language.say(sentence)
        if has_given_name(name):
            line = language.put("conflict_named", name=printable(name), rule=line)
        yield line


def beyond_lines(results: Sequence[ToldResult], language: Language) -> Iterator[str]:
    """Give one line for each rule that some rows break today: how many, and what to write if they may stay."""
    counts: dict[str, int] = {}
    moved: dict[str, bool] = {}
    lines: dict[str, str] = {}
    sentences: dict[str, str] = {}
    for result in results:
        for name, line in result.beyond.items():
            counts[name] = counts.get(name, 0) + 1
            moved[name] = moved.get(name, False) or len(result) > 0
            lines[name] = line
            sentences[name] = result.rules.get(name, "")
    for name, count in counts.items():
        said = name
        if not has_given_name(name) and sentences[name]:
            said = language.say(sentences[name])
        fields = {"name": language.put("quoted", value=said)}
        if moved[name] and len(results) == 1:
            text = language.put("beyond_one", **fields)
        else:
            fields |= {"count": language.number(count), "people": language.number(len(results))}
            text = language.put("beyond_many" if moved[name] else "beyond_unmoved", **fields)
        yield f"{text} {_beyond_advice(lines[name], sentences[name], language)}"


def _beyond_advice(line: str, sentence: str, language: Language) -> str:
    """Say what to do where people who are beyond a rule may stay."""
    if line:
        return language.put("beyond_line", line=line)
    if any(phrase.name == "exactly_one" for phrase in phrases_of(sentence)):  # it has no width
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
    plain = language_of("explain", "en", {"quoted": "'{value}'"})
    for line in beyond_lines(results, plain):
        warn(f"r{line[1:]}", RuleWarning)

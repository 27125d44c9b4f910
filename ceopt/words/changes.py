"""The sentences of one answer: what to change, from what to what, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Protocol

from ceopt.formulations.constraints import RULES
from ceopt.solvers.errors import CeoptError, printable
from ceopt.tolerances import DIGIT_NOISE
from ceopt.words.language import Language
from ceopt.words.numbers import exact, is_number, tidied, told_move

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["ToldAnswer", "change_sentence", "feature_of", "has_given_name", "sentences_of", "truths", "unit_of"]

#: Texts of two levels that mean no and yes.
_TRUTHS: Final = (("no", "yes"), ("n", "y"), ("false", "true"))


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
    def rules(self) -> Mapping[str, str]:
        """The sentence of each rule by name."""

    def why(self, name: str) -> str:
        """Return "action" or "consequence"."""


def sentences_of(answer: ToldAnswer, names: Sequence[str], language: Language) -> list[str]:
    """Return one sentence for each of some columns."""
    before = answer.factual
    after = answer.values
    assert before is not None  # noqa: S101 - the caller has seen to it
    sentences = []
    for name in names:
        done = None
        if answer.actions is not None and answer.why(name) == "action":
            done = answer.actions[name]
        is_action = answer.actions is None or answer.why(name) == "action"
        feature = feature_of(answer.space, name)
        printed = answer.printed.get(name, (None,))[0]
        sentence = change_sentence(
            name, before[name], after[name], feature, language, done=done, is_action=is_action, printed=printed
        )
        asking = answer.asked_by.get(name, ())
        if asking:
            rules = tuple(_rule_named(rule, answer.rules, language) for rule in asking)
            sentence = language.put("for_rule", change=sentence, rules=language.field(rules))
        sentences.append(sentence)
    return sentences


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
    is_action: bool = True, printed: float | None = None,
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
    """
    kind = _kind(feature, before, after)
    unit = unit_of(feature)
    if kind == "number":
        first, second = told_move(before, after, feature, printed)
        template, fields = _of_numbers((before, first), (after, second), unit, language, done)
    else:
        template, fields = _of_levels(kind, before, after, feature, language)
    fields["unit"] = printable(unit or "")
    if not is_action:
        template = "follows"
    elif _is_same(before, after):
        template = "hold"
    return language.put(template, column=printable(name), **fields)


def unit_of(feature: Feature | None) -> str | None:
    """Return the unit of a column; None without one."""
    if feature is None or not feature.unit:
        return None
    return feature.unit


def truths(levels: Sequence[Any]) -> Mapping[Any, bool] | None:
    """Return which of two levels means yes and which no; None where they mean something else."""
    if len(levels) != 2:
        return None
    words = [str(level).strip().casefold() for level in levels]
    for no, yes in (*_TRUTHS, ("0", "1")):
        if sorted(words) == sorted((no, yes)):
            return {level: word == yes for level, word in zip(levels, words, strict=True)}
    return None


# ---- kinds of columns ------------------------------------------------------------------------------------------------
def _kind(feature: Feature | None, before: Any, after: Any) -> str:
    """Return "number", "truth", "order" or "choice": how a column's change is told."""
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
    home = first
    if abs(float(first) - before) > DIGIT_NOISE * abs(before):  # what is added to the person's own number is all of it
        home = exact(before)
    fields = {
        "before": language.first_amount(first, unit),
        "after": language.amount(second, unit),
        "by": language.amount(abs(second - home), unit),
    }
    if before == after:
        fields["before"] = language.amount(first, unit)
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

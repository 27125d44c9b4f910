"""A language: templates, checked, and what is said by them."""

from __future__ import annotations

import difflib
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, final

import pandas as pd

from ceopt.solvers.checks import Choice
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, printable
from ceopt.words.english import ENGLISH
from ceopt.words.fields import FIELDS
from ceopt.words.german import GERMAN
from ceopt.words.numbers import exact, is_number
from ceopt.words.said import VERBATIM, Phrase, phrases_of

__all__ = ["ALL_OF", "AMOUNT", "ANY_OF", "LANGUAGES", "LEVEL", "TERMS", "Language", "language_of", "templates"]

LANGUAGES: Final[Mapping[str, Mapping[str, str]]] = {"en": ENGLISH, "de": GERMAN}

#: Phrases that are said by several templates: a level of a column, a number with its unit, a choice of some, several
#: rules of which all hold, and a sum of coefficients and columns.
LEVEL: Final = "level"
AMOUNT: Final = "amount_of"
ANY_OF: Final = "any_of"
ALL_OF: Final = "all_of"
TERMS: Final = "terms"

#: Units that are written with either number of a move, and those that English writes before a number.
_PERCENT: Final = frozenset({"%", "‰", "°"})
_CURRENCIES: Final = frozenset({"$", "€", "£", "¥", "₹", "₩"})
#: A level that reads naturally without quotes: short words with single spaces between.
_PLAIN_LEVEL: Final = re.compile(r"\w[\w.'\u2019+/&-]*( [\w&][\w'\u2019+/&-]*)*")
_LONGEST_PLAIN: Final = 40
#: Powers of ten beyond which a number is written with an exponent.
_LEAST_POWER: Final = -9
_GREATEST_POWER: Final = 20


@final
@dataclass(frozen=True, slots=True)
class Language:
    """Says phrases and values by templates; what is put into these shows control characters as they are written.

    Parameters
    ----------
    templates
        All of them, by name.
    """

    templates: Mapping[str, str]

    def put(self, name: str, /, **fields: str) -> str:
        """Return a template with its fields put in."""
        return self.templates[name].format_map(fields)

    def say(self, text: str) -> str:
        """Return what a text says; one without phrases, or with some that this version does not know, as it is."""
        sentences = []
        try:
            for phrase in phrases_of(text):
                sentences.append(self.phrase(phrase))
        except (LookupError, TypeError, ValueError, AttributeError):
            return printable(str(text))
        return " ".join(sentence for sentence in sentences if sentence)

    def phrase(self, phrase: Phrase) -> str:
        """Return one phrase in words.

        Raises
        ------
        LookupError, TypeError, ValueError, AttributeError
            A phrase of another version, or a damaged one.
        """
        fields = phrase.fields
        match phrase.name:
            case "verbatim" | "level" | "amount_of":
                return self._value(phrase)
            case "together":
                return self._joined(fields["parts"], " ")
            case "any_of":
                return self._joined(fields["options"], self.templates["or_separator"])
            case "all_of":
                return self._joined(fields["rules"], self.templates["separator"])
            case "terms":
                return self._terms(fields["terms"])
        words = {name: self.field(value) for name, value in fields.items()}
        return self.templates[phrase.name].format_map(words)

    def field(self, value: Any) -> str:
        """Return what is put into a template: text as it stands, a number, a phrase, or a list of these."""
        if isinstance(value, Phrase):
            return self.phrase(value)
        if isinstance(value, tuple):
            return self._joined(value, self.templates["list_separator"])
        if isinstance(value, str):
            return printable(value)
        return self.number(value)

    # ---- values ------------------------------------------------------------------------------------------------------
    def number(self, value: float | Decimal) -> str:
        """Return a number with the language's marks."""
        number = value
        if not isinstance(number, Decimal):
            if not is_number(number):
                return printable(str(value))
            number = exact(number)
        text = f"{number:,f}"
        if number and not _LEAST_POWER <= number.adjusted() <= _GREATEST_POWER:
            text = f"{number.normalize():e}"
        return text.translate({ord(","): self.templates["thousands"], ord("."): self.templates["decimal"]})

    def amount(self, value: float | Decimal, unit: str | None) -> str:
        """Return a number with its unit."""
        text = self.number(value)
        if not unit:
            return text
        unit = printable(unit)
        if unit in _PERCENT:
            return self.put("percent", value=text, unit=unit)
        if unit in _CURRENCIES:
            sign = ""
            if text.startswith("-"):
                sign = "-"
                text = text.removeprefix("-")
            return sign + self.put("currency", value=text, unit=unit)
        return self.put("amount", value=text, unit=unit)

    def first_amount(self, value: float | Decimal, unit: str | None) -> str:
        """Return the first of two numbers of one unit, which only a sign such as % or $ is written with."""
        if unit in _PERCENT or unit in _CURRENCIES:
            return self.amount(value, unit)
        return self.number(value)

    def level(self, value: Any) -> str:
        """Return a level as text, in quotes where it would not read as one."""
        if value is None or value is pd.NA or value != value:  # noqa: PLR0124 - NaN alone is not itself
            return self.templates["missing"]
        if isinstance(value, bool):
            return self.truth(value)
        if is_number(value):  # a code, not a quantity
            return f"{exact(value):f}".replace(".", self.templates["decimal"])
        text = printable(str(value))
        is_plain = len(text) <= _LONGEST_PLAIN and _PLAIN_LEVEL.fullmatch(text) is not None
        if is_plain and not set(text.casefold().split()) & set(self.templates["connecting"].casefold().split()):
            return text
        return self.put("quoted", value=text)

    def truth(self, value: bool) -> str:
        """Return yes or no."""
        if value:
            return self.templates["yes"]
        return self.templates["no"]

    def _value(self, phrase: Phrase) -> str:
        if phrase.name == VERBATIM:
            return printable(str(phrase.fields["text"]))
        value: Any = phrase.fields["value"]
        if phrase.name == LEVEL:
            return self.level(value)
        unit: Any = phrase.fields["unit"]
        if phrase.fields.get("first"):
            return self.first_amount(value, unit)
        return self.amount(value, unit)

    # ---- several -----------------------------------------------------------------------------------------------------
    def _joined(self, values: Any, separator: str) -> str:
        said = [self.field(value) for value in values]
        return separator.join(text for text in said if text)

    def _terms(self, terms: Any) -> str:
        """Return "0.5 income + savings - debt" of coefficients and columns."""
        text = ""
        for coefficient, column in terms:
            if coefficient < 0:
                sign = " - " if text else "-"
            else:
                sign = " + " if text else ""
            size = "" if abs(coefficient) == 1 else f"{self.number(abs(coefficient))} "
            text += f"{sign}{size}{printable(column)}"
        return text


def templates(language: str = "en") -> dict[str, str]:
    """Return every template of a language by name: what ``templates=`` of ``sentences`` may replace.

    What is replaced may be some of them or all, and a third language is all of them in its own words. A field in curly
    brackets stands for what is put in; not every field has to be used. An empty template leaves its sentence out.

    Raises
    ------
    UnknownNameError
        A language that is not shipped.

    Examples
    --------
    >>> templates()["raise"]
    'Raise {column} from {before} to {after}'
    """
    Choice(tuple(LANGUAGES)).require("templates", "language", language)
    return dict(LANGUAGES[language])


def language_of(who: str, language: Any, given: Any = None) -> Language:
    """Return a shipped language, some of whose templates are replaced by those ``given``.

    Raises
    ------
    UnknownNameError
        A language that is not shipped, a template that does not exist, or a field that a template does not have.
    InvalidTypeError, InvalidValueError
        Templates that are no mapping to text, or text with an open or empty bracket.
    """
    if isinstance(language, Language) and given is None:
        return language
    Choice(tuple(LANGUAGES)).require(who, "language", language)
    found = LANGUAGES[language]
    if given is None:
        return Language(found)
    if not isinstance(given, Mapping):
        but = f"templates is {type(given).__name__}"
        raise InvalidTypeError(who, "a mapping from names to texts as templates", but, 'Write {"raise": "..."}.')
    for name, text in given.items():
        _check_template(who, name, text)
    return Language({**found, **given})


def _check_template(who: str, name: Any, text: Any) -> None:
    """Refuse a template that does not exist, or one with other fields than it has."""
    if name not in FIELDS:
        close = difflib.get_close_matches(str(name), FIELDS, n=1)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        then = f"{hint}ceopt.words.templates() has them all."
        raise UnknownNameError(who, "a known template", f"template is {name!r}", then)
    if not isinstance(text, str):
        but = f"{name!r} is {text!r}"
        raise InvalidTypeError(who, "text for each template", but, "Write it with fields in curly brackets.")
    for field in _fields_in(who, name, text):
        if field not in FIELDS[name]:
            if not FIELDS[name]:
                but = f"{name!r} has {field!r}"
                raise UnknownNameError(who, "a template without fields", but, "Write {{ and }} for brackets.")
            raise UnknownNameError.among(f"{who}: template {name!r}", "field", field, FIELDS[name])


def _fields_in(who: str, name: str, text: str) -> list[str]:
    """Return the fields of a template, which are names alone."""
    fields = []
    needs = "fields such as {value} in its templates"
    then = "Write a name in each pair of brackets, and {{ or }} for a bracket."
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError as error:
        raise InvalidValueError(who, needs, f"{name!r} is {text!r} ({error})", then) from error
    for _, field, form, conversion in parsed:
        if field is None:
            continue
        if not field.isidentifier() or form or conversion:
            raise InvalidValueError(who, needs, f"{name!r} is {text!r}", then)
        fields.append(field)
    return fields

"""A language: its templates and their fields, the digits of numbers in sentences, and phrases put into words."""

from __future__ import annotations

import difflib
import math
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING, Any, Final, final

import pandas as pd

from ceopt.base.said import VERBATIM, Phrase, phrases_of
from ceopt.solvers.checks import Choice
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, printable
from ceopt.tolerances import DIGIT_NOISE
from ceopt.words.english import ENGLISH
from ceopt.words.german import GERMAN

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

# ==== Templates by name, and the fields that each may have ============================================================

_MOVE: Final = ("column", "before", "after", "unit")
#: Fields of a template, where the English one does not use all of them in this order.
_MORE_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "currency": ("value", "unit"),
    "raise": (*_MOVE, "by"),
    "lower": (*_MOVE, "by"),
    "raise_part": (*_MOVE, "by", "done"),
    "lower_part": (*_MOVE, "by", "done"),
    "fill": _MOVE,
    "fill_code": _MOVE,
    "fill_any": _MOVE,
    "fill_code_any": _MOVE,
    "leave_blank": _MOVE,
    "follows": _MOVE,
    "optimal_many": ("target", "count"),
    "feasible_many": ("target", "count"),
    "robust_near": ("level", "radius"),
}


def _fields() -> dict[str, tuple[str, ...]]:
    names: dict[str, tuple[str, ...]] = {}
    for template, text in ENGLISH.items():
        parsed = string.Formatter().parse(text)
        names[template] = tuple(dict.fromkeys(field for _, field, _, _ in parsed if field is not None))
    return {**names, **_MORE_FIELDS}


#: Template -> its fields.
FIELDS: Final[Mapping[str, tuple[str, ...]]] = _fields()


# ==== The digits of a number that a person reads: few, and never another value where the column has a grid ============

#: Share of a move, and of a value, that may be rounded away from a number without a grid.
_SHARE: Final = 0.01
#: Significant digits that are enough for a value, those of which a float is never short, and those between.
_DIGITS: Final = 6
_MORE_DIGITS: Final = (9, 12)
_FLOAT_DIGITS: Final = 17
#: Decimals of data that somebody may have chosen; more are left of a division.
_MOST_DECIMALS: Final = 4
_NO_LIMITS: Final = (-math.inf, math.inf)
#: Rounds without a limit of its own on digits.
_CONTEXT: Final = Context(prec=400)


def is_number(value: Any) -> bool:
    """Whether a value is a finite number; a truth value is none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return isinstance(value, int) or math.isfinite(value)


def exact(value: float) -> Decimal:
    """Return the shortest decimal number that stands for a number alone.

    Examples
    --------
    >>> print(exact(0.1), exact(1e16), exact(21200.0), exact(7))
    0.1 1E+16 21200 7
    """
    if isinstance(value, int):
        return Decimal(value)
    number = Decimal(repr(value)).normalize(_CONTEXT)
    if int(number.as_tuple().exponent) < _FLOAT_DIGITS - 1:
        return _tidy(number)
    return number


def move_in_digits(
    before: float,
    after: float,
    *,
    step: float | None = None,
    limits: tuple[float, float] = _NO_LIMITS,
    decimals: int | None = None,
) -> tuple[Decimal, Decimal]:
    """Return the digits of two values of a column between which a person moves.

    With a step the values are those of the grid, digit for digit. Without one, they have the decimals of the column's
    data, if these tell the two values apart; or few digits: what is rounded away is at most a hundredth of the move and
    of the value, or what six significant digits lose, if these do. The value that is to be reached is rounded away from
    where the person is, so that nobody stops short, not by a trace either, and never past a limit of the column; one
    that has so few digits is written as it is.

    Parameters
    ----------
    before, after
        The values.
    step
        By multiples of which the column moves; None for a column that takes any number.
    limits
        Least and greatest value of the column.
    decimals
        Decimal places of the column's data; None where they have none that anybody chose.

    Examples
    --------
    >>> print(*move_in_digits(26800.0, 29850.000977))
    26800 29851
    >>> print(*move_in_digits(1.5, 2.5), *move_in_digits(1.5, 2.5000000000000004))
    1.5 2.5 1.5 2.51
    >>> print(*move_in_digits(3.3, 3.3000001283))
    3.3 3.30001
    >>> print(*move_in_digits(0.7661, 0.0369, decimals=4), *move_in_digits(0.766126609, 0.036973345))
    0.7661 0.0369 0.77 0.0369
    >>> print(*move_in_digits(26800.5, 29850.75, step=0.25))
    26800.5 29850.75
    >>> print(*move_in_digits(0.1, 0.1 + 2 * 0.1, step=0.1), 0.1 + 2 * 0.1)
    0.1 0.3 0.30000000000000004
    """
    if step is not None:
        return exact(before), _on_grid(after, before, step)
    if before == after or (decimals is not None and _places(after) <= decimals):
        return exact(before), exact(after)
    room = _SHARE * abs(after - before)
    if decimals is not None:
        rounded = _rounded(after, decimals, ROUND_CEILING if after > before else ROUND_FLOOR)
        if limits[0] <= float(rounded) <= limits[1] and abs(float(rounded) - after) <= room:
            return exact(before), _tidy(rounded)
    for digits in range(_DIGITS, _FLOAT_DIGITS + 1):
        first = _nearest(before, room, digits)
        second = _away(after, before, room, limits, digits)
        if first != second:
            return first, second
    return exact(before), exact(after)


def in_six_digits(value: float, away_from: Any = None) -> Decimal:
    """Return a number in six significant digits, rounded away from another where one is given; a whole one as it is.

    Examples
    --------
    >>> print(in_six_digits(29741.445003, 26800.0), in_six_digits(0.1 + 0.2), in_six_digits(1234567.0))
    29741.5 0.3 1234567
    """
    if isinstance(value, int) or value == math.floor(value):
        return exact(value)
    last_digit = min(Decimal(value).adjusted() - _DIGITS + 1, 0)
    nearest = _rounded(value, -last_digit, ROUND_HALF_EVEN)
    if not is_number(away_from) or value == away_from:
        return _tidy(nearest)
    if _is_noise(nearest, value, abs(value)) and not _stops_short(float(nearest), value, away_from):
        return _tidy(nearest)
    return _tidy(_rounded(value, -last_digit, ROUND_CEILING if value > away_from else ROUND_FLOOR))


def printings(before: float, after: float, feature: Feature | None) -> tuple[Decimal, ...]:
    """Return what may be printed for the value that a column comes to, from few digits to many.

    The first is that of sentences, the second that of tables; both are what they say only where the row with them was
    checked like an answer.

    Examples
    --------
    >>> print(*printings(1200.0, 1509.8765432109876, None))
    1510 1509.88 1509.87655 1509.87654322
    >>> from ceopt import Feature
    >>> print(*printings(0.972037284, 0.954449046, Feature("used", kind="continuous", lower=0, upper=2, decimals=9)))
    0.9544 0.954449 0.954449046 0.954449046
    """
    step, limits, decimals = _grid(feature)
    _, few = move_in_digits(before, after, step=step, limits=limits, decimals=decimals)
    if step is not None:
        return (few,)
    six = few
    if decimals is None:
        six = in_six_digits(after, before)
    return few, six, *(_away(after, before, 0.0, limits, digits) for digits in _MORE_DIGITS)


def told_move(before: float, after: float, feature: Feature | None, printed: float | None) -> tuple[Decimal, Decimal]:
    """Return the digits of a person's own value in a sentence, and of what is printed for the value to come to.

    Examples
    --------
    >>> print(*told_move(1200.0, 1509.8765432109876, None, 1510.0), *told_move(26800.0004, 29850.5, None, None))
    1200 1510 26800 29850.5
    """
    step, limits, decimals = _grid(feature)
    first, _ = move_in_digits(before, after, step=step, limits=limits, decimals=decimals)
    second = exact(after if printed is None else printed)
    if before != after and (second > first) is not (after > before):
        first = exact(before)
    return first, second


def tidied(value: float) -> Decimal:
    """Return the shortest decimal number that is a value but for the rounding of floats.

    Examples
    --------
    >>> print(tidied(0.1 + 0.2), tidied(1 / 3))
    0.3 0.333333333333
    """
    for places in range(_most_places(value, _FLOAT_DIGITS)):
        rounded = _rounded(value, places, ROUND_HALF_EVEN)
        if _is_noise(rounded, value, abs(value)):
            return _tidy(rounded)
    return exact(value)


def _grid(feature: Feature | None) -> tuple[float | None, tuple[float, float], int | None]:
    """Return the step, the limits and the decimals of a column, as far as anybody knows."""
    if feature is None:
        return None, _NO_LIMITS, None
    return feature.spacing, (feature.lower, feature.upper), written_decimals(feature)


def written_decimals(feature: Feature) -> int | None:
    """Return the decimals of a column's data; None of more than anybody chose, as quotients have them."""
    if feature.step is None and feature.decimals is not None and feature.decimals > _MOST_DECIMALS:
        return None
    return feature.decimals


def _stops_short(rounded: float, value: float, start: float) -> bool:
    """Whether a rounded number is nearer to the start than the value, if by a trace: a split may lie in between."""
    if value > start:
        return rounded < value
    return rounded > value


def _on_grid(value: float, start: float, step: float) -> Decimal:
    """Return a value of the grid ``start + k step``: the sum in decimal numbers where it is that, else the float."""
    places = max(_places(start), _places(step))
    rounded = _rounded(value, places, ROUND_HALF_EVEN)
    if _is_noise(rounded, value, max(abs(value), abs(start))):
        return _tidy(rounded)
    return exact(value)


def _nearest(value: float, room: float, digits: int) -> Decimal:
    """Return the shortest decimal number near enough to a value."""
    room = min(room, _SHARE * abs(value))
    most = _most_places(value, digits)
    for places in range(most + 1):
        rounded = _rounded(value, places, ROUND_HALF_EVEN)
        if places == most or abs(float(rounded) - value) <= room:
            return _tidy(rounded)
    return exact(value)


def _away(value: float, start: float, room: float, limits: tuple[float, float], digits: int) -> Decimal:
    """Return the shortest decimal number that is not nearer to the start than a value, and near enough to it."""
    whole = exact(value)
    if len(whole.as_tuple().digits) <= _DIGITS:
        return whole
    room = min(room, _SHARE * abs(value))
    if value > start:
        rounding = ROUND_CEILING
    else:
        rounding = ROUND_FLOOR
    most = _most_places(value, digits)
    for places in range(_most_places(value, _FLOAT_DIGITS) + 1):
        rounded = _rounded(value, places, ROUND_HALF_EVEN)
        if _is_noise(rounded, value, abs(value)) and not _stops_short(float(rounded), value, start):
            return _tidy(rounded)
        rounded = _rounded(value, places, rounding)
        is_inside = limits[0] <= float(rounded) <= limits[1] or not limits[0] <= value <= limits[1]
        if is_inside and (places >= most or abs(float(rounded) - value) <= room):
            return _tidy(rounded)
    return exact(value)


def _most_places(value: float, digits: int) -> int:
    """Return the decimal places of a value's significant digits; whole numbers keep all of theirs."""
    if not value:
        return 0
    return max(digits - 1 - Decimal(value).adjusted(), 0)


def _rounded(value: float, places: int, rounding: str) -> Decimal:
    return Decimal(value).quantize(Decimal(1).scaleb(-places), rounding=rounding, context=_CONTEXT)


def _places(value: float) -> int:
    """Return how many decimal places a number has."""
    return max(0, -int(exact(value).as_tuple().exponent))


def _is_noise(rounded: Decimal, value: float, size: float) -> bool:
    """Whether what was rounded away is no more than the rounding of floats."""
    return abs(float(rounded - Decimal(value))) <= DIGIT_NOISE * size


def _tidy(number: Decimal) -> Decimal:
    """Return a number without zeros after its last digit."""
    number = number.normalize(_CONTEXT)
    if not number:  # -0 is 0
        return Decimal(0)
    if int(number.as_tuple().exponent) > 0:
        number = number.quantize(Decimal(1), context=_CONTEXT)
    return number


# ==== A language: templates, checked, and what is said by them ========================================================

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
        return " ".join(filter(None, sentences))

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

    def column(self, name: str) -> str:
        """Return the name of a column as a change speaks of it; as it is where it brings an article of its own."""
        name = printable(name)
        first, _, _ = name.partition(" ")
        if first.casefold() in self.templates["articles"].split():
            return name
        return self.put("column", column=name)

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
        return separator.join(filter(None, map(self.field, values)))

    def _terms(self, terms: Any) -> str:
        """Return "0.5 income + savings - debt" of coefficients and columns."""
        text = ""
        for coefficient, column in terms:
            sign = " + "
            if coefficient < 0:
                sign = " - "
            size = "" if abs(coefficient) == 1 else f"{self.number(abs(coefficient))} "
            text += f"{sign}{size}{printable(column)}"
        if text.startswith(" - "):
            text = f"-{text[3:]}"
        return text.removeprefix(" + ")


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
    shipped = LANGUAGES[language]
    if given is None:
        return Language(shipped)
    if not isinstance(given, Mapping):
        but = f"templates is {type(given).__name__}"
        raise InvalidTypeError(who, "a mapping from names to texts as templates", but, 'Write {"raise": "..."}.')
    for name, text in given.items():
        _check_template(who, name, text)
    return Language({**shipped, **given})


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

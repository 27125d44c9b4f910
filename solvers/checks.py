"""Checks of arguments as data: a table says for each name what its value must be, and one call goes through it.

A check holds a condition and, where the usual sentence would not do, the :class:`Refusal` that says otherwise. What two
arguments must be to each other is no matter for a table and stays in the function that takes them.

Examples
--------
>>> from ceopt.solvers.checks import Choice, OrNone, Real, Whole, check_arguments
>>> checks = {"n": Whole(at_least=1), "limit_s": OrNone(Real(above=0)), "norm": Choice(("l1", "l2"))}
>>> check_arguments("nearest", checks, {"n": 3, "limit_s": None, "norm": "l2"})
{'n': 3, 'limit_s': None, 'norm': 'l2'}
>>> check_arguments("nearest", checks, {"n": 0, "limit_s": None, "norm": "l2"})
Traceback (most recent call last):
ceopt.solvers.errors.InvalidValueError: nearest needs n to be a whole number from 1, but n is 0. Give such a number.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, UnknownNameError

# ==== Checks of arguments as data: a table says for each name what its value must be, and one call goes through it ====

#: Beyond this size squares, and products of two numbers, are no longer numbers.
LARGEST = 1e150

#: The greatest whole number that solvers take as a seed or a count.
_GREATEST = 2**31 - 1


# ---- the tables ------------------------------------------------------------------------------------------------------
def check_arguments(who: str, checks: Mapping[str, AbstractCheck], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a table names, as plain values, or refuse the first that is wrong.

    Parameters
    ----------
    who
        The function or class that errors name.
    checks
        What each argument must be.
    given
        The arguments by name; a function gives its ``locals()``. Names that the table does not have are passed over.

    Raises
    ------
    UnknownNameError, InvalidTypeError, InvalidValueError
        An argument is not what its check asks for.
    """
    return {name: check.require(who, name, given[name]) for name, check in checks.items()}


def check_fields(instance: Any, checks: Mapping[str, AbstractCheck]) -> dict[str, Any]:
    """Return the fields of an object that a table names, as plain values, or refuse the first in its class's name."""
    given = {name: getattr(instance, name) for name in checks}
    return check_arguments(type(instance).__name__, checks, given)


@final
@dataclass(frozen=True, slots=True)
class Refusal:
    """The sentence that refuses a value: ``<who> needs <needs>, but <but>. <then>``.

    In each part ``{name}`` stands for the argument, ``{value}`` for its value as Python writes it, ``{text}`` for it as
    text and ``{type}`` for the name of its class.
    """

    needs: str
    then: str
    but: str = "{name} is {value}"
    error: type[CeoptError] = InvalidValueError

    def of(self, who: str, name: str, value: Any) -> CeoptError:
        """Return the error about a value."""
        words: dict[str, Callable[[], str]] = {
            "{name}": lambda: name,
            "{type}": lambda: type(value).__name__,
            "{text}": lambda: str(value),
            "{value}": lambda: repr(value),
        }
        parts = []
        for part in (self.needs, self.but, self.then):
            for word, meaning in words.items():
                if word in part:  # some values fail when they are written in a way that nobody asks for
                    part = part.replace(word, meaning())  # noqa: PLW2901 - the part, word for word
            parts.append(part)
        return self.error(who, *parts)


# ---- what a value may be ---------------------------------------------------------------------------------------------
class AbstractCheck(ABC):
    """The condition on one argument."""

    __slots__ = ()

    @abstractmethod
    def require(self, who: str, name: str, value: Any) -> Any:
        """Return the value as a plain one, or raise the error that refuses it in the name of ``who``."""


@final
@dataclass(frozen=True, slots=True)
class Whole(AbstractCheck):
    """A whole number within limits; ``at_most`` None is no limit.

    ``wrong_type`` refuses what is no whole number and ``too_high`` what is above the limits, where that is to be said
    otherwise than ``otherwise`` says of all.
    """

    at_least: int
    at_most: int | None = _GREATEST
    otherwise: Refusal | None = None
    wrong_type: Refusal | None = None
    too_high: Refusal | None = None

    def require(self, who: str, name: str, value: Any) -> int:
        """Return the number as an ``int``."""
        if not is_whole(value):
            raise (self.wrong_type or self._usual()).of(who, name, value)
        if value < self.at_least:
            raise self._usual().of(who, name, value)
        if self.at_most is not None and value > self.at_most:
            raise (self.too_high or self._usual()).of(who, name, value)
        return int(value)

    def _usual(self) -> Refusal:
        if self.otherwise is not None:
            return self.otherwise
        needs = f"{{name}} to be a whole number from {self.at_least}"
        if self.at_most is not None and self.at_most < _GREATEST:
            needs += f" to {self.at_most}"
        return Refusal(needs, "Give such a number.")


@final
@dataclass(frozen=True, slots=True)
class Real(AbstractCheck):
    """A number within limits, infinite unless ``finite``; NaN is none.

    ``wrong_type`` refuses what is no number, where that is to be said otherwise than ``otherwise`` says of all.
    """

    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    finite: bool = False
    otherwise: Refusal | None = None
    wrong_type: Refusal | None = None

    def require(self, who: str, name: str, value: Any) -> float:
        """Return the number as a ``float``."""
        if not is_number(value):
            raise (self.wrong_type or self._usual(value)).of(who, name, value)
        if not self._holds(float(value)):
            raise self._usual(value).of(who, name, value)
        return float(value)

    def _holds(self, number: float) -> bool:
        return not (
            math.isnan(number)
            or (self.finite and math.isinf(number))
            or (self.above is not None and number <= self.above)
            or (self.at_least is not None and number < self.at_least)
            or (self.below is not None and number >= self.below)
            or (self.at_most is not None and number > self.at_most)
        )

    def _usual(self, value: Any) -> Refusal:
        if self.otherwise is not None:
            return self.otherwise
        limits = {"above": self.above, "at least": self.at_least, "below": self.below, "at most": self.at_most}
        needs = ["{name} to be a number"]
        needs += [f"{word} {limit:g}" for word, limit in limits.items() if limit is not None]
        if self.finite or (is_whole(value) and math.isinf(in_double(value))):  # an int of more than 308 digits
            needs.append("and finite")
        return Refusal(" ".join(needs), "Give such a number.")


@final
@dataclass(frozen=True, slots=True)
class Moderate(AbstractCheck):
    """A number with which a program can calculate: its square does not overflow. Infinities mean "none"."""

    then: str = "Change its unit, or correct it."

    def require(self, who: str, name: str, value: float) -> float:
        """Return the number as a ``float``."""
        if LARGEST < abs(value) < math.inf:
            raise InvalidValueError(who, f"numbers of at most {LARGEST:g} in size", f"{name} is {value!r}", self.then)
        return float(value)


@final
@dataclass(frozen=True, slots=True)
class Divisor(AbstractCheck):
    """A number by which others can be divided: neither it nor its inverse overflows when squared. 0 means "none"."""

    then: str = "Change its unit, or correct it."

    def require(self, who: str, name: str, value: float) -> float:
        """Return the number as a ``float``."""
        number = Moderate(self.then).require(who, name, float(value))
        least = 1.0 / LARGEST
        if 0.0 < abs(number) < least:
            raise InvalidValueError(who, f"numbers of at least {least:g} in size", f"{name} is {number!r}", self.then)
        return number


@final
@dataclass(frozen=True, slots=True)
class Choice(AbstractCheck):
    """One of some words, or of those that a function lists at the time; errors call it ``word``, or by its name.

    Values that do not compare, such as arrays and pd.NA, are none of them.
    """

    choices: Iterable[str] | Callable[[], Iterable[str]]
    word: str | None = None

    def require(self, who: str, name: str, value: Any) -> str:
        """Return the word."""
        choices = list(self.choices() if callable(self.choices) else self.choices)
        if not isinstance(value, str) or value not in choices:
            raise UnknownNameError.among(who, self.word or name, value, choices)
        return value


@final
@dataclass(frozen=True, slots=True)
class NameOrObject(AbstractCheck):
    """An object of a class, or the name of one that is listed, which is then made; ``spelt`` has other spellings.

    ``otherwise`` refuses what is neither an object of the class nor a text.
    """

    kind: type[Any]
    listed: Mapping[str, Callable[[], Any]]
    otherwise: Refusal
    spelt: Mapping[str, str] = field(default_factory=dict)

    def require(self, who: str, name: str, value: Any) -> Any:
        """Return the object."""
        if isinstance(value, self.kind):
            return value
        if not isinstance(value, str):
            raise self.otherwise.of(who, name, value)
        word = self.spelt.get(value, value)
        if word not in self.listed:
            raise UnknownNameError.among(who, name, word, self.listed)
        return self.listed[word]()


@final
@dataclass(frozen=True, slots=True)
class AllOf(AbstractCheck):
    """Several checks, one after the other."""

    checks: tuple[AbstractCheck, ...]

    def require(self, who: str, name: str, value: Any) -> Any:
        """Return what the last check returns."""
        plain = value
        for check in self.checks:
            plain = check.require(who, name, value)
        return plain


_NO_FLAG = Refusal("True or False as {name}", "Write one.", error=InvalidTypeError)
_NO_TEXT = Refusal("text as {name}", "Write it as text.", error=InvalidTypeError)


@final
@dataclass(frozen=True, slots=True)
class Flag(AbstractCheck):
    """True or False, of Python or numpy."""

    otherwise: Refusal = _NO_FLAG

    def require(self, who: str, name: str, value: Any) -> bool:
        """Return it as a ``bool``."""
        if not isinstance(value, bool | np.bool_):
            raise self.otherwise.of(who, name, value)
        return bool(value)


@final
@dataclass(frozen=True, slots=True)
class Text(AbstractCheck):
    """A text."""

    otherwise: Refusal = _NO_TEXT

    def require(self, who: str, name: str, value: Any) -> str:
        """Return the text."""
        if not isinstance(value, str):
            raise self.otherwise.of(who, name, value)
        return value


@final
@dataclass(frozen=True, slots=True)
class Instance(AbstractCheck):
    """An object of a class, or of one of several."""

    kinds: type[Any] | tuple[type[Any], ...]
    otherwise: Refusal

    def require(self, who: str, name: str, value: Any) -> Any:
        """Return the object."""
        if not isinstance(value, self.kinds):
            raise self.otherwise.of(who, name, value)
        return value


@final
@dataclass(frozen=True, slots=True)
class OrNone(AbstractCheck):
    """None, or what another check asks for."""

    check: AbstractCheck

    def require(self, who: str, name: str, value: Any) -> Any:
        """Return None, or what the other check returns."""
        if value is None:
            return None
        return self.check.require(who, name, value)


# ---- collections -----------------------------------------------------------------------------------------------------
@final
@dataclass(frozen=True, slots=True)
class MappingOf(AbstractCheck):
    """A mapping from texts, or from keys of any kind, to what another check asks for.

    ``entry`` is what errors call the value at a key: in it ``{name}`` stands for the argument, ``{key}`` for the key as
    Python writes it and ``{column}`` for the key as text.
    """

    otherwise: Refusal
    values: AbstractCheck | None = None
    empty: Refusal | None = None
    texts: bool = False
    entry: str = "{name}[{key}]"

    def require(self, who: str, name: str, value: Any) -> dict[Any, Any]:
        """Return the mapping as a ``dict`` with the values that their check returns."""
        if not isinstance(value, Mapping) or (self.texts and not all(isinstance(key, str) for key in value)):
            raise self.otherwise.of(who, name, value)
        if self.empty is not None and not value:
            raise self.empty.of(who, name, value)
        if self.values is None:
            return dict(value)
        return _checked_values(self.values, self.entry, who, name, value)


@final
@dataclass(frozen=True, slots=True)
class OneOrMapping(AbstractCheck):
    """One value, or a mapping of values; ``entry`` is as for :class:`MappingOf`."""

    one: AbstractCheck
    values: AbstractCheck
    entry: str = "{name}[{key}]"

    def require(self, who: str, name: str, value: Any) -> Any:
        """Return what the check of the value, or of each value, returns."""
        if isinstance(value, Mapping):
            return _checked_values(self.values, self.entry, who, name, value)
        return self.one.require(who, name, value)


def _checked_values(check: AbstractCheck, entry: str, who: str, name: str, given: Mapping[Any, Any]) -> dict[Any, Any]:
    checked = {}
    for key, value in given.items():
        entry_name = entry.replace("{name}", name).replace("{key}", repr(key)).replace("{column}", str(key))
        checked[key] = check.require(who, entry_name, value)
    return checked


@final
@dataclass(frozen=True, slots=True)
class ListOf(AbstractCheck):
    """A list of texts, or of entries of any kind: all that can be iterated over but text, which is one thing."""

    otherwise: Refusal
    entries: AbstractCheck | None = None
    empty: Refusal | None = None
    texts: bool = False

    def require(self, who: str, name: str, value: Any) -> tuple[Any, ...]:
        """Return the entries as a tuple."""
        if isinstance(value, str | bytes):
            raise self.otherwise.of(who, name, value)
        try:
            entries = tuple(value)
        except TypeError:
            raise self.otherwise.of(who, name, value) from None
        if self.texts and not all(isinstance(entry, str) for entry in entries):
            raise self.otherwise.of(who, name, value)
        if self.empty is not None and not entries:
            raise self.empty.of(who, name, value)
        if self.entries is None:
            return entries
        return tuple(self.entries.require(who, name, entry) for entry in entries)


# ---- arrays ----------------------------------------------------------------------------------------------------------
#: Arrays of float64; the one name for them in all rooms.
Floats: TypeAlias = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class Matrix(AbstractCheck):
    """Finite numbers of a shape, in which None is any length.

    ``then`` is what to do about another shape, ``fill`` about a number that is missing or not finite.
    """

    shape: tuple[int | None, ...]
    then: str = "Give such an array."
    fill: str = "Leave out what has none."

    def require(self, who: str, name: str, value: Any) -> Floats:
        """Return a copy in double precision."""
        found = _numbers_in(value)
        if found is None:
            raise _not_numbers(who, name, value)
        fits = len(found.shape) == len(self.shape)
        for wanted, length in zip(self.shape, found.shape, strict=False):
            fits = fits and wanted in {None, length}
        if not fits:
            shape = " by ".join("n" if length is None else str(length) for length in self.shape)
            raise InvalidValueError(who, f"{name} of shape {shape}", f"its shape is {found.shape}", self.then)
        finite = np.isfinite(found)
        if not finite.all():
            first = tuple(np.argwhere(~finite)[0])
            place = ", ".join(map(str, first))
            but = f"{name}[{place}] is {found[first]}"
            raise InvalidValueError(who, f"finite {name}", but, self.fill)
        return found


def _numbers_in(value: Any) -> Floats | None:
    """Return a copy of an array-like of numbers, or None if it holds anything else; text is no number."""
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "biufO":
            return None
        if given.dtype.kind == "O" and any(isinstance(entry, str | bytes) for entry in given.flat):
            return None
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _not_numbers(who: str, name: str, value: Any) -> InvalidValueError:
    """Return the error for values that are not numbers, naming the column of a frame."""
    if hasattr(value, "dtypes") and hasattr(value, "columns"):
        for column, kind in value.dtypes.items():
            if kind.kind not in "biuf":
                then = "Give rows as the classifier sees them, of a pipeline model[:-1].transform(rows)."
                return InvalidValueError(who, f"numbers as {name}", f"its column {column!r} has type {kind}", then)
    shown = repr(value)
    if len(shown) > 60:
        shown = f"of type {type(value).__name__}"
    return InvalidValueError(who, f"numbers as {name}", f"{name} is {shown}", "Give an array of numbers.")


# ---- checks and refusals that several rooms share --------------------------------------------------------------------
def whole_from(at_least: int, at_most: int | None = None) -> Whole:
    """Return the check of a whole number whose type, least and greatest are each refused in a sentence of its own."""
    too_low = Refusal(f"{{name}} to be at least {at_least}", "Raise it.")
    too_high = Refusal(f"{{name}} to be at most {at_most}", "Lower it.")
    return Whole(at_least, at_most, too_low, NOT_WHOLE, too_high)


#: Refusals of what has the wrong type, for arguments whose limits are named apart from it.
NOT_WHOLE = Refusal("a whole number as {name}", "Give an int.", error=InvalidTypeError)
NOT_A_NUMBER = Refusal("a number as {name}", "Give a number.", error=InvalidTypeError)

#: A number that stands in a row of a program.
COEFFICIENT = AllOf((Real(finite=True, otherwise=Refusal("finite numbers", "Give a number.")), Moderate()))

#: Options of a solver, by its own names for them.
OPTIONS = OrNone(
    MappingOf(
        Refusal("a mapping from names to values as {name}", "Give a dict.", "it is {value}", InvalidTypeError),
        texts=True,
    )
)

#: A length, weight or margin: at least 0, and finite.
LENGTH = Real(at_least=0.0, finite=True)


# ---- values ----------------------------------------------------------------------------------------------------------
def is_number(value: Any) -> bool:
    """Whether a value is a real number that double precision holds; bool, complex numbers and spans of time are not."""
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return not isinstance(value, int) or math.isfinite(in_double(value))


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number by its type; bool and spans of time are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def plain(value: Any) -> Any:
    """Turn a numpy scalar into the Python scalar of equal value; everything else is returned as it is."""
    return value.item() if isinstance(value, np.generic) else value


def in_double(value: Any) -> float:
    """Return a number in double precision, whatever its own; infinite for an int of more than 308 digits."""
    try:
        return float(value)
    except OverflowError:
        return math.inf

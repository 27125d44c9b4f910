"""Checks of what a caller passes to a session, before work starts."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.problem import Vector

__all__ = [
    "LARGEST",
    "Start",
    "in_double",
    "is_number",
    "listed",
    "refuse_argument",
    "require_choice",
    "require_count",
    "require_data",
    "require_divisor",
    "require_moderate",
    "require_number",
    "sparse_start",
]

Start = Mapping[int, float] | Sequence[float] | Vector


def require_choice(who: str, word: str, value: Any, choices: Iterable[str], *, quoted: bool = False) -> None:
    """Refuse what is not one of some words; values that do not compare, such as arrays and pd.NA, are none."""
    choices = list(choices)
    if not isinstance(value, str) or value not in choices:
        raise UnknownNameError.among(who, word, value, choices, quoted=quoted)


def listed(who: str, needs: str, name: str, value: Any) -> tuple[Any, ...]:
    """Return the entries of a list, or refuse what is none; text is one thing, not a list of its letters."""
    if not isinstance(value, str | bytes):
        with contextlib.suppress(TypeError):
            return tuple(value)
    raise InvalidTypeError(who, needs, f"{name} is {value!r}", "Correct it.")


def require_count(who: str, name: str, value: Any, least: int, most: int = 2**31 - 1) -> None:
    """Refuse what is not a whole number from ``least`` to ``most``."""
    if (
        isinstance(value, bool | np.timedelta64)
        or not isinstance(value, int | np.integer)
        or not least <= value <= most
    ):
        wanted = f"{name} to be a whole number from {least}" + (f" to {most}" if most < 2**31 - 1 else "")
        raise InvalidValueError(who, wanted, f"{name} is {value!r}", "Give such a number.")


def in_double(value: Any) -> float:
    """Return a number in double precision, whatever its own; infinite for an int of more than 308 digits."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def is_number(value: Any) -> bool:
    """Whether a value is a real number that double precision holds; bool, complex numbers and spans of time are not."""
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return not isinstance(value, int) or math.isfinite(in_double(value))


#: Beyond this size squares, and products of two numbers, are no longer numbers.
LARGEST = 1e150


def require_moderate(who: str, name: str, value: float, then: str = "Change its unit, or correct it.") -> None:
    """Refuse a number with which a program cannot calculate, as its square overflows; infinities mean "none"."""
    if LARGEST < abs(value) < math.inf:
        raise InvalidValueError(who, f"numbers of at most {LARGEST:g} in size", f"{name} is {value!r}", then)


def require_divisor(who: str, name: str, value: float, then: str = "Change its unit, or correct it.") -> None:
    """Refuse a number by which others cannot be divided, as it is too small or too large; 0 means "none"."""
    require_moderate(who, name, value, then)
    if 0.0 < abs(value) < 1.0 / LARGEST:
        raise InvalidValueError(who, f"numbers of at least {1.0 / LARGEST:g} in size", f"{name} is {value!r}", then)


def require_number(
    who: str, name: str, value: Any, *, above: float = -math.inf, least: float = -math.inf, finite: bool = False
) -> None:
    """Refuse what is not a number above ``above`` and at least ``least``, or infinite; NaN is neither."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(
        value, bool | np.timedelta64
    )
    number = in_double(value) if is_number else math.nan
    finite = finite or (number == math.inf and value != math.inf)
    if not is_number or not (number > above and number >= least) or (finite and number == math.inf):
        limit = f"above {above:g}" if above > -math.inf else f"at least {least:g}"
        limit += " and finite" if finite else ""
        raise InvalidValueError(who, f"{name} to be a number {limit}", f"{name} is {value!r}", "Give such a number.")


def refuse_argument(who: str, name: str, value: Any, arguments: Mapping[str, str], word: str = "option") -> None:
    """Refuse a solver's own option where an argument of ours, ``arguments[name]``, stands for it."""
    if name in arguments:
        raise InvalidValueError(
            who,
            f"{word} {name!r} as an argument",
            f"it is in options with {value!r}",
            f"Use {arguments[name]}= instead.",
        )


def require_data(who: str, compiled: CompiledModel) -> None:
    """Refuse data columns that have no value yet."""
    unset = np.flatnonzero(np.isnan(compiled.lb))
    if unset.size:
        name = compiled.columns[unset[0]].name
        raise InvalidValueError(who, "a value for all data", f"{name!r} has none", "Call set_data first.")


def sparse_start(start: Start | None, n: int) -> dict[int, float]:
    """Return a start as column -> value, each finite and one of the ``n`` columns."""
    if start is None:
        return {}
    if not isinstance(start, Mapping) and len(start) != n:
        raise InvalidValueError(
            "start", f"a value for each of {n} columns", f"it has {len(start)}", "Give all of them."
        )
    pairs = dict(start) if isinstance(start, Mapping) else dict(enumerate(start))
    for column, value in pairs.items():
        if not 0 <= column < n or not math.isfinite(value):
            raise InvalidValueError(
                "start", f"finite values for columns 0 to {n - 1}", f"column {column} is {value}", "Leave it out."
            )
    return {int(column): float(value) for column, value in pairs.items()}

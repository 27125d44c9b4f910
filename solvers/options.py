"""Options by a solver's own names: refused before work starts where unknown, of another type or out of range."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

from ceopt.solvers.errors import CeoptError, InvalidValueError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option as its solver describes it.

    Parameters
    ----------
    types
        What its value may be, of bool, int, float and str; empty where only the solver can tell.
    takes
        What an error says that it needs.
    then
        What to do about a value that is refused; empty for what the solver itself says.
    """

    types: tuple[type[bool | int | float | str], ...] = ()
    takes: str
    then: str = ""


def apply_options(
    who: str,
    options: Mapping[str, Any],
    *,
    arguments: Mapping[str, str],
    describe: Callable[[str], Option],
    put: Callable[[str, Any], object],
    word: str = "option",
) -> dict[str, Any]:
    """Hand each option over to a solver, and return their plain values by name.

    Parameters
    ----------
    who
        What errors call the solver.
    options
        Its own name for each -> value.
    arguments
        Options for which an argument of ours stands -> its name.
    describe
        Returns what the solver says of an option, or raises :class:`~ceopt.solvers.errors.UnknownNameError`.
    put
        Hands one over; raises where the solver does not take the value.
    word
        What the solver calls an option.

    Raises
    ------
    UnknownNameError
        The solver has no option of that name.
    InvalidValueError
        The solver does not take the value, or the option has an argument of its own.
    """
    taken = {}
    for name, value in options.items():
        if name in arguments:
            then = f"Use {arguments[name]}= instead."
            raise InvalidValueError(who, f"{word} {name!r} as an argument", f"it is in options with {value!r}", then)
        option = describe(name)
        plain = _of_types(value, option.types)
        cause: Exception | None = None
        if plain is not None or not option.types:
            try:
                put(name, plain)
            except CeoptError:
                raise
            except Exception as error:  # noqa: BLE001 - each library raises a class of its own
                cause = error
            else:
                taken[name] = plain
                continue
        raise InvalidValueError(who, option.takes, f"{name} is {value!r}", option.then or str(cause or "")) from cause
    return taken


def _of_types(value: Any, types: tuple[type[bool | int | float | str], ...]) -> Any:
    """Return the plain value as the first type that it has; None if it has another type."""
    if not types:
        return plain_option(value)
    for kind in types:
        plain = plain_of_type(value, kind)
        if plain is not None:
            return plain
    return None


def plain_option(value: Any) -> Any:
    """Return numpy's scalars as Python's own, and anything else as it is."""
    if hasattr(value, "item") and not isinstance(value, str):
        return value.item()
    return value


def plain_of_type(value: Any, kind: type[bool | int | float | str]) -> bool | int | float | str | None:
    """Return the value as ``kind`` (bool, int, float or str); None where a solver would cut it to size or fail.

    True is no number and 1.5 no whole number; a whole number is also a float; NaN is none.
    """
    value = plain_option(value)
    if isinstance(value, bool):
        if kind is bool:
            return value
        return None
    if kind is float and isinstance(value, int):
        return float(value)
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, kind):
        return value
    return None

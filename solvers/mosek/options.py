"""MOSEK's parameters by their own names, refused before work starts if unknown or out of range."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ceopt.solvers.checks import refuse_argument
from ceopt.solvers.errors import InvalidValueError, UnknownNameError
from ceopt.solvers.mosek.status import name_of

__all__ = ["set_options"]

_ARGUMENTS = {
    "MSK_DPAR_OPTIMIZER_MAX_TIME": "time_limit_s",
    "MSK_DPAR_MIO_MAX_TIME": "time_limit_s",
    "MSK_DPAR_MIO_TOL_REL_GAP": "relative_gap",
    "MSK_IPAR_NUM_THREADS": "threads",
    "MSK_IPAR_MIO_SEED": "random_state",
}
_TYPES: dict[str, tuple[type, ...]] = {"dparam": (int, float), "iparam": (int, str), "sparam": (str,)}


def set_options(task: Any, options: Mapping[str, Any]) -> None:
    """Set each option on a ``mosek.Task``.

    Raises
    ------
    UnknownNameError
        MOSEK has no parameter of that name.
    InvalidValueError
        MOSEK does not take the value, or the parameter has an argument of its own.
    """
    import mosek

    known = dict(_names())
    for name, value in options.items():
        refuse_argument("MOSEK", name, value, _ARGUMENTS)
        if name not in known:
            raise UnknownNameError.among("MOSEK", "option", name, known)
        plain = value.item() if hasattr(value, "item") and not isinstance(value, str) else value
        try:
            is_nan = isinstance(plain, float) and math.isnan(plain)
            if is_nan or isinstance(plain, bool) or not isinstance(plain, _TYPES[known[name]]):
                raise TypeError  # noqa: TRY301 - refused below, as what MOSEK itself refuses
            task.putparam(name, str(plain))
        except (mosek.Error, TypeError) as error:
            said = error.msg.strip().rstrip(".") if isinstance(error, mosek.Error) else ""
            raise InvalidValueError(
                "MOSEK", f"a value that option {name!r} takes", f"{name} is {value!r}", f"{said}." if said else ""
            ) from error


def _names() -> Iterator[tuple[str, str]]:
    import mosek

    for kind in _TYPES:
        for member in getattr(mosek, kind).members():
            yield f"MSK_{kind[0].upper()}PAR_{name_of(member).upper()}", kind

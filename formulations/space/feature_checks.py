"""The rules of a column's description, and its values settled into plain types; used by ``Feature`` alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from ceopt.formulations.digits import digits
from ceopt.formulations.space.dtypes import (
    default_dtype,
    dtype_from_text,
    dtype_text,
    integer_limits,
    is_number_dtype,
    is_object_dtype,
    pool,
)
from ceopt.solvers.checks import (
    AbstractCheck,
    Choice,
    Divisor,
    Flag,
    ListOf,
    OrNone,
    Real,
    Refusal,
    Text,
    check_arguments,
    plain,
    whole_from,
)
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["FINITE", "LEVELS", "Direction", "Kind", "Scale", "require_level", "settled"]

Kind = Literal["continuous", "integer", "ordinal", "categorical", "binary"]
Direction = Literal["any", "increasing", "decreasing", "up", "down"]
Scale = Literal["mad", "std", "range", "none"]

FINITE = frozenset({"ordinal", "categorical", "binary"})
#: Directions by the shorter words that mean the same; a feature holds the longer ones.
_LONGER = {"up": "increasing", "down": "decreasing"}

_NO_TEXT = Refusal("{name} to be text", "Write it as text.", error=InvalidTypeError)
_NO_FLAG = Refusal("{name} to be True or False", "Correct it.", error=InvalidTypeError)
_NO_NUMBER = Refusal("{name} to be a number", "Correct it.", error=InvalidTypeError)
_NOT_FINITE = Refusal("{name} to be finite", "Correct it.", "{name} is {text}")
_NO_SIZE = Refusal("{name} to be finite and at least 0", "Correct it.", "{name} is {text}")
_NO_BOUND = Refusal("{name} to be a number (inf for none)", "Correct it.", "{name} is {text}")

_SIZE = Real(at_least=0.0, finite=True, otherwise=_NO_SIZE, wrong_type=_NO_NUMBER)
_BOUND = Real(otherwise=_NO_BOUND, wrong_type=_NO_NUMBER)
_STEP = Real(finite=True, otherwise=_NOT_FINITE, wrong_type=_NO_NUMBER)
CODES = ListOf(Refusal("codes in a list or tuple", "Correct it.", error=InvalidTypeError))
LEVELS = ListOf(Refusal("levels in a list or tuple", "Correct it.", error=InvalidTypeError))

_WORDS = {"kind": Choice(get_args(Kind)), "direction": Choice(get_args(Direction))}
_TEXTS = {"unit": OrNone(Text(_NO_TEXT)), "guess": Text(_NO_TEXT)}
_FLAGS = dict.fromkeys(("mutable", "lower_inferred", "upper_inferred", "step_inferred"), Flag(_NO_FLAG))
_DECIMALS = {"decimals": OrNone(whole_from(0))}
_STATISTICS = dict.fromkeys(("mad", "std", "range"), OrNone(_SIZE))
_BOUNDS = dict.fromkeys(("lower", "upper"), _BOUND)


def settled(given: Any) -> dict[str, Any]:
    """Check every field of a new ``Feature`` and give the fields to replace, derived ones included."""
    if not isinstance(given.name, str) or not given.name:
        raise InvalidTypeError(
            "Feature", "a name that is text", f"name is {given.name!r}", "Rename the column, as by columns.astype(str)."
        )
    who = f"Column {given.name!r}"
    new = _words(who, given) | _weights_and_scales(who, given) | _dtype(who, given)
    if given.kind in FINITE:
        new |= _levels(who, given, new)
    else:
        new |= _bounds(who, given, new)
    return new | _codes(who, given, new)


def _words(who: str, given: Any) -> dict[str, Any]:
    _fields(who, _WORDS, given)
    if given.direction != "any" and given.kind == "categorical":
        raise InvalidValueError(
            who,
            'direction "any", as categories have no order',
            f"direction is {given.direction!r}",
            'Make it ordinal with levels lowest first, or set direction="any".',
        )
    _fields(who, _TEXTS, given)
    flags = _fields(who, {**_FLAGS, **_DECIMALS}, given)
    if given.kind != "continuous":
        flags["decimals"] = None
    flags["step_inferred"] = flags["step_inferred"] and given.step is not None
    return flags | {"direction": _LONGER.get(given.direction, given.direction)}


def _fields(who: str, checks: Mapping[str, AbstractCheck], given: Any) -> dict[str, Any]:
    """Return the fields that a table names, as plain values, or refuse the first that is wrong."""
    return check_arguments(who, checks, {name: getattr(given, name) for name in checks})


def _weights_and_scales(who: str, given: Any) -> dict[str, Any]:
    new: dict[str, Any] = {}
    if isinstance(given.weight, tuple | list):
        if len(given.weight) != 2:
            raise InvalidValueError(who, "a weight or (down, up)", f"weight is {given.weight!r}", "Give one or two.")
        new["weight"] = tuple(_SIZE.require(who, "weight", part) for part in given.weight)
    else:
        new["weight"] = _SIZE.require(who, "weight", given.weight)
    return new | _fields(who, _STATISTICS, given)


def _dtype(who: str, given: Any) -> dict[str, Any]:
    """Settle dtype (text), categories, levels as plain scalars and ``pandas_dtype``, the object."""
    text, categories, levels = given.dtype, given.categories, given.levels
    levels = tuple(plain(level) for level in LEVELS.require(who, "levels", levels))
    if text is not None and not isinstance(text, str):
        if isinstance(text, pd.CategoricalDtype) and text.categories is not None and categories is None:
            categories = text.categories.tolist()
        text = dtype_text(who, text)
    holds_categories = text is not None and text.startswith(("category", "ordered"))
    if categories is not None and not holds_categories:
        raise InvalidValueError(
            who, "categories only in a category column", f"dtype is {text}", 'Use dtype="category".'
        )
    if holds_categories:
        given_categories = levels if categories is None else categories
        categories = tuple(plain(level) for level in given_categories)
    own = None if text is None else dtype_from_text(who, text, categories)
    is_text = text is not None and text.partition("[")[0] in {"str", "string"}  # which is object before pandas 2.3
    may_hold_numbers = own is None or is_number_dtype(own) or (is_object_dtype(own) and not is_text)
    if given.kind not in FINITE and not may_hold_numbers:
        raise InvalidTypeError(
            who, f"numbers to be {given.kind}", f"its dtype is {text}", "Convert the column in the frame."
        )
    if given.kind == "continuous":
        own = np.dtype(np.float64)
    elif own is None:
        own = default_dtype(levels) if given.kind in FINITE else np.dtype(np.int64)
    return {
        "dtype": text,
        "categories": categories,
        "levels": levels,
        "pandas_dtype": own,
        "limits": integer_limits(own) if given.kind == "integer" else (0, 0),
        "pool": None,
        "ranks": {},
    }


def _levels(who: str, given: Any, new: dict[str, Any]) -> dict[str, Any]:
    if (
        _is_bound(given.lower, -math.inf)
        or _is_bound(given.upper, math.inf)
        or new["lower_inferred"]
        or new["upper_inferred"]
    ):
        raise InvalidValueError(
            who, f"no bounds, being {given.kind}", f"bounds are [{given.lower}, {given.upper}]", "Give levels."
        )
    if given.step is not None:
        raise InvalidValueError(who, f"no step, being {given.kind}", f"step is {given.step}", "Give levels.")
    levels = new["levels"]
    if not levels or (given.kind == "binary" and len(levels) != 2):
        needs = "exactly two levels" if given.kind == "binary" else "at least one level"
        raise InvalidValueError(who, needs, f"levels is {levels!r}", "Give levels=(...).")
    for place, level in enumerate(levels):
        require_level(who, level)
        if level in levels[:place]:
            raise InvalidValueError(who, "each level once", f"{level!r} is there twice", "Remove one.")
    try:
        held = pool(levels, new["pandas_dtype"])
        own = tuple(plain(level) for level in held.tolist())
    except (TypeError, ValueError, OverflowError):
        held, own = None, ()
    if own != levels:
        known = own if new["categories"] is None else new["categories"]
        lost = next((level for level in levels if level not in known), levels[0])
        raise InvalidValueError(
            who,
            f"levels that its dtype {new['dtype'] or new['pandas_dtype']} holds",
            f"level {lost!r} is not among them",
            "Correct the level, or convert the column in the frame.",
        )
    return {"levels": own, "pool": held, "ranks": {level: rank for rank, level in enumerate(own)}}


def _codes(who: str, given: Any, new: dict[str, Any]) -> dict[str, Any]:
    """Settle codes: some of the levels, or numbers beyond the bounds, so that no amount is one."""
    listed = [plain(code) for code in CODES.require(who, "codes", given.codes)]
    for code in listed:
        if isinstance(code, list | dict | set | bytearray):
            raise InvalidTypeError(who, "codes that are numbers or levels", f"{code!r} is none", "Correct it.")
    codes = tuple(dict.fromkeys(listed))
    for code in codes:
        if given.kind in FINITE:
            if code not in new["levels"]:
                then = "Correct it, or leave it out."
                raise InvalidValueError(who, "codes that are levels", f"{code!r} is none of them", then)
            continue
        require_level(who, code)
        if isinstance(code, str | bool):
            raise InvalidTypeError(who, "numbers as codes", f"one is {code!r}", "Correct it.")
        if new["lower"] <= code <= new["upper"]:
            raise InvalidValueError(
                who,
                "codes beyond its bounds, as no amount is one",
                f"{code!r} lies within [{digits(new['lower'])}, {digits(new['upper'])}]",
                "Give lower or upper with them: the least or the greatest amount.",
            )
    if codes and len(codes) == len(new.get("levels", ())):
        raise InvalidValueError(who, "a level that is no code", f"codes is {codes!r}", "Leave some out.")
    return {"codes": codes}


def require_level(who: str, level: Any) -> None:
    """Refuse what cannot be a level."""
    if not isinstance(level, str | bool | int | float) or (isinstance(level, float) and not math.isfinite(level)):
        raise InvalidTypeError(who, "levels that are text, bool or finite numbers", f"one is {level!r}", "Correct it.")


def _is_bound(value: Any, none: float) -> bool:
    return not isinstance(value, int | float) or value != none


def _bounds(who: str, given: Any, new: dict[str, Any]) -> dict[str, Any]:
    if new["levels"]:
        raise InvalidValueError(
            who, f"no levels, being {given.kind}", f"levels is {new['levels']!r}", "Give bounds, or another kind."
        )
    lower, upper = _fields(who, _BOUNDS, given).values()
    if lower > upper or lower == math.inf or upper == -math.inf:
        raise InvalidValueError(
            who,
            "a lower bound that is at most the upper",
            f"bounds are [{digits(lower)}, {digits(upper)}]",
            "Change one of them.",
        )
    if given.kind == "integer":
        low, high = new["limits"]
        for word, bound in (("lower", lower), ("upper", upper)):
            if math.isfinite(bound) and (bound != math.floor(bound) or not low <= bound <= high):
                raise InvalidValueError(
                    who,
                    f"{word} to be a whole number that {new['pandas_dtype']} holds ({low} to {high})",
                    f"{word} is {bound!r}",
                    "Round it inwards, or use inf for none.",
                )
    step = given.step
    if step is not None:
        step = _STEP.require(who, "step", step)
        if step <= 0 or (given.kind == "integer" and step != math.floor(step)):
            needs = "a positive whole step" if given.kind == "integer" else "a positive step"
            raise InvalidValueError(who, needs, f"step is {digits(step)}", "Correct it.")
        Divisor().require(who, "step", step)
    return {"lower": lower, "upper": upper, "step": step}

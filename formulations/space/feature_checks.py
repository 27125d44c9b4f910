"""The rules of a column's description, and its values settled into plain types; used by ``Feature`` alone."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from ceopt.formulations.space.dtypes import (
    default_dtype,
    dtype_from_text,
    dtype_text,
    integer_limits,
    is_number_dtype,
    is_object_dtype,
    plain,
    pool,
)
from ceopt.solvers.checks import listed, require_choice, require_divisor
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["FINITE", "Direction", "Kind", "Scale", "require_level", "settled"]

Kind = Literal["continuous", "integer", "ordinal", "categorical", "binary"]
Direction = Literal["any", "increasing", "decreasing"]
Scale = Literal["mad", "std", "range", "none"]

FINITE = frozenset({"ordinal", "categorical", "binary"})


def settled(given: Any) -> dict[str, Any]:
    """Check every field of a new ``Feature`` and give the fields to replace, derived ones included."""
    if not isinstance(given.name, str) or not given.name:
        raise InvalidTypeError(
            "Feature", "a name that is text", f"name is {given.name!r}", "Rename the column, as by columns.astype(str)."
        )
    who = f"Column {given.name!r}"
    new = _words(who, given) | _weights_and_scales(who, given) | _dtype(who, given)
    return new | (_levels(who, given, new) if given.kind in FINITE else _bounds(who, given, new))


def _words(who: str, given: Any) -> dict[str, Any]:
    for word, choices in (("kind", get_args(Kind)), ("direction", get_args(Direction))):
        require_choice(who, word, getattr(given, word), choices)
    if given.direction != "any" and given.kind == "categorical":
        raise InvalidValueError(
            who,
            'direction "any", as categories have no order',
            f"direction is {given.direction!r}",
            'Make it ordinal with levels lowest first, or set direction="any".',
        )
    for word in ("unit", "guess"):
        value = getattr(given, word)
        if not isinstance(value, str) and not (word == "unit" and value is None):
            raise InvalidTypeError(who, f"{word} to be text", f"{word} is {value!r}", "Write it as text.")
    new = {}
    for word in ("mutable", "lower_inferred", "upper_inferred"):
        value = getattr(given, word)
        if not isinstance(value, bool | np.bool_):
            raise InvalidTypeError(who, f"{word} to be True or False", f"{word} is {value!r}", "Correct it.")
        new[word] = bool(value)
    return new


def _weights_and_scales(who: str, given: Any) -> dict[str, Any]:
    new: dict[str, Any] = {}
    if isinstance(given.weight, tuple | list):
        if len(given.weight) != 2:
            raise InvalidValueError(who, "a weight or (down, up)", f"weight is {given.weight!r}", "Give one or two.")
        new["weight"] = tuple(_number(who, "weight", part, least=0.0) for part in given.weight)
    else:
        new["weight"] = _number(who, "weight", given.weight, least=0.0)
    for word in ("mad", "std", "range"):
        if getattr(given, word) is not None:
            new[word] = _number(who, word, getattr(given, word), least=0.0)
    return new


def _dtype(who: str, given: Any) -> dict[str, Any]:
    """Settle dtype (text), categories, levels as plain scalars and ``pandas_dtype``, the object."""
    text, categories, levels = given.dtype, given.categories, given.levels
    levels = tuple(plain(level) for level in listed(who, "levels in a list or tuple", "levels", levels))
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
        categories = levels if categories is None else tuple(plain(level) for level in categories)
    own = dtype_from_text(who, text, categories) if text is not None else None
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
    lower, upper = (_number(who, word, getattr(given, word), finite=False) for word in ("lower", "upper"))
    if lower > upper or lower == math.inf or upper == -math.inf:
        raise InvalidValueError(
            who, "a lower bound that is at most the upper", f"bounds are [{lower:g}, {upper:g}]", "Change one of them."
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
        step = _number(who, "step", step)
        if step <= 0 or (given.kind == "integer" and step != math.floor(step)):
            needs = "a positive whole step" if given.kind == "integer" else "a positive step"
            raise InvalidValueError(who, needs, f"step is {step:g}", "Correct it.")
        require_divisor(who, "step", step)
    return {"lower": lower, "upper": upper, "step": step}


def _number(who: str, word: str, value: Any, *, least: float = -math.inf, finite: bool = True) -> float:
    if isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        raise InvalidTypeError(who, f"{word} to be a number", f"{word} is {value!r}", "Correct it.")
    try:
        number = float(value)
    except OverflowError:
        number = math.nan
    if math.isnan(number) or (finite and math.isinf(number)) or number < least:
        needs = " finite" if finite else " a number (inf for none)"
        raise InvalidValueError(
            who,
            f"{word} to be{needs}" + (f" and at least {least:g}" if math.isfinite(least) else ""),
            f"{word} is {value}",
            "Correct it.",
        )
    return number

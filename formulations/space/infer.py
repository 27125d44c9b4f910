"""Guess what each column of a frame is, and say so."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pandas as pd

from ceopt.formulations.digits import digits, places_of
from ceopt.formulations.space.dtypes import are_gaps, dtype_text, is_number_dtype, is_object_dtype
from ceopt.formulations.space.feature import CODES, FINITE, LEVELS, Feature, Kind, require_level
from ceopt.solvers.checks import Choice, Flag, ListOf, MappingOf, OrNone, Refusal, is_number, plain
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, counted

_WHO = "FeatureSpace.infer"
_NO_ORDINAL = Refusal("ordinal as a mapping of names to levels", 'Write {"size": ["S", "M"]}.', error=InvalidTypeError)
_ORDINAL = OrNone(MappingOf(_NO_ORDINAL))
_NAMES = ListOf(Refusal("{name} to be a list of column names", "Correct it.", error=InvalidTypeError))
_LEVELS = ListOf(Refusal("its levels in a list, lowest first", "Correct it.", error=InvalidTypeError))
_STEPS = Flag()
_NO_CODES = Refusal("codes as a mapping of names to codes", 'Write {"late": [-9]}.', error=InvalidTypeError)
_CODED = OrNone(MappingOf(_NO_CODES))
_NO_MOVES = Refusal("moves as a mapping of names to words", 'Write {"age": "up"}.', error=InvalidTypeError)
_MOVES = OrNone(MappingOf(_NO_MOVES))
#: What a column may do, in the words of the printed space.
_MOVE = Choice(("any", "up", "down", "fixed", "increasing", "decreasing"), word="move")
#: Cells in which a separator is looked for.
_FIRST_CELLS = 20
#: Decimals that somebody has chosen: a column with more of them is measured or calculated.
_MOST_PLACES = 3
#: Decimals that a file is written with: a column with more of them has all that a float has.
_MOST_DECIMALS = 12
#: Units of the last decimal beyond which a number has nearly all digits of a float.
_MOST_UNITS = 1e13


def infer_features(
    frame: pd.DataFrame,
    *,
    categorical: Iterable[str] | None = None,
    ordinal: Mapping[str, Sequence[Any]] | None = None,
    binary: Iterable[str] | None = None,
    integer: Iterable[str] | None = None,
    continuous: Iterable[str] | None = None,
    moves: Mapping[str, str] | None = None,
    steps: bool = True,
    codes: Mapping[str, Any] | None = None,
) -> list[Feature]:
    """Describe each column of ``frame``; see :meth:`FeatureSpace.infer`, whose work this is, but for its warnings."""
    _check_frame(frame)
    kinds = {
        "categorical": categorical,
        "ordinal": ordinal,
        "binary": binary,
        "integer": integer,
        "continuous": continuous,
    }
    named = _named(frame, kinds)
    may_move = _moves(frame, moves)
    in_steps = _STEPS.require(_WHO, "steps", steps)
    coded = _CODED.require(_WHO, "codes", codes) or {}
    for name in coded:
        Choice(frame.columns).require(_WHO, "column", name)
    orders = ordinal or {}
    features = []
    for name in frame.columns.tolist():
        feature = _describe(
            name, frame[name], named.get(name), orders.get(name), in_steps=in_steps, codes=coded.get(name, ())
        )
        if name in may_move:
            feature = replace(feature, **may_move[name])
        features.append(feature)
    return features


def _named(frame: pd.DataFrame, kinds: Mapping[str, Any]) -> dict[str, Kind]:
    """Return the kind of each column that the caller has named."""
    _ORDINAL.require(_WHO, "ordinal", kinds["ordinal"])
    named: dict[str, Kind] = {}
    for kind, names in kinds.items():
        if names is None:
            continue
        given = (names,) if isinstance(names, str) else names
        for name in _NAMES.require(_WHO, kind, given):
            Choice(frame.columns).require(_WHO, "column", name)
            if name in named:
                raise InvalidValueError(
                    _WHO, "one kind per column", f"{name!r} is named {named[name]} and {kind}", "Choose one."
                )
            named[name] = cast("Kind", kind)
    return named


def _moves(frame: pd.DataFrame, moves: Any) -> dict[str, dict[str, Any]]:
    """Return what the caller has said of how columns may move, as fields of a feature."""
    fields: dict[str, dict[str, Any]] = {}
    for name, move in (_MOVES.require(_WHO, "moves", moves) or {}).items():
        Choice(frame.columns).require(_WHO, "column", name)
        word = _MOVE.require(_WHO, "move", move)
        fields[name] = {"mutable": False} if word == "fixed" else {"direction": word}
    return fields


def _check_frame(frame: Any) -> None:
    if not isinstance(frame, pd.DataFrame):
        raise InvalidTypeError(
            _WHO, "a DataFrame", f"it got {type(frame).__name__}", "Put the columns in a frame with names."
        )
    if frame.shape[1] == 0 or len(frame) == 0:
        raise InvalidValueError(_WHO, "a frame with rows and columns", f"its shape is {frame.shape}", "Give data.")
    for name in frame.columns:
        if not isinstance(name, str):
            raise InvalidTypeError(
                _WHO, "column names that are text", f"one is {name!r}", "Use frame.columns = frame.columns.astype(str)."
            )
    _refuse_unparted(frame)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise InvalidValueError(_WHO, "each column once", f"{twice!r} is there twice", "Remove or rename one.")


def _refuse_unparted(frame: pd.DataFrame) -> None:
    """Refuse a file that was read with another separator than its own: one column, named as all of them."""
    if frame.shape[1] > 1:
        return
    name = str(frame.columns[0])
    cells = frame.iloc[:, 0].dropna().head(_FIRST_CELLS)
    for mark in (";", "\t", "|", ","):
        is_parted = all(isinstance(cell, str) and mark in cell for cell in cells)
        if mark in name and (is_parted or mark in {";", "\t"}):
            raise InvalidValueError(
                _WHO,
                "a column for each thing that is known",
                f"the frame has one, named {name!r}",
                f"Read the file anew: pandas.read_csv(path, sep={mark!r}).",
            )


def _describe(
    name: str,
    column: pd.Series[Any],
    kind: Kind | None,
    order: Sequence[Any] | None,
    *,
    in_steps: bool,
    codes: Sequence[Any] | Mapping[Any, str],
) -> Feature:
    who = f"Column {name!r}"
    text = dtype_text(who, column.dtype)
    is_missing = are_gaps(column)
    present = column[~is_missing]
    amounts = _amounts(who, present, codes)
    values = _values(who, column.dtype, amounts)
    is_named = kind is not None
    step = None
    guess = f"named {kind}"
    if kind is None:
        kind, reason = _guess(column.dtype, values)
        if kind in FINITE:  # a code is a level too
            kind, reason = _guess(column.dtype, _values(who, column.dtype, present))
        if kind == "continuous" and in_steps:
            step, reason = _step(values)
        guess = f"{text} -> {kind}"
        if reason:
            guess += f" ({reason})"
    if is_missing.any():
        guess += f", may be missing ({_share(int(is_missing.sum()), len(column))} of rows)"
    common: dict[str, Any] = {"kind": kind, "dtype": text, "guess": guess, "missing": bool(is_missing.any())}
    if isinstance(column.dtype, pd.CategoricalDtype):
        common["categories"] = tuple(map(plain, column.dtype.categories.tolist()))
    if kind in {"continuous", "integer"}:
        common |= _numbers(who, kind, column.dtype, values, amounts)
        if kind == "continuous":
            common["decimals"] = _decimals(values)
        if kind == "continuous" and step is None and len(codes):
            then = f"Write space = space.update({name!r}, step=..., codes={codes!r}, data=frame) after infer instead."
            raise InvalidValueError(who, "a step beside codes", "it moves by any amount", then)
        if step is not None:
            common |= written_ends(common["lower"], common["upper"], common["decimals"])
        common["codes"] = codes
        return Feature(name, step=step, step_inferred=True, **common)
    levels = _values(who, column.dtype, present)
    known = levels
    if is_named and kind == "ordinal":
        known = list(map(plain, LEVELS.require(who, "levels", order)))
        beside = [code for code in codes_listed(who, codes) if code in levels and code not in known]
        levels = _ordered(who, levels, [*beside, *known])
        known = levels
    return _of_levels(who, name, levels, _among_levels(codes, known), common)


def _of_levels(who: str, name: str, levels: list[Any], codes: Any, common: dict[str, Any]) -> Feature:
    """Return a column of levels."""
    if common["kind"] == "binary":
        if _are_bools(levels):
            levels = [False, True]
        if len(levels) != 2:
            raise InvalidValueError(
                who, "exactly two values to be binary", f"it holds {len(levels)}", "Name it categorical or ordinal."
            )
    return Feature(name, levels=tuple(levels), codes=codes, **common)


def _amounts(who: str, present: pd.Series[Any], codes: Any) -> pd.Series[Any]:
    """Return the cells that hold no code, or refuse a column that has none."""
    if not len(present):
        raise InvalidValueError(who, "at least one value", "every cell is missing", "Fill it in or leave it out.")
    amounts = present[~hold_codes(present, codes_listed(who, codes))]
    if not len(amounts):
        but = "each cell is missing or holds a code"
        raise InvalidValueError(who, "an amount in the frame", but, "Give rows that have one.")
    return amounts


def codes_listed(who: str, codes: Any) -> list[Any]:
    """Return codes as a list of plain values; of a mapping from codes to what they mean, its keys."""
    return list(map(plain, CODES.require(who, "codes", list(codes) if isinstance(codes, Mapping) else codes)))


def hold_codes(column: pd.Series[Any], codes: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which cells of a column, none of them missing, hold one of the codes, (n,)."""
    if is_number_dtype(column.dtype):
        codes = list(filter(is_number, codes))
    elif isinstance(column.dtype, pd.StringDtype):
        codes = [code for code in codes if isinstance(code, str)]
    return column.isin(codes).to_numpy(dtype=bool)


def _among_levels(codes: Any, levels: Sequence[Any]) -> Any:
    """Return the codes that are levels, with what they mean where that is said: others are no levels to stand on."""
    if isinstance(codes, Mapping):
        return {code: text for code, text in codes.items() if plain(code) in levels}
    return [code for code in codes if plain(code) in levels]


def _share(count: int, total: int) -> str:
    """Return a share as people say it."""
    percent = round(100.0 * count / total)
    return f"{percent} %" if percent else "under 1 %"


def _are_bools(values: list[Any]) -> bool:
    return all(isinstance(value, bool) for value in values)


def _values(who: str, dtype: Any, present: pd.Series[Any]) -> list[Any]:
    """Distinct values: categories in their order, all else sorted."""
    if isinstance(dtype, np.dtype) and dtype.kind in "iuf":
        numbers: list[Any] = np.unique(present.to_numpy()).tolist()
        for value in (numbers[0], numbers[-1]):
            if math.isinf(value):
                raise _infinite(who, value)
        return numbers
    try:
        values = list(map(plain, present.unique().tolist()))
    except TypeError:  # lists and the like cannot be compared
        values = [present.iloc[0]]
    for value in values:
        if not isinstance(value, str | bool | int | float):
            raise InvalidTypeError(
                who,
                "numbers, text or bool",
                f"it holds {value!r} ({type(value).__name__})",
                "Convert the column or leave it out.",
            )
        if isinstance(value, float) and math.isinf(value):
            raise _infinite(who, value)
    families = set(map(_family, values))
    if len(families) > 1:
        raise InvalidTypeError(
            who, "values of one type", f"it mixes {' and '.join(sorted(families))}", "Convert them to one."
        )
    if isinstance(dtype, pd.CategoricalDtype):
        held = set(values)
        return [level for level in map(plain, dtype.categories.tolist()) if level in held]
    return sorted(values)


def _infinite(who: str, value: float) -> InvalidValueError:
    return InvalidValueError(who, "finite numbers", f"it holds {value}", "Replace it, or leave the row out.")


def _family(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "bool"
    return "number"


def _guess(dtype: Any, values: list[Any]) -> tuple[Kind, str]:
    if isinstance(dtype, pd.CategoricalDtype):
        if dtype.ordered:
            return "ordinal", "in the order of its categories"
        return "categorical", ""
    if _are_bools(values):
        return "binary", ""
    if all(isinstance(value, str) for value in values):
        if len(values) == 2:
            return "binary", "two values"
        return "categorical", ""
    if is_object_dtype(dtype):
        return "categorical", "numbers in an object column"
    if pd.api.types.is_integer_dtype(dtype):
        return "integer", "0 and 1 only" if values == [0, 1] else ""
    whole = all(value == math.floor(value) for value in values)
    return "continuous", "whole numbers only" if whole else ""


def _step(values: list[Any]) -> tuple[float | None, str]:
    """Return the step of the decimals that numbers are written with, where these are few, and what to say of it."""
    places = places_of(np.array(values, dtype=np.float64), _MOST_PLACES)
    if places is None:
        return None, ""
    step = 10.0**-places
    words = "whole numbers only" if places == 0 else counted(places, "decimal")
    return step, f"{words}, step {digits(step)}"


def written_ends(lower: float, upper: float, decimals: int | None) -> dict[str, float]:
    """Return the ends as they are written: a minimum of -9.399999999999999 would leave out the step at -9.4."""
    if decimals is None:
        return {}
    return {"lower": min(lower, round(lower, decimals)), "upper": max(upper, round(upper, decimals))}


def _decimals(values: list[Any]) -> int | None:
    """Return how many decimal places the numbers are written with; None where that is more than people write."""
    numbers = np.array(values, dtype=np.float64)
    if places_of(numbers[:_FIRST_CELLS], _MOST_DECIMALS) is None:  # most columns of measurements end here
        return None
    places = places_of(numbers, _MOST_DECIMALS)
    if places is None or float(np.abs(numbers).max()) * 10.0**places > _MOST_UNITS:
        return None
    return places


def _numbers(who: str, kind: Kind, dtype: Any, values: list[Any], present: pd.Series[Any]) -> dict[str, Any]:
    is_number = isinstance(dtype, np.dtype) and dtype.kind in "iuf"
    are_numbers = is_number or set(map(_family, values)) == {"number"}
    if isinstance(dtype, pd.CategoricalDtype) or not are_numbers:
        raise InvalidTypeError(
            who, f"numbers to be {kind}", f"its dtype is {dtype}", "Convert the column in the frame."
        )
    if kind == "integer":
        for value in values:
            if value != math.floor(value):
                raise InvalidValueError(
                    who, "whole numbers to be integer", f"it holds {value}", "Round it, or name it continuous."
                )
    for value in (values[0], values[-1]):
        if isinstance(value, int) and abs(value) > 2**53:
            raise InvalidValueError(
                who, "whole numbers up to 2**53", f"it holds {value}", "Leave identifiers out, or make them text."
            )
    numbers = np.array(present.tolist(), dtype=np.float64)
    return {
        "lower": float(values[0]),
        "upper": float(values[-1]),
        "lower_inferred": True,
        "upper_inferred": True,
        **scales(numbers),
    }


def scales(numbers: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
    """Median absolute deviation from the median, population standard deviation, and range of a sample."""
    with np.errstate(over="ignore"):
        sizes = {
            "mad": np.median(np.abs(numbers - np.median(numbers))),
            "std": np.std(numbers),
            "range": numbers.max() - numbers.min(),
        }
    return {name: float(np.nan_to_num(size, nan=0.0, posinf=0.0)) for name, size in sizes.items()}


def _ordered(who: str, values: list[Any], order: Sequence[Any] | None) -> list[Any]:
    levels = list(map(plain, _LEVELS.require(who, "levels", order)))
    for level in levels:
        require_level(who, level)
    missing = [value for value in values if value not in levels]
    if missing:
        raise InvalidValueError(
            who, "every level that occurs", f"{missing[0]!r} is not in {levels!r}", "Add it in its place."
        )
    return levels

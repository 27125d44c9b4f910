"""One column of a person's row: what it can hold, how it may move, what scalers do to it, and its JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast, final, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.digits import digits
from ceopt.formulations.space.dtypes import (
    Level,
    default_dtype,
    dtype_from_text,
    dtype_text,
    dtype_with_gaps,
    integer_limits,
    is_number_dtype,
    is_object_dtype,
    pool,
)
from ceopt.formulations.space.dtypes import pool as array_of
from ceopt.formulations.space.limits import Limit, LimitCheck, require_limits
from ceopt.formulations.tolerances import SUM_ROUNDING, TRACE
from ceopt.solvers.checks import (
    LARGEST,
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
    is_number,
    plain,
    whole_from,
)
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.whole_files import json_document

# ==== The rules of a column's description, and its values settled into plain types; used by ``Feature`` alone =========

Kind = Literal["continuous", "integer", "ordinal", "categorical", "binary"]
Direction = Literal["any", "increasing", "decreasing", "up", "down"]
Scale = Literal["mad", "std", "range", "none"]
Missing = bool | Literal["stays", "may_vanish"]

#: The coordinate of a missing cell, of numbers and of levels alike.
MISSING: Final = math.inf

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
#: What costs are counted with grows as the square of a fill, and beyond this drowns all moves.
_GREATEST_FILL: Final = 1e5
_NO_FILL = Refusal("a fill from 0 to 100,000, or inf for none", "Correct it.", "fill is {text}")
_FILL = Real(at_least=0.0, otherwise=_NO_FILL, wrong_type=_NO_NUMBER)
_BOUND = Real(otherwise=_NO_BOUND, wrong_type=_NO_NUMBER)
_STEP = Real(finite=True, otherwise=_NOT_FINITE, wrong_type=_NO_NUMBER)
CODES = ListOf(Refusal("codes in a list or tuple", "Correct it.", error=InvalidTypeError))
LEVELS = ListOf(Refusal("levels in a list or tuple", "Correct it.", error=InvalidTypeError))

_WORDS = {"kind": Choice(get_args(Kind)), "direction": Choice(get_args(Direction))}
_TEXTS = {"unit": OrNone(Text(_NO_TEXT)), "guess": Text(_NO_TEXT)}
_LABEL = {"label": OrNone(Text(_NO_TEXT))}
_FLAGS = dict.fromkeys(
    ("mutable", "lower_inferred", "upper_inferred", "step_inferred", "codes_in_reach"), Flag(_NO_FLAG)
)
_DECIMALS = {"decimals": OrNone(whole_from(0))}
_STATISTICS = dict.fromkeys(("mad", "std", "range"), OrNone(_SIZE))
_BOUNDS = dict.fromkeys(("lower", "upper"), _BOUND)
_LIMITS = dict.fromkeys(("max_up", "max_down"), LimitCheck())


def settled(given: Any) -> dict[str, Any]:
    """Check every field of a new ``Feature`` and give the fields to replace, derived ones included."""
    if not isinstance(given.name, str) or not given.name:
        raise InvalidTypeError(
            "Feature", "a name that is text", f"name is {given.name!r}", "Rename the column, as by columns.astype(str)."
        )
    who = f"Column {given.name!r}"
    new = _words(who, given) | _weights_and_scales(who, given) | _gaps(who, given) | _dtype(who, given)
    if given.kind in FINITE:
        new |= _levels(who, given, new)
    else:
        new |= _bounds(who, given, new)
    new |= _codes(who, given, new)
    new |= _fields(who, _LIMITS, given)
    if new["max_up"] is not None or new["max_down"] is not None:
        require_limits(who, given.kind, max_up=new["max_up"], max_down=new["max_down"])
    return new | _labels(who, given, new)


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


def _gaps(who: str, given: Any) -> dict[str, Any]:
    """Settle what may be missing, and what it costs to fill it in."""
    is_word = isinstance(given.missing, str) and given.missing in {"stays", "may_vanish"}
    if not is_word and not isinstance(given.missing, bool | np.bool_):
        raise InvalidValueError(
            who,
            'missing to be True, False, "stays" or "may_vanish"',
            f"missing is {given.missing!r}",
            "See Feature for what each means.",
        )
    fill = _FILL.require(who, "fill", given.fill)
    if _GREATEST_FILL < fill < math.inf:
        raise InvalidValueError(who, "a fill from 0 to 100,000, or inf for none", f"fill is {fill!r}", "Correct it.")
    missing = given.missing
    if not isinstance(missing, str):
        missing = bool(missing)
    return {"missing": missing, "fill": fill}


def _dtype(who: str, given: Any) -> dict[str, Any]:
    """Settle dtype (text), categories, levels as plain scalars and ``pandas_dtype``, the object."""
    text, categories, levels = given.dtype, given.categories, given.levels
    levels = tuple(map(plain, LEVELS.require(who, "levels", levels)))
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
        categories = levels if categories is None else tuple(map(plain, categories))
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
    if given.missing is not False:
        own = dtype_with_gaps(own)
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
        own = tuple(map(plain, held.tolist()))
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
    """Settle codes and their labels: some of the levels, or numbers of a column that moves in steps."""
    given_codes, labels = _labelled(who, given)
    listed = list(map(plain, CODES.require(who, "codes", given_codes)))
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
        _require_held(who, code, given, new)
    if codes and given.kind == "continuous" and new["step"] is None:
        raise InvalidValueError(
            who,
            "a step beside codes, as amounts a hair from a code are no other answer",
            f"step is None with codes {codes!r}",
            "Give step, the least difference between amounts.",
        )
    if given.kind == "integer" and codes and new["upper"] - new["lower"] < len(codes):
        amounts = range(math.ceil(new["lower"]), math.floor(new["upper"]) + 1)
        if all(amount in codes for amount in amounts):
            but = f"each whole number from {digits(new['lower'])} to {digits(new['upper'])} is a code"
            raise InvalidValueError(who, "an amount that is no code", but, "Widen the bounds, or leave some codes out.")
    if codes and len(codes) == len(new.get("levels", ())):
        raise InvalidValueError(who, "a level that is no code", f"codes is {codes!r}", "Leave some out.")
    return _off_the_order(who, given.kind, codes, new) | {"codes": codes, "code_labels": labels}


def _off_the_order(who: str, kind: str, codes: tuple[Level, ...], new: dict[str, Any]) -> dict[str, Any]:
    """Put codes that stand between ordered numbers behind them, so that neighbours are a rank apart."""
    levels = new["levels"]
    if kind != "ordinal" or not codes:
        return {}
    amounts = [level for level in levels if level not in codes]
    first, last = levels.index(amounts[0]), levels.index(amounts[-1])
    between = [level for level in levels[first : last + 1] if level in codes]
    if not between:
        return {}
    if not all(isinstance(level, int | float) for level in levels):  # a model of plain arrays sees the place of a text
        but = f"{between[0]!r} stands between {amounts[0]!r} and {amounts[-1]!r}"
        raise InvalidValueError(who, "codes at an end of its levels", but, "Put them first or last.")
    own = (*levels[:first], *amounts, *between, *levels[last + 1 :])
    ranks = {level: rank for rank, level in enumerate(own)}
    return {"levels": own, "pool": pool(own, new["pandas_dtype"]), "ranks": ranks}


def _require_held(who: str, code: float, given: Any, new: dict[str, Any]) -> None:
    """Refuse a code that no cell of the column could hold."""
    least, greatest = new["limits"] if given.kind == "integer" else (-sys.float_info.max, sys.float_info.max)
    is_whole = given.kind != "integer" or code == math.floor(code)
    if not (least <= code <= greatest and is_whole):
        held = f"whole numbers from {least} to {greatest}" if given.kind == "integer" else "numbers that float64 holds"
        but = f"a code is {code!r}"
        raise InvalidValueError(who, f"codes that its cells can hold, {held}", but, "Correct it, or leave it out.")


def _labelled(who: str, given: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the codes, and what they mean: a text for each, or nothing where none has one."""
    texts = given.code_labels
    codes = given.codes
    if isinstance(codes, Mapping):
        texts = tuple(codes.values())
        codes = tuple(codes)
    if not isinstance(texts, tuple | list) or not all(isinstance(text, str) for text in texts):
        raise InvalidTypeError(who, "codes whose meanings are text", f"they are {texts!r}", "Write {-9: 'no record'}.")
    if texts and len(texts) != len(codes):
        raise InvalidValueError(who, "a meaning for each code", f"there are {len(texts)}", "Give one each, or none.")
    return codes, tuple(texts)


def _labels(who: str, given: Any, new: dict[str, Any]) -> dict[str, Any]:
    """Settle the label, and the labels of levels and codes as pairs in their order."""
    label = _fields(who, _LABEL, given)["label"] or None
    pairs = _pairs(who, given.level_labels)
    if not pairs:
        return {"label": label, "level_labels": ()}
    known = tuple(dict.fromkeys((*new["levels"], *new["codes"])))
    labels = {}
    for level, text in pairs:
        own = next((one for one in known if _is_same(one, level)), None)
        if own is None:
            raise no_such_level(who, level, known)
        if not Text(_NO_TEXT).require(who, f"label of {own!r}", text).strip():
            raise InvalidValueError(who, "text as label of a level", f"that of {own!r} is {text!r}", "Leave it out.")
        labels[own] = text
    called = [labels.get(one, str(one)) for one in known]
    for place, text in enumerate(called):
        first = called.index(text)
        if first < place:
            but = f"{text!r} is that of {known[first]!r} and {known[place]!r}"
            raise InvalidValueError(who, "levels of different labels", but, "Change one.")
    return {"label": label, "level_labels": tuple((one, labels[one]) for one in known if one in labels)}


def _pairs(who: str, given: Any) -> list[tuple[Any, Any]]:
    pairs = given.items() if isinstance(given, Mapping) else given
    if pairs is None:
        return []
    if not isinstance(pairs, str) and isinstance(pairs, Iterable):
        listed = list(pairs)
        if all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in listed):
            return [(math.nan if is_gap(level) else plain(level), text) for level, text in listed]
    then = 'Write {"own": "owns a flat"}.'
    raise InvalidTypeError(who, "a mapping from levels to texts as level_labels", f"level_labels is {given!r}", then)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two levels are one: equal, and truth values or neither."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def no_such_level(who: str, level: Any, known: Sequence[Any]) -> InvalidValueError:
    """Return the refusal of a label for a level that is not there."""
    choices = ", ".join(map(repr, known[:_SHOWN]))
    if len(known) > _SHOWN:
        choices += f" and {len(known) - _SHOWN} more"
    then = f"Choose from: {choices}."
    if not known:
        then = "Numbers have none: give a label to the column, or make it ordinal or categorical."
    return InvalidValueError(who, "labels of its levels", f"level_labels has {level!r}, which is none of them", then)


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


# ==== The column ======================================================================================================

#: So many levels are listed where one is refused.
_SHOWN = 20
#: Levels, or codes, and what people call them.
LevelLabels: TypeAlias = tuple[tuple[Level, str], ...]


@final
@dataclass(frozen=True, slots=True)
class Feature:
    r"""One column: its kind, range, dtype, and how it may leave the factual value.

    A value has a *coordinate*, a float64: the number itself for ``"continuous"`` and ``"integer"``, the rank
    :math:`0, 1, \dots` among ``levels`` for ``"ordinal"``, ``"categorical"`` and ``"binary"``.

    Parameters
    ----------
    name
        The column's name in the frame.
    kind
        ``"continuous"``, ``"integer"``, ``"ordinal"``, ``"categorical"`` or ``"binary"``.
    lower, upper
        Bounds of a number, in the column's own unit; infinite where there is none.
    step
        A number may move by whole multiples of ``step`` from the factual value; ``None`` for any move.
    levels
        The values of a finite kind: ordinal lowest first, binary exactly two, of which the first counts as 0. Numbers
        between the levels of an ordinal column that are codes are held behind them.
    mutable
        Whether the column may move at all.
    direction
        ``"any"``, ``"increasing"`` or ``"decreasing"``; ``"up"`` and ``"down"`` mean the latter two.
    max_up, max_down
        How far the column may move to a side from the person's own value: a number in its unit (whole levels of an
        ordinal column), or ``"20%"`` of the size of that value, rounded down to the step; ``None`` for no limit. A
        share is counted in decimal numbers. Of the limit, the bounds and the direction the tightest holds.
    weight
        Price of a move, one number or ``(down, up)``.
    unit
        What the numbers count, for people to read.
    mad, std, range
        Scales of the amounts in the data: median absolute deviation, standard deviation, greatest less least amount.
    dtype, categories
        The column's dtype in the frame, as text or as the pandas object, and all categories of a category column.
    missing
        Whether the cell may be missing. True: a missing cell may stay, at no cost, or be filled in; ``"stays"``: it
        stays; ``"may_vanish"``: a cell that has a value may also go missing. Otherwise a value never goes.
    fill
        What filling in moves, times the weight (the greater of two), at scale 1 and wherever it lands: a missing cell
        or a code that becomes an amount, an amount that goes. Infinite: such a cell stays.
    codes
        Values of the column that are no amounts but stand for something else, such as -9 for "not known": numbers of a
        column with a step, or some of the levels; a list, or a mapping to what each means. A cell on a code may stay
        or become an amount, as if it were filled in; an amount becomes a code only with ``codes_in_reach``.
    codes_in_reach
        Whether an amount may become a code.
    code_labels
        What each code means, in the order of ``codes``; empty where that is not said.
    decimals
        Decimal places of the data of a continuous column, with which answers are written where that does; None where
        they have none that anybody chose.
    lower_inferred, upper_inferred, step_inferred
        Whether a bound is what the data happened to hold (it widens for the row asked about), and the step that of
        their decimals, or a rule of the user.
    guess
        Why :meth:`FeatureSpace.infer` chose this kind; empty for a column described by hand.
    label
        What the letter to a person calls the column; its name where there is none.
    level_labels
        Level, or code, -> what that letter calls it; held as pairs in the order of the levels.

    Raises
    ------
    InvalidValueError
        Contradictory or misplaced bounds, levels, step, direction, limits or weight.
    InvalidTypeError
        An argument of the wrong type.
    UnknownNameError
        A kind or direction that does not exist.

    Examples
    --------
    >>> size = Feature("size", kind="ordinal", levels=("S", "M", "L"))
    >>> size.to_coordinate("L"), size.from_coordinate(0.0)
    (2.0, 'S')
    """

    name: str
    kind: Kind = field(kw_only=True)
    lower: float = field(default=-math.inf, kw_only=True)
    upper: float = field(default=math.inf, kw_only=True)
    step: float | None = field(default=None, kw_only=True)
    levels: tuple[Level, ...] = field(default=(), kw_only=True)
    mutable: bool = field(default=True, kw_only=True)
    direction: Direction = field(default="any", kw_only=True)
    max_up: Limit | None = field(default=None, kw_only=True)
    max_down: Limit | None = field(default=None, kw_only=True)
    weight: float | tuple[float, float] = field(default=1.0, kw_only=True)
    unit: str | None = field(default=None, kw_only=True)
    mad: float | None = field(default=None, kw_only=True)
    std: float | None = field(default=None, kw_only=True)
    range: float | None = field(default=None, kw_only=True)
    dtype: str | None = field(default=None, kw_only=True)
    categories: tuple[Level, ...] | None = field(default=None, kw_only=True)
    missing: Missing = field(default=False, kw_only=True)
    fill: float = field(default=1.0, kw_only=True)
    codes: tuple[Level, ...] = field(default=(), kw_only=True)
    codes_in_reach: bool = field(default=False, kw_only=True)
    code_labels: tuple[str, ...] = field(default=(), kw_only=True)
    decimals: int | None = field(default=None, kw_only=True)
    lower_inferred: bool = field(default=False, kw_only=True)
    upper_inferred: bool = field(default=False, kw_only=True)
    step_inferred: bool = field(default=False, kw_only=True)
    guess: str = field(default="", kw_only=True)
    label: str | None = field(default=None, kw_only=True)
    level_labels: LevelLabels | Mapping[Any, str] = field(default=(), kw_only=True)
    # derived: the dtype in which a frame of this space holds the column (float64 for continuous), the whole numbers
    # that this dtype holds exactly, the levels as an array of it, and level -> rank
    pandas_dtype: Any = field(init=False, repr=False, compare=False)
    limits: tuple[int, int] = field(init=False, repr=False, compare=False)
    pool: Any = field(init=False, repr=False, compare=False)
    ranks: dict[Any, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for word, value in settled(self).items():
            object.__setattr__(self, word, value)

    @property
    def who(self) -> str:
        """The column as errors name it."""
        return f"Column {self.name!r}"

    @property
    def is_finite(self) -> bool:
        """Whether the column holds levels (ordinal, categorical, binary) rather than numbers."""
        return self.kind in FINITE

    @property
    def called(self) -> str:
        """What people call the column: its label, or its name."""
        return self.label or self.name

    def level_called(self, level: Any) -> Any:
        """Return what people call a level or code: its label, or the level itself where it has none."""
        for own, text in cast("LevelLabels", self.level_labels):
            if own == level:
                return text
        return level

    @property
    def spacing(self) -> float | None:
        """How far neighbouring values are apart: the step, else 1 of whole numbers; None of a continuous column."""
        if self.step is None and self.kind == "integer":
            return 1.0
        return self.step

    @property
    def amounts(self) -> tuple[float, float]:
        """The least and greatest amount that a person may have: within the bounds or beyond, but not beyond a code."""
        codes = cast("tuple[float, ...]", () if self.is_finite else self.codes)
        below = [math.nextafter(code, math.inf) for code in codes if code < self.lower]
        above = [math.nextafter(code, -math.inf) for code in codes if code > self.upper]
        return max(below, default=-math.inf), min(above, default=math.inf)

    @property
    def widest(self) -> tuple[float, float]:
        """The least and greatest amount that anybody may have: bounds of the user hold, those seen end at a code."""
        lower, upper = self.amounts
        if not self.lower_inferred:
            lower = self.lower
        if not self.upper_inferred:
            upper = self.upper
        return lower, upper

    def is_code(self, coordinate: float) -> bool:
        """Whether a coordinate is that of a code."""
        if not self.codes or coordinate == MISSING:
            return False
        if self.is_finite:
            return self.levels[int(coordinate)] in self.codes
        return coordinate in self.codes

    def meaning_of(self, value: Any) -> str | None:
        """Return what a raw value means that is a code, or its label; None of a code that has none, and of others."""
        for place, code in enumerate(self.codes):
            if code == value:
                meaning = self.code_labels[place] if self.code_labels else ""
                label = self.level_called(code)
                return meaning or (None if label == code else str(label))
        return None

    def is_label(self, coordinate: float) -> bool:
        """Whether a coordinate is no amount: that of a missing cell, or of a code."""
        return coordinate == MISSING or self.is_code(coordinate)

    def is_label_value(self, value: Any) -> bool:
        """Whether a raw value is no amount: it is missing, or a code."""
        return is_gap(value) or value in self.codes

    def are_labels(self, coordinates: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which coordinates (n,) are no amounts: those of missing cells and of codes."""
        is_missing = np.asarray(coordinates == MISSING)
        if not self.codes:
            return is_missing
        return np.asarray(is_missing | self.are_codes(coordinates))

    def are_codes(self, coordinates: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which coordinates (n,) are those of codes."""
        return np.asarray(np.isin(coordinates, list(map(self.to_coordinate, self.codes))), dtype=bool)

    def off_codes(self, ranks: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return ranks (n,) of ordered levels, with the nearest level that is no code in place of each code."""
        if not self.codes:
            return ranks
        every = np.arange(len(self.levels), dtype=np.float64)
        amounts = every[~self.are_codes(every)]
        nearest = amounts[np.abs(every[:, None] - amounts).argmin(axis=1)]
        return np.asarray(nearest[ranks.astype(np.intp)])

    @property
    def weights(self) -> tuple[float, float]:
        """Prices ``(down, up)`` of a move."""
        if isinstance(self.weight, tuple):
            return self.weight
        return self.weight, self.weight

    @property
    def price_of_fill(self) -> float:
        """What filling the cell in moves, at scale 1 and wherever it lands; 0 where it stays."""
        if math.isinf(self.fill):
            return 0.0
        return self.fill * max(self.weights)

    def scale(self, kind: Scale) -> float:
        """By what a move is divided before it is charged; always positive.

        Categorical and binary: 1. Ordinal: levels that are no codes, less one, a move being counted in ranks. Numbers:
        ``"mad"`` falls back to ``"std"`` and that to ``"range"`` where zero or unknown; ``"range"`` is that of the
        data, else upper less lower. ``"none"``, and where nothing usable is known (no data, infinite bounds, one
        value): 1.

        Raises
        ------
        UnknownNameError
            ``kind`` is not one of ``"mad"``, ``"std"``, ``"range"``, ``"none"``.
        """
        known = get_args(Scale)
        Choice(known).require("Feature.scale", "scale", kind)
        if self.kind == "ordinal":
            return float(max(len(self.levels) - len(self.codes) - 1, 1))
        if self.is_finite or kind == "none":
            return 1.0
        sizes = (self.mad, self.std, self.range, self.upper - self.lower)
        for size in sizes[known.index(kind) :]:
            if size and size >= 1.0 / LARGEST and math.isfinite(size):
                return float(size)
        return 1.0

    def rank(self, value: Any) -> int:
        """Place of a level among ``levels``, from 0.

        Raises
        ------
        InvalidValueError
            A level that the column does not have, or a missing value.
        InvalidTypeError
            The column is a number and has no levels.
        """
        if not self.is_finite:
            raise InvalidTypeError(self.who, "levels to have ranks", f"kind is {self.kind!r}", "Use its value.")
        try:
            place = self.ranks.get(value)
        except TypeError:
            place = None
        as_bool = isinstance(value, bool | np.bool_) and self.kind != "binary"
        if place is None or (as_bool and not isinstance(self.levels[place], bool)):
            self._refuse_missing(value)
            more = len(self.levels) - _SHOWN
            choices = ", ".join(map(repr, self.levels[:_SHOWN]))
            if more > 0:
                choices += f" and {more} more"
            raise InvalidValueError(
                self.who, "one of its levels", f"its value is {plain(value)!r}", f"Choose from: {choices}."
            )
        return place

    def to_coordinate(self, value: Any) -> float:
        """Give the float64 that stands for a raw value: the number, or the rank of the level.

        Raises
        ------
        InvalidTypeError
            Not a number where one is needed: text, bool, datetime.
        InvalidValueError
            Missing, infinite, not whole in an integer column, an unseen level, or beyond what the dtype holds.
        """
        if self.missing is not False and is_gap(value):
            return MISSING
        if self.is_finite:
            return float(self.rank(value))
        kind = type(value)
        if kind is not float and kind is not int:
            value = self._number(value)
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            raise InvalidValueError(self.who, "a number that float64 holds", "its value is beyond 1e308", "Correct it.")
        if not math.isfinite(value):
            self._refuse_missing(value)
            raise InvalidValueError(self.who, "a finite number", f"its value is {value}", "Replace it.")
        if self.kind == "integer":
            if value != math.floor(value):
                raise InvalidValueError(
                    self.who, "a whole number", f"its value is {value}", "Round it, or make the column continuous."
                )
            value = int(value)
            low, high = self.limits
            if not low <= value <= high:
                raise InvalidValueError(
                    self.who,
                    f"a whole number from {low} to {high} ({self.pandas_dtype})",
                    f"its value is {value}",
                    "Correct it.",
                )
        if isinstance(value, int) and float(value) != value:
            raise InvalidValueError(
                self.who, "a number that float64 holds exactly", f"its value is {value}", "Rescale the column."
            )
        return float(value)

    @property
    def coordinate_limits(self) -> tuple[float, float]:
        """The least and the greatest coordinate that the kind and dtype can hold, whatever the bounds say."""
        if self.is_finite:
            return 0.0, float(len(self.levels) - 1)
        if self.kind == "continuous":
            return -math.inf, math.inf
        least, greatest = self.limits
        return float(least), float(greatest)

    def from_coordinate(self, coordinate: float) -> Level:
        """Give the raw value at a coordinate: a level, an int or a float.

        Raises
        ------
        InvalidValueError
            Not finite, not whole where only whole ones exist, or outside the ranks.
        """
        if not is_number(coordinate):
            raise InvalidTypeError(self.who, "a number as coordinate", f"it is {coordinate!r}", "Correct it.")
        number = float(coordinate)
        if number == MISSING and self.missing is not False:
            return math.nan
        if self.kind == "continuous":
            if not math.isfinite(number):
                raise InvalidValueError(self.who, "a finite coordinate", f"it is {number}", "Correct it.")
            return number
        if not math.isfinite(number) or number != math.floor(number):
            raise InvalidValueError(self.who, "a whole coordinate", f"it is {number!r}", "Round it first.")
        if not self.is_finite:
            return int(self.to_coordinate(number))
        if not 0 <= number < len(self.levels):
            raise InvalidValueError(
                self.who, f"a rank from 0 to {len(self.levels) - 1}", f"it is {digits(number)}", "Correct it."
            )
        return self.levels[int(number)]

    def take(self, coordinates: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
        """Give raw values in the column's own dtype, one per coordinate (which ``FeatureSpace.frame`` has checked)."""
        is_missing = coordinates == MISSING
        if is_missing.any():
            return self._take_with_gaps(coordinates, is_missing)
        if self.kind == "continuous":
            return coordinates
        if self.is_finite:
            return self.pool.take(coordinates.astype(np.intp))
        whole = coordinates.astype(np.int64)
        if isinstance(self.pandas_dtype, np.dtype) and self.pandas_dtype.kind != "O":
            return whole.astype(self.pandas_dtype)
        return array_of(whole.tolist(), self.pandas_dtype)

    def _take_with_gaps(
        self, coordinates: np.ndarray[Any, np.dtype[np.float64]], is_missing: np.ndarray[Any, np.dtype[np.bool_]]
    ) -> Any:
        """Give the raw values where some are missing, as the dtype writes that."""
        if self.kind == "continuous":
            return np.where(is_missing, np.nan, coordinates)
        known = self.take(np.where(is_missing, 0.0, coordinates))  # of which the missing ones are replaced below
        if isinstance(known, np.ndarray):
            known[is_missing] = np.nan
            return known
        values = pd.Series(known)
        values[is_missing] = None
        return values.array

    def _number(self, value: Any) -> float:
        if isinstance(value, np.floating):
            return float(value)
        if isinstance(value, np.integer) and not isinstance(value, np.timedelta64):
            return int(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        self._refuse_missing(value)
        raise InvalidTypeError(
            self.who, "a number", f"its value is {plain(value)!r} ({type(value).__name__})", "Convert it."
        )

    def _refuse_missing(self, value: Any) -> None:
        if is_gap(value):
            raise InvalidValueError(
                self.who,
                "a value",
                f"its value is missing ({value})",
                f"Fill it in first, or say that it may be missing: space.update({self.name!r}, missing=True).",
            )


def is_gap(value: Any) -> bool:
    """Whether a raw value says that the cell is missing: None, NaN, NA or NaT."""
    return value is None or bool(pd.api.types.is_scalar(value) and pd.isna(value))


# ==== One column described anew: the rules of ``FeatureSpace.update`` =================================================

_NUMBERS = {"continuous", "integer"}


def changed(
    feature: Feature, *, kind: Kind | None = None, levels: Sequence[Any] | None = None, **options: Any
) -> Feature:
    """Give ``feature`` with what is not ``None`` replaced; see :meth:`FeatureSpace.update`."""
    news = {word: value for word, value in options.items() if value is not None}
    for word in ("lower", "upper", "step"):
        if word in news:
            news[f"{word}_inferred"] = False
    if "codes" in news:
        news["code_labels"] = ()
    if levels is not None:
        levels = LEVELS.require(feature.who, "levels", levels)
        news["levels"] = tuple(map(plain, levels))
    if kind is not None:
        Choice(get_args(Kind)).require(feature.who, "kind", kind)
    if kind in _NUMBERS and feature.step_inferred and "step" not in news:
        news["step"] = None  # that of the data's decimals is a guess, which a kind that is named takes back
    if kind is not None and kind != feature.kind:
        news = _of_kind(feature, kind, news) | {"kind": kind}
        if {kind, feature.kind} != _NUMBERS:  # a limit counted in other things
            news = {"max_up": None, "max_down": None} | news
    elif "levels" in news and feature.is_finite:
        news |= _known(feature, news["levels"])
    return replace(feature, **news, level_labels=())  # which ``relabelled`` puts back


def _known(feature: Feature, levels: tuple[Any, ...]) -> dict[str, Any]:
    """Refuse levels that an inferred column never had; let a column made by hand have new categories."""
    known = (*feature.levels, *(feature.categories or ()))
    for level in levels:
        require_level(feature.who, level)
    new = [level for level in levels if level not in known]
    if new and feature.guess:
        raise UnknownNameError.among(feature.who, "level", new[0], dict.fromkeys(known))
    if new and feature.categories is not None:
        return {"categories": (*feature.categories, *new)}
    return {}


def _of_kind(feature: Feature, kind: Kind, news: dict[str, Any]) -> dict[str, Any]:
    if feature.is_finite and kind in _NUMBERS:
        return _numbers_of_levels(feature, kind) | news
    if feature.is_finite:
        return news | _known(feature, news.get("levels", ()))
    if kind == "integer":
        return _whole_bounds(feature, news) | news
    if kind in _NUMBERS:
        return news
    if "levels" not in news:
        whole = feature.kind == "integer" and math.isfinite(feature.lower) and math.isfinite(feature.upper)
        if not (kind == "binary" and whole and feature.upper - feature.lower == 1):
            raise InvalidValueError(
                feature.who,
                f"levels to become {kind}",
                f"it is {feature.kind} from {digits(feature.lower)} to {digits(feature.upper)}",
                "Give levels=[...].",
            )
        news = news | {"levels": (int(feature.lower), int(feature.upper))}
    cleared = {"lower": -math.inf, "upper": math.inf, "lower_inferred": False, "upper_inferred": False, "step": None}
    return cleared | {"mad": None, "std": None, "range": None} | news


def _numbers_of_levels(feature: Feature, kind: Kind) -> dict[str, Any]:
    levels = feature.levels
    numbers = [level for level in levels if isinstance(level, int | float) and not isinstance(level, bool)]
    if len(numbers) < len(levels) or feature.categories is not None:
        raise InvalidTypeError(
            feature.who,
            f"numbers to become {kind}",
            f"its levels are {', '.join(map(repr, levels[:5]))} ({feature.pandas_dtype})",
            "Convert the column in the frame and infer the space again.",
        )
    inferred = bool(feature.guess)
    bounds = {"lower": min(numbers), "upper": max(numbers), "lower_inferred": inferred, "upper_inferred": inferred}
    return {"levels": (), "range": float(max(numbers) - min(numbers)), **bounds}


def _whole_bounds(feature: Feature, news: dict[str, Any]) -> dict[str, Any]:
    """Inferred bounds of a continuous column, moved inwards to whole numbers."""
    inward = {}
    for bound, step in (("lower", math.ceil), ("upper", math.floor)):
        value = getattr(feature, bound)
        if bound not in news and getattr(feature, f"{bound}_inferred") and math.isfinite(value):
            inward[bound] = float(step(value))
    return inward


# ==== The elementary operations of scalers, rounded as the library rounds them ========================================

Floats: TypeAlias = NDArray[np.floating[Any]]
Operation: TypeAlias = Literal["cast", "subtract", "divide", "multiply", "add", "at_least", "at_most"]

_UFUNCS: Final[Mapping[str, Callable[..., Any]]] = {
    "subtract": np.subtract,
    "divide": np.divide,
    "multiply": np.multiply,
    "add": np.add,
    "at_least": np.maximum,
    "at_most": np.minimum,
}


@final
@dataclass(frozen=True, slots=True)
class Step:
    """One rounded, non-decreasing operation of a library: ``dtype(operation(x, operand))``.

    Parameters
    ----------
    operation
        ``"cast"`` (no operand), ``"subtract"``, ``"divide"``, ``"multiply"``, ``"add"``, ``"at_least"`` (maximum with
        the operand) or ``"at_most"`` (minimum).
    operand
        The library's own constant in its own float width: NumPy computes in the wider of the two widths.
    dtype
        Float width in which the library stores the result.

    Raises
    ------
    UnknownNameError
        The operation does not exist.
    InvalidValueError
        The operand is not finite, or a factor is not positive (the column would not increase).
    """

    operation: Operation
    operand: np.floating[Any] = np.float64(0.0)  # noqa: RUF009
    dtype: str = "float64"

    def __post_init__(self) -> None:
        if self.operation != "cast" and self.operation not in _UFUNCS:
            raise UnknownNameError.among("Step", "operation", self.operation, ["cast", *_UFUNCS])
        if not np.isfinite(self.operand):
            raise InvalidValueError(
                "Step", "a finite operand", f"{self.operation} has {self.operand}", "Fit the scaler on finite data."
            )
        if self.operation in {"divide", "multiply"} and not self.operand > 0:
            raise InvalidValueError(
                "Step", "a positive factor", f"{self.operation} has {self.operand}", "Keep the order."
            )

    @property
    def clips(self) -> bool:
        """Whether the step is a maximum or minimum, so not affine."""
        return self.operation in {"at_least", "at_most"}

    def apply(self, x: Floats, operands: Floats | None = None) -> Floats:
        """Do to an array what the library does, rounding included; with an operand for each column, if given."""
        if self.operation == "cast":
            return x.astype(self.dtype, copy=False)
        result: Floats = _UFUNCS[self.operation](x, self.operand if operands is None else operands)
        return result.astype(self.dtype, copy=False)

    def compose(self, slope: Fraction, offset: Fraction) -> tuple[Fraction, Fraction]:
        """Follow ``slope * x + offset`` by this step in real numbers (casts round, so they do nothing here)."""
        value = Fraction(float(self.operand))
        match self.operation:
            case "subtract":
                return slope, offset - value
            case "add":
                return slope, offset + value
            case "multiply":
                return slope * value, offset * value
            case "divide":
                return slope / value, offset / value
            case _:
                return slope, offset


# ==== Tolerance: by how much a solver's value of a column may differ from the exact one ===============================


def beyond_rounding(off: float, rounding: float) -> float:
    """Return the distance ``off``, or 0 if it is at most ``rounding``."""
    return off if off > rounding else 0.0


def column_tolerance(feature: Feature, number: float) -> float:
    """Return the solver tolerance of a column at a value: a share of its step, if it has one."""
    if feature.is_finite:
        return TRACE
    if feature.spacing is None:
        return float(sum_tolerance(feature, number))
    return TRACE * min(feature.spacing, 1.0)


def sum_tolerance(feature: Feature, size: Any) -> Any:
    """Return the tolerance for comparing sums of magnitude ``size`` with a column.

    It is a share of the size, but of no more than the column's width, plus the rounding error of the sum.
    """
    if feature.is_finite:
        low, high = feature.coordinate_limits
    else:
        low, high = feature.lower, feature.upper
    size = np.abs(size)
    share = np.minimum(np.maximum(1.0, size), high - low)
    return TRACE * share + SUM_ROUNDING * size


# ==== A space as JSON with a version, and back without loss. The format is published in schema.json beside this file ==

FORMAT = "ceopt feature space"
VERSION = 1
_WHO = "FeatureSpace.from_json"
#: Fields that files of earlier releases lack.
_LATER = {
    "step_inferred": False,
    "missing": False,
    "fill": 1.0,
    "codes": (),
    "codes_in_reach": False,
    "code_labels": (),
    "decimals": None,
    "label": None,
    "level_labels": (),
    "max_up": None,
    "max_down": None,
}
_FIELDS = tuple(field.name for field in fields(Feature) if field.init)


def features_to_json(features: Sequence[Feature]) -> str:
    """Write features as text; an infinite bound is null, floats keep every digit."""
    return json.dumps(features_document(features), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def features_document(features: Sequence[Feature]) -> dict[str, Any]:
    """Return what that text holds, as part of other JSON."""
    return {"format": FORMAT, "version": VERSION, "features": list(map(_entry, features))}


def _entry(feature: Feature) -> dict[str, Any]:
    return {field: _plain(getattr(feature, field)) for field in _FIELDS}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return None
    return list(value) if isinstance(value, tuple) else value


def features_from_json(text_or_path: str | Path) -> list[Feature]:
    """Read features from text (that starts with a bracket) or from a file.

    Raises
    ------
    UnreadableFileError
        No such file, or no JSON in it.
    InvalidValueError
        JSON that is not of this format and version; the message says where.
    """
    source, document = json_document(_WHO, text_or_path)
    return features_in(document, source)


def features_in(document: Any, source: str) -> list[Feature]:
    """Return the features of a document that :func:`features_document` made; errors name its source.

    Raises
    ------
    InvalidValueError
        A document of another format, version or shape.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidValueError(
            _WHO, f'"format": "{FORMAT}"', f"{source} is something else", "Use FeatureSpace.to_json."
        )
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        raise InvalidValueError(
            _WHO,
            f"version {VERSION}",
            f"the version of {source} is {version!r}",
            "Read it with the ceopt that wrote it.",
        )
    listed = document.get("features")
    if not isinstance(listed, list) or not listed:
        raise InvalidValueError(_WHO, "a list of features", f"features is {listed!r}", "Correct it.")
    unknown = sorted(set(document) - {"format", "version", "features"})
    if unknown:
        raise InvalidValueError(
            _WHO, "format, version and features only", f"there is also {unknown[0]!r}", "Remove it."
        )
    return [_feature(place, entry) for place, entry in enumerate(listed)]


def _feature(place: int, entry: Any) -> Feature:
    where = f"features[{place}]"
    if not isinstance(entry, dict):
        raise InvalidValueError(_WHO, f"an object at {where}", f"it is {entry!r}", "Correct it.")
    for key in _FIELDS:
        if key not in entry and key not in _LATER:
            raise InvalidValueError(_WHO, f"{key!r} in {where}", "it is missing", "Add it; null if there is none.")
    unknown = sorted(set(entry) - set(_FIELDS))
    if unknown:
        raise InvalidValueError(_WHO, f"known fields in {where}", f"there is also {unknown[0]!r}", "Remove it.")
    values: dict[str, Any] = {**_LATER, **entry}
    for key in ("dtype", "guess"):
        if not isinstance(values[key], str) and not (key == "dtype" and values[key] is None):
            raise InvalidValueError(_WHO, f"text as {key!r} in {where}", f"it is {values[key]!r}", "Correct it.")
    for key, infinite in (("lower", -math.inf), ("upper", math.inf), ("fill", math.inf)):
        values[key] = infinite if values[key] is None else values[key]
    for key in ("levels", "categories", "codes", "code_labels", "weight"):
        value = values[key]
        if isinstance(value, list | tuple):
            values[key] = tuple(value)
        elif key in {"levels", "codes", "code_labels"} or (key == "categories" and value is not None):
            raise InvalidValueError(_WHO, f"a list as {key!r} in {where}", f"it is {value!r}", "Correct it.")
    try:
        return Feature(values.pop("name"), **values)
    except CeoptError as error:
        raise InvalidValueError(f"{_WHO} cannot use {where}: {error}") from error

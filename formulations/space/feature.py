"""One column of a person's row: what it can hold and how it may move."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import Any, cast, final, get_args

import numpy as np
import pandas as pd

from ceopt.formulations.digits import digits
from ceopt.formulations.space.dtypes import Level
from ceopt.formulations.space.dtypes import pool as array_of
from ceopt.formulations.space.feature_checks import FINITE, Direction, Kind, Scale, settled
from ceopt.solvers.checks import LARGEST, Choice, is_number, plain
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["Direction", "Feature", "Kind", "Scale"]

#: So many levels are listed where one is refused.
_SHOWN = 20


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
        The values of a finite kind: ordinal lowest first, binary exactly two, of which the first counts as 0.
    mutable
        Whether the column may move at all.
    direction
        ``"any"``, ``"increasing"`` or ``"decreasing"``; ``"up"`` and ``"down"`` mean the latter two.
    weight
        Price of a move, one number or ``(down, up)``.
    unit
        What the numbers count, for people to read.
    mad, std, range
        Scales of the amounts in the data: median absolute deviation, standard deviation, greatest less least amount.
    dtype, categories
        The column's dtype in the frame, as text or as the pandas object, and all categories of a category column.
    codes
        Values of the column that are no amounts but stand for something else, such as -9 for "not known": numbers
        beyond the bounds, or some of the levels. Nobody becomes one; who stands on one stays there.
    decimals
        Decimal places of the data of a continuous column, with which answers are written where that does; None where
        they have none that anybody chose.
    lower_inferred, upper_inferred, step_inferred
        Whether a bound is what the data happened to hold (it widens for the row asked about), and the step that of
        their decimals, or a rule of the user.
    guess
        Why :meth:`FeatureSpace.infer` chose this kind; empty for a column described by hand.

    Raises
    ------
    InvalidValueError
        Contradictory or misplaced bounds, levels, step, direction or weight.
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
    weight: float | tuple[float, float] = field(default=1.0, kw_only=True)
    unit: str | None = field(default=None, kw_only=True)
    mad: float | None = field(default=None, kw_only=True)
    std: float | None = field(default=None, kw_only=True)
    range: float | None = field(default=None, kw_only=True)
    dtype: str | None = field(default=None, kw_only=True)
    categories: tuple[Level, ...] | None = field(default=None, kw_only=True)
    codes: tuple[Level, ...] = field(default=(), kw_only=True)
    decimals: int | None = field(default=None, kw_only=True)
    lower_inferred: bool = field(default=False, kw_only=True)
    upper_inferred: bool = field(default=False, kw_only=True)
    step_inferred: bool = field(default=False, kw_only=True)
    guess: str = field(default="", kw_only=True)
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
    def spacing(self) -> float | None:
        """How far neighbouring values are apart: the step, else 1 of whole numbers; None of a continuous column."""
        if self.step is None and self.kind == "integer":
            return 1.0
        return self.step

    @property
    def widest(self) -> tuple[float, float]:
        """The least and greatest amount to which bounds can widen: those of the user stay, those seen end at a code."""
        lower, upper = self.lower, self.upper
        if self.lower_inferred:
            below = [math.nextafter(code, math.inf) for code in cast("tuple[float, ...]", self.codes) if code < lower]
            lower = max(below, default=-math.inf)
        if self.upper_inferred:
            above = [math.nextafter(code, -math.inf) for code in cast("tuple[float, ...]", self.codes) if code > upper]
            upper = min(above, default=math.inf)
        return lower, upper

    def is_code(self, coordinate: float) -> bool:
        """Whether a coordinate is that of a code."""
        if not self.codes:
            return False
        if self.is_finite:
            return self.levels[int(coordinate)] in self.codes
        return coordinate in self.codes

    def are_codes(self, coordinates: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which coordinates (n,) are those of codes."""
        codes = [self.to_coordinate(code) for code in self.codes]
        return np.asarray(np.isin(coordinates, codes), dtype=bool)

    @property
    def weights(self) -> tuple[float, float]:
        """Prices ``(down, up)`` of a move."""
        if isinstance(self.weight, tuple):
            return self.weight
        return self.weight, self.weight

    def scale(self, kind: Scale) -> float:
        """By what a move is divided before it is charged; always positive.

        Categorical and binary: 1. Ordinal: levels less one, a move being counted in ranks. Numbers: ``"mad"`` falls
        back to ``"std"`` and that to ``"range"`` where zero or unknown; ``"range"`` is that of the data, else upper
        less lower. ``"none"``, and where nothing usable is known (no data, infinite bounds, one value): 1.

        Raises
        ------
        UnknownNameError
            ``kind`` is not one of ``"mad"``, ``"std"``, ``"range"``, ``"none"``.
        """
        known = get_args(Scale)
        Choice(known).require("Feature.scale", "scale", kind)
        if self.kind == "ordinal":
            return float(max(len(self.levels) - 1, 1))
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
            found = self.ranks.get(value)
        except TypeError:
            found = None
        as_bool = isinstance(value, bool | np.bool_) and self.kind != "binary"
        if found is None or (as_bool and not isinstance(self.levels[found], bool)):
            self._refuse_missing(value)
            more = len(self.levels) - _SHOWN
            choices = ", ".join(map(repr, self.levels[:_SHOWN]))
            if more > 0:
                choices += f" and {more} more"
            raise InvalidValueError(
                self.who, "one of its levels", f"its value is {plain(value)!r}", f"Choose from: {choices}."
            )
        return found

    def to_coordinate(self, value: Any) -> float:
        """Give the float64 that stands for a raw value: the number, or the rank of the level.

        Raises
        ------
        InvalidTypeError
            Not a number where one is needed: text, bool, datetime.
        InvalidValueError
            Missing, infinite, not whole in an integer column, an unseen level, or beyond what the dtype holds.
        """
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
        if self.kind == "continuous":
            return coordinates
        if self.is_finite:
            return self.pool.take(coordinates.astype(np.intp))
        whole = coordinates.astype(np.int64)
        if isinstance(self.pandas_dtype, np.dtype) and self.pandas_dtype.kind != "O":
            return whole.astype(self.pandas_dtype)
        return array_of(whole.tolist(), self.pandas_dtype)

    def _number(self, value: Any) -> float:
        if isinstance(value, np.floating | np.integer) and not isinstance(value, np.timedelta64):
            return cast("float", float(value) if isinstance(value, np.floating) else int(value))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        self._refuse_missing(value)
        raise InvalidTypeError(
            self.who, "a number", f"its value is {plain(value)!r} ({type(value).__name__})", "Convert it."
        )

    def _refuse_missing(self, value: Any) -> None:
        if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
            raise InvalidValueError(self.who, "a value", f"its value is missing ({value})", "Fill it in first.")

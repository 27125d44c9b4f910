"""Raw rows as points of the unit cube: numbers by their range, a column a level; and legal raw rows near a point."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.digits import digits
from ceopt.formulations.space.encoding import Column, Encoding, SparseTable
from ceopt.formulations.space.feature import Feature, Step
from ceopt.formulations.space.reachable import multiples
from ceopt.formulations.space.space import FeatureSpace, entry_names, entry_places, raw_frame, require_space
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["Flags", "Floats", "ScaledFrame"]

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

#: Steps are read as fractions with denominators up to this one: 0.1 is a tenth.
_FINEST_STEP: Final = 10_000
_THEN: Final = "Leave it out: what never varies tells nobody apart."


@final
@dataclass(frozen=True, eq=False)
class ScaledFrame:
    r"""The columns that a network sees, as functions of the raw ones.

    ============================ ======== ====================================================
    raw column                   columns  entry
    ============================ ======== ====================================================
    continuous or integer        1        (number - least) / (greatest - least) of the data
    ordinal, of L levels         1        rank / (L - 1)
    binary                       1        0 for the first level, 1 for the second
    categorical, of L levels     L        1 for the level that it has, 0 for the others
    ============================ ======== ====================================================

    So a step of 0.1 is a tenth of a column's range. Numbers beyond those of the data lie beyond 0 and 1, and so do
    codes, which are no numbers of the data.

    Parameters
    ----------
    space
        The d raw columns.
    least, width
        Least number and range of each raw column in the data, (d,); 0 and 1 for levels.
    dtypes
        The dtype of each raw column in the data.

    Examples
    --------
    >>> import pandas as pd
    >>> from ceopt import FeatureSpace
    >>> from ceopt.training.scaled_frame import ScaledFrame
    >>> people = pd.DataFrame({"income": [10.0, 30.0, 20.0], "job": ["cook", "nurse", "clerk"]})
    >>> columns = ScaledFrame.of("Example", FeatureSpace.infer(people), people)
    >>> columns.names
    ('income', 'job=clerk', 'job=cook', 'job=nurse')
    >>> columns.encode(people).tolist()
    [[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0], [0.5, 1.0, 0.0, 0.0]]
    """

    space: FeatureSpace
    least: Floats
    width: Floats
    dtypes: dict[str, Any]

    @classmethod
    def of(cls, who: str, space: FeatureSpace, frame: pd.DataFrame) -> ScaledFrame:
        """Return the columns of a space, with the least and greatest numbers of the rows of a frame.

        Raises
        ------
        InvalidTypeError, InvalidValueError, UnknownNameError
            No space, no frame, no rows, a missing value, columns that are not those of the space.
        InvalidValueError
            A column of width zero: one number, or one level; a column of numbers that holds codes alone.
        """
        require_space(who, space)
        if not isinstance(frame, pd.DataFrame):
            but = f"X is {type(frame).__name__}"
            raise InvalidTypeError(who, "a DataFrame of raw columns", but, "Put the rows in a frame with names.")
        if not len(frame):
            raise InvalidValueError(who, "rows of data", "the frame is empty", "Give the training data.")
        coordinates = space.coordinates(frame)
        least = np.zeros(len(space))
        width = np.ones(len(space))
        for j, feature in enumerate(space):
            if feature.is_finite:
                if len(feature.levels) < 2:
                    but = f"{feature.name!r} has the level {feature.levels[0]!r} alone"
                    raise InvalidValueError(who, "columns of more than one level", but, _THEN)
                continue
            amounts = coordinates[~feature.are_codes(coordinates[:, j]), j]
            if not len(amounts):
                but = f"each row holds a code in {feature.name!r}"
                raise InvalidValueError(who, "an amount in every column of numbers", but, _THEN)
            low, high = float(amounts.min()), float(amounts.max())
            if not 0.0 < high - low < np.inf:
                but = f"the width of {feature.name!r} is {digits(high - low)}"
                raise InvalidValueError(who, "columns of a width above zero", but, _THEN)
            least[j] = low
            width[j] = high - low
        return cls(space, least, width, {name: frame[name].dtype for name in space.names})

    # ---- names and places --------------------------------------------------------------------------------------------
    @cached_property
    def places(self) -> tuple[slice, ...]:
        """Where the entries of each raw column stand, (d,)."""
        return entry_places(self.space)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names (p,): a column's own, and "column=level" for each level of a category."""
        return entry_names(self.space)

    @cached_property
    def groups(self) -> tuple[tuple[int, int], ...]:
        """First place and the place after the last of each category's columns."""
        own = zip(self.space, self.places, strict=True)
        return tuple((place.start, place.stop) for feature, place in own if feature.kind == "categorical")

    def where(self, chosen: NDArray[np.bool_]) -> Flags:
        """Return which columns (p,) belong to chosen raw columns (d,)."""
        return np.repeat(chosen, [place.stop - place.start for place in self.places])

    @cached_property
    def of_numbers(self) -> Flags:
        """Which columns (p,) are those of numbers."""
        return self.where(np.array([not feature.is_finite for feature in self.space]))

    # ---- there -------------------------------------------------------------------------------------------------------
    @cached_property
    def encoding(self) -> Encoding:
        """The columns as functions of the raw ones."""
        columns: list[Column] = []
        for feature, least, width in zip(self.space, self.least, self.width, strict=True):
            columns += _columns_of(feature, least, width)
        return Encoding(tuple(columns), self.space.names)

    def encode(self, frame: pd.DataFrame) -> Floats:
        """Return raw rows as points (n, p), columns matched by name."""
        return self.encoded(self.space.coordinates(frame))

    def encoded(self, coordinates: Floats) -> Floats:
        """Return rows of coordinates (n, d) as points (n, p)."""
        return np.asarray(self.encoding.matrix(coordinates), dtype=np.float64)

    def room(self, coordinates: Floats) -> tuple[Floats, Floats]:
        """Return the least and the greatest entries (n, p) that a person may reach, between those of the data.

        A fixed column stays; one that only grows (or falls) has its own entry as least (or greatest); a bound that the
        user set is kept. What is beyond the data or a bound already may stay there.
        """
        own = self.encoded(coordinates)
        low = np.minimum(own, 0.0)
        high = np.maximum(own, 1.0)
        for j, (feature, place) in enumerate(zip(self.space, self.places, strict=True)):
            if not feature.mutable:
                low[:, place] = high[:, place] = own[:, place]
                continue
            if not feature.is_finite:
                least, greatest = (np.array(feature.widest) - self.least[j]) / self.width[j]
                low[:, place] = np.minimum(np.maximum(low[:, place], least), own[:, place])
                high[:, place] = np.maximum(np.minimum(high[:, place], greatest), own[:, place])
            if feature.direction == "increasing":
                low[:, place] = own[:, place]
            if feature.direction == "decreasing":
                high[:, place] = own[:, place]
            stays = feature.are_codes(coordinates[:, j])  # who stands on a code stays, and nobody becomes one
            low[stays, place] = high[stays, place] = own[stays, place]
        return low, high

    # ---- and back ----------------------------------------------------------------------------------------------------
    def frame(self, coordinates: Floats) -> pd.DataFrame:
        """Return rows of coordinates (n, d) as a raw frame."""
        return raw_frame(self.space, coordinates)

    def legal(self, points: Floats, factual: Floats, *, whole: Flags | None = None) -> Floats:
        """Return the coordinates (n, d) nearest to points (n, p) that people at coordinates (n, d) may reach.

        Bounds, directions and steps are those of the space for each person: an inferred bound holds the person's own
        number, steps are counted from it, and what is fixed stays. ``whole`` says which raw columns (d,) can hold whole
        numbers alone, whatever their kind; None: those of the kinds that do.
        """
        found = factual.copy()
        for j, (feature, place) in enumerate(zip(self.space, self.places, strict=True)):
            if not feature.mutable:
                continue
            own = factual[:, j]
            if not feature.is_finite:
                wanted = self.least[j] + self.width[j] * points[:, place.start]
                found[:, j] = _number(feature, wanted, own, whole=whole is not None and bool(whole[j]))
            elif feature.kind == "categorical":
                found[:, j] = _level(feature, points[:, place], own)
            else:
                last = len(feature.levels) - 1.0
                low, high = _within(feature, own, np.zeros(len(own)), np.full(len(own), last))
                found[:, j] = np.clip(np.rint(points[:, place.start] * last), low, high)
            stays = feature.are_codes(own) | feature.are_codes(found[:, j])
            found[stays, j] = own[stays]
        return found


def _columns_of(feature: Feature, least: float, width: float) -> list[Column]:
    """Return the scaled columns of one raw column."""
    if not feature.is_finite:
        return [Column(feature.name, steps=(Step("subtract", np.float64(least)), Step("divide", np.float64(width))))]
    count = len(feature.levels)
    if feature.kind == "categorical":
        return [Column(feature.name, table=SparseTable(count, (k,), (1.0,))) for k in range(count)]
    return [Column(feature.name, table=tuple((np.arange(count) / (count - 1)).tolist()))]


def _within(feature: Feature, own: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the ends of what may be reached in the direction in which a column moves."""
    if feature.direction == "increasing":
        low = own
    if feature.direction == "decreasing":
        high = own
    return low, high


def _spacing(feature: Feature, *, whole: bool) -> float | None:
    """Return how far neighbouring values are apart, where a column may hold whole numbers alone."""
    step = feature.spacing
    if not whole:
        return step
    if step is None:
        return 1.0
    return step * Fraction(step).limit_denominator(_FINEST_STEP).denominator


def _number(feature: Feature, wanted: Floats, own: Floats, *, whole: bool) -> Floats:
    low = np.full(len(own), feature.lower)
    high = np.full(len(own), feature.upper)
    if feature.lower_inferred:
        low = np.minimum(low, own)
    if feature.upper_inferred:
        high = np.maximum(high, own)
    least, greatest = feature.coordinate_limits
    low, high = _within(feature, own, np.maximum(low, least), np.minimum(high, greatest))
    step = _spacing(feature, whole=whole)
    if step is None:
        return np.asarray(np.clip(wanted, low, high) + 0.0)  # no -0.0
    fewest = np.rint((low - own) / step)
    fewest += multiples(own, step, fewest) < low
    most = np.rint((high - own) / step)
    most -= multiples(own, step, most) > high
    count = np.clip(np.rint((wanted - own) / step), fewest, most)
    return np.asarray(multiples(own, step, count) + 0.0)


def _level(feature: Feature, block: Floats, own: Floats) -> Floats:
    ranks = np.arange(block.shape[1])
    allowed = np.ones(block.shape, dtype=bool)
    if feature.direction == "increasing":
        allowed = ranks >= own[:, None]
    if feature.direction == "decreasing":
        allowed = ranks <= own[:, None]
    return np.asarray(np.where(allowed, block, -np.inf).argmax(axis=1), dtype=np.float64)

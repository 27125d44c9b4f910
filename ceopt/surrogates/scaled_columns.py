"""The columns in which local surrogates are linear: numbers over their scale, levels as shares, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, final, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.representation import Affine
from ceopt.formulations.space.encoding import Column, Encoding, SparseTable
from ceopt.formulations.space.feature import Feature, Step
from ceopt.formulations.space.infer import scales
from ceopt.formulations.space.reachable import Interval
from ceopt.formulations.space.space import (
    FeatureSpace,
    complete_rows,
    entry_names,
    entry_places,
    on_codes,
    raw_frame,
    require_space,
)
from ceopt.solvers.checks import Choice, Matrix
from ceopt.solvers.errors import InvalidValueError
from ceopt.surrogates.legal_values import Floats, level_of, on_grid, ranks_of
from ceopt.surrogates.linear_score import LinearScore
from ceopt.surrogates.spread import largest_distance

__all__ = ["Scale", "ScaledColumns"]

Scale: TypeAlias = Literal["mad", "std", "range", "none"]

_WHO: Final = "ScaledColumns"
_STATISTICS: Final = ("mad", "std", "range")
_SCALE: Final = Choice(get_args(Scale))


@final
@dataclass(frozen=True, eq=False)
class ScaledColumns:
    r"""Raw rows as points of :math:`\mathbb{R}^p`, in which a step of 1 means the same in every column.

    ============================ ======== ====================================================
    raw column                   columns  entry
    ============================ ======== ====================================================
    continuous or integer        1        number / scale; not centred
    ordinal, of L levels         1        rank / (L - 1), from 0 to 1
    binary                       1        0 for the first level, 1 for the second
    categorical, of L levels     L        1 for the level that it has, 0 for the others
    ============================ ======== ====================================================

    A scale is the column's own in the space or, where the space knows none, that of the data. Where it is 0 the next
    one is taken (the median deviation gives way to the standard deviation and that to the range), and 1 in the end, as
    costs do: a constant column is divided by 1.

    Parameters
    ----------
    space
        The raw columns.
    factual
        Coordinates (d,) of the row from which steps are counted and which inferred bounds hold; None for none.
    encoding
        The columns as functions of the raw ones.
    scales
        What each raw column is divided by, (d,): 1 for levels, but an ordinal column's levels less one.

    Examples
    --------
    >>> import pandas as pd
    >>> from ceopt import FeatureSpace
    >>> from ceopt.surrogates import ScaledColumns
    >>> people = pd.DataFrame({"income": [10.0, 30.0], "job": ["cook", "nurse"], "kids": [0, 2]})
    >>> columns = ScaledColumns.of(FeatureSpace.infer(people, categorical=["job"]), people)
    >>> columns.names, columns.groups
    (('income', 'job=cook', 'job=nurse', 'kids'), ((1, 2),))
    >>> columns.encode(people).tolist()
    [[1.0, 1.0, 0.0, 0.0], [3.0, 0.0, 1.0, 2.0]]
    >>> columns.decode([[2.5, 0.4, 0.6, 9.0]]).to_dict("records")
    [{'income': 25.0, 'job': 'nurse', 'kids': 2}]
    """

    space: FeatureSpace
    encoding: Encoding
    scales: Floats
    factual: Floats | None = None

    @classmethod
    def of(cls, space: FeatureSpace, frame: pd.DataFrame, scale: Scale = "std") -> ScaledColumns:
        """Return the columns of a space, scaled by its own statistics or else by those of the rows of a frame.

        Rows with missing cells are left out, with a warning.

        Raises
        ------
        UnknownNameError
            Another scale than "mad", "std", "range" or "none".
        InvalidTypeError, InvalidValueError
            No space, no rows, none that is whole, a column that the space does not have.
        """
        require_space(_WHO, space)
        _SCALE.require(_WHO, "scale", scale)
        coordinates = space.coordinates(complete_rows(_WHO, space, frame, "frame"))
        if not len(coordinates):
            raise InvalidValueError(_WHO, "rows of data", "the frame is empty", "Give the training data.")
        found = []
        columns: list[Column] = []
        for feature, values in zip(space, coordinates.T, strict=True):
            divisor = _described(feature, values).scale(scale)
            found.append(divisor)
            columns += _columns_of(feature, divisor)
        return cls(space, Encoding(tuple(columns), space.names), np.array(found))

    def about(self, row: Any) -> ScaledColumns:
        """Return the same columns, whose steps are counted from a raw row and whose inferred bounds hold it.

        Raises
        ------
        CeoptError
            As :meth:`ceopt.FeatureSpace.row`: a missing column or value, an unseen level, a number outside its bounds.
        """
        return self.at(list(self.space.row(row).values()))

    def at(self, coordinates: ArrayLike) -> ScaledColumns:
        """Return :meth:`about` a row given by its coordinates (d,)."""
        return replace(self, factual=np.array(coordinates, dtype=np.float64))

    # ---- names and places --------------------------------------------------------------------------------------------
    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names (p,): a column's own, and "column=level" for each level of a category."""
        return entry_names(self.space)

    @cached_property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """Where the entries of each raw column stand, (d,)."""
        return tuple(tuple(range(place.start, place.stop)) for place in entry_places(self.space))

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The places of each category's columns, of which one is 1 and the others are 0."""
        own = zip(self.space, self.places, strict=True)
        return tuple(places for feature, places in own if feature.kind == "categorical")

    @cached_property
    def intervals(self) -> tuple[Interval | None, ...]:
        """Which numbers each raw column may hold, (d,); None for levels.

        Bounds that were inferred are ends too, but hold the factual row. Steps are counted from that row, and without
        one from the lower bound or from 0.
        """
        own = self.factual if self.factual is not None else [None] * len(self.space)
        return tuple(_interval(feature, x0) for feature, x0 in zip(self.space, own, strict=True))

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the least and the greatest entry of each column, (p,) each; infinite where a number has no bound."""
        lower = np.zeros(len(self.names))
        upper = np.ones(len(self.names))
        for interval, places, scale in zip(self.intervals, self.places, self.scales, strict=True):
            if interval is not None:
                lower[places[0]] = interval.lower / scale
                upper[places[0]] = interval.upper / scale
        return lower, upper

    # ---- there -------------------------------------------------------------------------------------------------------
    def encode(self, frame: pd.DataFrame) -> Floats:
        """Return raw rows as points (m, p), columns matched by name."""
        return self.encoded(self.space.coordinates(frame))

    def encoded(self, coordinates: ArrayLike) -> Floats:
        """Return rows of coordinates (m, d) as points (m, p)."""
        return np.asarray(self.encoding.matrix(coordinates), dtype=np.float64)

    def diameter(self, coordinates: Floats) -> float:
        """Return the largest distance, as points, of two rows of data (m, d), of those without codes if two are."""
        is_place = ~on_codes(self.space, coordinates)
        if is_place.sum() > 1:
            coordinates = coordinates[is_place]
        return largest_distance(self.encoded(coordinates))

    # ---- and back ----------------------------------------------------------------------------------------------------
    def decode(self, points: ArrayLike, rng: np.random.Generator | None = None) -> pd.DataFrame:
        """Return legal raw rows near points (m, p), as :meth:`legal` finds them."""
        return self.frame(self.legal(points, rng))

    def frame(self, coordinates: Floats) -> pd.DataFrame:
        """Return rows of coordinates (m, d) as a raw frame."""
        return raw_frame(self.space, coordinates)

    def legal(self, points: ArrayLike, rng: np.random.Generator | None = None) -> Floats:
        """Return coordinates (m, d) of legal rows near points (m, p).

        Numbers are cut to their bounds. Then whole numbers, steps, ranks and levels are the nearest ones (a category:
        the level of its greatest entry) or, with ``rng``, drawn: a number on either side of the point's, so that their
        mean is that of the point; a level with the probability of its entry, as a share of those above 0.
        """
        z = Matrix((None, len(self.names))).require(_WHO, "points", points)
        found = np.empty((len(z), len(self.space)))
        for j, (feature, interval, places) in enumerate(zip(self.space, self.intervals, self.places, strict=True)):
            if interval is not None:
                found[:, j] = on_grid(z[:, places[0]] * self.scales[j], interval, rng)
            elif feature.kind == "categorical":
                found[:, j] = level_of(z[:, places[0] : places[-1] + 1], rng)
            else:
                found[:, j] = ranks_of(z[:, places[0]], len(feature.levels), rng)
        return found

    def reachable(self, coordinates: Floats) -> Floats:
        """Return the legal rows nearest to some rows of coordinates (m, d): in bounds, a whole number of steps away."""
        found = coordinates.copy()
        for j, interval in enumerate(self.intervals):
            if interval is not None:
                found[:, j] = on_grid(coordinates[:, j], interval)
        return found

    def between(self, start: Floats, end: Floats, shares: Floats) -> Floats:
        """Return legal rows (m, d) on the way from one row of coordinates (d,) to another, at shares (m,) of it.

        Numbers and ranks move in proportion, to the nearest legal one; a category, and a truth value, is that of the
        start up to a share of a half and that of the end beyond. A share of 1 is the end itself.
        """
        moved = start + shares[:, None] * (end - start)
        for j, (feature, interval) in enumerate(zip(self.space, self.intervals, strict=True)):
            if interval is not None:
                moved[:, j] = on_grid(moved[:, j], interval)
            elif feature.kind == "ordinal":
                moved[:, j] = np.rint(moved[:, j])
            else:
                moved[:, j] = np.where(shares > 0.5, end[j], start[j])
        moved[shares == 1.0] = end
        return moved

    # ---- surrogates --------------------------------------------------------------------------------------------------
    def affine(self, coef: ArrayLike, intercept: float) -> Predictor:
        """Return the linear model ``coef @ z + intercept``, favourable (True) at 0 and above, over the raw columns.

        :func:`ceopt.explain` takes it like a fitted model, with the target True.
        """
        weights = Matrix((len(self.names),)).require(_WHO, "coef", coef)
        core = Affine(weights, float(intercept), labels=(False, True), decision="nonnegative")
        return Predictor(core, self.encoding, LinearScore(core, self.encoding, self.space), self.space)


def _described(feature: Feature, values: Floats) -> Feature:
    """Return a column of numbers with statistics: its own, and those of the data where it has none."""
    if feature.is_finite:
        return feature
    amounts = values[~feature.are_codes(values)]
    if not len(amounts):
        return feature
    of_data = scales(amounts)
    known = (feature.mad, feature.std, feature.range)
    mad, std, width = (of_data[name] if own is None else own for name, own in zip(_STATISTICS, known, strict=True))
    return replace(feature, mad=mad, std=std, range=width)


def _columns_of(feature: Feature, scale: float) -> Sequence[Column]:
    """Return the scaled columns of one raw column."""
    if not feature.is_finite:
        return [Column(feature.name, steps=(Step("divide", np.float64(scale)),))]
    count = len(feature.levels)
    if feature.kind == "categorical":
        return [Column(feature.name, table=SparseTable(count, (k,), (1.0,))) for k in range(count)]
    return [Column(feature.name, table=tuple((np.arange(count) / max(count - 1, 1)).tolist()))]


def _interval(feature: Feature, x0: float | None) -> Interval | None:
    if feature.is_finite:
        return None
    low, high = feature.lower, feature.upper
    if x0 is not None and feature.is_code(x0):
        low = high = x0
    if x0 is not None:
        if feature.lower_inferred:
            low = min(low, x0)
        if feature.upper_inferred:
            high = max(high, x0)
    least, greatest = feature.coordinate_limits
    low, high = max(low, least), min(high, greatest)
    step = feature.spacing
    if step is None:
        return Interval(low, high)
    anchor = x0
    if anchor is None:
        anchor = 0.0
        if feature.step is not None and math.isfinite(low):
            anchor = math.ceil(low) if feature.kind == "integer" else low
    return Interval(low, high, step, float(anchor)).narrowed(low, high)

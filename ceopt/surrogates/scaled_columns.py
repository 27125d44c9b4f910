"""Raw rows as points for surrogates and networks, and legal raw rows near a point.

``ScaledColumns`` divides numbers by a scale, for linear surrogates; ``ScaledFrame`` maps them to the range of the data,
for networks. Levels become shares or a column each in both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import compress
from typing import Any, ClassVar, Final, Literal, TypeAlias, final, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from ceopt.formulations.digits import digits
from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.representation import Affine
from ceopt.formulations.space.encoding import Column, Encoding, SparseTable
from ceopt.formulations.space.feature import Feature, Step
from ceopt.formulations.space.infer import scales
from ceopt.formulations.space.reachable import Interval, ends_of_many, multiples
from ceopt.formulations.space.space import (
    FeatureSpace,
    complete_rows,
    entry_names,
    entry_places,
    on_codes,
    raw_frame,
    require_space,
)
from ceopt.solvers.checks import Choice, Floats, Matrix
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

# ==== Numbers on the grid of their column and levels by their shares: the nearest one, or one drawn about it ==========


def on_grid(values: Floats, interval: Interval, rng: np.random.Generator | None = None) -> Floats:
    """Return amounts of an interval near some numbers, (m,).

    Without ``rng`` the nearest one. With it one of the two amounts about the number, each with the probability at which
    their mean is that number, so that columns of few values vary as often as their draws ask for; where one of the two
    is a code, the nearest amount to it.
    """
    cut = np.clip(values, interval.lower, interval.upper)
    if interval.step is None:
        return np.asarray(cut + 0.0)  # no -0.0
    count = _rounded((cut - interval.anchor) / interval.step, rng)
    found = np.clip(interval.grid.many(count), interval.lower, interval.upper) + 0.0
    for code in interval.holes:
        found[found == code] = interval.clip(code)
    return np.asarray(found)


def ranks_of(shares: Floats, n_levels: int, rng: np.random.Generator | None = None) -> Floats:
    """Return ranks of an ordinal or binary column, (m,), near shares of its way from the first level to the last."""
    return _rounded(np.clip(shares, 0.0, 1.0) * (n_levels - 1.0), rng)


def level_of(block: Floats, rng: np.random.Generator | None = None) -> Floats:
    """Return ranks of a category, (m,), from a block (m, levels) of one column a level.

    Without ``rng`` the level of the greatest entry, the first of them on ties. With it each level with the probability
    of its entry, negative ones counting 0, as a share of the sum.
    """
    greatest: Floats = block.argmax(axis=1).astype(np.float64)
    if rng is None:
        return greatest
    ends = np.maximum(block, 0.0).cumsum(axis=1)
    total = ends[:, -1]
    drawn = (ends <= (rng.random(len(block)) * total)[:, None]).sum(axis=1)
    return np.asarray(np.where(total > 0.0, np.minimum(drawn, block.shape[1] - 1.0), greatest))


def _rounded(numbers: Floats, rng: np.random.Generator | None) -> Floats:
    if rng is None:
        return np.asarray(np.rint(numbers))
    below = np.floor(numbers)
    return np.asarray(below + (rng.random(len(numbers)) < numbers - below))


# ==== A linear model in scaled columns, asked about raw rows ==========================================================


@final
@dataclass(frozen=True, slots=True, eq=False)
class LinearScore:
    """Whether a linear surrogate calls raw rows favourable: the model behind a surrogate that the engine solves.

    Parameters
    ----------
    core
        The score, and its decision at 0.
    encoding
        The scaled columns as functions of the raw ones.
    space
        The raw columns.
    """

    core: Affine
    encoding: Encoding
    space: FeatureSpace

    @property
    def classes_(self) -> NDArray[np.bool_]:
        """Unfavourable and favourable."""
        return np.array([False, True])

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Raw columns: it is asked about frames."""
        return np.array(self.space.names, dtype=object)

    def score(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return the scores of raw rows, (m,)."""
        return self.core.score(self.encoding.matrix(self.space.coordinates(frame)))

    def predict(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        """Return whether raw rows are favourable, (m,)."""
        return np.asarray(self.core.head.decide(self.score(frame)))


# ==== How far the rows of data lie apart at most ======================================================================

_AT_ONCE: Final = 64  # rows that are compared with the others in one call


def largest_distance(points: NDArray[np.float64]) -> float:
    r"""Return the largest Euclidean distance of two of some points (n, p); 0 of a single one. Exact.

    With :math:`r_i` the distance of point i from the centre of the points, no pair is farther apart than
    :math:`r_i + r_j`. The points are gone through from the outermost inwards, each compared with all that lie no
    farther out, until :math:`2 r_i` is no more than what was found.

    Examples
    --------
    >>> largest_distance(np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]]))
    5.0
    """
    points = np.unique(points, axis=0)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2.0
    radii = np.sqrt(((points - middle) ** 2).sum(axis=1))
    order = np.argsort(-radii, kind="stable")
    points = points[order]
    radii = radii[order]
    best = 0.0
    for start in range(0, len(points), _AT_ONCE):
        if 2.0 * radii[start] <= best:
            break
        best = max(best, float(cdist(points[start : start + _AT_ONCE], points[start:]).max()))
    return best


# ==== Raw rows as points, whatever their numbers are divided by =======================================================


class AbstractPoints:
    """Columns of numbers, and of levels, as functions of raw columns: names, and raw rows as points and back."""

    space: FeatureSpace
    encoding: Encoding
    #: What reads the columns, as errors name it.
    reader: ClassVar[str]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names (p,): a column's own, and "column=level" for each level of a category."""
        return entry_names(self.space)

    def encode(self, frame: pd.DataFrame) -> Floats:
        """Return raw rows as points (m, p), columns matched by name."""
        return self.encoded(self.space.coordinates(frame))

    def encoded(self, coordinates: ArrayLike) -> Floats:
        """Return rows of coordinates (m, d) as points (m, p).

        Raises
        ------
        InvalidValueError
            A cell is missing, whose column is read.
        """
        points = np.asarray(self.encoding.matrix(coordinates), dtype=np.float64)
        gaps = np.argwhere(np.isnan(points))
        if len(gaps):
            row, place = gaps[0].tolist()
            name = self.encoding.columns[place].feature
            but = f"column {name!r} is missing in row {row}"
            raise InvalidValueError(self.reader, "a value in every cell", but, "Fill it in first.")
        return points

    def frame(self, coordinates: Floats) -> pd.DataFrame:
        """Return rows of coordinates (m, d) as a raw frame."""
        return raw_frame(self.space, coordinates)


def _columns_of(feature: Feature, *steps: Step) -> list[Column]:
    """Return the columns of one raw column: a number after some steps, a level's rank as a share, a column a level."""
    if not feature.is_finite:
        return [Column(feature.name, steps=steps)]
    count = len(feature.levels)
    if feature.kind == "categorical":
        return [Column(feature.name, table=SparseTable(count, (k,), (1.0,))) for k in range(count)]
    return [Column(feature.name, table=tuple((np.arange(count) / max(count - 1, 1)).tolist()))]


# ==== The columns in which local surrogates are linear: numbers over their scale, levels as shares, and back ==========

Scale: TypeAlias = Literal["mad", "std", "range", "none"]

_WHO: Final = "ScaledColumns"
_STATISTICS: Final = ("mad", "std", "range")
_SCALE: Final = Choice(get_args(Scale))


@final
@dataclass(frozen=True, eq=False)
class ScaledColumns(AbstractPoints):
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

    A cell of ``factual`` that is missing, or holds a code, is no amount: its columns are 0 of all rows, and every legal
    row has that cell as it is.

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

    reader = "A linear surrogate"
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
        found = [_described(own, values).scale(scale) for own, values in zip(space, coordinates.T, strict=True)]
        return cls(space, _encoding(space, np.array(found), np.zeros(len(space), dtype=bool)), np.array(found))

    def about(self, row: Any) -> ScaledColumns:
        """Return the same columns, whose steps are counted from a raw row and whose bounds hold it.

        Raises
        ------
        CeoptError
            As :meth:`ceopt.FeatureSpace.row`: a missing column or value, an unseen level, a number beyond a code.
        """
        return self.at(list(self.space.row(row).values()))

    def at(self, coordinates: ArrayLike) -> ScaledColumns:
        """Return :meth:`about` a row given by its coordinates (d,)."""
        own = np.array(coordinates, dtype=np.float64)
        stays = _are_labels(self.space, own)
        encoding = self.encoding
        if stays.any() or self.stays.any():
            encoding = _encoding(self.space, self.scales, stays)
        return replace(self, factual=own, encoding=encoding)

    @cached_property
    def stays(self) -> NDArray[np.bool_]:
        """In which raw columns the factual is missing or holds a code, so that they stay as they are, (d,)."""
        if self.factual is None:
            return np.zeros(len(self.space), dtype=bool)
        return _are_labels(self.space, self.factual)

    # ---- names and places --------------------------------------------------------------------------------------------
    @cached_property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """Where the entries of each raw column stand, (d,)."""
        return tuple(tuple(range(place.start, place.stop)) for place in entry_places(self.space))

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The places of each category's one-hot columns."""
        own = zip(self.space, self.places, strict=True)
        return tuple(places for feature, places in own if feature.kind == "categorical")

    @cached_property
    def intervals(self) -> tuple[Interval | None, ...]:
        """Which amounts each raw column may hold, (d,); None for levels, and for a column that stays.

        Bounds hold the factual row. Steps are counted from that row, and without one from the lower bound or from 0.
        """
        own = self.factual if self.factual is not None else [None] * len(self.space)
        found = []
        for feature, x0, stays in zip(self.space, own, self.stays, strict=True):
            found.append(None if stays else _interval(feature, x0))
        return tuple(found)

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the least and the greatest entry of each column, (p,) each; infinite where a number has no bound."""
        lower = np.zeros(len(self.names))
        upper = np.ones(len(self.names))
        for interval, places, scale in zip(self.intervals, self.places, self.scales, strict=True):
            if interval is not None:
                lower[places[0]] = interval.lower / scale
                upper[places[0]] = interval.upper / scale
        for places in compress(self.places, self.stays):
            upper[list(places)] = 0.0
        return lower, upper

    # ---- from raw rows to points -------------------------------------------------------------------------------------
    def diameter(self, coordinates: Floats) -> float:
        """Return the largest distance, as points, of two rows of data (m, d), of those without codes if two are."""
        is_place = ~on_codes(self.space, coordinates)
        if is_place.sum() > 1:
            coordinates = coordinates[is_place]
        return largest_distance(self.encoded(coordinates))

    def _with_labels(self, coordinates: Floats) -> Floats:
        """Write into rows of coordinates (m, d) the cells of the factual that are missing or hold codes."""
        if self.stays.any():
            assert self.factual is not None  # noqa: S101 - whose cells stay
            coordinates[:, self.stays] = self.factual[self.stays]
        return coordinates

    # ---- from points to raw rows -------------------------------------------------------------------------------------
    def decode(self, points: ArrayLike, rng: np.random.Generator | None = None) -> pd.DataFrame:
        """Return legal raw rows near points (m, p), as :meth:`legal` finds them."""
        return self.frame(self.legal(points, rng))

    def legal(self, points: ArrayLike, rng: np.random.Generator | None = None) -> Floats:
        """Return coordinates (m, d) of legal rows near points (m, p).

        Numbers are cut to their bounds. Then whole numbers, steps, ranks and levels are the nearest ones (a category:
        the level of its greatest entry) or, with ``rng``, drawn: a number on either side of the point's, so that their
        mean is that of the point; a level with the probability of its entry, as a share of those above 0. None becomes
        a code.
        """
        z = Matrix((None, len(self.names))).require(_WHO, "points", points)
        found = np.empty((len(z), len(self.space)))
        for j, (feature, interval, places) in enumerate(zip(self.space, self.intervals, self.places, strict=True)):
            if self.stays[j]:
                continue
            if interval is not None:
                found[:, j] = on_grid(z[:, places[0]] * self.scales[j], interval, rng)
            elif feature.kind == "categorical":
                is_code = feature.are_codes(np.arange(len(feature.levels), dtype=np.float64))
                found[:, j] = level_of(np.where(is_code, -np.inf, z[:, places[0] : places[-1] + 1]), rng)
            else:
                found[:, j] = feature.off_codes(ranks_of(z[:, places[0]], len(feature.levels), rng))
        return self._with_labels(found)

    def reachable(self, coordinates: Floats) -> Floats:
        """Return the legal rows nearest to some rows of coordinates (m, d): in bounds, a whole number of steps away.

        A category that is a code becomes that of the factual, if there is one.
        """
        found = self._with_labels(coordinates.copy())
        for j, (feature, interval) in enumerate(zip(self.space, self.intervals, strict=True)):
            if self.stays[j]:
                continue
            if interval is not None:
                found[:, j] = on_grid(coordinates[:, j], interval)
            elif feature.kind != "categorical":
                found[:, j] = feature.off_codes(found[:, j])
            elif self.factual is not None:
                found[feature.are_codes(found[:, j]), j] = self.factual[j]
        return found

    def between(self, start: Floats, end: Floats, shares: Floats) -> Floats:
        """Return legal rows (m, d) on the way from one row of coordinates (d,) to another, at shares (m,) of it.

        Numbers and ranks move in proportion, to the nearest legal one; a category, and a truth value, is that of the
        start up to a share of a half and that of the end beyond. A share of 1 is the end itself.
        """
        moves = np.where(self.stays, 0.0, end) - np.where(self.stays, 0.0, start)
        moved: Floats = start + shares[:, None] * moves
        for j, (feature, interval) in enumerate(zip(self.space, self.intervals, strict=True)):
            if self.stays[j]:
                continue
            if interval is not None:
                moved[:, j] = on_grid(moved[:, j], interval)
            elif feature.kind == "ordinal":
                moved[:, j] = feature.off_codes(np.rint(moved[:, j]))
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
        features = []
        for feature, stays in zip(self.space, self.stays.tolist(), strict=True):
            features.append(replace(feature, missing=feature.missing if stays else False))
        space = FeatureSpace(features)  # rows lack no other cells than the factual does
        return Predictor(core, self.encoding, LinearScore(core, self.encoding, space), space)


def _described(feature: Feature, values: Floats) -> Feature:
    """Return a numeric column with statistics: its own, completed by those of the data."""
    if feature.is_finite:
        return feature
    amounts = values[~feature.are_codes(values)]
    if not len(amounts):
        return feature
    of_data = scales(amounts)
    known = (feature.mad, feature.std, feature.range)
    mad, std, width = (of_data[name] if own is None else own for name, own in zip(_STATISTICS, known, strict=True))
    return replace(feature, mad=mad, std=std, range=width)


def _are_labels(space: FeatureSpace, coordinates: Floats) -> NDArray[np.bool_]:
    """Return which cells of a row of coordinates (d,) are missing or hold codes."""
    return np.array([feature.is_label(own) for feature, own in zip(space, coordinates.tolist(), strict=True)])


def _encoding(space: FeatureSpace, scales: Floats, stays: NDArray[np.bool_]) -> Encoding:
    """Return the scaled columns as functions of the raw ones; those that stay are 0."""
    columns: list[Column] = []
    for feature, scale, is_still in zip(space, scales, stays, strict=True):
        own = _columns_of(feature, Step("divide", np.float64(scale)))
        columns += [Column(None)] * len(own) if is_still else own
    return Encoding(tuple(columns), space.names)


def _interval(feature: Feature, x0: float | None) -> Interval | None:
    if feature.is_finite:
        return None
    low, high = feature.lower, feature.upper
    if x0 is not None:
        low, high = min(low, x0), max(high, x0)
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
    plain = Interval(low, high, step, float(anchor))
    holes = tuple(sorted(code for code in map(float, feature.codes) if plain.has(code)))
    return replace(plain, holes=holes).narrowed(low, high)


# ==== Raw rows as points of the unit cube: numbers by their range, a column a level; and legal raw rows near a point ==

Flags: TypeAlias = NDArray[np.bool_]

#: Steps are read as fractions with denominators up to this one: 0.1 is a tenth.
_FINEST_STEP: Final = 10_000
_THEN: Final = "Leave it out: what never varies tells nobody apart."


@final
@dataclass(frozen=True, eq=False)
class ScaledFrame(AbstractPoints):
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
    encoding
        The columns as functions of the raw ones.
    least, width
        Least number and range of each raw column in the data, (d,); 0 and 1 for levels.
    dtypes
        The dtype of each raw column in the data.

    Examples
    --------
    >>> import pandas as pd
    >>> from ceopt import FeatureSpace
    >>> from ceopt.surrogates.scaled_columns import ScaledFrame
    >>> people = pd.DataFrame({"income": [10.0, 30.0, 20.0], "job": ["cook", "nurse", "clerk"]})
    >>> columns = ScaledFrame.of("Example", FeatureSpace.infer(people), people)
    >>> columns.names
    ('income', 'job=clerk', 'job=cook', 'job=nurse')
    >>> columns.encode(people).tolist()
    [[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0], [0.5, 1.0, 0.0, 0.0]]
    """

    reader = "A network"
    space: FeatureSpace
    encoding: Encoding
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
        columns: list[Column] = []
        for j, feature in enumerate(space):
            if feature.is_finite:
                if len(feature.levels) < 2:
                    but = f"{feature.name!r} has the level {feature.levels[0]!r} alone"
                    raise InvalidValueError(who, "columns of more than one level", but, _THEN)
                columns += _columns_of(feature)
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
            columns += _columns_of(feature, Step("subtract", least[j]), Step("divide", width[j]))
        dtypes = {name: frame[name].dtype for name in space.names}
        return cls(space, Encoding(tuple(columns), space.names), least, width, dtypes)

    # ---- names and places --------------------------------------------------------------------------------------------
    @cached_property
    def places(self) -> tuple[slice, ...]:
        """Where the entries of each raw column stand, (d,)."""
        return entry_places(self.space)

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

    # ---- what may be reached -----------------------------------------------------------------------------------------
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
            if feature.kind != "categorical":
                lowest, highest = self._limits(j, coordinates[:, j])
                low[:, place.start] = np.maximum(low[:, place.start], lowest)
                high[:, place.start] = np.minimum(high[:, place.start], highest)
            stays = feature.are_codes(coordinates[:, j])  # who stands on a code stays, and nobody becomes one
            low[stays, place] = high[stays, place] = own[stays, place]
        return low, high

    def _limits(self, j: int, own: Floats) -> tuple[Floats, Floats]:
        """Return the entries (n,) at which the limits of column j about each person end."""
        feature = tuple(self.space)[j]
        lowest, highest = ends_of_many(feature, own)
        if feature.is_finite:
            last = max(len(feature.levels) - 1.0, 1.0)
            return lowest / last, highest / last
        return (lowest - self.least[j]) / self.width[j], (highest - self.least[j]) / self.width[j]

    def legal(self, points: Floats, factual: Floats, *, whole: Flags | None = None) -> Floats:
        """Return the coordinates (n, d) nearest to points (n, p) that people at coordinates (n, d) may reach.

        Bounds, directions and steps are those of the space for each person: a bound holds the person's own number,
        steps are counted from it, and what is fixed stays. ``whole`` says which raw columns (d,) can hold whole numbers
        alone, whatever their kind; None: those of the kinds that do.
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


def _within(feature: Feature, own: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the ends of what may be reached in the direction in which a column moves, within its limits."""
    if feature.direction == "increasing":
        low = own
    if feature.direction == "decreasing":
        high = own
    lowest, highest = ends_of_many(feature, own)
    return np.maximum(low, lowest), np.minimum(high, highest)


def _spacing(feature: Feature, *, whole: bool) -> float | None:
    """Return the distance of neighbouring values of a column; with ``whole``, of its whole numbers."""
    step = feature.spacing
    if not whole:
        return step
    if step is None:
        return 1.0
    return step * Fraction(step).limit_denominator(_FINEST_STEP).denominator


def _number(feature: Feature, wanted: Floats, own: Floats, *, whole: bool) -> Floats:
    low = np.minimum(own, feature.lower)
    high = np.maximum(own, feature.upper)
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

"""The nearest rows of the data that the model favours, as one person could become them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.diverse.decisions import Memory
from ceopt.diverse.projection import Projection, RowDistance, cosines
from ceopt.formulations.constraints import rule_name
from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.space import FeatureSpace, rows_to_keep, taken
from ceopt.oracle.model import broken_rules
from ceopt.solvers.checks import Floats
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError
from ceopt.tolerances import LIMIT_ROUNDING, TREE_DISTANCE_ROUNDING

if TYPE_CHECKING:
    from ceopt.diverse.decisions import Decisions

# ==== Filters: close enough to the row, and diverse ===================================================================


def within(alpha: float, nearest: float) -> float:
    """Return the greatest distance that is within (1 + alpha) times the nearest one, rounding included."""
    return (1.0 + alpha) * nearest * (1.0 + LIMIT_ROUNDING)


@final
@dataclass(frozen=True, slots=True)
class Diversity:
    r"""What two explanations must have apart.

    ======== ==================================================== =======================================
    kind     rule                                                 meaning
    ======== ==================================================== =======================================
    angle    :math:`1 - \cos(c - x, c' - x) \ge \beta`            another direction from the row x
    distance :math:`d(c', c) \ge (1 + \beta)\, m`                 m is the distance of the nearest one
    ======== ==================================================== =======================================

    Parameters
    ----------
    kind, beta
        The rule and its limit.
    absolute
        Take the cosine without its sign, as the published code does: opposite directions then count as one.
    """

    kind: Literal["angle", "distance"]
    beta: float
    absolute: bool = False

    def kept(self, distance: RowDistance, home: Floats, points: Floats, nearest: float, most: int | None) -> list[int]:
        """Return the places of the points (k, d) that the greedy filter keeps, at most ``most`` of them.

        Each is held against those that are kept already, never against the row itself.
        """
        if self.kind == "distance":
            least = (1.0 + self.beta) * nearest * (1.0 - LIMIT_ROUNDING)
            return greedy(len(points), lambda i, rest: distance.between(points[i], points[rest]) >= least, most)
        moves = distance.directions(home, points)

        def differs(i: int, rest: NDArray[np.intp]) -> NDArray[np.bool_]:
            cosine = cosines(moves[i], moves[rest])
            if self.absolute:
                cosine = np.abs(cosine)
            return np.asarray(1.0 - cosine >= self.beta - LIMIT_ROUNDING)

        return greedy(len(points), differs, most)


def greedy(
    count: int, differs: Callable[[int, NDArray[np.intp]], NDArray[np.bool_]], most: int | None = None
) -> list[int]:
    """Keep the first of 0, ..., count - 1, then each that differs from all that were kept before it.

    Parameters
    ----------
    count
        How many there are, best first.
    differs
        Which of some later places differ from a place that is kept.
    most
        Stop after so many.
    """
    left = np.arange(count)
    kept: list[int] = []
    while len(left) and (most is None or len(kept) < most):
        one = int(left[0])
        left = left[1:]
        kept.append(one)
        left = left[differs(one, left)]
    return kept


# ==== Neighbours in order of distance =================================================================================

Places = NDArray[np.intp]

#: From how many rows on, and up to how many dimensions, scikit-learn's k-d tree beats a look at every row.
_TREE_ROWS: Final = 20_000
_TREE_DIMENSIONS: Final = 15
#: Each further block is this many times the size of the one before.
_GROWTH: Final = 2


def in_order(distances: Floats, first: int) -> Iterator[Places]:
    """Give the places of distances (n,) in increasing order, ties by place, in blocks of at least ``first`` that grow.

    Equal distances are never in two blocks.
    """
    left = np.arange(len(distances))
    size = first
    while len(left):
        block = left
        held = distances[left]
        if len(left) > size:
            near = held <= np.partition(held, size - 1)[size - 1]
            block = left[near]
            left = left[~near]
        else:
            left = left[:0]
        yield block[np.argsort(distances[block], kind="stable")]
        size *= _GROWTH


@final
class Neighbours:
    """Fixed rows (n, d), asked again and again for those that are nearest to a point.

    Parameters
    ----------
    rows
        The rows, as coordinates.
    distance
        How far they are.
    """

    __slots__ = ("_distance", "_rows", "_tree")

    def __init__(self, rows: Floats, distance: RowDistance) -> None:
        self._rows = rows
        self._distance = distance
        self._tree: Any = None
        dimensions = int(np.where(distance.levels > 0, distance.levels, 1).sum())
        if len(rows) >= _TREE_ROWS and dimensions <= _TREE_DIMENSIONS and distance.is_symmetric:
            from sklearn.neighbors import NearestNeighbors

            metric = {"l1": "manhattan", "l2": "euclidean"}[distance.norm]
            self._tree = NearestNeighbors(algorithm="kd_tree", metric=metric).fit(distance.embedded(rows))

    def blocks(self, home: Floats, first: int) -> Iterator[tuple[Places, Floats]]:
        """Give places and distances from ``home`` (d,) in increasing order, ties by place, in growing blocks."""
        reached = 0.0
        if self._tree is not None:
            count = first
            where = self._distance.embedded(home[None, :])
            while _GROWTH * count < len(self._rows):
                far, found = self._tree.kneighbors(where, n_neighbors=count)
                places = np.sort(found[0])
                distances = self._distance.between(home, self._rows[places])
                # Of rows at the farthest distance the tree may have left some out: they are for the next block.
                sure = far[0, -1] * (1.0 - TREE_DISTANCE_ROUNDING)
                new = (distances >= reached) & (distances < sure)
                order = np.argsort(distances[new], kind="stable")
                yield places[new][order], distances[new][order]
                reached = max(reached, sure)
                count = count * _GROWTH
        distances = self._distance.between(home, self._rows)
        left = np.flatnonzero(distances >= reached)
        for block in in_order(distances[left], first):
            yield left[block], distances[left[block]]


# ==== Candidates: the nearest favourable rows, put where the person may go ============================================

#: Rows that are looked at first, at least, and per candidate that is wanted; then twice as many, and so on.
_FIRST, _PER_CANDIDATE = 512, 4
#: Rows that are looked at before all are asked about and remembered.
_PATIENCE = 1024


@final
@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """The training rows, their spatial index, and remembered decisions about them."""

    rows: TrainingRows
    neighbours: Neighbours
    memory: Memory


@final
@dataclass(frozen=True, slots=True)
class Cutoff:
    """Which candidates are near: the ``count`` nearest, or those within (1 + ``share``) times the nearest distance."""

    count: int | None
    share: float | None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Keeper:
    """Says which points are answers: the model agrees, and every rule of the space and of the user is kept.

    Parameters
    ----------
    projection
        Puts points where the person may go.
    decisions
        What the model says.
    origin
        From where distances and directions are seen, and to where segments lead, (d,): the person's own row, or
        another point that is no answer.
    """

    projection: Projection
    decisions: Decisions
    origin: Floats

    @property
    def factual(self) -> dict[str, float]:
        """The person, coordinates by name."""
        return self.named(self.projection.home)

    def named(self, point: Floats) -> dict[str, float]:
        """Return a point as coordinates by name."""
        return dict(zip(self.projection.space.names, point.tolist(), strict=True))

    def broken(self, point: Floats) -> tuple[str, ...]:
        """Return what a point breaks, in words."""
        rules = self.projection.rules
        return broken_rules(rules, self.projection.space, self.factual, self.named(point))

    def accepts(self, points: Floats) -> NDArray[np.bool_]:
        """Return which of points (n, d), put back by the projection, are answers.

        Such points keep the space's own rules, so that there is something to check only where the user has rules.
        """
        good = self.decisions.meets(points)
        if self.projection.rules:
            for k in np.flatnonzero(good):
                good[k] = not self.broken(points[k])
        return good


@final
@dataclass(slots=True)
class Candidates:
    """What was found.

    Parameters
    ----------
    places, points, distances
        Rows of the data, what the person could become of each (k, d), and how far it is, nearest first.
    favoured
        How many rows the model favours, of those that were looked at.
    looked_at
        How many rows that was.
    lost
        How many of the favoured ones it no longer favours once they are put back.
    broken
        How many break each rule all the same, by its name.
    """

    places: list[int] = field(default_factory=list)
    points: list[Floats] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)
    favoured: int = 0
    looked_at: int = 0
    lost: int = 0
    broken: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.places)


def nearest_candidates(data: Searched, keeper: Keeper, cutoff: Cutoff, *, keep_repeats: bool = False) -> Candidates:
    """Return the candidates up to the cutoff: nearest first, ties in the data's order.

    Rows are asked about in blocks of growing size, from the nearest on, so that a large table is hardly looked at where
    favourable rows are common. Where they are rare, all rows are asked about and the answer is remembered.

    A candidate is a row that the model favours, put back by the projection, that the model still favours and that keeps
    every rule. Of candidates that have become equal the first is kept.
    """
    known = data.memory.recall(keeper.decisions)
    if known is None:
        found = _search(data, keeper, cutoff, keep_repeats=keep_repeats, patience=_PATIENCE)
        if found is not None:
            return found
        known = data.memory.learn(keeper.decisions, data.rows.coordinates)
    found = _search(data, keeper, cutoff, keep_repeats=keep_repeats, known=known)
    assert found is not None  # noqa: S101 - only a search without patience gives up
    return found


def _search(
    data: Searched,
    keeper: Keeper,
    cutoff: Cutoff,
    *,
    keep_repeats: bool,
    known: NDArray[np.bool_] | None = None,
    patience: float = math.inf,
) -> Candidates | None:
    """Return the candidates; None where they are not all found among as many rows as ``patience`` goes for."""
    found = Candidates()
    had = set[bytes]()
    rows = data.rows.coordinates
    # Of rows that are known to be favoured the others need not be looked at.
    which = np.arange(len(rows))
    raw = rows
    neighbours: Neighbours | None = data.neighbours
    if known is not None:
        which = np.flatnonzero(known)
        raw = rows[which]
        neighbours = None
    points = keeper.projection(raw)
    may_repeat = points is not raw and not keep_repeats
    first = max(_FIRST, _PER_CANDIDATE * (cutoff.count or 0))
    for places, distances in _blocks(neighbours, keeper, raw, points, first):
        if found.looked_at > patience:
            return None
        for k in np.flatnonzero(_favoured(keeper, raw, points, places, found, is_known=known is not None)).tolist():
            distance = float(distances[k])
            point = points[places[k]]
            if _is_full(found, cutoff, distance):
                return found
            if may_repeat:
                mark = (point + 0.0).tobytes()  # -0.0 is 0.0
                if mark in had:
                    continue
                had.add(mark)
            if keeper.projection.rules and (names := _names_of(keeper, point)):
                found.broken.update(names)
                continue
            found.places.append(int(which[places[k]]))
            found.points.append(point)
            found.distances.append(distance)
        if len(distances) and _is_full(found, cutoff, float(distances[-1])):
            return found
    found.looked_at = len(rows)
    return found


def origin_in_data(data: Searched, keeper: Keeper) -> Floats:
    """Return the nearest row of the data that is no answer, with the person's own categories, put back by every rule.

    The person's row itself where there is none.
    """
    projection = keeper.projection
    rows = data.rows.coordinates
    switch = projection.switch
    points = projection(np.where(switch, keeper.origin, rows) if switch.any() else rows)
    for places, _ in _blocks(data.neighbours, keeper, rows, points, _FIRST):
        others = np.flatnonzero(~keeper.accepts(points[places]))
        if len(others):
            return np.asarray(points[places[others[0]]])
    return keeper.origin


def _blocks(
    neighbours: Neighbours | None, keeper: Keeper, raw: Floats, points: Floats, first: int
) -> Iterator[tuple[NDArray[np.intp], Floats]]:
    """Yield places and distances of the points, nearest first; by the index where no point was moved."""
    if points is raw and neighbours is not None:
        yield from neighbours.blocks(keeper.origin, first)
        return
    distances = keeper.projection.distance.between(keeper.origin, points)
    for places in in_order(distances, first):
        yield places, distances[places]


def _favoured(
    keeper: Keeper, raw: Floats, points: Floats, places: NDArray[np.intp], found: Candidates, *, is_known: bool
) -> NDArray[np.bool_]:
    """Return which rows the model favours, as they are and as they are put back, and count them."""
    good = np.ones(len(places), dtype=bool) if is_known else keeper.decisions.meets(raw[places])
    found.looked_at += len(places)
    found.favoured += int(good.sum())
    if points is not raw:
        moved = np.flatnonzero(good & (points[places] != raw[places]).any(axis=1))
        still = keeper.decisions.meets(points[places[moved]])
        good[moved[~still]] = False
        found.lost += int((~still).sum())
    return good


def _is_full(found: Candidates, cutoff: Cutoff, distance: float) -> bool:
    if cutoff.count is not None:
        return len(found) >= cutoff.count
    assert cutoff.share is not None  # noqa: S101 - one of the two is given
    return bool(found.distances) and distance > within(cutoff.share, found.distances[0])


def _names_of(keeper: Keeper, point: Floats) -> list[str]:
    """Return the names of the rules that a point breaks."""
    projection = keeper.projection
    factual = keeper.factual
    named = keeper.named(point)
    own = [
        rule_name(rule, place)
        for place, rule in enumerate(projection.rules)
        if not rule.lacks_rows and not rule.violation(projection.space, factual, named) <= 0
    ]
    return own or ["the space"] * bool(keeper.broken(point))


# ==== Training rows ===================================================================================================

_WHO: Final = "DiverseRobustExplainer"


@final
@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """Rows as coordinates.

    Parameters
    ----------
    space
        Their columns.
    coordinates
        The rows, (n, d).
    places
        Their positions in the data, (n,): rows that lack a cell are left out.
    is_frame
        Whether the data was a frame, so that a function that predicts is given frames too.
    """

    space: FeatureSpace
    coordinates: Floats
    places: NDArray[np.intp]
    is_frame: bool


def rows_of(X: Any, y: Any, space: FeatureSpace | None) -> TrainingRows:
    """Return the rows of a frame or array; without a space it is inferred, all numbers of an array as continuous.

    Rows that lack a cell are left out, with a warning. Labels are checked, and not used.

    Raises
    ------
    InvalidTypeError
        Neither a frame nor an array of two dimensions, or a column of the wrong kind.
    InvalidValueError
        No rows, or none that is whole; another number of columns than the space has, an infinite value; labels that are
        not one for each row, or that are missing.
    UnknownNameError
        A column that the space does not have.
    """
    is_frame = isinstance(X, pd.DataFrame)
    frame = X if is_frame else _frame_of(X, space)
    if not len(frame) or not frame.shape[1]:
        raise InvalidValueError(f"{_WHO}.fit", "rows and columns", f"X has shape {frame.shape}", "Give data.")
    if y is not None:
        _check_labels(y, len(frame))
    kept = rows_to_keep(f"{_WHO}.fit", space, X, word="X", frame=frame, y=y)
    frame = taken(frame, kept)
    if space is None:
        numbers = None if is_frame else list(frame.columns)
        space = FeatureSpace(infer_features(frame, continuous=numbers, steps=False))
    places = np.arange(len(frame)) if kept is None else np.flatnonzero(kept)
    return TrainingRows(space, space.coordinates(frame), places, is_frame)


def _frame_of(X: Any, space: FeatureSpace | None) -> pd.DataFrame:
    if hasattr(X, "toarray"):
        raise InvalidTypeError(f"{_WHO}.fit", "a dense array", "X is sparse", "Give X.toarray().")
    try:
        array = np.asarray(X)
    except ValueError as error:
        but = f"X is no array ({error})"
        raise InvalidTypeError(f"{_WHO}.fit", "rows of equal length", but, "Correct X.") from error
    if array.ndim != 2:
        but = f"X is {type(X).__name__} of shape {array.shape}"
        raise InvalidTypeError(f"{_WHO}.fit", "a DataFrame or an array of rows and columns", but, "Reshape it.")
    if space is not None:
        if array.shape[1] != len(space):
            but = f"X has {array.shape[1]}"
            then = "Leave the label out, or give a frame."
            raise InvalidValueError(f"{_WHO}.fit", f"the {len(space)} columns of the space", but, then)
        return pd.DataFrame(array, columns=list(space.names))
    try:
        array = np.where(pd.isna(array), np.nan, array)
        return pd.DataFrame(array.astype(np.float64), columns=[f"x{j}" for j in range(array.shape[1])])
    except (TypeError, ValueError) as error:
        but = f"X holds something else ({error})"
        then = "Give a DataFrame, or space=... that says what each column is."
        raise InvalidTypeError(f"{_WHO}.fit", "an array of numbers, or a space", but, then) from error


def _check_labels(y: Any, count: int) -> None:
    """Refuse labels that are not one for each of ``count`` rows, or that are missing."""
    try:
        labels = np.asarray(y)
    except ValueError as error:
        raise InvalidTypeError(f"{_WHO}.fit", "labels in a list", f"y is no array ({error})", "Correct y.") from error
    if labels.shape != (count,):
        but = f"y has shape {labels.shape}"
        raise InvalidValueError(f"{_WHO}.fit", f"one label for each of {count} rows", but, "Match X.")
    missing = np.flatnonzero(pd.isna(np.asarray(y, dtype=object)))
    if len(missing):
        but = f"that of row {missing[0]} is missing"
        raise InvalidValueError(f"{_WHO}.fit", "a label for every row", but, "Fill it in, or leave y out.")


def row_of(rows: TrainingRows, row: Any) -> dict[str, float]:
    """Return a person's row as coordinates; where the data was an array, so may the row be.

    Raises
    ------
    CeoptError
        As :meth:`FeatureSpace.row`, and an array of another length than the rows have.
    """
    if isinstance(row, pd.Series) and not rows.is_frame and row.index.equals(pd.RangeIndex(len(row))):
        row = row.to_numpy()  # a row of a frame that has no names either
    if isinstance(row, np.ndarray | list | tuple) and not rows.is_frame:
        values = np.asarray(row, dtype=object)
        if values.ndim == 2 and len(values) == 1:
            values = values[0]
        if values.shape != (len(rows.space),):
            but = f"row has shape {values.shape}"
            then = "Give one row, with the columns of X."
            raise InvalidValueError(f"{_WHO}.explain", f"a row of {len(rows.space)} values", but, then)
        row = dict(zip(rows.space.names, values.tolist(), strict=True))
    return rows.space.row(row)

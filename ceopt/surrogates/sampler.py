"""Rows about the nearest point of the decision boundary, each with what the model says of it, and their picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, final

import numpy as np
import pandas as pd

from ceopt.base.libraries import require_library
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.space import FeatureSpace, rows_to_keep, taken
from ceopt.oracle.black_box import BlackBox, verdict
from ceopt.solvers.checks import Choice, Floats, ListOf, Real, Refusal, Whole, check_fields
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, counted
from ceopt.surrogates.scaled_columns import Flags, Scale, ScaledColumns
from ceopt.words.sentences import name_with_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ceopt.formulations.space.feature import Feature

Norm: TypeAlias = Literal["l1", "l2"]

_WHO: Final = "BoundarySampler"
_CHECKS: Final = {
    "n_neighbours": Whole(at_least=1),
    "n_samples": Whole(at_least=2),
    "radius": Real(above=0.0, finite=True),
    "norm": Choice(("l1", "l2")),
    "n_line": Whole(at_least=1),
    "max_queries": Whole(at_least=1),
    "scale": Choice(("mad", "std", "range", "none")),
    "random_state": Whole(at_least=0),
}
_DOUBLINGS: Final = 5  # of the radius of a ball in which the model decides one way


@final
class NoBoundaryError(InvalidValueError):
    """The model decides one way only: on all rows of data, or on all rows of a ball."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class DecidedRows:
    """Rows of data as a sampler needs them, whoever is asked about: a person costs no more than the samples.

    Parameters
    ----------
    box
        The model, which counts what it is asked.
    columns
        The scaled columns.
    coordinates, encoded
        The rows, (n, d), and as points (n, p).
    favourable
        What the model says of them, (n,).
    largest
        Greatest Euclidean distance of two of the points.
    """

    box: BlackBox
    columns: ScaledColumns
    coordinates: Floats
    encoded: Floats
    favourable: Flags
    largest: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundarySample:
    """Rows about a point, with the model's decisions.

    Parameters
    ----------
    points
        The rows, a frame (m, d) of legal values in raw units.
    encoded
        The same in scaled columns, (m, p).
    favourable
        What the model says of them, (m,).
    boundary
        The point about which they lie: the first on the way to the other side that is there, in raw units.
    radius
        Of the ball, in scaled columns, after doublings.
    n_queries
        Rows that were sent to the model for it.
    columns
        The scaled columns, about the row in question.
    """

    points: pd.DataFrame
    encoded: Floats
    favourable: Flags
    boundary: pd.Series[Any]
    radius: float
    n_queries: int
    columns: ScaledColumns

    def plot(
        self, columns: Iterable[str], *, surrogate: Any = None, ax: Axes | None = None, dark: bool = False
    ) -> Axes:
        """Draw the sample over two columns of numbers, with the boundary point; matplotlib is the extra ``plot``.

        Parameters
        ----------
        columns
            Names of two columns of numbers: across and up.
        surrogate
            Whose line is drawn, where it changes its mind with all other columns as at the boundary point: one that
            was fitted (``coef_`` and ``intercept_``), the ``surrogate`` of a result, or a pair (coef, intercept), each
            linear in the scaled columns of the sample. The rows differ in the other columns too, so that a good line
            need not part them in the picture.
        ax
            Axes to draw on. By default a figure of its own, which pyplot does not know.
        dark
            Colours for a dark ground, which the figure gets.

        Returns
        -------
        matplotlib.axes.Axes
            What was drawn on.

        Raises
        ------
        UnknownNameError
            There is no such column.
        InvalidTypeError, InvalidValueError
            Not two columns, or of levels; no linear surrogate of these scaled columns; ``ax`` is something else.
        MissingLibraryError
            matplotlib is not installed.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from ceopt.surrogates import BoundarySampler
        >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)), columns=["income", "savings"])
        >>> sample = BoundarySampler(n_samples=200).sample(
        ...     lambda rows: rows.sum(axis=1) > 0, {"income": -1.0, "savings": -1.0}, people, target=True)
        >>> ax = sample.plot(["income", "savings"], surrogate=([1.0, 1.0], 0.0))
        >>> [text.get_text() for text in ax.get_legend().get_texts()][2:]
        ['boundary point', 'surrogate, at its other columns']
        """
        from ceopt.pictures.surface import Plane, draw_sample

        require_library(_PLOT, "matplotlib")
        pair = _pair(self.columns, columns)
        names = (name_with_unit(pair[0]), name_with_unit(pair[1]))
        first, second = pair[0].name, pair[1].name
        points = self.points[[first, second]].to_numpy(dtype=np.float64)
        boundary = (float(self.boundary[first]), float(self.boundary[second]))
        plane = None
        if surrogate is not None:
            plane = Plane(*_slopes(self, surrogate, (first, second), boundary))
        whole = (pair[0].kind == "integer", pair[1].kind == "integer")
        return draw_sample(_PLOT, points, self.favourable, boundary, plane, names, whole=whole, ax=ax, dark=dark)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundarySampler:
    r"""Draw rows uniformly from a ball about the nearest point at which a model changes its mind.

    1. Of the rows of data that the model decides otherwise than the row in question, :math:`x^0`, the
       ``n_neighbours`` nearest :math:`x_i`, as far as the row can become like them: numbers are cut to the bounds of
       the space and moved to the nearest step, what is missing in the row in question, or holds a code there, is so in
       all of them, and rows that the model then finds on this side are passed over.
    2. On each way from :math:`x^0` to :math:`x_i` the first of ``n_line`` evenly spaced points, :math:`x_i` the last,
       that the model decides otherwise; of these the nearest to :math:`x^0` is the boundary point :math:`x_b`.
       Numbers and ranks go in proportion, to the nearest legal value; a category and a truth value switch where the
       share of the way passes a half.
    3. ``n_samples`` points :math:`z_b + r\,u^{1/p} v`, with u uniform in [0, 1] and v on the unit sphere: uniform in
       the l2 ball of radius r about :math:`x_b` in scaled columns.
    4. Each is made a legal row. Numbers are cut to their bounds. A whole number, a step or a rank is one of the two
       about the drawn number, each with the probability at which their mean is that number; a level is drawn with the
       probabilities that its columns' entries have as shares of those above 0. So legal rows are as near as the grid
       allows, and a column of few values does not stand still in a ball narrower than its steps.
    5. The model is asked about them, each distinct row once, in one call or, within a limit of time, in several short
       ones. If it decides all of them in one way, r is doubled, at most five times.

    Distances of 1 and 2 are in ``norm``, over scaled columns; r is ``radius`` times the largest l2 distance of two rows
    of data there. A row that is favourable already has its sample too: the other side is then the unfavourable one.

    Parameters
    ----------
    n_neighbours
        How many rows of the other side the row is led to.
    n_samples
        Size of the sample.
    radius
        Of the ball, as a share of the largest distance of rows of data.
    norm
        "l1" or "l2", in which rows are near.
    n_line
        Points on each way.
    max_queries
        How many rows may be sent to the model for one sample, those of the data included.
    scale
        Of numbers: "std", "mad", "range" or "none"; see :class:`ScaledColumns`.
    random_state
        Of the draws.

    Raises
    ------
    CeoptError
        A parameter out of its range.

    References
    ----------
    Bui, Nguyen, Yue & Nguyen (2024), Coverage-validity-aware algorithmic recourse, section 2 (i), after Vlassopoulos et
    al. (2020) and Laugel et al. (2018).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ceopt.surrogates import BoundarySampler
    >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)), columns=["income", "savings"])
    >>> sample = BoundarySampler(n_samples=200).sample(
    ...     lambda rows: rows.sum(axis=1) > 0, {"income": -1.0, "savings": -1.0}, people, target=True)
    >>> round(sample.boundary.sum(), 1) + 0.0, sample.encoded.shape, bool(0.3 < sample.favourable.mean() < 0.7)
    (0.0, (200, 2), True)
    """

    n_neighbours: int = 10
    n_samples: int = 1000
    radius: float = 0.1
    norm: Norm = "l1"
    n_line: int = 100
    max_queries: int = 20_000
    scale: Scale = "std"
    random_state: int = 0

    def __post_init__(self) -> None:
        check_fields(self, _CHECKS)

    def sample(
        self, predict: Any, factual: Any, X: pd.DataFrame, *, target: Any, space: FeatureSpace | None = None
    ) -> BoundarySample:
        """Draw the sample of one row.

        Parameters
        ----------
        predict
            A fitted model, or a function from a frame with the columns and dtypes of X to labels (n,).
        factual
            The row: a Series, a dict or a frame of one row.
        X
            Rows of data, (n, d).
        target
            What is favourable, as for :class:`BlackBox`.
        space
            What the columns are; inferred from X by default.

        Raises
        ------
        NoBoundaryError
            No row of data is decided otherwise, none of them in reach, or none in the last ball.
        QueryLimitError
            More than ``max_queries`` rows would be sent to the model.
        CeoptError
            What :class:`BlackBox` and :class:`ceopt.FeatureSpace` refuse: missing values, a ``predict`` that returns
            anything but labels.
        """
        before = predict.n_queries if isinstance(predict, BlackBox) else 0
        rows = self.decided(predict, X, target=target, space=space)
        found = self.near(rows, factual)
        return replace(found, n_queries=rows.box.n_queries - before)

    def decided(self, predict: Any, X: pd.DataFrame, *, target: Any, space: FeatureSpace | None = None) -> DecidedRows:
        """Return the rows of data, encoded and decided, from which any number of samples can be drawn.

        ``predict`` may be a :class:`BlackBox`, which goes on counting.

        Raises
        ------
        CeoptError
            As :meth:`sample`, but for the row.
        """
        if not isinstance(X, pd.DataFrame):
            raise InvalidTypeError(_WHO, "a DataFrame as X", f"X is {type(X).__name__}", "Name its columns.")
        X = taken(X, rows_to_keep(_WHO, space, X, word="X"))
        if space is None:
            space = FeatureSpace(infer_features(X, steps=False))
        columns = ScaledColumns.of(space, X, self.scale)
        box = predict
        if not isinstance(predict, BlackBox):
            known: dict[str, Any] = {"columns": list(X), "dtypes": X.dtypes, "space": space}
            box = BlackBox(predict, target, max_queries=self.max_queries, **known)
        coordinates = space.coordinates(X)
        encoded = columns.encoded(coordinates)
        return DecidedRows(box, columns, coordinates, encoded, box.of_data(X), columns.diameter(coordinates))

    def near(self, rows: DecidedRows, factual: Any) -> BoundarySample:
        """Draw the sample about the boundary point of a row.

        Raises
        ------
        CeoptError
            As :meth:`sample`.
        """
        before = rows.box.n_queries
        return self._drawn(rows, rows.columns.about(factual), self.boundary(rows, factual), before)

    def boundary(self, rows: DecidedRows, factual: Any) -> Floats:
        """Return the coordinates (d,) of the boundary point of a row, about which nothing is drawn yet.

        Raises
        ------
        CeoptError
            As :meth:`sample`, but for the ball.
        """
        return self._boundary(rows, rows.columns.about(factual))

    def around(self, rows: DecidedRows, factual: Any, centre: Any) -> BoundarySample:
        """Draw the sample about a given raw row in place of the boundary point.

        Raises
        ------
        CeoptError
            As :meth:`sample`.
        """
        before = rows.box.n_queries
        columns = rows.columns.about(factual)
        point = np.array(list(columns.space.row(centre).values()))
        return self._drawn(rows, columns, point, before)

    def shifted(self, rows: DecidedRows, sample: BoundarySample, shift: Floats) -> BoundarySample:
        """Return a sample that this sampler drew with its centre moved by ``shift`` (p,), from mostly the same rows.

        Draws that lie in both balls stay. The others are mirrored at the plane halfway between the centres, which makes
        the part of the first ball that the second lacks the part of the second that the first lacks: the draws are
        uniform in the second ball, and only those that were mirrored are asked about.

        Raises
        ------
        CeoptError
            As :meth:`sample`, but for the ball.
        """
        before = rows.box.n_queries
        columns = sample.columns
        centre = columns.encode(sample.boundary.to_frame().T)[0]
        draws = centre + sample.radius * self._unit(len(centre))
        outside = ((draws - centre - shift) ** 2).sum(axis=1) > sample.radius**2
        encoded = sample.encoded.copy()
        favourable = sample.favourable.copy()
        if outside.any():
            normal = shift / np.sqrt((shift**2).sum())
            above = (draws[outside] - centre - shift / 2.0) @ normal
            mirrored = draws[outside] - 2.0 * above[:, None] * normal
            legal = columns.legal(mirrored, np.random.default_rng([self.random_state, 2]))
            encoded[outside] = columns.encoded(legal)
            favourable[outside] = _asked(rows.box, columns, legal)
        return replace(
            sample, points=columns.decode(encoded), encoded=encoded, favourable=favourable,
            n_queries=rows.box.n_queries - before,
        )  # fmt: skip

    def _unit(self, width: int) -> Floats:
        """Return draws uniform in the unit ball, (n_samples, width), the same each time."""
        rng = np.random.default_rng(self.random_state)
        unit = rng.standard_normal((self.n_samples, width))
        unit *= (rng.random(self.n_samples) ** (1.0 / width) / np.sqrt((unit**2).sum(axis=1)))[:, None]
        return unit

    def _boundary(self, rows: DecidedRows, columns: ScaledColumns) -> Floats:
        """Return the coordinates (d,) of the nearest point of the other side on the ways to rows of data."""
        person = columns.factual
        assert person is not None  # noqa: S101 - the columns are about a row
        own = bool(_asked(rows.box, columns, person[None])[0])
        ends = self._ends(rows, columns, person, own=own)
        shares = np.arange(1, self.n_line + 1) / self.n_line
        ways = np.concatenate([columns.between(person, end, shares) for end in ends])
        other = (_asked(rows.box, columns, ways) != own).reshape(len(ends), self.n_line)
        reached = np.flatnonzero(other.any(axis=1))  # all, as the model said of their ends
        if not len(reached):
            but = f"of {counted(len(ends), 'row')} of data on the other side none is there when asked again"
            raise InvalidValueError(_WHO, "the same answer when asked again", but, "Fix what is random in predict.")
        points = ways.reshape(len(ends), self.n_line, -1)[reached, other[reached].argmax(axis=1)]
        return np.asarray(points[self._distances(columns, person, columns.encoded(points)).argmin()])

    def _ends(self, rows: DecidedRows, columns: ScaledColumns, factual: Floats, *, own: bool) -> Floats:
        """Return the nearest legal rows (k, d) that the model decides otherwise than the row itself."""
        other = np.flatnonzero(rows.favourable != own)
        if not len(other):
            but = f"of {counted(len(rows.favourable), 'row')} there is none for target {_with_labels(rows.box)}"
            then = "Give more data, or another target."
            raise NoBoundaryError(_WHO, f"a row of data that the model finds {verdict(not own)}", but, then)
        encoded = rows.encoded[other]
        if columns.stays.any():
            encoded = columns.encoded(rows.coordinates[other])
        order = np.argsort(self._distances(columns, factual, encoded), kind="stable")
        found: list[Floats] = []
        for start in range(0, len(order), self.n_neighbours):
            raw = rows.coordinates[other[order[start : start + self.n_neighbours]]]
            legal = columns.reachable(raw)
            moved = (legal != raw).any(axis=1)
            stays = np.ones(len(legal), dtype=bool)
            stays[moved] = _asked(rows.box, columns, legal[moved]) != own
            found += list(legal[stays])
            if len(found) >= self.n_neighbours:
                break
        if not found:
            raise _none_in_reach(columns, rows.coordinates[other])
        return np.array(found[: self.n_neighbours])

    def _distances(self, columns: ScaledColumns, factual: Floats, points: Floats) -> Floats:
        moves = np.abs(points - columns.encoded(factual[None]))
        if self.norm == "l1":
            return np.asarray(moves.sum(axis=1))
        return np.asarray(np.sqrt((moves**2).sum(axis=1)))

    def _drawn(self, rows: DecidedRows, columns: ScaledColumns, point: Floats, before: int) -> BoundarySample:
        """Return the sample about a point (d,)."""
        centre = columns.encoded(point[None])[0]
        unit = self._unit(len(centre))
        radius = self.radius * (rows.largest or 1.0)
        for doubling in range(_DOUBLINGS + 1):
            if doubling:
                radius *= 2.0
            legal = columns.legal(centre + radius * unit, np.random.default_rng([self.random_state, 1]))
            favourable = _asked(rows.box, columns, legal)
            if 0 < favourable.sum() < len(favourable):
                break
        else:
            word = verdict(favourable[0])
            but = f"all {self.n_samples} are {word}, even at a radius of {radius:g} after {_DOUBLINGS} doublings"
            needs = "samples that the model finds favourable and others that it does not"
            raise NoBoundaryError(_WHO, needs, but, "Raise n_samples or radius.")
        return BoundarySample(
            points=columns.frame(legal),
            encoded=columns.encoded(legal),
            favourable=favourable,
            boundary=columns.frame(point[None]).astype(object).iloc[0].rename(None),
            radius=radius,
            n_queries=rows.box.n_queries - before,
            columns=columns,
        )


def _asked(box: BlackBox, columns: ScaledColumns, coordinates: Floats) -> Flags:
    """Return what the model says of rows of coordinates (m, d), each distinct one asked about once."""
    rows, inverse = np.unique(coordinates, axis=0, return_inverse=True)
    return np.asarray(box.favourable(columns.frame(rows))[inverse.reshape(-1)])


def _none_in_reach(columns: ScaledColumns, raw: Floats) -> NoBoundaryError:
    """Return the error of rows of data (k, d) none of which keeps its decision as the person may be, by what binds."""
    is_moved = columns.reachable(raw) != raw
    held = "within the bounds and steps of the space"
    then = "Widen the bounds, or make the steps finer."
    if columns.stays.any():
        assert columns.factual is not None  # noqa: S101 - whose cells stay
        cells = []
        for name, own in compress(zip(columns.space.names, columns.factual.tolist(), strict=True), columns.stays):
            cells.append(f"{name!r} {'missing' if own == MISSING else 'on a code'}")
        in_row = f"with {' and '.join(cells)}, as the row has it"
        fill = "Ask about the row with a value there"
        if is_moved[:, ~columns.stays].any():
            held = f"{held} and {in_row}"
            then = f"{fill}, or widen the bounds."
        else:
            held = in_row
            then = f"{fill}."
    but = f"none of {len(raw)} keeps its decision {held}"
    return NoBoundaryError(_WHO, "a row of data of the other side in reach", but, then)


def _with_labels(box: BlackBox) -> str:
    """Return the target with the labels that the model gives to data, as a hint at misspellings."""
    if not box.said:
        return repr(box.target)
    return f"{box.target!r}, and predict returns {', '.join(map(repr, box.said))}"


# ==== What the picture of a sample shows: two columns of numbers in raw units, and a surrogate's line among them ======

_PLOT: Final = "BoundarySample.plot"
_PAIR_OF_NAMES: Final = ListOf(
    Refusal("a list of two names as columns", 'Write columns=["income", "age"].', error=InvalidTypeError), texts=True
)


def _pair(scaled: ScaledColumns, columns: Any) -> tuple[Feature, Feature]:
    space = scaled.space
    given = _PAIR_OF_NAMES.require(_PLOT, "columns", columns)
    for name in given:
        if name not in space:
            raise UnknownNameError.among(_PLOT, "column", name, space.names)
        if space[name].is_finite:
            but = f"{name!r} is {space[name].kind}"
            numbers = [feature.name for feature in space if not feature.is_finite]
            raise InvalidValueError(_PLOT, "columns of numbers", but, f"Choose from: {', '.join(numbers)}.")
    if len(set(given)) != 2 or len(given) != 2:
        but = f"columns are {', '.join(map(repr, given))}"
        raise InvalidValueError(_PLOT, "two columns", but, 'Write columns=["income", "age"].')
    return space[given[0]], space[given[1]]


def _slopes(
    sample: BoundarySample, surrogate: Any, pair: tuple[str, str], boundary: tuple[float, float]
) -> tuple[float, float, float]:
    """Return the surrogate's slopes in two columns in raw units, and the rest of its score at the boundary point."""
    scaled = sample.columns
    coef, intercept = _linear(surrogate, len(scaled.names))
    at_boundary = float(scaled.encode(sample.boundary.to_frame().T)[0] @ coef) + intercept
    own = []
    for name in pair:
        place = scaled.space.names.index(name)
        own.append(float(coef[scaled.places[place][0]] / scaled.scales[place]))
    return own[0], own[1], at_boundary - own[0] * boundary[0] - own[1] * boundary[1]


def _linear(surrogate: Any, width: int) -> tuple[Floats, float]:
    """Return coefficients (p,) and intercept of a fitted surrogate, of what a result says of its own, or of a pair."""
    coef = getattr(surrogate, "coef_", getattr(surrogate, "coef", None))
    intercept = getattr(surrogate, "intercept_", getattr(surrogate, "intercept", None))
    if isinstance(surrogate, tuple) and len(surrogate) == 2:
        coef, intercept = surrogate
    weights = _numbers(coef)
    constants = _numbers(intercept)
    if len(constants) != 1:
        but = f"surrogate is {type(surrogate).__name__}"
        then = "Give one that was fitted, a result's .surrogate, or (coef, intercept)."
        raise InvalidTypeError(_PLOT, "a linear surrogate", but, then)
    if len(weights) != width or not np.isfinite([*weights, *constants]).all():
        but = f"surrogate is {type(surrogate).__name__} with {len(weights)}"
        then = "Fit it to the sample: it is linear in the scaled columns, sample.columns.names."
        raise InvalidValueError(_PLOT, f"{width} finite coefficients", but, then)
    return weights, float(constants[0])


def _numbers(given: Any) -> Floats:
    """Return the numbers in a value, (k,); empty if it holds none."""
    if given is None:
        return np.empty(0)
    try:
        return np.asarray(given, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        return np.empty(0)

"""The columns of a person's row together: raw rows and frames to coordinates, and back without loss."""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final, Self, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.digits import digits
from ceopt.formulations.space.dtypes import are_gaps, gaps_of, is_number_dtype, is_object_dtype
from ceopt.formulations.space.feature import (
    CODES,
    MISSING,
    Direction,
    Feature,
    Kind,
    Missing,
    changed,
    features_from_json,
    features_to_json,
)
from ceopt.formulations.space.infer import infer_features, scales, written_ends
from ceopt.formulations.space.labels import check_labels, relabelled, with_labels
from ceopt.formulations.space.limits import Limit
from ceopt.formulations.space.pitfalls import pitfalls
from ceopt.solvers.checks import Divisor, Instance, ListOf, Moderate, Refusal, is_number
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, counted, printable
from ceopt.solvers.whole_files import write_text

# ==== Entries of a row whose categories are 0/1 a level: how they are called, and where each column's stand ===========


def entry_names(features: Iterable[Feature]) -> tuple[str, ...]:
    """Return names (p,): a column's own, and "column=level" for each level of a category."""
    names: list[str] = []
    for feature in features:
        if feature.kind == "categorical":
            names += [f"{feature.name}={level}" for level in feature.levels]
        else:
            names.append(feature.name)
    return tuple(names)


def entry_places(features: Iterable[Feature]) -> tuple[slice, ...]:
    """Return where the entries of each column stand, (d,): one for each level of a category, else one."""
    places = []
    start = 0
    for feature in features:
        stop = start + 1
        if feature.kind == "categorical":
            stop = start + len(feature.levels)
        places.append(slice(start, stop))
        start = stop
    return tuple(places)


# ==== A point as a row of coordinates, and many rows as a raw frame, column by column =================================


def point_row(space: FeatureSpace, point: Mapping[str, float]) -> Coordinates:
    """Return coordinates by name as one row, shape (1, d)."""
    return np.array([[point[name] for name in space.names]])


def types_in(space: FeatureSpace) -> tuple[type, ...]:
    """Return the types of all levels and codes: a space with 0 and 1 equals one with False and True."""
    return space._types  # noqa: SLF001 - of the class below


def frame_of(space: FeatureSpace, points: NDArray[np.float64]) -> pd.DataFrame:
    """Return coordinates (n, d) as raw rows, or refuse those that ``space.frame`` refuses."""
    return space.frame([dict(zip(space.names, row, strict=True)) for row in points.tolist()])


def raw_frame(space: FeatureSpace, points: NDArray[np.float64]) -> pd.DataFrame:
    """Return coordinates (n, d) as raw rows: the frame that ``space.frame`` makes of them, column by column."""
    if space.is_continuous and not (points == MISSING).any():
        return pd.DataFrame(points, columns=_columns(space.names).view())
    return _raw_frame(space, points.T, None)


def _raw_frame(space: FeatureSpace, columns: NDArray[np.float64], index: pd.Index[Any] | None) -> pd.DataFrame:
    """Return coordinates, a row per column of the frame, (d, n), in raw units."""
    data: dict[str, Any] = {}
    for feature, coordinates in zip(space, columns, strict=True):
        values = feature.take(coordinates)
        # pandas 3 would read an object array of text as text
        data[feature.name] = pd.Series(values, dtype=object, index=index) if is_object_dtype(values.dtype) else values
    return pd.DataFrame(data, index=index)


@functools.lru_cache(maxsize=64)
def _columns(names: tuple[str, ...]) -> pd.Index[str]:
    """Return an index of names, which takes longer to make than the frame."""
    return pd.Index(list(names))


# ==== The warning about a space and its frames, shown at the line of the caller =======================================

#: Modules between a caller and the place that warns: ceopt's own, and those of decorators around its functions.
_BETWEEN: Final = frozenset({"ceopt", "contextlib", "functools"})


class SpaceWarning(UserWarning):
    """A column that a space may describe otherwise than it is meant, or that a frame has and its space has not.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore", SpaceWarning)  # to hear no more of it
    """


class RuleWarning(SpaceWarning):
    """People stand beyond a rule today that answers must meet, so that the rule alone may ask them to move.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore", RuleWarning)  # to hear of spaces alone
    """


def warn(sentence: str, kind: type[SpaceWarning] = SpaceWarning) -> None:
    """Warn with a sentence, at the line that has called into ceopt."""
    level = 1  # this function, as warnings counts
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in _BETWEEN:
        frame = frame.f_back
        level += 1
    warnings.warn(printable(sentence), kind, stacklevel=level)


# ==== A space as a table: text for people (:func:`to_text`), a frame for code (:func:`to_frame`) ======================

#: Fields of a feature that are the first columns of the frame; the others follow in their order, but for two.
_FIRST: Final = ("kind", "lower", "upper", "levels", "mutable", "direction")
_LEFT_OUT: Final = {"name", "categories"}
#: Those whose dtype pandas finds by itself; the others hold None or tuples.
_PLAIN: Final = {"kind", "lower", "upper", "mutable", "direction"}

#: Titles of the text's columns; those in ``_OPTIONAL`` are left out where no feature has such a thing.
_TITLES: Final = (
    "name", "kind", "range or levels", "missing", "fill", "may move", "at most", "step", "weight", "unit", "label",
    "guess",
)  # fmt: skip
_OPTIONAL: Final = {"missing", "fill", "at most", "step", "unit", "label"}
_MOVES: Final = {"any": "any", "increasing": "up", "decreasing": "down"}
_MISSING: Final = {False: "", True: "may be", "stays": "stays", "may_vanish": "may vanish"}
#: Characters of a list of levels, and of codes with what they mean, that are shown.
_WIDEST: Final = 48


def to_frame(features: Sequence[Feature]) -> pd.DataFrame:
    """Give one row per column, indexed by its name."""
    data = {}
    for word in dict.fromkeys((*_FIRST, *(field.name for field in fields(Feature) if field.init))):
        if word not in _LEFT_OUT:
            values = [getattr(feature, word) for feature in features]
            data[word] = pd.Series(values, dtype=None if word in _PLAIN else object)
    frame = pd.DataFrame(data)
    frame.index = pd.Index([feature.name for feature in features], name="name")
    return frame


def to_text(features: Sequence[Feature]) -> str:
    """Lay out what each column holds, how it may move and how it was guessed; ``~`` marks inferred bounds."""
    columns: list[list[str]] = []
    for title, *cells in zip(_TITLES, *map(_cells, features), strict=True):
        if title not in _OPTIONAL or any(cells):
            width = max(map(len, (title, *cells)))
            columns.append([text.ljust(width) for text in (title, "-" * width, *cells)])
    lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
    if any(_fill(feature) for feature in features):
        lines.append("fill: what a missing cell or a code moves that becomes an amount, if not 1; inf: it stays")
    if any("~" in _range(feature) for feature in features if not feature.is_finite):
        lines.append("~ bound seen in the data: it widens for the row asked about")
    return "\n".join(lines)


def _cells(feature: Feature) -> tuple[str, ...]:
    """Return a feature's line of the text, a cell for each title."""
    return (
        printable(feature.name),
        feature.kind,
        (_levels(feature) if feature.is_finite else _range(feature)) + _codes(feature),
        _MISSING[feature.missing],
        _fill(feature),
        _MOVES[feature.direction] if feature.mutable else "fixed",
        _limits(feature),
        "" if feature.step is None else digits(feature.step),
        _weight(feature),
        printable(feature.unit or ""),
        _label(feature),
        printable(feature.guess or "as given"),
    )


def _limits(feature: Feature) -> str:
    limits = {"down": feature.max_down, "up": feature.max_up}
    known = {side: limit for side, limit in limits.items() if limit is not None}
    return ", ".join(f"{side} {limit if isinstance(limit, str) else digits(limit)}" for side, limit in known.items())


def _weight(feature: Feature) -> str:
    down, up = feature.weights
    if down == up:
        return digits(up)
    return f"down {digits(down)}, up {digits(up)}"


def _levels(feature: Feature) -> str:
    mark = ", "
    if feature.kind == "ordinal":
        mark = " < "
    return _short(printable(mark.join(map(str, feature.levels))), len(feature.levels))


def _short(text: str, count: int) -> str:
    """Return a text about so many levels, cut off where it is long."""
    if len(text) <= _WIDEST:
        return text
    return f"{text[: _WIDEST - 14].rstrip()}... ({count} levels)"


def _label(feature: Feature) -> str:
    """Return what people call the column, and its levels."""
    levels = ", ".join(f"{level} = {text}" for level, text in feature.level_labels)
    return _short(printable(": ".join(filter(None, (feature.label, levels)))), len(feature.levels))


def _fill(feature: Feature) -> str:
    """Return what filling in costs, where that is not what it costs by itself."""
    if feature.fill == 1.0 or not (feature.missing or feature.codes):
        return ""
    return digits(feature.fill)


def _codes(feature: Feature) -> str:
    """Return the codes in brackets, with what they mean where that is said and not too long."""
    if not feature.codes:
        return ""
    shown = [str(code) if isinstance(code, str) else digits(code) for code in feature.codes]
    meant = [f"{code} {text}" for code, text in zip(shown, feature.code_labels, strict=False)]
    if meant and len(", ".join(meant)) <= _WIDEST:
        shown = meant
    in_reach = " in reach" if feature.codes_in_reach else ""
    return printable(f" (codes{in_reach} {', '.join(shown)})")


def _range(feature: Feature) -> str:
    lower = _bound(feature.lower, is_inferred=feature.lower_inferred)
    upper = _bound(feature.upper, is_inferred=feature.upper_inferred)
    if not lower and not upper:
        return "any number"
    return f"{lower} .. {upper}".strip()


def _bound(value: float, *, is_inferred: bool) -> str:
    if math.isinf(value):
        return ""
    if is_inferred:
        return "~" + digits(value)
    return digits(value)


# ==== The space =======================================================================================================

_NO_FEATURE = Refusal("Feature objects", 'Write Feature("name", kind=...).', "one is {value}", InvalidTypeError)
_FEATURES = ListOf(
    Refusal("a list of Feature objects", "Correct it.", error=InvalidTypeError),
    Instance(Feature, _NO_FEATURE),
    empty=Refusal("at least one feature", "Add one.", "there is none"),
)
_NAMES = ListOf(Refusal("column names, one by one or in a list", "Correct it.", error=InvalidTypeError))
#: So many columns are named where many have missing cells.
_SHOWN = 6
_ROWS = ListOf(Refusal("a list of rows, each a mapping of coordinates", "Correct it.", error=InvalidTypeError))


def require_space(who: str, space: Any) -> None:
    """Refuse what is no space."""
    if not isinstance(space, FeatureSpace):
        but = f"space is {type(space).__name__}"
        raise InvalidTypeError(who, "a FeatureSpace", but, "Make one: ceopt.FeatureSpace.infer(X_train).")


@final
class FeatureSpace:
    """What each column of a frame is and how it may move; immutable.

    Iterating gives the :class:`Feature` objects, ``space[name]`` one of them, ``name in space`` whether it is there.
    Frames and rows are matched by column name, never by position.

    Parameters
    ----------
    features
        One :class:`Feature` per column, in the order in which frames are returned.

    Raises
    ------
    InvalidValueError
        No feature, or a name twice.
    InvalidTypeError
        Something else than a :class:`Feature`.

    Examples
    --------
    >>> space = FeatureSpace([Feature("age", kind="integer", lower=18, upper=99), Feature("owner", kind="binary",
    ...     levels=(False, True))])
    >>> space.row({"owner": True, "age": 30})
    {'age': 30.0, 'owner': 1.0}
    """

    __slots__ = ("_by_name", "_features", "_gaps", "_hash", "_limits", "_types")
    _features: tuple[Feature, ...]
    _by_name: dict[str, Feature]
    _hash: int
    _types: tuple[type, ...]
    _limits: tuple[Any, Any, Any]
    _gaps: np.ndarray[Any, np.dtype[np.bool_]]

    def __init__(self, features: Iterable[Feature]) -> None:
        features = _FEATURES.require("FeatureSpace", "it", features)
        names = [feature.name for feature in features]
        by_name = dict(zip(names, features, strict=True))
        if len(by_name) < len(features):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidValueError("FeatureSpace", "each name once", f"{twice!r} is there twice", "Rename one.")
        check_labels(features)
        object.__setattr__(self, "_features", features)
        object.__setattr__(self, "_hash", hash(features))
        types = tuple(type(value) for feature in features for value in (*feature.levels, *feature.codes))
        object.__setattr__(self, "_types", types)
        object.__setattr__(self, "_by_name", by_name)
        limits = np.array([(*feature.coordinate_limits, feature.kind != "continuous") for feature in features])
        low, high, whole = np.split(limits, 3, axis=1)
        object.__setattr__(self, "_limits", (low, high, whole.astype(bool)))
        gaps = np.array([[feature.missing is not False] for feature in features])
        object.__setattr__(self, "_gaps", gaps)

    @classmethod
    def infer(
        cls,
        frame: pd.DataFrame,
        *,
        categorical: Iterable[str] | None = None,
        ordinal: Mapping[str, Sequence[Any]] | None = None,
        binary: Iterable[str] | None = None,
        integer: Iterable[str] | None = None,
        continuous: Iterable[str] | None = None,
        moves: Mapping[str, str] | None = None,
        steps: bool = True,
        codes: Mapping[str, Sequence[Any] | Mapping[Any, str]] | None = None,
        labels: Mapping[str, Any] | str | Path | None = None,
    ) -> Self:
        """Describe the columns of a frame; unnamed ones are guessed, and ``print(space)`` shows each guess.

        Bool and two-valued text -> binary; text, object, category -> categorical; ordered category -> ordinal;
        integers -> integer; floats -> continuous. Bounds are the least and greatest amount, levels those that occur,
        scales those of the amounts: missing cells and codes count for none of the three. Bounds found here widen for
        the row that is asked about, bounds set with :meth:`update` do not.

        A column with missing cells (None, NaN, NA, NaT) may be missing (see :class:`Feature`). A model that takes none
        is then refused, by the name of the column: ``space.update(name, missing=False)`` asks about whole rows alone.

        Floats of at most three decimals move by the step of their decimals (1, 0.1, 0.01 or 0.001), counted from the
        person's own value, so that answers come out as finely as the data. The optimum is then that of the grid. The
        step is a guess as bounds are: :func:`ceopt.verify` does not hold it against anybody.

        What is easily overlooked is pointed out, a :class:`ceopt.SpaceWarning` each with the line to write: names that
        look protected or that only grow with time, identifiers, numbers stored as text, codes that look like numbers,
        columns of one value. A column named here is not asked about again: one of a kind, not about its values, one
        of ``moves``, not about its moves, and a fixed one not at all. ``warnings.simplefilter("ignore",
        ceopt.SpaceWarning)`` silences all of them.

        Parameters
        ----------
        frame
            Raw columns, label left out, shape (n, d).
        categorical, binary, integer, continuous
            Names of columns of that kind. Those named continuous take any number.
        ordinal
            Name -> levels, lowest first.
        moves
            Name -> how the column may move, in the words of the printed space: "any", "up", "down" or "fixed".
        steps
            Whether floats of few decimals move by steps; False lets all of them take any number.
        codes
            Name -> values that are no amounts, a list or a mapping to what each means, as in :class:`Feature`. One that
            no cell holds is warned of.
        labels
            What people call the columns and their levels: a mapping from a name to a text, or to ``{"label": text,
            "levels": {level: text}}``; or the path of a .csv file with the columns name, level and label, a line each,
            in which a line without a level is about the column itself.

        Warns
        -----
        SpaceWarning
            A column that may be meant otherwise than it is described; a code that no cell holds.

        Raises
        ------
        InvalidTypeError
            Not a frame, or a column of datetimes, of complex numbers, of mixed types, or not of the kind named.
        InvalidValueError
            No rows, a column without any amount or with an infinite one, a column name twice; one column alone whose
            name is that of several; codes of a column that moves by any amount.
        UnknownNameError
            A named column that the frame does not have, a move that does not exist.
        UnreadableFileError
            A file of labels that cannot be read.
        """
        features = infer_features(
            frame,
            categorical=categorical,
            ordinal=ordinal,
            binary=binary,
            integer=integer,
            continuous=continuous,
            moves=moves,
            steps=steps,
            codes=codes,
        )
        for pitfall in pitfalls(frame, features, settled=frozenset(moves or ()), codes=codes or {}):
            warn(pitfall.sentence)
        return cls(with_labels(features, labels))

    def update(
        self,
        name: str | Sequence[str],
        *,
        kind: Kind | None = None,
        mutable: bool | None = None,
        direction: Direction | None = None,
        lower: float | None = None,
        upper: float | None = None,
        step: float | None = None,
        levels: Sequence[Any] | None = None,
        max_up: Limit | None = None,
        max_down: Limit | None = None,
        weight: float | tuple[float, float] | None = None,
        unit: str | None = None,
        missing: Missing | None = None,
        fill: float | None = None,
        codes: Sequence[Any] | Mapping[Any, str] | None = None,
        codes_in_reach: bool | None = None,
        label: str | None = None,
        level_labels: Mapping[Any, str] | None = None,
        data: pd.DataFrame | None = None,
    ) -> Self:
        """Make a space with some columns described anew; ``None`` keeps what is there, -inf and inf remove bounds.

        Parameters
        ----------
        name
            The column, or a list of several that all become so.
        kind
            Another kind. Numbers become levels only with ``levels`` (or, as binary, with bounds one apart); levels
            become numbers only where they are numbers. A step and bounds are dropped where the new kind has none,
            limits where it counts other things, and a step that was seen in the data where a kind of numbers is named:
            "continuous" takes any number.
        missing, fill, codes, codes_in_reach
            As in :class:`Feature`.
        mutable, direction, lower, upper, step, levels, max_up, max_down, weight, unit, label, level_labels
            As in :class:`Feature`. Bounds set here are rules: who stands outside may stay or come nearer. ``levels``
            replaces what may be held: of an inferred column a choice or new order of its levels, of one made by hand
            any. "" removes a label and {} those of levels, infinity a limit; a level that goes takes its label along.
        data
            Rows from which the scales (mad, std, range) of numbers are counted anew, over their amounts: cells that are
            missing or hold a code do not count; with ``codes`` also bounds that were seen in data, which stay such.
            None: the scales stay, and those of :meth:`infer` count every value.

        Raises
        ------
        UnknownNameError
            No such column, kind or direction.
        InvalidTypeError
            Data that is no frame, or a column of it that holds no numbers.
        InvalidValueError
            Contradictory bounds, levels that the column does not have, a change of kind that has no meaning; data
            without an amount.

        Examples
        --------
        >>> people = pd.DataFrame({"late": [-9, -9, -9, 0, 1, 2, 4]})
        >>> space = FeatureSpace.infer(people, integer=["late"])
        >>> space["late"].range, space.update("late", codes=[-9], data=people)["late"].range
        (13.0, 4.0)
        """
        if data is not None and not isinstance(data, pd.DataFrame):
            but = f"data is {type(data).__name__}"
            raise InvalidTypeError("FeatureSpace.update", "a DataFrame as data", but, "Name its columns.")
        new: dict[str, Feature] = {}
        for one in _names("FeatureSpace.update", (name,)):
            new[one] = changed(
                self[one],
                kind=kind,
                mutable=mutable,
                direction=direction,
                lower=lower,
                upper=upper,
                step=step,
                levels=levels,
                max_up=max_up,
                max_down=max_down,
                weight=weight,
                unit=unit,
                missing=missing,
                fill=fill,
                codes=codes if data is None or codes is None else (),
                codes_in_reach=codes_in_reach,
            )
            if data is not None:
                if one not in data.columns:
                    raise UnknownNameError.among("FeatureSpace.update", "column of data", one, data.columns)
                if codes is not None:
                    new[one] = _with_codes(new[one], codes, data[one])
                new[one] = scaled_by(new[one], data[one])
            new[one] = relabelled(self[one], new[one], label, level_labels)
        _warn_of_codes_that_move(missing, new)
        _warn_of_less_than_a_step("max_up", max_up, new)
        _warn_of_less_than_a_step("max_down", max_down, new)
        return type(self)(new.get(feature.name, feature) for feature in self._features)

    def fix(self, *names: str | Sequence[str]) -> Self:
        """Make a space in which some columns, given one by one or as a list, may not change.

        Raises
        ------
        UnknownNameError
            No such column.

        Examples
        --------
        >>> space = FeatureSpace([Feature(name, kind="integer", lower=0) for name in ("age", "debt", "income")])
        >>> [feature.mutable for feature in space.fix("age", "debt")]
        [False, False, True]
        """
        return self.update(_names("FeatureSpace.fix", names), mutable=False)

    def only(self, *names: str | Sequence[str]) -> Self:
        """Make a space in which these columns may change, also if they were fixed before, and no others may.

        Raises
        ------
        UnknownNameError
            No such column.
        InvalidValueError
            No column at all.

        Examples
        --------
        >>> space = FeatureSpace([Feature(name, kind="integer", lower=0) for name in ("age", "debt", "income")])
        >>> [feature.mutable for feature in space.only(["debt", "income"])]
        [False, True, True]
        """
        free = _names("FeatureSpace.only", names)
        if not free:
            raise InvalidValueError("FeatureSpace.only", "a column that may change", "it got none", "Name some.")
        return self.update(free, mutable=True).fix([name for name in self.names if name not in free])

    @property
    def is_continuous(self) -> bool:
        """Whether every column is continuous: raw rows are then their own coordinates."""
        return all(feature.kind == "continuous" for feature in self)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(self._by_name)

    def __getitem__(self, name: str) -> Feature:
        try:
            return self._by_name[name]
        except (KeyError, TypeError):
            raise UnknownNameError.among("FeatureSpace", "column", name, self._by_name) from None

    def __len__(self) -> int:
        return len(self._features)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self._features)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._by_name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeatureSpace):
            return NotImplemented
        return self._features == other._features

    def __hash__(self) -> int:
        return self._hash

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"FeatureSpace is immutable, so {name} cannot be set. Use update, which makes a new one.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"FeatureSpace is immutable, so {name} cannot be deleted.")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._features,)

    def __str__(self) -> str:
        return to_text(self._features)

    def __repr__(self) -> str:
        return to_text(self._features)

    def _repr_html_(self) -> str:
        return printable(self.to_frame().to_html(), keep="\n")

    def to_frame(self) -> pd.DataFrame:
        """One row per column, indexed by its name: kind, lower, upper, levels, mutable, direction, step, ..., guess."""
        return to_frame(self._features)

    def to_json(self, path: str | Path | None = None) -> str:
        """Write the space as JSON of a fixed version (schema.json beside this file); also to ``path`` if given."""
        text = features_to_json(self._features)
        if path is not None:
            write_text("FeatureSpace.to_json", path, text)
        return text

    @classmethod
    def from_json(cls, text_or_path: str | Path) -> Self:
        """Read what :meth:`to_json` wrote, without loss.

        Raises
        ------
        UnreadableFileError
            No such file, or no JSON in it.
        InvalidValueError
            JSON of another version or shape; the message says where.
        """
        return cls(features_from_json(text_or_path))

    def row(self, raw: pd.Series[Any] | Mapping[str, Any] | pd.DataFrame) -> dict[str, float]:
        """Coordinates by name of one raw row (Series, dict or one-row frame), after every check of it.

        Raises
        ------
        InvalidTypeError
            ``raw`` is no row, or a value is of the wrong type.
        InvalidValueError
            A missing column or value, NaN, an infinite value, an unseen level, a number beyond one of the codes.
        UnknownNameError
            A column that the space does not have.
        """
        values = row_mapping(raw)
        if len(values) != len(self._by_name) or values.keys() != self._by_name.keys():
            self.check_names("FeatureSpace.row", values)
        coordinates = {}
        for name, feature in self._by_name.items():
            coordinate = feature.to_coordinate(values[name])
            if feature.is_label(coordinate):
                coordinates[name] = coordinate
                continue
            least, greatest = feature.amounts
            if not least <= coordinate <= greatest:
                raise InvalidValueError(
                    feature.who,
                    "a factual value that lies beyond none of its codes",
                    f"its value is {coordinate!r}",
                    "Name it as a code too with space.update, or correct the row.",
                )
            coordinates[name] = coordinate
        return coordinates

    def require_moderate(self, point: Mapping[str, float]) -> None:
        """Refuse a row's numbers, and bounds, that are too large or too near for a program to calculate with."""
        for name, feature in self._by_name.items():
            if point[name] != MISSING:
                Moderate().require(feature.who, "its value", point[name])
        self.require_moderate_bounds()

    def require_moderate_bounds(self) -> None:
        """Refuse bounds that are too large or too near for a program to calculate with."""
        for feature in self:
            for word in ("lower", "upper"):
                Moderate("Use -inf or inf for none.").require(feature.who, word, getattr(feature, word))
            Divisor().require(feature.who, "upper less lower", min(feature.upper - feature.lower, 1.0))

    def frame(self, rows: Sequence[Mapping[str, float]], index: Any = None) -> pd.DataFrame:
        """Raw rows, shape (n, d), of coordinates by name: original units, dtypes and categories, columns in order.

        Exact: a continuous coordinate comes back as the same float64, a rank as its level.

        Raises
        ------
        InvalidValueError
            A row lacks a column, or a coordinate is not finite, not whole where it must be, or no rank.
        """
        rows = _ROWS.require("FeatureSpace.frame", "rows", rows)
        for row in rows:
            if not isinstance(row, Mapping):
                raise InvalidTypeError(
                    "FeatureSpace.frame", "coordinates by name as row", f"one is {row!r}", "Give what row returns."
                )
        index = pd.RangeIndex(len(rows)) if index is None else pd.Index(index)
        try:
            matrix = np.array([[row[name] for row in rows] for name in self._by_name], dtype=np.float64)
        except KeyError as error:
            raise InvalidValueError(
                "FeatureSpace.frame", "every column in every row", f"{error.args[0]!r} is missing", "Add it."
            ) from None
        except (TypeError, ValueError, OverflowError):
            for feature in self:
                for row in rows:
                    feature.from_coordinate(row[feature.name])
            raise
        self._check_coordinates(matrix)
        return _raw_frame(self, matrix, index)

    def _check_coordinates(self, matrix: np.ndarray[Any, np.dtype[np.float64]]) -> None:
        low, high, whole = self._limits
        with np.errstate(invalid="ignore"):
            good = np.isfinite(matrix) & (matrix >= low) & (matrix <= high) & (~whole | (matrix == np.floor(matrix)))
        good |= self._gaps & (matrix == MISSING)
        for place, column in np.argwhere(~good):
            self._features[place].from_coordinate(matrix[place, column])

    def coordinates(self, frame: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Coordinates of many raw rows, shape (n, d); checked as :meth:`row`, except for what lies beyond a code.

        Raises
        ------
        InvalidTypeError, InvalidValueError, UnknownNameError
            As :meth:`row`.
        """
        if not isinstance(frame, pd.DataFrame):
            raise InvalidTypeError(
                "FeatureSpace.coordinates", "a DataFrame", f"it got {type(frame).__name__}", "Name its columns."
            )
        check_unique("FeatureSpace.coordinates", frame.columns)
        self.check_names("FeatureSpace.coordinates", dict.fromkeys(frame.columns))
        out = np.empty((len(frame), len(self)), dtype=np.float64)
        for place, (name, feature) in enumerate(self._by_name.items()):
            out[:, place] = column_coordinates(feature, frame[name])
        return out

    def check_names(self, who: str, values: Mapping[Any, Any]) -> None:
        """Refuse, in the name of ``who``, values by column that lack a column or have an unknown one."""
        missing = [name for name in self._by_name if name not in values]
        extra = [name for name in values if name not in self._by_name]
        if missing:
            listed = ", ".join(map(repr, missing))
            hint = f", and leave out {', '.join(map(repr, extra))}, which the space does not know" if extra else ""
            raise InvalidValueError(who, "every column of the space", f"{listed} is missing", f"Add it{hint}.")
        if extra:  # all others are there: none of them can be meant
            raise self.unknown_column(who, extra[0])

    def unknown_column(self, who: str, name: object) -> UnknownNameError:
        """Return the refusal of a column beyond those of the space; only a close one can be meant, as all are there."""
        error = UnknownNameError.among(who, "column", name, self._by_name, cutoff=0.8)
        return UnknownNameError(
            f"{error} Leave {name!r} out, as frame[list(space.names)] does, or describe it in the space."
        )


def _warn_of_codes_that_move(missing: Missing | None, new: Mapping[str, Feature]) -> None:
    """Warn where a missing cell is said to stay, of a column whose codes may still become amounts."""
    moving = [name for name, feature in new.items() if feature.codes and math.isfinite(feature.fill)]
    if missing == "stays" and moving:
        warn(
            f"missing='stays' keeps cells that are missing; codes of {_quoted(moving)} may still become amounts. "
            "Write fill=math.inf to keep both."
        )


def _warn_of_less_than_a_step(word: str, limit: Limit | None, new: Mapping[str, Feature]) -> None:
    """Warn of a limit in numbers that is shorter than the step of a column, which allows no move."""
    if limit is None or isinstance(limit, str):
        return
    share = f' Write {word}="{limit * 100:g}%" for a share of its value.' if limit < 1 else ""
    for name, feature in new.items():
        step = feature.spacing
        if step is not None and 0 < limit < step:
            warn(f"{word}={limit:g} allows no move of column {name!r}, which moves in steps of {step:g}.{share}")


def _names(who: str, given: Sequence[Any]) -> tuple[Any, ...]:
    """Return column names of which some were given in lists, in order."""
    names: list[Any] = []
    for part in given:
        if isinstance(part, str) or not hasattr(part, "__iter__"):
            names.append(part)
        else:
            names += _NAMES.require(who, "names", part)
    return tuple(names)


Coordinates = np.ndarray[Any, np.dtype[np.float64]]


def column_coordinates(feature: Feature, column: pd.Series[Any]) -> Coordinates:
    """Give ``feature.to_coordinate`` of each value of a column, shape (n,), with the same checks.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As :meth:`Feature.to_coordinate`, for the first value at fault.
    """
    if feature.missing is not False:
        is_missing = are_gaps(column)
        if is_missing.any():
            coordinates = np.full(len(column), MISSING)
            coordinates[~is_missing] = column_coordinates(feature, column[~is_missing])
            return coordinates
    if feature.is_finite:
        return _ranks(feature, column)
    dtype = column.dtype
    if not len(column):
        return np.empty(0, dtype=np.float64)
    if is_object_dtype(dtype) or isinstance(dtype, pd.CategoricalDtype):
        return np.array(list(map(feature.to_coordinate, column.tolist())), dtype=np.float64)
    if not is_number_dtype(dtype):
        raise InvalidTypeError(feature.who, "numbers", f"its dtype is {dtype}", "Convert the column in the frame.")
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    suspect = ~np.isfinite(values)
    if dtype.kind in "iu":
        suspect |= np.abs(values) >= 2.0**53
    if feature.kind == "integer":
        low, high = feature.limits
        with np.errstate(invalid="ignore"):
            suspect |= (values != np.floor(values)) | (values < low) | (values > high)
        values = values + 0.0  # -0.0 is the whole number 0
    for place in np.flatnonzero(suspect):
        values[place] = feature.to_coordinate(column.iloc[place])  # raises, or is exact after all
    return values


def scaled_by(feature: Feature, column: pd.Series[Any]) -> Feature:
    """Return a column with the scales of its amounts in data: missing cells and codes do not count; levels have none.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        A value that the column cannot hold, or no amount.
    """
    if feature.is_finite:
        return feature
    spread = scales(_amounts(feature, column, feature.codes))
    return replace(feature, mad=spread["mad"], std=spread["std"], range=spread["range"])


def _with_codes(feature: Feature, codes: Sequence[Any] | Mapping[Any, str], column: pd.Series[Any]) -> Feature:
    """Return a column with codes, and with the bounds that were seen in data as those of the amounts in data."""
    if feature.is_finite:
        return changed(feature, codes=codes)
    listed = CODES.require(feature.who, "codes", list(codes) if isinstance(codes, Mapping) else codes)
    amounts = _amounts(feature, column, list(filter(is_number, listed)))
    ends = {"lower": float(amounts.min()), "upper": float(amounts.max())}
    if feature.step is not None:
        ends |= written_ends(ends["lower"], ends["upper"], feature.decimals)
    if not feature.lower_inferred:
        ends["lower"] = feature.lower
    if not feature.upper_inferred:
        ends["upper"] = feature.upper
    return replace(changed(feature, codes=codes), lower=ends["lower"], upper=ends["upper"])


def _amounts(feature: Feature, column: pd.Series[Any], codes: Sequence[Any]) -> Coordinates:
    """Return the numbers of a column that are no codes, or refuse one that has none."""
    coordinates = column_coordinates(feature, column[~are_gaps(column)])
    amounts = coordinates[~np.isin(coordinates, np.array(codes, dtype=np.float64))]
    if not len(amounts):
        but = "each cell is missing or holds a code"
        raise InvalidValueError(feature.who, "an amount in data", but, "Give rows that have one.")
    return amounts


def on_codes(features: Iterable[Feature], coordinates: Coordinates) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which rows of coordinates (n, d) hold a code of their number columns, (n,)."""
    is_coded = np.zeros(len(coordinates), dtype=bool)
    for j, feature in enumerate(features):
        if not feature.is_finite:
            is_coded |= feature.are_codes(coordinates[:, j])
    return is_coded


def _ranks(feature: Feature, column: pd.Series[Any]) -> Coordinates:
    try:
        codes, values = pd.factorize(column, use_na_sentinel=True)
    except TypeError:  # a value that cannot be looked up, such as a list, is no level
        for value in column.tolist():
            feature.rank(value)
        raise
    if (codes < 0).any():
        feature.rank(column.iloc[int(np.flatnonzero(codes < 0)[0])])
    return np.array(list(map(feature.rank, values.tolist())), dtype=np.float64)[codes]


def row_mapping(raw: Any, who: str = "FeatureSpace.row") -> Mapping[Any, Any]:
    """Give one raw row (Series, dict or one-row frame) as values by name; errors name ``who``.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        Something else, several rows, or a name twice.
    """
    if isinstance(raw, pd.Series):
        check_unique(who, raw.index)
        return dict(zip(raw.index.tolist(), raw.tolist(), strict=True))
    if isinstance(raw, pd.DataFrame):
        if len(raw) != 1:
            raise InvalidValueError(
                who, "a frame of one row", f"it has {len(raw)} rows", "Take one, as by frame.iloc[[0]]."
            )
        check_unique(who, raw.columns)
        return dict(zip(raw.columns.tolist(), raw.iloc[0].tolist(), strict=True))
    if isinstance(raw, Mapping):
        return raw
    raise InvalidTypeError(
        who, "a Series, a dict or a one-row frame", f"it got {type(raw).__name__}", "Name its columns."
    )


def check_unique(who: str, names: Any) -> None:
    """Refuse an index that has a name twice."""
    if not names.is_unique:
        twice = names[names.duplicated()][0]
        raise InvalidValueError(who, "each column once", f"{twice!r} is there twice", "Remove one.")


# ---- the columns of rows and frames that a space knows; one warning names all others ---------------------------------
def known_part(space: FeatureSpace, frame: Any) -> Any:
    """Return a frame without the columns that the space does not know; itself where it has none, or lacks one.

    What lacks a column is refused where it is used: one too many may be a misspelling of the one that is missing. So is
    what is no frame.
    """
    if isinstance(frame, pd.DataFrame) and unknown_columns(space, frame):
        return frame[list(space.names)]
    return frame


def known_row(who: str, space: FeatureSpace, row: Any) -> dict[str, Any]:
    """Return one raw row by column, without what the space does not know.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        Something else than a Series, a dict or a one-row frame; several rows, a name twice, a column that is missing.
    """
    values = row_mapping(row, who)
    known = {name: values[name] for name in space.names if name in values}
    if len(known) < len(space):
        space.check_names(who, values)
    return known


def unknown_columns(space: FeatureSpace, given: Any) -> list[Any]:
    """Return the columns that the space does not know, of a frame, a Series or a mapping that lacks none of its own."""
    if isinstance(given, pd.DataFrame):
        names: Any = given.columns.tolist()
    elif isinstance(given, pd.Series):
        names = given.index.tolist()
    elif isinstance(given, Mapping):
        names = list(given)
    else:
        return []
    if not set(space.names) <= set(names):
        return []
    return [name for name in names if name not in space]


def warn_of(who: str, space: FeatureSpace, **given: Any) -> None:
    """Warn, once for all that a call was given, of the columns that it leaves out."""
    extra: dict[Any, None] = {}
    holders = []
    for word, part in given.items():
        unknown = unknown_columns(space, part)
        if unknown:
            holders.append(word)
            extra.update(dict.fromkeys(unknown))
    if extra:
        names = ", ".join(map(repr, extra))
        warn(
            f"{who} leaves out {names} of {' and '.join(holders)}, which the space does not know. "
            "Write frame[list(space.names)] for what you give, or describe such a column in the space."
        )


# ---- cells that are missing or hold codes, where they can but stay ---------------------------------------------------
def with_labels_kept(space: FeatureSpace) -> FeatureSpace:
    """Return the space in which cells that are missing or hold codes stay so, and no others become so."""
    features = []
    for feature in space:
        missing: Missing = "stays" if feature.missing else False
        features.append(replace(feature, missing=missing, fill=math.inf, codes_in_reach=False))
    return FeatureSpace(features)


# ---- rows of data with missing cells: left out, with one warning that counts them ------------------------------------
def has_every_cell(
    space: FeatureSpace | None, frame: pd.DataFrame, *, but_gaps: bool = False
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which rows of a frame lack no cell of the columns of the space, or of any column without a space, (n,).

    With ``but_gaps`` a cell that may be missing, as the space says, does not count.
    """
    return np.asarray(~_are_missing(space, frame, but_gaps=but_gaps).to_numpy().any(axis=1))


def _are_missing(space: FeatureSpace | None, frame: pd.DataFrame, *, but_gaps: bool) -> pd.DataFrame:
    """Return which cells are missing, of the columns that the space knows, or of all without a space."""
    if space is not None:
        counted_ones = [feature.name for feature in space if not (but_gaps and feature.missing)]
        frame = frame[[name for name in counted_ones if name in frame.columns]]
    return pd.DataFrame(gaps_of(frame), index=frame.index, columns=frame.columns)


def usable_part(space: FeatureSpace, data: Any) -> Any:
    """Return the known part of data without the rows that lack a cell that may not be missing, as the space says.

    Itself where there is no such row, or where it is no frame.
    """
    data = known_part(space, data)
    if not isinstance(data, pd.DataFrame):
        return data
    is_usable = has_every_cell(space, data, but_gaps=True)
    if is_usable.all():
        return data
    return data[is_usable]


def complete_rows(who: str, space: FeatureSpace, data: Any, word: str = "data") -> Any:
    """Return data without the rows that lack a cell of the space's columns, after a warning that counts them.

    Raises
    ------
    InvalidValueError
        No row is whole.
    """
    return taken(data, rows_to_keep(who, space, data, word=word))


def rows_to_keep(
    who: str, space: FeatureSpace | None, table: Any, *, word: str, frame: pd.DataFrame | None = None, **beside: Any
) -> np.ndarray[Any, np.dtype[np.bool_]] | None:
    """Return which rows of a table lack no cell, (n,), after a warning that counts the others; None for all.

    What is no table, and what has another number of entries beside it than rows, keeps all: it is refused where it is
    used.

    Parameters
    ----------
    who, word
        Who was given the table, and as which argument.
    space
        The columns that count; None: all.
    table
        A frame, or what ``frame`` holds the cells of, such as an array.
    **beside
        What was given with an entry for each row, such as labels, by argument; None for what was not.

    Raises
    ------
    InvalidValueError
        No row is whole.
    """
    if isinstance(table, pd.DataFrame):
        frame = table
    given = [part for part in beside.values() if part is not None]
    if frame is None or any(_length(part) != len(frame) for part in given):
        return None
    named: dict[str, Any] = {word: frame}
    warn_of_gaps(who, space, lines={word: line_of_gaps(space, table, word=word, **beside)}, **named)
    is_whole = has_every_cell(space, frame)
    if is_whole.all():
        return None
    return is_whole


def require_every_label(who: str, y: Any) -> None:
    """Refuse labels of which one is missing, by its row."""
    labels = np.asarray(y, dtype=object)  # a NaN among texts would else become one
    absent = np.flatnonzero(pd.isna(labels))
    if len(absent):
        raise InvalidValueError(who, "a label of each row", f"y has none in row {absent[0]}", "Leave such rows out.")


def _length(part: Any) -> int | None:
    """Return how many entries something has; None of what has none."""
    try:
        return len(part)
    except TypeError:
        return None


def taken(part: Any, is_kept: np.ndarray[Any, np.dtype[np.bool_]] | None) -> Any:
    """Return the rows or entries that are kept; all of them for None, and None as it is."""
    if is_kept is None or part is None:
        return part
    if isinstance(part, pd.DataFrame | pd.Series | np.ndarray):
        return part[is_kept]
    return [entry for entry, is_one in zip(part, is_kept.tolist(), strict=True) if is_one]


def cells_of(rows: Any) -> pd.DataFrame | None:
    """Return the cells of an array, or a list of lists, as a frame; None of what has no two dimensions."""
    try:
        array = np.asarray(rows, dtype=None if isinstance(rows, np.ndarray) else object)
    except ValueError:
        return None
    if array.ndim != 2:
        return None
    return pd.DataFrame(array)


def line_of_gaps(space: FeatureSpace | None, table: Any, *, word: str, but_gaps: bool = False, **beside: Any) -> str:
    """Return the line that leaves out the rows of a table that lack a cell, with what stands beside them."""
    is_frame = isinstance(table, pd.DataFrame)
    beside = {name: part for name, part in beside.items() if part is not None}
    known = word
    subset = ""
    if space is not None:
        names = "list(space.names)"
        if but_gaps and any(feature.missing for feature in space):
            names = "[feature.name for feature in space if not feature.missing]"
        known = f"{word}[{names}]"
        subset = f"subset={names}"
    if is_frame and not beside:
        return f"{word} = {word}.dropna({subset})"
    keep = f"~pandas.isna({word}).any(axis=1)"
    if is_frame:
        keep = f"{known}.notna().all(axis=1).to_numpy()"
    steps = [f"keep = {keep}"]
    for name, part in {word: table, **beside}.items():
        own = name if isinstance(part, pd.DataFrame | pd.Series | np.ndarray) else f"numpy.asarray({name})"
        steps.append(f"{name} = {own}[keep]")
    return "; ".join(steps)


def _quoted(names: Iterable[Any]) -> str:
    """Return some names in quotes, the first of them where they are many; of columns without names the numbers."""
    shown = [repr(name) if isinstance(name, str) else f"column {name}" for name in names]
    text = ", ".join(shown[:_SHOWN])
    if len(shown) > _SHOWN:
        text += f" and {len(shown) - _SHOWN} more columns"
    return text


def warn_of_gaps(
    who: str,
    space: FeatureSpace | None,
    *,
    but_gaps: bool = False,
    lines: Mapping[str, str] | None = None,
    **given: Any,
) -> None:
    """Warn, once for all that a call was given, of the rows of data that it leaves out, as cells of theirs are missing.

    With ``but_gaps`` rows stay that lack what may be missing, as the space says. ``lines`` has the lines to write, by
    argument, where a row does not stand alone.

    Raises
    ------
    InvalidValueError
        No row of some data is whole.
    """
    counts = []
    columns: dict[Any, None] = {}
    written = []
    for word, part in given.items():
        if not isinstance(part, pd.DataFrame):
            continue
        missing = _are_missing(space, part, but_gaps=but_gaps)
        n_left_out = int(missing.to_numpy().any(axis=1).sum())
        if not n_left_out:
            continue
        gaps = missing.columns[missing.any().to_numpy()].tolist()
        if n_left_out == len(part):
            but = f"each of its {counted(len(part), 'row')} lacks some, in {_quoted(gaps)}"
            raise InvalidValueError(who, f"rows of {word} without missing cells", but, "Fill them in first.")
        counts.append(f"{n_left_out:,} of {len(part):,} rows of {word}")
        columns.update(dict.fromkeys(gaps))
        written.append((lines or {}).get(word) or line_of_gaps(space, part, word=word, but_gaps=but_gaps))
    if counts:
        link = "; " if any(";" in line for line in written) else " and "
        warn(
            f"{who} leaves out {' and '.join(counts)}, in which cells of {_quoted(columns)} are missing. "
            f"Write {link.join(written)}, or fill them in."
        )

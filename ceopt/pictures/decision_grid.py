"""What a model decides over two columns, on a grid of legal values, all other columns held."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.checking.answer_check import ModelOracle
from ceopt.checking.functions import FunctionOracle, FunctionTarget, model_behind
from ceopt.formulations.predictors.read import is_function, open_model
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.reachable import Interval
from ceopt.formulations.space.space import FeatureSpace, raw_frame
from ceopt.formulations.targets import parse_target

__all__ = ["DecisionGrid", "decisions"]

Floats: TypeAlias = NDArray[np.float64]

#: Values a side beside those of the points; and levels, beyond which only the first and those of the points are there.
_VALUES: Final = 64
_LEVELS: Final = 20
#: How far the grid goes beyond the points: a share of their distance, and scales of the column.
_BEYOND, _SCALES = 0.5, 1.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class DecisionGrid:
    """A grid and what is said of it.

    Parameters
    ----------
    values
        Coordinates along either column, ascending.
    levels
        Texts of these where they are levels; None of numbers.
    said
        What is said of each pair, of shape (values of the second column, values of the first).
    has_labels
        Whether that is a label (or whether the target is met), and not a number of which there may be any.
    is_target
        Whether it is whether the target is met.
    points
        Places of the given points, (k, 2).
    fits
        Of each point, whether its other columns are those that are held.
    """

    values: tuple[Floats, Floats]
    levels: tuple[tuple[str, ...] | None, tuple[str, ...] | None]
    said: NDArray[Any]
    has_labels: bool
    is_target: bool
    points: Floats
    fits: tuple[bool, ...]


def decisions(
    space: FeatureSpace, model: Any, target: Any, pair: tuple[str, str], *, held: Floats, points: Sequence[Floats]
) -> DecisionGrid:
    """Ask a model about all pairs of legal values near some points.

    Parameters
    ----------
    space
        The columns.
    model, target
        As for :func:`ceopt.verify`; the target may be None.
    pair
        The two columns.
    held
        Coordinates (d,) of the row whose other columns are taken.
    points
        Coordinates (d,) of rows; the first is the one from which steps are counted.
    """
    places = [space.names.index(name) for name in pair]
    marks = np.array(points)
    first, second = (_values(space[name], marks[:, place]) for name, place in zip(pair, places, strict=True))
    rows = np.tile(held, (len(first) * len(second), 1))
    rows[:, places[0]] = np.tile(first, len(second))
    rows[:, places[1]] = np.repeat(second, len(first))
    said, has_labels = _asked(space, model, target, rows)
    others = np.delete(marks, places, axis=1)
    fits = (others == np.delete(held, places)).all(axis=1)
    return DecisionGrid(
        values=(first, second),
        levels=(_levels(space[pair[0]], first), _levels(space[pair[1]], second)),
        said=said.reshape(len(second), len(first)),
        has_labels=has_labels,
        is_target=target is not None,
        points=marks[:, places],
        fits=tuple(fits.tolist()),
    )


def _asked(space: FeatureSpace, model: Any, target: Any, rows: Floats) -> tuple[NDArray[Any], bool]:
    """Return what is said of rows of coordinates, and whether it is labels."""
    opened = model_behind(open_model(model), target)
    frame = raw_frame(space, rows)
    if is_function(opened):
        function = FunctionOracle(opened, space)
        if target is not None:
            return function.meets(frame, FunctionTarget(target)), True
        said = function.predict(frame)
        return said, said.dtype.kind != "f"
    oracle = ModelOracle(opened, space)
    if target is not None:
        return oracle.meets(frame, parse_target(target, oracle.labels)), True
    said = oracle.predict(frame)
    return said, oracle.labels is not None or said.dtype.kind != "f"


def _values(feature: Feature, marks: Floats) -> Floats:
    """Return legal coordinates of a column near some points, those of the points among them."""
    if feature.is_finite:
        count = len(feature.levels)
        return np.unique([*range(min(count, _LEVELS)), *marks])
    low, high = float(marks.min()), float(marks.max())
    beyond = max(_BEYOND * (high - low), _SCALES * feature.scale("mad"))
    least, greatest = feature.coordinate_limits
    interval = Interval(
        max(min(feature.lower, low), least), min(max(feature.upper, high), greatest), feature.spacing, float(marks[0])
    )
    wanted = np.linspace(max(low - beyond, interval.lower), min(high + beyond, interval.upper), _VALUES)
    legal = [interval.floor(value) for value in wanted.tolist()]
    return np.unique([value for value in [*legal, *marks.tolist()] if math.isfinite(value)])


def _levels(feature: Feature, values: Floats) -> tuple[str, ...] | None:
    if not feature.is_finite:
        return None
    return tuple(str(feature.levels[int(value)]) for value in values)

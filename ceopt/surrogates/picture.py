"""What the picture of a sample shows: two columns of numbers in raw units, and a surrogate's line among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.base.libraries import require_library
from ceopt.pictures.surface import Plane, draw_sample
from ceopt.solvers.checks import ListOf, Refusal
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.surrogates.scaled_columns import ScaledColumns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ceopt.formulations.space.feature import Feature

__all__ = ["PicturedSample", "plot_sample"]

_WHO: Final = "BoundarySample.plot"
_COLUMNS: Final = ListOf(
    Refusal("a list of two names as columns", 'Write columns=["income", "age"].', error=InvalidTypeError), texts=True
)


class PicturedSample(Protocol):
    """What the picture shows of a :class:`~ceopt.surrogates.BoundarySample`."""

    @property
    def points(self) -> pd.DataFrame:
        """The rows."""

    @property
    def favourable(self) -> NDArray[np.bool_]:
        """What the model says of them."""

    @property
    def boundary(self) -> pd.Series[Any]:
        """The point about which they lie."""

    @property
    def columns(self) -> ScaledColumns:
        """The scaled columns."""


def plot_sample(sample: PicturedSample, columns: Any, *, surrogate: Any, ax: Any, dark: bool) -> Axes:
    """Draw what :meth:`ceopt.surrogates.BoundarySample.plot` is asked for; see there."""
    require_library(_WHO, "matplotlib")
    pair = _pair(sample.columns, columns)
    names = (_named(pair[0]), _named(pair[1]))
    first, second = pair[0].name, pair[1].name
    points = sample.points[[first, second]].to_numpy(dtype=np.float64)
    boundary = (float(sample.boundary[first]), float(sample.boundary[second]))
    plane = None
    if surrogate is not None:
        plane = _plane(sample, surrogate, (first, second), boundary)
    whole = (pair[0].kind == "integer", pair[1].kind == "integer")
    return draw_sample(_WHO, points, sample.favourable, boundary, plane, names, whole=whole, ax=ax, dark=dark)


def _pair(scaled: ScaledColumns, columns: Any) -> tuple[Feature, Feature]:
    space = scaled.space
    given = _COLUMNS.require(_WHO, "columns", columns)
    for name in given:
        if name not in space:
            raise UnknownNameError.among(_WHO, "column", name, space.names)
        if space[name].is_finite:
            but = f"{name!r} is {space[name].kind}"
            numbers = [feature.name for feature in space if not feature.is_finite]
            raise InvalidValueError(_WHO, "columns of numbers", but, f"Choose from: {', '.join(numbers)}.")
    if len(set(given)) != 2 or len(given) != 2:
        but = f"columns are {', '.join(map(repr, given))}"
        raise InvalidValueError(_WHO, "two columns", but, 'Write columns=["income", "age"].')
    return space[given[0]], space[given[1]]


def _named(feature: Feature) -> str:
    if feature.unit is None:
        return feature.name
    return f"{feature.name} ({feature.unit})"


def _plane(sample: PicturedSample, surrogate: Any, pair: tuple[str, str], boundary: tuple[float, float]) -> Plane:
    """Return the surrogate over the two columns in raw units, all others as at the boundary point."""
    scaled = sample.columns
    coef, intercept = _linear(surrogate, len(scaled.names))
    at_boundary = float(scaled.encode(sample.boundary.to_frame().T)[0] @ coef) + intercept
    own = []
    for name in pair:
        place = scaled.space.names.index(name)
        own.append(float(coef[scaled.places[place][0]] / scaled.scales[place]))
    rest = at_boundary - own[0] * boundary[0] - own[1] * boundary[1]
    return Plane(own[0], own[1], rest)


def _linear(surrogate: Any, width: int) -> tuple[NDArray[np.float64], float]:
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
        raise InvalidTypeError(_WHO, "a linear surrogate", but, then)
    if len(weights) != width or not np.isfinite([*weights, *constants]).all():
        but = f"surrogate is {type(surrogate).__name__} with {len(weights)}"
        then = "Fit it to the sample: it is linear in the scaled columns, sample.columns.names."
        raise InvalidValueError(_WHO, f"{width} finite coefficients", but, then)
    return weights, float(constants[0])


def _numbers(given: Any) -> NDArray[np.float64]:
    """Return the numbers in something, (k,); none of what holds no numbers."""
    if given is None:
        return np.empty(0)
    try:
        return np.asarray(given, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        return np.empty(0)

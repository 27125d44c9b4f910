"""Structural equations in plain numbers: the user's own regressors are asked, not the program."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.constraints.causal.equation import Asked, Equation, FittedEquation, LinearEquation
from ceopt.formulations.constraints.causal.graph import ordered
from ceopt.formulations.space.reachable import decimal_grid
from ceopt.formulations.space.trace import trace_within
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

if TYPE_CHECKING:
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["Floats", "Structure"]

Floats: TypeAlias = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """Equations that fit a space.

    Parameters
    ----------
    space
        The columns.
    equations
        By column that can move, each after all of its parents.
    predictors
        What the fitted ones compute, each over the space of its own parents.
    slack
        By column, how far off its equation a value still follows from it: at least half a step that was inferred.
    """

    space: FeatureSpace
    equations: Mapping[str, Equation]
    predictors: Mapping[str, Predictor]
    slack: Mapping[str, float]
    _asked: dict[str, Asked] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_asked", {column: Asked(found) for column, found in self.predictors.items()})

    @classmethod
    def over(cls, space: FeatureSpace, given: Mapping[str, Equation], slack: float | Mapping[str, float]) -> Structure:
        """Return the equations over a space, or refuse those that do not fit it.

        An immutable column is held, whatever its parents do: its equation does not bind and is left out.

        Raises
        ------
        UnknownNameError
            A column, parent or column of the slack that does not exist.
        InvalidTypeError, InvalidValueError, UnsupportedModelError
            An equation of a categorical column, a categorical parent of a linear equation, a cycle, a
            regressor that cannot be stated.
        """
        fitting: dict[str, Equation] = {}
        for c, e in given.items():
            if isinstance(e, FittedEquation):
                fitting[c] = e.within(space)
            else:
                fitting[c] = e
        for column, equation in fitting.items():
            _check(column, equation, space)
        order = ordered({column: equation.parents for column, equation in fitting.items()})
        if isinstance(slack, Mapping):
            for name in slack:
                if name not in fitting:
                    raise UnknownNameError.among("slack", "column with an equation", name, fitting)
        binding = {column: fitting[column] for column in order if space[column].mutable}
        read = {}
        for c, e in binding.items():
            if isinstance(e, FittedEquation):
                read[c] = e.read(c, space)
        allowed = {}
        for c in binding:
            given_slack = slack.get(c, 0.0) if isinstance(slack, Mapping) else slack
            allowed[c] = max(float(given_slack), _rounding(space[c]))
        return cls(space, binding, read, allowed)

    def row(self, point: Mapping[str, float]) -> Floats:
        """Return a point as a row (1, d)."""
        return np.array([[point[name] for name in self.space.names]])

    def place(self, column: str) -> int:
        """Return the position of a column."""
        return self.space.names.index(column)

    # ---- what equations say ------------------------------------------------------------------------------------------
    def values(self, column: str, points: Floats) -> Floats:
        """Return what an equation says of its column at points (n, d), (n,); NaN at a level unknown to its regressor.

        A linear equation is summed up, a regressor is asked by its own ``predict``.
        """
        equation = self.equations[column]
        parents = points[:, [self.place(parent) for parent in equation.parents]]
        if isinstance(equation, LinearEquation):
            slopes = np.array([float(slope) for slope in equation.parents.values()])
            return np.asarray(parents @ slopes + float(equation.intercept))
        return self._asked[column].values(parents)

    def at(self, column: str, factual: Mapping[str, float]) -> float:
        """Return what an equation says at the factual, or refuse a level there that its regressor does not know."""
        return self._known(column, factual, float(self.values(column, self.row(factual))[0]))

    def effects(self, column: str, factual: Mapping[str, float], points: Floats) -> tuple[Floats, Floats]:
        """Return by how much an equation says that its column changes, and the size of what it says, (n,) each."""
        values = self.values(column, np.vstack((self.row(factual), points)))
        home = self._known(column, factual, float(values[0]))
        return values[1:] - home, np.maximum(np.abs(values[1:]), abs(home))

    def _known(self, column: str, factual: Mapping[str, float], home: float) -> float:
        if math.isnan(home):
            unseen = self.predictors[column].unseen
            name = next(name for name, ranks in unseen.items() if factual[name] in ranks)
            raise InvalidValueError(
                f"The equation of {column!r}", "levels that its regressor was fitted on",
                f"column {name!r} is {self.space[name].levels[int(factual[name])]!r}", "Fit it on rows that have it.",
            )  # fmt: skip
        return home

    def residuals(self, column: str, factual: Mapping[str, float], points: Floats) -> tuple[Floats, Floats]:
        """Return how far a column is off its equation, and how far it may be to count as following it, (n,) each."""
        effects, sizes = self.effects(column, factual, points)
        x = points[:, self.place(column)]
        noise = trace_within(self.space[column], np.maximum(np.abs(x), sizes))
        return x - factual[column] - effects, self.slack[column] + noise

    def followed(self, columns: Collection[str], factual: Mapping[str, float], points: Floats) -> Floats:
        """Return the points with some columns set to what follows from their parents, parents first.

        A value within the slack of that is left as it is.
        """
        points = points.copy()
        for column in self.equations:
            if column in columns:
                effects, sizes = self.effects(column, factual, points)
                values = points[:, self.place(column)]
                home = factual[column]
                wanted = home + effects
                noise = trace_within(self.space[column], np.maximum(np.abs(wanted), sizes))
                held = _held(self.space[column], home, wanted, self.slack[column] + noise)
                follows = ~(
                    np.abs(values - wanted) > self.slack[column] + noise
                )  # so does what is unknown to the regressor
                points[:, self.place(column)] = np.where(follows, values, held)
        return points


def _check(column: str, equation: Equation, space: FeatureSpace) -> None:
    """Refuse an equation that does not fit the space."""
    for name in (column, *equation.parents):
        if name not in space:
            if name == column:
                who = "Causal"
            else:
                who = f"The equation of {column!r}"
            raise UnknownNameError.among(who, "column", name, space.names)
    if space[column].kind == "categorical":
        raise InvalidTypeError(
            "Causal", "equations of numbers, ordinal or binary columns", f"column {column!r} is categorical",
            "Leave its equation out: it may be a parent of a fitted regressor.",
        )  # fmt: skip
    for parent in equation.parents if isinstance(equation, LinearEquation) else ():
        if space[parent].kind == "categorical":
            raise InvalidTypeError(
                f"The linear equation of {column!r}", "parents that are numbers, ranks or 0/1",
                f"column {parent!r} is categorical", "Fit a regressor that encodes it, or use Causal.learn.",
            )  # fmt: skip


def _rounding(feature: Feature) -> float:
    """Return half the step that was seen in a column's data: to be rounded to it is to follow. One set is a rule."""
    if feature.step is None or not feature.step_inferred:
        return 0.0
    return 0.5 * feature.step


def _held(feature: Feature, home: float, values: Floats, off: Floats) -> Floats:
    """Return values as the column can hold them: a level, or a multiple of its step where one is near enough."""
    if feature.is_finite:
        return np.clip(np.rint(values), *feature.coordinate_limits)
    step = feature.spacing
    if step is None:
        return values
    whole = decimal_grid(home, step).nearest(values)
    return np.where(np.abs(whole - values) <= off, whole, values)

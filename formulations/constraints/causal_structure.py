"""The equations of a causal model, linear or fitted regressors: parsed, in order, in plain numbers, learned from data.

A regressor is asked by its own ``predict``, and not by way of the program.
"""

from __future__ import annotations

import graphlib
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
import pandas as pd

from ceopt.formulations.predictors.readers import open_model, read
from ceopt.formulations.predictors.readers.model_input import as_written, given, names_of
from ceopt.formulations.predictors.representation import AbstractRepresentation
from ceopt.formulations.space.encoding import Encoding
from ceopt.formulations.space.feature import MISSING, Feature, sum_tolerance
from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.reachable import decimal_grid
from ceopt.formulations.space.space import FeatureSpace, column_coordinates, complete_rows, frame_of, require_space
from ceopt.solvers.checks import COEFFICIENT, Floats, ListOf, MappingOf, Refusal, Text, check_fields
from ceopt.solvers.errors import (
    CeoptError,
    InvalidTypeError,
    InvalidValueError,
    UnknownNameError,
    UnsupportedModelError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ceopt.formulations.predictors.predictor import Predictor

# ==== One equation: linear, or a fitted regressor and its inputs ======================================================

_NO_COEFFICIENTS = Refusal(
    "a mapping from parents to coefficients", 'Write LinearEquation({"age": 120.0}).', error=InvalidTypeError
)
_NO_PARENT = Refusal("at least one parent", "A column without parents has no equation.", "{name} is empty")
_LINEAR = {
    "parents": MappingOf(_NO_COEFFICIENTS, COEFFICIENT, empty=_NO_PARENT, texts=True, entry="{column}"),
    "intercept": COEFFICIENT,
}
_NO_MAPPING = Refusal(
    "a mapping from columns to equations",
    'Write Causal({"income": LinearEquation({"age": 120.0})}).',
    error=InvalidTypeError,
)
_EQUATIONS = MappingOf(
    _NO_MAPPING, empty=Refusal("at least one equation", "Leave the rule out.", "{name} is empty"), texts=True
)
_NO_LIST = Refusal("its parents in a list", 'Write ["age", "education"].', "they are {value}", InvalidTypeError)
_NO_NAME = Refusal("names of columns as parents", "Name the columns.", "one is {value}", InvalidTypeError)
_NOTHING = Refusal("at least one parent", "Leave it out: it moves on its own.", "it has none")
_PARENTS = ListOf(_NO_LIST, Text(_NO_NAME), empty=_NOTHING)
#: Rows that are remembered; what a search for a start tries next differs little from what it tried before.
_MOST = 20_000


@final
@dataclass(frozen=True, slots=True)
class LinearEquation:
    r"""A column that is linear in its parents, but for noise: :math:`x = c + \sum_p a_p x_p + u`.

    A number counts in its own unit, an ordinal parent by its rank, a binary one as 0 or 1.

    Parameters
    ----------
    parents
        Parent -> coefficient :math:`a_p`.
    intercept
        The constant c. It takes no part in what a move brings about, as the noise u holds the rest of the factual.

    Raises
    ------
    InvalidTypeError
        ``parents`` is no mapping from names.
    InvalidValueError
        No parent, or a number that is not finite.
    """

    parents: Mapping[str, float]
    intercept: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, _LINEAR)


@final
@dataclass(frozen=True, slots=True, eq=False)
class FittedEquation:
    """A fitted regressor and its inputs.

    Parameters
    ----------
    model
        The user's own object, which predicts.
    parents
        Its inputs, in the order in which it was fitted on them.
    """

    model: Any
    parents: tuple[str, ...]

    def within(self, space: FeatureSpace) -> FittedEquation:
        """Return the equation with the parents as the space writes them (LightGBM writes blanks as underscores)."""
        return replace(self, parents=tuple(as_written(self.parents, space.names)))

    def read(self, column: str, space: FeatureSpace) -> Predictor:
        """Return what the regressor computes of its parents, over the space of these alone.

        Raises
        ------
        UnsupportedModelError
            A classifier, or a model that is not fitted or has no exact representation; the column is named.
        """
        try:
            predictor = read(self.model, FeatureSpace(map(space.__getitem__, self.parents)))
        except CeoptError as error:
            raise type(error)(f"{error} This is the equation of {column!r}.") from error
        if predictor.labels is not None:
            raise UnsupportedModelError(
                "Causal", "regressors as equations", f"that of {column!r} is {type(self.model).__name__}, a classifier",
                "Fit a regressor; an ordinal column counts by rank, a binary one as 0 or 1.",
            )  # fmt: skip
        return predictor


Equation: TypeAlias = LinearEquation | FittedEquation


def parse_equations(given: Any) -> dict[str, Equation]:
    """Return the equations by column, or refuse what is none.

    Raises
    ------
    InvalidTypeError, InvalidValueError, UnsupportedModelError
        No mapping, or an empty one; something else than an equation; parents that are missing, named twice, or more or
        fewer than the regressor's inputs.
    """
    equations = _EQUATIONS.require("Causal", "equations", given)
    return {column: _parsed(column, equation) for column, equation in equations.items()}


def _parsed(column: str, given: Any) -> Equation:
    if isinstance(given, LinearEquation):
        return given
    if isinstance(getattr(given, "parents", None), Mapping) and hasattr(given, "intercept"):
        return LinearEquation(given.parents, given.intercept)
    if isinstance(given, tuple):
        if len(given) != 2:
            raise InvalidTypeError(
                "Causal", "a pair (regressor, parents) as an equation", f"that of {column!r} has {len(given)} entries",
                'Write (regressor, ["age", "education"]).',
            )  # fmt: skip
        model = _opened(column, given[0])
        return _agreed(column, model, names_in(f"The equation of {column!r}", given[1]))
    model = _opened(column, given)
    names = _own_names(model)
    if names is None:
        raise InvalidValueError(
            "Causal", f"the parents of {column!r}", f"its {type(model).__name__} was not fitted on a frame",
            'Name them in the order of its inputs: (regressor, ["age", "education"]).',
        )  # fmt: skip
    return FittedEquation(model, names)


def names_in(who: str, given: Any) -> tuple[str, ...]:
    """Return a list of names, or refuse it: text, other things than names, none, or one twice."""
    names: tuple[str, ...] = _PARENTS.require(who, "parents", given)
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InvalidValueError(who, "each parent once", f"{name!r} is there twice", "Remove one.")
    return names


def _opened(column: str, given: Any) -> Any:
    try:
        model = open_model(given)
    except CeoptError as error:
        raise type(error)(f"{error} This is the equation of {column!r}.") from error
    predicts = hasattr(model, "predict") or isinstance(model, AbstractRepresentation)
    if isinstance(model, type) or not predicts:
        what = repr(model)
        if isinstance(model, type):
            what = model.__name__
        raise InvalidTypeError(
            "Causal", "a LinearEquation or a fitted regressor per column", f"that of {column!r} is {what}",
            'Write LinearEquation({"age": 120.0}), or give a fitted regressor.',
        )  # fmt: skip
    return model


def _own_names(model: Any) -> tuple[str, ...] | None:
    """Return the columns that a model was fitted on, as it writes them itself."""
    names = names_of(model, _Nothing())  # type: ignore[arg-type]
    if names is None:
        return None
    return tuple(names)


def _agreed(column: str, model: Any, parents: tuple[str, ...]) -> FittedEquation:
    """Return the equation, or refuse parents that are not the model's inputs; it finds them by name where it can."""
    names = _own_names(model)
    if names is None:
        count = getattr(model, "n_features_in_", len(parents))
        if count != len(parents):
            raise InvalidValueError(
                f"The equation of {column!r}", f"a parent for each of the {count} inputs of its regressor",
                f"{len(parents)} are named: {', '.join(parents)}", "Name them in the order of its inputs.",
            )  # fmt: skip
        return FittedEquation(model, parents)
    names = tuple(as_written(names, parents))
    for name in names:
        if name not in parents:
            raise InvalidValueError(
                f"The equation of {column!r}", "every input of its regressor among the parents",
                f"{name!r} is not named", f"Its regressor was fitted on: {', '.join(names)}.",
            )  # fmt: skip
    for name in parents:
        if name not in names:
            raise InvalidValueError(
                f"The equation of {column!r}", "parents that its regressor was fitted on", f"{name!r} is none of them",
                f"It was fitted on: {', '.join(names)}.",
            )  # fmt: skip
    return FittedEquation(model, parents)


@final
class _Nothing:
    """A space without columns, to ask a model for the names that it was fitted on."""

    names = ()

    def __contains__(self, name: object) -> bool:
        return False


@final
@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What a regressor says of rows of its parents, and what it has said.

    Parameters
    ----------
    predictor
        The regressor over the space of its parents.
    """

    predictor: Predictor
    _said: dict[tuple[float, ...], float] = field(init=False, repr=False, default_factory=dict)

    def values(self, parents: Floats) -> Floats:
        """Return what is said of rows (n, p) given as coordinates, (n,); NaN at a level that it was not fitted on."""
        rows, place = np.unique(parents, axis=0, return_inverse=True)
        keys = list(map(tuple, rows.tolist()))
        new = [k for k, key in enumerate(keys) if key not in self._said]
        if new:
            if len(self._said) + len(new) > _MOST:
                self._said.clear()
                new = list(range(len(keys)))
            self._said.update(zip(map(keys.__getitem__, new), self._asked(rows[new]).tolist(), strict=True))
        return np.array(list(map(self._said.__getitem__, keys)))[np.ravel(place)]

    def _asked(self, rows: Floats) -> Floats:
        """Ask the user's own model."""
        space = self.predictor.space
        model = self.predictor.model
        known = np.ones(len(rows), dtype=bool)
        for name, ranks in self.predictor.unseen.items():
            known &= ~np.isin(rows[:, space.names.index(name)], list(ranks))
        held = rows[known]
        for j, feature in enumerate(space):
            if feature.kind != "continuous":  # a trial that is not whole where it must be is no answer, but has a price
                held[:, j] = np.clip(np.rint(held[:, j]), *feature.coordinate_limits)
        values = np.full(len(rows), np.nan)
        if len(held) and isinstance(model, AbstractRepresentation):
            values[known] = model.predict(Encoding.identity(space).matrix(held))
        elif len(held):
            frame = frame_of(space, held)
            values[known] = np.asarray(model.predict(given(model, space, frame)), dtype=np.float64).reshape(len(held))
        return values


# ==== The graph: which column comes before which, and the cycle where there is no such order ==========================


def ordered(parents: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return the columns that have parents, each after all of its own.

    Raises
    ------
    InvalidValueError
        A column that is its own parent, or a cycle; it is named.

    Examples
    --------
    >>> ordered({"savings": ["income"], "income": ["age"]})
    ('income', 'savings')
    """
    for column, above in parents.items():
        if column in above:
            raise InvalidValueError(
                "Causal", "columns that are not their own parents", f"{column!r} is its own", "Remove it from them."
            )
    try:
        order = tuple(graphlib.TopologicalSorter(parents).static_order())
    except graphlib.CycleError as error:
        raise InvalidValueError(
            "Causal", "equations without a cycle", f"there is one: {' -> '.join(error.args[1])}",
            "Remove one of these equations.",
        ) from None  # fmt: skip
    return tuple(column for column in order if column in parents)


def parents_of(equations: Mapping[str, Equation]) -> dict[str, Iterable[str]]:
    """Return the parents of each column that has an equation."""
    return {column: equation.parents for column, equation in equations.items()}


def parents_in(graph: Any) -> dict[str, tuple[str, ...]]:
    """Return the parents of each column that has some, of a mapping or of a directed graph of networkx.

    Raises
    ------
    InvalidTypeError
        Neither of the two, or parents that are no list of names.
    InvalidValueError
        No column has parents, or one has a parent twice.
    """
    if hasattr(graph, "predecessors") and hasattr(graph, "nodes"):
        listed: dict[Any, Any] = {column: list(graph.predecessors(column)) for column in graph.nodes}
    elif isinstance(graph, Mapping):
        listed = dict(graph)
    else:
        raise InvalidTypeError(
            "Causal.learn", "a mapping {column: [parents]} or a networkx DiGraph as graph",
            f"it got {type(graph).__name__}", 'Write {"income": ["age", "education"]}.',
        )  # fmt: skip
    parents = {}
    for column, above in listed.items():
        if not isinstance(column, str):
            raise InvalidTypeError("Causal.learn", "names of columns in the graph", f"one is {column!r}", "Name it.")
        is_list = isinstance(above, Iterable) and not isinstance(above, str)
        names = tuple(above) if is_list else above
        if names != ():
            parents[column] = names_in(f"The graph at {column!r}", names)
    if not parents:
        raise InvalidValueError("Causal.learn", "a column with parents", "the graph has none", "Name its parents.")
    return parents


# ==== All equations over a space, in plain numbers ====================================================================


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
        fitting = dict(given)
        for column, equation in given.items():
            if isinstance(equation, FittedEquation):
                fitting[column] = equation.within(space)
            _check(column, fitting[column], space)
        order = ordered(parents_of(fitting))
        if isinstance(slack, Mapping):
            for name in slack:
                if name not in fitting:
                    raise UnknownNameError.among("slack", "column with an equation", name, fitting)
        binding = {column: fitting[column] for column in order if space[column].mutable}
        read = {}
        for c, e in binding.items():
            if isinstance(e, FittedEquation):
                read[c] = e.read(c, space)
        if not isinstance(slack, Mapping):
            slack = dict.fromkeys(binding, slack)
        allowed = {column: max(float(slack.get(column, 0.0)), _rounding(space[column])) for column in binding}
        return cls(space, binding, read, allowed)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns with an equation and their parents."""
        return tuple(dict.fromkeys(name for column, e in self.equations.items() for name in (column, *e.parents)))

    def holds_amounts(self, *rows: Floats) -> bool:
        """Return whether rows (n, d) hold an amount, or a level of a category, wherever an equation reads them."""
        for name in self.columns:
            feature = self.space[name]
            for column in (part[:, self.place(name)] for part in rows):
                is_label = column == MISSING if feature.kind == "categorical" else feature.are_labels(column)
                if is_label.any():
                    return False
        return True

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
        parents = points[:, list(map(self.place, equation.parents))]
        if isinstance(equation, LinearEquation):
            slopes = np.array(list(map(float, equation.parents.values())))
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
        noise = sum_tolerance(self.space[column], np.maximum(np.abs(x), sizes))
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
                noise = sum_tolerance(self.space[column], np.maximum(np.abs(wanted), sizes))
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
            who = "Causal"
            if name != column:
                who = f"The equation of {column!r}"
            raise UnknownNameError.among(who, "column", name, space.names)
    if space[column].kind == "categorical":
        raise InvalidTypeError(
            "Causal", "equations of numbers, ordinal or binary columns", f"column {column!r} is categorical",
            "Leave its equation out: it may be a parent of a fitted regressor.",
        )  # fmt: skip
    for parent in equation.parents:
        if isinstance(equation, LinearEquation) and space[parent].kind == "categorical":
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


# ==== Equations learned from data: one regressor per column, fitted on its parents ====================================


def learned(
    graph: Any, data: pd.DataFrame, regressor: Any, space: FeatureSpace | None
) -> dict[str, tuple[Any, list[str]]]:
    """Return (fitted regressor, parents) by column; see :meth:`ceopt.Causal.learn`."""
    parents = parents_in(graph)
    order = ordered(parents)
    if not isinstance(data, pd.DataFrame):
        raise InvalidTypeError("Causal.learn", "a DataFrame", f"data is {type(data).__name__}", "Name its columns.")
    used = list(dict.fromkeys(name for column in order for name in (*parents[column], column)))
    for name in used:
        if name not in data.columns:
            raise InvalidValueError(
                "Causal.learn", "every column of the graph in the data", f"{name!r} is missing",
                f"The data have: {', '.join(map(str, data.columns))}.",
            )  # fmt: skip
    if not len(data):
        raise InvalidValueError("Causal.learn", "rows to learn from", "the data have none", "Give the training data.")
    if space is None:
        space = FeatureSpace(infer_features(data[used], steps=False))
    require_space("Causal.learn", space)
    part = complete_rows("Causal.learn", FeatureSpace(map(space.__getitem__, used)), data)
    equations = {}
    for column in order:
        names = list(parents[column])
        equations[column] = (_fitted(column, names, part, regressor, space), names)
    return equations


def _fitted(column: str, parents: list[str], data: pd.DataFrame, regressor: Any, space: FeatureSpace) -> Any:
    """Return a regressor of a column, ranks of levels included, fitted on a frame of its parents."""
    from sklearn.base import clone

    if space[column].kind == "categorical":
        raise InvalidTypeError(
            "Causal.learn", "equations of numbers, ordinal or binary columns", f"column {column!r} is categorical",
            "Leave it out of the graph's keys: it may be a parent.",
        )  # fmt: skip
    target = column_coordinates(space[column], data[column])
    for parent in parents:
        column_coordinates(space[parent], data[parent])  # refuses what is missing or unknown, by name
    try:
        if regressor is None:
            model = _least_squares(parents, space)
        else:
            model = clone(regressor)
    except TypeError as error:
        raise InvalidTypeError(
            "Causal.learn", "a scikit-learn regressor", f"regressor is {regressor!r}", f"It cannot be cloned: {error}"
        ) from error
    if not hasattr(model, "fit"):
        raise InvalidTypeError(
            "Causal.learn", "a scikit-learn regressor", f"regressor is {regressor!r}", "Give for example Ridge()."
        )
    try:
        return model.fit(data[parents], target)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(
            "Causal.learn", f"a regressor that fits {column!r} on {', '.join(parents)}",
            f"{type(model).__name__} fails: {error}", "Give a pipeline that encodes levels.",
        ) from error  # fmt: skip


def _least_squares(parents: Sequence[str], space: FeatureSpace) -> Any:
    """Return least squares over numbers, ranks of ordered levels, and one column per level of unordered ones."""
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    unordered = [name for name in parents if space[name].kind == "categorical"]
    ranked = [name for name in parents if space[name].is_finite and name not in unordered]
    if not unordered and not ranked:
        return LinearRegression()
    levels = [np.array(space[name].levels, dtype=object) for name in ranked]
    parts = [
        ("levels", OneHotEncoder(), unordered),
        ("ranks", OrdinalEncoder(categories=levels), ranked),
    ]
    kept = [part for part in parts if part[2]]
    return make_pipeline(ColumnTransformer(kept, remainder="passthrough"), LinearRegression())

"""Predictions of the user's own model or function for raw rows, and evaluation of rules without a program.

This code is independent of the programs, which state the same model and rules in Pyomo, so that each reveals errors of
the other. Verification relies only on predictions for raw rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.constraints import AbstractRule, rule_name
from ceopt.formulations.digits import digits
from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.readers import open_model
from ceopt.formulations.predictors.readers.model_input import dense, fitted_names, given, is_fitted, names_of
from ceopt.formulations.predictors.representation import AbstractRepresentation
from ceopt.formulations.predictors.ties import forest_of
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.dtypes import is_number_dtype
from ceopt.formulations.space.encoding import Encoding
from ceopt.formulations.space.feature import MISSING, Feature
from ceopt.formulations.space.limits import Side, excess
from ceopt.formulations.space.reachable import first_amount, limit_words
from ceopt.formulations.space.space import FeatureSpace, complete_rows, on_codes, rows_to_keep, taken
from ceopt.formulations.targets import (
    AtLeast,
    AtMost,
    Between,
    Disagreement,
    DisagreementOf,
    Labels,
    OtherThan,
    Probability,
    ProbabilityOf,
    Target,
    Values,
    one_of,
    parse_target,
)
from ceopt.formulations.tolerances import STEP_ROUNDINGS
from ceopt.oracle.rows import as_array, frame_of
from ceopt.solvers.checks import plain
from ceopt.solvers.errors import (
    InvalidTypeError,
    InvalidValueError,
    UnknownNameError,
    UnsupportedModelError,
    each_of,
    printable,
)

# ==== Favourable rows of the data: by their labels, or else by the model ==============================================

_LEARNER: Final = "A rule that learns from rows of the target"


@final
@dataclass(frozen=True, slots=True, eq=False)
class FavourableRows:
    """Gives the rows of the target class to rules that learn from them, as coordinates (n, d).

    Rows with missing cells are left out, with a warning, and so, without one, are those on a code of a number.

    Parameters
    ----------
    space, oracle, target
        The columns, the user's own model, and what it should say.
    data
        Rows in raw units, or None.
    labelled
        Rows with labels, or None. If given, the labels decide which rows are favourable; otherwise the model's
        predictions do.
    """

    space: FeatureSpace
    oracle: Oracle
    target: Any
    data: pd.DataFrame | None
    labelled: tuple[pd.DataFrame, Any] | None

    def __call__(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the favourable rows; raise InvalidValueError without data."""
        if self.labelled is not None:
            X, y = self.labelled
            kept = rows_to_keep(_LEARNER, self.space, X, word="X", y=y)
            X, y = taken(X, kept), taken(y, kept)
            return self._amounts(X[list(self.space.names)][labels_in_target(y, len(X), self.target)])
        if self.data is None:
            then = "Pass data=X_train to explain, fit a Recourse on it, or give the rule rows of its own."
            raise InvalidValueError(_LEARNER, "data", "no data is given", then)
        frame = complete_rows(_LEARNER, self.space, self.data[list(self.space.names)])
        self.space.coordinates(frame)  # refuses by name what the model would refuse otherwise
        if len(frame):
            frame = frame[self.oracle.meets(frame, self.target)]
        return self._amounts(frame)

    def _amounts(self, frame: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the coordinates of the rows that are on no code of a number."""
        coordinates = self.space.coordinates(frame)
        return np.asarray(coordinates[~on_codes(self.space, coordinates)])


def labels_in_target(y: Any, n: int, target: Target) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which of ``n`` labels are in the target.

    Raises
    ------
    InvalidValueError
        The number of labels is not the number of rows, or no label is in the target.
    """
    labels = np.asarray(y)
    if labels.shape != (n,):
        but = f"y has shape {labels.shape}"
        raise InvalidValueError("Recourse.fit", f"one label for {each_of(n, 'row')}", but, "Match X.")
    if isinstance(target, DisagreementOf):
        target = target.wanted
    if isinstance(target, Values):
        return target.holds(labels)
    if isinstance(target, ProbabilityOf):
        target = Labels((target.position,), target.labels)
    found = target.holds(labels)
    if not found.any():
        but = f"class {target.labels[target.wanted[0]]!r} never occurs there"
        then = "Give the labels that the model was fitted on, or leave y out."
        raise InvalidValueError("Recourse.fit", "rows of the target in y", but, then)
    return found


# ==== The model's single trees, which a limit on their disagreement counts ============================================

_TREE_CLASSES: Final = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")
_FOREST_CLASSES: Final = (
    "BaggingClassifier", "BaggingRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor", "RandomForestClassifier",
    "RandomForestRegressor",
)  # fmt: skip


@final
class TreeOracle:
    """Ask each tree of a fitted model for its prediction of raw rows.

    Parameters
    ----------
    model
        A forest, bagged trees or a single tree of scikit-learn, also behind a pipeline or in a search object; or a
        representation of such from plain arrays.
    space
        The raw columns.

    Raises
    ------
    UnsupportedModelError
        The model is not an ensemble of trees that each make a prediction (boosting is none), nor such a tree.
    """

    __slots__ = ("_forest", "_model", "_space", "_steps")

    def __init__(self, model: Any, space: FeatureSpace) -> None:
        self._model = model
        self._space = space
        self._steps = []
        self._forest = model
        if isinstance(model, AbstractRepresentation):
            forest_of(model)
            return
        while hasattr(self._forest, "best_estimator_") or hasattr(self._forest, "steps"):
            if hasattr(self._forest, "best_estimator_"):
                self._forest = self._forest.best_estimator_
            else:
                if len(self._forest.steps) > 1:
                    self._steps.append(self._forest[:-1])
                self._forest = self._forest.steps[-1][1]
        name = type(self._forest).__name__
        is_sklearn = type(self._forest).__module__.partition(".")[0] == "sklearn"
        if not is_sklearn or name not in {*_TREE_CLASSES, *_FOREST_CLASSES}:
            raise UnsupportedModelError(
                "Disagreement", "a forest, bagged trees or a single tree of scikit-learn", f"the model is a {name}",
                "Ask for the model's own decision.",
            )  # fmt: skip

    def predict(self, frame: pd.DataFrame) -> list[NDArray[Any]]:
        """Return the prediction of each tree for raw rows (n, d): labels of the model, or values, (n,) each."""
        forest = self._forest
        if isinstance(forest, TreeEnsemble):
            matrix = Encoding.identity(self._space, forest.columns).matrix(self._space.coordinates(frame))
            leaves = forest.apply(matrix)
            scores = [tree.value[nodes] for tree, nodes in zip(forest.trees, leaves.T, strict=True)]
            if forest.n_scores == 1:
                scores = [one[:, 0] for one in scores]
            return list(map(forest.head.decide, scores))
        matrix = given(self._model, self._space, frame)
        for steps in self._steps:
            matrix = steps.transform(matrix)
        if type(forest).__name__ in _TREE_CLASSES:
            return [np.asarray(forest.predict(matrix))]
        matrix = dense(matrix)
        columns = getattr(forest, "estimators_features_", [slice(None)] * len(forest.estimators_))
        trees = zip(forest.estimators_, columns, strict=True)
        predictions = [np.asarray(tree.predict(matrix[:, seen])) for tree, seen in trees]
        labels = getattr(forest, "classes_", None)
        if labels is None:
            return predictions
        # The trees of a classifier predict positions in ``classes_``.
        return [labels[positions.astype(np.intp)] for positions in predictions]


# ==== The check of an answer: the model's prediction, and the broken rules ============================================


class Check(NamedTuple):
    """One point's check: the model's prediction, whether it meets the target, and the broken rules.

    ``valid`` says only whether the target is met; ``valid`` of a :class:`~ceopt.result.verify.Report` includes the
    rules.
    """

    valid: bool
    prediction: Any
    broken: tuple[str, ...]


# ---- the user's own model --------------------------------------------------------------------------------------------
@final
class ModelOracle:
    """Ask a fitted model for predictions of raw rows, exactly as its user would.

    A model that was fitted on a frame gets a frame with its columns in its order. One that was fitted on an array gets
    ``frame.to_numpy()`` in the order of the space: float64 if every column is a number or bool, else objects. A
    representation from plain arrays gets the space's coordinates as :meth:`Encoding.identity` lays them out; one that
    was made of what was read (:meth:`ReadModel.signed`) gets what that was read through.

    Parameters
    ----------
    model
        A fitted estimator, pipeline or search object with ``predict``, or a representation.
    space
        The raw columns.

    Attributes
    ----------
    labels
        The classes in the model's own order as Python scalars; None for a regressor.

    Raises
    ------
    UnsupportedModelError
        Not a model: a path, a class, an object without ``predict``; a model that is not fitted or has several outputs.

    Examples
    --------
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("income", kind="continuous")])
    >>> oracle = ModelOracle(Affine([1.0], -3.0, labels=("bad", "good")), space)
    >>> oracle.predict(space.frame([{"income": 2.0}, {"income": 4.0}])).tolist()
    ['bad', 'good']
    """

    __slots__ = ("encoding", "labels", "model", "space")

    def __init__(self, model: Any, space: FeatureSpace) -> None:
        #: What a representation sees of the raw columns; None for a model of a library.
        self.encoding: Encoding | None = None
        if isinstance(model, Predictor):
            if model.model is model.core:
                self.encoding = model.encoding
            model = model.model
        model = open_model(model)
        self.model = model
        self.space = space
        if isinstance(model, AbstractRepresentation):
            self.encoding = self.encoding or Encoding.identity(space, model.columns)
            self.labels = model.labels
            return
        _require_fitted(model)
        for name in names_of(model, space) or ():
            if name not in space:
                but = f"column {name!r} is not in the space"
                then = "Add it to the space."
                raise UnsupportedModelError("The model", "every column that it was fitted on", but, then)
        self.labels = _labels_of(model)

    def predict(self, frame: pd.DataFrame) -> NDArray[Any]:
        """Return the model's labels or values for raw rows (n, d), shape (n,)."""
        return np.asarray(self.model.predict(self._input(frame))).reshape(len(frame))

    def probability(self, frame: pd.DataFrame, label: Any) -> NDArray[np.float64]:
        """Return the model's probability of a label for raw rows, shape (n,).

        Raises
        ------
        UnsupportedModelError
            The model gives no probabilities.
        UnknownNameError
            The label is not one of its classes.
        """
        has_probabilities = hasattr(self.model, "predict_proba")
        if self.encoding is not None:
            has_probabilities = bool(self.model.probability)
        if not has_probabilities:
            but = f"{type(self.model).__name__} has none"
            then = "Ask for the label instead."
            raise UnsupportedModelError("A probability", "a model with predict_proba", but, then)
        if self.labels is None or label not in self.labels:
            raise UnknownNameError.among("target", "class of the model", label, self.labels or ())
        position = self.labels.index(label)
        if self.encoding is None:
            probabilities = self.model.predict_proba(self._input(frame))
            return np.asarray(probabilities, dtype=np.float64)[:, position]
        scores = self.model.score(self._input(frame))
        return np.asarray(self.model.head.of_position(scores, position), dtype=np.float64)

    def meets(self, frame: pd.DataFrame, target: Target) -> NDArray[np.bool_]:
        """Return whether the model's own decision for each raw row meets a parsed target, shape (n,)."""
        return self.judge(frame, target)[1]

    def judge(self, frame: pd.DataFrame, target: Target) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return predictions and whether they meet the target, with one call of ``predict`` for all rows."""
        predictions = self.predict(frame)
        match target:
            case ProbabilityOf():
                return predictions, self.probability(frame, target.labels[target.position]) >= target.at_least
            case DisagreementOf():
                of_trees = self.tree_oracle().predict(frame)
                agree = np.sum(list(map(target.wanted.holds, of_trees)), axis=0)
                return predictions, agree >= target.needed(len(of_trees))
            case _:
                return predictions, target.holds(predictions)

    def tree_oracle(self) -> TreeOracle:
        """Return the oracle of the model's single trees; raise UnsupportedModelError for a model without such."""
        return TreeOracle(self.model, self.space)

    def _input(self, frame: pd.DataFrame) -> Any:
        """Return what the model is called with for raw rows (n, d)."""
        if self.encoding is None:
            return given(self.model, self.space, frame)
        return self.encoding.matrix(self.space.coordinates(frame))


def _require_fitted(model: Any) -> None:
    but = ""
    if isinstance(model, type):
        but = f"{model.__name__} is a class"
        then = "Give an object that was fitted."
    elif not hasattr(model, "predict"):
        but = f"{type(model).__name__} has no predict"
        then = "Give a fitted classifier, regressor or pipeline (a search object needs refit=True)."
    elif hasattr(model, "__sklearn_tags__") and not is_fitted(model):
        but = f"{type(model).__name__} is not fitted"
        then = "Call fit first."
    if but:
        raise UnsupportedModelError("The model", "a fitted model", but, then)


def _labels_of(model: Any) -> tuple[Any, ...] | None:
    classes = getattr(model, "classes_", None)
    if classes is None:
        return None
    if isinstance(classes, list):
        but = f"{type(model).__name__} has {len(classes)}"
        raise UnsupportedModelError("The model", "one output", but, "Fit one model per output.")
    return tuple(map(plain, np.asarray(classes).tolist()))


# ---- rules: the space's (bounds, immutable columns, directions, steps, levels), then the user's ----------------------
#: Most decimals of a step; further digits are rounding errors.
_MOST_DECIMALS: Final = 9


def broken_rules(
    rules: Sequence[AbstractRule],
    space: FeatureSpace,
    factual: Mapping[str, float] | None,
    point: Mapping[str, float],
    *,
    seen_steps: bool = True,
) -> tuple[str, ...]:
    """Return what a point breaks, in words: rules of the space first, then those of the user.

    With ``seen_steps``, steps inferred from the data count as rules (answers of ceopt keep them); without, only steps
    set by the user do. Rules that were not given the data rows they learn from are skipped; without a factual, so are
    those that need one.
    """
    broken = list(broken_moves(space, factual, point, seen_steps=seen_steps))
    for place, rule in enumerate(rules):
        if rule.lacks_rows or (factual is None and rule.needs_factual):
            continue
        if not rule.violation(space, factual, point) <= 0:  # not "> 0", so that NaN counts as broken
            broken.append(f"{rule_name(rule, place)}: {rule.sentence()}")
    return tuple(map(printable, broken))


def broken_moves(
    space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float], *, seen_steps: bool = True
) -> tuple[str, ...]:
    """Return what a point (coordinates by column) breaks of the space's own rules, one sentence each."""
    broken: list[str] = []
    values = factual or {}
    for feature in space:
        for fault in _faults(feature, values.get(feature.name), point[feature.name], seen_steps=seen_steps):
            broken.append(f"{feature.name}: {fault}")
    return tuple(broken)


def needing_factual(space: FeatureSpace, rules: Sequence[AbstractRule]) -> tuple[str, ...]:
    """Return the rules of the space and of the user that cannot be checked without a factual."""
    unchecked: list[str] = []
    for feature in space:
        if not feature.mutable:
            unchecked.append(f"{feature.name}: fixed")
        if feature.direction != "any":
            unchecked.append(f"{feature.name}: only {feature.direction}")
        if feature.missing in {True, "stays"}:
            unchecked.append(f"{feature.name}: does not go missing")
        if feature.codes and not feature.codes_in_reach:
            unchecked.append(f"{feature.name}: does not become a code")
        for word, limit in (("max_down", feature.max_down), ("max_up", feature.max_up)):
            if limit is not None:
                unchecked.append(f"{feature.name}: {word} {limit if isinstance(limit, str) else digits(limit)}")
        if feature.step is not None and not feature.step_inferred:
            unchecked.append(f"{feature.name}: steps of {digits(feature.step)}")
    for place, rule in enumerate(rules):
        if rule.needs_factual:
            unchecked.append(f"{rule_name(rule, place)}: {rule.sentence()}")
    return tuple(unchecked)


def _faults(feature: Feature, factual: float | None, value: float, *, seen_steps: bool) -> Iterator[str]:
    if MISSING in {value, factual}:
        yield from _faults_of_gaps(feature, factual, value)
        if value == MISSING:
            return
    if not math.isfinite(value):
        yield f"is {value}"
        return
    is_rank = value == math.floor(value) and 0 <= value < len(feature.levels)
    if feature.is_finite and not is_rank:
        yield f"has no level of rank {digits(value)}"
        return
    if feature.kind == "integer" and value != math.floor(value):
        yield f"must be whole, but is {value!r}"
    if factual is not None and value != factual and (feature.is_code(value) or feature.is_code(factual)):
        yield from _faults_of_codes(feature, factual, value)
    if feature.is_code(value):
        return
    yield from _faults_of_bounds(feature, factual, value, seen_steps=seen_steps)
    if factual is None or value == factual:
        return
    if feature.is_label(factual):
        yield from _faults_of_fills(feature, value, seen_steps=seen_steps)
    else:
        yield from _faults_of_moves(feature, factual, value, seen_steps=seen_steps)


def _faults_of_moves(feature: Feature, factual: float, value: float, *, seen_steps: bool) -> Iterator[str]:
    """Yield faults of a move between two amounts."""
    before = _as_written(feature, factual)
    after = _as_written(feature, value)
    if not feature.mutable:
        yield f"must stay {before!r}, but is {after!r}"
    elif feature.direction == "increasing" and value < factual:
        yield f"may only increase, but falls from {before!r} to {after!r}"
    elif feature.direction == "decreasing" and value > factual:
        yield f"may only decrease, but rises from {before!r} to {after!r}"
    side: Side = "up" if value > factual else "down"
    limit = feature.max_up if side == "up" else feature.max_down
    if limit is not None and excess(limit, factual, value) > 0.0:
        yield f"moves by more than {limit_words(feature, side, factual)}, from {before!r} to {after!r}"
    is_rule = seen_steps or not feature.step_inferred
    if is_rule and feature.step is not None and is_off_steps(feature.step, factual, value):
        yield f"moves in steps of {digits(feature.step)}, but goes from {before!r} to {after!r}"


def _faults_of_bounds(feature: Feature, factual: float | None, value: float, *, seen_steps: bool) -> Iterator[str]:
    """Yield faults of amounts outside the bounds, but for those no further out than the factual is.

    Bounds seen in data bind what a search fills in, and nobody's own amount.
    """
    least, greatest = feature.widest
    if factual is not None and feature.is_label(factual):
        if seen_steps:
            least, greatest = feature.lower, feature.upper
        factual = None
    if value < least and (factual is None or value < factual):
        today = f" or stay at {digits(factual)}" if factual is not None and factual < least else ""
        yield f"must be at least {digits(least)}{today}, but is {value!r}"
    if value > greatest and (factual is None or value > factual):
        today = f" or stay at {digits(factual)}" if factual is not None and factual > greatest else ""
        yield f"must be at most {digits(greatest)}{today}, but is {value!r}"


def _as_written(feature: Feature, coordinate: float) -> Any:
    """Return the level of a finite column at a coordinate, or else the number as it is."""
    if feature.is_finite:
        return feature.from_coordinate(coordinate)
    return coordinate


def _faults_of_codes(feature: Feature, factual: float, value: float) -> Iterator[str]:
    """Yield faults of moves from a code that stays, and to a code that is out of reach."""
    after = _shown(feature, value)
    if feature.is_code(factual) and not _may_be_filled(feature):
        yield f"must stay {_shown(feature, factual)}, but is {after}"
    elif feature.is_code(value) and not (feature.codes_in_reach and _may_be_filled(feature)):
        yield f"must not become {after}"


def _faults_of_gaps(feature: Feature, factual: float | None, value: float) -> Iterator[str]:
    """Yield faults of cells that were filled in and must stay missing, and of values that must not go."""
    if feature.missing is False:
        yield "must not be missing"
    elif factual is None or factual == value:
        return
    elif value == MISSING and (feature.missing != "may_vanish" or not _may_be_filled(feature)):
        yield f"must not go missing, but was {_shown(feature, factual)}"
    elif factual == MISSING and (feature.missing == "stays" or not _may_be_filled(feature)):
        yield f"must stay missing, but is {_shown(feature, value)}"


def _may_be_filled(feature: Feature) -> bool:
    return feature.mutable and math.isfinite(feature.fill)


def _faults_of_fills(feature: Feature, value: float, *, seen_steps: bool) -> Iterator[str]:
    """Yield the fault of an amount that is filled in off the steps, which count from the lower bound, or from 0."""
    is_rule = seen_steps or not feature.step_inferred
    if not is_rule or feature.step is None:
        return
    start = first_amount(feature)
    if is_off_steps(feature.step, start, value):
        yield f"is filled in by steps of {digits(feature.step)} from {digits(start)}, but is {value!r}"


def _shown(feature: Feature, coordinate: float) -> str:
    """Return a value in words that say whether it is missing, or a code."""
    if coordinate == MISSING:
        return "missing"
    if not feature.is_code(coordinate):
        return repr(_as_written(feature, coordinate))
    code = feature.from_coordinate(coordinate)
    meaning = feature.meaning_of(code)
    if meaning is None:
        return f"{code!r}, which is a code"
    return f"{code!r}, which is a code ({meaning})"


def is_off_steps(step: float, factual: float, value: float) -> bool:
    """Tell whether the move from ``factual`` to ``value`` is not a whole number of steps, up to rounding."""
    nearest = factual + float(np.round((value - factual) / step)) * step
    # 0.1 + 2 * 0.1 is 0.30000000000000004 in floats; the value 0.3 counts as on the grid, too.
    off = min(abs(value - nearest), abs(value - round(nearest, _MOST_DECIMALS)))
    return off > STEP_ROUNDINGS * max(abs(value), abs(factual))


# ==== Predictions for tables of any origin, for metrics ===============================================================

_RANGES: Final = (AtLeast, AtMost, Between)


def rows_for_predict(table: Any, space: FeatureSpace | None) -> pd.DataFrame | NDArray[Any]:
    """Return rows as ``predict`` is called with them: a frame if the columns have names, else an array (n, d)."""
    table = frame_of(table)
    if isinstance(table, pd.DataFrame):
        return table if space is None else _ordered(table, list(space.names))
    if isinstance(table, pd.Series | Mapping):
        return pd.DataFrame({name: [value] for name, value in table.items()})
    if isinstance(table, list | tuple) and table and isinstance(table[0], pd.Series | Mapping):
        return pd.DataFrame([dict(row.items()) for row in table])
    array = np.atleast_2d(as_array(table))
    if space is not None and array.shape[1] == len(space):
        return pd.DataFrame(array, columns=list(space.names)).infer_objects()
    return array


def in_column_order_of(table: Any, other: Any) -> Any:
    """Return ``table`` with its columns in the order of ``other``; unchanged unless both have the same names.

    A model that was fitted on an array knows columns by their places alone, while metrics match them by name.
    """
    if isinstance(other, pd.DataFrame | pd.Series):
        return _ordered(table, list(other.axes[-1]))
    if isinstance(other, Mapping):
        return _ordered(table, list(other))
    return table


def _ordered(table: Any, names: list[Any]) -> Any:
    same = isinstance(table, pd.DataFrame) and len(names) == table.shape[1] and set(names) == set(table.columns)
    if same:
        return table[names]
    return table


def predictions_of(who: str, model: Any, table: Any, space: FeatureSpace | None = None) -> NDArray[Any]:
    """Return what a model says of each row, (n,): a label or, of a regressor, a value.

    A function is called with the rows as given; with a space, always with a frame. A fitted model is called with a
    frame of the columns that it was fitted on if it knows their names, else with an array.

    Parameters
    ----------
    who
        The metric.
    model
        A fitted model with ``predict``, a representation of ceopt, or a function of rows.
    table
        The rows.
    space
        What the columns are.

    Raises
    ------
    InvalidTypeError
        Neither a model nor a function.
    InvalidValueError
        ``predict`` does not return one value per row, or returns missing values.
    """
    rows: Any = rows_for_predict(table, space)
    if hasattr(model, "predict") and not isinstance(model, type):
        if space is None:
            predictions = model.predict(_input_without_space(who, model, rows))
        else:
            predictions = ModelOracle(model, space).predict(rows)
    elif callable(model) and not isinstance(model, type):
        predictions = model(rows)
    else:
        but = f"model is {model!r}"
        raise InvalidTypeError(who, "a fitted model or a function of rows", but, "Give clf, or clf.predict.")
    labels = np.asarray(predictions)
    if labels.shape == (len(rows), 1):
        labels = labels[:, 0]
    if labels.shape != (len(rows),):
        but = f"predict returned {_shape(predictions, labels)}"
        then = "Give a function that returns labels, such as lambda rows: proba(rows).argmax(axis=1)."
        raise InvalidValueError(who, f"one label for {each_of(len(rows), 'row')}", but, then)
    if pd.isna(labels).any():
        raise InvalidValueError(who, "a label for every row", "predict returned a missing one", "Correct the model.")
    return labels


def _shape(predictions: Any, labels: NDArray[Any]) -> str:
    """Describe predictions that are not one value a row: their shape, or the type of a scalar."""
    if predictions is None:
        return "None"
    if labels.ndim == 0:
        return f"one {type(predictions).__name__}"
    return f"shape {labels.shape}"


def _input_without_space(who: str, model: Any, rows: pd.DataFrame | NDArray[Any]) -> Any:
    """Return what a fitted model takes for rows of which no space is known."""
    if isinstance(rows, pd.DataFrame):
        columns = fitted_names(model, list(rows.columns))
        if columns is not None:
            return rows[columns]
        if all(map(is_number_dtype, rows.dtypes)):
            return rows.to_numpy(dtype=np.float64)
        if isinstance(model, AbstractRepresentation):
            but = "space is None"
            raise InvalidValueError(who, "a space to ask a representation about categories", but, "Pass space=.")
        return rows
    names = getattr(model, "feature_names_in_", None)
    if names is None or len(names) != rows.shape[1]:
        return rows
    return pd.DataFrame(rows, columns=list(names))


def accepted(who: str, model: Any, table: Any, target: Any, space: FeatureSpace | None = None) -> NDArray[np.bool_]:
    """Return whether the model's decision about each row meets the target, (n,).

    Parameters
    ----------
    who, model, table, space
        As for :func:`predictions_of`.
    target
        A label, a set or list of labels, ``OtherThan(label)``; of a regressor ``AtLeast``, ``AtMost``, ``Between``;
        with a space and a fitted model everything that :func:`ceopt.explain` takes.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As :func:`predictions_of`; no target; probabilities where labels are needed.
    UnknownNameError
        A label that a fitted model does not have. A function's labels are not known.
    """
    if target is None:
        raise InvalidTypeError(who, "a target", "target is None", "Give the label that counterfactuals should have.")
    if isinstance(target, Probability | Disagreement):
        if space is None:
            raise InvalidValueError(who, f"a space to check {target!r}", "space is None", "Pass space=.")
        oracle = ModelOracle(model, space)
        rows: Any = rows_for_predict(table, space)
        return oracle.meets(rows, parse_target(target, oracle.labels))
    classes = getattr(model, "classes_", getattr(model, "labels", None))
    if classes is not None and not isinstance(target, _RANGES):
        parse_target(target, tuple(map(plain, classes)))  # a label that the model does not have would never be met
    return meets_raw_target(who, predictions_of(who, model, table, space), target)


def meets_raw_target(who: str, labels: NDArray[Any], target: Any) -> NDArray[np.bool_]:
    """Return which labels or values meet the target."""
    if isinstance(target, _RANGES):
        bounds = parse_target(target, None)
        assert isinstance(bounds, Values)  # noqa: S101 - what a range is parsed to
        return bounds.holds(labels)
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        but = f"predict returned {labels[labels != np.floor(labels)][0]}"
        then = "Give predict, not probabilities; of a regressor ask for AtLeast(value)."
        raise InvalidValueError(who, f"labels, of which {target!r} is one", but, then)
    if isinstance(target, OtherThan):
        return ~one_of(labels, [target.label])
    return one_of(labels, labels_named(target))


# ==== Functions of rows in the place of a model, known by their predictions only ======================================

_WHO: Final = "The model"
_COLLECTIONS: Final = (set, frozenset, list)
#: Libraries of whose models two things can be relied on: only a regressor lacks ``classes_``, and refitting changes the
#: hash of the content.
LIBRARIES: Final = frozenset({"ceopt", "lightgbm", "onnxruntime", "sklearn", "xgboost"})


class Oracle(Protocol):
    """Interface of :class:`ModelOracle` and :class:`FunctionOracle`: tells which raw rows meet a target."""

    def meets(self, frame: pd.DataFrame, target: Any) -> NDArray[np.bool_]:
        """Return whether each raw row meets the target, (n,)."""

    def judge(self, frame: pd.DataFrame, target: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return predictions and whether they meet the target."""


def model_behind(model: Any, target: Any) -> Any:
    """Return the object whose predictions are used for ``model``.

    For a bound ``predict`` of a scikit-learn model: the model. For a model of an unknown library without ``classes_``,
    unless the target is a range: its ``predict``, as a function of frames. Otherwise ``model``.
    """
    owner = getattr(model, "__self__", None)
    if getattr(model, "__name__", "") == "predict" and hasattr(owner, "__sklearn_tags__"):
        return owner
    if isinstance(target, _RANGES) or isinstance(model, type) or not hasattr(model, "predict"):
        return model
    has_classes = getattr(model, "classes_", None) is not None
    library = type(model).__module__.partition(".")[0]
    if has_classes or hasattr(model, "__sklearn_tags__") or library in LIBRARIES:
        return model
    return model.predict


def check_kind(who: str, labels: NDArray[Any], target: Any) -> None:
    """Refuse text where numbers are asked for, and numbers where text is.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        The target is a range, probability or disagreement and the predictions are not numbers; or one of target and
        predictions is text and the other is not.
    """
    if isinstance(target, (*_RANGES, Probability, Disagreement)):
        if labels.dtype.kind not in "biuf":
            but = f"predict returned {labels.tolist()[0]!r}"
            raise InvalidTypeError(who, f"numbers to hold against {target!r}", but, "Ask for a label.")
        return
    in_target = labels_named(target)
    returned = pd.unique(pd.Series(labels.tolist(), dtype=object)).tolist()
    are_text = {isinstance(label, str) for label in returned}
    if are_text.isdisjoint(isinstance(label, str) for label in in_target):  # one is text and the other is not
        shown = ", ".join(map(_in_short, returned[:5]))
        needs = f"labels of the kind of {in_target[0]!r}, which is the target"
        raise InvalidValueError(who, needs, f"predict returned {shown}", "Give a target that predict returns.")


def _in_short(label: Any) -> str:
    """Return the text of a label for a message; floats with six digits."""
    if isinstance(label, float):
        return f"{label:.6g}"
    return repr(label)


@final
@dataclass(frozen=True, slots=True)
class FunctionTarget:
    """What a function should say: a label, a set or list of labels, ``OtherThan(label)``, or a range of values.

    Raises
    ------
    InvalidTypeError
        No target, or one that a function cannot be asked for.
    """

    target: Any

    def __post_init__(self) -> None:
        if self.target is None or isinstance(self.target, np.ndarray | pd.Series | pd.Index):
            but = f"target is {type(self.target).__name__}"
            raise InvalidTypeError("target", "a label or a set of labels", but, "Write target={...}.")
        if isinstance(self.target, Probability | Disagreement):
            but = f"target is {self.target!r}"
            then = "Give the fitted model, or wrap the threshold into the function."
            raise InvalidTypeError("target", "a label or a range of values, as the model is a function", but, then)
        if isinstance(self.target, _COLLECTIONS) and not self.target:
            raise InvalidValueError("target", "some label", f"target is {self.target!r}", "Name what is wanted.")

    def holds(self, predictions: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which labels or values are wanted, (n,)."""
        check_kind(_WHO, predictions, self.target)
        return meets_raw_target(_WHO, predictions, self.target)

    def text(self) -> str:
        """Return the target as a person would write it."""
        if isinstance(self.target, _RANGES):
            return parse_target(self.target, None).text()
        named = " or ".join(map(str, labels_named(self.target)))
        if isinstance(self.target, OtherThan):
            return f"other than {named}"
        return named


@final
@dataclass(frozen=True, slots=True)
class FunctionOracle:
    """Ask a function for predictions of raw rows, as :class:`~ceopt.oracle.model.ModelOracle` asks a model.

    Parameters
    ----------
    ask
        From a frame with the columns and dtypes of the space to labels or values (n,).
    space
        The raw columns.
    """

    ask: Callable[[pd.DataFrame], Any]
    space: FeatureSpace

    def predict(self, frame: pd.DataFrame) -> NDArray[Any]:
        """Return the labels or values of raw rows (n, d), shape (n,).

        Raises
        ------
        InvalidValueError
            Another shape, or a missing value.
        """
        return predictions_of(_WHO, self.ask, frame)

    def meets(self, frame: pd.DataFrame, target: FunctionTarget) -> NDArray[np.bool_]:
        """Return whether the prediction of each raw row meets the target, (n,)."""
        return self.judge(frame, target)[1]

    def judge(self, frame: pd.DataFrame, target: FunctionTarget) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return predictions of raw rows and whether they meet the target, with one call for all."""
        predictions = self.predict(frame)
        return predictions, target.holds(predictions)


def labels_named(target: Any) -> list[Any]:
    """Return the labels that a target names, also where it is any other than one."""
    if isinstance(target, OtherThan):
        return [target.label]
    if isinstance(target, _COLLECTIONS):
        return list(target)
    return [target]

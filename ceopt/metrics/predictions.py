"""Predictions of a model for rows of any origin, and whether they are what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.predictors.representation import AbstractRepresentation
from ceopt.formulations.space.dtypes import is_number_dtype
from ceopt.formulations.space.space import FeatureSpace
from ceopt.formulations.targets import (
    AtLeast,
    AtMost,
    Between,
    Disagreement,
    OtherThan,
    Probability,
    Values,
    one_of,
    parse_target,
)
from ceopt.metrics.rows import as_array, frame_of
from ceopt.solvers.checks import plain
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, each_of

__all__ = ["accepted", "alike", "predicted", "table_of", "wanted"]

_RANGES = (AtLeast, AtMost, Between)


def table_of(table: Any, space: FeatureSpace | None) -> pd.DataFrame | NDArray[Any]:
    """Return rows as a model is asked about them: a frame where the columns have names, else an array (n, d)."""
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


def alike(table: Any, other: Any) -> Any:
    """Return a frame with its columns in the order of another table or row with names; all else as it is.

    A model that was fitted on an array knows columns by their places alone, while metrics match them by name.
    """
    if isinstance(other, pd.DataFrame | pd.Series):
        names = other.columns if isinstance(other, pd.DataFrame) else other.index
        return _ordered(table, list(names))
    if isinstance(other, Mapping):
        return _ordered(table, list(other))
    return table


def _ordered(table: Any, names: list[Any]) -> Any:
    same = isinstance(table, pd.DataFrame) and len(names) == table.shape[1] and set(names) == set(table.columns)
    return table[names] if same else table


def predicted(who: str, model: Any, table: Any, space: FeatureSpace | None = None) -> NDArray[Any]:
    """Return what a model says of each row, (n,): a label or, of a regressor, a value.

    A function gets the rows as they were given, a frame or an array; beside a space always a frame. A fitted model gets
    the columns that it was fitted on, by name where it knows names, and an array where it does not.

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
        ``predict`` returns another shape than a value for each row, or missing values.
    """
    rows = table_of(table, space)
    if hasattr(model, "predict") and not isinstance(model, type):
        if space is None:
            predictions = model.predict(_given(who, model, rows))
        else:
            predictions = _oracle(model, space).predict(rows)
    elif callable(model) and not isinstance(model, type):
        predictions = model(rows)
    else:
        raise InvalidTypeError(
            who, "a fitted model or a function of rows", f"model is {model!r}", "Give clf, or clf.predict."
        )
    labels = np.asarray(predictions)
    if labels.shape == (len(rows), 1):
        labels = labels[:, 0]
    if labels.shape != (len(rows),):
        raise InvalidValueError(
            who, f"one label for {each_of(len(rows), 'row')}", f"predict returned {_shape(predictions, labels)}",
            "Give a function that returns labels, such as lambda rows: proba(rows).argmax(axis=1).",
        )  # fmt: skip
    if pd.isna(labels).any():
        raise InvalidValueError(who, "a label for every row", "predict returned a missing one", "Correct the model.")
    return labels


def _shape(predictions: Any, labels: NDArray[Any]) -> str:
    """Return what a function gave that gave no column: a shape, or what is no list at all."""
    if labels.ndim == 0:
        return f"one {type(predictions).__name__}" if predictions is not None else "None"
    return f"shape {labels.shape}"


def _oracle(model: Any, space: FeatureSpace) -> Any:
    from ceopt.checking.answer_check import ModelOracle  # loads the readers, which nobody needs who asks a function

    return ModelOracle(model, space)


def _given(who: str, model: Any, rows: Any) -> Any:
    if isinstance(rows, pd.DataFrame):
        names = getattr(model, "feature_names_in_", None)
        if names is not None:
            return rows[list(names)]
        if all(map(is_number_dtype, rows.dtypes)):
            return rows.to_numpy(dtype=np.float64)
        if isinstance(model, AbstractRepresentation):
            raise InvalidValueError(
                who, "a space to ask a representation about categories", "space is None", "Pass space=."
            )
        return rows
    names = getattr(model, "feature_names_in_", None)
    if names is None or len(names) != rows.shape[1]:
        return rows
    return pd.DataFrame(rows, columns=list(names))


def accepted(who: str, model: Any, table: Any, target: Any, space: FeatureSpace | None = None) -> NDArray[np.bool_]:
    """Return whether the model's decision about each row is what was asked for, (n,).

    Parameters
    ----------
    who, model, table, space
        As for :func:`predicted`.
    target
        A label, a set or list of labels, ``OtherThan(label)``; of a regressor ``AtLeast``, ``AtMost``, ``Between``;
        with a space and a fitted model everything that :func:`ceopt.explain` takes.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As :func:`predicted`; no target; probabilities where labels are needed.
    UnknownNameError
        A label that a fitted model does not have. A function's labels are not known.
    """
    if target is None:
        raise InvalidTypeError(who, "a target", "target is None", "Give the label that counterfactuals should have.")
    if isinstance(target, Probability | Disagreement):
        if space is None:
            raise InvalidValueError(who, f"a space to check {target!r}", "space is None", "Pass space=.")
        oracle = _oracle(model, space)
        met: NDArray[np.bool_] = oracle.meets(table_of(table, space), parse_target(target, oracle.labels))
        return met
    classes = getattr(model, "classes_", getattr(model, "labels", None))
    if classes is not None and not isinstance(target, _RANGES):
        parse_target(target, tuple(map(plain, classes)))  # a label that the model does not have would never be met
    return wanted(who, predicted(who, model, table, space), target)


def wanted(who: str, labels: NDArray[Any], target: Any) -> NDArray[np.bool_]:
    """Return which labels or values are what was asked for."""
    if isinstance(target, _RANGES):
        bounds = parse_target(target, None)
        assert isinstance(bounds, Values)  # noqa: S101 - what a range is parsed to
        return bounds.holds(labels)
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        raise InvalidValueError(
            who, f"labels, of which {target!r} is one", f"predict returned {labels[labels != np.floor(labels)][0]}",
            "Give predict, not probabilities; of a regressor ask for AtLeast(value).",
        )  # fmt: skip
    if isinstance(target, OtherThan):
        return ~one_of(labels, [target.label])
    return one_of(labels, target if isinstance(target, set | frozenset | list) else [target])

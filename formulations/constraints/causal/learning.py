"""Equations learned from data: one regressor per column, fitted on its parents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ceopt.formulations.constraints.causal.graph import ordered, parents_in
from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.space import FeatureSpace, column_coordinates, complete_rows, require_space
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["learned"]


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
    if space is not None:
        require_space("Causal.learn", space)
    if space is None:
        known = FeatureSpace(infer_features(data[used], steps=False))
    else:
        known = space
    part = complete_rows("Causal.learn", FeatureSpace([known[name] for name in used]), data)
    return {
        column: (_fitted(column, list(parents[column]), part, regressor, known), [*parents[column]]) for column in order
    }


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

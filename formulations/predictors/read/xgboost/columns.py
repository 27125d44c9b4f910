"""Columns as XGBoost sees them: codes of its own for categories, and numbers that stand for a missing value."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OrdinalEncoder

from ceopt.formulations.predictors.read.model_input import refuse
from ceopt.formulations.space.encoding import Column, Encoding
from ceopt.formulations.space.space import FeatureSpace

__all__ = ["category_tables", "check_codes", "coder", "missing_numbers"]


def category_tables(entries: Sequence[Mapping[str, Any]]) -> dict[int, list[Any]]:
    """Return the categories that a model names, in the order of their codes, by the place of the column.

    Raises
    ------
    UnsupportedModelError
        Categories are numbers out of order, which no fitted encoder of scikit-learn can hold.
    """
    tables: dict[int, list[Any]] = {}
    for place, entry in enumerate(entries):
        if "offsets" in entry and len(entry["offsets"]) > 1:
            text = bytes(entry["values"])
            ends = entry["offsets"]
            tables[place] = [text[a:b].decode() for a, b in itertools.pairwise(ends)]
        elif "offsets" not in entry and entry["values"]:
            tables[place] = entry["values"]
            if tables[place] != sorted(tables[place]):
                raise refuse(
                    "categories that are numbers to be in ascending order",
                    f"column {place + 1} of the model has {', '.join(map(str, tables[place]))}",
                    "Sort the categories of the column, or write them as text, and fit again.",
                )  # fmt: skip
    return tables


def coder(tables: Mapping[int, list[Any]], names: Sequence[str], n_inputs: int) -> ColumnTransformer:
    """Return what the library does first, as a fitted step: it codes categories by the model's own tables."""
    row: Any = pd.DataFrame(
        [[tables[place][0] if place in tables else 0.0 for place in range(n_inputs)]],
        columns=list(names) or range(n_inputs),
    )
    parts: list[Any] = []
    for place in range(n_inputs):
        table = tables.get(place)
        if table is None:
            part = "passthrough"
        else:
            part = OrdinalEncoder(categories=[np.array(table)])
        parts.append((str(place), part, [place]))
    return ColumnTransformer(parts).fit(row if names else row.to_numpy())


def check_codes(column: Column, space: FeatureSpace, *, named: bool) -> None:
    """Refuse a column of categories whose codes in the library are not those that the encoding gives.

    Parameters
    ----------
    column
        A column that the model takes as categories.
    space
        The raw columns.
    named
        Whether the model has their names.

    Raises
    ------
    UnsupportedModelError
        Model and frame code it differently, it is a number, or its codes are not 0, 1, ...
    """
    if column.feature is None:
        return
    feature = space[column.feature]
    if named != isinstance(feature.pandas_dtype, pd.CategoricalDtype):
        raise refuse(
            "categories that model and frame code alike",
            f"column {column.feature!r} has dtype {feature.pandas_dtype} and the model "
            f"{'names its categories' if named else 'does not name its categories'}",
            "Give the column dtype category in the space (on the command line, by --space)." if named else
            "Fit the model with xgboost 3.1 or later on a frame, or encode the column by an OrdinalEncoder.",
        )  # fmt: skip
    if column.table is None:
        raise refuse(
            "levels in a column of categories", f"column {column.feature!r} is {feature.kind} in the space",
            f"Declare it with space.update({column.feature!r}, kind='categorical', levels=[...]).",
        )  # fmt: skip
    for value in column.table:
        if value < 0 or value != np.floor(value):  # the library would drop the fraction; NaN is no level in reach
            if np.isnan(value):
                continue
            raise refuse(
                "codes 0, 1, ... in a column of categories", f"column {column.feature!r} holds {value}",
                "Code its levels by whole numbers from 0, and fit again.",
            )  # fmt: skip


def missing_numbers(own: float | None, encoding: Encoding) -> list[frozenset[float]]:
    """Return, per column, which of the numbers that it can hold stand for a missing value.

    Parameters
    ----------
    own
        What the estimator says that is missing; compared in float32.
    encoding
        What it sees. Zeros of a sparse matrix are not stored, so they are missing too.
    """
    numbers = {0.0} if encoding.sparse else set()
    numbers |= set() if own is None or np.isnan(own) else {float(np.float32(own))}
    return [frozenset(number for number in numbers if _holds(column, number)) for column in encoding.columns]


def _holds(column: Column, number: float) -> bool:
    """Whether a column can hold a number; yes of every number, whose bounds may widen."""
    if column.feature is not None and column.table is None:
        return True
    count = 1 if column.table is None else len(column.table)
    return number in column.seen(np.arange(count), "float32")

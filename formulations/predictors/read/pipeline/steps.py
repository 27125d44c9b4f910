"""Steps of scikit-learn in front of an estimator: encoders, scalers, and what keeps, drops or reorders columns.

What an encoder makes of a level is read off probe rows. A scaler is its ``transform``, in the order of its operations
and in its float width:

=============== ========================== ==========================
class           dense                      sparse
=============== ========================== ==========================
StandardScaler  (x - mean) / scale         x * (1 / scale)
MinMaxScaler    x * scale + min, then clip refused by the library
MaxAbsScaler    x / scale, then clip       x * (1 / scale), then clip
RobustScaler    (x - center) / scale       x * (1 / scale)
=============== ========================== ==========================

StandardScaler rounds its constants to the width of its input first, and so do the ends of a clip; the others compute in
the wider of both widths and round the result.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from ceopt.formulations.predictors.read.model_input import Rule, Trace, UnseenLevelError, refuse, width
from ceopt.formulations.space.encoding import Column
from ceopt.formulations.space.step import Operation, Step

__all__ = ["ENCODERS", "IDENTITIES", "SCALERS", "check_encoder", "unseen_levels"]

_SELECTORS: Final = (
    "GenericUnivariateSelect", "RFE", "RFECV", "SelectFdr", "SelectFpr", "SelectFromModel", "SelectFwe", "SelectKBest",
    "SelectPercentile", "SequentialFeatureSelector", "VarianceThreshold",
)  # fmt: skip
Operations = Iterator[tuple[Operation, Any]]


def _impute(imputer: Any, before: Trace, output: Any) -> Sequence[Column]:
    """Keep the columns that had a value at fitting, then one constant 0 per column that had a gap."""
    missing = imputer.missing_values
    if not (missing is None or missing is pd.NA or (isinstance(missing, float) and math.isnan(missing))):
        for column in before.numbers():
            raise refuse(
                "imputers of missing values alone",
                f"SimpleImputer replaces {missing!r} in the numeric column {column.feature!r}",
                "Replace that number in the data before the model is fitted.",
            )  # fmt: skip
    if imputer.add_indicator:
        flags = len(imputer.indicator_.features_)
    else:
        flags = 0
    kept = list(before.columns)
    if len(kept) + flags != output.shape[1]:  # columns without any value at fitting are dropped
        kept = [column for column, fill in zip(kept, imputer.statistics_, strict=True) if not pd.isna(fill)]
    return [*kept, *[Column(None)] * flags]


def _function(step: Any, before: Trace, output: Any) -> Sequence[Column]:  # noqa: ARG001
    if step.func is not None:
        name = getattr(step.func, "__name__", repr(step.func))
        raise refuse(
            "functions that are the identity", f"FunctionTransformer has func={name}",
            "Apply the function to the data before the model is fitted, and describe its result in the space.",
        )  # fmt: skip
    return before.columns


def _select(step: Any, before: Trace, output: Any) -> Sequence[Column]:  # noqa: ARG001
    return [before.columns[place] for place in step.get_support(indices=True)]


IDENTITIES: Final[Mapping[str, Rule]] = {
    "FunctionTransformer": _function,
    "SimpleImputer": _impute,
    **dict.fromkeys(_SELECTORS, _select),
}


def check_encoder(encoder: Any, before: Trace) -> None:
    """Refuse what an encoder's table could not hold, before it runs.

    Raises
    ------
    UnsupportedModelError
        It groups infrequent levels, or encodes a number.
    """
    name = type(encoder).__name__
    for option in ("min_frequency", "max_categories"):
        if getattr(encoder, option, None) is not None:
            raise refuse(
                "encoders that keep every level apart", f"{name} has {option}={getattr(encoder, option)!r}",
                f"Group infrequent levels in the data, then fit {name} without {option}.",
            )  # fmt: skip
    for column in before.numbers():
        assert column.feature is not None  # noqa: S101 - a number is one of a column
        kind = before.space[column.feature].kind
        raise refuse(
            f"levels in the columns of {name}", f"column {column.feature!r} is {kind} in the space",
            f"Declare it with space.update({column.feature!r}, kind='categorical', levels=[...]), or 'ordinal' or "
            "'binary'.",
        )  # fmt: skip


def unseen_levels(encoder: Any, before: Trace) -> None:
    """Name the level that made an encoder refuse the probe rows, if that is why.

    Raises
    ------
    UnsupportedModelError
        A column has a level that the encoder was not fitted on.
    """
    for place, (column, categories) in enumerate(zip(before.columns, encoder.categories_, strict=True)):
        if column.feature is None:
            continue
        known = set(categories.tolist())
        for rank, value in enumerate(before.levels_seen(place)):
            if value not in known:
                level = before.space[column.feature].levels[rank]
                error = UnseenLevelError(
                    "The model reader",
                    f"levels that {type(encoder).__name__} was fitted on",
                    f"column {column.feature!r} has none, {level!r} among them",
                    "Give the space the levels that the model was fitted on.",
                )
                error.unseen = (column.feature, rank)
                raise error


def _one_hot(encoder: Any, before: Trace, output: Any) -> Sequence[Column]:  # noqa: ARG001
    if encoder.drop_idx_ is not None:
        dropped = encoder.drop_idx_
    else:
        dropped = [None] * len(encoder.categories_)
    columns: list[Column] = []
    for column, categories, drop in zip(before.columns, encoder.categories_, dropped, strict=True):
        columns += [column] * (len(categories) - (drop is not None))
    return columns


def _ordinal(encoder: Any, before: Trace, output: Any) -> Sequence[Column]:  # noqa: ARG001
    return before.columns


ENCODERS: Final[Mapping[str, Rule]] = {"OneHotEncoder": _one_hot, "OrdinalEncoder": _ordinal}


def _standard(scaler: Any, place: int, dtype: np.dtype[Any], *, sparse: bool) -> Operations:
    if sparse:
        if scaler.scale_ is not None:
            yield "multiply", (1 / scaler.scale_)[place]
        return
    if scaler.with_mean:
        yield "subtract", scaler.mean_.astype(dtype)[place]
    if scaler.with_std:
        yield "divide", scaler.scale_.astype(dtype)[place]


def _min_max(scaler: Any, place: int, dtype: np.dtype[Any], *, sparse: bool) -> Operations:  # noqa: ARG001
    yield "multiply", scaler.scale_[place]
    yield "add", scaler.min_[place]
    if scaler.clip:
        yield "at_least", dtype.type(scaler.feature_range[0])
        yield "at_most", dtype.type(scaler.feature_range[1])


def _max_abs(scaler: Any, place: int, dtype: np.dtype[Any], *, sparse: bool) -> Operations:
    yield ("multiply", (1.0 / scaler.scale_)[place]) if sparse else ("divide", scaler.scale_[place])
    if getattr(scaler, "clip", False):
        yield "at_least", dtype.type(-1.0)
        yield "at_most", dtype.type(1.0)


def _robust(scaler: Any, place: int, dtype: np.dtype[Any], *, sparse: bool) -> Operations:  # noqa: ARG001
    if scaler.with_centering and not sparse:
        yield "subtract", scaler.center_[place]
    if scaler.with_scaling:
        yield ("multiply", (1.0 / scaler.scale_)[place]) if sparse else ("divide", scaler.scale_[place])


_OPERATIONS: Final = {
    "MaxAbsScaler": _max_abs,
    "MinMaxScaler": _min_max,
    "RobustScaler": _robust,
    "StandardScaler": _standard,
}


def _scale(scaler: Any, before: Trace, output: Any) -> Sequence[Column]:
    name = type(scaler).__name__
    scaled = []
    for place, (column, dtype) in enumerate(zip(before.columns, width(output), strict=True)):
        if column.feature is None or column.table is not None:
            scaled.append(column)
            continue
        steps = list(column.steps)
        if (steps[-1].dtype if steps else "float64") != dtype:
            steps.append(Step("cast", dtype=dtype))
        for operation, operand in _OPERATIONS[name](scaler, place, np.dtype(dtype), sparse=before.is_sparse):
            value: Any = np.asarray(operand)[()]  # a NumPy scalar keeps its own width
            if not np.isfinite(value) or (operation in {"divide", "multiply"} and not value > 0):
                raise refuse(
                    "scalers with finite, positive scales", f"{name} has {value} for column {column.feature!r}",
                    "Fit it on data in which the column varies and is finite.",
                )  # fmt: skip
            steps.append(Step(operation, value, dtype))
        scaled.append(dataclasses.replace(column, steps=tuple(steps)))
    return scaled


SCALERS: Final[Mapping[str, Rule]] = dict.fromkeys(_OPERATIONS, _scale)

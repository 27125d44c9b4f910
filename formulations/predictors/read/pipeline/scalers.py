"""Scalers of scikit-learn: the operations of each ``transform``, in its order and float width.

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
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ceopt.formulations.predictors.read.pipeline.trace import Rule, Trace, refuse, width
from ceopt.formulations.space.encoding import Column
from ceopt.formulations.space.step import Operation, Step

__all__ = ["SCALERS"]

Operations = Iterator[tuple[Operation, Any]]


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

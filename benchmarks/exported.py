"""A fitted pipeline as one ONNX file, string columns and all, and its labels as onnxruntime has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn.pipeline import Pipeline


@dataclass(frozen=True)
class OnnxFile:
    """The bytes of a file and a session of the runtime that judges answers to it."""

    content: bytes
    session: Any = field(repr=False)

    @classmethod
    def of(cls, pipeline: Pipeline, data: pd.DataFrame) -> OnnxFile:
        """Write a pipeline with one input for each raw column, of the column's own type."""
        inputs = [(name, _type_of(data[name])) for name in data.columns]
        content = to_onnx(pipeline, initial_types=inputs, options={"zipmap": False}).SerializeToString()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        return cls(content, onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"]))

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the labels of raw rows, with onnxruntime alone."""
        feeds = {}
        for given in self.session.get_inputs():
            column = frame[given.name].to_numpy().reshape(-1, 1)
            feeds[given.name] = column.astype(_DTYPES[given.type])
        return np.asarray(self.session.run([self.session.get_outputs()[0].name], feeds)[0])


_DTYPES = {"tensor(string)": object, "tensor(int64)": np.int64, "tensor(float)": np.float32}


def _type_of(column: pd.Series[Any]) -> Any:
    if pd.api.types.is_integer_dtype(column):
        return Int64TensorType([None, 1])
    return FloatTensorType([None, 1]) if pd.api.types.is_float_dtype(column) else StringTensorType([None, 1])

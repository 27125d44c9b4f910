"""Networks that ceopt itself trains (``ceopt.training``), read as the ONNX file that they leave as."""

from __future__ import annotations

from typing import Any

from ceopt.formulations.predictors.readers.onnx import open_model as open_onnx


def open_model(model: Any) -> Any:
    """Return what predicts for a model that can be written as an ONNX file; any other as it is."""
    if hasattr(model, "to_onnx"):
        return open_onnx(model.to_onnx())
    return model

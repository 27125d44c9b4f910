"""Hashes by which a result says what model and data it is about."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ceopt.formulations.content_hash import content_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["fingerprints_of", "model_content"]


def fingerprints_of(model: Any, data: pd.DataFrame | None) -> Mapping[str, str]:
    """Return the hashes of a model and of data; without what was not given or cannot be pickled."""
    found = {"model": model_content(model)}
    if data is not None:
        found["data"] = content_of(data)
    return {name: content for name, content in found.items() if content is not None}


def model_content(model: Any) -> str | None:
    """Return the content of a model, of a file that of its bytes; None without a file, or where none can be taken."""
    if not isinstance(model, str | Path):
        return content_of(model)
    if not Path(model).is_file():
        return None
    return content_of(Path(model).read_bytes())

"""A hull rule in a sentence, and in code that fits on a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ceopt.formulations.constraints.hull.points import HullPoints
from ceopt.formulations.digits import digits

__all__ = ["sentence_of", "short_text"]

_OPTIONS = {"radius": 0.0, "norm": "l1", "scale": "range", "clusters": None, "enlarge": False, "penalty": None}
_OPTIONS |= {"name": None, "sample": None}


def sentence_of(hull: Any, points: HullPoints | None) -> str:
    """Return "within 0.1 (l1, columns by range) of the hull of 312 rows in 3 clusters"."""
    if isinstance(hull.scale, Mapping):
        scale = "their own scales"
    else:
        scale = hull.scale
    if scale == "none":
        columns = "raw columns"
    else:
        columns = f"columns by {scale}"
    rows = _rows(hull, points)
    if hull.penalty is None:
        charge = ""
    else:
        charge = f", at {digits(hull.penalty)} for each unit of l1 off it"
    if np.isinf(hull.radius) or (hull.penalty is not None and hull.radius == 0.0):
        return f"at any distance ({columns}) from the hull of {rows}{charge}"
    if hull.radius == 0.0:
        return f"in the hull of {rows}"
    return f"within {digits(hull.radius)} ({hull.norm}, {columns}) of the hull of {rows}{charge}"


def _rows(hull: Any, points: HullPoints | None) -> str:
    if isinstance(hull.clusters, int | np.integer):
        count = hull.clusters
    else:
        count = None
    if points is not None:
        rows = f"{points.count} rows"
        count = len(points.labels)
        if hull.sample is not None and hull.sample < points.given:
            rows = f"a sample of {points.count} of {points.given} rows"
    else:
        if hull.data is None:
            rows = "the rows of the target class"
        else:
            rows = f"{len(hull.data)} rows"
        if hull.sample is not None:
            rows = f"a sample of at most {hull.sample} of {rows}"
    if hull.clusters is None:
        return rows
    if count is None:
        return f"{rows} in clusters"
    return f"{rows} in {count} cluster{'' if count == 1 else 's'}"


def short_text(hull: Any, points: HullPoints | None) -> str:
    """Return "Hull(<312 x 20>, radius=0.1, clusters=3)": what differs from the defaults, frames by their size."""
    given = []
    if hull.data is not None:
        given = [f"<{' x '.join(map(str, hull.data.shape))}>"]
    elif points is not None:
        given = [f"<{points.count} rows>"]
    for word, default in _OPTIONS.items():
        value = getattr(hull, word)
        if word == "clusters" and hasattr(value, "fit_predict"):
            given.append(f"clusters={type(value).__name__}()")
        elif word == "clusters" and np.ndim(value) == 1:
            given.append(f"clusters=<{len(value)} labels>")
        elif value != default:
            given.append(f"{word}={value!r}")
    return f"Hull({', '.join(given)})"

"""Random columns and people: every kind of column, wide and narrow, with what each may become written out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.space import Feature, FeatureSpace

Floats = NDArray[np.float64]
Rng = np.random.Generator

#: Kinds of columns whose values can all be written out.
LATTICE = ("small", "small", "even", "stepped", "ordinal", "ranked", "categorical", "coded", "binary", "flag")
LEVELS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "ordinal": ("ordinal", ("low", "mid", "high", "top")),
    "ranked": ("ordinal", (1, 2, 5)),
    "categorical": ("categorical", ("cook", "nurse", "vet")),
    "coded": ("categorical", (10, 30, 20)),
    "binary": ("binary", ("no", "yes")),
    "flag": ("binary", (False, True)),
}
#: Levels that a model takes as numbers without an encoder.
NUMERIC = ("small", "even", "stepped", "ranked", "flag", "coarse", "wide", "free", "open", "near32", "near64")


def pick(rng: Rng, *items: Any) -> Any:
    """Return one of the items."""
    return items[int(rng.integers(len(items)))]


def is_lattice(feature: Feature) -> bool:
    """Tell whether all values can be written out: levels, and few steps."""
    if feature.is_finite or not feature.mutable:
        return True
    step = step_of(feature)
    return step is not None and (feature.upper - feature.lower) / step <= 20


def step_of(feature: Feature) -> float | None:
    """Return by what a number moves at least."""
    return feature.step if feature.step is not None else 1.0 if feature.kind == "integer" else None


def draw_column(rng: Rng, name: str, sort: str) -> tuple[Feature, float]:
    """Return a column and the person's coordinate in it."""
    weight = pick(rng, 1.0, 1.0, 1.0, 2.0, (1.0, 3.0), (0.5, 2.0), (0.5, 0.0) if rng.uniform() < 0.2 else 1.0)
    common: dict[str, Any] = {"weight": weight, "mutable": bool(rng.uniform() > 0.08)}
    direction = pick(rng, "any", "any", "any", "any", "increasing", "decreasing")
    if sort in LEVELS:
        kind, levels = LEVELS[sort]
        way = "any" if kind == "categorical" else direction
        return Feature(name, kind=kind, levels=levels, direction=way, **common), float(rng.integers(len(levels)))
    low, high, step, home = _range(rng, sort)
    size = high - low if math.isfinite(high - low) else 8.0
    common |= {"mad": pick(rng, None, 0.0, size / 8, size / 3), "std": pick(rng, None, size / 5)}
    common |= {"range": size, "direction": direction, "step": step}
    common |= {"lower_inferred": home < low, "upper_inferred": home > high}
    kind = "integer" if sort in {"small", "even", "coarse", "wide"} else "continuous"
    return Feature(name, kind=kind, lower=low, upper=high, **common), home


def _range(rng: Rng, sort: str) -> tuple[float, float, float | None, float]:
    """Return bounds, step and the person's value of a column of numbers."""
    if sort in {"small", "even"}:
        low = float(rng.integers(-3, 3))
        high, step = low + float(rng.integers(2, 9)), 2.0 if sort == "even" else None
        return low, high, step, float(rng.integers(low - (rng.uniform() < 0.1), high + 1 + (rng.uniform() < 0.1)))
    if sort == "stepped":
        step = float(pick(rng, 0.5, 0.25, 0.1))
        low = float(rng.integers(-4, 4)) / 4
        high = low + step * float(rng.integers(2, 8))
        return low, high, step, low + step * float(rng.integers(0, 2)) + pick(rng, 0.0, 0.0, step / 4)
    if sort == "free":
        low = float(rng.integers(-8, 4)) / 4
        size = float(pick(rng, 1.0, 5.0, 5.0, 300.0))
        return low, low + size, None, low + size * float(rng.integers(0, 17)) / 16
    if sort in {"near32", "near64"}:  # a dozen neighbouring floats, and those of the other width between them
        low = float(np.float32(10.0 ** rng.uniform(-2, 6)))
        gap = float(np.spacing(np.float32(low) if sort == "near32" else np.float64(low)))
        return low, low + 12.0 * gap, None, low + gap * float(rng.integers(0, 13))
    if sort == "open":
        return -math.inf, math.inf, None, float(rng.integers(-12, 12)) / 4
    size = float(10.0 ** rng.uniform(8, 10)) // 1.0
    low = float(pick(rng, 0.0, 0.0, -size, 1.6e9))
    if sort == "coarse":
        step = size // float(rng.integers(3, 9))
        return low, low + size, step, low + step * float(rng.integers(0, 4)) + float(rng.integers(0, 5))
    assert sort == "wide"
    return low, low + size, None, low + float(rng.integers(0, int(size)))


def reach(feature: Feature, home: float) -> tuple[float, float]:
    """Return the least and the greatest coordinate that the person may come to."""
    if feature.is_finite:
        low, high = 0.0, len(feature.levels) - 1.0
    else:
        low = min(feature.lower, home) if feature.lower_inferred else feature.lower
        high = max(feature.upper, home) if feature.upper_inferred else feature.upper
    if not feature.mutable or feature.direction == "increasing":
        low = home
    if not feature.mutable or feature.direction == "decreasing":
        high = home
    return low, high


def lattice(feature: Feature, home: float) -> list[float]:
    """Return every value of a column that can be written out."""
    low, high = reach(feature, home)
    if feature.is_finite:
        return [float(k) for k in range(len(feature.levels)) if low <= k <= high]
    if low == high:
        return [home]
    step = step_of(feature)
    assert step is not None
    steps = range(math.floor((low - home) / step) - 1, math.ceil((high - home) / step) + 2)
    values = [home if k == 0 else round(home + k * step, 9) for k in steps]  # 0.1 + 0.2 is 0.3
    return [value for value in values if low <= value <= high]


def draw_space(rng: Rng, sorts: Sequence[str]) -> tuple[FeatureSpace, Floats]:
    """Return a space and a person."""
    columns = [draw_column(rng, name, sort) for name, sort in zip("abcdefgh", sorts, strict=False)]
    return FeatureSpace([feature for feature, _ in columns]), np.array([home for _, home in columns])


# ---- raw rows --------------------------------------------------------------------------------------------------------
def frame_of(space: FeatureSpace, points: Floats) -> pd.DataFrame:
    """Return coordinates (n, d) as a frame in raw units."""
    columns: dict[str, Any] = {}
    for j, feature in enumerate(space):
        if feature.is_finite:
            levels = feature.levels
            kind = object if isinstance(levels[0], str) else type(levels[0])
            columns[feature.name] = np.array(levels, dtype=kind)[points[:, j].astype(int)]
        else:
            columns[feature.name] = points[:, j].astype(np.int64) if feature.kind == "integer" else points[:, j]
    return pd.DataFrame(columns)


def raw(space: FeatureSpace, point: Floats) -> dict[str, Any]:
    """Return one person in raw units."""
    row: dict[str, Any] = {}
    for feature, value in zip(space, point.tolist(), strict=True):
        if feature.is_finite:
            row[feature.name] = feature.levels[int(value)]
        else:
            row[feature.name] = int(value) if feature.kind == "integer" else value
    return row


def sample(rng: Rng, space: FeatureSpace, home: Floats, n: int) -> Floats:
    """Draw people (n, d) from all that the columns hold, wherever this one may go."""
    columns = []
    for feature, value in zip(space, home.tolist(), strict=True):
        if feature.is_finite:
            columns.append(rng.integers(0, len(feature.levels), n).astype(float))
            continue
        low = feature.lower if math.isfinite(feature.lower) else value - 5.0
        high = feature.upper if math.isfinite(feature.upper) else value + 5.0
        if (step := feature.step) is not None:
            low, high = math.ceil((low - value) / step), math.floor((high - value) / step)
            columns.append(value + step * rng.integers(low, max(high, low) + 1, n))
        elif feature.kind == "integer":
            columns.append(rng.integers(int(low), int(high) + 1, n).astype(float))
        else:
            columns.append(rng.uniform(low, high, n))
    points = np.stack(columns, axis=1)
    points[0] = home
    return points


def unit(space: FeatureSpace, points: Floats) -> Floats:
    """Return columns (n, d) brought to 0..1, for labels that depend on all of them."""
    low, high = points.min(axis=0), points.max(axis=0)
    return np.asarray((points - low) / np.where(high > low, high - low, 1.0))


def coordinates_of(space: FeatureSpace, row: Any) -> Floats:
    """Return an answer in raw units as coordinates (d,), by the levels' own places."""
    found = []
    for feature in space:
        value = row[feature.name]
        found.append(float(list(feature.levels).index(value)) if feature.is_finite else float(value))
    return np.array(found)

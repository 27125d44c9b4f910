"""Rows on which a reading is compared with its library: of the data or across the space, and beside trees' thresholds.

A row that is moved to a threshold of a node on its own path still reaches that node: the splits above it leave room
for every threshold below them. So each of these rows asks about the side of one threshold that decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.read.pipeline.trace import probe
from ceopt.formulations.predictors.representation.predictor import Predictor
from ceopt.formulations.predictors.representation.representation import Tree, TreeEnsemble
from ceopt.formulations.predictors.representation.tree import Floats
from ceopt.formulations.space.encoding import Column
from ceopt.formulations.space.feature import Feature

__all__ = ["trials"]

T = TypeVar("T")

_PLAIN: Final = 48
_THRESHOLDS: Final = 40


def trials(predictor: Predictor, data: Floats | None = None) -> Floats:
    """Return rows as coordinates (n, d), at most some hundred and fifty, that the library takes.

    Parameters
    ----------
    predictor
        A model as it was read.
    data
        Rows of the user's data as coordinates, if there are some.
    """
    plain = _held(predictor, _plain(predictor, data))
    rng, rows = np.random.default_rng(0), [plain]
    forests = _spread(predictor.forests, _THRESHOLDS)
    for part in forests:
        core = part.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - what forests are
        if not len(plain):
            break
        seen = core.seen(part.encoding.matrix(plain))
        for tree in _spread(core.trees, max(1, _THRESHOLDS // len(forests))):
            place = int(rng.integers(len(plain)))
            nodes = [node for node in _path(tree, seen[place]) if tree.subset[node] < 0]
            if nodes:
                rows.append(_beside(part, core, tree, int(rng.choice(nodes)), plain[place]))
    return _held(predictor, np.concatenate(rows))


def _plain(predictor: Predictor, data: Floats | None) -> Floats:
    """Return some rows of the data, or of the whole space, without levels that the pipeline fails on."""
    unseen = predictor.unseen
    if data is not None:
        known = np.ones(len(data), dtype=bool)
        for name, ranks in unseen.items():
            known &= ~np.isin(data[:, predictor.space.names.index(name)], list(ranks))
        if known.any():
            return data[_spread(np.flatnonzero(known).tolist(), _PLAIN)]
    rows = probe(predictor.space, unseen)
    return np.concatenate([rows[:3], rows[-(_PLAIN - 3) :]])


def _spread(items: Sequence[T], count: int) -> list[T]:
    """Return at most ``count`` of them, from the first to the last."""
    places = np.unique(np.linspace(0, len(items) - 1, min(count, len(items))).round().astype(int))
    return [items[place] for place in places]


def _path(tree: Tree, seen: Floats) -> list[int]:
    """Return the inner nodes that a row, as the splits see it, passes."""
    node, passed = 0, []
    while tree.feature[node] >= 0:
        passed.append(node)
        value, chosen = seen[tree.feature[node]], tree.subset[node]
        left = value in tree.sets[chosen] if chosen >= 0 else value <= tree.threshold[node]
        node = int(tree.left[node] if left else tree.right[node])
    return passed


def _beside(part: Predictor, core: TreeEnsemble, tree: Tree, node: int, row: Floats) -> Floats:
    """Return the row on both sides of the threshold of a node, as near as floats are; none if a level decides there."""
    column = part.encoding.columns[tree.feature[node]]
    if column.feature is None or column.table is not None or not column.is_affine:
        return np.empty((0, len(row)))
    feature = part.space[column.feature]
    values = _raw(column, _sides(float(tree.threshold[node]), core.input_dtype))
    values = np.unique(np.floor(values)) if feature.kind == "integer" else values
    if feature.kind == "integer":
        values = np.concatenate([values, values + 1.0])
    values = values[_inside(values, feature)]
    rows = np.tile(row, (len(values), 1))
    rows[:, part.space.names.index(column.feature)] = values
    return rows


def _sides(threshold: float, width: str) -> Floats:
    """Return the largest float of a width up to the threshold and the next one."""
    with np.errstate(over="ignore"):
        near = np.array(threshold).astype(width)
        last = near if near.astype(np.float64) <= threshold else np.nextafter(near, near.dtype.type(-np.inf))
        return np.array([last, np.nextafter(last, near.dtype.type(np.inf))], dtype=np.float64)


def _raw(column: Column, values: Floats) -> Floats:
    """Return raw numbers that the column's steps bring to the values, or within some roundings of them."""
    if not column.steps:
        return values
    slope, offset = column.affine()
    if slope == 0.0:
        return np.empty(0)
    with np.errstate(over="ignore", invalid="ignore"):
        raw = (values - offset) / slope
    return np.concatenate([raw, np.nextafter(raw, -np.inf), np.nextafter(raw, np.inf)])


def _inside(values: Floats, feature: Feature) -> NDArray[np.bool_]:
    low, high = feature.coordinate_limits
    return np.isfinite(values) & (values >= low) & (values <= high)


def _held(predictor: Predictor, rows: Floats) -> Floats:
    """Return the rows whose numbers every part of the model holds in its own float width."""
    kept = np.ones(len(rows), dtype=bool)
    for part in predictor.parts:
        width = getattr(part.core, "input_dtype", "float32")
        with np.errstate(over="ignore", invalid="ignore"):
            kept &= np.isfinite(part.encoding.matrix(rows).astype(width)).all(axis=1)
    return rows[kept]

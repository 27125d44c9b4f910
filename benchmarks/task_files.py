"""A question as plain files for libraries in environments of their own: columns, rows and a forest, without a pickle.

Needs numpy alone. Rows are coordinates, (n, d): a number itself, a level by its place in the column's list. The forest
is scikit-learn's in numpy: the same encoding, float32 columns, thresholds, and order of summation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["TaskFiles", "read_answers", "read_task", "write_answers", "write_task"]

LEAF = -1


@dataclass(frozen=True)
class TaskFiles:
    """A question: columns (name, kind, levels, whole, fixed, rising, lower, upper), rows, people and the forest."""

    columns: list[dict[str, Any]]
    target: int
    train: np.ndarray
    labels: np.ndarray
    people: np.ndarray
    arrays: Mapping[str, np.ndarray]

    def encoded(self, rows: np.ndarray) -> np.ndarray:
        """Return rows as the forest sees them: numbers and ranks scaled to [-0.5, 0.5], one-hot levels."""
        parts = []
        for place, column in enumerate(self.columns):
            values = np.asarray(rows[:, place], dtype=np.float64)
            if column["kind"] == "one_hot":
                parts.append((values[:, None] == np.arange(len(column["levels"]))).astype(np.float64))
            else:
                parts.append((values * column["scale"] + column["shift"])[:, None])
        return np.hstack(parts)

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes, (n, 2)."""
        X = self.encoded(np.asarray(rows, dtype=np.float64)).astype(np.float32)
        arrays = self.arrays
        trees = np.arange(len(arrays["feature"]))[None, :]
        nodes = np.zeros((len(X), trees.shape[1]), dtype=np.int64)
        places = np.arange(len(X))[:, None]
        while True:
            feature = arrays["feature"][trees, nodes]
            if (feature == LEAF).all():
                break
            goes_left = X[places, np.maximum(feature, 0)] <= arrays["threshold"][trees, nodes]
            below = np.where(goes_left, arrays["left"][trees, nodes], arrays["right"][trees, nodes])
            nodes = np.where(feature == LEAF, nodes, below)
        shares = np.cumsum(arrays["value"][trees, nodes], axis=1)[:, -1]
        return np.asarray(shares / trees.shape[1])


def write_task(
    folder: Path, *, columns: list[dict[str, Any]], target: int, forest: Any, seed: int, **rows: np.ndarray
) -> None:
    """Write a question; ``forest`` is scikit-learn's and was grown with the seed, ``rows``: train, labels, people."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "task.json").write_text(json.dumps({"columns": columns, "target": target}), encoding="utf-8")
    np.savez(folder / "rows.npz", **rows)
    grown = {"trees": np.array(forest.n_estimators), "depth": np.array(forest.max_depth or 0), "seed": np.array(seed)}
    np.savez(folder / "forest.npz", **grown, **_arrays([tree.tree_ for tree in forest.estimators_]))


def _arrays(trees: Sequence[Any]) -> dict[str, np.ndarray]:
    """Return the trees side by side, the shorter ones filled up with leaves that nothing leads to."""
    most = max(tree.node_count for tree in trees)
    shape = (len(trees), most)
    arrays = {
        "feature": np.full(shape, LEAF, dtype=np.int64),
        "threshold": np.zeros(shape),
        "left": np.zeros(shape, dtype=np.int64),
        "right": np.zeros(shape, dtype=np.int64),
        "value": np.zeros((*shape, trees[0].value.shape[2])),
    }
    for place, tree in enumerate(trees):
        is_leaf = tree.children_left == LEAF
        count = tree.node_count
        arrays["feature"][place, :count] = np.where(is_leaf, LEAF, tree.feature)
        arrays["threshold"][place, :count] = tree.threshold
        arrays["left"][place, :count] = tree.children_left
        arrays["right"][place, :count] = tree.children_right
        arrays["value"][place, :count] = tree.value[:, 0, :]
    return arrays


def read_task(folder: Path) -> TaskFiles:
    """Read what :func:`write_task` wrote."""
    said = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    with np.load(folder / "rows.npz") as rows, np.load(folder / "forest.npz") as forest:
        return TaskFiles(**said, **{name: rows[name] for name in rows.files}, arrays=dict(forest))


def write_answers(path: Path, records: list[dict[str, Any]]) -> None:
    """Write one record a person: status, answer (d coordinates, or None), seconds, cpu."""
    path.write_text(json.dumps(records), encoding="utf-8")


def read_answers(path: Path) -> list[dict[str, Any]]:
    """Read what :func:`write_answers` wrote."""
    records: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return records

"""One decision tree as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["Floats", "Tree", "as_numbers", "refuse_infinite"]

Floats: TypeAlias = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """One decision tree as arrays over its nodes; node 0 is the root.

    A row goes left iff ``x <= threshold``, or at a node with a set iff ``x`` is one of the set's values. Other tests
    are these: ``x < t`` is ``x <= np.nextafter(t, -inf)`` in float64, and ``>`` and ``>=`` exchange the children.

    ========= ========== ==========================================================
    field     shape      meaning
    ========= ========== ==========================================================
    feature   (nodes,)   column of the matrix that the node compares; -1 at leaves
    threshold (nodes,)   in units of the matrix, float64; ignored at leaves
    left      (nodes,)   node of the left child; ignored at leaves
    right     (nodes,)   node of the right child; ignored at leaves
    value     (nodes, K) scores of the leaf; ignored at inner nodes
    subset    (nodes,)   position in ``sets`` of the values that go left; -1: threshold
    sets                 sets of values, none empty
    ========= ========== ==========================================================

    Raises
    ------
    InvalidValueError
        Shapes differ, a number is not finite, a child is not a node, or the nodes do not form one tree.
    """

    feature: NDArray[np.intp]
    threshold: Floats
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    value: Floats
    subset: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    sets: tuple[frozenset[float], ...] = ()

    def __post_init__(self) -> None:
        checkpoint("reading the trees")
        for name, kind in (("feature", np.intp), ("threshold", float), ("left", np.intp), ("right", np.intp)):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=kind))
        subset = np.array(self.subset if self.sets else np.full(self.feature.shape, -1), dtype=np.intp)
        object.__setattr__(self, "subset", subset)
        value = np.array(self.value, dtype=float)
        object.__setattr__(self, "value", value[:, None] if value.ndim == 1 else value)
        nodes = self.feature.shape
        shapes = [nodes, self.threshold.shape, self.left.shape, self.right.shape, self.value.shape[:1], subset.shape]
        if len(set(shapes)) > 1 or len(nodes) != 1 or nodes[0] == 0 or self.value.ndim != 2:
            raise InvalidValueError("Tree", "arrays over the same nodes", f"their shapes are {shapes}", "Check them.")
        inner = self.inner
        if (subset >= len(self.sets)).any() or not all(self.sets):
            raise InvalidValueError(
                "Tree", "a set with values for each subset", "one is missing or empty", "Check them."
            )
        refuse_infinite("Tree", "threshold", self.threshold[inner])
        refuse_infinite("Tree", "value", self.value[~inner])
        children = np.concatenate([self.left[inner], self.right[inner]])
        if not np.array_equal(np.sort(children), np.arange(1, nodes[0])) or self._unreachable():
            raise InvalidValueError(
                "Tree", "every node but the root to be the child of one node", "left and right say otherwise",
                "Number the root 0 and give each node one parent.",
            )  # fmt: skip
        for name in ("feature", "threshold", "left", "right", "value", "subset"):
            getattr(self, name).setflags(write=False)

    @classmethod
    def from_mapping(cls, nested: Mapping[str, Any]) -> Self:
        """Read nested ``{feature, threshold, left, right}`` and ``{value: number or list}``, numbered root first."""
        feature: list[int] = []
        threshold: list[float] = []
        left: list[int] = []
        right: list[int] = []
        value: list[Any] = []
        waiting: list[tuple[Any, list[int], int]] = [(nested, [], 0)]
        while waiting:
            node, link, parent = waiting.pop()
            if link:
                link[parent] = len(feature)
            leaf = isinstance(node, Mapping) and set(node) == {"value"}
            if not leaf and not (isinstance(node, Mapping) and set(node) == {"feature", "threshold", "left", "right"}):
                found = sorted(map(str, node)) if isinstance(node, Mapping) else node
                raise InvalidValueError(
                    "Tree", "nodes with feature, threshold, left and right, or with value alone", f"one has {found!r}",
                    "Write inner nodes and leaves so.",
                )  # fmt: skip
            feature.append(-1 if leaf else _index(node["feature"]))
            threshold.append(0.0 if leaf else node["threshold"])
            left.append(-1)
            right.append(-1)
            value.append(np.atleast_1d(np.asarray(node["value"], dtype=float)) if leaf else None)
            if not leaf:
                waiting.append((node["right"], right, len(feature) - 1))
                waiting.append((node["left"], left, len(feature) - 1))
        widths = sorted({len(leaf) for leaf in value if leaf is not None})
        if len(widths) != 1:
            raise InvalidValueError("Tree", "as many values at each leaf", f"leaves have {widths}", "Check them.")
        full = [np.zeros(widths[0]) if leaf is None else leaf for leaf in value]
        return cls(np.array(feature), np.array(threshold), np.array(left), np.array(right), np.array(full))

    @property
    def inner(self) -> NDArray[np.bool_]:
        """Which nodes compare a column, (nodes,)."""
        return self.feature >= 0

    @property
    def n_scores(self) -> int:
        """Values per leaf."""
        return int(self.value.shape[1])

    def _unreachable(self) -> bool:
        seen, level = 0, np.array([0])
        while len(level):
            seen += len(level)
            level = level[self.feature[level] >= 0]
            level = np.concatenate([self.left[level], self.right[level]])
        return seen != len(self.feature)


def _index(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InvalidValueError("Tree", "features that are column numbers", f"one is {value!r}", "Count from 0.")
    return int(value)


def as_numbers(who: str, what: str, given: ArrayLike) -> Floats:
    """Return finite numbers as float64, or refuse them in the name of ``who``."""
    try:
        numbers = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTypeError(who, f"numbers as {what}", f"{what} is {given!r}", "Give an array of numbers.") from None
    refuse_infinite(who, what, numbers)
    return numbers


def refuse_infinite(who: str, what: str, numbers: Floats) -> None:
    """Raise if a number is NaN or infinite."""
    bad = numbers[~np.isfinite(numbers)]
    if bad.size:
        raise InvalidValueError(who, f"finite {what}", f"{what} has {bad.flat[0]}", "Remove NaN and infinity.")

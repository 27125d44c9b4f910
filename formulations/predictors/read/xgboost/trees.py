"""Trees of XGBoost, from the document that the library saves, with the side that each takes for a missing value.

A row goes left iff ``x < t``, both float32, which is ``x <= np.nextafter(t, -inf)`` in float64. At a split on
categories it goes *right* iff its code is in the node's set. What is missing takes the node's default side. No row of a
space holds NaN, but numbers can stand for a missing value (``missing=`` of an estimator; the zeros that a sparse matrix
does not store). Where such a number would go to the other side, the node becomes two: a split on the set of these
numbers, then the threshold for all others. What follows on the default side is then known to be missing and is not
asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.read.model_input import refuse
from ceopt.formulations.predictors.representation.trees import Tree

__all__ = ["Numbers", "read_tree"]

#: Numbers that stand for a missing value, per column of the matrix.
Numbers: TypeAlias = Sequence[frozenset[float]]
#: What leaves add, as a function of their values.
Scaled: TypeAlias = Callable[[NDArray[np.float32]], NDArray[np.float32]]

_LARGEST: Final = float(np.finfo(np.float64).max)
_BY_CATEGORY: Final = 1


class _Place(NamedTuple):
    """A node of the saved tree that is still to be written, and what the path says of columns: missing or not."""

    node: int
    parent: tuple[list[int], int] | None
    missing: Mapping[int, bool]


def read_tree(
    saved: Mapping[str, Any], score: int, n_scores: int, missing: Numbers, scaled: Scaled | None = None
) -> Tree:
    """Return a saved tree that adds to one of the scores.

    Parameters
    ----------
    saved
        The tree, as the library writes it.
    score, n_scores
        Which score its leaves add to, and of how many.
    missing
        Numbers that stand for a missing value.
    scaled
        What leaves add, given their values (float32); by default the values themselves.

    Raises
    ------
    UnsupportedModelError
        A leaf holds several values, or the nodes form no tree over the columns.
    """
    if int(saved["tree_param"]["size_leaf_vector"]) > 1:
        raise refuse(
            "one value per leaf", "the model has multi_strategy='multi_output_tree'",
            "Fit it with multi_strategy='one_output_per_tree'.",
        )  # fmt: skip
    return _Writer(saved, missing, scaled).tree(score, n_scores)


@final
class _Writer:
    """One saved tree on its way into the arrays of a :class:`Tree`."""

    def __init__(self, saved: Mapping[str, Any], missing: Numbers, scaled: Scaled | None) -> None:
        self._left: list[int] = list(saved["left_children"])
        self._right: list[int] = list(saved["right_children"])
        self._column = list(saved["split_indices"])
        self._missing = missing
        self._goes_left = list(map(bool, saved["default_left"]))
        # One array holds the thresholds of inner nodes and the values of leaves.
        numbers = np.array(saved["split_conditions"], dtype=np.float32)
        self._threshold = np.clip(np.nextafter(numbers.astype(np.float64), -np.inf), -_LARGEST, _LARGEST).tolist()
        self._value = (numbers if scaled is None else scaled(numbers)).astype(np.float64).tolist()
        self._check()
        kinds = saved.get("split_type") or [0] * len(self._left)
        self._sets = {node: frozenset[float]() for node, kind in enumerate(kinds) if kind == _BY_CATEGORY}
        starts = zip(saved.get("categories_segments", ()), saved.get("categories_sizes", ()), strict=True)
        for node, (first, size) in zip(saved.get("categories_nodes", ()), starts, strict=True):
            self._sets[node] = frozenset(map(float, saved["categories"][first : first + size]))
        self.feature: list[int] = []
        self.threshold: list[float] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.value: list[float] = []
        self.subset: list[int] = []
        self.sets: list[frozenset[float]] = []
        self._waiting: list[_Place] = [_Place(0, None, {})]

    def tree(self, score: int, n_scores: int) -> Tree:
        """Write all that the root reaches."""
        while self._waiting:
            self._write(self._waiting.pop())
        value = np.zeros((len(self.value), n_scores))
        value[:, score] = self.value
        return Tree(
            np.array(self.feature), np.array(self.threshold), np.array(self.left), np.array(self.right), value,
            np.array(self.subset), tuple(self.sets),
        )  # fmt: skip

    def _check(self) -> None:
        """Refuse nodes that form no tree over the columns: following them might never end."""
        nodes = len(self._left)
        inner = [node for node, child in enumerate(self._left) if child != -1]
        children = []
        for node in inner:
            for link in (self._left, self._right):
                children.append(link[node])
        columns = [self._column[node] for node in inner]
        sizes = {nodes, len(self._right), len(self._column), len(self._goes_left), len(self._threshold)}
        if (
            len(sizes) != 1
            or not nodes
            or len(set(children)) != len(children)
            or not all(0 < child < nodes for child in children)
            or not all(0 <= column < len(self._missing) for column in columns)
        ):
            raise refuse("trees whose nodes hang together", "a tree of the model does not", "Save the model again.")

    def _write(self, place: _Place) -> None:
        node = place.node
        missing = place.missing
        while self._left[node] != -1 and missing.get(self._column[node], False):
            node = self._default(node)
        if self._left[node] == -1:
            self._add(place, value=self._value[node])
            return
        column = self._column[node]
        left = self._left[node]
        right = self._right[node]
        if column not in missing:
            absent = self._missing[column]
        else:
            absent = frozenset[float]()
        if node in self._sets:
            codes = self._sets[node]
            if self._goes_left[node]:
                codes = codes - absent
            else:
                codes = codes | absent
            if codes:
                here = self._add(place, column=column, codes=codes)
                self._next(here, right, left, missing, missing)
            else:  # every category goes left
                self._waiting.append(place._replace(node=left))
        elif any((number <= self._threshold[node]) != self._goes_left[node] for number in absent):
            here = self._add(place, column=column, codes=absent)
            self._next(here, self._default(node), node, {**missing, column: True}, {**missing, column: False})
        else:
            here = self._add(place, column=column, threshold=self._threshold[node])
            self._next(here, left, right, missing, missing)

    def _default(self, node: int) -> int:
        return (self._left if self._goes_left[node] else self._right)[node]

    def _next(self, here: int, left: int, right: int, *known: Mapping[int, bool]) -> None:
        self._waiting.append(_Place(right, (self.right, here), known[1]))
        self._waiting.append(_Place(left, (self.left, here), known[0]))

    def _add(
        self,
        place: _Place,
        *,
        column: int = -1,
        threshold: float = 0.0,
        codes: frozenset[float] | None = None,
        value: float = 0.0,
    ) -> int:
        """Write one node and return its number."""
        here = len(self.feature)
        if place.parent is not None:
            links, parent = place.parent
            links[parent] = here
        self.feature.append(column)
        self.threshold.append(threshold)
        self.left.append(-1)
        self.right.append(-1)
        self.value.append(value)
        self.subset.append(-1 if codes is None else len(self.sets))
        self.sets += [] if codes is None else [codes]
        return here

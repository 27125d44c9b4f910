"""Trees as plain arrays: one tree, many of them in one set of arrays, and the ensemble that adds them up."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ceopt.formulations.predictors.representation import (
    WIDTHS,
    AbstractRepresentation,
    Decision,
    Head,
    Probability,
    as_numbers,
    matrix_of,
    named_columns,
    of_one,
    one_of,
    refuse_infinite,
    set_frozen,
)
from ceopt.solvers.checks import Floats
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import InvalidValueError

#: Pairs of a row and a tree that walk together: what a core's cache holds.
_PAIRS = 1 << 16
#: Nodes of trees that rows walk down together, likewise, where rows are many.
_NODES = 1 << 15
#: After so many levels those who have arrived are left out.
_LOOKED = 8
#: Up to so many rows a running sum over the trees is quicker than a step for each tree.
_FEW_ROWS = 64


@final
@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """One decision tree as arrays over its nodes; node 0 is the root.

    A row goes left iff ``x <= threshold``, or at a node with a set iff ``x`` is one of the set's values. Other tests
    are these: ``x < t`` is ``x <= np.nextafter(t, -inf)`` in float64, and ``>`` and ``>=`` exchange the children.

    ============ ========== ==========================================================
    field        shape      meaning
    ============ ========== ==========================================================
    feature      (nodes,)   column of the matrix that the node compares; -1 at leaves
    threshold    (nodes,)   in units of the matrix, float64; ignored at leaves
    left         (nodes,)   node of the left child; ignored at leaves
    right        (nodes,)   node of the right child; ignored at leaves
    value        (nodes, K) scores of the leaf; ignored at inner nodes
    subset       (nodes,)   position in ``sets`` of the values that go left; -1: threshold
    sets                    sets of values, none empty
    missing_left (nodes,)   whether NaN goes left; None: the tree takes no NaN
    ============ ========== ==========================================================

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
    missing_left: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        checkpoint("reading the trees")
        for name, kind in (("feature", np.intp), ("threshold", float), ("left", np.intp), ("right", np.intp)):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=kind))
        subset = np.array(self.subset if self.sets else np.full(self.feature.shape, -1), dtype=np.intp)
        object.__setattr__(self, "subset", subset)
        value = np.array(self.value, dtype=float)
        if value.ndim == 1:
            value = value[:, None]
        object.__setattr__(self, "value", value)
        nodes = self.feature.shape
        shapes = [nodes, self.threshold.shape, self.left.shape, self.right.shape, self.value.shape[:1], subset.shape]
        if self.missing_left is not None:
            object.__setattr__(self, "missing_left", np.array(self.missing_left, dtype=bool))
            shapes.append(self.missing_left.shape)
        if len(set(shapes)) > 1 or len(nodes) != 1 or nodes[0] == 0 or self.value.ndim != 2:
            raise InvalidValueError("Tree", "arrays over the same nodes", f"their shapes are {shapes}", "Check them.")
        inner = self.inner
        if (subset >= len(self.sets)).any() or not all(self.sets):
            raise InvalidValueError(
                "Tree", "a set with values for each subset", "one is missing or empty", "Check them."
            )
        if not np.isfinite(self.threshold).all() or not np.isfinite(self.value).all():  # as a rule all are
            refuse_infinite("Tree", "threshold", self.threshold[inner])
            refuse_infinite("Tree", "value", self.value[~inner])
        children = np.concatenate([self.left[inner], self.right[inner]])
        if not np.array_equal(np.sort(children), np.arange(1, nodes[0])) or self._unreachable():
            raise InvalidValueError(
                "Tree", "every node but the root to be the child of one node", "left and right say otherwise",
                "Number the root 0 and give each node one parent.",
            )  # fmt: skip
        for name in ("feature", "threshold", "left", "right", "value", "subset", "missing_left"):
            if getattr(self, name) is not None:
                getattr(self, name).setflags(write=False)

    @classmethod
    def from_mapping(cls, nested: Mapping[str, Any]) -> Self:
        """Read nested ``{feature, threshold, left, right}`` and ``{value: number or list}``, numbered root first."""
        writer = TreeWriter()
        waiting: list[tuple[Any, Link | None]] = [(nested, None)]
        while waiting:
            node, link = waiting.pop()
            leaf = isinstance(node, Mapping) and set(node) == {"value"}
            if not leaf and not (isinstance(node, Mapping) and set(node) == {"feature", "threshold", "left", "right"}):
                given = node
                if isinstance(node, Mapping):
                    given = sorted(map(str, node))
                raise InvalidValueError(
                    "Tree", "nodes with feature, threshold, left and right, or with value alone", f"one has {given!r}",
                    "Write inner nodes and leaves so.",
                )  # fmt: skip
            if leaf:
                writer.add(link, value=np.atleast_1d(np.asarray(node["value"], dtype=float)))
                continue
            number = writer.add(link, column=_index(node["feature"]), threshold=node["threshold"])
            waiting.append((node["right"], (number, 1)))
            waiting.append((node["left"], (number, 0)))
        widths = sorted({len(value) for value in writer.values if value is not None})
        if len(widths) != 1:
            raise InvalidValueError("Tree", "as many values at each leaf", f"leaves have {widths}", "Check them.")
        return cls(**writer.arrays([np.zeros(widths[0]) if value is None else value for value in writer.values]))

    @property
    def inner(self) -> NDArray[np.bool_]:
        """Which nodes compare a column, (nodes,)."""
        return self.feature >= 0

    @property
    def n_scores(self) -> int:
        """Values per leaf."""
        return int(self.value.shape[1])

    def _unreachable(self) -> bool:
        seen = 0
        level = np.array([0])
        while len(level):
            seen += len(level)
            level = level[self.feature[level] >= 0]
            level = np.concatenate([self.left[level], self.right[level]])
        return seen != len(self.feature)


#: The node under which another one stands, and its side: 0 left, 1 right.
Link: TypeAlias = tuple[int, int]


@final
class TreeWriter:
    """A tree that is written node by node, the root first.

    Attributes
    ----------
    values
        What was given as each node's value; None where nothing was.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._tests: list[tuple[int, float, int, bool]] = []
        self._children: list[list[int]] = []
        self._sets: dict[frozenset[float], int] = {}

    def add(
        self,
        link: Link | None,
        *,
        column: int = -1,
        threshold: float = 0.0,
        members: frozenset[float] | None = None,
        value: Any = None,
        missing_left: bool = False,
    ) -> int:
        """Write a node, a leaf unless it has a column, and return its number; only the root has no link."""
        number = len(self._tests)
        if link is not None:
            parent, side = link
            self._children[parent][side] = number
        subset = -1 if members is None else self._sets.setdefault(members, len(self._sets))
        self._tests.append((column, threshold, subset, missing_left))
        self._children.append([-1, -1])
        self.values.append(value)
        return number

    def arrays(self, value: ArrayLike) -> dict[str, Any]:
        """Return the fields of a :class:`Tree` with these values at its nodes, (nodes, K), but where NaN goes."""
        feature, threshold, subset, _ = zip(*self._tests, strict=True)
        left, right = zip(*self._children, strict=True)
        columns = {"feature": feature, "threshold": threshold, "left": left, "right": right, "subset": subset}
        return {**columns, "value": value, "sets": tuple(self._sets)}

    def missing_left(self) -> NDArray[np.bool_]:
        """Return at which nodes NaN goes left, (nodes,), of a tree that takes NaN."""
        return np.array([goes_left for *_, goes_left in self._tests])


def _index(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InvalidValueError("Tree", "features that are column numbers", f"one is {value!r}", "Count from 0.")
    return int(value)


@final
class StackedTrees:
    """The nodes of all trees, one tree after the other; a leaf is its own child.

    Rows go down all trees one level at a time, which spares a call per tree and level: forty times faster than tree by
    tree on ten rows, three times on thousands.
    """

    __slots__ = (
        "_child",
        "_depth",
        "_feature",
        "_is_leaf",
        "_members",
        "_missing_left",
        "_root",
        "_threshold",
        "_value",
    )

    def __init__(self, trees: Sequence[Tree]) -> None:
        sizes = [len(tree.feature) for tree in trees]
        self._root = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        self._is_leaf = ~np.concatenate([tree.inner for tree in trees])
        self._child = np.empty((len(self._is_leaf), 2), dtype=np.intp)
        self._feature = np.empty(len(self._is_leaf), dtype=np.intp)
        for tree, first in zip(trees, self._root.tolist(), strict=True):
            own = slice(first, first + len(tree.feature))
            self._child[own, 0] = tree.right + first
            self._child[own, 1] = tree.left + first
            self._feature[own] = np.maximum(tree.feature, 0)
        self._child[self._is_leaf] = np.flatnonzero(self._is_leaf)[:, None]
        self._threshold = np.concatenate([tree.threshold for tree in trees])
        self._value = np.concatenate([tree.value for tree in trees])
        self._missing_left: NDArray[np.bool_] | None = None
        sides = [tree.missing_left for tree in trees if tree.missing_left is not None]
        if len(sides) == len(trees):
            self._missing_left = np.concatenate(sides)
        self._members: _Members | None = None
        if any(tree.sets for tree in trees):
            self._members = _Members(trees)
        self._depth = 0
        level = self._root
        while len(level := level[~self._is_leaf[level]]):
            self._depth += 1
            level = self._child[level].ravel()

    @property
    def takes_missing(self) -> bool:
        """Whether each tree says where NaN goes."""
        return self._missing_left is not None

    def apply(self, seen: Floats) -> NDArray[np.intp]:
        """Return the node of the leaf reached in each tree, as each tree numbers it, (n, trees)."""
        found = np.empty((len(seen), len(self._root)), dtype=np.intp)
        for rows, trees, nodes in self._walks(seen):
            found[rows, trees] = nodes - self._root[trees]
        return found

    def sums(self, seen: Floats, base: Floats, dtype: str) -> Floats:
        """Return base plus the values of the leaves reached, added tree by tree in float width ``dtype``, (n, K)."""
        totals = np.tile(base.astype(dtype), (len(seen), 1))
        values = self._value.astype(dtype, copy=False)
        for rows, _, nodes in self._walks(seen):
            if len(nodes) <= _FEW_ROWS:  # a running sum adds in the same order, in one call for all trees
                terms = np.concatenate([totals[rows][:, None], values[nodes]], axis=1)
                totals[rows] = np.cumsum(terms, axis=1)[:, -1]
                continue
            for position in range(nodes.shape[1]):
                totals[rows] += values[nodes[:, position]]
        return totals.astype(np.float64, copy=False)

    def _walks(self, seen: Floats) -> Iterator[tuple[slice, slice, NDArray[np.intp]]]:
        """Walk some rows down some trees at a time; the trees of some rows come in their order."""
        count = len(self._root)
        together = _NODES * count // len(self._is_leaf)  # trees whose nodes a core's cache holds
        together = min(max(together, _PAIRS // max(len(seen), 1), 1), count)
        step = max(1, _PAIRS // together)
        for first in range(0, len(seen), step):
            rows = np.ascontiguousarray(seen[first : first + step])
            for tree in range(0, count, together):
                trees = slice(tree, min(tree + together, count))
                yield slice(first, first + len(rows)), trees, self._walk(rows, self._root[trees])

    def _walk(self, rows: Floats, roots: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the leaves that rows reach from some roots, (n, roots); who has arrived is left out now and then."""
        flat = rows.ravel()
        gaps_left = None
        if self._missing_left is not None and np.isnan(flat).any():
            gaps_left = self._missing_left
        ends = np.tile(roots, len(rows))
        on_way = np.arange(len(ends))
        offset = np.repeat(np.arange(len(rows)) * rows.shape[1], len(roots))
        nodes = ends
        child = self._child.ravel()
        for depth in range(self._depth):
            value = flat[self._feature[nodes] + offset]
            left = value <= self._threshold[nodes]
            if self._members is not None:
                left = self._members.decide(nodes, value, left)
            if gaps_left is not None:  # NaN is at most no threshold, and in no set
                left |= np.isnan(value) & gaps_left[nodes]
            nodes = child[2 * nodes + left]
            if depth % _LOOKED == _LOOKED - 1:
                ends[on_way] = nodes
                goes_on = np.flatnonzero(~self._is_leaf[nodes])
                nodes, on_way, offset = nodes[goes_on], on_way[goes_on], offset[goes_on]
        ends[on_way] = nodes
        return ends.reshape(len(rows), len(roots))


@final
class _Members:
    """Splits on sets of values: which of all values that any set holds are in which set."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        sets = [members for tree in trees for members in tree.sets]
        self._values = np.unique(np.concatenate([np.sort(list(members)) for members in sets]))
        # One more row and column for values that no set holds.
        self._holds = np.zeros((len(sets), len(self._values) + 1), dtype=bool)
        for row, members in zip(self._holds, sets, strict=True):
            row[np.searchsorted(self._values, list(members))] = True
        parts = []
        first = 0
        for tree in trees:
            parts.append(np.where(tree.subset >= 0, tree.subset + first, -1))
            first += len(tree.sets)
        self._set = np.concatenate(parts)

    def decide(self, nodes: NDArray[np.intp], value: Floats, left: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return ``left``, with the answer of the set at nodes that have one."""
        chosen = self._set[nodes]
        at = np.nonzero(chosen >= 0)  # most nodes compare with a threshold
        asked = value[at]
        place = np.minimum(np.searchsorted(self._values, asked), len(self._values) - 1)
        left[at] = self._holds[chosen[at], np.where(self._values[place] == asked, place, len(self._values))]
        return left


@final
@dataclass(frozen=True, slots=True, eq=False)
class TreeEnsemble(AbstractRepresentation):
    r"""Scores that add up one leaf per tree: ``s = (base + sum of the leaves' values, trees in order) / divisor``.

    Parameters
    ----------
    trees
        :class:`Tree` objects or nested mappings ``{feature, threshold, left, right}`` / ``{value: number or list}``.
    base
        Start of the sum: a number, or one per score; kept as (K,).
    right_gap
        Only for published instances: their programs state the right branch as ``x >= threshold + right_gap``. The
        scores here do not depend on it, and readers never set it.
    labels
        None for a regressor. Two labels for one score, else K labels.
    divisor
        Number of trees of a forest, whose score is a mean.
    input_dtype
        Float width to which the library casts its input before it compares with the float64 thresholds.
    sum_dtype
        Float width in which the library adds up base and leaves.
    decision, probability, level
        See ``representation.py``. By default "value", "positive" or "argmax", no probability, and 0.
    n_inputs
        Columns of the matrix; by default up to the last one that a tree compares.
    columns
        Names of the raw columns that it reads, in the order of its inputs; by default all of a space, in its order.

    Raises
    ------
    InvalidValueError
        No tree, a tree that is not one, NaN or infinite numbers, or numbers of scores, columns or labels that differ.

    Examples
    --------
    >>> stump = {"feature": 0, "threshold": 0.5, "left": {"value": -1.0}, "right": {"value": 2.0}}
    >>> TreeEnsemble([stump, stump], base=1.0).score([[0.5], [0.6]]).tolist()
    [-1.0, 5.0]
    """

    trees: tuple[Tree, ...]
    base: Floats
    right_gap: float | None
    divisor: float
    input_dtype: str
    sum_dtype: str
    head: Head
    width: int
    columns: tuple[str, ...] | None
    _stacked: StackedTrees = field(repr=False)

    def __init__(
        self,
        trees: Iterable[Tree | Mapping[str, Any]],
        base: ArrayLike = 0.0,
        *,
        right_gap: float | None = None,
        labels: Iterable[Any] | None = None,
        divisor: float = 1,
        input_dtype: str = "float64",
        sum_dtype: str = "float64",
        decision: Decision | None = None,
        probability: Probability | None = None,
        level: float = 0.0,
        n_inputs: int | None = None,
        columns: Iterable[str] | None = None,
    ) -> None:
        who = "TreeEnsemble"
        if columns is not None and n_inputs is None and not isinstance(columns, str):
            columns = tuple(columns)
            n_inputs = len(columns)
        read = tuple(tree if isinstance(tree, Tree) else Tree.from_mapping(tree) for tree in trees)
        widths = sorted({tree.n_scores for tree in read})
        if len(widths) != 1:
            raise InvalidValueError(
                who, "trees with as many values at each leaf", f"they have {widths}", "Give at least one tree."
            )
        used = 1 + max(int(tree.feature.max()) for tree in read)
        if n_inputs is not None and n_inputs < used:
            raise InvalidValueError(
                who, f"features below n_inputs {n_inputs}", f"a split has feature {used - 1}", "Count columns from 0."
            )
        b = np.atleast_1d(as_numbers(who, "base", base))
        if b.ndim != 1 or len(b) not in (1, widths[0]):
            raise InvalidValueError(
                who, f"one base or {widths[0]}, one per score", f"base has shape {b.shape}", "Match the leaves."
            )
        for name, number in (("right_gap", right_gap), ("divisor", divisor)):
            if number is not None and not 0 < number < np.inf:
                raise InvalidValueError(who, f"a positive {name}", f"{name} is {number}", "Give one above 0.")
        set_frozen(self, trees=read, base=np.broadcast_to(b, widths[0]).copy(), right_gap=right_gap, divisor=divisor)
        set_frozen(self, input_dtype=one_of(who, "input_dtype", str(np.dtype(input_dtype)), WIDTHS))
        set_frozen(self, sum_dtype=one_of(who, "sum_dtype", str(np.dtype(sum_dtype)), WIDTHS))
        set_frozen(self, width=used if n_inputs is None else n_inputs, _stacked=StackedTrees(read))
        set_frozen(self, head=Head.checked(who, widths[0], labels, decision, probability, level))
        set_frozen(self, columns=named_columns(who, columns, self.width))

    @property
    def n_inputs(self) -> int:
        """Columns of the matrix."""
        return self.width

    @property
    def n_scores(self) -> int:
        """Number K of scores."""
        return len(self.base)

    @property
    def takes_missing(self) -> bool:
        """Whether NaN is a value like any other: each tree says where it goes."""
        return self._stacked.takes_missing

    def seen(self, x: ArrayLike) -> Floats:
        """Return the matrix as the splits see it: rounded to ``input_dtype``, held in float64 for the comparison.

        A missing cell is NaN, where the trees take it.
        """
        takes = self.takes_missing
        matrix = matrix_of("TreeEnsemble", x, self.n_inputs, exactly=False, gaps=takes, columns=self.columns)
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(matrix.astype(self.input_dtype).astype(np.float64))

    def without_gaps(self) -> TreeEnsemble:
        """Return the ensemble that takes no NaN."""
        same = copy.copy(self)
        trees = tuple(replace(tree, missing_left=None) for tree in self.trees)
        set_frozen(same, trees=trees, _stacked=StackedTrees(trees))
        return same

    def apply(self, x: ArrayLike) -> NDArray[np.intp]:
        """Return the node of the leaf reached in each tree, (n, trees)."""
        return self._stacked.apply(self.seen(x))

    def score(self, x: ArrayLike) -> Floats:
        """Return the scores, (n,) if there is one and (n, K) else, added up in the library's order."""
        return of_one(self._stacked.sums(self.seen(x), self.base, self.sum_dtype) / self.divisor)

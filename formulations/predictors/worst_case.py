r"""The worst that a model says of all points near an answer, as a model itself: what the rule ``Region`` states.

A *noise* is a box around a point: by column how far a number may lie on either side, in multiples of a step where the
column has one. All other columns are held.

Of a linear model the worst score is the score less a constant. Of a tree it is a tree: at a split :math:`\theta`

.. math::
    w(x) = \begin{cases} w_\text{left}(x) & x \le \theta - r \\ w_\text{right}(x) & x > \theta + r \\
    \min(w_\text{left}(x), w_\text{right}(x)) & \text{else.} \end{cases}

The sum of the worst leaves of several trees is at most the worst sum, as no one point need be the worst for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np

from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.raw_trees import LevelSplit, NumberSplit, RawTrees, raw_trees
from ceopt.formulations.predictors.representation import Affine, ReluNetwork
from ceopt.formulations.predictors.trees import Link, Tree, TreeEnsemble, TreeWriter
from ceopt.formulations.space.encoding import Column, Encoding
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Levels, Reach
from ceopt.formulations.tolerances import REGION_ROOM
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import InvalidValueError

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.solvers.checks import Floats

#: Where one split sends a point: left up to the first value, right above the second, and both ways between.
_Ends: TypeAlias = tuple[float, float]
#: What is known of a column on the way down: above the first value and at most the second, or its levels.
_Known: TypeAlias = tuple[float, float] | frozenset[float]
#: Nodes of the worst case of one tree, beyond which it is not written out.
MOST_NODES: Final = 3000
#: Tests on one way down, beyond which it is not written out either.
_MOST_TESTS: Final = 200
_STAGE = "finding the worst case of the trees"


@final
@dataclass(frozen=True, slots=True)
class Noise:
    """How far a number may lie from where it is, on either side.

    Parameters
    ----------
    width
        In raw units; of a box and a column with a step a multiple of it.
    step
        Distance between neighbouring values; None of a continuous column.
    """

    width: float
    step: float | None = None

    @property
    def steps(self) -> int:
        """How many whole steps fit into the width."""
        return 0 if self.step is None else math.floor(self.width / self.step + 1e-9)

    def shifted(self, value: float, anchor: float, side: int) -> float:
        """Return the last value that goes left where a split's ``value`` is moved to a side by the width."""
        if self.step is None:
            return value + side * self.width
        grid = Interval(-math.inf, math.inf, self.step, anchor)
        last = grid.floor(value)
        if not math.isfinite(last):
            return last
        return grid.grid.at(round((last - anchor) / self.step) + side * self.steps)

    def roomier(self, size: float) -> Noise:
        """Return the noise for a program over amounts up to a size: a little wider, so that no rounding undoes it."""
        if self.step is not None or self.width == 0.0:
            return self
        return Noise(self.width * (1.0 + REGION_ROOM) + 2.0 * math.ulp(size))


Noises: TypeAlias = Mapping[str, Noise]


def shifts_of(predictor: Predictor, moves: Mapping[str, float]) -> Floats:
    """Return by how much each column of the estimator's matrix moves with the raw columns, (m,); none is clipped."""
    shifts = np.zeros(len(predictor.encoding.columns))
    for place, column in enumerate(predictor.encoding.columns):
        move = moves.get(column.feature or "")
        if move is not None and column.table is None:
            shifts[place] = column.affine()[0] * move
    return shifts


def raw_slopes(predictor: Predictor, weights: Floats, names: Sequence[str]) -> Floats:
    """Return the slopes of ``weights @ phi(x)`` in some raw columns of numbers, (names,)."""
    return np.array([float(weights @ shifts_of(predictor, {name: 1.0})) for name in names])


#: Ways to put whole steps into a ball that are tried at most.
_MOST_WAYS: Final = 100_000


def deepest_in_ball(slopes: Mapping[str, float], noises: Noises) -> tuple[dict[str, float], float]:
    r"""Return the moves within an ellipsoid by which a linear score falls most, and by how much it falls.

    .. math:: \max_s \sum_j |w_j| s_j \quad\text{s.t.}\quad \sum_j (s_j / a_j)^2 \le 1

    with the half-axes a as widths; a column with a step moves by whole ones. Without such columns it is the norm of
    :math:`(a_j w_j)_j`; their steps are searched, the others being free in what the ball has left.

    Raises
    ------
    InvalidValueError
        There are too many ways to place the steps.
    """
    names = [name for name, noise in noises.items() if slopes[name] != 0.0 and noise.width > 0.0]
    stepped = [name for name in names if noises[name].step is not None]
    free = [name for name in names if noises[name].step is None]
    stepped.sort(key=lambda name: -abs(slopes[name]) * noises[name].width)
    gains = {name: abs(slopes[name]) * noises[name].width for name in names}
    of_free = math.hypot(*(gains[name] for name in free))
    after = [math.hypot(of_free, *(gains[name] for name in stepped[k:])) for k in range(len(stepped) + 1)]
    best = -1.0
    best_counts: tuple[int, ...] = ()
    stack: list[tuple[tuple[int, ...], float, float]] = [((), 0.0, 1.0)]
    ways = 0
    while stack:
        counts, gained, left = stack.pop()
        place = len(counts)
        if gained + math.sqrt(left) * after[place] <= best * (1.0 + 1e-12):
            continue
        if place == len(stepped):
            best, best_counts = gained + math.sqrt(left) * of_free, counts
            continue
        name = stepped[place]
        share = (noises[name].step or 1.0) / noises[name].width
        most = math.floor(math.sqrt(left) / share + 1e-12)
        ways += most + 1
        if ways > _MOST_WAYS:
            raise InvalidValueError(
                "Region", "few whole-number columns within a ball", f"columns are {stepped}",
                'Use norm="linf", or name fewer: columns=[...].',
            )  # fmt: skip
        favourite = math.sqrt(left) * gains[name] / after[place] / share if after[place] > 0.0 else 0.0
        for count in sorted(range(most + 1), key=lambda k: -abs(k - favourite)):  # the likeliest is looked at first
            rest = max(left - (count * share) ** 2, 0.0)
            stack.append(((*counts, count), gained + abs(slopes[name]) * count * (noises[name].step or 1.0), rest))
    moves: dict[str, float] = {}
    left = 1.0
    for name, count in zip(stepped, best_counts, strict=True):
        step = noises[name].step or 1.0
        left -= (count * step / noises[name].width) ** 2
        if count:
            moves[name] = -math.copysign(count * step, slopes[name])
    for name in free:
        if of_free > 0.0:
            moves[name] = -math.copysign(
                math.sqrt(max(left, 0.0)) * gains[name] * noises[name].width / of_free, slopes[name]
            )
    return moves, max(best, 0.0)


def lowered(predictor: Predictor, by: float) -> Predictor:
    """Return a linear model of one score, less a constant."""
    core = predictor.core
    assert isinstance(core, Affine)  # noqa: S101 - the caller has asked
    less = Affine(
        core.weights, core.intercept - by, labels=core.labels, decision=core.decision, dtype=core.dtype,
        columns=core.columns,
    )  # fmt: skip
    return Predictor(less, predictor.encoding, less, predictor.space)


def moved(predictor: Predictor, moves: Mapping[str, float], reach: Reach) -> Predictor:
    """Return the model x -> s(x + moves): of a network by its first biases, of trees by their splits."""
    core = predictor.core
    if isinstance(core, ReluNetwork):
        first = core.biases[0] + core.weights[0] @ shifts_of(predictor, moves)
        net = ReluNetwork(
            core.weights, [first, *core.biases[1:]], activations=core.activations, labels=core.labels,
            decision=core.decision, level=core.level, dtype=core.dtype, columns=core.columns,
        )  # fmt: skip
        return Predictor(net, predictor.encoding, net, predictor.space)

    def ends(split: NumberSplit) -> _Ends:
        move = moves.get(split.name, 0.0)
        part = reach[split.name]
        step = part.step if isinstance(part, Interval) else None
        if move == 0.0:
            return split.left, split.left
        noise = Noise(abs(move), step)
        last = noise.shifted(split.left, _anchor(part), -1 if move > 0.0 else 1)
        return last, last

    raw = raw_trees(predictor)
    return _of_trees(predictor, [_with_ends(raw, root, predictor.space, ends) for root in raw.root.tolist()])


def worst_trees(predictor: Predictor, noises: Noises, reach: Reach) -> Predictor | None:
    """Return the trees whose leaves hold the least value over a noise, one score; None where one grows too large.

    Right at every point in reach, and nowhere else.
    """

    def ends(split: NumberSplit) -> _Ends:
        noise = noises.get(split.name)
        if noise is None:
            return split.left, split.left
        anchor = _anchor(reach[split.name])
        return noise.shifted(split.left, anchor, -1), noise.shifted(split.left, anchor, 1)

    start: dict[str, _Known] = {}
    for name, part in reach.items():
        if isinstance(part, Levels):
            start[name] = frozenset(part.values)
        elif not part.labels and part.only != MISSING:
            start[name] = (math.nextafter(part.lower, -math.inf), part.upper)
    trees = []
    raw = raw_trees(predictor)
    worst = _Worst(raw, predictor.space, ends)
    for root in raw.root.tolist():
        checkpoint(_STAGE)
        tree = worst.written(root, start)
        if tree is None:
            return None
        trees.append(tree)
    return _of_trees(predictor, trees)


def _anchor(part: Interval | Levels) -> float:
    return part.anchor if isinstance(part, Interval) else 0.0


def _of_trees(predictor: Predictor, trees: list[Tree]) -> Predictor:
    """Return other trees over the coordinates in place of a predictor's own."""
    core, space = predictor.core, predictor.space
    assert isinstance(core, TreeEnsemble)  # noqa: S101 - the caller has asked
    other = TreeEnsemble(
        trees, core.base, right_gap=core.right_gap, labels=core.labels, divisor=core.divisor, decision=core.decision,
        level=core.level, n_inputs=len(space),
    )  # fmt: skip
    return Predictor(other, _coordinates_with_gaps(space), other, space)


def _with_ends(tree: RawTrees, root: int, space: FeatureSpace, ends: Callable[[NumberSplit], _Ends]) -> Tree:
    """Return a tree whose splits on numbers end elsewhere, of any size."""
    place = {name: k for k, name in enumerate(space.names)}
    writer = TreeWriter()
    waiting: list[tuple[Link | None, int]] = [(None, root)]
    while waiting:
        link, node = waiting.pop()
        split = tree.split(node)
        if tree.is_leaf[node]:
            writer.add(link, value=float(tree.value[node][0]))
        elif split is None:
            waiting.append((link, tree.left[node]))
        else:
            if isinstance(split, LevelSplit):
                number = _level_test(writer, link, place[split.name], split.ranks)
            else:
                end = _finite(ends(split)[0])
                number = writer.add(link, column=place[split.name], threshold=end, missing_left=split.missing_left)
            waiting += [((number, 1), tree.right[node]), ((number, 0), tree.left[node])]
    return _written(writer)


def _level_test(writer: TreeWriter, link: Link | None, column: int, on_left: frozenset[float]) -> int:
    levels = frozenset(rank for rank in on_left if rank != MISSING) or frozenset({-1.0})
    return writer.add(link, column=column, members=levels, missing_left=MISSING in on_left)


def _written(writer: TreeWriter) -> Tree:
    values = [np.zeros(1) if value is None else np.array([value]) for value in writer.values]
    return Tree(**writer.arrays(values), missing_left=writer.missing_left())


def _coordinates_with_gaps(space: FeatureSpace) -> Encoding:
    """Return the encoding whose matrix is the coordinates themselves, NaN where a cell is missing."""
    columns = []
    for feature in space:
        table = tuple(map(float, range(len(feature.levels)))) if feature.is_finite else None
        columns.append(Column(feature.name, table=table))
    return Encoding(tuple(columns), tuple(space.names))


@final
class _Worst:
    """Writes the worst case of trees: at each node the inner nodes that points may still meet, and the least leaf.

    Nodes below which nothing is less than the least leaf met so far are left out.
    """

    def __init__(self, tree: RawTrees, space: FeatureSpace, ends: Any) -> None:
        self._tree = tree
        self._ends = ends
        self._place = {name: k for k, name in enumerate(space.names)}
        at_leaves = tree.value[:, 0]
        #: By node the least and the greatest value below it.
        self._least = np.where(tree.is_leaf, at_leaves, -np.inf)
        self._greatest = np.where(tree.is_leaf, at_leaves, np.inf)
        waits = ~tree.is_leaf
        while waits.any():  # from the leaves up, a level at a time
            ready = np.flatnonzero(waits & ~waits[tree.left] & ~waits[tree.right])
            left, right = tree.left[ready], tree.right[ready]
            self._least[ready] = np.minimum(self._least[left], self._least[right])
            self._greatest[ready] = np.maximum(self._greatest[left], self._greatest[right])
            waits[ready] = False

    def written(self, root: int, known: dict[str, _Known]) -> Tree | None:
        """Return the tree; None where it has more than ``MOST_NODES`` nodes."""
        self._writer, self._count = TreeWriter(), 0
        self._below(None, (root,), math.inf, known)
        if self._count > MOST_NODES:
            return None
        return _written(self._writer)

    def _turns(self, node: int, split: NumberSplit) -> _Ends:
        """Return the ends of a split, both the same where a side that is never the lesser need not be looked at."""
        first, last = self._ends(split)
        left, right = self._tree.left[node], self._tree.right[node]
        if self._least[right] >= self._greatest[left]:
            return last, last
        if self._least[left] >= self._greatest[right]:
            return first, first
        return first, last

    def _below(
        self, link: Link | None, nodes: tuple[int, ...], floor: float, known: dict[str, _Known], tests: int = 0
    ) -> None:
        self._count += 1
        if tests > _MOST_TESTS:
            self._count = MOST_NODES + 1
        if self._count > MOST_NODES:
            return
        tree = self._tree
        waiting = list(nodes)
        met: list[int] = []
        while waiting:
            node = waiting.pop()
            if tree.is_leaf[node]:
                floor = min(floor, float(self._least[node]))
                continue
            split = tree.split(node)
            sides = (True, False) if split is None else self._sides(node, split, known)
            if split is None:
                waiting.append(tree.left[node])
            elif sides == (None, None):
                met.append(node)
            else:  # what is known so far decides: it goes left, right, or both ways
                waiting += [
                    child for child, goes in zip((tree.left[node], tree.right[node]), sides, strict=True) if goes
                ]
        met = sorted({node for node in met if self._least[node] < floor}, key=self._least.__getitem__)
        if not met:
            self._writer.add(link, value=floor)
            return
        node, rest = met[0], tuple(met[1:])
        left, right = tree.left[node], tree.right[node]
        split = tree.split(node)
        assert split is not None  # noqa: S101 - it was met
        if isinstance(split, LevelSplit):
            here = known.get(split.name)
            assert isinstance(here, frozenset)  # noqa: S101 - all columns of levels have a reach
            on_left = here & split.ranks
            number = _level_test(self._writer, link, self._place[split.name], on_left)
            self._below((number, 0), (left, *rest), floor, {**known, split.name: on_left}, tests + 1)
            self._below((number, 1), (right, *rest), floor, {**known, split.name: here - on_left}, tests + 1)
            return
        first, last = self._turns(node, split)
        low, high = self._range(split.name, known)
        if first == last or not (low < first < high or low < last < high):
            number = self._test(link, split, first)
            self._below((number, 0), (left, *rest), floor, self._upto(split.name, known, first), tests + 1)
            self._below((number, 1), (right, *rest), floor, self._upto(split.name, known, first, above=True), tests + 1)
            return
        end = first if low < first < high else last
        number = self._test(link, split, end)
        self._below((number, 0), (node, *rest), floor, self._upto(split.name, known, end), tests + 1)
        self._below((number, 1), (node, *rest), floor, self._upto(split.name, known, end, above=True), tests + 1)

    def _test(self, link: Link | None, split: NumberSplit, end: float) -> int:
        column = self._place[split.name]
        return self._writer.add(link, column=column, threshold=_finite(end), missing_left=split.missing_left)

    @staticmethod
    def _range(name: str, known: dict[str, _Known]) -> _Ends:
        here = known.get(name, (-math.inf, math.inf))
        assert isinstance(here, tuple)  # noqa: S101 - a number
        return here

    def _upto(self, name: str, known: dict[str, _Known], end: float, *, above: bool = False) -> dict[str, _Known]:
        """Return what is known after a test; nothing is of a column that may be missing, which goes its own way."""
        if name not in known:
            return known
        low, high = self._range(name, known)
        return {**known, name: (end, high) if above else (low, end)}

    def _sides(
        self, node: int, split: NumberSplit | LevelSplit, known: dict[str, _Known]
    ) -> tuple[bool | None, bool | None]:
        """Return whether points go left and right there; None, None where it is not known yet."""
        here = known.get(split.name)
        if isinstance(split, LevelSplit):
            assert isinstance(here, frozenset)  # noqa: S101 - all columns of levels have a reach
            left = here <= split.ranks
            right = not here & split.ranks
            return (left, right) if left != right else (None, None)
        if not isinstance(here, tuple):
            return None, None
        first, last = self._turns(node, split)
        low, high = here
        if high <= first:
            return True, False
        if low >= last:
            return False, True
        if low >= first and high <= last:
            return True, True
        return None, None


def _finite(threshold: float) -> float:
    """Return a threshold as trees hold it: the greatest float stands for infinity."""
    greatest = float(np.finfo(np.float64).max)
    return min(max(threshold, -greatest), greatest)

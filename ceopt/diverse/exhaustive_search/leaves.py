"""The leaves that boxes of cells still meet, as bits, and what the best of them add."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.embed.trees.reachable_leaves import Leaf, prune, route
from ceopt.formulations.predictors.representation.trees import TreeEnsemble

if TYPE_CHECKING:
    from ceopt.diverse.exhaustive_search.cells import Allowance, CellColumn
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.formulations.space.reachable import Reach

__all__ = ["Bits", "LeafGains", "Leaves"]

Floats: TypeAlias = NDArray[np.float64]
Bits: TypeAlias = NDArray[np.uint8]

#: Prices of leaves that are told apart at each depth; prices between two of them are rounded down.
_KINDS: Final = 128
#: Which bits each byte holds, (256, 8).
_HELD: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(bool)


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafGains:
    """What the leaves of an ensemble add: of each byte and its 256 values the most, (bytes, 256), and the rounding.

    ``rounds`` says how many trees have a first byte, a second one, and so on; the bytes stand in this order.
    """

    table: Floats
    bytes: slice
    rounds: tuple[int, ...]
    rounding: float

    def most(self, met: Bits) -> Floats:
        """Return what trees add at most in boxes that meet these leaves, (n,)."""
        here = met[:, self.bytes].astype(np.intp) + 256 * np.arange(len(self.table))
        added = self.table.ravel()[here]
        best, first = added[:, : self.rounds[0]], self.rounds[0]
        for trees in self.rounds[1:]:
            np.maximum(best[:, :trees], added[:, first : first + trees], out=best[:, :trees])
            first += trees
        return np.asarray(best.sum(axis=1))


@final
class Leaves:
    """The leaves of some ensembles that one person can reach, eight to a byte, each tree with bytes of its own.

    Parameters
    ----------
    forests
        The ensembles.
    columns
        The columns in the order in which they take their cells.
    reach
        Values that each column may take.
    allowances
        What there is to go round with.
    """

    def __init__(
        self,
        forests: Iterable[Predictor],
        columns: Sequence[CellColumn],
        reach: Reach,
        allowances: Sequence[Allowance],
    ) -> None:
        self._places: dict[int, tuple[slice, tuple[int, ...], list[tuple[Leaf, ...]]]] = {}
        leaves: list[Leaf | None] = []
        for forest in forests:
            # Larger trees first: the trees with a second byte are then the first few, and so on.
            trees = sorted((tree.leaves for tree in prune(route(forest), reach)), key=len, reverse=True)
            parts = [
                [(*tree[k : k + 8], *[None] * (8 - len(tree[k : k + 8]))) for k in range(0, len(tree), 8)]
                for tree in trees
            ]
            rounds = [[part[k] for part in parts if k < len(part)] for k in range(len(parts[0]))]
            first = len(leaves) // 8
            leaves += [leaf for round_ in rounds for byte in round_ for leaf in byte]
            self._places[id(forest)] = slice(first, len(leaves) // 8), tuple(map(len, rounds)), trees
        exists = np.array([leaf is not None for leaf in leaves], dtype=bool)
        #: All leaves, (bytes,); ``of_cells`` are those that each cell of each column meets, (cells, bytes) each.
        self.all: Bits = _packed(exists[None, :])[0]
        inside = [_inside(column, leaves) for column in columns]
        self.of_cells = [_packed(part & exists) for part in inside]
        self._affordable = [_suffixes(inside, exists, allowance) for allowance in allowances]

    def affordable(self, depth: int, left: Sequence[Floats]) -> Bits:
        """Return the leaves into whose boxes columns from ``depth`` on can come with what is left, (n, bytes)."""
        paid: Bits | None = None
        for suffixes, rest in zip(self._affordable, left, strict=True):
            prices, bits = suffixes[depth]
            here = bits[np.searchsorted(prices, rest, side="right")]
            paid = here if paid is None else paid & here
        assert paid is not None  # noqa: S101 - there always is a budget
        return paid

    def gains(self, forest: Predictor, gains: Callable[[Floats], Floats]) -> LeafGains:
        """Return what the leaves of an ensemble add, where each adds what ``gains`` says of its values."""
        core = forest.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - demands hold such
        place, rounds, trees = self._places[id(forest)]
        added = [gains(np.array([leaf.value for leaf in tree])) for tree in trees]
        parts = [
            np.pad(some[8 * k : 8 * k + 8], (0, max(8 * k + 8 - len(some), 0)), constant_values=-np.inf)
            for k, count in enumerate(rounds)
            for some in added[:count]
        ]
        table = np.where(_HELD, np.array(parts)[:, None, :], -np.inf).max(axis=2)
        size = sum(float(np.abs(some).max()) for some in added)
        rounding = size * (len(trees) + 10) * float(np.finfo(core.sum_dtype).eps)
        return LeafGains(table, place, rounds, rounding)


def _inside(column: CellColumn, leaves: Sequence[Leaf | None]) -> NDArray[np.bool_]:
    """Return which cells of a column lie in which leaves' boxes, (cells, leaves); none is cut by a box."""
    inside = np.ones((len(column), len(leaves)), dtype=bool)
    for k, leaf in enumerate(leaves):
        box = None if leaf is None else leaf.box.get(column.name)
        if isinstance(box, frozenset):
            inside[:, k] = np.isin(column.values, list(box))
        elif box is not None:
            inside[:, k] = (column.values >= box[0]) & (column.values <= box[1])
    return inside


def _suffixes(
    inside: Sequence[NDArray[np.bool_]], exists: NDArray[np.bool_], allowance: Allowance
) -> list[tuple[Floats, Bits]]:
    """Return, per depth, amounts in order and, for what is left between two of them, the leaves that it pays for."""
    total = np.zeros(len(exists))
    found = [_paid(total, exists)]
    for cells, used in zip(reversed(inside), reversed(allowance.used), strict=True):
        least = np.where(cells, used[:, None], np.inf).min(axis=0, initial=np.inf)
        total = allowance.together(total, least)
        found.append(_paid(total, exists))
    return found[::-1]


def _paid(total: Floats, exists: NDArray[np.bool_]) -> tuple[Floats, Bits]:
    known = np.unique(total[exists & np.isfinite(total)])
    if len(known) > _KINDS:
        known = known[np.linspace(0, len(known) - 1, _KINDS).astype(np.intp)]
    return known, _packed(np.array([exists & (total < above) for above in [*known, np.inf]]))


def _packed(flags: NDArray[np.bool_]) -> Bits:
    return np.packbits(flags, axis=1, bitorder="little")

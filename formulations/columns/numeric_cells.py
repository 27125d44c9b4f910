"""The cells of a numeric column: the cuts of all models on it, in order, with a binary each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import Any, final

from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.formulations.space.reachable import Interval

__all__ = ["TINY", "Cells"]

#: Coefficients of a row below a solver's feasibility tolerance are noise to it: HiGHS 1.15 was seen to presolve a
#: better answer away from rows with coefficients of 1e-7 (tests/formulations/test_edges.py).
TINY = 1e-6


@final
class Cells:
    r"""Cells ``[r_k, l_{k+1}]`` between cuts, each cut a pair of neighbouring values in reach.

    .. math:: y_1 \ge \dots \ge y_m, \qquad y_k = 1 \iff x \ge r_k, \qquad y_k = 0 \iff x \le l_k.

    Anything that is constant on each cell is linear in y: :math:`c_0 + \sum_k (c_k - c_{k-1})\, y_k`.
    """

    __slots__ = ("_known", "block", "interval", "keys", "name", "variables")

    def __init__(self, block: Any, name: str, interval: Interval) -> None:
        self.block, self.name, self.interval = block, name, interval
        self.keys: list[tuple[float, float]] = []
        self._known: dict[tuple[float, float], Any] = {}
        self.variables: list[Any] = []

    def add(self, cuts: Iterable[tuple[float, float]]) -> bool:
        """Add the cuts that are not there yet, ordered with the others; False if all were there."""
        known = self._known
        new = sorted(key for key in set(cuts) if key not in known)
        if not new:
            return False
        texts = {self.block.cut_text(self.name, key) for key in self.keys}
        for key in new:
            choices = (f"{key[0]:.6g}", f"{key[0]:.9g}", repr(key[0]), f"{key[0]!r} {key[1]!r}")
            text = next(choice for choice in choices if choice not in texts)
            known[key] = self.block.cut[self.name, text]
            self.block.remember_cut(self.name, key, text)
            texts.add(text)
        self.keys = sorted(known)
        self.variables = [known[key] for key in self.keys]
        self._write_order()
        return True

    def _write_order(self) -> None:
        rows = Rows(self.block, "ordered")
        container = self.block.ordered
        for index in [index for index in container if index[0] == self.name]:
            del container[index]
        cells = self.bounds()
        for k, ((low, high), key) in enumerate(zip(pairwise(self.variables), self.keys[1:], strict=True), start=1):
            index = (self.name, self.block.cut_text(self.name, key))
            # Two cuts of a published instance may lie closer than its gap: nothing is between them.
            empty = cells[k][0] > cells[k][1]
            rows.add(index, LinearForm(0.0, ((1.0, low), (-1.0, high))), lower=0.0, upper=0.0 if empty else None)
        # A cut beyond bounds that were set after it: nothing is outside of it.
        for word, cut, (least, greatest), side in (
            ("first", self.variables[0], cells[0], 1.0),
            ("last", self.variables[-1], cells[-1], 0.0),
        ):
            if least > greatest:
                rows.add((self.name, word, "cell"), LinearForm(0.0, ((1.0, cut),)), lower=side, upper=side)

    def bounds(self) -> list[tuple[float, float]]:
        """Return the cells' least and greatest values, from left to right; of an empty cell the first is greater."""
        lows = accumulate((right for _, right in self.keys), max, initial=self.interval.lower)
        highs = accumulate((left for left, _ in reversed(self.keys)), min, initial=self.interval.upper)
        return list(zip(lows, reversed(list(highs)), strict=True))

    def bound(self, interval: Interval) -> None:
        """Set other ends, for good."""
        self.interval = interval
        if self.keys:
            self._write_order()

    def cell_of(self, value: float) -> int | None:
        """Return the position of the cell that holds ``value``, or None between two cells."""
        return next((k for k, (low, high) in enumerate(self.bounds()) if low <= value <= high), None)

    def selected(self) -> tuple[float, float]:
        """Return the cell that the binaries' current values select."""
        return self.bounds()[sum(1 for cut in self.variables if (cut.value or 0.0) > 0.5)]

    def right_of(self, key: tuple[float, float]) -> LinearForm:
        """Return 1 where the value lies right of the cut ``key``, else 0."""
        return LinearForm(0.0, ((1.0, self.variables[bisect_left(self.keys, key)]),))

    def telescope(self, values: list[float]) -> LinearForm:
        """Return the value of the cell selected, of one value per cell."""
        steps = [(b - a, cut) for (a, b), cut in zip(pairwise(values), self.variables, strict=True)]
        return LinearForm(values[0], tuple((c, v) for c, v in steps if c != 0.0))

    def at_least(self, values: list[float]) -> LinearForm:
        """Return a form at most the value of the cell selected (ascending values), without tiny coefficients.

        A step too small for a row waits for the next cut, which is switched on later: the bound is weaker by less than
        :data:`TINY`.
        """
        terms, carried = [], 0.0
        for (a, b), cut in zip(pairwise(values), self.variables, strict=True):
            carried += b - a
            if carried >= TINY:
                terms.append((carried, cut))
                carried = 0.0
        return LinearForm(values[0], tuple(terms))

    def at_most(self, values: list[float]) -> LinearForm:
        """Return a form at least the value of the cell selected (ascending values), without tiny coefficients."""
        terms, carried = [], 0.0
        for (a, b), cut in zip(reversed(list(pairwise(values))), reversed(self.variables), strict=True):
            carried += b - a
            if carried >= TINY:
                terms.append((carried, cut))
                carried = 0.0
        return LinearForm(values[0] + carried, tuple(reversed(terms)))

    def inside(self, cell: int) -> LinearForm:
        """Return 1 where the value lies in the cell, else 0."""
        return self.telescope([1.0 if k == cell else 0.0 for k in range(len(self.keys) + 1)])

    def place(self, value: float) -> None:
        """Set the binaries to those of ``value``."""
        for (_, right), cut in zip(self.keys, self.variables, strict=True):
            cut.set_value(1 if value >= right else 0, skip_validation=True)

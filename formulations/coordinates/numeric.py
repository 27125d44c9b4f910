"""A numeric column: ordered cuts where a tree splits it, a coordinate only where a row needs its value."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import TYPE_CHECKING, Any, final

import pyomo.environ as pyo

from ceopt.formulations.coordinates.coordinate import AbstractCoordinate, Price
from ceopt.formulations.linear import LinearForm, Rows
from ceopt.solvers.errors import InvalidTypeError, UnboundedFeatureError

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.reach import Interval

__all__ = ["LEAST_MOVE", "Numeric"]

#: A continuous column counts as changed, where two answers must change different columns, once it moves by this share
#: of its range (or of 1 where the range is unknown). Without a least move the infimum is not attained.
LEAST_MOVE = 1e-3


@final
class Numeric(AbstractCoordinate):
    r"""A number in raw units, cut into cells ``[r_k, l_{k+1}]`` by the splits that the model has on it.

    .. math::
        y_1 \ge \dots \ge y_m,\quad y_k = 1 \iff x \ge r_k,\quad y_k = 0 \iff x \le l_k \\
        \text{cost} = c_0 + \sum_k (c_k - c_{k-1})\, y_k \qquad\text{(no coordinate)} \\
        x \ge r_0 + \sum_k (r_k - r_{k-1})\, y_k, \quad x \le l_1 + \sum_k (l_{k+1} - l_k)\, y_k, \quad
        x - x^0 = p - n \qquad\text{(with one)}

    ======== ===================== ==================================================
    symbol   component             meaning
    ======== ===================== ==================================================
    y_k      ``cut[name, l_k]``    binary, 1 iff x lies right of the k-th cut
    l_k, r_k                       neighbouring values in reach, left and right of it
    c_k                            cost of the value of cell k nearest to the factual
    x        ``x[name]``           the value; made when first asked for
    p, n     ``up``, ``down``      move up and down, both at least 0
    z        ``moved[name]``       binary, 0 forbids a move; made when asked for
    ======== ===================== ==================================================

    The cell costs make any separable cost linear in the cuts (F3 of the tree literature's ordered-binary forms), so a
    column that no other row needs has neither a coordinate nor a big-M. Exact: l_k and r_k are float neighbours.
    """

    __slots__ = ("_faithful", "_moves", "claims", "cuts", "interval", "keys", "moved", "variable")

    def __init__(self, block: Any, feature: Feature, x0: float) -> None:
        super().__init__(block, feature, x0)
        self.interval: Interval = block.reach[feature.name]
        self.keys: list[tuple[float, float]] = []
        self.cuts: list[Any] = []
        self.variable: Any = None
        self._moves: tuple[Any, Any] | None = None
        self.moved: Any = None
        self._faithful = False
        #: (variable, value, lower, upper): where a variable of another formulation takes the value, x is in the bounds.
        self.claims: list[tuple[Any, int, float, float]] = []

    # ---- cells -------------------------------------------------------------------------------------------------------
    def add_cuts(self, cuts: Iterable[tuple[float, float]]) -> None:
        """Cut the interval between each ``(left, right)`` pair of neighbouring values in reach."""
        new = sorted(set(cuts) - set(self.keys))
        if not new:
            return
        known = dict(zip(self.keys, self.cuts, strict=True))
        texts = {self.block.cut_text(self.name, key): key for key in self.keys}
        for key in new:
            choices = (f"{key[0]:.6g}", f"{key[0]:.9g}", repr(key[0]), f"{key[0]!r} {key[1]!r}")
            text = next(choice for choice in choices if choice not in texts)
            known[key] = self.block.cut[self.name, text]
            self.block.remember_cut(self.name, key, text)
            texts[text] = key
        self.keys = sorted(known)
        self.cuts = [known[key] for key in self.keys]
        self._write_order()
        if self.variable is not None:
            self._write_links()
        self.refresh()

    def right_of(self, key: tuple[float, float]) -> LinearForm:
        """Return 1 where the value lies right of the cut ``key``, else 0."""
        return LinearForm(0.0, ((1.0, self.cuts[bisect_left(self.keys, key)]),))

    def cells(self) -> list[tuple[float, float]]:
        """Return the cells' least and greatest values, from left to right."""
        ends = [self.interval.lower, *(r for _, r in self.keys)]
        return list(zip(ends, [*(left for left, _ in self.keys), self.interval.upper], strict=True))

    def cell_of(self, value: float) -> int | None:
        """Return the position of the cell that holds ``value``, or None between two cells."""
        for k, (low, high) in enumerate(self.cells()):
            if low <= value <= high:
                return k
        return None

    def nearest(self, low: float, high: float) -> float:
        """Return the value between ``low`` and ``high`` that is nearest to the factual."""
        return min(max(self.x0, low), high)

    def _telescope(self, values: list[float]) -> LinearForm:
        steps = [(b - a, cut) for (a, b), cut in zip(pairwise(values), self.cuts, strict=True)]
        return LinearForm(values[0], tuple((c, v) for c, v in steps if c != 0.0))

    def _inside(self, cell: int) -> LinearForm:
        """Return 1 where the value lies in the cell, else 0."""
        form = LinearForm(0.0, ((1.0, self.cuts[cell - 1]),)) if cell > 0 else LinearForm(1.0)
        return form + LinearForm(0.0, ((-1.0, self.cuts[cell]),)) if cell < len(self.cuts) else form

    def _write_order(self) -> None:
        rows = Rows(self.block, "ordered")
        container = self.block.ordered
        for index in [index for index in container if index[0] == self.name]:
            del container[index]
        for (low, high), (before, key) in zip(pairwise(self.cuts), pairwise(self.keys), strict=True):
            index = (self.name, self.block.cut_text(self.name, key))
            # Two cuts of a published instance may lie closer than its gap: nothing is between them.
            empty = before[1] > key[0]
            rows.add(index, LinearForm(0.0, ((1.0, low), (-1.0, high))), lower=0.0, upper=0.0 if empty else None)

    # ---- the coordinate ----------------------------------------------------------------------------------------------
    def raw(self) -> LinearForm:
        """Return the value; its variable and link rows are made when first asked for."""
        if self.is_point:
            return LinearForm(self.interval.lower)
        if self.variable is None:
            self._make_variable()
        return LinearForm(0.0, ((1.0, self.variable),))

    def _make_variable(self) -> None:
        interval, block, name = self.interval, self.block, self.name
        variable = block.x[name]
        variable.setlb(interval.lower if math.isfinite(interval.lower) else None)
        variable.setub(interval.upper if math.isfinite(interval.upper) else None)
        self.variable = variable
        if interval.step is not None:
            if interval.step == 1.0 and float(interval.anchor).is_integer():
                variable.domain = pyo.Integers
            else:
                count = block.steps[name]
                form = LinearForm(-interval.anchor, ((1.0, variable), (-interval.step, count)))
                Rows(block, "on_grid").add(name, form, lower=0.0, upper=0.0)
        variable.set_value(self.interval.clip(self.x0), skip_validation=True)
        self._write_links()
        self.refresh()

    def _write_links(self) -> None:
        """Tie the coordinate to the cuts, two telescoped rows for all of them (F4)."""
        if not self.cuts:
            return
        name, cells = self.name, self.cells()
        self.require_bounds("a link between cuts and a coordinate")
        for container in ("right_end", "left_end", "up_floor", "down_floor"):
            rows = self.block.component(container)
            if rows is not None and name in rows:
                del rows[name]
        x = LinearForm(0.0, ((1.0, self.variable),))
        Rows(self.block, "left_end").add(name, x + self._telescope([low for low, _ in cells]).scaled(-1.0), lower=0.0)
        Rows(self.block, "right_end").add(
            name, x + self._telescope([high for _, high in cells]).scaled(-1.0), upper=0.0
        )
        if self._moves is not None:
            self._write_floors()

    def require_bounds(self, who: str) -> None:
        """Refuse an infinite bound, naming the column."""
        if not (math.isfinite(self.interval.lower) and math.isfinite(self.interval.upper)):
            raise UnboundedFeatureError(
                who,
                "finite bounds",
                f"column {self.name!r} may reach [{self.interval.lower}, {self.interval.upper}]",
                f"Set them: space.update({self.name!r}, lower=..., upper=...).",
            )

    def moves(self) -> tuple[LinearForm, LinearForm]:
        """Return the move (down, up), both at least 0; their variables and row are made when first asked for."""
        if self.is_point:
            move = self.interval.lower - self.x0
            return LinearForm(max(-move, 0.0)), LinearForm(max(move, 0.0))
        value = self.raw()
        if self._moves is None:
            self._moves = (self.block.down[self.name], self.block.up[self.name])
            down, up = self._moves
            # Without these, a column that may only fall could go "up 1, down 1", and count as changed where it is.
            for move, room in ((down, self.x0 - self.interval.lower), (up, self.interval.upper - self.x0)):
                move.setub(max(room, 0.0) if math.isfinite(room) else None)
            home = (-1.0, self.block.factual[self.name])
            form = value + LinearForm(0.0, (home, (1.0, down), (-1.0, up)))
            Rows(self.block, "move").add(self.name, form, lower=0.0, upper=0.0)
            if self.cuts:
                self._write_floors()
        down, up = self._moves
        return LinearForm(0.0, ((1.0, down),)), LinearForm(0.0, ((1.0, up),))

    def _write_floors(self) -> None:
        """Say in the cuts how long the move is at least: implied for integral cuts, and what makes the bound strong."""
        assert self._moves is not None  # noqa: S101 - called only once the moves exist
        down, up = (LinearForm(0.0, ((1.0, v),)) for v in self._moves)
        cells = self.cells()
        rise = self._telescope([max(low - self.x0, 0.0) for low, _ in cells])
        fall = self._telescope([max(self.x0 - high, 0.0) for _, high in cells])
        Rows(self.block, "up_floor").add(self.name, up + rise.scaled(-1.0), lower=0.0)
        Rows(self.block, "down_floor").add(self.name, down + fall.scaled(-1.0), lower=0.0)

    def indicator(self, ranks: AbstractSet[int]) -> LinearForm:
        """Refuse: a number has no levels."""
        del ranks
        raise InvalidTypeError(
            "is_level",
            "a column with levels",
            f"column {self.name!r} is {self.feature.kind}",
            f"Use raw[{self.name!r}], or declare the column categorical or ordinal in the space.",
        )

    # ---- changes and costs -------------------------------------------------------------------------------------------
    def _changed_form(self) -> LinearForm:
        if self.is_point:
            return LinearForm(0.0 if self.interval.lower == self.x0 else 1.0)
        home = self.cell_of(self.x0)
        if home is None:
            return LinearForm(1.0)
        if self.variable is None:
            return self._inside(home).complement()
        if self.moved is None:
            self._make_moved()
        if self.cuts:
            away = self._inside(home).complement()
            rows = self.block.component("moved_floor")
            if rows is not None and self.name in rows:
                del rows[self.name]
            form = LinearForm(0.0, ((1.0, self.moved),)) + away.scaled(-1.0)
            Rows(self.block, "moved_floor").add(self.name, form, lower=0.0)
        return LinearForm(0.0, ((1.0, self.moved),))

    def _make_moved(self) -> None:
        self.require_bounds("a count of changes")
        down, up = self.moves()
        self.moved = self.block.moved[self.name]
        lower, upper = self.interval.lower, self.interval.upper
        switch = LinearForm(0.0, ((1.0, self.moved),))
        if upper > self.x0:
            Rows(self.block, "moved_up").add(self.name, up + switch.scaled(self.x0 - upper), upper=0.0)
        if lower < self.x0:
            Rows(self.block, "moved_down").add(self.name, down + switch.scaled(lower - self.x0), upper=0.0)
        self._write_claims(0)

    def claim(self, variable: Any, value: int, lower: float, upper: float) -> None:
        """Note that x lies in the bounds where another formulation's binary ``variable`` takes ``value``."""
        self.claims.append((variable, value, lower, upper))
        if self.moved is not None:
            self._write_claims(len(self.claims) - 1)

    def _write_claims(self, first: int) -> None:
        """Count a claim that keeps the factual out as a move: the coordinate's rows see it to a tolerance only."""
        for k, (variable, value, lower, upper) in enumerate(self.claims[first:], start=first):
            if not lower <= self.x0 <= upper:
                on = LinearForm(0.0, ((1.0, variable),))
                form = LinearForm(0.0, ((1.0, self.moved),)) + (on if value else on.complement()).scaled(-1.0)
                Rows(self.block, "moved_claim").add((self.name, k), form, lower=0.0)

    def _directions(self) -> tuple[LinearForm, LinearForm]:
        r"""Split ``moved`` into a binary for each direction: :math:`z = z^- + z^+`, one made when first asked for."""
        moved, (down, up) = self.changed_form(), self.moves()
        sides = []
        for side, move, room in (
            ("down", down, self.x0 - self.interval.lower),
            ("up", up, self.interval.upper - self.x0),
        ):
            if room <= 0:
                sides.append(LinearForm())
                continue
            switch = LinearForm(0.0, ((1.0, self.block.direction[self.name, side]),))
            Rows(self.block, "most").add((self.name, side), move + switch.scaled(-room), upper=0.0)
            sides.append(switch)
        form = moved.scaled(-1.0) + sides[0] + sides[1]
        Rows(self.block, "one_direction").add(self.name, form, lower=0.0, upper=0.0)
        return sides[0], sides[1]

    def faithful(self) -> None:
        r"""Make ``moved`` exact: 1 also forces a move of the column's step, or :data:`LEAST_MOVE` of its range.

        .. math:: \epsilon z^+ \le p \le (u - x^0) z^+,\quad \epsilon z^- \le n \le (x^0 - l) z^-,\quad z = z^+ + z^-.
        """
        if self._faithful or self.is_point or self.variable is None or self.cell_of(self.x0) is None:
            return
        self._faithful = True
        least, moves = self.least_move(), self.moves()
        for side, switch, move in zip(("down", "up"), self._directions(), moves, strict=True):
            if switch.terms:
                Rows(self.block, "least").add((self.name, side), move + switch.scaled(-least), lower=0.0)

    def least_move(self) -> float:
        """Return the least move that counts as a change where answers must change different columns."""
        if self.interval.step is not None:
            return self.interval.step
        width = self.feature.upper - self.feature.lower
        return LEAST_MOVE * (width if math.isfinite(width) and width > 0 else 1.0)

    def _price_form(self, price: Price) -> Any:
        if self.is_point:
            return price.of(self.interval.lower - self.x0)
        if self.variable is None:
            costs = [price.of(self.nearest(low, high) - self.x0) for low, high in self.cells()]
            return self._telescope(costs).expression()
        if price.kind == "fixed":
            if price.down == price.up:
                return self.changed_form().scaled(price.up).expression()
            down, up = self._directions()
            return (down.scaled(price.down) + up.scaled(price.up)).expression()
        if price.kind == "square" and price.down == price.up:
            move = self.variable - self.block.factual[self.name]
            return price.up**2 * move**2
        down, up = self.moves()
        if price.kind == "linear":
            return (down.scaled(price.down) + up.scaled(price.up)).expression()
        return (price.down * down.expression()) ** 2 + (price.up * up.expression()) ** 2

    # ---- values ------------------------------------------------------------------------------------------------------
    def bounds_here(self) -> tuple[float, float]:
        """Return the cell that the integer decisions select, at the variables' current values."""
        low, high = self.cells()[sum(1 for cut in self.cuts if (cut.value or 0.0) > 0.5)]
        for variable, value, lower, upper in self.claims:
            if round(variable.value or 0.0) == value:
                low, high = max(low, lower), min(high, upper)
        return low, high

    def decode(self) -> float:
        """Return the value: in the cell that the integers select, at the coordinate or nearest to the factual."""
        if self.is_point:
            return self.interval.lower
        low, high = self.bounds_here()
        wanted = self.x0 if self.variable is None or self.variable.value is None else float(self.variable.value)
        value = min(max(self.interval.clip(wanted), low), high)
        # A solver's coordinate is right to a tolerance only: at the factual it means no move.
        near = self.interval.step is None and abs(value - self.x0) <= max(1e-9, 1e-11 * abs(self.x0))
        if near and low <= self.x0 <= high:
            return self.x0
        return value

    def place(self, value: float) -> None:
        """Set cuts, coordinate and moves to those of ``value``."""
        for (_, right), cut in zip(self.keys, self.cuts, strict=True):
            cut.set_value(1 if value >= right else 0, skip_validation=True)
        if self.variable is not None:
            self.variable.set_value(value, skip_validation=True)
        if self._moves is not None:
            self._moves[0].set_value(max(self.x0 - value, 0.0), skip_validation=True)
            self._moves[1].set_value(max(value - self.x0, 0.0), skip_validation=True)
        if self.moved is not None:
            self.moved.set_value(0 if value == self.x0 else 1, skip_validation=True)
        if self.interval.step is not None and self.name in self.block.steps:
            self.block.steps[self.name].set_value(
                round((value - self.interval.anchor) / self.interval.step), skip_validation=True
            )

    def differs(self, value: float) -> LinearForm:
        """Return a form that is at least 1 where the decision is another: the cell, or whether an uncut column changes.

        A column that another formulation cuts (``claims``) differs by that formulation's own decisions.
        """
        if self.is_point or self.claims:
            return LinearForm()
        if self.cuts:
            cell = self.cell_of(value)
            return LinearForm(1.0) if cell is None else self._inside(cell).complement()
        if self.variable is None:
            return LinearForm()
        self.faithful()
        changed = self.changed_form()
        return changed if value == self.x0 else changed.complement()

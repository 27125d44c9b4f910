"""A numeric column: ordered cuts where a tree splits it, a coordinate only where a row needs its value."""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import pyomo.environ as pyo

from ceopt.formulations.columns.change_indicator import ChangeIndicator
from ceopt.formulations.columns.coordinate import AbstractCoordinate, Price
from ceopt.formulations.columns.length import Length
from ceopt.formulations.columns.numeric_cells import Cells
from ceopt.formulations.linear_form import LinearForm, Rows, total
from ceopt.solvers.errors import InvalidTypeError, UnboundedFeatureError

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.reachable import Interval

__all__ = ["LEAST_MOVE", "Numeric", "unit_of"]

#: A continuous column counts as changed, where two answers must change different columns, once it moves by this share
#: of its range (or of 1 where the range is unknown). Without a least move the infimum is not attained.
LEAST_MOVE = 1e-3

#: Ranges for which a solver's absolute tolerance of 1e-6 is neither coarse nor lost in rounding.
_ORDINARY = (5e-2, 1e7)


def unit_of(interval: Interval, feature: Feature) -> float:
    """Return 1, or the power of two nearest to a range (or a step) that is very small or very large.

    Without bounds, the range of the data stands for it, or the factual where that is larger.
    """
    width = interval.upper - interval.lower if interval.step is None else interval.step
    if not math.isfinite(width) or width <= 0.0:
        width = max(feature.scale("range"), abs(interval.anchor))
    return 1.0 if _ORDINARY[0] <= width <= _ORDINARY[1] else 2.0 ** round(math.log2(width))


@final
class Numeric(AbstractCoordinate):
    r"""A number in raw units, cut into cells ``[r_k, l_{k+1}]`` by the splits that the model has on it.

    .. math::
        \text{cost} = c_0 + \sum_k (c_k - c_{k-1})\, y_k \qquad\text{(no coordinate)} \\
        x \ge r_0 + \sum_k (r_k - r_{k-1})\, y_k, \quad x \le l_1 + \sum_k (l_{k+1} - l_k)\, y_k, \quad
        x - x^0 = p - n \qquad\text{(with one)}

    ======== ===================== ============================================================
    symbol   component             meaning
    ======== ===================== ============================================================
    y_k      ``cut[name, l_k]``    binary, 1 iff x lies right of the k-th cut (:class:`Cells`)
    l_k, r_k                       neighbouring values in reach, left and right of it
    c_k                            cost of the value of cell k nearest to the factual
    x        ``x[name]``           the value; made when first asked for
    p, n     ``up``, ``down``      move up and down, both at least 0
    z        ``moved[name]``       binary, 0 forbids a move (:class:`ChangeIndicator`)
    e        ``length[name, ...]`` the move in units of a cost (:class:`Length`)
    ======== ===================== ============================================================

    The cell costs make any separable cost linear in the cuts (F3 of the tree literature's ordered-binary forms), so a
    column that no other row needs has neither a coordinate nor a big-M. Exact: l_k and r_k are float neighbours.

    The variables x, p and n are in raw units, except of a column whose range is below a twentieth or beyond ten
    million: there they count a power of two of the unit, so that a solver's absolute tolerances mean something.
    """

    __slots__ = (
        "_lengths",
        "_moves",
        "cells",
        "claims",
        "gaps",
        "interval",
        "is_read",
        "moved",
        "priced",
        "unit",
        "variable",
    )

    def __init__(self, block: Any, feature: Feature, x0: float) -> None:
        super().__init__(block, feature, x0)
        self.interval: Interval = block.reach[feature.name]
        self.cells = Cells(block, feature.name, self.interval)
        #: Raw units in one unit of the variables.
        self.unit = unit_of(self.interval, feature)
        self.variable: Any = None
        #: Whether a row reads the value, and not the trees alone.
        self.is_read = False
        #: Cuts that a cost alone needs: what they part is no other answer.
        self.priced: set[tuple[float, float]] = set()
        self._moves: tuple[Any, Any] | None = None
        self._lengths: dict[tuple[float, float], Length] = {}
        self.moved: ChangeIndicator | None = None
        #: (variable, value, lower, upper): where a variable of another formulation takes the value, x is in the bounds.
        self.claims: list[tuple[Any, int, float, float]] = []
        #: (left, right, block): while the block is active, its rows leave no value strictly between the two.
        self.gaps: list[tuple[float, float, Any]] = []

    # ---- cells -------------------------------------------------------------------------------------------------------
    def add_cuts(self, cuts: Iterable[tuple[float, float]], *, priced: bool = False) -> None:
        """Cut the interval between each ``(left, right)`` pair of neighbouring values in reach.

        Those that a cost alone needs (``priced``) part cells, but no two answers.
        """
        keys = set(cuts)
        self.priced = self.priced | keys.difference(self.cells.keys) if priced else self.priced - keys
        if self.cells.add(keys):
            if self.variable is not None:
                self._write_links()
            self._write_claims(0)
            self.refresh()

    def keep_within(self, lower: float, upper: float) -> None:
        """Put bounds, two values in reach, where the reach has none: for good, as big-M will rest on them."""
        low, high = self.interval.lower, self.interval.upper
        if math.isfinite(low) and math.isfinite(high):
            return
        low, high = low if math.isfinite(low) else lower, high if math.isfinite(high) else upper
        self.interval = replace(self.interval, lower=low, upper=high)
        self.cells.bound(self.interval)
        if self.variable is not None:
            self.variable.setlb(low / self.unit)
            self.variable.setub(high / self.unit)
            self._write_links()
        self.refresh()

    def claim(self, variable: Any, value: int, lower: float, upper: float) -> None:
        """Note that x lies in the bounds where another formulation's binary ``variable`` takes ``value``."""
        self.claims.append((variable, value, lower, upper))
        self._write_claims(len(self.claims) - 1)
        if self.moved is not None:
            self.moved.refresh()

    def _write_claims(self, first: int) -> None:
        """Keep cells and claims on one side of each cut: the coordinate alone ties them to the solver's tolerance only.

        Of the cuts on one side of a claim the nearest is enough, as they are in order.
        """
        keys = self.cells.keys
        for k, (variable, value, lower, upper) in enumerate(self.claims[first:] if keys else (), start=first):
            on = LinearForm(0.0, ((1.0, variable),))
            on, rows = on if value else on.complement(), Rows(self.block, "claimed")
            below, above = [key for key in keys if key[1] <= lower][-1:], [key for key in keys if key[0] >= upper][:1]
            for key, side in [(key, 1) for key in below] + [(key, 0) for key in above]:
                rows.drop((self.name, k, side))
                right = self.cells.right_of(key)
                rows.add((self.name, k, side), on + (right.complement() if side else right), upper=1.0)

    def nearest(self, low: float, high: float) -> float:
        """Return the value between ``low`` and ``high`` that is nearest to the factual."""
        return min(max(self.x0, low), high)

    # ---- the coordinate ----------------------------------------------------------------------------------------------
    def raw(self) -> LinearForm:
        """Return the value for a row that reads it: a move inside a cell of trees is then another answer."""
        self.is_read = True
        return self.value()

    def value(self) -> LinearForm:
        """Return the value; its variable and link rows are made when first asked for."""
        if self.is_point:
            return LinearForm(self.interval.lower)
        if self.variable is None:
            self._make_variable()
        return LinearForm(0.0, ((self.unit, self.variable),))

    def _make_variable(self) -> None:
        interval, block, name, unit = self.interval, self.block, self.name, self.unit
        variable = block.x[name]
        variable.setlb(interval.lower / unit if math.isfinite(interval.lower) else None)
        variable.setub(interval.upper / unit if math.isfinite(interval.upper) else None)
        self.variable = variable
        if interval.step is not None:
            if interval.step == unit == 1.0 and float(interval.anchor).is_integer():
                variable.domain = pyo.Integers
            else:
                count = block.steps[name]
                for end, bound in ((interval.lower, count.setlb), (interval.upper, count.setub)):
                    if math.isfinite(end):  # HiGHS takes no start where an integer column lacks a bound
                        bound(round((end - interval.anchor) / interval.step))
                form = LinearForm(-interval.anchor / unit, ((1.0, variable), (-interval.step / unit, count)))
                Rows(block, "on_grid").add(name, form, lower=0.0, upper=0.0)
        variable.set_value(self.interval.clip(self.x0) / unit, skip_validation=True)
        self._write_links()
        self.refresh()

    def _write_links(self) -> None:
        """Tie the coordinate to the cuts, two telescoped rows for all of them (F4)."""
        if not self.cells.keys:
            return
        self.require_bounds("a link between cuts and a coordinate")
        x, bounds = LinearForm(0.0, ((1.0, self.variable),)), self.cells.bounds()
        low = self.cells.at_least([low / self.unit for low, _ in bounds])
        high = self.cells.at_most([high / self.unit for _, high in bounds])
        for container, end, lower, upper in (("left_end", low, 0.0, None), ("right_end", high, None, 0.0)):
            rows = Rows(self.block, container)
            rows.drop(self.name)
            rows.add(self.name, x + end.scaled(-1.0), lower=lower, upper=upper)
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

    @property
    def rooms(self) -> tuple[float, float]:
        """How far the value may move (down, up), in the variables' unit."""
        return (self.x0 - self.interval.lower) / self.unit, (self.interval.upper - self.x0) / self.unit

    def moves(self) -> tuple[LinearForm, LinearForm]:
        """Return the move (down, up) in the variables' unit; their variables and row are made when first asked for."""
        if self.is_point:
            move = (self.interval.lower - self.x0) / self.unit
            return LinearForm(max(-move, 0.0)), LinearForm(max(move, 0.0))
        value = self.value().scaled(1.0 / self.unit)
        if self._moves is None:
            self._moves = (self.block.down[self.name], self.block.up[self.name])
            down, up = self._moves
            # Without these, a column that may only fall could go "up 1, down 1", and count as changed where it is.
            for move, room in zip(self._moves, self.rooms, strict=True):
                if room <= 0.0:
                    move.setub(0.0)
            home = (-1.0 / self.unit, self.block.factual[self.name])
            form = value + LinearForm(0.0, (home, (1.0, down), (-1.0, up)))
            Rows(self.block, "move").add(self.name, form, lower=0.0, upper=0.0)
            if self.cells.keys:
                self._write_floors()
        down, up = self._moves
        return LinearForm(0.0, ((1.0, down),)), LinearForm(0.0, ((1.0, up),))

    def _write_floors(self) -> None:
        """Say in the cuts how long the move is at least: implied for integral cuts, and what makes the bound strong."""
        assert self._moves is not None  # noqa: S101 - called only once the moves exist
        bounds = self.cells.bounds()
        # A fall shrinks to the right, so it is the negative of ascending values.
        fall = self.cells.at_most([-max(self.x0 - high, 0.0) / self.unit for _, high in bounds]).scaled(-1.0)
        rise = self.cells.at_least([max(low - self.x0, 0.0) / self.unit for low, _ in bounds])
        for container, move, least in zip(("down_floor", "up_floor"), self._moves, (fall, rise), strict=True):
            rows = Rows(self.block, container)
            rows.drop(self.name)
            rows.add(self.name, LinearForm(0.0, ((1.0, move),)) + least.scaled(-1.0), lower=0.0)

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
        home = self.cells.cell_of(self.x0)
        if home is None:
            return LinearForm(1.0)
        if self.variable is None:
            return self.cells.inside(home).complement()
        if self.moved is None:
            self.moved = ChangeIndicator(self)
        return self.moved.form

    def refresh(self) -> None:
        """Rewrite what depends on the cuts and the coordinate after some were added."""
        if self.moved is not None:
            self.moved.refresh()
        super().refresh()

    def isolate_home(self) -> None:
        """Make a cell of the factual alone, so that a move inside its cell is one that the cuts see.

        A column with a coordinate has :class:`~ceopt.formulations.columns.change_indicator.ChangeIndicator` for that.
        Of a continuous column the values closer than the least move are left out: no row reads where in the cell the
        value lies.
        """
        home = self.cells.cell_of(self.x0)
        if self.is_point or self.variable is not None or home is None:
            return
        (low, high), least = self.cells.bounds()[home], self.least_move() * self.unit
        near = 0.5 if self.interval.step is not None else 1.0
        below, above = self.interval.floor(self.x0 - near * least), self.interval.ceil(self.x0 + near * least)
        cuts = [(below, self.x0)] if low <= below < self.x0 else []
        cuts += [(self.x0, above)] if self.x0 < above <= high else []
        self.add_cuts(cuts)

    def surely_changed_form(self) -> LinearForm:
        """Return a form that is at least 1 only where the value leaves its cell, or moves by the least move in it."""
        changed = self._changed_form()
        return changed if self.moved is None else self.moved.surely()

    def least_move(self) -> float:
        """Return the least move that counts as a change where answers must differ, in the variables' unit."""
        if self.interval.step is not None:
            return self.interval.step / self.unit
        width = self.feature.upper - self.feature.lower
        return LEAST_MOVE * (width if math.isfinite(width) and width > 0 else 1.0) / self.unit

    def _length(self, price: Price) -> Any:
        """Return the variable that holds the length of the move at a price; made when first asked for."""
        slopes = price.down, price.up
        if slopes not in self._lengths:
            self._lengths[slopes] = Length(self, *slopes)
        return self._lengths[slopes].variable

    def _price_form(self, price: Price) -> Any:
        if self.is_point:
            return price.of(self.interval.lower - self.x0)
        if self.variable is None:
            costs = [price.of(self.nearest(low, high) - self.x0) for low, high in self.cells.bounds()]
            return self.cells.telescope(costs).expression()
        if price.kind == "fixed":
            if not self.interval.lower <= self.x0 <= self.interval.upper:  # a reach without the factual: it must move
                return price.of(self.interval.lower - self.x0)
            if price.down == price.up:
                return self.changed_form().scaled(price.up).expression()
            self.changed_form()
            assert self.moved is not None  # noqa: S101 - made by the line above
            down, up = self.moved.directions()
            return (down.scaled(price.down) + up.scaled(price.up)).expression()
        if price.kind == "linear":
            down, up = self.moves()
            return (down.scaled(price.down * self.unit) + up.scaled(price.up * self.unit)).expression()
        return self._length(price) if price.kind == "length" else self._length(price) ** 2

    # ---- values ------------------------------------------------------------------------------------------------------
    def bounds_here(self) -> tuple[float, float]:
        """Return the cell that the integer decisions select, at the variables' current values."""
        low, high = self.cells.selected()
        for variable, value, lower, upper in self.claims:
            if round(variable.value or 0.0) == value:
                low, high = max(low, lower), min(high, upper)
        return low, high

    def decode(self) -> float:
        """Return the value: in the cell that the integers select, at the coordinate or nearest to the factual."""
        if self.is_point:
            return self.interval.lower
        low, high = self.bounds_here()
        known = self.variable is not None and self.variable.value is not None
        wanted = float(self.variable.value) * self.unit if known else self.x0
        value = min(max(self.interval.clip(wanted), low), high)
        # A solver's coordinate is right to a tolerance only: at the factual it means no move.
        stays = self.moved is not None and round(self.moved.variable.value or 0.0) == 0
        near = self.interval.step is None and abs(value - self.x0) <= self._noise()
        if (stays or near) and low <= self.x0 <= high:
            return self.x0
        return value

    def _noise(self) -> float:
        """Return how far a solver's coordinate may be off, in raw units, but never a visible share of the range."""
        width = self.interval.upper - self.interval.lower
        large = min(1e-11 * abs(self.x0), 1e-7 * width)
        return max(1e-9 * min(self.unit, 1.0), large)

    def place(self, value: float) -> None:
        """Set cuts, coordinate and moves to those of ``value``."""
        self.cells.place(value)
        if self.variable is not None:
            self.variable.set_value(value / self.unit, skip_validation=True)
        if self._moves is not None:
            self._moves[0].set_value(max(self.x0 - value, 0.0) / self.unit, skip_validation=True)
            self._moves[1].set_value(max(value - self.x0, 0.0) / self.unit, skip_validation=True)
        for length in self._lengths.values():
            length.place(value - self.x0)
        if self.moved is not None:
            self.moved.variable.set_value(0 if value == self.x0 else 1, skip_validation=True)
        if self.interval.step is not None and self.name in self.block.steps:
            self.block.steps[self.name].set_value(
                round((value - self.interval.anchor) / self.interval.step), skip_validation=True
            )

    def differs(self, value: float) -> LinearForm:
        """Return a form that is at least 1 where the decision is another: the cell, or at home, whether it moves.

        Whether it moves inside its home cell counts where a row reads the value, and not the trees alone. A column that
        another formulation cuts (``claims``) differs by that formulation's own decisions too.
        """
        if self.is_point:
            return LinearForm()
        if self.cells.cell_of(value) is None:
            return LinearForm(1.0)
        keys = [key for key in self.cells.keys if key not in self.priced]
        left, right = [key for key in keys if key[1] <= value][-1:], [key for key in keys if key[0] >= value][:1]
        forms = [self.cells.right_of(key).complement() for key in left]
        other = total([*forms, *(self.cells.right_of(key) for key in right)])
        if not self.is_read or not self._is_home(value, left, right):
            return other
        return other + (self.surely_changed_form() if value == self.x0 else self.changed_form().complement())

    def _is_home(self, value: float, left: list[tuple[float, float]], right: list[tuple[float, float]]) -> bool:
        """Tell whether no cut beside a value, nor the end of a claim, lies between it and the factual."""
        if self.cells.cell_of(self.x0) is None:
            return False
        if any(key[1] > self.x0 for key in left) or any(key[0] < self.x0 for key in right):
            return False
        return all((low <= value <= high) == (low <= self.x0 <= high) for _, _, low, high in self.claims)

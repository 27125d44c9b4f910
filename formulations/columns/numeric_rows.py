"""The rows of a numeric column: :func:`write_rows` lists and writes all that follow from what is asked of the column.

Below it stand what is asked (:class:`NumericState`, :class:`Claim`) and the cells between the cuts (:class:`Cells`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias, final

from ceopt.formulations.linear_form import LinearForm, Rows, total
from ceopt.formulations.space.reachable import Interval
from ceopt.formulations.tolerances import TINY
from ceopt.solvers.errors import UnboundedFeatureError

__all__ = ["Cells", "Claim", "NumericState", "Slopes", "require_bounds", "write_rows"]


#: A cut: the values in reach left and right of it.
Cut: TypeAlias = tuple[float, float]
#: Prices of a unit of the move (down, up).
Slopes: TypeAlias = tuple[float, float]


# ---- the rows --------------------------------------------------------------------------------------------------------
def write_rows(state: NumericState) -> None:
    r"""Write all rows of a numeric column; those that were written when less was asked of it go.

    ====================== ============================================================================================
    symbol                 meaning
    ====================== ============================================================================================
    x, x^0                 the value and its factual value; the least and the greatest value in reach are
                           :math:`\underline{x}, \overline{x}`. Where x counts from the factual, that is taken from all
                           values below
    l_k, r_k               the neighbouring values in reach left and right of cut k = 1, ..., m;
                           :math:`r_0 = \underline{x}` and :math:`l_{m+1} = \overline{x}`, so cell k is
                           :math:`[r_k, l_{k+1}]`, and the home cell is the one with x^0
    y_k                    binary, 1 right of cut k
    w                      another formulation's binary, which claims that x is on one side of a cut
    i                      whole number of steps, each of length :math:`\sigma`
    p, n                   how far x moves up and down
    e                      signed length of the move in a cost with the slopes :math:`a^+` up and :math:`a^-` down
    z, z^+, z^-            binaries: a move, a move up, a move down is permitted
    f^+, f^-               binaries: a move up, a move down is forced
    epsilon, o             the least move that counts inside the home cell; o is 1 outside of it, or where a
                           claim binds that x^0 does not meet
    ====================== ============================================================================================

    The cuts, and the claims (``ordered``, ``claimed``):

    .. math:: y_1 \ge \dots \ge y_m, \qquad [w \text{ claims } x \ge r_k] \le y_k, \quad
              [w \text{ claims } x \le l_k] \le 1 - y_k

    The value, on the grid of its steps and tied to the cuts (``on_grid``, ``left_end``, ``right_end``):

    .. math:: x = x^0 + \sigma i, \qquad
              r_0 + \sum_k (r_k - r_{k-1})\, y_k \le x \le l_1 + \sum_k (l_{k+1} - l_k)\, y_k

    Its moves, and how long they are at least in the cell k that the cuts select (``move``, ``up_floor``,
    ``down_floor``):

    .. math:: x - x^0 = p - n, \qquad p \ge \max(r_k - x^0, 0), \quad n \ge \max(x^0 - l_{k+1}, 0)

    The length of the move (``length_of``):

    .. math:: e = a^+ (x - x^0) \text{ if } a^+ = a^-, \qquad\text{else}\quad
              e \ge a^+ (x - x^0),\; e \ge a^- (x^0 - x)

    The permission to move (``moved_up``, ``moved_down``, ``moved_floor``, ``moved_claim``):

    .. math:: p \le (\overline{x} - x^0)\, z, \quad n \le (x^0 - \underline{x})\, z, \qquad
              z \ge 1 - [\text{home cell}], \quad z \ge [w \text{ claims that } x \ne x^0]

    One for each direction (``one_direction``, ``most``, ``sided``):

    .. math:: z = z^+ + z^-, \quad p \le (\overline{x} - x^0)\, z^+, \quad n \le (x^0 - \underline{x})\, z^-, \qquad
              [\text{right of home}] \le z^+, \quad [\text{left of home}] \le z^-

    The duty to move, by the least move where x stays in the home cell (``least``):

    .. math:: p + \epsilon o \ge \epsilon f^+, \qquad n + \epsilon o \ge \epsilon f^-

    Raises
    ------
    UnboundedFeatureError
        A row needs a bound that the column does not have.
    """
    for rows, index in state.written:
        Rows(state.block, rows).drop(index)
    state.written.clear()
    if state.cells.keys:
        _write_order(state)
        _write_claims(state)
    if state.x is None:
        return
    _write_grid(state)
    if state.cells.keys:
        _write_links(state)
    if state.moves:
        _write_moves(state)
    for slopes, length in state.lengths.items():
        _write_length(state, slopes, length)
    if state.moved is not None:
        _write_indicator(state)
    if state.directions:
        _write_directions(state)
    for side, switch in state.surely.items():
        _write_sure_move(state, side, switch)


def _write_order(state: NumericState) -> None:
    cells = state.cells
    bounds = cells.bounds()
    for position, (before, after) in enumerate(pairwise(cells.variables), start=1):
        least, greatest = bounds[position]
        form = LinearForm(0.0, ((1.0, before), (-1.0, after)))
        # Two cuts of a published instance may lie closer than its gap: nothing is between them.
        upper = 0.0 if least > greatest else None
        state.add("ordered", (state.name, cells.text(cells.keys[position])), form, lower=0.0, upper=upper)
    # A cut beyond bounds that were set after it: nothing is outside of it.
    ends = (("first", cells.variables[0], bounds[0], 1.0), ("last", cells.variables[-1], bounds[-1], 0.0))
    for word, cut, (least, greatest), side in ends:
        if least > greatest:
            state.add("ordered", (state.name, word, "cell"), variable_form(cut), lower=side, upper=side)


def _write_claims(state: NumericState) -> None:
    """Keep cells and claims on one side of each cut: the coordinate alone ties them to the solver's tolerance only.

    Of the cuts on one side of a claim the nearest is enough, as they are in order.
    """
    for position, claim in enumerate(state.claims):
        for key in state.cells.last_left_of(claim.lower):
            form = claim.form + state.cells.left_of(key)
            state.add("claimed", (state.name, position, 1), form, upper=1.0)
        for key in state.cells.first_right_of(claim.upper):
            form = claim.form + state.cells.right_of(key)
            state.add("claimed", (state.name, position, 0), form, upper=1.0)


def _write_grid(state: NumericState) -> None:
    if state.steps is not None:
        step, anchor = state.interval.step, state.interval.anchor
        assert step is not None  # noqa: S101 - what moves in steps has one
        form = LinearForm(-state.counted(anchor), ((1.0, state.x), (-step / state.unit, state.steps)))
        state.add("on_grid", state.name, form, lower=0.0, upper=0.0)


def _write_links(state: NumericState) -> None:
    """Tie the coordinate to the cuts, two telescoped rows for all of them."""
    require_bounds(state, "a link between cuts and a coordinate")
    bounds = state.cells.bounds()
    left_end = state.cells.lower_form([state.counted(low) for low, _ in bounds])
    right_end = state.cells.upper_form([state.counted(high) for _, high in bounds])
    x = variable_form(state.x)
    state.add("left_end", state.name, x + left_end.scaled(-1.0), lower=0.0)
    state.add("right_end", state.name, x + right_end.scaled(-1.0), upper=0.0)


def _write_moves(state: NumericState) -> None:
    down, up = state.moves["down"], state.moves["up"]
    home = state.block.factual[state.name]
    terms = ((1.0, state.x), (-1.0 / state.unit, home), (1.0, down), (-1.0, up))
    form = LinearForm(state.origin / state.unit, terms)
    state.add("move", state.name, form, lower=0.0, upper=0.0)
    if not state.cells.keys:
        return
    # Implied for integral cuts, and what makes the bound strong. A fall shrinks to the right, so it is the negative of
    # ascending values.
    bounds = state.cells.bounds()
    fall = state.cells.upper_form([-max(state.x0 - high, 0.0) / state.unit for _, high in bounds])
    rise = state.cells.lower_form([max(low - state.x0, 0.0) / state.unit for low, _ in bounds])
    state.add("down_floor", state.name, variable_form(down) + fall, lower=0.0)
    state.add("up_floor", state.name, variable_form(up) + rise.scaled(-1.0), lower=0.0)


def _write_length(state: NumericState, slopes: Slopes, length: Any) -> None:
    """Bound a length by the move: its squares are free of the cancellation that :math:`(x - x^0)^2` suffers.

    All lengths are of one size, whatever the columns' units.
    """
    down, up = slopes
    move = LinearForm(state.origin, ((state.unit, state.x), (-1.0, state.block.factual[state.name])))
    if down == up:
        form = variable_form(length) + move.scaled(-up)
        state.add("length_of", (state.name, down, up, 1.0), form, lower=0.0, upper=0.0)
        return
    for slope, sign in ((up, 1.0), (down, -1.0)):
        if slope > 0.0:
            form = variable_form(length) + move.scaled(-sign * slope)
            state.add("length_of", (state.name, down, up, sign), form, lower=0.0)


def _write_indicator(state: NumericState) -> None:
    z = variable_form(state.moved)
    for side in ("up", "down"):
        room = state.rooms[side]
        if room > 0.0:
            form = variable_form(state.moves[side]) + z.scaled(-room)
            state.add(f"moved_{side}", state.name, form, upper=0.0)
    # The coordinate's own rows see a move across a cut to the solver's tolerance only.
    if state.cells.keys:
        state.add("moved_floor", state.name, z + _outside_home(state).scaled(-1.0), lower=0.0)
    for position, claim in enumerate(state.claims):
        if not claim.holds(state.x0):
            state.add("moved_claim", (state.name, position), z + claim.form.scaled(-1.0), lower=0.0)


def _write_directions(state: NumericState) -> None:
    switches = {side: variable_form(switch) for side, switch in state.directions.items()}
    for side, switch in switches.items():
        form = variable_form(state.moves[side]) + switch.scaled(-state.rooms[side])
        state.add("most", (state.name, side), form, upper=0.0)
    form = total([variable_form(state.moved).scaled(-1.0), *switches.values()])
    state.add("one_direction", state.name, form, lower=0.0, upper=0.0)
    # Which way a move across a cut, or into a claim, goes: a short one the rows see to a tolerance only.
    down, up = switches.get("down", LinearForm()), switches.get("up", LinearForm())
    for key in state.cells.last_left_of(state.x0):
        state.add("sided", (state.name, "down"), state.cells.left_of(key) + down.scaled(-1.0), upper=0.0)
    for key in state.cells.first_right_of(state.x0):
        state.add("sided", (state.name, "up"), state.cells.right_of(key) + up.scaled(-1.0), upper=0.0)
    for position, claim in enumerate(state.claims):
        if not claim.holds(state.x0):
            switch = up if claim.lower > state.x0 else down
            state.add("sided", (state.name, position), claim.form + switch.scaled(-1.0), upper=0.0)


def _write_sure_move(state: NumericState, side: str, switch: Any) -> None:
    outside = [claim.form for claim in state.claims if not claim.holds(state.x0)]
    if state.cells.keys:
        outside.append(_outside_home(state))
    least = (total(outside) + variable_form(switch).scaled(-1.0)).scaled(state.least_move)
    state.add("least", (state.name, side), variable_form(state.moves[side]) + least, lower=0.0)


def _outside_home(state: NumericState) -> LinearForm:
    """Return 1 outside the cell that holds the factual, else 0."""
    home = state.cells.cell_of(state.x0)
    return LinearForm(1.0) if home is None else state.cells.inside(home).complement()


# ---- what is asked of a column ---------------------------------------------------------------------------------------
@final
@dataclass(slots=True, eq=False)
class NumericState:
    """What is asked of a numeric column so far: the variables that were made for it, and what others claim of it.

    Attributes
    ----------
    block, name, x0
        The block that holds variables and rows, the column, and its factual value in raw units.
    unit
        Raw units in one unit of the variables.
    origin
        The raw value at which ``x`` is 0.
    least_move
        Least move that counts as a change inside the home cell, in the variables' unit.
    cells
        The cuts of all models and rules, and the interval that they cut.
    claims
        What other formulations' binaries say of the number.
    x, steps
        The value, and how many steps it is from the factual, where the column moves in steps.
    moves
        Side ("down", "up") -> how far the value moves to that side, at least 0.
    lengths
        The move in units of a cost, by the slopes of the cost.
    moved
        Binary, 0 forbids a move.
    directions
        Side -> binary, 0 forbids a move to that side; their sum is ``moved``. A side without room has none.
    surely
        Side -> binary, 1 forces a move to that side, out of the home cell or by the least move.
    """

    block: Any
    name: str
    x0: float
    unit: float
    origin: float
    least_move: float
    cells: Cells
    claims: list[Claim] = field(default_factory=list)
    x: Any = None
    steps: Any = None
    moves: Mapping[str, Any] = field(default_factory=dict)
    lengths: dict[Slopes, Any] = field(default_factory=dict)
    moved: Any = None
    directions: Mapping[str, Any] = field(default_factory=dict)
    surely: Mapping[str, Any] = field(default_factory=dict)
    written: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def interval(self) -> Interval:
        """The values in reach."""
        return self.cells.interval

    @property
    def rooms(self) -> dict[str, float]:
        """How far the value may move to each side, in the variables' unit."""
        down, up = self.x0 - self.interval.lower, self.interval.upper - self.x0
        return {"down": down / self.unit, "up": up / self.unit}

    def counted(self, value: float) -> float:
        """Return a raw value as the variable ``x`` counts it."""
        return (value - self.origin) / self.unit

    def add(
        self, rows: str, index: Any, form: LinearForm, *, lower: float | None = None, upper: float | None = None
    ) -> None:
        """Add a row, and note that it is this column's."""
        Rows(self.block, rows).add(index, form, lower=lower, upper=upper)
        self.written.append((rows, index))


@final
@dataclass(frozen=True, slots=True)
class Claim:
    """Where another formulation's binary takes a value, the number lies between two bounds."""

    variable: Any
    value: int
    lower: float
    upper: float

    @property
    def form(self) -> LinearForm:
        """1 where the claim binds, else 0."""
        on = variable_form(self.variable)
        return on if self.value else on.complement()

    def holds(self, value: float) -> bool:
        """Whether a value is within the bounds."""
        return self.lower <= value <= self.upper

    @property
    def binds_now(self) -> bool:
        """Whether the binary's current value is the claim's."""
        return round(self.variable.value or 0.0) == self.value


def require_bounds(state: NumericState, who: str) -> None:
    """Refuse an infinite bound, naming the column."""
    lower, upper = state.interval.lower, state.interval.upper
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise UnboundedFeatureError(
            who,
            "finite bounds",
            f"column {state.name!r} may reach [{lower}, {upper}]",
            state.block.bounds_advice(state.name),
        )


# ---- cells -----------------------------------------------------------------------------------------------------------
@final
class Cells:
    r"""Cells ``[r_k, l_{k+1}]`` between cuts, each cut a pair of neighbouring values in reach.

    .. math:: y_1 \ge \dots \ge y_m, \qquad y_k = 1 \iff x \ge r_k, \qquad y_k = 0 \iff x \le l_k.

    Anything that is constant on each cell is linear in y: :math:`c_0 + \sum_k (c_k - c_{k-1})\, y_k`.
    """

    __slots__ = ("_known", "_texts", "block", "interval", "keys", "name", "variables")

    def __init__(self, block: Any, name: str, interval: Interval) -> None:
        self.block, self.name, self.interval = block, name, interval
        self.keys: list[Cut] = []
        self.variables: list[Any] = []
        self._known: dict[Cut, Any] = {}
        self._texts: dict[Cut, str] = {}

    def add(self, cuts: Iterable[Cut]) -> bool:
        """Add the cuts that are not there yet, ordered with the others; False if all were there."""
        new = sorted(key for key in set(cuts) if key not in self._known)
        if not new:
            return False
        taken = set(self._texts.values())
        for key in new:
            choices = (f"{key[0]:.6g}", f"{key[0]:.9g}", repr(key[0]), f"{key[0]!r} {key[1]!r}")
            text = next(choice for choice in choices if choice not in taken)
            taken.add(text)
            self._texts[key] = text
            self._known[key] = self.block.cut[self.name, text]
        self.keys = sorted(self._known)
        self.variables = [self._known[key] for key in self.keys]
        return True

    def text(self, key: Cut) -> str:
        """Return the text by which a cut is named in its variable's index."""
        return self._texts[key]

    # ---- where values lie --------------------------------------------------------------------------------------------
    def bounds(self) -> list[tuple[float, float]]:
        """Return the cells' least and greatest values, from left to right; of an empty cell the first is greater."""
        lows = [self.interval.lower]
        for _, right in self.keys:
            lows.append(max(lows[-1], right))
        highs = [self.interval.upper]
        for left, _ in reversed(self.keys):
            highs.append(min(highs[-1], left))
        return list(zip(lows, reversed(highs), strict=True))

    def cell_of(self, value: float) -> int | None:
        """Return the position of the cell that holds ``value``, or None between two cells."""
        for position, (low, high) in enumerate(self.bounds()):
            if low <= value <= high:
                return position
        return None

    def last_left_of(self, value: float) -> list[Cut]:
        """Return the last cut at or left of a value, alone in a list; none where there is none."""
        return [key for key in self.keys if key[1] <= value][-1:]

    def first_right_of(self, value: float) -> list[Cut]:
        """Return the first cut at or right of a value, alone in a list; none where there is none."""
        return [key for key in self.keys if key[0] >= value][:1]

    def selected(self) -> tuple[float, float]:
        """Return the cell that the binaries' current values select."""
        steps = sum(1 for cut in self.variables if (cut.value or 0.0) > 0.5)
        return self.bounds()[steps]

    def place(self, value: float) -> None:
        """Set the binaries to those of ``value``."""
        for (_, right), cut in zip(self.keys, self.variables, strict=True):
            cut.set_value(1 if value >= right else 0, skip_validation=True)

    # ---- forms -------------------------------------------------------------------------------------------------------
    def right_of(self, key: Cut) -> LinearForm:
        """Return 1 where the value lies right of the cut ``key``, else 0."""
        return variable_form(self.variables[bisect_left(self.keys, key)])

    def left_of(self, key: Cut) -> LinearForm:
        """Return 1 where the value lies left of the cut ``key``, else 0."""
        return self.right_of(key).complement()

    def inside(self, cell: int) -> LinearForm:
        """Return 1 where the value lies in the cell, else 0."""
        return self.telescope([float(position == cell) for position in range(len(self.keys) + 1)])

    def telescope(self, values: list[float]) -> LinearForm:
        """Return the value of the cell selected, of one value per cell."""
        terms: list[tuple[float, Any]] = []
        for (before, after), cut in zip(pairwise(values), self.variables, strict=True):
            if after != before:
                terms.append((after - before, cut))
        return LinearForm(values[0], tuple(terms))

    def lower_form(self, values: list[float]) -> LinearForm:
        """Return a form at most the value of the cell selected (ascending values), without tiny coefficients.

        A step too small for a row waits for the next cut, which is switched on later: the bound is weaker by less than
        ``TINY``.
        """
        terms: list[tuple[float, Any]] = []
        carried = 0.0
        for (before, after), cut in zip(pairwise(values), self.variables, strict=True):
            carried += after - before
            if carried >= TINY:
                terms.append((carried, cut))
                carried = 0.0
        return LinearForm(values[0], tuple(terms))

    def upper_form(self, values: list[float]) -> LinearForm:
        """Return a form at least the value of the cell selected (ascending values), without tiny coefficients."""
        terms: list[tuple[float, Any]] = []
        carried = 0.0
        for (before, after), cut in zip(reversed(list(pairwise(values))), reversed(self.variables), strict=True):
            carried += after - before
            if carried >= TINY:
                terms.append((carried, cut))
                carried = 0.0
        return LinearForm(values[0] + carried, tuple(reversed(terms)))


def variable_form(variable: Any) -> LinearForm:
    """Return a variable as a form."""
    return LinearForm(0.0, ((1.0, variable),))

"""A numeric column: ordered cuts where a tree splits it, a coordinate only where a row needs its value.

:func:`write_rows` lists and writes all rows that follow from what is asked of the column (:class:`NumericState`,
:class:`Claim`); :class:`Cells` are the intervals between its cuts, and :class:`Numeric` is what is asked.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, final

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.columns.coordinate import AbstractCoordinate, Price, Steps, count_on
from ceopt.formulations.linear_form import LinearForm, Rows, finite_or_none, sum_form, total
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval
from ceopt.formulations.tolerances import TINY
from ceopt.solvers.errors import InvalidTypeError, UnboundedFeatureError

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

# ==== The rows of a numeric column ====================================================================================

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
    b_v, b                 binaries: the column takes the label v, a code or the missing cell; their sum
    epsilon, o             the least move that counts inside the home cell; o is 1 outside of it, or where a
                           claim binds that x^0 does not meet
    ====================== ============================================================================================

    The cuts, and the claims (``ordered``, ``claimed``):

    .. math:: y_1 \ge \dots \ge y_m, \qquad [w \text{ claims } x \ge r_k] \le y_k, \quad
              [w \text{ claims } x \le l_k] \le 1 - y_k

    The value, on the grid of its steps and tied to the cuts (``on_grid``, ``left_end``, ``right_end``):

    .. math:: x = x^0 + \sigma i, \qquad
              r_0 + \sum_k (r_k - r_{k-1})\, y_k \le x \le l_1 + \sum_k (l_{k+1} - l_k)\, y_k

    A column that takes a label rests with its amount at home: x^0, or where x^0 is a label some amount in reach
    (``one_label``, ``rest_above``, ``rest_below``, ``rest_up``, ``rest_down``):

    .. math:: b \le 1, \qquad y_k \le 1 - b \text{ right of home}, \quad y_k \ge b \text{ left of home}, \qquad
              x - x^0 \le (\overline{x} - x^0)(1 - b), \quad x^0 - x \le (x^0 - \underline{x})(1 - b)

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
    if state.labels:
        _write_labels(state)
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
        upper = None
        if least > greatest:  # two cuts of a published instance may lie closer than its gap: nothing is between them
            upper = 0.0
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


def _write_labels(state: NumericState) -> None:
    """Let the amount rest at home while the column takes a label."""
    on = state.on_label
    if len(state.labels) > 1:
        state.add("one_label", state.name, on, upper=1.0)
    for key in state.cells.first_right_of(state.x0):
        state.add("rest_above", state.name, state.cells.right_of(key) + on, upper=1.0)
    for key in state.cells.last_left_of(state.x0):
        state.add("rest_below", state.name, state.cells.left_of(key) + on, upper=1.0)
    if state.x is None:
        return
    require_bounds(state, "an amount beside a label")
    move = LinearForm(-state.counted(state.x0), ((1.0, state.x),))
    for side, sign in (("up", 1.0), ("down", -1.0)):
        room = state.rooms[side]
        state.add(f"rest_{side}", state.name, move.scaled(sign) + on.scaled(room), upper=room)


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
    state.add("move", state.name, LinearForm(state.origin / state.unit, terms), lower=0.0, upper=0.0)
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
    return state.cells.outside(state.cells.cell_of(state.x0))


# ---- what is asked of a column ---------------------------------------------------------------------------------------
@final
@dataclass(slots=True, eq=False)
class NumericState:
    """What is asked of a numeric column so far: the variables that were made for it, and what others claim of it.

    Attributes
    ----------
    block, name
        The block that holds variables and rows, and the column.
    x0
        The factual value in raw units; where that is a label, the amount at which the number rests.
    unit
        Raw units in one unit of the variables.
    origin
        The raw value at which ``x`` is 0.
    least_move
        Least move that counts as a change inside the home cell, in the variables' unit.
    cells
        The cuts of all models and rules, and the interval that they cut.
    labels
        Label -> binary, 1 where the column takes it, and no amount.
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
    labels: Mapping[float, Any] = field(default_factory=dict)
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

    @property
    def on_label(self) -> LinearForm:
        """1 where the column takes a label, else 0."""
        return sum_form(self.labels.values())

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
        new = sorted(set(cuts).difference(self._known))
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
        self.variables = list(map(self._known.__getitem__, self.keys))
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

    def last_left_of(self, value: float, without: AbstractSet[Cut] = frozenset()) -> list[Cut]:
        """Return the last cut at or left of a value, in a list that is empty where there is none."""
        return [key for key in self.keys if key[1] <= value and key not in without][-1:]

    def first_right_of(self, value: float, without: AbstractSet[Cut] = frozenset()) -> list[Cut]:
        """Return the first cut at or right of a value, in a list that is empty where there is none."""
        return [key for key in self.keys if key[0] >= value and key not in without][:1]

    def selected(self) -> tuple[float, float]:
        """Return the cell that the binaries' current values select."""
        return self.bounds()[count_on(self.variables)]

    def place(self, value: float) -> None:
        """Set the binaries to those of ``value``."""
        for (_, right), cut in zip(self.keys, self.variables, strict=True):
            cut.set_value(int(value >= right), skip_validation=True)

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

    def outside(self, cell: int | None) -> LinearForm:
        """Return 1 where the value lies outside the cell, else 0; always 1 of None, between two cells."""
        if cell is None:
            return LinearForm(1.0)
        return self.inside(cell).complement()

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


# ==== The column as models, rules and costs see it ====================================================================

#: A continuous column counts as changed, where two answers must change different columns, once it moves by this share
#: of its range (or of 1 where the range is unknown). Without a least move the infimum is not attained.
LEAST_MOVE: Final = 1e-3

#: Ranges for which a solver's absolute tolerance of 1e-6 is neither coarse nor lost in rounding.
_ORDINARY: Final = (5e-2, 1e7)

#: A number this many times its range is counted from the factual: as it stands, its size would drown its moves.
_FAR: Final = 64.0


def unit_of(interval: Interval, feature: Feature) -> float:
    """Return 1, or the power of two nearest to a range (or a step) that is very small or very large.

    Without bounds, the range of the data stands for it, or the factual where that is larger.
    """
    width = interval.step or interval.upper - interval.lower
    if not math.isfinite(width) or width <= 0.0:
        width = max(feature.scale("range"), abs(interval.anchor))
    return 1.0 if _ORDINARY[0] <= width <= _ORDINARY[1] else 2.0 ** round(math.log2(width))


def origin_of(interval: Interval, feature: Feature, x0: float) -> float:
    """Return from where the variables count: 0, or ``x0`` where that is far beyond the range of reach or data."""
    ranges = (interval.upper - interval.lower, feature.upper - feature.lower, feature.range or 0.0)
    known = [width for width in ranges if 0.0 < width < math.inf]
    if known and abs(x0) > _FAR * min(known):
        return x0
    return 0.0


def _least_move(interval: Interval, feature: Feature) -> float:
    """Return the least move that counts as a change where answers must differ, in raw units."""
    if interval.step is not None:
        return interval.step
    width = feature.upper - feature.lower
    if not 0 < width < math.inf:
        width = 1.0
    return LEAST_MOVE * width


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
    z        ``moved[name]``       binary, 0 forbids a move
    b_v      ``missing[name]``,    binary, 1 iff the cell is missing, or holds the code v
             ``code[name, v]``
    e        ``length[name, ...]`` the move in units of a cost; with one slope it bears its sign
    ======== ===================== ============================================================

    The cell costs make any separable cost linear in the cuts (the forms of ordered binaries), so a
    column that no other row needs has neither a coordinate nor a big-M. Exact: l_k and r_k are float neighbours.

    The variables x, p and n are in raw units, except of a column whose range is below a twentieth or beyond ten
    million: there they count a power of two of the unit, so that a solver's absolute tolerances mean something.
    Where the factual is more than 64 times the range of reach or data, x counts from the factual (of a caller's own
    variables, from the middle of their bounds): rows hold moves, whose size the column's own would drown.

    :func:`~ceopt.formulations.columns.numeric.write_rows` lists every row, written once all that is asked is
    known.
    """

    __slots__ = ("gaps", "home", "is_read", "priced", "state")

    def __init__(self, block: Any, feature: Feature, x0: float) -> None:
        super().__init__(block, feature, x0)
        interval: Interval = block.reach[feature.name]
        #: The amount that moves count from; where the factual is a label, the one at which the number rests.
        self.home = x0
        if feature.is_label(x0):
            self.home = 0.0 if interval.is_point else interval.clip(0.0)
        unit = unit_of(interval, feature)
        origin = origin_of(interval, feature, self.home)
        #: What is asked of the column so far, from which its rows follow.
        self.state = NumericState(
            block=block,
            name=feature.name,
            x0=self.home,
            unit=unit,
            origin=origin,
            least_move=_least_move(interval, feature) / unit,
            cells=Cells(block, feature.name, interval),
        )
        #: Whether a row reads the value, and not the trees alone.
        self.is_read = False
        #: Cuts that a cost alone needs: what they part is no other answer.
        self.priced: set[tuple[float, float]] = set()
        #: (left, right, block): while the block is active, its rows leave no value strictly between the two.
        self.gaps: list[tuple[float, float, Any]] = []
        if interval.labels and not interval.is_point:
            self.state.labels = {label: self._binary_of(label) for label in interval.labels}
            block.write_soon(self)

    def _binary_of(self, label: float) -> Any:
        if label == MISSING:
            return self.block.missing[self.name]
        return self.block.code[self.name, self.feature.from_coordinate(label)]

    @property
    def interval(self) -> Interval:
        """The values in reach."""
        return self.state.interval

    @property
    def cells(self) -> Cells:
        """The cells that the cuts of all models and rules make of the reach."""
        return self.state.cells

    @property
    def unit(self) -> float:
        """Raw units in one unit of the variables."""
        return self.state.unit

    @property
    def origin(self) -> float:
        """The raw value at which the value's variable is 0."""
        return self.state.origin

    @property
    def variable(self) -> Any:
        """The value's variable, or None where no row has asked for it."""
        return self.state.x

    def require_bounds(self, who: str) -> None:
        """Refuse an infinite bound, naming the column."""
        require_bounds(self.state, who)

    # ---- labels ------------------------------------------------------------------------------------------------------
    @property
    def on_label(self) -> LinearForm:
        """1 where the column takes some label, else 0."""
        if self.is_point:
            return LinearForm(float(self.feature.is_label(self.interval.only)))
        return self.state.on_label

    def label_form(self, value: float) -> LinearForm:
        """Return 1 where the column takes a label, else 0."""
        if self.is_point:
            return LinearForm(float(self.interval.only == value))
        if value not in self.state.labels:
            return LinearForm()
        return variable_form(self.state.labels[value])

    def _not_on_label(self, form: LinearForm, at_home: bool) -> LinearForm:
        """Return a comparison of amounts that does not hold for labels, by whether it holds for home."""
        if self.is_point and self.feature.is_label(self.interval.only):
            return LinearForm()
        if not at_home or not self.state.labels:
            return form
        return form + self.on_label.scaled(-1.0)

    # ---- cuts --------------------------------------------------------------------------------------------------------
    def add_cuts(self, cuts: Iterable[tuple[float, float]]) -> None:
        """Cut the interval between each ``(left, right)`` pair of neighbouring values in reach."""
        keys = set(cuts)
        self.priced = self.priced - keys
        if self.cells.add(keys):
            self.block.write_soon(self)

    def cut_around(self, values: Iterable[float]) -> None:
        """Cut on both sides of each value in reach, all at once."""
        pairs: list[tuple[float, float]] = []
        for value in values:
            pairs += [self.interval.below(value), self.interval.above(value)]
        self.add_cuts([(left, right) for left, right in pairs if math.isfinite(left) and math.isfinite(right)])

    def close(self, values: Iterable[float], block: Any) -> None:
        """Cut on both sides of some values in reach, ascending, and note that a block's rows leave no other."""
        kept = list(values)
        self.cut_around(kept)
        self.gaps += [(left, right, block) for left, right in pairwise([-math.inf, *kept, math.inf])]

    def isolate_home(self) -> None:
        """Make a cell of the factual alone, so that a move inside its cell is one that the cuts see.

        A column with a coordinate has its change indicator for that. Of a continuous column the values closer than the
        least move are left out: no row reads where in the cell the value lies.
        """
        home = self.cells.cell_of(self.home)
        if self.is_point or self.is_filled_in or self.variable is not None or home is None:
            return
        low, high = self.cells.bounds()[home]
        share = 0.5 if self.interval.step is not None else 1.0
        apart = share * (self.least_move() * self.unit)
        # Of a column whose range is a few floats the least move is less than one.
        below = self.interval.floor(min(self.home - apart, math.nextafter(self.home, -math.inf)))
        above = self.interval.ceil(max(self.home + apart, math.nextafter(self.home, math.inf)))
        cuts: list[tuple[float, float]] = []
        if low <= below < self.home:
            cuts.append((below, self.home))
        if self.home < above <= high:
            cuts.append((self.home, above))
        self.add_cuts(cuts)

    # ---- what others say of the value --------------------------------------------------------------------------------
    def keep_within(self, lower: float, upper: float) -> None:
        """Put bounds, two values in reach, where the reach has none: for good, as big-M will rest on them."""
        low, high = self.interval.lower, self.interval.upper
        if math.isfinite(low) and math.isfinite(high):
            return
        if not math.isfinite(low):
            low = lower
        if not math.isfinite(high):
            high = upper
        self.narrow(low, high)

    def narrow(self, lower: float, upper: float) -> None:
        """Put bounds, two values in reach, in the place of the reach's own: for good."""
        self.cells.interval = replace(self.interval, lower=lower, upper=upper)
        if self.variable is not None:
            self.variable.setlb(finite_or_none(self.state.counted(lower)))
            self.variable.setub(finite_or_none(self.state.counted(upper)))
        self.block.write_soon(self)

    def claim(self, variable: Any, value: int, lower: float, upper: float) -> None:
        """Note that x lies in the bounds where another formulation's binary ``variable`` takes ``value``."""
        self.state.claims.append(Claim(variable, value, lower, upper))
        self.block.write_soon(self)

    # ---- the coordinate ----------------------------------------------------------------------------------------------
    def raw(self) -> LinearForm:
        """Return the value for a row that reads it: a move inside a cell of trees is then another answer.

        A column that may hold a label is refused by name.
        """
        self.require_amount("raw")
        return self.amount()

    def amount(self) -> LinearForm:
        """Return the same, of a column that may hold a label: its amount then is that of home."""
        self.is_read = True
        return self.value()

    def value(self) -> LinearForm:
        """Return the value; its variable is made when first asked for."""
        return LinearForm(self.origin) + self.from_origin()

    def from_origin(self) -> LinearForm:
        """Return the value less the origin."""
        if self.is_point:
            return LinearForm(self.interval.lower - self.origin)
        if self.variable is None:
            self._make_variable()
            self.block.write_soon(self)
        return LinearForm(0.0, ((self.unit, self.variable),))

    @property
    def begins_at(self) -> float:
        """The value that the variable ``x`` has before anybody solves: the person's own, or the nearest in reach."""
        return self.state.counted(self.interval.clip(self.home))

    def _make_variable(self) -> None:
        interval, unit = self.interval, self.unit
        variable = self.block.x[self.name]
        variable.setlb(finite_or_none(self.state.counted(interval.lower)))
        variable.setub(finite_or_none(self.state.counted(interval.upper)))
        variable.set_value(self.begins_at, skip_validation=True)
        self.state.x = variable
        self.cut_around(interval.holes)
        if interval.step is None:
            return
        if interval.step == unit == 1.0 and float(interval.anchor).is_integer():
            variable.domain = pyo.Integers
            return
        steps = self.block.steps[self.name]
        for end, bound in ((interval.lower, steps.setlb), (interval.upper, steps.setub)):
            if math.isfinite(end):  # HiGHS takes no start where an integer column lacks a bound
                bound(round((end - interval.anchor) / interval.step))
        self.state.steps = steps

    def moves(self) -> tuple[LinearForm, LinearForm]:
        """Return the move (down, up) in the variables' unit; their variables are made when first asked for."""
        if self.is_point:
            move = 0.0 if self.interval.lower == self.x0 else (self.interval.lower - self.x0) / self.unit
            return LinearForm(max(-move, 0.0)), LinearForm(max(move, 0.0))
        if not self.state.moves:
            self.value()
            self.state.moves = {"down": self.block.down[self.name], "up": self.block.up[self.name]}
            # Without these, a column that may only fall could go "up 1, down 1", and count as changed where it is.
            for side, room in self.state.rooms.items():
                if room <= 0.0:
                    self.state.moves[side].setub(0.0)
            self.block.write_soon(self)
        return variable_form(self.state.moves["down"]), variable_form(self.state.moves["up"])

    def least_move(self) -> float:
        """Return the least move that counts as a change where answers must differ, in the variables' unit."""
        return self.state.least_move

    # ---- comparisons -------------------------------------------------------------------------------------------------
    # [x <= v] = 1 - y of the cut (l, r) with l <= v < r, and [x >= v] = y of the cut (l, r) with l < v <= r, of
    # neighbouring values in reach. The cuts leave every value where it was, so a row over them that is dropped leaves
    # nothing behind.
    def indicator(self, ranks: AbstractSet[float]) -> LinearForm:
        """Refuse: a number has no levels."""
        del ranks
        raise InvalidTypeError(
            "is_level",
            "a column with levels",
            f"column {self.name!r} is {self.feature.kind}",
            f"Use raw[{self.name!r}], or declare the column categorical or ordinal in the space.",
        )

    def at_most(self, value: float) -> LinearForm:
        """Return 1 where the value is at most ``value``, else 0."""
        form = self._right_of(self.interval.above(value)).complement()
        return self._not_on_label(form, self.home <= value)

    def at_least(self, value: float) -> LinearForm:
        """Return 1 where the value is at least ``value``, else 0."""
        return self._not_on_label(self._right_of(self.interval.below(value)), self.home >= value)

    def above(self, value: float) -> LinearForm:
        """Return 1 where the value is greater than ``value``, else 0: the cut of a tree that splits there."""
        cut = self.interval.sides(value, math.nextafter(value, math.inf))
        return self._not_on_label(self._right_of(cut), self.home > value)

    def equals(self, value: float) -> LinearForm:
        """Return 1 where the value is the member of the reach that ``value`` means, else 0."""
        if self.feature.is_label(value):
            return self.label_form(value)
        member = self.interval.member(value)
        if member is None:
            return LinearForm()
        upto = self._right_of(self.interval.above(member)).complement()
        form = upto + self._right_of(self.interval.below(member)) + LinearForm(-1.0)
        return self._not_on_label(form, self.home == member)

    def one_of(self, values: Iterable[float]) -> LinearForm:
        """Return 1 where the value is one of the members of the reach that ``values`` mean, else 0."""
        listed = list(values)
        members = self.interval.members(value for value in listed if not self.feature.is_label(value))
        self.cut_around(members)
        kept = [label for label in dict.fromkeys(listed) if self.feature.is_label(label)]
        return total(map(self.equals, [*members, *kept]))

    def _right_of(self, cut: tuple[float, float]) -> LinearForm:
        """Return 1 right of a cut between two neighbours, of which one is infinite where nothing lies on its side."""
        left, right = cut
        if math.isinf(left):
            return LinearForm(1.0)
        if math.isinf(right):
            return LinearForm(0.0)
        self.add_cuts([cut])
        return self.cells.right_of(cut)

    def differs(self, value: float) -> LinearForm:
        """Return a form that is at least 1 where the decision is another: the cell, or at home, whether it moves.

        Whether it moves inside its home cell counts where a row reads the value, and not the trees alone. A column that
        another formulation cuts (:meth:`claim`) differs by that formulation's own decisions too.
        """
        if self.is_point:
            return LinearForm()
        if self.feature.is_label(value):
            return self.label_form(value).complement()
        if self.state.labels:
            return self._other_amount(value) + self.on_label
        return self._other_amount(value)

    def _other_amount(self, value: float) -> LinearForm:
        if self.cells.cell_of(value) is None:
            return LinearForm(1.0)
        left = self.cells.last_left_of(value, without=self.priced)
        right = self.cells.first_right_of(value, without=self.priced)
        outside = [*map(self.cells.left_of, left), *map(self.cells.right_of, right)]
        if not self.is_read or self.is_filled_in or not self._is_home(value, left, right):
            return total(outside)
        if value == self.home:
            return total([*outside, self._surely_moved()])
        return total([*outside, self._moved().complement()])

    def _is_home(self, value: float, left: list[tuple[float, float]], right: list[tuple[float, float]]) -> bool:
        """Tell whether no cut beside a value, nor the end of a claim, lies between it and the factual."""
        if self.cells.cell_of(self.home) is None:
            return False
        if any(key[1] > self.home for key in left) or any(key[0] < self.home for key in right):
            return False
        return all(claim.holds(value) == claim.holds(self.home) for claim in self.state.claims)

    # ---- changes -----------------------------------------------------------------------------------------------------
    def changed_form(self) -> LinearForm:
        """Return 1 where the value leaves the factual, else 0; of a coordinate, a binary that permits it."""
        if self.is_point:
            return LinearForm(float(self.interval.lower != self.x0))
        if self.is_filled_in:
            return self.label_form(self.x0).complement()
        if self.state.labels:
            return self._moved() + self.on_label
        return self._moved()

    def _moved(self) -> LinearForm:
        """Return 1 where the amount leaves the factual one, else 0; of a coordinate, a binary that permits it."""
        home = self.cells.cell_of(self.home)
        if home is None or self.variable is None:
            return self.cells.outside(home)
        if self.state.moved is None:
            self.require_bounds("a count of changes")
            self.moves()
            self.state.moved = self.block.moved[self.name]
            self.block.write_soon(self)
        return variable_form(self.state.moved)

    def side_form(self, side: Literal["down", "up"]) -> LinearForm:
        """Return 1 where the value leaves the factual to a side, else 0; of a coordinate, a binary that permits it."""
        if self.is_filled_in:
            return self.changed_form() if side == "up" else LinearForm()
        if self.state.rooms[side] <= 0.0:
            return LinearForm()
        changed = self._moved()
        if min(self.state.rooms.values()) <= 0.0:
            return changed
        if self.state.moved is None:
            return self._cut_off(side)
        down, up = self._directions()
        return up if side == "up" else down

    def _cut_off(self, side: Literal["down", "up"]) -> LinearForm:
        """Return 1 beyond the cut nearest to the factual on a side, else 0."""
        keys = self.cells.keys
        if side == "up":
            return total(map(self.cells.right_of, [key for key in keys if key[1] > self.home][:1]))
        return total(map(self.cells.left_of, [key for key in keys if key[0] < self.home][-1:]))

    def _directions(self) -> tuple[LinearForm, LinearForm]:
        """Return a binary for each direction, (down, up), whose sum is the change indicator."""
        if not self.state.directions:
            self.state.directions = self._switches(self.block.direction)
            self.block.write_soon(self)
        switches = {side: variable_form(switch) for side, switch in self.state.directions.items()}
        return switches.get("down", LinearForm()), switches.get("up", LinearForm())

    def surely_changed_form(self) -> LinearForm:
        """Return a form that is at least 1 only where the value leaves its cell, or moves by the least move in it."""
        if self.is_point or self.is_filled_in:
            return self.changed_form()
        if self.state.labels:
            return self._surely_moved() + self.on_label
        return self._surely_moved()

    def _surely_moved(self) -> LinearForm:
        changed = self._moved()
        if self.state.moved is None:
            return changed
        if not self.state.surely:
            self._directions()  # else "up 1, down 1" would be a move
            self.state.surely = self._switches(self.block.surely)
            self.block.write_soon(self)
        return sum_form(self.state.surely.values())

    def _switches(self, container: Any) -> dict[str, Any]:
        """Return a binary of a container for each side to which there is room."""
        return {side: container[self.name, side] for side, room in self.state.rooms.items() if room > 0.0}

    # ---- costs -------------------------------------------------------------------------------------------------------
    def cost_form(self, price: Price | Steps) -> Any:
        """Return the cost of the move, or of the value, by what is asked of the column so far."""
        if isinstance(price, Steps):
            return self._cost_of_value(price)
        if self.is_point:
            return self.cost_at(price, self.interval.only)
        if self.is_filled_in:
            return self.label_form(self.x0).complement().scaled(price.of_fill).expression()
        cost = self._cost_of_move(price)
        if self.state.labels:
            cost = cost + self.on_label.scaled(price.of_fill).expression()
        return cost

    def move_to(self, value: float) -> float:
        """Return how far an amount is from the factual."""
        return value - self.x0

    def _cost_of_move(self, price: Price) -> Any:
        if self.variable is None:
            return self.cells.telescope([price.of(nearest - self.home) for nearest in self._nearest()]).expression()
        match price.kind:
            case "fixed":
                return self._cost_of_change(price)
            case "linear":
                down, up = self.moves()
                return (down.scaled(price.down * self.unit) + up.scaled(price.up * self.unit)).expression()
            case "length":
                return self._length(price)
            case _:
                return self._length(price) ** 2

    def _nearest(self) -> list[float]:
        """Return the value of each cell that is nearest to the factual."""
        return [min(max(self.home, low), high) for low, high in self.cells.bounds()]

    def _cost_of_value(self, price: Steps) -> Any:
        if self.is_point:
            return price.of([self.interval.lower])[0]
        return self.cells.telescope(price.of(self._nearest())).expression()

    def _cost_of_change(self, price: Price) -> Any:
        if not self.interval.lower <= self.home <= self.interval.upper:  # a reach without the factual: it must move
            return price.of(self.interval.lower - self.home)
        changed = self._moved()
        if price.down == price.up:
            return changed.scaled(price.up).expression()
        down, up = self._directions()
        return (down.scaled(price.down) + up.scaled(price.up)).expression()

    def _length(self, price: Price) -> Any:
        """Return the variable that holds the length of the move at a price; made when first asked for."""
        slopes: Slopes = (price.down, price.up)
        if slopes not in self.state.lengths:
            self.value()
            length = self.block.length[self.name, price.down, price.up]
            if price.down != price.up:
                length.setlb(0.0)
            self.state.lengths[slopes] = length
            self.block.write_soon(self)
        return self.state.lengths[slopes]

    # ---- writing -----------------------------------------------------------------------------------------------------
    def write(self) -> None:
        """Write expressions and rows. A cost's form may ask for cuts and variables, so the rows come last."""
        if self.variable is not None:
            for _, price in self._costs:
                if isinstance(price, Steps):
                    self._cut_at_jumps(price)
        super().write()
        write_rows(self.state)

    def _cut_at_jumps(self, price: Steps) -> None:
        """Cut where a cost jumps; without a coordinate, the value of a cell nearest to the factual is its cheapest.

        There is no cut in gaps that rules have closed so far: while they hold, nothing is there.
        """
        interval = self.interval
        jumps = price.jumps[(price.jumps > interval.lower) & (price.jumps <= interval.upper)]
        is_closed = np.zeros(len(jumps), dtype=bool)
        for left, right, block in self.gaps:
            if block.active:
                first, last = np.searchsorted(jumps, (left, right), "right")
                is_closed[first:last] = True
        cuts: set[tuple[float, float]] = set()
        for jump in jumps[~is_closed].tolist():
            left, right = interval.sides(math.nextafter(jump, -math.inf), jump)
            if math.isfinite(left) and math.isfinite(right):
                cuts.add((left, right))
        self.priced = self.priced | cuts.difference(self.cells.keys)
        self.cells.add(cuts)

    # ---- values ------------------------------------------------------------------------------------------------------
    def bounds_here(self) -> tuple[float, float]:
        """Return the cell that the integer decisions select, at the variables' current values."""
        low, high = self.cells.selected()
        for claim in self.state.claims:
            if claim.binds_now:
                low, high = max(low, claim.lower), min(high, claim.upper)
        return low, high

    def cell_here(self) -> tuple[float, float]:
        """Return the cell that the integer decisions select; a label alone where the column takes one."""
        value = self.decode()
        if self.is_point or self.feature.is_label(value):
            return value, value
        return self.bounds_here()

    def room_here(self) -> tuple[float, float]:
        """Return where the integer decisions let the value lie: in its cell, on its side, or at the factual."""
        low, high = self._on_its_side(*self.bounds_here())
        moved = self.state.moved
        if moved is not None and round(moved.value or 0.0) == 0 and low <= self.x0 <= high:
            return self.x0, self.x0
        return low, high

    def decode(self) -> float:
        """Return the value: in the cell that the integers select, at the coordinate or nearest to the factual."""
        if self.is_point:
            return self.interval.lower
        for label, binary in self.state.labels.items():
            if count_on([binary]):
                return label
        low, high = self.bounds_here()
        wanted = self.home
        if self.variable is not None and self.variable.value is not None:
            wanted = self.origin + float(self.variable.value) * self.unit
        low, high = self._on_its_side(low, high)
        value = min(max(self.interval.clip(wanted), low), high)
        # A solver's coordinate is right to a tolerance only: at the factual it means no move.
        moved = self.state.moved
        stays = moved is not None and round(moved.value or 0.0) == 0
        near = self.interval.step is None and abs(value - self.home) <= self._noise()
        if (stays or near) and low <= self.home <= high:
            return self.home
        return value

    def _on_its_side(self, low: float, high: float) -> tuple[float, float]:
        """Return the part of a range that lies on the side to which a move is permitted, if the factual is in it."""
        if not low <= self.home <= high:
            return low, high
        permitted = {side for side, switch in self.state.directions.items() if round(switch.value or 0.0)}
        if permitted == {"down"}:
            high = self.home
        elif permitted == {"up"}:
            low = self.home
        return low, high

    def _noise(self) -> float:
        """Return how far a solver's coordinate may be off, in raw units, but never a visible share of the range."""
        width = self.interval.upper - self.interval.lower
        large = min(1e-11 * abs(self.home - self.origin), 1e-7 * width)
        return max(1e-9 * min(self.unit, 1.0), large)

    def place(self, value: float) -> None:
        """Set labels, cuts, coordinate and moves to those of ``value``."""
        state = self.state
        for label, binary in state.labels.items():
            binary.set_value(int(label == value), skip_validation=True)
        if self.feature.is_label(value):
            value = self.home
        move = value - self.home
        self.cells.place(value)
        if state.x is not None:
            state.x.set_value(state.counted(value), skip_validation=True)
        if state.steps is not None and self.interval.step is not None:
            count = round((value - self.interval.anchor) / self.interval.step)
            state.steps.set_value(count, skip_validation=True)
        if state.moves:
            state.moves["down"].set_value(max(-move, 0.0) / self.unit, skip_validation=True)
            state.moves["up"].set_value(max(move, 0.0) / self.unit, skip_validation=True)
        for (down, up), length in state.lengths.items():
            size = up * move if down == up else max(up * move, -down * move, 0.0)
            length.set_value(size, skip_validation=True)
        if state.moved is not None:
            state.moved.set_value(int(move != 0.0), skip_validation=True)
        goes = {"down": move < 0.0, "up": move > 0.0}
        for side, switch in state.directions.items():
            switch.set_value(int(goes[side]), skip_validation=True)

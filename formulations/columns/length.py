"""The length of a number's move, in units of a cost: what is squared, or enters a cone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from ceopt.formulations.linear_form import LinearForm, Rows

if TYPE_CHECKING:
    from ceopt.formulations.columns.numeric_view import AnyNumber

__all__ = ["Length"]


@final
class Length:
    r"""The move of a coordinate, in the units of a cost with a slope per direction.

    .. math::
        e = a\,(x - x^0) \quad (a = a^+ = a^-), \qquad\text{else}\quad
        e \ge a^+ (x - x^0),\; e \ge a^- (x^0 - x),\; e \ge 0.

    ======== ======================== ==================================================
    symbol   component                meaning
    ======== ======================== ==================================================
    e        ``length[name, a-, a+]`` the length; with one slope it bears the move's sign
    ======== ======================== ==================================================

    Adds a variable and one row, or two. Squares of it are free of the cancellation that :math:`(x - x^0)^2` suffers
    once it is multiplied out, and all lengths are of one size, whatever the columns' units.
    """

    __slots__ = ("down", "up", "variable")

    def __init__(self, at: AnyNumber, down: float, up: float) -> None:
        self.down, self.up = down, up
        key = (at.name, down, up)
        self.variable: Any = at.block.length[key]
        rows, value = Rows(at.block, "length_of"), at.value()
        move = value + LinearForm(0.0, ((-1.0, at.block.factual[at.name]),))
        sides = ((up, 1.0), (down, -1.0))
        if down != up:
            self.variable.setlb(0.0)
        for slope, sign in sides[:1] if down == up else sides:
            if slope > 0.0:
                form = LinearForm(0.0, ((1.0, self.variable),)) + move.scaled(-sign * slope)
                rows.add((*key, sign), form, lower=0.0, upper=0.0 if down == up else None)

    def place(self, move: float) -> None:
        """Set the variable to that of a move, in raw units."""
        value = self.up * move if self.down == self.up else max(self.up * move, -self.down * move, 0.0)
        self.variable.set_value(value, skip_validation=True)

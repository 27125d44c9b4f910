"""The change indicator of a number: a binary to count changes, to price them, to tell two answers apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from ceopt.formulations.linear_form import LinearForm, Rows, total

if TYPE_CHECKING:
    from ceopt.formulations.columns.numeric_view import AnyNumber

__all__ = ["ChangeIndicator"]


@final
class ChangeIndicator:
    r"""The binary z of a coordinate that has left, or may leave, the factual.

    .. math::
        p \le (u - x^0) z, \quad n \le (x^0 - l) z, \quad z \ge 1 - [\text{home}] \qquad\text{(z = 0 forbids a move)} \\
        z = z^+ + z^-,\quad p \le (u - x^0) z^+,\quad n \le (x^0 - l) z^-, \quad
        [\text{right of home}] \le z^+, \quad [\text{left of home}] \le z^- \qquad\text{(directions)} \\
        p + \epsilon a \ge \epsilon s^+, \quad n + \epsilon a \ge \epsilon s^- \qquad\text{(s = 1 forces a move)}

    p and n are the coordinate's moves up and down, a is 1 outside the home cell, and :math:`\epsilon` the least move
    that counts inside it; s binds nobody who does not use it. Each part is written when it is first asked for.
    """

    __slots__ = ("_claims", "_surely", "_switches", "at", "variable")

    def __init__(self, at: AnyNumber) -> None:
        at.require_bounds("a count of changes")
        self.at = at
        self.variable: Any = at.block.moved[at.name]
        self._claims = 0
        self._switches: tuple[LinearForm, LinearForm] | None = None
        self._surely: LinearForm | None = None
        down, up = at.moves()
        room_down, room_up = at.rooms
        if room_up > 0:
            Rows(at.block, "moved_up").add(at.name, up + self.form.scaled(-room_up), upper=0.0)
        if room_down > 0:
            Rows(at.block, "moved_down").add(at.name, down + self.form.scaled(-room_down), upper=0.0)
        self.refresh()

    @property
    def form(self) -> LinearForm:
        """The binary as a form."""
        return LinearForm(0.0, ((1.0, self.variable),))

    def refresh(self) -> None:
        """Count leaving the home cell, and each claim that keeps the factual out, as a move.

        The coordinate's own rows see a move across a cut to the solver's tolerance only.
        """
        at, home = self.at, self.at.cells.cell_of(self.at.x0)
        if at.cells.keys:
            rows = Rows(at.block, "moved_floor")
            rows.drop(at.name)
            away = LinearForm(1.0) if home is None else at.cells.inside(home).complement()
            rows.add(at.name, self.form + away.scaled(-1.0), lower=0.0)
        for k, (variable, value, lower, upper) in enumerate(at.claims[self._claims :], start=self._claims):
            if not lower <= at.x0 <= upper:
                on = LinearForm(0.0, ((1.0, variable),))
                form = self.form + (on if value else on.complement()).scaled(-1.0)
                Rows(at.block, "moved_claim").add((at.name, k), form, lower=0.0)
        self._claims = len(at.claims)
        if self._switches is not None:
            self._write_sides()
        if self._surely is not None:
            self._write_least()

    def directions(self) -> tuple[LinearForm, LinearForm]:
        """Return a binary for each direction, (down, up), whose sum is z."""
        if self._switches is None:
            at, sides = self.at, []
            for side, move, room in zip(("down", "up"), at.moves(), at.rooms, strict=True):
                if room <= 0:
                    sides.append(LinearForm())
                    continue
                switch = LinearForm(0.0, ((1.0, at.block.direction[at.name, side]),))
                Rows(at.block, "most").add((at.name, side), move + switch.scaled(-room), upper=0.0)
                sides.append(switch)
            form = self.form.scaled(-1.0) + sides[0] + sides[1]
            Rows(at.block, "one_direction").add(at.name, form, lower=0.0, upper=0.0)
            self._switches = (sides[0], sides[1])
            self._write_sides()
        return self._switches

    def _write_sides(self) -> None:
        """Say which way a move across a cut, or into a claim, goes: a short one the rows see to a tolerance only."""
        assert self._switches is not None  # noqa: S101 - called only once they exist
        at, rows, (down, up) = self.at, Rows(self.at.block, "sided"), self._switches
        left = [key for key in at.cells.keys if key[1] <= at.x0][-1:]
        right = [key for key in at.cells.keys if key[0] >= at.x0][:1]
        away: list[tuple[str | int, LinearForm, LinearForm]]
        away = [("down", at.cells.right_of(key).complement(), down) for key in left]
        away += [("up", at.cells.right_of(key), up) for key in right]
        for k, (variable, value, lower, upper) in enumerate(at.claims):
            if not lower <= at.x0 <= upper:
                on = LinearForm(0.0, ((1.0, variable),))
                away.append((k, on if value else on.complement(), up if lower > at.x0 else down))
        for word, moved, side in away:
            rows.drop((at.name, word))
            rows.add((at.name, word), moved + side.scaled(-1.0), upper=0.0)

    def surely(self) -> LinearForm:
        """Return a form that is at least 1 only where the value leaves the home cell, or moves by the least move."""
        if self._surely is None:
            self.directions()  # else "up 1, down 1" would be a move
            self._surely = total(switch for switch, _ in self._sides())
            self._write_least()
        return self._surely

    def _sides(self) -> list[tuple[LinearForm, LinearForm]]:
        """Return the switch s and the move of each direction that has room."""
        at = self.at
        sides = zip(("down", "up"), at.moves(), at.rooms, strict=True)
        return [(LinearForm(0.0, ((1.0, at.block.surely[at.name, s]),)), move) for s, move, room in sides if room > 0]

    def _write_least(self) -> None:
        at, home = self.at, self.at.cells.cell_of(self.at.x0)
        away = [] if not at.cells.keys else [LinearForm(1.0) if home is None else at.cells.inside(home).complement()]
        for variable, value, lower, upper in at.claims:
            if not lower <= at.x0 <= upper:
                on = LinearForm(0.0, ((1.0, variable),))
                away.append(on if value else on.complement())
        outside, least, rows = total(away), at.least_move(), Rows(at.block, "least")
        for switch, move in self._sides():
            index = switch.terms[0][1].index()
            rows.drop(index)
            rows.add(index, move + (outside + switch.scaled(-1.0)).scaled(least), lower=0.0)

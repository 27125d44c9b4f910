"""A numeric coordinate as its parts read it: its cost, its length and its change indicator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from ceopt.formulations.columns.numeric_cells import Cells
from ceopt.formulations.linear_form import LinearForm
from ceopt.formulations.space.reachable import Interval

__all__ = ["AnyNumber"]


class AnyNumber(Protocol):
    """What :class:`~ceopt.formulations.columns.numeric.Numeric` offers to the parts of it.

    Attributes
    ----------
    block
        The person's block.
    x0, interval, cells
        The factual value, the reach, and the cells that the cuts of all models make of it.
    variable
        The coordinate, or None where no row has asked for one.
    claims
        (binary, value, lower, upper): where the binary has the value, the number lies between the two.
    gaps
        (left, right, block): nothing is strictly between the two while the block of a rule is active.
    """

    block: Any
    x0: float
    interval: Interval
    cells: Cells
    variable: Any
    claims: list[tuple[Any, int, float, float]]
    gaps: list[tuple[float, float, Any]]

    @property
    def name(self) -> str:
        """The column's name."""

    @property
    def is_point(self) -> bool:
        """Whether one value is left."""

    @property
    def rooms(self) -> tuple[float, float]:
        """How far the number may fall and rise."""

    def value(self) -> LinearForm:
        """Return the value in raw units, with a coordinate of its own."""

    def moves(self) -> tuple[LinearForm, LinearForm]:
        """Return the moves down and up, both at least 0."""

    def least_move(self) -> float:
        """Return the least move that counts inside the home cell."""

    def nearest(self, low: float, high: float) -> float:
        """Return the value between two that is nearest to the factual."""

    def require_bounds(self, who: str) -> None:
        """Refuse a number without bounds, on behalf of whoever needs them."""

    def add_cuts(self, cuts: Iterable[tuple[float, float]], *, priced: bool = False) -> None:
        """Cut the number at more places."""

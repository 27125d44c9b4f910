"""Columns of levels as binaries: ordered ones between neighbouring levels, or one for each unordered level."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import TYPE_CHECKING, Any, final

from ceopt.formulations.columns.coordinate import AbstractCoordinate, Price, Steps
from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.solvers.errors import InvalidTypeError

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

__all__ = ["Category", "Ranked"]


class AbstractLevels(AbstractCoordinate):
    """A column of levels, whose binaries and rows are known from its reach alone.

    Attributes
    ----------
    ranks
        Positions among the column's levels that are in reach, ascending.
    """

    __slots__ = ("ranks",)

    def __init__(self, block: Any, feature: Feature, x0: float) -> None:
        super().__init__(block, feature, x0)
        self.ranks: tuple[int, ...] = block.reach[feature.name].ranks

    @abstractmethod
    def tabulate(self, values: dict[int, float]) -> LinearForm:
        """Return ``values[rank]`` of the level taken."""

    @abstractmethod
    def move_to(self, rank: int) -> float:
        """Return how far a level is from the factual."""

    # ---- comparisons -------------------------------------------------------------------------------------------------
    def at_most(self, value: float) -> LinearForm:
        """Return 1 where the rank is at most ``value``, else 0."""
        return self.indicator({rank for rank in self.ranks if rank <= value})

    def at_least(self, value: float) -> LinearForm:
        """Return 1 where the rank is at least ``value``, else 0."""
        return self.indicator({rank for rank in self.ranks if rank >= value})

    def equals(self, value: float) -> LinearForm:
        """Return 1 where the rank is ``value``, else 0."""
        return self.indicator({int(value)})

    def one_of(self, values: Iterable[float]) -> LinearForm:
        """Return 1 where the rank is one of ``values``, else 0."""
        return self.indicator({int(value) for value in values})

    def differs(self, value: float) -> LinearForm:
        """Return 1 where another level is taken."""
        return self.indicator({int(value)}).complement()

    # ---- changes and costs -------------------------------------------------------------------------------------------
    def changed_form(self) -> LinearForm:
        """Return 1 where another level than the factual one is taken."""
        return self.differs(self.x0)

    def cost_form(self, price: Price | Steps) -> Any:
        """Return the cost of the level taken."""
        if isinstance(price, Steps):
            costs = dict(zip(self.ranks, price.of(self.ranks), strict=True))
        else:
            costs = {rank: price.of(self.move_to(rank)) for rank in self.ranks}
        return self.tabulate(costs).expression()


@final
class Ranked(AbstractLevels):
    r"""A level among ordered ones, as a rank: an ordinal or binary column.

    .. math:: y_1 \ge y_2 \ge \dots \ge y_m, \qquad y \in \{0, 1\}^m, \qquad
              \text{rank} = r_0 + \sum_k (r_k - r_{k-1})\, y_k.

    ====== ================================================================
    symbol meaning
    ====== ================================================================
    r      ranks in reach, ascending, ``r_0, ..., r_m``
    y_k    ``at_least[name, level]``: 1 iff the level is r_k or higher;
           for a binary column ``level[name, second level]``
    ====== ================================================================

    Adds m binaries and m - 1 rows, ``ordered``; nothing where one level is left. Exact.
    """

    __slots__ = ("variables",)

    def __init__(self, block: Any, feature: Feature, x0: float) -> None:
        super().__init__(block, feature, x0)
        container = block.level if feature.kind == "binary" else block.at_least
        words = [feature.levels[rank] for rank in self.ranks[1:]]
        self.variables: list[Any] = [container[feature.name, word] for word in words]
        for (low, high), word in zip(pairwise(self.variables), words[1:], strict=True):
            form = LinearForm(0.0, ((1.0, low), (-1.0, high)))
            Rows(block, "ordered").add((feature.name, word), form, lower=0.0)

    def tabulate(self, values: dict[int, float]) -> LinearForm:
        """Return ``values[rank]`` of the level taken: a telescoping sum over the ordered binaries."""
        terms: list[tuple[float, Any]] = []
        for (low, high), variable in zip(pairwise(self.ranks), self.variables, strict=True):
            step = values[high] - values[low]
            if step != 0.0:
                terms.append((step, variable))
        return LinearForm(values[self.ranks[0]], tuple(terms))

    def raw(self) -> LinearForm:
        """Return the rank (0 or 1 of a binary column)."""
        return self.tabulate({rank: float(rank) for rank in self.ranks})

    def indicator(self, ranks: AbstractSet[int]) -> LinearForm:
        """Return 1 where the rank is one of ``ranks``, else 0."""
        return self.tabulate({rank: float(rank in ranks) for rank in self.ranks})

    def move_to(self, rank: int) -> float:
        """Return the number of levels between a rank and the factual."""
        return rank - self.x0

    def decode(self) -> float:
        """Return the rank: as many steps up as ordered binaries are on."""
        steps = sum(1 for variable in self.variables if (variable.value or 0.0) > 0.5)
        return float(self.ranks[steps])

    def place(self, value: float) -> None:
        """Set the ordered binaries to those of rank ``value``."""
        for rank, variable in zip(self.ranks[1:], self.variables, strict=True):
            variable.set_value(1 if rank <= int(value) else 0, skip_validation=True)


@final
class Category(AbstractLevels):
    r"""One of several unordered levels.

    .. math:: \sum_{c \in R} u_c = 1, \qquad u \in \{0, 1\}^R.

    ====== ================================================================
    symbol meaning
    ====== ================================================================
    R      levels in reach; a level outside it has no variable
    u_c    ``level[name, c]``: 1 iff the column takes level c
    ====== ================================================================

    Adds ``|R|`` binaries and one row, ``one_level``; nothing where one level is left. Exact.
    """

    __slots__ = ("variables",)

    def __init__(self, block: Any, feature: Feature, x0: float) -> None:
        super().__init__(block, feature, x0)
        self.variables: dict[int, Any] = {}
        if not self.is_point:
            self.variables = {rank: block.level[feature.name, feature.levels[rank]] for rank in self.ranks}
            form = LinearForm(0.0, tuple((1.0, variable) for variable in self.variables.values()))
            Rows(block, "one_level").add(feature.name, form, lower=1.0, upper=1.0)

    def raw(self) -> LinearForm:
        """Refuse: unordered levels have no number."""
        raise InvalidTypeError(
            "raw",
            "a numeric, ordinal or binary column",
            f"column {self.name!r} is categorical",
            f"Use is_level[{self.name!r}, level] instead.",
        )

    def indicator(self, ranks: AbstractSet[int]) -> LinearForm:
        """Return the sum of the binaries of ``ranks``."""
        if self.is_point:
            return LinearForm(float(self.ranks[0] in ranks))
        if len(ranks) < len(self.variables):  # of a column of thousands of levels, a few are asked for at a time
            kept = [rank for rank in sorted(ranks) if rank in self.variables]
        else:
            kept = [rank for rank in self.variables if rank in ranks]
        return LinearForm(0.0, tuple((1.0, self.variables[rank]) for rank in kept))

    def tabulate(self, values: dict[int, float]) -> LinearForm:
        """Return ``values[rank]`` of the level taken."""
        if self.is_point:
            return LinearForm(values[self.ranks[0]])
        terms: list[tuple[float, Any]] = []
        for rank, variable in self.variables.items():
            if values[rank] != 0.0:
                terms.append((values[rank], variable))
        return LinearForm(0.0, tuple(terms))

    def move_to(self, rank: int) -> float:
        """Return 1 of any level but the factual one: a changed category moves 1, up."""
        return 0.0 if rank == int(self.x0) else 1.0

    def decode(self) -> float:
        """Return the rank of the level whose binary is greatest."""
        if self.is_point:
            return float(self.ranks[0])
        greatest = max(self.variables, key=lambda rank: self.variables[rank].value or 0.0)
        return float(greatest)

    def place(self, value: float) -> None:
        """Switch the level of rank ``value`` on."""
        for rank, variable in self.variables.items():
            variable.set_value(1 if rank == int(value) else 0, skip_validation=True)

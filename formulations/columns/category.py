"""A categorical column: one binary per level that may be reached, exactly one of them on."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, final

from ceopt.formulations.columns.coordinate import AbstractCoordinate, Price
from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.solvers.errors import InvalidTypeError

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

__all__ = ["Category"]


@final
class Category(AbstractCoordinate):
    r"""One of several unordered levels.

    .. math:: \sum_{c \in R} u_c = 1, \qquad u \in \{0, 1\}^R.

    ====== ================================================================
    symbol meaning
    ====== ================================================================
    R      levels in reach; a level outside it has no variable
    u_c    ``level[name, c]``: 1 iff the column takes level c
    ====== ================================================================

    Adds ``|R|`` binaries and one row; nothing where one level is left. Exact.
    """

    __slots__ = ("ranks", "variables")

    def __init__(self, block: Any, feature: Feature, x0: float) -> None:
        super().__init__(block, feature, x0)
        self.ranks: tuple[int, ...] = block.reach[feature.name].ranks
        self.variables: dict[int, Any] = {}
        if not self.is_point:
            self.variables = {k: block.level[feature.name, feature.levels[k]] for k in self.ranks}
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
            return LinearForm(1.0 if self.ranks[0] in ranks else 0.0)
        if len(ranks) < len(self.variables):
            return LinearForm(0.0, tuple((1.0, self.variables[k]) for k in sorted(ranks) if k in self.variables))
        return LinearForm(0.0, tuple((1.0, v) for k, v in self.variables.items() if k in ranks))

    def tabulate(self, values: dict[int, float]) -> LinearForm:
        """Return ``values[rank]`` of the level taken."""
        if self.is_point:
            return LinearForm(values[self.ranks[0]])
        return LinearForm(0.0, tuple((values[k], v) for k, v in self.variables.items() if values[k] != 0.0))

    def decode(self) -> float:
        """Return the rank of the level whose binary is greatest."""
        if self.is_point:
            return float(self.ranks[0])
        return float(max(self.variables, key=lambda k: self.variables[k].value or 0.0))

    def place(self, value: float) -> None:
        """Switch the level of rank ``value`` on."""
        for k, variable in self.variables.items():
            variable.set_value(1 if k == int(value) else 0, skip_validation=True)

    def differs(self, value: float) -> LinearForm:
        """Return 1 where another level is taken."""
        return self.indicator({int(value)}).complement()

    def _changed_form(self) -> LinearForm:
        return self.indicator({int(self.x0)}).complement()

    def _price_form(self, price: Price) -> Any:
        home = int(self.x0)
        # Unordered: any other level is one move up (api.md: a changed category moves 1).
        return self.tabulate({k: 0.0 if k == home else price.of(1.0) for k in self.ranks}).expression()

"""An ordinal or binary column: ordered binaries, one between each two neighbouring levels in reach."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import TYPE_CHECKING, Any, final

from ceopt.formulations.columns.coordinate import AbstractCoordinate, Price
from ceopt.formulations.linear_form import LinearForm, Rows

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

__all__ = ["Ranked"]


@final
class Ranked(AbstractCoordinate):
    r"""A level among ordered ones, as a rank.

    .. math:: y_1 \ge y_2 \ge \dots \ge y_m, \qquad y \in \{0, 1\}^m, \qquad
              \text{rank} = r_0 + \sum_k (r_k - r_{k-1})\, y_k.

    ====== ================================================================
    symbol meaning
    ====== ================================================================
    r      ranks in reach, ascending, ``r_0, ..., r_m``
    y_k    ``at_least[name, level]``: 1 iff the level is r_k or higher;
           for a binary column ``level[name, second level]``
    ====== ================================================================

    Adds m binaries and m - 1 rows; nothing where one level is left. Exact.
    """

    __slots__ = ("ranks", "variables")

    def __init__(self, block: Any, feature: Feature, x0: float) -> None:
        super().__init__(block, feature, x0)
        self.ranks: tuple[int, ...] = block.reach[feature.name].ranks
        container = block.level if feature.kind == "binary" else block.at_least
        self.variables: list[Any] = [container[feature.name, feature.levels[k]] for k in self.ranks[1:]]
        rows = Rows(block, "ordered") if len(self.variables) > 1 else None
        for k, (low, high) in enumerate(pairwise(self.variables), start=2):
            assert rows is not None  # noqa: S101 - a pair exists only where there are two variables
            rows.add(
                (feature.name, feature.levels[self.ranks[k]]), LinearForm(0.0, ((1.0, low), (-1.0, high))), lower=0.0
            )

    def tabulate(self, values: dict[int, float]) -> LinearForm:
        """Return ``values[rank]`` of the level taken: a telescoping sum over the ordered binaries."""
        steps = [
            (values[high] - values[low], v) for (low, high), v in zip(pairwise(self.ranks), self.variables, strict=True)
        ]
        return LinearForm(values[self.ranks[0]], tuple((c, v) for c, v in steps if c != 0.0))

    def raw(self) -> LinearForm:
        """Return the rank (0 or 1 of a binary column)."""
        return self.tabulate({k: float(k) for k in self.ranks})

    def indicator(self, ranks: AbstractSet[int]) -> LinearForm:
        """Return 1 where the rank is one of ``ranks``, else 0."""
        return self.tabulate({k: 1.0 if k in ranks else 0.0 for k in self.ranks})

    def decode(self) -> float:
        """Return the rank: as many steps up as ordered binaries are on."""
        return float(self.ranks[sum(1 for v in self.variables if (v.value or 0.0) > 0.5)])

    def place(self, value: float) -> None:
        """Set the ordered binaries to those of rank ``value``."""
        for k, variable in zip(self.ranks[1:], self.variables, strict=True):
            variable.set_value(1 if k <= int(value) else 0, skip_validation=True)

    def differs(self, value: float) -> LinearForm:
        """Return 1 where another level is taken."""
        return self.indicator({int(value)}).complement()

    def _changed_form(self) -> LinearForm:
        return self.indicator({int(self.x0)}).complement()

    def _price_form(self, price: Price) -> Any:
        return self.tabulate({k: price.of(k - self.x0) for k in self.ranks}).expression()

r"""Costs between two blocks: how far the answer of one block is from that of another, as for plans in several steps.

With :math:`p^+_j, p^-_j` weight over scale per direction, as the costs from a person's own row have them,

.. math::
    t_j \ge p^+_j (x_j - o_j), \quad t_j \ge p^-_j (o_j - x_j), \qquad
    t_j \ge p_j ([x_j = c] - [o_j = c]) \ \forall c \ \text{(categories)}

and :math:`\sum_j t_j`, :math:`\sum_j t_j^2`, :math:`\lVert t \rVert` or :math:`\max_j t_j`. The variables are the
distances where they are minimised or bounded from above. A count has a binary for each direction,
:math:`x_j - o_j \le M_j b^+_j`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, final

import pyomo.environ as pyo
from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.columns import AbstractCoordinate, Category, Price
from ceopt.formulations.columns.columns_block import AbstractColumns
from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.formulations.space.reachable import Interval
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnboundedFeatureError
from ceopt.solvers.manifest import Manifest, describe

_MANIFEST = Manifest(
    title="distance between two blocks",
    formula="t_j >= p_j (x_j - o_j), t_j >= p_j (o_j - x_j); t_j >= p_j ([x_j = c] - [o_j = c])",
    reference="standard",
)


@final
class DistanceBetween(ScalarBlock):  # type: ignore[misc]  # Pyomo is untyped
    """The distance of each column between two blocks over the same space.

    Parameters
    ----------
    who
        The cost, for messages.
    x, origin
        The block that is charged, and the one that it starts from; both are part of one model.
    prices
        What each column's move costs.

    Attributes
    ----------
    distance
        Variables, by column that may differ.
    lengths
        What the columns add, expressions of them by name.

    Raises
    ------
    InvalidTypeError
        ``origin`` is no block of columns.
    InvalidValueError
        It has other columns, or is part of another model, or a column may hold no amount.
    UnboundedFeatureError
        A count, and a column without finite bounds.
    """

    def __init__(self, who: str, x: Any, origin: Any, prices: Mapping[str, Price]) -> None:
        super().__init__(concrete=True)
        _require_pair(who, x, origin)
        describe(self, _MANIFEST)
        self.distance = pyo.Var(pyo.Any, dense=False, domain=pyo.NonNegativeReals)
        self.switch = pyo.Var(pyo.Any, dense=False, domain=pyo.Binary)
        self.lengths: dict[str, Any] = {}
        with x.collecting(), origin.collecting():
            for name, price in prices.items():
                if max(price.down, price.up) > 0.0:
                    self._add(who, x.coordinate(name), origin.coordinate(name), price)

    def _add(self, who: str, here: AbstractCoordinate, there: AbstractCoordinate, price: Price) -> None:
        for coordinate in (here, there):
            coordinate.require_amount(f"{who} between two blocks")
        if isinstance(here, Category):
            self._add_category(here, there, price)
            return
        move = here.raw() + there.raw().scaled(-1.0)
        if not move.terms and move.constant == 0.0:
            return
        if price.kind == "fixed":
            self._add_switches(who, here, there, move, price)
            return
        distance = self.distance[here.name]
        own = LinearForm(0.0, ((1.0, distance),))
        Rows(self, "at_least_up").add(here.name, own + move.scaled(-price.up), lower=0.0)
        Rows(self, "at_least_down").add(here.name, own + move.scaled(price.down), lower=0.0)
        here.block.follow(distance, partial(_length, price.down, price.up), [move.expression()])
        self.lengths[here.name] = distance

    def _add_category(self, here: AbstractCoordinate, there: AbstractCoordinate, price: Price) -> None:
        distance = self.distance[here.name]
        own = LinearForm(0.0, ((1.0, distance),))
        differences = []
        for rank in range(len(here.feature.levels)):
            difference = here.indicator({rank}) + there.indicator({rank}).scaled(-1.0)
            Rows(self, "at_least_up").add(
                (here.name, here.feature.levels[rank]), own + difference.scaled(-price.up), lower=0.0
            )
            differences.append(difference.expression())
        here.block.follow(distance, partial(_greatest, price.up), differences)
        self.lengths[here.name] = distance

    def _add_switches(
        self, who: str, here: AbstractCoordinate, there: AbstractCoordinate, move: LinearForm, price: Price
    ) -> None:
        """Charge a weight for each direction in which the values differ at all."""
        low, high = _range_of(here)
        other_low, other_high = _range_of(there)
        cost = 0.0
        for side, big_m, sign, weight in (
            ("up", high - other_low, 1.0, price.up),
            ("down", other_high - low, -1.0, price.down),
        ):
            if big_m <= 0.0:
                continue
            if not math.isfinite(big_m):
                raise UnboundedFeatureError(
                    f"{who} between two blocks", "finite bounds", f"column {here.name!r} has none",
                    here.block.bounds_advice(here.name),
                )  # fmt: skip
            switch = self.switch[here.name, side]
            form = move.scaled(sign / big_m) + LinearForm(0.0, ((-1.0, switch),))
            Rows(self, f"moves_{side}").add(here.name, form, upper=0.0)
            here.block.follow(switch, partial(_is_beyond, sign), [move.expression()])
            cost = cost + weight * switch
        self.lengths[here.name] = cost


def _require_pair(who: str, x: Any, origin: Any) -> None:
    for word, block in (("x", x), ("origin", origin)):
        if not isinstance(block, AbstractColumns):
            raise InvalidTypeError(
                f"{who} between two blocks", "two blocks of columns", f"{word} is {type(block).__name__}",
                "Pass m.x = Factual(space, row), or the block of another step.",
            )  # fmt: skip
    if origin is x:
        raise InvalidValueError(f"{who} between two blocks", "two blocks", f"both are {x.name!r}", "Leave origin out.")
    if list(x.space.names) != list(origin.space.names):
        raise InvalidValueError(
            f"{who} between two blocks", "blocks over the same columns", f"those of {origin.name!r} are others",
            "Make both from one space.",
        )  # fmt: skip
    for feature in x.space:
        if feature.levels != origin.space[feature.name].levels:
            raise InvalidValueError(
                f"{who} between two blocks", "the same levels in both", f"those of column {feature.name!r} differ",
                "Make both from one space.",
            )  # fmt: skip


def _range_of(coordinate: AbstractCoordinate) -> tuple[float, float]:
    """Return the least and greatest amount, of levels the ranks, that a column may take."""
    part = coordinate.block.reach[coordinate.name]
    if isinstance(part, Interval):
        return part.lower, part.upper
    return float(min(part.ranks)), float(max(part.ranks))


def _length(down: float, up: float, values: list[float]) -> float:
    return max(up * values[0], -down * values[0], 0.0)


def _greatest(weight: float, values: list[float]) -> float:
    return weight * max(*values, 0.0)


def _is_beyond(sign: float, values: list[float]) -> float:
    return float(sign * values[0] > 0.0)


def distances(who: str, x: Any, origin: Any, prices: Mapping[str, tuple[Price, ...]]) -> dict[str, Any]:
    """Return the distance of each column between two blocks, after adding what they need to the first."""
    block = DistanceBetween(who, x, origin, {name: price for name, (price,) in prices.items()})
    count = sum(
        component.local_name.startswith("between_") for component in x.component_objects(pyo.Block, descend_into=False)
    )
    x.add_component(f"between_{count}", block)
    return block.lengths

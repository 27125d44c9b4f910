r"""Costs under interventions: an amount per column with an equation, as a coordinate of its own.

The amounts are the moves of a second person, who is at home at 0, so that every cost prices them as it prices moves.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, final

import pyomo.environ as pyo

from ceopt.formulations.columns import Free, Numeric
from ceopt.formulations.columns.columns_block import Factual
from ceopt.formulations.constraints.causal.program import Residual, move_in
from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.formulations.space.trace import trace_within
from ceopt.solvers.errors import InvalidTypeError
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.columns import AbstractCoordinate

__all__ = ["hold", "intervene", "refuse_others", "shift"]

_AMOUNTS: Final = Manifest(
    title="what is charged for columns with an equation",
    formula="x_i = the amount charged for column i, between the bounds that its column leaves",
    reference="Karimi, Schoelkopf & Valera 2021",
)


def hold(block: Any, residual: Residual, amount: LinearForm | None = None, on: Any = None) -> None:
    """Write that a column follows from its parents, but for an amount and the slack, unless it is intervened on."""
    if amount is None:
        form = residual.form
    else:
        form = residual.form + amount.scaled(-1.0)
    unit = residual.unit
    name = residual.coordinate.name
    slack = residual.slack / unit
    form = form.scaled(1.0 / unit)
    rows = Rows(block, "follows")
    if on is None:
        rows.add(name, form, lower=0.0 - slack, upper=slack)
        return
    for side, sign, end in (("down", -1.0, residual.effect[1]), ("up", 1.0, -residual.effect[0])):
        rows.add((name, side), form.scaled(sign) + LinearForm(0.0, ((-end / unit, on),)), upper=slack)


def refuse_others(x: Factual, rule: Any, equations: Collection[str]) -> None:
    """Refuse what would leave a cost with other amounts than the rule's: a cost built before, another causal model.

    Raises
    ------
    InvalidTypeError
        Either of the two.
    """
    if x.is_charged:
        raise InvalidTypeError(
            "Causal", "to be imposed before a cost is built", "the Factual block has a cost that counts moves",
            "Impose the rule first: it says what costs count.",
        )  # fmt: skip
    for name, charge in x.charges.items():
        if isinstance(charge, Free):
            if name in equations:
                raise InvalidTypeError(
                    "Causal", "equations of columns that move by themselves", f"{name!r} is one of an ExactlyOne",
                    "Leave the equation out, or the rule.",
                )  # fmt: skip
            continue
        if getattr(getattr(charge, "block", None), "owner", (None,))[0] is not rule:
            raise InvalidTypeError(
                "Causal", "to be the only causal model with interventions", f"column {name!r} is charged by another",
                "Join the equations in one rule.",
            )  # fmt: skip


def shift(block: Any, x: Factual, residuals: Mapping[str, Residual], actionable: Collection[str], rule: Any) -> None:
    """Soft interventions: each actionable column is off its equation by a shift, and this is what is charged."""
    ends = {name: r.ends if name in actionable else (0.0, 0.0) for name, r in residuals.items()}
    amounts = _amounts(block, x, ends, rule)
    for name, residual in residuals.items():
        amount = amounts.coordinate(name)
        hold(block, residual, amount.raw())
        x.also_place(_Shift(amount, residual).place)
        x.charges[name] = amount


def intervene(
    block: Any, x: Factual, residuals: Mapping[str, Residual], actionable: Collection[str], rule: Any
) -> None:
    """Hard interventions: a binary lets a column off its equation, and then its whole move is charged."""
    _require_bounds(x, residuals, actionable)
    ends = {name: r.move if name in actionable else (0.0, 0.0) for name, r in residuals.items()}
    amounts = _amounts(block, x, ends, rule)
    block.intervened = pyo.Var(pyo.Any, dense=False, domain=pyo.Binary)
    for name, residual in residuals.items():
        amount = amounts.coordinate(name)
        x.charges[name] = amount
        if name not in actionable:
            hold(block, residual)
            continue
        on = block.intervened[name]
        hold(block, residual, amount.raw(), on)
        _charge(block, residual, amount.raw(), move_in(x, name), on)
        x.also_place(_Intervention(amount, residual, on).place)


def _amounts(block: Any, x: Factual, ends: Mapping[str, tuple[float, float]], rule: Any) -> Factual:
    """Return the block of amounts, each a coordinate between its ends; it remembers whose they are."""
    features = [
        Feature(name, kind="continuous", lower=min(low, 0.0), upper=max(high, 0.0), range=x.space[name].scale("range"))
        for name, (low, high) in ends.items()
    ]
    block.charged = amounts = Factual(FeatureSpace(features), dict.fromkeys(ends, 0.0))
    amounts.owner = (rule,)
    describe(amounts, replace(_AMOUNTS, columns=amounts.space.names))
    return amounts


def _require_bounds(x: Factual, residuals: Mapping[str, Residual], actionable: Collection[str]) -> None:
    """Refuse columns without bounds, as no big-M exists; the column without them is named, be it a parent."""
    for name, residual in residuals.items():
        if name in actionable and math.isinf(residual.ends[1] - residual.ends[0]):
            for column in (name, *residual.parents):
                coordinate = x.coordinate(column)
                if isinstance(coordinate, Numeric):
                    coordinate.require_bounds("Causal with hard interventions")


def _charge(block: Any, residual: Residual, amount: LinearForm, move: LinearForm, on: Any) -> None:
    """Write that the amount is the move where the column is intervened on, else 0."""
    free = Rows(block, "free")
    whole = Rows(block, "whole")
    unit = residual.unit
    name = residual.coordinate.name
    rest = move + amount.scaled(-1.0)
    sides = (("down", -1.0, 0), ("up", 1.0, 1))
    for side, sign, k in sides:
        most = sign * residual.move[k] / unit
        followed = min(most, (sign * residual.effect[k] + residual.slack) / unit)
        free.add((name, side), amount.scaled(sign / unit) + LinearForm(0.0, ((-most, on),)), upper=0.0)
        whole.add((name, side), rest.scaled(sign / unit) + LinearForm(0.0, ((followed, on),)), upper=followed)


@final
@dataclass(frozen=True, slots=True)
class _Shift:
    """Sets a shift to what the columns that were placed leave of it."""

    amount: AbstractCoordinate
    residual: Residual

    def place(self, point: Mapping[str, float]) -> None:
        """Set the amount."""
        off = _off(self.residual, point)
        slack = self.residual.slack
        self.amount.place(math.copysign(abs(off) - slack, off) if off else 0.0)


@final
@dataclass(frozen=True, slots=True)
class _Intervention:
    """Sets the binary of a column that was placed off its equation, and what is charged."""

    amount: AbstractCoordinate
    residual: Residual
    on: Any

    def place(self, point: Mapping[str, float]) -> None:
        """Set the binary and the amount."""
        coordinate = self.residual.coordinate
        off = _off(self.residual, point)
        self.on.set_value(1 if off else 0, skip_validation=True)
        self.amount.place(point[coordinate.name] - coordinate.x0 if off else 0.0)


def _off(residual: Residual, point: Mapping[str, float]) -> float:
    """Return how far off its equation a placed column is, 0 where it counts as following."""
    value = residual.form.value()
    x = point[residual.coordinate.name]
    home = residual.coordinate.x0
    noise = float(trace_within(residual.coordinate.feature, max(abs(x), abs(home))))
    return value if abs(value) > residual.slack + noise else 0.0

"""A condition on one column, as if-then rules have two of them: (column, op, value)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import pandas as pd

from ceopt.formulations.columns import AbstractCoordinate, Numeric, at_least, at_most, one_of
from ceopt.formulations.linear_form import LinearForm
from ceopt.solvers.checks import is_number, require_moderate
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

if TYPE_CHECKING:
    from ceopt.formulations.columns.factual import Factual
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["OPS", "Condition", "listed"]

OPS = ("==", "!=", "<=", ">=", "in", "changed")

#: A multiple of a step is off by a rounding of the product and one of the sum.
_ROUNDINGS = 4 * 2.0**-53


def listed(who: str, what: str, given: Any) -> tuple[Any, ...]:
    """Return a collection of values as a tuple, or refuse what is none (text and single values included)."""
    if isinstance(given, np.ndarray | pd.Series | pd.Index) and given.ndim:
        return tuple(given.tolist())
    if (
        isinstance(given, Iterable)
        and not isinstance(given, np.ndarray)
        and not isinstance(given, str | bytes | pd.DataFrame)
    ):
        return tuple(given)
    raise InvalidTypeError(who, f"a list of values for {what}", f"it got {given!r}", "Write [value, ...].")


@final
@dataclass(frozen=True, slots=True)
class Condition:
    """What may hold of one column: a comparison of its value, or whether it changes.

    Parameters
    ----------
    column
        Name of the column.
    op
        "==", "!=", "<=", ">=", "in" or "changed".
    value
        In raw units: a number or a level, a tuple of them for "in", True or False for "changed".
    who
        The rule that errors name.
    """

    column: str
    op: str
    value: Any
    who: str

    @classmethod
    def parse(cls, who: str, given: Any) -> Self:
        """Read (column, op, value), or (column, "changed")."""
        parts = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else ()
        if len(parts) == 2 and parts[1] == "changed":
            parts = (*parts, True)
        if len(parts) != 3 or not isinstance(parts[1], str):
            raise InvalidTypeError(
                who, "conditions (column, op, value)", f"one is {given!r}", 'Write for example ("age", ">=", 30).'
            )
        column, op, value = parts
        if op not in OPS:
            raise UnknownNameError.among(who, "op", op, OPS)
        if op == "in":
            value = listed(who, f"op 'in' on column {column!r}", value)
            if not value:
                raise InvalidValueError(
                    who, "a value for op 'in'", f"the list on column {column!r} is empty", "Name one."
                )
        if op == "changed" and not isinstance(value, bool | np.bool_):
            raise InvalidTypeError(
                who, "True or False for op 'changed'", f"on column {column!r} it is {value!r}", "Leave it out for True."
            )
        return cls(column, op, value, who)

    @property
    def plain(self) -> tuple[str, str, Any]:
        """The condition as a tuple."""
        return self.column, self.op, self.value

    def check(self, space: FeatureSpace) -> None:
        """Refuse an unknown column, an order that levels do not have, and values that the column cannot hold."""
        if self.column not in space:
            raise UnknownNameError.among(self.who, "column", self.column, space.names)
        feature = space[self.column]
        if self.op in {"<=", ">="} and feature.kind == "categorical":
            raise InvalidTypeError(
                self.who, f"an ordered column for op {self.op!r}", f"column {self.column!r} is categorical",
                "Use 'in', or make the column ordinal.",
            )  # fmt: skip
        if self.op != "changed":
            self._coordinates(feature)

    def _coordinates(self, feature: Feature) -> list[float]:
        values = self.value if self.op == "in" else (self.value,)
        if self.op in {"<=", ">="} and feature.kind == "integer":
            return [_bound(feature, value) for value in values]
        return [feature.to_coordinate(value) for value in values]

    # ---- in the program ----------------------------------------------------------------------------------------------
    def indicator(self, x: Factual, *, surely: bool) -> LinearForm | Any:
        """Return 1 where the condition holds, else 0: as a form, or as an expression that later rows keep up to date.

        Whether a number changes is known to a least move only: then it is at least 1 where the condition may hold or,
        ``surely``, at most 0 where it may not.
        """
        at = x.coordinate(self.column)
        if self.op == "changed" and isinstance(at, Numeric) and not at.is_point:
            if surely != bool(self.value):
                return at.changed() if self.value else 1.0 - at.changed()  # cuts that come later count too
            at.raw()  # a number that nothing reads can change all the same
        return self._form(at)

    def _form(self, at: AbstractCoordinate) -> LinearForm:
        if self.op == "changed":
            form = at.surely_changed_form()
            return form if self.value else form.complement()
        values = self._coordinates(at.feature)
        if self.op == "<=":
            return at_most(at, values[0])
        if self.op == ">=":
            return at_least(at, values[0])
        form = one_of(at, values)
        return form.complement() if self.op == "!=" else form

    # ---- in plain numbers --------------------------------------------------------------------------------------------
    def holds(self, feature: Feature, x0: float | None, value: float) -> bool:
        """Tell whether a coordinate meets the condition."""
        if self.op == "changed":
            return (value != x0) == bool(self.value)
        if feature.is_finite:
            return self._holds_of_level(feature, int(value))
        if self.op == "<=":
            return value <= float(self.value)
        if self.op == ">=":
            return value >= float(self.value)
        off = 0.0 if feature.step is None else _ROUNDINGS * max(abs(value), abs(value if x0 is None else x0))
        wanted = self.value if self.op == "in" else (self.value,)
        return any(abs(value - float(other)) <= off for other in wanted) != (self.op == "!=")

    def _holds_of_level(self, feature: Feature, rank: int) -> bool:
        if self.op == "in":
            return rank in {feature.rank(level) for level in self.value}
        other = feature.rank(self.value)
        return {"==": rank == other, "!=": rank != other, "<=": rank <= other, ">=": rank >= other}[self.op]

    def sentence(self) -> str:
        """Return the condition in words."""
        match self.op:
            case "changed":
                return f"{self.column} {'changes' if self.value else 'stays'}"
            case "in":
                return f"{self.column} is one of {', '.join(map(repr, self.value))}"
            case _:
                return f"{self.column} {self.op} {self.value!r}"


def _bound(feature: Feature, value: Any) -> float:
    """Return a number that integers are compared with, which need not be one."""
    number = is_number(value)
    if number and math.isfinite(value):
        require_moderate("A condition", f"the value of column {feature.name!r}", value)
        return float(value)
    return feature.to_coordinate(value)  # says what is wrong with it

"""A condition on one column, as if-then rules have two of them: (column, op, value)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import pandas as pd

from ceopt.formulations.columns import AbstractCoordinate, Numeric
from ceopt.formulations.linear_form import LinearForm
from ceopt.formulations.tolerances import STEP_ROUNDINGS
from ceopt.solvers.checks import AbstractCheck, Choice, Flag, Moderate, Refusal, is_number
from ceopt.solvers.errors import InvalidTypeError, UnknownNameError

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["OPS", "Condition", "ValueList"]

OPS = ("==", "!=", "<=", ">=", "in", "changed")


_NO_LIST = Refusal("a list of values for {name}", "Write [value, ...].", "it got {value}", InvalidTypeError)


@final
@dataclass(frozen=True, slots=True)
class ValueList(AbstractCheck):
    """A collection of values, plain ones of an array; text, a frame and a single value are none.

    Those of a set come in an order that is the same in every process.
    """

    entries: AbstractCheck | None = None
    empty: Refusal | None = None

    def require(self, who: str, name: str, value: Any) -> tuple[Any, ...]:
        """Return the values as a tuple."""
        if isinstance(value, np.ndarray | pd.Series | pd.Index) and value.ndim:
            values = tuple(value.tolist())
        elif isinstance(value, set | frozenset):
            values = tuple(sorted(value, key=lambda entry: (type(entry).__name__, repr(entry))))
        elif isinstance(value, Iterable) and not isinstance(value, np.ndarray | str | bytes | pd.DataFrame):
            values = tuple(value)
        else:
            raise _NO_LIST.of(who, name, value)
        if self.empty is not None and not values:
            raise self.empty.of(who, name, value)
        if self.entries is not None:
            for entry in values:
                self.entries.require(who, name, entry)
        return values


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
        if isinstance(given, Sequence) and not isinstance(given, str | bytes):
            parts = tuple(given)
        else:
            parts = ()
        if len(parts) == 2 and parts[1] == "changed":
            parts = (*parts, True)
        if len(parts) != 3 or not isinstance(parts[1], str):
            raise InvalidTypeError(
                who, "conditions (column, op, value)", f"one is {given!r}", 'Write for example ("age", ">=", 30).'
            )
        column, op, value = parts
        Choice(OPS).require(who, "op", op)
        where = f"on column {column!r}"
        if op == "in":
            empty = Refusal("a value for op 'in'", "Name one.", f"the list {where} is empty")
            value = ValueList(empty=empty).require(who, f"op 'in' {where}", value)
        if op == "changed":
            but = f"{where} it is {value!r}"
            no_flag = Refusal("True or False for op 'changed'", "Leave it out for True.", but, InvalidTypeError)
            Flag(no_flag).require(who, "value", value)
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
            return at.at_most(values[0])
        if self.op == ">=":
            return at.at_least(values[0])
        form = at.one_of(values)
        return form.complement() if self.op == "!=" else form

    def no_further(self, at: AbstractCoordinate, *, toward: bool) -> LinearForm:
        """Return 1 where the column stays as it is, or moves ``toward`` the condition or away from it, else 0.

        By "<=" and ">=" every way has a direction; by any other op only the person's own value is no further.
        """
        if self._has_way:
            rises = (self.op == ">=") == toward
            return at.at_least(at.x0) if rises else at.at_most(at.x0)
        return at.equals(at.x0)

    @property
    def _has_way(self) -> bool:
        return self.op in {"<=", ">="}

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
        if feature.step is None:
            off = 0.0
        else:
            off = STEP_ROUNDINGS * max(abs(value), abs(value if x0 is None else x0))
        wanted = self.value if self.op == "in" else (self.value,)
        return any(abs(value - float(other)) <= off for other in wanted) != (self.op == "!=")

    def is_no_further(self, feature: Feature, x0: float, value: float, *, toward: bool) -> bool:
        """Tell whether a coordinate is the person's own, or on the way ``toward`` the condition or away from it."""
        off = 0.0 if feature.step is None else STEP_ROUNDINGS * max(abs(value), abs(x0))
        if abs(value - x0) <= off:
            return True
        return self._has_way and (value > x0) == ((self.op == ">=") == toward)

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
        Moderate().require("A condition", f"the value of column {feature.name!r}", value)
        return float(value)
    return feature.to_coordinate(value)  # says what is wrong with it

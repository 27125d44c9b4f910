"""If-then rules: where one condition on a column holds, another must."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np
import pandas as pd

from ceopt.formulations.columns import AbstractCoordinate, Numeric
from ceopt.formulations.constraints.rule import BEYOND, RULE_NAME, AbstractRule, Beyond, no_further_words
from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.formulations.space.feature import is_gap
from ceopt.formulations.tolerances import STEP_ROUNDINGS
from ceopt.solvers.checks import AbstractCheck, Choice, Flag, Moderate, Refusal, check_fields, is_number
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

# ==== A condition on one column, as if-then rules have two of them: (column, op, value) ===============================

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
        parts = ()
        if isinstance(given, Sequence) and not isinstance(given, str | bytes):
            parts = tuple(given)
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
        if self.op == "changed":
            return
        if self.op in {"<=", ">="} and is_gap(self.value):
            raise InvalidValueError(
                self.who, f"a value for op {self.op!r}", f"that on column {self.column!r} is missing",
                "Compare with '==', or give an amount.",
            )  # fmt: skip
        self._coordinates(feature)

    @property
    def _values(self) -> tuple[Any, ...]:
        """The values compared with: those of op "in", else the one."""
        return self.value if self.op == "in" else (self.value,)

    def _coordinates(self, feature: Feature) -> list[float]:
        if self.op in {"<=", ">="} and feature.kind == "integer":
            return [_bound(feature, value) for value in self._values]
        return list(map(feature.to_coordinate, self._values))

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
            at.amount()  # a number that nothing reads can change all the same
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
        if self.op != "!=":
            return form
        if at.feature.is_label(values[0]):
            return form.complement()
        return form.complement() + at.on_label.scaled(-1.0)

    def no_further(self, at: AbstractCoordinate, *, toward: bool) -> LinearForm:
        """Return 1 where the column stays as it is, or moves ``toward`` the condition or away from it, else 0.

        By "<=" and ">=" every way has a direction; by any other op only the person's own value is no further.
        """
        if self._has_way and not at.feature.is_label(at.x0):
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
        if feature.is_label(value):
            return self._holds_of_label(feature, value)
        if feature.is_finite:
            return self._holds_of_level(feature, int(value))
        if self.op == "<=":
            return value <= float(self.value)
        if self.op == ">=":
            return value >= float(self.value)
        off = 0.0
        if feature.step is not None:
            size = value if x0 is None or feature.is_label(x0) else x0
            off = STEP_ROUNDINGS * max(abs(value), abs(size))
        amounts = [float(other) for other in self._values if not is_gap(other)]
        return any(abs(value - other) <= off for other in amounts) != (self.op == "!=")

    def is_no_further(self, feature: Feature, x0: float, value: float, *, toward: bool) -> bool:
        """Tell whether a coordinate is the person's own, or on the way ``toward`` the condition or away from it."""
        if value == x0:
            return True
        if feature.is_label(value) or feature.is_label(x0):
            return False
        off = 0.0 if feature.step is None else STEP_ROUNDINGS * max(abs(value), abs(x0))
        if abs(value - x0) <= off:
            return True
        return self._has_way and (value > x0) == ((self.op == ">=") == toward)

    def _holds_of_label(self, feature: Feature, label: float) -> bool:
        """Tell whether a code or a missing cell meets a comparison: with itself alone, or as another than a label."""
        if self._has_way:
            return False
        others = list(map(feature.to_coordinate, self._values))
        if self.op == "!=":
            return feature.is_label(others[0]) and others[0] != label
        return label in others

    def _holds_of_level(self, feature: Feature, rank: int) -> bool:
        if self.op == "in":
            return rank in [feature.rank(value) for value in self.value if not is_gap(value)]
        if is_gap(self.value):
            return self.op == "!="
        other = feature.rank(self.value)
        return {"==": rank == other, "!=": rank != other, "<=": rank <= other, ">=": rank >= other}[self.op]

    def sentence(self) -> str:
        """Return the condition in words."""
        match self.op:
            case "changed":
                return f"{self.column} {'changes' if self.value else 'stays'}"
            case "in":
                return f"{self.column} is one of {', '.join(map(_word, self.value))}"
            case _:
                return f"{self.column} {self.op} {_word(self.value)}"


def _word(value: Any) -> str:
    return "missing" if is_gap(value) else repr(value)


def _bound(feature: Feature, value: Any) -> float:
    """Return a number that integers are compared with, which need not be one."""
    if is_number(value) and math.isfinite(value):
        Moderate().require("A condition", f"the value of column {feature.name!r}", value)
        return float(value)
    return feature.to_coordinate(value)  # says what is wrong with it


# ==== The rule ========================================================================================================


@final
@dataclass(frozen=True, slots=True)
class IfThen(AbstractRule):
    r"""If one condition holds of the answer, so does another.

    .. math:: a \le b, \qquad a = [\text{condition}], \; b = [\text{conclusion}]

    ====== ========================= =================================================================
    symbol component                 meaning
    ====== ========================= =================================================================
    a, b   ``x.cut``, ``x.level``,   1 where the condition holds: a sum of the binaries of levels, or
           ``x.at_least``            of the cuts between a number and its neighbour in reach
    a, b   ``x.moved``, ``x.surely`` of "changed" on a number: 1 permits, or forces, a move
    ====== ========================= =================================================================

    A conclusion that no value meets, alone or beside the condition, says that the condition must not hold.

    With ``beyond="no_further"``, for a person whose own row meets the condition and not the conclusion, the rule is met
    as well where both columns stay as they are or come nearer:

    .. math:: a \le b + s_a, \qquad a \le b + s_b, \qquad s = [\text{the column is no further than today}].

    By "<=" and ">=" a number or a rank comes nearer to the end of the condition, or to the conclusion, as far as it
    moves that way: a limit of 24 that somebody of 20 misses is 20 for them. By any other op there is no nearer, and
    ``s`` is 1 where the column keeps its own value. For everybody else the rule is what it is with "meet".

    A missing cell, or a code, meets no comparison with amounts, "!=" neither: ``("income", "<=", 900)`` and
    ``("income", "!=", 900)`` hold of amounts alone. It is equal to itself: ``("income", "==", None)`` holds where the
    cell is missing. One that is filled in has "changed", as has an amount that goes.

    One row, or two. A comparison of a number adds at most two cuts per value, and where the number has a coordinate its
    two link rows. Exact, with one exception: that a continuous column without a step has changed is known once it moved
    by a thousandth of its range, or across a cut. A conclusion "changed" asks for that much; a condition "not changed"
    holds of anything less.

    Parameters
    ----------
    condition, conclusion
        (column, op, value) each, in raw units and levels: op is "==", "!=", "<=", ">=" (of levels by rank), "in" (value
        is a list), or "changed" (value is True, and may be left out, or False).
    name
        Name in exports and reports.
    beyond
        What is asked of a person who breaks the rule today: "meet" it, or go "no_further".

    Raises
    ------
    UnknownNameError
        A column, an op or a word for ``beyond`` that does not exist.
    InvalidTypeError
        Something else than a condition; an order of a categorical column; a value of the wrong kind.
    InvalidValueError
        An unknown level, a number that is not finite, an empty list; an order beside a missing value.
    UnboundedFeatureError
        A number with a coordinate has an infinite bound (when built).

    References
    ----------
    Maragno, Roeber & Birbil (2022), actionability (6), made conditional.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.constraints import IfThen
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("job", kind="categorical", levels=("cook", "nurse", "vet")),
    ...                       Feature("age", kind="integer", lower=18, upper=90)])
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"job": "cook", "age": 20})
    >>> m.study = impose(IfThen(("job", "in", ["nurse", "vet"]), ("age", ">=", 24)), m.x)
    >>> print(m.study.row["job"].expr)
    x.level[job,nurse] + x.level[job,vet] - x.cut[age,'23']  <=  0.0

    A nurse of 20 today may stay one, grow older, or leave; a vet has to be 24:

    >>> m.y = Factual(space, {"job": "nurse", "age": 20})
    >>> m.stay = impose(IfThen(("job", "in", ["nurse", "vet"]), ("age", ">=", 24), beyond="no_further"), m.y)
    >>> for row in m.stay.row.values():
    ...     print(row.expr)
    y.level[job,vet] - y.cut[age,'23']  <=  0.0
    y.level[job,nurse] + y.level[job,vet] - y.cut[age,'23'] - y.cut[age,'19']  <=  0.0
    """

    condition: Any
    conclusion: Any
    name: str | None = None
    beyond: Beyond = field(default="meet", kw_only=True)
    _if: Condition = field(init=False, repr=False, compare=False)
    _then: Condition = field(init=False, repr=False, compare=False)
    manifest: ClassVar[Manifest] = Manifest(
        title="if one condition holds, so does another",
        formula="[condition] <= [conclusion]",
        reference="Maragno, Roeber & Birbil 2022, actionability",
        rule="IfThen",
        features={"row": 0},
    )

    def __post_init__(self) -> None:
        check_fields(self, {"name": RULE_NAME, "beyond": BEYOND})
        for own, given in (("_if", "condition"), ("_then", "conclusion")):
            parsed = Condition.parse("IfThen", getattr(self, given))
            object.__setattr__(self, own, parsed)
            object.__setattr__(self, given, parsed.plain)

    def check(self, space: FeatureSpace) -> None:
        """Refuse what the space does not know."""
        for condition in (self._if, self._then):
            condition.check(space)

    def build(self, block: Any, x: Factual) -> None:
        """Add the row ``row``, unless it holds whatever happens; one for each column where it need not be met."""
        premise = self._if.indicator(x, surely=False)
        conclusion = self._then.indicator(x, surely=True)
        rows = Rows(block, "row")
        if _settled(premise) == 0.0 or _settled(conclusion) == 1.0:
            return
        if not self._spares(x.space, x.point):
            _add_row(rows, self._if.column, premise, conclusion, LinearForm())
            return
        for word, side in (("condition", self._if), ("conclusion", self._then)):
            stays = side.no_further(x.coordinate(side.column), toward=side is self._then)
            _add_row(rows, (side.column, word), premise, conclusion, stays)

    def _spares(self, space: FeatureSpace, factual: Mapping[str, float]) -> bool:
        """Whether the person breaks the rule today and need not meet it."""
        if self.beyond == "meet":
            return False
        return self._is_broken(space, factual, factual)

    def _is_broken(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> bool:
        """Whether the condition holds at a point and the conclusion does not."""
        met = []
        for c in (self._if, self._then):
            met.append(c.holds(space[c.column], (factual or {}).get(c.column), point[c.column]))
        return met == [True, False]

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        """Every column that the rule reads, once."""
        return tuple(dict.fromkeys((self._if.column, self._then.column)))

    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return 1 where the condition holds and the conclusion does not, and that is not allowed as it is today."""
        if not self._is_broken(space, factual, point):
            return 0.0
        if factual is None or not self._spares(space, factual):
            return 1.0
        for c in (self._if, self._then):
            if not c.is_no_further(space[c.column], factual[c.column], point[c.column], toward=c is self._then):
                return 1.0
        return 0.0

    def sentence(self) -> str:
        """Return the rule in words."""
        sentence = f"if {self._if.sentence()}, then {self._then.sentence()}"
        if self.beyond == "meet":
            return sentence
        return sentence + no_further_words()


def _add_row(rows: Rows, index: Any, premise: Any, conclusion: Any, stays: LinearForm) -> None:
    """Add the row that the condition holds only with the conclusion, or where the column stays."""
    if isinstance(premise, LinearForm) and isinstance(conclusion, LinearForm):
        rows.add(index, premise + conclusion.scaled(-1.0) + stays.scaled(-1.0), upper=0.0)
        return
    one, two = (side.expression() if isinstance(side, LinearForm) else side for side in (premise, conclusion))
    rows.block.row[index] = one - two - stays.expression() <= 0.0


def _settled(side: LinearForm | Any) -> float | None:
    """Return 0 or 1 where no variable decides, else None."""
    value = None
    if isinstance(side, LinearForm):
        value = side.expression()
    return value if isinstance(value, float) else None

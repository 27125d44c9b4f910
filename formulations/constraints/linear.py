"""A linear row over the raw columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, final

import pyomo.environ as pyo

from ceopt.formulations.constraints.rule import (
    BEYOND,
    RULE_NAME,
    AbstractElastic,
    Beyond,
    is_off_amounts,
    no_further_words,
)
from ceopt.formulations.digits import digits
from ceopt.formulations.linear_form import LinearForm, Rows, total
from ceopt.formulations.space.feature import beyond_rounding, column_tolerance
from ceopt.formulations.tolerances import SUM_ROUNDING
from ceopt.solvers.checks import COEFFICIENT, Choice, MappingOf, Refusal, check_fields
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns, Factual
    from ceopt.formulations.space.space import FeatureSpace

_NO_COEFFICIENT = Refusal("a coefficient for some column", "Give a mapping.")
_CHECKS = {
    "name": RULE_NAME,
    "sense": Choice(("<=", ">=", "==")),
    "coefficients": MappingOf(_NO_COEFFICIENT, COEFFICIENT, empty=_NO_COEFFICIENT, entry="{column}"),
    "rhs": COEFFICIENT,
    "within": COEFFICIENT,
    "beyond": BEYOND,
    "further": COEFFICIENT,
}


@final
@dataclass(frozen=True, slots=True)
class Linear(AbstractElastic):
    r"""A row :math:`\sum_j a_j x_j \;\{\le, \ge, =\}\; b` over raw columns.

    A number counts in its own unit, an ordinal column by its rank, a binary one as 0 or 1. One row, and a coordinate
    for each numeric column in it. Exact up to the solver's tolerance: a point is taken to keep the rule if it does so
    once a column moves by a trace, 1e-6 of a step, or of a number without one (at least 1, at most the column's width).
    Relaxed, a variable w >= 0, ``wider``, joins the side that is too tight, or either side of an equation, which then
    takes two rows.

    With ``beyond="no_further"`` each side is the looser one of the limit and the person's own value
    :math:`v^0 = \sum_j a_j x^0_j`:

    .. math::
        \sum_j a_j x_j \le \max(b, v^0) \;\text{(<=)}, \qquad
        \sum_j a_j x_j \ge \min(b, v^0) \;\text{(>=)}, \qquad
        \min(b, v^0) \le \sum_j a_j x_j \le \max(b, v^0) \;\text{(==)}.

    Who keeps the rule today is asked for the rule. Who is beyond it may stay or come nearer, and never goes further; by
    an equation nobody goes past it to the other side either.

    The row is of amounts. A person of whose columns one is missing or on a code, or may become so, cannot be asked.

    Parameters
    ----------
    coefficients
        Column -> coefficient.
    sense
        "<=", ">=" or "==".
    rhs
        Right-hand side.
    name
        Name in exports and reports.
    within
        Of an equation: by how much the left side may be off to either side.
    beyond
        What is asked of a person who breaks the rule today: "meet" it, or go "no_further".
    further
        With "no_further": by how much further out than it is the person's own value counts as a limit.

    Raises
    ------
    UnknownNameError
        A column, a sense or a word for ``beyond`` that does not exist.
    InvalidTypeError
        A categorical column, which has no number.
    InvalidValueError
        A coefficient or right-hand side that is not finite, or no coefficient; ``within`` below 0, or not of an
        equation; ``further`` below 0, or without "no_further"; a column that may hold no amount (when built).

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.constraints import Linear
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("loan", kind="integer", lower=1, upper=9),
    ...                       Feature("size", kind="ordinal", levels=("S", "M", "L"))])
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"loan": 6, "size": "M"})
    >>> m.fits = impose(Linear({"loan": 1.0, "size": -2.0}, "<=", 5.0), m.x)
    >>> print(m.fits.row["at_most"].expr)
    x.x[loan] - 2.0*x.at_least[size,M] - 2.0*x.at_least[size,L]  <=  5.0

    A ceiling that lowers nobody who is above it today:

    >>> m.low = impose(Linear({"loan": 1.0}, "<=", 3.0, beyond="no_further"), m.x)
    >>> print(m.low.row["at_most"].expr)
    x.x[loan]  <=  6.0
    """

    coefficients: Mapping[str, float]
    sense: Literal["<=", ">=", "=="]
    rhs: float
    name: str | None = None
    within: float = field(default=0.0, kw_only=True)
    beyond: Beyond = field(default="meet", kw_only=True)
    further: float = field(default=0.0, kw_only=True)
    manifest: ClassVar[Manifest] = Manifest(
        title="linear row over raw columns", formula="sum_j a_j x_j {<=, >=, ==} b", rule="Linear"
    )

    def __post_init__(self) -> None:
        check_fields(self, _CHECKS)
        if self.within < 0.0 or (self.within > 0.0 and self.sense != "=="):
            but = f"within is {self.within!r} and the sense {self.sense!r}"
            raise InvalidValueError("Linear", "within of at least 0, and only of '=='", but, "Change rhs, or leave it.")
        if self.further < 0.0 or (self.further > 0.0 and self.beyond == "meet"):
            but = f"further is {self.further!r} and beyond {self.beyond!r}"
            then = "Leave it out, or write beyond='no_further'."
            raise InvalidValueError("Linear", "further of at least 0, and only of 'no_further'", but, then)

    @property
    def needs_factual(self) -> bool:  # type: ignore[override]
        """Whether the person's own value is a limit."""
        return self.beyond == "no_further"

    @property
    def takes_columns(self) -> bool:  # type: ignore[override]
        """Whether it holds of any row, whoever the person is."""
        return self.beyond == "meet"

    def check(self, space: FeatureSpace) -> None:
        """Refuse unknown and categorical columns."""
        for name in self.coefficients:
            if name not in space:
                raise UnknownNameError.among("Linear", "column", name, space.names)
            if space[name].kind == "categorical":
                raise InvalidTypeError(
                    "Linear",
                    "columns that are numbers, ranks or 0/1",
                    f"column {name!r} is categorical",
                    "State the row in Pyomo over is_level[name, level], or make the column ordinal.",
                )

    def build(self, block: Any, x: AbstractColumns) -> None:
        """Add the row ``row``."""
        form = self._form(x)
        low, high = self._sides(x)
        Rows(block, "row").add(self.sense_word, form, lower=low, upper=high)

    def relax(self, block: Any, x: AbstractColumns) -> Any:
        """Add the row ``row`` that may be off by ``wider``; return that amount."""
        block.wider = pyo.Var(domain=pyo.NonNegativeReals, initialize=0.0)
        rows = Rows(block, "row")
        form = self._form(x)
        low, high = self._sides(x)
        if low is not None:
            rows.add("at_least", form + LinearForm(0.0, ((1.0, block.wider),)), lower=low)
        if high is not None:
            rows.add("at_most", form + LinearForm(0.0, ((-1.0, block.wider),)), upper=high)
        return block.wider

    def widened(self, by: float) -> Self:
        """Return the rule with its right-hand side moved outwards, or that holds within so much more."""
        wider = self
        if self.beyond == "no_further":
            wider = replace(self, further=self.further + by)
        if self.sense == "==":
            return replace(wider, within=self.within + by)
        return replace(wider, rhs=self.rhs + {"<=": by, ">=": -by}[self.sense])

    def _sides(self, x: AbstractColumns | Factual) -> tuple[float | None, float | None]:
        """Return the least and the greatest value of the left side; None where it has no such limit."""
        low = float(self.rhs - self.within)
        high = float(self.rhs + self.within)
        if self.beyond == "no_further":
            own = sum(float(a) * x.point[name] for name, a in self.coefficients.items())
            low = min(low, own - self.further)
            high = max(high, own + self.further)
        sides = {"<=": (None, high), ">=": (low, None), "==": (low, high)}
        return sides[self.sense]

    def needs_amount(self, space: FeatureSpace, name: str, label: float) -> bool:
        """Whether the formula has the column: always."""
        del space, name, label
        return True

    def _form(self, x: AbstractColumns) -> LinearForm:
        return total(x.coordinate(name).raw().scaled(float(a)) for name, a in self.coefficients.items())

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        """Every column that the rule reads, once."""
        return tuple(self.coefficients)

    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return how far the left side is on the wrong side, beyond the tolerance; infinite without amounts."""
        off, size = self._off(space, factual, point)
        if off == math.inf:
            return off
        shares = [abs(float(a)) * column_tolerance(space[name], point[name]) for name, a in self.coefficients.items()]
        return beyond_rounding(off, max(shares) + SUM_ROUNDING * size)

    def missed(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return how far the left side is on the wrong side, without a tolerance but that of a sum."""
        off, size = self._off(space, factual, point)
        if off == math.inf:
            return off
        return beyond_rounding(off, SUM_ROUNDING * size)

    def _off(
        self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]
    ) -> tuple[float, float]:
        """Return how far the left side is on the wrong side, and the size of what it adds up."""
        read = [point]
        if self.beyond == "no_further" and factual is not None:
            read.append(factual)
        if is_off_amounts(space, self.coefficients, *read):
            return math.inf, 0.0
        parts = [float(a) * point[name] for name, a in self.coefficients.items()]
        least = float(self.rhs) - float(self.within)
        most = float(self.rhs) + float(self.within)
        size = abs(float(self.rhs)) + sum(map(abs, parts))
        if self.beyond == "no_further":
            assert factual is not None  # noqa: S101 - needs_factual
            today = [float(a) * factual[name] for name, a in self.coefficients.items()]
            least = min(least, sum(today) - float(self.further))
            most = max(most, sum(today) + float(self.further))
            size += sum(map(abs, today))
        over = sum(parts) - most
        under = least - sum(parts)
        return {"<=": over, ">=": under, "==": max(over, under)}[self.sense], size

    @property
    def sense_word(self) -> str:
        """The sense as a word that may stand in a row's name."""
        return {"<=": "at_most", ">=": "at_least", "==": "equals"}[self.sense]

    def sentence(self) -> str:
        """Return the rule in words."""
        left = ""
        for name, a in self.coefficients.items():
            if a < 0:
                sign = " - " if left else "-"
            elif left:
                sign = " + "
            else:
                sign = ""
            size = "" if abs(a) == 1 else f"{digits(abs(a))} "
            left += f"{sign}{size}{name}"
        sentence = f"{left} {self.sense} {digits(self.rhs)}"
        if self.within:
            sentence += f" within {digits(self.within)}"
        if self.beyond == "no_further":
            sentence += no_further_words(self.further)
        return sentence

"""A linear row over the raw columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, final

import pyomo.environ as pyo

from ceopt.formulations.constraints.rule import RULE_NAME, AbstractElastic
from ceopt.formulations.digits import digits
from ceopt.formulations.linear_form import LinearForm, Rows, total
from ceopt.formulations.space.trace import trace_of
from ceopt.formulations.tolerances import SUM_ROUNDING
from ceopt.solvers.checks import COEFFICIENT, Choice, MappingOf, Refusal, check_fields
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["Linear"]

_NO_COEFFICIENT = Refusal("a coefficient for some column", "Give a mapping.")
_CHECKS = {
    "name": RULE_NAME,
    "sense": Choice(("<=", ">=", "==")),
    "coefficients": MappingOf(_NO_COEFFICIENT, COEFFICIENT, empty=_NO_COEFFICIENT, entry="{column}"),
    "rhs": COEFFICIENT,
    "within": COEFFICIENT,
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

    Raises
    ------
    UnknownNameError
        A column or sense that does not exist.
    InvalidTypeError
        A categorical column, which has no number.
    InvalidValueError
        A coefficient or right-hand side that is not finite, or no coefficient; ``within`` below 0, or not of an
        equation.

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
    """

    coefficients: Mapping[str, float]
    sense: Literal["<=", ">=", "=="]
    rhs: float
    name: str | None = None
    within: float = field(default=0.0, kw_only=True)
    manifest: ClassVar[Manifest] = Manifest(
        title="linear row over raw columns", formula="sum_j a_j x_j {<=, >=, ==} b", rule="Linear"
    )
    needs_factual: ClassVar[bool] = False
    takes_columns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self, _CHECKS)
        if self.within < 0.0 or (self.within > 0.0 and self.sense != "=="):
            but = f"within is {self.within!r} and the sense {self.sense!r}"
            raise InvalidValueError("Linear", "within of at least 0, and only of '=='", but, "Change rhs, or leave it.")

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
        low, high = self._sides
        Rows(block, "row").add(self.sense_word, self._form(x), lower=low, upper=high)

    def relax(self, block: Any, x: AbstractColumns) -> Any:
        """Add the row ``row`` that may be off by ``wider``; return that amount."""
        block.wider = pyo.Var(domain=pyo.NonNegativeReals, initialize=0.0)
        rows = Rows(block, "row")
        form = self._form(x)
        low, high = self._sides
        if low is not None:
            rows.add("at_least", form + LinearForm(0.0, ((1.0, block.wider),)), lower=low)
        if high is not None:
            rows.add("at_most", form + LinearForm(0.0, ((-1.0, block.wider),)), upper=high)
        return block.wider

    def widened(self, by: float) -> Self:
        """Return the rule with its right-hand side moved outwards, or that holds within so much more."""
        if self.sense == "==":
            return replace(self, within=self.within + by)
        return replace(self, rhs=self.rhs + by if self.sense == "<=" else self.rhs - by)

    @property
    def _sides(self) -> tuple[float | None, float | None]:
        if self.sense in {">=", "=="}:
            low = float(self.rhs - self.within)
        else:
            low = None
        if self.sense in {"<=", "=="}:
            high = float(self.rhs + self.within)
        else:
            high = None
        return low, high

    def _form(self, x: AbstractColumns) -> LinearForm:
        return total(x.coordinate(name).raw().scaled(float(a)) for name, a in self.coefficients.items())

    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return how far the left side is on the wrong side, beyond the tolerance."""
        del factual
        parts = [float(a) * point[name] for name, a in self.coefficients.items()]
        over = sum(parts) - float(self.rhs)
        if self.sense == "==":
            off = abs(over) - float(self.within)
        elif self.sense == "<=":
            off = over
        else:
            off = -over
        allowed = max(abs(float(a)) * trace_of(space[name], point[name]) for name, a in self.coefficients.items())
        rounding = SUM_ROUNDING * (abs(float(self.rhs)) + sum(abs(part) for part in parts))
        return off if off > allowed + rounding else 0.0

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
        return sentence

"""From Pyomo expressions to coefficients: one row or one objective at a time, through Pyomo's own visitors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import pyomo.environ as pyo
from pyomo.repn.linear import LinearRepnVisitor
from pyomo.repn.quadratic import QuadraticRepnVisitor
from pyomo.repn.util import categorize_valid_components

from ceopt.solvers.errors import InvalidValueError, UnsupportedProblemError

__all__ = ["Objective", "Recorder", "Row", "Walker", "refuse_foreign_components"]

_TOLERANCE = 1e-7  # a row without variables may miss its bound by the solvers' own feasibility tolerance
_KNOWN = {pyo.Block, pyo.Constraint, pyo.Objective, pyo.Var, pyo.Param, pyo.Expression, pyo.Set, pyo.RangeSet}


@final
class Recorder:
    """Columns in the order in which the walk meets them; what Pyomo's visitors call a variable recorder."""

    __slots__ = ("var_map", "var_order")

    def __init__(self, columns: Iterable[Any] = ()) -> None:
        self.var_map: dict[int, Any] = {}
        self.var_order: dict[int, int] = {}
        for var in columns:
            self.add(var)

    def add(self, var: Any) -> None:
        """Give ``var`` the next column."""
        self.var_order[id(var)] = len(self.var_map)
        self.var_map[id(var)] = var


@final
@dataclass(frozen=True, slots=True)
class Row:
    """``lower <= sum of values * columns <= upper``; without columns it is a statement about constants."""

    constraint: Any
    lower: float
    upper: float
    columns: list[int]
    values: list[float]

    @property
    def is_broken_constant(self) -> bool:
        """Whether this is a false statement about constants."""
        if self.columns:
            return False
        slack = _TOLERANCE * max(1.0, *(abs(b) for b in (self.lower, self.upper) if math.isfinite(b)), 0.0)
        return not self.lower - slack <= 0.0 <= self.upper + slack


@final
@dataclass(frozen=True, slots=True)
class Objective:
    """``constant + linear + sum of q * x_i * x_j`` with ``quadratic`` keyed by (larger, smaller) column."""

    constant: float
    linear: dict[int, float]
    quadratic: dict[tuple[int, int], float]


@final
class Walker:
    """Reads rows and objectives over the columns of one :class:`Recorder`.

    A Var that already has a column stays a variable, fixed or not; any other fixed Var is a constant.
    """

    __slots__ = ("_linear", "_quadratic", "recorder")

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._linear = LinearRepnVisitor({}, var_recorder=recorder)
        self._quadratic = QuadraticRepnVisitor({}, var_recorder=recorder)

    def row(self, constraint: Any) -> Row | None:
        """Return the row of one linear constraint; None if it bounds nothing."""
        try:
            lower, body, upper = constraint.to_bounded_expression(evaluate_bounds=True)
        except (ValueError, TypeError) as error:
            raise _not_a_number(constraint, str(error)) from error
        if lower is None and upper is None:
            return None
        try:
            repn = self._linear.walk_expression(body)
        except KeyError as error:  # an expression node that Pyomo's visitor has no entry for
            raise _not_linear(constraint) from error
        if repn.nonlinear is not None:
            raise _not_linear(constraint)
        columns, values = self._terms(repn.linear, constraint)
        constant = _number(repn.constant, constraint)
        return Row(
            constraint,
            -math.inf if lower is None else float(lower) - constant,
            math.inf if upper is None else float(upper) - constant,
            columns,
            values,
        )

    def objective(self, objective: Any) -> Objective:
        """Return the coefficients of a linear or quadratic objective."""
        try:
            repn = self._quadratic.walk_expression(objective.expr)
        except KeyError as error:
            raise _not_quadratic(objective) from error
        if repn.nonlinear is not None:
            raise _not_quadratic(objective)
        order = self.recorder.var_order
        quadratic: dict[tuple[int, int], float] = {}
        for (first, second), value in (repn.quadratic or {}).items():
            i, j = sorted((order[first], order[second]), reverse=True)
            quadratic[i, j] = quadratic.get((i, j), 0.0) + _number(value, objective)
        columns, values = self._terms(repn.linear, objective)
        return Objective(
            _number(repn.constant, objective),
            dict(zip(columns, values, strict=True)),
            {pair: value for pair, value in quadratic.items() if value},
        )

    def _terms(self, linear: dict[int, Any], component: Any) -> tuple[list[int], list[float]]:
        order, columns, values = self.recorder.var_order, [], []
        for key, value in linear.items():
            if number := _number(value, component):
                columns.append(order[key])
                values.append(number)
        return columns, values


def refuse_foreign_components(model: Any, who: str = "compile_model") -> None:
    """Refuse active components that are not linear algebra (SOS sets, disjunctions, complementarities, ...)."""
    _, foreign = categorize_valid_components(
        model, active=True, valid=_KNOWN | {pyo.ExternalFunction}, targets={pyo.Suffix}
    )
    for ctype, found in foreign.items():
        if found:
            raise UnsupportedProblemError(
                who,
                "a model of Vars, Constraints and at most one Objective",
                f"{found[0].name!r} is an active {ctype.__name__}",
                "Deactivate it or restate it with binaries.",
            )


def _number(value: Any, component: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise _not_a_number(component, str(value)) from error
    if not math.isfinite(number):
        raise _not_a_number(component, str(number))
    return number


def _not_a_number(component: Any, what: str) -> InvalidValueError:
    return InvalidValueError(
        "compile_model",
        "finite coefficients",
        f"{component.ctype.__name__.lower()} {component.name!r} has {what}",
        "Give every Param and fixed Var a finite value.",
    )


def _not_linear(constraint: Any) -> UnsupportedProblemError:
    return UnsupportedProblemError(
        "compile_model",
        "linear constraints",
        f"constraint {constraint.name!r} is not linear",
        "State it with linear rows and binaries; fix one factor of a product of Vars.",
    )


def _not_quadratic(objective: Any) -> UnsupportedProblemError:
    return UnsupportedProblemError(
        "compile_model",
        "a linear or quadratic objective",
        f"objective {objective.name!r} is neither",
        "Move the nonlinear part into linear rows.",
    )

"""From Pyomo expressions to coefficients: one row or one objective at a time, through Pyomo's own visitors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, final

import pyomo.environ as pyo
from pyomo.common.errors import DeveloperError
from pyomo.core.base.expression import NamedExpressionData
from pyomo.core.base.var import ScalarVar, VarData
from pyomo.repn.linear import LinearRepnVisitor
from pyomo.repn.quadratic import QuadraticRepnVisitor
from pyomo.repn.util import categorize_valid_components

from ceopt.solvers.cones import Cone, ConeMargin
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnsupportedProblemError
from ceopt.solvers.tolerances import CONSTANT_MISS

_NUMBERS = frozenset({int, float})
_UNKNOWN_NODE = (KeyError, DeveloperError)  # what Pyomo's visitors raise for a node that they have no entry for
_KNOWN = {
    pyo.Block,
    pyo.Constraint,
    pyo.SOSConstraint,
    pyo.Objective,
    pyo.Var,
    pyo.Param,
    pyo.Expression,
    pyo.Set,
    pyo.RangeSet,
}

_BY_BINARIES = 'Apply pyo.TransformationFactory("gdp.bigm").apply_to(model) first; it restates it with binaries.'
#: What to do with components of Pyomo that one of its transformations restates, by the name of their kind.
_RESTATED = {"Disjunct": _BY_BINARIES, "Disjunction": _BY_BINARIES, "LogicalConstraint": _BY_BINARIES}


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

    def meet(self, variables: Iterable[Any]) -> None:
        """Give the next columns to those that have none and are not fixed."""
        for var in variables:
            if not var.fixed and id(var) not in self.var_order:
                self.add(var)


@final
@dataclass(frozen=True, slots=True)
class Row:
    """``lower <= sum of values * columns + quadratic <= upper``; without columns it is a statement about constants."""

    constraint: Any
    lower: float
    upper: float
    columns: list[int]
    values: list[float]
    quadratic: dict[tuple[int, int], float] | None = None

    @property
    def is_broken_constant(self) -> bool:
        """Whether this is a false statement about constants."""
        if self.columns or self.quadratic:
            return False
        slack = CONSTANT_MISS * max(1.0, *(abs(b) for b in (self.lower, self.upper) if math.isfinite(b)), 0.0)
        return not self.lower - slack <= 0.0 <= self.upper + slack


@final
@dataclass(frozen=True, slots=True)
class ConeEntries:
    """The affine entries of one cone: entry r is ``constants[r] + values[k] * columns[k]`` for k from starts[r]."""

    constraint: Any
    cone: Cone
    constants: list[float]
    starts: list[int]
    columns: list[int]
    values: list[float]
    affine: tuple[Any, Any] | None = None
    """``(constant, matrix)`` to be applied to these entries; None where they are the cone's own."""


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

    def row(self, constraint: Any) -> Row | ConeEntries | None:
        """Return one constraint: a linear or quadratic row, or a cone; None if it bounds nothing."""
        try:
            lower, body, upper = constraint.to_bounded_expression(evaluate_bounds=True)
        except (ValueError, TypeError) as error:
            raise _not_a_number(constraint, str(error)) from error
        if lower is None and upper is None:
            return None
        while isinstance(body, NamedExpressionData):
            body = body.expr
        if body.__class__ is ConeMargin:
            return self._cone(constraint, lower, body, upper)
        try:
            repn = self._linear.walk_expression(body)
            if repn.nonlinear is not None:
                repn = self._quadratic.walk_expression(body)
        except _UNKNOWN_NODE as error:
            raise _not_quadratic(constraint) from error
        except ValueError as error:
            raise _not_a_number(constraint, _first_line(error)) from error
        if repn.nonlinear is not None:
            raise _not_quadratic(constraint)
        columns, values = self._terms(repn.linear, constraint)
        constant = _number(repn.constant, constraint)
        low = -math.inf
        if lower is not None:
            low = float(lower) - constant
        high = math.inf
        if upper is not None:
            high = float(upper) - constant
        products = self._products(getattr(repn, "quadratic", None), constraint)
        return Row(constraint, low, high, columns, values, products or None)

    def objective(self, objective: Any) -> Objective:
        """Return the coefficients of a linear or quadratic objective."""
        try:
            repn = self._quadratic.walk_expression(objective.expr)
        except _UNKNOWN_NODE as error:
            raise _not_quadratic(objective) from error
        except ValueError as error:
            raise _not_a_number(objective, _first_line(error)) from error
        if repn.nonlinear is not None:
            raise _not_quadratic(objective)
        columns, values = self._terms(repn.linear, objective)
        linear = dict(zip(columns, values, strict=True))
        return Objective(_number(repn.constant, objective), linear, self._products(repn.quadratic, objective))

    def _cone(self, constraint: Any, lower: Any, margin: Any, upper: Any) -> ConeEntries:
        if lower != 0 or upper is not None:
            raise UnsupportedProblemError(
                "A cone",
                "a constraint 'margin >= 0'",
                f"constraint {constraint.name!r} has other bounds ({lower}, {upper})",
                "State it as expr=soc(t, v) >= 0, and so for the other cones.",
            )
        order = self.recorder.var_order
        add = self.recorder.add
        constants: list[float] = []
        starts = [0]
        columns = []
        values = []
        for position, entry in enumerate(margin.args):
            if entry.__class__ in _NUMBERS:
                constants.append(_number(entry, constraint))
            elif entry.__class__ is VarData or entry.__class__ is ScalarVar:
                if not entry.fixed or id(entry) in order:
                    if id(entry) not in order:
                        add(entry)
                    columns.append(order[id(entry)])
                    values.append(1.0)
                    constants.append(0.0)
                else:
                    constants.append(_number(entry.value, constraint))
            else:
                repn = self._affine(entry, constraint, position)
                constants.append(_number(repn.constant, constraint))
                more_columns, more_values = self._terms(repn.linear, constraint)
                columns += more_columns
                values += more_values
            starts.append(len(columns))
        return ConeEntries(constraint, margin.cone, constants, starts, columns, values, margin.affine)

    def _affine(self, entry: Any, constraint: Any, position: int) -> Any:
        try:
            repn = self._linear.walk_expression(entry)
        except _UNKNOWN_NODE:
            repn = None
        except ValueError as error:  # a Param without a value
            raise _not_a_number(constraint, _first_line(error)) from error
        if repn is None or repn.nonlinear is not None:
            raise UnsupportedProblemError(
                "A cone",
                "affine entries",
                f"entry {position} of constraint {constraint.name!r} is {entry}",
                "Introduce a Var for it, with a row or a cone of its own.",
            )
        return repn

    def _products(self, quadratic: Any, component: Any) -> dict[tuple[int, int], float]:
        order = self.recorder.var_order
        products: dict[tuple[int, int], float] = {}
        for (first, second), value in (quadratic or {}).items():
            i, j = sorted((order[first], order[second]), reverse=True)
            products[i, j] = products.get((i, j), 0.0) + _number(value, component)
        return {pair: value for pair, value in products.items() if value}

    def _terms(self, linear: dict[int, Any], component: Any) -> tuple[list[int], list[float]]:
        order = self.recorder.var_order
        columns = []
        values = []
        for key, value in linear.items():
            number = _number(value, component)
            if number:
                columns.append(order[key])
                values.append(number)
        return columns, values


def refuse_foreign_components(model: Any, who: str = "compile_model") -> None:
    """Refuse active components that are not linear algebra (disjunctions, complementarities, ...)."""
    if not hasattr(model, "component_data_objects"):
        raise InvalidTypeError(who, "a Pyomo model", f"it got {type(model).__name__}", "Build a ConcreteModel.")
    if not getattr(model, "is_constructed", lambda: True)():
        raise InvalidTypeError(
            who, "a model with data", f"{model.name!r} is abstract", "Call its create_instance() first."
        )
    _, foreign = categorize_valid_components(
        model, active=True, valid=_KNOWN | {pyo.ExternalFunction}, targets={pyo.Suffix}
    )
    for ctype, found in foreign.items():
        if found:
            raise UnsupportedProblemError(
                who,
                "a model of Vars, Constraints and at most one Objective",
                f"{found[0].name!r} is an active {ctype.__name__}",
                _RESTATED.get(ctype.__name__, "Deactivate it or restate it with binaries."),
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


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(":")


def _not_quadratic(component: Any) -> UnsupportedProblemError:
    kind = component.ctype.__name__.lower()
    if any(node.__class__ is ConeMargin for node in _nodes(component)):
        return UnsupportedProblemError(
            "A cone",
            "a constraint of its own, 'margin >= 0'",
            f"{kind} {component.name!r} has its margin inside another expression",
            "Introduce a Var for the rest, such as soc(t, v) >= 0 with t in a row.",
        )
    if kind == "objective":
        needs = "a linear or quadratic objective"
        but = f"{kind} {component.name!r} is neither"
    else:
        needs = "linear, quadratic and conic constraints"
        but = f"{kind} {component.name!r} is none of these"
    then = "State it with linear rows and binaries, or with the cones of ceopt.solvers.cones."
    return UnsupportedProblemError("compile_model", needs, but, then)


def _nodes(component: Any) -> Iterator[Any]:
    """Yield every node of a component's expression."""
    waiting = [component.expr]
    while waiting:
        node = waiting.pop()
        yield node
        if getattr(node, "is_expression_type", bool)():
            waiting += node.args

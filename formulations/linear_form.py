"""A linear form: a constant and a few coefficient-variable pairs, before Pyomo sees it.

Formulations add up many short sums of binaries. Collected here they become one ``LinearExpression`` with plain Python
floats, which Pyomo walks several times faster than a chain of ``+``, and a form without variables stays recognisable.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression
from pyomo.core.expr.visitor import identify_variables
from pyomo.repn import generate_standard_repn

from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import InvalidTypeError

__all__ = ["LinearForm", "Rows", "binary_form", "finite_or_none", "sum_form", "total"]

#: Rows of one kind between two looks at the clock: a row takes some twenty microseconds.
_ROWS = 32
#: What the time limit ends here.
_STAGE = "building the program"


@final
@dataclass(frozen=True, slots=True)
class LinearForm:
    r"""``constant + sum(coefficient * variable)``; a variable may occur more than once."""

    constant: float = 0.0
    terms: tuple[tuple[float, Any], ...] = ()

    def __add__(self, other: LinearForm) -> LinearForm:
        return LinearForm(self.constant + other.constant, self.terms + other.terms)

    def scaled(self, factor: float) -> LinearForm:
        """Return ``factor`` times this form; a zero factor drops the variables."""
        if factor == 0.0:
            return LinearForm()
        if factor == 1.0:
            return self
        return LinearForm(factor * self.constant, tuple((factor * c, v) for c, v in self.terms))

    def complement(self) -> LinearForm:
        """Return ``1 - form``, the indicator of the opposite."""
        return LinearForm(1.0 - self.constant, tuple((-c, v) for c, v in self.terms))

    def expression(self) -> Any:
        """Return a Pyomo expression, or the bare constant where no variable is left."""
        if not self.terms:
            return self.constant
        coefficients: dict[int, float] = {}
        variables: dict[int, Any] = {}
        for coefficient, variable in self.terms:
            key = id(variable)
            variables[key] = variable
            coefficients[key] = coefficients.get(key, 0.0) + coefficient
        kept = [key for key in variables if coefficients[key] != 0.0]
        if not kept:
            return self.constant
        return LinearExpression(
            constant=self.constant,
            linear_coefs=[coefficients[key] for key in kept],
            linear_vars=[variables[key] for key in kept],
        )

    def without_traces(self, size: float, room: float) -> tuple[LinearForm, float, float]:
        """Return the form without its least coefficients, and the least and the greatest sum of what is left out.

        The variables are between 0 and 1. Left out are sizes up to ``size``, the least first, up to ``room`` in all.
        """
        left_out = 0.0
        lowest = highest = 0.0
        positions: set[int] = set()
        for position in sorted(range(len(self.terms)), key=lambda k: abs(self.terms[k][0])):
            coefficient = self.terms[position][0]
            left_out += abs(coefficient)
            if abs(coefficient) > size or left_out > room:
                break
            positions.add(position)
            lowest += min(coefficient, 0.0)
            highest += max(coefficient, 0.0)
        if not positions:
            return self, 0.0, 0.0
        kept = tuple(term for position, term in enumerate(self.terms) if position not in positions)
        return LinearForm(self.constant, kept), lowest, highest

    def value(self) -> float:
        """Evaluate at the variables' current values."""
        return float(self.constant + sum(c * v.value for c, v in self.terms))


def binary_form(who: str, what: str, given: Any) -> LinearForm:
    """Return, as a form, what is 1 where something holds and else 0 or less: a binary, or one less a binary.

    Raises
    ------
    InvalidTypeError
        ``given`` is no linear expression over binaries, or may be neither 0 nor 1.
    """
    if getattr(given, "ctype", None) is not None and given.is_indexed():
        raise _no_binary(who, what, given, f"It is indexed: name one of its members, {given.name}[...].")
    if not hasattr(given, "is_expression_type"):
        raise _no_binary(who, what, given)
    constant, pairs = 0.0, [(1.0, given)]
    if not given.is_variable_type():
        linear = _with_fixed_vars(given)
        if not linear.is_linear():
            raise _no_binary(who, what, given)
        constant = float(linear.constant)
        pairs = [(float(c), variable) for c, variable in zip(linear.linear_coefs, linear.linear_vars, strict=True)]
    for coefficient, variable in pairs:
        is_binary = variable.is_integer() and variable.bounds in {(0, 1), (0, 0), (1, 1)}
        if not (variable.is_binary() or is_binary) or coefficient % 1.0:
            raise _no_binary(who, what, given)
    greatest = constant + sum(max(coefficient, 0.0) for coefficient, _ in pairs)
    if greatest > 1.0 or constant % 1.0:
        raise _no_binary(who, what, given)
    return LinearForm(constant, tuple(pairs))


def _no_binary(who: str, what: str, given: Any, then: str = "Declare it with domain=pyo.Binary.") -> InvalidTypeError:
    return InvalidTypeError(who, f"a binary Var, or 1 - Var, as {what}", f"{what} is {given!s}", then)


def _with_fixed_vars(given: Any) -> Any:
    """Return the terms of an expression, of fixed Vars too: they may be free again when the program is solved."""
    fixed = [var for var in identify_variables(given, include_fixed=True) if var.fixed]
    for var in fixed:
        var.fixed = False
    try:
        return generate_standard_repn(given, compute_values=True)
    finally:
        for var in fixed:
            var.fixed = True


def finite_or_none(limit: float) -> float | None:
    """Return a bound as Pyomo takes it: None for an infinite one."""
    return limit if math.isfinite(limit) else None


def sum_form(variables: Iterable[Any]) -> LinearForm:
    """Return the sum of some variables."""
    return LinearForm(0.0, tuple((1.0, variable) for variable in variables))


def total(forms: Iterable[LinearForm]) -> LinearForm:
    """Return the sum of many forms without building the intermediate ones."""
    constant = 0.0
    terms: list[tuple[float, Any]] = []
    for form in forms:
        constant += form.constant
        terms.extend(form.terms)
    return LinearForm(constant, tuple(terms))


@final
class Rows:
    """Writes rows ``lower <= form <= upper`` into an indexed constraint of a block, constants included.

    Pyomo refuses a row without variables. One that holds is left out here; one that cannot hold is kept as a row over
    ``impossible``, a variable fixed to zero by its bounds, so that the model is infeasible instead of an error.
    """

    def __init__(self, block: Any, name: str) -> None:
        checkpoint(_STAGE)
        self.block = block
        self.name = name
        self._added = 0
        if block.component(name) is None:
            block.add_component(name, pyo.Constraint(pyo.Any))

    def drop(self, index: Any) -> None:
        """Take a row out, if it is there, to write it anew."""
        rows = self.block.component(self.name)
        if index in rows:
            del rows[index]

    def add(self, index: Any, form: LinearForm, *, lower: float | None = None, upper: float | None = None) -> None:
        """Add one row; ``lower == upper`` makes it an equation."""
        self._added += 1
        if self._added % _ROWS == 0:
            checkpoint(_STAGE)
        rows = self.block.component(self.name)
        body = form.expression()
        if isinstance(body, float):
            slack = 1e-9 * max(1.0, abs(body))
            if (lower is None or body >= lower - slack) and (upper is None or body <= upper + slack):
                return
            if self.block.component("impossible") is None:
                self.block.impossible = pyo.Var(bounds=(0.0, 0.0), initialize=0.0)
            body = LinearExpression(constant=body, linear_coefs=[1.0], linear_vars=[self.block.impossible])
        if lower is not None and lower == upper:
            rows[index] = body == lower
        elif lower is None:
            rows[index] = body <= upper
        elif upper is None:
            rows[index] = body >= lower
        else:
            rows[index] = (lower, body, upper)

"""A ConcreteModel from coefficients: one column, row or cone at a time, under the names of a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from ceopt.solvers import cones
from ceopt.solvers.cones import Cone, side_of, triangle

_INFINITE = 1e20


def add(model: Any, name: str, component: Any) -> Any:
    """Add a component under ``name``, with ``_`` behind it while Pyomo or another component holds that name."""
    while hasattr(model, name):
        name += "_"
    model.add_component(name, component)
    return component


def add_column(model: Any, name: str, bounds: tuple[float, float], *, integer: bool) -> Any:
    """Add a Var; bounds from 1e20 on are none."""
    domain = pyo.Reals
    if integer:
        domain = pyo.Binary if bounds == (0.0, 1.0) else pyo.Integers
    return add(model, name, pyo.Var(domain=domain, bounds=(_finite(bounds[0]), _finite(bounds[1]))))


def affine(constant: float, values: Sequence[float], columns: Sequence[Any]) -> Any:
    """Return ``constant + sum of values * columns``: a number, a Var or an expression."""
    if not columns:
        return constant
    if len(columns) == 1 and values[0] == 1.0 and not constant:
        return columns[0]
    return LinearExpression(constant=constant, linear_coefs=list(values), linear_vars=list(columns))


def add_row(
    model: Any,
    name: str,
    values: Sequence[float],
    columns: Sequence[Any],
    sides: tuple[float, float],
    *,
    products: Mapping[tuple[int, int], tuple[float, Any, Any]] | None = None,
) -> None:
    """Add ``sum of values * columns + products`` between its sides; nothing where both are infinite.

    Parameters
    ----------
    products
        Any key -> (coefficient, Var, Var).
    """
    low, high = map(_finite, sides)
    if low is None and high is None:
        return
    if not columns and not products:
        holds = (low is None or low <= 0) and (high is None or high >= 0)
        constant = pyo.Constraint.Feasible if holds else pyo.Constraint.Infeasible
        add(model, name, pyo.Constraint(expr=constant))
        return
    body = affine(0.0, values, columns)
    for coefficient, first, second in (products or {}).values():
        body += coefficient * first * second
    relation: Any = (low, body, high)
    if low == high:
        relation = body == low
    add(model, name, pyo.Constraint(expr=relation))


def add_objective(model: Any, name: str, expression: Any, *, minimise: bool) -> None:
    """Add an objective; ``objective`` where the file has no name for it."""
    sense = pyo.minimize if minimise else pyo.maximize
    add(model, name or "objective", pyo.Objective(expr=expression, sense=sense))


def costs(constant: float, values: Sequence[float], columns: Sequence[Any]) -> Any:
    """Return ``constant + sum of values * columns`` over the columns that cost something."""
    used = [k for k, value in enumerate(values) if value]
    return affine(float(constant), [float(values[k]) for k in used], [columns[k] for k in used])


def add_cone(model: Any, name: str, cone: Cone, entries: Sequence[Any]) -> None:
    """Add a cone, given its entries in the order of :class:`~ceopt.solvers.cones.Cone`."""
    add(model, name, pyo.Constraint(expr=_MARGINS[cone](entries) >= 0))


def _psd(entries: Sequence[Any]) -> Any:
    side = side_of(len(entries))
    matrix: list[list[Any]] = [[0.0] * side for _ in range(side)]
    i, j = triangle(side)
    for row, column, entry in zip(i.tolist(), j.tolist(), entries, strict=True):
        matrix[row][column] = matrix[column][row] = entry
    return cones.psd(matrix)


_MARGINS: dict[Cone, Callable[[Sequence[Any]], Any]] = {
    Cone.SECOND_ORDER: lambda entries: cones.soc(entries[0], entries[1:]),
    Cone.ROTATED: lambda entries: cones.rotated_soc(entries[0], entries[1], entries[2:]),
    Cone.SEMIDEFINITE: _psd,
    Cone.EXPONENTIAL: lambda entries: cones.exponential(*entries),
}


def _finite(bound: float) -> float | None:
    if math.isfinite(bound) and abs(bound) < _INFINITE:
        return bound
    return None

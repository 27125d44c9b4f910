"""Where a search begins: at the values that Vars hold, or at those that a caller names for some of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ceopt.solvers.checks import is_number
from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError
from ceopt.solvers.problem import Vector
from ceopt.solvers.tolerances import START_MISS

_WHO = "start"


def start_of(start: bool | Mapping[Any, float] | None, model: Any, compiled: CompiledModel) -> dict[int, float] | None:
    """Return a start as column -> value; None where there is none.

    Parameters
    ----------
    start
        None or False for none, True for the values that the Vars hold now, or a mapping from Vars of the model, each a
        scalar or a member of an indexed one, to values. Vars that it does not name take what they hold now, unless a
        row all of whose Vars have a value is then broken.
    model, compiled
        The program.

    Raises
    ------
    InvalidTypeError
        It is something else, or a key of it is no Var.
    InvalidValueError
        It names no Var of the model, a value is none of the Var's, or a row whose Vars it all names is broken.
    """
    if start is None or start is False:
        return None
    if start is True:
        return held_values(compiled)
    if not isinstance(start, Mapping):
        then = "Pass pyo.ComponentMap([(m.x, 1)]); or True to begin from what the Vars hold."
        raise InvalidTypeError(_WHO, "a mapping from Vars to values", f"it is {start!r}", then)
    named = _named(start, model, compiled)
    broken = broken_row(compiled, named)
    if broken is not None:
        raise InvalidValueError(_WHO, "values that keep the rows", f"they break {broken}", "Correct or leave out some.")
    completed = {**held_values(compiled), **named}
    if broken_row(compiled, completed) is None and not _out_of_bounds(compiled, completed):
        return completed
    return named


def held_values(compiled: CompiledModel) -> dict[int, float]:
    """Return the values that the Vars hold now, as column -> value; the binaries of sets follow from these."""
    start = {}
    of_sets = set(compiled.set_binaries.tolist())
    for column, var in enumerate(compiled.columns):
        if column in of_sets:
            continue
        if var.value is not None and math.isfinite(var.value):
            start[column] = float(var.value)
    return start


def _named(start: Mapping[Any, float], model: Any, compiled: CompiledModel) -> dict[int, float]:
    """Return the named values by column; Vars that occur nowhere need none."""
    if not start:
        raise InvalidValueError(_WHO, "a Var of the model", "it names none", "Leave start out, or name Vars.")
    named = {}
    root = model.model()
    for var, value in start.items():
        if not hasattr(var, "is_variable_type") or not var.is_variable_type():
            then = "Name scalar Vars, or members of an indexed one, as m.x[1]."
            raise InvalidTypeError(_WHO, "Vars as its keys", f"one is {_shown(var)}", then)
        column = compiled.index.get(var)
        if column is None and var.model() is not root:
            then = "Name Vars of the model that is solved."
            raise InvalidValueError(_WHO, "Vars of the model", f"{var.name!r} is none of it", then)
        if not is_number(value) or not math.isfinite(value):
            raise InvalidValueError(_WHO, "finite numbers", f"{var.name!r} gets {value!r}", "Leave it out.")
        number = float(value)
        if column is None:
            _check_constant(var, number)
        else:
            _check_column(var, number, compiled, column)
            named[column] = number
    return named


def _check_constant(var: Any, number: float) -> None:
    """Refuse another value of a fixed Var, which is a constant of the program."""
    if var.fixed and var.value is not None and abs(var.value - number) > START_MISS * max(1.0, abs(number)):
        then = "Unfix it, or leave it out."
        raise InvalidValueError(_WHO, "values of fixed Vars", f"{var.name!r} gets {number:g}, not {var.value:g}", then)


def _check_column(var: Any, number: float, compiled: CompiledModel, column: int) -> None:
    slack = START_MISS * max(1.0, abs(number))
    low = compiled.lb[column]
    high = compiled.ub[column]
    if not low - slack <= number <= high + slack:
        but = f"{var.name!r} gets {number:g} and has bounds [{low:g}, {high:g}]"
        raise InvalidValueError(_WHO, "values within the bounds", but, "Give it another value, or leave it out.")
    if compiled.integer[column] and abs(number - round(number)) > slack:
        but = f"{var.name!r} gets {number:g}"
        raise InvalidValueError(_WHO, "whole numbers for integers", but, "Round it, or leave it out.")


def _out_of_bounds(compiled: CompiledModel, start: Mapping[int, float]) -> bool:
    at = np.array(list(start), dtype=np.intp)
    values = np.array(list(start.values()), dtype=np.float64)
    slack = START_MISS * np.maximum(1.0, np.abs(values))
    return bool(((values < compiled.lb[at] - slack) | (values > compiled.ub[at] + slack)).any())


def broken_row(compiled: CompiledModel, start: Mapping[int, float]) -> str | None:
    """Return the first row, cone or set that values break, all of whose columns have one; None if there is none."""
    x = np.where(compiled.lb == compiled.ub, compiled.lb, np.nan)
    x[list(start)] = list(start.values())
    is_open = np.isnan(x)
    at = np.where(is_open, 0.0, x)
    closed = abs(compiled.A) @ is_open.astype(np.float64) == 0.0
    activity = compiled.A @ at
    size = np.maximum(abs(compiled.A) @ np.abs(at), 1.0)
    miss = np.maximum(compiled.row_lb - activity, activity - compiled.row_ub)
    for row in np.flatnonzero(closed & (miss > START_MISS * size)).tolist():
        return _words(compiled.rows[row], float(miss[row]))
    for curved in compiled.quadratics:
        used = np.concatenate([curved.a.indices, curved.Q.indices, curved.Q.tocsr().indices])
        if not is_open[used].any() and curved.violation(at) > START_MISS * _size(curved, at):
            return _words(curved.constraint, curved.violation(at))
    for cone in compiled.cones:
        scale = float(np.abs(cone.entries(at)).max(initial=1.0))
        if not is_open[cone.matrix.indices].any() and cone.violation(at) > START_MISS * scale:
            return _words(cone.constraint, cone.violation(at))
    for one in compiled.sets:
        if not is_open[one.members[one.members >= 0]].any() and one.violation(at) > START_MISS:
            return _words(one.constraint, one.violation(at))
    return None


def _size(row: Any, x: Vector) -> float:
    """Return the sum of the absolute terms of a quadratic row, at least 1."""
    linear = float((abs(row.a) @ np.abs(x))[0])
    return max(1.0, linear + float(np.abs(x) @ (abs(row.Q) @ np.abs(x))))


def _words(constraint: Any, miss: float) -> str:
    return f"constraint {getattr(constraint, 'name', constraint)!r} by {miss:.3g}"


def _shown(key: Any) -> str:
    if getattr(key, "is_indexed", bool)():
        return f"{key.name!r}, which is indexed"
    return repr(key)

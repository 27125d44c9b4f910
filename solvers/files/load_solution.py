"""A solution that was found elsewhere, by the names of a written file, as values of the model's Vars."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ceopt.solvers.checks import in_double
from ceopt.solvers.compile.compiled_model import CompiledModel, compile_model
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.files.write_model import CONSTANT, column_names
from ceopt.solvers.tolerances import LOADED_WHOLE

__all__ = ["load"]


def load(model: Any, values: Mapping[str, float]) -> None:
    """Set a model's Vars to a solution that some program found for a file of :func:`write`.

    Parameters
    ----------
    model
        The ConcreteModel, as it was when the file was written.
    values
        Name of a column, as it stands in the file -> number. All columns of the file, in any order. Those that only
        the file has are passed over: ``ONE_VAR_CONSTANT``, which carries the objective's constant, and the columns for
        the entries of cones and for a quadratic cost; so are those that a solver adds for one (SCIP's ``quadobjvar``
        and ``qmatrixvar``).

    Notes
    -----
    Integers are rounded to the whole number that a solver's tolerance stands for. Fixed Vars keep their values: a file
    holds them as constants. Vars that occur in no row and no cost are in no file; they get the value nearest 0, as from
    :func:`solve`. Nothing is checked against the rows: evaluate them, or let ``decode`` and ``verify`` do it. Nothing
    is set if anything is refused.

    Raises
    ------
    InvalidTypeError
        ``values`` is no mapping, a name is no text, or a value is no number.
    UnknownNameError
        No column of the file has that name.
    InvalidValueError
        A column of the file is missing; or a value is not finite, or that of an integer is not whole.
    UnsupportedProblemError
        The model cannot be written.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.solvers import load
    >>> model = pyo.ConcreteModel()
    >>> model.take = pyo.Var(["a b", True], domain=pyo.Binary)
    >>> model.one = pyo.Constraint(expr=sum(model.take.values()) == 1)
    >>> load(model, {"take(a_b)": 0.0, "take(True)": 0.9999999})
    >>> [var.value for var in model.take.values()]
    [0, 1]
    """
    if not isinstance(values, Mapping):
        but = f"values is {type(values).__name__}"
        raise InvalidTypeError("load", "a mapping from names to values", but, "Give a dict: name in the file -> value.")
    compiled = compile_model(model)
    names = _names(model, compiled, values)
    x = np.where(compiled.lb == compiled.ub, compiled.lb, math.nan)
    for name, value in values.items():
        number = _number(name, value)
        if (column := names[name]) is not None:
            x[column] = _whole(name, number) if compiled.integer[column] else number
    missing = np.flatnonzero(np.isnan(x))
    if missing.size:
        labels = {column: label for label, column in names.items()}
        some = ", ".join(repr(labels[column]) for column in missing[:3].tolist())
        but = f"{some}{', ...' if missing.size > 3 else ''} {'is' if missing.size == 1 else 'are'} missing"
        raise InvalidValueError("load", "a value for each column of the file", but, "Give all columns.")
    compiled.load(x)


def _names(model: Any, compiled: CompiledModel, values: Mapping[str, float]) -> dict[str, int | None]:
    """Return column by name in the file, None for what only the file has; of the first kind of file that fits."""
    known: dict[str, int | None] = {}
    refused: CeoptError | None = None
    for suffix in (".lp", ".cbf"):
        try:
            found = column_names(model, compiled, suffix)
        except CeoptError as error:  # a file of this kind cannot hold the model
            refused = refused or error
            continue
        if all(name in found for name in values):
            return found
        known = known or found
    if not known and refused is not None:
        raise refused
    strange = next(name for name in values if name not in known)
    if not isinstance(strange, str):
        raise InvalidTypeError("load", "names as text", f"one is {strange!r}", "Give them as they stand in the file.")
    listed = [name for name, column in known.items() if column is not None]
    raise UnknownNameError.among("load", "column of the file", strange, listed or [CONSTANT])


def _number(name: str, value: Any) -> float:
    """Return a finite value in double precision."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number:
        raise InvalidTypeError("load", "numbers", f"{name!r} is {value!r}", "Give the solver's own value.")
    if not math.isfinite(number := in_double(value)):
        raise InvalidValueError("load", "finite values", f"{name!r} is {value}", "Load a solution, if there is one.")
    return number


def _whole(name: str, value: float) -> float:
    if abs(value - round(value)) > LOADED_WHOLE * max(1.0, abs(value) * LOADED_WHOLE):
        then = "Load the solution of the program with its integers."
        raise InvalidValueError("load", "whole numbers for integers", f"{name!r} is {value!r}", then)
    return float(round(value))

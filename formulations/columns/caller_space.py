"""The space of a model over the caller's own variables, told by the model's names and the variables' domains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr.visitor import identify_variables
from pyomo.repn import generate_standard_repn

from ceopt.formulations.predictors.read import open_model
from ceopt.formulations.predictors.read.model_input import names_of
from ceopt.formulations.predictors.representation.decision_rule import AbstractRepresentation
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

__all__ = ["space_of"]

_WHO: Final = "embed without a space"
_THEN: Final = "Pass space=FeatureSpace.infer(X_train), or one that you describe."


def space_of(model: Any, x: Mapping[str, Any]) -> FeatureSpace:
    """Return a space in the order of the model's own columns, whose kinds are those of what is given for them.

    A Binary Var (0 or 1) is a binary column, an integer one, or a sum of products of such, an integer column, anything
    else of Reals a continuous one; a mapping from levels, or a Var indexed by them, is a categorical column of these
    levels. Bounds are left to the variables.

    Raises
    ------
    InvalidTypeError
        The model does not say how its columns are called; a domain or a value that is none of these kinds.
    UnknownNameError, InvalidValueError
        A column that the model does not have, or one that is not given.
    """
    opened = open_model(model)
    names = None if isinstance(opened, AbstractRepresentation) else names_of(opened, _WrittenNames(x))  # type: ignore[arg-type]
    if names is None:
        count = getattr(opened, "n_features_in_", getattr(opened, "n_inputs", None))
        text = "columns without names" if count is None else f"{count} columns without names"
        raise InvalidTypeError(
            _WHO, "the names of the model's columns", f"this {type(opened).__name__} has {text}",
            "Fit it on a frame, or pass space=, with the columns in its order.",
        )  # fmt: skip
    for name in x:
        if name not in names:
            raise UnknownNameError.among(_WHO, "column of the model", name, names)
    for name in names:
        if name not in x:
            raise InvalidValueError(_WHO, "every column of the model", f"column {name!r} is missing", "Give its Var.")
    return FeatureSpace([_feature(name, x[name]) for name in names])


def _feature(name: str, given: Any) -> Feature:
    if isinstance(given, Mapping) or (hasattr(given, "is_indexed") and given.is_indexed()):
        return Feature(name, kind="categorical", levels=tuple(given.keys()))
    if not hasattr(given, "is_expression_type"):
        return _of_value(name, given)
    if hasattr(given, "is_variable_type") and given.is_variable_type():
        if given.is_binary():
            return Feature(name, kind="binary", levels=(0, 1))
        if not (given.is_integer() or given.is_continuous()):
            raise InvalidTypeError(
                _WHO, "domains that are Binary, Integers or Reals, or parts of these",
                f"the Var {given.name!r} of column {name!r} has domain {given.domain}", _THEN,
            )  # fmt: skip
    return Feature(name, kind="integer" if _is_whole(given) else "continuous")


def _of_value(name: str, value: Any) -> Feature:
    """Return the kind of a plain value: a number, or a truth value."""
    if isinstance(value, bool | np.bool_):
        return Feature(name, kind="binary", levels=(False, True))
    if isinstance(value, int | float | np.number):
        return Feature(name, kind="continuous")
    raise InvalidTypeError(_WHO, "numbers, Vars or expressions", f"column {name!r} is given {value!r}", _THEN)


def _is_whole(expression: Any) -> bool:
    """Whether an expression takes whole values only: sums of products of whole variables, a whole number of times."""
    if not expression.is_potentially_variable():
        return False
    if not all(var.is_integer() for var in identify_variables(expression, include_fixed=True)):
        return False
    repn = generate_standard_repn(expression, compute_values=True)
    numbers = [repn.constant, *repn.linear_coefs, *repn.quadratic_coefs]
    return repn.nonlinear_expr is None and all(float(pyo.value(number)).is_integer() for number in numbers)


class _WrittenNames:
    """The names that are given, for a model that writes them otherwise (LightGBM: blanks as underscores)."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.names = tuple(given)

    def __contains__(self, name: object) -> bool:
        return name in self.names

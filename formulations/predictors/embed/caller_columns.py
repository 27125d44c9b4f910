"""A row of the caller's own variables: columns tied to Vars and expressions that stand elsewhere in the model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, final

import numpy as np
import pyomo.environ as pyo
from pyomo.contrib.fbbt.fbbt import compute_bounds_on_expr
from pyomo.core.expr.visitor import identify_variables
from pyomo.repn import generate_standard_repn

from ceopt.formulations.columns import AbstractCoordinate
from ceopt.formulations.columns.columns_block import AbstractColumns
from ceopt.formulations.columns.numeric import unit_of
from ceopt.formulations.digits import digits
from ceopt.formulations.predictors.readers import open_model
from ceopt.formulations.predictors.readers.model_input import names_of
from ceopt.formulations.predictors.representation import AbstractRepresentation
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.reachable import Interval, Levels
from ceopt.formulations.space.space import FeatureSpace
from ceopt.formulations.tolerances import SPLIT_GAP
from ceopt.solvers.checks import OrNone, Real, Refusal
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.manifest import Manifest, describe

# ==== A row of the caller's own variables: columns tied to Vars and expressions that stand elsewhere in the model =====

_MANIFEST = Manifest(
    title="columns of the caller's own variables",
    formula="x_j = the caller's expression; u_c = the caller's expression of level c",
)

_NO_GAP = Refusal("a split_gap of at least 0", "Give None or a number in raw units.")
_SPLIT_GAP = OrNone(Real(at_least=0.0, finite=True, otherwise=_NO_GAP))

#: What is given for a column: an expression, an expression per rank of a level, or the coordinate itself.
_Given: TypeAlias = Any


@final
class Columns(AbstractColumns):
    r"""One row whose columns are Vars and expressions of the caller's own model, as :func:`embed` reads them.

    .. math:: x_j = e_j \ \text{(numbers, ranks, 0/1)}, \qquad u_{jc} = e_{jc} \ \text{(levels)}.

    ======== ====================== =============================================================
    symbol   component              meaning
    ======== ====================== =============================================================
    x        ``x``, ``at_least``    coordinate of the column (:mod:`ceopt.formulations.columns`)
    u        ``level[name, c]``     1 iff the column takes level c
    e                               the caller's Var or expression
    ======== ====================== =============================================================

    Parameters
    ----------
    space
        What the columns are. Its kinds and levels count, and bounds set by the user; bounds inferred from data do not,
        nor does what is about a change (direction, immutability, step, weight).
    values
        For each column of the space a plain value as in a row (a number, a level; of a Param its value now), or a Var
        or expression of the raw number, of an ordinal column's rank, of a binary one's 0 or 1; for a categorical column
        also a mapping from levels to binary Vars or expressions, where levels that are left out are not taken.
    split_gap
        Least distance in raw units between the two sides of a split on a continuous column; values strictly inside are
        excluded, but the column's own bounds and plain values never are. None: 1e-5 of the column's range, and at
        least 1e-5 for ranges from 0.05 to 1. With 0 a solver's value may lie on a side that the library does not take.

    Attributes
    ----------
    given
        What was given, by column.

    Notes
    -----
    Adds the level binaries of every column, and per column that some model reads a coordinate and the row that ties it
    (one row per level of a categorical column). Exact but for the gap: on either side
    the library decides as the row says, also where the value is off by a solver's tolerance. Bounds of Vars are read
    when the block is made, those of a fixed Var like any other's, as it may be freed; what never changes is better
    given as a plain value. Variables behind an integer, ordinal or binary column become whole.

    Raises
    ------
    InvalidValueError
        A column is missing, unknown, outside its bounds, or not a value of its column; a Var is not on a ConcreteModel.
    InvalidTypeError
        What is given for a column is no value, Var or expression, or not one for this kind of column.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Columns, embed
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("income", kind="continuous"), Feature("loan", kind="continuous")])
    >>> m = pyo.ConcreteModel()
    >>> m.loan = pyo.Var(bounds=(0, 9))
    >>> m.ann = Columns(space, {"income": 4.0, "loan": m.loan})
    >>> m.risk = embed(Affine([-1.0, 2.0], 0.5), m.ann)
    >>> print(m.risk.score.expr, "|", m.ann.own["loan"].expr)
    -3.5 + 2.0*ann.x[loan] | ann.x[loan] - loan  ==  0
    """

    def __init__(self, space: FeatureSpace, values: Mapping[str, Any], *, split_gap: float | None = None) -> None:
        if not isinstance(space, FeatureSpace):
            raise InvalidTypeError(
                "Columns", "a FeatureSpace", f"space is {type(space).__name__}", "Describe the model's columns."
            )
        if not isinstance(values, Mapping):
            raise InvalidTypeError(
                "Columns", "a mapping from columns to variables", f"it got {type(values).__name__}",
                "Write {column: Var, expression or value}.",
            )  # fmt: skip
        require_on_model("Columns", values)
        space.check_names("Columns", values)
        gap = _SPLIT_GAP.require("Columns", "split_gap", split_gap)
        given = {feature.name: _read(feature, values[feature.name]) for feature in space}
        reach = {feature.name: _reach(feature, given[feature.name], gap) for feature in space}
        super().__init__(space, reach)
        self.given: dict[str, _Given] = given
        self.own = pyo.Constraint(pyo.Any)
        self._tied: set[str] = set()
        self.declare({name: _member(part) for name, part in self.reach.items()})
        describe(self, replace(_MANIFEST, columns=space.names))

    def coordinate(self, name: str) -> AbstractCoordinate:
        """Return the coordinate of a column, tied to what was given for it."""
        coordinate = super().coordinate(name)
        if name not in self._tied:
            self._tied.add(name)
            self._tie(coordinate)
        return coordinate

    def bounds_advice(self, name: str) -> str:
        """Return which of the caller's Vars to give bounds."""
        given = self.given[name]
        loose = [repr(var.name) for var in identify_variables(given) if None in var.bounds]
        if not loose:
            return f"Give a Var with bounds in the place of {given}, and a row that makes both equal."
        if len(loose) == 1:
            return f"Give the Var {loose[0]} bounds: pyo.Var(bounds=(..., ...))."
        return f"Give the Vars {', '.join(loose)} bounds: pyo.Var(bounds=(..., ...))."

    def _tie(self, coordinate: AbstractCoordinate) -> None:
        name = coordinate.name
        given = self.given[name]
        if isinstance(given, float):
            return
        if isinstance(given, dict):
            for rank, expression in given.items():
                level = coordinate.indicator({rank}).expression()
                self.own[name, coordinate.feature.levels[rank]] = level - expression == 0
        else:
            self.own[name] = (coordinate.raw().expression() - given) / coordinate.unit == 0

    def decoded(self) -> dict[str, float]:
        """Return the coordinates at the current values of the caller's variables; whole ones are rounded.

        Raises
        ------
        InvalidValueError
            A column that a model reads has no value yet.
        """
        return {feature.name: self._current(feature) for feature in self.space}

    def _current(self, feature: Feature) -> float:
        given = self.given[feature.name]
        if isinstance(given, float):
            return given
        parts = given if isinstance(given, dict) else {0: given}
        values: dict[int, float] = {}
        for rank, part in parts.items():
            value = pyo.value(part, exception=False)
            if value is not None:
                values[rank] = value
            elif feature.name not in self._tied:  # no model reads it
                return self.coordinates[feature.name].x0
            else:
                raise InvalidValueError(
                    "Columns", "values of its variables", f"column {feature.name!r} has none", "Solve the model first."
                )
        if isinstance(given, dict):
            return float(max(values, key=values.__getitem__))
        if feature.kind == "continuous":
            return float(values[0])
        return float(round(values[0]))


def require_on_model(who: str, values: Mapping[str, Any]) -> None:
    """Refuse a Var that nothing has made yet, as it is on no model or on an AbstractModel: it has no domain or bounds.

    Raises
    ------
    InvalidValueError
        There is one.
    """
    for name, given in values.items():
        parts = given.values() if isinstance(given, Mapping) else [given]
        for part in parts:
            if not all(component.is_constructed() for component in _components(part)):
                raise InvalidValueError(
                    who, "Vars that are on a ConcreteModel", f"that of column {name!r} is not",
                    "Assign it to the model first: m.x = pyo.Var(...), then pass m.x.",
                )  # fmt: skip


def _components(given: Any) -> list[Any]:
    """Return what is given if it is a component itself, else the Vars in it."""
    if hasattr(given, "is_constructed"):
        return [given]
    if not _is_pyomo(given):
        return []
    return [var.parent_component() for var in identify_variables(given)]


def _read(feature: Feature, value: Any) -> _Given:
    """Return what is given for a column: an expression, expressions by rank, or a coordinate as a float."""
    if feature.kind == "categorical" and (isinstance(value, Mapping) or _is_indexed(value)):
        return _read_levels(feature, value)
    if not _is_expression(feature, value):
        plain = pyo.value(value) if _is_pyomo(value) else value
        return _within(feature, feature.to_coordinate(plain))
    if feature.kind == "categorical":
        raise InvalidTypeError(
            feature.who, "a level, or a mapping from levels to binary Vars", f"it is given {value}",
            f"Write {{{feature.levels[0]!r}: Var, ...}}.",
        )  # fmt: skip
    return value


def _read_levels(feature: Feature, given: Any) -> dict[int, Any]:
    """Return the expressions by rank, ascending, of levels that may be taken."""
    parts: dict[int, Any] = {}
    for level, part in given.items():
        parts[feature.rank(level)] = _part(feature, part)
    kept = {rank: parts[rank] for rank in sorted(parts) if parts[rank] is not None}
    if not kept:
        raise InvalidValueError(feature.who, "a level to take", "it is given none", "Map levels to binary Vars.")
    return kept


def _part(feature: Feature, part: Any) -> Any:
    """Return the expression of one level; None where it is the number 0."""
    if _is_expression(feature, part):
        return part
    if not _is_pyomo(part) and part == 0:
        return None
    raise InvalidTypeError(
        feature.who,
        "a binary Var or expression per level",
        f"one is {part!r}",
        "Give the level itself, without a mapping.",
    )


def _is_pyomo(value: Any) -> bool:
    return hasattr(value, "is_expression_type") or _is_indexed(value)


def _is_indexed(value: Any) -> bool:
    return bool(getattr(value, "is_indexed", bool)())


def _is_expression(feature: Feature, value: Any) -> bool:
    """Return whether a value has variables in it, or refuse what has them but is no number."""
    if not _is_pyomo(value):
        return False
    if _is_indexed(value) or not value.is_numeric_type():
        raise InvalidTypeError(
            feature.who, "one Var or numeric expression", f"it is given {value}", "Give one component, such as m.x[i]."
        )
    return bool(value.is_potentially_variable())


def _within(feature: Feature, coordinate: float) -> float:
    low, high = feature.widest
    if not low <= coordinate <= high and not feature.is_code(coordinate):
        raise _outside(feature, low, high, digits(coordinate))
    return coordinate


def _outside(feature: Feature, low: float, high: float, but: str) -> InvalidValueError:
    return InvalidValueError(
        feature.who,
        f"values from {digits(low)} to {digits(high)}",
        f"it is given {but}",
        "Correct it, or change the space.",
    )


def _reach(feature: Feature, given: _Given, gap: float | None) -> Interval | Levels:
    """Return the values that a column can take, by the bounds of what is given and of the space."""
    if isinstance(given, dict):
        return Levels(tuple(given))
    low, high = _bounds_of(given)
    if feature.is_finite:
        ranks = tuple(rank for rank in range(len(feature.levels)) if low <= rank <= high)
        if not ranks:
            raise _outside(feature, 0, len(feature.levels) - 1, f"values from {digits(low)} to {digits(high)}")
        return Levels(ranks)
    least, greatest = feature.widest
    step = 1.0 if feature.kind == "integer" else None
    bounds = Interval(max(low, least), min(high, greatest), step)
    lower, upper = bounds.ceil(bounds.lower), bounds.floor(bounds.upper)
    if not lower <= upper:
        raise _outside(feature, least, greatest, f"values from {digits(low)} to {digits(high)}")
    interval = Interval(lower, upper, step)
    if feature.kind == "integer":
        return interval
    if gap is None:
        gap = _gap(interval, feature)
    return replace(interval, gap=gap)


def _bounds_of(given: Any) -> tuple[float, float]:
    """Return the bounds of a number or an expression, infinite where it has none."""
    if isinstance(given, float):
        return given, given
    low, high = compute_bounds_on_expr(given, ignore_fixed=True)
    return -math.inf if low is None else float(low), math.inf if high is None else float(high)


def _gap(part: Interval, feature: Feature) -> float:
    """Return a least distance of the two sides of a split that a solver's tolerances cannot bridge."""
    width = part.upper - part.lower
    if not math.isfinite(width):
        return 0.0
    return SPLIT_GAP * max(width, unit_of(part, feature))


def _member(part: Interval | Levels) -> float:
    """Return a value in reach: the first level, or the number in the middle of its bounds."""
    if isinstance(part, Levels):
        return float(part.ranks[0])
    if math.isfinite(part.lower) and math.isfinite(part.upper):
        return part.clip(part.lower + (part.upper - part.lower) / 2.0)
    return part.clip(0.0)


# ==== The space of a model over the caller's own variables, told by the model's names and the variables' domains ======

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
    names: Sequence[str] | None
    if isinstance(opened, AbstractRepresentation):
        names = opened.columns
    else:
        names = names_of(opened, _WrittenNames(x))  # type: ignore[arg-type]
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

"""What published programs share: sums and matrices of Vars, columns by their places, regions, and distances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations_with_replacement
from typing import Any, Final, Literal, cast, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike, NDArray
from pyomo.core.expr.numeric_expr import LinearExpression

from ceopt.formulations.digits import digits
from ceopt.formulations.linear_form import finite_or_none
from ceopt.solvers.checks import Floats, Matrix
from ceopt.solvers.cones import psd, soc
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.manifest import Manifest, describe

# ==== What every program is written with: sums of variables, and symmetric matrices of them ===========================


def sum_of(variables: Any, coefficients: Any = None, constant: float = 0.0) -> Any:
    """Return a sum of Vars as one expression, which Pyomo walks several times faster than a chain of ``+``."""
    checkpoint("stating the program")
    variables = list(variables)
    if coefficients is None:
        coefficients = [1.0] * len(variables)
    return LinearExpression(constant=constant, linear_coefs=list(map(float, coefficients)), linear_vars=variables)


def symmetric(k: int) -> Any:
    """Return a Var for the upper triangle of a symmetric matrix of side k; see :func:`mirrored`."""
    return pyo.Var(list(combinations_with_replacement(range(k), 2)))


def mirrored(k: int, entry: Callable[[int, int], Any]) -> list[list[Any]]:
    """Return the symmetric matrix of side k with these entries at (a, b), a <= b."""
    upper = {}
    for a in range(k):
        checkpoint("stating the program")
        for b in range(a, k):
            upper[(a, b)] = entry(a, b)
    return [[upper[min(a, b), max(a, b)] for b in range(k)] for a in range(k)]


def bordered(
    inside: Callable[[int, int], Any],
    k: int,
    edge: Callable[[int, int], Any],
    n: int,
    corner: Callable[[int, int], Any],
) -> Any:
    r"""Return the margin of :math:`\begin{pmatrix} A & B \\ B^\top & C \end{pmatrix}`, of sides k and n, by entries."""

    def entry(a: int, b: int) -> Any:
        if b < k:
            return inside(a, b)
        if a < k:
            return edge(a, b - k)
        return corner(a - k, b - k)

    return psd(mirrored(k + n, entry))


def described(model: pyo.ConcreteModel, title: str, formula: str, reference: str) -> pyo.ConcreteModel:
    """Return a program with its title, formula and source in the manifest."""
    describe(model, Manifest(title=title, formula=formula, reference=reference))
    return model


# ==== Columns by their places, and what bounds them ===================================================================


def require_list(who: str, name: str, values: Any, of: str = "columns") -> list[Any]:
    """Return a list of what can be gone over again, or refuse anything else: an iterator would be empty then."""
    is_scalar = isinstance(values, np.ndarray) and not values.ndim
    if isinstance(values, str | bytes | Iterator) or not isinstance(values, Iterable) or is_scalar:
        raise InvalidTypeError(who, f"a list of {of} as {name}", f"{name} is {values!r}", "Give such a list.")
    return list(values)


def require_columns(who: str, name: str, places: Any, d: int) -> list[int]:
    """Return which of d columns are meant: by their places, negative ones from the end, or by a mask of d bools."""
    found = require_list(who, name, places)
    if len(found) == d and all(isinstance(k, bool | np.bool_) for k in found):
        return np.flatnonzero(found).tolist()
    for k in found:
        if isinstance(k, bool | np.bool_) or not isinstance(k, int | np.integer) or not -d <= k < d:
            then = "Count from 0, or from the end with -1; a name is found by list(names).index(name)."
            raise InvalidValueError(who, f"columns from 0 to {d - 1} in {name}", f"{name} has {k!r}", then)
    return [int(k) % d for k in found]


def free_columns(who: str, fixed: Iterable[int] | None, d: int) -> NDArray[np.bool_]:
    """Return which of d columns may move, all but those at the places ``fixed``, or refuse the places."""
    free = np.ones(d, dtype=bool)
    if fixed is not None:
        free[require_columns(who, "fixed", fixed, d)] = False
    return free


def require_bounds(who: str, bounds: Any, d: int) -> tuple[Floats, Floats]:
    """Return lower and upper bounds, shape (d,), by default infinite, or refuse them."""
    if bounds is None:
        return np.full(d, -np.inf), np.full(d, np.inf)
    then = "Give (lower, upper), each one number or one a column, infinite where there is none."
    bounds = tuple(require_list(who, "bounds", bounds, of="lower and upper"))
    try:
        low, high = (np.array(np.broadcast_to(np.asarray(side, dtype=np.float64), (d,))) for side in bounds)
    except (TypeError, ValueError, OverflowError) as error:
        but = f"bounds has {list(map(np.size, bounds))} numbers"
        raise InvalidValueError(who, f"a pair of bounds for {d} columns", but, then) from error
    wrong = np.flatnonzero(~(low <= high) | (low == np.inf) | (high == -np.inf))
    if wrong.size:
        k = wrong[0]
        but = f"column {k} has bounds {digits(low[k])} and {digits(high[k])}"
        raise InvalidValueError(who, "bounds with a number from lower to upper", but, then)
    return low, high


# ==== The region of counterfactuals ===================================================================================

Cost = Literal["l1", "l2", "linf"]
#: By the name of a norm, its order as numpy has it.
ORDERS: Final = {"l1": 1, "l2": 2, "linf": np.inf}


@final
@dataclass(frozen=True, slots=True, eq=False)
class PointRegion:
    """A box, of whose columns some are held and some stand for the categories of one column each.

    Parameters
    ----------
    lower, upper
        Shape (d,); equal where a column is held. Columns of categories have 0 and 1.
    groups
        Of each one-hot group the columns that may still be 1, two or more.
    flags
        Columns that are 0 or 1 by themselves.
    empty
        Why there is no such point, one sentence; empty text where there are some.
    """

    lower: Floats
    upper: Floats
    groups: tuple[tuple[int, ...], ...] = ()
    flags: tuple[int, ...] = ()
    empty: str = ""

    @property
    def binary(self) -> list[int]:
        """Columns that are 0 or 1, of groups and by themselves."""
        return [*chain.from_iterable(self.groups), *self.flags]

    def reach(self, normal: Floats) -> float:
        """Return the greatest ``normal @ x`` of the region, which may be infinite."""
        grouped = np.isin(np.arange(len(self.lower)), list(chain.from_iterable(self.groups)))
        at = np.where(normal > 0, self.upper, self.lower)
        alone = sum(float(normal[k] * at[k]) for k in np.flatnonzero(~grouped & (normal != 0)))
        return alone + sum(float(normal[list(group)].max()) for group in self.groups)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Distance:
    """A norm of the difference of two points: "l1", "l2", "linf", or "l2" of ``factor' (x - y)``."""

    kind: Cost
    factor: Floats | None = None

    def of(self, difference: Floats) -> Floats:
        """Return the distance for each difference, over the last axis."""
        moved = difference
        if self.factor is not None:
            moved = difference @ self.factor
        return np.asarray(np.linalg.norm(moved, ord=ORDERS[self.kind], axis=-1))

    def slope(self, difference: Floats, size: Floats) -> Floats:
        """Return a subgradient in the difference, for its distance ``size``; 0 at no difference."""
        if self.kind == "l1":
            return np.sign(difference)
        if self.kind == "linf":
            return np.where(np.abs(difference) >= size[..., None], np.sign(difference), 0.0)
        moved = difference
        if self.factor is not None:
            moved = (difference @ self.factor) @ self.factor.T
        return np.asarray(moved / np.where(size > 0.0, size, np.inf)[..., None])


def require_distance(who: str, cost: Any, d: int) -> Distance:
    """Return the distance that ``cost`` names, or a matrix M stands for; refuse any other in the name of ``who``."""
    if isinstance(cost, str):
        if cost not in ORDERS:
            raise UnknownNameError.among(who, "cost", cost, tuple(ORDERS))
        return Distance(cast("Cost", cost))
    matrix = Matrix((d, d)).require(who, "cost", cost)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=0.0) or values[0] <= 0.0:
        but = "cost differs from its transpose"
        if values[0] <= 0.0:
            but = f"its least eigenvalue is {values[0]:.6g}"
        raise InvalidValueError(who, "a symmetric positive definite matrix as cost", but, "Give such a matrix.")
    return Distance("l2", np.asarray(vectors * np.sqrt(values)))


def _require_groups(who: str, groups: Sequence[Sequence[int]] | None, factual: Floats) -> list[list[int]]:
    """Return the columns of each one-hot group, without a column in common, or refuse them."""
    lists = [] if groups is None else require_list(who, "groups", groups, of="lists of columns")
    columns = [require_columns(who, f"groups[{g}]", group, len(factual)) for g, group in enumerate(lists)]
    seen = list(chain.from_iterable(columns))
    twice = next((k for k in seen if seen.count(k) > 1), None)
    if twice is not None:
        but = f"column {twice} is in groups twice"
        raise InvalidValueError(who, "groups without a column in common", but, "Give each column to one group.")
    for g, group in enumerate(columns):
        if not group:
            but = f"groups[{g}] is {group}"
            then = "Leave it out, or name its columns."
            raise InvalidValueError(who, "a column or more in each group", but, then)
        for k in group:
            if factual[k] not in {0.0, 1.0}:
                then = "Leave such columns as they are where others are scaled."
                raise InvalidValueError(who, f"0 or 1 in groups[{g}]", f"factual[{k}] is {digits(factual[k])}", then)
        if factual[group].sum() > 1.0:
            but = f"factual has 1 in several columns of {group}"
            raise InvalidValueError(
                who, f"one category in groups[{g}]", but, "Give a group the columns of one category."
            )
    return columns


def require_region(
    who: str,
    factual: Floats,
    *,
    fixed: Sequence[int] | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    groups: Sequence[Sequence[int]] | None = None,
) -> PointRegion:
    """Return where the counterfactuals of ``factual`` may lie, or refuse what says so in the name of ``who``.

    A contradiction is no misuse: the region is empty then, and says why.
    """
    d = len(factual)
    lower, upper = require_bounds(who, bounds, d)
    held = ~free_columns(who, fixed, d)
    columns = _require_groups(who, groups, factual)
    lower = np.where(held, np.maximum(lower, factual), lower)
    upper = np.where(held, np.minimum(upper, factual), upper)
    empty = ""
    left = []
    flags = []
    for g, group in enumerate(columns):
        if len(group) == 1:
            k = group[0]
            values = [value for value in (0.0, 1.0) if lower[k] <= value <= upper[k]]
            if not values and not empty:
                empty = f"column {k} may be neither 0 nor 1 within its bounds."
            lower[k] = min(values, default=0.0)
            upper[k] = max(values, default=0.0)
            if len(values) == 2:
                flags.append(k)
            continue
        may = _possible_categories(group, lower, upper)
        if not may and not empty:
            empty = f"no category of groups[{g}] is within its bounds."
        lower[group] = 0.0
        upper[group] = np.isin(group, may).astype(float)
        if len(may) == 1:
            lower[may] = 1.0
        elif may:
            left.append(tuple(may))
    crossed = np.flatnonzero(lower > upper)
    if crossed.size:
        k = int(crossed[0])
        empty = f"column {k} has no value: it is held at {digits(factual[k])}, outside its bounds."
    return PointRegion(lower, upper, tuple(left), tuple(flags), empty)


def _possible_categories(group: Sequence[int], lower: Floats, upper: Floats) -> list[int]:
    """Return the columns of a group that may be 1 while all others are 0."""
    possible = []
    for k in group:
        others = [other for other in group if other != k]
        if lower[k] <= 1.0 <= upper[k] and all(lower[other] <= 0.0 <= upper[other] for other in others):
            possible.append(k)
    return possible


def add_point(model: Any, factual: Floats, distance: Distance, region: PointRegion) -> None:
    """Add ``x`` with its bounds and one-hot rows, and ``t``, at least its distance from ``factual``."""
    d = range(len(factual))
    binary = set(region.binary)
    model.x = pyo.Var(
        d, domain=lambda _, k: pyo.Binary if k in binary else pyo.Reals, bounds=lambda _, k: limits_of(region, k)
    )
    model.one_hot = pyo.Constraint(
        range(len(region.groups)), rule=lambda m, g: sum_of([m.x[k] for k in region.groups[g]]) == 1.0
    )
    model.t = pyo.Var(domain=pyo.NonNegativeReals)
    if distance.kind == "l2":
        model.near = pyo.Constraint(expr=soc(model.t, affine_differences(model.x, factual, distance)) >= 0)
        return
    model.m = pyo.Var(d, domain=pyo.NonNegativeReals)
    model.up = pyo.Constraint(d, rule=lambda m, k: sum_of((m.x[k], m.m[k]), (1.0, -1.0)) <= float(factual[k]))
    model.down = pyo.Constraint(d, rule=lambda m, k: sum_of((m.x[k], m.m[k]), (-1.0, -1.0)) <= -float(factual[k]))
    if distance.kind == "l1":
        model.near = pyo.Constraint(expr=sum_of([*model.m.values(), model.t], [*[1.0] * len(d), -1.0]) <= 0.0)
    else:
        model.near = pyo.Constraint(d, rule=lambda m, k: sum_of((m.m[k], m.t), (1.0, -1.0)) <= 0.0)


def affine_differences(x: Any, factual: Floats, distance: Distance) -> list[Any]:
    """Return the entries of ``factor' (x - factual)``, whose Euclidean norm is the distance."""
    d = len(factual)
    variables = list(x)
    if hasattr(x, "values"):
        variables = list(x.values())
    if distance.factor is None:
        return [sum_of([variables[k]], [1.0], -float(factual[k])) for k in range(d)]
    return [sum_of(variables, column, -float(column @ factual)) for column in distance.factor.T]


def limits_of(region: PointRegion, k: int) -> tuple[float | None, float | None]:
    """Return the bounds of column k as Pyomo takes them: None for an infinite one."""
    return finite_or_none(float(region.lower[k])), finite_or_none(float(region.upper[k]))

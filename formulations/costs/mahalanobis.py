"""Distances that count correlated columns together, as a cone or as an l1 norm: moves along their grain are short."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import pandas as pd
import pyomo.environ as pyo

from ceopt.formulations.columns import Price
from ceopt.formulations.costs.base import AbstractCost, are_filled, paid, price_table, require_amounts
from ceopt.formulations.costs.norms import AbstractNorm, Kind
from ceopt.formulations.linear_form import LinearForm, Rows, total
from ceopt.formulations.space.space import FeatureSpace, complete_rows, on_codes, point_row
from ceopt.formulations.tolerances import COLLINEAR, GIVEN_SYMMETRIC, NEGATIVE_EIGENVALUE, UNSHORTENED_MOVE
from ceopt.solvers.checks import Flag, Floats, check_fields
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual

# ==== The matrix of a Mahalanobis distance: checked, matched to the numeric columns, estimated from data, factored ====


@final
@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    r"""The form :math:`\delta^\top A \delta` over the numeric columns.

    Parameters
    ----------
    names
        Numeric columns, in the space's order.
    matrix
        A, (k, k), symmetric and positive semidefinite.
    least
        (k,): :math:`\sqrt{\delta^\top A \delta} \ge \text{least}_j |\delta_j|` whatever the other moves are.
    """

    names: tuple[str, ...]
    matrix: Floats
    least: Floats

    def among(self, names: tuple[str, ...]) -> Floats:
        """Return the matrix of some of the columns, the others not moving."""
        place = list(map(self.names.index, names))
        return self.matrix[np.ix_(place, place)]


def numeric_names(space: FeatureSpace) -> tuple[str, ...]:
    """Return the integer and continuous columns, in the space's order."""
    return tuple(feature.name for feature in space if not feature.is_finite)


def check_matrix(who: str, word: str, given: Any) -> tuple[Floats, tuple[str, ...] | None]:
    """Return a symmetric matrix of finite numbers and its names, if it bears any, or refuse it.

    Raises
    ------
    InvalidTypeError
        It is not an array or frame of numbers.
    InvalidValueError
        It is not square, has NaN or infinities, is not symmetric, or a frame's rows are not named as its columns.
    """
    names = None
    if isinstance(given, pd.DataFrame):
        names = tuple(given.columns)
        if set(given.index) != set(names) or not given.columns.is_unique or not given.index.is_unique:
            raise InvalidValueError(
                who, f"a {word} whose rows bear the names of its columns",
                f"the rows are {list(given.index)}, the columns {list(names)}", "Set its index to its columns.",
            )  # fmt: skip
        given = given.loc[list(names)]
    try:
        matrix = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidTypeError(who, f"numbers as {word}", f"it is {type(given).__name__}", "Give an array.") from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidValueError(
            who, f"a square {word}", f"its shape is {matrix.shape}", "Give a row and a column per numeric column."
        )
    if not np.isfinite(matrix).all():
        i, j = np.argwhere(~np.isfinite(matrix))[0].tolist()
        raise InvalidValueError(who, f"finite numbers in {word}", f"entry [{i}][{j}] is {matrix[i, j]}", "Replace it.")
    off = np.abs(matrix - matrix.T)
    if matrix.size and off.max() > GIVEN_SYMMETRIC * np.abs(matrix).max():
        i, j = divmod(int(off.argmax()), len(off))
        raise InvalidValueError(
            who, f"a symmetric {word}", f"[{i}][{j}] is {matrix[i, j]:g} and [{j}][{i}] is {matrix[j, i]:g}", "Mend it."
        )
    return 0.5 * (matrix + matrix.T), names


def covariance_of(who: str, space: FeatureSpace, data: pd.DataFrame | None) -> pd.DataFrame:
    """Return the sample covariance (divided by n - 1) of the numeric columns of data, in raw units.

    Rows with missing cells are left out, with a warning. So, without one, are those that hold a code in such a column.

    Raises
    ------
    InvalidValueError
        There is no data, or less than two rows.
    """
    names = numeric_names(space)
    data = complete_rows(who, space, data)
    if names and (data is None or len(data) < 2):
        but = "no data is given"
        if data is not None:
            but = f"the data has {len(data)} row{'s' * (len(data) != 1)}"
        raise InvalidValueError(
            who, "a covariance, a precision, or data to estimate one from", but,
            "Pass data=X_train, or Mahalanobis(covariance=...).",
        )  # fmt: skip
    if not names:
        return pd.DataFrame()
    rows = space.coordinates(data)[:, list(map(space.names.index, names))]
    amounts = rows[~on_codes(map(space.__getitem__, names), rows)]
    if len(amounts) < 2:
        but = f"the data has {len(amounts)} of {len(rows)}"
        then = "Pass more, or Mahalanobis(covariance=...)."
        raise InvalidValueError(who, "two rows without codes to estimate a covariance from", but, then)
    matrix = np.atleast_2d(np.cov(amounts, rowvar=False))
    return pd.DataFrame(matrix, index=list(names), columns=list(names))


def metric_of(who: str, space: FeatureSpace, covariance: Any, precision: Any) -> Metric:
    """Return the metric of a covariance, or of a precision, over the numeric columns of a space.

    Raises
    ------
    InvalidValueError
        The matrix has another size than there are numeric columns; a covariance whose columns are collinear; a
        precision that is not positive semidefinite.
    UnknownNameError
        A name that is no numeric column.
    """
    names = numeric_names(space)
    word = "covariance" if precision is None else "precision"
    matrix, given = check_matrix(who, word, covariance if precision is None else precision)
    for name in given or ():
        if name not in names:
            raise UnknownNameError.among(who, f"numeric column in the {word}", str(name), names)
    if len(matrix) != len(names):
        absent = [name for name in names if name not in (given or ())]
        if given is None:
            but = f"it has {len(matrix)}"
        else:
            but = f"it lacks {', '.join(map(repr, absent))}"
        raise InvalidValueError(
            who, f"a {word} with a row for each of the {len(names)} numeric columns", but,
            f"The numeric columns are: {', '.join(names)}.",
        )  # fmt: skip
    if given is not None:
        order = list(map(given.index, names))
        matrix = matrix[np.ix_(order, order)]
    if precision is None:
        return _inverted(who, names, matrix)
    return _of_precision(who, names, matrix)


def root_of(matrix: Floats) -> Floats:
    """Return R with R'R = A: the transposed Cholesky factor, upper triangular, or if A is singular any, (rank, k)."""
    scaled, size = _scaled(matrix)
    try:
        factor = np.linalg.cholesky(scaled).T
    except np.linalg.LinAlgError:
        factor = np.zeros_like(scaled)
    if factor.size and factor.diagonal().min() <= np.sqrt(COLLINEAR):
        values, vectors = np.linalg.eigh(scaled)
        kept = values > COLLINEAR * values[-1]
        factor = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    return np.asarray(factor * size)


def _scaled(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the matrix with a unit diagonal, and the roots of its own one (1 where that is 0)."""
    diagonal = np.maximum(matrix.diagonal(), 0.0)
    size = np.where(diagonal > 0.0, np.sqrt(diagonal), 1.0)
    return matrix / size / size[:, None], size


def _inverted(who: str, names: tuple[str, ...], covariance: Floats) -> Metric:
    if not names:
        return Metric(names, np.zeros((0, 0)), np.zeros(0))
    for name, variance in zip(names, covariance.diagonal().tolist(), strict=True):
        if variance <= 0.0:
            raise InvalidValueError(
                who, "a positive variance in every numeric column", f"that of column {name!r} is {variance:g}",
                "Leave the column out of the space, or give a regularised covariance.",
            )  # fmt: skip
    correlation, size = _scaled(covariance)
    values, vectors = np.linalg.eigh(correlation)
    if values[0] <= COLLINEAR * values[-1]:
        if values[0] < -NEGATIVE_EIGENVALUE:
            raise _not_semidefinite(who, "covariance", values[0])
        null = np.abs(vectors[:, 0])
        together = [name for name, share in zip(names, null.tolist(), strict=True) if share > 0.05 * null.max()]
        raise InvalidValueError(
            who, "a covariance that can be inverted", f"columns {', '.join(map(repr, together))} are collinear",
            "Leave one of them out, give more rows, or a regularised covariance "
            "(such as sklearn.covariance.LedoitWolf's) or a precision.",
        )  # fmt: skip
    inverse = (vectors / values) @ vectors.T
    return Metric(names, 0.5 * (inverse + inverse.T) / size / size[:, None], 1.0 / size)


def _of_precision(who: str, names: tuple[str, ...], precision: Floats) -> Metric:
    scaled, size = _scaled(precision)
    if names and (lowest := float(np.linalg.eigvalsh(scaled)[0])) < -NEGATIVE_EIGENVALUE:
        raise _not_semidefinite(who, "precision", lowest)
    root = root_of(precision)
    least = np.zeros(len(names))
    for j in range(len(names)):
        own = root[:, j]
        others = np.delete(root / size, j, axis=1)
        rest = own - others @ np.linalg.lstsq(others, own, rcond=None)[0]
        least[j] = max(float(np.linalg.norm(rest) - UNSHORTENED_MOVE * np.linalg.norm(own)), 0.0)
    return Metric(names, precision, least)


def _not_semidefinite(who: str, word: str, lowest: float) -> InvalidValueError:
    return InvalidValueError(
        who, f"a positive semidefinite {word}", f"an eigenvalue of it, scaled to a unit diagonal, is {lowest:.3g}",
        "Check it: a distance cannot be negative.",
    )  # fmt: skip


# ==== The distance, and its square ====================================================================================


class AbstractMahalanobis(AbstractCost):
    """A cost over a matrix of the numeric columns, and a fixed price of each changed column of levels."""

    __slots__ = ()

    covariance: Any
    precision: Any
    _known: dict[str, Any]

    additive = False

    @property
    def needs_amounts(self) -> str:  # type: ignore[override]
        """Its own name: a matrix has no entry for codes and missing cells."""
        return type(self).__name__

    @abstractmethod
    def _level_price(self, down: float, up: float) -> Price:
        """Return what a changed column of levels with these weights adds to the objective."""

    def _check(self) -> None:
        who = type(self).__name__
        if self.covariance is not None and self.precision is not None:
            raise InvalidValueError(who, "a covariance or a precision", "both are given", "Leave one out.")
        for word, given in (("covariance", self.covariance), ("precision", self.precision)):
            if given is not None:
                check_matrix(who, word, given)

    def fitted(self, space: FeatureSpace, data: pd.DataFrame | None) -> Self:
        """Return the cost with the covariance of the data, unless a matrix was given."""
        if self.covariance is not None or self.precision is not None:
            return self
        return replace(self, covariance=covariance_of(type(self).__name__, space, data))  # type: ignore[type-var]

    def metric(self, space: FeatureSpace) -> Metric:
        """Return the matrix over the numeric columns of a space.

        Raises
        ------
        InvalidValueError, UnknownNameError
            There is no matrix, or it does not fit the space; a covariance that is singular.
        """
        if self._known.get("space") is not space:
            who = type(self).__name__
            covariance = self.covariance
            if covariance is None and self.precision is None:
                covariance = covariance_of(who, space, None)
            self._known.update(metric=metric_of(who, space, covariance, self.precision), space=space)
        known: Metric = self._known["metric"]
        return known

    def _prices(self, space: FeatureSpace, kind: Kind) -> dict[str, tuple[Price, ...]]:
        least = dict(zip(numeric_names(space), self.metric(space).least.tolist(), strict=True))
        return self._level_prices(space) | {name: (Price(kind, slope, slope),) for name, slope in least.items()}

    def _level_prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        prices: dict[str, tuple[Price, ...]] = dict.fromkeys(space.names, ())
        for feature in space:
            if feature.is_finite:
                prices[feature.name] = (self._level_price(*feature.weights),)
        return prices

    def _level_costs(self, space: FeatureSpace, factual: Mapping[str, float], points: Floats) -> Floats:
        return np.asarray(price_table(self._level_prices(space), space, factual, points).sum(axis=1))

    def _moves(self, space: FeatureSpace, factual: Mapping[str, float], points: Floats) -> Floats:
        """Return the moves of numeric columns, (n, k), 0 of a cell that is filled in."""
        places = list(map(space.names.index, numeric_names(space)))
        home = point_row(space, factual)
        moves = np.zeros_like(points)
        np.subtract(points, home, out=moves, where=(points != home) & ~are_filled(space, factual, points))
        return moves[:, places]

    def _priced(self, space: FeatureSpace, factual: Mapping[str, float], points: Floats, objectives: Floats) -> Floats:
        """Return objectives, infinite for points that fill a cell in: the program refuses such a column."""
        return np.where(are_filled(space, factual, points).any(axis=1), np.inf, objectives)

    def value(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the cost of a point, in numpy."""
        return self.from_objective(float(self.objectives(space, factual, point_row(space, point))[0]))

    def __repr__(self) -> str:
        given = []
        for word, matrix in (("covariance", self.covariance), ("precision", self.precision)):
            if matrix is not None:
                given.append(f"{word}=<{' x '.join(map(str, np.shape(matrix)))}>")
        if getattr(self, "squared", False):
            given.append("squared=True")
        return f"{type(self).__name__}({', '.join(given)})"


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Mahalanobis(AbstractMahalanobis, AbstractNorm):
    r"""Mahalanobis distance of the numeric columns, with the weight of each changed column of levels.

    .. math::
        \sqrt{\delta^\top A \delta + \sum_{c} \omega_c^2\, [c \text{ changed}]}, \qquad
        \delta = x - x^0, \quad A = C^{-1}.

    ====== ======= ============ ==================================================================
    symbol shape   unit         meaning
    ====== ======= ============ ==================================================================
    δ      (k,)    raw          moves of the k integer and continuous columns, in the space's order
    C      (k, k)  raw squared  their covariance
    A      (k, k)  1 / raw²     its inverse, the precision
    ω      ()      none         weight of an ordinal, binary or categorical column
    ====== ======= ============ ==================================================================

    The program minimises the square. With A = R'R it adds a variable ``product`` and a row for each row of R that
    couples columns, :math:`z = R\delta`, and squares those: a convex QP, or MIQP. Columns that are not correlated with
    any other cost as l2 does. In a sum, the distance itself as a cone. Weights and scales of numeric columns do not
    count, nor do those that cannot move. Exact.

    Parameters
    ----------
    covariance
        (k, k): an array in the order of the space's numeric columns, or a frame with their names. By default that of
        the ``data`` given to :func:`ceopt.explain` (divided by n - 1), or to ``Recourse.fit``.
    precision
        A itself, (k, k), instead of the covariance. It may be singular: moves that it does not see are free.
    squared
        Report, or add, the square itself.

    Raises
    ------
    InvalidValueError
        The matrix is not square, finite, symmetric and positive semidefinite, or has another size; the covariance is
        singular: its collinear columns are named, as a pseudo-inverse would make breaking their relation free. Neither
        matrix nor data is given, or both matrices. A column that can move may hold no amount for the person, but a code
        or nothing (when built).
    UnknownNameError
        A frame bears the name of another column.

    References
    ----------
    Mahalanobis (1936), On the generalised distance in statistics.

    Examples
    --------
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("height", kind="continuous"), Feature("weight", kind="continuous")])
    >>> cost = Mahalanobis([[100.0, 80.0], [80.0, 100.0]])
    >>> x0, along, against = ({"height": h, "weight": w} for h, w in ((170.0, 70.0), (180.0, 80.0), (180.0, 60.0)))
    >>> round(cost.value(space, x0, along), 3), round(cost.value(space, x0, against), 3)
    (1.054, 3.162)
    """

    covariance: Any = None
    precision: Any = None
    squared: bool = False
    _known: dict[str, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._check()
        check_fields(self, {"squared": Flag()})

    def _level_price(self, down: float, up: float) -> Price:
        return Price("fixed", down * down, up * up)

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        r"""Return what each column's move adds to the square at least: :math:`\delta_j^2 / C_{jj}` for a number."""
        return self._prices(space, "square")

    def objectives(self, space: FeatureSpace, factual: Mapping[str, float], points: Floats) -> Floats:
        """Return the squared distances."""
        products = self._moves(space, factual, points) @ root_of(self.metric(space).matrix).T
        costs = (products**2).sum(axis=1) + self._level_costs(space, factual, points)
        return self._priced(space, factual, points, costs)

    def stated(self, x: Factual, unit: float) -> Any:
        """Return the square, after adding the products of coupled columns."""
        levels = paid(x, self._level_prices(x.space))
        squares = sum(self._products(x, "square", unit))
        return squares + sum(charge.price(price.scaled(unit**-2)) for charge, price in levels)

    def lengths(self, x: Factual, unit: float) -> list[Any]:
        """Return the products, and the weights of the changed columns of levels."""
        levels = paid(x, self._level_prices(x.space))
        products = self._products(x, "length", unit)
        return products + [charge.price(price.rooted().scaled(1.0 / unit)) for charge, price in levels]

    def _products(self, x: Factual, kind: Kind, unit: float) -> list[Any]:
        require_amounts(self.needs_amounts, x.space, x.point, x.reach)
        metric = self.metric(x.space)
        moving = tuple(name for name in metric.names if not x.charge(name).stays)
        return rows_of(x, moving, root_of(metric.among(moving)) / unit, kind)


def rows_of(x: Factual, names: tuple[str, ...], root: Floats, kind: Kind) -> list[Any]:
    """Return the length, square or absolute value of each row of ``root @ moves``, after adding its variables."""
    parts = []
    for row in root.tolist():
        slopes = {name: slope for name, slope in zip(names, row, strict=True) if slope != 0.0}
        if len(slopes) == 1:
            ((name, slope),) = slopes.items()
            parts.append(x.charge(name).price(Price(kind, abs(slope), abs(slope))))
        elif slopes:
            parts.append(_product(x, slopes, kind))
    return parts


def _product(x: Factual, slopes: Mapping[str, float], kind: Kind) -> Any:
    """Return the length, square or absolute value of one weighted sum of moves."""
    if x.component("product") is None:
        x.product = pyo.Var(pyo.Any, dense=False)
    number = len(x.product)
    key = "+".join(slopes)
    form = total(x.charge(name).move().scaled(slope) for name, slope in slopes.items())
    if kind == "linear":
        parts = [x.product[key, number, side] for side in ("above", "below")]
        for part, sign in zip(parts, (1.0, -1.0), strict=True):
            part.setlb(0.0)
            x.follow(part, max, [form.scaled(sign).expression(), 0.0])
        held = LinearForm(0.0, ((1.0, parts[0]), (-1.0, parts[1])))
    else:
        parts = [x.product[key, number]]
        x.follow(parts[0], sum, [form.expression()])
        held = LinearForm(0.0, ((1.0, parts[0]),))
    Rows(x, "product_of").add((key, number), held + form.scaled(-1.0), lower=0.0, upper=0.0)
    if kind == "square":
        return sum(parts) ** 2
    return sum(parts)


# ==== The l1 norm of a decorrelated move: a Mahalanobis cost for linear programs ======================================


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class L1Mahalanobis(AbstractMahalanobis):
    r"""The l1 norm of the decorrelated move: linear, where :class:`Mahalanobis` is quadratic.

    .. math::
        \lVert F^\top \delta \rVert_1 + \sum_c \omega_c\, [c \text{ changed}], \qquad A = C^{-1} = F F^\top,

    with F the lower triangular Cholesky factor, the numeric columns in the space's order (another order is another
    cost). It is at least the Mahalanobis distance of the numeric columns, and at most :math:`\sqrt{k}` times it.

    Adds two variables and a row, :math:`p_i - n_i = (F^\top \delta)_i`, for each row that couples columns (MILP or LP).

    Parameters
    ----------
    covariance, precision
        As for :class:`Mahalanobis`; the precision must be positive definite.

    Raises
    ------
    InvalidValueError, UnknownNameError
        As for :class:`Mahalanobis`.

    References
    ----------
    Kanamori, Takagi, Kobayashi & Arimura (2020), DACE: distribution-aware counterfactual explanation by MILP.

    Examples
    --------
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("height", kind="continuous"), Feature("weight", kind="continuous")])
    >>> cost = L1Mahalanobis(precision=[[4.0, -2.0], [-2.0, 2.0]])
    >>> x0, x = ({"height": h, "weight": w} for h, w in ((0.0, 0.0), (1.0, 3.0)))
    >>> round(cost.value(space, x0, x), 9)  # |2 * 1 - 1 * 3| + |1 * 3|
    4.0
    """

    covariance: Any = None
    precision: Any = None
    _known: dict[str, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._check()

    def _level_price(self, down: float, up: float) -> Price:
        return Price("fixed", down, up)

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return what each column's move costs at least, by way of the l2 norm."""
        return self._prices(space, "linear")

    def objectives(self, space: FeatureSpace, factual: Mapping[str, float], points: Floats) -> Floats:
        """Return the costs."""
        products = self._moves(space, factual, points) @ self._root(space).T
        costs = np.abs(products).sum(axis=1) + self._level_costs(space, factual, points)
        return self._priced(space, factual, points, costs)

    def build(self, x: Factual) -> Any:
        """Return the sum of the absolute products, after adding their variables and rows."""
        require_amounts(self.needs_amounts, x.space, x.point, x.reach)
        names = self.metric(x.space).names
        root = self._root(x.space)
        kept = [j for j, name in enumerate(names) if not x.charge(name).stays]
        products = rows_of(x, tuple(map(names.__getitem__, kept)), root[:, kept], "linear")
        levels = [charge.price(price) for charge, price in paid(x, self._level_prices(x.space))]
        return sum(products) + sum(levels)

    def _root(self, space: FeatureSpace) -> Floats:
        root = root_of(self.metric(space).matrix)
        if root.shape[0] < root.shape[1]:
            raise InvalidValueError(
                "L1Mahalanobis", "a positive definite precision", "this one is singular", "Use Mahalanobis instead."
            )
        return root

"""Distances that count correlated columns together: a move along the grain of the data is short."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import pandas as pd
import pyomo.environ as pyo

from ceopt.formulations.columns import Price
from ceopt.formulations.costs.base import AbstractCost, Floats, price_table
from ceopt.formulations.costs.l2 import AbstractNorm, Kind
from ceopt.formulations.costs.mahalanobis_matrix import (
    Metric,
    check_matrix,
    covariance_of,
    metric_of,
    numeric_names,
    root_of,
)
from ceopt.formulations.linear_form import LinearForm, Rows, total
from ceopt.solvers.checks import Flag, check_fields
from ceopt.solvers.errors import InvalidValueError

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["AbstractMahalanobis", "Mahalanobis", "paid", "rows_of"]


class AbstractMahalanobis(AbstractCost):
    """A cost over a matrix of the numeric columns, and a fixed price of each changed column of levels."""

    __slots__ = ()

    covariance: Any
    precision: Any
    _known: dict[str, Any]

    additive = False

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
        covariance = covariance_of(type(self).__name__, space, data)
        return replace(self, covariance=covariance)  # type: ignore[type-var]

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
        return {f.name: (self._level_price(*f.weights),) if f.is_finite else () for f in space}

    def _level_costs(self, space: FeatureSpace, factual: Mapping[str, float], points: Floats) -> Floats:
        return np.asarray(price_table(self._level_prices(space), space, factual, points).sum(axis=1))

    def _moves(self, space: FeatureSpace, factual: Mapping[str, float], points: Floats) -> Floats:
        names = numeric_names(space)
        place = [space.names.index(name) for name in names]
        return np.asarray(points[:, place] - np.array([factual[name] for name in names]))

    def value(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the cost of a point, in numpy."""
        row = np.array([[point[name] for name in space.names]])
        return self.from_objective(float(self.objectives(space, factual, row)[0]))

    def __repr__(self) -> str:
        given = []
        for word, matrix in (("covariance", self.covariance), ("precision", self.precision)):
            if matrix is not None:
                given.append(f"{word}=<{' x '.join(map(str, np.shape(matrix)))}>")
        given += ["squared=True"] if getattr(self, "squared", False) else []
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
        matrix nor data is given, or both matrices.
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
        return np.asarray((products**2).sum(axis=1) + self._level_costs(space, factual, points))

    def stated(self, x: Factual, unit: float) -> Any:
        """Return the square, after adding the products of coupled columns."""
        levels = paid(x, self._level_prices(x.space))
        return sum(self._products(x, "square", unit)) + sum(
            x.charge(name).price(price.scaled(unit**-2)) for name, price in levels
        )

    def lengths(self, x: Factual, unit: float) -> list[Any]:
        """Return the products, and the weights of the changed columns of levels."""
        levels = paid(x, self._level_prices(x.space))
        return self._products(x, "length", unit) + [
            x.charge(name).price(price.rooted().scaled(1.0 / unit)) for name, price in levels
        ]

    def _products(self, x: Factual, kind: Kind, unit: float) -> list[Any]:
        metric = self.metric(x.space)
        moving = tuple(name for name in metric.names if not x.charge(name).stays)
        return rows_of(x, moving, root_of(metric.among(moving)) / unit, kind)


def paid(x: Factual, prices: Mapping[str, tuple[Price, ...]]) -> list[tuple[str, Price]]:
    """Return the prices of columns that may move."""
    pairs = []
    for name, listed in prices.items():
        for price in listed:
            pairs.append((name, price))
    return [(name, price) for name, price in pairs if max(price.down, price.up) > 0 and not x.charge(name).stays]


def rows_of(x: Factual, names: tuple[str, ...], root: Floats, kind: Kind) -> list[Any]:
    """Return the length, square or absolute value of each row of ``root @ moves``, after adding its variables."""
    found = []
    for row in root.tolist():
        slopes = {name: slope for name, slope in zip(names, row, strict=True) if slope != 0.0}
        if len(slopes) == 1:
            ((name, slope),) = slopes.items()
            found.append(x.charge(name).price(Price(kind, abs(slope), abs(slope))))
        elif slopes:
            found.append(_product(x, slopes, kind))
    return found


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
    return sum(parts) ** 2 if kind == "square" else sum(parts)

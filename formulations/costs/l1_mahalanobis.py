"""The l1 norm of a decorrelated move: a Mahalanobis cost for linear programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ceopt.formulations.columns import Price
from ceopt.formulations.costs.base import Floats
from ceopt.formulations.costs.mahalanobis import AbstractMahalanobis, paid, rows_of
from ceopt.formulations.costs.mahalanobis_matrix import root_of
from ceopt.solvers.errors import InvalidValueError

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["L1Mahalanobis"]


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
        return np.asarray(np.abs(products).sum(axis=1) + self._level_costs(space, factual, points))

    def build(self, x: Factual) -> Any:
        """Return the sum of the absolute products, after adding their variables and rows."""
        names = self.metric(x.space).names
        root = self._root(x.space)
        kept = [j for j, name in enumerate(names) if not x.charge(name).stays]
        products = rows_of(x, tuple(names[j] for j in kept), root[:, kept], "linear")
        levels = [x.charge(name).price(price) for name, price in paid(x, self._level_prices(x.space))]
        return sum(products) + sum(levels)

    def _root(self, space: FeatureSpace) -> Floats:
        root = root_of(self.metric(space).matrix)
        if root.shape[0] < root.shape[1]:
            raise InvalidValueError(
                "L1Mahalanobis", "a positive definite precision", "this one is singular", "Use Mahalanobis instead."
            )
        return root

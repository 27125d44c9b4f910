"""Costs of a change: objects that add and scale, and the same as expressions over a person's block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ceopt.formulations.columns.columns_block import Factual, require_factual
from ceopt.formulations.costs.base import AbstractCost, CostCutoff, Count, Sum
from ceopt.formulations.costs.between import distances
from ceopt.formulations.costs.mahalanobis import L1Mahalanobis, Mahalanobis
from ceopt.formulations.costs.norms import L0, L1, L2, Changes, Linf, greatest_of, norm_above
from ceopt.formulations.costs.percentile import Percentile
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.checks import NOT_A_NUMBER, NameOrObject, Real, Refusal
from ceopt.solvers.errors import InvalidTypeError

__all__ = [
    "COST",
    "COSTS",
    "L0",
    "L1",
    "L2",
    "AbstractCost",
    "Changes",
    "Cutoff",
    "L1Mahalanobis",
    "Linf",
    "Mahalanobis",
    "Percentile",
    "Sum",
    "l0",
    "l1",
    "l2",
    "l2_squared",
    "linf",
    "mahalanobis",
    "parse_cost",
]

#: What each changed column costs in "few_changes", beside its move: as much as a tenth of its scale, or of a category.
_PER_CHANGE: Final = 0.1
#: Costs by the name that ``explain(cost=...)`` takes; one without a name is given as an object.
COSTS: Mapping[str, Callable[[], AbstractCost]] = {
    "l0": L0,
    "l1": L1,
    "l2": L2,
    "l2_squared": lambda: L2(squared=True),
    "linf": Linf,
    "mahalanobis": Mahalanobis,
    "few_changes": lambda: L1() + _PER_CHANGE * Changes(),
}


#: What an argument that says a cost may be; "L1" is the class's name, "l1" that of the same cost by default.
COST: Final = NameOrObject(
    AbstractCost,
    COSTS,
    Refusal("a name or a cost object", f"Choose from: {', '.join(COSTS)}.", error=InvalidTypeError),
    spelt={"L0": "l0", "L1": "l1", "L2": "l2"},
)


_LIMIT: Final = Real(
    at_least=0.0, finite=True, otherwise=Refusal("a finite {name} of at least 0", "Give the cost of an answer."),
    wrong_type=NOT_A_NUMBER,
)  # fmt: skip


def parse_cost(cost: Any) -> AbstractCost:
    """Return a cost given by name or as an object, or refuse it with the choices."""
    parsed: AbstractCost = COST.require("cost", "cost", cost)
    return parsed


def Cutoff(space: FeatureSpace, factual: Any, cost: Any, limit: float) -> CostCutoff:  # noqa: N802 - it makes one
    """Return a cost that no answer worth finding exceeds, for ``embed(..., cutoff=)``: a smaller and tighter program.

    Exact: an answer that costs at most the limit is not cut off. All others may be.

    Parameters
    ----------
    space, factual
        The columns, and the row that costs are counted from, in raw units.
    cost
        A name or an object, as for :func:`ceopt.explain`.
    limit
        The cost of an answer that is known, in the unit of ``Counterfactual.cost``.

    Examples
    --------
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("wage", kind="continuous", lower=0, upper=9)])
    >>> near = Cutoff(space, {"wage": 2.0}, L1(scale="none"), 1.5)
    >>> near.budget >= 1.5
    True
    """
    checked = parse_cost(cost)
    most = _LIMIT.require("Cutoff", "limit", limit)
    return CostCutoff(space, space.row(factual), checked, checked.to_objective(most))


def l0(x: Any, *, origin: Any = None) -> Any:
    """Weighted number of changed columns, as an expression over a person's block.

    With ``origin`` another block: of columns that differ between the two (:mod:`~ceopt.formulations.costs.between`).
    """
    if origin is None:
        return L0().build(require_factual("l0", x))
    return sum(distances("l0", x, origin, L0().prices(x.space)).values())


def l1(x: Any, *, origin: Any = None, scale: str | Mapping[str, float] = "mad", count: Count = "features") -> Any:
    """Weighted l1 distance, as an expression over a person's block; with ``origin`` from another block's answer."""
    cost = L1(scale=scale, count=count)
    if origin is None:
        return cost.build(require_factual("l1", x))
    return sum(distances("l1", x, origin, cost.prices(x.space)).values())


def l2_squared(
    x: Any, *, origin: Any = None, scale: str | Mapping[str, float] = "mad", count: Count = "features"
) -> Any:
    """Square of the weighted l2 distance, as an expression over a person's block; with ``origin`` from another's."""
    if origin is None:
        return L2(scale=scale, squared=True, count=count).build(require_factual("l2_squared", x))
    lengths = distances("l2_squared", x, origin, L2(scale=scale, count=count).prices(x.space))
    return sum(length**2 for length in lengths.values())


def l2(x: Any, *, origin: Any = None, scale: str | Mapping[str, float] = "mad", count: Count = "features") -> Any:
    """Weighted l2 distance, as an expression over a person's block: a variable that a second-order cone keeps above it.

    To minimise it alone, :func:`l2_squared` has the same minimisers and needs no cone. With ``origin`` from another
    block's answer.
    """
    if origin is None:
        return L2(scale=scale, count=count).addend().build(require_factual("l2", x))
    lengths = distances("l2", x, origin, L2(scale=scale, count=count).prices(x.space))
    return norm_above(x, list(lengths.values())) if lengths else 0.0


def linf(x: Any, *, origin: Any = None, scale: str | Mapping[str, float] = "mad") -> Any:
    """Weighted l-infinity distance, as an expression over a person's block; with ``origin`` from another's answer."""
    cost = Linf(scale=scale)
    if origin is None:
        return cost.build(require_factual("linf", x))
    lengths = distances("linf", x, origin, cost.prices(x.space))
    return greatest_of(x, lengths) if lengths else 0.0


def mahalanobis(x: Factual, *, covariance: Any = None, precision: Any = None) -> Any:
    """Mahalanobis distance, as an expression over a person's block: a variable that a cone keeps above it.

    Numeric columns need a covariance or a precision (see :class:`Mahalanobis`): a block knows no data.
    """
    return Mahalanobis(covariance, precision).addend().build(require_factual("mahalanobis", x))

"""The number of changes as a cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from ceopt.formulations.columns import Price
from ceopt.formulations.costs.base import COUNT, AbstractSeparable, Count
from ceopt.solvers.checks import check_fields

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["L0", "Changes"]


@final
@dataclass(frozen=True, slots=True)
class L0(AbstractSeparable):
    r"""Weighted number of changed columns: :math:`\sum_j \omega_j [x_j \ne x^0_j]`.

    Linear in the level and cut binaries; a numeric coordinate adds a binary and two rows with the bounds as big-M.
    """

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return each column's weight for leaving the factual."""
        return {feature.name: (Price("fixed", *feature.weights),) for feature in space}


@final
@dataclass(frozen=True, slots=True)
class Changes(AbstractSeparable):
    """Number of changed features, or of changed encoded columns, in which a category switch counts twice; no weights.

    Parameters
    ----------
    count
        "features" or "columns".
    """

    count: Count = "features"

    def __post_init__(self) -> None:
        check_fields(self, {"count": COUNT})

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return 1 for each column (2 for a category counted by columns)."""
        double = 2.0 if self.count == "columns" else 1.0
        ones = {}
        for f in space:
            if f.kind == "categorical":
                ones[f.name] = double
            else:
                ones[f.name] = 1.0
        return {name: (Price("fixed", one, one),) for name, one in ones.items()}

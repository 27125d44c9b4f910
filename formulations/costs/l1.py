"""The weighted l1 distance as a cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from ceopt.formulations.columns import Price
from ceopt.formulations.costs.base import COUNT, SCALE, AbstractSeparable, Count, slopes_of
from ceopt.solvers.checks import check_fields

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["L1"]


@final
@dataclass(frozen=True, slots=True)
class L1(AbstractSeparable):
    r"""Weighted l1 distance: :math:`\sum_j \omega_j |x_j - x^0_j| / s_j`, with a weight per direction.

    A changed category moves 1 at scale 1; an ordinal level moves 1 / (levels - 1). Linear.

    Parameters
    ----------
    scale
        "mad" (median absolute deviation, where zero the standard deviation, then the range), "std", "range", "none",
        or a mapping column -> scale.
    count
        "features", or "columns" as one-hot encoding has them: a changed category moves two of them by 1, and counts 2.
    """

    scale: str | Mapping[str, float] = "mad"
    count: Count = "features"

    def __post_init__(self) -> None:
        check_fields(self, {"scale": SCALE, "count": COUNT})

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return weight over scale per column and direction."""
        return slopes_of("L1", "linear", self.scale, space, self.count)

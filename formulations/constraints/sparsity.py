"""At most k changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.constraints.rule import AbstractRule
from ceopt.solvers.errors import InvalidValueError, UnknownNameError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.factual import Factual
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["MaxChanges"]

_COUNTS = ("features", "columns")


@final
@dataclass(frozen=True, slots=True)
class MaxChanges(AbstractRule):
    r"""At most ``k`` features (or encoded columns) may leave the factual.

    .. math::
        \sum_j z_j \le k, \qquad z_j = 1 - (y_h - y_{h+1}) \ \text{(cells)}, \ z_j = 1 - u_{c^0} \text{ (levels)}, \\
        p_j \le (u_j - x^0_j) z_j, \quad n_j \le (x^0_j - l_j) z_j \ \text{(a numeric coordinate)}

    ====== ============== ====================================================
    symbol component      meaning
    ====== ============== ====================================================
    z_j    ``x.changed``  1 permits the column to move
    y, h   ``x.cut``      cuts at either end of the cell that holds the factual
    u      ``x.level``    binary of the factual level
    p, n   ``x.up, down`` move up and down
    ====== ============== ====================================================

    One row; for a numeric coordinate also a binary and two rows, whose big-M is the room to the bound. Exact.

    Parameters
    ----------
    k
        Whole number of changes, at least 0.
    count
        "features", or "columns", in which a category switch counts twice (one column off, one on).
    name
        Name in exports and reports.

    Raises
    ------
    InvalidValueError
        ``k`` is negative or not whole.
    UnboundedFeatureError
        A numeric coordinate has an infinite bound, so no big-M exists (when built).

    References
    ----------
    Maragno, Roeber & Birbil (2022), eq. (5).
    """

    k: int
    count: Literal["features", "columns"] = "features"
    name: str | None = None
    manifest: ClassVar[Manifest] = Manifest(
        title="at most k changes",
        formula="sum_j changed_j <= k",
        reference="Maragno, Roeber & Birbil 2022, (5)",
        rule="MaxChanges",
    )

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int | np.integer) or self.k < 0:
            raise InvalidValueError(
                "MaxChanges", "a whole number of at least 0", f"k is {self.k!r}", "Give for example 3."
            )
        if self.count not in _COUNTS:
            raise UnknownNameError.among("MaxChanges", "count", self.count, _COUNTS)

    def check(self, space: FeatureSpace) -> None:
        """Accept every space."""

    def build(self, block: Any, x: Factual) -> None:
        """Add the row ``budget``."""
        used = x.count_changes(self.count)
        block.budget = pyo.Constraint(pyo.Any)
        if not isinstance(used, int):
            block.budget["changes"] = used <= float(self.k)

    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return how many changes there are too many."""
        assert factual is not None  # noqa: S101 - needs_factual
        changed = [feature for feature in space if point[feature.name] != factual[feature.name]]
        double = self.count == "columns"
        used = sum(2 if double and feature.kind == "categorical" else 1 for feature in changed)
        return float(max(used - self.k, 0))

    def sentence(self) -> str:
        """Return the rule in words."""
        return f"at most {self.k} {self.count} may change"

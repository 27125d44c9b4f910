"""At most k changes."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, final

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.constraints.rule import RULE_NAME, AbstractElastic, active_ones
from ceopt.formulations.tolerances import WHOLE_COUNT
from ceopt.solvers.checks import Choice, ListOf, Refusal, Whole, check_fields
from ceopt.solvers.errors import InvalidTypeError, UnknownNameError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.solvers.checks import Floats

_NO_GROUPS = Refusal("lists of columns as together", 'Write [["red", "blue"]].', error=InvalidTypeError)
_CHECKS = {
    "name": RULE_NAME,
    "k": Whole(0, int(sys.float_info.max), Refusal("a whole number of at least 0", "Give for example 3.")),
    "count": Choice(("features", "columns")),
    "together": ListOf(_NO_GROUPS, ListOf(_NO_GROUPS, texts=True)),
}


@final
@dataclass(frozen=True, slots=True)
class MaxChanges(AbstractElastic):
    r"""At most ``k`` features (or encoded columns) may leave the factual.

    .. math::
        \sum_j z_j \le k, \qquad z_j = 1 - (y_h - y_{h+1}) \ \text{(cells)}, \ z_j = 1 - u_{c^0} \text{ (levels)}, \\
        p_j \le (u_j - x^0_j) z_j, \quad n_j \le (x^0_j - l_j) z_j \ \text{(a numeric coordinate)}

    ====== ================ ====================================================
    symbol component        meaning
    ====== ================ ====================================================
    z_j    ``x.changed``    1 permits the column to move
    y, h   ``x.cut``        cuts at either end of the cell that holds the factual
    u      ``x.level``      binary of the factual level
    p, n   ``x.up, x.down`` move up and down
    ====== ================ ====================================================

    A missing cell or a code that becomes an amount is one change, as is an amount that goes.

    Beside an :class:`ExactlyOne` a move between two of its columns is one change: of ``together``, the column that is
    the one 1 of its group today is not counted.

    One row; for a numeric coordinate also a binary and two rows, whose big-M is the room to the bound. Exact. Relaxed,
    the row is :math:`\sum_j z_j - w \le k` with a whole number w, ``wider``, of further changes.

    Parameters
    ----------
    k
        Whole number of changes, at least 0.
    count
        "features", or "columns", in which a category switch counts twice (one column off, one on).
    name
        Name in exports and reports.
    together
        Groups of 0/1 columns, a move between two of which is one change; ``explain`` adds those of each ExactlyOne.

    Raises
    ------
    UnknownNameError
        A column of a group that does not exist.
    InvalidTypeError
        A group that is no list of names.
    InvalidValueError
        ``k`` is negative or not whole.
    UnboundedFeatureError
        A numeric coordinate has an infinite bound, so no big-M exists (when built).

    References
    ----------
    Maragno, Roeber & Birbil (2022), eq. (5).

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.constraints import MaxChanges
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("loan", kind="integer", lower=1, upper=9),
    ...                       Feature("home", kind="binary", levels=("rent", "own"))])
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"loan": 6, "home": "rent"})
    >>> m.few = impose(MaxChanges(1), m.x)
    >>> print(m.few.budget["changes"].expr)  # nothing reads the loan so far
    0.0 + (x.level[home,own])  <=  1.0
    >>> m.most = pyo.Constraint(expr=m.x.raw["loan"] <= 4)
    >>> for row in (m.few.budget["changes"], m.x.moved_up["loan"], m.x.moved_down["loan"]):
    ...     print(row.expr)
    (x.moved[loan]) + (x.level[home,own])  <=  1.0
    x.up[loan] - 3.0*x.moved[loan]  <=  0.0
    x.down[loan] - 5.0*x.moved[loan]  <=  0.0
    """

    k: int
    count: Literal["features", "columns"] = "features"
    name: str | None = None
    together: Any = field(default=(), kw_only=True)
    manifest: ClassVar[Manifest] = Manifest(
        title="at most k changes",
        formula="sum_j changed_j <= k",
        reference="Maragno, Roeber & Birbil 2022, (5)",
        rule="MaxChanges",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "together", check_fields(self, _CHECKS)["together"])

    def check(self, space: FeatureSpace) -> None:
        """Refuse columns of a group that do not exist."""
        for group in self.together:
            for name in group:
                if name not in space:
                    raise UnknownNameError.among("MaxChanges", "column", name, space.names)

    def counting(self, together: tuple[tuple[str, ...], ...]) -> Self:
        """Return the rule with further groups of columns that change together."""
        return replace(self, together=tuple(dict.fromkeys((*self.together, *together))))

    def build(self, block: Any, x: Factual) -> None:
        """Add the row ``budget``."""
        self._write(block, x.count_changes(self.count, free=active_ones(self.together, x.point)))

    def relax(self, block: Any, x: Factual) -> Any:
        """Add the row ``budget`` with the further changes ``wider``; return their number."""
        block.wider = pyo.Var(domain=pyo.NonNegativeIntegers, bounds=(0, 2 * len(x.space)), initialize=0)
        used = x.count_changes(self.count, free=active_ones(self.together, x.point))
        self._write(block, used if isinstance(used, int) else used - block.wider)
        return block.wider

    def widened(self, by: float) -> Self:
        """Return the rule that permits so many more changes."""
        return replace(self, k=int(self.k) + math.ceil(by - WHOLE_COUNT))

    def _write(self, block: Any, used: Any) -> None:
        block.budget = pyo.Constraint(pyo.Any)
        if not isinstance(used, int):
            block.budget["changes"] = used <= float(self.k)

    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return how many changes there are too many."""
        assert factual is not None  # noqa: S101 - needs_factual
        free = active_ones(self.together, factual)
        changed = []
        for feature in space:
            if point[feature.name] != factual[feature.name] and feature.name not in free:
                changed.append(feature)
        double = self.count == "columns"
        used = sum(2 if double and feature.kind == "categorical" else 1 for feature in changed)
        return float(max(used - self.k, 0))

    def keeps(self, space: FeatureSpace, factual: Mapping[str, float] | None, points: Floats) -> NDArray[np.bool_]:
        """Return which of the points (n, d) have few enough changes."""
        assert factual is not None  # noqa: S101 - needs_factual
        free = active_ones(self.together, factual)
        double = self.count == "columns"
        each = [
            0 if feature.name in free else 2 if double and feature.kind == "categorical" else 1 for feature in space
        ]
        is_changed = points != np.array([factual[name] for name in space.names])
        return np.asarray(is_changed @ np.array(each) <= self.k)

    def sentence(self) -> str:
        """Return the rule in words."""
        counted: str = self.count
        if self.k == 1:
            counted = counted.removesuffix("s")
        return f"at most {self.k} {counted} may change"

"""Each of some columns moves no further than so much, or than a share of the person's own value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.columns.numeric import Numeric
from ceopt.formulations.constraints.rule import RULE_NAME, AbstractElastic, AbstractRule
from ceopt.formulations.digits import digits
from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.formulations.space.limits import Limit, LimitCheck, excess, require_limits
from ceopt.formulations.space.reachable import Interval, ends_on_grid
from ceopt.solvers.checks import ListOf, Real, Refusal, check_fields
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.columns.coordinate import AbstractCoordinate
    from ceopt.formulations.constraints.rule import Point
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.solvers.checks import Floats

_NO_COLUMNS = Refusal("the names of columns", "Name one, or several in a list.", error=InvalidTypeError)
_CHECKS = {
    "name": RULE_NAME,
    "up": LimitCheck(),
    "down": LimitCheck(),
    "further": Real(at_least=0.0, finite=True),
}


@final
@dataclass(frozen=True, slots=True)
class MaxMove(AbstractElastic):
    r"""Each of some columns moves up and down by no more than a number, or than a share of the person's own value.

    .. math:: x^0_j - d_j \le x_j \le x^0_j + u_j, \qquad u_j = u \text{ or } p\,|x^0_j|, \quad
              d_j = d \text{ or } q\,|x^0_j|

    ====== ================ ==================== ==========================================================
    symbol component        unit                 meaning
    ====== ================ ==================== ==========================================================
    x_j    ``x.raw``        column's own; ranks  the value of column j
    x^0_j  ``x.point``      column's own; ranks  the person's own value
    u, d   ``up, down``     column's own; levels how far it may move, as a number
    p, q   ``up, down``     none                 the same as a share
    ====== ================ ==================== ==========================================================

    The same as ``max_up`` and ``max_down`` of a :class:`Feature`, for one question. Shares are counted in decimal
    numbers and rounded down to the column's steps; of zero they allow no move. One row a column and side, with a cut
    at the last value that is allowed, where the reach goes beyond it; where the reach has no bound, the limit becomes
    one for good. A cell that is missing or holds a code is not bound, having moved from nowhere, and none that goes.
    Exact. Relaxed, a variable w >= 0, ``wider``, is added to how far every column may move.

    Parameters
    ----------
    columns
        One name or several; each column has the limits by itself.
    up, down
        A number in the column's unit (whole levels of an ordinal column), ``"20%"`` of the size of the person's own
        value, or None for any move to that side.
    name
        Name in exports and reports.
    further
        How much more than that each column may move.

    Raises
    ------
    UnknownNameError
        A column that the space does not have.
    InvalidTypeError
        ``columns`` that are no names, a limit that is no number.
    InvalidValueError
        No column or one twice, no limit or a negative one, text that is no percentage; a column of categories or truth
        values, of an ordinal one a percentage or part of a level.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.constraints import MaxMove
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("income", kind="integer", lower=0, upper=90_000),
    ...                       Feature("size", kind="ordinal", levels=("S", "M", "L"))])
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"income": 30_000, "size": "S"})
    >>> m.more = impose(MaxMove("income", up="20%"), m.x)
    >>> print(m.more.within["income", "up"].expr)  # the cut lies between 36,000 and 36,001
    1.0 - x.cut[income,'36000']  ==  1.0
    >>> m.near = impose(MaxMove("size", up=1), m.x)
    >>> print(m.near.within["size", "up"].expr)
    1.0 - x.at_least[size,L]  ==  1.0
    """

    columns: str | tuple[str, ...]
    up: Limit | None = field(default=None, kw_only=True)
    down: Limit | None = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    further: float = field(default=0.0, kw_only=True)
    manifest: ClassVar[Manifest] = Manifest(
        title="a longest move of some columns", formula="x0_j - d_j <= x_j <= x0_j + u_j", rule="MaxMove",
        features={"within": 0},
    )  # fmt: skip
    gives_bounds: ClassVar[bool] = True
    mends = True

    def __post_init__(self) -> None:
        given = self.columns
        named = (given,) if isinstance(given, str) else given
        columns = ListOf(_NO_COLUMNS, texts=True).require("MaxMove", "columns", named)
        if not columns or len(set(columns)) < len(columns):
            raise InvalidValueError("MaxMove", "columns, each once", f"columns is {given!r}", "Name some.")
        object.__setattr__(self, "columns", columns)
        for word, value in check_fields(self, _CHECKS).items():
            object.__setattr__(self, word, value)
        if self.up is None and self.down is None:
            raise InvalidValueError("MaxMove", "up, down, or both", "both are None", 'Give for example up="20%".')

    def check(self, space: FeatureSpace) -> None:
        """Refuse unknown columns, categories and truth values, and of ordinal columns shares and parts of levels."""
        for name in self.columns:
            if name not in space:
                raise UnknownNameError.among("MaxMove", "column", name, space.names)
            require_limits(f"MaxMove of column {name!r}", space[name].kind, up=self.up, down=self.down)

    def build(self, block: Any, x: Factual) -> None:
        """Add the rows ``within``, which leave no value beyond the limits."""
        rows = Rows(block, "within")
        for name in self.columns:
            at = x.coordinate(name)
            if at.is_filled_in:
                continue
            lowest, highest = self._ends(x.space[name], x.point[name])
            if isinstance(at, Numeric):
                self._bound(at, lowest, highest)
            if lowest > -math.inf:
                rows.add((name, "down"), at.at_least(lowest) + at.on_label, lower=1.0, upper=1.0)
            if highest < math.inf:
                rows.add((name, "up"), at.at_most(highest) + at.on_label, lower=1.0, upper=1.0)

    @staticmethod
    def _bound(at: Numeric, lowest: float, highest: float) -> None:
        """Let the limits be bounds where the reach lacks some: a cut and a coordinate are tied by finite ones only."""
        part = at.interval
        if math.isfinite(part.lower) and math.isfinite(part.upper):
            return
        first = part.ceil(lowest)
        last = part.floor(highest)
        if first <= last:  # else the rows say that there is nothing
            at.narrow(first, last)

    def relax(self, block: Any, x: Factual) -> Any:
        """Add the rows ``within``, whose limits may be off by ``wider``; return that amount."""
        block.wider = pyo.Var(domain=pyo.NonNegativeReals, initialize=0.0)
        rows = Rows(block, "within")
        for name in self.columns:
            at: AbstractCoordinate = x.coordinate(name)
            if at.is_filled_in:
                continue
            lowest, highest = self._ends(x.space[name], x.point[name])
            if lowest > -math.inf:
                rows.add((name, "down"), at.amount() + LinearForm(0.0, ((1.0, block.wider),)), lower=lowest)
            if highest < math.inf:
                rows.add((name, "up"), at.amount() + LinearForm(0.0, ((-1.0, block.wider),)), upper=highest)
        return block.wider

    def widened(self, by: float) -> Self:
        """Return the rule that lets each column move by so much more."""
        return replace(self, further=self.further + by)

    def _ends(self, feature: Feature, own: float) -> tuple[float, float]:
        """Return the lowest and the highest number, or rank, that the limits leave."""
        lowest, highest = ends_on_grid(self.down, self.up, own, feature.spacing)
        return lowest - self.further, highest + self.further

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        """Every column that the rule reads, once."""
        return tuple(self.columns)

    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return by how much the longest move is too long, in decimal numbers."""
        assert factual is not None  # noqa: S101 - needs_factual
        over = [0.0]
        for name in self.columns:
            before = factual[name]
            after = point[name]
            if space[name].is_label(before) or space[name].is_label(after):
                continue
            limit = self.up if after > before else self.down
            if limit is not None:
                over.append(excess(limit, before, after, self.further))
        return max(over)

    def keeps(self, space: FeatureSpace, factual: Mapping[str, float] | None, points: Floats) -> NDArray[np.bool_]:
        """Return which of the points (n, d) keep the rule, each value of a column looked at once."""
        alone = [replace(self, columns=(name,)) for name in self.columns]
        kept: NDArray[np.bool_] = np.all([AbstractRule.keeps(rule, space, factual, points) for rule in alone], axis=0)
        return kept

    def mended(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return points (n, d) with each move cut to its limit."""
        mended = points.copy()
        for name in self.columns:
            j = space.names.index(name)
            if space[name].is_label(factual[name]):
                continue
            first, last = self._ends(space[name], factual[name])
            steps = Interval(-math.inf, math.inf, space[name].spacing, factual[name])
            first = steps.ceil(first)
            last = steps.floor(last)
            is_label = space[name].are_labels(points[:, j])
            mended[:, j] = np.where(is_label, points[:, j], np.clip(points[:, j], first, last))
        return mended

    def sentence(self) -> str:
        """Return the rule in words."""
        limits = {"rise": self.up, "fall": self.down}
        sides = [f"{verb} {_words(limit)}" for verb, limit in limits.items() if limit is not None]
        more = f", and {digits(self.further)} more" if self.further else ""
        return f"{', '.join(self.columns)} may {' and '.join(sides)}{more}"


def _words(limit: Limit) -> str:
    if isinstance(limit, str):
        return f"by at most {limit} of today's value"
    return f"by at most {digits(limit)}"

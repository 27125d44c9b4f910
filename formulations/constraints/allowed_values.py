"""A few values that columns may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from ceopt.formulations.columns import AbstractCoordinate, Numeric
from ceopt.formulations.constraints.condition import ValueList
from ceopt.formulations.constraints.rule import RULE_NAME, AbstractRule, Floats, Point
from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.formulations.space.reachable import Interval, reach_of
from ceopt.formulations.tolerances import STEP_ROUNDINGS
from ceopt.solvers.checks import MappingOf, Moderate, Refusal, check_fields
from ceopt.solvers.errors import InvalidTypeError, UnknownNameError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["AllowedValues"]

_NO_MAPPING = Refusal("a mapping from columns to values", 'Write {"term": [12, 24]}.', error=InvalidTypeError)
_NO_VALUE = Refusal("a value for each column", "Name one, or leave the column out.", "the list of {name} is empty")
_CHECKS = {
    "name": RULE_NAME,
    "values": MappingOf(_NO_MAPPING, ValueList(empty=_NO_VALUE), empty=_NO_MAPPING, entry="column {key}"),
}


@final
@dataclass(frozen=True, slots=True)
class AllowedValues(AbstractRule):
    r"""Each of some columns takes one of the values listed for it.

    .. math::
        [x \ge v_1] = 1, \qquad [x > v_k] = [x \ge v_{k+1}] \;\; (k < m), \qquad [x > v_m] = 0
        \qquad\text{(a number)} \\
        \sum_{c \notin V} u_c = 0 \qquad\text{(levels)}

    ================ ========================= ======================================================
    symbol           component                 meaning
    ================ ========================= ======================================================
    v_1 < ... < v_m  ``values``                those in reach; the others drop out
    [x >= v], [x>v]  ``x.cut``                 binaries between v and its neighbours in reach
    u                ``x.level, x.at_least``   1 where the column takes a level (``x.coordinate``)
    V                ``values``                levels that are allowed
    ================ ========================= ======================================================

    A number: up to 2m binaries in order, of which m - 1 are free, and m + 1 rows; a grid in the sense of Ustun et al.
    with ordered binaries. Levels: one row. Exact, and literal: the answer's value is listed, also where the factual's
    is not. Where nothing listed is in reach there is no answer.

    Parameters
    ----------
    values
        Column -> values in raw units, or levels. On a column with steps a value means the one a rounding away.
    name
        Name in exports and reports.

    Raises
    ------
    UnknownNameError
        A column that does not exist.
    InvalidTypeError
        No mapping, no list, or a value of the wrong kind.
    InvalidValueError
        No column, an empty list, an unknown level, or a number that is missing or not finite.

    Notes
    -----
    A number without bounds gets the least and greatest value listed as its bounds, for good.

    References
    ----------
    Ustun, Spangher & Liu (2019), Actionable recourse in linear classification: the grid of actions.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.constraints import AllowedValues
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("term", kind="integer", lower=1, upper=60),
    ...                       Feature("area", kind="categorical", levels=("A", "B", "C"))])
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"term": 24, "area": "B"})
    >>> m.offer = impose(AllowedValues({"term": [12, 24, 60], "area": ["B", "C"]}), m.x)
    >>> for row in m.offer.allowed.values():
    ...     print(row.expr)
    x.cut[term,'11']  ==  1.0
    x.cut[term,'23'] - x.cut[term,'12']  ==  0.0
    x.cut[term,'59'] - x.cut[term,'24']  ==  0.0
    x.level[area,A]  ==  0.0
    """

    values: Mapping[str, Any]
    name: str | None = None
    manifest: ClassVar[Manifest] = Manifest(
        title="values that columns may take",
        formula="x_j in {v_1, ..., v_m}: cuts on both sides of each gap agree; sum_{c not in V} u_c = 0",
        reference="Ustun, Spangher & Liu 2019, grid of actions",
        rule="AllowedValues",
        features={"allowed": 0},
    )
    needs_factual: ClassVar[bool] = False
    takes_columns: ClassVar[bool] = True
    gives_bounds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", check_fields(self, _CHECKS)["values"])

    def check(self, space: FeatureSpace) -> None:
        """Refuse unknown columns, and values that a column cannot hold."""
        for name, some in self.values.items():
            if name not in space:
                raise UnknownNameError.among("AllowedValues", "column", name, space.names)
            for value in some:
                coordinate = space[name].to_coordinate(value)
                Moderate().require("AllowedValues", f"a value of column {name!r}", coordinate)

    def build(self, block: Any, x: AbstractColumns) -> None:
        """Add the rows ``allowed``."""
        for name, some in self.values.items():
            at = x.coordinate(name)
            write_one_of(Rows(block, "allowed"), at, [at.feature.to_coordinate(value) for value in some])

    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return the greatest distance from a value listed (1 for levels)."""
        del factual
        return max(_distance(space[name], some, point[name]) for name, some in self.values.items())

    @property
    def mends(self) -> bool:
        """Always: a number between two values listed is next to one of them."""
        return True

    def mended(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return points (n, d) with each number at the nearest value listed that is in reach."""
        mended = points.copy()
        reach = reach_of(space, factual)
        for j, feature in enumerate(space):
            part = reach[feature.name]
            if feature.name in self.values and isinstance(part, Interval):
                some = np.array(part.members([feature.to_coordinate(v) for v in self.values[feature.name]]))
                if len(some):
                    middles = (some[1:] + some[:-1]) / 2.0
                    mended[:, j] = some[np.searchsorted(middles, points[:, j])]
        return mended

    def sentence(self) -> str:
        """Return the rule in words."""
        return "; ".join(f"{name} is {_words(some)}" for name, some in self.values.items())


def write_one_of(rows: Rows, at: AbstractCoordinate, values: list[float]) -> None:
    """Write the rows that keep a coordinate at one of some values (ranks of levels)."""
    if not isinstance(at, Numeric):
        barred = set(range(len(at.feature.levels))) - {int(value) for value in values}
        rows.add(at.name, at.indicator(barred), lower=0.0, upper=0.0)
        return
    known = at.interval.members(values)
    if not known:
        rows.add((at.name, "none in reach"), LinearForm(1.0), upper=0.0)
        return
    at.keep_within(known[0], known[-1])
    at.close(known, rows.block)
    rows.add((at.name, known[0], "least"), at.at_least(known[0]), lower=1.0, upper=1.0)
    for low, high in pairwise(known):
        between = at.at_least(high) + at.at_most(low).complement().scaled(-1.0)
        rows.add((at.name, high, "next"), between, lower=0.0, upper=0.0)
    rows.add((at.name, known[-1], "greatest"), at.at_most(known[-1]), lower=1.0, upper=1.0)


def _distance(feature: Feature, some: tuple[Any, ...], value: float) -> float:
    if feature.is_finite:
        return 0.0 if feature.levels[int(value)] in some else 1.0
    off, nearest = min((abs(value - float(other)), float(other)) for other in some)
    if feature.step is None:
        rounding = 0.0
    else:
        rounding = STEP_ROUNDINGS * max(abs(value), abs(nearest))
    return off if off > rounding else 0.0


def _words(some: tuple[Any, ...]) -> str:
    shown = ", ".join(map(repr, some[:6]))
    if len(some) == 1:
        return shown
    return f"one of {shown}" if len(some) <= 6 else f"one of {shown}, ... ({len(some)} values)"

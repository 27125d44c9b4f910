"""Values that columns may take: together, from one level to another, or each a few of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import pandas as pd
import pyomo.environ as pyo

from ceopt.formulations.columns import AbstractCoordinate, Numeric
from ceopt.formulations.constraints.if_then import ValueList
from ceopt.formulations.constraints.rule import BEYOND, RULE_NAME, AbstractRule, Beyond, Point, no_further_words
from ceopt.formulations.linear_form import Rows, sum_form
from ceopt.formulations.space.feature import MISSING, beyond_rounding, is_gap
from ceopt.formulations.space.reachable import Interval, reach_of
from ceopt.formulations.space.space import column_coordinates
from ceopt.formulations.tolerances import STEP_ROUNDINGS
from ceopt.solvers.checks import Floats, Instance, MappingOf, Moderate, Refusal, Text, check_fields
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ceopt.formulations.columns.columns_block import AbstractColumns, Factual
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

# ==== AllowedRows: some columns together take the values of one row of a table ========================================

_NO_NAME = Refusal("names of columns", "Write them as text.", "one is {value}", InvalidTypeError)
_NO_FRAME = Refusal("a DataFrame", "Name its columns.", "{name} is {type}", InvalidTypeError)
_ROWS_CHECKS = {
    "name": RULE_NAME,
    "columns": ValueList(Text(_NO_NAME)),
    "frame": Instance(pd.DataFrame, _NO_FRAME),
    "beyond": BEYOND,
}


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AllowedRows(AbstractRule):
    r"""Some columns together take the values of one row of a table.

    .. math::
        \sum_k r_k = 1, \qquad r \ge 0, \qquad [x_j = v] = \sum_{k:\, t_{kj} = v} r_k
        \quad\text{for every column j and value v in the table}

    ========= ======================= ===========================================================
    symbol    component               meaning
    ========= ======================= ===========================================================
    t         ``frame``               distinct rows whose values are all in reach; the person's own as well, with
                                      ``beyond="no_further"``
    r_k       ``row[k]``              1 iff row k is taken; continuous
    [x_j = v] ``x.cut``, ``x.level``  a sum of the column's binaries, up to two cuts for a number
    ========= ======================= ===========================================================

    A variable per row of the table, and a row per column and value. Integral because the columns' binaries are, and the
    hull of the table's rows by themselves. Exact, and literal: the answer's values are a row of the table, also where
    the factual's are not. Where no row is in reach there is no answer.

    With ``beyond="no_further"`` who breaks the rule today may keep the combination that they have, whole, or take a row
    of the table. Between combinations there is no distance, so that nothing in between counts as nearer.

    A missing cell of the table stands for a missing cell of the person, and a code for that code.

    Parameters
    ----------
    columns
        Names of columns, one or more.
    frame
        The table, in raw units; other columns of it do not count.
    name
        Name in exports and reports.
    beyond
        What is asked of a person who breaks the rule today: "meet" it, or go "no_further".

    Raises
    ------
    UnknownNameError
        A column that the space, or the frame, does not have; a word for ``beyond`` that does not exist.
    InvalidTypeError
        No list of columns, no frame, or values of the wrong kind.
    InvalidValueError
        No column or one twice, no row, an unknown level, a missing value in a column that may not be missing.

    Notes
    -----
    A number without bounds gets the least and greatest value of the table as its bounds, for good.

    References
    ----------
    The vertex form of a union of polytopes, each of them a point: Balas (1998), Disjunctive programming: properties of
    the convex hull of feasible points.

    Examples
    --------
    >>> import pandas as pd, pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.constraints import AllowedRows
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("job", kind="categorical", levels=("cook", "nurse", "vet")),
    ...                       Feature("degree", kind="binary", levels=(False, True))])
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"job": "cook", "degree": False})
    >>> table = pd.DataFrame({"job": ["cook", "nurse", "nurse"], "degree": [False, False, True]})
    >>> m.real = impose(AllowedRows(["job", "degree"], table), m.x)
    >>> for row in (*m.real.one_row.values(), *m.real.agree.values()):
    ...     print(row.expr)
    real.row[0] + real.row[1] + real.row[2]  ==  1.0
    x.level[job,cook] - real.row[0]  ==  0.0
    x.level[job,nurse] - real.row[1] - real.row[2]  ==  0.0
    1.0 - x.level[degree,True] - real.row[0] - real.row[1]  ==  0.0
    x.level[degree,True] - real.row[2]  ==  0.0
    """

    columns: Any
    frame: Any
    name: str | None = None
    beyond: Beyond = field(default="meet", kw_only=True)
    manifest: ClassVar[Manifest] = Manifest(
        title="values that columns take together",
        formula="sum_k r_k = 1; [x_j = v] = sum of the r_k whose row has v in column j",
        reference="vertex form of a union of points",
        rule="AllowedRows",
        features={"agree": 0},
    )
    gives_bounds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        columns = check_fields(self, _ROWS_CHECKS)["columns"]
        if not columns or len(set(columns)) < len(columns):
            raise InvalidValueError("AllowedRows", "columns, each once", f"columns is {columns!r}", "Name some.")
        for name in columns:
            if name not in self.frame.columns:
                raise UnknownNameError.among("AllowedRows", "column of the frame", name, self.frame.columns)
        if not len(self.frame):
            raise InvalidValueError("AllowedRows", "a row that is allowed", "the frame has no rows", "Add some.")
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "frame", self.frame[list(columns)].copy())

    @property
    def needs_factual(self) -> bool:  # type: ignore[override]
        """Whether the person's own combination is allowed."""
        return self.beyond == "no_further"

    @property
    def takes_columns(self) -> bool:  # type: ignore[override]
        """Whether it holds of any row, whoever the person is."""
        return self.beyond == "meet"

    def check(self, space: FeatureSpace) -> None:
        """Refuse unknown columns, and values that a column cannot hold."""
        for name in self.columns:
            if name not in space:
                raise UnknownNameError.among("AllowedRows", "column", name, space.names)
        self._table(space)

    def _table(self, space: FeatureSpace) -> Floats:
        """Return the rows as coordinates, (n, columns)."""
        return np.stack([column_coordinates(space[name], self.frame[name]) for name in self.columns], axis=1)

    def _in_reach(self, x: AbstractColumns) -> Floats:
        """Return the distinct rows whose values are all in reach, as coordinates there."""
        table = self._table(x.space)
        if self.beyond == "no_further":
            own = [x.coordinate(name).x0 for name in self.columns]
            table = np.concatenate([table, [own]])
        kept = np.ones(len(table), dtype=bool)
        for j, name in enumerate(self.columns):
            at = x.coordinate(name)
            for value in np.unique(table[:, j]).tolist():
                known: float | None = value
                if isinstance(at, Numeric) and not at.feature.is_label(value):
                    known = at.interval.member(value)
                elif not x.reach[name].holds(value):
                    known = None
                has_value = table[:, j] == value
                if known is None:
                    kept &= ~has_value
                else:
                    table[has_value, j] = known
        return np.unique(table[kept], axis=0)

    def build(self, block: Any, x: AbstractColumns) -> None:
        """Add the weights ``row`` and the rows ``one_row`` and ``agree``."""
        table = self._in_reach(x)
        block.row = pyo.Var(range(len(table)), domain=pyo.NonNegativeReals)
        Rows(block, "one_row").add("any", sum_form(block.row.values()), lower=1.0, upper=1.0)
        if not len(table):
            return
        for j, name in enumerate(self.columns):
            at = x.coordinate(name)
            values = np.unique(table[:, j]).tolist()
            if isinstance(at, Numeric):
                _keep_to(at, [value for value in values if not at.feature.is_label(value)], block)
            for value in values:
                taken = sum_form(map(block.row.__getitem__, np.flatnonzero(table[:, j] == value).tolist()))
                word = value
                if value == MISSING:
                    word = "missing"
                elif at.feature.is_finite:
                    word = at.feature.levels[int(value)]
                Rows(block, "agree").add((name, word), at.equals(value) + taken.scaled(-1.0), lower=0.0, upper=0.0)

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        """Every column that the rule reads, once."""
        return tuple(self.columns)

    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return in how many columns the nearest row of the table, or the person's own if that may stay, differs."""
        if self.beyond == "no_further":
            assert factual is not None  # noqa: S101 - needs_factual
            if all(point[name] == factual[name] for name in self.columns):
                return 0.0
        agreeing = np.zeros(len(self.frame))
        for name in self.columns:
            feature = space[name]
            value = point[name]
            if value == MISSING:
                agreeing += self.frame[name].isna().to_numpy()
            elif feature.is_finite:
                own = feature.levels[int(value)]
                agreeing += [not is_gap(level) and level == own for level in self.frame[name].tolist()]
            else:
                off = np.abs(self.frame[name].to_numpy(dtype=float, na_value=np.nan) - value)
                agreeing += off <= (0.0 if feature.step is None else STEP_ROUNDINGS * abs(value))
        return float(len(self.columns) - agreeing.max())

    def __repr__(self) -> str:
        beyond = "" if self.beyond == "meet" else f", beyond={self.beyond!r}"
        return f"AllowedRows({list(self.columns)!r}, <{len(self.frame)} rows>{beyond})"

    def sentence(self) -> str:
        """Return the rule in words."""
        sentence = f"{', '.join(self.columns)} together are one of {len(self.frame)} rows of a table"
        if self.beyond == "meet":
            return sentence
        return sentence + no_further_words()


# ==== AllowedTransitions: from which level a column may go to which ===================================================

_NO_LEVELS = Refusal("a mapping from levels to levels", 'Write {"rent": ["own"]}.', error=InvalidTypeError)
_NO_TRANSITION = Refusal(
    "a transition",
    "Name one, or make the column immutable: space.update(name, mutable=False).",
    "{name} is empty",
)
_TRANSITIONS_CHECKS = {
    "name": RULE_NAME,
    "transitions": MappingOf(_NO_LEVELS, ValueList(), empty=_NO_TRANSITION, entry="level {key}"),
}


@final
@dataclass(frozen=True, slots=True)
class AllowedTransitions(AbstractRule):
    r"""A column of levels stays where it is, or goes to a level that is listed for the factual's.

    .. math:: \sum_{c \notin T(c^0) \cup \{c^0\}} u_c = 0

    Where the column may be missing, a missing cell is one of its levels, written None.

    ====== ========================= ===================================================
    symbol component                 meaning
    ====== ========================= ===================================================
    c^0    ``x.point``               the factual's level
    T      ``transitions``           level -> levels that it may become
    u      ``x.level, x.at_least``   1 where the column takes level c
    ====== ========================= ===================================================

    One row. Exact. A level that is no key, or has an empty list, may only stay.

    Parameters
    ----------
    column
        A categorical, ordinal or binary column.
    transitions
        Level -> levels.
    name
        Name in exports and reports.

    Raises
    ------
    UnknownNameError
        A column that does not exist.
    InvalidTypeError
        A column of numbers; no mapping, or no list.
    InvalidValueError
        No transition, or one from or to a level that the column does not have.

    References
    ----------
    Maragno, Roeber & Birbil (2022), (6): actionability.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.constraints import AllowedTransitions
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("home", kind="categorical", levels=("rent", "own", "free", "none"))])
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"home": "rent"})
    >>> m.move = impose(AllowedTransitions("home", {"rent": ["own"], "none": ["rent", "free"]}), m.x)
    >>> print(m.move.barred["home"].expr)
    x.level[home,free] + x.level[home,none]  ==  0.0
    """

    column: str
    transitions: Mapping[Any, Any]
    name: str | None = None
    manifest: ClassVar[Manifest] = Manifest(
        title="transitions between levels",
        formula="sum of the levels not listed for the factual's = 0",
        reference="Maragno, Roeber & Birbil 2022, (6)",
        rule="AllowedTransitions",
        features={"barred": 0},
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "transitions", check_fields(self, _TRANSITIONS_CHECKS)["transitions"])

    def check(self, space: FeatureSpace) -> None:
        """Refuse an unknown column or level, and a column of numbers."""
        if self.column not in space:
            raise UnknownNameError.among("AllowedTransitions", "column", self.column, space.names)
        feature = space[self.column]
        if not feature.is_finite:
            raise InvalidTypeError(
                "AllowedTransitions", "a column with levels", f"column {self.column!r} is {feature.kind}",
                "Use AllowedValues, a direction or bounds.",
            )  # fmt: skip
        for level, to in self.transitions.items():
            for each in (level, *to):
                feature.to_coordinate(each)

    def build(self, block: Any, x: Factual) -> None:
        """Add the row ``barred``."""
        at = x.coordinate(self.column)
        reached = {at.x0}
        for level, to in self.transitions.items():
            if at.feature.to_coordinate(level) == at.x0:
                reached |= set(map(at.feature.to_coordinate, to))
        barred = {*map(float, range(len(at.feature.levels))), MISSING} - reached
        Rows(block, "barred").add(self.column, at.indicator(barred), lower=0.0, upper=0.0)

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        """Every column that the rule reads, once."""
        return (self.column,)

    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return 1 where the column takes a level that is not listed."""
        assert factual is not None  # noqa: S101 - needs_factual
        feature = space[self.column]
        before, after = (feature.from_coordinate(part[self.column]) for part in (factual, point))
        if factual[self.column] == point[self.column]:
            return 0.0
        for level, to in self.transitions.items():
            if _is_same(level, before) and any(_is_same(other, after) for other in to):
                return 0.0
        return 1.0

    def sentence(self) -> str:
        """Return the rule in words."""
        ways = (f"{level!r} to {' or '.join(map(repr, to))}" for level, to in self.transitions.items() if to)
        if any(self.transitions.values()):
            return f"{self.column} stays, or goes from {', '.join(ways)}"
        return f"{self.column} stays"


# ==== AllowedValues: each of some columns takes one of a few values ===================================================

_NO_VALUES = Refusal("a mapping from columns to values", 'Write {"term": [12, 24]}.', error=InvalidTypeError)
_NO_VALUE = Refusal("a value for each column", "Name one, or leave the column out.", "the list of {name} is empty")
_VALUES_CHECKS = {
    "name": RULE_NAME,
    "values": MappingOf(_NO_VALUES, ValueList(empty=_NO_VALUE), empty=_NO_VALUES, entry="column {key}"),
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

    It is a rule of amounts. A column that is missing or on a code keeps it: of a number that may be so, b, the sum of
    ``x.missing`` and ``x.code``, is added to what a row has to reach, as in :math:`[x \ge v_1] + b = 1`.

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
    mends = True  # a number between two values listed is next to one of them

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", check_fields(self, _VALUES_CHECKS)["values"])

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
            write_one_of(Rows(block, "allowed"), at, list(map(at.feature.to_coordinate, some)))

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        """Every column that the rule reads, once."""
        return tuple(self.values)

    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return the greatest distance from a value listed (1 for levels); none of what is no amount."""
        del factual
        return max(_distance(space[name], some, point[name]) for name, some in self.values.items())

    def keeps(self, space: FeatureSpace, factual: Mapping[str, float] | None, points: Floats) -> NDArray[np.bool_]:
        """Return which of the points (n, d) keep the rule, each value of a column looked at once."""
        alone = [replace(self, values={name: some}) for name, some in self.values.items()]
        kept: NDArray[np.bool_] = np.all([AbstractRule.keeps(rule, space, factual, points) for rule in alone], axis=0)
        return kept

    def mended(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return points (n, d) with each number at the nearest value listed that is in reach."""
        mended = points.copy()
        reach = reach_of(space, factual)
        for j, feature in enumerate(space):
            part = reach[feature.name]
            if feature.name in self.values and isinstance(part, Interval):
                some = np.array(part.members(map(feature.to_coordinate, self.values[feature.name])))
                if len(some):
                    middles = (some[1:] + some[:-1]) / 2.0
                    nearest = some[np.searchsorted(middles, points[:, j])]
                    mended[:, j] = np.where(feature.are_labels(points[:, j]), points[:, j], nearest)
        return mended

    def sentence(self) -> str:
        """Return the rule in words."""
        return "; ".join(f"{name} is {_words(some)}" for name, some in self.values.items())


def write_one_of(rows: Rows, at: AbstractCoordinate, values: list[float]) -> None:
    """Write the rows that keep a coordinate at one of some values (ranks of levels), or at a label."""
    if not isinstance(at, Numeric):
        barred = {rank for rank in range(len(at.feature.levels)) if not at.feature.is_code(rank)} - set(values)
        rows.add(at.name, at.indicator(barred), lower=0.0, upper=0.0)
        return
    known = at.interval.members(value for value in values if not at.feature.is_label(value))
    if not known:
        rows.add((at.name, "none in reach"), at.on_label, lower=1.0)
        return
    _keep_to(at, known, rows.block)
    rows.add((at.name, known[0], "least"), at.at_least(known[0]) + at.on_label, lower=1.0, upper=1.0)
    for low, high in pairwise(known):
        between = at.at_least(high) + at.at_most(low).complement().scaled(-1.0)
        rows.add((at.name, high, "next"), between + at.on_label, lower=0.0, upper=0.0)
    rows.add((at.name, known[-1], "greatest"), at.at_most(known[-1]) + at.on_label, lower=1.0, upper=1.0)


def _keep_to(at: Numeric, amounts: list[float], block: Any) -> None:
    """Note that a block's rows leave a number some amounts, ascending, and labels, beside which it rests at home."""
    if not amounts:
        return
    ends = (amounts[0], amounts[-1])
    if at.labels_here:
        ends = (min(*ends, at.home), max(*ends, at.home))
    at.keep_within(*ends)
    at.close(amounts, block)


def _is_same(one: Any, other: Any) -> bool:
    """Tell whether two levels, or gaps, are the same."""
    if is_gap(one) or is_gap(other):
        return is_gap(one) and is_gap(other)
    return bool(one == other)


def _distance(feature: Feature, some: tuple[Any, ...], value: float) -> float:
    if feature.is_label(value):
        return 0.0
    if feature.is_finite:
        return float(feature.levels[int(value)] not in some)
    amounts = [float(other) for other in some if not is_gap(other) and other not in feature.codes]
    if not amounts:
        return math.inf
    off, nearest = min((abs(value - other), other) for other in amounts)
    rounding = 0.0
    if feature.step is not None:
        rounding = STEP_ROUNDINGS * max(abs(value), abs(nearest))
    return beyond_rounding(off, rounding)


def _words(some: tuple[Any, ...]) -> str:
    shown = ", ".join(map(repr, some[:6]))
    if len(some) == 1:
        return shown
    if len(some) <= 6:
        return f"one of {shown}"
    return f"one of {shown}, ... ({len(some)} values)"

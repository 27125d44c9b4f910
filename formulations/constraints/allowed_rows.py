"""Values that columns may take together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import pandas as pd
import pyomo.environ as pyo

from ceopt.formulations.columns import Numeric
from ceopt.formulations.constraints.condition import ValueList
from ceopt.formulations.constraints.rule import RULE_NAME, AbstractRule, Floats
from ceopt.formulations.linear_form import LinearForm, Rows, total
from ceopt.formulations.space.space import column_coordinates
from ceopt.formulations.tolerances import STEP_ROUNDINGS
from ceopt.solvers.checks import Instance, Refusal, Text, check_fields
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["AllowedRows"]

_NO_NAME = Refusal("names of columns", "Write them as text.", "one is {value}", InvalidTypeError)
_NO_FRAME = Refusal("a DataFrame", "Name its columns.", "{name} is {type}", InvalidTypeError)
_CHECKS = {
    "name": RULE_NAME,
    "columns": ValueList(Text(_NO_NAME)),
    "frame": Instance(pd.DataFrame, _NO_FRAME),
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
    t         ``frame``               distinct rows whose values are all in reach
    r_k       ``row[k]``              1 iff row k is taken; continuous
    [x_j = v] ``x.cut``, ``x.level``  a sum of the column's binaries, up to two cuts for a number
    ========= ======================= ===========================================================

    A variable per row of the table, and a row per column and value. Integral because the columns' binaries are, and the
    hull of the table's rows by themselves. Exact, and literal: the answer's values are a row of the table, also where
    the factual's are not. Where no row is in reach there is no answer.

    Parameters
    ----------
    columns
        Names of columns, one or more.
    frame
        The table, in raw units; other columns of it do not count.
    name
        Name in exports and reports.

    Raises
    ------
    UnknownNameError
        A column that the space, or the frame, does not have.
    InvalidTypeError
        No list of columns, no frame, or values of the wrong kind.
    InvalidValueError
        No column or one twice, no row, an unknown level, a missing value.

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
    manifest: ClassVar[Manifest] = Manifest(
        title="values that columns take together",
        formula="sum_k r_k = 1; [x_j = v] = sum of the r_k whose row has v in column j",
        reference="vertex form of a union of points",
        rule="AllowedRows",
        features={"agree": 0},
    )
    needs_factual: ClassVar[bool] = False
    takes_columns: ClassVar[bool] = True
    gives_bounds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        columns = check_fields(self, _CHECKS)["columns"]
        if not columns or len(set(columns)) < len(columns):
            raise InvalidValueError("AllowedRows", "columns, each once", f"columns is {columns!r}", "Name some.")
        for name in columns:
            if name not in self.frame.columns:
                raise UnknownNameError.among("AllowedRows", "column of the frame", name, self.frame.columns)
        if not len(self.frame):
            raise InvalidValueError("AllowedRows", "a row that is allowed", "the frame has no rows", "Add some.")
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "frame", self.frame[list(columns)].copy())

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
        kept = np.ones(len(self.frame), dtype=bool)
        for j, name in enumerate(self.columns):
            at = x.coordinate(name)
            for value in np.unique(table[:, j]).tolist():
                if isinstance(at, Numeric):
                    known = at.interval.members([value])
                elif x.reach[name].holds(value):
                    known = [value]
                else:
                    known = []
                here = table[:, j] == value
                kept &= ~here | bool(known)
                table[here, j] = known[0] if known else value
        return np.unique(table[kept], axis=0)

    def build(self, block: Any, x: AbstractColumns) -> None:
        """Add the weights ``row`` and the rows ``one_row`` and ``agree``."""
        table = self._in_reach(x)
        block.row = pyo.Var(range(len(table)), domain=pyo.NonNegativeReals)
        weights = [LinearForm(0.0, ((1.0, block.row[k]),)) for k in range(len(table))]
        Rows(block, "one_row").add("any", total(weights), lower=1.0, upper=1.0)
        for j, name in enumerate(self.columns if len(table) else ()):
            at = x.coordinate(name)
            values = np.unique(table[:, j]).tolist()
            if isinstance(at, Numeric):
                at.keep_within(values[0], values[-1])
                at.close(values, block)
            for value in values:
                taken = total(weights[k] for k in np.flatnonzero(table[:, j] == value).tolist())
                if at.feature.is_finite:
                    word = at.feature.levels[int(value)]
                else:
                    word = value
                Rows(block, "agree").add((name, word), at.equals(value) + taken.scaled(-1.0), lower=0.0, upper=0.0)

    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return in how many columns the nearest row of the table differs."""
        del factual
        agreeing = np.zeros(len(self.frame))
        for name in self.columns:
            feature = space[name]
            value = point[name]
            if feature.is_finite:
                agreeing += [level == feature.levels[int(value)] for level in self.frame[name].tolist()]
            else:
                off = np.abs(self.frame[name].to_numpy(dtype=float) - value)
                agreeing += off <= (0.0 if feature.step is None else STEP_ROUNDINGS * abs(value))
        return float(len(self.columns) - agreeing.max())

    def __repr__(self) -> str:
        return f"AllowedRows({list(self.columns)!r}, <{len(self.frame)} rows>)"

    def sentence(self) -> str:
        """Return the rule in words."""
        return f"{', '.join(self.columns)} together are one of {len(self.frame)} rows of a table"

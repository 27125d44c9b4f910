"""Values that columns may take together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import pandas as pd
import pyomo.environ as pyo

from ceopt.formulations.columns import Numeric
from ceopt.formulations.constraints.condition import ValueList
from ceopt.formulations.constraints.rule import BEYOND, RULE_NAME, AbstractRule, Beyond, Floats, no_further_words
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
        """Return in how many columns the nearest row of the table, or the person's own if that may stay, differs."""
        if self.beyond == "no_further":
            assert factual is not None  # noqa: S101 - needs_factual
            if all(point[name] == factual[name] for name in self.columns):
                return 0.0
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
        beyond = "" if self.beyond == "meet" else f", beyond={self.beyond!r}"
        return f"AllowedRows({list(self.columns)!r}, <{len(self.frame)} rows>{beyond})"

    def sentence(self) -> str:
        """Return the rule in words."""
        sentence = f"{', '.join(self.columns)} together are one of {len(self.frame)} rows of a table"
        return sentence + no_further_words() if self.beyond == "no_further" else sentence

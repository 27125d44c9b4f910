"""Columns of 0 and 1 of which one is 1: a category that was made into columns by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from ceopt.formulations.columns import Free
from ceopt.formulations.columns.columns_block import Factual
from ceopt.formulations.constraints.allowed import write_one_of
from ceopt.formulations.constraints.if_then import ValueList
from ceopt.formulations.constraints.rule import RULE_NAME, AbstractRule, Point, active_ones
from ceopt.formulations.digits import digits
from ceopt.formulations.linear_form import Rows, total
from ceopt.solvers.checks import Floats, Refusal, Text, check_fields
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns
    from ceopt.formulations.space.space import FeatureSpace

_NO_NAME = Refusal("names of columns", "Write them as text.", "one is {value}", InvalidTypeError)
_CHECKS = {"name": RULE_NAME, "columns": ValueList(Text(_NO_NAME))}


@final
@dataclass(frozen=True, slots=True)
class ExactlyOne(AbstractRule):
    r"""Of some columns of 0 and 1 exactly one is 1, as one-hot encoding leaves a category.

    .. math:: \sum_j [x_j = 1] = 1, \qquad [x_j = 0] + [x_j = 1] = 1 \quad\text{for each number}

    ========= ================================= ===================================================
    symbol    component                         meaning
    ========= ================================= ===================================================
    [x_j = v] ``x.level``, ``x.cut``            a binary column's own, or up to two cuts of a number
    \         row ``one``                       the sum
    \         rows ``zero_or_one``              of numbers: up to three each
    ========= ================================= ===================================================

    One row, and for numbers (0/1 as integers or floats) up to three each. Exact.

    **A move between two is one change.** Where the person's own row has one 1, as the rule wants it, the column that
    gives it up is no change of its own: :class:`MaxChanges`, ``x.n_changed`` and every cost count the column that takes
    it, with that column's weight for a move up and its scale. So l0 and ``Changes`` count 1, and l1 charges the move
    once. "distinct", "support" and :class:`Apart` tell answers apart as over a category: whatever takes the 1, the
    support is the same, and another column that takes it is another answer. In a row with no 1, or with several, moves
    count as they are. Answers go on to list both columns as changed.

    Parameters
    ----------
    columns
        Names of columns, one or more: binary ones, of which the second level counts as 1, or numbers from 0 to 1.
    name
        Name in exports and reports.

    Raises
    ------
    UnknownNameError
        A column that does not exist.
    InvalidTypeError
        No list of columns; a categorical or an ordinal column; over a block that already has a cost or a count of
        changes, or whose causal model charges the column that gives up the 1 (when built).
    InvalidValueError
        No column, or one twice; a number with a bound outside 0 and 1; a column that may be missing or on a code for
        the person (when built).

    Notes
    -----
    A number without bounds gets 0 and 1 as its bounds, for good.

    References
    ----------
    The rows of a special ordered set of binaries: Beale & Tomlin (1970), and Ustun, Spangher & Liu (2019) of recourse
    over one-hot columns.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt import MaxChanges
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.constraints import ExactlyOne
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> names = ("red", "blue", "green")
    >>> space = FeatureSpace([Feature(name, kind="binary", levels=(0, 1)) for name in names])
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"red": 1, "blue": 0, "green": 0})
    >>> m.colour = impose(ExactlyOne(names), m.x)
    >>> m.few = impose(MaxChanges(1), m.x)
    >>> print(m.colour.one["columns"].expr)
    x.level[red,1] + x.level[blue,1] + x.level[green,1]  ==  1.0
    >>> print(m.few.budget["changes"].expr)  # red, which gives up the 1, is no change of its own
    (x.level[blue,1]) + (x.level[green,1])  <=  1.0
    """

    columns: Any
    name: str | None = None
    manifest: ClassVar[Manifest] = Manifest(
        title="exactly one of some 0/1 columns is 1",
        formula="sum_j [x_j = 1] = 1",
        reference="Beale & Tomlin 1970, special ordered sets",
        rule="ExactlyOne",
        features={"zero_or_one": 0},
    )
    needs_factual: ClassVar[bool] = False
    takes_columns: ClassVar[bool] = True
    gives_bounds: ClassVar[bool] = True
    mends = True  # who takes a 1 gives up another

    def __post_init__(self) -> None:
        columns = check_fields(self, _CHECKS)["columns"]
        if not columns or len(set(columns)) < len(columns):
            raise InvalidValueError("ExactlyOne", "columns, each once", f"columns is {columns!r}", "Name some.")
        object.__setattr__(self, "columns", columns)

    def check(self, space: FeatureSpace) -> None:
        """Refuse unknown columns, and those whose values are not 0 and 1."""
        for name in self.columns:
            if name not in space:
                raise UnknownNameError.among("ExactlyOne", "column", name, space.names)
            feature = space[name]
            kind = feature.kind
            if kind in {"categorical", "ordinal"}:
                then = "Leave it out: a categorical column takes one of its levels by itself."
                raise InvalidTypeError("ExactlyOne", "columns of 0 and 1", f"column {name!r} is {kind}", then)
            low, high = feature.lower, feature.upper
            if (math.isfinite(low) or math.isfinite(high)) and not 0.0 <= low <= high <= 1.0:
                but = f"column {name!r} goes from {digits(low)} to {digits(high)}"
                raise InvalidValueError("ExactlyOne", "columns of 0 and 1", but, "Leave it out, or correct its bounds.")

    # ---- the program -------------------------------------------------------------------------------------------------
    def needs_amount(self, space: FeatureSpace, name: str, label: float) -> bool:
        """Whether the column is one of them: always."""
        del space, name, label
        return True

    def build(self, block: Any, x: AbstractColumns) -> None:
        """Add the rows ``one`` and ``zero_or_one``, and let the column that gives up the 1 go free."""
        ones = []
        for name in self.columns:
            at = x.coordinate(name)
            if not at.feature.is_finite:
                write_one_of(Rows(block, "zero_or_one"), at, [0.0, 1.0])
            ones.append(at.equals(1.0))
        Rows(block, "one").add("columns", total(ones), lower=1.0, upper=1.0)
        if isinstance(x, Factual):
            for name in self.given_up(x.point):
                self._free(x, name)

    def _free(self, x: Factual, name: str) -> None:
        if isinstance(x.charge_of(name), Free):  # imposed before
            return
        if x.is_charged or x.is_counted:
            raise InvalidTypeError(
                "ExactlyOne", "to be imposed before changes are counted", "the Factual block has a cost or a count",
                "Impose the rule first: it says what counts as one change.",
            )  # fmt: skip
        if name in x.charges:
            raise InvalidTypeError(
                "ExactlyOne", "columns without an equation", f"column {name!r} follows from others by a causal model",
                "Leave the equation out, or the rule.",
            )  # fmt: skip
        x.charges[name] = Free()

    # ---- plain numbers -----------------------------------------------------------------------------------------------
    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        """Every column that the rule reads, once."""
        return tuple(self.columns)

    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return by how many the ones are too many or too few, plus the numbers that are neither 0 nor 1."""
        del space, factual
        values = [point[name] for name in self.columns]
        ones = values.count(1.0)
        others = len(values) - ones - values.count(0.0)
        return float(abs(ones - 1) + others)

    def changes_together(self) -> tuple[str, ...]:
        """Return the columns."""
        return tuple(self.columns)

    def given_up(self, factual: Point) -> tuple[str, ...]:
        """Return the column whose own leaving is no change; none in a row that breaks the rule."""
        return tuple(active_ones([self.columns], factual))

    def unpriced(self, space: FeatureSpace) -> frozenset[str]:
        """Return the columns, of which one may move without a price."""
        del space
        return frozenset(self.columns)

    def charged(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return points (n, d) with the column that gives up the 1 as it was."""
        charged = points.copy()
        for name in self.given_up(factual):
            charged[:, space.names.index(name)] = factual[name]
        return charged

    def mended(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return points (n, d) whose one 1 is where a point newly has one, or else where the factual has it."""
        mended = points.copy()
        places = list(map(space.names.index, self.columns))
        home = np.array([factual[name] for name in self.columns])
        ones = points[:, places] == 1.0
        others = ~ones & (points[:, places] != 0.0)
        wrong = (ones.sum(axis=1) != 1) | others.any(axis=1)
        taken = ones & (home != 1.0)
        for k in np.flatnonzero(wrong):
            first = next(filter(np.any, (taken[k], ones[k])), home == 1.0)
            row = np.zeros(len(places))
            row[np.flatnonzero(first)[:1]] = 1.0
            mended[k, places] = row
        return mended

    def sentence(self) -> str:
        """Return the rule in words."""
        return f"exactly one of {', '.join(self.columns)} is 1"

"""Answers that differ as people mean it: not what an earlier one changes and more, nor the same ways again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, final

import pyomo.environ as pyo

from ceopt.formulations.columns import Category, Numeric, Ranked
from ceopt.formulations.constraints.diversity.diversity import (
    AbstractDiversity,
    Point,
    changed_columns,
    joined,
    stood_for,
)
from ceopt.formulations.linear_form import LinearForm, Rows, total
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.columns import AbstractCoordinate
    from ceopt.formulations.recourse_program import RecourseProgram
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["Distinct"]

_MANIFEST = Manifest(
    title="distinct from an earlier answer",
    formula="sum_{j in S} w_j <= |S| - 1; z_i + sum_{j in S} z_j <= |S| for i not in S",
    reference="support cuts (Ustun, Spangher & Liu 2019) for supersets, and for directions",
    features={"otherwise": 0, "no_further": 0},
)


@final
@dataclass(frozen=True, slots=True)
class Distinct(AbstractDiversity):
    r"""No superset of the columns that an earlier answer changes, and not the same columns the same ways.

    .. math::
        \sum_{j \in S} w_j \le |S| - 1, \qquad
        z_i + \sum_{j \in S} z_j \le |S| \quad \text{for all } i \notin S

    ====== ======================= ===================================================================================
    symbol component               meaning
    ====== ======================= ===================================================================================
    S                              columns that the earlier answer changes
    z_j    ``x.changed``           0 holds the column at the factual
    w_j    ``x.direction``; cuts,  1 iff the column moves as in the earlier answer: a number, an ordinal or a binary
           levels                  column to the same side, a category to the same level; of a number with a coordinate
                                   0 forbids a move to that side
    ====== ======================= ===================================================================================

    The first row, ``otherwise``, has some column of S do something else than before: stay, or move the other way. The
    others, ``no_further``, allow a further column to change only where some column of S stays. Together they say that a
    later answer leaves some column of S as it is, or changes S alone and one of its columns otherwise. So an ordinal
    level counts as a number does, by whether it rises or falls; of two levels, a binary column has no other way. An
    answer may change a part of S, or some of S and others beside. Of answers that cost the same, a search takes one
    that changes a part of another's columns first, so that the ranks do not hang on which of them a solver meets.

    A missing cell, or one on a code, that is filled in moves one way, whatever the amount (of a category: to the same
    level); an amount that goes missing, or becomes a code, moves another. So answers that fill in the same cells with
    other amounts are not distinct.

    Columns of an :class:`~ceopt.ExactlyOne` count as the levels of one category: z is that of the column that is 1
    today, and w is 1 iff the same column takes the 1 again.

    Per earlier answer one row and one for each column that it leaves; of a number with a coordinate a binary that
    permits the move, and one for each direction. Exact: both are permissions, which staying never needs, so no least
    move is asked for, and the cheapest further answer is attained. A number that neither the model nor a rule reads
    stays as it is.

    Raises
    ------
    UnboundedFeatureError
        A number whose value some row reads has an infinite bound (when built: ``explain`` keeps the answers in hand,
        and says so in ``.reason``).

    References
    ----------
    Support cuts, for sets of recourse actions: Ustun, Spangher & Liu (2019), Actionable recourse in linear
    classification; the rows for supersets and directions are ours.

    Examples
    --------
    The earlier answer works more hours in another job:

    >>> import pyomo.environ as pyo
    >>> from ceopt import L1, Feature, FeatureSpace
    >>> from ceopt.formulations.constraints.diversity.distinct import Distinct
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.predictors.readers import read
    >>> from ceopt.formulations.recourse_program import recourse_program
    >>> hours = Feature("hours", kind="integer", lower=0, upper=9)
    >>> jobs = Feature("job", kind="categorical", levels=(1, 2, 3))
    >>> space = FeatureSpace([hours, jobs, Feature("owner", kind="binary", levels=(0, 1))])
    >>> model = read(Affine([1.0, 1.0, 1.0], -7.0, labels=("no", "yes")), space)
    >>> program = recourse_program(model, {"hours": 2, "job": 1, "owner": 0}, target="yes", cost=L1())
    >>> Distinct().exclude(program, {"hours": 4.0, "job": 2.0, "owner": 0.0})
    >>> for row in program.model.distinct[1].component_data_objects(pyo.Constraint):
    ...     print(row.expr)
    x.direction[hours,up] + x.level[job,3]  <=  1.0
    1.0 + x.moved[hours] - x.level[job,1] + x.level[owner,1]  <=  2.0
    """

    together: tuple[tuple[str, ...], ...] = field(default=(), kw_only=True, repr=False)

    text = "distinct"
    prefers_fewer_columns = True

    def counting(self, together: tuple[tuple[str, ...], ...]) -> Distinct:
        """Return the same knowing the groups of which one column is 1."""
        return replace(self, together=together)

    # ---- the program -------------------------------------------------------------------------------------------------
    def exclude(self, program: RecourseProgram, point: Point) -> None:
        """Add a block ``distinct[k]`` with the rows ``otherwise`` and ``no_further``."""
        model = program.model
        groups = joined(self.together, program.x.point)
        others = stood_for(groups)
        coordinates = {name: at for name, at in program.x.coordinates.items() if name not in others}
        if model.component("distinct") is None:
            model.distinct = pyo.Block(pyo.Any)
        block = model.distinct[len(model.distinct) + 1]
        describe(block, _MANIFEST)
        before = [name for name, at in coordinates.items() if point[name] != at.x0]
        again = []
        for name in before:
            if name in groups:
                taker = program.x.coordinate(_taker(groups[name], point))
                again.append(taker.equals(1.0))
            else:
                again.append(_moves_again(coordinates[name], point[name]))
        Rows(block, "otherwise").add("columns", total(again), upper=len(before) - 1.0)
        changed = total(coordinates[name].changed_form() for name in before)
        rows = Rows(block, "no_further")
        for name, at in coordinates.items():
            further = at.changed_form()
            if name not in before and further != LinearForm():
                rows.add(name, changed + further, upper=float(len(before)))

    # ---- in plain numbers --------------------------------------------------------------------------------------------
    def differ(self, space: FeatureSpace, factual: Point, a: Point, b: Point) -> bool:
        """Tell whether b leaves a column that a changes, or changes the same ones and one of them otherwise."""
        before = changed_columns(factual, a, self.together)
        after = changed_columns(factual, b, self.together)
        if not before <= after:
            return True
        if before != after:
            return False
        groups = joined(self.together, factual)
        for name in before:
            if name in groups:
                if _taker(groups[name], a) != _taker(groups[name], b):
                    return True
            elif way_of(space[name], factual[name], a[name]) != way_of(space[name], factual[name], b[name]):
                return True
        return False


def _taker(group: tuple[str, ...], point: Point) -> str:
    """Return the column of a group that is 1; the first of several, and of none."""
    return max(group, key=lambda name: point[name] == 1.0)


def _moves_again(at: AbstractCoordinate, value: float) -> LinearForm:
    """Return 1 where the column moves as it did to ``value``, else 0."""
    if isinstance(at, Category) or at.feature.is_label(value):
        return at.equals(value)
    if at.feature.is_label(at.x0):
        return at.on_label.complement()
    rises = value > at.x0
    if isinstance(at, Ranked):
        return at.at_least(at.x0 + 1.0) if rises else at.at_most(at.x0 - 1.0)
    assert isinstance(at, Numeric)  # noqa: S101 - the third of three kinds
    return at.side_form("up" if rises else "down")


def way_of(feature: Feature, home: float, value: float) -> str | float:
    """Return how a value moves a column: to a level of a category or a label, which it is, or to a side."""
    if value == home or feature.kind == "categorical" or feature.is_label(value):
        return value
    return "filled in" if feature.is_label(home) else "up" if value > home else "down"

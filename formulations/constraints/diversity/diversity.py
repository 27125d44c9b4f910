"""Diversity of a further answer: a row that sets it apart from those before it, and the same in plain numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, final

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.columns import Category, Price, Ranked
from ceopt.formulations.columns.numeric import Numeric
from ceopt.formulations.constraints.rule import active_ones, has_clusters, nearest_cluster
from ceopt.formulations.costs.base import cost_of_column
from ceopt.formulations.linear_form import LinearForm, Rows, sum_form, total
from ceopt.formulations.predictors.raw_trees import keys_in_reach, raw_trees
from ceopt.formulations.predictors.representation import Affine, ReluNetwork
from ceopt.formulations.predictors.ties import columns_read
from ceopt.formulations.tolerances import DISTANCE_ROUNDING, TINY
from ceopt.solvers.errors import InvalidValueError

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.constraints.rule import AbstractRule
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.recourse_program import RecourseProgram
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

# ==== The base class, and other decisions or another support than an earlier answer has ===============================

#: Coordinates by column.
Point: TypeAlias = Mapping[str, float]


class AbstractDiversity(ABC):
    """What makes an answer another one than each that is in hand.

    A new one is one file, listed by its word in ``formulations.constraints.diversity.DIVERSITIES``. What only some do
    is a method with a default that does nothing.
    """

    __slots__ = ()

    #: How it is asked for, as results report it.
    text: str
    #: Whether answers may differ by splits of the model that decide nothing for this person.
    needs_all_cells: ClassVar[bool] = False
    #: Whether of answers that cost the same, one that changes a part of another's columns comes first.
    prefers_fewer_columns: ClassVar[bool] = False
    #: Groups of columns of which one is 1, by a rule: a move between two of them is one change.
    together: tuple[tuple[str, ...], ...] = ()

    def check(self, space: FeatureSpace, rules: tuple[AbstractRule, ...]) -> None:
        """Refuse columns or rules that it does not fit, before any work starts."""
        del space, rules

    def fitted(self, rules: tuple[AbstractRule, ...]) -> AbstractDiversity:
        """Return the same with what it takes from the rules, once these have learned from data."""
        del rules
        return self

    def counting(self, together: tuple[tuple[str, ...], ...]) -> AbstractDiversity:
        """Return the same knowing such groups; itself where it counts no changes."""
        del together
        return self

    def after(self, cluster: Any) -> AbstractDiversity:
        """Return what makes an answer another one than one that lies in a cluster."""
        del cluster
        return self

    def firmer(self) -> AbstractDiversity:
        """Return the same with rows that ask for a trace more, after a point that they let pass did not differ."""
        return self

    @abstractmethod
    def exclude(self, program: RecourseProgram, point: Point) -> None:
        """Add rows to the program, whose variables hold ``point``: the next answer differs from it."""

    @abstractmethod
    def differ(self, space: FeatureSpace, factual: Point, a: Point, b: Point) -> bool:
        """Tell in plain numbers whether a point b, after a, is another answer, as far as numbers can tell."""

    def surely(self, space: FeatureSpace, factual: Point, a: Point, b: Point) -> bool:
        """Tell whether a point b, after a, is one that the rows let pass: its cost bounds that of the next answer."""
        return self.differ(space, factual, a, b)


def differs_row(block: Any, forms: list[LinearForm]) -> None:
    """Add the row that some of the forms must be 1, in the constraint ``differs`` of the block."""
    rows = Rows(block, "differs")
    rows.add(f"earlier_{len(block.differs) + 1}", total(forms), lower=1.0)


def joined(together: tuple[tuple[str, ...], ...], factual: Point) -> dict[str, tuple[str, ...]]:
    """Return the groups that change as one column would, by the column that is 1 today: it stands for its group.

    A group whose columns are not 0 but for one 1 today, or that shares a column with another, is none of these.
    """
    groups = {}
    for group in together:
        others = {name for other in together if set(other) != set(group) for name in other}
        if others.isdisjoint(group):
            for standing in active_ones([group], factual):
                groups[standing] = group
    return groups


def stood_for(groups: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Return the columns of groups for which another one stands."""
    return {name for standing, group in groups.items() for name in group if name != standing}


def changed_columns(factual: Point, point: Point, together: tuple[tuple[str, ...], ...] = ()) -> set[str]:
    """Return the columns in which a point leaves the factual; of a group that changes as one, the one that stands."""
    changed = {name for name, home in factual.items() if point[name] != home}
    return changed - stood_for(joined(together, factual))


def levels_differ(space: FeatureSpace, a: Point, b: Point) -> bool:
    """Tell whether two points have different levels."""
    return any(a[feature.name] != b[feature.name] for feature in space if feature.is_finite)


def changes_differ(factual: Point, a: Point, b: Point, together: tuple[tuple[str, ...], ...] = ()) -> bool:
    """Tell whether two points leave the factual in different columns."""
    return changed_columns(factual, a, together) != changed_columns(factual, b, together)


@final
@dataclass(frozen=True, slots=True)
class OtherDecisions(AbstractDiversity):
    r"""Another cell of some number, another level, or another set of changed columns.

    .. math:: \sum_{j:\, \hat z_j = 1} (1 - z_j) + \sum_{j:\, \hat z_j = 0} z_j \ge 1

    =============== ======================================================================================
    symbol          meaning
    =============== ======================================================================================
    z               cells and levels; of a number that some row reads, whether it changes in its cell
    :math:`\hat z`  the same of the earlier answer
    =============== ======================================================================================

    Cells are those of the model's trees and of rules that cut a column. Where trees alone read a number, a move inside
    its cell decides nothing and is no other answer (:class:`OtherSupport` counts it), in every
    formulation. Any other number that a row weighs (of a rule, of a linear part of the model, of a cost over several
    columns) counts as newly changed in its cell once it moves by its step or by a thousandth of its range
    (``x.surely``), which is all that is not exact. One that
    neither the model nor a rule reads stays as it is: to move it would be another answer in name only. One row for each
    earlier answer.

    References
    ----------
    No-good rows: Balas & Jeroslow (1972), Canonical cuts on the unit hypercube.

    Examples
    --------
    >>> from ceopt import L1, Feature, FeatureSpace
    >>> from ceopt.formulations.constraints.diversity.diversity import OtherDecisions
    >>> from ceopt.formulations.predictors import TreeEnsemble
    >>> from ceopt.formulations.predictors.readers import read
    >>> from ceopt.formulations.recourse_program import recourse_program
    >>> jobs = Feature("job", kind="categorical", levels=(1, 2, 3))
    >>> space = FeatureSpace([Feature("hours", kind="integer", lower=0, upper=9), jobs])
    >>> tree = {"feature": 0, "threshold": 2.5, "left": {"value": -1.0}, "right": {"value": 1.0}}
    >>> model = read(TreeEnsemble([tree], n_inputs=2, labels=("no", "yes")), space)
    >>> program = recourse_program(model, {"hours": 0, "job": 1}, target="yes", cost=L1())
    >>> OtherDecisions().exclude(program, {"hours": 3.0, "job": 0.0})
    >>> print(program.model.differs["earlier_1"].expr)
    1.0  <=  2.0 - x.cut[hours,'2'] - x.level[job,1]
    """

    text = "pool"
    needs_all_cells = True

    def exclude(self, program: RecourseProgram, point: Point) -> None:
        """Add the row ``differs``."""
        program.embedded.make_cells()
        forms = []
        for name, c in program.x.coordinates.items():
            if not c.is_point:
                forms.append(c.differs(point[name]))
        differs_row(program.model, [*forms, program.embedded.differs()])

    def differ(self, space: FeatureSpace, factual: Point, a: Point, b: Point) -> bool:
        """Tell whether some value differs; cells are the program's alone."""
        del factual
        return any(a[name] != b[name] for name in space.names)

    def surely(self, space: FeatureSpace, factual: Point, a: Point, b: Point) -> bool:
        """Tell whether a level differs, or the set of changed columns."""
        return levels_differ(space, a, b) or changes_differ(factual, a, b)


@final
@dataclass(frozen=True, slots=True)
class OtherSupport(AbstractDiversity):
    r"""Another set of changed columns: the row of :class:`OtherDecisions` over the change indicators.

    .. math:: \sum_{j:\, x^k_j \ne x^0_j} (1 - z_j) + \sum_{j:\, x^k_j = x^0_j} s_j \ge 1

    ====== =========================== ===============================================================
    symbol component                   meaning
    ====== =========================== ===============================================================
    z_j    ``x.changed``               0 holds the column at the factual
    s_j    ``x.surely``; cells, levels 1 only if the column leaves it, by its step or a thousandth of its
                                       range where nothing cuts it
    ====== =========================== ===============================================================

    Columns of an :class:`~ceopt.ExactlyOne` are one column here: whatever takes the 1, the support is the same.
    A number that the model's trees split or a rule cuts counts as changed by a move inside its cell too: where it has
    no coordinate, its factual value becomes a cell of its own. One that neither the model nor a rule reads stays as it
    is. One row for each earlier answer.

    References
    ----------
    Support cuts, for sets of recourse actions: Ustun, Spangher & Liu (2019), Actionable recourse in linear
    classification.

    Examples
    --------
    >>> from ceopt import L1, Feature, FeatureSpace
    >>> from ceopt.formulations.constraints.diversity.diversity import OtherSupport
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.predictors.readers import read
    >>> from ceopt.formulations.recourse_program import recourse_program
    >>> jobs = Feature("job", kind="categorical", levels=(1, 2, 3))
    >>> space = FeatureSpace([Feature("hours", kind="integer", lower=0, upper=9), jobs])
    >>> model = read(Affine([1.0, 0.0], -2.0, labels=("no", "yes")), space)
    >>> program = recourse_program(model, {"hours": 0, "job": 1}, target="yes", cost=L1())
    >>> OtherSupport().exclude(program, {"hours": 3.0, "job": 0.0})
    >>> print(program.model.differs["earlier_1"].expr)
    1.0  <=  2.0 - x.moved[hours] - x.level[job,1]
    """

    together: tuple[tuple[str, ...], ...] = field(default=(), kw_only=True, repr=False)

    text = "support"
    needs_all_cells = True

    def counting(self, together: tuple[tuple[str, ...], ...]) -> OtherSupport:
        """Return the same knowing the groups of which one column is 1."""
        return replace(self, together=together)

    def exclude(self, program: RecourseProgram, point: Point) -> None:
        """Add the row ``differs``."""
        x = program.x
        program.embedded.make_cells()
        split = {name for part in program.embedded.predictor.forests for name in raw_trees(part).lefts}
        for name, at in x.coordinates.items():
            if isinstance(at, Numeric) and (name in split or at.cells.keys):
                at.isolate_home()
        others = stood_for(joined(self.together, x.point))
        forms = []
        for name, coordinate in x.coordinates.items():
            if coordinate.is_point or name in others:
                continue
            if point[name] == x.point[name]:
                forms.append(coordinate.surely_changed_form())
            else:
                forms.append(coordinate.changed_form().complement())
        differs_row(program.model, forms)

    def differ(self, space: FeatureSpace, factual: Point, a: Point, b: Point) -> bool:
        """Tell whether the changed columns differ."""
        del space
        return changes_differ(factual, a, b, self.together)


# ==== Distances of one column from an earlier value, as forms that are right however large they are asked to be =======


def _prices(at: Category | Ranked, value: float, price: Price) -> dict[float, float]:
    """Return what it costs to come to each coordinate in reach from ``value``."""
    return {other: cost_of_column((price,), at.feature, value, other) for other in at.values}


def _off_label(at: Numeric, label: float, price: float) -> LinearForm:
    """Return what it costs to leave a label, wherever to."""
    return at.label_form(label).complement().scaled(price)


def length(block: Any, x: Factual, name: str, value: float, price: Price) -> LinearForm:
    """Return what the move from ``value`` costs, as a form that is right however large it is asked to be."""
    at = x.coordinate(name)
    if isinstance(at, Category | Ranked):
        return at.tabulate(_prices(at, value, price))
    assert isinstance(at, Numeric)  # noqa: S101 - the third of three kinds
    if at.is_point:
        return LinearForm()
    if at.feature.is_label(value):
        return _off_label(at, value, price.of_fill)
    gone = at.on_label.scaled(price.of_fill)
    slope = max(price.down, price.up)
    falls, climbs = (slope * room for room in (value - at.interval.lower, at.interval.upper - value))
    if max(falls, climbs) <= TINY:
        return gone
    # Beside a label the amount rests at home, which is no move.
    move = (at.amount() + at.on_label.scaled(value - at.home) + LinearForm(-value)).scaled(slope)
    # Parts in units of the distance, and no coefficient below 1: no tolerance is blown up on its way into the distance.
    factor = max(1.0, 1.0 / (slope * at.unit))
    if min(falls, climbs) <= TINY:  # one way only: the move itself
        way = _variable(block, "way", name, pyo.Reals)
        x.follow(way, sum, [move.expression()])
        form = LinearForm(0.0, ((1.0, way),))
        Rows(block, "move").add(name, (move + form.scaled(-1.0)).scaled(factor), lower=0.0, upper=0.0)
        return form.scaled((price.up if falls <= TINY else -price.down) / slope) + gone
    at.require_bounds("Apart")
    up, down = (_variable(block, word, name, pyo.NonNegativeReals) for word in ("up", "down"))
    rises = _variable(block, "rises", name, pyo.Binary)
    forms = [sum_form([variable]) for variable in (up, down, rises)]
    row = move + forms[0].scaled(-1.0) + forms[1]
    Rows(block, "move").add(name, row.scaled(factor), lower=0.0, upper=0.0)
    Rows(block, "most").add((name, "up"), forms[0] + forms[2].scaled(-climbs), upper=0.0)
    Rows(block, "most").add((name, "down"), forms[1] + forms[2].complement().scaled(-falls), upper=0.0)
    for variable, of, follows in ((up, move, _positive_part), (down, move.scaled(-1.0), _positive_part)):
        x.follow(variable, follows, [of.expression()])
    x.follow(rises, _is_positive, [move.expression()])
    return forms[0].scaled(price.up / slope) + forms[1].scaled(price.down / slope) + gone


def _variable(block: Any, word: str, name: str, domain: Any) -> Any:
    if block.component(word) is None:
        block.add_component(word, pyo.Var(pyo.Any, dense=False, domain=domain))
    return block.component(word)[name]


def _positive_part(values: list[float]) -> float:
    return max(values[0], 0.0)


def _is_positive(values: list[float]) -> float:
    return float(values[0] > 0.0)


def is_moved(x: Factual, name: str, value: float, price: Price) -> LinearForm:
    """Return the price of leaving ``value`` by at least the least move."""
    at = x.coordinate(name)
    if isinstance(at, Category | Ranked):
        return at.tabulate(_prices(at, value, price))
    assert isinstance(at, Numeric)  # noqa: S101 - the third of three kinds
    if at.feature.is_label(value):
        return _off_label(at, value, price.of_fill)
    least = at.least_move() * at.unit * (1.0 - DISTANCE_ROUNDING)
    moved = at.at_most(value - least).scaled(price.down) + at.at_least(value + least).scaled(price.up)
    return moved + at.on_label.scaled(price.of_fill)


def is_far(x: Factual, name: str, value: float, price: Price, least: float) -> LinearForm:
    """Return 1 where the move from ``value`` costs at least ``least``, else 0."""
    at = x.coordinate(name)
    if isinstance(at, Category | Ranked):
        return at.indicator({other for other, cost in _prices(at, value, price).items() if cost >= least})
    assert isinstance(at, Numeric)  # noqa: S101 - the third of three kinds
    fill = float(price.of_fill >= least)
    if at.feature.is_label(value):
        return _off_label(at, value, fill)
    down = math.inf
    up = math.inf
    if price.down > 0.0:
        down = least / price.down
    if price.up > 0.0:
        up = least / price.up
    return at.at_most(value - down) + at.at_least(value + up) + at.on_label.scaled(fill)


# ==== Rows that leave out what the user's own model refuses, though its score is within rounding of the decision ======

#: A move counts 1, however long.
_EACH = Price("fixed", 1.0, 1.0, 1.0)


def leave_out(program: RecourseProgram, points: Sequence[Mapping[str, float]]) -> None:
    r"""Add a row ``refused[point_k]`` for each point, so that the model does not see the same again.

    .. math:: \sum_{j \in R} [x_j \ne x^k_j] \ge 1

    R are the columns that the model reads, all of them on a lattice; of trees, the box in which all end in the same
    leaves is left, or in the other forms a leaf of other values is taken.
    """
    if not points:
        return
    rows = Rows(program.model, "refused")
    for place, point in enumerate(points, start=1):
        rows.add(f"point_{place}", _otherwise(program, point), lower=1.0)


def _otherwise(program: RecourseProgram, point: Mapping[str, float]) -> LinearForm:
    if program.embedded.predictor.is_trees:
        return program.embedded.other_leaves(point)
    x = program.x
    moving = [name for name in sorted(columns_read(program.embedded.predictor)) if not x.coordinates[name].is_point]
    return total(is_moved(x, name, point[name], _EACH) for name in moving)


# ==== Another cell of the model than each answer in hand: for sets that are to have one answer of every cell ==========

#: Neighbouring values on both sides of a split.
_Key: TypeAlias = tuple[float, float]


def read_as_numbers(predictor: Predictor) -> frozenset[str]:
    """Return the columns that some part of a model reads as a number, and not by splits: linear parts and networks."""
    found: set[str] = set()
    for part in predictor.parts:
        if isinstance(part.core, Affine | ReluNetwork):
            pairs = zip(part.encoding.columns, part.core.reads.tolist(), strict=True)
            found.update(c.feature for c, used in pairs if used and c.feature is not None and c.table is None)
    return frozenset(found)


def is_counted(feature: Feature) -> bool:
    """Tell whether each value of a number is one of its own: a whole number, or steps that the user has set.

    Steps that were seen in the data say how finely answers come out, not what is told apart.
    """
    return feature.kind == "integer" or (feature.step is not None and not feature.step_inferred)


@final
@dataclass(frozen=True, slots=True, eq=False)
class OtherCells(AbstractDiversity):
    r"""Another cell: a region on which every split, level and whole number that the model reads is constant.

    .. math::
        \sum_{j \in S} \bigl(1 - y_{j,\mathrm{left}} + y_{j,\mathrm{right}}\bigr)
        + \sum_{j \in L} (1 - u_{j,c_j}) + \sum_{j \in W} \bigl(1 - [x_j = v_j]\bigr) \ge 1

    ========= =====================================================================================
    symbol    meaning
    ========= =====================================================================================
    S         numbers that trees split; y their cuts, left and right the two around the earlier answer
    L, c      columns with levels, and the earlier answer's level of each; u one binary per level
    W, v      whole numbers, and numbers in steps that the user has set, that a linear part or a network
              reads, and the earlier values
    ========= =====================================================================================

    Unlike :class:`~ceopt.formulations.constraints.diversity.diversity.OtherDecisions` a move inside a cell makes no
    other answer, and each value of a whole number that a linear model reads does. A number that can take all values
    between its bounds and that trees do not split has one cell, and so has one that the model does not read. What
    happens inside a network makes no cells. Each code of a number, and the missing cell, is a cell of its own. One
    row for each earlier answer; two binaries for each value in W, which need its bounds to be finite. Exact.

    Parameters
    ----------
    predictor
        The model as read.

    Raises
    ------
    UnboundedFeatureError
        A column in W has an infinite bound (when built).

    References
    ----------
    No-good rows: Balas & Jeroslow (1972), Canonical cuts on the unit hypercube; here over the binaries of the cells.

    Examples
    --------
    >>> from ceopt import L1, Feature, FeatureSpace
    >>> from ceopt.formulations.constraints.diversity.diversity import OtherCells
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.predictors.readers import read
    >>> from ceopt.formulations.recourse_program import recourse_program
    >>> jobs = Feature("job", kind="categorical", levels=(1, 2, 3))
    >>> space = FeatureSpace([Feature("hours", kind="integer", lower=0, upper=9), jobs])
    >>> model = read(Affine([1.0, 1.0], -3.0, labels=("no", "yes")), space)
    >>> program = recourse_program(model, {"hours": 0, "job": 1}, target="yes", cost=L1())
    >>> OtherCells(model).exclude(program, {"hours": 2.0, "job": 0.0})
    >>> print(program.model.differs["earlier_1"].expr)
    1.0  <=  2.0 + x.cut[hours,'2'] - x.cut[hours,'1'] - x.level[job,1]
    """

    predictor: Predictor

    text = "cells"
    needs_all_cells = True

    def exclude(self, program: RecourseProgram, point: Point) -> None:
        """Add the row ``differs``."""
        x = program.x
        keys = keys_in_reach(self.predictor, x.reach)
        numbers = read_as_numbers(self.predictor)
        forms: list[LinearForm] = []
        for name, coordinate in x.coordinates.items():
            if coordinate.is_point:
                continue
            if coordinate.feature.is_finite:
                forms.append(coordinate.differs(point[name]))
            elif name in numbers and is_counted(coordinate.feature):
                at = x.numeric(name)
                at.require_bounds("An answer of every cell")
                at.cut_around([point[name]])
                forms.append(at.equals(point[name]).complement())
            elif coordinate.feature.is_label(point[name]):
                forms.append(coordinate.label_form(point[name]).complement())
            else:
                forms += map(coordinate.label_form, coordinate.labels)
                forms += self._outside(x.numeric(name), keys.get(name, []), point[name])
        differs_row(program.model, forms)

    def _outside(self, at: Numeric, keys: list[_Key], value: float) -> Iterator[LinearForm]:
        """Yield what is 1 left of the value's cell, and what is 1 right of it."""
        left = [key for key in keys if key[1] <= value][-1:]
        right = [key for key in keys if key[1] > value][:1]
        at.add_cuts([*left, *right])
        yield from (at.cells.right_of(key).complement() for key in left)
        yield from (at.cells.right_of(key) for key in right)

    def differ(self, space: FeatureSpace, factual: Point, a: Point, b: Point) -> bool:
        """Tell whether two points lie in different cells."""
        del factual
        if levels_differ(space, a, b):
            return True
        for feature in space:
            one, other = a[feature.name], b[feature.name]
            if one != other and (feature.is_label(one) or feature.is_label(other)):
                return True
        whole = {f.name for f in space if is_counted(f)} & read_as_numbers(self.predictor)
        if any(a[name] != b[name] for name in whole):
            return True
        for part in self.predictor.forests:
            for name, lefts in raw_trees(part).lefts.items():
                if np.searchsorted(lefts, a[name]) != np.searchsorted(lefts, b[name]):
                    return True
        return False


# ==== One answer for each cluster of a hull ===========================================================================


@final
@dataclass(frozen=True, slots=True)
class OtherCluster(AbstractDiversity):
    r"""A cluster of the hull in which no earlier answer lies.

    .. math:: u_k = 0 \qquad\text{for the cluster k of each earlier answer}

    ====== ================= ==============================================================
    symbol component         meaning
    ====== ================= ==============================================================
    u_k    ``in_cluster[k]`` binary of the hull's block: 1 iff the answer lies in cluster k
    ====== ================= ==============================================================

    One row for each earlier answer. Exact: answers are optimal each in the clusters that are left, so there are at most
    as many as clusters. Where clusters overlap, two answers may be the same point.

    Parameters
    ----------
    cluster
        That of the earlier answer.
    hull
        The rule with the clusters, fitted.
    known
        Nearest cluster by point, of starts that were looked at.

    Raises
    ------
    InvalidValueError
        The rules hold no hull with clusters, or several.

    References
    ----------
    One explanation per cluster: Maragno, Roeber & Birbil (2022), eq. (3) over clusters.

    Examples
    --------
    >>> import pandas as pd
    >>> from ceopt import L1, Feature, FeatureSpace
    >>> from ceopt.formulations.constraints.hull import Hull
    >>> from ceopt.formulations.constraints.diversity.diversity import OtherCluster
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.predictors.readers import read
    >>> from ceopt.formulations.recourse_program import recourse_program
    >>> space = FeatureSpace([Feature("hours", kind="continuous", lower=0, upper=9)])
    >>> model = read(Affine([1.0], -1.0, labels=("no", "yes")), space)
    >>> people = Hull(pd.DataFrame({"hours": [2.0, 3.0, 7.0, 8.0]}), clusters=["few", "few", "many", "many"])
    >>> program = recourse_program(model, {"hours": 0}, target="yes", cost=L1(), rules=[people])
    >>> OtherCluster("few").exclude(program, {"hours": 2.0})
    >>> print(program.model.other_cluster["few"].expr)
    rules.Hull_1.in_cluster[few]  ==  0.0
    """

    cluster: Any = None
    hull: AbstractRule | None = field(default=None, repr=False)
    known: dict[tuple[float, ...], Any] = field(default_factory=dict, repr=False, compare=False)
    text = "clusters"

    def check(self, space: FeatureSpace, rules: tuple[AbstractRule, ...]) -> None:
        """Refuse rules without exactly one hull with clusters."""
        del space
        count = sum(map(has_clusters, rules))
        if count != 1:
            raise InvalidValueError(
                "diversity='clusters'",
                "exactly one rule Hull(..., clusters=...) in constraints",
                f"there are {count}" if count else "there is none",
                "Keep one of them." if count else "Add one, such as Hull(clusters=3).",
            )
        if next(filter(has_clusters, rules)).charges_more:
            raise InvalidValueError(
                "diversity='clusters'", "a Hull without a penalty", "it has one, charged by the nearest cluster",
                "Ask for each cluster alone: Hull(rows of the cluster, penalty=...), or give a radius instead.",
            )  # fmt: skip

    def fitted(self, rules: tuple[AbstractRule, ...]) -> OtherCluster:
        """Return the same with the hull that has the clusters."""
        return OtherCluster(hull=next(filter(has_clusters, rules)))

    def after(self, cluster: Any) -> OtherCluster:
        """Return what keeps answers out of a cluster."""
        return replace(self, cluster=cluster)

    def exclude(self, program: RecourseProgram, point: Point) -> None:
        """Add the row ``other_cluster[k]``."""
        del point
        block = next(block for rule, block in program.rules if has_clusters(rule))
        form = LinearForm(0.0, ((1.0, block.in_cluster[self.cluster]),))
        Rows(program.model, "other_cluster").add(self.cluster, form, lower=0.0, upper=0.0)

    def differ(self, space: FeatureSpace, factual: Point, a: Point, b: Point) -> bool:
        """Accept: answers in two clusters are two answers even where the clusters, and the answers, meet."""
        del space, factual, a, b
        return True

    def surely(self, space: FeatureSpace, factual: Point, a: Point, b: Point) -> bool:
        """Tell whether the cluster nearest to b is another."""
        del factual, a
        key = tuple(map(b.__getitem__, space.names))
        if key not in self.known:
            self.known[key] = nearest_cluster((self.hull,) if self.hull else (), space, b)
        return self.known[key] not in {None, self.cluster}


# ==== A part of an earlier answer's columns: to see whether fewer of them would have done for the same cost ===========


@final
@dataclass(frozen=True, slots=True)
class SomeStay(AbstractDiversity):
    r"""Some column that the earlier answer changes stays as it is.

    .. math:: \sum_{j \in S} z_j \le |S| - 1

    ====== ================== ==========================================
    symbol component          meaning
    ====== ================== ==========================================
    S                         columns that the earlier answer changes
    z_j    ``x.changed``      0 holds the column at the factual
    ====== ================== ==========================================

    One row for each earlier answer. Exact. Of columns of which one is 1 by a rule (``together``), the one that is 1
    today counts for all.

    References
    ----------
    Support cuts, for sets of recourse actions: Ustun, Spangher & Liu (2019), Actionable recourse in linear
    classification.

    Examples
    --------
    >>> from ceopt import L1, Feature, FeatureSpace
    >>> from ceopt.formulations.constraints.diversity.diversity import SomeStay
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.predictors.readers import read
    >>> from ceopt.formulations.recourse_program import recourse_program
    >>> jobs = Feature("job", kind="categorical", levels=(1, 2, 3))
    >>> space = FeatureSpace([Feature("hours", kind="integer", lower=0, upper=9), jobs])
    >>> model = read(Affine([1.0, 1.0], -5.0, labels=("no", "yes")), space)
    >>> program = recourse_program(model, {"hours": 2, "job": 1}, target="yes", cost=L1())
    >>> SomeStay().exclude(program, {"hours": 3.0, "job": 1.0})
    >>> print(program.model.some_stay["earlier_1"].expr)
    1.0 + x.moved[hours] - x.level[job,1]  <=  1.0
    """

    together: tuple[tuple[str, ...], ...] = field(default=(), kw_only=True, repr=False)

    text = "some stay"

    def exclude(self, program: RecourseProgram, point: Point) -> None:
        """Add the row ``some_stay``."""
        coordinates = program.x.coordinates
        others = stood_for(joined(self.together, program.x.point))
        before = [at for name, at in coordinates.items() if point[name] != at.x0 and name not in others]
        rows = Rows(program.model, "some_stay")
        index = f"earlier_{len(program.model.some_stay) + 1}"
        rows.add(index, total(at.changed_form() for at in before), upper=len(before) - 1.0)

    def differ(self, space: FeatureSpace, factual: Point, a: Point, b: Point) -> bool:
        """Tell whether b leaves a column that a changes."""
        del space
        return not changed_columns(factual, a, self.together) <= changed_columns(factual, b, self.together)

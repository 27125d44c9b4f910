"""Diversity of a further answer: a row that sets it apart from those before it, and the same in plain numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, final, runtime_checkable

from ceopt.formulations.columns.numeric import Numeric
from ceopt.formulations.linear_form import LinearForm, Rows, total
from ceopt.formulations.predictors.embed.trees.reachable_leaves import NumberSplit, route

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ceopt.formulations.constraints.rule import AbstractRule
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.formulations.recourse_program import RecourseProgram
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["AbstractDiversity", "FitsSpace", "OtherDecisions", "OtherSupport", "Point", "TakesFromRules"]

#: Coordinates by column.
Point: TypeAlias = Mapping[str, float]


class AbstractDiversity(ABC):
    """What makes an answer another one than each that is in hand.

    A new one is one file, listed by its word in ``formulations.constraints.diversity.DIVERSITIES``. What only some can
    do stands in the protocols below: one has an ability if it defines that protocol's members.
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


# ---- what only some can do -------------------------------------------------------------------------------------------
@runtime_checkable
class FitsSpace(Protocol):
    """A way to differ that may not fit the columns or the rules."""

    def check(self, space: FeatureSpace, rules: tuple[AbstractRule, ...]) -> None:
        """Refuse what does not fit, before any work starts."""


@runtime_checkable
class TakesFromRules(Protocol):
    """A way to differ that takes from the rules what these have learned from data."""

    def fitted(self, rules: tuple[AbstractRule, ...]) -> AbstractDiversity:
        """Return the same with what it takes from them."""


def differs_row(block: Any, forms: list[LinearForm]) -> None:
    """Add the row that some of the forms must be 1, in the constraint ``differs`` of the block."""
    rows = Rows(block, "differs")
    index = f"earlier_{len(block.differs) + 1}"
    rows.add(index, total(forms), lower=1.0)


def _split_numbers(predictor: Predictor) -> Iterator[str]:
    """Yield the numbers that the trees of a model split, in reach or not."""
    for part in predictor.forests:
        for tree in route(part):
            for split in tree.splits:
                if isinstance(split, NumberSplit):
                    yield split.name


def joined(together: tuple[tuple[str, ...], ...], factual: Point) -> dict[str, tuple[str, ...]]:
    """Return the groups that change as one column would, by the column that is 1 today: it stands for its group.

    A group whose columns are not 0 but for one 1 today, or that shares a column with another, is none of these.
    """
    found = {}
    for group in together:
        ones = [name for name in group if factual[name] == 1.0]
        zeros = [name for name in group if factual[name] == 0.0]
        others = {name for other in together if set(other) != set(group) for name in other}
        if len(ones) == 1 and len(zeros) == len(group) - 1 and others.isdisjoint(group):
            found[ones[0]] = group
    return found


def stood_for(groups: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Return the columns of groups for which another one stands."""
    return {name for standing, group in groups.items() for name in group if name != standing}


def changed_columns(factual: Point, point: Point, together: tuple[tuple[str, ...], ...] = ()) -> set[str]:
    """Return the columns in which a point leaves the factual; of a group that changes as one, the one that stands."""
    changed = {name for name, home in factual.items() if point[name] != home}
    return changed - stood_for(joined(together, factual))


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
    >>> from ceopt.formulations.predictors.read import read
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
        x = program.x
        program.embedded.make_cells()
        forms = []
        for name, c in x.coordinates.items():
            if not c.is_point:
                forms.append(c.differs(point[name]))
        differs_row(program.model, [*forms, program.embedded.differs()])

    def differ(self, space: FeatureSpace, factual: Point, a: Point, b: Point) -> bool:
        """Tell whether some value differs; cells are the program's alone."""
        del factual
        return any(a[name] != b[name] for name in space.names)

    def surely(self, space: FeatureSpace, factual: Point, a: Point, b: Point) -> bool:
        """Tell whether a level differs, or the set of changed columns."""
        levels = any(a[f.name] != b[f.name] for f in space if f.is_finite)
        return levels or changes_differ(factual, a, b)


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
    >>> from ceopt.formulations.predictors.read import read
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
        split = set(_split_numbers(program.embedded.predictor))
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

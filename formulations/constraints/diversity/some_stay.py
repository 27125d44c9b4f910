"""A part of an earlier answer's columns: to see whether fewer of them would have done for the same cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from ceopt.formulations.constraints.diversity.diversity import (
    AbstractDiversity,
    Point,
    changed_columns,
    joined,
    stood_for,
)
from ceopt.formulations.linear_form import Rows, total

if TYPE_CHECKING:
    from ceopt.formulations.recourse_program import RecourseProgram
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["SomeStay"]


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
    >>> from ceopt.formulations.constraints.diversity.some_stay import SomeStay
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.predictors.read import read
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

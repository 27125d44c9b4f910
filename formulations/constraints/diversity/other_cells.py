"""Another cell of the model than each answer in hand: for sets that are to have one answer of every cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity, Point, differs_row
from ceopt.formulations.linear_form import LinearForm
from ceopt.formulations.predictors.embed.trees.reachable_leaves import NumberSplit, cuts_in_reach, route
from ceopt.formulations.predictors.representation.affine import Affine
from ceopt.formulations.predictors.representation.relu_network import ReluNetwork

if TYPE_CHECKING:
    from ceopt.formulations.columns.numeric import Numeric
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.formulations.recourse_program import RecourseProgram
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.reachable import Reach
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["OtherCells", "read_as_numbers"]

#: Neighbouring values on both sides of a split.
_Key: TypeAlias = tuple[float, float]


def read_as_numbers(predictor: Predictor) -> frozenset[str]:
    """Return the columns that some part of a model reads as a number, and not by splits: linear parts and networks."""
    found: set[str] = set()
    for part in predictor.parts:
        if isinstance(part.core, Affine | ReluNetwork):
            if isinstance(part.core, Affine):
                weights = part.core.weights
            else:
                weights = part.core.weights[0]
            read = (weights != 0.0).any(axis=0).tolist()
            pairs = zip(part.encoding.columns, read, strict=True)
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
    happens inside a network makes no cells. One row for each earlier answer; two binaries for each value in W, which
    need its bounds to be finite. Exact.

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
    >>> from ceopt.formulations.constraints.diversity.other_cells import OtherCells
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.predictors.read import read
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
        keys = self._keys(x.reach)
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
            else:
                forms += self._outside(x.numeric(name), keys.get(name, []), point[name])
        differs_row(program.model, forms)

    def _outside(self, at: Numeric, keys: list[_Key], value: float) -> Iterator[LinearForm]:
        """Yield what is 1 left of the value's cell, and what is 1 right of it."""
        left = [key for key in keys if key[1] <= value][-1:]
        right = [key for key in keys if key[1] > value][:1]
        at.add_cuts([*left, *right])
        yield from (at.cells.right_of(key).complement() for key in left)
        yield from (at.cells.right_of(key) for key in right)

    def _keys(self, reach: Reach) -> dict[str, list[_Key]]:
        """Return the model's splits in reach, by column and in order."""
        keys: dict[str, set[_Key]] = {}
        for part in self.predictor.forests:
            for cut in cuts_in_reach(route(part), reach):
                keys.setdefault(cut.name, set()).add(cut.key)
        return {name: sorted(found) for name, found in keys.items()}

    def differ(self, space: FeatureSpace, factual: Point, a: Point, b: Point) -> bool:
        """Tell whether two points lie in different cells."""
        del factual
        if any(a[f.name] != b[f.name] for f in space if f.is_finite):
            return True
        whole = {f.name for f in space if is_counted(f)} & read_as_numbers(self.predictor)
        if any(a[name] != b[name] for name in whole):
            return True
        splits = set()
        for p in self.predictor.forests:
            for t in route(p):
                for s in t.splits:
                    if isinstance(s, NumberSplit):
                        splits.add(s)
        return any((a[s.name] <= s.left) != (b[s.name] <= s.left) for s in splits)

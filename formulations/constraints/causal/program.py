"""Structural equations in a program: how far each column is off its equation, as a linear form with bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from ceopt.formulations.columns import AbstractCoordinate, Numeric
from ceopt.formulations.constraints.causal.equation import LinearEquation
from ceopt.formulations.linear_form import LinearForm, total
from ceopt.formulations.predictors.embed import embed
from ceopt.formulations.space.reachable import Interval

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.constraints.causal.structure import Structure

__all__ = ["Residual", "move_in", "residuals", "span"]


@final
@dataclass(frozen=True, slots=True)
class Residual:
    """How far a column is off its equation: the move less what follows from its parents.

    Attributes
    ----------
    coordinate
        The column's own.
    parents
        Of the column.
    form
        In raw units, ranks of levels.
    move, effect
        Least and greatest move of the column, and of what follows from its parents: around 0, or infinite.
    slack
        How far off still counts as following.
    """

    coordinate: AbstractCoordinate
    parents: tuple[str, ...]
    form: LinearForm
    move: tuple[float, float]
    effect: tuple[float, float]
    slack: float

    @property
    def ends(self) -> tuple[float, float]:
        """Least and greatest residual."""
        return self.move[0] - self.effect[1], self.move[1] - self.effect[0]

    @property
    def unit(self) -> float:
        """Raw units in one unit of the column's own variables, in which its rows are written."""
        return self.coordinate.unit if isinstance(self.coordinate, Numeric) else 1.0


def residuals(block: Any, x: Factual, structure: Structure) -> dict[str, Residual]:
    """Return the residual of each column with an equation; fitted equations become blocks of ``block``."""
    found = {}
    for column in structure.equations:
        effect, *ends = _effect(block, x, structure, column)
        found[column] = Residual(
            coordinate=x.coordinate(column),
            parents=tuple(structure.equations[column].parents),
            form=move_in(x, column) + effect.scaled(-1.0),
            move=span(x, column),
            effect=(ends[0], ends[1]),
            slack=structure.slack[column],
        )
    return found


def move_in(x: Factual, name: str) -> LinearForm:
    """Return a column's move, without variables where it has none."""
    coordinate = x.coordinate(name)
    return LinearForm() if coordinate.stays else coordinate.move()


def span(x: Factual, name: str) -> tuple[float, float]:
    """Return the least and greatest move of a column in reach, 0 among them."""
    part = x.reach[name]
    x0 = x.point[name]
    if isinstance(part, Interval):
        low = part.lower
        high = part.upper
    else:
        low = part.ranks[0]
        high = part.ranks[-1]
    return min(low - x0, 0.0), max(high - x0, 0.0)


def _effect(block: Any, x: Factual, structure: Structure, column: str) -> tuple[LinearForm, float, float]:
    """Return by how much the equation says that its column changes, with bounds."""
    equation = structure.equations[column]
    if isinstance(equation, LinearEquation):
        slopes = {}
        for parent, slope in equation.parents.items():
            if slope != 0.0:
                slopes[parent] = float(slope)
        ends = []
        for parent, slope in slopes.items():
            ends.append(sorted(slope * end for end in span(x, parent)))
        form = total(move_in(x, parent).scaled(slope) for parent, slope in slopes.items())
        return form, sum(low for low, _ in ends), sum(high for _, high in ends)
    home = structure.at(column, x.point)
    embedded = embed(structure.predictors[column], x)
    block.add_component(f"equation_of_{column}", embedded)
    x.also_place(embedded.place)
    low, high = embedded.range_of((1.0,))
    return embedded.combine((1.0,)) + LinearForm(-home), min(low - home, 0.0), max(high - home, 0.0)

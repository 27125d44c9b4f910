"""What one program is asked for, of whom, and what came of it: the values that the steps of a search pass on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, final

if TYPE_CHECKING:
    from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity
    from ceopt.formulations.space.reachable import Reach
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.formulations.targets import Target
    from ceopt.solvers.problem import Outcome

__all__ = ["Person", "Point", "SolveRequest", "SolvedProgram", "Start"]

Point: TypeAlias = Mapping[str, float]
#: A point in hand and its cost.
Start: TypeAlias = tuple[float, dict[str, float]]


@final
@dataclass(frozen=True, slots=True)
class Person:
    """Who is asked about: coordinates, the raw row, what each column may become, and the space that says so."""

    factual: dict[str, float]
    row: Any
    reach: Reach
    space: FeatureSpace


@final
@dataclass(frozen=True, slots=True)
class SolveRequest:
    """What one program is to be solved for.

    Parameters
    ----------
    margin
        Least slack of the decision; None for what trees decide themselves.
    below
        By how much the decision may be missed where there is no margin: the model itself is asked about what is found.
    barred
        Points that may not come again, and in what the next must differ from each.
    refused
        Points that the user's own model refused: what it does not tell from one of them, it refuses as well.
    starts
        Points in hand; the first that is not barred is the solver's start.
    budget
        A cost that the answer need not exceed, or None.
    closed
        Whether nothing beyond the budget is wanted.
    exact
        Ask the solver for integers as whole as it can make them.
    met
        How many points that the solver meets on its way are wanted beside the best; 0 for none.
    target
        The decision that is wanted, where it is not the one of the settings.
    unit
        Length in which squares and cones of the cost are counted.
    """

    margin: float | None
    below: float = 0.0
    barred: Sequence[tuple[Point, AbstractDiversity]] = ()
    refused: Sequence[Point] = ()
    starts: Sequence[Start] = ()
    budget: float | None = None
    closed: bool = False
    exact: bool = False
    met: int = 0
    target: Target | None = None
    unit: float = 1.0

    def within(self, start: Start) -> SolveRequest:
        """Return the same, beginning at a point and costing no more than it does."""
        return replace(self, budget=start[0], starts=[start, *self.starts])


@final
@dataclass(frozen=True, slots=True)
class SolvedProgram:
    """What one solve came to: the solver's outcome, its points read as integer decisions, and the seconds it took.

    Objective and bound are those of the cost itself, whatever unit the program had; ``is_curved`` says whether it had
    squares or cones; ``cluster`` in which hull of several the point lies; ``size`` how many variables, whole ones and
    rows the program had.
    """

    outcome: Outcome
    point: dict[str, float] | None
    solver: str
    build_s: float
    lower_s: float
    solve_s: float
    met: tuple[dict[str, float], ...] = ()
    is_curved: bool = False
    cluster: Any = None
    size: Mapping[str, int] = field(default_factory=dict)

    def after(self, before: SolvedProgram) -> SolvedProgram:
        """Return this solve, or the one before it where only that has a point, with the seconds of both."""
        if self.point is None and before.point is not None:
            best = before
        else:
            best = self
        return replace(
            best,
            build_s=self.build_s + before.build_s,
            lower_s=self.lower_s + before.lower_s,
            solve_s=self.solve_s + before.solve_s,
        )

    def with_outcome(self, **changes: Any) -> SolvedProgram:
        """Return the same solve with some of its outcome replaced."""
        return replace(self, outcome=replace(self.outcome, **changes))

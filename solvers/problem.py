"""What a solver is asked and what it answers: problem classes, stop statuses, solutions and results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Outcome", "ProblemClass", "Result", "Solution", "Status", "relative_gap_of"]

Vector = NDArray[np.float64]


class ProblemClass(StrEnum):
    """What a program contains: integers or not, a linear or a convex quadratic objective; rows are linear."""

    LP = "LP"
    MILP = "MILP"
    QP = "QP"
    MIQP = "MIQP"

    @classmethod
    def of(cls, *, integer: bool, quadratic: bool) -> ProblemClass:
        """Return the class of a program with linear rows."""
        if quadratic:
            return cls.MIQP if integer else cls.QP
        return cls.MILP if integer else cls.LP


class Status(StrEnum):
    """Why a solve ended, in one closed set."""

    OPTIMAL = "optimal"
    """The best solution is proved to be within the relative gap."""
    FEASIBLE = "feasible"
    """A limit ended the search with an incumbent in hand, without proof."""
    INFEASIBLE = "infeasible"
    """Proved: no point satisfies the program."""
    UNBOUNDED = "unbounded"
    """Proved: the objective has no limit on the feasible points."""
    TIME_LIMIT = "time_limit"
    """A limit of time or work ended the search with nothing in hand."""
    INTERRUPTED = "interrupted"
    """The user stopped the search; an incumbent, if any, is kept."""
    ERROR = "error"
    """The solver failed; the message says how."""


def relative_gap_of(objective: float | None, bound: float | None) -> float | None:
    """Return ``|objective - bound| / max(|objective|, 1e-12)``, or None where either is unknown."""
    if objective is None or bound is None or not math.isfinite(bound):
        return None
    return abs(objective - bound) / max(abs(objective), 1e-12)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run of a session, in arrays over the compiled columns.

    Parameters
    ----------
    status
        Why the run ended.
    x
        The best point, shape (columns,), as the solver gave it; None if there is none.
    objective, bound
        Of ``x``, recomputed from the compiled arrays; and what is proved about the optimum. In the model's own sense.
    incumbents
        Improving points met on the way, ``(seconds, objective, x)``, best last.
    run_time
        Seconds inside the solver.
    violation
        Greatest violation of rows, bounds and integrality by ``x``, in the units of the row.
    message
        One sentence, or empty.
    """

    status: Status
    x: Vector | None = None
    objective: float | None = None
    bound: float | None = None
    incumbents: tuple[tuple[float, float, Vector], ...] = ()
    run_time: float = 0.0
    violation: float = 0.0
    message: str = ""

    @property
    def gap(self) -> float | None:
        """Relative gap between objective and bound; None where either is unknown."""
        return relative_gap_of(self.objective, self.bound)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Solution(Mapping[str, float]):
    """A point: full Var name -> value, for every Var that the program contains.

    Values are the solver's own; only integer columns are rounded, to exact integers, and Vars that their bounds fix
    take the bound itself.
    """

    objective: float
    x: Vector = field(repr=False)
    compiled: Any = field(repr=False)

    def load(self) -> None:
        """Set the values of the model's Vars to this point."""
        self.compiled.load(self.x)

    def _values(self) -> dict[str, float]:
        return {v.name: value for v, value in self.compiled.assignment(self.x)}

    def __getitem__(self, name: str) -> float:
        return self._values()[name]

    def __iter__(self) -> Any:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self.compiled.assignment(self.x))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What :func:`ceopt.solvers.solve` returns.

    Parameters
    ----------
    status
        Why the search stopped.
    objective, bound
        Of the best solution; and what is proved. None where there is none.
    solutions
        Best first; empty where nothing is in hand.
    timings
        Seconds: ``lower`` (model to arrays) and ``solve``.
    solver, version
        Which solver answered.
    message
        One sentence about the stop, or empty.
    incumbents
        ``(seconds, objective)`` of the improving points met on the way.
    """

    status: Status
    objective: float | None
    bound: float | None
    solutions: tuple[Solution, ...]
    timings: Mapping[str, float]
    solver: str
    version: str
    message: str = ""
    incumbents: tuple[tuple[float, float], ...] = ()

    @property
    def gap(self) -> float | None:
        """``|objective - bound| / max(|objective|, 1e-12)``; None where either is unknown."""
        return relative_gap_of(self.objective, self.bound)

"""Questions and answers of a solver: problem classes, stop statuses, solutions and results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ceopt.solvers.errors import printable

Vector = NDArray[np.float64]


class ProblemClass(StrEnum):
    """What a program contains; each class includes those that its parts alone would make."""

    LP = "LP"
    MILP = "MILP"
    QP = "QP"
    """Linear rows, a convex quadratic objective."""
    MIQP = "MIQP"
    SOCP = "SOCP"
    """Second-order cones or convex quadratic rows."""
    MISOCP = "MISOCP"
    SDP = "SDP"
    """Semidefinite cones, with any others."""
    EXP = "EXP"
    """Exponential cones, with second-order ones."""
    NONCONVEX = "nonconvex QCQP"
    """A quadratic that is not convex, with integers or without, and second-order cones."""
    MISDP = "MISDP"
    MIEXP = "MIEXP"
    NONCONVEX_EXP = "nonconvex exponential program"
    """Exponential cones beside a quadratic that is not convex, with integers or without."""
    NONCONVEX_CONIC = "nonconvex conic program"
    """Semidefinite cones beside a quadratic that is not convex; nobody solves it."""


class Stop(StrEnum):
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

    def __repr__(self) -> str:
        """Return what an enumeration says of a member, under the public name."""
        return f"<Status.{self.name}: {self.value!r}>"


#: A solver's own word for its stop -> (our status with a point in hand, our status with nothing in hand).
StopTable = Mapping[str, tuple[Stop, Stop]]


def relative_gap_of(objective: float | None, bound: float | None) -> float | None:
    """Return ``|objective - bound| / max(|objective|, 1e-12)``, or None where either is unknown."""
    if objective is None or bound is None or not math.isfinite(bound):
        return None
    return abs(objective - bound) / max(abs(objective), 1e-12)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """How well a primal and a dual solution prove each other, recomputed from the program's numbers.

    Parameters
    ----------
    primal, dual
        Greatest residual of the rows and cones, and of stationarity and the dual cones, each relative to the size of
        what is added up there.
    complementarity
        Product of primal slack and dual solution, relative to the objective.
    gap
        ``|primal - dual objective| / max(1, |primal objective|)``.
    """

    primal: float
    dual: float
    complementarity: float
    gap: float

    @property
    def worst(self) -> float:
        """The greatest of the four."""
        return max(self.primal, self.dual, self.complementarity, self.gap)


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
        Greatest violation of rows, cones, bounds and integrality by ``x``, in the units of the row.
    message
        One sentence, or empty.
    pool
        Further feasible points that the solver kept, shape (columns,) each, in no order.
    certificate
        Residuals of primal and dual, recomputed; None where the solver gives no dual solution.
    doubted
        Whether something in hand contradicts what the solver said; the message says what.
    """

    status: Stop
    x: Vector | None = None
    objective: float | None = None
    bound: float | None = None
    incumbents: tuple[tuple[float, float, Vector], ...] = ()
    run_time: float = 0.0
    violation: float = 0.0
    message: str = ""
    pool: tuple[Vector, ...] = ()
    certificate: Certificate | None = None
    doubted: bool = False

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
    _named: dict[str, float] = field(init=False, repr=False, default_factory=dict)

    def load(self) -> None:
        """Set the values of the model's Vars to this point."""
        self.compiled.load(self.x)

    def _values(self) -> dict[str, float]:
        if not self._named:  # names cost more than the solve of a small program: only for who asks
            self._named.update((v.name, value) for v, value in self.compiled.assignment(self.x))
        return self._named

    def __getitem__(self, name: str) -> float:
        return self._values()[name]

    def __iter__(self) -> Any:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())


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
    complete
        False where fewer solutions than asked for came back for another reason than proof that there are no more.
    certificate
        Residuals of primal and dual; None where the solver gives no dual solution.
    """

    status: Stop
    objective: float | None
    bound: float | None
    solutions: tuple[Solution, ...]
    timings: Mapping[str, float]
    solver: str
    version: str
    message: str = ""
    incumbents: tuple[tuple[float, float], ...] = ()
    complete: bool = True
    certificate: Certificate | None = None

    def __str__(self) -> str:
        """Return one line: status, objective, gap, solver, and what it said."""
        words = [str(self.status)]
        if self.objective is not None:
            words.append(f"objective {self.objective:.8g}")
        if self.gap is not None:
            words.append(f"gap {self.gap:.1e}")
        if len(self.solutions) > 1:
            words.append(f"{len(self.solutions)} solutions")
        words.append(f"{self.solver} {self.version}")
        return printable(", ".join(words) + (f". {self.message}" if self.message else ""))

    @property
    def gap(self) -> float | None:
        """``|objective - bound| / max(|objective|, 1e-12)``; None where either is unknown."""
        return relative_gap_of(self.objective, self.bound)

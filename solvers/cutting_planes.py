"""A program whose rows are found one after the other: solve, ask for what the solution breaks, add it, solve again."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

import pyomo.environ as pyo
from pyomo.common.modeling import unique_component_name
from pyomo.core.expr.relational_expr import RelationalExpression

from ceopt.solvers.checks import Flag, Instance, OrNone, Real, Refusal, Whole, check_arguments
from ceopt.solvers.errors import InvalidTypeError
from ceopt.solvers.incremental import Session, session
from ceopt.solvers.problem import Result, Solution, Stop, relative_gap_of
from ceopt.solvers.tolerances import CUTS_NOTHING

_WHO = "cutting_planes"
_NO_FUNCTION = Refusal("a function as {name}", "Pass a callable.", "it is {value}", InvalidTypeError)
_CHECKS = {
    "separate": Instance(Callable, _NO_FUNCTION),  # type: ignore[arg-type]
    "time_limit_s": OrNone(Real(above=0.0)),
    "most_rounds": OrNone(Whole(at_least=1)),
    "lazy": Flag(Refusal("True or False as {name}", "Pass one of them.", error=InvalidTypeError)),
    "progress": Flag(Refusal("True or False as {name}", "Pass one of them.", error=InvalidTypeError)),
}
_HELD = frozenset({Stop.OPTIMAL, Stop.FEASIBLE})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CutRound:
    """One solve: its status, objective and bound, how many cuts its solution brought, and the seconds of both.

    A search with lazy rows is one solve, and its cuts are those of all its candidates. Where a cut ended it, which is
    no linear row over the Vars of the program, its status is ``interrupted``.
    """

    status: Stop
    objective: float | None
    bound: float | None
    n_cuts: int
    seconds: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CuttingPlanes:
    """What :func:`cutting_planes` returns.

    Parameters
    ----------
    status
        ``optimal`` or ``feasible`` only of a solution for which ``separate`` had no cuts.
    solution
        That solution, which is loaded; None without one.
    objective, bound
        Of it; and what the programs so far prove about the optimum with all cuts there are.
    rounds
        Each solve, in order.
    cuts
        The Constraints that were added, in order.
    message
        Why the loop ended; empty for an optimum.
    """

    status: Stop
    solution: Solution | None
    objective: float | None
    bound: float | None
    rounds: tuple[CutRound, ...]
    cuts: tuple[Any, ...]
    message: str = ""

    @property
    def gap(self) -> float | None:
        """``|objective - bound| / max(|objective|, 1e-12)``; None where either is unknown."""
        return relative_gap_of(self.objective, self.bound)


def cutting_planes(
    model: Any,
    separate: Callable[[Solution], Any],
    *,
    start: Mapping[Any, float] | None = None,
    time_limit_s: float | None = None,
    most_rounds: int | None = None,
    progress: bool = False,
    lazy: bool = True,
    solver: str = "auto",
    relative_gap: float = 1e-6,
    threads: int = 1,
    random_state: int = 0,
    options: Mapping[str, Any] | None = None,
) -> CuttingPlanes:
    """Solve a model whose rows are too many to write down, or known only once a solution breaks them.

    Each round solves the model with the cuts so far, loads the solution and hands it to ``separate``, whose cuts are
    added. Every program is a relaxation of the one with all cuts: its bound holds, and if it is infeasible, all is.

    Gurobi and SCIP take rows while they search. There, of a program with integers and linear rows, the first round asks
    ``separate`` about each solution in whole numbers that the search meets, before it counts, and adds the cuts in the
    same tree; the best is asked about once more, and further rounds follow only where that brings cuts.

    Parameters
    ----------
    model
        As for :func:`session`.
    separate
        Called with the :class:`Solution`, which is loaded into the model. Returns nothing where it breaks no row; else
        the cuts: Constraints that it added to the model, or relations such as ``m.x + m.y <= 3``, which are put into a
        ConstraintList of the model, or a list of either. Each has to hold for every point that is wanted.
        With lazy rows it is asked more often, about worse solutions.
    start
        Of the first solve, as for :func:`solve`.
    time_limit_s, most_rounds
        Of the whole loop; None for no limit. The time of ``separate`` counts, and does not end it.
    progress
        Write a line a round, and one for each candidate that is cut off, to standard error.
    lazy
        False: in rounds on every solver.
    solver, relative_gap, threads, random_state, options
        Of the session.

    Returns
    -------
    CuttingPlanes
        A cut that cuts the solution off by less than tolerances tell ends the loop with status ``error`` if no other
        cut of its round does more: the next round would give the same solution. The message names it.

    Raises
    ------
    CeoptError
        What :func:`session` raises; and what ``separate`` raises, as it is.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.solvers import cutting_planes
    >>> m = pyo.ConcreteModel()
    >>> m.x = pyo.Var([1, 2], bounds=(-2, 2))
    >>> m.far = pyo.Objective(expr=m.x[1] + m.x[2], sense=pyo.maximize)
    >>> def tangent(_):
    ...     a, b = m.x[1].value, m.x[2].value
    ...     length = (a * a + b * b) ** 0.5
    ...     return a * m.x[1] + b * m.x[2] <= length if length > 1 + 1e-6 else None
    >>> found = cutting_planes(m, tangent)
    >>> str(found.status), round(found.objective, 4), len(found.cuts) + 1 == len(found.rounds)
    ('optimal', 1.4142, True)
    """
    check_arguments(_WHO, _CHECKS, locals())
    began = time.perf_counter()
    deadline = began + (math.inf if time_limit_s is None else time_limit_s)
    with session(
        model,
        solver,
        relative_gap=relative_gap,
        threads=threads,
        random_state=random_state,
        options=options,
    ) as opened:
        loop = _Loop(model, separate, opened, progress=progress)
        is_lazy = lazy and opened.takes_lazy_rows  # of the first search: what that leaves over is left to rounds
        while True:
            left = deadline - time.perf_counter()
            if left <= 0:
                return loop.ended(Stop.TIME_LIMIT, "The time limit ended the loop.")
            if most_rounds is not None and len(loop.rounds) >= most_rounds:
                return loop.ended(Stop.TIME_LIMIT, f"The limit of {most_rounds} rounds ended the loop.")
            round_began = time.perf_counter()
            result = opened.solve(
                start=None if loop.rounds else start,
                time_limit_s=_finite(left),
                lazy=loop.ends_at if is_lazy else None,
            )
            goes_on = loop.goes_on_after(result)
            loop.note(result, time.perf_counter() - round_began)
            if loop.why:
                return loop.ended(Stop.ERROR, loop.why)
            if not goes_on:
                return loop.concluded(result)
            is_lazy = False


@final
class _Loop:
    """What the rounds so far came to."""

    def __init__(self, model: Any, separate: Callable[[Solution], Any], opened: Session, *, progress: bool) -> None:
        self.rounds: list[CutRound] = []
        self.cuts: list[Any] = []
        self.why = ""  # a cut ends the loop
        self._is_left = False  # whether a cut ended the search that it was found in
        self._n_new = 0
        self._model = model
        self._opened = opened
        self._separate = separate
        self._progress = progress
        self._list: Any = None
        objective = next(model.component_data_objects(pyo.Objective, active=True), None)
        self._sense = 1 if objective is None or objective.sense == pyo.minimize else -1
        self._bound: float | None = None

    def ends_at(self, candidate: Solution) -> bool:
        """Add the cuts of a candidate to the search that runs; return whether that has to end."""
        cuts = self._constraints(self._separate(candidate))
        if cuts and self._progress:
            sys.stderr.write(f"candidate: objective {candidate.objective:.8g}, {len(cuts)} cuts\n")
        self.cuts += cuts
        self._n_new += len(cuts)
        self._is_left = bool(cuts) and not self._opened.add_lazily(cuts)
        return self._is_left

    def goes_on_after(self, result: Result) -> bool:
        """Add the cuts of the solution of a round; return whether the program has cuts that it was solved without."""
        if self._is_left:
            self._is_left = False
            return True
        if result.status not in _HELD or not result.solutions:
            return False
        cuts = self._constraints(self._separate(result.solutions[0]))
        self._n_new += len(cuts)
        if not cuts:
            return False
        self.why = _cuts_nothing(cuts)
        if not self.why:
            self._opened.add(cuts)
            self.cuts += cuts
        return True

    def note(self, result: Result, seconds: float) -> None:
        """Take note of a round."""
        bound = result.bound
        if bound is not None and (self._bound is None or self._sense * (bound - self._bound) > 0):
            self._bound = bound
        one = CutRound(
            status=result.status, objective=result.objective, bound=self._bound, n_cuts=self._n_new, seconds=seconds
        )
        self._n_new = 0
        self.rounds.append(one)
        if self._progress:
            shown = "-" if one.objective is None else f"{one.objective:.8g}"
            sys.stderr.write(
                f"round {len(self.rounds)}: {one.status}, objective {shown}, {one.n_cuts} cuts, {seconds:.2f} s\n"
            )

    def concluded(self, result: Result) -> CuttingPlanes:
        """Return the end of a loop whose last solution breaks nothing, or that has none."""
        if result.status in _HELD and result.solutions:
            objective = result.objective
            bound = self._bound
            if bound is not None and objective is not None and self._sense * (bound - objective) > 0:
                bound = objective  # of an earlier round, and beyond it by rounding
            return self._made(result.status, result.message, result.solutions[0], objective, bound)
        if result.status is Stop.UNBOUNDED:
            why = "The program with the cuts so far is unbounded. Bound its Vars."
            return self._made(Stop.ERROR, why, None, None, None)
        bound = None if result.status is Stop.INFEASIBLE else self._bound
        return self._made(result.status, result.message, None, None, bound)

    def ended(self, status: Stop, message: str) -> CuttingPlanes:
        """Return the end of a loop whose last solution still breaks something."""
        return self._made(status, message, None, None, self._bound)

    def _made(
        self, status: Stop, message: str, solution: Solution | None, objective: float | None, bound: float | None
    ) -> CuttingPlanes:
        return CuttingPlanes(
            status=status,
            solution=solution,
            objective=objective,
            bound=bound,
            rounds=tuple(self.rounds),
            cuts=tuple(self.cuts),
            message=message,
        )

    def _constraints(self, found: Any) -> list[Any]:
        if found is None:
            return []
        if isinstance(found, RelationalExpression):
            if self._list is None:
                self._list = pyo.ConstraintList()
                self._model.add_component(unique_component_name(self._model, "cuts"), self._list)
            return [self._list.add(found)]
        if getattr(found, "ctype", None) is pyo.Constraint:
            return list(found.values()) if found.is_indexed() else [found]
        if isinstance(found, Iterable) and not isinstance(found, str | Mapping):
            return [cut for one in found for cut in self._constraints(one)]
        then = "Return relations, Constraints of the model, a list of them, or None."
        raise InvalidTypeError("separate", "to return cuts", f"it returned {found!r}", then)


def _cuts_nothing(cuts: list[Any]) -> str:
    """Return a sentence if no cut is broken by the values that are loaded; a new Var without a value may break one."""
    for cut in cuts:
        body = pyo.value(cut.body, exception=False)
        if body is None:
            return ""
        for side, sign in ((cut.lower, -1.0), (cut.upper, 1.0)):
            if side is None:
                continue
            limit = float(pyo.value(side))
            if sign * (body - limit) > CUTS_NOTHING * max(1.0, abs(limit)):
                return ""
    names = ", ".join(repr(cut.name) for cut in cuts[:3])
    return (
        f"The loop ended, as {names} does not cut off the solution for which it was returned by more than "
        f"{CUTS_NOTHING:g} of its side, which solvers leave open. Return nothing where a row is kept as well as that."
    )


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None

r"""What is asked of every solver's word: one list of named checks, held against its own point and the points in hand.

:func:`checked` runs :data:`CHECKS` over what a session returned, in their order; each returns the outcome as far as it
can be believed. In hand are the point that came back, the points that were met on the way, and a start that holds every
column. Where these contradict what the solver says, the best of them is ``feasible``, without a bound, and the message
names the contradiction. Where nothing is in hand, a word that cannot be true is an ``error``.

What one solver alone is asked, because it was seen to err there, stands in its adapter: HiGHS's duals, and its answer
without presolve (``highs.py``, ``_with_dual_proof`` and ``_confirmed``); SCIP's gap at its scale (``OptimalityProof``);
Gurobi's rows and gap (``settled_bound``, ``run_again``); the certificates of conic solvers (``conic/certificate.py``).
The second run that a program of extreme numbers gets stands in ``guarded_session.py``. What several runs say of each
other is asked where they are made: ``pool/pool.py``, and ``RETRIES`` of ``ceopt/search/solve_program.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.problem import Outcome, Stop, Vector
from ceopt.solvers.tolerances import (
    CALLED_FEASIBLE,
    CONTRADICTION_SHARE,
    LEAST_CONTRADICTION,
    OVERRULING_VIOLATION,
)
from ceopt.solvers.units import span_of

#: A gap contradicts "optimal" from this share on, or from so many times the gap that was asked for.
_WIDE = 1e-3
_WIDER = 10.0
#: Coefficients of one row that span more are beyond what any solver tells apart in double precision.
_SPAN = 1e12
#: What is proved of a program without a best point.
PROVED_EMPTY: Final = frozenset({Stop.INFEASIBLE, Stop.UNBOUNDED})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """Who solved what: the program, the start that was given (column -> value) and the gap that was asked for."""

    who: str
    compiled: CompiledModel
    start: Mapping[int, float]
    relative_gap: float


def checked(
    who: str, returned: Any, compiled: CompiledModel, *, start: Mapping[int, float], relative_gap: float
) -> Outcome:
    """Return the outcome of a session as far as it can be read and nothing in hand contradicts it.

    Parameters
    ----------
    who
        What messages call the solver.
    returned
        What its session gave: an outcome, or anything else if the session is wrong.
    compiled
        The program that was solved.
    start, relative_gap
        As the session was given them.
    """
    solved = Solved(who=who, compiled=compiled, start=start, relative_gap=relative_gap)
    outcome: Outcome = returned
    for check in CHECKS:
        outcome = check(outcome, solved)
    return outcome


# ---- what can be read ------------------------------------------------------------------------------------------------
def is_an_outcome(returned: Any, solved: Solved) -> Outcome:
    """Return an outcome with a known status; for anything else, an ``error`` that names it."""
    if not isinstance(returned, Outcome):
        return _failed(f"{solved.who} returned {type(returned).__name__}, which is no Outcome.")
    if returned.status not in set(Stop):
        return _failed(f"{solved.who} ended with {returned.status!r}, which is no Status.")
    return replace(returned, status=Stop(returned.status))


def point_is_finite(outcome: Outcome, solved: Solved) -> Outcome:
    """Take a point, and the further ones, only if they are a finite number for each column."""
    compiled = solved.compiled
    x = None
    if outcome.x is not None:
        x = _point(outcome.x, compiled)
        if x is None:
            return _failed(f"{solved.who} gave a point that is not {len(compiled.columns)} finite numbers.")
    pool = []
    for other in outcome.pool:
        point = _point(other, compiled)
        if point is not None:
            pool.append(point)
    met = []
    for seconds, _, other in outcome.incumbents:
        point = _point(other, compiled)
        if point is not None:
            met.append((seconds, compiled.evaluate(point), point))
    return replace(outcome, x=x, pool=tuple(pool), incumbents=tuple(met))


def bound_is_a_number(outcome: Outcome, solved: Solved) -> Outcome:
    """Take a bound only if it is a number; one that is infinitely far from every objective is none."""
    bound = outcome.bound
    if bound is None:
        return outcome
    if not (_is_number(bound) and solved.compiled.sense * bound < math.inf):
        return _unproved(outcome, f"{solved.who} gave the bound {bound!r}.")
    if math.isinf(bound):
        return replace(outcome, bound=None)
    return outcome


def objective_is_of_the_point(outcome: Outcome, solved: Solved) -> Outcome:
    """Recompute the objective; where the solver gave another, nothing is proved."""
    x = outcome.x
    if x is None:
        return replace(outcome, objective=None)
    compiled = solved.compiled
    given: Any = outcome.objective
    objective = compiled.evaluate(x)
    outcome = replace(outcome, objective=objective)
    if given is None:
        return outcome
    slack = CONTRADICTION_SHARE * _size(compiled, x, objective) + LEAST_CONTRADICTION
    if _is_number(given) and abs(given - objective) <= slack:
        return outcome
    return _unproved(outcome, f"{solved.who} gave a point as {given!r} whose objective is {objective:.8g}.")


# ---- what can be true ------------------------------------------------------------------------------------------------
def solution_has_a_point(outcome: Outcome, solved: Solved) -> Outcome:
    """Take "optimal" and "feasible" only with a point."""
    if outcome.x is None and outcome.status in {Stop.OPTIMAL, Stop.FEASIBLE}:
        message = f"{solved.who} calls the program {outcome.status} without a point."
        return _doubted(replace(outcome, status=Stop.ERROR), message)
    return outcome


def point_keeps_the_program(outcome: Outcome, solved: Solved) -> Outcome:
    """Take a point only if it keeps rows, cones, bounds and integers, relative to the terms of each row."""
    x = outcome.x
    if x is None:
        return outcome
    if missed(solved.compiled, x) <= CALLED_FEASIBLE:
        return _with_status_of_a_point(outcome, solved)
    without = replace(outcome, x=None, objective=None)
    if outcome.status in PROVED_EMPTY:
        return without  # a ray, or the point that is least wrong
    message = f"{solved.who}'s point violates the program by {solved.compiled.violation(x):.3g}."
    if outcome.status is Stop.INTERRUPTED:
        return _doubted(without, message)
    return _doubted(replace(outcome, status=Stop.ERROR), message)


def _with_status_of_a_point(outcome: Outcome, solved: Solved) -> Outcome:
    """Call a point that keeps the program feasible, whatever else the solver says of the program."""
    status = outcome.status
    if status is Stop.TIME_LIMIT:
        return replace(outcome, status=Stop.FEASIBLE)
    if status is Stop.UNBOUNDED and not _is_bounded(solved.compiled):
        return replace(outcome, x=None, objective=None)  # an unbounded program has points
    if status in PROVED_EMPTY or status is Stop.ERROR:
        message = f"{solved.who} ends with {str(status)!r} although it has a point."
        return _doubted(replace(outcome, status=Stop.FEASIBLE), message)
    return outcome


def unbounded_objective_has_no_bound(outcome: Outcome, solved: Solved) -> Outcome:
    """Take "unbounded" only where the bounds of the columns do not bound the objective."""
    if outcome.status is Stop.UNBOUNDED and _is_bounded(solved.compiled):
        message = f"{solved.who} calls a program unbounded whose columns bound its objective."
        return _doubted(replace(outcome, status=Stop.ERROR), message)
    return outcome


def no_known_point_is_better(outcome: Outcome, solved: Solved) -> Outcome:
    """Return a point in hand that is better than the solver's own; it refutes "infeasible"."""
    if outcome.status is Stop.UNBOUNDED:
        return outcome
    known = _best_known(outcome, solved)
    if known is None:
        return outcome
    held = replace(outcome, x=known, objective=solved.compiled.evaluate(known))
    if outcome.status is Stop.INFEASIBLE:
        message = f"{solved.who} calls the program infeasible, of which a point is in hand."
        return _doubted(replace(held, status=Stop.FEASIBLE), message)
    if outcome.status is Stop.ERROR:
        return replace(held, status=Stop.FEASIBLE, bound=None)
    if outcome.x is None and outcome.status is Stop.TIME_LIMIT:
        return replace(held, status=Stop.FEASIBLE)
    return held


def bound_is_no_worse_than_the_point(outcome: Outcome, solved: Solved) -> Outcome:
    """Take no bound that is worse than the point by more than tolerances explain."""
    x = outcome.x
    bound = outcome.bound
    objective = outcome.objective
    if x is None or bound is None or objective is None or outcome.certificate is not None:
        return outcome  # a certificate measures more than the two numbers
    if contradicts(bound, objective, solved.compiled, x):
        message = f"{solved.who}'s bound {bound:.8g} contradicts a point in hand with objective {objective:.8g}."
        return _unproved(outcome, message)
    return replace(outcome, bound=within_rounding(bound, objective, solved.compiled, x))


def optimum_is_within_the_gap(outcome: Outcome, solved: Solved) -> Outcome:
    """Take "optimal" only where the bound is near the objective."""
    x = outcome.x
    bound = outcome.bound
    objective = outcome.objective
    if x is None or bound is None or objective is None or outcome.certificate is not None:
        return outcome
    if outcome.status is Stop.OPTIMAL and leaves_open(bound, objective, solved.compiled, x, solved.relative_gap):
        message = f"{solved.who} calls {objective:.8g} optimal, but its bound is {bound:.8g}."
        return replace(outcome, status=Stop.FEASIBLE, message=f"{outcome.message} {message}".strip())
    return outcome


#: What every session's word is asked, in this order; the first check makes an outcome of whatever came back.
CHECKS: Final[tuple[Callable[[Any, Solved], Outcome], ...]] = (
    is_an_outcome,
    point_is_finite,
    bound_is_a_number,
    objective_is_of_the_point,
    solution_has_a_point,
    point_keeps_the_program,
    unbounded_objective_has_no_bound,
    no_known_point_is_better,
    bound_is_no_worse_than_the_point,
    optimum_is_within_the_gap,
)


def claims_survive_rounding(outcome: Outcome, program: CompiledModel) -> Outcome:
    """Take claims back where coefficients of one row are too far apart to be told from rounding.

    Asked of programs of extreme numbers, in the units in which they were solved.
    """
    if outcome.status not in {Stop.OPTIMAL, Stop.INFEASIBLE}:
        return outcome
    span = span_of(program)
    if span <= _SPAN:
        return outcome
    status = Stop.FEASIBLE if outcome.x is not None else Stop.ERROR
    return replace(outcome, status=status, message=f"Coefficients of one row span {span:.1g}: nothing is proved.")


# ---- the measures, which adapters use too ----------------------------------------------------------------------------
def contradicts(bound: float, objective: float, compiled: CompiledModel, x: Vector) -> bool:
    """Tell whether a bound is worse than the objective of a point by more than a solver's tolerances explain."""
    return (
        compiled.sense * (bound - objective) > CONTRADICTION_SHARE * _size(compiled, x, objective) + LEAST_CONTRADICTION
    )


def leaves_open(bound: float, objective: float, compiled: CompiledModel, x: Vector, relative_gap: float) -> bool:
    """Tell whether a bound is further from the objective of a point than the gap and a solver's tolerances explain."""
    least = max(_WIDE, _WIDER * relative_gap) * _size(compiled, x, objective) + LEAST_CONTRADICTION
    return compiled.sense * (objective - bound) > least


def within_rounding(bound: float | None, objective: float, compiled: CompiledModel, x: Vector) -> float | None:
    """Return the objective for a bound that is worse by rounding only; one that contradicts it stays, to be seen."""
    if bound is None or compiled.sense * (bound - objective) <= 0 or contradicts(bound, objective, compiled, x):
        return bound
    return objective


def missed(compiled: CompiledModel, x: Vector) -> float:
    """Return the greatest violation of the program by ``x``, relative to the terms of its row, of at least 1."""
    worst = compiled.violation(x)
    if worst <= OVERRULING_VIOLATION or math.isinf(worst):
        return worst
    activity = compiled.A @ x
    size = abs(compiled.A) @ np.abs(x)
    rows = np.maximum(compiled.row_lb - activity, activity - compiled.row_ub) / np.maximum(size, 1.0)
    columns = np.maximum(compiled.lb - x, x - compiled.ub) / np.maximum(np.abs(x), 1.0)
    whole = x[compiled.integer]
    steps = np.abs(whole - np.round(whole)) / np.maximum(np.abs(whole), 1.0)
    share = max(float(part.max(initial=0.0)) for part in (rows, columns, steps))
    for row in compiled.quadratics:
        added_up = max(1.0, float((abs(row.a) @ np.abs(x))[0]))
        share = max(share, row.violation(x) / added_up)
    for cone in compiled.cones:
        added_up = float(np.abs(cone.entries(x)).max(initial=1.0))
        share = max(share, cone.violation(x) / added_up)
    return share


# ---- the points in hand ----------------------------------------------------------------------------------------------
def _best_known(outcome: Outcome, solved: Solved) -> Vector | None:
    """Return the best point in hand that keeps the program exactly and is better than the one that came back."""
    compiled = solved.compiled
    points: list[Vector] = [x for _, _, x in outcome.incumbents]
    started = _of_start(compiled, solved.start)
    if started is not None:
        points.append(started)
    least = math.inf
    if outcome.x is not None and outcome.status is not Stop.ERROR:
        least = compiled.sense * compiled.evaluate(outcome.x)
    losses = [compiled.sense * compiled.evaluate(x) for x in points]
    for k in sorted(range(len(points)), key=losses.__getitem__):
        if not losses[k] < least:
            return None
        if missed(compiled, points[k]) <= OVERRULING_VIOLATION:
            return points[k]
    return None


def _of_start(compiled: CompiledModel, start: Mapping[int, float]) -> Vector | None:
    """Return a start as a point, where it holds every column that is not fixed."""
    x = np.where(compiled.lb == compiled.ub, compiled.lb, np.nan)
    x[list(start)] = list(start.values())
    if np.isfinite(x).all():
        return x
    return None


def _is_bounded(compiled: CompiledModel) -> bool:
    """Whether the bounds of the columns bound the objective."""
    ends = np.where(compiled.sense * compiled.c > 0, compiled.lb, compiled.ub)
    return compiled.Q is None and bool(np.isfinite(ends[compiled.c != 0]).all())


def _point(x: Any, compiled: CompiledModel) -> Vector | None:
    try:
        point = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if point.shape == (len(compiled.columns),) and np.isfinite(point).all():
        return point
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not math.isnan(value)


def _size(compiled: CompiledModel, x: Vector, objective: float) -> float:
    """Return the sum of the absolute terms of a linear objective, and of the objective itself."""
    return abs(compiled.c0) + float(np.abs(compiled.c) @ np.abs(x)) + abs(objective)


def _unproved(outcome: Outcome, message: str) -> Outcome:
    """Return an outcome that claims neither bound nor optimum, and says why."""
    status = Stop.FEASIBLE if outcome.status is Stop.OPTIMAL else outcome.status
    return _doubted(replace(outcome, status=status), message)


def _doubted(outcome: Outcome, message: str) -> Outcome:
    """Return an outcome that claims no bound, and says why."""
    return replace(outcome, bound=None, doubted=True, message=f"{outcome.message} {message}".strip())


def _failed(message: str) -> Outcome:
    return Outcome(status=Stop.ERROR, message=message)

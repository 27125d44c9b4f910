"""Checks of what a solver claims, against its own point and all other points that are known: one list, ``CHECKS``.

:func:`checked` runs :data:`CHECKS` over what a session returned, in their order; each returns the outcome without the
claims that it refutes. Known points are the solver's final point, its incumbents, and a start that holds every column.
If a known point contradicts the solver, the best known point is returned as ``feasible``, without a bound, and the
message names the contradiction. Without a known point, an impossible claim becomes an ``error``.

Checks for the known errors of one solver are in its adapter: HiGHS's duals, and its answer without presolve
(``highs.py``, ``_with_dual_proof`` and ``_confirmed``); SCIP's gap at its scale (``OptimalityProof``); Gurobi's rows
and gap (``settled_bound``, ``run_again``); the certificates of conic solvers (``conic/certificate.py``). Programs with
extreme coefficients are solved a second time in ``guarded_session.py``. Results of several runs are compared where
those are started: ``pool/pool.py``, and ``RETRIES`` of ``ceopt/search/solve_program.py``.
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

#: A gap contradicts "optimal" if it exceeds both this share of the objective and this multiple of the gap asked for.
_WIDE = 1e-3
_WIDER = 10.0
#: Where the coefficients of one row span more, double precision loses the small ones in the sum of the row.
_SPAN = 1e12
#: Statuses that prove that there is no optimum.
NO_OPTIMUM: Final = frozenset({Stop.INFEASIBLE, Stop.UNBOUNDED})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SolverCall:
    """One call of a solver: its name, the program, the start (column -> value) and the gaps."""

    who: str
    compiled: CompiledModel
    start: Mapping[int, float]
    relative_gap: float
    absolute_gap: float = 0.0


def checked(
    who: str,
    returned: Any,
    compiled: CompiledModel,
    *,
    start: Mapping[int, float],
    relative_gap: float,
    absolute_gap: float = 0.0,
) -> Outcome:
    """Return the outcome of a session without what cannot be read or is contradicted by a known point.

    Parameters
    ----------
    who
        What messages call the solver.
    returned
        What its session gave: an outcome, or anything else if the session is wrong.
    compiled
        The program that was solved.
    start, relative_gap, absolute_gap
        As the session was given them.
    """
    call = SolverCall(who=who, compiled=compiled, start=start, relative_gap=relative_gap, absolute_gap=absolute_gap)
    outcome: Outcome = returned
    for check in CHECKS:
        outcome = check(outcome, call)
    return outcome


# ---- what can be read ------------------------------------------------------------------------------------------------
def as_outcome(returned: Any, call: SolverCall) -> Outcome:
    """Return an Outcome with a known status; for anything else, an ``error`` that says what it is."""
    if not isinstance(returned, Outcome):
        return _failed(f"{call.who} returned {type(returned).__name__}, which is no Outcome.")
    if returned.status not in set(Stop):
        return _failed(f"{call.who} ended with {returned.status!r}, which is no Status.")
    return replace(returned, status=Stop(returned.status))


def drop_infinite_points(outcome: Outcome, call: SolverCall) -> Outcome:
    """Drop further points that are not one finite number per column; if the best is not, return an ``error``."""
    compiled = call.compiled
    x = None
    if outcome.x is not None:
        x = _point(outcome.x, compiled)
        if x is None:
            return _failed(f"{call.who} gave a point that is not {len(compiled.columns)} finite numbers.")
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


def drop_meaningless_bound(outcome: Outcome, call: SolverCall) -> Outcome:
    """Keep a bound only if it is a number; an infinite one that bounds nothing becomes None."""
    bound = outcome.bound
    if bound is None:
        return outcome
    if not (_is_number(bound) and call.compiled.sense * bound < math.inf):
        return _unproved(outcome, f"{call.who} gave the bound {bound!r}.")
    if math.isinf(bound):
        return replace(outcome, bound=None)
    return outcome


def recompute_objective(outcome: Outcome, call: SolverCall) -> Outcome:
    """Recompute the objective of the point; if the solver gave another, drop its bound."""
    x = outcome.x
    if x is None:
        return replace(outcome, objective=None)
    compiled = call.compiled
    given: Any = outcome.objective
    objective = compiled.evaluate(x)
    outcome = replace(outcome, objective=objective)
    if given is None:
        return outcome
    if _is_number(given) and abs(given - objective) <= _tolerance(CONTRADICTION_SHARE, compiled, x, objective):
        return outcome
    return _unproved(outcome, f"{call.who} gave a point as {given!r} whose objective is {objective:.8g}.")


# ---- what can be true ------------------------------------------------------------------------------------------------
def refuse_solution_without_point(outcome: Outcome, call: SolverCall) -> Outcome:
    """Turn "optimal" or "feasible" without a point into an ``error``."""
    if outcome.x is None and outcome.status in {Stop.OPTIMAL, Stop.FEASIBLE}:
        message = f"{call.who} calls the program {outcome.status} without a point."
        return _doubted(replace(outcome, status=Stop.ERROR), message)
    return outcome


def drop_infeasible_point(outcome: Outcome, call: SolverCall) -> Outcome:
    """Drop a point that violates rows, cones, bounds or integers, relative to the terms of each row."""
    x = outcome.x
    if x is None:
        return outcome
    if relative_violation(call.compiled, x) <= CALLED_FEASIBLE:
        return _with_status_of_a_point(outcome, call)
    without = replace(outcome, x=None, objective=None)
    if outcome.status in NO_OPTIMUM:
        return without  # with these, solvers return an unbounded ray or the least infeasible point
    message = f"{call.who}'s point violates the program by {call.compiled.violation(x):.3g}."
    if outcome.status is Stop.INTERRUPTED:
        return _doubted(without, message)
    return _doubted(replace(outcome, status=Stop.ERROR), message)


def _with_status_of_a_point(outcome: Outcome, call: SolverCall) -> Outcome:
    """Return ``feasible`` for a feasible point after a time limit, an error or a false claim of infeasibility."""
    status = outcome.status
    if status is Stop.TIME_LIMIT:
        return replace(outcome, status=Stop.FEASIBLE)
    if status is Stop.UNBOUNDED and not _is_bounded(call.compiled):
        return replace(outcome, x=None, objective=None)  # a feasible point does not refute "unbounded"
    if status in NO_OPTIMUM or status is Stop.ERROR:
        message = f"{call.who} ends with {str(status)!r} although it has a point."
        return _doubted(replace(outcome, status=Stop.FEASIBLE), message)
    return outcome


def refuse_unbounded_if_bounded(outcome: Outcome, call: SolverCall) -> Outcome:
    """Turn "unbounded" into an ``error`` if the bounds of the columns bound the objective."""
    if outcome.status is Stop.UNBOUNDED and _is_bounded(call.compiled):
        message = f"{call.who} calls a program unbounded whose columns bound its objective."
        return _doubted(replace(outcome, status=Stop.ERROR), message)
    return outcome


def take_better_known_point(outcome: Outcome, call: SolverCall) -> Outcome:
    """Replace the solver's point by a better known one; any known point refutes "infeasible"."""
    if outcome.status is Stop.UNBOUNDED:
        return outcome
    known = _best_known(outcome, call)
    if known is None:
        return outcome
    held = replace(outcome, x=known, objective=call.compiled.evaluate(known))
    if outcome.status is Stop.INFEASIBLE:
        message = f"{call.who} calls the program infeasible, of which a point is in hand."
        return _doubted(replace(held, status=Stop.FEASIBLE), message)
    if outcome.status is Stop.ERROR:
        return replace(held, status=Stop.FEASIBLE, bound=None)
    if outcome.x is None and outcome.status is Stop.TIME_LIMIT:
        return replace(held, status=Stop.FEASIBLE)
    return held


def drop_refuted_bound(outcome: Outcome, call: SolverCall) -> Outcome:
    """Drop a bound that excludes the objective of the point by more than tolerances explain."""
    x = outcome.x
    bound = outcome.bound
    objective = outcome.objective
    if x is None or bound is None or objective is None or outcome.certificate is not None:
        return outcome  # the residuals of a certificate are judged instead
    if contradicts(bound, objective, call.compiled, x):
        message = f"{call.who}'s bound {bound:.8g} contradicts a point in hand with objective {objective:.8g}."
        return _unproved(outcome, message)
    return replace(outcome, bound=within_rounding(bound, objective, call.compiled, x))


def doubt_optimum_beyond_gap(outcome: Outcome, call: SolverCall) -> Outcome:
    """Turn "optimal" into ``feasible`` if the bound is far from the objective.

    Without a bound, the solver's word stands; a search reports such an answer as feasible.
    """
    x = outcome.x
    bound = outcome.bound
    objective = outcome.objective
    if x is None or bound is None or objective is None or outcome.certificate is not None:
        return outcome
    is_open = leaves_open(bound, objective, call.compiled, x, call.relative_gap, absolute_gap=call.absolute_gap)
    if outcome.status is Stop.OPTIMAL and is_open:
        message = f"{call.who} calls {objective:.8g} optimal, but its bound is {bound:.8g}."
        return replace(outcome, status=Stop.FEASIBLE, message=f"{outcome.message} {message}".strip())
    return outcome


#: What every session's word is asked, in this order; the first check makes an outcome of whatever came back.
CHECKS: Final[tuple[Callable[[Any, SolverCall], Outcome], ...]] = (
    as_outcome,
    drop_infinite_points,
    drop_meaningless_bound,
    recompute_objective,
    refuse_solution_without_point,
    drop_infeasible_point,
    refuse_unbounded_if_bounded,
    take_better_known_point,
    drop_refuted_bound,
    doubt_optimum_beyond_gap,
)


def drop_claims_lost_in_rounding(outcome: Outcome, program: CompiledModel) -> Outcome:
    """Drop bound, "optimal" and "infeasible" if the coefficients of a row are so far apart that small ones are lost.

    Asked of programs with extreme coefficients, after they are rescaled.
    """
    span = span_of(program)
    if span <= _SPAN or (outcome.bound is None and outcome.status not in {Stop.OPTIMAL, Stop.INFEASIBLE}):
        return outcome
    return without_claims(outcome, f"Coefficients of one row span {span:.1g}: nothing is proved.")


def without_claims(outcome: Outcome, message: str) -> Outcome:
    """Return an outcome that claims no bound, "optimal" or "infeasible", and says why."""
    outcome = _unproved(outcome, message)
    if outcome.status is Stop.INFEASIBLE:
        return replace(outcome, status=Stop.ERROR)
    return outcome


# ---- the measures, which adapters use too ----------------------------------------------------------------------------
def contradicts(bound: float, objective: float, compiled: CompiledModel, x: Vector) -> bool:
    """Tell whether the objective of a point refutes a bound: is better than it by more than tolerances explain."""
    return compiled.sense * (bound - objective) > _tolerance(CONTRADICTION_SHARE, compiled, x, objective)


def leaves_open(
    bound: float,
    objective: float,
    compiled: CompiledModel,
    x: Vector,
    relative_gap: float,
    *,
    absolute_gap: float = 0.0,
) -> bool:
    """Tell whether a bound is further from the objective of a point than the gaps and tolerances explain."""
    share = max(_WIDE, _WIDER * relative_gap)
    missing = compiled.sense * (objective - bound) - absolute_gap
    return missing > _tolerance(share, compiled, x, objective)


def within_rounding(bound: float | None, objective: float, compiled: CompiledModel, x: Vector) -> float | None:
    """Return the objective in place of a bound that it refutes by rounding only.

    A bound that it contradicts is returned as it is: a later check finds it.
    """
    if bound is None or compiled.sense * (bound - objective) <= 0 or contradicts(bound, objective, compiled, x):
        return bound
    return objective


def relative_violation(compiled: CompiledModel, x: Vector) -> float:
    """Return the greatest violation by ``x``, each over the sum of the absolute terms of its row, of at least 1.

    A violation of at most ``OVERRULING_VIOLATION`` is returned as it is.
    """
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
    for one in compiled.sets:
        share = max(share, one.violation(x) / max(1.0, float(one.sizes(x).max())))
    return share


# ---- the known points ------------------------------------------------------------------------------------------------
def _best_known(outcome: Outcome, call: SolverCall) -> Vector | None:
    """Return the best known point that keeps the program and is better than the solver's; None without one."""
    compiled = call.compiled
    points: list[Vector] = [x for _, _, x in outcome.incumbents]
    started = _of_start(compiled, call.start)
    if started is not None:
        points.append(started)
    least = math.inf
    if outcome.x is not None and outcome.status is not Stop.ERROR:
        least = compiled.sense * compiled.evaluate(outcome.x)
    losses = [compiled.sense * compiled.evaluate(x) for x in points]
    for k in sorted(range(len(points)), key=losses.__getitem__):
        if losses[k] >= least:
            return None
        if relative_violation(compiled, points[k]) <= OVERRULING_VIOLATION:
            return points[k]
    return None


def _of_start(compiled: CompiledModel, start: Mapping[int, float]) -> Vector | None:
    """Return a start as a point; None if it lacks a column that is not fixed."""
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


def _tolerance(share: float, compiled: CompiledModel, x: Vector, objective: float) -> float:
    """Return a share of the absolute terms of the linear objective and of the objective, and the least difference."""
    size = abs(compiled.c0) + float(np.abs(compiled.c) @ np.abs(x)) + abs(objective)
    return share * size + LEAST_CONTRADICTION


def _unproved(outcome: Outcome, message: str) -> Outcome:
    """Return an outcome that claims neither bound nor optimum, and says why."""
    if outcome.status is Stop.OPTIMAL:
        outcome = replace(outcome, status=Stop.FEASIBLE)
    return _doubted(outcome, message)


def _doubted(outcome: Outcome, message: str) -> Outcome:
    """Return an outcome that claims no bound, and says why."""
    return replace(outcome, bound=None, doubted=True, message=f"{outcome.message} {message}".strip())


def _failed(message: str) -> Outcome:
    return Outcome(status=Stop.ERROR, message=message)

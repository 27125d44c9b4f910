"""Contradictions between a solver's word, its own point and the points in hand: what they contradict is no proof."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.problem import Outcome, Stop, Vector
from ceopt.solvers.tolerances import CALLED_FEASIBLE, CONTRADICTION_SHARE, LEAST_CONTRADICTION, OVERRULING_VIOLATION

__all__ = ["contradicts", "credible", "missed", "readable"]

#: A gap contradicts "optimal" from this share on, or from so many times the gap that was asked for.
_WIDE = 1e-3
_WIDER = 10.0
_PROOFS: Final = frozenset({Stop.INFEASIBLE, Stop.UNBOUNDED})


def readable(who: str, told: Any, compiled: CompiledModel) -> Outcome:
    """Return what a session told, as far as it is a status, a bound and points of finite numbers.

    Where the point is none, or the status, the outcome is an ``error``; the message says what was there instead.
    """
    if not isinstance(told, Outcome):
        return _failed(f"{who} returned {type(told).__name__}, which is no Outcome.")
    if told.status not in set(Stop):
        return _failed(f"{who} ended with {told.status!r}, which is no Status.")
    x = None
    if told.x is not None:
        x = _point(told.x, compiled)
    if told.x is not None and x is None:
        return _failed(f"{who} gave a point that is not {len(compiled.columns)} finite numbers.")
    pool = []
    for other in told.pool:
        point = _point(other, compiled)
        if point is not None:
            pool.append(point)
    met = []
    for seconds, _, other in told.incumbents:
        point = _point(other, compiled)
        if point is not None:
            met.append((seconds, compiled.evaluate(point), point))
    outcome = replace(
        told,
        status=Stop(told.status),
        x=x,
        objective=None if x is None else compiled.evaluate(x),
        pool=tuple(pool),
        incumbents=tuple(met),
    )
    bound = told.bound
    if bound is not None and not (_is_number(bound) and compiled.sense * bound < math.inf):
        outcome = _unproved(outcome, f"{who} gave the bound {bound!r}.")
    elif bound is not None and math.isinf(bound):
        outcome = replace(outcome, bound=None)
    if x is None or told.objective is None or _agree(told.objective, outcome.objective, compiled, x):
        return outcome
    return _unproved(outcome, f"{who} gave a point as {told.objective!r} whose objective is {outcome.objective:.8g}.")


def credible(
    who: str, outcome: Outcome, compiled: CompiledModel, *, start: Mapping[int, float], relative_gap: float
) -> Outcome:
    """Return an outcome that nothing in hand contradicts.

    In hand are the point that came back, those that were met on the way, and a start that holds every column. Where
    they contradict what the solver says, the best of them is ``feasible``, without a bound, and the message names the
    contradiction. Where nothing is in hand, a word that cannot be true is an ``error``.
    """
    if outcome.x is not None:
        outcome = _with_point(who, outcome, compiled)
    elif outcome.status in {Stop.OPTIMAL, Stop.FEASIBLE}:
        said = f"{who} calls the program {outcome.status} without a point."
        outcome = _doubted(replace(outcome, status=Stop.ERROR), said)
    if outcome.status is Stop.UNBOUNDED and _is_bounded(compiled):
        said = f"{who} calls a program unbounded whose columns bound its objective."
        outcome = _doubted(replace(outcome, status=Stop.ERROR), said)
    known = _known(outcome, compiled, start)
    if known is not None:
        outcome = _with_known(who, outcome, compiled, known)
    if outcome.x is None:
        return outcome
    return _with_bound(who, outcome, compiled, relative_gap)


def contradicts(bound: float, objective: float, compiled: CompiledModel, x: Vector) -> bool:
    """Tell whether a bound is worse than the objective of a point by more than a solver's tolerances explain."""
    return (
        compiled.sense * (bound - objective) > CONTRADICTION_SHARE * _size(compiled, x, objective) + LEAST_CONTRADICTION
    )


def leaves_open(bound: float, objective: float, compiled: CompiledModel, x: Vector, relative_gap: float) -> bool:
    """Tell whether a bound is further from the objective of a point than the gap and a solver's tolerances explain."""
    least = max(_WIDE, _WIDER * relative_gap) * _size(compiled, x, objective) + LEAST_CONTRADICTION
    return compiled.sense * (objective - bound) > least


def missed(compiled: CompiledModel, x: Vector) -> float:
    """Return the greatest violation of the program by ``x``, as a share of what its row adds up, of at least 1."""
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


# ---- one thing at a time ---------------------------------------------------------------------------------------------
def _with_point(who: str, outcome: Outcome, compiled: CompiledModel) -> Outcome:
    """Compare the stop with the point that came with it."""
    assert outcome.x is not None  # noqa: S101 - the caller looked
    status = outcome.status
    without = replace(outcome, x=None, objective=None)
    if missed(compiled, outcome.x) > CALLED_FEASIBLE:
        if status in _PROOFS:
            return without  # a ray, or the point that is least wrong
        said = f"{who}'s point violates the program by {compiled.violation(outcome.x):.3g}."
        if status is Stop.INTERRUPTED:
            return _doubted(without, said)
        return _doubted(replace(outcome, status=Stop.ERROR), said)
    if status is Stop.TIME_LIMIT:
        return replace(outcome, status=Stop.FEASIBLE)
    if status is Stop.UNBOUNDED and not _is_bounded(compiled):
        return without  # an unbounded program has points
    if status in _PROOFS or status is Stop.ERROR:
        said = f"{who} ends with {str(status)!r} although it has a point."
        return _doubted(replace(outcome, status=Stop.FEASIBLE), said)
    return outcome


def _with_known(who: str, outcome: Outcome, compiled: CompiledModel, known: Vector) -> Outcome:
    """Compare what came back with a point that is known to keep the program."""
    objective = compiled.evaluate(known)
    held = replace(outcome, x=known, objective=objective)
    if outcome.status is Stop.UNBOUNDED:
        return outcome
    if outcome.status is Stop.INFEASIBLE:
        said = f"{who} calls the program infeasible, of which a point is in hand."
        return _doubted(replace(held, status=Stop.FEASIBLE), said)
    if outcome.status is Stop.ERROR:
        return replace(held, status=Stop.FEASIBLE, bound=None)
    if outcome.x is None:
        if outcome.status is Stop.TIME_LIMIT:
            return replace(held, status=Stop.FEASIBLE)
        return held
    return held  # which is better than the point that came back: see _known


def _with_bound(who: str, outcome: Outcome, compiled: CompiledModel, relative_gap: float) -> Outcome:
    """Compare the bound with the objective; where tolerances explain that it is worse, the objective is taken."""
    assert outcome.x is not None  # noqa: S101 - the caller looked
    assert outcome.objective is not None  # noqa: S101 - it belongs to the point
    bound = outcome.bound
    objective = outcome.objective
    if bound is None or outcome.certificate is not None:  # which measures more than the two numbers
        return outcome
    if contradicts(bound, objective, compiled, outcome.x):
        said = f"{who}'s bound {bound:.8g} contradicts a point in hand with objective {objective:.8g}."
        return _unproved(outcome, said)
    if outcome.status is Stop.OPTIMAL and leaves_open(bound, objective, compiled, outcome.x, relative_gap):
        said = f"{who} calls {objective:.8g} optimal, but its bound is {bound:.8g}."
        return replace(outcome, status=Stop.FEASIBLE, message=f"{outcome.message} {said}".strip())
    if compiled.sense * (bound - objective) > 0:
        return replace(outcome, bound=objective)
    return outcome


def _known(outcome: Outcome, compiled: CompiledModel, start: Mapping[int, float]) -> Vector | None:
    """Return the best point in hand that keeps the program exactly, if there is one that is needed."""
    points: list[Vector] = [x for _, _, x in outcome.incumbents]
    started = _of_start(compiled, start)
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
    """Whether the bounds of the columns alone bound the objective."""
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
    """Return the size of what is added up to the objective."""
    return abs(compiled.c0) + float(np.abs(compiled.c) @ np.abs(x)) + abs(objective)


def _agree(told: Any, objective: float | None, compiled: CompiledModel, x: Vector) -> bool:
    assert objective is not None  # noqa: S101 - it belongs to the point
    return (
        _is_number(told)
        and abs(told - objective) <= CONTRADICTION_SHARE * _size(compiled, x, objective) + LEAST_CONTRADICTION
    )


def _unproved(outcome: Outcome, said: str) -> Outcome:
    """Return an outcome that claims neither bound nor optimum, and says why."""
    status = Stop.FEASIBLE if outcome.status is Stop.OPTIMAL else outcome.status
    return _doubted(replace(outcome, status=status), said)


def _doubted(outcome: Outcome, said: str) -> Outcome:
    """Return an outcome that claims no bound, and says why."""
    return replace(outcome, bound=None, doubted=True, message=f"{outcome.message} {said}".strip())


def _failed(said: str) -> Outcome:
    return Outcome(status=Stop.ERROR, message=said)

"""The session of a solver: a new solver subclasses AbstractSession and has ``who``, ``version``, ``_open``, ``_run``.

``_run`` is given a :class:`SolveRun` and returns a :class:`RunResult`. What all sessions do alike is done here: check
what is asked, gather incumbents, measure what came back, stop when told to. It is then listed in ``built_in.py``, or
registered by ``registry.register``.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, final

import numpy as np

from ceopt.solvers.checks import OPTIONS, OrNone, Real, Whole, check_arguments
from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.deadline import OutOfTimeError, deadline_now, until
from ceopt.solvers.errors import InvalidValueError
from ceopt.solvers.problem import Certificate, Outcome, Stop, StopTable, Vector
from ceopt.solvers.tolerances import (
    CALLED_FEASIBLE,
    CONTRADICTION_SHARE,
    LEAST_CONTRADICTION,
    NOTABLE_VIOLATION,
    OVERRULING_VIOLATION,
)

__all__ = [
    "AbstractSession",
    "RunResult",
    "SolveRun",
    "Start",
    "StopSwitch",
    "require_data",
    "sparse_start",
    "status_of",
]

# ==== Contradictions between a solver's word, its own point and the points in hand: what they contradict is no proof ==

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


# ==== The session of a solver =========================================================================================

Start = Mapping[int, float] | Sequence[float] | Vector

_POLL_S = 0.01
_MOST_THREADS = 1024  # HiGHS was seen to hang over a million
PROVED_EMPTY = frozenset({Stop.INFEASIBLE, Stop.UNBOUNDED})

_OPENED_WITH = {
    "threads": Whole(at_least=1, at_most=_MOST_THREADS),
    "random_state": Whole(at_least=0),
    "options": OPTIONS,
}
_RUN_WITH = {"time_limit_s": OrNone(Real(above=0.0)), "relative_gap": Real(at_least=0.0), "pool": Whole(at_least=1)}


class AbstractSession(ABC):
    """One compiled model inside one solver, to be solved many times.

    Each solve starts afresh, so that results do not depend on what was solved before. Changes by
    :meth:`CompiledModel.set_data` and :meth:`CompiledModel.append` are taken over at the next solve.

    Parameters
    ----------
    compiled
        A model of a class that the solver supports.
    threads
        Threads of this session, at least 1.
    random_state
        Seed of the solver, at least 0.
    options
        The solver's own options by their own names.

    Raises
    ------
    UnsupportedProblemError
        A class of program that the solver does not solve.
    UnknownNameError, InvalidValueError
        An option or argument that the solver does not take, or a coefficient beyond its range.
    """

    #: What messages call the solver.
    who: ClassVar[str]

    def __init__(
        self,
        compiled: CompiledModel,
        *,
        threads: int = 1,
        random_state: int = 0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        check_arguments(self.who, _OPENED_WITH, locals())
        self._compiled = compiled
        self._threads = int(threads)
        self._random_state = int(random_state)
        self._options = dict(options or {})
        self._open()

    @property
    @abstractmethod
    def version(self) -> str:
        """Version of the solver."""

    @abstractmethod
    def _open(self) -> None:
        """Refuse what the solver does not take, set its options, and hand the program over.

        ``_compiled``, ``_threads``, ``_random_state`` and ``_options`` are set before.
        """

    @abstractmethod
    def _run(self, search: SolveRun) -> RunResult:
        """Solve the program as it is now, with changes since the last run; it has at least one column."""

    def solve(
        self,
        *,
        time_limit_s: float | None = None,
        relative_gap: float = 1e-6,
        start: Start | None = None,
        pool: int = 1,
        on_incumbent: Callable[[float, float, Vector], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Outcome:
        """Solve the program as it is now.

        Parameters
        ----------
        time_limit_s
            Seconds for this call; None for no limit.
        relative_gap
            Stop when the gap is at most this, relative to the objective.
        start
            A point to start from: all columns, or column -> value; a solver completes it, and ignores it if it cannot.
        pool
            How many points to keep; see ``.pool`` of the outcome.
        on_incumbent
            Called with (seconds, objective, x) for each improving solution of an integer program.
        should_stop
            Polled during the search; True stops it, as Ctrl-C does, with status ``interrupted``.

        Raises
        ------
        InvalidValueError
            A limit, gap or start that makes no sense, or data columns without a value.
        """
        check_arguments(self.who, _RUN_WITH, locals())
        limit = math.inf if time_limit_s is None else time_limit_s
        compiled = self._compiled
        began = time.perf_counter()
        require_data(self.who, compiled)
        begin = sparse_start(start, len(compiled.columns))
        if compiled.contradiction is not None:
            message = f"The program is infeasible: {compiled.contradiction} cannot hold."
            return Outcome(status=Stop.INFEASIBLE, message=message)
        search = SolveRun(
            compiled=compiled,
            began=began,
            deadline=min(began + limit, deadline_now()),
            relative_gap=float(relative_gap),
            start=begin,
            pool=int(pool),
            switch=StopSwitch(should_stop),
            on_incumbent=on_incumbent,
        )
        try:
            with until(search.deadline):
                found = self._run(search) if compiled.columns else _without_columns(compiled)
        except OutOfTimeError as error:
            best = None
            if search.incumbents:
                best = search.incumbents[-1][2]
            status = Stop.TIME_LIMIT if best is None else Stop.FEASIBLE
            found = RunResult(
                status=status,
                x=best,
                message=f"The time limit is used up while {error.stage}.",
            )
        if search.switch.error is not None:
            raise search.switch.error
        return _measured(found, search)


@final
@dataclass(slots=True, kw_only=True)
class SolveRun:
    """One run: what is asked of the solver, and where it reports what it meets.

    Parameters
    ----------
    deadline
        On the clock of ``time.perf_counter``; infinite for no limit.
    relative_gap
        Stop when ``|objective - bound| <= relative_gap * |objective|``.
    start
        Column -> value; may be empty or partial.
    pool
        How many points the caller would like to keep; 1 for the best alone.
    switch
        To be polled; says when to stop.
    """

    compiled: CompiledModel
    began: float
    deadline: float
    relative_gap: float
    start: Mapping[int, float]
    pool: int
    switch: StopSwitch
    on_incumbent: Callable[[float, float, Vector], None] | None = None
    incumbents: list[tuple[float, float, Vector]] = field(default_factory=list)

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, at least a millisecond."""
        return max(self.deadline - time.perf_counter(), 1e-3)

    def improved(self, point: Vector) -> None:
        """Take note of a feasible point that the solver met, if it is better than all before."""
        compiled = self.compiled
        found = (time.perf_counter() - self.began, compiled.evaluate(point), point)
        if not self.incumbents or compiled.sense * (found[1] - self.incumbents[-1][1]) < 0:
            self.incumbents.append(found)
            if self.on_incumbent is not None:
                self.switch.guard(self.on_incumbent, *found)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What one run of a solver came to, before it is measured.

    Parameters
    ----------
    status
        Our word for the solver's stop. ``OPTIMAL`` only where the solver says so itself.
    x
        Best point, shape (columns,); None if there is none.
    bound
        What is proved about the optimum, in the model's own sense and units.
    message
        One sentence; empty for an optimum.
    pool
        Further points that the solver kept.
    certificate
        Residuals of primal and dual, where there is a dual.
    """

    status: Stop
    x: Vector | None = None
    bound: float | None = None
    message: str = ""
    pool: tuple[Vector, ...] = ()
    certificate: Certificate | None = None


@final
class StopSwitch:
    """Asks whether to stop: set by Ctrl-C, by ``should_stop``, or by an exception in a caller's function.

    Parameters
    ----------
    should_stop
        Called without arguments at most once in 10 ms.
    """

    __slots__ = ("_last", "_should_stop", "error", "pressed")

    def __init__(self, should_stop: Callable[[], bool] | None) -> None:
        self._should_stop = should_stop
        self._last = -_POLL_S
        self.pressed = False
        self.error: BaseException | None = None

    def poll(self) -> bool:
        """Return whether to stop now."""
        if not self.pressed and self._should_stop is not None:
            now = time.monotonic()
            if now - self._last >= _POLL_S:
                self._last = now
                self.guard(self._ask)
        return self.pressed

    def _ask(self) -> None:
        if self._should_stop is not None and self._should_stop():
            self.pressed = True

    def guard(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call the caller's own function; keep its exception, which must not cross the solver's C++ frames."""
        try:
            function(*arguments)
        except BaseException as error:  # noqa: BLE001  (raised again by the session when the solver has stopped)
            self.error = error
            self.pressed = True

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Turn Ctrl-C into a press of the switch, in the main thread and where Python handles the signal."""
        in_main = threading.current_thread() is threading.main_thread()
        previous = None
        if in_main:
            previous = signal.getsignal(signal.SIGINT)
        if previous is None or previous is signal.SIG_IGN:
            yield
            return

        def press(_signal: int, _frame: Any) -> None:
            self.pressed = True

        signal.signal(signal.SIGINT, press)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)


def status_of(stops: StopTable, word: str, *, has_point: bool) -> Stop:
    """Return our status for a solver's word; one that is not in its table is an error."""
    with_point, without_point = stops.get(word, (Stop.ERROR, Stop.ERROR))
    if has_point:
        return with_point
    return without_point


def require_data(who: str, compiled: CompiledModel) -> None:
    """Refuse data columns that have no value yet."""
    unset = np.flatnonzero(np.isnan(compiled.lb))
    if unset.size:
        name = compiled.columns[unset[0]].name
        raise InvalidValueError(who, "a value for all data", f"{name!r} has none", "Call set_data first.")


def sparse_start(start: Start | None, n: int) -> dict[int, float]:
    """Return a start as column -> value, each finite and one of the ``n`` columns."""
    if start is None:
        return {}
    if not isinstance(start, Mapping) and len(start) != n:
        raise InvalidValueError(
            "start", f"a value for each of {n} columns", f"it has {len(start)}", "Give all of them."
        )
    pairs = dict(start) if isinstance(start, Mapping) else dict(enumerate(start))
    for column, value in pairs.items():
        if not 0 <= column < n or not math.isfinite(value):
            raise InvalidValueError(
                "start", f"finite values for columns 0 to {n - 1}", f"column {column} is {value}", "Leave it out."
            )
    return {int(column): float(value) for column, value in pairs.items()}


def _without_columns(compiled: CompiledModel) -> RunResult:
    if compiled.violation(np.zeros(0)) > NOTABLE_VIOLATION:
        return RunResult(status=Stop.INFEASIBLE, message="The program is infeasible: a cone of constants cannot hold.")
    return RunResult(status=Stop.OPTIMAL, x=np.zeros(0), bound=compiled.c0)


def _measured(found: RunResult, search: SolveRun) -> Outcome:
    """Return the outcome with objective and violation recomputed from the model's own arrays."""
    compiled = search.compiled
    seconds = time.perf_counter() - search.began
    if found.status in PROVED_EMPTY or found.x is None:
        bound = None if found.status in PROVED_EMPTY else found.bound
        return Outcome(status=found.status, bound=bound, run_time=seconds, message=found.message)
    x = found.x
    bound = found.bound
    message = found.message
    objective = compiled.evaluate(x)
    violation = compiled.violation(x)
    incumbents = search.incumbents
    if compiled.columns and (not incumbents or compiled.sense * (objective - incumbents[-1][1]) < 0):
        incumbents.append((seconds, objective, x))
    is_worse = bound is not None and compiled.sense * (bound - objective) > 0
    if bound is not None and is_worse and (found.certificate or not contradicts(bound, objective, compiled, x)):
        bound = objective  # by its tolerances; what they do not explain stays, and is no proof
    if violation > NOTABLE_VIOLATION and found.certificate is None:  # which measures it relative to the row
        message = f"{message} The point violates the program by {violation:.3g}.".strip()
    return Outcome(
        status=found.status,
        x=x,
        objective=objective,
        bound=bound,
        incumbents=tuple(incumbents),
        run_time=seconds,
        violation=violation,
        message=message,
        pool=found.pool,
        certificate=found.certificate,
    )

"""The session of a solver: a new solver subclasses AbstractSession and has ``who``, ``version``, ``_open``, ``_run``.

``_run`` is given a :class:`SolveRun` and returns a :class:`RunResult`. What all sessions do alike is done here: check
what is asked, gather incumbents, measure what came back, stop when told to. It is then listed in ``built_in.py``, or
registered by ``registry.register``. Options by a solver's own names are refused or set by :func:`apply_options`.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from ceopt.solvers.checks import OPTIONS, OrNone, Real, Whole, check_arguments
from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.deadline import OutOfTimeError, deadline_now, until, without_deadline
from ceopt.solvers.errors import CeoptError, InvalidValueError, UnsupportedProblemError
from ceopt.solvers.problem import Certificate, Outcome, Stop, StopTable, Vector
from ceopt.solvers.registry import SOLVERS
from ceopt.solvers.tolerances import CUTS_NOTHING, NOTABLE_VIOLATION, OVERRULING_VIOLATION
from ceopt.solvers.trust import NO_OPTIMUM, within_rounding

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

# ==== The session of a solver =========================================================================================

Start = Mapping[int, float] | Sequence[float] | Vector
#: Called with (incumbent, bound, seconds); True stops the search.
Callback = Callable[[float | None, float | None, float], object]
#: Called with a candidate over the compiled columns. It appends linear rows that the candidate breaks to the compiled
#: program; True stops the search.
Lazy = Callable[[Vector], object]

_POLL_S = 0.01
_MOST_THREADS = 1024  # HiGHS was seen to hang over a million

_OPENED_WITH = {
    "threads": Whole(at_least=1, at_most=_MOST_THREADS),
    "random_state": Whole(at_least=0),
    "options": OPTIONS,
}
_RUN_WITH = {
    "time_limit_s": OrNone(Real(above=0.0)),
    "relative_gap": Real(at_least=0.0),
    "absolute_gap": Real(at_least=0.0),
    "pool": Whole(at_least=1),
}


class AbstractSession(ABC):
    """One compiled model inside one solver, to be solved many times.

    Each solve starts afresh, so that results do not depend on what was solved before; but see ``warm``. Changes by
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
        absolute_gap: float = 0.0,
        start: Start | None = None,
        pool: int = 1,
        on_incumbent: Callable[[float, float, Vector], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
        callback: Callback | None = None,
        tee: bool = False,
        warm: bool = False,
        lazy: Lazy | None = None,
    ) -> Outcome:
        """Solve the program as it is now.

        Parameters
        ----------
        time_limit_s
            Seconds for this call; None for no limit.
        relative_gap
            Stop when the gap is at most this, relative to the objective.
        absolute_gap
            Or at most this, in the objective's own unit; of no meaning to solvers without a search.
        start
            A point to start from: all columns, or column -> value; a solver completes it, and ignores it if it cannot.
        pool
            How many points to keep; see ``.pool`` of the outcome.
        on_incumbent
            Called with (seconds, objective, x) for each improving solution of an integer program.
        should_stop
            Polled during the search; True stops it, as Ctrl-C does, with status ``interrupted``.
        callback
            Called with (incumbent, bound, seconds) during the search, the first two None where unknown; True stops it
            as ``should_stop`` does. Only by solvers whose entry in the registry says ``takes_callback``.
        tee
            Let the solver print its own log.
        warm
            Let HiGHS and Gurobi begin an LP from the basis of the run before; else each solve starts afresh.
        lazy
            Asked of each candidate in whole numbers before it counts; only by solvers whose entry in the registry says
            ``takes_lazy_rows``, of programs with integers and linear rows.

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
            absolute_gap=float(absolute_gap),
            start=begin,
            pool=int(pool),
            switch=StopSwitch(should_stop),
            on_incumbent=on_incumbent,
            callback=callback,
            tee=tee,
            warm=warm,
            lazy=lazy,
        )
        try:
            with until(search.deadline):
                result = self._run(search) if compiled.columns else _without_columns(compiled)
        except OutOfTimeError as error:
            best = None
            if search.incumbents:
                best = search.incumbents[-1][2]
            status = Stop.TIME_LIMIT if best is None else Stop.FEASIBLE
            result = RunResult(
                status=status,
                x=best,
                message=f"The time limit is used up while {error.stage}.",
            )
        if search.switch.error is not None:
            raise search.switch.error
        return _measured(result, search)


@final
@dataclass(slots=True, kw_only=True)
class SolveRun:
    """One run: the arguments of the solver, and where it reports its incumbents.

    Parameters
    ----------
    deadline
        On the clock of ``time.perf_counter``; infinite for no limit.
    relative_gap
        Stop when ``|objective - bound| <= relative_gap * |objective|``.
    absolute_gap
        Or when ``|objective - bound| <= absolute_gap``.
    start
        Column -> value; may be empty or partial.
    pool
        How many points the caller would like to keep; 1 for the best alone.
    switch
        To be polled; says when to stop.
    callback
        Asked by :meth:`report`; see :meth:`AbstractSession.solve`.
    tee
        Whether the solver is to print its log.
    warm
        Whether an LP may begin from the basis of the run before.
    lazy
        Asked by :meth:`rows_against`; see :meth:`AbstractSession.solve`.

    Attributes
    ----------
    is_given_up
        Whether ``lazy`` ended the run: its point then counts for nothing.
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
    absolute_gap: float = 0.0
    callback: Callback | None = None
    tee: bool = False
    warm: bool = False
    lazy: Lazy | None = None
    is_given_up: bool = False
    _reported: float = -math.inf

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, at least a millisecond."""
        return max(self.deadline - time.perf_counter(), 1e-3)

    def or_interrupted(self, status: Stop) -> Stop:
        """Return a status; ``interrupted`` where the switch is pressed."""
        if self.switch.pressed:
            return Stop.INTERRUPTED
        return status

    def improved(self, point: Vector) -> None:
        """Take note of a feasible point that the solver met, if it is better than all before."""
        compiled = self.compiled
        objective = compiled.evaluate(point)
        if not self.incumbents or compiled.sense * (objective - self.incumbents[-1][1]) < 0:
            incumbent = (time.perf_counter() - self.began, objective, point)
            self.incumbents.append(incumbent)
            if self.on_incumbent is not None:
                self.switch.guard(self.on_incumbent, *incumbent)

    def rows_against(self, candidate: Vector, since: int) -> NDArray[np.intp]:
        """Return the rows from ``since`` on that a candidate in whole numbers breaks.

        Where it keeps them, ``lazy`` is asked for more. Where that raises or returns True, the run is given up.

        Parameters
        ----------
        candidate
            (n,).
        since
            The first row that the solver does not hold itself.
        """
        none = np.zeros(0, dtype=np.intp)
        if self.is_given_up:
            return none
        known = self._broken(candidate, since, OVERRULING_VIOLATION)
        if known.size:
            return known
        n_rows = self.compiled.A.shape[0]
        self.switch.guard(self._ask_lazy, candidate)
        if self.is_given_up:
            return none
        # One that breaks a new row by less keeps it, as solvers keep rows: else the same row would be found for ever.
        return self._broken(candidate, n_rows, CUTS_NOTHING)

    def _broken(self, point: Vector, since: int, tolerance: float) -> NDArray[np.intp]:
        """Return the rows from ``since`` on that a point breaks by more than a share of their side."""
        compiled = self.compiled
        activity = compiled.A[since:] @ point
        broken = np.zeros(len(activity), dtype=bool)
        for side, sign in ((compiled.row_lb[since:], -1.0), (compiled.row_ub[since:], 1.0)):
            size = np.where(np.isfinite(side), np.abs(side), 0.0)
            broken |= sign * (activity - side) > tolerance * np.maximum(size, 1.0)
        return since + np.flatnonzero(broken)

    def _ask_lazy(self, candidate: Vector) -> None:
        assert self.lazy is not None  # noqa: S101 - an adapter asks where there is one
        self.is_given_up = True
        with without_deadline():  # the limit is the search's, not that of what the caller solves for a candidate
            self.is_given_up = bool(self.lazy(candidate))
        self.switch.pressed |= self.is_given_up

    def report(self, bound: Callable[[], float | None] | float | None) -> None:
        """Tell the callback, at most once in 10 ms, the best incumbent and a bound in the program's own units.

        Parameters
        ----------
        bound
            What the solver says is proved so far; or a function that asks it, for it is not always asked.
        """
        now = time.perf_counter()
        if self.callback is None or self.switch.pressed or now - self._reported < _POLL_S:
            return
        self._reported = now
        self.switch.guard(self._tell, bound, now - self.began)

    def _tell(self, bound: Callable[[], float | None] | float | None, seconds: float) -> None:
        if callable(bound):
            bound = bound()
        if bound is not None and not math.isfinite(bound):
            bound = None
        incumbent = None
        if self.incumbents:
            incumbent = self.incumbents[-1][1]
        assert self.callback is not None  # noqa: S101 - asked before
        if self.callback(incumbent, bound, seconds):
            self.switch.pressed = True


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of one run of a solver, before it is measured.

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


def why_stopped(who: str, status: Stop, words: str) -> str:
    """Return the message about a stop in the solver's own words; empty for an optimum."""
    if status is Stop.OPTIMAL:
        return ""
    return f"{who} stopped: {words}."


def without_a_best(who: str, status: Stop, *, otherwise: str) -> RunResult:
    """Return the result of a program that is infeasible or unbounded; ``otherwise`` is the message if neither."""
    message = otherwise
    if status in NO_OPTIMUM:
        message = f"{who} proved that the program is {status}."
    return RunResult(status=status, message=message)


def split_words(name: str) -> str:
    """Return ``kTimeLimit`` or ``MaxTime`` as "time limit", "max time"."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name.removeprefix("k")).strip()


def require_class(
    who: str,
    solver: str,
    takes: str,
    compiled: CompiledModel,
    then: str = "Call solve(model), which finds a solver for it.",
) -> None:
    """Refuse a program of a class that the registry does not list for a solver itself.

    Raises
    ------
    UnsupportedProblemError
        It is of such a class.
    """
    needed = compiled.problem_class
    if needed not in SOLVERS[solver].supports:
        raise UnsupportedProblemError(who, takes, f"the model is of class {needed}", then)


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


def _measured(result: RunResult, search: SolveRun) -> Outcome:
    """Return the outcome with objective and violation recomputed from the model's own arrays."""
    compiled = search.compiled
    seconds = time.perf_counter() - search.began
    if result.status in NO_OPTIMUM or result.x is None:
        bound = None if result.status in NO_OPTIMUM else result.bound
        return Outcome(status=result.status, bound=bound, run_time=seconds, message=result.message)
    x = result.x
    bound = result.bound
    message = result.message
    objective = compiled.evaluate(x)
    violation = compiled.violation(x)
    incumbents = search.incumbents
    if compiled.columns and (not incumbents or compiled.sense * (objective - incumbents[-1][1]) < 0):
        incumbents.append((seconds, objective, x))
    if result.certificate is None:
        bound = within_rounding(bound, objective, compiled, x)
    elif bound is not None and compiled.sense * (bound - objective) > 0:
        bound = objective
    if violation > NOTABLE_VIOLATION and result.certificate is None:  # which measures it relative to the row
        message = f"{message} The point violates the program by {violation:.3g}.".strip()
    return Outcome(
        status=result.status,
        x=x,
        objective=objective,
        bound=bound,
        incumbents=tuple(incumbents),
        run_time=seconds,
        violation=violation,
        message=message,
        pool=result.pool,
        certificate=result.certificate,
    )


# ==== Options by a solver's own names: refused before work starts where unknown, of another type or out of range ======


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option as its solver describes it.

    Parameters
    ----------
    types
        What its value may be, of bool, int, float and str; empty where only the solver can tell.
    takes
        What an error says that it needs.
    then
        What to do about a value that is refused; empty for what the solver itself says.
    """

    types: tuple[type[bool | int | float | str], ...] = ()
    takes: str
    then: str = ""


def apply_options(
    who: str,
    options: Mapping[str, Any],
    *,
    arguments: Mapping[str, str],
    describe: Callable[[str], Option],
    put: Callable[[str, Any], object],
    word: str = "option",
) -> dict[str, Any]:
    """Hand each option over to a solver, and return their plain values by name.

    Parameters
    ----------
    who
        What errors call the solver.
    options
        Its own name for each -> value.
    arguments
        Options for which an argument of ours stands -> its name.
    describe
        Returns what the solver says of an option, or raises :class:`~ceopt.solvers.errors.UnknownNameError`.
    put
        Hands one over; raises where the solver does not take the value.
    word
        What the solver calls an option.

    Raises
    ------
    UnknownNameError
        The solver has no option of that name.
    InvalidValueError
        The solver does not take the value, or the option has an argument of its own.
    """
    taken = {}
    for name, value in options.items():
        if name in arguments:
            then = f"Use {arguments[name]}= instead."
            raise InvalidValueError(who, f"{word} {name!r} as an argument", f"it is in options with {value!r}", then)
        option = describe(name)
        plain = _of_types(value, option.types)
        cause: Exception | None = None
        if plain is not None or not option.types:
            try:
                put(name, plain)
            except CeoptError:
                raise
            except Exception as error:  # noqa: BLE001 - each library raises a class of its own
                cause = error
            else:
                taken[name] = plain
                continue
        raise InvalidValueError(who, option.takes, f"{name} is {value!r}", option.then or str(cause or "")) from cause
    return taken


def _of_types(value: Any, types: tuple[type[bool | int | float | str], ...]) -> Any:
    """Return the plain value as the first type that it has; None if it has another type."""
    if not types:
        return plain_option(value)
    for kind in types:
        plain = plain_of_type(value, kind)
        if plain is not None:
            return plain
    return None


def plain_option(value: Any) -> Any:
    """Return numpy's scalars as Python's own, and anything else as it is."""
    if hasattr(value, "item") and not isinstance(value, str):
        return value.item()
    return value


def plain_of_type(value: Any, kind: type[bool | int | float | str]) -> bool | int | float | str | None:
    """Return the value as ``kind`` (bool, int, float or str); None where a solver would cut it to size or fail.

    True is no number and 1.5 no whole number; a whole number is also a float; NaN is none.
    """
    value = plain_option(value)
    if isinstance(value, bool):
        if kind is bool:
            return value
        return None
    if kind is float and isinstance(value, int):
        return float(value)
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, kind):
        return value
    return None

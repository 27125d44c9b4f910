"""Sessions whose word is checked: in the program's own units, or in others where its numbers are extreme.

What a session returns passes :func:`ceopt.solvers.trust.checked`; what it raises is a status. A program of extreme
numbers is solved in other units (:mod:`ceopt.solvers.units`), wide integer columns first as continuous ones: the
relaxation proves the bound, and a program of whole numbers near its optimum gives the point. Of a column with ten
million steps, one step more or less costs a millionth of a hundredth. The gap between the two is the gap that is
claimed. Where there is no point in whole numbers near that optimum, and none of the relaxation farther away, there is
none at all.
"""

from __future__ import annotations

import copy
import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from ceopt.solvers.adapter import Callback, Lazy, Start, sparse_start
from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.solvers.errors import CeoptError
from ceopt.solvers.problem import Outcome, ProblemClass, Stop, Vector, relative_gap_of
from ceopt.solvers.registry import SOLVERS, Solver
from ceopt.solvers.tolerances import BOUND_NOISE, KEPT_SHARE, ROW_ROUNDING
from ceopt.solvers.trust import checked, contradicts, drop_claims_lost_in_rounding, relative_violation, within_rounding
from ceopt.solvers.units import Rescaled, is_extreme, is_far_from_zero, rescaled, span_of, wide_columns

# ==== A session for programs of extreme numbers =======================================================================

#: Steps that wide columns may be from the optimum of the relaxation: more, if what is so near leaves a gap. HiGHS takes
#: the worse of two points for optimal if they are apart by many steps of which each is too small for it to see.
_AROUND = (2.0**3, 2.0**10, 2.0**20)
#: Where coefficients of one row span more, a solver that is asked to be exact may call a relaxation infeasible that is
#: not (HiGHS 1.15.1, big-Ms of 1e9 beside coefficients of 1): it has to say so twice, the second time with its usual
#: tolerances.
_FAR_APART = 1e8
#: From here on what a solver says if asked for 1e-9 and a point that keeps the program to 1e-6 prove nothing together.
_TOO_FAR_APART = 1e10
#: Arguments of HiGHS where another solver's word is held against its.
_ALONE: Final[Mapping[str, Any]] = {"threads": 1, "random_state": 0, "options": {}}
#: Seconds of a further run without presolve, at most: of most programs it takes a fraction of one.
_WITHOUT_PRESOLVE_S = 5.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """The arguments of one call of ``solve``; ``deadline`` None for no limit."""

    deadline: float | None
    relative_gap: float
    absolute_gap: float
    start: Mapping[int, float]
    pool: int
    on_incumbent: Callable[[float, float, Vector], None] | None
    should_stop: Callable[[], bool] | None
    callback: Callback | None
    tee: bool

    @property
    def seconds_left(self) -> float | None:
        if self.deadline is None:
            return None
        return max(self.deadline - time.perf_counter(), 1e-3)

    def in_units(self, units: Rescaled, *, is_last: bool) -> _Request:
        """Return the request for a program in other units; only the last program reports points and keeps several."""
        request = replace(
            self,
            start=units.from_own(self.start),
            absolute_gap=self.absolute_gap * units.cost_scale,
            callback=self._callback_in(units, is_last=is_last),
        )
        if not is_last:
            return replace(request, pool=1, on_incumbent=None)
        tell = self.on_incumbent
        if tell is None:
            return request

        def tell_in_own(seconds: float, objective: float, x: Vector) -> None:
            tell(seconds, objective / units.cost_scale, units.to_own(x))

        return replace(request, on_incumbent=tell_in_own)

    def _callback_in(self, units: Rescaled, *, is_last: bool) -> Callback | None:
        """Return the callback in the program's own units: a relaxation has no incumbents, a window no bound."""
        callback = self.callback
        if callback is None:
            return None
        is_whole = not wide_columns(units.own).any()

        def call_in_own(incumbent: float | None, bound: float | None, seconds: float) -> object:
            if incumbent is not None:
                incumbent = incumbent / units.cost_scale if is_last else None
            if bound is not None:
                bound = bound / units.cost_scale if is_whole or not is_last else None
            return callback(incumbent, bound, seconds)

        return call_in_own

    @property
    def further(self) -> dict[str, Any]:
        """The arguments that a session need not know, where they are not the usual ones."""
        return further_arguments(self.absolute_gap, self.callback, tee=self.tee, warm=False)


@final
class WideSession:
    """One program of extreme numbers, to be solved many times.

    Parameters
    ----------
    solver
        Who solves the programs in other units.
    compiled
        The program.
    arguments
        Threads, random state and options of the sessions.

    Attributes
    ----------
    version
        Version of the solver.
    """

    def __init__(self, solver: Solver, compiled: CompiledModel, arguments: Mapping[str, Any]) -> None:
        self._solver = solver
        self._compiled = compiled
        # Numbers that a row adds up are far apart here: what a solver lets pass as 0 has to be small beside the least.
        self._exact = {**arguments, "options": {**solver.exact, **(arguments["options"] or {})}}
        self._usual = dict(arguments)
        # What the solver refuses, it refuses now.
        units = rescaled(compiled, wide_columns(compiled), _present(compiled))
        session = solver.session(units.program.problem_class)(units.program, **self._exact)
        self.version = str(session.version)

    def solve(
        self,
        *,
        time_limit_s: float | None = None,
        relative_gap: float = 1e-6,
        start: Start | None = None,
        pool: int = 1,
        on_incumbent: Callable[[float, float, Vector], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
        absolute_gap: float = 0.0,
        callback: Callback | None = None,
        tee: bool = False,
        warm: bool = False,  # noqa: ARG002 - each run has other units
    ) -> Outcome:
        """Solve the program as it is now; see :meth:`ceopt.solvers.adapter.AbstractSession.solve`."""
        compiled = self._compiled
        began = time.perf_counter()
        request = _Request(
            deadline=None if time_limit_s is None else began + time_limit_s,
            relative_gap=relative_gap,
            absolute_gap=absolute_gap,
            start=sparse_start(start, len(compiled.columns)),
            pool=pool,
            on_incumbent=on_incumbent,
            should_stop=should_stop,
            callback=callback,
            tee=tee,
        )
        wide = wide_columns(compiled)
        at = _present(compiled)
        for column, value in request.start.items():
            at[column] = value
        units = rescaled(compiled, wide, at)
        outcome = self._run(request, units, is_last=not wide.any())
        spent = time.perf_counter() - began
        if outcome.status is Stop.UNBOUNDED and wide.any():
            units = rescaled(compiled, np.zeros_like(wide), at)
            return drop_claims_lost_in_rounding(self._run(request, units, is_last=True), units.program)
        if outcome.x is None or not wide.any():
            return replace(drop_claims_lost_in_rounding(outcome, units.program), run_time=spent)
        best = self._whole(request, drop_claims_lost_in_rounding(outcome, units.program))
        return replace(best, run_time=time.perf_counter() - began)

    # -- runs ----------------------------------------------------------------------------------------------------------
    def _run(self, request: _Request, units: Rescaled, *, is_last: bool) -> Outcome:
        """Solve a program in other units, and once more where its "infeasible" is doubtful."""
        program = units.program
        own = request.in_units(units, is_last=is_last)
        outcome = self._solved(self._solver, program, self._exact, own)
        if outcome.status is Stop.INFEASIBLE and span_of(program) > _FAR_APART:
            outcome = self._held_against_usual(program, own, is_last=is_last)
        return _in_own_units(outcome, units)

    def _held_against_usual(self, program: CompiledModel, request: _Request, *, is_last: bool) -> Outcome:
        """Return what the usual tolerances find of a program that was infeasible, asked to be exact.

        The solver may say "infeasible" once more: then HiGHS is asked too, as Gurobi 13 was seen to be wrong twice. Of
        a point that keeps the program nearly, a dearer one was seen that keeps it exactly, where coefficients are
        farther apart than the tightest tolerance tells.
        """
        outcome = self._solved(self._solver, program, self._usual, request)
        highs = SOLVERS["highs"]
        if (
            outcome.status is Stop.INFEASIBLE
            and self._solver.name != "highs"
            and program.problem_class in highs.classes
        ):
            other = self._solved(highs, program, _ALONE, request)
            if other.x is not None:
                outcome = other
        if is_last and outcome.x is not None and relative_violation(program, outcome.x) > KEPT_SHARE:
            status, span = Stop.INFEASIBLE, span_of(program)
            message = f"{self._solver.name} finds no point if it is to be exact, and one that keeps the program nearly."
            if span > _TOO_FAR_APART:
                status, message = Stop.ERROR, f"Coefficients of one row span {span:.1g}: {message}"
            return Outcome(status=status, message=message)
        return outcome

    def _solved(
        self, solver: Solver, program: CompiledModel, arguments: Mapping[str, Any], request: _Request
    ) -> Outcome:
        """Return what a solver says of a program; the time may end before it has begun."""
        try:
            session = solver.session(program.problem_class)(program, **arguments)
        except OutOfTimeError as error:
            return Outcome(status=Stop.TIME_LIMIT, message=f"The time limit is used up while {error.stage}.")
        return self._confirmed(session, program, request)

    def _confirmed(self, session: Any, program: CompiledModel, request: _Request) -> Outcome:
        """Solve, and once more from a better point if a second run has one."""
        outcome = self._once(session, program, request)
        if outcome.status is not Stop.OPTIMAL:
            return outcome
        better = self._second_point(program, outcome, request)
        if better:
            return self._once(session, program, replace(request, start=better))
        return outcome

    def _once(self, session: Any, program: CompiledModel, request: _Request) -> Outcome:
        """Solve, and check the outcome against the program that the solver was given."""
        returned = session.solve(
            time_limit_s=request.seconds_left,
            relative_gap=request.relative_gap,
            start=request.start,
            pool=request.pool,
            on_incumbent=request.on_incumbent,
            should_stop=request.should_stop,
            **request.further,
        )
        return checked(
            f"Solver {self._solver.name!r}",
            returned,
            program,
            start=request.start,
            relative_gap=request.relative_gap,
            absolute_gap=request.absolute_gap,
        )

    def _second_point(self, program: CompiledModel, optimum: Outcome, request: _Request) -> dict[int, float]:
        """Return a better point that a second run finds and that keeps the program exactly; empty if there is none.

        Asked to be exact on numbers of such sizes, HiGHS 1.15.1 and Gurobi 13 were seen to prove an optimum that is
        none, and are asked again with their usual tolerances; HiGHS without presolve too, which alone found the optimum
        of some products of numbers of 1e10. With squares HiGHS is asked: SCIP 10 was 1e-4 too dear, Gurobi 13 with
        presolve twice as dear.
        """
        assert optimum.x is not None  # noqa: S101 - an optimum has one
        solver = self._solver
        if program.Q is not None:
            if solver.name == "highs":
                return {}
            arguments = {**_ALONE, "options": dict(SOLVERS["highs"].exact)}
            start = dict(enumerate(optimum.x.tolist()))
            return self._better(program, optimum, replace(request, start=start), SOLVERS["highs"], arguments)
        if not program.integer.any():
            return {}
        better = self._better(program, optimum, request, solver, self._usual)
        if better or solver.name != "highs" or "presolve" in self._exact["options"]:
            return better
        arguments = {**self._exact, "options": {**self._exact["options"], "presolve": "off"}}
        return self._better(program, optimum, request, solver, arguments, at_most_s=_WITHOUT_PRESOLVE_S)

    def _better(
        self,
        program: CompiledModel,
        optimum: Outcome,
        request: _Request,
        solver: Solver,
        arguments: Mapping[str, Any],
        *,
        at_most_s: float = math.inf,
    ) -> dict[int, float]:
        """Return a point of another run that refutes an optimum and keeps the program exactly; empty without one."""
        assert optimum.objective is not None  # noqa: S101 - an optimum has one
        limit_s = request.seconds_left
        if math.isfinite(at_most_s):
            limit_s = at_most_s if limit_s is None else min(limit_s, at_most_s)
        try:
            session = solver.session(program.problem_class)(program, **arguments)
        except (CeoptError, OutOfTimeError):  # another kind of program than it takes, or no time
            return {}
        second = session.solve(time_limit_s=limit_s, relative_gap=request.relative_gap, start=request.start)
        if second.x is None or relative_violation(program, second.x) > KEPT_SHARE:
            return {}
        is_better = contradicts(optimum.objective, program.evaluate(second.x), program, second.x)
        if is_better:
            return dict(enumerate(second.x.tolist()))
        return {}

    # -- wide columns in whole numbers ---------------------------------------------------------------------------------
    def _whole(self, request: _Request, relaxation: Outcome) -> Outcome:
        """Return the best point in whole numbers near the optimum of the relaxation, in wider and wider windows."""
        compiled = self._compiled
        assert relaxation.x is not None  # noqa: S101 - the windows are around it
        none_wide = np.zeros(len(compiled.columns), dtype=bool)
        best = Outcome(status=Stop.ERROR)
        last = relaxation
        for around in _AROUND:
            near = rescaled(compiled, none_wide, relaxation.x, around=around)
            last = drop_claims_lost_in_rounding(self._run(request, near, is_last=True), near.program)
            outcome = self._both(relaxation, last, request)
            if best.x is None or self._is_better(outcome, best):
                best = outcome
            if outcome.status not in {Stop.FEASIBLE, Stop.ERROR}:
                break
        if best.x is None and last.status is Stop.INFEASIBLE:
            return self._beyond(request, relaxation, best)
        return best

    def _beyond(self, request: _Request, relaxation: Outcome, nothing: Outcome) -> Outcome:
        """Search beyond the widest window, which is empty; "infeasible" if that is empty too."""
        assert relaxation.x is not None  # noqa: S101 - the windows are around it
        wide = wide_columns(self._compiled)
        is_empty = True
        for part in _parts_beyond(self._compiled, np.flatnonzero(wide), relaxation.x):
            units = rescaled(part, wide, relaxation.x)
            outcome = drop_claims_lost_in_rounding(self._run(request, units, is_last=False), units.program)
            if outcome.x is not None:
                near = rescaled(part, np.zeros_like(wide), outcome.x, around=_AROUND[-1])
                outcome = drop_claims_lost_in_rounding(self._run(request, near, is_last=True), near.program)
                if outcome.x is not None:
                    return self._both(relaxation, outcome, request)
                is_empty = False  # elsewhere in this part there may be something
            is_empty &= outcome.status is Stop.INFEASIBLE
        if not is_empty:
            return nothing
        return replace(nothing, status=Stop.INFEASIBLE, bound=None, message="")

    def _is_better(self, outcome: Outcome, best: Outcome) -> bool:
        if outcome.objective is None or best.objective is None:
            return best.objective is None
        return self._compiled.sense * (outcome.objective - best.objective) < 0

    def _both(self, relaxation: Outcome, outcome: Outcome, request: _Request) -> Outcome:
        """Return the point in whole numbers with the bound of the relaxation."""
        bound = relaxation.bound
        if outcome.x is None:
            message = f"No point in whole numbers was found near the relaxation's. {outcome.message}".strip()
            status = Stop.ERROR if outcome.status is Stop.INFEASIBLE else outcome.status
            return replace(outcome, status=status, bound=bound, message=message)
        assert outcome.objective is not None  # noqa: S101 - it has a point
        bound = within_rounding(bound, outcome.objective, self._compiled, outcome.x)
        outcome = replace(outcome, bound=bound)
        if relaxation.doubted:
            message = f"{outcome.message} {relaxation.message}".strip()
            outcome = replace(outcome, doubted=True, message=message)
        missing = relative_gap_of(outcome.objective, outcome.bound)
        wanted = max(
            request.relative_gap, BOUND_NOISE, request.absolute_gap / max(abs(outcome.objective or 0.0), 1e-12)
        )
        if outcome.status is Stop.OPTIMAL and (missing is None or missing > wanted):
            message = f"The whole numbers near the optimum of the relaxation leave a gap. {outcome.message}".strip()
            return replace(outcome, status=Stop.FEASIBLE, message=message)
        return outcome


def _parts_beyond(compiled: CompiledModel, wide: NDArray[np.intp], at: Vector) -> Iterator[CompiledModel]:
    """Give the parts of the program in which one wide column lies outside of the widest window around a point."""
    for j in wide.tolist():
        middle = round(float(at[j]))
        for low, high in ((compiled.lb[j], middle - _AROUND[-1] - 1.0), (middle + _AROUND[-1] + 1.0, compiled.ub[j])):
            if low <= high:
                part = copy.copy(compiled)
                part.lb = compiled.lb.copy()
                part.ub = compiled.ub.copy()
                part.lb[j], part.ub[j] = low, high
                yield part


def _present(compiled: CompiledModel) -> Vector:
    """Return the values that the Vars hold, 0 without one: the optimum is likely to be near them, (n,)."""
    present = np.zeros(len(compiled.columns))
    for k, column in enumerate(compiled.columns):
        value = getattr(column, "value", None)
        if value is not None and math.isfinite(value):
            present[k] = value
    return present


def _in_own_units(outcome: Outcome, units: Rescaled) -> Outcome:
    """Return an outcome in the program's own units; its violation stays in the units in which it was solved."""
    bound = outcome.bound
    if bound is not None:
        bound /= units.cost_scale
    if outcome.x is None:
        return replace(outcome, bound=bound)
    x = units.to_own(outcome.x)
    objective = units.own.evaluate(x)
    met = []
    for seconds, value, point in outcome.incumbents:
        met.append((seconds, value / units.cost_scale, units.to_own(point)))
    return replace(
        outcome,
        x=x,
        objective=objective,
        bound=within_rounding(bound, objective, units.own, x),
        incumbents=tuple(met),
        pool=tuple(units.to_own(point) for point in outcome.pool),
    )


# ==== A session of which only what can be read and what nothing in hand contradicts is passed on ======================


@final
class GuardedSession:
    """One solver's session for one program, whose failures are statuses.

    What the session raises, but for a refusal (:class:`CeoptError`) and Ctrl-C, is status ``error``, and so is what no
    outcome can be read from. What its own point or a point in hand contradicts is no proof: see
    :func:`ceopt.solvers.trust.checked`.

    Parameters
    ----------
    solver, compiled
        Who solves what.
    threads, random_state, options
        Of the session.

    Raises
    ------
    CeoptError
        The session refuses the program or an option.
    """

    __slots__ = ("_compiled", "_failure", "_session", "_who")

    def __init__(
        self, solver: Solver, compiled: CompiledModel, *, threads: int, random_state: int, options: Mapping[str, Any]
    ) -> None:
        self._compiled = compiled
        self._who = f"Solver {solver.name!r}"
        self._session: Any = None
        self._failure = ""
        arguments = {"threads": threads, "random_state": random_state, "options": options}
        try:
            self._session = _opened(solver, compiled, arguments)
        except (CeoptError, OutOfTimeError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a foreign library raises is its failure, not the caller's
            self._failure = _failure_of(self._who, error)

    @property
    def version(self) -> str:
        """Version of the solver, as far as it says."""
        try:
            return str(self._session.version)
        except Exception:  # noqa: BLE001 - as above
            return ""

    def solve(
        self,
        *,
        time_limit_s: float | None = None,
        relative_gap: float = 1e-6,
        start: Start | None = None,
        pool: int = 1,
        on_incumbent: Callable[[float, float, Vector], None] | None = None,
        absolute_gap: float = 0.0,
        callback: Callback | None = None,
        tee: bool = False,
        warm: bool = False,
        lazy: Lazy | None = None,
    ) -> Outcome:
        """Solve the program as it is now; the arguments are those of a session.

        Raises
        ------
        CeoptError
            An argument makes no sense, or a member of a set has wider bounds than the set was stated with.
        KeyboardInterrupt
            As the session lets it through.
        """
        began = time.perf_counter()
        for one in self._compiled.sets:
            one.require_bounds(self._compiled)
        if start is not None and self._compiled.sets:
            start = self._compiled.completed(sparse_start(start, len(self._compiled.columns)))
        check = functools.partial(
            checked,
            self._who,
            compiled=self._compiled,
            start=sparse_start(start, len(self._compiled.columns)),
            relative_gap=relative_gap,
            absolute_gap=absolute_gap,
        )
        told = None if on_incumbent is None else _Caller(on_incumbent)
        asked = None if callback is None else _Caller(callback)
        separates = None if lazy is None else _Caller(lazy)
        try:
            if self._session is None:
                returned = Outcome(status=Stop.ERROR, message=self._failure)
            else:
                returned = self._session.solve(
                    time_limit_s=time_limit_s,
                    relative_gap=relative_gap,
                    start=start,
                    pool=pool,
                    on_incumbent=told,
                    **further_arguments(absolute_gap, asked, tee=tee, warm=warm, lazy=separates),
                )
            outcome = check(returned)
        except (CeoptError, OutOfTimeError):
            raise
        except Exception as error:
            if any(caller is not None and error is caller.error for caller in (told, asked, separates)):
                raise
            outcome = check(Outcome(status=Stop.ERROR, message=_failure_of(self._who, error)))
        if outcome.run_time:
            return outcome
        return replace(outcome, run_time=time.perf_counter() - began)


def needs_other_units(solver: Solver, compiled: CompiledModel) -> bool:
    """Whether a program is solved in other units: its numbers are extreme."""
    # SCIP 10 was seen to call a program infeasible of which it had a point, where columns of 5e10 move by 1e4, and to
    # prove optima of squares beside integers that were .3 % to 90 % too dear: there a second run is held against it.
    has_squares = compiled.problem_class is ProblemClass.MIQP
    is_lost = solver.name == "scip" and (has_squares or is_far_from_zero(compiled))
    return not solver.certifies and (is_lost or is_extreme(compiled))  # who certifies has units of his own


def tightest(solver: Solver, compiled: CompiledModel) -> dict[str, Any]:
    """Return a solver's tightest tolerances, none below what the rows leave in rounding.

    HiGHS 1.15.1 took a point for infeasible whose rows of 1e7 were off by 2e-9, asked for 1e-9, and called another one
    optimal. Rows in other units have no such sizes.
    """
    if needs_other_units(solver, compiled):
        return dict(solver.exact)
    ends = np.maximum(np.abs(compiled.lb), np.abs(compiled.ub))
    sizes = abs(compiled.A) @ np.where(np.isfinite(ends), ends, 0.0)
    least = ROW_ROUNDING * float(sizes.max(initial=0.0))
    return {name: max(value, least) for name, value in solver.exact.items()}


def _opened(solver: Solver, compiled: CompiledModel, arguments: Mapping[str, Any]) -> Any:
    """Return the solver's own session for a program, or one in other units where numbers are extreme."""
    if needs_other_units(solver, compiled):
        return WideSession(solver, compiled, arguments)
    return solver.session(compiled.problem_class)(compiled, **arguments)


def further_arguments(
    absolute_gap: float, callback: Callback | None, *, tee: bool, warm: bool, lazy: Lazy | None = None
) -> dict[str, Any]:
    """Return those that are not the usual ones: a session that was registered need not know the others."""
    further: dict[str, Any] = {}
    if absolute_gap:
        further["absolute_gap"] = absolute_gap
    if callback is not None:
        further["callback"] = callback
    if tee:
        further["tee"] = tee
    if warm:
        further["warm"] = warm
    if lazy is not None:
        further["lazy"] = lazy
    return further


@final
class _Caller:
    """The caller's own function, which remembers the exception that it raised."""

    __slots__ = ("error", "function")

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function
        self.error: BaseException | None = None

    def __call__(self, *arguments: Any) -> object:
        try:
            return self.function(*arguments)
        except BaseException as error:
            self.error = error
            raise


def _failure_of(who: str, error: BaseException) -> str:
    """Return the exception of a library as a sentence."""
    parts = [type(error).__name__, " ".join(str(error).split())]
    return f"{who} failed ({': '.join(part for part in parts if part)})."

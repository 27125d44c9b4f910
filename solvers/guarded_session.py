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
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.solvers.errors import CeoptError
from ceopt.solvers.problem import Outcome, ProblemClass, Stop, Vector, relative_gap_of
from ceopt.solvers.registry import SOLVERS, Solver
from ceopt.solvers.session import Start, sparse_start
from ceopt.solvers.tolerances import BOUND_NOISE, KEPT_SHARE
from ceopt.solvers.trust import checked, contradicts, missed
from ceopt.solvers.units import Rescaled, is_extreme, is_far_from_zero, rescaled, span_of, wide_columns

__all__ = ["GuardedSession"]

# ==== A session for programs of extreme numbers =======================================================================

#: Steps that wide columns may be from the optimum of the relaxation: more, if what is so near leaves a gap. HiGHS takes
#: the worse of two points for optimal if they are apart by many steps of which each is too small for it to see.
_AROUND = (2.0**3, 2.0**10, 2.0**20)
#: Coefficients of one row that span more are beyond what any solver tells apart in double precision.
_SPAN = 1e12
#: Where they span more, a solver that is asked to be exact may call a relaxation infeasible that is not (HiGHS 1.15.1,
#: big-Ms of 1e9 beside coefficients of 1): it has to say so twice, the second time with its usual tolerances.
_FAR_APART = 1e8


@final
class WideSession:
    """One program of extreme numbers, to be solved many times.

    Parameters
    ----------
    solver
        Who solves the programs in other units.
    compiled
        The program.
    words
        Threads, random state and options of the sessions.

    Attributes
    ----------
    version
        Version of the solver.
    """

    def __init__(self, solver: Solver, compiled: CompiledModel, words: Mapping[str, Any]) -> None:
        self._solver = solver
        self._compiled = compiled
        # Numbers that a row adds up are far apart here: what a solver lets pass as 0 has to be small beside the least.
        self._words = {**words, "options": {**solver.exact, **(words["options"] or {})}}
        self._plain = dict(words)
        # What the solver refuses, it refuses now.
        units = rescaled(compiled, wide_columns(compiled), _present(compiled))
        self.version = str(self._session(units, self._words).version)

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
        """Solve the program as it is now; see :meth:`ceopt.solvers.session.AbstractSession.solve`."""
        compiled = self._compiled
        began = time.perf_counter()
        begin = sparse_start(start, len(compiled.columns))

        seconds_left = functools.partial(_seconds_left, time_limit_s, began)

        def run(units: Rescaled, *, is_last: bool, is_again: bool = False) -> Outcome:
            told = _told(on_incumbent, units) if is_last else None
            try:
                session = self._session(units, self._plain if is_again else self._words)
            except OutOfTimeError as error:
                return Outcome(status=Stop.TIME_LIMIT, message=f"The time limit is used up while {error.stage}.")
            words: dict[str, Any] = {"relative_gap": relative_gap, "pool": pool if is_last else 1}
            words |= {"on_incumbent": told, "should_stop": should_stop}
            outcome = self._settled(session, units.program, units.there(begin), seconds_left, **words)
            if is_again and is_last and outcome.x is not None and missed(units.program, outcome.x) > KEPT_SHARE:
                return Outcome(status=Stop.INFEASIBLE, message="No point keeps the program exactly.")
            is_doubtful = outcome.status is Stop.INFEASIBLE and not is_again
            if is_doubtful and span_of(units.program) > _FAR_APART:
                return run(units, is_last=is_last, is_again=True)
            return _returned(outcome, units)

        wide = wide_columns(compiled)
        at = _present(compiled)
        for column, value in begin.items():
            at[column] = value
        units = rescaled(compiled, wide, at)
        outcome = run(units, is_last=not wide.any())
        spent = time.perf_counter() - began
        if outcome.status is Stop.UNBOUNDED and wide.any():
            units = rescaled(compiled, np.zeros_like(wide), at)
            return _honest(run(units, is_last=True), units)
        if outcome.x is None or not wide.any():
            return replace(_honest(outcome, units), run_time=spent)
        best = Outcome(status=Stop.ERROR)
        last = outcome
        for around in _AROUND:
            near = rescaled(compiled, np.zeros_like(wide), outcome.x, around=around)
            last = _honest(run(near, is_last=True), near)
            found = self._both(outcome, last, relative_gap)
            if best.x is None or self._is_better(found, best):
                best = found
            if found.status not in {Stop.FEASIBLE, Stop.ERROR}:
                break
        if best.x is None and last.status is Stop.INFEASIBLE:
            best = self._far(outcome, best, run, relative_gap)
        return replace(best, run_time=time.perf_counter() - began)

    def _settled(
        self,
        session: Any,
        program: CompiledModel,
        start: Mapping[int, float],
        seconds_left: Callable[[], float | None],
        **words: Any,
    ) -> Outcome:
        """Solve, and once more from a better point if a second run has one."""
        outcome = self._believed(session, program, start, time_limit_s=seconds_left(), **words)
        if outcome.status is not Stop.OPTIMAL:
            return outcome
        known = self._second_point(program, outcome, start, limit_s=seconds_left(), gap=words["relative_gap"])
        if known:
            return self._believed(session, program, known, time_limit_s=seconds_left(), **words)
        return outcome

    def _believed(self, session: Any, program: CompiledModel, start: Mapping[int, float], **words: Any) -> Outcome:
        """Solve, and hold what the solver says against the program that it was given."""
        who = f"Solver {self._solver.name!r}"
        returned = session.solve(start=start, **words)
        return checked(who, returned, program, start=start, relative_gap=words["relative_gap"])

    def _second_point(
        self, program: CompiledModel, found: Outcome, start: Mapping[int, float], *, limit_s: float | None, gap: float
    ) -> dict[int, float]:
        """Return a better point that a second run finds and that keeps the program exactly; empty if there is none.

        Asked to be exact on numbers of such sizes, HiGHS 1.15.1 and Gurobi 13 were seen to prove an optimum that is
        none, and are asked again with their usual tolerances. With squares HiGHS is asked: SCIP 10 was 1e-4 too dear,
        Gurobi 13 with presolve twice as dear.
        """
        assert found.x is not None  # noqa: S101 - an optimum has one
        assert found.objective is not None  # noqa: S101
        solver = self._solver
        words = self._plain
        if program.Q is not None:
            if solver.name == "highs":
                return {}
            solver = SOLVERS["highs"]
            start = dict(enumerate(found.x.tolist()))
            words = {"threads": 1, "random_state": 0, "options": dict(solver.exact)}
        elif not program.integer.any():
            return {}
        try:
            session = solver.session(program.problem_class)(program, **words)
        except (CeoptError, OutOfTimeError):  # another kind of program than it takes, or no time
            return {}
        second = session.solve(time_limit_s=limit_s, relative_gap=gap, start=start)
        if second.x is None or missed(program, second.x) > KEPT_SHARE:
            return {}
        is_better = contradicts(found.objective, program.evaluate(second.x), program, second.x)
        if is_better:
            return dict(enumerate(second.x.tolist()))
        return {}

    def _far(self, relaxation: Outcome, nothing: Outcome, run: Callable[..., Outcome], gap: float) -> Outcome:
        """Return what there is beyond the widest window, in which there is nothing: proved, if nothing is beyond it."""
        assert relaxation.x is not None  # noqa: S101 - the windows are around it
        wide = wide_columns(self._compiled)
        is_empty = True
        for beyond in _beyond(self._compiled, np.flatnonzero(wide), relaxation.x):
            units = rescaled(beyond, wide, relaxation.x)
            found = _honest(run(units, is_last=False), units)
            if found.x is not None:
                near = rescaled(beyond, np.zeros_like(wide), found.x, around=_AROUND[-1])
                found = _honest(run(near, is_last=True), near)
                if found.x is not None:
                    return self._both(relaxation, found, gap)
                is_empty = False  # elsewhere in this part there may be something
            is_empty &= found.status is Stop.INFEASIBLE
        if not is_empty:
            return nothing
        return replace(nothing, status=Stop.INFEASIBLE, bound=None, message="")

    def _is_better(self, found: Outcome, best: Outcome) -> bool:
        if found.objective is None or best.objective is None:
            return best.objective is None
        return self._compiled.sense * (found.objective - best.objective) < 0

    def _both(self, relaxation: Outcome, found: Outcome, gap: float) -> Outcome:
        """Return the point that was found, with what the relaxation proves."""
        bound = relaxation.bound
        if found.x is None:
            message = f"No point in whole numbers was found near the relaxation's. {found.message}".strip()
            status = Stop.ERROR if found.status is Stop.INFEASIBLE else found.status
            return replace(found, status=status, bound=bound, message=message)
        assert found.objective is not None  # noqa: S101 - it has a point
        found = replace(found, bound=_within_rounding(bound, found, self._compiled))
        if relaxation.doubted:
            message = f"{found.message} {relaxation.message}".strip()
            found = replace(found, doubted=True, message=message)
        missing = relative_gap_of(found.objective, found.bound)
        if found.status is Stop.OPTIMAL and (missing is None or missing > max(gap, BOUND_NOISE)):
            message = f"The whole numbers near the optimum of the relaxation leave a gap. {found.message}".strip()
            return replace(found, status=Stop.FEASIBLE, message=message)
        return found

    def _session(self, units: Rescaled, words: Mapping[str, Any]) -> Any:
        return self._solver.session(units.program.problem_class)(units.program, **words)


def _beyond(compiled: CompiledModel, wide: NDArray[np.intp], at: Vector) -> Iterator[CompiledModel]:
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
    """Return the values that the Vars hold, 0 where there is none: numbers near which the optimum is likely, (n,)."""
    present = np.zeros(len(compiled.columns))
    for k, column in enumerate(compiled.columns):
        value = getattr(column, "value", None)
        if value is not None and math.isfinite(value):
            present[k] = value
    return present


def _seconds_left(time_limit_s: float | None, began: float) -> float | None:
    if time_limit_s is None:
        return None
    return max(time_limit_s - (time.perf_counter() - began), 1e-3)


def _told(
    tell: Callable[[float, float, Vector], None] | None, units: Rescaled
) -> Callable[[float, float, Vector], None] | None:
    """Return the caller's function for points in these units."""
    if tell is None:
        return None

    def told(seconds: float, objective: float, x: Vector) -> None:
        tell(seconds, objective / units.worth, units.back(x))

    return told


def _returned(outcome: Outcome, units: Rescaled) -> Outcome:
    """Return an outcome in the program's own units; what it violates stays in those in which it was solved."""
    bound = None if outcome.bound is None else outcome.bound / units.worth
    if outcome.x is None:
        return replace(outcome, bound=bound)
    x = units.back(outcome.x)
    objective = units.own.evaluate(x)
    outcome = replace(outcome, x=x, objective=objective)
    return replace(
        outcome,
        bound=_within_rounding(bound, outcome, units.own),
        incumbents=tuple((s, o / units.worth, units.back(point)) for s, o, point in outcome.incumbents),
        pool=tuple(units.back(point) for point in outcome.pool),
    )


def _within_rounding(bound: float | None, outcome: Outcome, compiled: CompiledModel) -> float | None:
    """Return a bound, brought to the objective in hand where rounding alone puts it beyond: else it is no proof."""
    x = outcome.x
    objective = outcome.objective
    if bound is None or x is None or objective is None or compiled.sense * (bound - objective) <= 0:
        return bound
    if contradicts(bound, objective, compiled, x):
        return bound
    return objective


def _honest(outcome: Outcome, units: Rescaled) -> Outcome:
    """Take claims back where coefficients of one row, in any units, are too far apart to be told from rounding."""
    if outcome.status not in {Stop.OPTIMAL, Stop.INFEASIBLE} or (span := span_of(units.program)) <= _SPAN:
        return outcome
    status = Stop.FEASIBLE if outcome.x is not None else Stop.ERROR
    return replace(outcome, status=status, message=f"Coefficients of one row span {span:.1g}: nothing is proved.")


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
        words = {"threads": threads, "random_state": random_state, "options": options}
        try:
            self._session = _opened(solver, compiled, words)
        except (CeoptError, OutOfTimeError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a foreign library raises is its failure, not the caller's
            self._failure = _words(self._who, error)

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
    ) -> Outcome:
        """Solve the program as it is now; the arguments are those of a session.

        Raises
        ------
        CeoptError
            An argument makes no sense.
        KeyboardInterrupt
            As the session lets it through.
        """
        began = time.perf_counter()
        check = functools.partial(
            checked,
            self._who,
            compiled=self._compiled,
            start=sparse_start(start, len(self._compiled.columns)),
            relative_gap=relative_gap,
        )
        caller = None
        if on_incumbent is not None:
            caller = _Caller(on_incumbent)
        try:
            if self._session is None:
                returned = Outcome(status=Stop.ERROR, message=self._failure)
            else:
                returned = self._session.solve(
                    time_limit_s=time_limit_s, relative_gap=relative_gap, start=start, pool=pool, on_incumbent=caller
                )
            outcome = check(returned)
        except (CeoptError, OutOfTimeError):
            raise
        except Exception as error:
            if caller is not None and error is caller.error:
                raise
            outcome = check(Outcome(status=Stop.ERROR, message=_words(self._who, error)))
        if outcome.run_time:
            return outcome
        return replace(outcome, run_time=time.perf_counter() - began)


def _opened(solver: Solver, compiled: CompiledModel, words: Mapping[str, Any]) -> Any:
    """Return the solver's own session for a program, or one in other units where numbers are extreme."""
    # SCIP 10 was seen to call a program infeasible of which it had a point, where columns of 5e10 move by 1e4, and to
    # prove optima of squares beside integers that were .3 % to 90 % too dear: there a second run is held against it.
    has_squares = compiled.problem_class is ProblemClass.MIQP
    is_lost = solver.name == "scip" and (has_squares or is_far_from_zero(compiled))
    if not solver.certifies and (is_lost or is_extreme(compiled)):  # who certifies has units of his own
        return WideSession(solver, compiled, words)
    return solver.session(compiled.problem_class)(compiled, **words)


@final
class _Caller:
    """The caller's own function, whose exceptions are the caller's."""

    __slots__ = ("error", "function")

    def __init__(self, function: Callable[[float, float, Vector], None]) -> None:
        self.function = function
        self.error: BaseException | None = None

    def __call__(self, seconds: float, objective: float, x: Vector) -> None:
        try:
            self.function(seconds, objective, x)
        except BaseException as error:
            self.error = error
            raise


def _words(who: str, error: BaseException) -> str:
    said = " ".join(str(error).split())
    return f"{who} failed ({type(error).__name__}{': ' * bool(said)}{said})."

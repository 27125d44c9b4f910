"""A session of which only what can be read and what nothing in hand contradicts is passed on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, final

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.solvers.errors import CeoptError
from ceopt.solvers.extreme_numbers.rescaled_session import WideSession
from ceopt.solvers.extreme_numbers.units import is_extreme, is_far_from_zero
from ceopt.solvers.guard.contradictions import credible, readable
from ceopt.solvers.problem import Outcome, ProblemClass, Stop, Vector
from ceopt.solvers.registry import Solver
from ceopt.solvers.session import Start, sparse_start

__all__ = ["GuardedSession"]


@final
class GuardedSession:
    """One solver's session for one program, whose failures are statuses.

    What the session raises, but for a refusal (:class:`CeoptError`) and Ctrl-C, is status ``error``, and so is what no
    outcome can be read from. What its own point or a point in hand contradicts is no proof: see
    :func:`ceopt.solvers.guard.contradictions.credible`.

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
        compiled = self._compiled
        began = time.perf_counter()
        begin = sparse_start(start, len(compiled.columns))
        outcome = Outcome(status=Stop.ERROR, message=self._failure)
        if self._session is not None:
            outcome = self._told(
                on_incumbent, time_limit_s=time_limit_s, relative_gap=relative_gap, start=start, pool=pool
            )
        outcome = credible(self._who, outcome, compiled, start=begin, relative_gap=relative_gap)
        if outcome.run_time:
            return outcome
        return replace(outcome, run_time=time.perf_counter() - began)

    def _told(self, on_incumbent: Callable[[float, float, Vector], None] | None, **asked: Any) -> Outcome:
        """Return what the session says, as far as it can be read."""
        caller = None
        if on_incumbent is not None:
            caller = _Caller(on_incumbent)
        try:
            return readable(self._who, self._session.solve(on_incumbent=caller, **asked), self._compiled)
        except (CeoptError, OutOfTimeError):
            raise
        except Exception as error:
            if caller is not None and error is caller.error:
                raise
            return Outcome(status=Stop.ERROR, message=_words(self._who, error))


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

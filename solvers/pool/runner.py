"""One solver before one deadline: a program, and others that are derived from it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.deadline import OutOfTimeError, until
from ceopt.solvers.guard.guarded_session import GuardedSession
from ceopt.solvers.problem import Outcome, Stop, Vector
from ceopt.solvers.registry import Solver
from ceopt.solvers.session import Start, StopSwitch

__all__ = ["Runner"]


@final
@dataclass(slots=True, kw_only=True)
class Runner:
    """Opens sessions and solves them, as long as there is time.

    Parameters
    ----------
    solver
        Who solves; its ``version`` is known after the first run.
    threads, random_state, options, relative_gap
        Of each run.
    deadline
        On the clock of ``time.perf_counter``; infinite for no limit.
    start, on_incumbent
        Of the first run alone.
    exact
        Ask for integers as whole as the solver can make them.
    doubt
        What the solver has said that a point in hand contradicts: it proves nothing from then on. Empty if nothing.
    switch
        Pressed by Ctrl-C.
    """

    solver: Solver
    threads: int
    random_state: int
    options: Mapping[str, Any]
    relative_gap: float
    deadline: float
    start: Start | None = None
    on_incumbent: Callable[[float, float, Vector], None] | None = None
    exact: bool = False
    version: str = ""
    doubt: str = ""
    switch: StopSwitch = field(default_factory=lambda: StopSwitch(None))

    @property
    def why_stop(self) -> str:
        """Why no further run may begin; empty if one may."""
        if self.switch.pressed:
            return "The search was interrupted."
        if time.perf_counter() >= self.deadline:
            return "The time limit ended the search."
        return ""

    def session(self, compiled: CompiledModel) -> GuardedSession:
        """Return a session for a program.

        Raises
        ------
        OutOfTimeError
            There was no time to hand the program over.
        """
        options = dict(self.options)
        if self.exact:
            options = {**self.solver.exact, **options}
        with until(self.deadline):
            session = GuardedSession(
                self.solver, compiled, threads=self.threads, random_state=self.random_state, options=options
            )
        self.version = self.version or session.version
        return session

    def first(self, compiled: CompiledModel, *, pool: int) -> Outcome:
        """Solve the program itself."""
        try:
            session = self.session(compiled)
        except OutOfTimeError as error:
            return Outcome(status=Stop.TIME_LIMIT, message=f"The time limit is used up while {error.stage}.")
        return self.solve(session, pool=pool, start=self.start, on_incumbent=self.on_incumbent)

    def solve(
        self,
        session: GuardedSession,
        *,
        pool: int = 1,
        start: Start | None = None,
        on_incumbent: Callable[[float, float, Vector], None] | None = None,
    ) -> Outcome:
        """Solve what a session holds, in the time that is left."""
        left = self.deadline - time.perf_counter()
        outcome = session.solve(
            time_limit_s=None if math.isinf(left) else max(left, 1e-3),
            relative_gap=self.relative_gap,
            start=start,
            pool=pool,
            on_incumbent=on_incumbent,
        )
        if outcome.status is Stop.INTERRUPTED:
            self.switch.pressed = True
        if outcome.doubted and not self.doubt:
            self.doubt = outcome.message
        # What is called a solution keeps the program: the point under an error does not.
        if outcome.status is Stop.ERROR:
            return replace(outcome, x=None, objective=None)
        return outcome

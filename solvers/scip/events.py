"""Events while SCIP searches: better points, and moments at which it can be stopped."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ceopt.solvers.scip.model import Program
from ceopt.solvers.session import SolveRun

__all__ = ["attach", "heard"]


def attach(model: Any) -> Any:
    """Give a ``pyscipopt.Model`` a listener, which it keeps, and return it."""
    listener = _listener_class()()
    model.includeEventhdlr(listener, "ceopt", "better points, and polls of the switch")
    listener.model = None  # pyscipopt sets it: a cycle that would keep SCIP's memory until the next collection
    return listener


@contextmanager
def heard(listener: Any, program: Program, search: SolveRun, *, points: bool) -> Iterator[None]:
    """Let the listener report to ``search``, and forget both at the end."""
    listener.model, listener.program, listener.search, listener.points = program.model, program, search, points
    try:
        yield
    finally:
        listener.model = listener.program = listener.search = None


@functools.cache
def _listener_class() -> Any:
    from pyscipopt import SCIP_EVENTTYPE, Eventhdlr  # type: ignore[attr-defined]

    better = SCIP_EVENTTYPE.BESTSOLFOUND
    moments = (
        SCIP_EVENTTYPE.PRESOLVEROUND,
        SCIP_EVENTTYPE.NODEFOCUSED,
        SCIP_EVENTTYPE.FIRSTLPSOLVED,
        SCIP_EVENTTYPE.LPSOLVED,
    )

    class Listener(Eventhdlr):
        """Hears better points, rounds of presolve, nodes and linear programs."""

        program: Program | None = None
        search: SolveRun | None = None
        points = True

        def eventinit(self) -> None:
            for kind in (better, *moments) if self.model is not None else ():
                self.model.catchEvent(kind, self)

        def eventexec(self, event: Any) -> None:
            program, search = self.program, self.search
            if program is None or search is None:
                return
            if self.points and event.getType() == better:
                search.improved(program.point(self.model.getBestSol()))
            if search.switch.poll():
                self.model.interruptSolve()

    return Listener

"""The deadline of a call, known to every stage of it without being handed down."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import final

#: On the clock of ``time.perf_counter``; of the call that runs in this thread.
_DEADLINE: ContextVar[float] = ContextVar("ceopt_deadline", default=math.inf)


@final
class OutOfTimeError(Exception):
    """The time limit ended a stage. It never leaves the package: who set the limit makes a status of it.

    It is no CeoptError, as nothing was misused and nobody who handles misuse shall handle this.

    Parameters
    ----------
    stage
        What was being done, as "reading the trees".
    """

    def __init__(self, stage: str) -> None:
        super().__init__(stage)
        self.stage = stage


def _is_not_of_a_deadline(record: logging.LogRecord) -> bool:
    return OutOfTimeError.__name__ not in record.getMessage()


# Pyomo tells the terminal of every error that leaves a rule of a model; this one is handled.
logging.getLogger("pyomo.core").addFilter(_is_not_of_a_deadline)


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Let the stages inside work until a deadline, or until the one around it where that comes first."""
    token = _DEADLINE.set(min(deadline, _DEADLINE.get()))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


@contextmanager
def without_deadline() -> Iterator[None]:
    """Suspend the deadline: the check of a point in hand is not given up half-way."""
    token = _DEADLINE.set(math.inf)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def deadline_now() -> float:
    """Return the deadline; infinite where there is none."""
    return _DEADLINE.get()


def seconds_left() -> float:
    """Return the seconds until the deadline, which may be negative; infinite where there is none."""
    return _DEADLINE.get() - time.perf_counter()


def checkpoint(stage: str) -> None:
    """End the stage where its time is used up.

    A loop of short rounds compares the clock with :func:`deadline_now`, asked before it, and raises the error itself:
    a call in every round is felt.

    Raises
    ------
    OutOfTimeError
        The deadline is over.
    """
    deadline = _DEADLINE.get()
    if deadline < math.inf and time.perf_counter() >= deadline:
        raise OutOfTimeError(stage)

"""The time that a person waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from ceopt.solvers.checks import Real, Refusal, Whole
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["run_time", "run_time_ratio"]

_SECONDS = Real(
    at_least=0.0,
    finite=True,
    otherwise=Refusal("seconds of at least 0", "Correct it.", "one is {text}"),
    wrong_type=Refusal("seconds", "Give numbers.", "one is {value}", InvalidTypeError),
)


def run_time(timings: Any) -> float:
    r"""Mean seconds per person.

    .. math:: \frac1n \sum_{i=1}^n t_i, \qquad t_i = \sum_{\text{phases}\ p} t_{ip}\ \text{unless there is a total}

    Parameters
    ----------
    timings
        One person's: a number, a mapping phase -> seconds, or a :class:`~ceopt.SolutionSet`; or several of those. Where
        a mapping has a phase "total", that alone counts, else its phases are added.

    Raises
    ------
    InvalidTypeError
        No number.
    InvalidValueError
        No person, or negative or missing seconds.

    References
    ----------
    ``avg_time`` of CARLA; Leofante & Potyka (2024) time the first explanation of each pair only.

    Examples
    --------
    >>> run_time([{"build": 0.25, "solve": 0.5}, 1.25])
    1.0
    """
    people = [timings] if _is_one(timings) else timings
    if not isinstance(people, Iterable) or isinstance(people, str):
        raise InvalidTypeError("run_time", "seconds", f"timings is {type(timings).__name__}", "Give numbers.")
    seconds = [_seconds(one) for one in people]
    if not seconds:
        raise InvalidValueError("run_time", "the seconds of a person", "timings is empty", "Give at least one.")
    return float(np.mean(seconds))


def run_time_ratio(
    first: Callable[[], Any], second: Callable[[], Any], *, repeats: int = 5, clock: Callable[[], float] = process_time
) -> float:
    """How many times longer the first takes than the second: the ratio of medians of interleaved runs.

    Seconds of two machines cannot be compared, nor those of one machine under changing load; a ratio of interleaved
    runs can.

    Parameters
    ----------
    first, second
        Functions without arguments.
    repeats
        Runs of each, in turn.
    clock
        Seconds; by default of this process's processors, ``time.perf_counter`` for those on the wall.

    Raises
    ------
    InvalidValueError
        Less than one repeat, or a second that takes no time that the clock can see.

    Examples
    --------
    >>> ticks = iter([0.0, 6.0, 6.0, 8.0])
    >>> run_time_ratio(lambda: None, lambda: None, repeats=1, clock=lambda: next(ticks))
    3.0
    """
    Whole(1, None, Refusal("a positive number of repeats", "Give 5.")).require("run_time_ratio", "repeats", repeats)
    taken: list[list[float]] = [[], []]
    for _ in range(repeats):
        for call, seconds in zip((first, second), taken, strict=True):
            start = clock()
            call()
            seconds.append(clock() - start)
    if not median(taken[1]) > 0.0:
        raise InvalidValueError("run_time_ratio", "a second that takes time", "it takes 0 s", "Repeat it inside.")
    return median(taken[0]) / median(taken[1])


def _is_one(timings: Any) -> bool:
    return isinstance(timings, int | float | np.number | Mapping) or hasattr(timings, "timings")


def _seconds(one: Any) -> float:
    one = getattr(one, "timings", one)
    phases = [one]
    if isinstance(one, Mapping):
        phases = [one["total"]] if "total" in one else list(one.values())
    return float(sum(_SECONDS.require("run_time", "seconds", phase) for phase in phases))

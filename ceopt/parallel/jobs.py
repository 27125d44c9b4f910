"""Many tasks side by side through joblib: a process that is killed loses the one task that it worked on, no other."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, final

import joblib
from joblib.parallel import get_active_backend

from ceopt.solvers.checks import is_whole
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["Lost", "completed", "whole_jobs"]

#: So many tasks, each alone in a process, may end theirs one after the other until the rest is given up.
_MOST_IN_A_ROW = 5


#: What a task is called with, by its number; None where no more shall begin.
Arguments = Callable[[int], tuple[Any, ...] | None]


@final
@dataclass(frozen=True, slots=True)
class Lost:
    """What stands for the result of a task whose process ended before it; ``reason`` is a sentence."""

    reason: str


@final
@dataclass(frozen=True, slots=True)
class _Raised:
    """An error of the work itself, which no other process would mend."""

    error: Exception


def whole_jobs(who: str, n_jobs: Any) -> int:
    """Return how many processes are asked for, or refuse what is no such number."""
    if not is_whole(n_jobs) or n_jobs == 0:
        raise InvalidValueError(who, "a number of processes", f"n_jobs is {n_jobs!r}", "Give 1, 2, ... or -1 for all.")
    return int(n_jobs)


def completed(
    who: str,
    work: Callable[..., Any],
    arguments: Arguments,
    count: int,
    n_jobs: int,
    *,
    when_free: bool = False,
) -> Iterator[tuple[int, Any]]:
    """Give ``(k, work(*arguments(k)))`` for each k from 0 to ``count - 1``, as soon as it is there, in any order.

    From the first k for which ``arguments`` returns None no other task is begun. With ``when_free`` it is asked when a
    process is free for the task, not ahead.

    A process may be killed, run out of memory or crash in a library. What it had not delivered is done again, so that
    such an end costs time; a task at whose side nothing else runs, and which ends its process again, is :class:`Lost`.

    Raises
    ------
    InvalidTypeError
        The arguments cannot be sent to another process, or not be read there.
    """
    left = dict.fromkeys(range(count))
    breakdowns = deaths = 0
    while left and deaths < _MOST_IN_A_ROW:
        started: list[int] = []
        one_by_one = breakdowns > 0 or (when_free and joblib.effective_n_jobs(n_jobs) > 1)
        found = _parallel(work, arguments, list(left), n_jobs, started, one_by_one=one_by_one)
        try:
            while True:
                try:
                    place, result = next(found)
                except StopIteration:
                    return
                except pickle.PicklingError as error:
                    raise _unsendable(who, error) from error
                except Exception as error:  # the work's own errors are results: the processes have broken down
                    if "un-serialize" in str(error):  # loky's word where a process cannot read what it was sent
                        raise _unsendable(who, error) from error
                    breakdowns += 1
                    break
                deaths = 0
                del left[place]
                yield place, _unless_raised(result)
        finally:
            _close(found)
        if breakdowns == 1:  # tasks travelled in batches, any of many may be at fault: they start anew, one by one
            continue
        suspects = [place for place in started if place in left]
        deaths += not suspects
        for place in suspects:
            given = arguments(place)
            if given is None:
                return
            result = _alone(work, given, place)
            deaths = deaths + 1 if isinstance(result, Lost) else 0
            del left[place]
            yield place, _unless_raised(result)
            if deaths >= _MOST_IN_A_ROW:
                break
    for place in left:
        yield place, Lost(f"Not tried, as {deaths} processes in a row ended before their task was done.")


def _parallel(
    work: Callable[..., Any],
    arguments: Arguments,
    places: Sequence[int],
    n_jobs: int,
    started: list[int],
    *,
    one_by_one: bool,
) -> Iterator[tuple[int, Any]]:
    """Do the tasks at ``places`` under joblib's active backend; ``started`` gets each that was handed out."""

    def tasks() -> Iterator[Any]:
        for place in places:
            given = arguments(place)
            if given is None:
                return
            started.append(place)
            yield joblib.delayed(_placed)(place, work, *given)

    options: dict[str, Any] = {"n_jobs": n_jobs}
    if one_by_one:
        options |= {"batch_size": 1, "pre_dispatch": "n_jobs"}
    backend = get_active_backend()[0]
    if one_by_one and backend.effective_n_jobs(n_jobs) < 2:  # joblib would do it here, and this process would end
        options |= {"backend": "loky", "n_jobs": 2}
    elif type(backend).__name__ == "MultiprocessingBackend":  # its pool would wait for ever for one that was killed
        options |= {"backend": "loky"}
    elif not backend.supports_return_generator and type(backend).__name__ != "SequentialBackend":
        # Such as Ray's: what is finished comes back a round at a time.
        parallel = joblib.Parallel(**options)
        waiting = tasks()
        size = 2 * backend.effective_n_jobs(n_jobs)
        while some := list(islice(waiting, size)):
            yield from parallel(some)
        return
    yield from joblib.Parallel(return_as="generator_unordered", **options)(tasks())


def _close(found: Any) -> None:
    """End what still runs, without joblib's warning that nobody waits for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.close()


def _placed(place: int, work: Callable[..., Any], *arguments: Any) -> tuple[int, Any]:
    try:
        return place, work(*arguments)
    except Exception as error:  # noqa: BLE001 - raised again where it is received, as an error of the work's own
        return place, _Raised(error)


def _unless_raised(result: Any) -> Any:
    if isinstance(result, _Raised):
        raise result.error
    return result


def _alone(work: Callable[..., Any], given: tuple[Any, ...], place: int) -> Any:
    """Do one task with nothing beside it, in a process of its own (which two jobs ask for)."""
    try:
        ((_, result),) = _parallel(work, lambda _: given, [place], 2, [], one_by_one=True)
    except Exception as error:  # noqa: BLE001 - as above
        signals = re.findall(r"SIG[A-Z]+", str(error))  # loky lists the exit codes of its workers
        said = ", ".join(dict.fromkeys([type(error).__name__, *signals]))
        return Lost(f"The process that worked on it ended twice, the second time with nothing beside it ({said}).")
    return result


def _unsendable(who: str, error: Exception) -> InvalidTypeError:
    said = str(error.__cause__ or error).strip(' \n"').splitlines()[-1]  # of a traceback as text, the last line
    return InvalidTypeError(
        who,
        "what can be pickled and read by another process, as n_jobs is not 1",
        f"the model, or something beside it, cannot be ({said[:200]})",
        'Use n_jobs=1, or joblib.parallel_config(backend="threading").',
    )

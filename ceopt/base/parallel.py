"""Many tasks side by side through joblib: a process that is killed loses the one task that it worked on, no other."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import re
import signal
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar, final

import joblib
import numpy as np
import pandas as pd
from joblib.parallel import get_active_backend
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from ceopt.solvers.checks import is_whole
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError

# ==== Workers end with their parent ===================================================================================

#: Seconds between two looks at whose child a process is.
_LOOK_S: Final = 0.5
#: The option of Linux's prctl by which a process asks for a signal when the thread that started it ends.
_PR_SET_PDEATHSIG: Final = 1
#: How the warnings of trackers of resources begin.
_OF_TRACKERS: Final = "ignore:resource_tracker:UserWarning"

_watched: set[int] = set()


def end_with_parent(parent: int) -> None:
    """See to it that this process ends when its parent does, even when that is killed, and leaves nothing behind.

    Only a process that ``parent`` has started, and only once: not the caller's own (as under threads), nor one of a
    cluster. A thread looks every half second whose child this is. On Linux the kernel kills it besides, as a solver
    that holds Python's lock lets no thread look; it does so when the *thread* that started this process ends, and is
    asked only where that is the first of the parent's, with which all of it ends.
    """
    if os.getpid() == parent or os.getppid() != parent or os.getpid() in _watched:
        return
    _watched.add(os.getpid())
    _keep_no_semaphore()
    if _is_child_of_first_thread(parent):
        _ask_kernel()
    threading.Thread(target=_watch, args=(parent,), daemon=True, name="ceopt ends with its parent").start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os._exit(1)


def _is_child_of_first_thread(parent: int) -> bool:
    """Whether Linux says so; False where it cannot be asked."""
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii")
    except OSError:
        return False
    return str(os.getpid()) in children.split()


def _ask_kernel() -> None:
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _keep_no_semaphore() -> None:
    """Give Pyomo a lock of threads in place of one of processes, of which a worker starts none.

    That one is a semaphore of the system, and of a worker that is killed it would be left over.
    """
    dependencies: Any = sys.modules.get("pyomo.common.dependencies")
    if dependencies is not None and hasattr(dependencies, "capture_output_lock"):
        dependencies.capture_output_lock = threading.Lock()


def quiet_trackers() -> None:
    """Start the trackers of resources of Python and of loky, unless they run, so that they clean up without a word.

    They remove what killed processes have left: of a worker that is lost while it starts, the semaphore of Pyomo's
    lock. Nothing is lost by that, and a warning about it on the terminal names nothing that a user knows. A tracker is
    a process of its own, which takes its filters of warnings from the one that starts it; so those about a user's own
    resources, of which it cleans up too, are not shown either.
    """
    from multiprocessing import resource_tracker as of_python

    from joblib.externals.loky.backend import resource_tracker as of_loky  # type: ignore[import-untyped]

    sys.warnoptions.append(_OF_TRACKERS)
    try:
        of_python.ensure_running()
        of_loky.ensure_running()
    finally:
        sys.warnoptions.remove(_OF_TRACKERS)


# ==== Many tasks side by side =========================================================================================

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
    """Return the checked number of processes."""
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
                yield place, _unless_raised(who, result)
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
            yield place, _unless_raised(who, result)
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
    parent = os.getpid()

    def tasks() -> Iterator[Any]:
        for place in places:
            given = arguments(place)
            if given is None:
                return
            started.append(place)
            yield joblib.delayed(_placed)(parent, place, work, *given)

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
    if "backend" in options or (type(backend).__name__ == "LokyBackend" and backend.effective_n_jobs(n_jobs) > 1):
        quiet_trackers()
    yield from joblib.Parallel(return_as="generator_unordered", **options)(tasks())


def _close(found: Any) -> None:
    """End what still runs, without joblib's warning that nobody waits for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.close()


def _placed(parent: int, place: int, work: Callable[..., Any], *arguments: Any) -> tuple[int, Any]:
    end_with_parent(parent)
    try:
        return place, work(*arguments)
    except Exception as error:  # noqa: BLE001 - raised again where it is received, as an error of the work's own
        return place, _Raised(error)


def _unless_raised(who: str, result: Any) -> Any:
    if isinstance(result, _Raised):
        if isinstance(result.error, pickle.UnpicklingError):
            raise _unsendable(who, result.error) from result.error
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


# ==== What many tasks share is sent to a process once ================================================================


@final
@dataclass(frozen=True, slots=True, eq=False)
class Pickled:
    """The pickle of what many tasks share: an array, as joblib writes a large one to a file once for all of them."""

    name: str
    content: NDArray[np.uint8]


#: What stands for an object that many tasks share: its pickle, or the object where nothing is pickled.
Sent: TypeAlias = "Pickled | Any"
_received: tuple[str, Any] = ("", None)


def sendable(shared: Any) -> Sent:
    """Return the pickle of what many tasks share, or the object itself where tasks are threads or it has none.

    An object without a pickle is refused where a task is sent.
    """
    if getattr(get_active_backend()[0], "supports_sharedmem", False):
        return shared
    from joblib.externals.loky.backend.reduction import dumps  # type: ignore[import-untyped]

    try:
        content = dumps(shared)  # as tasks are: what __main__ defines goes by value
    except Exception:  # noqa: BLE001 - what cannot be pickled fails in many ways
        return shared
    return Pickled(uuid.uuid4().hex, np.frombuffer(content, dtype=np.uint8))


def received(sent: Sent) -> Any:
    """Return the object that was sent; the same one for all tasks of this process, so that it keeps what it learns.

    A process that was started for such tasks looks for garbage among newer objects alone: loky's do so every second.
    """
    global _received  # noqa: PLW0603 - a process has one
    if not isinstance(sent, Pickled):
        return sent
    if _received[0] != sent.name:
        is_own = os.getpid() in _watched
        if is_own and _received[0]:  # what a model leaves behind is garbage
            _received = ("", None)
            gc.unfreeze()
            gc.collect()
        try:
            _received = sent.name, pickle.loads(sent.content.data)  # noqa: S301 - this package has pickled it
        except Exception as error:  # what cannot be read fails in many ways
            raise pickle.UnpicklingError(str(error)) from error
        if is_own:
            gc.freeze()
    return _received[1]


# ==== An estimator trained again on random parts of its data ==========================================================


def labels_of(who: str, y: ArrayLike) -> NDArray[Any]:
    """Return labels as a vector, or refuse another shape and missing ones."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise InvalidValueError(who, "one label a row as y", f"its shape is {labels.shape}", "Give a vector.")
    missing = np.flatnonzero(pd.isna(np.asarray(y, dtype=object)))
    if missing.size:
        raise InvalidValueError(who, "a label for each row", f"y has none in row {missing[0]}", "Leave such rows out.")
    return labels


def rows_of_data(who: str, estimator: Any, X: Any, labels: NDArray[Any]) -> Any:
    """Return indexable rows; refuse non-estimators, and rows and labels of different lengths."""
    is_class = isinstance(estimator, type)
    if is_class or not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        but = f"it is {type(estimator).__name__}"
        if is_class:
            but = f"it is the class {estimator.__name__}"
        raise InvalidTypeError(who, "a scikit-learn estimator", but, "Give for example LogisticRegression().")
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if n != len(labels):
        raise InvalidValueError(who, "a label for each row", f"X has {n} rows and y {len(labels)}", "Match them.")
    if hasattr(X, "shape"):
        return X
    return np.asarray(X)


def each_retrained(
    who: str,
    result_of: Callable[[Any], Any],
    estimator: Any,
    rows: Any,
    labels: NDArray[Any],
    *,
    n_models: int,
    fraction: float,
    n_jobs: int,
    random_state: int,
    progress: bool,
) -> list[Any]:
    """Return ``result_of(model)`` for each model trained on a part of the data, the same whatever ``n_jobs`` is.

    Fits that do not converge are counted in one warning.

    Raises
    ------
    InvalidValueError
        ``n_jobs`` is no number of processes.
    CeoptError
        A process ended before its model was fitted, twice.
    """
    from sklearn.exceptions import ConvergenceWarning

    jobs = whole_jobs(who, n_jobs)
    seeds = np.random.SeedSequence(random_state).spawn(n_models)
    found = completed(
        who, _asked, lambda b: (result_of, estimator, rows, labels, fraction, seeds[b]), count=n_models, n_jobs=jobs
    )
    results: list[Any] = [None] * n_models
    early = 0
    for b, one in tqdm(found, total=n_models, disable=not progress, file=sys.stderr, unit="model"):
        if isinstance(one, Lost):
            but = f"one did not: {one.reason}"
            then = "Use fewer n_jobs if memory may have run out."
            raise CeoptError(who, "processes that live until their models are fitted", but, then)
        results[b], has_converged = one
        early += not has_converged
    if early:
        then = "raise max_iter, or scale the columns"
        warnings.warn(f"{early} of {n_models} fits did not converge: {then}.", ConvergenceWarning, stacklevel=3)
    return results


def retrained(estimator: Any, rows: Any, labels: NDArray[Any], fraction: float, seed: np.random.SeedSequence) -> Any:
    """Return a clone fitted on a random part, determined by the seed whatever the order of the tasks.

    A classifier's part has ``fraction`` of the rows of each class, at least one; any other's of all rows.
    """
    from sklearn.base import clone, is_regressor

    rng = np.random.default_rng(seed)
    if is_regressor(estimator):
        groups = [np.arange(len(labels))]
    else:
        groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    parts = [rng.choice(group, size=max(1, round(fraction * len(group))), replace=False) for group in groups]
    chosen = np.sort(np.concatenate(parts))
    model = clone(estimator)
    params = model.get_params(deep=True)
    unset = [name for name in params if name.rpartition("__")[2] == "random_state" and params[name] is None]
    model.set_params(**{name: int(rng.integers(2**31 - 1)) for name in sorted(unset)})
    return model.fit(rows.iloc[chosen] if hasattr(rows, "iloc") else rows[chosen], labels[chosen])


def _asked(  # noqa: PLR0917 - joblib calls it with all of them, in this order
    result_of: Callable[[Any], Any],
    estimator: Any,
    rows: Any,
    labels: NDArray[Any],
    fraction: float,
    seed: np.random.SeedSequence,
) -> tuple[Any, bool]:
    """Return the requested value of a retrained model, and whether its fit converged."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = retrained(estimator, rows, labels, fraction, seed)
    has_converged = not any(issubclass(one.category, ConvergenceWarning) for one in caught)
    for one in caught:
        if not issubclass(one.category, ConvergenceWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return result_of(model), has_converged


# ==== Threads of small matrices =======================================================================================

P = ParamSpec("P")
R = TypeVar("R")


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Run with one thread of linear algebra: on matrices this small several wait for each other, ten times as long."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with threadpool_limits(1, user_api="blas"):
            return function(*args, **kwargs)

    return limited

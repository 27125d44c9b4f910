"""Processes that work for another one: they end with it, and leave nothing behind when they are killed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

__all__ = ["end_with_parent", "quiet_trackers"]

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

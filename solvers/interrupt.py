"""Stopping a long solve: Ctrl-C and the caller's own wish, seen at the solver's next call back."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

__all__ = ["StopSwitch"]

_POLL_S = 0.01


@final
class StopSwitch:
    """Asks whether to stop: set by Ctrl-C, by ``should_stop``, or by an exception in a caller's function.

    Parameters
    ----------
    should_stop
        Called without arguments at most once in 10 ms.
    """

    __slots__ = ("_last", "_should_stop", "error", "pressed")

    def __init__(self, should_stop: Callable[[], bool] | None) -> None:
        self._should_stop = should_stop
        self._last = -_POLL_S
        self.pressed = False
        self.error: BaseException | None = None

    def poll(self) -> bool:
        """Return whether to stop now."""
        if not self.pressed and self._should_stop is not None:
            now = time.monotonic()
            if now - self._last >= _POLL_S:
                self._last = now
                self.guard(self._ask)
        return self.pressed

    def _ask(self) -> None:
        if self._should_stop is not None and self._should_stop():
            self.pressed = True

    def guard(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call the caller's own function; keep its exception, which must not cross the solver's C++ frames."""
        try:
            function(*arguments)
        except BaseException as error:  # noqa: BLE001  (raised again by the session when the solver has stopped)
            self.error = error
            self.pressed = True

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Turn Ctrl-C into a press of the switch, in the main thread and where Python handles the signal."""
        in_main = threading.current_thread() is threading.main_thread()
        previous = signal.getsignal(signal.SIGINT) if in_main else None
        if previous is None or previous is signal.SIG_IGN:
            yield
            return

        def press(_signal: int, _frame: Any) -> None:
            self.pressed = True

        signal.signal(signal.SIGINT, press)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)

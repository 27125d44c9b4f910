"""How dice-ml is asked: whether it is there, in silence, and for so long at most."""

from __future__ import annotations

import contextlib
import io
import signal
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from types import FrameType

__all__ = ["PRECISION", "is_installed", "limited", "quiet"]

#: Decimals of each column, which dice-ml would else take from the most frequent value: 17 for a scaled column, and its
#: search in steps of that size then takes minutes a query.
PRECISION = 3


def is_installed() -> bool:
    """Whether dice-ml can be imported."""
    return find_spec("dice_ml") is not None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep its bars and warnings back."""
    with (
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def limited(seconds: int | None) -> Iterator[None]:
    """Raise TimeoutError after so many seconds of the clock, where the system has alarms."""
    if seconds is None or not hasattr(signal, "SIGALRM"):
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

"""HiGHS without a word on standard output."""

from __future__ import annotations

from functools import cache
from typing import Any

__all__ = ["silent_highs"]


def silent_highs() -> Any:
    """Return a new ``highspy.Highs`` that prints nothing, its licence notice neither.

    HiGHS 1.16 prints that notice when its constructor enables the callbacks, which is before an option can be set.
    """
    return _silent_class()()


@cache
def _silent_class() -> Any:
    import highspy

    class SilentHighs(highspy.Highs):
        """HiGHS, told to be silent before it may speak."""

        def enableCallbacks(self) -> None:  # noqa: N802 - its name in highspy
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()  # type: ignore[no-untyped-call]

    return SilentHighs

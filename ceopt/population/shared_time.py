"""Seconds that the rows of a call share."""

from __future__ import annotations

import bisect
import time
from typing import Final, final

__all__ = ["SharedTime"]

#: So many times the median of the rows that have ended a row may take, though an equal part were less.
_MEDIANS: Final = 4.0
#: With fewer seconds left no further row is begun: halves of ever less would be spent on nothing.
_LEAST_S: Final = 0.01


@final
class SharedTime:
    """Seconds that many rows have together: what a row does not need is left to those after it.

    It is asked for the part of each row when that row begins, and told how long the row took. With too little time for
    all, the early rows are served, and the late ones are not begun. It stays in one process: others are handed seconds.

    Parameters
    ----------
    total_s
        For all rows, from now on.
    at_once
        Rows that are asked side by side.

    Examples
    --------
    >>> shared = SharedTime(60.0)
    >>> shared.part(rows_left=10, most=100.0)  # nothing is known of how long a row takes
    30.0
    >>> shared.note(0.5)
    >>> shared.part(rows_left=9, most=100.0)
    6.67
    """

    __slots__ = ("_at_once", "_began", "_ended", "_total_s")

    def __init__(self, total_s: float, at_once: int = 1) -> None:
        self._total_s = total_s
        self._at_once = at_once
        self._began = time.perf_counter()
        self._ended: list[float] = []  # seconds of rows that have ended, ascending

    def part(self, *, rows_left: int, most: float) -> float | None:
        """Return the seconds of the row that begins now, at most so many; None where all time is used up.

        It is an equal part of what is left, or four times the median of the rows that have ended where that is more,
        and at most half of what is left. As long as none has ended it is that half, and the last row has all that is
        left. ``rows_left`` counts that row and all that have not begun.
        """
        left = self._total_s - (time.perf_counter() - self._began)
        if left <= 0.0 or (self._ended and left < _LEAST_S):
            return None
        part = left
        if rows_left > 1:
            part = left / 2.0
            if self._ended:
                equal = left * min(self._at_once, rows_left) / rows_left
                part = min(part, max(equal, _MEDIANS * self._ended[len(self._ended) // 2]))
        return min(float(f"{part:.3g}"), most)

    def note(self, seconds: float) -> None:
        """Learn how long a row took."""
        bisect.insort(self._ended, seconds)

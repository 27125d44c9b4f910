"""Seconds that the rows of a call share."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final, final

__all__ = ["SharedTime"]

#: A row that begins after all is used up still has so many seconds, in which it says that it had none.
_LEAST_S: Final = 0.01


@final
@dataclass(frozen=True, slots=True)
class SharedTime:
    """Seconds that many rows have together: what a row does not need is left to those after it.

    Parameters
    ----------
    total_s
        For all rows, from now on.
    at_once
        Rows that are asked side by side.

    Examples
    --------
    >>> SharedTime(60.0).part(rows_left=10, most=20.0)
    6.0
    """

    total_s: float
    at_once: int = 1
    _began: float = field(default_factory=time.time, init=False)

    def part(self, *, rows_left: int, most: float) -> float:
        """Return the seconds of the row that begins now: an equal part of what is left, in hundredths, at most so many.

        ``rows_left`` counts that row and all that have not begun. It may be asked in another process.
        """
        left = self.total_s - (time.time() - self._began)
        equal = left * min(self.at_once, rows_left) / rows_left
        return max(min(round(equal, 2), most), _LEAST_S)

"""Results: the statuses of a query, and for plans read-only arrays and a print to read."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum, StrEnum
from typing import Any

import numpy as np

from ceopt.solvers.checks import Floats
from ceopt.solvers.errors import printable

# ==== The statuses of one person's query, in one closed set of words ==================================================


class Status(StrEnum):
    """Why the search ended and what is in hand; each member equals its own text."""

    OPTIMAL = "optimal"
    """Verified answers, the first proved best within the relative gap."""
    FEASIBLE = "feasible"
    """Verified answers; how far from the best they can be is ``.gap``."""
    INFEASIBLE = "infeasible"
    """Proved: there is no recourse in this model."""
    TIME_LIMIT = "time_limit"
    """The time ended with nothing in hand, and nothing proved."""
    REJECTED = "rejected"
    """The solver's points failed the check against the user's own model, and repair ended."""
    ALREADY_FAVOURABLE = "already_favourable"
    """The row meets the target and every rule as it is."""
    UNBOUNDED = "unbounded"
    """The program has no least cost."""
    ERROR = "error"
    """The row could not be asked, or the solver failed; the reason says why."""

    @property
    def has_answers(self) -> bool:
        """Whether verified answers are in hand."""
        return self in {Status.OPTIMAL, Status.FEASIBLE}

    @property
    def is_settled(self) -> bool:
        """Whether the person has an answer or needs none."""
        return self.has_answers or self is Status.ALREADY_FAVOURABLE


# ==== Results of the plans: read-only arrays, and a print to read =====================================================


def frozen(result: Any, *names: str) -> None:
    """Set fields of a frozen dataclass to read-only copies of their arrays; None stays."""
    for name in names:
        values = getattr(result, name)
        if values is not None:
            kept = np.array(values)
            kept.setflags(write=False)
            object.__setattr__(result, name, kept)


class Readable:
    """Prints its fields a line each, numbers to four digits; ``repr`` has them all."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return the name of the class and its fields."""
        texts = {one.name: _text(getattr(self, one.name)) for one in fields(self) if one.repr}  # type: ignore[arg-type]
        width = max(map(len, texts)) + 2
        lines = [type(self).__name__]
        for name, text in texts.items():
            if text:
                lines.append(name.ljust(width) + text.replace("\n", "\n" + " " * width))
        return "\n".join(lines)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=4, suppress_small=True, threshold=200)
    if isinstance(value, dict):
        return ", ".join(f"{_text(name)} {_text(part)}" for name, part in value.items())
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return printable(str(value))


def moved_intercept(before: Floats, after: Floats) -> str:
    """Return a sentence where the last column was 1, as an intercept's is, and is so no more; else nothing."""
    first = np.atleast_2d(before)
    last = np.atleast_2d(after)
    if first.shape[1] == 1 or (first[:, -1] != 1.0).any() or (last[:, -1] == 1.0).all():
        return ""
    return "The last column was 1 and moved: if it is the intercept's, hold it by fixed=[-1]."

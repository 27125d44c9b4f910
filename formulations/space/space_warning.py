"""The warning about a space and its frames, shown at the line of the caller."""

from __future__ import annotations

import inspect
import warnings
from typing import Final

from ceopt.solvers.errors import printable

__all__ = ["RuleWarning", "SpaceWarning", "warn"]

#: Modules between a caller and the place that warns: ceopt's own, and those of decorators around its functions.
_BETWEEN: Final = frozenset({"ceopt", "contextlib", "functools"})


class SpaceWarning(UserWarning):
    """A column that a space may describe otherwise than it is meant, or that a frame has and its space has not.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore", SpaceWarning)  # to hear no more of it
    """


class RuleWarning(SpaceWarning):
    """People stand beyond a rule today that answers must meet, so that the rule alone may ask them to move.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore", RuleWarning)  # to hear of spaces alone
    """


def warn(sentence: str, kind: type[SpaceWarning] = SpaceWarning) -> None:
    """Warn with a sentence, at the line that has called into ceopt."""
    level = 1  # this function, as warnings counts
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in _BETWEEN:
        frame = frame.f_back
        level += 1
    warnings.warn(printable(sentence), kind, stacklevel=level)

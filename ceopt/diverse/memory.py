"""Favourable rows of the data, remembered under a hash of all that the model consists of.

Where favourable rows are rare, nearly every query asks about nearly every row; with this, only the first one does.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ceopt.diverse.decisions import Decisions
    from ceopt.diverse.distance import Floats

__all__ = ["Memory"]

#: How many answers are kept: a few models, and of each the targets.
_KEPT: Final = 8


@final
class Memory:
    """What was found of some rows; the last few models and targets are kept.

    A model is known again by its content, never by its name or place, so that one that was fitted anew is another.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: OrderedDict[str, NDArray[np.bool_]] = OrderedDict()

    def recall(self, decisions: Decisions) -> NDArray[np.bool_] | None:
        """Return which rows meet the target, if this was asked before."""
        key = decisions.content() if self._known else None
        if key is None or key not in self._known:
            return None
        self._known.move_to_end(key)
        return self._known[key]

    def learn(self, decisions: Decisions, rows: Floats) -> NDArray[np.bool_] | None:
        """Ask which of all rows (n, d) meet the target and remember it; None for what has no content to know it by."""
        key = decisions.content()
        if key is None:
            return None
        self._known[key] = decisions.meets(rows)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return self._known[key]

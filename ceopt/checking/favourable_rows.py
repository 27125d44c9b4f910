"""The rows of data that belong to the target: those whose label does, or else those that the model puts there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pandas as pd

from ceopt.formulations.targets import DisagreementOf, Labels, ProbabilityOf, Target, Values
from ceopt.solvers.errors import InvalidValueError, each_of

if TYPE_CHECKING:
    from ceopt.checking.functions import Oracle
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["FavourableRows", "are_wanted"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class FavourableRows:
    """Gives the rows of the target class to rules that learn from them, as coordinates (n, d).

    Parameters
    ----------
    space, oracle, target
        The columns, the user's own model, and what it should say.
    data
        Rows in raw units, or None.
    labelled
        Rows and their own labels, which then decide instead of the model, or None.
    """

    space: FeatureSpace
    oracle: Oracle
    target: Any
    data: pd.DataFrame | None
    labelled: tuple[pd.DataFrame, Any] | None

    def __call__(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the rows, or refuse where there is no data."""
        if self.labelled is not None:
            X, y = self.labelled
            return self.space.coordinates(X[list(self.space.names)][are_wanted(y, len(X), self.target)])
        if self.data is None:
            raise InvalidValueError(
                "A rule that learns from rows of the target", "data", "no data is given",
                "Pass data=X_train to explain, fit a Recourse on it, or give the rule rows of its own.",
            )  # fmt: skip
        frame = self.data[list(self.space.names)]
        coordinates = self.space.coordinates(frame)  # refuses by name what the model would refuse otherwise
        if not len(frame):
            return coordinates
        return coordinates[self.oracle.meets(frame, self.target)]


def are_wanted(y: Any, n: int, target: Target) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which of ``n`` labels are in the target.

    Raises
    ------
    InvalidValueError
        Another number of labels than rows, or a target class that never occurs.
    """
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise InvalidValueError(
            "Recourse.fit", f"one label for {each_of(n, 'row')}", f"y has shape {labels.shape}", "Match X."
        )
    if isinstance(target, DisagreementOf):
        target = target.wanted
    if isinstance(target, Values):
        return target.holds(labels)
    if isinstance(target, ProbabilityOf):
        target = Labels((target.position,), target.labels)
    found = target.holds(labels)
    if not found.any():
        raise InvalidValueError(
            "Recourse.fit", "rows of the target in y", f"class {target.labels[target.wanted[0]]!r} never occurs there",
            "Give the labels that the model was fitted on, or leave y out.",
        )  # fmt: skip
    return found

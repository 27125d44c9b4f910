"""A trained predictor: raw rows in, labels and probabilities out, by NumPy alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.solvers.errors import InvalidValueError, UnknownNameError
from ceopt.training.networks import Tree, scores_of, shares_of
from ceopt.training.scaled_frame import Floats, ScaledFrame

__all__ = ["Codes", "PredictorNetwork"]

#: Places of labels among the classes.
Codes: TypeAlias = NDArray[np.intp]

_SHOWN: Final = 10


@final
@dataclass(frozen=True, eq=False)
class PredictorNetwork:
    """A network over scaled columns, which says one of several labels of a raw row.

    Parameters
    ----------
    columns
        From raw rows to what the network reads.
    layers
        Encoder and head as arrays in single precision.
    activation
        "relu" or "leaky_relu".
    classes_
        The labels (K,), ascending.
    """

    columns: ScaledFrame
    layers: Tree
    activation: str
    classes_: NDArray[Any]

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Raw columns: it is asked about frames."""
        return np.array(self.columns.space.names, dtype=object)

    def shares(self, points: Floats) -> NDArray[np.float32]:
        """Return the probabilities (n, K) of points (n, p), in single precision.

        Raises
        ------
        InvalidValueError
            Entries so great that the scores overflow.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            scores = scores_of(self.layers, points.astype(np.float32), self.activation, np)
            found = np.asarray(shares_of(scores, np), dtype=np.float32)
        self.require_calculable(found, points)
        return found

    def require_calculable(self, found: NDArray[Any], points: Floats) -> None:
        """Refuse points (n, p) of which a network made NaN (n, q): such as are too great for single precision.

        Raises
        ------
        InvalidValueError
            There is one.
        """
        lost = np.flatnonzero(np.isnan(found).any(axis=1))
        if len(lost):
            row = int(lost[0])
            place = int(np.abs(points[row]).argmax())
            but = f"in row {row} {self.columns.names[place]!r} is {points[row, place]:.3g} ranges of the data away"
            then = "Correct the row, or leave it out."
            raise InvalidValueError("A trained network", "numbers that fit single precision", but, then)

    def codes(self, points: Floats) -> Codes:
        """Return the place (n,) of the likeliest class of points (n, p); the first on ties."""
        return np.asarray(self.shares(points).argmax(axis=1))

    def predict_proba(self, X: pd.DataFrame) -> Floats:
        """Return the probabilities of ``classes_`` for raw rows, (n, K)."""
        return self.shares(self.columns.encode(X)).astype(np.float64)

    def predict(self, X: pd.DataFrame) -> NDArray[Any]:
        """Return the label of each raw row, (n,)."""
        return np.asarray(self.classes_[self.codes(self.columns.encode(X))])

    def codes_of(self, who: str, name: str, labels: Sequence[Any] | NDArray[Any] | pd.Series[Any]) -> Codes:
        """Return the places (n,) of labels among the classes.

        Raises
        ------
        UnknownNameError
            A label that is no class.
        """
        return codes_of(who, name, labels, self.classes_)


def codes_of(who: str, name: str, labels: Any, classes: NDArray[Any]) -> Codes:
    """Return the places (n,) of labels among classes, or refuse what is none of them."""
    given = np.asarray(labels)
    if given.ndim != 1:
        raise InvalidValueError(who, f"one label a row as {name}", f"its shape is {given.shape}", "Give a column.")
    place = {label: code for code, label in enumerate(classes.tolist())}
    found = np.empty(len(given), dtype=np.intp)
    for row, label in enumerate(given.tolist()):
        code = place.get(label) if isinstance(label, Hashable) else None
        if code is None:
            shown = list(place)[:_SHOWN]
            raise UnknownNameError.among(who, f"class in {name}", label, shown, quoted=True)
        found[row] = code
    return found

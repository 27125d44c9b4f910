"""A trained generator: raw rows in, recourse as raw rows out, by NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import pandas as pd

from ceopt.training.networks import Design, Tree, generated
from ceopt.training.predictor_network import PredictorNetwork
from ceopt.training.raw_recourse import moved_frame, require_within
from ceopt.training.scaled_frame import Floats

__all__ = ["GeneratorNetwork"]


@final
@dataclass(frozen=True, eq=False)
class GeneratorNetwork:
    """A network that says for a raw row what the person is advised to become.

    Parameters
    ----------
    predictor
        Whose hidden units it reads, and whose columns.
    layers
        Head, and where it does not read the predictor an encoder of its own, as arrays in single precision.
    design
        Widths and columns.
    """

    predictor: PredictorNetwork
    layers: Tree
    design: Design

    def points(self, points: Floats, low: Floats, high: Floats) -> Floats:
        """Return recourse (n, p) for points (n, p), within what each person may reach; shares of levels are soft.

        Raises
        ------
        InvalidValueError
            Entries so great that numbers overflow.
        """
        single = np.float32
        with np.errstate(over="ignore", invalid="ignore"):
            room = (low.astype(single), high.astype(single))
            x = points.astype(single)
            found = generated(self.predictor.layers, self.layers, self.design, x, room=room, xp=np)
        self.predictor.require_calculable(found, points)
        return np.asarray(found, dtype=np.float64)

    def advised(self, who: str, X: pd.DataFrame, target: int | None) -> pd.DataFrame:
        """Return raw rows that each person may reach; those that the predictor places at the target stay.

        Parameters
        ----------
        who
            Who asks.
        X
            Raw rows (n, d).
        target
            Place of a class; None: everyone moves.

        Raises
        ------
        InvalidValueError, InvalidTypeError, UnknownNameError
            Rows that do not fit the space, or hold numbers beyond single precision.
        """
        columns = self.predictor.columns
        coordinates = columns.space.coordinates(X)
        require_within(who, columns.space, coordinates)
        if not len(X):
            return X.copy()
        points = columns.encoded(coordinates)
        made = self.points(points, *columns.room(coordinates))
        whole = np.array([pd.api.types.is_integer_dtype(X[name].dtype) for name in columns.space.names])
        found = columns.legal(made, coordinates, whole=whole)
        if target is not None:
            stays = self.predictor.codes(points) == target
            found[stays] = coordinates[stays]
        return moved_frame(X, columns.space, found, coordinates)

"""What the rivals share: a fitted model, data, and recourse for the rows of a frame, one after another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Final, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.space import FeatureSpace, rows_to_keep, taken
from ceopt.metrics.predictions import predicted
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError
from ceopt.surrogates.black_box import BlackBox
from ceopt.training.raw_recourse import moved_frame, require_within
from ceopt.training.scaled_frame import Floats, ScaledFrame
from ceopt.training.training_frame import place_of

__all__ = ["AbstractRowRecourse"]

#: Rows that a model may be sent for all rows of a frame: the numbers of samples are the limit.
_ANY: Final = 2**31 - 1


class AbstractRowRecourse(ABC):
    """Recourse row by row, in columns from 0 to 1, brought to legal rows as CounterNet's is.

    Parameters
    ----------
    model
        A fitted model, or a function of raw rows to labels.
    data
        Raw rows from which columns and draws are made; those with missing cells are left out with a warning.
    space
        The columns; None: inferred from ``data``.
    """

    def __init__(self, model: Any, data: pd.DataFrame, *, space: FeatureSpace | None = None) -> None:
        who = type(self).__name__
        if isinstance(model, type) or not (hasattr(model, "predict") or callable(model)):
            then = "Give clf, or clf.predict."
            raise InvalidTypeError(who, "a fitted model or a function of rows", f"model is {model!r}", then)
        if not isinstance(data, pd.DataFrame):
            raise InvalidTypeError(who, "a DataFrame as data", f"data is {type(data).__name__}", "Name its columns.")
        data = taken(data, rows_to_keep(who, space, data, word="data"))
        if space is None:
            space = FeatureSpace(infer_features(data, steps=False))
        self.model = model
        self.data = data
        self.columns = ScaledFrame.of(who, space, data)

    @final
    def recourse(self, X: pd.DataFrame, *, target: Any = None) -> pd.DataFrame:
        """Return what people are advised to become, as raw rows that each of them may reach.

        Index, columns and types are those of X. Numbers are on their steps and within their bounds, levels are legal,
        directions are kept, and what is fixed stays as it was given. That the model says the target of a row is not
        promised: a row for which the way led nowhere stays as it is, and the nearest legal row may be on this side.

        Parameters
        ----------
        X
            Raw rows (n, d).
        target
            A label; rows of which the model says so already stay. None: of two classes the one that the model does not
            say.

        Raises
        ------
        InvalidValueError, InvalidTypeError, UnknownNameError
            Rows that do not fit the space; several classes without a target; a target that is no class.
        """
        who = f"{type(self).__name__}.recourse"
        space = self.columns.space
        coordinates = space.coordinates(X)
        require_within(who, space, coordinates)
        if not len(X):
            return X.copy()
        said = self._said(who, X)
        found = coordinates.copy()
        for label, places in self._questions(who, said, target):
            box = self.box(label)
            ready = self._prepared(box)
            room = self.columns.room(coordinates[places])
            points = self.columns.encoded(coordinates[places])
            for row, point, low, high in zip(places, points, *room, strict=True):
                points_of_row = self._advised(ready, X.iloc[[row]], point, low, high)
                found[row] = self._legal(box, points_of_row, coordinates[[row]])
        return moved_frame(X, space, found, coordinates)

    def _legal(self, box: BlackBox, points: Iterable[Floats], own: Floats) -> Floats:
        """Return the first legal row (d,) near points of which the model says the target; else the first, or none."""
        first = None
        for point in points:
            legal = self.columns.legal(point[None], own)
            if first is None:
                first = legal[0]
            if box.favourable(self.columns.frame(legal))[0]:
                return np.asarray(legal[0])
        if first is None:
            return np.asarray(own[0])
        return np.asarray(first)

    def box(self, label: Any) -> BlackBox:
        """Return the model as one that says this label of a raw row, or does not."""
        columns = list(self.data)
        return BlackBox(
            self.model, label, columns=columns, dtypes=self.data.dtypes, max_queries=_ANY, space=self.columns.space
        )

    def _said(self, who: str, X: pd.DataFrame) -> NDArray[Any]:
        return predicted(who, self.model, X[list(self.data)])

    def _questions(self, who: str, said: NDArray[Any], target: Any) -> list[tuple[Any, NDArray[np.intp]]]:
        """Return targets, and the places of the rows that are to get them."""
        if hasattr(self.model, "classes_"):
            known = np.asarray(self.model.classes_)
        else:
            known = np.unique(self._said(who, self.data))
        classes = known.tolist()
        if target is not None:
            label = classes[place_of(who, "target", target, known)]
            return [(label, np.flatnonzero(said != label))]
        if len(classes) != 2:
            but = "target is None"
            then = "Give the class that each row should get."
            raise InvalidValueError(who, f"a target with {len(classes)} classes", but, then)
        return [(other, np.flatnonzero(said == own)) for own, other in (classes, classes[::-1])]

    @abstractmethod
    def _prepared(self, box: BlackBox) -> Any:
        """Return what all rows of a target have in common."""

    @abstractmethod
    def _advised(self, ready: Any, row: pd.DataFrame, point: Floats, low: Floats, high: Floats) -> Iterable[Floats]:
        """Return points (p,) in scaled columns between two others, the best first; none where the way led nowhere.

        Parameters
        ----------
        ready
            Of :meth:`_prepared`.
        row, point
            The raw row, (1, d), and as a point (p,).
        low, high
            The least and the greatest entries that the person may reach, (p,).
        """

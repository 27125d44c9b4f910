"""Raw rows and their labels as what networks are trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.space import FeatureSpace, require_every_label, rows_to_keep, taken
from ceopt.solvers.checks import plain
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.training.predictor_network import Codes
from ceopt.training.scaled_frame import Floats, ScaledFrame

__all__ = ["TrainingFrame", "place_of"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class TrainingFrame:
    """Rows as points, what each person may reach, and classes.

    Parameters
    ----------
    columns
        From raw rows to points.
    points
        The rows (n, p).
    low, high
        The least and the greatest entries that each person may reach, (n, p).
    codes
        Place of each row's label among the classes, (n,).
    classes
        The labels (K,), ascending.
    """

    columns: ScaledFrame
    points: Floats
    low: Floats
    high: Floats
    codes: Codes
    classes: NDArray[Any]

    @classmethod
    def of(
        cls, who: str, space: FeatureSpace | None, X: pd.DataFrame, y: Sequence[Any] | pd.Series[Any]
    ) -> TrainingFrame:
        """Return the rows of a frame with their labels.

        Raises
        ------
        InvalidTypeError, InvalidValueError, UnknownNameError
            No frame, columns that are not those of the space or have no width; labels that are no classes, fewer than
            two of them, missing, or not one a row. Rows with missing cells are left out with a warning.
        """
        if not isinstance(X, pd.DataFrame):
            but = f"X is {type(X).__name__}"
            raise InvalidTypeError(who, "a DataFrame of raw columns", but, "Put the rows in a frame with names.")
        labels = _labels(who, y, len(X))
        kept = rows_to_keep(who, space, X, word="X", y=y)
        X = taken(X, kept)
        classes, codes = _classes(who, taken(labels, kept))
        if space is None:
            space = FeatureSpace(infer_features(X, steps=False))
        columns = ScaledFrame.of(who, space, X)
        coordinates = space.coordinates(X)
        return cls(columns, columns.encoded(coordinates), *columns.room(coordinates), codes, classes)


def _labels(who: str, y: Any, n_rows: int) -> NDArray[Any]:
    """Return the labels (n,), or refuse what is not one for each row."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise InvalidValueError(who, "one label a row as y", f"its shape is {labels.shape}", "Give a column.")
    if len(labels) != n_rows:
        but = f"X has {n_rows} and y has {len(labels)}"
        raise InvalidValueError(who, "as many labels as rows", but, "Give the label of each row.")
    require_every_label(who, y)
    return labels


def _classes(who: str, labels: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
    """Return the classes and the place of each label among them."""
    given = [plain(label) for label in labels.tolist()]
    kinds = sorted({type(label).__name__ for label in given})
    if len(kinds) > 1:
        but = f"y holds {' and '.join(kinds)}"
        raise InvalidTypeError(who, "labels of one type", but, "Make all of them one.")
    if labels.dtype == object and kinds != ["str"]:
        labels = np.array(given)  # truth values and whole numbers in a column of objects
    if len(labels) and not _are_classes(labels):
        then = "Cut a number into classes first, and write what is no number as text."
        raise InvalidValueError(who, "labels that are classes", f"y holds values such as {given[0]!r}", then)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        listed = ", ".join(map(repr, classes.tolist())) or "none"
        raise InvalidValueError(who, "rows of at least two classes", f"y has {listed} alone", "Give rows of another.")
    return classes, codes


def _are_classes(labels: NDArray[Any]) -> bool:
    """Tell whether labels are few values, and not numbers that are measured, infinities or bytes."""
    if labels.ndim != 1 or labels.dtype.kind == "S":
        return False
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        return False
    return type_of_target(labels) in {"binary", "multiclass"}


def place_of(who: str, name: str, label: Any, classes: NDArray[Any]) -> int:
    """Return the place of one label among classes.

    Raises
    ------
    InvalidTypeError
        Several labels, as an array or a column.
    UnknownNameError
        A label that is no class.
    """
    if isinstance(label, pd.Series | pd.DataFrame | pd.Index | list | tuple | dict | set) or np.ndim(label):
        but = f"{name} is {type(label).__name__}"
        raise InvalidTypeError(who, f"one label as {name}", but, "Ask for the rows of each label apart.")
    known = classes.tolist()
    if isinstance(label, np.generic):
        label = label.item()
    for place, own in enumerate(known):
        if own == label and isinstance(own, bool) == isinstance(label, bool):
            return place
    raise UnknownNameError.among(who, name, label, known, quoted=True)

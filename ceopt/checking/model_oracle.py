"""The user's own model on raw frames: the only thing that verification trusts."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.checking.tree_oracle import TreeOracle
from ceopt.formulations.predictors.read import open_model
from ceopt.formulations.predictors.read.model_input import given, is_fitted, names_of
from ceopt.formulations.predictors.representation.decision_rule import AbstractRepresentation
from ceopt.formulations.predictors.representation.predictor import Predictor
from ceopt.formulations.space.dtypes import plain
from ceopt.formulations.space.encoding import Encoding
from ceopt.formulations.space.space import FeatureSpace
from ceopt.formulations.targets import DisagreementOf, ProbabilityOf, Target
from ceopt.solvers.errors import UnknownNameError, UnsupportedModelError

__all__ = ["ModelOracle"]


@final
class ModelOracle:
    """Ask a fitted model what it says of raw rows, exactly as its user would.

    A model that was fitted on a frame gets a frame with its columns in its order. One that was fitted on an array gets
    ``frame.to_numpy()`` in the order of the space: float64 if every column is a number or bool, else objects. A
    representation from plain arrays gets the space's coordinates as :meth:`Encoding.identity` lays them out.

    Parameters
    ----------
    model
        A fitted estimator, pipeline or search object with ``predict``, or a representation.
    space
        The raw columns.

    Attributes
    ----------
    labels
        The classes in the model's own order as Python scalars; None for a regressor.

    Raises
    ------
    UnsupportedModelError
        Not a model: a path, a class, an object without ``predict``; a model that is not fitted or has several outputs.

    Examples
    --------
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("income", kind="continuous")])
    >>> oracle = ModelOracle(Affine([1.0], -3.0, labels=("bad", "good")), space)
    >>> oracle.predict(space.frame([{"income": 2.0}, {"income": 4.0}])).tolist()
    ['bad', 'good']
    """

    __slots__ = ("_encoding", "labels", "model", "space")

    def __init__(self, model: Any, space: FeatureSpace) -> None:
        if isinstance(model, Predictor):
            model = model.model
        model = open_model(model)
        self.model = model
        self.space = space
        self._encoding: Encoding | None = None
        if isinstance(model, AbstractRepresentation):
            self._encoding = Encoding.identity(space)
            self.labels = model.labels
            return
        _require_fitted(model)
        for name in names_of(model, space) or ():
            if name not in space:
                raise UnsupportedModelError(
                    "The model", "every column that it was fitted on", f"column {name!r} is not in the space",
                    "Add it to the space.",
                )  # fmt: skip
        self.labels = _labels_of(model)

    def predict(self, frame: pd.DataFrame) -> NDArray[Any]:
        """Return the model's labels or values for raw rows (n, d), shape (n,)."""
        if self._encoding is not None:
            return np.asarray(self.model.predict(self._matrix(frame)))
        return np.asarray(self.model.predict(given(self.model, self.space, frame))).reshape(len(frame))

    def probability(self, frame: pd.DataFrame, label: Any) -> NDArray[np.float64]:
        """Return the model's probability of a label for raw rows, shape (n,).

        Raises
        ------
        UnsupportedModelError
            The model gives no probabilities.
        UnknownNameError
            The label is not one of its classes.
        """
        if self._encoding is not None:
            kind = self.model.probability
        else:
            kind = hasattr(self.model, "predict_proba")
        if not kind:
            raise UnsupportedModelError(
                "A probability", "a model with predict_proba", f"{type(self.model).__name__} has none",
                "Ask for the label instead.",
            )  # fmt: skip
        if self.labels is None or label not in self.labels:
            raise UnknownNameError.among("target", "class of the model", label, self.labels or ())
        position = self.labels.index(label)
        if self._encoding is None:
            return np.asarray(self.model.predict_proba(given(self.model, self.space, frame)), dtype=np.float64)[
                :, position
            ]
        scores = self.model.score(self._matrix(frame))
        return np.asarray(self.model.head.of_position(scores, position), dtype=np.float64)

    def meets(self, frame: pd.DataFrame, target: Target) -> NDArray[np.bool_]:
        """Return whether the model's own decision for each raw row meets a target in checked form, shape (n,)."""
        return self.judge(frame, target)[1]

    def judge(self, frame: pd.DataFrame, target: Target) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return predictions and whether they meet the target, with one call of ``predict`` for all rows."""
        predicted = self.predict(frame)
        match target:
            case ProbabilityOf():
                return predicted, self.probability(frame, target.labels[target.position]) >= target.at_least
            case DisagreementOf():
                said = self.tree_oracle().predict(frame)
                agree = np.sum([target.wanted.holds(one) for one in said], axis=0)
                return predicted, agree >= target.needed(len(said))
            case _:
                return predicted, target.holds(predicted)

    def tree_oracle(self) -> TreeOracle:
        """Return the model's own trees, to be asked each alone, or refuse a model that is not made of such."""
        return TreeOracle(self.model, self.space)

    def _matrix(self, frame: pd.DataFrame) -> NDArray[Any]:
        assert self._encoding is not None  # noqa: S101 - only representations come here
        return self._encoding.matrix(self.space.coordinates(frame))


def _require_fitted(model: Any) -> None:
    but = ""
    if isinstance(model, type):
        but = f"{model.__name__} is a class"
        then = "Give an object that was fitted."
    elif not hasattr(model, "predict"):
        but = f"{type(model).__name__} has no predict"
        then = "Give a fitted classifier, regressor or pipeline (a search object needs refit=True)."
    elif hasattr(model, "__sklearn_tags__") and not is_fitted(model):
        but = f"{type(model).__name__} is not fitted"
        then = "Call fit first."
    if but:
        raise UnsupportedModelError("The model", "a fitted model", but, then)


def _labels_of(model: Any) -> tuple[Any, ...] | None:
    classes = getattr(model, "classes_", None)
    if classes is None:
        return None
    if isinstance(classes, list):
        raise UnsupportedModelError(
            "The model", "one output", f"{type(model).__name__} has {len(classes)}", "Fit one model per output."
        )
    return tuple(plain(label) for label in np.asarray(classes).tolist())

"""The user's own trees, each asked alone: what a limit on their disagreement is checked by."""

from __future__ import annotations

from typing import Any, Final, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.predictors.read.model_input import given
from ceopt.formulations.predictors.representation import AbstractRepresentation
from ceopt.formulations.predictors.ties import forest_of
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.encoding import Encoding
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import UnsupportedModelError

__all__ = ["TreeOracle"]

_TREES: Final = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")
_FORESTS: Final = (
    "BaggingClassifier", "BaggingRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor", "RandomForestClassifier",
    "RandomForestRegressor",
)  # fmt: skip


@final
class TreeOracle:
    """Ask each tree of a fitted model what it says of raw rows.

    Parameters
    ----------
    model
        A forest, bagged trees or a single tree of scikit-learn, also behind a pipeline or in a search object; or a
        representation of such from plain arrays.
    space
        The raw columns.

    Raises
    ------
    UnsupportedModelError
        The model is not made of trees that decide each alone.
    """

    __slots__ = ("_forest", "_model", "_space", "_steps")

    def __init__(self, model: Any, space: FeatureSpace) -> None:
        self._model = model
        self._space = space
        self._steps = []
        self._forest = model
        if isinstance(model, AbstractRepresentation):
            forest_of(model)
            return
        while hasattr(self._forest, "best_estimator_") or hasattr(self._forest, "steps"):
            if hasattr(self._forest, "best_estimator_"):
                self._forest = self._forest.best_estimator_
                continue
            self._steps += [self._forest[:-1]] if len(self._forest.steps) > 1 else []
            self._forest = self._forest.steps[-1][1]
        name = type(self._forest).__name__
        ours = type(self._forest).__module__.partition(".")[0] == "sklearn"
        if not ours or name not in {*_TREES, *_FORESTS}:
            raise UnsupportedModelError(
                "Disagreement", "a forest, bagged trees or a single tree of scikit-learn", f"the model is a {name}",
                "Ask for the model's own decision.",
            )  # fmt: skip

    def predict(self, frame: pd.DataFrame) -> list[NDArray[Any]]:
        """Return what each tree says of raw rows (n, d): labels of the model, or values, (n,) each."""
        forest = self._forest
        if isinstance(forest, TreeEnsemble):
            matrix = Encoding.identity(self._space).matrix(self._space.coordinates(frame))
            leaves = forest.apply(matrix)
            scores = [tree.value[nodes] for tree, nodes in zip(forest.trees, leaves.T, strict=True)]
            return [forest.head.decide(one[:, 0] if forest.n_scores == 1 else one) for one in scores]
        matrix = given(self._model, self._space, frame)
        for steps in self._steps:
            matrix = steps.transform(matrix)
        if type(forest).__name__ in _TREES:
            return [np.asarray(forest.predict(matrix))]
        matrix = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)
        columns = getattr(forest, "estimators_features_", [slice(None)] * len(forest.estimators_))
        said = [
            np.asarray(tree.predict(matrix[:, seen])) for tree, seen in zip(forest.estimators_, columns, strict=True)
        ]
        # A member of a classifier was fitted on the positions of the labels.
        labels = getattr(forest, "classes_", None)
        return said if labels is None else [labels[one.astype(np.intp)] for one in said]

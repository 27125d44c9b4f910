"""The embedding error: the model in the program beside the model itself, at the current values of the variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.predictors.embed.embedded import AbstractEmbedded
from ceopt.formulations.predictors.read import open_model
from ceopt.formulations.predictors.read.model_input import given
from ceopt.formulations.predictors.representation.decision_rule import AbstractRepresentation
from ceopt.solvers.checks import plain
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["EmbeddingError", "embedding_error"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class EmbeddingError:
    """What :func:`embedding_error` found; ``float()`` of it is the larger of ``scores`` and ``values``.

    Parameters
    ----------
    scores
        Largest absolute difference between the block's scores and those of the representation that was read.
    values
        Largest absolute difference between what follows from the block's scores and what the library's own model says:
        its value, or its probabilities where the scores give some. None where there is nothing to compare: a classifier
        without them, or a representation from plain arrays.
    agrees
        Whether the block's scores decide as the library's own model does (a regressor's always do).
    prediction
        What the library's own model says.
    row
        The row that was asked about, in raw units.
    """

    scores: float
    values: float | None
    agrees: bool
    prediction: Any
    row: pd.DataFrame

    def __float__(self) -> float:
        return max(self.scores, self.values or 0.0)


def embedding_error(block: AbstractEmbedded) -> EmbeddingError:
    """Compare a block's scores, at the current values of its variables, with the library's on the same raw row.

    The row is that of the block's columns: the caller's own variables as they stand, whole ones rounded
    (:class:`~ceopt.formulations.Columns`), or a person's decoded answer (:class:`~ceopt.formulations.Factual`).

    Returns
    -------
    EmbeddingError
        ``float(embedding_error(block))`` is 0 up to rounding where the block says what the library says.

    Raises
    ------
    InvalidTypeError
        ``block`` is no embedded model.
    InvalidValueError
        Its variables, or those of a column that it reads, have no values yet.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import embed, embedding_error
    >>> from ceopt.formulations.predictors import TreeEnsemble
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> from ceopt.solvers import solve
    >>> space = FeatureSpace([Feature("loan", kind="continuous")])
    >>> stump = {"feature": 0, "threshold": 3.0, "left": {"value": 1.0}, "right": {"value": 0.2}}
    >>> m = pyo.ConcreteModel()
    >>> m.loan = pyo.Var(bounds=(0, 9))
    >>> m.repaid = embed(TreeEnsemble([stump]), {"loan": m.loan}, space=space)
    >>> m.gain = pyo.Objective(expr=m.loan + 10 * m.repaid.score, sense=pyo.maximize)
    >>> print(solve(m).status, round(m.loan.value, 3), float(embedding_error(m.repaid)))
    optimal 3.0 0.0
    """
    if not isinstance(block, AbstractEmbedded):
        raise InvalidTypeError(
            "embedding_error", "a block that embed made", f"it got {type(block).__name__}", "Pass m.predictor."
        )
    predictor = block.predictor
    core = block.predictor.core
    point = block.x.decoded()
    coordinates = np.array([[point[name] for name in predictor.space.names]])
    theirs = predictor.score(coordinates)
    ours = _scores(block, theirs.shape)
    row = predictor.space.frame([point])
    model = open_model(predictor.model)
    scores = float(np.abs(ours - theirs).max())
    decided = core.head.decide(ours)[0]
    if isinstance(model, AbstractRepresentation):
        said = core.head.decide(theirs)[0]
        values = None
    else:
        asked = given(model, predictor.space, row)
        said = np.asarray(model.predict(asked)).reshape(-1)[0]
        values = None
        if core.labels is None:
            values = float(abs(decided - said))
        elif core.probability is not None and hasattr(model, "predict_proba"):
            shares = [core.head.of_position(ours, k)[0] for k in range(len(core.labels))]
            values = float(np.abs(np.asarray(model.predict_proba(asked))[0] - shares).max())
    return EmbeddingError(scores, values, core.labels is None or bool(decided == said), plain(said), row)


def _scores(block: AbstractEmbedded, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the block's scores at the current values, in the shape of the representation's."""
    count = block.predictor.core.n_scores
    forms = []
    for k in range(count):
        forms.append(block.combine([1.0 if j == k else 0.0 for j in range(count)]))
    without = next((v for form in forms for _, v in form.terms if v.value is None), None)
    if without is not None:
        raise InvalidValueError(
            "embedding_error", "values of the block's variables", f"{without.name} has none", "Solve the model first."
        )
    return np.array([form.value() for form in forms]).reshape(shape)

"""Readers: a fitted model of some library becomes a representation with that library's exact semantics.

One file per library, named as the library is imported (``sklearn.py`` reads what ``import sklearn`` fits). It has one
function, ``read_estimator(estimator, dtype)``, and is imported only when a model of that library is given, so another
library is another file and no edit here.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Any

from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.read.pipeline import encode, split
from ceopt.formulations.predictors.representation import Affine, Representation, TreeEnsemble
from ceopt.formulations.space.encoding import Encoding
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import UnsupportedModelError

__all__ = ["read"]


def read(model: Any, space: FeatureSpace) -> Predictor:
    """Read a fitted model over the raw columns of a space.

    Columns are matched by name if the model was fitted on a frame, by position in the space's order if on an array.
    A representation from plain arrays is taken as it is, over the columns in the space's order.

    Parameters
    ----------
    model
        A fitted estimator, pipeline or search object of a library that has a reader, or a representation.
    space
        The raw columns.

    Returns
    -------
    Predictor
        Whose matrix equals the pipeline's own on probe rows of the space, bit for bit, at every level of every column.

    Raises
    ------
    UnsupportedModelError
        The model, a step or an option has no exact representation; it is not fitted; its columns are not the space's.
    """
    if isinstance(model, Affine | TreeEnsemble):
        return Predictor(model, Encoding.identity(space), model, space)
    steps, estimator = split(model)
    library = _library(estimator)
    encoding = encode(steps, estimator, space)
    core: Representation = library.read_estimator(estimator, str(encoding.dtype))
    return Predictor(core, encoding, model, space)


def _library(estimator: Any) -> ModuleType:
    root = type(estimator).__module__.partition(".")[0]
    name = f"{__name__}.{root}"
    module = importlib.import_module(name) if importlib.util.find_spec(name) else None
    if module is None or not hasattr(module, "read_estimator"):
        raise UnsupportedModelError(
            "The model", "a fitted estimator of a library that ceopt reads, or a representation",
            f"it is {type(estimator).__name__} of module {type(estimator).__module__}",
            "Give a scikit-learn estimator or pipeline, or ceopt.formulations.predictors.Affine or TreeEnsemble.",
        )  # fmt: skip
    return module

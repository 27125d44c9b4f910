"""The input of a fitted model: raw rows, given exactly as its user would give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from ceopt.formulations.space.encoding import Encoding

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["OVER_FITTED", "fitted_names", "given", "names_of", "takes_numbers"]


#: What predicts without a fit of its own, over a model that was fitted.
OVER_FITTED: Final = "FixedThresholdClassifier"


def names_of(model: Any, space: FeatureSpace) -> list[str] | None:
    """Return the columns that a model was fitted on, if it was fitted on a frame."""
    names = fitted_names(model, space)
    if names is None and hasattr(model, "best_estimator_"):
        return names_of(model.best_estimator_, space)
    if names is None and type(model).__name__ == OVER_FITTED:
        return names_of(model.estimator, space)
    if names is None and hasattr(model, "steps"):  # a pipeline asks its first step, which may be "passthrough"
        for _, step in model.steps:
            if step is not None and not isinstance(step, str):
                return names_of(step, space)
    return names


def fitted_names(model: Any, space: FeatureSpace) -> list[str] | None:
    """Return the columns that an object says that it was fitted on, as the space writes them; None for an array.

    LightGBM writes blanks as underscores, and some versions call the columns of an array Column_0, Column_1, ...
    """
    if not hasattr(model, "feature_names_in_"):
        return None
    names = [str(name) for name in model.feature_names_in_]
    if names == [f"Column_{place}" for place in range(len(names))] and not any(name in space for name in names):
        return None
    written = {name.replace(" ", "_"): name for name in space.names}
    return [name if name in space else written.get(name, name) for name in names]


def given(model: Any, space: FeatureSpace, frame: pd.DataFrame) -> Any:
    """Return what a model takes for raw rows: the columns that it knows, or an array in the order of the space.

    The array is float64 if every column is a number or bool, else of objects. A model that ``takes_codes`` gets the
    columns as :meth:`Encoding.identity` codes them.
    """
    if getattr(model, "takes_codes", False):
        return Encoding.identity(space).matrix(space.coordinates(frame))
    names = names_of(model, space)
    if names is not None:
        return _without_strangers(frame if names == frame.columns.tolist() else frame[names])
    frame = frame[list(space.names)]
    numeric = all(pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes)  # bool is numeric here
    return frame.to_numpy(dtype=np.float64 if numeric else object)


def takes_numbers(model: Any, space: FeatureSpace) -> bool:
    """Tell whether what a model is given for raw rows is their coordinates: an array of continuous columns."""
    return space.is_continuous and not getattr(model, "takes_codes", False) and names_of(model, space) is None


def _without_strangers(frame: pd.DataFrame) -> pd.DataFrame:
    """Drop categories that no row has: XGBoost fails on a dtype with a category that it was not trained on."""
    names = [name for name, dtype in frame.dtypes.items() if isinstance(dtype, pd.CategoricalDtype)]
    return (
        frame
        if not names
        else frame.assign(**{str(name): frame[name].cat.remove_unused_categories() for name in names})
    )

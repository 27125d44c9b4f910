"""The columns that an ensemble gives to one of its members."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.read.pipeline.trace import Trace
from ceopt.formulations.space.encoding import Column

__all__ = ["ColumnSubset"]


@final
class ColumnSubset:
    """A step that does what BaggingClassifier and AdaBoostClassifier do: make an array and take columns of it.

    Parameters
    ----------
    ensemble
        The fitted ensemble; it is given the columns that this step is.
    places
        Columns of the member, which may occur more than once.
    """

    def __init__(self, ensemble: Any, places: NDArray[np.intp]) -> None:
        self.n_features_in_ = int(ensemble.n_features_in_)
        if hasattr(ensemble, "feature_names_in_"):
            self.feature_names_in_ = ensemble.feature_names_in_
        self.places = np.asarray(places, dtype=np.intp)

    def transform(self, data: Any) -> Any:
        """Return the member's columns of the array."""
        from sklearn.utils import check_array

        array = check_array(data, accept_sparse=["csr", "csc"], dtype=None, ensure_all_finite=False)
        return array[:, self.places]

    def columns(self, before: Trace) -> list[Column]:
        """Return what the member's columns are."""
        return [before.columns[place] for place in self.places]

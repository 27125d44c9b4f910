"""The same questions to dice-ml (scikit-learn back end): random, genetic and k-d tree, with its defaults."""

from __future__ import annotations

import random
from typing import Any, final

import numpy as np
import pandas as pd
from shared.dice import PRECISION, limited, quiet

from leofante_potyka.protocol import Floats, Split

__all__ = ["METHODS", "Dice"]

METHODS = ("random", "genetic", "kdtree")
_LABEL = "label"


@final
class _OnFrames:
    """The network for frames, as dice-ml hands them on."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.classes_ = model.classes_

    def predict(self, X: Any) -> Any:
        return self._model.predict(np.asarray(X, dtype=float))

    def predict_proba(self, X: Any) -> Any:
        return self._model.predict_proba(np.asarray(X, dtype=float))


@final
class Dice:
    """dice-ml on scaled columns, as in the paper.

    Parameters
    ----------
    split
        Its training part.
    model
        A fitted network with ``predict_proba``.
    """

    def __init__(self, split: Split, model: Any) -> None:
        import dice_ml

        self.columns = list(split.columns)
        frame = pd.DataFrame(split.train, columns=self.columns).assign(**{_LABEL: split.labels})
        data = dice_ml.Data(
            dataframe=frame,
            continuous_features=self.columns,
            outcome_name=_LABEL,
            continuous_features_precision=dict.fromkeys(self.columns, PRECISION),
        )
        backend = dice_ml.Model(model=_OnFrames(model), backend="sklearn")
        self.explainers = {method: dice_ml.Dice(data, backend, method=method) for method in METHODS}

    def ask(
        self, method: str, row: Floats, *, seed: int, n: int = 5, limit_s: int | None = None
    ) -> tuple[str, Floats, Floats]:
        """Return how it ended, its answers (k, d), and those before its step for sparsity.

        The first are what dice-ml shows and exports. How it ended: "answered", "none", "time-out", or the error's name.
        """
        nothing = np.zeros((0, len(row)))
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - dice-ml draws from it
        try:
            with quiet(), limited(limit_s):
                found = self.explainers[method].generate_counterfactuals(
                    pd.DataFrame([row], columns=self.columns), total_CFs=n, desired_class="opposite"
                )
        except TimeoutError:
            return "time-out", nothing, nothing
        except Exception as error:  # noqa: BLE001 - whatever another library raises is its answer
            return type(error).__name__, nothing, nothing
        example = found.cf_examples_list[0]
        raw, shown = (
            nothing if frame is None or not len(frame) else frame[self.columns].to_numpy(dtype=float)
            for frame in (example.final_cfs_df, example.final_cfs_df_sparse)
        )
        shown = shown if len(shown) else raw
        return ("answered" if len(shown) else "none"), shown, raw

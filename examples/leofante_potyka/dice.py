"""The same questions to dice-ml (scikit-learn back end): random, genetic and k-d tree, with its defaults."""

from __future__ import annotations

import contextlib
import io
import random
import signal
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from types import FrameType
from typing import Any, final

import numpy as np
import pandas as pd

from leofante_potyka.protocol import Floats, Split

__all__ = ["METHODS", "Dice", "is_installed", "limited", "quiet"]

METHODS = ("random", "genetic", "kdtree")
#: Decimals of each column, which dice-ml would else take from the most frequent value: 17 for a scaled column, and its
#: search in steps of that size then takes minutes a query.
PRECISION = 3
_LABEL = "label"


def is_installed() -> bool:
    """Whether dice-ml can be imported."""
    return find_spec("dice_ml") is not None


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


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep its bars and warnings back."""
    with (
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def limited(seconds: int | None) -> Iterator[None]:
    """Raise TimeoutError after so many seconds of the clock, where the system has alarms."""
    if seconds is None or not hasattr(signal, "SIGALRM"):
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

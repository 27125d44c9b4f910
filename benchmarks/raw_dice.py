"""dice-ml's three methods for people in raw units, with what the data's schema says that nobody can change."""

from __future__ import annotations

import random
import sys
from typing import Any, final

import common
import numpy as np
import pandas as pd

sys.path.insert(0, str(common.ROOT / "examples" / "papers"))  # how dice-ml is asked is the examples'

from shared.dice import limited, quiet

__all__ = ["METHODS", "RawDice"]

METHODS = ("random", "genetic", "kdtree")
_LABEL = "label"


@final
class _OnFrames:
    """The pipeline for frames as dice-ml hands them on: levels as text."""

    def __init__(self, dice: RawDice, model: Any) -> None:
        self._dice = dice
        self._model = model
        self.classes_ = model.classes_

    def predict(self, X: Any) -> Any:
        return self._model.predict(self._dice.raw(X))

    def predict_proba(self, X: Any) -> Any:
        return self._model.predict_proba(self._dice.raw(X))


@final
class RawDice:
    """dice-ml (scikit-learn back end, its defaults) on the columns of a data set.

    Parameters
    ----------
    task
        The data; what its schema calls immutable is held, what can only rise has such a range.
    model
        A fitted pipeline with ``predict_proba``.
    """

    def __init__(self, task: common.Task, model: Any) -> None:
        import dice_ml

        self.schema = common.schema_of(task.bunch.name)
        self.dtypes = task.train.dtypes
        self.numbers = [name for name, column in self.schema.items() if "levels" not in column]
        self.levels = {
            name: {str(level): level for level in column["levels"]}
            for name, column in self.schema.items()
            if "levels" in column
        }
        self.vary = [name for name, column in self.schema.items() if not column.get("immutable")]
        self.target = task.target
        data = dice_ml.Data(
            dataframe=self.as_text(task.train).assign(**{_LABEL: task.labels.to_numpy()}),
            continuous_features=self.numbers,
            outcome_name=_LABEL,
        )
        backend = dice_ml.Model(model=_OnFrames(self, model), backend="sklearn")
        with quiet():
            self.explainers = {method: dice_ml.Dice(data, backend, method=method) for method in METHODS}

    def as_text(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return rows with their levels as text: dice-ml takes numbers for numbers."""
        return rows[list(self.schema)].assign(**{name: rows[name].astype(str).astype(object) for name in self.levels})

    def raw(self, rows: Any) -> pd.DataFrame:
        """Return rows of dice-ml in raw units and the data's own dtypes."""
        frame = pd.DataFrame(rows, columns=list(self.schema))
        for name in self.schema:
            values = [self.levels[name][str(value)] for value in frame[name]] if name in self.levels else frame[name]
            frame[name] = pd.Series(list(values), index=frame.index).astype(self.dtypes[name])
        return frame

    def reach(self, row: pd.DataFrame) -> dict[str, list[Any]]:
        """Return the ranges of the columns that can only rise."""
        found: dict[str, list[Any]] = {}
        for name, column in self.schema.items():
            home = row[name].iloc[0]
            if column.get("monotone") != "increasing" or column.get("immutable"):
                continue
            if "levels" in column:
                levels = column["levels"]
                found[name] = [str(level) for level in levels[levels.index(home) :]]
            else:
                found[name] = [home, max(column["upper"], home)]
        return found

    def ask(self, method: str, row: pd.DataFrame, *, seed: int, n: int, limit_s: int) -> tuple[str, pd.DataFrame]:
        """Return how it ended ("answered", "none", "time-out" or the error's name), and its answers."""
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - dice-ml draws from it
        nothing = row.iloc[:0]
        try:
            with quiet(), limited(limit_s):
                found = self.explainers[method].generate_counterfactuals(
                    self.as_text(row),
                    total_CFs=n,
                    desired_class=self.target,
                    features_to_vary=self.vary,
                    permitted_range=self.reach(row),
                )
            example = found.cf_examples_list[0]
            frames = [frame for frame in (example.final_cfs_df_sparse, example.final_cfs_df) if frame is not None]
            shown = next((frame for frame in frames if len(frame)), None)
            answers = nothing if shown is None else self.raw(shown[list(self.schema)].reset_index(drop=True))
        except TimeoutError:
            return "time-out", nothing
        except Exception as error:  # noqa: BLE001 - whatever another library raises is its answer
            return type(error).__name__, nothing
        return ("answered" if len(answers) else "none"), answers

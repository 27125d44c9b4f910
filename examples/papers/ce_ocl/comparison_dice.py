"""The same questions to dice-ml (genetic, its defaults), on scaled columns as in the paper."""

from __future__ import annotations

import random
import time
from typing import Any, final

import numpy as np
import pandas as pd
from shared.dice import PRECISION, limited, quiet

from ce_ocl.comparison_asking import ANSWERS, LIMIT_S, measured
from ce_ocl.comparison_cases import Case, encoded

__all__ = ["Dice"]

_LABEL = "label"


@final
class _OnFrames:
    """The estimator for frames as dice-ml hands them on: scaled numbers, categories as they are."""

    def __init__(self, dice: Dice, estimator: Any) -> None:
        self._dice, self._estimator = dice, estimator
        self.classes_ = estimator.classes_

    def predict(self, X: Any) -> Any:
        return self._estimator.predict(encoded(self._dice.case, self._dice.raw(X)))

    def predict_proba(self, X: Any) -> Any:
        return self._estimator.predict_proba(encoded(self._dice.case, self._dice.raw(X)))


@final
class Dice:
    """dice-ml for one model.

    Parameters
    ----------
    case
        The data; what nobody can change is held.
    model
        A fitted pipeline of encoder and an estimator with ``predict_proba``.
    """

    def __init__(self, case: Case, model: Any) -> None:
        import dice_ml

        self.case, self.model = case, model
        self.scaler = case.encoder.named_transformers_["number"]
        data = dice_ml.Data(
            dataframe=self.scaled(case.data[case.train]).assign(**{_LABEL: case.labels[case.train]}),
            continuous_features=case.numbers,
            outcome_name=_LABEL,
            continuous_features_precision=dict.fromkeys(case.numbers, PRECISION),
        )
        backend = dice_ml.Model(model=_OnFrames(self, model.named_steps["model"]), backend="sklearn")
        with quiet():
            self.explainer = dice_ml.Dice(data, backend, method="genetic")

    def ask(self, person: pd.DataFrame, seed: int) -> dict[str, Any]:
        """Ask for a person; what another library raises is its answer."""
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - dice-ml draws from it
        began, found, status = time.process_time(), person.iloc[:0], "none"
        try:
            with quiet(), limited(int(LIMIT_S)):
                frame = (
                    self.explainer.generate_counterfactuals(
                        self.scaled(person),
                        total_CFs=ANSWERS,
                        desired_class=1,
                        features_to_vary=[name for name in self.case.data if name not in self.case.fixed],
                    )
                    .cf_examples_list[0]
                    .final_cfs_df
                )
        except TimeoutError:
            status = "time-out"
        except Exception as error:  # noqa: BLE001 - see above
            status = type(error).__name__
        else:
            if frame is not None and len(frame):
                found, status = self._like(person, self.raw(frame[list(self.case.data)])), "answered"
        spent = time.process_time() - began
        return {"status": status, "gap": None, "cpu_s": spent, **measured(self.case, self.model, person, found)}

    def scaled(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return rows with their numbers scaled to [0, 1]."""
        numbers = self.case.numbers
        return rows.assign(**dict(zip(numbers, self.scaler.transform(rows[numbers]).T, strict=True)))

    def raw(self, rows: Any) -> pd.DataFrame:
        """Return scaled rows in raw units."""
        frame, numbers = pd.DataFrame(rows, columns=list(self.case.data)), self.case.numbers
        values = (frame[numbers].to_numpy(dtype=float) - self.scaler.min_) / self.scaler.scale_
        return frame.assign(**dict(zip(numbers, values.T, strict=True)))

    def _like(self, person: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
        """Take the person's own value where an answer differs by rounding only: dice-ml rounds whom it explains."""
        numbers = self.case.numbers
        own = person[numbers].to_numpy(dtype=float)
        near = np.abs(rows[numbers].to_numpy() - own) * self.scaler.scale_ <= 0.51 * 10.0**-PRECISION
        return rows.assign(**dict(zip(numbers, np.where(near, own, rows[numbers].to_numpy()).T, strict=True)))

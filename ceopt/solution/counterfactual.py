"""One verified answer: values in the person's own columns and units, cost, prediction and what is proved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import pandas as pd

from ceopt.formulations.space.dtypes import plain
from ceopt.solution.copies import hands_out_copies

__all__ = ["Counterfactual", "scalars"]


@final
@hands_out_copies("values", "actions", "frame")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counterfactual:
    """One verified answer. What it hands out is a copy: to write into it changes no answer.

    Parameters
    ----------
    values
        The answer in raw units: a one-row frame, or a Series. Read back as a Series of the columns' own scalars;
        ``frame`` is the row in the columns' own dtypes.
    cost
        Recomputed in plain arithmetic from the values.
    prediction
        What the user's own model says of the values.
    score, slack
        The model's score (by label where it has several), and by how much the decision meets the target.
    changed
        Names of the columns that leave the factual.
    verified
        Whether the user's own model and every rule agree.
    rank
        1 for the best.
    bound, gap
        Proved least cost among answers of this rank, and ``(cost - bound) / max(|cost|, 1e-12)``.
    actions
        Interventions by column, under a causal model.
    cluster
        Which hull of a clustered data manifold holds it.
    way
        How it was found for a black box: "surrogate", "grown" or "boundary"; None where the model itself is stated.
    """

    values: pd.Series[Any]
    cost: float
    prediction: Any
    score: Any
    slack: float | None
    changed: tuple[str, ...]
    verified: bool
    rank: int
    bound: float | None
    gap: float | None
    actions: pd.Series[Any] | None = None
    cluster: int | None = None
    way: str | None = None
    frame: pd.DataFrame = field(init=False, repr=False)

    def __post_init__(self) -> None:
        frame: Any = self.values
        if isinstance(frame, pd.Series):
            frame = pd.DataFrame({name: [value] for name, value in frame.items()})
        object.__setattr__(self, "frame", frame.reset_index(drop=True))
        object.__setattr__(self, "values", scalars(frame))
        object.__setattr__(self, "changed", tuple(self.changed))
        object.__setattr__(self, "prediction", plain(self.prediction))

    @property
    def listed(self) -> tuple[str, ...]:
        """The columns that change, and those that an intervention holds where they are, in the row's order."""
        listed = []
        for name in self.values.index:
            is_action = self.actions is not None and name in self.actions.index
            if is_action or name in self.changed:
                listed.append(name)
        return tuple(listed)

    def why(self, name: str) -> str:
        """Return whether a column that is listed is an "action" or, under a causal model, a "consequence"."""
        if self.actions is None or name in self.actions.index:
            return "action"
        return "consequence"

    def __repr__(self) -> str:
        return f"<Counterfactual {self.rank}: {', '.join(self.changed)}; cost {self.cost:.6g}, {self.prediction!r}>"


def scalars(frame: pd.DataFrame) -> pd.Series[Any]:
    """Return a one-row frame as a Series of each column's own scalar (nothing is widened to a common dtype)."""
    if all(dtype == np.float64 for dtype in frame.dtypes):  # column by column takes milliseconds where there are many
        if isinstance(frame.columns.dtype, pd.StringDtype):
            index: Any = frame.columns.rename(None)
        else:
            index = [str(name) for name in frame.columns]
        return pd.Series(frame.to_numpy()[0].tolist(), index=index, dtype=object)
    return pd.Series({str(name): plain(frame[name].iloc[0]) for name in frame.columns}, dtype=object)

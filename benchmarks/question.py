"""The question that every way is asked: the least l1 move of a person after which a model decides otherwise.

Stated without ceopt, for programs of other libraries and for brute force: variables per column, codes as the last
estimator of a pipeline sees them, from the pipeline's own ``transform``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import common
import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

__all__ = ["Choice", "Number", "Question"]


@dataclass(frozen=True, slots=True)
class Number:
    """A whole or real number that moves: cost ``|v - home| / scale``, codes ``slope * (v - home)``."""

    name: str
    home: float
    lower: float
    upper: float
    integer: bool
    scale: float
    slope: Mapping[int, float]

    @classmethod
    def of(
        cls, encoder: Any, row: pd.DataFrame, name: str, *, lower: float, upper: float, integer: bool, scale: float
    ) -> Number:
        """Find the slope from the codes at both ends."""
        low, high = _codes(encoder, row, name, [lower, upper])
        slope = (high - low) / (upper - lower)
        touched = {int(c): float(slope[c]) for c in np.flatnonzero(slope)}
        return cls(name, float(row[name].iloc[0]), float(lower), float(upper), integer, scale, touched)


@dataclass(frozen=True, slots=True)
class Choice:
    """A column of levels, one binary each: cost and change of the codes, (levels,) and {code: (levels,)}."""

    name: str
    values: Sequence[Any]
    costs: Sequence[float]
    codes: Mapping[int, Sequence[float]]

    @classmethod
    def of(cls, encoder: Any, row: pd.DataFrame, name: str, values: Sequence[Any], costs: Sequence[float]) -> Choice:
        """Find the change of the codes at each level."""
        moved = _codes(encoder, row, name, values) - np.asarray(encoder.transform(row), dtype=float)
        touched = np.flatnonzero(np.abs(moved).max(axis=0))
        return cls(name, values, costs, {int(c): moved[:, c].tolist() for c in touched})


@dataclass(frozen=True, slots=True)
class Question:
    """The least l1 move of one person, within reach, after which the last estimator's score has the wanted sign.

    Parameters
    ----------
    row
        The person in raw units.
    parts
        The columns that may move.
    codes
        The person as the last estimator sees them, (m,).
    target, margin
        The label that is wanted, 0 or 1, and the least score in its direction.
    """

    row: pd.DataFrame
    parts: Sequence[Number | Choice]
    codes: np.ndarray
    target: int
    margin: float

    @classmethod
    def of(cls, pipeline: Pipeline, row: pd.DataFrame, task: common.Task, *, margin: float) -> Question:
        """State the question of a row of real data: reach by the data's schema, codes by the pipeline's transform."""
        encoder, one_hot = pipeline[:-1], set(common.groups_of(task.bunch.name)["one_hot"])
        codes = np.asarray(encoder.transform(row), dtype=float)[0]
        parts: list[Number | Choice] = []
        for name, column in common.schema_of(task.bunch.name).items():
            home = row[name].iloc[0]
            if column.get("immutable"):
                continue
            rises, scale = column.get("monotone") == "increasing", task.bunch.space[name].scale("mad")
            if "levels" in column:
                levels = column["levels"][column["levels"].index(home) if rises else 0 :]
                if name in one_hot:  # a level that the encoder never saw has no code
                    levels = [level for level in levels if level == home or (task.train[name] == level).any()]
                apart = [abs(k - levels.index(home)) for k in range(len(levels))]
                costs = [k / scale if column["kind"] == "ordinal" else float(k > 0) for k in apart]
                parts.append(Choice.of(encoder, row, name, levels, costs))
            else:
                lower, upper = home if rises else min(column["lower"], home), max(column["upper"], home)
                if lower < upper:
                    whole = bool(column["integer"])
                    parts.append(Number.of(encoder, row, name, lower=lower, upper=upper, integer=whole, scale=scale))
        return cls(row, parts, codes, task.target, margin)

    def bounds(self) -> list[tuple[float, float]]:
        """Return the reach of each code."""
        low, high = self.codes.copy(), self.codes.copy()
        for part in self.parts:
            if isinstance(part, Choice):
                for code, change in part.codes.items():
                    low[code] += min(change)
                    high[code] += max(change)
            else:
                for code, slope in part.slope.items():
                    ends = sorted((slope * (part.lower - part.home), slope * (part.upper - part.home)))
                    low[code] += ends[0]
                    high[code] += ends[1]
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def answer(self, values: Mapping[str, Any]) -> pd.DataFrame:
        """Return the row with some values replaced, each column in its own dtype."""
        changed = {name: pd.Series([value], index=self.row.index) for name, value in values.items()}
        return self.row.assign(**{name: value.astype(self.row[name].dtype) for name, value in changed.items()})


def _codes(encoder: Any, row: pd.DataFrame, name: str, values: Sequence[Any]) -> np.ndarray:
    """Return the codes of a row with one column set to each of the values."""
    tried = pd.concat([row] * len(values), ignore_index=True)
    tried[name] = pd.Series(list(values)).astype(row[name].dtype)
    return np.asarray(encoder.transform(tried), dtype=float)

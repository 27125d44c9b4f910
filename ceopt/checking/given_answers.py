"""Answers as they are given, by whichever library: their rows, and each row in coordinates, or why it has none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ceopt.formulations.space.space import FeatureSpace
from ceopt.solution.counterfactual import Counterfactual
from ceopt.solution.solution_set import SolutionSet
from ceopt.solvers.errors import CeoptError, InvalidTypeError

__all__ = ["answer_point", "answer_rows"]


def answer_rows(who: str, answers: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Return ranks and raw rows of whatever holds answers: of a solution set its own ranks, else 1, 2, ...

    Raises
    ------
    InvalidTypeError
        No collection of rows.
    """
    if isinstance(answers, SolutionSet):
        return tuple(answer.rank for answer in answers), [answer.values for answer in answers]
    if isinstance(answers, pd.DataFrame):
        rows: list[Any] = [answers.iloc[[place]] for place in range(len(answers))]
    elif isinstance(answers, pd.Series | Mapping | Counterfactual):
        rows = [answers]
    elif isinstance(answers, Iterable) and not isinstance(answers, str | bytes | np.ndarray):
        rows = list(answers)
    else:
        raise InvalidTypeError(
            who, "a SolutionSet, a frame or a list of rows", f"answers is {type(answers).__name__}",
            "Give each answer as a Series or dict by column name.",
        )  # fmt: skip
    return tuple(range(1, len(rows) + 1)), rows


def answer_point(space: FeatureSpace, row: Any) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return a raw row in coordinates, and everything that keeps it from having some."""
    match row:
        case Counterfactual():
            values: dict[Any, Any] = dict(row.values.items())
        case pd.Series() | pd.DataFrame() if not row.axes[-1].is_unique:
            return {}, ("not a row: a name stands in it twice",)
        case pd.Series():
            values = dict(zip(row.index.tolist(), row.tolist(), strict=True))
        case pd.DataFrame() if len(row) == 1:
            values = {name: row.iloc[0, place] for place, name in enumerate(row.columns)}
        case Mapping():
            values = dict(row)
        case _:
            return {}, (f"not a row: {type(row).__name__}",)
    faults = [f"{name}: missing from the row" for name in space.names if name not in values]
    if faults:  # a name too many may be the one that is missing, misspelt
        faults += [f"{name}: not a column of the space" for name in values if name not in space]
    point = {}
    for feature in space:
        if feature.name in values:
            try:
                point[feature.name] = feature.to_coordinate(values[feature.name])
            except CeoptError as error:
                faults.append(f"{feature.name}: {error}")
    return point, tuple(faults)

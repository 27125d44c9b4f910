"""The results for many people: one solution set each, and all of them as one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import pandas as pd

from ceopt.formulations.space.space import FeatureSpace
from ceopt.solution.copies import hands_out_copies
from ceopt.solution.solution_set import SolutionSet
from ceopt.status import Status

__all__ = ["Cohort"]

_OWN = ("status", "cost", "bound", "verified", "reason")


@final
@hands_out_copies("queries", "options")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Cohort:
    """The solution sets of many people, in the order of their rows.

    Parameters
    ----------
    results
        One per row.
    queries
        The rows that were asked about, in raw units; their labels may repeat.
    space
        The columns.
    options
        Every setting of the run.
    finished
        Whether each row was asked to the end; False for what an interrupt left out and for a row whose process was
        killed, which ``resume`` takes up.
    """

    results: tuple[SolutionSet, ...]
    queries: pd.DataFrame
    space: FeatureSpace
    options: Mapping[str, Any] = field(default_factory=dict)
    finished: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[SolutionSet]:
        return iter(self.results)

    def __getitem__(self, position: int) -> SolutionSet:
        return self.results[position]

    def counts(self) -> dict[str, int]:
        """Return how many rows have each status."""
        found = [str(result.status) for result in self.results]
        return {str(status): found.count(str(status)) for status in Status if str(status) in found}

    def failures(self) -> pd.DataFrame:
        """Return the rows that have no answer and need one, indexed by ``query_id``: status and reason."""
        left = [result for result in self.results if not result.status.is_settled]
        index = _labels([result.query_id for result in left], "query_id")
        return pd.DataFrame(
            {
                "status": pd.Series([str(result.status) for result in left], index=index, dtype=object),
                "reason": pd.Series([result.reason for result in left], index=index, dtype=object),
            }
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per answer, indexed by ``query_id`` (the row's label) and ``rank``.

        Columns: status, cost, bound, verified, reason, then the raw columns in their own dtypes. A name of these that a
        raw column bears too gets the prefix ``ceopt_``. A person without an answer has one row of rank 0 whose raw
        columns are missing; for that, whole numbers become ``Int64`` and bool ``boolean``. One who is favourable
        already has cost 0 and counts as verified.
        """
        keys: list[tuple[SolutionSet, Any]] = [
            (result, answer) for result in self.results for answer in (result.counterfactuals or (None,))
        ]
        answers = [answer for _, answer in keys if answer is not None]
        raw = pd.concat([self.space.frame([]), *(answer.frame for answer in answers)], ignore_index=True)
        place = np.full(len(keys), -1)
        place[[answer is not None for _, answer in keys]] = np.arange(len(answers))
        names = {word: _free(word, self.space.names) for word in ("query_id", "rank", *_OWN)}
        labels = [result.query_id for result, _ in keys]
        ranks = [0 if answer is None else answer.rank for _, answer in keys]
        index = pd.MultiIndex.from_arrays(
            [_labels(labels, names["query_id"]), pd.Index(ranks, dtype="int64", name=names["rank"])]
        )
        own = {names[word]: _own(word, keys) for word in _OWN}
        columns = {name: _spread(raw[name], place) for name in self.space.names}
        frame = pd.DataFrame(own | columns)
        frame.index = index
        return frame

    def __repr__(self) -> str:
        listed = ", ".join(f"{count} {status}" for status, count in self.counts().items())
        return f"<Cohort of {len(self)}: {listed}>"

    def _repr_html_(self) -> str:
        return f"<p>{len(self)} rows: {', '.join(f'{k} {status}' for status, k in self.counts().items())}</p>" + str(
            self.to_frame().to_html()
        )


def _labels(labels: list[Any], name: str) -> pd.Index[Any]:
    """Return labels as an index of one level, whatever they are."""
    index: pd.Index[Any] = pd.Index(labels, name=name, tupleize_cols=False)
    return index


def _free(word: str, taken: tuple[str, ...]) -> str:
    while word in taken:
        word = f"ceopt_{word}"
    return word


def _own(word: str, keys: list[tuple[SolutionSet, Any]]) -> pd.Series[Any]:
    match word:
        case "status":
            return pd.Series([str(result.status) for result, _ in keys], dtype=object)
        case "cost":
            return pd.Series([_cost(result, answer) for result, answer in keys], dtype=np.float64)
        case "bound":
            bounds = [(result if answer is None else answer).bound for result, answer in keys]
            return pd.Series([np.nan if bound is None else bound for bound in bounds], dtype=np.float64)
        case "verified":
            favourable = Status.ALREADY_FAVOURABLE
            checked = [result.status is favourable if answer is None else answer.verified for result, answer in keys]
            return pd.Series(checked, dtype=bool)
        case _:
            return pd.Series([result.reason for result, _ in keys], dtype=object)


def _cost(result: SolutionSet, answer: Any) -> float:
    if answer is not None:
        return float(answer.cost)
    return 0.0 if result.status is Status.ALREADY_FAVOURABLE else np.nan


def _spread(column: pd.Series[Any], place: np.ndarray[Any, Any]) -> pd.Series[Any]:
    """Take a column's values by place, -1 for a missing one, in a dtype that can hold what is missing."""
    if (place < 0).any():
        kind = getattr(column.dtype, "kind", "")
        if isinstance(column.dtype, np.dtype) and kind in "iu":
            name = str(column.dtype)
            column = column.astype(name.replace("i", "I", 1) if kind == "i" else name.replace("ui", "UI"))  # type: ignore[call-overload]
        elif isinstance(column.dtype, np.dtype) and kind == "b":
            column = column.astype("boolean")
    spread = column.reindex(place)
    spread.index = pd.RangeIndex(len(place))
    return spread

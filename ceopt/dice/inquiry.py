"""Answers for all rows of one call: rows that are asked the same are asked together."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import pandas as pd

from ceopt.dice.permitted import beyond, narrowed
from ceopt.formulations.constraints import AbstractRule
from ceopt.formulations.content_hash import content_of
from ceopt.formulations.space.space import FeatureSpace
from ceopt.recourse import Recourse
from ceopt.solvers.errors import UnsupportedModelError

if TYPE_CHECKING:
    from ceopt.solution.solution_set import SolutionSet

__all__ = ["Answered", "Inquiry"]

#: Seconds of a question for which there is no time left: too few for any row, all of which are marked.
_LEAST_S: Final = 1e-6


class Answered(NamedTuple):
    """What came back: a result a row, and why the model is a black box (empty for one that is stated exactly)."""

    results: tuple[SolutionSet, ...]
    black_box: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """What a call asks of every row.

    Parameters
    ----------
    model
        The fitted model.
    space
        The columns, those that may not vary held.
    ranges
        Permitted range or levels by column.
    rows
        The training rows without the outcome.
    options
        Keywords of :class:`ceopt.Recourse`: cost, constraints, solver, limits.
    total_time_limit_s
        Seconds for all rows together, without the reading of the model; None: no limit but that of each row.
    """

    model: Any
    space: FeatureSpace
    ranges: Mapping[str, tuple[Any, ...]]
    rows: pd.DataFrame
    options: Mapping[str, Any]
    total_time_limit_s: float | None = None

    def answer(self, queries: pd.DataFrame, targets: Sequence[Any], n: int) -> Answered:
        """Return the answers to each row for its target, at most ``n`` each."""
        groups: dict[tuple[Hashable, tuple[str, ...]], list[int]] = {}
        for place, target in enumerate(targets):
            key = (content_of(target), beyond(self.space, self.ranges, queries.iloc[place]))
            groups.setdefault(key, []).append(place)
        results: dict[int, SolutionSet] = {}
        spent_s = 0.0
        black_box = ""
        for (_, outside), places in groups.items():
            some = queries.iloc[places]
            found = self._fitted(targets[places[0]], outside, n)
            black_box = found.black_box
            part_s = None
            if self.total_time_limit_s is not None:
                left_s = self.total_time_limit_s - spent_s
                part_s = max(left_s * len(some) / (len(queries) - len(results)), _LEAST_S)
            began = time.perf_counter()
            cohort = found.recourse.explain(some, progress=len(some) > 1, total_time_limit_s=part_s)
            spent_s += time.perf_counter() - began
            results.update(zip(places, cohort, strict=True))
        return Answered(tuple(results[place] for place in range(len(queries))), black_box)

    def _fitted(self, target: Any, outside: tuple[str, ...], n: int) -> _Fitted:
        space, rules = narrowed(self.space, self.ranges, outside)
        given = dict(self.options)
        given["constraints"] = [*_listed(given.get("constraints", ())), *rules]
        try:
            exact = Recourse(self.model, space, target=target, n=n, **({"why": True} | given))
            return _Fitted(exact.fit(self.rows), "")
        except UnsupportedModelError as refusal:
            from ceopt.surrogates.recourse import LocalSurrogateRecourse

            boxed = Recourse(self.model, space, target=target, n=n, surrogate=LocalSurrogateRecourse(), **given)
            return _Fitted(boxed.fit(self.rows), str(refusal))


class _Fitted(NamedTuple):
    recourse: Recourse
    black_box: str


def _listed(constraints: Any) -> list[AbstractRule]:
    if isinstance(constraints, AbstractRule):
        return [constraints]
    return list(constraints)

"""A cohort in a few numbers: how it ended for whom, what it costs, what changes most, how long it took."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, final

import pandas as pd

from ceopt.solution.copies import hands_out_copies
from ceopt.solvers.errors import printable
from ceopt.status import Status

if TYPE_CHECKING:
    from ceopt.solution.solution_set import SolutionSet

__all__ = ["CohortSummary", "summary_of"]

#: How many columns are named in text.
_NAMED = 5


@final
@hands_out_copies("statuses", "most_changed")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CohortSummary:
    """What became of many people.

    Parameters
    ----------
    people
        How many were asked about.
    statuses
        How many have each status.
    share_answered
        The share with a verified answer among those who need one, which leaves out who is favourable already; nan where
        nobody needs one.
    median_cost
        Median over the best answers of those who have one; nan without any.
    most_changed
        Column -> share of the best answers that change it, the greatest first; columns that none changes are left out.
    seconds
        Seconds of all searches together, whichever ran side by side.
    median_seconds
        Median of a person's search; nan where none was timed.
    """

    people: int
    statuses: Mapping[str, int]
    share_answered: float
    median_cost: float
    most_changed: pd.Series[float]
    seconds: float
    median_seconds: float

    def to_frame(self) -> pd.DataFrame:
        """Return one row a measure, with its value; statuses and columns have a row each."""
        rows: list[tuple[str, Any]] = [("people", self.people)]
        rows += [(f"status {status}", count) for status, count in self.statuses.items()]
        rows += [("share answered", self.share_answered), ("median cost", self.median_cost)]
        rows += [(f"changes {column}", share) for column, share in self.most_changed.items()]
        rows += [("seconds", self.seconds), ("median seconds", self.median_seconds)]
        index = pd.Index([name for name, _ in rows], name="measure")
        return pd.DataFrame({"value": pd.Series([value for _, value in rows], index=index, dtype=object)})

    def __repr__(self) -> str:
        lines = [f"{name:<16}{text}" for name, text in self._lines()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>" for name, text in self._lines())
        return f"<table><tbody>{rows}</tbody></table>"

    def _lines(self) -> list[tuple[str, str]]:
        statuses = ", ".join(f"{count} {status}" for status, count in self.statuses.items())
        changed = [f"{printable(str(column))} {share:.0%}" for column, share in self.most_changed.head(_NAMED).items()]
        if len(self.most_changed) > _NAMED:
            changed.append("...")
        return [
            ("people", str(self.people)),
            ("statuses", statuses),
            ("share answered", _shown(self.share_answered, ".1%")),
            ("median cost", _shown(self.median_cost, ".4g")),
            ("most changed", ", ".join(changed) or "none"),
            ("seconds", f"{self.seconds:.1f} s in all, {_shown(self.median_seconds, '.2g')} s a person (median)"),
        ]


def summary_of(results: Iterable[SolutionSet], names: Iterable[str]) -> CohortSummary:
    """Return what became of people, whose columns have these names."""
    results = list(results)
    statuses = Counter(result.status for result in results)
    best = [result[0] for result in results if len(result)]
    needy = len(results) - statuses[Status.ALREADY_FAVOURABLE]
    seconds = [result.timings["total"] for result in results if "total" in result.timings]
    return CohortSummary(
        people=len(results),
        statuses={str(status): statuses[status] for status in Status if statuses[status]},
        share_answered=len(best) / needy if needy else math.nan,
        median_cost=_median([answer.cost for answer in best]),
        most_changed=_shares(Counter(name for answer in best for name in answer.changed), len(best), names),
        seconds=sum(seconds),
        median_seconds=_median(seconds),
    )


def _shares(changed: Counter[str], answers: int, names: Iterable[str]) -> pd.Series[float]:
    """Return the share of answers that change each column, the greatest first, else in the columns' order."""
    places = {name: place for place, name in enumerate(names)}
    found = sorted(changed, key=lambda name: (-changed[name], places.get(name, len(places))))
    shares = [changed[name] / answers for name in found]
    index = pd.Index(found, dtype=object, name="column")
    return pd.Series(shares, index=index, dtype="float64", name="share")


def _median(numbers: list[float]) -> float:
    if not numbers:
        return math.nan
    return float(median(numbers))


def _shown(number: float, form: str) -> str:
    if math.isnan(number):
        return "none"
    return format(number, form)

"""A cohort in a few numbers: how it ended for whom, what it costs, what changes most, how long it took."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final, final

import pandas as pd

from ceopt.formulations.digits import digits
from ceopt.solution.copies import hands_out_copies
from ceopt.solvers.errors import printable
from ceopt.status import Status
from ceopt.words.said import phrases_of

if TYPE_CHECKING:
    from ceopt.solution.solution_set import SolutionSet

__all__ = ["CohortSummary", "alike", "summary_of"]

#: What is said of each rule in conflict, and the dtype of the column.
_CONFLICTS: Final[Mapping[str, Any]] = {
    "conflict": "int64", "people": "int64", "rule": object, "sentence": object, "helped": "int64", "least": "float64",
    "most": "float64",
}  # fmt: skip
#: How many columns, and sets of rules in conflict, are named in text.
_NAMED = 5


@final
@hands_out_copies("statuses", "most_changed", "conflicts")
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
    conflicts
        What would have to give for those who are proved to have no answer: one row a set of rules in conflict
        (``conflict``, a number from 1, the set of most people first) and rule. ``people`` is for how many this set
        leaves no answer, ``rule`` its name, ``sentence`` what it says, missing where it says something else to each
        ("age: fixed"); ``helped`` for how many a width of this rule alone would do, and ``least`` and ``most`` the
        widths. Where no rule is named, ``rule`` is missing and ``sentence`` is why.
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
    conflicts: pd.DataFrame
    seconds: float
    median_seconds: float

    def to_frame(self) -> pd.DataFrame:
        """Return one row a measure, with its value; statuses and columns have a row each."""
        rows: list[tuple[str, Any]] = [("people", self.people)]
        rows += [(f"status {status}", count) for status, count in self.statuses.items()]
        rows += [("share answered", self.share_answered), ("median cost", self.median_cost)]
        rows += [(f"changes {column}", share) for column, share in self.most_changed.items()]
        rows += [(f"in conflict {rules}", people) for people, rules in self._in_conflict()]
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
        why = [("in conflict", f"{people} people: {rules}") for people, rules in self._in_conflict()]
        if len(why) > _NAMED:
            why = [*why[:_NAMED], ("in conflict", "...")]
        return [
            ("people", str(self.people)),
            ("statuses", statuses),
            ("share answered", _shown(self.share_answered, ".1%")),
            ("median cost", _shown(self.median_cost, ".4g")),
            ("most changed", ", ".join(changed) or "none"),
            *why,
            ("seconds", f"{self.seconds:.1f} s in all, {_shown(self.median_seconds, '.2g')} s a person (median)"),
        ]

    def _in_conflict(self) -> Iterator[tuple[int, str]]:
        """Give for each set of rules in conflict of how many people it is, and its rules with how much wider would do.

        Where no rule is named, that is why.
        """
        for _, rows in self.conflicts.groupby("conflict"):
            yield int(rows["people"].iloc[0]), ", ".join(_rule_text(row) for row in rows.to_dict("records"))


def _rule_text(row: Mapping[Any, Any]) -> str:
    if row["rule"] is None:
        return printable(str(row["sentence"]))
    rule = printable(str(row["rule"]))
    if not row["helped"]:
        return rule
    widths = digits(row["most"])
    if row["least"] < row["most"]:
        widths = f"{digits(row['least'])} to {digits(row['most'])}"
    whom = "" if row["helped"] == row["people"] else f" for {row['helped']}"
    return f"{rule} ({widths} wider would do{whom})"


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
        conflicts=_conflicts(results),
        seconds=sum(seconds),
        median_seconds=_median(seconds),
    )


def alike(results: Iterable[SolutionSet]) -> list[list[SolutionSet]]:
    """Return those who are proved to have no answer, the same rules in conflict together, the most people first.

    Where no rule is named, those of whom the same is said are together; a search that ended early stands apart from one
    that did not.
    """
    found: dict[tuple[Any, ...], list[SolutionSet]] = {}
    for result in results:
        if result.status is not Status.INFEASIBLE:
            continue
        names = tuple(name for name, _, _ in result.conflict)
        is_early = any(phrase.name == "conflict_unfinished" for phrase in phrases_of(result.reason))
        key = (names, is_early) if names else (str(result.reason),)
        found.setdefault(key, []).append(result)
    return sorted(found.values(), key=len, reverse=True)


def _conflicts(results: Iterable[SolutionSet]) -> pd.DataFrame:
    """Return the rules in conflict of all people as :class:`CohortSummary` describes them."""
    rows = []
    for number, group in enumerate(alike(results), start=1):
        if not group[0].conflict:
            rows.append((number, len(group), None, str(group[0].reason), 0, math.nan, math.nan))
        for entries in zip(*(result.conflict for result in group), strict=True):
            sentences = {str(sentence) for _, sentence, _ in entries}
            sentence = sentences.pop() if len(sentences) == 1 else None
            widths = [width for _, _, width in entries if width is not None]
            ends = (min(widths), max(widths)) if widths else (math.nan, math.nan)
            rows.append((number, len(group), entries[0][0], sentence, len(widths), *ends))
    columns: dict[str, Any] = {}
    for place, (name, dtype) in enumerate(_CONFLICTS.items()):
        columns[name] = pd.Series([row[place] for row in rows], dtype=dtype)
    return pd.DataFrame(columns)


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

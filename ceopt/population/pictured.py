"""What the pictures of a cohort show, counted: who changes what, what it costs, and who has which status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pandas as pd

from ceopt.extras import require_library
from ceopt.pictures.bars import Bar, Bars, draw_bars
from ceopt.pictures.captions import CAPTIONS, Captions
from ceopt.pictures.costs import CostGroup, draw_costs
from ceopt.solution.cells import shown
from ceopt.solution.counterfactual import scalars
from ceopt.solution.solution_set import SolutionSet
from ceopt.solvers.checks import AbstractCheck, Choice, check_arguments
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, counted
from ceopt.status import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["PicturedCohort", "plot_cohort"]

_WHO: Final = "Cohort.plot"
_CHECKS: Final[dict[str, AbstractCheck]] = {
    "kind": Choice(("changes", "costs", "status")),
    "language": Choice(tuple(CAPTIONS)),
}
#: More groups are no groups: nobody could read them.
_GROUPS: Final = 12
_SENSES: Final = {"raised": "rise", "lowered": "fall", "another_level": "other"}


class PicturedCohort(Protocol):
    """What the pictures show of a :class:`~ceopt.Cohort`."""

    @property
    def results(self) -> tuple[SolutionSet, ...]:
        """One a row."""

    @property
    def queries(self) -> pd.DataFrame:
        """The rows."""

    @property
    def space(self) -> FeatureSpace:
        """The columns."""


def plot_cohort(cohort: PicturedCohort, kind: str, *, by: Any, ax: Any, dark: bool, language: str) -> Axes:
    """Draw what :meth:`ceopt.Cohort.plot` is asked for; see there."""
    require_library(_WHO, "matplotlib")
    checked = check_arguments(_WHO, _CHECKS, {"kind": kind, "language": language})
    say = CAPTIONS[checked["language"]]
    if not cohort.results:
        raise InvalidValueError(_WHO, "some rows", "the cohort has none", "Ask about some.")
    groups = _groups(cohort, by, say)
    if kind == "status":
        return _status(groups, say, by=by, ax=ax, dark=dark)
    if not any(len(result) for result in cohort.results):
        counts = Counter(str(result.status) for result in cohort.results)
        said = ", ".join(f"{count} are {status}" for status, count in counts.items())
        raise InvalidValueError(_WHO, "someone with an answer", said, 'kind="status" draws this.')
    if kind == "costs":
        return _costs(groups, say, ax=ax, dark=dark)
    return _changes(groups, cohort.space, say, by=by, ax=ax, dark=dark)


# ---- groups ----------------------------------------------------------------------------------------------------------
def _groups(cohort: PicturedCohort, by: Any, say: Captions) -> dict[str, list[SolutionSet]]:
    """Return the results by group, in the order of levels, of numbers or of the alphabet; one group without ``by``."""
    if by is None:
        return {say.put("all"): list(cohort.results)}
    keys = _keys(cohort, by)
    members: dict[str, list[SolutionSet]] = {}
    for key in _ordered(keys, by, cohort.space):
        members[_named(key)] = []
    if len(members) > _GROUPS:
        but = f"by has {len(members)}"
        raise InvalidValueError(_WHO, f"at most {_GROUPS} groups", but, "Join some: by=pd.cut(column, 5) for numbers.")
    for key, result in zip(keys, cohort.results, strict=True):
        members[_named(key)].append(result)
    return members


def _keys(cohort: PicturedCohort, by: Any) -> pd.Series[Any]:
    """Return the group of each row, in the order of the rows."""
    queries = cohort.queries
    if isinstance(by, str):
        if by not in queries.columns:
            raise UnknownNameError.among(_WHO, "column", by, [str(name) for name in queries.columns])
        return queries[by].reset_index(drop=True)
    try:
        keys = by if isinstance(by, pd.Series) else pd.Series(by)
    except (TypeError, ValueError):
        keys = pd.Series([], dtype=object)
    if isinstance(by, dict) or np.ndim(by) != 1 or not len(keys):
        but = f"by is {type(by).__name__}"
        raise InvalidTypeError(_WHO, "the name of a column, or one group a row, as by", but, "Give one of them.")
    if len(keys) != len(queries):
        but = f"by has {counted(len(keys), 'group')} for {counted(len(queries), 'row')}"
        raise InvalidValueError(_WHO, "one group a row as by", but, "Give them in the order of the rows.")
    labels = queries.index
    if isinstance(by, pd.Series) and labels.is_unique and by.index.is_unique and set(by.index) == set(labels):
        keys = by.loc[labels]
    return keys.reset_index(drop=True)


def _ordered(keys: pd.Series[Any], by: Any, space: FeatureSpace) -> list[Any]:
    found = keys.drop_duplicates().tolist()
    missing = [key for key in found if pd.isna(key)]
    known = [key for key in found if not pd.isna(key)]
    if isinstance(keys.dtype, pd.CategoricalDtype):
        order = keys.dtype.categories.tolist()
        known.sort(key=order.index)
    elif isinstance(by, str) and by in space and space[by].is_finite:
        known.sort(key=space[by].rank)
    else:
        try:
            known.sort()
        except TypeError:
            known.sort(key=str)
    return known + missing[:1]


def _named(key: Any) -> str:
    return shown(key)


# ---- pictures --------------------------------------------------------------------------------------------------------
def _changes(
    groups: dict[str, list[SolutionSet]], space: FeatureSpace, say: Captions, *, by: Any, ax: Any, dark: bool
) -> Axes:
    """Draw for each column that changes how many people's best answers change it, and how."""
    counts = {group: _counted_changes(results, space) for group, results in groups.items()}
    answered = {group: sum(len(result) > 0 for result in results) for group, results in groups.items()}
    total: Counter[str] = Counter()
    senses: Counter[str] = Counter()
    for of_group in counts.values():
        for name, how in of_group.items():
            total[name] += how.total()
            senses += how
    if not total:
        raise InvalidValueError(_WHO, "an answer that changes something", "none does", 'Draw kind="costs".')
    places = {name: place for place, name in enumerate(space.names)}
    rows = []
    for name in sorted(total, key=lambda name: (-total[name], places[name])):
        bars = []
        for group, of_group in counts.items():
            bars.append(_change_bar(group, of_group.get(name, Counter()), answered[group], say, by=by))
        rows.append(Bars(name, tuple(bars)))
    parts = {sense: colour for sense, colour in _SENSES.items() if senses[sense]}
    title = say.count("changes", sum(answered.values()))
    foot = say.put("people" if by is None else "share_of_answered")
    return draw_bars(_WHO, rows, parts, title=title, foot=foot, say=say, ax=ax, dark=dark)


def _counted_changes(results: Sequence[SolutionSet], space: FeatureSpace) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for result in results:
        if not len(result):
            continue
        answer = result[0]
        before = scalars(result.factual)
        for name in answer.changed:
            feature = space[name]
            sense = "another_level"
            if feature.kind not in {"categorical", "binary"}:
                rises = feature.to_coordinate(answer.values[name]) > feature.to_coordinate(before[name])
                sense = "raised" if rises else "lowered"
            found.setdefault(name, Counter())[sense] += 1
    return found


def _change_bar(group: str, how: Counter[str], answered: int, say: Captions, *, by: Any) -> Bar:
    share = 100.0 * how.total() / max(answered, 1)
    if by is None:
        return Bar(dict(how), f"{say.number(f'{how.total():,}')} ({share:.0f} %)")
    parts = {sense: 100.0 * count / max(answered, 1) for sense, count in how.items()}
    text = say.put("share_bar", group=group, share=f"{share:.0f}", **_part(how.total(), answered, say))
    return Bar(parts, text)


def _part(part: int, whole: int, say: Captions) -> dict[str, str]:
    """Return the fields of a text that says how many of how many."""
    return {"part": say.number(f"{part:,}"), "whole": say.number(f"{whole:,}")}


def _costs(groups: dict[str, list[SolutionSet]], say: Captions, *, ax: Any, dark: bool) -> Axes:
    """Draw what the best answers cost, and say how many have one of those who are not favourable already."""
    drawn = []
    for group, results in groups.items():
        costs = np.array([result[0].cost for result in results if len(result)])
        asked = sum(result.status is not Status.ALREADY_FAVOURABLE for result in results)
        note = say.put("have_answer", **_part(len(costs), asked, say))
        if len(costs):
            median = say.number(shown(float(f"{np.median(costs):.4g}")))
            note = say.put("median", cost=median, note=note)
        elif not asked:
            note = say.put("nobody_needs")
        drawn.append(CostGroup(group, costs, note))
    return draw_costs(_WHO, drawn, say=say, ax=ax, dark=dark)


def _status(groups: dict[str, list[SolutionSet]], say: Captions, *, by: Any, ax: Any, dark: bool) -> Axes:
    """Draw how many people have each status: a row a status, or a row a group."""
    counts = {group: Counter(str(result.status) for result in results) for group, results in groups.items()}
    total = Counter[str]()
    for of_group in counts.values():
        total += of_group
    there = [str(status) for status in Status if total[str(status)]]
    people = sum(total.values())
    rows = []
    if by is None:
        for status in there:
            count = total[status]
            text = f"{say.number(f'{count:,}')} ({100.0 * count / people:.0f} %)"
            rows.append(Bars(say.put(status), (Bar({status: count}, text),)))
    else:
        for group, of_group in counts.items():
            size = of_group.total()
            settled = sum(count for status, count in of_group.items() if Status(status).is_settled)
            shares = {status: 100.0 * count / size for status, count in of_group.items()}
            rows.append(Bars(group, (Bar(shares, say.put("served", **_part(settled, size, say))),)))
    title = say.count("statuses", people)
    foot = say.put("rows" if by is None else "share_of_rows")
    parts = {status: status for status in there}
    return draw_bars(_WHO, rows, parts, title=title, foot=foot, say=say, ax=ax, dark=dark, legend=by is not None)

"""What a cohort shows: a summary in a few numbers, pictures of changes, costs and statuses, and the report."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from statistics import median
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pandas as pd

from ceopt.base.libraries import require_library
from ceopt.base.results import Status
from ceopt.base.said import phrases_of
from ceopt.formulations.digits import digits
from ceopt.formulations.space.feature import is_gap
from ceopt.pictures.canvas import CAPTIONS, Captions
from ceopt.pictures.charts import Bar, Bars, CostGroup, draw_bars, draw_costs
from ceopt.report import picture, require_report, write_page
from ceopt.result.counterfactual import hands_out_copies, scalars, shown
from ceopt.result.shown import limits_text, short, sources
from ceopt.result.solution_set import SolutionSet
from ceopt.solvers.checks import AbstractCheck, Choice, check_arguments
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, counted, printable
from ceopt.words.binding import people_bound
from ceopt.words.language import Language, language_of
from ceopt.words.sentences import beyond_lines, feature_of, in_words, shared_rule_said

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.words.sentences import ResultInWords

# ==== A cohort in a few numbers: how it ended for whom, what it costs, what changes most, how long it took ============

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
        names, values = zip(*rows, strict=True)
        return pd.DataFrame({"value": pd.Series(values, index=pd.Index(names, name="measure"), dtype=object)})

    def __repr__(self) -> str:
        return "\n".join(f"{name:<16}{text}" for name, text in self._lines())

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
            yield int(rows["people"].iloc[0]), ", ".join(map(_rule_text, rows.to_dict("records")))


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


def status_counts(results: Iterable[SolutionSet]) -> dict[str, int]:
    """Return how many results have each status, in the order of the statuses."""
    counts = Counter(result.status for result in results)
    return {str(status): counts[status] for status in Status if counts[status]}


def summary_of(results: Iterable[SolutionSet], names: Iterable[str]) -> CohortSummary:
    """Return what became of people, whose columns have these names."""
    results = list(results)
    statuses = status_counts(results)
    best = [result[0] for result in results if len(result)]
    needy = len(results) - statuses.get(Status.ALREADY_FAVOURABLE, 0)
    seconds = [result.timings["total"] for result in results if "total" in result.timings]
    return CohortSummary(
        people=len(results),
        statuses=statuses,
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
    groups: dict[tuple[Any, ...], list[SolutionSet]] = {}
    for result in results:
        if result.status is not Status.INFEASIBLE:
            continue
        names = tuple(name for name, _, _ in result.conflict)
        is_early = any(phrase.name == "conflict_unfinished" for phrase in phrases_of(result.reason))
        key = (names, is_early) if names else (str(result.reason),)
        groups.setdefault(key, []).append(result)
    return sorted(groups.values(), key=len, reverse=True)


def _conflicts(results: Iterable[SolutionSet]) -> pd.DataFrame:
    """Return the rules in conflict of all people as :class:`CohortSummary` describes them."""
    rows: list[tuple[Any, ...]] = []
    for number, group in enumerate(alike(results), start=1):
        if not group[0].conflict:
            rows.append((number, len(group), None, str(group[0].reason), 0, math.nan, math.nan))
        for entries in zip(*(result.conflict for result in group), strict=True):
            sentences = {str(sentence) for _, sentence, _ in entries}
            sentence = sentences.pop() if len(sentences) == 1 else None
            widths = [width for _, _, width in entries if width is not None]
            least = min(widths, default=math.nan)
            most = max(widths, default=math.nan)
            rows.append((number, len(group), entries[0][0], sentence, len(widths), least, most))
    return pd.DataFrame(rows, columns=list(_CONFLICTS), dtype=object).astype(_CONFLICTS)


def _shares(changed: Counter[str], answers: int, names: Iterable[str]) -> pd.Series[float]:
    """Return the share of answers that change each column, the greatest first, else in the columns' order."""
    places = {name: place for place, name in enumerate(names)}
    columns = sorted(changed, key=lambda name: (-changed[name], places.get(name, len(places))))
    shares = [changed[name] / answers for name in columns]
    index = pd.Index(columns, dtype=object, name="column")
    return pd.Series(shares, index=index, dtype="float64", name="share")


def _median(numbers: list[float]) -> float:
    if not numbers:
        return math.nan
    return float(median(numbers))


def _shown(number: float, form: str) -> str:
    if math.isnan(number):
        return "none"
    return format(number, form)


# ==== What the pictures of a cohort show, counted: who changes what, what it costs, and who has which status ==========

_PLOT: Final = "Cohort.plot"
_CHECKS: Final[dict[str, AbstractCheck]] = {
    "kind": Choice(("changes", "costs", "status")),
    "language": Choice(tuple(CAPTIONS)),
}
#: More groups are no groups: nobody could read them.
_GROUPS: Final = 12
_SENSES: Final = {
    "raised": "rise", "lowered": "fall", "another_level": "other", "filled_in": "other", "left_blank": "other",
}  # fmt: skip


def plot_cohort(
    results: Sequence[SolutionSet], queries: pd.DataFrame, space: FeatureSpace, kind: str, *, by: Any, ax: Any,
    dark: bool, language: str,
) -> Axes:  # fmt: skip
    """Draw what :meth:`ceopt.Cohort.plot` is asked for; see there."""
    require_library(_PLOT, "matplotlib")
    say = CAPTIONS[check_arguments(_PLOT, _CHECKS, {"kind": kind, "language": language})["language"]]
    if not results:
        raise InvalidValueError(_PLOT, "some rows", "the cohort has none", "Ask about some.")
    groups = {say.put("all"): list(results)}
    if by is not None:
        groups = _groups(results, _keys(queries, by), by, space)
    if kind == "status":
        return _status(groups, say, by=by, ax=ax, dark=dark)
    if not any(map(len, results)):
        counts = Counter(str(result.status) for result in results)
        statuses = ", ".join(f"{count} are {status}" for status, count in counts.items())
        raise InvalidValueError(_PLOT, "someone with an answer", statuses, 'kind="status" draws this.')
    if kind == "costs":
        return _costs(groups, say, ax=ax, dark=dark)
    return _changes(groups, space, say, by=by, ax=ax, dark=dark)


# ---- groups ----------------------------------------------------------------------------------------------------------
def _groups(
    results: Sequence[SolutionSet], keys: pd.Series[Any], by: Any, space: FeatureSpace
) -> dict[str, list[SolutionSet]]:
    """Return the results by group, in the order of levels, of numbers or of the alphabet."""
    feature = None
    if isinstance(by, str):
        feature = feature_of(space, by)

    def name(key: Any) -> str:
        meaning = None if feature is None else feature.meaning_of(key)
        return meaning or shown(key)

    members: dict[str, list[SolutionSet]] = {}
    for key in _ordered(keys, by, space):
        members[name(key)] = []
    if len(members) > _GROUPS:
        but = f"by has {len(members)}"
        raise InvalidValueError(_PLOT, f"at most {_GROUPS} groups", but, "Join some: by=pd.cut(column, 5) for numbers.")
    for key, result in zip(keys, results, strict=True):
        members[name(key)].append(result)
    return members


def _keys(queries: pd.DataFrame, by: Any) -> pd.Series[Any]:
    """Return the group of each row, in the order of the rows."""
    if isinstance(by, str):
        if by not in queries.columns:
            raise UnknownNameError.among(_PLOT, "column", by, list(map(str, queries.columns)))
        return queries[by].reset_index(drop=True)
    try:
        keys = pd.Series(by)
    except (TypeError, ValueError):
        keys = pd.Series([], dtype=object)
    if isinstance(by, dict) or np.ndim(by) != 1 or not len(keys):
        but = f"by is {type(by).__name__}"
        raise InvalidTypeError(_PLOT, "the name of a column, or one group a row, as by", but, "Give one of them.")
    if len(keys) != len(queries):
        but = f"by has {counted(len(keys), 'group')} for {counted(len(queries), 'row')}"
        raise InvalidValueError(_PLOT, "one group a row as by", but, "Give them in the order of the rows.")
    labels = queries.index
    if isinstance(by, pd.Series) and labels.is_unique and by.index.is_unique and set(by.index) == set(labels):
        keys = by.loc[labels]
    return keys.reset_index(drop=True)


def _ordered(keys: pd.Series[Any], by: Any, space: FeatureSpace) -> list[Any]:
    known = keys.dropna().drop_duplicates().tolist()
    if isinstance(keys.dtype, pd.CategoricalDtype):
        known.sort(key=keys.dtype.categories.tolist().index)
    elif isinstance(by, str) and by in space and space[by].is_finite:
        known.sort(key=space[by].rank)
    else:
        try:
            known.sort()
        except TypeError:
            known.sort(key=str)
    return known + keys[keys.isna()].head(1).tolist()


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
        raise InvalidValueError(_PLOT, "an answer that changes something", "none does", 'Draw kind="costs".')
    rows = []
    for name in sorted(sorted(total, key=space.names.index), key=total.__getitem__, reverse=True):
        bars = []
        for group, of_group in counts.items():
            bars.append(_change_bar(group, of_group.get(name, Counter()), answered[group], say, by=by))
        rows.append(Bars(name, tuple(bars)))
    parts = {sense: colour for sense, colour in _SENSES.items() if senses[sense]}
    title = say.count("changes", sum(answered.values()))
    foot = say.put("people" if by is None else "share_of_answered")
    return draw_bars(_PLOT, rows, parts, title=title, foot=foot, say=say, ax=ax, dark=dark)


def _counted_changes(results: Sequence[SolutionSet], space: FeatureSpace) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for result in results:
        if not len(result):
            continue
        answer = result[0]
        before = scalars(result.factual)
        for name in answer.changed:
            sense = _sense(space[name], before[name], answer.values[name])
            counts.setdefault(name, Counter())[sense] += 1
    return counts


def _sense(feature: Feature, old: Any, new: Any) -> str:
    """Return which way a column changes."""
    if is_gap(new):
        return "left_blank"
    if feature.is_label_value(old) and not feature.is_label_value(new):
        return "filled_in"
    if feature.kind in {"categorical", "binary"} or feature.is_label_value(new):
        return "another_level"
    if feature.to_coordinate(new) > feature.to_coordinate(old):
        return "raised"
    return "lowered"


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
    return draw_costs(_PLOT, drawn, say=say, ax=ax, dark=dark)


def _status(groups: dict[str, list[SolutionSet]], say: Captions, *, by: Any, ax: Any, dark: bool) -> Axes:
    """Draw how many people have each status: a row a status, or a row a group."""
    counts = {group: Counter(str(result.status) for result in results) for group, results in groups.items()}
    total = status_counts(chain.from_iterable(groups.values()))
    people = sum(total.values())
    rows = []
    if by is None:
        for status, count in total.items():
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
    parts = {status: status for status in total}
    return draw_bars(_PLOT, rows, parts, title=title, foot=foot, say=say, ax=ax, dark=dark, legend=by is not None)


# ==== What the report of a cohort shows, as plain texts: who has which way out, who has none, and what all share ======

_REPORT: Final = "Cohort.report"
#: More people than these who have the same are counted, and named where somebody asks.
_LABELS: Final = 12


def report_cohort(
    results: Sequence[SolutionSet], queries: pd.DataFrame, space: FeatureSpace, path: Any, *, title: Any, language: Any
) -> None:
    """Write what :meth:`ceopt.Cohort.report` is asked for; see there."""
    say = require_report(_REPORT, title=title, language=language)
    spoken = language_of(_REPORT, language)
    sentences = [in_words(result, spoken) for result in results]
    people = []
    for result, words in zip(results, sentences, strict=True):
        people.append(_line(result, words, say, spoken))
    rules: dict[str, None] = {}
    for words in sentences:
        rules.update(dict.fromkeys(words.rules))
    heading = title
    if heading is None:
        heading = say["report_of_people"].format(count=spoken.number(len(people)))
    known_by: list[tuple[str, str]] = []
    if results:  # the program is that of the person with the greatest
        known_by = sources(max(results, key=lambda result: result.size.get("rows", 0)), say, spoken)
    rows = [scalars(result.factual) for result in results]
    columns = []
    for feature in space:
        values = [row[feature.name] for row in rows if feature.name in row]
        columns.append((feature.name, feature.label or "", limits_text(feature, values, say, spoken)))
    write_page(
        _REPORT,
        path,
        "people.html",
        title=heading,
        language=language,
        beyond=tuple(beyond_lines(results, spoken)),
        summary=_summary(summary_of(results, space.names), say, spoken),
        pictures=_pictures(results, queries, space, language),
        people=people,
        proved=_without(results, sentences, say, spoken, proved=True),
        unproved=_without(results, sentences, say, spoken, proved=False),
        rules=tuple(rules),
        columns=columns,
        has_labels=any(label for _, label, _ in columns),
        bound=tuple(people_bound(results, spoken)),
        sources=known_by,
    )


def _without(
    results: Sequence[SolutionSet],
    sentences: Sequence[ResultInWords],
    say: Mapping[str, str],
    language: Language,
    *,
    proved: bool,
) -> list[dict[str, Any]]:
    """Return who has no answer, with or without a proof: those of whom the same is said together, the most first."""
    groups: dict[tuple[Any, ...], list[SolutionSet]] = {}
    for result, words in zip(results, sentences, strict=True):
        if not result.status.is_settled and proved == (result.status is Status.INFEASIBLE):
            names = tuple(name for name, _, _ in result.conflict)
            groups.setdefault((result.status, words.reasons, words.conflict_head, names), []).append(result)
    lines = []
    for (status, reasons, head, _), group in sorted(groups.items(), key=lambda item: -len(item[1])):
        rules = [shared_rule_said(entries, language) for entries in zip(*(one.conflict for one in group), strict=True)]
        labels = ", ".join(str(one.query_id) for one in group)
        many = ""
        if len(group) > _LABELS:
            many = say["count_people"].format(count=language.number(len(group)))
        why = " ".join([*reasons, head]).strip()
        lines.append({"label": labels, "many": many, "status": say[str(status)], "why": why, "rules": rules})
    return lines


def _line(result: SolutionSet, words: ResultInWords, say: Mapping[str, str], language: Language) -> dict[str, Any]:
    """Return a person's line of the table; of one without a way, what would have to give."""
    line = {
        "label": str(result.query_id),
        "kind": str(result.status),
        "status": say[str(result.status)],
        "cost": "",
        "sort": "",
        "first": "",
        "further": (),
        "more": "",
    }
    if len(result):
        line["cost"] = short(result[0].cost, language)
        line["sort"] = repr(float(result[0].cost))
    if words.ways:
        line["first"] = words.ways[0]
        line["further"] = tuple(words.ways[1:])
        line["more"] = say["further"].format(count=language.number(len(words.ways) - 1))
    elif words.conflict:
        line["further"] = (words.conflict_head, *words.conflict)
        line["more"] = say["why"]
    return line


def _summary(summary: CohortSummary, say: Mapping[str, str], language: Language) -> list[tuple[str, str]]:
    rows = [(say["people"], language.number(summary.people))]
    for status, count in summary.statuses.items():
        rows.append((say[status], language.number(count)))
    if not math.isnan(summary.share_answered):
        rows.append((say["answered"], language.amount(float(f"{100.0 * summary.share_answered:.4g}"), "%")))
    rows.append((say["median_cost"], short(summary.median_cost, language)))
    rows.append((say["seconds"], short(summary.seconds, language)))
    return [(name, text) for name, text in rows if text]


def _pictures(
    results: Sequence[SolutionSet], queries: pd.DataFrame, space: FeatureSpace, language: str
) -> list[dict[str, Any]]:
    """Return the picture of statuses and, where somebody has an answer, those of changes and costs."""
    if not results:
        return []
    kinds = ["status"]
    if any(answer.changed for result in results for answer in result):
        kinds = ["changes", "costs", "status"]
    drawn = []
    for kind in kinds:
        draw = partial(plot_cohort, results, queries, space, kind, by=None, ax=None, language=language)
        drawn.append(picture(draw, kind))
    return drawn

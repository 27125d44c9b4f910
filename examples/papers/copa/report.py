"""The tables beside the paper's, over seeds: what was to be reached, and why numbers differ."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from shared.table import markdown

from copa.protocol import SHIFTS
from copa.table import CORRECTED, JUDGED, MARGIN, PERTURBATION, RADIUS, N, Size, methods

__all__ = ["HEADS", "Target", "group", "page", "published", "spread", "standard_error", "summary", "target"]

Kept = Mapping[str, Any]
#: Measure -> how its column is headed.
HEADS: Mapping[str, str] = {
    "proximity": "proximity",
    "diversity": "diversity",
    "lower": "L*",
    "empirical": "empirical validity",
    "current": "current validity",
    "possible": "possible",
}
TITLES = {"dice": "DiCE", "mahalanobis": "MahalanobisCrr"}
#: A mean over seeds is said to beat another by so many standard errors of their difference.
ERRORS = 2.0
#: Plans that survive fewer futures than this are said not to survive.
SURVIVING = 0.5
#: And above this validity there is little to beat.
HARDLY_BEATEN = 0.95


@cache
def published() -> dict[tuple[int, str, str], dict[str, list[float]]]:
    """Return the paper's rows by table, data and method."""
    rows = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))["rows"]
    return {
        (row["table"], row["data"], row["method"]): {name: row[name] for name in HEADS if name in row} for row in rows
    }


# ---- over seeds ------------------------------------------------------------------------------------------------------
def group(kept: Kept, head: str, method: str) -> list[dict[str, Any]]:
    """Return the records of one row of a table, one a seed; ``head`` is "table/protocol/data"."""
    found = []
    for key, record in kept.items():
        if key.startswith(f"{head}/") and key.removeprefix(f"{head}/").partition("/")[2] == method:
            found.append(record)
    return found


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean; 0 of one value."""
    if len(values) < 2:
        return 0.0
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def spread(values: Sequence[float]) -> str:
    """Return mean and standard error as the tables show them."""
    return _cell((float(np.mean(values)), standard_error(values)))


def summary(records: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """Return mean and standard error of each measure over seeds that have a plan."""
    found = [record for record in records if record["plans"]]
    if not found:
        return {}
    columns = {name: [record[name] for record in found] for name in HEADS}
    return {name: (float(np.mean(values)), standard_error(values)) for name, values in columns.items()}


# ---- what was to be reached ------------------------------------------------------------------------------------------
class Target(NamedTuple):
    """Whether a row beats DiCE's empirical validity, and whether its L* is no more than the validity, over seeds."""

    beats: bool
    bounds: bool
    over: tuple[float, float]
    gap: tuple[float, float]


def target(kept: Kept, head: str, method: str) -> Target | None:
    """Return how a row does over seeds; None without a plan.

    It beats DiCE where the mean of its empirical validity less DiCE's, of the same people, is above two standard errors
    of that difference over seeds. Its bound holds where the mean of L* less empirical validity is at most two.
    """
    found = [record for record in group(kept, head, method) if record["plans"]]
    if not found:
        return None
    over = [record["over_dice"] for record in found]
    gap = [record["lower"] - record["empirical"] for record in found]
    first = float(np.mean(over)), standard_error(over)
    second = float(np.mean(gap)), standard_error(gap)
    beats = first[0] > ERRORS * first[1] + 1e-12
    return Target(beats, second[0] <= ERRORS * second[1] + 1e-12, first, second)


def _target_table(kept: Kept, table: int, names: Sequence[str], protocol: str) -> str:
    lines = []
    for name in names:
        for method in methods(table, protocol):
            found = target(kept, f"{table}/{protocol}/{name}", method)
            if found is None or method.startswith(("dice", "mahalanobis", "tenfold")):
                continue
            own = spread([record["empirical"] for record in group(kept, f"{table}/{protocol}/{name}", method)])
            words = []
            for good in (found.beats, found.bounds):
                words.append("yes" if good else "**no**")
            signed = [f"{mean:+.3f} ({error:.3f})" for mean, error in (found.over, found.gap)]
            lines.append([name, _title(method), own, signed[0], words[0], signed[1], words[1]])
    head = ("data", "method", "empirical validity", "less DiCE's", "reached", "L* less validity", "bound holds")
    return markdown(head, lines)


# ---- page ------------------------------------------------------------------------------------------------------------
def page(kept: Kept, table: int, names: Sequence[str], protocol: str, size: Size, *, is_full: bool) -> str:
    """Return a table under a protocol as Markdown; of a run that is not full, without what is said of the full one."""
    parts = [_first(kept, table, names, protocol)] if is_full else []
    parts += [_about(table, protocol, size)]
    parts += [f"## Classifiers\n\n{_model_table(kept, table, names, protocol)}"]
    parts += [
        f"## {name}: {SHIFTS.get(name, 'age')} shift\n\n{_data_table(kept, table, name, protocol)}" for name in names
    ]
    text = (
        "*Reached*: the mean over seeds of empirical validity less DiCE's, of the same people, is above two standard "
        "errors of that difference. *Bound holds*: the mean of L* less empirical validity is at most two of its own."
    )
    parts.append(f"## What was to be reached\n\n{text}\n\n{_target_table(kept, table, names, protocol)}")
    if lines := _difference_table(kept, table, names, protocol):
        text = "Our mean less the paper's; in bold where that is more than its printed spread."
        parts.append(f"## Beside the paper\n\n{text}\n\n{lines}")
        if is_full:
            causes = _Causes(kept, table, protocol, names)
            parts.append(f"## Why\n\n{causes.text()}")
    return "\n\n".join(parts)


def _first(kept: Kept, table: int, names: Sequence[str], protocol: str) -> str:
    """Return what a reader wants to know first: where plans survive, and where COPA's do more often than DiCE's."""
    lines = []
    for name in names:
        head = f"{table}/{protocol}/{name}"
        means = {method: summary(group(kept, head, method)) for method in methods(table, protocol)}
        validity = {method: found["empirical"][0] for method, found in means.items() if found}
        best = max(validity, key=lambda method: validity[method])
        if validity[best] < SURVIVING:
            lines.append(
                f"- **{name}: no method survives retraining.** Most futures reject the plans of each; the best, "
                f"{_title(best)}, has an empirical validity of {validity[best]:.3f}. {_ELSEWHERE[table]}"
            )
            continue
        for way in ("descent", "search"):
            method = f"{way} {JUDGED[table]}"
            found = target(kept, head, method)
            if found is not None:
                lines.append(f"- {name}: {_verdict(method, found, means)}")
        if (table, protocol, name) == (1, "paper", "sba"):
            lines.append(_STARTS)
    return "\n".join(lines)


_ELSEWHERE = {
    1: "What does survive, and at which price, is in [another page](copa_survival.md).",
    4: "What does survive in such cases has been measured for [linear models](copa_survival.md).",
}


#: What twenty starts of one split add to the seeds of this page; tests/examples/test_copa.py holds it against them.
_STARTS = (
    "- sba: that is the draw of a few seeds. Where the present model stops depends on its start, and over twenty "
    "starts on one split the published descent does **not** beat DiCE's plans ([start by start](copa_stopping.md))."
)


def _verdict(method: str, found: Target, means: Mapping[str, Mapping[str, tuple[float, float]]]) -> str:
    """Return how a method's validity stands to DiCE's, with what belongs to it."""
    validity, usual = means[method]["empirical"][0], means["dice"]["empirical"][0]
    verdict = "beats" if found.beats else "does **not** beat"
    remarks = []
    if usual > HARDLY_BEATEN:
        remarks.append(f"DiCE's is {usual:.3f}, which leaves little to beat.")
    if validity < SURVIVING:
        remarks.append("Most futures reject these plans: see [what survives](copa_survival.md).")
    if means[method]["current"][0] < SURVIVING:
        remarks.append(f"The present model itself accepts {means[method]['current'][0]:.3f} of them.")
    first = (
        f"the validity of {_title(method)}, {validity:.3f}, {verdict} DiCE's ({found.over[0]:+.3f}, standard error "
        f"over seeds {found.over[1]:.3f})."
    )
    return " ".join([first, *remarks])


_PROTOCOL = {
    "paper": (
        "Protocol **paper**, as released: German on duration, amount, personal status and age alone, of which the "
        "correction changes 10 rows of 1,000; SBA with the columns ChgOffPrinGr, which tells the outcome, and "
        "Selected, *default* as the favourable label, and the later half as the present; columns scaled by present "
        "and future rows together; models stopped after 200 steps (the present one 2,000) from random starts; "
        "moments of models on halves of all present rows, the covariance 1.5 times what it is. Nobody's column is "
        "fixed, no category is one level. *Ten times the covariance* is a control: the published descent and L* with "
        "ten times the covariance."
    ),
    "honest": (
        "Protocol **honest**: German on duration, amount, age and what the correction touches (status, credit "
        "history, savings, property, housing); SBA without ChgOffPrinGr and Selected, *paid in full* as the favourable "
        "label, the earlier half (before fiscal year 2006) as the present; columns scaled by the present rows alone; "
        "logistic regression to its optimum (C = 1); moments of models on halves of the training part, the covariance "
        "as it is. Age, urban or rural, recession and romantic stay as they are, each category has one level, and all "
        "columns stay in range."
    ),
}


def _about(table: int, protocol: str, size: Size) -> str:
    network = (
        "A network of 20, 50 and 20 ReLU neurons (scikit-learn, Adam); its moments are those of a local linear model "
        "for each person, 5,000 samples, covariance 0.05 I. *Current validity* is the share of plans that the present "
        f"network accepts. Empirical validity over {size.networks} networks a seed, trained on halves of the shifted "
        "data."
    )
    linear = (
        f"Moments of {size.moments:,} models a seed; empirical validity over {size.futures:,} models a seed, trained "
        "on halves of the shifted data. L* is a bound for futures whose moments are within the radius; how far they "
        "are is in the table of classifiers (Gelbrich distance)."
    )
    return (
        f"{_PROTOCOL[protocol]}\n\n{network if table == 4 else linear} {N} counterfactuals a plan, radius {RADIUS:g}, "
        f"margin {MARGIN:g}, K = {CORRECTED}, Delta = {PERTURBATION:g}.\n\n**Seeds.** {size.seeds}; each draws the "
        "split, the starts and orders of all training, the halves and the noise of descents anew (DiCE starts at the "
        f"person and draws nothing). In each, up to {size.people} people whom the present model rejects, those of the "
        "test part first. All numbers are means over seeds of the mean over people (standard error over seeds). In the "
        "paper's rows the bracket is its printed spread. *Possible* is the share of counterfactuals in range, with one "
        "level a category and nothing changed that nobody can change.\n\n**Methods.** *copa_plan, "
        'descent* is `ceopt.plans.copa_plan(method="descent")`, the descent that the authors published; *copa_plan* is '
        f"its default method, a search for the least objective, for the first {size.searched} people of a seed. DiCE "
        "is the gradient method of dice-ml with its released options, restated in numpy for all people at once "
        "([beside dice-ml itself](copa_dice_ml.md)). MahalanobisCrr is the requirement correction of DiCE's plan and "
        "then the Mahalanobis correction."
    )


def _abouts(kept: Kept, table: int, protocol: str, name: str) -> list[dict[str, Any]]:
    return group(kept, f"{table}/{protocol}/{name}", "about")


def _model_table(kept: Kept, table: int, names: Sequence[str], protocol: str) -> str:
    lines = []
    for name in names:
        found = _abouts(kept, table, protocol, name)
        cells = [found[0]["columns"], sum(one["people"] for one in found)]
        for when in ("now", "later"):
            cells.append(" / ".join(spread([one[when][place] for one in found]) for place in (0, 1)))
        cells += [spread([one[when] for one in found]) for when in ("rejected", "rejected_later")]
        if table == 1:
            cells.append(spread([one["shift"] for one in found]))
        lines.append([name, *cells])
    head = (
        "data",
        "columns",
        "people, all seeds",
        "accuracy / AUC, test rows",
        "of 20 futures, shifted rows",
        "present rows rejected now",
        "by the futures",
        *([] if table == 4 else ["distance of the futures' moments"]),
    )
    return markdown(head, lines)


def _title(method: str) -> str:
    way, _, pair = method.partition(" ")
    first, _, second = pair.partition(",")
    names = {
        "search": "copa_plan",
        "descent": "copa_plan, descent",
        "tenfold": "copa_plan, descent, ten times the covariance",
    }
    return TITLES.get(way) or f"{names[way]} ({first}, {second})"


def _data_table(kept: Kept, table: int, name: str, protocol: str) -> str:
    columns = [measure for measure in HEADS if table == 4 or measure != "current"]
    lines = []
    failed: Counter[str] = Counter()
    put_back = []
    for method in methods(table, protocol):
        records = group(kept, f"{table}/{protocol}/{name}", method)
        if not records:
            continue
        means = summary(records)
        found, asked = sum(record["plans"] for record in records), sum(record["people"] for record in records)
        cells = [_cell(means[measure]) if means else "" for measure in columns]
        worth = [record["objective"] for record in records if record.get("objective") is not None]
        objective = spread(worth) if " " in method and len(worth) == len(records) else ""
        cpu = f"{np.mean([record['cpu_s'] for record in records]):.2f}" if method != "dice" else ""
        lines.append([_title(method), f"{found}/{asked}", *cells, objective, cpu])
        row = _printed(table, name, method)
        if row:
            lines.append(["*paper*", "", *(_cell(row[one]) if one in row else "" for one in columns), "", ""])
        for record in records:
            for status, count in record["statuses"].items():
                if status not in {"answered", "feasible", "optimal"}:
                    failed[f"{_title(method)}: {status}"] += count
        if ended := sum(record["put_back"] for record in records):
            put_back.append(f"{_title(method)} {ended} of {found}")
    text = markdown(("method", "plans", *(HEADS[one] for one in columns), "objective", "CPU s"), lines)
    if failed:
        lost = "; ".join(f"{what} {count} times" for what, count in failed.items())
        text += f"\n\nNot answered, or not to the end: {lost}."
    if put_back:
        text += f"\n\nThe descent's last clamp left the margin, and the plan was put back: {'; '.join(put_back)}."
    return text


def _printed(table: int, name: str, method: str) -> dict[str, list[float]] | None:
    """Return the paper's row: of COPA, that of its own descent."""
    return published().get((table, name, method.replace("descent", "copa")))


# ---- why -------------------------------------------------------------------------------------------------------------
def _difference_table(kept: Kept, table: int, names: Sequence[str], protocol: str) -> str:
    """Return a row for each method that the paper has."""
    lines = []
    for name in names:
        for method in methods(table, protocol):
            row = _printed(table, name, method)
            means = summary(group(kept, f"{table}/{protocol}/{name}", method))
            if row and means:
                cells = [_beside(means[one], row[one]) if one in row else "" for one in list(HEADS)[: 4 + (table == 4)]]
                lines.append([name, _title(method), *cells])
    head = ("data", "method", *list(HEADS.values())[: 4 + (table == 4)])
    return markdown(head, lines) if lines else ""


def _beside(ours: Sequence[float], paper: Sequence[float | None]) -> str:
    """Return our mean less the paper's, marked where it is more than the paper's spread and its rounding."""
    off = ours[0] - float(paper[0] or 0.0)
    far = abs(off) > float(paper[1] or 0.0) + 0.0005
    return f"**{off:+.3f}**" if far else f"{off:+.3f}"


class _Causes:
    """Why numbers differ from the paper's, in numbers of the same record.

    Parameters
    ----------
    kept, table, protocol, names
        The record's, the table, its protocol and its data sets.
    """

    def __init__(self, kept: Kept, table: int, protocol: str, names: Sequence[str]) -> None:
        self.kept, self.table, self.protocol, self.names = kept, table, protocol, names
        self.last = JUDGED[table]

    def text(self) -> str:
        """Return the causes."""
        if self.protocol == "honest":
            return self._honest()
        lines = self._linear() if self.table == 1 else self._network()
        return "\n".join(f"- {line}" for line in lines)

    def _of(self, name: str, method: str, measure: str) -> list[float]:
        records = group(self.kept, f"{self.table}/{self.protocol}/{name}", method)
        return [record[measure] for record in records if record["plans"]]

    def _mean(self, name: str, method: str, measure: str) -> str:
        found = self._of(name, method, measure)
        return f"{np.mean(found):.3f}" if found else "none"

    def _range(self, name: str, method: str, measure: str) -> str:
        found = self._of(name, method, measure)
        return f"{min(found):.3f} to {max(found):.3f}" if found else "none"

    def _each(self, names: Sequence[str], method: str, measure: str) -> str:
        return ", ".join(f"{self._mean(name, method, measure)} on {name}" for name in names)

    def _shifts(self) -> str:
        found = {name: _abouts(self.kept, 1, self.protocol, name) for name in self.names}
        return ", ".join(f"{name} {np.mean([one['shift'] for one in abouts]):.2f}" for name, abouts in found.items())

    def _linear(self) -> list[str]:
        descent, search, tenfold = f"descent {self.last}", f"search {self.last}", f"tenfold {self.last}"
        return [
            (
                "*Models.* The released ones start unseeded and stop early, so that moments, futures and with them L* "
                "differ from run to run. On SBA the present model itself does: DiCE's empirical validity is from "
                f"{self._range('sba', 'dice', 'empirical')} over the seeds, and its L* from "
                f"{self._range('sba', 'dice', 'lower')}. [Which rule stops it](copa_stopping.md) has the run."
            ),
            (
                "*Plans that coincide.* The objective is least where counterfactuals nearly coincide, wherever the "
                "validity value is large against the weight of the determinant: the diversity of the descent is "
                f"{self._each(self.names, descent, 'diversity')}, that of the search "
                f"{self._each(self.names, search, 'diversity')}; the printed plans of German and Student are apart. "
                f"With ten times the covariance the descent has {self._each(self.names, tenfold, 'diversity')}, but an "
                f"L* of {self._each(self.names, tenfold, 'lower')}. What the rest is we do not know."
            ),
            (
                f"*Futures.* L* promises something of futures whose moments are within {RADIUS:g}; those of the data "
                f"are farther away: {self._shifts()}. On SBA the descent's plans, which stay apart, have a validity of "
                f"{self._mean('sba', descent, 'empirical')}, from {self._range('sba', descent, 'empirical')} over the "
                "seeds, and those of the search, nearer to what the present moments favour most, "
                f"{self._mean('sba', search, 'empirical')}."
            ),
        ]

    def _network(self) -> list[str]:
        descent = f"descent {self.last}"
        return [
            "*Another network and another local model.* The paper says nothing of how its networks were trained, and "
            "its LIME is another local model than ours. Plans of the descent are at "
            f"{self._each(self.names, descent, 'proximity')}; the paper's at "
            + ", ".join(f"{published()[4, name, f'copa {self.last}']['proximity'][0]:.3f}" for name in self.names)
            + ".",
            f"*Current validity.* The present network accepts {self._each(self.names, descent, 'current')} of these "
            "plans (the paper: "
            + ", ".join(f"{published()[4, name, f'copa {self.last}']['current'][0]:.2f}" for name in self.names)
            + "): the local model that favours them is not the network, which has to be asked.",
            "*DiCE* ends at "
            + self._each(self.names, "dice", "proximity")
            + "; the paper's at "
            + ", ".join(f"{published()[4, name, 'dice']['proximity'][0]:.3f}" for name in self.names)
            + ". Which of its options the paper had otherwise we do not know.",
            (
                "L* is by an assumed covariance of 0.05 I of local slopes, empirical validity by networks: neither "
                "bounds the other."
            ),
        ]

    def _honest(self) -> str:
        descent, search = f"descent {self.last}", f"search {self.last}"
        first = "The paper's numbers are of other columns, labels and models; they are no target here. "
        if self.table == 1:
            return (
                f"{first}The moments of the futures are farther off than the radius of {RADIUS:g} ({self._shifts()}), "
                f"so that L* promises nothing of them: it is {self._each(self.names, descent, 'lower')} for the "
                f"descent, and the validity {self._each(self.names, descent, 'empirical')}; for the search it is "
                f"{self._each(self.names, search, 'lower')}, and the validity "
                f"{self._each(self.names, search, 'empirical')}. On German [the run beside](copa_survival.md) shows "
                "what is missing: neither a wider radius around the present nor more weight on validity, but later "
                "rows."
            )
        return (
            f"{first}A local model of samples as wide as the data may favour a person whom the network rejects: the "
            f"network accepts {self._each(self.names, descent, 'current')} of the descent's plans and "
            f"{self._each(self.names, search, 'current')} of the search's. Such a plan has to be put to the network "
            "(*current validity*). L* is by an assumed covariance of 0.05 I of local slopes, empirical validity by "
            "networks: neither bounds the other."
        )


def _cell(value: Sequence[float | None]) -> str:
    first, second = value
    return f"{first:.3f}" + ("" if second is None else f" ({second:.3f})")

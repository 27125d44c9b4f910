"""The pages of the study: its tables beside the paper's, what was to be reached, and its figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from shared import results
from shared.table import markdown

from coverage_validity import figures
from coverage_validity.causes import MEASURES
from coverage_validity.curves import ALIKE as SAME_LEVEL
from coverage_validity.curves import Comparison, compared, ends, standard_error
from coverage_validity.frontiers import WACHTER
from coverage_validity.summaries import OURS, RIVALS

__all__ = ["FIGURES", "draw", "page"]

Records = Mapping[str, Sequence[Mapping[str, Any]]]

#: A difference is said to be one from so many standard errors on.
ERRORS = 2.0
#: Validity of the favoured less that of the rejected below which the present tells little of the future; share of the
#: people above which two methods do alike.
LITTLE, ALIKE = 0.2, 0.9
#: A range of validity, of two frontiers, that is hardly one.
SHORT = 0.02
TITLES = {
    "recourse": "cost and validity of recourse",
    "quality": "fidelity and stability of surrogates",
    "planes": "machines in two dimensions",
    "causes": "what lies behind the differences",
}
#: Page that shows what lies behind the differences, by protocol.
CAUSES = "coverage_causes"
#: Rows of tables 1 and 4: the most robust level of each method.
ROWS = ("LIME-ROAR", "CLIME-ROAR", "LIMELS-ROAR", "QUAD-MPM-PROJ", "BW-MPM-PROJ", "FR-MPM-PROJ", "LogDet-MPM-PROJ")


#: Part -> what its picture shows, and what draws it.
FIGURES = {
    "recourse": ("Figures 5, 9 to 13 and 16", figures.draw_frontiers),
    "quality": ("Figures 4, 7, 8 and 15", figures.draw_quality),
    "planes": ("Figures 3 and 14", figures.draw_planes),
}


def page(record: Mapping[str, Any]) -> str:
    """Return the page of a part."""
    part = record["part"]
    writers = {"recourse": _recourse, "quality": _quality, "planes": _planes, "causes": _causes}
    title = f"# Coverage-validity-aware recourse: {TITLES[part]}, protocol {record['protocol']}"
    head = f"`{record['command']}`, {record['about']}."
    sections = [title, head, results.text_of(record)]
    if record["figure"]:
        sections.append(f"![{FIGURES[part][0]}]({record['figure']})")
    sections += writers[part](_by_data(record), record)
    return "\n\n".join(filter(None, sections)) + "\n"


def draw(record: Mapping[str, Any], path: Path) -> None:
    """Draw the picture of a part into a file."""
    FIGURES[record["part"]][1](_by_data(record), path)


def _by_data(record: Mapping[str, Any]) -> Records:
    """Return what is kept of each fold, by data set."""
    folds: dict[str, list[Any]] = {}
    for name in record["data"]:
        head = f"{record['part']}/{name}/{record['protocol']}/"
        folds[name] = [found for key, found in record["results"].items() if key.startswith(head)]
    return folds


@cache
def published() -> Mapping[str, Any]:
    """Return what the paper's text has of its tables: table, data set, method, measure, mean and spread."""
    found: Mapping[str, Any] = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
    return found


def _spread(values: Sequence[float]) -> str:
    """Return mean and standard error over folds."""
    kept = [value for value in values if not np.isnan(value)]
    if not kept:
        return "none"
    return f"{np.mean(kept):.2f} ({standard_error(kept):.2f})"


def _printed(table: str, name: str, method: str) -> list[str]:
    """Return cost and validities as the paper prints them."""
    row = published().get(table, {}).get(name, {}).get(method, {})
    cells = []
    for measure in ("cost", "current_validity", "future_validity"):
        cells.append(f"{row[measure][0]:.2f}" if measure in row else "")
    return cells


# ---- recourse --------------------------------------------------------------------------------------------------------
def _recourse(folds: Records, record: Mapping[str, Any]) -> list[str]:
    size = record["size"]
    about = (
        f"{size['people']} people at most a fold, {size['folds']} folds, each with seeds of its own for sampler, "
        f"surrogates and networks; {size['futures']} networks of the future each. Mean over folds, in parentheses its "
        "standard error. Cost is the l1 distance in the columns as the networks see them; current validity is the "
        "share of points that the present network favours, future validity the share of the networks of the future, of "
        "all points."
    )
    sections = [about]
    if record["is_full"]:
        sections += ["## What was to be reached", *_gate(folds, record["protocol"])]
    sections += ["## Tables 1 and 4", _most_robust(folds), "## Tables 2 and 5", _actions(folds)]
    sections += ["## Table 3", *_classifiers(folds, record["protocol"]), "## Seconds", _seconds(folds)]
    return sections


def _gate(folds: Records, protocol: str) -> list[str]:
    """Return at which levels of validity our projection is cheaper than LIME with ROAR."""
    rows = []
    reaches = []
    missed = []
    apart = []
    of_data = []
    cheaper = shown = dearer = 0
    for name in folds:
        counts = [0, 0, 0]  # levels, those at which we are cheaper, and those by two standard errors
        for rival in RIVALS:
            people = sum(fold["pairs"][rival][OURS]["people"] for fold in folds[name])
            both = ends(folds[name], rival)
            reaches.append([name, rival, people, *(cell for one in both.values() for cell in _ends(one))])
            levels = compared(folds[name], rival)
            if not levels:
                apart.append(_apart(name, rival, both))
            for one in levels:
                mean, error = one.difference
                is_cheaper = mean < 0.0
                is_shown = mean < -ERRORS * error
                dearer += mean > ERRORS * error
                counts = [counts[0] + 1, counts[1] + is_cheaper, counts[2] + is_shown]
                if not is_cheaper:
                    missed.append(f"{name}, {rival} at {one.level:.3f}")
                answer = "yes" if is_shown else "yes, not shown" if is_cheaper else "no"
                rows.append([name, rival, *_compared(one), answer])
        if counts[0]:
            of_data.append(f"{name} at {counts[1]} of {counts[0]}, by two standard errors at {counts[2]}")
        cheaper += counts[1]
        shown += counts[2]
    head = ["data", "rival", "future validity", OURS, "rival's cost", "paired difference", "cheaper"]
    said = (
        f"{OURS} is to cost less than LIME with ROAR at three evenly spaced levels of the future validity that both "
        "frontiers cover. A frontier is that of a method's means over the folds; costs between two of its points are "
        "interpolated, and paired fold by fold, over the people to whom both methods give all their points; levels no "
        f"farther than {SAME_LEVEL:g} apart count once. It is cheaper at {cheaper} of {len(rows)} levels, by two "
        f"standard errors at {shown}, and dearer by as much at {dearer}: {'; '.join(of_data)}."
    )
    if missed:
        said += f" It is not at: {'; '.join(missed)}. What lies behind it is in [causes]({CAUSES}_{protocol}.md)."
    sections = [said]
    short = _short_ranges(folds)
    if short:
        sections.append(short)
    if apart:
        sections.append("No validity that both reach: " + "; ".join(apart) + ".")
    sections.append(markdown(head, rows))
    head = ["data", "rival", "people", f"{OURS}, from", "to", "rival, from", "to"]
    sections += ["The frontiers' ends, future validity at its cost:", markdown(head, reaches)]
    return sections


def _ends(one: tuple[float, float, float, float]) -> list[str]:
    return [f"{one[0]:.3f} at {one[1]:.2f}", f"{one[2]:.3f} at {one[3]:.2f}"]


def _short_ranges(folds: Records) -> str:
    """Return where two frontiers have so little in common that the levels are one."""
    said = []
    for name in folds:
        for rival in RIVALS:
            both = ends(folds[name], rival)
            low = max(one[0] for one in both.values())
            high = min(one[2] for one in both.values())
            if 0.0 <= high - low < SHORT:
                said.append(f"{high - low:.3f} on {name} with {rival}")
    if not said:
        return ""
    return f"The range that both cover is shorter than {SHORT:g}, so that its levels are nearly one: {', '.join(said)}."


def _apart(name: str, rival: str, both: Mapping[str, tuple[float, float, float, float]]) -> str:
    """Return which of two frontiers without a common validity is above the other, and what each costs there."""
    ours, theirs = both[OURS], both[rival]
    if theirs[2] <= ours[0]:
        return (
            f"on {name} {rival} ends at {theirs[2]:.3f} for {theirs[3]:.2f}, below where {OURS} begins, {ours[0]:.3f} "
            f"for {ours[1]:.2f}"
        )
    return (
        f"on {name} {rival} begins at {theirs[0]:.3f} for {theirs[1]:.2f}, above where {OURS} ends, {ours[2]:.3f} "
        f"for {ours[3]:.2f}"
    )


def _compared(one: Comparison) -> list[str]:
    mean, error = one.difference
    return [f"{one.level:.3f}", _spread(one.ours), _spread(one.theirs), f"{mean:+.3f} ({error:.3f})"]


def _most_robust(folds: Records) -> str:
    rows = []
    for name, records in folds.items():
        for method in (*ROWS, WACHTER):
            place = 0 if method == WACHTER else -1
            each = [record["alone"][method] for record in records if record["alone"][method]["people"]]
            cells = [_spread([one[key][place] for one in each]) for key in ("cost", "current", "future")]
            people = sum(one["people"] for one in each)
            rows.append([name, method, people, *cells, *_printed("4", name, method)])
    head = ["data", "method", "people", "cost", "current", "future", "cost, paper", "current, paper", "future, paper"]
    return (
        "Each method at its most robust level, radius 10 or a ball of 0.2, Wachter at 0.5; people: those to whom it "
        "gives a point at every level. Of the paper's tables the text keeps these numbers.\n\n" + markdown(head, rows)
    )


def _actions(folds: Records) -> str:
    rows = []
    for name, records in folds.items():
        for surrogate in records[0]["actions"]:
            each = [record["actions"][surrogate] for record in records]
            cells = [_spread([one[key] for one in each]) for key in ("cost", "current", "future")]
            without = sum(one["without"] for one in each)
            rows.append([name, surrogate, *cells, without, *_printed("5", name, surrogate)])
    head = ["data", "surrogate", "cost", "current", "future", "without"]
    head += ["cost, paper", "current, paper", "future, paper"]
    return (
        "The grid of actions with the least greatest shift of a percentile, as the engine proves it over each "
        "surrogate; without: people for whom no action reaches the surrogate's favourable side.\n\n"
        + markdown(head, rows)
    )


def _classifiers(folds: Records, protocol: str) -> list[str]:
    rows = []
    for name, records in folds.items():
        for which in records[0]["classifiers"]:
            accuracies = [record["classifiers"][which][0] for record in records]
            areas = [record["classifiers"][which][1] for record in records]
            rows.append([name, which, _spread(accuracies), _spread(areas)])
    said = (
        "The networks of the future saw four fifths of the later rows. How far they are from the present one is in "
        f"[causes]({CAUSES}_{protocol}.md)."
    )
    return [said, markdown(["data", "network", "accuracy", "area under the curve"], rows)]


def _seconds(folds: Records) -> str:
    """Return what each method took for one person, all its levels together."""
    names = list(next(iter(folds.values()))[0]["seconds"])
    rows = []
    for method in names:
        cells = [f"{1000 * np.mean([record['seconds'][method] for record in folds[name]]):.0f}" for name in folds]
        rows.append([method, *cells])
    text = "Milliseconds for one person at all levels together; the first that asks for a sample draws it."
    return f"{text}\n\n" + markdown(["method", *folds], rows)


# ---- quality ---------------------------------------------------------------------------------------------------------
def _quality(folds: Records, record: Mapping[str, Any]) -> list[str]:
    about = (
        f"{record['size']['judged']} test rows a fold. Fidelity: share of 1,000 points of a ball about the row on "
        "which surrogate and network agree, higher is better; stability: greatest distance of the surrogate's "
        "weights, scaled to length 1, from those of ten neighbours, lower is better. Mean over folds, in parentheses "
        "its standard error; of the condition number the median over rows, its median over folds."
    )
    sections = [about, _best(folds)]
    for setting in next(iter(folds.values()))[0]:
        rows = []
        for name, records in folds.items():
            for count in records[0][setting]:
                each = [one[setting][count] for one in records]
                condition = np.median([one["condition"] for one in each])
                for surrogate in each[0]["surrogates"]:
                    cells = []
                    for measure in ("fidelity", "stability"):
                        cells.append(_spread([one["surrogates"][surrogate][measure] for one in each]))
                    rows.append([name, count, surrogate, *cells, f"{condition:.2g}"])
        head = ["data", "samples", "surrogate", "fidelity", "stability", "condition number"]
        sections += [f"## Figure {setting}", markdown(head, rows)]
    return sections


def _best(folds: Records) -> str:
    """Return which surrogate is the most faithful and which the steadiest, at the greatest sample."""
    rows = []
    for setting in next(iter(folds.values()))[0]:
        for name, records in folds.items():
            count = list(records[0][setting])[-1]
            best = []
            for measure, first in (("fidelity", max), ("stability", min)):
                means = {}
                for surrogate in records[0][setting][count]["surrogates"]:
                    values = [one[setting][count]["surrogates"][surrogate][measure] for one in records]
                    means[surrogate] = float(np.mean(values))
                best.append(first(means, key=means.__getitem__))
            rows.append([setting, name, count, *best])
    said = (
        "LIME is fitted around the mean of the training rows: whom it is asked about hardly changes it, so that it is "
        "steady whether it says what the network says or not."
    )
    return f"{said}\n\n" + markdown(["figure", "data", "samples", "most faithful", "steadiest"], rows)


# ---- planes ----------------------------------------------------------------------------------------------------------
def _planes(folds: Records, record: Mapping[str, Any]) -> list[str]:
    del record
    found = next(one for records in folds.values() for one in records if one)
    rows = []
    for divergence, lines in found["lines"].items():
        for radius, (first, second, intercept) in lines.items():
            rows.append([divergence, radius, f"{first:.3f}", f"{second:.3f}", f"{intercept:.3f}"])
    return [markdown(["divergence", "unfavourable radius", "first weight", "second weight", "intercept"], rows)]


# ---- causes ----------------------------------------------------------------------------------------------------------
def _causes(folds: Records, record: Mapping[str, Any]) -> list[str]:
    size = record["size"]
    meant = "; ".join(f"{name}: {text}" for name, text in MEASURES.items())
    rows = []
    for name, records in folds.items():
        rows.append([name, *(_spread([float(one[measure]) for one in records]) for measure in MEASURES)])
    about = (
        f"{size['futures']} networks of the future a fold, {size['people']} people at most. {meant}. "
        "Mean over folds, in parentheses its standard error."
    )
    said = [_said_of(name, records) for name, records in folds.items()]
    return [about, markdown(["data", *MEASURES], rows), " ".join(filter(None, said))]


def _said_of(name: str, records: Sequence[Mapping[str, Any]]) -> str:
    """Return what the measures of a data set say of its frontiers."""
    mean = {measure: float(np.nanmean([one[measure] for one in records])) for measure in MEASURES}
    said = []
    if mean["kept"] - mean["unmoved"] < LITTLE:
        said.append(
            f"On {name} the networks of the future favour {mean['unmoved']:.2f} of those whom the present one rejects "
            f"and {mean['kept']:.2f} of those whom it favours: what the present network says tells little of them, so "
            "that future validity hardly depends on how far a point goes, and frontiers are short."
        )
    if mean["same column"] > ALIKE:
        said.append(
            f"On {name} both methods move the same column most for {mean['same column']:.0%} of the people, with "
            f"{mean['in that column']:.0%} of the cost: they differ only in how far each person goes along it, so that "
            "their frontiers nearly coincide."
        )
    return " ".join(said)

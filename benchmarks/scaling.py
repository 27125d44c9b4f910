"""How the seconds of a call grow with trees, depth, columns, levels, rows of data and answers, one at a time.

The model in the middle is a forest of 100 trees of depth 5 on HELOC, or on Adult where levels are counted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import common
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import ScalarFormatter
from sklearn.ensemble import RandomForestClassifier

import ceopt

TITLE = "What a call grows with"
MEASURES = ("ceopt/search", "formulations/predictors")

#: What is varied, and over which values; depth None is to the end.
CURVES: dict[str, list[Any]] = {
    "trees": [10, 30, 100, 300],
    "depth": [2, 3, 5, 8, 12, None],
    "columns": [4, 8, 12, 16, 23],
    "levels": [2, 5, 10, 20, 41],
    "rows of data": [250, 1000, 4000],
    "answers": [1, 2, 3, 5, 10],
}
#: The column whose rarest levels become one.
MANY_LEVELS = "native_country"


@dataclass(frozen=True)
class Asked:
    """A model, its space and data, and the people whom it refuses."""

    model: Any
    space: ceopt.FeatureSpace
    train: pd.DataFrame
    people: pd.DataFrame
    target: int


def asked_of(curve: str, value: Any, rows: int) -> Asked:
    """Fit a model with as many trees, levels, columns or rows of data."""
    task = common.load("adult" if curve == "levels" else "heloc")
    train, labels, others, space = task.train, task.labels, task.others, task.bunch.space
    size, depth = 100, 5
    match curve:
        case "trees":
            size = value
        case "depth":
            depth = value
        case "columns":
            space = ceopt.FeatureSpace([space[name] for name in space.names[:value]])
        case "rows of data":
            train, labels = train.iloc[:value], labels.iloc[:value]
        case "levels":
            kept = set(train[MANY_LEVELS].value_counts().index[: value - 1])
            train, others = (
                frame.assign(**{MANY_LEVELS: frame[MANY_LEVELS].where(frame[MANY_LEVELS].isin(kept), "other")})
                for frame in (train, others)
            )
            space = ceopt.FeatureSpace.infer(train)
    train, others = train[list(space.names)], others[list(space.names)]
    forest = RandomForestClassifier(size, max_depth=depth, random_state=common.SEED)
    model = common.one_hot(train, forest).fit(train, labels)
    return Asked(model, space, train, others[model.predict(others) != task.target].head(rows + 1), task.target)


def ask(asked: Asked, row: pd.DataFrame, n: int, limit_s: float) -> dict[str, Any]:
    """Return the status, the size of the last program and the processor's seconds of a call."""
    cpu = time.process_time()
    result = ceopt.explain(
        asked.model, row, asked.space, target=asked.target, data=asked.train, n=n, time_limit_s=limit_s
    )
    spent = time.process_time() - cpu
    invalid = sum(int(asked.model.predict(one.frame[list(row)])[0] != asked.target) for one in result)
    status, timings = str(result.status), dict(result.timings)
    return {"status": status, "size": dict(result.size), "cpu": spent, "timings": timings, "invalid": invalid}


def main() -> None:
    """Ask along each curve, and write the report."""
    options = common.arguments("One number of a question varied at a time.", rows=10, limit=30)
    rows = 2 if options.quick else options.rows
    settings = {"rows": rows, "limit_s": options.limit, "curves": CURVES, "seed": common.SEED}
    points = [(curve, value) for curve, values in CURVES.items() for value in values]
    asks = {f"{curve}/{value}": partial(at_point, curve, value, rows, options.limit) for curve, value in points}
    common.asked_one_by_one("scaling", settings, asks, (TITLE, MEASURES, text_of), quick=options.quick, draw=draw)


def at_point(curve: str, value: int, rows: int, limit_s: float) -> dict[str, Any]:
    """Ask about some people at one point of a curve, after another one."""
    asked = asked_of(curve, value, rows)
    n = value if curve == "answers" else 1
    people = [asked.people.iloc[[place]] for place in range(len(asked.people))]
    first = ask(asked, people[-1], n, limit_s)
    records = [ask(asked, row, n, limit_s) for row in people[:-1]]
    return {"curve": curve, "value": value, "first": first, "people": records}


# ---- the page --------------------------------------------------------------------------------------------------------
def text_of(record: dict[str, Any]) -> str:
    """Tabulate each curve."""
    settings = record["settings"]
    about = (
        f"{settings['rows']} people whom the model refuses at each point, {settings['limit_s']} s each. Seconds are "
        "the processor's of one call after another person's, for whom the model was read (*first*, with what is "
        "imported). *rows* is the size of the last program at the median, 0 where none was solved."
    )
    parts = [about]
    for curve in CURVES:
        lines = []
        for one in record["records"]:
            if one["curve"] != curve:
                continue
            proved = sum(r["status"] in {"optimal", "infeasible"} for r in one["people"])
            size = np.median([r["size"].get("rows", 0) for r in one["people"]])
            value = "to the end" if one["value"] is None else one["value"]
            spent = common.spread([r["cpu"] for r in one["people"]], 2)
            invalid = sum(r["invalid"] for r in one["people"])
            of_all = f"{proved} of {len(one['people'])}"
            lines.append([value, of_all, invalid, f"{size:.0f}", f"{one['first']['cpu']:.2f}", spent])
        head = [curve, "proved", "invalid", "rows", "first", "median / 90 % / worst"]
        parts += [f"## {curve.capitalize()}", common.markdown_table(head, lines)]
    return "\n\n".join(parts)


def draw(records: list[dict[str, Any]]) -> None:
    """Draw the median of each curve, and all people as points."""
    figure, axes = plt.subplots(2, 3, figsize=(9.0, 5.2), layout="constrained", sharey=True)
    for axis, (curve, values) in zip(axes.flat, CURVES.items(), strict=True):
        points = [one for one in records if one["curve"] == curve]
        places = [20 if value is None else value for value in values]
        for place, one in zip(places, points, strict=True):
            spent = [r["cpu"] for r in one["people"]]
            axis.plot([place] * len(spent), spent, "o", color="0.7", ms=3)
        axis.plot(places, [np.median([r["cpu"] for r in one["people"]]) for one in points], "o-", color="C0", ms=4)
        axis.set(xlabel=curve, xscale="log", yscale="log", xticks=places)
        axis.set_xticklabels(["end" if value is None else str(value) for value in values])
        axis.xaxis.set_minor_locator(plt.NullLocator())
        axis.yaxis.set_major_formatter(ScalarFormatter())
        axis.grid(color="0.93")
    figure.supylabel("seconds of the processor a person")
    figure.savefig(common.RESULTS / "scaling.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()

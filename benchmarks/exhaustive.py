"""Every near-optimal way out of forests: complete or not, how many, how long, and the same by brute force."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import common
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

import ceopt
from ceopt.diverse import exhaustive

TITLE = "Every near-optimal way out"
MEASURES = ("ceopt/diverse",)

DATA_SETS = ("german", "heloc")
#: Trees and depth: of the bar, and small enough for brute force on more people.
FORESTS = {"20 trees of depth 4": (20, 4), "5 trees of depth 3": (5, 3)}
#: Epsilon as a share of the least cost.
SHARE = 0.1
#: Combinations of values within the threshold that brute force takes.
MOST = 2_000_000
#: Rows that a forest predicts at once.
AT_ONCE = 100_000


@dataclass(frozen=True, slots=True)
class Values:
    """What one column may become: one value of each cell, the cheapest, with its price and its encoded columns."""

    prices: NDArray[np.float64]
    encoded: NDArray[np.float64]
    places: NDArray[np.intp]


def sides(model: Any, encoded: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return on which side of every split of the forest encoded rows lie, as scikit-learn compares: (n, splits)."""
    pairs = [
        (feature, threshold)
        for tree in model[-1].estimators_
        for feature, threshold in zip(tree.tree_.feature, tree.tree_.threshold, strict=True)
        if feature >= 0
    ]
    features, thresholds = np.array([f for f, _ in pairs]), np.array([t for _, t in pairs])
    return encoded.astype(np.float32)[:, features].astype(np.float64) <= thresholds


def values_of(model: Any, space: Any, row: pd.DataFrame, name: str, most: float) -> Values:
    """Try every value that a column may take, and keep the cheapest of those that no split and no level tells apart."""
    feature, home = space[name], row[name].iloc[0]
    if feature.is_finite:
        tried = list(feature.levels)
    else:
        low = min(feature.lower, home) if feature.lower_inferred else feature.lower
        high = max(feature.upper, home) if feature.upper_inferred else feature.upper
        tried = list(range(int(low), int(high) + 1))
    if feature.direction == "increasing":
        tried = tried[tried.index(home) :]
    if feature.direction == "decreasing":
        tried = tried[: tried.index(home) + 1]
    if not feature.mutable:
        tried = [home]
    frame = pd.concat([row] * len(tried), ignore_index=True)
    frame[name] = pd.Series(tried, dtype=row[name].dtype)
    encoded = model[:-1].transform(frame)
    factual = space.row(row)
    points = np.repeat(space.coordinates(row), len(tried), axis=0)
    points[:, space.names.index(name)] = [feature.to_coordinate(value) for value in tried]
    prices = ceopt.L1().objectives(space, factual, points)
    cells: dict[Any, int] = {}
    marks = sides(model, encoded)
    for k in np.argsort(prices, kind="stable").tolist():
        mark = tried[k] if feature.is_finite else marks[k].tobytes()
        if prices[k] <= most:
            cells.setdefault(mark, k)
    kept = np.array(list(cells.values()))
    places = np.flatnonzero((encoded != encoded[0]).any(axis=0))
    return Values(prices[kept], encoded[kept][:, places], places)


def brute_force(model: Any, space: Any, row: pd.DataFrame, target: int, most: float) -> tuple[int | None, int]:
    """Count the favourable cells within a cost, and the combinations that were tried; None where there are too many."""
    columns = [values_of(model, space, row, name, most) for name in space.names]
    chosen, spent = np.zeros((1, 0), dtype=np.int16), np.zeros(1)
    for column in columns:
        spent = (spent[:, None] + column.prices[None, :]).ravel()
        near = np.flatnonzero(spent <= most)
        if len(near) > MOST:
            return None, len(near)
        owner, value = np.divmod(near, len(column.prices))
        chosen = np.concatenate([chosen[owner], value[:, None].astype(np.int16)], axis=1)
        spent = spent[near]
    base, found = model[:-1].transform(row), 0
    for first in range(0, len(chosen), AT_ONCE):
        part = chosen[first : first + AT_ONCE]
        encoded = np.repeat(base, len(part), axis=0)
        for j, column in enumerate(columns):
            encoded[:, column.places] = column.encoded[part[:, j]]
        found += int((model[-1].predict(encoded) == target).sum())
    return found, len(chosen)


def ask(task: common.Task, model: Any, row: pd.DataFrame, limit_s: float) -> dict[str, Any]:
    """Ask for the least cost, then for all within a tenth more, and check it by brute force where that can be done."""
    space = task.bunch.space
    best = ceopt.explain(model, row, space, target=task.target, time_limit_s=limit_s)
    epsilon = SHARE * best[0].cost
    began, cpu = time.perf_counter(), time.process_time()
    found = exhaustive(model, row, space, target=task.target, epsilon=epsilon, time_limit_s=limit_s)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    most = (found[0].cost + epsilon) * (1.0 + 1e-9)
    cells, tried = brute_force(model, space, row, task.target, most)
    return {
        "status": str(found.status),
        "complete": found.complete,
        "reason": found.reason,
        "cells": len(found),
        "cost": found[0].cost,
        "of_explain": best[0].cost,
        "dearest": found[-1].cost,
        "invalid": int((model.predict(found.to_frame()) != task.target).sum()),
        "broken": not ceopt.verify(found, model, space, target=task.target).ok,
        "seconds": seconds,
        "cpu": cpu,
        "walk": found.timings["walk"],
        "brute_force": cells,
        "tried": tried,
    }


def main() -> None:
    """Ask for ten rejected people of each data set and forest, and write the report."""
    options = common.arguments("Exhaustive sets of forests.", rows=10, limit=60)
    rows = 2 if options.quick else options.rows
    settings = {"rows": rows, "limit_s": options.limit, "share": SHARE, "most": MOST}
    journal = common.Journal("exhaustive-quick" if options.quick else "exhaustive", settings)
    cases = [(data, forest) for data in DATA_SETS for forest in FORESTS]
    tasks = {data: common.as_amounts(common.load(data)) for data in DATA_SETS}
    progress = common.bar(range(len(cases) * rows), len(cases) * rows)
    for data, forest in cases:
        trees, depth = FORESTS[forest]
        model = common.fit(tasks[data], RandomForestClassifier(trees, max_depth=depth, random_state=common.SEED))
        people = common.rejected(tasks[data], model, rows)
        for place in range(len(people)):
            key = f"{data}/{forest}/{place}"
            if key not in journal.done:
                record = ask(tasks[data], model, people.iloc[[place]], options.limit)
                journal.add(key, {"data": data, "forest": forest, "row": place, **record})
            progress.update()
    record = {"settings": settings, "records": journal.records}
    common.report("exhaustive", TITLE, MEASURES, text_of, record, quick=options.quick)
    journal.close()


def text_of(record: dict[str, Any]) -> str:
    """Summarise by data set and forest, and say what brute force counts otherwise."""
    settings, records = record["settings"], record["records"]
    lines = []
    for data, forest in dict.fromkeys((r["data"], r["forest"]) for r in records):
        part = [r for r in records if (r["data"], r["forest"]) == (data, forest)]
        checked = [r for r in part if r["brute_force"] is not None]
        same = sum(r["brute_force"] == r["cells"] for r in checked)
        lines.append(
            [
                data,
                forest,
                f"{sum(r['complete'] for r in part)} of {len(part)}",
                ", ".join(str(r["cells"]) for r in part),
                common.spread([r["seconds"] for r in part], 2),
                common.spread([r["cpu"] for r in part], 2),
                f"{same} of {len(checked)}",
            ]
        )
    invalid = sum(r["invalid"] + r["broken"] for r in records)
    cheaper = sum(r["cost"] < r["of_explain"] * (1 - 1e-9) for r in records)
    tried = sum(r["tried"] for r in records if r["brute_force"] is not None)
    return (
        f"`exhaustive(model, row, space, target=..., epsilon=...)` with epsilon {SHARE:.0%} of the least cost, l1, no "
        f"margin, {settings['limit_s']} s a row. Seconds: median / 90 % / worst, wall and CPU, answers made and "
        "verified. Brute force takes every combination of one value per cell and column whose prices add up to the "
        "threshold at most, by scikit-learn's own transform, thresholds and predict; it is done where these are "
        f"{MOST:,} or fewer ({tried:,} in all), and counts favourable cells.\n\n"
        + common.markdown_table(
            ["data", "forest", "complete", "cells, by row", "wall", "CPU", "equal to brute force"], lines
        )
        + f"\n\n{invalid} answers are invalid. In {cheaper} rows a cell that the model favours by less than the margin "
        "of `explain` is cheaper than the answer of that."
    )


if __name__ == "__main__":
    main()

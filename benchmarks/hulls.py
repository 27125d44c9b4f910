"""Hulls of a whole table: weights that are priced (branch and price) against a program with all of them."""

from __future__ import annotations

import time
from typing import Any

import common
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import ceopt
from ceopt import Feature, FeatureSpace, Hull
from ceopt.formulations.constraints import hull_points

TITLE = "Hulls of a whole table"
MEASURES = ("solvers/branch_and_price.py", "formulations/constraints/hull_points.py")

DATA = "heloc"
KINDS = ("continuous", "integer")
#: Points up to which a program has the weights of all.
WAYS = {"priced": hull_points.MANY, "all weights": 10**9}


def asked(recourse: ceopt.Recourse, row: pd.DataFrame, model: Any, target: Any, way: str) -> dict[str, Any]:
    """Ask for one person, and put the answer to the model."""
    hull_points.MANY = WAYS[way]
    began, wall = time.process_time(), time.perf_counter()
    (result,) = recourse.explain(row)
    record: dict[str, Any] = {
        "way": way,
        "cpu_s": time.process_time() - began,
        "wall_s": time.perf_counter() - wall,
        "status": str(result.status),
        "cost": result[0].cost if len(result) else None,
        "gap": result[0].gap if len(result) else None,
        "size": dict(result.size),
    }
    if len(result):
        met = model.predict(result[0].frame.astype(row.dtypes))[0] == target
        record["invalid"] = not (met and result[0].verified)
    return record


def measured(kind: str, people: int, limit_s: float) -> list[dict[str, Any]]:
    """Ask for some people who are turned down, each in both ways, in turns."""
    task = common.load(DATA)
    X = pd.concat([task.train, task.others]).astype("int64" if kind == "integer" else "float64")
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(X, task.bunch.target.loc[X.index])
    ends = {name: (float(X[name].min()), float(X[name].max())) for name in X}
    space = FeatureSpace([Feature(name, kind=kind, lower=low, upper=high) for name, (low, high) in ends.items()])
    refused = X[model.predict(X) != task.target].sample(people, random_state=common.SEED)
    recourse = ceopt.Recourse(
        model, space, target=task.target, constraints=[Hull(X)], time_limit_s=limit_s, threads=1, why=False
    ).fit(X)
    records = []
    for place in common.bar(range(len(refused)), len(refused)):
        ways = common.rotated(list(WAYS), place)
        row = refused.iloc[[place]]
        records += [{"kind": kind, "person": place} | asked(recourse, row, model, task.target, way) for way in ways]
    return records


def text_of(record: dict[str, Any]) -> str:
    """Tabulate."""
    lines = []
    for kind in KINDS:
        for way in WAYS:
            own = [one for one in record["records"] if (one["kind"], one["way"]) == (kind, way)]
            if own:
                seconds = [one["cpu_s"] for one in own]
                lines.append([
                    kind, way, len(own), sum(one["status"] == "optimal" for one in own),
                    sum(one["cost"] is not None for one in own), sum(one.get("invalid", False) for one in own),
                    f"{np.median(seconds):.2f}", f"{np.quantile(seconds, 0.9):.2f}", f"{max(seconds):.2f}",
                    max(one["size"].get("variables", 0) for one in own),
                ])  # fmt: skip
    pairs = [
        [one for one in record["records"] if (one["kind"], one["person"]) == key]
        for key in dict.fromkeys((one["kind"], one["person"]) for one in record["records"])
    ]
    proved = [[one["cost"] for one in pair] for pair in pairs if all(one["status"] == "optimal" for one in pair)]
    worst = max((abs(a - b) / max(abs(a), abs(b), 1e-12) for a, b in proved), default=0.0)
    return (
        f"All {record['rows']:,} rows of HELOC, codes as amounts, a logistic model, HiGHS on one thread, at most "
        f"{record['limit_s']:g} s each. Each person is asked in both ways, in turns. Invalid: answers that the model "
        "or a rule refuses. Variables: the most that a program had.\n\n"
        + common.markdown_table(
            ["columns", "way", "people", "proved", "answered", "invalid", "CPU s, median", "90 %", "worst",
             "variables"],
            lines,
        )
        + f"\n\nOf the {len(proved)} people proved in both ways, costs differ by {worst:.1e} at most."
    )  # fmt: skip


def main() -> None:
    """Measure, and write the report."""
    options = common.arguments("Hulls of a whole table.", rows=20, limit=30)
    people = 1 if options.quick else options.rows
    records: list[dict[str, Any]] = []
    with threadpool_limits(1):
        for kind in KINDS:
            records += measured(kind, people, options.limit)
    count = len(common.load(DATA).bunch.data)
    record = {"rows": count, "limit_s": options.limit, "records": records}
    common.report("hulls", TITLE, MEASURES, text_of, record, quick=options.quick)


if __name__ == "__main__":
    main()

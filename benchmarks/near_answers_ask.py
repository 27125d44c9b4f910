"""Near answers about people whom one fitted model refuses, in a process of its own that is asked line by line.

``near_answers.py`` keeps one with today's ceopt, and one with 0.2.0 for a prototype of the search. A line of JSON gives
a way and the places of the first person and after the last; the answer is the seconds of the processor and a record
each. It imports no benchmark, as 0.2.0 runs it too.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pandas as pd

import ceopt

COHORT, ALONE, PROVED = "cohort", "alone", "proved"
SHORT, LONG = "prototype, short", "prototype, long"
#: Rows of the data that the prototype looks at; as many as today's search.
SAMPLED = 2000
#: Seconds of each person in a cohort.
COHORT_S = 60.0
Ask = Callable[[str, pd.DataFrame], list[dict[str, Any]]]


def today(task: dict[str, Any], limit_s: float) -> Ask:
    """Ask ceopt: a whole frame at once, or each person alone, with or without a proof."""
    model, target = task["model"], task["target"]
    recourse = ceopt.Recourse(model, task["space"], target=target, time_limit_s=COHORT_S, proof=False)
    recourse.fit(task["train"])

    def ask(way: str, people: pd.DataFrame) -> list[dict[str, Any]]:
        if way == COHORT:
            return list(map(told, recourse.explain(people)))
        return [
            told(
                ceopt.explain(
                    model, people.iloc[[place]], task["space"], target=target, data=task["train"],
                    time_limit_s=limit_s, proof=way == PROVED,
                )
            )
            for place in range(len(people))
        ]  # fmt: skip

    return ask


def told(result: Any) -> dict[str, Any]:
    """Return what is kept of a result; its answer is a frame until it has been predicted."""
    answer = result[0].frame if len(result) else None
    cost = result[0].cost if len(result) else None
    return {"status": str(result.status), "cost": cost, "bound": result.bound, "answer": answer}


def prototype(task: dict[str, Any], path: str) -> Ask:
    """Ask the search of a file: one batch, with climbs by random tastes and swaps (its long form) or without."""
    found = importlib.util.spec_from_file_location("prototype", path)
    if found is None or found.loader is None:
        sys.exit(f"{path} is no module.")
    search: Any = importlib.util.module_from_spec(found)
    found.loader.exec_module(search)
    question = search.Question(task["model"], task["space"], task["target"], task["train"])
    rows = coordinates(task["space"], task["train"])
    favoured = rows[question.slack(rows) >= 0]
    if len(favoured) > SAMPLED:
        favoured = np.random.default_rng(0).permutation(favoured)[:SAMPLED]
    first = coordinates(task["space"], task["people"].iloc[[-1]])
    cells = search.refine(question, first, favoured, rows)[2]["cells"]

    def ask(way: str, people: pd.DataFrame) -> list[dict[str, Any]]:
        form = {"climbs": 0, "stages": "cnlf"} if way == SHORT else {"stages": "cnlfs"}
        points, costs, _ = search.refine(
            question, coordinates(task["space"], people), favoured, rows, cells=cells, **form
        )
        answers = question.decode(np.nan_to_num(points), people)
        return [
            {"cost": float(cost), "answer": answers.iloc[[place]]} if np.isfinite(cost) else {"cost": None}
            for place, cost in enumerate(costs)
        ]

    return ask


def coordinates(space: Any, frame: pd.DataFrame) -> np.ndarray:
    """Return rows in coordinates, (n, d): a number itself, a level by its place."""
    columns = []
    for feature in space:
        values = frame[feature.name]
        if feature.is_finite:
            values = values.map({level: place for place, level in enumerate(feature.levels)})
        columns.append(values.to_numpy(dtype=np.float64))
    return np.column_stack(columns)


def clocked(ask: Ask, model: Any, target: Any, way: str, people: pd.DataFrame) -> dict[str, Any]:
    """Ask, and say of each answer whether the model, asked again, gives it the target."""
    began, cpu = time.perf_counter(), time.process_time()
    records = ask(way, people)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    for record in records:
        answer = record.pop("answer", None)
        record["invalid"] = answer is not None and bool(model.predict(answer[people.columns])[0] != target)
    return {"cpu": cpu, "seconds": seconds, "records": records}


def main(path: str, limit: str, file: str) -> None:
    """Read the model, tell what that took, and answer line by line; ``file`` is the prototype's, or empty."""
    task = joblib.load(path)
    task["space"] = ceopt.FeatureSpace(ceopt.Feature(**feature) for feature in task["features"])
    model, people = task["model"], task["people"]
    cpu = time.process_time()
    ask = prototype(task, file) if file else today(task, float(limit))
    reading = time.process_time() - cpu
    for way in (SHORT, LONG) if file else (COHORT, ALONE, PROVED):
        ask(way, people.iloc[[-1]])  # imports, and whatever the first call keeps
    predicted = []
    for _ in range(9):
        cpu = time.process_time()
        model.predict(people.iloc[[0]])
        predicted.append(time.process_time() - cpu)
    print(json.dumps({"predict": float(np.median(predicted)), "reading_s": reading}), flush=True)
    for line in sys.stdin:
        way, first, end = json.loads(line)
        print(json.dumps(clocked(ask, model, task["target"], way, people.iloc[first:end])), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])

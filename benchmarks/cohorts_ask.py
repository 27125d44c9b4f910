"""One fitted model and the people of a cohort, in a process of its own that is asked about parts of them.

``cohorts.py`` keeps one such process for each version of ceopt and lets them take turns. It imports no other benchmark,
as 0.2.0 runs it too.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import tracemalloc
import warnings
from typing import Any

import joblib
import numpy as np
import pandas as pd

import ceopt

TODAY, BEFORE, BYTES, ONE, TWO = "today", "0.2.0", "bytes", "one worker", "two workers"


def cohort(asked: Any, task: dict[str, Any], people: pd.DataFrame) -> dict[str, Any]:
    """Ask about some people in one call; seconds, and whether the model, asked again, gives the answers the target."""
    began, cpu = time.perf_counter(), time.process_time()
    results = asked.explain(people)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    answers = [result[0].frame[people.columns] for result in results if len(result)]
    predicted = task["model"].predict(pd.concat(answers)) if answers else np.array([])
    records = [{"status": str(result.status), "cost": result[0].cost if len(result) else None} for result in results]
    return {"cpu": cpu, "seconds": seconds, "invalid": int((predicted != task["target"]).sum()), "records": records}


def bytes_held(asked: Any, people: pd.DataFrame) -> dict[str, Any]:
    """Return how many bytes a row are held by a cohort, once all that is kept beside it is there."""
    asked.explain(people)
    tracemalloc.start()
    results = asked.explain(people)
    gc.collect()
    with_cohort = tracemalloc.get_traced_memory()[0]
    rows = len(results)
    del results
    gc.collect()
    held = with_cohort - tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return {"bytes": held / rows}


def side_by_side(asked: Any, people: pd.DataFrame, n_jobs: int) -> dict[str, Any]:
    """Ask about more people than there are, some of them several times, in one process or in several."""
    began, cpu = time.perf_counter(), time.process_time()
    asked.explain(people, n_jobs=n_jobs)
    return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}


def main(path: str, limit: str) -> None:
    """Fit, tell what that took, and answer line by line."""
    task = joblib.load(path)
    space = ceopt.datasets.load(task["data"]).space
    if task["data"] == "heloc":  # whose codes 0.2.0 takes for numbers: both are asked about columns of numbers
        space = ceopt.FeatureSpace.infer(task["train"])
    people = task["people"]
    cpu = time.process_time()
    asked = ceopt.Recourse(task["model"], space, target=task["target"], time_limit_s=float(limit)).fit(task["train"])
    fit_s = time.process_time() - cpu
    asked.explain(people.iloc[[-1]])  # imports, and whatever the first call keeps
    people = people.iloc[:-1]
    print(json.dumps({"people": len(people), "fit": fit_s}), flush=True)
    for line in sys.stdin:
        way, first, end = json.loads(line)
        rows = people.iloc[np.arange(first, end) % len(people)].reset_index(drop=True)
        if way == BYTES:
            answer = bytes_held(asked, rows)
        elif way in {ONE, TWO}:
            answer = side_by_side(asked, rows, 2 if way == TWO else 1)
        else:
            answer = cohort(asked, task, rows)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])

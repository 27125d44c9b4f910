"""One fitted model and people whom it refuses, in a process of its own that is asked about them one by one.

``default_models.py`` keeps one such process for each version of ceopt and lets them take turns: it writes a line of
JSON, the place of a person and a way, and reads a line with the answer. It imports no benchmark, as 0.2.0 runs it too.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import joblib
import numpy as np
import pandas as pd

import ceopt

TODAY, THREE, TEN, NEAR, BEFORE = "today", "today, n = 3", "today, n = 10", "today, proof=False", "0.2.0"


def ask(model: Any, task: dict[str, Any], row: pd.DataFrame, way: str, limit_s: float) -> dict[str, Any]:
    """Ask about a person; costs and seconds, and whether the model, asked again, gives the answers the target."""
    more: dict[str, Any] = {THREE: {"n": 3}, TEN: {"n": 10}, NEAR: {"proof": False}}.get(way, {})
    began, cpu = time.perf_counter(), time.process_time()
    result = ceopt.explain(
        model, row, task["space"], target=task["target"], data=task["train"], time_limit_s=limit_s, **more
    )
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    invalid = sum(int(model.predict(answer.frame[row.columns])[0] != task["target"]) for answer in result)
    return {
        "status": str(result.status),
        "proof": getattr(result, "proof", ""),
        "answers": len(result),
        "cost": result[0].cost if len(result) else None,
        "bound": result.bound,
        "size": dict(result.size),
        "invalid": invalid,
        "seconds": seconds,
        "cpu": cpu,
        "timings": dict(result.timings),
    }


def main(path: str, limit: str) -> None:
    """Read the model, tell what that took, and answer line by line."""
    task = joblib.load(path)
    task["space"] = ceopt.datasets.load(task["data"]).space
    model, people = task["model"], task["people"]
    first = ask(model, task, people.iloc[[-1]], TODAY, float(limit))  # imports, and reads the model
    predicted = []
    for _ in range(9):
        cpu = time.process_time()
        model.predict(people.iloc[[0]])
        predicted.append(time.process_time() - cpu)
    print(json.dumps({"people": len(people) - 1, "predict": float(np.median(predicted)), "first": first}), flush=True)
    for line in sys.stdin:
        place, way = json.loads(line)
        print(json.dumps(ask(model, task, people.iloc[[place]], way, float(limit))), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])

"""Cohorts: rows that ``Recourse.explain`` answers per CPU second, today beside 0.2.0, their bytes, and two workers.

Each version answers in a process of its own (``cohorts_ask.py``), and they take turns. ``--before`` names a checkout of
0.2.0: ``git worktree add FOLDER e7058e7``; without it only today's is asked.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import common
import default_models
from cohorts_ask import BEFORE, BYTES, ONE, TODAY, TWO

TITLE = "Cohorts"
MEASURES = ("ceopt/search", "ceopt/population.py", "ceopt/base/parallel.py", "formulations/predictors")

FOREST, BOOSTING = "RandomForest 100 x 5", "XGBoost 100 x 3"
SMALL = [(data, name) for data in ("adult", "german", "heloc") for name in (FOREST, BOOSTING)]
TASKS = [("german", "LogisticRegression"), ("adult", "RandomForest"), ("adult", "XGBoost"), *SMALL]
#: Of which 0.2.0 takes up to half a minute a row.
SLOW = [("adult", "RandomForest"), ("heloc", FOREST)]
SIDE_BY_SIDE = [("german", "LogisticRegression"), ("german", FOREST)]
ROWS, ROWS_OF_SLOW, WORKERS_ROWS, ROUNDS, LIMIT = 60, 10, 1000, 2, 30
ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Ask, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="a checkout of 0.2.0")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"of a cohort, default {ROWS}")
    parser.add_argument("--only", action="append", help="a data set, a model or data/model; nothing is written")
    parser.add_argument("--quick", action="store_true", help="a few rows; nothing is written")
    options = parser.parse_args()
    settings = {
        "rows": 6 if options.quick else options.rows,
        "workers_rows": 40 if options.quick else WORKERS_ROWS,
        "rounds": ROUNDS,
        "limit_s": LIMIT,
        "before": "e7058e7 (0.2.0)" if options.before else None,
        "seed": common.SEED,
    }
    only = set(options.only or ())
    tasks = [(data, name) for data, name in TASKS if not only or only & {data, name, f"{data}/{name}"}]
    quick = options.quick or bool(only)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "task.joblib"
        asks = {
            f"{data}/{name}": partial(one_model, data, name, settings, path, options.before) for data, name in tasks
        }
        common.asked_one_by_one("cohorts", settings, asks, (TITLE, MEASURES, text_of), quick=quick)


def one_model(data: str, name: str, settings: dict[str, Any], path: Path, before: Path | None) -> dict[str, Any]:
    """Ask both versions about each part of the cohort in turns, and today's about the rest."""
    rows = min(settings["rows"], ROWS_OF_SLOW) if (data, name) in SLOW else settings["rows"]
    default_models.keep_task(data, name, rows, path)
    words = [str(path), str(settings["limit_s"])]
    rounds = settings["rounds"]
    with contextlib.ExitStack() as stack:
        processes = {TODAY: stack.enter_context(common.asked("cohorts_ask.py", words, ROOT))}
        if before is not None:
            processes[BEFORE] = stack.enter_context(common.asked("cohorts_ask.py", words, before))
        today = processes[TODAY]
        people = today.told["people"]
        ends = [people * k // rounds for k in range(rounds + 1)]
        parts = [
            {"place": k, "way": way, **processes[way].ask(way, ends[k], ends[k + 1])}
            for k in range(rounds)
            for way in common.rotated(list(processes), k)
        ]
        held = today.ask(BYTES, 0, people)["bytes"]
        workers = []
        if (data, name) in SIDE_BY_SIDE:
            workers = [
                {"way": way, **today.ask(way, 0, settings["workers_rows"])}
                for k in range(rounds)
                for way in common.rotated([ONE, TWO], k)
            ]
    of_model = {"data": data, "model": name, "rows": people}
    return of_model | {"fit": today.told["fit"], "bytes": held, "parts": parts, "workers": workers}


# ---- the page --------------------------------------------------------------------------------------------------------
def text_of(record: dict[str, Any]) -> str:
    """Tabulate rows per second, and what two workers are worth."""
    settings = record["settings"]
    about = (
        f"Up to {settings['rows']} people whom a model refuses ({ROWS_OF_SLOW} where 0.2.0 takes up to half a minute "
        f"each), models and encodings as in `default_models.py`, {settings['limit_s']:g} s a row, one thread: a call "
        f"of a fitted `Recourse` for each of {settings['rounds']} parts, the versions in turns. Rows are per second of "
        "the processor, after a first row; *bytes* are what a cohort holds a row; optima are compared where both "
        "versions have proved one. HELOC's codes are numbers here, as for 0.2.0."
    )
    head = ["data", "model", "rows", "rows a second", "0.2.0", "times", "proved", "differ", "invalid", "bytes a row"]
    table = []
    for one in record["records"]:
        today, before = (answers_of(one["parts"], way) for way in (TODAY, BEFORE))
        rates = [rate(one["parts"], way) for way in (TODAY, BEFORE)]
        differ = sum(default_models.differs(a, b) for a, b in zip(today, before, strict=False))
        proved = Counter(map(default_models.is_proved, today))[True]
        invalid = sum(part["invalid"] for part in one["parts"] if part["way"] == TODAY)
        others = [f"{rates[1]:.2f}", f"{rates[0] / rates[1]:.1f}"] if before else ["", ""]
        table.append(
            [
                *[one["data"], one["model"], one["rows"], f"{rates[0]:.1f}", *others],
                *[proved, differ if before else "", invalid, f"{one['bytes']:.0f}"],
            ]
        )
    parts = [about, common.markdown_table(head, table)]
    lines = [line for one in record["records"] if one["workers"] for line in of_workers(one)]
    if lines:
        about = (
            f"{settings['workers_rows']} rows, some of them several times, in seconds on the clock. The first call of "
            "two workers starts them; later calls find them there."
        )
        head = ["data", "model", "one", "two, started", "times", "two, there", "times"]
        parts += ["## Two workers", about, common.markdown_table(head, lines)]
    return "\n\n".join(parts)


def answers_of(parts: list[dict[str, Any]], way: str) -> list[dict[str, Any]]:
    """Return what is known of each person, in order."""
    of_way = sorted((part for part in parts if part["way"] == way), key=lambda part: part["place"])
    return [answer for part in of_way for answer in part["records"]]


def rate(parts: list[dict[str, Any]], way: str) -> float:
    """Return rows per second of the processor."""
    seconds = sum(part["cpu"] for part in parts if part["way"] == way)
    return len(answers_of(parts, way)) / seconds if seconds else 0.0


def of_workers(one: dict[str, Any]) -> list[list[str]]:
    """Return the line of a model: seconds of one worker at the median, and of two by whether they were there."""
    alone = statistics.median(part["seconds"] for part in one["workers"] if part["way"] == ONE)
    first, *later = (part["seconds"] for part in one["workers"] if part["way"] == TWO)
    cells = [one["data"], one["model"], f"{alone:.1f}"]
    for seconds in (first, statistics.median(later)):
        cells += [f"{seconds:.1f}", f"{alone / seconds:.2f}"]
    return [cells]


if __name__ == "__main__":
    main()

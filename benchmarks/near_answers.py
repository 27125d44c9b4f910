"""``proof=False`` beside the proved optimum, a prototype of the search, and NICE, in turns: seconds, excess, validity.

``--before FOLDER`` names a checkout of 0.2.0 (``git worktree add FOLDER e7058e7``) in which ``--prototype FILE`` runs;
without both only today's ceopt is asked. ``EXCESS_NICE`` names the Python of NICE's environment (README.md).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import common
import default_models
import excess
import joblib
import numpy as np
import pandas as pd
from near_answers_ask import ALONE, COHORT, COHORT_S, LONG, PROVED, SHORT
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

import ceopt
from ceopt.search.prepare import prepare
from ceopt.search.search import search
from ceopt.settings import Settings

TITLE = "Near answers"
MEASURES = ("ceopt/search", "formulations/predictors")

DATA = default_models.DATA
FORESTS = ("RandomForest 100 x 5", "RandomForest")
MODELS = (*FORESTS, "XGBoost 100 x 3", "XGBoost", "LightGBM", "LogisticRegression", "MLP 10 x 10")
SCALED = ("LogisticRegression", "MLP 10 x 10")
#: What 0.2.0 too knows of a column; numbers that are codes it takes for amounts.
FIELDS = ("name", "kind", "lower", "upper", "step", "levels", "mutable", "direction", "mad", "std", "range")
#: The methods of NICE that are asked, of those of ``excess_peers.py``.
NICE = ("NICE, proximity", "NICE, sparsity")
#: A cohort is asked so often in turns.
ROUNDS = 3
ROWS, PEOPLE, LIMIT = 500, 20, 30
#: Of a forest to the end, on which the prototype takes seconds a person, a cohort is smaller and asked once.
FULL, FULL_ROWS = "RandomForest", 30
#: Costs within this are the same.
SAME = 1e-6


def fitted(task: common.Task, name: str) -> Any:
    """Fit a model: a forest on columns that NICE can be told of, the others as ``default_models.py`` does."""
    if name in FORESTS:
        return excess.fit(task, default_models.estimator(name))
    is_scaled = name in SCALED
    estimator = MLPClassifier((10, 10), max_iter=500, random_state=common.SEED) if name.startswith("MLP") else None
    model = common.one_hot(
        task.train, estimator or default_models.estimator(name), StandardScaler() if is_scaled else "passthrough"
    )
    return model.fit(task.train, task.labels)


def main() -> None:
    """Ask, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="a checkout of 0.2.0")
    parser.add_argument("--prototype", type=Path, help="the file of the prototype")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"people of a cohort, default {ROWS}")
    parser.add_argument("--people", type=int, default=PEOPLE, help=f"people who are proved too, default {PEOPLE}")
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"seconds of a proof, default {LIMIT}")
    parser.add_argument("--only", action="append", help="a data set, a model or data/model; nothing is written")
    parser.add_argument("--so-far", action="store_true", help="write what an interrupted run has found, ask nothing")
    parser.add_argument("--quick", action="store_true", help="ten people, three of them proved; nothing is written")
    options = parser.parse_args()
    if (options.before is None) != (options.prototype is None):
        parser.error("the prototype runs in a checkout of 0.2.0: --before and --prototype go together")
    settings = {
        "rows": 10 if options.quick else options.rows,
        "full_rows": 10 if options.quick else min(FULL_ROWS, options.rows),
        "people": 3 if options.quick else options.people,
        "limit_s": options.limit,
        "before": "e7058e7 (0.2.0)" if options.before else None,
        "nice": bool(os.environ.get(excess.VARIABLES["NICE"])),
        "seed": common.SEED,
    }
    prototype = (options.before, options.prototype) if options.before else None
    only = set(options.only or ())
    tasks = [(data, name) for data in DATA for name in MODELS if not only or only & {data, name, f"{data}/{name}"}]
    quick = options.quick or bool(only)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch)
        asks = {f"{data}/{name}": partial(one_model, data, name, settings, path, prototype) for data, name in tasks}
        told = (TITLE, MEASURES, text_of)
        common.asked_one_by_one("near_answers", settings, asks, told, quick=quick, so_far=options.so_far)


def one_model(
    data: str, name: str, settings: dict[str, Any], scratch: Path, prototype: tuple[Path, Path] | None
) -> dict[str, Any]:
    """Ask all about one model."""
    task = common.load(data)
    model = fitted(task, name)
    people = common.rejected(task, model, (settings["full_rows"] if name == FULL else settings["rows"]) + 1)
    path = scratch / "task.joblib"
    features = [{name: getattr(feature, name) for name in FIELDS} for feature in task.bunch.space]
    kept = {"model": model, "train": task.train, "people": people, "target": task.target, "features": features}
    joblib.dump(kept, path)
    rows, few = len(people) - 1, min(settings["people"], len(people) - 1)
    words = [str(path), str(settings["limit_s"])]
    with contextlib.ExitStack() as stack:
        today = stack.enter_context(common.asked("near_answers_ask.py", [*words, ""], default_models.ROOT))
        processes = {COHORT: today}
        if prototype is not None:
            before, file = prototype
            own = stack.enter_context(common.asked("near_answers_ask.py", [*words, str(file.resolve())], before))
            processes |= {SHORT: own, LONG: own}
        cohorts: dict[str, list[dict[str, Any]]] = {way: [] for way in processes}
        for turn in range(1 if name == FULL else ROUNDS):
            for way in common.rotated(list(processes), turn):
                cohorts[way].append(processes[way].ask(way, 0, rows))
        alone: dict[str, list[dict[str, Any]]] = {ALONE: [], PROVED: []}
        if prototype is not None:
            alone[SHORT] = []
        for place in range(few):
            for way in common.rotated(list(alone), place):
                found = processes.get(way, today).ask(way, place, place + 1)
                alone[way].append({"cpu": found["cpu"], **found["records"][0]})
        near = cohorts[COHORT][0]["records"]
        missed = [place for place in range(rows) if near[place]["cost"] is None]
        missing = sum(today.ask(PROVED, place, place + 1)["records"][0]["cost"] is not None for place in missed)
    record = {
        "data": data,
        "model": name,
        "rows": rows,
        "predict": today.told["predict"],
        "reading_s": {way: process.told["reading_s"] for way, process in processes.items()},
        "cpu": {way: [turn["cpu"] for turn in turns] for way, turns in cohorts.items()},
        "invalid": {way: sum(one["invalid"] for one in turns[0]["records"]) for way, turns in cohorts.items()},
        "unanswered": {way: sum(one["cost"] is None for one in turns[0]["records"]) for way, turns in cohorts.items()},
        "missing": missing,
        "people": [
            {way: part[place] for way, part in alone.items()}
            | {f"{way}, cost": turns[0]["records"][place]["cost"] for way, turns in cohorts.items()}
            for place in range(few)
        ],
    }
    if name in FORESTS and settings["nice"]:
        record["nice"] = beside_nice(task, model, people.iloc[:few], scratch / f"{data}-{FORESTS.index(name)}")
    return record


# ---- NICE ------------------------------------------------------------------------------------------------------------
def beside_nice(task: common.Task, model: Any, people: pd.DataFrame, folder: Path) -> list[dict[str, Any]]:
    """Ask NICE, which can be told of no rule, and ceopt without rules, by the cost that NICE looks at."""
    columns = excess.written(folder, task, model, people)
    python = os.environ[excess.VARIABLES["NICE"]]
    theirs = {method: excess.theirs(python, method, folder, 60)[0] for method in NICE}
    free = ceopt.FeatureSpace(replace(feature, mutable=True, direction="any") for feature in task.bunch.space)
    asked = Settings(target=task.target, cost=excess.COST, proof=False)
    prepared = prepare(model, free, asked, data=task.train)
    records = []
    for place in range(len(people)):
        row = people.iloc[[place]]
        record: dict[str, Any] = {}
        for method, answers in theirs.items():
            cost = None
            if answers[place]["answer"] is not None:
                answer = excess.raw(columns, answers[place]["answer"], people)
                frame = pd.DataFrame([answer]).astype(row.dtypes)
                if model.predict(frame)[0] == task.target:
                    cost = prepared.settings.cost.value(free, free.row(row), free.row(frame))
            record[method] = {"cost": cost, "cpu": answers[place]["cpu"]}
        found = common.timed(partial(_near, prepared, row), 0.0)
        records.append(record | {"ceopt": {"cost": found["cost"], "cpu": found["cpu"]}})
    return records


def _near(prepared: Any, row: pd.DataFrame) -> dict[str, Any]:
    found = search(prepared, row)
    return {"status": str(found.status), "cost": found[0].cost if len(found) else None}


# ---- the page --------------------------------------------------------------------------------------------------------
def text_of(record: dict[str, Any]) -> str:
    """Tabulate seconds, what answers cost, and how many there are."""
    settings, records = record["settings"], record["records"]
    about = (
        f"Up to {settings['rows']} people whom a model refuses, asked in one `Recourse(..., proof=False)`, and the "
        f"first {settings['people']} of them alone, with and without a proof ({settings['limit_s']:g} s each). Text is "
        "one-hot, the rest as it is (scaled for the logistic model, the network and the forests); the cost is `l1`, "
        "the space the data set's, of which codes among numbers are left out, as 0.2.0 knows none. Times are "
        "those of the processor, of one thread, in milliseconds a person, after a "
        f"first person and without the reading of the model; of a cohort the median of {ROUNDS} turns (of a forest to "
        f"the end up to {settings['full_rows']} people, one turn). `P` is one "
        "`predict` of one row. The prototype scores points as the model was read, and predicts none; it is asked in "
        "its short form (a climb from the person, rows of the data, lowered) and in its long one (four climbs by "
        "random tastes more, and swaps). *times* is today's cohort, less 2 P, over a form of the prototype, and in "
        "brackets all of today's. Excess is over the proved optimum, at the median, at 90 % and at worst."
    )
    head = ["data", "model", "people", "P", "cohort", "prototype: short", "long", "times short", "times long"]
    head += ["alone", "prototype, alone"]
    times = [line_of_times(one) for one in records]
    costs = [line_of_costs(one) for one in records]
    invalid = sum(one["invalid"][COHORT] + sum(p[ALONE]["invalid"] for p in one["people"]) for one in records)
    others = sum(not same(p[ALONE]["cost"], p[f"{COHORT}, cost"]) for one in records for p in one["people"])
    head_of_costs = ["data", "model", "answered", "missed where there is an answer", "proved", "excess: near"]
    head_of_costs += ["prototype, short", "prototype, long", "the prototype is cheaper"]
    in_cohort = f"in the cohort, which has {COHORT_S:g} s each"
    parts = [
        about,
        *common.not_asked_yet(record),
        f"{invalid} invalid answers; alone {others} people got another cost than {in_cohort}.",
        "## Seconds",
        common.markdown_table(head, times),
        "## Costs",
        common.markdown_table(head_of_costs, costs),
    ]
    with_nice = [one for one in records if "nice" in one]
    if with_nice:
        told_of_nice = (
            "NICE can be told of no fixed or rising column, so ceopt is not told of them here, and the cost is the one "
            "that NICE looks at: 1 a category, a number's share of its range. Only answers that the model accepts "
            "count as NICE's."
        )
        head_of_nice = ["data", "model", "method", "its answers", "ceopt costs no more", "its cost by ceopt's, median"]
        head_of_nice += ["its ms", "ceopt's ms"]
        parts += [
            "## Beside NICE",
            told_of_nice,
            common.markdown_table(head_of_nice, [line_of_nice(one, way) for one in with_nice for way in NICE]),
        ]
    return "\n\n".join(parts)


def line_of_times(one: dict[str, Any]) -> list[Any]:
    """Return the line of a model in the table of seconds."""
    each = {way: 1e3 * statistics.median(turns) / max(one["rows"], 1) for way, turns in one["cpu"].items()}
    predict = 1e3 * one["predict"]
    line = [one["data"], one["model"], one["rows"], f"{predict:.1f}", f"{each[COHORT]:.1f}"]
    forms = (SHORT, LONG) if SHORT in each else ()
    line += [f"{each[form]:.1f}" for form in forms] or ["", ""]
    beyond = max(each[COHORT] - 2.0 * predict, 0.0)
    line += [f"{beyond / each[form]:.1f} ({each[COHORT] / each[form]:.1f})" for form in forms] or ["", ""]
    alone = {way: [1e3 * p[way]["cpu"] for p in one["people"] if way in p] for way in (ALONE, SHORT)}
    return line + [common.spread(alone[way], 1) for way in (ALONE, SHORT)]


def line_of_costs(one: dict[str, Any]) -> list[Any]:
    """Return the line of a model in the table of costs."""
    people = one["people"]
    proved = [p for p in people if p[PROVED]["status"] in {"optimal", "infeasible"}]
    line = [one["data"], one["model"], f"{one['rows'] - one['unanswered'][COHORT]} of {one['rows']}", one["missing"]]
    line.append(f"{len(proved)} of {len(people)}")
    for way in (COHORT, SHORT, LONG):
        pairs = [(p.get(f"{way}, cost"), p[PROVED]["cost"]) for p in proved]
        line.append(common.spread([near / least - 1.0 for near, least in pairs if near and least], 3))
    pairs = [(p[f"{COHORT}, cost"], p.get(f"{LONG}, cost")) for p in people]
    cheaper = sum(b is not None and (a is None or b < a * (1.0 - 1e-3)) for a, b in pairs)
    return [*line, f"{cheaper} of {len(people)}"]


def line_of_nice(one: dict[str, Any], way: str) -> list[Any]:
    """Return the line of a model and a method of NICE."""
    people = one["nice"]
    answers = [p for p in people if p[way]["cost"] is not None]
    no_more = sum(p["ceopt"]["cost"] is not None and not dearer(p["ceopt"]["cost"], p[way]["cost"]) for p in answers)
    ratios = [p[way]["cost"] / p["ceopt"]["cost"] for p in answers if p["ceopt"]["cost"]]
    times = [1e3 * float(np.median([p[who]["cpu"] for p in people])) for who in (way, "ceopt")]
    counts = [f"{len(answers)} of {len(people)}", f"{no_more} of {len(answers)}"]
    return [one["data"], one["model"], way, *counts, f"{np.median(ratios):.2f}", *(f"{ms:.0f}" for ms in times)]


def dearer(one: float, other: float) -> bool:
    """Whether a cost is above another."""
    return one > other * (1.0 + SAME)


def same(one: float | None, other: float | None) -> bool:
    """Whether two costs are the same, or both of none."""
    if one is None or other is None:
        return one is other
    return not dearer(one, other) and not dearer(other, one)


if __name__ == "__main__":
    main()

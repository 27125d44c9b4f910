"""How far the answers of public libraries are from the proved optimum, and which rules they break.

Each method is asked in an environment of its own (README.md); what it is given and what it answers are files, and the
answers are held against the optimum by ``ceopt.metrics.excess`` under the rules of the data's own schema.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import common
import numpy as np
import pandas as pd
from excess_peers import METHODS
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder
from task_files import read_answers, read_task, write_task

import ceopt
from ceopt.query.prepare import prepare
from ceopt.search.search import search
from ceopt.settings import Settings

TITLE = "Excess over the optimum"
MEASURES = ("ceopt/excess.py", "ceopt/search", "formulations/costs", "formulations/predictors/embed/trees")

DATA_SETS = ("adult", "german", "heloc")
TREES, DEPTH = 50, 6
#: A category that changes costs 1, a number its share of the range: what NICE and OCEAN minimise too.
COST = ceopt.L1(scale="range")
OWN = "ceopt"
#: Of a method's name, the variable that names the Python of its environment.
VARIABLES = {"dice-ml": "EXCESS_DICE", "NICE": "EXCESS_NICE", "alibi": "EXCESS_ALIBI", "OCEAN": "EXCESS_OCEAN"}
PEERS = Path(__file__).with_name("excess_peers.py")


# ---- the question as files -------------------------------------------------------------------------------------------
def fit(task: common.Task) -> Pipeline:
    """Fit the forest on numbers and ranks scaled to [-0.5, 0.5] and one-hot categories, column by column."""
    columns = []
    for column in columns_of(task):
        name = column["name"]
        step: Any = MinMaxScaler((-0.5, 0.5))
        if column["kind"] == "one_hot":
            step = OneHotEncoder(categories=[column["levels"]], handle_unknown="ignore", sparse_output=False)
        elif column["kind"] == "ranked":
            step = make_pipeline(OrdinalEncoder(categories=[column["levels"]]), step)
        columns.append((name, step, [name]))
    forest = RandomForestClassifier(TREES, max_depth=DEPTH, random_state=common.SEED, n_jobs=1)
    return make_pipeline(ColumnTransformer(columns), forest).fit(task.train, task.labels)


def columns_of(task: common.Task) -> list[dict[str, Any]]:
    """Return what the files say of each column."""
    groups = common.groups_of(task.bunch.name)
    kinds = {name: kind for kind, names in groups.items() for name in names}
    found = []
    for name, column in common.schema_of(task.bunch.name).items():
        kind = kinds[name]
        levels = list(column.get("levels", ())) if kind != "number" else []
        found.append(
            {
                "name": name,
                "kind": kind,
                "levels": sorted(levels) if kind == "one_hot" else levels,
                "whole": kind != "number" or pd.api.types.is_integer_dtype(task.train[name].dtype),
                "fixed": bool(column.get("immutable")),
                "rising": column.get("monotone") == "increasing",
            }
        )
    return found


def coordinates(columns: Sequence[Mapping[str, Any]], frame: pd.DataFrame) -> np.ndarray:
    """Return rows as the files hold them, (n, d)."""
    parts = []
    for column in columns:
        values = frame[column["name"]]
        if column["kind"] == "number":
            parts.append(values.to_numpy(dtype=np.float64))
        else:
            parts.append(np.array([column["levels"].index(value) for value in values.tolist()], dtype=np.float64))
    return np.column_stack(parts)


def written(folder: Path, task: common.Task, model: Pipeline, people: pd.DataFrame) -> list[dict[str, Any]]:
    """Write the question, and make sure that the files say of every row what the model says."""
    columns = columns_of(task)
    train = coordinates(columns, task.train)
    for place, column in enumerate(columns):
        step = model[0].named_transformers_[column["name"]]
        scaler = step[-1] if isinstance(step, Pipeline) else step
        if column["kind"] != "one_hot":
            column["scale"], column["shift"] = float(scaler.scale_[0]), float(scaler.min_[0])
        column["lower"], column["upper"] = float(train[:, place].min()), float(train[:, place].max())
    write_task(
        folder, columns=columns, target=task.target, forest=model[-1], train=train, labels=task.labels.to_numpy(),
        people=coordinates(columns, people), seed=common.SEED,
    )  # fmt: skip
    if not np.array_equal(read_task(folder).predict_proba(train), model.predict_proba(task.train)):
        sys.exit(f"The files of {task.bunch.name} decide otherwise than the model.")
    return columns


def raw(columns: Sequence[Mapping[str, Any]], answer: Sequence[float] | None, like: pd.DataFrame) -> dict[str, Any]:
    """Return an answer in raw units; what is no level stays the number that it is, and nothing is missing."""
    row: dict[str, Any] = {}
    for place, column in enumerate(columns):
        value: Any = np.nan if answer is None else answer[place]
        if column["kind"] != "number" and value in range(len(column["levels"])):
            value = column["levels"][int(value)]
        elif column["whole"] and float(value).is_integer():
            value = int(value)
        row[column["name"]] = value
    return {name: row[name] for name in like.columns}


# ---- the run ---------------------------------------------------------------------------------------------------------
def main() -> None:
    """Ask every method that has an environment about all people, and write the report."""
    options = common.arguments("The excess of public libraries' answers over the optimum.", rows=30, limit=60)
    rows = 2 if options.quick else options.rows
    pythons = {method: os.environ.get(VARIABLES[method.partition(",")[0]], "") for method in METHODS}
    ways = [OWN, *(method for method, python in pythons.items() if python)]
    settings = {
        "rows": rows, "limit_s": options.limit, "seed": common.SEED, "trees": TREES, "depth": DEPTH, "ways": ways,
        "left_out": [method for method, python in pythons.items() if not python],
    }  # fmt: skip
    journal = common.Journal("excess-quick" if options.quick else "excess", settings)
    with common.bar(None, len(ways) * len(DATA_SETS)) as bar, tempfile.TemporaryDirectory() as scratch:
        for name in DATA_SETS:
            run(common.load(name), pythons, ways, settings, Path(scratch), journal=journal, bar=bar)
    record = {"settings": settings, "records": journal.records}
    common.report("excess", TITLE, MEASURES, text_of, record, quick=options.quick)
    journal.close()


def run(
    task: common.Task,
    pythons: Mapping[str, str],
    ways: Sequence[str],
    settings: Mapping[str, Any],
    scratch: Path,
    *,
    journal: common.Journal,
    bar: Any,
) -> None:
    """Ask the methods that are not in the journal yet about one data set."""
    name = task.bunch.name
    bar.set_description(name)
    left = [way for way in ways if f"{name}/{way}" not in journal.done]
    bar.update(len(ways) - len(left))
    if not left:
        return
    model = fit(task)
    people = common.rejected(task, model, settings["rows"])
    columns = written(scratch / name, task, model, people)
    for way in left:
        if way == OWN:
            records, versions = ours(task, model, people, columns, settings["limit_s"]), {}
        else:
            records, versions = theirs(pythons[way], way, scratch / name, settings["limit_s"])
        table = held(task, model, people, [raw(columns, record["answer"], people) for record in records], settings)
        people_told = [told(record, line) for record, line in zip(records, table.to_dict("records"), strict=True)]
        journal.add(f"{name}/{way}", {"data": name, "way": way, "versions": versions, "people": people_told})
        bar.update()


def ours(
    task: common.Task, model: Pipeline, people: pd.DataFrame, columns: Sequence[Mapping[str, Any]], limit_s: int
) -> list[dict[str, Any]]:
    """Ask ceopt about every person."""
    asked = Settings(target=task.target, cost=COST, time_limit_s=limit_s, why=False)
    prepared = prepare(model, task.bunch.space, asked, data=task.train)
    search(prepared, people.iloc[[0]])  # the first pays for imports
    records = []
    for place in range(len(people)):
        began, cpu = time.perf_counter(), time.process_time()
        found = search(prepared, people.iloc[[place]])
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        answer = coordinates(columns, found[0].frame)[0].tolist() if len(found) else None
        records.append({"status": str(found.status), "answer": answer, "seconds": seconds, "cpu": cpu})
    return records


def theirs(python: str, method: str, folder: Path, limit_s: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Ask a method in its own environment about every person."""
    answers = folder / "answers.json"
    command = [python, str(PEERS), str(folder), method, str(answers), "--limit", str(limit_s)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.environ.get(f"{VARIABLES[method.partition(',')[0]]}_PATH", "")
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{method} failed:\n{done.stderr}")
    return read_answers(answers), json.loads(done.stdout.splitlines()[-1])


def held(
    task: common.Task, model: Pipeline, people: pd.DataFrame, answers: list[dict[str, Any]], settings: Mapping[str, Any]
) -> pd.DataFrame:
    """Hold one answer a person against the optimum."""
    return ceopt.metrics.excess(
        answers, model, task.bunch.space, target=task.target, factual=people, cost=COST, data=task.train,
        time_limit_s=settings["limit_s"],
    )  # fmt: skip


def told(record: Mapping[str, Any], line: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of one person: how it ended, what it took, and what the answer is worth."""
    kept = {word: record[word] for word in ("status", "seconds", "cpu")}
    numbers = {word: _number(line[word]) for word in ("cost", "optimum", "bound", "excess")}
    broken = [text.partition(":")[0] for text in line["broken"]] if record["answer"] is not None else []
    return {**kept, "answered": record["answer"] is not None, **numbers, "valid": line["valid"], "broken": broken}


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


# ---- report ----------------------------------------------------------------------------------------------------------
HEAD = (
    "data", "method", "people", "answered", "model disagrees", "break a rule", "rules broken", "excess: median",
    "worst", "exactly optimal", "seconds: median / 90 % / worst", "CPU seconds",
)  # fmt: skip


def text_of(record: dict[str, Any]) -> str:
    """Say what was asked, and what each method's answers are worth."""
    settings = record["settings"]
    asked = (
        f"{settings['rows']} people each whom a forest of {settings['trees']} trees of depth {settings['depth']} "
        f"rejects, drawn with seed {settings['seed']}; one counterfactual each, {settings['limit_s']} s each, one "
        "thread. Cost l1: a category that changes costs 1, a number its share of the range, an ordinal its share of "
        "the levels. Rules are those of the data's schema: what cannot change, what can only rise, levels, whole "
        "numbers. Excess is cost over proved optimum, less 1, of the answers that keep every rule and that the model "
        "agrees with; the others are counted before it. ceopt's row is the same check of its own answers. Each method "
        "has its defaults, alibi the settings of its example on Adult. dice-ml is told the rules, alibi the range of "
        "each column; NICE and OCEAN cannot be told any. What alibi and OCEAN say of a whole number is rounded: alibi "
        "is asked with the model of rounded rows, OCEAN returns a point inside the cell that it found."
    )
    parts = [asked, common.markdown_table(HEAD, _lines(record["records"])), _unproved(record["records"])]
    versions = {name: said for r in record["records"] for name, said in r["versions"].items() if name != "python"}
    if versions:
        parts.append("Asked: " + ", ".join(f"{name} {said}" for name, said in sorted(versions.items())) + ".")
    if settings["left_out"]:
        parts.append(f"Not asked, as there was no environment: {'; '.join(settings['left_out'])}.")
    return "\n\n".join(parts)


def _lines(records: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    lines = []
    for record in records:
        people = record["people"]
        answers = [one for one in people if one["answered"]]
        good = [one["excess"] for one in answers if one["valid"] and not one["broken"] and one["excess"] is not None]
        columns = Counter(name for one in answers for name in one["broken"])
        lines.append(
            [
                record["data"], record["way"], len(people), _answered(people),
                sum(not one["valid"] for one in answers), sum(bool(one["broken"]) for one in answers),
                ", ".join(f"{name} {count}" for name, count in columns.most_common(4)) or "-",
                f"{np.median(good):.3g}" if good else "-", f"{max(good):.3g}" if good else "-",
                f"{sum(excess <= 1e-4 for excess in good)} of {len(good)}" if good else "-",
                common.spread([one["seconds"] for one in people], 2), common.spread([one["cpu"] for one in people], 2),
            ]
        )  # fmt: skip
    return lines


def _answered(people: Sequence[Mapping[str, Any]]) -> str:
    """Return how many have an answer, and how the others ended."""
    others = Counter(one["status"] for one in people if not one["answered"])
    told_of = "".join(f", {status} {count}" for status, count in others.most_common())
    return f"{sum(one['answered'] for one in people)}{told_of}"


def _unproved(records: Sequence[Mapping[str, Any]]) -> str:
    gaps = []
    for record in records:
        for one in record["people"]:
            known = one["optimum"] is not None and one["bound"] is not None
            if known and one["bound"] < one["optimum"] * (1.0 - 1e-6):
                gaps.append(one["optimum"] / max(one["bound"], 1e-12) - 1.0)
    if not gaps:
        return "Every optimum is proved."
    return f"Optima not proved in time: {len(gaps)}; the worst may be lower by a factor of {1.0 + max(gaps):.3g}."


if __name__ == "__main__":
    main()

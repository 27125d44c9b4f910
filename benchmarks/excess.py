"""How far the answers of public libraries are from the proved optimum, and which rules they break.

Each method is asked in an environment of its own (README.md); what it is given and what it answers are files, and the
answers are held against the optimum by ``ceopt.metrics.excess`` under the rules of the data's own schema.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import common
import numpy as np
import pandas as pd
from excess_peers import METHODS, REST_S
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder
from task_files import read_answers, read_task, write_task

import ceopt
from ceopt.search.prepare import prepare
from ceopt.search.search import search
from ceopt.settings import Settings

TITLE = "Excess over the optimum"
MEASURES = ("ceopt/excess.py", "ceopt/search", "formulations/costs", "formulations/predictors/embed/trees.py")

DATA_SETS = ("adult", "german", "heloc")
TREES, DEPTH = 50, 6
#: A category that changes costs 1, a number its share of the range: what NICE and OCEAN minimise too.
COST = ceopt.L1(scale="range")
OWN = "ceopt"
#: Who is told which columns are fixed and which only rise.
TOLD = {OWN, "dice-ml"}
#: Libraries that take up to the limit for a person; ``--slow N`` asks them about the first N people.
SLOW = {"alibi", "OCEAN"}
#: Of a method's name, the variable that names the Python of its environment.
VARIABLES = {"dice-ml": "EXCESS_DICE", "NICE": "EXCESS_NICE", "alibi": "EXCESS_ALIBI", "OCEAN": "EXCESS_OCEAN"}
PEERS = Path(__file__).with_name("excess_peers.py")


# ---- the question as files -------------------------------------------------------------------------------------------
def fit(task: common.Task, forest: RandomForestClassifier | None = None) -> Pipeline:
    """Fit a forest on numbers and ranks scaled to [-0.5, 0.5] and one-hot categories, column by column."""
    columns = []
    for column in columns_of(task):
        name = column["name"]
        step: Any = MinMaxScaler((-0.5, 0.5))
        if column["kind"] == "one_hot":
            step = OneHotEncoder(categories=[column["levels"]], handle_unknown="ignore", sparse_output=False)
        elif column["kind"] == "ranked":
            step = make_pipeline(OrdinalEncoder(categories=[column["levels"]]), step)
        columns.append((name, step, [name]))
    if forest is None:
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
    options = common.arguments("The excess of public libraries' answers over the optimum.", rows=30, limit=60, slow=30)
    rows = 2 if options.quick else options.rows
    settings = {"rows": rows, "limit_s": options.limit, "seed": common.SEED, "trees": TREES, "depth": DEPTH}
    journal = common.Journal("excess-quick" if options.quick else "excess", settings)
    pythons = {method: os.environ.get(VARIABLES[library(method)], "") for method in METHODS}
    ways = [OWN, *(method for method, python in pythons.items() if python)]
    jobs = [(name, way) for way in ways for name in DATA_SETS]
    with tempfile.TemporaryDirectory() as scratch:
        for name, way in common.bar(jobs, len(jobs)):
            if f"{name}/{way}" not in journal.done:
                some = min(rows, options.slow) if library(way) in SLOW else rows
                record = ask(
                    question(name, rows), some, way,
                    python=pythons.get(way, ""), folder=Path(scratch) / name, limit_s=options.limit,
                )  # fmt: skip
                journal.add(f"{name}/{way}", {"data": name, "way": way, **record})
    answers = journal.records
    held = [record for name in common.bar(DATA_SETS, len(DATA_SETS)) for record in hold(name, settings, answers)]
    common.report("excess", TITLE, MEASURES, text_of, {"settings": settings, "records": held}, quick=options.quick)
    if not _left_out(answers):
        journal.close()  # else a library that is installed later is asked alone


def library(method: str) -> str:
    """Return the library of a method."""
    return method.partition(",")[0]


@functools.cache
def question(name: str, rows: int) -> tuple[common.Task, Pipeline, pd.DataFrame]:
    """Return a data set, its model, and the people who are asked about."""
    task = common.load(name)
    model = fit(task)
    return task, model, common.rejected(task, model, rows)


def ask(
    asked: tuple[common.Task, Pipeline, pd.DataFrame], rows: int, way: str, *, python: str, folder: Path, limit_s: int
) -> dict[str, Any]:
    """Ask one method about the first people of one data set."""
    task, model, people = asked
    people = people.iloc[:rows]
    if way == OWN:
        return {"versions": {}, "answers": ours(task, model, people, limit_s)}
    written(folder, task, model, people)
    answers, versions = theirs(python, way, folder, limit_s)
    return {"versions": versions, "answers": answers}


def ours(task: common.Task, model: Pipeline, people: pd.DataFrame, limit_s: int) -> list[dict[str, Any]]:
    """Ask ceopt about every person."""
    asked = Settings(target=task.target, cost=COST, time_limit_s=limit_s, why=False)
    prepared = prepare(model, task.bunch.space, asked, data=task.train)
    columns = columns_of(task)
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
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{method} failed:\n{done.stderr}")
    return read_answers(answers), json.loads(done.stdout.splitlines()[-1])


# ---- the answers beside the optimum ----------------------------------------------------------------------------------
def hold(name: str, settings: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Hold the answers for one data set against the optimum, those of methods not told the rules without them too."""
    asked = [record for record in records if record["data"] == name]
    untold = [record for record in asked if library(record["way"]) not in TOLD]
    space = question(name, settings["rows"])[0].bunch.space
    free = ceopt.FeatureSpace(replace(feature, mutable=True, direction="any") for feature in space)
    with_rules, without = beside(name, space, asked, settings), beside(name, free, untold, settings)
    found = []
    for record in asked:
        people = []
        for place, answer in enumerate(record["answers"]):
            key = (record["way"], place)
            people.append(
                {
                    **answer,
                    "answered": answer["answer"] is not None,
                    "schema": with_rules[key],
                    "none": without.get(key),
                }
            )
        found.append({"data": name, "way": record["way"], "versions": record["versions"], "people": people})
    return found


def beside(
    name: str, space: ceopt.FeatureSpace, records: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]
) -> dict[tuple[str, int], dict[str, Any]]:
    """Return each answer beside the optimum of its person, by method and person."""
    task, model, people = question(name, settings["rows"])
    columns = columns_of(task)
    given = {(record["way"], at): one["answer"] for record in records for at, one in enumerate(record["answers"])}
    table = ceopt.metrics.excess(
        [raw(columns, answer, people) for answer in given.values()], model, space, target=task.target,
        factual=people.iloc[[at for _, at in given]], cost=COST, data=task.train, time_limit_s=settings["limit_s"],
    )  # fmt: skip
    found = {}
    for (key, answer), line in zip(given.items(), table.to_dict("records"), strict=True):
        broken = [] if answer is None else sorted({rule_of(text) for text in line["broken"]})
        numbers = {word: _number(line[word]) for word in ("cost", "optimum", "bound", "excess")}
        found[key] = {**numbers, "valid": bool(line["valid"]), "broken": broken}
    return found


#: How a broken rule begins, after the name of its column, and what the table calls it.
RULES = {
    "must stay": "fixed", "may only increase": "only rises", "must be whole": "whole number", "has no level": "level",
    "must be at": "bound",
}  # fmt: skip


def rule_of(text: str) -> str:
    """Return "column (rule)" of the sentence of a broken rule."""
    name, _, fault = text.partition(": ")
    kinds = [kind for beginning, kind in RULES.items() if fault.startswith(beginning)]
    return f"{name} ({kinds[0] if kinds else 'no value of the column'})"


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


# ---- report ----------------------------------------------------------------------------------------------------------
HEAD = (
    "data", "method", "people", "answered", "model disagrees", "break a rule", "rules broken most", "counted",
    "cost, optimum: medians", "excess: median", "worst", "optimal", "seconds: median / 90 % / worst",
    "CPU seconds: the same",
)  # fmt: skip
#: Up to this the excess is that of the margin of the decision.
SAME = 1e-4


def text_of(record: dict[str, Any]) -> str:
    """Say what was asked, and what each method's answers are worth."""
    settings, records = record["settings"], record["records"]
    asked = (
        f"{settings['rows']} people each whom a forest of {settings['trees']} trees of depth {settings['depth']} "
        f"rejects, drawn with seed {settings['seed']}; one counterfactual each, {settings['limit_s']} s each, one "
        "thread. The cost is l1: a category that changes costs 1, a number its share of the range, an ordinal its "
        "share of the levels. The rules are those of the data's schema: columns that cannot change or can only rise, "
        "levels, whole numbers. Excess is the cost over the proved optimum, less 1. It is counted for the answers that "
        "keep every rule and that the model agrees with; how many do not stands before it. ceopt's row is the same "
        "check of its own answers. Where a person is all but accepted, the optimum is a few units of one column, and "
        "an excess of hundreds says little else; so the median costs stand beside it."
    )
    for library_, most in sorted({(library(r["way"]), len(r["people"])) for r in records}):
        if most < settings["rows"]:
            asked += f" {library_} is asked about the first {most} of them only, as it takes minutes."
    said = (
        "What each was told: dice-ml which columns are fixed and from where the rising ones go; alibi, NICE and OCEAN "
        "have no place for it. dice-ml and NICE with their defaults; alibi with the settings of its example on Adult "
        "and k-d trees. NICE and OCEAN minimise the same cost, dice-ml and alibi costs of their own. alibi and OCEAN "
        "move numbers and ordinals as continuous ones: for alibi the model rounds what it is asked about and the "
        "answer is rounded in the same way. OCEAN proves which cell of the forest is nearest, or takes the nearest "
        f"that it has found after {settings['limit_s'] - REST_S} s, and returns the middle of that cell, moved on here "
        "to the next whole number away from the person."
    )
    free = (
        "## Without fixed and rising columns\n\nThe same answers of the methods that have no place for such rules, "
        "against the optimum without them. Levels and whole numbers stay rules."
    )
    parts = [asked, said, common.markdown_table(HEAD, _lines(records, "schema")), _sound(records, "schema")]
    parts += [free, common.markdown_table(HEAD[:-2], [line[:-2] for line in _lines(records, "none")])]
    parts.append(_sound(records, "none"))
    versions = {name: said for r in records for name, said in r["versions"].items() if name != "python"}
    if versions:
        parts.append("Asked: " + ", ".join(f"{name} {said}" for name, said in sorted(versions.items())) + ".")
    left_out = _left_out(records)
    if left_out:
        parts.append(f"Not asked yet: {'; '.join(left_out)}.")
    return "\n\n".join(parts)


def _left_out(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return each method that was not asked about every data set, with those that it was not asked about."""
    asked = {(record["way"], record["data"]) for record in records}
    found = []
    for method in METHODS:
        lacks = [name for name in DATA_SETS if (method, name) not in asked]
        if lacks:
            found.append(f"{method} ({', '.join(lacks)})")
    return found


def _lines(records: Sequence[Mapping[str, Any]], rules: str) -> list[list[Any]]:
    lines = []
    for record in records:
        people = [one for one in record["people"] if one[rules] is not None]
        if not people:
            continue
        answers = [one[rules] for one in people if one["answered"]]
        kept = [one for one in answers if one["valid"] and not one["broken"] and one["excess"] is not None]
        good = [one["excess"] for one in kept]
        columns = Counter(name for one in answers for name in one["broken"])
        lines.append(
            [
                record["data"], record["way"], len(people), _answered(people),
                _share(sum(not one["valid"] for one in answers), len(answers)),
                _share(sum(bool(one["broken"]) for one in answers), len(answers)),
                ", ".join(f"{name} {count}" for name, count in columns.most_common(4)) or "-", len(good),
                ", ".join(f"{np.median([one[of] for one in kept]):.3f}" for of in ("cost", "optimum")) if kept else "-",
                f"{abs(np.median(good)):.3f}" if good else "-", f"{abs(max(good)):.3f}" if good else "-",
                _share(sum(excess <= SAME for excess in good), len(good)),
                common.spread([one["seconds"] for one in people], 2), common.spread([one["cpu"] for one in people], 2),
            ]
        )  # fmt: skip
    return lines


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.0%})" if whole else "-"


def _answered(people: Sequence[Mapping[str, Any]]) -> str:
    """Return how many have an answer, and how the others ended."""
    others = Counter(one["status"] for one in people if not one["answered"])
    told_of = "".join(f", {status} {count}" for status, count in others.most_common())
    return _share(sum(one["answered"] for one in people), len(people)) + told_of


def _sound(records: Sequence[Mapping[str, Any]], rules: str) -> str:
    """Say whether the optima are proved, and whether an answer that keeps all rules is below its optimum."""
    lines = [one[rules] for record in records for one in record["people"] if one[rules] is not None]
    known = [one for one in lines if one["optimum"] is not None]
    open_ = [one for one in known if one["bound"] is None or one["bound"] < one["optimum"] * (1.0 - 1e-6)]
    good = [one for one in known if one["valid"] and not one["broken"] and one["excess"] is not None]
    below = [one["excess"] for one in good if one["excess"] < -SAME]
    proved = f"{len(open_)} answers are held against an optimum not proved." if open_ else "Every optimum is proved."
    least = min((one["excess"] for one in good), default=0.0)
    said = f"Of {len(good)} answers that keep every rule {len(below) or 'none'} is below its optimum"
    return f"{proved} {said} (least excess {least:.1e})."


if __name__ == "__main__":
    main()

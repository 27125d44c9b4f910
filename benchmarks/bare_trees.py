"""``explain`` on trees beside the same program stated as bare arrays for HiGHS, in turns: seconds, and the same costs.

``--prototype FOLDER`` names the folder of ``bare_tree.py``: trees over columns in [0, 1] and levels, whose program is
built of numpy arrays, with a start from rows of the data, and solved once; nothing is checked, read or explained.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import common
import default_models
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

import ceopt

TITLE = "Trees beside the bare program"
MEASURES = ("ceopt/search", "formulations/predictors")

DATA = ("german", "adult", "heloc")
MODELS = ("RandomForest 100 x 5", "XGBoost 100 x 3")
COST = ceopt.L1(scale="none")
#: By what sums of leaves have to exceed a tie: the programs are solved to 1e-6 a row.
MARGIN = 1e-5
#: Costs that differ by less, of themselves and in all, are the same: the bare program moves in float32.
SAME, TINY = 1e-5, 1e-6
ROWS, LIMIT = 20, 60
#: Column, threshold, left, right and value of each node.
Tree: TypeAlias = tuple[np.ndarray, ...]
OURS = "explain"
#: Options of the bare program: a start from rows of the data alone; one by climbs too, which HiGHS is given, and HiGHS
#: without heuristics and restarts.
BARE: dict[str, dict[str, Any]] = {
    "bare": {},
    "bare, best": {
        "greedy": True,
        "start": True,
        "set": {"mip_heuristic_effort": 0.0, "mip_allow_restart": False},
    },
}
WAYS = [OURS, *BARE]


class Question(NamedTuple):
    """A model over numbers in [0, 1] and levels, and people whom it refuses."""

    model: Pipeline
    train: pd.DataFrame
    people: pd.DataFrame
    space: ceopt.FeatureSpace
    target: int
    favoured: pd.DataFrame


# ---- the question ----------------------------------------------------------------------------------------------------
def question(data: str, name: str, rows: int) -> Question:
    """Scale a data set, fit a model to it, and draw people."""
    task = common.load(data)
    groups, schema = common.groups_of(data), common.schema_of(data)
    columns: dict[str, Any] = {}
    features = []
    for column in map(str, task.train):
        values = task.bunch.data[column]
        fixed = bool(schema[column].get("immutable"))
        if column in groups["one_hot"]:
            levels = tuple(sorted(values.unique().tolist()))
            columns[column] = values
            features.append(ceopt.Feature(column, kind="categorical", levels=levels, mutable=not fixed))
            continue
        if column in groups["ranked"]:
            values = values.map({level: rank for rank, level in enumerate(schema[column]["levels"])})
        values = values.astype(np.float64)
        low, high = values[task.train.index].min(), values[task.train.index].max()
        columns[column] = ((values - low) / max(high - low, 1e-12)).clip(0.0, 1.0)
        features.append(ceopt.Feature(column, kind="continuous", lower=0.0, upper=1.0, mutable=not fixed))
    frame = pd.DataFrame(columns)
    words = [feature.name for feature in features if feature.kind == "categorical"]
    levels_of = [list(feature.levels) for feature in features if feature.kind == "categorical"]
    rest = [feature.name for feature in features if feature.kind != "categorical"]
    encoder = OneHotEncoder(categories=levels_of, sparse_output=False)
    encode = ColumnTransformer([("words", encoder, words), ("rest", "passthrough", rest)])
    train = frame.loc[task.train.index]
    model = make_pipeline(encode, default_models.estimator(name)).fit(train, task.labels)
    others = frame.loc[task.others.index]
    refused = others[model.predict(others) != task.target]
    chosen = np.random.default_rng(common.SEED).choice(len(refused), min(rows, len(refused)), replace=False)
    favoured = train[model.predict(train) == task.target]
    return Question(model, train, refused.iloc[np.sort(chosen)], ceopt.FeatureSpace(features), task.target, favoured)


# ---- the bare program ------------------------------------------------------------------------------------------------
class Peer:
    """What ``bare_tree.py`` derives its program from."""

    def __init__(self, task: Any, limit_s: float) -> None:
        self.task, self.schema, self.norm = task, task.schema, 1
        self.threads, self.timeout = 1, limit_s
        self.opt: dict[str, Any] = {"solver": "highs"}
        self.setup(clock)

    def setup(self, clock: Any) -> None:
        """Prepare what does not depend on the person."""


@contextlib.contextmanager
def clock(_part: str) -> Iterator[None]:
    """Time nothing: the whole call is timed."""
    yield


class Record:
    """Named values, as the prototype reads a task and a schema."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def load_prototype(folder: Path) -> ModuleType:
    """Return ``bare_tree.py``, which expects a package with the module ``peer`` above its own."""
    peer = ModuleType("bare.peer")
    peer.__dict__.update(Peer=Peer, versions_of=common.installed)
    for name in ("bare", "bare.programs"):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = []
    sys.modules["bare.peer"] = peer
    found = importlib.util.spec_from_file_location("bare.programs.bare_tree", folder / "bare_tree.py")
    if found is None or found.loader is None:
        sys.exit(f"{folder} has no bare_tree.py.")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def task_of(asked: Question) -> Record:
    """Return the model's columns and trees as the prototype reads them."""
    ordered = [feature for feature in asked.space if feature.kind == "categorical"]
    ordered += [feature for feature in asked.space if feature.kind != "categorical"]
    features: list[dict[str, Any]] = []
    kind: list[str] = []
    weight: list[float] = []
    fixed: list[bool] = []
    for feature in ordered:
        is_words = feature.kind == "categorical"
        width = len(feature.levels) if is_words else 1
        columns = list(range(len(kind), len(kind) + width))
        word = "cat" if is_words else "num"
        features.append({"kind": word, "cols": columns, "immutable": not feature.mutable, "weight": 1.0})
        kind += [word] * width
        weight += [0.5 if is_words else 1.0] * width  # a change of level moves two columns
        fixed += [not feature.mutable] * width
    schema = Record(
        n=len(kind),
        kind=np.array(kind),
        weight=np.array(weight),
        immutable=np.array(fixed),
        features=features,
        cats=[feature for feature in features if feature["kind"] == "cat"],
        numcols=np.flatnonzero(np.array(kind) == "num"),
    )
    trees, base = trees_of(asked)
    background = asked.model[0].transform(asked.favoured)
    return Record(schema=schema, trees=trees, base=base, margin=MARGIN, bg=np.asarray(background, dtype=np.float64))


def trees_of(asked: Question) -> tuple[list[Tree], float]:
    """Return column, threshold, left, right and value of each tree's nodes, and what their sum is above a tie by."""
    estimator = asked.model[-1]
    if hasattr(estimator, "estimators_"):
        place = estimator.classes_.tolist().index(asked.target)
        trees: list[Tree] = []
        for one in estimator.estimators_:
            tree = one.tree_
            value = tree.value[:, 0, place] - 0.5
            trees.append((tree.feature, tree.threshold, tree.children_left, tree.children_right, value))
        return trees, 0.0
    boosted = [_boosted(json.loads(text)) for text in estimator.get_booster().get_dump(dump_format="json")]
    row = asked.model[0].transform(asked.train.iloc[:1])
    leaves = sum(_value_of(tree, row[0]) for tree in boosted)
    return boosted, float(estimator.predict(row, output_margin=True)[0]) - leaves


def _boosted(root: dict[str, Any]) -> Tree:
    nodes = [root]
    for node in nodes:
        nodes.extend(node.get("children", ()))
    nodes.sort(key=lambda node: node["nodeid"])
    place = {node["nodeid"]: at for at, node in enumerate(nodes)}
    column = [int(node["split"][1:]) if "split" in node else -2 for node in nodes]
    below = np.array([node.get("split_condition", 0.0) for node in nodes], dtype=np.float32)
    threshold = np.nextafter(below, np.float32(-np.inf)).astype(np.float64)  # theirs is "less", not "at most"
    left = [place[node["yes"]] if "split" in node else -1 for node in nodes]
    right = [place[node["no"]] if "split" in node else -1 for node in nodes]
    value = [node.get("leaf", 0.0) for node in nodes]
    return np.array(column), threshold, np.array(left), np.array(right), np.array(value)


def _value_of(tree: Tree, row: np.ndarray) -> float:
    column, threshold, left, right, value = tree
    node = 0
    while left[node] >= 0:
        node = left[node] if np.float32(row[column[node]]) <= threshold[node] else right[node]
    return float(value[node])


# ---- the run ---------------------------------------------------------------------------------------------------------
def ask(way: str, asked: Question, bare: Any, row: pd.DataFrame, limit_s: float) -> dict[str, Any]:
    """Ask one way: status, cost and whether the model disagrees with the answer."""
    if way == OURS:
        result = ceopt.explain(
            asked.model, row, asked.space, target=asked.target, cost=COST, data=asked.train, time_limit_s=limit_s
        )
        if not len(result):
            return {"status": str(result.status), "cost": None}
        return {"status": str(result.status), "proof": result.proof, "cost": result[0].cost}
    bare.opt = {"solver": "highs", **BARE[way]}
    found = bare.solve(np.asarray(asked.model[0].transform(row), dtype=np.float64)[0], clock)
    return {"status": found["status"], "cost": found.get("obj"), "size": found["size"]}


def main() -> None:
    """Ask, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prototype", type=Path, required=True, help="the folder of bare_tree.py")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"default {ROWS}")
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"seconds a person, default {LIMIT}")
    parser.add_argument("--only", choices=DATA, action="append", help="these data sets only; nothing is written")
    parser.add_argument("--quick", action="store_true", help="three people; nothing is written")
    options = parser.parse_args()
    rows = 3 if options.quick else options.rows
    settings = {"rows": rows, "limit_s": options.limit, "margin": MARGIN, "seed": common.SEED}
    quick = options.quick or bool(options.only)
    prototype = load_prototype(options.prototype)
    tasks = [(data, name) for data in options.only or DATA for name in MODELS]
    asks = {f"{data}/{name}": partial(one_model, prototype, data, name, rows, options.limit) for data, name in tasks}
    common.asked_one_by_one("bare_trees", settings, asks, (TITLE, MEASURES, text_of), quick=quick)


def one_model(prototype: ModuleType, data: str, name: str, rows: int, limit_s: float) -> dict[str, Any]:
    """Ask all ways about every person in turns, after one who pays for what is kept."""
    asked = question(data, name, rows + 1)
    bare = prototype.BareTree(task_of(asked), limit_s)
    people = asked.people
    predict_s = common.seconds_of_predict(asked.model, people)
    for way in WAYS:
        ask(way, asked, bare, people.iloc[[-1]], limit_s)
    records = []
    for place in range(len(people) - 1):
        asked_of = {}
        for way in common.rotated(WAYS, place):
            began, cpu = time.perf_counter(), time.process_time()
            found = ask(way, asked, bare, people.iloc[[place]], limit_s)
            cpu, seconds = time.process_time() - cpu, time.perf_counter() - began
            asked_of[way] = {**found, "cpu": cpu, "seconds": seconds}
        records.append(asked_of)
    return {"data": data, "model": name, "predict": predict_s, "people": records}


# ---- the page --------------------------------------------------------------------------------------------------------
def text_of(record: dict[str, Any]) -> str:
    """Tabulate seconds and ratios."""
    settings = record["settings"]
    about = (
        f"{settings['rows']} people each whom a model refuses, over numbers scaled to [0, 1] and levels; fixed columns "
        "stay, and the cost is l1, 1 a level. The bare program is built of arrays, pruned by the best favourable row "
        "of the data, and solved by HiGHS once; *best* looks for a start by climbs too, gives it to HiGHS and turns "
        f"its heuristics and restarts off. {settings['limit_s']:g} s, one thread, seconds of the processor after one "
        "person; `P` is one `predict` of one row. *times* is `explain` over the bare program and 2 P: the median over "
        "people, and of the sums. Costs differ if by more than 1e-5 of them and 1e-6 where both are proved."
    )
    head = ["data", "model", "P", "way", "seconds: median / 90 % / worst", "proved", "times, median", "of sums"]
    lines = []
    for one in record["records"]:
        ours = [p[OURS] for p in one["people"]]
        for way in WAYS:
            part = [p[way] for p in one["people"]]
            proved = sum(r["status"] in {"optimal", "infeasible"} for r in part)
            line = [one["data"], one["model"], f"{one['predict']:.4f}", way, common.spread([r["cpu"] for r in part])]
            line += [f"{proved} of {len(part)}", "", "", ""]
            if way != OURS:
                least = [r["cpu"] + 2.0 * one["predict"] for r in part]
                times = [a["cpu"] / b for a, b in zip(ours, least, strict=True)]
                sums = sum(a["cpu"] for a in ours) / sum(least)
                line[-3:] = [f"{np.median(times):.2f}", f"{sums:.2f}", str(sum(map(differs, ours, part)))]
            lines.append(line)
    return about + "\n\n" + common.markdown_table([*head, "costs that differ"], lines)


def differs(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both are proved and not the same."""
    if one["status"] != "optimal" or other["status"] != "optimal":
        return {one["status"], other["status"]} == {"optimal", "infeasible"}
    apart = abs(one["cost"] - other["cost"])
    return bool(apart > TINY + SAME * max(one["cost"], other["cost"]))


if __name__ == "__main__":
    main()

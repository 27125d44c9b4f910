"""One method of one library, asked for one counterfactual a person; ``excess.py`` runs it in the library's environment.

Imports nothing of ceopt. Each library gets the rows in the form that its documentation shows, its defaults, and what it
can be told of the rules: dice-ml which columns are fixed and which only rise, alibi the range of each column, NICE and
OCEAN nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from task_files import TaskFiles, read_task, write_answers

__all__ = ["METHODS", "PACKAGES", "REST_S"]

#: Of the limit, what a solver with a limit of its own is left to hand over its answer.
REST_S = 5

Ask = Callable[[np.ndarray, int], "np.ndarray | None"]


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise TimeoutError after so many seconds of the clock."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# ---- dice-ml ---------------------------------------------------------------------------------------------------------
def dice(task: TaskFiles, method: str, _limit_s: int) -> Ask:
    """dice-ml, scikit-learn back end: levels are text, fixed columns do not vary, rising ones have a range."""
    import dice_ml

    names = [column["name"] for column in task.columns]
    numbers = [column["name"] for column in task.columns if column["kind"] == "number"]
    vary = [column["name"] for column in task.columns if not column["fixed"]]

    class OnText:
        classes_ = np.array([0, 1])

        def predict_proba(self, table: Any) -> np.ndarray:
            return task.predict_proba(_from_text(names, table))

        def predict(self, table: Any) -> np.ndarray:
            return np.asarray(self.predict_proba(table).argmax(axis=1))

    rows = _as_text(task, task.train).assign(label=task.labels)
    data = dice_ml.Data(dataframe=rows, continuous_features=numbers, outcome_name="label")
    explainer = dice_ml.Dice(data, dice_ml.Model(model=OnText(), backend="sklearn"), method=method)

    def ask(row: np.ndarray, seed: int) -> np.ndarray | None:
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - dice-ml draws from it
        found = explainer.generate_counterfactuals(
            _as_text(task, row[None]), total_CFs=1, desired_class=task.target, features_to_vary=vary,
            permitted_range=_reach(task, row),
        ).cf_examples_list[0]  # fmt: skip
        for shown in (found.final_cfs_df_sparse, found.final_cfs_df):
            if shown is not None and len(shown):
                return np.asarray(_from_text(names, shown[names])[0])
        return None

    return ask


def _as_text(task: TaskFiles, rows: np.ndarray) -> Any:
    """Return rows with the places of levels as text: dice-ml takes numbers for numbers."""
    import pandas as pd

    table = {}
    for place, column in enumerate(task.columns):
        values = rows[:, place]
        if column["kind"] != "number":
            table[column["name"]] = pd.Series([str(int(value)) for value in values], dtype=object)
        elif column["whole"]:
            table[column["name"]] = pd.Series(values.astype(np.int64))
        else:
            table[column["name"]] = pd.Series(values)
    return pd.DataFrame(table)


def _from_text(names: list[str], table: Any) -> np.ndarray:
    import pandas as pd

    return pd.DataFrame(table, columns=names).astype(float).to_numpy()


def _reach(task: TaskFiles, row: np.ndarray) -> dict[str, list[Any]]:
    """Return the ranges of the columns that can only rise."""
    reach: dict[str, list[Any]] = {}
    for place, column in enumerate(task.columns):
        home = row[place]
        if column["fixed"] or not column["rising"]:
            continue
        if column["kind"] == "number":
            reach[column["name"]] = [home, max(column["upper"], home)]
        else:
            reach[column["name"]] = [str(rank) for rank in range(int(home), len(column["levels"]))]
    return reach


# ---- NICE ------------------------------------------------------------------------------------------------------------
def nice(task: TaskFiles, method: str, _limit_s: int) -> Ask:
    """NICEx: levels by their places, categories apart from numbers; of the rules it can be told none."""
    from nice import NICE

    levels = [place for place, column in enumerate(task.columns) if column["kind"] == "one_hot"]
    numbers = [place for place, column in enumerate(task.columns) if column["kind"] != "one_hot"]
    explainer = NICE(
        predict_fn=task.predict_proba, X_train=task.train.copy(), cat_feat=levels, num_feat=numbers,
        y_train=task.labels, optimization=method, justified_cf=True, distance_metric="HEOM", num_normalization="minmax",
    )  # fmt: skip

    def ask(row: np.ndarray, _seed: int) -> np.ndarray | None:
        return np.asarray(explainer.explain(row[None].copy()), dtype=np.float64)[0]

    return ask


# ---- alibi -----------------------------------------------------------------------------------------------------------
def alibi(task: TaskFiles, _method: str, _limit_s: int) -> Ask:
    """CounterfactualProto with k-d trees, on ordinal codes, with the settings of its example on Adult.

    Numbers and ranks are scaled to [-1, 1], and the model rounds what is whole: so the answer may be rounded too.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    tf.compat.v1.disable_v2_behavior()
    from alibi.explainers import CounterfactualProto

    levels = [place for place, column in enumerate(task.columns) if column["kind"] == "one_hot"]
    order = [place for place in range(len(task.columns)) if place not in levels] + levels
    back = np.argsort(order)
    low, high = task.train.min(axis=0), task.train.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    scaled = np.array([place not in levels for place in order])
    whole = np.array([column["whole"] for column in task.columns])

    def there(rows: np.ndarray) -> np.ndarray:
        moved = rows[:, order].astype(np.float64)
        return np.asarray(np.where(scaled, 2.0 * (moved - low[order]) / width[order] - 1.0, moved), dtype=np.float32)

    def here(rows: np.ndarray) -> np.ndarray:
        codes = rows.astype(np.float64)
        moved = np.where(scaled, (codes + 1.0) / 2.0 * width[order] + low[order], codes)[:, back]
        return np.asarray(np.where(whole, np.rint(moved), moved))

    train = there(task.train)
    categories = {order.index(place): len(task.columns[place]["levels"]) for place in levels}
    shape = (1, train.shape[1])
    explainer = CounterfactualProto(
        lambda rows: task.predict_proba(here(np.atleast_2d(rows))), shape, beta=0.01, theta=10.0,
        cat_vars=categories or None, ohe=False, use_kdtree=True, max_iterations=500, c_init=1.0, c_steps=5,
        eps=(0.01, 0.01), feature_range=(-np.ones(shape, dtype=np.float32), np.ones(shape, dtype=np.float32)),
    )  # fmt: skip
    explainer.fit(train, d_type="abdm", disc_perc=[25, 50, 75])

    def ask(row: np.ndarray, _seed: int) -> np.ndarray | None:
        asked = there(row[None])
        explainer.cf_global = {}
        try:
            explainer.explain(asked)
        except TimeoutError:  # what it has found by then is its answer, as of a solver
            if not any(explainer.cf_global.values()):
                raise
        best = [found for _, step in sorted(explainer.cf_global.items()) for found in step]  # each better than the last
        if not best:
            return None
        codes = np.asarray(best[-1], dtype=np.float32).reshape(1, -1)
        kept = (codes == asked)[0, back]  # what it left as it was stays to the last digit
        return np.where(kept, row, here(codes)[0])

    return ask


# ---- OCEAN -----------------------------------------------------------------------------------------------------------
def ocean(task: TaskFiles, _method: str, limit_s: int) -> Ask:
    """Ask oceanpy's constraint programme, l1 over the forest's own columns; of the rules it can be told none.

    Numbers and ranks are continuous and scaled to [-0.5, 0.5], as its ``parse_features`` makes them: its discrete
    features cost their raw difference. It goes just past a threshold; what is whole goes on to the next whole number.
    """
    import pandas as pd
    from ocean import ConstraintProgrammingExplainer
    from ocean.abc import Mapper
    from ocean.feature import Feature

    kinds: dict[str, Any] = {}
    columns: list[tuple[str, str]] = []
    for column in task.columns:
        name = column["name"]
        if column["kind"] == "one_hot":
            codes = [f"{rank:03d}" for rank in range(len(column["levels"]))]
            kinds[name] = Feature(Feature.Type.ONE_HOT_ENCODED, codes=codes)
            columns += [(name, code) for code in codes]
        else:
            kinds[name] = Feature(Feature.Type.CONTINUOUS, levels=(-1.0, 1.0))
            columns.append((name, ""))
    mapper = Mapper(kinds, columns=pd.MultiIndex.from_tuples(columns))
    explainer = ConstraintProgrammingExplainer(as_sklearn(task), mapper=mapper)

    def ask(row: np.ndarray, seed: int) -> np.ndarray | None:
        x = task.encoded(row[None])[0]
        found = explainer.explain(x, y=task.target, norm=1, max_time=limit_s - REST_S, num_workers=1, random_seed=seed)
        if found is None:
            return None
        return _decoded(task, row, x, np.asarray(found.x, dtype=np.float64))

    return ask


def _decoded(task: TaskFiles, row: np.ndarray, x: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return an answer in the forest's columns as coordinates."""
    answer, at = row.astype(np.float64).copy(), 0
    for place, column in enumerate(task.columns):
        width = len(column["levels"]) if column["kind"] == "one_hot" else 1
        if column["kind"] == "one_hot":
            answer[place] = np.argmax(codes[at : at + width])
        elif codes[at] != x[at]:
            value = (codes[at] - column["shift"]) / column["scale"]
            beyond = np.floor if codes[at] < x[at] else np.ceil
            answer[place] = beyond(value) if column["whole"] else value
        at += width
    return answer


def as_sklearn(task: TaskFiles) -> Any:
    """Return the forest as scikit-learn's own, which oceanpy reads: fitted anew on the same rows with the same seed."""
    from sklearn.ensemble import RandomForestClassifier

    trees, depth, seed = (int(task.arrays[name]) for name in ("trees", "depth", "seed"))
    forest = RandomForestClassifier(trees, max_depth=depth or None, random_state=seed, n_jobs=1)
    encoded = task.encoded(task.train)
    forest.fit(encoded, task.labels)
    if not np.array_equal(forest.predict_proba(encoded), task.predict_proba(task.train)):
        sys.exit("This scikit-learn grows another forest; install the version that the task was made with.")
    return forest


METHODS: dict[str, tuple[Callable[[TaskFiles, str, int], Ask], str]] = {
    "dice-ml, random": (dice, "random"),
    "dice-ml, genetic": (dice, "genetic"),
    "dice-ml, kdtree": (dice, "kdtree"),
    "NICE, proximity": (nice, "proximity"),
    "NICE, sparsity": (nice, "sparsity"),
    "OCEAN, l1": (ocean, ""),
    "alibi, prototypes": (alibi, ""),
}
#: The distributions behind each function, whose versions are told.
PACKAGES = {
    dice: ("dice-ml",), nice: ("NICEx",), alibi: ("alibi", "tensorflow"), ocean: ("oceanpy", "ortools")
}  # fmt: skip


def main() -> None:
    """Ask about every person of a task's folder, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--limit", type=int, default=60)
    options = parser.parse_args()
    task = read_task(options.folder)
    make, way = METHODS[options.method]
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(io.StringIO()):
        ask = make(task, way, options.limit)
        records = [asked(ask, row, place, options.limit) for place, row in enumerate(task.people)]
    write_answers(options.answers, records)
    found = {"python": sys.version.split()[0]}
    for package in PACKAGES[make]:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    print(json.dumps(found))


def asked(ask: Ask, row: np.ndarray, seed: int, limit_s: int) -> dict[str, Any]:
    """Ask about one person: how it ended, the answer, and the seconds."""
    began, cpu = time.perf_counter(), time.process_time()
    answer = None
    try:
        with limited(limit_s), contextlib.redirect_stderr(io.StringIO()):
            answer = ask(row, seed)
        status = "none" if answer is None else "answered"
    except TimeoutError:
        status = "time-out"
    except Exception as error:  # noqa: BLE001 - whatever another library raises is its answer
        status = type(error).__name__
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    coordinates = None if answer is None else [float(value) for value in answer]
    return {"status": status, "answer": coordinates, "seconds": seconds, "cpu": cpu}


if __name__ == "__main__":
    main()

"""CounterNet and RoCourseNet: seconds of training, recourse for ten thousand rows, and what an audit makes of it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import common
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from ceopt import FeatureSpace
from ceopt.formulations.costs import L1
from ceopt.training import CounterNet, RoCourseNet

TITLE = "Recourse that is trained, and its audit"
MEASURES = ("ceopt/training", "ceopt/population.py")

DATA_SETS = ("german", "heloc", "compas")
NETWORKS: Mapping[str, Any] = {"CounterNet": CounterNet, "RoCourseNet": RoCourseNet}
#: Calls of ``recourse`` after the first.
CALLS = 5
#: Rows of each such call.
ROWS = 10_000
#: Ratios of cost to proved bound at which advice is kept.
RATIOS = (1.5, 10.0)


def measured(data_set: str, network: str, people: int) -> dict[str, Any]:
    """Train one network with its defaults, ask it for many rows, and have advice polished."""
    task = common.load(data_set)
    model = NETWORKS[network](space=task.bunch.space, desired=task.target)
    began = time.perf_counter()
    model.fit(task.train, task.labels)
    fit_s = time.perf_counter() - began
    refused = common.rejected(task, model, people)
    record = {
        "data": data_set,
        "network": network,
        "rows": len(task.train),
        "columns": len(task.bunch.space),
        "epochs": len(model.history_),
        "accuracy": float(model.score(task.others, task.bunch.target.loc[task.others.index])),
        "fit_s": fit_s,
        **asked(model, task.others),
    }
    for ratio in RATIOS:
        record[f"at most {ratio:g} times"] = polished(model, refused, task.target, ratio)
    record["refined"] = refined(model, refused, task.target)
    return record


def asked(model: Any, others: pd.DataFrame) -> dict[str, Any]:
    """Return how long recourse for many rows takes, how much of it the model accepts, and what is not legal."""
    X = others.sample(ROWS, replace=True, random_state=common.SEED).reset_index(drop=True)
    model.recourse(X.head(10))
    seconds = []
    for _ in range(CALLS):
        began = time.perf_counter()
        advice = model.recourse(X)
        seconds.append(time.perf_counter() - began)
    met = model.predict(advice) == model.desired
    return {"recourse_s": seconds, "valid": float(met.mean()), "illegal": illegal(model.space_, X, advice)}


def illegal(space: FeatureSpace, before: pd.DataFrame, after: pd.DataFrame) -> int:
    """Count rows with an entry that moved though it is fixed, or against its direction, off its levels or its grid."""
    wrong = np.zeros(len(before), dtype=bool)
    for feature in space:
        own = before[feature.name]
        new = after[feature.name]
        moved = (new != own).to_numpy()
        if not feature.mutable:
            wrong |= moved
        if feature.levels:
            wrong |= ~new.isin(feature.levels).to_numpy()
        else:
            wrong |= moved & ~new.between(feature.lower, feature.upper).to_numpy()
            steps = (new - own).to_numpy(dtype=float)
            wrong |= (feature.direction == "increasing") & (steps < 0.0)
            wrong |= (feature.direction == "decreasing") & (steps > 0.0)
            if feature.kind == "integer":
                wrong |= moved & (new.to_numpy(dtype=float) % 1.0 != 0.0)
    return int(wrong.sum())


def polished(model: Any, people: pd.DataFrame, target: Any, ratio: float) -> dict[str, Any]:
    """Return what became of the advice of some people."""
    began = time.perf_counter()
    cohort = model.polish(people, max_ratio=ratio)
    seconds = time.perf_counter() - began
    answers = cohort.to_frame()
    answered = answers.dropna(subset=["cost"])
    met = model.predict(answered[list(people)].astype(people.dtypes)) == target
    audit = cohort.audit
    return {
        "people": len(people),
        "statuses": cohort.counts(),
        "answered": len(answered),
        "invalid": int((~met).sum()),
        "sources": audit["source"].value_counts().to_dict(),
        "advice_valid": float(audit["valid"].mean()),
        "median_excess": float(audit["excess"].median()),
        "median_gap": float(audit["gap"].median()),
        "wall_s": seconds,
    }


def refined(model: Any, people: pd.DataFrame, target: Any) -> dict[str, Any]:
    """Return what searching on from the advice takes, and by what share it still costs more than is proved."""
    if people.empty:
        return {"people": 0}
    model.recourse(people.head(1), refine=True)
    began = time.process_time()
    after = model.recourse(people, refine=True)
    seconds = time.process_time() - began
    space, cost = model.space_, L1()
    audit = model.polish(people, max_ratio=1.0, time_limit_s=30.0).audit
    proved = audit["gap"].to_numpy() <= 1e-3  # polish proves to a gap of its own
    costs = [cost.value(space, space.row(people.iloc[[k]]), space.row(after.iloc[[k]])) for k in range(len(people))]
    excess = (np.array(costs) / audit["cost"].to_numpy() - 1.0)[proved]
    return {
        "people": len(people),
        "proved": int(proved.sum()),
        "invalid": int((model.predict(after) != target).sum()),
        "excess": np.quantile(excess, (0.5, 0.9, 1.0)).tolist() if proved.any() else [],
        "cpu_s": seconds,
    }


# ---- the page --------------------------------------------------------------------------------------------------------
def text_of(record: dict[str, Any]) -> str:
    """Summarise."""
    records = record["records"]
    trained = []
    for one in records:
        seconds = float(np.median(one["recourse_s"]))
        trained.append([
            one["data"], one["network"], one["rows"], one["columns"], one["epochs"], f"{one['fit_s']:.1f}",
            f"{one['accuracy']:.3f}", f"{seconds:.2f}", f"{seconds / ROWS * 1e3:.3f}", f"{one['valid']:.3f}",
            one["illegal"],
        ])  # fmt: skip
    audits = []
    for one in records:
        for ratio in RATIOS:
            found = one[f"at most {ratio:g} times"]
            if found["people"] == 0:
                audits.append([one["data"], one["network"], f"{ratio:g}", "nobody is refused", *[""] * 8])
                continue
            shares = [found["sources"].get(source, 0) for source in ("generator", "repaired", "engine")]
            audits.append([
                one["data"], one["network"], f"{ratio:g}", found["people"], found["answered"], found["invalid"],
                *shares, f"{found['median_excess']:.1f}", f"{found['median_gap']:.2f}",
                f"{found['wall_s'] / found['people']:.2f}",
            ])  # fmt: skip
    further = []
    for one in records:
        found = one.get("refined", {})
        if found.get("people"):
            further.append([
                one["data"], one["network"], found["people"], found["invalid"], found["proved"],
                *(f"{share:.3f}" for share in found["excess"] or [math.nan] * 3),
                f"{found['cpu_s'] / found['people'] * 1e3:.0f}",
            ])  # fmt: skip
    refined_text = ""
    if further:
        refined_text = (
            "\n\n**`recourse(..., refine=True)`** of the same people. Excess: by what share it costs more than the "
            "optimum, of those whose optimum `polish` proves within 30 s.\n\n"
            + common.markdown_table(
                ["data", "network", "people", "invalid", "proved", "excess, median", "90 %", "worst",
                 "CPU ms a person"],
                further,
            )
        )  # fmt: skip
    return (
        "Networks with their default settings on three quarters of the rows, one thread; the seconds of `fit` hold "
        f"what JAX {record['libraries']['jax']} takes to compile.\n\n"
        f"**Training, and `recourse` for {ROWS:,} rows** as a frame in raw units, decoded and put on legal values "
        f"(median of {CALLS} calls). Valid: the share that the model accepts. Not legal: rows with a fixed column that "
        "moved, a step against its direction, a level or number that is none; counted by the benchmark's own rules.\n\n"
        + common.markdown_table(
            ["data", "network", "rows", "columns", "epochs", "fit, s", "accuracy", f"{ROWS:,} rows, s", "a row, ms",
             "valid", "not legal"],
            trained,
        )
        + "\n\n**`polish`** of people who were turned down, at two ratios of cost to proved bound. Kept: the "
        "generator's advice as it stands. Excess: by how many times the bound the advice is above it.\n\n"
        + common.markdown_table(
            ["data", "network", "ratio", "people", "answered", "invalid", "kept", "repaired", "engine",
             "median excess", "median gap", "s a person"],
            audits,
        )
        + refined_text
    )  # fmt: skip


def main() -> None:
    """Measure, and write the report."""
    options = common.arguments("Recourse that is trained, and its audit.", rows=30)
    people = 3 if options.quick else options.rows
    chosen = DATA_SETS[:1] if options.quick else DATA_SETS
    turns = [(data_set, network) for data_set in chosen for network in NETWORKS]
    with threadpool_limits(1):
        records = [measured(*turn, people) for turn in common.bar(turns, len(turns))]
    record = {"libraries": common.installed(["jax", "optax", "scikit-learn"]), "records": records}
    common.report("training", TITLE, MEASURES, text_of, record, quick=options.quick)


if __name__ == "__main__":
    main()

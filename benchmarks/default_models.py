"""Models as libraries fit them by default, on four data sets: ``explain`` today beside 0.2.0, in turns.

Each version answers in a process of its own (``default_models_ask.py``). ``--before`` names a checkout of 0.2.0:
``git worktree add FOLDER e7058e7``; without it only today's is asked. ``--only heloc`` asks about one data set,
``--only heloc/ExtraTrees`` about one model; several at once share one journal, and the page says what is not asked yet.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import common
import joblib
import matplotlib.pyplot as plt
import numpy as np
import provenance
from default_models_ask import BEFORE, NEAR, TEN, THREE, TODAY
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

TITLE = "Default models"
MEASURES = ("ceopt/search", "formulations/predictors")

DATA = ("german", "adult", "heloc", "gmsc")
MODELS = ("RandomForest", "HistGradientBoosting", "XGBoost", "LightGBM", "LogisticRegression")
OF_HELOC = (
    "RandomForest, 20 rows a leaf",
    "RandomForest 100 x 5",
    "ExtraTrees",
    "XGBoost 100 x 3",
    "XGBoost 300 x 6",
    "LightGBM 300 x 31",
)
ONE_ANSWER = ("RandomForest, 20 rows a leaf", "ExtraTrees", "XGBoost 300 x 6", "LightGBM 300 x 31")
#: Models of so many leaves that each question to 0.2.0 takes minutes.
TOO_LARGE_BEFORE = ("gmsc/RandomForest",)
ROOT = Path(__file__).resolve().parents[1]
ROWS, LIMIT = 20, 30


def estimator(name: str) -> Any:
    """Return an estimator that is not fitted yet."""
    seed = common.SEED
    if name.startswith("XGBoost"):
        from xgboost import XGBClassifier

        sizes = {"XGBoost 300 x 6": {"n_estimators": 300, "max_depth": 6}, "XGBoost 100 x 3": {"max_depth": 3}}
        return XGBClassifier(random_state=seed, n_jobs=1, **sizes.get(name, {}))
    if name.startswith("LightGBM"):
        from lightgbm import LGBMClassifier

        size = {"n_estimators": 300} if name == "LightGBM 300 x 31" else {}
        return LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1, **size)
    return {
        "RandomForest": lambda: RandomForestClassifier(random_state=seed),
        "RandomForest, 20 rows a leaf": lambda: RandomForestClassifier(min_samples_leaf=20, random_state=seed),
        "RandomForest 100 x 5": lambda: RandomForestClassifier(max_depth=5, random_state=seed),
        "ExtraTrees": lambda: ExtraTreesClassifier(random_state=seed),
        "HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=seed),
        "LogisticRegression": lambda: LogisticRegression(max_iter=5000),
    }[name]()


def keep_task(data: str, name: str, rows: int, path: Path) -> None:
    """Fit a model, text one-hot and all else as it is or scaled, and keep it with the people to be asked about."""
    task = common.load(data)
    rest = StandardScaler() if name == "LogisticRegression" else "passthrough"
    model = common.one_hot(task.train, estimator(name), rest).fit(task.train, task.labels)
    people = common.rejected(task, model, rows + 1)
    kept = {"data": data, "model": model, "train": task.train, "people": people, "target": task.target}
    joblib.dump(kept, path)


def main() -> None:
    """Ask, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="a checkout of 0.2.0")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"default {ROWS}")
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"seconds a person, default {LIMIT}")
    parser.add_argument("--only", action="append", help="a data set, a model or data/model")
    parser.add_argument("--quick", action="store_true", help="two people, today's ceopt; nothing is written")
    options = parser.parse_args()
    rows = 2 if options.quick else options.rows
    common.data_folder()
    settings = {
        "rows": rows,
        "limit_s": options.limit,
        "before": "e7058e7 (0.2.0)" if options.before else None,
        "seed": common.SEED,
    }
    tasks = [(data, name) for data in DATA for name in MODELS + OF_HELOC * (data == "heloc")]
    only = set(options.only or DATA)
    own = [f"{data}/{name}" for data, name in tasks if only & {data, name, f"{data}/{name}"}]
    own.sort(key=TOO_LARGE_BEFORE.__contains__)
    told = (TITLE, MEASURES, text_of)
    with tempfile.TemporaryDirectory() as kept:
        asked = partial(one_model, path=Path(kept) / "task.joblib", settings=settings, before=options.before)
        asks = {f"{data}/{name}": partial(asked, data, name) for data, name in tasks}
        common.asked_one_by_one("default_models", settings, asks, told, quick=options.quick, own=own, draw=draw)


def one_model(data: str, name: str, *, path: Path, settings: dict[str, Any], before: Path | None) -> dict[str, Any]:
    """Ask both versions about each person in turns, today's in several ways."""
    keep_task(data, name, settings["rows"], path)
    ways = (TODAY, NEAR) if name in ONE_ANSWER else (TODAY, NEAR, THREE, TEN)
    words = [str(path), str(settings["limit_s"])]
    with contextlib.ExitStack() as stack:
        today = stack.enter_context(common.asked("default_models_ask.py", words, ROOT))
        processes = dict.fromkeys(ways, today)
        if before is not None and name not in ONE_ANSWER and f"{data}/{name}" not in TOO_LARGE_BEFORE:
            processes[BEFORE] = stack.enter_context(common.asked("default_models_ask.py", words, before))
        first = {way: processes[way].told["first"] for way in (TODAY, BEFORE) if way in processes}
        records = [
            {"place": place, "way": way, **processes[way].ask(place, way)}
            for place in range(today.told["people"])
            for way in common.rotated(list(processes), place)
        ]
        commit = provenance.source(MEASURES)["commit"]
        of_model = {"predict": today.told["predict"], "first": first, "people": records, "commit": commit}
        return {"data": data, "model": name, **of_model}


# ---- the page --------------------------------------------------------------------------------------------------------
def text_of(record: dict[str, Any]) -> str:
    """Tabulate what was proved, seconds and ratios."""
    settings = record["settings"]
    about = (
        f"Up to {settings['rows']} people whom a model refuses, text one-hot and the rest as it is (scaled for the "
        f"logistic model), the cost and space of the data set, {settings['limit_s']:g} s a person. Seconds are those "
        "of the processor, of one thread, after a first person, for whom the model was read; `P` is one `predict` of "
        "one row. *times 0.2.0* is the median over people of the ratio of both versions, where both were asked; one "
        "that is not proved counts with the seconds it had. *near* is `proof=False`: its seconds, and what it costs "
        "over the proved optimum at the median and at 90 %. *n = 3* and *n = 10* are medians of ratios to one answer. "
        "0.2.0 takes HELOC's codes for amounts, which is another question: there its seconds are beside today's, and "
        "its optima are not compared."
    )
    head = ["data", "model", "P", "first", "proved", "by", "seconds, median / 90 % / worst", "times 0.2.0"]
    near = ["data", "model", "answered", "seconds, median / 90 % / worst", "excess", "n = 3", "n = 10", "worst n = 10"]
    proofs, others, problems = [], [], Counter[str]()
    for one in record["records"]:
        ways = by_way(one["people"])
        today, before = ways[TODAY], ways.get(BEFORE, [])
        names = [one["data"], one["model"]]
        proved = sum(map(is_proved, today))
        how = ", ".join(f"{proof} {count}" for proof, count in Counter(r["proof"] for r in today if r["proof"]).items())
        first = f"{one['first'][TODAY]['cpu']:.1f}"
        times = f"{np.median(ratios(before, today)):.1f}" if before else ""
        if before:
            proofs_before = sum(map(is_proved, before))
            times += f" ({proofs_before} proved)"
        proofs.append(
            [*names, f"{one['predict']:.3f}", first, f"{proved} of {len(today)}", how, seconds_of(today), times]
        )
        over = excess(ways[NEAR], today)
        answered = f"{sum(r['answers'] > 0 for r in ways[NEAR])} of {len(today)}"
        more = [f"{np.median(ratios(ways[way], today)):.1f}" if way in ways else "" for way in (THREE, TEN)]
        worst = f"{max(r['cpu'] for r in ways[TEN]):.1f}" if TEN in ways else ""
        shares = " / ".join(f"{np.quantile(over, share):.3f}" for share in (0.5, 0.9)) if over else ""
        others.append([*names, answered, seconds_of(ways[NEAR]), shares, *more, worst])
        problems["invalid answers"] += sum(r["invalid"] for r in one["people"])
        if one["data"] != "heloc":
            problems["optima that differ"] += sum(differs(a, b) for a, b in zip(today, before, strict=False))
    counted = ", ".join(f"{count} {what}" for what, count in problems.items())
    parts = [
        about,
        *earlier_commits(record),
        f"In all {counted}.",
        "## One answer, proved",
        common.markdown_table(head, proofs),
    ]
    parts += ["## Near answers, and several", common.markdown_table(near, others)]
    return "\n\n".join(parts)


def earlier_commits(record: dict[str, Any]) -> list[str]:
    """Say which models were measured before the commit that the page names, and which were not."""
    by_commit: dict[str, list[str]] = {}
    for one in record["records"]:
        if one["commit"] != record["commit"]:
            by_commit.setdefault(one["commit"], []).append(f"{one['data']} {one['model']}")
    told = [f"at `{commit}` {', '.join(names)}" for commit, names in by_commit.items()]
    found = [f"Measured at an earlier commit: {'; '.join(told)}."] if told else []
    return [*found, *common.not_asked_yet(record)]


def by_way(people: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the records of each way in the order of the people."""
    ways: dict[str, list[dict[str, Any]]] = {}
    for one in sorted(people, key=lambda one: one["place"]):
        ways.setdefault(one["way"], []).append(one)
    return ways


def is_proved(one: dict[str, Any]) -> bool:
    """Whether an optimum, or that there is no answer, was proved."""
    return one["status"] in {"optimal", "infeasible"}


def ratios(above: list[dict[str, Any]], below: list[dict[str, Any]]) -> list[float]:
    """Return the seconds of each person, as a multiple of other seconds."""
    return [a["cpu"] / b["cpu"] for a, b in zip(above, below, strict=True)]


def differs(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two proved optima are not the same, within the gap that each was proved to."""
    if not (is_proved(one) and is_proved(other)):
        return False
    if one["cost"] is None or other["cost"] is None:
        return one["cost"] is not other["cost"]
    return abs(one["cost"] - other["cost"]) > 2e-6 * max(one["cost"], other["cost"])


def excess(near: list[dict[str, Any]], proved: list[dict[str, Any]]) -> list[float]:
    """Return by what share near answers cost more than proved optima."""
    pairs = [(a["cost"], b["cost"]) for a, b in zip(near, proved, strict=True) if a["answers"] and is_proved(b)]
    return [a / b - 1.0 for a, b in pairs if b]


def seconds_of(records: list[dict[str, Any]]) -> str:
    """Return the spread of the processor's seconds."""
    return common.spread([one["cpu"] for one in records], 2)


def draw(records: list[dict[str, Any]]) -> None:
    """Draw the seconds to a proof of each person, by model and data set."""
    names = [f"{one['model']}, {one['data']}" for one in records]
    figure, axes = plt.subplots(figsize=(7.0, 0.34 * len(names) + 1.0), layout="constrained")
    for way, colour, shift in ((BEFORE, "0.65", -0.15), (TODAY, "C0", 0.15)):
        for is_done, marker in ((True, "o"), (False, "x")):
            points = [
                (one["cpu"], place + shift)
                for place, of_model in enumerate(records)
                for one in by_way(of_model["people"]).get(way, [])
                if is_proved(one) is is_done
            ]
            if points:
                label = f"{way}, {'proved' if is_done else 'not proved'}"
                axes.plot(*zip(*points, strict=True), marker, color=colour, ms=3.5, label=label, alpha=0.8)
    axes.set(xscale="log", xlabel="seconds of the processor a person", yticks=range(len(names)), yticklabels=names)
    axes.invert_yaxis()
    axes.grid(axis="x", color="0.9")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(common.RESULTS / "default_models.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()

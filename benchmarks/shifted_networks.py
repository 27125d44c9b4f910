"""Answers for every network near a fitted one: the rule RobustToShift beside asking again with a greater margin."""

from __future__ import annotations

import argparse
import copy
import functools
import itertools
import math
import time
import warnings
from collections.abc import Iterable
from typing import Any

import common
import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

import ceopt

TITLE = "Answers for every network near a fitted one"
MEASURES = (
    "ceopt/search",
    "formulations/constraints/robust_to_shift.py",
    "formulations/predictors/embed/networks.py",
    "solvers/highs.py",
)

DATA_SETS = ("german", "heloc", "adult")
SIZES = {"10": (10,), "8, 8": (8, 8)}
DELTAS = (0.005, 0.02)
WAYS = ("nearest", "margin raised", "rule")
#: By how much the margin, in the logit, is raised from one question to the next.
STEP = 0.1
#: Shifted copies of the network that each answer is shown to.
COPIES = 200


@functools.cache
def task(name: str) -> common.Task:
    """Load a data set once."""
    return common.load(name)


@functools.cache
def network_of(name: str, size: str) -> Any:
    """Fit a network once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return common.fit(task(name), MLPClassifier(SIZES[size], alpha=0.1, max_iter=200, random_state=common.SEED))


# ---- what an answer is worth, by code that shares nothing with the package -------------------------------------------
def layers_of(network: Any, *, is_second: bool) -> list[tuple[Any, Any]]:
    """Return weights and biases of a network whose score is that of the target."""
    found = [(w.T.copy(), b.copy()) for w, b in zip(network[-1].coefs_, network[-1].intercepts_, strict=True)]
    if not is_second:
        found[-1] = (-found[-1][0], -found[-1][1])
    return found


def worst(layers: list[tuple[Any, Any]], seen: Any, delta: float) -> float:
    """Return the least score over the box at what the network sees: each product by its four corners."""
    low = high = np.asarray(seen, dtype=float).ravel()
    for depth, (w, b) in enumerate(layers, start=1):
        corners = np.stack([(w + move) * end for move in (-delta, delta) for end in (low, high)])
        low, high = corners.min(axis=0).sum(axis=1) + b - delta, corners.max(axis=0).sum(axis=1) + b + delta
        if depth < len(layers):
            low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
    return float(low[0])


def share_lost(network: Any, row: pd.DataFrame, target: int, delta: float) -> float:
    """Return the share of copies at random corners of the box that refuse a row."""
    rng = np.random.default_rng(common.SEED)
    seen = network[:-1].transform(row)
    lost = 0
    for _ in range(COPIES):
        other = copy.deepcopy(network[-1])
        other.coefs_ = [w + delta * rng.choice([-1.0, 1.0], w.shape) for w in other.coefs_]
        other.intercepts_ = [b + delta * rng.choice([-1.0, 1.0], b.shape) for b in other.intercepts_]
        lost += int(other.predict(seen)[0] != target)
    return lost / COPIES


# ---- the ways --------------------------------------------------------------------------------------------------------
def asked(name: str, size: str, delta: float, row: pd.DataFrame, way: str, *, limit_s: float) -> dict[str, Any]:
    """Ask in one way, and judge the answer."""
    network, target = network_of(name, size), task(name).target
    layers = layers_of(network, is_second=bool(list(network.classes_).index(target)))
    rounds = 0

    def explain(**more: Any) -> Any:
        limit = max(limit_s - (time.perf_counter() - began), 0.1)
        return ceopt.explain(
            network, row, task(name).bunch.space, target=target, data=task(name).train, time_limit_s=limit, why=False,
            **more,
        )  # fmt: skip

    def least(result: Any) -> float:
        return worst(layers, network[:-1].transform(result.to_frame()[list(row)]), delta)

    began = time.perf_counter()
    if way == "rule":
        result = explain(constraints=[ceopt.RobustToShift(delta)])
    else:
        result = explain()
    while way == "margin raised" and len(result) and least(result) < 0.0 and time.perf_counter() - began < limit_s:
        rounds += 1
        result = explain(margin=rounds * STEP)
    seconds = time.perf_counter() - began
    found: dict[str, Any] = {
        "data": name, "network": size, "delta": delta, "row": int(row.index[0]), "way": way, "rounds": rounds,
        "status": str(result.status), "seconds": seconds, "cost": None, "worst": None, "lost": None,
    }  # fmt: skip
    if len(result):
        answer = result.to_frame()[list(row)]
        found |= {"cost": result[0].cost, "worst": least(result), "lost": share_lost(network, answer, target, delta)}
    return found


# ---- the page --------------------------------------------------------------------------------------------------------
def is_robust(record: dict[str, Any]) -> bool:
    """Whether there is an answer that the worst of the box accepts."""
    return record["worst"] is not None and record["worst"] >= 0.0


def text_of(record: dict[str, Any]) -> str:
    """Return the tables."""
    settings = record["settings"]
    lines = []
    parts = list(itertools.product(DATA_SETS, SIZES, DELTAS))
    by_way: dict[str, list[dict[str, Any]]] = {way: [r for r in record["records"] if r["way"] == way] for way in WAYS}
    for name, size, delta in parts:
        for way in WAYS:
            some = [r for r in by_way[way] if (r["data"], r["network"], r["delta"]) == (name, size, delta)]
            if not some:
                continue
            lost = [r["lost"] for r in some if r["lost"] is not None]
            lines.append([
                name, size, delta, way, len(some), sum(r["status"] == "optimal" for r in some),
                sum(r["status"] == "infeasible" for r in some), sum(map(is_robust, some)),
                f"{max(lost, default=math.nan):.0%}", common.spread([r["seconds"] for r in some], 2),
            ])  # fmt: skip
    head = ["data", "network", "delta", "way", "people", "optimal", "none", "robust", "most lost", "seconds"]
    words = (
        f"{settings['people']} refused people of {', '.join(DATA_SETS)} ask networks of scikit-learn (behind one-hot "
        "encoders and a scaler, alpha .1) for the least change: the nearest answer; nearest answers with a margin of "
        f"the logit that is raised by {STEP} until the interval bound over the box is met; and with "
        f"`RobustToShift(delta)`. {settings['limit_s']} seconds a question, HiGHS, one thread; l1 in units of the "
        "columns' MAD. *Robust* counts answers that the worst of the box accepts, by interval arithmetic of the script "
        f"over scikit-learn's own weights; *most lost* is the greatest share of {COPIES} copies at random corners of "
        "the box that refuse an answer. RobustX, whose own programs ask the same of a network, was not installed."
    )
    return "\n\n".join([words, common.markdown_table(head, lines), found_of(by_way)])


def found_of(by_way: dict[str, list[dict[str, Any]]]) -> str:
    """Return the comparison of the rule with the margin that is raised."""

    def key(record: dict[str, Any]) -> tuple[Any, ...]:
        return record["data"], record["network"], record["delta"], record["row"]

    ruled = {key(r): r for r in by_way["rule"]}
    raised = {key(r): r for r in by_way["margin raised"]}
    answered = [r for r in ruled.values() if r["cost"] is not None]
    proved = {"optimal"}
    both = [k for k in ruled if {ruled[k]["status"], raised[k]["status"]} == proved and is_robust(raised[k])]
    dearer = [raised[k]["cost"] / ruled[k]["cost"] - 1.0 for k in both]
    alone = sum(is_robust(ruled[k]) and not is_robust(raised[k]) for k in ruled)
    other = sum(is_robust(raised[k]) and not is_robust(ruled[k]) for k in ruled)
    near = by_way["nearest"]
    return (
        f"With the rule {sum(map(is_robust, answered))} of {len(answered)} answers are robust, without it "
        f"{sum(map(is_robust, near))} of {sum(r['cost'] is not None for r in near)}. Where both are proved in time "
        f"({len(both)}) raising the margin costs {np.mean(dearer):.1%} more in the mean, {min(dearer):.1%} at least "
        f"and {max(dearer):.1%} at most; {alone} people are answered by the rule alone and {other} by the margin "
        "alone. "
        f"The median takes {median(ruled.values()):.2f} s by the rule and {median(raised.values()):.2f} s by raising "
        f"the margin, {median(near):.2f} s without either; what the limit ended counts as it."
    )


def median(some: Iterable[dict[str, Any]]) -> float:
    """Return the median of the seconds."""
    return float(np.median([r["seconds"] for r in some]))


def main() -> None:
    """Ask all, in turns, and write the page; a run that was stopped goes on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5, help="people of each data set and network, default 5")
    parser.add_argument("--limit", type=int, default=30, help="seconds a question, default 30")
    parser.add_argument("--quick", action="store_true", help="two people each, to see that it runs; writes nothing")
    options = parser.parse_args()
    settings = {"people": 2 if options.quick else options.rows, "limit_s": options.limit}
    journal = common.Journal("shifted_networks-quick" if options.quick else "shifted_networks", settings)
    questions = []
    for name, size in itertools.product(DATA_SETS, SIZES):
        people = common.rejected(task(name), network_of(name, size), settings["people"])
        for place, delta in itertools.product(range(len(people)), DELTAS):
            for way in common.rotated(list(WAYS), place):
                questions.append((f"{name}/{size}/{delta}/{place}/{way}", name, size, delta, people.iloc[[place]], way))
    for key, *question in common.bar(questions, len(questions)):
        if key not in journal.done:
            journal.add(key, asked(*question, limit_s=options.limit))
    kept = {"settings": settings, "records": journal.records}
    common.report("shifted_networks", TITLE, MEASURES, text_of, kept, quick=options.quick)
    journal.close()


if __name__ == "__main__":
    main()

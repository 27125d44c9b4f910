"""Regions around answers, of the data, models and protocol of Maragno et al. (2024): the rule ``Region``."""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import common
import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

import ceopt

TITLE = "Regions that keep the decision"
MEASURES = (
    "ceopt/search",
    "formulations/constraints/region.py",
    "formulations/constraints/region_adversary.py",
    "formulations/predictors",
    "solvers/highs.py",
)

FILES = {
    "banknote": "data_banknote_authentication.csv",
    "diabetes": "diabetes.csv",
    "ionosphere": "ionosphere.csv",
}
RADIUS = 0.05
#: Points drawn in the region of each answer.
SAMPLES = 20_000
#: The kinds of the published table, and the sizes that are asked about.
SIZES: dict[str, tuple[str, ...]] = {
    "linear": ("0",),
    "cart": ("3", "5", "10"),
    "rf": ("5", "10", "20", "50", "100"),
    "gbm": ("5", "10", "20", "50", "100"),
    "mlp": ("(10,)", "(10,10,10)", "(50,)", "(100,)"),
}
#: Median seconds that are asked for on a machine with nothing else to do.
GOALS = {("banknote", "rf", "100"): 5.0, ("banknote", "gbm", "100"): 1.0, ("diabetes", "rf", "100"): 20.0}
#: Share by which an answer may cost more than a proved one.
DEARER = 0.055
#: Sizes of several trees at which an optimum is proved, too.
PROVED = {"rf": ("5", "10", "20"), "gbm": ("5", "10", "20", "50", "100")}


def folder() -> Path:
    """Return the folder of the data and of the published rows."""
    return common.data_folder() / "regions"


@functools.cache
def data(name: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Return the columns of a data set, from 0 to 1, and its labels."""
    table = pd.read_csv(folder() / FILES[name], header=0 if name == "diabetes" else None)
    X = table.iloc[:, :-1].astype(float)
    X.columns = [f"x{k}" for k in range(X.shape[1])]
    X = X.loc[:, X.min() < X.max()]
    y = table.iloc[:, -1]
    return (X - X.min()) / (X.max() - X.min()), (y == "g" if name == "ionosphere" else y).astype(int)


@functools.cache
def model_of(name: str, kind: str, size: str) -> Any:
    """Fit a model as the authors do, on all of the data."""
    X, y = data(name)
    match kind:
        case "linear":
            model: Any = LogisticRegression(random_state=0)
        case "cart":
            model = DecisionTreeClassifier(max_depth=int(size), random_state=0)
        case "rf":
            model = RandomForestClassifier(max_depth=3, random_state=0, n_estimators=int(size))
        case "gbm":
            model = GradientBoostingClassifier(n_estimators=int(size), learning_rate=1.0, max_depth=2, random_state=0)
        case _:
            layers = tuple(int(width) for width in size.strip("(),").split(","))
            model = MLPClassifier(layers, activation="relu", random_state=0, max_iter=10000)
    return model.fit(X, y)


@functools.cache
def published() -> pd.DataFrame:
    """Return what the authors measured, by data, norm, radius, kind and size."""
    table = pd.read_csv(folder() / "published.csv", dtype={"size": str})
    return table.set_index(["dataset", "norm", "radius", "model", "size"])


def asked(name: str, kind: str, size: str, place: int, limit_s: float, *, exact: bool) -> dict[str, Any]:
    """Ask for the region of one row, and draw points in that of the answer."""
    X, _ = data(name)
    model, row = model_of(name, kind, size), X.iloc[[place]]
    target = 1 - int(model.predict(row)[0])
    space = ceopt.FeatureSpace([ceopt.Feature(column, kind="continuous", lower=0, upper=1) for column in X])
    rule = ceopt.Region(RADIUS, scale=dict.fromkeys(X, 1.0), exact=exact)

    def ask() -> dict[str, Any]:
        began, cpu = time.perf_counter(), time.process_time()
        result = ceopt.explain(
            model, row, space, target=target, cost=ceopt.L1(scale="none"), constraints=[rule], solver="highs",
            time_limit_s=limit_s,
        )  # fmt: skip
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        found: dict[str, Any] = {"status": str(result.status), "cost": None, "broken": None}
        found |= {"seconds": seconds, "cpu": cpu}
        if len(result):
            answer = result[0].values[list(X)].to_numpy(float)
            moves = np.random.default_rng(place).uniform(-RADIUS, RADIUS, (SAMPLES, len(answer)))
            said = model.predict(pd.DataFrame(answer + moves, columns=X.columns))
            found |= {"cost": result[0].cost, "broken": int((said != target).sum())}
        return found

    return {"data": name, "model": kind, "size": size, "row": place, "exact": exact} | ask()


def is_ended(record: dict[str, Any], limit_s: float) -> bool:
    """Whether the search ended by itself."""
    return record["status"] in {"optimal", "infeasible"} or record["seconds"] < 0.98 * limit_s


def summary(records: Sequence[dict[str, Any]], limits: dict[bool, float]) -> dict[str, Any]:
    """Return the numbers of one data set, model and size."""
    own = [r for r in records if not r["exact"]]
    proved = {r["row"]: r for r in records if r["exact"] and r["status"] == "optimal"}
    ratios = [r["cost"] / proved[r["row"]]["cost"] for r in own if r["row"] in proved and r["cost"] is not None]
    first = own[0]
    key = (first["data"], "linf", RADIUS, first["model"], first["size"])
    theirs = published().loc[key] if key in published().index else None
    return {
        "data": first["data"],
        "model": first["model"],
        "size": first["size"],
        "rows": len(own),
        "answers": sum(r["cost"] is not None for r in own),
        "none": sum(r["status"] == "infeasible" for r in own),
        "ended": sum(is_ended(r, limits[False]) for r in own),
        "seconds": [r["seconds"] for r in own],
        "cpu": [r["cpu"] for r in own],
        "proved": len(proved),
        "asked to prove": sum(r["exact"] for r in records),
        "proof seconds": [r["seconds"] for r in records if r["exact"]],
        "ratio": max(ratios, default=None),
        "broken": sum(r["broken"] or 0 for r in records),
        "published": None if theirs is None else float(theirs["seconds"]),
        "unsolved": None if theirs is None else int(theirs["unsolved_of_20"]),
    }


def outcome(record: dict[str, Any]) -> str:
    """Return what was asked for and what came of it, and what was not asked."""
    parts = {(part["data"], part["model"], part["size"]): part for part in record["parts"]}
    lines = []
    for key, goal in GOALS.items():
        if key in parts:
            part = parts[key]
            wall, cpu = float(np.median(part["seconds"])), float(np.median(part["cpu"]))
            verdict = "kept" if wall <= goal else "not kept here"
            lines.append(f"- {' '.join(key)}, a median of {goal:g} s: {verdict}, {wall:.2f} s ({cpu:.2f} s of CPU).")
    ratios = {key: part["ratio"] for key, part in parts.items() if part["ratio"] is not None}
    if ratios:
        worst = max(ratios, key=ratios.__getitem__)
        verdict = "kept" if ratios[worst] <= 1.0 + DEARER else "not kept"
        compared = sum(part["proved"] for part in parts.values())
        dearer = 100.0 * (ratios[worst] - 1.0)
        lines.append(
            f"- At most {100 * DEARER:g} % dearer than the proved optimum: {verdict}, {dearer:.2f} % at worst, of "
            f"{compared} questions with one."
        )
    broken = sum(part["broken"] for part in parts.values())
    lines.append(f"- No point drawn in the region of an answer is decided otherwise: {broken} are.")
    wall, cpu = (sum(sum(part[name]) for part in parts.values()) for name in ("seconds", "cpu"))
    lines.append(f"- Of a core, a call had {100.0 * cpu / wall:.0f} % while it ran: other programs had the rest.")
    rows = record["settings"]["rows"]
    wanted = [(name, kind, size) for name in FILES for kind, sizes in SIZES.items() for size in sizes]
    short = []
    for key in wanted:
        asked_of = parts[key]["rows"] if key in parts else 0
        proofs = parts[key]["asked to prove"] if key in parts else 0
        wants_proofs = key[2] in PROVED.get(key[1], ())
        if asked_of < rows or (wants_proofs and proofs < rows):
            what = f"{' '.join(key)} ({asked_of}"
            short.append(f"{what}; {proofs} proofs)" if wants_proofs else f"{what})")
    if short:
        lines.append(
            f"- Not all {rows} rows were asked before the run was stopped, which takes hours: {', '.join(short)}."
        )
    return "\n".join(lines)


def text_of(record: dict[str, Any]) -> str:
    """Return the table."""
    settings = record["settings"]
    rows = []
    for part in record["parts"]:
        dearer = "-" if part["ratio"] is None else f"{100.0 * (part['ratio'] - 1.0):.2f} %"
        theirs = "-" if part["published"] is None else f"{part['published']:.1f} ({part['unsolved']})"
        proofs = "-"
        if part["asked to prove"]:
            proofs = f"{part['proved']} of {part['asked to prove']}; {common.spread(part['proof seconds'], 2)}"
        rows.append([
            part["data"], part["model"], part["size"], part["rows"], part["answers"], part["none"], part["ended"],
            common.spread(part["seconds"], 2), f"{np.median(part['cpu']):.2f}", theirs, proofs, dearer, part["broken"],
        ])  # fmt: skip
    words = (
        f"The first {settings['rows']} rows of each data set ask for the other class, l1 on columns from 0 to 1, with "
        f"a box of {RADIUS} on either side of the answer, linf (`Region({RADIUS}, scale={{column: 1}})`). Forests are "
        "of depth 3, boosting of depth 2 and learning rate 1, single trees (cart) of the depth that is their size. "
        f"{settings['limit_s']} seconds a row, HiGHS, one thread; *seconds* are median / 90 % / worst of whole calls "
        "on a machine that others used too, and *CPU* the median of what a call itself took. "
        "*Published*: mean seconds over what was solved of 20 rows, and how many were not, by the authors with Gurobi "
        f"and 1,000 seconds. *Proved*: the same with `exact=True`, {settings['proof_s']} seconds, not asked of the "
        "largest forests; *dearer*: by how much an answer costs more than the proved one, at most. "
        f"*Broken*: of {SAMPLES:,} points drawn in the region of each answer those that are decided otherwise."
    )
    head = ["data", "model", "size", "rows", "answers", "none", "ended", "seconds", "CPU", "published", "proved",
            "dearer", "broken"]  # fmt: skip
    return "\n\n".join([words, outcome(record), common.markdown_table(head, rows)])


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10, help="rows of each data set, default 10")
    parser.add_argument("--limit", type=int, default=60, help="seconds a row, default 60")
    parser.add_argument("--proof", type=int, default=30, help="seconds a row with exact=True, default 30")
    parser.add_argument("--now", action="store_true", help="ask nothing: the page of those asked so far")
    parser.add_argument("--quick", action="store_true", help="one row each of the smallest, writes nothing")
    return parser.parse_args()


def main() -> None:
    """Ask all, and go on where an earlier run stopped: at first without a proof."""
    args = options()
    settings = {"rows": 1 if args.quick else args.rows, "limit_s": args.limit, "proof_s": args.proof}
    journal = common.Journal("regions-quick" if args.quick else "regions", settings)
    parts = [(name, kind, size) for name in FILES for kind, sizes in SIZES.items() for size in sizes]
    if args.quick:
        parts = [(name, kind, size) for name, kind, size in parts if size == SIZES[kind][0]]
    proofs = [part for part in parts if part[2] in PROVED.get(part[1], ())]
    questions = [(*part, place, False) for part in parts for place in range(settings["rows"])]
    questions += [(*part, place, True) for part in proofs for place in range(settings["rows"])]
    slow = [question for question in questions if question[1] == "mlp" or question[0] == "ionosphere"]
    slow.sort(key=lambda question: question[3])  # what takes longest comes last, row by row
    questions = [question for question in questions if question not in slow] + slow
    waiting = [question for question in questions if str(question) not in journal.done and not args.now]
    for question in common.bar(waiting, len(waiting)):
        name, kind, size, place, exact = question
        limit_s = args.proof if exact else args.limit
        journal.add(str(question), asked(name, kind, size, place, limit_s, exact=exact))
    limits = {False: float(args.limit), True: float(args.proof)}
    summaries = []
    for name, kind, size in parts:
        own = [r for r in journal.records if (r["data"], r["model"], r["size"]) == (name, kind, size)]
        if own:
            summaries.append(summary(own, limits))
    record = {"settings": settings, "parts": summaries, "records": journal.records}
    common.report("regions", TITLE, MEASURES, text_of, record, quick=args.quick)
    journal.close()


if __name__ == "__main__":
    main()

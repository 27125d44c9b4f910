"""How far calls go beyond their time limit: many levels, clustered hulls, deep forests, large networks, conflicts."""

from __future__ import annotations

import functools
import math
import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import common
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt
from ceopt.diverse import exhaustive
from ceopt.formulations.predictors import Affine
from ceopt.solvers.registry import SOLVERS

TITLE = "Time limits"
MEASURES = ("ceopt/search", "ceopt/conflicts", "ceopt/warm_start", "solvers/deadline.py")

SEED = 0
#: What a call may take beyond its limit: the larger of some seconds and a share.
SECONDS, SHARE = 0.5, 0.1
#: Limits in seconds.
LIMITS = (0.2, 0.5, 1.0, 3.0)

#: Model, person, space and data of a question, with further keywords.
Question: TypeAlias = tuple[Any, pd.Series, ceopt.FeatureSpace, pd.DataFrame, dict[str, Any]]


def question(model: Any, frame: pd.DataFrame, **options: Any) -> Question:
    """Return what is asked about the first row that the model refuses."""
    row = frame[~np.asarray(model.predict(frame), dtype=bool)].iloc[0]
    return model, row, ceopt.FeatureSpace.infer(frame), frame, options


def numbers(rows: int, columns: int) -> tuple[pd.DataFrame, Any]:
    """Return normal columns, and labels that a product of two of them decides."""
    rng = np.random.default_rng(SEED)
    frame = pd.DataFrame(rng.normal(size=(rows, columns)), columns=[f"x{j}" for j in range(columns)])
    return frame, frame["x0"] + frame["x1"] * frame["x2"] + rng.normal(0.0, 0.5, rows) > 0.5


def cities(levels: int, rows: int = 20_000) -> Question:
    """Ask a logistic model over a category of many levels, one-hot, and two numbers."""
    rng = np.random.default_rng(SEED)
    city = np.concatenate([np.arange(levels), rng.integers(0, levels, rows - levels)])
    frame = pd.DataFrame({"city": [f"c{k}" for k in city], "income": rng.normal(50, 10, rows)})
    frame["debt"] = rng.normal(10, 3, rows)
    label = frame["income"] - frame["debt"] + rng.normal(0, 5, rows) > 40
    steps = make_column_transformer((OneHotEncoder(), ["city"]), (StandardScaler(), ["income", "debt"]))
    return question(make_pipeline(steps, LogisticRegression(max_iter=200)).fit(frame, label), frame)


def hulls(rows: int, clusters: int) -> Question:
    """Ask a logistic model, with a hull for each of some clusters of its rows."""
    frame, label = numbers(rows, 10)
    return question(LogisticRegression().fit(frame, label), frame, constraints=[ceopt.Hull(clusters=clusters)])


def forest(trees: int, depth: int, columns: int = 20, **options: Any) -> Question:
    """Ask a random forest."""
    frame, label = numbers(5_000, columns)
    model = RandomForestClassifier(trees, max_depth=depth, random_state=SEED, n_jobs=1).fit(frame, label)
    return question(model, frame, **options)


def network(layers: tuple[int, ...], columns: int = 20) -> Question:
    """Ask a ReLU network that was not trained to the end."""
    frame, label = numbers(2_000, columns)
    model = MLPClassifier(layers, max_iter=30, random_state=SEED, early_stopping=True).fit(frame, label)
    return question(model, frame)


def contradiction(trees: int) -> Question:
    """Ask a forest under twenty rules, of which two contradict each other."""
    model, row, space, frame, _ = forest(trees, 6)
    rules: list[Any] = [
        ceopt.Linear({f"x{j}": 1.0}, "<=", float(row[f"x{j}"]) + 2.0, name=f"cap {j}") for j in range(18)
    ]
    rules += [ceopt.Linear({"x19": 1.0, "x18": 1.0}, sense, rhs, name=sense) for sense, rhs in (("<=", -1), (">=", 1))]
    return model, row, space, frame, {"constraints": rules, "why": True}


#: Name -> its question.
CASES: dict[str, Callable[[], Question]] = {
    "3,000 levels": functools.partial(cities, 3_000),
    "5,000 levels": functools.partial(cities, 5_000),
    "hull of 30,000 rows, 8 clusters": functools.partial(hulls, 30_000, 8),
    "hull of 100,000 rows, 20 clusters": functools.partial(hulls, 100_000, 20),
    "150 trees of depth 10": functools.partial(forest, 150, 10),
    "the same, n=5": functools.partial(forest, 150, 10, n=5, diversity="pool"),
    "the same by SCIP": functools.partial(forest, 150, 10, solver="scip"),
    "40 trees of depth 6 by SCIP, n=5": functools.partial(forest, 40, 6, n=5, diversity="pool", solver="scip"),
    "40 trees, mahalanobis": functools.partial(forest, 40, 6, cost="mahalanobis"),
    "40 trees over 100 columns": functools.partial(forest, 40, 8, 100),
    "network 3 x 50": functools.partial(network, (50, 50, 50)),
    "network 3 x 100, 100 columns": functools.partial(network, (100, 100, 100), 100),
    "conflict of 20 rules, 40 trees": functools.partial(contradiction, 40),
    "every cell of 40 trees": functools.partial(forest, 40, 6, epsilon=0.2),
}
QUICK = ("3,000 levels", "hull of 30,000 rows, 8 clusters", "network 3 x 50")


class Watch:
    """Another process notes how much processor time this one has used when its limit is over.

    A busy machine makes any call late on the wall; what it computes beyond its limit is what an idle one would see.
    """

    _CODE = (
        "import sys, time\n"
        "pid, limit = sys.argv[1:]\n"
        "print('ready', flush=True)\n"
        "input()\n"
        "time.sleep(float(limit))\n"
        "print(open(f'/proc/{pid}/stat').read(), flush=True)\n"
    )

    def __init__(self, limit_s: float) -> None:
        command = [sys.executable, "-c", self._CODE, str(os.getpid()), str(limit_s)]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._child.stdout is not None  # noqa: S101 - asked for above
        self._child.stdout.readline()
        assert self._child.stdin is not None  # noqa: S101 - asked for above
        self._child.stdin.write("go\n")
        self._child.stdin.flush()

    def cpu_since(self) -> float:
        """Return the processor time that was used since the limit was over; 0 if it is not."""
        used = _cpu(Path(f"/proc/{os.getpid()}/stat").read_text(encoding="ascii"))
        if self._child.poll() is None and not select.select([self._child.stdout], [], [], 0.0)[0]:
            self._child.kill()
            self._child.wait()
            return 0.0
        return max(used - _cpu(self._child.communicate()[0]), 0.0)


def _cpu(stat: str) -> float:
    """Return user and system time of a line of ``/proc/PID/stat``, in seconds."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(asked: Question, limit_s: float) -> dict[str, Any]:
    """Return what came of a question, and the seconds that it took."""
    model, row, space, frame, options = asked
    options = dict(options)
    watch = Watch(limit_s)
    began = time.perf_counter()
    if "epsilon" in options:
        result = exhaustive(model, row, space, target=True, time_limit_s=limit_s, **options)
    else:
        result = ceopt.explain(model, row, space, target=True, data=frame, time_limit_s=limit_s, **options)
    wall, cpu = time.perf_counter() - began, watch.cpu_since()
    once = time.perf_counter()
    model.predict(frame.head(1))
    return {
        "status": str(result.status), "answers": len(result), "reason": result.reason, "wall": wall, "cpu_late": cpu,
        "predict": time.perf_counter() - once, "timings": dict(result.timings),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def warm_up() -> None:
    """Pay for imports, which no limit counts."""
    space = ceopt.FeatureSpace([ceopt.Feature("x0", kind="continuous", lower=0, upper=9)])
    model = Affine([1.0], -3.0, labels=(False, True))
    for solver in ("highs", "scip"):
        if SOLVERS[solver].is_licensed:
            ceopt.explain(model, {"x0": 1.0}, space, target=True, solver=solver)
    ask(hulls(200, 2), 10.0)
    ask(forest(3, 2), 10.0)


def main() -> None:
    """Ask every question with every limit, and write the report."""
    options = common.arguments("Overrun of time limits.", repeats=3)
    cases = {name: CASES[name] for name in QUICK} if options.quick else CASES
    repeats = 1 if options.quick else options.repeats
    settings = {"seed": SEED, "version": 2, "limits_s": list(LIMITS), "repeats": repeats, "cases": list(cases)}
    journal = common.Journal("limits-quick" if options.quick else "limits", settings)
    warm_up()
    for name in common.bar(list(cases), len(cases)):
        keys = [(limit, again) for again in range(repeats) for limit in LIMITS]
        left = [key for key in keys if f"{name}/{key[0]}/{key[1]}" not in journal.done]
        if not left or (name.endswith("SCIP") and not SOLVERS["scip"].is_licensed):
            continue
        asked = cases[name]()
        for limit, again in left:
            journal.add(f"{name}/{limit}/{again}", {"name": name, "limit_s": limit, **ask(asked, limit)})
    record = {"settings": settings, "records": journal.records}
    common.report("limits", TITLE, MEASURES, text_of, record, quick=options.quick)


def beyond(record: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds beyond the limit, of the wall and of the processor, one call of ``predict`` apart."""
    late = record["wall"] - record["limit_s"] - record["predict"]
    return max(late, 0.0), max(record["cpu_late"] - record["predict"], 0.0)


def text_of(record: dict[str, Any]) -> str:
    """Summarise by question and limit: the best of the repeats is what an idle machine comes nearest to."""
    settings, records = record["settings"], record["records"]
    lines, late = [], 0
    for name in settings["cases"]:
        for limit in settings["limits_s"]:
            part = [r for r in records if (r["name"], r["limit_s"]) == (name, limit)]
            if not part:
                continue
            wall, cpu = (min(seconds) for seconds in zip(*map(beyond, part), strict=True))
            late += cpu > max(SECONDS, SHARE * limit)
            last = part[-1]
            said = last["reason"].split(". ")[0]
            lines.append([name, f"{limit:g}", f"{wall:.2f}", f"{cpu:.2f}", last["status"], last["answers"], said])
    peak = max((r["peak_mb"] for r in records), default=math.nan)
    head = ["question", "limit, s", "beyond it, s", "CPU time after it, s", "status", "answers", "reason"]
    about = (
        f"Seed {SEED}. Seconds that `explain` (`exhaustive` for every cell) takes beyond its limit, the least of "
        f"{settings['repeats']}, one call of the model's own `predict` apart; hulls "
        f"are clustered and rows scored within the limit. {late} of {len(lines)} compute longer after it than "
        f"the larger of {SECONDS:g} s and a tenth. The greatest memory of the process: {peak:.0f} MB.\n\n"
    )
    return about + common.markdown_table(head, lines)


if __name__ == "__main__":
    main()

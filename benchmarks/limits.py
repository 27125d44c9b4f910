"""How far calls go beyond their time limit: explain, black boxes, cohorts, plans and their bounds, excess, select."""

from __future__ import annotations

import functools
import math
import os
import resource
import select as waiting
import subprocess
import sys
import threading
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
from ceopt.diverse import exhaustive, select
from ceopt.formulations.predictors import Affine
from ceopt.metrics import excess
from ceopt.plans import copa_plan, validity_bounds
from ceopt.solvers.registry import SOLVERS
from ceopt.surrogates import LocalSurrogateRecourse

TITLE = "Time limits"
MEASURES = (
    "ceopt/search",
    "ceopt/surrogates",
    "ceopt/population.py",
    "ceopt/plans/copa.py",
    "ceopt/plans/validity.py",
    "ceopt/excess.py",
    "ceopt/diverse/subset.py",
    "solvers/deadline.py",
    "solvers/conic/clarabel.py",
)

SEED = 0
#: What a call may take beyond its limit: the larger of some seconds and a share.
SECONDS, SHARE = 0.5, 0.1
#: Limits in seconds.
LIMITS = (0.1, 1.0, 5.0)

#: Makes a call with a limit, and returns its status, how many answers it gave, its reason, and seconds of the call of
#: the model that may be under way at the limit.
Question: TypeAlias = Callable[[float], dict[str, Any]]


def said(status: Any, answers: int, reason: str, call_s: float = 0.0, **further: Any) -> dict[str, Any]:
    """Return what came of a call."""
    return {"status": str(status), "answers": answers, "reason": reason, "call_s": call_s, **further}


def seconds_of(call: Callable[[], Any]) -> float:
    """Return how long a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


# ---- explain ---------------------------------------------------------------------------------------------------------
def question(model: Any, frame: pd.DataFrame, **options: Any) -> Question:
    """Ask about the first row that the model refuses."""
    row = frame[~np.asarray(model.predict(frame), dtype=bool)].iloc[0]
    space = ceopt.FeatureSpace.infer(frame)
    call_s = seconds_of(lambda: model.predict(frame.head(1)))

    def ask(limit_s: float) -> dict[str, Any]:
        if "epsilon" in options:
            result = exhaustive(model, row, space, target=True, time_limit_s=limit_s, **options)
        else:
            result = ceopt.explain(model, row, space, target=True, data=frame, time_limit_s=limit_s, **options)
        return said(result.status, len(result), result.reason, call_s)

    return ask


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
    frame, label = numbers(5_000, 20)
    model = RandomForestClassifier(trees, max_depth=6, random_state=SEED, n_jobs=1).fit(frame, label)
    row = frame[~np.asarray(model.predict(frame), dtype=bool)].iloc[0]
    rules: list[Any] = [
        ceopt.Linear({f"x{j}": 1.0}, "<=", float(row[f"x{j}"]) + 2.0, name=f"cap {j}") for j in range(18)
    ]
    rules += [ceopt.Linear({"x19": 1.0, "x18": 1.0}, sense, rhs, name=sense) for sense, rhs in (("<=", -1), (">=", 1))]
    return question(model, frame, constraints=rules, why=True)


# ---- black boxes -----------------------------------------------------------------------------------------------------
def black_box(call_s: float, row_s: float = 0.0, **options: Any) -> Question:
    """Ask a function that sleeps, for so long a call and a row, through a surrogate."""
    frame, label = numbers(500, 6)
    frame = frame.astype(float)
    calls: list[tuple[float, float]] = []

    def predict(rows: pd.DataFrame) -> Any:
        began = time.perf_counter()
        time.sleep(call_s + row_s * len(rows))
        calls.append((began, time.perf_counter() - began))
        return rows["x0"] + rows["x1"] * rows["x2"] > 0.5

    row = frame[~label].iloc[0]
    space = ceopt.FeatureSpace.infer(frame)

    def ask(limit_s: float) -> dict[str, Any]:
        calls.clear()
        end = time.perf_counter() + limit_s
        result = ceopt.explain(
            predict, row, space, target=True, data=frame, time_limit_s=limit_s, surrogate=LocalSurrogateRecourse(),
            **options,
        )  # fmt: skip
        under_way = sum(began + seconds - end for began, seconds in calls if began < end < began + seconds)
        late = sum(began >= end for began, _ in calls)
        return said(
            result.status, len(result), result.reason, under_way, calls=len(calls), calls_late=late, sleeps=True
        )

    return ask


# ---- cohorts of 300 --------------------------------------------------------------------------------------------------
def cohort(fit: Callable[[pd.DataFrame, Any], Any], n_jobs: int = 1, **options: Any) -> Question:
    """Ask about 300 people at once; the limit is that of all."""
    frame, label = numbers(3_000, 10)
    model = fit(frame, label)
    recourse = ceopt.Recourse(model, ceopt.FeatureSpace.infer(frame), target=True, **options).fit(frame)
    people = frame[~np.asarray(model.predict(frame), dtype=bool)].head(300)
    if n_jobs > 1:
        recourse.explain(people.head(4), n_jobs=n_jobs)  # starts the processes

    def ask(limit_s: float) -> dict[str, Any]:
        found = recourse.explain(people, n_jobs=n_jobs, total_time_limit_s=limit_s)
        counts = ", ".join(f"{count} {status}" for status, count in found.counts().items())
        answered = sum(len(result) > 0 for result in found)
        return said(counts, answered, f"{sum(found.finished)} of 300 begun", sleeps=n_jobs > 1)

    return ask


def slow_cohort(call_s: float) -> Question:
    """Ask about 300 people of a function that sleeps a while each call, through a surrogate."""
    frame, label = numbers(500, 6)
    is_slow = [False]

    def predict(rows: pd.DataFrame) -> Any:
        time.sleep(call_s if is_slow[0] else 0.0)
        return rows["x0"] + rows["x1"] * rows["x2"] > 0.5

    space = ceopt.FeatureSpace.infer(frame)
    recourse = ceopt.Recourse(predict, space, target=True, surrogate=LocalSurrogateRecourse()).fit(frame)
    people = frame[~label].head(300)

    def ask(limit_s: float) -> dict[str, Any]:
        is_slow[0] = True
        found = recourse.explain(people, total_time_limit_s=limit_s)
        is_slow[0] = False
        counts = ", ".join(f"{count} {status}" for status, count in found.counts().items())
        answered = sum(len(result) > 0 for result in found)
        reason = f"{sum(found.finished)} of {len(people)} begun"
        return said(counts, answered, reason, 2.0 * call_s, sleeps=True)  # one call looks whether the model has changed

    return ask


def a_forest(frame: pd.DataFrame, label: Any) -> Any:
    """Return a forest of 50 trees."""
    return RandomForestClassifier(50, max_depth=6, random_state=SEED, n_jobs=1).fit(frame, label)


def a_line(frame: pd.DataFrame, label: Any) -> Any:
    """Return a logistic model."""
    return LogisticRegression().fit(frame, label)


# ---- plans, excess, select -------------------------------------------------------------------------------------------
def moments(d: int) -> tuple[Any, Any]:
    """Return a mean and a covariance of parameters."""
    root = np.random.default_rng(SEED).normal(size=(d, d))
    return np.ones(d), 0.05 * root @ root.T / d


def plan(method: Any, n: int, d: int, **options: Any) -> Question:
    """Ask for a plan."""
    mean, covariance = moments(d)
    factual = -mean
    for group in options.get("groups", ()):
        factual[group] = 0.0
    weight = 0.0 if method == "global" else 2.0

    def ask(limit_s: float) -> dict[str, Any]:
        found = copa_plan(
            factual, mean, covariance, n=n, margin=0.1, validity_weight=0.5, diversity_weight=weight, method=method,
            time_limit_s=limit_s, **options,
        )  # fmt: skip
        return said(found.status, 0 if found.plan is None else len(found.plan), found.reason)

    return ask


def bounds(form: Any, n: int, d: int) -> Question:
    """Ask for the validity bounds of a plan."""
    mean, covariance = moments(d)
    rows = np.abs(np.random.default_rng(SEED + 1).normal(size=(n, d))) + 0.2

    def ask(limit_s: float) -> dict[str, Any]:
        found = validity_bounds(rows, mean, covariance, 0.05, form=form, time_limit_s=limit_s)
        return said(found.status, 0, found.reason)

    return ask


def prices(trees: int, depth: int) -> Question:
    """Hold rows of data that a forest favours against the optimum of one person."""
    frame, label = numbers(5_000, 20)
    model = RandomForestClassifier(trees, max_depth=depth, random_state=SEED, n_jobs=1).fit(frame, label)
    is_good = np.asarray(model.predict(frame), dtype=bool)
    space = ceopt.FeatureSpace.infer(frame)
    answers, person = frame[is_good].head(20), frame[~is_good].iloc[0]
    call_s = seconds_of(lambda: model.predict(answers))

    def ask(limit_s: float) -> dict[str, Any]:
        table = excess(answers, model, space, target=True, factual=person, time_limit_s=limit_s)
        optimum, bound = table[["optimum", "bound"]].iloc[0]
        return said("", len(table), f"optimum {optimum:.3g}, bound {bound:.3g}", 2.0 * call_s)

    return ask


def chosen(points: int, objective: Any, **options: Any) -> Question:
    """Choose points of a pool."""
    rng = np.random.default_rng(SEED)
    pool = rng.normal(size=(points, 5))
    if objective == "cheapest":
        options["costs"] = rng.random(points)

    def ask(limit_s: float) -> dict[str, Any]:
        found = select(pool, objective=objective, time_limit_s=limit_s, **options)
        return said(found.status, len(found), found.reason)

    return ask


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
    **{f"black box, {s:g} s a call": functools.partial(black_box, s) for s in (0.05, 0.3, 1.0, 3.0)},
    "black box, 0.01 s a row": functools.partial(black_box, 0.0, 0.01),
    "black box, 0.3 s a call, two changes": functools.partial(black_box, 0.3, constraints=[ceopt.MaxChanges(2)]),
    "300 people, logistic": functools.partial(cohort, a_line),
    "300 people, 50 trees": functools.partial(cohort, a_forest),
    "300 people, 50 trees, n_jobs=2": functools.partial(cohort, a_forest, n_jobs=2),
    "300 people, black box of 0.05 s a call": functools.partial(slow_cohort, 0.05),
    "plan by gradients, 3 x 20": functools.partial(plan, "gradient", 3, 20),
    "plan by gradients, 20 x 100": functools.partial(plan, "gradient", 20, 100),
    "plan by gradients, 5 x 22, three groups": functools.partial(
        plan, "gradient", 5, 22, groups=[[10, 11, 12, 13], [14, 15, 16], [17, 18, 19, 20, 21]]
    ),
    "plan by the published descent, 20 x 100": functools.partial(plan, "descent", 20, 100),
    "plan by SCIP, 3 x 5": functools.partial(plan, "nonlinear", 3, 5),
    "plan by SCIP, 10 x 40": functools.partial(plan, "nonlinear", 10, 40),
    "plan by cone programs, d = 200": functools.partial(plan, "global", 10, 200),
    **{f"bounds, {form}, 5 x 30": functools.partial(bounds, form, 5, 30) for form in ("theorem", "arrow", "dual")},
    **{f"bounds, {form}, 40 x 60": functools.partial(bounds, form, 40, 60) for form in ("auto", "theorem", "moment")},
    "excess, 40 trees of depth 6": functools.partial(prices, 40, 6),
    "excess, 150 trees of depth 10": functools.partial(prices, 150, 10),
    **{f"select {word} of 200": functools.partial(chosen, 200, word, k=10) for word in ("max_sum", "max_min")},
    **{
        f"select {word} of 1,500": functools.partial(chosen, 1_500, word, k=10)
        for word in ("max_sum", "max_min", "determinant")
    },
    "select largest of 1,500": functools.partial(chosen, 1_500, "largest", beta=1.0),
    "select cheapest of 1,500": functools.partial(chosen, 1_500, "cheapest", beta=1.0),
}
QUICK = ("3,000 levels", "black box, 0.3 s a call", "300 people, logistic", "plan by gradients, 3 x 20")


class Watch:
    """Another process notes how much processor time the calling thread has used when its limit is over.

    A step of a solver that is left to end by itself in a thread of its own does not count. A busy machine makes any
    call late on the wall; what it computes beyond its limit is what an idle one would see.
    """

    _CODE = (
        "import sys, time\n"
        "pid, limit = sys.argv[1:]\n"
        "print('ready', flush=True)\n"
        "input()\n"
        "time.sleep(float(limit))\n"
        "print(open(f'/proc/{pid}/task/{pid}/stat').read(), flush=True)\n"
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
        used = _cpu(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/stat").read_text(encoding="ascii"))
        if self._child.poll() is None and not waiting.select([self._child.stdout], [], [], 0.0)[0]:
            self._child.kill()
            self._child.wait()
            return 0.0
        return max(used - _cpu(self._child.communicate()[0]), 0.0)


def _cpu(stat: str) -> float:
    """Return user and system time of a line of ``/proc/PID/stat``, in seconds."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(ask: Question, limit_s: float) -> dict[str, Any]:
    """Return what came of a question, and the seconds that it took."""
    watch = Watch(limit_s)
    began = time.perf_counter()
    found = ask(limit_s)
    wall, cpu = time.perf_counter() - began, watch.cpu_since()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    while any("ThreadPoolExecutor" in thread.name for thread in threading.enumerate()):
        time.sleep(0.05)  # a step of a solver that nobody waits for
    return {**found, "wall": wall, "cpu_late": cpu, "peak_mb": peak}


def warm_up() -> None:
    """Pay for imports, which no limit counts."""
    space = ceopt.FeatureSpace([ceopt.Feature("x0", kind="continuous", lower=0, upper=9)])
    model = Affine([1.0], -3.0, labels=(False, True))
    for solver in ("highs", "scip"):
        if SOLVERS[solver].is_licensed:
            ceopt.explain(model, {"x0": 1.0}, space, target=True, solver=solver)
    for ask in (hulls(200, 2), forest(3, 2), black_box(0.0), plan("global", 2, 3), bounds("auto", 2, 3)):
        ask(10.0)
    chosen(10, "max_min", k=3)(10.0)


def main() -> None:
    """Ask every question with every limit, and write the report."""
    options = common.arguments("Overrun of time limits.", repeats=1)
    cases = {name: CASES[name] for name in QUICK} if options.quick else CASES
    repeats = 1 if options.quick else options.repeats
    settings = {
        "seed": SEED,
        "version": 3,
        "load": round(os.getloadavg()[0]),
        "limits_s": list(LIMITS),
        "repeats": repeats,
        "cases": list(cases),
    }
    journal = common.Journal("limits-quick" if options.quick else "limits", settings)
    warm_up()
    for name in common.bar(list(cases), len(cases)):
        keys = [(limit, again) for again in range(repeats) for limit in LIMITS]
        left = [key for key in keys if f"{name}/{key[0]}/{key[1]}" not in journal.done]
        if not left or ("SCIP" in name and not SOLVERS["scip"].is_licensed):
            continue
        ask = cases[name]()
        for limit, again in left:
            journal.add(f"{name}/{limit}/{again}", {"name": name, "limit_s": limit, **measured(ask, limit)})
    record = {"settings": settings, "records": journal.records}
    common.report("limits", TITLE, MEASURES, text_of, record, quick=options.quick)


def beyond(record: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds beyond the limit, of the wall and of the processor, one call of the model apart."""
    late = record["wall"] - record["limit_s"] - record["call_s"]
    return max(late, 0.0), max(record["cpu_late"] - record["call_s"], 0.0)


def is_over(part: list[dict[str, Any]]) -> bool:
    """Tell whether a call goes on for too long: by its processor time, or by the wall where it sleeps or waits."""
    wall, cpu = (min(seconds) for seconds in zip(*map(beyond, part), strict=True))
    late = wall if part[-1].get("sleeps") else cpu
    return late > max(SECONDS, SHARE * part[-1]["limit_s"]) or any(record.get("calls_late") for record in part)


def text_of(record: dict[str, Any]) -> str:
    """Summarise by question and limit: the best of the repeats is what an idle machine comes nearest to."""
    settings, records = record["settings"], record["records"]
    lines, over, slow = [], [], 0
    for name in settings["cases"]:
        for limit in settings["limits_s"]:
            part = [r for r in records if (r["name"], r["limit_s"]) == (name, limit)]
            if not part:
                continue
            wall, cpu = (min(seconds) for seconds in zip(*map(beyond, part), strict=True))
            slow += wall > max(SECONDS, SHARE * limit)
            if is_over(part):
                over.append(f"{name} at {limit:g} s")
            last = part[-1]
            told = last["reason"].split(". ")[0]
            calls = f"{last['calls']}, {last['calls_late']} late" if "calls" in last else ""
            lines.append(
                [name, f"{limit:g}", f"{wall:.2f}", f"{cpu:.2f}", calls, last["status"], last["answers"], told]
            )
    peak = max((r["peak_mb"] for r in records), default=math.nan)
    head = ["question", "limit, s", "beyond it, s", "CPU time after it, s", "calls", "status", "answers", "reason"]
    verdict = f"{len(over)} of {len(lines)} go on for longer than the larger of {SECONDS:g} s and a tenth"
    if over:
        verdict += f": {'; '.join(over)}"
    about = (
        f"Seed {SEED}. Seconds that a call takes beyond its limit, the least of {settings['repeats']}, the call of the "
        f"model that was under way apart. {verdict}. That is judged by the processor time of the calling thread after "
        "the limit, as a busy machine makes any call late; of black boxes that sleep and of other processes, by the "
        f"clock. By the clock it is {slow}, with a load of {settings['load']} when it began. `calls` are those of a "
        "black box, and how many began after the limit. Of a cohort the limit is `total_time_limit_s`. The greatest "
        f"memory of the process: {peak:.0f} MB.\n\n"
    )
    return about + common.markdown_table(head, lines)


if __name__ == "__main__":
    main()

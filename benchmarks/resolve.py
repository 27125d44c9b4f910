"""The same question of other people: what it costs outside the solver, by ceopt's calls and by Pyomo's interfaces.

First what ``explain``, ``Recourse`` and its cohorts do: they build a program for each person, as what may be reached,
the leaves that are kept and the breakpoints of costs are one person's. Then a program of one's own in plain Pyomo whose
rows hold for every row of data: it is built once, and solved again with other data.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import common
import highspy
import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.contrib.appsi.solvers import Highs as Appsi
from pyomo.contrib.solver.solvers.highs import Highs as Contrib
from pyomo.core.expr.numeric_expr import LinearExpression
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import ceopt
from ceopt.solvers import compile_model
from ceopt.solvers.highs import HighsSession

TITLE = "The same question of other people"
MEASURES = (
    "ceopt/search",
    "solvers/compile",
    "solvers/highs.py",
)

TREES, DEPTH, COLUMNS, ACTIONABLE, TARGET, GAP = 100, 6, 20, 3, 0.5, 1e-6
BEYOND = 1e-4  # right of a threshold means at least so far
LIMIT_S = 120.0
#: Domain of the thresholds. The relaxation takes a fraction of a second and leaves the processor's caches warm.
KINDS = {"MILP": pyo.Binary, "its relaxation": pyo.UnitInterval}


# ---- the program -----------------------------------------------------------------------------------------------------
def forest() -> tuple[Any, Any]:
    """Return a forest and the people it was trained on, the undecided ones first."""
    people, labels = make_classification(2000, COLUMNS, n_informative=10, random_state=common.SEED)
    model = RandomForestClassifier(TREES, max_depth=DEPTH, random_state=common.SEED, n_jobs=1).fit(people, labels)
    doubt = np.abs(model.predict_proba(people)[:, 1] - (TARGET - 0.1))
    return model, people[np.argsort(doubt)]


def program(model: Any, people: Any, factual: Any, domain: Any) -> Any:
    """Return Misic's program of the forest in plain Pyomo; ``factual`` makes the Vars or Params of the row."""
    low, high = people.min(axis=0).tolist(), people.max(axis=0).tolist()
    m = pyo.ConcreteModel()
    columns = range(COLUMNS)
    m.x0 = factual(columns)
    m.x = pyo.Var(columns, bounds=lambda _m, j: (low[j], high[j]))
    m.up, m.down = pyo.Var(columns, bounds=(0, None)), pyo.Var(columns, bounds=(0, None))
    m.move = pyo.Constraint(columns, rule=lambda m, j: m.x[j] - m.up[j] + m.down[j] == m.x0[j])
    m.held = pyo.Constraint(range(ACTIONABLE, COLUMNS), rule=lambda m, j: m.x[j] == m.x0[j])
    add_trees(m, model, low, high, domain)
    m.cost = pyo.Objective(expr=sum(m.up.values()) + sum(m.down.values()))
    return m


def add_trees(m: Any, model: Any, low: list[float], high: list[float], domain: Any) -> None:
    """One binary per threshold, tied to its column by big-M; one weight per leaf; the share of votes."""
    trees = [tree.tree_ for tree in model.estimators_]
    cuts = sorted({(int(j), float(at)) for t in trees for j, at in zip(t.feature, t.threshold, strict=True) if j >= 0})
    place = {cut: k for k, cut in enumerate(cuts)}
    m.y = pyo.Var(range(len(cuts)), domain=domain)
    y = list(m.y.values())
    m.low = pyo.Constraint(
        range(len(cuts)),
        rule=lambda m, k: m.x[cuts[k][0]] <= cuts[k][1] + (high[cuts[k][0]] - cuts[k][1]) * y[k],
    )
    m.high = pyo.Constraint(
        range(len(cuts)),
        rule=lambda m, k: m.x[cuts[k][0]] >= cuts[k][1] + BEYOND - (cuts[k][1] + BEYOND - low[cuts[k][0]]) * (1 - y[k]),
    )
    following = [k for k in range(len(cuts) - 1) if cuts[k][0] == cuts[k + 1][0]]
    m.order = pyo.Constraint(following, rule=lambda _m, k: y[k + 1] <= y[k])
    m.z = pyo.VarList(bounds=(0, 1))
    m.one, m.left, m.right = pyo.ConstraintList(), pyo.ConstraintList(), pyo.ConstraintList()
    votes: list[float] = []

    def below(t: Any, node: int) -> list[Any]:
        if t.children_left[node] < 0:
            share = t.value[node][0]
            votes.append(float(share[1] / share.sum()) / len(trees))
            return [m.z.add()]
        left, right = below(t, t.children_left[node]), below(t, t.children_right[node])
        k = place[int(t.feature[node]), float(t.threshold[node])]
        m.left.add(sum(left) <= 1 - y[k])
        m.right.add(sum(right) <= y[k])
        return left + right

    for t in trees:
        m.one.add(sum(below(t, 0)) == 1)
    m.valid = pyo.Constraint(expr=LinearExpression(linear_coefs=votes, linear_vars=list(m.z.values())) >= TARGET)


def fixed_vars(columns: Any) -> Any:
    """Return the row as Vars, which are fixed later."""
    return pyo.Var(columns, initialize=0.0)


def params(columns: Any) -> Any:
    """Return the row as mutable Params."""
    return pyo.Param(columns, mutable=True, initialize=0.0)


# ---- the ways --------------------------------------------------------------------------------------------------------
Way = tuple[Any, Callable[[Any], float]]


def session(model: Any, people: Any, domain: Any, *, read: bool = False) -> Way:
    """Compile once, the row as data columns, one live session; every Var, or each that is read, gets its value."""
    m = program(model, people, fixed_vars, domain)
    compiled = compile_model(m, [m.x0])
    compiled.set_data(m.x0, people[0])
    live = HighsSession(compiled)

    def ask(row: Any) -> float:
        compiled.set_data(m.x0, row)
        outcome = live.solve(time_limit_s=LIMIT_S, relative_gap=GAP)
        if outcome.x is not None:
            compiled.load(outcome.x, only=[m.x] if read else None)
        return float("nan") if outcome.objective is None else outcome.objective

    return m, ask


def contrib(model: Any, people: Any, domain: Any, factual: Any, *, update: bool) -> Way:
    """Pyomo's contrib HiGHS, which is persistent; it looks for changes itself, or is only told of the row."""
    m = program(model, people, factual, domain)
    solver = Contrib()
    if not update:
        for what in solver.config.auto_updates:
            setattr(solver.config.auto_updates, what, False)
    if factual is fixed_vars:
        m.x0.fix()
    solver.set_instance(m)

    def ask(row: Any) -> float:
        if factual is params:
            m.x0.store_values(dict(enumerate(row.tolist())))
        else:
            for var, value in zip(m.x0.values(), row.tolist(), strict=True):
                var.fix(value)
        if not update:
            solver.update_parameters()
        return float(solver.solve(m, time_limit=LIMIT_S, rel_gap=GAP, threads=1).incumbent_objective)

    return m, ask


def appsi(model: Any, people: Any, domain: Any, *, update: bool) -> Way:
    """Pyomo's older persistent interface."""
    m = program(model, people, params, domain)
    solver = Appsi()
    solver.config.mip_gap, solver.config.time_limit = GAP, LIMIT_S
    solver.highs_options["threads"] = 1
    if not update:
        for what in solver.update_config:
            setattr(solver.update_config, what, False)
    solver.set_instance(m)

    def ask(row: Any) -> float:
        m.x0.store_values(dict(enumerate(row.tolist())))
        if not update:
            solver.update_params()
        return float(solver.solve(m).best_feasible_objective)

    return m, ask


WAYS: dict[str, Callable[[Any, Any, Any], Way]] = {
    "ceopt, live session": partial(session, read=True),
    "ceopt, live session, every Var loaded": session,
    "contrib highs, Params": partial(contrib, factual=params, update=True),
    "contrib highs, fixed Vars": partial(contrib, factual=fixed_vars, update=True),
    "contrib highs, Params, no look for changes": partial(contrib, factual=params, update=False),
    "appsi highs, Params": partial(appsi, update=True),
    "appsi highs, Params, no look for changes": partial(appsi, update=False),
}
OURS, *THEIRS = WAYS
PARAMS, FIXED = "contrib highs, Params", "contrib highs, fixed Vars"
AIM = 20.0
#: The same before the other ways have filled memory and the processor's caches with models of their own.
ALONE = "ceopt, live session, alone in memory"


# ---- what ceopt's calls do ------------------------------------------------------------------------------------------
def calls(model: Any, people: Any) -> dict[str, Callable[[Any], list[Any]]]:
    """Return ways to ask for several rows: the model read at each call, read once, or all rows in one call."""
    names = [f"x{j}" for j in range(COLUMNS)]
    low, high = people.min(axis=0).tolist(), people.max(axis=0).tolist()
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature(name, kind="continuous", lower=low[j], upper=high[j], mutable=j < ACTIONABLE)
            for j, name in enumerate(names)
        ]
    )
    settings: dict[str, Any] = {"target": 1, "solver": "highs", "time_limit_s": LIMIT_S, "relative_gap": GAP}
    fitted = ceopt.Recourse(model, space, **settings).fit(pd.DataFrame(people, columns=names))

    def frame(rows: Any) -> pd.DataFrame:
        return pd.DataFrame(rows, columns=names)

    return {
        "`explain`, a call a person": lambda rows: [
            ceopt.explain(model, frame(row[None, :]), space, **settings) for row in rows
        ],
        "`Recourse.explain`, a call a person": lambda rows: [
            fitted.explain(frame(row[None, :]), n_jobs=1).results[0] for row in rows
        ],
        "`Recourse.explain`, all in one call": lambda rows: list(fitted.explain(frame(rows), n_jobs=1).results),
    }


def measure_calls(model: Any, people: Any, rows: int) -> list[dict[str, Any]]:
    """Ask for the same people in each way, after one that pays for imports."""
    # The first that the forest refuses: the others need no change.
    refused = people[model.predict(people) == 0]
    records = []
    for name, ask in calls(model, people).items():
        ask(refused[:1])
        with common.clocked(highspy.Highs, "run") as run:
            wall, cpu = time.perf_counter(), time.process_time()
            results = ask(refused[1 : rows + 1])
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        records.append(
            {
                "call": name,
                "statuses": dict(Counter(str(result.status) for result in results)),
                "wall": (wall - run["wall"]) / rows,
                "cpu": (cpu - run["cpu"]) / rows,
                "run": run["wall"] / rows,
            }
        )
    return records


# ---- measuring -------------------------------------------------------------------------------------------------------
def measure(ask: Callable[[Any], float], row: Any) -> dict[str, float]:
    """Return the optimum and the seconds outside ``Highs.run``, by both clocks."""
    with common.clocked(highspy.Highs, "run") as run:
        wall, cpu = time.perf_counter(), time.process_time()
        objective = ask(row)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"objective": objective, "wall": wall - run["wall"], "cpu": cpu - run["cpu"], "run": run["wall"]}


def main() -> None:
    """Give every way the same rows in turn, and write the report."""
    options = common.arguments("Re-solves of one program with other data.", rows=4)
    rows = 2 if options.quick else options.rows
    logging.getLogger("pyomo").setLevel(logging.ERROR)
    model, people = forest()
    asked = measure_calls(model, people, rows)
    records: list[dict[str, Any]] = []
    once: dict[str, dict[str, float]] = {}
    size: dict[str, int] = {}
    for kind, domain in KINDS.items():
        ways = {}
        for name, make in WAYS.items():
            began = time.perf_counter()
            m, ways[name] = make(model, people, domain)
            once.setdefault(kind, {})[name] = time.perf_counter() - began
            if name == OURS:
                compiled = compile_model(m, [m.x0])
                size = size or common.size_of(compiled) | {"nonzeros": int(compiled.A.nnz)}
                ways[name](people[0])  # the first pays for imports, as set_instance does for the others
                for place in range(1, rows + 1):
                    found = measure(ways[name], people[place])
                    records.append({"kind": kind, "way": ALONE, "row": place, **found})
                once[kind][ALONE] = once[kind][name]
        for place in common.bar(range(1, rows + 1), rows):
            for name in common.rotated(list(WAYS), place):
                found = measure(ways[name], people[place])
                records.append({"kind": kind, "way": name, "row": place, **found})
    write(records, once, size, rows, asked, quick=options.quick)


def write(
    records: list[dict[str, Any]], once: Any, size: Any, rows: int, asked: list[dict[str, Any]], *, quick: bool
) -> None:
    """Compare the ways, and keep what was found."""
    medians, apart = {}, 0.0
    for kind in KINDS:
        of_kind = [record for record in records if record["kind"] == kind]
        for name in (OURS, ALONE, *THEIRS):
            own = [record for record in of_kind if record["way"] == name]
            medians[f"{kind}, {name}"] = {
                clock: float(np.median([record[clock] for record in own])) * 1e3 for clock in ("wall", "cpu")
            }
        for place in range(1, rows + 1):
            found = [record["objective"] for record in of_kind if record["row"] == place]
            apart = max(apart, (max(found) - min(found)) / max(1e-12, abs(min(found))))
    record = {
        "size": size, "rows": rows, "once_s": once, "medians_ms": medians, "difference": apart,
        "calls": asked, "records": records,
    }  # fmt: skip
    common.report("resolve", TITLE, MEASURES, text_of, record, quick=quick)


def text_of(record: dict[str, Any]) -> str:
    """Summarise by way."""
    size, medians, lines = record["size"], record["medians_ms"], []
    for kind in KINDS:
        for name in (OURS, ALONE, *THEIRS):
            own = [r for r in record["records"] if (r["kind"], r["way"]) == (kind, name)]
            spreads = [common.spread([r[clock] * 1e3 for r in own], 2) for clock in ("wall", "cpu")]
            ours, theirs = medians[f"{kind}, {OURS}"], medians[f"{kind}, {name}"]
            times = [f"{theirs[clock] / ours[clock]:.1f}" for clock in ("wall", "cpu")]
            run = f"{np.median([r['run'] for r in own]):.2f}"
            lines.append([kind, name, *spreads, *times, run, f"{record['once_s'][kind][name]:.1f}"])
    return (
        f"A forest of {TREES} trees of depth {DEPTH} over {COLUMNS} columns, of which {ACTIONABLE} may move. HiGHS has "
        f"one thread and a relative gap of {GAP:g} in every way. Milliseconds outside `Highs.run`.\n\n"
        "## What `explain` and cohorts do\n\n"
        "Each person has a program of their own, pruned to what that person may reach, with a start and a check by the "
        f"model's own `predict`. {record['rows']} people whom the forest refuses, after a first one; means.\n\n"
        + common.markdown_table(
            ["call", "statuses", "wall ms a person", "CPU ms", "solver, ms"],
            [
                [
                    call["call"],
                    ", ".join(f"{status} {count}" for status, count in call["statuses"].items()),
                    *(f"{call[clock] * 1e3:.1f}" for clock in ("wall", "cpu", "run")),
                ]
                for call in record["calls"]
            ],
        )
        + "\n\n## A program of one's own, solved again\n\n"
        f"The same forest in Misic's form: {size['variables']} variables, {size['binaries']} binaries, {size['rows']} "
        f"rows, {size['nonzeros']} nonzeros, in plain Pyomo. Its rows hold for every row of data: nothing is pruned or "
        f"bounded for one person. {record['rows']} rows of data after a first one, interleaved, each way with its own "
        "model; ceopt's also before the other models are made. The new row is handed over, the answer is read, and "
        "every Var gets its value (in ceopt's only the counterfactual's own columns, but where said); in ceopt's the "
        "answer is also checked against every row. Wall time holds the waiting for other jobs, CPU time is what the "
        "program itself needs. Pyomo looks for changes of the model before each solve unless it is told not to.\n\n"
        + common.markdown_table(
            ["program", "way", "wall ms: median / 90 % / worst", "CPU ms", "times ceopt's: wall", "CPU",
             "solver, median s", "once, s"],
            lines,
        )
        + f"\n\nGreatest relative difference of the optima of a row: {record['difference']:.1e}.\n\n{aim(medians)}"
    )  # fmt: skip


def aim(medians: dict[str, dict[str, float]]) -> str:
    """Say how the aim of the first design was met: a re-solve 20 times cheaper than Pyomo's persistent interface."""
    kind = next(iter(KINDS))
    ours = medians[f"{kind}, {OURS}"]["cpu"]
    ratios = {name: medians[f"{kind}, {name}"]["cpu"] / ours for name in (PARAMS, FIXED)}
    said = [f"{ratio:.1f} times by `{name}`" for name, ratio in ratios.items()]
    reached = [("reached" if ratio >= AIM else "missed") for ratio in ratios.values()]
    return (
        f"The aim was {AIM:g} times less than Pyomo's persistent interface outside the solver. Measured for the "
        f"{kind}, in CPU time: {said[0]} ({reached[0]}), {said[1]} ({reached[1]})."
    )


if __name__ == "__main__":
    main()

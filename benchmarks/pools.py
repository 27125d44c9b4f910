"""Ten best of knapsacks with 60 binaries on every solver that is here, and of small ones against enumeration."""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import common
import numpy as np
import pyomo.environ as pyo

from ceopt.solvers import compile_model, count, solve
from ceopt.solvers.pool.pool import pool_of
from ceopt.solvers.pool.ranking import InTurn, Runner, integers
from ceopt.solvers.registry import SOLVERS

TITLE = "The ten best"
MEASURES = ("solvers/pool",)

BEST = 10
SMALL, LARGE = 16, 60
#: Rows of the knapsacks.
ROWS = (1, 2)
ONE_BY_ONE = "highs, one by one"


def knapsack(n: int, rows: int, seed: int) -> Any:
    """Values near the weights, capacity for half: many solutions close to the best."""
    rng = np.random.default_rng(seed)
    weight = rng.integers(10, 1000, (rows, n))
    value = np.maximum(weight.sum(axis=0) // rows + rng.integers(-100, 100, n), 1).tolist()
    model = pyo.ConcreteModel()
    model.take = pyo.Var(range(n), domain=pyo.Binary)
    model.capacity = pyo.Constraint(
        range(rows),
        rule=lambda m, i: sum(int(weight[i, j]) * m.take[j] for j in range(n)) <= int(weight[i].sum()) // 2,
    )
    model.value = pyo.Objective(expr=sum(value[j] * model.take[j] for j in range(n)), sense=pyo.maximize)
    return model


def enumerated(model: Any) -> tuple[list[float], int]:
    """Return the best values and the number of feasible points, from all points at once."""
    compiled = compile_model(model)
    n = len(compiled.columns)
    points = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(float)
    feasible = points[(points @ compiled.A.T.toarray() <= compiled.row_ub).all(axis=1)]
    return np.sort(feasible @ compiled.c)[::-1][:BEST].tolist(), len(feasible)


def ask(model: Any, way: str, limit_s: float) -> dict[str, Any]:
    """Return status, values and seconds of the ten best by one way; ``cpu_best`` is for the best alone."""
    began, cpu = time.perf_counter(), time.process_time()
    if way == ONE_BY_ONE:
        compiled = compile_model(model)
        runner = Runner(
            solver=SOLVERS["highs"], threads=1, random_state=0, options={}, relative_gap=1e-6, deadline=began + limit_s
        )
        pool = pool_of(InTurn(runner, compiled, integers(compiled), BEST))
        status, values = pool.status, [compiled.evaluate(x) for x in pool.points]
    else:
        result = solve(model, way, pool=BEST, time_limit_s=limit_s)
        status, values = result.status, [solution.objective for solution in result.solutions]
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    again = time.process_time()
    solve(model, "highs" if way == ONE_BY_ONE else way, time_limit_s=limit_s)
    best = time.process_time() - again
    return {"status": str(status), "values": values, "seconds": seconds, "cpu": cpu, "cpu_best": best}


def main() -> None:
    """Run every way on every knapsack, interleaved, and write the report."""
    options = common.arguments("Ten best of knapsacks.", seeds=5, limit=300)
    seeds = 1 if options.quick else options.seeds
    able = [name for name in ("highs", "scip", "gurobi") if SOLVERS[name].is_licensed]
    ways = [*able, ONE_BY_ONE]
    settings = {"seeds": seeds, "limit_s": options.limit, "best": BEST, "sizes": [SMALL, LARGE], "ways": ways}
    journal = common.Journal("pools-quick" if options.quick else "pools", settings)
    cases = [(n, rows, seed) for n in (SMALL, LARGE) for rows in ROWS for seed in range(seeds)]
    asked = [(case, way) for place, case in enumerate(cases) for way in common.rotated(ways, place)]
    for name in able:
        solve(knapsack(4, 1, 0), name, pool=2)  # the first pays for imports
    for (n, rows, seed), way in common.bar(asked, len(asked)):
        key = f"{n}/{rows}/{seed}/{way}"
        if key not in journal.done:
            record = ask(knapsack(n, rows, seed), way, options.limit)
            journal.add(key, {"n": n, "rows": rows, "seed": seed, "way": way, **record})
    write(journal, settings, cases, quick=options.quick)


def write(journal: common.Journal, settings: dict[str, Any], cases: Any, *, quick: bool) -> None:
    """Hold the pools against one another and against enumeration, and keep what was found."""
    checked: dict[str, Any] = {"wrong": [], "compared": 0, "counted": 0, "points": 0}
    for n, rows, seed in cases:
        same = [r for r in journal.records if (r["n"], r["rows"], r["seed"]) == (n, rows, seed)]
        proved = [r for r in same if r["status"] == "optimal"]
        expected = proved[0]["values"] if proved else []
        if n == SMALL:
            expected, number = enumerated(knapsack(n, rows, seed))
            if SOLVERS["scip"].is_installed:
                checked["counted"] += count(knapsack(n, rows, seed)) == (number, True)
                checked["points"] += 1
        for record in proved:
            checked["compared"] += 1
            if not all(map(math.isclose, record["values"], expected)) or len(expected) != len(record["values"]):
                checked["wrong"].append(record["key"])
    settings["libraries"] = common.installed(("pyscipopt", "gurobipy"))
    record = {"settings": settings, "checked": checked, "records": journal.records}
    common.report("pools", TITLE, MEASURES, text_of, record, quick=quick)
    journal.close()


def text_of(record: dict[str, Any]) -> str:
    """Summarise by size and way, and say what does not agree."""
    settings, checked, lines = record["settings"], record["checked"], []
    for n, rows, way in itertools.product((SMALL, LARGE), ROWS, settings["ways"]):
        part = [r for r in record["records"] if (r["n"], r["rows"], r["way"]) == (n, rows, way)]
        proved = sum(r["status"] == "optimal" for r in part)
        times = [common.spread([r[what] for r in part], 2) for what in ("cpu_best", "cpu", "seconds")]
        lines.append([n, rows, way, f"{proved} of {len(part)}", *times])
    wrong = checked["wrong"]
    libraries = ", ".join(f"{k} {v}" for k, v in settings["libraries"].items())
    head = ["binaries", "rows", "way", "proved", "the best alone, CPU", f"{BEST} best, CPU", "wall"]
    return (
        f"The {BEST} best of knapsacks over binaries, {settings['seeds']} of each kind, by `solve(model, solver, "
        f"pool={BEST})`: HiGHS and SCIP with no-good rows, Gurobi by its own enumeration ({libraries}). "
        f"{ONE_BY_ONE!r} bars one solution after the other. Seconds: median / 90 % / worst; CPU time is what the work "
        "itself needs, wall time holds the waiting for other jobs too.\n\n"
        + common.markdown_table(head, lines)
        + f"\n\nThe values of {checked['compared']} proved pools were compared, those with {SMALL} binaries with "
        f"enumeration, the others with one another: {len(wrong)} differ{': ' + ', '.join(wrong) if wrong else ''}. "
        f"`count` gave the number of feasible points in {checked['counted']} of {checked['points']} small cases."
    )


if __name__ == "__main__":
    main()

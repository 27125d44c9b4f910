"""What ceopt costs beside the solver: build, lower, decode, rule checks and the rest, per row after the first."""

from __future__ import annotations

import time
from typing import Any

import common
import numpy as np

from ceopt.oracle.model import ModelOracle
from ceopt.search.near_points import NearSearch
from ceopt.search.near_values import NearValues
from ceopt.search.prepare import Prepared, prepare
from ceopt.search.search import search
from ceopt.settings import Settings
from ceopt.solvers.highs import HighsSession

TITLE = "Overhead per row beside the solver"
MEASURES = (
    "ceopt/search",
    "formulations/columns",
    "solvers/compile",
)

MODELS = ("logistic", "tree")
#: Each row is asked this often; its own time is the least of them.
REPEATS = 3
PARTS = ("build", "lower", "check", "rest", "predict", "start", "solve")


def measure(prepared: Prepared, row: Any) -> dict[str, float]:
    """Return seconds by part; ``overhead`` is all but the start, the solver and the model's own predict."""
    with (
        common.clocked(NearValues, "run") as start,
        common.clocked(NearSearch, "run") as near,
        common.clocked(HighsSession, "solve") as solve,
        common.clocked(ModelOracle, "predict") as predict,
    ):
        wall, cpu = time.perf_counter(), time.process_time()
        timings = dict(search(prepared, row).timings)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    others = {"start": start["wall"] + near["wall"], "solve": solve["wall"], "predict": predict["wall"]}
    # Where check and predict are not told apart, the check is timed with the model's own predict in it.
    check = timings["check"] - (0.0 if timings.get("predict") else predict["wall"])
    overhead = wall - sum(others.values())
    rest = overhead - timings["build"] - timings["lower"] - check
    parts = {"build": timings["build"], "lower": timings["lower"], "check": check, "rest": rest}
    own = cpu - start["cpu"] - near["cpu"] - solve["cpu"] - predict["cpu"]
    return {**parts, **others, "overhead": overhead, "overhead_cpu": own, "total": wall}


def main() -> None:
    """Measure and write the report."""
    options = common.arguments("Overhead per row beside the solver.", rows=30)
    rows = 3 if options.quick else options.rows
    settings = {"rows": rows, "repeats": REPEATS, "seed": common.SEED}
    journal = common.Journal("overhead-quick" if options.quick else "overhead", settings)
    tasks = [(data_set, model) for data_set in common.DATA_SETS for model in MODELS]
    for data_set, name in common.bar(tasks, len(tasks)):
        if f"{data_set}/{name}" in journal.done:
            continue
        task = common.load(data_set)
        model = common.fit(task, name)
        people = common.rejected(task, model, rows + 1)
        prepared = prepare(model, task.bunch.space, Settings(target=task.target), data=task.train)
        search(prepared, people.iloc[[0]])  # the first pays for imports
        measured = [
            [measure(prepared, people.iloc[[place]]) for _ in range(REPEATS)] for place in range(1, len(people))
        ]
        journal.add(f"{data_set}/{name}", {"data": data_set, "model": name, "measured": measured})
    write(journal, settings, quick=options.quick)


def write(journal: common.Journal, settings: dict[str, Any], *, quick: bool) -> None:
    """Summarise in all, and keep what was found."""
    wall, cpu = [], []
    for record in journal.records:
        for row in record["measured"]:
            wall.append(min(m["overhead"] for m in row) * 1e3)
            cpu.append(min(m["overhead_cpu"] for m in row) * 1e3)
    totals = {
        f"overhead_{clock}_ms_{name}": float(np.quantile(times, share))
        for clock, times in (("cpu", cpu), ("wall", wall))
        for name, share in (("median", 0.5), ("90 %", 0.9), ("worst", 1.0))
    }
    kept = {"settings": settings, "totals": totals, "records": journal.records}
    common.report("overhead", TITLE, MEASURES, text_of, kept, quick=quick)
    journal.close()


def text_of(record: dict[str, Any]) -> str:
    """Summarise per task."""
    settings, lines = record["settings"], []
    for task in record["records"]:
        every = [m["overhead"] * 1e3 for row in task["measured"] for m in row]
        best = [min(row, key=lambda m: m["overhead_cpu"]) for row in task["measured"]]
        own = [min(m["overhead"] for m in row) * 1e3 for row in task["measured"]]
        own_cpu = [m["overhead_cpu"] * 1e3 for m in best]
        spreads = [common.spread(times, 1) for times in (own_cpu, own, every)]
        parts = [f"{np.median([m[part] for m in best]) * 1e3:.1f}" for part in PARTS]
        lines.append([task["data"], task["model"], len(best), *spreads, *parts])
    return (
        f"{settings['rows']} people per model after a first one, the model read once. Overhead is everything but the "
        "search for a start, the solver and the model's own `predict`: program, arrays, session, decoding, rule checks "
        f"and what no timing names. Each row is asked {settings['repeats']} times; its own time is the least of them, "
        "as other jobs run on the machine. CPU time is what the program itself needs; wall time holds the waiting for "
        "other jobs too. Milliseconds; the parts are medians of wall time.\n\n"
        + common.markdown_table(
            ["data", "model", "rows", "overhead, CPU: median / 90 % / worst", "wall", "wall, all repeats", *PARTS],
            lines)
        + "\n\n"
        + "\n".join(f"- {key.replace('_', ' ')}: {value:.3g}" for key, value in record["totals"].items())
    )  # fmt: skip


if __name__ == "__main__":
    main()

"""Subsets of a pool: how long ``select`` and the published programs take to prove the farthest points."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, NamedTuple

import common
import numpy as np
from scipy.spatial.distance import cdist

from ceopt.diverse import select
from ceopt.formulations.programs import max_min_subset, max_sum_subset
from ceopt.solvers import solve

TITLE = "Subsets of a pool: proved by `select` and by the published programs"
MEASURES = ("ceopt/diverse/subset.py", "formulations/programs/subset.py")


class Case(NamedTuple):
    """How many of how many points, in how many columns, are to be the farthest, and who is asked."""

    objective: str
    points: int
    columns: int
    k: int
    ways: tuple[str, ...] = ("select",)

    @property
    def name(self) -> str:
        """The name under which a journal keeps it."""
        return f"{self.objective}/{self.points}/{self.columns}/{self.k}"


CASES = (
    Case("max_sum", 30, 3, 5, ("select", "published")),
    Case("max_min", 100, 2, 10, ("select", "published")),
    Case("max_sum", 200, 5, 5),
    Case("max_sum", 100, 2, 10),
)
PUBLISHED = {"max_sum": max_sum_subset, "max_min": max_min_subset}
SEEDS = 5


def ask(way: str, objective: str, points: Any, k: int, limit_s: float) -> dict[str, Any]:
    """Return status, value and gap of one way."""
    if way == "select":
        few = select(points, k, objective=objective, time_limit_s=limit_s)
        value, bound = few.value, few.bound
        status = str(few.status)
    else:
        outcome = solve(PUBLISHED[objective](cdist(points, points), k), solver="highs", time_limit_s=limit_s)
        value, bound = outcome.objective, outcome.bound
        status = str(outcome.status)
    gap = None
    if value is not None and bound is not None and np.isfinite([value, bound]).all():
        gap = abs(bound - value) / abs(value)
    return {"status": status, "value": value, "gap": gap}


def main() -> None:
    """Ask for each case and seed, the ways in turn."""
    options = common.arguments("Subsets of random pools.", seeds=SEEDS, limit=60)
    seeds = 1 if options.quick else options.seeds
    limit_s = 2.0 if options.quick else float(options.limit)
    settings = {"seeds": seeds, "limit_s": limit_s}
    journal = common.Journal("subsets-quick" if options.quick else "subsets", settings)
    asked = [(case, seed, way) for case in CASES for seed in range(seeds) for way in case.ways]
    for case, seed, way in common.bar(asked, len(asked)):
        key = f"{case.name}/{way}/{seed}"
        if key in journal.done:
            continue
        points = np.random.default_rng(seed).normal(size=(case.points, case.columns))
        wall, cpu = time.perf_counter(), time.process_time()
        found = ask(way, case.objective, points, case.k, limit_s)
        seconds = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        journal.add(key, {"case": case.name, "way": way, "seed": seed, **found, **seconds})
    record = {"settings": settings, "records": journal.records}
    common.report("subsets", TITLE, MEASURES, text_of, record, quick=options.quick)
    journal.close()


def of_case(record: dict[str, Any], case: Case, way: str) -> list[dict[str, Any]]:
    """Return what one way found of a case, one record for each seed."""
    return [each for each in record["records"] if (each["case"], each["way"]) == (case.name, way)]


def text_of(record: dict[str, Any]) -> str:
    """Summarise by case and way."""
    settings = record["settings"]
    lines = []
    for case in CASES:
        for way in case.ways:
            part = of_case(record, case, way)
            counts = Counter(each["status"] for each in part)
            statuses = ", ".join(f"{status} {count}" for status, count in counts.items())
            gaps = [each["gap"] for each in part if each["gap"] is not None]
            gap = f"{np.median(gaps):.0%}" if gaps else "-"
            seconds = [each["seconds"] for each in part]
            cpu = [each["cpu"] for each in part]
            lines.append([*case[:4], way, statuses, gap, common.spread(seconds, 1), common.spread(cpu, 1)])
    return (
        f"Pools of normal points, {settings['seeds']} seeds a case, l2, HiGHS on one thread, {settings['limit_s']:g} s "
        "each. "
        "`select` is what a user calls (max-sum by the compact program, max-min by a search over sorted distances); "
        "published is the program of the paper with a number for each pair, by `solve`.\n\n"
        + common.markdown_table(
            ["objective", "points", "columns", "k", "way", "statuses", "gap, median",
             "seconds: median / 90 % / worst", "CPU seconds"],
            lines,
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()

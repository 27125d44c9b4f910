"""Cuts inside one search against rounds: tours whose subtours are cut off."""

from __future__ import annotations

import itertools
import statistics
import time
from typing import Any

import common
import numpy as np
import pyomo.environ as pyo

from ceopt.solvers import available, cutting_planes

TITLE = "Lazy rows"
MEASURES = ("solvers/cutting_planes.py", "solvers/incremental.py", "solvers/scip.py", "solvers/gurobi.py")

STOPS = (30, 60)
TOURS = 5
WAYS = (("highs", False), ("scip", False), ("scip", True), ("gurobi", False), ("gurobi", True))


def tour(n: int, seed: int) -> tuple[Any, Any]:
    """Return a symmetric tour of n stops without its subtour rows, and the separation: one cut a subtour."""
    places = np.random.default_rng(seed).uniform(size=(n, 2))
    pairs = list(itertools.combinations(range(n), 2))
    m = pyo.ConcreteModel()
    m.edge = pyo.Var(pairs, domain=pyo.Binary)
    m.degree = pyo.Constraint(range(n), rule=lambda m, i: pyo.quicksum(m.edge[p] for p in pairs if i in p) == 2)
    m.length = pyo.Objective(
        expr=pyo.quicksum(float(np.linalg.norm(places[i] - places[j])) * m.edge[i, j] for i, j in pairs)
    )

    def separate(_solution: Any) -> Any:
        parts = {stop: {stop} for stop in range(n)}
        for i, j in pairs:
            if m.edge[i, j].value > 0.5 and parts[i] is not parts[j]:
                parts[i] |= parts[j]
                for stop in parts[j]:
                    parts[stop] = parts[i]
        subtours = {id(part): part for part in parts.values()}.values()
        if len(subtours) == 1:
            return None
        return [pyo.quicksum(m.edge[p] for p in pairs if len(part & set(p)) == 1) >= 2 for part in subtours]

    return m, separate


def measure(n: int, solver: str, *, lazy: bool, tours: int) -> dict[str, Any]:
    """Return the seconds, solves and cuts of some tours, in rounds or in one search."""
    lengths, seconds, rounds, cuts = [], [], [], []
    for k in range(tours):
        m, separate = tour(n, common.SEED + k)
        began = time.perf_counter()
        found = cutting_planes(m, separate, solver=solver, lazy=lazy)
        seconds.append(time.perf_counter() - began)
        if str(found.status) != "optimal":
            raise RuntimeError(found.message)
        lengths.append(found.objective)
        rounds.append(len(found.rounds))
        cuts.append(len(found.cuts))
    return {
        "stops": n,
        "solver": solver,
        "lazy": lazy,
        "seconds": seconds,
        "rounds": rounds,
        "cuts": cuts,
        "lengths": lengths,
    }


def main() -> None:
    """Measure and write the report."""
    options = common.arguments("Cuts inside one search against rounds.", tours=TOURS)
    stops = STOPS[:1] if options.quick else STOPS
    tours = 1 if options.quick else options.tours
    ready = available().set_index("solver")["licensed"]
    ways = [way for way in WAYS if ready[way[0]]]
    measured = [measure(n, solver, lazy=lazy, tours=tours) for n in stops for solver, lazy in ways]
    for n in stops:
        lengths = [one["lengths"] for one in measured if one["stops"] == n]
        if not np.allclose(lengths, lengths[0], rtol=1e-5):
            raise RuntimeError(f"The tours of {n} stops differ: {lengths}")
    kept = {"settings": {"tours": tours, "seed": common.SEED}, "records": measured}
    common.report("lazy_rows", TITLE, MEASURES, text_of, kept, quick=options.quick)


def text_of(record: dict[str, Any]) -> str:
    """Tabulate the ways, each beside its own rounds."""
    in_rounds = {(one["stops"], one["solver"]): sum(one["seconds"]) for one in record["records"] if not one["lazy"]}
    lines = [
        [
            str(one["stops"]),
            one["solver"],
            "one search" if one["lazy"] else "rounds",
            f"{sum(one['seconds']):.2f}",
            f"{sum(one['seconds']) / in_rounds[one['stops'], one['solver']]:.2f}" if one["lazy"] else "",
            f"{statistics.median(one['rounds']):g}",
            f"{statistics.median(one['cuts']):g}",
        ]
        for one in record["records"]
    ]
    head = ["stops", "solver", "way", "seconds", "of its rounds", "solves", "cuts"]
    settings = record["settings"]
    return (
        f"{settings['tours']} random symmetric tours each, by `cutting_planes` with a cut for every subtour of a "
        "solution; seconds of all, medians of solves and cuts. The lengths agree.\n\n"
        + common.markdown_table(head, lines)
    )


if __name__ == "__main__":
    main()

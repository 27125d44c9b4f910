"""Minimax probability machines: the exact method, and the program form, beside the same program in cvxpy."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import common
import numpy as np
from threadpoolctl import threadpool_limits

from ceopt.formulations import programs
from ceopt.solvers import solve
from ceopt.surrogates import MinimaxProbabilityMachine

TITLE = "Minimax probability machines beside cvxpy"
MEASURES = ("ceopt/surrogates/minimax.py", "formulations/programs/minimax.py", "solvers/compile", "solvers/conic")

SIZES = (50, 500)
#: Divergence and radii: without radius, with other factors, and with a third norm.
MACHINES = {"nominal": (0.0, 0.0), "fisher_rao": (1.0, 0.2), "bures": (0.3, 0.1)}
#: Calls of each way in a round, one after the other, so that all have their memory at hand.
CALLS = {50: 5, 500: 2}
WAYS = ("exact", "program", "cvxpy")


def instance(d: int) -> tuple[Any, Any, Any, Any]:
    """Return the moments of two samples of 3 d rows whose columns are correlated."""
    rng = np.random.default_rng([common.SEED, d])
    found = []
    for shift in (0.0, 1.0 / np.sqrt(d)):
        mixed = np.eye(d) + rng.normal(size=(d, d)) / np.sqrt(d)
        rows = rng.normal(size=(3 * d, d)) @ mixed + shift
        found += [rows.mean(axis=0), np.cov(rows.T)]
    return found[0], found[1], found[2], found[3]


# ---- three ways ------------------------------------------------------------------------------------------------------
def exact(moments: Any, divergence: str, radius: tuple[float, float]) -> dict[str, Any]:
    """Fit by the exact method, checks of the input included."""
    began = time.perf_counter()
    found = MinimaxProbabilityMachine(divergence, radius).fit_moments(*moments)
    return {"wall_s": time.perf_counter() - began, "value": 1.0 / found.kappa_, "status": found.status_}


def program(moments: Any, divergence: str, radius: tuple[float, float]) -> dict[str, Any]:
    """State the cone program in Pyomo, lower it and solve it."""
    began = time.perf_counter()
    model = programs.minimax_machine(*moments, divergence=divergence, radius=radius)
    built = time.perf_counter()
    result = solve(model, "clarabel")
    ended = time.perf_counter()
    return {
        "wall_s": ended - began,
        "build_s": built - began,
        "lower_and_solve_s": ended - built,
        "value": result.objective * model.unit_of_worst,
        "status": str(result.status),
    }


def in_cvxpy(moments: Any, divergence: str, radius: tuple[float, float]) -> dict[str, Any]:
    """State the same in cvxpy as its user does, and solve it by the same Clarabel; the whole call."""
    import cvxpy as cp

    began = time.perf_counter()
    mean_neg, cov_neg, mean_pos, cov_pos = moments
    factors = [1.0, 1.0]
    length = 0.0
    if divergence == "fisher_rao":
        factors = [float(np.exp(rho / 2.0)) for rho in radius]
    if divergence == "bures":
        length = float(np.sqrt(radius).sum())
    w = cp.Variable(len(mean_neg))
    parts = [
        factor * cp.norm(np.linalg.cholesky(cov).T @ w) for factor, cov in zip(factors, (cov_neg, cov_pos), strict=True)
    ]
    if length:
        parts.append(length * cp.norm(w))
    problem = cp.Problem(cp.Minimize(sum(parts)), [(mean_pos - mean_neg) @ w == 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL")
    return {"wall_s": time.perf_counter() - began, "value": float(problem.value), "status": str(problem.status)}


# ---- measuring -------------------------------------------------------------------------------------------------------
def measured(rounds: int) -> list[dict[str, Any]]:
    """Return a record a call: rounds in which each way is called in turn, another first each time."""
    ways: dict[str, Callable[..., dict[str, Any]]] = {"exact": exact, "program": program, "cvxpy": in_cvxpy}
    cases = [(d, name) for d in SIZES for name in MACHINES]
    data = {d: instance(d) for d in SIZES}
    for way in ways.values():
        way(data[SIZES[0]], "nominal", (0.0, 0.0))  # the first pays for imports
    records = []
    turns = [(place, d, name) for place in range(rounds) for d, name in cases]
    for place, d, name in common.bar(turns, len(turns)):
        for way in common.rotated(list(ways), place):
            for call in range(CALLS[d]):
                found = ways[way](data[d], name, MACHINES[name])
                records.append({"way": way, "d": d, "machine": name, "row": place, "call": call, **found})
    return records


def median(records: list[dict[str, Any]], way: str, d: int, machine: str, what: str) -> float:
    """Return the median of what was measured of one way at one size."""
    own = [r[what] for r in records if (r["way"], r["d"], r["machine"]) == (way, d, machine)]
    return float(np.median(own))


def text_of(record: dict[str, Any]) -> str:
    """Summarise."""
    records = record["records"]
    lines = []
    forms = []
    for d in SIZES:
        for machine in MACHINES:
            of = {way: median(records, way, d, machine, "wall_s") for way in WAYS}
            build = median(records, "program", d, machine, "build_s")
            rest = median(records, "program", d, machine, "lower_and_solve_s")
            values = [r["value"] for r in records if (r["d"], r["machine"]) == (d, machine)]
            apart = (max(values) - min(values)) / min(values)
            lines.append(
                [d, machine, f"{of['exact'] * 1e3:.2f}", f"{of['cvxpy'] * 1e3:.1f}",
                 f"{of['cvxpy'] / of['exact']:.1f}", f"{apart:.0e}"]
            )  # fmt: skip
            forms.append(
                [d, machine, f"{build * 1e3:.1f}", f"{rest * 1e3:.1f}", f"{of['cvxpy'] * 1e3:.1f}",
                 f"{build / of['cvxpy']:.2f}", f"{rest / of['cvxpy']:.2f}"]
            )  # fmt: skip
    calls = {d: sum((r["way"], r["d"], r["machine"]) == ("cvxpy", d, "nominal") for r in records) for d in SIZES}
    counts = " and ".join(f"{calls[d]} calls at d = {d}" for d in SIZES)
    return (
        f"One thread; each way {counts}, in rounds in which each is called in turn, another first each time; medians "
        f"of whole calls in milliseconds. cvxpy {record['libraries']['cvxpy']}, "
        f"Clarabel {record['libraries']['clarabel']}; moments of two samples of 3 d rows.\n\n"
        "**`fit_moments` by the exact method**, checks of its input included, beside the same program stated in cvxpy "
        "and solved by Clarabel:\n\n"
        + common.markdown_table(
            ["d", "divergence", "ceopt, ms", "cvxpy, ms", "times faster", "optima differ by"], lines
        )
        + "\n\n**The program form**, `formulations.programs.minimax_machine` and `solve`, by the same Clarabel: "
        "Pyomo's building apart from lowering and solving, each as a share of cvxpy's whole call:\n\n"
        + common.markdown_table(
            ["d", "divergence", "build, ms", "lower and solve, ms", "cvxpy, ms", "build / cvxpy", "rest / cvxpy"], forms
        )
    )


def main() -> None:
    """Measure, and write the report."""
    options = common.arguments("Minimax probability machines: exact, as a program, and in cvxpy.", rows=15)
    rounds = 2 if options.quick else options.rows
    with threadpool_limits(1):  # Clarabel's own factorisation has one
        records = measured(rounds)
    record = {"libraries": common.installed(["clarabel", "cvxpy", "scipy"]), "records": records}
    common.report("minimax", TITLE, MEASURES, text_of, record, quick=options.quick)


if __name__ == "__main__":
    main()

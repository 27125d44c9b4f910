"""What a loop of 200 cuts on 5,000 rows spends outside the solver."""

from __future__ import annotations

import statistics
import time
from typing import Any

import common
import numpy as np
import pyomo.environ as pyo

from ceopt.solvers import available, session

TITLE = "A loop of cuts"
MEASURES = (
    "solvers/compile",
    "solvers/incremental.py",
    "solvers/guarded_session.py",
    "solvers/trust.py",
    "solvers/highs.py",
    "solvers/scip.py",
)

ROWS = 5000
COLUMNS = 200
IN_A_ROW = 5
CUTS = 200
SOLVERS = ("highs", "scip")


def program(rows: int) -> Any:
    """Return an LP of covering rows."""
    draw = np.random.default_rng(common.SEED)
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(COLUMNS), bounds=(0, 10))
    m.rows = pyo.ConstraintList()
    for _ in range(rows):
        at = draw.choice(COLUMNS, IN_A_ROW, replace=False)
        weights = draw.uniform(1, 5, IN_A_ROW)
        m.rows.add(sum(float(a) * m.x[int(j)] for a, j in zip(weights, at, strict=True)) >= float(draw.uniform(5, 20)))
    m.cost = pyo.Objective(expr=sum(float(c) * m.x[j] for j, c in enumerate(draw.uniform(1, 4, COLUMNS))))
    m.cuts = pyo.ConstraintList()
    return m


def measure(solver: str, rows: int, cuts: int) -> dict[str, Any]:
    """Return the seconds of the loop by part: each cut asks for more of twenty Vars than the solution has."""
    draw = np.random.default_rng(common.SEED + 1)
    m = program(rows)
    began = time.perf_counter()
    opened = session(m, solver, relative_gap=1e-4)
    opening = time.perf_counter() - began
    spent = {"stating": 0.0}
    rounds = []
    owner, method = _run_of(solver)
    with common.clocked(owner, method) as inside:
        began = time.perf_counter()
        for _ in range(cuts):
            round_began = time.perf_counter()
            result = opened.solve()
            if str(result.status) != "optimal":
                raise RuntimeError(str(result))
            stated = time.perf_counter()
            at = draw.choice(COLUMNS, 20, replace=False)
            weights = draw.uniform(0.5, 1.5, 20)
            held = sum(float(a) * m.x[int(j)].value for a, j in zip(weights, at, strict=True))
            cut = m.cuts.add(
                sum(float(a) * m.x[int(j)] for a, j in zip(weights, at, strict=True)) >= 1.002 * held + 0.01
            )
            spent["stating"] += time.perf_counter() - stated
            opened.add(cut)
            rounds.append(time.perf_counter() - round_began)
        total = time.perf_counter() - began
    return {
        "solver": solver,
        "objective": result.objective,
        "opening_s": opening,
        "total_s": total,
        "solver_s": inside["wall"],
        "stating_s": spent["stating"],
        "round_s": statistics.median(rounds),
    }


def _run_of(solver: str) -> tuple[Any, str]:
    """Return where a solver's own run begins and ends."""
    if solver == "highs":
        import highspy

        return highspy.Highs, "run"
    from ceopt.solvers.scip import ScipSession

    return ScipSession, "_once"


def main() -> None:
    """Measure and write the report."""
    options = common.arguments("What a loop of cuts spends outside the solver.", rows=ROWS)
    rows = 500 if options.quick else options.rows
    cuts = 10 if options.quick else CUTS
    ready = available().set_index("solver")["licensed"]
    measured = [measure(solver, rows, cuts) for solver in SOLVERS if ready[solver]]
    settings = {"rows": rows, "cuts": cuts, "columns": COLUMNS, "in_a_row": IN_A_ROW, "seed": common.SEED}
    kept = {"settings": settings, "records": measured}
    common.report("cut_loop", TITLE, MEASURES, text_of, kept, quick=options.quick)


def text_of(record: dict[str, Any]) -> str:
    """Tabulate the parts of each loop."""
    settings = record["settings"]
    lines = []
    for one in record["records"]:
        own = one["total_s"] - one["solver_s"] - one["stating_s"]
        lines.append(
            [
                one["solver"],
                f"{one['total_s']:.2f}",
                f"{one['solver_s']:.2f}",
                f"{one['stating_s']:.2f}",
                f"{own:.2f}",
                f"{100 * own / one['total_s']:.1f} %",
                f"{1e3 * one['round_s']:.0f}",
                f"{one['opening_s']:.2f}",
            ]
        )
    head = ["solver", "loop", "in the solver", "stating cuts", "the rest", "share", "a round, ms", "opening"]
    return (
        f"An LP of {settings['rows']:,} rows over {settings['columns']:,} Vars, {settings['in_a_row']} in a row, is "
        f"solved {settings['cuts']} times by a session, and each time a cut over 20 Vars is added that its solution "
        "breaks. Seconds. Stating a cut is the caller's own Pyomo; the rest is all that `add` and `solve` do beside "
        "the solver's own run: compiling the cut, handing it over, checking the outcome, loading it. SCIP's run has "
        "the reading of its result in it. HiGHS goes on from its basis, SCIP begins anew.\n\n"
        + common.markdown_table(head, lines)
    )


if __name__ == "__main__":
    main()

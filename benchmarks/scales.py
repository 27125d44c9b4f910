"""Columns from 1e-12 to 1e12 under every kind of model, cost and mixed-integer solver, held against a lattice.

The generator and the judge are those of the tests (``tests/judging/scales.py``). An answer is wrong if the model
refuses it, if it is "optimal" above the cheapest favourable point, "infeasible" where there is one, or its bound is
above that.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from typing import Any

import common

sys.path.insert(0, str(common.ROOT / "tests"))

from judging.scales import KINDS, question, verdict

import ceopt.solvers.guarded_session
from ceopt.solvers.registry import SOLVERS
from ceopt.solvers.units import span_of

TITLE = "Columns from 1e-12 to 1e12"
MEASURES = ("ceopt/search", "formulations/columns", "solvers/guarded_session.py", "solvers/units.py")

SEED = 0
#: Seconds for one question.
LIMIT_S = 20.0
#: Coefficients of one row that span more, once scaled, are where nothing is claimed.
SPAN = 1e12


def main() -> None:
    """Ask, compare, count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=60, help="questions a kind, default 60")
    parser.add_argument("--seed", type=int, default=SEED, help="default 0")
    parser.add_argument("--fast", action="store_true", help="4 questions a kind, to see that it runs; writes nothing")
    args = parser.parse_args()
    count, solvers = 4 if args.fast else args.questions, [s for s in ("highs", "scip", "gurobi") if usable(s)]
    print(f"seed {args.seed}, solvers {', '.join(solvers)}", flush=True)
    spans = noted_spans()
    records = []
    for kind in KINDS:
        for number in range(count):
            asked = question(kind, number, args.seed)
            if asked is None:
                continue
            solver = solvers[number % len(solvers)]
            spans.clear()
            began = time.perf_counter()
            result = asked.ask(solver, time_limit_s=LIMIT_S)
            seconds = time.perf_counter() - began
            wrong = verdict(asked, result)
            if wrong:
                print(f"WRONG {asked.name}, {solver}: {wrong}", flush=True)
            records.append(
                {
                    "question": asked.name, "kind": kind, "solver": solver, "status": str(result.status),
                    "wrong": wrong, "seconds": seconds, "span": max(spans, default=1.0), "reason": result.reason,
                }
            )  # fmt: skip
    settings = {"seed": args.seed, "solvers": solvers, "limit_s": LIMIT_S}
    common.report("scales", TITLE, MEASURES, text_of, {"settings": settings, "records": records}, quick=args.fast)


def usable(solver: str) -> bool:
    """Whether a solver is installed and licensed."""
    return bool(SOLVERS[solver].is_licensed)


def noted_spans() -> list[float]:
    """Return a list that collects the span of every program that is handed over in units of its own."""
    spans: list[float] = []
    in_units = ceopt.solvers.guarded_session.rescaled

    def noted(*given: Any, **words: Any) -> Any:
        units = in_units(*given, **words)
        spans.append(span_of(units.program))
        return units

    ceopt.solvers.guarded_session.rescaled = noted
    return spans


def text_of(record: dict[str, Any]) -> str:
    """Count by kind and by solver."""
    settings, records = record["settings"], record["records"]
    rows = []
    for kind in (*KINDS, *settings["solvers"], "all"):
        some = [r for r in records if kind in {r["kind"], r["solver"], "all"}]
        counts = Counter(r["status"] for r in some)
        feasible = [r for r in some if r["status"] == "feasible"]
        others = sum(counts.values()) - counts["optimal"] - counts["feasible"]
        rows.append(
            [
                kind, len(some), sum(bool(r["wrong"]) for r in some), share(counts["optimal"], some),
                share(len(feasible), some), share(sum(r["span"] > SPAN for r in feasible), some),
                share(others, some), common.spread([r["seconds"] for r in some], 2),
            ]
        )  # fmt: skip
    head = ["asked", "questions", "wrong", "optimal", "feasible", "of them span > 1e12", "other", "seconds"]
    about = (
        f"Seed {settings['seed']}; {', '.join(settings['solvers'])} in turn; {settings['limit_s']:g} s a question.\n"
    )
    return f"{common.markdown_table(head, rows)}\n{about}"


def share(part: int, some: list[Any]) -> str:
    """Return a part as a percentage."""
    return f"{100 * part / max(len(some), 1):.1f} %"


if __name__ == "__main__":
    main()

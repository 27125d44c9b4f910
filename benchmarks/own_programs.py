"""Programs of one's own: an attack on a network, and 100 bootstrapped models in one program, beside 0.2.0 and Gurobi's.

Each run is a process of its own (``own_programs_ask.py``), and the ways take turns. ``--before`` names a checkout of
0.2.0: ``git worktree add FOLDER e7058e7``. A library that cannot be imported is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
from pathlib import Path
from typing import Any

import common
from own_programs_ask import TASKS

TITLE = "Programs of one's own"
MEASURES = (
    "formulations/predictors/embed",
    "formulations/predictors/read_model.py",
    "formulations/predictors/reaches.py",
    "formulations/predictors/margin.py",
    "formulations/space/encoding.py",
)

ROUNDS = 5
ROOT = Path(__file__).resolve().parents[1]
BEFORE = "0.2.0"
CLOCKS = ("seconds", "processor")
GUROBI_ML = "gurobi-machinelearning"
#: What each task is, and what its times are compared with.
TOLD = {
    "attack": "The least margin of the class of the first row of scikit-learn's digits, in an l1 ball of 5/16 around "
    "it (pixels between 0 and 1), of a network of 15, 10 and 10 neurons: stating and solving. Today it is one program "
    "whose bounds know the ball (`Cutoff`) and whose objective is `margin`; with 0.2.0 it is one for each other "
    "class, over Vars bounded by the ball; gurobi-machinelearning gets one with the greatest of the other scores.",
    "one person": "Stating a program of 100 logistic pipelines over the loans, each fitted on another sample, of which "
    "90 have to say yes; for one person. *scikit-learn alone* is one `predict_proba` of each model on as many rows as "
    "a reading is held against: models that were not read before cannot be stated faster.",
    "ten people": "The same for ten people after each other, with the models given anew for each.",
}


def paths(before: Path | None) -> dict[str, Path]:
    """Return the checkout that each way is run with."""
    found = {}
    for _, way in TASKS:
        if not way.startswith(BEFORE):
            found[way] = ROOT
        elif before is not None:
            found[way] = before
    if importlib.util.find_spec("gurobi_ml") is None:
        found.pop(GUROBI_ML)
    if importlib.util.find_spec("gurobipy") is None:
        found = {way: path for way, path in found.items() if "Gurobi" not in way}
    return found


def ask(task: str, way: str, checkout: Path) -> dict[str, Any]:
    """Run one way once."""
    return {"task": task, "way": way, **common.in_own_process("own_programs_ask.py", [task, way], checkout)}


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="a checkout of 0.2.0")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    parser.add_argument("--quick", action="store_true", help="one round, without the ten people")
    options = parser.parse_args()
    known = paths(options.before)
    runs = [(task, way) for task, way in TASKS if way in known and not (options.quick and task == "ten people")]
    rounds = 1 if options.quick else options.rounds
    records = []
    for _ in common.bar(range(rounds), rounds):
        for task, way in runs:
            records.append(ask(task, way, known[way]))
    settings = {"rounds": rounds, "before": "e7058e7 (0.2.0)" if options.before else None}
    beside = common.installed(["gurobipy", "gurobi-machinelearning"])
    kept = {"settings": settings, "beside": beside, "records": records}
    common.report("own_programs", TITLE, MEASURES, text_of, kept, quick=options.quick)


def text_of(record: dict[str, Any]) -> str:
    """Tabulate the medians of each task."""
    beside = ", ".join(f"{name} {version}" for name, version in record["beside"].items())
    rounds = record["settings"]["rounds"]
    parts = [f"{rounds} rounds, in turns; medians of seconds, and of the processor's. Beside: {beside or 'nothing'}."]
    for task, told in TOLD.items():
        ways = list(dict.fromkeys(one["way"] for one in record["records"] if one["task"] == task))
        if not ways:
            continue
        medians = {key: {way: _median(record["records"], task, way, key) for way in ways} for key in CLOCKS}
        lines = []
        for way in ways:
            of_way = [one for one in record["records"] if (one["task"], one["way"]) == (task, way)]
            times = []
            for of_clock in medians.values():
                times += [f"{of_clock[way]:.2f}", f"{of_clock[way] / of_clock[ways[0]]:.2f}"]
            values = of_way[0]["value"]
            shown = ""
            if values is not None:
                shown = f"{sum(values):.6f}" if isinstance(values, list) else f"{values:.6f}"
            solving = "" if "solving" not in of_way[0] else f"{_median(record['records'], task, way, 'solving'):.2f}"
            statuses = " ".join(sorted({one["status"] for one in of_way}))
            lines.append([way, *times, solving, shown, statuses])
        clocks = ["seconds", "of the first", "processor", "of the first"]
        head = ["way", *clocks, "solving beside it, s", "objective (sum)", "status"]
        parts += [f"## {task.capitalize()}", told, common.markdown_table(head, lines)]
    return "\n\n".join(parts)


def _median(records: list[dict[str, Any]], task: str, way: str, key: str) -> float:
    return statistics.median(one[key] for one in records if (one["task"], one["way"]) == (task, way))


if __name__ == "__main__":
    main()

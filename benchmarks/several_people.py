"""200 people, one budget, a row of fairness: ``solve_people`` beside asking each alone with 0.2.0 and a knapsack.

Each run is a process of its own (``several_people_ask.py``), and the ways take turns. ``--before`` names a checkout of
0.2.0: ``git worktree add FOLDER e7058e7``.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

import common
from several_people_ask import BUDGET, FAIR, MODELS, PEOPLE, TASKS, TODAY, WHOLE, WHOLE_S

TITLE = "Several people with one budget"
MEASURES = (
    "ceopt/people.py",
    "ceopt/search/least_costs.py",
    "formulations/people.py",
    "formulations/predictors/embed/trees.py",
)

ROUNDS = 3
ROOT = Path(__file__).resolve().parents[1]


def ask(name: str, way: str, checkout: Path) -> dict[str, Any]:
    """Run one way once."""
    return {"model": name, "way": way, **common.in_own_process("several_people_ask.py", [name, way], checkout)}


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="a checkout of 0.2.0")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    parser.add_argument("--quick", action="store_true", help="solve_people alone, once")
    options = parser.parse_args()
    rounds = 1 if options.quick else options.rounds
    records = []
    for place in common.bar(range(rounds), rounds):
        for name, way in TASKS:
            is_before = way.startswith("0.2.0")
            is_left_out = way != TODAY and options.quick
            if is_left_out or (is_before and options.before is None) or (way == WHOLE and place > 0):
                continue
            records.append(ask(name, way, options.before if is_before else ROOT))
    settings = {"rounds": rounds, "before": "e7058e7 (0.2.0)" if options.before else None}
    common.report(
        "several_people", TITLE, MEASURES, text_of, {"settings": settings, "records": records}, quick=options.quick
    )


def text_of(record: dict[str, Any]) -> str:
    """Tabulate the medians of each model."""
    rounds = record["settings"]["rounds"]
    about = (
        f"The first {PEOPLE} people of the loans that a model refuses, a budget of {BUDGET:g} in the unit of "
        f"`explain`'s cost, and the shares served of men and women within {100 * FAIR:g} %: as many as possible. From "
        "the fitted model to answers in hand, one thread, each way in a process of its own; "
        f"{rounds} {'round' if rounds == 1 else 'rounds, in turns'}, medians of seconds. The machine had other work, "
        "which the processor's own seconds leave out: they are what is compared. With 0.2.0 each person is asked for "
        "by `explain`, or all by `Recourse`, and a knapsack chooses. One program of all ran once, for "
        f"{WHOLE_S:g} s at most. All that is served is predicted again by the fitted model: the column *right*."
    )
    parts = [about]
    for name in MODELS:
        of_model = [one for one in record["records"] if one["model"] == name]
        ways = list(dict.fromkeys(one["way"] for one in of_model))
        wall, cpu = ({way: _median(of_model, way, what) for way in ways} for what in ("seconds", "cpu"))
        lines = []
        for way in ways:
            last = [one for one in of_model if one["way"] == way][-1]
            statuses = " ".join(sorted({one["status"] for one in of_model if one["way"] == way}))
            served = "" if last["objective"] is None else f"{last['objective']:.0f}"
            bound = "" if last["bound"] is None else f"{last['bound']:.1f}"
            times = f"{cpu[way] / cpu[ways[0]]:.1f}"
            lines.append([way, statuses, served, bound, last["right"], f"{wall[way]:.2f}", f"{cpu[way]:.2f}", times])
        head = ["way", "status", "served", "bound", "right", "seconds", "of the processor", "times solve_people"]
        parts += [f"## {name.capitalize()}", common.markdown_table(head, lines)]
    return "\n\n".join(parts)


def _median(records: list[dict[str, Any]], way: str, what: str) -> float:
    return statistics.median(one[what] for one in records if one["way"] == way)


if __name__ == "__main__":
    main()

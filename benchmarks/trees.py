"""A forest of 100 trees of depth 5 on German credit: the default against Misic's form with coordinates, interleaved."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial
from typing import Any

import common
import numpy as np
import pandas as pd

from ceopt.formulations.recourse_program import recourse_program
from ceopt.search.prepare import Prepared, prepare
from ceopt.search.search import init, search
from ceopt.search.solve_check_repair import find_starts
from ceopt.search.solve_program import ProgramSolver, SolveRequest
from ceopt.settings import Settings
from ceopt.solvers import compile_model
from ceopt.solvers.highs import HighsSession

TITLE = "Trees: ordered split binaries against Misic's form"
MEASURES = (
    "ceopt/search",
    "formulations/predictors/embed/trees.py",
)

#: Ways to ask the same question: (formulation, what helps the solver). "asked" is ``explain`` as users have it; the
#: others build and solve one program: bare, with ceopt's start, or narrowed by the cost of that start as well.
WAYS = {
    "default": ("auto", "asked"),
    "ordered alone": ("ordered", "nothing"),
    "ordered with the start": ("ordered", "start"),
    "ordered with start and cutoff": ("ordered", "cutoff"),
    "misic alone": ("misic", "nothing"),
    "misic with the start": ("misic", "start"),
    "misic with start and cutoff": ("misic", "cutoff"),
}
MORE_WAYS = {"leaf alone": ("leaf", "nothing"), "leaf with start and cutoff": ("leaf", "cutoff")}
#: What is compared, and how: way, other way, sentence.
RATIOS = (
    ("default", "misic alone", "the default as users get it against Misic's form as published"),
    ("ordered alone", "misic alone", "the form alone"),
    ("ordered with the start", "ordered alone", "the start alone"),
    ("ordered with start and cutoff", "ordered with the start", "the cutoff, beside the start"),
    ("ordered with start and cutoff", "misic with start and cutoff", "the form, beside start and cutoff"),
)


def alone(prepared: Prepared, row: pd.DataFrame, formulation: str, limit_s: float) -> dict[str, Any]:
    """Solve the bare program: no start, no cutoff, no repair; then put its answer to the model."""
    settings = prepared.settings
    began = time.perf_counter()
    program = recourse_program(
        prepared.predictor, row, target=settings.target, cost=settings.cost, formulation=formulation
    )
    built = time.perf_counter()
    compiled = compile_model(program.model)
    lowered = time.perf_counter()
    outcome = HighsSession(compiled).solve(time_limit_s=limit_s, relative_gap=settings.relative_gap / 2)
    solved = time.perf_counter()
    record: dict[str, Any] = {"status": str(outcome.status), "size": common.size_of(compiled), "bound": outcome.bound}
    record |= {"build": built - began, "lower": lowered - built, "solve": solved - lowered}
    if outcome.x is not None:
        compiled.load(outcome.x)
        point = program.x.decoded()
        met = bool(prepared.oracle.meets(prepared.space.frame([point]), settings.target)[0])
        record |= {"cost": settings.cost.value(prepared.space, prepared.space.row(row), point), "invalid": not met}
    return record


def with_start(prepared: Prepared, row: pd.DataFrame, limit_s: float, *, cutoff: bool) -> dict[str, Any]:
    """Search a start, and solve one program that begins with it; with a cutoff it leaves out all that costs more."""
    state = find_starts(init(prepared, row, keep_on_interrupt=True, within=None, began=None))
    question = state.question
    request = SolveRequest(prepared.margin, starts=state.starts)
    if cutoff and state.starts:
        request = request.with_budget_of(state.starts[0])
    with common.sizes() as sizes:
        solved = ProgramSolver(prepared, question.person).once(request, limit_s)
    record: dict[str, Any] = {"status": str(solved.outcome.status), "size": sizes[0], "bound": solved.outcome.bound}
    record |= {"build": solved.build_s, "lower": solved.lower_s, "solve": solved.solve_s}
    if solved.point is not None:
        check = question.check(solved.point)
        record |= {"cost": question.cost(solved.point), "invalid": not check.valid}
    return record


def whole(prepared: Prepared, row: pd.DataFrame) -> dict[str, Any]:
    """Ask as a user does: start, cutoff, program, checks."""
    with common.sizes() as sizes:
        result = search(prepared, row)
    timings = {part: result.timings[part] for part in ("start", "build", "lower", "solve", "check")}
    record: dict[str, Any] = {"status": str(result.status), "size": sizes[0] if sizes else {}, "bound": result.bound}
    record |= timings
    if len(result):
        again = prepared.oracle.meets(result[0].frame, prepared.settings.target)[0]
        record |= {"cost": result[0].cost, "invalid": not bool(again)}
    return record


def main() -> None:
    """Run every way on every row, interleaved, and write the report."""
    options = common.arguments("Forest on German credit, ordered against Misic.", rows=10, limit=60)
    rows = 2 if options.quick else options.rows
    ways = WAYS | (MORE_WAYS if options.all else {})
    settings = {"rows": rows, "limit_s": options.limit, "seed": common.SEED, "ways": list(ways)}
    task = common.load("german")
    model = common.fit(task, "forest5")
    people = common.rejected(task, model, rows)
    kept = {
        name: prepare(
            model,
            task.bunch.space,
            Settings(target=task.target, formulation=formulation, time_limit_s=options.limit),
            data=None if help_ == "nothing" else task.train,
        )
        for name, (formulation, help_) in ways.items()
    }
    _warm_up(kept["default"], people.iloc[[0]])
    journal = common.Journal("trees-quick" if options.quick else "trees", settings)
    asked = [(place, way) for place in range(len(people)) for way in common.rotated(list(ways), place)]
    for place, way in common.bar(asked, len(asked)):
        key = f"{place}/{way}"
        if key in journal.done:
            continue
        record = common.timed(partial(ask, kept[way], people.iloc[[place]], *ways[way], options.limit), options.limit)
        journal.add(key, {"row": str(people.index[place]), "way": way, **record})
    write(journal, settings, quick=options.quick)


def ask(prepared: Prepared, row: pd.DataFrame, formulation: str, help_: str, limit_s: float) -> dict[str, Any]:
    """Ask one way."""
    if help_ == "asked":
        return whole(prepared, row)
    if help_ == "nothing":
        return alone(prepared, row, formulation, limit_s)
    return with_start(prepared, row, limit_s, cutoff=help_ == "cutoff")


def _warm_up(prepared: Prepared, row: pd.DataFrame) -> None:
    """Import and compile what the first call would pay for."""
    search(prepared, row)
    alone(prepared, row, "ordered", 1.0)
    with_start(prepared, row, 1.0, cutoff=True)


def write(journal: common.Journal, settings: dict[str, Any], *, quick: bool) -> None:
    """Compare the ways, and keep what was found."""
    by_way = {way: [r for r in journal.records if r["way"] == way] for way in settings["ways"]}
    ratios: list[dict[str, Any]] = [
        {"way": a, "against": b, "what": what, "seconds": common.ratios(by_way[a], by_way[b], "seconds"),
         "cpu": common.ratios(by_way[a], by_way[b], "cpu")}
        for a, b, what in RATIOS
    ]  # fmt: skip
    totals = {
        "ratios": ratios,
        "greatest_relative_difference_of_proved_optima": common.disagreement(journal.records),
        "invalid_answers": sum(r.get("invalid", False) for r in journal.records),
    }
    record = {"settings": settings, "totals": totals, "records": journal.records}
    common.report("trees", TITLE, MEASURES, text_of, record, quick=quick)
    journal.close()


def text_of(record: dict[str, Any]) -> str:
    """Summarise by way, and the ratios between them."""
    settings, totals = record["settings"], record["totals"]
    by_way = {way: [r for r in record["records"] if r["way"] == way] for way in settings["ways"]}
    lines = []
    for way, part in by_way.items():
        counts = Counter("time-out" if r["timed_out"] else r["status"] for r in part)
        sizes = [r["size"] for r in part if r["size"]]
        size = "-"
        if sizes:
            parts = ("variables", "binaries", "rows")
            size = "/".join(str(round(float(np.median([s[part] for s in sizes])))) for part in parts)
        statuses = ", ".join(f"{status} {count}" for status, count in counts.items())
        seconds, cpu = [r["seconds"] for r in part], [r["cpu"] for r in part]
        invalid = sum(r.get("invalid", False) for r in part)
        times = [common.spread(seconds, 2), common.spread(cpu, 2), f"{sum(seconds):.1f}"]
        lines.append([way, statuses, invalid, size, *times])
    return (
        f"Forest of 100 trees of depth 5 on German credit, {settings['rows']} people whom it rejects, drawn with seed "
        f"{settings['seed']}; cost l1, HiGHS on one thread, {settings['limit_s']} s. All ways ask the same question of "
        "the same read model. The default is `explain`: it searches a start, narrows the program by its cost and "
        'checks the answer; all that is in its time. The other ways build and solve one program. "Alone" is the bare '
        "one, pruned of what actionability forbids. With the start the solver begins at the point that ceopt's "
        "search finds; with the cutoff what costs more is left out of the program as well. Both have the time of "
        "the search for the start in theirs. Ways take turns row by row. A time-out counts as the limit. CPU seconds "
        "are of this process; other jobs on the machine lengthen them less than wall seconds. Without a size, no "
        "program was stated.\n\n"
        + common.markdown_table(
            ["way", "statuses", "invalid", "variables/binaries/rows", "seconds: median / 90 % / worst",
             "CPU seconds", "sum of seconds"], lines)
        + "\n\n"
        + common.markdown_table(
            ["how many times faster", "than", "what is compared", "by medians", "by sums", "median of ratios",
             "CPU: by medians", "CPU: by sums"],
            [[r["way"], r["against"], r["what"], *(f"{v:.1f}" for v in r["seconds"].values()),
              *(f"{r['cpu'][k]:.1f}" for k in ("medians", "sums"))] for r in totals["ratios"]])
        + "\n\nProved optima differ by at most "
        + f"{totals['greatest_relative_difference_of_proved_optima']:.1e}, relatively."
    )  # fmt: skip


if __name__ == "__main__":
    main()

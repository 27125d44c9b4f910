"""What a case study prints: for each part its answers, what it proved, and the paper's values beside it."""

from __future__ import annotations

import argparse
import datetime as dt
import math
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shared import results
from shared.table import markdown
from tqdm import tqdm

import ceopt
from ce_ocl.figure import draw
from ce_ocl.loans import loans
from ce_ocl.study import Case, Found, Missed, Part, run, squares

__all__ = ["command", "page", "part_text"]

#: What decides the results of a case study.
MODULES = (
    "ceopt/search",
    "formulations/constraints",
    "formulations/costs",
)
#: Who takes a square with switches.
SOLVERS = ("auto", "highs", "scip", "gurobi")
MEASURES = {
    "validity": "validity",
    "categorical_proximity": "categorical proximity",
    "continuous_proximity": "continuous proximity",
    "sparsity": "sparsity",
    "categorical_diversity": "categorical diversity",
    "continuous_diversity": "continuous diversity",
    "sparsity_based_diversity": "sparsity-based diversity",
}


def command(script: str, about: str, make: Callable[[], Case], *, network: bool) -> None:
    """Run an example: its options, its parts, what it prints and writes."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--fast", action="store_true", help="made-up loans in the place of the data, nothing needed")
    parser.add_argument("--out", type=Path, help="write tables and figure to this folder")
    parser.add_argument("--solver", choices=SOLVERS, default="highs", help="what solves them (default: highs)")
    asked = parser.parse_args()
    if not asked.fast and not (Path(os.environ.get("CEOPT_DATA", "")) / "schema.json").is_file():
        sys.exit("Set CEOPT_DATA to the folder that holds schema.json and the data, or run with --fast.")
    if asked.out is not None:
        try:
            asked.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            parser.error(f"--out needs a folder, but {asked.out} is none: {error.strerror}.")
    case = loans(network=network) if asked.fast else make()
    bar = tqdm(case.parts, unit="part", file=sys.stderr, disable=asked.fast)
    tried = [_tried(case, part, asked.solver) for part in bar]
    found = [each for each in tried if isinstance(each, Found)]
    text = page(case, tried)
    print(text)
    if not found:
        sys.exit("No part was solved.")
    if asked.out is None:
        return
    figure = asked.out / f"{script}.png"
    last = tried[-1].part.letter
    shown = f"\n\n![Changes of parts A to {last}]({figure.name})" if _drawn(case, tried, figure) else ""
    made = f"{dt.datetime.now(tz=dt.UTC).date()}, python {platform.python_version()}, ceopt {version('ceopt')}"
    line = f"`python examples/papers/ce_ocl/{script}.py {' '.join(sys.argv[1:])}`, {made}, {found[0].result.solver}."
    origin = results.text_of(results.source(MODULES))
    parts = [f"# {about}", f"{line}{shown}", origin, text]
    (asked.out / f"{script}.md").write_text("\n\n".join(filter(None, parts)) + "\n", encoding="utf-8")


def _tried(case: Case, part: Part, solver: str) -> Found | Missed:
    """Solve a part; one that the solver or its licence does not take is no reason to lose the others."""
    try:
        return run(case, part, solver=solver)
    except ceopt.CeoptError as error:
        return Missed(part=part, why=str(error))


def page(case: Case, tried: Sequence[Found | Missed]) -> str:
    """Return everything as Markdown."""
    return "\n\n".join([_about(case, tried), *(part_text(case, each) for each in tried)])


def _about(case: Case, tried: Sequence[Found | Missed]) -> str:
    train, test = case.table.auc(case.model)
    paper = case.published.get("auc")
    known = f" (released: {paper[0]:.4f} and {paper[1]:.4f})" if paper else ""
    follows = any(
        answer.why(name) != "action"
        for each in tried
        if isinstance(each, Found)
        for answer in each.result
        for name in answer.changed
    )
    return (
        f"{case.title}: {len(case.table.data)} rows, {len(case.table.numbers)} numbers, {len(case.table.levels)} "
        f"categories; {type(case.model[-1]).__name__} with an area under the curve of {train:.4f} on the training and "
        f"{test:.4f} on the test part{known}. The person is row {case.row}, counted from 0, number "
        f"{case.table.refused(case.model).index(case.row) + 1} of the test rows that the model puts in class 0. "
        f"A letter (a, b, c) is an answer; a column that is not listed stays;{' † is a consequence;' * follows} of "
        "what is printed in the paper only numbers are listed." + f"\n\n{case.note}" * bool(case.note)
    )


def part_text(case: Case, found: Found | Missed) -> str:
    """Return one part: its answers, their measures, and what is proved."""
    part = found.part
    lines = [f"## Part {part.letter}: {part.word}", f"Adds {part.adds}."]
    if isinstance(found, Missed):
        return "\n\n".join([*lines, f"Part {part.letter}: not solved: {found.why}"])
    result = found.result
    if found.emptied:
        lines.append(f"With the hull as it is: {found.emptied}")
    if len(result):
        lines += [_answers(case, found), _measures(found, case.published.get("parts", {}).get(part.letter, {}))]
    words = [f"{result.status!s} by {result.solver} in {found.seconds:.1f} s", result.reason.rstrip(".")]
    lines.append("; ".join(word for word in words if word) + ".")
    if part.beside:
        lines.append(f"Beside the paper: {part.beside}")
    return "\n\n".join(lines)


def _answers(case: Case, found: Found) -> str:
    """Return the table of changes, in raw units, and what each answer costs."""
    printed = case.published.get("parts", {}).get(found.part.letter, {}).get("printed", {})
    answers = list(found.result)
    names = [name for name in case.table.data if any(name in each.changed for each in answers)]
    names += [name for name in case.table.data if name not in names and any(name in row for row in printed.values())]
    head = ["column", "factual", *"abc"[: len(answers)], *(f"printed {letter}" for letter in printed)]
    rows = []
    for name in names:
        cells = [_changed(each, name) for each in answers]
        paper = [f"{row[name]:.2f}" if name in row else "" for row in printed.values()]
        rows.append([name, _value(case.person[name].iloc[0]), *cells, *paper])
    blank, both = [""] * len(printed), [squares(case, each) for each in answers]
    rows += [
        ["cost", "", *(f"{each.cost:.8g}" if each.cost < 1 else f"{each.cost:.6f}" for each in answers), *blank],
        ["gap proved", "", *("-" if each.gap is None else f"{each.gap:.0e}" for each in answers), *blank],
        ["squared l2, a category twice", "", *(f"{two:.6f}" for _, two in both), *blank],
        ["squared l2, a category once", "", *(f"{one:.6f}" for one, _ in both), *blank],
    ]
    return markdown(head, rows)


def _changed(answer: Any, name: str) -> str:
    if name not in answer.changed:
        return ""
    return _value(answer.values[name]) + ("" if answer.why(name) == "action" else " †")


def _value(value: Any) -> str:
    return f"{value + 0.0:.2f}".removesuffix(".00") if isinstance(value, float) else str(value)


def _measures(found: Found, paper: Mapping[str, Any]) -> str:
    """Return the suite's measures and the program's objective, the paper's below."""
    head = ["", *MEASURES.values(), "objective at margin 0", "bound"]
    ours = [*(_number(found.metrics.get(name)) for name in MEASURES), _precise(found.objective), _precise(found.bound)]
    rows = [["ceopt", *ours]]
    if paper:
        theirs = [*(_number(paper.get(name)) for name in MEASURES), _precise(paper.get("objective")), ""]
        rows.append(["published", *theirs])
    return markdown(head, rows)


def _number(value: Any) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.2f}"


def _precise(value: Any) -> str:
    return "-" if value is None else f"{value:.12g}"


def _drawn(case: Case, tried: list[Found | Missed], path: Path) -> bool:
    try:
        draw(case, tried, path)
    except ImportError:
        print('The figure needs matplotlib: pip install ".[plot]".')
        return False
    return True

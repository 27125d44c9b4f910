"""Output of a command: results as tables on standard output, notes on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ceopt.solution.tables import rows
from ceopt.solvers.errors import counted, printable
from ceopt.status import Status

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.solution.solution_set import SolutionSet

__all__ = ["note", "print_answers", "print_frame", "print_line", "print_results", "print_solvers"]


def note(text: str) -> None:
    """Write one line or, where the parts of a text were escaped before, several to standard error."""
    sys.stderr.write(printable(text, keep="\n") + "\n")
    sys.stderr.flush()


def print_line(text: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(f"{printable(text)}\n")


def print_results(results: Iterable[SolutionSet]) -> None:
    """Write one line of JSON per result; who reads it gets every text as it is."""
    sys.stdout.writelines(f"{printable(result.to_json(), as_json=True)}\n" for result in results)


def print_answers(results: Sequence[SolutionSet], space: FeatureSpace) -> None:
    """Print one line per change that a person would make, then one per person without an answer."""
    table = _table()
    for title in ("row", "answer", "column"):
        table.add_column(title, overflow="fold")
    for title in ("from", "to", "cost"):
        table.add_column(title, overflow="fold", justify="right")
    without = []
    for result in results:
        who = str(result.query_id)
        for rank, name, old, new, _, cost, _ in rows(result):
            unit = space[name].unit
            column = f"{name} ({unit})" if unit else name
            table.add_row(*map(_text, (who, rank, column, old, new, cost)))
            who = ""
        if len(result):
            table.add_section()
        else:
            without.append(result)
    console = Console()
    if table.row_count:
        console.print(table)
    for result in without:
        status = str(result.status).replace("_", " ")
        console.print(_text(f"row {result.query_id}: {status}. {result.reason}".strip()), soft_wrap=True)
    verified = sum(answer.verified for result in results for answer in result)
    if verified:
        count = counted(verified, "answer")
        console.print(
            _text(f"{count}, each predicted again by the model itself and held against every rule."), soft_wrap=True
        )
    for status, said in ((Status.OPTIMAL, "Proved"), (Status.FEASIBLE, "Not proved")):
        people = ", ".join(str(result.query_id) for result in results if result.status is status)
        if people:
            console.print(_text(f"{said} to be the least change: row {people}."), soft_wrap=True)


def print_solvers(frame: pd.DataFrame) -> None:
    """Print one line per solver, and below why one cannot be used, or up to which size."""
    table = _table()
    notes = []
    for title in ("solver", "version", "solves", "by cuts"):
        table.add_column(title, overflow="fold")
    for row in frame.to_dict("records"):
        cuts = row["by_cuts"].split(", ")
        itself = [name for name in row["supports"].split(", ") if name not in cuts]
        itself += ["nonconvex"] * row["nonconvex"]
        version = row["version"] if row["installed"] else "-"
        table.add_row(*map(_text, (row["solver"], version, " ".join(itself), " ".join(cuts))))
        if row["why_not"]:
            notes.append(f"{row['solver']}: {row['why_not']}")
        elif row["limits"]:
            notes.append(f"{row['solver']}: licence for {row['limits']}.")
    usable = ", ".join(frame.loc[frame["licensed"], "solver"])
    notes.append(f"Can be used here: {usable or 'none'}. Without a name, the first that solves the program does.")
    console = Console()
    console.print(table)
    for line in notes:
        console.print(_text(line), soft_wrap=True)


def print_frame(frame: pd.DataFrame) -> None:
    """Print a frame as a table."""
    table = _table()
    for name in frame.columns:
        table.add_column(_text(str(name)), overflow="fold")
    for row in frame.itertuples(index=False):
        table.add_row(*(_text(_cell(cell)) for cell in row))
    Console().print(table)


def _cell(value: object) -> str:
    """Return a value as text, truth values as yes and no."""
    if value is True:
        return "yes"
    if value is False:
        return "no"
    return str(value)


def _text(text: str) -> Text:
    """Return data as they are shown: neither a terminal nor Rich finds anything in them to obey."""
    return Text(printable(text))


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False)

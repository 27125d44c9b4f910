"""The page of the tables: what is reached, why the rest is not, every table, and misprints."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from shared.table import markdown

from leofante_potyka import causes, protocol
from leofante_potyka.found import BY_DISTANCE, DRAWN, GRID, MEASURES, NAMES, NEAR, NOISE, Found, listed
from leofante_potyka.runs import DRAWS, TABLES, Table

__all__ = ["Found", "text_of"]

#: A mean is the release's if it is within so much of it, relatively.
SAME = 1e-6
HEAD = ("norm", "row", "pairs", "per row", "valid", *NAMES.values(), "CPU ms")


def text_of(found: Found) -> str:
    """Return everything that the page says below its head."""
    parts = []
    if found.has_weights:
        parts += [
            _reached(found),
            "## What the release does",
            causes.threshold(found),
            causes.copies(found),
            "## What differs in the data",
            causes.missing_rows(found),
            causes.networks(found),
        ]
    elif "loans" not in found.names:
        parts.append("The networks are trained here, so that only trends agree with the paper's.")
    for table, name in itertools.product(sorted(TABLES, key=lambda table: table.number), found.names):
        parts.append(f"## {table.title}: {name}\n\n{markdown(HEAD, _table_rows(found, table, name))}")
    if found.has_weights:
        parts += ["## Misprints", _misprints(found)]
    return "\n\n".join(parts)


# ---- what is reached -------------------------------------------------------------------------------------------------
def _ratio(found: Found, table: Table, name: str, norm: str, measure: str) -> float:
    return found.mean(table, name, norm, NOISE, measure) / float(found.release[table.number, name, norm][measure])


def _reached(found: Found) -> str:
    """Say how many means are the release's, and which rows of tables 6 and 8 are within a tenth."""
    cells = list(itertools.product(GRID, found.complete, protocol.NORMS, MEASURES))
    same = sum(abs(_ratio(found, *cell) - 1.0) < SAME for cell in cells)
    printed, close = _printed_tables(found)
    lines = []
    near, far = [], []
    for table, name in itertools.product(BY_DISTANCE, found.names):
        ratios = [_ratio(found, table, name, "l1", measure) for measure in MEASURES]
        is_near = all(abs(ratio - 1.0) <= NEAR for ratio in ratios)
        (near if is_near else far).append(f"table {table.number}, {name}")
        shown = []
        for measure in MEASURES:
            mine = found.mean(table, name, "l1", NOISE, measure)
            others = found.draws(table, name, "l1", "noise", measure)
            theirs = found.release[table.number, name, "l1"][measure]
            shown.append(f"{mine:.4f} ({min(others):.4f} to {max(others):.4f}) / {theirs:.4f}")
        lines.append([str(table.number), name, *shown, "yes" if is_near else "**no**"])
    head = ("table, l1", "data", *(f"{name}, ours / release's" for name in NAMES.values()), "all within 10 %")
    return (
        f"With the released networks, data and noise, {same} of the {len(cells)} means behind tables 5 to 8 "
        f"({', '.join(found.complete)}; both norms; four measures) are those of the release's result files, to six "
        f"digits; of tables 9 and 10 {close} of {len(printed)} are within 0.01 of those printed, misprints put right. "
        f"The l1 rows of tables 6 and 8 that are within {100 * NEAR:.0f} % in every measure: {listed(near)}. Not: "
        f"{listed(far)}, of which rows are missing; what they do is measured below. In brackets the range over "
        f"{DRAWS} draws of the noise, of which the first is the release's.\n\n" + markdown(head, lines)
    )


def _printed_tables(found: Found) -> tuple[list[float], int]:
    """Return how far the means of tables 9 and 10 are from what is printed, and how many are near."""
    wrong = {
        (row["table"], row["data"], row["norm"], row["method"], row["metric"]): row["released"] for row in found.differs
    }
    apart = []
    for table, name, norm, measure in itertools.product(TABLES, found.complete, protocol.NORMS, MEASURES):
        if table.is_grid:
            continue
        key = (table.number, name, norm, "ours")
        theirs = wrong.get((*key, measure), found.paper[key][measure])[0]
        apart.append(abs(found.mean(table, name, norm, NOISE, measure) - theirs))
    return apart, sum(one < 0.01 + 1e-9 for one in apart)


# ---- tables ----------------------------------------------------------------------------------------------------------
def _table_rows(found: Found, table: Table, name: str) -> list[list[str]]:
    lines = []
    for norm in protocol.NORMS:
        one = found.get(table, name, norm, NOISE)
        if one is not None:
            lines.append([norm, "ceopt, released network", *_cells(one)])
            lines.append([norm, f"ceopt, {DRAWS} draws of noise", *_drawn(found, table, name, norm, "noise")])
        text = found.get(table, name, norm, "paper")
        if text is not None:
            lines.append([norm, "ceopt, as the text has it", *_cells(text)])
        networks = [found.get(table, name, norm, f"network {seed}") for seed in range(DRAWS)]
        if all(networks):
            lines.append([norm, f"ceopt, {DRAWS} networks", *_drawn(found, table, name, norm, "network")])
        elif networks[0] is not None:
            lines.append([norm, "ceopt, a network", *_cells(networks[0])])
        file = found.release.get((table.number, name, norm))
        if file is not None:
            lines.append([norm, "release's file", "50", "", "1.00", *(f"{file[m]:.4f}" for m in MEASURES), ""])
        for method in ("ours", "DiCE"):
            row = found.paper.get((table.number, name, norm, method))
            if row is not None:
                lines.append([norm, f"paper, {method}", *_printed(row)])
    return lines


def _cells(run: Mapping[str, Any]) -> list[str]:
    """Return a run as cells: mean and standard deviation over pairs."""
    valid = 1.0 - run["invalid"] / run["answers"] if run["answers"] else 0.0
    shown = []
    for measure in MEASURES:
        mean, spread = run["measures"].get(measure, (None, None))
        shown.append("-" if mean is None else f"{mean:.4f} ± {spread:.4f}")
    return [str(run["pairs"]), f"{run['per_row']:.2f}", f"{valid:.3f}", *shown, f"{1000 * run['cpu_s']:.1f}"]


def _drawn(found: Found, table: Table, name: str, norm: str, kind: str) -> list[str]:
    """Return runs of a kind as cells: mean and standard deviation of their means."""
    runs = [found.get(table, name, norm, f"{kind} {draw}") for draw in DRAWN]
    runs = [run for run in runs if run is not None]
    answers = sum(run["answers"] for run in runs)
    invalid = sum(run["invalid"] for run in runs)
    shown = []
    for measure in MEASURES:
        values = [run["measures"][measure][0] for run in runs if measure in run["measures"]]
        shown.append(f"{np.mean(values):.4f} ± {np.std(values):.4f}" if values else "-")
    per_row = float(np.mean([run["per_row"] for run in runs]))
    pairs = sum(run["pairs"] for run in runs)
    valid = 1.0 - invalid / answers if answers else 0.0
    return [str(pairs), f"{per_row:.2f}", f"{valid:.3f}", *shown, ""]


def _printed(row: Mapping[str, Any]) -> list[str]:
    """Return a row of the paper's as cells; not every spread is printed."""
    shown = []
    for measure in MEASURES:
        mean, spread = row[measure]
        shown.append(f"{mean:.2f}" if spread is None else f"{mean:.2f} ± {spread:.2f}")
    return ["", "", f"{row['validity'][0]:.2f}", *shown, ""]


def _misprints(found: Found) -> str:
    lines = [
        f"- table {row['table']}, {row['data']}, {row['norm']}, {row['method']}, {row['metric']}: "
        f"printed {row['printed']}, released {row['released']}"
        for row in found.differs
    ]
    for (table, name, norm), file in found.release.items():
        row = found.paper[table, name, norm, "ours"]
        for measure in MEASURES:
            printed = row[measure][0]
            if abs(printed - file[measure]) >= 0.01:
                lines.append(
                    f"- table {table}, {name}, {norm}, ours, {measure}: printed {printed}, released {file[measure]:.6f}"
                )
    return "The release's result files contradict these printed values.\n\n" + "\n".join(lines)

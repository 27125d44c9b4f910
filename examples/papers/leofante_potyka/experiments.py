"""Robustness through diversity (Leofante & Potyka, AAAI 2024): the paper's tables and figure, done again.

Set CEOPT_DATA to the folder of data and CEOPT_NN003 to the file of the authors' weights; without the weights networks
are trained. Where dice-ml is installed it is asked the same (``pip install dice-ml==0.12``). Results are kept as they
come: a run that was interrupted goes on.

Run: python examples/papers/leofante_potyka/experiments.py [--fast] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import datetime as dt
import itertools
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from ceopt.diverse import DiverseRobustExplainer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the papers find one another and what they share

from shared.dice import is_installed
from shared.journal import Journal
from shared.table import markdown

from leofante_potyka import dice, protocol

MEASURES = protocol.MEASURES


@dataclass(frozen=True, slots=True)
class Table:
    """One of the paper's tables: its filter, its minimisation, and which rows it is about."""

    number: int
    diversity: str
    tolerance: float | None
    rows: range

    @property
    def title(self) -> str:
        """What the table holds."""
        step = "no minimisation" if self.tolerance is None else f"gamma = {self.tolerance}"
        which = "test" if self.rows == protocol.TEST_ROWS else "validation"
        return f"Table {self.number}: {self.diversity}, beta = 0.5, {step}, {which} rows"


TABLES = (
    Table(9, "angle", 0.1, protocol.TEST_ROWS),
    Table(10, "angle", None, protocol.TEST_ROWS),
    Table(6, "distance", 0.1, protocol.VALIDATION_ROWS),
    Table(8, "distance", None, protocol.VALIDATION_ROWS),
)
#: The table whose figure is drawn and that dice-ml is asked about, for that many rows.
MAIN, DICE_ROWS, DICE_LIMIT_S = TABLES[0], 5, 60


# ---- runs ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Setting:
    """A data set and what decides on it."""

    split: protocol.Split
    model: Any
    alpha: int
    variant: str

    @property
    def accuracy(self) -> float:
        """Share of the test rows that the network knows."""
        return float(np.mean(self.model.predict(self.split.test) == self.split.test_labels))


@cache
def setting(name: str, source: str) -> Setting:
    """Return a data set with the released network ("released"), or with one that is trained ("retrained")."""
    if name == "loans":
        split = protocol.loans()
        return Setting(split, protocol.retrained(split, 0, epochs=5), 50, "paper")
    split, file = protocol.load(name), protocol.network_file()
    if source == "released" and file is not None:
        return Setting(split, protocol.released(file, name), protocol.ALPHA[name], "released")
    return Setting(split, protocol.retrained(split, 0), protocol.ALPHA[name], "paper")


def ours(name: str, source: str, table: Table, norm: str) -> dict[str, Any]:
    """Return measures over all pairs; the time is that of the first explanation, as in the paper."""
    known = setting(name, source)
    explainer = DiverseRobustExplainer(
        distance=norm,
        alpha=known.alpha,
        diversity=table.diversity,
        beta=0.5,
        tolerance=table.tolerance,
        variant=known.variant,
    ).fit(known.split.train)
    return over_pairs(
        known, table.rows, (norm,), lambda row, label, _: protocol.answers(explainer, known.model.predict, row, label)
    )


def theirs(name: str, method: str, rows: range) -> dict[str, Any]:
    """Return the same of a method of dice-ml, which needs a network of scikit-learn; in both norms at once."""
    known = setting(name, "retrained")
    asked = dice.Dice(known.split, known.model)
    return over_pairs(
        known,
        rows,
        protocol.NORMS,
        lambda row, _, seed: asked.ask(method, row, seed=seed, limit_s=DICE_LIMIT_S)[1],
    )


def over_pairs(
    known: Setting,
    rows: range,
    norms: tuple[str, ...],
    ask: Callable[[np.ndarray, int, int], np.ndarray],
) -> dict[str, Any]:
    """Ask for each row and its copies, and measure."""
    found: dict[str, list[dict[str, float]]] = {norm: [] for norm in norms}
    seconds, counts, invalid, seed = [], [], 0, 0
    for pair in protocol.pairs(known.split, known.model.predict, rows):
        began = time.process_time()
        first = ask(pair.row, pair.label, seed)
        seconds.append(time.process_time() - began)
        sets = [first, *(ask(copy, pair.label, seed + k + 1) for k, copy in enumerate(pair.copies))]
        seed += len(sets)
        counts += [len(answers) for answers in sets]
        invalid += sum(int((known.model.predict(answers) == pair.label).sum()) for answers in sets if len(answers))
        for norm in norms:
            found[norm] += [
                protocol.measured(pair.row, first, other, norm) for other in sets[1:] if len(first) and len(other)
            ]
    return {
        "measures": {norm: protocol.summary(part) for norm, part in found.items()},
        "pairs": len(found[norms[0]]),
        "answers": sum(counts),
        "per_row": float(np.mean(counts)) if counts else 0.0,
        "invalid": invalid,
        "cpu_s": float(np.median(seconds)) if seconds else 0.0,
        "accuracy": known.accuracy,
    }


# ---- what is wanted --------------------------------------------------------------------------------------------------
def work(names: tuple[str, ...], source: str, *, fast: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Give every result that is wanted, by its key, and how it is made."""
    tables = TABLES[:2] if fast else TABLES
    for name in names:
        for table in tables:
            rows = Table(table.number, table.diversity, table.tolerance, range(3)) if fast else table
            for norm in protocol.NORMS:
                yield f"{name}/{table.number}/{norm}", lambda n=name, t=rows, p=norm: ours(n, source, t, p)
        if is_installed() and not fast:
            rows = MAIN.rows[:DICE_ROWS]
            few = Table(MAIN.number, MAIN.diversity, MAIN.tolerance, rows)
            for norm in protocol.NORMS:
                yield f"{name}/retrained/{norm}", lambda n=name, p=norm, t=few: ours(n, "retrained", t, p)
            for method in dice.METHODS:
                yield f"{name}/{method}", lambda n=name, m=method, r=rows: theirs(n, m, r)


# ---- tables and figure -----------------------------------------------------------------------------------------------
HEAD = ("norm", "method", "pairs", "per row", "valid", "k-distance", "k-diversity", "sum", "max", "CPU ms")


def cells(found: Mapping[str, Any], norm: str) -> list[str]:
    """Return a result as cells."""
    valid = 1.0 - found["invalid"] / found["answers"] if found["answers"] else 0.0
    measures = found["measures"][norm]
    shown = [f"{measures[name][0]:.4f} ± {measures[name][1]:.4f}" if name in measures else "-" for name in MEASURES]
    return [str(found["pairs"]), f"{found['per_row']:.2f}", f"{valid:.3f}", *shown, f"{1000 * found['cpu_s']:.1f}"]


def printed(row: Mapping[str, Any]) -> list[str]:
    """Return a row of the paper's as cells; not every spread is printed."""
    values = [row[name] for name in MEASURES]
    shown = [f"{mean:.2f}" if spread is None else f"{mean:.2f} ± {spread:.2f}" for mean, spread in values]
    return ["", "", f"{row['validity'][0]:.2f}", *shown, ""]


def page(kept: Mapping[str, Any], names: tuple[str, ...], source: str) -> str:
    """Return all tables as Markdown."""
    paper = protocol.published()
    parts = []
    for table in TABLES:
        for name in names:
            if f"{name}/{table.number}/l1" not in kept:
                continue
            lines = []
            for norm in protocol.NORMS:
                lines.append([norm, f"ceopt, {source}", *cells(kept[f"{name}/{table.number}/{norm}"], norm)])
                lines += [
                    [norm, f"paper, {row['method']}", *printed(row)]
                    for row in paper["rows"]
                    if (row["table"], row["data"], row["norm"]) == (table.number, name, norm)
                ]
            parts.append(f"## {table.title}: {name}\n\n{markdown(HEAD, lines)}")
    wrong = [
        f"- table {row['table']}, {row['data']}, {row['norm']}, {row['method']}, {row['metric']}: "
        f"printed {row['printed']}, released {row['released']}"
        for row in paper["differs"]
    ]
    parts.append("## Misprints\n\nThe released result files contradict these printed values.\n\n" + "\n".join(wrong))
    lines = []
    for name in names:
        for norm in protocol.NORMS if f"{name}/kdtree" in kept else ():
            mine = kept[f"{name}/retrained/{norm}"]
            lines.append([name, norm, "ceopt", *cells(mine, norm), "1"])
            for method in dice.METHODS:
                other = kept[f"{name}/{method}"]
                ratio = f"{other['cpu_s'] / mine['cpu_s']:.1f}"
                lines.append([name, norm, f"dice-ml {method}", *cells(other, norm), ratio])
    if lines:
        about = (
            f"Beside dice-ml {version('dice-ml')}, with a network that is trained here, {DICE_ROWS} rows and their "
            "copies, a fresh seed per call; times as ratios of CPU seconds. `benchmarks/diverse.py` asks more."
        )
        parts.append(f"## dice-ml\n\n{about}\n\n{markdown(('data', *HEAD, 'times ours'), lines)}")
    return "\n\n".join(parts)


def draw(kept: Mapping[str, Any], names: tuple[str, ...], path: Path) -> None:
    """Draw Table 9: a dot for what was measured, with one standard deviation, and marks for what is published."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    titles = {
        "k_distance": "k-distance",
        "set_distance_sum": "set distance, sum",
        "set_distance_max": "set distance, max",
    }
    colours, heights = {"l1": "#1b6ca8", "l2": "#c1541b"}, {"l1": -0.16, "l2": 0.16}
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(10, 0.9 + 0.62 * len(names)), layout="constrained")
        axes = figure.subplots(1, len(titles), sharey=True)
        for ax, (measure, title) in zip(axes, titles.items(), strict=True):
            for (i, name), norm in itertools.product(enumerate(names), protocol.NORMS):
                mean, spread = kept[f"{name}/{MAIN.number}/{norm}"]["measures"][norm][measure]
                height, colour = i + heights[norm], colours[norm]
                ax.errorbar(mean, height, xerr=spread, fmt="o", ms=5, lw=1, color=colour)
                if name in protocol.DATA_SETS:
                    ax.plot(corrected(name, norm, "ours", measure), height, "x", ms=6, color="black", zorder=5)
                    ax.plot(
                        corrected(name, norm, "DiCE", measure), height, "D", ms=6, color=colour, mfc="none", zorder=5
                    )
            ax.set(title=title, yticks=range(len(names)), yticklabels=names, xlim=(0, None))
            ax.grid(axis="x", lw=0.4, color="0.85")
        axes[0].invert_yaxis()
        marks = [
            *(axes[0].plot([], [], "o", color=colours[norm], label=f"ceopt, {norm}")[0] for norm in protocol.NORMS),
            axes[0].plot([], [], "x", color="black", label="published")[0],
            axes[0].plot([], [], "D", color="0.4", mfc="none", label="published, DiCE")[0],
        ]
        figure.legend(handles=marks, loc="outside lower center", ncols=4, frameon=False)
        figure.savefig(path, dpi=150)


def corrected(name: str, norm: str, method: str, measure: str) -> float:
    """Return a published mean of Table 9, of the released result files where the printed one is a misprint."""
    paper, key = protocol.published(), (MAIN.number, name, norm, method)
    of = {(row["table"], row["data"], row["norm"], row["method"]): row for row in paper["rows"]}
    wrong = {(*(row[k] for k in ("table", "data", "norm", "method")), row["metric"]): row for row in paper["differs"]}
    found = wrong[*key, measure]["released"] if (*key, measure) in wrong else of[key][measure]
    return float(found[0])


# ---- the whole -------------------------------------------------------------------------------------------------------
def main(*, fast: bool, out: Path | None) -> None:
    has_data = (Path(os.environ.get("CEOPT_DATA", "")) / "schema.json").is_file()
    names, source = (protocol.DATA_SETS if has_data else ("loans",)), "retrained"
    if fast:
        names = ("loans",)
    if not has_data:
        print("CEOPT_DATA names no folder of data: the tables are of the loans that ceopt makes up.")
    elif protocol.network_file() is None:
        print("CEOPT_NN003 names no file of the released weights: networks are trained, and only trends agree.")
    else:
        source = "released"
    if not is_installed():
        print("dice-ml is not installed, and is left out.")
    source = "retrained" if names == ("loans",) else source
    kept = None if out is None else out / "leofante_potyka.partial.jsonl"
    journal = Journal(kept, ("ceopt", "numpy", "scikit-learn"), {"network": str(protocol.network_file())})
    todo = list(work(names, source, fast=fast or not has_data))
    for key, make in tqdm(todo, unit="result", file=sys.stderr, disable=fast):
        journal.result(key, make)
    text = page(journal.kept, names, source)
    print(text)
    if out is None:
        return
    about = f"{dt.datetime.now(tz=dt.UTC).date()}, python {platform.python_version()}, ceopt {version('ceopt')}"
    title = "# Robustness through diversity: the tables of Leofante & Potyka (2024)"
    command = "python examples/papers/leofante_potyka/experiments.py " + " ".join(sys.argv[1:])
    figure = out / "leofante_potyka.png"
    out.mkdir(parents=True, exist_ok=True)
    shown = (
        f"\n\n![Table {MAIN.number}, misprints corrected]({figure.name})" if _drawn(journal.kept, names, figure) else ""
    )
    (out / "leofante_potyka.md").write_text(f"{title}\n\n`{command}`, {about}.{shown}\n\n{text}\n", encoding="utf-8")
    if journal.path is not None:
        journal.path.unlink(missing_ok=True)


def _drawn(kept: Mapping[str, Any], names: tuple[str, ...], path: Path) -> bool:
    try:
        draw(kept, names, path)
    except ImportError:
        print('The figure needs matplotlib: pip install ".[plot]".')
        return False
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fast", action="store_true", help="three rows of made-up loans, nothing else needed")
    parser.add_argument("--out", type=Path, help="write tables, figure and journal to this folder")
    options = parser.parse_args()
    main(fast=options.fast, out=options.out)

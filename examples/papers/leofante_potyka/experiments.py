"""Robustness through diversity (Leofante & Potyka, AAAI 2024): the paper's tables and figure, done again.

Set CEOPT_DATA to the folder of data and CEOPT_NN003 to the file of the authors' weights; without the weights networks
are trained, and only they are asked. ``benchmarks/diverse.py`` asks dice-ml the same. Results are kept as they come: a
run that was interrupted goes on.

Run: python examples/papers/leofante_potyka/experiments.py [--fast] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the papers find one another and what they share

from shared import results
from shared.journal import Journal

from leofante_potyka import figure, protocol, report, runs

NAME = "leofante_potyka"
MEASURES = (
    "ceopt/diverse",
    "ceopt/metrics",
    "examples/papers/leofante_potyka/protocol.py",
    "examples/papers/leofante_potyka/runs.py",
)


def main(*, fast: bool, networks: list[str] | None, out: Path | None) -> None:
    has_data = (Path(os.environ.get("CEOPT_DATA", "")) / "schema.json").is_file() and not fast
    has_weights = has_data and protocol.network_file() is not None
    names = protocol.DATA_SETS if has_data else ("loans",)
    if not has_data and not fast:
        print("CEOPT_DATA names no folder of data: the tables are of the loans that ceopt makes up.")
    if has_data and not has_weights:
        print("CEOPT_NN003 names no file of the released weights: networks are trained, and only trends agree.")
    path = None if out is None else out / f"{NAME}.partial.jsonl"
    journal = Journal(path, ("ceopt", "numpy", "scikit-learn"), {"network": str(protocol.network_file())})
    todo = list(runs.wanted(names, has_weights=has_weights, fast=fast, networks=networks))
    for key, make in tqdm(todo, unit="result", file=sys.stderr, disable=fast):
        journal.result(key, make)
    found = {key: journal.kept[key] for key, _ in todo}
    rows = {name: len(protocol.of_release(name).train) for name in names} if has_weights else {}
    of_main = report.Found(found, names, rows).of_main
    has_figure = out is not None and figure.draw(of_main, names, out / f"{NAME}.png")
    record = results.kept(
        {
            "command": "python examples/papers/leofante_potyka/experiments.py " + " ".join(sys.argv[1:]),
            "about": f"{dt.datetime.now(tz=dt.UTC).date()}, python {platform.python_version()}, "
            f"ceopt {version('ceopt')}, numpy {version('numpy')}, scikit-learn {version('scikit-learn')}",
            **results.source(MEASURES),
            "figure": f"{NAME}.png" if has_figure else None,
            "data": names,
            "rows": rows,
            "results": found,
        }
    )
    text = page(record)
    print(text)
    if out is None:
        return
    (out / f"{NAME}.md").write_text(text, encoding="utf-8")
    results.write(out / f"{NAME}.json", record)
    if journal.path is not None:
        journal.path.unlink(missing_ok=True)


def page(record: Mapping[str, Any]) -> str:
    """Return the page of a record: how it was made, and what came out."""
    parts = [
        "# Robustness through diversity: the tables of Leofante & Potyka (2024)",
        f"`{record['command'].strip()}`, {record['about']}.",
        results.text_of(record),
        f"![Table {runs.MAIN.number}, misprints corrected]({record['figure']})" if record["figure"] else "",
        report.text_of(report.Found(record["results"], record["data"], record["rows"])),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fast", action="store_true", help="three rows of made-up loans, nothing else needed")
    parser.add_argument("--networks", nargs="+", choices=protocol.DATA_SETS, help="train networks for these data only")
    parser.add_argument("--out", type=Path, help="write tables, figure and journal to this folder")
    options = parser.parse_args()
    main(fast=options.fast, networks=options.networks, out=options.out)

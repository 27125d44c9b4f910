"""CE-OCL (Maragno, Roeber & Birbil 2022), tables 2 and 3 done again: six kinds of models on four data sets.

Set CEOPT_DATA to the folder of data; without it, loans that ceopt makes up are explained. Where dice-ml is
installed it is asked the same (``pip install dice-ml==0.12``). Results are kept as they come: a run that was
interrupted goes on.

Run: python examples/papers/ce_ocl/comparison.py [--fast] [--only DATASET] [--jobs N] [--out FOLDER]
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the papers find one another and what they share

from shared import results
from shared.dice import is_installed

from ce_ocl import comparison_figure as figure
from ce_ocl import comparison_report as report
from ce_ocl import comparison_run as asking
from ce_ocl.comparison_cases import DATA_SETS
from ce_ocl.comparison_models import KINDS

NAME = "ce_ocl_comparison"
#: What decides the results.
MEASURES = (
    "ceopt/search",
    "ceopt/metrics",
    "formulations",
    "solvers/highs.py",
    "solvers/pool",
    "examples/papers/ce_ocl/comparison_asking.py",
    "examples/papers/ce_ocl/comparison_cases.py",
)


def main(*, fast: bool, only: str | None, jobs: int, out: Path | None) -> None:
    has_data = (Path(os.environ.get("CEOPT_DATA", "")) / "schema.json").is_file()
    if not has_data:
        print("CEOPT_DATA names no folder of data: the loans are made up by ceopt.")
    names = ("loans",) if fast or not has_data else (only,) if only else DATA_SETS
    kinds = ("logistic", "tree", "forest") if fast else tuple(KINDS)
    stem = NAME + ("_loans" if names == ("loans",) else f"_{only}" if only else "")
    peer = version("dice-ml") if is_installed() and not fast else None
    journal = asking.opened(None if out is None else out / f"{stem}.partial.jsonl", peer)
    asking.run([f"{name}/{kind}" for name in names for kind in kinds], journal, jobs, quiet=fast)
    asking.run(asking.questions(names, kinds, with_dice=peer is not None), journal, jobs, quiet=fast)
    sets = (*report.OURS, report.CAUSE)
    missed = report.exceptions(journal.kept, names, sets)
    others = [key for name, kind in missed for key in asking.runners_up(name, kind, journal)]
    asking.run(others, journal, jobs, quiet=fast)
    has_figure = out is not None and figure.draw(journal.kept, names, kinds, out / f"{stem}.png")
    record = results.kept(
        {
            "command": "python examples/papers/ce_ocl/comparison.py " + " ".join(sys.argv[1:]),
            "about": f"{dt.datetime.now(tz=dt.UTC).date()}, python {platform.python_version()}, "
            f"ceopt {version('ceopt')}",
            **results.source(MEASURES),
            "figure": f"{stem}.png" if has_figure else None,
            "data": names,
            "kinds": kinds,
            "peer": peer,
            "models": {key: value for key, value in journal.kept.items() if isinstance(value, list)},
            "results": report.briefly({key: value for key, value in journal.kept.items() if isinstance(value, dict)}),
        }
    )
    text = page(record)
    print(text)
    if out is None:
        return
    (out / f"{stem}.md").write_text(text, encoding="utf-8")
    results.write(out / f"{stem}.json", record)
    if journal.path is not None:
        journal.path.unlink(missing_ok=True)


def page(record: Mapping[str, Any]) -> str:
    """Return the tables of what was kept, and how they were made."""
    title = "# CE-OCL: the comparison of tables 2 and 3 of Maragno, Roeber & Birbil (2022)"
    shown = f"![Means and standard errors]({record['figure']})" if record["figure"] else ""
    text = report.page({**record["models"], **record["results"]}, record["data"], record["kinds"], record["peer"])
    line = f"`{record['command']}`, {record['about']}."
    added = "".join(f" {results.marked(one)}" for one in record.get("added", ()))
    parts = [title, line, results.text_of(record) + added, shown, text]
    return "\n\n".join(filter(None, parts)) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fast", action="store_true", help="a few made-up loans, nothing else needed")
    parser.add_argument("--only", choices=DATA_SETS, help="one data set")
    parser.add_argument("--jobs", type=int, default=1, choices=range(1, 65), metavar="N", help="processes side by side")
    parser.add_argument("--out", type=Path, help="write tables, figure and journal to this folder")
    options = parser.parse_args()
    main(fast=options.fast, only=options.only, jobs=options.jobs, out=options.out)

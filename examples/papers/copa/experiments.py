"""COPA (Bui, Nguyen & Nguyen 2022), its experiments done again: tables 1 and 4, figures 3 and 4.

Set CEOPT_DATA to the folder of data for the tables; without it, loans that ceopt makes up are explained. The protocol
"honest" is the default; "paper" does what the released code did, traps included. Where dice-ml and PyTorch are
installed (benchmarks/requirements-copa.txt) dice-ml itself is asked about a few people. Results are kept as they come:
a run that was interrupted goes on.

Run: python examples/papers/copa/experiments.py [--table 1] [--protocol paper] [--only german] [--fast] [--out FOLDER]
     python examples/papers/copa/experiments.py [--figure 3] [--protocol paper] [--fast] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the papers find one another and what they share

from shared import results
from shared.journal import Journal

from copa import dice, figure_3, figure_4, report, table
from copa.protocol import DATA_SETS, PROTOCOLS, has_data

#: What --fast does: a few people, and models enough for a covariance.
FAST = table.Size(people=2, moments=60, futures=60, networks=5, checked=0)
FIGURES = {3: figure_3, 4: figure_4}


def make_table(number: int, *, protocol: str, fast: bool, only: str | None, out: Path | None) -> None:
    """Print a table, and write it to a folder if there is one."""
    if not has_data():
        print("CEOPT_DATA names no folder of data: the loans are made up by ceopt.")
    names = ("loans",) if fast or not has_data() else (only,) if only else DATA_SETS
    size, with_dice = (FAST, False) if fast else (table.Size(), dice.is_installed())
    name = f"copa_table{number}_{protocol}"
    libraries = ("ceopt", "numpy", "scikit-learn", *(("dice-ml", "torch") if with_dice else ()))
    path = None if out is None else out / f"{name}.partial.jsonl"
    journal = Journal(path, libraries, {"size": json.dumps(asdict(size))})
    table.run(number, names, protocol, size, journal, with_dice=with_dice, quiet=fast)
    command, about = _run()
    record = results.kept(
        {
            "command": command,
            "about": about,
            "table": number,
            "data": names,
            "protocol": protocol,
            "size": asdict(size),
            "results": journal.kept,
        }
    )
    text = page(record)
    print(text)
    if not with_dice:
        print("\ndice-ml or PyTorch is not asked: DiCE is its descent restated.")
    if out is None:
        return
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    results.write(out / f"{name}.json", record)
    if journal.path is not None:
        journal.path.unlink(missing_ok=True)


def page(record: Mapping[str, Any]) -> str:
    """Return the table of what was kept, and how it was made."""
    title = f"# COPA: table {record['table']} of Bui, Nguyen & Nguyen (2022), protocol {record['protocol']}"
    size = table.Size(**record["size"])
    text = report.page(record["results"], record["table"], record["data"], record["protocol"], size)
    return f"{title}\n\n`{record['command']}`, {record['about']}.\n\n{text}\n"


def make_figure(number: int, *, protocol: str, fast: bool, out: Path | None) -> None:
    """Compute a figure, print what it shows, and draw it into a folder if there is one."""
    module = FIGURES[number]
    found = module.computed(protocol, fast=fast)
    text = module.described(found)
    print(text)
    if out is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    command, about = _run()
    name = f"copa_figure{number}_{protocol}"
    shown = f"\n\n![Figure {number}]({name}.png)" if module.draw(found, out / f"{name}.png") else ""
    title = f"# COPA: figure {number} of Bui, Nguyen & Nguyen (2022), protocol {protocol}"
    (out / f"{name}.md").write_text(f"{title}\n\n`{command}`, {about}.{shown}\n\n{text}\n", encoding="utf-8")


def _run() -> tuple[str, str]:
    command = "python examples/papers/copa/experiments.py " + " ".join(sys.argv[1:])
    return (
        command,
        f"{dt.datetime.now(tz=dt.UTC).date()}, python {platform.python_version()}, ceopt {version('ceopt')}",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--table", type=int, choices=sorted(table.WEIGHTS), help="one table; without either, everything")
    what.add_argument("--figure", type=int, choices=sorted(FIGURES), help="one figure")
    parser.add_argument("--protocol", choices=PROTOCOLS, default="honest", help="paper: as the released code has it")
    parser.add_argument("--fast", action="store_true", help="a few made-up loans or samples, nothing else needed")
    parser.add_argument("--only", choices=DATA_SETS, help="one data set of a table")
    parser.add_argument("--out", type=Path, help="write tables, figures and journal to this folder")
    options = parser.parse_args()
    everything = not (options.table or options.figure)
    for number in sorted(table.WEIGHTS) if everything else filter(None, [options.table]):
        make_table(number, protocol=options.protocol, fast=options.fast, only=options.only, out=options.out)
    for number in sorted(FIGURES) if everything else filter(None, [options.figure]):
        make_figure(number, protocol=options.protocol, fast=options.fast, out=options.out)

"""COPA (Bui, Nguyen & Nguyen 2022), its experiments done again over seeds: tables 1 and 4, figures 3 and 4.

Set CEOPT_DATA to the folder of data for the tables and studies; without it, loans that ceopt makes up are explained.
The protocol "honest" is the default; "paper" does what the released code did, traps included. Studies beside the
tables: "stopping", what may be meant by a loss that stands still; "survival", what survives retraining where no plan of
the paper does; "dice_ml", dice-ml itself, where it is installed (benchmarks/requirements-copa.txt). Results are kept as
they come: a run that was interrupted goes on.

Run: python examples/papers/copa/experiments.py [--table 1] [--protocol paper] [--only german] [--fast] [--out FOLDER]
     python examples/papers/copa/experiments.py [--figure 3] [--protocol paper] [--fast] [--out FOLDER]
     python examples/papers/copa/experiments.py [--study stopping] [--fast] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the papers find one another and what they share

from shared import results
from shared.journal import Journal

from copa import dice, dice_check, figure_3, figure_4, report, stopping, survival, table
from copa.protocol import DATA_SETS, PROTOCOLS, has_data

#: Table -> how much is done; a search in table 4 takes seconds, and each network of the future a third of one.
SIZES = {1: table.Size(), 4: table.Size(people=20, searched=4, networks=20)}
#: What --fast does: a few people, and models enough for a covariance.
FAST = table.Size(seeds=2, people=2, searched=1, moments=60, futures=60, networks=5)
FIGURES: Mapping[int, Any] = {3: figure_3, 4: figure_4}
STUDIES: Mapping[str, Any] = {"stopping": stopping, "survival": survival, "dice_ml": dice_check}
LIBRARIES = ("ceopt", "numpy", "scikit-learn")


# ---- runs ------------------------------------------------------------------------------------------------------------
def make_table(number: int, *, protocol: str, fast: bool, only: str | None, out: Path | None) -> None:
    """Print a table, and write it to a folder if there is one."""
    names = _names(fast=fast, only=only)
    size = FAST if fast else SIZES[number]

    def computed(journal: Journal) -> dict[str, Any]:
        table.run(number, names, protocol, size, journal, quiet=fast)
        return {"table": number, "data": names, "protocol": protocol}

    _make(f"copa_table{number}_{protocol}", size, table.MEASURES, computed, fast=fast, out=out)


def make_study(name: str, *, fast: bool, out: Path | None) -> None:
    """Print a study, and write it to a folder if there is one."""
    module = STUDIES[name]
    names = _names(fast=fast, only=None)
    size = module.FAST if fast else module.Size()

    def computed(journal: Journal) -> dict[str, Any]:
        module.run(names, size, journal, quiet=fast)
        return {"study": name, "data": names}

    _make(f"copa_{name}", size, module.MEASURES, computed, fast=fast, out=out)


def make_figure(number: int, *, protocol: str, fast: bool, out: Path | None) -> None:
    """Compute a figure, print what it shows, and draw it into a folder if there is one."""
    module = FIGURES[number]
    size = module.FAST if fast else module.Size()
    name = f"copa_figure{number}_{protocol}"

    def computed(journal: Journal) -> dict[str, Any]:
        module.run(protocol, size, journal, quiet=fast)
        drawn = out is not None and module.draw(journal.kept, size, protocol, out / f"{name}.png")
        return {"figure": number, "protocol": protocol, "drawn": drawn}

    _make(name, size, module.MEASURES, computed, fast=fast, out=out)


def _make(
    name: str,
    size: Any,
    measures: tuple[str, ...],
    computed: Callable[[Journal], dict[str, Any]],
    *,
    fast: bool,
    out: Path | None,
) -> None:
    """Run what a journal does not have yet, print the page, and write page and data."""
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    path = None if out is None else out / f"{name}.partial.jsonl"
    journal = Journal(path, LIBRARIES, {"size": json.dumps(asdict(size))})
    source = journal.result("source", lambda: results.source(measures))
    about = computed(journal)
    found = {key: value for key, value in journal.kept.items() if key != "source"}
    made = {"command": _command(), "about": _about(), "is_full": not fast}
    record = results.kept({**made, **source, **about, "size": asdict(size), "results": found})
    text = page(record)
    print(text)
    if out is None:
        return
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    results.write(out / f"{name}.json", record)
    if journal.path is not None:
        journal.path.unlink(missing_ok=True)


def _names(*, fast: bool, only: str | None) -> tuple[str, ...]:
    if not has_data():
        print("CEOPT_DATA names no folder of data: the loans are made up by ceopt.")
    if fast or not has_data():
        return ("loans",)
    return (only,) if only else DATA_SETS


def _command() -> str:
    return "python examples/papers/copa/experiments.py " + " ".join(sys.argv[1:])


def _about() -> str:
    return f"{dt.datetime.now(tz=dt.UTC).date()}, python {platform.python_version()}, ceopt {version('ceopt')}"


# ---- pages -----------------------------------------------------------------------------------------------------------
def page(record: Mapping[str, Any]) -> str:
    """Return the page of what was kept, and how it was made."""
    kept = record["results"]
    if "table" in record:
        size = table.Size(**record["size"])
        what = f"table {record['table']} of Bui, Nguyen & Nguyen (2022), protocol {record['protocol']}"
        text = report.page(kept, record["table"], record["data"], record["protocol"], size, is_full=record["is_full"])
    elif "figure" in record:
        module = FIGURES[record["figure"]]
        what = f"figure {record['figure']} of Bui, Nguyen & Nguyen (2022), protocol {record['protocol']}"
        text = module.described(kept, module.Size(**record["size"]), record["protocol"], is_full=record["is_full"])
        if record["drawn"]:
            name = f"copa_figure{record['figure']}_{record['protocol']}"
            text = f"![Figure {record['figure']}]({name}.png)\n\n{text}"
    else:
        module = STUDIES[record["study"]]
        what = module.TITLE
        text = module.described(kept, record["data"], module.Size(**record["size"]), is_full=record["is_full"])
    origin = results.text_of(record)
    head = f"# COPA: {what}\n\n`{record['command']}`, {record['about']}."
    return "\n\n".join(filter(None, [head, origin, text])) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--table", type=int, choices=sorted(table.WEIGHTS), help="one table; without any, everything")
    what.add_argument("--figure", type=int, choices=sorted(FIGURES), help="one figure")
    what.add_argument("--study", choices=sorted(STUDIES), help="one study")
    parser.add_argument("--protocol", choices=PROTOCOLS, default="honest", help="paper: as the released code has it")
    parser.add_argument("--fast", action="store_true", help="a few made-up loans or samples, nothing else needed")
    parser.add_argument("--only", choices=DATA_SETS, help="one data set of a table")
    parser.add_argument("--out", type=Path, help="write pages, data, figures and journals to this folder")
    options = parser.parse_args()
    everything = not (options.table or options.figure or options.study)
    for number in sorted(table.WEIGHTS) if everything else filter(None, [options.table]):
        make_table(number, protocol=options.protocol, fast=options.fast, only=options.only, out=options.out)
    for number in sorted(FIGURES) if everything else filter(None, [options.figure]):
        make_figure(number, protocol=options.protocol, fast=options.fast, out=options.out)
    studies = [name for name in STUDIES if name != "dice_ml" or dice.is_installed()]
    for name in studies if everything else filter(None, [options.study]):
        make_study(name, fast=options.fast, out=options.out)

"""Coverage-validity-aware recourse (Bui, Nguyen, Yue & Nguyen 2024), its experiments done again over five folds.

Set CEOPT_DATA to the folder of data; without it, loans that ceopt makes up are explained. The protocol "honest" is the
default; "paper" does what the released code did, traps included. Parts: "recourse" (tables 1 to 5, figures 5, 9 to 13
and 16), "quality" (figures 4, 7, 8 and 15), "planes" (figures 3 and 14) and "causes" (what lies behind
the differences). Results are kept as they come: a run that was interrupted goes on. Needs the extra ``training``.

Run: python examples/papers/coverage_validity/experiments.py [--part recourse] [--protocol paper]
                                                              [--only german student] [--jobs 2] [--fast] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the papers find one another and what they share

from joblib import Parallel, delayed
from shared import results
from shared.journal import Journal

from coverage_validity import report
from coverage_validity.parts import FAST, FULL, PARTS, Size, computed
from coverage_validity.protocol import DATA_SETS, FOLDS, PROTOCOLS, has_data
from coverage_validity.summaries import SUMMARIES

LIBRARIES = ("ceopt", "jax", "numpy", "scikit-learn")
MEASURES = (
    "ceopt/surrogates/minimax.py",
    "ceopt/surrogates/rivals.py",
    "ceopt/surrogates/sampler.py",
    "ceopt/surrogates/linear_recourse.py",
    "formulations/programs/minimax.py",
    "formulations/programs/linear_recourse.py",
    "examples/papers/coverage_validity",
)


def make(part: str, *, protocol: str, fast: bool, only: list[str] | None, jobs: int, out: Path | None) -> None:
    """Compute a part, print its page, and write it to a folder if there is one."""
    size = FAST if fast else FULL
    names = _names(fast=fast, only=only)
    name = f"coverage_{part}_{protocol}"
    path = None
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"{name}.partial.jsonl"
    journal = Journal(path, LIBRARIES, {"size": json.dumps(asdict(size))})
    source = journal.result("source", lambda: results.source(MEASURES))
    _compute(part, names, protocol, size, journal, jobs=jobs, quiet=fast)
    summary = SUMMARIES[part]
    kept = {key: summary(found) for key, found in journal.kept.items() if key != "source"}
    record = results.kept(
        {
            "command": "python examples/papers/coverage_validity/experiments.py " + " ".join(sys.argv[1:]),
            "about": _about(),
            "is_full": not fast,
            **source,
            "part": part,
            "data": names,
            "protocol": protocol,
            "size": asdict(size),
            "figure": f"{name}.png" if out is not None and part in report.FIGURES else None,
            "results": kept,
        }
    )
    if record["figure"]:
        report.draw(record, out / record["figure"])
    text = page(record)
    print(text)
    if out is None:
        return
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    results.write(out / f"{name}.json", record)
    if journal.path is not None:
        journal.path.unlink(missing_ok=True)


def page(record: Mapping[str, Any]) -> str:
    """Return the page of a record."""
    return report.page(record)


def _compute(
    part: str, names: tuple[str, ...], protocol: str, size: Size, journal: Journal, *, jobs: int, quiet: bool
) -> None:
    """Compute what the journal does not have yet, one fold of one data set after another or some side by side."""
    wanted = [key for key in _keys(part, names, protocol, size) if "/".join(map(str, key)) not in journal.kept]
    tasks = (delayed(computed)(*key, size, quiet=quiet) for key in wanted)
    for key, found in zip(wanted, Parallel(n_jobs=jobs, return_as="generator")(tasks), strict=True):
        journal.add("/".join(map(str, key)), found)


def _keys(part: str, names: tuple[str, ...], protocol: str, size: Size) -> Iterator[tuple[str, str, str, int]]:
    """Yield part, data set, protocol and fold of everything to be computed."""
    for name in names:
        for fold in range(min(size.folds, FOLDS)):
            yield part, name, protocol, fold


def _about() -> str:
    return f"{dt.datetime.now(tz=dt.UTC).date()}, python {platform.python_version()}, ceopt {version('ceopt')}"


def _names(*, fast: bool, only: list[str] | None) -> tuple[str, ...]:
    if not has_data():
        print("CEOPT_DATA names no folder of data: the loans are made up by ceopt.")
    if fast or not has_data():
        return ("synthetic", "loans")
    return tuple(only or DATA_SETS)


def main() -> None:
    """Run what was asked for."""
    assert __doc__ is not None  # noqa: S101 - it is above
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--part", choices=sorted(PARTS), help="one part")
    parser.add_argument("--protocol", choices=PROTOCOLS, default="honest")
    parser.add_argument("--only", choices=DATA_SETS, nargs="+", help="some of the data sets")
    parser.add_argument("--jobs", type=int, default=1, help="folds side by side")
    parser.add_argument("--fast", action="store_true", help="a few people of made-up data")
    parser.add_argument("--out", type=Path, help="a folder for pages and data")
    options = parser.parse_args()
    for part in [options.part] if options.part else PARTS:
        make(
            part,
            protocol=options.protocol,
            fast=options.fast,
            only=options.only,
            jobs=options.jobs,
            out=options.out,
        )


if __name__ == "__main__":
    main()

"""RoCourseNet (Guo, Jia, Chen, Squicciarini & Yadav 2023), its experiments done again over five seeds.

Set CEOPT_DATA to the folder of data; without it, loans that ceopt makes up are explained. The protocol "honest" is the
default; "paper" has the columns, the split and the generator of the released code. Parts: "table1" (table 1, run times
of tables 8 and 9), "attack" (figures 3a, 3d, 8), "frontiers" (figure 2), "training" (figures 3b, 3c, 3e, 3f, 4, 7),
"simulations" (table 7) and "general" (table 10). Results are kept as they come: a run that was interrupted goes on.
Needs the extra ``training``.

Run: python examples/papers/rocoursenet/experiments.py [--only table1 attack] [--data german loan] [--protocol paper]
                                                       [--jobs 2] [--fast] [--out FOLDER] [--journal FOLDER]
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the papers find one another and what they share

from joblib import Parallel, delayed
from shared import results
from shared.journal import Journal

from rocoursenet import report
from rocoursenet.networks import ATTACKER, OF_PROTOCOL
from rocoursenet.parts import ATTACK_RATE, DATA_OF, PARTS, computed
from rocoursenet.protocol import ATTACKERS, DATA_SETS, EPOCHS, PROTOCOLS, SETTINGS, has_data
from rocoursenet.sizes import FAST, FULL, Size

LIBRARIES = ("ceopt", "jax", "optax", "numpy")
MEASURES = (
    "ceopt/training",
    "examples/papers/rocoursenet/judged.py",
    "examples/papers/rocoursenet/networks.py",
    "examples/papers/rocoursenet/parts.py",
    "examples/papers/rocoursenet/protocol.py",
)


def make(
    part: str, names: Sequence[str], protocol: str, journal: Journal, *, jobs: int, fast: bool, out: Path | None
) -> None:
    """Compute a part, print its page, and write it to a folder if there is one."""
    size = FAST[part] if fast else FULL[part]
    source = journal.result(f"source, {part}, {protocol}", lambda: results.source(MEASURES))
    found = _found(part, names, protocol, size, journal, jobs=jobs, quiet=fast)
    name = f"rocoursenet_{part}_{protocol}"
    has_figure = out is not None and part in report.FIGURES
    record = results.kept(
        {
            "command": " ".join(["python examples/papers/rocoursenet/experiments.py", *_shown(sys.argv[1:])]),
            "about": _about(),
            "is_full": not fast,
            **source,
            "part": part,
            "data": list(names),
            "protocol": protocol,
            "size": asdict(size),
            "attacker": {**ATTACKER, "attack_rate": ATTACK_RATE},
            "settings": {name: _settings(name, size) for name in names},
            "figure": f"{name}.png" if has_figure else None,
            "results": found,
        }
    )
    if has_figure:
        report.draw(record, out / record["figure"])
    text = page(record)
    print(text)
    if out is not None:
        (out / f"{name}.md").write_text(text, encoding="utf-8")
        results.write(out / f"{name}.json", record)


def page(record: Mapping[str, Any]) -> str:
    """Return the page of a record."""
    return report.page(record)


def _found(
    part: str, names: Sequence[str], protocol: str, size: Size, journal: Journal, *, jobs: int, quiet: bool
) -> dict[str, list[Any]]:
    """Return what every seed of every data set finds, and compute what the journal does not have yet."""
    keys = {}
    for name in names:
        for seed in range(size.seeds):
            keys[name, seed] = _key(part, name, protocol, seed, size)
    wanted = [one for one, key in keys.items() if key not in journal.kept]
    tasks = (delayed(computed)(part, name, protocol, seed, size, quiet=quiet) for name, seed in wanted)
    for one, found in zip(wanted, Parallel(n_jobs=jobs, return_as="generator")(tasks), strict=True):
        journal.add(keys[one], found)
    return {name: [journal.kept[keys[name, seed]] for seed in range(size.seeds)] for name in names}


def _key(part: str, name: str, protocol: str, seed: int, size: Size) -> str:
    """Return the name of a result: what was done, and a digest of the settings that it was done with."""
    settings = {
        "size": {**asdict(size), "seeds": None},
        "networks": [SETTINGS.get(name), EPOCHS.get(name)],
        "attackers": [ATTACKER, ATTACKERS.get(name), ATTACK_RATE if part == "attack" else None],
        "protocol": OF_PROTOCOL[protocol],
    }
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
    return f"{part}/{name}/{protocol}/{seed}/{digest}"


def _settings(name: str, size: Size) -> dict[str, Any]:
    """Return what networks of a data set are trained with."""
    own = name if name in SETTINGS else "student"
    return {**SETTINGS[own], "epochs": size.epochs or EPOCHS[own], **ATTACKERS[own]}


def _shown(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments without folders of this machine."""
    hidden = False
    for argument in arguments:
        if not hidden and argument != "--journal":
            yield argument
        hidden = argument == "--journal"


def _about() -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return f"{dt.datetime.now(tz=dt.UTC).date()}, python {platform.python_version()}, {versions}"


def _is_real(data: Sequence[str] | None, *, fast: bool) -> bool:
    return has_data() and (not fast or bool(data))


def _names(part: str, data: Sequence[str] | None, *, fast: bool) -> tuple[str, ...]:
    """Return the data sets of a part; a fast run is about made-up loans, unless it is told which data to take."""
    is_real = _is_real(data, fast=fast)
    known = DATA_OF.get(part, DATA_SETS)
    if part != "simulations" and not is_real:
        known = ("loans",)
    return tuple(name for name in known if not data or name in data or name not in DATA_SETS)


def _arguments() -> argparse.Namespace:
    assert __doc__ is not None  # noqa: S101 - it is above
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", choices=tuple(PARTS), nargs="+", default=tuple(PARTS), help="some of the parts")
    parser.add_argument("--data", choices=DATA_SETS, nargs="+", help="some of the data sets")
    parser.add_argument("--protocol", choices=PROTOCOLS, default="honest")
    parser.add_argument("--jobs", type=int, default=1, help="seeds side by side")
    parser.add_argument("--fast", action="store_true", help="small sizes, and made-up data unless --data says which")
    parser.add_argument("--out", type=Path, help="a folder for pages, figures and data")
    parser.add_argument("--journal", type=Path, help="a folder for what an interrupted run has; by default --out")
    return parser.parse_args()


def main() -> None:
    """Run what was asked for."""
    options = _arguments()
    is_real = _is_real(options.data, fast=options.fast)
    if not is_real and (options.data or not options.fast):
        place = f", in the place of {', '.join(options.data)}" if options.data else ""
        print(f"CEOPT_DATA names no folder of data: the loans are made up by ceopt{place}.")
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
    folder: Path | None = options.journal or options.out
    path = None if folder is None else folder / "rocoursenet.partial.jsonl"
    inputs: Mapping[str, str] = {"data": "real" if is_real else "made up"}
    journal = Journal(path, LIBRARIES, inputs)
    for part in options.only:
        names = _names(part, options.data, fast=options.fast)
        if names:
            make(part, names, options.protocol, journal, jobs=options.jobs, fast=options.fast, out=options.out)
    if path is not None and options.journal is None:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()

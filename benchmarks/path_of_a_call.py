"""The path of one call of ``explain`` through the package: files, functions, calls, changes of file and of room.

A forest of 20 trees behind a pipeline, one rule, three people. Everything is imported, and one person asked, before the
count begins. ``--against CHECKOUT ...`` counts checkouts of other commits beside this one, each in its own process.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import provenance

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("formulations", "solvers", "ceopt")  # ceopt last: the links to the other two are inside it
PEOPLE = 3
#: Files with so few functions entered are looked at for whether they are one idea.
FEW = 2


def _room(file: Path, checkout: Path) -> tuple[str, str] | None:
    """Return the room and the path of a source file of the package, or None for any other."""
    try:
        parts = file.resolve().relative_to(checkout).parts
    except ValueError:
        return None
    return (parts[0], "/".join(parts)) if parts[0] in ROOMS else None


def _counted(checkout: Path) -> list[dict[str, int]]:
    """Ask, and count for each person; ``ceopt`` is imported from the checkout."""
    sys.path.insert(0, str(checkout))
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    import ceopt
    from ceopt.datasets import loans

    if not Path(ceopt.__file__).resolve().is_relative_to(checkout):
        sys.exit(f"{ceopt.__file__} is not of {checkout}.")
    book = loans(n=1000, random_state=0)
    texts = book.data.select_dtypes(exclude="number").columns.tolist()
    encoded = make_column_transformer((OneHotEncoder(), texts), remainder="passthrough")
    model = make_pipeline(encoded, RandomForestClassifier(20, max_depth=6, random_state=0)).fit(book.data, book.target)
    rejected = book.data[model.predict(book.data) != book.favourable]

    def ask(k: int) -> Any:
        return ceopt.explain(
            model,
            rejected.iloc[[k]],
            book.space,
            target=book.favourable,
            constraints=[ceopt.MaxChanges(2)],
            solver="highs",
        )

    ask(PEOPLE)
    known: dict[str, tuple[str, str] | None] = {}
    found = []
    for k in range(PEOPLE):
        entered, order = Counter[tuple[str, str]](), list[tuple[str, str]]()

        def enter(frame: FrameType, event: str, _: Any, order: Any = order, entered: Any = entered) -> None:
            if event != "call":
                return
            name = frame.f_code.co_filename
            if name not in known:
                known[name] = _room(Path(name), checkout)
            place = known[name]
            if place is not None:
                order.append(place)
                entered[place[1], frame.f_code.co_qualname] += 1

        sys.setprofile(enter)
        try:
            result = ask(k)
        finally:
            sys.setprofile(None)
        if result.status != "optimal":
            sys.exit(f"Not optimal: {result.reason}")
        functions = Counter(file for file, _ in entered)
        pairs = list(itertools.pairwise(order))
        found.append(
            {
                "files": len(functions),
                f"files for {FEW} functions or fewer": sum(count <= FEW for count in functions.values()),
                "functions": len(entered),
                "calls": len(order),
                "changes of file": sum(one[1] != other[1] for one, other in pairs),
                "changes of room": sum(one[0] != other[0] for one, other in pairs),
            }
        )
    return found


def _table(counts: dict[str, list[dict[str, int]]]) -> str:
    words = list(next(iter(counts.values()))[0])
    lines = ["| commit | " + " | ".join(words) + " |", "|---" * (len(words) + 1) + "|"]
    for name, people in counts.items():
        medians = (f"{statistics.median(person[word] for person in people):,.0f}" for word in words)
        lines.append(f"| {name} | " + " | ".join(medians) + " |")
    return "\n".join(lines)


def _commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "log", "-1", "--format=%h, %cs"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    """Count this checkout, and others, and write a table of medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, nargs="*", default=[], help="checkouts of other commits")
    parser.add_argument("--count", type=Path, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="write nothing")
    given = parser.parse_args()
    if given.count is not None:
        print(json.dumps(_counted(given.count.resolve())))
        return
    counts = {}
    for checkout in [*(path.resolve() for path in given.against), ROOT]:
        command = [sys.executable, __file__, "--count", str(checkout)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=checkout)
        counts[_commit(checkout)] = json.loads(done.stdout.splitlines()[-1])
    about = f"{(__doc__ or '').strip()} Medians over people."
    origin = provenance.text_of(provenance.source(ROOMS))
    text = "\n\n".join(("# The path of one call of explain", about, origin, _table(counts))) + "\n"
    print(text)
    if not given.quick:
        (ROOT / "benchmarks" / "results" / "path_of_a_call.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

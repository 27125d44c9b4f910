"""Where a result comes from: the commit that was measured, and the modules whose change makes it old.

``python benchmarks/provenance.py`` lists the committed pages that are older than the modules they measure. It warns and
never fails: a change of a module need not change what was measured. Commits of ``refactorings.txt`` do not count.
A page that names a commit of ``lost_commits.txt`` says that it is not in this history.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["marked", "source", "text_of"]

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
REFACTORINGS = ROOT / "benchmarks" / "refactorings.txt"
LOST = ROOT / "benchmarks" / "lost_commits.txt"

#: The line of a page that :func:`text_of` writes.
LINE = re.compile(r"^Measured at commit `([0-9a-f]+)`(?: \([^)]*\))?( with changes of its own)?: (.+)\.$", re.MULTILINE)


def _git(*words: str) -> str | None:
    """Return what git prints; None where it fails, as outside of a repository."""
    command = ["git", "-C", str(ROOT), *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return None if done.returncode else done.stdout


#: As they are when the run begins: commits made while it runs are not what it measures.
_COMMIT = _git("rev-parse", "--short=7", "HEAD")
_CHANGED = [line[3:] for line in (_git("status", "--porcelain") or "").splitlines()]


def source(measures: Sequence[str]) -> dict[str, Any]:
    """Return what a record says of its origin; nothing outside of a git repository.

    Parameters
    ----------
    measures
        Files and folders of the repository that decide the result.

    Raises
    ------
    FileNotFoundError
        One of them is not there: it was moved, and the script that names it is to follow.
    """
    for path in measures:
        if not (ROOT / path).exists():
            raise FileNotFoundError(f"A result names what it measures, but {path} is not there. Name its new place.")
    if _COMMIT is None:
        return {}
    changed = any(name.startswith(tuple(measures)) for name in _CHANGED)
    return {"commit": _COMMIT.strip(), "changed": changed, "measures": list(measures)}


def text_of(record: Mapping[str, Any]) -> str:
    """Return the line by which a page names its origin; empty for a record without one."""
    if "commit" not in record:
        return ""
    changes = " with changes of its own" if record["changed"] else ""
    modules = ", ".join(f"`{path}`" for path in record["measures"])
    return marked(f"Measured at commit `{record['commit']}`{changes}: {modules}.")


def marked(text: str) -> str:
    """Return a text in which each commit that is not in this history is said not to be."""
    for commit, came in lost().items():
        mark = f"(not in this history: it came with `{came}`; not run again since)"
        text = text.replace(f"`{commit}`", f"`{commit}` {mark}")
    return text


def lost() -> dict[str, str]:
    """Return the commits, abbreviated, that pages name and this history lacks, and with which one they came."""
    return {first: second for first, second, *_ in _listed(LOST)}


def refactorings() -> tuple[str, ...]:
    """Return the commits, abbreviated, that change no behaviour."""
    return tuple(first for first, *_ in _listed(REFACTORINGS))


def _listed(path: Path) -> list[list[str]]:
    """Return the words of the lines of a list, without what it says of itself."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def _age(page: Path) -> str:
    """Return what makes a page old; empty where nothing does."""
    named = LINE.search(page.read_text(encoding="utf-8"))
    if named is None:
        return "names no commit"
    commit, changes, modules = named.groups()
    paths = re.findall(r"`([^`]+)`", modules)
    came = lost().get(commit, commit)
    since = _git("log", "--format=%H %s", f"{came}..HEAD", "--", *paths)
    if since is None:
        return f"measured at {commit}, which is not in this history"
    where = f"measured at {commit}"
    if came != commit:
        where += f", which is not in this history but came with {came}"
    commits = [line[:7] + line[40:] for line in since.splitlines() if not line.startswith(refactorings())]
    if commits:
        return f"{where}; its modules have changed in {len(commits)} commits since, last {commits[0]}"
    if changes:
        return f"{where} with changes that were not committed"
    return where if came != commit else ""


def main() -> None:
    """List the pages that are older than what they measure."""
    pages = sorted(RESULTS.glob("*.md"))
    old = {page.stem: _age(page) for page in pages}
    for name, age in old.items():
        if age:
            print(f"{name}: {age}")
    print(f"{sum(map(bool, old.values()))} of {len(pages)} pages may be older than what they measure.")


if __name__ == "__main__":
    main()

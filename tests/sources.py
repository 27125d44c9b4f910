"""The project's own source files, as the tests of its structure see them."""

from __future__ import annotations

import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

__all__ = ["LINKS", "ROOMS", "ROOT", "SHIPPED", "checkout", "pyproject", "requirement_names", "sources"]

ROOT = Path(__file__).resolve().parents[1]

#: Top-level folder -> the package that it is installed as.
ROOMS = {"ceopt": "ceopt", "formulations": "ceopt.formulations", "solvers": "ceopt.solvers"}

#: What the source distribution holds: whole folders and single files.
SHIPPED = (
    *ROOMS,
    *("tests", "docs", "examples", "benchmarks", ".ci"),
    *("pyproject.toml", "setup.py", "MANIFEST.in", ".gitignore", ".pre-commit-config.yaml", "LICENSE", "CITATION.cff"),
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md"),
)

#: The two links that serve tools that do not run setuptools' import hooks; not source files.
LINKS = ("ceopt/formulations", "ceopt/solvers")


@cache
def checkout() -> tuple[str, ...]:
    """Every file of the project relative to its root, links left out; without git, every file in sight."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    else:
        listed = [
            path.relative_to(ROOT).as_posix()
            for top in SHIPPED
            for path in ((ROOT / top).rglob("*") if (ROOT / top).is_dir() else [ROOT / top])
            if path.is_file() and "__pycache__" not in path.parts and ROOT / "docs" / "made" not in path.parents
        ]
    files = (name for name in listed if name not in LINKS and not name.startswith(tuple(f"{link}/" for link in LINKS)))
    return tuple(sorted(name for name in set(files) if (ROOT / name).is_file()))


@cache
def sources() -> dict[str, str]:
    """Path in the wheel -> path in the repository, for every file of the three rooms."""
    found = {}
    for name in checkout():
        top, _, rest = name.partition("/")
        if top in ROOMS and rest:
            found[str(PurePosixPath(*ROOMS[top].split("."), rest))] = name
    return found


@cache
def pyproject() -> dict[str, Any]:
    """What ``pyproject.toml`` says."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def requirement_names(requirements: list[str]) -> set[str]:
    """Distribution names without version ranges; ``ceopt[a,b]`` stands for nothing of its own."""
    return {re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0] for requirement in requirements} - {"ceopt"}

"""Results kept as they come, so that a run that was interrupted goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["Journal"]


class Journal:
    """One line per result; a run with the same versions and inputs goes on where the last one stopped.

    Parameters
    ----------
    path
        The file; None keeps results in memory alone.
    libraries
        Whose versions count.
    inputs
        What else results depend on.
    """

    def __init__(self, path: Path | None, libraries: Sequence[str], inputs: Mapping[str, str] | None = None) -> None:
        self.path, self.kept = path, dict[str, Any]()
        if path is None:
            return
        head = json.dumps({**(inputs or {}), **{name: version(name) for name in libraries}})
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        whole, _, torn = text.rpartition("\n")
        lines = whole.splitlines()
        if lines[:1] == [head]:
            if torn:  # the run was killed while it wrote
                path.write_text(whole + "\n", encoding="utf-8")
            self.kept = {key: value for line in lines[1:] for key, value in json.loads(line).items()}
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(head + "\n", encoding="utf-8")

    def add(self, key: str, result: Any) -> None:
        """Keep a result."""
        text = json.dumps({key: result})
        self.kept.update(json.loads(text))  # as it will be read again
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(text + "\n")

    def result(self, key: str, make: Callable[[], Any]) -> Any:
        """Return what was kept under a key, or make and keep it."""
        if key not in self.kept:
            self.add(key, make())
        return self.kept[key]

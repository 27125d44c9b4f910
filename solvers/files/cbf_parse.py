"""The sections of a file in the Conic Benchmark Format, as numbers; what it means is the business of cbf_reading."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn, final

from ceopt.solvers.errors import UnreadableFileError
from ceopt.solvers.files.cbf_write import END, SIGNATURE

__all__ = ["CbfFile", "parse"]

LINEAR = frozenset({"F", "L=", "L+", "L-"})
CONES = frozenset({"Q", "QR", "EXP"})
_NAME = re.compile(r"# (VAR|CON|BOUND|PSDCON) (\d{1,18}) (.+)|# (OBJ) (.+)")
#: Digits of a whole number, and entries of all matrices, which are columns or expressions of the model.
_MOST_DIGITS = 18
_MOST_ENTRIES = 4_000_000


@final
@dataclass(slots=True)
class CbfFile:
    """What the sections hold; lists of coordinates end with the value."""

    sense: str = "MIN"
    columns: list[tuple[str, int]] = field(default_factory=list)
    rows: list[tuple[str, int]] = field(default_factory=list)
    integers: list[int] = field(default_factory=list)
    matrices: list[int] = field(default_factory=list)
    """Sides of the matrix variables."""
    sides: list[int] = field(default_factory=list)
    """Sides of the matrix constraints."""
    constant: float = 0.0
    coordinates: dict[str, list[tuple[float, ...]]] = field(default_factory=lambda: defaultdict(list))
    names: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    """Section -> number -> name, of a file of our own; else empty."""

    @property
    def n_columns(self) -> int:
        """Number of scalar columns."""
        return sum(size for _, size in self.columns)

    @property
    def n_rows(self) -> int:
        """Number of scalar rows."""
        return sum(size for _, size in self.rows)


def parse(text: str, path: str) -> CbfFile:
    """Return the sections.

    Raises
    ------
    UnreadableFileError
        It is not such a file, is truncated, or has a section, cone or number that is unknown.
    """
    return _Parser(text, path).file


# section -> (what each coordinate of an entry counts, in words of CbfFile)
_COORDINATES = {
    "OBJFCOORD": ("matrix", "side", "side"),
    "OBJACOORD": ("column",),
    "FCOORD": ("row", "matrix", "side", "side"),
    "ACOORD": ("row", "column"),
    "BCOORD": ("row",),
    "HCOORD": ("psd", "column", "side", "side"),
    "DCOORD": ("psd", "side", "side"),
}


@final
class _Parser:
    """Reads line by line; every refusal names the line."""

    def __init__(self, text: str, path: str) -> None:
        self._path = path
        self._at = 0
        self._section = "VER"
        self._lines = text.splitlines()
        self._most = len(text)  # a column or a row that no line names says nothing
        self.file = CbfFile()
        self._seen: set[str] = set()
        sections: dict[str, Callable[[], None]] = {
            "VER": self._version,
            "OBJSENSE": self._sense,
            "VAR": lambda: self._domains(self.file.columns),
            "CON": lambda: self._domains(self.file.rows),
            "INT": lambda: self._list(self.file.integers, self.file.n_columns),
            "PSDVAR": lambda: self._list(self.file.matrices, None),
            "PSDCON": lambda: self._list(self.file.sides, None),
            "OBJBCOORD": self._constant,
        }
        while (line := self._next()) is not None:
            self._section = line
            if line not in sections and line not in _COORDINATES:
                known = ", ".join([*sections, *_COORDINATES])
                self._refuse(f"one of the sections {known}", f"begins section {line[:40]!r}")
            if line in self._seen:
                self._refuse("each section once", f"begins section {line!r} again")
            if "VER" not in self._seen and line != "VER":
                self._refuse("a file that begins with section VER", f"is {line[:40]!r}")
            self._seen.add(line)
            sections.get(line, self._entries)()
        self._end()

    # -- sections ------------------------------------------------------------------------------------------------------
    def _version(self) -> None:
        if self._words(1)[0] not in {"1", "2", "3", "4"}:
            self._refuse("version 1, 2, 3 or 4", "has another")

    def _sense(self) -> None:
        self.file.sense = self._words(1)[0]
        if self.file.sense not in {"MIN", "MAX"}:
            self._refuse("MIN or MAX", f"is {self.file.sense!r}")

    def _domains(self, into: list[tuple[str, int]]) -> None:
        first, second = self._words(2)
        total = self._whole(first)
        count = self._whole(second)
        stated = 0
        for _ in range(count):
            code, size = self._words(2)
            if code not in LINEAR | CONES:
                self._refuse(f"one of the cones {', '.join(sorted(LINEAR | CONES))}", f"has cone {code!r}")
            least = {"Q": 1, "QR": 2, "EXP": 3}.get(code, 0)
            entries = self._whole(size)
            if entries < least or (code == "EXP" and entries != least):
                self._refuse(f"{least} entries or more in {code}", f"has {entries}")
            into.append((code, entries))
            stated += entries
            if stated > self._most:
                self._refuse(f"at most {self._most} entries, as many as the file has characters", f"has {entries}")
        if stated != total:
            self._refuse(f"cones of {total} entries in all", f"ends at {stated}")

    def _list(self, into: list[int], below: int | None) -> None:
        entries = 0
        for _ in range(self._whole(self._words(1)[0])):
            value = self._whole(self._words(1)[0])
            if (below is not None and value >= below) or (below is None and value < 1):
                self._refuse("a column that exists" if below is not None else "a side of 1 or more", f"has {value}")
            into.append(value)
            entries += value * (value + 1) // 2
            if below is None and entries > _MOST_ENTRIES:
                self._refuse(f"matrices of at most {_MOST_ENTRIES} entries", f"has side {value}")

    def _constant(self) -> None:
        self.file.constant = self._real(self._words(1)[0])

    def _entries(self) -> None:
        kinds = _COORDINATES[self._section]
        for _ in range(self._whole(self._words(1)[0])):
            words = self._words(len(kinds) + 1)
            at = [self._whole(word) for word in words[:-1]]
            for k, (kind, number) in enumerate(zip(kinds, at, strict=True)):
                if number >= self._limit(kind, kinds, at[:k]):
                    self._refuse(f"a {kind} that exists", f"has {number}")
            self.file.coordinates[self._section].append((*at, self._real(words[-1])))

    def _limit(self, kind: str, kinds: tuple[str, ...], before: list[int]) -> int:
        counts = {"column": self.file.n_columns, "row": self.file.n_rows}
        matrices = self.file.sides if "psd" in kinds else self.file.matrices
        if kind != "side":
            return counts.get(kind, len(matrices))
        return matrices[before[kinds.index("psd" if "psd" in kinds else "matrix")]]

    def _end(self) -> None:
        """Refuse a file that ends too early, as far as one can tell."""
        if not {"VER", "OBJSENSE"} <= self._seen or not {"VAR", "PSDVAR"} & self._seen:
            self._refuse("sections VER, OBJSENSE and VAR", "is the end without them")
        lines = [line for line in self._lines if line.strip()]
        if lines[0].strip() != SIGNATURE:
            return
        if lines[-1].strip() != END:
            self._refuse(f"a last line {END!r}", "is another: it is truncated")
        for line in lines:
            if found := _NAME.fullmatch(line.strip()):
                kind, number, name = (found[1], int(found[2]), found[3]) if found[1] else ("OBJ", 0, found[5])
                self.file.names[kind][number] = name

    # -- lines ---------------------------------------------------------------------------------------------------------
    def _next(self) -> str | None:
        while self._at < len(self._lines):
            self._at += 1
            line = self._lines[self._at - 1].split("#")[0].strip()
            if line:
                return line
        return None

    def _words(self, count: int) -> list[str]:
        line = self._next()
        if line is None:
            self._refuse(f"{count} numbers or words in section {self._section}", "is the end: it is truncated")
        words = line.split()
        if len(words) != count:
            self._refuse(f"{count} numbers or words in section {self._section}", f"is {line[:40]!r}")
        return words

    def _whole(self, word: str) -> int:
        if not (word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS):
            self._refuse("a whole number", f"has {word[:40]!r}")
        return int(word)

    def _real(self, word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self._refuse("finite numbers", f"has {word[:40]!r}")
        return value

    def _refuse(self, needs: str, but: str) -> NoReturn:
        raise UnreadableFileError("read", needs, f"line {self._at} of {self._path!r} {but}", "Check the file.")

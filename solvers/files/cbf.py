"""A program in arrays as a file in the Conic Benchmark Format, readable by a person and by every reader of the format.

=============== ==================================================================================================
section         what stands there
=============== ==================================================================================================
VER             1, or 2 with exponential cones: the first version that has all that is written
OBJSENSE        MIN or MAX
VAR, INT        columns: L+ where the lower bound is 0, L- where the upper is, L= where both are, else free
PSDCON          the side of each semidefinite cone
CON             linear rows (L=, L+, L-; a range is two), cones (Q, QR, EXP), then all bounds that are not 0
OBJACOORD, ...  the coefficients, unscaled, as shortest decimals that give the same double when read
=============== ==================================================================================================

The format has no names; they stand in comments before the sections, one a line, in lines of ``# VAR <column> <name>``,
``# CON <first row> <name>``, ``# BOUND <row> <name of the column>`` and ``# PSDCON <number> <name>``.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np
import pyomo.environ as pyo

from ceopt.solvers.compile.names import FileNames
from ceopt.solvers.compile.rows_and_cones import ConeRows
from ceopt.solvers.cones import Cone, side_of, triangle
from ceopt.solvers.errors import UnreadableFileError
from ceopt.solvers.files.model_builder import add_column, add_cone, add_objective, add_row, affine
from ceopt.solvers.problem import Vector

if TYPE_CHECKING:
    from ceopt.solvers.compile.compiled_model import CompiledModel

# ==== A program in arrays as a file in the Conic Benchmark Format =====================================================

SIGNATURE = "# Written by ceopt, with names in comments"
END = "# END"
EXPONENTIAL_ORDER = [2, 1, 0]  # EXP holds (z, y, x) of our (x, y, z)
_CODES = {Cone.SECOND_ORDER: "Q", Cone.ROTATED: "QR", Cone.EXPONENTIAL: "EXP"}


def cbf_text(program: CompiledModel, names: FileNames) -> str:
    """Return the file's text.

    Parameters
    ----------
    program
        Without quadratics: see :func:`ceopt.solvers.compile.quadratic_cones.without_quadratics`.
    names
        What the comments say.
    """
    rows = _Rows(names)
    rows.add_linear(program)
    for name, cone in zip(names.cones, program.cones, strict=True):
        rows.add_cone(name, cone)
    domains = rows.add_bounds(program)
    if program.contradiction is not None:
        rows.add_contradiction(program.contradiction)
    version = "2" if any(code == "EXP" for code, _ in rows.domains) else "1"
    n = len(program.columns)
    comments = [f"# VAR {k} {name}" for k, name in enumerate(names.columns)]
    sense = "MIN" if program.sense > 0 else "MAX"
    constraints: list[str] = []
    if rows.count:
        constraints = [*rows.comments, "CON", *_runs(rows.count, rows.domains)]
    constant: list[str] = []
    if program.c0:
        constant = ["OBJBCOORD", _number(program.c0)]
    parts = [
        [SIGNATURE, "VER", version],
        ["OBJSENSE", sense],
        [*comments, "VAR", *_runs(n, [(code, 1) for code in domains])],
        _section("INT", np.flatnonzero(program.integer).tolist()),
        [*rows.psd_comments, *_section("PSDCON", rows.sides)],
        constraints,
        [f"# OBJ {names.objective}", *_section("OBJACOORD", _entries(program.c))],
        constant,
        _section("ACOORD", rows.coefficients),
        _section("BCOORD", rows.constants),
        _section("HCOORD", rows.psd_coefficients),
        _section("DCOORD", rows.psd_constants),
        [END],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


@final
class _Rows:
    """The rows of CON and PSDCON as they gather, in the format's words."""

    def __init__(self, names: FileNames) -> None:
        self._names = names
        self.count = 0
        self.comments: list[str] = []
        self.domains: list[tuple[str, int]] = []
        self.coefficients: list[str] = []
        self.constants: list[str] = []
        self.sides: list[int] = []
        self.psd_comments: list[str] = []
        self.psd_coefficients: list[str] = []
        self.psd_constants: list[str] = []

    def add_linear(self, program: CompiledModel) -> None:
        """Add the linear rows: one for each finite side, or one for two equal sides."""
        A = program.A
        for r, name in enumerate(self._names.rows):
            part = slice(A.indptr[r], A.indptr[r + 1])
            columns = A.indices[part].tolist()
            values = A.data[part].tolist()
            for code, side in _sides(float(program.row_lb[r]), float(program.row_ub[r])):
                self._add(f"CON {self.count} {name}", code, columns, values, -side)

    def add_cone(self, name: str, cone: ConeRows) -> None:
        """Add a cone: rows of CON, or one matrix of PSDCON."""
        if cone.cone is Cone.SEMIDEFINITE:
            self._add_matrix(name, cone)
            return
        order = EXPONENTIAL_ORDER if cone.cone is Cone.EXPONENTIAL else range(cone.constant.size)
        self.comments.append(f"# CON {self.count} {name}")
        self.domains.append((_CODES[cone.cone], cone.constant.size))
        for r in order:
            part = slice(cone.matrix.indptr[r], cone.matrix.indptr[r + 1])
            self._put(cone.matrix.indices[part].tolist(), cone.matrix.data[part].tolist(), float(cone.constant[r]))

    def add_bounds(self, program: CompiledModel) -> list[str]:
        """Add the bounds that are not 0 as rows, and return the domain of each column, which says the others."""
        domains = []
        for k, (low, high) in enumerate(zip(program.lb.tolist(), program.ub.tolist(), strict=True)):
            domains.append(_domain(low, high))
            if low == 0:
                low = -math.inf  # noqa: PLW2901 - the domain says so
            if high == 0:
                high = math.inf  # noqa: PLW2901
            for code, side in _sides(low, high):
                self._add(f"BOUND {self.count} {self._names.columns[k]}", code, [k], [1.0], -side)
        return domains

    def add_contradiction(self, what: str) -> None:
        """Add a row that cannot hold: 1 = 0."""
        self._add(f"CON {self.count} contradiction", "L=", [], [], 1.0)
        self.comments.append(f"# {what.encode('ascii', 'replace').decode()[:400]} cannot hold")

    def _add(self, comment: str, code: str, columns: list[int], values: list[float], constant: float) -> None:
        self.comments.append(f"# {comment}")
        self.domains.append((code, 1))
        self._put(columns, values, constant)

    def _put(self, columns: list[int], values: list[float], constant: float) -> None:
        row = self.count
        for k, value in zip(columns, values, strict=True):
            if value:
                self.coefficients.append(f"{row} {k} {_number(value)}")
        if constant:
            self.constants.append(f"{row} {_number(constant)}")
        self.count += 1

    def _add_matrix(self, name: str, cone: ConeRows) -> None:
        number = len(self.sides)
        size = cone.constant.size
        self.sides.append(side_of(size))
        self.psd_comments.append(f"# PSDCON {number} {name}")
        column, row = (part.tolist() for part in triangle(side_of(size)))  # the format wants the lower triangle
        triples = cone.matrix.tocoo()
        at, columns = triples.coords
        for r, k, value in zip(at.tolist(), columns.tolist(), triples.data.tolist(), strict=True):
            if value:
                self.psd_coefficients.append(f"{number} {k} {row[r]} {column[r]} {_number(value)}")
        for r, value in enumerate(cone.constant.tolist()):
            if value:
                self.psd_constants.append(f"{number} {row[r]} {column[r]} {_number(value)}")


def _domain(low: float, high: float) -> str:
    """Return the domain of a column: which of its bounds are 0."""
    if low == high == 0:
        return "L="
    if low == 0:
        return "L+"
    if high == 0:
        return "L-"
    return "F"


def _sides(low: float, high: float) -> list[tuple[str, float]]:
    """Return (domain, side) of the rows that state both sides."""
    if low == high:
        return [("L=", low)]
    sides = []
    if math.isfinite(low):
        sides.append(("L+", low))
    if math.isfinite(high):
        sides.append(("L-", high))
    return sides


def _runs(count: int, domains: Iterable[tuple[str, int]]) -> list[str]:
    """Return the header and body of VAR or CON: equal linear domains that follow each other are one, cones never."""
    lines = []
    for code, run in itertools.groupby(domains, key=lambda domain: domain[0]):
        sizes = [size for _, size in run]
        if code[0] in "LF":
            lines.append(f"{code} {sum(sizes)}")
        else:
            lines += [f"{code} {size}" for size in sizes]
    return [f"{count} {len(lines)}", *lines]


def _section(keyword: str, lines: Sequence[object]) -> list[str]:
    if lines:
        return [keyword, str(len(lines)), *map(str, lines)]
    return []


def _entries(vector: Vector) -> list[str]:
    return [f"{k} {_number(value)}" for k, value in enumerate(vector.tolist()) if value]


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


# ==== The sections of a file in the Conic Benchmark Format, as numbers; what it means is the business of cbf_reading ==

LINEAR = frozenset({"F", "L=", "L+", "L-"})
CONES = frozenset({"Q", "QR", "EXP"})
_NAME = re.compile(r"# (VAR|CON|BOUND|PSDCON) (\d{1,18}) (.+)|# (OBJ) (.+)")
#: Digits of a whole number, and entries of all matrices, which are columns or expressions of the model.
_MOST_DIGITS = 18
_MOST_ENTRIES = 4_000_000


@final
@dataclass(slots=True)
class CbfFile:
    """The sections as numbers; lists of coordinates end with the value."""

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


# ==== A file in the Conic Benchmark Format as a ConcreteModel with cones in ordinary Constraints ======================

_CONES = {"Q": Cone.SECOND_ORDER, "QR": Cone.ROTATED, "EXP": Cone.EXPONENTIAL}
_ALL = (-math.inf, math.inf)


_Sides = tuple[float, float]


def model_of_cbf(text: str, path: str) -> Any:
    """Return the model; a file that :func:`ceopt.solvers.write` wrote keeps its names, ranges and bounds.

    Raises
    ------
    UnreadableFileError
        It is not such a file, or has a section or a cone that we do not know.
    """
    return _Builder(parse(text, path), path).model


@final
@dataclass(slots=True)
class _Affine:
    """``constant + sum of values * columns``."""

    constant: float
    values: list[float]
    columns: list[Any]

    @property
    def expression(self) -> Any:
        return affine(self.constant, self.values, self.columns)


@final
class _Builder:
    def __init__(self, file: CbfFile, path: str) -> None:
        self._file = file
        self._path = path
        self.model = pyo.ConcreteModel()
        self._terms: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for r, k, value in file.coordinates["ACOORD"]:
            self._terms[int(r)].append((int(k), value))
        self._rows = self._expressions()
        self._bounds: list[_Sides] = []
        for code, size in file.columns:
            self._bounds += [_limits(code, 0.0)] * size
        stated = self._linear_rows()
        whole = set(file.integers)
        self._columns = [
            add_column(self.model, self._name("VAR", k, "column"), bounds, integer=k in whole)
            for k, bounds in enumerate(self._bounds)
        ]
        self._matrices = [self._matrix(k, side) for k, side in enumerate(file.matrices)]
        self._fill()
        for name, row, sides in stated:
            add_row(self.model, name, row.values, row.columns, sides)
        self._add_cones()
        self._add_objective()

    def _name(self, section: str, k: int, kind: str) -> str:
        return self._file.names[section].get(k, f"{kind}_{k}")

    # -- columns and rows ----------------------------------------------------------------------------------------------
    def _expressions(self) -> list[_Affine]:
        """Return the rows of CON with their constants; the terms come when there are columns."""
        rows = [_Affine(0.0, [], []) for _ in range(self._file.n_rows)]
        for r, value in self._file.coordinates["BCOORD"]:
            rows[int(r)].constant = value
        return rows

    def _linear_rows(self) -> list[tuple[str, _Affine, _Sides]]:
        """Return (name, row, sides) of the linear rows.

        Where the comments say so, and the numbers agree, a row is the bound of a column or the other side of a range.
        """
        merged: dict[str, tuple[int, int]] = {}
        stated: list[tuple[str, _Affine, _Sides]] = []
        names = self._file.names
        at = 0
        for code, size in self._file.rows:
            rows = range(at, at + size)
            at += size
            if code in _CONES:
                continue
            for r in rows:
                row = self._rows[r]
                limits = _limits(code, -row.constant or 0.0)
                terms = self._terms[r]
                name = self._name("CON", r, "row")
                if r in names["BOUND"] and len(terms) == 1 and terms[0][1] == 1.0:
                    k = terms[0][0]
                    self._bounds[k] = _intersection(self._bounds[k], limits)
                    continue
                first, place = merged.get(name, (-1, -1))
                if r in names["CON"] and first >= 0 and terms == self._terms[first]:
                    _, body, sides = stated[place]
                    stated[place] = (name, body, _intersection(sides, limits))
                    continue
                merged[name] = (r, len(stated))
                stated.append((name, row, limits))
        return stated

    def _matrix(self, k: int, side: int) -> dict[tuple[int, int], Any]:
        """Add a matrix variable, its lower triangle as columns, and return them by (row, column)."""
        entries = {}
        for i, j in zip(*(part.tolist() for part in triangle(side)), strict=True):
            entries[j, i] = add_column(self.model, f"matrix_{k}({j}_{i})", _ALL, integer=False)
        add_cone(self.model, f"matrix_{k}", Cone.SEMIDEFINITE, list(entries.values()))
        return entries

    def _fill(self) -> None:
        """Put the terms of the rows in."""
        for r, terms in self._terms.items():
            row = self._rows[r]
            row.values += [value for _, value in terms]
            row.columns += [self._columns[k] for k, _ in terms]
        for at, k, i, j, value in self._file.coordinates["FCOORD"]:
            self._put_product(self._rows[int(at)], int(k), int(i), int(j), value)

    def _put_product(self, row: _Affine, k: int, i: int, j: int, value: float) -> None:
        """Add one entry of a symmetric matrix, times the matrix variable; off the diagonal it stands for two."""
        if i != j:
            value *= 2.0
        row.values.append(value)
        row.columns.append(self._matrices[k][max(i, j), min(i, j)])

    # -- cones and objective -------------------------------------------------------------------------------------------
    def _add_cones(self) -> None:
        at = 0
        for code, size in self._file.columns:
            if code in _CONES:
                self._add_cone(f"cone_of_column_{at}", code, self._columns[at : at + size])
            at += size
        at = 0
        for code, size in self._file.rows:
            if code in _CONES:
                entries = [row.expression for row in self._rows[at : at + size]]
                self._add_cone(self._name("CON", at, "cone"), code, entries)
            at += size
        entries_of: dict[tuple[int, int, int], _Affine] = defaultdict(lambda: _Affine(0.0, [], []))
        for c, i, j, value in self._file.coordinates["DCOORD"]:
            entries_of[int(c), int(max(i, j)), int(min(i, j))].constant += value
        for c, k, i, j, value in self._file.coordinates["HCOORD"]:
            entry = entries_of[int(c), int(max(i, j)), int(min(i, j))]
            entry.values.append(value)
            entry.columns.append(self._columns[int(k)])
        for c, side in enumerate(self._file.sides):
            pairs = zip(*(part.tolist() for part in triangle(side)), strict=True)
            entries = [entries_of[c, j, i].expression for i, j in pairs]
            add_cone(self.model, self._name("PSDCON", c, "psd"), Cone.SEMIDEFINITE, entries)

    def _add_cone(self, name: str, code: str, entries: list[Any]) -> None:
        ordered = entries
        if code == "EXP":  # the format has these the other way round
            ordered = entries[::-1]
        add_cone(self.model, name, _CONES[code], ordered)

    def _add_objective(self) -> None:
        cost = _Affine(self._file.constant, [], [])
        for k, value in self._file.coordinates["OBJACOORD"]:
            cost.values.append(value)
            cost.columns.append(self._columns[int(k)])
        for k, i, j, value in self._file.coordinates["OBJFCOORD"]:
            self._put_product(cost, int(k), int(i), int(j), value)
        name = self._file.names["OBJ"].get(0, "")
        add_objective(self.model, name, cost.expression, minimise=self._file.sense == "MIN")


def _limits(code: str, side: float) -> _Sides:
    """Return the lower and upper side that a domain of the format stands for."""
    lower = -math.inf
    upper = math.inf
    if code in {"L=", "L+"}:
        lower = side
    if code in {"L=", "L-"}:
        upper = side
    return lower, upper


def _intersection(one: _Sides, other: _Sides) -> _Sides:
    return max(one[0], other[0]), min(one[1], other[1])

r"""A program in arrays as a file in the Conic Benchmark Format, readable by a person and by every reader of the format.

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
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, final

import numpy as np

from ceopt.solvers.compile.rows_and_cones import ConeRows
from ceopt.solvers.cones import Cone, side_of, triangle
from ceopt.solvers.files.file_names import FileNames
from ceopt.solvers.problem import Vector

if TYPE_CHECKING:
    from ceopt.solvers.compile.compiled_model import CompiledModel

__all__ = ["END", "EXPONENTIAL_ORDER", "SIGNATURE", "cbf_text"]

SIGNATURE = "# Written by ceopt, with names in comments"
END = "# END"
EXPONENTIAL_ORDER = [2, 1, 0]  # EXP holds (z, y, x) of our (x, y, z)
_CODES = {Cone.SECOND_ORDER: "Q", Cone.ROTATED: "QR", Cone.EXPONENTIAL: "EXP"}


def cbf_text(program: CompiledModel, names: FileNames) -> str:
    """Return the file's text.

    Parameters
    ----------
    program
        Without quadratics: see :func:`ceopt.solvers.compile.quadratic_to_cone.without_quadratics`.
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

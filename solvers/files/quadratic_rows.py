"""Quadratic rows of LP and MPS files, taken out of the text: HiGHS reads the rest, and refuses a file that has them.

In LP a row's products stand in brackets, ``3 y + [ x^2 - 2 x * y ] <= 4``. Each pair of brackets is replaced by a
column that is not in the file; where HiGHS reports that column, the products belong. In MPS they are sections
``QCMATRIX row`` of their own, which are left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import final

from ceopt.solvers.errors import UnreadableFileError

__all__ = ["QuadraticRows", "take_quadratic_rows"]

_Term = tuple[float, str, str]
_ROWS_BEGIN = re.compile(r"^[ \t]*(subject\s+to|such\s+that|st\.?|s\.t\.)[ \t]*:?[ \t]*$", re.IGNORECASE | re.MULTILINE)
_BRACKETS = re.compile(r"\[([^\[\]]*)\](\s*/)?")
_TOKEN = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|([^\s\d.+\-*^\[\]:<>=][^\s+\-*^\[\]:<>=]*)|([+\-*^])")


@final
@dataclass(frozen=True, slots=True)
class QuadraticRows:
    """A file's text without its quadratic rows, and what they are.

    Parameters
    ----------
    text
        For HiGHS; empty if there was nothing to take out.
    by_column
        Name of a column in ``text`` that is none of the file's -> the terms (coefficient, column, column) in its place.
    by_row
        Name of a row -> its terms.
    extra_row
        Name of a row in ``text`` that is none of the file's.
    """

    text: str = ""
    by_column: dict[str, list[_Term]] = field(default_factory=dict)
    by_row: dict[str, list[_Term]] = field(default_factory=dict)
    extra_row: str = ""


def take_quadratic_rows(text: str, suffix: str, path: str) -> QuadraticRows:
    """Return the quadratic rows of a file that ends in .lp or .mps, and the text without them.

    Raises
    ------
    UnreadableFileError
        A product that is none.
    """
    if suffix == ".lp":
        return _of_lp(text, path)
    return _of_mps(text, path)


def _of_lp(text: str, path: str) -> QuadraticRows:
    if "[" not in text:
        return QuadraticRows()
    text = re.sub(r"\\.*", "", text)
    begin = _ROWS_BEGIN.search(text)
    if begin is None or "[" not in text[begin.end() :]:
        return QuadraticRows()
    head = text[: begin.end()]
    rows = text[begin.end() :]
    mark = "quadratic"
    while mark in text.lower():
        mark += "_"
    by_column: dict[str, list[_Term]] = {}

    def replaced(brackets: re.Match[str]) -> str:
        if brackets[2]:
            raise _refused(path, "no division behind the brackets of a row", brackets[0])
        name = f"{mark}{len(by_column)}"
        by_column[name] = _terms(brackets[1], path)
        return f"1 {name}"

    rows = _BRACKETS.sub(replaced, rows)
    # a column that stands in products alone is unknown to HiGHS without this row
    columns = {column: None for terms in by_column.values() for _, *pair in terms for column in pair}
    declared = "".join(f"\n+ 0 {column}" for column in columns)
    return QuadraticRows(f"{head}\n{mark}:{declared}\n>= -1\n{rows}", by_column, {}, mark)


def _terms(inside: str, path: str) -> list[_Term]:
    """Return the terms between two brackets."""
    if _TOKEN.sub("", inside).strip():
        raise _refused(path, "products of columns between the brackets of a row", inside)
    tokens = [(match.lastindex, match[0]) for match in _TOKEN.finditer(inside)]
    terms: list[_Term] = []
    while tokens:
        coefficient = 1.0
        while tokens and tokens[0][1] in {"+", "-"}:
            coefficient *= -1.0 if tokens.pop(0)[1] == "-" else 1.0
        if tokens and tokens[0][0] == 1:
            coefficient *= float(tokens.pop(0)[1])
        kinds = "".join(str(kind) for kind, _ in tokens[:3])
        words = [word for _, word in tokens[:3]]
        if kinds == "231" and words[1:] == ["^", "2"]:
            terms.append((coefficient, words[0], words[0]))
        elif kinds == "232" and words[1] == "*":
            terms.append((coefficient, words[0], words[2]))
        else:
            raise _refused(path, "terms such as 2 x^2 and 3 x * y between the brackets of a row", inside)
        del tokens[:3]
    return terms


def _of_mps(text: str, path: str) -> QuadraticRows:
    if "qcmatrix" not in text.lower():
        return QuadraticRows()
    kept: list[str] = []
    by_row: dict[str, list[_Term]] = defaultdict(list)
    row: str | None = None
    for line in text.splitlines():
        words = line.split()
        if words and not line[0].isspace() and not line.startswith("*"):
            if words[0].upper() == "QCMATRIX" and len(words) != 2:
                raise _refused(path, "the name of a row behind QCMATRIX", line)
            row = None
            if words[0].upper() == "QCMATRIX":
                row = words[1]
            if row is not None:
                continue
        if row is None:
            kept.append(line)
        elif words and not line.startswith("*"):
            try:
                first, second, value = words
                by_row[row].append((float(value), first, second))
            except ValueError as error:
                raise _refused(path, "two columns and a number in each line of QCMATRIX", line) from error
    if by_row:
        return QuadraticRows("\n".join(kept) + "\n", {}, dict(by_row))
    return QuadraticRows()


def _refused(path: str, needs: str, given: str) -> UnreadableFileError:
    shown = " ".join(given.split())[:60]
    return UnreadableFileError("read", needs, f"{path!r} has {shown!r}", "Restate that row.")

"""Parts of a file that HiGHS reads otherwise than its format says: found in the text, and refused.

In an LP file, a number that stands alone on the left of a row, ``x + 3 <= 4``, or before brackets, ``2 [ x^2 ]``: HiGHS
drops it. A column that stands twice in the objective, of which it keeps one; a binary column with bounds beyond 0 and
1. In an MPS file, an entry that stands twice, of which it keeps the first, and the right side of a free row that is not
the objective, which it takes for the objective's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ceopt.solvers.errors import UnreadableFileError

__all__ = ["refuse_misread"]

_COMMENT = re.compile(r"\\.*")
_TO_ROWS = r"^[ \t]*(?:subject\s+to|such\s+that|st\.?|s\.t\.)[ \t]*:?"
_ENDS = r"bounds?|gen|generals?|integers?|bin|binar(?:y|ies)|semi|sos|free|end"
_FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL
_OBJECTIVE = re.compile(rf"^[ \t]*(?:min|max)\w*[ \t]*:?(?P<text>.*?)(?={_TO_ROWS})", _FLAGS)
_ROWS = re.compile(rf"{_TO_ROWS}(?P<text>.*?)(?=^[ \t]*(?:{_ENDS})\b)", _FLAGS)
_BOUNDS = re.compile(rf"^[ \t]*bounds?[ \t]*$(?P<text>.*?)(?=^[ \t]*(?:{_ENDS})\b)", _FLAGS)
_BINARIES = re.compile(rf"^[ \t]*(?:bin|binary|binaries)[ \t]*$(?P<text>.*?)(?=^[ \t]*(?:{_ENDS})\b)", _FLAGS)
_BRACKETS = re.compile(r"\[[^\]]*\](?:\s*/\s*2)?")
_LABEL = re.compile(r"[^\s:]+\s*:")
_NUMBER = r"(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?\d++)?+"
_NAME = re.compile(r"(?<![^\s+\-*])[^\s\d.+\-*/^\[\]:<>=][^\s+\-*/^\[\]:<>=]*")
_LONE = re.compile(rf"(?<![^\s+\-:<>=^/]){_NUMBER}(?:\s*(?=[-+<>=\[])|\s+(?=[\d.]))")
#: What stands before a number that is a row's right side, an exponent or the divisor of a product.
_BELONGS = re.compile(r"[\^/<>=]\s*[+-]?\s*$")
_BOUND = re.compile(rf"(?P<sign>[+-]?)\s*(?P<number>{_NUMBER})")


def refuse_misread(text: str, suffix: str, path: str) -> None:
    """Refuse the text of a file that ends in .lp or .mps and has something of that kind.

    Raises
    ------
    UnreadableFileError
        It has.
    """
    if suffix == ".lp":
        text = _COMMENT.sub("", text)
        _refuse_constants(text, path)
        _refuse_repeated_costs(text, path)
        _refuse_wide_binaries(text, path)
    else:
        _refuse_repeated_entries(text, path)


# ---- LP --------------------------------------------------------------------------------------------------------------
def _refuse_constants(text: str, path: str) -> None:
    rows = _part(_ROWS, text)
    for match in _LONE.finditer(rows):
        number = match[0].strip()
        behind = rows[match.end() : match.end() + 1]
        is_empty_row = not float(number) and behind != "["
        begin = rows.rfind("\n", 0, match.start()) + 1
        if is_empty_row or _BELONGS.search(rows, max(0, begin - 80), match.start()):
            continue
        line = rows[begin:].split("\n", 1)[0]
        raise _refused(
            path, "a column behind every number on the left of a row", line,
            f"Move {number} to the right side, or into the brackets.",
        )  # fmt: skip


def _refuse_repeated_costs(text: str, path: str) -> None:
    objective = _LABEL.sub(" ", _BRACKETS.sub(" ", _part(_OBJECTIVE, text)), count=1)
    seen: set[str] = set()
    for match in _NAME.finditer(objective):
        if match[0] in seen:
            raise _refused(path, "each column once in the objective", match[0], "Add up its terms.")
        seen.add(match[0])


def _refuse_wide_binaries(text: str, path: str) -> None:
    binaries = set(_part(_BINARIES, text).split())
    if not binaries:
        return
    for line in _part(_BOUNDS, text).splitlines():
        if binaries.isdisjoint(line.split()):
            continue
        if any(match["sign"] == "-" or float(match["number"]) > 1.0 for match in _numbers(line)):
            raise _refused(
                path, "bounds of binary columns within 0 and 1", line, "Make it integer, or mend its bounds."
            )


def _numbers(line: str) -> Iterator[re.Match[str]]:
    """Give the numbers of a bound that are not part of a name, and not 0 with a sign."""
    for match in _BOUND.finditer(line):
        is_name = match.start("number") > 0 and line[match.start("number") - 1] not in " \t+-<>="
        if not is_name and float(match["number"]):
            yield match


def _part(section: re.Pattern[str], text: str) -> str:
    found = section.search(text)
    if found is None:
        return ""
    return found["text"]


# ---- MPS -------------------------------------------------------------------------------------------------------------
def _refuse_repeated_entries(text: str, path: str) -> None:
    section = ""
    column = ""
    seen: set[str] = set()
    free: list[str] = []  # the objective first
    for line in text.splitlines():
        words = line.split()
        if not words or line.startswith("*"):
            continue
        if not line[0].isspace():
            section = words[0].upper()
        elif section == "ROWS" and words[0].upper() == "N":
            free.append(words[-1])
        elif section == "COLUMNS" and len(words) in {3, 5}:
            if words[0] != column:
                column = words[0]
                seen = set()
            for row in words[1::2]:
                if row in seen:
                    raise _refused(path, "each entry of a column once", f"{column} {row}", "Add up its entries.")
                seen.add(row)
        elif section == "RHS":
            for row in words[len(words) % 2 :: 2]:
                if row in free and row != free[0]:
                    needs = "right sides of rows and of the objective alone"
                    raise _refused(path, needs, line, "Leave it out: that row is free.")


def _refused(path: str, needs: str, has: str, then: str) -> UnreadableFileError:
    return UnreadableFileError("read", needs, f"{path!r} has {' '.join(has.split())[:60]!r}", then)

"""A number that stands alone on the left of a row of an LP file, ``x + 3 <= 4``, or before brackets, ``2 [ x^2 ]``.

HiGHS drops the first and takes the second for the first, so that the program is another one. Neither is in the
format's grammar.
"""

from __future__ import annotations

import re

from ceopt.solvers.errors import UnreadableFileError

__all__ = ["refuse_dropped_constants"]

_COMMENT = re.compile(r"\\.*")
_ROWS = re.compile(
    r"^[ \t]*(?:subject\s+to|such\s+that|st\.?|s\.t\.)[ \t]*:?(?P<rows>.*?)"
    r"(?=^[ \t]*(?:bounds?|gen|generals?|integers?|bin|binar(?:y|ies)|semi|sos|free|end)\b)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_NUMBER = r"(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?\d++)?+"
_LONE = re.compile(rf"(?<![^\s+\-:<>=^/]){_NUMBER}(?:\s*(?=[-+<>=\[])|\s+(?=[\d.]))")
#: What stands before a number that is a row's right side, an exponent or the divisor of a product.
_BELONGS = re.compile(r"[\^/<>=]\s*[+-]?\s*$")


def refuse_dropped_constants(text: str, path: str) -> None:
    """Refuse the text of an LP file that has such a number.

    Raises
    ------
    UnreadableFileError
        There is one.
    """
    found = _ROWS.search(_COMMENT.sub("", text))
    if found is None:
        return
    rows = found["rows"]
    for match in _LONE.finditer(rows):
        number, behind = match[0].strip(), rows[match.end() : match.end() + 1]
        is_empty_row = not float(number) and behind != "["
        begin = rows.rfind("\n", 0, match.start()) + 1
        if is_empty_row or _BELONGS.search(rows, max(0, begin - 80), match.start()):
            continue
        line = rows[begin:].split("\n", 1)[0]
        raise UnreadableFileError(
            "read",
            "a column behind every number on the left of a row",
            f"{path!r} has {line.strip()[:60]!r}",
            f"Move {number} to the right side, or into the brackets.",
        )

"""Coefficients of an LP, MPS or PTF file that are not finite, refused by line.

HiGHS takes a cost of nan or infinity as it stands and drops such a term of a row or of a product, so that the program
is another one; the text is looked through before it is parsed. Infinity stays legal as a bound and as the side of a
row, nan nowhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from ceopt.solvers.errors import UnreadableFileError

__all__ = ["odd_number_of_ptf", "refuse_odd_numbers"]

#: Files without any of these hold no such number: the word, a large exponent, or very many digits.
_PERHAPS = re.compile(r"nan|inf|[ed]\+?\d{3}|\d{300}", re.IGNORECASE)
_COMMENT = re.compile(r"\\.*")
_PERHAPS_IN_LP = re.compile(r"(?<![^\s\d.+\-*/^\[\]:<>=])(?:nan|inf)|e\+?\d{3}|\d{300}", re.IGNORECASE)
_BOUNDS = re.compile(r"^[ \t]*bounds?[ \t]*$", re.IGNORECASE | re.MULTILINE)
_INFINITE_BOUND = re.compile(
    r"^[ \t]*(?:[+-]?inf(?:inity)?[ \t]*<=[ \t]*)?(?!nan|inf)[^\s\d.+\-*/^\[\]:<>=][^\s+\-*^\[\]:<>=]*"
    r"[ \t]*(?:<=[ \t]*[+-]?(?:inf(?:inity)?|[\d.]+)[ \t]*)?$",
    re.IGNORECASE | re.MULTILINE,
)
_LP_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<relation>[<>=]+)|(?P<mark>[+\-*/^\[\]:])"
    r"|(?P<word>[^\s\d.+\-*/^\[\]:<>=][^\s+\-*^\[\]:<>=]*)"
)
#: Readers take the beginning of a word for a number, as C does.
_WORD = re.compile(r"[+-]?(?:(?P<nan>nan)|inf(?:inity)?)", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][+-]?\d+)?")
#: Words of an LP file after which a row or a bound begins; "to" is that of "subject to".
_BEFORE_A_ROW = frozenset({"to", "that", "st", "s.t.", "bounds", "bound", "free"})
_WITH_A_NAME = frozenset({"NAME", "OBJSENSE", "QSECTION", "QCMATRIX"})
_COEFFICIENTS = frozenset({"COLUMNS", "QSECTION", "QCMATRIX", "QUADOBJ", "QMATRIX"})
_SIDES = frozenset({"RHS", "RANGES"})
_BOUNDS_WITHOUT_A_NUMBER = frozenset({"FR", "MI", "PL", "BV"})


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def refuse_odd_numbers(text: str, suffix: str, path: str) -> None:
    """Refuse nan, and infinity as a coefficient, in a file that ends in .lp or .mps.

    Raises
    ------
    UnreadableFileError
        There is one; or, in an LP file, a name that every reader takes for one.
    """
    if not _PERHAPS.search(text):
        return
    if suffix == ".lp":
        _look_through_lp(text, path)
    else:
        _look_through_mps(text, path)


def odd_number_of_ptf(text: str) -> tuple[int, str] | None:
    """Return the line and the word of the first such number in a PTF file that MOSEK refused."""
    for number, line in enumerate(text.splitlines(), 1):
        stated = line.split("#")[0]
        sides = " ".join(re.findall(r"\[([^\]]*)\]", stated))
        for word in re.split(r"[\s;,]+", sides):
            if _odd(word) == "nan":
                return number, word
        for word in re.sub(r"\[[^\]]*\]", " ", stated).split():
            if _odd(word) and (_NUMBER.match(word) or _is_whole(word)):
                return number, word
    return None


def _odd(word: str) -> str:
    """Return "nan" or "inf" where a word begins as such a number, else nothing."""
    if match := _WORD.match(word):
        if match["nan"]:
            return "nan"
        return "inf"
    digits = _NUMBER.match(word)
    if digits and math.isinf(float(re.sub("[dD]", "e", digits[0]))):
        return "inf"
    return ""


def _is_whole(word: str) -> bool:
    """Whether a word is nan or infinity, rather than a name that begins as they do."""
    return word.lstrip("+-").lower() in {"nan", "inf", "infinity"}


# -- LP ----------------------------------------------------------------------------------------------------------------
def _look_through_lp(text: str, path: str) -> None:
    text = _COMMENT.sub("", text)
    bounds = _BOUNDS.search(text)
    if bounds:  # most infinities are ordinary bounds; without them most files are done with
        text = text[: bounds.end()] + _INFINITE_BOUND.sub("", text[bounds.end() :])
    if not _PERHAPS_IN_LP.search(text):
        return
    tokens = list(_tokens(text))
    for k, token in enumerate(tokens):
        odd = ""
        if token.kind in {"number", "word"}:
            odd = _odd(token.text)
        if odd and token.kind == "word" and not _is_whole(token.text):
            raise UnreadableFileError(
                "read",
                "names that do not begin as nan and infinity do",
                f"line {token.line} of {path!r} has {token.text[:60]!r}",
                "Readers of LP files take them for numbers: rename it.",
            )
        is_label = k + 1 < len(tokens) and tokens[k + 1].text == ":"
        if odd and not is_label and (odd == "nan" or not _is_side(tokens, k)):
            _refuse(token.line, path, token.text)


def _tokens(text: str) -> Iterator[_Token]:
    for number, line in enumerate(text.splitlines(), 1):
        for match in _LP_TOKEN.finditer(line):
            yield _Token(str(match.lastgroup), match[0], number)


def _is_side(tokens: list[_Token], k: int) -> bool:
    """Whether the number ``tokens[k]`` stands alone on its side of a relation."""
    before = k - 1
    while before >= 0 and tokens[before].text in {"+", "-"}:
        before -= 1
    after = None
    if k + 1 < len(tokens):
        after = tokens[k + 1]
    label = k + 2 < len(tokens) and tokens[k + 2].text == ":"
    if before >= 0 and tokens[before].kind == "relation":
        multiplies = after is not None and after.line == tokens[k].line and after.kind == "word" and not label
        return not multiplies and (after is None or after.text not in {"*", "/", "^", "["})
    if after is None or after.kind != "relation":
        return False
    if before < 0:
        return True
    kind, word, _ = tokens[before]
    return kind == "number" or word == ":" or word.lower() in _BEFORE_A_ROW or bool(_odd(word))


# -- MPS ---------------------------------------------------------------------------------------------------------------
def _look_through_mps(text: str, path: str) -> None:
    section = ""
    objective = ""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or line.startswith("*"):
            continue
        first = words[0].upper()
        if len(words) == 1 or (not line[0].isspace() and first in _WITH_A_NAME):
            section = first
        elif section == "ROWS" and first == "N":
            objective = objective or " ".join(words[1:])
        elif section in _COEFFICIENTS:
            for _, word in _pairs(words, odd_length=True):
                if _odd(word):
                    _refuse(number, path, word)
        elif section in _SIDES:
            for row, word in _pairs(words, odd_length=len(words) % 2 == 1):
                if _odd(word) == "nan" or (_odd(word) and section == "RHS" and row == objective):
                    _refuse(number, path, word)
        elif section == "BOUNDS" and first not in _BOUNDS_WITHOUT_A_NUMBER and _odd(words[-1]) == "nan":
            _refuse(number, path, words[-1])


def _pairs(words: list[str], *, odd_length: bool) -> list[tuple[str, str]]:
    """Return (name, number) of a line; where spaces in names blur them, the last one, which is sure."""
    start = 1 if odd_length else 0
    if (len(words) - start) % 2:
        return [(words[-2], words[-1])]
    return list(zip(words[start::2], words[start + 1 :: 2], strict=True))


def _refuse(line: int, path: str, word: str) -> None:
    raise UnreadableFileError(
        "read", "finite coefficients", f"line {line} of {path!r} has {word[:60]!r}", "Check the file."
    )

"""Texts of any length and origin made to fit: measured, shortened in the middle, broken into lines."""

from __future__ import annotations

import functools
import unicodedata
from typing import Final

__all__ = ["clean", "shortened", "width_pt", "wrapped"]

_ELLIPSIS: Final = "…"
#: The size at which letters are measured, and how wide one is, in sizes, that the font lacks: a wide one of Chinese.
_MEASURED_AT: Final = 100.0
_UNKNOWN: Final = 1.05
#: On few pixels letters are rounded up to whole ones.
_HINTED: Final = 1.04


def clean(text: object) -> str:
    """Return a text of one line in which everything can be drawn and written as XML; of an empty one, "(empty)"."""
    seen = [letter if letter.isprintable() or letter.isspace() else "�" for letter in str(text)]
    return " ".join("".join(seen).split()) or "(empty)"


def width_pt(text: str, size: float) -> float:
    """Return the width of a line in points, in matplotlib's own font; of letters that it lacks, an estimate."""
    return sum(_advance(letter) for letter in text) * size * _HINTED


@functools.lru_cache(maxsize=4096)
def _advance(letter: str) -> float:
    """Return the width of a letter at size 1."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    if unicodedata.combining(letter):
        return 0.0
    font = get_font(findfont(FontProperties()))
    if not font.get_char_index(ord(letter)):
        return _UNKNOWN
    font.set_size(_MEASURED_AT, 72.0)
    return font.load_char(ord(letter)).linearHoriAdvance / 65536.0 / _MEASURED_AT


def shortened(text: str, size: float, most_pt: float) -> str:
    """Return a text that is no wider: what is too much is taken from its middle, as long names differ at their ends."""
    if width_pt(text, size) <= most_pt:
        return text
    kept = len(text) - 1
    while kept > 1:
        head = (kept + 1) // 2
        tail = kept - head
        short = text[:head].rstrip() + _ELLIPSIS + text[len(text) - tail :].lstrip()
        if width_pt(short, size) <= most_pt:
            return short
        kept -= 1
    return text[:1] + _ELLIPSIS


def wrapped(text: str, size: float, most_pt: float, most_lines: int) -> str:
    """Return a text in lines that are no wider, broken at spaces and after ``_ - / .``; the last one is shortened."""
    lines: list[str] = []
    line = ""
    left = _pieces(text)
    while left:
        if len(lines) == most_lines - 1:
            line = shortened((line + "".join(left)).strip(), size, most_pt)
            break
        piece = left.pop(0)
        if not line or width_pt((line + piece).rstrip(), size) <= most_pt:
            line += piece
        else:
            lines.append(shortened(line.strip(), size, most_pt))
            line = piece
    return "\n".join([*lines, shortened(line.strip(), size, most_pt)])


def _pieces(text: str) -> list[str]:
    """Return the parts between which a line may break."""
    pieces = [""]
    for place, letter in enumerate(text):
        pieces[-1] += letter
        is_in_number = text[place + 1 : place + 2].isdigit()
        if letter in " _" or (letter in "-/." and not is_in_number):
            pieces.append("")
    return [piece for piece in pieces if piece]

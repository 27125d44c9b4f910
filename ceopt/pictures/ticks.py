"""Numbers along an axis: as many digits as tell neighbours apart, thousands with commas."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from ceopt.pictures.captions import ENGLISH

if TYPE_CHECKING:
    from matplotlib.axis import Axis

    from ceopt.pictures.captions import Captions

__all__ = ["number_ticks", "tick_text"]

_MOST: Final = 6
#: Powers of ten from, and below, which an axis is written with exponents, unless these hide what tells numbers apart.
_SMALL, _LARGE = -5, 9
_ALIKE: Final = 1e-3
_MINUS: Final = "\N{MINUS SIGN}"


def tick_text(value: float, low: float, high: float) -> str:
    """Return a number as text, on an axis from ``low`` to ``high``.

    Examples
    --------
    >>> tick_text(21_200.0, 2e4, 2.4e4), tick_text(0.25, 0.0, 1.5), tick_text(2e15, 0.0, 2e15), tick_text(-0.0, 0, 1)
    ('21,200', '0.25', '2e15', '0')
    >>> tick_text(1_700_000_100.0, 1_700_000_000.0, 1_700_000_300.0)
    '1,700,000,100'
    """
    width = abs(high - low)
    size = max(abs(low), abs(high))
    if abs(value) < _ALIKE * width:  # zero, up to the rounding of a sum of steps
        return "0"
    if not 10.0**_SMALL <= size < 10.0**_LARGE and width > _ALIKE * size:
        text = f"{value:.4g}"
        text = text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
    else:
        digits = max(0, 2 - math.floor(math.log10(width))) if width > 0.0 else 0
        text = f"{value:,.{digits}f}"
        if digits:
            text = text.rstrip("0").rstrip(".")
    return text.replace("-", _MINUS)


def number_ticks(axis: Axis, *, whole: bool = False, say: Captions = ENGLISH) -> None:
    """Give an axis of numbers, or of whole numbers, a few ticks, and texts that tell them apart, in a language."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    def text(value: float, _place: int | None = None) -> str:
        return say.number(tick_text(value, *axis.get_view_interval()))

    axis.set_major_locator(MaxNLocator(_MOST, steps=[1, 2, 2.5, 5, 10], integer=whole))
    axis.set_major_formatter(FuncFormatter(text))

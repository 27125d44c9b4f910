"""What a picture shows, read off its axes."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

__all__ = ["arrows", "names", "outside", "overlapping", "texts"]


def texts(ax: Any) -> list[str]:
    """What is written inside the axes, names of rows left out."""
    return [text.get_text() for text in ax.texts]


def names(ax: Any) -> list[str]:
    """Names of the rows, from above."""
    return [text.get_text() for text in ax.get_yticklabels()]


def arrows(ax: Any) -> list[float]:
    """Where the lines that begin at 0 end."""
    return [line.get_xdata()[-1] for line in ax.lines if len(line.get_xdata()) == 2]


def _boxes(ax: Any) -> list[tuple[str, Any]]:
    renderer = FigureCanvasAgg(ax.figure).get_renderer()
    ax.figure.draw(renderer)
    written = [*ax.texts, *ax.get_yticklabels(), ax._left_title, ax.xaxis.label]
    low, high = ax.get_xlim()
    written += [tick.label1 for tick in ax.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    if ax.get_legend() is not None:
        written += ax.get_legend().get_texts()
    return [(text.get_text(), text.get_window_extent(renderer)) for text in written if text.get_text()]


def overlapping(ax: Any) -> list[tuple[str, str]]:
    """Pairs of texts that run into each other by more than a pixel."""
    found = []
    for (one, a), (other, b) in combinations(_boxes(ax), 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        up = min(a.y1, b.y1) - max(a.y0, b.y0)
        if min(across, up) > 1.0:
            found.append((one, other))
    return found


def outside(ax: Any) -> list[str]:
    """Texts that the figure cuts off."""
    width, height = ax.figure.get_size_inches() * ax.figure.dpi
    return [
        text for text, box in _boxes(ax) if min(box.x0, box.y0) < -1.0 or box.x1 > width + 1.0 or box.y1 > height + 1.0
    ]


def offsets(lines: Any) -> Any:
    """Coordinates (k, 2) of lines of one point each."""
    return np.array([line.get_xydata()[0] for line in lines])

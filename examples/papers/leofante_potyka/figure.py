"""Table 9 drawn: what was measured, what is published, and what was published of DiCE."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

from leofante_potyka import protocol
from leofante_potyka.runs import MAIN

__all__ = ["draw"]

TITLES = {
    "k_distance": "k-distance",
    "set_distance_sum": "set distance, sum",
    "set_distance_max": "set distance, max",
}
COLOURS = {"l1": "#1b6ca8", "l2": "#c1541b"}
HEIGHTS = {"l1": -0.16, "l2": 0.16}


def draw(of: Callable[[str, str, str], tuple[float, float]], names: Sequence[str], path: Path) -> bool:
    """Draw a dot with one standard deviation for what was measured, and marks; False without matplotlib.

    Parameters
    ----------
    of
        Mean and spread of a data set, a norm and a measure.
    names
        The data sets.
    path
        The file.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        print('The figure needs matplotlib: pip install ".[plot]".')
        return False
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(10, 0.9 + 0.62 * len(names)), layout="constrained")
        axes = figure.subplots(1, len(TITLES), sharey=True)
        for ax, (measure, title) in zip(axes, TITLES.items(), strict=True):
            for (i, name), norm in itertools.product(enumerate(names), protocol.NORMS):
                mean, spread = of(name, norm, measure)
                height = i + HEIGHTS[norm]
                ax.errorbar(mean, height, xerr=spread, fmt="o", ms=5, lw=1, color=COLOURS[norm])
                if name in protocol.DATA_SETS:
                    ax.plot(_printed(name, norm, "ours", measure), height, "x", ms=6, color="black", zorder=5)
                    theirs = _printed(name, norm, "DiCE", measure)
                    ax.plot(theirs, height, "D", ms=6, color=COLOURS[norm], mfc="none", zorder=5)
            ax.set(title=title, yticks=range(len(names)), yticklabels=names, xlim=(0, None))
            ax.grid(axis="x", lw=0.4, color="0.85")
        axes[0].invert_yaxis()
        marks = [axes[0].plot([], [], "o", color=COLOURS[norm], label=f"ceopt, {norm}")[0] for norm in protocol.NORMS]
        marks += axes[0].plot([], [], "x", color="black", label="published")
        marks += axes[0].plot([], [], "D", color="0.4", mfc="none", label="published, DiCE")
        figure.legend(handles=marks, loc="outside lower center", ncols=4, frameon=False)
        figure.savefig(path, dpi=150)
    return True


def _printed(name: str, norm: str, method: str, measure: str) -> float:
    """Return a published mean of Table 9, of the released result files where the printed one is a misprint."""
    paper = protocol.published()
    for row in paper["differs"]:
        if (row["table"], row["data"], row["norm"], row["method"], row["metric"]) == (
            MAIN.number, name, norm, method, measure,
        ):  # fmt: skip
            return float(row["released"][0])
    for row in paper["rows"]:
        if (row["table"], row["data"], row["norm"], row["method"]) == (MAIN.number, name, norm, method):
            return float(row[measure][0])
    raise KeyError((name, norm, method))

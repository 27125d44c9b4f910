"""The comparison as dots: one panel a measure, one line a model, the published values marked."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ce_ocl.comparison_asking import summary
from ce_ocl.comparison_judged import MEASURES, asked, group, published

__all__ = ["draw"]

#: Method -> marker, colour, height within a line.
_OURS = {
    "pool": ("o", "#1b6ca8", -0.28),
    "nearest": ("o", "#5fb3e6", -0.14),
    "dice": ("D", "#c1541b", 0.18),
}
_PAPER = {"CE-OCL": ("x", "black", 0.0), "DiCE": ("+", "#c1541b", 0.32)}
_LABELS = {
    "pool": "ceopt, pool",
    "nearest": "ceopt, nearest",
    "dice": "dice-ml",
    "CE-OCL": "published, CE-OCL",
    "DiCE": "published, DiCE",
}
_FAINT = "0.7"


def draw(kept: Mapping[str, Any], names: Sequence[str], kinds: Sequence[str], path: Path) -> bool:
    """Draw means and standard errors; without matplotlib, say so."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        print('The figure needs matplotlib: pip install ".[plot]".')
        return False
    lines, drawn = list(itertools.product(names, kinds)), dict[str, tuple[str, str]]()
    with mpl.rc_context({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(17, 1.4 + 0.36 * len(lines)), layout="constrained")
        axes = figure.subplots(1, len(MEASURES), sharey=True)
        for ax, measure in zip(axes, MEASURES, strict=True):
            for i, (name, kind) in enumerate(lines):
                for method, (marker, colour, height) in _OURS.items():
                    value = summary(asked(group(kept, name, kind, method))).get(measure)
                    if value:
                        _dot(ax, i + height, value, fmt=marker, color=colour, ms=4)
                        drawn[_LABELS[method]] = (marker, colour)
                for method, (marker, colour, height) in _PAPER.items():
                    printed = published().get((3, name, kind, method), {}).get(measure)
                    if printed:
                        faint = kind == "boosting" and method == "CE-OCL"
                        _dot(ax, i + height, printed, fmt=marker, color=_FAINT if faint else colour, ms=5)
                        label = _LABELS[method] + " boosting (no target)" * faint
                        drawn[label] = (marker, _FAINT if faint else colour)
            continuous = measure.startswith("continuous")
            if continuous:
                ax.set_xscale("symlog", linthresh=1.0)
                ax.set_xticks(
                    [s * 10.0**k for k in (1, 3, 5) for s in (-1, 1) if (s < 0) == measure.endswith("proximity")]
                )
                ax.minorticks_off()
            ax.set(title=MEASURES[measure] + ("\n(symmetric log)" if continuous else ""), ylim=(len(lines) - 0.4, -0.6))
            ax.set_yticks(range(len(lines)), [kind for _, kind in lines])
            ax.grid(axis="x", lw=0.4, color="0.85")
            for i in range(len(names)):
                ax.axhline(i * len(kinds) - 0.5, lw=0.6, color="0.6")
        for i, name in enumerate(names):
            axes[0].text(
                -0.42,
                (i + 0.5) * len(kinds) - 0.5,
                name,
                rotation=90,
                va="center",
                ha="center",
                transform=axes[0].get_yaxis_transform(),
                weight="bold",
            )
        marks = [axes[0].plot([], [], m, color=c, label=label)[0] for label, (m, c) in drawn.items()]
        if marks:
            figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), frameon=False)
        figure.savefig(path, dpi=130)
    return True


def _dot(ax: Any, height: float, value: Sequence[float], **look: Any) -> None:
    ax.errorbar(value[0], height, xerr=value[1], lw=0.8, mew=1.2, **look)

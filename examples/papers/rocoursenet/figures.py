"""The figures of the study, drawn from its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["draw_attack", "draw_frontiers", "draw_training"]

Records = Mapping[str, Sequence[Mapping[str, Any]]]

COLOURS = {"RoCourseNet": "#1b6ca8", "CounterNet": "#c1541b", "ROAR-LIME": "#4c9a2a", "RBR": "#8a5aa8"}
MARKS = {"RoCourseNet": "o", "CounterNet": "s", "ROAR-LIME": "^", "RBR": "D"}
#: Sweep -> what its axis says, the figure of the paper, and whether it is drawn by logarithms.
SWEEPS = {
    "T": ("steps T of the attacker", "3a", False),
    "T, l2": ("steps T of the attacker, l2", "8", False),
    "E": ("radius E of the attacker", "3d", True),
}


def _axes(rows: int, columns: int, width: float, height: float) -> Any:
    from matplotlib import pyplot as plt

    return plt.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False, layout="constrained")


def _saved(figure: Any, path: Path) -> None:
    from matplotlib import pyplot as plt

    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_attack(found: Records, published: Mapping[str, Any], path: Path) -> None:
    """Draw validity under the attacker against its strength, ours and the released curves."""
    (records,) = found.values()
    figure, axes = _axes(1, len(SWEEPS), 3.8, 3.2)
    for axis, (sweep, (label, number, by_logarithm)) in zip(axes[0], SWEEPS.items(), strict=True):
        for kind in ("RoCourseNet", "CounterNet"):
            strengths = list(records[0][kind][sweep])
            values = np.array([[np.mean(record[kind][sweep][one]) for one in strengths] for record in records])
            at = [float(one) for one in strengths]
            axis.plot(at, values.mean(axis=0), MARKS[kind], ls="-", color=COLOURS[kind], ms=4, label=kind)
            axis.fill_between(at, values.min(axis=0), values.max(axis=0), color=COLOURS[kind], alpha=0.15, lw=0)
            curve = published[number][kind]
            theirs = [value for value, _ in curve.values()]
            axis.plot([float(one) for one in curve], theirs, ":", color=COLOURS[kind], label=f"{kind}, released")
        if by_logarithm:
            axis.set_xscale("log")
        axis.set_xlabel(label)
        axis.set_ylabel("validity under the attacker")
        axis.set_title(f"figure {number}", fontsize=9)
        axis.grid(alpha=0.25)
    axes[0, -1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    _saved(figure, path)


def draw_frontiers(found: Records, path: Path) -> None:
    """Draw mean proximity against validity and robust validity: a column a data set."""
    figure, axes = _axes(2, len(found), 3.8, 3.0)
    for column, (name, records) in zip(axes.T, found.items(), strict=True):
        for axis, measure in zip(column, ("robust", "validity"), strict=True):
            for method, colour in COLOURS.items():
                across = []
                up = []
                for level in records[0][method]:
                    across.append(np.mean([np.mean(record[method][level]["proximity"]) for record in records]))
                    up.append(np.mean([np.mean(record[method][level][measure]) for record in records]))
                order = np.argsort(across)
                line = (np.array(across)[order], np.array(up)[order])
                axis.plot(*line, MARKS[method], ls="-", lw=1.0, ms=4, color=colour, label=method)
            axis.set_title(f"{name} (figure 2)", fontsize=9)
            axis.set_xlabel("proximity, l1")
            axis.set_ylabel("robust validity" if measure == "robust" else "validity")
            axis.grid(alpha=0.25)
    axes[0, -1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    _saved(figure, path)


def draw_training(found: Records, path: Path) -> None:
    """Draw losses by epoch, and robust validity and proximity by what RoCourseNet was trained against."""
    (records,) = found.values()
    figure, axes = _axes(2, 3, 3.8, 3.0)
    for axis, loss in zip(axes[0], ("prediction", "validity", "proximity"), strict=True):
        for kind in ("RoCourseNet", "CounterNet"):
            for place, record in enumerate(records):
                values = record["losses"][kind][loss]
                label = kind if place == 0 else None
                axis.plot(np.arange(1, len(values) + 1), values, color=COLOURS[kind], lw=1.0, alpha=0.8, label=label)
        axis.set_title("figure 7", fontsize=9)
        axis.set_xlabel("epoch")
        axis.set_ylabel(f"loss of {loss}")
        axis.grid(alpha=0.25)
    axes[0, -1].legend(fontsize=8)
    titles = {"T": "T, figures 3b and 3c", "T, l2": "T, l2, figure 8", "E": "E, figures 3e and 3f"}
    for axis, (sweep, title) in zip(axes[1], titles.items(), strict=True):
        other = axis.twinx()
        for target, measure, colour in ((axis, "robust", "#1b6ca8"), (other, "proximity", "#777777")):
            strengths = list(records[0][sweep])
            means = [np.mean([np.mean(record[sweep][one][measure]) for record in records]) for one in strengths]
            target.plot(range(len(strengths)), means, "o-", color=colour, ms=4)
            target.set_ylabel("robust validity" if measure == "robust" else "proximity", color=colour)
        axis.set_xticks(range(len(strengths)), strengths)
        axis.set_xlabel(f"trained against {title}")
        axis.grid(alpha=0.25)
    _saved(figure, path)

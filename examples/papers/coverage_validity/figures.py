"""The figures of the study, drawn from its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["FRONTIERS", "draw_frontiers", "draw_planes", "draw_quality"]

#: Figure -> methods whose frontiers it shows.
FRONTIERS: Mapping[str, tuple[str, ...]] = {
    "5, 9": ("FR-MPM-PROJ", "LIME-ROAR", "CLIME-ROAR", "LIMELS-ROAR", "Wachter"),
    "10": ("FR-MPM-PROJ", "MPM-ROAR", "SVM-ROAR"),
    "11": ("FR-MPM-PROJ", "LIME-ROBUST-PROJ", "FR-MPM-Wachter", "MPM-PROJ", "LIME-PROJ"),
    "12": ("FR-MPM-PROJ", "Wachter", "LIME-PROJ", "MPM-PROJ"),
    "13": ("FR-MPM-PROJ", "QUAD-MPM-PROJ", "BW-MPM-PROJ", "LogDet-MPM-PROJ"),
    "16": ("FR-MPM-PROJ", "QUAD-MPM-PROJ", "FR-MPM-PROJ, 50 samples", "QUAD-MPM-PROJ, 50 samples"),
}
_COLOURS = ("#1b6ca8", "#c1541b", "#4c9a2a", "#8a5aa8", "#777777")
_MARKS = ("o", "s", "^", "D", "v")


def _axes(rows: int, columns: int, width: float, height: float) -> Any:
    from matplotlib import pyplot as plt

    return plt.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False, layout="constrained")


def _saved(figure: Any, path: Path) -> None:
    from matplotlib import pyplot as plt

    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_frontiers(folds: Mapping[str, Sequence[Mapping[str, Any]]], path: Path) -> None:
    """Draw mean cost against mean future validity: a row a figure of the paper, a column a data set."""
    figure, axes = _axes(len(FRONTIERS), len(folds), 3.6, 2.9)
    for row, (title, names) in zip(axes, FRONTIERS.items(), strict=True):
        for axis, (name, records) in zip(row, folds.items(), strict=True):
            for colour, mark, method in zip(_COLOURS, _MARKS, names, strict=False):
                each = [record["alone"][method] for record in records if record["alone"][method]["people"]]
                cost = np.mean([one["cost"] for one in each], axis=0)
                future = np.mean([one["future"] for one in each], axis=0)
                axis.plot(cost, future, mark, ls="-", lw=1.0, ms=3.5, color=colour, label=method)
            axis.set_title(f"{name} (figure {title})", fontsize=9)
            axis.set_xlabel("cost, l1")
            axis.set_ylabel("future validity")
            axis.grid(alpha=0.25)
        row[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    _saved(figure, path)


def draw_quality(folds: Mapping[str, Sequence[Mapping[str, Any]]], path: Path) -> None:
    """Draw fidelity and stability against the size of the sample: two columns a data set, a row a setting."""
    settings = [setting for setting in next(iter(folds.values()))[0] if setting != "classifiers"]
    figure, axes = _axes(len(settings), 2 * len(folds), 3.0, 2.7)
    for row, setting in zip(axes, settings, strict=True):
        for place, (name, records) in enumerate(folds.items()):
            for axis, measure in zip(row[2 * place : 2 * place + 2], ("fidelity", "stability"), strict=True):
                _draw_measure(axis, records, setting, measure)
                axis.set_title(f"{name} (figure {setting})", fontsize=9)
        row[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    _saved(figure, path)


def _draw_measure(axis: Any, records: Sequence[Mapping[str, Any]], setting: str, measure: str) -> None:
    sizes = list(records[0][setting])
    surrogates = list(records[0][setting][sizes[0]]["surrogates"])
    for colour, mark, surrogate in zip(_COLOURS, _MARKS, surrogates, strict=False):
        line = []
        for size in sizes:
            values = [record[setting][size]["surrogates"][surrogate][measure] for record in records]
            line.append(np.mean(values))
        axis.plot([int(size) for size in sizes], line, mark, ls="-", lw=1.0, ms=3.5, color=colour, label=surrogate)
    axis.set_xscale("log")
    axis.set_xlabel("samples")
    axis.set_ylabel(measure)
    axis.grid(alpha=0.25)


def draw_planes(folds: Mapping[str, Sequence[Mapping[str, Any]]], path: Path) -> None:
    """Draw the sample of one person and the line of each divergence: a column a radius."""
    record = next(one for records in folds.values() for one in records if one)
    divergences = list(record["lines"])
    radii = list(record["lines"][divergences[0]])
    figure, axes = _axes(1, len(radii), 3.4, 3.2)
    points = np.array(record["points"])
    favourable = np.array(record["favourable"], dtype=bool)
    low = points.min(axis=0)
    high = points.max(axis=0)
    for axis, radius in zip(axes[0], radii, strict=True):
        axis.scatter(*points[favourable].T, s=6, color="#4c9a2a", alpha=0.5, label="favourable")
        axis.scatter(*points[~favourable].T, s=6, color="#c1541b", alpha=0.5, label="unfavourable")
        axis.plot(*record["factual"], "k*", ms=9, label="the person")
        for colour, divergence in zip(("#1b6ca8", "#8a5aa8", "#222222"), divergences, strict=True):
            first, second, intercept = record["lines"][divergence][radius]
            across = np.linspace(low[0], high[0], 50)
            axis.plot(across, -(intercept + first * across) / second, color=colour, lw=1.4, label=divergence)
        axis.set_ylim(low[1] - 0.1, high[1] + 0.1)
        axis.set_title(f"radius {float(radius):g} (figures 3 and 14)", fontsize=9)
    axes[0, -1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    _saved(figure, path)

"""The changes of all parts side by side: a column an answer, a row a feature, the new value in the cell."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ce_ocl.study import Case, Found, Missed

__all__ = ["draw"]

#: A number's move of this many training ranges has the full colour.
FULL = 1.0
CATEGORY, GRID = "#d9d2e9", "0.85"


def draw(case: Case, tried: Sequence[Found | Missed], path: Path) -> None:
    """Draw the answers of all parts, and of a part that was not solved its name."""
    import matplotlib as mpl
    from matplotlib.colors import ListedColormap, TwoSlopeNorm
    from matplotlib.figure import Figure

    answers = [
        (each.part.letter, place, answer)
        for each in tried
        if isinstance(each, Found)
        for place, answer in enumerate(each.result)
    ]
    missed = {each.part.letter for each in tried if isinstance(each, Missed)}
    shown = {each.part.letter: len(each.result) if isinstance(each, Found) else 1 for each in tried}
    data = case.table.data
    names = [name for name in data if any(name in answer.changed for _, _, answer in answers)]
    names.sort(key=lambda name: name not in case.table.numbers)  # numbers first
    # Half way to white, so that the text can be read on every colour.
    pale = ListedColormap(0.45 + 0.55 * mpl.colormaps["RdBu_r"](range(256)))
    norm = TwoSlopeNorm(0.0, -FULL, FULL)
    places = [(letter, place) for letter, count in shown.items() for place in range(count)]
    gaps = {letter: 0.35 * k for k, letter in enumerate(shown)}
    left = {(letter, place): k + gaps[letter] for k, (letter, place) in enumerate(places)}
    width = len(places) + max(gaps.values())
    with mpl.rc_context({"font.size": 8, "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(2.6 + 0.98 * width, 1.6 + 0.56 * len(names)), layout="constrained")
        ax = figure.subplots()
        for (letter, place), x in left.items():
            if letter in missed:
                ax.text(x + 0.5, len(names) / 2, "not solved", ha="center", va="center", rotation=90, color="0.35")
                continue
            ax.text(x + 0.5, -0.18, "abc"[place], ha="center", va="bottom", color="0.35")
            for y in range(len(names)):
                ax.add_patch(mpl.patches.Rectangle((x, y), 1, 1, fc="white", ec=GRID, lw=0.6))
        for letter, place, answer in answers:
            x = left[letter, place]
            for y, name in enumerate(names):
                if name in answer.changed:
                    face, text = _cell(case, answer, name, pale, norm)
                    done = answer.why(name) == "action"
                    ax.add_patch(
                        mpl.patches.Rectangle((x, y), 1, 1, fc=face, ec="white", lw=1.5, hatch=None if done else "//")
                    )
                    size = 7.5 if len(text) <= 11 else 6.2
                    ax.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=size, linespacing=1.0)
        for each in tried:
            own = [x for (letter, _), x in left.items() if letter == each.part.letter]
            if own:
                middle = (min(own) + max(own) + 1) / 2
                ax.text(middle, -0.8, each.part.letter, ha="center", va="bottom", weight="bold", fontsize=11)
                ax.text(middle, -0.5, each.part.word, ha="center", va="bottom", fontsize=8)
        for y, name in enumerate(names):
            value = case.person[name].iloc[0]
            ax.text(-0.1, y + 0.36, name, ha="right", va="center", weight="bold", fontsize=8)
            ax.text(-0.1, y + 0.68, f"now {_short(value)}", ha="right", va="center", color="0.35", fontsize=7)
        ax.set(xlim=(-2.3, width + 0.05), ylim=(len(names) + 0.05, -1.3))
        ax.axis("off")
        bar = figure.colorbar(
            mpl.cm.ScalarMappable(norm, pale), ax=ax, orientation="horizontal", shrink=0.35, aspect=40, pad=0.01
        )
        bar.set_label("move of a number, as a share of its range; categories in lilac", fontsize=8)
        bar.outline.set_visible(False)  # type: ignore[operator]
        figure.savefig(path, dpi=150)


def _cell(case: Case, answer: Any, name: str, pale: Any, norm: Any) -> tuple[Any, str]:
    """Return colour and text of a changed cell."""
    value = answer.values[name]
    if name not in case.table.numbers:
        return CATEGORY, "\n".join(textwrap.wrap(_short(value), 15, max_lines=3, placeholder=" …"))
    move = (value - case.person[name].iloc[0]) / case.table.scale[name]
    return pale(norm(max(-FULL, min(FULL, move)))), _short(value)


def _short(value: Any) -> str:
    if isinstance(value, str):
        return value.replace("_", " ")
    return f"{value + 0.0:.4g}" if abs(value) < 1000 else f"{value:,.0f}"

"""Colours for light and for dark pages, that people who confuse red and green tell apart.

Rise and fall are blue and orange, which every common kind of colour blindness keeps apart; where a colour says
something, a shape, a dash or a text says it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

__all__ = ["DARK", "HATCHES", "LIGHT", "Palette", "palette"]

#: What tells areas apart where colours do not, as in print; drawn in the colour of the ground.
HATCHES: Final = ("", "//", "..", "\\\\", "xx", "--", "++")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """The colours of one ground.

    Parameters
    ----------
    ground, text, muted, grid
        The page, what is read, what is read second, and thin lines.
    rise, fall, other
        A number that goes up, one that goes down, and a level that becomes another.
    lines
        Of answers, best first; beyond them a ramp is taken.
    ramp
        Name of matplotlib's map for more lines, and the part of it that is seen on this ground.
    regions
        Of a model's decisions, pale: first what is wanted.
    statuses
        By status: what is served is blue and green, what is proved to be impossible orange, all else grey.
    """

    ground: str
    text: str
    muted: str
    grid: str
    rise: str
    fall: str
    other: str
    lines: tuple[str, ...]
    ramp: tuple[str, float, float]
    regions: tuple[str, ...]
    statuses: dict[str, str]


LIGHT: Final = Palette(
    ground="#ffffff",
    text="#1b1f24",
    muted="#5b6570",
    grid="#dfe3e8",
    rise="#0b66b2",
    fall="#c44e00",
    other="#5b6570",
    lines=("#0b66b2", "#c44e00", "#00805a", "#b8478c", "#8a6d00", "#4b3fb0"),
    ramp=("viridis", 0.0, 0.82),
    regions=("#cfe3f6", "#fae0cb", "#e2e4e8", "#d3eee2", "#f1d9ea", "#f3eabf"),
    statuses={
        "optimal": "#0b66b2",
        "feasible": "#5fa8dc",
        "already_favourable": "#00805a",
        "infeasible": "#c44e00",
        "time_limit": "#8b949e",
        "rejected": "#6e7781",
        "unbounded": "#b1bac4",
        "error": "#3d444d",
    },
)
DARK: Final = Palette(
    ground="#12161b",
    text="#e8ecf0",
    muted="#a0aab4",
    grid="#2f3740",
    rise="#5cb0f2",
    fall="#ff9a4d",
    other="#a0aab4",
    lines=("#5cb0f2", "#ff9a4d", "#3ecf9f", "#f08fc6", "#e6c84f", "#b3a6ff"),
    ramp=("viridis", 0.35, 1.0),
    regions=("#17405f", "#5c3513", "#343b44", "#134a38", "#4f2a45", "#4b4216"),
    statuses={
        "optimal": "#5cb0f2",
        "feasible": "#2f79b5",
        "already_favourable": "#3ecf9f",
        "infeasible": "#ff9a4d",
        "time_limit": "#848e99",
        "rejected": "#a9b3bd",
        "unbounded": "#5e6873",
        "error": "#d5dbe1",
    },
)


def palette(*, dark: bool) -> Palette:
    """Return the colours of a dark or a light ground."""
    if dark:
        return DARK
    return LIGHT

"""The picture of the house: which room imports which, read off the source files.

A room is a folder one level inside ``ceopt``, ``formulations`` or ``solvers``; the folders in ``predictors`` and
``constraints`` are rooms too, and so are the files that lie loose in a top folder, one storey's in one box. Every arrow
points down. Rooms that need each other stand in one box. An arrow is left out where others lead the same way.

Run: python docs/house.py     writes docs/house.svg, which CONTRIBUTING.md shows
"""

from __future__ import annotations

import graphlib
import math
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "house.svg"
sys.path.insert(0, str(ROOT / "tests"))

from import_graph import imports, modules  # noqa: E402 - a helper of the tests

#: The three folders, from the top, with the colours of their band, boxes' frames and arrows.
BANDS = {
    "ceopt": ("#eef4fb", "#2f6db3", "what a user calls and what comes back"),
    "formulations": ("#f1f8ee", "#4a8c34", "the statement of the problem, as Pyomo"),
    "solvers": ("#fdf4e8", "#b8741a", "how a stated model is solved"),
}
#: Folders whose own folders are rooms.
OPENED = ("formulations/constraints", "formulations/predictors")
#: Lists of public names, and the door of ``python -m``, are no rooms.
PUBLIC = ("__main__.py", *(f"{folder}/__init__.py" for folder in (*BANDS, "formulations/predictors")))

Graph = dict[str, set[str]]


# ---- rooms and the arrows between them -------------------------------------------------------------------------------
def room_of(path: str) -> str:
    """Return the room of a source file."""
    parts = path.split("/")
    folder = "/".join(parts[:2])
    if folder in OPENED and len(parts) > 3:
        return "/".join(parts[:3])
    return folder


def arrows() -> Graph:
    """Return the rooms that each room imports; the list of public names at the top of a package is no room."""
    files = {module: path for module, path in modules().items() if not path.endswith(PUBLIC)}
    graph: Graph = {room_of(path): set() for path in files.values()}
    for found in imports():
        if found.module in files and found.target in files:
            graph[room_of(files[found.module])].add(room_of(files[found.target]))
    for room, below in graph.items():
        below.discard(room)
    return graph


def circles(graph: Mapping[str, set[str]]) -> dict[str, str]:
    """Return for each room the first, by name, of those that it reaches and that reach it."""
    below = {room: reached(graph, room) for room in graph}
    first = {}
    for room in graph:
        mutual = [other for other in below[room] if room in below[other]]
        first[room] = min([room, *mutual])
    return first


def reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """Return every node that a path of arrows leads to."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for following in graph[waiting.pop()]:
            if following not in found:
                found.add(following)
                waiting.append(following)
    return found


def merged(graph: Mapping[str, set[str]], name_of: Mapping[str, str]) -> Graph:
    """Return the graph of groups of nodes, each under the name of its group."""
    result: Graph = {name_of[node]: set() for node in graph}
    for node, below in graph.items():
        result[name_of[node]] |= {name_of[other] for other in below}
    for name, below in result.items():
        below.discard(name)
    return result


def storeys(graph: Mapping[str, set[str]]) -> dict[str, int]:
    """Return each node's storey above the ground of its band: one more than the highest below it."""
    storey: dict[str, int] = {}
    for node in graphlib.TopologicalSorter(graph).static_order():
        under = [storey[other] for other in graph[node] if band_of(other) == band_of(node)]
        storey[node] = max(under, default=-1) + 1
    return storey


def reduced(graph: Mapping[str, set[str]]) -> Graph:
    """Return the fewest arrows that lead everywhere where these do."""
    beyond = {node: reached(graph, node) for node in graph}
    result: Graph = {}
    for node, below in graph.items():
        by_others = set[str]().union(*(beyond[other] for other in below))
        result[node] = below - by_others
    return result


def band_of(node: str) -> str:
    """Return the top folder of a node."""
    return node.partition("/")[0]


# ---- boxes and their places ------------------------------------------------------------------------------------------
#: In units of the picture: the height of a line, the room between boxes and between rows, the rim, what the name of a
#: band takes, and the width of a letter.
LINE = 17.0
GAP = 26.0
STOREY = 36.0
MARGIN = 28.0
BAND_GAP = 52.0
LETTER = 7.6
FONT = 'font-family="Helvetica, Arial, sans-serif" font-size="13"'
#: How often the order of each row, and then the places in it, are improved.
SWEEPS = 120
#: How much more an arrow that passes wants to be straight than a box to be in the middle.
STRAIGHT = 4.0
#: Loose files are listed in lines of about so many letters.
LETTERS = 24


@dataclass
class Box:
    """A room, several that need each other, or the loose files of a storey: its lines and its place."""

    band: str
    row: int
    lines: list[str] = field(default_factory=list)
    loose: bool = False
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        """A corner of an arrow that passes this row takes little room."""
        if not self.lines:
            return 12.0
        return max(len(line) for line in self.lines) * LETTER + 26.0

    @property
    def height(self) -> float:
        """Of all lines."""
        return LINE * len(self.lines) + 14.0 if self.lines else 0.0


def boxes(graph: Mapping[str, set[str]]) -> tuple[dict[str, Box], Graph]:
    """Return what is drawn: boxes by name, in rows counted from the top, and the arrows between them."""
    first = circles(graph)
    rooms = merged(graph, first)
    storey = storeys(rooms)
    members = defaultdict[str, list[str]](list)
    for room in sorted(graph):
        members[first[room]].append(room)

    name_of = {}
    for node in rooms:
        is_loose = node.endswith(".py") and len(members[node]) == 1
        name_of[node] = f"{band_of(node)}/files of storey {storey[node]}" if is_loose else node
    drawn = merged(rooms, name_of)

    above = 0
    top_row = {}
    for band in BANDS:
        top_row[band] = above + max(storey[node] for node in rooms if band_of(node) == band)
        above = top_row[band] + 1
    placed: dict[str, Box] = {}
    for node in sorted(rooms):
        band, name = band_of(node), name_of[node]
        box = placed.setdefault(name, Box(band, top_row[band] - storey[node], loose=name != node))
        for room in members[node]:
            box.lines.append(room.removeprefix(f"{band}/").removesuffix(".py"))
    for box in placed.values():
        if box.loose:
            box.lines = textwrap.wrap(", ".join(box.lines), LETTERS)
    return placed, reduced(drawn)


def with_corners(placed: dict[str, Box], graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Give each arrow a corner in every row that it passes; return the arrows as chains of boxes."""
    top_row = {band: min(box.row for box in placed.values() if box.band == band) for band in BANDS}
    chains = []
    for upper, below in sorted(graph.items()):
        for lower in sorted(below):
            chain = [upper]
            for row in range(placed[upper].row + 1, placed[lower].row):
                corner = f"{upper} > {lower} in {row}"
                band = max((band for band in BANDS if top_row[band] <= row), key=lambda band: top_row[band])
                placed[corner] = Box(band, row)
                chain.append(corner)
            chains.append([*chain, lower])
    return chains


def neighbours(chains: Iterable[Sequence[str]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return what is joined to each box in the row above and in the row below."""
    above, below = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for chain in chains:
        for upper, lower in pairwise(chain):
            above[lower].append(upper)
            below[upper].append(lower)
    return above, below


def crossings(rows: Sequence[Sequence[str]], below: Mapping[str, Sequence[str]]) -> int:
    """Count the pairs of arrows that cross."""
    total = 0
    for upper, lower in pairwise(rows):
        place = {name: k for k, name in enumerate(lower)}
        ends = []
        for name in upper:
            ends += sorted(place[other] for other in below.get(name, ()))  # arrows of one box do not cross
        for k, end in enumerate(ends):
            total += sum(later < end for later in ends[k + 1 :])
    return total


def ordered(placed: Mapping[str, Box], chains: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the rows, each from left to right, with few crossings: every box near the middle of its neighbours."""
    above, below = neighbours(chains)
    count = 1 + max(box.row for box in placed.values())
    rows = [sorted(name for name, box in placed.items() if box.row == row) for row in range(count)]
    best, fewest = [list(row) for row in rows], crossings(rows, below)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        joined = above if downwards else below
        for row in range(count) if downwards else reversed(range(count)):
            beside = row - 1 if downwards else row + 1
            if not 0 <= beside < count:
                continue
            share = {name: (k + 0.5) / len(rows[beside]) for k, name in enumerate(rows[beside])}
            now = {name: (k + 0.5) / len(rows[row]) for k, name in enumerate(rows[row])}
            middle = {name: mean([share[other] for other in joined[name]], now[name]) for name in rows[row]}
            rows[row].sort(key=lambda name: (middle[name], now[name]))
        found = crossings(rows, below)
        if found < fewest:
            best, fewest = [list(row) for row in rows], found
    return best


def mean(values: Sequence[float], otherwise: float) -> float:
    """Return the mean, or something else of nothing."""
    return math.fsum(values) / len(values) if values else otherwise


def spaced(wanted: Sequence[float], apart: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the places nearest to the wanted ones, in weighted squares, each so far from the one before it.

    With the distances taken off, places only have to rise: neighbours that do not are joined at their mean.
    """
    offset, offsets = 0.0, []
    for distance in apart:
        offset += distance
        offsets.append(offset)
    blocks: list[list[float]] = []  # of the places that are joined: their weighted sum, their weight, their number
    for x, before, weight in zip(wanted, offsets, weights, strict=True):
        blocks.append([weight * (x - before), weight, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            joined = blocks.pop()
            blocks[-1] = [one + other for one, other in zip(blocks[-1], joined, strict=True)]
    levels = []
    for total, weight, number in blocks:
        levels += [total / weight] * int(number)
    return [level + before for level, before in zip(levels, offsets, strict=True)]


def place(placed: Mapping[str, Box], rows: Sequence[Sequence[str]], chains: Sequence[Sequence[str]]) -> None:
    """Set the places of all boxes: each near its neighbours, none on another."""
    above, below = neighbours(chains)
    for row in rows:
        x = 0.0
        for name in row:
            placed[name].x = x + placed[name].width / 2
            x += placed[name].width + GAP
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = []
            for name in row:
                joined = above[name] + below[name]
                wanted.append(mean([placed[other].x for other in joined], placed[name].x))
            apart = [0.0]
            for left, right in pairwise(row):
                apart.append((placed[left].width + placed[right].width) / 2 + GAP)
            weights = [1.0 if placed[name].lines else STRAIGHT for name in row]
            for name, x in zip(row, spaced(wanted, apart, weights), strict=True):
                placed[name].x = x
    left = min(box.x - box.width / 2 for box in placed.values())
    y, band = MARGIN, ""
    for row in rows:
        height = max(placed[name].height for name in row)
        if placed[row[0]].band != band:
            band = placed[row[0]].band
            y += BAND_GAP
        for name in row:
            placed[name].x += 2 * MARGIN - left
            placed[name].y = y + height / 2
        y += height + STOREY


# ---- the picture -----------------------------------------------------------------------------------------------------
def drawn() -> str:
    """Return the picture as SVG."""
    placed, graph = boxes(arrows())
    chains = with_corners(placed, graph)
    rows = ordered(placed, chains)
    place(placed, rows, chains)
    width = max(box.x + box.width / 2 for box in placed.values()) + 2 * MARGIN
    height = max(box.y + box.height / 2 for box in placed.values()) + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" {FONT}>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
    ]
    for band in BANDS:
        parts += band_drawn(band, [box for box in placed.values() if box.band == band], width)
    for chain in chains:
        parts.append(arrow_drawn([placed[name] for name in chain]))
    for box in placed.values():
        if box.lines:
            parts += box_drawn(box)
    return "\n".join([*parts, "</svg>"]) + "\n"


def band_drawn(band: str, own: Sequence[Box], width: float) -> list[str]:
    """Return a band behind its boxes, and its name."""
    fill, colour, about = BANDS[band]
    top = min(box.y - box.height / 2 for box in own) - BAND_GAP
    bottom = max(box.y + box.height / 2 for box in own) + MARGIN / 2
    ground = (
        f'<rect x="{MARGIN / 2:.0f}" y="{top:.1f}" width="{width - MARGIN:.0f}" height="{bottom - top:.1f}" rx="10" '
        f'fill="{fill}"/>'
    )
    name = (
        f'<text x="{width - MARGIN:.0f}" y="{top + 22:.1f}" text-anchor="end" fill="{colour}" font-size="16" '
        f'font-weight="bold">{band}/</text>'
        f'<text x="{width - MARGIN:.0f}" y="{top + 40:.1f}" text-anchor="end" fill="{colour}" font-size="12">{about}'
        "</text>"
    )
    return [ground, name]


def box_drawn(box: Box) -> list[str]:
    """Return a box and its lines; loose files have a broken frame."""
    colour = BANDS[box.band][1]
    dashes = ' stroke-dasharray="4 3"' if box.loose else ""
    left, top = box.x - box.width / 2, box.y - box.height / 2
    frame = (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="6" fill="white" '
        f'stroke="{colour}" stroke-width="1.3"{dashes}/>'
    )
    parts = [frame]
    weight = "normal" if box.loose else "bold"
    for k, line in enumerate(box.lines):
        y = top + 7.0 + LINE * (k + 0.75)
        parts.append(
            f'<text x="{box.x:.1f}" y="{y:.1f}" text-anchor="middle" font-weight="{weight}" fill="#222">{line}</text>'
        )
    return parts


def arrow_drawn(chain: Sequence[Box]) -> str:
    """Return an arrow from the foot of the first box to the head of the last, smooth through the corners between."""
    first, last = chain[0], chain[-1]
    points = [(first.x, first.y + first.height / 2)]
    points += [(corner.x, corner.y) for corner in chain[1:-1]]
    points += [(last.x, last.y - last.height / 2 - 5.0)]
    slopes = [0.0]  # upright at both ends, in between along the line from the corner before to the one after
    for (x0, y0), (x1, y1) in zip(points, points[2:], strict=False):
        slopes.append((x1 - x0) / (y1 - y0))
    slopes.append(0.0)
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for k, ((x0, y0), (x1, y1)) in enumerate(pairwise(points)):
        third = (y1 - y0) / (2.0 if len(points) == 2 else 3.0)
        path += f" C{x0 + slopes[k] * third:.1f} {y0 + third:.1f} {x1 - slopes[k + 1] * third:.1f} {y1 - third:.1f}"
        path += f" {x1:.1f} {y1:.1f}"
    x, y = points[-1]
    colour = BANDS[first.band][1]
    head = f"M{x - 4:.1f} {y - 2:.1f} L{x + 4:.1f} {y - 2:.1f} L{x:.1f} {y + 5:.1f} Z"
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.1" opacity="0.6"/><path d="{head}" '
        f'fill="{colour}" opacity="0.8"/>'
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")

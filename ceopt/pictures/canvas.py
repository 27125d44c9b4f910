"""What every picture is drawn on: axes in the colours of their ground, captions, texts that fit, rows and ticks.

Rise and fall are blue and orange, which every common kind of colour blindness keeps apart; where a colour says
something, a shape, a dash or a text says it too. Names stand inside the axes, so that no layout of a figure cuts a long
one off.
"""

from __future__ import annotations

import functools
import io
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from ceopt.base.libraries import require_library
from ceopt.solvers.checks import Flag
from ceopt.solvers.errors import InvalidTypeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# ==== What stands in pictures, in each language that is shipped =======================================================


@final
@dataclass(frozen=True, slots=True)
class Captions:
    """Texts by name, and how numbers are written.

    Parameters
    ----------
    texts
        Name -> text, with fields in curly brackets.
    marks
        What stands in place of the comma and the point of an English number, in this order.
    """

    texts: Mapping[str, str]
    marks: str = ",."

    def put(self, name: str, /, **fields: Any) -> str:
        """Return a text with its fields put in."""
        return self.texts[name].format_map(fields)

    def count(self, name: str, count: int, /, **fields: Any) -> str:
        """Return a text about a number of things, which differs for one."""
        if count == 1:
            name = f"{name}_one"
        return self.put(name, count=self.number(f"{count:,}"), **fields)

    def number(self, text: str) -> str:
        """Return an English number with the marks of the language."""
        return text.translate(str.maketrans(",.", self.marks))


ENGLISH: Final = Captions(
    {
        "answer": "Answer {rank} of {count}: {target}, cost {cost}",
        "answer_of_row": "Row {row}, answer {rank} of {count}: {target}, cost {cost}",
        "answers": "All answers: {target}; each axis from its least to its greatest value",
        "answers_of_row": "Row {row}, all answers: {target}; each axis from its least to its greatest value",
        "moves_foot": "move / scale, which is the column's median absolute deviation; another level moves 1",
        "moves_foot_short": "move / scale; another level moves 1",
        "moves_foot_least": "move / scale",
        "held": "held",
        "stays": "stays",
        "action": "action",
        "consequence": "consequence",
        "true": "True",
        "false": "False",
        "as_it_is": "as it is",
        "line": "answer {rank}, cost {cost}",
        "line_short": "answer {rank}",
        "not_drawn": "{count} columns stay as they are and are not drawn",
        "not_drawn_one": "1 column stays as it is and is not drawn",
        "unordered": "dotted: levels in no order",
        "surface": "What the model decides; {others}",
        "others_as_in_row": "other columns as in the row",
        "others_as_in_answer": "other columns as in answer {rank}",
        "others_named": "{others}: {values}",
        "meets_target": "meets the target",
        "misses_target": "misses the target",
        "model_says": "the model says {label}",
        "model_says_else": "the model says something else",
        "model_says_value": "the model says",
        "changes": "What the best answers change, of {count} people with an answer",
        "changes_one": "What the best answers change, of 1 person with an answer",
        "people": "people",
        "share_of_answered": "% of the group's people with an answer",
        "share_bar": "{group}: {share} %, {part} of {whole}",
        "all": "all",
        "raised": "raised",
        "lowered": "lowered",
        "another_level": "another level",
        "filled_in": "filled in",
        "left_blank": "left blank",
        "missing": "missing",
        "costs": "What the best answers cost",
        "costs_foot": "cost of the best answer",
        "costs_foot_logarithmic": "cost of the best answer (logarithmic)",
        "have_answer": "{part} of {whole} have an answer",
        "median": "median {cost}; {note}",
        "nobody_needs": "nobody needs one",
        "statuses": "Statuses of {count} rows",
        "statuses_one": "Statuses of 1 row",
        "rows": "rows",
        "share_of_rows": "% of the group's rows",
        "served": "{part} of {whole} served",
        "optimal": "optimal",
        "feasible": "feasible",
        "infeasible": "infeasible",
        "time_limit": "time limit",
        "rejected": "rejected",
        "already_favourable": "already favourable",
        "unbounded": "unbounded",
        "error": "error",
    },
)
_GERMAN: Final = Captions(
    {
        "answer": "Weg {rank} von {count}: {target}, Kosten {cost}",
        "answer_of_row": "Zeile {row}, Weg {rank} von {count}: {target}, Kosten {cost}",
        "answers": "Alle Wege: {target}; jede Achse vom kleinsten zum größten Wert",
        "answers_of_row": "Zeile {row}, alle Wege: {target}; jede Achse vom kleinsten zum größten Wert",
        "moves_foot": "Änderung / Median der absoluten Abweichungen der Spalte; eine andere Stufe zählt 1",
        "moves_foot_short": "Änderung / Abweichung; eine andere Stufe zählt 1",
        "moves_foot_least": "Änderung / Abweichung",
        "held": "wird gehalten",
        "stays": "bleibt",
        "action": "zu tun",
        "consequence": "folgt daraus",
        "true": "Ja",
        "false": "Nein",
        "as_it_is": "wie es ist",
        "line": "Weg {rank}, Kosten {cost}",
        "line_short": "Weg {rank}",
        "not_drawn": "{count} Spalten bleiben, wie sie sind, und sind nicht gezeichnet",
        "not_drawn_one": "1 Spalte bleibt, wie sie ist, und ist nicht gezeichnet",
        "unordered": "gepunktet: Stufen ohne Reihenfolge",
        "surface": "Was das Modell entscheidet; {others}",
        "others_as_in_row": "andere Spalten wie in der Zeile",
        "others_as_in_answer": "andere Spalten wie in Weg {rank}",
        "others_named": "{others}: {values}",
        "meets_target": "erreicht das Ziel",
        "misses_target": "verfehlt das Ziel",
        "model_says": "das Modell sagt {label}",
        "model_says_else": "das Modell sagt etwas anderes",
        "model_says_value": "das Modell sagt",
        "changes": "Was die besten Wege ändern, bei {count} Personen mit einem Weg",
        "changes_one": "Was der beste Weg ändert, bei 1 Person mit einem Weg",
        "people": "Personen",
        "share_of_answered": "% der Personen der Gruppe mit einem Weg",
        "share_bar": "{group}: {share} %, {part} von {whole}",
        "all": "alle",
        "raised": "erhöht",
        "lowered": "gesenkt",
        "another_level": "andere Stufe",
        "filled_in": "angegeben",
        "left_blank": "ohne Angabe gelassen",
        "missing": "ohne Angabe",
        "costs": "Was die besten Wege kosten",
        "costs_foot": "Kosten des besten Weges",
        "costs_foot_logarithmic": "Kosten des besten Weges (logarithmisch)",
        "have_answer": "{part} von {whole} haben einen Weg",
        "median": "Median {cost}; {note}",
        "nobody_needs": "niemand braucht einen",
        "statuses": "Ergebnisse von {count} Zeilen",
        "statuses_one": "Ergebnis von 1 Zeile",
        "rows": "Zeilen",
        "share_of_rows": "% der Zeilen der Gruppe",
        "served": "{part} von {whole} beantwortet",
        "optimal": "Weg, bewiesen der beste",
        "feasible": "Weg",
        "infeasible": "bewiesen: keiner",
        "time_limit": "Zeit war um",
        "rejected": "Prüfung nicht bestanden",
        "already_favourable": "Ziel schon erreicht",
        "unbounded": "keine kleinsten Kosten",
        "error": "konnte nicht gefragt werden",
    },
    marks=".,",
)
#: Language -> what its pictures say.
CAPTIONS: Final[Mapping[str, Captions]] = {"en": ENGLISH, "de": _GERMAN}


# ==== Colours for light and for dark pages, that people who confuse red and green tell apart ==========================

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


# ==== Texts of any length and origin made to fit: measured, shortened in the middle, broken into lines ================

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
    return sum(map(_advance, text)) * size * _HINTED


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
    return list(filter(None, pieces))


# ==== Where a picture is drawn: axes of its own on a figure that nothing else holds, or those that were given =========

#: Sizes of letters, in points.
_TITLE: Final = 10.5
SMALL: Final = 8.5
#: Inches: the width of a picture of its own, and the rims of one whose texts all stand inside its axes.
_WIDTH: Final = 7.2
_SIDE, _HEAD, _FOOT = 0.28, 0.42, 0.56
_RIM: Final = 0.12
#: Points that a line of the legend takes, and what an entry takes beside its text.
_LEGEND_LINE: Final = 14.0
_LEGEND_MARK: Final = 40.0
_PIXELS_PER_INCH: Final = 110


@final
@dataclass(frozen=True, slots=True)
class Canvas:
    """Axes, the colours of their ground, and their size in points."""

    ax: Axes
    colours: Palette
    width_pt: float
    height_pt: float

    @property
    def is_laid_out(self) -> bool:
        """Whether matplotlib makes room for what stands about the axes; else there is little, and none for legends."""
        return self.ax.figure.get_layout_engine() is not None

    def settled(self, labels: Sequence[str]) -> Canvas:
        """Return the same with the size that matplotlib leaves to axes of their own below a title and a legend."""
        self.title("A title", above_pt=self.above_pt(labels))
        figure: Any = self.ax.figure
        if hasattr(self.ax, "_repr_png_"):
            figure.draw_without_rendering()
        return _measured(self.ax, self.colours)

    def title(self, text: str, *, above_pt: float = 0.0) -> None:
        """Write a title at the left, in two lines where it takes them, as long as there is room."""
        fitting = wrapped(text, _TITLE, self.width_pt, 1 + self.is_laid_out)
        self.ax.set_title(
            fitting, loc="left", fontsize=_TITLE, color=self.colours.text, parse_math=False, pad=6.0 + above_pt
        )

    def foot(self, *texts: str) -> None:
        """Write the first of some texts that fits below the axes, or the last one shortened."""
        text = shortened(texts[-1], SMALL, self.width_pt)
        for wanted in reversed(texts):
            if width_pt(wanted, SMALL) <= self.width_pt:
                text = wanted
        self.ax.set_xlabel(text, fontsize=SMALL, color=self.colours.muted, parse_math=False)

    def legend_pt(self, labels: Sequence[str]) -> float:
        """Return the height in points of a legend in the head of the axes, with the room below it."""
        if not labels:
            return 0.0
        return math.ceil(len(labels) / self._legend_columns(labels)) * _LEGEND_LINE + 8.0

    def above_pt(self, labels: Sequence[str]) -> float:
        """Return the height of a legend above the axes: none where it stands in them, as there is no room."""
        if not self.is_laid_out:
            return 0.0
        return self.legend_pt(labels)

    def legend(self, handles: Sequence[Any], labels: Sequence[str], *, in_head: bool = True) -> None:
        """Draw a legend in the head of the axes, which must be empty, or above them, or where it covers least."""
        fitting = [shortened(label, SMALL, self.width_pt - _LEGEND_MARK) for label in labels]
        placed: dict[str, Any] = {"loc": "upper left", "borderaxespad": 0.0, "frameon": False}
        placed["ncols"] = self._legend_columns(labels)
        if not in_head and self.is_laid_out:
            placed |= {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
        elif not in_head:
            placed = {"loc": "best", "facecolor": self.colours.ground, "edgecolor": self.colours.grid}
        legend = self.ax.legend(
            handles,
            fitting,
            fontsize=SMALL,
            labelcolor=self.colours.text,
            handlelength=1.8,
            columnspacing=1.4,
            **placed,
        )
        legend.set_in_layout(False)
        for text in legend.get_texts():
            text.set_parse_math(False)

    def _legend_columns(self, labels: Sequence[str]) -> int:
        widest = max([width_pt(label, SMALL) for label in labels], default=0.0) + _LEGEND_MARK
        return max(1, min(len(labels), int(self.width_pt / widest)))


def _measured(ax: Axes, colours: Palette) -> Canvas:
    box = ax.get_window_extent()
    points = 72.0 / ax.figure.dpi
    return Canvas(ax, colours, box.width * points, box.height * points)


_DARK: Final = Flag()


def canvas(who: str, ax: Any, *, dark: bool, height: float, width: float = _WIDTH, inside: bool = True) -> Canvas:
    """Return the axes to draw on, in the colours of their ground.

    Parameters
    ----------
    who
        What errors name.
    ax
        Axes of the caller, or None for a figure of its own.
    dark
        Whether the ground is dark; that of the figure to which given axes belong becomes so too.
    height, width
        Of a figure of its own, in inches.
    inside
        Whether no text stands beside the axes: then they are as wide as the figure, and else laid out by matplotlib.

    Raises
    ------
    MissingLibraryError
        matplotlib is not installed.
    InvalidTypeError
        ``ax`` is something else, or ``dark`` is no truth value.
    """
    require_library(who, "matplotlib")
    from matplotlib.axes import Axes

    colours = LIGHT
    if _DARK.require(who, "dark", dark):
        colours = DARK
    if ax is None:
        ax = _own_axes(height, width, inside=inside)
    if not isinstance(ax, Axes):
        but = f"ax is {type(ax).__name__}"
        raise InvalidTypeError(who, "Axes of matplotlib, or None, as ax", but, "Give one, as of plt.subplots().")
    ax.figure.set_facecolor(colours.ground)
    ax.set_facecolor(colours.ground)
    for side, spine in ax.spines.items():
        spine.set_color(colours.grid)
        spine.set_linewidth(0.8)
        spine.set_visible(side == "bottom" or not inside)
    ax.tick_params(colors=colours.muted, labelsize=SMALL, width=0.8)
    return _measured(ax, colours)


def _own_axes(height: float, width: float, *, inside: bool) -> Axes:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if inside:
        figure = Figure(figsize=(width, height), dpi=_PIXELS_PER_INCH)
        tall = height - _HEAD - _FOOT
        ax = figure.add_axes((_SIDE / width, _FOOT / height, 1.0 - 2.0 * _SIDE / width, tall / height))
    else:
        figure = Figure(
            figsize=(width, height), dpi=_PIXELS_PER_INCH, layout=ConstrainedLayoutEngine(w_pad=_RIM, h_pad=_RIM)
        )
        ax = figure.add_subplot()
    # Jupyter shows figures of pyplot by itself, and of all else what it finds under this name.
    setattr(ax, "_repr_png_", partial(_png, figure))  # noqa: B010 - matplotlib's class does not declare it
    return ax


def _png(figure: Figure) -> bytes:
    written = io.BytesIO()
    figure.savefig(written, format="png")
    return written.getvalue()


# ==== A picture of rows: one below the other, each with its name above what is drawn of it ============================

#: Inches of a line of a row in a picture of its own: its name takes one, and each mark. What title, foot and rims take.
_LINE: Final = 0.25
_AROUND: Final = 0.98
#: In lines from the top of a row: the middles of its name and of its first mark, and from mark to mark.
_NAME, _MARK, _NEXT = 0.48, 1.28, 0.86
_LARGEST, _LEAST = 9.0, 3.5
_ROUNDS: Final = 60


def row_names(canvas: Canvas, places: Sequence[float], names: Sequence[str], size: float) -> None:
    """Write the names of rows at their heights, inside the axes."""
    canvas.ax.set_yticks(
        places, labels=names, ha="left", va="center", fontsize=size, color=canvas.colours.text, parse_math=False
    )
    canvas.ax.tick_params(axis="y", length=0, pad=0)


@final
@dataclass(frozen=True, slots=True)
class RowLayout:
    """Where the rows are.

    Parameters
    ----------
    marks
        Heights of what is drawn in each row, from above.
    line
        The height of a line, in rows.
    size
        That of letters, in points.
    """

    marks: tuple[tuple[float, ...], ...]
    line: float
    size: float


def height_of(count: int, *, marks: int = 1, legend_pt: float = 0.0) -> float:
    """Return the height in inches of a picture with so many rows, of so many marks each."""
    return _AROUND + max(count, 1) * _LINE * (marks + 1) + legend_pt / 72.0


def lay_rows(
    canvas: Canvas, names: Sequence[str], notes: Sequence[str] = (), *, marks: int = 1, legend_pt: float = 0.0
) -> RowLayout:
    """Lay out rows over the height of the axes, and write their names, and notes at their right ends.

    Parameters
    ----------
    canvas
        Where.
    names, notes
        One a row, an empty note for none.
    marks
        How many marks a row has, one below the other.
    legend_pt
        Points left free above the first row.
    """
    ax = canvas.ax
    count = len(names)
    line = 1.0 / (marks + 1)
    row_pt = max((canvas.height_pt - legend_pt) / count, 1.0)
    size = max(min(row_pt * line / 2.0, _LARGEST), _LEAST)
    ax.set_ylim(count - 0.5, -0.5 - legend_pt / row_pt)
    tops = [place - 0.5 + _NAME * line for place in range(count)]
    room = [canvas.width_pt] * count
    for place, note in enumerate(notes):
        if not note:
            continue
        fitting = shortened(note, size, 0.7 * canvas.width_pt)
        room[place] -= width_pt(fitting, size) + size
        ax.text(
            1.0, tops[place], fitting, transform=ax.get_yaxis_transform(), ha="right", va="center", fontsize=size,
            color=canvas.colours.muted, parse_math=False, in_layout=False,
        )  # fmt: skip
    fitting_names = [shortened(name, size, most) for name, most in zip(names, room, strict=True)]
    row_names(canvas, tops, fitting_names, size)
    if count > 1:
        between = [place - 0.5 for place in range(1, count)]
        ax.hlines(between, 0.0, 1.0, transform=ax.get_yaxis_transform(), lw=0.6, color=canvas.colours.grid, zorder=0.5)
    heights = []
    for place in range(count):
        heights.append(tuple(place - 0.5 + (_MARK + _NEXT * mark) * line for mark in range(marks)))
    return RowLayout(tuple(heights), line, size)


def limits_that_fit(places: Sequence[tuple[float, float, float]], width_pt: float) -> tuple[float, float]:
    """Return the ends of an axis on which every (place, points to its left, points to its right) has its room."""
    first = min(place for place, _, _ in places)
    last = max(place for place, _, _ in places)
    if first == last:
        first -= 0.5
        last += 0.5
    low, high = first, last
    for _ in range(_ROUNDS):  # each round asks for less: all texts together are narrower than the axis
        a_point = (high - low) / width_pt
        low = min(first, *(place - left * a_point for place, left, _ in places))
        high = max(last, *(place + right * a_point for place, _, right in places))
    return low, high


# ==== Numbers along an axis: as many digits as tell neighbours apart, thousands with commas ===========================

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

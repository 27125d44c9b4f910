"""A picture as SVG to stand inside a page: the same text each time, whatever else the page holds."""

from __future__ import annotations

import html
import io
import re
import threading
from typing import TYPE_CHECKING, Any, Final

from ceopt.base.libraries import require_library
from ceopt.pictures.canvas import clean
from ceopt.solvers.checks import AbstractCheck, Refusal, Text, check_arguments
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["svg"]

_WHO: Final = "svg"
_CHECKS: Final[dict[str, AbstractCheck]] = {
    "prefix": Text(Refusal("text as {name}", "Give another to each picture of a page.", error=InvalidTypeError)),
    "title": Text(),
}
#: matplotlib reads from its global settings how it writes SVG; one picture at a time has them its own way.
_SETTINGS: Final = threading.Lock()
_TAG: Final = re.compile(r"<[^<>]+>")
_NAMED: Final = re.compile(r'(\sid="|url\(#|href="#)')
_ROOT: Final = re.compile(r"<svg\b[^>]*>")
_VIEW: Final = re.compile(r'viewBox="([^"]*)"')
_LETTERS: Final = re.compile(r"[A-Za-z][\w-]*")


def svg(picture: Axes | Figure, *, prefix: str = "picture", title: str = "") -> str:
    """Return a picture as an ``<svg>`` element for a page of HTML, or a file of its own.

    Texts stay texts: they can be searched, read aloud and copied, and take no room for outlines; matplotlib escapes
    what XML would read. Widths are those of matplotlib's own font, which is wider than what a browser without it takes
    instead, so that texts may become narrower and do not run into each other. The element is as wide as the picture or
    as the room it has. No display is needed, and matplotlib's settings are afterwards what they were.

    Parameters
    ----------
    picture
        What a ``plot`` returned, or its figure: all of it is drawn.
    prefix
        Begins every id, so that no two pictures of a page share one: letters, digits, ``_`` and ``-``.
    title
        What is read aloud in its place; by default the titles of its axes.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        No picture, or a prefix that cannot begin an id.
    MissingLibraryError
        matplotlib is not installed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> _ = ax.set_title("a < b")
    >>> text = svg(ax, prefix="first")
    >>> text[:5], "a &lt; b</text>" in text, 'id="first-axes_1"' in text, text == svg(ax, prefix="first")
    ('<svg ', True, True, True)
    """
    require_library(_WHO, "matplotlib")
    check_arguments(_WHO, _CHECKS, locals())
    if not _LETTERS.fullmatch(prefix):
        but = f"prefix is {prefix!r}"
        raise InvalidValueError(_WHO, "a prefix of letters, digits, _ and -", but, "Begin it with a letter.")
    figure = _figure_of(picture)
    written = _TAG.sub(lambda tag: _NAMED.sub(rf"\g<1>{prefix}-", tag[0]), _written(figure))
    root = _ROOT.search(written)
    assert root is not None  # noqa: S101 - matplotlib has written it
    body = written[root.end() :].replace("*{", f"#{prefix}-figure_1 *{{", 1)  # its style is for this picture alone
    return _root(root[0], title or _titles(figure)) + body.rstrip() + "\n"


def _figure_of(picture: Any) -> Figure:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    figure = picture
    while isinstance(figure, Axes | SubFigure):
        figure = figure.figure
    if not isinstance(figure, Figure):
        but = f"it is {type(picture).__name__}"
        raise InvalidTypeError(_WHO, "the Axes or the Figure of a picture", but, "Give what plot returned.")
    return figure


def _written(figure: Figure) -> str:
    import matplotlib as mpl

    held = io.StringIO()
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "ceopt", "savefig.bbox": "standard"}
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with _SETTINGS, mpl.rc_context(settings):
        figure.savefig(held, format="svg", metadata=nothing)
    return held.getvalue()


def _titles(figure: Figure) -> str:
    titles = []
    for axes in figure.axes:
        title = axes.get_title("left") or axes.get_title()
        if title:
            titles.append(title)
    return "; ".join(titles)


def _root(tag: str, title: str) -> str:
    """Return the element's beginning, without the lengths that would keep it from shrinking."""
    view = _VIEW.search(tag)
    assert view is not None  # noqa: S101 - matplotlib has written it
    width = view[1].split()[2]
    label = html.escape(clean(title or "picture"), quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{view[1]}" '
        f'width="{width}pt" role="img" aria-label="{label}" style="max-width: 100%; height: auto">'
    )

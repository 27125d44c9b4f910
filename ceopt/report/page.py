"""A page of HTML that stands alone: styles, pictures and the script that sorts are inside; all text is escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from ceopt.extras import require_library
from ceopt.pictures.svg import svg
from ceopt.report.headings import HEADINGS
from ceopt.solvers.checks import AbstractCheck, Choice, OrNone, Text, check_arguments
from ceopt.solvers.errors import printable
from ceopt.solvers.whole_files import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["picture", "require_report", "write_page"]

_CHECKS: Final[dict[str, AbstractCheck]] = {"title": OrNone(Text()), "language": Choice(tuple(HEADINGS))}
_TEMPLATES: Final = "ceopt.report"


def require_report(who: str, *, title: Any, language: Any) -> Mapping[str, str]:
    """Return the headings of a report, or refuse it before any of its pictures is drawn.

    Raises
    ------
    MissingLibraryError
        jinja2 or matplotlib is not installed.
    UnknownNameError, InvalidTypeError
        A language that is not shipped; a title that is no text.
    """
    require_library(who, "jinja2")
    require_library(who, "matplotlib")
    checked = check_arguments(who, _CHECKS, {"title": title, "language": language})
    return HEADINGS[checked["language"]]


def picture(draw: Callable[..., Axes], prefix: str) -> dict[str, Any]:
    """Return a picture for a light page and for a dark one, as SVG in which matplotlib has escaped every text.

    Parameters
    ----------
    draw
        Draws it, given ``dark``.
    prefix
        Begins the ids within it, so that no two pictures of a page share one.
    """
    return {
        "light": svg(draw(dark=False), prefix=f"{prefix}-light"),
        "dark": svg(draw(dark=True), prefix=f"{prefix}-dark"),
    }


def write_page(who: str, path: Any, template: str, *, title: str, language: str, **content: Any) -> None:
    """Write one file of HTML.

    Parameters
    ----------
    template
        Its name.
    content
        What the template puts in; text is escaped, and shows control characters as they are written.

    Raises
    ------
    UnwritableFileError
        The file cannot be written.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_shown,
    )  # fmt: skip
    script = _file("sort.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment.get_template(template).render(
        title=title,
        language=language,
        say=HEADINGS[language],
        version=version("ceopt"),
        style=_file("style.css"),
        script=script,
        script_hash=f"sha256-{digest}",
        **content,
    )
    write_text(who, path, page)


def _shown(value: Any) -> Any:
    """Return what a template puts in; markup of ours, such as a picture, as it is."""
    return printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _file(name: str) -> str:
    return files(_TEMPLATES).joinpath("templates", name).read_text(encoding="utf-8")

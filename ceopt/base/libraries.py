"""Optional libraries and their extras, and the versions that decide an answer."""

from __future__ import annotations

import functools
import importlib
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Final

from ceopt.solvers.errors import MissingLibraryError

# ==== Libraries that an extra brings ==================================================================================

#: Library -> the extra that brings it.
_EXTRAS: Final[Mapping[str, str]] = {"jinja2": "report", "matplotlib": "plot"}


def require_library(who: str, library: str) -> None:
    """Refuse to go on where a library is not installed, and name its extra.

    Raises
    ------
    MissingLibraryError
        It is missing.
    """
    try:
        importlib.import_module(library)
    except ImportError as error:
        then = f"Install it: pip install 'ceopt[{_EXTRAS[library]}]'."
        raise MissingLibraryError(who, library, "it is not installed", then) from error


# ==== Versions that decide an answer: of Python and of the libraries that take part ===================================


@functools.cache
def versions(*libraries: str) -> dict[str, str]:
    """Return the versions of Python, ceopt, the libraries of every answer, and those named, in that order."""
    names = ("ceopt", *libraries, "numpy", "pandas", "scikit-learn")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}

"""Libraries that only an extra brings: whether they are there."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Final

from ceopt.solvers.errors import MissingLibraryError

__all__ = ["require_library"]

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

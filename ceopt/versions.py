"""The versions that decide an answer: of Python and of the libraries that take part."""

from __future__ import annotations

import functools
import platform
from importlib.metadata import version

__all__ = ["versions"]


@functools.cache
def versions(*libraries: str) -> dict[str, str]:
    """Return the versions of Python, ceopt, the libraries of every answer, and those named, in that order."""
    names = ("ceopt", *libraries, "numpy", "pandas", "scikit-learn")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}

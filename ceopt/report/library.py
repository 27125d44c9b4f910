"""Jinja, which the extra ``report`` brings: whether it is there."""

from __future__ import annotations

from ceopt.solvers.errors import MissingLibraryError

__all__ = ["require_jinja"]


def require_jinja(who: str) -> None:
    """Refuse to write a report where Jinja is not installed.

    Raises
    ------
    MissingLibraryError
        It is missing.
    """
    try:
        import jinja2  # noqa: F401 - only whether it can be imported
    except ImportError as error:
        then = "Install it: pip install 'ceopt[report]'."
        raise MissingLibraryError(who, "jinja2", "it is not installed", then) from error

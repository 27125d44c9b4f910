"""matplotlib, which the extra ``plot`` brings: whether it is there."""

from __future__ import annotations

from ceopt.solvers.errors import MissingLibraryError

__all__ = ["require_matplotlib"]


def require_matplotlib(who: str) -> None:
    """Refuse to draw where matplotlib is not installed.

    Raises
    ------
    MissingLibraryError
        It is missing.
    """
    try:
        import matplotlib  # noqa: F401, ICN001 - only whether it can be imported
    except ImportError as error:
        then = "Install it: pip install 'ceopt[plot]'."
        raise MissingLibraryError(who, "matplotlib", "it is not installed", then) from error

"""What a test does where a commercial solver is missing or its licence has run out."""

from __future__ import annotations

import pytest

from ceopt.solvers.registry import SOLVERS


def skip_without(solver: str) -> None:
    """Skip the test, with the reason, where ``solver`` cannot be used here."""
    why_not = SOLVERS[solver].why_not
    if why_not:
        pytest.skip(why_not)

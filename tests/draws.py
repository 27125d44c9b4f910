"""How many examples a property is tested on: a tenth of them by default, all of them with ``--long``."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

__all__ = ["DEFAULT", "draws", "number_of_draws", "take_all"]

#: Examples of a property that says nothing of their number.
DEFAULT = 100
#: Even the shortest run looks at so many.
LEAST = 3

_taken = {"all": False}


def take_all() -> None:
    """Let every property take all of its examples; conftest calls it before the test files are read."""
    _taken["all"] = True


def number_of_draws(number: int) -> int:
    """Return how many of so many examples are taken."""
    return number if _taken["all"] else max(number // 10, LEAST)


def draws(number: int, *parents: settings, **options: Any) -> settings:
    """Test a property on so many examples with ``--long``, else on a tenth of them."""
    return settings(*parents, max_examples=number_of_draws(number), **options)

"""How many examples a property is tested on: a tenth of them by default, half of them with ``--long``.

The examples are the same each time; ``--hypothesis-profile=others`` takes others, and more.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings

__all__ = ["DEFAULT", "draws", "is_long", "number_of_draws", "take_many"]

#: Examples of a property that says nothing of their number.
DEFAULT = 100
#: Even the shortest run looks at so many.
LEAST = 3

_taken = {"one in": 10}


def take_many() -> None:
    """Let every property take half of its examples; conftest calls it before the test files are read."""
    _taken["one in"] = 2


def is_long() -> bool:
    """Whether ``--long`` was given."""
    return _taken["one in"] == 2


def number_of_draws(number: int) -> int:
    """Return how many of so many examples are taken."""
    return max(number // _taken["one in"], LEAST)


def draws(number: int, *parents: settings, **options: Any) -> settings:
    """Test a property on so many examples with ``--long``: on half of them, else on a tenth."""
    return settings(*parents, max_examples=number_of_draws(number), **options)

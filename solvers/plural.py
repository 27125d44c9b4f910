"""Numbers of things in a sentence: 1 row, 2 rows."""

from __future__ import annotations

__all__ = ["counted", "each_of"]


def counted(number: int, thing: str, *, things: str = "") -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row"), counted(0, "person", things="people")
    ('1 row', '2000 rows', '0 people')
    """
    if number == 1:
        return f"1 {thing}"
    return f"{number} {things or thing + 's'}"


def each_of(number: int, thing: str) -> str:
    """Return each of a number of things in words.

    Examples
    --------
    >>> each_of(1, "row"), each_of(3, "row")
    ('1 row', 'each of 3 rows')
    """
    if number == 1:
        return f"1 {thing}"
    return f"each of {counted(number, thing)}"

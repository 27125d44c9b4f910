"""Damage to files: cut off anywhere, any byte flipped, any field edited. All of it with --long, else a sample."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from draws import is_long

#: What stands in place of a field: every kind of JSON, and what the marks of our own formats may hold.
OTHER_VALUES = [
    None, True, 5, -1, 0.5, "x", "", [], [1], {}, {"a": 1}, {"float": "x"}, {"float": "nan"}, {"float": 1},
    {"pairs": 1}, {"pairs": [[1]]}, {"pairs": [[{"pairs": []}, 2]]}, {"pairs": [[[1], 2]]}, {"tuple": 1},
    {"tuple": [[]]}, {"time": "x"}, {"time": None}, {"time": "NaT"}, {"missing": None}, 1e308, 10**400, -(2**63),
    [[[]]], "\ud800", "a\udfffb", "\x00", "9" * 400, [None], [{}], {"": None},
]  # fmt: skip


#: How far apart the values are of which one place gets some.
_APART = 12


def _every(every: int) -> int:
    """Return how far apart the places are that are tried: ``every`` without --long."""
    return 1 if is_long() else every


def cut(whole: bytes, *, every: int) -> Iterator[bytes]:
    """Give what is left of a file that was cut off, at each place."""
    for end in range(0, len(whole), _every(every)):
        yield whole[:end]


def flipped(whole: bytes, *, every: int) -> Iterator[bytes]:
    """Give a file with one byte that is another: its last bit, its first, and all bits, in turn."""
    for place in range(0, len(whole), _every(every)):
        damaged = bytearray(whole)
        damaged[place] ^= (0x01, 0x80, 0xFF)[place % 3]
        yield bytes(damaged)


def edited(document: Any, *, most: int) -> Iterator[Any]:
    """Give a document with another value in one place, or without that place: with --long each place, a few values."""
    edits: list[tuple[tuple[Any, ...], list[Any]]] = []
    for turn, path in enumerate(places(document)):
        edits += [(path, [value]) for value in OTHER_VALUES[turn % _APART :: _APART]]
        if path:
            edits.append((path, []))
    if _every(2) > 1 and len(edits) > most:
        edits = random.Random(0).sample(edits, most)
    for path, values in edits:
        yield with_value(document, path, values[0]) if values else without(document, path)


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Give the way to everything in a document."""
    yield path
    if isinstance(document, dict):
        for key, part in document.items():
            yield from places(part, (*path, key))
    elif isinstance(document, list):
        for key, part in enumerate(document):
            yield from places(part, (*path, key))


def with_value(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy of a document with a value in a place."""
    if not path:
        return value
    document = copy.deepcopy(document)
    part = document
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return document


def without(document: Any, path: tuple[Any, ...]) -> Any:
    """Return a copy of a document without a place."""
    document = copy.deepcopy(document)
    part = document
    for key in path[:-1]:
        part = part[key]
    del part[path[-1]]
    return document

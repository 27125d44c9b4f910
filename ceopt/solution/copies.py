"""Results that nobody changes by accident: what they hand out of their Series, frames and mappings is a copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

__all__ = ["hands_out_copies"]

Class = TypeVar("Class")


def hands_out_copies(*names: str) -> Callable[[type[Class]], type[Class]]:
    """Make the slots ``names`` of a class give a copy at each reading; None and what has no ``copy`` as it is.

    A Series or frame is copied with its cells, a mapping with its keys and values as they are. Pickles hold what the
    slots hold, so that what several objects share is still shared.
    """

    def decorate(cls: type[Class]) -> type[Class]:
        slots = [cls.__dict__[field.name] for field in fields(cls)]  # type: ignore[arg-type]  # each is a dataclass
        for name in names:
            slot = cls.__dict__[name]
            setattr(cls, name, property(_copied(slot), slot.__set__, doc=f"A copy of {name}."))

        def state(self: Any) -> list[Any]:
            return [slot.__get__(self) for slot in slots]

        cls.__getstate__ = state  # type: ignore[method-assign]  # the one that a dataclass of slots has
        return cls

    return decorate


def _copied(slot: Any) -> Callable[[Any], Any]:
    def read(self: Any) -> Any:
        held = slot.__get__(self)
        return held.copy() if hasattr(held, "copy") else held

    return read

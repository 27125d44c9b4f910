"""Results that nobody changes by accident: what they hand out is a copy, and some of it is made when first read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast, final

from ceopt.solvers.errors import printable

__all__ = ["hands_out_copies", "when_read"]

Class = TypeVar("Class")
Value = TypeVar("Value")


@final
@dataclass(frozen=True, slots=True)
class _WhenRead:
    """Stands in a slot for a value that nobody has read."""

    make: Callable[[], Any]


def when_read(make: Callable[[], Value]) -> Value:
    """Return what stands for a value in one of the slots that hand out copies: it is made once somebody reads it.

    ``make`` reads nothing that can change or is large: it may run much later, or never, and keeps what it reads alive.
    """
    return cast("Value", _WhenRead(make))


def hands_out_copies(*names: str) -> Callable[[type[Class]], type[Class]]:
    """Make the slots ``names`` of a class give a copy at each reading; None and what has no ``copy`` as it is.

    A Series or frame is copied with its cells, a mapping with its keys and values as they are. Text shows control
    characters as they are written. Pickles hold what the slots hold, so that what several objects share is still
    shared; a value that stands to be made :func:`when_read` is made before.
    """

    def decorate(cls: type[Class]) -> type[Class]:
        slots = [cls.__dict__[field.name] for field in fields(cls)]  # type: ignore[arg-type]  # each is a dataclass
        for name in names:
            slot = cls.__dict__[name]
            setattr(cls, name, property(_copied(slot), slot.__set__, doc=f"A copy of {name}."))

        def state(self: Any) -> list[Any]:
            return [_held(self, slot) for slot in slots]

        cls.__getstate__ = state  # type: ignore[method-assign]  # the one that a dataclass of slots has
        return cls

    return decorate


def _copied(slot: Any) -> Callable[[Any], Any]:
    def read(self: Any) -> Any:
        held = _held(self, slot)
        if isinstance(held, str):
            return printable(held)
        return held.copy() if hasattr(held, "copy") else held

    return read


def _held(instance: Any, slot: Any) -> Any:
    """Return what a slot holds, which is made where nobody has read it before."""
    held = slot.__get__(instance)
    if isinstance(held, _WhenRead):
        held = held.make()
        slot.__set__(instance, held)
    return held

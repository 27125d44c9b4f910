"""Fixed Vars that a block was built around: its rows hold for these values alone, so others are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from ceopt.solvers.errors import InvalidValueError

__all__ = ["Held"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Values that fixed Vars of a block must keep, because the rest of the block was derived from them.

    Parameters
    ----------
    component
        Local name of the indexed Var.
    values
        Index -> value, in the Var's own units.
    of
        Whose values they are, as an error says it: "the person's own".
    then
        What to do for other values, a full sentence.
    words
        Index -> what the whole values 0, 1, ... stand for, where they stand for something.
    """

    component: str
    values: Mapping[Any, float]
    of: str
    then: str
    words: Mapping[Any, tuple[Any, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", dict(self.values))
        object.__setattr__(self, "words", dict(self.words))

    def check(self, block: Any, who: str) -> None:
        """Refuse a block whose Vars hold other values, or none.

        Raises
        ------
        InvalidValueError
            A Var is not fixed, or not to its value.
        """
        container = block.component(self.component)
        if container is None:
            return
        for index in self.values:
            var = container[index]
            if not var.fixed:
                raise self._refusal(block, index, who, f"Var {var.name!r} is not fixed")
            self.check_one(block, index, var.value, who)

    def check_one(self, block: Any, index: Any, value: float | None, who: str) -> None:
        """Refuse another value of one Var."""
        if value != self.values[index]:
            name = block.component(self.component)[index].name
            raise self._refusal(block, index, who, f"{name!r} is {self._text(index, value)}")

    def _refusal(self, block: Any, index: Any, who: str, but: str) -> InvalidValueError:
        own = self._text(index, self.values[index])
        return InvalidValueError(who, f"{index!r} of block {block.name!r} to be {own}, {self.of}", but, self.then)

    def _text(self, index: Any, value: float | None) -> str:
        if value is None:
            return "without a value"
        words = self.words.get(index, ())
        return f"{int(value)} ({words[int(value)]!r})" if value in range(len(words)) else repr(float(value))

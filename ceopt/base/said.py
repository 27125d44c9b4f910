"""English text that remembers what it says, so that other languages can say it too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, final

from ceopt.solvers.errors import printable

#: Phrases without a template: a text as it stands, and several phrases one after the other.
VERBATIM: Final = "verbatim"
TOGETHER: Final = "together"


@final
@dataclass(frozen=True, slots=True)
class Phrase:
    """What one sentence says, before it is said in a language.

    Parameters
    ----------
    name
        Of the template that says it.
    fields
        Name -> what is put in: text that stays as it is, a number, another phrase, or a tuple of these, which becomes a
        list.
    """

    name: str
    fields: Mapping[str, Any]


@final
class Said(str):
    """English text, and the phrases that it is made of.

    It is text like any other; what is made of it by an f-string or by a method of text has forgotten its phrases. The
    text shows control characters as they are written, the phrases keep what they were given.
    """

    __slots__ = ("phrases",)
    phrases: tuple[Phrase, ...]

    def __new__(cls, text: str, phrases: tuple[Phrase, ...]) -> Said:
        """Make a text of these phrases."""
        new = super().__new__(cls, text if text.isprintable() else printable(text))
        new.phrases = phrases
        return new

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the phrases in pickles and copies."""
        return Said, (str(self), self.phrases)


def said(text: str, name: str, **fields: Any) -> Said:
    """Return an English text that says one phrase.

    Examples
    --------
    >>> reason = said("The time limit of 5 s is used up while reading the model.", "time_used_up", limit_s=5.0)
    >>> reason.startswith("The time"), reason.phrases[0].fields
    (True, {'limit_s': 5.0})
    """
    return Said(text, (Phrase(name, {word: _field(value) for word, value in fields.items()}),))


def together(*texts: str) -> str:
    """Return several texts as one, a space between them; empty ones are passed over.

    Examples
    --------
    >>> both = together(said("It is late.", "late"), "", "HiGHS stopped.")
    >>> both, [phrase.name for phrase in both.phrases]
    ('It is late. HiGHS stopped.', ['late', 'verbatim'])
    """
    known = list(filter(None, texts))
    if len(known) < 2:
        return next(iter(known), "")
    return Said(" ".join(known), tuple(chain.from_iterable(map(phrases_of, known))))


def instead(text: str, old: Said, new: str) -> str:
    """Return a text of :func:`together` in which another stands for one of its parts; as it is where that is not there.

    Examples
    --------
    >>> both = together(said("It is late.", "late"), said("Ask again.", "again"))
    >>> text = instead(both, said("Ask again.", "again"), said("It is done.", "done"))
    >>> text, [phrase.name for phrase in text.phrases]
    ('It is late. It is done.', ['late', 'done'])
    """
    before, found, after = text.partition(old)
    if not found:
        return text
    known = " ".join(part.strip() for part in (before, new, after) if part.strip())
    phrases = phrases_of(text)
    for place in range(len(phrases)):
        end = place + len(old.phrases)
        if phrases[place:end] == old.phrases:
            return Said(known, (*phrases[:place], *phrases_of(new), *phrases[end:]))
    return known


def phrases_of(text: str) -> tuple[Phrase, ...]:
    """Return the phrases of a text; a plain text is its own only phrase."""
    if isinstance(text, Said):
        return text.phrases
    if not text:
        return ()
    return (Phrase(VERBATIM, {"text": text}),)


def phrase_in(text: str) -> Phrase:
    """Return all that a text says as one phrase."""
    phrases = phrases_of(text)
    if len(phrases) == 1:
        return phrases[0]
    return Phrase(TOGETHER, {"parts": phrases})


def _field(value: Any) -> Any:
    if isinstance(value, Said):
        return phrase_in(value)
    if isinstance(value, tuple):
        return tuple(map(_field, value))
    return value

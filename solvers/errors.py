"""Errors: one sentence that says who needs what, what was given, and what to do; and how text is shown to a person.

Every class is a :class:`CeoptError` and also the built-in that fits, so that callers may catch either. The message is
the only argument kept, which makes every error picklable and so able to cross a process boundary. Names of columns and
levels come from files of strangers: a message, and whatever else is printed, shows them by :func:`printable`.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Final, Self

__all__ = [
    "CeoptError",
    "InvalidTypeError",
    "InvalidValueError",
    "MissingLibraryError",
    "MissingLicenceError",
    "OutOfMemoryError",
    "UnboundedFeatureError",
    "UnknownNameError",
    "UnreadableFileError",
    "UnsupportedModelError",
    "UnsupportedProblemError",
    "UnwritableFileError",
    "printable",
    "within_memory",
]

# ==== Errors ==========================================================================================================

#: What a terminal obeys or hides instead of showing it: C0 (with line feed and tab), DEL and C1; marks, embeddings,
#: overrides and isolates of the direction of writing; separators of lines and paragraphs; marks of annotations and of
#: byte order; halves of surrogate pairs, which cannot be encoded.
_UNSHOWN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def printable(text: str, *, keep: str = "", as_json: bool = False) -> str:
    r"""Return a text with what a terminal obeys or hides written as Python writes it: ``\x1b``, ``\n``, ``\u202e``.

    A text that has nothing of the kind is returned itself; so is one that was escaped before.

    Parameters
    ----------
    text
        Whatever its origin; of several lines only where ``keep`` says so.
    keep
        Characters that are kept: the line feeds of a text whose parts were escaped before.
    as_json
        Of a text that is JSON: written as JSON writes it, so that who reads it gets the very same text.

    Examples
    --------
    >>> print(printable("income\x1b]0;mine\x07"), printable("age \u202e 5"), printable("Größe"))
    income\x1b]0;mine\x07 age \u202e 5 Größe
    """
    if _UNSHOWN.search(text) is None:
        return text
    write = json.dumps if as_json else repr
    return _UNSHOWN.sub(lambda found: found[0] if found[0] in keep else write(found[0])[1:-1], text)


class CeoptError(Exception):
    """Misuse, said before work starts, in one sentence.

    ``<who> needs <what>, but <name> is <value>. <What to do>.``

    Parameters
    ----------
    who
        The function, class or option that complains; the whole message if ``needs`` is empty.
    needs
        What it needs.
    but
        What it got instead, naming the culprit (a column, value, option or file).
    then
        What to do, as a full sentence with its stop.
    """

    def __init__(self, who: str, needs: str = "", but: str = "", then: str = "") -> None:
        super().__init__(printable(f"{who} needs {needs}, but {but}. {then}".rstrip() if needs else who))


class InvalidValueError(CeoptError, ValueError):
    """A value is of the right type, but not one that makes sense here."""


class InvalidTypeError(CeoptError, TypeError):
    """A value is of the wrong type."""


class UnknownNameError(CeoptError, ValueError):
    """A column, option, cost, rule or solver that does not exist."""

    @classmethod
    def among(
        cls,
        who: str,
        what: str,
        name: object,
        choices: Iterable[object],
        *,
        quoted: bool = False,
        cutoff: float = 0.6,
    ) -> Self:
        """Name the culprit, the choices (texts ``quoted`` among other values) and, where one is close, the meaning.

        Close is a share of at least ``cutoff`` of letters in common: "leaves" means "leaf" (0.6).
        """
        choices = list(choices)
        known = [str(choice) for choice in choices]
        close = difflib.get_close_matches(str(name), known, n=1, cutoff=cutoff)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        if isinstance(name, str) and name in known:  # only the type differs
            meant = next(choice for choice in choices if str(choice) == name)
            hint = f"It is the text {name!r}; did you mean {meant!r}, of type {type(meant).__name__}? "
        listed = ", ".join(map(repr, choices) if quoted else known)
        return cls(who, f"a known {what}", f"{what} is {name!r}", f"{hint}Choose from: {listed}.")


class UnsupportedModelError(CeoptError, TypeError):
    """A fitted model, or a step or option of it, that cannot be represented exactly."""


class UnsupportedProblemError(CeoptError, ValueError):
    """A program of a class that the chosen solver does not solve."""


class UnboundedFeatureError(CeoptError, ValueError):
    """A formulation needs a finite bound that a column does not have."""


class MissingLibraryError(CeoptError, ImportError):
    """An optional library is not installed."""


class MissingLicenceError(CeoptError, RuntimeError):
    """A solver is installed, but its licence is missing or too small for this model."""


class UnreadableFileError(CeoptError, ValueError):
    """A file that is missing, truncated or not what its name says."""


class UnwritableFileError(InvalidValueError, OSError):
    """A path that cannot be written, or a disk that takes no more."""


class OutOfMemoryError(CeoptError, MemoryError):
    """Memory ran out where there is no result that could say so."""


@contextlib.contextmanager
def within_memory(who: str) -> Iterator[None]:
    """Name who ran out of memory; as a decorator or around a block."""
    try:
        yield
    except OutOfMemoryError:
        raise
    except MemoryError as error:
        then = "Give fewer rows, a smaller model or shorter lists of levels, or a machine with more memory."
        raise OutOfMemoryError(who, "more memory", "there is no more", then) from error


# ==== Numbers of things in a sentence: 1 row, 2 rows ==================================================================


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

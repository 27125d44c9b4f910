"""What the name of a column hints at: something protected, something that only grows, an identifier, a code.

Names are read word by word (``years_employed``, ``yearsEmployed`` and ``Years employed`` are two words each), so that
``racetrack`` and ``page`` hint at nothing. The words are English, with the German ones that mean nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from typing import Final

__all__ = ["counts_years", "is_code", "is_identifier", "is_protected", "words_of"]

_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN: Final = re.compile(r"[\W\d_]+")

_PROTECTED: Final = frozenset(
    "sex gender race races racial ethnicity ethnic religion religious nationality citizenship citizen disability "
    "disabilities disabled handicap handicapped marital married pregnant pregnancy sexual caste veteran immigrant "
    "birth birthdate birthday birthplace dob "
    "geschlecht ethnie nationalität staatsangehörigkeit behinderung familienstand geburtsdatum".split()
)
_PROTECTED_TOGETHER: Final = (
    {"native", "country"},
    {"native", "language"},
    {"national", "origin"},
    {"foreign", "worker"},
    {"skin", "color"},
    {"skin", "colour"},
    {"civil", "status"},
)

_GROWING: Final = frozenset("age tenure seniority betriebszugehörigkeit lebensalter".split())
_LASTING: Final = frozenset("year years yrs month months time length duration".split())
_HELD: Final = frozenset(
    "employed employment experience service job work worked residence address customer client member membership "
    "company employer".split()
)

_IDENTIFIERS: Final = frozenset("id ids uuid guid identifier ssn iban passport unnamed".split())
_NUMBERS: Final = frozenset("number no nr num".split())
_NUMBERED: Final = (
    "customer client user person member record account loan case row applicant application order patient student "
    "employee transaction contract policy"
).split()
_JOINED: Final = re.compile(f"(?:{'|'.join(_NUMBERED)})id")

_AREAS: Final = frozenset("zip zipcode postcode postal plz postleitzahl".split())
_CODES: Final = frozenset(
    "code codes id type category region district status country state city branch occupation industry sector "
    "department".split()
)


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name, in lower case.

    Examples
    --------
    >>> words_of("raceEthnicity"), words_of("customer ID"), words_of("homesexpense")
    (('race', 'ethnicity'), ('customer', 'id'), ('homesexpense',))
    """
    parted = _BOUNDARY.sub(" ", name).lower()
    return tuple(word for word in _BETWEEN.split(parted) if word)


def is_protected(words: Collection[str]) -> bool:
    """Tell whether words name something by which people must not be told apart, and which no advice should touch."""
    return _has(words, _PROTECTED) or any(together <= set(words) for together in _PROTECTED_TOGETHER)


def counts_years(words: Collection[str]) -> bool:
    """Tell whether words name something that time alone moves, upwards: an age, or how long something has lasted."""
    if _has(words, _GROWING) or list(words) == ["experience"]:
        return True
    return _has(words, _LASTING) and _has(words, _HELD)


def is_identifier(words: Collection[str]) -> bool:
    """Tell whether words name something that tells rows apart and says nothing of them."""
    if _has(words, _IDENTIFIERS) or any(_JOINED.fullmatch(word) for word in words):
        return True
    return _has(words, _NUMBERS) and _has(words, frozenset(_NUMBERED))


def is_code(words: Collection[str], *, few: bool) -> bool:
    """Tell whether words name something whose numbers stand for something else; some do so only where they are few."""
    if _has(words, _AREAS) or any(word.endswith("code") for word in words):
        return True
    return few and _has(words, _CODES)


def _has(words: Collection[str], known: AbstractSet[str]) -> bool:
    return any(word in known for word in words)

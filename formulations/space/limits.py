"""Limits about the person: how far a column may move from the person's own value, in its unit or as a share of it.

Shares are counted as people count, in decimal numbers: 29% of 100 is 29, though 0.29 * 100 is 28.999999999999996.
"""

from __future__ import annotations

import functools
import math
import re
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias, final

from ceopt.formulations.tolerances import STEP_ROUNDINGS
from ceopt.solvers.checks import AbstractCheck, Real, Refusal
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

#: A number in the column's unit (levels of an ordinal column), or "20%" of the size of the person's own value.
Limit: TypeAlias = float | str
Side: TypeAlias = Literal["down", "up"]
SIDES: Final[tuple[Side, ...]] = ("down", "up")

_SHARE: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)\s*%", re.ASCII)
_NEEDS: Final = '{name} to be a number of at least 0, or a percentage such as "20%"'
_NO_LIMIT: Final = Refusal(_NEEDS, "Correct it.")
_NO_NUMBER: Final = Refusal(_NEEDS, "Correct it.", error=InvalidTypeError)
#: Digits enough for the sum of two floats' own, times a share.
_CONTEXT: Final = Context(prec=700)


# ---- what is given ---------------------------------------------------------------------------------------------------
@final
class LimitCheck(AbstractCheck):
    """How far a column may move to a side: a number of at least 0, a percentage, or None; infinity is None."""

    __slots__ = ()

    def require(self, who: str, name: str, value: Any) -> Limit | None:
        """Return the number as a ``float``, a percentage as text without blanks and needless digits."""
        if value is None:
            return None
        if isinstance(value, str):
            found = _SHARE.fullmatch(value.strip())
            if found is None:
                raise _NO_LIMIT.of(who, name, value)
            return f"{written(Fraction(found[1]))}%"
        number = Real(at_least=0.0, otherwise=_NO_LIMIT, wrong_type=_NO_NUMBER).require(who, name, value)
        if number == math.inf:
            return None
        return number


def require_limits(who: str, kind: str, **limits: Limit | None) -> None:
    """Refuse limits that a column of a kind cannot have: categories have none, ordinals whole levels only."""
    for word, limit in limits.items():
        if limit is None:
            continue
        if kind in {"categorical", "binary"}:
            then = "Leave it out, or make the column ordinal with levels lowest first."
            raise InvalidValueError(who, f"no {word}, being {kind}", f"{word} is {limit!r}", then)
        if kind == "ordinal" and (isinstance(limit, str) or limit != math.floor(limit)):
            needs = f"a whole number of levels as {word}, being ordinal"
            raise InvalidValueError(who, needs, f"{word} is {limit!r}", "Give for example 1.")


# ---- what they leave -------------------------------------------------------------------------------------------------
@functools.lru_cache(maxsize=65536)
def ends(down: Limit | None, up: Limit | None, value: float) -> tuple[float, float]:
    """Return the lowest and the highest number that limits leave someone at a value.

    Each is the float next to the decimal number whose shortest text is not beyond it.
    """
    lowest = -math.inf
    highest = math.inf
    if down is not None:
        lowest = 0.0 - _at_most(allowance(down, value) - exact(value))
    if up is not None:
        highest = _at_most(exact(value) + allowance(up, value))
    return lowest, highest


def allowance(limit: Limit, value: float) -> Fraction:
    """Return how far a limit lets someone move who stands at a value, by the shortest decimal text of either."""
    if isinstance(limit, str):
        return Fraction(limit.removesuffix("%")) / 100 * abs(exact(value))
    return exact(limit)


def exact(number: float) -> Fraction:
    """Return the decimal number that a float's shortest text is."""
    return Fraction(repr(float(number)))


def _at_most(number: Fraction) -> float:
    """Return the greatest float whose shortest text is at most a number."""
    try:
        nearest = float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    if exact(nearest) > number:
        return math.nextafter(nearest, -math.inf)
    return nearest + 0.0  # no -0.0


# ---- whether a move keeps them: shares nothing with the above --------------------------------------------------------
def excess(limit: Limit, before: float, after: float, further: float = 0.0) -> float:
    """Return by how much a move is longer than a limit and ``further`` allow, in decimal numbers; 0 but for rounding.

    Examples
    --------
    >>> excess("29%", 100.0, 129.0), excess("29%", 100.0, 130.0), excess(0.1, 0.2, 0.1 + 0.2)
    (0.0, 1.0, 0.0)
    """
    with localcontext(_CONTEXT):
        own = Decimal(repr(float(before)))
        most = Decimal(limit.rstrip("%")) * abs(own) / 100 if isinstance(limit, str) else Decimal(repr(float(limit)))
        most += Decimal(repr(float(further)))
        over = float(abs(Decimal(repr(float(after))) - own) - most)
    if over <= STEP_ROUNDINGS * max(abs(before), abs(after)):
        return 0.0
    return over


def written(number: Fraction, marks: Literal["", ","] = "") -> str:
    """Return a decimal number in all its digits."""
    with localcontext(_CONTEXT):
        return f"{(Decimal(number.numerator) / number.denominator).normalize():{marks}f}"

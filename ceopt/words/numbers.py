"""The digits of a number that a person reads: few, and never another value where the column has a grid."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING, Any, Final

from ceopt.tolerances import DIGIT_NOISE

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

__all__ = ["exact", "in_six_digits", "is_number", "move_in_digits", "printings", "tidied", "told_move"]

#: Share of a move, and of a value, that may be rounded away from a number without a grid.
_SHARE: Final = 0.01
#: Significant digits that are enough for a value, those of which a float is never short, and those between.
_DIGITS: Final = 6
_MORE_DIGITS: Final = (9, 12)
_FLOAT_DIGITS: Final = 17
_NO_LIMITS: Final = (-math.inf, math.inf)
#: Rounds without a limit of its own on digits.
_CONTEXT: Final = Context(prec=400)


def is_number(value: Any) -> bool:
    """Whether a value is a finite number; a truth value is none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return isinstance(value, int) or math.isfinite(value)


def exact(value: float) -> Decimal:
    """Return the shortest decimal number that stands for a number alone.

    Examples
    --------
    >>> print(exact(0.1), exact(1e16), exact(21200.0), exact(7))
    0.1 1E+16 21200 7
    """
    if isinstance(value, int):
        return Decimal(value)
    number = Decimal(repr(value)).normalize(_CONTEXT)
    if int(number.as_tuple().exponent) < _FLOAT_DIGITS - 1:
        return _tidy(number)
    return number


def move_in_digits(
    before: float,
    after: float,
    *,
    step: float | None = None,
    limits: tuple[float, float] = _NO_LIMITS,
    decimals: int | None = None,
) -> tuple[Decimal, Decimal]:
    """Return the digits of two values of a column between which a person moves.

    With a step the values are those of the grid, digit for digit. Without one, they have the decimals of the column's
    data, if these tell the two values apart; or few digits: what is rounded away is at most a hundredth of the move and
    of the value, or what six significant digits lose, if these do. The value that is to be reached is rounded away from
    where the person is, so that nobody stops short, not by a trace either, and never past a limit of the column; one
    that has so few digits is written as it is.

    Parameters
    ----------
    before, after
        The values.
    step
        By multiples of which the column moves; None for a column that takes any number.
    limits
        Least and greatest value of the column.
    decimals
        Decimal places of the column's data; None where they have none that anybody chose.

    Examples
    --------
    >>> print(*move_in_digits(26800.0, 29850.000977))
    26800 29851
    >>> print(*move_in_digits(1.5, 2.5), *move_in_digits(1.5, 2.5000000000000004))
    1.5 2.5 1.5 2.51
    >>> print(*move_in_digits(3.3, 3.3000001283))
    3.3 3.30001
    >>> print(*move_in_digits(0.766126609, 0.036973345, decimals=9))
    0.766126609 0.036973345
    >>> print(*move_in_digits(26800.5, 29850.75, step=0.25))
    26800.5 29850.75
    >>> print(*move_in_digits(0.1, 0.1 + 2 * 0.1, step=0.1), 0.1 + 2 * 0.1)
    0.1 0.3 0.30000000000000004
    """
    if step is not None:
        return exact(before), _on_grid(after, before, step)
    if before == after or (decimals is not None and _places(after) <= decimals):
        return exact(before), exact(after)
    room = _SHARE * abs(after - before)
    if decimals is not None:
        rounded = _rounded(after, decimals, ROUND_CEILING if after > before else ROUND_FLOOR)
        if limits[0] <= float(rounded) <= limits[1] and abs(float(rounded) - after) <= room:
            return exact(before), _tidy(rounded)
    for digits in range(_DIGITS, _FLOAT_DIGITS + 1):
        first = _nearest(before, room, digits)
        second = _away(after, before, room, limits, digits)
        if first != second:
            return first, second
    return exact(before), exact(after)


def in_six_digits(value: float, away_from: Any = None) -> Decimal:
    """Return a number in six significant digits, rounded away from another where one is given; a whole one as it is.

    Examples
    --------
    >>> print(in_six_digits(29741.445003, 26800.0), in_six_digits(0.1 + 0.2), in_six_digits(1234567.0))
    29741.5 0.3 1234567
    """
    if isinstance(value, int) or value == math.floor(value):
        return exact(value)
    last_digit = min(Decimal(value).adjusted() - _DIGITS + 1, 0)
    nearest = _rounded(value, -last_digit, ROUND_HALF_EVEN)
    if not is_number(away_from) or value == away_from:
        return _tidy(nearest)
    if _is_noise(nearest, value, abs(value)) and not _stops_short(float(nearest), value, away_from):
        return _tidy(nearest)
    return _tidy(_rounded(value, -last_digit, ROUND_CEILING if value > away_from else ROUND_FLOOR))


def printings(before: float, after: float, feature: Feature | None) -> tuple[Decimal, ...]:
    """Return what may be printed for the value that a column comes to, from few digits to many.

    The first is that of sentences, the second that of tables; both are what they say only where the row with them was
    checked like an answer.

    Examples
    --------
    >>> print(*printings(1200.0, 1509.8765432109876, None))
    1510 1509.88 1509.87655 1509.87654322
    """
    step, limits, decimals = _grid(feature)
    _, few = move_in_digits(before, after, step=step, limits=limits, decimals=decimals)
    if step is not None:
        return (few,)
    six = few
    if decimals is None:
        six = in_six_digits(after, before)
    return few, six, *(_away(after, before, 0.0, limits, digits) for digits in _MORE_DIGITS)


def told_move(before: float, after: float, feature: Feature | None, printed: float | None) -> tuple[Decimal, Decimal]:
    """Return the digits of a person's own value in a sentence, and of what is printed for the value to come to.

    Examples
    --------
    >>> print(*told_move(1200.0, 1509.8765432109876, None, 1510.0), *told_move(26800.0004, 29850.5, None, None))
    1200 1510 26800 29850.5
    """
    step, limits, decimals = _grid(feature)
    first, _ = move_in_digits(before, after, step=step, limits=limits, decimals=decimals)
    second = exact(after if printed is None else printed)
    if before != after and (second > first) is not (after > before):
        first = exact(before)
    return first, second


def tidied(value: float) -> Decimal:
    """Return the shortest decimal number that is a value but for the rounding of floats.

    Examples
    --------
    >>> print(tidied(0.1 + 0.2), tidied(1 / 3))
    0.3 0.333333333333
    """
    for places in range(_most_places(value, _FLOAT_DIGITS)):
        rounded = _rounded(value, places, ROUND_HALF_EVEN)
        if _is_noise(rounded, value, abs(value)):
            return _tidy(rounded)
    return exact(value)


def _grid(feature: Feature | None) -> tuple[float | None, tuple[float, float], int | None]:
    """Return the step, the limits and the decimals of a column, as far as anybody knows."""
    if feature is None:
        return None, _NO_LIMITS, None
    return feature.spacing, (feature.lower, feature.upper), feature.decimals


def _stops_short(rounded: float, value: float, home: float) -> bool:
    """Whether a rounded number is nearer to home than the value, if by a trace: a split may lie in between."""
    return rounded < value if value > home else rounded > value


def _on_grid(value: float, home: float, step: float) -> Decimal:
    """Return a value of the grid ``home + k step``: the sum in decimal numbers where it is that, else the float."""
    places = max(_places(home), _places(step))
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN, context=_CONTEXT)
    if _is_noise(rounded, value, max(abs(value), abs(home))):
        return _tidy(rounded)
    return exact(value)


def _nearest(value: float, room: float, digits: int) -> Decimal:
    """Return the shortest decimal number near enough to a value."""
    room = min(room, _SHARE * abs(value))
    most = _most_places(value, digits)
    for places in range(most + 1):
        rounded = _rounded(value, places, ROUND_HALF_EVEN)
        if places == most or abs(float(rounded) - value) <= room:
            return _tidy(rounded)
    return exact(value)


def _away(value: float, home: float, room: float, limits: tuple[float, float], digits: int) -> Decimal:
    """Return the shortest decimal number that is not nearer to home than a value, and near enough to it."""
    whole = exact(value)
    if len(whole.as_tuple().digits) <= _DIGITS:
        return whole
    room = min(room, _SHARE * abs(value))
    if value > home:
        rounding = ROUND_CEILING
    else:
        rounding = ROUND_FLOOR
    most = _most_places(value, digits)
    for places in range(_most_places(value, _FLOAT_DIGITS) + 1):
        rounded = _rounded(value, places, ROUND_HALF_EVEN)
        if _is_noise(rounded, value, abs(value)) and not _stops_short(float(rounded), value, home):
            return _tidy(rounded)
        rounded = _rounded(value, places, rounding)
        is_inside = limits[0] <= float(rounded) <= limits[1] or not limits[0] <= value <= limits[1]
        if is_inside and (places >= most or abs(float(rounded) - value) <= room):
            return _tidy(rounded)
    return exact(value)


def _most_places(value: float, digits: int) -> int:
    """Return the decimal places of a value's significant digits; whole numbers keep all of theirs."""
    if not value:
        return 0
    return max(digits - 1 - Decimal(value).adjusted(), 0)


def _rounded(value: float, places: int, rounding: str) -> Decimal:
    return Decimal(value).quantize(Decimal(1).scaleb(-places), rounding=rounding, context=_CONTEXT)


def _places(value: float) -> int:
    """Return how many decimal places a number has."""
    return max(0, -int(exact(value).as_tuple().exponent))


def _is_noise(rounded: Decimal, value: float, size: float) -> bool:
    """Whether what was rounded away is no more than the rounding of floats."""
    return abs(float(rounded - Decimal(value))) <= DIGIT_NOISE * size


def _tidy(number: Decimal) -> Decimal:
    """Return a number without zeros after its last digit."""
    number = number.normalize(_CONTEXT)
    if not number:  # -0 is 0
        return Decimal(0)
    if int(number.as_tuple().exponent) > 0:
        number = number.quantize(Decimal(1), context=_CONTEXT)
    return number

"""What dice_ml calls a desired class or range, as targets of ceopt, one for each row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ceopt.formulations.targets import AtLeast, AtMost, Between, Probability
from ceopt.solvers.checks import Real, is_whole, plain
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

__all__ = ["Wanted", "class_wanted", "classes_of", "range_wanted"]

_OPPOSITE: Final = "opposite"
_SETS: Final = (set, frozenset, list, tuple)
_BOUND: Final = Real()
_SHARE: Final = Real(at_least=0.0, at_most=1.0)


class Wanted(NamedTuple):
    """What a row should get: as dice_ml says it (a label, a set of labels or a range), and as a target of ceopt."""

    outcome: Any
    target: Any


def classes_of(model: Any, outcomes: Any) -> tuple[Any, ...]:
    """Return the labels of a classifier in its order; of one that does not say, those of the data in theirs."""
    known = getattr(model, "classes_", None)
    if known is None:
        known = sorted(outcomes.dropna().unique().tolist())
    return tuple(plain(label) for label in known)


def class_wanted(
    who: str, desired: Any, classes: tuple[Any, ...], predicted: Sequence[Any], threshold: Any
) -> list[Wanted]:
    """Return what each row should get of a classifier.

    "opposite" is the other of two classes. A label is itself. A whole number that is no label is the place of a class,
    as in dice_ml; where a number is the one and the other and they differ, it is refused. A threshold above one half
    asks for that probability, if there are two classes: with more, it means nothing to dice_ml either.

    Raises
    ------
    InvalidValueError, UnknownNameError
        No such class, "opposite" of more than two, or a number that is another class here than there; a threshold that
        is no probability.
    """
    share = _SHARE.require(who, "stopping_threshold", threshold)
    wanted = []
    for label in _labels(who, desired, classes, predicted):
        if share > 0.5 and len(classes) == 2 and not isinstance(label, set):
            wanted.append(Wanted(label, Probability(label, at_least=share)))
        else:
            wanted.append(Wanted(label, label))
    return wanted


def _labels(who: str, desired: Any, classes: tuple[Any, ...], predicted: Sequence[Any]) -> list[Any]:
    """Return the label, or the set of labels, that each row should get."""
    if isinstance(desired, _SETS):
        for label in desired:
            if not _is_among(label, classes):
                raise UnknownNameError.among(who, "class in desired_class", label, classes, quoted=True)
        return [set(desired)] * len(predicted)
    if isinstance(desired, str) and desired == _OPPOSITE and not _is_among(desired, classes):
        return _opposites(who, classes, predicted)
    return [_label(who, plain(desired), classes)] * len(predicted)


def _opposites(who: str, classes: tuple[Any, ...], predicted: Sequence[Any]) -> list[Any]:
    if len(classes) != 2:
        but = f"desired_class is 'opposite' and the model has {len(classes)}"
        listed = ", ".join(map(repr, classes))
        raise InvalidValueError(who, "two classes for an opposite one", but, f"Name the class: one of {listed}.")
    return [classes[1] if label == classes[0] else classes[0] for label in predicted]


def _label(who: str, desired: Any, classes: tuple[Any, ...]) -> Any:
    is_place = is_whole(desired) and 0 <= desired < len(classes)
    if _is_among(desired, classes):
        if is_place and not isinstance(classes[desired], str) and classes[desired] != desired:
            but = f"desired_class is {desired}, a label here and the place of label {classes[desired]!r} in dice_ml"
            then = f"Write the label in a set, {{{desired}}} or {{{classes[desired]!r}}}, which is read as labels."
            raise InvalidValueError(who, "a class that both understand", but, then)
        return desired
    if is_place:
        return classes[desired]
    raise UnknownNameError.among(who, "desired_class", desired, classes, quoted=True)


def _is_among(label: Any, classes: tuple[Any, ...]) -> bool:
    """Tell whether a label is a class; 1 is not the class True, nor "1" the class 1."""
    alike = (isinstance(label, str), isinstance(label, bool))
    return any((isinstance(known, str), isinstance(known, bool)) == alike and known == label for known in classes)


def range_wanted(who: str, desired: Any) -> Wanted:
    """Return what a regressor should say: a value between two numbers, of which one may be infinite.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        No two numbers in ascending order.
    """
    then = "Give desired_range=[least, greatest]."
    if desired is None:
        raise InvalidValueError(
            who, "a range of the outcome, as the model is a regressor", "desired_range is None", then
        )
    if isinstance(desired, str) or not hasattr(desired, "__len__") or len(desired) != 2:
        raise InvalidTypeError(who, "two numbers as desired_range", f"desired_range is {desired!r}", then)
    low, high = (_BOUND.require(who, "desired_range", bound) for bound in desired)
    if low > high:
        raise InvalidValueError(who, "desired_range in ascending order", f"it is {[low, high]!r}", then)
    if math.isinf(low) and math.isinf(high):
        raise InvalidValueError(who, "a bound of the outcome", f"desired_range is {[low, high]!r}", then)
    target: Any
    if math.isinf(low):
        target = AtMost(high)
    elif math.isinf(high):
        target = AtLeast(low)
    else:
        target = Between(low, high)
    return Wanted([low, high], target)

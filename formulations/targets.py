"""Targets of a decision: a label, a set of labels, any other label, a probability, or a range of values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.digits import digits
from ceopt.formulations.tolerances import WHOLE_SHARE
from ceopt.solvers.checks import AllOf, Moderate, Real, Refusal, check_fields
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

__all__ = [
    "AtLeast",
    "AtMost",
    "Between",
    "Disagreement",
    "DisagreementOf",
    "Labels",
    "OtherThan",
    "Probability",
    "ProbabilityOf",
    "Target",
    "Values",
    "parse_target",
]

_NO_VALUE = Refusal("a finite number", "Give {name} as a number.")
_VALUE = AllOf((Real(finite=True, otherwise=_NO_VALUE), Moderate()))
_NO_LEVEL = Refusal("a level strictly between 0 and 1", "Give for example Probability('good', at_least=0.6).")
_LEVEL = Real(above=0.0, below=1.0, otherwise=_NO_LEVEL)
_NO_SHARE = Refusal("a share of the trees from 0 to below 1", "Give for example Disagreement('good', at_most=0.1).")
_SHARE = AllOf((_VALUE, Real(at_least=0.0, below=1.0, otherwise=_NO_SHARE)))


@final
@dataclass(frozen=True, slots=True)
class OtherThan:
    """Any label but this one."""

    label: Any


@final
@dataclass(frozen=True, slots=True)
class Probability:
    """A probability of at least ``at_least`` for ``label``, of a model with two classes."""

    label: Any
    at_least: float

    def __post_init__(self) -> None:
        check_fields(self, {"at_least": _LEVEL})


@final
@dataclass(frozen=True, slots=True)
class AtLeast:
    """A regressor's value of at least ``value``."""

    value: float

    def __post_init__(self) -> None:
        check_fields(self, {"value": _VALUE})


@final
@dataclass(frozen=True, slots=True)
class AtMost:
    """A regressor's value of at most ``value``."""

    value: float

    def __post_init__(self) -> None:
        check_fields(self, {"value": _VALUE})


@final
@dataclass(frozen=True, slots=True)
class Between:
    """A regressor's value from ``low`` to ``high``."""

    low: float
    high: float

    def __post_init__(self) -> None:
        check_fields(self, {"low": _VALUE, "high": _VALUE})
        if self.low > self.high:
            raise InvalidValueError(
                "Between", "low at most high", f"low is {self.low!r} and high is {self.high!r}", "Swap them."
            )


@final
@dataclass(frozen=True, slots=True)
class Disagreement:
    """At most the share ``at_most`` of a forest's trees, each asked alone, decides otherwise than ``target``.

    For forests, bagged trees and single trees: OptiCL's violation limit. It speaks of the trees one by one and neither
    implies the forest's own decision nor follows from it. Nine trees that favour "good" by 51 to 49 meet a limit of
    0.1, and are outvoted in the average by a tenth that is sure of "bad"; a narrow majority of sure trees decides for
    "good" against a limit that it does not meet. Where both are wanted, add a second ``Reaches`` for the label.

    Parameters
    ----------
    target
        A label, a set of labels or ``OtherThan``; for regressors ``AtLeast``, ``AtMost`` or ``Between``.
    at_most
        From 0 (all trees agree) to below 1. Of T trees, ``at_most * T`` rounded down may disagree.

    Raises
    ------
    InvalidValueError
        ``at_most`` is no share below 1, or ``target`` a probability, which no tree decides.

    References
    ----------
    Maragno, Wiberg, Bertsimas, Birbil, den Hertog, Fajemisin, Mixed-integer optimization with constraint learning:
    violation limit of an ensemble.
    """

    target: Any
    at_most: float

    def __post_init__(self) -> None:
        check_fields(self, {"at_most": _SHARE})
        if isinstance(self.target, Probability | Disagreement):
            raise InvalidValueError(
                "Disagreement", "what a single tree decides", f"target is {self.target!r}",
                "Give a label, a set of labels, OtherThan(label) or a range of values.",
            )  # fmt: skip


@final
@dataclass(frozen=True, slots=True)
class Labels:
    """A target checked against a classifier: the positions of the labels wanted, among all labels."""

    wanted: tuple[int, ...]
    labels: tuple[Any, ...]

    def holds(self, said: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which labels, as a model gives them, are wanted, (n,)."""
        return one_of(said, [self.labels[k] for k in self.wanted])

    def text(self) -> str:
        """Return the labels wanted, as a person would write them."""
        return " or ".join(str(self.labels[k]) for k in self.wanted)

    @property
    def others(self) -> tuple[int, ...]:
        """Positions of the labels that are not wanted."""
        return tuple(k for k in range(len(self.labels)) if k not in self.wanted)


@final
@dataclass(frozen=True, slots=True)
class ProbabilityOf:
    """A probability target checked against a classifier of two classes."""

    position: int
    at_least: float
    labels: tuple[Any, ...]

    def text(self) -> str:
        """Return the target as a person would write it."""
        return f"P({self.labels[self.position]}) >= {digits(self.at_least)}"


@final
@dataclass(frozen=True, slots=True)
class DisagreementOf:
    """A limit on the trees that disagree, checked: what each tree should decide, and the share that need not."""

    wanted: Labels | Values
    at_most: float

    def needed(self, trees: int) -> int:
        """Return how many of that many trees have to agree."""
        return trees - math.floor(self.at_most * trees + WHOLE_SHARE)

    def text(self) -> str:
        """Return the target as a person would write it."""
        some = "every tree"
        if self.at_most:
            some = f"all but {digits(float(f'{100 * self.at_most:.12g}'))}% of the trees"
        return f"{self.wanted.text()} by {some}"


@final
@dataclass(frozen=True, slots=True)
class Values:
    """A regressor's target: the value lies from ``low`` to ``high`` (either may be infinite)."""

    low: float
    high: float

    def holds(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which values are wanted, (n,)."""
        return np.asarray((values >= self.low) & (values <= self.high))

    def text(self) -> str:
        """Return the target as a person would write it."""
        if math.isinf(self.high):
            return f"at least {digits(self.low)}"
        if math.isinf(self.low):
            return f"at most {digits(self.high)}"
        return f"from {digits(self.low)} to {digits(self.high)}"


Target = Labels | ProbabilityOf | Values | DisagreementOf


def one_of(said: NDArray[Any], labels: Iterable[Any]) -> NDArray[np.bool_]:
    """Return which labels, as a model gives them, (n,), are one of some."""
    is_wanted = np.zeros(len(said), dtype=bool)
    for label in labels:
        is_wanted |= np.asarray(said == label, dtype=bool)
    return is_wanted


def _position(label: Any, labels: tuple[Any, ...]) -> int:
    for k, known in enumerate(labels):
        # 1 == True in Python, but a class called True is not the class called 1.
        if _equal(known, label) and isinstance(known, bool | np.bool_) == isinstance(label, bool | np.bool_):
            return k
    raise UnknownNameError.among("target", "class", label, labels, quoted=True)


def _equal(known: Any, label: Any) -> bool:
    try:
        return bool(known == label)
    except (TypeError, ValueError):  # pd.NA and arrays compare to no truth value
        return False


def parse_target(target: Any, labels: tuple[Any, ...] | None) -> Target:
    """Check a target against the model's labels (None: a regressor) and return it in checked form; such a one as it is.

    Raises
    ------
    UnknownNameError
        The label is not a class of the model.
    InvalidTypeError
        A class was asked of a regressor, or a value of a classifier.
    InvalidValueError
        No class is wanted, or all of them are; a probability is asked of more than two classes.
    """
    if isinstance(target, Target):
        return target
    if isinstance(target, Disagreement):
        wanted = parse_target(target.target, labels)
        assert isinstance(wanted, Labels | Values)  # noqa: S101 - refused by the constructor
        return DisagreementOf(wanted, float(target.at_most))
    if isinstance(target, AtLeast | AtMost | Between):
        if labels is not None:
            raise InvalidTypeError(
                "target",
                "a class of the model",
                f"the model is a classifier and target is {target!r}",
                f"Choose from: {', '.join(map(str, labels))}.",
            )
        return _range_of(target)
    if labels is None:
        raise InvalidTypeError(
            "target",
            "a range of values",
            f"the model is a regressor and target is {target!r}",
            "Use AtLeast(value), AtMost(value) or Between(low, high).",
        )
    if isinstance(target, Probability):
        if len(labels) != 2:
            raise InvalidValueError(
                "Probability",
                "a model with two classes",
                f"this one has {len(labels)}: {', '.join(map(str, labels))}",
                "Ask for a label instead.",
            )
        return ProbabilityOf(_position(target.label, labels), float(target.at_least), labels)
    if isinstance(target, OtherThan):
        away = _position(target.label, labels)
        return _checked(tuple(k for k in range(len(labels)) if k != away), labels, target)
    if isinstance(target, np.ndarray | pd.Series | pd.Index):
        raise InvalidTypeError(
            "target", "a label or a set of labels", f"target is {type(target).__name__}", "Write target={...}."
        )
    if isinstance(target, set | frozenset | list):
        return _checked(tuple(sorted({_position(label, labels) for label in target})), labels, target)
    return _checked((_position(target, labels),), labels, target)


def _checked(wanted: tuple[int, ...], labels: tuple[Any, ...], target: Any) -> Labels:
    if not wanted or len(wanted) == len(labels):
        raise InvalidValueError(
            "target",
            "some classes wanted and some not",
            f"target is {target!r} of the classes {', '.join(map(str, labels))}",
            "Leave at least one class on either side.",
        )
    return Labels(wanted, labels)


def _range_of(target: AtLeast | AtMost | Between) -> Values:
    match target:
        case AtLeast(value):
            return Values(float(value), math.inf)
        case AtMost(value):
            return Values(-math.inf, float(value))
    return Values(float(target.low), float(target.high))

"""The check of an answer: what the user's own model says of it, and which rules it breaks, in plain numbers.

Written apart from the programs, which state the same model and rules their own way, so that either finds the other's
mistakes. The model is asked about raw frames, the only thing that verification trusts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.checking.tree_oracle import TreeOracle
from ceopt.formulations.constraints import AbstractRule, rule_name
from ceopt.formulations.constraints.rule import lacks_rows
from ceopt.formulations.digits import digits
from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.read import open_model
from ceopt.formulations.predictors.read.model_input import given, is_fitted, names_of
from ceopt.formulations.predictors.representation import AbstractRepresentation
from ceopt.formulations.space.encoding import Encoding
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.formulations.targets import DisagreementOf, ProbabilityOf, Target
from ceopt.formulations.tolerances import STEP_ROUNDINGS
from ceopt.solvers.checks import plain
from ceopt.solvers.errors import UnknownNameError, UnsupportedModelError, printable

__all__ = ["Check", "ModelOracle", "broken_moves", "broken_rules", "is_off_steps", "needing_factual"]


class Check(NamedTuple):
    """One point's check: what the model says, whether that meets the target, and which rules break.

    ``valid`` speaks of the target alone; in a :class:`~ceopt.verify.Report` of the rules as well.
    """

    valid: bool
    prediction: Any
    broken: tuple[str, ...]


# ---- the user's own model --------------------------------------------------------------------------------------------
@final
class ModelOracle:
    """Ask a fitted model what it says of raw rows, exactly as its user would.

    A model that was fitted on a frame gets a frame with its columns in its order. One that was fitted on an array gets
    ``frame.to_numpy()`` in the order of the space: float64 if every column is a number or bool, else objects. A
    representation from plain arrays gets the space's coordinates as :meth:`Encoding.identity` lays them out.

    Parameters
    ----------
    model
        A fitted estimator, pipeline or search object with ``predict``, or a representation.
    space
        The raw columns.

    Attributes
    ----------
    labels
        The classes in the model's own order as Python scalars; None for a regressor.

    Raises
    ------
    UnsupportedModelError
        Not a model: a path, a class, an object without ``predict``; a model that is not fitted or has several outputs.

    Examples
    --------
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("income", kind="continuous")])
    >>> oracle = ModelOracle(Affine([1.0], -3.0, labels=("bad", "good")), space)
    >>> oracle.predict(space.frame([{"income": 2.0}, {"income": 4.0}])).tolist()
    ['bad', 'good']
    """

    __slots__ = ("_encoding", "labels", "model", "space")

    def __init__(self, model: Any, space: FeatureSpace) -> None:
        if isinstance(model, Predictor):
            model = model.model
        model = open_model(model)
        self.model = model
        self.space = space
        self._encoding: Encoding | None = None
        if isinstance(model, AbstractRepresentation):
            self._encoding = Encoding.identity(space)
            self.labels = model.labels
            return
        _require_fitted(model)
        for name in names_of(model, space) or ():
            if name not in space:
                raise UnsupportedModelError(
                    "The model", "every column that it was fitted on", f"column {name!r} is not in the space",
                    "Add it to the space.",
                )  # fmt: skip
        self.labels = _labels_of(model)

    def predict(self, frame: pd.DataFrame) -> NDArray[Any]:
        """Return the model's labels or values for raw rows (n, d), shape (n,)."""
        if self._encoding is not None:
            return np.asarray(self.model.predict(self._matrix(frame)))
        return np.asarray(self.model.predict(given(self.model, self.space, frame))).reshape(len(frame))

    def probability(self, frame: pd.DataFrame, label: Any) -> NDArray[np.float64]:
        """Return the model's probability of a label for raw rows, shape (n,).

        Raises
        ------
        UnsupportedModelError
            The model gives no probabilities.
        UnknownNameError
            The label is not one of its classes.
        """
        if self._encoding is not None:
            kind = self.model.probability
        else:
            kind = hasattr(self.model, "predict_proba")
        if not kind:
            raise UnsupportedModelError(
                "A probability", "a model with predict_proba", f"{type(self.model).__name__} has none",
                "Ask for the label instead.",
            )  # fmt: skip
        if self.labels is None or label not in self.labels:
            raise UnknownNameError.among("target", "class of the model", label, self.labels or ())
        position = self.labels.index(label)
        if self._encoding is None:
            return np.asarray(self.model.predict_proba(given(self.model, self.space, frame)), dtype=np.float64)[
                :, position
            ]
        scores = self.model.score(self._matrix(frame))
        return np.asarray(self.model.head.of_position(scores, position), dtype=np.float64)

    def meets(self, frame: pd.DataFrame, target: Target) -> NDArray[np.bool_]:
        """Return whether the model's own decision for each raw row meets a target in checked form, shape (n,)."""
        return self.judge(frame, target)[1]

    def judge(self, frame: pd.DataFrame, target: Target) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return predictions and whether they meet the target, with one call of ``predict`` for all rows."""
        predicted = self.predict(frame)
        match target:
            case ProbabilityOf():
                return predicted, self.probability(frame, target.labels[target.position]) >= target.at_least
            case DisagreementOf():
                said = self.tree_oracle().predict(frame)
                agree = np.sum([target.wanted.holds(one) for one in said], axis=0)
                return predicted, agree >= target.needed(len(said))
            case _:
                return predicted, target.holds(predicted)

    def tree_oracle(self) -> TreeOracle:
        """Return the model's own trees, to be asked each alone, or refuse a model that is not made of such."""
        return TreeOracle(self.model, self.space)

    def _matrix(self, frame: pd.DataFrame) -> NDArray[Any]:
        assert self._encoding is not None  # noqa: S101 - only representations come here
        return self._encoding.matrix(self.space.coordinates(frame))


def _require_fitted(model: Any) -> None:
    but = ""
    if isinstance(model, type):
        but = f"{model.__name__} is a class"
        then = "Give an object that was fitted."
    elif not hasattr(model, "predict"):
        but = f"{type(model).__name__} has no predict"
        then = "Give a fitted classifier, regressor or pipeline (a search object needs refit=True)."
    elif hasattr(model, "__sklearn_tags__") and not is_fitted(model):
        but = f"{type(model).__name__} is not fitted"
        then = "Call fit first."
    if but:
        raise UnsupportedModelError("The model", "a fitted model", but, then)


def _labels_of(model: Any) -> tuple[Any, ...] | None:
    classes = getattr(model, "classes_", None)
    if classes is None:
        return None
    if isinstance(classes, list):
        raise UnsupportedModelError(
            "The model", "one output", f"{type(model).__name__} has {len(classes)}", "Fit one model per output."
        )
    return tuple(plain(label) for label in np.asarray(classes).tolist())


# ---- rules: the space's (bounds, immutable columns, directions, steps, levels), then the user's ----------------------
#: Decimals that steps are written with at most; those beyond are roundings.
_PLACES = 9


def broken_rules(
    rules: Sequence[AbstractRule],
    space: FeatureSpace,
    factual: Mapping[str, float] | None,
    point: Mapping[str, float],
    *,
    seen_steps: bool = True,
) -> tuple[str, ...]:
    """Return what a point breaks, in words: rules of the space first, then those of the user.

    An answer of ceopt's keeps the steps that were seen in the data as well; with ``seen_steps`` off they are no rules.
    Rules that lack their rows, or a factual that they need, are passed over.
    """
    broken = list(broken_moves(space, factual, point, seen_steps=seen_steps))
    for place, rule in enumerate(rules):
        if lacks_rows(rule) or (factual is None and rule.needs_factual):
            continue
        if not rule.violation(space, factual, point) <= 0:
            broken.append(f"{rule_name(rule, place)}: {rule.sentence()}")
    return tuple(printable(text) for text in broken)


def broken_moves(
    space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float], *, seen_steps: bool = True
) -> tuple[str, ...]:
    """Return what a point (coordinates by column) breaks of the space's own rules, one sentence each."""
    broken: list[str] = []
    for feature in space:
        start = None if factual is None else factual[feature.name]
        for fault in _faults(feature, start, point[feature.name], seen_steps=seen_steps):
            broken.append(f"{feature.name}: {fault}")
    return tuple(broken)


def needing_factual(space: FeatureSpace, rules: Sequence[AbstractRule]) -> tuple[str, ...]:
    """Return the rules of the space and of the user that cannot be checked without a factual."""
    unchecked: list[str] = []
    for feature in space:
        if not feature.mutable:
            unchecked.append(f"{feature.name}: fixed")
        if feature.direction != "any":
            unchecked.append(f"{feature.name}: only {feature.direction}")
        if feature.step is not None and not feature.step_inferred:
            unchecked.append(f"{feature.name}: steps of {digits(feature.step)}")
    for place, rule in enumerate(rules):
        if rule.needs_factual:
            unchecked.append(f"{rule_name(rule, place)}: {rule.sentence()}")
    return tuple(unchecked)


def _faults(feature: Feature, start: float | None, value: float, *, seen_steps: bool) -> Iterator[str]:
    if not math.isfinite(value):
        yield f"is {value}"
        return
    if feature.is_finite and not (value == math.floor(value) and 0 <= value < len(feature.levels)):
        yield f"has no level of rank {digits(value)}"
        return
    if feature.kind == "integer" and value != math.floor(value):
        yield f"must be whole, but is {value!r}"
    if feature.is_code(value) or (start is not None and feature.is_code(start)):
        yield from _faults_of_codes(feature, start, value)
        return
    least, greatest = feature.widest
    if value < least:
        yield f"must be at least {digits(least)}, but is {value!r}"
    if value > greatest:
        yield f"must be at most {digits(greatest)}, but is {value!r}"
    if start is None or value == start:
        return
    before: Any = feature.from_coordinate(start) if feature.is_finite else start
    after: Any = feature.from_coordinate(value) if feature.is_finite else value
    if not feature.mutable:
        yield f"must stay {before!r}, but is {after!r}"
    elif feature.direction == "increasing" and value < start:
        yield f"may only increase, but falls from {before!r} to {after!r}"
    elif feature.direction == "decreasing" and value > start:
        yield f"may only decrease, but rises from {before!r} to {after!r}"
    step = feature.step if seen_steps or not feature.step_inferred else None
    if step is not None and is_off_steps(step, start, value):
        yield f"moves in steps of {digits(step)}, but goes from {before!r} to {after!r}"


def _faults_of_codes(feature: Feature, start: float | None, value: float) -> Iterator[str]:
    """Yield what is wrong with a value that is a code, or of who stands on one: nobody leaves or becomes one."""
    if start is None or value == start:
        return
    after = feature.from_coordinate(value)
    if feature.is_code(start):
        yield f"must stay {feature.from_coordinate(start)!r}, which is a code, but is {after!r}"
    else:
        yield f"must not become {after!r}, which is a code"


def is_off_steps(step: float, start: float, value: float) -> bool:
    """Tell whether a value is no whole number of steps from the start, but for roundings."""
    nearest = start + float(np.round((value - start) / step)) * step
    off = min(abs(value - nearest), abs(value - round(nearest, _PLACES)))  # 0.1 + 2 * 0.1 means 0.3
    return off > STEP_ROUNDINGS * max(abs(value), abs(start))

"""The settings of a space as rules that can be dropped one by one: fixed, one-way, bounds, steps."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ceopt.formulations.constraints import Linear
from ceopt.formulations.space.reachable import Interval, reach_of
from ceopt.formulations.space.space import FeatureSpace
from ceopt.words.rules import value_phrase
from ceopt.words.said import said

if TYPE_CHECKING:
    from ceopt.formulations.constraints.rule import AbstractElastic, Floats, Point
    from ceopt.formulations.space.feature import Feature

__all__ = ["WIDE", "SpaceRule", "space_rules", "wide_interval", "without"]

#: Where the program needs a bound and the user's is dropped, it lies this many times the column's spread further out.
WIDE = 10.0


@final
@dataclass(frozen=True, slots=True)
class SpaceRule:
    """One thing that the user has set about one column, or the step that was seen in its data.

    Parameters
    ----------
    feature
        The column as it is described.
    word, sentence
        The rule in short ("at most 9"), and as a sentence about the column.
    dropped
        Fields of the feature without the rule.
    elastic
        The same as a rule that can be widened; None for steps and for fixed levels.
    """

    feature: Feature
    word: str
    sentence: str
    dropped: Mapping[str, Any]
    elastic: AbstractElastic | None

    @property
    def name(self) -> str:
        """The rule as results name it: "age: fixed"."""
        return f"{self.feature.name}: {self.word}"

    def keeps(self, factual: Point, point: Point, others: Sequence[SpaceRule]) -> bool:
        """Whether a point keeps this rule, whatever it does to the column's other ones."""
        alone = without(FeatureSpace([self.feature]), [rule for rule in others if rule is not self])
        name = self.feature.name
        return reach_of(alone, {name: factual[name]})[name].holds(point[name])


def space_rules(space: FeatureSpace, factual: Point) -> tuple[SpaceRule, ...]:
    """Return all that the user has set, and steps seen in the data; bounds seen there, and levels, are no rules."""
    return tuple(rule for feature in space for rule in _rules_of(feature, factual[feature.name]))


def without(space: FeatureSpace, dropped: Collection[SpaceRule]) -> FeatureSpace:
    """Return the space without some of its rules.

    What is measured by a column's range is so still where a bound is dropped, so that the user's own rules mean the
    same.
    """
    fields: dict[str, dict[str, Any]] = {}
    for rule in dropped:
        feature = rule.feature
        had = {} if feature.is_finite else {"range": feature.scale("range")}
        fields.setdefault(feature.name, had).update(rule.dropped)
    return FeatureSpace(
        [replace(feature, **fields[feature.name]) if feature.name in fields else feature for feature in space]
    )


def wide_interval(feature: Feature, x0: float, had: Interval, got: Interval, data: Floats | None) -> Interval:
    """Return the interval ``got`` with bounds far out where it lacks some that the narrower one ``had``.

    They lie ten spreads beyond what is known of the column, its data included, as many models need finite bounds.
    """
    known = [x0, had.lower, had.upper, got.lower, got.upper, feature.lower, feature.upper]
    known += [] if data is None or not len(data) else [float(data.min()), float(data.max())]
    known = [value for value in known if math.isfinite(value)]
    spread = max(max(known) - min(known), feature.range or 0.0) or max(abs(x0), 1.0)
    least, most = feature.coordinate_limits
    lower = got.lower
    upper = got.upper
    if math.isfinite(had.lower) and not math.isfinite(lower):
        lower = max(min(known) - WIDE * spread, least)
    if math.isfinite(had.upper) and not math.isfinite(upper):
        upper = min(max(known) + WIDE * spread, most)
    return got if (lower, upper) == (got.lower, got.upper) else got.narrowed(lower, upper)


def _rules_of(feature: Feature, x0: float) -> Iterator[SpaceRule]:
    name = feature.name
    is_number = not feature.is_finite
    if is_number:
        here = _text(x0)
    else:
        here = repr(feature.from_coordinate(x0))
    home = value_phrase(feature, feature.from_coordinate(x0))
    is_on_code = feature.is_code(x0)
    if is_on_code:
        sentence = said(f"{name} must stay {here}", "must_stay", column=name, value=home)
        free = {"codes": (), "lower": -math.inf, "upper": math.inf}
        yield SpaceRule(feature, "on a code", sentence, {"codes": ()} if feature.is_finite else free, None)
    if not feature.mutable:
        row = Linear({name: 1.0}, "==", x0) if is_number else None
        sentence = said(f"{name} must stay {here}", "must_stay", column=name, value=home)
        yield SpaceRule(feature, "fixed", sentence, {"mutable": True}, row)
    if feature.direction != "any":
        if feature.direction == "increasing":
            word = "increase"
            sense = ">="
            template = "may_only_rise"
        else:
            word = "decrease"
            sense = "<="
            template = "may_only_fall"
        row = Linear({name: 1.0}, sense, x0)  # type: ignore[arg-type]  # one of the two words above
        sentence = said(f"{name} may only {word} from {here}", template, column=name, value=home)
        yield SpaceRule(feature, f"may only {word}", sentence, {"direction": "any"}, row)
    if math.isfinite(feature.lower) and not feature.lower_inferred and not is_on_code:
        word = f"at least {_text(feature.lower)}"
        row = Linear({name: 1.0}, ">=", feature.lower)
        sentence = said(f"{name} must be {word}", "at_least", column=name, value=value_phrase(feature, feature.lower))
        yield SpaceRule(feature, word, sentence, {"lower": -math.inf, "codes": ()}, row)
    if math.isfinite(feature.upper) and not feature.upper_inferred and not is_on_code:
        word = f"at most {_text(feature.upper)}"
        row = Linear({name: 1.0}, "<=", feature.upper)
        sentence = said(f"{name} must be {word}", "at_most", column=name, value=value_phrase(feature, feature.upper))
        yield SpaceRule(feature, word, sentence, {"upper": math.inf, "codes": ()}, row)
    if feature.step is not None:
        word = f"steps of {_text(feature.step)}"
        step = value_phrase(feature, feature.step)
        sentence = said(f"{name} moves in {word} from {here}", "moves_in_steps", column=name, step=step, value=home)
        if feature.step_inferred:
            text = f"{name} moves in {word} from {here}, as its data do"
            sentence = said(text, "moves_in_steps_of_data", column=name, step=step, value=home)
        yield SpaceRule(feature, word, sentence, {"step": None}, None)


def _text(value: float) -> str:
    return str(np.format_float_positional(value, trim="-"))

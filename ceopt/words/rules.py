"""Rules, and what a space says of a column, as phrases: a rule's own English sentence, and what it says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ceopt.formulations.constraints import (
    AllowedRows,
    AllowedTransitions,
    AllowedValues,
    Causal,
    ExactlyOne,
    Hull,
    IfThen,
    Linear,
    MaxChanges,
    RobustValidity,
    rule_name,
)
from ceopt.formulations.constraints.causal_structure import parse_equations
from ceopt.solvers.checks import plain
from ceopt.solvers.errors import printable
from ceopt.words.changes import truths, unit_of
from ceopt.words.language import ALL_OF, AMOUNT, ANY_OF, LEVEL, TERMS
from ceopt.words.numbers import is_number
from ceopt.words.said import Phrase, Said

if TYPE_CHECKING:
    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["any_of", "rule_said", "rules_said", "value_phrase"]


def rule_said(rule: AbstractRule, space: FeatureSpace) -> str:
    """Return the sentence of a rule; of one that ceopt knows, with what it says."""
    phrase_of = _PHRASES.get(type(rule))
    sentence = rule.sentence()
    if not sentence.isprintable():
        sentence = printable(sentence)
    if phrase_of is None:
        return sentence
    return Said(sentence, (phrase_of(rule, space),))


def rules_said(rules: Iterable[AbstractRule], space: FeatureSpace) -> dict[str, str]:
    """Return the sentences of rules by the names that they bear in results."""
    return {rule_name(rule, place): rule_said(rule, space) for place, rule in enumerate(rules)}


def value_phrase(feature: Feature | None, value: Any) -> Phrase:
    """Return a value of a column: a number with its unit, yes or no, or a level."""
    value = plain(value)
    if feature is None or not feature.is_finite:
        if is_number(value):
            return Phrase(AMOUNT, {"value": value, "unit": unit_of(feature) or ""})
        return Phrase(LEVEL, {"value": value})
    means = None
    if feature.kind == "binary":
        means = truths(feature.levels)
    if means is not None and value in means:
        return Phrase(LEVEL, {"value": means[value]})
    return Phrase(LEVEL, {"value": value})


def any_of(options: Sequence[Any]) -> Phrase:
    """Return a choice of some."""
    return Phrase(ANY_OF, {"options": tuple(options)})


# ---- one function a rule ---------------------------------------------------------------------------------------------
def _max_changes(rule: MaxChanges, space: FeatureSpace) -> Phrase:
    del space
    one = "max_feature"
    more = "max_features"
    if rule.count == "columns":
        one = "max_column"
        more = "max_columns"
    if rule.k == 1:
        return Phrase(one, {})
    return Phrase(more, {"k": rule.k})


def _linear(rule: Linear, space: FeatureSpace) -> Phrase:
    words = {"<=": "at_most", ">=": "at_least", "==": "equals"}
    (column, coefficient), *others = rule.coefficients.items()
    if not others and coefficient == 1 and not space[column].is_finite:
        phrase = Phrase(words[rule.sense], {"column": column, "value": value_phrase(space[column], rule.rhs)})
    else:
        terms = tuple((float(a), name) for name, a in rule.coefficients.items())
        fields = {"terms": Phrase(TERMS, {"terms": terms}), "value": float(rule.rhs)}
        phrase = Phrase(f"linear_{words[rule.sense]}", fields)
    if rule.within:
        phrase = Phrase("within", {"rule": phrase, "width": float(rule.within)})
    if rule.further:
        return Phrase("or_little_further", {"rule": phrase, "width": float(rule.further)})
    return _beyond(rule, phrase)


def _beyond(rule: Linear | IfThen | AllowedRows, phrase: Phrase) -> Phrase:
    """Return a rule as it asks it of who breaks it today."""
    if rule.beyond == "meet":
        return phrase
    return Phrase("or_no_further", {"rule": phrase})


def _condition(condition: tuple[str, str, Any], space: FeatureSpace) -> Phrase:
    column, op, value = condition
    match op:
        case "changed":
            return Phrase("changes" if value else "stays", {"column": column})
        case "in":
            return _one_of(column, value, space)
    words = {"==": "equals", "!=": "is_not", "<=": "at_most", ">=": "at_least"}
    return Phrase(words[op], {"column": column, "value": value_phrase(space[column], value)})


def _one_of(column: str, values: Sequence[Any], space: FeatureSpace) -> Phrase:
    if len(values) == 1:
        return Phrase("equals", {"column": column, "value": value_phrase(space[column], values[0])})
    listed = tuple(value_phrase(space[column], value) for value in values)
    return Phrase("is_one_of", {"column": column, "values": listed})


def _if_then(rule: IfThen, space: FeatureSpace) -> Phrase:
    condition = _condition(rule.condition, space)
    phrase = Phrase("if_then", {"condition": condition, "result": _condition(rule.conclusion, space)})
    return _beyond(rule, phrase)


def _allowed_values(rule: AllowedValues, space: FeatureSpace) -> Phrase:
    rules = tuple(_one_of(column, tuple(values), space) for column, values in rule.values.items())
    return Phrase(ALL_OF, {"rules": rules})


def _allowed_transitions(rule: AllowedTransitions, space: FeatureSpace) -> Phrase:
    ways = []
    for level, after in rule.transitions.items():
        if after:
            before = value_phrase(space[rule.column], level)
            options = any_of([value_phrase(space[rule.column], value) for value in after])
            ways.append(Phrase("transition", {"before": before, "after": options}))
    if not ways:
        return Phrase("stays", {"column": rule.column})
    return Phrase("transitions", {"column": rule.column, "ways": tuple(ways)})


def _allowed_rows(rule: AllowedRows, space: FeatureSpace) -> Phrase:
    del space
    phrase = Phrase("allowed_rows", {"columns": tuple(rule.columns), "count": len(rule.frame)})
    return _beyond(rule, phrase)


def _exactly_one(rule: ExactlyOne, space: FeatureSpace) -> Phrase:
    del space
    return Phrase("exactly_one", {"columns": tuple(rule.columns)})


def _hull(rule: Hull, space: FeatureSpace) -> Phrase:
    del space
    rows = Phrase("people_of_target", {})
    if rule.data is not None:
        rows = Phrase("people_of_data", {"count": len(rule.data)})
    if math.isinf(rule.radius) or (rule.penalty is not None and rule.radius == 0.0):
        return Phrase("hull_anywhere", {"rows": rows})
    if rule.radius == 0.0:
        return Phrase("hull_inside", {"rows": rows})
    return Phrase("hull_near", {"rows": rows, "radius": float(rule.radius)})


def _causal(rule: Causal, space: FeatureSpace) -> Phrase:
    del space
    rules = []
    for column, equation in parse_equations(rule.equations).items():
        rules.append(Phrase("follows_from", {"column": column, "causes": tuple(equation.parents)}))
    return Phrase(ALL_OF, {"rules": tuple(rules)})


def _robust_validity(rule: RobustValidity, space: FeatureSpace) -> Phrase:
    del space
    if rule.radius == 0.0:
        return Phrase("robust", {"level": float(rule.level)})
    return Phrase("robust_near", {"level": float(rule.level), "radius": float(rule.radius)})


#: What a rule of a class says. Of any other its own sentence stands.
_PHRASES: Final[Mapping[type, Callable[[Any, Any], Phrase]]] = {
    MaxChanges: _max_changes,
    Linear: _linear,
    IfThen: _if_then,
    AllowedValues: _allowed_values,
    AllowedTransitions: _allowed_transitions,
    AllowedRows: _allowed_rows,
    ExactlyOne: _exactly_one,
    Hull: _hull,
    Causal: _causal,
    RobustValidity: _robust_validity,
}

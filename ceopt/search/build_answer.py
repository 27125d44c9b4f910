"""Answers from verified points: cost, score, slack, and the changes to make."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ceopt.formulations.constraints import rule_name
from ceopt.formulations.constraints.rule import actions_under, overrides
from ceopt.formulations.digits import in_places
from ceopt.formulations.predictors.reaches import slack
from ceopt.oracle.model import broken_rules
from ceopt.oracle.rows import coordinates_of
from ceopt.result.counterfactual import Counterfactual, KeptRow, altered
from ceopt.solvers.checks import plain
from ceopt.tolerances import BOUND_ROUNDING
from ceopt.words.language import printings, written_decimals

if TYPE_CHECKING:
    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.search.prepare import Prepared

#: How many ways to print an answer are shown to the model at most.
_WAYS_SHOWN = 3
#: A table of so many rows at most is written out in a line to write.
_ROWS_WRITTEN = 6


def answer_of(
    prepared: Prepared,
    factual: Mapping[str, float],
    point: Mapping[str, float],
    *,
    prediction: Any,
    bound: float | None,
    rank: int,
    cluster: Any = None,
) -> Counterfactual:
    """Return the answer of a verified point; cost, score and slack are computed from its values."""
    answers = answers_of(
        prepared, factual, [point], predictions=[prediction], bounds=[bound], rank=rank, cluster=cluster
    )
    return next(answers)


def answers_of(
    prepared: Prepared,
    factual: Mapping[str, float],
    points: Sequence[Mapping[str, float]],
    *,
    predictions: Sequence[Any],
    bounds: Sequence[float | None],
    rank: int = 1,
    cluster: Any = None,
) -> Iterator[Counterfactual]:
    """Yield the answers that verified points are, ranked as they come; models are asked for all at once."""
    if not points:
        return
    settings = prepared.settings
    space = prepared.space
    predictor = prepared.predictor
    coordinates = coordinates_of(space, points)
    scores = predictor.score(coordinates)
    slacks = slack(predictor, coordinates, settings.target).tolist()
    for k, (point, known) in enumerate(zip(points, bounds, strict=True)):
        cost = settings.cost.value(space, factual, point)
        bound = 0.0 if known is None else min(known, cost)
        if cost - bound <= BOUND_ROUNDING * cost:
            bound = cost
        yield assembled(
            settings.rules,
            space,
            factual,
            point,
            cost=cost,
            prediction=predictions[k],
            score=_score(predictor, scores[k]),
            slack=slacks[k],
            rank=rank + k,
            bound=bound,
            gap=(cost - bound) / max(abs(cost), 1e-12),
            cluster=cluster,
        )


def assembled(
    rules: Sequence[AbstractRule],
    space: FeatureSpace,
    factual: Mapping[str, float],
    point: Mapping[str, float],
    *,
    cost: float,
    prediction: Any,
    score: Any,
    slack: float | None,
    rank: int,
    bound: float | None,
    gap: float | None,
    cluster: Any = None,
) -> Counterfactual:
    """Return an answer of known cost, score and rank, with its changes and actions."""
    actions = actions_under(rules, space, factual, point)
    return Counterfactual(
        values=KeptRow.of(space, point),  # type: ignore[arg-type]  # stands for the raw row
        cost=cost,
        prediction=prediction,
        score=score,
        slack=slack,
        changed=tuple(name for name, value in factual.items() if point[name] != value),
        verified=True,
        rank=rank,
        bound=bound,
        gap=gap,
        actions=None if actions is None else pd.Series(actions, dtype=object),
        cluster=cluster,
        space=space,
    )


def _score(predictor: Predictor, scores: Any) -> Any:
    if np.ndim(scores) == 0:
        return float(scores)
    assert predictor.labels is not None  # noqa: S101 - several scores belong to labels
    return dict(zip(predictor.labels, scores.tolist(), strict=True))


# ---- rules that the person breaks today ------------------------------------------------------------------------------
def rules_beyond(
    rules: Sequence[AbstractRule], space: FeatureSpace, factual: Mapping[str, float]
) -> dict[str, AbstractRule]:
    """Return the rules that a row breaks, or misses by what it may keep, by name.

    Those that learn from the data or from the model are passed over: they say how plausible or how safe an answer is,
    and who needs an answer breaks them by nature.
    """
    found = {}
    for place, rule in enumerate(rules):
        if overrides(rule, "fitted", "about") or rule.lacks_rows:
            continue
        if rule.off_today(space, factual) > 0.0:
            found[rule_name(rule, place)] = rule
    return found


def line_without(rule: AbstractRule) -> str:
    """Return the call of a rule that lets who is beyond it today stay, as one writes it; empty where it cannot."""
    if getattr(rule, "beyond", None) != "meet" or not is_dataclass(rule):
        return ""
    words = []
    for field in fields(rule):
        value = getattr(rule, field.name, None)
        if not field.init or field.name == "beyond":
            continue
        has_default = field.default is not MISSING
        if has_default and value == field.default:
            continue
        shown = _table_written(value) if isinstance(value, pd.DataFrame) else repr(_plainly(value))
        if has_default:
            shown = f"{field.name}={shown}"
        words.append(shown)
    return f"{type(rule).__name__}({', '.join(words)}, beyond='no_further')"


def _table_written(table: pd.DataFrame) -> str:
    """Return the call that makes a small table; a larger one by the name of the argument that takes it."""
    if len(table) > _ROWS_WRITTEN:
        return "frame"
    columns = {name: list(map(plain, table[name].tolist())) for name in table.columns}
    return f"pandas.DataFrame({columns!r})"


def _plainly(value: Any) -> Any:
    """Return a value with Python's own numbers in the place of NumPy's."""
    if isinstance(value, Mapping):
        return {_plainly(key): _plainly(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_plainly, value))
    return plain(value)


def asked_by_rules(
    answers: Sequence[tuple[Counterfactual, Mapping[str, float]]],
    beyond: Mapping[str, AbstractRule],
    space: FeatureSpace,
    factual: Mapping[str, float],
    keeps_target: Callable[[list[dict[str, float]]], Sequence[bool]],
) -> list[Counterfactual]:
    """Return answers and points marked where a rule that the row breaks asks for a change and the model does not.

    So it is of a column whose own value, put back into the answer, breaks the rule and keeps the target, or all but a
    twentieth of the way there. The model is asked once, about all that break one.
    """
    asking = {name: rule for name, rule in beyond.items() if rule.violation(space, factual, factual) > 0.0}
    trials: list[dict[str, float]] = []
    breaking: list[tuple[int, str, tuple[str, ...]]] = []
    for place, (answer, point) in enumerate(answers):
        for column in answer.changed:
            back = {**point, column: factual[column]}
            broken = tuple(name for name, rule in asking.items() if rule.violation(space, factual, back) > 0.0)
            if broken:
                trials.append(back)
                breaking.append((place, column, broken))
    marks: list[dict[str, tuple[str, ...]]] = [{} for _ in answers]
    if trials:
        for (place, column, broken), is_kept in zip(breaking, keeps_target(trials), strict=True):
            if is_kept:
                marks[place][column] = broken
    marked = []
    for (answer, _), asked in zip(answers, marks, strict=True):
        marked.append(altered(answer, asked_by=asked) if asked or answer.asked_by else answer)
    return marked


# ---- the digits that are printed -------------------------------------------------------------------------------------
def with_printed(
    answers: Sequence[tuple[Counterfactual, Mapping[str, float]]],
    rules: Sequence[AbstractRule],
    space: FeatureSpace,
    factual: Mapping[str, float],
    accepts: Callable[[list[dict[str, float]]], Sequence[bool]],
) -> list[Counterfactual]:
    """Return answers that know in how many digits they may be printed.

    Those are the fewest with which the answer as a whole, read back, keeps the rules and has the decision. The model is
    asked once, about all that keep the rules; an answer of which none is accepted is printed digit for digit.
    """
    ways = [_ways_to_print(answer.changed, space, factual, point) for answer, point in answers]
    trials: list[dict[str, float]] = []
    for (_, point), known in zip(answers, ways, strict=True):
        trials += _ways_tried(known, rules, space, factual, point)
    good: set[tuple[float, ...]] = set()
    if trials:
        good = {tuple(way.values()) for way, is_good in zip(trials, accepts(trials), strict=True) if is_good}
    told = []
    for (answer, point), known in zip(answers, ways, strict=True):
        in_sentences = next((way for way in known if tuple(way.values()) in good), point)
        in_tables = next((way for way in known[1:] if tuple(way.values()) in good), point)
        printed = {}
        for name in answer.changed:
            pair = (in_sentences[name], in_tables[name])
            if pair != (point[name], point[name]):
                printed[name] = pair
        told.append(altered(answer, printed=printed) if printed else answer)
    return told


def printed_trials(
    answers: Sequence[tuple[Counterfactual, Mapping[str, float]]],
    rules: Sequence[AbstractRule],
    space: FeatureSpace,
    factual: Mapping[str, float],
) -> list[dict[str, float]]:
    """Return the points that :func:`with_printed` asks the model about."""
    trials: list[dict[str, float]] = []
    for answer, point in answers:
        trials += _ways_tried(_ways_to_print(answer.changed, space, factual, point), rules, space, factual, point)
    return trials


def _ways_tried(
    ways: Sequence[dict[str, float]],
    rules: Sequence[AbstractRule],
    space: FeatureSpace,
    factual: Mapping[str, float],
    point: Mapping[str, float],
) -> list[dict[str, float]]:
    """Return the roundings of a point that the model is asked about: the coarsest that keep the rules."""
    kept = [way for way in _each_once(ways) if way != point and not broken_rules(rules, space, factual, way)]
    return kept[:_WAYS_SHOWN]


def _ways_to_print(
    changed: Sequence[str], space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]
) -> list[dict[str, float]]:
    """Return roundings of a point for printing, coarsest first; empty where its digits are few already."""
    digits = {}
    for name in changed:
        if not _has_few_digits(space[name], point[name]):
            home = 0.0 if space[name].is_label(factual[name]) else factual[name]
            digits[name] = printings(home, point[name], space[name])
    ways = []
    for place in range(max(map(len, digits.values()), default=0)):
        way = dict(point)
        for name, known in digits.items():
            way[name] = float(known[min(place, len(known) - 1)])
        ways.append(way)
    return ways


def _has_few_digits(feature: Feature, value: float) -> bool:
    """Whether a coordinate is whole, such as the rank of a level, or has the decimals of its column's data."""
    if feature.is_finite or value.is_integer() or math.isinf(value):
        return True
    decimals = written_decimals(feature)
    if feature.step is not None or decimals is None:
        return False
    return in_places(value, decimals, "nearest", home=value) == value


def _each_once(points: Sequence[dict[str, float]]) -> list[dict[str, float]]:
    found: list[dict[str, float]] = []
    for point in points:
        if point not in found:
            found.append(point)
    return found

"""From a point that passed the check to an answer: its cost, score and slack, and what is to be done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ceopt.formulations.constraints import rule_name
from ceopt.formulations.constraints.rule import actions_under, is_learned, lacks_rows
from ceopt.formulations.predictors.decision.reaches import slack
from ceopt.solution.counterfactual import Counterfactual
from ceopt.solvers.checks import plain
from ceopt.tolerances import BOUND_ROUNDING

if TYPE_CHECKING:
    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.query.prepare import Prepared

__all__ = ["answer_of", "answers_of", "asked_by_rules", "assembled", "line_without", "rules_beyond"]

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
    """Return the answer that a verified point is, with everything about it computed anew from its values."""
    settings = prepared.settings
    space = prepared.space
    predictor = prepared.predictor
    coordinates = np.array([[point[name] for name in space.names]])
    return _answer(
        prepared,
        factual,
        point,
        frame=space.frame([point]),
        prediction=prediction,
        score=_score(predictor, predictor.score(coordinates)[0]),
        slack=float(slack(predictor, coordinates, settings.target)[0]),
        bound=bound,
        rank=rank,
        cluster=cluster,
    )


def answers_of(
    prepared: Prepared,
    factual: Mapping[str, float],
    points: Sequence[Mapping[str, float]],
    *,
    predictions: Sequence[Any],
    bounds: Sequence[float | None],
) -> Iterator[Counterfactual]:
    """Yield the answers that verified points are, ranked as they come; models and frames are asked for all at once."""
    if not points:
        return
    space = prepared.space
    predictor = prepared.predictor
    coordinates = np.array([[point[name] for name in space.names] for point in points])
    frame = space.frame(points)
    scores = predictor.score(coordinates)
    slacks = slack(predictor, coordinates, prepared.settings.target).tolist()
    for k, point in enumerate(points):
        yield _answer(
            prepared,
            factual,
            point,
            frame=frame.iloc[[k]],
            prediction=predictions[k],
            score=_score(predictor, scores[k]),
            slack=slacks[k],
            bound=bounds[k],
            rank=k + 1,
        )


def _answer(
    prepared: Prepared,
    factual: Mapping[str, float],
    point: Mapping[str, float],
    *,
    frame: pd.DataFrame,
    prediction: Any,
    score: Any,
    slack: float,
    bound: float | None,
    rank: int,
    cluster: Any = None,
) -> Counterfactual:
    settings = prepared.settings
    space = prepared.space
    cost = settings.cost.value(space, factual, point)
    bound = 0.0 if bound is None else min(bound, cost)
    if cost - bound <= BOUND_ROUNDING * cost:
        bound = cost
    return assembled(
        settings.rules,
        space,
        factual,
        point,
        frame=frame,
        cost=cost,
        prediction=prediction,
        score=score,
        slack=slack,
        rank=rank,
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
    frame: pd.DataFrame,
    cost: float,
    prediction: Any,
    score: Any,
    slack: float | None,
    rank: int,
    bound: float | None,
    gap: float | None,
    cluster: Any = None,
) -> Counterfactual:
    """Return an answer of known cost, score and rank, with what it changes and what is to be done for it."""
    actions = actions_under(rules, space, factual, point)
    return Counterfactual(
        values=frame,  # type: ignore[arg-type]  # a frame keeps each column's dtype
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
    """Return the rules that a row breaks, by name.

    Those that learn from the data or from the model are passed over: they say how plausible or how safe an answer is,
    and who needs an answer breaks them by nature.
    """
    found = {}
    for place, rule in enumerate(rules):
        if not is_learned(rule) and not lacks_rows(rule) and rule.violation(space, factual, factual) > 0.0:
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
        words.append(f"{field.name}={shown}" if has_default else shown)
    return f"{type(rule).__name__}({', '.join(words)}, beyond='no_further')"


def _table_written(table: pd.DataFrame) -> str:
    """Return the call that makes a small table; a larger one by the name of the argument that takes it."""
    if len(table) > _ROWS_WRITTEN:
        return "frame"
    columns = {name: [plain(value) for value in table[name].tolist()] for name in table.columns}
    return f"pandas.DataFrame({columns!r})"


def _plainly(value: Any) -> Any:
    """Return a value with Python's own numbers in the place of NumPy's."""
    if isinstance(value, Mapping):
        return {_plainly(key): _plainly(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_plainly(entry) for entry in value])
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
    trials: list[dict[str, float]] = []
    breaking: list[tuple[int, str, tuple[str, ...]]] = []
    for place, (answer, point) in enumerate(answers if beyond else ()):
        for column in answer.changed:
            back = {**point, column: factual[column]}
            broken = tuple(name for name, rule in beyond.items() if rule.violation(space, factual, back) > 0.0)
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
        if asked == answer.asked_by:
            marked.append(answer)
        else:
            frame: Any = answer.frame  # keeps each column's dtype
            marked.append(replace(answer, values=frame, asked_by=asked))
    return marked

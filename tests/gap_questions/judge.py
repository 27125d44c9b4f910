"""The judge: every row that a person may become, by the words of the documentation, asked of the model's predict."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pandas as pd

import ceopt
from gap_questions.draw import Question

__all__ = ["cheapest", "faults"]


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_label(feature: ceopt.Feature, value: Any) -> bool:
    return _is_nan(value) or value in feature.codes


def _same(one: Any, other: Any) -> bool:
    return (_is_nan(one) and _is_nan(other)) or one == other


def _amounts(feature: ceopt.Feature, own: Any) -> list[Any]:
    """Return the amounts that a person with the value ``own`` may reach."""
    if feature.is_finite:
        amounts = [level for level in feature.levels if level not in feature.codes]
    else:
        step = feature.step or 1.0
        lower, upper = feature.lower, feature.upper
        anchor = lower
        if not _is_label(feature, own):
            anchor = own
            lower = min(lower, own) if feature.lower_inferred else lower
            upper = max(upper, own) if feature.upper_inferred else upper
        counts = range(math.ceil((lower - anchor) / step), math.floor((upper - anchor) / step) + 1)
        amounts = [anchor + count * step for count in counts]
        amounts = [amount for amount in amounts if amount not in feature.codes]
        if not _is_label(feature, own):
            amounts = [amount for amount in amounts if _is_near_enough(feature.max_up, feature.max_down, own, amount)]
    if _is_label(feature, own) or feature.kind == "categorical":
        return amounts
    places = {value: place for place, value in enumerate(feature.levels if feature.is_finite else amounts)}
    if feature.direction == "increasing":
        return [amount for amount in amounts if places[amount] >= places[own]]
    if feature.direction == "decreasing":
        return [amount for amount in amounts if places[amount] <= places[own]]
    return amounts


def _is_near_enough(up: float | str | None, down: float | str | None, own: float, amount: float) -> bool:
    """Return whether a move is no longer than a limit: a number, or half of the person's own amount."""
    limit = up if amount > own else down
    if limit is None:
        return True
    most = abs(own) / 2 if limit == "50%" else float(limit)
    return abs(amount - own) <= most


def _keeps(question: Question, own: list[Any], values: tuple[Any, ...], changed: int) -> bool:
    for rule in question.rules:
        if isinstance(rule, ceopt.MaxChanges):
            if changed > rule.k:
                return False
            continue
        for feature, before, after in zip(question.space, own, values, strict=True):
            if feature.name not in rule.columns or _is_label(feature, before) or _is_label(feature, after):
                continue
            if not _is_near_enough(rule.up, rule.down, before, after):
                return False
    return True


def _choices(feature: ceopt.Feature, own: Any) -> list[Any]:
    if not feature.mutable:
        return [own]
    may_be_filled = math.isfinite(feature.fill)
    if _is_nan(own) and (feature.missing == "stays" or not may_be_filled):
        return [own]
    if _is_label(feature, own) and not may_be_filled:
        return [own]
    others: list[Any] = []
    if feature.codes_in_reach and may_be_filled:
        others += feature.codes
    if feature.missing == "may_vanish" and may_be_filled:
        others.append(math.nan)
    choices = _amounts(feature, own)
    for value in [own, *others]:
        if not any(_same(value, choice) for choice in choices):
            choices.append(value)
    return choices


def _move(feature: ceopt.Feature, own: Any, value: Any, scale: str) -> tuple[float, bool]:
    """Return a column's weighted move at its scale, and whether it moved at all."""
    if _same(own, value):
        return 0.0, False
    down, up = feature.weights
    if _is_label(feature, own) or _is_label(feature, value):
        return feature.fill * max(down, up), True
    if feature.kind == "categorical":
        return up, True
    if feature.is_finite:
        move = float(feature.levels.index(value) - feature.levels.index(own))
    else:
        move = float(value - own)
    weight = up if move > 0 else down
    return weight * abs(move) / feature.scale(scale), True


def _price(question: Question, columns: list[tuple[float, bool]]) -> float:
    cost = question.cost
    moves = [move for move, _ in columns]
    match type(cost).__name__:
        case "L1":
            return sum(moves)
        case "L2":
            return math.sqrt(sum(move * move for move in moves))
        case "Linf":
            return max(moves)
        case _:
            raise AssertionError


def _count_price(question: Question, own: list[Any], values: tuple[Any, ...]) -> float:
    total = 0.0
    for feature, before, after in zip(question.space, own, values, strict=True):
        if _same(before, after):
            continue
        down, up = feature.weights
        if _is_label(feature, before) or _is_label(feature, after):
            total += max(down, up)
        elif feature.kind == "categorical":
            total += up
        else:
            places = list(feature.levels) if feature.is_finite else None
            rises = places.index(after) > places.index(before) if places else after > before
            total += up if rises else down
    return total


def cheapest(question: Question) -> tuple[float | None, pd.DataFrame]:
    """Return the cost of the cheapest row that the model puts in the target, and all rows in reach that it does."""
    own = [question.row[feature.name].iloc[0] for feature in question.space]
    choices = [_choices(feature, value) for feature, value in zip(question.space, own, strict=True)]
    rows = list(itertools.product(*choices))
    frame = pd.DataFrame(rows, columns=list(question.space.names))
    for feature in question.space:
        frame[feature.name] = frame[feature.name].astype(object if feature.kind == "categorical" else float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = np.asarray(question.model.predict(frame))
    if isinstance(question.target, ceopt.AtLeast):
        met = predicted >= question.target.value
    else:
        met = predicted == question.target
    scale = getattr(question.cost, "scale", "none")
    prices = np.full(len(rows), np.inf)
    for place in np.flatnonzero(met):
        values = rows[place]
        columns = [
            _move(feature, before, after, scale)
            for feature, before, after in zip(question.space, own, values, strict=True)
        ]
        changed = sum(is_moved for _, is_moved in columns)
        if not _keeps(question, own, values, changed):
            met[place] = False
            continue
        if type(question.cost).__name__ == "L0":
            prices[place] = _count_price(question, own, values)
        else:
            prices[place] = _price(question, columns)
    best = float(prices.min()) if met.any() else None
    return best, frame[met]


def faults(question: Question, result: Any) -> list[str]:
    """Return what is wrong with a result: a status, a cost or a row that enumeration contradicts."""
    best, rows = cheapest(question)
    status = str(result.status)
    if best is None:
        return [] if status == "infeasible" else [f"{status}, but no row in reach is in the target"]
    if status != "optimal":
        return [f"{status} ({result.reason}), but a row costs {best}"]
    found = []
    answer = result[0].to_frame() if hasattr(result[0], "to_frame") else result[0].frame
    values = [answer[feature.name].iloc[0] for feature in question.space]
    is_row = np.ones(len(rows), dtype=bool)
    for feature, value in zip(question.space, values, strict=True):
        column = rows[feature.name].to_numpy()
        is_row &= np.array([_same(value, other) or _is_near(value, other) for other in column], dtype=bool)
    if not is_row.any():
        found.append(f"{values} is none of the rows in reach that the model puts in the target")
    if not math.isclose(result[0].cost, best, rel_tol=1e-5, abs_tol=1e-6):
        found.append(f"it costs {result[0].cost}, and a row costs {best}")
    if not result[0].verified:
        found.append("it is not verified")
    return found


def _is_near(one: Any, other: Any) -> bool:
    return isinstance(one, float) and isinstance(other, float) and math.isclose(one, other, abs_tol=1e-9)

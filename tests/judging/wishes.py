"""Random targets, costs, rules and ways to differ, each with its price or its test in plain numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import enumeration
import numpy as np
import pandas as pd
from judging.columns import Floats, Rng, is_lattice, lattice, pick, sample
from judging.models import Fitted
from numpy.typing import NDArray
from rules.found import kept

import ceopt
from ceopt import AllowedRows, AllowedTransitions, AllowedValues, IfThen, Linear, MaxChanges
from ceopt.formulations.costs import L0, L1, L2, Changes, Linf, Mahalanobis, Percentile
from ceopt.formulations.space import FeatureSpace
from ceopt.formulations.targets import AtLeast, AtMost, Between, Disagreement, OtherThan, Probability

Price = Callable[[enumeration.Moves, Floats], Floats]


@dataclass(frozen=True)
class Cost:
    """A cost as ``explain`` takes it, and by hand: ``price(moves, points)``, (n,)."""

    given: Any
    price: Price
    name: str


def _plain(given: Any, cost: enumeration.Cost, name: str) -> Cost:
    return Cost(given, lambda moves, points: np.broadcast_to(cost(moves), len(points)), name)


def draw_cost(rng: Rng, space: FeatureSpace, home: Floats, *, lattice_only: bool, cuttable: bool) -> Cost:
    """Draw a cost; those over several columns at once only where every point is written out."""
    one = enumeration
    simple = [
        _plain("l1", one.l1(), "l1"), _plain("l1", one.l1(), "l1"), _plain("l1", one.l1(), "l1"),
        _plain("l0", one.l0, "l0"), _plain("linf", one.linf(), "linf"),
        _plain("l2", one.l2(), "l2"), _plain("l2_squared", one.l2_squared(), "l2_squared"),
        _plain(L1(scale="std"), one.l1("std"), "l1"), _plain(L1(scale="none"), one.l1("none"), "l1"),
        _plain(Linf(scale="range"), one.linf("range"), "linf"),
        _plain(L1(count="columns"), one.l1("mad", "columns"), "l1"),
        _plain(L2(scale="range", squared=True), one.l2_squared("range"), "l2_squared"),
        _plain(L1() + 0.25 * Changes(), one.total((1.0, one.l1()), (0.25, one.changes())), "sum"),
        _plain(L1() + 0.1 * Changes(), one.total((1.0, one.l1()), (0.1, one.changes())), "sum"),
        _plain(Changes(count="columns") + 0.5 * Linf(scale="range"),
               one.total((1.0, one.changes("columns")), (0.5, one.linf("range"))), "sum"),
        _plain(2.0 * (L0() + L1()), one.total((2.0, one.l0), (2.0, one.l1())), "sum"),
    ]  # fmt: skip
    scale = {f.name: float(np.round(rng.uniform(0.5, 2.0), 2)) * _size(f) for f in space}
    simple.append(_plain(L1(scale=scale), one.l1(scale), "l1"))
    numbers = [j for j, f in enumerate(space) if not f.is_finite]
    if lattice_only and numbers and rng.uniform() < 0.12:
        return _mahalanobis(rng, space, numbers)
    if cuttable and rng.uniform() < 0.08:
        return _percentile(rng, space, home)
    return simple[int(rng.integers(len(simple)))]


def _size(feature: Any) -> float:
    width = feature.upper - feature.lower
    return float(width) / 4 if not feature.is_finite and np.isfinite(width) and width > 0 else 1.0


def _mahalanobis(rng: Rng, space: FeatureSpace, numbers: list[int]) -> Cost:
    sizes = np.array([_size(space[space.names[j]]) for j in numbers])
    root = rng.normal(size=(len(numbers), len(numbers)))
    covariance = (root @ root.T + 0.3 * np.eye(len(numbers))) * np.outer(sizes, sizes)
    precision = np.linalg.inv(covariance)

    def price(moves: enumeration.Moves, points: Floats) -> Floats:
        part = moves.moves[:, numbers]
        total = np.einsum("ni,ij,nj->n", part, precision, part)
        for j, feature in enumerate(space):
            if feature.is_finite:
                total = total + moves.weight(j) ** 2 * (moves.moves[:, j] != 0)
        return np.asarray(np.sqrt(total))

    return Cost(Mahalanobis(covariance), price, "mahalanobis")


def _percentile(rng: Rng, space: FeatureSpace, home: Floats) -> Cost:
    """Percentiles of people who live on the lattice: Q(v) = (number at most v + 1/2) / (n + 2)."""
    from judging.columns import frame_of

    points = sample(rng, space, home, int(rng.integers(4, 12)))
    kind = pick(rng, "max", "total_log")

    def price(moves: enumeration.Moves, at: Floats) -> Floats:
        del moves
        parts = []
        for j, feature in enumerate(space):
            if feature.kind != "categorical":
                parts.append(_shift(kind, points[:, j], at[:, j], home[j]))
                continue
            # A category stands for its 0/1 columns, of which a change moves two.
            for level in range(len(feature.levels)):
                own = (points[:, j] == level).astype(float)
                parts.append(_shift(kind, own, (at[:, j] == level).astype(float), float(home[j] == level)))
        return np.max(parts, axis=0) if kind == "max" else np.sum(parts, axis=0)

    return Cost(Percentile(kind, frame_of(space, points)), price, "percentile")


def _shift(kind: str, known: Floats, at: Floats, x0: float) -> Floats:
    def q(values: Any) -> Any:
        below = (known[None, :] <= np.atleast_1d(values)[:, None]).sum(axis=1)
        return (below + 0.5) / (len(known) + 2.0)

    if kind == "max":
        return np.abs(q(at) - q(x0))
    return np.abs(np.log((1.0 - q(at)) / (1.0 - q(x0))))


# ---- targets ---------------------------------------------------------------------------------------------------------
def draw_target(rng: Rng, model: Fitted, points: Floats, home: Floats, *, smooth: bool) -> Any:
    """Draw a target, mostly one that some of the points reach and the person does not.

    Of a smooth score no single value is wanted: which floats hit it exactly is nobody's question.
    """
    said = model.predict(points)
    now = model.predict(home[None, :])[0]
    if model.labels is None:
        return _values(rng, said.astype(float), float(now), smooth=smooth)
    labels = list(model.labels)
    others = [label for label in labels if label != now]
    met = [label for label in others if (said == label).any()] or others
    label = pick(rng, *(met if rng.uniform() < 0.9 else labels))
    if model.chance is not None and len(labels) == 2 and rng.uniform() < 0.25:
        chances = np.unique(model.probability(points, label))
        least = float(pick(rng, *chances)) if rng.uniform() < 0.6 else float(np.round(rng.uniform(0.2, 0.8), 1))
        if 0.0 < least < 1.0:
            return Probability(_plain_label(label), least)
    if len(labels) > 2 and rng.uniform() < 0.4:
        if rng.uniform() < 0.5:
            return OtherThan(_plain_label(now))
        return {_plain_label(one) for one in rng.permutation(np.array(others, dtype=object))[:2]}
    return _plain_label(label)


def _plain_label(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _values(rng: Rng, said: Floats, now: float, *, smooth: bool) -> Any:
    values = np.unique(said)
    wish = float(values[int(rng.integers(len(values)))])
    near = float(values[int(rng.integers(len(values)))])
    if rng.uniform() < 0.35:
        wish = (wish + near) / 2
    low, high = sorted((wish, near))
    if rng.uniform() < 0.2 and (low < high or not smooth):
        return Between(low, high)
    if rng.uniform() < 0.05:
        return AtLeast(float(values[-1]) + 1.0)
    return AtLeast(wish) if wish >= now else AtMost(wish)


def meets(model: Fitted, target: Any, points: Floats) -> NDArray[np.bool_]:
    """Return which points the model itself decides for the target."""
    match target:
        case Probability():
            return np.asarray(model.probability(points, target.label) >= target.at_least)
        case AtLeast():
            return np.asarray(model.predict(points) >= target.value)
        case AtMost():
            return np.asarray(model.predict(points) <= target.value)
        case Between():
            said = model.predict(points)
            return np.asarray((said >= target.low) & (said <= target.high))
        case OtherThan():
            return np.asarray(model.predict(points) != target.label)
        case Disagreement():
            alone = [_said_is_met(said, target.target) for said in model.each_tree(points)]
            agree = np.sum(alone, axis=0)
            return np.asarray(agree >= len(alone) - np.floor(target.at_most * len(alone) + 1e-9))
    wanted = list(target) if isinstance(target, set) else [target]
    return np.asarray(np.isin(model.predict(points).astype(object), np.array(wanted, dtype=object)))


def _said_is_met(said: NDArray[Any], target: Any) -> NDArray[np.bool_]:
    match target:
        case AtLeast():
            return np.asarray(said >= target.value)
        case AtMost():
            return np.asarray(said <= target.value)
        case Between():
            return np.asarray((said >= target.low) & (said <= target.high))
        case OtherThan():
            return np.asarray(said != target.label)
    wanted = list(target) if isinstance(target, set) else [target]
    return np.asarray(np.isin(said.astype(object), np.array(wanted, dtype=object)))


# ---- rules -----------------------------------------------------------------------------------------------------------
def draw_rules(rng: Rng, space: FeatureSpace, home: Floats) -> tuple[Any, ...]:
    """Draw up to two rules over columns whose values are written out, and counts of changes."""
    found: list[Any] = []
    if rng.uniform() < 0.25:
        found.append(MaxChanges(int(pick(rng, 1, 1, 2, 3)), count=pick(rng, "features", "columns")))
    fixed = [j for j, f in enumerate(space) if is_lattice(f)]
    if fixed and rng.uniform() < 0.3:
        rule = _rule(rng, space, home, fixed)
        if rule is not None:
            found.append(rule)
    return tuple(found)


def _rule(rng: Rng, space: FeatureSpace, home: Floats, fixed: Sequence[int]) -> Any:
    names = [space.names[j] for j in fixed]
    chosen = list(dict.fromkeys(pick(rng, *names) for _ in range(2)))
    which = pick(rng, "values", "rows", "if", "if", "linear", "transitions")
    if which == "values":
        return AllowedValues({name: _some(rng, space, home, name, 4) for name in chosen})
    if which == "rows":
        rows = {name: [pick(rng, *_all(space, home, name)) for _ in range(5)] for name in chosen}
        return AllowedRows(chosen, pd.DataFrame(rows))
    if which == "transitions":
        levelled = [name for name in names if space[name].is_finite]
        if not levelled:
            return None
        name = pick(rng, *levelled)
        levels = space[name].levels
        ways = {level: [pick(rng, *levels)] for level in levels if rng.uniform() < 0.8}
        return AllowedTransitions(name, ways) if ways else None
    if which == "linear":
        ordered = [name for name in names if space[name].kind != "categorical"]
        if not ordered:
            return None
        chosen = list(dict.fromkeys(pick(rng, *ordered) for _ in range(2)))
        # A step on a wide column counts as 1, so that the row's numbers are ordinary.
        weights = {name: float(pick(rng, -2, -1, 1, 3)) / _least(space[name]) for name in chosen}
        left = sum(a * home[space.names.index(name)] for name, a in weights.items())
        return Linear(weights, pick(rng, "<=", ">="), float(left + pick(rng, -1.5, 0.5, 1.5, 2.5)))
    rule = IfThen(_condition(rng, space, home, names), _condition(rng, space, home, names))
    try:
        rule.check(space)
    except ceopt.CeoptError:
        return None  # a contradiction
    return rule


def _least(feature: Any) -> float:
    if feature.is_finite or feature.step is not None:
        return 1.0 if feature.is_finite else float(feature.step)
    # Of a wide column that stays: a row of sums of 1e9 is kept to a billionth of them, not to a whole number.
    width = feature.upper - feature.lower
    return max(1.0, width / 20) if np.isfinite(width) else 1.0


def _all(space: FeatureSpace, home: Floats, name: str) -> list[Any]:
    feature, x0 = space[name], float(home[space.names.index(name)])
    values = lattice(feature, x0)
    if feature.is_finite:
        return [feature.levels[int(k)] for k in values]
    return [int(v) for v in values] if feature.kind == "integer" else values


def _some(rng: Rng, space: FeatureSpace, home: Floats, name: str, most: int) -> list[Any]:
    values = _all(space, home, name)
    return [values[int(k)] for k in sorted(set(rng.integers(0, len(values), most).tolist()))]


def _condition(rng: Rng, space: FeatureSpace, home: Floats, names: Sequence[str]) -> Any:
    name = pick(rng, *names)
    feature = space[name]
    op = pick(rng, "==", "!=", "in", "changed", *(() if feature.kind == "categorical" else ("<=", ">=", "<=", ">=")))
    if op == "changed":
        return (name, op, bool(rng.uniform() < 0.5))
    if op == "in":
        return (name, op, _some(rng, space, home, name, 2))
    return (name, op, pick(rng, *_all(space, home, name)))


def keeps(rules: Sequence[Any], space: FeatureSpace, home: Floats, points: Floats) -> NDArray[np.bool_]:
    """Return which points keep all rules, by the tests' own halves of them."""
    return np.asarray(kept(list(rules), space, home, points))

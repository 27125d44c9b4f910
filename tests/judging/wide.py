"""Linear models over many wide or free columns: the least cost in closed form, in fractions where sums are wide.

One score that must reach a level, a price per column: with gain ``g_j`` of the score per unit of move in the useful
direction, ``cap_j`` the longest move and ``p_j`` the price, the least cost over real moves is

======================= ===============================================================================
l1                      a fractional knapsack: the columns in the order of price over gain
l0, or l1 with changes  the same over every subset of columns that may move
linf                    one length t, at which every column moves ``min(cap_j, t / p_j)``
l2, l2_squared          ``min(cap_j, s g_j / p_j^2)`` with one multiplier s
======================= ===============================================================================

Whole columns are 1e8 and more wide here, so that whole moves cost more by far less than what is compared.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from judging.columns import Floats, Rng, draw_column, pick, reach
from judging.models import Fitted, by_hand

from ceopt.formulations.costs import L0, L1, L2, Changes, Linf
from ceopt.formulations.predictors import Affine
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.targets import AtLeast, AtMost, Probability


@dataclass(frozen=True)
class Lever:
    """One column's useful direction: gain of the score per unit, longest move, price per unit and of moving at all."""

    gain: Fraction
    cap: Fraction | None
    price: Fraction
    fixed: Fraction
    is_whole: bool


@dataclass(frozen=True)
class Halfspace:
    """A person below a level of one affine score, and what it takes to get there."""

    model: Fitted
    home: Floats
    target: Any
    cost: Any
    word: str
    #: The least cost over real moves, and the most that whole moves need beyond it.
    best: float | None
    most: float | None
    options: dict[str, Any]

    @property
    def space(self) -> FeatureSpace:
        """The columns."""
        return self.model.space


def draw_halfspace(rng: Rng, solver: str) -> Halfspace:
    """Return a random linear question without an enumeration, and its least cost."""
    d = int(rng.integers(1, 6))
    sorts = [str(pick(rng, "wide", "wide", "wide", "free", "huge", "tiny")) for _ in range(d)]
    pairs = [_column(rng, name, sort) for name, sort in zip("abcdefgh", sorts, strict=False)]
    space, home = FeatureSpace([f for f, _ in pairs]), np.array([x for _, x in pairs])
    widths = np.array([_width(f, x) for f, x in pairs])
    weights = rng.normal(size=d) / widths * 10.0 ** rng.uniform(-1, 1, d)
    base = float(rng.normal()) if rng.uniform() < 0.5 else float(np.round(rng.normal(), 1))
    what = pick(rng, "value", "score", "logistic")
    labels = None if what == "value" else ("bad", "good")
    options = {"probability": "logistic"} if what == "logistic" else {}
    given = Affine(weights, base, labels=labels, **options)
    model = by_hand(
        given, space, labels, lambda m: m @ weights + base, logistic=what == "logistic", title="Affine wide"
    )
    here = float(home @ weights + base)
    spans = np.abs(weights) * widths
    wish = here + float(rng.choice([-1, 1])) * float(10.0 ** rng.uniform(-6, 0)) * float(spans.sum())
    target, level, up = _aimed(rng, what, here, wish)
    word, cost, factor = _cost(rng)
    levers = _levers(space, home, weights, word, up=up)
    now = sum((Fraction(w) * Fraction(x) for w, x in zip(weights.tolist(), home.tolist(), strict=True)), Fraction(base))
    need = (Fraction(level) - now) * (1 if up else -1)
    best = 0.0 if need <= 0 else _least(word, levers, need, factor)
    most = None if best is None else _whole(word, best, levers)
    options = {"n": 1, "solver": solver, "time_limit_s": 30.0, "formulation": "auto"}
    return Halfspace(model, home, target, cost, word, best, most, options)


def _whole(word: str, best: float, levers: list[Lever]) -> float:
    """Return the least cost with every column that holds whole numbers moved by one more."""
    prices = np.array([float(lever.price) for lever in levers if lever.is_whole])
    if not len(prices):
        return best
    match word:
        case "l0":
            return best
        case "l1" | "changes":
            return best + float(prices.sum())
        case "linf":
            return best + float(prices.max())
        case "l2":
            return best + float(np.sqrt((prices**2).sum()))
    return float((math.sqrt(best) + np.sqrt((prices**2).sum())) ** 2)


def _column(rng: Rng, name: str, sort: str) -> tuple[Feature, float]:
    if sort not in {"huge", "tiny"}:
        feature, home = draw_column(rng, name, sort)
        return _mutable(feature), home
    size = 10.0 ** float(rng.uniform(10, 12)) if sort == "huge" else 10.0 ** float(rng.uniform(-12, -3))
    direction = pick(rng, "any", "any", "increasing")
    mad = pick(rng, None, size / 8, 6 * size)
    home = size * float(rng.integers(0, 9)) / 16
    return Feature(name, kind="continuous", lower=0.0, upper=size, mad=mad, direction=direction), home


def _mutable(feature: Feature) -> Feature:
    return feature if feature.mutable else FeatureSpace([feature]).update(feature.name, mutable=True)[feature.name]


def _width(feature: Feature, home: float) -> float:
    del home
    return float(feature.upper - feature.lower)


def _aimed(rng: Rng, what: str, here: float, wish: float) -> tuple[Any, float, bool]:
    """Return a target, the level of the score that it means, and whether that lies above the person."""
    up = wish > here
    if what == "value":
        return (AtLeast(wish) if up else AtMost(wish)), wish, up
    if what == "logistic" and rng.uniform() < 0.5:
        level = float(np.round(1.0 / (1.0 + math.exp(-max(min(wish, 4.0), -4.0))), 3))
        chance = min(max(level if up else 1.0 - level, 0.02), 0.98)
        score = math.log(chance / (1 - chance)) * (1 if up else -1)
        return Probability("good" if up else "bad", chance), score, up
    label = "good" if here <= 0 else "bad"
    return label, 0.0, here <= 0


def _cost(rng: Rng) -> tuple[str, Any, float]:
    """Return a cost by a word, as it is given, and what each changed column costs beside it."""
    word = pick(rng, "l1", "l1", "l1", "l0", "linf", "l2", "l2_squared", "changes")
    factor = float(pick(rng, 0.25, 0.001))
    given = {"l0": L0(), "linf": Linf(), "l2_squared": L2(squared=True), "changes": L1() + factor * Changes()}
    return word, given.get(word, word), factor


def _levers(space: FeatureSpace, home: Floats, weights: Floats, word: str, *, up: bool) -> list[Lever]:
    found = []
    for feature, x0, weight in zip(space, home.tolist(), weights.tolist(), strict=True):
        rising = (weight > 0) == up
        low, high = reach(feature, x0)
        end = high if rising else low
        cap = None if math.isinf(end) else abs(Fraction(end) - Fraction(x0))
        if weight == 0 or cap == 0:
            continue
        scale = next((s for s in (feature.mad, feature.std, feature.range, feature.upper - feature.lower) if s), 1.0)
        price = Fraction(feature.weights[1 if rising else 0])
        fixed = price if word == "l0" else Fraction(1)
        found.append(
            Lever(abs(Fraction(weight)), cap, price / Fraction(float(scale)), fixed, feature.kind == "integer")
        )
    return found


def _least(word: str, levers: list[Lever], need: Fraction, factor: float) -> float | None:
    reachable = sum((lever.gain * lever.cap for lever in levers if lever.cap is not None), Fraction(0))
    if reachable < need and all(lever.cap is not None for lever in levers):
        return None
    match word:
        case "l1":
            cost = _knapsack(levers, need)
            return None if cost is None else float(cost)
        case "l0":
            return _subsets(levers, need, lambda _: Fraction(0))
        case "changes":
            return least_with_changes(levers, need, Fraction(factor))
        case "linf":
            return _length(levers, need)
        case "l2" | "l2_squared":
            square = _square(levers, float(need))
            return math.sqrt(square) if word == "l2" else square
    raise AssertionError(word)


def _knapsack(levers: list[Lever], need: Fraction) -> Fraction | None:
    total = Fraction(0)
    for lever in sorted(levers, key=lambda one: one.price / one.gain):
        move = need / lever.gain if lever.cap is None else min(lever.cap, need / lever.gain)
        total += move * lever.price
        need -= move * lever.gain
        if need <= 0:
            return total
    return None


def _subsets(levers: list[Lever], need: Fraction, rest: Callable[[list[Lever]], Fraction]) -> float | None:
    """Return the least of the prices of moving at all and what the rest costs, over all subsets that suffice."""
    best: Fraction | None = None
    for size in range(1, len(levers) + 1):
        for some in itertools.combinations(levers, size):
            gained = sum((lever.gain * lever.cap for lever in some if lever.cap is not None), Fraction(0))
            if gained < need and all(lever.cap is not None for lever in some):
                continue
            cost = sum((lever.fixed for lever in some), Fraction(0)) + rest(list(some))
            best = cost if best is None else min(best, cost)
    return None if best is None else float(best)


def least_with_changes(levers: list[Lever], need: Fraction, factor: Fraction) -> float | None:
    """Return the least l1 cost plus a price for each column that moves."""

    def rest(some: list[Lever]) -> Fraction:
        cost = _knapsack(some, need)
        assert cost is not None
        return cost + (factor - 1) * len(some)

    return _subsets(levers, need, rest)


def _length(levers: list[Lever], need: Fraction) -> float | None:
    """Return the least t with sum of gain * min(cap, t / price) >= need: straight between the columns' ends."""
    free = [lever for lever in levers if lever.price == 0]
    for lever in free:
        if lever.cap is None:
            return 0.0
        need -= lever.gain * lever.cap
    if need <= 0:
        return 0.0
    priced = [lever for lever in levers if lever.price > 0]
    ends = sorted({lever.cap * lever.price for lever in priced if lever.cap is not None})

    def gained(t: Fraction) -> Fraction:
        moves = (
            lever.gain * (t / lever.price if lever.cap is None else min(lever.cap, t / lever.price)) for lever in priced
        )
        return sum(moves, Fraction(0))

    before = Fraction(0)
    for end in ends:
        if gained(end) >= need:
            return float(before + (need - gained(before)) / ((gained(end) - gained(before)) / (end - before)))
        before = end
    slope = sum((lever.gain / lever.price for lever in priced if lever.cap is None), Fraction(0))
    return float(before + (need - gained(before)) / slope) if slope else None


def _square(levers: list[Lever], need: float) -> float:
    """Return the least sum of squares, by bisection of the multiplier."""
    free = [lever for lever in levers if lever.price == 0]
    for lever in free:
        if lever.cap is None:
            return 0.0
        need -= float(lever.gain * lever.cap)
    if need <= 0:
        return 0.0
    priced = [lever for lever in levers if lever.price > 0]
    gain = np.array([float(lever.gain / lever.price) for lever in priced])  # of a length
    cap = np.array([math.inf if lever.cap is None else float(lever.cap * lever.price) for lever in priced])
    low, high = 0.0, 1.0
    while float(gain @ np.minimum(cap, high * gain)) < need:
        high *= 2.0
        if high > 1e300:
            break  # every column at its end just suffices
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if float(gain @ np.minimum(cap, middle * gain)) >= need else (middle, high)
    return float((np.minimum(cap, high * gain) ** 2).sum())

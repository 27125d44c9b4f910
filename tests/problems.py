"""Hypothesis strategies for small problems with every kind of column, shared by the tests of formulations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import enumeration as by_hand
import numpy as np
import pyomo.environ as pyo
from hypothesis import strategies as st
from numpy.typing import NDArray

from ceopt.formulations import Factual, Reaches, embed, impose
from ceopt.formulations.constraints import AbstractRule, Linear, MaxChanges
from ceopt.formulations.costs import L0, L1, L2, AbstractCost, Changes, Linf
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.targets import AtLeast, AtMost, Between, OtherThan, Probability
from ceopt.solvers import Status, solve

KINDS = ("continuous", "stepped", "integer", "even", "ordinal", "ranked", "categorical", "binary", "flag")
LEVELS: dict[str, tuple[Any, ...]] = {
    "ordinal": ("low", "mid", "high", "top"),
    "ranked": (1, 2, 5),
    "categorical": (10, 30, 20),
    "binary": ("no", "yes"),
    "flag": (False, True),
}
#: Values that a threshold of the model can take beyond halves; two of them share their first six digits.
FINE = (0.1, 0.3, 1.4999999, 1.5000001)


@dataclass(frozen=True)
class Problem:
    """One person, one model, one target, one cost, some rules: everything that a program is made of."""

    space: FeatureSpace
    row: dict[str, Any]
    model: Any
    target: Any
    cost: AbstractCost
    price: by_hand.Cost
    rules: tuple[AbstractRule, ...]
    margin: float

    @property
    def point(self) -> NDArray[np.float64]:
        return np.array([self.space[name].to_coordinate(value) for name, value in self.row.items()])


# ---- columns --------------------------------------------------------------------------------------------------------
@st.composite
def features(draw: Any, name: str, kinds: Sequence[str] = KINDS, *, bounded: bool = True) -> tuple[Feature, Any]:
    """Draw a column and the person's value in it."""
    kind = draw(st.sampled_from(kinds))
    weight = draw(st.sampled_from([1.0, 2.0, (1.0, 3.0), (0.5, 0.0)]))
    mutable = draw(st.sampled_from([True] * 7 + [False]))
    direction = draw(st.sampled_from(["any", "any", "any", "increasing", "decreasing"]))
    common: dict[str, Any] = {"weight": weight, "mutable": mutable}
    if kind in LEVELS:
        levels = LEVELS[kind]
        real = {"ranked": "ordinal", "flag": "binary"}.get(kind, kind)
        way = "any" if kind == "categorical" else direction
        return Feature(name, kind=real, levels=levels, direction=way, **common), draw(st.sampled_from(levels))
    scales = {"mad": st.sampled_from([None, 0.0, 0.5]), "std": st.sampled_from([None, 0.0, 2.0]), "range": st.just(4.0)}
    common |= {word: draw(values) for word, values in scales.items()}
    step = {"stepped": 0.5, "even": 2.0}.get(kind)
    if kind in {"integer", "even"}:
        value: float = draw(st.integers(-1, 3))
        low, high = draw(st.sampled_from([(-2, 4), (-1, 3), (0, 2)]))
    else:
        value = draw(st.integers(-4, 12)) / 4
        low, high = draw(st.sampled_from([(-1.75, 3.25), (-1.0, 3.0), (0.0, 2.0)]))
    inferred = {"lower_inferred": value < low, "upper_inferred": value > high}
    if not bounded and draw(st.booleans()):
        low, high, inferred = -math.inf, math.inf, {}
    real = "integer" if kind in {"integer", "even"} else "continuous"
    return Feature(name, kind=real, lower=low, upper=high, step=step, direction=direction, **inferred, **common), value


@st.composite
def people(draw: Any, kinds: Sequence[str] = KINDS, *, most: int = 4, bounded: bool = True) -> tuple[FeatureSpace, Any]:
    """Draw a space and a row of it."""
    pairs = [draw(features(name, kinds, bounded=bounded)) for name in "abcd"[: draw(st.integers(1, most))]]
    return FeatureSpace([feature for feature, _ in pairs]), {feature.name: value for feature, value in pairs}


# ---- costs and rules ------------------------------------------------------------------------------------------------
def costs(*, square: bool = True) -> st.SearchStrategy[tuple[AbstractCost, by_hand.Cost]]:
    """Draw a cost and the same by hand."""
    found: list[tuple[AbstractCost, by_hand.Cost]] = [
        (L0(), by_hand.l0),
        (L1(), by_hand.l1()),
        (L1(scale="std"), by_hand.l1("std")),
        (L1(scale="range"), by_hand.l1("range")),
        (L1(scale="none"), by_hand.l1("none")),
        (Linf(), by_hand.linf()),
        (Linf(scale="none"), by_hand.linf("none")),
        (L1() + 0.25 * Changes(), by_hand.total((1.0, by_hand.l1()), (0.25, by_hand.changes()))),
        (
            Changes(count="columns") + 0.5 * Linf(scale="range"),
            by_hand.total((1.0, by_hand.changes("columns")), (0.5, by_hand.linf("range"))),
        ),
        (2.0 * (L0() + L1()), by_hand.total((2.0, by_hand.l0), (2.0, by_hand.l1()))),
    ]
    if square:
        found += [
            (L2(), by_hand.l2()),
            (L2(scale="none", squared=True), by_hand.l2_squared("none")),
            (L2(squared=True) + Changes(), by_hand.total((1.0, by_hand.l2_squared()), (1.0, by_hand.changes()))),
        ]
    return st.sampled_from(found)


@st.composite
def rules(draw: Any, space: FeatureSpace, x0: NDArray[np.float64], *, linear: bool = True) -> tuple[AbstractRule, ...]:
    """Draw at most one count of changes and one row over columns that enumeration covers exactly."""
    found: list[AbstractRule] = []
    whole = [f.name for f in space if f.kind in {"integer", "ordinal", "binary"}]
    if linear and whole and draw(st.booleans()):
        chosen = draw(st.lists(st.sampled_from(whole), min_size=1, unique=True))
        coefficients = {name: float(draw(st.sampled_from([-2, -1, 1, 3]))) for name in chosen}
        sense = draw(st.sampled_from(["<=", ">=", "=="]))
        left = sum(a * x0[space.names.index(name)] for name, a in coefficients.items())
        found.append(Linear(coefficients, sense, left + draw(st.sampled_from([-1.0, 0.0, 0.0, 1.0, 2.0]))))
    if draw(st.booleans()):
        found.insert(
            0, MaxChanges(draw(st.sampled_from([1, 1, 2, 3])), count=draw(st.sampled_from(["features", "columns"])))
        )
    return tuple(found)


# ---- models ---------------------------------------------------------------------------------------------------------
@st.composite
def trees(draw: Any, space: FeatureSpace, width: int, depth: int) -> dict[str, Any]:
    """Draw a nested tree with ``width`` small whole values at each leaf."""
    if depth == 0 or draw(st.sampled_from([False] * 6 + [True])):
        values = [draw(st.sampled_from([-2, -1, 0, 1, 2])) for _ in range(width)]
        return {"value": float(values[0]) if width == 1 else [float(v) for v in values]}
    j = draw(st.integers(0, len(space) - 1))
    feature = space[space.names[j]]
    if feature.is_finite:
        numbers = all(isinstance(level, int | float) for level in feature.levels)
        seen = sorted(map(float, feature.levels if numbers else range(len(feature.levels))))
        at = draw(st.sampled_from([*seen, seen[0] - 1.0, seen[0] + 0.5]))
    else:
        at = draw(st.one_of(st.integers(-5, 8).map(lambda k: k / 2), st.sampled_from(FINE)))
    sides = {side: draw(trees(space, width, depth - 1)) for side in ("left", "right")}
    return {"feature": j, "threshold": at, **sides}


@st.composite
def tree_problems(
    draw: Any,
    *,
    kinds: Sequence[str] = KINDS,
    most: int = 4,
    bounded: bool = True,
    square: bool = False,
    linear: bool = True,
) -> Problem:
    """Draw a problem over one to four trees: a regressor, one score, three scores, or two shares."""
    space, row = draw(people(kinds, most=most, bounded=bounded))
    what = draw(st.sampled_from(["value", "score", "scores", "shares"]))
    width = {"value": 1, "score": 1, "scores": 3, "shares": 2}[what]
    forest = [draw(trees(space, width, draw(st.sampled_from([1, 2, 3])))) for _ in range(draw(st.integers(1, 4)))]
    options: dict[str, Any] = {"input_dtype": draw(st.sampled_from(["float32", "float64"])), "n_inputs": len(space)}
    if what == "shares":
        forest = [_as_shares(tree) for tree in forest]
        options |= {"probability": "share", "divisor": len(forest)}
    return draw(
        _aimed(space, row, what, lambda base, **more: TreeEnsemble(forest, base, **options, **more), square, linear)
    )


def _as_shares(node: dict[str, Any]) -> dict[str, Any]:
    if "value" in node:
        share = (node["value"][0] + 2.0) / 4.0
        return {"value": [share, 1.0 - share]}
    return node | {side: _as_shares(node[side]) for side in ("left", "right")}


@st.composite
def affine_problems(draw: Any, kinds: Sequence[str]) -> Problem:
    """Draw a problem over a linear model: a regressor, one score (also logistic), or three scores."""
    space, row = draw(people(kinds))
    what = draw(st.sampled_from(["value", "score", "logistic", "scores"]))
    numbers = st.sampled_from([-3, -2, -1, 0, 1, 2, 3])
    weights = [[draw(numbers) for _ in space.names] for _ in range(3 if what == "scores" else 1)]
    options = {"probability": "logistic"} if what == "logistic" else {}
    given = weights if what == "scores" else weights[0]
    return draw(_aimed(space, row, what, lambda base, **more: Affine(given, base, **options, **more), False, True))


@st.composite
def _aimed(
    draw: Any, space: FeatureSpace, row: Any, what: str, make: Callable[..., Any], square: bool, linear: bool
) -> Problem:
    """Choose the base and the target so that some candidate, mostly another than the factual, reaches it."""
    labels = {
        "score": ("bad", "good"),
        "logistic": ("bad", "good"),
        "shares": ("bad", "good"),
        "scores": ("x", "y", "z"),
    }
    named = {"labels": labels[what]} if what in labels else {}
    model = make(0.0, **named)
    points = candidate_points(space, row, model)
    here = np.array([[space[name].to_coordinate(value) for name, value in row.items()]])
    scores, (now,) = (model.score(by_hand.identity(space, p)) for p in (points, here))
    target: Any
    match what:
        case "value" | "score" | "logistic":
            others = sorted({float(s) for s in scores if s != now}) or [float(now)]
            wish = draw(st.sampled_from(others))
            up = wish >= now
            if what == "value":
                target = draw(
                    st.sampled_from(
                        [AtLeast(wish - 0.5) if up else AtMost(wish + 0.5), Between(wish - 0.5, wish + 0.5)]
                    )
                )
            else:
                model = make((0.5 if up else -0.5) - wish, **named)
                target = draw(st.sampled_from(["good", OtherThan("bad")] if up else ["bad", {"bad"}]))
                if what == "logistic":
                    label = "good" if up else "bad"
                    target = draw(st.sampled_from([Probability(label, 0.6), Probability(label, 0.3)]))
        case "shares":
            wish = draw(st.sampled_from(sorted(set(scores[:, 1].tolist()))))
            up = wish >= now[1]
            label, level = ("good", wish - 0.0625) if up else ("bad", 1 - wish - 0.0625)
            target = draw(st.sampled_from([label, Probability(label, min(max(level, 0.01), 0.99))]))
        case _:
            others = sorted({labels["scores"][k] for k in scores.argmax(axis=1) if k != now.argmax()})
            label = draw(st.sampled_from(others or ["x"]))
            current = labels["scores"][int(now.argmax())]
            pair = {label, draw(st.sampled_from(sorted(set("xyz") - {current, label})))}
            target = draw(st.sampled_from([label, label, OtherThan(current), pair]))
    cost, price = draw(costs(square=square))
    kept = draw(rules(space, here[0], linear=linear))
    return Problem(space, row, model, target, cost, price, kept, draw(st.sampled_from([1e-5, 0.03125])))


# ---- the answer by enumeration --------------------------------------------------------------------------------------
def thresholds(model: Any, j: int) -> list[float]:
    """Return the thresholds of an ensemble on one column."""
    if isinstance(model, Affine):
        return []
    found = [tree.threshold[tree.feature == j] for tree in model.trees]
    return np.concatenate(found).tolist() if found else []


def slack(model: Any, target: Any, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how much scores meet a target, as the public interface words it."""
    if model.labels is None:
        match target:
            case AtLeast():
                return scores - target.value
            case AtMost():
                return target.value - scores
            case _:
                return np.minimum(scores - target.low, target.high - scores)
    labels = model.labels
    if isinstance(target, Probability):
        k, p = labels.index(target.label), target.at_least
        if model.probability == "logistic":
            return (scores if k == 1 else -scores) - math.log(p / (1 - p))
        return scores[:, k] - p
    if isinstance(target, OtherThan):
        wanted = [label for label in labels if label != target.label]
    else:
        wanted = list(target) if isinstance(target, set) else [target]
    if scores.ndim == 1:
        return scores if wanted == [labels[1]] else -scores
    unit = 0.5 if model.probability == "share" else 1.0
    return unit * by_hand.share_slack(scores, [labels.index(label) for label in wanted])


def keeps(problem: Problem, points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which points keep the rules."""
    names, kept = list(problem.space.names), np.ones(len(points), dtype=bool)
    moves = by_hand.Moves(problem.space, points - problem.point)
    for rule in problem.rules:
        if isinstance(rule, MaxChanges):
            kept &= moves.changes(rule.count) <= rule.k
        else:
            assert isinstance(rule, Linear)
            left = sum(a * points[:, names.index(name)] for name, a in rule.coefficients.items())
            kept &= {"<=": left <= rule.rhs, ">=": left >= rule.rhs, "==": left == rule.rhs}[rule.sense]
    return kept


def candidate_points(space: FeatureSpace, row: dict[str, Any], model: Any) -> NDArray[np.float64]:
    """Return every combination of the columns' candidates."""
    width = getattr(model, "input_dtype", "float64")
    columns = [
        by_hand.candidates(space[name], space[name].to_coordinate(row[name]), thresholds(model, j), width=width)
        for j, name in enumerate(space.names)
    ]
    return by_hand.product(columns)


def enumerate_all(problem: Problem) -> by_hand.Ranking:
    """Return all candidates that reach the target with the margin and keep the rules, with their costs."""
    points = candidate_points(problem.space, problem.row, problem.model)
    scores = problem.model.score(by_hand.identity(problem.space, points))
    good = (slack(problem.model, problem.target, scores) >= problem.margin - 1e-9) & keeps(problem, points)
    prices = np.broadcast_to(problem.price(by_hand.Moves(problem.space, points - problem.point)), len(points))
    return by_hand.Ranking(points, prices).only(good)


# ---- the program ----------------------------------------------------------------------------------------------------
def program(problem: Problem, formulation: str = "auto", *, order: Sequence[str] = ("embed", "rules", "cost")) -> Any:
    """Build the program block by block, in the given order; "raw" asks for every coordinate."""
    m = pyo.ConcreteModel()
    m.x = Factual(problem.space, problem.row)
    m.rules = pyo.Block(concrete=True)
    for part in order:
        match part:
            case "embed":
                m.predictor = embed(problem.model, m.x, formulation=formulation)
                m.valid = Reaches(m.predictor, problem.target, margin=problem.margin)
            case "rules":
                for k, rule in enumerate(problem.rules):
                    m.rules.add_component(f"rule_{k}", impose(rule, m.x))
            case "raw":
                m.asked = pyo.Expression(expr=sum(m.x.raw[name] for name in m.x.raw))
            case "changed":
                m.n_changed = pyo.Expression(expr=m.x.n_changed)
            case _:
                m.cost = pyo.Objective(expr=problem.cost.build(m.x))
    return m


def optimum(model: Any, problem: Problem) -> tuple[float | None, NDArray[np.float64] | None]:
    """Solve; return the cost and the decoded point, or None twice where it is proved that there is none."""
    result = solve(model)
    if result.status is Status.INFEASIBLE:
        return None, None
    assert result.objective is not None
    assert result.bound is not None
    # A move by one unit in the last place costs less than any solver's absolute tolerance.
    tiny = abs(result.objective) < 1e-12
    assert result.status is Status.OPTIMAL or (tiny and abs(result.bound) < 1e-12), result
    values = model.x.decoded()
    return problem.cost.from_objective(result.objective), np.array([values[name] for name in problem.space.names])


def same(a: float | None, b: float | None) -> bool:
    """Whether two costs agree to 1e-6, relative beyond 1; or both are missing."""
    if a is None or b is None:
        return a is b
    return abs(a - b) <= 1e-6 * max(1.0, abs(b))


def assert_answers(problem: Problem, model: Any) -> float | None:
    """Solve, compare with enumeration, and check the decoded point by itself; return the optimum."""
    best = enumerate_all(problem).best
    cost, point = optimum(model, problem)
    assert same(cost, best), f"program {cost}, enumeration {best}"
    if point is not None:
        for feature, value, part in zip(problem.space, point.tolist(), model.x.reach.values(), strict=True):
            held = value in part.ranks if feature.is_finite else part.lower <= value <= part.upper
            assert held, feature.name
        rows = point[None, :]
        scores = problem.model.score(by_hand.identity(problem.space, rows))
        assert slack(problem.model, problem.target, scores)[0] >= problem.margin - 1e-7
        assert keeps(problem, rows).all()
        own = float(np.broadcast_to(problem.price(by_hand.Moves(problem.space, rows - problem.point)), 1)[0])
        assert same(own, best), f"decoded point {own}, enumeration {best}"
    return cost

"""The optimum under a causal model is that of trying everything, for every intervention, cost and kind of equation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import enumeration as by_hand
import numpy as np
import pandas as pd
import problems
import pytest
from draws import draws
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from ceopt.formulations.constraints import Causal
from ceopt.formulations.constraints.causal_structure import LinearEquation
from ceopt.formulations.constraints.rule import charged_by
from ceopt.formulations.costs import L0, L1, L2, AbstractCost, Linf
from ceopt.formulations.predictors import Affine
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.recourse_program import recourse_program
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.targets import AtLeast
from ceopt.solvers import Status, solve

Floats = NDArray[np.float64]
#: What an equation says of many points, by hand.
Effect = Callable[[Mapping[str, Floats]], Floats]

COSTS: dict[str, tuple[AbstractCost, by_hand.Cost]] = {
    "l0": (L0(), by_hand.l0),
    "l1": (L1(scale="none"), by_hand.l1("none")),
    "l1 in shares of the range": (L1(scale="range"), by_hand.l1("range")),
    "l2": (L2(scale="none"), by_hand.l2("none")),
    "l2 squared": (L2(scale="none", squared=True), by_hand.l2_squared("none")),
    "linf": (Linf(scale="none"), by_hand.linf("none")),
    "sum": (L1(scale="none") + 0.5 * L0(), by_hand.total((1.0, by_hand.l1("none")), (0.5, by_hand.l0))),
}


# ---- by hand ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ByHand:
    """A causal model over a lattice, in the words of its docstring."""

    space: FeatureSpace
    row: Mapping[str, Any]
    effects: Mapping[str, Effect]
    intervention: str
    actionable: frozenset[str]
    slack: float = 0.0

    @property
    def home(self) -> Floats:
        return np.array([self.space[name].to_coordinate(self.row[name]) for name in self.space.names])

    def residual(self, name: str, points: Floats) -> Floats:
        j, effect = self.space.names.index(name), self.effects[name]
        here, there = (dict(zip(self.space.names, p.T, strict=True)) for p in (self.home[None, :], points))
        return points[:, j] - self.home[j] - (effect(there) - effect(here))

    def keeps(self, points: Floats) -> NDArray[np.bool_]:
        kept = np.ones(len(points), dtype=bool)
        for j, name in enumerate(self.space.names):
            if name in self.effects:
                if self.intervention == "none" or name not in self.actionable:
                    kept &= np.abs(self.residual(name, points)) <= self.slack + 1e-6
            elif name not in self.actionable:
                kept &= points[:, j] == self.home[j]
        return kept

    def charged(self, points: Floats) -> Floats:
        seen = points.copy()
        for j, name in enumerate(self.space.names):
            if name in self.effects and self.intervention != "none":
                off = self.residual(name, points)
                beyond = np.sign(off) * np.maximum(np.abs(off) - self.slack, 0.0)
                amount = beyond if self.intervention == "soft" else points[:, j] - self.home[j]
                intervened = (np.abs(off) > self.slack + 1e-6) & (name in self.actionable)
                seen[:, j] = self.home[j] + np.where(intervened, amount, 0.0)
        return seen

    def least(self, points: Floats, good: NDArray[np.bool_], price: by_hand.Cost) -> float | None:
        points = points[good & self.keeps(points)]
        if not len(points):
            return None
        return float(np.min(price(by_hand.Moves(self.space, self.charged(points) - self.home))))


def found(rule: Causal, hand: ByHand, model: Any, target: AtLeast, cost: AbstractCost) -> tuple[float | None, Any]:
    """Solve the program; return the cost of its optimum and its point."""
    rule.check(hand.space)
    program = recourse_program(
        read(model, hand.space), dict(hand.row), target=target, cost=charged_by(cost, [rule], hand.space), rules=[rule],
        margin=0.0,
    )  # fmt: skip
    result = solve(program.model)
    if result.status is Status.INFEASIBLE:
        return None, None
    assert result.status is Status.OPTIMAL, result
    return cost.from_objective(result.objective), program.x.decoded()


def agree(rule: Causal, hand: ByHand, points: Floats, model: Any, at_least: float, cost: str) -> float | None:
    """Compare program, plain numbers of the rule and the same by hand; return the optimum."""
    own, price = COSTS[cost]
    scores = model.score(by_hand.identity(hand.space, points))
    best = hand.least(points, scores >= at_least - 1e-9, price)
    value, point = found(rule, hand, model, AtLeast(at_least), own)
    assert problems.same(value, best), f"program {value}, by hand {best}"
    factual = dict(zip(hand.space.names, hand.home.tolist(), strict=True))
    kept = hand.keeps(points)
    for k in np.random.default_rng(0).choice(len(points), 12):
        named = dict(zip(hand.space.names, points[k].tolist(), strict=True))
        assert (rule.violation(hand.space, factual, named) <= 0) == kept[k], named
    assert rule.charged(hand.space, factual, points[:99]) == pytest.approx(hand.charged(points[:99]), abs=1e-9)
    if point is not None:
        assert rule.violation(hand.space, factual, point) <= 0
        mended = rule.mended(hand.space, factual, np.array([list(point.values())]))
        assert mended[0] == pytest.approx(np.array(list(point.values())), abs=1e-6 + hand.slack)
        assert problems.same(charged_by(own, [rule], hand.space).value(hand.space, factual, point), best)
    return best


# ---- linear equations on small lattices ------------------------------------------------------------------------------
def columns(kinds: str, weights: Any) -> FeatureSpace:
    """Integer, ordinal and binary columns by letter: i, o, b."""
    of = {
        "i": {"kind": "integer", "lower": -2, "upper": 3},
        "o": {"kind": "ordinal", "levels": ("none", "some", "much", "all")},
        "b": {"kind": "binary", "levels": (False, True)},
    }
    named = zip("vwxyz", kinds, weights, strict=False)
    return FeatureSpace([Feature(name, weight=weight, **of[kind]) for name, kind, weight in named])


@dataclass(frozen=True)
class Linear:
    """A random problem with linear equations."""

    kinds: str
    row: tuple[int, ...]
    slopes: tuple[tuple[int, ...], ...]
    weights: tuple[Any, ...]
    score: tuple[int, ...]
    more: int
    intervention: str
    actionable: tuple[bool, ...] | None
    cost: str
    slack: float = 0.0


@st.composite
def linear(draw: Any) -> Linear:
    kinds = "".join(draw(st.lists(st.sampled_from("iiob"), min_size=2, max_size=4)))
    some = range(len(kinds))
    return Linear(
        kinds=kinds,
        row=tuple(draw(st.integers(*{"i": (-1, 2), "o": (0, 3), "b": (0, 1)}[kind])) for kind in kinds),
        slopes=tuple(tuple(draw(st.sampled_from([-2, -1, 0, 1, 1, 2])) for _ in range(k)) for k in some),
        weights=tuple(draw(st.sampled_from([1.0, 2.0, (1.0, 3.0), (0.5, 2.0)])) for _ in some),
        score=tuple(draw(st.integers(-2, 3)) for _ in some),
        more=draw(st.integers(1, 5)),
        intervention=draw(st.sampled_from(["none", "soft", "hard"])),
        actionable=draw(st.none() | st.tuples(*[st.booleans() for _ in some])),
        cost=draw(st.sampled_from(list(COSTS))),
        slack=draw(st.sampled_from([0.0, 0.0, 1.0])),
    )


def summed(slopes: Mapping[str, float]) -> Effect:
    return lambda values: sum((a * values[p] for p, a in slopes.items()), np.zeros(1))


@draws(150)
@example(
    Linear("ii", (0, 0), ((), (1,)), (1.0, 1.0), (0, 1), 2, "hard", None, "l1")
)  # to set y is to pay for all of it
@example(Linear("iii", (0, 0, 0), ((), (2,), (0, -1)), (1.0, (1.0, 3.0), 1.0), (0, 1, 1), 3, "hard", None, "l0"))
@example(Linear("iii", (0, 0, 0), ((), (1,), (1, 1)), (1.0, 2.0, 2.0), (-1, 1, 2), 4, "soft", None, "l2"))
@example(Linear("iob", (1, 1, 0), ((), (1,), (1, -1)), (1.0, 1.0, 1.0), (1, 1, 1), 1, "none", None, "linf"))
@given(linear())
def test_linear_equations_as_by_enumeration(case: Linear) -> None:
    space = columns(case.kinds, case.weights)
    names = space.names
    row = {f.name: case.row[j] if f.kind == "integer" else f.levels[case.row[j]] for j, f in enumerate(space)}
    slopes = {names[k]: {names[p]: a for p, a in enumerate(line) if a} for k, line in enumerate(case.slopes)}
    slopes = {name: line for name, line in slopes.items() if line}
    assume(slopes)
    able = None if case.actionable is None else [n for n, yes in zip(names, case.actionable, strict=True) if yes]
    rule = Causal(
        {name: LinearEquation(line, intercept=0.5) for name, line in slopes.items()},
        intervention=case.intervention,
        actionable=able,
        slack=case.slack,
    )
    effects = {name: summed(line) for name, line in slopes.items()}
    hand = ByHand(space, row, effects, case.intervention, frozenset(names if able is None else able), case.slack)
    points = by_hand.product(
        [range(-2, 4) if f.kind == "integer" else range(len(f.levels)) for f in space]  # type: ignore[misc]
    )
    model = Affine(case.score, 0.0)
    now = float(model.score(by_hand.identity(space, hand.home[None, :]))[0])
    agree(rule, hand, points, model, now + case.more, case.cost)


# ---- fitted equations ------------------------------------------------------------------------------------------------
SPACE = FeatureSpace(
    [
        Feature("age", kind="integer", lower=0, upper=4),
        Feature("job", kind="categorical", levels=(10, 30, 20)),
        Feature("skill", kind="ordinal", levels=("low", "mid", "high"), weight=(1.0, 2.0)),
        Feature("wage", kind="integer", lower=0, upper=9),
        Feature("saved", kind="continuous", lower=-20.0, upper=30.0),
    ]
)
ROW = {"age": 1, "job": 30, "skill": "mid", "wage": 4, "saved": 2.25}


def training() -> pd.DataFrame:
    """Return what people earn and save, not linearly."""
    rows = list(itertools.product(range(5), (10, 30, 20), ("low", "mid", "high")))
    frame = pd.DataFrame(rows * 3, columns=["age", "job", "skill"])
    rng = np.random.default_rng(3)
    rank = frame["skill"].map({"low": 0, "mid": 1, "high": 2}).astype(float)
    wage = 0.8 * frame["age"] + 1.3 * rank**2 + (frame["job"] == 20) * 1.7 - 0.5 * (frame["job"] == 10)
    frame["wage"] = np.clip(np.rint(wage + rng.normal(0, 0.4, len(frame))), 0, 9).astype(int)
    frame["saved"] = np.maximum(frame["wage"] - 3, 0) * 1.37 + 0.61 * frame["age"] + rng.normal(0, 0.3, len(frame))
    return frame


FRAME = training()


def encoded(model: Any) -> Any:
    """A pipeline over age, job and skill."""
    encoder = make_column_transformer(
        (OneHotEncoder(), ["job"]),
        (OrdinalEncoder(categories=[["low", "mid", "high"]]), ["skill"]),
        remainder=StandardScaler(),
    )
    return make_pipeline(encoder, model)


REGRESSORS: dict[str, Callable[[], Any]] = {
    "ridge": lambda: Ridge(alpha=0.1),
    "tree": lambda: DecisionTreeRegressor(max_depth=4, random_state=0),
    "forest": lambda: RandomForestRegressor(5, max_depth=4, random_state=0),
    "gradient boosting": lambda: GradientBoostingRegressor(n_estimators=6, random_state=0),
    "histogram boosting": lambda: HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5, random_state=0),
    "relu": lambda: MLPRegressor(hidden_layer_sizes=(6, 4), max_iter=2000, random_state=0, solver="lbfgs", tol=1e-2),
}


def own(model: Any, parents: list[str]) -> Effect:
    """What the library itself says, of a frame made by hand."""
    levels = {"job": np.array([10, 30, 20]), "skill": np.array(["low", "mid", "high"], dtype=object)}

    def predicted(values: Mapping[str, Floats]) -> Floats:
        raw = {p: levels[p][values[p].astype(int)] if p in levels else values[p] for p in parents}
        frame = pd.DataFrame(raw)
        frame = frame.astype({p: int for p in parents if p in {"age", "wage"}})
        return np.asarray(model.predict(frame), dtype=float)

    return predicted


@pytest.mark.long(every=7)
@pytest.mark.parametrize("intervention", ["none", "soft", "hard"])
@pytest.mark.parametrize("name", REGRESSORS)
def test_fitted_equations_as_by_enumeration(name: str, intervention: str) -> None:
    """Wages follow from levels too; what is saved follows from wages and is a number that nobody can set."""
    above = {"wage": ["age", "job", "skill"], "saved": ["wage", "age"]}
    wage = encoded(REGRESSORS[name]()).fit(FRAME[above["wage"]], FRAME["wage"])
    saved = make_pipeline(StandardScaler(), REGRESSORS[name]()).fit(FRAME[above["saved"]], FRAME["saved"])
    able = ["age", "job", "skill", "wage"]
    slack = {"wage": 0.5}
    rule = Causal(
        {"saved": saved, "wage": (wage, above["wage"])}, intervention=intervention, actionable=able, slack=slack
    )
    effects = {"wage": own(wage, above["wage"]), "saved": own(saved, above["saved"])}
    hand = _Halves(SPACE, ROW, effects, intervention, frozenset(able), 0.5)
    points = by_hand.product([range(5), range(3), range(3), range(10), [0.0]])  # type: ignore[list-item]
    points[:, 4] -= hand.residual("saved", points)
    inside = (points[:, 4] >= -20.0) & (points[:, 4] <= 30.0)
    points = points[inside]
    model = Affine([0.4, 0.01, -0.3, 0.7, 1.1], 0.0)
    scores = np.sort(model.score(by_hand.identity(SPACE, points))[hand.keeps(points)])
    bests = []
    for share, cost in ((0.4, "l1"), (0.8, "l0"), (0.9, "sum"), (0.999, "l2")):
        at_least = float(scores[int(share * (len(scores) - 1))]) - 1e-3
        bests.append(agree(rule, hand, points, model, at_least, cost))
    assert any(bests)


@dataclass(frozen=True)
class _Halves(ByHand):
    """As by hand, with a slack for whole numbers alone."""

    def keeps(self, points: Floats) -> NDArray[np.bool_]:
        exact = np.abs(self.residual("saved", points)) <= 1e-6 * np.maximum(1.0, np.abs(points[:, 4]))
        return super().keeps(points) & exact

"""Problems over trees with rules about single values, and their answers by enumeration, down to neighbouring floats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import enumeration as by_hand
import numpy as np
import pandas as pd
import problems
from hypothesis import strategies as st
from problems import Problem
from rules.found import half_of

from ceopt.formulations.constraints import AllowedRows, AllowedTransitions, AllowedValues, IfThen
from ceopt.formulations.space import Feature
from ceopt.solvers.errors import InvalidValueError

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Ruled:
    """A problem and further rules that single values decide about."""

    problem: Problem
    extra: tuple[Any, ...]

    def program(self, formulation: str = "auto", *, order: Sequence[str] = ("embed", "rules", "cost")) -> Any:
        whole = replace(self.problem, rules=(*self.problem.rules, *self.extra))
        return problems.program(whole, formulation, order=order)

    def kept(self, points: Floats) -> Any:
        space, factual, good = self.problem.space, self.problem.point, np.ones(len(points), dtype=bool)
        for rule in self.extra:
            good &= half_of(type(rule).__name__).keeps(rule, space, factual, points)
        return good

    def points(self, more: Sequence[float] = ()) -> Floats:
        """Return every combination of values that could matter to the model, the rules or ``more``."""
        problem, columns = self.problem, []
        for j, feature in enumerate(problem.space):
            ends = problems.thresholds(problem.model, j) + mentioned(self.extra, feature) + list(more)
            x0 = feature.to_coordinate(problem.row[feature.name])
            columns.append(
                by_hand.candidates(feature, x0, ends, width=getattr(problem.model, "input_dtype", "float64"))
            )
        return by_hand.product(columns)

    def valid(self, points: Floats, tolerance: float = 1e-9) -> Any:
        problem = self.problem
        slack = problems.slack(
            problem.model, problem.target, problem.model.score(by_hand.identity(problem.space, points))
        )
        return (slack >= problem.margin - tolerance) & problems.keeps(problem, points) & self.kept(points)

    def best(self) -> float | None:
        points = self.points()
        price = self.problem.price(by_hand.Moves(self.problem.space, points - self.problem.point))
        costs = np.broadcast_to(price, len(points))[self.valid(points)]
        return float(costs.min()) if len(costs) else None

    def check(self, model: Any) -> None:
        """The optimum is that of enumeration, and its point keeps every rule, in numpy and by its own check."""
        cost, point = problems.optimum(model, self.problem)
        best = self.best()
        assert problems.same(cost, best), f"program {cost}, enumeration {best}"
        if point is None:
            return
        rows, space = point[None, :], self.problem.space
        assert self.valid(rows, 1e-7).all(), point
        own = self.problem.price(by_hand.Moves(space, rows - self.problem.point))
        assert problems.same(float(np.broadcast_to(own, 1)[0]), best), point
        names = list(space.names)
        home, here = (dict(zip(names, p.tolist(), strict=True)) for p in (self.problem.point, point))
        assert all(rule.violation(space, home, here) == 0.0 for rule in self.extra)


def mentioned(rules: Sequence[Any], feature: Feature) -> list[float]:
    """Return the numbers that rules name of a column."""
    if feature.is_finite:
        return []
    found: list[Any] = []
    for rule in rules:
        match rule:
            case AllowedValues():
                found += rule.values.get(feature.name, ())
            case AllowedRows() if feature.name in rule.columns:
                found += rule.frame[feature.name].tolist()
            case IfThen():
                for name, op, value in (rule.condition, rule.conclusion):
                    if name == feature.name and op != "changed":
                        found += value if op == "in" else [value]
            case _:
                pass
    return [float(value) for value in found]


# ---- strategies ------------------------------------------------------------------------------------------------------
def values(feature: Feature, x0: Any) -> st.SearchStrategy[Any]:
    """Draw a raw value: also out of reach, off the step, or next to a threshold."""
    if feature.is_finite:
        return st.sampled_from(feature.levels)
    if feature.kind == "integer":
        return st.one_of(st.just(int(x0)), st.integers(-3, 5))
    return st.one_of(st.just(float(x0)), st.integers(-8, 14).map(lambda k: k / 4), st.sampled_from(problems.FINE))


@st.composite
def conditions(draw: Any, space: Any, row: dict[str, Any], *, conclusion: bool) -> Any:
    name = draw(st.sampled_from(space.names))
    feature = space[name]
    # How far a number without a step must move to have changed is not enumeration's to say; and that needs bounds.
    vague = (feature.kind == "continuous" and feature.step is None) or math.isinf(feature.upper - feature.lower)
    vague = vague and not feature.is_finite
    ops = ["==", "!=", "in", *(() if feature.kind == "categorical" else ("<=", ">=")), "changed"]
    op = draw(st.sampled_from(ops))
    if op == "changed":
        return (name, op, (not conclusion) if vague else draw(st.booleans()))
    value = values(feature, row[name])
    return (name, op, draw(st.lists(value, min_size=1, max_size=3) if op == "in" else value))


@st.composite
def a_rule(draw: Any, space: Any, row: dict[str, Any]) -> Any:
    names = draw(st.lists(st.sampled_from(space.names), min_size=1, max_size=2, unique=True))
    levelled = [feature.name for feature in space if feature.is_finite]
    match draw(st.sampled_from(["values", "rows", "if", "if", *(["transitions"] if levelled else [])])):
        case "values":
            given = {n: draw(st.lists(values(space[n], row[n]), min_size=1, max_size=5)) for n in names}
            return AllowedValues(given)
        case "rows":
            rows = st.tuples(*(values(space[n], row[n]) for n in names))
            frame = pd.DataFrame(draw(st.lists(rows, min_size=1, max_size=5)), columns=names)
            return AllowedRows(names, frame)
        case "transitions":
            name = draw(st.sampled_from(levelled))
            level = st.sampled_from(space[name].levels)
            return AllowedTransitions(name, draw(st.dictionaries(level, st.lists(level, max_size=2), min_size=1)))
        case _:
            while True:
                one = draw(conditions(space, row, conclusion=False))
                rule = IfThen(one, draw(conditions(space, row, conclusion=True)))
                try:
                    rule.check(space)
                except InvalidValueError:
                    continue  # a contradiction
                return rule


@st.composite
def ruled(draw: Any, *, most: int = 3, **options: Any) -> Ruled:
    """Draw a problem over trees with one or two rules about single values."""
    problem = draw(problems.tree_problems(most=most, **options))
    extra = draw(st.lists(a_rule(problem.space, problem.row), min_size=1, max_size=2))
    return Ruled(problem, tuple(extra))

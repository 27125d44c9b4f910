"""Causal: what is left of a column's move when its parents' part is taken out, by hand; and what of it is charged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import assume
from hypothesis import strategies as st
from rules.found import column
from sklearn.tree import DecisionTreeRegressor

from ceopt.formulations.constraints import Causal
from ceopt.formulations.constraints.causal_structure import LinearEquation

#: Wages by age and job: the tree that is fitted on them is exact, and its values are steps.
WAGES = pd.DataFrame(
    [(age, job, min(0.5 * (age > 1) + 0.5 * (job > 10), 1.0)) for age in range(4) for job in (10, 20, 30)]
)
WAGES.columns = ["age", "job", "wage"]
TREE = DecisionTreeRegressor(random_state=0).fit(WAGES[["age", "job"]], WAGES["wage"])
NOISE = 1e-6


def examples() -> list[Any]:
    wage = {"wage": LinearEquation({"age": 0.5})}
    chain = wage | {"size": LinearEquation({"wage": 2.0}, intercept=3.0)}
    fitted = {"wage": TREE, "owner": LinearEquation({"wage": 2.0, "size": -1.0})}
    return [
        Causal(wage),
        Causal(chain, actionable=["age", "job"]),
        Causal(fitted),
        Causal({"size": LinearEquation({"age": 0.5})}, slack=0.5, actionable=["age", "wage", "owner"]),
        Causal(chain, intervention="soft", actionable=["age", "size", "owner"]),
        Causal(wage, intervention="soft", actionable=["age", "wage", "job"]),
        Causal(fitted, intervention="soft", actionable=["age", "owner", "job"], slack={"owner": 0.25}),
        Causal(chain, intervention="hard", actionable=["age", "size", "owner"]),
        Causal(wage, intervention="hard", actionable=["age", "wage", "job"]),
        Causal(fitted, intervention="hard", actionable=["age", "owner", "job", "size"]),
    ]


@st.composite
def drawn(draw: Any, space: Any, factual: Any) -> Any:
    """Equations along a random order of the columns, those that may not move among them."""
    numbers = draw(st.permutations(["age", "wage", "size", "owner"]))
    equations: dict[str, Any] = {}
    for place, name in enumerate(numbers):
        parents = draw(st.lists(st.sampled_from(numbers[:place]), max_size=2, unique=True)) if place else []
        if parents and len(equations) < 2:
            factors = st.sampled_from([-1.0, -0.5, 0.5, 1.0, 2.0])
            equations[name] = LinearEquation({parent: draw(factors) for parent in parents}, intercept=0.25)
    if "wage" in numbers and (not equations or draw(st.integers(0, 3)) == 0):
        equations = {"wage": TREE}
    assume(equations)
    actionable = draw(st.one_of(st.none(), st.lists(st.sampled_from(space.names), unique=True, min_size=2)))
    intervention = draw(st.sampled_from(["none", "soft", "hard"]))
    slack = draw(st.sampled_from([0.0, 0.0, 0.5, {next(iter(equations)): 0.25}]))
    return Causal(equations, intervention=intervention, actionable=actionable, slack=slack)


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    fine = np.ones(len(points), dtype=bool)
    for j, name in enumerate(space.names):
        if binds(rule, space, name):
            if not acts(rule, name):
                fine &= follows(rule, space, factual, points, name)
        elif rule.actionable is not None and name not in rule.actionable:
            fine &= points[:, j] == factual[j]
    return fine


def charged(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    """Without interventions every move; else of a column with an equation the shift, or the move where it is off."""
    seen = np.array(points, dtype=float)
    for j, name in enumerate(space.names):
        if rule.intervention != "none" and binds(rule, space, name):
            off, slack = residual(rule, space, factual, points, name), slack_of(rule, name)
            shift = np.sign(off) * np.maximum(np.abs(off) - slack, 0.0)
            amount = shift if rule.intervention == "soft" else points[:, j] - factual[j]
            idle = follows(rule, space, factual, points, name) | np.full(len(points), not acts(rule, name))
            seen[:, j] = factual[j] + np.where(idle, 0.0, amount)
    return seen


def actions(rule: Any, space: Any, factual: Any, point: Any) -> dict[str, Any]:
    """Return what is done: a column off its equation, or one without that moves; by its new value, softly its shift."""
    seen, done = charged(rule, space, factual, point[None, :])[0], {}
    for j, feature in enumerate(space):
        raw, soft = feature.from_coordinate(point[j]), rule.intervention == "soft"
        if binds(rule, space, feature.name):
            off = not follows(rule, space, factual, point[None, :], feature.name)[0]
            if acts(rule, feature.name) and off:
                done[feature.name] = float(seen[j] - factual[j]) if soft else raw
        elif point[j] != factual[j]:
            done[feature.name] = float(point[j] - factual[j]) if soft and not feature.is_finite else raw
    return done


def binds(rule: Any, space: Any, name: str) -> bool:
    """Whether a column has an equation to follow; one that may not move is held."""
    return name in rule.equations and bool(space[name].mutable)


def acts(rule: Any, name: str) -> bool:
    return rule.intervention != "none" and (rule.actionable is None or name in rule.actionable)


def slack_of(rule: Any, name: str) -> float:
    return float(rule.slack.get(name, 0.0) if isinstance(rule.slack, Mapping) else rule.slack)


def follows(rule: Any, space: Any, factual: Any, points: Any, name: str) -> Any:
    return np.abs(residual(rule, space, factual, points, name)) <= slack_of(rule, name) + NOISE


def residual(rule: Any, space: Any, factual: Any, points: Any, name: str) -> Any:
    """Return the move that is not the parents' doing."""
    here = np.asarray(factual)[None, :]
    moved = column(space, points, name) - column(space, here, name)
    return moved - (effect(rule.equations[name], space, points) - effect(rule.equations[name], space, here))


def effect(equation: Any, space: Any, points: Any) -> Any:
    """Return what an equation gives: from raw numbers, ranks and 0/1; a fitted regressor reads raw values."""
    if isinstance(equation, LinearEquation):
        parts = [a * column(space, points, parent) for parent, a in equation.parents.items()]
        return sum(parts) + equation.intercept
    names = list(equation.feature_names_in_)
    raw = {name: [space[name].from_coordinate(v) for v in column(space, points, name)] for name in names}
    return equation.predict(pd.DataFrame(raw))

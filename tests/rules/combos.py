"""Questions drawn at random over one small table: every kind of column, model, target and cost, up to four rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import enumeration as by_hand
import numpy as np
import problems
from hypothesis import assume
from hypothesis import strategies as st
from rules.found import Floats, half_of, halves, kept
from rules.question import COSTS, Question
from rules.small import PEOPLE, SPACE, coordinates, lattice

from ceopt.formulations.constraints import RULES, AllowedValues, parse_rules
from ceopt.formulations.costs import Percentile
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.formulations.space import FeatureSpace
from ceopt.formulations.targets import AtLeast, AtMost, Between, OtherThan, Probability
from ceopt.solvers.errors import CeoptError

#: Imported before anything is drawn: libraries use random numbers as they load, which hypothesis forbids.
RULES_AND_EXAMPLES = halves()
#: Least distance of every score from a tie: far beyond any default margin, so that none decides who is valid.
CLEAR = 1e-3


# ---- the table and the person ----------------------------------------------------------------------------------------
#: Values of a wage that has no step; the person's own may be none of them.
LISTED = (0.0, 0.125, 0.5, 0.75, 1.0)


@st.composite
def tables(draw: Any) -> tuple[FeatureSpace, dict[str, Any], Floats, tuple[Any, ...]]:
    """Draw a person, whose columns are fixed, one-way, weighed and stepped at random; the lattice, and what makes it.

    A wage without a step may take listed values only, by a rule.
    """
    space = SPACE
    row: dict[str, Any] = {"age": draw(st.integers(0, 3)), "wage": draw(st.sampled_from([0.0, 0.5, 0.5, 1.0]))}
    row |= {f.name: draw(st.sampled_from(f.levels)) for f in space if f.is_finite}
    for name in ("age", "wage", "size", "owner"):
        way = draw(st.sampled_from(["any", "any", "any", "increasing", "decreasing"]))
        space = space.update(name, direction=way, weight=draw(st.sampled_from([1.0, 2.0, (1.0, 3.0), (0.5, 1.5)])))
    still = draw(st.sampled_from([None, None, None, "age", "job"]))
    space = space if still is None else space.update(still, mutable=False)
    if draw(st.integers(0, 2)):
        return space, row, lattice(space, row), ()
    row["wage"] = draw(st.sampled_from([0.25, 0.5]))
    listed = draw(st.lists(st.sampled_from(LISTED), min_size=2, max_size=4, unique=True))
    space = FeatureSpace([replace(f, step=None) if f.name == "wage" else f for f in space])
    way = space["wage"].direction
    reached = [v for v in sorted(listed) if (v - row["wage"]) * {"any": 0, "increasing": 1, "decreasing": -1}[way] >= 0]
    assume(reached)
    columns = [by_hand.candidates(f, x0, []) for f, x0 in zip(space, coordinates(space, row), strict=True)]
    columns[space.names.index("wage")] = reached
    return space, row, by_hand.product(columns), (AllowedValues({"wage": listed}),)


# ---- models ----------------------------------------------------------------------------------------------------------
WEIGHTS = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0])
#: Of job and origin, whose levels are 10, 20 and 30, and 1 and 2.
FACTORS = np.array([1.0, 1.0, 1.0, 0.1, 1.0, 1.0])


def matrix(draw: Any, rows: int, columns: int) -> Floats:
    return np.array([[draw(WEIGHTS) for _ in range(columns)] for _ in range(rows)])


def between(draw: Any, scores: Floats, now: float) -> float:
    """Return a number halfway between two scores that the lattice takes, mostly beyond the person's own."""
    values = np.unique(np.round(scores, 9))
    assume(len(values) > 1)
    middles = (values[1:] + values[:-1]) / 2.0
    clear = middles[np.diff(values) > 2.0 * CLEAR]
    assume(len(clear) > 0)
    beyond = [m for m in clear if m > now]
    return float(draw(st.sampled_from(beyond if beyond and draw(st.integers(0, 9)) else list(clear))))


@st.composite
def aimed(draw: Any, space: FeatureSpace, row: dict[str, Any], points: Floats, kind: str) -> tuple[Any, Any]:
    """Draw a model of a kind and a target that some point of the lattice meets."""
    seen, here = by_hand.identity(space, points), by_hand.identity(space, coordinates(space, row)[None, :])
    what = draw(st.sampled_from(["value", "score"] + ["logistic"] * (kind == "linear")))
    named: dict[str, Any] = {} if what == "value" else {"labels": ("bad", "good")}
    if what == "logistic":
        named["probability"] = "logistic"
    if kind == "classes":
        return draw(of_classes(seen, here))
    if kind == "linear":
        weights = matrix(draw, 1, 6)[0] * FACTORS

        def make(base: float) -> Any:
            return Affine(weights, base, **named)
    elif kind == "trees":
        forest = [
            draw(problems.trees(space, 1, draw(st.sampled_from([1, 2, 3])))) for _ in range(draw(st.integers(1, 3)))
        ]

        def make(base: float) -> Any:
            return TreeEnsemble(forest, base, n_inputs=6, **named)
    else:
        layers = [matrix(draw, 3, 6) * FACTORS, matrix(draw, 2, 3), matrix(draw, 1, 2)]
        biases = [matrix(draw, 1, 3)[0], matrix(draw, 1, 2)[0]]

        def make(base: float) -> Any:
            return ReluNetwork(layers, [*biases, [base]], **named)

    scores, now = make(0.0).score(seen), float(make(0.0).score(here)[0])
    if what == "value":
        cut = between(draw, scores, now)
        other = between(draw, scores, now)
        targets = [AtLeast(cut), AtMost(cut)]
        targets += [Between(min(cut, other), max(cut, other))] if cut != other else []
        return make(0.0), draw(st.sampled_from(targets))
    cut = between(draw, scores, now)
    if what == "logistic":
        level = draw(st.sampled_from([0.3, 0.6]))
        return make(float(np.log(level / (1.0 - level))) - cut), Probability("good", level)
    return make(-cut), draw(st.sampled_from(["good", {"good"}, OtherThan("bad")]))


@st.composite
def of_classes(draw: Any, seen: Floats, here: Floats) -> tuple[Any, Any]:
    """Draw a linear model of three classes, and another class, set of classes or "any other"."""
    base = np.array([draw(st.sampled_from([-1.0, 0.0, 1.0])) + part for part in (0.0, 0.03, 0.07)])
    weights = matrix(draw, 3, 6) * FACTORS
    labels = ("x", "y", "z")
    model = Affine(weights, base - (seen @ weights.T).mean(axis=0).round(1), labels=labels)
    now = labels[int(model.score(here).argmax())]
    others = [label for label in labels if label != now]
    return model, draw(st.sampled_from([*others, OtherThan(now), {*others}, OtherThan(others[0])]))


# ---- rules -----------------------------------------------------------------------------------------------------------
@st.composite
def some_rules(draw: Any, question: Question) -> tuple[Any, ...]:
    """Draw one to four rules of any kinds; of a kind that charges for moves, one.

    Mostly such that one point, which the model puts in the target, keeps them all: else most questions had no answer.
    """
    space, found = question.space, list(question.rules)
    met = question.points[question.valid]
    anchor = met[draw(st.integers(0, len(met) - 1))] if len(met) and draw(st.integers(0, 3)) else None
    for name in draw(st.lists(st.sampled_from(sorted(RULES)), min_size=1, max_size=4)):
        half = half_of(name)
        if isinstance(question.cost, Percentile) and name == "Causal":
            continue  # where a shift ends has no percentile
        ask = getattr(half, "drawn", None)
        rule = draw(st.sampled_from(half.examples()) if ask is None else ask(space, question.factual))
        try:
            parse_rules((*found, rule), space)
        except CeoptError:  # two rules that both say what a move costs, and the like
            continue
        if any(cannot_go_with(rule, other) for other in found):
            continue
        if any(getattr(given, "data", None) is not None and given.data.empty for given in question.given([rule])):
            continue  # a hull of nobody is refused
        if anchor is None or kept(question.given([rule]), space, question.factual, anchor[None, :])[0]:
            found.append(rule)
    assume(found)
    return tuple(found)


def cannot_go_with(one: Any, other: Any) -> bool:
    """Whether two rules both say what a move costs, or both may grow."""
    causal = [type(rule).__name__ == "Causal" for rule in (one, other)]
    return all(causal) or all(getattr(rule, "enlarge", False) for rule in (one, other))


@st.composite
def questions(draw: Any, kind: str) -> Question:
    """Draw a question for a kind of model."""
    space, row, points, making = draw(tables())
    model, target = draw(aimed(space, row, points, kind))
    people = np.array([coordinates(space, person) for person in PEOPLE.to_dict("records")])
    scores = model.score(by_hand.identity(space, np.concatenate([points, people])))
    assume(np.abs(problems.slack(model, target, scores)).min() > CLEAR)
    cost, price = draw(st.sampled_from(COSTS))
    formulation = draw(st.sampled_from(["auto", "auto", "leaf", "misic"])) if kind == "trees" else "auto"
    question = Question(space, row, model, target, cost, price, making, points, formulation)
    return replace(question, rules=draw(some_rules(question)))

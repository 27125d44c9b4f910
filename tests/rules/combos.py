"""Questions drawn at random over one small table: every kind of column, model, target and cost, up to four rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import enumeration as by_hand
import numpy as np
import problems
from hypothesis import assume
from hypothesis import strategies as st
from rules.found import Floats, charged, half_of, halves, kept, penalties
from rules.small import PEOPLE, SPACE, coordinates, lattice

from ceopt.formulations.constraints import RULES, AllowedValues, parse_rules
from ceopt.formulations.costs import L0, L1, L2, AbstractCost, Changes, Linf, Percentile
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.formulations.space import FeatureSpace
from ceopt.formulations.targets import AtLeast, AtMost, Between, OtherThan, Probability
from ceopt.solvers.errors import CeoptError

#: Imported before anything is drawn: libraries use random numbers as they load, which hypothesis forbids.
RULES_AND_EXAMPLES = halves()
#: Least distance of every score from a tie: far beyond any default margin, so that none decides who is valid.
CLEAR = 1e-3


@dataclass(frozen=True, repr=False)
class Question:
    """One person and all that ``explain`` is asked, with the answer by enumeration."""

    space: FeatureSpace
    row: dict[str, Any]
    model: Any
    target: Any
    cost: AbstractCost
    price: Price
    rules: tuple[Any, ...]
    points: Floats
    formulation: str = "auto"

    def __repr__(self) -> str:
        changed = {f.name: (f.direction, f.weight, f.mutable) for f in self.space if f != SPACE[f.name]}
        asked = f"{self.target}, {self.cost}, {self.rules}, {self.formulation}"
        return f"Question({self.row}, {changed}, {self.model}, {asked})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # hypothesis would print the lattice too

    @cached_property
    def factual(self) -> Floats:
        return coordinates(self.space, self.row)

    @cached_property
    def costs(self) -> Floats:
        """What each point costs, as rules charge it."""
        moves = by_hand.Moves(self.space, charged(self.known, self.space, self.factual, self.points) - self.factual)
        own = np.broadcast_to(self.price(moves, self.factual), len(self.points))
        return own + penalties(self.known, self.space, self.factual, self.points)

    @cached_property
    def valid(self) -> Any:
        """Which points the model puts in the target."""
        return self.met(self.points)

    @cached_property
    def allowed(self) -> Any:
        """Which of them every rule keeps."""
        return self.valid & self.kept(self.known)

    def met(self, points: Floats) -> Any:
        scores = self.model.score(by_hand.identity(self.space, points))
        return problems.slack(self.model, self.target, scores) > 0.0

    def kept(self, rules: Sequence[Any]) -> Any:
        return kept(rules, self.space, self.factual, self.points)

    @cached_property
    def known(self) -> tuple[Any, ...]:
        """The rules with the rows that some take from the data, and as wide as one that may grow has to be."""
        rules = self.given(self.rules)
        grows = next((k for k, rule in enumerate(rules) if getattr(rule, "enlarge", False)), None)
        if grows is None or (self.valid & self.kept(rules)).any():
            return rules
        short = self.excess(rules, grows)
        return rules if short is None else tuple(replace(r, radius=r.radius + short) if r is rules[grows] else r for r in rules)

    def in_clusters(self, had: set[Any]) -> Any:
        """Return which points lie near a cluster that no earlier answer is in."""
        rule = next(rule for rule in self.known if getattr(rule, "clusters", None) is not None)
        return half_of(type(rule).__name__).near_clusters(rule, self.space, self.points, had)

    def excess(self, rules: Sequence[Any], k: int) -> float | None:
        """Return by how much a rule must be wider for some point that all others keep; None where none is."""
        others = self.valid & self.kept([*rules[:k], *rules[k + 1 :]])
        amounts = half_of(type(rules[k]).__name__).excess(rules[k], self.space, self.factual, self.points[others])
        return float(amounts.min()) if others.any() else None

    def given(self, rules: Iterable[Any]) -> tuple[Any, ...]:
        """Return rules with the rows of the target that some take from the data."""
        seen = np.array([coordinates(self.space, row) for row in PEOPLE.to_dict("records")])
        rows = PEOPLE[self.met(seen)].reset_index(drop=True)
        halves = [(half_of(type(rule).__name__), rule) for rule in rules]
        return tuple(half.given(rule, rows) if hasattr(half, "given") else rule for half, rule in halves)


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
        forest = [draw(problems.trees(space, 1, draw(st.sampled_from([1, 2, 3])))) for _ in range(draw(st.integers(1, 3)))]

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


# ---- costs -----------------------------------------------------------------------------------------------------------
Price = Callable[[by_hand.Moves, Floats], Floats]


def by_move(cost: by_hand.Cost) -> Price:
    return lambda moves, _home: cost(moves)


def percentiles(moves: by_hand.Moves, home: Floats) -> list[tuple[Floats, Floats]]:
    """Return Q of each ordered or 0/1 column, after and before: (how many people are at most there + 1/2) / (n + 2)."""
    people, found = np.array([coordinates(SPACE, row) for row in PEOPLE.to_dict("records")]), []
    for j, feature in enumerate(SPACE):
        before, after = np.full(len(moves.moves), home[j]), home[j] + moves.moves[:, j]
        for rank in range(len(feature.levels)) if feature.kind == "categorical" else [None]:
            data, *ends = [v if rank is None else (v == rank).astype(float) for v in (people[:, j], after, before)]
            found.append(tuple(((data <= end[:, None]).sum(axis=1) + 0.5) / (len(data) + 2.0) for end in ends))
    return found


def overtaken(moves: by_hand.Moves, home: Floats) -> Floats:
    return np.max([np.abs(after - before) for after, before in percentiles(moves, home)], axis=0)


def overtaken_log(moves: by_hand.Moves, home: Floats) -> Floats:
    return np.sum([np.abs(np.log((1.0 - after) / (1.0 - before))) for after, before in percentiles(moves, home)], axis=0)


COSTS: list[tuple[AbstractCost, Price]] = [
    (L0(), by_move(by_hand.l0)),
    (L1(), by_move(by_hand.l1())),
    (L1(scale="none"), by_move(by_hand.l1("none"))),
    (L1(scale="range"), by_move(by_hand.l1("range"))),
    (Linf(), by_move(by_hand.linf())),
    (L2(squared=True), by_move(by_hand.l2_squared())),
    (Changes(), by_move(by_hand.changes())),
    (Changes(count="columns"), by_move(by_hand.changes("columns"))),
    (Percentile("max"), overtaken),
    (Percentile("total_log"), overtaken_log),
    (L1() + 0.25 * Changes(), by_move(by_hand.total((1.0, by_hand.l1()), (0.25, by_hand.changes())))),
    (0.5 * Linf(scale="none") + L0(), by_move(by_hand.total((0.5, by_hand.linf("none")), (1.0, by_hand.l0)))),
]


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
        if isinstance(question.cost, Percentile) and hasattr(half, "charged"):
            continue  # where a shift ends has no percentile
        ask = getattr(half, "drawn", None)
        rule = draw(st.sampled_from(half.examples()) if ask is None else ask(space, question.factual))
        try:
            parse_rules((*found, rule), space)
        except CeoptError:  # an equation of an immutable column, contradictory conclusions
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
    return all(hasattr(half_of(type(rule).__name__), "charged") for rule in (one, other)) or all(
        getattr(rule, "enlarge", False) for rule in (one, other)
    )


@st.composite
def questions(draw: Any, kind: str) -> Question:
    """Draw a question for a kind of model."""
    space, row, points, making = draw(tables())
    model, target = draw(aimed(space, row, points, kind))
    scores = model.score(by_hand.identity(space, points))
    assume(np.abs(problems.slack(model, target, scores)).min() > CLEAR)
    cost, price = draw(st.sampled_from(COSTS))
    formulation = draw(st.sampled_from(["auto", "auto", "leaf", "misic"])) if kind == "trees" else "auto"
    question = Question(space, row, model, target, cost, price, making, points, formulation)
    return replace(question, rules=draw(some_rules(question)))

"""One question to ``explain``, its answer by enumeration, and costs by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import enumeration as by_hand
import numpy as np
import problems
from rules.found import Floats, charged, half_of, kept, penalties
from rules.small import PEOPLE, SPACE, coordinates

from ceopt.formulations.constraints import ExactlyOne, MaxChanges
from ceopt.formulations.costs import L0, L1, L2, AbstractCost, Changes, Linf, Percentile
from ceopt.formulations.space import FeatureSpace

Price = Callable[[by_hand.Moves, Floats], Floats]


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

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
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
        rules = together(self.given(self.rules))
        grows = next((k for k, rule in enumerate(rules) if getattr(rule, "enlarge", False)), None)
        if grows is None or (self.valid & self.kept(rules)).any():
            return rules
        short = self.excess(rules, grows)
        return (
            rules
            if short is None
            else tuple(replace(r, radius=r.radius + short) if r is rules[grows] else r for r in rules)
        )

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


def together(rules: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return rules of which those that count changes know the columns of which exactly one is 1."""
    groups = [tuple(rule.columns) for rule in rules if isinstance(rule, ExactlyOne)]
    return tuple(replace(rule, together=groups) if isinstance(rule, MaxChanges) else rule for rule in rules)


# ---- costs -----------------------------------------------------------------------------------------------------------
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
    return np.sum(
        [np.abs(np.log((1.0 - after) / (1.0 - before))) for after, before in percentiles(moves, home)], axis=0
    )


COSTS: list[tuple[AbstractCost, Price]] = [
    (L0(), by_move(by_hand.l0)),
    (L1(), by_move(by_hand.l1())),
    (L1(scale="none"), by_move(by_hand.l1("none"))),
    (L1(scale="range"), by_move(by_hand.l1("range"))),
    (Linf(), by_move(by_hand.linf())),
    (L2(squared=True), by_move(by_hand.l2_squared())),
    (L1(count="columns"), by_move(by_hand.l1(count="columns"))),
    (L2(squared=True, count="columns"), by_move(by_hand.l2_squared(count="columns"))),
    (Changes(), by_move(by_hand.changes())),
    (Changes(count="columns"), by_move(by_hand.changes("columns"))),
    (Percentile("max"), overtaken),
    (Percentile("total_log"), overtaken_log),
    (L1() + 0.25 * Changes(), by_move(by_hand.total((1.0, by_hand.l1()), (0.25, by_hand.changes())))),
    (0.5 * Linf(scale="none") + L0(), by_move(by_hand.total((0.5, by_hand.linf("none")), (1.0, by_hand.l0)))),
]

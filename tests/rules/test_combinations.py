"""Random combinations of rules through ``explain``: status, costs and every answer as by enumeration of the lattice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import enumeration as by_hand
import numpy as np
import problems
import pytest
from draws import draws
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rules.combos import questions
from rules.found import half, kept
from rules.question import Question
from rules.small import PEOPLE, coordinates

import ceopt
from ceopt import Apart
from ceopt.formulations.constraints import Hull, rule_name
from ceopt.formulations.constraints.rule import AbstractElastic
from ceopt.formulations.predictors import ReluNetwork, TreeEnsemble

#: Combinations of each kind of model; 200 in all.
EXAMPLES = {"linear": 60, "trees": 60, "network": 35, "classes": 45}


def ask(question: Question, n: int, diversity: Any) -> Any:
    return ceopt.explain(
        question.model,
        question.row,
        question.space,
        target=question.target,
        cost=question.cost,
        constraints=question.rules,
        data=PEOPLE,
        n=n,
        diversity=diversity,
        formulation=question.formulation,
        time_limit_s=120.0,
    )


def check(question: Question, n: int, diversity: Any) -> None:
    """Status and costs are those of enumeration, and every answer keeps every rule."""
    costs, allowed, factual = question.costs, question.allowed, question.factual
    answers = ask(question, n, diversity)

    if ((question.points == factual).all(axis=1) & allowed).any():
        assert answers.status == "already_favourable"
        return
    if not allowed.any():
        assert answers.status == "infeasible", answers.reason
        assert len(answers) == 0
        check_conflict(question, answers)
        return
    assert answers.status == "optimal", answers.reason
    assert problems.same(answers[0].cost, float(costs[allowed].min())), (answers[0].cost, costs[allowed].min())
    grown = {
        rule_name(rule, k): known.radius
        for k, (rule, known) in enumerate(zip(question.rules, question.known, strict=True))
        if getattr(rule, "radius", 0.0) != getattr(known, "radius", 0.0)
    }
    assert answers.relaxed == pytest.approx(grown, rel=1e-5)

    had: list[Any] = []
    for answer in answers:
        point = coordinates(question.space, dict(answer.values))
        place = np.flatnonzero((question.points == point).all(axis=1))
        assert len(place) == 1, f"{point} is not in reach"
        assert question.met(point[None, :])[0]
        for rule, known in zip(question.rules, question.known, strict=True):
            assert kept([known], question.space, factual, point[None, :])[0], f"{rule!r} is broken at {point}"
            check_actions(question, known, point, answer.actions)
        assert problems.same(answer.cost, float(costs[place[0]]))
        assert set(answer.changed) == {f.name for f, a, b in zip(question.space, point, factual, strict=True) if a != b}
        least, most = next_costs(question, diversity, had)
        assert least is not None
        assert answer.cost >= least - 1e-6 * max(1.0, abs(least)), (answer.rank, answer.cost, least)
        assert most is None or answer.cost <= most + 1e-6 * max(1.0, abs(most)), (answer.rank, answer.cost, most)
        had.append((point, answer.cluster))
    assert answers.complete, answers.reason
    if len(answers) < n:
        assert next_costs(question, diversity, had)[1] is None


def check_conflict(question: Question, answers: Any) -> None:
    """The rules in conflict leave no point, any fewer leave some, and each one's width makes room beside all others."""
    names = [rule_name(rule, k) for k, rule in enumerate(question.rules)]
    found = {name: width for name, _sentence, width in answers.conflict}
    if question.space["wage"].step is None:
        return  # without the rule that lists values there is no lattice
    if not question.valid.any():
        assert not found.keys() & set(names), "the space alone leaves nothing"
        return
    assert list(found) == [name for name in names if name in found]
    assert found
    rules = dict(zip(names, question.known, strict=True))
    assert not (question.valid & question.kept([rules[name] for name in found])).any(), "they leave a point"
    for name, width in found.items():
        fewer = [rules[other] for other in found if other != name]
        assert (question.valid & question.kept(fewer)).any(), f"{name} is not needed for the conflict {list(found)}"
        if isinstance(rules[name], AbstractElastic):
            expected = question.excess(question.known, names.index(name))
            assert (width is None) == (expected is None), (name, width, expected)
            # Told in six digits, rounded up.
            assert width is None or expected - 1e-6 <= width <= 1.00001 * expected + 1e-6, (name, width, expected)
        else:
            assert width is None


def check_actions(question: Question, rule: Any, point: Any, told: Any) -> None:
    """With a causal rule: what is to be done, and not what follows from it."""
    ask = getattr(half(rule), "actions", None)
    if ask is None:
        return
    expected = ask(rule, question.space, question.factual, point)
    assert set(told.index) == set(expected)
    for name, value in expected.items():
        assert told[name] == (pytest.approx(value, abs=1e-6) if isinstance(value, float) else value), name


def next_costs(question: Question, diversity: Any, had: list[Any]) -> tuple[Any, Any]:
    """Return the least cost that a further answer may have and the most, as far as the public interface decides it.

    Rules may cut columns more finely than the model does, and a number that nothing reads is not moved to be different:
    so much is left open.
    """
    points, moved, costs = question.points, question.points != question.factual, question.costs
    may, must = question.allowed.copy(), question.allowed & read(question)
    if isinstance(diversity, Apart) or diversity == "distinct":
        must = may.copy()
    if diversity == "clusters":
        left = question.in_clusters({cluster for _, cluster in had})
        may, must = may & left, may & left
    for point, _ in had:
        if isinstance(diversity, Apart):
            moves = by_hand.Moves(question.space, points - point)
            distances = {"l1": by_hand.l1(), "l0": by_hand.l0, "linf": by_hand.linf()}[diversity.cost](moves)
            may &= distances >= diversity.least - 1e-9
            must &= distances >= diversity.least - 1e-9
        elif diversity == "distinct":
            is_other = by_hand.distinct(question.space, question.factual, point, points)
            may &= is_other
            must &= is_other
        elif diversity == "support":
            may &= (moved != (point != question.factual)).any(axis=1)
            must &= (moved != (point != question.factual)).any(axis=1)
        elif diversity == "pool":
            may &= (points != point).any(axis=1)
            must &= decided_otherwise(question, point)
    return (float(costs[may].min()) if may.any() else None), (float(costs[must].min()) if must.any() else None)


def places(question: Question, j: int) -> Any:
    """Return what the model reads of a number at each point: its cell, itself, or nothing."""
    column = question.points[:, j]
    if isinstance(question.model, TreeEnsemble):
        return np.searchsorted(sorted(problems.thresholds(question.model, j)), column)
    weights = question.model.weights[0] if isinstance(question.model, ReluNetwork) else question.model.weights
    return column if np.any(weights[..., j] != 0.0) else np.zeros(len(column))


def read(question: Question) -> Any:
    """Return which points move no number in a way that the model does not see."""
    here = (question.points == question.factual).all(axis=1).argmax()
    seen = np.ones(len(question.points), dtype=bool)
    for j, feature in enumerate(question.space):
        if not feature.is_finite:
            at = places(question, j)
            seen &= (question.points[:, j] == question.factual[j]) | (at != at[here])
    return seen


def decided_otherwise(question: Question, point: Any) -> Any:
    """Return which points surely differ from one: in a tree's cell, a level, or in whether a number moves."""
    differs, this = np.zeros(len(question.points), dtype=bool), (question.points == point).all(axis=1).argmax()
    for j, feature in enumerate(question.space):
        column, at = question.points[:, j], places(question, j)
        if feature.is_finite:
            differs |= column != point[j]
        elif isinstance(question.model, TreeEnsemble):
            differs |= at != at[this] if question.formulation == "auto" else False
        else:
            differs |= (column != question.factual[j]) != (point[j] != question.factual[j])
    if question.formulation != "auto":  # the research forms tell cells apart by the leaves that they reach
        leaves = question.model.apply(by_hand.identity(question.space, question.points))
        differs |= (leaves != leaves[this]).any(axis=1)
    return differs


#: What answers differ by; clusters where a hull has some.
DIVERSITIES = ["pool", "support", "distinct", Apart(1.0), Apart(0.5, cost="l0"), Apart(1.0, cost="linf"),
               Apart(2.0, cost="l0")]  # fmt: skip


@st.composite
def drawn(draw: Any, kind: str) -> dict[str, Any]:
    question = draw(questions(kind))
    clustered = [rule for rule in question.rules if getattr(rule, "clusters", None) is not None]
    # A penalty is on the way to the nearest cluster, whichever the answer stands for.
    ways = ["clusters"] if len(clustered) == 1 and clustered[0].penalty is None and draw(st.booleans()) else DIVERSITIES
    return {"question": question, "n": draw(st.sampled_from([1, 3])), "diversity": draw(st.sampled_from(ways))}


SETTINGS = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
)


@pytest.mark.long
@pytest.mark.parametrize("kind", EXAMPLES)
def test_answers_are_those_of_enumeration(kind: str) -> None:
    @draws(EXAMPLES[kind], SETTINGS)
    @given(asked=drawn(kind))
    def run(asked: dict[str, Any]) -> None:
        check(**asked)

    run()


@pytest.mark.long
@draws(20, SETTINGS)
@given(
    question=questions("linear"), labels=st.permutations([0, 0, 0, 1, 1, 1, 2, 2]), radius=st.sampled_from([1.0, 2.0])
)
def test_one_answer_for_each_cluster(question: Question, labels: list[int], radius: float) -> None:
    hull = Hull(PEOPLE, radius=radius, clusters=labels)
    others = [rule for rule in question.rules if not isinstance(rule, Hull)][:1]
    check(replace(question, rules=(*others, hull)), n=4, diversity="clusters")

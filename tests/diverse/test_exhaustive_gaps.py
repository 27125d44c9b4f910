"""Every near-optimal way out of people with missing cells and codes, against enumeration of all rows in reach."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from gap_questions.draw import Question, draw
from gap_questions.judge import cheapest

import ceopt
from ceopt.diverse import exhaustive
from ceopt.diverse.score_bounds import cell_columns, cell_of
from ceopt.formulations.constraints.diversity.diversity import OtherCells
from ceopt.formulations.costs.base import CostCutoff
from ceopt.formulations.predictors import Affine
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.space.reachable import Interval, reach_of

#: What has no trees and linear parts alone is answered by a sequence of programs.
KINDS = (
    "mean_logistic", "median_logistic", "constant_logistic", "histogram", "tree", "forest", "mean_forest",
    "histogram_value", "mean_network",
)  # fmt: skip


def ways(question: Question, epsilon: float) -> list[float]:
    """Return the cost of the cheapest row of each cell, ascending, of those within the threshold."""
    _, rows = cheapest(dataclasses.replace(question, rules=()))
    if not len(rows):
        return []
    space = question.space
    factual = space.row(question.row)
    reach = reach_of(space, factual)
    priced = []
    for row in space.coordinates(rows).tolist():
        point = dict(zip(space.names, row, strict=True))
        is_kept = all(rule.violation(space, factual, point) <= 0 for rule in question.rules)
        if is_kept and all(reach[name].holds(value) for name, value in point.items()):
            priced.append((question.cost.value(space, factual, point), point))
    priced.sort(key=lambda pair: pair[0])
    cells = OtherCells(read(question.model, space))
    kept: list[tuple[float, dict[str, float]]] = []
    for cost, point in priced:
        if cost > priced[0][0] + epsilon + 1e-9:
            break
        if all(cells.differ(space, factual, point, other) for _, other in kept):
            kept.append((cost, point))
    return [cost for cost, _ in kept]


def agree(question: Question) -> None:
    """Hold the answers against enumeration."""
    expected = ways(question, 0.6)
    found = exhaustive(
        question.model,
        question.row,
        question.space,
        target=question.target,
        epsilon=0.6,
        cost=question.cost,
        constraints=question.rules,
    )

    assert found.complete or not expected, found.reason
    assert len(found) == len(expected)
    np.testing.assert_allclose([answer.cost for answer in found], expected, rtol=1e-5, atol=1e-6)
    assert all(answer.verified for answer in found)


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("kind", KINDS)
def test_there_is_one_answer_of_each_cell(kind, number):
    question = draw(kind, number)
    if question is not None:
        agree(question)


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("kind", ["mean_logistic", "histogram", "forest"])
def test_a_rule_may_ask_for_another_point_of_a_cell(kind, number):
    """Amounts that are listed: the nearest of a cell is often none of them, and a program finds another."""
    question = draw(kind, number)
    if question is None:
        return
    values = {}
    for feature in question.space:
        own = question.space.row(question.row)[feature.name]
        if not feature.is_finite and feature.mutable:
            values[feature.name] = [feature.lower + 1.0, feature.upper]
            if not feature.is_label(own):
                values[feature.name].append(own)
    if values:
        agree(dataclasses.replace(question, rules=(*question.rules, ceopt.AllowedValues(values))))


def test_a_code_among_the_amounts_is_a_cell_of_its_own():
    """Of a number that a line reads each amount is a cell; of one that nothing reads all amounts are one cell."""
    features = [
        ceopt.Feature(name, kind="integer", lower=0, upper=4, codes=[2, -9], codes_in_reach=True) for name in "ab"
    ]
    space = ceopt.FeatureSpace(features)
    predictor = read(Affine([1.0, 0.0], -3.0, labels=("no", "yes")), space)
    factual = {"a": 1.0, "b": 1.0}
    reach = reach_of(space, factual)
    columns = cell_columns(predictor, ceopt.L1(scale="none"), factual, reach, 9.0)
    assert columns is not None
    read_one, other = columns

    assert sorted(read_one.values.tolist()) == [-9.0, 0.0, 1.0, 2.0, 3.0, 4.0]
    assert sorted(zip(other.low.tolist(), other.high.tolist(), strict=True)) == [(-9.0, -9.0), (0.0, 4.0), (2.0, 2.0)]
    assert other.low[other.holding(2.0)].tolist() == [2.0]
    assert other.low[other.holding(3.0)].tolist() == [0.0]
    assert cell_of(columns, {"a": 2.0, "b": 2.0}) != cell_of(columns, {"a": 2.0, "b": 3.0})
    codes = np.flatnonzero(other.is_label)
    assert other.part_of(codes[:1], reach) == Interval(*[other.values[codes[0]]] * 2, anchor=other.values[codes[0]])
    assert other.part_of(np.arange(3), reach) == reach["b"]


def test_a_budget_short_of_a_fill_leaves_labels_out_and_one_short_of_amounts_leaves_them():
    feature = ceopt.Feature("a", kind="integer", lower=0, upper=9, missing="may_vanish", fill=3.0)
    space = ceopt.FeatureSpace([feature])
    for own, budget, values in ((5.0, 2.0, (3.0, 7.0)), (5.0, 3.0, (2.0, 8.0)), (np.inf, 2.0, (np.inf, np.inf))):
        factual = {"a": own}
        near = CostCutoff(space, factual, ceopt.L1(scale="none"), budget)
        part = near.narrowed(reach_of(space, factual))["a"]
        assert (part.lower, part.upper) == values
        assert part.labels == ((np.inf,) if budget == 3.0 else ())
    near = CostCutoff(space, {"a": 5.0}, ceopt.L1(scale="none"), 3.0)
    far = Interval(9.0, 9.0, 1.0, 5.0)
    assert near.is_beyond({"a": far})
    assert not near.is_beyond({"a": dataclasses.replace(far, labels=(np.inf,))})
    assert near.narrowed({"a": dataclasses.replace(far, labels=(np.inf,))}) == {"a": Interval(np.inf, np.inf)}
    assert near.narrowed({"a": Interval(np.inf, np.inf)}) == {"a": Interval(np.inf, np.inf)}
    assert CostCutoff(space, {"a": 5.0}, ceopt.L1(scale="none"), 2.0).is_beyond({"a": Interval(np.inf, np.inf)})

"""Forests whose sums often tie, of leaves that add up exactly and others: held against all points of a lattice."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st

import ceopt
from ceopt.formulations.constraints.diversity import DIVERSITIES
from ceopt.formulations.predictors import TreeEnsemble
from ceopt.formulations.predictors.reaches import own_decision, wanted_sums
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.predictors.ties import accepted, exact_side_of
from ceopt.formulations.targets import parse_target
from ceopt.oracle.model import ModelOracle

NAMES = ("a", "b", "c")
SPACE = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=3) for name in NAMES])
LATTICE = np.array(list(itertools.product(range(4), repeat=3)), dtype=float)
PLAIN = ceopt.L1(scale="none")
SHARES = [0.0, 1.0, 0.5, 0.25, 1 / 3, 2 / 3, 0.1, 0.9]


def leaf() -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(SHARES).map(lambda share: {"value": [1.0 - share, share]})


def tree() -> st.SearchStrategy[dict[str, Any]]:
    def grow(child: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
        split = {"feature": st.integers(0, 2), "threshold": st.integers(0, 2).map(lambda k: k + 0.5)}
        return st.fixed_dictionaries({**split, "left": child, "right": child})

    return grow(st.recursive(leaf(), grow, max_leaves=4))


def forest(trees: list[dict[str, Any]]) -> TreeEnsemble:
    words: Any = {"labels": ("no", "yes"), "probability": "share"}
    return TreeEnsemble(trees, n_inputs=3, divisor=len(trees), **words)


def says_yes(model: TreeEnsemble) -> np.ndarray[Any, Any]:
    scores = model.score(LATTICE)
    return scores[:, 1] > scores[:, 0]


FORESTS = st.lists(tree(), min_size=2, max_size=6).map(forest)
PEOPLE = st.integers(0, len(LATTICE) - 1)


@draws(60)
@given(model=FORESTS)
def test_the_row_cuts_off_no_score_that_is_accepted_and_all_ties_of_exact_leaves(model: TreeEnsemble) -> None:
    predictor = read(model, SPACE)
    target = parse_target("yes", predictor.labels)
    ((_, (one,)),) = wanted_sums(model, target)
    accepts, more = own_decision(predictor, target, one)
    row = exact_side_of(predictor, one.weights, one.level, accepts, more=more)
    if row is None:
        return
    values = np.stack([t.value[nodes] for t, nodes in zip(model.trees, model.apply(LATTICE).T, strict=True)], axis=1)
    reliefs = np.stack([row.relief_of(values[:, t]) for t in range(len(model.trees))], axis=1)
    sums = model.score(LATTICE) @ np.array(one.weights)
    kept = sums + reliefs.sum(axis=1) >= row.side.least
    is_met = accepted(predictor, LATTICE, target)
    assert kept[is_met].all()
    whole = (reliefs == 0.0).all(axis=1)
    assert (kept == is_met)[whole].all()


@draws(60)
@given(model=FORESTS, person=PEOPLE, form=st.sampled_from(["auto", "auto", "misic", "leaf"]))
def test_one_answer_is_that_of_enumeration(model: TreeEnsemble, person: int, form: str) -> None:
    yes = says_yes(model)
    if yes[person]:
        return
    costs = np.abs(LATTICE - LATTICE[person]).sum(axis=1)
    row = dict(zip(NAMES, LATTICE[person].tolist(), strict=True))
    result = ceopt.explain(model, row, SPACE, target="yes", cost=PLAIN, formulation=form)
    if not yes.any():
        assert result.status == "infeasible"
        return
    assert (result.status, result[0].cost) == ("optimal", pytest.approx(costs[yes].min()))
    assert result.bound == pytest.approx(costs[yes].min())


@draws(60)
@given(
    model=FORESTS,
    person=PEOPLE,
    diversity=st.sampled_from(["distinct", "support"]),
    n=st.integers(2, 6),
    form=st.sampled_from(["auto", "auto", "auto", "leaf"]),
)
def test_each_further_answer_is_the_cheapest_that_differs(
    model: TreeEnsemble, person: int, diversity: str, n: int, form: str
) -> None:
    yes = says_yes(model)
    if yes[person]:
        return
    costs = np.abs(LATTICE - LATTICE[person]).sum(axis=1)
    points = [dict(zip(NAMES, values, strict=True)) for values in LATTICE.tolist()]
    row = points[person]
    asked: Any = {"target": "yes", "cost": PLAIN, "formulation": form}
    found = ceopt.explain(model, row, SPACE, n=n, diversity=diversity, **asked)
    ways = DIVERSITIES[diversity]()
    earlier: list[dict[str, float]] = []
    read_by_model = {feature for each in model.trees for feature in each.feature.tolist()}
    stays = [j for j in range(len(NAMES)) if j not in read_by_model]
    is_left = yes & (LATTICE[:, stays] == LATTICE[person, stays]).all(axis=1)
    for answer in found:
        assert answer.cost == pytest.approx(costs[is_left].min())
        assert answer.bound == pytest.approx(answer.cost)
        earlier.append({name: float(answer.values[name]) for name in NAMES})
        is_left &= [ways.differ(SPACE, row, earlier[-1], point) for point in points]
    assert len(found) == n or not is_left.any()


def test_ties_of_pure_leaves_come_back_from_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten stumps one has a leaf of thirds, out of reach: five votes are a tie in 126 ways, and never a point."""
    stumps = []
    for k in range(10):
        no = {"value": [2 / 3, 1 / 3]} if k == 9 else {"value": [1.0, 0.0]}
        stumps.append({"feature": k, "threshold": 0.5, "left": no, "right": {"value": [0.0, 1.0]}})
    model = TreeEnsemble(stumps, divisor=10, labels=("no", "yes"), probability="share")
    space = ceopt.FeatureSpace([ceopt.Feature(f"x{k}", kind="integer", lower=0, upper=1) for k in range(10)])
    judged: list[int] = []
    judge = ModelOracle.judge

    def counting(self: ModelOracle, frame: Any, target: Any) -> Any:
        said = judge(self, frame, target)
        judged.extend(np.flatnonzero(~said[1]).tolist())
        return said

    monkeypatch.setattr(ModelOracle, "judge", counting)
    row = {**dict.fromkeys(space.names, 0), "x9": 1}
    found = ceopt.explain(model, row, space.update("x9", lower=1), target="yes", cost=PLAIN, solver="highs")

    assert (found.status, found[0].cost) == ("optimal", 5.0)
    assert len(judged) == 1  # the row itself

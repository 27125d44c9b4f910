"""Three and four classes through ``explain``: the least change equals enumeration, for labels, sets and all but one."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier

import ceopt
from ceopt import FeatureSpace, Probability
from ceopt.formulations import Factual, Reaches, embed
from ceopt.formulations.costs import parse_cost
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.predictors.ties import default_margin
from ceopt.solvers.errors import UnsupportedModelError

SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("age", kind="integer", lower=0, upper=5),
        ceopt.Feature("size", kind="ordinal", levels=("S", "M", "L", "XL"), weight=(1.0, 2.0)),
        ceopt.Feature("job", kind="categorical", levels=(10, 30, 20)),
        ceopt.Feature("owner", kind="binary", levels=(False, True), weight=0.5),
    ]
)
POINTS = np.array(list(itertools.product(range(6), range(4), range(3), range(2))), dtype=float)
FRAME = SPACE.frame([dict(zip(SPACE.names, point, strict=True)) for point in POINTS.tolist()])
LABELS = ("w", "x", "y", "z")


def tree(rng: np.random.Generator, width: int, depth: int, *, shares: bool) -> dict[str, Any]:
    if depth == 0:
        values = rng.integers(1, 9, size=width) if shares else rng.normal(size=width)
        return {"value": (values / values.sum() if shares else values).tolist()}
    feature = int(rng.integers(4))
    at = float(rng.choice([[1.5, 3.5], [0.5, 1.5, 2.5], [10.0, 20.0], [0.5]][feature]))
    sides = {side: tree(rng, width, depth - 1, shares=shares) for side in ("left", "right")}
    return {"feature": feature, "threshold": at} | sides


def affine(rng: np.random.Generator, k: int) -> Affine:
    return Affine(rng.normal(size=(k, 4)) * [1, 1, 0.1, 2], rng.normal(size=k), labels=LABELS[:k])


def forest(rng: np.random.Generator, k: int) -> TreeEnsemble:
    trees = [tree(rng, k, 3, shares=True) for _ in range(4)]
    return TreeEnsemble(trees, divisor=4, labels=LABELS[:k], probability="share", n_inputs=4)


def boosting(rng: np.random.Generator, k: int) -> TreeEnsemble:
    trees = [tree(rng, k, 2, shares=False) for _ in range(4)]
    return TreeEnsemble(trees, rng.normal(size=k), labels=LABELS[:k], n_inputs=4)


def network(rng: np.random.Generator, k: int) -> ReluNetwork:
    weights = [rng.normal(size=(5, 4)) * [1, 1, 0.1, 2], rng.normal(size=(4, 5)), rng.normal(size=(k, 4))]
    return ReluNetwork(weights, [rng.normal(size=len(w)) for w in weights], labels=LABELS[:k])


def wanted(target: Any, labels: tuple[Any, ...]) -> list[int]:
    if isinstance(target, ceopt.OtherThan):
        return [k for k, label in enumerate(labels) if label != target.label]
    asked = target if isinstance(target, set) else {target}
    return [k for k, label in enumerate(labels) if label in asked]


def assert_least_change(model: Any, place: int, target: Any, cost: str, margin: float | None = None) -> str:
    """Compare ``explain`` with every point of the space; return the status."""
    predictor = read(model, SPACE)
    scores, labels = predictor.score(POINTS), predictor.labels
    asked = wanted(target, labels)
    others = [k for k in range(len(labels)) if k not in asked]
    lead = scores[:, asked].max(axis=1) - scores[:, others].max(axis=1)
    least = default_margin(predictor) if margin is None else margin
    good = lead >= least - 1e-9  # a lead within rounding of the margin is on neither side
    if margin is None and predictor.is_trees:
        least = 0.0
        good = np.isin(model.predict(predictor.encoding.matrix(POINTS)), [labels[k] for k in asked])
    result = ceopt.explain(model, FRAME.iloc[[place]], SPACE, target=target, cost=cost, margin=margin)
    if model.predict(predictor.encoding.matrix(POINTS[[place]]))[0] in [labels[k] for k in asked]:
        assert result.status == ceopt.Status.ALREADY_FAVOURABLE
        return str(result.status)
    price, points = parse_cost(cost), [dict(zip(SPACE.names, point, strict=True)) for point in POINTS.tolist()]
    costs = np.array([price.value(SPACE, points[place], point) for point in points])
    if not good.any():
        assert result.status == ceopt.Status.INFEASIBLE
        return str(result.status)
    assert result.status == ceopt.Status.OPTIMAL
    assert result[0].cost == pytest.approx(costs[good].min(), abs=1e-7)
    assert result[0].prediction in [labels[k] for k in asked]
    assert result[0].slack >= least - 1e-6
    return str(result.status)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("cost", ["l1", "l0"])
@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("make", [affine, forest, boosting, network], ids=lambda make: make.__name__)
def test_least_change_of_plain_models_equals_enumeration(make: Any, k: int, cost: str) -> None:
    seen = set()
    for seed in range(3):
        rng = np.random.default_rng(100 * k + seed)
        model = make(rng, k)
        place = int(rng.integers(len(POINTS)))
        current = model.predict(read(model, SPACE).encoding.matrix(POINTS[[place]]))[0]
        rivals = [label for label in LABELS[:k] if label != current]
        for target in (rivals[0], rivals[1], set(rivals[:2]), ceopt.OtherThan(current)):
            seen.add(assert_least_change(model, place, target, cost))
        seen.add(assert_least_change(model, place, ceopt.OtherThan(rivals[0]), cost))
    assert {"optimal", "already_favourable"} <= seen


@pytest.mark.long(every=3)
@pytest.mark.parametrize("margin", [0.1, 50.0])
@pytest.mark.parametrize("make", [affine, forest, boosting, network], ids=lambda make: make.__name__)
def test_a_margin_holds_against_every_rival(make: Any, margin: float) -> None:
    seen = set()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        model = make(rng, 4)
        current = model.predict(read(model, SPACE).encoding.matrix(POINTS[[7]]))[0]
        rivals = [label for label in LABELS if label != current]
        for target in (rivals[0], set(rivals[:2])):
            seen.add(assert_least_change(model, 7, target, "l1", margin))
    assert seen == {"infeasible"} if margin == 50.0 else "optimal" in seen


@pytest.mark.parametrize("unit", [0.01, 0.03])
def test_scores_that_differ_by_little_need_a_small_big_m_and_lose_nothing(unit: float) -> None:
    """Wherever one goes, the scores of two labels differ by less than 1."""
    seen = set()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        weights = rng.normal(size=(4, 4)) * [1, 1, 0.1, 2]
        model = Affine(unit * weights, unit * rng.normal(size=4), labels=LABELS)
        scores = read(model, SPACE).score(POINTS)
        assert np.abs(scores[:, :, None] - scores[:, None, :]).max() < 1.0
        for place in (7, 90):
            current = model.predict(read(model, SPACE).encoding.matrix(POINTS[[place]]))[0]
            rivals = [label for label in LABELS if label != current]
            for target in (set(rivals[:2]), set(rivals[1:]), ceopt.OtherThan(current)):
                seen.add(assert_least_change(model, place, target, "l1"))
    assert "optimal" in seen


LIBRARY = [
    LogisticRegression(max_iter=5000),
    RidgeClassifier(),
    RandomForestClassifier(4, max_depth=3, random_state=0),
    GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0),
    HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=4, min_samples_leaf=5),
    MLPClassifier((5,), solver="lbfgs", max_iter=5000, alpha=0.1, random_state=0),
]


@pytest.mark.long(every=3)
@pytest.mark.parametrize("estimator", LIBRARY, ids=lambda e: type(e).__name__)
def test_least_change_of_fitted_models_equals_enumeration(estimator: Any) -> None:
    numbers = pd.DataFrame(POINTS, columns=list(SPACE.names)).assign(job=FRAME["job"].astype(float))
    worth = numbers["age"] - numbers["size"] + 2.0 * numbers["owner"] + np.where(numbers["job"] == 30, 2.5, 0.0)
    y = np.array(LABELS)[np.digitize(worth + np.random.default_rng(0).normal(size=len(worth)), [0.0, 2.0, 4.0])]
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature(name, kind="integer", lower=0, upper=top)
            for name, top in zip(SPACE.names, (5, 3, 30, 1), strict=True)
        ]
    ).update("job", mutable=False)
    model = estimator.fit(numbers.astype(int), y)
    predictor = read(model, space)
    coordinates = numbers.to_numpy()
    scores, predicted = predictor.score(coordinates), model.predict(numbers.astype(int))
    for place, (cost, target) in itertools.product((3, 70), itertools.product(("l1", "l0"), ("w", {"y", "z"}))):
        asked = wanted(target, predictor.labels)
        others = [k for k in range(4) if k not in asked]
        lead = scores[:, asked].max(axis=1) - scores[:, others].max(axis=1)
        row = numbers.astype(int).iloc[[place]]
        result = ceopt.explain(model, row, space, target=target, cost=cost)
        if predicted[place] in [LABELS[k] for k in asked]:
            assert result.status == ceopt.Status.ALREADY_FAVOURABLE
            continue
        good = lead >= default_margin(predictor) - 1e-9
        if predictor.is_trees:
            good = np.isin(predicted, [LABELS[k] for k in asked])
        near = (coordinates[:, 2] == coordinates[place, 2]) & good
        points = [dict(zip(space.names, point, strict=True)) for point in coordinates.tolist()]
        costs = [parse_cost(cost).value(space, points[place], points[k]) for k in np.flatnonzero(near)]
        if not costs:
            assert result.status == ceopt.Status.INFEASIBLE
            continue
        assert result.status == ceopt.Status.OPTIMAL
        assert result[0].cost == pytest.approx(min(costs), abs=1e-7)
        assert model.predict(result[0].frame)[0] in [LABELS[k] for k in asked]


@pytest.mark.parametrize("estimators", [2, 3])
def test_a_hard_vote_has_no_probability_in_a_program_of_the_users_own(estimators: int) -> None:
    """It is refused by name, before anything is made of it; its labels are asked for as before."""
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 0.0, 1.0, 0.0]})
    named = [(f"m{k}", LogisticRegression(C=10.0**k)) for k in range(estimators)]
    model = VotingClassifier(named, voting="hard").fit(frame, [0, 0, 1, 1])
    m = pyo.ConcreteModel()
    m.x = Factual(FeatureSpace.infer(frame), frame.iloc[0])
    m.votes = embed(model, m.x)
    with pytest.raises(UnsupportedModelError, match="Probability needs a model whose probability follows from its"):
        m.likely = Reaches(m.votes, Probability(1, 0.6))
    m.label = Reaches(m.votes, 1)

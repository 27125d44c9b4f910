"""The cutoff: what it rules out costs more than the budget, and its bound on linear functions is never too small."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from ceopt.formulations.costs import L0, L1, AbstractCost, Changes, Linf, parse_cost
from ceopt.formulations.costs.base import CostCutoff
from ceopt.formulations.predictors import TreeEnsemble
from ceopt.formulations.predictors.pruned_leaves import pruned_trees
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.reachable import Levels, reach_of

SPACE = FeatureSpace(
    [
        Feature("age", kind="integer", lower=0, upper=9, direction="increasing", weight=(1.0, 2.0)),
        Feature("income", kind="continuous", lower=-2, upper=6),
        Feature("free", kind="continuous", lower=0, upper=1, weight=(1.0, 0.0)),
        Feature("size", kind="ordinal", levels=("S", "M", "L", "XL"), weight=(1.0, 3.0)),
        Feature("job", kind="categorical", levels=("cook", "nurse", "clerk"), weight=2.0),
    ]
)
ROW = {"age": 3, "income": 1.0, "free": 0.5, "size": "M", "job": "nurse"}
COSTS = [L1(scale="none"), L1(scale="none") + 0.5 * Changes(), L0(), Linf(scale="none"), parse_cost("l2_squared")]


def _points(count: int, rng: np.random.Generator) -> Any:
    part = reach_of(SPACE, SPACE.row(ROW))
    for _ in range(count):
        point = dict(SPACE.row(ROW))
        for name in rng.permutation(SPACE.names)[: rng.integers(1, 6)].tolist():
            here = part[name]
            if isinstance(here, Levels):
                point[name] = float(rng.choice(here.ranks))
            else:
                point[name] = here.clip(float(rng.uniform(here.lower, here.upper)))
        yield point


@pytest.mark.parametrize("cost", COSTS, ids=repr)
@given(seed=st.integers(0, 10_000), budget=st.floats(0.0, 8.0))
def test_no_point_within_the_budget_gains_more_or_leaves_the_narrowed_reach(cost, seed, budget):
    rng = np.random.default_rng(seed)
    factual = SPACE.row(ROW)
    cutoff = CostCutoff(SPACE, factual, cost, budget)
    reach = cutoff.narrowed(reach_of(SPACE, factual))
    slopes = {name: rng.normal(size=3) * rng.integers(0, 2, 3) for name in ("age", "income", "free")}
    tables = {"size": rng.normal(size=(3, 4)), "job": rng.normal(size=(3, 3))}
    most = cutoff.greatest_gain(slopes, tables, reach)
    for point in _points(40, rng):
        if cost.value(SPACE, factual, point) > budget:
            continue
        for name, part in reach.items():
            inside = point[name] in part.ranks if isinstance(part, Levels) else part.lower <= point[name] <= part.upper
            assert inside, name
        gain = sum(slope * (point[name] - factual[name]) for name, slope in slopes.items())
        gain = gain + sum(table[:, int(point[name])] - table[:, int(factual[name])] for name, table in tables.items())
        assert (gain <= most + 1e-9).all()
        prices = [float(cutoff.own_prices(name, np.array([point[name]]))[0]) for name in ("age", "income", "free")]
        assert (sum(prices) if cost.additive else max(prices)) <= cutoff.budget


@given(seed=st.integers(0, 10_000), budget=st.floats(0.01, 8.0))
def test_with_numbers_and_l1_the_bound_is_the_linear_programs_optimum(seed, budget):
    rng = np.random.default_rng(seed)
    space = FeatureSpace([Feature(f"x{j}", kind="continuous", lower=-3, upper=4, weight=1.0 + j) for j in range(4)])
    factual = {name: float(rng.uniform(-3, 4)) for name in space.names}
    cutoff = CostCutoff(space, factual, L1(scale="none"), budget)
    reach = cutoff.narrowed(reach_of(space, factual))
    slope = rng.normal(size=4)
    most = cutoff.greatest_gain({name: slope[[j]] for j, name in enumerate(space.names)}, {}, reach)
    rooms = [(reach[name].upper - factual[name], factual[name] - reach[name].lower) for name in space.names]
    weights = 1.0 + np.arange(4)
    best = linprog(
        np.concatenate([-slope, slope]), A_ub=[np.concatenate([weights, weights])], b_ub=[budget],
        bounds=[(0, up) for up, _ in rooms] + [(0, down) for _, down in rooms],
    )  # fmt: skip
    assert most[0] == pytest.approx(-best.fun, rel=1e-6, abs=1e-8)


def test_a_table_over_several_prices_is_bounded_by_its_concave_envelope():
    cutoff = CostCutoff(SPACE, SPACE.row(ROW), L1(scale="none"), 1.0)
    reach = {name: part for name, part in reach_of(SPACE, SPACE.row(ROW)).items() if name == "size"}
    # From M: S costs 1/3, L 1, XL 2 (a rise counts three times). Gains 3, 1, 9: the envelope goes from S to XL.
    table = np.array([[3.0, 0.0, 1.0, 9.0]])
    prices = cutoff.own_prices("size", np.arange(4.0)).tolist()
    assert prices == pytest.approx([prices[0], 0.0, 3 * prices[0], 6 * prices[0]])
    share = (1.0 - prices[0]) / (prices[3] - prices[0])
    assert cutoff.greatest_gain({}, {"size": table}, reach)[0] == pytest.approx(3.0 + share * 6.0)


@pytest.mark.parametrize(
    ("cost", "budget", "values"),
    [
        (L1(scale="none"), 2.5, [0.0]),
        (L1(scale="none"), 4.5, [0.0, 1.0]),  # each move alone is within, both together are beyond
        (L1(scale="none"), 5.0, [0.0, 1.0, 5.0]),
        (Linf(scale="none"), 2.5, [0.0]),
        (Linf(scale="none"), 3.0, [0.0, 1.0, 5.0]),
    ],
)
def test_leaves_beyond_the_budget_are_left_out(cost: AbstractCost, budget: float, values: list[float]) -> None:
    """From (0, 0), a leaf at u > 2 costs 3, and one at u > 2 and v > 1 costs 3 and 2."""
    space = FeatureSpace([Feature(name, kind="integer", lower=0, upper=9) for name in "uv"])
    inner = {"feature": 1, "threshold": 1.5, "left": {"value": 1.0}, "right": {"value": 5.0}}
    tree = {"feature": 0, "threshold": 2.5, "left": {"value": 0.0}, "right": inner}
    predictor = read(TreeEnsemble([tree]), space)
    factual = {"u": 0.0, "v": 0.0}
    (left,) = pruned_trees(predictor, reach_of(space, factual), cutoff=CostCutoff(space, factual, cost, budget))

    assert [leaf.value for leaf in left.leaves] == [(value,) for value in values]

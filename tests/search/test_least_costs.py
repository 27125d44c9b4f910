"""Least costs without a program: equal to listing every point, and to what ``explain`` proves."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import ceopt
from ceopt.formulations.space.reachable import Interval, reach_of
from ceopt.search import least_costs
from ceopt.search.least_costs import ColumnGains, can_add_up, least_by_knapsack
from ceopt.search.prepare import prepare
from ceopt.settings import Settings

LEVELS = {"grade": ["low", "mid", "high"], "job": ["none", "part", "full"]}


def space_of(weights: list[float], *, is_continuous: bool = False) -> ceopt.FeatureSpace:
    debt: dict[str, Any] = {"kind": "continuous", "lower": 0.0, "upper": 3.0}
    if not is_continuous:
        debt["step"] = 0.5
    return ceopt.FeatureSpace(
        [
            ceopt.Feature("income", kind="integer", lower=0, upper=6, weight=(weights[0], weights[1])),
            ceopt.Feature("debt", weight=weights[2], **debt),
            ceopt.Feature("grade", kind="ordinal", levels=LEVELS["grade"], weight=weights[3], direction="increasing"),
            ceopt.Feature("job", kind="categorical", levels=LEVELS["job"], weight=weights[4]),
        ]
    )


GRID = pd.DataFrame(
    list(itertools.product(range(7), np.arange(0.0, 3.5, 0.5), *LEVELS.values())), columns=["income", "debt", *LEVELS]
)


@functools.cache
def fitted(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    score = GRID["income"] - 1.5 * GRID["debt"] + rng.normal(size=len(GRID))
    for name, levels in LEVELS.items():
        score = score + GRID[name].map(dict(zip(levels, rng.normal(size=3), strict=True)))
    encode = make_column_transformer(
        (StandardScaler(), ["income", "debt"]),
        (OrdinalEncoder(categories=[LEVELS["grade"]]), ["grade"]),
        (OneHotEncoder(), ["job"]),
    )
    return make_pipeline(encode, LogisticRegression()).fit(GRID, np.where(score > score.quantile(0.7), "yes", "no"))


def bounds_of(prepared: Any, row: pd.DataFrame) -> tuple[float, dict[str, float] | None]:
    """Return what a person's least cost is known to be at least, and the point, by the way that fits the model."""
    factual = prepared.space.row(row)
    reach = reach_of(prepared.space, factual)
    own = prepared.for_person(factual, reach)
    assert can_add_up(prepared)
    gains = ColumnGains.of(prepared, prepared.space.coordinates(row))
    assert gains is not None
    found = least_by_knapsack(own, gains, factual, reach)
    return (0.0, None) if found is None else (found.bound, next(iter(found.points), None))


WEIGHTS = st.lists(st.sampled_from([0.25, 0.5, 1.0, 1.7, 3.0]), min_size=5, max_size=5)
COSTS = [ceopt.L1(scale="none"), ceopt.L2(scale="none", squared=True), ceopt.L2(scale="none"), "l0", "few_changes"]


@draws(120, deadline=None)
@given(
    seed=st.integers(0, 8), place=st.integers(0, len(GRID) - 1), weights=WEIGHTS, cost=st.sampled_from(COSTS),
    target=st.sampled_from(["yes", ceopt.Probability("yes", 0.7)]),
)  # fmt: skip
def test_least_costs_are_those_of_listing_every_point(seed, place, weights, cost, target):
    model, space = fitted(seed), space_of(weights)
    row = GRID.iloc[[place]]
    prepared = prepare(model, space, Settings(target=target, cost=cost))
    least = math.inf
    factual = space.row(row)
    is_good = prepared.oracle.judge(GRID, prepared.settings.target)[1]
    if is_good[place]:
        return
    for point in space.coordinates(GRID[is_good]).tolist():
        become = dict(zip(space.names, point, strict=True))
        if become["grade"] >= factual["grade"]:
            least = min(least, prepared.settings.cost.value(space, factual, become))
    low, point = bounds_of(prepared, row)
    assert low <= least * (1.0 + 1e-9)
    if point is not None:
        assert low == pytest.approx(least, rel=1e-9)
        assert prepared.judge([point])[1].all()
        assert prepared.settings.cost.value(space, factual, point) == pytest.approx(least, rel=1e-9)


@draws(60, deadline=None)
@given(seed=st.integers(0, 8), place=st.integers(0, len(GRID) - 1), weights=WEIGHTS)
def test_numbers_without_steps_cost_what_explain_proves(seed, place, weights):
    model, space = fitted(seed), space_of(weights, is_continuous=True)
    row = GRID.iloc[[place]]
    cost = ceopt.L1(scale="none")
    found = ceopt.explain(model, row, space, target="yes", cost=cost)
    if found.status == "already_favourable":
        return
    low, point = bounds_of(prepare(model, space, Settings(target="yes", cost=cost)), row)
    if found.status == "infeasible":
        assert math.isinf(low)
        return
    assert low <= found[0].cost * (1.0 + 1e-6)
    if point is not None:
        assert low == pytest.approx(found[0].cost, rel=2e-5)


@pytest.mark.parametrize("is_continuous", [False, True])
@pytest.mark.parametrize("weights", [[1.0] * 5, [0.25, 3.0, 1.7, 1.0, 0.5], [3.0, 0.25, 1.7, 1.0, 0.5]])
def test_a_number_of_very_many_steps_costs_what_listing_its_values_says(monkeypatch, weights, is_continuous):
    """It makes up for the rest, alone or beside numbers without steps; before, it was left to a program."""
    space = space_of(weights, is_continuous=is_continuous)
    listed = least_costs._values

    def few(part: Any, feature: Any, *more: Any) -> Any:
        return None if feature.name == "income" else listed(part, feature, *more)

    settled = 0
    for seed in range(4):
        prepared = prepare(fitted(seed), space, Settings(target="yes", cost=ceopt.L1(scale="none")))
        for place in range(0, len(GRID), 7):
            row = GRID.iloc[[place]]
            low, point = bounds_of(prepared, row)
            with monkeypatch.context() as patched:
                patched.setattr(least_costs, "_values", few)
                found, other = bounds_of(prepared, row)
            if point is None:
                assert found <= low * (1.0 + 1e-9)
                continue
            settled += 1
            assert other is not None
            assert found == pytest.approx(low, rel=1e-9)
            assert prepared.judge([other])[1].all()
            costs = [prepared.settings.cost.value(space, space.row(row), become) for become in (point, other)]
            assert costs[1] == pytest.approx(costs[0], rel=1e-9)
    assert settled > 60


@draws(1500, deadline=None)
@given(
    home=st.integers(0, 9), slope=st.sampled_from([-0.7, 0.4, 1.0]), price=st.sampled_from([0.0, 0.3, 1.0]),
    step=st.sampled_from([1.0, 0.1]), needed=st.floats(0.05, 6.0),
    slides=st.lists(st.tuples(st.floats(0.1, 3.0), st.sampled_from([0.2, 0.5, 1.0, 2.0, 5.0])), max_size=2),
)  # fmt: skip
@example(home=1, slope=1.0, price=0.3, step=0.1, needed=3.1, slides=[])
@example(home=6, slope=-0.7, price=0.3, step=0.1, needed=1.05, slides=[(1.0, 0.5)])
def test_many_steps_and_numbers_without_steps_make_up_for_what_is_needed(home, slope, price, step, needed, slides):
    part = Interval(0.0, 9.0, step)
    room = 9.0 - home if slope > 0.0 else float(home)
    stairs = least_costs._Stairs("n", home, part, slope, price, (abs(slope) * room, price * room))
    beside = [least_costs._Slide(str(k), 1.0, gain, rate) for k, (gain, rate) in enumerate(slides)]

    def least(asked: float) -> float:
        """Return the least price of what gains as much, every step tried."""
        prices = [math.inf]
        for k in range(round(room / step) + 1):
            left, total = asked - abs(slope) * step * k, price * step * k
            for gain, rate in sorted(slides, key=lambda slide: slide[1]):
                total += rate * min(max(left, 0.0), gain)
                left -= gain
            if left <= 1e-12:
                prices.append(total)
        return min(prices)

    cheapest, dearest = (
        least(needed - 1e-9),
        least(needed + 1e-9),
    )  # a rounding decides
    chosen = least_costs._chosen([stairs], beside, needed, 1e9)
    if chosen is None:
        assert math.isinf(dearest)
        return
    assert part.holds(chosen["n"])
    gained = slope * (chosen["n"] - home) + sum(chosen[slide.name] for slide in beside)
    assert gained >= needed - 1e-9
    paid = price * abs(chosen["n"] - home) + sum(slide.price * chosen[slide.name] for slide in beside)
    assert cheapest - 1e-7 <= paid <= dearest + 1e-7


@pytest.mark.parametrize("top", [60_000, 3_000_000])
def test_whole_incomes_are_settled_without_a_program(top):
    """Of 57 columns one income of millions made a program of all of them, which took five times as long."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"income": rng.integers(0, top, 300), "years": rng.integers(0, 40, 300)})
    labels = data["income"] / top + data["years"] / 40.0 > 1.0
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(data, labels)
    space = ceopt.FeatureSpace.infer(data)
    for _, row in data[~model.predict(data)].head(20).iterrows():
        result = ceopt.explain(model, row, space, target=True)
        assert (result.status, result.proof) == ("optimal", "bound")
        program = ceopt.explain(model, row, space, target=True, constraints=[ceopt.MaxChanges(2)], margin=result.margin)
        assert result[0].cost <= program[0].cost * (1.0 + 1e-6)
        assert result[0].cost >= program.bound * (1.0 - 1e-4) - 1e-6  # a margin less


def test_only_sums_over_the_columns_without_rules_are_taken():
    space = space_of([1.0] * 5)
    logistic = fitted(0)
    assert can_add_up(prepare(logistic, space, Settings(target="yes")))
    for more in ({"cost": "linf"}, {"constraints": ceopt.MaxChanges(1)}):
        assert not can_add_up(prepare(logistic, space, Settings(target="yes", **more)))
    values = make_pipeline(logistic[0], Ridge()).fit(GRID, GRID["income"] - GRID["debt"])
    prepared = prepare(values, space, Settings(target=ceopt.Between(2.0, 2.5)))  # the nearer end decides: no sum
    assert ColumnGains.of(prepared, space.coordinates(GRID.iloc[::40])) is None


@pytest.mark.parametrize("held", [-9.0, math.nan])
@pytest.mark.parametrize("seed", range(4))
def test_of_who_holds_a_code_or_nothing_the_amounts_are_looked_at_too(held, seed):
    """Also where no cut parts the amounts themselves: a split between the code and all of them is enough."""
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("asked", kind="integer", lower=0, upper=3, codes=(-9,), missing=True, fill=0.75),
            ceopt.Feature("wage", kind="integer", lower=0, upper=2),
        ]
    )
    frame = pd.DataFrame(itertools.product([0.0, 1.0, 2.0, 3.0, -9.0, math.nan], range(3)), columns=list(space.names))
    is_known = frame["asked"] >= 0.0
    good = [is_known, is_known & (frame["wage"] > 0), is_known | (frame["wage"] > 1), frame["asked"] >= 2.0][seed]
    many = pd.concat([frame] * 20)
    model = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5).fit(
        many, np.where([*good] * 20, "yes", "no")
    )
    is_good = model.predict(frame) == "yes"
    row = pd.DataFrame({"asked": [held], "wage": [0]})
    costs = np.where(is_known, 0.75, np.where(frame["asked"].isna() == np.isnan(held), 0.0, math.inf)) + frame["wage"]
    found = ceopt.explain(model, row, space, target="yes", cost=ceopt.L1(scale="none"), why=False)
    assert (found.status, found[0].cost) == ("optimal", pytest.approx(costs[is_good].min()))

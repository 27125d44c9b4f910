"""Exhaustive sets of fitted models: every cell by brute force, judged by the library's own predict."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt.diverse import exhaustive
from ceopt.formulations.predictors import Affine

RNG = np.random.default_rng(0)
N = 150
DATA = pd.DataFrame(
    {
        "income": RNG.normal(3.0, 2.0, N).round(2),
        "age": RNG.integers(18, 30, N),
        "job": RNG.choice(["cook", "nurse", "clerk"], N),
        "debt": RNG.normal(0.0, 1.0, N).round(1),
    }
)
SCORE = DATA["income"] + 0.3 * DATA["age"] + 1.5 * (DATA["job"] == "nurse") - DATA["debt"] + RNG.normal(0, 1, N)
LABELS = np.where(np.quantile(SCORE, 0.6) < SCORE, "good", "bad")
THREE = np.array(["low", "mid", "high"])[np.digitize(SCORE, np.quantile(SCORE, [0.4, 0.75]))]
#: Numbers take all values, so that cells and distances are those of the thresholds.
SPACE = (
    ceopt.FeatureSpace.infer(DATA, categorical=["job"], moves={"age": "up"}, steps=False)
    .update("income", lower=-3, upper=12)
    .update("debt", lower=-4, upper=4, weight=(1.0, 2.0))
)
NAMES = SPACE.names


def piped(estimator: Any) -> Any:
    return make_pipeline(ColumnTransformer([("job", OneHotEncoder(), ["job"])], remainder="passthrough"), estimator)


def small(**words: Any) -> dict[str, Any]:
    return {"max_depth": 2, "random_state": 0, **words}


def xgboost() -> Any:
    return pytest.importorskip("xgboost").XGBClassifier(n_estimators=6, max_depth=2, learning_rate=0.5, random_state=0)


def lightgbm() -> Any:
    kind = pytest.importorskip("lightgbm").LGBMRegressor
    return kind(n_estimators=6, max_depth=2, min_child_samples=5, verbosity=-1, random_state=0)


def voting(kind: str) -> Any:
    parts = [
        ("a", RandomForestClassifier(3, **small())),
        ("b", RandomForestClassifier(3, **small(max_depth=3))),
        ("c", DecisionTreeClassifier(**small())),
    ]
    return VotingClassifier(parts, voting=kind)


#: Name -> (estimator, what it is fitted to, target).
MODELS: dict[str, tuple[Callable[[], Any], Any, Any]] = {
    "forest": (lambda: RandomForestClassifier(6, **small(max_depth=3)), LABELS, "good"),
    "ties": (lambda: RandomForestClassifier(2, **small(max_depth=None, min_samples_leaf=9)), LABELS, "bad"),
    "probability": (
        lambda: RandomForestClassifier(6, **small()), LABELS, ceopt.Probability("good", at_least=0.4)
    ),
    "disagreement": (
        lambda: RandomForestClassifier(5, **small()), LABELS, ceopt.formulations.targets.Disagreement("good", 0.4)
    ),
    "three": (lambda: RandomForestClassifier(5, **small()), THREE, "high"),
    "not_low": (lambda: RandomForestClassifier(5, **small()), THREE, ceopt.OtherThan("low")),
    "boosting": (lambda: GradientBoostingClassifier(n_estimators=8, **small()), LABELS, "good"),
    "xgboost": (xgboost, (LABELS == "good").astype(int), 1),
    "lightgbm": (lightgbm, SCORE.to_numpy(), ceopt.AtLeast(12.0)),
    "regressor": (lambda: RandomForestRegressor(5, **small()), SCORE.to_numpy(), ceopt.AtLeast(11.0)),
    "between": (
        lambda: HistGradientBoostingRegressor(max_iter=5, max_depth=2), SCORE.to_numpy(), ceopt.Between(10.5, 12.0)
    ),
    "soft": (lambda: voting("soft"), LABELS, "good"),
    "hard": (lambda: voting("hard"), LABELS, "good"),
    "bagging": (
        lambda: BaggingClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=4, random_state=0), LABELS, "good"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted() -> Callable[[str], Any]:
    known: dict[str, Any] = {}

    def get(name: str) -> Any:
        if name not in known:
            make, labels, _ = MODELS[name]
            known[name] = piped(make()).fit(DATA, labels)
        return known[name]

    return get


# ---- brute force -----------------------------------------------------------------------------------------------------
def thresholds(model: Any, space: ceopt.FeatureSpace) -> dict[str, list[tuple[float, float]]]:
    """Return the last value left and the first right of every split of each number, as the reader has them."""
    from ceopt.formulations.predictors.raw_trees import raw_trees
    from ceopt.formulations.predictors.readers import read

    predictor = read(model, space)
    found: dict[str, set[tuple[float, float]]] = {name: set() for name in space.names}
    for part in predictor.forests:
        raw = raw_trees(part)
        for name, lefts in raw.lefts.items():
            found[name].update(zip(lefts.tolist(), raw.rights[name].tolist(), strict=True))
    return {name: sorted(splits) for name, splits in found.items()}


def candidates(model: Any, row: pd.Series) -> dict[str, list[tuple[Any, Any]]]:
    """Return, per column, each cell's position and its value nearest to the row's."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    for name, splits in thresholds(model, SPACE).items():
        feature, home = SPACE[name], row[name]
        if feature.is_finite:
            found[name] = [(level, level) for level in feature.levels]
            continue
        values = [home]
        for left, right in splits:
            values += [left, right] if feature.kind == "continuous" else [np.floor(left), np.ceil(right)]
        low = home if feature.direction == "increasing" else feature.lower
        cells: dict[int, Any] = {}
        for value in values:
            if low <= value <= feature.upper:
                cell = sum(value >= right for _, right in splits)
                if cell not in cells or abs(value - home) < abs(cells[cell] - home):
                    cells[cell] = value
        found[name] = sorted(cells.items())
    return found


def every_cell(model: Any, row: pd.Series, target: Any, cost: Any) -> pd.DataFrame:
    """Return all favourable cells with their cheapest points and costs, cheapest first."""
    found = candidates(model, row)
    rows = list(itertools.product(*(found[name] for name in NAMES)))
    frame = pd.DataFrame([[value for _, value in cells] for cells in rows], columns=list(NAMES))
    frame = frame.astype({name: DATA[name].dtype for name in NAMES})
    said = model.predict(frame)
    match target:
        case ceopt.AtLeast():
            good = said >= target.value
        case ceopt.Between():
            good = (said >= target.low) & (said <= target.high)
        case ceopt.OtherThan():
            good = said != target.label
        case ceopt.Probability():
            place = list(model.classes_).index(target.label)
            good = model.predict_proba(frame)[:, place] >= target.at_least
        case ceopt.formulations.targets.Disagreement():
            inner = model[:-1].transform(frame)
            votes = [model.classes_[tree.predict(inner).astype(int)] == target.target for tree in model[-1].estimators_]
            good = np.sum(votes, axis=0) >= len(votes) - np.floor(target.at_most * len(votes))
        case _:
            good = said == target
    names = [SPACE.row(dict(zip(NAMES, point, strict=True))) for point in frame.itertuples(index=False)]
    home = SPACE.row(row.to_dict())
    frame["cost"] = [cost.value(SPACE, home, point) for point in names]
    frame["cell"] = [tuple(cell for cell, _ in cells) for cells in rows]
    return frame[good].sort_values("cost", kind="stable")


def cell_of(answer: Any, model: Any) -> tuple[Any, ...]:
    splits = thresholds(model, SPACE)
    return tuple(
        answer.values[name] if SPACE[name].is_finite else sum(answer.values[name] >= right for _, right in splits[name])
        for name in NAMES
    )


@pytest.mark.long(every=5)
@pytest.mark.parametrize("name", MODELS)
@draws(3)
@given(position=st.integers(0, N - 1), share=st.sampled_from([0.0, 0.3, 1.0]), kind=st.sampled_from(["l1", "l0", "l2"]))
def test_every_cell_of_a_fitted_model(fitted: Any, name: str, position: int, share: float, kind: str) -> None:
    model, target = fitted(name), MODELS[name][2]
    row, cost = DATA.iloc[position], {"l1": ceopt.L1(), "l0": ceopt.L0(), "l2": ceopt.L2()}[kind]
    cells = every_cell(model, row, target, cost)
    least = cells["cost"].min() if len(cells) else 0.0
    epsilon = share * float(least)

    found = exhaustive(model, row, SPACE, target=target, epsilon=epsilon, cost=kind)

    assert found.complete, found.reason
    if found.status == "already_favourable":
        assert least == 0.0
        return
    if not len(cells):
        assert found.status == "infeasible"
        return
    near = cells[cells["cost"] <= least + epsilon + 1e-9]
    assert {cell_of(answer, model) for answer in found} == set(near["cell"])
    for answer, cheapest in zip(found, near["cost"], strict=True):  # rounded to decimals, at a millionth more at most
        assert cheapest * (1.0 - 1e-9) <= answer.cost <= cheapest * (1.0 + 1e-6)
    assert found.safety == pytest.approx([max(least + epsilon - answer.cost, 0.0) for answer in found], abs=1e-9)
    assert ceopt.verify(found, model, SPACE, target=target).ok
    exact = ceopt.FeatureSpace(replace(feature, decimals=None) for feature in SPACE)
    unrounded = exhaustive(model, row, exact, target=target, epsilon=epsilon, cost=kind)
    assert [answer.cost for answer in unrounded] == pytest.approx(near["cost"].tolist(), rel=1e-9)


def test_the_tests_see_large_sets(fitted: Any) -> None:
    """Some of what is compared above has hundreds of cells."""
    cells = every_cell(fitted("forest"), DATA.iloc[int(np.argmin(SCORE))], "good", ceopt.L1())
    assert len(cells) > 200


@draws(5)
@given(position=st.integers(0, N - 1), share=st.sampled_from([0.2, 0.6]), most=st.integers(1, 3))
def test_rules_are_kept_and_lose_no_cell(fitted: Any, position: int, share: float, most: int) -> None:
    """A rule that ties two columns moves the cheapest point of some cells, and empties others."""
    model, row = fitted("forest"), DATA.iloc[position]
    rules = [ceopt.MaxChanges(most), ceopt.IfThen(("job", "changed"), ("age", ">=", 24))]
    home, splits, place = SPACE.row(row.to_dict()), thresholds(model, SPACE)["age"], NAMES.index("age")
    kept = []
    for point in every_cell(model, row, "good", ceopt.L1()).to_dict("records"):
        values = {name: point[name] for name in NAMES}
        if values["job"] != row["job"] and values["age"] < 24:
            values["age"] = 24  # the nearest age from 24 on, if the cell reaches so far
            if sum(right <= 24 for _, right in splits) != point["cell"][place]:
                continue
        if sum(values[name] != row[name] for name in NAMES) <= most:
            kept.append((ceopt.L1().value(SPACE, home, SPACE.row(values)), point["cell"]))
    least = min((cost for cost, _ in kept), default=0.0)
    epsilon = share * least

    found = exhaustive(model, row, SPACE, target="good", epsilon=epsilon, constraints=rules)

    assert found.complete, found.reason
    if found.status == "already_favourable":
        return
    near = sorted((cost, cell) for cost, cell in kept if cost <= least + epsilon + 1e-9)
    assert {cell_of(answer, model) for answer in found} == {cell for _, cell in near}
    assert [answer.cost for answer in found] == pytest.approx([cost for cost, _ in near], rel=2e-6)


def test_a_line_beside_trees_makes_each_whole_number_a_cell() -> None:
    """In a vote of trees and a logistic regression, each value of a whole number that this one reads is a cell."""
    members = [RandomForestClassifier(3, **small()), DecisionTreeClassifier(**small()), LogisticRegression()]
    model = VotingClassifier([(str(k), member) for k, member in enumerate(members)], voting="hard")
    data = DATA[["age", "job"]]
    space = ceopt.FeatureSpace.infer(data, categorical=["job"], moves={"age": "any"}).update("age", lower=18, upper=40)
    pipe = piped(model).fit(data, LABELS)
    row = data[pipe.predict(data) == "bad"].iloc[0]
    frame = pd.DataFrame(itertools.product(range(18, 41), ["cook", "nurse", "clerk"]), columns=["age", "job"])
    home = space.row(row.to_dict())
    frame["cost"] = [ceopt.L1().value(space, home, space.row(point)) for point in frame.to_dict("records")]
    good = frame[pipe.predict(frame[["age", "job"]]) == "good"]
    near = good[good["cost"] <= good["cost"].min() + 0.5 + 1e-9]

    found = exhaustive(pipe, row, space, target="good", epsilon=0.5)

    assert found.complete, found.reason
    assert {(a.values["age"], a.values["job"]) for a in found} == set(zip(near["age"], near["job"], strict=True))
    assert len(found) == len(near) > 1


@pytest.mark.parametrize("kind", ["tree", "forest"])
def test_of_each_cell_the_answer_is_the_cheapest_in_the_steps_of_the_data(kind: str) -> None:
    """A cell between two steps holds no answer; every other one has that of the grid."""
    rng = np.random.default_rng(3)
    data = pd.DataFrame({"rate": rng.integers(0, 30, 80) / 10, "years": rng.integers(0, 12, 80).astype(float)})
    labels = np.where(data["rate"] * 3 + data["years"] + rng.normal(0, 1, 80) > 12, "good", "bad")
    forest = RandomForestClassifier(3, max_depth=3, random_state=0)
    model = {"tree": DecisionTreeClassifier(max_depth=4, random_state=0), "forest": forest}[kind].fit(data, labels)
    space = ceopt.FeatureSpace.infer(data)
    assert [feature.step for feature in space] == [0.1, 1.0]
    row = data.iloc[int((data["rate"] * 3 + data["years"]).argmin())]
    places = {name: [right for _, right in splits] for name, splits in thresholds(model, space).items()}
    grid = pd.DataFrame(itertools.product([k / 10 for k in range(30)], np.arange(12.0)), columns=["rate", "years"])
    home = space.row(row.to_dict())
    grid["cost"] = [ceopt.L1().value(space, home, space.row(point)) for point in grid.to_dict("records")]
    for name in ("rate", "years"):
        grid[f"cell of {name}"] = [sum(value >= right for right in places[name]) for value in grid[name]]
    good = grid[model.predict(grid[["rate", "years"]]) == "good"]
    cells = good.groupby(["cell of rate", "cell of years"])["cost"].min()
    near = sorted(cells[cells <= 1.6 * cells.min() + 1e-9])

    found = exhaustive(model, row, space, target="good", epsilon=0.6 * cells.min())

    assert found.complete, found.reason
    assert [answer.cost for answer in found] == pytest.approx(near, rel=1e-9)
    assert len(near) > 1
    assert all(round(answer.values["rate"], 1) == answer.values["rate"] for answer in found)


def test_steps_seen_in_the_data_make_no_cells_where_a_line_reads_them() -> None:
    """Else each hundredth of an income within the threshold is a cell, and no set is ever complete."""
    data = pd.DataFrame({"income": [20.25, 31.5, 24.75], "debt": [1.5, 0.5, 2.0]})
    space = ceopt.FeatureSpace.infer(data)
    model = ceopt.formulations.predictors.Affine([1.0, -2.0], -25.15, labels=("bad", "good"))

    found = exhaustive(model, data.iloc[0], space, target="good", epsilon=0.5)
    by_hand = exhaustive(model, data.iloc[0], space.update("debt", step=0.1), target="good", epsilon=0.5)

    assert found.complete, found.reason
    (answer,) = found
    assert answer.values["income"] == round(answer.values["income"], 2)
    assert answer.values["debt"] == round(answer.values["debt"], 1)
    assert len({values["debt"] for values in (answer.values for answer in by_hand)}) == len(by_hand) > 1


def test_a_sequence_of_programs_finds_what_a_default_margin_leaves_out():
    """At a=4 alone the model says yes, by less than the margin; b=0.01 more would be dear, and a=5 a quarter more."""
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("a", kind="integer", lower=0, upper=9),
            ceopt.Feature("b", kind="continuous", lower=0.0, upper=1.0, weight=100.0),
        ]
    )
    model = Affine([1.0, 1e-3], -3.999999, labels=("no", "yes"))
    found = exhaustive(model, {"a": 0, "b": 0.0}, space, target="yes", epsilon=0.15, cost="l1")
    assert (found.status, found.complete) == ("optimal", True)
    assert [int(answer.values["a"]) for answer in found] == [4, 5]
    assert found.bound == pytest.approx(4 / 9, rel=1e-6)

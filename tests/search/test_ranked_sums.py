"""Further answers under a linear score: those of all points of a small grid, and of a program."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from enumeration import distinct_costs
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import ceopt
from ceopt.search import ranked_sums

SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("a", kind="integer", lower=0, upper=4),
        ceopt.Feature("b", kind="integer", lower=0, upper=3, direction="increasing"),
        ceopt.Feature("job", kind="categorical", levels=("x", "y", "z")),
        ceopt.Feature("d", kind="binary", levels=(0, 1)),
        ceopt.Feature("e", kind="ordinal", levels=(0, 1, 2, 3)),
    ]
)
GRID = pd.DataFrame(
    list(itertools.product(range(5), range(4), "xyz", range(2), range(4))), columns=["a", "b", "job", "d", "e"]
)


def asked(seed: int) -> tuple[Any, pd.DataFrame]:
    """Return a model of random data, and people whom it refuses."""
    rng = np.random.default_rng(seed)
    data = GRID.iloc[rng.integers(0, len(GRID), 150)].reset_index(drop=True)
    w = rng.normal(0.0, 1.0, 5)
    score = (
        w[0] * data["a"] + w[1] * data["b"] + 3.0 * w[2] * (data["job"] == "x") + w[3] * data["d"] + w[4] * data["e"]
    )
    wanted = (score + rng.normal(0.0, 1.0, 150) > np.quantile(score, 0.6)).astype(int)
    encode = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    model = make_pipeline(encode, LogisticRegression(max_iter=2000)).fit(data, wanted)
    return model, data[model.predict(data) == 0]


def coordinates(frame: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.float64]]:
    jobs = frame["job"].map({"x": 0, "y": 1, "z": 2})
    return np.stack([frame["a"], frame["b"], jobs, frame["d"], frame["e"]], axis=1).astype(float)


@pytest.mark.parametrize("seed", range(4))
def test_further_answers_are_the_cheapest_of_all_points_that_are_distinct(seed: int) -> None:
    model, people = asked(seed)
    favoured = coordinates(GRID[model.predict(GRID) == 1])
    for place in range(2):
        person = people.iloc[[place]]
        home = coordinates(person)[0]
        points = favoured[favoured[:, 1] >= home[1]]
        moves = np.abs(points - home)
        moves[:, 2] = points[:, 2] != home[2]
        moves[:, 4] /= 3.0
        costs = distinct_costs(SPACE, home, points, moves.sum(axis=1), 9)
        found = ceopt.explain(model, person, SPACE, target=1, cost=ceopt.L1(scale="none"), n=9)
        assert [answer.cost for answer in found] == pytest.approx(costs)
        assert [answer.bound for answer in found] == pytest.approx(costs)
        assert found.complete
        assert found.solver == ""


def test_what_takes_too_many_reaches_is_left_to_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    model, people = asked(1)
    given = {"target": 1, "cost": ceopt.L1(scale="none"), "n": 6}
    whole = ceopt.explain(model, people.iloc[[0]], SPACE, **given)
    monkeypatch.setattr(ranked_sums, "_MOST_REACHES", 3)
    short = ceopt.explain(model, people.iloc[[0]], SPACE, **given)
    assert [answer.cost for answer in short] == pytest.approx([answer.cost for answer in whole])
    assert (whole.solver, bool(short.solver)) == ("", True)


def test_numbers_with_steps_codes_and_without_steps_give_what_a_program_gives(
    request: pytest.FixtureRequest,
) -> None:
    rng = np.random.default_rng(2)
    data = pd.DataFrame(
        {"a": rng.integers(0, 9, 200), "b": rng.normal(0.0, 2.0, 200).round(1), "c": rng.normal(0.0, 1.0, 200)}
    )
    data.loc[::9, "a"] = -9
    model = LogisticRegression().fit(data, (data["a"] - data["b"] + data["c"] > 4.0).astype(int))
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("a", kind="integer", lower=0, upper=9, codes=(-9,), codes_in_reach=True),
            ceopt.Feature("b", kind="continuous", lower=-6.0, upper=6.0, step=0.1),
            ceopt.Feature("c", kind="continuous", lower=-3.0, upper=3.0),
        ]
    )
    refused = data[model.predict(data) == 0]
    people = pd.concat([refused[refused["a"] == -9].head(2), refused[refused["a"] >= 0].head(3)])
    given = {"target": 1, "n": 6, "cost": ceopt.L1(scale="none"), "solver": "highs"}
    found = [ceopt.explain(model, people.iloc[[k]], space, **given) for k in range(len(people))]
    request.getfixturevalue("by_program")
    for k, own in enumerate(found):
        other = ceopt.explain(model, people.iloc[[k]], space, **given)
        assert (own.status, own.complete, len(own)) == (other.status, other.complete, len(other))
        assert [answer.cost for answer in own] == pytest.approx([answer.cost for answer in other], rel=3e-6)
    assert any(own.solver == "" for own in found)

"""The boundary sampler: its boundary point, its ball, mixed columns, and where there is none."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

from ceopt import CeoptError, FeatureSpace
from ceopt.formulations.space import Feature
from ceopt.formulations.space.space import SpaceWarning
from ceopt.surrogates import BlackBox, BoundarySampler, NoBoundaryError, QueryLimitError

RNG = np.random.default_rng(1)
X = pd.DataFrame(RNG.normal(size=(80, 2)), columns=["a", "b"])
FREE = FeatureSpace([Feature("a", kind="continuous"), Feature("b", kind="continuous")])
PERSON = {"a": -1.0, "b": -0.5}


def line(rows: pd.DataFrame) -> Any:
    return (rows["a"] + 2 * rows["b"] > 0.3).to_numpy()


def mixed(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "income": rng.normal(30, 10, n),
            "kids": rng.integers(0, 4, n),
            "job": rng.choice(["cook", "nurse", "clerk"], n),
            "owner": rng.random(n) < 0.5,
            "size": pd.Categorical(rng.choice(list("SML"), n), categories=list("SML"), ordered=True),
        }
    )


def rich(rows: pd.DataFrame) -> Any:
    points = rows["income"] - 3 * rows["kids"] + 6 * (rows["job"] == "nurse") + 4 * rows["owner"]
    return np.where(points + 3 * rows["size"].cat.codes > 35, "good", "bad")


def test_the_boundary_is_the_nearest_first_point_on_the_ways_to_the_nearest_rows() -> None:
    """By hand: k nearest favourable rows in l1, 50 points on each way, the nearest of the first favourable ones."""
    sampler = BoundarySampler(n_neighbours=4, n_line=50, n_samples=20)
    sample = sampler.sample(line, PERSON, X, target=True, space=FREE)
    std = X.to_numpy().std(axis=0)
    home = np.array([-1.0, -0.5])
    good = X[line(X)].to_numpy()
    near = good[np.argsort(np.abs((good - home) / std).sum(axis=1))[:4]]
    firsts = []
    for row in near:
        for share in np.arange(1, 51) / 50:
            point = home + share * (row - home)
            if point @ [1.0, 2.0] > 0.3:
                firsts.append(point)
                break
    nearest = min(firsts, key=lambda point: np.abs((point - home) / std).sum())

    np.testing.assert_allclose(sample.boundary.astype(float), nearest)
    assert list(sample.boundary.index) == ["a", "b"]
    by_l2 = replace(sampler, norm="l2").sample(line, PERSON, X, target=True, space=FREE)
    assert line(by_l2.boundary.to_frame().T.astype(float)).all()


def test_the_sample_is_uniform_in_the_ball() -> None:
    sample = BoundarySampler(radius=0.15, n_samples=3000).sample(line, PERSON, X, target=True, space=FREE)
    encoded = X.to_numpy() / X.to_numpy().std(axis=0)
    largest = max(np.linalg.norm(encoded[:, None] - encoded[None], axis=2).ravel())
    away = sample.encoded - sample.columns.encode(sample.boundary.to_frame().T)
    share = np.linalg.norm(away, axis=1) / sample.radius

    assert sample.radius == pytest.approx(0.15 * largest)
    assert kstest(share**2, "uniform").pvalue > 0.01
    assert kstest(np.arctan2(away[:, 1], away[:, 0]) / (2 * np.pi) + 0.5, "uniform").pvalue > 0.01
    assert sample.favourable.tolist() == line(sample.points).tolist()
    np.testing.assert_array_equal(sample.columns.encode(sample.points), sample.encoded)


def test_the_seed_decides() -> None:
    one, two, other = (
        BoundarySampler(n_samples=50, random_state=seed).sample(line, PERSON, X, target=True) for seed in (0, 0, 1)
    )
    pd.testing.assert_frame_equal(one.points, two.points)
    assert (one.encoded != other.encoded).any()
    pd.testing.assert_series_equal(one.boundary, other.boundary)


def test_mixed_columns_are_legal_and_vary() -> None:
    data = mixed()
    space = FeatureSpace.infer(data)
    person = data[rich(data) == "bad"].iloc[0]
    sample = BoundarySampler(n_samples=400).sample(rich, person, data, target="good", space=space)

    assert space.coordinates(sample.points).shape == (400, 5)  # every value is one of the space
    assert (sample.points.dtypes == data.dtypes).all()
    assert all(len(set(sample.points[name])) > 1 for name in data)
    assert rich(sample.boundary.to_frame().T.astype(data.dtypes.to_dict()))[0] == "good"
    assert sample.favourable.tolist() == (rich(sample.points) == "good").tolist()
    assert sample.points["income"].between(data["income"].min(), data["income"].max()).all()


def test_steps_of_the_person_are_kept() -> None:
    space = FREE.update("a", step=0.25).update("b", lower=-2.0, upper=1.0)
    sample = BoundarySampler(n_samples=200).sample(line, PERSON, X.clip(-2, 1), target=True, space=space)

    np.testing.assert_allclose((sample.points["a"] + 1.0) % 0.25 % 0.25, 0.0, atol=1e-9)
    assert (sample.boundary["a"] + 1.0) % 0.25 == pytest.approx(0.0, abs=1e-9)
    assert sample.points["b"].between(-2.0, 1.0).all()
    assert len(set(sample.points["a"])) > 1


def test_rows_of_other_steps_are_asked_again_and_passed_over() -> None:
    """The only favourable row of the data is off the person's steps, and the nearest legal ones are unfavourable."""
    data = pd.DataFrame({"a": [0.0, 1.0, 2.4]})
    space = FeatureSpace([Feature("a", kind="continuous", lower=0.0, upper=3.0, step=1.0)])
    with pytest.raises(NoBoundaryError, match="none of 1 keeps its decision within the bounds and steps"):
        BoundarySampler().sample(lambda r: r["a"] % 1 > 0.3, {"a": 0.0}, data, target=True, space=space)


def test_a_favourable_row_has_the_other_side_as_its_boundary() -> None:
    sample = BoundarySampler(n_samples=30).sample(line, {"a": 2.0, "b": 1.0}, X, target=True)

    assert not line(sample.boundary.to_frame().T.astype(float))[0]


def test_every_row_sent_is_counted_and_each_distinct_one_sent_once() -> None:
    sent: list[pd.DataFrame] = []

    def predict(rows: pd.DataFrame) -> Any:
        sent.append(rows)
        return rows["kids"] > 1

    data = pd.DataFrame({"kids": np.arange(40) % 4})
    sample = BoundarySampler(n_samples=100).sample(predict, {"kids": 0}, data, target=True)

    assert sample.n_queries == sum(map(len, sent))
    assert all(not rows.duplicated().any() for rows in sent[2:])
    assert len(sent) == 5  # the data, some of them again, the row, the ways, the ball: each in one call
    assert sample.boundary["kids"] == 2


def test_one_set_of_decided_rows_serves_many_people() -> None:
    sampler = BoundarySampler(n_samples=60)
    rows = sampler.decided(line, X, target=True, space=FREE)
    asked = rows.box.n_queries
    sample = sampler.near(rows, PERSON)
    alone = sampler.sample(line, PERSON, X, target=True, space=FREE)

    assert sample.n_queries == rows.box.n_queries - asked == alone.n_queries - asked
    pd.testing.assert_frame_equal(sample.points, alone.points)
    again = sampler.around(rows, PERSON, {"a": 0.3, "b": 0.0})
    assert again.boundary.tolist() == [0.3, 0.0]
    assert again.n_queries == 60
    box = BlackBox(line, True, columns=list(X), dtypes=X.dtypes)
    assert sampler.sample(box, PERSON, X, target=True).n_queries == box.n_queries
    assert sampler.sample(box, PERSON, X, target=True).n_queries == sample.n_queries  # the data is known


def test_a_ball_of_one_class_is_doubled() -> None:
    """About a point 1 away from the boundary the first radii see one side only."""
    sampler = BoundarySampler(radius=0.01, n_samples=300, scale="none")
    rows = sampler.decided(line, X, target=True, space=FREE)
    first = sampler.radius * rows.largest
    far = {"a": -0.7, "b": 0.0}
    sample = sampler.around(rows, PERSON, far)

    assert 0 < sample.favourable.sum() < 300
    doublings = np.log2(sample.radius / first)
    assert doublings == round(doublings)
    assert 3 <= doublings <= 5
    assert sample.n_queries == 300 * (doublings + 1)
    with pytest.raises(NoBoundaryError, match="all 300 are unfavourable, even at a radius of .* after 5 doublings"):
        sampler.around(rows, PERSON, {"a": -90.0, "b": 0.0})


@pytest.mark.parametrize(
    ("predict", "row", "data", "options", "message"),
    [
        (
            lambda r: r["a"] > 99,
            PERSON,
            X,
            {},
            "a row of data that the model finds favourable, but of 80 rows",
        ),
        (lambda r: r["a"] < 99, PERSON, X, {}, "a row of data that the model finds unfavourable"),
        (line, {"a": np.nan, "b": 0.0}, X, {}, "its value is missing"),
        (line, {"a": 1.0}, X, {}, "'b' is missing"),
        (line, PERSON, X.to_numpy(), {}, "a DataFrame as X"),
        (line, PERSON, X.head(0), {}, "needs"),
        (lambda r: r["a"] / 100, PERSON, X, {}, "Give predict, not probabilities"),
    ],
)
def test_bad_input_is_refused(predict: Any, row: Any, data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(CeoptError, match=re.escape(message)):
        BoundarySampler(**options).sample(predict, row, data, target=True)


def test_rows_with_a_missing_cell_are_left_out() -> None:
    with pytest.warns(SpaceWarning, match="BoundarySampler leaves out 1 of 80 rows of X.*'a'"):
        sample = BoundarySampler().sample(line, PERSON, X.assign(a=[*X["a"][1:], np.nan]), target=True)
    assert not sample.points.isna().any(axis=None)


def test_the_limit_of_queries_is_named() -> None:
    with pytest.raises(QueryLimitError, match="max_queries is 500"):
        BoundarySampler(max_queries=500).sample(line, PERSON, X, target=True)


@pytest.mark.parametrize(
    "options",
    [{"n_neighbours": 0}, {"n_samples": 1}, {"radius": 0.0}, {"radius": np.inf}, {"norm": "l3"}, {"n_line": 0},
     {"max_queries": 0}, {"scale": "iqr"}, {"random_state": -1}],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(CeoptError, match=f"BoundarySampler needs .*{name}"):
        BoundarySampler(**options)


def test_constant_columns_and_one_distinct_row_of_data() -> None:
    data = X.assign(c=5.0)
    sample = BoundarySampler(n_samples=50).sample(line, PERSON | {"c": 5.0}, data, target=True)
    assert (sample.points["c"] == 5.0).all()
    same = pd.DataFrame({"a": [2.0, 2.0], "b": [1.0, 1.0]})  # no distance: the radius is a share of 1
    sample = BoundarySampler(n_samples=50).sample(line, PERSON, same, target=True, space=FREE)
    assert sample.radius >= 0.1

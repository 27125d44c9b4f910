"""Scaled columns: encoding, legal values, and surrogates as the engine states them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st

from ceopt import CeoptError, explain
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.surrogates import ScaledColumns

LEVELS = ("cook", "nurse", "clerk")
SPACE = FeatureSpace(
    [
        Feature("income", kind="continuous", lower=0.0, upper=100.0),
        Feature("kids", kind="integer", lower=0, upper=5),
        Feature("size", kind="ordinal", levels=("S", "M", "L")),
        Feature("job", kind="categorical", levels=LEVELS),
        Feature("owner", kind="binary", levels=(False, True)),
        Feature("credit", kind="integer", lower=0, upper=1000, step=100.0),
    ]
)
PEOPLE = pd.DataFrame(
    {
        "income": [10.0, 20.0, 40.0, 50.0],
        "kids": [0, 1, 2, 5],
        "size": ["S", "M", "L", "M"],
        "job": ["cook", "nurse", "clerk", "cook"],
        "owner": [False, True, True, False],
        "credit": [0, 100, 300, 800],
    }
)
COLUMNS = ScaledColumns.of(SPACE, PEOPLE)


def test_entries_are_those_of_the_table() -> None:
    std = {name: PEOPLE[name].std(ddof=0) for name in ("income", "kids", "credit")}
    encoded = pd.DataFrame(COLUMNS.encode(PEOPLE[PEOPLE.columns[::-1]]), columns=list(COLUMNS.names))

    for name, size in std.items():
        np.testing.assert_allclose(encoded[name], PEOPLE[name] / size)
    assert encoded["size"].tolist() == [0.0, 0.5, 1.0, 0.5]
    assert encoded["owner"].tolist() == [0.0, 1.0, 1.0, 0.0]
    for level in LEVELS:
        assert encoded[f"job={level}"].tolist() == (PEOPLE["job"] == level).astype(float).tolist()
    assert COLUMNS.names == ("income", "kids", "size", "job=cook", "job=nurse", "job=clerk", "owner", "credit")
    assert COLUMNS.groups == ((3, 4, 5),)
    assert COLUMNS.places == ((0,), (1,), (2,), (3, 4, 5), (6,), (7,))


def test_decoding_is_the_way_back() -> None:
    pd.testing.assert_frame_equal(COLUMNS.decode(COLUMNS.encode(PEOPLE)), PEOPLE, check_dtype=False)


@pytest.mark.parametrize(
    ("entry", "column", "value"),
    [
        ({"income": -3.0}, "income", 0.0),
        ({"income": 999.0}, "income", 100.0),
        ({"kids": 1.4}, "kids", 1),
        ({"kids": 9.0}, "kids", 5),
        ({"size": 0.26}, "size", "M"),
        ({"size": -4.0}, "size", "S"),
        ({"owner": 0.51}, "owner", True),
        ({"job=cook": 0.2, "job=nurse": 0.3, "job=clerk": 0.25}, "job", "nurse"),
        ({"job=cook": -2.0, "job=nurse": -1.0, "job=clerk": -3.0}, "job", "nurse"),
        ({"credit": 149.0}, "credit", 100),
        ({"credit": 151.0}, "credit", 200),
    ],
)
def test_the_nearest_legal_value(entry: dict[str, float], column: str, value: Any) -> None:
    point = pd.Series(0.0, index=list(COLUMNS.names))
    for name, number in entry.items():
        scale = COLUMNS.scales[SPACE.names.index(name)] if name in {"income", "kids", "credit"} else 1.0
        point[name] = number / scale
    found = COLUMNS.decode(point.to_numpy()[None])

    assert found.loc[0, column] == value


def test_steps_are_counted_from_the_row_and_inferred_bounds_hold_it() -> None:
    person = {"income": 10.0, "kids": 1, "size": "S", "job": "cook", "owner": False, "credit": 250}
    about = COLUMNS.about(person)
    found = about.decode(about.encode(PEOPLE.assign(credit=[20, 120, 310, 999])))

    assert found["credit"].tolist() == [50, 150, 350, 950]
    assert set(about.decode(about.encode(PEOPLE) * 100)["credit"]) <= {50, 950}
    space = FeatureSpace.infer(PEOPLE[["income", "kids"]])
    inferred = ScaledColumns.of(space, PEOPLE[["income", "kids"]])
    wide = inferred.about({"income": 70.0, "kids": 7})
    assert (inferred.bounds()[1] * inferred.scales).tolist() == pytest.approx([50.0, 5.0])
    assert (wide.bounds()[1] * wide.scales).tolist() == pytest.approx([70.0, 7.0])
    assert (wide.bounds()[0] * wide.scales).tolist() == pytest.approx([10.0, 0.0])
    beyond = COLUMNS.about({**person, "income": 101.0})
    assert beyond.bounds()[1][0] * beyond.scales[0] == pytest.approx(101.0)


def test_bounds() -> None:
    lower, upper = COLUMNS.bounds()

    assert lower.tolist() == [0.0] * 8
    np.testing.assert_allclose(upper[[0, 1, 7]], [100.0, 5.0, 1000.0] / COLUMNS.scales[[0, 1, 5]])
    assert upper[2:7].tolist() == [1.0] * 5


@draws(60)
@given(st.lists(st.floats(-5, 5), min_size=8, max_size=8), st.integers(0, 99))
def test_drawn_rows_are_legal(point: list[float], seed: int) -> None:
    frame = COLUMNS.decode([point] * 5, np.random.default_rng(seed))
    SPACE.coordinates(frame)

    assert (frame["credit"] % 100 == 0).all()
    assert frame["income"].between(0, 100).all()
    np.testing.assert_array_equal(COLUMNS.legal(COLUMNS.encode(frame)), SPACE.coordinates(frame))


def test_drawn_values_have_the_mean_of_the_point() -> None:
    """A column of few values varies in a ball narrower than its steps, and levels come as often as their shares."""
    point = np.array([1.0, 2.3 / COLUMNS.scales[1], 0.3, 0.9, 0.3, -0.2, 0.2, 130.0 / COLUMNS.scales[5]])
    mean = COLUMNS.encoded(COLUMNS.legal(np.tile(point, (20_000, 1)), np.random.default_rng(0))).mean(axis=0)
    wanted = [1.0, point[1], 0.3, 0.75, 0.25, 0.0, 0.2, point[7]]

    np.testing.assert_allclose(mean, wanted, atol=0.02)


def test_on_the_way_between_two_rows() -> None:
    start, end = SPACE.coordinates(PEOPLE)[[0, 2]]
    rows = COLUMNS.frame(COLUMNS.between(start, end, np.array([0.25, 0.5, 0.51, 0.75, 1.0])))

    assert rows["income"].tolist() == pytest.approx([17.5, 25.0, 25.3, 32.5, 40.0])
    assert rows["kids"].tolist() == [0, 1, 1, 2, 2]
    assert rows["size"].tolist() == ["S", "M", "M", "L", "L"]  # 1.5 ranks are 2
    assert rows["job"].tolist() == ["cook", "cook", "clerk", "clerk", "clerk"]
    assert rows["owner"].tolist() == [False, False, True, True, True]
    assert rows["credit"].tolist() == [100, 200, 200, 200, 300]
    pd.testing.assert_frame_equal(rows.tail(1).reset_index(drop=True), PEOPLE.iloc[[2]].reset_index(drop=True))


@draws(60)
@given(st.floats(0, 100), st.floats(0, 100))
def test_the_end_of_a_way_is_the_row_itself_to_the_last_bit(income: float, other: float) -> None:
    start, end = SPACE.coordinates(PEOPLE.head(2).assign(income=[income, other]))

    assert COLUMNS.between(start, end, np.array([0.5, 1.0]))[1].tolist() == end.tolist()


def test_a_surrogate_is_favourable_at_a_score_of_0() -> None:
    owner = COLUMNS.affine([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0], -1.0)

    assert owner.model.predict(PEOPLE).tolist() == PEOPLE["owner"].tolist()


def test_a_surrogate_scores_raw_rows_as_its_columns_do() -> None:
    rng = np.random.default_rng(0)
    coef = rng.normal(size=8)
    surrogate = COLUMNS.affine(coef, -0.3)

    np.testing.assert_allclose(surrogate.score(SPACE.coordinates(PEOPLE)), COLUMNS.encode(PEOPLE) @ coef - 0.3)
    assert surrogate.model.predict(PEOPLE).tolist() == (COLUMNS.encode(PEOPLE) @ coef - 0.3 >= 0.0).tolist()


def test_the_engine_solves_a_surrogate() -> None:
    """The optimum by explain is that of enumeration over the columns that move."""
    space = SPACE.update("income", mutable=False).update("credit", mutable=False)
    coef = np.array([0.1, 0.4, 0.9, 0.0, 0.5, -0.4, 0.2, 0.01])
    columns = ScaledColumns.of(space, PEOPLE)
    surrogate = columns.affine(coef, -1.1)
    person = {"income": 10.0, "kids": 0, "size": "S", "job": "cook", "owner": False, "credit": 0}
    found = explain(surrogate, person, space, target=True, cost="l1")
    rows = pd.DataFrame(
        [
            {**person, "kids": kids, "size": size, "job": job, "owner": owner}
            for kids in range(6) for size in "SML" for job in LEVELS for owner in (False, True)
        ]
    )  # fmt: skip
    cost = (
        rows["kids"] / space["kids"].scale("mad") + rows["size"].map({"S": 0.0, "M": 0.5, "L": 1.0})
        + (rows["job"] != "cook") + rows["owner"]
    )  # fmt: skip
    good = columns.encode(rows) @ coef - 1.1 >= 0.0

    assert str(found.status) == "optimal"
    assert found.counterfactuals[0].cost == pytest.approx(cost[good].min())


def test_scales_come_from_the_space_and_then_from_the_data() -> None:
    space = FeatureSpace([Feature("a", kind="continuous", std=4.0), Feature("b", kind="continuous")])
    data = pd.DataFrame({"a": [0.0, 2.0], "b": [0.0, 6.0]})

    assert ScaledColumns.of(space, data).scales.tolist() == [4.0, 3.0]
    assert ScaledColumns.of(space, data, "none").scales.tolist() == [1.0, 1.0]
    assert ScaledColumns.of(space, data, "range").scales.tolist() == [2.0, 6.0]
    constant = pd.DataFrame({"a": [7.0, 7.0], "b": [1.0, 2.0]})
    assert ScaledColumns.of(FeatureSpace.infer(constant), constant).scales.tolist() == [1.0, 0.5]
    assert ScaledColumns.of(FeatureSpace.infer(constant), constant).encode(constant)[:, 0].tolist() == [7.0, 7.0]


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (PEOPLE.iloc[:0], {}, "ScaledColumns needs rows of data, but the frame is empty"),
        (PEOPLE, {"scale": "iqr"}, "scale is 'iqr'"),
        (PEOPLE.drop(columns="job"), {}, "'job' is missing"),
        (PEOPLE.assign(income=np.nan), {}, "rows of frame without missing cells"),
        (PEOPLE.to_numpy(), {}, "a DataFrame"),
    ],
)
def test_misuse_is_refused(frame: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(CeoptError, match=re.escape(message)):
        ScaledColumns.of(SPACE, frame, **options)


def test_points_of_another_shape_are_refused() -> None:
    with pytest.raises(CeoptError, match="points of shape n by 8"):
        COLUMNS.decode([[1.0, 2.0]])
    with pytest.raises(CeoptError, match="coef of shape 8"):
        COLUMNS.affine([1.0], 0.0)
    with pytest.raises(CeoptError, match="is nan"):
        COLUMNS.decode([[np.nan] * 8])

"""What a person may reach, in scaled columns and as legal rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st

from ceopt import FeatureSpace
from ceopt.solvers.errors import InvalidValueError
from ceopt.surrogates.scaled_columns import ScaledFrame


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame({
        "income": [0.0, 100.0, 50.0], "loans": [0, 10, 5], "size": ["S", "M", "L"], "job": ["cook", "nurse", "clerk"],
    })  # fmt: skip


def scaled(frame, **changes):
    space = FeatureSpace.infer(frame).update("size", kind="ordinal", levels=["S", "M", "L"])
    for name, change in changes.items():
        space = space.update(name, **change)
    return ScaledFrame.of("test", space, frame)


def test_room_is_that_of_the_data_without_rules(frame):
    columns = scaled(frame)
    low, high = columns.room(columns.space.coordinates(frame))

    assert (low == 0.0).all()
    assert (high == 1.0).all()


def test_room_keeps_the_bounds_of_the_user(frame):
    columns = scaled(frame, income={"lower": 20.0, "upper": 60.0}, loans={"upper": 7})
    low, high = columns.room(columns.space.coordinates(frame))

    assert low[:, 0].tolist() == pytest.approx([0.0, 0.2, 0.2])  # who is below already may stay there
    assert high[:, 0].tolist() == pytest.approx([0.6, 1.0, 0.6])
    assert high[:, 1].tolist() == pytest.approx([0.7, 1.0, 0.7])
    assert (low[:, 1] == 0.0).all()


def test_room_keeps_directions_and_what_is_fixed(frame):
    columns = scaled(
        frame, income={"direction": "increasing"}, size={"direction": "decreasing"}, job={"mutable": False}
    )
    own = columns.encode(frame)
    low, high = columns.room(columns.space.coordinates(frame))

    assert (low[:, 0] == own[:, 0]).all()
    assert (high[:, 2] == own[:, 2]).all()
    assert (low[:, 3:] == own[:, 3:]).all()
    assert (high[:, 3:] == own[:, 3:]).all()


def test_limits_about_the_person_hold_in_room_and_rows(frame):
    columns = scaled(
        frame, income={"max_up": "29%", "max_down": 10}, loans={"max_up": 2.5}, size={"max_up": 1, "max_down": 0}
    )
    own = columns.space.coordinates(frame)
    low, high = columns.room(own)

    assert low[:, 0].tolist() == pytest.approx([0.0, 0.9, 0.4])
    assert high[:, 0].tolist() == pytest.approx([0.0, 1.0, 0.645])
    assert high[:, 1].tolist() == pytest.approx([0.25, 1.0, 0.75])
    assert low[:, 2].tolist() == pytest.approx([0.0, 0.5, 1.0])
    assert high[:, 2].tolist() == pytest.approx([0.5, 1.0, 1.0])
    assert columns.legal(np.ones((3, len(columns.names))), own)[:, :3].tolist() == [
        [0.0, 2.0, 1.0], [100.0, 10.0, 2.0], [64.0, 7.0, 2.0],
    ]  # fmt: skip
    assert columns.legal(np.zeros((3, len(columns.names))), own)[:, 0].tolist() == [0.0, 90.0, 40.0]


@pytest.mark.parametrize(("step", "fits"), [(None, 1.0), (0.5, 1.0), (1.5, 3.0), (4.0, 4.0)])
def test_whole_numbers_stay_whole_in_a_column_that_is_continuous(frame, step, fits):
    columns = scaled(frame, income={"kind": "continuous", "step": step})
    own = columns.space.coordinates(frame)
    points = np.random.default_rng(0).uniform(size=(3, len(columns.names)))
    found = columns.legal(points, own, whole=np.array([True, False, False, False]))

    moves = (found - own)[:, 0]
    assert (moves % fits == 0.0).all()
    assert moves.any()


@given(seed=st.integers(0, 999))
@draws(40)
def test_legal_rows_are_those_of_the_space(seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "income": rng.uniform(0, 100, 9).round(2), "loans": np.arange(9), "size": list("SMLSMLSML"),
        "job": ["cook", "nurse", "clerk"] * 3,
    })  # fmt: skip
    columns = scaled(
        frame,
        income={"lower": -5.0, "upper": float(rng.integers(100, 120)), "step": float(rng.choice([0.1, 2.5, 7.0]))},
        loans={"direction": str(rng.choice(["any", "increasing", "decreasing"]))},
        size={"direction": str(rng.choice(["any", "increasing", "decreasing"]))},
        job={"mutable": bool(rng.integers(2))},
    )
    own = columns.space.coordinates(frame)
    found = columns.legal(rng.normal(0.5, 1.0, size=(9, len(columns.names))), own)

    for j, feature in enumerate(columns.space):
        move = found[:, j] - own[:, j]
        if not feature.mutable:
            assert not move.any()
        if feature.direction == "increasing":
            assert (move >= 0.0).all()
        if feature.direction == "decreasing":
            assert (move <= 0.0).all()
        if not feature.is_finite:
            assert ((found[:, j] >= feature.lower) & (found[:, j] <= feature.upper)).all()
            assert np.allclose(move / feature.spacing, np.rint(move / feature.spacing), atol=1e-6)


def test_a_cell_that_is_missing_is_refused_by_name(frame):
    columns = scaled(frame, income={"missing": True}, job={"missing": True})

    with pytest.raises(InvalidValueError, match="network needs a value in every cell, but column 'income' is missing"):
        columns.encode(frame.assign(income=[1.0, None, 2.0]))
    with pytest.raises(InvalidValueError, match="column 'job' is missing in row 1. Fill it in first"):
        columns.room(columns.space.coordinates(frame.assign(job=["cook", None, "cook"])))


def test_nobody_leaves_a_code_or_becomes_one(frame):
    columns = scaled(frame, size={"codes": ["L"]}, job={"codes": ["nurse"]}, loans={"codes": [10]})
    own = columns.space.coordinates(frame)
    found = columns.legal(np.full((3, len(columns.names)), 0.9), own)

    is_code = np.array([[False, False, False, False], [False, True, False, True], [False, False, True, False]])
    assert (found[is_code] == own[is_code]).all()
    assert not (columns.space["loans"].are_codes(found[[0, 2], 1])).any()
    assert not (columns.space["size"].are_codes(found[:2, 2])).any()

"""Metrics of tables with missing cells and codes: equal to their equals, and a fill away from all else."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ceopt
from ceopt import Feature, FeatureSpace, metrics
from ceopt.oracle.rows import read
from ceopt.solvers.errors import InvalidValueError
from tests.draws import draws

NAN = float("nan")
SPACE = FeatureSpace(
    [
        Feature("income", kind="continuous", lower=0, missing=True, mad=10.0, std=20.0, range=50.0),
        Feature("asked", kind="integer", codes=[-9, 0], fill=3.0, mad=2.0, std=2.0, range=4.0),
        Feature("grade", kind="ordinal", levels=("low", "mid", "high", "unknown"), codes=["unknown"], missing=True),
        Feature("job", kind="categorical", levels=("cook", "baker", "?"), codes=["?"], missing=True, fill=0.5),
        Feature("phone", kind="binary", levels=(False, True), missing="may_vanish", fill=math.inf),
    ]
)
NAMES = list(SPACE.names)
BLANK = pd.DataFrame([[NAN, -9, None, None, None]], columns=NAMES)


def table(*rows):
    return pd.DataFrame(rows, columns=NAMES).astype({"income": float})


# ---- how rows are read -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("gap", [None, NAN, pd.NA, pd.NaT])
def test_all_that_says_missing_is_one_thing(gap):
    rows = pd.DataFrame({"income": [gap, 3.0], "job": [gap, "cook"]}, dtype=object)
    space = FeatureSpace([SPACE["income"], SPACE["job"]])

    for known in (space, None):
        first, second = read("test", known, A=rows, B=rows.iloc[::-1])
        numbers = first.numbers if known else np.empty((2, 0))
        assert numbers.tolist() == ([[math.inf], [3.0]] if known else [[], []])
        assert (first.codes[:, -1] == second.codes[::-1, -1]).all()
        assert first.codes[0, -1] == -1


def test_a_space_in_which_nothing_may_be_missing_refuses_and_says_what_to_write():
    space = FeatureSpace([Feature("pay", kind="continuous"), Feature("job", kind="categorical", levels=("a", "b"))])

    with pytest.raises(InvalidValueError, match=r"'pay' of S has nan in row 0.*space.update\('pay', missing=True\)"):
        read("test", space, S=pd.DataFrame({"pay": [NAN], "job": ["a"]}))
    with pytest.raises(InvalidValueError, match=r"'job' of S has none in row 0.*space.update\('job', missing=True\)"):
        read("test", space, S=pd.DataFrame({"pay": [1.0], "job": [None]}))


def test_rows_of_data_are_left_out_only_for_cells_that_may_not_be_missing():
    space = FeatureSpace([Feature("a", kind="continuous", missing=True), Feature("b", kind="continuous")])
    data = pd.DataFrame({"a": [NAN, 1.0, 3.0], "b": [1.0, NAN, 3.0]})

    with pytest.warns(ceopt.SpaceWarning, match="leaves out 1 of 3 rows of data, in which cells of 'b' are missing"):
        (rows,) = read("test", space, data=data)
    assert rows.numbers.tolist() == [[math.inf, 1.0], [3.0, 3.0]]


# ---- counted changes -------------------------------------------------------------------------------------------------
def test_a_fill_is_one_change_and_what_stays_missing_is_none():
    S = table([NAN, -9, None, None, None], [5.0, -9, None, None, True], [5.0, 2, "mid", "baker", False])

    assert metrics.changed_count(BLANK, S, space=SPACE).tolist() == [0, 2, 5]
    assert metrics.sparsity(BLANK, S, space=SPACE) == pytest.approx(1 - 7 / 15)
    assert metrics.immutable_changes(BLANK, S, SPACE.fix("income", "job")).tolist() == [0, 1, 2]
    assert metrics.categorical_proximity(BLANK, S, space=SPACE) == pytest.approx(1 - 4 / 9)
    assert metrics.unique_fraction(pd.concat([S, BLANK]), space=SPACE) == 0.75
    assert metrics.count_diversity(pd.concat([BLANK, BLANK, S.iloc[1:2]]), space=SPACE) == pytest.approx(4 / 15)


def test_without_a_space_missing_cells_are_counted_too():
    assert metrics.changed_count([1.0, NAN], [[1.0, NAN], [NAN, 2.0]]).tolist() == [0, 2]
    assert metrics.distance([1.0, NAN], [[1.0, NAN], [NAN, 200.0]], scale=[5.0, 5.0]).tolist() == [0.0, 2.0]
    assert metrics.gower(
        {"a": NAN, "b": "x"}, pd.DataFrame({"a": [NAN, 3.0], "b": [None, "x"]}), scale="none"
    ).tolist() == [
        0.5,
        0.5,
    ]


def test_redundant_changes_are_taken_back_to_missing():
    def accepts(frame):
        assert frame["income"].dtype == float
        return np.where(frame["income"].isna() | (frame["income"] > 3), "yes", "no")

    space = FeatureSpace([SPACE["income"], Feature("n", kind="integer", missing=True, dtype="Int64")])
    x = pd.DataFrame({"income": [NAN], "n": pd.array([None], "Int64")})
    S = pd.DataFrame({"income": [5.0, 2.0], "n": pd.array([None, 4], "Int64")})

    assert metrics.redundancy(x, S, accepts, "yes", space=space).tolist() == [1, 1]


def test_noise_moves_amounts_alone():
    seen = []

    def accepts(frame):
        seen.append(frame)
        return np.full(len(frame), "yes")

    rows = table([NAN, 0, "low", "cook", True], [5.0, 7, None, "?", True])
    assert metrics.invalidation_rate(rows, accepts, "yes", sd=1.0, n_samples=20, space=SPACE).tolist() == [0, 0]

    assert seen[0]["income"].isna().all()
    assert (seen[0]["asked"] == 0).all()
    assert seen[1]["income"].nunique() == seen[1]["asked"].nunique() == 20


# ---- distances: those of costs, whose code is another ----------------------------------------------------------------
cells = st.tuples(
    st.sampled_from([NAN, 0.0, 5.0, 30.0]),
    st.sampled_from([-9, 0, 1, 7]),
    st.sampled_from([None, "low", "mid", "high", "unknown"]),
    st.sampled_from([None, "cook", "baker", "?"]),
    st.sampled_from([None, False, True]),
)
COSTS = {
    "l1": lambda scale: ceopt.L1(scale=scale),
    "l2": lambda scale: ceopt.L2(scale=scale),
    "linf": lambda scale: ceopt.Linf(scale=scale),
}
#: A fill that is infinite is one of 1 to metrics, and none to costs: such a cell stays.
PRICED = SPACE.update("phone", fill=1.0)


@draws(200)
@given(
    x=cells,
    rows=st.lists(cells, min_size=1, max_size=4),
    norm=st.sampled_from(sorted(COSTS)),
    scale=st.sampled_from(["none", "mad", "range"]),
)
def test_distances_are_the_costs_of_the_moves(x, rows, norm, scale):
    x, S = table(x), table(*rows)
    found = metrics.distance(x, S, norm, space=SPACE, scale=scale)

    assert found == pytest.approx(metrics.cost(x, S, PRICED, COSTS[norm](scale)))
    assert metrics.k_distance(x, S, norm, space=SPACE, scale=scale) == pytest.approx(found.mean())


@draws(100)
@given(
    rows=st.lists(cells, min_size=2, max_size=4),
    other=st.lists(cells, min_size=1, max_size=3),
    norm=st.sampled_from(sorted(COSTS)),
)
def test_sets_and_pairs_are_made_of_distances(rows, other, norm):
    S, B = table(*rows), table(*other)
    apart = np.array([metrics.distance(S.iloc[[i]], S, norm, space=SPACE) for i in range(len(S))])
    across = np.array([metrics.distance(S.iloc[[i]], B, norm, space=SPACE) for i in range(len(S))])
    pairs = [apart[i, j] for i in range(len(S)) for j in range(i)]
    sums = 0.5 * (across.min(axis=1).mean() + across.min(axis=0).mean())

    assert apart == pytest.approx(apart.T)
    assert metrics.k_diversity(S, norm, space=SPACE) == pytest.approx(np.mean(pairs))
    assert metrics.set_distance(S, B, "sum", norm, space=SPACE) == pytest.approx(sums)
    assert metrics.dpp_determinant(S, norm, space=SPACE) == pytest.approx(np.linalg.det(1 / (1 + apart)))
    assert metrics.knn_distance(S, B, norm, space=SPACE) == pytest.approx(across.min(axis=1))


@pytest.mark.parametrize("cost", ["mahalanobis", ceopt.L1Mahalanobis(), ceopt.L1() + ceopt.Percentile("max")])
def test_costs_among_amounts_refuse_a_fill_by_name(cost):
    space = FeatureSpace(
        [Feature("a", kind="continuous", missing=True, mad=1.0), Feature("b", kind="integer", mad=1.0)]
    )
    data = pd.DataFrame({"a": [0.0, 1.0, 4.0], "b": [3, 1, 2]})
    stays = metrics.cost([NAN, 1], [[NAN, 2]], space, cost, data=data)

    assert stays == metrics.cost([1.0, 1], [[1.0, 2]], space, cost, data=data) > 0
    with pytest.raises(
        InvalidValueError, match="needs moves between amounts, but column 'a' is filled in, or goes, in row 1"
    ):
        metrics.cost([NAN, 1], [[NAN, 2], [1.0, 1]], space, cost, data=data)


def test_parts_by_hand():
    S = table([NAN, 1, "low", None, None], [25.0, -9, None, "cook", None])

    assert metrics.continuous_proximity(BLANK, S, space=SPACE, over="sum") == -(0 + 3 + 1 + 0) / 2
    assert metrics.continuous_diversity(S, space=SPACE, scale="range", over="sum") == 4.0
    assert metrics.gower(BLANK, S, space=SPACE).tolist() == [(3 + 1) / 5, (1 + 1) / 5]
    assert metrics.heom(BLANK, S, space=SPACE, form="sum").tolist() == [4, 2]


def test_scales_are_of_amounts_alone():
    space = FeatureSpace([Feature("a", kind="continuous", missing=True)])
    data = pd.DataFrame({"a": [NAN, 0.0, 10.0]})

    assert metrics.distance({"a": 0.0}, [[5.0], [NAN]], space=space, scale="range", data=data).tolist() == [0.5, 1.0]
    with pytest.raises(InvalidValueError, match="an amount for scale='range', but each row of data is missing"):
        metrics.distance({"a": 0.0}, [[5.0]], space=space, scale="range", data=data.iloc[:1])


# ---- neighbours, densities, suites -----------------------------------------------------------------------------------
def test_neighbours_of_rows_with_gaps_are_those_by_distance():
    space = FeatureSpace([Feature("a", kind="continuous", missing=True)])
    data = pd.DataFrame({"a": [NAN, 0.0, 1.2, 9.0]})
    labels = ["yes", "no", "no", "yes"]

    assert metrics.ynn([[NAN], [2.0]], data, labels=labels, target="yes", k=1, space=space) == 0.5
    assert (
        metrics.ynn([[2.0]], data, labels=labels, target="yes", k=2, space=space) == 0.5
    )  # 1.2 is 0.8 away, and missing 1


@pytest.mark.parametrize("metric", [metrics.lof, metrics.hull_distance])
def test_densities_and_hulls_refuse_by_name(metric):
    space = FeatureSpace([Feature("a", kind="continuous", missing=True), Feature("b", kind="integer", codes=[-9])])
    data = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1, 2, 3]})

    with pytest.raises(InvalidValueError, match=f"{metric.__name__} needs an amount .* 'a' of S has none in row 1"):
        metric([[0.0, 1], [NAN, 2]], data, space=space)
    with pytest.raises(InvalidValueError, match="column 'b' of data has none in row 0"):
        metric([[0.0, 1]], data.assign(b=[-9, 2, 3]), space=space)


def test_suites_measure_people_with_gaps():
    space = FeatureSpace([Feature("a", kind="continuous", missing=True, mad=1.0, range=4.0), SPACE["job"]])
    factual = pd.DataFrame({"a": [NAN], "job": ["cook"]})
    S = pd.DataFrame({"a": [2.0, NAN], "job": ["cook", "baker"]})
    data = pd.DataFrame({"a": [0.0, 4.0, NAN], "job": ["cook", "baker", None]})
    given = {"factual": factual, "space": space, "data": data, "labels": [1, 0, 1], "target": 1, "others": S}

    def model(frame):
        return np.where(frame["a"].isna() & (frame["job"] == "cook"), 0, 1)

    for name in metrics.suites().index.unique(0):
        found = metrics.suite(name, S, model=model, models=[model], seconds=1.0, neighbours=1, **given)
        assert found.notna().all(), name
    carla = metrics.suite("carla2021", S, model=model, seconds=1.0, neighbours=1, **given)
    assert carla["success_rate"] == 1.0
    assert carla["l1_distance"] == (1 + 2) / 2  # a fill; a switch of category moves two columns
    assert metrics.success_rate(S) == 0.5
    assert metrics.success_rate(pd.DataFrame({"a": [NAN], "job": [None]}), space=space) == 0.0

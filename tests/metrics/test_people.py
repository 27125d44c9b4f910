"""Plausibility by hand: neighbours, densities, hulls; and the costs and rules that come from a space."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ceopt import L1, L2, Changes, Feature, FeatureSpace, Hull, Mahalanobis, Percentile
from ceopt.metrics import broken_rules, cost, hull_distance, immutable_changes, knn_distance, lof, ynn
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

LINE = [[0.0], [1.0], [3.0], [7.0]]


def test_ynn_by_hand():
    # next to 2.5: 3 and 1, of which 3 is above 2; next to 9: 7 and 3, both; k = 3: {3, 1, 0} and {7, 3, 1}
    favoured = lambda rows: rows[:, 0] > 2  # noqa: E731

    assert ynn([[2.5], [9.0]], LINE, favoured, True, k=2) == 3 / 4
    assert ynn([[2.5], [9.0]], LINE, favoured, True, k=3) == 3 / 6
    assert ynn([[2.5], [9.0]], LINE, target="good", labels=["bad", "bad", "good", "bad"], k=1) == 1 / 2
    # 9 and 7: the row itself is its own neighbour
    assert ynn([[7.0]], LINE, favoured, True, k=1) == 1


def test_ynn_depends_on_units_and_a_scale_takes_them_out():
    people = [[0.0, 0.0], [1.0, 1000.0]]
    labels = [False, True]

    # raw: 400 euros decide; by range: (0.9, 0.4) is at distance .98 and .61
    assert ynn([[0.9, 400.0]], people, target=True, labels=labels, k=1) == 0
    assert ynn([[0.9, 400.0]], people, target=True, labels=labels, k=1, scale="range") == 1


def test_knn_distance_by_hand():
    # from 2: 1 (one away), 3 (one away), 0 (two away)
    assert knn_distance([[2.0]], LINE, k=1).tolist() == [1]
    assert knn_distance([[2.0]], LINE, k=3).tolist() == pytest.approx([4 / 3])
    assert knn_distance([[3.0, 4.0]], [[0.0, 0.0]], "l1").tolist() == [7]
    assert knn_distance([[3.0, 4.0]], [[0.0, 0.0]], "l2").tolist() == [5]


def test_lof_by_hand():
    # people 0, 1, 3, 7, k = 2. Distances to the second nearest: 3, 2, 3, 6.
    # c = 5: nearest 3 and 7, both 2 away; reach 3 and 6: lrd(c) = 2/9
    # lrd(3): nearest 1 and 0 (2 and 3 away), reach max(2, 2), max(3, 3): 2/5
    # lrd(7): nearest 3 and 1 (4 and 6 away), reach max(4, 3), max(6, 2): 2/10
    # so the factor is the mean 3/10 of 2/5 and 1/5, over 2/9
    assert lof([[5.0]], LINE, k=2).tolist() == pytest.approx([0.3 / (2 / 9)])
    # the same where a step along both axes is 1 in linf: (5, 5) beside people on the diagonal
    assert lof([[5.0, 5.0]], [[v, v] for (v,) in LINE], "linf", k=2).tolist() == pytest.approx([0.3 / (2 / 9)])
    # at the corner (3, 4) of a right angle the norms differ: k = 1, people at 0, (1, 0) and (3, 0);
    # nearest is (3, 0), 4 away, whose own nearest is 2 away: lrd 1/2 against 1/4
    assert lof([[3.0, 4.0]], [[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]], "l1", k=1).tolist() == pytest.approx([2])
    corner = [[0.0, 3.0], [1.0, 0.0], [1.0, 1.0]]
    found = [lof([[4.0, 3.0]], corner, norm, k=1)[0] for norm in ("l1", "linf")]
    # l1: (0, 3) is nearest, 4 away, and its own nearest 3, so 4/3; linf: (1, 1) or (1, 0), 3 away and their nearest 1
    assert found == pytest.approx([4 / 3, 3])
    # far away is lonelier
    assert lof([[50.0]], LINE, k=2)[0] > lof([[8.0]], LINE, k=2)[0] > 1


def test_hull_distance_by_hand():
    square = [[0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5]]

    assert hull_distance([[3, 4], [0.2, 0.9], [2, 0.5]], square, "l1").tolist() == pytest.approx([5, 0, 1])
    assert hull_distance([[4, 5]], square, "l2").tolist() == pytest.approx([5])
    assert hull_distance([[3, 4]], square, "linf").tolist() == pytest.approx([3])


def test_a_category_is_two_columns_away_from_a_hull_as_for_the_rule():
    space = FeatureSpace(
        [
            Feature("pay", kind="continuous", lower=0, upper=9, range=4.0),
            Feature("job", kind="categorical", levels=("a", "b", "c")),
            Feature("size", kind="ordinal", levels=("S", "M", "L")),
        ]
    )
    people = pd.DataFrame({"pay": [1.0, 5.0], "job": ["a", "b"], "size": ["S", "M"]})
    S = pd.DataFrame({"pay": [3.0, 3.0], "job": ["c", "a"], "size": ["S", "L"]})

    # c instead of a: 1 off, 1 on; pay costs nothing between 1 and 5 if b is as good as a, but then size is M by halves
    for norm in ("l1", "l2", "linf"):
        rule = Hull(people, norm=norm)
        expected = [rule.distances(space, space.row(row))[None] for _, row in S.iterrows()]
        found = hull_distance(S, people, norm, space=space, scale="range")
        assert found.tolist() == pytest.approx(expected, abs=1e-9)


@given(points=arrays(float, (5, 2), elements=st.integers(-4, 4)), weights=arrays(float, 5, elements=st.integers(1, 9)))
def test_a_mixture_of_people_is_in_their_hull_and_nothing_is_nearer_than_its_nearest(points, weights):
    mixture = weights @ points / weights.sum()

    for norm, order, least in (("l1", 1, 10), ("l2", 2, 50**0.5), ("linf", np.inf, 5)):
        assert hull_distance([mixture], points, norm)[0] == pytest.approx(0, abs=1e-9)
        away = hull_distance([[9.0, 9.0]], points, norm)[0]
        assert away >= least - 1e-9  # both columns are 5 or more away
        assert away <= np.linalg.norm(points - 9.0, order, axis=1).min() + 1e-9


def test_counts_of_neighbours():
    with pytest.raises(InvalidValueError, match="ynn needs k from 1 to 4, with 4 rows of data, but k is 5"):
        ynn([[1.0]], LINE, lambda rows: rows[:, 0], 1)
    with pytest.raises(InvalidValueError, match="knn_distance needs k from 1 to 4.*k is 0"):
        knn_distance([[1.0]], LINE, k=0)
    with pytest.raises(InvalidValueError, match="lof needs k from 1 to 3, with 4 rows of data, but k is 4"):
        lof([[1.0]], LINE, k=4)
    with pytest.raises(InvalidValueError, match="k is 1.5"):
        knn_distance([[1.0]], LINE, k=1.5)


def test_what_neighbours_need():
    with pytest.raises(InvalidTypeError, match="ynn needs a target"):
        ynn([[1.0]], LINE, k=1, labels=[1, 2, 3, 4])
    with pytest.raises(InvalidTypeError, match="a model, or labels of the data"):
        ynn([[1.0]], LINE, target=1, k=1)
    with pytest.raises(InvalidValueError, match="a label for each of 4 rows of data, but the shape of labels is"):
        ynn([[1.0]], LINE, target=1, k=1, labels=[1, 2])
    for metric in (knn_distance, hull_distance, lof):
        with pytest.raises(InvalidTypeError, match=f"{metric.__name__} needs data, but data is None"):
            metric([[1.0]], None)
        with pytest.raises(InvalidValueError, match=f"{metric.__name__} needs a row in data"):
            metric([[1.0]], np.empty((0, 1)))
        with pytest.raises(InvalidValueError, match=f"{metric.__name__} needs a row in S"):
            metric(np.empty((0, 1)), LINE)
        with pytest.raises(UnknownNameError, match=f"{metric.__name__} needs a known norm"):
            metric([[1.0]], LINE, "l3")


# ---- costs and rules -------------------------------------------------------------------------------------------------
SPACE = FeatureSpace(
    [
        Feature("pay", kind="continuous", weight=(3.0, 1.0), mad=2.0),
        Feature("age", kind="integer", mutable=False, mad=5.0),
        Feature("job", kind="categorical", levels=("a", "b"), mutable=False),
    ]
)
X = {"pay": 10.0, "age": 30, "job": "a"}
S = pd.DataFrame({"pay": [14.0, 8.0, 10.0], "age": [30, 40, 30], "job": ["b", "a", "a"]})


def test_costs_by_hand():
    # t: (4/2, 0, 1), (3 * 2/2, 10/5, 0), none
    assert cost(X, S, SPACE).tolist() == [3, 5, 0]
    assert cost(X, S, SPACE, "l0").tolist() == [2, 4, 0]
    assert cost(X, S, SPACE, "l2").tolist() == pytest.approx([np.sqrt(5), np.sqrt(13), 0])
    assert cost(X, S, SPACE, "linf").tolist() == [2, 3, 0]
    assert cost(X, S, SPACE, L1(scale="none") + 0.5 * Changes()).tolist() == [6, 17, 0]
    # half the precision of each numeric column, plus the square of the weight of a category
    found = cost(X, S, SPACE, Mahalanobis(precision=[[0.25, 0], [0, 0.01]]))
    assert found.tolist() == pytest.approx([np.sqrt(4 + 1), np.sqrt(1 + 1), 0])
    # pay of people 8, 10, 14: Q = (count <= v + 1/2) / 5; 14 overtakes one, 8 is overtaken by one
    people = pd.DataFrame({"pay": [8.0, 10.0, 14.0], "age": [30, 30, 40], "job": ["a", "a", "b"]})
    assert cost(X, S.assign(job="a"), SPACE, Percentile("max"), data=people).tolist() == pytest.approx(
        [1 / 5, 1 / 5, 0]
    )


def test_rules_by_hand():
    assert immutable_changes(X, S, SPACE).tolist() == [1, 1, 0]
    assert immutable_changes({**X, "age": 1e9}, S.assign(age=1e9 + 1), SPACE).tolist() == [1, 0, 0]  # isclose
    assert broken_rules(X, S, SPACE).tolist() == [1, 1, 0]
    stepped = FeatureSpace([Feature("pay", kind="continuous", step=4.0, direction="increasing", upper=12.0)])
    # up one step, beyond the bound; down half a step; up one and a quarter
    assert broken_rules({"pay": 9.0}, [[13.0], [7.0], [10.0]], stepped).tolist() == [1, 2, 1]


def test_a_level_that_is_none_is_a_broken_rule():
    assert broken_rules(X, S.assign(job=["a", "a", "z"]), SPACE).tolist() == [0, 1, 1]


def test_costs_and_rules_need_a_space():
    for metric in (cost, immutable_changes, broken_rules):
        with pytest.raises(InvalidTypeError, match=f"{metric.__name__} needs a FeatureSpace, but space is None"):
            metric(X, S, None)
        with pytest.raises(InvalidValueError, match=f"{metric.__name__} needs a row in S"):
            metric(X, S.iloc[:0], SPACE)
    with pytest.raises(UnknownNameError, match="cost needs a known cost, but cost is 'l7'"):
        cost(X, S, SPACE, "l7")
    with pytest.raises(InvalidValueError, match="a covariance, a precision, or data"):
        cost(X, S, SPACE, "mahalanobis")


def test_a_cost_in_raw_units_is_l2_of_the_same_rows():
    from ceopt.metrics import distance

    space = FeatureSpace([Feature("a", kind="continuous"), Feature("b", kind="continuous")])
    rows = np.random.default_rng(0).normal(size=(5, 2))

    assert cost([0, 0], rows, space, L2(scale="none")).tolist() == pytest.approx(distance([0, 0], rows, "l2").tolist())

"""The distance from a hull of many points, of which it looks at a few: against one program over all, and proofs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from ceopt.formulations.constraints import hull_points as module
from ceopt.formulations.constraints.hull_points import NearHull, _limited, hull_distance, least_sum

ORDER = {"l1": 1, "l2": 2, "linf": np.inf}


def sets() -> list[Any]:
    """Points and a place: far, near, inside, at a corner; many columns, some of 0 and 1; a flat set; one point."""
    rng = np.random.default_rng(0)
    found = []
    for n, d in ((400, 3), (250, 8), (1500, 5)):
        points = np.c_[rng.random((n, d)), rng.integers(0, 2, (n, 2))]
        away = points.mean(axis=0)
        found += [(points, away + offset) for offset in (3.0, 0.6, 0.0)] + [
            (points, points[7]),
            (points, points[0] * 1.3),
        ]
    flat = rng.random((200, 2)) @ rng.random((2, 6))
    return [*found, (flat, flat.mean(axis=0) + 0.1), (flat, flat[:9].mean(axis=0)), (flat[:1], flat[1])]


def over_all(points: Any, x: Any, norm: str) -> float:
    """Least l1 or linf norm, by one program over all points."""
    moves = (points - x).T
    d, n = moves.shape
    bounding = np.eye(d) if norm == "l1" else np.ones((d, 1))
    rows = np.block([[moves, -bounding], [-moves, -bounding]])
    price = np.r_[np.zeros(n), np.ones(bounding.shape[1])]
    equal = np.r_[np.ones(n), np.zeros(bounding.shape[1])][None, :]
    result = linprog(price, rows, np.zeros(2 * d), equal, [1.0])
    assert result.status == 0
    return float(result.fun)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("norm", ["l1", "linf", "l2"])
@pytest.mark.parametrize("place", range(len(sets())))
def test_the_distance_is_that_from_all_points(place: int, norm: Any) -> None:
    points, x = sets()[place]
    distance, slack = hull_distance(points, x, norm)
    assert np.linalg.norm(slack, ORDER[norm]) == pytest.approx(distance, abs=1e-9)
    assert over_all(points, x + slack, "linf") <= 1e-8  # the way leads into the hull
    if norm == "l2":  # no point is nearer along the way than its end: the end is the nearest point
        assert ((points - x) @ slack).min() >= distance**2 - 1e-8
    else:
        assert distance == pytest.approx(over_all(points, x, norm), abs=1e-8)


@pytest.mark.parametrize("norm", ["l1", "linf", "l2"])
def test_it_stops_where_more_is_of_no_interest(norm: Any) -> None:
    points, x = sets()[0]
    distance, _ = hull_distance(points, x, norm)
    rough, slack = hull_distance(points, x, norm, enough=distance * 1.2)
    assert distance - 1e-9 <= rough <= distance * 1.2
    assert rough == pytest.approx(np.linalg.norm(slack, ORDER[norm]))
    assert hull_distance(points, x, norm, beyond=distance * 0.5)[0] >= distance - 1e-9
    assert hull_distance(points, x, norm, beyond=distance * 1.01)[0] == pytest.approx(distance, abs=1e-8)


@pytest.mark.parametrize("norm", ["l1", "linf", "l2"])
@pytest.mark.parametrize("limit", [0.0, 0.2])
def test_what_showed_one_point_to_be_too_far_shows_it_of_others(norm: Any, limit: float) -> None:
    points, inside = sets()[2]
    near = NearHull(points, norm, limit + 1e-6, limit + 2e-6)
    rng = np.random.default_rng(0)
    asked = inside + rng.uniform(-0.8, 0.8, (60, len(inside)))
    distances = np.array([hull_distance(points, x, norm)[0] for x in asked])
    is_known = []
    for x, distance in zip(asked, distances, strict=True):
        is_known.append(not near.may_hold(x[None, :])[0])
        assert near.holds(x) == (distance <= limit + 1e-6)
    assert sum(is_known) > 10
    assert (near.may_hold(asked) == (distances <= limit + 1e-6)).all()


@pytest.mark.parametrize("norm", ["l1", "linf", "l2"])
def test_no_point_of_the_hull_is_lost_where_its_columns_are_of_large_numbers(norm: Any) -> None:
    """Floats are a ten-thousandth apart here, and products with the numbers themselves would lose as much."""
    rng = np.random.default_rng(0)
    points = 1e12 + rng.integers(-8192, 8192, (60, 3)) / 8192.0
    near = NearHull(points, norm, 1e-6, 2e-6)
    for x in points + rng.integers(-8192, 8192, (60, 3)) / 4096.0:
        near.holds(x)
    assert near.may_hold(points).all()
    assert not near.may_hold(points + 9.0).any()


@pytest.mark.long(every=2)
@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("place", [0, 1, 5, 6, 11])
def test_the_least_sum_within_a_limit(place: int, norm: Any) -> None:
    """Between the l1 distance and the sum of the shortest way; the former with room, the latter with none."""
    points, x = sets()[place]
    nearest, slack = hull_distance(points, x, norm)
    low, high = hull_distance(points, x, "l1")[0], float(np.abs(slack).sum())
    by_limit = [least_sum(points, x, norm, nearest * share) for share in (1.0, 1.01, 1.1, 1.5, 50.0)]
    assert all(low - 1e-7 <= found <= high + 1e-7 for found in by_limit)
    assert sorted(by_limit, reverse=True) == pytest.approx(by_limit, abs=1e-7)
    assert by_limit[-1] == pytest.approx(low, abs=1e-8) == least_sum(points, x, norm, None)
    assert least_sum(points, x, norm, nearest * 0.9) == np.inf
    if norm == "linf":
        assert by_limit[2] == pytest.approx(boxed(points, x, 1.1 * nearest), abs=1e-8)


def boxed(points: Any, x: Any, limit: float) -> float:
    """Least l1 norm of a way whose steps are at most the limit, by its own program."""
    moves = (points - x).T
    d, n = moves.shape
    lengths = np.eye(d)
    rows = np.block([[moves, -lengths], [-moves, -lengths]])
    equal = np.r_[np.ones(n), np.zeros(d)][None, :]
    bounds = [(0.0, None)] * n + [(0.0, limit)] * d
    return float(linprog(np.r_[np.zeros(n), np.ones(d)], rows, np.zeros(2 * d), equal, [1.0], bounds).fun)


@pytest.mark.parametrize(("seed", "norm", "share"), [(1, "l2", 1.02), (1, "linf", 1.3), (2, "linf", 1.1)])
def test_points_join_where_the_first_few_are_not_enough(
    seed: int, norm: Any, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    points, x = rng.normal(size=(1500, 12)), rng.normal(size=12) * 1.5
    nearest, slack = hull_distance(points, x, norm)
    limit, high = share * nearest, float(np.abs(slack).sum())
    over_every_point = _limited(points - x, np.arange(1500), high, norm, limit)
    monkeypatch.setattr(module, "_MOST", 1)
    few = _limited(points - x, module._nearest(points, x, norm)[2], high, norm, limit)
    assert few > over_every_point + 1e-3
    monkeypatch.setattr(module, "_MOST", 12)  # rounds: too few for all points to join
    assert least_sum(points, x, norm, limit) == pytest.approx(over_every_point, abs=1e-7)

"""Hull: optima by trying every point of a lattice, with programs of the test's own; what is dropped changes nothing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import linprog

import ceopt
from ceopt import Feature, FeatureSpace, Hull
from ceopt.formulations import Factual, impose
from ceopt.formulations.constraints import hull_points as points_module
from ceopt.formulations.predictors import Affine
from ceopt.formulations.targets import AtLeast
from ceopt.solvers import Status, solve

SPACE = FeatureSpace(
    [
        Feature("age", kind="integer", lower=0, upper=3),
        Feature("size", kind="ordinal", levels=("S", "M", "L")),
        Feature("job", kind="categorical", levels=("a", "b", "c")),
        Feature("home", kind="binary", levels=("rent", "own")),
    ]
)
LATTICE = np.array(list(itertools.product(range(4), range(3), range(3), range(2))), dtype=float)
RADII = (0.0, 0.25, 0.4, 0.7, 1.0, 2.5)


def frame(points: Any, space: FeatureSpace = SPACE) -> pd.DataFrame:
    return space.frame([dict(zip(space.names, map(float, point), strict=True)) for point in points])


def seen(points: Any) -> np.ndarray:
    """Points of the lattice as the hull sees them, from the text of the public interface: range, rank, 0/1."""
    age, size, job, home = np.asarray(points, dtype=float).reshape(-1, 4).T
    return np.stack([age / 3, size / 2, *(job == k for k in range(3)), home], axis=1)


def apart(x: Any, rows: Any, norm: str) -> np.ndarray:
    """Distances of points (m, D) from the hull of all rows."""
    if norm == "l2":
        return by_faces(x, np.unique(rows, axis=0))
    return np.array([by_program((rows - one).T, norm) for one in x])


def by_program(moves: Any, norm: str) -> float:
    """Least norm of a mixture of columns: weights, d lengths of at least |s_j|, and the greatest of them."""
    d, n = moves.shape
    lengths, greatest = np.eye(d), np.ones((d, 1))
    rows = np.block(
        [
            [moves, -lengths, 0.0 * greatest],
            [-moves, -lengths, 0.0 * greatest],
            [np.zeros((d, n)), lengths, -greatest],
        ]
    )
    equal = np.r_[np.ones(n), np.zeros(d + 1)][None, :]
    price = np.r_[np.zeros(n), np.full(d, float(norm == "l1")), float(norm == "linf")]
    result = linprog(price, rows, np.zeros(3 * d), equal, [1.0])
    assert result.status == 0
    return float(result.fun)


def by_faces(x: Any, rows: Any) -> np.ndarray:
    """Euclidean distances: the least over all subsets of rows into whose inside the point is projected."""
    best = np.full(len(x), np.inf)
    for count in range(1, len(rows) + 1):
        for chosen in itertools.combinations(rows, count):
            sides = np.array(chosen[1:]).reshape(count - 1, x.shape[1]) - chosen[0]
            shares = (x - chosen[0]) @ np.linalg.pinv(sides) if count > 1 else np.zeros((len(x), 0))
            inside = (shares >= -1e-9).all(axis=1) & (shares.sum(axis=1) <= 1.0 + 1e-9)
            best = np.where(inside, np.minimum(best, np.linalg.norm(x - chosen[0] - shares @ sides, axis=1)), best)
    return best


lattice_points = st.sampled_from(LATTICE.tolist())
slopes, prices = st.sampled_from([-2.0, -1.0, 0.5, 3.0]), st.sampled_from([0.0, 1.0, 4.0])
weightings = st.tuples(slopes, slopes, slopes, st.lists(prices, min_size=3, max_size=3))


def worth(weighting: Any, points: Any) -> np.ndarray:
    a, b, c, job = weighting
    points = np.asarray(points, dtype=float).reshape(-1, 4)
    return a * points[:, 0] + b * points[:, 1] + c * points[:, 3] + np.array(job)[points[:, 2].astype(int)]


def least(hull: Hull, weighting: Any, factual: Any = (1, 1, 1, 0), space: FeatureSpace = SPACE) -> float | None:
    """The least worth that the program finds, or None where it proves that there is nothing."""
    m = pyo.ConcreteModel()
    m.x = x = Factual(space, frame([factual], space))
    m.hull = impose(hull, x)
    a, b, c, job = weighting
    levels = sum(price * x.is_level["job", level] for price, level in zip(job, "abc", strict=True))
    m.worth = pyo.Objective(expr=a * x.raw["age"] + b * x.raw["size"] + c * x.raw["home"] + levels + sum(x.surcharges))
    result = solve(m, "highs")
    if result.status is Status.INFEASIBLE:
        return None
    assert result.status is Status.OPTIMAL
    point = m.x.decoded()
    assert hull.violation(space, None, point) == 0.0
    extra = hull.surcharge(space, {}, point)
    assert worth(weighting, list(point.values()))[0] + extra == pytest.approx(result.objective, abs=1e-5)
    return float(result.objective)


def best(weighting: Any, allowed: Any, extra: Any = 0.0) -> float | None:
    total = worth(weighting, LATTICE) + extra
    return float(total[allowed].min()) if allowed.any() else None


@pytest.mark.long
@draws(60)
@given(
    rows=st.lists(lattice_points, min_size=1, max_size=7),
    radius=st.sampled_from(RADII),
    norm=st.sampled_from(["l1", "linf", "l2"]),
    weighting=weightings,
)
@example(rows=[[0, 0, 0, 0], [3, 2, 2, 1]], radius=0.0, norm="l1", weighting=(-2.0, -1.0, -1.0, [0.0, 1.0, 4.0]))
@example(rows=[[1, 1, 1, 1]], radius=0.25, norm="l2", weighting=(-2.0, -1.0, 0.5, [4.0, 1.0, 0.0]))
def test_the_optimum_is_that_of_enumeration(rows: Any, radius: float, norm: Any, weighting: Any) -> None:
    away = apart(seen(LATTICE), seen(rows), norm)
    hull = Hull(frame(rows), radius=radius, norm=norm)
    assert least(hull, weighting) == pytest.approx(best(weighting, away <= radius + 1e-6), abs=1e-5)
    off = [hull.violation(SPACE, None, dict(zip(SPACE.names, point, strict=True))) for point in LATTICE.tolist()]
    assert np.array(off) == pytest.approx(np.where(away > radius + 1e-6, away - radius, 0.0), abs=1e-6)


@draws(25)
@given(
    rows=st.lists(lattice_points, min_size=2, max_size=6),
    radius=st.sampled_from(RADII[:4]),
    norm=st.sampled_from(["l1", "linf"]),
    weighting=weightings,
    split=st.integers(1, 5),
)
def test_clusters_are_the_best_of_single_hulls(rows: Any, radius: float, norm: Any, weighting: Any, split: int) -> None:
    split = min(split, len(rows) - 1)
    labels = ["near"] * split + ["far"] * (len(rows) - split)
    parts = [rows[:split], rows[split:]]
    joint = least(Hull(frame(rows), radius=radius, norm=norm, clusters=labels), weighting)
    alone = [least(Hull(frame(part), radius=radius, norm=norm), weighting) for part in parts]
    found = [value for value in alone if value is not None]
    assert joint == pytest.approx(min(found) if found else None, abs=1e-6)


@draws(25)
@given(
    rows=st.lists(lattice_points, min_size=1, max_size=6),
    penalty=st.sampled_from([0.0, 0.5, 2.0, 20.0]),
    radius=st.sampled_from([0.0, 0.5, 1.5]),
    weighting=weightings,
)
def test_a_penalty_is_weighed_against_every_point(rows: Any, penalty: float, radius: float, weighting: Any) -> None:
    """In l1; with radius 0 there is no limit."""
    away = apart(seen(LATTICE), seen(rows), "l1")
    allowed = away <= (radius or np.inf) + 1e-6
    expected = best(weighting, allowed, penalty * away)
    assert least(Hull(frame(rows), radius=radius, penalty=penalty), weighting) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_penalty_counts_the_l1_norm_of_a_slack_within_the_radius(norm: Any) -> None:
    """The shortest slack in l1 goes along one column, and farther than the radius admits in the other norms."""
    space = FeatureSpace([Feature(name, kind="continuous", lower=-9, upper=9) for name in "ab"])
    rows = pd.DataFrame({"a": [2.0, 0.0], "b": [0.0, 3.0]})  # nearest to 0 in l1: (2, 0), 2 away
    hull = Hull(rows, radius=1.7, norm=norm, penalty=1.0, scale="none")
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"a": 0.0, "b": 0.0})
    m.hull = impose(hull, m.x)
    m.stay = pyo.Constraint(expr=m.x.raw["a"] == 0.0)
    m.too = pyo.Constraint(expr=m.x.raw["b"] == 0.0)
    m.cost = pyo.Objective(expr=sum(m.x.surcharges))
    own = hull.surcharge(space, {}, {"a": 0.0, "b": 0.0})
    # On the segment, b = 3 - 1.5 a: a + b = 3 - a / 2, with a = 1.7 (linf), or a^2 + (3 - 1.5 a)^2 = 1.7^2 (l2).
    a = 1.7 if norm == "linf" else (9.0 + np.sqrt(81.0 - 13.0 * (9.0 - 2.89))) / 6.5
    assert own == pytest.approx(3.0 - a / 2.0, abs=1e-6)
    assert solve(m, "highs").objective == pytest.approx(own, abs=2e-6)


def test_a_penalty_is_that_of_a_cluster_within_the_radius() -> None:
    """The cluster that is nearest in l1 is too far in linf."""
    space = FeatureSpace([Feature(name, kind="continuous", lower=-9, upper=9) for name in "ab"])
    rows = pd.DataFrame({"a": [2.0, 1.5], "b": [0.0, 1.5]})
    hull = Hull(rows, radius=1.75, norm="linf", penalty=2.0, scale="none", clusters=["along", "across"])
    here = {"a": 0.0, "b": 0.0}
    assert hull.distances(space, here) == pytest.approx({"across": 1.5, "along": 2.0})
    assert hull.surcharge(space, {}, here) == pytest.approx(2.0 * 3.0)
    assert hull.surcharge(space, {}, {"a": -9.0, "b": 0.0}) == pytest.approx(2.0 * 11.0)  # within none: any slack
    m = pyo.ConcreteModel()
    m.x = Factual(space, here)
    m.hull = impose(hull, m.x)
    m.stay = pyo.Constraint(expr=m.x.raw["a"] == 0.0)
    m.too = pyo.Constraint(expr=m.x.raw["b"] == 0.0)
    m.cost = pyo.Objective(expr=sum(m.x.surcharges))
    assert solve(m, "highs").objective == pytest.approx(6.0)
    assert hull.cluster_in(m.hull) == "across"


@draws(15)
@given(
    rows=st.lists(lattice_points, min_size=2, max_size=6), norm=st.sampled_from(["l1", "linf"]), weighting=weightings
)
def test_a_wider_hull_is_never_worse(rows: Any, norm: Any, weighting: Any) -> None:
    by_radius = [least(Hull(frame(rows), radius=radius, norm=norm), weighting) for radius in RADII]
    by_rows = [least(Hull(frame(rows[:k]), radius=0.25, norm=norm), weighting) for k in range(1, len(rows) + 1)]
    for found in (by_radius, by_rows):
        numbers = [np.inf if value is None else value for value in found]
        assert all(after <= before + 1e-6 for before, after in itertools.pairwise(numbers))


# ---- what is left out does not matter --------------------------------------------------------------------------------
HELD = FeatureSpace(
    [
        Feature("age", kind="integer", lower=0, upper=3, direction="increasing"),
        Feature("size", kind="ordinal", levels=("S", "M", "L"), direction="decreasing"),
        Feature("job", kind="categorical", levels=("a", "b", "c"), mutable=False),
        Feature("home", kind="binary", levels=("rent", "own")),
    ]
)


#: Asks for a low age, or a large size: then a mixture of rows on either side of the person is best.
OLD, LARGE = (3.0, 0.5, 0.5, [0.0, 0.0, 0.0]), (0.5, -2.0, 0.5, [0.0, 0.0, 0.0])


@draws(40)
@given(
    rows=st.lists(lattice_points, min_size=1, max_size=12),
    radius=st.sampled_from([0.0, 0.0, 0.4]),
    factual=lattice_points,
    weighting=weightings,
    clustered=st.booleans(),
)
@example(rows=[[0, 1, 0, 0], [2, 1, 0, 0]], radius=0.0, factual=[1, 1, 0, 0], weighting=OLD, clustered=False)
@example(rows=[[1, 0, 0, 0], [1, 2, 0, 0]], radius=0.0, factual=[1, 1, 0, 0], weighting=OLD, clustered=True)
@example(rows=[[1, 0, 0, 0], [1, 2, 0, 0]], radius=0.0, factual=[1, 1, 0, 0], weighting=LARGE, clustered=False)
def test_dropped_points_change_nothing(rows: Any, radius: float, factual: Any, weighting: Any, clustered: bool) -> None:
    data = frame(rows, HELD)
    labels = [k % 2 for k in range(len(rows))] if clustered else None

    def solved() -> float | None:
        return least(Hull(data, radius=radius, clusters=labels), weighting, factual, HELD)

    def every(values: Any, *_: Any) -> Any:
        return np.arange(len(values))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(points_module, "vertices", every)
        patch.setattr(points_module, "face", every)
        expected = solved()
    assert solved() == pytest.approx(expected, abs=1e-6)


def test_points_that_cannot_matter_are_dropped() -> None:
    """Per person: another job (fixed), and everything below the greatest age, as age only grows."""
    rows = [[3, 0, 0, 0], [3, 2, 0, 1], [2, 0, 0, 1], [3, 1, 1, 0], [1, 2, 0, 0]]
    m = pyo.ConcreteModel()
    m.x = Factual(HELD, frame([[3, 2, 0, 0]], HELD))
    m.hull = impose(Hull(frame(rows, HELD)), m.x)
    assert list(m.hull.weight) == [0, 1]
    m.wide = impose(Hull(frame(rows, HELD), radius=0.1), m.x)
    assert list(m.wide.weight) == [0, 1, 2, 3, 4]


@pytest.mark.long
@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_interior_points_are_dropped_and_nothing_else(columns: int) -> None:
    """Continuous columns beside a flag: the optimum over all directions is that of all points."""
    rng = np.random.default_rng(columns)
    names = [f"x{j}" for j in range(columns)]
    space = FeatureSpace(
        [*(Feature(n, kind="continuous", lower=0, upper=1) for n in names), Feature("f", kind="binary", levels=(0, 1))]
    )
    values = np.vstack([rng.random((60, columns)), 0.45 + 0.1 * rng.random((60, columns))])
    data = pd.DataFrame(values, columns=names).assign(f=[0, 1] * 60)
    kept = Hull(pd.concat([data, data]))._points(space).values
    assert len(kept) <= 60
    for direction in rng.normal(size=(200, columns)):
        for flag in (0, 1):
            allowed = data.loc[data["f"] == flag, names].to_numpy() @ direction
            assert (kept[kept[:, -1] == flag, :-1] @ direction).max() == pytest.approx(allowed.max(), abs=1e-12)


def test_a_flat_set_keeps_its_points() -> None:
    line = np.linspace(0.0, 1.0, 9)
    space = FeatureSpace([Feature(name, kind="continuous", lower=0, upper=1) for name in "ab"])
    hull = Hull(pd.DataFrame({"a": line, "b": 1.0 - line}))
    assert hull.violation(space, None, {"a": 0.3, "b": 0.7}) == 0.0
    assert hull.violation(space, None, {"a": 0.3, "b": 0.6}) == pytest.approx(0.1)
    assert len(hull._points(space).values) == 9


# ---- through the one call --------------------------------------------------------------------------------------------
@pytest.mark.long
@draws(15)
@given(
    rows=st.lists(lattice_points, min_size=2, max_size=6),
    radius=st.sampled_from([0.0, 0.4, 1.0]),
    norm=st.sampled_from(["l1", "linf"]),
    level=st.sampled_from([1.5, 3.5, 5.5]),
)
def test_answers_are_those_of_enumeration(rows: Any, radius: float, norm: Any, level: float) -> None:
    weights = np.array([1.0, 1.0, 0.0, 2.0])
    space = FeatureSpace([f for f in SPACE if f.name != "job"])
    rows = [[age, size, home] for age, size, _, home in rows]
    lattice = np.unique(LATTICE[:, [0, 1, 3]], axis=0)
    scaled = lattice / np.array([3.0, 2.0, 1.0])
    home = np.array([0.0, 1.0, 0.0])
    away = apart(scaled, np.array(rows) / np.array([3.0, 2.0, 1.0]), norm)
    score = lattice @ weights[[0, 1, 3]]
    allowed = (away <= radius + 1e-6) & (score >= level)
    costs = np.abs((lattice - home) / np.array([3.0, 2.0, 1.0])).sum(axis=1)
    found = ceopt.explain(
        Affine(weights[[0, 1, 3]], 0.0),
        frame([home], space),
        space,
        target=AtLeast(level),
        cost=ceopt.L1(scale="range"),
        constraints=[Hull(frame(rows, space), radius=radius, norm=norm)],
    )
    if not allowed.any():
        assert found.status == "infeasible"
    else:
        assert found.status == "optimal"
        assert found[0].cost == pytest.approx(costs[allowed].min(), abs=1e-6)

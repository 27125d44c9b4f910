"""The choice of a subset: golden numbers, enumeration, every solver, and what is said where nothing is proved."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st

from ceopt.base.results import Status
from ceopt.diverse import select
from ceopt.diverse.subset import SubsetSearch, greedy_subset, improved, in_parts, least_distance, sum_of_distances
from ceopt.solvers import solve
from ceopt.solvers.deadline import until
from ceopt.solvers.problem import ProblemClass, Stop
from ceopt.solvers.registry import SOLVERS

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "diverse_selection.json").read_text())["instances"]
POINTS = np.random.default_rng(5).normal(size=(12, 3))
BY_K = ("max_sum", "max_min", "determinant")


# ---- in plain numbers, apart from the code under test ----------------------------------------------------------------
def distance(p: Any, q: Any, norm: str) -> float:
    moves = [abs(a - b) for a, b in zip(p, q, strict=True)]
    return {"l1": sum(moves), "l2": math.hypot(*moves), "linf": max(moves)}[norm]


def worth(points: Any, chosen: tuple[int, ...], objective: str, norm: str) -> float:
    d = [distance(points[p], points[q], norm) for p, q in itertools.combinations(chosen, 2)]
    if objective == "max_sum":
        return sum(d)
    if objective == "max_min":
        return min(d, default=math.nan)
    table = [[1.0 / (1.0 + distance(points[p], points[q], norm)) for q in chosen] for p in chosen]
    return float(np.linalg.det(table))


def apart(points: Any, beta: float, norm: str, size: int) -> list[tuple[int, ...]]:
    return [
        chosen
        for chosen in itertools.combinations(range(len(points)), size)
        if all(distance(points[p], points[q], norm) >= beta for p, q in itertools.combinations(chosen, 2))
    ]


# ---- numbers ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("instance", [pytest.param(i, id=i["id"]) for i in GOLDEN])
@pytest.mark.parametrize("objective", ["max_sum", "max_min"])
def test_golden_numbers(instance: Any, objective: str) -> None:
    inputs, expected = instance["inputs"], instance["expected"]
    found = select(inputs["points"], inputs["k"], objective=objective, norm=inputs["distance"])
    assert found.status == "optimal"
    assert found.value == pytest.approx(expected[objective], abs=instance["tol"][objective])
    assert len(found) == inputs["k"]
    if objective == "max_sum":
        assert found.indices.tolist() == expected["max_sum_set"]


lattice = st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 2)), min_size=1, max_size=7)
norms = st.sampled_from(["l1", "l2", "linf"])


@draws(40)
@example(points=[(0, 0), (0, 0), (0, 0)], part=0.5, norm="l2")  # any two are at distance 0
@example(points=[(0, 0)], part=0.0, norm="l1")
@example(points=[(0, 0), (3, 0), (0, 2)], part=1.0, norm="linf")  # all of them
@given(points=lattice, part=st.floats(0.0, 1.0), norm=norms)
def test_the_best_k_points_are_those_of_enumeration(points: Any, part: float, norm: str) -> None:
    k = 1 + round(part * (len(points) - 1))
    for objective in BY_K:
        found = select(points, k, objective=objective, norm=norm)
        best = max(worth(points, chosen, objective, norm) for chosen in itertools.combinations(range(len(points)), k))
        assert found.status is Status.OPTIMAL
        assert found.value == pytest.approx(best, rel=1e-9, abs=1e-9, nan_ok=True)
        assert found.value == pytest.approx(worth(points, tuple(found.indices), objective, norm), abs=1e-9, nan_ok=True)
        assert len(set(found.indices)) == k


@draws(40)
@example(points=[(0, 0), (1, 0), (2, 0)], beta=1.0, norm="l2", costs=[0] * 7)  # exactly beta is apart
@example(points=[(0, 0), (1, 0), (2, 0)], beta=1.5, norm="l2", costs=[1, -9, 1, 0, 0, 0, 0])  # largest first
@given(
    points=lattice,
    beta=st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0]),
    norm=norms,
    costs=st.lists(st.integers(-3, 9), min_size=7, max_size=7),
)
def test_points_apart_are_those_of_enumeration(points: Any, beta: float, norm: str, costs: list[int]) -> None:
    n = len(points)
    sets = [apart(points, beta, norm, size) for size in range(1, n + 1)]
    most = max(size for size, found in enumerate(sets, 1) if found)
    largest = select(points, objective="largest", beta=beta, norm=norm)
    assert (largest.status, largest.value, largest.bound) == (Status.OPTIMAL, most, most)
    assert tuple(largest.indices) in sets[most - 1]
    for k in (None, *range(1, n + 1)):
        found = select(points, k, objective="cheapest", beta=beta, norm=norm, costs=costs[:n])
        possible = sets[(k or most) - 1]
        if possible:
            assert found.status is Status.OPTIMAL
            assert found.value == pytest.approx(min(sum(costs[p] for p in chosen) for chosen in possible))
            assert tuple(found.indices) in possible
            assert found.value == pytest.approx(sum(costs[p] for p in found.indices))
        else:
            assert (found.status, found.value, found.indices.tolist()) == (Status.INFEASIBLE, None, [])
            assert found.reason == f"No {k} of the {n} points are pairwise at least {beta:g} apart ({norm})."


MILP = [name for name, s in SOLVERS.items() if s.is_installed and s.is_licensed and ProblemClass.MILP in s.classes]


@pytest.mark.long(every=3)
@pytest.mark.parametrize("solver", MILP)
def test_every_solver_chooses_as_well(solver: str) -> None:
    costs = np.abs(POINTS).sum(axis=1)
    for objective, k, further in (
        ("max_sum", 4, {}),
        ("max_min", 4, {}),
        ("largest", None, {"beta": 2.0}),
        ("cheapest", 3, {"beta": 2.0, "costs": costs}),
    ):
        found = select(POINTS, k, objective=objective, solver=solver, **further)
        if objective in BY_K:
            best = max(worth(POINTS, chosen, objective, "l2") for chosen in itertools.combinations(range(12), k))
        elif objective == "largest":
            best = max(size for size in range(1, 13) if apart(POINTS, 2.0, "l2", size))
        else:
            best = min(costs[list(chosen)].sum() for chosen in apart(POINTS, 2.0, "l2", 3))
        assert found.status is Status.OPTIMAL
        assert found.value == pytest.approx(best, rel=1e-6)
        assert found.gap <= 1e-6


@pytest.mark.long(every=2)
@pytest.mark.parametrize("size", [1e-7, 1.0, 1e7])
@pytest.mark.parametrize("objective", BY_K)
def test_units_do_not_matter(size: float, objective: str) -> None:
    """A solver's tolerances are absolute; lengths are not."""
    found = select(size * POINTS, 4, objective=objective)
    best = max(itertools.combinations(range(12), 4), key=lambda chosen: worth(size * POINTS, chosen, objective, "l2"))
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(worth(size * POINTS, best, objective, "l2"), rel=1e-6)


def test_lengths_equal_on_paper_are_at_least_beta() -> None:
    points = [[0.1], [0.2], [0.3]]
    assert 0.3 - 0.2 < 0.1
    assert select(points, objective="largest", beta=0.1).value == 3
    assert select(points, objective="largest", beta=0.1 + 1e-9).value == 2


# ---- what is not proved ----------------------------------------------------------------------------------------------
def test_a_large_determinant_is_not_called_optimal() -> None:
    points = np.random.default_rng(0).normal(size=(60, 3))
    found = select(points, 5, objective="determinant")
    assert found.status is Status.FEASIBLE
    assert found.value <= found.bound <= 1.0
    assert "not proved" in found.reason
    assert found.value == pytest.approx(worth(points, tuple(found.indices), "determinant", "l2"), rel=1e-9)


@given(seed=st.integers(0, 10_000), n=st.integers(3, 9), data=st.data())
def test_the_bound_of_a_determinant_is_one(seed: int, n: int, data: st.DataObject) -> None:
    """No k rows and columns have more than the product of the k greatest eigenvalues."""
    points = np.random.default_rng(seed).normal(size=(n, 2))
    k = data.draw(st.integers(1, n - 1))
    d = np.linalg.norm(points[:, None] - points[None], axis=2)
    best = max(worth(points, chosen, "determinant", "l2") for chosen in itertools.combinations(range(n), k))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ceopt.diverse.subset._FEW_SETS", 0)
        found = SubsetSearch(d, "auto").determinant(k)
        without_search(patch)
        first = SubsetSearch(d, "auto").determinant(k)
    for one in (found, first):
        assert one.status is Status.FEASIBLE
        assert one.value - 1e-12 <= best <= one.bound + 1e-12
    assert found.value >= first.value - 1e-12


def without_search(patch: pytest.MonkeyPatch) -> None:
    """Let local search end at the first k points, so that the programs have to find all that is better."""
    patch.setattr("ceopt.diverse.subset.greedy_subset", lambda _n, k, _value: list(range(k)))
    patch.setattr("ceopt.diverse.subset.improved", lambda chosen, *_: chosen)


@draws(40)
@given(points=lattice, part=st.floats(0.0, 1.0))
def test_programs_need_no_good_start(points: Any, part: float) -> None:
    n = len(points)
    k = min(n, 2 + round(part * max(n - 2, 0)))
    for objective in ("max_sum", "max_min") if n > 1 else ():
        with pytest.MonkeyPatch.context() as patch:
            without_search(patch)
            found = select(points, k, objective=objective)
        best = max(worth(points, chosen, objective, "l2") for chosen in itertools.combinations(range(n), k))
        assert (found.status, found.value) == (Status.OPTIMAL, pytest.approx(best, rel=1e-9, abs=1e-9))


@pytest.mark.parametrize(
    ("objective", "further", "factor"),
    [
        ("max_sum", {"k": 4}, 1.5),
        ("cheapest", {"k": 3, "beta": 1.0, "costs": np.ones(12)}, 0.5),
        ("largest", {"beta": 1.0}, 1.5),
    ],
)
def test_a_solver_that_stops_short_proves_only_its_bound(
    objective: str, further: Any, factor: float, monkeypatch: Any
) -> None:
    exact = select(POINTS, objective=objective, **further)

    def stopped(*arguments: Any, **options: Any) -> Any:
        result = solve(*arguments, **options)
        return replace(result, status=Stop.FEASIBLE, bound=factor * result.bound, message="It stopped.")

    monkeypatch.setattr("ceopt.diverse.subset.solve", stopped)
    found = select(POINTS, objective=objective, **further)
    bound = factor * exact.value if objective != "largest" else math.floor(factor * exact.value)
    assert (found.status, found.reason) == (Status.FEASIBLE, "It stopped.")
    assert found.value == pytest.approx(exact.value)
    assert found.bound == pytest.approx(bound)
    assert found.gap == pytest.approx(abs(bound - exact.value) / exact.value)


def test_a_count_is_proved_by_the_next_whole_number(monkeypatch: Any) -> None:
    monkeypatch.setattr(
        "ceopt.diverse.subset.solve",
        lambda *a, **o: replace(r := solve(*a, **o), status=Stop.FEASIBLE, bound=r.bound + 0.9),
    )
    found = select(POINTS, objective="largest", beta=1.0)
    assert (found.status, found.bound, found.reason) == (Status.OPTIMAL, found.value, "")


def test_the_cheapest_of_a_set_that_is_not_proved_to_be_largest(monkeypatch: Any) -> None:
    exact = select(POINTS, objective="cheapest", beta=1.5, costs=np.abs(POINTS).sum(axis=1))
    largest = SubsetSearch.largest
    monkeypatch.setattr(
        SubsetSearch, "largest", lambda self, beta: replace(largest(self, beta), status=Status.FEASIBLE)
    )
    found = select(POINTS, objective="cheapest", beta=1.5, costs=np.abs(POINTS).sum(axis=1))
    assert (found.status, found.bound, found.value) == (Status.FEASIBLE, None, pytest.approx(exact.value))
    assert found.reason == f"That no more than {len(exact)} points are so far apart was not proved."


def values(points: np.ndarray) -> dict[str, Callable[[Any], np.ndarray]]:
    d = np.linalg.norm(points[:, None] - points[None], axis=2)
    kernel = 1.0 / (1.0 + d)
    return {
        "max_sum": sum_of_distances(d),
        "max_min": least_distance(d),
        "determinant": lambda sets: np.linalg.det(kernel[sets[:, :, None], sets[:, None, :]]),
    }


@given(seed=st.integers(0, 10_000), k=st.integers(2, 5), objective=st.sampled_from(BY_K))
def test_swaps_never_lose_and_end_where_none_helps(seed: int, k: int, objective: str) -> None:
    points = np.random.default_rng(seed).normal(size=(9, 2))
    value = values(points)[objective]
    greedy = greedy_subset(9, k, value)
    chosen = improved(greedy, 9, value)
    now = worth(points, tuple(chosen), objective, "l2")
    assert now >= worth(points, tuple(greedy), objective, "l2") - 1e-12
    for out, new in itertools.product(chosen, set(range(9)) - set(chosen)):
        swapped = tuple(sorted({*chosen, new} - {out}))
        assert worth(points, swapped, objective, "l2") <= now * (1.0 + 1e-9)


def test_swaps_find_the_best_determinant_of_most_small_pools() -> None:
    hits = 0
    for seed in range(40):
        points = np.random.default_rng(seed).normal(size=(9, 2))
        value = values(points)["determinant"]
        sets = np.array(list(itertools.combinations(range(9), 4)))
        chosen = improved(greedy_subset(9, 4, value), 9, value)
        hits += value(np.array([chosen]))[0] >= in_parts(value, sets).max() * (1.0 - 1e-9)
    assert hits >= 30


def test_swaps_repair_a_greedy_choice() -> None:
    """The ends of a line are the best pair, but three of the corners are better beside each other."""
    points = np.array([[0.0, 0.0], [10.0, 0.0], [5.0, 8.0], [0.5, 0.1]])
    value = values(points)["max_sum"]
    assert improved([0, 1, 3], 4, value) == [0, 1, 2]
    with until(time.perf_counter() - 1.0):
        assert improved([0, 1, 3], 4, value) == [0, 1, 3]


@pytest.mark.parametrize(
    ("objective", "further"),
    [
        ("max_sum", {"k": 4}),
        ("max_min", {"k": 4}),
        ("largest", {"beta": 1.0}),
        ("cheapest", {"beta": 1.0, "costs": np.ones(12)}),
    ],
)
def test_what_is_in_hand_comes_back_when_the_time_ends(objective: str, further: Any) -> None:
    found = select(POINTS, objective=objective, time_limit_s=1e-9, **further)
    assert found.status is Status.FEASIBLE
    assert len(found) == further.get("k", len(found)) > 0
    assert found.reason
    if objective == "max_min":
        assert found.value <= found.bound


def test_nothing_in_hand_when_the_time_ends_is_said() -> None:
    found = select(POINTS, 4, objective="cheapest", beta=1.0, costs=np.ones(12), time_limit_s=1e-9)
    assert (found.status, found.value, len(found), found.gap) == (Status.TIME_LIMIT, None, 0, None)


# ---- edges -----------------------------------------------------------------------------------------------------------
def test_one_point_has_no_distance() -> None:
    found = select(POINTS, 1, objective="max_min")
    assert (len(found), found.status) == (1, "optimal")
    assert math.isnan(found.value)
    assert found.reason == "One point has no distance to another."
    assert select(POINTS, 1).value == 0.0
    assert select(POINTS, 1, objective="determinant").value == 1.0


def test_too_few_different_points_are_said() -> None:
    twins = [[0, 0], [0, 0], [3, 4]]
    for objective in ("max_min", "determinant"):
        found = select(twins, 3, objective=objective)
        assert (found.value, found.status) == (pytest.approx(0.0), Status.OPTIMAL)
        assert found.reason == "Any 3 of the 3 points have two that are at distance 0."
    assert select(twins, objective="largest", beta=1e-6).value == 2


def test_a_selection_is_a_result_that_cannot_be_changed() -> None:
    found = select(POINTS, 3)
    assert POINTS[found.indices].shape == (3, 3)
    with pytest.raises(ValueError, match="read-only"):
        found.indices[0] = 1
    with pytest.raises(AttributeError):
        found.value = 1.0
    again = select(POINTS, 3)
    assert again.indices.tolist() == found.indices.tolist()

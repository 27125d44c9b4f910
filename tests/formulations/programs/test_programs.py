"""Every published program: what it states, its files, its optimum on every solver; those over pools by enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st
from rowtext import rows, text, variables

from ceopt import CeoptError
from ceopt.formulations import programs
from ceopt.formulations.predictors import ReluNetwork
from ceopt.formulations.programs.subset import clique_cover, least_distance_bound
from ceopt.solvers import Status, compile_model, manifest_of, model_summary, read, solve, write
from ceopt.solvers.registry import SOLVERS

#: Points on a line at 0, 1, 2 and 4.
LINE = [[0, 1, 2, 4], [1, 0, 1, 3], [2, 1, 0, 2], [4, 3, 2, 0]]

#: The validity of one score at worst: mean 2, deviation 1, radius 0.5 (the closed form).
WORST = ((2.0 * math.sqrt(5.0 - 0.25) - 0.5) / 5.0) ** 2

#: Every program by name: one made of numbers, its optimum by hand, and what holds a cone-free or a conic program.
EXAMPLES: dict[str, tuple[Callable[[], Any], float, str]] = {
    "max_sum_subset": (lambda: programs.max_sum_subset(LINE, 3), 8.0, ".lp"),
    "max_sum_compact": (lambda: programs.max_sum_compact(LINE, 3), 8.0, ".lp"),
    "max_min_subset": (lambda: programs.max_min_subset(LINE, 3), 2.0, ".lp"),
    "largest_subset": (lambda: programs.largest_subset(LINE, 2.0), 3.0, ".lp"),
    "cheapest_subset": (lambda: programs.cheapest_subset(LINE, [5.0, 1.0, 4.0, 2.5], 2, 2.0), 3.5, ".lp"),
    "copa_plan": (
        lambda: programs.copa_plan(
            [-1], [1], [[1]], n=2, validity_weight=0.25, diversity_weight=2, margin=1, smoothing=0
        ),
        0.75,
        ".lp",
    ),
    "copa_plan_alike": (lambda: programs.copa_plan_alike([-1], [1], [[1]], radius=0.5, margin=1), 2.0, ".cbf"),
    "data_shift": (
        lambda: programs.data_shift([[1.5]], [1], [2], radius=0.4, regularization=0.5, shift="grid", intercept=False),
        3.8 / 4.11,  # w = z / (z^2 + 1/2) at z = 1.9
        ".lp",
    ),
    "minimax_machine": (
        lambda: programs.minimax_machine([0], [[1]], [4], [[1]], divergence="bures", radius=(0.25, 0)),
        0.625,
        ".cbf",
    ),
    "gelbrich_distance": (lambda: programs.gelbrich_distance([0], [[1]], [2], [[9]]), 8.0, ".cbf"),
    "validity_lower": (lambda: programs.validity_lower([[1]], [2], [[1]], 0.5), WORST, ".cbf"),
    "validity_lower_arrow": (lambda: programs.validity_lower_arrow([[1]], [2], [[1]], 0.5), WORST, ".cbf"),
    "validity_lower_coupled": (lambda: programs.validity_lower_coupled([[1]], [2], [[1]], 0.5), WORST, ".cbf"),
    "validity_lower_dual": (lambda: programs.validity_lower_dual([[1]], [2], [[1]], 0.5), WORST, ".cbf"),
    "validity_lower_nonlinear": (lambda: programs.validity_lower_nonlinear([[1]], [2], [[1]]), 0.8, ".lp"),
    "validity_upper": (lambda: programs.validity_upper([[1]], [-2], [[1]], 0.5), 1.0 - WORST, ".cbf"),
    "validity_upper_coupled": (lambda: programs.validity_upper_coupled([[1]], [-2], [[1]], 0.5), 1.0 - WORST, ".cbf"),
    "validity_upper_moment": (lambda: programs.validity_upper_moment([[1]], [-2], [[1]], 0.5), 1.0 - WORST, ".cbf"),
    "validity_upper_scalar": (lambda: programs.validity_upper_scalar([[1]], [-2], [[1]]), 0.5, ".cbf"),
    "requirement_correction": (lambda: programs.requirement_correction([[-2, 1], [1, 3]], [2, 1], 1), 3.2, ".lp"),
    "mahalanobis_correction": (
        lambda: programs.mahalanobis_correction([1, 1], [0, 1], [[1, 0], [0, 1]], perturbation=1),
        1.0,
        ".cbf",
    ),
    "robust_projection": (lambda: programs.robust_projection([0], [2], -1, radius=0.5), 2.0 / 3.0, ".cbf"),
    "roar": (lambda: programs.roar([0], [2], -1, radius=0.5, loss="hinge"), 1.0 / 6.0, ".lp"),
    "wachter": (
        lambda: programs.wachter(
            [0.5], ReluNetwork([[[1.0], [-1.0]], [[1.0, 1.0]]], [[0.0, 0.0], [-2.0]]), lower=-3, upper=3
        ),
        1.5,
        ".lp",
    ),
    "robust_improvement": (
        lambda: programs.robust_improvement(
            [1, 1], [1, 0], [[1, 0], [0, 0]], kappa=0.5, perturbation=1, radius=0.1, fixed=[1]
        ),
        0.75,
        ".cbf",
    ),
}
each = pytest.mark.parametrize("name", EXAMPLES)


# ---- the battery -----------------------------------------------------------------------------------------------------
def test_every_program_has_an_example() -> None:
    assert set(EXAMPLES) == set(programs.__all__), "Add an example of the program, so that its battery runs."


@each
def test_a_program_says_what_it_is(name: str) -> None:
    model = EXAMPLES[name][0]()
    manifest = manifest_of(model)
    assert model.name == name
    assert manifest is not None
    assert manifest.title
    assert manifest.formula
    assert manifest.reference
    summary = model_summary(model)
    assert summary["title"].iloc[0] == manifest.title  # below it a model that is embedded, if there is one
    assert summary["variables"].sum() == len(compile_model(model).columns)


@pytest.mark.long(every=6)
@pytest.mark.parametrize(
    ("name", "solver"),
    [
        (name, solver)
        for name, (build, _, _) in EXAMPLES.items()
        for solver, data in SOLVERS.items()
        if data.is_installed and data.is_licensed and compile_model(build()).problem_class in data.classes
    ],
)
def test_a_program_has_its_optimum_on_every_solver(name: str, solver: str) -> None:
    build, expected, _ = EXAMPLES[name]
    result = solve(build(), solver)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(expected, abs=1e-6)
    assert result.bound == pytest.approx(expected, abs=1e-5)


@pytest.mark.long(every=2)
@each
def test_a_program_survives_its_file(name: str, tmp_path: Path) -> None:
    build, expected, suffix = EXAMPLES[name]
    write(build(), tmp_path / f"program{suffix}")
    again = read(tmp_path / f"program{suffix}")
    assert len(compile_model(again).columns) == len(compile_model(build()).columns)
    assert solve(again).objective == pytest.approx(expected, abs=1e-6)


# ---- rows ------------------------------------------------------------------------------------------------------------
THREE = [[0, 1, 3], [1, 0, 2], [3, 2, 0]]


def test_rows_of_max_sum_by_pairs() -> None:
    model = programs.max_sum_subset(THREE, 2)
    assert rows(model) == sorted(
        ["+1 y[0] +1 y[1] +1 y[2] = 2"]
        + [f"-1 y[{p}] +1 z[{pair}] <= 0" for p, pair in ((0, "0,1"), (0, "0,2"), (1, "1,2"))]
        + [f"-1 y[{q}] +1 z[{pair}] <= 0" for q, pair in ((1, "0,1"), (2, "0,2"), (2, "1,2"))]
    )
    assert text(model.total.expr) == "+1 z[0,1] +3 z[0,2] +2 z[1,2]"
    assert variables(model) == {f"y[{p}]": "Binary [0, 1]" for p in range(3)} | {
        f"z[{pair}]": "Reals [0, 1]" for pair in ("0,1", "0,2", "1,2")
    }
    assert model.total.sense == -1


def test_rows_of_max_sum_by_points() -> None:
    model = programs.max_sum_compact(LINE, 2)
    assert rows(model, "count") == ["+1 y[0] +1 y[1] +1 y[2] +1 y[3] = 2"]
    most = (4, 3, 2, 4)  # the one other point that is farthest
    assert rows(model, "if_chosen") == [f"+1 w[{p}] -{u} y[{p}] <= 0" for p, u in enumerate(most)]
    assert rows(model, "to_chosen") == [  # least of two others: 1 + 2, 1 + 1, 1 + 2, 2 + 3
        "+1 w[0] -3 y[0] -1 y[1] -2 y[2] -4 y[3] <= -3",
        "+1 w[1] -1 y[0] -2 y[1] -1 y[2] -3 y[3] <= -2",
        "+1 w[2] -2 y[0] -1 y[1] -3 y[2] -2 y[3] <= -3",
        "+1 w[3] -4 y[0] -3 y[1] -2 y[2] -5 y[3] <= -5",
    ]
    assert text(model.total.expr) == "+0.5 w[0] +0.5 w[1] +0.5 w[2] +0.5 w[3]"
    assert variables(model)["w[0]"] == "NonNegativeReals [0, inf]"


def test_rows_of_max_min() -> None:
    """Of three points, r-bar is the third greatest of 2, 1, 2 and 3: no three have more than 2."""
    model = programs.max_min_subset(LINE, 3)
    assert rows(model, "apart") == ["+1 r +1 y[0] +1 y[1] <= 3", "+1 r +1 y[1] +1 y[2] <= 3"]
    assert rows(model, "count") == ["+1 y[0] +1 y[1] +1 y[2] +1 y[3] = 3"]
    assert variables(model)["r"] == "Reals [0, 2]"
    assert (text(model.least.expr), model.least.sense) == ("+1 r", -1)


def test_no_three_points_are_farther_apart_than_the_bound() -> None:
    """Of points at 0, 3, 10 and 11 the second greatest distances are 10, 7, 7 and 8, the third of these is 7."""
    line = np.array([0.0, 3.0, 10.0, 11.0])
    assert least_distance_bound(np.abs(line[:, None] - line), 3) == 7.0


def test_rows_of_points_apart() -> None:
    pairs = ["+1 y[0] +1 y[1] <= 1", "+1 y[0] +1 y[2] <= 1", "+1 y[1] +1 y[2] <= 1", "+1 y[2] +1 y[3] <= 1"]
    cliques = ["+1 y[0] +1 y[1] +1 y[2] <= 1", "+1 y[2] +1 y[3] <= 1"]
    assert rows(programs.largest_subset(LINE, 2.5)) == pairs
    assert rows(programs.largest_subset(LINE, 2.5, cliques=True)) == cliques
    assert rows(programs.largest_subset(LINE, 1.0)) == []  # exactly beta is apart
    model = programs.cheapest_subset(LINE, [3, 1, 4, 2], 2, 2.5)
    assert rows(model) == sorted(["+1 y[0] +1 y[1] +1 y[2] +1 y[3] = 2", *pairs])
    assert (text(model.cost.expr), model.cost.sense) == ("+3 y[0] +1 y[1] +4 y[2] +2 y[3]", 1)
    model = programs.cheapest_subset(LINE, [3, 1, 4, 2], 2, 2.5, cliques=True)
    assert rows(model, "clique") == cliques


# ---- enumeration -----------------------------------------------------------------------------------------------------
@st.composite
def pools(draw: st.DrawFn) -> np.ndarray:
    """Distances of some points of a small lattice, duplicates and ties included."""
    points = np.array(draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=7)))
    return np.linalg.norm(points[:, None] - points[None], axis=2)


def subsets(n: int, k: int) -> Any:
    return itertools.combinations(range(n), k)


def inside(d: np.ndarray, chosen: Any) -> list[float]:
    return [d[p, q] for p, q in itertools.combinations(chosen, 2)]


@draws(25)
@example(d=np.zeros((3, 3)), part=0.5)
@example(d=np.array([[0.0, 3.0], [3.0, 0.0]]), part=1.0)
@given(d=pools(), part=st.floats(0.0, 1.0))
def test_the_dispersions_are_those_of_enumeration(d: np.ndarray, part: float) -> None:
    n = len(d)
    k = 1 + round(part * (n - 1))
    most = max(sum(inside(d, chosen)) for chosen in subsets(n, k))
    for program in (programs.max_sum_subset, programs.max_sum_compact):
        assert solve(program(d, k), relative_gap=1e-9).objective == pytest.approx(most, abs=1e-6)
    if k > 1:
        least = max(min(inside(d, chosen)) for chosen in subsets(n, k))
        assert solve(programs.max_min_subset(d, k), relative_gap=1e-9).objective == pytest.approx(least, abs=1e-6)
        assert least_distance_bound(d, k) >= least


@draws(25)
@given(
    d=pools(), beta=st.integers(0, 5), costs=st.lists(st.integers(-3, 9), min_size=7, max_size=7), k=st.integers(1, 7)
)
def test_points_apart_are_those_of_enumeration(d: np.ndarray, beta: float, costs: list[int], k: int) -> None:
    n, k = len(d), min(k, len(d))
    apart = [c for size in range(1, n + 1) for c in subsets(n, size) if all(x >= beta for x in inside(d, c))]
    prices = [sum(costs[p] for p in chosen) for chosen in apart if len(chosen) == k]
    for cliques in (False, True):
        assert solve(programs.largest_subset(d, beta, cliques=cliques)).objective == max(map(len, apart))
        result = solve(programs.cheapest_subset(d, costs[:n], k, beta, cliques=cliques))
        assert (result.status is Status.INFEASIBLE) == (not prices)
        assert result.objective == (pytest.approx(min(prices)) if prices else None)


@given(n=st.integers(2, 9), data=st.data())
def test_cliques_hold_each_close_pair_and_no_other(n: int, data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.sampled_from(list(subsets(n, 2))), unique=True))
    sets = list(clique_cover(n, pairs))
    assert {pair for clique in sets for pair in itertools.combinations(clique, 2)} == set(pairs)
    for clique in sets:  # none of them could hold another point
        assert not any(all(tuple(sorted((p, o))) in pairs for p in clique) for o in set(range(n)) - set(clique))


def test_cliques_prove_what_pairs_leave_open() -> None:
    """Nine points in three heaps: half of each meets all rows of pairs, and makes 4.5 of them."""
    d = [[float(p // 3 != q // 3) for q in range(9)] for p in range(9)]
    bounds = {}
    for cliques in (False, True):
        model = programs.largest_subset(d, 1.0, cliques=cliques)
        for y in model.y.values():
            y.domain = pyo.UnitInterval
        bounds[cliques] = solve(model).objective
    assert bounds == {False: pytest.approx(4.5), True: pytest.approx(3.0)}


# ---- bad input -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: programs.max_sum_subset(LINE, 5), "k to be a whole number from 1 to 4, but k is 5"),
        (lambda: programs.max_sum_compact(LINE, 0), "k to be a whole number from 1 to 4, but k is 0"),
        (lambda: programs.max_min_subset(LINE, 1), "k to be a whole number from 2 to 4, but k is 1"),
        (lambda: programs.max_sum_subset(LINE, 2.0), "k is 2.0"),
        (lambda: programs.max_sum_subset([], 1), "distances of shape n by n"),
        (lambda: programs.max_sum_subset(np.zeros((0, 0)), 1), "at least one point"),
        (lambda: programs.max_sum_subset(np.zeros((2, 3)), 1), "a square matrix"),
        (lambda: programs.max_sum_subset([["a", "b"]], 1), "numbers as distances"),
        (lambda: programs.max_sum_subset([[0, np.nan], [np.nan, 0]], 1), r"distances\[0, 1\] is nan"),
        (lambda: programs.max_sum_subset([[0, 1], [2, 0]], 1), "of points 0 and 1 differ by direction"),
        (lambda: programs.max_sum_subset([[0, -1], [-1, 0]], 1), "of points 0 and 1 are negative"),
        (lambda: programs.largest_subset(LINE, -0.1), "beta to be a number at least 0, but beta is -0.1"),
        (lambda: programs.largest_subset(LINE, float("nan")), "beta is nan"),
        (lambda: programs.cheapest_subset(LINE, [1, 2], 2, 1.0), "costs of shape 4"),
        (lambda: programs.cheapest_subset(LINE, [1, 2, np.inf, 3], 2, 1.0), r"costs\[2\] is inf"),
    ],
)
def test_what_makes_no_program_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(CeoptError, match=message):
        call()


def test_the_diagonal_is_not_read() -> None:
    d = np.array(LINE, dtype=float)
    np.fill_diagonal(d, -7.0)
    for program in (programs.max_sum_subset, programs.max_sum_compact, programs.max_min_subset):
        assert rows(program(d, 2)) == rows(program(LINE, 2))
    assert d[0, 0] == -7.0  # the caller's own matrix stays

"""The exact method: against a solver, its proofs by a dual point of the test's own, edges, ties, great scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from ceopt.formulations.programs.minimax import factor_of
from ceopt.formulations.programs.parts import sum_of
from ceopt.solvers import solve
from ceopt.solvers.cones import soc
from ceopt.surrogates.minimax import (
    LeastNormSum,
    least_norm_sum,
    least_spread_then,
    norms_of,
    polished,
    separating_weights,
)


def semidefinite(rng: Any, d: int, rank: int) -> np.ndarray:
    factor = rng.normal(size=(d, rank))
    return factor @ factor.T


def by_solver(a: np.ndarray, matrices: list[np.ndarray]) -> float:
    """The least sum by Clarabel, stated here."""
    model = pyo.ConcreteModel()
    model.w = pyo.Var(range(len(a)))
    model.t = pyo.Var(range(len(matrices)), domain=pyo.NonNegativeReals)
    w = list(model.w.values())
    model.unit = pyo.Constraint(expr=sum_of(w, a) == 1.0)
    model.near = pyo.ConstraintList()
    for t, matrix in zip(model.t.values(), matrices, strict=True):
        model.near.add(soc(t, [sum_of(w, column) for column in factor_of(matrix).T]) >= 0)
    model.total = pyo.Objective(expr=sum_of(model.t.values()))
    return float(solve(model, relative_gap=1e-9).objective)


def dual_bound(a: np.ndarray, matrices: list[np.ndarray], found: LeastNormSum) -> float:
    """A lower bound: a = sum F_i u_i with the u_i along F_i'w where these are not 0, the rest by least squares."""
    value = found.value
    left, at_zero = a.copy(), []
    for matrix, norm in zip(matrices, found.norms, strict=True):
        if norm > 0.0:
            left = left - matrix @ found.weights / norm / value
        else:
            at_zero.append(factor_of(matrix))
    longest = 1.0 / value
    if at_zero:
        u = np.linalg.lstsq(np.hstack(at_zero), left, rcond=None)[0]
        left = left - np.hstack(at_zero) @ u
        cuts = np.cumsum([factor.shape[1] for factor in at_zero])[:-1]
        longest = max(longest, *(float(np.linalg.norm(part)) for part in np.split(u, cuts)))
    assert np.linalg.norm(left) <= 1e-7 * np.linalg.norm(a)
    return 1.0 / longest


@draws(150)
@example(seed=3, d=1, ranks=(1, 1), length=0.0)
@example(seed=4, d=4, ranks=(1, 2), length=0.3)
@example(seed=5, d=3, ranks=(3, 1), length=0.0)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 6),
    ranks=st.tuples(st.integers(0, 6), st.integers(0, 6)),
    length=st.sampled_from([0.0, 0.01, 1.0]),
)
def test_the_least_sum_is_that_of_a_solver(seed: int, d: int, ranks: tuple[int, int], length: float) -> None:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=d)
    matrices = [semidefinite(rng, d, min(rank, d)) for rank in ranks]
    if length:
        matrices.append(length**2 * np.eye(d))
    found = least_norm_sum(a, matrices)
    assert found.is_proved
    assert a @ found.weights == pytest.approx(1.0, abs=1e-9)
    size = max(1.0, float(np.linalg.norm(found.weights)))
    assert norms_of(found.weights, matrices) == pytest.approx(found.norms, abs=1e-5 * size)  # roots of rounding
    assert found.value == pytest.approx(by_solver(a, matrices), abs=1e-6, rel=1e-6)


@draws(100)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 30), length=st.sampled_from([0.0, 0.1, 10.0]))
def test_a_definite_optimum_is_proved_by_the_dual_and_stationary(seed: int, d: int, length: float) -> None:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=d)
    matrices = [semidefinite(rng, d, d + 3) * 10.0 ** rng.integers(-4, 5) for _ in range(2)]
    if length:
        matrices.append(length**2 * np.eye(d))
    found = least_norm_sum(a, matrices)
    assert found.gap <= 1e-12
    assert dual_bound(a, matrices, found) == pytest.approx(found.value, rel=1e-9)
    slope = sum(matrix @ found.weights / norm for matrix, norm in zip(matrices, found.norms, strict=True))
    assert slope == pytest.approx(found.value * a, abs=1e-7 * found.value * np.linalg.norm(a))


def test_one_matrix_is_a_linear_system() -> None:
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    found = least_norm_sum(np.array([1.0, 2.0]), [matrix])
    z = np.linalg.solve(matrix, [1.0, 2.0])
    assert found.weights == pytest.approx(z / (z @ [1.0, 2.0]), abs=1e-14)
    assert found.gap <= 1e-14


def test_multiples_of_one_matrix_need_one_step() -> None:
    rng = np.random.default_rng(1)
    matrix, a = semidefinite(rng, 5, 7), rng.normal(size=5)
    found = least_norm_sum(a, [matrix, 1e6 * matrix])
    z = np.linalg.solve(matrix, a)
    assert found.weights == pytest.approx(z / (a @ z), rel=1e-9)
    assert found.norms[1] == pytest.approx(1e3 * found.norms[0])


# ---- edges -----------------------------------------------------------------------------------------------------------
def test_an_edge_is_exact() -> None:
    """2 |w_1| + |w| over w_1 + w_2 = 1 is least at (0, 1), where the first norm is 0."""
    a, matrices = np.ones(2), [np.diag([4.0, 0.0]), np.eye(2)]
    found = least_norm_sum(a, matrices)
    assert found.weights.tolist() == pytest.approx([0.0, 1.0], abs=1e-12)
    assert found.value == pytest.approx(1.0, abs=1e-12)
    assert dual_bound(a, matrices, LeastNormSum(found.weights, np.array([0.0, 1.0]), 0.0)) == pytest.approx(1.0)


def test_an_edge_that_is_flat() -> None:
    """|w_1| + |w| is least at (0, 1) too, but grows with the square of w_1 only."""
    found = least_norm_sum(np.ones(2), [np.diag([1.0, 0.0]), np.eye(2)])
    assert found.value == pytest.approx(1.0, abs=1e-11)
    assert found.weights.tolist() == pytest.approx([0.0, 1.0], abs=1e-5)


def test_an_edge_where_two_of_three_norms_are_0() -> None:
    a = np.array([1.0, 1.0, 1.0])
    matrices = [np.diag([4.0, 0.0, 0.0]), np.diag([0.0, 9.0, 0.0]), 0.25 * np.eye(3)]
    found = least_norm_sum(a, matrices)
    assert found.is_proved
    assert found.weights == pytest.approx([0.0, 0.0, 1.0], abs=1e-12)
    assert found.norms == pytest.approx([0.0, 0.0, 0.5], abs=1e-12)


def test_a_tie_at_an_edge() -> None:
    """|w_1| + |w_2| over w_1 + w_2 = 1: all between are best."""
    found = least_norm_sum(np.ones(2), [np.diag([1.0, 0.0]), np.diag([0.0, 1.0])])
    assert found.is_proved
    assert found.value == pytest.approx(1.0, abs=1e-12)


def test_what_separates_has_no_norm() -> None:
    a = np.array([2.0, 0.0, 1.0])
    matrices = [np.diag([0.0, 1.0, 1.0]), np.diag([0.0, 2.0, 0.0])]
    found = least_norm_sum(a, matrices)
    assert found.norms.tolist() == [0.0, 0.0]
    assert found.weights.tolist() == pytest.approx([0.5, 0.0, 0.0])
    assert separating_weights(a, matrices) == pytest.approx(found.weights)
    assert separating_weights(np.array([0.0, 1.0, 1.0]), matrices) is None


def test_a_common_null_space_without_the_means_gets_no_weight() -> None:
    """Columns of a category add up to 1 in both classes: of all best slopes, the shortest."""
    rng = np.random.default_rng(2)
    rows = np.eye(3)[rng.integers(0, 3, size=40)]
    more = np.eye(3)[rng.choice(3, p=[0.2, 0.3, 0.5], size=40)]
    matrices = [np.cov(rows.T), np.cov(more.T)]
    a = more.mean(axis=0) - rows.mean(axis=0)
    found = least_norm_sum(a, matrices)
    assert found.is_proved
    assert found.weights.sum() == pytest.approx(0.0, abs=1e-12)
    assert found.value == pytest.approx(by_solver(a, matrices), rel=1e-6)


def test_units_of_the_columns_do_not_matter() -> None:
    rng = np.random.default_rng(3)
    a = rng.normal(size=4)
    matrices = [semidefinite(rng, 4, 2), semidefinite(rng, 4, 3)]
    units = np.array([1e-6, 1.0, 1e4, 1e7])
    near = least_norm_sum(a, matrices)
    far = least_norm_sum(a * units, [matrix * np.outer(units, units) for matrix in matrices])
    assert far.is_proved
    assert far.value == pytest.approx(near.value, rel=1e-9)
    assert far.weights * units == pytest.approx(near.weights, rel=1e-6)


@pytest.mark.parametrize("share", [1e-6, 1e-12, 1e-40, 1e-290])
def test_norms_of_very_different_sizes(share: float) -> None:
    rng = np.random.default_rng(4)
    a = rng.normal(size=5)
    great, small = semidefinite(rng, 5, 6), semidefinite(rng, 5, 6)
    found = least_norm_sum(a, [great, share * small])
    assert found.is_proved
    assert found.weights == pytest.approx(least_norm_sum(a, [great]).weights, abs=10 * np.sqrt(share) + 1e-9)
    assert found.norms[1] > 0.0


# ---- the rest --------------------------------------------------------------------------------------------------------
def test_a_solver_s_point_is_polished_and_a_wrong_one_is_kept() -> None:
    rng = np.random.default_rng(5)
    a, matrices = rng.normal(size=4), [semidefinite(rng, 4, 5), semidefinite(rng, 4, 5)]
    best = least_norm_sum(a, matrices)
    for noise, close in ((1e-5, True), (0.3, False)):
        w = best.weights + noise * rng.normal(size=4)
        w /= a @ w
        given = LeastNormSum(w, norms_of(w, matrices), 1e-9)
        found = polished(a, matrices, given)
        assert (found is not given) == close
        if close:
            assert found.weights == pytest.approx(best.weights, abs=1e-11)
    at_zero = LeastNormSum(best.weights, np.array([0.0, 1.0]), 1e-9)
    assert polished(a, matrices, at_zero) is at_zero


def test_the_first_spread_comes_before_the_second() -> None:
    a = np.array([1.0, 1.0, 1.0])
    first, second = np.diag([0.0, 0.0, 1.0]), np.diag([1.0, 3.0, 1.0])
    assert least_spread_then(a, first, second) == pytest.approx([0.75, 0.25, 0.0])
    outside = np.array([0.0, 0.0, 2.0])
    assert least_spread_then(outside, first, second) == pytest.approx([0.0, 0.0, 0.5])
    rng = np.random.default_rng(6)
    first, second = semidefinite(rng, 3, 2), semidefinite(rng, 3, 3)
    inside = first @ rng.normal(size=3)
    found = least_spread_then(inside, first, second)
    null = np.linalg.eigh(first)[1][:, 0]
    along = minimize(lambda t: (found + t * null) @ second @ (found + t * null), [0.3]).x
    assert along == pytest.approx([0.0], abs=1e-6)


def test_what_is_not_proved_says_so() -> None:
    """Columns in units 1e10 apart beside a length: beyond rounding, the sum that is returned is not called least."""
    assert not LeastNormSum(np.ones(1), np.ones(1), 1e-8).is_proved
    assert not LeastNormSum(np.ones(1), np.ones(1), np.inf).is_proved

"""The Gelbrich distance: golden numbers, the semidefinite program, a metric, and what it is in special cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from ceopt import CeoptError
from ceopt.formulations import programs
from ceopt.plans import gelbrich_distance
from ceopt.solvers import solve

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "gelbrich_distance.json").read_text())["instances"]


def moments(seed: int, d: int, rank: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(d, rank))
    return rng.normal(size=d), factor @ factor.T


pairs = st.tuples(st.integers(0, 10**6), st.integers(1, 5)).flatmap(
    lambda s: st.tuples(
        *(st.builds(moments, st.integers(0, 10**6), st.just(s[1]), st.integers(0, s[1])) for _ in "abc")
    )
)


@pytest.mark.parametrize("instance", [pytest.param(i, id=i["id"]) for i in GOLDEN])
def test_golden_numbers(instance: Any) -> None:
    p, expected, tol = instance["inputs"], instance["expected"], instance["tol"]
    a, b = (p["mu1"], p["Sigma1"]), (p["mu2"], p["Sigma2"])
    distance = gelbrich_distance(*a, *b)
    assert distance == pytest.approx(expected["distance"], abs=tol["distance"])
    apart = float(np.sum(np.subtract(a[0], b[0]) ** 2))
    assert distance**2 - apart == pytest.approx(expected["bures_squared"], abs=2e-6)
    squared = solve(programs.gelbrich_distance(*a, *b), relative_gap=1e-9).objective
    assert squared == pytest.approx(distance**2, abs=1e-6)
    trace = 0.5 * (np.trace(a[1]) + np.trace(b[1]) + apart - squared)
    assert trace == pytest.approx(expected["trace_C"], abs=tol["trace_C"])


def test_the_printed_formula() -> None:
    for seed in range(5):
        (m, s), (n, t) = moments(seed, 4, 4), moments(seed + 100, 4, 4)
        root = sqrtm(t)
        squared = np.sum((m - n) ** 2) + np.trace(s + t - 2 * sqrtm(root @ s @ root).real)
        assert gelbrich_distance(m, s, n, t) ** 2 == pytest.approx(squared, abs=1e-10)


@draws(40)
@given(pairs)
def test_it_is_a_metric(three: Any) -> None:
    a, b, c = three
    ab, ba, bc, ac = (gelbrich_distance(*p, *q) for p, q in ((a, b), (b, a), (b, c), (a, c)))
    assert ab == pytest.approx(ba, abs=1e-7)
    assert ac <= ab + bc + 1e-7
    assert gelbrich_distance(*a, *a) <= 1e-7


@draws(25)
@given(pairs, st.integers(0, 1000))
def test_it_is_the_programs_optimum_and_turns_with_the_axes(three: Any, seed: int) -> None:
    a, b, _ = three
    distance = gelbrich_distance(*a, *b)
    assert solve(programs.gelbrich_distance(*a, *b)).objective == pytest.approx(distance**2, abs=1e-5)
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(a[0]),) * 2))[0]
    turned = [(turn @ m, turn @ s @ turn.T) for m, s in (a, b)]
    assert gelbrich_distance(*turned[0], *turned[1]) == pytest.approx(distance, abs=1e-7)


def test_special_cases() -> None:
    assert gelbrich_distance([1], [[4]], [4], [[36]]) == pytest.approx(5.0, abs=1e-14)
    assert gelbrich_distance([0, 0], np.diag([4, 9]), [0, 0], np.diag([1, 1])) == pytest.approx(np.sqrt(5), abs=1e-14)
    assert gelbrich_distance([0, 3], np.zeros((2, 2)), [4, 0], np.zeros((2, 2))) == 5.0
    assert gelbrich_distance([0, 0], np.eye(2), [0, 0], np.zeros((2, 2))) == pytest.approx(np.sqrt(2), abs=1e-14)


def test_a_small_distance_keeps_its_digits() -> None:
    mean, covariance = moments(3, 6, 6)
    bent = np.eye(6) + 1e-9 * np.diag(np.arange(6.0))
    expected = 1e-9 * np.sqrt(np.trace(np.diag(np.arange(6.0)) @ covariance @ np.diag(np.arange(6.0))))
    assert gelbrich_distance(mean, covariance, mean, bent @ covariance @ bent) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [[1]], [0, 1], np.eye(2)), "second pair.*mean of shape 1"),
        (([0, 1], [[1]], [0], [[1]]), "first pair.*covariance of shape 2 by 2"),
        (([0, 1], [[1, 2], [0, 1]], [0, 1], np.eye(2)), "symmetric"),
        (([0, 1], np.eye(2), [0, 1], [[1, 2], [2, 1]]), "second pair.*semidefinite"),
        (([np.nan], [[1]], [0], [[1]]), r"mean\[0\] is nan"),
        (([0], [[np.inf]], [0], [[1]]), r"covariance\[0, 0\] is inf"),
    ],
)
@pytest.mark.parametrize("ask", [gelbrich_distance, programs.gelbrich_distance])
def test_what_are_no_moments_is_refused(ask: Any, arguments: Any, message: str) -> None:
    with pytest.raises(CeoptError, match=message):
        ask(*arguments)

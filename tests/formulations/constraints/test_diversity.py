"""Further answers: each no-good row gives the next entry of a ranking by enumeration; costs do not decrease."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import enumeration as by_hand
import numpy as np
import problems
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from problems import Problem, optimum, program, same

from ceopt.formulations.constraints.diversity import DIVERSITIES
from ceopt.formulations.recourse_program import RecourseProgram
from ceopt.formulations.space import Feature

N = 5


def successive(
    problem: Problem, how: str, formulation: str = "auto", *, order: Any = ("embed", "rules", "cost")
) -> list[Any]:
    """Return up to N (cost, point), excluding each before the next."""
    model, found = program(problem, formulation, order=order), []
    recourse = RecourseProgram(model, model.x, model.predictor, problem.margin)
    while len(found) < N:
        cost, point = optimum(model, problem)
        if cost is None or point is None:
            break
        found.append((cost, point))
        DIVERSITIES[how]().exclude(recourse, dict(zip(problem.space.names, point.tolist(), strict=True)))
    return found


def ranked(ranking: by_hand.Ranking, key: Callable[[Any], Any]) -> list[float]:
    """Return the least cost of each key, ascending."""
    least: dict[Any, float] = {}
    for point, cost in zip(ranking.points, ranking.costs.tolist(), strict=True):
        k = key(point)
        least[k] = min(cost, least.get(k, np.inf))
    return sorted(least.values())


def agrees(problem: Problem, found: list[Any], expected: list[float], key: Callable[[Any], Any]) -> None:
    costs = [cost for cost, _ in found]
    assert len(costs) == min(N, len(expected))
    assert all(same(a, b) for a, b in zip(costs, expected, strict=False)), f"{costs} {expected}"
    assert all(b >= a - 1e-6 for a, b in pairwise(costs))
    assert len({key(point) for _, point in found}) == len(found)
    assert problems.keeps(problem, np.array([point for _, point in found]).reshape(-1, len(problem.space))).all()


def support(problem: Problem) -> Callable[[Any], Any]:
    return lambda point: tuple(np.asarray(point) != problem.point)


def cell(problem: Problem, model: Any) -> Callable[[Any], Any]:
    """Key of a point: per column its cell between the cuts that the program knows, or its level."""
    numbers = {name: c.cells.keys for name, c in model.x.coordinates.items() if hasattr(c, "cells")}
    cuts = {name: [right for _, right in keys] for name, keys in numbers.items()}

    def one(feature: Feature, value: float) -> float:
        return value if feature.is_finite else float(np.searchsorted(cuts[feature.name], value, side="right"))

    return lambda point: tuple(one(f, v) for f, v in zip(problem.space, np.asarray(point).tolist(), strict=True))


@draws(60)
@given(problem=problems.tree_problems(most=3, linear=False))
def test_pool_of_cells(problem: Problem) -> None:
    key = cell(problem, program(problem))
    agrees(problem, successive(problem, "pool"), ranked(problems.enumerate_all(problem), key), key)


def represented(problem: Problem, model: Any) -> by_hand.Ranking:
    """Leave out moves that the program does not hold: of a number that no row reads."""
    key, home = cell(problem, model), cell(problem, model)(problem.point)
    free = [f.is_finite or model.x.coordinates[f.name].variable is not None for f in problem.space]
    ranking = problems.enumerate_all(problem)
    kept = [
        all(a or b != c or v == w for a, b, c, v, w in zip(free, key(p), home, p, problem.point, strict=True))
        for p in ranking.points
    ]
    return ranking.only(np.array(kept, dtype=bool))


LATTICE = ("integer", "even", "ordinal", "categorical", "binary", "flag")


def split_alone(problem: Problem) -> by_hand.Ranking:
    """Leave out moves of numbers that no tree splits."""
    free = [f.is_finite or len(problems.thresholds(problem.model, j)) > 0 for j, f in enumerate(problem.space)]
    ranking = problems.enumerate_all(problem)
    kept = [all(a or v == w for a, v, w in zip(free, p, problem.point, strict=True)) for p in ranking.points]
    return ranking.only(np.array(kept, dtype=bool))


@draws(40)
@given(problem=problems.tree_problems(kinds=LATTICE, most=3, linear=False))
def test_supports_without_coordinates(problem: Problem) -> None:
    """A move inside a cell is a change like any other, though no row reads it."""
    key = support(problem)
    agrees(problem, successive(problem, "support"), ranked(split_alone(problem), key), key)


@draws(50)
@given(problem=problems.affine_problems(LATTICE), how=st.sampled_from(["support", "pool"]))
def test_lattices(problem: Problem, how: str) -> None:
    """Without cuts a number differs as (un)changed, levels differ as levels (pool) or as (un)changed (support)."""
    if how == "support":
        key = support(problem)
    else:
        finite = [f.is_finite for f in problem.space]

        def key(point: Any) -> Any:
            changed = np.asarray(point) != problem.point
            return tuple(v if level else c for v, c, level in zip(point, changed, finite, strict=True))

    agrees(problem, successive(problem, how), ranked(represented(problem, program(problem)), key), key)


@pytest.mark.parametrize("formulation", ["misic", "leaf"])
@draws(15)
@given(problem=problems.tree_problems(most=2, linear=False))
def test_research_forms_differ_by_their_own_decisions(formulation: str, problem: Problem) -> None:
    found = successive(problem, "pool", formulation)
    costs = [cost for cost, _ in found]
    first = problems.enumerate_all(problem).best
    assert same(costs[0] if costs else None, first)
    assert all(b >= a - 1e-6 for a, b in pairwise(costs))
    keys = [tuple(problem.model.apply(by_hand.identity(problem.space, p[None, :]))[0]) + tuple(p) for _, p in found]
    assert len(set(keys)) == len(keys)

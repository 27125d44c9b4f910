"""The diversity of a plan: the determinant of the kernel of its distances, in quadratic rows."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from ceopt.formulations.programs.expressions import Floats, sum_of
from ceopt.formulations.programs.region import Distance, Region
from ceopt.formulations.programs.subset.pairs import pairs_of

__all__ = ["add_determinant", "squares_of"]


def add_determinant(model: Any, distance: Distance, region: Region, *, most: float, smoothing: float) -> None:
    """Add ``det``, the determinant of the kernel of the counterfactuals ``x``, no two of which are ``most`` apart.

    :func:`~ceopt.formulations.programs.copa_plan` says what the rows are.
    """
    n = 1 + max(j for j, _ in model.x)
    model.det = pyo.Var(bounds=(0.0, 1.0))
    if n > 1:
        _add_distances(model, n, distance, region, smoothing)
        most += smoothing * (len(region.lower) if distance.kind == "l1" else 1)
        for each in model.D.values():
            each.setub(most)
        model.K = pyo.Var(pairs_of(n), bounds=(1.0 / (1.0 + most), 1.0))
        model.kernel = pyo.Constraint(pairs_of(n), rule=lambda m, i, j: m.K[i, j] * (1.0 + m.D[i, j]) == 1.0)
    if n <= 2:
        square = model.K[0, 1] ** 2 if n == 2 else 0.0
        model.determinant = pyo.Constraint(expr=model.det + square == 1.0)
    elif n == 3:
        a = model.K[0, 1]
        b = model.K[0, 2]
        c = model.K[1, 2]
        model.p = pyo.Var(bounds=(0.0, 1.0))
        model.product = pyo.Constraint(expr=model.p - a * b == 0.0)
        model.determinant = pyo.Constraint(expr=model.det - 2.0 * model.p * c + a**2 + b**2 + c**2 == 1.0)
    else:
        _add_factor(model, n)


def _add_distances(model: Any, n: int, distance: Distance, region: Region, smoothing: float) -> None:
    """Add ``D`` of each pair; with "l1" the sum of the distances ``e`` of the columns."""
    d = len(region.lower)
    pairs = pairs_of(n)
    model.D = pyo.Var(pairs, domain=pyo.NonNegativeReals)
    if distance.kind == "l1":
        widths = region.upper - region.lower
        model.e = pyo.Var(pairs, range(d), bounds=lambda _, _i, _j, k: (0.0, float(widths[k]) + smoothing))

        def gap(m: Any, i: int, j: int, k: int) -> Any:
            return m.e[i, j, k] ** 2 - (m.x[i, k] - m.x[j, k]) ** 2 == smoothing**2

        def added_up(m: Any, i: int, j: int) -> Any:
            lengths = [m.e[i, j, k] for k in range(d)]
            return sum_of([*lengths, m.D[i, j]], [*[1.0] * d, -1.0]) == 0.0

        model.gap = pyo.Constraint(pairs, range(d), rule=gap)
        model.apart = pyo.Constraint(pairs, rule=added_up)
        return

    def apart(m: Any, i: int, j: int) -> Any:
        moved = [m.x[i, k] - m.x[j, k] for k in range(d)]
        if distance.factor is not None:
            moved = [_weighted_sum(column, moved) for column in distance.factor.T]
        return m.D[i, j] ** 2 - squares_of(moved) == smoothing**2

    model.apart = pyo.Constraint(pairs, rule=apart)


def _weighted_sum(weights: Floats, parts: list[Any]) -> Any:
    return sum(float(weight) * part for weight, part in zip(weights, parts, strict=True))


def _add_factor(model: Any, n: int) -> None:
    """Add a lower triangular factor of the kernel; the determinant is the product of its squared diagonal."""
    lower = [(i, j) for i in range(n) for j in range(i + 1)]
    model.T = pyo.Var(lower, bounds=lambda _, i, j: (0.0 if i == j else -1.0, 1.0))
    model.q = pyo.Var(range(n), bounds=(0.0, 1.0))
    model.p = pyo.Var(range(n), bounds=(0.0, 1.0))

    def factor(m: Any, i: int, j: int) -> Any:
        product = sum(m.T[i, k] * m.T[j, k] for k in range(j + 1))
        if i == j:
            return product == 1.0
        return product - m.K[j, i] == 0.0

    model.factor = pyo.Constraint(lower, rule=factor)
    model.square = pyo.Constraint(range(n), rule=lambda m, i: m.q[i] - m.T[i, i] ** 2 == 0.0)

    def chain(m: Any, i: int) -> Any:
        if i == 0:
            return m.p[i] - m.q[i] == 0.0
        return m.p[i] - m.p[i - 1] * m.q[i] == 0.0

    model.chain = pyo.Constraint(range(n), rule=chain)
    model.determinant = pyo.Constraint(expr=sum_of((model.det, model.p[n - 1]), (1.0, -1.0)) == 0.0)


def squares_of(parts: list[Any]) -> Any:
    """Return the sum of the squares of some expressions."""
    return sum(part**2 for part in parts)

"""The cells of a model by trying everything: shares nothing with the search but the description of the problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import enumeration as by_hand
import numpy as np
import problems
from numpy.typing import NDArray

import ceopt
from ceopt.formulations.predictors import Affine
from ceopt.formulations.targets import OtherThan

Floats = NDArray[np.float64]
#: The cell of a point, as something that can be compared.
Cell = tuple[Any, ...]


def cells_of(space: ceopt.FeatureSpace, model: Any, points: Floats) -> list[Cell]:
    """Return the cell of each point (n, d): levels, sides of every split, and whole numbers that a line reads."""
    columns: list[Any] = []
    for j, feature in enumerate(space):
        value = points[:, j]
        if feature.is_finite:
            columns.append(value)
        elif isinstance(model, Affine):
            if (feature.kind == "integer" or feature.step is not None) and model.weights[:, j].any():
                columns.append(value)
        else:
            seen = value.astype(model.input_dtype).astype(np.float64)
            columns += [seen <= at for at in sorted(set(problems.thresholds(model, j)))]
    table = np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1) if columns else points[:, :0]
    return [tuple(row) for row in table.tolist()]


def decides(problem: problems.Problem, points: Floats, margin: float | None) -> NDArray[np.bool_]:
    """Return where the decision meets the target with the margin; without one, where the model says so itself."""
    matrix = by_hand.identity(problem.space, points)
    slack = problems.slack(problem.model, problem.target, problem.model.score(matrix))
    if margin is not None:
        return slack >= margin - 1e-9
    target, labels = problem.target, problem.model.labels
    if labels is None or isinstance(target, ceopt.Probability):
        return slack >= 0.0
    away = {target.label} if isinstance(target, OtherThan) else set()
    wanted = set(labels) - away if away else set(target) if isinstance(target, set) else {target}
    return np.isin(problem.model.predict(matrix), list(wanted))


def near_cells(
    problem: problems.Problem, epsilon: float, margin: float | None, *, points: Floats | None = None
) -> dict[Cell, float]:
    """Return the least cost of every cell within epsilon of the least of all, by cell."""
    if points is None:
        points = problems.candidate_points(problem.space, problem.row, problem.model)
    points = points[decides(problem, points, margin) & problems.keeps(problem, points)]
    costs = np.broadcast_to(problem.price(by_hand.Moves(problem.space, points - problem.point)), len(points))
    best: dict[Cell, float] = {}
    for cell, cost in zip(cells_of(problem.space, problem.model, points), costs.tolist(), strict=True):
        best[cell] = min(cost, best.get(cell, np.inf))
    most = min(best.values(), default=0.0) + epsilon
    return {cell: cost for cell, cost in best.items() if cost <= most + 1e-9}


def assert_all_found(
    problem: problems.Problem,
    found: ceopt.SolutionSet,
    expected: dict[Cell, float],
    *,
    close: Callable[[float], Any],
    allowed: dict[Cell, float] | None = None,
) -> None:
    """Check a complete result against the cells that there are: one answer of each, at its least cost, in order.

    ``allowed`` has those too that may be there or not: at the threshold a program decides within its tolerance.
    """
    allowed = expected if allowed is None else allowed
    assert found.complete, found.reason
    if not expected:
        assert found.status == "infeasible", found.reason
        return
    points = problem.space.coordinates(found.to_frame())
    cells = cells_of(problem.space, problem.model, points)
    assert len(set(cells)) == len(cells), "two answers of one cell"
    assert expected.keys() <= set(cells) <= allowed.keys()
    for cell, answer in zip(cells, found, strict=True):
        assert answer.cost == close(allowed[cell])
        assert answer.verified
    costs = [answer.cost for answer in found]
    assert costs == sorted(costs)
    assert [answer.rank for answer in found] == list(range(1, len(found) + 1))

"""One counterfactual as Vars, and its distance from the factual as a cone or as rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.programs.region import Distance, Region
from ceopt.formulations.programs.subset.pairs import Floats, sum_of
from ceopt.solvers.cones import soc

__all__ = ["add_one_hot", "add_point", "affine_differences", "limits_of"]


def add_point(model: Any, factual: Floats, distance: Distance, region: Region) -> None:
    """Add ``x`` with its bounds and one-hot rows, and ``t``, at least its distance from ``factual``."""
    d = range(len(factual))
    binary = set(region.binary)
    model.x = pyo.Var(
        d, domain=lambda _, k: pyo.Binary if k in binary else pyo.Reals, bounds=lambda _, k: limits_of(region, k)
    )
    add_one_hot(model, region)
    model.t = pyo.Var(domain=pyo.NonNegativeReals)
    if distance.kind == "l2":
        model.near = pyo.Constraint(expr=soc(model.t, affine_differences(model.x, factual, distance)) >= 0)
        return
    model.m = pyo.Var(d, domain=pyo.NonNegativeReals)
    model.up = pyo.Constraint(d, rule=lambda m, k: sum_of((m.x[k], m.m[k]), (1.0, -1.0)) <= float(factual[k]))
    model.down = pyo.Constraint(d, rule=lambda m, k: sum_of((m.x[k], m.m[k]), (-1.0, -1.0)) <= -float(factual[k]))
    if distance.kind == "l1":
        model.near = pyo.Constraint(expr=sum_of([*model.m.values(), model.t], [*[1.0] * len(d), -1.0]) <= 0.0)
    else:
        model.near = pyo.Constraint(d, rule=lambda m, k: sum_of((m.m[k], m.t), (1.0, -1.0)) <= 0.0)


def add_one_hot(model: Any, region: Region) -> None:
    """Add the rows ``one_hot``: the columns of each group add up to 1."""
    model.one_hot = pyo.Constraint(
        range(len(region.groups)), rule=lambda m, g: sum_of([m.x[k] for k in region.groups[g]]) == 1.0
    )


def affine_differences(x: Any, factual: Floats, distance: Distance) -> list[Any]:
    """Return the entries of ``factor' (x - factual)``, whose Euclidean norm is the distance."""
    d = len(factual)
    if distance.factor is None:
        factor = np.eye(d)
    else:
        factor = distance.factor
    if hasattr(x, "values"):
        variables = list(x.values())
    else:
        variables = list(x)
    if distance.factor is None:
        return [sum_of([variables[k]], [1.0], -float(factual[k])) for k in range(d)]
    return [sum_of(variables, column, -float(column @ factual)) for column in factor.T]


def limits_of(region: Region, k: int) -> tuple[float | None, float | None]:
    """Return the bounds of column k, None for none."""
    low = float(region.lower[k])
    high = float(region.upper[k])
    return (low if np.isfinite(low) else None, high if np.isfinite(high) else None)

"""A distribution in parts: its masses add up to one, and its moments are within the ball."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from ceopt.formulations.programs.gelbrich import add_ball
from ceopt.formulations.programs.subset.pairs import sum_of
from ceopt.formulations.programs.validity.case import ValidityCase, bordered, symmetric

__all__ = ["add_moments"]


def add_moments(model: Any, case: ValidityCase) -> None:
    r"""Join the parts of ``model``: ``weight[j]`` of the mass, with ``z[j]`` its part of the mean.

    .. math::
        \begin{pmatrix} M & z_0 \dots z_n \\ \cdot & \operatorname{Diag}(\lambda) \end{pmatrix} \succeq 0, \quad
        (\mu, M) \in \text{ball}, \quad \mu = \sum_j z_j

    as ``M``, ``mean``, ``ball`` and the cone ``parts``; for radius 0, ``centred`` rows and M = I.
    """
    count = len(model.weight)
    k = case.normals.shape[1]
    total = [sum_of([model.z[j, a] for j in range(count)]) for a in range(k)]
    if case.is_fixed:
        model.centred = pyo.Constraint(range(k), rule=lambda _m, a: total[a] == 0.0)
    else:
        model.M = symmetric(k)
        model.mean = pyo.Expression(range(k), rule=lambda _m, a: total[a])
        model.ball = pyo.Block()
        add_ball(model.ball, case.moments, case.radius, lambda a: model.mean[a], model.M)

    def second(a: int, b: int) -> Any:
        return float(a == b) if case.is_fixed else model.M[a, b]

    def masses(i: int, j: int) -> Any:
        return model.weight[i] if i == j else 0.0

    parts = bordered(second, k, lambda a, j: model.z[j, a], count, masses)
    model.parts = pyo.Constraint(expr=parts >= 0)

"""A mixture: a distribution in parts, whose joint moments are within the ball."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from ceopt.formulations.programs.expressions import bordered, sum_of, symmetric
from ceopt.formulations.programs.gelbrich import add_ball
from ceopt.formulations.programs.validity.events import ValidityEvents

__all__ = ["add_mixture_moments"]


def add_mixture_moments(model: Any, events: ValidityEvents) -> None:
    r"""Join the parts of ``model``: ``weight[j]`` of the mass, with ``z[j]`` its part of the mean.

    .. math::
        \begin{pmatrix} M & z_0 \dots z_n \\ \cdot & \operatorname{Diag}(\lambda) \end{pmatrix} \succeq 0, \quad
        (\mu, M) \in \text{ball}, \quad \mu = \sum_j z_j

    as ``M``, ``mean``, ``ball`` and the cone ``parts``; for radius 0, ``centred`` rows and M = I.
    """
    count = len(model.weight)
    k = events.normals.shape[1]
    total = [sum_of([model.z[j, a] for j in range(count)]) for a in range(k)]
    if events.is_fixed:
        model.centred = pyo.Constraint(range(k), rule=lambda _m, a: total[a] == 0.0)
    else:
        model.M = symmetric(k)
        model.mean = pyo.Expression(range(k), rule=lambda _m, a: total[a])
        model.ball = pyo.Block()
        add_ball(model.ball, events.moments, events.radius, lambda a: model.mean[a], model.M)

    def second(a: int, b: int) -> Any:
        return float(a == b) if events.is_fixed else model.M[a, b]

    def masses(i: int, j: int) -> Any:
        return model.weight[i] if i == j else 0.0

    parts = bordered(second, k, lambda a, j: model.z[j, a], count, masses)
    model.parts = pyo.Constraint(expr=parts >= 0)

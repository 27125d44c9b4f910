r"""Wachter's recourse on a ReLU network, to the global optimum: branch and bound over the score.

The objective is :math:`g(f(x)) + \text{cost}(x)` with :math:`g(s) = \lambda (\sigma(s) - \tilde y)^2`. On an interval
[a, b] of scores the chord of g less :math:`M (b - a)^2 / 8`, M bounding the size of the second derivative, is nowhere
above g; with it in place of g the program is a MILP whose optimum bounds the interval from below. The interval of the
least bound is cut at the score of its point, until no interval can hold a better one.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from scipy.special import expit

from ceopt.formulations import programs
from ceopt.formulations.predictors.representation import ReluNetwork
from ceopt.formulations.programs.parts import sum_of
from ceopt.solvers import solve
from ceopt.tolerances import PENALTY_GAP

__all__ = ["NetworkPenalty", "least_penalty"]

Floats = NDArray[np.float64]

#: Greatest size of the second derivative of the logistic function, and greatest square of the first.
_BEND: Final = 1.0 / (6.0 * np.sqrt(3.0))
_SLOPE_SQUARED: Final = 1.0 / 16.0
_LEAST_SHARE: Final = 0.1  # of an interval, in each of its two parts
_INTERVALS: Final = 400  # looked at, before the best is returned unproved


@final
@dataclass(frozen=True, slots=True)
class NetworkPenalty:
    """A point and whether no other is better by more than the tolerance.

    Parameters
    ----------
    point
        Shape (d,).
    is_proved
        Whether the bound of every interval was reached.
    """

    point: Floats
    is_proved: bool


@final
@dataclass(frozen=True, slots=True, eq=False)
class _PenaltyProgram:
    """The network's program with its cost and score, for which objectives and intervals of scores are set in turn."""

    factual: Floats
    network: ReluNetwork
    weight: float
    target: float
    scale: Floats
    solver: str
    program: Any

    def loss(self, level: float) -> float:
        """Return what is paid at a score."""
        return float(self.weight * (expit(level) - self.target) ** 2)

    def score(self, point: Floats) -> float:
        """Return the network's own score of a point."""
        return float(self.network.score(point[None])[0])

    def value(self, point: Floats) -> float:
        """Return loss and cost of a point."""
        return self.loss(self.score(point)) + float((np.abs(point - self.factual) / self.scale).sum())

    def solved(self, slope: float, price: float, low: float, high: float) -> tuple[float, Floats] | None:
        """Return bound and point of the least slope times score plus price times cost, scores from low to high."""
        for name in ("step", "within"):
            if self.program.component(name) is not None:
                self.program.del_component(name)
        score = self.program.predictor.score
        self.program.within = pyo.ConstraintList()
        if np.isfinite(low):
            self.program.within.add(score >= low)
        if np.isfinite(high):
            self.program.within.add(score <= high)
        self.program.step = pyo.Objective(expr=slope * score + price * sum_of(self.program.t.values()))
        result = solve(self.program, self.solver)
        if not result.solutions or result.bound is None:
            return None
        return float(result.bound), np.array([pyo.value(x) for x in self.program.x.values()], dtype=float)

    def bounded(self, low: float, high: float) -> tuple[float, Floats] | None:
        """Return a lower bound of loss and cost over an interval of scores, and the point that attains it below."""
        width = high - low
        slope = 0.0
        if width > 0.0:
            slope = (self.loss(high) - self.loss(low)) / width
        found = self.solved(slope, 1.0, low, high)
        if found is None:
            return None
        away = max(abs(self.target), abs(1.0 - self.target))
        bend = 2.0 * self.weight * (_SLOPE_SQUARED + away * _BEND)
        return found[0] + self.loss(low) - slope * low - bend * width**2 / 8.0, found[1]


def least_penalty(
    factual: Floats,
    network: ReluNetwork,
    *,
    weight: float,
    target: float,
    scale: Floats,
    lower: Floats,
    upper: Floats,
    solver: str,
) -> NetworkPenalty:
    """Return the point of least penalty within finite bounds."""
    program = programs.wachter(factual, network, scale=scale, lower=lower, upper=upper)
    program.reached.deactivate()
    program.cost.deactivate()
    search = _PenaltyProgram(factual, network, weight, target, scale, solver, program)
    best = np.clip(factual, lower, upper)
    lowest = search.solved(1.0, 0.0, -np.inf, np.inf)
    highest = search.solved(-1.0, 0.0, -np.inf, np.inf)
    if lowest is None or highest is None:
        return NetworkPenalty(best, is_proved=False)
    best = min((best, lowest[1], highest[1]), key=search.value)
    intervals = [(lowest[0], -highest[0])]
    queue: list[tuple[float, float, float, float]] = []
    for _ in range(_INTERVALS):
        for low, high in intervals:
            found = search.bounded(low, high)
            if found is not None:
                best = min((best, found[1]), key=search.value)
                heapq.heappush(queue, (found[0], low, high, search.score(found[1])))
        if not queue or queue[0][0] >= search.value(best) - PENALTY_GAP:
            return NetworkPenalty(best, is_proved=True)
        _, low, high, at = heapq.heappop(queue)
        margin = _LEAST_SHARE * (high - low)
        cut = min(max(at, low + margin), high - margin)
        intervals = [(low, cut), (cut, high)]
    return NetworkPenalty(best, is_proved=False)

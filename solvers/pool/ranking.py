"""The ranking of a pool's runs: the n best at once, one after the other, or only what was met."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container
from typing import Any, final

import numpy as np

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.solvers.pool.exclusion_cuts import AbstractExclusion, NoGoods, integers
from ceopt.solvers.pool.runner import Runner
from ceopt.solvers.problem import Outcome, Status, Vector
from ceopt.solvers.tolerances import NOTABLE_VIOLATION

__all__ = ["AbstractRanking", "InTurn", "Incumbents", "NBest", "met_points"]

_ENDED = frozenset({Status.INTERRUPTED, Status.TIME_LIMIT, Status.ERROR, Status.UNBOUNDED})
_REPEATS = "The solver gives an earlier solution again: its tolerance is too coarse for the ranges of the variables."
_CONTRADICTS = "The solver calls a program infeasible of which it gave a point before."


class AbstractRanking(ABC):
    """Takes what each run found, and says whether another is wanted.

    Parameters
    ----------
    runner, compiled
        Who solves what.
    rule
        How points must differ.
    n
        How many are wanted, at least 2.

    Attributes
    ----------
    points
        In hand; the next run goes without them.
    asks
        How many points a run is asked to keep.
    start
        Where the next run begins.
    why
        Why the search ended early.
    n_proved
        How many of the first points are proved.
    is_proved, is_exhausted
        Whether all are; whether it is proved that there are no others.
    """

    def __init__(self, runner: Runner, compiled: CompiledModel, rule: AbstractExclusion, n: int) -> None:
        self.runner, self.compiled, self.rule, self.n = runner, compiled, rule, n
        self.points: list[Vector] = []
        self.asks = n
        self.start: dict[int, float] | None = None
        self.why, self.n_proved = "", 0
        self.is_proved = self.is_exhausted = False

    @abstractmethod
    def takes(self, outcome: Outcome) -> bool:
        """Take over what a run found, and return whether another one is wanted."""

    def loss(self, x: Vector) -> float:
        """Return the objective, to be minimised."""
        return _loss(self.compiled, x)

    def _point(self, outcome: Outcome) -> Vector | None:
        """Return the point over the program's own columns; None also for one that was barred."""
        x = None if outcome.x is None else outcome.x[: len(self.compiled.columns)]
        if x is None or all(self.rule.differ(x, earlier) for earlier in self.points):
            return x
        self.why = _REPEATS if self.runner.exact else ""
        self.runner.exact = True
        return None


@final
class InTurn(AbstractRanking):
    """Each point is the best of those that differ from all earlier ones."""

    def __init__(self, runner: Runner, compiled: CompiledModel, rule: AbstractExclusion, n: int) -> None:
        super().__init__(runner, compiled, rule, n)
        self.asks = 1

    def takes(self, outcome: Outcome) -> bool:
        """Take the next in rank."""
        x = self._point(outcome)
        if x is not None:
            self.points.append(x)
            self.n_proved += outcome.status is Status.OPTIMAL
        self.is_exhausted = outcome.status is Status.INFEASIBLE
        has_all = self.is_exhausted or len(self.points) == self.n
        self.is_proved = has_all and self.n_proved == len(self.points)
        ended = outcome.status in _ENDED or (outcome.x is None and not has_all)
        self.why = self.why or (_words(outcome) if ended else "" if has_all else self.runner.why_stop)
        return not (has_all or self.why)


@final
class Incumbents(AbstractRanking):
    """The best of what the solver met; nothing is claimed of any but the first."""

    def takes(self, outcome: Outcome) -> bool:
        """Take what was met; one run is all."""
        self.points = met_points(self.compiled, outcome, self.n)
        self.is_proved, self.is_exhausted = outcome.status is Status.OPTIMAL, outcome.status is Status.INFEASIBLE
        self.n_proved = int(self.is_proved)
        short = "" if len(self.points) == self.n else f"The solver met {len(self.points)}."
        self.why = f"{outcome.message} {short}".strip()
        return False


@final
class NBest(AbstractRanking):
    """The n best over all integer columns, with few proofs.

    A solver meets many good points on its way to the best. The n best that are known are barred together, and the best
    of all others is looked for: if it is no better than the n-th, the n are proved at once; otherwise it takes its
    place. That is one run more than points were missing, where one row after the other would take n.
    """

    rule: NoGoods

    def __init__(self, runner: Runner, compiled: CompiledModel, rule: NoGoods, n: int) -> None:
        super().__init__(runner, compiled, rule, n)
        self.met = _Met(compiled, rule)
        self.polisher = None if _is_whole(compiled) else _Polisher(runner, compiled)
        self.polished: set[bytes] = set()
        self.rest: float | None = None  # what no other point is proved to beat

    def takes(self, outcome: Outcome) -> bool:
        """Add what was met to the known points, and see whether the best of them are proved."""
        if outcome.status is Status.INFEASIBLE:
            self.is_exhausted = self.is_proved = self.start is None
            self.n_proved = len(self.points) if self.is_proved else self.n_proved
            self.why = "" if self.is_exhausted else _CONTRADICTS
            return False
        x, known, is_optimal = self._point(outcome), len(self.met.points), outcome.status is Status.OPTIMAL
        enumerates = is_optimal and not self.points and self.runner.solver.pool
        if x is not None and is_optimal:
            self.met.replace(x)
            self.polished.add(self.rule.key(x))
        self.met.note(outcome, settled=self.polished)
        ready = self._rank()
        self._tighten(outcome.bound)
        self.n_proved = sum(self._is_within(point) for point in self.points) if ready else 0
        full = len(self.points) == self.n
        no_better = x is not None and is_optimal and all(self.rule.differ(x, point) for point in self.points)
        no_better = no_better or (enumerates and self._holds(outcome.pool))
        self.is_proved = ready and full and (no_better or self.n_proved == self.n)
        self.n_proved = self.n if self.is_proved else self.n_proved
        self.asks = 1 if self.runner.solver.pool else self.n
        ended = outcome.status in _ENDED or (not is_optimal and (full or len(self.met.points) == known))
        self.why = self.why or ("" if self.is_proved else _words(outcome) if ended else self.runner.why_stop)
        return not (self.is_proved or self.why)

    def _holds(self, pool: tuple[Vector, ...]) -> bool:
        """Whether the solver's own n best are n different points, and no better with other continuous parts."""
        own = {self.rule.key(x): self.loss(x) for x in reversed(pool)}
        best = {key: self.loss(x) for key, x in self.met.points.items()}
        slack = self.runner.relative_gap
        return len(own) >= self.n and all(
            key in best and loss - best[key] <= slack * max(abs(loss), 1e-12) for key, loss in own.items()
        )

    def _rank(self) -> bool:
        """Take the n best known points; return whether each has the best continuous part for its integers."""
        while True:
            self.points = self.met.best(self.n)
            others = self.met.best(1, without=self.points)
            self.start = dict(enumerate(others[0].tolist())) if others else None
            rough = [x for x in self.points if self.polisher and self.rule.key(x) not in self.polished]
            if self.polisher is None or not rough:
                return True
            for x in rough:
                if self.runner.why_stop:
                    return False
                self.met.replace(self.polisher.polish(x))
                self.polished.add(self.rule.key(x))

    def _tighten(self, bound: float | None) -> None:
        """Take over a bound on all that was not barred: what is barred only becomes better, so older ones hold on."""
        if bound is not None and (self.rest is None or self.compiled.sense * (bound - self.rest) > 0):
            self.rest = bound

    def _is_within(self, x: Vector) -> bool:
        """Whether no other point is better by more than the gap, as far as proved."""
        if self.rest is None:
            return False
        loss = self.loss(x)
        return loss - self.compiled.sense * self.rest <= self.runner.relative_gap * max(abs(loss), 1e-12)


def met_points(compiled: CompiledModel, outcome: Outcome, n: int) -> list[Vector]:
    """Return the n best feasible points that a run met, no two with the same integers, the best first."""
    met = _Met(compiled, integers(compiled))
    met.note(outcome)
    return met.best(n)


class _Met:
    """The best point that is known for each value of the integer columns."""

    def __init__(self, compiled: CompiledModel, rule: NoGoods) -> None:
        self.compiled, self.rule = compiled, rule
        self.is_whole = _is_whole(compiled)
        self.points: dict[bytes, Vector] = {}

    def note(self, outcome: Outcome, *, settled: Container[bytes] = ()) -> None:
        """Keep what a run gave: its best point, and what it met that is feasible, but for integers that are settled."""
        if outcome.x is None:
            return
        self._add(outcome.x, settled, trusted=True)
        for x in (*(x for _, _, x in outcome.incumbents), *outcome.pool):
            self._add(x, settled)

    def _add(self, x: Vector, settled: Container[bytes], *, trusted: bool = False) -> None:
        x = self._exact(x[: len(self.compiled.columns)])
        key = self.rule.key(x)
        if key in settled or (key in self.points and self._loss(x) >= self._loss(self.points[key])):
            return
        if trusted or self.compiled.violation(x) <= NOTABLE_VIOLATION:
            self.points[key] = x

    def _exact(self, x: Vector) -> Vector:
        """Round the integers, where nothing else depends on them."""
        exact = np.where(self.compiled.integer, np.round(x), x)
        return exact if self.is_whole and self.compiled.violation(exact) <= NOTABLE_VIOLATION else x

    def _loss(self, x: Vector) -> float:
        return _loss(self.compiled, x)

    def replace(self, x: Vector) -> None:
        """Put a point in the place of the one with its integers."""
        self.points[self.rule.key(x)] = self._exact(x)

    def best(self, n: int, *, without: list[Vector] | None = None) -> list[Vector]:
        """Return the n best, the best first."""
        barred = {self.rule.key(x) for x in without or ()}
        return sorted((x for key, x in self.points.items() if key not in barred), key=self._loss)[:n]


class _Polisher:
    """Finds the best continuous part for given integers: in a program of which they are data."""

    def __init__(self, runner: Runner, compiled: CompiledModel) -> None:
        self.runner, self.compiled = runner, compiled
        self.session: Any = None
        self.whole = np.flatnonzero(compiled.integer)
        self.fixed = compiled.extended()
        self.fixed.integer = np.zeros_like(compiled.integer)
        self.fixed.data = np.concatenate([compiled.data, self.whole]).astype(np.int32)

    def polish(self, x: Vector) -> Vector:
        """Return the best point with the integers of ``x``; ``x`` itself where none is found."""
        values = np.round(x[self.whole])
        self.fixed.lb[self.whole] = self.fixed.ub[self.whole] = values
        try:
            self.session = self.session or self.runner.session(self.fixed)
        except OutOfTimeError:
            return x
        outcome = self.runner.solve(self.session)
        if outcome.x is None:
            return x
        better = outcome.x.copy()
        better[self.whole] = values
        return better if self.compiled.violation(better) <= NOTABLE_VIOLATION else x


def _loss(compiled: CompiledModel, x: Vector) -> float:
    return compiled.sense * compiled.evaluate(x)


def _words(outcome: Outcome) -> str:
    return outcome.message or f"The solver stopped: {outcome.status}."


def _is_whole(compiled: CompiledModel) -> bool:
    """Whether the integers decide everything."""
    return bool((compiled.integer | (compiled.lb == compiled.ub)).all())

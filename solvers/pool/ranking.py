"""The ranking of a pool's runs: the n best at once, one after the other, or only what was met."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
import scipy.sparse as sp

from ceopt.solvers.adapter import Callback, Lazy, Start, StopSwitch
from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.compile.rows_and_cones import Auxiliary
from ceopt.solvers.deadline import OutOfTimeError, until
from ceopt.solvers.guarded_session import GuardedSession
from ceopt.solvers.problem import Outcome, Stop, Vector
from ceopt.solvers.registry import Solver
from ceopt.solvers.tolerances import NOTABLE_VIOLATION, WHOLE_BOUND

# ==== One solver before one deadline: a program, and others that are derived from it ==================================


@final
@dataclass(slots=True, kw_only=True)
class Runner:
    """Opens sessions and solves them, as long as there is time.

    Parameters
    ----------
    solver
        Who solves; its ``version`` is known after the first run.
    threads, random_state, options, relative_gap
        Of each run.
    deadline
        On the clock of ``time.perf_counter``; infinite for no limit.
    start, on_incumbent
        Of the first run alone.
    absolute_gap, callback, tee, warm
        Of each run, as a session takes them.
    exact
        Ask for integers as whole as the solver can make them.
    doubt
        What the solver has said that a point in hand contradicts: it proves nothing from then on. Empty if nothing.
    switch
        Pressed by Ctrl-C.
    """

    solver: Solver
    threads: int
    random_state: int
    options: Mapping[str, Any]
    relative_gap: float
    deadline: float
    start: Start | None = None
    on_incumbent: Callable[[float, float, Vector], None] | None = None
    absolute_gap: float = 0.0
    callback: Callback | None = None
    tee: bool = False
    warm: bool = False
    exact: bool = False
    version: str = ""
    doubt: str = ""
    switch: StopSwitch = field(default_factory=lambda: StopSwitch(None))

    @property
    def why_stop(self) -> str:
        """Why no further run may begin; empty if one may."""
        if self.switch.pressed:
            return "The search was interrupted."
        if time.perf_counter() >= self.deadline:
            return "The time limit ended the search."
        return ""

    def session(self, compiled: CompiledModel) -> GuardedSession:
        """Return a session for a program.

        Raises
        ------
        OutOfTimeError
            There was no time to hand the program over.
        """
        options = dict(self.options)
        if self.exact:
            options = {**self.solver.exact, **options}
        with until(self.deadline):
            session = GuardedSession(
                self.solver, compiled, threads=self.threads, random_state=self.random_state, options=options
            )
        self.version = self.version or session.version
        return session

    def first(self, compiled: CompiledModel, *, pool: int) -> Outcome:
        """Solve the program itself."""
        try:
            session = self.session(compiled)
        except OutOfTimeError as error:
            return Outcome(status=Stop.TIME_LIMIT, message=f"The time limit is used up while {error.stage}.")
        return self.solve(session, pool=pool, start=self.start, on_incumbent=self.on_incumbent)

    def solve(
        self,
        session: GuardedSession,
        *,
        pool: int = 1,
        start: Start | None = None,
        on_incumbent: Callable[[float, float, Vector], None] | None = None,
        lazy: Lazy | None = None,
    ) -> Outcome:
        """Solve the program of a session, in the time that is left."""
        left = self.deadline - time.perf_counter()
        outcome = session.solve(
            time_limit_s=None if math.isinf(left) else max(left, 1e-3),
            relative_gap=self.relative_gap,
            start=start,
            pool=pool,
            on_incumbent=on_incumbent,
            absolute_gap=self.absolute_gap,
            callback=self.callback,
            tee=self.tee,
            warm=self.warm,
            lazy=lazy,
        )
        if outcome.status is Stop.INTERRUPTED:
            self.switch.pressed = True
        if outcome.doubted and not self.doubt:
            self.doubt = outcome.message
        # What is called a solution keeps the program: the point under an error does not.
        if outcome.status is Stop.ERROR:
            return replace(outcome, x=None, objective=None)
        return outcome


# ==== The rows that keep a program from giving a solution again, or one that is too like it ===========================


@final
@dataclass(slots=True)
class _Cuts:
    """Rows and columns that a program is extended by."""

    first: int
    entries: list[tuple[int, int, float]] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    columns: list[Auxiliary] = field(default_factory=list)
    most: list[float] = field(default_factory=list)

    def column(self, most: float = 1.0, *, integer: bool = True) -> int:
        self.columns.append(Auxiliary(f"pool_{len(self.columns)}", integer))
        self.most.append(most)
        return self.first + len(self.columns) - 1

    def row(self, terms: Mapping[int, float], lower: float, upper: float = math.inf) -> None:
        self.entries += [(len(self.lower), column, value) for column, value in terms.items()]
        self.lower.append(lower)
        self.upper.append(upper)

    def onto(self, compiled: CompiledModel) -> CompiledModel:
        i, j, values = zip(*self.entries, strict=True) if self.entries else ((), (), ())
        shape = (len(self.lower), self.first + len(self.columns))
        return compiled.extended(
            columns=self.columns,
            lb=np.zeros(len(self.columns)),
            ub=self.most,
            A=sp.csr_array((np.array(values, dtype=np.float64), (i, j)), shape=shape),
            row_lb=self.lower,
            row_ub=self.upper,
        )


class AbstractExclusion(ABC):
    """What two solutions must differ in."""

    def barred(self, compiled: CompiledModel, points: Sequence[Vector]) -> CompiledModel:
        """Return the program without points too like one of these; its columns begin with the program's."""
        cuts = _Cuts(len(compiled.columns))
        for point in points:
            self._bar(cuts, point)
        if points:
            return cuts.onto(compiled)
        return compiled

    @abstractmethod
    def _bar(self, cuts: _Cuts, point: Vector) -> None:
        """Add the rows that keep away from one point."""

    @abstractmethod
    def differ(self, a: Vector, b: Vector) -> bool:
        """Whether both may be in one pool."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class NoGoods(AbstractExclusion):
    r"""Another value of some integer column.

    .. math::
        \sum_{j:\, v_j = l_j} (x_j - l_j) + \sum_{j:\, v_j = u_j} (u_j - x_j)
        + \sum_{j:\, l_j < v_j < u_j} (p_j + q_j) \ge 1,

    with :math:`x_j \ge l_j + (v_j + 1 - l_j) p_j`, :math:`x_j \le u_j - (u_j - v_j + 1) q_j` and binaries p, q. For
    binaries it is the no-good row :math:`\sum_{v_j = 1} (1 - x_j) + \sum_{v_j = 0} x_j \ge 1`. Exact.

    Parameters
    ----------
    columns, low, high
        (k,) each: the free integer columns and their bounds.
    """

    columns: Any
    low: Vector
    high: Vector

    def key(self, x: Vector) -> bytes:
        """Return the decisions; a solver takes 0.9999999 for 1."""
        return bytes(np.round(x[self.columns]).astype(np.int64))

    def differ(self, a: Vector, b: Vector) -> bool:
        """Whether the decisions differ."""
        return self.key(a) != self.key(b)

    def _bar(self, cuts: _Cuts, point: Vector) -> None:
        terms = {}
        least = 1.0
        values = np.round(point[self.columns])
        for j, v, low, high in zip(*(a.tolist() for a in (self.columns, values, self.low, self.high)), strict=True):
            if v <= low:
                terms[j], least = 1.0, least + low
            elif v >= high:
                terms[j], least = -1.0, least - high
            else:
                above = cuts.column()
                below = cuts.column()
                cuts.row({j: 1.0, above: low - v - 1.0}, low)
                cuts.row({j: 1.0, below: high - v + 1.0}, -math.inf, high)
                terms |= {above: 1.0, below: 1.0}
        cuts.row(terms, least)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Distances(AbstractExclusion):
    r"""At least :math:`\delta` away.

    .. math::
        x_j - v_j = p_j - n_j,\quad 0 \le p_j \le (u_j - v_j) b_j,\quad 0 \le n_j \le (v_j - l_j)(1 - b_j),\quad
        \sum_j (p_j + n_j) \ge \delta

    with binaries b: mathematics 9.5 (iii), reverse convex. In the greatest norm some column moves by :math:`\delta`:
    :math:`x_j \ge l_j + (v_j + \delta - l_j) p_j`, :math:`x_j \le u_j - (u_j - v_j + \delta) q_j`,
    :math:`\sum_j (p_j + q_j) \ge 1` with binaries p, q.

    Parameters
    ----------
    columns, low, high
        (k,) each: the columns and their bounds, finite.
    least, norm
        See :class:`ApartVariables`.
    """

    columns: Any
    low: Vector
    high: Vector
    least: float
    norm: str

    def differ(self, a: Vector, b: Vector) -> bool:
        """Whether the distance is kept, up to a solver's tolerance."""
        moves = np.abs(a[self.columns] - b[self.columns])
        distance = float(moves.sum() if self.norm == "l1" else moves.max(initial=0.0))
        return distance >= self.least - 1e-6 * max(1.0, self.least)

    def _bar(self, cuts: _Cuts, point: Vector) -> None:
        values = np.clip(point[self.columns], self.low, self.high)
        distance: dict[int, float] = {}
        for j, v, low, high in zip(*(a.tolist() for a in (self.columns, values, self.low, self.high)), strict=True):
            if self.norm == "l1":
                side = cuts.column()
                p = cuts.column(high - v, integer=False)
                n = cuts.column(v - low, integer=False)
                cuts.row({j: 1.0, p: -1.0, n: 1.0}, v, v)
                cuts.row({p: 1.0, side: v - high}, -math.inf, 0.0)
                cuts.row({n: 1.0, side: v - low}, -math.inf, v - low)
                distance |= {p: 1.0, n: 1.0}
                continue
            if v + self.least <= high:
                above = cuts.column()
                cuts.row({j: 1.0, above: low - v - self.least}, low)
                distance[above] = 1.0
            if v - self.least >= low:
                below = cuts.column()
                cuts.row({j: 1.0, below: high - v + self.least}, -math.inf, high)
                distance[below] = 1.0
        cuts.row(distance, self.least if self.norm == "l1" else 1.0)


def integers(compiled: CompiledModel) -> NoGoods:
    """Return the rule that some integer column differs; its bounds may be infinite."""
    return no_goods(free_integers(compiled), compiled)


def free_integers(compiled: CompiledModel) -> Any:
    """Return the integer columns that can take several values, without the binaries that sets added."""
    low, high = _whole_bounds(compiled, slice(None))
    return np.setdiff1d(np.flatnonzero(compiled.integer & (low < high)), compiled.set_binaries)


def _whole_bounds(compiled: CompiledModel, columns: Any) -> tuple[Vector, Vector]:
    return np.ceil(compiled.lb[columns] - WHOLE_BOUND), np.floor(compiled.ub[columns] + WHOLE_BOUND)


def no_goods(columns: Any, compiled: CompiledModel) -> NoGoods:
    """Return the rule that one of these integer columns differs; those that cannot are left out."""
    columns = np.intersect1d(columns, free_integers(compiled))
    return NoGoods(columns, *_whole_bounds(compiled, columns))


# ==== The ranking of a pool's runs: the n best at once, one after the other, or only what was met =====================

_ENDED = frozenset({Stop.INTERRUPTED, Stop.TIME_LIMIT, Stop.ERROR, Stop.UNBOUNDED})
_REPEATS = "The solver gives an earlier solution again: its tolerance is too coarse for the ranges of the variables."
_CONTRADICTS = "The solver calls a program infeasible of which it gave a point before."


class AbstractRanking(ABC):
    """Collects the points of each run, and says whether another run is wanted.

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
        self.runner = runner
        self.compiled = compiled
        self.rule = rule
        self.n = n
        self.points: list[Vector] = []
        self.asks = n
        self.start: dict[int, float] | None = None
        self.why = ""
        self.n_proved = 0
        self.is_proved = False
        self.is_exhausted = False

    @abstractmethod
    def takes(self, outcome: Outcome) -> bool:
        """Collect the points of a run, and return whether another run is wanted."""

    def loss(self, x: Vector) -> float:
        """Return the objective, to be minimised."""
        return _loss(self.compiled, x)

    def _point(self, outcome: Outcome) -> Vector | None:
        """Return the point over the program's own columns; None also for one that was barred."""
        x = None
        if outcome.x is not None:
            x = outcome.x[: len(self.compiled.columns)]
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
            self.n_proved += outcome.status is Stop.OPTIMAL
        self.is_exhausted = outcome.status is Stop.INFEASIBLE
        has_all = self.is_exhausted or len(self.points) == self.n
        self.is_proved = has_all and self.n_proved == len(self.points)
        if not self.why:
            if outcome.status in _ENDED or (outcome.x is None and not has_all):
                self.why = _words(outcome)
            elif not has_all:
                self.why = self.runner.why_stop
        return not (has_all or self.why)


@final
class Incumbents(AbstractRanking):
    """The best of what the solver met; nothing is claimed of any but the first."""

    def takes(self, outcome: Outcome) -> bool:
        """Take what was met; one run is all."""
        self.points = met_points(self.compiled, outcome, self.n)
        self.is_proved = outcome.status is Stop.OPTIMAL
        self.is_exhausted = outcome.status is Stop.INFEASIBLE
        self.n_proved = int(self.is_proved)
        short = ""
        if len(self.points) != self.n:
            short = f"The solver met {len(self.points)}."
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
        """Add the points that were met to the known ones, and see whether the best of them are proved."""
        if outcome.status is Stop.INFEASIBLE:
            self._end_without_others()
            return False
        is_first = not self.points
        number_met = len(self.met.points)
        best_of_others = self._note(outcome)
        is_ranked = self._rank()
        self._tighten(outcome.bound)
        self.n_proved = 0
        if is_ranked:
            self._prove(outcome, best_of_others, is_first=is_first)
        if not self.is_proved and not self.why:
            has_news = len(self.met.points) > number_met
            self.why = self._why_no_more(outcome, has_news=has_news)
        self.asks = 1 if self.runner.solver.pool else self.n
        return not (self.is_proved or self.why)

    def _end_without_others(self) -> None:
        """Take over that there is no point beside the barred ones: these are all there are, and so all are proved.

        A further point in hand, of which the next run was to start, contradicts the solver.
        """
        if self.start is not None:
            self.why = _CONTRADICTS
            return
        self.why = ""
        self.is_exhausted = True
        self.is_proved = True
        self.n_proved = len(self.points)

    def _note(self, outcome: Outcome) -> Vector | None:
        """Add a run's points to the known ones; return the optimum of all points that were not barred, if proved."""
        x = self._point(outcome)
        if outcome.status is not Stop.OPTIMAL:
            x = None
        if x is not None:  # the best of all others is also the best with its own integers
            self.met.replace(x)
            self.polished.add(self.rule.key(x))
        self.met.note(outcome, settled=self.polished)
        return x

    def _prove(self, outcome: Outcome, best_of_others: Vector | None, *, is_first: bool) -> None:
        r"""Count which of the ranked points are proved.

        Let P be the ranked points and B those that were barred in the last run, all of them known. Every point p has an
        objective of its own for its integers, so p is proved where no point outside of P is better. Such a point
        was barred, and then it is known and ranked behind P; or it was not, and then it is no better than

        1. the bound of the run, or of an earlier one (:meth:`_tighten`): p is proved if it is within the gap of it;
        2. the optimum of all that was not barred. Where this is not in P itself, it is known and ranked behind P: no
           other point is better than any of P, and all are proved at once;
        3. the n-th of the solver's own n best, where it enumerates them and nothing was barred: all are proved if P
           has these.
        """
        self.n_proved = 0
        for point in self.points:
            self.n_proved += self._is_within(point)
        if len(self.points) < self.n:
            return
        is_own_ranking = is_first and self.runner.solver.pool and outcome.status is Stop.OPTIMAL
        self.is_proved = (
            self.n_proved == self.n
            or self._is_ranked_behind(best_of_others)
            or (is_own_ranking and self._holds(outcome.pool))
        )
        if self.is_proved:
            self.n_proved = self.n

    def _is_ranked_behind(self, x: Vector | None) -> bool:
        """Whether a point, if there is one, is none of the n best."""
        if x is None:
            return False
        return all(self.rule.differ(x, point) for point in self.points)

    def _why_no_more(self, outcome: Outcome, *, has_news: bool) -> str:
        """Return why another run would not help, or may not begin; empty if it may.

        A run that ended short of its optimum may still have met points that were missing.
        """
        if outcome.status in _ENDED:
            return _words(outcome)
        is_full = len(self.points) == self.n
        if outcome.status is not Stop.OPTIMAL and (is_full or not has_news):
            return _words(outcome)
        return self.runner.why_stop

    def _holds(self, pool: tuple[Vector, ...]) -> bool:
        """Whether the solver's own n best are n different points, and no better with other continuous parts."""
        own = {self.rule.key(x): self.loss(x) for x in reversed(pool)}
        if len(own) < self.n:
            return False
        for key, loss in own.items():
            known = self.met.points.get(key)
            if known is None:
                return False
            if loss - self.loss(known) > self._gap_at(loss):
                return False
        return True

    def _rank(self) -> bool:
        """Take the n best known points; return whether each has the best continuous part for its integers."""
        while True:
            self.points = self.met.best(self.n)
            others = self.met.best(1, without=self.points)
            self.start = dict(enumerate(others[0].tolist())) if others else None
            if self.polisher is None:
                return True
            rough = [x for x in self.points if self.rule.key(x) not in self.polished]
            if not rough:
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
        return loss - self.compiled.sense * self.rest <= self._gap_at(loss)

    def _gap_at(self, loss: float) -> float:
        """Return by how much another point may be better, in the objective's own unit."""
        return max(self.runner.relative_gap * max(abs(loss), 1e-12), self.runner.absolute_gap)


def met_points(compiled: CompiledModel, outcome: Outcome, n: int) -> list[Vector]:
    """Return the n best feasible points that a run met, no two with the same integers, the best first."""
    met = _Met(compiled, integers(compiled))
    met.note(outcome)
    return met.best(n)


class _Met:
    """The best point that is known for each value of the integer columns."""

    def __init__(self, compiled: CompiledModel, rule: NoGoods) -> None:
        self.compiled = compiled
        self.rule = rule
        self.is_whole = _is_whole(compiled)
        self.points: dict[bytes, Vector] = {}

    def note(self, outcome: Outcome, *, settled: Container[bytes] = ()) -> None:
        """Keep a run's best point and the feasible points that it met, but for integers that are settled."""
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
        """Round the integers of a program without free continuous columns."""
        exact = np.where(self.compiled.integer, np.round(x), x)
        if self.is_whole and self.compiled.violation(exact) <= NOTABLE_VIOLATION:
            return exact
        return x

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
        self.runner = runner
        self.compiled = compiled
        self.session: Any = None
        self.whole = np.setdiff1d(np.flatnonzero(compiled.integer), compiled.set_binaries)
        self.fixed = compiled.extended()
        self.fixed.integer = np.zeros_like(compiled.integer)
        self.fixed.integer[compiled.set_binaries] = True
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
        if self.compiled.violation(better) <= NOTABLE_VIOLATION:
            return better
        return x


def _loss(compiled: CompiledModel, x: Vector) -> float:
    return compiled.sense * compiled.evaluate(x)


def _words(outcome: Outcome) -> str:
    return outcome.message or f"The solver stopped: {outcome.status}."


def _is_whole(compiled: CompiledModel) -> bool:
    """Whether the integers decide everything."""
    return bool((compiled.integer | (compiled.lb == compiled.ub)).all())

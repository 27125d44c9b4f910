"""Several solutions of one program: the loop over runs, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.solvers.errors import MissingLicenceError
from ceopt.solvers.guard.contradictions import contradicts
from ceopt.solvers.pool.distinct import Distinct
from ceopt.solvers.pool.exclusion_cuts import AbstractExclusion, NoGoods, free_integers
from ceopt.solvers.pool.ranking import AbstractRanking, Incumbents, InTurn, NBest
from ceopt.solvers.pool.runner import Runner
from ceopt.solvers.problem import Outcome, Stop, Vector

__all__ = ["Pool", "pool_of", "ranking_of"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """What a search for several solutions came to.

    Parameters
    ----------
    status
        ``OPTIMAL`` only if every point is proved; of incumbents, if the first is.
    points
        Best first.
    bound
        On the best.
    first
        The outcome of the search for the best.
    complete
        Whether as many came back as were wanted, or it is proved that there are no more.
    message
        Why it ended, or empty.
    """

    status: Stop
    points: tuple[Vector, ...]
    bound: float | None
    first: Outcome
    complete: bool
    message: str


def ranking_of(
    runner: Runner, compiled: CompiledModel, distinct: Distinct, rule: AbstractExclusion, n: int
) -> AbstractRanking:
    """Return the way to what is asked for with the fewest runs."""
    if not isinstance(rule, NoGoods):
        return InTurn(runner, compiled, rule, n)
    if distinct == "incumbents":
        return Incumbents(runner, compiled, rule, n)
    decides_all = len(rule.columns) == len(free_integers(compiled))
    if decides_all:
        return NBest(runner, compiled, rule, n)
    return InTurn(runner, compiled, rule, n)


def pool_of(ranking: AbstractRanking) -> Pool:
    """Solve the program, and again what is left without the points in hand, until the ranking has what it wants."""
    runner = ranking.runner
    compiled = ranking.compiled
    first = outcome = runner.first(compiled, pool=ranking.asks)
    with runner.switch.listening():
        while ranking.takes(outcome):
            try:
                session = runner.session(ranking.rule.barred(compiled, ranking.points))
                outcome = runner.solve(session, pool=ranking.asks, start=ranking.start)
            except MissingLicenceError as error:  # more rows than it allows; what is in hand stays
                ranking.why = str(error)
                break
            except OutOfTimeError:  # the same
                ranking.why = "The time limit ended the search."
                break
    points = sorted(ranking.points, key=ranking.loss)
    full = len(points) == ranking.n
    bound = first.bound
    message = ranking.why
    if points and bound is not None and contradicts(bound, compiled.evaluate(points[0]), compiled, points[0]):
        bound = None
        runner.doubt = runner.doubt or "A further solution is better than the bound that was proved for the first."
    if not points:
        status = first.status
        message = first.message
    elif ranking.is_proved and not runner.doubt:
        status = Stop.OPTIMAL
        message = message or ("" if full else "Proved: there are no more.")
        if first.status is not Stop.OPTIMAL:
            bound = compiled.evaluate(points[0])
    else:
        status = Stop.INTERRUPTED if runner.switch.pressed else Stop.FEASIBLE
        told = runner.doubt if runner.doubt not in message else ""
        message = f"{told} {message} {ranking.n_proved} of {len(points)} solutions are proved.".strip()
    if points and bound is not None and compiled.sense * bound > ranking.loss(points[0]):
        bound = compiled.evaluate(points[0])  # a bound is never worse than a point in hand
    return Pool(
        status=status,
        points=tuple(points),
        bound=bound,
        first=first,
        complete=full or (ranking.is_exhausted and not runner.doubt),
        message=message,
    )

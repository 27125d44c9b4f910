"""The state of one person's search: the question, the check of a point, the answers in hand, the next request.

A state is passed to each step, which returns another. Only the stopwatch, an instrument, runs on in place.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, TypeAlias, final

import numpy as np

from ceopt.base.said import said
from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity, OtherDecisions
from ceopt.formulations.predictors.reaches import slack
from ceopt.formulations.space.reachable import Interval, Levels
from ceopt.oracle.model import Check, broken_rules
from ceopt.oracle.rows import coordinates_of
from ceopt.search.solve_program import Person, Point, ProgramSolver, Start
from ceopt.solvers.deadline import without_deadline
from ceopt.solvers.errors import CeoptError, InvalidValueError
from ceopt.status import Status
from ceopt.tolerances import LITTLE_OF_THE_WAY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.result.counterfactual import Counterfactual
    from ceopt.search.prepare import Prepared
    from ceopt.settings import CheckedSettings
    from ceopt.solvers.problem import Outcome

#: Seconds of a call of the user's model up to which the next may have twice as many rows.
_SHORT_CALL_S: Final = 0.1
#: Seconds after the limit in which points in hand may still be checked, and of a call that may begin then.
GRACE_S: Final = 0.1
_QUICK_CALL_S: Final = 0.02
#: An answer and its coordinates.
Answer: TypeAlias = "tuple[Counterfactual, dict[str, float]]"


class Phase(Enum):
    """What a search does next."""

    START = auto()
    PROGRAM = auto()
    MARGIN = auto()
    LIMIT = auto()
    FEWER = auto()
    WIDER_RULES = auto()
    CONFLICT = auto()
    NEXT = auto()
    END = auto()


@final
class Stopwatch:
    """Seconds spent by phase; ``check`` is decoding and rules, ``predict`` the user's own model.

    ``longest_call_s`` is what the user's own model has taken at most for a call.
    """

    __slots__ = ("began", "longest_call_s", "seconds")

    def __init__(self, began: float, *, read_s: float) -> None:
        self.began = began
        self.longest_call_s = 0.0
        self.seconds = dict.fromkeys("read start build lower solve check predict".split(), 0.0)
        self.seconds["read"] = read_s

    @contextmanager
    def counting(self, phase: str) -> Iterator[None]:
        """Count what happens within to a phase, however it ends."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.add({phase: time.perf_counter() - began})

    def add(self, seconds: Mapping[str, float]) -> None:
        """Count seconds that were measured elsewhere."""
        for phase, spent in seconds.items():
            self.seconds[phase] += spent
        self.longest_call_s = max(self.longest_call_s, seconds.get("predict", 0.0))

    def timings(self) -> dict[str, float]:
        """Return the seconds by phase, and in total."""
        return {**self.seconds, "total": time.perf_counter() - self.began}


@final
@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of one person, and how a point is judged.

    Parameters
    ----------
    prepared
        Model and settings, with the margins that suit the person.
    person
        Who is asked about.
    deadline
        On the clock of ``time.perf_counter``.
    within
        How much more than the best any other answer may cost; None: as much as it must.
    why_s
        Seconds for the rules in conflict; 0: nobody looks for them, or another call does.
    keep_on_interrupt
        Whether Ctrl-C keeps what is in hand, or goes on as KeyboardInterrupt.
    stopwatch
        Counts the seconds of all steps.
    """

    prepared: Prepared
    person: Person
    deadline: float
    within: float | None
    why_s: float
    keep_on_interrupt: bool
    stopwatch: Stopwatch

    @property
    def settings(self) -> CheckedSettings:
        """The settings."""
        return self.prepared.settings

    @property
    def space(self) -> FeatureSpace:
        """The columns."""
        return self.prepared.space

    @property
    def factual(self) -> dict[str, float]:
        """The person, in coordinates."""
        return self.person.factual

    @property
    def programs(self) -> ProgramSolver:
        """What builds and solves the person's programs."""
        return ProgramSolver(self.prepared, self.person)

    @property
    def has_default_margin(self) -> bool:
        """Whether the decision is asked for with a margin that the user has not named."""
        return self.settings.margin is None and not self.prepared.asks_model

    @property
    def share_of_steps(self) -> float:
        """Share of a cost that the steps of the model's own arithmetic may explain; twice that of the way, for squares.

        0 where no column varies so little that there are any.
        """
        if not self.prepared.steps:
            return 0.0
        return 2.0 * self.prepared.steps / max(self.way_to_decision, self.prepared.steps)

    @property
    def way_to_decision(self) -> float:
        """By how much the person misses the target, in the model's score."""
        coordinates = coordinates_of(self.space, [self.factual])
        return abs(float(slack(self.prepared.predictor, coordinates, self.settings.target)[0]))

    @property
    def is_late(self) -> bool:
        """Whether the time is used up."""
        return time.perf_counter() >= self.deadline

    @property
    def is_over(self) -> bool:
        """Whether the time is used up, and what a quick model has after it to be asked about the digits of answers."""
        late_s = time.perf_counter() - self.deadline
        if self.stopwatch.longest_call_s > _QUICK_CALL_S:
            return late_s >= 0.0
        return late_s >= GRACE_S

    def cost(self, point: Point) -> float:
        """Return what a point costs."""
        return self.settings.cost.value(self.space, self.factual, point)

    def bound_on_cost(self, outcome: Outcome) -> float | None:
        """Return the bound that a solver proved, as one on the cost."""
        if outcome.bound is None or not np.isfinite(outcome.bound):
            return None
        return max(self.settings.cost.from_objective(outcome.bound), 0.0)

    def keeps_target(self, points: Sequence[Point]) -> list[bool]:
        """Tell which points the model as read puts in the target, or short of it by little of the person's way."""
        slacks = self.prepared.slacks(coordinates_of(self.space, [self.factual, *points]))
        kept: list[bool] = (slacks[1:] >= LITTLE_OF_THE_WAY * min(slacks[0], 0.0)).tolist()
        return kept

    def check(self, point: dict[str, float]) -> Check:
        """Ask the user's own model and every rule about a point in hand, without regard to the time limit.

        The check's ``valid`` speaks of the target alone.
        """
        with without_deadline():
            with self.stopwatch.counting("predict"):
                predicted, is_met = self.prepared.judge([point])
            with self.stopwatch.counting("check"):
                broken = broken_rules(self.settings.rules, self.space, self.factual, point)
        return Check(bool(is_met[0]), predicted[0], broken)

    def accepts(self, points: Sequence[dict[str, float]]) -> list[bool]:
        """Tell which points the user's own model accepts within the time; False for points not asked about.

        Twice as many are asked about at a time, as long as that takes a tenth of a second at most. No answer is lost
        for them: a model that fails on one, and Ctrl-C where that keeps what is in hand, end the asking alone.
        """
        met: list[bool] = []
        many = 1
        with self.stopwatch.counting("predict"):
            try:
                while len(met) < len(points) and not self.is_over:
                    began = time.perf_counter()
                    with without_deadline():
                        met += self.prepared.judge(points[len(met) : len(met) + many])[1].tolist()
                    if time.perf_counter() - began < _SHORT_CALL_S:
                        many *= 2
            except KeyboardInterrupt:
                if not self.keep_on_interrupt:
                    raise
            except Exception:  # noqa: BLE001, S110 - the user's own model may raise anything
                pass
        return met + [False] * (len(points) - len(met))

    def check_factual(self) -> Check:
        """Ask about the row itself; where the user's model fails on it, that is the row's fault."""
        try:
            return self.check(self.factual)
        except (CeoptError, MemoryError):
            raise
        except Exception as error:
            raise InvalidValueError(
                "The model", "a row that it can predict", f"on this one it fails ({error})", "Check the row's values."
            ) from error


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """Outcome of the search for one more answer; ``proved``: infeasibility is proved."""

    status: Status
    answer: Counterfactual | None = None
    bound: float | None = None
    reason: str = ""
    proved: bool = False


@final
@dataclass(frozen=True, slots=True)
class Tries:
    """What was tried for the next answer.

    Parameters
    ----------
    margin, diversity
        What the first program of it is asked with; later ones may ask for more.
    bound
        What is proved of its cost.
    failures
        Why points failed the check, in words.
    repairs
        Programs that a failed check sent back.
    """

    margin: float | None
    diversity: AbstractDiversity
    bound: float | None = None
    failures: tuple[str, ...] = ()
    repairs: int = 0


@final
@dataclass(frozen=True, slots=True)
class State:
    """One person's search between two steps.

    Parameters
    ----------
    question
        What is asked; wider rules replace it.
    phase
        What is done next.
    answers
        Those in hand, in the order in which they were found.
    first, last
        What the search for the first answer came to, and that for the latest that has ended; None before.
    tries
        What was tried for the next answer.
    margin, diversity
        Least slack of the decision in the next program, and in what its answer differs from those in hand.
    barred, refused
        Points that failed the check by a rule, and those that the user's own model refused.
    exact
        Whether the solver is asked to be exact.
    coarse
        A point of a solver that was not asked to be exact, and that the model refused; None once it is left out.
    starts, found
        Points known before the program is solved, cheapest first: for the next program, and those of the first search.
    incumbents
        Without a diversity: points that the solver and the search for a start came across, cheapest first.
    solver
        Name and version of the one that ran last.
    size
        Of the first program that was solved, as a result says it.
    doubted
        Whether the solver has said what a point in hand contradicts: it proves nothing from then on.
    interrupted
        Whether Ctrl-C ended the solver.
    stage
        What the time limit ended, as "building the trees"; empty where it ended nothing or the solver.
    conflict, relaxed
        Rules in conflict, and the radii of rules that were widened.
    """

    question: Question
    phase: Phase
    margin: float | None
    tries: Tries
    solver: str
    size: Mapping[str, int] = field(default_factory=dict)
    diversity: AbstractDiversity = field(default_factory=OtherDecisions)
    answers: tuple[Answer, ...] = ()
    first: Finding | None = None
    last: Finding | None = None
    barred: tuple[dict[str, float], ...] = ()
    refused: tuple[dict[str, float], ...] = ()
    exact: bool = False
    coarse: dict[str, float] | None = None
    starts: tuple[Start, ...] = ()
    found: tuple[Start, ...] = ()
    incumbents: tuple[dict[str, float], ...] = ()
    doubted: bool = False
    interrupted: bool = False
    stage: str = ""
    conflict: tuple[tuple[str, str, float | None], ...] = ()
    relaxed: Mapping[str, float] = field(default_factory=dict)

    def differing(self) -> list[tuple[Point, AbstractDiversity]]:
        """Return the answers in hand, and in what the next is to differ from each."""
        return [(point, self.diversity.after(answer.cluster)) for answer, point in self.answers]

    def differs(self, point: Point) -> bool:
        """Tell whether a point differs from every answer in plain numbers, by more than a solver's noise."""
        space = self.question.space
        factual = self.question.factual
        return all(diversity.differ(space, factual, earlier, point) for earlier, diversity in self.differing())

    def surely_differs(self, point: Point) -> bool:
        """Tell whether a point differs from every answer whatever the rows of a program make of it."""
        space = self.question.space
        factual = self.question.factual
        return all(diversity.surely(space, factual, earlier, point) for earlier, diversity in self.differing())

    @property
    def has_least_margin(self) -> bool:
        """Whether the next program leaves out nothing by a margin that failed checks have raised."""
        asked = self.question.prepared.margin
        return self.margin == asked or (self.margin is None and asked == 0.0)  # trees then decide ties themselves

    def cost_limit(self) -> float | None:
        """Return what a further answer may cost, where that was asked for."""
        if self.question.within is None or not self.answers:
            return None
        return self.answers[0][0].cost + self.question.within

    def ended(self, finding: Finding) -> State:
        """Return the state in which the search for the next answer came to something."""
        return replace(self, last=finding, phase=Phase.MARGIN)

    def looking_for_next(self) -> State:
        """Return the state in which the search for the next answer begins.

        What is left to choose from shrinks with each answer, so what was proved of the one before holds.
        """
        settings = self.question.settings
        diversity = (settings.diversity or OtherDecisions()).fitted(settings.rules)
        bound = self.answers[-1][0].bound if self.answers else None
        tries = Tries(self.margin, diversity, bound)
        return replace(self, phase=Phase.PROGRAM, diversity=diversity, tries=tries)

    def having_learned(self, other: State) -> State:
        """Return this state with what another one, which is given up, has learned of the solver and the time."""
        return replace(
            self,
            solver=other.solver,
            size=other.size,
            doubted=other.doubted,
            interrupted=other.interrupted,
            stage=other.stage,
        )


def favourable() -> Finding:
    """Return the finding of a row that meets the target and every rule already."""
    reason = said("The row meets the target and every rule already.", "favourable_already")
    return Finding(Status.ALREADY_FAVOURABLE, bound=0.0, reason=reason, proved=True)


def without_unseen(
    predictor: Predictor, reach: dict[str, Interval | Levels], factual: Mapping[str, float]
) -> dict[str, Interval | Levels]:
    """Take the levels that the model's pipeline fails on out of the reach, or refuse a factual that has one."""
    for name, ranks in predictor.unseen.items():
        if factual[name] in ranks:
            level = predictor.space[name].levels[int(factual[name])]
            but = f"column {name!r} is {level!r}"
            then = "Fit it on rows that have it."
            raise InvalidValueError("The model", "levels that it was fitted on", but, then)
        part = reach[name]
        assert isinstance(part, Levels)  # noqa: S101 - only levels are encoded by tables
        reach[name] = Levels(tuple(rank for rank in part.ranks if rank not in ranks))
    return reach

"""The state of one person's search: the question, the check of a point, the answers found so far, the next settings.

States are immutable: each step returns a new one. Only the stopwatch is updated in place.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np

from ceopt.base.results import Status
from ceopt.base.said import said
from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity, OtherDecisions
from ceopt.formulations.predictors.reaches import slack
from ceopt.formulations.space.reachable import Interval, Levels, reach_of
from ceopt.oracle.model import Check, broken_rules
from ceopt.oracle.rows import coordinates_of
from ceopt.search.least_costs import LeastCost
from ceopt.search.near_people import Met
from ceopt.search.near_points import NearSearch
from ceopt.search.near_values import NearValues, met_alone
from ceopt.search.nearer import Point, Start
from ceopt.search.ranked_sums import PersonSums
from ceopt.search.solve_program import Person, ProgramSolver, SolvedProgram
from ceopt.solvers.deadline import until, without_deadline
from ceopt.solvers.errors import CeoptError, InvalidValueError
from ceopt.tolerances import CLEAR_OF_THE_DECISION, LITTLE_OF_THE_WAY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ceopt.formulations.predictors.pruned_leaves import PersonCells
    from ceopt.formulations.predictors.tree_bounds import TreeNeed
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.result.counterfactual import Counterfactual
    from ceopt.search.prepare import Prepared
    from ceopt.settings import CheckedSettings
    from ceopt.solvers.problem import Outcome

#: A call of the user's model that takes fewer seconds than this doubles the next batch of rows; where none took longer,
#: the first batch is of so many.
_SHORT_CALL_S: Final = 0.1
_FIRST_BATCH: Final = 4
#: Seconds beyond the time limit in which found points may still be checked.
GRACE_S: Final = 0.1
#: But only if no call of the user's model took longer than this.
_QUICK_CALL_S: Final = 0.02
#: Predictions of several people that are kept.
_MOST_PREDICTIONS: Final = 1000
#: An answer and its coordinates.
Answer: TypeAlias = "tuple[Counterfactual, dict[str, float]]"
#: A point's coordinates, column by column.
Key: TypeAlias = tuple[float, ...]


class Phase(Enum):
    """What a search does next."""

    #: Collect known feasible points, before any program.
    START = auto()
    #: What does the least cost have to be, without a program?
    LEAST = auto()
    #: Is what is in hand as cheap as a bound says?
    BOUND = auto()
    #: Solve a program for the next answer.
    PROGRAM = auto()
    #: Check its point.
    CHECK = auto()
    #: Look for a cheaper answer, or any, without the margin.
    MARGIN = auto()
    #: Drop a further answer that costs more than the limit.
    LIMIT = auto()
    #: Move columns of the answer back that need not change.
    FEWER = auto()
    #: Enlarge rules that allow it, if nothing else was found.
    WIDER_RULES = auto()
    #: Find the rules in conflict.
    CONFLICT = auto()
    #: Begin with the next answer, or end.
    NEXT = auto()
    #: Nothing more.
    END = auto()


@final
class Stopwatch:
    """Seconds spent by phase; ``check`` is decoding and rules, ``predict`` the user's own model.

    What passed since the call ``began`` is ``read``; without that the stopwatch begins now. ``longest_call_s`` is the
    longest single call of the user's own model.
    """

    __slots__ = ("began", "longest_call_s", "seconds")

    def __init__(self, began: float | None = None) -> None:
        now = time.perf_counter()
        self.began = now if began is None else began
        self.longest_call_s = 0.0
        self.seconds = dict.fromkeys("read start build lower solve check predict".split(), 0.0)
        self.seconds["read"] = now - self.began

    @contextmanager
    def counting(self, phase: str) -> Iterator[None]:
        """Add the time of the enclosed block to a phase, less what it adds to others, also if it raises."""
        passed = time.perf_counter() - self.began
        before = sum(self.seconds.values())
        try:
            yield
        finally:
            elsewhere = sum(self.seconds.values()) - before
            self.add({phase: max(time.perf_counter() - self.began - passed - elsewhere, 0.0)})

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add seconds that were measured elsewhere."""
        for phase, spent in seconds.items():
            self.seconds[phase] += spent
        self.longest_call_s = max(self.longest_call_s, seconds.get("predict", 0.0))

    def share(self, phase: str, seconds: float) -> None:
        """Add a share of what was done for several people at another time."""
        self.began -= seconds
        self.add({phase: seconds})

    def timings(self) -> dict[str, float]:
        """Return the seconds by phase, and in total."""
        return {**self.seconds, "total": time.perf_counter() - self.began}


@final
class Predictions:
    """What the user's own model says of points of several people, asked in one call.

    Where many rows are predicted, sums of floats may end otherwise than where one is. So only what lies clear of the
    decision is believed; about all else the model is asked alone, and so it is if the call fails.
    """

    __slots__ = ("_asked", "_expected", "_known", "_met", "_near")

    def __init__(self) -> None:
        self._known: dict[Key, tuple[Any, bool, float, float]] = {}
        #: The search for near points of the question asked last, by its settings; and where no proof is asked for, what
        #: it met by factual with the seconds that this took, who is asked about next, and by which settings.
        self._near: tuple[CheckedSettings, NearSearch | NearValues] | None = None
        self._met: dict[Key, tuple[Met, float]] = {}
        self._expected: dict[Key, Person] = {}
        self._asked: CheckedSettings | None = None

    def ask(self, prepared: Prepared, points: Sequence[Point]) -> None:
        """Ask a classifier about points, which may be of different people."""
        if len(points) < 2 or prepared.predictor.labels is None:  # a value may differ in its last digits
            return
        if len(self._known) > _MOST_PREDICTIONS:
            self._known = dict(list(self._known.items())[-_MOST_PREDICTIONS // 2 :])
        began = time.perf_counter()
        space = prepared.space
        try:
            predicted, is_met = prepared.oracle.judge(space.frame(points), prepared.settings.target)
            slacks = prepared.slacks(coordinates_of(space, points))
        except Exception:  # noqa: BLE001 - one person's row may be what the user's own model fails on
            return
        seconds = (time.perf_counter() - began) / len(points)
        for point, prediction, met, slack_there in zip(points, predicted, is_met, slacks.tolist(), strict=True):
            self._known[_key(space, point)] = (prediction, bool(met), slack_there, seconds)

    def met(self, prepared: Prepared, person: Person, deadlines: tuple[float, float]) -> tuple[Met, float]:
        """Return what is met near a person until the first deadline; until the second, where nothing is by then.

        Without a proof the next people of :meth:`expect` are searched for with them, within the time of all. Also
        returned is a person's share of those seconds, less what passed here.
        """
        search = self._search(prepared)
        key = _key(prepared.space, person.factual)
        shared_s = 0.0
        if key in self._expected and search.width > 1 and prepared.settings is self._asked:
            shared_s = -self._meet_together(search, prepared, key, deadlines[0] - time.perf_counter())
        if key in self._met:
            found, own_s = self._met[key]
            self._met[key] = found, 0.0  # whoever asks again
            shared_s += own_s
            if len(found.points):
                return found, shared_s
        alone = person.factual, person.reach
        deadlines = deadlines[0] - shared_s, deadlines[1] - shared_s
        with without_deadline():
            found = met_alone(search, prepared, alone, deadlines)
            if isinstance(search, NearSearch) and not len(found.points) and np.isfinite(found.bound):
                found = met_alone(NearValues(prepared), prepared, alone, deadlines)
        return found, shared_s

    def _meet_together(self, search: NearSearch | NearValues, prepared: Prepared, first: Key, each_s: float) -> float:
        """Search for a person and the next that are expected, so many seconds for each; return what it took."""
        began = time.perf_counter()

        def is_away(key: Key) -> bool:
            known = self.of(self._expected[key].factual, prepared)
            return key == first or known is None or not known[1]

        following = itertools.dropwhile(lambda key: key != first, self._expected)
        keys = list(itertools.islice(filter(is_away, following), search.width))
        people = [self._expected.pop(key) for key in keys]
        found = [Met(0.0, np.zeros((0, len(first))))] * len(keys)
        with contextlib.suppress(Exception), without_deadline(), until(began + each_s * len(keys)):  # each then alone
            found = search.run([(person.factual, person.reach) for person in people])
        took_s = time.perf_counter() - began
        self._met |= {key: (met, took_s / len(keys)) for key, met in zip(keys, found, strict=True)}
        return took_s

    def expect(self, prepared: Prepared, people: Sequence[Person]) -> None:
        """Note people who are asked about next, in this order, if they are to be searched for together."""
        if prepared.settings.proof:
            return
        self._met = {}
        self._asked = prepared.settings
        self._expected = {_key(prepared.space, person.factual): person for person in people}

    def _search(self, prepared: Prepared) -> NearSearch | NearValues:
        if self._near is None or self._near[0] is not prepared.settings:
            self._near = (prepared.settings, NearSearch.of(prepared) or NearValues(prepared))
            self._met = {}
        return self._near[1]

    def of(self, point: Point, prepared: Prepared) -> tuple[Any, bool, float] | None:
        """Return the prediction of a point, whether it meets the target, and the point's share of the call's seconds.

        None where the model is to be asked alone.
        """
        known = self._known.get(_key(prepared.space, point))
        if known is None or not prepared.is_reproducible:
            return None
        prediction, is_met, slack_there, seconds = known
        is_clear = abs(slack_there) > CLEAR_OF_THE_DECISION * prepared.least_margin
        if not is_clear or (slack_there > 0.0) is not is_met:
            return None
        return prediction, is_met, seconds


def _key(space: FeatureSpace, point: Point) -> Key:
    return tuple(point[name] for name in space.names)


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
        Most that a further answer may cost above the best one; None for no limit.
    why_s
        Seconds for finding the rules in conflict; 0 to skip it here.
    keep_on_interrupt
        Whether Ctrl-C ends the search with the answers found so far; else it raises KeyboardInterrupt.
    stopwatch
        Counts the seconds of all steps.
    predictions
        Of points that the model was asked about for several people in one call.
    cells
        The cells of a person for a need of trees, once they are asked for.
    sums
        What is known of the person under a linear score.
    """

    prepared: Prepared
    person: Person
    deadline: float
    within: float | None
    why_s: float
    keep_on_interrupt: bool
    stopwatch: Stopwatch
    predictions: Predictions = field(default_factory=Predictions)
    cells: list[tuple[Person, TreeNeed, PersonCells]] = field(default_factory=list)
    sums: PersonSums = field(default_factory=PersonSums)

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
    def program_solver(self) -> ProgramSolver:
        """What builds and solves the person's programs."""
        return ProgramSolver(self.prepared, self.person)

    @property
    def has_default_margin(self) -> bool:
        """Whether the decision is asked for with a margin that the user has not named."""
        return self.settings.margin is None and not self.prepared.asks_model

    @property
    def share_of_rounding(self) -> float:
        """Relative error of a cost that rounding in the model's own arithmetic can cause.

        Twice its share of the distance to the decision, as a squared cost doubles it. 0 if no column's range is small
        enough beside its values.
        """
        if not self.prepared.steps:
            return 0.0
        return 2.0 * self.prepared.steps / max(self.way_to_decision, self.prepared.steps)

    @property
    def way_to_decision(self) -> float:
        """Distance of the person's score from the decision, on either side of it."""
        coordinates = coordinates_of(self.space, [self.factual])
        return abs(float(slack(self.prepared.predictor, coordinates, self.settings.target)[0]))

    @property
    def is_late(self) -> bool:
        """Whether the time limit has passed."""
        return time.perf_counter() >= self.deadline

    @property
    def is_past_grace(self) -> bool:
        """Whether the time limit has passed and, for a quick model, the grace for checking found points."""
        late_s = time.perf_counter() - self.deadline
        if self.stopwatch.longest_call_s > _QUICK_CALL_S:
            return late_s >= 0.0
        return late_s >= GRACE_S

    def cost(self, point: Point) -> float:
        """Return what a point costs."""
        return self.settings.cost.value(self.space, self.factual, point)

    def bound_on_cost(self, outcome: Outcome) -> float | None:
        """Return the solver's bound on the objective, converted to the cost; None if there is none."""
        if outcome.bound is None or not np.isfinite(outcome.bound):
            return None
        return max(self.settings.cost.from_objective(outcome.bound), 0.0)

    def nearly_meets_target(self, points: Sequence[Point]) -> list[bool]:
        """Return for each point whether the model as read meets the target or nearly does.

        A point may miss it by a share LITTLE_OF_THE_WAY of the person's own distance.
        """
        slacks = self.prepared.slacks(coordinates_of(self.space, [self.factual, *points]))
        kept: list[bool] = (slacks[1:] >= LITTLE_OF_THE_WAY * min(slacks[0], 0.0)).tolist()
        return kept

    def check(self, point: dict[str, float]) -> Check:
        """Check a point with the user's own model and every rule, regardless of the time limit.

        ``valid`` of the result is about the target only; broken rules are in ``broken``.
        """
        with without_deadline():
            known = self.predictions.of(point, self.prepared)
            if known is not None:
                prediction, is_met, seconds = known
                self.stopwatch.share("predict", seconds)
            else:
                with self.stopwatch.counting("predict"):
                    (prediction,), (is_met,) = self.prepared.judge([point])
            with self.stopwatch.counting("check"):
                broken = broken_rules(self.settings.rules, self.space, self.factual, point)
        return Check(bool(is_met), prediction, broken)

    def keeps_rules(self, point: Point) -> bool:
        """Whether a point keeps every rule, those of the space too."""
        return not broken_rules(self.settings.rules, self.space, self.factual, point)

    def accepts(self, points: Sequence[dict[str, float]]) -> list[bool]:
        """Return for each point whether the user's own model accepts it; False where the time did not allow to ask.

        What it was asked about with points of others it is not asked again. A batch doubles while a call takes less
        than a tenth of a second. A model that raises, or Ctrl-C under ``keep_on_interrupt``, stops the asking and
        raises nothing.
        """
        told = [self.predictions.of(point, self.prepared) for point in points]
        for _, _, seconds in filter(None, told):
            self.stopwatch.share("predict", seconds)
        is_met = iter(self._asked([point for point, known in zip(points, told, strict=True) if known is None]))
        return [next(is_met) if known is None else known[1] for known in told]

    def _asked(self, points: Sequence[dict[str, float]]) -> list[bool]:
        is_met: list[bool] = []
        batch = _FIRST_BATCH if self.stopwatch.longest_call_s < _SHORT_CALL_S else 1
        try:
            while len(is_met) < len(points) and not self.is_past_grace:
                began = time.perf_counter()
                with without_deadline(), self.stopwatch.counting("predict"):
                    is_met += self.prepared.judge(points[len(is_met) : len(is_met) + batch])[1].tolist()
                if time.perf_counter() - began < _SHORT_CALL_S:
                    batch *= 2
        except KeyboardInterrupt:
            if not self.keep_on_interrupt:
                raise
        except Exception:  # noqa: BLE001, S110 - the user's own model may raise anything
            pass
        return is_met + [False] * (len(points) - len(is_met))

    def check_factual(self) -> Check:
        """Check the factual row; raise InvalidValueError if the user's model fails on it."""
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
    """Outcome of the search for one more answer.

    ``proved``: whether it is proved that there is no further answer, or that none is needed.
    """

    status: Status
    answer: Counterfactual | None = None
    bound: float | None = None
    reason: str = ""
    proved: bool = False

    @property
    def is_proved_infeasible(self) -> bool:
        """Whether it is proved that no answer, or no further one, exists."""
        return self.status is Status.INFEASIBLE and self.proved


@final
@dataclass(frozen=True, slots=True)
class Tries:
    """What was tried for the next answer.

    Parameters
    ----------
    first_diversity
        Diversity of the first program for this answer; later ones may ask for more (see :class:`State`).
    bound
        Proved lower bound on the cost of this answer.
    failures
        Why points failed the check, in words.
    repairs
        How many programs were solved again because a point failed the check.
    """

    first_diversity: AbstractDiversity
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
        Those found so far, in order.
    first, last
        Findings of the search for the first answer and of the most recent finished one; None before that.
    tries
        What was tried for the next answer.
    margin, diversity
        Margin of the next program, and how its answer has to differ from those found.
    barred, refused
        Points that broke a rule when checked, and points that the user's own model rejected.
    exact
        Whether the solver is asked to be exact.
    coarse
        The rejected point of a run without exact options, kept until it is excluded; else None.
    starts, found
        Points known before the program is solved, cheapest first: for the next program, and those of the first search.
    incumbents
        Without a diversity: points that the solver and the search for a start came across, cheapest first.
    solved
        The program that was solved last, while its point is to be checked; else None.
    solver
        Name and version of the one that ran last.
    size
        Variables, integers and rows of the first program that was solved, for the result.
    doubted
        Whether a known point has contradicted the solver; none of its later bounds is then used as proof.
    interrupted
        Whether Ctrl-C ended the solver.
    stage
        The stage that the time limit cut off, such as "building the trees"; empty if none, or if it was the solve.
    conflict, relaxed
        Rules in conflict, and the radii of rules that were enlarged.
    least
        What is known of the least cost without a program.
    """

    question: Question
    phase: Phase
    margin: float | None
    tries: Tries
    solver: str
    solved: SolvedProgram | None = None
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
    least: LeastCost | None = None

    def earlier_with_diversity(self) -> list[tuple[Point, AbstractDiversity]]:
        """Return pairs of a found answer and the diversity that the next one must have from it."""
        return [(point, self.diversity.after(answer.cluster)) for answer, point in self.answers]

    def differs(self, point: Point) -> bool:
        """Return whether a point differs from every answer, computed in plain numbers, beyond solver tolerance."""
        space = self.question.space
        factual = self.question.factual
        pairs = self.earlier_with_diversity()
        return all(diversity.differ(space, factual, earlier, point) for earlier, diversity in pairs)

    def surely_differs(self, point: Point) -> bool:
        """Return whether a point differs from every answer by so much that no row of a program can cut it off."""
        space = self.question.space
        factual = self.question.factual
        pairs = self.earlier_with_diversity()
        return all(diversity.surely(space, factual, earlier, point) for earlier, diversity in pairs)

    @property
    def has_least_margin(self) -> bool:
        """Whether the margin of the next program is the one first asked for, not raised by a failed check."""
        first = self.question.prepared.margin
        return self.margin == first or (self.margin is None and first == 0.0)  # trees then decide ties themselves

    def cost_limit(self) -> float | None:
        """Return what a further answer may cost, where that was asked for."""
        if self.question.within is None or not self.answers:
            return None
        return self.answers[0][0].cost + self.question.within

    def later(self, seconds: float) -> State:
        """Return the state after a break, which does not count towards the time limit."""
        question = self.question
        question.stopwatch.began += seconds
        return replace(self, question=replace(question, deadline=question.deadline + seconds))

    def ended(self, finding: Finding) -> State:
        """Return the state after the search for one answer has ended with ``finding``."""
        return replace(self, last=finding, phase=Phase.MARGIN)

    def looking_for_next(self) -> State:
        """Return the state in which the search for the next answer begins.

        Each answer shrinks the feasible set, so the bound of the previous answer stays valid.
        """
        settings = self.question.settings
        diversity = (settings.diversity or OtherDecisions()).fitted(settings.rules)
        bound = self.answers[-1][0].bound if self.answers else None
        tries = Tries(diversity, bound)
        return replace(self, phase=Phase.PROGRAM, diversity=diversity, tries=tries)

    def with_facts_of(self, other: State) -> State:
        """Return this state with what an abandoned one says of the solver, the doubt, the interrupt and the stage."""
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


def person_of(prepared: Prepared, row: Any) -> Person:
    """Return who is asked about, or refuse a row that is unusable."""
    space = prepared.space
    factual = space.row(row)
    space.require_moderate(factual)
    return Person(factual, reach_without(prepared.predictor.unseen, space, factual), space)


def reach_without(
    unseen: Mapping[str, frozenset[int]], space: FeatureSpace, factual: Mapping[str, float]
) -> dict[str, Interval | Levels]:
    """Return the reach of a person without the levels that the model's pipeline fails on.

    Raises
    ------
    InvalidValueError
        The factual has such a level.
    """
    reach = reach_of(space, factual)
    for name, ranks in unseen.items():
        if factual[name] in ranks:
            level = space[name].levels[int(factual[name])]
            but = f"column {name!r} is {level!r}"
            then = "Fit it on rows that have it."
            raise InvalidValueError("The model", "levels that it was fitted on", but, then)
        part = reach[name]
        assert isinstance(part, Levels)  # noqa: S101 - only levels are encoded by tables
        reach[name] = replace(part, ranks=tuple(rank for rank in part.ranks if rank not in ranks))
    return reach

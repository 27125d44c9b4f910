"""The relaxation of rules: the least amounts by which they would have to give way, solved for and checked."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any, Final, final

import pyomo.environ as pyo
from pyomo.core.base.block import ScalarBlock

from ceopt.base.said import said
from ceopt.formulations.constraints import rule_name
from ceopt.formulations.constraints.diversity.diversity import leave_out
from ceopt.formulations.constraints.rule import AbstractElastic, RuleCharges, charged_by, widens_itself
from ceopt.formulations.costs import AbstractCost
from ceopt.formulations.recourse_program import RecourseProgram, recourse_program
from ceopt.formulations.space.reachable import Interval, reach_of
from ceopt.oracle.model import broken_moves, broken_rules
from ceopt.search.nearer import Counterexamples
from ceopt.search.solve_program import ProgramSolver
from ceopt.solvers.deadline import OutOfTimeError, without_deadline
from ceopt.solvers.errors import CeoptError
from ceopt.solvers.problem import Stop
from ceopt.solvers.registry import multiplies
from ceopt.tolerances import CURVED_ROOM, WIDTH_GAP, WIDTH_NOISE, WIDTH_ROOM

if TYPE_CHECKING:
    from ceopt.formulations.columns import Price
    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.constraints.rule import AbstractRule, Point
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.search.prepare import Prepared
    from ceopt.search.solve_program import Person
    from ceopt.solvers.problem import Outcome

#: Significant digits of a width, which is rounded up: more than a solver's tolerance of 1e-6 leaves right.
_DIGITS = 6
LATE: Final = said("the time limit is used up", "late")
#: Share of the time left that the search for the least radii may take.
_SHARE = 0.5


def with_rules(prepared: Prepared, rules: Sequence[AbstractRule]) -> Prepared:
    """Return the same question under other rules, which the cost charges as it did the old ones."""
    settings = prepared.settings
    own = settings.cost
    if isinstance(own, RuleCharges):
        own = own.cost
    cost = charged_by(own, rules, prepared.space)
    return replace(prepared, settings=replace(settings, rules=tuple(rules), cost=cost))


@final
@dataclass(frozen=True, slots=True)
class Relaxation:
    """What came of letting some rules give way.

    Parameters
    ----------
    point
        A point that the user's own model and every rule that is kept agree to, or None.
    widths
        By how much each yielding rule must be wider to hold the point, rounded up to six digits.
    is_empty
        Proved: there is no point, however much they give way.
    is_least
        Proved: the sum of the widths cannot be less.
    reason
        Where there is neither a point nor a proof: why.
    """

    point: dict[str, float] | None = None
    widths: tuple[float, ...] = ()
    is_empty: bool = False
    is_least: bool = False
    reason: str = ""


@final
class Nothing(AbstractCost):
    """No cost: any point that satisfies the program will do."""

    __slots__ = ()

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return no price for any column."""
        return {feature.name: () for feature in space}

    def build(self, x: Factual) -> Any:
        """Return 0."""
        del x
        return 0.0


@final
@dataclass(slots=True)
class Relaxer:
    r"""Finds the least sum of the amounts by which some rules give way, others being kept.

    .. math::
        \min_{x,\, w \ge 0}\ \sum_{r \in Y} w_r \quad\text{s.t.}\quad s(x) \text{ reaches the target with margin } m,
        \quad x \in \text{reach}(x^0), \quad x \text{ keeps } r\ (r \in K), \quad
        x \text{ keeps } r \text{ widened by } w_r\ (r \in Y)

    With Y empty this asks only whether there is a point. Nothing is charged.

    Parameters
    ----------
    prepared
        Model and settings; its rules and cost are not used.
    deadline
        On the clock of ``time.perf_counter``.
    solves
        Programs solved so far.
    seconds
        What they took, by phase.
    unsettled
        Why the rules that widen themselves were neither widened nor shown not to help, or empty.
    overlooked
        A point that was met and keeps every rule as it is, though a proof says that there is none: within the solver's
        tolerance either may be so, and the point is what a person is served by.
    """

    prepared: Prepared
    deadline: float
    solves: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    unsettled: str = ""
    overlooked: dict[str, float] | None = None

    def least(
        self,
        person: Person,
        keep: Sequence[AbstractRule],
        yielding: Sequence[AbstractElastic] = (),
        *,
        most_s: float = math.inf,
    ) -> Relaxation:
        """Solve; a point that fails the check is sought again with integers as whole as the solver can make them.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C stopped the solver.
        """
        deadline = min(self.deadline, time.perf_counter() + most_s)
        programs = ProgramSolver(self.prepared.for_person(person.factual, person.reach), person)
        refused: list[Point] = []
        exact = False
        fault = ""
        learned = Counterexamples({k: rule for k, rule in enumerate(keep) if rule.stated == "by_cuts"})
        while True:
            left = deadline - time.perf_counter()
            if left <= 0:
                return Relaxation(reason=LATE)
            try:
                solved = self._solved(programs, learned.stated(keep), yielding, refused, left, exact=exact)
                if solved.outcome.status is Stop.INTERRUPTED:
                    raise KeyboardInterrupt
                if _goes_on(solved, keep, learned, person):
                    continue
                if solved.point is None:
                    return _without_point(solved.outcome, fault)
                with without_deadline():  # a point in hand is checked to the end
                    is_met, new_fault = self._fault(programs, keep, solved.point)
                    if not is_met and programs.prepared.asks_model:  # what the model refuses, it refuses for good
                        refused.append(solved.point)
                        continue
                    fault = new_fault
                    violations = [rule.violation(person.space, person.factual, solved.point) for rule in yielding]
            except OutOfTimeError:
                return Relaxation(reason=fault or LATE)
            except CeoptError as error:  # of a program, or of a rule that cannot be asked about this space
                return Relaxation(reason=str(error).rstrip("."))
            if not fault:
                widths = []
                for violation, amount in zip(violations, solved.amounts, strict=True):
                    widths.append(_rounded_up(violation or amount, solved.room))
                is_least = solved.outcome.status is Stop.OPTIMAL
                return Relaxation(solved.point, tuple(widths), is_least=is_least)
            if exact:
                return Relaxation(reason=fault)
            exact = True

    def _solved(
        self,
        programs: ProgramSolver,
        keep: Sequence[AbstractRule],
        yielding: Sequence[AbstractElastic],
        refused: Sequence[Point],
        seconds: float,
        *,
        exact: bool,
    ) -> RelaxedProgram:
        """Solve one program in which some rules are kept and others give way."""
        amounts: list[Any] = []
        solved = programs.solve(
            lambda: _program(programs, keep, yielding, refused, amounts), seconds, relative_gap=WIDTH_GAP, exact=exact
        )
        began = time.perf_counter()
        point = None
        values = list[float]()
        room = 0.0
        if solved.outcome.x is not None:
            solved.compiled.load(solved.outcome.x)
            point = solved.program.x.decoded()
            values = [max(float(pyo.value(amount)), 0.0) for amount in amounts]
            if solved.compiled.cones or solved.compiled.quadratics:
                room = CURVED_ROOM
        build_s, lower_s, solve_s = solved.seconds
        self._note(build=build_s, lower=lower_s, solve=solve_s + time.perf_counter() - began)
        return RelaxedProgram(solved.outcome, point, values, room)

    def _fault(
        self, programs: ProgramSolver, keep: Sequence[AbstractRule], point: dict[str, float]
    ) -> tuple[bool, str]:
        """Return whether the user's own model accepts a point, and the reason if not."""
        prepared = programs.prepared
        person = programs.person
        predicted, is_met = prepared.judge([point])
        broken = broken_rules(keep, person.space, person.factual, point)
        if not is_met[0]:
            return False, f"the solver's point failed the check: the model predicts {predicted[0]}"
        if broken:
            return True, f"the solver's point failed the check: it breaks {', '.join(broken)}"
        space = prepared.space
        is_in_reach = _is_on_steps(space, person.factual, point) and not broken_moves(space, person.factual, point)
        if is_in_reach and not broken_rules(prepared.settings.rules, space, person.factual, point):
            self.overlooked = point
        return True, ""

    def _note(self, **seconds: float) -> None:
        self.solves += 1
        self.seconds = {phase: self.seconds.get(phase, 0.0) + spent for phase, spent in seconds.items()}


def _goes_on(solved: RelaxedProgram, keep: Sequence[AbstractRule], learned: Counterexamples, person: Person) -> bool:
    """Whether a program has to be solved again, as its point breaks a rule that follows from counterexamples.

    Or as it has none, and a rule was stated more strictly than it is: then that one is to follow from them too.
    """
    if solved.point is not None:
        return learned.add(person.space, solved.point)[1]
    stricter = {k: rule for k, rule in enumerate(keep) if rule.stated != "exactly" and k not in learned.cuts}
    if solved.outcome.status is not Stop.INFEASIBLE or not stricter:
        return False
    learned.take_up(stricter)
    return True


def _is_on_steps(space: FeatureSpace, factual: Point, point: Point) -> bool:
    """Whether a point's steps are exact: what lies beside one by a rounding is no answer, as a tree may split there."""
    for name, part in reach_of(space, factual).items():
        if isinstance(part, Interval) and part.step is not None and not part.holds(point[name]):
            return False
    return True


@final
@dataclass(frozen=True, slots=True)
class RelaxedProgram:
    """What one program came to: outcome, point, by how much each rule gives way there, and the room that it needs."""

    outcome: Outcome
    point: dict[str, float] | None
    amounts: list[float]
    room: float


def _program(
    programs: ProgramSolver,
    keep: Sequence[AbstractRule],
    yielding: Sequence[AbstractElastic],
    refused: Sequence[Point],
    amounts: list[Any],
) -> RecourseProgram:
    """State the program, and put the expressions of the amounts by which rules give way into ``amounts``."""
    prepared = programs.prepared
    person = programs.person
    program = recourse_program(
        prepared.predictor,
        prepared.space.frame([person.factual]),
        target=prepared.settings.target,
        cost=Nothing(),
        rules=keep,
        margin=prepared.margin,
        formulation=prepared.settings.formulation,
        reach=person.reach,
        space=person.space,
        products=multiplies(prepared.settings.solver),
    )
    program.model.yielding = pyo.Block(concrete=True)
    for position, rule in enumerate(yielding):
        block = ScalarBlock(concrete=True)
        amounts.append(rule.relax(block, program.x))
        program.model.yielding.add_component(f"rule_{position + 1}", block)
    leave_out(program, refused)
    program.model.cost.set_value(expr=sum(amounts))
    return program


def _without_point(outcome: Outcome, fault: str) -> Relaxation:
    """Return what a program without a point says; after a point that failed, the solver's tolerance decides."""
    if outcome.status is Stop.INFEASIBLE and not fault:
        return Relaxation(is_empty=True)
    if fault:
        return Relaxation(reason=fault)
    if outcome.status is Stop.TIME_LIMIT:
        return Relaxation(reason=LATE)
    return Relaxation(reason=outcome.message.rstrip(".") or f"the solver stopped: {outcome.status}")


@final
@dataclass(frozen=True, slots=True)
class Enlarged:
    """A question with wider rules.

    Parameters
    ----------
    prepared
        The question.
    radii
        Rule name -> its radius now.
    point
        A point that keeps the wider rules.
    reason
        What is to be said about it, or empty.
    """

    prepared: Prepared
    radii: dict[str, float]
    point: dict[str, float]
    reason: str


def enlargements(relaxer: Relaxer, person: Person) -> Iterator[Enlarged]:
    """Give the question with the rules that widen themselves (``enlarge``) wider by the least sum, then by a bit more.

    Nothing where there are no such rules, or where no width of them helps. Where the time does not do for the least
    widths, those that some point needs; where it does not do for a point, ``relaxer.unsettled`` says so.
    """
    prepared = relaxer.prepared
    rules = relaxer.prepared.settings.rules
    growing: dict[int, Any] = {k: rule for k, rule in enumerate(rules) if widens_itself(rule)}
    if not growing:
        return
    keep = [rule for k, rule in enumerate(rules) if k not in growing]
    most_s = _SHARE * (relaxer.deadline - time.perf_counter())
    found = relaxer.least(person, keep, list(growing.values()), most_s=most_s)
    if found.point is None and not found.is_empty:
        found = _some_widths(relaxer, person, keep, list(growing.values()))
    if found.point is None:
        relaxer.unsettled = found.reason
        return
    proved = ""
    if not found.is_least:
        proved = said("The time limit ended the proof that no less would do.", "widths_unproved")
    for share, least in WIDTH_ROOM:
        wider = list(rules)
        radii = {}
        for (k, rule), width in zip(growing.items(), found.widths, strict=True):
            if width > 0.0:
                enlarged = rule.widened(width + max(share * width, least))
                wider[k] = enlarged
                radii[rule_name(enlarged, k)] = float(enlarged.radius)
        yield Enlarged(with_rules(prepared, wider), radii, found.point, proved)


def _some_widths(
    relaxer: Relaxer, person: Person, keep: Sequence[AbstractRule], growing: Sequence[AbstractElastic]
) -> Relaxation:
    """Return a point that is found without the rules that grow, and the widths that it needs."""
    found = relaxer.least(person, keep)
    if found.point is None:
        return found
    off = (rule.violation(person.space, person.factual, found.point) for rule in growing)
    return Relaxation(found.point, tuple(_rounded_up(width, CURVED_ROOM) for width in off))


def _rounded_up(width: float, room: float) -> float:
    """Return a width and the room that it needs to six digits, and never less but for the rounding of floats."""
    width += room * max(width, 1.0) if width > 0.0 else 0.0
    if width == math.floor(width):
        return width
    rounded = float(f"{width:.{_DIGITS}g}")
    if abs(rounded - width) <= WIDTH_NOISE * width:
        return rounded
    exact = Decimal(width)
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - _DIGITS + 1), rounding=ROUND_CEILING))

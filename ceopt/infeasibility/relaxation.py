"""The relaxation of rules: the least amounts by which they would have to give way, solved for and checked."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any, final

import pyomo.environ as pyo
from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.constraints import rule_name
from ceopt.formulations.constraints.diversity.excluded_points import leave_out
from ceopt.formulations.constraints.rule import AbstractElastic, widens_itself
from ceopt.formulations.costs import AbstractCost
from ceopt.formulations.costs.rule_charges import RuleCharges, charged_by
from ceopt.formulations.recourse_program import recourse_program
from ceopt.solvers.compile.compiled_model import compile_model
from ceopt.solvers.deadline import OutOfTimeError, without_deadline
from ceopt.solvers.errors import CeoptError
from ceopt.solvers.guard.session import GuardedSession
from ceopt.solvers.problem import Status
from ceopt.solvers.registry import choose
from ceopt.verify import broken_rules

if TYPE_CHECKING:
    from ceopt.formulations.columns import Price
    from ceopt.formulations.columns.factual import Factual
    from ceopt.formulations.constraints.rule import AbstractRule, Point
    from ceopt.formulations.space.reachable import Reach
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.query.prepare import Prepared
    from ceopt.solvers.problem import Outcome

__all__ = ["LATE", "Enlarged", "Person", "Relaxation", "Relaxer", "enlargements", "with_rules"]

#: Significant digits of a width, which is rounded up: more than a solver's tolerance of 1e-6 leaves right.
_DIGITS = 6
#: By how much solvers are off where there are cones, relatively and absolutely: without that room, SCIP found no point
#: within the l2 radius that it had just called the least.
_CURVED = 1e-6
#: Share of a width that is the rounding of floats.
_NOISE = 1e-12
#: Relative gap at which a width is the least.
_GAP = 1e-6
LATE = "the time limit is used up"
#: Share of the time left that the search for the least radii may take.
_SHARE = 0.5
#: By how much more, relatively and at least, radii grow where the solver finds nothing at the very least ones.
_ROOM = ((0.0, 0.0), (1e-6, 1e-6), (1e-4, 1e-5))


def with_rules(prepared: Prepared, rules: Sequence[AbstractRule]) -> Prepared:
    """Return the same question under other rules, which the cost charges as it did the old ones."""
    settings = prepared.settings
    own = settings.cost.cost if isinstance(settings.cost, RuleCharges) else settings.cost
    cost = charged_by(own, rules, prepared.space)
    return replace(prepared, settings=replace(settings, rules=tuple(rules), cost=cost))


@final
@dataclass(frozen=True, slots=True)
class Person:
    """Who is asked about: coordinates, the raw row, what each column may become, and the space that says so."""

    factual: Point
    row: Any
    reach: Reach
    space: FeatureSpace


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
        deadline, failed = min(self.deadline, time.perf_counter() + most_s), ""
        prepared = self.prepared.about(person.factual, person.reach)
        refused: list[Point] = []
        exact = False
        while True:
            left = deadline - time.perf_counter()
            if left <= 0:
                return Relaxation(reason=LATE)
            try:
                outcome, point, amounts, room = self._solved(
                    person, keep, yielding, refused, left, prepared=prepared, exact=exact
                )
            except OutOfTimeError:
                return Relaxation(reason=failed or LATE)
            except CeoptError as error:
                return Relaxation(reason=str(error).rstrip("."))
            if outcome.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            if point is None:
                # After a failed point even a proof says only that the solver's tolerance decides.
                empty = outcome.status is Status.INFEASIBLE and not failed
                stopped = LATE if outcome.status is Status.TIME_LIMIT else outcome.message.rstrip(".")
                why = failed or stopped or f"the solver stopped: {outcome.status}"
                return Relaxation(is_empty=empty, reason="" if empty else why)
            with without_deadline():  # a point in hand is checked to the end
                predicted, met = prepared.judge([point])
                if not met[0] and prepared.is_own:  # what the model refuses, it refuses for good
                    refused.append(point)
                    continue
                failed = _fault(predicted[0], broken_rules(keep, person.space, person.factual, point), met=bool(met[0]))
                if not failed and not broken_rules(prepared.settings.rules, prepared.space, person.factual, point):
                    self.overlooked = point
                off = [rule.violation(person.space, person.factual, point) for rule in yielding]
            if not failed:
                widths = tuple(_rounded_up(own or told, room) for own, told in zip(off, amounts, strict=True))
                return Relaxation(point, widths, is_least=outcome.status is Status.OPTIMAL)
            if exact:
                return Relaxation(reason=failed)
            exact = True

    def _solved(
        self,
        person: Person,
        keep: Sequence[AbstractRule],
        yielding: Sequence[AbstractElastic],
        refused: Sequence[Point],
        seconds: float,
        *,
        prepared: Prepared,
        exact: bool,
    ) -> tuple[Outcome, dict[str, float] | None, list[float], float]:
        """Return what the solver said, its point, by how much the rules give way there, and what room that needs."""
        began, settings = time.perf_counter(), prepared.settings
        program = recourse_program(
            prepared.predictor,
            person.row,
            target=settings.target,
            cost=Nothing(),
            rules=keep,
            margin=prepared.margin,
            formulation=settings.formulation,
            reach=person.reach,
        )
        model, amounts = program.model, []
        model.yielding = pyo.Block(concrete=True)
        for position, rule in enumerate(yielding):
            block = ScalarBlock(concrete=True)
            amounts.append(rule.relax(block, program.x))
            model.yielding.add_component(f"rule_{position + 1}", block)
        leave_out(program, refused)
        model.cost.set_value(expr=sum(amounts))
        built = time.perf_counter()
        compiled = compile_model(model)
        lowered = time.perf_counter()
        solver = choose(settings.solver, compiled)
        options = {**(solver.exact if exact else {}), **settings.solver_options}
        session = GuardedSession(
            solver, compiled, threads=settings.threads, random_state=settings.random_state, options=options
        )
        left = max(seconds - (lowered - began), 1e-2)
        outcome = session.solve(time_limit_s=left, relative_gap=_GAP)
        self._note(build=built - began, lower=lowered - built, solve=time.perf_counter() - lowered)
        if outcome.x is None:
            return outcome, None, [], 0.0
        compiled.load(outcome.x)
        room = _CURVED if compiled.cones or compiled.quadratics else 0.0
        return outcome, program.x.decoded(), [max(float(pyo.value(amount)), 0.0) for amount in amounts], room

    def _note(self, **seconds: float) -> None:
        self.solves += 1
        self.seconds = {phase: self.seconds.get(phase, 0.0) + spent for phase, spent in seconds.items()}


def _fault(predicted: Any, broken: Sequence[str], *, met: bool) -> str:
    """Return what is wrong with a point: by the user's own model and by the rules in plain numbers."""
    if not met:
        return f"the solver's point failed the check: the model predicts {predicted}"
    return f"the solver's point failed the check: it breaks {', '.join(broken)}" if broken else ""


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
    prepared, rules = relaxer.prepared, relaxer.prepared.settings.rules
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
    proved = "" if found.is_least else "The time limit ended the proof that no less would do."
    for share, least in _ROOM:
        wider, radii = list(rules), {}
        for (k, rule), width in zip(growing.items(), found.widths, strict=True):
            if width > 0.0:
                new = wider[k] = rule.widened(width + max(share * width, least))
                radii[rule_name(new, k)] = float(new.radius)
        yield Enlarged(with_rules(prepared, wider), radii, found.point, proved)


def _some_widths(
    relaxer: Relaxer, person: Person, keep: Sequence[AbstractRule], growing: Sequence[AbstractElastic]
) -> Relaxation:
    """Return a point that is found without the rules that grow, and the widths that it needs."""
    found = relaxer.least(person, keep)
    if found.point is None:
        return found
    off = (rule.violation(person.space, person.factual, found.point) for rule in growing)
    return Relaxation(found.point, tuple(_rounded_up(width, _CURVED) for width in off))


def _rounded_up(width: float, room: float) -> float:
    """Return a width and the room that it needs to six digits, and never less but for the rounding of floats."""
    width += room * max(width, 1.0) if width > 0.0 else 0.0
    if width == math.floor(width):
        return width
    rounded = float(f"{width:.{_DIGITS}g}")
    if abs(rounded - width) <= _NOISE * width:
        return rounded
    exact = Decimal(width)
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - _DIGITS + 1), rounding=ROUND_CEILING))

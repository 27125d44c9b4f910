"""Several people who share rows of one program: each person's least cost first, then who is served.

Where a row or the objective takes a cost only as "less is better", nobody who is served has a reason to pay more than
their least cost. What one person may do is then one number, and the program of all is one over ``served`` and ``cost``
alone, whatever the model. The least costs are looked for only as far as that program needs them: it is solved with
proved lower bounds, which gives its own bound, and whoever is served there at a bound that is not a cost is asked next.
Elsewhere all people are one program.
"""

from __future__ import annotations

import math
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.expr import identify_variables
from pyomo.core.expr.visitor import replace_expressions

from ceopt.base.results import Status
from ceopt.formulations.constraints.diversity.diversity import leave_out
from ceopt.formulations.people import People
from ceopt.formulations.recourse_program import RecourseProgram
from ceopt.oracle.model import Check, broken_rules
from ceopt.oracle.rows import points_of
from ceopt.result.cohort import free_name
from ceopt.search.least_costs import ColumnGains, can_add_up, least_by_knapsack
from ceopt.search.model_start import ProgramValues
from ceopt.search.near_points import NearSearch
from ceopt.search.prepare import Prepared, prepare
from ceopt.search.search import search
from ceopt.search.state import Predictions, reach_without
from ceopt.settings import Settings
from ceopt.solvers import solve
from ceopt.solvers.checks import Real, Whole, check_arguments
from ceopt.solvers.compile.compiled_model import compile_model
from ceopt.solvers.deadline import until
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, printable
from ceopt.solvers.problem import Stop, relative_gap_of
from ceopt.solvers.registry import SOLVER_NAME
from ceopt.tolerances import BROKEN_ROW, COST_NOISE

if TYPE_CHECKING:
    from ceopt.formulations.space.reachable import Reach
    from ceopt.solvers.compile.compiled_model import CompiledModel
    from ceopt.solvers.problem import Result

_WHO: Final = "solve_people"
_CHECKS: Final = {
    "solver": SOLVER_NAME,
    "time_limit_s": Real(above=0.0, finite=True),
    "relative_gap": Real(at_least=0.0, finite=True),
    "threads": Whole(at_least=1),
    "random_state": Whole(at_least=0),
}
#: Seconds that the programs of all are given at least, so that what is known by the time limit becomes an answer.
_LEAST_S: Final = 0.5
#: Share of the time that is left for what people may become, before a whole program.
_SHARE_ALONE: Final = 0.3
#: How often a whole program is solved again because the user's own model refuses a point of it.
_MOST_REPAIRS: Final = 20
#: Whoever's search ended before this share of its time would say the same again.
_SHARE_OF_TIME: Final = 0.9
_OPEN: Final = "The gap could not be closed."
#: People who are named in a sentence.
_NAMED: Final = 5

# ==== The result ======================================================================================================


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PeopleSolution:
    """Who is served, as what, and at what cost.

    Parameters
    ----------
    objective
        Of the model.
    points
        Label -> the person as they become, in coordinates; those who are not served as they are.
    served, costs
        By label.
    """

    objective: float
    points: Mapping[Any, Mapping[str, float]] = field(repr=False)
    served: Mapping[Any, bool] = field(repr=False)
    costs: Mapping[Any, float] = field(repr=False)
    _values: Sequence[tuple[Any, float | None]] = field(repr=False)

    def load(self) -> None:
        """Set the model's Vars to this answer, but for those of a person's own columns."""
        for var, value in self._values:
            var.set_value(value, skip_validation=True)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PeopleResult:
    """What :func:`ceopt.solve_people` returns.

    Parameters
    ----------
    status
        "optimal", "feasible", "infeasible", "time_limit", "rejected", "unbounded" or "error", as of a
        :class:`~ceopt.SolutionSet`.
    objective, bound
        Of the model's own objective: of the answer, and what is proved. None where there is none.
    solutions
        One, where there is an answer: verified, and loaded into the model's Vars.
    reason
        Why it ended so, in words; empty where nothing needs to be said.
    impossible
        Labels of those of whom it is proved that nothing reaches the target under the rules: they are not served. A
        whole program tells where everybody could be asked alone before.
    decomposed
        Whether each person's least cost was looked for by itself. ``why_whole`` says what stood against it.
    timings
        Seconds: ``people`` (least costs), ``program`` (of all) and ``total``.
    asked
        How many searches by programs of a person's own it took.
    solver
        Name and version, of the program of all.
    """

    status: Status
    objective: float | None
    bound: float | None
    solutions: tuple[PeopleSolution, ...]
    reason: str
    impossible: tuple[Any, ...]
    decomposed: bool
    why_whole: str
    timings: Mapping[str, float]
    asked: int
    solver: str
    people: People = field(repr=False)
    _prepared: Prepared = field(repr=False)

    @property
    def gap(self) -> float | None:
        """``|objective - bound| / max(|objective|, 1e-12)``; None where either is unknown."""
        return relative_gap_of(self.objective, self.bound)

    def decode(self, solution: PeopleSolution | None = None) -> pd.DataFrame:
        """Return one row a person, by the labels of the frame: the columns in raw units, ``served`` and ``cost``.

        Parameters
        ----------
        solution
            One of ``.solutions``; by default the best.

        Raises
        ------
        InvalidValueError
            There is no answer.
        """
        solution = self._solution("decode", solution)
        people = self.people
        frame = people.space.frame([solution.points[label] for label in people.labels], index=people.rows.index)
        taken = people.space.names
        frame[free_name("served", taken)] = [solution.served[label] for label in people.labels]
        frame[free_name("cost", taken)] = [solution.costs[label] for label in people.labels]
        return frame

    def verify(self, solution: PeopleSolution | None = None) -> pd.DataFrame:
        """Ask the user's own model about everybody who is served, in one call, and check every rule without a program.

        Returns
        -------
        DataFrame
            One row a person who is served: ``valid``, ``prediction``, ``broken`` (what fails, in words).
        """
        solution = self._solution("verify", solution)
        labels = [label for label, is_served in solution.served.items() if is_served]
        checks = _checks(self._prepared, self.people, {label: solution.points[label] for label in labels})
        frame = pd.DataFrame(checks.values(), columns=list(Check._fields), dtype=object).astype({"valid": bool})
        frame.index = self.people.rows.index[[label in checks for label in self.people.labels]]
        return frame

    def _solution(self, who: str, solution: PeopleSolution | None) -> PeopleSolution:
        if solution is not None:
            if not isinstance(solution, PeopleSolution):
                but = f"it got {type(solution).__name__}"
                raise InvalidTypeError(who, "one of result.solutions", but, "Pass result.solutions[0].")
            return solution
        if not self.solutions:
            raise InvalidValueError(who, "an answer", f"the status is {self.status}", self.reason or "See .reason.")
        return self.solutions[0]

    def __str__(self) -> str:
        """Return one line: status, objective, gap, how many are served, and why."""
        words = [str(self.status)]
        if self.objective is not None:
            words.append(f"objective {self.objective:.8g}")
        if self.gap is not None and self.gap > 1.0:  # of nobody served, the gap is no number that tells anything
            words.append(f"bound {self.bound:.8g}")
        elif self.gap is not None:
            words.append(f"gap {self.gap:.1e}")
        if self.solutions:
            served = sum(self.solutions[0].served.values())
            words.append(f"{served} of {len(self.people.labels)} people served")
        return printable(", ".join(words) + (f". {self.reason}" if self.reason else ""))


def _checks(
    prepared: Prepared, people: People, points: Mapping[Any, Mapping[str, float]], *, again: bool = True
) -> dict[Any, Check]:
    """Return what the user's own model and every rule say of people as they become, with one call of the model.

    Who fails there is asked about alone, if ``again``.
    """
    if not points:
        return {}
    predicted, met = prepared.judge(list(points.values()))
    checks = {}
    for (label, point), prediction, is_met in zip(points.items(), predicted.tolist(), met.tolist(), strict=True):
        broken = broken_rules(people.rules, people.space, people.points[label], point)
        if not is_met:
            broken = (f"target: the model predicts {prediction}", *broken)
        checks[label] = Check(not broken, prediction, broken)
    if again and len(points) > 1:  # a sum of floats may end otherwise where many rows are asked about
        for label in [label for label, check in checks.items() if not check.valid]:
            checks |= _checks(prepared, people, {label: points[label]})
    return checks


# ==== The door ========================================================================================================


def solve_people(
    model: Any,
    *,
    solver: str = "auto",
    time_limit_s: float = 60.0,
    relative_gap: float = 1e-6,
    threads: int = 1,
    random_state: int = 0,
) -> PeopleResult:
    r"""Solve a model that holds a :class:`~ceopt.formulations.People` block, rows of its own and an objective.

    .. math::
        \min f(s, c, y) \quad\text{s.t.}\quad (s, c, y) \in F, \qquad
        s_i = 0 \Rightarrow c_i = 0, \quad s_i = 1 \Rightarrow c_i = c_i^* = \min_{x} \text{cost}(x, x_i^0)

    That is the model itself wherever f and the rows of F take every c_i as "less is better": coefficients of at least 0
    in an objective that is minimised and in a row ``<=``, of at most 0 in ``>=``. It is checked on the rows as they
    are. Anything else is solved as one program of all people: an equality or a product with a cost, a row in which
    more cost is better, a Var of a person's own.

    Where nothing but rows over people's own Vars makes one program necessary, everybody is asked alone first, without
    those rows. That gives a bound, and the best choice among what was found is the answer if it meets it, else a start.

    Parameters
    ----------
    model
        A ConcreteModel. What it holds beside the block may be any Pyomo that :func:`ceopt.solvers.solve` takes, over
        ``served``, ``cost``, the people's own blocks and further Vars.
    solver, threads, random_state
        As for :func:`ceopt.explain`, of every program.
    time_limit_s
        Seconds for the whole call. It ends at most a second later, but for one call of the user's own model.
    relative_gap
        What counts as optimal: ``|objective - bound| / max(|objective|, 1e-12)``.

    Returns
    -------
    PeopleResult
        ``.status``, ``.objective``, ``.bound``, ``.gap``, ``.decode()`` (everybody as one frame) and ``.verify()``. The
        Vars of the model hold the answer. Everybody served was predicted again by the user's own model and held
        against every rule, and so was every row of the model; what fails is not returned. Ctrl-C and the time limit
        keep what is known: the bound is of proved lower bounds, the answer of costs that were found.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        No model, or one without a People block or with several; an option out of range; in a whole program, a person
        who breaks a rule today, or more cost wanted of one that is known from below only (``cost_is_exact``).
    CeoptError
        As :func:`ceopt.solvers.solve` and :func:`ceopt.explain`.

    Notes
    -----
    Least costs are with the margin of :func:`ceopt.explain`. People who are equal are asked once.

    Examples
    --------
    >>> import pandas as pd
    >>> import pyomo.environ as pyo
    >>> from ceopt import FeatureSpace, solve_people
    >>> from ceopt.formulations import People
    >>> from ceopt.formulations.predictors import Affine
    >>> people = pd.DataFrame({"income": [1, 2, 5]}, index=["ann", "bob", "cleo"])
    >>> m = pyo.ConcreteModel()
    >>> m.people = People(Affine([1.0], -3.5, labels=("no", "yes")), people, FeatureSpace.infer(people), target="yes")
    >>> m.two = pyo.Constraint(expr=sum(m.people.served.values()) >= 2)
    >>> m.total = pyo.Objective(expr=sum(m.people.cost.values()))
    >>> result = solve_people(m)
    >>> print(result)
    optimal, objective 2, gap 0.0e+00, 2 of 3 people served
    >>> [label for label in m.people.served if m.people.served[label].value]
    ['bob', 'cleo']
    """
    began = time.perf_counter()
    given = check_arguments(_WHO, _CHECKS, locals())
    people = _people_in(model)
    asked = people.asked
    settings = Settings(
        target=asked.target,
        cost=asked.cost,
        constraints=asked.constraints,
        solver=given["solver"],
        time_limit_s=given["time_limit_s"],
        relative_gap=given["relative_gap"] / 2.0,
        threads=given["threads"],
        random_state=given["random_state"],
        why=False,
    )
    run = _Run(model, people, settings, prepare(asked.model, asked.space, settings), began, given["relative_gap"])
    added = people.added()
    shared = _parts_on_own_columns(model, people)
    if added or shared:
        return _Whole(run, added or f"{shared[0].name} takes a person's own columns", () if added else shared).result()
    with people.without_parts():
        cost = _cost_in_another_way(people, compile_model(model))
    if cost:
        return _Whole(run, cost).result()
    return _Decomposed(run).result()


def _people_in(model: Any) -> People:
    if not hasattr(model, "component_data_objects"):
        but = f"it got {type(model).__name__}"
        raise InvalidTypeError(
            _WHO, "a ConcreteModel", but, "Build m = pyo.ConcreteModel() with m.people = People(...)."
        )
    found = []
    waiting = [model]
    while waiting:  # Pyomo's own walk would write the people's parts
        block = waiting.pop()
        if isinstance(block, People):
            found.append(block)
            continue
        for inner in block.component_map(pyo.Block, active=True).values():
            waiting.extend(inner.values())
    if len(found) != 1:
        but = f"the model has {len(found)}"
        raise InvalidValueError(_WHO, "one People block", but, "Put all people into one frame, m.people = People(...).")
    return found[0]


# ==== Whether each person may be asked alone ==========================================================================


def _parts_on_own_columns(model: Any, people: People) -> list[Any]:
    """Return rows, sets and objectives outside the block that take a person's own Vars."""
    if not people.is_written:
        return []
    own = {id(var) for block in people.each.values() for var in block.component_data_objects(pyo.Var)}
    with people.without_parts():
        stated = list(model.component_data_objects((pyo.Constraint, pyo.Objective, pyo.SOSConstraint), active=True))
    return [part for part in stated if any(id(var) in own for var in _vars_in(part))]


def _vars_in(part: Any) -> Iterable[Any]:
    if part.ctype is pyo.SOSConstraint:
        return list(part.get_variables())
    expression = part.body if part.ctype is pyo.Constraint else part.expr
    return list(identify_variables(expression, include_fixed=False))


def _cost_in_another_way(people: People, compiled: CompiledModel) -> str:
    """Return where a cost is not "less is better", in words; nothing where it is so everywhere.

    Rows that state what a cost is are passed over.
    """
    columns: dict[int, Any] = {}
    for label, var in people.cost.items():
        if label in people.favourable:
            continue
        if var.fixed or (var.lb or 0.0) > 0.0:
            return f"{var.name} may not be less than {var.value if var.fixed else var.lb}"
        if var in compiled.index:
            columns[compiled.index[var]] = var
    places = np.array(sorted(columns), dtype=np.intp)
    if (compiled.sense * compiled.c[places] < 0.0).any():
        return "the objective is better where a cost is more"
    for matrix, part in _curved_parts(compiled):
        if not people.prices(part) and matrix[:, places].nnz:
            return f"{'the objective' if part is None else part.name} takes a cost otherwise than as a sum"
    for one in compiled.sets:
        if np.isin(one.members, places).any():
            return f"{one.constraint.name} takes a cost"
    entries = compiled.A[:, places].tocoo()
    for row, place, value in zip(*entries.coords, entries.data, strict=True):
        is_better = value > 0.0 and math.isinf(compiled.row_lb[row])
        is_better |= value < 0.0 and math.isinf(compiled.row_ub[row])
        if value != 0.0 and not is_better and not people.prices(compiled.rows[row]):
            name = columns[int(places[place])].name
            return f"{compiled.rows[row].name} does not hold at less of {name} whenever it holds"
    return ""


def _curved_parts(compiled: CompiledModel) -> Iterable[tuple[Any, Any]]:
    """Return what a program has beside linear rows, as matrices over its columns; with the row, if it is one."""
    if compiled.Q is not None:
        yield (compiled.Q + compiled.Q.T).tocsc(), None
    for row in compiled.quadratics:
        yield (row.Q + row.Q.T).tocsc(), row.constraint
        yield row.a.tocsc(), row.constraint
    for cone in compiled.cones:
        yield cone.matrix.tocsc(), cone.constraint


# ==== What both ways share ============================================================================================


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """One call: the model, its people, and until when."""

    model: Any
    people: People
    settings: Settings
    prepared: Prepared
    began: float
    relative_gap: float
    seconds: dict[str, float] = field(default_factory=lambda: {"people": 0.0, "program": 0.0})

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.began + self.prepared.settings.time_limit_s - time.perf_counter()

    def until(self, share: float) -> _Run:
        """Return the same call with a share of the time that is left."""
        seconds = time.perf_counter() - self.began + max(share * self.left, 1e-3)
        return replace(self, prepared=self.prepared.with_time_limit(seconds))

    def solved(self, relative_gap: float, start: Any = None) -> Result:
        """Solve the model as it stands, from a start if there is one, and count the seconds."""
        settings = self.prepared.settings
        began = time.perf_counter()
        result = solve(
            self.model,
            settings.solver,
            time_limit_s=max(self.left, _LEAST_S),
            relative_gap=relative_gap,
            threads=settings.threads,
            random_state=settings.random_state,
            start=start,
        )
        self.seconds["program"] += time.perf_counter() - began
        return result

    def is_closed(self, objective: float, bound: float | None) -> bool:
        """Tell whether an objective is proved within the relative gap."""
        gap = relative_gap_of(objective, bound)
        return _is_same(objective, bound) or (gap is not None and gap <= self.relative_gap)

    def served_now(self) -> list[Any]:
        """Return who is served by the values that the Vars hold."""
        return [label for label, var in self.people.served.items() if (var.value or 0.0) > 0.5]

    def result(self, status: Status, *, bound: float | None, reason: str, **more: Any) -> PeopleResult:
        """Return the result; the answer, if there is one, is verified before."""
        solution = more.pop("solution", None)
        objective = None if solution is None else solution.objective
        if objective is not None and _is_same(objective, bound):
            bound = objective
        return PeopleResult(
            status=status,
            objective=objective,
            bound=bound,
            solutions=() if solution is None else (solution,),
            reason=reason,
            timings={**self.seconds, "total": time.perf_counter() - self.began},
            people=self.people,
            _prepared=self.prepared,
            **more,
        )

    def answer(self, points: Mapping[Any, Mapping[str, float]]) -> tuple[PeopleSolution | None, str]:
        """Return the answer that the Vars hold, with the costs of these points, if it is right; else None, and why not.

        Parameters
        ----------
        points
            Of everybody who is served.
        """
        people = self.people
        failed = {label: check for label, check in _checks(self.prepared, people, points).items() if not check.valid}
        if failed:
            label, check = next(iter(failed.items()))
            return None, f"Row {label!r} failed the check: {'; '.join(check.broken)}."
        cost = self.prepared.settings.cost
        costs = {}
        for label in people.labels:
            costs[label] = 0.0
            if label in points:
                costs[label] = cost.value(people.space, people.points[label], points[label])
            people.served[label].set_value(int(label in points), skip_validation=True)
            people.cost[label].set_value(costs[label], skip_validation=True)
        with people.without_parts():
            broken = _broken_row(self.model)
            stated = list(self.model.component_data_objects(pyo.Objective, active=True))
            held = list(self.model.component_data_objects(pyo.Var))
        if not stated and people.is_written:  # it may stand beside somebody's columns
            stated = list(self.model.component_data_objects(pyo.Objective, active=True))
        if broken:
            return None, f"With what the people cost, {broken} does not hold."
        solution = PeopleSolution(
            objective=float(pyo.value(stated[0])) if stated else 0.0,
            points={label: points.get(label, people.points[label]) for label in people.labels},
            served={label: label in points for label in people.labels},
            costs=costs,
            _values=tuple((var, var.value) for var in held),
        )
        return solution, ""


def _is_same(objective: float, bound: float | None) -> bool:
    """Tell whether a bound is the objective but for the rounding of a sum."""
    return bound is not None and abs(objective - bound) <= COST_NOISE * max(1.0, abs(objective))


def _broken_row(model: Any) -> str:
    """Return the name of a row that does not hold at the values of the Vars; nothing where all do."""
    for row in model.component_data_objects(pyo.Constraint, active=True):
        body = pyo.value(row.body, exception=False)
        if body is not None and not _holds(row, body):
            return str(row.name)
    return ""


def _holds(row: Any, body: float) -> bool:
    """Tell whether a row holds where its body has a value."""
    for end, sign in ((row.lower, 1.0), (row.upper, -1.0)):
        bound = pyo.value(end) if end is not None else None
        if bound is not None and sign * (bound - body) > BROKEN_ROW * max(1.0, abs(bound)):
            return False
    return True


def _named(labels: Sequence[Any]) -> str:
    listed = ", ".join(repr(label) for label in labels[:_NAMED])
    more = len(labels) - _NAMED
    return f"{listed} and {more} more" if more > 0 else listed


def _told_of(impossible: Sequence[Any]) -> str:
    """Return a sentence of those who cannot be served; nothing if there are none."""
    if not impossible:
        return ""
    return f"Nothing in reach meets the target and every rule for {_named(impossible)}: not served."


def _sentences(*parts: str) -> str:
    return printable(" ".join(part for part in parts if part))


# ==== Each person alone, then who is served ===========================================================================


class _KnownCost:
    """What is known of all people with one row: bounds on their least cost, and how to narrow them."""

    __slots__ = ("asked", "cost", "is_final", "labels", "low", "point")

    def __init__(self, labels: list[Any]) -> None:
        self.labels = labels
        #: Nothing costs less; infinite where it is proved that nothing is accepted.
        self.low = 0.0
        #: The cost of ``point``, which is verified.
        self.cost = math.inf
        self.point: Mapping[str, float] | None = None
        #: How often a program of their own was solved.
        self.asked = 0
        #: Whether more time would tell no more.
        self.is_final = False

    def take(self, point: Mapping[str, float], cost: float) -> None:
        """Take a verified point if it is cheaper; a cheaper one than the bound disproves the bound."""
        if cost < self.cost:
            self.point, self.cost = point, cost
        self.low = min(self.low, self.cost)


@final
class _Decomposed:
    """Least costs as far as they are needed, and the program over ``served`` and ``cost``."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        people = run.people
        groups: dict[tuple[float, ...], list[Any]] = {}
        for label, point in people.points.items():
            groups.setdefault(tuple(point.values()), []).append(label)
        self._persons = [_KnownCost(labels) for labels in groups.values()]
        self._of = {label: person for person in self._persons for label in person.labels}
        self._predictions = Predictions()
        self.interrupted = False
        #: Why somebody could not be asked.
        self._failure = ""

    @property
    def asked(self) -> int:
        """How many searches by programs it took."""
        return sum(person.asked for person in self._persons)

    def result(self) -> PeopleResult:
        """Return the result."""
        run = self._run
        bound: float | None = None
        best: tuple[PeopleSolution | None, str] = (None, "")
        solver = ""
        try:
            with _counting(run, "people"):
                self._first_look()
            while True:
                optimistic = self._coupled("low")
                solver = f"{optimistic.solver} {optimistic.version}"
                if optimistic.status is Stop.INFEASIBLE:
                    return self._ended(Status.INFEASIBLE, None, _WORDS[Stop.INFEASIBLE], solver)
                bound = bound if optimistic.bound is None else optimistic.bound
                self.interrupted = optimistic.status is Stop.INTERRUPTED
                if not optimistic.solutions and best[0] is not None:
                    break
                if not optimistic.solutions:
                    reason = optimistic.message or _WORDS[optimistic.status]
                    return self._ended(_STATUS[optimistic.status], bound, reason, solver)
                picked = {id(self._of[label]): self._of[label] for label in run.served_now()}
                is_open = [person for person in picked.values() if self._is_open(person)]
                if not is_open and all(person.low == person.cost for person in picked.values()):
                    best = self._answer()
                    break
                found = self._pessimistic()
                if found[0] is not None or best[0] is None:  # with too little time there may be none, and there was one
                    best = found
                has_ended = self.interrupted or run.left <= 0.0
                if self._is_closed(best[0], bound) or not is_open or has_ended:
                    break
                with _counting(run, "people"):
                    self._narrow(is_open)
        except KeyboardInterrupt:
            self.interrupted = True
            found = self._pessimistic()
            if found[0] is not None:
                best = found
        return self._told(best, bound, solver)

    def _is_open(self, person: _KnownCost) -> bool:
        if person.is_final:
            return False
        if math.isinf(person.cost):
            return not math.isinf(person.low)
        gap = relative_gap_of(person.cost, person.low)
        return gap is not None and gap > self._run.prepared.settings.relative_gap

    def _is_closed(self, solution: PeopleSolution | None, bound: float | None) -> bool:
        return solution is not None and self._run.is_closed(solution.objective, bound)

    # ---- the program of all ------------------------------------------------------------------------------------------
    def _coupled(self, what: str) -> Result:
        """Solve the model with every person at one cost, ``low`` or ``cost``; who has none is not served."""
        run = self._run
        people = run.people
        with people.without_parts():
            people.decided = pyo.ConstraintList()
            try:
                for label in people.labels:
                    cost = getattr(self._of[label], what)
                    if math.isinf(cost):
                        people.decided.add(people.served[label] <= 0)
                        people.decided.add(people.cost[label] <= 0)
                    elif not people.cost[label].fixed:
                        people.decided.add(people.cost[label] == cost * people.served[label])
                return run.solved(run.prepared.settings.relative_gap)
            finally:
                people.del_component("decided")

    def _pessimistic(self) -> tuple[PeopleSolution | None, str]:
        """Return the best answer from points that are in hand."""
        result = self._coupled("cost")
        if not result.solutions:
            return None, ""
        return self._answer()

    def _answer(self) -> tuple[PeopleSolution | None, str]:
        """Return the answer that the Vars hold: everybody served at their cheapest point."""
        points = {label: self._of[label].point for label in self._run.served_now()}
        return self._run.answer({label: point for label, point in points.items() if point is not None})

    # ---- least costs -------------------------------------------------------------------------------------------------
    def points(self) -> dict[Any, Mapping[str, float]]:
        """Return the cheapest known point of everybody who is not favourable and of whom one is known."""
        known = {label: self._of[label].point for label in self._run.people.labels}
        favourable = self._run.people.favourable
        return {label: point for label, point in known.items() if point is not None and label not in favourable}

    def look_at_all(self) -> None:
        """Look for a point of everybody, as far as the time allows."""
        try:
            self._first_look()
            self._narrow([person for person in self._persons if person.point is None and self._is_open(person)])
        except KeyboardInterrupt:
            self.interrupted = True

    def _first_look(self) -> None:
        """Bound everybody's least cost by what needs no program, and show what is found to the model in one call."""
        run = self._run
        prepared = run.prepared
        people = run.people
        names = people.space.names
        own = [people.points[person.labels[0]] for person in self._persons]
        self._take_accepted(zip(self._persons, own, strict=True), again=False)  # most people fail as they are
        score = None
        if can_add_up(prepared):
            score = ColumnGains.of(prepared, np.array([[point[name] for name in names] for point in own]))
        near = None if prepared.settings.rules else NearSearch.of(prepared)
        if score is None and near is None:
            return
        away: list[tuple[_KnownCost, tuple[Mapping[str, float], Reach]]] = []
        found: list[tuple[_KnownCost, dict[str, float]]] = []
        for person, point in zip(self._persons, own, strict=True):
            if person.point is not None:
                continue
            if run.left <= 0.0:
                break
            reach = reach_without(prepared.predictor.unseen, people.space, point)
            if not all(reach[name].holds(point[name]) for name in names):
                continue
            fitted = prepared.for_person(point, reach)
            if score is not None:
                least = None if fitted.steps else least_by_knapsack(fitted, score, point, reach)
                if least is None:
                    continue
                person.low = least.bound
                found += [(person, dict(answer)) for answer in least.points]
            else:
                away.append((person, (point, reach)))
        if near is not None:
            with until(time.perf_counter() + run.left):
                met = near.run([person for _, person in away])
            for (person, _), one in zip(away, met, strict=True):
                person.low = one.bound if math.isinf(one.bound) else prepared.settings.cost.from_objective(one.bound)
                found += [(person, answer) for answer in points_of(people.space, one.points[:1])]
        self._predictions.ask(prepared, [*own, *(point for _, point in found)])
        self._take_accepted(found)

    def _take_accepted(self, found: Iterable[tuple[_KnownCost, Mapping[str, float]]], *, again: bool = True) -> None:
        """Give people the points of theirs that the user's own model accepts and that keep every rule."""
        run = self._run
        by_label = {person.labels[0]: point for person, point in found}
        for label, check in _checks(run.prepared, run.people, by_label, again=again).items():
            if check.valid:
                cost = run.prepared.settings.cost.value(run.people.space, run.people.points[label], by_label[label])
                self._of[label].take(by_label[label], cost)

    def _narrow(self, persons: Sequence[_KnownCost]) -> None:
        """Bring bounds and costs of some people together, as far as the time allows."""
        run = self._run
        for place, person in enumerate(persons):
            if run.left <= 0.0:
                break
            self._ask(person, run.left / (1.0 if person.asked else max(1.0, (len(persons) - place) / 4.0)))

    def _ask(self, person: _KnownCost, seconds: float) -> None:
        """Ask one person by the search of ``explain``."""
        run = self._run
        label = person.labels[0]
        prepared = run.prepared.with_time_limit(max(seconds, 1e-3))
        person.asked += 1
        began = time.perf_counter()
        try:
            row = run.people.rows.iloc[[run.people.labels.index(label)]]
            found = search(prepared, row, keep_on_interrupt=False, predictions=self._predictions)
        except CeoptError as error:
            raise type(error)(f"In people, row {label!r}: {error}") from error
        person.is_final = time.perf_counter() - began < _SHARE_OF_TIME * seconds
        if found.status is Status.INFEASIBLE and found.complete:
            person.low = math.inf
            return
        if found.bound is not None:
            person.low = max(person.low, found.bound)
        if found.status.has_answers:
            point = run.people.space.row(found[0].frame)
            person.take(point, run.prepared.settings.cost.value(run.people.space, run.people.points[label], point))
        if found.status in {Status.ERROR, Status.REJECTED} or (person.is_final and found.status is Status.FEASIBLE):
            self._failure = self._failure or f"Row {label!r}: {found.reason}"

    # ---- the result --------------------------------------------------------------------------------------------------
    def _told(self, best: tuple[PeopleSolution | None, str], bound: float | None, solver: str) -> PeopleResult:
        solution, failure = best
        if solution is not None:
            solution.load()
        if solution is not None and self._is_closed(solution, bound):
            return self._ended(Status.OPTIMAL, bound, "", solver, solution)
        why = _OPEN
        if self.interrupted:
            why = "The search was interrupted."
        elif self._run.left <= 0.0:
            why = "The time limit is used up."
        if solution is not None:
            return self._ended(Status.FEASIBLE, bound, _sentences(why, self._failure), solver, solution)
        if failure:
            return self._ended(Status.REJECTED, bound, failure, solver)
        return self._ended(Status.TIME_LIMIT, bound, _sentences(why, self._failure), solver)

    def _ended(
        self, status: Status, bound: float | None, reason: str, solver: str, solution: PeopleSolution | None = None
    ) -> PeopleResult:
        impossible = tuple(label for label in self._run.people.labels if math.isinf(self._of[label].low))
        return self._run.result(
            status, bound=bound, reason=_sentences(reason, _told_of(impossible)), solution=solution,
            impossible=impossible, decomposed=True, why_whole="", asked=self.asked, solver=solver,
        )  # fmt: skip


class _counting:  # noqa: N801 - a context manager
    """Adds the seconds inside to a phase."""

    def __init__(self, run: _Run, phase: str) -> None:
        self._run, self._phase = run, phase

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._run.seconds[self._phase] += time.perf_counter() - self._began


# ==== All people as one program =======================================================================================


@final
class _Whole:
    """The model as it stands, with everybody's columns in it.

    Where nothing but rows over people's own columns stands against it, everybody is asked alone first, without those
    rows. That bounds the objective, and says what people may become: the cheapest, or the cheapest that leaves the
    columns of those rows as they are. The best choice among these is an answer, and a start for the program of all
    where it does not meet the bound.
    """

    def __init__(self, run: _Run, reason: str, shared: Sequence[Any] = ()) -> None:
        self._run = run
        #: Why not everybody may be asked alone.
        self._reason = reason
        #: The rows over people's own columns.
        self._shared = shared if all(part.ctype is pyo.Constraint for part in shared) else ()
        self._bound: float | None = None
        self._best: PeopleSolution | None = None
        self._impossible: tuple[Any, ...] = ()
        self._interrupted = False
        self._asked = 0
        #: The Vars at that answer.
        self._start: Any = None

    def result(self) -> PeopleResult:
        """Return the result."""
        run = self._run
        people = run.people
        self._require_exact_costs()
        if self._shared:
            ended = self._alone()
            if ended is not None:
                return ended
        people.write()
        failure = ""
        solver = ""
        for _ in range(_MOST_REPAIRS + 1):
            if failure and run.left <= 0.0:
                break
            result = self._solved()
            solver = f"{result.solver} {result.version}"
            self._take_bound(result.bound)
            if not result.solutions:
                if failure and result.status is Stop.INFEASIBLE:
                    break
                reason = _WORDS[result.status]
                if result.status not in {Stop.INFEASIBLE, Stop.INTERRUPTED}:
                    reason = result.message or reason
                return self._told(_STATUS[result.status], reason, solver)
            points = {label: dict(people.each[label].x.decoded()) for label in run.served_now()}
            solution, failure = run.answer(points)
            if solution is not None:
                self._take(solution)
                return self._told(Status.FEASIBLE, result.message or _OPEN, solver)
            if not self._leave_out(points):
                break
        return self._told(Status.REJECTED, failure, solver)

    def _solved(self) -> Result:
        """Solve the program of all, from the answer in hand if its rows take that: their margins are their own."""
        gap = self._run.prepared.settings.relative_gap
        try:
            return self._run.solved(gap, self._start)
        except InvalidValueError:
            if self._start is None:
                raise
            self._start = None
            return self._run.solved(gap)

    def _require_exact_costs(self) -> None:
        """Refuse a cost that is known from below alone where more of it may be better."""
        people = self._run.people
        if people.cost_is_exact:
            return
        where = _cost_in_another_way(people, compile_model(self._run.model))
        if where:
            raise InvalidValueError(
                _WHO, "a cost that is known in both directions, where more of it may be better",
                f"cost is {people.asked.cost!r}, and {where}",
                "Use cost='l1', or state it so that less is better.",
            )  # fmt: skip

    # ---- an answer before the program of all -------------------------------------------------------------------------
    def _alone(self) -> PeopleResult | None:
        """Look for an answer without the program of all; return the result where that is enough."""
        run = self._run
        people = run.people
        with _switched_off(self._shared):
            with people.without_parts():
                if _cost_in_another_way(people, compile_model(run.model)):
                    return None
            alone = _Decomposed(run.until(_SHARE_ALONE))
            found = alone.result()
        if found.status is Status.INFEASIBLE:
            return self._told(Status.INFEASIBLE, found.reason, found.solver)
        self._take_bound(found.bound)
        self._interrupted = alone.interrupted
        self._impossible = found.impossible
        self._choose({label: [point] for label, point in alone.points().items()})
        if not (self._is_proved() or self._has_ended()):
            alone.look_at_all()
            ways = {label: [point] for label, point in alone.points().items()}
            for label, point in self._aside().items():
                if point not in ways.setdefault(label, []):
                    ways[label].append(point)
            self._choose(ways)
        self._asked += alone.asked
        if self._is_proved() or self._has_ended():
            reason = _WORDS[Stop.INTERRUPTED if self._interrupted else Stop.TIME_LIMIT]
            return self._told(Status.TIME_LIMIT, reason, found.solver)
        return None

    def _has_ended(self) -> bool:
        return self._interrupted or self._run.left <= 0.0

    def _aside(self) -> dict[Any, Mapping[str, float]]:
        """Return what people become at the least cost with the columns of the shared rows as they are."""
        run = self._run
        asked = run.people.asked
        names = self._columns_of_shared_rows()
        if not names:
            return {}
        space = asked.space.fix(*names)
        still = People(
            asked.model, run.people.rows, space, target=asked.target, cost=asked.cost, constraints=asked.constraints
        )
        seconds = run.until(_SHARE_ALONE).prepared.settings.time_limit_s
        prepared = prepare(asked.model, space, replace(run.settings, time_limit_s=seconds))
        alone = _Decomposed(replace(run, people=still, prepared=prepared))
        alone.look_at_all()
        self._interrupted = self._interrupted or alone.interrupted
        self._asked += alone.asked
        return alone.points()

    def _columns_of_shared_rows(self) -> list[str]:
        """Return the columns whose Vars stand in the shared rows; Vars are indexed by them."""
        own = {id(var) for block in self._run.people.each.values() for var in block.x.component_data_objects(pyo.Var)}
        names = set()
        for row in self._shared:
            for var in _vars_in(row):
                if id(var) in own:
                    index = var.index()
                    names.add(index[0] if isinstance(index, tuple) else index)
        return [name for name in self._run.people.space.names if name in names]

    @cached_property
    def _placed(self) -> ProgramValues:
        people = self._run.people
        return ProgramValues(self._run.model, [people.each[label].x for label in people.labels])

    def _choose(self, ways: Mapping[Any, Sequence[Mapping[str, float]]]) -> None:
        """Solve the model with everybody at one of their ways or as they are, and keep the answer if it is better."""
        run = self._run
        people = run.people
        placed = self._placed
        choice = _ChoiceOfWays(people, placed, ways)
        with _switched_off(self._shared), people.without_parts():
            if not choice.state(self._shared):
                return
            try:
                result = run.solved(run.prepared.settings.relative_gap)
                self._interrupted = self._interrupted or result.status is Stop.INTERRUPTED
                chosen = choice.chosen() if result.solutions else None
            finally:
                people.del_component("choice")
        if chosen is None:
            return
        for var, value in placed.at([chosen.get(label, people.points[label]) for label in people.labels]).items():
            var.set_value(value, skip_validation=True)
        solution, _ = run.answer(chosen)
        if solution is not None:
            self._take(solution)

    # ---- the result --------------------------------------------------------------------------------------------------
    def _take(self, solution: PeopleSolution) -> None:
        """Keep the answer that the Vars hold if it is the best."""
        if self._best is None or self._is_better(solution.objective, self._best.objective):
            self._best = solution
            held = self._run.model.component_data_objects(pyo.Var)
            self._start = pyo.ComponentMap((var, var.value) for var in held if not (var.fixed or var.value is None))

    def _take_bound(self, bound: float | None) -> None:
        """Keep a proved bound if it is the closest."""
        if bound is not None and (self._bound is None or self._is_better(self._bound, bound)):
            self._bound = bound

    def _is_better(self, first: float, second: float) -> bool:
        """Tell whether an objective is better than another."""
        stated = next(self._run.model.component_data_objects(pyo.Objective, active=True), None)
        return first > second if stated is not None and stated.sense == pyo.maximize else first < second

    def _is_proved(self) -> bool:
        return self._best is not None and self._run.is_closed(self._best.objective, self._bound)

    def _leave_out(self, points: Mapping[Any, Mapping[str, float]]) -> bool:
        """Leave out the points that the user's own model refuses; tell whether there was one."""
        run = self._run
        people = run.people
        refused = False
        for label, check in _checks(run.prepared, people, points).items():
            if check.valid or label in people.favourable:
                continue
            block = people.each[label]
            program = RecourseProgram(block, block.x, block.predictor, 0.0)
            leave_out(program, [points[label]])
            refused = True
        return refused

    def _told(self, status: Status, reason: str, solver: str) -> PeopleResult:
        """Return the result with the best answer, if there is one; else with a status and a reason."""
        if self._is_proved():
            status, reason = Status.OPTIMAL, ""
        elif self._best is not None:
            if status in {Status.INFEASIBLE, Status.REJECTED}:  # which a known answer disproves, or what was refused
                reason = _OPEN
            status = Status.FEASIBLE
        if self._best is not None:
            self._best.load()
        return self._run.result(
            status, bound=self._bound, reason=_sentences(reason, _told_of(self._impossible)), solution=self._best,
            impossible=self._impossible, decomposed=False, why_whole=self._reason, asked=self._asked, solver=solver,
        )  # fmt: skip


@final
class _ChoiceOfWays:
    r"""Everybody at one of a few points, or as they are.

    .. math:: x_i = x_i^0 + \sum_k \lambda_{ik} (x_i^k - x_i^0), \qquad \sum_k \lambda_{ik} = s_i, \qquad
              c_i = \sum_k \lambda_{ik} c_i^k, \qquad \lambda \in \{0, 1\}

    ``choice.becomes[i, k]`` is :math:`\lambda_{ik}`; ``choice.rows`` are the rows over people's own Vars with these in
    their place. No model is stated.
    """

    def __init__(
        self, people: People, placed: ProgramValues, ways: Mapping[Any, Sequence[Mapping[str, float]]]
    ) -> None:
        self._people = people
        self._placed = placed
        self._ways = {label: ways.get(label, ()) for label in people.labels if label not in people.favourable}
        self._block = pyo.Block(concrete=True)

    def state(self, rows: Sequence[Any]) -> bool:
        """Put the choice into the block of people; tell whether every row could be stated and may hold."""
        people = self._people
        block = self._block
        cost = people.asked.cost
        keys = [(label, k) for label, ways in self._ways.items() for k in range(len(ways))]
        block.becomes = pyo.Var(range(len(keys)), domain=pyo.Binary)
        becomes = dict(zip(keys, block.becomes.values(), strict=True))
        block.one = pyo.ConstraintList()
        block.paid = pyo.ConstraintList()
        for label, ways in self._ways.items():
            own = [becomes[label, k] for k in range(len(ways))]
            prices = [cost.value(people.space, people.points[label], way) for way in ways]
            block.one.add(people.served[label] == sum(own))
            block.paid.add(people.cost[label] == sum(price * on for price, on in zip(prices, own, strict=True)))
        values = self._values(becomes, {id(var) for row in rows for var in _vars_in(row)})
        block.rows = pyo.ConstraintList()
        for row in rows:
            if any(id(var) in values and values[id(var)] is None for var in _vars_in(row)):
                return False
            body = replace_expressions(row.body, values)
            if body.__class__ in native_numeric_types or not body.is_potentially_variable():
                if not _holds(row, pyo.value(body)):
                    return False
                continue
            block.rows.add(pyo.inequality(row.lower, body, row.upper))
        people.choice = block
        return True

    def _values(self, becomes: Mapping[tuple[Any, int], Any], wanted: Container[int]) -> dict[int, Any]:
        """Return the Vars of people's own that are wanted, by their id, as sums; None where a point gives no value."""
        people = self._people
        most = max(map(len, self._ways.values()), default=0)
        stay = self._placed.at([people.points[label] for label in people.labels])
        at = [self._placed.at([self._way(label, k) for label in people.labels]) for k in range(most)]
        values: dict[int, Any] = {}
        for label in self._ways:
            for var in people.each[label].component_data_objects(pyo.Var):
                if id(var) not in wanted or var.fixed:
                    continue
                own = [(becomes[label, k], at[k].get(var)) for k in range(len(self._ways[label]))]
                if var not in stay or any(value is None for _, value in own):
                    values[id(var)] = None
                else:
                    values[id(var)] = stay[var] + sum((value - stay[var]) * on for on, value in own)
        return values

    def _way(self, label: Any, k: int) -> Mapping[str, float]:
        ways = self._ways.get(label, ())
        return ways[k] if k < len(ways) else self._people.points[label]

    def chosen(self) -> dict[Any, Mapping[str, float]]:
        """Return what everybody who is served becomes, by the values that the Vars hold."""
        chosen: dict[Any, Mapping[str, float]] = {
            label: self._people.points[label] for label in self._people.favourable
        }
        held = iter(self._block.becomes.values())
        for label, ways in self._ways.items():
            for way in ways:
                if (next(held).value or 0.0) > 0.5:
                    chosen[label] = way
        return chosen


@contextmanager
def _switched_off(parts: Sequence[Any]) -> Iterator[None]:
    """Leave some rows out inside."""
    for part in parts:
        part.deactivate()
    try:
        yield
    finally:
        for part in parts:
            part.activate()


_STATUS: Final = {
    Stop.OPTIMAL: Status.OPTIMAL,
    Stop.FEASIBLE: Status.FEASIBLE,
    Stop.INFEASIBLE: Status.INFEASIBLE,
    Stop.UNBOUNDED: Status.UNBOUNDED,
    Stop.TIME_LIMIT: Status.TIME_LIMIT,
    Stop.INTERRUPTED: Status.TIME_LIMIT,
    Stop.ERROR: Status.ERROR,
}
_WORDS: Final = {
    Stop.OPTIMAL: "",
    Stop.FEASIBLE: "",
    Stop.INFEASIBLE: "Proved: no choice of people keeps every row.",
    Stop.TIME_LIMIT: "The time limit is used up.",
    Stop.INTERRUPTED: "The search was interrupted.",
    Stop.UNBOUNDED: "The model has no least objective.",
    Stop.ERROR: "The solver failed.",
}

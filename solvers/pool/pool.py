"""Several solutions of one program: the loop over runs, and what it came to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, final

import numpy as np

from ceopt.solvers.adapter import require_data
from ceopt.solvers.checks import Choice, OrNone, Real, Whole, check_arguments, check_fields
from ceopt.solvers.compile.compiled_model import CompiledModel, compile_model
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.solvers.errors import (
    InvalidTypeError,
    InvalidValueError,
    MissingLibraryError,
    MissingLicenceError,
    UnboundedFeatureError,
    UnknownNameError,
    UnsupportedProblemError,
)
from ceopt.solvers.pool.ranking import (
    AbstractExclusion,
    AbstractRanking,
    Distances,
    Incumbents,
    InTurn,
    NBest,
    NoGoods,
    Runner,
    free_integers,
    integers,
    no_goods,
)
from ceopt.solvers.problem import Outcome, Stop, Vector
from ceopt.solvers.registry import SOLVERS
from ceopt.solvers.tolerances import COUNTED_VIOLATION
from ceopt.solvers.trust import contradicts

# ==== Distinct solutions of a pool: how they must differ, in the caller's words =======================================

_WHO = "A pool"
_APART = {"least": Real(above=0.0), "norm": Choice(("l1", "linf"))}


@final
@dataclass(frozen=True, slots=True)
class Support:
    """Solutions differ in one of these integer Vars, such as the change indicators of a recourse model.

    Parameters
    ----------
    variables
        Vars (indexed or not), VarData, or several of them.
    """

    variables: Any


@final
@dataclass(frozen=True, slots=True)
class ApartVariables:
    r"""Solutions keep a distance from all earlier ones: :math:`\|x - x^k\| \ge \delta` over these Vars.

    Parameters
    ----------
    variables
        Vars with finite bounds (indexed or not), VarData, or several of them.
    least
        The distance, above 0.
    norm
        "l1" or "linf".
    """

    variables: Any
    least: float
    norm: Literal["l1", "linf"] = "l1"

    def __post_init__(self) -> None:
        check_fields(self, _APART)

    def __repr__(self) -> str:
        """Return the call that makes it, under the public name."""
        return f"Apart(variables={self.variables!r}, least={self.least!r}, norm={self.norm!r})"


Distinct: TypeAlias = Literal["decisions", "incumbents"] | Support | ApartVariables


def rule_of(distinct: Any, compiled: CompiledModel) -> AbstractExclusion:
    """Return the rule over the program's columns; "incumbents" are told apart as "decisions" are.

    Raises
    ------
    UnknownNameError, InvalidTypeError
        Something else than the words and classes of ``Distinct``.
    InvalidValueError, UnboundedFeatureError
        A Var that is not in the program or not integer, or has no finite bounds.
    """
    if isinstance(distinct, ApartVariables):
        columns = _columns("Apart", distinct.variables, compiled)
        bounds = compiled.lb[columns], compiled.ub[columns]
        _require_finite("Apart", columns, *bounds, compiled)
        return Distances(columns, *bounds, float(distinct.least), distinct.norm)
    if isinstance(distinct, Support):
        columns = _columns("Support", distinct.variables, compiled)
        for column in columns[~compiled.integer[columns] & (compiled.lb[columns] < compiled.ub[columns])]:
            raise InvalidValueError(
                "Support",
                "integer Vars",
                f"{compiled.columns[column].name!r} is continuous",
                "Give indicators, or use Apart.",
            )
        rule = no_goods(columns, compiled)
        _require_finite("Support", rule.columns, rule.low, rule.high, compiled)
        return rule
    if not isinstance(distinct, str):
        but = f"it is of type {type(distinct).__name__}"
        raise InvalidTypeError(_WHO, "a word, Support or Apart as distinct", but, "Choose one of them.")
    if distinct not in ("decisions", "incumbents"):
        words = ["decisions", "incumbents", "Support(variables)", "Apart(variables, least)"]
        raise UnknownNameError.among(_WHO, "distinct", distinct, words)
    rule = integers(compiled)
    if distinct == "decisions":
        _require_finite(_WHO, rule.columns, rule.low, rule.high, compiled)
    return rule


def _require_finite(who: str, columns: Any, low: Vector, high: Vector, compiled: CompiledModel) -> None:
    for column in columns[~(np.isfinite(low) & np.isfinite(high))]:
        name = compiled.columns[column].name
        raise UnboundedFeatureError(
            who, "finite bounds of what solutions differ in", f"Var {name!r} has none on one side", "Set its bounds."
        )


def _columns(who: str, variables: Any, compiled: CompiledModel) -> Any:
    """Return the columns of Vars; a Var fixed to a constant has no column, and cannot differ."""
    found = []
    for member in _members(who, variables):
        column = compiled.index.get(member)
        if column is not None:
            found.append(column)
        elif not member.fixed:
            raise InvalidValueError(
                who, "Vars of the program", f"{member.name!r} is in no active row or objective", "Leave it out."
            )
    return np.unique(np.array(found, dtype=np.intp))


def _members(who: str, variables: Any) -> Iterable[Any]:
    is_component = hasattr(variables, "is_indexed") or hasattr(variables, "is_variable_type")
    if is_component and variables.is_indexed() and variables.ctype.__name__ == "Var":
        yield from variables.values()
    elif is_component and not variables.is_indexed() and variables.is_variable_type():
        yield variables
    elif not is_component and isinstance(variables, Iterable) and not isinstance(variables, str):
        for part in variables.values() if isinstance(variables, Mapping) else variables:
            yield from _members(who, part)
    else:
        raise InvalidTypeError(who, "Vars", f"it got {variables!s}", "Give a Var, or a list of Vars.")


# ==== Several solutions of one program: the loop over runs, and what it came to =======================================


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The result of a search for several solutions.

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
    """Return the ranking that needs the fewest runs."""
    if not isinstance(rule, NoGoods):
        return InTurn(runner, compiled, rule, n)
    if distinct == "incumbents":
        return Incumbents(runner, compiled, rule, n)
    decides_all = len(rule.columns) == len(free_integers(compiled))
    if decides_all:
        return NBest(runner, compiled, rule, n)
    return InTurn(runner, compiled, rule, n)


def pool_of(ranking: AbstractRanking) -> Pool:
    """Solve the program, and again without the points in hand, until the ranking has as many as it wants."""
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
        doubt = runner.doubt if runner.doubt not in message else ""
        message = f"{doubt} {message} {ranking.n_proved} of {len(points)} solutions are proved.".strip()
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


# ==== The number of points of a linear program over integers, counted by SCIP without listing them ====================

_COUNT = "count_solutions"
_MOST = 2**63 - 1  # SCIP counts no further
_CHECKS = {"limit": OrNone(Whole(at_least=1)), "time_limit_s": OrNone(Real(above=0.0))}


class Count(NamedTuple):
    """The points found, and whether they are all there are."""

    number: int
    complete: bool


def count(model: Any, *, limit: int | None = None, time_limit_s: float | None = None) -> Count:
    """Count the feasible points of a ConcreteModel over integers, whatever its objective, with SCIP.

    Parameters
    ----------
    model
        With linear Constraints; each of its Vars is fixed, or an integer with finite bounds. Vars that occur nowhere do
        not count.
    limit
        Stop when so many are found.
    time_limit_s
        Stop after so many seconds of counting.

    Returns
    -------
    Count
        ``.number`` and ``.complete``. Numbers end at 2^63 - 1.

    Raises
    ------
    MissingLibraryError
        pyscipopt is not installed.
    UnsupportedProblemError
        A Var is continuous, or a constraint is not linear: SCIP's counter is wrong beside quadratic rows.
    InvalidValueError
        An integer without finite bounds, or a limit that makes no sense.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.solvers import count
    >>> model = pyo.ConcreteModel()
    >>> model.x = pyo.Var([1, 2, 3], domain=pyo.Binary)
    >>> model.some = pyo.Constraint(expr=model.x[1] + model.x[2] + model.x[3] >= 1)
    >>> count(model)
    Count(number=7, complete=True)
    """
    compiled = compile_model(model)
    scip = SOLVERS["scip"]
    if not scip.is_installed:
        raise MissingLibraryError("count", "SCIP", scip.why_not.rstrip("."), "Install it.")
    return count_solutions(compiled, limit=limit, time_limit_s=time_limit_s)


def count_solutions(compiled: CompiledModel, *, limit: int | None = None, time_limit_s: float | None = None) -> Count:
    """Count the feasible points of a program over integers, whatever its objective.

    SCIP walks the tree of all integer assignments, and where no product of ranges overflows its counter, it counts a
    subtree in which no row binds at once: the count may take far less time than there are points.

    Parameters
    ----------
    compiled
        Linear rows; every column that its bounds do not fix is an integer with finite bounds.
    limit
        Stop when so many are found.
    time_limit_s
        Stop after so many seconds; Ctrl-C stops it, too.

    Raises
    ------
    UnsupportedProblemError
        A column is continuous, or a row is quadratic or a cone: SCIP branches on columns of its own there, and counts
        a point several times.
    InvalidValueError
        An integer without finite bounds, a limit that makes no sense, or data columns without a value.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.solvers import compile_model
    >>> from ceopt.solvers.pool.pool import count_solutions
    >>> m = pyo.ConcreteModel()
    >>> m.y = pyo.Var(range(3), domain=pyo.Binary)
    >>> m.some = pyo.Constraint(expr=m.y[0] + m.y[1] + m.y[2] >= 1)
    >>> count_solutions(compile_model(m))
    Count(number=7, complete=True)
    """
    check_arguments(_COUNT, _CHECKS, {"limit": limit, "time_limit_s": time_limit_s})
    require_data(_COUNT, compiled)
    _require_integers(compiled)
    if compiled.contradiction is not None:
        return Count(0, True)
    if not compiled.columns:
        return Count(int(compiled.violation(np.zeros(0)) <= COUNTED_VIOLATION), True)
    from ceopt.solvers.scip import Program, new_model, refuse_huge_numbers

    refuse_huge_numbers(compiled)
    model = new_model(compiled)
    model.setParamsCountsols()
    model.setParam("presolving/maxrounds", 0)  # SCIP 10.0 counts rows of two columns, once recognised, as redundant
    model.setParam("constraints/countsols/sparsetest", _points_of_box(compiled) <= _MOST)  # subtrees; it overflows
    model.setParam("misc/catchctrlc", True)  # pyscipopt keeps Python waiting while SCIP counts
    model.setParam("constraints/countsols/sollimit", -1 if limit is None else limit)
    if time_limit_s is not None:
        model.setParam("limits/time", min(time_limit_s, 1e20))
    Program(model, compiled, 0.0)
    model.count()
    number = int(model.getNCountedSols())
    complete = model.getStatus() == "infeasible"  # nothing is left
    if limit is None:
        return Count(number, complete)
    return Count(min(number, limit), complete and number <= limit)


def _points_of_box(compiled: CompiledModel) -> int:
    whole = compiled.integer
    widths = np.floor(compiled.ub[whole] + 1e-6) - np.ceil(compiled.lb[whole] - 1e-6) + 1.0
    return math.prod(int(width) for width in widths)


def _require_integers(compiled: CompiledModel) -> None:
    loose = compiled.lb != compiled.ub
    continuous = np.flatnonzero(loose & ~compiled.integer)
    if continuous.size:
        raise UnsupportedProblemError(
            _COUNT,
            "a program over integers",
            f"{compiled.columns[continuous[0]].name!r} is continuous",
            "Fix it, or make it an integer.",
        )
    endless = np.flatnonzero(loose & ~(np.isfinite(compiled.lb) & np.isfinite(compiled.ub)))
    if endless.size:
        k = endless[0]
        raise InvalidValueError(
            _COUNT,
            "finite bounds of all integers",
            f"{compiled.columns[k].name!r} has [{compiled.lb[k]:g}, {compiled.ub[k]:g}]",
            "Set both.",
        )
    if compiled.set_binaries.size:
        raise UnsupportedProblemError(
            _COUNT,
            "integers that decide everything",
            f"set {compiled.sets[0].constraint.name!r} has binaries of its own",
            "State it over binaries, or by rows.",
        )
    others = [row.constraint for row in compiled.quadratics] + [cone.constraint for cone in compiled.cones]
    if others:
        raise UnsupportedProblemError(
            _COUNT, "linear rows", f"{others[0].name!r} is not linear", "Restate it in linear rows, or leave it out."
        )

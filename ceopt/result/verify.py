"""Answers checked again: by the user's own model, and every rule in plain numbers. Nothing of a program is used.

This is the user's check, afterwards. ``Question.check`` (``ceopt/search/state.py``) does the same within a search, and
also enforces step sizes that were inferred from data. Both use ``ceopt/oracle/model.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from ceopt.formulations.constraints import AbstractRule, parse_rules, rule_name
from ceopt.formulations.constraints.rule import AbstractElastic
from ceopt.formulations.digits import digits
from ceopt.formulations.predictors.readers import is_function, open_model, read
from ceopt.formulations.space.space import (
    FeatureSpace,
    complete_rows,
    known_part,
    known_row,
    require_space,
    unknown_columns,
    warn_of,
)
from ceopt.formulations.targets import DisagreementOf, ProbabilityOf, Target, parse_target
from ceopt.oracle.model import (
    Check,
    FavourableRows,
    FunctionOracle,
    FunctionTarget,
    ModelOracle,
    Oracle,
    broken_rules,
    model_behind,
    needing_factual,
)
from ceopt.result.counterfactual import Counterfactual
from ceopt.result.solution_set import SolutionSet
from ceopt.solvers.checks import plain
from ceopt.solvers.errors import CeoptError, InvalidTypeError, counted, printable, within_memory

# ==== Reading answers: rows of any accepted container, then coordinates or faults of each row =========================


def answer_rows(who: str, answers: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Return the ranks and raw rows of a collection of answers; ranks are 1, 2, ... unless it is a SolutionSet.

    Raises
    ------
    InvalidTypeError
        No collection of rows.
    """
    if isinstance(answers, SolutionSet):
        return tuple(answer.rank for answer in answers), [answer.values for answer in answers]
    if isinstance(answers, pd.DataFrame):
        rows: list[Any] = [answers.iloc[[place]] for place in range(len(answers))]
    elif isinstance(answers, pd.Series | Mapping | Counterfactual):
        rows = [answers]
    elif isinstance(answers, Iterable) and not isinstance(answers, str | bytes | np.ndarray):
        rows = list(answers)
    else:
        but = f"answers is {type(answers).__name__}"
        then = "Give each answer as a Series or dict by column name."
        raise InvalidTypeError(who, "a SolutionSet, a frame or a list of rows", but, then)
    return tuple(range(1, len(rows) + 1)), rows


def answer_point(space: FeatureSpace, row: Any) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return the coordinates of a raw row, and its faults in words; with faults the coordinates are incomplete."""
    match row:
        case Counterfactual():
            values: dict[Any, Any] = dict(row.values.items())
        case pd.Series() | pd.DataFrame() if not row.axes[-1].is_unique:
            return {}, ("not a row: a name stands in it twice",)
        case pd.Series():
            values = dict(zip(row.index.tolist(), row.tolist(), strict=True))
        case pd.DataFrame() if len(row) == 1:
            values = {name: row.iloc[0, place] for place, name in enumerate(row.columns)}
        case Mapping():
            values = dict(row)
        case _:
            return {}, (f"not a row: {type(row).__name__}",)
    faults = [f"{name}: missing from the row" for name in space.names if name not in values]
    if faults:  # an unknown name may be a misspelling of the missing one
        faults += [f"{name}: not a column of the space" for name in values if name not in space]
    point = {}
    for feature in space:
        if feature.name in values:
            try:
                point[feature.name] = feature.to_coordinate(values[feature.name])
            except CeoptError as error:
                faults.append(f"{feature.name}: {error}")
    return point, tuple(faults)


# ==== verify: check answers with the user's model and every rule ======================================================

Point = Mapping[str, float]


@final
@dataclass(frozen=True, slots=True)
class Report:
    """What :func:`verify` found.

    Parameters
    ----------
    ranks
        Ranks of the answers, in the order given.
    checks
        One per answer; a missed target is listed in ``broken`` as well.
    unchecked
        Rules that could not be checked, without a factual or without the rows that they learn from.
    has_factual
        Whether a factual was given or found in a SolutionSet.
    """

    ranks: tuple[int, ...]
    checks: tuple[Check, ...]
    unchecked: tuple[str, ...]
    has_factual: bool

    @property
    def ok(self) -> bool | None:
        """False if an answer fails; True if all pass every check; None if not everything could be checked."""
        if not all(check.valid for check in self.checks):
            return False
        is_complete = self.has_factual and self.checks and not self.unchecked
        if is_complete:
            return True
        return None

    def to_frame(self) -> pd.DataFrame:
        """Return one row per answer: rank, valid, prediction, broken (what fails, in words)."""
        frame = pd.DataFrame(self.checks, columns=list(Check._fields), dtype=object).astype({"valid": bool})
        frame.insert(0, "rank", pd.Series(self.ranks, dtype="int64"))
        return frame

    def __repr__(self) -> str:
        failed = sum(not check.valid for check in self.checks)
        lines = [f"ok is {self.ok}: {counted(len(self.checks), 'answer')}, {counted(failed, 'fails', things='fail')}"]
        for rank, check in zip(self.ranks, self.checks, strict=True):
            if not check.valid:
                lines.append(f"  rank {rank}: {'; '.join(check.broken)}")
        if self.unchecked:
            lines.append(f"  unchecked: {'; '.join(self.unchecked)}")
        return "\n".join(map(printable, lines))


@within_memory("verify")
def verify(
    answers: Any,
    model: Any,
    space: FeatureSpace,
    *,
    target: Any,
    factual: Any = None,
    constraints: Any = (),
    data: pd.DataFrame | None = None,
) -> Report:
    """Ask the user's own model about every answer and check every rule of the space and of ``constraints``.

    Independent of how the answers were found. It checks kinds, levels, whole numbers, bounds set by the user,
    immutable columns, directions, limits about the person, steps, and each rule's own check. A person outside the
    bounds may stay or come nearer; without a factual nobody is known to be. Bounds and steps that were inferred from
    data are not checked. Columns that are not in the space are ignored, with one warning.

    A hull that the search has enlarged is checked at its enlarged radius (``answers.relaxed``).

    Parameters
    ----------
    answers
        A :class:`SolutionSet`, a frame, or a list of Series, dicts or counterfactuals, in raw units.
    model, space, target, constraints
        As for :func:`ceopt.explain`; the model may be a function from a frame with the columns and dtypes of the space
        to labels or values (n,).
    factual
        The person's row; by default that of a SolutionSet.
    data
        Rows in raw units, for rules that learn from those of the target class (``Hull()``); without them such a rule
        is unchecked. Rows with missing cells are left out, with a warning.

    Returns
    -------
    Report
        ``.ok``, ``.to_frame()``, ``.unchecked``. A bad point (NaN, an unseen level, a missing column, a wrong type) is
        reported, never raised. Without a factual, rules that need one are listed in ``.unchecked`` and ``.ok`` is never
        True. Without answers, ``.ok`` is None.

    Raises
    ------
    CeoptError
        Model, target, rules or factual are unusable, or ``answers`` is no collection of rows.

    Examples
    --------
    >>> import ceopt
    >>> from ceopt.formulations.predictors import Affine
    >>> space = ceopt.FeatureSpace([ceopt.Feature("income", kind="continuous", direction="increasing")])
    >>> model = Affine([1.0], -3.0, labels=("bad", "good"))
    >>> report = ceopt.verify([{"income": 4.0}, {"income": 1.0}], model, space, target="good", factual={"income": 2.0})
    >>> report.ok, report.to_frame()["broken"][1]
    (False, ('target: the model predicts bad, not good', 'income: may only increase, but falls from 2.0 to 1.0'))
    """
    require_space("verify", space)
    ranks, rows = answer_rows("verify", answers)
    warn_of("verify", space, answers=all_names(space, rows), factual=factual, data=data)
    data = complete_rows("verify", space, known_part(space, data))
    opened = model_behind(open_model(model), target)
    oracle, wanted = _oracle_and_target(opened, space, target)
    rules = _with_enlarged_hulls(parse_rules(constraints, space), answers)
    rules = tuple(rule.about(lambda: read(opened, space)).aimed(wanted) for rule in rules)
    if data is not None:
        rows_of_target = FavourableRows(space, oracle, wanted, data, None)
        rules = tuple(rule.fitted(space, rows_of_target) for rule in rules)
    unchecked = [f"{rule_name(rule, place)}: {rule.sentence()}" for place, rule in enumerate(rules) if rule.lacks_rows]
    if factual is None and isinstance(answers, SolutionSet):
        factual = answers.factual
    factual_point = None
    if factual is None:
        unchecked += needing_factual(space, rules)
    else:
        factual_point = space.row(known_row("verify", space, factual))

    def check(some: Sequence[Point]) -> list[Check]:
        return _with_target_fault(wanted, check_points(oracle, space, rules, wanted, factual_point, some))

    points: dict[int, dict[str, float]] = {}
    checks: dict[int, Check] = {}
    for place, row in enumerate(rows):
        point, faults = answer_point(space, row)
        if faults:
            checks[place] = Check(valid=False, prediction=None, broken=faults)
        else:
            points[place] = point
    checks.update(zip(points, check_all_or_each(check, list(points.values())), strict=True))
    in_order = tuple(checks[place] for place in range(len(rows)))
    return Report(ranks, in_order, tuple(map(printable, unchecked)), factual_point is not None)


def _oracle_and_target(opened: Any, space: FeatureSpace, target: Any) -> tuple[Oracle, Target | FunctionTarget]:
    """Return the oracle of a model or function, and the target in checked form."""
    if is_function(opened):
        return FunctionOracle(opened, space), FunctionTarget(target)
    oracle = ModelOracle(opened, space)
    return oracle, parse_target(target, oracle.labels)


def _with_enlarged_hulls(rules: tuple[AbstractRule, ...], answers: Any) -> tuple[AbstractRule, ...]:
    """Return the rules, with each hull that the solution set enlarged at its enlarged radius."""
    if not isinstance(answers, SolutionSet):
        return rules
    enlarged = list(rules)
    for place, rule in enumerate(rules):
        radius = answers.relaxed.get(rule_name(rule, place))
        given = getattr(rule, "radius", None)
        if radius is not None and given is not None and isinstance(rule, AbstractElastic):
            enlarged[place] = rule.widened(radius - given)
    return tuple(enlarged)


def check_points(  # noqa: PLR0917 - called with all of them, in this order
    oracle: Oracle,
    space: FeatureSpace,
    rules: Sequence[AbstractRule],
    target: Target | FunctionTarget,
    factual: Point | None,
    points: Sequence[Point],
) -> list[Check]:
    """Check points given in coordinates, with one call of the model for all of them.

    ``valid`` tells whether the model's prediction meets the target; broken rules do not change it. ``broken`` lists
    rules of the space, then of the user, in words.
    """
    if not points:
        return []
    predicted, is_met = oracle.judge(space.frame(points), target)
    return [
        Check(bool(valid), plain(prediction), broken_rules(rules, space, factual, point, seen_steps=False))
        for valid, prediction, point in zip(is_met.tolist(), predicted.tolist(), points, strict=True)
    ]


def check_all_or_each(check: Callable[[Sequence[Point]], list[Check]], points: Sequence[Point]) -> list[Check]:
    """Check all points at once; if the user's model itself fails, one by one."""
    try:
        return check(points)
    except CeoptError:
        raise
    except Exception as error:  # noqa: BLE001 - the user's model may fail in its own ways, on one point of many
        if len(points) == 1:
            fault = printable(f"target: the model fails with {type(error).__name__}: {error}")
            return [Check(valid=False, prediction=None, broken=(fault,))]
    return [check_all_or_each(check, [point])[0] for point in points]


def _with_target_fault(target: Target | FunctionTarget, checks: Sequence[Check]) -> list[Check]:
    """Return checks whose ``valid`` covers target and rules, and whose ``broken`` lists a missed target first."""
    judged = []
    for check in checks:
        if check.valid:
            judged.append(check._replace(valid=not check.broken))
        else:
            judged.append(check._replace(broken=(_target_fault(target, check.prediction), *check.broken)))
    return judged


def _target_fault(target: Target | FunctionTarget, prediction: Any) -> str:
    predicted = digits(prediction) if isinstance(prediction, float) else str(prediction)
    if isinstance(target, ProbabilityOf | DisagreementOf):
        return f"target: {target.text()} does not hold (the model predicts {predicted})"
    return f"target: the model predicts {predicted}, not {target.text()}"


def all_names(space: FeatureSpace, rows: Iterable[Any]) -> dict[Any, None]:
    """Return, in order, the columns of the space and the unknown names of rows that have every column of the space.

    The unknown name of a row that lacks a column is reported as a fault of the row instead.
    """
    names = dict.fromkeys(space.names)
    for row in rows:
        known = row.values if isinstance(row, Counterfactual) else row
        names.update(dict.fromkeys(unknown_columns(space, known)))
    return names

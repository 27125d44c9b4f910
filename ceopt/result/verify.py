"""Answers checked again: by the user's own model, and every rule in plain numbers. Nothing of a program is used.

This is the user's check, afterwards. Within a search ``Question.check`` (``ceopt/search/state.py``) does the same, and
holds points to steps that were only seen in the data as well. Both use ``ceopt/oracle/model.py``.
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
from ceopt.formulations.predictors.read import is_function, open_model, read
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

# ==== Answers as they are given, by whichever library: their rows, and each row in coordinates, or why it has none ====


def answer_rows(who: str, answers: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Return ranks and raw rows of whatever holds answers: of a solution set its own ranks, else 1, 2, ...

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
    """Return a raw row in coordinates, and everything that keeps it from having some."""
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
    if faults:  # a name too many may be the one that is missing, misspelt
        faults += [f"{name}: not a column of the space" for name in values if name not in space]
    point = {}
    for feature in space:
        if feature.name in values:
            try:
                point[feature.name] = feature.to_coordinate(values[feature.name])
            except CeoptError as error:
                faults.append(f"{feature.name}: {error}")
    return point, tuple(faults)


# ==== Answers checked again: by the user's own model, and every rule in plain numbers. Nothing of a program is used ===

Point = Mapping[str, float]


@final
@dataclass(frozen=True, slots=True)
class Report:
    """What :func:`verify` found.

    Parameters
    ----------
    ranks
        Of the answers, in their order.
    checks
        One per answer; ``broken`` names the target too, where it is missed.
    unchecked
        Rules that could not be checked, without a factual or without the rows that they learn from.
    has_factual
        Whether there was one.
    """

    ranks: tuple[int, ...]
    checks: tuple[Check, ...]
    unchecked: tuple[str, ...]
    has_factual: bool

    @property
    def ok(self) -> bool | None:
        """False if an answer fails; True if all pass every check; None where not everything could be checked."""
        if not all(check.valid for check in self.checks):
            return False
        if self.has_factual and self.checks and not self.unchecked:
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

    Independent of how the answers were found. Checked are kinds, levels, whole numbers, bounds set by the user,
    immutable columns, directions, steps, and each rule's own check. Bounds and steps inferred from data are no rules.
    Columns that the space does not have are left out, with one warning a call.

    Hulls that a SolutionSet says were enlarged are held to the radius that they were given.

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
        Rows in raw units, for rules that learn from those of the target class (``Hull()``). Without them such a rule
        is unchecked. Those with missing cells are left out, with a warning.

    Returns
    -------
    Report
        ``.ok``, ``.to_frame()``, ``.unchecked``. A bad point (NaN, an unseen level, a missing column, a wrong type) is
        reported, never raised. Without a factual the rules that need one are in ``.unchecked`` and ``.ok`` is None at
        best; it is None too where there is no answer to check.

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
    oracle, checked = _asked(opened, space, target)
    rules = _as_solved(parse_rules(constraints, space), answers)
    rules = tuple(rule.about(lambda: read(opened, space)) for rule in rules)
    if data is not None:
        rows_of_target = FavourableRows(space, oracle, checked, data, None)
        rules = tuple(rule.fitted(space, rows_of_target) for rule in rules)
    unchecked = [f"{rule_name(rule, place)}: {rule.sentence()}" for place, rule in enumerate(rules) if rule.lacks_rows]
    if factual is None and isinstance(answers, SolutionSet):
        factual = answers.factual
    start = None
    if factual is None:
        unchecked += needing_factual(space, rules)
    else:
        start = space.row(known_row("verify", space, factual))
    points: dict[int, dict[str, float]] = {}
    checks: dict[int, Check] = {}
    for place, row in enumerate(rows):
        point, faults = answer_point(space, row)
        if faults:
            checks[place] = Check(valid=False, prediction=None, broken=faults)
        else:
            points[place] = point
    judged = each_checked(
        lambda some: _judged(checked, check_points(oracle, space, rules, checked, start, some)), list(points.values())
    )
    checks.update(zip(points, judged, strict=True))
    in_order = map(checks.__getitem__, range(len(rows)))
    return Report(ranks, tuple(in_order), tuple(map(printable, unchecked)), start is not None)


def _asked(opened: Any, space: FeatureSpace, target: Any) -> tuple[Oracle, Target | FunctionTarget]:
    """Return what is asked, and what it should say."""
    if is_function(opened):
        return FunctionOracle(opened, space), FunctionTarget(target)
    oracle = ModelOracle(opened, space)
    return oracle, parse_target(target, oracle.labels)


def _as_solved(rules: tuple[AbstractRule, ...], answers: Any) -> tuple[AbstractRule, ...]:
    """Return the rules with the hulls that a solution set has enlarged as wide as it says."""
    if not isinstance(answers, SolutionSet):
        return rules
    solved = list(rules)
    for place, rule in enumerate(rules):
        radius = answers.relaxed.get(rule_name(rule, place))
        given = getattr(rule, "radius", None)
        if radius is not None and given is not None and isinstance(rule, AbstractElastic):
            solved[place] = rule.widened(radius - given)
    return tuple(solved)


def check_points(  # noqa: PLR0917 - called with all of them, in this order
    oracle: Oracle,
    space: FeatureSpace,
    rules: Sequence[AbstractRule],
    target: Target | FunctionTarget,
    factual: Point | None,
    points: Sequence[Point],
) -> list[Check]:
    """Check points given in coordinates, with one call of the model for all of them.

    ``valid`` is the model's decision alone; ``broken`` lists rules of the space, then of the user, in words.
    """
    if not points:
        return []
    predicted, met = oracle.judge(space.frame(points), target)
    return [
        Check(bool(valid), plain(prediction), broken_rules(rules, space, factual, point, seen_steps=False))
        for valid, prediction, point in zip(met.tolist(), predicted.tolist(), points, strict=True)
    ]


def each_checked(check: Callable[[Sequence[Point]], list[Check]], points: Sequence[Point]) -> list[Check]:
    """Check all points at once; where the user's model itself fails, one by one."""
    try:
        return check(points)
    except CeoptError:
        raise
    except Exception as error:  # noqa: BLE001 - the user's model may fail in its own ways, on one point of many
        if len(points) > 1:
            return [checked for point in points for checked in each_checked(check, [point])]
        fault = printable(f"target: the model fails with {type(error).__name__}: {error}")
        return [Check(valid=False, prediction=None, broken=(fault,))]


def _judged(target: Target | FunctionTarget, checks: Sequence[Check]) -> list[Check]:
    """Return checks with the target among what is broken."""
    judged = []
    for check in checks:
        if check.valid:
            judged.append(check._replace(valid=not check.broken))
        else:
            judged.append(check._replace(broken=(_missed(target, check.prediction), *check.broken)))
    return judged


def _missed(target: Target | FunctionTarget, prediction: Any) -> str:
    predicted = digits(prediction) if isinstance(prediction, float) else str(prediction)
    if isinstance(target, ProbabilityOf | DisagreementOf):
        return f"target: {target.text()} does not hold (the model predicts {predicted})"
    return f"target: the model predicts {predicted}, not {target.text()}"


def all_names(space: FeatureSpace, rows: Iterable[Any]) -> dict[Any, None]:
    """Return the names that any of some rows has, of those that lack no column."""
    names = dict.fromkeys(space.names)
    for row in rows:
        known = row.values if isinstance(row, Counterfactual) else row
        names.update(dict.fromkeys(unknown_columns(space, known)))
    return names

"""The excess of given answers over the proved optimum of the same question, under the same rules.

It is offered as ``ceopt.metrics.excess``, and stands among the doors, as it asks what ``explain`` asks.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
import pandas as pd

from ceopt.base.results import Status
from ceopt.formulations.constraints.rule import overrides
from ceopt.formulations.predictors.readers import open_model
from ceopt.formulations.space.reachable import first_amount
from ceopt.formulations.space.space import (
    FeatureSpace,
    known_part,
    known_row,
    require_space,
    usable_part,
    warn_of,
    warn_of_gaps,
)
from ceopt.oracle.model import Check, ModelOracle, is_off_steps
from ceopt.result.solution_set import SolutionSet
from ceopt.result.verify import all_names, answer_point, answer_rows, check_all_or_each, check_points
from ceopt.search.prepare import Prepared, prepare
from ceopt.search.search import search
from ceopt.settings import CheckedSettings, Settings
from ceopt.solvers.checks import plain
from ceopt.solvers.deadline import OutOfTimeError, until
from ceopt.solvers.errors import InvalidValueError, counted, within_memory

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

Point = Mapping[str, float]


@within_memory("excess")
def excess(
    answers: Any,
    model: Any,
    space: FeatureSpace,
    *,
    target: Any,
    factual: Any,
    cost: Any = "l1",
    constraints: Any = (),
    data: pd.DataFrame | None = None,
    solver: str = "auto",
    time_limit_s: float = 60.0,
) -> pd.DataFrame:
    r"""Hold the answers of any library against the proved optimum under the same rules.

    .. math:: \text{excess} = \frac{\text{cost}(x, x^0)}{\min \{\text{cost}(y, x^0) : f(y) \in T,\ y \text{ keeps all
       rules}\}} - 1

    0 is optimal, 1 twice as dear as need be. An answer that keeps every rule and that the model agrees with has no
    excess below 0, up to what the margin of the decision costs (1e-5 relative). One that breaks a rule may be cheaper
    than anything that keeps them, and says nothing of its method then but that it breaks one.

    Parameters
    ----------
    answers
        A :class:`~ceopt.SolutionSet`, a frame, or a list of Series, dicts or counterfactuals, in raw units. A row that
        a method left empty may be there with missing values. Columns that the space does not have are left out, with
        one warning a call.
    model, space, target, cost, constraints, data, solver
        The question, as for :func:`ceopt.explain`. Bounds and steps that were inferred are no rules: bounds widen
        to hold the answers of the person and a step that one of them does not keep is dropped, so that the optimum is
        sought wherever an answer went.
    factual
        The person's row, or a frame with one row for each answer, in their order.
    time_limit_s
        Seconds for each person, with the reading of the model; of several people for the first of them. Where they end
        before the model is read, the optimum is not known (nan, its bound -inf), and rules that learn from the model or
        from ``data`` are not checked.

    Returns
    -------
    DataFrame
        One row an answer: ``answer`` (its label in a frame, its rank in a SolutionSet, its place in a list, from 0),
        ``cost`` (nan where the row is none of the space), ``optimum`` (the least cost in hand; nan where there is none;
        0 of a person who needs no change), ``bound`` (what is proved of it: equal to the optimum where it is optimal,
        inf where there is no answer at all), ``excess`` (0 where both costs are 0, inf where only the optimum is),
        ``valid`` (whether the model agrees) and ``broken`` (the rules that break, in words).

    Raises
    ------
    CeoptError
        Model, target, rules, cost or factual are unusable, as for :func:`ceopt.explain`; ``answers`` is no collection
        of rows; another number of factuals than one or one an answer. A bad answer is reported, never raised.

    References
    ----------
    The optimality gap of a heuristic, as in mixed-integer programming.

    Examples
    --------
    >>> import ceopt
    >>> from ceopt.metrics import excess
    >>> from ceopt.formulations.predictors import Affine
    >>> space = ceopt.FeatureSpace([ceopt.Feature("income", kind="integer", lower=0, upper=9)])
    >>> model = Affine([1.0], -3.5, labels=("no", "yes"))
    >>> rows = [{"income": 4}, {"income": 8}, {"income": 3}, {"income": 12}]
    >>> table = excess(rows, model, space, target="yes", factual={"income": 2})
    >>> table[["cost", "optimum", "excess", "valid"]].round(3)
        cost  optimum  excess  valid
    0  0.222    0.222     0.0   True
    1  0.667    0.222     2.0   True
    2  0.111    0.222    -0.5  False
    3  1.111    0.222     4.0   True
    >>> table["broken"][3]
    ('income: must be at most 9, but is 12.0',)
    """
    require_space("excess", space)
    ranks, rows = answer_rows("excess", answers)
    warn_of("excess", space, answers=all_names(space, rows), factual=factual, data=data)
    warn_of_gaps("excess", space, but_gaps=True, data=data)
    data = usable_part(space, data)
    began = time.perf_counter()
    settings = Settings(
        target=target, cost=cost, constraints=constraints, solver=solver, time_limit_s=time_limit_s, why=False
    )
    question = _PriceQuestion(model, space, settings, data)
    shared = question.read(space, began)
    given = [_given(space, row) for row in rows]
    lines: list[_Line | None] = [None] * len(rows)
    for start, places in _people(factual, space, len(rows)):
        some = [given[place] for place in places]
        wide = _widened(space, start, some)
        asked = shared if wide == space else question.read(wide, began)
        for place, line in zip(places, question.lines(asked, start, some, began), strict=True):
            lines[place] = line
        began = time.perf_counter()
    return _table(_labels(answers, ranks), list(filter(None, lines)))


# ---- what was given --------------------------------------------------------------------------------------------------
class _Given(NamedTuple):
    """An answer in coordinates, or what keeps it from having some."""

    point: dict[str, float]
    faults: tuple[str, ...]


def _given(space: FeatureSpace, row: Any) -> _Given:
    point, faults = answer_point(space, row)
    return _Given({} if faults else point, faults)


def _labels(answers: Any, ranks: Sequence[int]) -> list[Any]:
    """Return what the table calls each answer."""
    if isinstance(answers, pd.DataFrame):
        return list(map(plain, answers.index.tolist()))
    if isinstance(answers, SolutionSet):
        return list(ranks)
    return list(range(len(ranks)))


def _people(factual: Any, space: FeatureSpace, n: int) -> list[tuple[Point, list[int]]]:
    """Return each person, in coordinates, with the places of the answers for that one."""
    if not isinstance(factual, pd.DataFrame) or len(factual) == 1:
        return [(space.row(known_row("excess", space, factual)), list(range(n)))] if n else []
    if len(factual) != n:
        but = f"factual has {counted(len(factual), 'row')} and there are {counted(n, 'answer')}"
        raise InvalidValueError("excess", "one factual, or one for each answer", but, "Give a row for each.")
    people: dict[tuple[float, ...], tuple[Point, list[int]]] = {}
    known = known_part(space, factual)
    for place in range(n):
        start = space.row(known.iloc[[place]])
        people.setdefault(tuple(start.values()), (start, []))[1].append(place)
    return list(people.values())


def _widened(space: FeatureSpace, start: Point, answers: Sequence[_Given]) -> FeatureSpace:
    """Return the space with inferred bounds wide enough for answers, and without inferred steps that they break."""
    points = [one.point for one in answers if one.point]
    features = []
    for feature in space:
        features.append(_wide(feature, start[feature.name], [point[feature.name] for point in points]))
    return FeatureSpace(features)


def _wide(feature: Feature, start: float, values: Sequence[float]) -> Feature:
    finite = [value for value in values if math.isfinite(value) and not feature.is_label(value)]
    if feature.is_finite or not finite:
        return feature
    if feature.is_label(start):
        start = first_amount(feature)
    lower, upper = feature.lower, feature.upper
    if feature.lower_inferred:
        lower = min(lower, *finite)
    if feature.upper_inferred:
        upper = max(upper, *finite)
    wide = replace(feature, lower=lower, upper=upper)
    if (
        feature.step is not None
        and feature.step_inferred
        and any(is_off_steps(feature.step, start, value) for value in finite)
    ):
        return replace(wide, step=None, step_inferred=False)
    return wide


# ---- what it is held against -----------------------------------------------------------------------------------------
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A row of the table, but for its label."""

    cost: float
    optimum: float
    bound: float
    valid: bool
    broken: tuple[str, ...]

    @property
    def excess(self) -> float:
        """By what share the cost is above the optimum."""
        if math.isnan(self.cost) or math.isnan(self.optimum):
            return math.nan
        if self.optimum == 0.0:
            return 0.0 if self.cost == 0.0 else math.inf
        return self.cost / self.optimum - 1.0


@final
@dataclass(frozen=True, slots=True)
class _PriceQuestion:
    """What answers are held against, for any number of people."""

    model: Any
    space: FeatureSpace
    settings: Settings
    data: pd.DataFrame | None

    def read(self, space: FeatureSpace, began: float) -> Prepared | None:
        """Return the model and the settings made ready; None where the time ended first."""
        try:
            with until(began + self.settings.limit_s()):
                return prepare(self.model, space, self.settings, data=self.data)
        except OutOfTimeError:
            return None

    def lines(self, asked: Prepared | None, start: Point, answers: Sequence[_Given], began: float) -> list[_Line]:
        """Return the answers for one person beside the optimum."""
        optimum, bound = math.nan, -math.inf
        if asked is None:
            space = self.space
            oracle, settings = self._unread()
        else:
            space = asked.space
            oracle, settings = asked.oracle, asked.settings
            optimum, bound = _optimum(asked, start, began)
        found = check_all_or_each(
            lambda some: check_points(oracle, space, settings.rules, settings.target, start, some),
            [one.point for one in answers if not one.faults],
        )
        checks = iter(found)
        lines = []
        for one in answers:
            check = Check(valid=False, prediction=None, broken=one.faults)
            cost = math.nan
            if not one.faults:
                check = next(checks)
                cost = float(settings.cost.value(space, start, one.point))
            lines.append(_Line(cost=cost, optimum=optimum, bound=bound, valid=check.valid, broken=check.broken))
        return lines

    def _unread(self) -> tuple[ModelOracle, CheckedSettings]:
        """Return the model to be asked, and the settings with those rules that learn nothing."""
        oracle = ModelOracle(open_model(self.model), self.space)
        checked = self.settings.check(self.space, oracle.labels, data=self.data)
        rules = tuple(rule for rule in checked.rules if not (rule.lacks_rows or overrides(rule, "about")))
        return oracle, replace(checked, rules=rules)


def _optimum(asked: Prepared, start: Point, began: float) -> tuple[float, float]:
    """Return the least cost in hand (nan without an answer) and the proved bound."""
    found = search(asked, asked.space.frame([start]), began=began)
    if found.status is Status.ALREADY_FAVOURABLE:
        return 0.0, 0.0
    if found.status is Status.INFEASIBLE:
        return math.nan, math.inf
    bound = -math.inf if found.bound is None else float(found.bound)
    return (found[0].cost if len(found) else math.nan), bound


def _table(labels: Sequence[Any], lines: Sequence[_Line]) -> pd.DataFrame:
    columns: dict[str, Any] = {"answer": labels}
    for name in ("cost", "optimum", "bound", "excess"):
        columns[name] = np.array([getattr(line, name) for line in lines], dtype=np.float64)
    columns["valid"] = np.array([line.valid for line in lines], dtype=bool)
    columns["broken"] = pd.Series([line.broken for line in lines], dtype=object)
    return pd.DataFrame(columns)

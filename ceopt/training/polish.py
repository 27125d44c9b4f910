"""Recourse that a generator made, audited person by person; what fails or is too dear is left to the exact engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np
import pandas as pd

from ceopt.checking.answer_check import broken_rules
from ceopt.formulations.constraints.rule import nearest_cluster
from ceopt.formulations.digits import digits, rounded
from ceopt.formulations.space.reachable import reach_of
from ceopt.formulations.space.space import FeatureSpace
from ceopt.parallel.jobs import Lost, completed, whole_jobs
from ceopt.population.batch import answered, cohort_of
from ceopt.population.cohort import Cohort
from ceopt.query.build_answer import answer_of, with_printed
from ceopt.query.given_starts import put_in_reach
from ceopt.query.prepare import Prepared, fingerprints_of, prepare
from ceopt.settings import Settings
from ceopt.solution.solution_set import SolutionSet
from ceopt.solvers.checks import Real, check_arguments
from ceopt.status import Status
from ceopt.tolerances import POLISH_GAP, ROUNDED_GAP
from ceopt.training.scaled_frame import Floats
from ceopt.words.said import said, together

__all__ = ["polished"]

_WHO: Final = "polish"
_CHECKS: Final = {"max_ratio": Real(at_least=1.0, finite=True)}
#: What an audit says of each person, with the dtype of each column.
_AUDIT: Final = {
    "source": object,
    "advised_cost": np.float64,
    "valid": bool,
    "broken": object,
    "cost": np.float64,
    "bound": np.float64,
    "gap": np.float64,
    "excess": np.float64,
}

Point = Mapping[str, float]


@final
@dataclass(frozen=True, slots=True)
class _Audited:
    """What a person's advice came to: the checked answer, and a line of the audit."""

    result: SolutionSet
    line: dict[str, Any]


def polished(
    model: Any,
    space: FeatureSpace,
    X: pd.DataFrame,
    advice: pd.DataFrame,
    targets: Sequence[Any],
    *,
    cost: Any = "l1",
    constraints: Any = (),
    max_ratio: float = 1.5,
    time_limit_s: float = 10.0,
    n_jobs: int = 1,
    progress: bool = False,
) -> Cohort:
    r"""Keep advice that passes every check at a proved price, and replace what does not by answers of the engine.

    For each person the engine bounds the least cost from below, with the advice as the point to begin with,

    .. math::
        b \le \min_x\ \text{cost}(x, x^0) \quad\text{s.t.}\quad f(x) = t, \quad x \in \text{reach}(x^0), \quad
        \text{constraints},

    and stops as soon as the cheapest point in hand costs at most ``max_ratio`` times b. Advice that the model and every
    rule accept, and that costs no more than that, is the answer as it stands; else the engine's point is.

    Parameters
    ----------
    model
        What :func:`ceopt.explain` reads, and what has the last word.
    space, X, advice
        The columns; the people (n, d) and what each was advised (n, d), in raw units. Rules and costs that learn from
        rows learn from X.
    targets
        The label (n,) that each person should get.
    cost, constraints
        As for :func:`ceopt.explain`.
    max_ratio
        How many times the proved bound advice may cost, at least 1.
    time_limit_s
        Seconds for each person.
    n_jobs
        Processes.
    progress
        Whether to show a bar on standard error.

    Returns
    -------
    Cohort
        One answer per person, with an ``audit``: ``source`` ("generator": the advice as it stands, or a person who
        needs none; "repaired": the engine began with the advice; "engine": it could not be begun with), the advice's
        ``advised_cost``, whether the model accepts it (``valid``) and which rules it has ``broken``, then cost, bound
        and gap of the answer, and ``excess``: by what share the advice costs more than the bound. "optimal" is said of
        answers that are proved best, "feasible" of those that are within the ratio, whoever found them.

    Raises
    ------
    CeoptError
        An option, cost or rule that does not exist or does not fit; a model that cannot be stated as a program.
    """
    checked = check_arguments(_WHO, _CHECKS, {"max_ratio": max_ratio})
    jobs = whole_jobs(_WHO, n_jobs)
    queries = X[list(space.names)]
    points = space.coordinates(advice[list(space.names)])
    settings = Settings(
        target=None,
        cost=cost,
        constraints=constraints,
        time_limit_s=time_limit_s,
        relative_gap=max(1.0 - 1.0 / checked["max_ratio"], POLISH_GAP),
        why=False,
    )
    prepared: dict[Any, Prepared] = {}
    fingerprints = fingerprints_of(model, queries)
    for label in dict.fromkeys(targets):
        of_label = prepare(model, space, replace(settings, target=label), data=queries)
        prepared[label] = replace(of_label, fingerprints=fingerprints)
    found = completed(
        _WHO,
        _audited,
        lambda k: (prepared[targets[k]], queries.iloc[[k]], points[k], checked["max_ratio"]),
        count=len(queries),
        n_jobs=jobs,
    )
    lines: list[dict[str, Any]] = [_line("engine") for _ in range(len(queries))]
    options = _options(prepared, checked["max_ratio"])
    done: list[SolutionSet | None] = [None] * len(queries)
    cohort = cohort_of(_results(found, lines), queries, space, options, done=done, progress=progress)
    return replace(cohort, audit=_table(lines, queries.index))


def _results(found: Iterator[tuple[int, Any]], lines: list[dict[str, Any]]) -> Iterator[tuple[int, SolutionSet | Lost]]:
    """Give the results as they come in, and note their lines."""
    for place, one in found:
        if isinstance(one, Lost):
            yield place, one
        else:
            lines[place] = one.line
            yield place, one.result


def _options(prepared: Mapping[Any, Prepared], max_ratio: float) -> dict[str, Any]:
    options: dict[str, Any] = {}
    targets = []
    for one in prepared.values():
        options = one.options()
        targets.append(options["target"])
    return options | {"target": " or ".join(targets), "max_ratio": max_ratio}


def _table(lines: Sequence[dict[str, Any]], index: pd.Index[Any]) -> pd.DataFrame:
    labels: pd.Index[Any] = pd.Index(index, name="query_id", tupleize_cols=False)
    columns = {}
    for word, dtype in _AUDIT.items():
        columns[word] = pd.Series([line[word] for line in lines], index=labels, dtype=dtype)
    return pd.DataFrame(columns)


# ---- one person ------------------------------------------------------------------------------------------------------
def _audited(prepared: Prepared, row: pd.DataFrame, advised: Floats, max_ratio: float) -> _Audited:
    """Check one person's advice, bound the least cost, and take the advice or the engine's answer."""
    result = answered(replace(prepared, starts=advised[None, :]), row)
    if result.status is Status.ERROR:
        return _Audited(result, _line("engine"))
    space = prepared.space
    factual = space.row(row)
    if result.status is Status.ALREADY_FAVOURABLE:
        return _Audited(result, _line("generator", advised_cost=0.0, valid=True, cost=0.0, bound=0.0, gap=0.0))
    point = dict(zip(space.names, advised.tolist(), strict=True))
    prediction, is_valid = _said(prepared, point)
    broken = broken_rules(prepared.settings.rules, space, factual, point)
    advised_cost = prepared.settings.cost.value(space, factual, point)
    passes = is_valid and not broken
    source = "engine"
    if passes and _is_kept(result, point, space, advised_cost, max_ratio):
        source = "generator"
        result = _with_advice(prepared, result, factual, point, prediction)
    elif result.counterfactuals and (passes or _can_be_begun_with(prepared, factual, advised)):
        source = "repaired"
    result = _as_proved(result, max_ratio)
    line = _line(source, advised_cost=advised_cost, valid=is_valid, broken=broken, bound=result.bound, gap=result.gap)
    if result.counterfactuals:
        line["cost"] = result[0].cost
    if passes and result.bound:
        line["excess"] = advised_cost / result.bound - 1.0
    return _Audited(result, line)


def _line(source: str, **known: Any) -> dict[str, Any]:
    """Return a line of the audit; what is not known is missing."""
    line: dict[str, Any] = dict.fromkeys(_AUDIT, np.nan) | {"source": source, "valid": False, "broken": ()}
    return line | {word: value for word, value in known.items() if value is not None}


def _said(prepared: Prepared, point: Point) -> tuple[Any, bool]:
    """Return what the user's own model says of a point, and whether that is the target."""
    predicted, met = prepared.judge([point])
    return predicted[0], bool(met[0])


def _is_kept(result: SolutionSet, point: Point, space: FeatureSpace, advised_cost: float, max_ratio: float) -> bool:
    """Tell whether advice that passes is cheap enough by what is proved, or, but for digits, what the engine found."""
    if result.bound is not None and advised_cost <= max_ratio * result.bound:
        return True
    if not result.counterfactuals:
        return True
    found = space.row(result[0].frame)
    is_rounded = all(found[name] == point[name] or space[name].decimals is not None for name in space.names)
    return is_rounded and abs(advised_cost - result[0].cost) <= ROUNDED_GAP * advised_cost


def _can_be_begun_with(prepared: Prepared, factual: Point, advised: Floats) -> bool:
    """Tell whether advice passes once it is put where the person can be and mended by the rules that can."""
    space = prepared.space
    rules = prepared.settings.rules
    reach = reach_of(space, factual)
    for coordinates in put_in_reach(advised[None, :], space, factual, reach, rules).tolist():
        point = dict(zip(space.names, coordinates, strict=True))
        if _said(prepared, point)[1] and not broken_rules(rules, space, factual, point):
            return True
    return False


def _with_advice(prepared: Prepared, result: SolutionSet, factual: Point, point: Point, prediction: Any) -> SolutionSet:
    """Return a result with the advice as its answer."""
    answer = answer_of(
        prepared,
        factual,
        point,
        prediction=prediction,
        bound=result.bound,
        rank=1,
        cluster=nearest_cluster(prepared.settings.rules, prepared.space, point),
    )
    assert answer.gap is not None  # noqa: S101 - made by the line above

    def accepts(points: list[dict[str, float]]) -> list[bool]:
        met: list[bool] = prepared.judge(points)[1].tolist()
        return met

    (answer,) = with_printed([(answer, point)], prepared.settings.rules, prepared.space, factual, accepts)
    reason = result.reason
    if not result.counterfactuals:
        passes = said(f"The advice passes every check; the engine ended {result.status}.", "advice_kept")
        reason = together(passes, result.reason)
    return replace(
        result,
        status=Status.FEASIBLE,
        counterfactuals=(answer,),
        bound=answer.bound,
        gap=answer.gap,
        complete=True,
        reason=reason,
    )


def _as_proved(result: SolutionSet, max_ratio: float) -> SolutionSet:
    """Return a result that says "optimal" where its answer is proved best, "feasible" where it is within the ratio."""
    if not result.counterfactuals:
        return result
    gap = result[0].gap
    if gap is not None and gap <= POLISH_GAP:
        return replace(result, status=Status.OPTIMAL, reason="")
    reason = result.reason
    if not reason and gap is not None:
        percent = rounded(100.0 * gap, 2, "up")
        lower = f"The least cost may be lower by up to {digits(percent)}%"
        text = f"{lower}: within {digits(max_ratio)} times the bound is near enough."
        reason = said(text, "gap_open", percent=percent)
    return replace(result, status=Status.FEASIBLE, reason=reason)

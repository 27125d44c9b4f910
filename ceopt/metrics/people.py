"""The people whose counterfactuals are measured: one person, or many in a cohort or a frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd

from ceopt.metrics.published.measure import Evidence
from ceopt.metrics.rows import frame_of, is_solution_set
from ceopt.metrics.run_time import run_time
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["MEAN", "count", "has_people", "of_one", "people"]

#: The label of the row of means.
MEAN = "mean"


def count(table: Any) -> int:
    """Return how many rows there are."""
    return len(frame_of(table))


def of_one(known: Evidence, seconds: Any) -> Evidence:
    """Return what a solution set says of itself, where nothing else is said."""
    own: dict[str, Any] = {}
    if is_solution_set(known.S):
        result = known.S
        own["S"] = result.to_frame()
        if known.factual is None:
            own["factual"] = result.factual
        if known.n is None:
            own["n"] = result.options.get("n")
        if seconds is None and result.timings:
            seconds = run_time(result)
    if is_solution_set(known.others):
        own["others"] = known.others.to_frame()
    if seconds is not None:
        own["seconds"] = run_time(seconds)
    return replace(known, **own)


def _is_cohort(table: Any) -> bool:
    is_table = isinstance(table, pd.DataFrame | pd.Series)  # whose attributes are its columns
    return not is_table and hasattr(table, "results") and hasattr(table, "queries")


def has_people(table: Any) -> bool:
    """Whether results are of several people."""
    return _is_cohort(table) or (isinstance(table, pd.DataFrame) and table.index.nlevels == 2)


def people(who: str, known: Evidence, seconds: Any) -> Iterator[tuple[Any, Evidence]]:
    """Give each person's label, and what is known about this person."""
    if known.space is not None:
        names: Any = known.space.names
    else:
        names = getattr(known.factual, "columns", None)
    listed = _listed(who, known.S, names, known.factual)
    others = _others(who, listed, known.others)
    for person, other in zip(listed, others, strict=True):
        own: dict[str, Any] = {"S": person.answers, "factual": person.factual, "others": other}
        time = _seconds_of(who, person, seconds)
        if time is not None:
            own["seconds"] = run_time(time)
        if known.n is None and person.result is not None:
            own["n"] = person.result.options.get("n")
        yield person.label, replace(known, **own)


class _Person(NamedTuple):
    """Label, counterfactuals, factual row, and solution set if there is one."""

    label: Any
    answers: pd.DataFrame
    factual: Any
    result: Any


def _seconds_of(who: str, person: _Person, seconds: Any) -> Any:
    """Return the run time of one person: by label, the same for all, or else what the solution set says."""
    if isinstance(seconds, Mapping | pd.Series):
        if person.label not in seconds:
            raise InvalidValueError(who, "the seconds of each person", f"{person.label!r} has none", "Add them.")
        seconds = seconds[person.label]
    if seconds is None and person.result is not None and person.result.timings:
        return run_time(person.result)
    return seconds


def _listed(who: str, table: Any, names: Any, factual: Any) -> list[_Person]:
    """Return the people of a cohort or of a frame by person."""
    listed = []
    if _is_cohort(table):
        for result in table.results:
            listed.append(_Person(result.query_id, result.to_frame(), result.factual, result))
    else:
        for label, group in table.groupby(level=0, sort=False):
            listed.append(_Person(label, _answers(group, names), _row_of(who, label, factual), None))
    if not listed:
        raise InvalidValueError(who, "a person", "there is none", "Give at least one row.")
    if any(person.label == MEAN for person in listed):
        raise InvalidValueError(
            who, f"no person called {MEAN!r}, which is the last row", f"{MEAN!r} is one of {len(listed)}", "Rename it."
        )
    return listed


def _others(who: str, people: list[_Person], others: Any) -> list[pd.DataFrame] | list[None]:
    """Return the other set of each person, if there are others: of the same labels in the same order, or by label."""
    if others is None:
        return [None] * len(people)
    if not has_people(others):
        raise InvalidTypeError(
            who, "a set of others for each person", f"others is {type(others).__name__}",
            "Give a Cohort, or a frame indexed by person and rank.",
        )  # fmt: skip
    listed = _listed(who, others, people[0].answers.columns, None)
    labels = [person.label for person in people]
    theirs = [person.label for person in listed]
    if theirs == labels:
        return [person.answers for person in listed]
    by_label = {person.label: person.answers for person in listed}
    for label in labels:
        if theirs.count(label) != 1 or labels.count(label) != 1:
            times = theirs.count(label)
            raise InvalidValueError(
                who, "one set of others for each person", f"{label!r} has {times}", "Give the same people in both."
            )
    return [by_label[label] for label in labels]


def _answers(group: pd.DataFrame, names: Any) -> pd.DataFrame:
    """Return the rows that are answers, in the raw columns only, and in dtypes that hold no missing value."""
    group = group.droplevel(0)
    if names is not None:
        group = group[[name for name in names if name in group.columns]]
    group = group.loc[(group.index != 0) | group.notna().any(axis=1)]  # how a cohort says that there is no answer
    if group.isna().to_numpy().any():
        return group
    return group.astype({name: _plain(dtype) for name, dtype in group.dtypes.items()})


def _plain(dtype: Any) -> Any:
    """Return numpy's own dtype for what a cohort has widened, so that a model sees what it was fitted on."""
    if str(dtype).lower() in _WIDENED:
        return getattr(dtype, "numpy_dtype", dtype)
    return dtype


#: Names of pandas' dtypes that hold missing values beside truth values or whole numbers.
_WIDENED = {"boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}


def _row_of(who: str, label: Any, factual: Any) -> Any:
    if factual is None:
        return None
    if not isinstance(factual, pd.DataFrame) or label not in factual.index:
        raise InvalidValueError(who, "a factual row for each person", f"{label!r} has none", "Index factual by person.")
    return factual.loc[[label]]

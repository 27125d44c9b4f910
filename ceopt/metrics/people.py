"""Whose counterfactuals are measured, and what with: run time, the measures of a suite, one person or many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median
from time import process_time
from typing import Any, Literal, NamedTuple, final

import numpy as np
import pandas as pd

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.distance import Points, embedded
from ceopt.metrics.diversity import categorical_diversity, count_diversity
from ceopt.metrics.proximity import categorical_proximity, sparsity
from ceopt.oracle.rows import frame_of, is_solution_set
from ceopt.solvers.checks import Real, Refusal, Whole
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

# ==== The time that a person waits ====================================================================================

_SECONDS = Real(
    at_least=0.0,
    finite=True,
    otherwise=Refusal("seconds of at least 0", "Correct it.", "one is {text}"),
    wrong_type=Refusal("seconds", "Give numbers.", "one is {value}", InvalidTypeError),
)


def run_time(timings: Any) -> float:
    r"""Mean seconds per person.

    .. math:: \frac1n \sum_{i=1}^n t_i, \qquad t_i = \sum_{\text{phases}\ p} t_{ip}\ \text{unless there is a total}

    Parameters
    ----------
    timings
        One person's: a number, a mapping phase -> seconds, or a :class:`~ceopt.SolutionSet`; or several of those. Where
        a mapping has a phase "total", that alone counts, else its phases are added.

    Raises
    ------
    InvalidTypeError
        No number.
    InvalidValueError
        No person, or negative or missing seconds.

    References
    ----------
    ``avg_time`` of CARLA; Leofante & Potyka (2024) time the first explanation of each pair only.

    Examples
    --------
    >>> run_time([{"build": 0.25, "solve": 0.5}, 1.25])
    1.0
    """
    people = [timings] if _is_one(timings) else timings
    if not isinstance(people, Iterable) or isinstance(people, str):
        raise InvalidTypeError("run_time", "seconds", f"timings is {type(timings).__name__}", "Give numbers.")
    seconds = list(map(_seconds, people))
    if not seconds:
        raise InvalidValueError("run_time", "the seconds of a person", "timings is empty", "Give at least one.")
    return float(np.mean(seconds))


def run_time_ratio(
    first: Callable[[], Any], second: Callable[[], Any], *, repeats: int = 5, clock: Callable[[], float] = process_time
) -> float:
    """How many times longer the first takes than the second: the ratio of medians of interleaved runs.

    Seconds of two machines cannot be compared, nor those of one machine under changing load; a ratio of interleaved
    runs can.

    Parameters
    ----------
    first, second
        Functions without arguments.
    repeats
        Runs of each, in turn.
    clock
        Seconds; by default of this process's processors, ``time.perf_counter`` for those on the wall.

    Raises
    ------
    InvalidValueError
        Less than one repeat, or a second that takes no time that the clock can see.

    Examples
    --------
    >>> ticks = iter([0.0, 6.0, 6.0, 8.0])
    >>> run_time_ratio(lambda: None, lambda: None, repeats=1, clock=lambda: next(ticks))
    3.0
    """
    Whole(1, None, Refusal("a positive number of repeats", "Give 5.")).require("run_time_ratio", "repeats", repeats)
    taken: list[list[float]] = [[], []]
    for _ in range(repeats):
        for call, seconds in zip((first, second), taken, strict=True):
            start = clock()
            call()
            seconds.append(clock() - start)
    if not median(taken[1]) > 0.0:
        raise InvalidValueError("run_time_ratio", "a second that takes time", "it takes 0 s", "Repeat it inside.")
    return median(taken[0]) / median(taken[1])


def _is_one(timings: Any) -> bool:
    return isinstance(timings, int | float | np.number | Mapping) or hasattr(timings, "timings")


def _seconds(one: Any) -> float:
    one = getattr(one, "timings", one)
    phases = [one]
    if isinstance(one, Mapping):
        phases = [one["total"]] if "total" in one else list(one.values())
    return float(sum(_SECONDS.require("run_time", "seconds", phase) for phase in phases))


# ==== One line of a suite, and what it is computed from ===============================================================

_STATISTICS = ("mad", "range")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """What is known about one person's counterfactuals; see :func:`ceopt.metrics.suite` for each."""

    S: Any
    factual: Any = None
    space: FeatureSpace | None = None
    model: Any = None
    target: Any = None
    data: Any = None
    labels: Any = None
    others: Any = None
    models: Any = None
    seconds: float | None = None
    n: int | None = None
    neighbours: int = 5

    def lacks(self, need: str) -> bool:
        """Whether something is needed and not there.

        ``"mad"`` is data or a space that knows its own; ``"range"`` the same, needed only where there is a space, since
        columns without one are taken as they are; ``"classes"`` is a model or labels of the data.
        """
        if need in _STATISTICS:
            known = self.space is not None and all(
                feature.is_finite or getattr(feature, need) is not None for feature in self.space
            )
            return self.data is None and not known and (need == "mad" or self.space is not None)
        if need == "classes":
            return self.model is None and self.labels is None
        return getattr(self, need) is None

    def encoded(self, who: str, *, include_data: bool = False, **given: Any) -> list[Points]:
        """Return tables as the source encodes them before it measures.

        With a space the tables are raw: numbers are mapped to [0, 1] by the range of the data (a constant column is
        divided by 1, as by scikit-learn's MinMaxScaler), a category becomes its 0/1 columns, a binary column one of
        them. Without a space the columns are taken as they are.
        """
        scale = "none" if self.space is None else "range"
        data = None if self.space is None and not include_data else self.data
        return embedded(
            who,
            "l2",
            space=self.space,
            scale=scale,
            data=data,
            zero=1.0,
            corner=1.0,
            include_data=include_data,
            **given,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measure:
    """A metric of a suite.

    Parameters
    ----------
    name
        In the result.
    function
        The function of :mod:`ceopt.metrics` that computes it, with the options that the source takes.
    of
        The computation.
    source
        Where it is defined.
    needs
        Keywords of :func:`ceopt.metrics.suite` that it cannot do without; see :meth:`Evidence.lacks`.
    better
        "higher" or "lower".
    when_empty
        The value for a person without a counterfactual.
    """

    name: str
    function: str
    of: Callable[[Evidence], float]
    source: str = ""
    needs: tuple[str, ...] = ()
    better: Literal["higher", "lower"] = "higher"
    when_empty: float = float("nan")

    def by(self, source: str, name: str | None = None) -> Measure:
        """Return the same measure as another source has it, if need be by that source's own name."""
        return replace(self, source=source, name=name or self.name)

    def missing(self, evidence: Evidence) -> str | None:
        """Return the keyword that has to be passed, or None."""
        for need in self.needs:
            if evidence.lacks(need):
                return {"mad": "data", "range": "data", "classes": "model"}.get(need, need)
        return None


# ---- measures that several papers have -------------------------------------------------------------------------------
CATEGORICAL_PROXIMITY = Measure(
    name="categorical_proximity",
    function="categorical_proximity",
    needs=("factual",),
    of=lambda e: categorical_proximity(e.factual, e.S, space=e.space),
)
SPARSITY = replace(
    CATEGORICAL_PROXIMITY,
    name="sparsity",
    function="sparsity",
    of=lambda e: sparsity(e.factual, e.S, space=e.space),
)
CATEGORICAL_DIVERSITY = replace(
    CATEGORICAL_PROXIMITY,
    name="categorical_diversity",
    function="categorical_diversity",
    needs=(),
    of=lambda e: categorical_diversity(e.S, space=e.space),
)
COUNT_DIVERSITY = replace(
    CATEGORICAL_DIVERSITY,
    name="count_diversity",
    function="count_diversity",
    of=lambda e: count_diversity(e.S, space=e.space),
)
RUN_TIME = replace(
    CATEGORICAL_PROXIMITY,
    name="run_time",
    function="run_time",
    better="lower",
    needs=("seconds",),
    of=lambda e: float(e.seconds),  # type: ignore[arg-type]
)


# ==== The people whose counterfactuals are measured: one person, or many in a cohort or a frame =======================

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
    """Yield each person's label and evidence."""
    if known.space is not None:
        names: Any = known.space.names
    else:
        names = getattr(known.factual, "columns", None)
    listed = _listed(who, known.S, names, known.factual)
    for person, other in zip(listed, _others(who, listed, known.others), strict=True):
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
        but = f"{MEAN!r} is one of {len(listed)}"
        raise InvalidValueError(who, f"no person called {MEAN!r}, which is the last row", but, "Rename it.")
    return listed


def _others(who: str, people: list[_Person], others: Any) -> list[pd.DataFrame] | list[None]:
    """Return the other set of each person, if there are others: of the same labels in the same order, or by label."""
    if others is None:
        return [None] * len(people)
    if not has_people(others):
        then = "Give a Cohort, or a frame indexed by person and rank."
        raise InvalidTypeError(who, "a set of others for each person", f"others is {type(others).__name__}", then)
    listed = _listed(who, others, people[0].answers.columns, None)
    labels = [person.label for person in people]
    theirs = [person.label for person in listed]
    if theirs == labels:
        return [person.answers for person in listed]
    by_label = {person.label: person.answers for person in listed}
    for label in labels:
        if theirs.count(label) != 1 or labels.count(label) != 1:
            times = theirs.count(label)
            but = f"{label!r} has {times}"
            raise InvalidValueError(who, "one set of others for each person", but, "Give the same people in both.")
    return [by_label[label] for label in labels]


def _answers(group: pd.DataFrame, names: Any) -> pd.DataFrame:
    """Return the rows that are answers, in the raw columns only, and in plain dtypes where no cell is missing."""
    group = group.droplevel(0)
    if names is not None:
        group = group[[name for name in names if name in group.columns]]
    group = group.loc[(group.index != 0) | group.notna().any(axis=1)]  # how a cohort says that there is no answer
    whole = [name for name in group.columns if group[name].notna().all()]
    return group.astype({name: _plain(group[name].dtype) for name in whole})


def _plain(dtype: Any) -> Any:
    """Return numpy's dtype for one that a cohort has widened, as the model was fitted on it."""
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

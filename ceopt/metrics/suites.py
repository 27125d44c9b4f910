"""Suites: the metrics of five published papers, as they and their code define them.

CARLA measures the columns that the model sees: numbers in [0, 1], categories as 0/1 columns. It has one counterfactual
a person; rows with a missing value are people without one, who count for the success rate only (but where the space
says that the column may be missing, and another is not).

CE-OCL refers to DiCE's definitions, but its continuous ones are in raw units: no MAD, no average over columns. Its
tables are rounded to two decimals, this is not; the released code measures values that it has rounded before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.distance import Points, apart, between_sets, pairwise
from ceopt.metrics.diversity import continuous_diversity, over_pairs, pairs
from ceopt.metrics.people import (
    CATEGORICAL_DIVERSITY,
    CATEGORICAL_PROXIMITY,
    COUNT_DIVERSITY,
    MEAN,
    RUN_TIME,
    SPARSITY,
    Evidence,
    Measure,
    count,
    has_people,
    of_one,
    people,
)
from ceopt.metrics.plausibility import favoured, favoured_share
from ceopt.metrics.proximity import continuous_proximity, immutable_changes, redundancy
from ceopt.metrics.validity import distinct_validity, found, label_change, label_gap, plan_validity, success_rate
from ceopt.oracle.model import in_column_order_of
from ceopt.oracle.rows import read, whole_people
from ceopt.solvers.checks import Choice, Floats, check_arguments
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError
from ceopt.tolerances import CARLA_STILL, COPA_JITTER

# ==== CARLA: Pawelczyk, Bielawski, van den Heuvel, Richter & Kasneci (2021), ``carla/evaluation/catalog`` =============

_CARLA = "CARLA evaluation/catalog"


def _found(known: Evidence) -> Any:
    """Return the rows that count as counterfactuals."""
    return found(known.S, known.space)


def _mean(known: Evidence, of: Callable[[], NDArray[Any]]) -> float:
    if not len(_found(known)):
        return float("nan")
    return float(of().mean())


def _moved(known: Evidence, length: Callable[[Floats], NDArray[Any]]) -> float:
    def lengths() -> NDArray[Any]:
        factual, points = known.encoded("carla2021", x=known.factual, S=_found(known))
        return length(points.moves_from(factual))

    return _mean(known, lengths)


def _ynn(known: Evidence) -> float:
    if not len(_found(known)):
        return float("nan")
    points, people = known.encoded("ynn", include_data=True, S=_found(known))
    which = favoured(known.data, known.model, known.target, known.labels, len(people), known.space)
    return favoured_share(points, people, known.neighbours, "l2", which)


def _distance(name: str, formula: str, length: Callable[[Floats], NDArray[Any]]) -> Measure:
    return Measure(
        name=f"{name}_distance",
        function=formula,
        better="lower",
        needs=("factual", "range"),
        source=f"{_CARLA}/distance.py",
        of=lambda e: _moved(e, length),
    )


#: Means over counterfactuals of what CARLA lists row by row.
CARLA2021 = (
    Measure(
        name="success_rate",
        function="success_rate",
        source=f"{_CARLA}/success_rate.py",
        of=lambda e: success_rate(e.S, n=e.n, space=e.space),
        when_empty=0.0,
    ),
    _distance(
        "l0", "encoded columns that move by more than 1e-5", lambda moves: (np.abs(moves) > CARLA_STILL).sum(axis=1)
    ),
    _distance("l1", "distance('l1') of encoded columns", lambda moves: np.abs(moves).sum(axis=1)),
    _distance("l2", "distance('l2') ** 2 of encoded columns: no root", lambda moves: (moves**2).sum(axis=1)),
    _distance("linf", "distance('linf') of encoded columns", lambda moves: np.abs(moves).max(axis=1)),
    Measure(
        name="constraint_violation",
        function="immutable_changes",
        better="lower",
        needs=("factual", "space"),
        source=f"{_CARLA}/violations.py",
        of=lambda e: _mean(e, lambda: immutable_changes(e.factual, _found(e), e.space)),  # type: ignore[arg-type]
    ),
    Measure(
        name="redundancy",
        function="redundancy",
        better="lower",
        needs=("factual", "model", "target"),
        source=f"{_CARLA}/redundancy.py",
        of=lambda e: _mean(e, lambda: redundancy(e.factual, _found(e), e.model, e.target, space=e.space)),
    ),
    Measure(
        name="ynn",
        function="ynn(k=neighbours) of encoded columns",
        needs=("data", "classes", "target"),
        source=f"{_CARLA}/ynn.py",
        of=_ynn,
    ),
    RUN_TIME.by(f"{_CARLA}/time.py", name="avg_time"),
)


# ==== CE-OCL: Maragno, Roeber & Birbil (2022), tables 2, 3 and 5, as ``ce_helpers.py`` computes them ==================

_CE_OCL = "CE-OCL ce_helpers.py"


def _continuous_diversity(known: Evidence) -> float:
    """Return the mean over pairs of the raw l1 distance, numbers rounded to four decimals first."""
    (rows,) = read("continuous_diversity", known.space, S=known.S)
    if len(rows) < 2 or not rows.numeric:
        return float("nan")
    return float(apart(rows, *pairs(np.round(rows.numbers, 4))).sum(axis=1).mean())


#: The seven columns of the paper's tables. Where a person has one counterfactual, diversities are nan ("None" there).
CE_OCL2022 = (
    Measure(
        name="validity",
        function="label_gap",
        needs=("factual", "model"),
        source=f"{_CE_OCL}, evaluation",
        of=lambda e: label_gap(e.factual, e.S, e.model, e.target, space=e.space),
    ),
    CATEGORICAL_PROXIMITY.by(f"{_CE_OCL}, prox_score"),
    Measure(
        name="continuous_proximity",
        function="continuous_proximity(scale='none', over='sum')",
        needs=("factual",),
        source=f"{_CE_OCL}, prox_score",
        of=lambda e: continuous_proximity(e.factual, e.S, space=e.space, scale="none", over="sum"),
    ),
    SPARSITY.by(f"{_CE_OCL}, sparsity_score"),
    CATEGORICAL_DIVERSITY.by(f"{_CE_OCL}, diversity_score"),
    Measure(
        name="continuous_diversity",
        function="continuous_diversity(scale='none', over='sum') of values rounded to 4 decimals",
        source=f"{_CE_OCL}, diversity_score",
        of=_continuous_diversity,
    ),
    COUNT_DIVERSITY.by(f"{_CE_OCL}, spars_divers_score", name="sparsity_based_diversity"),
)


# ==== COPA: Bui, Nguyen & Nguyen (2022), tables 1 and 4. Bounds on the probability of validity belong to the plans ====

_BUI = "Bui et al. 2022"


def _proximity(known: Evidence) -> float:
    factual, points = known.encoded("copa2022", x=known.factual, S=known.S)
    return float(pairwise(factual, points, "l2").mean())


def _kernel_diversity(known: Evidence) -> float:
    (points,) = known.encoded("copa2022", S=known.S)
    similar = 1.0 / (1.0 + pairwise(points, points, "l2"))
    return float(np.linalg.det(similar + COPA_JITTER * np.eye(len(points))))


#: In the classifier's columns: numbers in [0, 1], categories as 0/1 columns. A constant column for the intercept, which
#: the code carries along, changes nothing.
COPA2022 = (
    Measure(
        name="proximity",
        function="k_distance('l2') of encoded columns",
        better="lower",
        needs=("factual", "range"),
        source=f"{_BUI}, (4)",
        of=_proximity,
    ),
    Measure(
        name="diversity",
        function="dpp_determinant('l2', jitter=1e-4) of encoded columns",
        needs=("range",),
        source=f"{_BUI}, (5); utils.py",
        of=_kernel_diversity,
    ),
    Measure(
        name="empirical_validity",
        function="plan_validity",
        needs=("models", "target"),
        source=f"{_BUI}, section 5.2; utils.py, compute_validity",
        of=lambda e: plan_validity(e.S, e.models, e.target, space=e.space),
    ),
    Measure(
        name="current_validity",
        function="plan_validity(models=[model])",
        needs=("model", "target"),
        source=f"{_BUI}, table 4",
        of=lambda e: plan_validity(e.S, [e.model], e.target, space=e.space),
    ),
)


# ==== DiCE: Mothilal, Sharma & Tan (2020), evaluation. A MAD of zero counts as 1.0, as in the released code ===========

_MOTHILAL = "Mothilal et al. 2020"


def _by_mad(known: Evidence) -> dict[str, Any]:
    # get_valid_mads() of dice_ml replaces a MAD of zero by 1.0.
    return {"space": known.space, "scale": "mad", "data": known.data, "zero": 1.0}


#: The evaluation of the paper: seven numbers.
DICE2020 = (
    Measure(
        name="validity",
        function="distinct_validity(n=asked for)",
        needs=("model", "target"),
        source=f"{_MOTHILAL}, validity",
        of=lambda e: distinct_validity(e.S, e.model, e.target, n=e.n, space=e.space),
        when_empty=0.0,
    ),
    Measure(
        name="continuous_proximity",
        function="continuous_proximity(scale='mad', zero=1.0)",
        needs=("factual", "mad"),
        source=f"{_MOTHILAL}, proximity",
        of=lambda e: continuous_proximity(e.factual, e.S, **_by_mad(e)),
    ),
    CATEGORICAL_PROXIMITY.by(f"{_MOTHILAL}, proximity"),
    SPARSITY.by(f"{_MOTHILAL}, sparsity"),
    Measure(
        name="continuous_diversity",
        function="continuous_diversity(scale='mad', zero=1.0)",
        needs=("mad",),
        source=f"{_MOTHILAL}, diversity",
        of=lambda e: continuous_diversity(e.S, **_by_mad(e)),
    ),
    CATEGORICAL_DIVERSITY.by(f"{_MOTHILAL}, diversity"),
    COUNT_DIVERSITY.by(f"{_MOTHILAL}, count diversity"),
)


# ==== Robustness through diversity ====================================================================================

_LEOFANTE_POTYKA = "Leofante & Potyka 2024"


def _validity(known: Evidence) -> float:
    """Return 1 if every counterfactual, also of the moved input, has another label than the factual; else 0."""
    sets = [known.S] if known.others is None or not len(known.others) else [known.S, known.others]
    changed = (label_change(known.factual, one, known.model, space=known.space) for one in sets)
    return float(all(share == 1.0 for share in changed))


def _mean_distance(points: Points, norm: Any) -> float:
    # One counterfactual: undefined in the paper, 0 in the code, which the published means contain.
    return over_pairs(points, norm) if len(points) > 1 else 0.0


def _measures(norm: Any) -> tuple[Measure, ...]:
    def listed(  # noqa: PLR0917 - the columns of the table below
        name: str, function: str, needs: tuple[str, ...], equation: str, of: Callable[[Evidence], float], better: Any
    ) -> Measure:
        source = f"{_LEOFANTE_POTYKA}, {equation}"
        return Measure(name=f"{name}_{norm}", function=function, better=better, needs=needs, source=source, of=of)

    def distance(kind: Any) -> Callable[[Evidence], float]:
        def of(known: Evidence) -> float:
            first, second = known.encoded("leofante_potyka2024", A=known.S, B=known.others)
            return between_sets(pairwise(first, second, norm), kind)

        return of

    def from_factual(known: Evidence) -> float:
        factual, points = known.encoded("leofante_potyka2024", x=known.factual, S=known.S)
        return float(pairwise(factual, points, norm).mean())

    among = ("range",)
    apart = ("others", "range")
    return (
        listed("k_distance", f"k_distance({norm!r})", ("factual", "range"), "(12)", from_factual, "lower"),
        listed(
            "k_diversity", f"k_diversity({norm!r}), 0 for one counterfactual", among, "(13); util.py",
            lambda e: _mean_distance(e.encoded("leofante_potyka2024", S=e.S)[0], norm), "higher",
        ),
        listed("set_distance_sum", f"set_distance('sum', {norm!r})", apart, "(4)", distance("sum"), "lower"),
        listed("set_distance_max", f"set_distance('max', {norm!r})", apart, "(5)", distance("max"), "lower"),
    )  # fmt: skip


#: Both norms of the paper. ``others`` is the set for the moved input.
LEOFANTE_POTYKA2024 = (
    Measure(
        name="validity",
        function="label_change == 1, of S and of others",
        needs=("factual", "model"),
        source=f"{_LEOFANTE_POTYKA}, tables 1 and 2; util.py",
        of=_validity,
    ),
    *_measures("l1"),
    *_measures("l2"),
    RUN_TIME.by(f"{_LEOFANTE_POTYKA}, tables 1 and 2", name="time"),
)


# ==== The metrics of published papers, as they and their code define them =============================================

#: Suites by name. A new one is a file beside these and a line here.
SUITES = {
    "dice2020": DICE2020,
    "carla2021": CARLA2021,
    "ce_ocl2022": CE_OCL2022,
    "copa2022": COPA2022,
    "leofante_potyka2024": LEOFANTE_POTYKA2024,
}


# ==== Suites: the metrics of one paper together, for one person or for many ===========================================

#: What a metric needs that is learned from rows of data.
_LEARNED = {"data", "mad", "range", "classes"}
_CHECKS = {"name": Choice(SUITES, "suite"), "missing": Choice(("raise", "nan"))}


def suites() -> pd.DataFrame:
    """List the metrics of every suite: which function computes it, what it needs, which way is better, its source.

    Examples
    --------
    >>> table = suites()
    >>> table.loc["ce_ocl2022", "continuous_proximity"]["function"]
    "continuous_proximity(scale='none', over='sum')"
    """
    words = {"mad": "data", "range": "data with a space", "classes": "model or labels"}
    places = []
    rows = []
    for name, measures in SUITES.items():
        for measure in measures:
            needs = ", ".join(words.get(need, need) for need in measure.needs)
            places.append((name, measure.name))
            rows.append((measure.function, measure.better, needs, measure.source))
    index = pd.MultiIndex.from_tuples(places, names=["suite", "metric"])
    return pd.DataFrame(rows, columns=["function", "better", "needs", "source"], index=index)


def suite(
    name: str,
    counterfactuals: Any,
    *,
    factual: Any = None,
    space: FeatureSpace | None = None,
    model: Any = None,
    target: Any = None,
    data: Any = None,
    labels: Any = None,
    others: Any = None,
    models: Any = None,
    seconds: Any = None,
    n: int | None = None,
    neighbours: int = 5,
    missing: Literal["raise", "nan"] = "raise",
) -> Any:
    """Compute the metrics of a paper, as it and its code define them, on the results of any library.

    Parameters
    ----------
    name
        "dice2020", "carla2021", "ce_ocl2022", "copa2022" or "leofante_potyka2024"; :func:`suites` lists their metrics.
    counterfactuals
        Of one person: a frame, an array (n, d), a list of rows or a :class:`~ceopt.SolutionSet`. Of several: a
        :class:`~ceopt.Cohort`, or a frame indexed by person and rank, as ``Cohort.to_frame()`` is (whose rank 0
        says that there is no answer).
    factual
        The person's row. By default that of a solution set. Of several people a frame indexed by person.
    space
        What the columns are, for raw rows. Suites whose source measures encoded columns ("carla2021", "copa2022",
        "leofante_potyka2024") then encode: numbers to [0, 1] by the range of ``data``, categories to 0/1 columns.
        Without a space they take the columns as they are, and "dice2020" and "ce_ocl2022" take columns of a number
        dtype as numeric.
    model
        A fitted model or a function from rows to labels: asked anew about every counterfactual.
    target
        The label or labels wanted.
    data
        Rows that scales, percentiles and neighbours are taken from, usually the training data. Those with missing cells
        are left out with a warning, and their labels with them.
    labels
        Of the rows of ``data``, for neighbours; by default what the model says.
    others
        The set of counterfactuals for the same person a little moved. Of several people: as ``counterfactuals``.
    models
        Models trained anew.
    seconds
        Run time; by default that of a solution set. Of several people a mapping by person, or one number for all.
    n
        How many counterfactuals were asked for; by default as many as there are, or as a solution set was asked for.
    neighbours
        How many neighbours "carla2021" takes.
    missing
        "raise" refuses a metric whose input is missing, by name; "nan" leaves it nan.

    Returns
    -------
    Series or DataFrame
        For one person a Series by metric. For several a frame with a row for each and a last row "mean", over those
        for whom a metric has a value; ``attrs["counted"]`` says how many those are. A person without a counterfactual
        has 0 for the validity of DiCE and the success rate of CARLA, else nan. ``attrs`` also has "suite" and "better".
        Keywords that a suite does not use are ignored, so that several can be given the same.

    Raises
    ------
    UnknownNameError
        Another suite, or another ``missing``.
    InvalidTypeError
        Something that a metric needs is missing.
    InvalidValueError
        No counterfactual; people without a factual, or with others of other people; whatever the metrics refuse.

    Examples
    --------
    >>> S, favoured = [[4.0, 0.0], [0.0, 2.0]], lambda rows: rows.sum(axis=1) > 1
    >>> found = suite("ce_ocl2022", S, factual=[1.0, 0.0], model=favoured)
    >>> found.dropna().to_dict()  # doctest: +NORMALIZE_WHITESPACE
    {'validity': 1.0, 'continuous_proximity': -3.0, 'sparsity': 0.25, 'continuous_diversity': 6.0,
     'sparsity_based_diversity': 1.0}
    """
    check_arguments("suite", _CHECKS, locals())
    needs = {need for measure in SUITES[name] for need in measure.needs}
    if data is not None and needs & _LEARNED:
        data, labels = whole_people(f"suite({name!r})", space, data, labels if "classes" in needs else None)
    shared = Evidence(
        S=counterfactuals, factual=factual, space=space, model=model, target=target, data=data, labels=labels,
        others=others, models=models, n=n, neighbours=neighbours,
    )  # fmt: skip
    if not has_people(counterfactuals):
        person = of_one(shared, seconds)
        if not count(person.S) and missing == "raise":
            why = getattr(counterfactuals, "reason", "") or "Leave out people without one, or pass missing='nan'."
            raise InvalidValueError(f"suite({name!r})", "a counterfactual", "there is none", why)
        return _described(pd.Series(_values(name, person, missing), name=name, dtype=np.float64), name)
    labels = []
    rows = []
    for label, person in people(f"suite({name!r})", shared, seconds):
        labels.append(label)
        rows.append(_values(name, person, missing))
    values = pd.DataFrame(rows, dtype=np.float64)
    counted = {str(column): int(count) for column, count in values.notna().sum().items()}
    table = pd.concat([values, values.mean().to_frame().T], ignore_index=True)
    table.index = pd.Index([*labels, MEAN], name="query_id", tupleize_cols=False)
    return _described(table, name, counted=counted)


def _values(name: str, person: Evidence, missing: str) -> dict[str, float]:
    person = replace(person, S=in_column_order_of(person.S, person.factual))
    return {measure.name: _value(name, measure, person, missing) for measure in SUITES[name]}


def _value(name: str, measure: Measure, person: Evidence, missing: str) -> float:
    if not count(person.S):
        return measure.when_empty
    lacking = measure.missing(person)
    if "others" in measure.needs and person.others is not None and not count(person.others):
        return float("nan")
    if lacking is None:
        return float(measure.of(person))
    if missing == "nan":
        return float("nan")
    then = f"Pass {lacking}=, or missing='nan' to leave out what cannot be computed."
    raise InvalidTypeError(f"suite({name!r})", f"{lacking} for {measure.name}", f"{lacking} is None", then)


def _described(result: Any, name: str, **more: Any) -> Any:
    result.attrs = {"suite": name, "better": {m.name: m.better for m in SUITES[name]}, **more}
    return result

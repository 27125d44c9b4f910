"""Suites: the metrics of one paper together, for one person or for many."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.people import MEAN, count, has_people, of_one, people
from ceopt.metrics.predictions import alike
from ceopt.metrics.published import SUITES
from ceopt.metrics.published.measure import Evidence, Measure
from ceopt.metrics.rows import whole_people
from ceopt.solvers.checks import Choice, check_arguments
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["suite", "suites"]

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
    person = replace(person, S=alike(person.S, person.factual))
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
    raise InvalidTypeError(
        f"suite({name!r})", f"{lacking} for {measure.name}", f"{lacking} is None",
        f"Pass {lacking}=, or missing='nan' to leave out what cannot be computed.",
    )  # fmt: skip


def _described(result: Any, name: str, **more: Any) -> Any:
    result.attrs = {"suite": name, "better": {m.name: m.better for m in SUITES[name]}, **more}
    return result

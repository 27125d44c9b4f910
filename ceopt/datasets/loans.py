"""A loan book with everything known: the causal model, the rule of the decision, what may move."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ceopt.datasets.bunch import Bunch, StructuralEquation
from ceopt.formulations.space import FeatureSpace
from ceopt.formulations.space.feature import Kind
from ceopt.formulations.space.infer import infer_features
from ceopt.solvers.checks import check_arguments, whole_from

__all__ = ["loans"]

_EDUCATION = ("primary", "secondary", "bachelor", "master")
_EMPLOYMENT = {"permanent": 0.4, "public": 0.6, "self-employed": -0.2, "temporary": -0.5}  # points in the score
_SEXES = ("female", "male")
_REGIONS = ("centre", "east", "north", "south", "west")

_EQUATIONS = {
    "years_employed": StructuralEquation(parents={"age": 0.3}, intercept=-3.8, noise_scale=1.0),
    "income": StructuralEquation(
        parents={"age": 120.0, "education": 8_500.0, "years_employed": 600.0}, intercept=11_000.0, noise_scale=4_500.0
    ),
    "savings": StructuralEquation(parents={"age": 150.0, "income": 0.4}, intercept=4_000.0, noise_scale=3_500.0),
    "loan_amount": StructuralEquation(parents={"income": 0.25}, intercept=7_000.0, noise_scale=3_000.0),
    "duration": StructuralEquation(parents={"loan_amount": 0.0012}, intercept=18.0, noise_scale=5.0),
}
_CHECKS = {"n": whole_from(1), "random_state": whole_from(0)}
_ROUNDED_TO = {"years_employed": 0.1, "income": 100, "savings": 100, "loan_amount": 100, "duration": 1}


def loans(n: int = 2000, random_state: int = 0) -> Bunch:
    r"""Draw loan applications from a structural causal model, decided by a noisy score that rejects about 30 %.

    Without parents: ``sex`` (two, fair), ``region`` (five, uniform), ``age`` (whole years, :math:`21 + 47 B` rounded
    down with :math:`B \sim` Beta(1.6, 2.4)), ``education`` (rank 0 to 3 with probability 0.15, 0.45, 0.28, 0.12),
    ``employment`` (permanent 0.5, public 0.2, self-employed 0.12, temporary 0.18), ``has_guarantor`` (true with
    probability 0.2) and ``open_loans`` (0 to 4, Binomial(4, 0.25)). All others have an equation,

    .. math::
        \text{years\_employed} &= -3.8 + 0.3\,\text{age} + 1.0\,U_1 \\
        \text{income} &= 11000 + 120\,\text{age} + 8500\,\text{education} + 600\,\text{years\_employed} + 4500\,U_2 \\
        \text{savings} &= 4000 + 150\,\text{age} + 0.4\,\text{income} + 3500\,U_3 \\
        \text{loan\_amount} &= 7000 + 0.25\,\text{income} + 3000\,U_4 \\
        \text{duration} &= 18 + 0.0012\,\text{loan\_amount} + 5\,U_5

    with independent noise, triangular on :math:`[-\sqrt 6, \sqrt 6]` (mean 0, standard deviation 1, bounded, so that
    nothing needs to be cut off at zero). Each is rounded as soon as it is drawn, and its children see the rounded
    value: years to 0.1, the three amounts to 100 dollars, the duration to whole months. Rounding is thereby part of the
    noise: every row fulfils the equations exactly with a noise that is off the drawn one by at most half a unit.

    The decision is ``"good"`` where

    .. math::
        0.5 + \frac{0.6\,\text{income} + 0.5\,\text{savings} - 1.6\,\text{loan\_amount}}{10000}
        + 0.04\,\text{years\_employed} - 0.02\,\text{duration} - 0.5\,\text{open\_loans}
        + 0.9\,\text{has\_guarantor} + e(\text{employment}) + 0.4\,V > 0,

    :math:`e` = 0.4, 0.6, -0.2, -0.5 for permanent, public, self-employed and temporary, V standard logistic. Neither
    sex nor region nor education nor age enters it directly.

    Parameters
    ----------
    n
        Applications, at least 1.
    random_state
        Seed; the same seed gives the same rows, and a smaller ``n`` other rows than the first of a larger one.

    Returns
    -------
    Bunch
        ``data`` (n, 12), ``target`` ("good", "bad"; named "decision"), ``frame`` (both), ``space`` (sex and region
        fixed; age, education and years employed only up; income, savings and loan in steps of 100 dollars),
        ``equations`` and ``graph`` (of the five columns that have parents).

    Raises
    ------
    InvalidTypeError, InvalidValueError
        ``n`` is no whole number or less than 1, or the seed is none.

    Examples
    --------
    >>> book = loans(n=500)
    >>> book.data.shape, book.space["education"].levels
    ((500, 12), ('primary', 'secondary', 'bachelor', 'master'))
    """
    check_arguments("loans", _CHECKS, locals())
    rng = np.random.default_rng(random_state)
    columns: dict[str, Any] = {
        "sex": np.array(_SEXES)[rng.integers(0, 2, n)],
        "region": np.array(_REGIONS)[rng.integers(0, len(_REGIONS), n)],
        "age": np.floor(21 + 47 * rng.beta(1.6, 2.4, n)),
        "education": rng.choice(4, n, p=(0.15, 0.45, 0.28, 0.12)).astype(np.float64),
        "employment": rng.choice(list(_EMPLOYMENT), n, p=(0.5, 0.2, 0.12, 0.18)),
    }
    for name, equation in _EQUATIONS.items():
        drawn = equation.intercept + equation.noise_scale * rng.triangular(-math.sqrt(6), 0.0, math.sqrt(6), n)
        for parent, coefficient in equation.parents.items():
            drawn = drawn + coefficient * columns[parent]
        unit = _ROUNDED_TO[name]
        columns[name] = np.round(drawn, 1) if unit == 0.1 else np.round(drawn / unit) * unit
    columns["open_loans"] = rng.binomial(4, 0.25, n)
    columns["has_guarantor"] = rng.random(n) < 0.2
    good = _score(columns) + 0.4 * rng.logistic(size=n) > 0
    columns["education"] = pd.Categorical.from_codes(
        columns["education"].astype(np.int64), dtype=pd.CategoricalDtype(list(_EDUCATION), ordered=True)
    )
    columns["employment"] = pd.Categorical(columns["employment"].tolist(), categories=list(_EMPLOYMENT))
    for name in ("sex", "region"):
        columns[name] = columns[name].tolist()
    for name in ("age", "loan_amount", "duration", "open_loans"):
        columns[name] = columns[name].astype(np.int64)
    data = pd.DataFrame(columns)
    return Bunch(
        name="loans",
        data=data,
        target=pd.Series(np.where(good, "good", "bad").tolist(), name="decision"),
        space=_space(data),
        favourable="good",
        description="Loan applications drawn from a known causal model, which help(ceopt.datasets.loans) states.",
        source="ceopt.datasets.loans",
        licence="that of ceopt",
        equations=dict(_EQUATIONS),
        graph={name: list(equation.parents) for name, equation in _EQUATIONS.items()},
    )


def _score(columns: dict[str, Any]) -> Any:
    points = np.array([_EMPLOYMENT[str(kind)] for kind in columns["employment"]])
    money = 0.6 * columns["income"] + 0.5 * columns["savings"] - 1.6 * columns["loan_amount"]
    history = 0.04 * columns["years_employed"] - 0.02 * columns["duration"] - 0.5 * columns["open_loans"]
    return 0.5 + money / 10_000 + history + 0.9 * columns["has_guarantor"] + points


def _space(data: pd.DataFrame) -> FeatureSpace:
    """Describe the columns; levels do not depend on what was drawn, inferred bounds and scales do."""
    levels = {"sex": _SEXES, "region": _REGIONS, "employment": tuple(_EMPLOYMENT)}
    kinds: dict[str, Kind] = {"sex": "binary", "region": "categorical", "employment": "categorical"}
    drawn = infer_features(data, ordinal={"education": _EDUCATION}, categorical=list(levels), steps=False)
    space = FeatureSpace(
        replace(column, kind=kinds[column.name], levels=levels[column.name], guess="")
        if column.name in levels
        else column
        for column in drawn
    )
    return (
        space.update("sex", mutable=False)
        .update("region", mutable=False)
        .update("age", direction="increasing", lower=18, upper=100, unit="years")
        .update("education", direction="increasing")
        .update("years_employed", direction="increasing", lower=0, upper=60, unit="years")
        .update("income", lower=0, step=100, unit="dollars a year")
        .update("savings", lower=0, step=100, unit="dollars")
        .update("loan_amount", lower=500, step=100, unit="dollars")
        .update("duration", lower=6, upper=72, unit="months")
        .update("open_loans", lower=0, unit="loans")
    )

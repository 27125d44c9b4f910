"""Hulls of very many points: with their weights priced, answers cost what they cost with all of them in the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st

import ceopt
from ceopt import Hull
from ceopt.formulations.constraints import hull_points
from ceopt.formulations.predictors import Affine

#: So that one column alone would be the cheapest way.
PRICES = ceopt.L1(scale=dict(zip("abcdef", (20.0, 1.0, 1.0, 1.0, 1.0, 1.0), strict=True)))
SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("income", kind="continuous", lower=0, upper=9),
        ceopt.Feature("years", kind="integer", lower=0, upper=9, codes=(-1,)),
        ceopt.Feature("size", kind="ordinal", levels=("S", "M", "L")),
        ceopt.Feature("job", kind="categorical", levels=("a", "b", "c")),
        ceopt.Feature("home", kind="binary", levels=("rent", "own")),
    ]
)


def rows_of(rng: np.random.Generator, count: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "income": np.round(rng.uniform(0, 9, count), 1),
            "years": rng.integers(0, 10, count),
            "size": rng.choice(["S", "M", "L"], count),
            "job": rng.choice(["a", "b", "c"], count),
            "home": rng.choice(["rent", "own"], count),
        }
    )


def costs(asked: Any, *, priced: bool) -> list[tuple[str, float | None]]:
    """Status and cost of each person."""
    with pytest.MonkeyPatch.context() as patch:
        if priced:
            patch.setattr(hull_points, "MANY", 5)
            patch.setattr(hull_points, "_FIRST", 3)
        results = asked()
    assert all(one[0].verified for one in results if len(one))
    return [(str(one.status), one[0].cost if len(one) else None) for one in results]


@draws(60)
@given(
    seed=st.integers(0, 10**6),
    options=st.sampled_from(
        [{}, {}, {"radius": 0.2}, {"radius": 0.2, "norm": "linf"}, {"columns": ["income", "years"]}, {"penalty": 0.5}]
    ),
    rules=st.sampled_from([[], [ceopt.MaxChanges(2)], [ceopt.Linear({"income": 1.0, "years": 1.0}, "<=", 9.0)]]),
    n=st.sampled_from([1, 1, 2]),
)
def test_answers_cost_what_they_cost_with_all_points(seed: int, options: Any, rules: Any, n: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rows_of(rng, int(rng.integers(8, 60)))
    weights = rng.choice([-1.0, 0.5, 1.0, 2.0], 2)
    people = rows_of(rng, 2)
    if not any(isinstance(rule, ceopt.Linear) for rule in rules):  # which refuses codes
        people.loc[0, "years"] = -1
    space = SPACE.update("years", codes=()) if people.loc[0, "years"] >= 0 else SPACE
    level = float(np.quantile(rows[["income", "years"]] @ weights, 0.8))
    model = Affine(weights, -level, labels=("no", "yes"), columns=["income", "years"])

    def asked() -> Any:
        rule = [Hull(rows, **options), *rules]
        return [
            ceopt.explain(
                model, people.iloc[[k]], space, target="yes", constraints=rule, cost="l1", n=n, why=False, data=rows
            )
            for k in range(2)
        ]

    assert costs(asked, priced=True) == [
        (status, None if cost is None else pytest.approx(cost, rel=1e-5, abs=1e-6))
        for status, cost in costs(asked, priced=False)
    ]


def test_the_weights_of_very_many_points_are_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """In six numbers no point is a mixture of others that is cheap to tell; no program has all weights."""
    names = list("abcdef")
    kinds = ["continuous"] * 4 + ["integer"] * 2
    space = ceopt.FeatureSpace(
        [ceopt.Feature(name, kind=kind, lower=0, upper=9) for name, kind in zip(names, kinds, strict=True)]
    )
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.integers(0, 4, (1200, 6)) + rng.integers(0, 7, (1200, 1)), columns=names)
    model = Affine([1.0] * 6, -25.0, labels=("no", "yes"), columns=names)

    def asked() -> Any:
        return ceopt.explain(
            model, dict.fromkeys(names, 3), space, target="yes", constraints=[Hull(rows)], why=False, cost=PRICES
        )

    found = asked()
    monkeypatch.setattr(hull_points, "MANY", 10_000)
    other = asked()
    assert found.status == other.status == "optimal"
    assert found[0].cost == pytest.approx(other[0].cost, rel=1e-6)
    assert found.solver.startswith("highs")
    assert found.size["variables"] < 500 < other.size["variables"]

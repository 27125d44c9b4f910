"""Rules about people with missing cells and codes, through ``explain`` and cohorts, against enumeration."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ceopt
from ceopt import (
    AllowedRows,
    AllowedTransitions,
    AllowedValues,
    Causal,
    Hull,
    IfThen,
    Linear,
    LinearEquation,
    Mahalanobis,
    MaxChanges,
    Percentile,
    Product,
    RobustToShift,
    RobustValidity,
)
from ceopt.cli.inputs import read_rules
from ceopt.solvers.errors import InvalidValueError

SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("income", kind="continuous", lower=0, upper=9, step=1.0, missing=True, fill=3.0),
        ceopt.Feature("score", kind="integer", lower=0, upper=5, codes={-9: "no record"}),
        ceopt.Feature("home", kind="categorical", levels=("rent", "own", "free"), missing=True),
    ]
)
_DRAW = np.random.default_rng(3)
DATA = pd.DataFrame(
    {
        "income": np.where(_DRAW.random(300) < 0.2, np.nan, _DRAW.integers(0, 10, 300)),
        "score": np.where(_DRAW.random(300) < 0.15, -9, _DRAW.integers(0, 6, 300)),
        "home": pd.Categorical(_DRAW.choice(["rent", "own", "free", None], 300), categories=["rent", "own", "free"]),
    }
)
_POINTS = DATA["income"].fillna(2.0) + 2.0 * DATA["score"].clip(lower=1) + 3.0 * (DATA["home"] == "own")
LABELS = (_POINTS > 12.0).to_numpy().astype(int)


@pytest.fixture(scope="module")
def boosted() -> Any:
    model = HistGradientBoostingClassifier(max_iter=12, max_depth=3, categorical_features="from_dtype", random_state=0)
    return model.fit(DATA, LABELS)


@pytest.fixture(scope="module")
def people(boosted: Any) -> pd.DataFrame:
    """Refused people: of each kind of gap some, and some without."""
    refused = DATA[boosted.predict(DATA) == 0]
    kinds = [refused["income"].isna(), refused["score"] == -9, refused["home"].isna()]
    none = ~(kinds[0] | kinds[1] | kinds[2])
    return pd.concat([refused[kind].head(2) for kind in (*kinds, none)]).drop_duplicates()


def values(row: pd.Series[Any]) -> tuple[Any, ...]:
    """Return a row as plain values, None where a cell is missing."""
    return tuple(None if pd.isna(value) else value for value in row)


def reached(row: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return every row that a person may become."""
    columns: list[list[Any]] = [[float(k) for k in range(10)], list(range(6)), ["rent", "own", "free"]]
    for some, own in zip(columns, row, strict=True):
        if own not in some:
            some.append(own)
    return list(itertools.product(*columns))


def price(before: tuple[Any, ...], after: tuple[Any, ...]) -> float:
    total = 0.0
    for feature, one, other in zip(SPACE, before, after, strict=True):
        if one == other:
            continue
        if one is None or one == -9:
            total += feature.fill
        else:
            total += 1.0 if feature.is_finite else abs(other - one)
    return total


def accepted(model: Any, rows: list[tuple[Any, ...]]) -> np.ndarray[Any, Any]:
    frame = pd.DataFrame(rows, columns=list(SPACE.names))
    frame["income"] = frame["income"].astype(float)
    frame["home"] = pd.Categorical(frame["home"], categories=["rent", "own", "free"])
    return np.asarray(model.predict(frame) == 1)


TABLE = pd.DataFrame({"income": [np.nan, 4.0, 8.0, np.nan], "home": ["own", "own", "rent", None]})
RULES: list[tuple[Any, Callable[[tuple[Any, ...], tuple[Any, ...]], bool]]] = [
    (MaxChanges(1), lambda own, row: sum(one != other for one, other in zip(own, row, strict=True)) <= 1),
    (
        AllowedValues({"income": [5.0, 7.0], "score": [4]}),
        lambda _, row: row[0] in {None, 5.0, 7.0} and row[1] in {-9, 4},
    ),
    (IfThen(("income", "changed"), ("score", ">=", 3)), lambda own, row: own[0] == row[0] or row[1] >= 3),
    (IfThen(("home", "==", None), ("income", "<=", 3)), lambda _, row: row[2] is not None or (row[0] or 9) <= 3),
    (
        AllowedRows(["income", "home"], TABLE),
        lambda _, row: (row[0], row[2]) in {(None, "own"), (4.0, "own"), (8.0, "rent"), (None, None)},
    ),
    (
        AllowedTransitions("home", {None: ["own"], "rent": ["free"]}),
        lambda own, row: own[2] == row[2] or (own[2], row[2]) in {(None, "own"), ("rent", "free")},
    ),
]


@pytest.mark.parametrize("place", range(len(RULES)), ids=lambda place: type(RULES[place][0]).__name__)
def test_answers_under_a_rule_are_the_cheapest(place: int, boosted: Any, people: pd.DataFrame) -> None:
    rule, keeps = RULES[place]
    asked = ceopt.Recourse(boosted, SPACE, target=1, cost=ceopt.L1(scale="none"), constraints=[rule])
    cohort = asked.fit(DATA).explain(people)
    for result, (_, row) in zip(cohort, people.iterrows(), strict=True):
        own = values(row)
        every = reached(own)
        costs = [
            price(own, other)
            for other, is_met in zip(every, accepted(boosted, every), strict=True)
            if is_met and keeps(own, other)
        ]
        if not costs:
            assert result.status is ceopt.Status.INFEASIBLE, own
            continue
        assert result.status is ceopt.Status.OPTIMAL, (own, result.reason)
        assert result[0].cost == pytest.approx(min(costs)), own
        assert keeps(own, values(result[0].values)), own


def test_a_person_without_an_amount_is_one_row_that_is_refused(boosted: Any, people: pd.DataFrame) -> None:
    rule = Linear({"income": 1.0}, "<=", 8.0)
    cohort = ceopt.Recourse(boosted, SPACE, target=1, constraints=[rule]).fit(DATA).explain(people)
    for result, (_, row) in zip(cohort, people.iterrows(), strict=True):
        if pd.isna(row["income"]):
            assert result.status is ceopt.Status.ERROR
            assert "column 'income' may be missing for this person" in result.reason
        else:
            assert result.status in {ceopt.Status.OPTIMAL, ceopt.Status.INFEASIBLE}, result.reason
    missing = people[people["income"].isna()].iloc[[0]]
    with pytest.raises(InvalidValueError, match="Linear needs columns that hold amounts, but column 'income' may be"):
        ceopt.explain(boosted, missing, SPACE, target=1, constraints=[rule])


@pytest.mark.parametrize(
    "asked",
    [
        {"constraints": [Linear({"income": 1.0}, "<=", 8.0)]},
        {"constraints": [Product("income", ["score", "score"])]},
        {"constraints": [Causal({"score": LinearEquation({"income": 0.1})})]},
        {"cost": Mahalanobis()},
        {"cost": 0.5 * ceopt.L1() + Percentile("max")},
    ],
    ids=["linear", "product", "causal", "mahalanobis", "percentile"],
)
@pytest.mark.parametrize("proof", [True, False])
@pytest.mark.parametrize("kind", [HistGradientBoostingClassifier, LogisticRegression])
def test_who_lacks_an_amount_is_refused_with_a_program_and_without(
    people: pd.DataFrame, asked: dict[str, Any], kind: type, *, proof: bool
) -> None:
    """Without a program nothing was stated that refuses: some were answered with ``proof=False``."""
    columns = ["income", "score"]
    space = ceopt.FeatureSpace([SPACE[name] for name in columns])
    model = make_pipeline(SimpleImputer(), kind()).fit(DATA[columns], LABELS)
    missing = people.loc[people["income"].isna() & (people["score"] != -9), columns].head(3)
    missing = missing[model.predict(missing) == 0]
    assert len(missing) > 0
    recourse = ceopt.Recourse(model, space, target=1, proof=proof, **asked).fit(DATA[columns].dropna())
    for result in recourse.explain(missing):
        assert (result.status, len(result)) == (ceopt.Status.ERROR, 0)
        assert "needs columns that hold amounts, but column 'income' may be missing for this person" in result.reason


def test_a_hull_of_amounts_lets_missing_cells_be(boosted: Any, people: pd.DataFrame) -> None:
    with pytest.warns(UserWarning, match="leaves out 1.. of 300 rows of data, in which cells of 'income', 'home' are"):
        asked = ceopt.Recourse(boosted, SPACE, target=1, constraints=[Hull()]).fit(DATA)
    cohort = asked.explain(people)
    assert {result.status for result in cohort} <= {ceopt.Status.OPTIMAL, ceopt.Status.INFEASIBLE}
    assert sum(result.status is ceopt.Status.OPTIMAL for result in cohort) >= len(people) // 2
    favoured = DATA[boosted.predict(DATA) == 1]
    whole = favoured[favoured.notna().all(axis=1) & (favoured["score"] != -9)]
    rule = Hull(whole)
    for result in cohort:
        for answer in result:
            point = SPACE.row(answer.values)
            assert rule.violation(SPACE, None, point) == 0.0
            assert not math.isnan(answer.cost)


def test_rules_in_conflict_are_named_with_their_gaps(boosted: Any, people: pd.DataFrame) -> None:
    missing = people[people["income"].isna()].iloc[[0]]
    rules = [
        IfThen(("income", "==", None), ("score", "<=", -1), name="no gap"),
        AllowedValues({"income": [9.0]}, name="nine"),
        IfThen(("income", "==", 9.0), ("score", "<=", -1), name="no nine"),
    ]
    result = ceopt.explain(boosted, missing, SPACE, target=1, constraints=rules)
    assert result.status is ceopt.Status.INFEASIBLE
    named = {entry[0] for entry in result.conflict}
    assert named == {"nine", "no nine"}  # to stay missing is not enough for the model
    assert rules[0].sentence() == "if income == missing, then score <= -1"


def test_rules_of_a_file_may_name_missing_cells(tmp_path: Path) -> None:
    document = [
        {"rule": "IfThen", "condition": ["income", "==", None], "conclusion": ["score", "<=", 3]},
        {"rule": "AllowedTransitions", "column": "home", "transitions": {"null": ["own"], "rent": [None]}},
        {"rule": "AllowedRows", "columns": ["income"], "frame": [{"income": None}, {"income": 4}]},
    ]
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    first, second, third = read_rules(path, SPACE)
    home = SPACE.row({"income": None, "score": 5, "home": None})
    assert first.violation(SPACE, home, home) == 1.0
    assert second.violation(SPACE, home, home | {"home": 1.0}) == 0.0
    assert second.violation(SPACE, home, home | {"home": 0.0}) == 1.0
    assert third.violation(SPACE, home, home) == 0.0
    assert third.violation(SPACE, home, home | {"income": 5.0}) == 1.0


def by_moments(model: Any) -> Any:
    mean = np.append(model[-1].coef_[0], model[-1].intercept_[0])
    return RobustValidity(mean, 0.01 * np.eye(3), 0.05, 0.8, model=model)


def by_box(model: Any) -> Any:
    return RobustToShift(0.1, target=1, model=model)


@pytest.mark.parametrize(
    ("estimator", "ruled"),
    [
        (LogisticRegression(), by_moments),
        (LogisticRegression(), by_box),
        (MLPClassifier((3,), solver="lbfgs", alpha=0.1, random_state=0), by_box),
    ],
)
def test_what_a_pipeline_makes_of_a_gap_is_certain_enough(estimator: Any, ruled: Callable[[Any], Any]) -> None:
    """They are about parameters: a cell that an imputer fills counts as what it is filled with."""
    columns = ["income", "score"]
    model = make_pipeline(SimpleImputer(), StandardScaler(), estimator).fit(DATA[columns], LABELS)
    space = ceopt.FeatureSpace([SPACE["income"], SPACE["score"]])
    rule = ruled(model)
    is_asked = (model.predict(DATA[columns]) == 0) & (DATA["income"].isna() | (DATA["score"] == -9))
    people = DATA[columns][is_asked].head(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        asked = ceopt.Recourse(model, space, target=1, cost=ceopt.L1(scale="none"), constraints=[rule])
        cohort = asked.fit(DATA[columns]).explain(people)
    for result, (_, row) in zip(cohort, people.iterrows(), strict=True):
        own = values(row)
        pairs = [pair[:2] for pair in reached((*own, "own")) if pair[2] == "own"]
        frame = pd.DataFrame(pairs, columns=columns).astype(float)
        met = model.predict(frame) == 1
        costs = []
        for pair, is_met in zip(pairs, met, strict=True):
            point = space.row(dict(zip(columns, pair, strict=True)))
            if is_met and rule.violation(space, None, point) == 0.0:
                costs.append(price((*own, "own"), (*pair, "own")))
        assert result[0].cost == pytest.approx(min(costs)), own

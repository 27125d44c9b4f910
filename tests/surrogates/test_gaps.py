"""Black boxes asked about people with missing cells and codes: such cells stay, and the model is asked with them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import ceopt
from ceopt import Feature, FeatureSpace, Recourse, explain
from ceopt.surrogates import (
    BlackBox,
    BoundarySampler,
    ClimeSurrogate,
    LimelsSurrogate,
    LimeSurrogate,
    LocalSurrogateRecourse,
    MinimaxProbabilityMachine,
    ScaledColumns,
    SvmSurrogate,
)

GRADES = ("?", "low", "middle", "high")
JOBS = ("cook", "nurse", "?")
SPACE = FeatureSpace(
    [
        Feature("income", kind="continuous", lower=0, upper=80, missing="may_vanish"),
        Feature("debt", kind="integer", lower=0, upper=25, codes=[-9, 7], codes_in_reach=True, missing=True),
        Feature("grade", kind="ordinal", levels=GRADES, codes=["?"], codes_in_reach=True, missing=True),
        Feature("job", kind="categorical", levels=JOBS, codes=["?"], dtype="category", missing=True),
    ]
)


def _people(count: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": rng.normal(30.0, 8.0, count).clip(0.0, 80.0),
            "debt": rng.choice([*range(25), -9], count).astype(float),
            "grade": rng.choice(GRADES, count).astype(object),
            "job": pd.Categorical(rng.choice(JOBS, count), categories=JOBS),
        }
    )
    for name in frame:
        frame.loc[rng.random(count) < 0.1, name] = np.nan
    return frame


def _numbers(frame: pd.DataFrame) -> np.ndarray:
    """Return what the model sees: the order of grades as a rank, levels as numbers, gaps as NaN."""
    table = {"grade": dict(zip(GRADES, (np.nan, 0, 1, 2), strict=True)), "job": dict(zip(JOBS, range(3), strict=True))}
    columns = {}
    for name in frame:
        columns[name] = frame[name].astype(object).map(table[name]) if name in table else frame[name]
    return pd.DataFrame(columns)[list(SPACE.names)].to_numpy(dtype=float)


PEOPLE = _people(300)
_MERIT = np.nan_to_num(PEOPLE["income"], nan=25.0) - PEOPLE["debt"].clip(lower=3.0).fillna(8.0)
LABELS = np.where(_MERIT + 5.0 * (PEOPLE["grade"] == "high") > 20.0, "good", "bad")
MODEL = HistGradientBoostingClassifier(max_iter=25, min_samples_leaf=8, random_state=0).fit(_numbers(PEOPLE), LABELS)


def predict(rows: pd.DataFrame) -> Any:
    return MODEL.predict(_numbers(rows))


def _are_labels(frame: pd.DataFrame) -> pd.DataFrame:
    is_code = pd.DataFrame({name: frame[name].isin(SPACE[name].codes) for name in frame})
    return frame.isna() | is_code


#: Rejected people, of whom each lacks a cell or stands on a code.
ASKED = PEOPLE[(predict(PEOPLE) == "bad") & _are_labels(PEOPLE).any(axis=1)]


def kept(person: pd.DataFrame, answer: pd.DataFrame) -> bool:
    """Whether an answer has the person's missing cells and codes as they are, and no others."""
    before, after = _are_labels(person), _are_labels(answer)
    if (before.to_numpy() != after.to_numpy()).any():
        return False
    for name in person.columns[before.iloc[0]]:
        one, other = person[name].iloc[0], answer[name].iloc[0]
        if not (pd.isna(one) and pd.isna(other)) and one != other:
            return False
    return True


@pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")
@pytest.mark.parametrize("search", ["projection", "robust", "actionable", "roar", "wachter"])
def test_answers_keep_missing_cells_and_codes(search):
    surrogate = LocalSurrogateRecourse(BoundarySampler(n_samples=300), search=search, max_rounds=5)
    answered = 0
    for place in range(0, len(ASKED), len(ASKED) // 4):
        person = ASKED.iloc[[place]]
        found = explain(predict, person, SPACE, target="good", data=PEOPLE, surrogate=surrogate, cost="l1")
        for answer in found:
            answered += 1
            assert answer.verified
            assert predict(answer.frame).tolist() == ["good"]
            assert kept(person, answer.frame)
        for name in person.columns[person.isna().iloc[0]]:
            assert found.removed[name] == "stays missing"
        assert found.space == SPACE
    assert answered >= 3


@pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")
@pytest.mark.parametrize(
    "fitted",
    [
        MinimaxProbabilityMachine("bures", (0.5, 0.0)),
        LimeSurrogate(n_samples=300),
        ClimeSurrogate(n_samples=300),
        LimelsSurrogate(),
        SvmSurrogate(),
    ],
    ids=lambda fitted: type(fitted).__name__,
)
def test_every_surrogate_is_fitted_about_them(fitted):
    surrogate = LocalSurrogateRecourse(BoundarySampler(n_samples=300), fitted, max_rounds=3)
    whole = PEOPLE[~PEOPLE.isna().any(axis=1)]
    person = ASKED[ASKED["income"].isna()].iloc[[0]]
    found = surrogate.explain(predict, person, SPACE, target="good", data=whole)

    assert found.status.value == "feasible"
    assert kept(person, found[0].frame)
    assert found.surrogate is None or found.surrogate.coef["income"] == 0.0


def test_the_model_is_asked_about_rows_with_the_gap_alone():
    seen = []

    def noted(rows: pd.DataFrame) -> Any:
        seen.append(rows.copy())
        return predict(rows)

    whole = PEOPLE[~PEOPLE.isna().any(axis=1)]
    person = {"income": np.nan, "debt": 12, "grade": "low", "job": "?"}
    sampler = BoundarySampler(n_samples=100)
    rows = sampler.decided(noted, whole, target="good", space=SPACE)
    seen.clear()
    sample = sampler.near(rows, person)

    asked = pd.concat([*seen, sample.points])
    assert asked["income"].isna().all()
    assert (asked["job"] == "?").all()
    assert 0 < sample.favourable.sum() < 100
    assert (sample.encoded[:, [0, 3, 4, 5]] == 0.0).all()
    assert np.isfinite(sample.encoded).all()


def test_a_draw_becomes_no_code():
    """Amounts next to the code 7 are taken in its place, and the next grade and job."""
    whole = PEOPLE[~PEOPLE.isna().any(axis=1)]
    columns = ScaledColumns.of(SPACE, whole).about({"income": 20.0, "debt": 3, "grade": "low", "job": "cook"})
    points = columns.encode(whole) * 0.0 + columns.encoded([[20.0, 7.0, 0.0, 2.0]])
    for rng in (None, np.random.default_rng(0)):
        drawn = columns.decode(points, rng)
        assert set(drawn["debt"]) <= {6, 8}
        assert set(drawn["grade"]) == {"low"}
        assert set(drawn["job"]) <= {"cook", "nurse"}
    coded = pd.DataFrame({"income": [20.0], "debt": [-9], "grade": ["?"], "job": pd.Categorical(["?"], JOBS)})
    assert columns.reachable(SPACE.coordinates(coded)).tolist() == [[20.0, 0.0, 1.0, 0.0]]


def test_a_row_with_a_gap_is_known_again():
    box = BlackBox(predict, "good", columns=list(PEOPLE), dtypes=PEOPLE.dtypes)
    gaps = PEOPLE[PEOPLE.isna().any(axis=1)]
    good = gaps[box.favourable(gaps)].iloc[[0]]
    before = box.n_queries

    assert box.label_of(good) == "good"
    assert box.n_queries == before


def test_a_cohort_asks_about_the_data_once():
    surrogate = LocalSurrogateRecourse(BoundarySampler(n_samples=200), max_rounds=3)
    recourse = Recourse(predict, SPACE, target="good", surrogate=surrogate, time_limit_s=30.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ceopt.SpaceWarning)
        people = ASKED.iloc[:3]
        cohort = recourse.fit(PEOPLE).explain(people)

    assert all(result.status.value in {"feasible", "rejected"} for result in cohort)
    for place, result in enumerate(cohort):
        assert all(kept(people.iloc[[place]], answer.frame) for answer in result)


def test_another_gap_than_the_persons_is_refused_by_name():
    whole = PEOPLE[~PEOPLE.isna().any(axis=1)]
    columns = ScaledColumns.of(SPACE, whole).about({"income": np.nan, "debt": 3, "grade": "low", "job": "cook"})
    row = pd.DataFrame({"income": [np.nan], "debt": [np.nan], "grade": ["low"], "job": pd.Categorical(["cook"], JOBS)})

    assert columns.encode(row.assign(debt=[4.0]))[0, 0] == 0.0
    with pytest.raises(ceopt.CeoptError, match="surrogate needs a value in every cell, but column 'debt' is missing"):
        columns.encode(row)


# ---- what stands in the way is said ----------------------------------------------------------------------------------
NUMBERS = FeatureSpace(
    [
        Feature("income", kind="integer", lower=0, upper=80, missing=True),
        Feature("debt", kind="integer", lower=0, upper=25, codes=[-9]),
    ]
)


def _amounts() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {"income": rng.integers(0, 81, 80).astype(float), "debt": rng.integers(0, 26, 80).astype(float)}
    )


@pytest.mark.parametrize(
    ("cell", "upper", "but", "then"),
    [
        ("income", 80, "with 'income' missing, as the row has it", "Ask about the row with a value there."),
        ("debt", 80, "with 'debt' on a code, as the row has it", "Ask about the row with a value there."),
        ("income", 10, "and with 'income' missing, as the row has it", "with a value there, or widen the bounds."),
    ],
)
def test_a_cell_that_stays_is_named_where_it_decides(cell, upper, but, then):
    """It said "Widen the bounds, or make the steps finer", which changed nothing."""
    row = {"income": 10.0, "debt": 5.0} | {cell: np.nan if cell == "income" else -9.0}
    space = NUMBERS.update("debt", upper=25 if upper == 80 else upper)

    def decide(rows: pd.DataFrame) -> Any:
        return ((rows[cell].fillna(-9.0) >= 0.0) & (rows["income"].fillna(80.0) > 40.0)).astype(int)

    data = _amounts()
    if cell == "debt":
        row["income"] = 50.0
    result = explain(decide, row, space, target=1, data=data, surrogate=LocalSurrogateRecourse())

    assert result.status == "rejected"
    assert but in result.reason
    assert then in result.reason


def test_a_function_that_takes_no_missing_cell_is_told_what_to_do():
    """It said "Try it on X.head()", of which no cell is missing."""
    data = _amounts()

    def decide(rows: pd.DataFrame) -> Any:
        if rows.isna().any(axis=None):
            raise ValueError("Input X contains NaN.\nMore about it.")
        return (rows["income"] > 40.0).astype(int)

    wanted = (
        r"predict raised ValueError: Input X contains NaN. Where it takes no missing cell \('income'\), put an imputer"
    )
    with pytest.raises(ceopt.solvers.errors.CeoptError, match=wanted):
        explain(
            decide, {"income": np.nan, "debt": 5.0}, NUMBERS, target=1, data=data, surrogate=LocalSurrogateRecourse()
        )

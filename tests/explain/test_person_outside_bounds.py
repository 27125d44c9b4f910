"""Who stands outside bounds that the user set is asked about: a column may stay or come nearer, never go further."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt.formulations.predictors import Affine
from ceopt.formulations.space.reachable import reach_of
from ceopt.surrogates import LocalSurrogateRecourse
from ceopt.words import in_words

AGES = range(-3, 12)
RATES = [k / 2 for k in range(-8, 20)]
COLUMNS = ["age", "rate"]


def space(age: tuple[int, int], rate: tuple[float, float], direction: Any = "any") -> ceopt.FeatureSpace:
    return ceopt.FeatureSpace(
        [
            ceopt.Feature("age", kind="integer", lower=age[0], upper=age[1], direction=direction),
            ceopt.Feature("rate", kind="continuous", lower=rate[0], upper=rate[1], step=0.5),
        ]
    )


def is_allowed(value: float, own: float, bounds: tuple[float, float]) -> bool:
    """Within the bounds, or no further from them than the own value."""
    low, high = bounds
    return (value >= low or value >= own) and (value <= high or value <= own)


def cheapest(meets: Any, asked: ceopt.FeatureSpace, person: dict[str, float]) -> float | None:
    """The least L1 move to a point that may be reached and meets the target, by trying all."""
    best = None
    direction = asked["age"].direction
    for age, rate in itertools.product(AGES, RATES):
        if not is_allowed(age, person["age"], (asked["age"].lower, asked["age"].upper)):
            continue
        if not is_allowed(rate, person["rate"], (asked["rate"].lower, asked["rate"].upper)):
            continue
        if (direction == "increasing" and age < person["age"]) or (direction == "decreasing" and age > person["age"]):
            continue
        cost = abs(age - person["age"]) + abs(rate - person["rate"])
        if meets(age, rate) and (best is None or cost < best):
            best = cost
    return best


def tree(seed: int) -> DecisionTreeClassifier:
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame({"age": rng.integers(-3, 12, 80), "rate": rng.integers(-8, 20, 80) / 2})
    labels = np.where((rows["age"] + rows["rate"]) % 5 < 2.5, "yes", "no")
    return DecisionTreeClassifier(max_depth=5, random_state=seed).fit(rows, labels)


@example(0, (2, 5), (0.0, 3.0), {"age": 8, "rate": -1.5}, "any", (1, -1, 2.0))
@example(1, (2, 5), (0.0, 3.0), {"age": 0, "rate": 4.5}, "decreasing", (1, 1, 3.0))
@given(
    seed=st.integers(0, 3),
    age=st.sampled_from([(2, 5), (0, 4), (3, 3)]),
    rate=st.sampled_from([(0.0, 3.0), (1.0, 1.5)]),
    person=st.fixed_dictionaries({"age": st.sampled_from(AGES), "rate": st.sampled_from(RATES[4:-6])}),
    direction=st.sampled_from(["any", "increasing", "decreasing"]),
    plane=st.tuples(st.sampled_from([-1, 1, 2]), st.sampled_from([-1, 1]), st.sampled_from([-4.0, -1.0, 2.0, 5.0])),
)
@draws(60)
def test_answers_are_those_of_enumeration(seed, age, rate, person, direction, plane):
    asked = space(age, rate, direction)
    first, second, most = plane
    of_trees = tree(seed)
    grid = pd.DataFrame(list(itertools.product(AGES, RATES)), columns=COLUMNS)
    said = dict(zip(grid.itertuples(index=False, name=None), of_trees.predict(grid), strict=True))
    line = Affine([float(first), float(second)], -most, labels=("no", "yes"), decision="nonnegative")
    for model, meets in (
        (line, lambda a, r: first * a + second * r >= most),
        (of_trees, lambda a, r: said[a, r] == "yes"),
    ):
        result = ceopt.explain(model, person, asked, target="yes", cost=ceopt.L1(scale="none"))
        best = cheapest(meets, asked, person)
        if best is None:
            assert result.status == "infeasible", result.reason
        elif best == 0.0:
            assert result.status == "already_favourable"
        else:
            assert result.status == "optimal", result.reason
            assert result[0].cost == pytest.approx(best, rel=1e-6)
            assert ceopt.verify(result, model, asked, target="yes").ok


@pytest.mark.parametrize(("own", "ends"), [(15, (15.0, 60.0)), (70, (20.0, 70.0)), (30, (20.0, 60.0))])
def test_a_bound_widens_to_the_person_and_no_further(own, ends):
    asked = ceopt.FeatureSpace([ceopt.Feature("age", kind="integer", lower=20, upper=60)])
    part = reach_of(asked, {"age": float(own)})["age"]
    assert (part.lower, part.upper) == ends


def test_a_fixed_column_stays_and_a_direction_holds():
    fixed = ceopt.Feature("age", kind="integer", lower=20, upper=60, mutable=False)
    falls = ceopt.Feature("age", kind="integer", lower=20, upper=60, direction="decreasing")
    assert reach_of(ceopt.FeatureSpace([fixed]), {"age": 70.0})["age"].is_point
    assert reach_of(ceopt.FeatureSpace([falls]), {"age": 15.0})["age"].is_point


def test_verify_takes_what_is_no_further_and_refuses_what_is():
    model = Affine([1.0, 1.0], 0.0, labels=("no", "yes"), decision="nonnegative")
    asked = space((2, 5), (0.0, 3.0))
    person = {"age": 8, "rate": -1.0}
    report = ceopt.verify(
        [{"age": age, "rate": rate} for age, rate in [(8, -1.0), (6, -0.5), (9, -1.0), (8, -1.5), (1, 0.0)]],
        model, asked, target="yes", factual=person,
    )  # fmt: skip
    assert report.to_frame()["broken"].tolist() == [
        (),
        (),
        ("age: must be at most 5 or stay at 8, but is 9.0",),
        ("rate: must be at least 0 or stay at -1, but is -1.5",),
        ("age: must be at least 2, but is 1.0",),
    ]
    blind = ceopt.verify([{"age": 6, "rate": 0.0}], model, asked, target="yes")
    assert blind.to_frame()["broken"][0] == ("age: must be at most 5, but is 6.0",)


def test_why_nothing_is_possible_says_how_far_the_bound_would_have_to_give():
    model = Affine([1.0, 0.0], -12.0, labels=("no", "yes"), decision="nonnegative")
    result = ceopt.explain(model, {"age": 8, "rate": 1.0}, space((2, 5), (0.0, 3.0)), target="yes", why=True)
    assert result.status == "infeasible"
    assert result.conflict == (
        ("age: at most 5", "age must be at most 5, or no further from it than today", 4.0),
    )  # fmt: skip
    (line,) = in_words(result, "de").conflict
    assert line == "age ist höchstens 5, oder nicht weiter davon entfernt als heute (um 4 weiter gäbe es einen Weg)"


def test_a_black_box_and_diverse_answers_keep_it():
    asked = space((2, 5), (0.0, 3.0))
    people = pd.DataFrame({"age": [2, 3, 4, 5, 3, 2] * 5, "rate": [0.0, 1.0, 2.5, 3.0, 0.5, 2.0] * 5})
    person = {"age": 9, "rate": 1.0}

    def black_box(rows: pd.DataFrame) -> Any:
        return np.where(rows["age"] + rows["rate"] <= 6.0, "yes", "no")

    found = ceopt.explain(
        black_box, person, asked, target="yes", data=people, surrogate=LocalSurrogateRecourse()
    )  # fmt: skip
    assert found.status.has_answers
    assert ceopt.verify(found, black_box, asked, target="yes").ok
    line = Affine([-1.0, -1.0], 6.0, labels=("no", "yes"), decision="nonnegative")
    many = ceopt.explain(line, person, asked, target="yes", n=3, diversity="support")
    assert ceopt.verify(many, line, asked, target="yes").ok


def test_no_german_person_is_an_error(data_dir, monkeypatch):
    monkeypatch.setenv("CEOPT_DATA", str(data_dir))
    german = ceopt.datasets.load("german")
    numbers = ["duration", "amount", "age"]
    asked = ceopt.FeatureSpace([german.space[name] for name in numbers]).update("amount", lower=500, upper=12_000)
    asked = asked.update("duration", upper=48)
    rows, y = german.data[numbers], german.target
    model = DecisionTreeClassifier(max_depth=5, min_samples_leaf=10, random_state=0).fit(rows, y)
    good = german.favourable
    outside = rows[(rows["amount"] > 12_000) | (rows["duration"] > 48) | (rows["amount"] < 500)]
    people = outside[model.predict(outside) != good]
    assert len(people) > 8
    cohort = ceopt.Recourse(model, asked, target=good).fit(rows).explain(people)
    assert not [result.reason for result in cohort if result.status == "error"]
    assert all(ceopt.verify(result, model, asked, target=good).ok for result in cohort if len(result))
    assert sum(map(len, cohort)) > 8

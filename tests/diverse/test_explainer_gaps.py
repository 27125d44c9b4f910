"""Diverse sets for people with missing cells and codes: such cells stay, in answers and on the way to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import ceopt
from ceopt import Feature, FeatureSpace
from ceopt.diverse import DiverseRobustExplainer
from ceopt.diverse.projection import Projection, distance_of

SPACE = FeatureSpace(
    [
        Feature("income", kind="continuous", lower=0, upper=80, missing="may_vanish"),
        Feature("debt", kind="integer", lower=0, upper=25, codes=[-9, 7], codes_in_reach=True, missing=True),
        Feature("grade", kind="ordinal", levels=(-9, 1, 2, 3), codes=[-9], codes_in_reach=True, missing=True),
        Feature("job", kind="categorical", levels=(0, 1, 2), codes=[2], missing=True),
    ]
)


def _people(count: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    columns = {
        "income": rng.normal(30.0, 8.0, count).clip(0.0, 80.0),
        "debt": rng.choice([*range(25), -9], count),
        "grade": rng.choice([-9, 1, 2, 3], count),
        "job": rng.choice(3, count),
    }
    frame = pd.DataFrame(columns).astype(float)
    return frame.mask(rng.random(frame.shape) < 0.1)


PEOPLE = _people(300)
_MERIT = PEOPLE["income"].fillna(25.0) - PEOPLE["debt"].clip(lower=3.0).fillna(8.0) + 3.0 * (PEOPLE["grade"] == 3)
MODEL = HistGradientBoostingClassifier(max_iter=25, min_samples_leaf=8, random_state=0).fit(PEOPLE, _MERIT > 20.0)


def _are_labels(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.isna() | pd.DataFrame({name: frame[name].isin(SPACE[name].codes) for name in frame})


ASKED = PEOPLE[~MODEL.predict(PEOPLE) & _are_labels(PEOPLE).any(axis=1)]


@pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"distance": "l2", "scale": "std", "diversity": "distance", "put_back": "columns"},
        {"minimise": "all", "keep": "within", "alpha": 2.0, "origin": "data"},
        {"variant": "released", "tolerance": 0.05},
        {"tolerance": None},
    ],
    ids=str,
)
def test_answers_keep_missing_cells_and_codes(options):
    made = DiverseRobustExplainer(space=SPACE, **options).fit(PEOPLE)
    answered = 0
    for place in range(0, len(ASKED), len(ASKED) // 12):
        person = ASKED.iloc[[place]]
        result = made.explain(MODEL, person, target=True, n=3, constraints=[ceopt.MaxChanges(3)])
        is_label = _are_labels(person).to_numpy()[0]
        for answer in result:
            answered += 1
            assert answer.verified
            assert MODEL.predict(answer.frame).tolist() == [True]
            assert (_are_labels(answer.frame).to_numpy()[0] == is_label).all()
            own, kept = person.to_numpy()[0, is_label], answer.frame.to_numpy(dtype=float)[0, is_label]
            np.testing.assert_array_equal(own, kept)
            assert np.isfinite(answer.cost)
        for name in person.columns[person.isna().to_numpy()[0]]:
            assert result.removed[name] == "stays missing"
    assert answered >= 8


def test_a_function_of_an_array_is_given_nan():
    seen = []

    def predict(rows: Any) -> Any:
        seen.append(rows)
        return np.nansum(rows, axis=1) > 5.0

    space = FeatureSpace([Feature(name, kind="continuous", lower=0, upper=9, missing=True) for name in "ab"])
    made = DiverseRobustExplainer(space=space).fit(np.array([[1.0, 8.0], [9.0, 9.0], [1.0, 2.0]]))
    result = made.explain(predict, [np.nan, 1.0], target=True, n=1)

    assert np.isnan(result[0].values["a"])
    assert 5.0 < result[0].values["b"] <= 5.2
    assert all(np.isfinite(rows[:, 1]).all() for rows in seen)


def test_rows_with_codes_are_put_where_the_person_is():
    """A row's code becomes the person's own value, and a step that ends on a code the next amount."""
    person = {"income": 20.0, "debt": 3, "grade": 1, "job": 0}
    projection = Projection.of(SPACE, SPACE.row(person), (), distance_of("x", "l1", "none", SPACE))
    rows = pd.DataFrame(
        {"income": [1.0, 2.0], "debt": [-9.0, 7.0], "grade": [-9.0, 2.0], "job": [2.0, 1.0]}, dtype=float
    )

    assert projection(SPACE.coordinates(rows)).tolist() == [[1.0, 3.0, 1.0, 0.0], [2.0, 3.0, 2.0, 1.0]]
    assert projection.mended(np.array([[20.0, 7.0, 0.0, 0.0]])).tolist() == [[20.0, 6.0, 1.0, 0.0]]


def test_distances_and_directions_have_no_part_in_a_cell_that_stays_missing():
    distance = distance_of("x", "l2", "none", SPACE)
    home = np.array([np.inf, 3.0, np.inf, np.inf])
    points = np.array([[np.inf, 7.0, np.inf, np.inf], [np.inf, 0.0, np.inf, np.inf]])

    assert distance.between(home, points).tolist() == [4.0, 3.0]
    assert np.isfinite(distance.directions(home, points)).all()

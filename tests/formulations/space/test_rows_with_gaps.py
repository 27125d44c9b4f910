"""Rows of data that lack what may be missing: used with their gaps, but where whole rows are needed."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import ceopt
from ceopt.search.prepare import prepare
from ceopt.settings import Settings

RNG = np.random.default_rng(0)
N = 120
DATA = pd.DataFrame({"income": RNG.integers(10, 90, N) / 10, "debt": RNG.integers(0, 9, N).astype(float)})
Y = np.where(DATA["income"] - 0.5 * DATA["debt"] > 2.0, "yes", "no")
DATA.loc[::6, "income"] = np.nan
DATA.loc[5, "debt"] = np.nan
SPACE = ceopt.FeatureSpace.infer(DATA).update("debt", missing=False)
MODEL = HistGradientBoostingClassifier(max_iter=15, min_samples_leaf=5).fit(DATA, Y)
PERSON = {"income": 2.5, "debt": 7.0}


def heard(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call()
    return found, [str(warning.message) for warning in caught]


def asked(data, **options):
    return ceopt.explain(MODEL, PERSON, SPACE, target="yes", data=data, **options)


def test_only_rows_that_lack_another_cell_are_left_out():
    result, told = heard(lambda: asked(DATA))
    (sentence,) = told
    assert sentence == (
        "explain leaves out 1 of 120 rows of data, in which cells of 'debt' are missing. Write data = "
        "data.dropna(subset=[feature.name for feature in space if not feature.missing]), or fill them in."
    )
    names = {"data": DATA, "space": SPACE}
    exec(sentence.partition("Write ")[2].removesuffix(", or fill them in."), names)  # noqa: S102 - as the user is told
    assert len(names["data"]) == N - 1
    again, told = heard(lambda: asked(names["data"]))
    assert told == []
    assert again[0].cost == result[0].cost


def test_rows_with_gaps_are_where_a_search_may_start():
    rows = DATA.dropna(subset=["debt"])
    prepared = prepare(MODEL, SPACE, Settings(target="yes"), data=rows)
    says = MODEL.predict(rows) == "yes"
    assert len(prepared.target_rows) == says.sum()
    assert np.isinf(prepared.target_rows[:, 0]).sum() == rows["income"][says].isna().sum() > 0


@pytest.mark.parametrize(
    ("options", "who"),
    [
        ({"constraints": ceopt.Hull(radius=0.2)}, "A rule that learns from rows of the target"),
        ({"cost": "mahalanobis"}, "Mahalanobis"),
        ({"cost": ceopt.Percentile("max")}, "Percentile"),
    ],
    ids=["hull", "mahalanobis", "percentile"],
)
def test_who_needs_whole_rows_leaves_out_the_others_and_says_so(options, who):
    whole = SPACE.update("income", missing=False)
    rows = DATA.dropna(subset=["debt"])
    rule = options.get("constraints")
    if rule is None:  # such costs price no missing cell, so that the space says that none is
        _, told = heard(lambda: ceopt.explain(MODEL, PERSON, whole, target="yes", data=rows, **options))
        assert [sentence.partition(" leaves out ")[0] for sentence in told] == ["explain"]
        return
    result, told = heard(lambda: asked(rows, **options))
    assert [sentence.partition(" leaves out ")[0] for sentence in told] == [who]
    assert "leaves out 20 of 119 rows of data, in which cells of 'income' are missing" in told[0]
    alone = ceopt.explain(MODEL, PERSON, whole, target="yes", data=DATA.dropna(), **options)
    assert result[0].cost == pytest.approx(alone[0].cost)


def test_a_cohort_learns_from_rows_with_gaps_and_answers_people_with_gaps():
    recourse, told = heard(lambda: ceopt.Recourse(MODEL, SPACE, target="yes").fit(DATA, Y))
    (sentence,) = told
    assert sentence.startswith("Recourse.fit leaves out 1 of 120 rows of X, in which cells of 'debt' are missing.")
    names = {"X": DATA, "y": Y, "space": SPACE}
    exec(sentence.partition("Write ")[2].removesuffix(", or fill them in."), names)  # noqa: S102 - as the user is told
    assert (len(names["X"]), len(names["y"])) == (N - 1, N - 1)
    assert len(recourse.data_) == N - 1
    rejected = DATA[MODEL.predict(DATA) == "no"]
    people = pd.concat([rejected[rejected["income"].isna()].head(3), rejected.dropna().head(2)])
    cohort, told = heard(lambda: recourse.explain(people))
    assert told == []
    assert {str(result.status) for result in cohort} <= {"optimal", "infeasible"}
    for (_, row), result in zip(people.iterrows(), cohort, strict=True):
        for answer in result:
            assert not np.isnan(answer.values["income"]) or np.isnan(row["income"])


def test_starts_may_have_gaps():
    person = {"income": np.nan, "debt": 5.0}
    starts = DATA.dropna(subset=["debt"])[MODEL.predict(DATA.dropna(subset=["debt"])) == "yes"].head(40)
    assert starts["income"].isna().any()
    result, told = heard(lambda: ceopt.explain(MODEL, person, SPACE, target="yes", starts=starts))
    assert told == []
    assert result[0].cost == ceopt.explain(MODEL, person, SPACE, target="yes")[0].cost


def test_excess_takes_data_with_gaps():
    rows = DATA.dropna(subset=["debt"])
    answers = asked(rows)
    table, told = heard(lambda: ceopt.metrics.excess(answers, MODEL, SPACE, target="yes", factual=PERSON, data=rows))
    assert told == []
    assert table["excess"].tolist() == [0.0]

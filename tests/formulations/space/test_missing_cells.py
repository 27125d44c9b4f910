"""Rows of data with missing cells: left out, counted by one warning a call, whoever is given the data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ceopt
from ceopt.formulations.predictors import Affine
from ceopt.solvers.errors import InvalidValueError
from ceopt.surrogates import BoundarySampler, LocalSurrogateRecourse

RNG = np.random.default_rng(0)
WHOLE = pd.DataFrame(
    {
        "income": RNG.integers(10, 90, 60) / 10,
        "debt": RNG.integers(0, 9, 60),
        "home": RNG.choice(["rent", "own"], 60),
    }
)
SPACE = ceopt.FeatureSpace.infer(WHOLE)
MODEL = Affine([1.0, -0.5, 0.3], -4.0, labels=("no", "yes"))
PERSON = {"income": 2.5, "debt": 3, "home": "own"}
GAPS = WHOLE.astype({"debt": float})
GAPS.loc[[3, 9], "income"] = np.nan
GAPS.loc[[9, 20], "debt"] = np.nan
GAPS.loc[31, "home"] = None
LEFT_OUT = [3, 9, 20, 31]
KEPT = WHOLE.drop(index=LEFT_OUT)


def heard(call: Any) -> tuple[Any, list[str]]:
    """What a call returns, and the texts of what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call()
    assert all(warning.category is ceopt.SpaceWarning for warning in caught)
    return found, [str(warning.message) for warning in caught]


def asked(data: Any, **options: Any) -> ceopt.SolutionSet:
    return ceopt.explain(MODEL, PERSON, SPACE, target="yes", data=data, **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"cost": "mahalanobis"}, {"cost": ceopt.Percentile("max")}, {"constraints": ceopt.Hull(radius=0.1)}],
    ids=["alone", "mahalanobis", "percentile", "hull"],
)
def test_explain_leaves_them_out_and_answers_as_from_the_others(options):
    result, told = heard(lambda: asked(GAPS, **options))
    (sentence,) = told
    assert sentence == (
        "explain leaves out 4 of 60 rows of data, in which cells of 'income', 'debt', 'home' are missing. "
        "Write data = data.dropna(subset=list(space.names)), or fill them in."
    )
    assert result.status == "optimal"
    assert result[0].cost == asked(KEPT, **options)[0].cost


def test_starts_and_data_are_counted_in_one_warning():
    result, told = heard(lambda: asked(GAPS, starts=GAPS.iloc[:5]))
    assert result.status == "optimal"
    assert len(told) == 1
    assert "4 of 60 rows of data and 1 of 5 rows of starts" in told[0]


def test_a_person_with_a_missing_cell_is_refused_as_ever():
    with pytest.raises(InvalidValueError, match="'income'.*missing"):
        ceopt.explain(MODEL, PERSON | {"income": np.nan}, SPACE, target="yes", data=WHOLE)


def test_data_without_a_whole_row_are_refused_by_name():
    with pytest.raises(InvalidValueError, match="explain needs rows of data without missing cells.*'income'"):
        asked(WHOLE.assign(income=np.nan))


def test_missing_cells_of_columns_that_the_space_does_not_have_leave_nothing_out():
    _, told = heard(lambda: asked(WHOLE.assign(note=None)))
    assert len(told) == 1
    assert told[0].startswith("explain leaves out 'note' of data")


@pytest.mark.parametrize("as_labels", [list, np.array, pd.Series], ids=["list", "array", "series"])
def test_fit_leaves_out_rows_with_their_labels(as_labels):
    y = np.where(np.arange(60) % 3 == 0, "yes", "no")
    rule = ceopt.Hull(radius=0.05)
    recourse = ceopt.Recourse(MODEL, SPACE, target="yes", constraints=[rule])
    fitted, told = heard(lambda: recourse.fit(GAPS, as_labels(y)))
    assert len(told) == 1
    assert told[0].startswith("Recourse.fit leaves out 4 of 60 rows of X")
    assert len(fitted.data_) == 56
    people = WHOLE.iloc[:3]
    found = fitted.explain(people)
    again = ceopt.Recourse(MODEL, SPACE, target="yes", constraints=[rule]).fit(KEPT, np.delete(y, LEFT_OUT))
    assert found.to_frame()["cost"].equals(again.explain(people).to_frame()["cost"])


def test_fit_keeps_its_own_data_whole_and_knows_them_again():
    recourse = ceopt.Recourse(MODEL, SPACE, target="yes", data=GAPS, cost="mahalanobis")
    _, told = heard(lambda: recourse.fit(WHOLE))
    assert len(told) == 1
    assert "4 of 60 rows of data" in told[0]
    assert recourse.explain(WHOLE.iloc[:2]).failures().empty


def test_another_number_of_labels_is_refused_as_ever():
    with (
        pytest.warns(ceopt.SpaceWarning, match="leaves out 4 of 60"),
        pytest.raises(InvalidValueError, match=r"one label for each of 60 rows.*\(59,\)"),
    ):
        ceopt.Recourse(MODEL, SPACE, target="yes").fit(GAPS, ["yes"] * 59)


def test_a_hull_of_rows_of_its_own_leaves_them_out_with_their_clusters():
    clusters = (np.arange(60) % 2).tolist()
    with_gaps, told = heard(
        lambda: ceopt.explain(MODEL, PERSON, SPACE, target="yes", constraints=ceopt.Hull(GAPS, clusters=clusters))
    )
    assert len(told) == 1
    assert told[0].startswith("Hull leaves out 4 of 60 rows of data")
    whole = ceopt.Hull(KEPT, clusters=np.delete(clusters, LEFT_OUT).tolist())
    assert with_gaps[0].cost == ceopt.explain(MODEL, PERSON, SPACE, target="yes", constraints=whole)[0].cost


def test_a_percentile_of_rows_of_its_own_leaves_them_out():
    result, told = heard(lambda: ceopt.explain(MODEL, PERSON, SPACE, target="yes", cost=ceopt.Percentile("max", GAPS)))
    assert len(told) == 1
    assert told[0].startswith("Percentile leaves out 4 of 60 rows of data")
    whole = ceopt.explain(MODEL, PERSON, SPACE, target="yes", cost=ceopt.Percentile("max", KEPT))
    assert result[0].cost == whole[0].cost


def test_verify_and_excess_leave_them_out():
    answer = asked(WHOLE)[0]
    rule = ceopt.Hull(radius=0.5)
    report, told = heard(
        lambda: ceopt.verify([answer], MODEL, SPACE, target="yes", factual=PERSON, constraints=rule, data=GAPS)
    )
    assert len(told) == 1
    assert report.ok is True
    _, told = heard(lambda: ceopt.metrics.excess([answer], MODEL, SPACE, target="yes", factual=PERSON, data=GAPS))
    assert len(told) == 1


def test_surrogates_and_samplers_leave_them_out():
    def says(rows: pd.DataFrame) -> Any:
        return np.where(rows["income"] - 0.5 * rows["debt"] > 4.0, "yes", "no")

    result, told = heard(
        lambda: ceopt.explain(says, PERSON, SPACE, target="yes", data=GAPS, surrogate=LocalSurrogateRecourse())
    )
    assert len(told) == 1
    assert result.status == "feasible"
    _, told = heard(lambda: LocalSurrogateRecourse().explain(says, PERSON, SPACE, target="yes", data=GAPS))
    assert len(told) == 1
    sample, told = heard(lambda: BoundarySampler(n_samples=50).sample(says, PERSON, GAPS, target="yes", space=SPACE))
    assert len(told) == 1
    assert len(sample.encoded) == 50


def test_causal_equations_are_learned_from_the_others():
    graph = {"income": ["debt"]}
    rule, told = heard(lambda: ceopt.Causal.learn(graph, GAPS, space=SPACE))
    assert len(told) == 1
    assert told[0].startswith("Causal.learn leaves out 3 of 60 rows of data, in which cells of 'debt', 'income'")
    whole = ceopt.Causal.learn(graph, WHOLE.drop(index=[3, 9, 20]), space=SPACE)
    assert rule.sentence() == whole.sentence()
    point = {"income": 5.0, "debt": 2.0, "home": 0.0}
    start = SPACE.row(PERSON)
    assert rule.violation(SPACE, start, point) == whole.violation(SPACE, start, point)

"""The pictures of a cohort: what is counted and drawn, against plain numbers."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from drawn import names, outside, overlapping, texts
from matplotlib import pyplot as plt

import ceopt
from ceopt import Cohort, Counterfactual, Feature, FeatureSpace, SolutionSet

SPACE = FeatureSpace(
    [
        Feature("income", kind="continuous", lower=0.0, upper=50.0),
        Feature("job", kind="categorical", levels=("cook", "clerk", "nurse")),
        Feature("region", kind="categorical", levels=("west", "east")),
    ]
)
#: Label, income, region, status, cost and changes of the best answer.
PEOPLE = [
    ("a", 5.0, "east", "optimal", 2.0, {"income": 7.0}),
    ("b", 5.0, "east", "optimal", 4.0, {"income": 4.0, "job": "nurse"}),
    ("c", 5.0, "east", "infeasible", None, None),
    ("d", 9.0, "west", "feasible", 1.0, {"income": 9.5}),
    ("e", 9.0, "west", "already_favourable", None, None),
]


def result_of(label, income, region, status, cost, changes):
    row = {"income": income, "job": "cook", "region": region}
    answers = ()
    if changes:
        answers = (
            Counterfactual(
                values=SPACE.frame([SPACE.row(row | changes)]), cost=cost, prediction="good", score=1.0, slack=1.0,
                changed=tuple(changes), verified=True, rank=1, bound=None, gap=None,
            ),
        )  # fmt: skip
    factual = SPACE.frame([SPACE.row(row)])
    return SolutionSet(status=status, counterfactuals=answers, factual=factual, query_id=label, space=SPACE)


def cohort_of(people=PEOPLE):
    results = tuple(result_of(*person) for person in people)
    queries = SPACE.frame([SPACE.row(result.factual) for result in results])
    queries.index = pd.Index([person[0] for person in people])
    return Cohort(results=results, queries=queries, space=SPACE, finished=(True,) * len(people))


def lengths(ax):
    return [bar.get_width() for bar in ax.patches]


def test_changes_are_counted_column_by_column_and_way_by_way():
    ax = cohort_of().plot()

    assert names(ax) == ["income", "job"]
    assert lengths(ax) == [2.0, 1.0, 1.0]  # income raised, income lowered, another job
    assert [bar.get_x() for bar in ax.patches] == [0.0, 2.0, 0.0]
    assert texts(ax) == ["3 (100 %)", "1 (33 %)"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["raised", "lowered", "another level"]
    assert ax.get_title("left") == "What the best answers change, of 3 people with an answer"


def test_a_cohort_is_drawn_in_german():
    changes, costs, status = (cohort_of().plot(kind, language="de") for kind in ("changes", "costs", "status"))

    assert changes.get_title("left") == "Was die besten Wege ändern, bei 3 Personen mit einem Weg"
    assert [text.get_text() for text in changes.get_legend().get_texts()] == ["erhöht", "gesenkt", "andere Stufe"]
    assert texts(costs) == ["Median 2; 3 von 4 haben einen Weg"]
    assert names(status) == ["Weg, bewiesen der beste", "Weg", "bewiesen: keiner", "Ziel schon erreicht"]


def test_groups_are_compared_by_shares_of_their_people_with_an_answer():
    ax = cohort_of().plot("changes", by="region")

    assert lengths(ax) == [100.0, 50.0, 50.0, 50.0]  # west raised; east raised, lowered; job of east
    assert texts(ax) == ["west: 100 %, 1 of 1", "east: 100 %, 2 of 2", "west: 0 %, 0 of 1", "east: 50 %, 1 of 2"]


def test_costs_stand_in_rows_in_the_order_of_levels_and_say_who_has_no_answer():
    ax = cohort_of().plot("costs", by="region")

    assert names(ax) == ["west", "east"]
    assert texts(ax) == ["median 1; 1 of 1 have an answer", "median 3; 2 of 3 have an answer"]
    drawn = [line.get_xdata().tolist() for line in ax.lines]
    assert [1.0] in drawn
    assert [2.0, 4.0] in drawn
    assert [3.0, 3.0] in drawn  # the median of the east


def test_costs_of_all_in_one_row_and_wide_ones_on_a_logarithm():
    assert names(cohort_of().plot("costs")) == ["all"]
    far = [("a", 5.0, "east", "optimal", 10.0**power, {"income": 7.0}) for power in range(-3, 4)]

    assert cohort_of().plot("costs").get_xscale() == "linear"
    assert cohort_of(far).plot("costs").get_xscale() == "log"


def test_statuses_are_counted_in_their_order():
    ax = cohort_of().plot("status")

    assert names(ax) == ["optimal", "feasible", "infeasible", "already favourable"]
    assert lengths(ax) == [2.0, 1.0, 1.0, 1.0]
    assert texts(ax)[0] == "2 (40 %)"
    assert ax.get_legend() is None
    by_region = cohort_of().plot("status", by="region")
    assert names(by_region) == ["west", "east"]
    assert texts(by_region) == ["2 of 2 served", "2 of 3 served"]
    assert np.allclose(lengths(by_region), [50.0, 50.0, 200.0 / 3.0, 100.0 / 3.0])


@pytest.mark.parametrize(
    "by",
    [
        ["x", "y", "y", "x", None],
        np.array(["x", "y", "y", "x", None], dtype=object),
        pd.Series(["x", "y", "y", "x", None]),
        pd.Series(["x", "y", "y", "x", None], index=list("abcde")).iloc[[2, 1, 0, 3, 4]],
        pd.Categorical(["x", "y", "y", "x", None]),
    ],
)
def test_groups_are_one_a_row_or_by_the_labels_of_the_rows(by):
    ax = cohort_of().plot("status", by=by)

    assert names(ax) == ["x", "y", "missing"]
    assert texts(ax) == ["2 of 2 served", "1 of 2 served", "1 of 1 served"]


def test_groups_of_numbers_are_in_their_order_and_those_of_a_category_in_its_own():
    assert names(cohort_of().plot("status", by=[10, 9, 10, 9, 2])) == ["2", "9", "10"]
    sizes = pd.Categorical(["L", "S", "L", "S", "M"], categories=["S", "M", "L"])
    assert names(cohort_of().plot("status", by=sizes)) == ["S", "M", "L"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"kind": "pie"}, "needs a known kind"),
        ({"by": "regoin"}, "needs a known column, but column is 'regoin'. Did you mean 'region'?"),
        ({"by": ["x", "y"]}, "needs one group a row as by, but by has 2 groups for 5 rows"),
        ({"by": 3}, "needs the name of a column, or one group a row, as by, but by is int"),
        ({"ax": 3}, "needs Axes of matplotlib, or None, as ax"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(given, sentence):
    with pytest.raises(ceopt.CeoptError, match=r"^Cohort\.plot") as error:
        cohort_of().plot(**given)

    assert sentence in str(error.value)


def test_too_many_groups_are_refused_and_so_are_people_without_an_answer():
    many = cohort_of([(k, float(k), "east", "infeasible", None, None) for k in range(13)])

    with pytest.raises(ceopt.CeoptError, match=r"at most 12 groups, but by has 13\. .*pd\.cut"):
        many.plot("status", by="income")
    for kind in ("changes", "costs"):
        with pytest.raises(ceopt.CeoptError, match="needs someone with an answer, but 13 are infeasible"):
            many.plot(kind)
    with pytest.raises(ceopt.CeoptError, match="needs some rows"):
        Cohort(results=(), queries=SPACE.frame([]), space=SPACE, finished=()).plot()


@pytest.mark.parametrize("kind", ["changes", "costs", "status"])
def test_given_axes_are_drawn_on_and_pyplot_learns_of_no_other(kind):
    figure, given = plt.subplots()

    assert cohort_of().plot(kind, ax=given) is given
    assert cohort_of().plot(kind, by="region", dark=True).figure is not figure
    assert plt.get_fignums() == [figure.number]
    plt.close(figure)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(ImportError, match=r"pip install 'ceopt\[plot\]'"):
        cohort_of().plot()


@pytest.mark.parametrize("kind", ["changes", "costs", "status"])
def test_no_text_runs_into_another_or_out_of_the_picture(kind):
    long = "a group with a very long name that nobody wants to read in full, and that goes on after it {}"

    ax = cohort_of().plot(kind, by=[long.format(k) for k in (1, 1, 2, 2, 3)])

    assert overlapping(ax) == []
    assert outside(ax) == []

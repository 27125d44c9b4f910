"""An answer prints its values, and beside those that change what they were."""

from __future__ import annotations

import dataclasses
import gc
import pickle
import tracemalloc
from array import array

import pandas as pd

import ceopt
from ceopt import Feature, FeatureSpace, SolutionSet
from ceopt.formulations.predictors import Affine
from ceopt.result.counterfactual import KeptRow, in_slot

SPACE = FeatureSpace(
    [
        Feature("savings", kind="continuous", lower=0, upper=900_000, step=0.25, unit="euros"),
        Feature("job", kind="categorical", levels=("<cook>", "nurse")),
    ]
)


def answered(savings=121_200.25, **fields):
    model = Affine([1.0, 0.0], -123_457.5, labels=("bad", "<good>"))
    numbers = FeatureSpace([SPACE["savings"], Feature("age", kind="integer", lower=18, upper=90)])
    return ceopt.explain(model, {"savings": savings, "age": 33}, numbers, target="<good>")


def test_an_answer_prints_its_values_and_what_they_were():
    assert repr(answered()[0]).splitlines() == [
        "answer 1, cost 0.002508, prediction <good>",
        "column   value             before",
        "-------  ----------------  ----------",
        "savings  123,457.75 euros  121,200.25",
        "age      33",
    ]


def test_a_value_of_a_grid_is_shown_digit_for_digit_in_the_tables_of_sets_too():
    assert "123,457.75" in repr(answered())
    assert "121,200.25" in repr(answered())


def test_html_escapes_names_and_levels():
    html = answered()[0]._repr_html_()

    assert html.startswith("<p>answer 1, cost 0.002508, prediction &lt;good&gt;</p><table>")
    assert "<td>123,457.75 euros</td><td>121,200.25</td>" in html
    assert "<good>" not in html


def test_an_answer_that_stands_alone_prints_its_values():
    alone = dataclasses.replace(answered()[0], factual=None, space=None)
    lines = repr(alone).splitlines()

    assert lines[1].split() == ["column", "value"]
    assert lines[3].split() == ["savings", "123,457.75"]


def test_of_many_columns_those_that_change_are_printed():
    factual = pd.DataFrame({f"x{k}": [0.0] for k in range(100)})
    answer = dataclasses.replace(answered()[0], values=factual.assign(x7=1.0), changed=("x7",))
    result = SolutionSet(status="optimal", counterfactuals=(answer,), factual=factual, target="good")
    lines = repr(result[0]).splitlines()

    assert lines[0].endswith("; 99 columns stay")
    assert [line.split() for line in lines[3:]] == [["x7", "1", "0"]]


def test_the_row_of_an_answer_is_a_copy_and_shared_in_pickles():
    result = answered()
    before = result[0].factual
    before["savings"] = 999
    two = dataclasses.replace(result, counterfactuals=(result[0], result[0]))
    again = pickle.loads(pickle.dumps(two))
    place = [field.name for field in dataclasses.fields(again[0])].index("factual")

    assert result[0].factual["savings"] == 121_200.25
    assert result[0].space is result.space
    assert again[0].space is again[1].space is again.space
    assert again[0].factual.to_dict() == result[0].factual.to_dict()
    assert again[0].__getstate__()[place] is again[1].__getstate__()[place]


def test_rows_are_kept_as_coordinates_and_read_in_their_own_dtypes():
    result = answered()
    again = pickle.loads(pickle.dumps(result))
    for one in (result, again):
        assert isinstance(in_slot(one, "factual"), KeptRow)
        assert in_slot(one[0], "frame").coordinates == array("d", [123_457.75, 33.0])
        assert one.factual.equals(pd.DataFrame({"savings": [121_200.25], "age": [33]}))
        assert one[0].frame.equals(pd.DataFrame({"savings": [123_457.75], "age": [33]}))
        assert [type(value) for value in one[0].values] == [float, int]
        assert one[0].factual.to_dict() == {"savings": 121_200.25, "age": 33}


def test_an_answer_that_goes_into_another_space_keeps_its_values():
    result = answered()
    other = FeatureSpace([Feature(name, kind="continuous") for name in result.space.names])
    for space in (None, other):
        moved = dataclasses.replace(result, space=space)
        assert moved[0].frame.equals(result[0].frame)
        assert moved[0].values.equals(result[0].values)


def test_a_person_of_a_cohort_keeps_few_bytes():
    people = pd.DataFrame({"savings": 121_200.25, "age": [33, 44] * 60})
    space = answered().space
    recourse = ceopt.Recourse(Affine([1.0, 0.0], -123_457.5, labels=("bad", "good")), space, target="good").fit(people)
    recourse.explain(people.head(2))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    cohort = recourse.explain(people)
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()

    assert len(cohort.to_frame()) == 120
    assert kept / 120 < 5000


def test_results_of_another_process_share_the_space_of_their_cohort():
    result = pickle.loads(pickle.dumps(answered()))
    equal = pickle.loads(pickle.dumps(result.space))
    shared = result.sharing(equal)

    assert shared.space is shared[0].space is equal
    assert shared.to_json() == result.to_json()
    assert result.sharing(SPACE) is result  # another space is none of this result's

"""A cohort in JSON loses nothing: labels of any kind, answers, reasons, audit, surrogate; damage is a sentence."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st

import ceopt
from ceopt import Cohort, Feature, FeatureSpace, Linear, LinearEquation, Recourse
from ceopt.formulations.predictors import Affine
from ceopt.formulations.space import RuleWarning
from ceopt.population import no_answer
from ceopt.result.counterfactual import Counterfactual
from ceopt.result.shown import SurrogateReport
from ceopt.result.solution_set import SolutionSet
from ceopt.solvers.errors import CeoptError, UnreadableFileError

SPACE = FeatureSpace(
    [
        Feature("income", kind="integer", lower=0, upper=9, unit="euros"),
        Feature("debt", kind="integer", lower=0, upper=9, mutable=False),
    ]
)
MODEL = Affine([1.0, -1.0], -3.5, labels=("bad", "good"))
PEOPLE = pd.DataFrame({"income": [1, 2, 5, 2], "debt": [0, 0, 0, 9]}, index=["ann", "bob", "cleo", "ann"])


@pytest.fixture(scope="module")
def recourse():
    rules = [Linear({"income": 1.0}, "<=", 8, name="cap")]
    return Recourse(MODEL, SPACE, target="good", n=2, diversity="support", constraints=rules).fit(PEOPLE)


@pytest.fixture(scope="module")
def cohort(recourse):
    return recourse.explain(PEOPLE)


def assert_same(again, cohort):
    """All that a cohort holds is the same, bit for bit."""
    assert again.to_json() == cohort.to_json()
    assert again.space == cohort.space
    assert again.options == cohort.options
    assert again.finished == cohort.finished
    pd.testing.assert_frame_equal(again.queries, cohort.queries, check_exact=True)
    pd.testing.assert_frame_equal(again.to_frame(), cohort.to_frame(), check_exact=True)
    pd.testing.assert_frame_equal(again.changes(), cohort.changes(), check_exact=True)
    for one, other in zip(again, cohort, strict=True):
        assert one.to_json() == other.to_json()
        assert one.space is again.space
        assert one.sentences("de") == other.sentences("de")
        assert repr(one) == repr(other)


def test_a_cohort_comes_back_from_text_and_from_a_file(cohort, tmp_path):
    path = tmp_path / "cohort.json"
    text = cohort.to_json(path)

    assert [str(result.status) for result in cohort] == ["optimal", "optimal", "already_favourable", "infeasible"]
    for source in (text, path, str(path)):
        assert_same(Cohort.from_json(source), cohort)


def test_what_is_the_same_for_all_is_written_once(cohort):
    document = json.loads(cohort.to_json())

    assert document["format"] == "ceopt cohort"
    assert document["version"] == 1
    assert document["ceopt"] == ceopt.__version__
    assert all("options" not in entry and "space" not in entry for entry in document["results"])
    assert len(cohort.to_json()) < sum(len(result.to_json()) for result in cohort)


def test_a_result_that_was_asked_otherwise_keeps_its_own_settings(cohort):
    alone = ceopt.explain(MODEL, PEOPLE.iloc[0], SPACE.update("income", unit="pounds"), target="good")
    other = dataclasses.replace(cohort, results=(alone, *cohort.results[1:]))
    again = Cohort.from_json(other.to_json())

    assert again[0].to_json() == alone.to_json()
    assert again[0].space["income"].unit == "pounds"
    assert again[1].options == cohort[1].options
    stranger = dataclasses.replace(alone, space=None)
    assert Cohort.from_json(dataclasses.replace(other, results=(stranger,) * 4).to_json())[2].space is None


def test_a_cohort_that_was_read_is_resumed(cohort, recourse):
    half = dataclasses.replace(
        cohort,
        results=(*cohort.results[:3], no_answer(PEOPLE.iloc[[3]], "Interrupted.", cohort.options, SPACE)),
        finished=(True, True, True, False),
    )
    again = recourse.explain(PEOPLE, resume=Cohort.from_json(half.to_json()))

    assert [str(result.status) for result in again] == [str(result.status) for result in cohort]
    assert again.finished == (True,) * 4
    assert again[0].timings == cohort[0].timings  # not solved again


def test_a_target_or_a_rule_that_differs_in_its_seventh_digit_is_another():
    space = FeatureSpace([Feature("income", kind="continuous", lower=0, upper=9_000_000.25, direction="up")])
    people = pd.DataFrame({"income": [1_234_560.5]})

    def asked(least, cap):
        rules = [Linear({"income": 1.0}, "<=", cap)]
        return Recourse(Affine([1.0], 0.0), space, target=ceopt.AtLeast(least), constraints=rules).fit(people)

    first = asked(1_234_567.25, 1_300_000.25).explain(people)
    assert first[0].target == "at least 1234567.25"
    assert first[0].rules == {"Linear_1": "income <= 1300000.25"}
    assert first[0].removed == {"income": "stays within 1234560.5 and 9000000.25"}
    for least, cap in ((1_234_567.5, 1_300_000.25), (1_234_567.25, 1_300_000.5)):
        with pytest.raises(CeoptError, match="Start anew"):
            asked(least, cap).explain(people, resume=first)


@pytest.mark.parametrize(
    "rule", [lambda last: ceopt.AllowedValues({"income": [*range(8), last]}),
             lambda last: ceopt.AllowedRows(["income"], pd.DataFrame({"income": [1, 2, last]}))],
)  # fmt: skip
def test_rules_that_differ_in_what_no_sentence_says_are_others(rule):
    def asked(last):
        return Recourse(MODEL, SPACE, target="good", constraints=[rule(last)]).fit(PEOPLE)

    first = Cohort.from_json(asked(8).explain(PEOPLE.head(2)).to_json())
    assert asked(8).explain(PEOPLE.head(2), resume=first)[0].timings == first[0].timings
    with pytest.raises(CeoptError, match="the same rules to resume"):
        asked(9).explain(PEOPLE.head(2), resume=first)
    older = dataclasses.replace(first, options={word: v for word, v in first.options.items() if word != "rules"})
    assert asked(8).explain(PEOPLE.head(2), resume=older).finished == (True, True)


def test_causal_actions_come_back(recourse):
    rule = ceopt.Causal({"debt": LinearEquation({"income": 0.5})}, intervention="soft", slack=0.5)
    space = SPACE.update("debt", mutable=True)
    cohort = Recourse(MODEL, space, target="good", constraints=[rule]).fit(PEOPLE).explain(PEOPLE.head(2))
    again = Cohort.from_json(cohort.to_json())

    assert_same(again, cohort)
    assert list(cohort.changes().columns)[-1] == "why"
    assert again[0][0].actions.to_dict() == cohort[0][0].actions.to_dict()


def test_an_audit_comes_back_with_what_it_lacks(cohort):
    audit = pd.DataFrame(
        {
            "source": pd.Series(["generator", "repaired", "engine", "generator"], dtype=object),
            "ratio": [1.0, np.nan, np.inf, 1.25],
            "valid": [True, False, True, False],
            "broken": pd.Series([(), ("cap", "x"), (), ()], dtype=object),
        }
    )
    with_audit = dataclasses.replace(cohort, results=cohort.results, audit=audit)
    # a table has one line a person then
    with_audit = dataclasses.replace(with_audit, results=tuple(_first(result) for result in cohort))
    again = Cohort.from_json(with_audit.to_json())

    pd.testing.assert_frame_equal(again.audit, audit, check_exact=True)
    assert again.repaired == with_audit.repaired == 0.25
    assert again.to_frame()["source"].tolist() == audit["source"].tolist()


def _first(result):
    return dataclasses.replace(result, counterfactuals=result.counterfactuals[:1])


def test_a_surrogates_report_comes_back(cohort):
    report = SurrogateReport(
        coef=pd.Series({"income": 0.1 + 0.2, "debt": -1.0}), intercept=-0.5, fidelity=1.0, stability=float("nan"),
        worst_case_error=0.25, radius=float("inf"), program_status="optimal", program_gap=0.0, n_queries=7,
    )  # fmt: skip
    results = (dataclasses.replace(cohort[0], surrogate=report, bound=float("nan")), *cohort.results[1:])
    again = Cohort.from_json(dataclasses.replace(cohort, results=results).to_json())

    assert again[0].surrogate.to_mapping()["coef"] == {"income": 0.1 + 0.2, "debt": -1.0}
    assert again[0].surrogate.radius == float("inf")
    assert np.isnan(again[0].surrogate.stability)
    assert np.isnan(again[0].bound)


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(5, 13, 2),
        pd.Index([1.5, 1.5, np.inf, -0.0]),
        pd.Index([("x", 1), ("x", 2), None, "b"], tupleize_cols=False, dtype=object),
        pd.MultiIndex.from_tuples([("x", 1), ("x", 2), ("y", 1), ("y", 1)], names=["who", None]),
        pd.DatetimeIndex(["2024-02-29", "2024-03-01", "2024-03-02", "2024-03-02"], name="day"),
        pd.Index([True, False, True, True]),
        pd.Index(["a", "b", "c", "c"], dtype=object, name="person"),
        pd.Index([7, 8, 9, 9], dtype="Int64"),
        pd.DatetimeIndex(["2024-02-29", "2024-03-31", "2024-04-02", "2024-04-02"], tz="Europe/Berlin"),
        pd.DatetimeIndex(["2024-02-29", None, "2024-03-02", "2024-03-02"]),
        pd.Index([dt.date(2024, 2, 29), dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC), None, "b"], dtype=object),
        pd.PeriodIndex(["2024-02", "2024-03", "2024-04", "2024-04"], freq="M"),
        pd.TimedeltaIndex(["1 days", "2 days 00:00:00.000000005", "3 hours", "3 hours"]),
        pd.CategoricalIndex(["b", "a", "b", "b"], categories=["b", "c", "a"], ordered=True),
    ],
    ids=lambda index: type(index).__name__ + "_" + str(index.dtype),
)
def test_labels_of_any_kind_come_back(cohort, index):
    queries = PEOPLE.set_axis(index)
    results = tuple(
        dataclasses.replace(result, query_id=label) for result, label in zip(cohort, index.tolist(), strict=True)
    )
    labelled = dataclasses.replace(cohort, queries=queries, results=results)
    again = Cohort.from_json(labelled.to_json())

    pd.testing.assert_index_equal(again.queries.index, queries.index, exact="equiv")
    assert again.changes()["query_id"].dtype == labelled.changes()["query_id"].dtype
    for one, other in zip(again, labelled, strict=True):
        assert type(one.query_id) is type(other.query_id)
        assert one.query_id == other.query_id or one.query_id is pd.NaT
        assert repr(one) == repr(other)


def test_rows_that_were_refused_come_back(recourse):
    people = pd.DataFrame({"income": [np.nan, 2.0], "debt": pd.Series(["none", 0], dtype=object)})
    cohort = recourse.explain(people)
    again = Cohort.from_json(cohort.to_json())

    assert [str(result.status) for result in cohort] == ["error", "optimal"]
    assert_same(again, cohort)
    assert recourse.explain(people, resume=again)[1].timings == cohort[1].timings


def test_rows_that_lack_a_category_come_back():
    people = pd.DataFrame({"income": [5, 2, 2], "zone": pd.Categorical([3, None, 1], categories=[3, 1], ordered=True)})
    space = FeatureSpace.infer(people).update("zone", missing=False)
    cohort = Recourse(MODEL, space, target="good").fit(people.dropna()).explain(people)
    again = Cohort.from_json(cohort.to_json())

    assert [str(result.status) for result in cohort] == ["optimal", "error", "optimal"]
    assert_same(again, cohort)


def test_labels_of_several_levels_are_plain_values(recourse):
    index = pd.MultiIndex.from_product([["north"], [1, 2, 3, 4]], names=["region", "place"])
    cohort = recourse.explain(PEOPLE.set_axis(index))

    assert repr(cohort[0]).startswith("('north', 1): optimal")
    assert_same(Cohort.from_json(cohort.to_json()), cohort)


@pytest.mark.parametrize("name", ["time", "float", "pairs", "tuple", "missing"])
def test_an_action_on_a_column_that_is_named_as_a_mark_comes_back(name):
    space = FeatureSpace([Feature(name, kind="integer", lower=0, upper=9), Feature("debt", kind="integer", lower=0)])
    rule = ceopt.Causal({"debt": LinearEquation({name: 1.0})}, intervention="soft")
    person = {name: 1, "debt": 1}
    model = Affine([1.0, 1.0], -7.5, labels=("bad", "good"))
    result = ceopt.explain(model, person, space, target="good", constraints=[rule])
    again = SolutionSet.from_json(result.to_json())

    assert again[0].actions.to_dict() == result[0].actions.to_dict() == {name: 3.0}
    assert again.to_json() == result.to_json()


@pytest.mark.parametrize("name", ["time", "float", "pairs", "tuple", "missing"])
def test_the_rules_that_ask_for_a_column_that_is_named_as_a_mark_come_back(name):
    space = FeatureSpace([Feature(name, kind="integer", lower=0, upper=9), Feature("debt", kind="integer", lower=0)])
    rule = ceopt.Linear({name: 1.0}, ">=", 3.0, name="enough")
    model = Affine([0.0, 1.0], -1.5, labels=("bad", "good"))
    with pytest.warns(RuleWarning, match="enough"):
        result = ceopt.explain(model, {name: 1, "debt": 1}, space, target="good", constraints=[rule])
    again = SolutionSet.from_json(result.to_json())

    assert again[0].asked_by == result[0].asked_by == {name: ("enough",)}
    assert again.to_json() == result.to_json()


# ---- made-up people --------------------------------------------------------------------------------------------------
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ['"quoted"', "two\nlines", "a\\b", "</script>", "{float}", "NaN", "ä€\U0001f600", "\u2028", " "]
)
labels = st.one_of(
    texts, st.integers(-(2**62), 2**62), st.booleans(), st.none(), st.floats(allow_nan=False),
    st.tuples(texts, st.integers(0, 3)), st.datetimes().map(pd.Timestamp),
)  # fmt: skip
COLUMNS = {
    "float64": st.floats(allow_nan=False), "int64": st.integers(-(2**53), 2**53), "bool": st.booleans(),
    "object": texts, "Int64": st.integers(-(2**53), 2**53), "boolean": st.booleans(), "uint8": st.integers(0, 255),
}  # fmt: skip


@st.composite
def cohorts(draw):
    """People with columns of any name and dtype, and results that a search could not make up."""
    names = draw(st.lists(texts.filter(bool), min_size=1, max_size=4, unique=True))
    dtypes = [draw(st.sampled_from(sorted(COLUMNS))) for _ in names]
    people = draw(st.integers(1, 3))
    data = {}
    for name, dtype in zip(names, dtypes, strict=True):
        cells = draw(st.lists(COLUMNS[dtype], min_size=2 * people, max_size=2 * people))
        data[name] = pd.Series(cells, dtype=dtype)
    rows = pd.DataFrame(data)
    index = pd.Index(draw(st.lists(labels, min_size=people, max_size=people)), dtype=object, tupleize_cols=False)
    queries = rows.iloc[:people].set_axis(index)
    features = [_feature(name, rows[name]) for name in names]
    results = []
    for place in range(people):
        reason, bound = draw(texts), draw(st.none() | st.floats())
        answer = Counterfactual(
            values=rows.iloc[[people + place]], cost=draw(st.floats(0, 1e9)), prediction=draw(labels), score=None,
            slack=None, changed=(names[0],), verified=draw(st.booleans()), rank=1, bound=bound, gap=None,
        )  # fmt: skip
        status = draw(st.sampled_from(["optimal", "feasible"]))
        results.append(
            SolutionSet(
                status=status,
                counterfactuals=(answer,),
                factual=queries.iloc[[place]],
                reason=reason,
                bound=bound,
                target=draw(texts),
                query_id=index[place],
                options={"n": 1, "of": draw(texts)},
                timings={"total": 0.5},
                conflict=((draw(texts), draw(texts), draw(st.none() | st.floats(0, 9))),),
            )
        )
    finished = tuple(draw(st.lists(st.booleans(), min_size=people, max_size=people)))
    return Cohort(
        results=tuple(results), queries=queries, space=FeatureSpace(features), options={"n": 1}, finished=finished
    )


def _feature(name, column):
    dtype = str(column.dtype)
    if dtype in {"float64", "int64", "Int64", "uint8"}:
        return Feature(name, kind="continuous", unit=name)
    levels = tuple(dict.fromkeys(column.tolist()))
    if len(levels) < 2:
        levels = (True, False) if dtype != "object" else (*levels, f"{levels[0]}!")
    return Feature(name, kind="categorical", levels=levels, dtype="object")


@draws(120)
@given(cohorts())
def test_a_made_up_cohort_comes_back_bit_for_bit(cohort):
    text = cohort.to_json()
    again = Cohort.from_json(text)

    assert again.to_json() == text
    pd.testing.assert_frame_equal(again.queries, cohort.queries, check_exact=True)
    assert again.queries.index.tolist() == cohort.queries.index.tolist()
    for one, other in zip(again, cohort, strict=True):
        assert (one.reason, one.target, one.status, one.conflict) == (
            other.reason, other.target, other.status, other.conflict
        )  # fmt: skip
        assert one.query_id == other.query_id
        assert type(one.query_id) is type(other.query_id)
        assert one[0].prediction == other[0].prediction
        pd.testing.assert_frame_equal(one.to_frame(), other.to_frame(), check_exact=True)
        assert one.to_frame().dtypes.to_dict() == other.to_frame().dtypes.to_dict()


# ---- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "ceopt solution set"}, 'needs "format": "ceopt cohort" and "version": 1, but the text has others'),
        ({"version": 2}, "Use Cohort.to_json"),
        ({"version": True}, "Use Cohort.to_json"),
        ({"version": "1"}, "Use Cohort.to_json"),
        ({"finished": [True]}, "as many results as rows, but the text has 4 results, 4 rows and 1 marks"),
        ({"finished": [1, 1, 1, 1]}, "a list of true and false as 'finished'"),
        ({"results": {}}, "a list of results as 'results'"),
        ({"results": [{}] * 4}, "every field of a cohort, but the text is damaged"),
        ({"options": []}, "values by name as 'options'"),
        ({"queries": {"columns": 5}}, "a list as 'columns' of a frame"),
        ({"queries": None}, "is damaged"),
        ({"space": {}}, '"format": "ceopt feature space"'),
        ({"space": None}, '"format": "ceopt feature space"'),
        ({"audit": 3}, "is damaged"),
        ({"shared": None}, "is damaged"),
    ],
)
def test_a_cohort_of_another_kind_is_refused_in_a_sentence(cohort, change, message):
    text = json.dumps(json.loads(cohort.to_json()) | change)
    with pytest.raises(CeoptError, match=message) as caught:
        Cohort.from_json(text)
    assert str(caught.value).count("\n") == 0


def test_what_is_no_json_is_refused(cohort, tmp_path):
    with pytest.raises(UnreadableFileError, match=r"Cohort.from_json needs JSON"):
        Cohort.from_json(cohort.to_json()[:-9])
    with pytest.raises(UnreadableFileError, match=r"none\.json"):
        Cohort.from_json(tmp_path / "none.json")
    with pytest.raises(CeoptError, match="it got int"):
        Cohort.from_json(3)
    with pytest.raises(CeoptError, match='"format": "ceopt solution set"'):
        SolutionSet.from_json(cohort.to_json())
    for field in json.loads(cohort.to_json()):
        document = json.loads(cohort.to_json())
        del document[field]
        if field == "ceopt":
            Cohort.from_json(json.dumps(document))
            continue
        with pytest.raises(CeoptError, match="Cohort.from_json|FeatureSpace.from_json"):
            Cohort.from_json(json.dumps(document))


@example(0)
@given(st.integers(0, 10**6))
@draws(150)
def test_any_damage_is_a_sentence_or_is_read(cohort, place):
    document = json.loads(cohort.to_json())
    ways = list(_places(document))
    way = ways[place % len(ways)]
    part = document
    for key in way[:-1]:
        part = part[key]
    part[way[-1]] = [None, True, -5, "x", [], {}, {"float": "x"}, [[1]]][place % 8]
    try:
        again = Cohort.from_json(json.dumps(document))
    except CeoptError:
        return
    assert repr(again)
    again.summary()
    again.to_json()


def _places(part, way=()):
    entries = part.items() if isinstance(part, dict) else enumerate(part)
    for key, inner in entries:
        yield (*way, key)
        if isinstance(inner, dict | list):
            yield from _places(inner, (*way, key))

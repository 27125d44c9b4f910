"""Rules that people break today: warned of once a call, and what they alone ask for is marked wherever it is told."""

from __future__ import annotations

import dataclasses
import json
import warnings

import numpy as np
import pandas as pd
import pytest

import ceopt
from ceopt import (
    AllowedRows,
    AllowedValues,
    Cohort,
    ExactlyOne,
    Feature,
    FeatureSpace,
    Hull,
    IfThen,
    Linear,
    MaxChanges,
    RuleWarning,
    SolutionSet,
)
from ceopt.formulations.predictors import Affine
from ceopt.surrogates import LocalSurrogateRecourse

SPACE = FeatureSpace(
    [
        Feature("income", kind="continuous", lower=0.0, upper=90_000.0, step=100.0, mad=1000.0, unit="euros"),
        Feature("hours", kind="integer", lower=0, upper=60, mad=10.0),
        Feature("job", kind="categorical", levels=(1, 2, 3)),
    ]
)
#: Income counts for it, hours against it.
MODEL = Affine([0.0001, -1.0, 0.0], 20.0, labels=("no", "yes"))
PEOPLE = pd.DataFrame(
    {"income": [40_400.0, 9_000.0, 20_000.0, 30_000.0], "hours": [60, 40, 50, 5], "job": [1, 2, 3, 2]},
    index=list("abcd"),
)
CEILING = Linear({"income": 1}, "<=", 12_000, name="income")
LINE = "Linear({'income': 1}, '<=', 12000, name='income', beyond='no_further')"
ADVICE = f"If they may stay or come nearer, write {LINE}."


def told(call):
    """What a call returns, and the warnings of rules that it gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [str(one.message) for one in caught if issubclass(one.category, RuleWarning)]


def explained(row, *rules, **options):
    return told(lambda: ceopt.explain(MODEL, row, SPACE, target="yes", constraints=rules, **options))


def cohort_of(rules, **options):
    recourse = ceopt.Recourse(MODEL, SPACE, target="yes", constraints=rules).fit(PEOPLE)
    return told(lambda: recourse.explain(PEOPLE, **options))


def test_explain_warns_once_with_the_line_to_write():
    result, warned = explained(PEOPLE.iloc[0], CEILING, MaxChanges(3))

    assert warned == [f"rule 'income': the person is beyond it today, and answers move them. {ADVICE}"]
    assert result.beyond == {"income": LINE}
    # The line is the rule that was meant: nobody is warned, and nobody lowered.
    result, warned = explained(PEOPLE.iloc[0], eval(LINE))  # noqa: S307 - the line itself is what is tested
    assert warned == []
    assert result.beyond == {}
    assert list(result[0].changed) == ["hours"]


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_cohort_warns_once_of_all_whoever_works(n_jobs):
    cohort, warned = cohort_of([CEILING], n_jobs=n_jobs)

    assert warned == [f"rule 'income': 3 of 4 people are beyond it today, and answers move them. {ADVICE}"]
    moves = cohort.changes()
    assert moves[["query_id", "column", "asked_by"]].to_numpy().tolist() == [
        ["a", "income", "income"],
        ["a", "hours", ""],
        ["b", "hours", ""],
        ["c", "income", "income"],
        ["c", "hours", ""],
        # d has the decision and is asked again all the same, for the rule's sake alone.
        ["d", "income", "income"],
    ]


def test_the_marks_are_by_their_definition():
    """A column whose own value, put back, keeps the decision and breaks a rule that the row breaks."""
    rng = np.random.default_rng(0)
    rules = [CEILING, IfThen(("job", "==", 1), ("hours", "<=", 30)), AllowedValues({"hours": range(0, 61, 7)})]
    marks = 0
    for _ in range(30):
        row = {
            "income": float(rng.integers(0, 900)) * 100.0,
            "hours": int(rng.integers(0, 61)),
            "job": int(rng.integers(1, 4)),
        }
        result, _ = explained(row, *rules, n=2)
        home = SPACE.row(row)
        for answer in result:
            expected = {}
            for column in answer.changed:
                back = dict(answer.values) | {column: row[column]}
                values = np.array([[float(back[name]) for name in SPACE.names]])
                point = SPACE.row(back)
                broken = tuple(
                    name
                    for name, rule in zip(("income", "IfThen_2", "AllowedValues_3"), rules, strict=True)
                    if rule.violation(SPACE, home, home) > 0 and rule.violation(SPACE, home, point) > 0
                )
                if broken and MODEL.predict(values)[0] == "yes":
                    expected[column] = broken
            assert answer.asked_by == expected
            marks += len(expected)
    assert marks > 10


@pytest.mark.parametrize(("weight", "is_marked"), [(0.002, True), (1.0, True), (4.0, False)])
def test_what_helps_by_a_hair_is_still_what_the_rule_asks_for(weight, is_marked):
    """At an optimum nothing is to spare: of 22 people whose shares add up to 99.9 one change of 0.1 was marked."""
    space = FeatureSpace(
        [
            Feature("rent", kind="continuous", lower=0.0, upper=100.0, step=0.1, mad=1.0),
            Feature("food", kind="continuous", lower=0.0, upper=100.0, step=0.1, mad=1.0, mutable=False),
            Feature("pay", kind="continuous", lower=0.0, upper=100.0, mad=1.0),
        ]
    )
    model = Affine([weight, 0.0, 1.0], -59.9 * weight - 23.0, labels=("no", "yes"))
    row = pd.DataFrame({"rent": [59.9], "food": [40.0], "pay": [20.0]})
    shares = Linear({"rent": 1, "food": 1}, "==", 100, name="shares")

    result, _ = told(lambda: ceopt.explain(model, row, space, target="yes", constraints=[shares]))

    assert set(result[0].changed) == {"rent", "pay"}
    assert result[0].asked_by == ({"rent": ("shares",)} if is_marked else {})


def test_marks_are_in_tables_sentences_and_files():
    result, _ = explained(PEOPLE.iloc[0], CEILING)
    again = SolutionSet.from_json(result.to_json())
    for one in (result, again):
        assert one.changes()["asked_by"].tolist() == ["income", ""]
        assert "rule income" in repr(one)
        assert one[0].sentences()[0] == (
            "Lower income from 40,400 to 12,000 euros (asked for by the rule “income”, not by the model)"
        )
        assert one[0].sentences("de")[0].endswith("(das verlangt die Regel „income“, nicht das Modell)")
        assert one[0].sentences(templates={"for_rule": "{change} *"})[0] == "Lower income from 40,400 to 12,000 euros *"
        assert one.beyond == {"income": LINE}
    unnamed, _ = explained(PEOPLE.iloc[0], Linear({"income": 1}, "<=", 12_000))
    assert "the rule “income is at most 12,000 euros”" in unnamed[0].sentences()[0]
    # Without marks nothing is added.
    plain, _ = explained(PEOPLE.iloc[1], CEILING)
    assert list(plain.changes().columns) == ["from", "to"]
    assert '"asked_by"' not in plain.to_json()


def test_text_of_an_earlier_version_is_read_without_them():
    document = json.loads(explained(PEOPLE.iloc[0], CEILING)[0].to_json())
    del document["beyond"], document["counterfactuals"][0]["asked_by"]
    old = SolutionSet.from_json(json.dumps(document))
    assert old.beyond == {}
    assert old[0].asked_by == {}


def test_reports_say_how_many_and_mark_what_rules_ask_for(tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    cohort, _ = cohort_of([CEILING])
    Cohort.from_json(cohort.to_json()).report(tmp_path / "people.html")
    cohort.report(tmp_path / "leute.html", language="de")
    cohort[0].report(tmp_path / "a.html")
    people = (tmp_path / "people.html").read_text(encoding="utf-8")
    assert "Rule “income”: 3 of 4 people are beyond it today, and answers move them." in people
    assert people.count("asked for by the rule “income”, not by the model") == 3
    assert "3 von 4 Personen halten sie heute nicht ein" in (tmp_path / "leute.html").read_text(encoding="utf-8")
    assert "Rule “income”: the person is beyond it today" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_every_rule_that_a_row_breaks_is_told_with_its_own_line():
    table = pd.DataFrame({"job": [2, 3], "hours": [10, 15]})
    rules = [
        IfThen(("job", "==", 1), ("hours", "<=", 30), name="if"),
        AllowedRows(["job", "hours"], table, name="rows"),
        AllowedValues({"hours": [10, 15]}, name="steps"),
        CEILING,
    ]
    result, warned = explained(PEOPLE.iloc[0], *rules)
    assert result.status == "optimal"
    assert list(result.beyond) == ["if", "rows", "steps", "income"]
    assert len(warned) == 4
    assert "IfThen(('job', '==', 1), ('hours', '<=', 30), name='if', beyond='no_further')" in warned[0]
    line = "AllowedRows(('job', 'hours'), pandas.DataFrame({'job': [2, 3], 'hours': [10, 15]}), name='rows', "
    assert f"{line}beyond='no_further')" in warned[1]
    assert warned[2].endswith("If they may stay, leave the rule out for them, or make it wider.")


MANY_ROWS = pd.DataFrame({"job": [2, 3] * 20, "hours": range(40)})


@pytest.mark.parametrize(
    "rule",
    [
        Linear({"income": np.float64(1)}, "<=", np.float64(12_000)),
        IfThen(("job", "==", np.int64(1)), ("hours", "<=", np.float64(30))),
        IfThen(("job", "in", [np.int64(1), np.int64(3)]), ("hours", "<=", np.float32(30))),
        AllowedRows(["job", "hours"], MANY_ROWS[:3].astype({"hours": float, "job": "category"})),
        AllowedRows(["hours", "job"], MANY_ROWS[:3].astype(object)),
        AllowedRows(["job", "hours"], MANY_ROWS),
    ],
    ids=["linear", "if", "in", "rows", "objects", "many rows"],
)
def test_the_line_to_write_runs_and_has_plain_numbers(rule):
    result, warned = explained(PEOPLE.iloc[0], rule)
    (line,) = result.beyond.values()
    assert line in warned[0]
    assert "np." not in line
    known = {"Linear": Linear, "IfThen": IfThen, "AllowedRows": AllowedRows, "pandas": pd, "frame": MANY_ROWS}
    again = eval(line, known)  # noqa: S307 - the line that users are told to write
    assert again.beyond == "no_further"
    home = SPACE.row(PEOPLE.iloc[0])
    meant = dataclasses.replace(rule, beyond="no_further")
    for hours, job in ((60, 1), (0, 2), (1, 3), (2, 2), (50, 1)):
        other = SPACE.row({"income": 20_000.0, "hours": hours, "job": job})
        assert again.violation(SPACE, home, other) == meant.violation(SPACE, home, other)


def test_a_row_with_two_colours_is_told():
    space = FeatureSpace([Feature(name, kind="binary", levels=(0, 1)) for name in ("red", "blue")])
    _, warned = told(
        lambda: ceopt.explain(
            Affine([1.0, 2.0], -2.5, labels=("yes", "no")), {"red": 1, "blue": 1}, space, target="yes",
            constraints=[ExactlyOne(["red", "blue"], name="colour")],
        )
    )  # fmt: skip
    assert len(warned) == 1
    assert warned[0] == (
        "rule 'colour': the person is beyond it today, and answers move them. "
        "If they may stay, leave the rule out for them."
    )


def test_where_nobody_has_an_answer_nobody_is_said_to_be_moved():
    fixed = SPACE.update(["hours", "income"], mutable=False)
    recourse = ceopt.Recourse(MODEL, fixed, target="yes", constraints=[CEILING]).fit(PEOPLE)
    _, warned = told(lambda: recourse.explain(PEOPLE))
    assert len(warned) == 1
    assert "3 of 4 people are beyond it today, and an answer would move them." in warned[0]


def test_rules_that_are_learned_are_broken_by_nature_and_not_told():
    near = PEOPLE.assign(hours=[10, 12, 15, 5])
    result, warned = explained(PEOPLE.iloc[0], Hull(), data=pd.concat([PEOPLE, near]))
    assert result.status == "optimal"
    assert warned == []
    assert result.beyond == {}


def test_a_black_box_is_told_alike():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"income": rng.integers(0, 900, 300) * 100.0, "hours": rng.integers(0, 61, 300), "job": 1})

    def decide(frame):
        return np.where(0.0001 * frame["income"] - frame["hours"] + 20.0 > 0.0, "yes", "no")

    result, warned = told(
        lambda: ceopt.explain(
            decide, PEOPLE.iloc[0], SPACE, target="yes", constraints=[CEILING], data=data,
            surrogate=LocalSurrogateRecourse(), cost="l1",
        )
    )  # fmt: skip
    assert result.status == "feasible"
    assert len(warned) == 1
    assert result[0].asked_by == {"income": ("income",)}


def test_silence_is_one_line():
    assert issubclass(RuleWarning, ceopt.SpaceWarning)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", RuleWarning)
        ceopt.explain(MODEL, PEOPLE.iloc[0], SPACE, target="yes", constraints=[CEILING])
    assert not caught

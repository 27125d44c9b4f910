"""Why people have no way out: the conflicts of a cohort against trying everything, asked about once for those alike."""

from __future__ import annotations

import html
import itertools
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest

import ceopt
from ceopt import Cohort, Feature, FeatureSpace, Linear, MaxChanges, Recourse
from ceopt import population as conflicts
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.population import seconds_for_conflicts
from ceopt.report import HEADINGS
from ceopt.search import side_by_side
from ceopt.search.conflict import Conflict
from ceopt.search.prepare import prepare
from ceopt.settings import Settings
from ceopt.words import in_words

LABELS = ("no", "yes")
SPACE = FeatureSpace(
    [
        Feature("income", kind="integer", lower=0, upper=6, unit="k$"),
        Feature("savings", kind="integer", lower=0, upper=4),
        Feature("age", kind="integer", lower=2, upper=5, mutable=False),
        Feature("school", kind="ordinal", levels=("low", "mid", "high"), direction="increasing"),
        Feature("owner", kind="binary", levels=(False, True)),
    ]
)
#: Yes from income + savings + age + school + 2 [owner] = 15 on; at most 19 are in reach.
LINEAR = Affine([1.0, 1.0, 1.0, 1.0, 2.0], -14.5, labels=LABELS)
#: The same decision, cut out by trees: yes where the owner of age 4 and more earns 5, or where anybody saves 4.
TREES = TreeEnsemble(
    [
        {
            "feature": 4, "threshold": 0.5, "left": {"value": 0.0},
            "right": {"feature": 2, "threshold": 3.5, "left": {"value": 0.0}, "right": {
                "feature": 0, "threshold": 4.5, "left": {"value": 0.0}, "right": {"value": 1.0}}},
        },
        {"feature": 1, "threshold": 3.5, "left": {"value": 0.0}, "right": {"value": 1.0}},
        {"value": -0.5},
    ],
    labels=LABELS,
)  # fmt: skip
LESS = Linear({"income": 1.0}, "<=", 3.0, name="less")
SAVED = Linear({"savings": 1.0, "income": -1.0}, "<=", 0.0, name="saved")
TENANTS = Linear({"owner": 1.0}, "<=", 0.0, name="tenants")
FEW = MaxChanges(2, name="few")
PEOPLE = pd.DataFrame(
    {
        "income": [2, 2, 0, 1, 3, 6, 0],
        "savings": [0, 0, 1, 0, 2, 4, 0],
        "age": [2, 2, 2, 3, 5, 5, 2],
        "school": ["low", "low", "low", "high", "mid", "high", "low"],
        "owner": [False, False, False, False, True, True, True],
    },
    index=["ann", "bea", "cai", "dan", "eve", "fay", "gus"],
)


def explained(model: Any = LINEAR, rules: Any = (LESS, SAVED, TENANTS), people: Any = PEOPLE, **options: Any) -> Cohort:
    return Recourse(model, SPACE, target="yes", constraints=rules, **options).fit(PEOPLE).explain(people)


# ---- by trying everything: shares no code with the search -----------------------------------------------------------
def reached(model: Any, row: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """Return every point that the person can become and the model accepts, as coordinates."""
    school = SPACE["school"].levels.index(row["school"])
    columns = [range(7), range(5), [row["age"]], range(school, 3), range(2)]
    points = np.array(list(itertools.product(*columns)), dtype=float)
    return points[model.score(points) > 0.0]


def home(row: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    school = SPACE["school"].levels.index(row["school"])
    return np.array([row["income"], row["savings"], row["age"], school, row["owner"]], dtype=float)


def off(rule: Any, row: Mapping[str, Any], points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return by how much each point breaks a rule."""
    if isinstance(rule, MaxChanges):
        return np.maximum((points != home(row)).sum(axis=1) - rule.k, 0.0)
    total = sum(a * points[:, SPACE.names.index(name)] for name, a in rule.coefficients.items())
    return np.maximum(total - rule.rhs if rule.sense == "<=" else rule.rhs - total, 0.0)


def require_right(result: Any, model: Any, row: Mapping[str, Any], rules: Any) -> None:
    """The rules named leave nothing, any of them less leaves something, and each width is the least that does."""
    points = reached(model, row)
    broken = {rule.name: off(rule, row, points) for rule in rules}
    named = [name for name, _, _ in result.conflict]
    assert len(points), "the space leaves something"
    assert named, result.reason
    assert not kept(broken, named).any()
    for name, _, width in result.conflict:
        assert kept(broken, [other for other in named if other != name]).any()
        amounts = broken[name][kept(broken, [other for other in broken if other != name])]
        assert width == pytest.approx(amounts.min()) if len(amounts) else width is None


def kept(broken: Mapping[str, np.ndarray[Any, Any]], names: Any) -> np.ndarray[Any, Any]:
    every = np.ones(len(next(iter(broken.values()))), dtype=bool)
    for name in names:
        every &= broken[name] <= 0.0
    return every


@pytest.mark.parametrize("model", [LINEAR, TREES], ids=["linear", "trees"])
@pytest.mark.parametrize("rules", [(LESS, SAVED, TENANTS), (FEW, TENANTS, LESS), (MaxChanges(1, name="few"), SAVED)])
def test_each_person_has_the_conflict_that_enumeration_has(model: Any, rules: Any) -> None:
    cohort = explained(model, rules, why=60.0)
    asked = 0
    for result, (_, row) in zip(cohort, PEOPLE.iterrows(), strict=True):
        points = reached(model, row)
        broken = {rule.name: off(rule, row, points) for rule in rules}
        assert (result.status == "infeasible") == (not kept(broken, broken).any()), row
        if result.status == "infeasible":
            require_right(result, model, row, rules)
            assert "In conflict: " in result.reason
            asked += 1
    assert (asked > 1) == (model is LINEAR or FEW not in rules)


def test_the_space_is_to_blame_where_no_rule_is() -> None:
    result = explained(rules=(FEW,), people=PEOPLE.assign(income=0, savings=0, owner=False))
    held = Recourse(LINEAR, SPACE.update("income", upper=2), target="yes").fit(PEOPLE.head(4)).explain(PEOPLE.head(2))

    assert {name for name, _, _ in result[0].conflict} == {"few"}
    assert held[0].conflict[0][0] == "income: at most 2"
    assert "income: at most 2 (3 wider would do)" in held[0].reason
    assert held[0].conflict == held[1].conflict


# ---- asked once ------------------------------------------------------------------------------------------------------
@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the labels of the people about whom a conflict was asked, and the seconds for each."""
    labels = list[Any]()
    inner = conflicts.conflict_or_answer

    def counted(prepared: Any, row: Any, *, query_id: Any, seconds: float) -> Any:
        labels.append((query_id, seconds))
        return inner(prepared, row, query_id=query_id, seconds=seconds)

    monkeypatch.setattr(conflicts, "conflict_or_answer", counted)
    return labels


def test_people_with_the_same_reach_are_asked_about_once(asked: list[Any]) -> None:
    """Ann, Bea, Cai and Gus may become the same; what they are today, no rule and no program asks."""
    cohort = explained()

    assert [str(result.status) for result in cohort][:4] == ["infeasible"] * 4
    assert len(asked) == 4
    assert {label for label, _ in asked} & {"ann", "bea", "cai", "gus"}
    assert {"dan", "eve", "fay"} < {label for label, _ in asked}
    assert cohort[0].conflict == cohort[1].conflict == cohort[2].conflict == cohort[6].conflict
    assert cohort[0].reason == cohort[2].reason


def test_the_one_with_the_least_margin_is_asked_for_all(asked: list[Any]) -> None:
    """What nothing reaches with a margin, nothing reaches with more; the nearer to the decision, the less it is."""
    space = FeatureSpace([Feature("income", kind="continuous", lower=0, upper=6)])
    people = pd.DataFrame({"income": [2.0, 3.0, 2.5]}, index=["far", "near", "between"])
    recourse = Recourse(Affine([1.0], -3.5, labels=LABELS), space, target="yes", constraints=[LESS]).fit(people)
    cohort = recourse.explain(people)

    assert cohort[1].margin < cohort[2].margin < cohort[0].margin
    assert [label for label, _ in asked] == ["near"]
    assert [name for name, _, _ in cohort[0].conflict] == ["less"]
    assert cohort[0].conflict == cohort[1].conflict == cohort[2].conflict


def test_who_differs_in_what_a_rule_reads_is_asked_about_apart(asked: list[Any]) -> None:
    """How much one changes depends on where one stands: only Ann and Bea stand in the same place."""
    explained(rules=(FEW, TENANTS, LESS))

    labels = [label for label, _ in asked]
    assert len(labels) == len(set(labels)) == 6
    assert len({"ann", "bea"} & set(labels)) == 1


def test_a_number_that_steps_go_out_from_is_seen(asked: list[Any]) -> None:
    space = FeatureSpace([Feature("a", kind="integer", lower=0, upper=9, step=3)])
    people = pd.DataFrame({"a": [0, 3, 3]})
    cohort = Recourse(Affine([1.0], -9.5, labels=LABELS), space, target="yes").fit(people).explain(people)

    assert len(asked) == 2
    for result, value in zip(cohort, [0, 3, 3], strict=True):
        sentences = [sentence for _, sentence, _ in result.conflict]
        assert sentences[0] == "a must be at most 9"
        assert sentences[1:] in ([], [f"a moves in steps of 3 from {value}"])


# ---- seconds ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("why", "limit", "rows", "total", "seconds", "kept"),
    [
        (True, 60.0, 1, None, 3.0, 3.0),
        (True, 60.0, 300, None, 10.0, 10.0),
        (True, 60.0, 300, 40.0, 2.0, 2.0),
        (True, 0.1, 10, 40.0, 0.05, 0.05),
        (False, 60.0, 300, 40.0, 0.0, 0.0),
        (0, 60.0, 300, 40.0, 0.0, 0.0),
        (7.0, 60.0, 300, None, 7.0, 7.0),
        (7.0, 60.0, 300, 40.0, 7.0, 2.0),
    ],
)
def test_the_seconds_for_all_rows(why: Any, limit: float, rows: int, total: Any, seconds: float, kept: float) -> None:
    prepared = prepare(LINEAR, SPACE, Settings(target="yes", why=why, time_limit_s=limit))

    assert seconds_for_conflicts(prepared, rows, total) == pytest.approx((seconds, kept))


def test_nobody_is_asked_where_why_is_false(asked: list[Any]) -> None:
    cohort = explained(why=False)

    assert asked == []
    assert cohort[0].conflict == ()
    assert "With why=True the rules in conflict are looked for." in cohort[0].reason


class Clock:
    """Each search for a conflict takes some seconds, or all that it may."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.now = 100.0
        self.given = list[float]()
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

        def found(prepared: Any, row: Any, *, query_id: Any, seconds: float, needs: float = seconds) -> Any:
            self.given.append(seconds)
            self.now += min(seconds, needs)
            return Conflict((("rule", "says", None),), f"In conflict: {query_id}."), {}

        monkeypatch.setattr(conflicts, "conflict_or_answer", found)


def test_a_hard_conflict_cannot_take_all_seconds_and_who_is_left_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    people = pd.concat([PEOPLE.iloc[:1]] * 12, ignore_index=True)
    people["income"] = [0, 1, 2, 3] * 3
    people["savings"] = [0] * 4 + [1] * 4 + [2] * 4
    clock = Clock(monkeypatch, 1e9)
    cohort = explained(rules=(FEW, TENANTS, LESS), people=people, why=8.0)

    assert clock.given[:3] == [4.0, 2.0, 1.0]
    assert sum(clock.given) <= 8.0
    late = [result for result in cohort if not result.conflict]
    assert late
    for result in late:
        assert result.status == "infeasible"
        assert "are not known: the time for the conflicts of all people was used up before." in result.reason
        assert "With why=True" not in result.reason
        assert any("Zeit für die Widersprüche" in text for text in in_words(result, "de").reasons)


def test_the_limit_of_all_rows_holds_for_conflicts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 1e9)
    recourse = Recourse(LINEAR, SPACE, target="yes", constraints=[LESS, TENANTS], why=50.0).fit(PEOPLE)
    recourse.explain(PEOPLE, total_time_limit_s=20.0)

    assert 0.0 < sum(clock.given) <= 20.0


# ---- kept, shared, lost ----------------------------------------------------------------------------------------------
def test_resume_keeps_the_conflicts_and_looks_for_those_that_are_missing(asked: list[Any]) -> None:
    silent = explained(why=False)
    recourse = Recourse(LINEAR, SPACE, target="yes", constraints=[LESS, SAVED, TENANTS]).fit(PEOPLE)
    told = recourse.explain(PEOPLE, resume=Cohort.from_json(silent.to_json()))
    assert len(asked) == 4
    assert [result.conflict for result in told] == [result.conflict for result in explained()]
    assert [result.reason for result in told] == [result.reason for result in explained()]

    asked.clear()
    again = recourse.explain(PEOPLE, resume=Cohort.from_json(told.to_json()))
    assert asked == []
    assert [result.conflict for result in again] == [result.conflict for result in told]
    assert [in_words(result, "de") for result in again] == [in_words(result, "de") for result in told]


def test_an_interrupt_keeps_what_is_found_and_resume_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = conflicts.conflict_or_answer
    calls = list[Any]()

    def second_is_interrupted(*args: Any, **words: Any) -> Any:
        calls.append(words["query_id"])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return inner(*args, **words)

    monkeypatch.setattr(conflicts, "conflict_or_answer", second_is_interrupted)
    cohort = explained()
    without = [result for result in cohort if result.status == "infeasible" and not result.conflict]
    assert all(cohort.finished)
    assert len(without) == 3
    assert "not known: the work was interrupted before." in without[0].reason

    recourse = Recourse(LINEAR, SPACE, target="yes", constraints=[LESS, SAVED, TENANTS]).fit(PEOPLE)
    whole = recourse.explain(PEOPLE, resume=cohort)
    assert all(result.conflict for result in whole if result.status == "infeasible")
    assert len(calls) == 5


def test_where_an_interrupt_ends_the_answers_no_conflict_is_looked_for(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = side_by_side.search_in_parts

    def third_is_interrupted(*args: Any, query_id: Any, **words: Any) -> Any:
        if query_id == "cai":
            raise KeyboardInterrupt
        return inner(*args, query_id=query_id, **words)

    with monkeypatch.context() as patch:
        patch.setattr(side_by_side, "search_in_parts", third_is_interrupted)
        cohort = explained()
    assert asked == []
    assert cohort.finished == (True, True, *[False] * 5)
    recourse = Recourse(LINEAR, SPACE, target="yes", constraints=[LESS, SAVED, TENANTS]).fit(PEOPLE)
    whole = recourse.explain(PEOPLE, resume=Cohort.from_json(cohort.to_json()))
    assert [result.conflict for result in whole] == [result.conflict for result in explained()]


def test_what_fails_in_the_search_is_said_and_the_proof_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any, **words: Any) -> Any:
        raise ValueError("no such luck.")

    monkeypatch.setattr(conflicts, "conflict_or_answer", fails)
    cohort = explained()

    assert cohort[0].status == "infeasible"
    assert cohort[0].conflict == ()
    assert cohort[0].reason.endswith("The rules in conflict are not known: no such luck.")


@pytest.mark.usefixtures("by_program")
def test_an_answer_that_a_proof_overlooked_is_its_own_and_the_others_are_asked() -> None:
    """A row of a million is kept to within one, which a solver's absolute tolerance is not."""
    space = FeatureSpace([Feature("income", kind="continuous", lower=0, upper=4e6, mad=1.0)])
    model = Affine([1.0], -1_000_000.5, labels=LABELS)
    people = pd.DataFrame({"income": [10.0, 20.0]})
    cap = Linear({"income": 1.0}, "<=", 1e6)
    cohort = Recourse(model, space, target="yes", constraints=[cap]).fit(people).explain(people)

    assert [str(result.status) for result in cohort] == ["feasible", "feasible"]
    assert [result.query_id for result in cohort] == [0, 1]
    for result in cohort:
        assert 1_000_000.5 < result[0].values["income"] <= 1_000_001.0
        assert result.options["time_limit_s"] == 60.0
        assert result.space is cohort.space


def test_processes_share_the_work_and_find_the_same() -> None:
    alone = explained(rules=(FEW, TENANTS, LESS))
    recourse = Recourse(LINEAR, SPACE, target="yes", constraints=[FEW, TENANTS, LESS]).fit(PEOPLE)
    with joblib.parallel_config(backend="threading"):
        together = recourse.explain(PEOPLE, n_jobs=2)

    assert [result.conflict for result in together] == [result.conflict for result in alone]
    assert any(result.conflict for result in alone)


@pytest.mark.long
def test_other_processes_find_the_same() -> None:
    alone = explained(rules=(FEW, TENANTS, LESS))
    recourse = Recourse(LINEAR, SPACE, target="yes", constraints=[FEW, TENANTS, LESS]).fit(PEOPLE)
    together = recourse.explain(PEOPLE, n_jobs=2)

    assert [result.conflict for result in together] == [result.conflict for result in alone]
    assert [result.reason for result in together] == [result.reason for result in alone]


def test_seconds_of_the_search_are_part_of_the_timings(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(prepared: Any, row: Any, *, query_id: Any, seconds: float) -> Any:
        return Conflict((), "So."), {"solve": 7.0, "total": 9.0}

    monkeypatch.setattr(conflicts, "conflict_or_answer", found)
    cohort = explained()

    assert sum(result.timings["total"] > 9.0 for result in cohort) == 4
    assert cohort.summary().seconds > 36.0


# ---- said ------------------------------------------------------------------------------------------------------------
def test_the_summary_says_what_would_have_to_give_for_how_many() -> None:
    cohort = explained()
    groups = cohort.summary().conflicts

    assert list(groups.columns) == ["conflict", "people", "rule", "sentence", "helped", "least", "most"]
    infeasible = [result for result in cohort if result.status == "infeasible"]
    assert groups.drop_duplicates("conflict")["people"].sum() == len(infeasible)
    assert groups["people"].is_monotonic_decreasing
    for _, rows in groups.groupby("conflict"):
        same = [one for one in infeasible if [entry[0] for entry in one.conflict] == rows["rule"].tolist()]
        assert len(same) == rows["people"].iloc[0]
        for place, row in enumerate(rows.to_dict("records")):
            widths = [one.conflict[place][2] for one in same if one.conflict[place][2] is not None]
            assert row["helped"] == len(widths)
            if widths:
                assert (row["least"], row["most"]) == (min(widths), max(widths))
    text = repr(cohort.summary())
    assert "in conflict" in text
    assert f"{groups['people'].iloc[0]} people: " in text
    assert "wider would do" in text
    assert any(str(name).startswith("in conflict ") for name in cohort.summary().to_frame().index)


def test_names_are_shown_escaped_in_the_summary() -> None:
    named = Linear({"income": 1.0}, "<=", 3.0, name="less\x1b]0;mine\x07")
    summary = explained(rules=(named, TENANTS)).summary()

    assert "less\\x1b]0;mine" in repr(summary)
    assert "\x1b" not in repr(summary)


@pytest.mark.parametrize("language", ["en", "de"])
def test_what_differs_by_person_is_said_once_with_its_range(tmp_path: Any, language: str) -> None:
    """Each is held at another age, and needs another income."""
    people = PEOPLE.assign(school="high", owner=True, savings=4, income=0)
    space = SPACE.update("income", mutable=False).update("savings", mutable=False)
    cohort = Recourse(LINEAR, space, target="yes").fit(people).explain(people)
    groups = cohort.summary().conflicts

    assert set(groups["people"]) == {7}
    assert (groups["conflict"] == 1).all()
    assert groups.set_index("rule")["sentence"]["income: fixed"] == "income must stay 0"
    assert "age: fixed" in set(groups["rule"])
    assert groups.set_index("rule")["sentence"]["age: fixed"] is None
    widths = groups.set_index("rule").loc["income: fixed", ["helped", "least", "most"]].tolist()
    assert widths == [7, 2.0, 5.0]
    assert "income: fixed (2 to 5 wider would do)" in repr(cohort.summary())

    cohort.report(tmp_path / "a.html", language=language)
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    proved = text[text.index(f"<h2>{HEADINGS[language]['proved_none']}") :]
    ages = set(re.findall(r"<p>(age .*? \d)\b", text))
    assert {"en": "<li>age stays as it is", "de": "<li>age bleibt, wie es ist"}[language] in proved
    assert len(ages) == 3, "each person's line has that person's age"
    assert {"en": "wider by 2 to 5 k$)", "de": "um 2 bis 5 k$ weiter gäbe es für 7"}[language] in proved


def test_failures_and_frame_give_each_persons_own_reason() -> None:
    cohort = explained()

    for result, reason in zip(
        (one for one in cohort if one.status == "infeasible"), cohort.failures()["reason"], strict=True
    ):
        assert "In conflict: " in reason
        assert all(name in reason for name, _, _ in result.conflict)
    table = cohort.to_frame()
    assert table.loc[("ann", 0), "reason"] == cohort[0].reason


def test_nobody_without_a_way_has_no_conflicts() -> None:
    cohort = explained(rules=())
    summary = replace(cohort, results=cohort.results[5:6], queries=PEOPLE.iloc[5:6], finished=(True,)).summary()

    assert len(summary.conflicts) == 0
    assert "in conflict" not in repr(summary)


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_report_names_each_conflict_once_for_all_whom_it_concerns(tmp_path: Any, language: str) -> None:
    cohort = explained()
    cohort.report(tmp_path / "a.html", language=language)
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    say = HEADINGS[language]
    proved = text[text.index(f"<h2>{say['proved_none']}") : text.index(f"<h2>{say['no_answer']}")]

    groups = cohort.summary().conflicts
    assert proved.count("<tr><td>") == groups["conflict"].nunique()
    assert "<td>ann, bea, cai" in proved
    own = in_words(cohort[0], language)
    assert own.conflict
    for line in own.conflict:
        assert html.escape(line) in proved
    assert text.count(own.conflict_head) >= 4, "each person's line says it too"


def test_many_who_have_the_same_are_counted(tmp_path: Any) -> None:
    cohort = explained()
    many = replace(
        cohort,
        results=tuple(replace(cohort[0], query_id=label) for label in range(40)),
        queries=PEOPLE.iloc[[0] * 40].set_axis(range(40)),
        finished=(True,) * 40,
    )
    many.report(tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")

    assert "<summary>40 people</summary>" in text
    assert "40 people: " in repr(many.summary())


def test_explain_and_a_cohort_say_the_same_of_one_person() -> None:
    cohort = explained()
    for place in (0, 3):
        one = ceopt.explain(
            LINEAR, PEOPLE.iloc[place], SPACE, target="yes", constraints=[LESS, SAVED, TENANTS], data=PEOPLE
        )
        assert one.conflict == cohort[place].conflict
        assert one.reason == cohort[place].reason

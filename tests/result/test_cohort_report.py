"""The report of a cohort: each person once, proof kept apart from no answer, small and quick for many people."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from typer.testing import CliRunner

import ceopt
from ceopt import Feature, FeatureSpace
from ceopt.cli.commands import app
from ceopt.formulations.predictors import Affine
from ceopt.report import HEADINGS

SPACE = FeatureSpace(
    [
        Feature("income", kind="integer", lower=0, upper=90, mad=2.0, unit="k$"),
        Feature("age", kind="integer", lower=18, upper=99, mutable=False),
    ]
)
PEOPLE = pd.DataFrame({"income": [10, 20, 80, 30], "age": [30, 99, 40, 50]}, index=["ann", "bob", "eve", "<b>kim</b>"])


@pytest.fixture(scope="module")
def cohort():
    model = Affine([1.0, -1.0], -4.5, labels=("no", "yes"))
    recourse = ceopt.Recourse(model, SPACE, target="yes", constraints=[ceopt.MaxChanges(1)]).fit(PEOPLE)
    found = recourse.explain(PEOPLE)
    late = replace(found[3], status="time_limit", counterfactuals=(), reason="The time was up.")
    return replace(found, results=(*found.results[:3], late))


def written(cohort, path, **given):
    cohort.report(path, **given)
    return path.read_text(encoding="utf-8")


def between(text, first, second):
    return text[text.index(f"<h2>{first}") : text.index(f"<h2>{second}")]


def test_each_person_has_a_line_and_proof_stands_apart(cohort, tmp_path):
    say = HEADINGS["en"]
    text = written(cohort, tmp_path / "a.html")
    proved = between(text, say["proved_none"], say["no_answer"])
    unproved = between(text, say["no_answer"], say["rules"])

    assert [str(result.status) for result in cohort] == ["optimal", "infeasible", "already_favourable", "time_limit"]
    assert text.count("<tr><td>ann</td>") == 1
    assert "Raise income from 10 to 35 k$" in text
    assert "<td>bob</td>" in proved
    assert "kim" not in proved
    assert "<td>&lt;b&gt;kim&lt;/b&gt;</td>" in unproved
    assert "bob" not in unproved
    assert "<b>kim" not in text


def test_rules_that_bound_are_counted(cohort, tmp_path):
    say = HEADINGS["en"]
    text = written(cohort, tmp_path / "a.html")

    assert "1 of 1 first ways just keep: at most 1 feature may change" in between(
        text, say["bound_rules"], say["sources"]
    )


def test_labels_and_limits_of_columns_are_told(tmp_path):
    model = Affine([1.0, -1.0], -4.5, labels=("no", "yes"))
    limited = SPACE.update("income", label="yearly <income>", max_up="20%", upper=25)
    found = ceopt.Recourse(model, limited, target="yes").fit(PEOPLE).explain(PEOPLE)
    say = HEADINGS["en"]
    columns = between(written(found, tmp_path / "a.html"), say["limits_of_columns"], say["bound_rules"])
    german = written(found, tmp_path / "b.html", language="de")
    plain = written(ceopt.Recourse(model, SPACE, target="yes").fit(PEOPLE).explain(PEOPLE), tmp_path / "c.html")

    assert "yearly &lt;income&gt;" in columns
    assert "rises by at most 20% of what it is today; at least 0 k$" in columns
    assert "at most 25 k$ (2 of 4 people are beyond it today, and may stay or come nearer)" in columns
    assert "stays as it is" in columns
    assert "steigt um höchstens 20 % dessen, was es heute ist" in german
    assert f"<th>{say['called']}</th>" not in plain


def test_costs_sort_as_numbers_and_no_cost_is_empty(cohort, tmp_path):
    text = written(cohort, tmp_path / "a.html")

    assert f'data-value="{cohort[0][0].cost!r}"' in text
    assert text.count('data-value=""') == 3


def test_the_german_report_says_the_same(cohort, tmp_path):
    text = written(cohort, tmp_path / "a.html", language="de", title="Anträge")

    assert "<h1>Anträge</h1>" in text
    assert "income von 10 auf 35 k$ erhöhen" in text
    assert HEADINGS["en"]["people"] not in text
    assert "Was die besten Wege kosten" in text
    assert "What the best answers cost" not in text


def test_nobody_has_a_report(cohort, tmp_path):
    none = replace(cohort, results=(), queries=PEOPLE.head(0), finished=())

    assert HEADINGS["en"]["nobody"] in written(none, tmp_path / "a.html")


@pytest.mark.long
def test_a_thousand_people_fit_in_five_megabytes(cohort, tmp_path):
    places = [place % 4 for place in range(1000)]
    many = replace(
        cohort,
        results=tuple(replace(cohort[place], query_id=label) for label, place in enumerate(places)),
        queries=PEOPLE.iloc[places].set_axis(range(1000)),
        finished=(True,) * 1000,
    )

    assert len(written(many, tmp_path / "a.html")) < 1_000_000


def test_the_command_writes_what_the_method_writes(cohort, tmp_path):
    cohort.to_json(tmp_path / "people.json")
    cohort[0].to_json(tmp_path / "ann.json")
    (tmp_path / "lines.json").write_text("".join(f"{result.to_json()}\n" for result in cohort))
    for name in ("people", "ann", "lines"):
        run = CliRunner().invoke(app, ["report", str(tmp_path / f"{name}.json"), str(tmp_path / f"{name}.html")])
        assert run.exit_code == 0, run.output

    assert (tmp_path / "people.html").read_text() == written(cohort, tmp_path / "again.html")
    assert (tmp_path / "ann.html").read_text() == written(cohort[0], tmp_path / "again.html")
    assert (tmp_path / "lines.html").read_text().count("<td>bob</td>") == 2


@pytest.mark.parametrize(
    ("text", "says"), [("{", "JSON"), ('{"format": "other"}', "SolutionSet.from_json"), ("{}\n{}\n", "SolutionSet")]
)
def test_the_command_refuses_other_files_in_a_sentence(tmp_path, text, says):
    (tmp_path / "a.json").write_text(text)
    run = CliRunner().invoke(app, ["report", str(tmp_path / "a.json"), str(tmp_path / "a.html")])

    assert run.exit_code == 2
    assert says in run.stderr
    assert not (tmp_path / "a.html").exists()

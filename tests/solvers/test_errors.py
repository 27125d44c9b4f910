"""Control characters of strangers' names and levels: shown as they are written, wherever text is shown to a person."""

from __future__ import annotations

import json
import pickle
import warnings

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

import ceopt
import ceopt.dice as dice_ml
from ceopt import CeoptError, Feature, FeatureSpace, Linear, SolutionSet, formulations
from ceopt.cli.commands import app
from ceopt.dice.explanations import say
from ceopt.formulations.predictors import Affine
from ceopt.solvers.errors import printable

#: One of each kind: a title set, a screen cleared, a line forged, a line overwritten, DEL, C1's CSI, an override of
#: direction, an isolate, a mark of direction, a separator of lines, one of paragraphs, and markup of Rich.
ESCAPES = "\x1b]0;mine\x07\x1b[2J\nok\r\t\x7f\x9b2J\x85\u202e\u2066\u200f\u2028\u2029[bold red]"
COLUMN = f"income{ESCAPES}"
OTHER = f"job{ESCAPES}"
LEVELS = (f"cook{ESCAPES}", f"nurse{ESCAPES}")
LABELS = (f"no{ESCAPES}", f"yes{ESCAPES}")
UNIT = f"euros{ESCAPES}"
SPACE = FeatureSpace(
    [
        Feature(COLUMN, kind="integer", lower=0, upper=9, unit=UNIT),
        Feature(OTHER, kind="binary", levels=LEVELS),
    ]
)
MODEL = Affine([1.0, 0.0], -3.5, labels=LABELS)
ROW = {COLUMN: 2, OTHER: LEVELS[0]}


def is_shown(text: str, *, lines: bool = True) -> bool:
    """Tell whether a terminal shows all of a text: no character of it is obeyed but the line feeds of its own lines."""
    kept = {" ", "\n"} if lines else {" "}
    return all(letter.isprintable() or letter in kept for letter in text) and "[bold red]" in text


def assert_shown(text: str, *, lines: bool = True) -> None:
    assert is_shown(text, lines=lines), ascii(text)
    assert r"\x1b]0;mine\x07\x1b[2J\nok\r\t\x7f\x9b2J\x85\u202e\u2066\u200f\u2028\u2029" in text
    assert "\nok" not in text  # a line that a name would forge


@pytest.fixture(scope="module")
def asked():
    return ceopt.explain(MODEL, ROW, SPACE, target=LABELS[1], constraints=[Linear({COLUMN: 1}, "<=", 8, name=OTHER)])


@pytest.fixture(scope="module")
def conflict():
    """No answer, for two rules and a column that is fixed."""
    rules = [Linear({COLUMN: 1}, "<=", 3, name=f"rule{ESCAPES}")]
    return ceopt.explain(MODEL, ROW, SPACE, target=LABELS[1], constraints=rules)


def test_each_character_that_is_obeyed_or_hidden_is_shown_and_nothing_else_changes():
    kinds = [*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x2070)]
    for code in [*kinds, 0xFEFF, 0xD800, 0xDFFF]:
        shown = printable(f"a{chr(code)}b")
        assert shown == f"a{repr(chr(code))[1:-1]}b"
        assert shown.isprintable()
        assert printable(shown) is shown
        assert json.loads(printable(f'"{chr(code)}"', as_json=True)) == chr(code)
    for text in ("", "Größe 5 € 年収", "a\\x1b", "🧑\u200d🌾 [red]", "1\u00a0000"):
        assert printable(text) is text
    assert printable("a\nb\x1b", keep="\n") == "a\nb\\x1b"


def test_errors_show_them_and_still_cross_a_process():
    error = CeoptError("explain", "a level", f"{COLUMN} is unknown", "Check.")
    assert_shown(str(error), lines=False)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    for ask in (
        lambda: SPACE["absent"],
        lambda: ceopt.explain(MODEL, {COLUMN: float("nan"), OTHER: LEVELS[0]}, SPACE, target=LABELS[1]),
        lambda: ceopt.explain(MODEL, {COLUMN: 2, OTHER: "absent"}, SPACE, target=LABELS[1]),
        lambda: ceopt.explain(MODEL, {COLUMN: 2}, SPACE, target=LABELS[1]),
        lambda: ceopt.explain(MODEL, ROW, SPACE, target="absent"),
        lambda: FeatureSpace.infer(pd.DataFrame({COLUMN: [1.0, float("inf")]})),
    ):
        with pytest.raises(CeoptError) as caught:
            ask()
        assert is_shown(str(caught.value), lines=False)


def test_results_and_spaces_show_them(asked, conflict):
    assert asked.status == "optimal"
    assert conflict.status == "infeasible"
    assert conflict.conflict
    report = ceopt.verify([{COLUMN: 4, OTHER: LEVELS[0]}], MODEL, SPACE, target=LABELS[1], factual=ROW,
                          constraints=[Linear({COLUMN: 1}, "<=", 3, name=OTHER)])  # fmt: skip
    lost = FeatureSpace([SPACE[COLUMN], Feature(OTHER, kind="binary", levels=LEVELS, mutable=False)])
    fixed = ceopt.explain(MODEL, ROW, lost.update(COLUMN, direction="increasing"), target=LABELS[1])
    for text in (str(asked), repr(asked), str(asked[0]), str(conflict), str(SPACE), repr(SPACE), str(report)):
        assert_shown(text)
    for text in (asked.target, conflict.target, *asked.rules.values(), *conflict.rules.values()):
        assert is_shown(text, lines=False)
    for text in (*[sentence for _, sentence, _ in conflict.conflict], *fixed.removed.values(), conflict.reason):
        assert printable(text) == text
    for html in (asked._repr_html_(), asked[0]._repr_html_()):
        assert_shown(html)
    assert is_shown(SPACE._repr_html_())


@pytest.mark.parametrize("language", ["en", "de"])
def test_sentences_show_them(asked, conflict, language):
    said = [*asked[0].sentences(language), *asked.sentences(language), *conflict.sentences(language)]
    assert len(said) > 4
    for sentence in said:
        assert printable(sentence) == sentence
    assert_shown(said[0], lines=False)
    assert asked[0].sentences(templates={"raise": "{column}\n+{by}"})[0].count("\n") == 1  # the template's own


def test_what_programs_read_has_the_very_texts(asked, tmp_path):
    again = SolutionSet.from_json(asked.to_json())
    space = FeatureSpace.from_json(SPACE.to_json())
    assert space == SPACE
    assert space.names == (COLUMN, OTHER)
    assert list(again.to_frame().columns) == list(asked.to_frame().columns) == [COLUMN, OTHER]
    assert again[0].values[OTHER] == LEVELS[0]
    assert again[0].prediction == LABELS[1]
    assert again.changes().index.tolist() == [(1, COLUMN)]
    asked.to_frame().to_csv(tmp_path / "answers.csv", index=False)
    assert list(pd.read_csv(tmp_path / "answers.csv").columns) == [COLUMN, OTHER]
    document = json.loads(asked.to_json())
    document["reason"] = document["rules"][OTHER] = COLUMN  # a stranger's file
    document["phrases"] = {}
    read = SolutionSet.from_json(json.dumps(document))
    assert_shown(read.reason, lines=False)
    assert_shown(read.rules[OTHER], lines=False)


def test_cohorts_and_their_reports_show_them(asked, conflict, tmp_path):
    frame = pd.DataFrame([ROW, ROW], index=[ESCAPES, "b"])
    cohort = ceopt.Recourse(MODEL, SPACE, target=LABELS[1]).fit(frame).explain(frame)
    for text in (str(cohort.summary()), cohort.summary()._repr_html_(), str(cohort[0])):
        assert_shown(text)
    assert is_shown(cohort._repr_html_())
    for place, said in enumerate((asked, conflict, cohort)):
        path = tmp_path / f"{place}.html"
        said.report(path)
        text = path.read_text(encoding="utf-8")
        assert printable(text, keep="\n") == text
        assert "\nok" not in text


def test_warnings_show_them():
    frame = pd.DataFrame({COLUMN: [1, 2, 3, 4] * 5, f"code{ESCAPES}": [10, 20, 30, 40] * 5, OTHER: [7] * 20})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FeatureSpace.infer(frame)
        formulations.space.space.warn(f"Column {COLUMN} is odd.")
    for one in caught:
        assert printable(str(one.message)) == str(one.message)
    assert any(COLUMN.encode("unicode_escape").decode()[:20] in str(one.message) for one in caught)


def test_tables_of_dice_show_them(capsys):
    frame = pd.DataFrame({COLUMN: [1, 2, 3, 8, 9, 7], OTHER: [1, 2, 1, 2, 1, 2], "good": [0, 0, 0, 1, 1, 1]})
    model = DecisionTreeClassifier(max_depth=1).fit(frame[[COLUMN, OTHER]], frame["good"])
    data = dice_ml.Data(dataframe=frame, continuous_features=[COLUMN, OTHER], outcome_name="good")
    explainer = dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"))
    found = explainer.generate_counterfactuals(frame[[COLUMN, OTHER]].iloc[:1], total_CFs=1, desired_class=1)
    found.visualize_as_dataframe()
    found.visualize_as_list()
    say(ESCAPES.replace("\n", " "))
    out = capsys.readouterr().out
    assert printable(out, keep="\n") == out
    assert_shown(str(data))


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A stranger's table, and a model that was fitted on it."""
    monkeypatch.chdir(tmp_path)
    rows = [(place % 10, LEVELS[place % 2], LABELS[int(place % 10 > 5)]) for place in range(40)]
    frame = pd.DataFrame(rows, columns=[COLUMN, OTHER, f"label{ESCAPES}"])
    columns = ceopt_columns()
    model = make_pipeline(columns, LogisticRegression()).fit(frame[[COLUMN, OTHER]], frame[f"label{ESCAPES}"])
    import joblib

    joblib.dump(model, "model.joblib")
    frame.to_csv("people.csv", index=False)
    return tmp_path


def ceopt_columns():
    from sklearn.compose import make_column_transformer

    return make_column_transformer((StandardScaler(), [COLUMN]), (OneHotEncoder(), [OTHER]))


def test_the_command_shows_them(files):
    def run(*words):
        wide = {"COLUMNS": "400"}  # cells are not broken over lines
        return CliRunner().invoke(app, ["explain", "model.joblib", "people.csv", "--allow-pickle", *words], env=wide)

    table = run("--row", "1", "--target", LABELS[1], "--show-space")
    assert table.exit_code == 0, table.output
    for text in (table.stdout, table.stderr):
        assert printable(text, keep="\n") == text
        assert "\nok" not in text
    assert "[boldred]" in "".join(table.stdout.split())
    assert "Left out, as the model does not know them: label" in table.stderr
    none = run("--row", "1", "--target", LABELS[1], "--fixed", COLUMN)
    assert none.exit_code == 1
    assert_shown(none.stdout)
    wrong = run("--row", "1", "--target", COLUMN)
    assert wrong.exit_code == 2
    assert_shown(wrong.stderr)
    unknown = run("--row", "1", "--target", LABELS[1], "--solver", ESCAPES, f"--{ESCAPES}")
    assert unknown.exit_code == 2
    assert printable(unknown.stderr, keep="\n") == unknown.stderr
    lines = run("--row", "1", "--target", LABELS[1], "--json")
    assert printable(lines.stdout, keep="\n") == lines.stdout
    assert SolutionSet.from_json(lines.stdout).to_frame().columns.tolist() == [COLUMN, OTHER]

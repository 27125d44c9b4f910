"""Missing cells and codes at the command line: empty cells of a file, options for both, and a space to edit."""

from __future__ import annotations

import json
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import ceopt
from ceopt.cli.commands import app
from ceopt.cli.inputs import read_codes
from ceopt.solvers.errors import InvalidValueError, UnknownNameError

RNG = np.random.default_rng(0)
N = 200
FRAME = pd.DataFrame(
    {
        "income": RNG.integers(10, 90, N) / 10,
        "late": RNG.integers(0, 9, N),
        "job": RNG.choice(["cook", "nurse", "?"], N),
    }
)
Y = np.where(FRAME["income"] - 0.5 * FRAME["late"] > 2.0, "good", "bad")
FRAME.loc[::6, "income"] = np.nan
FRAME.loc[::7, "late"] = -9
NUMBERS = FRAME[["income", "late"]]
WHOLE = NUMBERS.notna().all(axis=1)


@pytest.fixture(scope="module")
def models():
    takes = HistGradientBoostingClassifier(max_iter=15, min_samples_leaf=5).fit(NUMBERS, Y)
    refuses = LogisticRegression(max_iter=1000).fit(NUMBERS[WHOLE], Y[WHOLE])
    return takes, refuses


@pytest.fixture
def files(models, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, model in zip(("takes.joblib", "refuses.joblib"), models, strict=True):
        joblib.dump(model, name)
    FRAME.to_csv("people.csv", index=False)
    says = models[0].predict(NUMBERS)
    lacks = FRAME.index[(says == "bad") & FRAME["income"].isna()]
    coded = FRAME.index[(says == "bad") & (FRAME["late"] == -9)]
    return int(lacks[0]), int(coded[0])


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def asked(model, *words):
    return run(
        "explain", model, "people.csv", "--target", "good", "--allow-pickle", "--json", "--time-limit", 10, *words
    )


def answers(result):
    """The rows of the answers that a command printed, by the person's row."""
    found = {}
    for line in result.stdout.splitlines():
        read = ceopt.SolutionSet.from_json(line)
        found[read.query_id] = read
    return found


def test_an_empty_cell_is_a_missing_one_where_the_model_takes_that(files):
    lacks, _ = files
    result = asked("takes.joblib", "--row", lacks, "--show-space")
    assert result.exit_code == 0, result.stderr
    (answer,) = answers(result).values()
    assert len(answer) == 1
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("income")]
    assert "may be missing (17 % of rows)" in line
    assert "not used" not in result.stderr


def test_rows_with_gaps_are_left_out_where_the_model_takes_none_and_it_is_said(files, models):
    lacks, _ = files
    poor = NUMBERS[WHOLE][models[1].predict(NUMBERS[WHOLE]) == "bad"].index[0]
    result = asked("refuses.joblib", "--row", lacks, "--row", poor)
    assert result.exit_code == 1
    assert "The model takes no missing cells of 'income': rows that lack one are not used, nor asked about." in (
        result.stderr
    )
    found = answers(result)
    assert found[poor].status == "optimal"
    assert found[lacks].status == "error"
    named = asked("refuses.joblib", "--row", poor, "--missing", "income")
    assert named.exit_code == 2
    assert "'income'" in named.stderr


def test_codes_are_named_and_stay_where_an_option_says_so(files):
    _, coded = files
    result = asked("takes.joblib", "--row", coded, "--codes", "late=-9:no record", "--show-space")
    assert "(codes -9 no record)" in result.stderr
    assert "looks like a code" not in result.stderr
    (answer,) = answers(result).values()
    assert answer.space["late"].code_labels == ("no record",)
    held = asked("takes.joblib", "--row", coded, "--codes", "late=-9", "--stays", "late")
    (answer,) = answers(held).values()
    for one in answer:
        assert one.values["late"] == -9
    absent = asked("takes.joblib", "--row", coded, "--codes", "late=-9,-7")
    assert "Column 'late' has no cell with -7, named as a code. Correct --codes." in absent.stderr


def test_what_looks_like_a_code_or_a_gap_is_noted_with_the_option(files):
    _, coded = files
    result = asked("takes.joblib", "--row", coded)
    assert "looks like a code and no amount, and answers may go there. Add --codes late=..., or --fixed late." in (
        result.stderr
    )
    space = run("space", "people.csv", "--out", "space.json")
    assert "Column 'job' has the level '?', which says that nothing is known" in space.stderr
    assert "Add --codes job=..., or leave such cells empty before the model is fitted." in space.stderr


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["late=-9"], {"late": [-9]}),
        (["late=-9, -8"], {"late": [-9, -8]}),
        (["late=-9:no record,-8:not usable"], {"late": {-9: "no record", -8: "not usable"}}),
        (["job=?"], {"job": ["?"]}),
        (["a=b=0.5"], {"a=b": [0.5]}),
    ],
)
def test_codes_are_read_as_the_column_has_them(given, found):
    frame = FRAME.assign(**{"a=b": 0.5})
    assert read_codes(given, frame) == found


def test_a_code_without_a_meaning_may_stand_beside_one_with_it():
    frame = FRAME[["income"]].assign(late=[-8, *FRAME["late"].iloc[1:]])
    space = ceopt.FeatureSpace.infer(frame, codes=read_codes(["late=-9:no record,-8"], frame))
    assert space["late"].codes == (-9, -8)
    assert [space["late"].meaning_of(code) for code in (-9, -8)] == ["no record", None]


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        (["late"], InvalidValueError, "a column and its codes"),
        (["late=-9,"], InvalidValueError, "a column and its codes"),
        (["lat=-9"], UnknownNameError, "Did you mean 'late'"),
        (["late=-9", "late=-8"], InvalidValueError, "each column once"),
    ],
)
def test_codes_that_are_none_are_refused(given, error, match):
    with pytest.raises(error, match=match):
        read_codes(given, FRAME)


def test_a_space_is_written_to_edit_and_read_again(files):
    lacks, _ = files
    result = run(
        "space", "people.csv", "-o", "space.json", "--label-column", "job", "--codes", "late=-9:no record",
        "--up", "income", "--missing", "late",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "space.json\n"
    assert "range or levels" in result.stderr
    space = ceopt.FeatureSpace.from_json("space.json")
    assert space.names == ("income", "late")
    assert (space["income"].direction, space["income"].missing) == ("increasing", True)
    assert (space["late"].codes, space["late"].code_labels, space["late"].missing) == ((-9,), ("no record",), True)
    written = Path("space.json")
    document = json.loads(written.read_text(encoding="utf-8"))
    document["features"][0]["missing"] = "stays"
    written.write_text(json.dumps(document), encoding="utf-8")
    (answer,) = answers(asked("takes.joblib", "--row", lacks, "--space", "space.json")).values()
    for one in answer:
        assert np.isnan(one.values["income"])
    given = asked("takes.joblib", "--row", lacks, "--space", "space.json", "--codes", "late=-9")
    assert given.exit_code == 2
    assert "--codes needs a space that is inferred, but --space is given." in given.stderr


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("space", "people.csv", "-o", "nowhere/space.json"), "--out"),
        (("space", "none.csv", "-o", "space.json"), "DATA needs a file"),
        (("space", "people.csv", "-o", "space.json", "--missing", "incom"), "Did you mean 'income'"),
        (("space", "people.csv", "-o", "space.json", "--label-column", "pay"), "--label-column"),
    ],
)
def test_wrong_use_is_one_sentence(files, words, part):
    result = run(*words)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
    assert part in result.stderr

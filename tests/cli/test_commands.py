"""The command: results on standard output, notes on standard error, exit codes 0, 1 and 2."""

from __future__ import annotations

import json
import subprocess
import warnings
from pathlib import Path
from types import SimpleNamespace

import joblib
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from skl2onnx import to_onnx
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

import ceopt
from ceopt import AtLeast, AtMost, Between, SolutionSet, __version__
from ceopt.cli.commands import app
from ceopt.cli.inputs import read_table, read_target, text_columns
from ceopt.search import side_by_side
from ceopt.solvers import read
from ceopt.solvers.errors import InvalidValueError, UnknownNameError


@pytest.fixture
def files(credit, tmp_path, monkeypatch):
    """A pickled pipeline, its people as CSV with the label beside them, and the space as JSON."""
    monkeypatch.chdir(tmp_path)
    joblib.dump(credit.model, "model.joblib")
    credit.frame.assign(decision=credit.label).to_csv("people.csv", index=False)
    credit.space.to_json("space.json")
    rejected = [int(label) for label in credit.rejected.index[:2]]
    favoured = int(credit.frame.index[credit.model.predict(credit.frame) == "good"][0])
    return SimpleNamespace(path=tmp_path, rejected=rejected, favoured=favoured)


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def asked(*words):
    """``ceopt explain`` of the files, with more words."""
    return run("explain", "model.joblib", "people.csv", "--target", "good", "--allow-pickle", *words)


def refused(result, *parts):
    """Exit code 2, nothing on standard output, one sentence on standard error that names the culprit."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert last.endswith(".")
    for part in parts:
        assert part in last
    return True


def test_rows_are_answered_as_a_table(files):
    first, second = files.rejected
    result = asked("--row", first, "--row", second, "--n", 2)

    assert result.exit_code == 0
    head = result.stdout.splitlines()[1].split()
    assert head == ["row", "answer", "column", "from", "to", "cost"]
    assert [line.split()[0] for line in result.stdout.splitlines() if line[1:4].strip().isdigit()][:1] == [str(first)]
    assert "4 answers, each predicted again by the model itself" in result.stdout
    assert "The space is inferred from people.csv (no --space was given); --show-space prints it." in result.stderr
    assert "range or levels" not in result.stderr
    assert "Left out, as the model does not know them: decision." in result.stderr


def test_the_space_is_printed_when_asked_for(files):
    first, _ = files.rejected
    inferred = asked("--row", first, "--show-space", "--fixed", "loans")
    assert "The space is inferred from people.csv (no --space was given).\n" in inferred.stderr
    assert "range or levels" in inferred.stderr
    assert "2 decimals, step 0.01" in inferred.stderr
    (line,) = [line for line in inferred.stderr.splitlines() if line.startswith("loans")]
    assert " fixed " in line
    given = asked("--row", first, "--show-space", "--space", "space.json")
    assert "range or levels" in given.stderr
    assert "range or levels" not in given.stdout


def test_columns_move_as_options_say(files):
    first, _ = files.rejected
    said = asked("--row", first, "--show-space", "--up", "income", "--down", "loans")
    lines = {line.split()[0]: line for line in said.stderr.splitlines() if line}
    assert " up " in lines["income"]
    assert " down " in lines["loans"]
    both = asked("--row", first, "--up", "income", "--fixed", "income")
    assert both.exit_code == 2
    assert "--up needs a column that no other option moves, but 'income' has --fixed too. Leave one out." in both.stderr


def test_codes_are_categories_where_an_option_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"branch": [11, 12, 13, 11, 12, 13] * 5, "pay": np.arange(30.0) + 0.25})
    label = (frame["pay"] + 40 * (frame["branch"] == 13) > 20).astype(int)
    encode = make_column_transformer((OneHotEncoder(), ["branch"]), remainder="passthrough")
    joblib.dump(make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(frame, label), "model.joblib")
    frame.to_csv("people.csv", index=False)
    refused = asked("--row", 0, "--target", 1)
    answered = asked("--row", 0, "--target", 1, "--categorical", "branch")
    assert refused.exit_code != 0
    assert answered.exit_code == 0, answered.stderr
    assert "11" in answered.stdout
    unknown = asked("--row", 0, "--target", 1, "--categorical", "brunch")
    assert "Did you mean 'branch'?" in unknown.stderr
    frame_space = ceopt.FeatureSpace.infer(frame, categorical=["branch"])
    frame_space.to_json("space.json")
    given = asked("--row", 0, "--target", 1, "--categorical", "branch", "--space", "space.json")
    assert "--categorical needs a space that is inferred, but --space is given." in given.stderr


ZIPS = pd.DataFrame({"zip": ["00123", "01067", "10115", "01067"] * 6, "pay": np.arange(24.0) + 0.25})
RICH = np.where(ZIPS["pay"] + 6 * (ZIPS["zip"] == "00123") > 14, "good", "bad")


def _encoded(*steps):
    encode = make_column_transformer((make_pipeline(*steps), ["zip"]), remainder="passthrough")
    return make_pipeline(encode, LogisticRegression(max_iter=1000))


@pytest.mark.parametrize("option", [(), ("--categorical", "zip")])
@pytest.mark.parametrize(
    "model",
    [
        _encoded(OneHotEncoder()),
        _encoded(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")),
        GridSearchCV(_encoded(OneHotEncoder(handle_unknown="ignore")), {"logisticregression__C": [1.0]}, cv=2),
        None,
    ],
    ids=["encoder", "imputer", "search", "onnx"],
)
def test_codes_that_the_model_knows_as_text_keep_their_zeros(tmp_path, monkeypatch, model, option):
    monkeypatch.chdir(tmp_path)
    ZIPS.to_csv("people.csv", index=False)
    name = "model.joblib"
    if model is None:
        name = "model.onnx"
        graph = to_onnx(_encoded(OneHotEncoder()).fit(ZIPS, RICH), ZIPS[:1].astype({"pay": np.float32}))
        Path(name).write_bytes(graph.SerializeToString())
    else:
        joblib.dump(model.fit(ZIPS, RICH), name)
    words = ("people.csv", "--row", 10, "--target", "good", "--fixed", "pay", "--allow-pickle")
    result = run("explain", name, *words, *option)

    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[3].split()[:5] == ["10", "1", "zip", "10115", "00123"]
    assert "read as the number" not in result.stderr


def test_codes_that_the_model_knows_as_numbers_stay_numbers_and_it_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ZIPS.to_csv("people.csv", index=False)
    joblib.dump(_encoded(OneHotEncoder()).fit(pd.read_csv("people.csv"), RICH), "model.joblib")
    result = asked("--row", 10, "--categorical", "zip", "--fixed", "pay")

    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[3].split()[:5] == ["10", "1", "zip", "10115", "123"]
    assert "Column 'zip' has '00123' in people.csv, read as the number 123" in result.stderr


@pytest.mark.parametrize(
    "columns", [["zip"], "zip", [0], [True, False], slice(0, 1), slice("zip", "zip"), slice(None, "zip")]
)
def test_columns_that_are_text_are_found_however_they_were_named(columns):
    take = OneHotEncoder() if columns != "zip" else CountVectorizer()
    known = text_columns(ColumnTransformer([("codes", take, columns)]).fit(ZIPS))

    assert known == ({} if columns == "zip" else {"zip": {"00123", "01067", "10115"}})
    assert text_columns(LogisticRegression().fit(ZIPS[["pay"]], RICH)) == {}


def test_codes_of_a_function_are_text_where_an_option_says_that_they_are_categories(tmp_path):
    path = tmp_path / "people.csv"
    ZIPS.to_csv(path, index=False)
    kept, *notes = read_table(path, None, codes=["zip", "pay", "no"])
    lost, note = read_table(path, None)

    assert kept["zip"].tolist() == ZIPS["zip"].tolist()
    assert kept["pay"].dtype == "float64"
    assert notes == []
    assert lost["zip"].tolist()[0] == 123
    assert "'00123'" in note


@pytest.mark.parametrize("with_space", [False, True])
@pytest.mark.parametrize("level", ["None", "NA", ""])
def test_a_level_that_looks_like_a_missing_value_is_one_where_the_model_knows_it(
    tmp_path, monkeypatch, level, with_space
):
    monkeypatch.chdir(tmp_path)
    frame = ZIPS.assign(zip=ZIPS["zip"].replace("10115", level))
    frame.to_csv("people.csv", index=False)
    ceopt.FeatureSpace.infer(frame).to_json("space.json")
    joblib.dump(_encoded(OneHotEncoder()).fit(frame, RICH), "model.joblib")
    words = ("--space", "space.json") if with_space else ()
    result = asked("--row", 10, "--fixed", "pay", "--json", *words)

    assert result.exit_code == 0, result.stderr
    assert "not used as examples" not in result.stderr
    found = SolutionSet.from_json(result.stdout)
    assert found.factual["zip"].iloc[0] == level
    assert found[0].values["zip"] == "00123"


def test_a_report_is_made_of_lines_whose_texts_hold_a_line_separator(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = ZIPS.assign(zip=ZIPS["zip"].replace("10115", "one\u2028two\x85"))
    frame.to_csv("people.csv", index=False)
    joblib.dump(_encoded(OneHotEncoder()).fit(frame, RICH), "model.joblib")
    found = asked("--row", 10, "--row", 9, "--json")
    Path("answers.json").write_text(found.stdout, encoding="utf-8")
    result = run("report", "answers.json", "answers.html")

    assert result.exit_code == 0, result.stderr
    assert Path("answers.html").is_file()


def test_rules_are_read_from_a_file(files, credit):
    first, second = files.rejected
    rules = [
        {"rule": "AllowedTransitions", "column": "job", "transitions": {"cook": ["nurse"]}, "name": "jobs"},
        {"rule": "Linear", "coefficients": {"income": 1.0}, "sense": "<=", "rhs": 60, "name": "cap"},
    ]
    (files.path / "rules.json").write_text(json.dumps(rules))
    result = asked("--row", first, "--row", second, "--json", "--rules", "rules.json", "--max-changes", 3)
    found = [SolutionSet.from_json(line) for line in result.stdout.splitlines()]

    assert result.exit_code == 0, result.stderr
    said = json.loads(result.stdout.splitlines()[0])["options"]["constraints"]
    assert said == [
        "MaxChanges_1: at most 3 features may change",
        "jobs: job stays, or goes from 'cook' to 'nurse'",
        "cap: income <= 60",
    ]
    assert all(one.status == "optimal" and one[0].values["income"] <= 60 for one in found)
    words = ("model.joblib", "people.csv", "--row", first, "--target", "good", "--allow-pickle", "--out", "recourse.lp")
    assert run("export", *words, "--rules", "rules.json").exit_code == 0
    assert "cap" in (files.path / "recourse.lp.names.json").read_text()


def test_rules_that_are_wrong_are_one_sentence(files):
    first, _ = files.rejected
    (files.path / "rules.json").write_text('[{"rule": "MaxChange", "k": 2}]')
    assert refused(asked("--row", first, "--rules", "rules.json"), "'MaxChange'", "Did you mean 'MaxChanges'?")
    (files.path / "rules.json").write_text('[{"rule": "AllowedValues", "values": {"jobs": ["cook"]}}]')
    assert refused(asked("--row", first, "--rules", "rules.json"), "rule 1 of 'rules.json'", "Did you mean 'job'?")
    assert refused(asked("--row", first, "--rules", "no.json"), "no.json")


def test_what_is_easily_overlooked_is_noted_and_what_is_fixed_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "customer id": range(40),
            "sex": rng.integers(0, 2, 40),
            "age": rng.integers(18, 80, 40),
            "zip": rng.integers(10_000, 99_999, 40),
            "income": rng.random(40).round(2),
            "still": 1.0,
        }
    )
    label = (frame["income"] > 0.5).astype(int)
    joblib.dump(RandomForestClassifier(3, random_state=0).fit(frame, label), "model.joblib")
    frame.to_csv("people.csv", index=False)
    row = int(np.flatnonzero(label == 0)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = asked("--row", row, "--target", 1)
        settled = [word for name in ("customer id", "sex", "age", "zip", "still") for word in ("--fixed", name)]
        quiet = asked("--row", row, "--target", 1, *settled)

    assert result.exit_code == 0
    noted = [line for line in result.stderr.splitlines() if line.startswith("Column ")]
    assert [line.split("'")[1] for line in noted] == ["customer id", "sex", "age", "zip", "still"]
    assert "add --fixed 'customer id' if the model reads it." in noted[0]
    assert noted[1] == "Column 'sex' looks protected, and answers may change it. Add --fixed sex."
    assert all("moves=" not in line and "infer" not in line for line in noted)
    assert noted[2].endswith("Add --up age, or --fixed age.")
    assert noted[3].endswith("Add --categorical zip if its numbers are names, or --fixed zip.")
    assert "Column " not in quiet.stderr
    assert "SpaceWarning" not in result.stderr


@pytest.mark.long(every=4)
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"sep": ";"}, "separates its columns by semicolons; it was read so."),
        ({"sep": ";", "decimal": ","}, "by semicolons and writes decimals with commas; it was read so."),
        ({"sep": "\t"}, "by tabs; it was read so."),
        ({"sep": "|"}, "by vertical bars; it was read so."),
        ({"sep": ","}, None),
    ],
)
@pytest.mark.parametrize("space", [(), ("--space", "space.json")])
def test_tables_of_other_separators_are_read_and_it_is_said(files, credit, how, said, space):
    row = files.rejected[0]
    expected = asked("--row", row, "--json", *space).stdout.split('"timings"')[0]
    credit.frame.assign(decision=credit.label).to_csv("people.csv", index=False, **how)
    result = asked("--row", row, "--json", *space)

    assert result.stdout.split('"timings"')[0] == expected
    assert (said is None) == ("it was read so" not in result.stderr)
    assert (said or "") in result.stderr


def test_json_is_one_line_per_row_that_reads_back(files, credit):
    first, second = files.rejected
    result = asked("--row", first, "--row", second, "--json", "--space", "space.json", "--max-changes", 1)
    lines = result.stdout.splitlines()
    found = [SolutionSet.from_json(line) for line in lines]

    assert result.exit_code == 0
    assert [one.query_id for one in found] == files.rejected
    assert all(one.status == "optimal" and len(one[0].changed) == 1 for one in found)
    assert all(credit.model.predict(one.to_frame()) == "good" for one in found)
    assert found[0].factual.dtypes.to_dict() == credit.frame.dtypes.to_dict()
    assert json.loads(lines[0])["options"]["constraints"] == ["MaxChanges_1: at most 1 feature may change"]
    assert "inferred" not in result.stderr


def test_a_favourable_row_is_served(files):
    result = asked("--row", files.favoured, "--label-column", "decision")

    assert result.exit_code == 0
    assert result.stdout.startswith(f"row {files.favoured}: already favourable.")


def test_a_row_without_answer_gives_1_and_the_table_all_the_same(files):
    fixed = [word for name in ("income", "job", "loans", "owner") for word in ("--fixed", name)]
    result = asked("--row", files.rejected[0], *fixed)
    both = asked("--row", files.favoured, "--row", files.rejected[0], *fixed)

    assert result.exit_code == both.exit_code == 1
    assert f"row {files.rejected[0]}: infeasible." in result.stdout
    assert len(both.stdout.splitlines()) == 2


def test_a_row_with_a_missing_value_gives_1_and_the_reason(files, credit):
    credit.frame.assign(income=credit.frame["income"].where(credit.frame.index != files.rejected[0])).to_csv(
        "people.csv"
    )
    result = asked("--row", files.rejected[0], "--row", files.rejected[1], "--label-column", "Unnamed: 0")

    assert result.exit_code == 1
    assert "'income' needs a value" in result.stdout
    assert "2 rows" not in result.stderr
    assert "1 row not used as examples" in result.stderr
    assert "1 answer, each" in result.stdout


def test_parquet_is_read_too(files, credit):
    pytest.importorskip("pyarrow")
    credit.frame.to_parquet("people.parquet")
    row = files.rejected[0]
    result = run(
        "explain", "model.joblib", "people.parquet", "--row", row, "--target", "good", "--allow-pickle", "--json"
    )

    assert result.stdout.split('"timings"')[0] == asked("--row", row, "--json").stdout.split('"timings"')[0]


def test_parquet_without_pyarrow_is_one_sentence(files, monkeypatch):
    def absent(path):
        raise ImportError("Unable to find a usable engine")

    monkeypatch.setattr(pd, "read_parquet", absent)
    (files.path / "people.parquet").write_bytes(b"PAR1")
    result = run("explain", "model.joblib", "people.parquet", "--row", 0, "--target", "good", "--allow-pickle")

    assert refused(result, "pyarrow", 'pip install "ceopt[parquet]"', "people.parquet")


def test_levels_of_text_stay_text_where_the_space_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"x": [1.0, 4.0, 2.0, 5.0] * 5, "code": ["NA", "01", "01", "NA"] * 5})
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    columns = make_column_transformer((OneHotEncoder(), ["code"]), remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression()).fit(frame, frame["x"] > 3)
    joblib.dump(model, "model.joblib")
    frame.to_csv("people.csv", index=False)
    ceopt.FeatureSpace.infer(frame).to_json("space.json")
    result = asked("--row", 0, "--space", "space.json", "--json", "--target", "TRUE")

    assert result.exit_code == 0, result.stderr
    assert SolutionSet.from_json(result.stdout).factual["code"].tolist() == ["NA"]


def test_export_writes_a_program_that_reads_back(files):
    row = files.rejected[0]
    words = ("model.joblib", "people.csv", "--row", row, "--target", "good", "--allow-pickle", "--space", "space.json")
    result = run("export", *words, "--out", "recourse.lp", "--max-changes", 2)

    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == ["recourse.lp", "recourse.lp.names.json"]
    assert "income" in (files.path / "recourse.lp.names.json").read_text()
    optimum = ceopt.solvers.solve(read(files.path / "recourse.lp")).objective
    answer = SolutionSet.from_json(asked("--row", row, "--json", "--space", "space.json", "--max-changes", 2).stdout)
    assert optimum == pytest.approx(answer[0].cost, rel=1e-5)
    assert refused(run("export", *words, "--out", "recourse.txt"), ".txt")
    assert refused(run("export", *words, "--out", "no/such/folder/recourse.lp"), "recourse.lp")
    assert refused(run("export", *words, "--out", "recourse.lp", "--formulation", "leaves"), "'leaves'")


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--row", "0", "--cost", "l3"), ["'l3'", "l0, l1"]),
        (("--row", "0", "--solver", "cplex"), ["'cplex'", "highs"]),
        (("--row", "0", "--time-limit", "0"), ["time_limit_s"]),
        (("--row", "0", "--max-changes", "-1"), ["MaxChanges", "-1"]),
        (("--row", "0", "--n", "0"), ["n is 0"]),
        (("--row", "0", "--fixed", "incom"), ["'incom'", "Did you mean 'income'"]),
        (("--row", "0", "--label-column", "decisions"), ["'decisions'", "Did you mean 'decision'"]),
        (("--row", "160"), ["160", "people.csv", "0 to 159"]),
        (("--row", "-1"), ["-1"]),
        (("--row", "first"), ["--row"]),
        (("--row", "0", "--target", "excellent"), ["'excellent'", "bad, good"]),
        (("--row", "0", "--space", "none.json"), ["none.json"]),
        (("--row", "0", "--space", "people.csv"), ["people.csv"]),
        (("--row", "0", "--rows", "1"), ["--rows"]),
        ((), ["--row"]),
    ],
)
def test_wrong_use_is_one_sentence(files, words, parts):
    assert refused(asked(*words), *parts)


def test_commands_that_do_not_exist_are_one_sentence():
    assert refused(run("explane"), "explane")
    assert refused(run(), "ceopt --help")


def test_a_pickle_is_not_opened_unless_allowed(files):
    class Bomb:
        def __reduce__(self):
            return (open, ("it_ran", "w"))

    joblib.dump(Bomb(), "model.joblib")
    result = run("explain", "model.joblib", "people.csv", "--row", 0, "--target", "good")

    assert refused(result, "model.joblib", "--allow-pickle", "runs code")
    assert not (files.path / "it_ran").exists()


def test_models_that_cannot_be_read_are_named(files):
    path = files.path / "model.joblib"
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"income,job\n1,cook\n", whole[: len(whole) - 40]):
        path.write_bytes(content)
        assert refused(asked("--row", 0), "model.joblib", "cannot be loaded")
    joblib.dump({"model": 1}, path)
    assert refused(asked("--row", 0), "model.joblib", "holds a dict")
    path.unlink()
    assert refused(asked("--row", 0), "model.joblib")
    joblib.dump(LogisticRegression(), path)
    assert refused(asked("--row", 0), "LogisticRegression is not fitted")
    for name, content in (
        ("model.onnx", b"\x08\x07"),
        ("model.onnx", whole),
        ("model.json", b"{"),
        ("model.txt", b"tree"),
    ):
        (files.path / name).write_bytes(content)
        assert refused(run("explain", name, "people.csv", "--row", 0, "--target", "good"), name)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", ["model.onnx", "model.ONNX", "model.ubj", "model.json", "model.txt"])
def test_a_model_that_its_library_saved_needs_no_permission(name, tmp_path, monkeypatch):
    """None of these files runs code when it is loaded."""
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame(np.random.default_rng(0).integers(0, 9, size=(120, 3)).astype("f4"), columns=["a", "b", "c"])
    label = (rows["a"] + rows["b"] > 9).astype(int)
    rows.assign(label=label).to_csv("people.csv", index=False)
    save_model(name, rows, label)
    asked = int(np.flatnonzero(label == 0)[0])
    result = run("explain", name, "people.csv", "--row", asked, "--target", 1, "--json", "--label-column", "label")

    assert result.exit_code == 0, result.output
    (found,) = map(SolutionSet.from_json, result.stdout.splitlines())
    assert found.status == "optimal"
    assert found[0].prediction == 1


def save_model(name, rows, label):
    if name.lower().endswith(".onnx"):
        forest = RandomForestClassifier(5, max_depth=4, random_state=0).fit(rows.to_numpy(), label)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Path(name).write_bytes(to_onnx(forest, rows.to_numpy()[:1]).SerializeToString())
    elif name.endswith(".txt"):
        lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(rows, label).booster_.save_model(name)
    else:
        fitted = xgboost.XGBClassifier(n_estimators=5).fit(rows, label)
        fitted.get_booster().save_model(name)  # before 3.1.3 the estimator itself cannot, beside scikit-learn 1.8


def test_data_that_cannot_be_read_is_named(files):
    def on(name):
        return run("explain", "model.joblib", name, "--row", 0, "--target", "good", "--allow-pickle")

    (files.path / "empty.csv").write_text("")
    (files.path / "head.csv").write_text("income,job\n")
    (files.path / "ragged.csv").write_text('a,b\n1,2\n1,2,3,4\n"x')
    (files.path / "binary.csv").write_bytes(b"\xff\xfe\x00\x01" * 9)
    (files.path / "broken.parquet").write_bytes(b"PAR1 no")
    (files.path / "table.txt").write_text("a")
    for name in ("empty.csv", "head.csv", "ragged.csv", "binary.csv", "broken.parquet", "table.txt", "none.csv"):
        assert refused(on(name), name)
    (files.path / "narrow.csv").write_text("income,job\n3,cook\n4,nurse\n")
    assert refused(on("narrow.csv"), "'loans'")


def test_a_regressor_takes_a_range(files, credit):
    joblib.dump(LinearRegression().fit(credit.frame[["income", "loans"]], credit.frame["income"]), "model.joblib")
    low = run("explain", "model.joblib", "people.csv", "--row", 0, "--target", "<=35", "--allow-pickle", "--json")

    assert SolutionSet.from_json(low.stdout)[0].prediction <= 35
    assert refused(asked("--row", 0), "'good'", "'>=5'")


@pytest.mark.parametrize(
    ("text", "labels", "target"),
    [
        ("1", (0, 1), 1),
        ("1.0", (0, 1), 1),
        ("2.5", (0.5, 2.5), 2.5),
        ("false", (False, True), False),
        (">50K", ("<=50K", ">50K"), ">50K"),
        ("1", ("0", "1"), "1"),
        (">=1e3", None, AtLeast(1e3)),
        ("<=-2", None, AtMost(-2)),
        ("-1..2.5", None, Between(-1, 2.5)),
    ],
)
def test_a_target_is_read_in_the_models_own_type(text, labels, target):
    assert read_target(text, labels) == target
    assert type(read_target(text, labels)) is type(target)


def test_a_target_that_means_nothing_is_named():
    with pytest.raises(UnknownNameError, match=r"'2'.*0, 1"):
        read_target("2", (0, 1))
    with pytest.raises(UnknownNameError, match="'1'"):
        read_target("1", (False, True))
    with pytest.raises(InvalidValueError, match="'2..1'|low is 2.0"):
        read_target("2..1", None)
    for text in ("2", "..", ">=x", "good"):
        with pytest.raises(InvalidValueError, match="range"):
            read_target(text, None)


def test_solvers_and_version_are_listed():
    listed = run("solvers")

    assert listed.exit_code == 0
    assert "highs" in listed.stdout
    assert "MILP" in listed.stdout
    assert run("version").stdout == f"ceopt {__version__}\n"
    for command in ("demo", "explain", "export", "solvers", "version"):
        assert command in run("--help").stdout
    assert "runs code" in " ".join(run("explain", "--help").stdout.replace("│", " ").split())


@pytest.mark.long
def test_the_demonstration_prints_verified_answers():
    result = run("demo")

    assert result.exit_code == 0
    assert "12 answers, each predicted again by the model itself" in result.stdout
    assert "dollars" in result.stdout
    assert "4/4" in result.stderr
    assert "Drawing" not in result.stdout


def test_an_interrupt_is_not_a_traceback(files, monkeypatch):
    def stopping(prepared, row, **_):
        raise KeyboardInterrupt

    monkeypatch.setattr(side_by_side, "search_in_parts", stopping)
    result = asked("--row", 0)

    assert result.exit_code == 1
    assert "Interrupted" in result.stdout
    assert "Traceback" not in result.stderr


@pytest.mark.long
def test_the_module_runs_as_a_command(files, python):
    command = [*python, "-m", "ceopt", "explain", "model.joblib", "people.csv", "--target", "good"]
    words = ["--row", str(files.rejected[0]), "--allow-pickle", "--json"]
    done = subprocess.run([*command, *words], check=False, capture_output=True, text=True, cwd=files.path)

    assert done.returncode == 0, done.stderr
    assert np.isfinite(json.loads(done.stdout)["bound"])
    again = asked("--row", "x")
    assert (again.exit_code, again.stdout) == (2, "")
    assert len(again.stderr.splitlines()) == 1


def test_people_beyond_a_rule_are_noted_in_the_words_of_the_command(files, credit):
    first, second = files.rejected
    incomes = [float(credit.frame.loc[label, "income"]) for label in (first, second)]
    least = max(incomes) + 1.0
    rule = {"rule": "Linear", "coefficients": {"income": 1.0}, "sense": ">=", "rhs": least, "name": "floor"}
    (files.path / "rules.json").write_text(json.dumps([rule]))
    result = asked("--row", first, "--row", second, "--rules", "rules.json")
    assert "2 of 2 people are beyond it today" in result.stderr
    assert 'add "beyond": "no_further" to it in the file of --rules.' in result.stderr
    assert "RuleWarning" not in result.stderr

    (files.path / "rules.json").write_text(json.dumps([rule | {"beyond": "no_further"}]))
    assert "beyond it today" not in asked("--row", first, "--row", second, "--rules", "rules.json").stderr


def test_columns_move_as_far_as_options_say(files):
    first, _ = files.rejected
    said = asked(
        "--row", first, "--show-space", "--max-up", "income=20%", "--max-up", "loans=2", "--max-down", "income=0"
    )
    lines = {line.split()[0]: line for line in said.stderr.splitlines() if line}
    assert " down 0, up 20% " in lines["income"]
    assert " up 2 " in lines["loans"]
    for given, says in {
        ("--max-up", "income"): "--max-up needs COL=BY, such as income=20% or age=2, but it is 'income'.",
        ("--max-up", "income=some"): "Column 'income' needs max_up to be a number of at least 0, or a percentage",
        ("--max-down", "incme=2"): "but column is 'incme'. Did you mean 'income'?",
    }.items():
        refused = asked("--row", first, *given)
        assert refused.exit_code == 2
        assert says in refused.stderr
    short = asked("--row", first, "--max-up", "loans=0.2")
    assert "--max-up loans=0.2 allows no move, being less than a step of the column. Write loans=20%" in short.stderr
    twice = asked("--row", first, "--max-up", "income=2", "--max-up", "income=3")
    assert "--max-up needs each column once, but 'income' is there twice." in twice.stderr

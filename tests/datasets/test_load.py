"""Real data sets: each one that the schema lists is read, described and checked; nothing wrong is read."""

from __future__ import annotations

import gzip
import hashlib
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ceopt
from ceopt.datasets import SOURCES, load
from ceopt.formulations.predictors import Affine
from ceopt.solvers.errors import UnknownNameError, UnreadableFileError

NEVER = {"G3", "shares", "score_text", "decile_score", "two_year_recid", "ChgOffPrinGr", "Selected", "split", "factual"}


@pytest.fixture
def real(data_dir, monkeypatch):
    monkeypatch.setenv("CEOPT_DATA", str(data_dir))
    return json.loads((data_dir / "schema.json").read_text(encoding="utf-8"))["datasets"]


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", SOURCES)
def test_every_data_set_is_read_as_its_schema_says(real, name):
    bunch = load(name)
    entry = real[name]
    described = real[entry.get("alias_of", name)]
    features = {feature["name"]: feature for feature in described["features"] if "role" not in feature}
    assert bunch.name == name
    assert list(bunch.data) == list(features) == list(bunch.space.names)
    assert not NEVER & set(bunch.data)
    assert bunch.target.name == entry["label"]
    assert bunch.favourable == entry["favourable"]
    assert set(bunch.target) == {0, 1}
    assert bunch.licence
    assert bunch.source
    assert entry["label"] in bunch.description
    assert list(bunch.frame) == [*features, entry["label"]]
    for feature in bunch.space:
        told = features[feature.name]
        assert feature.kind == told["kind"]
        assert feature.mutable != told.get("immutable", False)
        assert feature.direction == told.get("monotone", "any")
        if feature.is_finite:
            assert list(feature.levels) == told["levels"]
        else:
            values = bunch.data[feature.name]
            amounts = values[~values.isin(feature.codes)]
            assert (feature.lower, feature.upper) == (amounts.min(), amounts.max())
            assert told["lower"] <= feature.lower <= feature.upper <= told["upper"]
            assert feature.lower_inferred is ("amount_lower" not in told)
            assert feature.upper_inferred is ("amount_upper" not in told)
            assert feature.scale("mad") > 0
            known = amounts.dropna()
            assert feature.mad == (known - known.median()).abs().median()
            assert (feature.std, feature.range) == (pytest.approx(known.std(ddof=0)), np.ptp(known))
        assert list(feature.codes) == [int(code) for code in told.get("codes", ())]
        assert list(feature.code_labels) == list(told.get("codes", {}).values())
        assert bunch.data[feature.name].isna().sum() == told.get("missing", 0)
        assert feature.missing is ("missing" in told)
    assert (bunch.split is not None) == ("split_column" in described)
    assert (bunch.factual is not None) == ("factual_column" in described)
    if bunch.factual is not None:
        assert bunch.factual.sum() == 30
    gaps = bunch.data[bunch.data.isna().any(axis=1)].head(5)
    assert np.array_equal(
        bunch.space.frame(
            [dict(zip(bunch.space.names, row, strict=True)) for row in bunch.space.coordinates(gaps)]
        ).isna(),
        gaps.isna(),
    )
    complete = bunch.data.dropna()
    rows = [dict(zip(bunch.space.names, row, strict=True)) for row in bunch.space.coordinates(complete)[:50]]
    back = bunch.space.frame(rows, index=complete.index[:50])
    pd.testing.assert_frame_equal(
        back,
        complete.iloc[:50].astype({f.name: np.float64 for f in bunch.space if f.kind == "continuous"}),
        check_exact=True,
    )


def test_every_data_set_of_the_schema_has_a_source(real):
    assert set(real) == set(SOURCES)


def test_what_is_no_feature_is_kept_aside(real):
    assert list(load("student").extra) == ["school", "G3"]
    assert list(load("sba").extra) == ["ApprovalFY", "Selected", "ChgOffPrinGr"]
    assert set(load("adult").split) == {"train", "test"}


def test_an_unknown_name(real):
    with pytest.raises(UnknownNameError, match="data set is 'germany'. Did you mean 'german'.*adult"):
        load("germany")
    with pytest.raises(UnknownNameError, match="data set is 3"):
        load(3)


TABLE = "age,town,size,year,y,part,asked\n30,NA,1,2001,0,train,0\n41,,2,2002,1,test,1\n,None,2,2003,1,test,0\n"


def write(folder, text=TABLE, name="diabetes", packed=False, **changes):
    """Write a folder with one small data set under a known name."""
    content = gzip.compress(text.encode()) if packed else text.encode()
    file = "small/table.csv.gz" if packed else "small/table.csv"
    (folder / "small").mkdir()
    (folder / file).write_bytes(content)
    entry = {
        "file": file,
        "label": "y",
        "favourable": 1,
        "split_column": "part",
        "factual_column": "asked",
        "features": [
            {"name": "age", "kind": "integer", "monotone": "increasing", "missing": 1},
            {"name": "town", "kind": "binary", "levels": ["NA", "None"], "immutable": True},
            {"name": "size", "kind": "ordinal", "levels": [1, 2, 3]},
            {"name": "year", "kind": "integer", "role": "time"},
        ],
    }
    told = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()} | changes
    schema = {"version": 1, "files": {file: told}, "datasets": {name: entry, "twin": {"alias_of": name, "file": file}}}
    (folder / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    return folder / file


@pytest.mark.parametrize("packed", [False, True])
def test_a_small_one_in_full(tmp_path, monkeypatch, packed):
    write(tmp_path, packed=packed)
    monkeypatch.setenv("CEOPT_DATA", str(tmp_path))
    bunch = load("diabetes")
    assert list(bunch.data) == ["age", "town", "size"]
    assert bunch.data["age"].isna().tolist() == [False, False, True]
    assert bunch.data["town"].dropna().tolist() == ["NA", "None"]  # only an empty cell is missing
    assert bunch.space["size"].levels == (1, 2, 3)
    assert (bunch.space["age"].lower, bunch.space["age"].upper, bunch.space["age"].range) == (30, 41, 11)
    assert bunch.space["age"].direction == "increasing"
    assert not bunch.space["town"].mutable
    assert bunch.split.tolist() == ["train", "test", "test"]
    assert bunch.factual.tolist() == [False, True, False]
    assert list(bunch.extra) == ["year"]
    twin = load("twin")
    assert twin.name == "twin"
    pd.testing.assert_frame_equal(twin.frame, bunch.frame)


def test_codes_bound_the_amounts_and_who_stands_on_one_is_answered(tmp_path, monkeypatch):
    table = "late,limit,y\n-9,1,0\n-8,2,0\n3,3,1\n0,98,1\n7,4,0\n"
    path = write(tmp_path, table)
    schema = json.loads((tmp_path / "schema.json").read_text(encoding="utf-8"))
    entry = schema["datasets"]["diabetes"]
    del entry["split_column"], entry["factual_column"]
    entry["features"] = [
        {"name": "late", "kind": "integer", "codes": {"-9": "not known", "-8": "none"}, "amount_lower": 0.0},
        {"name": "limit", "kind": "integer", "codes": {"98": "not known"}, "amount_upper": 4.0},
    ]
    (tmp_path / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    assert path.is_file()
    monkeypatch.setenv("CEOPT_DATA", str(tmp_path))
    space = load("diabetes").space
    late, limit = space
    assert (late.lower, late.upper, late.codes) == (0, 7, (-9, -8))
    assert (limit.lower, limit.upper, limit.codes) == (1, 4, (98,))
    assert (late.mad, late.range, limit.mad, limit.range) == (3, 7, 1, 3)  # of 0, 3, 7 and of 1, 2, 3, 4
    assert not late.lower_inferred
    assert late.upper_inferred
    assert not limit.upper_inferred
    model = Affine([-1.0, 1.0], -0.5, labels=("no", "yes"))
    wanted = ceopt.explain(model, {"late": 7, "limit": 1}, space, target="yes", cost="l1")[0]
    assert wanted.values["late"] >= 0
    assert late.code_labels == ("not known", "none")
    filled = ceopt.explain(model, {"late": 7, "limit": 98}, space, target="no")[0]
    assert 1 <= filled.values["limit"] <= 4
    assert ceopt.explain(model, {"late": 7, "limit": 98}, space.fix("limit"), target="no").status == "infeasible"


def test_no_answer_of_heloc_is_a_code_and_nobody_is_refused(real):
    """People on -9, -8 and -7 among them: 20 of 40 logistic answers once sent a column below zero."""
    bunch = load("heloc")
    favourable = np.where(bunch.target == bunch.favourable, "good", "bad")
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(bunch.data, favourable)
    rejected = bunch.data[model.predict(bunch.data) == "bad"]
    people = rejected.iloc[:: len(rejected) // 12].iloc[:12]
    cohort = ceopt.Recourse(model, bunch.space, target="good").fit(bunch.data).explain(people)
    answered = 0
    for (_, row), result in zip(people.iterrows(), cohort, strict=True):
        assert result.status in {"optimal", "infeasible"}
        for answer in result:
            answered += 1
            for feature in bunch.space:
                value = answer.values[feature.name]
                if value != row[feature.name]:
                    assert value not in feature.codes
                    assert feature.is_finite or value >= feature.lower
    assert answered > 8


def test_without_a_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("CEOPT_DATA", raising=False)
    with pytest.raises(
        UnreadableFileError, match="CEOPT_DATA is None.*Set CEOPT_DATA.*UCI Machine Learning Repository"
    ):
        load("german")
    with pytest.raises(UnreadableFileError, match="ProPublica"):
        load("compas")
    with pytest.raises(UnreadableFileError, match="Kaggle competition Give Me Some Credit"):
        load("gmsc")
    with pytest.raises(UnreadableFileError, match="FICO Explainable Machine Learning Challenge"):
        load("heloc")
    with pytest.raises(UnknownNameError, match="data set is 'iris'.*german, sba"):
        load("iris")
    monkeypatch.setenv("CEOPT_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(UnreadableFileError, match="nowhere', where there is no schema.json"):
        load("german")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"files": {}}', '{"files": [], "datasets": []}', "\ufeff"])
def test_a_schema_that_is_none(tmp_path, monkeypatch, text):
    (tmp_path / "schema.json").write_text(text, encoding="utf-8")
    monkeypatch.setenv("CEOPT_DATA", str(tmp_path))
    with pytest.raises(UnreadableFileError, match="needs a readable schema.json.*Set CEOPT_DATA"):
        load("german")


def test_files_that_are_missing_truncated_or_altered(tmp_path, monkeypatch):
    path = write(tmp_path)
    monkeypatch.setenv("CEOPT_DATA", str(tmp_path))
    path.write_bytes(TABLE.encode()[:-7])
    with pytest.raises(UnreadableFileError, match=rf"all {len(TABLE)} bytes of its file, but .*table.csv' has"):
        load("diabetes")
    path.write_bytes(TABLE.replace("41", "42").encode())
    with pytest.raises(UnreadableFileError, match="the sha256 of .*table.csv' is not that of schema.json.*Pima"):
        load("diabetes")
    path.unlink()
    with pytest.raises(UnreadableFileError, match="table.csv' cannot be read"):
        load("diabetes")

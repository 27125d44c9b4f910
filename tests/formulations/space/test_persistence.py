"""A space as JSON: nothing is lost, the published schema holds, and what is malformed is named."""

from __future__ import annotations

import json
import math
from importlib.resources import files
from pathlib import Path

import jsonschema
import pandas as pd
import pytest

from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnreadableFileError

SPACE = FeatureSpace(
    [
        Feature("number", kind="continuous", lower=0.1, upper=math.inf, step=1 / 3, weight=(1, 0.1), mad=0.1 + 0.2),
        Feature("whole", kind="integer", lower=-5, upper=5, dtype="Int64", direction="decreasing", unit="years / €"),
        Feature("flag", kind="binary", levels=(False, True), mutable=False, guess="bool -> binary"),
        Feature("code", kind="binary", levels=(0, 1)),
        Feature("half", kind="ordinal", levels=(0.5, 1.0, 1e300), lower_inferred=False),
        Feature("grade", kind="ordinal", levels=("b", "a"), dtype=pd.CategoricalDtype(["b", "x", "a"], ordered=True)),
        Feature("town", kind="categorical", levels=("Zürich",), dtype=pd.CategoricalDtype(["Zürich", "Bern"])),
        Feature("text", kind="categorical", levels=("1", "true", "null"), dtype="string"),
        Feature("seen", kind="integer", lower=0, upper=9, lower_inferred=True, upper_inferred=True, std=0.0, range=9.0),
        Feature("fine", kind="continuous", step=0.01, step_inferred=True),
    ]
)


def schema():
    return json.loads((files("ceopt.formulations.space") / "schema.json").read_text(encoding="utf-8"))


def test_nothing_is_lost():
    again = FeatureSpace.from_json(SPACE.to_json())
    assert again == SPACE
    assert again.to_json() == SPACE.to_json()
    assert str(again) == str(SPACE)
    for old, new in zip(SPACE, again, strict=True):
        assert old.pandas_dtype == new.pandas_dtype
        assert [type(level) for level in old.levels] == [type(level) for level in new.levels]


def test_files_of_earlier_releases_are_read():
    """They do not say whether a step was inferred: none was."""
    document = json.loads(SPACE.to_json())
    for feature in document["features"]:
        del feature["step_inferred"]
    jsonschema.validate(document, schema(), cls=jsonschema.Draft202012Validator)
    again = FeatureSpace.from_json(json.dumps(document))
    assert again["fine"].step == 0.01
    assert not again["fine"].step_inferred
    assert list(again)[:-1] == list(SPACE)[:-1]


def test_files_work_like_text(tmp_path):
    path = tmp_path / "space.json"
    assert path.write_text(SPACE.to_json(path), encoding="utf-8")
    assert FeatureSpace.from_json(path) == FeatureSpace.from_json(str(path)) == SPACE


def test_the_published_schema_accepts_what_is_written():
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(json.loads(SPACE.to_json()), schema(), cls=jsonschema.Draft202012Validator)


def edited(change):
    document = json.loads(SPACE.to_json())
    change(document)
    return document


def field(name, value, place=0):
    return lambda document: document["features"][place].update({name: value})


# (change, sentence, whether JSON Schema can express it)
MALFORMED = [
    (lambda d: d.update(format="other"), 'needs "format": "ceopt feature space"', True),
    (lambda d: d.pop("format"), 'needs "format"', True),
    (lambda d: d.update(version=2), "needs version 1, but the version of the text is 2", True),
    (lambda d: d.update(version=True), "the version of the text is True", True),
    (lambda d: d.pop("version"), "the version of the text is None", True),
    (lambda d: d.pop("features"), "needs a list of features, but features is None", True),
    (lambda d: d.update(features=[]), r"features is \[\]", True),
    (lambda d: d.update(features={"a": 1}), "features is {'a': 1}", True),
    (lambda d: d.update(more=1), "there is also 'more'", True),
    (lambda d: d["features"].append(3), r"an object at features\[10\], but it is 3", True),
    (lambda d: d["features"][2].pop("levels"), r"'levels' in features\[2\]", True),
    (lambda d: d["features"][0].pop("name"), r"'name' in features\[0\]", True),
    (field("colour", "red"), r"known fields in features\[0\], but there is also 'colour'", True),
    (field("kind", "number"), r"features\[0\]: Column 'number' needs a known kind", True),
    (field("name", 3), r"features\[0\]: Feature needs a name that is text", True),
    (field("lower", "0"), r"features\[0\].*lower is '0'", True),
    (field("lower", 9, place=1), r"features\[1\].*at most the upper", False),
    (field("step", 0), r"features\[0\].*step is 0", True),
    (field("levels", ["a"]), r"features\[0\].*no levels", True),
    (field("levels", "ab", place=2), r"a list as 'levels' in features\[2\]", True),
    (field("levels", None, place=2), r"a list as 'levels' in features\[2\]", True),
    (field("levels", [False, [True]], place=2), r"features\[2\]", True),
    (field("levels", ["a", "a"], place=7), r"features\[7\].*'a' is there twice", True),
    (field("levels", [1, 2, 3], place=3), r"features\[3\].*exactly two", True),
    (field("levels", ["a", "c"], place=5), r"features\[5\].*level 'c'", False),
    (field("mutable", 1), r"features\[0\].*mutable is 1", True),
    (field("direction", None), r"features\[0\].*direction is None", True),
    (field("direction", "increasing", place=6), r"features\[6\].*no order", True),
    (field("weight", "x"), r"features\[0\].*weight is 'x'", True),
    (field("weight", [1]), r"features\[0\].*one or two", True),
    (field("unit", 1), r"features\[0\].*unit is 1", True),
    (field("guess", None), r"text as 'guess' in features\[0\]", True),
    (field("dtype", 3), r"text as 'dtype' in features\[0\]", True),
    (field("dtype", "int7"), r"features\[0\].*dtype is 'int7'", False),
    (field("dtype", "category[int7]", place=5), r"features\[5\].*dtype is 'int7'", False),
    (field("categories", "ab", place=5), r"a list as 'categories' in features\[5\]", True),
    (field("lower_inferred", None), r"features\[0\].*lower_inferred is None", True),
    (field("name", "whole"), "'whole' is there twice", False),
]


@pytest.mark.parametrize(("change", "sentence", "in_schema"), MALFORMED)
def test_malformed_documents_are_refused_by_name(change, sentence, in_schema):
    document = edited(change)
    with pytest.raises(InvalidValueError, match=sentence):
        FeatureSpace.from_json(json.dumps(document))
    valid = jsonschema.Draft202012Validator(schema()).is_valid(document)
    assert valid != in_schema


@pytest.mark.parametrize("text", ["{", "{'a': 1}", '{"version": 1', "[1, 2", "{}x"])
def test_text_that_is_no_json(text):
    with pytest.raises(UnreadableFileError, match=r"needs JSON, but the text is not \("):
        FeatureSpace.from_json(text)


def test_json_that_is_no_space():
    with pytest.raises(InvalidValueError, match='needs "format"'):
        FeatureSpace.from_json("[1]")
    with pytest.raises(InvalidValueError, match="dtype"):
        FeatureSpace.from_json(json.dumps(edited(field("dtype", "arrow[no_such]"))))
    with pytest.raises(InvalidTypeError, match="JSON text or a path, but it got dict"):
        FeatureSpace.from_json({"format": 1})


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UnreadableFileError, match="no_such.json' cannot be read"):
        FeatureSpace.from_json(tmp_path / "no_such.json")
    with pytest.raises(UnreadableFileError, match="cannot be read"):
        FeatureSpace.from_json("no such file")
    with pytest.raises(UnreadableFileError, match="cannot be read"):
        FeatureSpace.from_json("x" * 100_000)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadableFileError, match="UTF-8"):
        FeatureSpace.from_json(tmp_path / "binary.json")
    cut = Path(tmp_path / "cut.json")
    cut.write_text(SPACE.to_json()[:200], encoding="utf-8")
    with pytest.raises(UnreadableFileError, match="cut.json' is not"):
        FeatureSpace.from_json(cut)

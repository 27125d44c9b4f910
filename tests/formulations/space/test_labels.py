"""Labels of columns and levels: where they come from, where they are kept, and what is refused by name."""

from __future__ import annotations

import json

import jsonschema
import pandas as pd
import pytest

from ceopt import Feature, FeatureSpace
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, UnknownNameError, UnreadableFileError
from tests.formulations.space.test_persistence import schema

PEOPLE = pd.DataFrame(
    {
        "inc": [1, 2, 3],
        "home": ["A1", "A2", "A1"],
        "owner": [True, False, True],
        "late": [0, 1, 0],
        "n": [1.5, 2.0, 3.0],
    }
)
LABELS = {
    "inc": "Yearly income",
    "home": {"label": "Housing", "levels": {"A1": "rents a flat", "A2": "owns a flat"}},
    "owner": {"levels": {True: "with a car", False: "without a car"}},
}
TABLE = """name,level,label
inc,,Yearly income
home,,Housing
home,A1,rents a flat
home,A2,"owns a flat, or a house"
owner,True,with a car
"""


def infer(labels, **given):
    return FeatureSpace.infer(PEOPLE, labels=labels, **given)


def test_a_mapping_gives_labels():
    space = infer(LABELS)

    assert [feature.called for feature in space] == ["Yearly income", "Housing", "owner", "late", "n"]
    assert space["home"].level_labels == (("A1", "rents a flat"), ("A2", "owns a flat"))
    assert [space["owner"].level_called(level) for level in (False, True)] == ["without a car", "with a car"]
    assert space["owner"].label is None
    assert space["late"].level_called(0) == 0


@pytest.mark.parametrize(
    "change", [lambda t: t, lambda t: "\ufeff" + t, lambda t: t + "\n\n", lambda t: t.replace("\n", "\r\n")]
)
def test_a_table_gives_labels(tmp_path, change):
    path = tmp_path / "labels.csv"
    path.write_text(change(TABLE), encoding="utf-8", newline="")
    space = infer(path)

    assert space["inc"].label == "Yearly income"
    assert space["home"].level_labels == (("A1", "rents a flat"), ("A2", "owns a flat, or a house"))
    assert space["owner"].level_labels == ((True, "with a car"),)
    assert infer(str(path)) == space


def test_a_table_of_semicolons_and_numbers_as_levels(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("name;label;level\nlate;never;0\nlate;often, or always;1.0\n", encoding="utf-8")
    space = infer(path, categorical=["late"])

    assert space["late"].level_labels == ((0, "never"), (1, "often, or always"))


@pytest.mark.parametrize(
    ("labels", "error", "says"),
    [
        ({"income": "x"}, UnknownNameError, "column of labels is 'income'"),
        ({"home": {"levels": {"A3": "x"}}}, InvalidValueError, "level_labels has 'A3', which is none of them"),
        ({"home": {"level": {"A1": "x"}}}, UnknownNameError, "Did you mean 'levels'"),
        ({"inc": {"levels": {1: "one"}}}, InvalidValueError, "Numbers have none"),
        ({"owner": {"levels": {1: "x"}}}, InvalidValueError, "level_labels has 1, which"),
        ({"inc": 3}, InvalidTypeError, "label is 3"),
        ({"home": {"levels": {"A1": 3}}}, InvalidTypeError, "label of 'A1' is 3"),
        ({"home": {"levels": {"A1": " "}}}, InvalidValueError, "label of a level, but that of 'A1'"),
        ({"home": {"levels": ["A1"]}}, InvalidTypeError, "a mapping from levels to texts"),
        ({"home": {"levels": {"A1": "A2"}}}, InvalidValueError, "'A2' is that of 'A1' and 'A2'"),
        ({"inc": "Amount", "n": "Amount"}, InvalidValueError, "'Amount' is that of 'inc' and 'n'"),
        ({"inc": "home"}, InvalidValueError, "'home' is that of 'inc' and 'home'"),
        (3, InvalidTypeError, "labels is int"),
    ],
)
def test_labels_that_fit_nothing_are_refused_by_name(labels, error, says):
    with pytest.raises(error, match=says):
        infer(labels)


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("name,level,label\nhome,A3,x\n", InvalidValueError, "Column 'home' .line 2 of .*'A3'"),
        ("name,level,label\ninc,1,x\n", InvalidValueError, "Numbers have none"),
        ("name,level,label\nhom,,x\n", UnknownNameError, "Did you mean 'home'"),
        ("name,level,label\nhome,,x\nhome,,y\n", InvalidValueError, "line 3 of .* has another of 'home'"),
        ("name,level,label\nhome,A1,x\nhome,A1,y\n", InvalidValueError, "line 3 of .* has another of 'A1'"),
        ("name,level,label\nhome,A1,own, rent\n", InvalidValueError, "line 2 of .* has more"),
        ("name,level,lable\nhome,,x\n", InvalidValueError, "'name', 'level', 'lable'"),
        ("", InvalidValueError, "are none"),
        ('name,level,label\nhome,,"x\n', UnreadableFileError, "is none"),
        (None, UnreadableFileError, "cannot be read"),
    ],
)
def test_tables_that_are_none_are_refused(tmp_path, text, error, says):
    path = tmp_path / "labels.csv"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=says):
        infer(path)


def test_update_gives_keeps_and_takes_labels():
    space = infer(LABELS).update("home", level_labels={"A2": "owns it"}, label="Home")

    assert space["home"].level_labels == (("A2", "owns it"),)
    assert space.update("home", mutable=False)["home"].label == "Home"
    assert space.update("home", levels=["A1", "A2"], kind="ordinal")["home"].level_labels == (("A2", "owns it"),)
    assert space.update("home", levels=["A1"], kind="categorical")["home"].level_labels == ()
    assert space.update("home", label="")["home"].called == "home"
    assert space.update("home", level_labels={})["home"].level_labels == ()
    with pytest.raises(InvalidValueError, match="level_labels has 'B'"):
        space.update("home", level_labels={"B": "x"})


def test_codes_have_labels_that_stay_with_them():
    people = pd.DataFrame({"late": [-9, -9, 1, 2]})
    space = FeatureSpace.infer(people, integer=["late"])
    space = space.update("late", codes=[-9], data=people, level_labels={-9: "no record"})

    assert space["late"].level_called(-9) == "no record"
    assert space.update("late", codes=[-9], data=people)["late"].level_called(-9) == "no record"
    assert space.update("late", codes=[])["late"].level_labels == ()


def test_json_text_and_frame_have_labels():
    space = infer(LABELS)
    again = FeatureSpace.from_json(space.to_json())

    jsonschema.validate(json.loads(space.to_json()), schema(), cls=jsonschema.Draft202012Validator)
    assert again == space
    assert hash(again) == hash(space)
    assert [type(level) for level, _ in again["owner"].level_labels] == [bool, bool]
    assert "Housing: A1 = rents a flat, A2 = owns a flat" in str(space)
    assert "label" not in str(infer(None))
    assert space.to_frame().loc["inc", "label"] == "Yearly income"


def test_files_of_earlier_releases_have_no_labels():
    document = json.loads(infer(LABELS).to_json())
    for feature in document["features"]:
        del feature["label"], feature["level_labels"]
    jsonschema.validate(document, schema(), cls=jsonschema.Draft202012Validator)

    assert FeatureSpace.from_json(json.dumps(document)) == infer(None)


@pytest.mark.parametrize("pairs", [3, ["A1"], [["A1", "x", "y"]], {"A9": "x"}])
def test_labels_in_json_that_are_none_are_refused(pairs):
    document = json.loads(infer(LABELS).to_json())
    document["features"][1]["level_labels"] = pairs
    with pytest.raises(CeoptError, match=r"features\[1\]"):
        FeatureSpace.from_json(json.dumps(document))


def test_labels_of_levels_by_hand():
    feature = Feature("home", kind="binary", levels=("A1", "A2"), level_labels={"A2": "owns", "A1": "rents"})

    assert feature.level_labels == (("A1", "rents"), ("A2", "owns"))

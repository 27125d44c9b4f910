"""``--rules FILE``: every rule as plain data, one sentence for whatever is wrong, and a schema that says the same."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import joblib
import jsonschema
import numpy as np
import pandas as pd
import pytest
from rules.found import by_name, halves
from rules.small import FACTUAL, POINTS, SPACE
from sklearn.ensemble import IsolationForest
from sources import ROOT

from ceopt.cli.inputs import read_rules
from ceopt.datasets import loans
from ceopt.formulations.constraints import RULES
from ceopt.formulations.constraints.causal_structure import LinearEquation
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, UnknownNameError, UnreadableFileError

SCHEMA = json.loads((files("ceopt.cli") / "rules_schema.json").read_text(encoding="utf-8"))
VALID = jsonschema.Draft202012Validator(SCHEMA)


#: Arguments that plain data cannot say: the model, and its target, of a rule about a model of its own.
UNSAID = ("model", "target")


def plain(rule: Any) -> dict[str, Any] | None:
    """A rule as an object of the file, or None where plain data cannot say it."""
    entry: dict[str, Any] = {"rule": type(rule).__name__}
    for field in fields(rule):
        if field.init and field.name not in UNSAID:
            entry[field.name] = _plain(getattr(rule, field.name))
    if entry["rule"] == "Causal":
        if not all(isinstance(equation, LinearEquation) for equation in rule.equations.values()):
            return None
        equations = {c: {"parents": dict(e.parents), "intercept": e.intercept} for c, e in rule.equations.items()}
        entry["equations"] = equations
    if entry["rule"] == "NotAnOutlier":
        entry["forest"] = "forest.joblib"
    return entry


def _plain(value: Any) -> Any:
    if isinstance(value, pd.DataFrame):
        return json.loads(value.to_json(orient="records"))
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key if isinstance(key, str) else json.dumps(key): _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return value


def written(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


EXAMPLES = [(name, rule) for name, rule in halves() if name in RULES and plain(rule) is not None]


def test_every_rule_has_an_example_in_plain_data_and_a_schema():
    assert {name for name, _ in EXAMPLES} == set(RULES)
    VALID.check_schema(SCHEMA)
    for name, rule in RULES.items():
        arguments = {field.name: field for field in fields(rule) if field.init and field.name not in UNSAID}
        required = [
            argument
            for argument, field in arguments.items()
            if field.default is MISSING and field.default_factory is MISSING
        ]
        assert list(SCHEMA["$defs"][name]["properties"]) == ["rule", *arguments]
        assert SCHEMA["$defs"][name]["required"] == ["rule", *required]
    assert [part["$ref"].rpartition("/")[2] for part in SCHEMA["items"]["oneOf"]] == list(RULES)


@pytest.mark.parametrize(
    ("name", "rule"), EXAMPLES, ids=[f"{name} {place}" for place, (name, _) in enumerate(EXAMPLES)]
)
def test_a_rule_of_the_file_is_the_rule(tmp_path, name, rule):
    document = [plain(rule)]
    VALID.validate(document)
    if "forest" in document[0]:
        joblib.dump(rule.forest, tmp_path / "forest.joblib")
    (read,) = read_rules(written(tmp_path / "rules.json", document), SPACE, allow_pickle=True)
    assert type(read) is RULES[name]
    if name in {"Region", "RobustValidity", "RobustToShift"}:  # whose model, and its target, are no plain data
        read = replace(read, **{name: getattr(rule, name) for name in ("model", "target") if hasattr(rule, name)})
    rule.check(SPACE)  # a hull counts its clusters then
    assert read.sentence() == rule.sentence()
    assert read.name == rule.name
    home = by_name(SPACE, FACTUAL)
    for point in POINTS[::40]:
        there = by_name(SPACE, point)
        assert read.violation(SPACE, home, there) == pytest.approx(rule.violation(SPACE, home, there), abs=1e-9)


def test_defaults_may_be_left_out_and_rules_keep_their_order(tmp_path):
    path = written(
        tmp_path / "rules.json",
        [
            {"rule": "MaxChanges", "k": 2},
            {"rule": "Hull"},
            {"rule": "Causal", "equations": {"wage": {"parents": {"age": 1}}}},
        ],
    )
    few, hull, causal = read_rules(path, SPACE)
    assert (few.k, few.count, few.name) == (2, "features", None)
    assert (hull.data, hull.radius, hull.norm) == (None, 0.0, "l1")
    assert causal.equations == {"wage": LinearEquation({"age": 1})}
    assert read_rules(written(tmp_path / "none.json", []), SPACE) == ()


def test_a_forest_is_opened_only_if_its_user_trusts_it(tmp_path):
    path = written(tmp_path / "rules.json", [{"rule": "NotAnOutlier", "forest": "none.joblib"}])
    with pytest.raises(UnreadableFileError, match=r"rule 1 of '.*': .*none\.joblib' is none"):
        read_rules(path, SPACE, allow_pickle=True)
    joblib.dump(IsolationForest().fit(np.zeros((9, 6))), tmp_path / "none.joblib")
    with pytest.raises(InvalidValueError, match="--allow-pickle"):
        read_rules(path, SPACE)
    path = written(tmp_path / "rules.json", [{"rule": "NotAnOutlier", "forest": 3}])
    with pytest.raises(CeoptError, match="an IsolationForest"):
        read_rules(path, SPACE, allow_pickle=True)


def test_levels_that_are_no_text_are_meant_by_their_text(tmp_path):
    document = [
        {"rule": "AllowedTransitions", "column": "job", "transitions": {"10": [30], "30": [20, 10]}},
        {"rule": "AllowedTransitions", "column": "owner", "transitions": {"false": [True]}},
    ]
    jobs, owner = read_rules(written(tmp_path / "rules.json", document), SPACE)
    assert jobs.transitions == {10: (30,), 30: (20, 10)}
    assert owner.transitions == {False: (True,)}


BAD = [
    ({"rule": "MaxChanges", "k": 2}, InvalidTypeError, "--rules needs a list of rules, but '.*' holds an object."),
    ("", UnreadableFileError, "--rules needs JSON, but '.*' is not"),
    ("[{", UnreadableFileError, "needs JSON"),
    ("null", InvalidTypeError, "holds null"),
    ("[" * 100_000, UnreadableFileError, "nests too deeply"),
    ([3], InvalidTypeError, "needs an object as rule 1 of '.*', but it is a number"),
    ([["MaxChanges", 2]], InvalidTypeError, "but it is a list"),
    ([{"k": 2}], InvalidValueError, 'a name as "rule" in rule 1 .*there is none. Choose from: MaxChanges, Linear'),
    ([{"rule": "MaxChange", "k": 2}], UnknownNameError, "rule is 'MaxChange'|'MaxChange'. Did you mean 'MaxChanges'"),
    ([{"rule": 3}], UnknownNameError, "known rule as rule 1 of '.*rules.json'.* is 3.*Choose from: MaxChanges, Linear"),
    ([{"rule": "MaxChanges", "k": 2}, {"rule": "Linear", "coefs": {}}], UnknownNameError,
     "argument of Linear in rule 2 .* is 'coefs'. .*Choose from: coefficients, sense, rhs, name, within"),
    ([{"rule": "RobustValidity", "model": 1}], UnknownNameError, "argument of RobustValidity .* is 'model'"),
    ([{"rule": "MaxChanges"}], InvalidValueError, "'k' of MaxChanges in rule 1 .*missing. .*k, count, name"),
    ([{"rule": "MaxChanges", "k": -1}], InvalidValueError, "cannot use rule 1 of '.*': MaxChanges needs .*-1"),
    ([{"rule": "MaxChanges", "k": "2"}], CeoptError, "cannot use rule 1 .*MaxChanges"),
    ('[{"rule": "MaxChanges", "k": 1, "k": 2}]', InvalidValueError, "each name once .*'k' is there twice"),
    ('[{"rule": "Hull", "radius": NaN}]', InvalidValueError, "finite numbers, but one is NaN"),
    ('[{"rule": "Hull", "radius": Infinity}]', InvalidValueError, "one is Infinity"),
    ([{"rule": "Linear", "coefficients": {"wages": 1}, "sense": "<=", "rhs": 1}], UnknownNameError,
     "cannot use rule 1 .*'wages'. Did you mean 'wage'"),
    ([{"rule": "Linear", "coefficients": {"wage": 1}, "sense": "<", "rhs": 1}], UnknownNameError, "sense is '<'"),
    ([{"rule": "AllowedValues", "values": {"size": ["XL"]}}], InvalidValueError, "rule 1 .*'size'.*'XL'"),
    ([{"rule": "AllowedTransitions", "column": "job", "transitions": {"15": [10]}}], InvalidValueError, "'15'"),
    ([{"rule": "AllowedTransitions", "column": "jobs", "transitions": {}}], CeoptError, "rule 1 .*AllowedTransitions"),
    ([{"rule": "IfThen", "condition": "age", "conclusion": ["age", "changed"]}], InvalidTypeError, "conditions"),
    ([{"rule": "IfThen", "condition": ["age", "~", 3], "conclusion": ["age", "changed"]}], UnknownNameError, "'~'"),
    ([{"rule": "AllowedRows", "columns": ["age"], "frame": []}], InvalidTypeError, "a list of rows, each an object"),
    ([{"rule": "AllowedRows", "columns": ["age"], "frame": {"age": [1]}}], InvalidTypeError, "but it is an object"),
    ([{"rule": "AllowedRows", "columns": ["age"], "frame": [{"age": 1}, {"size": "S"}]}], InvalidValueError,
     "the columns age in each row, but row 2 has size"),
    ([{"rule": "AllowedRows", "columns": ["age"], "frame": [{"size": "S"}]}], UnknownNameError, "rule 1 .*'age'"),
    ([{"rule": "Hull", "data": "people.csv"}], InvalidTypeError, "but it is text"),
    ([{"rule": "Hull", "norm": "l3"}], UnknownNameError, "rule 1 .*'l3'"),
    ([{"rule": "Causal", "equations": {"wage": {"age": 1.0}}}], InvalidTypeError, "\"parents\".* that of 'wage'"),
    ([{"rule": "Causal", "equations": {"wage": {"parents": {"age": 1}, "c": 2}}}], UnknownNameError, "'c'.*intercept"),
    ([{"rule": "Causal", "equations": [1]}], CeoptError, "rule 1 .*Causal"),
    ([{"rule": "Causal", "equations": {"wage": {"parents": {"ages": 1}}}}], UnknownNameError, "'ages'"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "error", "match"), BAD, ids=range(len(BAD)))
def test_what_is_wrong_is_said_in_one_sentence(tmp_path, document, error, match):
    path = written(tmp_path / "rules.json", document)
    with pytest.raises(error, match=match) as caught:
        read_rules(path, SPACE)
    assert str(caught.value).startswith("--rules ")
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_what_the_shape_alone_tells_the_schema_tells_too():
    shaped = [BAD[0], *(bad for bad in BAD[5:15] if not isinstance(bad[0], str))]
    for document, _, _ in shaped:
        assert not VALID.is_valid(document), document


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_files_that_cannot_be_read_are_named(tmp_path, content):
    path = tmp_path / "rules.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UnreadableFileError, match="--rules needs a file of UTF-8 text, but file .*rules.json"):
        read_rules(path, SPACE)
    with pytest.raises(UnreadableFileError, match="--rules needs a file"):
        read_rules(tmp_path, SPACE)


def test_the_file_that_the_documentation_shows_is_one(tmp_path):
    page = (ROOT / "docs" / "how_to" / "rules.md").read_text(encoding="utf-8")
    shown = page.partition("## In a file")[2].partition("```json\n")[2].partition("```")[0]

    VALID.validate(json.loads(shown))
    rules = read_rules(written(tmp_path / "rules.json", shown), loans().space)
    assert [type(rule).__name__ for rule in rules] == [entry["rule"] for entry in json.loads(shown)]
    assert len(rules) == 8

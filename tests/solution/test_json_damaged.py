"""Any damage to a result's or a space's JSON is a sentence; what is read can be shown and written."""

from __future__ import annotations

import copy
import json

import pytest
from draws import number_of_draws

import ceopt
from ceopt import CeoptError
from ceopt.formulations.predictors import Affine

SPACE = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=9) for name in ("a", "b")])
CAUSAL = ceopt.Causal({"b": ceopt.LinearEquation({"a": 1.0})}, intervention="soft")
RESULT = ceopt.explain(
    Affine([1.0, 1.0], -5.5, labels=("no", "yes")), {"a": 1, "b": 1}, SPACE, target="yes", constraints=[CAUSAL]
)
WRONG = [
    None, True, 5, -1, "x", "", [], [1], {}, {"a": 1}, {"float": "x"}, {"float": 1}, {"pairs": 1}, {"pairs": [[1]]},
    {"pairs": [[{"pairs": []}, 2]]}, {"tuple": 1}, {"time": "x"}, {"time": None}, {"missing": None}, 1e308, 10**400,
    {"pairs": [[[1], 2]]}, [[[]]],
]  # fmt: skip
READERS = {"result": (ceopt.SolutionSet.from_json, RESULT), "space": (ceopt.FeatureSpace.from_json, SPACE)}


def places(document, path=()):
    """Yield the way to everything in a document."""
    yield path
    entries = document.items() if isinstance(document, dict) else enumerate(document)
    for key, part in entries if isinstance(document, dict | list) else ():
        yield from places(part, (*path, key)) if isinstance(part, dict | list) else [(*path, key)]


def damaged(document, path, value):
    if not path:
        return value
    document = copy.deepcopy(document)
    part = document
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return document


@pytest.mark.long(every=2)
@pytest.mark.parametrize("kind", READERS)
def test_another_value_in_any_place_is_refused_or_read(kind):
    read, written = READERS[kind]
    document, refused = json.loads(written.to_json()), 0
    every = 40 // number_of_draws(40)  # without --long, another few values in each place
    for turn, path in enumerate(places(document)):
        if kind == "result" and path[:2] == ("space", "features"):  # the other reader's
            continue
        for value in WRONG[turn % every :: every]:
            try:
                again = read(json.dumps(damaged(document, path, value)))
            except CeoptError:
                refused += 1
                continue
            assert repr(again)
            assert again._repr_html_()
            if kind == "result":
                assert again.sentences("de")
            again.to_frame()
            again.to_json()
    assert refused > 500 // every


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nests too deeply"),
        ('{"a":' * 100_000, "nests too deeply"),
        ('{"a": 1', "needs JSON, but the text is not"),
        ('{"a": ' + "9" * 5000 + "}", "needs JSON, but the text is not"),
        ("no such file.json", "'no such file.json' cannot be read .No such file"),
        ("", "cannot be read"),
    ],
)
def test_what_is_no_json_is_refused(kind, text, message):
    with pytest.raises(CeoptError, match=message):
        READERS[kind][0](text)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("bound", "low", "a number or null as 'bound', but it is 'low'"),
        ("timings", {"read": "long"}, "numbers by name as 'timings'"),
        ("complete", 1, "true or false as 'complete', but it is 1"),
        ("conflict", [["a", "b"]], "a list of .name, sentence, number or null. as 'conflict'"),
        ("counterfactuals", {}, "a list of answers as 'counterfactuals'"),
    ],
)
def test_the_field_at_fault_is_named(field, value, message):
    document = json.loads(RESULT.to_json()) | {field: value}
    with pytest.raises(CeoptError, match=f"SolutionSet.from_json needs {message}"):
        ceopt.SolutionSet.from_json(json.dumps(document))

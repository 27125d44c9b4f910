"""Any damage to a result's or a space's JSON is a sentence; what is read can be shown and written."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path

import pandas as pd
import pytest
from damage import OTHER_VALUES, cut, edited, flipped, places, with_value
from draws import is_long

import ceopt
from ceopt import CeoptError
from ceopt.cli.inputs import read_rules
from ceopt.dice.explanations import CounterfactualExamples, CounterfactualExplanations
from ceopt.formulations.predictors import Affine

SPACE = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=9) for name in ("a", "b")])
CAUSAL = ceopt.Causal({"b": ceopt.LinearEquation({"a": 1.0})}, intervention="soft")
RESULT = ceopt.explain(
    Affine([1.0, 1.0], -5.5, labels=("no", "yes")), {"a": 1, "b": 1}, SPACE, target="yes", constraints=[CAUSAL]
)
READERS = {"result": (ceopt.SolutionSet.from_json, RESULT), "space": (ceopt.FeatureSpace.from_json, SPACE)}


@pytest.mark.long(every=2)
@pytest.mark.parametrize("kind", READERS)
def test_another_value_in_any_place_is_refused_or_read(kind):
    read, written = READERS[kind]
    document, refused = json.loads(written.to_json()), 0
    every = 1 if is_long() else 10  # without --long, another few values in each place
    for turn, path in enumerate(places(document)):
        if kind == "result" and path[:2] == ("space", "features"):  # the other reader's
            continue
        for value in OTHER_VALUES[turn % every :: every]:
            try:
                again = read(json.dumps(with_value(document, path, value)))
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


# ---- cohorts, rules and dice_ml's JSON -------------------------------------------------------------------------------
PEOPLE = pd.DataFrame({"a": [1, 1, 9], "b": [1, 0, 9]}, index=["ann", "bob", "cleo"])
RULES = [
    {"rule": "MaxChanges", "k": 2},
    {"rule": "Linear", "coefficients": {"a": 1.0}, "sense": "<=", "rhs": 8, "name": "cap"},
    {"rule": "IfThen", "condition": ["a", ">=", 3], "conclusion": ["b", "==", 2]},
    {"rule": "AllowedValues", "values": {"a": [1, 2, 3]}},
    {"rule": "AllowedRows", "columns": ["a", "home"], "frame": [{"a": 1, "home": "own"}, {"a": 5, "home": "rent"}]},
    {"rule": "AllowedTransitions", "column": "home", "transitions": {"rent": ["own"], "own": []}},
    {"rule": "Hull", "data": [{"a": 1, "b": 1, "home": "own"}, {"a": 8, "b": 2, "home": "rent"}]},
    {"rule": "Causal", "equations": {"b": {"parents": {"a": 1.0}, "intercept": 0.0}}},
    {"rule": "RobustValidity", "mean": [1.0, -1.0], "covariance": [[1, 0], [0, 1]], "radius": 0.1, "level": 0.9},
]
WITH_HOME = ceopt.FeatureSpace([*SPACE, ceopt.Feature("home", kind="binary", levels=("rent", "own"))])


def use_result(result):
    """Do with what was read all that needs nothing else."""
    assert repr(result)
    assert result._repr_html_()
    result.sentences("de")
    result.to_frame()
    result.changes()
    assert ceopt.SolutionSet.from_json(result.to_json()).to_json() == result.to_json()


def use_cohort(cohort):
    assert repr(cohort)
    assert str(cohort.summary())
    cohort.to_frame()
    cohort.changes()
    cohort.failures()
    for result in cohort:
        result.sentences("de")
    assert ceopt.Cohort.from_json(cohort.to_json()).to_json() == cohort.to_json()


def use_explanations(found):
    assert repr(found)
    found.visualize_as_dataframe(show_only_changes=True)
    found.visualize_as_list()
    found.to_json()


def read_rule_list(text):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.json"
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        return read_rules(path, WITH_HOME)


@pytest.fixture(scope="module")
def written():
    """Each format: its text, its reader and what is done with what was read."""
    model = Affine([1.0, 1.0], -5.5, labels=("no", "yes"))
    rules = [ceopt.Linear({"a": 1}, "<=", 2, name="cap"), ceopt.Linear({"b": 1}, "<=", 2)]
    cohort = ceopt.Recourse(model, SPACE, target="yes", n=2, diversity="support").fit(PEOPLE).explain(PEOPLE)
    conflict = ceopt.explain(model, {"a": 1, "b": 1}, SPACE, target="yes", constraints=rules)
    people = pd.DataFrame([[1, 1, 0]], columns=["a", "b", "good"])
    found = people.assign(a=5, good=1)
    example = CounterfactualExamples(test_instance_df=people, final_cfs_df=found, outcome_name="good", desired_class=1)
    shares = {"a": 0.5, "b": 0.25}
    explanations = CounterfactualExplanations([example, example], [shares, shares], shares)
    return {
        "result": (RESULT.to_json(), ceopt.SolutionSet.from_json, use_result),
        "conflict": (conflict.to_json(), ceopt.SolutionSet.from_json, use_result),
        "cohort": (cohort.to_json(), ceopt.Cohort.from_json, use_cohort),
        "space": (SPACE.to_json(), ceopt.FeatureSpace.from_json, lambda space: (repr(space), space.to_json())),
        "rules": (json.dumps(RULES), read_rule_list, lambda rules: [rule.sentence() for rule in rules]),
        "dice": (explanations.to_json(), CounterfactualExplanations.from_json, use_explanations),
    }


def refused(written, kind, texts):
    """Return how many of some texts are refused; the others can be used as if they had been written so."""
    _, read, use = written[kind]
    count = 0
    for text in texts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = read(text)
            except CeoptError:
                count += 1
                continue
            use(found)
    return count


KINDS = ("result", "conflict", "cohort", "space", "rules", "dice")


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_every_format_is_checked(written, kind, capsys):
    document = json.loads(written[kind][0])
    assert refused(written, kind, [json.dumps(document)]) == 0
    edits = [json.dumps(edit) for edit in edited(document, most=30)]
    assert refused(written, kind, edits) > len(edits) // 2
    capsys.readouterr()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_cut_off_anywhere_or_has_a_byte_flipped_is_refused_or_read(written, kind, capsys):
    whole = written[kind][0].encode()
    parts = [part.decode() or "{" for part in cut(whole.rstrip(), every=len(whole) // 15)]
    assert refused(written, kind, parts) == len(parts)
    changed = [part.decode("utf-8", "surrogateescape") for part in flipped(whole, every=len(whole) // 40)]
    refused(written, kind, [text for text in changed if text.lstrip()[:1] in {"{", "["}])
    capsys.readouterr()


@pytest.mark.parametrize(
    ("kind", "path", "value", "message"),
    [
        ("cohort", ("results", 0, "query_id"), [], "a label, of text, a number or a time as 'query_id'"),
        ("cohort", ("options",), {"float": "nan"}, "values by name as 'options'"),
        ("cohort", ("results", 0, "reason"), "\ud800", "half of a surrogate pair"),
        ("result", ("target",), "a\udfffb", "half of a surrogate pair"),
        ("space", ("features", 0, "name"), "\ud800", "half of a surrogate pair"),
        ("rules", (1, "name"), "\ud800", "half of a surrogate pair"),
        ("rules", (6, "data", 0, "home"), [], "needs one of its levels, but its value is"),
        ("dice", ("test_data", 0, 0, 0), "\ud800", "half of a surrogate pair"),
        ("dice", ("data_interface", "outcome_name"), "a", "it is damaged"),
        ("dice", ("cfs_list", 0, 0), [[[]]], "as 'cfs_list'"),
        ("dice", ("feature_names", 0), "c", "it is damaged"),
        ("dice", ("test_data", 0), [], "it is damaged"),
    ],
)
def test_what_failed_later_is_refused_when_it_is_read(written, kind, path, value, message):
    text, read, _ = written[kind]
    with pytest.raises(CeoptError, match=message):
        read(json.dumps(with_value(json.loads(text), path, value)))


def test_a_pair_of_surrogates_is_one_letter_and_a_half_is_not_written(tmp_path):
    space = ceopt.FeatureSpace([ceopt.Feature("a\U0001f600", kind="integer", lower=0, upper=9)])
    assert ceopt.FeatureSpace.from_json(json.dumps(json.loads(space.to_json()))) == space  # as two escapes
    half = ceopt.FeatureSpace([ceopt.Feature("a\ud800", kind="integer", lower=0, upper=9)])
    with pytest.raises(CeoptError, match="text that can be encoded"):
        half.to_json(tmp_path / "space.json")
    assert not (tmp_path / "space.json").exists()

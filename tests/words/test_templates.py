"""Templates: complete in each language, replaced by name, and refused by name where they cannot be."""

from __future__ import annotations

import ast

import pytest
from sources import ROOT, sources

import ceopt
from ceopt import CeoptError, Feature, FeatureSpace
from ceopt.formulations.predictors import Affine
from ceopt.words import LANGUAGES, templates
from ceopt.words.language import FIELDS, language_of

SPACE = FeatureSpace([Feature("income", kind="integer", lower=0, upper=90, unit="euros")])
MODEL = Affine([1.0], -35.0, labels=("no", "yes"))


@pytest.fixture(scope="module")
def answer():
    return ceopt.explain(MODEL, {"income": 20}, SPACE, target="yes")[0]


def calls(function):
    """Each call of a function in the sources: its file and line, and the call."""
    for installed, name in sources().items():
        if installed.endswith(".py"):
            for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"), name)):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
                    yield f"{name}, line {node.lineno}", node


def literal(node):
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_every_template_and_no_other_fields(language):
    assert set(templates(language)) == set(FIELDS)
    assert language_of("test", "en", templates(language)).templates == templates(language)


def test_the_languages_say_the_same_things_with_the_same_fields():
    english, german = templates("en"), templates("de")
    for name, fields in FIELDS.items():
        for field in fields:
            assert (f"{{{field}}}" in english[name]) == (f"{{{field}}}" in german[name]), (name, field)


@pytest.mark.long
def test_whatever_the_sources_say_has_a_template_with_these_fields():
    wrong, found = [], set()
    for where, call in calls("said"):
        name = literal(call.args[1])
        if name is None:  # one of two templates, chosen above
            continue
        found.add(name)
        if {keyword.arg for keyword in call.keywords} != set(FIELDS.get(name, {"no such template"})):
            wrong.append(where)
    for where, call in calls("Phrase"):
        name = literal(call.args[0]) if call.args else None
        if name is not None and isinstance(call.args[1], ast.Dict):
            found.add(name)
            if {literal(key) for key in call.args[1].keys} != set(FIELDS.get(name, {"no such template"})):
                wrong.append(where)

    assert wrong == []
    assert len(found) > 70


@pytest.mark.long
def test_every_template_is_used():
    texts = set()
    for installed, name in sources().items():
        if installed.endswith(".py") and not name.endswith(("english.py", "german.py", "fields.py")):
            for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"), name)):
                if literal(node) is not None:
                    texts.add(node.value)
    made = {f"linear_{sense}" for sense in ("at_most", "at_least", "equals")}
    made |= {f"{status}_{count}" for status in ("optimal", "feasible") for count in ("one", "many")}
    made |= {f"bound_{what}_people" for what in ("rule", "asks", "column", "limit", "seen")}
    made |= {str(status) for status in ceopt.Status}

    assert set(FIELDS) - texts - made == set()


def test_a_template_is_replaced(answer):
    assert answer.sentences(templates={"raise": "+{by}: {column} {after}"}) == ["+16 euros: income 36 euros"]
    assert answer.sentences("de", templates={"amount": "{unit} {value}"}) == ["income von 20 auf euros 36 erhöhen"]
    assert answer.sentences() == ["Raise income from 20 to 36 euros"]


def test_a_third_language_needs_templates_alone():
    marks = {"thousands", "decimal", "list_separator", "or_separator", "separator", "next_change", "connecting"}
    other = {name: f"§{text}" for name, text in templates().items() if name not in marks}
    result = ceopt.explain(MODEL, {"income": 20}, SPACE, target="yes", n=2)
    lines = result.sentences(templates=other)

    assert len(lines) >= 2
    assert all(line.startswith("§") for line in lines)


def test_a_third_language_keeps_its_fields():
    with pytest.raises(CeoptError, match="field is 'emocni'"):
        language_of("test", "en", {"raise": "{emocni}"})


def test_an_empty_template_leaves_its_sentence_out():
    result = ceopt.explain(MODEL, {"income": 20}, SPACE, target="yes")

    assert result.sentences(templates={"optimal_one": ""}) == ["Way 1: Raise income from 20 to 36 euros."]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rise": "{column}"}, r"needs a known template, but template is 'rise'. Did you mean 'raise'\?"),
        ({"zzzz": "{column}"}, r"template is 'zzzz'. ceopt.words.templates\(\) has them all"),
        ({3: "{column}"}, "template is 3"),
        ({"raise": "{colum}"}, "template 'raise' needs a known field, but field is 'colum'. Did you mean 'column'"),
        ({"raise": "{done}"}, "field is 'done'. Did you mean|field is 'done'. Choose from: column, before"),
        ({"yes": "{value}"}, "needs a template without fields, but 'yes' has 'value'"),
        ({"raise": 5}, "needs text for each template, but 'raise' is 5"),
        ({"raise": None}, "needs text for each template"),
        ({"raise": "{}"}, "needs fields such as {value} in its templates, but 'raise' is '{}'"),
        ({"raise": "{0}"}, "but 'raise' is '{0}'"),
        ({"raise": "{column!r}"}, "column!r"),
        ({"raise": "{after:>9}"}, "after:>9"),
        ({"raise": "{column.__class__}"}, "__class__"),
        ({"raise": "{column"}, "expected '}' before end of string"),
        ({"raise": "column}"}, "Single '}' encountered"),
        (["raise"], "needs a mapping from names to texts as templates, but templates is list"),
        ("raise", "but templates is str"),
    ],
)
def test_what_is_no_template_is_refused_by_name(answer, given, message):
    with pytest.raises(CeoptError, match=message):
        answer.sentences(templates=given)


@pytest.mark.parametrize("language", ["fr", "EN", None, 3])
def test_a_language_that_is_not_shipped_is_refused(answer, language):
    with pytest.raises(CeoptError, match="Counterfactual.sentences needs a known language|needs language"):
        answer.sentences(language)
    with pytest.raises(CeoptError, match="Choose from: en, de"):
        templates(language)


def test_what_templates_gives_is_a_copy():
    templates()["raise"] = "x"

    assert templates()["raise"] == "Raise {column} from {before} to {after}"

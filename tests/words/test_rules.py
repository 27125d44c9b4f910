"""Every rule, target and limit in sentences: translated where ceopt knows it, as it stands where it does not."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pandas as pd
import pytest
from rules.found import halves
from rules.small import ROW, SPACE

from ceopt import (
    AllowedRows,
    AllowedTransitions,
    AllowedValues,
    AtLeast,
    AtMost,
    Between,
    Causal,
    Disagreement,
    Feature,
    FeatureSpace,
    Hull,
    IfThen,
    Linear,
    LinearEquation,
    MaxChanges,
    OtherThan,
    Probability,
    Region,
    RobustToShift,
    RobustValidity,
)
from ceopt.base.said import Said
from ceopt.formulations.constraints import RULES
from ceopt.formulations.space.reachable import reach_of
from ceopt.formulations.targets import parse_target
from ceopt.search.conflict import space_rules
from ceopt.words.language import language_of
from ceopt.words.sentences import (
    _PHRASES,
    has_given_name,
    removed_said,
    rule_said,
    rules_said,
    target_said,
    wanted_said,
)

ENGLISH, GERMAN = language_of("test", "en"), language_of("test", "de")
MONEY = FeatureSpace(
    [
        Feature("income", kind="continuous", lower=0.0, upper=90_000.0, step=100.0, unit="euros"),
        Feature("debt", kind="integer", lower=0, upper=90_000, unit="euros"),
        Feature("school", kind="ordinal", levels=("low", "mid", "high"), direction="increasing"),
        Feature("job", kind="categorical", levels=("cook", "nurse", "< 1 year")),
        Feature("owner", kind="binary", levels=(0, 1), mutable=False),
    ]
)
TABLE = pd.DataFrame({"school": ["low", "high"], "job": ["cook", "nurse"]})
PEOPLE = pd.DataFrame({"income": [1e4, 2e4], "debt": [0, 1], "school": "low", "job": "cook", "owner": 1})


@pytest.mark.parametrize(
    ("rule", "english", "german"),
    [
        (MaxChanges(1), "at most 1 feature may change", "höchstens 1 Merkmal darf sich ändern"),
        (MaxChanges(3), "at most 3 features may change", "höchstens 3 Merkmale dürfen sich ändern"),
        (MaxChanges(2, count="columns"), "at most 2 columns may change", "höchstens 2 Spalten dürfen sich ändern"),
        (Linear({"income": 1.0}, "<=", 22_000), "income is at most 22,000 euros", "income ist höchstens 22.000 euros"),
        (Linear({"income": 0.5, "debt": -1.0}, ">=", 1000.5),
         "0.5 income - debt is at least 1,000.5", "0,5 income - debt ist mindestens 1.000,5"),
        (Linear({"debt": -1.0}, "==", 5.0, within=0.5),
         "-debt is 5, give or take 0.5", "-debt ist 5, bis auf 0,5"),
        (Linear({"income": 1.0}, "<=", 22_000, beyond="no_further"),
         "income is at most 22,000 euros, or no further from it than today",
         "income ist höchstens 22.000 euros, oder nicht weiter davon entfernt als heute"),
        (Linear({"debt": -1.0}, "==", 5.0, within=0.5, beyond="no_further", further=2.5),
         "-debt is 5, give or take 0.5, or at most 2.5 further from it than today",
         "-debt ist 5, bis auf 0,5, oder höchstens 2,5 weiter davon entfernt als heute"),
        (IfThen(("job", "==", "cook"), ("debt", "<=", 9), beyond="no_further"),
         "if job is cook, then debt is at most 9 euros, or no further from it than today",
         "wenn gilt: job ist cook, dann gilt: debt ist höchstens 9 euros, oder nicht weiter davon entfernt als heute"),
        (Linear({"owner": 1.0}, ">=", 1.0), "owner is at least 1", "owner ist mindestens 1"),
        (IfThen(("job", "changed"), ("school", ">=", "mid")),
         "if job changes, then school is at least mid",
         "wenn gilt: job ändert sich, dann gilt: school ist mindestens mid"),
        (IfThen(("debt", ">=", 20_000), ("job", "changed", False)),
         "if debt is at least 20,000 euros, then job stays as it is",
         "wenn gilt: debt ist mindestens 20.000 euros, dann gilt: job bleibt, wie es ist"),
        (IfThen(("job", "in", ["cook", "< 1 year"]), ("owner", "!=", 1)),
         "if job is one of cook, “< 1 year”, then owner is not yes",
         "wenn gilt: job ist eins von cook, „< 1 year“, dann gilt: owner ist nicht Ja"),
        (AllowedValues({"job": ["cook"], "debt": [1000, 2000]}),
         "job is cook; debt is one of 1,000 euros, 2,000 euros",
         "job ist cook; debt ist eins von 1.000 euros, 2.000 euros"),
        (AllowedTransitions("school", {"low": ["mid", "high"], "mid": ["high"], "high": []}),
         "school stays as it is, or goes from low to mid or high, mid to high",
         "school bleibt, wie es ist, oder wechselt von low zu mid oder high, mid zu high"),
        (AllowedTransitions("school", {"low": []}), "school stays as it is", "school bleibt, wie es ist"),
        (AllowedRows(["school", "job"], TABLE),
         "school, job together are one of 2 rows of a table",
         "school, job zusammen sind eine von 2 Zeilen einer Tabelle"),
        (Hull(), "like a mix of the people who have the decision",
         "wie eine Mischung aus den Personen mit der gewünschten Entscheidung"),
        (Hull(PEOPLE, radius=0.25), "near a mix of 2 people of the data, at a distance of at most 0.25",
         "nahe einer Mischung aus 2 Personen der Daten, in einem Abstand von höchstens 0,25"),
        (Hull(PEOPLE, radius=math.inf), "the nearer to a mix of 2 people of the data the better",
         "je näher an einer Mischung aus 2 Personen der Daten, desto besser"),
        (Hull(PEOPLE, columns=["income", "debt"]), "like a mix of 2 people of the data in income, debt",
         "wie eine Mischung aus 2 Personen der Daten bei income, debt"),
        (Causal({"debt": LinearEquation({"income": 0.5})}, intervention="soft"),
         "debt follows from income", "debt folgt aus income"),
        (RobustValidity([1.0, 1.0, 0.0], [[0.0] * 3] * 3, 0.0, 0.75),
         "it holds with a probability of at least 0.75 when the model is trained again",
         "es hält mit einer Wahrscheinlichkeit von mindestens 0,75, wenn das Modell neu trainiert wird"),
        (Region(0.5), "it also holds for amounts that are up to 0.5 standard deviations off",
         "es gilt auch für Beträge, die bis zu 0,5 Standardabweichungen daneben liegen"),
        (Region(0.5, columns=["income", "debt"]),
         "it also holds for amounts of income, debt that are up to 0.5 standard deviations off",
         "es gilt auch für Beträge bei income, debt, die bis zu 0,5 Standardabweichungen daneben liegen"),
        (Region(0.5, scale={"income": 100.0}, columns=["income"]),
         "it also holds for amounts of income that are up to 0.5 times the widths of the rule off",
         "es gilt auch für Beträge bei income, die bis zum 0,5-Fachen der Breiten der Regel daneben liegen"),
        (Region(0.5, scale={"income": 100.0}),
         "it also holds for amounts that are up to 0.5 times the widths of the rule off",
         "es gilt auch für Beträge, die bis zum 0,5-Fachen der Breiten der Regel daneben liegen"),
        (RobustToShift(0.025), "it holds for every model whose weights differ by at most 0.025",
         "es hält bei jedem Modell, dessen Gewichte um höchstens 0,025 abweichen"),
    ],
)  # fmt: skip
def test_a_rule_is_said_in_both_languages(rule, english, german):
    text = rule_said(rule, MONEY)

    assert text == rule.sentence()
    assert ENGLISH.say(text) == english
    assert GERMAN.say(text) == german


def test_every_rule_of_the_registry_is_said():
    assert set(_PHRASES) == set(RULES.values())
    for name, rule in halves():
        text = rule_said(rule, SPACE)
        assert isinstance(text, Said)
        assert text == rule.sentence()
        assert ENGLISH.say(text), name
        assert GERMAN.say(text) != text, name


def test_a_rule_of_the_users_own_says_its_own_sentence():
    own = SimpleNamespace(sentence=lambda: "nur eins von beiden", name=None)

    assert rules_said([own], SPACE) == {"SimpleNamespace_1": "nur eins von beiden"}
    assert GERMAN.say(rule_said(own, SPACE)) == "nur eins von beiden"


@pytest.mark.parametrize(
    ("name", "is_given"), [("few", True), ("MaxChanges_1", False), ("Linear_12", False), ("plan_2", True), ("x", True)]
)
def test_names_that_ceopt_gave_are_told_from_the_users(name, is_given):
    assert has_given_name(name) == is_given


@pytest.mark.parametrize(
    ("target", "labels", "english", "german"),
    [
        ("good", ("bad", "good"), "good", "good"),
        (1, (0, 1), "1", "1"),
        (["b", "c"], ("a", "b", "c"), "b or c", "b oder c"),
        (OtherThan("a"), ("a", "b", "c"), "b or c", "b oder c"),
        (Probability("good", 0.75), ("bad", "good"), "good with a probability of at least 0.75",
         "good mit einer Wahrscheinlichkeit von mindestens 0,75"),
        (AtLeast(1200), None, "at least 1,200", "mindestens 1.200"),
        (AtMost(0.5), None, "at most 0.5", "höchstens 0,5"),
        (Between(1, 2000), None, "from 1 to 2,000", "von 1 bis 2.000"),
        (Disagreement("good", 0.1), ("bad", "good"), "good, by all but 10% of the trees",
         "good, nach allen Bäumen bis auf 10 %"),
        (Disagreement("good", 0.0), ("bad", "good"), "good, by every tree", "good, nach jedem Baum"),
    ],
)  # fmt: skip
def test_a_target_is_said_in_both_languages(target, labels, english, german):
    text = target_said(parse_target(target, labels))

    assert text == parse_target(target, labels).text()
    assert ENGLISH.say(text) == english
    assert GERMAN.say(text) == german


@pytest.mark.parametrize(
    ("target", "german"),
    [
        ("good", "good"),
        (True, "Ja"),
        (OtherThan("bad"), "alles außer bad"),
        (["a", "b"], "a oder b"),
        (Probability("good", 0.6), "good mit einer Wahrscheinlichkeit von mindestens 0,6"),
        (AtLeast(3.5), "mindestens 3,5"),
        (object, "its text"),
    ],
)
def test_a_target_of_a_black_box_is_said_as_it_was_given(target, german):
    assert wanted_said("its text", target) == "its text"
    assert GERMAN.say(wanted_said("its text", target)) == german


def test_what_the_space_takes_from_a_person_is_said():
    factual = MONEY.row({"income": 2000.0, "debt": 500, "school": "mid", "job": "cook", "owner": 1})
    limits = MONEY.update("income", direction="increasing").update("debt", lower=-math.inf, direction="decreasing")
    removed = removed_said(limits, reach_of(limits, factual), factual)

    assert {name: ENGLISH.say(text) for name, text in removed.items()} == {
        "income": "income stays between 2,000 and 90,000 euros",
        "debt": "debt is at most 500 euros",
        "school": "school cannot become low",
        "owner": "owner stays at yes",
    }
    assert removed["owner"] == "fixed at 1"
    assert GERMAN.say(removed["income"]) == "income bleibt zwischen 2.000 und 90.000 euros"


def test_rules_of_the_space_are_said():
    space = MONEY.update("debt", direction="decreasing")
    factual = space.row({"income": 2000.0, "debt": 500, "school": "mid", "job": "cook", "owner": 1})
    found = {rule.name: rule.sentence for rule in space_rules(space, factual)}

    assert found["debt: may only decrease"] == "debt may only decrease from 500"
    assert {name: GERMAN.say(text) for name, text in found.items()} == {
        "income: at least 0": "income ist mindestens 0 euros",
        "income: at most 90000": "income ist höchstens 90.000 euros",
        "income: steps of 100": "income ändert sich von 2.000 euros aus in Schritten von 100 euros",
        "debt: may only decrease": "debt darf von 500 euros aus nur fallen",
        "debt: at least 0": "debt ist mindestens 0 euros",
        "debt: at most 90000": "debt ist höchstens 90.000 euros",
        "school: may only increase": "school darf von mid aus nur steigen",
        "owner: fixed": "owner bleibt bei Ja",
    }


def test_a_row_of_every_kind_has_no_limit_without_words():
    removed = removed_said(SPACE, reach_of(SPACE, SPACE.row(ROW)), SPACE.row(ROW))

    assert all(isinstance(text, Said) and GERMAN.say(text) != text for text in removed.values())

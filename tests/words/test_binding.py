"""Which rules and limits bound: held against what happens when each is made a little tighter or wider."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

import ceopt
from ceopt import AllowedValues, ExactlyOne, Feature, FeatureSpace, IfThen, Linear, MaxChanges, MaxMove
from ceopt.formulations.predictors import Affine
from ceopt.words.binding import binding_lines, bindings_of, people_bound, unknown_rules
from ceopt.words.language import language_of

SPACE = FeatureSpace(
    [
        Feature("inc", kind="integer", lower=0, upper=100, mad=1.0, unit="k$"),
        Feature("debt", kind="continuous", lower=0, upper=50, mad=1.0),
        Feature("school", kind="ordinal", levels=("low", "mid", "high"), direction="up"),
        Feature("home", kind="binary", levels=("rent", "own")),
    ]
)
ROW = {"inc": 10, "debt": 20.0, "school": "low", "home": "rent"}
ENGLISH = language_of("test", "en")


def ask(weights, at_least, *rules, space=SPACE, row=None, **given):
    model = Affine(list(weights), -at_least + 0.25, labels=("no", "yes"))
    return ceopt.explain(model, ROW | (row or {}), space, target="yes", constraints=list(rules), **given)


def bound(result):
    return [(one.template, one.name) for one in bindings_of(result)]


#: name -> (weights by column, score to reach, rules, what bound the one answer)
CASES = {
    "free": ((1, 0, 0, 0), 15, [Linear({"inc": 1.0}, "<=", 40, name="cap")], []),
    "cap": ((1, -0.5, 0, 0), 15, [Linear({"inc": 1.0}, "<=", 18, name="cap")], [("bound_rule", "cap")]),
    "cap of a step": ((4, -0.5, 0, 0), 52, [Linear({"inc": 2.0}, "<=", 31, name="cap")], [("bound_rule", "cap")]),
    "a sum": (
        (1, 0, 0, 0), 15, [Linear({"inc": 1.0, "debt": 1.0}, "<=", 30, name="sum")], [("bound_rule", "sum")],
    ),
    "few": ((1, -1, 0, 0), 15, [MaxChanges(1, name="few")], [("bound_rule", "few")]),
    "two of three": ((1, 0, 0, 0), 15, [MaxChanges(2, name="few")], []),
    "then": (
        (1, 0, 0, 9), 19, [IfThen(("home", "==", "own"), ("inc", ">=", 15), name="then")],
        [("bound_rule", "then")],
    ),
    "not the case": ((1, 0, 0, 0), 15, [IfThen(("home", "==", "own"), ("inc", ">=", 15), name="then")], []),
    "more than asked": ((1, 0, 0, 0), 30, [Linear({"inc": 1.0}, ">=", 5, name="least")], []),
    "a move": ((1, 0, 0, 0), 12, [MaxMove(["inc"], up=2, name="near")], [("bound_rule", "near")]),
    "a share": ((1, 0, 0, 0), 12, [MaxMove(["inc"], up="29%", name="near")], [("bound_rule", "near")]),
    "a level": ((0, 0, 5, 0), 5, [MaxMove(["school"], up=1, name="near")], [("bound_rule", "near")]),
    "room to move": ((1, 0, 0, 0), 12, [MaxMove(["inc"], up=3, down=1, name="near")], []),
    "values": ((0, 0, 5, 0), 5, [AllowedValues({"school": ["low", "high"]}, name="some")], [
        ("bound_rule", "some"), ("bound_column", "school"),
    ]),
    "a short move": ((1, -1, 0, 0), 0, [MaxMove(["inc", "debt"], up=40, down=12, name="far")], []),
    "and more": ((1, -0.5, 0, 0), 4, [MaxMove("inc", up=3, further=1, name="far")], [("bound_rule", "far")]),
    "the end": ((1, 0, 0, 0), 100, [], [("bound_column", "inc")]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_bound_is_named(case):
    weights, at_least, rules, expected = CASES[case]
    found = ask(weights, at_least, *rules)
    assert len(found) == 1, found

    assert bound(found) == expected
    assert unknown_rules(found) == []


@pytest.mark.parametrize("case", ["cap", "a sum", "few"])
def test_what_bound_kept_a_cheaper_answer_out(case):
    weights, at_least, rules, _ = CASES[case]

    assert ask(weights, at_least)[0].cost <= ask(weights, at_least, *rules)[0].cost
    assert bound(ask(weights, at_least)) == []


def test_a_rule_that_alone_asks_for_a_change_is_told_apart():
    cap = Linear({"debt": 1.0}, "<=", 15, name="cap")
    with pytest.warns(ceopt.RuleWarning):
        found = ask((1, 0, 0, 0), 15, cap)

    assert bound(found) == [("bound_asks", "cap")]
    assert list(binding_lines(found, ENGLISH)) == ["Way 1 changes debt for this rule alone: cap: debt is at most 15"]


def test_a_limit_about_the_person_is_said():
    found = ask((1, 0, 0, 0), 12, space=SPACE.update("inc", max_up="20%"))
    german = next(binding_lines(found, language_of("test", "de")))

    assert bound(found) == [("bound_limit", "inc")]
    assert list(binding_lines(found, ENGLISH)) == [
        "Way 1 takes inc as far as it may go, to 12 k$: inc may rise by at most 20% of 10 k$, so by 2 k$"
    ]
    assert (
        german
        == "Weg 1 führt inc so weit, wie es darf, bis 12 k$: inc darf um höchstens 20 % von 10 k$ steigen, also um 2 k$"
    )
    assert bound(ask((1, 0, 0, 0), 12, space=SPACE.update("inc", max_up="30%"))) == []


def test_an_end_of_the_data_is_told_apart_from_a_bound():
    data = pd.DataFrame({"x": [1, 3, 5], "y": [0, 1, 5]})
    space = FeatureSpace.infer(data).update("y", upper=5)
    model = Affine([1.0, 1.0], -9.75, labels=("no", "yes"))
    found = ceopt.explain(model, {"x": 1, "y": 0}, space, target="yes")

    assert bound(found) == [("bound_seen", "x"), ("bound_column", "y")]


def test_a_move_within_a_group_is_one_change():
    space = FeatureSpace([Feature(name, kind="integer", lower=0, upper=1) for name in ("red", "blue", "big")])
    model = Affine([0.0, 1.0, 0.0], -0.75, labels=("no", "yes"))
    rules = [MaxChanges(2, name="few"), ExactlyOne(["red", "blue"], name="one")]
    found = ceopt.explain(model, {"red": 1, "blue": 0, "big": 0}, space, target="yes", constraints=rules)

    assert set(found[0].changed) == {"red", "blue"}
    assert ("bound_rule", "few") not in bound(found)
    assert ("bound_rule", "one") in bound(found)


def test_of_a_hull_nobody_can_tell():
    data = SPACE.frame([SPACE.row(ROW | {"inc": income}) for income in (10, 15, 20)])
    found = ask((1, 0, 0, 0), 15, ceopt.Hull(data=data, name="like others"), data=data)

    assert bound(found) == []
    assert unknown_rules(found) == ["like others"]
    assert list(binding_lines(found, ENGLISH)) == [
        "Whether this bound is not known: like others: like a mix of 3 people of the data"
    ]


def test_lines_are_said_in_both_languages():
    found = ask((1, -0.5, 0, 0), 15, Linear({"inc": 1.0}, "<=", 18), MaxChanges(2, name="few"))

    assert list(binding_lines(found, ENGLISH)) == [
        "Way 1 just keeps: inc is at most 18 k$",
        "Way 1 just keeps: few: at most 2 features may change",
    ]
    german = list(binding_lines(found, language_of("test", "de")))
    assert german[1] == "Weg 1 hält gerade noch ein: few: höchstens 2 Merkmale dürfen sich ändern"
    ended = ask((1, 0, 0, 0), 100)
    assert list(binding_lines(ended, ENGLISH)) == ["Way 1 takes inc as far as it may go, to 100 k$"]


def test_people_are_counted_once_each():
    cap = Linear({"inc": 1.0}, "<=", 18, name="cap")
    bounded = ask((1, -0.5, 0, 0), 15, cap, n=2, diversity="pool")
    assert [one.rank for one in bindings_of(bounded)] == [1, 2]
    free = ask((1, 0, 0, 0), 15, cap)
    none = replace(free, counterfactuals=(), status="time_limit")

    lines = list(people_bound([bounded, free, none, bounded], ENGLISH))
    assert lines == ["2 of 3 first ways just keep: cap: inc is at most 18 k$"]


def test_what_was_read_from_json_bound_the_same():
    found = ask((1, -0.5, 0, 0), 15, Linear({"inc": 1.0}, "<=", 18))
    again = ceopt.SolutionSet.from_json(found.to_json())

    assert bindings_of(again) == bindings_of(found) != []


def test_without_a_space_nothing_is_said():
    found = ask((1, -0.5, 0, 0), 15, Linear({"inc": 1.0}, "<=", 18))

    assert list(binding_lines(replace(found, space=None), ENGLISH)) == []

"""What the space lets each column do is said of it: as it binds one person, and as it holds of many."""

from __future__ import annotations

import math

import pytest

import ceopt
from ceopt import Feature, FeatureSpace, MaxMove
from ceopt.formulations.predictors import Affine
from ceopt.words.columns import column_limits
from ceopt.words.language import language_of
from ceopt.words.sentences import in_words, shared_rule_said

ENGLISH, GERMAN = language_of("test", "en"), language_of("test", "de")
SPACE = FeatureSpace(
    [
        Feature("sex", kind="binary", levels=("f", "m"), mutable=False),
        Feature("age", kind="integer", lower=18, upper=99, direction="up", max_up=2, max_down=3, unit="years"),
        Feature("inc", kind="integer", lower=0, upper=9_000, max_up="20%", max_down=0.5, missing=True, step=100),
        Feature("debt", kind="continuous", lower=0, upper=500, direction="down"),
        Feature("late", kind="integer", lower=0, upper=9, codes={-9: "no record", -8: "not usable"}),
        Feature("school", kind="ordinal", levels=("low", "mid", "high"), max_up=1, max_down=2),
        Feature("home", kind="binary", levels=("rent", "own")),
    ]
)


def said(name, values, language=ENGLISH, **update):
    space = SPACE.update(name, **update) if update else SPACE
    return "; ".join(column_limits(space[name], values, language))


@pytest.mark.parametrize(
    ("name", "values", "update", "says"),
    [
        ("sex", ["f"], {}, "stays as it is"),
        ("home", ["rent"], {}, ""),
        ("age", [40], {}, "may only rise; rises by at most 2 years; at most 99 years"),
        ("age", [16, 17, 40], {"direction": "any"}, (
            "rises by at most 2 years; falls by at most 3 years; "
            "at least 18 years (2 of 3 people are beyond it today, and may stay or come nearer); at most 99 years"
        )),
        ("inc", [3_150], {}, (
            "rises by at most 20% of 3,150, so by 600; falls by at most 0.5; at least 0; at most 9,000; "
            "moves in steps of 100"
        )),
        ("inc", [None], {}, (
            "at least 0; at most 9,000; moves in steps of 100; "
            "where it is missing, may stay so or be filled in, which counts as a move of 1"
        )),
        ("inc", [3_000, None], {"missing": "stays"}, (
            "rises by at most 20% of what it is today; falls by at most 0.5; at least 0; at most 9,000; "
            "moves in steps of 100; stays missing where it is missing"
        )),
        ("inc", [1, 2], {"missing": "may_vanish", "fill": 2}, (
            "rises by at most 20% of what it is today; falls by at most 0.5; at least 0; at most 9,000; "
            "moves in steps of 100; "
            "where it is missing, may stay so or be filled in, which counts as a move of 2; "
            "may go missing, which counts as a move of 2"
        )),
        ("debt", [700.0], {}, "may only fall; at least 0"),
        ("debt", [700.0], {"direction": "any"}, (
            "at least 0; at most 500 (is beyond it today, and may stay or come nearer)"
        )),
        ("late", [3], {}, "at least 0; at most 9"),
        ("late", [-9], {}, (
            "at least 0; at most 9; on a code (-9, -8) may stay or become an amount, which counts as a move of 1"
        )),
        ("late", [-9], {"fill": math.inf}, "at least 0; at most 9; on a code (-9, -8) stays there"),
        ("late", [3], {"codes_in_reach": True}, (
            "at least 0; at most 9; may become a code (-9, -8), which counts as a move of 1"
        )),
        ("school", ["low"], {}, "rises by at most 1 level; falls by at most 2 levels"),
        ("school", ["low", "mid"], {"direction": "down"}, "may only fall; falls by at most 2 levels"),
        ("home", [], {}, ""),
    ],
)  # fmt: skip
def test_each_limit_is_said(name, values, update, says):
    assert said(name, values, **update) == says
    assert said(name, values, GERMAN, **update).count(";") == says.count(";")


def test_a_bound_that_the_data_set_is_told_as_such():
    import pandas as pd

    seen = FeatureSpace.infer(pd.DataFrame({"x": [1, 3, 20, 40, 41, 50, 60, 61, 70, 80, 90, 95]}))

    assert "; ".join(column_limits(seen["x"], [3], ENGLISH)) == "at least 1, as in the data; at most 95, as in the data"


# ---- conflicts -------------------------------------------------------------------------------------------------------
MODEL = Affine([1.0, 1.0], -19.5, labels=("no", "yes"))
NARROW = FeatureSpace(
    [
        Feature("x", kind="integer", lower=0, upper=99, max_up=2, unit="years"),
        Feature("y", kind="integer", lower=0, upper=99, mutable=False, direction="up"),
    ]
)


def ask(space=NARROW, x=10, y=5, **given):
    return ceopt.explain(MODEL, {"x": x, "y": y}, space, target="yes", why=30, **given)


def test_a_limit_says_what_it_would_have_to_be():
    found = ask()
    share = ask(NARROW.update("x", max_up="20%"))

    assert "x may rise by at most 2 years (there is a way with 5 years, wider by 3 years)" in in_words(found).conflict
    assert (
        "x may rise by at most 20% of 10 years, so by 2 years (there is a way with 5 years, wider by 3 years)"
        in in_words(share).conflict
    )
    rounded = in_words(ask(NARROW.update("x", max_up="25%"), x=9, y=6)).conflict  # 25% of 9 is 2.25
    assert "so by 2 years (there is a way with 5 years, wider by 2.75 years)" in rounded[0]
    halves = in_words(ask(NARROW.update("x", max_up=2.5))).conflict
    assert "x may rise by at most 2 years (there is a way with 5 years, wider by 2.5 years)" in halves
    german = in_words(found, "de").conflict
    assert "x darf um höchstens 2 years steigen (mit 5 years, also um 3 years weiter, gäbe es einen Weg)" in german


def test_what_a_limit_says_to_each_is_told_as_it_holds_of_all():
    shares = NARROW.update("x", max_up="20%")
    lines = {}
    for language in (ENGLISH, GERMAN):
        results = [ask(shares), ask(shares, x=9, y=6)]
        assert len({len(result.conflict) for result in results}) == 1
        entries = zip(*(result.conflict for result in results), strict=True)
        lines[language.templates["yes"]] = [shared_rule_said(entry, language) for entry in entries]

    assert any(line.startswith("y stays as it is") for line in lines["yes"])
    assert any(
        line.startswith("x may rise by at most 20% of what it is today (there is a way") for line in lines["yes"]
    )
    assert any(line.startswith("y bleibt, wie es ist") for line in lines["Ja"])


def test_what_is_no_limit_of_one_column_keeps_its_name():
    by_rule = [ask(NARROW, constraints=[MaxMove(["x"], up=1)]), ask(constraints=[MaxMove(["x"], up=1)])]
    name, sentence, _ = by_rule[0].conflict[0]
    other = (name, "another", None)

    assert shared_rule_said([(name, sentence, None), other], ENGLISH) == name

"""One sentence a changed column: numbers, levels, yes and no, and what follows."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

from ceopt import Feature, FeatureSpace
from ceopt.result.counterfactual import Counterfactual
from ceopt.result.solution_set import SolutionSet
from ceopt.solvers.errors import InvalidValueError


def told(before, after, features=None, *, actions=None, changed=None, printed=None):
    """The answer that leads from one row to another, in a solution set."""
    names = tuple(name for name in before if before[name] != after[name])
    values = pd.DataFrame({name: pd.Series([value], dtype=_dtype(value)) for name, value in after.items()})
    factual = pd.DataFrame({name: pd.Series([value], dtype=_dtype(value)) for name, value in before.items()})
    answer = Counterfactual(
        values=values, cost=1.0, prediction="good", score=0.5, slack=0.1, changed=changed or names, verified=True,
        rank=1, bound=1.0, gap=0.0, actions=None if actions is None else pd.Series(actions, dtype=object),
        printed=printed or {},
    )  # fmt: skip
    space = None if features is None else FeatureSpace(features)
    result = SolutionSet(
        status="optimal", counterfactuals=(answer,), factual=factual, target="good", space=space
    )  # fmt: skip
    return result[0]


def _dtype(value):
    return object if isinstance(value, str) or value is None else None


def one(before, after, feature=None, *, printed=None):
    features = None if feature is None else [feature]
    return told({"x": before}, {"x": after}, features, printed=None if printed is None else {"x": (printed, printed)})


def both(answer):
    return (*answer.sentences("en"), *answer.sentences("de"))


@pytest.mark.parametrize(
    ("before", "after", "fields", "english", "german"),
    [
        (21_200, 22_400, {"kind": "integer", "unit": "euros"},
         "Raise x from 21,200 to 22,400 euros", "x von 21.200 auf 22.400 euros erhöhen"),
        (30, 28, {"kind": "integer"}, "Lower x from 30 to 28", "x von 30 auf 28 senken"),
        (26_800.0, 29_850.000977, {"kind": "continuous", "unit": "euros"},
         "Raise x from 26,800 to 29,850.000977 euros", "x von 26.800 auf 29.850,000977 euros erhöhen"),
        (123_456.25, 123_457.5, {"kind": "continuous", "step": 0.25},
         "Raise x from 123,456.25 to 123,457.5", "x von 123.456,25 auf 123.457,5 erhöhen"),
        (5.5, 7.0, {"kind": "continuous", "step": 0.5, "unit": "%"},
         "Raise x from 5.5% to 7%", "x von 5,5 % auf 7 % erhöhen"),
        (1200, 900, {"kind": "integer", "unit": "$"},
         "Lower x from $1,200 to $900", "x von 1.200 $ auf 900 $ senken"),
        ("low", "high", {"kind": "ordinal", "levels": ("low", "mid", "high")},
         "Raise x from low to high", "x von low auf high erhöhen"),
        ("high", "mid", {"kind": "ordinal", "levels": ("low", "mid", "high")},
         "Lower x from high to mid", "x von high auf mid senken"),
        (5, 2, {"kind": "ordinal", "levels": (5, 2)}, "Raise x from 5 to 2", "x von 5 auf 2 erhöhen"),
        ("clerk", "nurse", {"kind": "categorical", "levels": ("clerk", "nurse")},
         "Change x from clerk to nurse", "x von clerk in nurse ändern"),
        (10, 30, {"kind": "categorical", "levels": (10, 30)}, "Change x from 10 to 30", "x von 10 in 30 ändern"),
        (1500, 2000, {"kind": "categorical", "levels": (1500, 2000)},
         "Change x from 1500 to 2000", "x von 1500 in 2000 ändern"),
        (1.5, 2.5, {"kind": "categorical", "levels": (1.5, 2.5)},
         "Change x from 1.5 to 2.5", "x von 1,5 in 2,5 ändern"),
        (False, True, {"kind": "binary", "levels": (False, True)},
         "Change x from no to yes", "x von Nein auf Ja ändern"),
        (1, 0, {"kind": "binary", "levels": (0, 1)}, "Change x from yes to no", "x von Ja auf Nein ändern"),
        (1, 0, {"kind": "binary", "levels": (1, 0)}, "Change x from yes to no", "x von Ja auf Nein ändern"),
        ("No", "Yes", {"kind": "binary", "levels": ("No", "Yes")},
         "Change x from no to yes", "x von Nein auf Ja ändern"),
        ("rent", "own", {"kind": "binary", "levels": ("rent", "own")},
         "Change x from rent to own", "x von rent in own ändern"),
        (0, 1, {"kind": "integer"}, "Raise x from 0 to 1", "x von 0 auf 1 erhöhen"),
        (False, True, {"kind": "categorical", "levels": (False, True)},
         "Change x from no to yes", "x von Nein in Ja ändern"),
    ],
)  # fmt: skip
def test_each_kind_of_column_has_its_sentence(before, after, fields, english, german):
    assert both(one(before, after, Feature("x", **fields))) == (english, german)


@pytest.mark.parametrize(
    ("level", "english", "german"),
    [
        ("self-employed", "self-employed", "self-employed"),
        ("private sector", "private sector", "private sector"),
        ("Bachelor's degree", "Bachelor's degree", "Bachelor's degree"),
        ("A34", "A34", "A34"),
        ("< 200 DM", "“< 200 DM”", "„< 200 DM“"),
        ("to", "“to”", "to"),
        ("back and forth", "“back and forth”", "back and forth"),
        ("zu viel", "zu viel", "„zu viel“"),
        ("", "“”", "„“"),
        (" x", "“ x”", "„ x“"),
        ("a, b", "“a, b”", "„a, b“"),
        ("none; other", "“none; other”", "„none; other“"),
        ('say "no"', '“say "no"”', '„say "no"“'),
        ("two\nlines", "“two\\nlines”", "„two\\nlines“"),
        ("{column}", "“{column}”", "„{column}“"),
        ("x" * 60, f"“{'x' * 60}”", f"„{'x' * 60}“"),
        ("<b>bold</b>", "“<b>bold</b>”", "„<b>bold</b>“"),
        ("Müller & Söhne", "Müller & Söhne", "Müller & Söhne"),
    ],
)  # fmt: skip
def test_a_level_is_quoted_where_it_does_not_read_as_one(level, english, german):
    answer = one("nurse", level, Feature("x", kind="categorical", levels=("nurse", level)))

    assert both(answer) == (f"Change x from nurse to {english}", f"x von nurse in {german} ändern")


def test_there_is_one_a_changed_column_in_its_order():
    features = [Feature(name, kind="integer") for name in "abc"]
    answer = told({"a": 1, "b": 2, "c": 3}, {"a": 2, "b": 2, "c": 1}, features)

    assert answer.changed == ("a", "c")
    assert answer.sentences() == ["Raise a from 1 to 2", "Lower c from 3 to 1"]


FEATURES = [
    Feature("school", kind="ordinal", levels=("low", "high")),
    Feature("income", kind="continuous", step=100, unit="euros"),
    Feature("savings", kind="continuous", step=100, unit="euros"),
]
BEFORE = {"school": "low", "income": 2000.0, "savings": 500.0}
AFTER = {"school": "high", "income": 2600.0, "savings": 900.0}


def test_what_follows_is_told_apart_from_what_is_done():
    answer = told(BEFORE, AFTER, FEATURES, actions={"school": "high"})

    assert answer.sentences() == [
        "Raise school from low to high",
        "income follows, from 2,000 to 2,600 euros",
        "savings follows, from 500 to 900 euros",
    ]
    assert answer.sentences("de")[1] == "income folgt daraus, von 2.000 auf 2.600 euros"


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        (900.0, "Raise savings from 500 to 900 euros"),  # set to a value
        (400.0, "Raise savings from 500 to 900 euros"),  # shifted, and nothing follows
        (100.0, "Raise savings by 100 euros; with what follows it goes from 500 to 900 euros"),
        (-200.0, "Lower savings by 200 euros; with what follows it goes from 500 to 900 euros"),
    ],
)
def test_a_part_of_a_move_that_follows_is_told(action, sentence):
    answer = told(BEFORE, AFTER, FEATURES, actions={"savings": action})

    assert answer.sentences()[2] == sentence


def test_what_is_held_is_told_by_the_set_and_not_among_the_changes():
    after = AFTER | {"income": 2000.0}
    answer = told(BEFORE, after, FEATURES, actions={"school": "high", "income": 2000.0})
    result = SolutionSet(
        status="optimal", counterfactuals=(answer,), factual=pd.DataFrame([BEFORE]), target="good",
        space=FeatureSpace(FEATURES),
    )  # fmt: skip

    assert len(answer.sentences()) == len(answer.changed) == 2
    assert "Keep income at 2,000 euros" in result.sentences()[1]
    assert "income bei 2.000 euros halten" in result.sentences("de")[1]


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (1, 3, "Raise x from 1 to 3"),
        (1.0, 2.123456, "Raise x from 1 to 2.123456"),
        (True, False, "Change x from yes to no"),
        ("a", "b", "Change x from a to b"),
        (None, "b", "Fill in x: b"),
    ],
)
def test_without_a_space_the_values_tell_what_a_column_is(before, after, sentence):
    assert one(before, after).sentences() == [sentence]


@pytest.mark.parametrize(
    ("before", "after", "printed", "english", "german"),
    [
        (26_800.0, 29_850.000977, 29_851.0, "Raise x from 26,800 to 29,851", "x von 26.800 auf 29.851 erhöhen"),
        (26_800.4321, 29_850.000977, 29_851.0, "Raise x from 26,800 to 29,851", "x von 26.800 auf 29.851 erhöhen"),
        (0.5, 1 / 3, None, "Lower x from 0.5 to 0.3333333333333333", "x von 0,5 auf 0,3333333333333333 senken"),
        (0.5, 1.5e-7, None, "Lower x from 0.5 to 0.00000015", "x von 0,5 auf 0,00000015 senken"),
        (2.0, 1.5e-12, None, "Lower x from 2 to 1.5e-12", "x von 2 auf 1,5e-12 senken"),
        (0.5, 1e22, None, "Raise x from 0.5 to 1e+22", "x von 0,5 auf 1e+22 erhöhen"),
        (1, 1234567890123457, None, "Raise x from 1 to 1,234,567,890,123,457",
         "x von 1 auf 1.234.567.890.123.457 erhöhen"),
        (5.0, 4.9999999999, None, "Lower x from 5 to 4.9999999999", "x von 5 auf 4,9999999999 senken"),
        (0.30000000000000004, 0.3, None, "Lower x from 0.30000000000000004 to 0.3",
         "x von 0,30000000000000004 auf 0,3 senken"),
    ],
)  # fmt: skip
def test_a_number_is_printed_in_the_digits_that_were_checked_or_else_in_all(before, after, printed, english, german):
    assert both(one(before, after, printed=printed)) == (english, german)


@pytest.mark.parametrize(
    ("before", "printed", "by"), [(26_800.0, 29_851.0, "3,051"), (26_800.4321, 29_851.0, "3,050.5679")]
)
def test_what_is_added_to_the_own_number_makes_what_is_printed(before, printed, by):
    answer = one(before, 29_850.000977, printed=printed)

    assert answer.sentences(templates={"raise": "{by}"}) == [by]


def test_values_that_are_none_of_the_column_are_told_as_they_are():
    number = told({"x": 1}, {"x": "many"}, [Feature("x", kind="integer")])
    level = told({"x": "S"}, {"x": "XL"}, [Feature("x", kind="ordinal", levels=("S", "M"))])
    nothing = told({"x": 1.0}, {"x": math.nan}, [Feature("x", kind="continuous")], changed=("x",))

    assert number.sentences() == ["Change x from 1 to many"]
    assert level.sentences() == ["Change x from S to XL"]
    assert nothing.sentences() == ["Leave x blank in place of 1"]


def test_numpy_and_nullable_columns_are_told_like_any_other():
    factual = pd.DataFrame({"n": pd.array([1200], dtype="Int64"), "y": np.array([3], dtype=np.uint8)})
    answer = dataclasses.replace(told({"n": 1200, "y": 3}, {"n": 1500, "y": 4}), values=factual.assign(n=1500, y=4))
    result = SolutionSet(status="optimal", counterfactuals=(answer,), factual=factual, target="good")

    assert result[0].sentences() == ["Raise n from 1,200 to 1,500", "Raise y from 3 to 4"]


def test_names_of_columns_stay_as_they_are():
    answer = told({"{after}": 1, "<i>": 2}, {"{after}": 2, "<i>": 1})

    assert answer.sentences() == ["Raise {after} from 1 to 2", "Lower <i> from 2 to 1"]


def test_an_answer_that_stands_alone_says_that_it_lacks_the_row():
    answer = dataclasses.replace(one(1, 2), factual=None)

    with pytest.raises(InvalidValueError, match="needs the person's row, but this one is in no solution set"):
        answer.sentences()

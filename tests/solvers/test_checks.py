"""Argument checks: what each takes, what it returns and the sentence that refuses the rest."""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from ceopt.solvers.checks import (
    AllOf,
    Choice,
    Divisor,
    Flag,
    Instance,
    ListOf,
    MappingOf,
    Matrix,
    Moderate,
    NameOrObject,
    OrNone,
    Real,
    Refusal,
    Text,
    Whole,
    check_arguments,
    check_fields,
)
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

OTHER = Refusal("something else as {name}", "Give {name}.", "its {type} is {value}", InvalidTypeError)

TAKEN = [
    (Whole(1), np.int64(1), 1),
    (Whole(1), 2**31 - 1, 2**31 - 1),
    (Whole(1, None), 2**31, 2**31),
    (Real(), -math.inf, -math.inf),
    (Real(above=0), math.inf, math.inf),
    (Real(at_least=0, finite=True), np.float32(0), 0.0),
    (Real(at_least=0, at_most=1), 1, 1.0),
    (Moderate(), -math.inf, -math.inf),
    (Divisor(), 0.0, 0.0),
    (Choice(("l1", "l2")), "l2", "l2"),
    (Choice(lambda: ["l1"]), "l1", "l1"),
    (Flag(), np.True_, True),
    (Text(), "", ""),
    (OrNone(Whole(1)), None, None),
    (AllOf((Real(at_least=0), Divisor())), np.int64(3), 3.0),
    (MappingOf(OTHER, Real()), {"a": 1}, {"a": 1.0}),
    (MappingOf(OTHER), {}, {}),
    (ListOf(OTHER, Text()), np.array(["a"]), ("a",)),
    (ListOf(OTHER), (x for x in "ab"), ("a", "b")),
]

REFUSED = [
    (Whole(1), 0, "f needs x to be a whole number from 1, but x is 0. Give such a number.", InvalidValueError),
    (Whole(1), True, "f needs x to be a whole number from 1, but x is True. Give such a number.", InvalidValueError),
    (Whole(1), np.timedelta64(1), "from 1, but x is np.timedelta64(1). Give such a number.", InvalidValueError),
    (Whole(1), 1.0, "from 1, but x is 1.0. Give such a number.", InvalidValueError),
    (Whole(1), 2**31, "from 1, but x is 2147483648. Give such a number.", InvalidValueError),
    (Whole(1, 3), 4, "f needs x to be a whole number from 1 to 3, but x is 4. Give such a number.", InvalidValueError),
    (Whole(1, 3, too_high=OTHER), 4, "f needs something else as x, but its int is 4. Give x.", InvalidTypeError),
    (Whole(1, 3, too_high=OTHER), 0, "f needs x to be a whole number from 1 to 3, but x is 0.", InvalidValueError),
    (Whole(1, wrong_type=OTHER), 1.5, "f needs something else as x, but its float is 1.5. Give x.", InvalidTypeError),
    (Real(above=0), 0, "f needs x to be a number above 0, but x is 0. Give such a number.", InvalidValueError),
    (Real(above=0), math.nan, "x to be a number above 0, but x is nan. Give such a number.", InvalidValueError),
    (Real(above=0), 10**400, "x to be a number above 0 and finite, but x is 1000", InvalidValueError),
    (Real(above=0), "1", "x to be a number above 0, but x is '1'. Give such a number.", InvalidValueError),
    (Real(above=0), False, "x to be a number above 0, but x is False. Give such a number.", InvalidValueError),
    (Real(), math.nan, "f needs x to be a number, but x is nan. Give such a number.", InvalidValueError),
    (
        Real(at_least=0, finite=True),
        math.inf,
        "number at least 0 and finite, but x is inf",
        InvalidValueError,
    ),
    (Real(at_least=0, below=1), 1, "f needs x to be a number at least 0 below 1, but x is 1.", InvalidValueError),
    (Real(at_most=1), 1.5, "f needs x to be a number at most 1, but x is 1.5.", InvalidValueError),
    (Real(wrong_type=OTHER), "a", "f needs something else as x, but its str is 'a'. Give x.", InvalidTypeError),
    (Moderate(), 2e150, "f needs numbers of at most 1e+150 in size, but x is 2e+150. Change", InvalidValueError),
    (Moderate("Give 1."), -2e150, "in size, but x is -2e+150. Give 1.", InvalidValueError),
    (Divisor(), 1e-200, "f needs numbers of at least 1e-150 in size, but x is 1e-200. Change", InvalidValueError),
    (Divisor(), 2e150, "f needs numbers of at most 1e+150 in size, but x is 2e+150. Change", InvalidValueError),
    (
        Choice(("l1", "l2")),
        "l3",
        "f needs a known x, but x is 'l3'. Choose from: l1, l2.",
        UnknownNameError,
    ),
    (Choice(("l1",), "norm"), pd.NA, "f needs a known norm, but norm is <NA>. Choose from: l1.", UnknownNameError),
    (Flag(), 1, "f needs True or False as x, but x is 1. Write one.", InvalidTypeError),
    (Text(), 1, "f needs text as x, but x is 1. Write it as text.", InvalidTypeError),
    (Instance(pd.DataFrame, OTHER), [], "f needs something else as x, but its list is []. Give x.", InvalidTypeError),
    (OrNone(Whole(1)), 0, "f needs x to be a whole number from 1, but x is 0.", InvalidValueError),
    (AllOf((Real(at_least=0), Divisor())), -1, "f needs x to be a number at least 0, but x is -1.", InvalidValueError),
    (AllOf((Real(at_least=0), Divisor())), 1e-200, "at least 1e-150 in size, but x is 1e-200.", InvalidValueError),
    (MappingOf(OTHER), [], "f needs something else as x, but its list is []. Give x.", InvalidTypeError),
    (MappingOf(OTHER, texts=True), {1: 1}, "f needs something else as x, but its dict is {1: 1}.", InvalidTypeError),
    (MappingOf(OTHER, empty=Refusal("one", "Add.")), {}, "f needs one, but x is {}. Add.", InvalidValueError),
    (
        MappingOf(OTHER, Real(above=0)),
        {"a": 0},
        "x['a'] to be a number above 0, but x['a'] is",
        InvalidValueError,
    ),
    (ListOf(OTHER), "ab", "f needs something else as x, but its str is 'ab'. Give x.", InvalidTypeError),
    (ListOf(OTHER), 3, "f needs something else as x, but its int is 3. Give x.", InvalidTypeError),
    (ListOf(OTHER, empty=Refusal("one", "Add.")), [], "f needs one, but x is []. Add.", InvalidValueError),
    (ListOf(OTHER, Text()), ["a", 1], "f needs text as x, but x is 1.", InvalidTypeError),
    (Matrix((2,)), [1], "f needs x of shape 2, but its shape is (1,). Give such an array.", InvalidValueError),
    (Matrix((None, 2), "Turn."), [1, 2], "f needs x of shape n by 2, but its shape is (2,). Turn.", InvalidValueError),
    (Matrix((2,)), ["1", "2"], "f needs numbers as x, but x is ['1', '2']. Give an array", InvalidValueError),
    (Matrix((2,)), [1, [2]], "f needs numbers as x, but x is [1, [2]]. Give an array", InvalidValueError),
    (
        Matrix((1, 2)),
        [[0, math.nan]],
        "f needs finite x, but x[0, 1] is nan. Leave out what",
        InvalidValueError,
    ),
    (
        Matrix((1, 2)),
        pd.DataFrame({"a": [1], "b": ["u"]}),
        "f needs numbers as x, but its column 'b' has type",
        InvalidValueError,
    ),
]


@pytest.mark.parametrize(("check", "value", "plain"), TAKEN)
def test_what_is_taken_comes_back_plain(check, value, plain):
    found = check.require("f", "x", value)

    assert found == plain
    assert type(found) is type(plain)


@pytest.mark.parametrize(("check", "value", "sentence", "error"), REFUSED)
def test_what_is_refused_is_named(check, value, sentence, error):
    with pytest.raises(error) as caught:
        check.require("f", "x", value)

    assert sentence in str(caught.value)


def test_a_matrix_is_a_copy():
    given = np.ones((2, 3))
    found = Matrix((None, 3)).require("f", "x", given)
    found[0, 0] = 7.0

    assert given[0, 0] == 1.0


def test_a_table_passes_over_names_that_it_does_not_have_and_refuses_the_first_wrong_one():
    table = {"n": Whole(1), "norm": Choice(("l1",))}

    assert check_arguments("f", table, {"norm": "l1", "n": np.int64(2), "other": object()}) == {"n": 2, "norm": "l1"}
    with pytest.raises(InvalidValueError, match="^f needs n to be"):
        check_arguments("f", table, {"norm": "l9", "n": 0})


def test_fields_are_checked_in_the_name_of_their_class():
    class Few:
        k = 0

    with pytest.raises(InvalidValueError, match="^Few needs k to be a whole number from 1, but k is 0"):
        check_fields(Few(), {"k": Whole(1)})


def test_a_refusal_takes_the_value_as_it_is_whatever_it_says():
    class Odd(Mapping):
        def __getitem__(self, key):
            raise KeyError(key)

        def __iter__(self):
            return iter(())

        def __len__(self):
            return 0

        def __repr__(self):
            return "{name} {type}"

    with pytest.raises(InvalidTypeError, match=r"but its Odd is \{name\} \{type\}\. Give x\."):
        Text(OTHER).require("f", "x", Odd())


def test_a_name_or_an_object_is_made_or_taken_as_it_is():
    check = NameOrObject(Mapping, {"empty": dict, "none": lambda: None}, OTHER, spelt={"EMPTY": "empty"})
    own = {"a": 1}

    assert check.require("f", "x", own) is own
    assert check.require("f", "x", "empty") == {}
    assert check.require("f", "x", "EMPTY") == {}
    assert check.require("f", "x", "none") is None
    with pytest.raises(UnknownNameError, match=r"f needs a known x, but x is 'emty'. Did you mean 'empty'"):
        check.require("f", "x", "emty")
    with pytest.raises(InvalidTypeError, match="f needs something else as x, but its int is 3. Give x."):
        check.require("f", "x", 3)


def test_a_value_is_not_written_in_a_way_that_the_sentence_does_not_ask_for():
    class Mute:
        def __str__(self):
            raise RuntimeError

        def __repr__(self):
            return "Mute()"

    with pytest.raises(InvalidTypeError, match=r"its Mute is Mute\(\)"):
        Instance(int, OTHER).require("f", "x", Mute())

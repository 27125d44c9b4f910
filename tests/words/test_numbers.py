"""The digits that a person reads: few, away from where the person is, and never off a grid."""

from __future__ import annotations

from decimal import Decimal

import pytest
from draws import draws
from hypothesis import assume, given
from hypothesis import strategies as st

from ceopt.words.language import exact, language_of, move_in_digits

ENGLISH, GERMAN = language_of("test", "en"), language_of("test", "de")


@pytest.mark.parametrize(
    ("before", "after", "texts"),
    [
        (26_800.0, 29_850.000977, ("26800", "29851")),
        (29_850.000977, 26_800.0, ("29850", "26800")),
        (26_800.0, 22_400.999, ("26800", "22400")),
        (0.5, 26_800.7, ("0.5", "26800.7")),
        (0.5, 26_800.77, ("0.5", "26801")),
        (0.3, 0.4512345, ("0.3", "0.452")),
        (0.3, 0.30000000000000004 + 0.1, ("0.3", "0.4")),
        (3.3, 3.3000001283, ("3.3", "3.30001")),
        (3.300006, 3.3000061, ("3.300006", "3.300007")),
        (5.0, 4.9999999999, ("5", "4.99999")),
        (6.2, 6.5325, ("6.2", "6.5325")),
        (6.2, 6.5325123, ("6.2", "6.533")),
        (1.5, 2.5450000000000004, ("1.5", "2.55")),
        (9.5, 2.5449999999999995, ("9.5", "2.54")),
        (982_363_681.0, 1_000_114_976.0000001, ("982363681", "1000114977")),
        (-5.5, -2.1234567, ("-5.5", "-2.12")),
        (0.0, 1e-300, ("0", "1E-300")),
        (1e15, 1e15 + 3, ("1000000000000000", "1000000000000003")),
        (7.0, 7.0, ("7", "7")),
        (0.0, -0.0, ("0", "0")),
    ],
)
def test_digits_of_a_number_that_takes_any_value(before, after, texts):
    assert tuple(map(str, move_in_digits(before, after))) == texts


def test_no_digits_lead_past_a_limit():
    assert str(move_in_digits(100.0, 110.3751234)[1]) == "110.4"
    assert str(move_in_digits(100.0, 110.3751234, limits=(0.0, 110.3751234))[1]) == "110.3751234"
    assert str(move_in_digits(100.0, 60.3751234, limits=(60.3, 110.0))[1]) == "60.3"


@pytest.mark.parametrize(
    ("before", "after", "step", "texts"),
    [
        (29_800, 29_850, 1.0, ("29800", "29850")),
        (123_456.25, 123_457.5, 0.25, ("123456.25", "123457.5")),
        (0.1, 0.1 + 2 * 0.1, 0.1, ("0.1", "0.3")),
        (29_849.99, 29_849.99 + 1234 * 0.01, 0.01, ("29849.99", "29862.33")),
        (0.123456789, 0.123456789 + 0.5, 0.5, ("0.123456789", "0.623456789")),
        (21_200.0, 21_275.5, 100.0, ("21200", "21275.5")),  # off the grid, as a consequence may be
        (9_007_199_254_740_990, 9_007_199_254_740_991, 1.0, ("9007199254740990", "9007199254740991")),
    ],
)
def test_on_a_grid_the_digits_are_those_of_the_value(before, after, step, texts):
    assert tuple(map(str, move_in_digits(before, after, step=step))) == texts


@draws(300)
@given(
    st.integers(-(10**6), 10**6), st.integers(-(10**5), 10**5), st.sampled_from([1e-3, 0.01, 0.05, 0.25, 1.0, 100.0])
)
def test_a_value_of_a_grid_of_three_decimals_is_printed_as_itself(home, steps, step):
    before = home / 1000
    after = before + steps * step
    text = move_in_digits(before, after, step=step)[1]

    assert text == Decimal(home) / 1000 + steps * Decimal(str(step))


@draws(500)
@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_a_free_value_is_printed_near_itself_and_never_short_of_it(before, after):
    assume(abs(after - before) > 1e-9 * max(abs(before), abs(after)) > 0)
    first, second = move_in_digits(before, after)
    room = 0.01 * abs(after - before)
    six_digits = 1e-5 * abs(after)

    assert first != second
    assert (second > first) == (after > before)
    assert (float(second) - after) * (1 if after > before else -1) >= 0.0
    assert abs(float(second) - after) <= max(room, six_digits)
    assert abs(float(first) - before) <= max(room, 1e-5 * abs(before))


@draws(200)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_exact_digits_of_a_float_give_it_back(value):
    assert float(exact(value)) == value


@pytest.mark.parametrize(
    ("value", "english", "german"),
    [
        (21_200, "21,200", "21.200"),
        (-1_234_567.5, "-1,234,567.5", "-1.234.567,5"),
        (0.25, "0.25", "0,25"),
        (999, "999", "999"),
        (0, "0", "0"),
        (1e22, "1e+22", "1e+22"),
        (1.5e-12, "1.5e-12", "1,5e-12"),
        (Decimal("1E+3"), "1,000", "1.000"),
    ],
)
def test_a_number_has_the_marks_of_its_language(value, english, german):
    assert ENGLISH.number(value) == english
    assert GERMAN.number(value) == german


@pytest.mark.parametrize(
    ("value", "unit", "english", "german"),
    [
        (1200, "euros", "1,200 euros", "1.200 euros"),
        (5.5, "%", "5.5%", "5,5 %"),
        (-200, "$", "-$200", "-200 $"),
        (1200, "€", "€1,200", "1.200 €"),
        (3, None, "3", "3"),
        (3, "", "3", "3"),
    ],
)
def test_a_unit_stands_where_the_language_puts_it(value, unit, english, german):
    assert ENGLISH.amount(value, unit) == english
    assert GERMAN.amount(value, unit) == german

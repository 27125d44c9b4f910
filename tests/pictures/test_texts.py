"""Texts made to fit: no wider than asked, and nothing that cannot be drawn."""

from __future__ import annotations

import pytest

from ceopt.pictures.canvas import clean, shortened, tick_text, width_pt, wrapped

NAME = "number_of_months_since_the_last_payment_default_2019_q1"


@pytest.mark.parametrize("most", [20.0, 60.0, 150.0, 1000.0])
@pytest.mark.parametrize("text", [NAME, "a b c", "W" * 40, "数据" * 20])
def test_a_shortened_text_keeps_both_ends_and_is_no_wider(text, most):
    short = shortened(text, 9.0, most)

    assert width_pt(short, 9.0) <= most or len(short) == 2
    assert short == text or (short[0] == text[0] and "…" in short)
    assert short == text or len(short) < 4 or short[-1] == text[-1]


def test_lines_break_where_words_end_and_lose_nothing_but_what_is_too_much():
    lines = wrapped(NAME, 9.0, 150.0, 3).split("\n")

    assert "".join(lines) == NAME
    assert all(width_pt(line, 9.0) <= 150.0 for line in lines)
    assert all(line.endswith("_") for line in lines[:-1])
    assert wrapped(NAME, 9.0, 100.0, 2).count("\n") == 1
    assert "…" in wrapped(NAME, 9.0, 100.0, 2)
    assert wrapped("costs 11.65 at most", 9.0, width_pt("costs 11.", 9.0), 3) == "costs\n11.65 at\nmost"


def test_what_cannot_be_drawn_or_written_as_xml_is_replaced():
    assert clean("a\x00b\n c\t\ud800") == "a\ufffdb c \ufffd"
    assert clean("") == clean(" ") == "(empty)"
    assert clean(True) == "True"


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([-5e9, 0.0, 5e9], ["\N{MINUS SIGN}5e9", "0", "5e9"]),
        ([1e-7, 2e-7], ["1e-7", "2e-7"]),
        ([21_000.0, 22_500.0], ["21,000", "22,500"]),
        ([0.1 + 0.2, 0.4], ["0.3", "0.4"]),
        ([3e15 + 1, 3e15 + 2], ["3,000,000,000,000,001", "3,000,000,000,000,002"]),
    ],
)
def test_ticks_are_told_apart_and_short(values, shown):
    found = [tick_text(value, min(values), max(values)).replace("\N{MINUS SIGN}7", "-7") for value in values]

    assert found == shown

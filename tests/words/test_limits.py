"""A bound, a limit or a width that is printed is the one that holds: never rounded to where it is false by a hair."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st

import ceopt
from ceopt.formulations.digits import rounded
from ceopt.formulations.predictors import Affine
from ceopt.result.cohort_shown import summary_of
from ceopt.search.solve_check_repair import used_up
from ceopt.solvers.errors import InvalidValueError

BOUND = 0.8094123456
RATE = ceopt.Feature("rate", kind="continuous", lower=BOUND, upper=123_456_789.25, step=None)
SPACE = ceopt.FeatureSpace([RATE, ceopt.Feature("other", kind="continuous", lower=0, upper=1_234_567_891)])
ROW = {"rate": 1.0, "other": 0.0}
MODEL = Affine([-1.0, 0.0], 0.5, labels=("no", "yes"))


def numbers_in(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", text)]


def test_a_space_prints_its_bounds_as_they_are():
    lines = str(SPACE).splitlines()

    assert numbers_in(lines[2])[:2] == [BOUND, 123_456_789.25]
    assert 1_234_567_891 in numbers_in(lines[3])
    seen = ceopt.FeatureSpace.infer(pd.DataFrame({"x": [BOUND, 0.9123456789, 0.85]}))
    assert {BOUND, 0.9123456789} <= set(numbers_in(str(seen)))


@pytest.mark.parametrize("value", [0.8094123, 123_456_789.5])
def test_a_check_says_the_bound_that_a_point_breaks(value):
    report = ceopt.verify(ROW | {"rate": value}, MODEL, SPACE, factual=ROW, target="no")
    said = numbers_in(str(report))

    assert {value} < set(said)
    assert {BOUND, 123_456_789.25} & set(said)


def test_who_is_refused_reads_the_bounds_that_refuse():
    with pytest.raises(InvalidValueError) as caught:
        SPACE.update("rate", codes=[0.8094123], step=1e-7).row(ROW | {"rate": 0.8094122})
    assert 0.8094122 in numbers_in(str(caught.value))

    with pytest.raises(InvalidValueError, match=r"\[0.80941235, 0.80941234\]"):
        ceopt.Feature("x", kind="continuous", lower=0.80941235, upper=0.80941234)


@pytest.mark.filterwarnings("ignore::ceopt.RuleWarning")
def test_rules_and_targets_say_their_limits():
    rules = [
        ceopt.Linear({"rate": 0.123456789}, ">=", BOUND),
        ceopt.Hull(data=pd.DataFrame([ROW, ROW]), radius=BOUND, scale="none"),
    ]
    for rule in rules:
        assert BOUND in numbers_in(rule.sentence())
    result = ceopt.explain(MODEL, ROW, SPACE, target="yes", constraints=rules[:1])
    assert BOUND in numbers_in(" ".join(result.sentences()))
    assert BOUND in numbers_in(" ".join(entry for _, entry, _ in result.conflict) + " ".join(result.rules.values()))
    assert numbers_in(ceopt.Hull(data=pd.DataFrame([ROW, ROW]), penalty=BOUND).sentence()).count(BOUND) == 1


def test_a_share_of_trees_is_said_in_all_its_digits():
    from sklearn.ensemble import RandomForestClassifier

    rows = pd.DataFrame(np.random.default_rng(0).random((60, 1)), columns=["x"])
    forest = RandomForestClassifier(9, max_depth=2, random_state=0).fit(rows, rows["x"] > 0.5)
    space = ceopt.FeatureSpace.infer(rows)
    result = ceopt.explain(forest, {"x": 0.1}, space, target=ceopt.Disagreement(True, 1 / 9 + 1e-9))

    assert "11.1111112111%" in str(result.target)
    assert "11.1111112111%" in " ".join(result.sentences())


def test_widths_that_would_do_do():
    space = ceopt.FeatureSpace([ceopt.Feature("other", kind="integer", lower=0, upper=3_000_000)])
    model = Affine([-1.0], 0.5, labels=("no", "yes"))
    rules = [ceopt.Linear({"other": 1}, ">=", 1_234_564)]
    one = ceopt.explain(model, {"other": 2_000_000}, space, target="yes", constraints=rules)
    (width,) = [width for _, _, width in one.conflict if width is not None]

    for text in (repr(one), repr(summary_of([one], space.names)), " ".join(one.sentences())):
        assert width in numbers_in(text), text


def test_a_refusal_for_a_prediction_is_not_rounded_to_the_target():
    model = Affine([1.0, 0.0], 0.0)
    report = ceopt.verify({"rate": 1.99999999, "other": 0.0}, model, SPACE, target=ceopt.AtLeast(2.0))

    assert "predicts 1.99999999, not at least 2" in str(report)


def test_a_time_limit_is_said_as_it_was_given():
    assert used_up(0.12345678, "") == "The time limit of 0.12345678 s is used up."
    assert used_up(5.0, "") == "The time limit of 5 s is used up."


@draws(300)
@given(st.floats(1e-300, 1e300), st.integers(1, 8))
def test_a_number_in_few_digits_is_on_the_side_that_was_asked(value, significant):
    up, down = rounded(value, significant, "up"), rounded(value, significant, "down")
    noise = 1e-15 * value

    assert down - noise <= value <= up + noise
    assert up - down <= 2.0 * 10.0 ** (1 - significant) * value
    for one in (up, down):
        assert float(f"{one:.{significant}g}") == one


def test_a_gap_in_a_table_and_a_report_is_no_smaller_than_it_is(tmp_path):
    model = Affine([1.0, 1.0], -5.0, labels=("no", "yes"))
    result = ceopt.explain(model, ROW, SPACE, target="yes")
    dear = replace(result[0], values=result[0].frame, bound=0.1234567, gap=0.0412)
    told = replace(result, counterfactuals=(dear,), bound=0.1234567, gap=0.0412345678)

    assert repr(told).splitlines()[3].split()[-1] == "0.05"
    told.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "0.123456<" in page
    assert "0.0412346<" in page

"""Sentences, tables and pictures of cells that are filled in, stay missing, go, or hold a code."""

from __future__ import annotations

import math

import pytest

from ceopt.formulations.space.reachable import reach_of
from ceopt.result.counterfactual import shown_move, shown_value
from ceopt.result.solution_set import SolutionSet
from ceopt.solvers.errors import InvalidValueError
from ceopt.words.language import language_of
from ceopt.words.sentences import removed_said
from tests.result.test_gaps import BLANK, FILLED, NAN, SPACE, answer, cohort, frame, solved

INF = math.inf


@pytest.mark.parametrize(
    ("before", "change", "english", "german"),
    [
        (BLANK, {"income": 4551.0}, "Fill in income: 4,551 dollars", "income angeben: 4.551 dollars"),
        (BLANK, {"phone": True}, "Fill in phone: yes", "phone angeben: Ja"),
        (BLANK, {"grade": "low"}, "Fill in grade: low", "grade angeben: low"),
        (BLANK, {"asked": 2}, "Fill in asked: 2 in place of no record", "asked angeben: 2 statt no record"),
        (
            BLANK,
            {"grade": "unknown"},
            "Change grade from missing to unknown",
            "grade von ohne Angabe in unknown ändern",
        ),
        (FILLED, {"job": NAN}, "Leave job blank in place of cook", "job ohne Angabe lassen statt cook"),
        (FILLED, {"asked": -8}, "Change asked from 2 to not usable", "asked von 2 in not usable ändern"),
        (BLANK, {"asked": -8}, "Change asked from no record to not usable", "asked von no record in not usable ändern"),
    ],
)
def test_each_change_has_its_sentence(before, change, english, german):
    result = solved(before, before | change)

    assert result[0].sentences() == [english]
    assert result[0].sentences("de") == [german]
    assert SolutionSet.from_json(result.to_json())[0].sentences() == [english]


@pytest.mark.parametrize(
    ("span", "english", "german"),
    [
        ((4551.0, INF), "4,551 dollars or more", "4.551 dollars oder mehr"),
        ((0.0, 4551.5), "4,551.5 dollars or less", "4.551,5 dollars oder weniger"),
        ((4551.0, 9000.0), "4,551 to 9,000 dollars", "4.551 bis 9.000 dollars"),
        ((4551.0, 4551.0), "4,551 dollars", "4.551 dollars"),
        ((0.0, INF), "any amount, such as 4,551 dollars", "irgendeinen Wert, etwa 4.551 dollars"),
    ],
)
def test_a_range_that_is_known_is_said(span, english, german):
    known = answer(BLANK, BLANK | {"income": 4551.0}, ranges={"income": span})
    result = SolutionSet(status="optimal", counterfactuals=(known,), factual=frame(BLANK), space=SPACE)

    assert result[0].sentences() == [f"Fill in income: {english}"]
    assert result[0].sentences("de") == [f"income angeben: {german}"]
    assert SolutionSet.from_json(result.to_json())[0].ranges == {"income": span}


def test_a_step_that_ends_before_the_bound_is_open_there():
    space = SPACE.update("income", step=300, upper=5000)
    known = answer(BLANK, BLANK | {"income": 4200.0}, space, ranges={"income": (3900.0, 4800.0)})
    result = SolutionSet(status="optimal", counterfactuals=(known,), factual=frame(BLANK), space=space)

    assert result[0].sentences() == ["Fill in income: 3,900 dollars or more"]


def test_what_is_held_or_follows_is_told_of_gaps_too():
    import pandas as pd

    held = answer(BLANK, BLANK | {"age": 40}, actions=pd.Series({"income": NAN, "asked": -9}, dtype=object))
    result = SolutionSet(status="optimal", counterfactuals=(held,), factual=frame(BLANK), space=SPACE)
    (way,) = result.sentences()[1:]

    assert way == "Way 1: Leave income blank. age follows, from missing to 40. Keep asked at no record."


def test_tables_say_missing_and_what_codes_mean():
    result = solved(BLANK, BLANK | {"income": 4551.0, "asked": 3})
    rows = [line.split() for line in repr(result).splitlines()[3:]]

    assert rows == [["1", "income", "missing", "4,551", "1.5", "0"], ["asked", "no", "record", "3"]]
    assert "grade   missing" in repr(result[0])
    assert shown_value(-9, SPACE["asked"]) == "no record"
    assert shown_move(3, -8, SPACE["asked"]) == ("3", "not usable")
    assert shown_move(-9, 12345, SPACE["asked"], (12345, 12346)) == ("no record", "12,346")
    assert shown_value(-7000, SPACE.update("asked", codes=[-7000])["asked"]) == "-7000"


def test_what_is_out_of_reach_stays_missing_or_on_its_code():
    space = SPACE.fix("income", "asked", "grade")
    row = space.row({name: BLANK[name] for name in space.names})
    removed = removed_said(space, reach_of(space, row), row)
    english, german = language_of("test", "en"), language_of("test", "de")

    assert removed == {"income": "stays missing", "asked": "fixed at -9 (no record)", "grade": "stays missing"}
    assert list(map(english.say, removed.values())) == [
        "income stays missing",
        "asked stays at no record",
        "grade stays missing",
    ]
    assert german.say(removed["income"]) == "income bleibt ohne Angabe"


# ---- pictures --------------------------------------------------------------------------------------------------------
def texts(axes):
    return (
        {text.get_text() for text in axes.texts} | {text.get_text() for text in axes.get_legend().get_texts()}
        if axes.get_legend()
        else {text.get_text() for text in axes.texts}
    )


def test_pictures_place_what_is_missing_apart():
    result = solved(BLANK, FILLED, BLANK | {"income": 99.0})

    assert {"missing", "4,551", "no record"} <= texts(result.plot())
    assert {"ohne Angabe", "4.551", "no record"} <= texts(result.plot("parallel", language="de"))
    places = result.plot("parallel").lines[0].get_xdata()
    assert all(0.0 <= place <= 1.0 for place in places)


def test_a_surface_needs_amounts():
    result = solved(BLANK | {"age": 30, "phone": True}, BLANK | {"age": 40, "phone": False, "income": 4551.0})

    def model(rows):
        return ["yes" if age > 35 else "no" for age in rows["age"]]

    assert result.plot("surface", model=model).get_xlabel() == "age"
    with pytest.raises(
        InvalidValueError, match="two columns of amounts for a surface, but 'income' is missing, or a code"
    ):
        result.plot("surface", model=model, columns=["income", "age"])


def test_a_cohort_counts_what_is_filled_in():
    many = cohort(solved(BLANK, FILLED), solved(FILLED, FILLED | {"job": NAN}), solved(FILLED, FILLED | {"asked": -8}))

    assert {"filled in", "left blank", "another level"} <= texts(many.plot())
    names = [text.get_text() for text in many.plot("costs", by="asked").get_yticklabels()]
    assert names == ["no record", "2"]


def test_reports_are_written(tmp_path):
    result = solved(BLANK, BLANK | {"income": 4551.0, "asked": 3})
    result.report(tmp_path / "one.html")
    cohort(result).report(tmp_path / "many.html", language="de")

    one, many = (tmp_path / "one.html").read_text(), (tmp_path / "many.html").read_text()
    assert "Fill in income: 4,551 dollars" in one
    assert "no record" in one
    assert "asked angeben: 3 statt no record" in many
    assert "nan" not in one.replace("Finance", "").split("<svg")[0]

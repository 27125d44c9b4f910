"""The letter to a person: their words, the whole truth, and nothing that is not theirs to know."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest
from typer.testing import CliRunner

import ceopt
from ceopt import Causal, Feature, FeatureSpace, LinearEquation, SolutionSet
from ceopt.base.said import Phrase, Said
from ceopt.cli.commands import app
from ceopt.formulations.predictors import Affine
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, UnwritableFileError
from ceopt.words.letters import LETTERS, happening, letter_language
from ceopt.words.sentences import change_sentence

ODD = '<b>bold</b> & "odd"'
SPACE = FeatureSpace(
    [
        Feature("xq_sex", kind="binary", levels=("lv_f", "lv_m"), mutable=False, label="sex"),
        Feature("xq_age", kind="integer", lower=18, upper=99, direction="up", unit="years", label="age"),
        Feature("xq_inc", kind="integer", lower=0, upper=90_000, step=100, unit="dollars", label="income", mad=1000.0),
        Feature(
            "xq_home", kind="binary", levels=("lv_a", "lv_b"), label="housing",
            level_labels={"lv_a": "a rented flat", "lv_b": ODD},
        ),
        Feature("xq_debt", kind="integer", lower=0, upper=9_000, unit="dollars", label="the debt", mad=1000.0),
        Feature("xq_late", kind="integer", lower=0, upper=9, codes=[-9], label="late payments"),
    ]
)  # fmt: skip
#: An income of 3,900 dollars is enough, or the other flat, or 3,500 dollars and no debt.
MODEL = Affine([0.0, 0.0, 1.0, 700.0, -1.0, 0.0], -3_499.5, labels=("bad", "good"))
ROW = {"xq_sex": "lv_f", "xq_age": 30, "xq_inc": 3_200, "xq_home": "lv_a", "xq_debt": 400, "xq_late": 0}
TECHNICAL = (
    "cost", "Kosten", "solver", "Löser", "HiGHS", "highs", "optimal", "infeasible", "gap", "ceopt", "model", "Modell",
    "target", "Ziel", "nan", "good", "bad", "xq_", "lv_",
)  # fmt: skip


class Page(HTMLParser):
    """Reads the text of a page, the values of its attributes, and which elements it has."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self._is_style = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._is_style = tag == "style"
        if tag != "meta":
            self.attributes += [value for _, value in attrs]

    def handle_data(self, data):
        if not self._is_style:
            self.text += data


def ask(row=None, space=SPACE, **given):
    given = {"target": "good", "n": 3, "diversity": "support"} | given
    return ceopt.explain(MODEL, ROW | (row or {}), space, **given)


@pytest.fixture(scope="module")
def three():
    found = ask()
    assert len(found) == 3
    return found


def letter(result, path, **given):
    result.report(path, audience="customer", **given)
    return Page(path.read_text(encoding="utf-8"))


def no_technical(page):
    told = page.text + " ".join(page.attributes)
    return [word for word in TECHNICAL if word in told]


def test_ways_are_told_by_labels_and_units(three, tmp_path):
    page = letter(three, tmp_path / "a.html", contact="Ann Smith\n<i>High</i> Street 1")

    assert LETTERS["en"]["ways_many"].format(count=3) in page.text
    assert "Raise your income from 3,200 to 3,900 dollars." in page.text
    assert f"Change your housing from a rented flat to “{ODD}”." in page.text
    assert "Lower the debt from 400 to 0 dollars." in page.text
    assert "<i>High</i> Street 1" in page.text
    assert {"b", "i", "script", "img"}.isdisjoint(page.tags)
    assert no_technical(page) == []


def test_german_says_the_same(three, tmp_path):
    page = letter(three, tmp_path / "a.html", language="de", contact="Anna")

    assert "Income von 3.200 auf 3.900 dollars erhöhen." in page.text
    assert LETTERS["de"]["contact"] in page.text
    assert not any(LETTERS["en"][name] in page.text for name in ("title", "not_asked", "contact", "holds"))
    page = letter(replace(three, query_id=7), tmp_path / "b.html", language="de")
    assert "Aktenzeichen: 7\n" in page.text
    assert no_technical(page) == []


def test_the_ways_stand_side_by_side_as_they_are_told(three, tmp_path):
    text = (letter(three, tmp_path / "a.html"), (tmp_path / "a.html").read_text())[1]
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', text)
    cells = {name: re.findall(r"<td[^>]*>(.*?)</td>", line) for name, line in rows}

    assert set(cells) == {"Income", "Housing", "The debt"}
    assert cells["Income"][0] == "3,200 dollars"
    assert set(cells["Income"][1:]) >= {"3,900 dollars", "as today"}
    assert all(len(line) == 4 for line in cells.values())
    for answer, sentences in zip(three, re.findall(r"<h2>Way.*?</ul>", text, re.DOTALL), strict=True):
        for name, line in cells.items():
            is_listed = name.casefold() in sentences.casefold()
            assert (line[answer.rank] != "as today") == is_listed


ONE_WAY = SPACE.update("xq_inc", direction="up").update("xq_debt", direction="down")


@pytest.mark.usefixtures("by_program")
def test_what_moves_in_one_direction_alone_is_nothing_that_anybody_does(tmp_path):
    found = ask(space=ONE_WAY)
    page = letter(found, tmp_path / "a.html")
    german = letter(found, tmp_path / "b.html", language="de")

    assert "Your income would have to rise from 3,200 to 3,900 dollars." in page.text
    assert "The debt would have to fall from 400 to 0 dollars." in page.text
    assert f"Change your housing from a rented flat to “{ODD}”." in page.text
    assert not any(word in page.text for word in ("Raise", "Lower"))
    assert "Income: Anstieg von 3.200 auf 3.900 dollars." in german.text
    assert "The debt: Rückgang von 400 auf 0 dollars." in german.text
    assert "erhöhen" not in german.text
    found.report(tmp_path / "c.html")
    assert "Raise xq_inc from 3,200 to 3,900 dollars" in (tmp_path / "c.html").read_text()


def test_the_level_of_an_order_is_reached_by_somebody(tmp_path):
    school = Feature("school", kind="ordinal", levels=("none", "some", "all"), direction="up")
    model = Affine([1.0], -0.5, labels=("bad", "good"))
    page = letter(ceopt.explain(model, {"school": "none"}, FeatureSpace([school]), target="good"), tmp_path / "a.html")

    assert "Raise your school from none to some." in page.text


@pytest.mark.parametrize(
    ("language", "done", "says"),
    [
        ("en", 1, "your age would have to rise by 1; with what follows it goes from 52 to 54"),
        ("en", -1, "your age would have to fall by 1; with what follows it goes from 52 to 54"),
        ("de", 1, "age: Anstieg um 1; mit dem, was daraus folgt, von 52 auf 54"),
    ],
)
def test_a_part_of_what_happens_is_told_as_such(language, done, says):
    spoken = happening(letter_language("a letter", language))

    assert change_sentence("age", 52, 54, None, spoken, done=done) == says


def test_one_way_has_no_table(tmp_path):
    page = letter(ask(n=1), tmp_path / "a.html")

    assert "table" not in page.tags
    assert LETTERS["en"]["ways_one"] in page.text


def test_what_was_not_asked_has_no_value_of_the_person(three, tmp_path):
    page = letter(three, tmp_path / "a.html")

    assert "A change of your sex\n" in page.text
    assert "fall in" not in page.text
    assert "30" not in page.text


def test_who_stands_on_a_code_that_stays_was_not_asked_about_it(tmp_path):
    held = ask({"xq_late": -9}, SPACE.update("xq_late", fill=float("inf")))

    assert "A change of your sex or your late payments\n" in letter(held, tmp_path / "a.html").text
    assert "A change of your sex\n" in letter(ask({"xq_late": -9}), tmp_path / "b.html").text


GAPS = SPACE.update("xq_inc", missing=True).update(
    "xq_late", level_labels={-9: "nothing on record"}, label="late payments"
)


def filled(row, **changes):
    """A person whose income and late payments are filled in."""
    from tests.result.test_gaps import answer, frame

    before = ROW | row
    told = [
        answer(before, before | change, GAPS, **changes)
        for change in ({"xq_inc": 3_900}, {"xq_late": 2, "xq_inc": 4_000})
    ]
    told[1] = replace(told[1], values=told[1].frame, rank=2, ranges={"xq_inc": (4_000.0, 90_000.0)})
    return SolutionSet(status="optimal", counterfactuals=tuple(told), factual=frame(before, GAPS), space=GAPS)


def test_where_any_amount_will_do_it_is_said_once(tmp_path):
    found = filled({"xq_inc": None, "xq_late": -9})
    every = replace(found[0], values=found[0].frame, ranges={"xq_inc": (0.0, 90_000.0)})
    found = replace(found, counterfactuals=(every,))

    assert (
        "Tell us your income: any amount, such as 3,900 dollars (we have no" in letter(found, tmp_path / "a.html").text
    )
    german = letter(found, tmp_path / "b.html", language="de").text
    assert "angeben: irgendeinen Wert, etwa 3.900 dollars (uns liegt dazu nichts vor)" in german


def test_what_we_have_no_record_of_is_asked_for(tmp_path):
    found = filled({"xq_inc": None, "xq_late": -9})
    page = letter(found, tmp_path / "a.html")
    german = letter(found, tmp_path / "b.html", language="de")

    assert "Tell us your income, if it is 3,900 dollars (we have no record of it; other answers may do" in page.text
    assert "Tell us your income, if it is 4,000 dollars or more (we have no record of it; other answers" in page.text
    assert "Tell us your late payments, if it is 2 (so far: nothing on record; other answers may do as" in page.text
    assert "missing" not in page.text
    assert "Income angeben, wenn der Wert 4.000 dollars oder mehr ist (uns liegt dazu nichts vor; auch" in german.text
    assert "(bisher: nothing on record; auch andere Angaben können genügen)" in german.text
    assert no_technical(page) == no_technical(german) == []


def test_amounts_that_would_do_are_told_as_a_sentence_has_them(tmp_path):
    found = filled({"xq_inc": None, "xq_late": -9})
    told = replace(found[1], values=found[1].frame, ranges={"xq_inc": (4_000.0, 5_000.0)})
    page = letter(replace(found, counterfactuals=(told,)), tmp_path / "a.html")

    assert "Tell us your income, if it is between 4,000 and 5,000 dollars" in page.text


def test_a_number_of_today_is_the_same_in_all_ways(tmp_path):
    from tests.result.test_gaps import solved

    space = ceopt.FeatureSpace([Feature("used", kind="continuous", lower=0, upper=2, decimals=9), SPACE["xq_inc"]])
    before = {"used": 0.801234567, "xq_inc": 3_200}
    found = solved(before, before | {"used": 0.79}, before | {"used": 0.1}, space=space)
    page = letter(found, tmp_path / "a.html")

    assert [way.sentences() for way in found] == [["Lower used from 0.8012 to 0.79"], ["Lower used from 0.8 to 0.1"]]
    assert "from 0.8012 to 0.79" in page.text
    assert "from 0.8012 to 0.1" in page.text
    assert "from 0.8 to" not in page.text


def test_a_hidden_column_is_not_named_and_its_ways_are_left_out(three, tmp_path):
    page = letter(three, tmp_path / "a.html", hide=["xq_home"])

    told = [answer for answer in three if "xq_home" not in answer.changed]
    assert 0 < len(told) < 3
    assert page.text.count("Way 1") >= 1
    assert f"Way {len(told) + 1}" not in page.text
    assert "housing" not in page.text.casefold()
    assert "flat" not in page.text
    assert LETTERS["en"]["untold_one"] in page.text


def test_a_hidden_fixed_column_is_not_named(three, tmp_path):
    assert "sex" not in letter(three, tmp_path / "a.html", hide=["xq_sex"]).text


def test_where_each_way_needs_what_is_hidden_no_way_is_not_claimed(three, tmp_path):
    page = letter(three, tmp_path / "a.html", hide=["xq_home", "xq_inc", "xq_debt"])

    assert LETTERS["en"]["untold_alone_many"] in page.text
    assert LETTERS["en"]["infeasible"] not in page.text
    assert "Way 1" not in page.text


def test_several_hidden_ways_are_counted(three, tmp_path):
    changed = [set(answer.changed) for answer in three]
    single = next(names for names in changed if len(names) == 1)
    hide = sorted(set().union(*changed) - single)
    page = letter(three, tmp_path / "a.html", hide=hide)

    assert LETTERS["en"]["untold_many"].format(count=2) in page.text


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize(
    ("status", "found"),
    [
        ("infeasible", lambda: ask(space=SPACE.fix("xq_inc", "xq_home"), why=30)),
        ("already_favourable", lambda: ask({"xq_inc": 40_000})),
        ("time_limit", lambda: ask(time_limit_s=1e-9)),
        ("rejected", lambda: replace(ask(), counterfactuals=(), status="rejected", reason="HiGHS: cost 3.")),
        ("unbounded", lambda: replace(ask(), counterfactuals=(), status="unbounded")),
        ("error", lambda: replace(ask(), space=None, counterfactuals=(), status="error", reason="xq_ broke.")),
    ],
)
def test_without_a_way_the_letter_says_what_is_known(tmp_path, status, found, language):
    result = found()
    assert result.status == status
    page = letter(result, tmp_path / "a.html", language=language, contact="Ann")
    sentences = {LETTERS[language][name] for name in LETTERS[language] if name in set(map(str, ceopt.Status))}

    assert [sentence for sentence in sentences if sentence in page.text] == [LETTERS[language][status]]
    assert LETTERS[language]["holds"] not in page.text
    assert (LETTERS[language]["not_asked"] in page.text) == (status not in {"already_favourable", "error"})
    assert "Ann" in page.text
    assert no_technical(page) == []


def test_no_way_names_bounds_and_rules_that_may_be_told(tmp_path):
    cap = ceopt.Linear({"xq_inc": 1.0}, "<=", 3_300, name="cost cap of xq_inc")
    sex = ceopt.IfThen(("xq_sex", "==", "lv_f"), ("xq_debt", ">=", 400), name="odd")
    home = ceopt.IfThen(("xq_home", "==", "lv_b"), ("xq_inc", ">=", 4_000))
    found = ask(constraints=[cap, sex, home, ceopt.MaxChanges(1)], why=False)
    assert found.status == "infeasible"
    page = letter(found, tmp_path / "a.html")

    assert "Income is at most 3,300 dollars" in page.text
    assert f"If housing is “{ODD}”, then income is at least 4,000 dollars" in page.text
    assert "No way changes more than one thing" in page.text
    assert "The debt is at most 9,000 dollars" in page.text
    assert "at least 400" not in page.text  # that rule is about a fixed column
    assert "odd, then" not in page.text
    assert no_technical(page) == []
    assert "ousing is" not in letter(found, tmp_path / "a.html", hide=["xq_home"]).text


def test_where_it_is_known_which_limits_leave_no_way_no_others_are_named(tmp_path):
    cap = ceopt.Linear({"xq_inc": 1.0}, "<=", 3_300, name="cost cap of xq_inc")
    free = ceopt.Linear({"xq_debt": 1.0}, "<=", 8_000)
    found = ask(constraints=[cap, free], space=SPACE.fix("xq_home"))
    page = letter(found, tmp_path / "a.html")

    assert "cost cap of xq_inc" in {name for name, _, _ in found.conflict}
    assert "Income is at most 3,300 dollars" in page.text
    assert "8,000" not in page.text
    assert "housing stays" not in page.text
    assert "A change of your sex or your housing\n" in page.text
    assert no_technical(page) == []


def test_a_table_that_would_not_leave_the_letter_on_its_page_is_left_out(tmp_path):
    names = [f"c{place}" for place in range(6)]
    space = FeatureSpace([Feature(name, kind="integer", lower=0, upper=9) for name in names])
    model = Affine([1.0] * 6, -53.5, labels=("no", "yes"))
    told = ceopt.explain(model, dict.fromkeys(names, 0), space, target="yes", n=2, diversity="pool")
    few = ceopt.explain(model, dict.fromkeys(names, 9) | {"c0": 1}, space, target="yes", n=2, diversity="pool")

    assert "table" not in letter(replace(told, counterfactuals=(told[0], told[0])), tmp_path / "a.html").tags
    assert "table" in letter(replace(few, counterfactuals=(few[0], few[0])), tmp_path / "a.html").tags


def test_a_formula_is_told_where_all_its_columns_may_be(three, tmp_path):
    phrase = Phrase("ratio", {"column": "xq_debt", "numerator": "xq_inc", "denominator": "xq_late"})
    result = replace(three, rules={"f": Said("xq_debt is xq_inc divided by xq_late", (phrase,))})

    assert "The debt is income divided by late payments" in letter(result, tmp_path / "a.html").text
    assert "divided" not in letter(result, tmp_path / "a.html", hide=["xq_late"]).text


def test_a_limit_about_the_person_is_told(tmp_path):
    space = SPACE.update("xq_inc", max_up="25%", label="yearly income").update("xq_age", max_up=2)
    page = letter(ask(space=space), tmp_path / "a.html")

    assert "Yearly income may rise by at most 25% of 3,200 dollars, so by 800 dollars" in page.text
    assert "Age may rise by at most 2 years" in page.text
    near = ceopt.formulations.constraints.MaxMove(["xq_inc", "xq_debt"], up=800)
    page = letter(ask(constraints=[near]), tmp_path / "a.html", hide=["xq_debt"])
    assert "Income may rise by at most 800 dollars" in page.text
    assert "debt" not in page.text
    assert no_technical(page) == []
    assert "rise by" not in letter(ask(space=space), tmp_path / "a.html", hide=["xq_inc", "xq_age"]).text


def test_several_things_that_were_not_asked_are_one_sentence(tmp_path):
    found = ask(space=SPACE.fix("xq_home", "xq_late").update("xq_debt", direction="down"))
    page = letter(found, tmp_path / "a.html")
    german = letter(found, tmp_path / "b.html", language="de")

    assert "A change of your sex, your housing or your late payments\n" in page.text
    assert not any(move in page.text for move in ("A fall in", "A rise in"))
    assert "Eine Änderung bei sex, housing oder late payments\n" in german.text
    assert not any(move in german.text for move in ("Ein Rückgang", "Ein Anstieg"))


LIMITED = SPACE.update("xq_inc", max_up="25%", max_down=500).update("xq_age", max_up=70, max_down=1)


@pytest.mark.parametrize("why", [False, True])
def test_limits_about_the_person_are_told_as_those_of_a_rule(tmp_path, why):
    """Of a letter without a way too: one that binds nobody (70 years up), and none in a direction that is not open."""
    row = {"xq_inc": 1_000}
    limits = ["Age may rise by at most 70 years", "Income may rise by at most 25% of 1,000 dollars, so by 200 dollars"]
    found = ask(row, space=LIMITED.fix("xq_home"), constraints=[ceopt.MaxChanges(3)], why=why)
    assert found.status == "infeasible"
    page = letter(found, tmp_path / "a.html")
    rule = ceopt.formulations.constraints.MaxMove(["xq_inc"], up="25%")
    by_rule = letter(ask(row, space=SPACE.fix("xq_home"), constraints=[rule], why=False), tmp_path / "b.html")

    assert [line for line in limits if line in page.text] == (limits[1:] if found.conflict else limits)
    assert "Income may rise by at most 25%" in by_rule.text
    assert "Age may fall" not in page.text
    assert "500" not in page.text or not found.conflict


def test_where_rules_leave_no_way_it_is_within_the_limits_about_the_person(tmp_path):
    cap = ceopt.Linear({"xq_inc": 1.0}, "<=", 3_300)
    found = ask(constraints=[cap], space=LIMITED.fix("xq_home").update("xq_debt", max_down=100))
    page = letter(found, tmp_path / "a.html")

    assert [name for name, _, _ in found.conflict] == ["Linear_1"]
    assert "Income is at most 3,300 dollars" in page.text
    assert "The debt may fall by at most 100 dollars" in page.text
    assert "debt may fall" not in letter(found, tmp_path / "b.html", hide=["xq_debt"]).text


def test_what_was_not_asked_is_no_limit_too(tmp_path):
    space = SPACE.fix("xq_home", "xq_debt").update("xq_inc", direction="down", lower=0)
    page = letter(ask(space=space), tmp_path / "a.html")

    assert "rise in" not in page.text
    assert "may only" not in page.text
    assert "at least 0" not in page.text


def test_a_bound_for_those_beyond_it_is_told_to_them_alone(tmp_path):
    cap = ceopt.Linear({"xq_debt": 1.0}, "<=", 500, beyond="no_further")
    floor = ceopt.Linear({"xq_inc": 1.0}, ">=", 3_300, beyond="no_further")
    page = letter(ask(constraints=[cap, floor], n=1), tmp_path / "a.html")

    assert "The debt is at most 500 dollars\n" in page.text
    assert "Income is at least 3,300 dollars, or no further from it than today\n" in page.text


def test_what_a_limit_keeps_where_it_is_was_not_asked(tmp_path):
    page = letter(ask({"xq_debt": 0}, space=SPACE.update("xq_debt", max_up="10%", direction="up")), tmp_path / "a.html")

    assert "A change of your sex or the debt\n" in page.text
    assert "by at most 10%" not in page.text


def test_who_is_beyond_a_bound_need_not_meet_it(tmp_path):
    space = SPACE.fix("xq_inc", "xq_home").update("xq_debt", upper=300)
    page = letter(ask(space=space, why=False), tmp_path / "a.html")

    assert "The debt is at most 300 dollars, or no further from it than today" in page.text


def test_a_rule_of_somebodys_own_is_not_told(three, tmp_path):
    page = letter(replace(three, rules={"mine": "cost of xq_inc stays small"}), tmp_path / "a.html")

    assert no_technical(page) == []


def test_what_follows_is_told_as_such(tmp_path):
    causal = Causal({"xq_debt": LinearEquation({"xq_inc": 0.1})})
    found = ask(constraints=[causal], n=1, space=SPACE.fix("xq_home"))
    assert found[0].actions is not None
    page = letter(found, tmp_path / "a.html")

    assert "The debt follows, from 400 to" in page.text
    assert LETTERS["en"]["all_of_it"] in page.text


def test_without_labels_names_stand(tmp_path):
    plain = FeatureSpace([replace(feature, label=None, level_labels=()) for feature in SPACE])
    page = letter(ask(space=plain), tmp_path / "a.html")

    assert "Raise your xq_inc from 3,200 to 3,900 dollars." in page.text
    assert "lv_b" in page.text


def test_odd_labels_are_escaped(tmp_path):
    space = SPACE.update("xq_inc", label="<b>in</b>come & 'x'").update("xq_sex", label="<script>sex</script>")
    page = letter(ask(space=space), tmp_path / "a.html", title="<b>My</b> title")

    assert "Raise your <b>in</b>come & 'x' from 3,200" in page.text
    assert "<script>sex</script>" in page.text
    assert "<b>My</b> title" in page.text
    assert {"b", "script"}.isdisjoint(page.tags)


def test_no_script_runs_and_the_page_stands_alone(three, tmp_path):
    page = letter(three, tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text()

    assert "default-src 'none'" in text
    assert {"script", "link", "img", "iframe", "svg"}.isdisjoint(page.tags)
    assert "@page { size: A4" in text


def test_a_result_that_was_read_back_has_the_same_letter(three, tmp_path):
    again = SolutionSet.from_json(three.to_json())
    for name, result in {"a": three, "b": again}.items():
        letter(result, tmp_path / f"{name}.html", hide=["xq_debt"])

    assert (tmp_path / "a.html").read_text() == (tmp_path / "b.html").read_text()


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"audience": "client"}, UnknownNameError, "audience is 'client'"),
        ({"audience": "customer", "hide": ["xq_job"]}, UnknownNameError, "column in hide is 'xq_job'"),
        ({"audience": "customer", "hide": "xq_sex"}, InvalidTypeError, "a list of column names as hide"),
        ({"audience": "customer", "contact": 3}, InvalidTypeError, "contact"),
        ({"audience": "customer", "language": "fr"}, UnknownNameError, "language"),
        ({"audience": "customer", "title": 3}, InvalidTypeError, "title"),
        ({"hide": ["xq_sex"]}, InvalidValueError, "beside hide, but audience is 'auditor'"),
        ({"contact": "Ann"}, InvalidValueError, "beside contact"),
    ],
)
def test_odd_arguments_are_refused_and_nothing_is_written(three, tmp_path, given, error, says):
    with pytest.raises(error, match=says):
        three.report(tmp_path / "a.html", **given)
    assert list(tmp_path.iterdir()) == []


# ---- many people -----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def cohort():
    people = pd.DataFrame([ROW, ROW | {"xq_inc": 40_000}, ROW | {"xq_inc": 3_000}, ROW])
    people.index = ["ann", "bob/..", "Bob/..", ""]
    return ceopt.Recourse(MODEL, SPACE, target="good").fit(people).explain(people)


def test_each_person_has_a_page_of_one_file(cohort, tmp_path):
    page = letter(cohort, tmp_path / "all.html", contact="Ann")

    assert page.tags.count("article") == 4
    assert page.text.count("Reference: ann") == 1
    assert page.text.count(LETTERS["en"]["already_favourable"]) == 1
    assert "break-after: page" in (tmp_path / "all.html").read_text()
    assert no_technical(page) == []


def test_in_a_folder_each_person_has_a_file(cohort, tmp_path):
    letter_of = {}
    cohort.report(tmp_path, audience="customer")
    for path in tmp_path.iterdir():
        letter_of[path.name] = path.read_text()

    assert set(letter_of) == {"ann.html", "bob.html", "Bob_3.html", "4.html"}
    assert all(text.count("<article>") == 1 for text in letter_of.values())
    assert LETTERS["en"]["already_favourable"] in letter_of["bob.html"]


def test_people_are_refused_as_one_is(cohort, tmp_path):
    with pytest.raises(UnknownNameError, match=r"Cohort.report needs a known column in hide"):
        cohort.report(tmp_path / "a.html", audience="customer", hide=["x"])
    with pytest.raises(UnwritableFileError):
        cohort.report(tmp_path / "absent" / "a.html", audience="customer")
    assert list(tmp_path.iterdir()) == []


def test_nobody_has_letters(cohort, tmp_path):
    none = replace(cohort, results=(), queries=cohort.queries.head(0), finished=())

    assert letter(none, tmp_path / "a.html").tags.count("article") == 0


def test_the_command_writes_letters_and_says_where(cohort, three, tmp_path):
    cohort.to_json(tmp_path / "people.json")
    three.to_json(tmp_path / "ann.json")
    folder = tmp_path / "letters"
    folder.mkdir()
    options = ["--audience", "customer", "--hide", "xq_sex", "--hide", "xq_debt", "--contact", "Ann\nHigh Street"]
    for source, out in {"people": folder, "ann": tmp_path / "ann.html"}.items():
        run = CliRunner().invoke(app, ["report", str(tmp_path / f"{source}.json"), str(out), *options])
        assert run.exit_code == 0, run.output
        assert run.stdout.strip() == str(out)
        assert str(out.resolve()) in run.stderr

    letter(three, tmp_path / "again.html", hide=["xq_sex", "xq_debt"], contact="Ann\nHigh Street")
    assert (tmp_path / "ann.html").read_text() == (tmp_path / "again.html").read_text()
    assert len(list(folder.iterdir())) == 4


def test_languages_have_the_same_words():
    english, german = LETTERS["en"], LETTERS["de"]

    assert set(english) == set(german)
    for name, text in english.items():
        if name != "column":
            assert set(re.findall(r"{\w+}", text)) == set(re.findall(r"{\w+}", german[name])), name
    assert set(map(str, ceopt.Status)) - {"optimal", "feasible"} <= set(english)

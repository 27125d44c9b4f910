"""The report of one person: all that is known is on the page, nothing on it can run, and nothing else is needed."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import ceopt
from ceopt import Feature, FeatureSpace, SolutionSet
from ceopt.formulations.predictors import Affine
from ceopt.report import HEADINGS
from ceopt.solvers.errors import InvalidTypeError, MissingLibraryError, UnknownNameError, UnwritableFileError

HOSTILE = "<script>alert('x')</script>"
SPACE = FeatureSpace(
    [
        Feature("savings", kind="integer", lower=0, upper=50_000, mad=1_000.0, unit="euros"),
        Feature("job", kind="binary", levels=("cook", "clerk")),
    ]
)
MODEL = Affine([1.0, 3_000.0], -23_399.5, labels=("bad", "good"))
ROW = {"savings": 21_200, "job": "cook"}


class Page(HTMLParser):
    """Reads which elements a page has, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.links = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in {"src", "href", "xlink:href"}]

    def handle_data(self, data):
        self.text += data


def ask(space=SPACE, row=ROW, **given):
    return ceopt.explain(MODEL, row, space, target="good", **({"n": 2} | given))


def written(result, path, **given):
    result.report(path, **given)
    return path.read_text(encoding="utf-8")


def test_all_that_is_known_is_on_the_page(tmp_path):
    result = ask(constraints=[ceopt.MaxChanges(1, name="few")], data=SPACE.frame([SPACE.row(ROW)]))
    text = Page(written(result, tmp_path / "ann.html", title="Ann")).text

    for line in result.sentences()[:1] + list(result[0].sentences()):
        assert line in text
    assert "21,200 euros" in text
    assert "at most 1 feature may change" in text
    assert result.solver in text
    assert result.fingerprints["model"] in text
    assert result.fingerprints["data"] in text
    assert f"{result.size['variables']} variables, {result.size['integers']} of them whole" in text
    assert "ceopt export" in text


def test_limits_of_columns_are_told_as_they_bind_the_person(tmp_path):
    space = SPACE.fix("job").update("savings", max_up="20%", upper=20_000, codes={-9: "no record"})
    found = replace(ask(space), space=space.update("savings", missing=True))
    beyond = Page(written(found, tmp_path / "a.html")).text
    none = replace(found, counterfactuals=(), status="infeasible")
    blank = replace(none, factual=pd.DataFrame([ROW | {"savings": None}]))
    gap = Page(written(blank, tmp_path / "b.html")).text
    coded = replace(none, factual=pd.DataFrame([ROW | {"savings": -9}]))
    code = Page(written(coded, tmp_path / "c.html", language="de")).text
    unknown = Page(written(replace(ask(), space=None), tmp_path / "d.html")).text

    assert HEADINGS["en"]["limits"] in beyond
    assert "rises by at most 20% of 21,200 euros, so by 4,240 euros" in beyond
    assert "at most 20,000 euros (is beyond it today, and may stay or come nearer)" in beyond
    assert "stays as it is" in beyond
    assert "missing" not in beyond
    assert "rises by" not in gap
    assert "may stay so or be filled in, which counts as a move of 1" in gap
    assert "darf auf einem Code (-9) bleiben oder zum Betrag werden" in code
    assert HEADINGS["en"]["limits"] not in unknown


def test_rules_that_bound_are_named(tmp_path):
    cap = ceopt.Linear({"savings": 1.0}, "<=", 23_400, name="cap")
    bounded = Page(written(ask(SPACE.fix("job"), constraints=[cap]), tmp_path / "a.html")).text
    free = Page(written(ask(SPACE.fix("job")), tmp_path / "b.html")).text
    late = Page(written(ask(time_limit_s=1e-9), tmp_path / "c.html")).text

    assert "Way 1 just keeps: cap: savings is at most 23,400 euros" in bounded
    assert HEADINGS["en"]["bound_none"] in free
    assert HEADINGS["en"]["bound_rules"] not in late


def test_labels_stand_beside_the_names_that_the_model_knows(tmp_path):
    space = SPACE.update("savings", label="money <b>put</b> by")
    page = Page(written(ask(space), tmp_path / "a.html"))

    assert "money <b>put</b> by" in page.text
    assert HEADINGS["en"]["called"] in page.text
    assert "b" not in page.tags
    assert HEADINGS["en"]["called"] not in Page(written(ask(), tmp_path / "b.html")).text


def test_no_way_out_says_which_rules_leave_none(tmp_path):
    cap = ceopt.Linear({"savings": 1.0}, "<=", 22_000, name="cap")
    result = ask(SPACE.update("job", mutable=False), constraints=[cap], why=30)
    text = Page(written(result, tmp_path / "none.html")).text

    assert result.status == "infeasible"
    assert "savings is at most 22,000 euros" in text
    assert "job stays at cook" in text
    assert HEADINGS["en"]["ways"] not in text


def test_the_page_needs_nothing_else(tmp_path):
    page = Page(written(ask(), tmp_path / "a.html"))

    assert all(link.startswith("#") for link in page.links)
    assert {"img", "link", "iframe", "object"}.isdisjoint(page.tags)
    assert page.tags.count("script") == 1


def test_ids_are_of_one_element_each(tmp_path):
    ids = re.findall(r'\sid="([^"]+)"', written(ask(), tmp_path / "a.html"))

    assert ids
    assert len(ids) == len(set(ids))


def test_names_levels_units_and_titles_are_escaped(tmp_path):
    space = FeatureSpace(
        [
            Feature(f"savings {HOSTILE}", kind="integer", lower=0, upper=50_000, mad=1_000.0, unit=HOSTILE),
            Feature("job", kind="binary", levels=(HOSTILE, "clerk")),
        ]
    )
    row = {f"savings {HOSTILE}": 21_200, "job": HOSTILE}
    result = ask(space, row, constraints=[ceopt.MaxChanges(1, name=HOSTILE)])
    result = replace(result, reason=HOSTILE, options={HOSTILE: HOSTILE}, query_id=HOSTILE)
    page = Page(written(result, tmp_path / "a.html", title=HOSTILE))

    assert page.tags.count("script") == 1
    assert HOSTILE in page.text


def test_no_script_but_its_own_may_run(tmp_path):
    text = written(ask(), tmp_path / "a.html")
    rule = re.search(r'Content-Security-Policy" content="([^"]+)"', text)

    assert rule is not None
    assert "default-src 'none'" in rule[1]
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='", rule[1])


def test_headings_are_those_of_the_language(tmp_path):
    text = Page(written(ask(), tmp_path / "a.html", language="de")).text

    assert "Es gibt 2 Wege zum Ziel (good)" in text
    assert HEADINGS["de"]["rules"] in text
    assert HEADINGS["en"]["rules"] not in text


def test_languages_have_the_same_headings():
    english, german = HEADINGS["en"], HEADINGS["de"]

    assert set(english) == set(german)
    for name, text in english.items():
        assert set(re.findall(r"{\w+}", text)) == set(re.findall(r"{\w+}", german[name])), name
    assert {str(status) for status in ceopt.Status} <= set(english)


@pytest.mark.parametrize("case", ["met", "late", "nobody said"])
def test_a_result_without_answers_has_a_report(tmp_path, case):
    results = {
        "met": ask(row=ROW | {"savings": 40_000}),
        "late": ask(time_limit_s=1e-9),
        "nobody said": replace(ask(), space=None, counterfactuals=(), status="error", reason="It broke."),
    }
    text = Page(written(results[case], tmp_path / "a.html")).text

    assert HEADINGS["en"][str(results[case].status)] in text
    assert "nan" not in text


def test_what_was_read_from_json_has_the_same_report(tmp_path):
    result = ask()
    again = SolutionSet.from_json(result.to_json())

    assert again.fingerprints == result.fingerprints
    assert again.size == result.size
    assert written(again, tmp_path / "b.html") == written(result, tmp_path / "a.html")


def test_json_of_an_earlier_version_has_a_report(tmp_path):
    document = json.loads(ask().to_json())
    del document["fingerprints"], document["size"]
    old = SolutionSet.from_json(json.dumps(document))

    assert old.size == {}
    assert HEADINGS["en"]["size"] not in Page(written(old, tmp_path / "a.html")).text


def test_fingerprints_are_of_the_content():
    data = SPACE.frame([SPACE.row(ROW)])
    space = FeatureSpace([Feature(name, kind="integer", lower=0, upper=9) for name in "ab"])
    marks = []
    for weight in (1.0, 1.0, 2.0):
        model = LogisticRegression(C=weight).fit([[0.0, 1.0], [1.0, 0.0]], ["bad", "good"])
        marks.append(ceopt.explain(model, {"a": 0, "b": 9}, space, target="good").fingerprints["model"])

    assert marks[0] == marks[1] != marks[2]
    changed = ask(data=data.assign(savings=[21_201])).fingerprints
    assert ask(data=data).fingerprints["model"] == changed["model"]
    assert ask(data=data).fingerprints["data"] != changed["data"]
    assert "data" not in ask().fingerprints


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"language": "fr"}, UnknownNameError, "language"),
        ({"title": 3}, InvalidTypeError, "title"),
    ],
)
def test_odd_arguments_are_refused_and_nothing_is_written(tmp_path, given, error, says):
    with pytest.raises(error, match=says):
        ask().report(tmp_path / "a.html", **given)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(UnwritableFileError, match="SolutionSet.report"):
        ask().report(tmp_path / "absent" / "a.html")


def test_without_jinja_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)

    with pytest.raises(MissingLibraryError, match=r"ceopt\[report\]"):
        ask().report(tmp_path / "a.html")

"""A picture as text for a page: the same each time, its ids its own, its texts escaped."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from ceopt import CeoptError
from ceopt.pictures.canvas import ENGLISH
from ceopt.pictures.charts import Move, draw_changes
from ceopt.pictures.svg import svg

HOSTILE = 'id="x" <script>alert("&")</script> url(#y) $x_1$'


def picture(name="income"):
    return draw_changes("test", [Move(name, "1", HOSTILE[:20], 1.0)], title=HOSTILE, say=ENGLISH, ax=None, dark=False)


def test_the_same_picture_is_the_same_text_and_settings_stay():
    before = dict(mpl.rcParams)

    assert svg(picture()) == svg(picture())
    assert dict(mpl.rcParams) == before


def test_ids_begin_with_the_prefix_and_every_reference_is_kept():
    text = svg(picture(), prefix="p-1")

    ids = re.findall(r'<[^<>]*\sid="([^"]*)"', text)
    used = re.findall(r'(?:url\(#|href="#)([^")]*)', re.sub(r">[^<>]*<", "><", text.partition(">")[2]))
    assert ids
    assert all(name.startswith("p-1-") for name in ids)
    assert len(ids) == len(set(ids))
    assert used
    assert set(used) <= set(ids)
    assert "*{" not in text.replace("#p-1-figure_1 *{", "")


def test_texts_are_text_and_nothing_in_them_is_read_as_xml():
    root = ET.fromstring(svg(picture(HOSTILE)))  # noqa: S314 - written a line above

    written = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert HOSTILE in written
    assert root.get("aria-label") == HOSTILE
    assert root.find(".//{http://www.w3.org/2000/svg}script") is None
    assert not [element for element in root.iter() if element.tag.endswith("metadata")]


def test_it_is_read_aloud_by_a_title_of_ones_own():
    assert 'aria-label="Ways &lt;out&gt;"' in svg(picture(), title="Ways <out>")


def test_a_figure_and_a_part_of_one_give_the_whole():
    figure = Figure()
    ax = figure.subfigures(1, 2)[0].add_subplot()

    assert svg(ax) == svg(figure)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"picture": 3}, "needs the Axes or the Figure of a picture, but it is int"),
        ({"prefix": "1 2"}, "needs a prefix of letters, digits, _ and -, but prefix is '1 2'"),
        ({"prefix": 1}, "needs text as prefix, but prefix is 1"),
    ],
)
def test_what_is_no_picture_or_prefix_is_refused(given, sentence):
    with pytest.raises(CeoptError, match="^svg needs") as error:
        svg(**({"picture": Figure()} | given))

    assert sentence in str(error.value)

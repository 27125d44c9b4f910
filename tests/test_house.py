"""The picture of the house in CONTRIBUTING: that of the imports as they are."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest
from sources import ROOT


@pytest.fixture(scope="module")
def house() -> ModuleType:
    """The script that draws it."""
    path = ROOT / "docs" / "house.py"
    if not path.is_file():
        pytest.skip("The documentation is not beside the tests.")
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("house", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["house"] = module  # dataclasses look there for the names of their fields' types
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


def test_the_picture_is_that_of_the_imports(house):
    assert house.PICTURE.read_text(encoding="utf-8") == house.drawn(), "run python docs/house.py"
    assert "](docs/house.svg)" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_every_arrow_points_down(house):
    placed, graph = house.boxes(house.arrows())
    chains = house.with_corners(placed, graph)
    house.place(placed, house.ordered(placed, chains), chains)

    assert len(graph) > 40
    assert all(placed[upper].y < placed[lower].y for upper, below in graph.items() for lower in below)


def test_an_arrow_is_left_out_only_where_others_lead(house):
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set(), "d": {"c"}}

    assert house.reduced(graph) == {"a": {"b"}, "b": {"c"}, "c": set(), "d": {"c"}}


def test_rooms_that_need_each_other_are_one(house):
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"c"}}

    assert house.circles(graph) == {"a": "a", "b": "b", "c": "b", "d": "d"}


def test_boxes_keep_their_distance_and_stay_near(house):
    assert house.spaced([0.0, 0.0, 10.0], [0.0, 4.0, 4.0], [1.0, 1.0, 1.0]) == pytest.approx([-2.0, 2.0, 10.0])
    assert house.spaced([0.0, 0.0], [0.0, 4.0], [3.0, 1.0]) == pytest.approx([-1.0, 3.0])

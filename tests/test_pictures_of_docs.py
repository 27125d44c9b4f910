"""The pictures that docs/ and README show: made by the command that the page names, and saying what it makes now."""

from __future__ import annotations

import importlib.util
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest
from sources import ROOT

FOLDER = ROOT / "docs" / "pictures"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that makes them."""
    path = ROOT / "docs" / "pictures.py"
    if not path.is_file():
        pytest.skip("The documentation is not beside the tests.")
    spec = importlib.util.spec_from_file_location("pictures", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _texts(path: Path) -> list[str]:
    """What a picture says, without the places of its texts, which change with versions of matplotlib."""
    root = ET.parse(path).getroot()  # noqa: S314 - of this repository
    return [
        str(root.get("aria-label")),
        *("".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")),
    ]


def test_each_picture_is_shown_and_each_that_is_shown_is_there(script):
    shown = [
        part["file"].removeprefix("../")
        for part in script.parts(script.PAGE.read_text(encoding="utf-8"))
        if part["file"]
    ]
    in_readme = re.findall(r"\]\(docs/(pictures/[^)]*)\)", (ROOT / "README.md").read_text(encoding="utf-8"))

    assert sorted(shown) == sorted(f"pictures/{path.name}" for path in FOLDER.iterdir())
    assert len(in_readme) == 1
    assert set(in_readme) <= set(shown)


@pytest.mark.long
def test_the_command_makes_pictures_that_say_the_same(script, tmp_path):
    made = script.write(tmp_path)

    assert {path.name: _texts(path) for path in made} == {path.name: _texts(path) for path in FOLDER.iterdir()}, (
        "run python docs/pictures.py"
    )

"""What benchmarks/distinct.py counts of answers, and the page that it makes of what it keeps."""

from __future__ import annotations

import importlib
from typing import Any

import pandas as pd
import pytest

SCHEMA = {
    "hours": {"kind": "integer"},
    "size": {"kind": "ordinal", "levels": ["S", "M", "L"]},
    "job": {"kind": "categorical", "levels": ["cook", "nurse", "clerk"]},
}
ROW = pd.DataFrame({"hours": [30], "size": ["M"], "job": ["cook"]})


@pytest.fixture
def changes(benchmarks: Any) -> Any:
    return importlib.import_module("changes")


def changed(changes: Any, *answers: dict[str, Any]) -> list[dict[str, Any]]:
    rows = pd.concat([ROW.assign(**answer) for answer in answers])
    return [changes.moves(ROW, answer, SCHEMA) for _, answer in rows.iterrows()]


def test_what_an_answer_changes_is_told_by_sides_and_levels(changes: Any) -> None:
    assert changed(changes, {"hours": 35, "size": "S"}, {"job": "nurse"}) == [
        {"hours": True, "size": False},
        {"job": "nurse"},
    ]


def test_more_of_an_earlier_answer_is_counted_and_a_part_of_one_is_not(changes: Any) -> None:
    longer, other = {"hours": 35}, {"hours": 35, "job": "nurse"}

    assert changes.supersets(changed(changes, longer, other)) == 1
    assert changes.supersets(changed(changes, other, longer)) == 0
    assert changes.supersets(changed(changes, longer, {"size": "L"}, other | {"size": "L"})) == 1


def test_the_same_ways_are_counted_and_others_are_not(changes: Any) -> None:
    assert changes.repeats(changed(changes, {"hours": 35}, {"hours": 40}, {"hours": 41})) == 2
    assert changes.repeats(changed(changes, {"hours": 35}, {"hours": 20})) == 0
    assert changes.repeats(changed(changes, {"job": "nurse"}, {"job": "clerk"})) == 0
    assert changes.repeats(changed(changes, {"size": "L"}, {"size": "S"}, {"size": "L"})) == 1


def test_the_page_is_made_of_what_is_kept_and_says_how_many_supersets_there_are(benchmarks: Any, tmp_path: Any) -> None:
    script, records = importlib.import_module("distinct"), importlib.import_module("records")
    found = []
    for row, supersets in (("17", 0), ("21", 1)):
        for way in (*script.WAYS, "dice-ml, random"):
            record = {
                "key": f"german/{row}/{way}", "data": "german", "row": row, "way": way, "status": "optimal",
                "seconds": 1.5, "cpu": 1.0, "answers": 3, "supersets": supersets, "same_ways": 0, "invalid": 0,
                "columns": [1, 1, 2], "lengths": [1.0, 1.5, 2.0], "diversity": {"count_diversity": 0.5},
            }  # fmt: skip
            if way in script.WAYS:
                record |= {"complete": True, "proved": 3, "costs": [1.0, 1.5, 2.0]}
            found.append(record)
    settings = {
        "rows": 2, "limit_s": 60, "seed": 0, "answers": 3, "trees": 50, "depth": 6, "dice": {"dice-ml": "0.12"},
        "ways": [*script.WAYS, "dice-ml, random"],
    }  # fmt: skip

    records.write(tmp_path / "distinct.json", records.kept({"settings": settings, "records": found}))
    text = script.text_of(records.read(tmp_path / "distinct.json"))

    assert text == script.text_of({"settings": settings, "records": found})
    assert "superset of an earlier one: 2 (to reach: 0)" in text
    assert "| german | 2 of 2 | 1.000 / 1.500 / 2.000 |" in text

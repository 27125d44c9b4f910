"""The committed results: each page is what its script makes of the data beside it."""

import importlib
from pathlib import Path

import pytest

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
PAGES = sorted(path.stem for path in RESULTS.glob("*.md"))
DATA = sorted(path.stem for path in RESULTS.glob("*.json"))

#: Pages that hold all that was found: counts, or answers and figures that take a minute to make again.
ALONE = {
    "before_after_house",
    "german_credit",
    "heart_disease",
    "path_of_a_call",
}
#: Studies of papers, with pages of their own.
STUDIES = {
    "ce_ocl_comparison": "ce_ocl.comparison",
    "leofante_potyka": "leofante_potyka.experiments",
    **{name: "copa.experiments" for name in DATA if name.startswith("copa_")},
    **{name: "coverage_validity.experiments" for name in DATA if name.startswith("coverage_")},
    **{name: "rocoursenet.experiments" for name in DATA if name.startswith("rocoursenet_")},
}


def test_every_page_has_its_data_or_is_all_there_is():
    assert set(PAGES) == set(DATA) | ALONE
    assert not set(DATA) & ALONE


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", DATA)
def test_a_page_is_what_its_script_makes_of_the_data(benchmarks, name):
    records, common = importlib.import_module("records"), importlib.import_module("common")
    record = records.read(RESULTS / f"{name}.json")
    committed = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    script = importlib.import_module(STUDIES.get(name, name))

    if hasattr(script, "page"):
        assert script.page(record) == committed
    else:
        assert common.page(script.TITLE, script.text_of, record) == committed


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", DATA)
def test_data_are_as_the_one_writer_writes_them(benchmarks, tmp_path, name):
    records = importlib.import_module("records")
    path = RESULTS / f"{name}.json"

    records.write(tmp_path / "again.json", records.read(path))

    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_a_table_keeps_what_lacks_a_column_and_what_has_one_more(benchmarks, tmp_path):
    records = importlib.import_module("records")
    rows = [{"key": k, "size": {"rows": k, "columns": 2}, "seconds": k / 7, "cost": k / 7} for k in range(4)]
    rows += [{"key": 4, "reason": ""}, {"key": 5, "size": {}, "seconds": 0.5}]
    record = {"settings": {"seed": 0}, "records": rows, "by name": {str(row["key"]): row for row in rows}, "none": []}

    records.write(tmp_path / "table.json", record)
    text = (tmp_path / "table.json").read_text(encoding="utf-8")

    assert records.read(tmp_path / "table.json") == records.kept(record)
    assert records.kept(record)["records"][3] == {**rows[3], "seconds": 0.4285714}
    assert "\n[1,[1,2],0.1428571,0.14285714285714285],\n" in text
    assert '{"key":4,"reason":""}' in text

"""Numbers in README and docs: each is what the committed results say."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if "made" not in path.parts)]


class Claim(NamedTuple):
    """A sentence of a page, with its numbers left open, and the record that they are computed from."""

    page: str
    sentence: str
    record: str
    numbers: Callable[[dict[str, Any]], dict[str, str]]


def of_diverse(record: dict[str, Any]) -> dict[str, str]:
    script = importlib.import_module("diverse")
    found = script.Found.of(record)
    judged = [is_better for is_better, _ in found.comparisons(found.chosen)]
    less, of = found.less_diverse(found.chosen)
    ratios = [script.ratio_of_medians(found, name, method) for name in found.names for method in found.methods]
    fails = [
        [is_better for is_better, _ in found.comparisons(dict.fromkeys(found.names, way))].count(False)
        for way in found.settings
    ]
    return {
        "better": str(judged.count(True)),
        "of": str(len(judged)),
        "less": str(less),
        "pairs": str(of),
        "least": f"{min(ratios):.0f}",
        "most": f"{max(ratios):.0f}",
        "fails": str(min(fails)),
    }


def of_libraries(record: dict[str, Any]) -> dict[str, str]:
    totals = record["totals"]["ceopt"]
    assert totals["invalid_answers"] == 0
    assert set(totals["statuses"]) <= {"optimal", "feasible"}
    return {
        "rows": f"{totals['rows']:,}",
        "limit": str(record["settings"]["limit_s"]),
        "optimal": f"{totals['statuses']['optimal']:,}",
    }


CLAIMS = [
    Claim(
        "docs/explanation/diverse.md",
        "nearer and firmer than those of each of dice-ml's three methods in {better} of {of} comparisons, and less "
        "diverse in {less} of {pairs}; they take {least} to {most} times less CPU time. One setting for all fails "
        "{fails} of the {of} (`benchmarks/results/diverse.md`)",
        "diverse",
        of_diverse,
    ),
    Claim(
        "docs/reference/models.md",
        "On {rows} rows of boosted trees, XGBoost, LightGBM, networks and ONNX files over four data sets, every row "
        "was answered within {limit} seconds, no answer was refused by its model, and {optimal} were proved optimal "
        "(`benchmarks/libraries.py`",
        "libraries",
        of_libraries,
    ),
]


def prose(page: Path) -> str:
    """Return a page without its code, with single blanks."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return " ".join(text.split())


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.page}-{claim.record}")
def test_a_claim_is_what_the_results_say(benchmarks: Any, claim: Claim) -> None:
    record = importlib.import_module("records").read(RESULTS / f"{claim.record}.json")
    expected = claim.sentence.format(**claim.numbers(record))
    assert expected in prose(ROOT / claim.page)


#: Numbers with a unit of time or a ratio that are settings of a call, not measurements.
SETTINGS = {
    "docs/how_to/questions.md": ["60 s, if none is given"],
    "docs/how_to/ratio.md": ["at most 40 % of the income"],
    "docs/how_to/retraining.md": ["a probability of at least 80 %"],
    "docs/how_to/rules.md": ["the smaller of 5 s and a fifth of the limit"],
}
#: What a measurement looks like: seconds, milliseconds, minutes, times faster or less, per cent.
MEASURED = re.compile(
    r"\b\d[\d.,]*( to \d[\d.,]*)? ?(ms|milliseconds|s|seconds|minutes|%|times (faster|slower|less|as))(?!\w)"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_states_a_measurement_that_no_claim_covers(page: Path) -> None:
    name = page.relative_to(ROOT).as_posix()
    text = prose(page)
    for claim in CLAIMS:
        if claim.page == name:
            pattern = re.escape(re.sub(r"\{\w+\}", "NUMBER", claim.sentence)).replace("NUMBER", r"[\d.,]+")
            text = re.sub(pattern, "", text)
    for sentence in SETTINGS.get(name, []):
        assert sentence in text
        text = text.replace(sentence, "")
    found = [text[max(0, hit.start() - 60) : hit.end() + 30] for hit in MEASURED.finditer(text)]
    assert not found
